/* SPDX-License-Identifier: Apache-2.0 */
/* Wires the parts and waits for signals. */
#include "deviceplugin/plugin.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "deviceplugin/endpoints.h"
#include "deviceplugin/feature-file.h"
#include "deviceplugin/observe.h"
#include "deviceplugin/options.h"
#include "deviceplugin/prepare.h"
#include "deviceplugin/reload.h"
#include "deviceplugin/source.h"
#include "deviceplugin/stats.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/loop/loop.h"
#include "pkg/machine/machine.h"
#include "pkg/rpc/rpc.h"

enum { PLUGIN_MAGIC = 0x506c7567 /* "Plug" */ };

struct plugin {
    uint32_t magic;
    const struct weft_command *command;
    struct weft_options *options;
    struct weft_loop *loop;
    struct weft_rpc *rpc;
    struct weft_source *source;
    struct weft_prepare *prepare;
    bool started; /* the first machine, if there was one at the start, is in use */
    int used;     /* whether the machine that came last is in use, else why not */
    struct weft_error used_err;
    struct weft_reload *reload;
    struct weft_feature_file *features;
    struct weft_endpoints *endpoints;
    struct weft_observe *observe; /* NULL: not asked for */
    struct weft_stats stats;
    struct weft_signal *term, *interrupt, *hangup;
};

/* Is the resource of whole devices registered also while there is none? */
static bool always(const struct weft_options *options)
{
    return options->pools.resource != NULL || options->machine != NULL;
}

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
    weft_reload_now(plugin->reload);
    weft_prepare_again(plugin->prepare);
    weft_source_rescan(plugin->source);
}

static void update_labels(struct plugin *plugin)
{
    const struct weft_machine *machine = weft_endpoints_machine(plugin->endpoints);
    if (machine != NULL) {
        weft_feature_file_update(plugin->features, machine);
    }
}

static void on_machine_ready(void *data, struct weft_machine *machine)
{
    struct plugin *plugin = data;
    WEFT_CHECK(plugin, PLUGIN_MAGIC);
    plugin->used_err = (struct weft_error){0};
    plugin->used = weft_endpoints_use(plugin->endpoints, machine, &plugin->used_err);
    if (plugin->used == 0) {
        plugin->stats.machine_changes++;
        update_labels(plugin);
    } else {
        plugin->stats.machine_refused++;
    }
    (void)snprintf(plugin->stats.machine_problem, sizeof(plugin->stats.machine_problem), "%s",
                   plugin->used_err.message);
    if (plugin->used < 0 && plugin->started) {
        const bool shown = weft_endpoints_machine(plugin->endpoints) != NULL;
        weft_log(WEFT_LOG_ERROR, "machine-not-used", WEFT_KV_S("reason", plugin->used_err.message),
                 WEFT_KV_S("effect", shown ? "the devices of before stay, with their health of now"
                                           : "no device is advertised"));
    }
}

static void on_machine_changed(void *data, struct weft_machine *machine)
{
    struct plugin *plugin = data;
    WEFT_CHECK(plugin, PLUGIN_MAGIC);
    weft_prepare_use(plugin->prepare, machine);
}

/* What others keep of the options is told here; the rest they read where it is. */
static int on_options_changed(void *data, struct weft_error *err)
{
    struct plugin *plugin = data;
    WEFT_CHECK(plugin, PLUGIN_MAGIC);
    const struct weft_options *options = plugin->options;
    weft_log_setup(options->log_level, options->log_format, STDERR_FILENO);
    weft_source_configure(plugin->source, &options->health);
    const int rc =
        weft_endpoints_configure(plugin->endpoints, options->policy, always(options), err);
    if (rc == 0) {
        weft_prepare_again(plugin->prepare);
        update_labels(plugin);
    }
    return rc;
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
                                                           .endpoints = plugin->endpoints,
                                                           .options = plugin->options,
                                                           .source = plugin->source,
                                                           .stats = &plugin->stats},
                            &plugin->observe, err);
}

static int start_endpoints(struct plugin *plugin, struct weft_error *err)
{
    const struct weft_options *options = plugin->options;
    const struct weft_endpoints_options endpoints = {
        .loop = plugin->loop,
        .rpc = plugin->rpc,
        .folder = options->plugin_dir,
        .registry =
            options->registration == WEFT_REGISTRATION_WATCHER ? options->registry_dir : NULL,
        .pools = &options->pools,
        .policy = options->policy,
        .always = always(options),
        .respond = &options->respond,
        .extras = weft_prepare_extras(plugin->prepare),
        .stats = &plugin->stats,
    };
    return weft_endpoints_new(&endpoints, &plugin->endpoints, err);
}

