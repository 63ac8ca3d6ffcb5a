/* SPDX-License-Identifier: Apache-2.0 */
/* When each source is looked at, and which of its results counts. Must not know how one is read. */
#include "pkg/source/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/clock.h"
#include "pkg/fabric/cabling.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/inventory.h"
#include "pkg/fabric/labels.h"
#include "pkg/source/source-internal.h"

/* the first try after a failed look; then ever longer, to the interval and at least a minute */
#define BACKOFF_MIN_NS (5 * WEFT_NS_PER_S)
#define BACKOFF_MAX_NS (60 * WEFT_NS_PER_S)

void weft_source_result_done(struct weft_source_result *result)
{
    weft_fabric_free(result->fabric);
    weft_declared_free(result->declared);
    weft_cabling_free(result->expected);
    weft_nic_inventory_free(result->inventory);
    weft_free(result->epoch);
    *result = (struct weft_source_result){0};
}

const char *weft_source_state_name(enum weft_source_state state)
{
    static const char *const names[] = {
        [WEFT_SOURCE_WAITING] = "waiting", [WEFT_SOURCE_OK] = "ok",
        [WEFT_SOURCE_PARTIAL] = "partial", [WEFT_SOURCE_STALE] = "stale",
        [WEFT_SOURCE_FAILED] = "failed",   [WEFT_SOURCE_STATE_COUNT] = "",
    };
    return names[state];
}

int64_t weft_source_now(const struct weft_source *source)
{
    return weft_clock_monotonic(source->owner->clock);
}

/* ---- when ---- */

static void schedule(struct weft_sources *sources)
{
    int64_t due = INT64_MAX;
    for (size_t i = 0; i < sources->count; i++) {
        const struct weft_source *source = sources->items[i];
        if (!source->looking && source->due < due) {
            due = source->due;
        }
    }
    if (due == INT64_MAX) {
        weft_timer_stop(sources->timer);
        return;
    }
    const int64_t now = weft_clock_monotonic(sources->clock);
    weft_timer_start(sources->timer, due > now ? due - now : 0, 0);
}

static void set_due(struct weft_source *source, int64_t wait_ns)
{
    source->looking = false;
    source->due = source->owner->once ? INT64_MAX : weft_source_now(source) + wait_ns;
    schedule(source->owner);
}

static int64_t next_interval(struct weft_source *source)
{
    const int64_t interval = source->settings->interval_ns;
    const int64_t jitter = interval / 100 * (int64_t)source->settings->jitter_percent;
    return interval + weft_kube_backoff_between(&source->backoff, 0, jitter);
}

static void look(struct weft_source *source)
{
    source->looking = true;
    source->ops->look(source);
}

void weft_sources_tick(struct weft_sources *sources)
{
    const int64_t now = weft_clock_monotonic(sources->clock);
    for (size_t i = 0; i < sources->count; i++) {
        struct weft_source *source = sources->items[i];
        if (!source->looking && source->due <= now) {
            look(source);
        }
    }
    schedule(sources);
}

static void on_timer(void *data)
{
    weft_sources_tick(data);
}

static void on_news(void *data)
{
    struct weft_sources *sources = data;
    if (sources->news && sources->changed != NULL) {
        sources->news = false;
        sources->changed(sources->data);
    }
}

static void tell(struct weft_sources *sources)
{
    sources->news = true;
    weft_loop_post(sources->loop, &sources->post);
}

bool weft_sources_refresh(struct weft_sources *sources)
{
    const bool before = sources->news;
    sources->news = false;
    for (size_t i = 0; i < sources->count; i++) {
        struct weft_source *source = sources->items[i];
        if (source->ops != NULL && source->ops->cheap && !source->looking) {
            source->on_demand = true;
            look(source);
            source->on_demand = false;
        }
    }
    const bool any = sources->news;
    sources->news = before;
    if (!before) {
        (void)weft_loop_unpost(sources->loop, &sources->post);
    }
    return any;
}

/* ---- which result counts ---- */

static void set_state(struct weft_source *source, enum weft_source_state state,
                      const struct weft_error *why)
{
    struct weft_source_health *health = &source->health;
    const struct weft_error none = {0};
    why = why != NULL ? why : &none;
    if (health->state != state || health->looks == 1) {
        health->since = weft_source_now(source);
        tell(source->owner);
    } else if (strcmp(health->error.message, why->message) != 0) {
        tell(source->owner);
    }
    health->state = state;
    health->error = *why;
}

static void name_error(const struct weft_source *source, const struct weft_error *why,
                       struct weft_error *ret)
{
    *ret = *why;
    (void)weft_err_wrap(ret, ret->code, "source %s", source->settings->name);
}

static void keep_old(struct weft_source *source, const struct weft_error *why)
{
    struct weft_error error;
    name_error(source, why, &error);
    set_state(source, source->has_result ? WEFT_SOURCE_STALE : WEFT_SOURCE_FAILED, &error);
}

