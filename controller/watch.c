/* SPDX-License-Identifier: Apache-2.0 */
/* Follows Nodes and HyperNodes and says when something that matters changed. Must not decide. */
#include <errno.h>
#include <string.h>

#include "controller/controller-internal.h"
#include "controller/events.h"
#include "controller/gangs.h"
#include "controller/instances.h"
#include "controller/labels.h"
#include "controller/lost.h"
#include "controller/options.h"
#include "pkg/apply/apply.h"
#include "pkg/base/log.h"
#include "pkg/kube/client.h"
#include "pkg/kube/reflector.h"

enum { FOLLOWER_GONE_MAX = 1024 };

static void no_memory(const char *what)
{
    weft_log(WEFT_LOG_ERROR, "out of memory", WEFT_KV_S("for", what));
}

static void failed(struct weft_controller *c, const char *what, const struct weft_error *error,
                   int64_t retry_ns)
{
    if (c->stopping) { /* why was said last */
        return;
    }
    weft_log(WEFT_LOG_WARN, "watch failed", WEFT_KV_S("resource", what),
             WEFT_KV_S("error", error->message), WEFT_KV_S("audit_id", error->request_id),
             WEFT_KV_I("retry_ms", retry_ns / 1000000));
    weft_controller_met_error(c, error);
}

/* ---- Nodes ---- */

static void nodes_on_list(void *data)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    c->nodes_synced = false;
    c->nodes_listing_since = weft_controller_now();
    weft_view_nodes_list(&c->nodes);
}

/* A Node that has a place may be about to leave it. A pass that finds so would have to wait for
 * what is known of gangs on it, and to begin again. */
static void ask_ahead(struct weft_controller *c, const struct weft_view_node *entry)
{
    const bool placed = entry != NULL && entry->source != SIZE_MAX;
    if (placed && c->nodes_synced && c->leading && c->config->move_delay_ns > 0) {
        weft_gangs_ask_ahead(c->gangs, entry->node.name);
    }
}

static void nodes_on_object(void *data, enum weft_kube_change change,
                            const struct weft_kube_object *object)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    if (change == WEFT_KUBE_DELETED) {
        weft_view_nodes_gone(&c->nodes, object->meta.name, object->meta.uid);
        if (!c->leading && c->nodes.gone_count > FOLLOWER_GONE_MAX) {
            weft_view_nodes_forget(&c->nodes); /* no pass of ours will */
        }
        weft_controller_changed(c, false);
        return;
    }
    enum weft_view_change what = WEFT_VIEW_SAME;
    if (weft_view_nodes_put(&c->nodes, &object->meta, &what) < 0) {
        /* the Node's state of before stays; the next list brings the new one */
        no_memory(object->meta.name);
        return;
    }
    const struct weft_view_node *entry = weft_view_nodes_get(&c->nodes, object->meta.name);
    const bool own_write = c->nodes_synced && c->labels != NULL && entry != NULL &&
                           weft_labels_expects(c->labels, &entry->node);
    if (c->instances != NULL && entry != NULL && entry->instance == NULL) {
        weft_instances_look(c->instances);
    }
    if (what != WEFT_VIEW_SAME && !own_write) {
        ask_ahead(c, entry);
        weft_controller_changed(c, false);
    }
}

static void nodes_on_synced(void *data)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    c->nodes_synced = true;
    c->failing_since = 0;
    if (weft_view_nodes_listed(&c->nodes)) {
        weft_controller_changed(c, false);
    }
    weft_log(WEFT_LOG_INFO, "nodes listed",
             WEFT_KV_I("count", c->nodes.count - c->nodes.gone_count),
             WEFT_KV_I("ms", (weft_controller_now() - c->nodes_listing_since) / 1000000));
    weft_controller_schedule(c);
}

static void nodes_on_error(void *data, const struct weft_error *error, int64_t retry_ns)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    failed(c, "nodes", error, retry_ns);
}

/* ---- HyperNodes ---- */

static void hypernodes_on_list(void *data)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    c->hypernodes_synced = false;
    if (weft_view_hypernodes_list(&c->hypernodes) < 0) {
        no_memory("list of HyperNodes");
    }
}

/* Somebody else changed what the plan under way was made from: it ends after the write that is
 * awaited, and a new one is made. */
static void world_changed(struct weft_controller *c, bool rush)
{
    if (c->apply != NULL) {
        weft_apply_stop(c->apply);
    }
    weft_controller_changed(c, rush);
}

