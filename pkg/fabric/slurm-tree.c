/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's tree of switches: the checks and levels of slurmctld (src/plugins/topology/tree,
 * switch_record.c), and the groups they make. Where Slurm goes by the order of the file (a switch
 * with two parents, a node with two switches), weft goes by names, so that the order of the text
 * decides nothing. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/fabric/slurm-internal.h"

enum { EXAMPLES = 6, LIST_MAX = 160 };

static const char *const default_tiers[] = {"leaf", "spine", "core", NULL};

void weft_slurm_topo_done(struct weft_slurm_topo *topo)
{
    for (size_t i = 0; i < topo->count; i++) {
        weft_free(topo->items[i].name);
        weft_free(topo->items[i].nodes);
        weft_free(topo->items[i].children);
    }
    weft_free(topo->items);
    weft_free(topo->children);
    weft_map_free(topo->names);
    weft_rows_done(&topo->rows);
    *topo = (struct weft_slurm_topo){0};
}

static const char *kind(const struct weft_slurm_topo *topo)
{
    return topo->blocks ? "block" : "switch";
}

static int refuse(const struct weft_slurm_topo *topo, unsigned line, const char *what,
                  const char *name, struct weft_error *err)
{
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s:%u: %s %.64s %s", topo->source, line,
                        kind(topo), name, what);
}

static int reserve(struct weft_slurm_topo *topo, struct weft_error *err)
{
    if (topo->names == NULL) {
        topo->names = weft_map_new(WEFT_SLURM_SWITCHES_MAX);
    }
    void *items = topo->items;
    const int rc = weft_array_reserve(&items, &topo->cap, topo->count + 1, sizeof(*topo->items),
                                      WEFT_SLURM_SWITCHES_MAX);
    topo->items = items;
    if (rc == -EFBIG) {
        return weft_err_set(err, rc, WEFT_ERR_CONFIG, "%s: more than %d switches or blocks",
                            topo->source, (int)WEFT_SLURM_SWITCHES_MAX);
    }
    return rc < 0 || topo->names == NULL ? weft_err_nomem(err) : 0;
}

int weft_slurm_topo_add(struct weft_slurm_topo *topo, struct weft_str name, struct weft_str nodes,
                        struct weft_str children, unsigned line, struct weft_error *err)
{
    const int rc = reserve(topo, err);
    size_t before = 0;
    if (rc < 0) {
        return rc;
    }
    if (name.len == 0 || name.len > WEFT_SLURM_NAME_MAX) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: a %s needs a name of 1 to %d characters", topo->source, line,
                            kind(topo), (int)WEFT_SLURM_NAME_MAX);
    }
    if (weft_map_get_n(topo->names, name.data, name.len, &before)) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: %s %.64s is defined twice (first in line %u)", topo->source,
                            line, kind(topo), topo->items[before].name, topo->items[before].line);
    }
    struct weft_slurm_topo_item item = {
        .name = weft_strndup(name.data, name.len),
        .nodes = weft_strndup(nodes.len > 0 ? nodes.data : "", nodes.len),
        .children = weft_strndup(children.len > 0 ? children.data : "", children.len),
        .line = line,
        .parent = SIZE_MAX,
        .level = -1,
    };
    topo->items[topo->count++] = item; /* owned from here on */
    if (item.name == NULL || item.nodes == NULL || item.children == NULL ||
        weft_map_put(topo->names, item.name, topo->count - 1) < 0) {
        return weft_err_nomem(err);
    }
    return 0;
}

int weft_slurm_topo_expand(const struct weft_slurm_topo *topo,
                           const struct weft_slurm_topo_item *item, const char *text,
                           struct weft_hostlist *ret_list, struct weft_error *err)
{
    const int rc = weft_hostlist_add(ret_list, weft_str(text), err);
    return rc == -EINVAL || rc == -EFBIG ? weft_err_wrap(err, rc, "%s:%u: %s %.64s", topo->source,
                                                         item->line, kind(topo), item->name)
                                         : rc;
}

/* ---- children ---- */

/* Of several parents, the one whose name is first in natural order. */
static void set_parent(struct weft_slurm_topo *topo, size_t child, size_t parent)
{
    struct weft_slurm_topo_item *item = &topo->items[child];
    if (item->parent == SIZE_MAX || item->parent == parent) {
        item->parent = parent;
        return;
    }
    const char *old = topo->items[item->parent].name;
    const char *name = topo->items[parent].name;
    const bool better = weft_str_natural_cmp(name, old) < 0;
    weft_warn(&topo->rows.warnings, topo->source, topo->items[parent].line,
              "switch %.64s is below %.64s and below %.64s; weft keeps %.64s", item->name, old,
              name, better ? name : old);
    item->parent = better ? parent : item->parent;
}

