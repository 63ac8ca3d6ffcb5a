/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the controller as pages. Reads only. */
#include "controller/observe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "controller/controller-internal.h"
#include "controller/debug-tree.h"
#include "controller/events.h"
#include "controller/options.h"
#include "controller/status.h"
#include "pkg/apply/refusal.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/http/http.h"
#include "pkg/kube/client.h"
#include "pkg/source/config.h"
#include "pkg/tree/tree.h"

enum { STATUS_NOT_FOUND = 404, STATUS_UNAVAILABLE = 503, TIER_TEXT_MAX = 24, KINDS_MAX = 128 };

/* ---- what there is ---- */

static void put_gauge(struct weft_buf *buf, const char *name, const char *help, uint64_t value)
{
    weft_metric_single(buf, name, WEFT_METRIC_GAUGE, help, value);
}

static void put_nodes(const struct weft_controller *c, struct weft_buf *buf)
{
    const struct weft_tree *tree = c->decision.tree;
    const struct {
        const char *state;
        uint64_t count;
    } rows[] = {
        {"selected", c->decision.selected},
        {"placed", tree != NULL ? tree->node_count : 0},
        {"unplaced", tree != NULL ? tree->unplaced_count : 0},
        {"excluded", c->decision.excluded},
        {"kept", c->decision.keep.kept},
        {"settling", c->decision.keep.settling},
    };
    weft_metric_head(buf, "weft_nodes", WEFT_METRIC_GAUGE,
                     "Nodes as the last pass saw them; kept: in their last place, which no source "
                     "names now; settling: a move that waits until later looks agree.");
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        const char *const labels[] = {"state", rows[i].state, NULL};
        weft_metric_value(buf, "weft_nodes", labels, rows[i].count);
    }
}

static void put_hypernodes(const struct weft_controller *c, struct weft_buf *buf)
{
    const struct weft_hypernode_set *set = &c->hypernodes.set;
    uint64_t ours[WEFT_LAYOUT_TIERS_MAX + 1] = {0};
    uint64_t foreign = 0;
    for (size_t i = 0; i < set->count; i++) {
        const struct weft_hypernode *hn = &set->items[i];
        if (!weft_hypernode_is_ours(hn, c->ours.instance)) {
            foreign++;
        } else if (hn->tier >= 0 && hn->tier <= WEFT_LAYOUT_TIERS_MAX) {
            ours[hn->tier]++;
        }
    }
    weft_metric_head(buf, "weft_hypernodes", WEFT_METRIC_GAUGE,
                     "HyperNodes that exist, by tier where they are ours.");
    for (size_t tier = 0; tier <= WEFT_LAYOUT_TIERS_MAX; tier++) {
        char text[TIER_TEXT_MAX];
        (void)snprintf(text, sizeof(text), "%zu", tier);
        const char *const labels[] = {"owner", "weft", "tier", text, NULL};
        if (ours[tier] > 0) {
            weft_metric_value(buf, "weft_hypernodes", labels, ours[tier]);
        }
    }
    static const char *const other[] = {"owner", "foreign", "tier", "", NULL};
    weft_metric_value(buf, "weft_hypernodes", other, foreign);
}

/* Kinds by name; a kind may come from several lists. */
struct kinds {
    const char *names[KINDS_MAX];
    uint64_t counts[KINDS_MAX];
    size_t count;
};

static void count_kind(struct kinds *kinds, const char *kind)
{
    size_t at = 0;
    while (at < kinds->count && strcmp(kinds->names[at], kind) != 0) {
        at++;
    }
    if (at == KINDS_MAX) {
        return; /* there are not so many */
    }
    kinds->names[at] = kind;
    kinds->count += at == kinds->count ? 1 : 0;
    kinds->counts[at]++;
}

static void put_findings(const struct weft_controller *c, struct weft_buf *buf)
{
    struct weft_finding_lists all;
    struct kinds kinds = {0};
    weft_controller_findings(c, &all);
    for (size_t k = 0; k < WEFT_STATUS_LISTS; k++) {
        for (size_t i = 0; i < all.lists[k].count; i++) {
            if (!weft_finding_is_over(&all, &all.lists[k].items[i])) {
                count_kind(&kinds, all.lists[k].items[i].kind);
            }
        }
    }
    weft_metric_head(buf, "weft_findings", WEFT_METRIC_GAUGE,
                     "What is odd in the sources, in HyperNodes and in Volcano's configuration, by "
                     "kind.");
    for (size_t i = 0; i < kinds.count; i++) {
        const char *const labels[] = {"kind", kinds.names[i], NULL};
        weft_metric_value(buf, "weft_findings", labels, kinds.counts[i]);
    }
}