static int start_prepare(struct plugin *plugin, struct weft_error *err)
{
    return weft_prepare_new(&(struct weft_prepare_options){.loop = plugin->loop,
                                                           .options = plugin->options,
                                                           .ready = on_machine_ready,
                                                           .data = plugin},
                            &plugin->prepare, err);
}

/* At the start a machine that cannot be used is an error. */
static int use_first(struct plugin *plugin, struct weft_machine *machine, struct weft_error *err)
{
    if (machine == NULL) {
        return 0;
    }
    plugin->used = weft_err_nomem(&plugin->used_err);
    weft_prepare_use(plugin->prepare, machine);
    if (plugin->used < 0 && err != NULL) {
        *err = plugin->used_err;
    }
    return plugin->used;
}

static int start_reload(struct plugin *plugin, struct weft_error *err)
{
    return weft_reload_new(&(struct weft_reload_options){.loop = plugin->loop,
                                                         .command = *plugin->command,
                                                         .options = plugin->options,
                                                         .apply = on_options_changed,
                                                         .data = plugin,
                                                         .stats = &plugin->stats},
                           &plugin->reload, err);
}

static int start_labels(struct plugin *plugin, struct weft_error *err)
{
    return weft_feature_file_new(&(struct weft_feature_file_options){.loop = plugin->loop,
                                                                     .options = plugin->options,
                                                                     .clock = weft_clock_system()},
                                 &plugin->features, err);
}

static int start(struct plugin *plugin, struct weft_error *err)
{
    int rc = weft_loop_new(&plugin->loop, err);
    rc = rc == 0 ? watch_signals(plugin, err) : rc;
    struct weft_machine *machine = NULL; /* stays NULL where the vendor thread tells it later */
    rc = rc == 0 ? weft_source_new(&(struct weft_source_options){.loop = plugin->loop,
                                                                 .options = plugin->options,
                                                                 .stats = &plugin->stats,
                                                                 .changed = on_machine_changed,
                                                                 .data = plugin},
                                   &plugin->source, &machine, err)
                 : rc;
    rc = rc == 0 ? weft_rpc_new(plugin->loop, &plugin->rpc, err) : rc;
    rc = rc == 0 ? start_labels(plugin, err) : rc;
    rc = rc == 0 ? start_prepare(plugin, err) : rc;
    rc = rc == 0 ? start_endpoints(plugin, err) : rc;
    if (rc < 0) {
        weft_machine_free(machine);
        return rc;
    }
    rc = use_first(plugin, machine, err);
    plugin->started = rc == 0;
    rc = rc == 0 ? start_reload(plugin, err) : rc;
    return rc == 0 ? start_pages(plugin, err) : rc;
}

/* True if a thread that is not ours was left behind. */
static bool stop(struct plugin *plugin)
{
    weft_observe_free(plugin->observe);
    weft_reload_free(plugin->reload);
    weft_feature_file_free(plugin->features);
    weft_endpoints_stop(plugin->endpoints);
    bool left = !weft_rpc_free(plugin->rpc); /* our streams have ended */
    if (left) {
        weft_log(WEFT_LOG_WARN, "grpc-does-not-end",
                 WEFT_KV_S("effect", "the process ends without it"));
    }
    weft_endpoints_free(plugin->endpoints);         /* now another instance may register */
    left = weft_source_end(plugin->source) || left; /* may wait for a driver */
    weft_prepare_free(plugin->prepare);
    weft_signal_free(plugin->term);
    weft_signal_free(plugin->interrupt);
    weft_signal_free(plugin->hangup);
    weft_loop_free(plugin->loop);
    weft_stats_done(&plugin->stats);
    return left;
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

int weft_plugin_run(const struct weft_command *command, struct weft_options *options,
                    bool *ret_stuck, struct weft_error *err)
{
    struct plugin plugin = {.magic = PLUGIN_MAGIC, .command = command, .options = options};
    hold_signals(SIG_BLOCK);
    const int rc = start(&plugin, err);
    if (rc == 0) {
        hold_signals(SIG_UNBLOCK);
        weft_loop_run(plugin.loop);
        hold_signals(SIG_BLOCK);
        weft_log(WEFT_LOG_INFO, "stopping");
    }
    *ret_stuck = stop(&plugin);
    return rc;
}
