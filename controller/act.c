/* SPDX-License-Identifier: Apache-2.0 */
/* Carries a decision out: HyperNodes first, then labels; and says when to try again. Must not
 * decide what to write. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "controller/accept.h"
#include "controller/act.h"
#include "controller/affected.h"
#include "controller/controller-internal.h"
#include "controller/labelled.h"
#include "controller/labels.h"
#include "controller/options.h"
#include "controller/output.h"
#include "pkg/apply/apply.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/base/str.h"
#include "pkg/hypernode/plan-around.h"
#include "pkg/json/json.h"
#include "pkg/kube/client.h"
#include "pkg/kube/meta.h"
#include "pkg/kube/reflector.h"
#include "pkg/source/config.h"
#include "pkg/tree/tree.h"

enum { FAILURES_MAX = 6, SAME_PLANS_MAX = 3, STALE_MAX = 3 };

#define WAIT_MAX_NS (60 * WEFT_NS_PER_S)
#define WAIT_STALE_NS (20 * WEFT_NS_PER_MS)

bool weft_controller_writing(const struct weft_controller *c)
{
    return c->apply != NULL || (c->labels != NULL && weft_labels_busy(c->labels)) ||
           weft_controller_telling(c);
}

/* splitmix64's step: enough to keep two controllers from trying in step */
static int64_t jitter(struct weft_controller *c, int64_t up_to)
{
    c->jitter = weft_hash64(c->jitter, &c->failures, sizeof(c->failures));
    return up_to <= 0 ? 0 : (int64_t)(c->jitter % (uint64_t)up_to);
}

void weft_controller_back_off(struct weft_controller *c, int64_t wait_ns, bool at_least)
{
    int64_t wait = wait_ns;
    for (unsigned i = 0; i < c->failures && !at_least; i++) {
        wait *= 2;
    }
    if (c->failures < FAILURES_MAX) {
        c->failures++;
    }
    wait = wait > WAIT_MAX_NS && !at_least ? WAIT_MAX_NS : wait;
    const int64_t then = weft_controller_now() + wait + jitter(c, wait / 5);
    c->not_before = then > c->not_before ? then : c->not_before;
    weft_debounce_rush(&c->debounce, weft_controller_now());
    weft_controller_schedule(c);
}

/* ---- the end of a pass ---- */

/* What must stay (another owner's object lists it) is named: nothing else would tell of it. */
static void uninstalled(struct weft_controller *c, bool good)
{
    const struct weft_plan *plan = &c->decision.plan;
    const bool any = weft_controller_any_of_ours(c);
    for (size_t i = 0; i < plan->finding_count; i++) {
        weft_log(WEFT_LOG_WARN, plan->findings[i].kind,
                 WEFT_KV_S("name", plan->findings[i].subject),
                 WEFT_KV_S("detail", plan->findings[i].detail));
    }
    weft_log(good && !any ? WEFT_LOG_INFO : WEFT_LOG_ERROR, "uninstalled",
             WEFT_KV_S("hypernodes_left", any ? "some" : "none"),
             WEFT_KV_S("complete", good && !any ? "yes" : "no, run it again"));
    weft_controller_stop(c, good && !any ? 0 : 1);
}

void weft_act_pass_ended(struct weft_controller *c, bool good)
{
    if (c->stuck_count > 0 && !c->options->once) {
        weft_controller_back_off(c, WAIT_REFUSED_NS, false); /* then all is tried again */
        return;
    }
    good = good && c->stuck_count == 0;
    if (good) {
        c->failures = 0;
        weft_view_nodes_forget(&c->nodes);
        weft_accept_carried_out(c->accept);
        weft_hypernode_set_done(&c->lost);
    }
    if (c->options->uninstall) {
        uninstalled(c, good);
        return;
    }
    if (c->options->once) {
        const bool all = good && !c->decision.keep.refused &&
                         !(c->crd_missing && c->config->outputs.hyper_nodes);
        weft_controller_end_once(c, all ? 0 : 1);
        return;
    }
    weft_controller_schedule(c);
}

/* ---- HyperNodes ---- */

bool weft_act_may_write(void *data)
{
    return weft_controller_may_write(data);
}

static const struct weft_hypernode_set *view(void *data)
{
    const struct weft_controller *c = data;
    return &c->hypernodes.set;
}

static void on_object(void *data, const struct weft_hypernode *hn)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    struct weft_hypernode copy = {0};
    enum weft_view_change change = WEFT_VIEW_SAME;
    if (hn->tier_name[0] == '\0') {
        c->tier_name_served = false; /* an older CRD is back */
    }
    if (weft_hypernode_copy(hn, &copy) < 0 ||
        weft_view_hypernodes_put(&c->hypernodes, &copy, &change) < 0) {
        /* the watch brings it too; until then a write on it meets a conflict */
        weft_log(WEFT_LOG_ERROR, "out of memory", WEFT_KV_S("for", hn->name));
    }
    if (change != WEFT_VIEW_SAME) {
        c->failures = 0; /* progress: the next failure waits as the first one does */
    }
}

