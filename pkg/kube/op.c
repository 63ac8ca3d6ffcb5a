/* SPDX-License-Identifier: Apache-2.0 */
/* The usual calls on one object: method, media type, parameters and body of each verb. */
#include <errno.h>
#include <stdio.h>

#include "pkg/base/clock.h"
#include "pkg/json/json.h"
#include "pkg/kube/client-internal.h"
#include "pkg/kube/path.h"

static const int64_t default_timeout_ns = 30 * WEFT_NS_PER_S;

struct verb {
    const char *method;
    const char *content_type;
    bool managed; /* takes fieldManager and fieldValidation */
    bool has_body;
};

static const struct verb verbs[WEFT_KUBE_VERB_COUNT] = {
    [WEFT_KUBE_GET] = {"GET", NULL, false, false},
    [WEFT_KUBE_CREATE] = {"POST", "application/json", true, true},
    [WEFT_KUBE_REPLACE] = {"PUT", "application/json", true, true},
    [WEFT_KUBE_DELETE] = {"DELETE", "application/json", false, false},
    /* JSON is YAML; this media type takes both */
    [WEFT_KUBE_APPLY] = {"PATCH", "application/apply-patch+yaml", true, true},
    [WEFT_KUBE_MERGE_PATCH] = {"PATCH", "application/merge-patch+json", true, true},
};

static void put_query(struct weft_kube_client *client, const struct weft_kube_op *op,
                      int64_t timeout_ns, struct weft_buf *query)
{
    const struct verb *verb = &verbs[op->verb];
    if (op->query != NULL) {
        (void)weft_buf_puts(query, op->query);
    }
    if (verb->managed) {
        weft_kube_put_param(query, "fieldManager",
                            op->field_manager != NULL ? op->field_manager : client->program);
    }
    if (verb->managed && op->strict) {
        weft_kube_put_param(query, "fieldValidation", "Strict");
    }
    if (verb->managed && op->dry_run) {
        weft_kube_put_param(query, "dryRun", "All");
    }
    if (op->verb == WEFT_KUBE_APPLY && op->force) {
        weft_kube_put_param(query, "force", "true");
    }
    char text[32];
    (void)snprintf(text, sizeof(text), "%lldms", (long long)(timeout_ns / WEFT_NS_PER_MS));
    weft_kube_put_param(query, "timeout", text);
}

/* With a body the server takes the options of a DELETE from nowhere else. */
static void put_delete_options(const struct weft_kube_op *op, struct weft_buf *body)
{
    struct weft_json_writer w;
    weft_json_writer_init(&w, body, 0);
    weft_json_open(&w, '{');
    weft_json_kv_string(&w, "apiVersion", "v1");
    weft_json_kv_string(&w, "kind", "DeleteOptions");
    if (op->uid != NULL || op->resource_version != NULL) {
        weft_json_put_key(&w, "preconditions");
        weft_json_open(&w, '{');
        if (op->uid != NULL) {
            weft_json_kv_string(&w, "uid", op->uid);
        }
        if (op->resource_version != NULL) {
            weft_json_kv_string(&w, "resourceVersion", op->resource_version);
        }
        weft_json_close(&w, '}');
    }
    if (op->dry_run) {
        weft_json_put_key(&w, "dryRun");
        weft_json_open(&w, '[');
        weft_json_put_string(&w, "All");
        weft_json_close(&w, ']');
    }
    weft_json_close(&w, '}');
}

int weft_kube_submit(struct weft_kube_client *client, const struct weft_kube_op *op,
                     struct weft_kube_call **ret_call, struct weft_error *err)
{
    const struct verb *verb = &verbs[op->verb];
    if (verb->has_body != (op->body != NULL)) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_HTTP, "%s %s: %s", verb->method, op->path,
                            verb->has_body ? "no body" : "a body is not allowed");
    }
    const int64_t timeout_ns = op->timeout_ns > 0 ? op->timeout_ns : default_timeout_ns;
    weft_auto(weft_buf_done) struct weft_buf query;
    weft_auto(weft_buf_done) struct weft_buf options;
    weft_buf_init(&query, 8192);
    weft_buf_init(&options, 1024);
    put_query(client, op, timeout_ns, &query);
    if (op->verb == WEFT_KUBE_DELETE) {
        put_delete_options(op, &options);
    }
    if (query.status < 0 || options.status < 0) {
        return weft_err_set(err, query.status < 0 ? query.status : options.status, WEFT_ERR_HTTP,
                            "%s %s: the parameters take too much memory", verb->method, op->path);
    }
    const bool is_delete = op->verb == WEFT_KUBE_DELETE;
    const struct weft_kube_request request = {
        .method = verb->method,
        .path = op->path,
        .query = weft_buf_text(&query),
        .content_type = verb->content_type,
        .body = is_delete ? weft_buf_text(&options) : op->body,
        .body_len = is_delete ? options.len : op->body_len,
        .timeout_ns = timeout_ns,
        .body_max = WEFT_KUBE_BODY_MAX,
    };
    const struct weft_kube_stream callbacks = {.on_done = op->on_done, .data = op->data};
    return weft_kube_call_start(client, &request, &callbacks, ret_call, err);
}
