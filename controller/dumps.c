/* SPDX-License-Identifier: Apache-2.0 */
/* Files to fabrics. Must not decide what follows from them. */
#include "controller/dumps.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "pkg/base/file.h"
#include "pkg/base/str.h"
#include "pkg/fabric/fabric.h"

static void dump_done(struct weft_dump *dump)
{
    weft_free(dump->path);
    weft_fabric_free(dump->fabric);
    *dump = (struct weft_dump){0};
}

void weft_dumps_done(struct weft_dumps *dumps)
{
    for (size_t i = 0; i < dumps->count; i++) {
        dump_done(&dumps->items[i]);
    }
    *dumps = (struct weft_dumps){0};
}

/* Moves the entry of the same path over, so that its graph outlives a change of the rest. */
static int take_over(struct weft_dumps *old, const char *path, struct weft_dump *to)
{
    for (size_t i = 0; i < old->count; i++) {
        struct weft_dump *from = &old->items[i];
        if (from->path != NULL && strcmp(from->path, path) == 0) {
            *to = *from;
            *from = (struct weft_dump){0};
            return 0;
        }
    }
    to->path = weft_strdup(path);
    return to->path == NULL ? -ENOMEM : 0;
}

int weft_dumps_configure(struct weft_dumps *dumps, const struct weft_config *config)
{
    struct weft_dumps next = {.count = config->source_count};
    int rc = 0;
    for (size_t i = 0; i < config->source_count && rc == 0; i++) {
        const struct weft_names *files = &config->sources[i].files;
        const char *path = files->count > 0 ? files->items[0] : NULL;
        rc = path == NULL ? 0 : take_over(dumps, path, &next.items[i]);
    }
    weft_dumps_done(dumps);
    *dumps = next;
    return rc;
}

/* 0 if there is no file. Renames and writes both change it. */
static uint64_t stamp_of(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0) {
        return 0;
    }
    const int64_t parts[] = {(int64_t)st.st_ino, (int64_t)st.st_dev, (int64_t)st.st_size,
                             (int64_t)st.st_mtim.tv_sec, (int64_t)st.st_mtim.tv_nsec};
    return weft_hash64(WEFT_HASH_SEED, parts, sizeof(parts)) | 1;
}

static int read_dump(const char *path, struct weft_fabric **ret_fabric, struct weft_error *err)
{
    weft_autofree char *text = NULL;
    size_t len = 0;
    int rc = weft_file_read(path, WEFT_FABRIC_TEXT_MAX, &text, &len, err);
    if (rc < 0) {
        return rc;
    }
    return weft_parse_infiniband(text, len, path, ret_fabric, err);
}

static void load(struct weft_dump *dump)
{
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = NULL;
    dump->error = (struct weft_error){0};
    if (read_dump(dump->path, &fabric, &dump->error) < 0) {
        return;
    }
    if (fabric->partial && dump->fabric != NULL) {
        (void)weft_err_set(&dump->error, -ENODATA, WEFT_ERR_CONFIG,
                           "%s: the scan is only a part of the fabric; the one before stays in use",
                           dump->path);
        return;
    }
    weft_fabric_free(dump->fabric);
    dump->fabric = weft_steal(&fabric);
}

bool weft_dumps_refresh(struct weft_dumps *dumps)
{
    bool any = false;
    for (size_t i = 0; i < dumps->count; i++) {
        struct weft_dump *dump = &dumps->items[i];
        if (dump->path == NULL) {
            continue;
        }
        const uint64_t stamp = stamp_of(dump->path);
        if (stamp == dump->stamp && (stamp != 0 || dump->error.code != 0)) {
            continue;
        }
        dump->stamp = stamp;
        load(dump);
        any = true;
    }
    return any;
}

int weft_dumps_fabrics(const struct weft_dumps *dumps, const struct weft_fabric **fabrics,
                       struct weft_error *err)
{
    for (size_t i = 0; i < dumps->count; i++) {
        const struct weft_dump *dump = &dumps->items[i];
        fabrics[i] = dump->fabric;
        if (dump->path != NULL && dump->fabric == NULL) {
            if (err != NULL) {
                *err = dump->error;
            }
            return -ENODATA;
        }
    }
    return 0;
}
