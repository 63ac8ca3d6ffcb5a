/* SPDX-License-Identifier: Apache-2.0 */
/* Reads weft's own fabric file. Strict: people write it by hand, and a group that is silently
 * smaller than they meant is the worst answer. */
#include <errno.h>
#include <string.h>

#include "pkg/base/map.h"
#include "pkg/fabric/declared-internal.h"
#include "pkg/fabric/document-internal.h"
#include "pkg/fabric/fabric-file-internal.h"
#include "pkg/fabric/hostlist.h"
#include "pkg/fabric/node.h"
#include "pkg/json/json.h"
#include "pkg/yaml/yaml.h"

enum { GROUPS_MAX = 1 << 17, GROUP_NAME_MAX = 253 };

/* A group and those around it: a chain on the stack, at most one a level. */
struct place {
    const struct place *parent;
    const char *name;
    size_t level;
    size_t number; /* of all groups: what tells two of the same name apart */
};

struct reader {
    const char *source;
    struct weft_label_levels levels;
    struct weft_rows rows;
    struct weft_map *nodes; /* to row */
    struct weft_map *names; /* "level/parent's number/name" of groups, for doubles */
    size_t groups;
};

/* ---- levels ---- */

static int read_levels(struct reader *r, const struct weft_json *list, struct weft_error *err)
{
    for (size_t i = 0; i < weft_json_count(list); i++) {
        const struct weft_json *item = weft_json_at(list, i);
        const char *name = weft_json_string(item);
        struct weft_error why = {0};
        if (name == NULL) {
            return weft_json_error(item, err, "a level is a name");
        }
        const int rc = weft_label_levels_add(&r->levels, name, name, &why);
        if (rc < 0) {
            return rc == -ENOMEM ? weft_err_nomem(err)
                                 : weft_json_error(item, err, "%s", why.message);
        }
    }
    return 0;
}

static int find_level(const struct reader *r, const struct weft_json *group, size_t *ret_level,
                      struct weft_error *err)
{
    const char *name = NULL;
    const int rc = weft_json_get_string(group, "level", &name, err);
    if (rc <= 0) {
        return rc < 0 ? rc : weft_json_error(group, err, "a group needs a level");
    }
    for (size_t l = 0; l < r->levels.count; l++) {
        if (strcmp(r->levels.items[l].tier, name) == 0) {
            *ret_level = l;
            return 0;
        }
    }
    return weft_json_error(weft_json_get(group, "level"), err, "no level \"%.60s\" in levels",
                           name);
}

/* ---- nodes ---- */

static int node_row(struct reader *r, const char *node, unsigned line, size_t *ret_row,
                    struct weft_error *err)
{
    if (weft_map_get(r->nodes, node, ret_row)) {
        return 0;
    }
    struct weft_row *row = NULL;
    const int rc = weft_rows_add(&r->rows, weft_str(node), line, &row, err);
    if (rc < 0) {
        return rc;
    }
    *ret_row = r->rows.count - 1;
    return weft_map_put(r->nodes, node, *ret_row) < 0 ? weft_err_nomem(err) : 0;
}

/* Puts the node into the group and those around it. A level that it has already is an error, also
 * if it is the same group: then the list names it twice. */
static int place_node(struct reader *r, const struct weft_json *at, const char *node,
                      const struct place *place, struct weft_error *err)
{
    size_t index = 0;
    int rc = node_row(r, node, weft_json_line(at), &index, err);
    for (const struct place *p = place; rc == 0 && p != NULL; p = p->parent) {
        struct weft_row *row = &r->rows.items[index];
        if (row->values[p->level] != NULL) {
            return weft_json_error(at, err, "node %.80s is in %.60s already (line %u)", node,
                                   row->values[p->level], row->line);
        }
        rc = weft_row_set(row, p->level, weft_str(p->name)) < 0 ? weft_err_nomem(err) : 0;
    }
    return rc;
}

static int place_text(struct reader *r, const struct weft_json *at, const struct place *place,
                      struct weft_error *err)
{
    weft_auto(weft_hostlist_done) struct weft_hostlist list = {0};
    struct weft_doc_text text = {0};
    struct weft_error why = {0};
    int rc = weft_doc_text_of(at, &text, err);
    if (rc < 0) {
        return rc;
    }
    rc = weft_hostlist_add(&list, text.text, &why);
    if (rc < 0) {
        return rc == -ENOMEM ? weft_err_nomem(err) : weft_json_error(at, err, "%s", why.message);
    }
    if (list.count == 0) {
        return weft_json_error(at, err, "an empty list of nodes");
    }
    for (size_t n = 0; rc == 0 && n < list.count; n++) {
        rc = place_node(r, at, list.names[n], place, err);
    }
    return rc;
}

