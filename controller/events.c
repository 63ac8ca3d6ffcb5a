/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of Events and the memory of what was said lately. Must not decide what is worth saying.
 */
#include "controller/events.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/base/map.h"
#include "pkg/kube/client.h"
#include "pkg/kube/event.h"
#include "pkg/loop/loop.h"

enum {
    MAGIC = 0x77657674,
    RECENT_MAX = 10000,
    KEY_MAX = 700,
    UNDER_WAY_MAX = 4,
    TRIES_MAX = 3, /* POST, 409, PATCH, 404, POST: then somebody deletes it under our hands */
    BURST = 5      /* Events in a row for one object and reason; then one a REFILL_S */
};

#define REFILL_S INT64_C(60)
/* The server forgets an Event an hour after its last change (kube-apiserver --event-ttl). */
#define REFRESH_S INT64_C(1800)
/* Somewhat more than a tenth of a second, so that no second holds more than ten. */
#define PACE_NS (WEFT_NS_PER_S / WEFT_EVENTS_PER_SECOND + 10 * WEFT_NS_PER_MS)

/* One object and reason. */
struct record {
    uint64_t id;       /* of the Event said last */
    int64_t said_at;   /* monotonic seconds */
    int64_t refill_at; /* monotonic seconds: of which tokens are */
    uint32_t count;    /* how often it was reported */
    unsigned tokens;
    bool said;  /* it stands on the server, as far as is known */
    bool over;  /* and the condition has ended since */
    bool swept; /* has a part */
    unsigned round;
};

struct queued {
    char *api_version, *kind, *ns, *name, *uid, *part;
    char *reason, *action, *note;
    bool warning;
    uint32_t count; /* as in struct weft_kube_event */
    unsigned tries;
};

struct slot {
    struct weft_events *events;
    struct weft_kube_call *call;
    struct queued q;
    bool busy;
};

struct weft_events {
    unsigned magic;
    struct weft_events_options options;
    char *instance;
    struct weft_timer *timer;
    struct queued queue[WEFT_EVENTS_QUEUE_MAX];
    size_t head;
    size_t count;
    struct slot slots[UNDER_WAY_MAX];
    bool held;
    bool failing;            /* the last answer was an error, and that was logged */
    struct weft_map *recent; /* "reason/kind/name/part" → record */
    unsigned round;          /* between two sweeps */
    struct record *records;
    size_t record_count;
    struct weft_events_stats stats;
};

