/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the parts together, runs the loop, takes them apart. */
#include "controller/controller.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "controller/affected.h"
#include "controller/controller-internal.h"
#include "controller/events.h"
#include "controller/instances.h"
#include "controller/labels.h"
#include "controller/options.h"
#include "controller/output.h"
#include "pkg/apply/apply.h"
#include "pkg/base/log.h"
#include "pkg/http/http.h"
#include "pkg/kube/client.h"
#include "pkg/kube/config.h"
#include "pkg/kube/event.h"
#include "pkg/kube/lease.h"
#include "pkg/loop/loop.h"
#include "pkg/source/config.h"

static void on_end_signal(void *data)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    weft_log(WEFT_LOG_INFO, "stopping");
    if (c->stopping) { /* asked twice: now */
        c->forced = true;
        weft_controller_settled(c);
        return;
    }
    weft_controller_stop(c, 0);
}

static void on_hangup(void *data)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    weft_controller_reload(c);
}

/* The pod's or the host's name, and what makes it this process. */
static void make_identity(struct weft_controller *c)
{
    char host[128] = "";
    const char *name = getenv("POD_NAME");
    if (name == NULL || name[0] == '\0') {
        (void)gethostname(host, sizeof(host) - 1);
        name = host;
    }
    uint64_t random = 0;
    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random)) {
        random = (uint64_t)weft_controller_now() ^ ((uint64_t)getpid() << 32);
    }
    c->jitter = random;
    (void)snprintf(c->identity, sizeof(c->identity), "%.200s_%08" PRIx64, name,
                   random & UINT32_MAX);
}

static int start_signals(struct weft_controller *c, struct weft_error *err)
{
    int rc = weft_signal_new(c->loop, SIGTERM, on_end_signal, c, &c->signals[0], err);
    if (rc == 0) {
        rc = weft_signal_new(c->loop, SIGINT, on_end_signal, c, &c->signals[1], err);
    }
    if (rc == 0) {
        rc = weft_signal_new(c->loop, SIGHUP, on_hangup, c, &c->signals[2], err);
    }
    return rc;
}

static int start_client(struct weft_controller *c, struct weft_error *err)
{
    struct weft_kube_config *config = NULL;
    int rc = weft_kube_config_load(c->options->kubeconfig, c->options->context, &config, err);
    if (rc < 0) {
        return rc;
    }
    const char *warning = weft_kube_config_warning(config);
    if (warning != NULL) {
        weft_log(WEFT_LOG_WARN, "API server", WEFT_KV_S("warning", warning));
    }
    rc = weft_kube_client_new(c->loop, config, "weft-controller", &c->client, err);
    if (rc < 0) {
        return rc;
    }
    const struct weft_events_options events = {
        .post = weft_kube_event_post,
        .cancel = weft_kube_call_cancel,
        .client = weft_controller_reads_only(c) ? NULL : c->client,
        .instance = c->identity,
    };
    return weft_events_new(c->loop, &events, &c->events, err);
}

static int start(struct weft_controller *c, struct weft_error *err)
{
    int rc = weft_view_nodes_init(&c->nodes, c->ours.prefix);
    if (rc < 0) {
        return weft_err_nomem(err);
    }
    rc = weft_loop_new(&c->loop, err);
    if (rc >= 0) {
        rc = weft_controller_start_sources(c, err);
    }
    if (rc >= 0) {
        rc = weft_controller_load_config(c, err);
    }
    if (rc >= 0) {
        rc = start_signals(c, err);
    }
    if (rc >= 0) {
        rc = start_client(c, err);
    }
    if (rc >= 0) {
        rc = weft_controller_pass_init(c, err);
    }
    if (rc >= 0) {
        rc = weft_controller_tell_init(c, err);
    }
    if (rc >= 0) {
        rc = weft_controller_read_against(c->options, &c->against, err);
    }
    if (rc >= 0) {
        rc = weft_controller_read_pods(c->options, &c->pods, err);
    }
    if (rc >= 0 && !c->options->once && !weft_controller_reads_only(c)) {
        rc = weft_controller_watch_files(c, err);
    }
    if (rc >= 0) {
        rc = weft_controller_observe(c, err);
    }
    return rc >= 0 ? weft_controller_start_leader(c, err) : rc;
}

static void finish(struct weft_controller *c)
{
    weft_http_free(c->http);
    weft_apply_free(c->apply);
    weft_labels_free(c->labels);
    weft_instances_free(c->instances);
    weft_kube_lease_free(c->lease);
    weft_controller_tell_done(c);
    if (c->loop != NULL) {
        weft_controller_stop_watching(c);
    }
    weft_events_free(c->events);
    weft_controller_pass_done(c);
    weft_kube_client_free(c->client);
    weft_timer_free(c->deadline);
    weft_timer_free(c->poll);
    weft_sources_free(c->sources);
    weft_dirwatch_free(c->config_watch);
    weft_timer_free(c->reread);
    for (size_t i = 0; i < WEFT_ARRAY_LEN(c->signals); i++) {
        weft_signal_free(c->signals[i]);
    }
    weft_loop_free(c->loop);
    weft_view_nodes_done(&c->nodes);
    weft_view_hypernodes_done(&c->hypernodes);
    weft_hypernode_set_done(&c->lost);
    weft_hypernode_set_done(&c->against);
    weft_pods_done(&c->pods);
    weft_config_free(c->config);
    weft_free(c->config_text);
    weft_free(c->epoch);
}

int weft_controller_run(const struct weft_options *options, struct weft_error *err)
{
    struct weft_controller *c = weft_calloc(1, sizeof(*c));
    if (c == NULL) {
        return weft_err_nomem(err);
    }
    c->magic = WEFT_CONTROLLER_MAGIC;
    c->options = options;
    c->ours = (struct weft_names_of_ours){.prefix = options->prefix, .instance = options->instance};
    make_identity(c);
    int rc = start(c, err);
    if (rc >= 0) {
        weft_log(WEFT_LOG_INFO, "started", WEFT_KV_S("version", WEFT_VERSION),
                 WEFT_KV_S("config", options->config != NULL ? options->config : ""),
                 WEFT_KV_S("server", weft_kube_config_server(weft_kube_client_config(c->client))));
        weft_events_hold(c->events, c->config->paused);
        if (c->config->paused) {
            weft_log(WEFT_LOG_INFO, "paused");
        }
        weft_loop_run(c->loop);
        rc = c->exit_status;
    }
    finish(c);
    c->magic = 0;
    weft_free(c);
    return rc;
}
