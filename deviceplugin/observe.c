/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted and what is there, as pages. */
#include "deviceplugin/observe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "deviceplugin/endpoints.h"
#include "deviceplugin/inventory.h"
#include "deviceplugin/link.h"
#include "deviceplugin/options.h"
#include "deviceplugin/pools.h"
#include "deviceplugin/preference.h"
#include "deviceplugin/service.h"
#include "deviceplugin/source.h"
#include "deviceplugin/stats.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/base/str.h"
#include "pkg/http/http.h"
#include "pkg/machine/backend.h"
#include "pkg/machine/machine.h"

enum {
    OBSERVE_MAGIC = 0x4f627376, /* "Obsv" */
    STATUS_NOT_FOUND = 404,
    STATUS_UNAVAILABLE = 503,
    ROLE_BYTES_MAX = 1024 /* what /readyz says of one resource */
};

struct weft_observe {
    uint32_t magic;
    struct weft_observe_options options;
    struct weft_http *http;
};

/* ---- /metrics ---- */

/* What one resource advertises: devices, each counted once, or with its replicas. */
static void put_resource(const struct weft_endpoint_view *view, struct weft_buf *buf)
{
    const struct weft_inventory *inventory = weft_service_inventory(view->service);
    const struct weft_machine *m = weft_inventory_machine(inventory);
    const uint32_t replicas = weft_inventory_replicas(inventory);
    uint64_t healthy = 0;
    for (size_t i = 0; i < m->device_count; i++) {
        healthy += m->devices[i].healthy ? 1 : 0;
    }
    const char *const good[] = {"resource", view->resource, "health", "healthy", NULL};
    const char *const bad[] = {"resource", view->resource, "health", "unhealthy", NULL};
    weft_metric_value(buf, "weft_plugin_devices", good, healthy * replicas);
    weft_metric_value(buf, "weft_plugin_devices", bad, (m->device_count - healthy) * replicas);
}

static void put_devices(const struct weft_observe *o, struct weft_buf *buf)
{
    weft_metric_head(buf, "weft_plugin_devices", WEFT_METRIC_GAUGE,
                     "Ids that are advertised, by health; a shared device has several.");
    for (size_t i = 0; i < weft_endpoints_count(o->options.endpoints); i++) {
        const struct weft_endpoint_view view = weft_endpoints_at(o->options.endpoints, i);
        put_resource(&view, buf);
    }
    const struct weft_machine *m = weft_endpoints_machine(o->options.endpoints);
    weft_metric_head(buf, "weft_plugin_device_healthy", WEFT_METRIC_GAUGE,
                     "1 for a healthy device; reason says why one is not.");
    for (size_t i = 0; m != NULL && i < m->device_count; i++) {
        const struct weft_device *d = &m->devices[i];
        const char *const labels[] = {"device",         d->id, "model", d->model, "reason",
                                      d->health_reason, NULL};
        weft_metric_value(buf, "weft_plugin_device_healthy", labels, d->healthy ? 1 : 0);
    }
}

static void put_states(const struct weft_observe *o, struct weft_buf *buf)
{
    static const char name[] = "weft_plugin_devices_by_state";
    static const char *const states[] = {"healthy", "suspect", "unhealthy", "recovering"};
    const struct weft_machine *m = weft_endpoints_machine(o->options.endpoints);
    weft_metric_head(buf, name, WEFT_METRIC_GAUGE,
                     "Devices by their state of health, each counted once, shared or not.");
    for (size_t s = 0; s < WEFT_ARRAY_LEN(states); s++) {
        uint64_t count = 0;
        for (size_t i = 0; m != NULL && i < m->device_count; i++) {
            count += strcmp(weft_device_state_name(&m->devices[i]), states[s]) == 0 ? 1 : 0;
        }
        const char *const labels[] = {"state", states[s], NULL};
        weft_metric_value(buf, name, labels, count);
    }
}

/* By the state that was come into, and why. All are there from the start, so that a rate of the
 * first one can be told. */
