/* SPDX-License-Identifier: Apache-2.0 */
/* Between the steps from a fabric to a tree: the graph of switches and hosts, the partitions, and
 * what was odd on the way. Private to pkg/tree (and its tests). */
#ifndef WEFT_TREE_TREE_INTERNAL_H
#define WEFT_TREE_TREE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/idmap.h"
#include "pkg/base/mem.h"
#include "pkg/tree/findings.h"

struct weft_fabric;
struct weft_finding;
struct weft_nic_inventory;
struct weft_node;
struct weft_tree;
struct weft_tree_options;
struct weft_tree_tier;

#define ID_NONE UINT32_MAX

enum {
    /* partitions that differ; real fabrics have up to 5 */
    TIERS_MAX = 32,
    /* pairs of items that share something: 2,048 units of 8 leaves give 60,000 */
    PAIRS_MAX = 1 << 23,
};
/* work on pairs in one build; a real fabric of 65,536 hosts needs 10 million */
#define PAIR_BUDGET UINT64_C(500000000)

/* ---- union-find whose representative is the smallest member ---- */

struct weft_union {
    uint32_t *parent;
    size_t count;
};

int weft_union_init(struct weft_union *u, size_t count) __attribute__((warn_unused_result));
void weft_union_done(struct weft_union *u);
WEFT_DEFINE_AUTO_VALUE(struct weft_union, weft_union_done)
uint32_t weft_union_find(struct weft_union *u, uint32_t id);
/* Returns whether they were apart. */
bool weft_union_join(struct weft_union *u, uint32_t a, uint32_t b);

/* ---- the glue operation ---- */

/* Counts what pairs of items share. */
struct weft_pairs {
    struct weft_idmap map; /* smaller id << 32 | larger id */
    uint64_t budget;       /* increments left */
};

void weft_pairs_init(struct weft_pairs *pairs, uint64_t budget);
void weft_pairs_done(struct weft_pairs *pairs);
WEFT_DEFINE_AUTO_VALUE(struct weft_pairs, weft_pairs_done)
int weft_pairs_add(struct weft_pairs *pairs, uint32_t a, uint32_t b, uint64_t amount)
    __attribute__((warn_unused_result));
/* Joins each pair whose amount is more than half of its smaller side. */
void weft_pairs_glue(const struct weft_pairs *pairs, const uint64_t *size, struct weft_union *u);

/* ---- the graph ---- */

struct weft_edge {
    uint32_t to;
    uint32_t count;  /* parallel links */
    uint64_t weight; /* their Gb/s */
};

/* Neighbours of i: edges[start[i], start[i + 1]), ascending by to. */
struct weft_adjacency {
    size_t *start;
    struct weft_edge *edges;
};

/* Hosts [0, node_count) are the placed cluster nodes by name, the others foreign. */
struct weft_graph {
    const struct weft_fabric *fabric;
    const struct weft_nic_inventory *inventory; /* may be NULL */
    size_t switch_count;                        /* as in the fabric */
    size_t host_count;
    size_t node_count;
    char **node_names; /* owned */
    char **unplaced;   /* owned, sorted */
    size_t unplaced_count;
    uint32_t *was_on;      /* node: a switch of its group before, or ID_NONE; NULL: not known */
    uint32_t *device_host; /* adapter of a host: its graph host; else ID_NONE */
    bool *excluded_switch;
    bool *excluded_device;         /* adapters that are no evidence */
    char **switch_names;           /* for people, unique */
    struct weft_adjacency peers;   /* switch to switch */
    struct weft_adjacency uplinks; /* host to switch */
    struct weft_adjacency hosts;   /* switch to host */
    struct weft_findings findings; /* about what is evidence */
};

