/* SPDX-License-Identifier: Apache-2.0 */
/* Wires the parts and waits for signals. */
#include "deviceplugin/plugin.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

#include "deviceplugin/grant.h"
#include "deviceplugin/inventory.h"
#include "deviceplugin/link.h"
#include "deviceplugin/observe.h"
#include "deviceplugin/options.h"
#include "deviceplugin/service.h"
#include "deviceplugin/source.h"
#include "deviceplugin/stats.h"
#include "pkg/base/log.h"
#include "pkg/loop/loop.h"
#include "pkg/machine/machine.h"
#include "pkg/rpc/rpc.h"

enum { PLUGIN_MAGIC = 0x506c7567 /* "Plug" */ };

struct plugin {
    uint32_t magic;
    const struct weft_options *options;
    struct weft_loop *loop;
    struct weft_rpc *rpc;
    struct weft_source *source;
    struct weft_service *service;
    struct weft_link *link;       /* NULL: there was nothing to register yet */
    const char *resource;         /* that is, or would be, registered */
    struct weft_observe *observe; /* NULL: not asked for */
    struct weft_stats stats;
    struct weft_signal *term, *interrupt, *hangup;
};

static void on_stop(void *data)
{
    struct plugin *plugin = data;
    WEFT_CHECK(plugin, PLUGIN_MAGIC);
    weft_loop_stop(plugin->loop);
}

static void on_hangup(void *data)
{
    struct plugin *plugin = data;
    WEFT_CHECK(plugin, PLUGIN_MAGIC);
    weft_log(WEFT_LOG_INFO, "rescan");
    weft_source_rescan(plugin->source);
}

static void on_streams_changed(void *data)
{
    struct plugin *plugin = data;
    WEFT_CHECK(plugin, PLUGIN_MAGIC);
    if (plugin->link != NULL) {
        weft_link_streams_changed(plugin->link);
    }
}

/* Health that differs from what was advertised so far, device by device. */
static void note_health(struct plugin *plugin, const struct weft_machine *machine)
{
    const struct weft_inventory *before = weft_service_inventory(plugin->service);
    for (size_t i = 0; i < machine->device_count; i++) {
        const struct weft_device *d = &machine->devices[i];
        const size_t at = before != NULL ? weft_inventory_find(before, d->id) : SIZE_MAX;
        /* one that is new counts as healthy so far */
        const bool was = at == SIZE_MAX || weft_inventory_machine(before)->devices[at].healthy;
        if (was == d->healthy) {
            continue;
        }
        if (d->healthy) {
            plugin->stats.became_healthy++;
        } else {
            plugin->stats.became_unhealthy++;
        }
        weft_log(d->healthy ? WEFT_LOG_INFO : WEFT_LOG_WARN, "health", WEFT_KV_S("device", d->id),
                 WEFT_KV_S("state", d->healthy ? "healthy" : "unhealthy"),
                 WEFT_KV_S("reason", d->health_reason));
    }
}

static bool warned(const struct weft_inventory *before, const char *warning)
{
    const struct weft_machine *m = before != NULL ? weft_inventory_machine(before) : NULL;
    for (size_t i = 0; m != NULL && i < m->warning_count; i++) {
        if (strcmp(m->warnings[i], warning) == 0) {
            return true;
        }
    }
    return false;
}

/* What the source is newly not sure of. */
static void note_warnings(const struct plugin *plugin, const struct weft_machine *machine)
{
    const struct weft_inventory *before = weft_service_inventory(plugin->service);
    for (size_t i = 0; i < machine->warning_count; i++) {
        if (!warned(before, machine->warnings[i])) {
            weft_log(WEFT_LOG_WARN, "machine-warning", WEFT_KV_S("detail", machine->warnings[i]));
        }
    }
}