static void put_moves(const struct weft_stats *stats, struct weft_buf *buf)
{
    static const char name[] = "weft_plugin_health_transitions_total";
    weft_metric_head(buf, name, WEFT_METRIC_COUNTER, "Changes of a device's state of health.");
    for (size_t to = 0; to < WEFT_HEALTH_STATE_COUNT; to++) {
        for (size_t why = 0; why < WEFT_CAUSE_COUNT; why++) {
            const bool good = to == WEFT_HEALTH_HEALTHY || to == WEFT_HEALTH_RECOVERING;
            if (good != (why == WEFT_CAUSE_CLEAN)) {
                continue; /* cannot be */
            }
            const char *const labels[] = {
                "to", weft_health_state_name((enum weft_health_state)to), "reason",
                weft_health_cause_name((enum weft_health_cause)why), NULL};
            weft_metric_value(buf, name, labels, stats->health_moves[to][why]);
        }
    }
    weft_metric_single(buf, "weft_plugin_devices_flapping_total", WEFT_METRIC_COUNTER,
                       "Times that a device was found to flap, and has to wait longer since.",
                       stats->flapping);
}

static void put_codes(const struct weft_stats *stats, struct weft_buf *buf)
{
    static const char name[] = "weft_plugin_device_errors_total";
    weft_metric_head(
        buf, name, WEFT_METRIC_COUNTER,
        "Errors that the driver told, by code (XIDs); counts says whether as a fault.");
    for (size_t i = 0; i < stats->code_count; i++) {
        const struct weft_code_count *c = &stats->codes[i];
        char code[24] = "others";
        if (c->code != UINT64_MAX) {
            (void)snprintf(code, sizeof(code), "%" PRIu64, c->code);
        }
        const char *const faults[] = {"code", code, "counts", "true", NULL};
        const char *const notices[] = {"code", code, "counts", "false", NULL};
        weft_metric_value(buf, name, faults, c->faults);
        weft_metric_value(buf, name, notices, c->notices);
    }
}

/* Sum and count of each kind of call; waits for events are none. */
static void put_calls(const struct weft_observe *o, struct weft_buf *buf)
{
    const struct weft_backend_watch *watch = weft_source_watch(o->options.source);
    weft_metric_head(buf, "weft_plugin_vendor_calls_total", WEFT_METRIC_COUNTER,
                     "Calls into the vendor's library that are over, by function.");
    for (size_t i = 0; watch != NULL && i < WEFT_BACKEND_CALLS_MAX; i++) {
        const char *call = atomic_load(&watch->kinds[i].call);
        const char *const labels[] = {"call", call, NULL};
        if (call != NULL) {
            weft_metric_value(buf, "weft_plugin_vendor_calls_total", labels,
                              atomic_load(&watch->kinds[i].count));
        }
    }
    weft_metric_head(buf, "weft_plugin_vendor_call_seconds_total", WEFT_METRIC_COUNTER,
                     "Time that these calls took in all.");
    for (size_t i = 0; watch != NULL && i < WEFT_BACKEND_CALLS_MAX; i++) {
        const char *call = atomic_load(&watch->kinds[i].call);
        const char *const labels[] = {"call", call, NULL};
        if (call != NULL) {
            weft_metric_real(buf, "weft_plugin_vendor_call_seconds_total", labels,
                             (double)atomic_load(&watch->kinds[i].total_ns) / WEFT_NS_PER_S);
        }
    }
}

static void put_nics(const struct weft_observe *o, struct weft_buf *buf)
{
    const struct weft_machine *m = weft_endpoints_machine(o->options.endpoints);
    weft_metric_head(buf, "weft_plugin_nic_up", WEFT_METRIC_GAUGE,
                     "1 for a NIC with an active port; NICs of unknown state are left out.");
    for (size_t i = 0; m != NULL && i < m->nic_count; i++) {
        const char *const labels[] = {"nic", m->nics[i].name, "netdev", m->nics[i].netdev, NULL};
        if (m->nics[i].up >= 0) {
            weft_metric_value(buf, "weft_plugin_nic_up", labels, m->nics[i].up > 0 ? 1 : 0);
        }
    }
}

struct part {
    const char *value; /* of the label */
    uint64_t count;
};

/* A counter in two or three parts, told apart by one label. NULL ends the parts. */
static void put_counter(struct weft_buf *buf, const char *name, const char *help, const char *label,
                        const struct part *parts)
{
    weft_metric_head(buf, name, WEFT_METRIC_COUNTER, help);
    for (; parts->value != NULL; parts++) {
        const char *const labels[] = {label, parts->value, NULL};
        weft_metric_value(buf, name, labels, parts->count);
    }
}

