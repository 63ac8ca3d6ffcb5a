/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the controller as pages. Reads only. */
#include "controller/observe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "controller/controller-internal.h"
#include "controller/options.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/http/http.h"
#include "pkg/source/config.h"
#include "pkg/tree/tree.h"

enum { STATUS_NOT_FOUND = 404, STATUS_UNAVAILABLE = 503, TIER_TEXT_MAX = 24 };

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

/* Findings are sorted by kind. */
static void put_findings(const struct weft_controller *c, struct weft_buf *buf)
{
    const struct weft_tree *tree = c->decision.tree;
    const size_t count = tree != NULL ? tree->finding_count : 0;
    weft_metric_head(buf, "weft_findings", WEFT_METRIC_GAUGE,
                     "What is odd in the sources, by kind; docs/tree.md says what each means.");
    for (size_t i = 0, end = 0; i < count; i = end) {
        const char *kind = tree->findings[i].kind;
        while (end < count && strcmp(tree->findings[end].kind, kind) == 0) {
            end++;
        }
        const char *const labels[] = {"kind", kind, NULL};
        weft_metric_value(buf, "weft_findings", labels, end - i);
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

static void put_metrics(const struct weft_controller *c, struct weft_http_answer *answer)
{
    static const char *const version[] = {"version", WEFT_VERSION, NULL};
    answer->type = WEFT_METRICS_TYPE;
    weft_metric_head(&answer->body, "weft_build_info", WEFT_METRIC_GAUGE, "The version; always 1.");
    weft_metric_value(&answer->body, "weft_build_info", version, 1);
    put_state(c, &answer->body);
    put_history(&c->stats, &answer->body);
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
    const struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    if (strcmp(path, "/metrics") == 0) {
        put_metrics(c, answer);
    } else if (strcmp(path, "/livez") == 0) { /* the loop turns, or nobody would answer */
        (void)weft_buf_puts(&answer->body, "ok\n");
    } else if (strcmp(path, "/readyz") == 0) {
        put_ready(c, answer);
    } else {
        answer->status = STATUS_NOT_FOUND;
        (void)weft_buf_puts(&answer->body, "/metrics /livez /readyz\n");
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
