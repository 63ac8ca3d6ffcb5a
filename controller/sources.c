/* SPDX-License-Identifier: Apache-2.0 */
/* The sources in the controller: when they give something new, and what is said about those that
 * do not. */
#include <errno.h>
#include <stdio.h>

#include "controller/controller-internal.h"
#include "controller/events.h"
#include "controller/options.h"
#include "pkg/base/buf.h"
#include "pkg/base/file.h"
#include "pkg/base/log.h"
#include "pkg/base/str.h"
#include "pkg/loop/loop.h"
#include "pkg/source/config.h"

/* of an Event (events.k8s.io/v1: at most 1 KiB) */
enum { NOTE_MAX = 1000, EPOCH_MAX = 4096 };

/* One line for each source whose state is another now. */
static void log_states(struct weft_controller *c)
{
    for (size_t i = 0; i < c->config->source_count; i++) {
        const struct weft_source_health *health = weft_sources_health(c->sources, i);
        if (health == NULL || health->state == c->source_states[i]) {
            continue;
        }
        c->source_states[i] = health->state;
        const bool good = health->state == WEFT_SOURCE_OK;
        weft_log(good ? WEFT_LOG_INFO : WEFT_LOG_WARN, "source",
                 WEFT_KV_S("name", c->config->sources[i].name),
                 WEFT_KV_S("state", weft_source_state_name(health->state)),
                 WEFT_KV_S("error", health->error.message));
    }
}

static void on_changed(void *data)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    log_states(c);
    weft_controller_changed(c, false);
}

int weft_controller_start_sources(struct weft_controller *c, struct weft_error *err)
{
    const struct weft_sources_options options = {
        .loop = c->loop,
        .seed = c->jitter,
        .once = c->options->once || weft_controller_reads_only(c),
        .changed = on_changed,
        .data = c,
    };
    return weft_sources_new(&options, &c->sources, err);
}

int weft_controller_results(const struct weft_sources *sources, const struct weft_config *config,
                            const struct weft_source_result **results, struct weft_error *err)
{
    for (size_t i = 0; i < config->source_count; i++) {
        results[i] = weft_sources_result(sources, i);
    }
    return weft_sources_check(sources, err);
}

void weft_controller_looks(struct weft_controller *c, uint64_t looks[WEFT_CONFIG_SOURCES_MAX])
{
    c->passes++;
    for (size_t i = 0; i < c->config->source_count; i++) {
        const bool labels = c->config->sources[i].kind == WEFT_SOURCE_LABELS;
        looks[i] = labels ? c->passes : weft_sources_health(c->sources, i)->complete;
    }
}

/* A file that cannot be read now says nothing new. */
static void read_epoch(struct weft_controller *c)
{
    weft_autofree char *text = NULL;
    size_t len = 0;
    struct weft_error err = {0};
    if (weft_file_read_regular(c->config->settle.epoch_file, EPOCH_MAX, &text, &len, &err) < 0) {
        weft_log(WEFT_LOG_DEBUG, "epoch", WEFT_KV_S("error", err.message));
        return;
    }
    const struct weft_str epoch = weft_str_trim((struct weft_str){text, len});
    char *copy = weft_strndup(epoch.data, epoch.len);
    if (copy != NULL) {
        weft_free(c->epoch);
        c->epoch = copy;
    }
}

const char *weft_controller_epoch(struct weft_controller *c)
{
    if (c->config->settle.epoch_file != NULL) {
        read_epoch(c);
        return c->epoch;
    }
    for (size_t i = 0; i < c->config->source_count; i++) {
        const struct weft_source_result *result = weft_sources_result(c->sources, i);
        if (result != NULL && result->epoch != NULL && result->epoch[0] != '\0') {
            return result->epoch;
        }
    }
    return NULL;
}

void weft_controller_say_sources(struct weft_controller *c)
{
    weft_auto(weft_buf_done) struct weft_buf note;
    weft_buf_init(&note, NOTE_MAX);
    for (size_t i = 0; i < c->config->source_count; i++) {
        const struct weft_source_health *health = weft_sources_health(c->sources, i);
        if (health != NULL && health->error.code != 0) {
            (void)weft_buf_printf(&note, "%s%s", note.len > 0 ? "; " : "", health->error.message);
        }
    }
    if (note.len > 0) {
        weft_controller_say(c, true, "SourceFailed", "KeepState", weft_buf_text(&note));
    } else {
        weft_events_clear(c->events, "Lease", c->options->lease, "SourceFailed");
    }
}
