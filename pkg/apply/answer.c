/* SPDX-License-Identifier: Apache-2.0 */
/* What the answer to a step's request means for it. */
#include <string.h>

#include "pkg/apply/apply-internal.h"
#include "pkg/hypernode/hypernode.h"
#include "pkg/json/json.h"

enum { CONFLICTS_MAX = 3 };

bool weft_answer_as_wanted(const struct weft_step *step, const struct weft_hypernode *hn)
{
    if (step->kind == WEFT_STEP_DELETE || hn->terminating) {
        return false;
    }
    struct weft_hypernode wanted = step->object;
    char nothing[] = "";
    if (hn->tier_name[0] == '\0') {
        wanted.tier_name = nothing;
    }
    return weft_hypernode_same(&wanted, hn);
}

/* Keeps what later steps need of a confirmed object and hands it to the view. */
static int take_object(struct weft_flight *f, const struct weft_json *body,
                       struct weft_hypernode *ret_hn, struct weft_error *err)
{
    struct weft_apply *apply = f->apply;
    weft_auto(weft_hypernode_done) struct weft_hypernode hn = {0};
    int rc = weft_hypernode_from_json(body, apply->prefix, &hn, err);
    if (rc < 0) {
        return weft_err_wrap(err, rc, "answer for HyperNode %s", weft_flight_step(f)->object.name);
    }
    struct weft_apply_identity *answer = &apply->answers[f->step];
    weft_free(answer->uid);
    weft_free(answer->resource_version);
    answer->uid = weft_strdup(hn.uid);
    answer->resource_version = weft_strdup(hn.resource_version);
    if (answer->uid == NULL || answer->resource_version == NULL) {
        return weft_err_nomem(err);
    }
    apply->env.on_object(apply->env.data, &hn);
    *ret_hn = hn;
    hn = (struct weft_hypernode){0};
    return 0;
}

static void step_failed_with(struct weft_flight *f, enum weft_apply_outcome outcome,
                             const struct weft_error *err)
{
    weft_flight_failed(f, &(struct weft_apply_result){.outcome = outcome, .error = *err});
}

/* Reads the step's object; weft_answer_read then ends with why, or goes on if the step turns out
 * done. */
static void read_back(struct weft_flight *f, enum weft_apply_outcome outcome,
                      const struct weft_kube_result *result)
{
    f->why = (struct weft_apply_result){
        .outcome = outcome, .error = result->error, .retry_after_ns = result->retry_after_ns};
    struct weft_error err = {0};
    if (weft_flight_read(f, &err) < 0) {
        step_failed_with(f, WEFT_APPLY_UNKNOWN, &err);
    }
}

static void failed_answer(struct weft_flight *f, enum weft_apply_outcome outcome,
                          const struct weft_kube_result *result)
{
    const struct weft_apply_result r = {
        .outcome = outcome, .error = result->error, .retry_after_ns = result->retry_after_ns};
    weft_flight_failed(f, &r);
}

/* A delete is confirmed by the object being gone; with a finalizer of somebody it goes later. */
static void deleted(struct weft_flight *f, const struct weft_json *body)
{
    const struct weft_step *step = weft_flight_step(f);
    const char *kind = weft_json_string(weft_json_get(body, "kind"));
    if (kind != NULL && strcmp(kind, "HyperNode") == 0) {
        const struct weft_json *meta = weft_json_get(body, "metadata");
        if (weft_json_get(meta, "deletionTimestamp") != NULL) {
            struct weft_error err = {0};
            weft_auto(weft_hypernode_done) struct weft_hypernode hn = {0};
            const int rc = take_object(f, body, &hn, &err);
            step_failed_with(f, rc < 0 ? WEFT_APPLY_UNKNOWN : WEFT_APPLY_STALE, &err);
            return;
        }
    }
    f->apply->env.on_gone(f->apply->env.data, step->object.name,
                          weft_hypernode_text(step->object.uid));
    weft_flight_done(f);
}

static void written(struct weft_flight *f, const struct weft_kube_result *result)
{
    struct weft_error err = {0};
    if (weft_flight_step(f)->kind == WEFT_STEP_DELETE) {
        deleted(f, result->body);
        return;
    }
    weft_auto(weft_hypernode_done) struct weft_hypernode hn = {0};
    if (take_object(f, result->body, &hn, &err) < 0) {
        step_failed_with(f, WEFT_APPLY_UNKNOWN, &err);
        return;
    }
    weft_flight_done(f);
}