static int place_nodes(struct reader *r, const struct weft_json *nodes, const struct place *place,
                       struct weft_error *err)
{
    if (weft_json_type(nodes) != WEFT_JSON_ARRAY) {
        return place_text(r, nodes, place, err);
    }
    if (weft_json_count(nodes) == 0) {
        return weft_json_error(nodes, err, "an empty list of nodes");
    }
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < weft_json_count(nodes); i++) {
        rc = place_text(r, weft_json_at(nodes, i), place, err);
    }
    return rc;
}

/* ---- groups ---- */

static int check_name(struct reader *r, const struct weft_json *group, const struct place *place,
                      struct weft_error *err)
{
    if (place->name == NULL || place->name[0] == '\0' || strlen(place->name) > GROUP_NAME_MAX) {
        return weft_json_error(group, err, "a group needs a name of at most 253 characters");
    }
    weft_autofree char *key = weft_asprintf(
        "%zu/%zu/%s", place->level, place->parent != NULL ? place->parent->number : 0, place->name);
    if (key == NULL) {
        return weft_err_nomem(err);
    }
    const int rc = weft_map_put(r->names, key, place->number);
    if (rc == 1) {
        return weft_json_error(group, err, "group %.60s is there twice at this level", place->name);
    }
    if (rc == -EFBIG) {
        return weft_json_error(group, err, "more than %d groups", (int)GROUPS_MAX);
    }
    return rc < 0 ? weft_err_nomem(err) : 0;
}

static int read_groups(struct reader *r, const struct weft_json *list, const struct place *parent,
                       struct weft_error *err);

/* Recursion is as deep as there are levels: each must be closer than the one around it. */
static int read_group(struct reader *r, const struct weft_json *group, const struct place *parent,
                      struct weft_error *err)
{
    static const char *const fields[] = {"name", "level", "nodes", "groups", NULL};
    struct place place = {.parent = parent, .number = ++r->groups};
    struct weft_doc_text name = {0};
    const struct weft_json *nodes = weft_json_get(group, "nodes");
    const struct weft_json *groups = NULL;
    int rc = weft_json_only(group, fields, err);
    rc = rc < 0 ? rc : weft_doc_get_text(group, "name", &name, err);
    rc = rc < 0 ? rc : find_level(r, group, &place.level, err);
    rc = rc < 0 ? rc : weft_json_get_array(group, "groups", &groups, err);
    if (rc < 0) {
        return rc;
    }
    place.name = name.text.data;
    if (parent != NULL && place.level >= parent->level) {
        return weft_json_error(weft_json_get(group, "level"), err,
                               "level %s is not closer than %s, the level of the group around it",
                               r->levels.items[place.level].tier,
                               r->levels.items[parent->level].tier);
    }
    rc = check_name(r, group, &place, err);
    if (rc == 0 && weft_json_type(nodes) == WEFT_JSON_NULL && weft_json_count(groups) == 0) {
        return weft_json_error(group, err, "group %.60s has neither nodes nor groups", place.name);
    }
    rc = rc == 0 && weft_json_type(nodes) != WEFT_JSON_NULL ? place_nodes(r, nodes, &place, err)
                                                            : rc;
    return rc == 0 ? read_groups(r, groups, &place, err) : rc;
}

static int read_groups(struct reader *r, const struct weft_json *list, const struct place *parent,
                       struct weft_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < weft_json_count(list); i++) {
        rc = read_group(r, weft_json_at(list, i), parent, err);
    }
    return rc;
}

static int read_declared(struct reader *r, const struct weft_json *root,
                         struct weft_fabric_file *file, struct weft_error *err)
{
    const struct weft_json *levels = NULL;
    const struct weft_json *groups = NULL;
    int rc = weft_json_get_array(root, "levels", &levels, err);
    rc = rc < 0 ? rc : weft_json_get_array(root, "groups", &groups, err);
    if (rc < 0 || weft_json_count(groups) == 0) {
        return rc < 0 ? rc : 0;
    }
    if (weft_json_count(levels) == 0) {
        return weft_json_error(root, err, "groups need levels: tier names, closest first");
    }
    r->nodes = weft_map_new(WEFT_NODES_MAX);
    r->names = weft_map_new(GROUPS_MAX);
    if (r->nodes == NULL || r->names == NULL) {
        return weft_err_nomem(err);
    }
    rc = read_levels(r, levels, err);
    rc = rc == 0 ? read_groups(r, groups, NULL, err) : rc;
    return rc == 0 ? weft_rows_finish(&r->rows, &r->levels, WEFT_NAMES_HOSTS, &file->groups, err)
                   : rc;
}

