/* SPDX-License-Identifier: Apache-2.0 */
/* A host as a tree in memory, from a recording: files and links sorted by path. Folders are there
 * by what is in them. No I/O. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/machine/host-internal.h"

static bool path_ok(const char *path)
{
    if (path[0] != '/' || path[1] == '\0' || strlen(path) >= WEFT_HOST_PATH_MAX) {
        return false;
    }
    struct weft_str rest = weft_str(path + 1);
    struct weft_str name;
    while (weft_str_split(&rest, '/', &name)) {
        if (name.len == 0 || weft_str_eq(name, ".") || weft_str_eq(name, "..")) {
            return false;
        }
    }
    return true;
}

static void entry_done(struct weft_host_entry *e)
{
    weft_free(e->path);
    weft_free(e->target);
    weft_free(e->bytes);
}

static int add(struct weft_host *host, const char *path, struct weft_host_entry entry)
{
    void *array = host->entries;
    const int rc = weft_array_reserve(&array, &host->entry_cap, host->entry_count + 1,
                                      sizeof(*host->entries), WEFT_HOST_ENTRIES_MAX);
    host->entries = array;
    entry.path = rc < 0 ? NULL : weft_strdup(path + 1);
    if (entry.path == NULL) {
        entry_done(&entry);
        return rc < 0 ? rc : -ENOMEM;
    }
    entry.order = host->entry_count;
    host->entries[host->entry_count++] = entry;
    return 0;
}

int weft_host_add_file(struct weft_host *host, const char *path, const void *bytes, size_t len)
{
    if (!path_ok(path)) {
        return -EINVAL;
    }
    char *copy = weft_memdup(bytes, len);
    return copy == NULL ? -ENOMEM
                        : add(host, path, (struct weft_host_entry){.bytes = copy, .len = len});
}

int weft_host_add_link(struct weft_host *host, const char *path, const char *target)
{
    if (!path_ok(path) || target[0] == '\0' || strlen(target) >= WEFT_HOST_PATH_MAX) {
        return -EINVAL;
    }
    char *copy = weft_strdup(target);
    return copy == NULL ? -ENOMEM : add(host, path, (struct weft_host_entry){.target = copy});
}

/* '/' sorts before every other byte, so that what a folder holds stands together after it. */
static int path_cmp(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    const int ca = *a == '/' ? 1 : *a == '\0' ? 0 : (unsigned char)*a + 1;
    const int cb = *b == '/' ? 1 : *b == '\0' ? 0 : (unsigned char)*b + 1;
    return ca - cb;
}

static int by_path(const void *a, const void *b)
{
    const struct weft_host_entry *ea = a;
    const struct weft_host_entry *eb = b;
    const int order = path_cmp(ea->path, eb->path);
    if (order != 0) {
        return order;
    }
    return ea->order < eb->order ? -1 : 1;
}

void weft_host_seal(struct weft_host *host)
{
    if (host->entry_count > 1) {
        qsort(host->entries, host->entry_count, sizeof(*host->entries), by_path);
    }
    size_t kept = 0;
    for (size_t i = 0; i < host->entry_count; i++) {
        const bool last = i + 1 == host->entry_count ||
                          strcmp(host->entries[i].path, host->entries[i + 1].path) != 0;
        if (last) {
            host->entries[kept++] = host->entries[i];
        } else {
            entry_done(&host->entries[i]);
        }
    }
    host->entry_count = kept;
}

/* The first entry whose path is not below path. */
static size_t lower_bound(const struct weft_host *host, const char *path)
{
    size_t low = 0;
    size_t high = host->entry_count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (path_cmp(host->entries[mid].path, path) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

/* What stands below the folder path, or NULL for none. */
static const char *below(const struct weft_host_entry *entry, const char *path)
{
    const size_t len = strlen(path);
    if (len == 0) {
        return entry->path;
    }
    const bool inside = strncmp(entry->path, path, len) == 0 && entry->path[len] == '/';
    return inside ? entry->path + len + 1 : NULL;
}

static const struct weft_host_entry *find(const struct weft_host *host, const char *path,
                                          bool *ret_folder)
{
    *ret_folder = path[0] == '\0';
    const size_t at = lower_bound(host, path);
    if (at == host->entry_count) {
        return NULL;
    }
    const struct weft_host_entry *entry = &host->entries[at];
    if (strcmp(entry->path, path) == 0) {
        return entry;
    }
    *ret_folder = *ret_folder || below(entry, path) != NULL;
    return NULL;
}

static int recorded_readlink(const struct weft_host *host, const char *path, char *target,
                             size_t size)
{
    bool folder = false;
    const struct weft_host_entry *entry = find(host, path, &folder);
    if (entry == NULL) {
        return folder ? -EINVAL : -ENOENT;
    }
    if (entry->target == NULL) {
        return -EINVAL;
    }
    const size_t len = strlen(entry->target);
    if (len >= size) {
        return -ENAMETOOLONG;
    }
    memcpy(target, entry->target, len);
    return (int)len;
}

static int recorded_read(const struct weft_host *host, const char *path, char *text, size_t size)
{
    bool folder = false;
    const struct weft_host_entry *entry = find(host, path, &folder);
    if (entry == NULL || entry->bytes == NULL) {
        return folder ? -EISDIR : -ENOENT;
    }
    if (entry->len > size) {
        return -EFBIG;
    }
    memcpy(text, entry->bytes, entry->len);
    return (int)entry->len;
}

static int recorded_list(const struct weft_host *host, const char *path,
                         struct weft_host_names *names)
{
    bool folder = false;
    if (find(host, path, &folder) != NULL) {
        return -ENOTDIR;
    }
    if (!folder) {
        return -ENOENT;
    }
    for (size_t i = lower_bound(host, path); i < host->entry_count; i++) {
        const char *name = below(&host->entries[i], path);
        if (name == NULL) {
            break;
        }
        const size_t len = strcspn(name, "/");
        const char *before = names->count > 0 ? names->names[names->count - 1] : "";
        if (strlen(before) == len && strncmp(before, name, len) == 0) {
            continue;
        }
        const int rc = weft_host_names_add(names, name, len);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static void recorded_done(struct weft_host *host)
{
    for (size_t i = 0; i < host->entry_count; i++) {
        entry_done(&host->entries[i]);
    }
    weft_free(host->entries);
}

const struct weft_host_ops weft_host_recorded_ops = {.readlink = recorded_readlink,
                                                     .read = recorded_read,
                                                     .list = recorded_list,
                                                     .done = recorded_done};