static void queued_done(struct queued *q)
{
    char *const fields[] = {q->api_version, q->kind,   q->ns,     q->name, q->uid,
                            q->part,        q->reason, q->action, q->note};
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
    events->records = weft_calloc(RECENT_MAX, sizeof(*events->records));
    if (events->instance == NULL || events->recent == NULL || events->records == NULL) {
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
    for (size_t i = 0; i < UNDER_WAY_MAX; i++) {
        if (events->slots[i].busy) {
            events->options.cancel(events->slots[i].call);
            queued_done(&events->slots[i].q);
        }
    }
    weft_timer_free(events->timer);
    weft_map_free(events->recent);
    weft_free(events->records);
    weft_free(events->instance);
    events->magic = 0;
    weft_free(events);
}

const struct weft_events_stats *weft_events_stats(const struct weft_events *events)
{
    WEFT_CHECK(events, MAGIC);
    return &events->stats;
}

static int64_t now_s(const struct weft_events *events)
{
    const struct weft_clock *clock = events->options.clock;
    return weft_clock_monotonic(clock != NULL ? clock : weft_clock_system()) / WEFT_NS_PER_S;
}

/* ---- what was said ---- */

static struct record *find(const struct weft_events *events, const struct weft_event_object *object,
                           const char *reason, char key[KEY_MAX])
{
    size_t at = 0;
    (void)snprintf(key, KEY_MAX, "%s/%s/%s/%s", reason, object->kind, object->name,
                   object->part != NULL ? object->part : "");
    return weft_map_get(events->recent, key, &at) ? &events->records[at] : NULL;
}

/* A full memory starts over: better to repeat than to fall silent. NULL without memory. */
static struct record *remember(struct weft_events *events, const char *key)
{
    if (events->record_count == RECENT_MAX) {
        struct weft_map *fresh = weft_map_new(RECENT_MAX);
        if (fresh == NULL) {
            return NULL;
        }
        weft_map_free(events->recent);
        events->recent = fresh;
        events->record_count = 0;
    }
    if (weft_map_put(events->recent, key, events->record_count) < 0) {
        return NULL;
    }
    struct record *r = &events->records[events->record_count++];
    *r = (struct record){.tokens = BURST, .refill_at = now_s(events)};
    return r;
}

static bool take_token(struct record *r, int64_t now)
{
    const int64_t more = (now - r->refill_at) / REFILL_S;
    if (more >= BURST - (int64_t)r->tokens) {
        r->tokens = BURST;
        r->refill_at = now;
    } else {
        r->tokens += (unsigned)more;
        r->refill_at += more * REFILL_S;
    }
    if (r->tokens == 0) {
        return false;
    }
    r->tokens--;
    return true;
}

static void forget(struct weft_events *events, const struct queued *q)
{
    char key[KEY_MAX];
    const struct weft_event_object object = {.kind = q->kind, .name = q->name, .part = q->part};
    struct record *r = find(events, &object, q->reason, key);
    if (r != NULL) {
        r->said = false;
    }
}

void weft_events_clear(struct weft_events *events, const char *kind, const char *name,
                       const char *reason)
{
    char key[KEY_MAX];
    const struct weft_event_object object = {.kind = kind, .name = name};
    struct record *r = find(events, &object, reason, key);
    if (r != NULL) {
        r->over = true;
    }
}

void weft_events_sweep(struct weft_events *events)
{
    WEFT_CHECK(events, MAGIC);
    for (size_t i = 0; i < events->record_count; i++) {
        struct record *r = &events->records[i];
        r->over = r->over || (r->swept && r->round != events->round);
    }
    events->round++;
}

/* ---- what is to be said ---- */

static struct weft_kube_event event_of(const struct weft_events *events, const struct queued *q)
{
    return (struct weft_kube_event){
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
        .count = q->count,
    };
}

static bool copy(const struct weft_kube_event *event, const char *part, struct queued *q)
{
    *q = (struct queued){
        .api_version = weft_strdup(event->api_version),
        .kind = weft_strdup(event->kind),
        .ns = weft_strdup(event->ns),
        .name = weft_strdup(event->name),
        .uid = weft_strdup(event->uid),
        .part = weft_strdup(part != NULL ? part : ""),
        .reason = weft_strdup(event->reason),
        .action = weft_strdup(event->action),
        .note = weft_strdup(event->note),
        .warning = event->warning,
        .count = event->count,
    };
    return q->api_version != NULL && q->kind != NULL && q->ns != NULL && q->name != NULL &&
           q->uid != NULL && q->part != NULL && q->reason != NULL && q->action != NULL &&
           q->note != NULL;
}

/* Takes q's content over, also on failure. */
static bool push(struct weft_events *events, struct queued *q)
{
    if (events->count == WEFT_EVENTS_QUEUE_MAX) {
        events->stats.overflow++;
        forget(events, q);
        queued_done(q);
        return false;
    }
    events->queue[(events->head + events->count) % WEFT_EVENTS_QUEUE_MAX] = *q;
    events->count++;
    start_ticking(events);
    return true;
}

static bool enqueue(struct weft_events *events, const struct weft_kube_event *event,
                    const char *part)
{
    struct queued q;
    if (!copy(event, part, &q)) {
        events->stats.overflow++;
        queued_done(&q);
        return false;
    }
    return push(events, &q);
}

/* The same as last time: its count goes on the server now and then. */
static void repeat(struct weft_events *events, struct record *r, struct weft_kube_event *event,
                   const char *part)
{
    const int64_t now = now_s(events);
    if (now - r->said_at < REFRESH_S) {
        events->stats.repeats++;
        return;
    }
    r->said_at = now;
    event->count = r->count;
    (void)enqueue(events, event, part);
}

bool weft_events_add(struct weft_events *events, const struct weft_event_object *object,
                     bool warning, const char *reason, const char *action, const char *note)
{
    WEFT_CHECK(events, MAGIC);
    char key[KEY_MAX];
    struct weft_kube_event event = {.api_version = object->api_version,
                                    .kind = object->kind,
                                    .ns = object->ns,
                                    .name = object->name,
                                    .uid = object->uid,
                                    .warning = warning,
                                    .reason = reason,
                                    .action = action,
                                    .note = note,
                                    .controller = "weft.dev/controller"};
    const uint64_t id = weft_kube_event_id(&event);
    struct record *r = find(events, object, reason, key);
    r = r != NULL ? r : remember(events, key);
    if (r == NULL) {
        events->stats.overflow++;
        return true;
    }
    r->swept = object->part != NULL;
    r->round = events->round;
    const bool same = r->said && r->id == id;
    r->count = same && r->count < UINT32_MAX ? r->count + 1 : r->count;
    if (same && !r->over) {
        repeat(events, r, &event, object->part);
        return false;
    }
    if (!take_token(r, now_s(events))) {
        events->stats.too_many++;
        return false;
    }
    r->count = same ? r->count : 1;
    event.count = same ? r->count : 0;
    r->id = id;
    r->said_at = now_s(events);
    r->over = false;
    r->said = enqueue(events, &event, object->part);
    return true;
}

/* ---- saying it ---- */

static void start_ticking(struct weft_events *events)
{
    if (!events->held && events->count > 0 && !weft_timer_active(events->timer)) {
        weft_timer_start(events->timer, 0, PACE_NS);
    }
}

void weft_events_hold(struct weft_events *events, bool hold)
{
    WEFT_CHECK(events, MAGIC);
    events->held = hold;
    start_ticking(events);
}

static void log_failure(struct weft_events *events, const struct weft_error *error)
{
    if (error->code != 0 && !events->failing) {
        weft_log(WEFT_LOG_WARN, "events are not taken", WEFT_KV_S("error", error->message));
    }
    events->failing = error->code != 0;
}

/* The Event is there already, from before a restart: its count goes up. Or the server has forgotten
 * it: it is posted again. */
static bool other_way(const struct weft_kube_result *result, struct queued *q)
{
    const bool there = result->error.code == -EEXIST && q->count == 0;
    const bool gone = result->error.code == -ENOENT && q->count > 0;
    if ((!there && !gone) || q->tries >= TRIES_MAX) {
        return false;
    }
    q->count = there ? 2 : 0;
    return true;
}

static void on_answer(void *data, const struct weft_kube_result *result)
{
    struct slot *slot = data;
    struct weft_events *events = slot->events;
    WEFT_CHECK(events, MAGIC);
    struct queued q = slot->q;
    slot->busy = false;
    slot->q = (struct queued){0};
    if (other_way(result, &q)) {
        (void)push(events, &q);
        return;
    }
    log_failure(events, &result->error);
    if (result->error.code == 0) {
        events->stats.sent++;
    } else {
        events->stats.failed++;
        forget(events, &q);
    }
    queued_done(&q);
}

static struct slot *free_slot(struct weft_events *events)
{
    for (size_t i = 0; i < UNDER_WAY_MAX; i++) {
        if (!events->slots[i].busy) {
            return &events->slots[i];
        }
    }
    return NULL;
}

static void send(struct weft_events *events, struct slot *slot)
{
    struct queued *q = &events->queue[events->head];
    *slot = (struct slot){.events = events, .q = *q, .busy = true};
    *q = (struct queued){0};
    events->head = (events->head + 1) % WEFT_EVENTS_QUEUE_MAX;
    events->count--;
    slot->q.tries++;
    struct weft_kube_event event = event_of(events, &slot->q);
    event.on_done = on_answer;
    event.data = slot;
    struct weft_error err = {0};
    if (events->options.client == NULL) {
        slot->busy = false;
        queued_done(&slot->q);
    } else if (events->options.post(events->options.client, &event, &slot->call, &err) < 0) {
        const struct weft_kube_result result = {.reason = "", .error = err};
        on_answer(slot, &result);
    }
}

static void on_tick(void *data)
{
    struct weft_events *events = data;
    WEFT_CHECK(events, MAGIC);
    if (events->count == 0 || events->held) {
        weft_timer_stop(events->timer);
        return;
    }
    struct slot *slot = free_slot(events);
    if (slot != NULL) {
        send(events, slot);
    }
}
