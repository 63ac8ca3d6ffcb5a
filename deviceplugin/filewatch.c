/* SPDX-License-Identifier: Apache-2.0 */
/* A file that may change by itself, by a link on the way to it, or by its folder. */
#include "deviceplugin/filewatch.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/loop/loop.h"

enum {
    FILEWATCH_MAGIC = 0x46696c65, /* "File" */
    PLACES_MAX = 24,              /* folders that are watched for one file */
    LINKS_MAX = 16,               /* links on the way; the kernel follows 40 */
    PATH_BYTES = 4096,
    NAME_BYTES = 256
};

/* What is written is often a few steps: they become one look. */
#define SETTLE_NS (100 * WEFT_NS_PER_MS)
#define POLL_NS (30 * WEFT_NS_PER_S)

/* What tells a changed file apart. */
struct stamp {
    uint64_t device, inode;
    int64_t size, modified_ns;
    bool folder;
};

/* A name in a folder on which it depends what the path leads to. */
struct place {
    struct weft_filewatch *owner;
    struct weft_dirwatch *watch; /* NULL: the kernel would not */
    char *folder;
    char name[NAME_BYTES];
};

struct weft_filewatch {
    uint32_t magic;
    struct weft_loop *loop;
    char *path;
    void (*changed)(void *data);
    void *data;
    struct weft_timer *timer;
    bool settling; /* else the timer polls, if it runs */
    bool polls;
    struct stamp stamp;
    struct place places[PLACES_MAX];
    size_t place_count;
};

static struct stamp stamp_of(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0) {
        return (struct stamp){0};
    }
    return (struct stamp){.device = st.st_dev,
                          .inode = st.st_ino,
                          .size = st.st_size,
                          .modified_ns = st.st_mtim.tv_sec * WEFT_NS_PER_S + st.st_mtim.tv_nsec,
                          .folder = S_ISDIR(st.st_mode)};
}

static bool same_stamp(const struct stamp *a, const struct stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->modified_ns == b->modified_ns && a->folder == b->folder;
}

/* ---- events ---- */

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* An event without a name, or with the folder's own, is about the folder. */
static void on_event(void *data, const char *name)
{
    const struct place *place = data;
    struct weft_filewatch *watch = place->owner;
    WEFT_CHECK(watch, FILEWATCH_MAGIC);
    const bool ours = name == NULL || strcmp(name, place->name) == 0 ||
                      strcmp(name, last_name(place->folder)) == 0;
    if (ours && !watch->settling) {
        watch->settling = true;
        weft_timer_start(watch->timer, SETTLE_NS, 0);
    }
}

/* ---- where to look ---- */

static void drop_places(struct weft_filewatch *watch)
{
    for (size_t i = 0; i < watch->place_count; i++) {
        weft_dirwatch_free(watch->places[i].watch);
        weft_free(watch->places[i].folder);
    }
    watch->place_count = 0;
}

/* Failing to watch is no error: polls says so. */
static void add_place(struct weft_filewatch *watch, const char *folder, const char *name)
{
    struct weft_error err = {0};
    struct place *place = &watch->places[watch->place_count];
    char *copy = watch->place_count < PLACES_MAX ? weft_strdup(folder) : NULL;
    if (copy == NULL) {
        watch->polls = true;
        return;
    }
    *place = (struct place){.owner = watch, .folder = copy};
    (void)snprintf(place->name, sizeof(place->name), "%s", name);
    watch->place_count++;
    if (weft_dirwatch_new(watch->loop, folder, on_event, place, &place->watch, &err) < 0) {
        watch->polls = true;
        weft_log(WEFT_LOG_DEBUG, "file-not-watched", WEFT_KV_S("file", watch->path),
                 WEFT_KV_S("reason", err.message));
    }
}

/* Takes the next name off rest; false if there is none, or one that is none. */
static bool take_name(char *rest, char *name)
{
    const char *from = rest + strspn(rest, "/");
    const size_t len = strcspn(from, "/");
    if (len == 0 || len >= NAME_BYTES) {
        return false;
    }
    memcpy(name, from, len);
    name[len] = '\0';
    memmove(rest, from + len, strlen(from + len) + 1);
    return true;
}

