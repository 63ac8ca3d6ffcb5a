/* SPDX-License-Identifier: Apache-2.0 */
/* A source that is files: read when something about them changed. Their folders are watched, so
 * that the swap of a ConfigMap's link is seen at once, and looked at every interval, as no watch
 * reports from a network's file system. Half a file, or a file that is gone, changes nothing. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/base/str.h"
#include "pkg/source/config-internal.h"
#include "pkg/source/source-internal.h"

enum { FILES_MAGIC = 0x536f4669 /* "SoFi" */, FOLDERS_MAX = 16 };

/* From an event in a folder to the look: several come together, and a writer has finished. Further
 * events do not put it off: they may never end. */
#define SETTLE_NS (200 * WEFT_NS_PER_MS)

struct folder {
    char *path;
    struct weft_dirwatch *watch; /* NULL: only looked at */
    dev_t device;                /* of the folder that is watched; another may take its path */
    ino_t inode;
};

struct files {
    uint32_t magic;
    struct weft_source *source;
    struct folder folders[FOLDERS_MAX];
    size_t folder_count;
    struct weft_timer *soon;
    uint64_t stamp; /* of what was read last */
    bool seen;      /* stamp is of a look that need not be repeated */
};

/* ---- folders ---- */

static void on_folder(void *data, const char *name)
{
    (void)name; /* a ConfigMap changes by its "..data" link, not by the file's own name */
    struct files *f = data;
    WEFT_CHECK(f, FILES_MAGIC);
    if (!weft_timer_active(f->soon)) {
        weft_timer_start(f->soon, SETTLE_NS, 0);
    }
}

static void on_soon(void *data)
{
    struct files *f = data;
    WEFT_CHECK(f, FILES_MAGIC);
    if (!f->source->looking) {
        f->source->due = weft_source_now(f->source);
        weft_sources_tick(f->source->owner);
    }
}

static int add_folder(struct files *f, const char *path, bool is_folder)
{
    const char *slash = strrchr(path, '/');
    weft_autofree char *folder = NULL;
    if (is_folder) {
        folder = weft_strdup(path);
    } else {
        folder = slash == NULL ? weft_strdup(".") : weft_strndup(path, (size_t)(slash - path) + 1);
    }
    if (folder == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < f->folder_count; i++) {
        if (strcmp(f->folders[i].path, folder) == 0) {
            return 0;
        }
    }
    if (f->folder_count < FOLDERS_MAX) { /* those beyond are looked at by the interval */
        f->folders[f->folder_count++].path = weft_steal(&folder);
    }
    return 0;
}

static int find_folders(struct files *f)
{
    const struct weft_config_source *s = f->source->settings;
    int rc = s->folder != NULL ? add_folder(f, s->folder, true) : 0;
    for (size_t i = 0; rc == 0 && i < s->files.count; i++) {
        rc = strcmp(s->files.items[i], "-") != 0 ? add_folder(f, s->files.items[i], false) : 0;
    }
    rc = rc == 0 && s->node_map != NULL ? add_folder(f, s->node_map, false) : rc;
    rc = rc == 0 && s->partitions != NULL ? add_folder(f, s->partitions, false) : rc;
    return rc == 0 && s->inventory != NULL ? add_folder(f, s->inventory, false) : rc;
}

/* A watch follows the folder, not its path: after a replacement it is made again. */
static void watch_folders(struct files *f)
{
    for (size_t i = 0; i < f->folder_count; i++) {
        struct folder *folder = &f->folders[i];
        struct stat st;
        const bool there = stat(folder->path, &st) == 0;
        if (folder->watch != NULL && there && st.st_dev == folder->device &&
            st.st_ino == folder->inode) {
            continue;
        }
        weft_dirwatch_free(folder->watch);
        folder->watch = NULL;
        if (there && weft_dirwatch_new(f->source->owner->loop, folder->path, on_folder, f,
                                       &folder->watch, NULL) == 0) {
            folder->device = st.st_dev;
            folder->inode = st.st_ino;
        }
    }
}

/* ---- files ---- */

uint64_t weft_source_stamp(uint64_t seed, const char *path)
{
    struct stat st;
    seed = weft_hash64(seed, path, strlen(path) + 1);
    if (stat(path, &st) < 0) {
        return weft_hash64(seed, "gone", 4);
    }
    const int64_t parts[] = {(int64_t)st.st_ino,          (int64_t)st.st_dev,
                             (int64_t)st.st_size,         (int64_t)st.st_mtim.tv_sec,
                             (int64_t)st.st_mtim.tv_nsec, (int64_t)st.st_ctim.tv_sec,
                             (int64_t)st.st_ctim.tv_nsec};
    return weft_hash64(seed, parts, sizeof(parts));
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds the folder's *.json by name, so that the order in it decides nothing. */
static int list_folder(const char *folder, struct weft_names *names, struct weft_error *err)
{
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        return weft_err_errno(err, errno, "%s", folder);
    }
    int rc = 0;
    const struct dirent *entry = readdir(dir);
    for (; rc == 0 && entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] == '.' || !weft_str_ends(weft_str(entry->d_name), ".json")) {
            continue;
        }
        weft_autofree char *path = weft_asprintf("%s/%s", folder, entry->d_name);
        if (names->count == WEFT_CONFIG_FILES_MAX) {
            rc = weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "%s: more than %d files *.json", folder,
                              (int)WEFT_CONFIG_FILES_MAX);
        } else {
            rc = path != NULL ? weft_names_add(names, path, err) : weft_err_nomem(err);
        }
    }
    (void)closedir(dir);
    if (rc == 0 && names->count == 0) {
        return weft_err_set(err, -ENOENT, WEFT_ERR_ERRNO, "%s: no file *.json", folder);
    }
    if (rc == 0) {
        qsort(names->items, names->count, sizeof(*names->items), compare_names);
    }
    return rc;
}

