/* SPDX-License-Identifier: Apache-2.0 */
/* The ordered writes that lead from the HyperNodes that exist to those that should, such that after
 * every single write Volcano's scheduler neither stops nor crashes (docs/hypernodes.md):
 *   1. CREATE of objects that are missing although a living object lists them (deleted by hand)
 *   2. RELEASE, tiers descending: a still-wanted object without each member that will be deleted or
 *      claimed elsewhere (the same write takes in what it may already have)
 *   3. DELETE of what no living object lists, tiers descending
 *   4. CREATE and CLAIM, tiers ascending: new objects, final members; and a CLAIM that changes
 *      nothing but the order of members for each torn object (hypernode.h) that no other step
 * writes A still-wanted object that would become empty in 2, even with the Nodes on it that go
 * nowhere (or whose tier changes), is dropped by its parent, deleted in 3 and created again in 4.
 * Objects of others are read, never written; what they list is never deleted. Unchanged objects get
 * no step. Pure. */
#ifndef WEFT_HYPERNODE_PLAN_H
#define WEFT_HYPERNODE_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/hypernode/hypernode.h"

struct weft_finding;

enum weft_step_kind {
    WEFT_STEP_RELEASE, /* update */
    WEFT_STEP_DELETE,
    WEFT_STEP_CREATE,
    WEFT_STEP_CLAIM, /* update */
    WEFT_STEP_COUNT
};

/* "no earlier step wrote this object" */
#define WEFT_STEP_NONE SIZE_MAX

struct weft_step {
    enum weft_step_kind kind;
    /* RELEASE, CREATE, CLAIM: the object to write, whole. DELETE: the object as it is then.
     * Preconditions: uid as read at planning time ("" for CREATE), and resource_version likewise;
     * where previous is set, resource_version is "" and is that of the answer to that step. */
    struct weft_hypernode object;
    bool touch; /* CLAIM with the members that are there: they must only come in another order */
    size_t previous; /* index of the last step before this one on the same name, or STEP_NONE */
};

struct weft_plan {
    struct weft_step *steps;
    size_t step_count;
    /* what stands once all steps are done: desired, less what was stood back from, plus objects of
     * ours that must stay because a foreign one lists them. Names and members only matter. */
    struct weft_hypernode_set target;
    /* nodes of desired that get no place (a foreign object has them, their group's name is taken,
     * or who has them cannot let go): they get no labels. Sorted. */
    char **held_nodes;
    size_t held_node_count;
    /* "foreign-child", "foreign-node", "foreign-parent", "foreign-tier", "name-taken", "kept",
     * "undeletable", "held-back", "terminating"; sorted by kind, subject, detail */
    struct weft_finding *findings;
    size_t finding_count;
    size_t step_cap;
    size_t held_node_cap;
};

struct weft_plan_options {
    const char *instance; /* which objects are ours (weft_hypernode_is_ours) */
    /* The server's CRD drops spec.tierName (before v1.14): its lack alone is no change. */
    bool ignore_tier_name;
    /* Replays the plan on the model of Volcano's cache (model.h) and refuses it if any prefix makes
     * something worse than it is now. Costs about what building costs. */
    bool check;
};

/* current: every HyperNode that exists, ours and foreign. desired: ours only, a strict forest with
 * rising tiers (weft_layout_build). Errors: -EINVAL for a desired set that is no such forest,
 * -EPROTO if check finds a step that must not be taken (a defect of ours: the message names step
 * and outcome; nothing may be written), -ENOMEM, -EFBIG. On failure *ret_plan is untouched. The
 * caller owns *ret_plan. Any thread. */
int weft_plan_build(const struct weft_hypernode_set *current,
                    const struct weft_hypernode_set *desired,
                    const struct weft_plan_options *options, struct weft_plan *ret_plan,
                    struct weft_error *err) __attribute__((warn_unused_result));
void weft_plan_done(struct weft_plan *plan);
WEFT_DEFINE_AUTO_VALUE(struct weft_plan, weft_plan_done)

/* The check alone: replays steps on current. 0, -EPROTO with step and outcome, -ENOMEM. */
int weft_plan_check(const struct weft_hypernode_set *current, const struct weft_plan *plan,
                    struct weft_error *err) __attribute__((warn_unused_result));

/* May step i be under way before those just before it are confirmed? So it is for CREATEs of one
 * tier in a row: none of them lists another, and what is there after all of them is sound. So is
 * what is there after any of them, as only more objects can clash more. false for the first step,
 * and where there is none. */
bool weft_plan_overlaps(const struct weft_plan *plan, size_t i);

/* "release", "delete", "create", "claim"; static. */
const char *weft_step_kind_name(enum weft_step_kind kind);
/* Is the node among held_nodes? */
bool weft_plan_holds(const struct weft_plan *plan, const char *node);
/* A hash over the steps (kinds, names, members), for `weftctl accept`; 0 steps give 0. */
uint64_t weft_plan_hash(const struct weft_plan *plan);

#endif
