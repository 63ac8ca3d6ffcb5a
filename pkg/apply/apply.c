/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a plan as requests, and what each answer means. Must not decide what to write (the
 * plan does) nor when to try again (the caller does). */
#include "pkg/apply/apply.h"

#include <errno.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/hypernode/hypernode.h"
#include "pkg/hypernode/layout.h"
#include "pkg/hypernode/plan.h"
#include "pkg/json/json.h"
#include "pkg/kube/client.h"

enum { MAGIC = 0x77617070, CONFLICTS_MAX = 3 };

/* What the server said an object is after a step, for later steps on the same object. */
struct identity {
    char *uid;
    char *resource_version;
};

struct weft_apply {
    unsigned magic;
    const struct weft_plan *plan;
    struct weft_apply_env env;
    char *prefix;
    struct identity *answers; /* per step */
    size_t next;              /* the step under way or to come */
    struct weft_kube_call *call;
    bool stopping;
    unsigned conflicts; /* of the step under way */
    bool fresh_version; /* answers[next] holds a newer version to write against */
    /* while an object is read back: what made that necessary */
    struct weft_apply_result why;
};

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
    apply->magic = MAGIC;
    apply->plan = plan;
    apply->env = *env;
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
    WEFT_CHECK(apply, MAGIC);
    if (apply->call != NULL) {
        apply->env.cancel(apply->call);
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

static const struct weft_step *step_now(const struct weft_apply *apply)
{
    return &apply->plan->steps[apply->next];
}

/* ---- the end ---- */

/* The caller may free apply in on_done: nothing touches it afterwards. */
static void finish(struct weft_apply *apply, const struct weft_apply_result *result)
{
    struct weft_apply_result r = *result;
    r.confirmed = apply->next;
    r.step = apply->next;
    r.name = apply->next < apply->plan->step_count ? step_now(apply)->object.name : "";
    apply->env.on_done(apply->env.data, &r);
}

static void finish_with(struct weft_apply *apply, enum weft_apply_outcome outcome,
                        const struct weft_error *err)
{
    struct weft_apply_result r = {.outcome = outcome};
    if (err != NULL) {
        r.error = *err;
    }
    finish(apply, &r);
}

/* ---- requests ---- */

static const char *text(const char *field)
{
    return field != NULL ? field : "";
}

static bool is_delete(const struct weft_step *step)
{
    return step->kind == WEFT_STEP_DELETE;
}

/* uid and resourceVersion to write against: of the object the plan was made from, or of the answer
 * to the plan's own earlier step on it. */
static void preconditions(const struct weft_apply *apply, const struct weft_step *step,
                          const char **ret_uid, const char **ret_version)
{
    *ret_uid = text(step->object.uid);
    *ret_version = text(step->object.resource_version);
    if (step->previous < apply->next || apply->fresh_version) {
        const size_t from = apply->fresh_version ? apply->next : step->previous;
        const struct identity *answer = &apply->answers[from];
        *ret_uid = text(answer->uid);
        *ret_version = text(answer->resource_version);
    }
}

/* The same members such that the object differs from what the server has: the other way round, or,
 * if they were that already, in their order again. A single one is written twice. */
static int reorder(struct weft_hypernode *hn, bool was_reordered)
{
    if (was_reordered) {
        return 0; /* to_json writes them in their order */
    }
    if (hn->member_count == 1) {
        const struct weft_member m = hn->members[0];
        return weft_hypernode_add_member(hn, m.type, m.selector, m.name);
    }
    for (size_t i = 0; i < hn->member_count / 2; i++) {
        const struct weft_member m = hn->members[i];
        hn->members[i] = hn->members[hn->member_count - 1 - i];
        hn->members[hn->member_count - 1 - i] = m;
    }
    return 0;
}

/* The object as the step wants it, with version as its resourceVersion ("" for none). */
static int encode(const struct weft_apply *apply, const struct weft_step *step, const char *version,
                  struct weft_buf *buf)
{
    weft_auto(weft_hypernode_done) struct weft_hypernode hn = {0};
    int rc = weft_hypernode_copy(&step->object, &hn);
    if (rc < 0) {
        return rc;
    }
    const struct weft_hypernode *known =
        weft_hypernode_set_get(apply->env.view(apply->env.data), hn.name);
    weft_free(hn.resource_version);
    weft_free(hn.others);
    hn.resource_version = weft_strdup(version);
    hn.others = weft_strdup(known != NULL ? text(known->others) : "");
    if (hn.resource_version == NULL || hn.others == NULL ||
        (step->touch && reorder(&hn, known != NULL && known->reordered) < 0)) {
        return -ENOMEM;
    }
    struct weft_json_writer w;
    weft_json_writer_init(&w, buf, 0);
    weft_hypernode_to_json(&hn, apply->prefix, version[0] != '\0', &w);
    return buf->status;
}

static int send_op(struct weft_apply *apply, struct weft_kube_op *op, const char *name,
                   struct weft_error *err)
{
    weft_autofree char *path = weft_kube_path(&weft_kube_hypernodes, NULL, name);
    if (path == NULL) {
        return weft_err_nomem(err);
    }
    op->path = path;
    op->timeout_ns = WEFT_APPLY_TIMEOUT_NS;
    op->data = apply;
    return apply->env.submit(apply->env.client, op, &apply->call, err);
}

static void on_written(void *data, const struct weft_kube_result *result);
static void on_read(void *data, const struct weft_kube_result *result);

static int send_step(struct weft_apply *apply, struct weft_error *err)
{
    const struct weft_step *step = step_now(apply);
    const char *uid = "";
    const char *version = "";
    preconditions(apply, step, &uid, &version);
    struct weft_kube_op op = {.on_done = on_written};
    if (is_delete(step)) {
        op.verb = WEFT_KUBE_DELETE;
        op.uid = uid;
        op.resource_version = version;
        return send_op(apply, &op, step->object.name, err);
    }
    const bool create = step->kind == WEFT_STEP_CREATE;
    if (!create && version[0] == '\0') {
        /* without it the server would overwrite whatever is there */
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "HyperNode %s: no resourceVersion",
                            step->object.name);
    }
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, WEFT_KUBE_REQUEST_MAX);
    const int rc = encode(apply, step, create ? "" : version, &buf);
    if (rc < 0) {
        return weft_err_errno(err, -rc, "HyperNode %s", step->object.name);
    }
    op.verb = create ? WEFT_KUBE_CREATE : WEFT_KUBE_REPLACE;
    op.body = weft_buf_text(&buf);
    op.body_len = buf.len;
    return send_op(apply, &op, create ? NULL : step->object.name, err);
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