/* The server says that this object is gone, in a metav1.Status. A 404 without one comes from a
 * server that does not serve HyperNodes (any more, or not yet after its start): then nothing is
 * known about the object. */
static bool says_gone(const struct weft_kube_result *result)
{
    return result->status == 404 && strcmp(result->reason, "NotFound") == 0;
}

static void not_found(struct weft_flight *f, const struct weft_kube_result *result)
{
    const struct weft_step *step = weft_flight_step(f);
    if (!says_gone(result) || step->kind == WEFT_STEP_CREATE) {
        failed_answer(f, WEFT_APPLY_MISSING, result);
        return;
    }
    if (step->kind == WEFT_STEP_DELETE) {
        f->apply->env.on_gone(f->apply->env.data, step->object.name,
                              weft_hypernode_text(step->object.uid));
        weft_flight_done(f);
        return;
    }
    f->apply->env.on_gone(f->apply->env.data, step->object.name,
                          weft_hypernode_text(step->object.uid));
    failed_answer(f, WEFT_APPLY_STALE, result);
}

void weft_answer_written(void *data, const struct weft_kube_result *result)
{
    struct weft_flight *f = data;
    WEFT_CHECK(f->apply, WEFT_APPLY_MAGIC);
    f->call = NULL;
    if (result->outcome_unknown) {
        read_back(f, WEFT_APPLY_RETRY, result);
    } else if (result->error.code == 0) {
        written(f, result);
    } else if (result->status == 409) {
        read_back(f, WEFT_APPLY_STALE, result);
    } else if (result->status == 404) {
        not_found(f, result);
    } else {
        failed_answer(f, result->error.retryable ? WEFT_APPLY_RETRY : WEFT_APPLY_REFUSED, result);
    }
}

/* After a conflict: is what the server has still what the plan was made from, but for its version?
 * Volcano's own controller writes the status of every HyperNode after each change, which would make
 * every second step of a plan a new plan. */
static bool only_version_changed(struct weft_flight *f, const struct weft_json *body)
{
    const struct weft_step *step = weft_flight_step(f);
    weft_auto(weft_hypernode_done) struct weft_hypernode hn = {0};
    const struct weft_hypernode *known =
        weft_hypernode_set_get(f->apply->env.view(f->apply->env.data), step->object.name);
    if (known == NULL || step->kind == WEFT_STEP_CREATE ||
        weft_hypernode_from_json(body, f->apply->prefix, &hn, NULL) < 0) {
        return false;
    }
    const char *uid = "";
    const char *version = "";
    weft_flight_preconditions(f, &uid, &version);
    /* a conflict with the very version that is there will not end by trying once more */
    return strcmp(version, hn.resource_version) != 0 && !hn.terminating &&
           strcmp(known->uid, hn.uid) == 0 && weft_hypernode_same(known, &hn);
}

static void read_gone(struct weft_flight *f)
{
    const struct weft_step *step = weft_flight_step(f);
    f->apply->env.on_gone(f->apply->env.data, step->object.name, "");
    if (step->kind == WEFT_STEP_DELETE) {
        weft_flight_done(f);
        return;
    }
    weft_flight_failed(f, &(struct weft_apply_result){.outcome = f->why.outcome,
                                                      .error = f->why.error,
                                                      .retry_after_ns = f->why.retry_after_ns});
}

void weft_answer_read(void *data, const struct weft_kube_result *result)
{
    struct weft_flight *f = data;
    WEFT_CHECK(f->apply, WEFT_APPLY_MAGIC);
    f->call = NULL;
    const struct weft_step *step = weft_flight_step(f);
    const struct weft_apply_result why = f->why;
    const bool was_lost = why.outcome == WEFT_APPLY_RETRY;
    if (says_gone(result)) {
        read_gone(f);
        return;
    }
    struct weft_error err = result->error;
    const bool again = err.code == 0 && !was_lost && only_version_changed(f, result->body);
    weft_auto(weft_hypernode_done) struct weft_hypernode hn = {0};
    if (err.code != 0 || take_object(f, result->body, &hn, &err) < 0) {
        step_failed_with(f, WEFT_APPLY_UNKNOWN, &err);
    } else if (was_lost && weft_answer_as_wanted(step, &hn)) {
        weft_flight_done(f);
    } else if (again && f->conflicts++ < CONFLICTS_MAX) {
        f->fresh_version = true;
        weft_flight_again(f);
    } else {
        weft_flight_failed(f, &why);
    }
}