/* Takes the machine over in any case. */
static int use_machine(struct plugin *plugin, struct weft_machine *machine, struct weft_error *err)
{
    size_t healthy = 0;
    for (size_t i = 0; i < machine->device_count; i++) {
        healthy += machine->devices[i].healthy ? 1 : 0;
    }
    note_warnings(plugin, machine);
    if (!weft_grant_possible(machine)) {
        weft_log(WEFT_LOG_WARN, "machine-incomplete", WEFT_KV_S("machine", machine->name),
                 WEFT_KV_S("reason", "no device nodes, and ids that are no UUIDs"),
                 WEFT_KV_S("effect", "pods get no GPU"),
                 WEFT_KV_S("do", "write the machine's JSON on the node with hack/record-machine"));
    }
    note_health(plugin, machine);
    const size_t count = machine->device_count;
    struct weft_inventory *inventory = NULL;
    int rc = weft_inventory_new(machine, &inventory, err);
    if (rc < 0) {
        weft_machine_free(machine);
        return rc;
    }
    rc = weft_service_set_inventory(plugin->service, inventory, err);
    if (rc == 0) {
        weft_log(WEFT_LOG_INFO, "devices", WEFT_KV_S("resource", plugin->resource),
                 WEFT_KV_I("count", count), WEFT_KV_I("healthy", healthy));
    }
    return rc;
}

/* Registers as soon as there is something to register: a node without devices keeps quiet, unless
 * its resource was named. The name follows the vendor where none was given. */
static int register_if_due(struct plugin *plugin, struct weft_error *err)
{
    const struct weft_options *options = plugin->options;
    const struct weft_machine *machine =
        weft_inventory_machine(weft_service_inventory(plugin->service));
    const bool recorded = options->machine != NULL;
    if (plugin->link != NULL) {
        return 0;
    }
    if (machine->device_count == 0 && options->resource == NULL && !recorded) {
        weft_log(WEFT_LOG_INFO, "not-registered", WEFT_KV_S("reason", "no device was found"),
                 WEFT_KV_S("effect", "looks again now and then"));
        return 0;
    }
    return weft_link_new(&(struct weft_link_options){.loop = plugin->loop,
                                                     .rpc = plugin->rpc,
                                                     .service = plugin->service,
                                                     .folder = options->plugin_dir,
                                                     .resource = plugin->resource,
                                                     .stats = &plugin->stats},
                         &plugin->link, err);
}

static void choose_resource(struct plugin *plugin, const struct weft_machine *machine)
{
    const char *given = plugin->options->resource;
    if (plugin->link == NULL) {
        plugin->resource = given != NULL ? given : weft_resource_of_vendor(machine->vendor);
    }
}

static void on_machine_changed(void *data, struct weft_machine *machine)
{
    struct plugin *plugin = data;
    WEFT_CHECK(plugin, PLUGIN_MAGIC);
    struct weft_error err = {0};
    choose_resource(plugin, machine);
    int rc = use_machine(plugin, machine, &err);
    if (rc == 0) {
        plugin->stats.machine_changes++;
        rc = register_if_due(plugin, &err);
    } else {
        plugin->stats.machine_refused++;
    }
    if (rc < 0) {
        weft_log(WEFT_LOG_ERROR, "machine-not-used", WEFT_KV_S("reason", err.message),
                 WEFT_KV_S("effect", "the last good one stays"));
    }
}

static int watch_signals(struct plugin *plugin, struct weft_error *err)
{
    int rc = weft_signal_new(plugin->loop, SIGTERM, on_stop, plugin, &plugin->term, err);
    if (rc == 0) {
        rc = weft_signal_new(plugin->loop, SIGINT, on_stop, plugin, &plugin->interrupt, err);
    }
    if (rc == 0) {
        rc = weft_signal_new(plugin->loop, SIGHUP, on_hangup, plugin, &plugin->hangup, err);
    }
    return rc;
}