static void put_requests(const struct weft_stats *s, struct weft_buf *buf)
{
    const struct part answers[] = {{"exact", s->preferred_exact},
                                   {"bounded", s->preferred_bounded},
                                   {"none", s->preferred_empty},
                                   {NULL, 0}};
    const struct part results[] = {{"granted", s->allocated}, {"refused", s->refused}, {NULL, 0}};
    put_counter(buf, "weft_plugin_preferred_allocations_total",
                "Preferred allocations by how they were found; none leaves the choice to the "
                "kubelet.",
                "answer", answers);
    weft_metric_head(buf, "weft_plugin_preferred_allocation_seconds", WEFT_METRIC_HISTOGRAM,
                     "Time to answer GetPreferredAllocation, without the transport.");
    weft_metric_histogram(buf, "weft_plugin_preferred_allocation_seconds", NULL,
                          &s->preferred_time);
    put_counter(buf, "weft_plugin_allocations_total", "Allocate requests by result.", "result",
                results);
    weft_metric_head(buf, "weft_plugin_allocate_seconds", WEFT_METRIC_HISTOGRAM,
                     "Time to answer Allocate, without the transport.");
    weft_metric_histogram(buf, "weft_plugin_allocate_seconds", NULL, &s->allocate_time);
}

static bool is_registered(const struct weft_endpoint_view *view)
{
    return view->link != NULL && weft_link_registered(view->link);
}

static bool is_standby(const struct weft_endpoint_view *view)
{
    return view->link != NULL && weft_link_role(view->link) == WEFT_LINK_STANDBY;
}

/* Plugins that are not weft's and serve a resource of ours. */
static void put_rivals(const struct weft_observe *o, struct weft_buf *buf)
{
    weft_metric_head(buf, "weft_plugin_rival", WEFT_METRIC_GAUGE,
                     "1 for another vendor's plugin of the same resource, by its socket.");
    for (size_t i = 0; i < weft_endpoints_count(o->options.endpoints); i++) {
        const struct weft_endpoint_view view = weft_endpoints_at(o->options.endpoints, i);
        const char *rival = view.link != NULL ? weft_link_rival(view.link) : "";
        const char *const labels[] = {"resource", view.resource, "socket", rival, NULL};
        if (rival[0] != '\0') {
            weft_metric_value(buf, "weft_plugin_rival", labels, 1);
        }
    }
    weft_metric_single(buf, "weft_plugin_stepped_back_total", WEFT_METRIC_COUNTER,
                       "Times that a registration waited because of another plugin.",
                       o->options.stats->stepped_back);
}

/* By resource: registered, standby, and streams. */
static void put_registrations(const struct weft_observe *o, struct weft_buf *buf)
{
    const size_t count = weft_endpoints_count(o->options.endpoints);
    weft_metric_head(buf, "weft_plugin_registered", WEFT_METRIC_GAUGE,
                     "1 while the kubelet knows the resource.");
    for (size_t i = 0; i < count; i++) {
        const struct weft_endpoint_view view = weft_endpoints_at(o->options.endpoints, i);
        const char *const labels[] = {"resource", view.resource, NULL};
        weft_metric_value(buf, "weft_plugin_registered", labels, is_registered(&view) ? 1 : 0);
    }
    weft_metric_head(buf, "weft_plugin_standby", WEFT_METRIC_GAUGE,
                     "1 while another instance on the node registers the resource.");
    for (size_t i = 0; i < count; i++) {
        const struct weft_endpoint_view view = weft_endpoints_at(o->options.endpoints, i);
        const char *const labels[] = {"resource", view.resource, NULL};
        weft_metric_value(buf, "weft_plugin_standby", labels, is_standby(&view) ? 1 : 0);
    }
    weft_metric_head(buf, "weft_plugin_streams", WEFT_METRIC_GAUGE, "Open ListAndWatch streams.");
    for (size_t i = 0; i < count; i++) {
        const struct weft_endpoint_view view = weft_endpoints_at(o->options.endpoints, i);
        const char *const labels[] = {"resource", view.resource, NULL};
        weft_metric_value(buf, "weft_plugin_streams", labels, weft_service_streams(view.service));
    }
}

