/* SPDX-License-Identifier: Apache-2.0 */
/* Who may write, and how writing ends: the Lease, and an orderly stop. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/act.h"
#include "controller/controller-internal.h"
#include "controller/options.h"
#include "pkg/apply/apply.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/json/json.h"
#include "pkg/kube/client.h"
#include "pkg/kube/lease.h"
#include "pkg/loop/loop.h"
#include "pkg/source/config.h"

/* a little more than one write may take */
#define STOP_NS (6 * WEFT_NS_PER_S)
/* A Lease whose holder died is free after 15 s and a look or two. An API server that restarts is
 * back in that time as well. */
#define ONCE_WAIT_NS (30 * WEFT_NS_PER_S)

/* The Lease is tried every two seconds: an error that stays is a line so seldom. */
#define LEASE_TELL_NS (60 * WEFT_NS_PER_S)

/* more than lies between two looks at the Lease: 2.4 s, and 4 s for an answer */
#define LOOK_MAX_NS (8 * WEFT_NS_PER_S)

static const struct weft_kube_resource namespaces = {
    .group = "", .version = "v1", .plural = "namespaces"};

/* ---- the Lease ---- */

static void on_acquired(void *data)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    struct weft_error err = {0};
    c->leading = true;
    c->stats.leads++;
    c->failing_since = 0;
    c->lease_told[0] = '\0';
    weft_timer_stop(c->deadline);
    weft_log(WEFT_LOG_INFO, "leading", WEFT_KV_S("identity", c->identity));
    weft_debounce_init(&c->debounce, c->config->debounce.quiet_ns, c->config->debounce.max_ns);
    weft_controller_tell_lead(c, true);
    if (weft_controller_lead(c, &err) < 0) {
        weft_log(WEFT_LOG_ERROR, "cannot watch", WEFT_KV_S("error", err.message));
        weft_controller_stop(c, 1);
    }
}

static void on_lost(void *data)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    c->leading = false;
    weft_controller_tell_lead(c, false);
    weft_log(WEFT_LOG_WARN, "not leading any more");
    if (c->options->once && !c->stopping) {
        weft_timer_start(c->deadline, ONCE_WAIT_NS, 0);
    }
    if (c->apply != NULL) {
        weft_apply_stop(c->apply);
    }
    if (c->options->once) {
        weft_controller_stop_watching(c);
    } /* else it follows, warm: the next leader knows the cluster already */
}

/* A follower watches from when it knows that it is one: a leader's first list starts with its
 * Lease, and one begun before would be thrown away half read. A run that ends by itself waits for
 * the Lease without load on the server. */
static void follow(struct weft_controller *c)
{
    struct weft_error err = {0};
    if (c->node_reflector != NULL || c->options->once || c->stopping) {
        return;
    }
    if (weft_controller_start_watching(c, &err) < 0) {
        weft_log(WEFT_LOG_ERROR, "cannot watch", WEFT_KV_S("error", err.message));
        weft_controller_stop(c, 1);
    }
}

static void on_holder(void *data, const char *holder)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    (void)snprintf(c->other_holder, sizeof(c->other_holder), "%s", holder);
    c->last_error = (struct weft_error){0}; /* the server does answer */
    weft_log(WEFT_LOG_INFO, "another leads", WEFT_KV_S("holder", holder));
    follow(c);
}

static void on_namespace(void *data, const struct weft_kube_result *result)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    if (result->error.code == 0) {
        weft_log(WEFT_LOG_INFO, "namespace created", WEFT_KV_S("name", c->options->ns));
    } else if (result->status != 409) {
        weft_log(WEFT_LOG_WARN, "namespace not created", WEFT_KV_S("name", c->options->ns),
                 WEFT_KV_S("error", result->error.message));
    }
}

/* Outside of the cluster, with a person's own rights, the namespace of the Lease is made if it is
 * missing; in a pod it is there, since the pod stands in it. */
static void create_namespace(struct weft_controller *c)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 4096);
    struct weft_json_writer w;
    weft_json_writer_init(&w, &buf, 0);
    weft_json_open(&w, '{');
    weft_json_kv_string(&w, "apiVersion", "v1");
    weft_json_kv_string(&w, "kind", "Namespace");
    weft_json_put_key(&w, "metadata");
    weft_json_open(&w, '{');
    weft_json_kv_string(&w, "name", c->options->ns);
    weft_json_close(&w, '}');
    weft_json_close(&w, '}');
    weft_autofree char *path = weft_kube_path(&namespaces, NULL, NULL);
    if (path == NULL || buf.status < 0) {
        return;
    }
    const struct weft_kube_op op = {.verb = WEFT_KUBE_CREATE,
                                    .path = path,
                                    .body = weft_buf_text(&buf),
                                    .body_len = buf.len,
                                    .on_done = on_namespace,
                                    .data = c};
    (void)!weft_kube_submit(c->client, &op, NULL, NULL);
}

