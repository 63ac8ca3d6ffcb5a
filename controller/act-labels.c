/* SPDX-License-Identifier: Apache-2.0 */
/* The labels of a decision, after its HyperNodes. Must not decide what they are. */
#include "controller/act.h"

#include <string.h>

#include "controller/controller-internal.h"
#include "controller/labelled.h"
#include "controller/labels.h"
#include "controller/options.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/json/json.h"
#include "pkg/kube/client.h"
#include "pkg/kube/meta.h"
#include "pkg/source/config.h"

enum { NODE_LABELS_MAX = 256 };

static uint64_t version(void *data, const char *node)
{
    const struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    const struct weft_view_node *entry = weft_view_nodes_get(&c->nodes, node);
    return entry != NULL ? entry->version : 0;
}

static void on_node(void *data, const struct weft_json *node)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    const struct weft_json *metadata = weft_json_get(node, "metadata");
    const struct weft_json *labels = weft_json_get(metadata, "labels");
    struct weft_kube_pair pairs[NODE_LABELS_MAX];
    const char *name = weft_json_string(weft_json_get(metadata, "name"));
    const char *uid = weft_json_string(weft_json_get(metadata, "uid"));
    const char *version = weft_json_string(weft_json_get(metadata, "resourceVersion"));
    const size_t count = weft_json_count(labels);
    if (name == NULL || uid == NULL || version == NULL || count > NODE_LABELS_MAX) {
        return; /* the watch brings it too */
    }
    for (size_t i = 0; i < count; i++) {
        const struct weft_json *label = weft_json_at(labels, i);
        const char *value = weft_json_string(label);
        pairs[i] = (struct weft_kube_pair){weft_json_key(label), value != NULL ? value : ""};
    }
    const struct weft_kube_meta meta = {.name = name,
                                        .ns = "",
                                        .uid = uid,
                                        .resource_version = version,
                                        .labels = pairs,
                                        .label_count = count};
    enum weft_view_change change = WEFT_VIEW_SAME;
    (void)!weft_view_nodes_put(&c->nodes, &meta, &change);
}

static void on_label_error(void *data, const char *node, const struct weft_error *err, bool retry)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    weft_log(WEFT_LOG_WARN, "node not labelled", WEFT_KV_S("node", node),
             WEFT_KV_S("error", err->message), WEFT_KV_S("audit_id", err->request_id),
             WEFT_KV_S("next", retry ? "retry" : "give up"));
}

static void on_labels_done(void *data, const struct weft_labels_result *result)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    c->stats.labels_written += result->written;
    c->stats.labels_failed += result->failed;
    weft_log(WEFT_LOG_INFO, "nodes labelled", WEFT_KV_I("written", result->written),
             WEFT_KV_I("failed", result->failed), WEFT_KV_I("stale", result->stale));
    c->labels_stale = result->stale > 0 && result->written == 0 ? c->labels_stale + 1 : 0;
    if (c->stopping) {
        weft_controller_settled(c);
    } else if (result->failed > 0 && !c->options->once) {
        weft_controller_back_off(c, WAIT_REFUSED_NS, false);
    } else if (result->stale > 0 && !result->stopped) {
        weft_act_conflict(c, c->labels_stale);
    } else if (!result->stopped || c->options->once) {
        weft_act_pass_ended(c, result->failed == 0 && !result->stopped);
    } else {
        /* a pause or a Lease that was lost asks for the pass when it is over; a renewal that comes
         * late does not */
        weft_controller_back_off(c, WAIT_RETRY_NS, true);
    }
}

static int new_labels(struct weft_controller *c, struct weft_error *err)
{
    if (c->labels != NULL) {
        return 0;
    }
    const struct weft_labels_env env = {
        .submit = weft_kube_submit,
        .cancel = weft_kube_call_cancel,
        .client = c->client,
        .may_write = weft_act_may_write,
        .version = version,
        .on_node = on_node,
        .on_error = on_label_error,
        .on_done = on_labels_done,
        .data = c,
    };
    return weft_labels_new(c->loop, c->ours.prefix, c->options->label_rate, &env, &c->labels, err);
}

bool weft_controller_needs_labels(const struct weft_controller *c, const struct weft_node *node,
                                  const char *values[WEFT_LAYOUT_TIERS_MAX], size_t *ret_count)
{
    *ret_count = weft_decision_labels(&c->decision, node->name, values);
    for (size_t i = 0; i < *ret_count && c->stuck_count > 0; i++) {
        if (!weft_hypernode_set_find(&c->hypernodes.set, values[i], NULL)) {
            return false; /* a label never names a HyperNode that could not be made */
        }
    }
    return !weft_labels_current(node, c->ours.prefix, values, *ret_count) &&
           !(*ret_count == 0 && weft_labelled_by_other(node, &c->ours, &c->hypernodes.set));
}

/* Queues every Node whose labels are not what they should be; returns how many. */
static size_t queue_labels(struct weft_controller *c)
{
    size_t queued = 0;
    weft_labels_clear(c->labels);
    for (size_t i = 0; i < c->nodes.count; i++) {
        const struct weft_view_node *entry = &c->nodes.items[i];
        const char *values[WEFT_LAYOUT_TIERS_MAX];
        if (entry->gone) {
            continue;
        }
        size_t count = 0;
        if (!weft_controller_needs_labels(c, &entry->node, values, &count) ||
            weft_labels_under_way(c->labels, entry->node.name, values, count)) {
            continue;
        }
        if (weft_labels_add(c->labels, entry->node.name, entry->node.uid, values, count) < 0) {
            weft_log(WEFT_LOG_ERROR, "out of memory", WEFT_KV_S("for", entry->node.name));
            return queued;
        }
        queued++;
    }
    return queued;
}

void weft_act_labels(struct weft_controller *c)
{
    struct weft_error err = {0};
    if (!c->config->outputs.labels || c->decision.keep.frozen) {
        weft_act_pass_ended(c, true);
        return;
    }
    if (new_labels(c, &err) < 0) {
        weft_log(WEFT_LOG_ERROR, "labels", WEFT_KV_S("error", err.message));
        weft_controller_back_off(c, WAIT_RETRY_NS, false);
        return;
    }
    if (queue_labels(c) == 0 && !weft_labels_busy(c->labels)) {
        weft_act_pass_ended(c, true);
        return;
    }
    weft_labels_start(c->labels);
    weft_controller_schedule(c);
}
