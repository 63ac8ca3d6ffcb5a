/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of sources that are no switch graph, trees of several sources to one, and what plans say
 * of the result. Private to pkg/tree. */
#ifndef WEFT_TREE_MERGE_H
#define WEFT_TREE_MERGE_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/tree/build.h"

struct weft_declared;
struct weft_nic_inventory;
struct weft_node;
struct weft_tree;

struct weft_merge_options {
    const char *const *plan; /* tier names, closest first */
    size_t plan_count;
    enum weft_tree_cross on_cross;
    const char *domain;   /* name of the tier of NVLink domains; NULL: "nvlink" */
    const bool *declared; /* tree: of groups that are said, not of switches */
};

/* trees: best source first, all made from the same nodes; every tier of theirs is in plan, in its
 * order. The caller owns *ret_tree. Errors: -ENOMEM. */
int weft_tree_merge(const struct weft_tree *const *trees, size_t count,
                    const struct weft_merge_options *options, struct weft_tree **ret_tree,
                    struct weft_error *err) __attribute__((warn_unused_result));

/* The tree of what a plan says of the nodes (NULL: of all names in it), which it may call by other
 * forms of their names, or by names that the inventory (or NULL) maps. Errors: -EINVAL for doubled
 * node names, -ENOMEM. */
int weft_tree_from_said(const struct weft_declared *said,
                        const struct weft_nic_inventory *inventory, const struct weft_node *nodes,
                        size_t node_count, struct weft_tree **ret_tree, struct weft_error *err)
    __attribute__((warn_unused_result));

/* Adds what fabrics show otherwise than plans expect to the tree's findings. Errors: -ENOMEM. */
int weft_tree_find_cabling(const struct weft_tree_input *input, struct weft_tree *tree,
                           struct weft_error *err) __attribute__((warn_unused_result));

#endif
