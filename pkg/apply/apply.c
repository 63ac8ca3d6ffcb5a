/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps of a plan are under way, and how it ends. Must not decide what to write (the plan
 * does) nor when to try again (the caller does). */
#include "pkg/apply/apply-internal.h"

#include <errno.h>
#include <string.h>

#include "pkg/hypernode/hypernode.h"

static const char *const outcome_names[] = {
    [WEFT_APPLY_DONE] = "done",       [WEFT_APPLY_STALE] = "stale",
    [WEFT_APPLY_UNKNOWN] = "unknown", [WEFT_APPLY_RETRY] = "retry",
    [WEFT_APPLY_REFUSED] = "refused", [WEFT_APPLY_MISSING] = "missing",
    [WEFT_APPLY_STOPPED] = "stopped",
};

const char *weft_apply_outcome_name(enum weft_apply_outcome outcome)
{
    return outcome_names[outcome];
}

int weft_apply_new(const struct weft_plan *plan, const char *prefix,
                   const struct weft_apply_env *env, struct weft_apply **ret_apply,
                   struct weft_error *err)
{
    weft_auto(weft_apply_free) struct weft_apply *apply = weft_calloc(1, sizeof(*apply));
    if (apply == NULL) {
        return weft_err_nomem(err);
    }
    apply->magic = WEFT_APPLY_MAGIC;
    apply->plan = plan;
    apply->env = *env;
    for (size_t i = 0; i < WEFT_APPLY_FLIGHTS; i++) {
        apply->flights[i].apply = apply;
    }
    apply->prefix = weft_strdup(prefix);
    apply->answers = weft_calloc(plan->step_count + 1, sizeof(*apply->answers));
    if (apply->prefix == NULL || apply->answers == NULL) {
        return weft_err_nomem(err);
    }
    *ret_apply = weft_steal(&apply);
    return 0;
}

void weft_apply_free(struct weft_apply *apply)
{
    if (apply == NULL) {
        return;
    }
    WEFT_CHECK(apply, WEFT_APPLY_MAGIC);
    for (size_t i = 0; i < WEFT_APPLY_FLIGHTS; i++) {
        if (apply->flights[i].call != NULL) {
            apply->env.cancel(apply->flights[i].call);
        }
    }
    for (size_t i = 0; apply->answers != NULL && i < apply->plan->step_count; i++) {
        weft_free(apply->answers[i].uid);
        weft_free(apply->answers[i].resource_version);
    }
    weft_free(apply->answers);
    weft_free(apply->prefix);
    apply->magic = 0;
    weft_free(apply);
}

/* ---- the end ---- */

/* Which of several ends the caller hears of: that a list is needed before all, and that it was told
 * to stop only if nothing else was the matter. */
static unsigned weight(enum weft_apply_outcome outcome)
{
    return outcome == WEFT_APPLY_DONE      ? 0
           : outcome == WEFT_APPLY_STOPPED ? 1
           : outcome == WEFT_APPLY_UNKNOWN ? 3
                                           : 2;
}

/* No further step starts, and when none is under way any more it ends like this. */
static void give_up(struct weft_apply *apply, size_t step, const struct weft_apply_result *result)
{
    if (weight(result->outcome) > weight(apply->end.outcome)) {
        apply->end = *result;
        apply->end.step = step;
    }
}

static void give_up_with(struct weft_apply *apply, size_t step, enum weft_apply_outcome outcome,
                         const struct weft_error *err)
{
    struct weft_apply_result r = {.outcome = outcome};
    if (err != NULL) {
        r.error = *err;
    }
    give_up(apply, step, &r);
}

/* The caller may free apply in on_done: nothing touches it afterwards. */
static void finish(struct weft_apply *apply)
{
    struct weft_apply_result r = apply->end;
    r.confirmed = apply->confirmed;
    r.name = r.outcome == WEFT_APPLY_DONE ? "" : apply->plan->steps[r.step].object.name;
    apply->env.on_done(apply->env.data, &r);
}

/* ---- steps under way ---- */

static bool is_delete(const struct weft_step *step)
{
    return step->kind == WEFT_STEP_DELETE;
}

/* The hard precondition of every delete: nobody, ours or another's, lists the object any more. The
 * plan saw to that; this looks at what is known now. */
static bool still_listed(const struct weft_apply *apply, const char *name)
{
    const struct weft_hypernode_set *view = apply->env.view(apply->env.data);
    for (size_t i = 0; i < view->count; i++) {
        if (weft_hypernode_lists(&view->items[i], WEFT_MEMBER_HYPERNODE, name)) {
            return true;
        }
    }
    return false;
}

