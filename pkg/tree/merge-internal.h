/* SPDX-License-Identifier: Apache-2.0 */
/* Between the two halves of merging trees: settling the places, and making the result of them.
 * Private to pkg/tree/merge*.c. */
#ifndef WEFT_TREE_MERGE_INTERNAL_H
#define WEFT_TREE_MERGE_INTERNAL_H

#include <stddef.h>

#include "pkg/tree/tree-internal.h"

struct weft_tree_group;

/* A group of the result: one of a source's, whole or the part of it under one better group. */
struct merge_part {
    size_t source;
    const struct weft_tree_group *from;
    size_t under; /* part in the tier above that cuts it, or WEFT_TREE_NONE */
};

struct merge_level {
    const char *name;
    struct merge_part *parts;
    size_t count;
    size_t cap;
    size_t *place; /* node: part, or WEFT_TREE_NONE */
};

struct merge {
    const struct weft_tree *const *trees;
    size_t tree_count;
    char **nodes; /* placed by any source, sorted */
    size_t node_count;
    struct merge_level *levels;
    size_t level_count;
    struct weft_findings findings;
};

/* The tree of the settled places; takes over m's nodes and findings. 0 or -ENOMEM. */
int weft_merge_emit(struct merge *m, struct weft_tree *tree) __attribute__((warn_unused_result));

#endif
