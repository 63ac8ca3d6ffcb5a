/* SPDX-License-Identifier: Apache-2.0 */
/* One pass of thought, from what is known to what must be written: Nodes and sources to a tree, to
 * the wanted HyperNodes, through the brakes, to a checked plan and the labels of every Node. The
 * controller, --dry-run and --output share it. Pure: no I/O, no clock. */
#ifndef WEFT_CONTROLLER_DECIDE_H
#define WEFT_CONTROLLER_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/keep.h"
#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/fabric/node.h"
#include "pkg/hypernode/layout.h"
#include "pkg/hypernode/plan.h"

struct weft_config;
struct weft_nic_inventory;
struct weft_source_result;
struct weft_forest;
struct weft_tree;

/* Who we are: label prefix ("weft.dev/") and the instance our objects carry. */
struct weft_names_of_ours {
    const char *prefix;
    const char *instance;
};

/* What a Node is besides its labels. */
struct weft_decide_memory {
    bool fresh;    /* see weft_keep_node */
    size_t source; /* in: the source that last placed it, or WEFT_KEEP_NO_SOURCE; out: now */
    bool placed;   /* out: a source places it */
};

struct weft_decide_input {
    const struct weft_config *config;
    const struct weft_names_of_ours *ours;
    /* per source of config: what it gave, NULL for labels */
    const struct weft_source_result *const *results;
    const uint64_t *looks;         /* per source: complete looks so far; NULL: each pass is one */
    const char *epoch;             /* of the cabling (keep.h), or NULL */
    const struct weft_node *nodes; /* all that exist, by name in any order */
    struct weft_decide_memory *memory; /* per node */
    size_t node_count;
    /* Nodes by cloud instance, for sources that name those; NULL: not known */
    const struct weft_nic_inventory *instances;
    bool any_host; /* no Nodes are known: every host that the sources name is one */
    const struct weft_hypernode_set *live; /* all HyperNodes that exist */
    /* where Nodes have been so far, if live cannot tell (labelled.h); NULL: live */
    const struct weft_hypernode_set *places;
    bool lost; /* places holds objects of ours that somebody deleted, and live does not */
    bool prunes_tier_name; /* the server's CRD does not know spec.tierName */
    struct weft_keep *keep;
    const struct weft_acceptance *accepted;
    size_t accepted_count;
    /* per node: does a gang run there, as far as is known; NULL: on none */
    const enum weft_keep_gang *gangs;
    int64_t now; /* monotonic, ns */
};

struct weft_decision {
    struct weft_tree *tree;
    struct weft_layout layout;
    struct weft_keep_result keep;
    struct weft_plan plan;
    struct weft_forest *places; /* of keep.set; labels are read from it */
    size_t selected;            /* Nodes that take part */
    size_t excluded;
};

void weft_decision_done(struct weft_decision *decision);
WEFT_DEFINE_AUTO_VALUE(struct weft_decision, weft_decision_done)

/* The caller owns *ret_decision. Errors: those of the sources' tree, the layout and the plan. */
int weft_decide(const struct weft_decide_input *input, struct weft_decision *ret_decision,
                struct weft_error *err) __attribute__((warn_unused_result));

/* The decision to take all of ours away, whatever any source says: no HyperNode, no label. tree is
 * NULL. Errors: those of the plan. */
int weft_decide_nothing(const struct weft_names_of_ours *ours,
                        const struct weft_hypernode_set *live, struct weft_decision *ret_decision,
                        struct weft_error *err) __attribute__((warn_unused_result));

/* The values of the Node's tier labels, tier 1 first, borrowed; 0: it gets none. */
size_t weft_decision_labels(const struct weft_decision *decision, const char *node,
                            const char *ret_values[WEFT_LAYOUT_TIERS_MAX]);

/* Does the Node carry the label <prefix>exclude (with any value but "false")? */
bool weft_node_excluded(const struct weft_node *node, const char *prefix);

#endif
