/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of pkg/apply share: apply.c says which steps are under way and when it ends,
 * request.c makes a step's request, answer.c says what the answer means. */
#ifndef WEFT_APPLY_APPLY_INTERNAL_H
#define WEFT_APPLY_APPLY_INTERNAL_H

#include "pkg/apply/apply.h"
#include "pkg/hypernode/plan.h"
#include "pkg/kube/client.h"

enum { WEFT_APPLY_MAGIC = 0x77617070 };

/* What the server said an object is after a step, for later steps on the same object. */
struct weft_apply_identity {
    char *uid;
    char *resource_version;
};

/* A step under way. */
struct weft_flight {
    struct weft_apply *apply;
    bool used;
    size_t step;
    struct weft_kube_call *call;
    unsigned conflicts;
    bool fresh_version; /* answers[step] holds a newer version to write against */
    /* while an object is read back: what made that necessary */
    struct weft_apply_result why;
};

struct weft_apply {
    unsigned magic;
    const struct weft_plan *plan;
    struct weft_apply_env env;
    char *prefix;
    struct weft_apply_identity *answers; /* per step */
    size_t next;                         /* the step to start next */
    size_t confirmed;
    struct weft_flight flights[WEFT_APPLY_FLIGHTS];
    size_t flying;
    bool stopping;
    struct weft_apply_result end; /* DONE until something ends it early */
};

static inline const struct weft_step *weft_flight_step(const struct weft_flight *f)
{
    return &f->apply->plan->steps[f->step];
}

/* ---- apply.c: how a flight goes on; nothing touches it or its apply afterwards ---- */

void weft_flight_done(struct weft_flight *f);
void weft_flight_failed(struct weft_flight *f, const struct weft_apply_result *result);
/* The same step once more, against fresh_version. */
void weft_flight_again(struct weft_flight *f);

/* ---- request.c ---- */

/* Starts the write of the flight's step; weft_answer_written comes. -EINVAL: it must not be
 * written. */
int weft_flight_send(struct weft_flight *f, struct weft_error *err);
/* uid and resourceVersion to write against: of the object the plan was made from, or of the answer
 * to the plan's own earlier step on it. */
void weft_flight_preconditions(const struct weft_flight *f, const char **ret_uid,
                               const char **ret_version);
/* Starts to read the object of the flight's step; weft_answer_read comes. */
int weft_flight_read(struct weft_flight *f, struct weft_error *err);

/* ---- answer.c; data is the flight ---- */

void weft_answer_written(void *data, const struct weft_kube_result *result);
void weft_answer_read(void *data, const struct weft_kube_result *result);
/* Is the object as the step would have made it? tierName apart, which an older CRD drops. */
bool weft_answer_as_wanted(const struct weft_step *step, const struct weft_hypernode *hn);

#endif