static void put_link(const struct weft_observe *o, struct weft_buf *buf)
{
    const struct weft_stats *s = o->options.stats;
    const struct part results[] = {
        {"ok", s->registered}, {"failed", s->register_failed}, {NULL, 0}};
    const struct part uses[] = {
        {"used", s->machine_changes}, {"refused", s->machine_refused}, {NULL, 0}};
    put_registrations(o, buf);
    put_rivals(o, buf);
    put_counter(buf, "weft_plugin_registrations_total", "Registrations at the kubelet by result.",
                "result", results);
    weft_metric_single(buf, "weft_plugin_device_lists_sent_total", WEFT_METRIC_COUNTER,
                       "Device lists sent to streams.", s->lists_sent);
    put_counter(buf, "weft_plugin_machine_changes_total",
                "Machines that were read and differ from the one before.", "result", uses);
}

static void put_reloads(const struct weft_stats *s, struct weft_buf *buf)
{
    const struct part results[] = {{"used", s->config_used},
                                   {"unchanged", s->config_unchanged},
                                   {"refused", s->config_refused},
                                   {NULL, 0}};
    put_counter(buf, "weft_plugin_config_reloads_total", "Config files that were read again.",
                "result", results);
    weft_metric_single(buf, "weft_plugin_config_refused", WEFT_METRIC_GAUGE,
                       "1 while the file that is there is not the one in force.",
                       s->config_problem[0] != '\0' ? 1 : 0);
}

static void put_metrics(const struct weft_observe *o, struct weft_http_answer *answer)
{
    static const char *const version[] = {"version", WEFT_VERSION, NULL};
    struct weft_buf *buf = &answer->body;
    answer->type = WEFT_METRICS_TYPE;
    weft_metric_head(buf, "weft_build_info", WEFT_METRIC_GAUGE, "The version; always 1.");
    weft_metric_value(buf, "weft_build_info", version, 1);
    put_devices(o, buf);
    put_states(o, buf);
    put_moves(o->options.stats, buf);
    put_codes(o->options.stats, buf);
    put_calls(o, buf);
    put_nics(o, buf);
    put_requests(o->options.stats, buf);
    put_link(o, buf);
    put_reloads(o->options.stats, buf);
    weft_metrics_process(buf);
}

/* ---- the other pages ---- */

/* Nothing to register is no fault of the plugin's: a node without devices must not hold up a
 * rollout. A driver that has not answered yet is: the instance before may still know the devices.
 */
static void put_idle(const struct weft_observe *o, struct weft_http_answer *answer)
{
    const struct weft_machine *machine = weft_endpoints_machine(o->options.endpoints);
    const char *problem = o->options.stats->machine_problem;
    if (machine == NULL && problem[0] != '\0') {
        answer->status = STATUS_UNAVAILABLE;
        (void)weft_buf_printf(&answer->body, "no device can be advertised: %s\n", problem);
        return;
    }
    if (machine == NULL) {
        answer->status = STATUS_UNAVAILABLE;
        (void)weft_buf_puts(&answer->body, "the driver has not answered yet\n");
        return;
    }
    const char *reason = weft_endpoints_left_out(o->options.endpoints);
    if (reason[0] == '\0') {
        reason = machine->warning_count > 0 ? machine->warnings[0] : machine->name;
    }
    (void)weft_buf_printf(&answer->body, "ok\nno device to register: %s\n", reason);
}

/* One resource's part of /readyz; false: it is missing. */
static bool put_ready_resource(const struct weft_endpoint_view *view, struct weft_buf *buf)
{
    switch (weft_link_role(view->link)) {
    case WEFT_LINK_STANDBY:
        (void)weft_buf_printf(buf, "role=standby %s\n", view->resource);
        return true;
    case WEFT_LINK_REGISTERED:
        (void)weft_buf_printf(buf, "role=active %s\n", view->resource);
        return true;
    case WEFT_LINK_WAITING:
    case WEFT_LINK_ROLE_COUNT:
        break;
    }
    const char *rival = weft_link_rival(view->link);
    (void)weft_buf_printf(buf, "not registered at the kubelet for %s%s%s%s\n", view->resource,
                          rival[0] != '\0' ? ": another plugin serves it (" : "", rival,
                          rival[0] != '\0' ? ")" : "");
    return false;
}

/* Level-triggered like the registration itself: what is missing now. A standby is ready: the
 * instance that it waits for is told to end only then. */
