/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the layout share: layout.c (options, result), layout-groups.c (chains and
 * padding), layout-names.c (identity and names). Not for others. */
#ifndef WEFT_HYPERNODE_LAYOUT_INTERNAL_H
#define WEFT_HYPERNODE_LAYOUT_INTERNAL_H

#include "pkg/base/str.h"
#include "pkg/tree/findings.h"
#include "pkg/hypernode/layout.h"

/* A HyperNode to be: a group of the tree, a copy of one on another tier, or one node alone. */
struct weft_lgroup {
    size_t tier;                        /* plan index */
    size_t source;                      /* plan index of the level it shows; tier unless a copy */
    const struct weft_tree_group *from; /* NULL: a node alone */
    const char *node;                   /* the node alone; borrowed */
    char *identity;                     /* what its name's hash is made of */
    char *annotation;                   /* what is written down: all switch GUIDs */
    char *name;                         /* of its object */
    size_t parent;                      /* group, or WEFT_TREE_NONE at the top */
    size_t members;
    size_t bytes; /* of the members, as JSON */
};

/* A node that gets a place. */
struct weft_lnode {
    const char *name;
    size_t tree_node; /* or WEFT_TREE_NONE: unplaced, alone on every tier */
};

struct weft_lwork {
    const struct weft_tree *tree;
    const struct weft_layout_options *options;
    size_t tiers;                           /* of the plan */
    size_t level_of[WEFT_LAYOUT_TIERS_MAX]; /* plan index → tree tier, or WEFT_TREE_NONE */
    size_t *copies[WEFT_LAYOUT_TIERS_MAX][WEFT_LAYOUT_TIERS_MAX]; /* [tier][source]: tree group →
                                                                     group + 1 */
    bool pad_single;
    struct weft_lnode *nodes;
    size_t node_count;
    size_t *chain; /* [node * tiers + tier]: group */
    struct weft_lgroup *groups;
    size_t group_count;
    size_t group_cap;
    struct weft_findings findings;
};

/* Decides which nodes take part (nodes, findings). */
int weft_lwork_pick_nodes(struct weft_lwork *w, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Fills chain and groups; checks that they are a strict forest. */
int weft_lwork_build_groups(struct weft_lwork *w, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Gives every group identity, annotation and name. */
int weft_lwork_name_groups(struct weft_lwork *w, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Gives names of existing objects to groups by identity (names[group] = existing index + 1). */
int weft_lwork_match(const struct weft_lwork *w, size_t *names) __attribute__((warn_unused_result));
/* What stands before the GUIDs ("switch:", "copy-of-leaf:switch:") and the list of them; false if
 * the identity is no set of switches. Views. */
bool weft_layout_split_guids(const char *identity, struct weft_str *ret_class,
                             struct weft_str *ret_guids);

#endif