/* Puts what the link says before the rest of the way. */
static bool follow(const char *link, char *folder, char *rest)
{
    char target[PATH_BYTES], way[PATH_BYTES];
    const ssize_t len = readlink(link, target, sizeof(target) - 1);
    if (len <= 0) {
        return false;
    }
    target[len] = '\0';
    if (target[0] == '/') {
        memcpy(folder, "/", 2);
    }
    if (snprintf(way, sizeof(way), "%s/%s", target, rest) >= (int)sizeof(way)) {
        return false;
    }
    memcpy(rest, way, strlen(way) + 1);
    return true;
}

/* Walks the path as the kernel does. Watched are links, the end, and what is missing; not each
 * folder on the way: "/" and "/etc" see much that is nobody's business here. A folder that holds
 * one of those tells when it goes; one further up that is renamed is not noticed. */
static void place_watches(struct weft_filewatch *watch)
{
    char folder[PATH_BYTES], rest[PATH_BYTES], full[PATH_BYTES], name[NAME_BYTES];
    memcpy(folder, watch->path[0] == '/' ? "/" : ".", 2);
    memcpy(rest, watch->path, strlen(watch->path) + 1);
    for (int links = 0; take_name(rest, name);) {
        const char *slash = strcmp(folder, "/") == 0 ? "" : "/";
        if (snprintf(full, sizeof(full), "%s%s%s", folder, slash, name) >= (int)sizeof(full)) {
            break;
        }
        struct stat st;
        const bool there = lstat(full, &st) == 0;
        const bool link = there && S_ISLNK(st.st_mode);
        const bool last = rest[strspn(rest, "/")] == '\0';
        if (!there || link || last) {
            add_place(watch, folder, name);
        }
        if (!there || (link && (++links > LINKS_MAX || !follow(full, folder, rest)))) {
            break;
        }
        if (!link) {
            memcpy(folder, full, strlen(full) + 1);
        }
    }
}

/* The watches first, then the file: what changes in between is seen by both. */
static bool look(struct weft_filewatch *watch)
{
    drop_places(watch);
    watch->polls = false;
    place_watches(watch);
    const struct stamp now = stamp_of(watch->path);
    watch->polls = watch->polls || now.folder; /* what is below a folder is not watched */
    if (watch->polls) {
        weft_timer_start_aligned(watch->timer, POLL_NS);
    }
    const bool same = same_stamp(&now, &watch->stamp);
    watch->stamp = now;
    return !same;
}

static void on_timer(void *data)
{
    struct weft_filewatch *watch = data;
    WEFT_CHECK(watch, FILEWATCH_MAGIC);
    watch->settling = false;
    weft_timer_stop(watch->timer);
    if (look(watch)) {
        watch->changed(watch->data);
    }
}

/* ---- life ---- */

int weft_filewatch_new(struct weft_loop *loop, const char *path, void (*changed)(void *data),
                       void *data, struct weft_filewatch **ret_watch, struct weft_error *err)
{
    if (strlen(path) >= PATH_BYTES) {
        return weft_err_set(err, -ENAMETOOLONG, WEFT_ERR_CONFIG, "a path of %zu bytes, at most %d",
                            strlen(path), PATH_BYTES - 1);
    }
    weft_auto(weft_filewatch_free) struct weft_filewatch *watch = weft_calloc(1, sizeof(*watch));
    if (watch == NULL) {
        return weft_err_nomem(err);
    }
    watch->magic = FILEWATCH_MAGIC;
    watch->loop = loop;
    watch->changed = changed;
    watch->data = data;
    watch->path = weft_strdup(path);
    if (watch->path == NULL) {
        return weft_err_nomem(err);
    }
    const int rc = weft_timer_new(loop, on_timer, watch, &watch->timer, err);
    if (rc < 0) {
        return rc;
    }
    (void)look(watch);
    *ret_watch = weft_steal(&watch);
    return 0;
}

void weft_filewatch_free(struct weft_filewatch *watch)
{
    if (watch != NULL) {
        WEFT_CHECK(watch, FILEWATCH_MAGIC);
        drop_places(watch);
        weft_timer_free(watch->timer);
        weft_free(watch->path);
        watch->magic = 0;
        weft_free(watch);
    }
}

bool weft_filewatch_polls(const struct weft_filewatch *watch)
{
    WEFT_CHECK(watch, FILEWATCH_MAGIC);
    return watch->polls;
}