static void log_error(struct weft_controller *c, const struct weft_error *error)
{
    const int64_t now = weft_controller_now();
    const bool told =
        strcmp(c->lease_told, error->message) == 0 && now - c->lease_told_at < LEASE_TELL_NS;
    weft_log(told ? WEFT_LOG_DEBUG : WEFT_LOG_WARN, "lease", WEFT_KV_S("name", c->options->lease),
             WEFT_KV_S("error", error->message), WEFT_KV_S("audit_id", error->request_id));
    if (!told) {
        (void)snprintf(c->lease_told, sizeof(c->lease_told), "%s", error->message);
        c->lease_told_at = now;
    }
}

static void on_error(void *data, const struct weft_error *error)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    log_error(c, error);
    if (error->domain == WEFT_ERR_HTTP && error->domain_code == 404 &&
        getenv("KUBERNETES_SERVICE_HOST") == NULL) {
        create_namespace(c);
    }
    weft_controller_met_error(c, error);
    follow(c); /* warm, and the log tells which requests fail and which do not */
}

/* ---- a run that is to end by itself ---- */

/* Will the same request fail in the same way until a person changes something? */
static bool is_permanent(const struct weft_error *error)
{
    const bool denied =
        error->domain == WEFT_ERR_HTTP && (error->domain_code == 401 || error->domain_code == 403);
    return !error->retryable && (denied || error->domain == WEFT_ERR_CURL);
}

static void give_up(struct weft_controller *c)
{
    /* an error of long ago, with looks at the other's Lease since then, is over */
    const bool over =
        c->other_holder[0] != '\0' && weft_controller_now() - c->last_error_at > LOOK_MAX_NS;
    if (c->last_error.code != 0 && !over) {
        weft_log(WEFT_LOG_ERROR, "the API server cannot be used",
                 WEFT_KV_S("error", c->last_error.message));
    } else if (c->other_holder[0] != '\0') {
        weft_log(WEFT_LOG_ERROR, "the Lease was not free", WEFT_KV_S("holder", c->other_holder),
                 WEFT_KV_S("hint", c->options->uninstall
                                       ? "stop the running controller first (scale its Deployment "
                                         "to 0 replicas): it would make again what is removed"
                                       : "a running controller already does what --once would do"));
    } else {
        weft_log(WEFT_LOG_ERROR, "the API server did not answer in time");
    }
    weft_controller_stop(c, 1);
}

void weft_controller_met_error(struct weft_controller *c, const struct weft_error *error)
{
    const bool ends = c->options->once || weft_controller_reads_only(c);
    if (c->stopping || !ends || weft_controller_synced(c)) {
        return; /* what the pass needs is there: a watch that fails now does not stop it */
    }
    const int64_t now = weft_controller_now();
    c->last_error = *error;
    c->last_error_at = now;
    c->failing_since = c->failing_since != 0 ? c->failing_since : now;
    /* while it waits for the Lease, the deadline's timer ends it */
    const bool waiting = !c->leading && !weft_controller_reads_only(c);
    if (is_permanent(error) || (!waiting && now - c->failing_since >= ONCE_WAIT_NS)) {
        give_up(c);
    }
}

static void on_deadline(void *data)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    if (!c->stopping) {
        give_up(c);
        return;
    }
    c->forced = true;
    weft_controller_settled(c);
}

int weft_controller_start_leader(struct weft_controller *c, struct weft_error *err)
{
    int rc = weft_timer_new(c->loop, on_deadline, c, &c->deadline, err);
    if (rc < 0) {
        return rc;
    }
    if (weft_controller_reads_only(c)) {
        return weft_controller_start_watching(c, err);
    }
    const struct weft_kube_lease_options options = {
        .ns = c->options->ns,
        .name = c->options->lease,
        .identity = c->identity,
        .duration_ns = 15 * WEFT_NS_PER_S,
        .timeout_ns = 4 * WEFT_NS_PER_S,
        .fence_ns = 6 * WEFT_NS_PER_S,
        .on_acquired = on_acquired,
        .on_lost = on_lost,
        .on_holder = on_holder,
        .on_error = on_error,
        .data = c,
    };
    if (c->options->once) {
        weft_timer_start(c->deadline, ONCE_WAIT_NS, 0);
    }
    return weft_kube_lease_new(c->client, &options, &c->lease, err);
}

bool weft_controller_reads_only(const struct weft_controller *c)
{
    return c->options->dry_run || c->options->output != NULL;
}

bool weft_controller_may_write(const struct weft_controller *c)
{
    return !c->stopping && !c->config->paused && c->leading && c->lease != NULL &&
           weft_kube_lease_fresh(c->lease);
}

/* ---- stopping ---- */

static void on_released(void *data)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    c->done = true;
    weft_loop_stop(c->loop);
}

void weft_controller_settled(struct weft_controller *c)
{
    if (!c->stopping || c->done || (weft_controller_writing(c) && !c->forced)) {
        return;
    }
    if (c->lease != NULL && !c->forced) {
        weft_timer_start(c->deadline, STOP_NS, 0);
        weft_kube_lease_release(c->lease, on_released);
        return;
    }
    on_released(c);
}

void weft_controller_stop(struct weft_controller *c, int exit_status)
{
    if (c->stopping) {
        return;
    }
    c->stopping = true;
    c->exit_status = exit_status;
    weft_timer_start(c->deadline, STOP_NS, 0);
    if (c->apply != NULL) {
        weft_apply_stop(c->apply);
    }
    weft_controller_settled(c);
}
