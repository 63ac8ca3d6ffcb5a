/* SPDX-License-Identifier: Apache-2.0 */
/* A step as a request: what is written, and against which version. Must not decide what to write
 * (the plan does). */
#include <errno.h>

#include "pkg/apply/apply-internal.h"
#include "pkg/base/buf.h"
#include "pkg/hypernode/hypernode.h"
#include "pkg/hypernode/layout.h"
#include "pkg/json/json.h"

void weft_flight_preconditions(const struct weft_flight *f, const char **ret_uid,
                               const char **ret_version)
{
    const struct weft_step *step = weft_flight_step(f);
    *ret_uid = weft_hypernode_text(step->object.uid);
    *ret_version = weft_hypernode_text(step->object.resource_version);
    if (step->previous != WEFT_STEP_NONE || f->fresh_version) {
        const size_t from = f->fresh_version ? f->step : step->previous;
        const struct weft_apply_identity *answer = &f->apply->answers[from];
        *ret_uid = weft_hypernode_text(answer->uid);
        *ret_version = weft_hypernode_text(answer->resource_version);
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
    hn.others = weft_strdup(known != NULL ? weft_hypernode_text(known->others) : "");
    if (hn.resource_version == NULL || hn.others == NULL ||
        (step->touch && reorder(&hn, known != NULL && known->reordered) < 0)) {
        return -ENOMEM;
    }
    struct weft_json_writer w;
    weft_json_writer_init(&w, buf, 0);
    weft_hypernode_to_json(&hn, apply->prefix, version[0] != '\0', &w);
    return buf->status;
}

static int send_op(struct weft_flight *f, struct weft_kube_op *op, const char *name,
                   struct weft_error *err)
{
    weft_autofree char *path = weft_kube_path(&weft_kube_hypernodes, NULL, name);
    if (path == NULL) {
        return weft_err_nomem(err);
    }
    op->path = path;
    op->timeout_ns = WEFT_APPLY_TIMEOUT_NS;
    op->data = f;
    return f->apply->env.submit(f->apply->env.client, op, &f->call, err);
}

int weft_flight_send(struct weft_flight *f, struct weft_error *err)
{
    const struct weft_step *step = weft_flight_step(f);
    const char *uid = "";
    const char *version = "";
    weft_flight_preconditions(f, &uid, &version);
    struct weft_kube_op op = {.on_done = weft_answer_written};
    if (step->kind == WEFT_STEP_DELETE) {
        op.verb = WEFT_KUBE_DELETE;
        op.uid = uid;
        op.resource_version = version;
        return send_op(f, &op, step->object.name, err);
    }
    const bool create = step->kind == WEFT_STEP_CREATE;
    if (!create && version[0] == '\0') {
        /* without it the server would overwrite whatever is there */
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "HyperNode %s: no resourceVersion",
                            step->object.name);
    }
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, WEFT_KUBE_REQUEST_MAX);
    const int rc = encode(f->apply, step, create ? "" : version, &buf);
    if (rc < 0) {
        return weft_err_errno(err, -rc, "HyperNode %s", step->object.name);
    }
    op.verb = create ? WEFT_KUBE_CREATE : WEFT_KUBE_REPLACE;
    op.body = weft_buf_text(&buf);
    op.body_len = buf.len;
    return send_op(f, &op, create ? NULL : step->object.name, err);
}

int weft_flight_read(struct weft_flight *f, struct weft_error *err)
{
    struct weft_kube_op op = {.verb = WEFT_KUBE_GET, .on_done = weft_answer_read};
    return send_op(f, &op, weft_flight_step(f)->object.name, err);
}