static void take(struct weft_source *source, struct weft_source_result *result,
                 const struct weft_error *why)
{
    struct weft_error error = {0};
    if (why->code != 0) {
        name_error(source, why, &error);
    } else if (result->partial) {
        (void)weft_err_set(&error, -ENODATA, WEFT_ERR_CONFIG,
                           "source %s: the scan is only a part of the fabric",
                           source->settings->name);
    }
    weft_source_result_done(&source->result);
    source->result = *result;
    *result = (struct weft_source_result){0};
    source->has_result = true;
    source->health.complete += error.code == 0;
    set_state(source, error.code != 0 ? WEFT_SOURCE_PARTIAL : WEFT_SOURCE_OK, &error);
    tell(source->owner);
}

void weft_source_finish(struct weft_source *source, struct weft_source_result *result,
                        const struct weft_error *why, int64_t retry_after_ns)
{
    struct weft_error only_a_part = {0};
    int64_t wait = next_interval(source);
    source->health.looks++;
    if (result != NULL) {
        result->partial = result->partial || why->code != 0;
        if (result->fabric != NULL) { /* findings tell of it, and nothing may be missed by it */
            result->fabric->partial = result->partial;
        }
        source->health.failures = 0;
        weft_kube_backoff_reset(&source->backoff);
    } else {
        source->health.failures++;
        wait = weft_kube_backoff_next(&source->backoff, 0);
    }
    if (result == NULL) {
        keep_old(source, why);
    } else if (result->partial && source->has_result && !source->result.partial) {
        (void)weft_err_set(&only_a_part, -ENODATA, WEFT_ERR_CONFIG,
                           "%s%sthe scan is only a part of the fabric; the one before stays in use",
                           why->message, why->code != 0 ? "; " : "");
        keep_old(source, &only_a_part);
        weft_source_result_done(result);
    } else {
        take(source, result, why);
    }
    set_due(source, wait > retry_after_ns ? wait : retry_after_ns);
}

void weft_source_unchanged(struct weft_source *source)
{
    if (source->on_demand) {
        source->looking = false;
        return;
    }
    source->health.complete += source->health.state == WEFT_SOURCE_OK;
    set_due(source, next_interval(source));
}

/* ---- life ---- */

int weft_sources_new(const struct weft_sources_options *options, struct weft_sources **ret_sources,
                     struct weft_error *err)
{
    weft_auto(weft_sources_free) struct weft_sources *sources = weft_calloc(1, sizeof(*sources));
    if (sources == NULL) {
        return weft_err_nomem(err);
    }
    sources->loop = options->loop;
    sources->clock = options->clock != NULL ? options->clock : weft_clock_system();
    sources->seed = options->seed;
    sources->output_max = options->output_max > 0 ? options->output_max : WEFT_FABRIC_TEXT_MAX;
    sources->once = options->once;
    sources->changed = options->changed;
    sources->data = options->data;
    sources->post = (struct weft_post){.fn = on_news, .data = sources};
    const int rc = weft_timer_new(options->loop, on_timer, sources, &sources->timer, err);
    if (rc < 0) {
        return rc;
    }
    *ret_sources = weft_steal(&sources);
    return 0;
}

static void source_free(struct weft_source *source)
{
    if (source == NULL) {
        return;
    }
    if (source->ops != NULL) {
        source->ops->stop(source);
    }
    weft_source_result_done(&source->result);
    weft_free(source->text);
    weft_free(source);
}

void weft_sources_free(struct weft_sources *sources)
{
    if (sources == NULL) {
        return;
    }
    (void)weft_loop_unpost(sources->loop, &sources->post);
    for (size_t i = 0; i < sources->count; i++) {
        source_free(sources->items[i]);
    }
    weft_free(sources->items);
    weft_timer_free(sources->timer);
    weft_loop_free(sources->own_loop);
    weft_free(sources);
}

/* The looks have their own ends; this one is only for what should never be. */
#define READ_MAX_NS (INT64_C(86400) * WEFT_NS_PER_S)

static void stop_if_ready(void *data)
{
    const struct weft_sources *sources = *(struct weft_sources **)data;
    if (weft_sources_ready(sources)) {
        weft_loop_stop(sources->loop);
    }
}

int weft_sources_read(const struct weft_config_source *list, size_t count,
                      struct weft_sources **ret_sources, struct weft_error *err)
{
    weft_auto(weft_sources_free) struct weft_sources *sources = NULL;
    struct weft_loop *loop = NULL;
    int rc = weft_loop_new(&loop, err);
    if (rc < 0) {
        return rc;
    }
    const struct weft_sources_options options = {
        .loop = loop, .once = true, .changed = stop_if_ready, .data = &sources};
    rc = weft_sources_new(&options, &sources, err);
    if (rc < 0 || sources == NULL) {
        weft_loop_free(loop);
        return rc;
    }
    sources->own_loop = loop;
    rc = weft_sources_configure(sources, list, count, err);
    if (rc < 0) {
        return rc;
    }
    if (!weft_sources_ready(sources)) {
        const bool never = false;
        (void)weft_loop_run_until(loop, &never, READ_MAX_NS);
    }
    sources->changed = NULL; /* its data is this function's */
    *ret_sources = weft_steal(&sources);
    return 0;
}

