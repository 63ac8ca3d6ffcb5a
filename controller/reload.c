/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration in use: read at the start, read again when its file changes or on SIGHUP. A new
 * one that is not understood changes nothing. */
#include <errno.h>
#include <string.h>

#include "controller/controller-internal.h"
#include "controller/events.h"
#include "controller/instances.h"
#include "controller/options.h"
#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/base/log.h"
#include "pkg/kube/reflector.h"
#include "pkg/loop/loop.h"
#include "pkg/source/config.h"

/* A file whose folder cannot be watched, or was replaced. */
#define POLL_NS (10 * WEFT_NS_PER_S)
#define POLL_UNWATCHED_NS (WEFT_NS_PER_S / 2)
/* From an event in the folder to the reading: several come together, and an editor has finished.
 * Nothing is done in the event's own callback: our log may stand in the same folder, and would make
 * the next event. */
#define REREAD_NS (200 * WEFT_NS_PER_MS)

/* --uninstall wants nothing to be there, whatever a file says: also if that is gone or broken. */
static int built_in(char **ret_text, size_t *ret_len, struct weft_error *err)
{
    static const char text[] = "apiVersion: weft.dev/v1alpha1\nkind: ControllerConfig\n";
    *ret_text = weft_strdup(text);
    *ret_len = sizeof(text) - 1;
    return *ret_text != NULL ? 0 : weft_err_nomem(err);
}

int weft_controller_load_config(struct weft_controller *c, struct weft_error *err)
{
    weft_autofree char *text = NULL;
    size_t len = 0;
    bool changed = false;
    int rc = c->options->uninstall
                 ? built_in(&text, &len, err)
                 : weft_file_read(c->options->config, WEFT_CONFIG_MAX, &text, &len, err);
    if (rc < 0) {
        return rc;
    }
    if (c->config_text != NULL && strcmp(c->config_text, text) == 0) {
        return 0;
    }
    weft_auto(weft_config_free) struct weft_config *config = NULL;
    rc = weft_config_parse(text, len, c->options->config != NULL ? c->options->config : "built-in",
                           &config, err);
    if (rc < 0) {
        return rc;
    }
    if (weft_view_nodes_keys(&c->nodes, config, &changed) < 0) {
        return weft_err_nomem(err);
    }
    rc = weft_sources_configure(c->sources, config->sources, config->source_count, err);
    if (rc < 0) {
        if (c->config != NULL) {
            (void)!weft_view_nodes_keys(&c->nodes, c->config, &changed);
        }
        return rc;
    }
    weft_config_free(c->config);
    weft_free(c->config_text);
    c->config = weft_steal(&config);
    c->config_text = weft_steal(&text);
    if (changed && c->node_reflector != NULL) {
        weft_kube_reflector_relist(c->node_reflector); /* for labels that did not matter before */
    }
    return 1;
}

/* Says once why the file is not taken: it may stay like that for days. */
static void reject(struct weft_controller *c, const struct weft_error *err)
{
    if (strcmp(c->config_error, err->message) == 0) {
        return;
    }
    memcpy(c->config_error, err->message, sizeof(c->config_error));
    weft_log(WEFT_LOG_ERROR, "configuration-rejected", WEFT_KV_S("error", err->message),
             WEFT_KV_S("in_use", "the one before"));
    weft_controller_say(c, true, "ConfigRejected", "KeepConfig", err->message);
    weft_controller_tell(c);
}

void weft_controller_reload(struct weft_controller *c)
{
    struct weft_error err = {0};
    const bool was_paused = c->config->paused;
    const int rc = weft_controller_load_config(c, &err);
    if (rc < 0) {
        reject(c, &err);
        return;
    }
    weft_events_hold(c->events, c->config->paused);
    weft_events_clear(c->events, "Lease", c->options->lease, "ConfigRejected");
    const bool good_again = c->config_error[0] != '\0';
    c->config_error[0] = '\0';
    if (rc == 0 && !good_again) {
        return;
    }
    weft_log(WEFT_LOG_INFO, "configuration-read", WEFT_KV_S("file", c->options->config),
             WEFT_KV_S("paused", c->config->paused ? "true" : "false"));
    weft_controller_tell(c);
    if (rc == 0) {
        return; /* the one in use is back */
    }
    if (c->config->paused != was_paused) {
        weft_log(WEFT_LOG_INFO, c->config->paused ? "paused" : "going-on");
    }
    weft_debounce_configure(&c->debounce, c->config->debounce.quiet_ns, c->config->debounce.max_ns);
    if (c->node_reflector != NULL && weft_controller_configure_instances(c, &err) < 0) {
        weft_log(WEFT_LOG_ERROR, "instances", WEFT_KV_S("error", err.message));
    }
    weft_controller_changed(c, true);
}

static void on_folder(void *data, const char *name)
{
    (void)name; /* a ConfigMap changes by its "..data" link, not by the file's own name */
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    if (!weft_timer_active(c->reread)) { /* not put off by further events: they may never end */
        weft_timer_start(c->reread, REREAD_NS, 0);
    }
}

static void on_reread(void *data)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    weft_controller_reload(c);
}

static void on_poll(void *data)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    weft_controller_reload(c);
    weft_controller_probe_schema(c, false);
}

int weft_controller_watch_files(struct weft_controller *c, struct weft_error *err)
{
    const char *slash = strrchr(c->options->config, '/');
    weft_autofree char *dir =
        slash == NULL ? weft_strdup(".")
                      : weft_strndup(c->options->config, (size_t)(slash - c->options->config) + 1);
    if (dir == NULL) {
        return weft_err_nomem(err);
    }
    int rc = weft_timer_new(c->loop, on_reread, c, &c->reread, err);
    if (rc < 0) {
        return rc;
    }
    struct weft_error why = {0};
    int64_t period = POLL_NS;
    if (weft_dirwatch_new(c->loop, dir, on_folder, c, &c->config_watch, &why) < 0) {
        weft_log(WEFT_LOG_WARN, "configuration folder not watched, only polled",
                 WEFT_KV_S("error", why.message));
        period = POLL_UNWATCHED_NS;
    }
    rc = weft_timer_new(c->loop, on_poll, c, &c->poll, err);
    if (rc == 0) {
        weft_timer_start(c->poll, period, period);
    }
    return rc;
}
