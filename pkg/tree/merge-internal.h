/* SPDX-License-Identifier: Apache-2.0 */
/* Between the steps of merging trees: who is where by which source, making that a forest, and the
 * result of it. Private to pkg/tree/merge*.c. */
#ifndef WEFT_TREE_MERGE_INTERNAL_H
#define WEFT_TREE_MERGE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/tree/merge.h"
#include "pkg/tree/tree-internal.h"

struct weft_tree_group;

/* A group of the result: one of a source's, whole or the part of it under one group of a tier above
 * that cuts it. */
struct merge_part {
    size_t source;
    const struct weft_tree_group *from;
    size_t under_level; /* of the group that cuts it; WEFT_TREE_NONE: whole */
    size_t under;       /* its part there */
};

struct merge_level {
    const char *name;
    struct merge_part *parts;
    size_t count;
    size_t cap;
    size_t *place; /* node: part, or WEFT_TREE_NONE */
    /* its groups keep together what the tiers above have apart, as on_cross says */
    bool domain;
    /* source: 1 for the best one without switches that has this tier, 2 for the next…; else 0 */
    unsigned ordinal[WEFT_TREE_SOURCES_MAX];
};

struct merge {
    const struct weft_tree *const *trees;
    size_t tree_count;
    const bool *declared; /* tree: of groups that are said, not of switches */
    char **nodes;         /* placed by any source, sorted */
    size_t *source;       /* node: the best source that places it */
    size_t node_count;
    struct merge_level *levels; /* closest first */
    size_t level_count;
    enum weft_tree_cross on_cross;
    struct weft_findings findings;
};

/* A node, its part in one tier, and the number of what it has in those above. */
struct merge_row {
    size_t part;
    size_t above;
    size_t node;
};

/* For qsort: by part, above, node. */
int weft_merge_compare(const void *a, const void *b);
/* Sorts the rows and numbers their pairs of part and above: numbers[row.node]. */
void weft_merge_number(struct merge_row *rows, size_t count, size_t *numbers);
int weft_merge_add_part(struct merge_level *level, struct merge_part part, size_t *ret_index)
    __attribute__((warn_unused_result));
/* What sources say differently about nodes that both know; before anything is moved. */
int weft_merge_mismatches(struct merge *m) __attribute__((warn_unused_result));
/* Moves nodes and cuts groups until two nodes of one group share every group above it. */
int weft_merge_settle(struct merge *m) __attribute__((warn_unused_result));
/* The tree of the settled places; takes over m's nodes and findings. 0 or -ENOMEM. */
int weft_merge_emit(struct merge *m, struct weft_tree *tree) __attribute__((warn_unused_result));

#endif