int weft_graph_build(const struct weft_fabric *fabric, const struct weft_node *nodes,
                     size_t node_count, const struct weft_tree_options *options,
                     struct weft_graph **ret_graph, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_graph_free(struct weft_graph *graph);
WEFT_DEFINE_AUTO(struct weft_graph, weft_graph_free)
/* Fills in whose each adapter is, what is no evidence, and the hosts' numbers. Part of the above.
 */
int weft_graph_hosts(struct weft_graph *graph, const struct weft_node *nodes, size_t node_count,
                     bool keep_slow) __attribute__((warn_unused_result));
/* Excludes adapters of nodes (node_of: device to one of count nodes, or ID_NONE) that are not on
 * the compute network. Part of the above. */
int weft_graph_roles(struct weft_graph *graph, const uint32_t *node_of, size_t count,
                     bool keep_slow) __attribute__((warn_unused_result));
/* Which of the names (NULL: not to be used) each node is, or ID_NONE: by the whole name, then by
 * the part before the first dot if that is unique on both sides; upper and lower case are one. */
int weft_match_names(const char *const *names, size_t name_count, const struct weft_node *nodes,
                     size_t node_count, uint32_t *name_of) __attribute__((warn_unused_result));
/* Which fabric host each node is, likewise. Part of the above. */
int weft_graph_match(const struct weft_fabric *fabric, const struct weft_node *nodes,
                     size_t node_count, uint32_t *host_of) __attribute__((warn_unused_result));

/* ---- the partitions ---- */

/* Items are leaf groups, by their smallest switch, and nodes on no leaf: switch_count + node. */
struct weft_shape {
    const struct weft_graph *graph;
    bool *seed;         /* switch: leaf with a cluster host, not demoted */
    bool *demoted;      /* switch: holds a cluster host but joins what is apart below it */
    uint32_t *leaf;     /* switch: its leaf group (smallest switch), or ID_NONE */
    uint32_t *level;    /* switch: distance from the seeds, or ID_NONE */
    uint32_t *by_level; /* the switches that have a level, by level, then index */
    size_t reached;
    uint32_t level_count;
    uint32_t *home; /* node: item id in tier 0 */
    /* tiers that differ from the one below: node to representative item */
    uint32_t *tiers[TIERS_MAX];
    /* switch: its group in the tier that it forms, and which that is (ID_NONE: none) */
    uint32_t *joins_group;
    uint32_t *joins_tier;
    size_t tier_count;
    bool flat; /* all linked switches hold hosts: no levels to tell groups apart */
    /* node: only the last step joined it to the rest, and it was put one tier lower; NULL: nobody
     */
    bool *straggler;
};

/* Seeds, demotion guard, leaf groups, the nodes' homes. */
int weft_shape_leaves(struct weft_shape *shape) __attribute__((warn_unused_result));
/* Levels and upper tiers. */
int weft_shape_levels(struct weft_shape *shape) __attribute__((warn_unused_result));
int weft_shape_tiers(struct weft_shape *shape) __attribute__((warn_unused_result));
/* Drops the last tier if it joined next to nobody. */
int weft_shape_stragglers(struct weft_shape *shape) __attribute__((warn_unused_result));
/* All of them. */
int weft_shape_build(const struct weft_graph *graph, struct weft_shape **ret_shape,
                     struct weft_error *err) __attribute__((warn_unused_result));
void weft_shape_free(struct weft_shape *shape);
WEFT_DEFINE_AUTO(struct weft_shape, weft_shape_free)
/* Breadth-first distance over peers from the switches in from; level and by_level are filled. */
int weft_shape_distance(const struct weft_graph *graph, const bool *from, uint32_t *level,
                        uint32_t *by_level, size_t *ret_reached)
    __attribute__((warn_unused_result));
/* Glues the switches in seeds by the hosts they share. */
int weft_shape_glue_leaves(const struct weft_graph *graph, const bool *seeds, struct weft_union *u)
    __attribute__((warn_unused_result));

/* ---- the result ---- */

int weft_shape_emit(const struct weft_shape *shape, const struct weft_tree_options *options,
                    struct weft_tree **ret_tree, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Sorts a tier's groups by name and identity, and its groups' switches; renumbers the nodes. */
int weft_tree_sort_groups(struct weft_tree_tier *tier, size_t node_count)
    __attribute__((warn_unused_result));
/* Sets each group's parent from its nodes' chains. */
void weft_tree_link_parents(struct weft_tree *tree);
/* The part of the names that all have in common and that tells people what they are
 * ("A09-P1-IBLEAF-01"), or NULL. *ret_name is owned. 0 or -ENOMEM. */
int weft_common_name(char *const *names, size_t count, char **ret_name)
    __attribute__((warn_unused_result));

/* Sorts the findings and hands them to the tree. */
void weft_findings_give(struct weft_findings *findings, struct weft_tree *tree);
/* What the shape and the fabric show (finding-*.c); tree is the emitted tree, for group names. */
int weft_find_fabric(const struct weft_shape *shape, const struct weft_tree *tree,
                     struct weft_findings *findings) __attribute__((warn_unused_result));
int weft_find_rails(const struct weft_shape *shape, const struct weft_tree *tree,
                    struct weft_findings *findings) __attribute__((warn_unused_result));
int weft_find_joining(const struct weft_shape *shape, const struct weft_tree *tree,
                      struct weft_findings *findings) __attribute__((warn_unused_result));
int weft_find_spines(const struct weft_shape *shape, struct weft_findings *findings)
    __attribute__((warn_unused_result));

#endif