static int start_pages(struct plugin *plugin, struct weft_error *err)
{
    if (plugin->options->listen == NULL) {
        return 0;
    }
    return weft_observe_new(&(struct weft_observe_options){.loop = plugin->loop,
                                                           .listen = plugin->options->listen,
                                                           .resource = &plugin->resource,
                                                           .service = plugin->service,
                                                           .link = &plugin->link,
                                                           .stats = &plugin->stats},
                            &plugin->observe, err);
}

/* What there is until the vendor thread has its first answer: nothing, not even a registration. */
static int use_nothing(struct plugin *plugin, struct weft_error *err)
{
    struct weft_machine *machine = NULL;
    struct weft_inventory *inventory = NULL;
    int rc = weft_machine_new("a driver that has not answered yet", 0, 0, &machine, err);
    if (rc == 0) {
        choose_resource(plugin, machine);
        rc = weft_inventory_new(machine, &inventory, err);
    }
    if (rc < 0) {
        weft_machine_free(machine);
        return rc;
    }
    return weft_service_set_inventory(plugin->service, inventory, err);
}

/* Takes the machine over in any case; NULL: it comes later. */
static int start_serving(struct plugin *plugin, struct weft_machine *machine,
                         struct weft_error *err)
{
    int rc = 0;
    if (machine == NULL) {
        rc = use_nothing(plugin, err);
    } else {
        choose_resource(plugin, machine);
        rc = use_machine(plugin, machine, err);
        rc = rc == 0 ? register_if_due(plugin, err) : rc;
    }
    return rc == 0 ? start_pages(plugin, err) : rc;
}

static int start(struct plugin *plugin, struct weft_error *err)
{
    const struct weft_options *options = plugin->options;
    int rc = weft_loop_new(&plugin->loop, err);
    rc = rc == 0 ? watch_signals(plugin, err) : rc;
    struct weft_machine *machine = NULL;
    rc = rc == 0 ? weft_source_new(&(struct weft_source_options){.loop = plugin->loop,
                                                                 .options = options,
                                                                 .changed = on_machine_changed,
                                                                 .data = plugin},
                                   &plugin->source, &machine, err)
                 : rc;
    rc = rc == 0 ? weft_rpc_new(plugin->loop, &plugin->rpc, err) : rc;
    if (rc == 0) {
        rc = weft_service_new(&(struct weft_service_options){.loop = plugin->loop,
                                                             .rpc = plugin->rpc,
                                                             .policy = options->policy,
                                                             .stats = &plugin->stats,
                                                             .streams_changed = on_streams_changed,
                                                             .data = plugin},
                              &plugin->service, err);
    }
    if (rc < 0) {
        weft_machine_free(machine);
        return rc;
    }
    return start_serving(plugin, machine, err);
}

static void stop(struct plugin *plugin)
{
    weft_observe_free(plugin->observe);
    weft_link_free(plugin->link);
    weft_service_free(plugin->service);
    weft_source_free(plugin->source);
    weft_rpc_free(plugin->rpc);
    weft_signal_free(plugin->term);
    weft_signal_free(plugin->interrupt);
    weft_signal_free(plugin->hangup);
    weft_loop_free(plugin->loop);
    weft_stats_done(&plugin->stats);
}

/* Signals reach the loop thread only, and only while it runs: gRPC's threads inherit a mask that
 * holds them, one that comes early waits for the loop, and one that comes during the end changes
 * nothing (libuv gives a signal its deadly default back when its watch goes). */
static void hold_signals(int how)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)pthread_sigmask(how, &set, NULL);
}

int weft_plugin_run(const struct weft_options *options, struct weft_error *err)
{
    struct plugin plugin = {.magic = PLUGIN_MAGIC, .options = options};
    hold_signals(SIG_BLOCK);
    const int rc = start(&plugin, err);
    if (rc == 0) {
        hold_signals(SIG_UNBLOCK);
        weft_loop_run(plugin.loop);
        hold_signals(SIG_BLOCK);
        weft_log(WEFT_LOG_INFO, "stopping");
    }
    stop(&plugin);
    return rc;
}
