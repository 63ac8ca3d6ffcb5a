/* SPDX-License-Identifier: Apache-2.0 */
/* Carries a plan out against an API server: each write is confirmed before the next that relies on
 * it, which leaves only creates of one tier to be under way together (weft_plan_overlaps), and each
 * has preconditions, so that whatever happens in between (another writer, a lost answer, a
 * crash) the server holds a state that the plan's check has seen, less some creates of one tier. It
 * retries nothing by itself: when a step does not go through it starts no further one, says why,
 * and the caller looks at the world again and makes a new plan. Loop thread only. */
#ifndef WEFT_APPLY_APPLY_H
#define WEFT_APPLY_APPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_apply;
struct weft_hypernode;
struct weft_hypernode_set;
struct weft_kube_call;
struct weft_kube_client;
struct weft_kube_op;
struct weft_plan;

/* Of one write, on both sides: with the fence of the Lease (6 s) it ends before the Lease does
 * (15 s). */
#define WEFT_APPLY_TIMEOUT_NS (INT64_C(4) * 1000000000)

/* Writes under way at most. A first plan of 100,000 Nodes has 3,000 creates, at 5 ms each; more
 * than a few at a time only wait in the server. */
enum { WEFT_APPLY_FLIGHTS = 8 };

enum weft_apply_outcome {
    WEFT_APPLY_DONE,    /* every step is confirmed */
    WEFT_APPLY_STALE,   /* the world is not what the plan was made from: plan again at once */
    WEFT_APPLY_UNKNOWN, /* an answer was lost and could not be read back: list before planning */
    WEFT_APPLY_RETRY,   /* the server could not: plan again after a wait */
    WEFT_APPLY_REFUSED, /* the server would not (403, 422…): plan again after a long wait */
    WEFT_APPLY_MISSING, /* the server does not know HyperNodes */
    WEFT_APPLY_STOPPED, /* may_write said no, or weft_apply_stop */
    WEFT_APPLY_OUTCOME_COUNT
};

struct weft_apply_result {
    enum weft_apply_outcome outcome;
    size_t confirmed;        /* steps done; not always the first ones */
    size_t step;             /* the step that did not go through; valid unless DONE */
    const char *name;        /* of its object, borrowed; "" if none */
    struct weft_error error; /* code 0 for DONE, STALE by our own check, STOPPED */
    int64_t retry_after_ns;  /* as the server asked */
};

/* What stands around it. All but write_sent are required. */
struct weft_apply_env {
    /* As weft_kube_submit and weft_kube_call_cancel, whose client is client. */
    int (*submit)(struct weft_kube_client *client, const struct weft_kube_op *op,
                  struct weft_kube_call **ret_call, struct weft_error *err);
    void (*cancel)(struct weft_kube_call *call);
    struct weft_kube_client *client;
    /* May a write start now? Asked before each. */
    bool (*may_write)(void *data);
    /* All HyperNodes as far as known now, others' too. */
    const struct weft_hypernode_set *(*view)(void *data);
    /* A confirmed state of an object: put it into the view. */
    void (*on_object)(void *data, const struct weft_hypernode *hn);
    /* The object of that name is gone; uid "" if unknown. */
    void (*on_gone)(void *data, const char *name, const char *uid);
    /* Once at the end; may free the apply. May come from inside weft_apply_start. */
    void (*on_done)(void *data, const struct weft_apply_result *result);
    void *data;
};

/* prefix: label/annotation prefix, copied. plan is borrowed and must outlive it. -ENOMEM. */
int weft_apply_new(const struct weft_plan *plan, const char *prefix,
                   const struct weft_apply_env *env, struct weft_apply **ret_apply,
                   struct weft_error *err) __attribute__((warn_unused_result));
/* Ends without on_done; writes under way may or may not be done. NULL is fine; also from
 * on_done. */
void weft_apply_free(struct weft_apply *apply);
WEFT_DEFINE_AUTO(struct weft_apply, weft_apply_free)

void weft_apply_start(struct weft_apply *apply);
/* No further write starts; on_done follows after the answers that are awaited. */
void weft_apply_stop(struct weft_apply *apply);
/* Is hn what a write under way makes? A watch may show it before the answer does. */
bool weft_apply_expects(const struct weft_apply *apply, const struct weft_hypernode *hn);

/* Is a delete of that object under way? */
bool weft_apply_expects_gone(const struct weft_apply *apply, const char *name);

/* "done", "stale", …; static. */
const char *weft_apply_outcome_name(enum weft_apply_outcome outcome);

#endif
