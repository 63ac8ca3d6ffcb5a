/* SPDX-License-Identifier: Apache-2.0 */
/* An executable model of what Volcano's scheduler keeps of HyperNodes (volcano-sh/volcano
 * pkg/scheduler/api/hyper_node_info.go, framework/session.go and the network-topology-aware plugin,
 * at ed72c7c81; its behaviour was confirmed by runs, see docs/hypernodes.md). It takes the same
 * add, update and delete events one by one and says what a scheduling session would make of the
 * state after each. Where the scheduler's choice is random (map order), the model takes the
 * smallest name. Pure. */
#ifndef WEFT_HYPERNODE_MODEL_H
#define WEFT_HYPERNODE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/hypernode/hypernode.h"

struct weft_model;

/* Worst last. */
enum weft_model_outcome {
    WEFT_MODEL_OK,
    WEFT_MODEL_LOOSE,     /* the event took the highest tier away: hard jobs at it are unbound */
    WEFT_MODEL_DOUBLE,    /* a node is in two HyperNodes of one tier: a random one counts */
    WEFT_MODEL_TIER,      /* tier 0, or a parent whose tier is not above its child's */
    WEFT_MODEL_ORPHAN,    /* a parent lists a child that hangs elsewhere: its nodes are hidden */
    WEFT_MODEL_NOT_READY, /* every job with a topology waits, without a word */
    WEFT_MODEL_PANIC,     /* the next session with a pending topology job ends the scheduler */
    WEFT_MODEL_REFUSED,   /* the API server would not take the object; the state is unchanged */
    WEFT_MODEL_OUTCOME_COUNT
};

/* Bits of what is wrong with one HyperNode. */
enum weft_model_flag {
    WEFT_MODEL_FLAG_DANGLING = 1, /* a linked child is gone from the cache */
    WEFT_MODEL_FLAG_UNLINKED = 2, /* lists a child that is not linked to it */
    WEFT_MODEL_FLAG_TIER = 4,     /* tier 0, or not above a child's */
    WEFT_MODEL_FLAG_DOUBLE = 8    /* shares a node with another of its tier */
};

enum weft_model_job {
    WEFT_MODEL_JOB_NONE,     /* nothing pends */
    WEFT_MODEL_JOB_PLAIN,    /* a job without topology pends */
    WEFT_MODEL_JOB_TOPOLOGY, /* a job with any networkTopology pends */
    WEFT_MODEL_JOB_COUNT
};

/* with_nodes: also keep each HyperNode's set of real nodes (dear on big clusters). NULL without
 * memory. */
struct weft_model *weft_model_new(bool with_nodes) __attribute__((warn_unused_result));
void weft_model_free(struct weft_model *model);
WEFT_DEFINE_AUTO(struct weft_model, weft_model_free)

/* Each event returns the outcome of the state after it, a session with a pending topology job
 * assumed (so a dangling child counts as PANIC at once), or -ENOMEM. */

/* Added or updated: one event in the scheduler too. */
int weft_model_apply(struct weft_model *model, const struct weft_hypernode *hn)
    __attribute__((warn_unused_result));
/* An update that changes only the order of the members: rebuilds what an apply of an equal object
 * would skip. */
int weft_model_touch(struct weft_model *model, const char *name)
    __attribute__((warn_unused_result));
int weft_model_delete(struct weft_model *model, const char *name)
    __attribute__((warn_unused_result));
/* A scheduler that starts now: forgets all and adds every object, tiers ascending. */
int weft_model_restart(struct weft_model *model) __attribute__((warn_unused_result));
/* The state of a running scheduler that saw all of set come, tiers ascending. A child that is
 * listed but not in set counts as deleted under its parent (the worst case). */
int weft_model_load(struct weft_model *model, const struct weft_hypernode_set *set)
    __attribute__((warn_unused_result));

/* What a session would do now: OK or LOOSE..ORPHAN if it runs, NOT_READY if topology jobs are
 * skipped, PANIC if it dies. */
enum weft_model_outcome weft_model_session(const struct weft_model *model,
                                           enum weft_model_job pending);
/* One sentence about the worst thing found in the state now; "" if all is well. Valid until the
 * next call on model. */
const char *weft_model_text(struct weft_model *model);
/* "ok", "not ready", …; static. */
const char *weft_model_outcome_name(enum weft_model_outcome outcome);

bool weft_model_ready(const struct weft_model *model);
/* Is the name in the cache: 0 no, 1 as a placeholder for a child not seen yet, 2 as an object. */
int weft_model_has(const struct weft_model *model, const char *name);
/* The linked parent's name, "" for a root or an unknown name; borrowed. */
const char *weft_model_parent(const struct weft_model *model, const char *name);
/* Is child among parent's linked children? */
bool weft_model_links(const struct weft_model *model, const char *parent, const char *child);
/* WEFT_MODEL_FLAG_* of the HyperNode. */
unsigned weft_model_flags(const struct weft_model *model, const char *name);
/* Does the HyperNode's set of real nodes hold the node? Needs with_nodes. */
bool weft_model_has_node(const struct weft_model *model, const char *name, const char *node);
size_t weft_model_node_count(const struct weft_model *model, const char *name);
/* The virtual root's tier: highest in the tier index + 1; 1 without any HyperNode. */
int64_t weft_model_root_tier(const struct weft_model *model);
/* Is the name in the index of its tier? (A placeholder is not, nor a tier-0 object that came after
 * its parent.) */
bool weft_model_indexed(const struct weft_model *model, const char *name);
/* The HyperNode that node scores come from: looked for in the lowest tier of the index only; "" if
 * none there lists it (mixed depth). Needs with_nodes. */
const char *weft_model_lowest(const struct weft_model *model, const char *node);

#endif
