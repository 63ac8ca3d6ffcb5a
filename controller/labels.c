/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of Nodes, a tick, a few calls under way. Must not know what a tier is. */
#include "controller/labels.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/str.h"
#include "pkg/fabric/node.h"
#include "pkg/hypernode/layout.h"
#include "pkg/json/json.h"
#include "pkg/kube/client.h"
#include "pkg/loop/loop.h"

enum {
    MAGIC = 0x776c6162,
    FLIGHTS = 4,
    KEY_MAX = 320,
    VERSION_MAX = 24,
    BODY_MAX = 64 << 10,
    BACKOFF_STEPS_MAX = 6 /* 1, 2, 4 … 64 s */
};

#define TIMEOUT_NS (4 * WEFT_NS_PER_S)

struct target {
    char *node;
    char *uid;
    char *values[WEFT_LAYOUT_TIERS_MAX];
    size_t count;
    bool strip;       /* labels of ours that somebody else owns must go: a second write */
    uint64_t version; /* that the write asks for; 0: any */
};

struct flight {
    struct weft_labels *labels;
    struct weft_kube_call *call; /* NULL: free */
    struct target target;
};

struct weft_labels {
    unsigned magic;
    struct weft_labels_env env;
    char *prefix;
    int64_t tick; /* ns between two writes */
    struct weft_timer *timer;
    struct target *queue;
    size_t head; /* next to write */
    size_t count;
    size_t cap;
    struct flight flights[FLIGHTS];
    size_t flying;
    size_t written;
    size_t failed;
    size_t stale; /* conflicts */
    unsigned backoff;
    bool running;
    bool stopped;
};

static void target_done(struct target *target)
{
    weft_free(target->node);
    weft_free(target->uid);
    for (size_t i = 0; i < target->count; i++) {
        weft_free(target->values[i]);
    }
    *target = (struct target){0};
}

static void on_tick(void *data);

int weft_labels_new(struct weft_loop *loop, const char *prefix, unsigned rate,
                    const struct weft_labels_env *env, struct weft_labels **ret_labels,
                    struct weft_error *err)
{
    weft_auto(weft_labels_free) struct weft_labels *labels = weft_calloc(1, sizeof(*labels));
    if (labels == NULL) {
        return weft_err_nomem(err);
    }
    labels->magic = MAGIC;
    labels->env = *env;
    labels->tick = WEFT_NS_PER_S / (int64_t)(rate > 0 ? rate : WEFT_LABELS_RATE_DEFAULT);
    labels->prefix = weft_strdup(prefix);
    if (labels->prefix == NULL) {
        return weft_err_nomem(err);
    }
    const int rc = weft_timer_new(loop, on_tick, labels, &labels->timer, err);
    if (rc < 0) {
        return rc;
    }
    *ret_labels = weft_steal(&labels);
    return 0;
}

void weft_labels_free(struct weft_labels *labels)
{
    if (labels == NULL) {
        return;
    }
    for (size_t i = 0; i < FLIGHTS; i++) {
        if (labels->flights[i].call != NULL) {
            labels->env.cancel(labels->flights[i].call);
            target_done(&labels->flights[i].target);
        }
    }
    weft_labels_clear(labels);
    weft_free(labels->queue);
    weft_timer_free(labels->timer);
    weft_free(labels->prefix);
    labels->magic = 0;
    weft_free(labels);
}

/* ---- what is there, what is asked for ---- */

/* 1… if key is the label of a tier, else 0. */
static uint64_t tier_of(const char *key, const char *prefix)
{
    struct weft_str s = weft_str(key);
    const size_t len = strlen(prefix);
    uint64_t tier = 0;
    if (!weft_str_starts(s, prefix)) {
        return 0;
    }
    s = (struct weft_str){.data = key + len, .len = s.len - len};
    if (!weft_str_starts(s, "tier-")) {
        return 0;
    }
    s = (struct weft_str){.data = s.data + 5, .len = s.len - 5};
    return weft_parse_u64(s, UINT32_MAX, &tier) < 0 ? 0 : tier;
}

