/* SPDX-License-Identifier: Apache-2.0 */
/* The fabric file's value, and GUID maps in the forms that other tools write. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/fabric/document-internal.h"
#include "pkg/fabric/fabric-file-internal.h"
#include "pkg/fabric/labels.h"

void weft_fabric_file_free(struct weft_fabric_file *file)
{
    if (file == NULL) {
        return;
    }
    weft_declared_free(file->groups);
    for (size_t i = 0; i < file->guid_count; i++) {
        weft_free(file->guids[i].node);
    }
    for (size_t i = 0; i < file->host_count; i++) {
        weft_free(file->hosts[i].host);
        weft_free(file->hosts[i].node);
    }
    weft_free(file->guids);
    weft_free(file->hosts);
    weft_free(file->compute);
    weft_free(file->other);
    weft_free(file->epoch);
    weft_free(file);
}

void weft_guid_list_done(struct weft_guid_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        weft_free(list->items[i].name.node);
    }
    weft_free(list->items);
    *list = (struct weft_guid_list){0};
}

int weft_guid_list_add(struct weft_guid_list *list, uint64_t guid, struct weft_str node,
                       unsigned line, struct weft_error *err)
{
    void *items = list->items;
    const int rc = weft_array_reserve(&items, &list->cap, list->count + 1, sizeof(*list->items),
                                      WEFT_FABRIC_FILE_GUIDS_MAX);
    list->items = items;
    if (rc == -EFBIG) {
        return weft_err_set(err, rc, WEFT_ERR_CONFIG, "%s:%u: more than %d GUIDs", list->source,
                            line, (int)WEFT_FABRIC_FILE_GUIDS_MAX);
    }
    char *name = rc == 0 ? weft_strndup(node.data, node.len) : NULL;
    if (name == NULL) {
        return weft_err_nomem(err);
    }
    list->items[list->count++] = (struct weft_guid_line){{guid, name}, line};
    return 0;
}

static int compare_guid(const void *a, const void *b)
{
    const struct weft_guid_line *x = a;
    const struct weft_guid_line *y = b;
    if (x->name.guid != y->name.guid) {
        return x->name.guid < y->name.guid ? -1 : 1;
    }
    return (x->line > y->line) - (x->line < y->line);
}

int weft_fabric_file_fill(struct weft_fabric_file *file, struct weft_guid_list *list,
                          struct weft_str epoch, struct weft_error *err)
{
    file->epoch = weft_strndup(epoch.len > 0 ? epoch.data : "", epoch.len);
    file->guids = weft_calloc(list->count, sizeof(*file->guids));
    if (file->epoch == NULL || file->guids == NULL) {
        return weft_err_nomem(err);
    }
    if (list->count > 0) {
        qsort(list->items, list->count, sizeof(*list->items), compare_guid);
    }
    for (size_t i = 0; i < list->count; i++) {
        struct weft_guid_line *item = &list->items[i];
        const struct weft_guid_name *before =
            file->guid_count > 0 ? &file->guids[file->guid_count - 1] : NULL;
        if (before == NULL || before->guid != item->name.guid) {
            file->guids[file->guid_count++] = item->name;
            item->name.node = NULL;
        } else if (strcmp(before->node, item->name.node) != 0) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "%s:%u: GUID %016" PRIx64 " is of node %.80s and of node %.80s",
                                list->source, item->line, item->name.guid, before->node,
                                item->name.node);
        }
    }
    return 0;
}

static int compare_host(const void *a, const void *b)
{
    const struct weft_host_name *x = a;
    const struct weft_host_name *y = b;
    return strcmp(x->host, y->host);
}

void weft_fabric_file_sort_hosts(struct weft_fabric_file *file)
{
    if (file->host_count > 0) {
        qsort(file->hosts, file->host_count, sizeof(*file->hosts), compare_host);
    }
}

/* ---- GUID maps ---- */

/* `0x<guid> "name hca"`: the host is the name's first word. */
static bool guid_first(struct weft_str line, uint64_t *ret_guid, struct weft_str *ret_name)
{
    struct weft_str word = {0};
    struct weft_str rest = line;
    if (!weft_str_word(&rest, &word) || !weft_str_starts(word, "0x") ||
        weft_parse_hex64(word, ret_guid) < 0) {
        return false;
    }
    rest = weft_str_trim(rest);
    if (rest.len >= 2 && rest.data[0] == '"' && rest.data[rest.len - 1] == '"') {
        rest = (struct weft_str){rest.data + 1, rest.len - 2};
    }
    return weft_str_word(&rest, ret_name);
}

/* `name: 0x<guid>`. */
static bool name_first(struct weft_str line, uint64_t *ret_guid, struct weft_str *ret_name)
{
    const char *colon = memchr(line.data, ':', line.len);
    if (colon == NULL) {
        return false;
    }
    *ret_name = weft_str_trim((struct weft_str){line.data, (size_t)(colon - line.data)});
    const struct weft_str guid =
        weft_str_trim((struct weft_str){colon + 1, line.len - (size_t)(colon - line.data) - 1});
    return ret_name->len > 0 && weft_parse_hex64(guid, ret_guid) == 0;
}

static int read_guid_lines(struct weft_guid_list *list, struct weft_str rest,
                           struct weft_error *err)
{
    struct weft_str line = {0};
    unsigned number = 0;
    while (weft_str_line(&rest, &line)) {
        uint64_t guid = 0;
        struct weft_str name = {0};
        number++;
        line = weft_str_trim(line);
        if (line.len == 0 || line.data[0] == '#') {
            continue;
        }
        if ((!guid_first(line, &guid, &name) && !name_first(line, &guid, &name)) || guid == 0 ||
            memchr(name.data, '\0', name.len) != NULL) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "%s:%u: expected 0x<guid> \"name\" or name: 0x<guid>, found %.*s",
                                list->source, number, line.len > 60 ? 60 : (int)line.len,
                                line.data);
        }
        const int rc = weft_guid_list_add(list, guid, name, number, err);
        if (rc < 0) {
            return rc;
        }
    }
    if (list->count == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s: no GUID in it", list->source);
    }
    return 0;
}

int weft_parse_guid_map(const char *text, size_t len, const char *source,
                        struct weft_fabric_file **ret_file, struct weft_error *err)
{
    weft_auto(weft_guid_list_done) struct weft_guid_list list = {.source = source};
    weft_auto(weft_fabric_file_free) struct weft_fabric_file *file = weft_calloc(1, sizeof(*file));
    if (file == NULL) {
        return weft_err_nomem(err);
    }
    if (len > WEFT_FABRIC_FILE_MAX) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "%s: larger than %d MiB", source,
                            (int)(WEFT_FABRIC_FILE_MAX >> 20));
    }
    const struct weft_str whole = {text, len};
    int rc = read_guid_lines(&list, whole, err);
    rc = rc == 0 ? weft_doc_check_end(whole, source, err) : rc;
    rc = rc == 0 ? weft_fabric_file_fill(file, &list, (struct weft_str){0}, err) : rc;
    if (rc == 0) {
        *ret_file = weft_steal(&file);
    }
    return rc;
}