/* What another owner's object of that name listed and does not any more, if ours list it too. */
static void claims_gone(struct weft_controller *c, const char *name,
                        const struct weft_hypernode *after)
{
    weft_auto(weft_hypernode_done) struct weft_hypernode before = {0};
    const struct weft_hypernode *known = weft_hypernode_set_get(&c->hypernodes.set, name);
    if (known == NULL || weft_hypernode_is_ours(known, c->ours.instance) ||
        weft_hypernode_copy(known, &before) < 0) {
        return;
    }
    if (weft_view_hypernodes_tear(&c->hypernodes, c->ours.instance, &before, after)) {
        weft_log(WEFT_LOG_INFO, "another owner's claim is gone", WEFT_KV_S("hypernode", name));
        weft_controller_changed(c, true);
    }
}

static void hypernode_gone(struct weft_controller *c, const struct weft_hypernode *hn)
{
    const bool ours = weft_hypernode_is_ours(hn, c->ours.instance);
    const bool own_write = c->apply != NULL && weft_apply_expects_gone(c->apply, hn->name);
    if (!ours) {
        claims_gone(c, hn->name, NULL);
    }
    if (weft_view_hypernodes_gone(&c->hypernodes, hn->name, hn->uid) && !own_write) {
        /* one of ours that we did not delete: its parent dangles, so no debounce */
        if (ours) {
            weft_lost_note(&c->lost, hn);
        }
        world_changed(c, ours);
    }
}

static void hypernodes_on_object(void *data, enum weft_kube_change change,
                                 const struct weft_kube_object *object)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    struct weft_error err = {0};
    struct weft_hypernode hn = {0};
    if (weft_hypernode_from_json(object->doc, c->ours.prefix, &hn, &err) < 0) {
        weft_log(WEFT_LOG_WARN, "HyperNode not understood", WEFT_KV_S("name", object->meta.name),
                 WEFT_KV_S("error", err.message));
        return;
    }
    if (change == WEFT_KUBE_DELETED) {
        hypernode_gone(c, &hn);
        weft_hypernode_done(&hn);
        return;
    }
    const bool own_write = c->apply != NULL && weft_apply_expects(c->apply, &hn);
    claims_gone(c, hn.name, &hn);
    enum weft_view_change what = WEFT_VIEW_SAME;
    if (weft_view_hypernodes_put(&c->hypernodes, &hn, &what) < 0) {
        no_memory(object->meta.name);
        return;
    }
    if (what != WEFT_VIEW_SAME && !own_write) {
        world_changed(c, false);
    }
}

static void gone_between_lists(void *data, const struct weft_hypernode *hn)
{
    struct weft_controller *c = data;
    weft_lost_note(&c->lost, hn);
}

static void hypernodes_on_synced(void *data)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    c->hypernodes_synced = true;
    c->failing_since = 0;
    if (c->crd_missing) {
        c->crd_missing = false;
        weft_log(WEFT_LOG_INFO, "HyperNodes are served now");
        weft_events_clear(c->events, "Lease", c->options->lease, "HyperNodesNotServed");
        weft_controller_look_beside(c);
        weft_controller_changed(c, true);
    }
    if (weft_view_hypernodes_listed(&c->hypernodes, gone_between_lists, c)) {
        world_changed(c, true);
    }
    weft_controller_probe_schema(c, true);
    weft_controller_schedule(c);
}

static void crd_missing(struct weft_controller *c, int64_t retry_ns)
{
    const bool news = !c->crd_missing;
    c->crd_missing = true;
    c->hypernodes_synced = false;
    weft_view_hypernodes_clear(&c->hypernodes);
    if (c->leading || weft_controller_reads_only(c)) { /* of two controllers one says it */
        weft_controller_say(
            c, true, "HyperNodesNotServed", "WriteHyperNodes",
            "The API server does not serve hypernodes of " WEFT_HYPERNODE_API_VERSION
            ": is Volcano installed? Node labels are written; it is looked for again every "
            "minute.");
    }
    if (news) {
        weft_controller_look_beside(c);
        weft_log(WEFT_LOG_WARN, "HyperNodes are not served", WEFT_KV_S("want", "Volcano's CRD"),
                 WEFT_KV_I("retry_ms", retry_ns / 1000000));
        weft_controller_changed(c, true);
    }
}

static void hypernodes_on_error(void *data, const struct weft_error *error, int64_t retry_ns)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    if (error->domain == WEFT_ERR_HTTP && error->domain_code == 404) {
        crd_missing(c, retry_ns);
        return;
    }
    failed(c, "hypernodes", error, retry_ns);
}

