/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the plan share: plan-target.c (what to stand back from), plan-state.c (who
 * lists what at each point), plan.c (the phases), plan-check.c (the replay). Not for others. */
#ifndef WEFT_HYPERNODE_PLAN_INTERNAL_H
#define WEFT_HYPERNODE_PLAN_INTERNAL_H

#include "pkg/tree/findings.h"
#include "pkg/hypernode/model-internal.h"
#include "pkg/hypernode/plan.h"

/* A node's or HyperNode's name; ids count through both. */
struct weft_pobj {
    const char *name; /* borrowed from the sets */
    bool is_node;
    const struct weft_hypernode *cur; /* as read; NULL: is not there */
    const struct weft_hypernode *tgt; /* as wanted; NULL: is not */
    bool ours;
    bool pinned;           /* a foreign object lists it: it is never deleted */
    bool odd;              /* what is written of it has members that are no exactMatch */
    bool exists;           /* now, after the steps so far */
    bool replaced;         /* to be dropped by its parent, deleted and created again */
    bool fixed;            /* cannot let go of what it should, nor be replaced */
    bool contested;        /* a dying object lists it too and cannot let go: survivors must */
    bool fresh;            /* created by this plan: what was read of it says nothing any more */
    bool as_target;        /* texts and odd members of what exists are as in tgt */
    int64_t tier;          /* of what exists, else of what shall */
    struct weft_ids start; /* members before the release phase; ascending, as all of these */
    struct weft_ids now;
    struct weft_ids want;
    size_t holders; /* existing objects that list it now */
    size_t owner;   /* the target that lists it, or WEFT_MODEL_NO_ID */
    size_t last_step;
};

struct weft_pwork {
    const struct weft_hypernode_set *current;
    const struct weft_hypernode_set *desired;
    const struct weft_plan_options *options;
    struct weft_plan *plan; /* steps and target go straight in */
    struct weft_findings findings;
    struct weft_map *hypernodes;
    struct weft_map *nodes;
    struct weft_pobj *objs;
    size_t count;
    size_t cap;
    struct weft_ids top_down;  /* ours that exist or are wanted: tier of what exists descending */
    struct weft_ids bottom_up; /* targets, tier ascending */
};

enum weft_standback_state {
    WEFT_STANDBACK_LIVE,
    WEFT_STANDBACK_FROZEN, /* stood back from, with all below: what exists of it stays */
    WEFT_STANDBACK_EMPTY   /* nothing of it is left */
};

/* The making of the target. */
struct weft_standback {
    struct weft_pwork *w;
    struct weft_hypernode_set *set; /* the target; items parallel to desired until the end */
    enum weft_standback_state *state;
    size_t *parent;            /* item that lists it, or WEFT_MODEL_NO_ID */
    struct weft_map *holder;   /* node → item that lists it */
    struct weft_map *listed;   /* names that foreign objects list as HyperNode members */
    struct weft_ids ascending; /* items, children first */
    struct weft_hypernode_set kept;
};

/* plan-target.c */
void weft_standback_drop(struct weft_hypernode *hn, enum weft_member_type type, const char *name);
void weft_standback_cut(struct weft_standback *s, size_t item);
/* Adds to the plan's held nodes, unsorted. */
int weft_plan_hold(struct weft_plan *plan, const char *node) __attribute__((warn_unused_result));
/* plan-keep.c: takes empty items out, and finds what of ours must stay unwanted (kept). */
int weft_standback_keep(struct weft_standback *s) __attribute__((warn_unused_result));

/* plan-target.c: checks desired, fills plan->target, plan->held_nodes and findings. */
int weft_pwork_target(struct weft_pwork *w, struct weft_error *err)
    __attribute__((warn_unused_result));

/* plan-state.c */
int weft_pwork_load(struct weft_pwork *w) __attribute__((warn_unused_result));
void weft_pwork_done(struct weft_pwork *w);
bool weft_pids_has(const struct weft_ids *ids, size_t id);
/* The object now has these members (taken over) and exists; holders follow. */
void weft_pwork_set(struct weft_pwork *w, size_t id, struct weft_ids *members);
void weft_pwork_unset(struct weft_pwork *w, size_t id);
/* Remembers now as start, or goes back to it. */
int weft_pwork_save(struct weft_pwork *w) __attribute__((warn_unused_result));
int weft_pwork_restore(struct weft_pwork *w) __attribute__((warn_unused_result));
/* Adds the step and carries it out on the state; members (taken over) for all but DELETE. */
int weft_pwork_emit(struct weft_pwork *w, enum weft_step_kind kind, size_t id,
                    struct weft_ids *members) __attribute__((warn_unused_result));

/* plan-release.c: phase 2, simulated first (which objects must be replaced), then for real. */
int weft_pwork_release(struct weft_pwork *w, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