bool weft_labels_current(const struct weft_node *node, const char *prefix,
                         const char *const *values, size_t count)
{
    size_t right = 0;
    for (size_t i = 0; i < node->label_count; i++) {
        const uint64_t tier = tier_of(node->labels[i].key, prefix);
        if (tier == 0) {
            continue;
        }
        if (tier > count || strcmp(node->labels[i].value, values[tier - 1]) != 0) {
            return false;
        }
        right++;
    }
    return right == count;
}

static const struct flight *flight_of(const struct weft_labels *labels, const char *node)
{
    for (size_t i = 0; i < FLIGHTS; i++) {
        const struct flight *flight = &labels->flights[i];
        if (flight->call != NULL && strcmp(flight->target.node, node) == 0) {
            return flight;
        }
    }
    return NULL;
}

bool weft_labels_under_way(const struct weft_labels *labels, const char *node,
                           const char *const *values, size_t count)
{
    const struct flight *flight = flight_of(labels, node);
    if (flight == NULL || flight->target.count != count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(flight->target.values[i], values[i]) != 0) {
            return false;
        }
    }
    return true;
}

bool weft_labels_expects(const struct weft_labels *labels, const struct weft_node *node)
{
    const struct flight *flight = flight_of(labels, node->name);
    return flight != NULL &&
           weft_labels_current(node, labels->prefix, (const char *const *)flight->target.values,
                               flight->target.count);
}

void weft_labels_clear(struct weft_labels *labels)
{
    for (size_t i = labels->head; i < labels->count; i++) {
        target_done(&labels->queue[i]);
    }
    labels->head = 0;
    labels->count = 0;
}

static int enqueue(struct weft_labels *labels, struct target *target)
{
    target->strip = false; /* its turn starts anew */
    if (labels->head > 0 && labels->head == labels->count) {
        labels->head = 0;
        labels->count = 0;
    }
    int rc = weft_array_reserve((void **)&labels->queue, &labels->cap, labels->count + 1,
                                sizeof(*labels->queue), 2 * (size_t)WEFT_NODES_MAX);
    if (rc < 0) {
        return rc;
    }
    labels->queue[labels->count++] = *target;
    *target = (struct target){0};
    return 0;
}

int weft_labels_add(struct weft_labels *labels, const char *node, const char *uid,
                    const char *const *values, size_t count)
{
    if (count > WEFT_LAYOUT_TIERS_MAX) {
        return -EFBIG;
    }
    struct target target = {.node = weft_strdup(node), .uid = weft_strdup(uid)};
    int rc = target.node == NULL || target.uid == NULL ? -ENOMEM : 0;
    for (; rc == 0 && target.count < count; target.count++) {
        target.values[target.count] = weft_strdup(values[target.count]);
        rc = target.values[target.count] == NULL ? -ENOMEM : 0;
    }
    if (rc == 0) {
        rc = enqueue(labels, &target);
    }
    if (rc < 0) {
        target_done(&target);
    }
    return rc;
}

bool weft_labels_busy(const struct weft_labels *labels)
{
    return labels->running;
}

/* ---- one write ---- */

static void open_node(struct weft_json_writer *w, struct flight *flight)
{
    const struct weft_labels_env *env = &flight->labels->env;
    struct target *target = &flight->target;
    char version[VERSION_MAX];
    target->version = env->version(env->data, target->node);
    (void)snprintf(version, sizeof(version), "%" PRIu64, target->version);
    weft_json_open(w, '{');
    weft_json_kv_string(w, "apiVersion", "v1");
    weft_json_kv_string(w, "kind", "Node");
    weft_json_put_key(w, "metadata");
    weft_json_open(w, '{');
    weft_json_kv_string(w, "name", target->node);
    weft_json_kv_string(w, "uid", target->uid);
    if (target->version != 0) {
        weft_json_kv_string(w, "resourceVersion", version);
    }
    weft_json_put_key(w, "labels");
    weft_json_open(w, '{');
}

