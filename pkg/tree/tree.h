/* SPDX-License-Identifier: Apache-2.0 */
/* The tier tree: which nodes are close to which, from the closest tier up. It is the result of
 * pkg/tree's algorithm over a switch graph, or of declared groups (node labels), and the input of
 * pkg/hypernode's layout. A value; immutable once built; pure. */
#ifndef WEFT_TREE_TREE_H
#define WEFT_TREE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

/* "no group": the node has no place in that tier */
#define WEFT_TREE_NONE SIZE_MAX

struct weft_tree_group {
    char *name;      /* for people and slugs: label value, rack, switch description; never NULL */
    char *identity;  /* what makes it the same group in the next discovery: the label path
                        ("zone=a/rack=7"), or "switch:<smallest switch GUID, 16 hex digits>"; never
                        NULL, unique in its tier */
    size_t parent;   /* group index in the next tier up, or WEFT_TREE_NONE */
    char **switches; /* display names or GUIDs, sorted; empty for labels */
    size_t switch_count;
    uint64_t *switch_guids; /* the full identity set for switch graphs, ascending; may be empty */
    size_t switch_guid_count;
};

struct weft_tree_tier {
    char *name;                     /* tierName: "leaf", "spine", "rack"…, lowercase DNS label */
    struct weft_tree_group *groups; /* in natural order of name, then identity */
    size_t group_count;
    size_t *node_group; /* per node of the tree: group index in this tier, or WEFT_TREE_NONE */
};

/* One thing that is odd in the fabric and what it is about. */
struct weft_finding {
    char *
        kind; /* a stable word: "split-node", "rail-swap", "missing-rail", "default-description"… */
    char *subject; /* node, switch or file it is about */
    char *detail;  /* one sentence: HCA, port, leaf found, leaf expected */
};

struct weft_tree {
    size_t tier_count; /* tier numbers are 1…tier_count = index + 1; 1 is closest */
    struct weft_tree_tier *tiers;
    char **nodes; /* placed nodes' names, sorted (strcmp), unique */
    size_t node_count;
    size_t *node_source; /* per node: the best source that places it; NULL: there is one source */
    char **unplaced;     /* selected nodes that no source knows, sorted */
    size_t unplaced_count;
    struct weft_finding *findings; /* sorted by kind, subject, detail */
    size_t finding_count;
};

void weft_tree_free(struct weft_tree *tree);
WEFT_DEFINE_AUTO(struct weft_tree, weft_tree_free)
void weft_finding_done(struct weft_finding *finding);

/* Checks the laws of a tree: every index in range, parents match nodes' chains (two nodes of one
 * group share every group above it), no empty group, unique identities. 0 or -EINVAL with what is
 * wrong. Used by tests and before a layout. */
int weft_tree_check(const struct weft_tree *tree, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