static void put_ready(const struct weft_observe *o, struct weft_http_answer *answer)
{
    size_t due = 0;
    size_t missing = 0;
    weft_auto(weft_buf_done) struct weft_buf roles;
    weft_buf_init(&roles, (size_t)WEFT_POOLS_MAX * ROLE_BYTES_MAX);
    for (size_t i = 0; i < weft_endpoints_count(o->options.endpoints); i++) {
        const struct weft_endpoint_view view = weft_endpoints_at(o->options.endpoints, i);
        due += view.link != NULL ? 1 : 0;
        missing += view.link != NULL && !put_ready_resource(&view, &roles) ? 1 : 0;
    }
    if (due == 0) {
        put_idle(o, answer);
        return;
    }
    answer->status = missing > 0 ? STATUS_UNAVAILABLE : answer->status;
    (void)weft_buf_printf(&answer->body, "%s%s", missing > 0 ? "" : "ok\n", weft_buf_text(&roles));
}

static void put_allocations(const struct weft_stats *s, struct weft_buf *buf)
{
    const uint64_t kept =
        s->preference_count < WEFT_PREFERENCES_KEPT ? s->preference_count : WEFT_PREFERENCES_KEPT;
    for (uint64_t i = 1; i <= kept; i++) {
        weft_preference_write(s->preferences[(s->preference_count - i) % WEFT_PREFERENCES_KEPT],
                              buf);
        (void)weft_buf_putc(buf, '\n');
    }
}

static void put_machine(const struct weft_observe *o, struct weft_http_answer *answer)
{
    const struct weft_machine *machine = weft_endpoints_machine(o->options.endpoints);
    if (machine == NULL) {
        answer->status = STATUS_UNAVAILABLE;
        (void)weft_buf_puts(&answer->body, "the driver has not answered yet\n");
        return;
    }
    answer->type = "application/json";
    const int rc = weft_machine_write_json(machine, &answer->body);
    answer->body.status = rc < 0 ? rc : answer->body.status;
}

/* The options in force, as a config file; why the file that is there is not in force, first. */
static void put_config(const struct weft_observe *o, struct weft_http_answer *answer)
{
    if (o->options.stats->config_problem[0] != '\0') {
        (void)weft_buf_printf(&answer->body, "# not used: %s\n", o->options.stats->config_problem);
    }
    const int rc =
        o->options.options != NULL ? weft_options_write(o->options.options, &answer->body) : 0;
    answer->body.status = rc < 0 ? rc : answer->body.status;
}

static void on_page(void *data, const char *path, struct weft_http_answer *answer)
{
    const struct weft_observe *o = data;
    WEFT_CHECK(o, OBSERVE_MAGIC);
    if (strcmp(path, "/metrics") == 0) {
        put_metrics(o, answer);
    } else if (strcmp(path, "/livez") == 0) { /* the loop turns, or nobody would answer */
        (void)weft_buf_puts(&answer->body, "ok\n");
    } else if (strcmp(path, "/readyz") == 0) {
        put_ready(o, answer);
    } else if (strcmp(path, "/debug/allocations") == 0) {
        put_allocations(o->options.stats, &answer->body);
    } else if (strcmp(path, "/debug/machine") == 0) {
        put_machine(o, answer);
    } else if (strcmp(path, "/debug/config") == 0) {
        put_config(o, answer);
    } else {
        answer->status = STATUS_NOT_FOUND;
        (void)weft_buf_puts(&answer->body, "/metrics /livez /readyz /debug/allocations "
                                           "/debug/machine /debug/config\n");
    }
}

/* ---- life ---- */

int weft_observe_new(const struct weft_observe_options *options, struct weft_observe **ret_observe,
                     struct weft_error *err)
{
    weft_auto(weft_observe_free) struct weft_observe *observe = weft_calloc(1, sizeof(*observe));
    if (observe == NULL) {
        return weft_err_nomem(err);
    }
    observe->magic = OBSERVE_MAGIC;
    observe->options = *options;
    const struct weft_http_options http = {
        .loop = options->loop, .listen = options->listen, .answer = on_page, .data = observe};
    const int rc = weft_http_new(&http, &observe->http, err);
    if (rc < 0) {
        return rc;
    }
    weft_log(WEFT_LOG_INFO, "listening", WEFT_KV_S("address", options->listen),
             WEFT_KV_I("port", weft_http_port(observe->http)));
    *ret_observe = weft_steal(&observe);
    return 0;
}

void weft_observe_free(struct weft_observe *observe)
{
    if (observe == NULL) {
        return;
    }
    WEFT_CHECK(observe, OBSERVE_MAGIC);
    weft_http_free(observe->http);
    observe->magic = 0;
    weft_free(observe);
}