static void close_node(struct weft_json_writer *w)
{
    weft_json_close(w, '}');
    weft_json_close(w, '}');
    weft_json_close(w, '}');
}

static void put_tier(const struct weft_labels *labels, struct weft_json_writer *w, uint64_t tier,
                     const char *value)
{
    char key[KEY_MAX];
    (void)snprintf(key, sizeof(key), "%stier-%" PRIu64, labels->prefix, tier);
    weft_json_put_key(w, key);
    if (value == NULL) {
        weft_json_put_null(w);
    } else {
        weft_json_put_string(w, value);
    }
}

static void on_written(void *data, const struct weft_kube_result *result);

static int submit(struct flight *flight, enum weft_kube_verb verb, const struct weft_buf *body,
                  struct weft_error *err)
{
    struct weft_labels *labels = flight->labels;
    weft_autofree char *path = weft_kube_path(&weft_kube_nodes, NULL, flight->target.node);
    if (path == NULL || body->status < 0) {
        return weft_err_nomem(err);
    }
    const struct weft_kube_op op = {
        .verb = verb,
        .path = path,
        .body = weft_buf_text(body),
        .body_len = body->len,
        .field_manager = WEFT_LABELS_FIELD_MANAGER,
        .force = verb == WEFT_KUBE_APPLY,
        .timeout_ns = TIMEOUT_NS,
        .on_done = on_written,
        .data = flight,
    };
    return labels->env.submit(labels->env.client, &op, &flight->call, err);
}

static int send_apply(struct flight *flight, struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, BODY_MAX);
    struct weft_json_writer w;
    weft_json_writer_init(&w, &buf, 0);
    open_node(&w, flight);
    for (size_t i = 0; i < flight->target.count; i++) {
        put_tier(flight->labels, &w, i + 1, flight->target.values[i]);
    }
    close_node(&w);
    return submit(flight, WEFT_KUBE_APPLY, &buf, err);
}

/* Labels of tiers the Node must not have survive an apply where another manager set them. */
static int send_strip(struct flight *flight, const struct weft_json *now, struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, BODY_MAX);
    struct weft_json_writer w;
    weft_json_writer_init(&w, &buf, 0);
    open_node(&w, flight);
    for (size_t i = 0; i < weft_json_count(now); i++) {
        const uint64_t tier = tier_of(weft_json_key(weft_json_at(now, i)), flight->labels->prefix);
        if (tier > flight->target.count) {
            put_tier(flight->labels, &w, tier, NULL);
        }
    }
    close_node(&w);
    return submit(flight, WEFT_KUBE_MERGE_PATCH, &buf, err);
}

static bool has_surplus(const struct flight *flight, const struct weft_json *now)
{
    for (size_t i = 0; i < weft_json_count(now); i++) {
        const char *key = weft_json_key(weft_json_at(now, i));
        if (tier_of(key, flight->labels->prefix) > flight->target.count) {
            return true;
        }
    }
    return false;
}

/* ---- the queue ---- */

static void end_round(struct weft_labels *labels)
{
    if (labels->flying > 0 || (labels->head < labels->count && !labels->stopped)) {
        return;
    }
    weft_timer_stop(labels->timer);
    weft_labels_clear(labels);
    labels->running = false;
    labels->backoff = 0;
    const struct weft_labels_result result = {.written = labels->written,
                                              .failed = labels->failed,
                                              .stale = labels->stale,
                                              .stopped = labels->stopped};
    labels->env.on_done(labels->env.data, &result);
}

static void land(struct flight *flight)
{
    flight->call = NULL;
    flight->labels->flying--;
    target_done(&flight->target);
}

