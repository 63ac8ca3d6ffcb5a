/* SPDX-License-Identifier: Apache-2.0 */
/* From a tier tree to the HyperNodes that should exist and to the tier labels of every node
 * (docs/hypernodes.md). The result is a strict forest of even depth: every placed node is in
 * exactly one HyperNode of each tier 1..N of the plan. Pure: no I/O, no clock, no globals; the
 * same input gives the same output, byte for byte. */
#ifndef WEFT_HYPERNODE_LAYOUT_H
#define WEFT_HYPERNODE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/hypernode/hypernode.h"

struct weft_finding;
struct weft_tree;

enum {
    WEFT_LAYOUT_TIERS_MAX = 16,
    WEFT_LAYOUT_TIER_NAME_MAX = 32, /* leaves 16 characters for the slug in a name of 63 */
    WEFT_LAYOUT_SINGLETONS_MAX = 16,
    WEFT_HYPERNODE_NAME_MAX = 63, /* parents name it by exactMatch (volcano.md 1.4) */
    /* most bytes of one object: etcd takes 1.5 MiB, metadata and the second copy of a status
     * included */
    WEFT_HYPERNODE_BYTES_MAX = 1200000,
    /* a group's identity holds at most its smallest so many switch GUIDs: still a fair sample for
     * "more than half are shared", and an annotation stays under 9 KiB */
    WEFT_LAYOUT_GUIDS_MAX = 512
};

/* A level that a node's chain lacks. INHERIT: a copy of the nearest known level below it, or where
 * nothing below is known of the nearest one above. SINGLETON: below the chain's first known level
 * each node stands alone (exact, but one object a node: with more than WEFT_LAYOUT_SINGLETONS_MAX
 * such nodes INHERIT is used for all, with a finding "pad-limit"). */
enum weft_layout_pad { WEFT_LAYOUT_PAD_INHERIT, WEFT_LAYOUT_PAD_SINGLETON, WEFT_LAYOUT_PAD_COUNT };
/* A node that no source knows. OMIT: in no HyperNode, no labels. SINGLETON: alone on every tier,
 * for at most WEFT_LAYOUT_SINGLETONS_MAX nodes, else as OMIT with a finding "unplaced-limit". One
 * finding "unplaced" a node either way. */
enum weft_layout_unplaced {
    WEFT_LAYOUT_UNPLACED_OMIT,
    WEFT_LAYOUT_UNPLACED_SINGLETON,
    WEFT_LAYOUT_UNPLACED_COUNT
};

struct weft_layout_options {
    const char *const *tiers; /* the plan's tier names; tier number = index + 1 */
    size_t tier_count;        /* 1..WEFT_LAYOUT_TIERS_MAX */
    enum weft_layout_pad pad;
    enum weft_layout_unplaced unplaced;
    const char *instance; /* app.kubernetes.io/instance of every object */
    /* HyperNodes that exist now (others' too; only ours count), or NULL: a group keeps the name of
     * its object. */
    const struct weft_hypernode_set *existing;
};

struct weft_layout {
    struct weft_hypernode_set desired;
    char **tier_names; /* the plan's */
    size_t tier_count;
    char **nodes; /* nodes that get labels, sorted (strcmp), unique */
    size_t node_count;
    size_t *place;                 /* [node * tier_count + tier index]: index in desired.items */
    struct weft_finding *findings; /* sorted by kind, subject, detail */
    size_t finding_count;
};

/* Errors: -EINVAL for a plan or tree that breaks its rules (a tier name of the tree that the plan
 * does not have, two nodes of one group with different groups above), -EFBIG for a group that does
 * not fit one object (the message names it), -ENOMEM. On failure *ret_layout is untouched. The
 * caller owns *ret_layout (weft_layout_done). Any thread. */
int weft_layout_build(const struct weft_tree *tree, const struct weft_layout_options *options,
                      struct weft_layout *ret_layout, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_layout_done(struct weft_layout *layout);
WEFT_DEFINE_AUTO_VALUE(struct weft_layout, weft_layout_done)

/* The value of the node's label for tier 1..tier_count: the HyperNode's name, borrowed. */
const char *weft_layout_label(const struct weft_layout *layout, size_t node, size_t tier);
/* true and *ret_node (index; may be NULL) if the node has labels. */
bool weft_layout_find(const struct weft_layout *layout, const char *node, size_t *ret_node);

/* What a name's slug is made of: lower-case letters and digits of text, every run of anything else
 * one '-', none at the ends, cut to max characters. Owned; "" if nothing is left; NULL without
 * memory. */
char *weft_layout_slug(const char *text, size_t max) __attribute__((warn_unused_result));

#endif