static void run_next(struct weft_apply *apply)
{
    if (apply->next >= apply->plan->step_count) {
        finish_with(apply, WEFT_APPLY_DONE, NULL);
        return;
    }
    if (apply->stopping || !apply->env.may_write(apply->env.data)) {
        finish_with(apply, WEFT_APPLY_STOPPED, NULL);
        return;
    }
    const struct weft_step *step = step_now(apply);
    if (is_delete(step) && still_listed(apply, step->object.name)) {
        finish_with(apply, WEFT_APPLY_STALE, NULL);
        return;
    }
    struct weft_error err = {0};
    if (send_step(apply, &err) < 0) {
        finish_with(apply, err.code == -EINVAL ? WEFT_APPLY_REFUSED : WEFT_APPLY_RETRY, &err);
    }
}

void weft_apply_start(struct weft_apply *apply)
{
    WEFT_CHECK(apply, MAGIC);
    run_next(apply);
}

void weft_apply_stop(struct weft_apply *apply)
{
    WEFT_CHECK(apply, MAGIC);
    apply->stopping = true;
}

/* ---- answers ---- */

/* Is the object as the step would have made it? tierName apart, which an older CRD drops. */
static bool as_wanted(const struct weft_step *step, const struct weft_hypernode *hn)
{
    if (is_delete(step) || hn->terminating) {
        return false;
    }
    struct weft_hypernode wanted = step->object;
    char nothing[] = "";
    if (hn->tier_name[0] == '\0') {
        wanted.tier_name = nothing;
    }
    return weft_hypernode_same(&wanted, hn);
}