/* ---- the rest ---- */

/* The text member, which must be there. */
static int need_text(const struct weft_json *object, const char *key, struct weft_doc_text *ret,
                     struct weft_error *err)
{
    const int rc = weft_doc_get_text(object, key, ret, err);
    return rc == 0 && ret->text.len == 0 ? weft_json_error(object, err, "lacks %s", key) : rc;
}

static int read_guid(const struct weft_json *item, uint64_t *ret_guid, struct weft_error *err)
{
    const char *text = weft_json_string(item);
    if (text == NULL || weft_parse_hex64(weft_str(text), ret_guid) < 0 || *ret_guid == 0) {
        return weft_json_error(item, err, "is not a GUID: 1 to 16 hexadecimal digits in quotes");
    }
    return 0;
}

static int read_node_guids(const struct weft_json *item, struct weft_guid_list *list,
                           struct weft_error *err)
{
    static const char *const fields[] = {"node", "guids", NULL};
    const struct weft_json *guids = NULL;
    struct weft_doc_text node = {0};
    int rc = weft_json_only(item, fields, err);
    rc = rc < 0 ? rc : need_text(item, "node", &node, err);
    rc = rc < 0 ? rc : weft_json_get_array(item, "guids", &guids, err);
    for (size_t i = 0; rc >= 0 && i < weft_json_count(guids); i++) {
        const struct weft_json *at = weft_json_at(guids, i);
        uint64_t guid = 0;
        rc = read_guid(at, &guid, err);
        rc = rc == 0 ? weft_guid_list_add(list, guid, node.text, weft_json_line(at), err) : rc;
    }
    return rc < 0 ? rc : 0;
}

static int read_guids(const struct weft_json *items, struct weft_guid_list *list,
                      struct weft_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < weft_json_count(items); i++) {
        rc = read_node_guids(weft_json_at(items, i), list, err);
    }
    return rc;
}

static int read_role(const struct weft_json *roles, const char *role, uint64_t **ret_guids,
                     size_t *ret_count, struct weft_error *err)
{
    const struct weft_json *list = NULL;
    const int rc = weft_json_get_array(roles, role, &list, err);
    const size_t count = rc > 0 ? weft_json_count(list) : 0;
    if (rc < 0) {
        return rc;
    }
    if (count > WEFT_FABRIC_FILE_GUIDS_MAX) {
        return weft_json_error(list, err, "more than %d GUIDs", (int)WEFT_FABRIC_FILE_GUIDS_MAX);
    }
    *ret_guids = weft_calloc(count, sizeof(**ret_guids));
    if (*ret_guids == NULL) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < count; i++) {
        const int bad = read_guid(weft_json_at(list, i), &(*ret_guids)[i], err);
        if (bad < 0) {
            return bad;
        }
    }
    *ret_count = count;
    return 0;
}

static int read_roles(const struct weft_json *root, struct weft_fabric_file *file,
                      struct weft_error *err)
{
    static const char *const fields[] = {"compute", "other", NULL};
    const struct weft_json *roles = NULL;
    int rc = weft_json_get_object(root, "roles", &roles, err);
    if (rc <= 0) {
        return rc;
    }
    rc = weft_json_only(roles, fields, err);
    rc = rc < 0 ? rc : read_role(roles, "compute", &file->compute, &file->compute_count, err);
    return rc < 0 ? rc : read_role(roles, "other", &file->other, &file->other_count, err);
}

static int read_hosts(const struct weft_json *items, struct weft_fabric_file *file,
                      struct weft_error *err)
{
    static const char *const fields[] = {"host", "node", NULL};
    weft_auto(weft_map_free) struct weft_map *seen = weft_map_new(WEFT_NODES_MAX);
    file->hosts = weft_calloc(weft_json_count(items), sizeof(*file->hosts));
    if (file->hosts == NULL || seen == NULL) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < weft_json_count(items); i++) {
        const struct weft_json *item = weft_json_at(items, i);
        struct weft_doc_text host = {0};
        struct weft_doc_text node = {0};
        int rc = weft_json_only(item, fields, err);
        rc = rc < 0 ? rc : need_text(item, "host", &host, err);
        rc = rc < 0 ? rc : need_text(item, "node", &node, err);
        if (rc < 0) {
            return rc;
        }
        rc = weft_map_put(seen, host.text.data, i);
        if (rc == 1 || rc == -EFBIG) {
            return weft_json_error(item, err, "host %.80s is %s", host.text.data,
                                   rc == 1 ? "there twice" : "one host too many");
        }
        struct weft_host_name *name = &file->hosts[file->host_count++];
        name->host = weft_strdup(host.text.data);
        name->node = weft_strdup(node.text.data);
        if (rc < 0 || name->host == NULL || name->node == NULL) {
            return weft_err_nomem(err);
        }
    }
    weft_fabric_file_sort_hosts(file);
    return 0;
}