static void put_sources(const struct weft_controller *c, struct weft_buf *buf)
{
    weft_metric_head(buf, "weft_source_state", WEFT_METRIC_GAUGE,
                     "1 for the state that a source is in, 0 for the others.");
    for (size_t i = 0; i < c->config->source_count; i++) {
        const struct weft_source_health *health = weft_sources_health(c->sources, i);
        for (int s = 0; health != NULL && s < WEFT_SOURCE_STATE_COUNT; s++) {
            const enum weft_source_state state = (enum weft_source_state)s;
            const char *const labels[] = {"source", c->config->sources[i].name, "state",
                                          weft_source_state_name(state), NULL};
            weft_metric_value(buf, "weft_source_state", labels, health->state == state);
        }
    }
    weft_metric_head(buf, "weft_source_looks_total", WEFT_METRIC_COUNTER,
                     "Looks at a source that read something; labels are not counted.");
    for (size_t i = 0; i < c->config->source_count; i++) {
        const struct weft_source_health *health = weft_sources_health(c->sources, i);
        const char *const labels[] = {"source", c->config->sources[i].name, NULL};
        if (health != NULL) {
            weft_metric_value(buf, "weft_source_looks_total", labels, health->looks);
        }
    }
}

static void put_refusals(const struct weft_controller *c, struct weft_buf *buf)
{
    const struct weft_refusals *all = &c->decision.keep.refusals;
    uint64_t counts[WEFT_REFUSAL_KIND_COUNT] = {0};
    for (size_t i = 0; i < all->count; i++) {
        counts[all->items[i].kind]++;
    }
    weft_metric_head(buf, "weft_refused_changes", WEFT_METRIC_GAUGE,
                     "Changes that are held back until somebody accepts them, by kind.");
    for (int i = 0; i < WEFT_REFUSAL_KIND_COUNT; i++) {
        const char *const labels[] = {"kind", weft_refusal_kind_name((enum weft_refusal_kind)i),
                                      NULL};
        weft_metric_value(buf, "weft_refused_changes", labels, counts[i]);
    }
}

static void put_state(const struct weft_controller *c, struct weft_buf *buf)
{
    put_gauge(buf, "weft_leader", "1 while this process may write.", c->leading ? 1 : 0);
    put_gauge(buf, "weft_synced", "1 once all lists were read.", weft_controller_synced(c) ? 1 : 0);
    put_gauge(buf, "weft_paused", "1 while the configuration says paused.",
              c->config->paused ? 1 : 0);
    put_gauge(buf, "weft_change_refused", "1 while a brake holds a change back.",
              c->decision.keep.refused ? 1 : 0);
    put_gauge(buf, "weft_plan_writes", "HyperNode writes that the last pass asked for.",
              c->decision.plan.step_count);
    put_gauge(buf, "weft_config_error", "1 while the configuration file cannot be used.",
              c->config_error[0] != '\0' ? 1 : 0);
    put_nodes(c, buf);
    put_hypernodes(c, buf);
    put_findings(c, buf);
    put_refusals(c, buf);
    put_sources(c, buf);
}

/* ---- what happened ---- */

static void put_counter(struct weft_buf *buf, const char *name, const char *help, uint64_t value)
{
    weft_metric_single(buf, name, WEFT_METRIC_COUNTER, help, value);
}

static void put_history(const struct weft_controller_stats *s, struct weft_buf *buf)
{
    put_counter(buf, "weft_passes_total", "Passes from Nodes and sources to a plan.", s->passes);
    put_counter(buf, "weft_passes_failed_total", "Passes that came to no plan.", s->passes_failed);
    weft_metric_head(buf, "weft_pass_seconds", WEFT_METRIC_HISTOGRAM,
                     "Time of a pass, without the writes that follow.");
    weft_metric_histogram(buf, "weft_pass_seconds", NULL, &s->pass_time);
    weft_metric_head(buf, "weft_applies_total", WEFT_METRIC_COUNTER,
                     "Plans that were carried out, by how that ended.");
    for (int i = 0; i < WEFT_APPLY_OUTCOME_COUNT; i++) {
        const char *const labels[] = {"outcome",
                                      weft_apply_outcome_name((enum weft_apply_outcome)i), NULL};
        weft_metric_value(buf, "weft_applies_total", labels, s->applies[i]);
    }
    put_counter(buf, "weft_hypernode_writes_total", "Confirmed writes of HyperNodes.", s->writes);
    put_counter(buf, "weft_nodes_labelled_total", "Nodes whose labels were written.",
                s->labels_written);
    put_counter(buf, "weft_nodes_label_failed_total", "Nodes whose labels could not be written.",
                s->labels_failed);
    put_counter(buf, "weft_leader_acquired_total", "How often the Lease was taken.", s->leads);
    weft_metric_head(buf, "weft_last_pass_timestamp_seconds", WEFT_METRIC_GAUGE,
                     "When the last good pass was; 0: none yet.");
    weft_metric_real(buf, "weft_last_pass_timestamp_seconds", NULL,
                     (double)s->last_pass / (double)WEFT_NS_PER_S);
}