/* ---- which instance a Node is ---- */

static void on_instances_known(void *data, bool news)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    if (news) {
        weft_controller_changed(c, false);
    }
    weft_controller_schedule(c);
}

static void on_instance_error(void *data, const char *node, const struct weft_error *err)
{
    (void)data;
    weft_log(WEFT_LOG_WARN, "node not read", WEFT_KV_S("node", node),
             WEFT_KV_S("for", "spec.providerID"), WEFT_KV_S("error", err->message),
             WEFT_KV_S("audit_id", err->request_id));
}

int weft_controller_configure_instances(struct weft_controller *c, struct weft_error *err)
{
    const bool wanted = weft_instances_wanted(c->config);
    if (wanted == (c->instances != NULL)) {
        return 0;
    }
    if (!wanted) {
        weft_instances_free(weft_steal(&c->instances));
        return 0;
    }
    const struct weft_instances_env env = {
        .submit = weft_kube_submit,
        .cancel = weft_kube_call_cancel,
        .client = c->client,
        .nodes = &c->nodes,
        .on_known = on_instances_known,
        .on_error = on_instance_error,
        .data = c,
    };
    const int rc = weft_instances_new(c->loop, &env, &c->instances, err);
    if (rc == 0) {
        weft_instances_look(c->instances);
    }
    return rc;
}

int weft_controller_instances(const struct weft_controller *c,
                              struct weft_nic_inventory **ret_inventory, struct weft_error *err)
{
    if (c->instances == NULL) {
        return 0;
    }
    return weft_instances_inventory(&c->nodes, ret_inventory) < 0 ? weft_err_nomem(err) : 0;
}

/* ---- both ---- */

bool weft_controller_synced(const struct weft_controller *c)
{
    return c->nodes_synced && (c->hypernodes_synced || c->crd_missing);
}

static int start(struct weft_controller *c, const struct weft_kube_resource *resource,
                 struct weft_kube_reflector_options *options,
                 struct weft_kube_reflector **ret_reflector, struct weft_error *err)
{
    weft_autofree char *path = weft_kube_path(resource, NULL, NULL);
    if (path == NULL) {
        return weft_err_nomem(err);
    }
    options->path = path;
    options->watcher.data = c;
    return weft_kube_reflector_new(c->client, options, ret_reflector, err);
}

int weft_controller_start_watching(struct weft_controller *c, struct weft_error *err)
{
    struct weft_kube_reflector_options nodes = {
        .codec = WEFT_KUBE_METADATA,
        .idle_ns = c->options->watch_idle_ns,
        .watcher = {.on_list = nodes_on_list,
                    .on_object = nodes_on_object,
                    .on_synced = nodes_on_synced,
                    .on_error = nodes_on_error},
    };
    struct weft_kube_reflector_options hypernodes = {
        .codec = WEFT_KUBE_JSON,
        .idle_ns = c->options->watch_idle_ns,
        .missing_retry_ns = c->options->crd_retry_ns,
        .watcher = {.on_list = hypernodes_on_list,
                    .on_object = hypernodes_on_object,
                    .on_synced = hypernodes_on_synced,
                    .on_error = hypernodes_on_error},
    };
    weft_controller_stop_watching(c);
    int rc = weft_controller_configure_instances(c, err);
    rc = rc < 0 ? rc : start(c, &weft_kube_nodes, &nodes, &c->node_reflector, err);
    if (rc == 0) {
        rc = start(c, &weft_kube_hypernodes, &hypernodes, &c->hypernode_reflector, err);
    }
    return rc;
}

int weft_controller_lead(struct weft_controller *c, struct weft_error *err)
{
    if (c->node_reflector == NULL || c->hypernode_reflector == NULL) {
        return weft_controller_start_watching(c, err);
    }
    c->nodes_synced = false;
    c->hypernodes_synced = false;
    c->crd_missing = false;
    weft_view_nodes_start_over(&c->nodes);
    weft_kube_reflector_relist(c->node_reflector);
    weft_kube_reflector_relist(c->hypernode_reflector);
    return 0;
}

void weft_controller_stop_watching(struct weft_controller *c)
{
    weft_kube_reflector_free(c->node_reflector);
    weft_kube_reflector_free(c->hypernode_reflector);
    c->node_reflector = NULL;
    c->hypernode_reflector = NULL;
    c->nodes_synced = false;
    c->hypernodes_synced = false;
    c->crd_missing = false;
}