static int find_child(struct weft_slurm_topo *topo, size_t parent, const char *name,
                      size_t *ret_child, struct weft_error *err)
{
    const struct weft_slurm_topo_item *item = &topo->items[parent];
    if (weft_map_get(topo->names, name, ret_child) && *ret_child != parent) {
        return 0;
    }
    if (!topo->implied || strcmp(item->name, name) == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: switch %.64s has the child %.64s, which is %s", topo->source,
                            item->line, item->name, name,
                            strcmp(item->name, name) == 0 ? "itself" : "not defined");
    }
    *ret_child = topo->count;
    return weft_slurm_topo_add(topo, weft_str(name), (struct weft_str){0}, (struct weft_str){0},
                               item->line, err);
}

static int add_children(struct weft_slurm_topo *topo, size_t parent, struct weft_error *err)
{
    weft_auto(weft_hostlist_done) struct weft_hostlist list = {0};
    int rc = weft_slurm_topo_expand(topo, &topo->items[parent], topo->items[parent].children, &list,
                                    err);
    topo->items[parent].child_start = topo->child_count;
    for (size_t i = 0; rc == 0 && i < list.count; i++) {
        size_t child = 0;
        rc = find_child(topo, parent, list.names[i], &child, err);
        if (rc < 0) {
            return rc;
        }
        void *children = topo->children;
        rc = weft_array_reserve(&children, &topo->child_cap, topo->child_count + 1,
                                sizeof(*topo->children), 4 * (size_t)WEFT_SLURM_SWITCHES_MAX);
        topo->children = children;
        if (rc < 0) {
            return rc == -ENOMEM ? weft_err_nomem(err)
                                 : weft_err_set(err, rc, WEFT_ERR_CONFIG,
                                                "%s:%u: more links between switches than weft "
                                                "reads",
                                                topo->source, topo->items[parent].line);
        }
        topo->children[topo->child_count++] = child;
        topo->items[parent].child_count++;
        set_parent(topo, child, parent);
    }
    return rc;
}