static void put_events(const struct weft_controller *c, struct weft_buf *buf)
{
    const struct weft_events_stats *s = weft_events_stats(c->events);
    const struct {
        const char *outcome;
        uint64_t count;
    } rows[] = {{"sent", s->sent},
                {"repeated", s->repeats},
                {"too-many", s->too_many},
                {"overflow", s->overflow},
                {"failed", s->failed}};
    weft_metric_head(buf, "weft_events_total", WEFT_METRIC_COUNTER,
                     "Events by what became of them; repeated: the same was said lately; dropped "
                     "are too-many (of one object and reason) and overflow (of the queue).");
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        const char *const labels[] = {"outcome", rows[i].outcome, NULL};
        weft_metric_value(buf, "weft_events_total", labels, rows[i].count);
    }
}

static void put_server(const struct weft_controller *c, struct weft_buf *buf)
{
    struct weft_kube_stats s = {0};
    weft_kube_client_stats(c->client, &s);
    put_counter(buf, "weft_api_requests_total", "Requests to the API server.", s.requests);
    put_counter(buf, "weft_api_write_requests_total",
                "Requests that write: POST, PUT, PATCH, DELETE; the Lease is among them.",
                s.writes);
    put_counter(buf, "weft_api_failed_requests_total", "Requests without an answer.", s.failed);
    put_counter(buf, "weft_api_received_bytes_total", "Bytes of answers, unpacked.", s.bytes_in);
    put_counter(buf, "weft_api_connections_total", "Connections that were opened.", s.connections);
    if (c->tell.status != NULL) {
        const struct weft_status_stats *status = weft_status_stats(c->tell.status);
        put_counter(buf, "weft_status_writes_total", "Writes of the status ConfigMap.",
                    status->writes);
        put_counter(buf, "weft_status_failed_writes_total",
                    "Writes and reads of the status ConfigMap that failed.", status->failures);
    }
}

static void put_metrics(const struct weft_controller *c, struct weft_http_answer *answer)
{
    static const char *const version[] = {"version", WEFT_VERSION, NULL};
    answer->type = WEFT_METRICS_TYPE;
    weft_metric_head(&answer->body, "weft_build_info", WEFT_METRIC_GAUGE, "The version; always 1.");
    weft_metric_value(&answer->body, "weft_build_info", version, 1);
    put_state(c, &answer->body);
    put_history(&c->stats, &answer->body);
    put_events(c, &answer->body);
    put_server(c, &answer->body);
    weft_metrics_process(&answer->body);
}

/* A follower is as ready as the leader once it knows the cluster: it takes over at once. */
static void put_ready(const struct weft_controller *c, struct weft_http_answer *answer)
{
    if (weft_controller_synced(c)) {
        (void)weft_buf_printf(&answer->body, "ok\nrole=%s\n", c->leading ? "leader" : "follower");
        return;
    }
    answer->status = STATUS_UNAVAILABLE;
    (void)weft_buf_printf(&answer->body, "waiting for the list of %s\n%s%s",
                          c->nodes_synced ? "HyperNodes" : "Nodes", c->last_error.message,
                          c->last_error.message[0] != '\0' ? "\n" : "");
}

static void on_page(void *data, const char *path, struct weft_http_answer *answer)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    if (strcmp(path, "/metrics") == 0) {
        put_metrics(c, answer);
    } else if (strcmp(path, "/livez") == 0) { /* the loop turns, or nobody would answer */
        (void)weft_buf_puts(&answer->body, "ok\n");
    } else if (strcmp(path, "/readyz") == 0) {
        put_ready(c, answer);
    } else if (strcmp(path, "/debug/tree") == 0) {
        weft_debug_tree(c, answer);
    } else {
        answer->status = STATUS_NOT_FOUND;
        (void)weft_buf_puts(&answer->body, "/metrics /livez /readyz /debug/tree\n");
    }
}

int weft_controller_observe(struct weft_controller *c, struct weft_error *err)
{
    if (c->options->listen == NULL) {
        return 0;
    }
    const struct weft_http_options options = {
        .loop = c->loop, .listen = c->options->listen, .answer = on_page, .data = c};
    const int rc = weft_http_new(&options, &c->http, err);
    if (rc == 0) {
        weft_log(WEFT_LOG_INFO, "listening", WEFT_KV_S("address", c->options->listen),
                 WEFT_KV_I("port", weft_http_port(c->http)));
    }
    return rc;
}