/* Neither told to stop, nor without the Lease, nor about to delete what is listed; else it is given
 * up. */
static bool may_send(struct weft_apply *apply, size_t at)
{
    const struct weft_step *step = &apply->plan->steps[at];
    if (apply->stopping || !apply->env.may_write(apply->env.data)) {
        give_up_with(apply, at, WEFT_APPLY_STOPPED, NULL);
        return false;
    }
    if (is_delete(step) && still_listed(apply, step->object.name)) {
        give_up_with(apply, at, WEFT_APPLY_STALE, NULL);
        return false;
    }
    return true;
}

static void land(struct weft_flight *f)
{
    f->used = false;
    f->apply->flying--;
}

/* Lets the flight's step be written, or lands. */
static void fly(struct weft_flight *f)
{
    struct weft_apply *apply = f->apply;
    struct weft_error err = {0};
    if (apply->end.outcome != WEFT_APPLY_DONE || !may_send(apply, f->step)) {
        land(f);
    } else if (weft_flight_send(f, &err) < 0) {
        land(f);
        give_up_with(apply, f->step, err.code == -EINVAL ? WEFT_APPLY_REFUSED : WEFT_APPLY_RETRY,
                     &err);
    }
}

static struct weft_flight *free_flight(struct weft_apply *apply)
{
    size_t at = 0;
    while (apply->flights[at].used) {
        at++;
    }
    return &apply->flights[at];
}

/* One more with each that went through: a server that refuses or fails is asked once. */
static bool next_may_start(const struct weft_apply *apply)
{
    const size_t most =
        apply->confirmed < WEFT_APPLY_FLIGHTS ? apply->confirmed + 1 : WEFT_APPLY_FLIGHTS;
    return apply->end.outcome == WEFT_APPLY_DONE && apply->next < apply->plan->step_count &&
           (apply->flying == 0 ||
            (apply->flying < most && weft_plan_overlaps(apply->plan, apply->next)));
}

/* Starts what may be under way now; ends if nothing is. Nothing touches apply afterwards. */
static void go_on(struct weft_apply *apply)
{
    while (next_may_start(apply)) {
        struct weft_flight *f = free_flight(apply);
        *f = (struct weft_flight){.apply = apply, .used = true, .step = apply->next++};
        apply->flying++;
        fly(f);
    }
    if (apply->flying == 0) {
        finish(apply);
    }
}

void weft_apply_start(struct weft_apply *apply)
{
    WEFT_CHECK(apply, WEFT_APPLY_MAGIC);
    go_on(apply);
}

void weft_apply_stop(struct weft_apply *apply)
{
    WEFT_CHECK(apply, WEFT_APPLY_MAGIC);
    apply->stopping = true;
}

void weft_flight_done(struct weft_flight *f)
{
    struct weft_apply *apply = f->apply;
    apply->confirmed++;
    land(f);
    go_on(apply);
}

void weft_flight_failed(struct weft_flight *f, const struct weft_apply_result *result)
{
    struct weft_apply *apply = f->apply;
    give_up(apply, f->step, result);
    land(f);
    go_on(apply);
}

void weft_flight_again(struct weft_flight *f)
{
    struct weft_apply *apply = f->apply;
    fly(f);
    go_on(apply);
}

bool weft_apply_expects(const struct weft_apply *apply, const struct weft_hypernode *hn)
{
    WEFT_CHECK(apply, WEFT_APPLY_MAGIC);
    bool expects = false;
    for (size_t i = 0; i < WEFT_APPLY_FLIGHTS && !expects; i++) {
        const struct weft_flight *f = &apply->flights[i];
        expects = f->used && strcmp(weft_flight_step(f)->object.name, hn->name) == 0 &&
                  weft_answer_as_wanted(weft_flight_step(f), hn);
    }
    return expects;
}

bool weft_apply_expects_gone(const struct weft_apply *apply, const char *name)
{
    WEFT_CHECK(apply, WEFT_APPLY_MAGIC);
    bool expects = false;
    for (size_t i = 0; i < WEFT_APPLY_FLIGHTS && !expects; i++) {
        const struct weft_flight *f = &apply->flights[i];
        expects = f->used && is_delete(weft_flight_step(f)) &&
                  strcmp(weft_flight_step(f)->object.name, name) == 0;
    }
    return expects;
}
