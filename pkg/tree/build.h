/* SPDX-License-Identifier: Apache-2.0 */
/* From what the sources say to the tier tree. One path for the command line and the controller:
 * each source is a switch fabric or a list of node label levels, best source first. Pure. */
#ifndef WEFT_TREE_BUILD_H
#define WEFT_TREE_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"

struct weft_cabling;
struct weft_declared;
struct weft_fabric;
struct weft_nic_inventory;
struct weft_label_levels;
struct weft_node;
struct weft_tree;

enum { WEFT_TREE_SOURCES_MAX = 16 };

/* A node and a switch of the leaf group that it was in. */
struct weft_tree_home {
    const char *node;
    uint64_t switch_guid;
};

/* What of a source is evidence, and its tiers' names. Of declared groups the inventory only. */
struct weft_tree_options {
    const char *const *tiers; /* closest first; NULL: leaf, spine, core; then "tier-N" */
    size_t tier_count;
    const char *const *exclude_hcas; /* fnmatch globs of adapters' names ("mlx5_4") */
    size_t exclude_hca_count;
    const char *const *exclude_switches; /* fnmatch globs of switches' names or GUIDs */
    size_t exclude_switch_count;
    /* whose adapters are and what for, and what a declared source calls nodes; NULL: by names only
     */
    const struct weft_nic_inventory *inventory;
    /* an adapter that on most nodes is slower than half of another one of its node is evidence too;
     * else it is taken for a storage or management adapter */
    bool keep_slow_hcas;
    /* where nodes were before, by node name (strcmp), each once: a node with as many links to one
     * leaf group as to another stays. May be NULL */
    const struct weft_tree_home *homes;
    size_t home_count;
};

/* The tree of a switch fabric. nodes NULL: every host with a usable name is a node. options may be
 * NULL. A node that the fabric does not know is in unplaced; no placed node at all is not an error.
 * The caller owns *ret_tree (weft_tree_free). Errors: -EINVAL for doubled node names, -EFBIG for a
 * graph over the caps, -ENOMEM. */
int weft_tree_from_fabric(const struct weft_fabric *fabric, const struct weft_node *nodes,
                          size_t node_count, const struct weft_tree_options *options,
                          struct weft_tree **ret_tree, struct weft_error *err)
    __attribute__((warn_unused_result));

/* The tree of declared groups: one tier a level, also if no node has it. A node without a level has
 * no group in that tier and keeps the others. Errors: -ENOMEM. */
int weft_tree_from_declared(const struct weft_declared *declared, struct weft_tree **ret_tree,
                            struct weft_error *err) __attribute__((warn_unused_result));

/* One ranked source: exactly one of fabric, levels (read off the nodes' labels) and declared (what
 * something else says, such as a plan file) is set. */
struct weft_tree_source {
    const struct weft_fabric *fabric;
    struct weft_tree_options options;
    const struct weft_label_levels *levels;
    const struct weft_declared *declared;
    /* the cables that should be, from which its fabric was made: what other sources' fabrics show
     * otherwise becomes findings. May be NULL */
    const struct weft_cabling *expected;
};

/* An NVLink domain whose nodes are in several groups of the tier above: all go under the group with
 * most of them; the domain is cut along the groups; or the domain hangs under the lowest group that
 * has all of it, and is in none of the tiers between. */
enum weft_tree_cross {
    WEFT_CROSS_DOMAIN_WINS,
    WEFT_CROSS_SPLIT,
    WEFT_CROSS_LIFT,
    WEFT_CROSS_COUNT
};

/* All that a tree is made from. */
struct weft_tree_input {
    const struct weft_tree_source *sources; /* best first */
    size_t source_count;
    const char *const *plan; /* names of the tiers, tier 1 first; NULL with one source: its own */
    size_t plan_count;
    const struct weft_node *nodes; /* NULL with fabrics only: every host with a usable name */
    size_t node_count;
    enum weft_tree_cross on_cross;
    const char *domain; /* name of the tier of NVLink domains; NULL: "nvlink" */
};

/* The tree of all sources together (docs/tree.md). A tier of a node comes from the first source
 * that knows it; where groups of two sources cross, the better one's stays whole, NVLink domains go
 * by on_cross, and a finding says so. A fabric with more tiers than the plan has names for loses
 * the farthest, with a finding. Errors as above, and -EINVAL if a source has a tier that plan does
 * not name or not in this order. */
int weft_tree_build(const struct weft_tree_input *input, struct weft_tree **ret_tree,
                    struct weft_error *err) __attribute__((warn_unused_result));

#endif