/* A switch with nodes is a leaf: its children do not count. One with neither is an empty leaf. */
static int link_switches(struct weft_slurm_topo *topo, struct weft_error *err)
{
    for (size_t i = 0; i < topo->count; i++) {
        struct weft_slurm_topo_item *item = &topo->items[i];
        if (item->nodes[0] != '\0' && item->children[0] != '\0') {
            weft_warn(&topo->rows.warnings, topo->source, item->line,
                      "switch %.64s has nodes, so its children are passed over", item->name);
        }
        if (item->nodes[0] != '\0' || item->children[0] == '\0') {
            item->level = 0;
            continue;
        }
        const int rc = add_children(topo, i, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* ---- levels ---- */

/* One above the highest child, if all children are known. */
static bool resolve(struct weft_slurm_topo *topo, struct weft_slurm_topo_item *item)
{
    int level = 0;
    for (size_t c = 0; c < item->child_count; c++) {
        const int below = topo->items[topo->children[item->child_start + c]].level;
        if (below < 0) {
            return false;
        }
        level = below + 1 > level ? below + 1 : level;
    }
    item->level = level;
    return true;
}

/* From a switch that has no level, down through others without: the walk ends up in the loop. */
static size_t in_loop(const struct weft_slurm_topo *topo, size_t at)
{
    for (size_t steps = 0; steps < topo->count; steps++) {
        const struct weft_slurm_topo_item *item = &topo->items[at];
        size_t c = 0;
        while (topo->items[topo->children[item->child_start + c]].level >= 0) {
            c++;
        }
        at = topo->children[item->child_start + c];
    }
    return at;
}

static int find_levels(struct weft_slurm_topo *topo, struct weft_error *err)
{
    size_t open = 1;
    for (int pass = 0; open > 0; pass++) {
        size_t done = 0;
        size_t at = 0;
        open = 0;
        for (size_t i = 0; i < topo->count; i++) {
            if (topo->items[i].level >= 0) {
                continue;
            }
            if (resolve(topo, &topo->items[i])) {
                done++;
            } else {
                open++;
                at = i;
            }
        }
        if (open > 0 && done == 0) {
            const struct weft_slurm_topo_item *item = &topo->items[in_loop(topo, at)];
            return refuse(topo, item->line, "is above itself: the switches are not a tree",
                          item->name, err);
        }
        /* each pass knows one level more at least */
        if (open > 0 && pass > WEFT_LEVELS_MAX) {
            return refuse(topo, topo->items[at].line, "makes a tree of more than 16 levels",
                          topo->items[at].name, err);
        }
    }
    for (size_t i = 0; i < topo->count; i++) {
        if (topo->items[i].level >= WEFT_LEVELS_MAX) {
            return refuse(topo, topo->items[i].line, "makes a tree of more than 16 levels",
                          topo->items[i].name, err);
        }
    }
    return 0;
}

/* ---- what comes out ---- */

static void warn_of(struct weft_slurm_topo *topo, const char *what,
                    bool (*is)(const struct weft_slurm_topo_item *))
{
    weft_auto(weft_buf_done) struct weft_buf list;
    weft_buf_init(&list, LIST_MAX);
    size_t count = 0;
    unsigned line = 0;
    for (size_t i = 0; i < topo->count; i++) {
        if (is(&topo->items[i]) && count++ < EXAMPLES) {
            (void)weft_buf_printf(&list, "%s%s", count > 1 ? ", " : "", topo->items[i].name);
            line = count == 1 ? topo->items[i].line : line;
        }
    }
    if (count > 0) {
        weft_warn(&topo->rows.warnings, topo->source, line, "%zu %s: %s%s", count, what,
                  weft_buf_text(&list), count > EXAMPLES ? " and others" : "");
    }
}

static bool is_empty(const struct weft_slurm_topo_item *item)
{
    return item->level == 0 && item->nodes[0] == '\0';
}

static bool is_root(const struct weft_slurm_topo_item *item)
{
    return item->parent == SIZE_MAX;
}

static void warn_of_roots(struct weft_slurm_topo *topo)
{
    size_t roots = 0;
    for (size_t i = 0; i < topo->count; i++) {
        roots += is_root(&topo->items[i]);
    }
    if (roots > 1) {
        warn_of(topo, "switches have no parent: the trees below them are separate", is_root);
    }
    warn_of(topo, "switches have neither nodes nor children", is_empty);
}

static int add_nodes(struct weft_slurm_topo *topo, const struct weft_slurm_topo_item *leaf,
                     struct weft_error *err)
{
    weft_auto(weft_hostlist_done) struct weft_hostlist list = {0};
    int rc = weft_slurm_topo_expand(topo, leaf, leaf->nodes, &list, err);
    for (size_t n = 0; rc == 0 && n < list.count; n++) {
        struct weft_row *row = NULL;
        rc = weft_rows_add(&topo->rows, weft_str(list.names[n]), leaf->line, &row, err);
        /* levels rise strictly from child to parent, so the walk ends */
        for (const struct weft_slurm_topo_item *at = leaf; rc == 0 && at != NULL;
             at = at->parent != SIZE_MAX ? &topo->items[at->parent] : NULL) {
            rc = weft_row_set(row, (size_t)at->level, weft_str(at->name));
            if (rc < 0) {
                return weft_err_nomem(err);
            }
        }
    }
    return rc;
}

static int finish_tree(struct weft_slurm_topo *topo, struct weft_declared **ret_declared,
                       struct weft_error *err)
{
    weft_auto(weft_label_levels_done) struct weft_label_levels levels = {0};
    int rc = link_switches(topo, err);
    rc = rc == 0 ? find_levels(topo, err) : rc;
    size_t top = 0;
    for (size_t i = 0; rc == 0 && i < topo->count; i++) {
        top = (size_t)topo->items[i].level > top ? (size_t)topo->items[i].level : top;
        rc = topo->items[i].nodes[0] != '\0' ? add_nodes(topo, &topo->items[i], err) : 0;
    }
    if (rc < 0) {
        return rc;
    }
    if (topo->rows.count == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s: no node below any switch",
                            topo->source);
    }
    warn_of_roots(topo);
    const struct weft_slurm_options *options = topo->options;
    rc = weft_rows_levels(top + 1, options != NULL ? options->tiers : NULL,
                          options != NULL ? options->tier_count : 0, default_tiers, &levels, err);
    return rc < 0 ? rc
                  : weft_rows_finish(&topo->rows, &levels, WEFT_NAMES_HOSTS, ret_declared, err);
}

int weft_slurm_topo_finish(struct weft_slurm_topo *topo, struct weft_declared **ret_declared,
                           struct weft_error *err)
{
    topo->rows.source = topo->source;
    if (topo->count == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s: no %s is configured: an empty topology", topo->source,
                            topo->blocks ? "block" : "switch or block");
    }
    return topo->blocks ? weft_slurm_topo_finish_blocks(topo, ret_declared, err)
                        : finish_tree(topo, ret_declared, err);
}