static void on_gone(void *data, const char *name, const char *uid)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    (void)weft_view_hypernodes_gone(&c->hypernodes, name, uid);
}

static void log_outcome(const struct weft_controller *c, const struct weft_apply_result *result)
{
    const bool conflict = result->outcome == WEFT_APPLY_STALE && c->stale <= STALE_MAX;
    const bool good =
        result->outcome == WEFT_APPLY_DONE || conflict || result->outcome == WEFT_APPLY_STOPPED;
    weft_log(good ? WEFT_LOG_INFO : WEFT_LOG_WARN, "HyperNodes written",
             WEFT_KV_S("outcome", weft_apply_outcome_name(result->outcome)),
             WEFT_KV_I("writes", result->confirmed), WEFT_KV_I("planned", c->applied->step_count),
             WEFT_KV_S("at", result->outcome == WEFT_APPLY_DONE ? "" : result->name),
             WEFT_KV_S("error", result->error.message),
             WEFT_KV_S("audit_id", result->error.request_id));
}

void weft_act_conflict(struct weft_controller *c, unsigned in_a_row)
{
    if (in_a_row <= STALE_MAX) {
        weft_controller_back_off(c, WAIT_STALE_NS, true);
        return;
    }
    const unsigned doubled = in_a_row - STALE_MAX - 1;
    const int64_t wait = WAIT_RETRY_NS << (doubled < FAILURES_MAX ? doubled : FAILURES_MAX);
    weft_controller_back_off(c, wait < WAIT_MAX_NS ? wait : WAIT_MAX_NS, true);
}

static void after_failure(struct weft_controller *c, const struct weft_apply_result *result)
{
    if (c->options->once && result->outcome != WEFT_APPLY_STALE &&
        result->outcome != WEFT_APPLY_UNKNOWN) {
        weft_act_pass_ended(c, false);
        return;
    }
    const bool asked = result->retry_after_ns > WAIT_RETRY_NS;
    switch (result->outcome) {
    case WEFT_APPLY_STALE:
        weft_act_conflict(c, c->stale);
        break;
    case WEFT_APPLY_UNKNOWN:
        weft_kube_reflector_relist(c->hypernode_reflector);
        weft_controller_back_off(c, WAIT_RETRY_NS, false);
        break;
    case WEFT_APPLY_RETRY:
        weft_controller_back_off(c, asked ? result->retry_after_ns : WAIT_RETRY_NS, asked);
        break;
    case WEFT_APPLY_MISSING:
        /* the list finds out the same and says so */
        weft_kube_reflector_relist(c->hypernode_reflector);
        weft_controller_back_off(c, WAIT_RETRY_NS, false);
        break;
    case WEFT_APPLY_REFUSED:
        weft_controller_back_off(c, WAIT_REFUSED_NS, false);
        break;
    case WEFT_APPLY_STOPPED:
    case WEFT_APPLY_DONE:
    case WEFT_APPLY_OUTCOME_COUNT:
        /* by pause, by a lost Lease, or because the world changed: whatever lets writes start
         * again asks for the pass; the fence alone does not */
        weft_controller_back_off(c, WAIT_STALE_NS, true);
        break;
    }
}

static void act_hypernodes(struct weft_controller *c, const struct weft_plan *plan);

/* The server would not write one object: what does not depend on it goes on. Each time a new plan
 * from what is there now, since others' steps are done. */
static int plan_around(struct weft_controller *c, struct weft_error *err)
{
    const char *names[WEFT_STUCK_MAX];
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    const struct weft_plan_options options = {.instance = c->ours.instance, .check = true};
    for (size_t i = 0; i < c->stuck_count; i++) {
        names[i] = c->stuck[i];
    }
    weft_plan_done(&c->around);
    const int rc = weft_plan_build(&c->hypernodes.set, &c->decision.keep.set, &options, &plan, err);
    return rc < 0 ? rc
                  : weft_plan_around(&c->hypernodes.set, &plan, names, c->stuck_count, &c->around,
                                     err);
}

/* true: it goes on; the pass ends with it. */
static bool go_around(struct weft_controller *c, const struct weft_apply_result *result,
                      const char *name)
{
    struct weft_error err = {0};
    if (result->outcome != WEFT_APPLY_REFUSED) {
        return false;
    }
    weft_controller_say(c, true, "WriteRefused", "WriteHyperNodes", result->error.message);
    if (c->applied == &c->repair || c->stuck_count == WEFT_STUCK_MAX ||
        strlen(name) >= sizeof(c->stuck[0])) {
        return false;
    }
    memcpy(c->stuck[c->stuck_count++], name, strlen(name) + 1);
    if (plan_around(c, &err) < 0) {
        weft_log(WEFT_LOG_WARN, "nothing else is written", WEFT_KV_S("refused", name),
                 WEFT_KV_S("error", err.message));
        return false;
    }
    if (c->around.step_count == 0) {
        weft_act_labels(c);
    } else {
        act_hypernodes(c, &c->around);
    }
    return true;
}

