/* SPDX-License-Identifier: Apache-2.0 */
/* Groups that something else than node labels declares: its names are matched with the cluster's
 * nodes as those of a fabric are; names that are no node of it are left out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/map.h"
#include "pkg/fabric/inventory.h"
#include "pkg/fabric/labels.h"
#include "pkg/fabric/node.h"
#include "pkg/tree/build.h"
#include "pkg/tree/merge.h"
#include "pkg/tree/tree-internal.h"
#include "pkg/tree/tree.h"

/* A node and the row of values that is about it, or ID_NONE. */
struct row {
    const char *node;
    uint32_t said;
};

static int compare_row(const void *a, const void *b)
{
    const struct row *x = a;
    const struct row *y = b;
    return strcmp(x->node, y->node);
}

/* Names that no node has may be in a user's map, as a cloud's instance ids are. */
static int map_names(const struct weft_declared *said, const struct weft_nic_inventory *inventory,
                     const struct weft_node *nodes, size_t node_count, uint32_t *said_of)
{
    weft_auto(weft_map_free) struct weft_map *index = weft_map_new(WEFT_NODES_MAX);
    if (index == NULL) {
        return -ENOMEM;
    }
    for (size_t n = 0; n < node_count; n++) {
        if (weft_map_put(index, nodes[n].name, n) < 0) {
            return -ENOMEM;
        }
    }
    for (size_t i = 0; i < said->node_count; i++) {
        const char *node = weft_nic_inventory_node_named(inventory, said->nodes[i]);
        size_t n = 0;
        if (node != NULL && weft_map_get(index, node, &n) && said_of[n] == ID_NONE) {
            said_of[n] = (uint32_t)i;
        }
    }
    return 0;
}

static int make_rows(const struct weft_declared *said, const struct weft_nic_inventory *inventory,
                     const struct weft_node *nodes, size_t node_count, struct row *rows,
                     struct weft_error *err)
{
    weft_autofree uint32_t *said_of = weft_calloc(node_count, sizeof(*said_of));
    if (said_of == NULL ||
        weft_match_names((const char *const *)said->nodes, said->node_count, nodes, node_count,
                         said_of) < 0 ||
        (inventory != NULL && map_names(said, inventory, nodes, node_count, said_of) < 0)) {
        return weft_err_nomem(err);
    }
    for (size_t n = 0; n < node_count; n++) {
        rows[n] = (struct row){nodes[n].name, said_of[n]};
    }
    if (node_count > 0) {
        qsort(rows, node_count, sizeof(*rows), compare_row);
    }
    for (size_t n = 1; n < node_count; n++) {
        if (strcmp(rows[n].node, rows[n - 1].node) == 0) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "node %s is there twice",
                                rows[n].node);
        }
    }
    return 0;
}

int weft_tree_from_said(const struct weft_declared *said,
                        const struct weft_nic_inventory *inventory, const struct weft_node *nodes,
                        size_t node_count, struct weft_tree **ret_tree, struct weft_error *err)
{
    if (nodes == NULL) {
        return weft_tree_from_declared(said, ret_tree, err);
    }
    const size_t levels = said->levels.count;
    weft_autofree struct row *rows = weft_calloc(node_count, sizeof(*rows));
    weft_autofree char **names = weft_calloc(node_count, sizeof(char *));
    weft_autofree char **values = weft_calloc(node_count * levels, sizeof(char *));
    if (rows == NULL || names == NULL || values == NULL) {
        return weft_err_nomem(err);
    }
    const int rc = make_rows(said, inventory, nodes, node_count, rows, err);
    if (rc < 0) {
        return rc;
    }
    for (size_t n = 0; n < node_count; n++) {
        names[n] = (char *)(uintptr_t)rows[n].node; /* read only */
        if (rows[n].said != ID_NONE) {
            memcpy(&values[n * levels], &said->values[rows[n].said * levels],
                   levels * sizeof(char *));
        }
    }
    const struct weft_declared own = {.levels = said->levels,
                                      .names = WEFT_NAMES_NODES,
                                      .nodes = names,
                                      .node_count = node_count,
                                      .values = values,
                                      .source = said->source,
                                      .warnings = said->warnings,
                                      .warning_count = said->warning_count,
                                      .warning_total = said->warning_total,
                                      .partial = said->partial};
    return weft_tree_from_declared(&own, ret_tree, err);
}
