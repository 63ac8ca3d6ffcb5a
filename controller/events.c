/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of Events and the memory of what was said lately. Must not decide what is worth saying.
 */
#include "controller/events.h"

#include <errno.h>
#include <stdio.h>

#include "pkg/base/clock.h"
#include "pkg/base/map.h"
#include "pkg/kube/event.h"
#include "pkg/loop/loop.h"

enum { MAGIC = 0x77657674, RECENT_MAX = 10000, KEY_MAX = 512 };

#define REPEAT_NS (3600 * WEFT_NS_PER_S)

struct queued {
    char *api_version, *kind, *ns, *name, *uid;
    char *reason, *action, *note;
    bool warning;
};

struct weft_events {
    unsigned magic;
    struct weft_events_options options;
    char *instance;
    struct weft_timer *timer;
    struct queued queue[WEFT_EVENTS_QUEUE_MAX];
    size_t head;
    size_t count;
    bool held;
    struct weft_map *recent; /* "kind/name/reason" → seconds of the monotonic clock */
};

static void queued_done(struct queued *q)
{
    char *const fields[] = {q->api_version, q->kind,   q->ns,     q->name,
                            q->uid,         q->reason, q->action, q->note};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(fields); i++) {
        weft_free(fields[i]);
    }
    *q = (struct queued){0};
}

static void on_tick(void *data);
static void start_ticking(struct weft_events *events);

int weft_events_new(struct weft_loop *loop, const struct weft_events_options *options,
                    struct weft_events **ret_events, struct weft_error *err)
{
    weft_auto(weft_events_free) struct weft_events *events = weft_calloc(1, sizeof(*events));
    if (events == NULL) {
        return weft_err_nomem(err);
    }
    events->magic = MAGIC;
    events->options = *options;
    events->instance = weft_strdup(options->instance);
    events->recent = weft_map_new(RECENT_MAX);
    if (events->instance == NULL || events->recent == NULL) {
        return weft_err_nomem(err);
    }
    const int rc = weft_timer_new(loop, on_tick, events, &events->timer, err);
    if (rc < 0) {
        return rc;
    }
    *ret_events = weft_steal(&events);
    return 0;
}

void weft_events_free(struct weft_events *events)
{
    if (events == NULL) {
        return;
    }
    for (size_t i = 0; i < events->count; i++) {
        queued_done(&events->queue[(events->head + i) % WEFT_EVENTS_QUEUE_MAX]);
    }
    weft_timer_free(events->timer);
    weft_map_free(events->recent);
    weft_free(events->instance);
    events->magic = 0;
    weft_free(events);
}

static int64_t now(const struct weft_events *events)
{
    const struct weft_clock *clock = events->options.clock;
    return weft_clock_monotonic(clock != NULL ? clock : weft_clock_system());
}

static void key_of(char key[KEY_MAX], const char *kind, const char *name, const char *reason)
{
    (void)snprintf(key, KEY_MAX, "%s/%s/%s", reason, kind, name);
}

/* Was the key said lately? If not, it now was. A full memory starts over: better to repeat than to
 * fall silent. */
static bool said(struct weft_events *events, const char *key)
{
    size_t at = 0;
    const int64_t seconds = now(events) / WEFT_NS_PER_S;
    if (weft_map_get(events->recent, key, &at) &&
        seconds - (int64_t)at < REPEAT_NS / WEFT_NS_PER_S) {
        return true;
    }
    if (weft_map_put(events->recent, key, (size_t)seconds) == -EFBIG) {
        struct weft_map *fresh = weft_map_new(RECENT_MAX);
        if (fresh != NULL) {
            weft_map_free(events->recent);
            events->recent = fresh;
            (void)!weft_map_put(fresh, key, (size_t)seconds);
        }
    }
    return false;
}

static bool fill(struct queued *q, const struct weft_event_object *object, const char *reason,
                 const char *action, const char *note)
{
    *q = (struct queued){
        .api_version = weft_strdup(object->api_version),
        .kind = weft_strdup(object->kind),
        .ns = weft_strdup(object->ns),
        .name = weft_strdup(object->name),
        .uid = weft_strdup(object->uid),
        .reason = weft_strdup(reason),
        .action = weft_strdup(action),
        .note = weft_strdup(note),
    };
    return q->api_version != NULL && q->kind != NULL && q->ns != NULL && q->name != NULL &&
           q->uid != NULL && q->reason != NULL && q->action != NULL && q->note != NULL;
}

bool weft_events_add(struct weft_events *events, const struct weft_event_object *object,
                     bool warning, const char *reason, const char *action, const char *note)
{
    WEFT_CHECK(events, MAGIC);
    char key[KEY_MAX];
    key_of(key, object->kind, object->name, reason);
    if (said(events, key)) {
        return false;
    }
    if (events->count == WEFT_EVENTS_QUEUE_MAX) {
        return true;
    }
    struct queued *q = &events->queue[(events->head + events->count) % WEFT_EVENTS_QUEUE_MAX];
    if (!fill(q, object, reason, action, note)) {
        queued_done(q);
        return true;
    }
    q->warning = warning;
    events->count++;
    start_ticking(events);
    return true;
}

void weft_events_clear(struct weft_events *events, const char *kind, const char *name,
                       const char *reason)
{
    char key[KEY_MAX];
    key_of(key, kind, name, reason);
    (void)weft_map_remove(events->recent, key);
}

static void start_ticking(struct weft_events *events)
{
    if (!events->held && events->count > 0 && !weft_timer_active(events->timer)) {
        weft_timer_start(events->timer, 0, WEFT_NS_PER_S / WEFT_EVENTS_PER_SECOND);
    }
}

void weft_events_hold(struct weft_events *events, bool hold)
{
    WEFT_CHECK(events, MAGIC);
    events->held = hold;
    start_ticking(events);
}

static void on_tick(void *data)
{
    struct weft_events *events = data;
    WEFT_CHECK(events, MAGIC);
    if (events->count == 0 || events->held) {
        weft_timer_stop(events->timer);
        return;
    }
    struct queued *q = &events->queue[events->head];
    const struct weft_kube_event event = {
        .api_version = q->api_version,
        .kind = q->kind,
        .ns = q->ns,
        .name = q->name,
        .uid = q->uid,
        .warning = q->warning,
        .reason = q->reason,
        .action = q->action,
        .note = q->note,
        .controller = "weft.dev/controller",
        .instance = events->instance,
    };
    /* best effort: what did not arrive is said again when it is reported the next time */
    if (events->options.client != NULL) {
        (void)!events->options.post(events->options.client, &event, NULL);
    }
    queued_done(q);
    events->head = (events->head + 1) % WEFT_EVENTS_QUEUE_MAX;
    events->count--;
}
