/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and clears the ConfigMap of accepted changes. Must not judge changes. */
#include "controller/accept.h"

#include <errno.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/base/str.h"
#include "pkg/json/json.h"
#include "pkg/kube/client.h"
#include "pkg/loop/loop.h"

enum { MAGIC = 0x77616363, BODY_MAX = 8192 };

#define POLL_NS (5 * WEFT_NS_PER_S)
#define TIMEOUT_NS (4 * WEFT_NS_PER_S)

static const struct weft_kube_resource configmaps = {
    .group = "", .version = "v1", .plural = "configmaps"};

struct weft_accept {
    unsigned magic;
    struct weft_accept_options options;
    char *path;
    struct weft_timer *timer;
    struct weft_kube_call *call;  /* that reads */
    struct weft_kube_call *clear; /* that takes out */
    struct weft_acceptance list[WEFT_ACCEPTANCES_MAX];
    size_t count;
    struct weft_acceptance used[WEFT_ACCEPTANCES_MAX];
    size_t used_count;
    bool known;
    bool held;
};

/* ---- reading ---- */

static void next_look(struct weft_accept *a)
{
    if (a->held && a->call == NULL) {
        weft_timer_start(a->timer, POLL_NS, 0);
    }
}

static void on_read(void *data, const struct weft_kube_result *result)
{
    struct weft_accept *a = data;
    WEFT_CHECK(a, MAGIC);
    a->call = NULL;
    struct weft_acceptance list[WEFT_ACCEPTANCES_MAX] = {0};
    size_t count = 0;
    const bool read = result->error.code == 0 || result->status == 404;
    if (result->error.code == 0) {
        count = weft_accepted_read(result->body, weft_clock_realtime(weft_clock_system()), list);
    } else if (result->status != 404) {
        weft_log(WEFT_LOG_WARN, "accepted changes not read", WEFT_KV_S("configmap", a->path),
                 WEFT_KV_S("error", result->error.message));
    }
    const bool other =
        read && (count != a->count || memcmp(list, a->list, count * sizeof(list[0])) != 0);
    if (other) {
        memcpy(a->list, list, sizeof(list));
        a->count = count;
    }
    const bool first = !a->known;
    a->known = true;
    next_look(a);
    if (other || first) {
        a->options.changed(a->options.data);
    }
}

static void look(struct weft_accept *a)
{
    const struct weft_kube_op op = {.verb = WEFT_KUBE_GET,
                                    .path = a->path,
                                    .timeout_ns = TIMEOUT_NS,
                                    .on_done = on_read,
                                    .data = a};
    if (a->call == NULL && weft_kube_submit(a->options.client, &op, &a->call, NULL) < 0) {
        next_look(a);
    }
}

static void on_timer(void *data)
{
    struct weft_accept *a = data;
    WEFT_CHECK(a, MAGIC);
    look(a);
}

int weft_accept_new(struct weft_loop *loop, const struct weft_accept_options *options,
                    struct weft_accept **ret_accept, struct weft_error *err)
{
    weft_auto(weft_accept_free) struct weft_accept *a = weft_calloc(1, sizeof(*a));
    if (a == NULL) {
        return weft_err_nomem(err);
    }
    a->magic = MAGIC;
    a->options = *options;
    a->options.ns = NULL;
    a->options.instance = NULL;
    weft_autofree char *name = weft_asprintf("%s" WEFT_ACCEPTED_SUFFIX, options->instance);
    a->path = name != NULL ? weft_kube_path(&configmaps, options->ns, name) : NULL;
    if (a->path == NULL) {
        return weft_err_nomem(err);
    }
    const int rc = weft_timer_new(loop, on_timer, a, &a->timer, err);
    if (rc < 0) {
        return rc;
    }
    *ret_accept = weft_steal(&a);
    return 0;
}

void weft_accept_free(struct weft_accept *a)
{
    if (a == NULL) {
        return;
    }
    WEFT_CHECK(a, MAGIC);
    weft_kube_call_cancel(a->call);
    weft_kube_call_cancel(a->clear);
    weft_timer_free(a->timer);
    weft_free(a->path);
    a->magic = 0;
    weft_free(a);
}

bool weft_accept_known(const struct weft_accept *a)
{
    return a->known;
}

const struct weft_acceptance *weft_accept_list(const struct weft_accept *a, size_t *ret_count)
{
    *ret_count = a->count;
    return a->list;
}

void weft_accept_ask(struct weft_accept *a)
{
    if (!a->known) {
        look(a);
    }
}

void weft_accept_watch(struct weft_accept *a, bool held)
{
    const bool begins = held && !a->held;
    a->held = held;
    if (begins) {
        look(a);
    }
}

/* ---- taking out ---- */

void weft_accept_used(struct weft_accept *a, uint64_t used)
{
    for (size_t i = 0; i < a->count; i++) {
        bool known = ((used >> i) & 1) == 0;
        for (size_t k = 0; k < a->used_count && !known; k++) {
            known = strcmp(a->used[k].hash, a->list[i].hash) == 0;
        }
        if (!known && a->used_count < WEFT_ACCEPTANCES_MAX) {
            a->used[a->used_count++] = a->list[i];
        }
    }
}

static void on_cleared(void *data, const struct weft_kube_result *result)
{
    struct weft_accept *a = data;
    WEFT_CHECK(a, MAGIC);
    a->clear = NULL;
    if (result->error.code != 0 && result->status != 404) {
        /* it expires: see WEFT_ACCEPTED_GOOD_FOR_S */
        weft_log(WEFT_LOG_WARN, "accepted changes not taken out", WEFT_KV_S("configmap", a->path),
                 WEFT_KV_S("error", result->error.message));
        return;
    }
    size_t left = 0;
    for (size_t i = 0; i < a->count; i++) {
        bool used = false;
        for (size_t k = 0; k < a->used_count; k++) {
            used = used || strcmp(a->used[k].hash, a->list[i].hash) == 0;
        }
        if (!used) {
            a->list[left++] = a->list[i];
        }
    }
    a->count = left;
    a->used_count = 0;
}

void weft_accept_carried_out(struct weft_accept *a)
{
    weft_auto(weft_buf_done) struct weft_buf body;
    if (a->used_count == 0 || a->clear != NULL) {
        return;
    }
    weft_buf_init(&body, BODY_MAX);
    struct weft_json_writer w;
    weft_json_writer_init(&w, &body, 0);
    weft_json_open(&w, '{');
    weft_json_put_key(&w, "data");
    weft_json_open(&w, '{');
    for (size_t i = 0; i < a->used_count; i++) {
        weft_json_put_key(&w, a->used[i].hash);
        weft_json_put_null(&w);
    }
    weft_json_close(&w, '}');
    weft_json_close(&w, '}');
    const struct weft_kube_op op = {.verb = WEFT_KUBE_MERGE_PATCH,
                                    .path = a->path,
                                    .body = weft_buf_text(&body),
                                    .body_len = body.len,
                                    .timeout_ns = TIMEOUT_NS,
                                    .on_done = on_cleared,
                                    .data = a};
    if (body.status == 0) {
        (void)!weft_kube_submit(a->options.client, &op, &a->clear, NULL);
    }
}