static void on_apply_done(void *data, const struct weft_apply_result *result)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    const bool stale = result->outcome == WEFT_APPLY_STALE && result->confirmed == 0;
    c->stale = stale ? c->stale + 1 : 0;
    log_outcome(c, result);
    c->stats.applies[result->outcome]++;
    c->stats.writes += result->confirmed;
    const struct weft_apply_result r = *result;
    char name[256];
    (void)snprintf(name, sizeof(name), "%s", r.name);
    weft_apply_free(c->apply);
    c->apply = NULL;
    if (r.outcome != WEFT_APPLY_DONE) {
        c->same_plans = 0; /* the same plan comes again because it was not carried out */
        c->last_plan_at = INT64_MIN / 2;
    }
    if (c->stopping) {
        weft_controller_settled(c);
    } else if (r.outcome == WEFT_APPLY_DONE && c->applied == &c->repair) {
        weft_hypernode_set_done(&c->lost);
        weft_controller_schedule(c);
    } else if (r.outcome == WEFT_APPLY_DONE) {
        weft_act_labels(c);
    } else if (c->hypernode_reflector != NULL && !go_around(c, &r, name)) {
        after_failure(c, &r);
    }
}

/* The same writes as last time, again and again: somebody undoes them, or the server changes what
 * it is given. To write as fast as they do would help nobody; true if it is put off. */
static bool put_off(struct weft_controller *c)
{
    if (c->applied == &c->around) {
        return false;
    }
    const uint64_t plan = weft_plan_hash(c->applied);
    const int64_t now = weft_controller_now();
    if (c->slowed) { /* this is the pass after the wait */
        c->slowed = false;
        return false;
    }
    const bool again = plan == c->last_plan && now - c->last_plan_at < 2 * WAIT_MAX_NS;
    c->same_plans = again ? c->same_plans + 1 : 0;
    c->last_plan = plan;
    c->last_plan_at = now;
    if (c->same_plans < SAME_PLANS_MAX || c->options->once) {
        return false;
    }
    weft_controller_say(c, true, "WritesUndone", "WriteHyperNodes",
                        "The same HyperNode writes are needed again and again: somebody changes "
                        "these objects back. They are repeated, but more and more slowly.");
    c->failures = c->same_plans - SAME_PLANS_MAX;
    c->failures = c->failures < FAILURES_MAX ? c->failures : FAILURES_MAX;
    c->slowed = true;
    weft_controller_back_off(c, WAIT_RETRY_NS, false);
    return true;
}

static void act_hypernodes(struct weft_controller *c, const struct weft_plan *plan)
{
    c->applied = plan;
    if (put_off(c)) {
        return;
    }
    const struct weft_apply_env env = {
        .submit = weft_kube_submit,
        .cancel = weft_kube_call_cancel,
        .client = c->client,
        .may_write = weft_act_may_write,
        .view = view,
        .on_object = on_object,
        .on_gone = on_gone,
        .on_done = on_apply_done,
        .data = c,
    };
    struct weft_error err = {0};
    if (weft_apply_new(plan, c->ours.prefix, &env, &c->apply, &err) < 0) {
        weft_log(WEFT_LOG_ERROR, "apply", WEFT_KV_S("error", err.message));
        weft_controller_back_off(c, WAIT_RETRY_NS, false);
        return;
    }
    weft_apply_start(c->apply);
}

/* --dry-run and --output: the decision is shown, not carried out. */
static void show(struct weft_controller *c)
{
    struct weft_error err = {0};
    const struct weft_hypernode_set *before =
        c->options->against != NULL ? &c->against : &c->hypernodes.set;
    int status = c->decision.keep.refused ? 1 : 0;
    int rc = 0;
    if (c->options->output == NULL) {
        weft_controller_print_plan(c);
    } else {
        rc = weft_controller_write_folder(c->options, c->config, &c->decision, &err);
    }
    if (rc >= 0) {
        rc = weft_controller_print_affected(c->options, &c->pods, before, &c->decision.plan, &err);
    }
    if (rc < 0) {
        weft_log(WEFT_LOG_ERROR, "output", WEFT_KV_S("error", err.message));
        status = 1;
    }
    weft_controller_stop(c, status);
}

void weft_controller_act_repair(struct weft_controller *c)
{
    if (weft_controller_may_write(c)) {
        act_hypernodes(c, &c->repair);
    } else {
        weft_controller_back_off(c, WAIT_RETRY_NS, true);
    }
}

void weft_controller_act(struct weft_controller *c)
{
    if (weft_controller_reads_only(c)) {
        show(c);
        return;
    }
    if (c->config->paused) {
        weft_log(WEFT_LOG_INFO, "paused", WEFT_KV_I("writes_held", c->decision.plan.step_count));
        if (c->options->once) {
            weft_controller_stop(c, 1);
        }
        return;
    }
    if (!weft_controller_may_write(c)) {
        /* between two renewals of the Lease */
        weft_controller_back_off(c, WAIT_RETRY_NS, true);
    } else if (c->decision.plan.step_count > 0 && c->config->outputs.hyper_nodes &&
               !c->crd_missing) {
        act_hypernodes(c, &c->decision.plan);
    } else {
        weft_act_labels(c);
    }
}