static int check_head(const struct weft_json *root, struct weft_error *err)
{
    static const char *const fields[] = {"apiVersion", "kind",  "epoch", "levels", "groups",
                                         "guids",      "roles", "hosts", NULL};
    const char *version = "";
    const char *kind = "";
    int rc = weft_json_only(root, fields, err);
    rc = rc < 0 ? rc : weft_json_get_string(root, "apiVersion", &version, err);
    rc = rc < 0 ? rc : weft_json_get_string(root, "kind", &kind, err);
    if (rc < 0) {
        return rc;
    }
    if (strcmp(version, "weft.dev/v1alpha1") != 0 || strcmp(kind, "FabricFile") != 0) {
        return weft_json_error(root, err,
                               "apiVersion \"%.40s\", kind \"%.40s\"; expected weft.dev/v1alpha1, "
                               "FabricFile",
                               version, kind);
    }
    return 0;
}

/* What is said of adapters and names, besides groups. */
static int read_names(const struct weft_json *root, struct weft_fabric_file *file,
                      struct weft_guid_list *guids, struct weft_error *err)
{
    const struct weft_json *guid_list = NULL;
    const struct weft_json *host_list = NULL;
    int rc = weft_json_get_array(root, "guids", &guid_list, err);
    rc = rc < 0 ? rc : weft_json_get_array(root, "hosts", &host_list, err);
    rc = rc < 0 ? rc : read_guids(guid_list, guids, err);
    rc = rc < 0 ? rc : read_hosts(host_list, file, err);
    return rc < 0 ? rc : read_roles(root, file, err);
}

static bool is_empty(const struct weft_fabric_file *file, const struct weft_guid_list *guids)
{
    return file->groups == NULL && guids->count == 0 && file->host_count == 0 &&
           file->compute_count == 0 && file->other_count == 0;
}

static int read_file(struct reader *r, const struct weft_json *root, struct weft_fabric_file *file,
                     struct weft_guid_list *guids, struct weft_error *err)
{
    struct weft_doc_text epoch = {0};
    int rc = check_head(root, err);
    rc = rc < 0 ? rc : weft_doc_get_text(root, "epoch", &epoch, err);
    if (rc == 0 && epoch.text.len > WEFT_FABRIC_FILE_EPOCH_MAX) {
        rc = weft_json_error(weft_json_get(root, "epoch"), err, "longer than %d characters",
                             (int)WEFT_FABRIC_FILE_EPOCH_MAX);
    }
    rc = rc < 0 ? rc : read_declared(r, root, file, err);
    rc = rc < 0 ? rc : read_names(root, file, guids, err);
    if (rc >= 0 && is_empty(file, guids)) {
        rc = weft_json_error(root, err, "neither groups nor guids nor hosts: an empty file");
    }
    return rc < 0 ? rc : weft_fabric_file_fill(file, guids, epoch.text, err);
}

int weft_parse_fabric_file(const char *text, size_t len, const char *source,
                           struct weft_fabric_file **ret_file, struct weft_error *err)
{
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    weft_auto(weft_fabric_file_free) struct weft_fabric_file *file = weft_calloc(1, sizeof(*file));
    weft_auto(weft_guid_list_done) struct weft_guid_list guids = {.source = source};
    struct reader r = {.source = source, .rows = {.source = source}};
    if (len > WEFT_FABRIC_FILE_MAX) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "%s: larger than %d MiB", source,
                            (int)(WEFT_FABRIC_FILE_MAX >> 20));
    }
    int rc = file != NULL ? weft_yaml_parse(text, len, source, &root, err) : weft_err_nomem(err);
    rc = rc < 0 ? rc : read_file(&r, root, file, &guids, err);
    rc = rc < 0 ? rc : weft_doc_check_end((struct weft_str){text, len}, source, err);
    weft_label_levels_done(&r.levels);
    weft_rows_done(&r.rows);
    weft_map_free(r.nodes);
    weft_map_free(r.names);
    if (rc == 0) {
        *ret_file = weft_steal(&file);
    }
    return rc;
}