bool weft_apply_expects(const struct weft_apply *apply, const struct weft_hypernode *hn)
{
    WEFT_CHECK(apply, MAGIC);
    return apply->call != NULL && strcmp(step_now(apply)->object.name, hn->name) == 0 &&
           as_wanted(step_now(apply), hn);
}

bool weft_apply_expects_gone(const struct weft_apply *apply, const char *name)
{
    WEFT_CHECK(apply, MAGIC);
    return apply->call != NULL && is_delete(step_now(apply)) &&
           strcmp(step_now(apply)->object.name, name) == 0;
}

/* Keeps what later steps need of a confirmed object and hands it to the view. */
static int take_object(struct weft_apply *apply, const struct weft_json *body,
                       struct weft_hypernode *ret_hn, struct weft_error *err)
{
    weft_auto(weft_hypernode_done) struct weft_hypernode hn = {0};
    int rc = weft_hypernode_from_json(body, apply->prefix, &hn, err);
    if (rc < 0) {
        return weft_err_wrap(err, rc, "answer for HyperNode %s", step_now(apply)->object.name);
    }
    struct identity *answer = &apply->answers[apply->next];
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

static void step_done(struct weft_apply *apply)
{
    apply->next++;
    apply->conflicts = 0;
    apply->fresh_version = false;
    run_next(apply);
}

/* Reads the step's object; on_read then ends with why, or goes on if the step turns out done. */
static void read_back(struct weft_apply *apply, enum weft_apply_outcome outcome,
                      const struct weft_kube_result *result)
{
    apply->why = (struct weft_apply_result){
        .outcome = outcome, .error = result->error, .retry_after_ns = result->retry_after_ns};
    struct weft_kube_op op = {.verb = WEFT_KUBE_GET, .on_done = on_read};
    struct weft_error err = {0};
    if (send_op(apply, &op, step_now(apply)->object.name, &err) < 0) {
        finish_with(apply, WEFT_APPLY_UNKNOWN, &err);
    }
}

static void finish_result(struct weft_apply *apply, enum weft_apply_outcome outcome,
                          const struct weft_kube_result *result)
{
    const struct weft_apply_result r = {
        .outcome = outcome, .error = result->error, .retry_after_ns = result->retry_after_ns};
    finish(apply, &r);
}

/* A delete is confirmed by the object being gone; with a finalizer of somebody it goes later. */
static void deleted(struct weft_apply *apply, const struct weft_json *body)
{
    const struct weft_step *step = step_now(apply);
    const char *kind = weft_json_string(weft_json_get(body, "kind"));
    if (kind != NULL && strcmp(kind, "HyperNode") == 0) {
        const struct weft_json *meta = weft_json_get(body, "metadata");
        if (weft_json_get(meta, "deletionTimestamp") != NULL) {
            struct weft_error err = {0};
            weft_auto(weft_hypernode_done) struct weft_hypernode hn = {0};
            const int rc = take_object(apply, body, &hn, &err);
            finish_with(apply, rc < 0 ? WEFT_APPLY_UNKNOWN : WEFT_APPLY_STALE, &err);
            return;
        }
    }
    apply->env.on_gone(apply->env.data, step->object.name, text(step->object.uid));
    step_done(apply);
}

static void written(struct weft_apply *apply, const struct weft_kube_result *result)
{
    struct weft_error err = {0};
    if (is_delete(step_now(apply))) {
        deleted(apply, result->body);
        return;
    }
    weft_auto(weft_hypernode_done) struct weft_hypernode hn = {0};
    if (take_object(apply, result->body, &hn, &err) < 0) {
        finish_with(apply, WEFT_APPLY_UNKNOWN, &err);
        return;
    }
    step_done(apply);
}

/* The server says that this object is gone, in a metav1.Status. A 404 without one comes from a
 * server that does not serve HyperNodes (any more, or not yet after its start): then nothing is
 * known about the object. */
static bool says_gone(const struct weft_kube_result *result)
{
    return result->status == 404 && strcmp(result->reason, "NotFound") == 0;
}

static void not_found(struct weft_apply *apply, const struct weft_kube_result *result)
{
    const struct weft_step *step = step_now(apply);
    if (!says_gone(result) || step->kind == WEFT_STEP_CREATE) {
        finish_result(apply, WEFT_APPLY_MISSING, result);
        return;
    }
    if (is_delete(step)) {
        apply->env.on_gone(apply->env.data, step->object.name, text(step->object.uid));
        step_done(apply);
        return;
    }
    apply->env.on_gone(apply->env.data, step->object.name, text(step->object.uid));
    finish_result(apply, WEFT_APPLY_STALE, result);
}

static void on_written(void *data, const struct weft_kube_result *result)
{
    struct weft_apply *apply = data;
    WEFT_CHECK(apply, MAGIC);
    apply->call = NULL;
    if (result->outcome_unknown) {
        read_back(apply, WEFT_APPLY_RETRY, result);
    } else if (result->error.code == 0) {
        written(apply, result);
    } else if (result->status == 409) {
        read_back(apply, WEFT_APPLY_STALE, result);
    } else if (result->status == 404) {
        not_found(apply, result);
    } else {
        finish_result(apply, result->error.retryable ? WEFT_APPLY_RETRY : WEFT_APPLY_REFUSED,
                      result);
    }
}

/* After a conflict: is what the server has still what the plan was made from, but for its version?
 * Volcano's own controller writes the status of every HyperNode after each change, which would make
 * every second step of a plan a new plan. */
static bool only_version_changed(struct weft_apply *apply, const struct weft_json *body)
{
    const struct weft_step *step = step_now(apply);
    weft_auto(weft_hypernode_done) struct weft_hypernode hn = {0};
    const struct weft_hypernode *known =
        weft_hypernode_set_get(apply->env.view(apply->env.data), step->object.name);
    if (known == NULL || step->kind == WEFT_STEP_CREATE ||
        weft_hypernode_from_json(body, apply->prefix, &hn, NULL) < 0) {
        return false;
    }
    return !hn.terminating && strcmp(known->uid, hn.uid) == 0 && weft_hypernode_same(known, &hn);
}

static void read_gone(struct weft_apply *apply)
{
    const struct weft_step *step = step_now(apply);
    apply->env.on_gone(apply->env.data, step->object.name, "");
    if (is_delete(step)) {
        step_done(apply);
        return;
    }
    finish(apply, &(struct weft_apply_result){.outcome = apply->why.outcome,
                                              .error = apply->why.error,
                                              .retry_after_ns = apply->why.retry_after_ns});
}

static void on_read(void *data, const struct weft_kube_result *result)
{
    struct weft_apply *apply = data;
    WEFT_CHECK(apply, MAGIC);
    apply->call = NULL;
    const struct weft_step *step = step_now(apply);
    const struct weft_apply_result why = apply->why;
    const bool was_lost = why.outcome == WEFT_APPLY_RETRY;
    if (says_gone(result)) {
        read_gone(apply);
        return;
    }
    struct weft_error err = result->error;
    const bool again = err.code == 0 && !was_lost && only_version_changed(apply, result->body);
    weft_auto(weft_hypernode_done) struct weft_hypernode hn = {0};
    if (err.code != 0 || take_object(apply, result->body, &hn, &err) < 0) {
        finish_with(apply, WEFT_APPLY_UNKNOWN, &err);
    } else if (was_lost && as_wanted(step, &hn)) {
        step_done(apply);
    } else if (again && apply->conflicts++ < CONFLICTS_MAX) {
        apply->fresh_version = true;
        run_next(apply);
    } else {
        finish(apply, &why);
    }
}