static const struct weft_source_ops *ops_of(const struct weft_config_source *settings)
{
    if (settings->command_count > 0) {
        return &weft_source_command_ops;
    }
    if (settings->ufm.url != NULL) {
        return &weft_source_ufm_ops;
    }
    /* a labels source may have a file too, on the command line: the nodes' */
    const bool files = settings->files.count > 0 || settings->folder != NULL;
    return files && settings->kind != WEFT_SOURCE_LABELS ? &weft_source_files_ops : NULL;
}

static int source_new(struct weft_sources *owner, const struct weft_config_source *settings,
                      size_t index, struct weft_source **ret_source, struct weft_error *err)
{
    struct weft_source *source = weft_calloc(1, sizeof(*source));
    if (source == NULL) {
        return weft_err_nomem(err);
    }
    *ret_source = source;
    source->owner = owner;
    source->settings = settings;
    source->text = weft_strdup(settings->text != NULL ? settings->text : "");
    if (source->text == NULL) {
        return weft_err_nomem(err);
    }
    const int64_t most =
        settings->interval_ns > BACKOFF_MAX_NS ? settings->interval_ns : BACKOFF_MAX_NS;
    const uint64_t seed = owner->seed != 0 ? owner->seed + index : 0;
    weft_kube_backoff_init(&source->backoff, BACKOFF_MIN_NS, most, seed);
    source->health.since = weft_source_now(source);
    const struct weft_source_ops *ops = ops_of(settings);
    if (ops == NULL) {
        source->due = INT64_MAX;
        source->health.state = WEFT_SOURCE_OK;
        return 0;
    }
    const int rc = ops->start != NULL ? ops->start(source, err) : 0;
    source->ops = rc < 0 ? NULL : ops;
    return rc;
}

/* The old source of the same settings that no new one has taken yet, or NULL. */
static struct weft_source *find_same(const struct weft_sources *sources, const bool *taken,
                                     const struct weft_config_source *settings, size_t *ret_index)
{
    for (size_t i = 0; settings->text != NULL && i < sources->count; i++) {
        if (!taken[i] && strcmp(sources->items[i]->text, settings->text) == 0) {
            *ret_index = i;
            return sources->items[i];
        }
    }
    return NULL;
}

int weft_sources_configure(struct weft_sources *sources, const struct weft_config_source *list,
                           size_t count, struct weft_error *err)
{
    struct weft_source *fresh[WEFT_CONFIG_SOURCES_MAX] = {0};
    bool taken[WEFT_CONFIG_SOURCES_MAX] = {0};
    struct weft_source **items = weft_calloc(WEFT_CONFIG_SOURCES_MAX, sizeof(struct weft_source *));
    int rc = items == NULL || count > WEFT_CONFIG_SOURCES_MAX ? weft_err_nomem(err) : 0;
    for (size_t i = 0; rc >= 0 && i < count; i++) {
        size_t at = 0;
        items[i] = find_same(sources, taken, &list[i], &at);
        if (items[i] != NULL) {
            taken[at] = true;
        } else {
            rc = source_new(sources, &list[i], i, &fresh[i], err);
            items[i] = fresh[i];
        }
    }
    for (size_t i = 0; i < WEFT_CONFIG_SOURCES_MAX && rc < 0; i++) {
        source_free(fresh[i]);
    }
    if (rc < 0) {
        weft_free(items);
        return rc;
    }
    for (size_t i = 0; i < sources->count; i++) {
        if (!taken[i]) {
            source_free(sources->items[i]);
        }
    }
    weft_free(sources->items);
    sources->items = items;
    sources->count = count;
    for (size_t i = 0; i < count; i++) {
        items[i]->settings = &list[i];
    }
    schedule(sources);
    return 0;
}

/* ---- what there is ---- */

bool weft_sources_ready(const struct weft_sources *sources)
{
    for (size_t i = 0; i < sources->count; i++) {
        if (sources->items[i]->health.state == WEFT_SOURCE_WAITING) {
            return false;
        }
    }
    return true;
}

int weft_sources_check(const struct weft_sources *sources, struct weft_error *err)
{
    for (size_t i = 0; i < sources->count; i++) {
        const struct weft_source *source = sources->items[i];
        if (source->ops == NULL || source->has_result) {
            continue;
        }
        if (err != NULL && source->health.error.code != 0) {
            *err = source->health.error;
        } else {
            (void)weft_err_set(err, -ENODATA, WEFT_ERR_CONFIG, "source %s: no answer yet",
                               source->settings->name);
        }
        return -ENODATA;
    }
    return 0;
}

const struct weft_source_result *weft_sources_result(const struct weft_sources *sources,
                                                     size_t index)
{
    return index < sources->count && sources->items[index]->has_result
               ? &sources->items[index]->result
               : NULL;
}

const struct weft_source_health *weft_sources_health(const struct weft_sources *sources,
                                                     size_t index)
{
    return index < sources->count ? &sources->items[index]->health : NULL;
}