/* Waits before the next write; the target goes to the end of the queue. */
static void try_later(struct flight *flight, int64_t retry_after)
{
    struct weft_labels *labels = flight->labels;
    if (enqueue(labels, &flight->target) < 0) {
        labels->failed++;
    }
    int64_t wait = WEFT_NS_PER_S << labels->backoff;
    labels->backoff += labels->backoff < BACKOFF_STEPS_MAX ? 1 : 0;
    wait = retry_after > wait ? retry_after : wait;
    weft_timer_start(labels->timer, wait, labels->tick);
}

static void failed(struct flight *flight, const struct weft_kube_result *result)
{
    struct weft_labels *labels = flight->labels;
    const bool retry = result->error.retryable || result->outcome_unknown;
    labels->env.on_error(labels->env.data, flight->target.node, &result->error, retry);
    if (retry) {
        /* an apply that was done already changes nothing when it is sent again */
        try_later(flight, result->retry_after_ns);
    } else {
        labels->failed++;
        labels->stopped = labels->stopped || result->status == 401 || result->status == 403;
    }
}

/* Is the Node of that name another one by now? An apply with the uid of one that was deleted is a
 * 409 while there is none, and a 422 about metadata.uid once another has come. */
static bool is_another(const struct weft_kube_result *result)
{
    const struct weft_json *causes =
        weft_json_get(weft_json_get(result->body, "details"), "causes");
    for (size_t i = 0; result->status == 422 && i < weft_json_count(causes); i++) {
        const char *field = weft_json_string(weft_json_get(weft_json_at(causes, i), "field"));
        if (field != NULL && strcmp(field, "metadata.uid") == 0) {
            return true;
        }
    }
    return false;
}

/* true if a second write is under way, for what the first one leaves. */
static bool taken(struct flight *flight, const struct weft_json *node)
{
    struct weft_labels *labels = flight->labels;
    const struct weft_json *now = weft_json_get(weft_json_get(node, "metadata"), "labels");
    labels->backoff = 0;
    labels->env.on_node(labels->env.data, node);
    if (flight->target.strip || !has_surplus(flight, now)) {
        labels->written++;
        return false;
    }
    flight->target.strip = true;
    if (send_strip(flight, now, NULL) < 0) {
        labels->failed++;
        return false;
    }
    return true;
}

static void on_written(void *data, const struct weft_kube_result *result)
{
    struct flight *flight = data;
    struct weft_labels *labels = flight->labels;
    WEFT_CHECK(labels, MAGIC);
    flight->call = NULL;
    if (result->status == 409 && flight->target.version != 0) {
        labels->stale++; /* it is not as it was last seen: changed, or gone */
    } else if (result->status == 404 || result->status == 409 || is_another(result)) {
        /* the Node is gone: the watch says so, or has said so */
    } else if (result->error.code != 0) {
        failed(flight, result);
    } else if (taken(flight, result->body)) {
        return;
    }
    land(flight);
    end_round(labels);
}

static void on_tick(void *data)
{
    struct weft_labels *labels = data;
    WEFT_CHECK(labels, MAGIC);
    if (!labels->stopped && !labels->env.may_write(labels->env.data)) {
        labels->stopped = true;
    }
    if (labels->stopped || labels->head == labels->count) {
        end_round(labels);
        return;
    }
    for (size_t i = 0; i < FLIGHTS; i++) {
        struct flight *flight = &labels->flights[i];
        if (flight->call != NULL) {
            continue;
        }
        flight->labels = labels;
        flight->target = labels->queue[labels->head++];
        struct weft_error err = {0};
        labels->flying++;
        if (send_apply(flight, &err) < 0) {
            labels->env.on_error(labels->env.data, flight->target.node, &err, true);
            try_later(flight, 0);
            land(flight);
        }
        return;
    }
}

void weft_labels_start(struct weft_labels *labels)
{
    if (labels->head == labels->count) {
        return;
    }
    if (!labels->running) {
        labels->running = true;
        labels->written = 0;
        labels->failed = 0;
        labels->stale = 0;
    }
    labels->stopped = false;
    if (!weft_timer_active(labels->timer)) {
        weft_timer_start(labels->timer, 0, labels->tick);
    }
}
