/* SPDX-License-Identifier: Apache-2.0 */
/* New options for old. */
#include "deviceplugin/reload.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "deviceplugin/filewatch.h"
#include "deviceplugin/options.h"
#include "deviceplugin/stats.h"
#include "pkg/base/buf.h"
#include "pkg/base/log.h"

enum { RELOAD_MAGIC = 0x52656c64, /* "Reld" */ TEXT_MAX = 1 << 20 };

struct weft_reload {
    uint32_t magic;
    struct weft_reload_options options;
    struct weft_filewatch *watch; /* NULL: no file */
};

/* Do they come to the same? Without memory they do not: using them again is only slower. */
static bool same(const struct weft_options *a, const struct weft_options *b)
{
    weft_auto(weft_buf_done) struct weft_buf x;
    weft_auto(weft_buf_done) struct weft_buf y;
    weft_buf_init(&x, TEXT_MAX);
    weft_buf_init(&y, TEXT_MAX);
    return weft_options_write(a, &x) == 0 && weft_options_write(b, &y) == 0 &&
           strcmp(weft_buf_text(&x), weft_buf_text(&y)) == 0;
}

static int read_again(const struct weft_reload *reload, struct weft_options *ret_options,
                      struct weft_error *err)
{
    const struct weft_command *c = &reload->options.command;
    weft_auto(weft_options_done) struct weft_options options = {0};
    const int rc = weft_options_read(c->argc, c->argv, c->env, &options, err);
    if (rc < 0) {
        return rc;
    }
    const char *fixed = weft_options_fixed_difference(reload->options.options, &options);
    if (fixed != NULL) {
        return weft_err_set(err, -EPERM, WEFT_ERR_CONFIG,
                            "%s cannot change while the plugin runs: restart it", fixed);
    }
    *ret_options = options;
    options = (struct weft_options){0};
    return 0;
}

/* On failure everything is as it was. */
static int use(const struct weft_reload *reload, struct weft_options *fresh, struct weft_error *err)
{
    const struct weft_reload_options *o = &reload->options;
    weft_options_swap(o->options, fresh);
    const int rc = o->apply(o->data, err);
    if (rc < 0) {
        struct weft_error again = {0};
        weft_options_swap(o->options, fresh);
        if (o->apply(o->data, &again) < 0) {
            weft_log(WEFT_LOG_ERROR, "config-not-restored", WEFT_KV_S("reason", again.message));
        }
    }
    return rc;
}

static void tell_notes(const struct weft_options *options)
{
    for (size_t i = 0; i < options->note_count; i++) {
        weft_log(WEFT_LOG_WARN, "config-note", WEFT_KV_S("note", options->notes[i]));
    }
}

void weft_reload_now(struct weft_reload *reload)
{
    WEFT_CHECK(reload, RELOAD_MAGIC);
    struct weft_stats *stats = reload->options.stats;
    weft_auto(weft_options_done) struct weft_options fresh = {0};
    struct weft_error err = {0};
    int rc = read_again(reload, &fresh, &err);
    if (rc == 0 && same(reload->options.options, &fresh)) {
        stats->config_problem[0] = '\0';
        stats->config_unchanged++;
        weft_log(WEFT_LOG_DEBUG, "config-unchanged");
        return;
    }
    rc = rc == 0 ? use(reload, &fresh, &err) : rc;
    if (rc < 0) {
        stats->config_refused++;
        (void)snprintf(stats->config_problem, sizeof(stats->config_problem), "%s", err.message);
        weft_log(WEFT_LOG_ERROR, "config-not-used", WEFT_KV_S("reason", err.message),
                 WEFT_KV_S("effect", "the last good one stays"));
        return;
    }
    stats->config_problem[0] = '\0';
    stats->config_used++;
    tell_notes(reload->options.options);
    weft_log(WEFT_LOG_INFO, "config-used",
             WEFT_KV_S("file", reload->options.options->config != NULL
                                   ? reload->options.options->config
                                   : ""));
}

static void on_changed(void *data)
{
    weft_reload_now(data);
}

int weft_reload_new(const struct weft_reload_options *options, struct weft_reload **ret_reload,
                    struct weft_error *err)
{
    weft_auto(weft_reload_free) struct weft_reload *reload = weft_calloc(1, sizeof(*reload));
    if (reload == NULL) {
        return weft_err_nomem(err);
    }
    reload->magic = RELOAD_MAGIC;
    reload->options = *options;
    const char *path = options->options->config;
    const int rc = path != NULL ? weft_filewatch_new(options->loop, path, on_changed, reload,
                                                     &reload->watch, err)
                                : 0;
    if (rc == 0) {
        *ret_reload = weft_steal(&reload);
    }
    return rc;
}

void weft_reload_free(struct weft_reload *reload)
{
    if (reload != NULL) {
        WEFT_CHECK(reload, RELOAD_MAGIC);
        weft_filewatch_free(reload->watch);
        reload->magic = 0;
        weft_free(reload);
    }
}
