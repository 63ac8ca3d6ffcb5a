/* SPDX-License-Identifier: Apache-2.0 */
/* From what the sources say to the tier tree. One path for the command line and the controller:
 * each source is a switch fabric or a list of node label levels, best source first. Pure. */
#ifndef WEFT_TREE_BUILD_H
#define WEFT_TREE_BUILD_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/base/error.h"

struct weft_declared;
struct weft_fabric;
struct weft_label_levels;
struct weft_node;
struct weft_tree;

/* What of a switch fabric is evidence, and its tiers' names. */
struct weft_tree_options {
    const char *const *tiers; /* closest first; NULL: leaf, spine, core; then "tier-N" */
    size_t tier_count;
    const char *const *exclude_hcas; /* fnmatch globs of adapters' names ("mlx5_4") */
    size_t exclude_hca_count;
    const char *const *exclude_switches; /* fnmatch globs of switches' names or GUIDs */
    size_t exclude_switch_count;
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

/* One ranked source: exactly one of fabric and levels is set. */
struct weft_tree_source {
    const struct weft_fabric *fabric;
    struct weft_tree_options options;
    const struct weft_label_levels *levels;
};

/* All that a tree is made from. */
struct weft_tree_input {
    const struct weft_tree_source *sources; /* best first */
    size_t source_count;
    const char *const *plan; /* names of the tiers, tier 1 first; NULL with one source: its own */
    size_t plan_count;
    const struct weft_node *nodes; /* NULL with fabrics only: every host with a usable name */
    size_t node_count;
};

/* The tree of all sources together. A tier of a node comes from the first source that knows it;
 * where groups of two sources cross, the better one's stays whole and a finding says so. A fabric
 * with more tiers than the plan has names for loses the farthest, with a finding. Errors as above,
 * and -EINVAL if a source has a tier that plan does not name or not in this order. */
int weft_tree_build(const struct weft_tree_input *input, struct weft_tree **ret_tree,
                    struct weft_error *err) __attribute__((warn_unused_result));

#endif