/* The settings' files, or those in their folder, in order. */
static int list_files(const struct weft_config_source *settings, struct weft_names *names,
                      struct weft_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < settings->files.count; i++) {
        rc = weft_names_add(names, settings->files.items[i], err);
    }
    return rc < 0 || settings->folder == NULL ? rc : list_folder(settings->folder, names, err);
}

static uint64_t stamp_all(const struct weft_config_source *settings, const struct weft_names *names)
{
    uint64_t stamp = WEFT_HASH_SEED;
    for (size_t i = 0; i < names->count; i++) {
        stamp = weft_source_stamp(stamp, names->items[i]);
    }
    stamp = settings->node_map != NULL ? weft_source_stamp(stamp, settings->node_map) : stamp;
    stamp = settings->partitions != NULL ? weft_source_stamp(stamp, settings->partitions) : stamp;
    return settings->inventory != NULL ? weft_source_stamp(stamp, settings->inventory) : stamp;
}

/* A single look may wait for a pipe, as a shell's <(command) is one; a loop's thread may not. */
static int read_all(const struct weft_source *source, const struct weft_names *names,
                    struct weft_source_result *result, struct weft_error *err)
{
    const struct weft_config_source *settings = source->settings;
    const size_t max = weft_source_text_max(settings->kind);
    weft_auto(weft_source_texts_done) struct weft_source_texts texts = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < names->count; i++) {
        char *text = NULL;
        size_t len = 0;
        rc = source->owner->once ? weft_file_read(names->items[i], max, &text, &len, err)
                                 : weft_file_read_regular(names->items[i], max, &text, &len, err);
        if (rc == 0 && weft_source_texts_add(&texts, names->items[i], text, len) < 0) {
            rc = weft_err_nomem(err);
        }
    }
    rc = rc == 0 ? weft_source_parse(settings, &texts, result, err) : rc;
    return rc == 0 ? weft_source_read_names(settings, result, err) : rc;
}

/* ---- a look ---- */

static void look(struct weft_source *source)
{
    struct files *f = source->state;
    WEFT_CHECK(f, FILES_MAGIC);
    weft_auto(weft_names_done) struct weft_names names = {0};
    weft_auto(weft_source_result_done) struct weft_source_result result = {0};
    struct weft_error err = {0};
    if (!source->owner->once) {
        watch_folders(f);
    }
    int rc = list_files(source->settings, &names, &err);
    const uint64_t stamp = stamp_all(source->settings, &names);
    if (f->seen && f->stamp == stamp) {
        weft_source_unchanged(source);
        return;
    }
    rc = rc == 0 ? read_all(source, &names, &result, &err) : rc;
    f->stamp = stamp;
    /* what a file says stays as it is until the file changes; that it cannot be read may pass */
    f->seen = rc == 0 || (err.domain != WEFT_ERR_ERRNO && rc != -ENOMEM);
    weft_source_finish(source, rc == 0 ? &result : NULL, &err, 0);
}

static void stop(struct weft_source *source)
{
    struct files *f = source->state;
    if (f == NULL) {
        return;
    }
    WEFT_CHECK(f, FILES_MAGIC);
    for (size_t i = 0; i < f->folder_count; i++) {
        weft_dirwatch_free(f->folders[i].watch);
        weft_free(f->folders[i].path);
    }
    weft_timer_free(f->soon);
    f->magic = 0;
    weft_free(f);
    source->state = NULL;
}

static int start(struct weft_source *source, struct weft_error *err)
{
    struct files *f = weft_calloc(1, sizeof(*f));
    if (f == NULL) {
        return weft_err_nomem(err);
    }
    f->magic = FILES_MAGIC;
    f->source = source;
    source->state = f;
    const int rc = find_folders(f) < 0
                       ? weft_err_nomem(err)
                       : weft_timer_new(source->owner->loop, on_soon, f, &f->soon, err);
    if (rc < 0) {
        stop(source);
    }
    return rc;
}

const struct weft_source_ops weft_source_files_ops = {
    .start = start,
    .look = look,
    .stop = stop,
    .cheap = true,
};
