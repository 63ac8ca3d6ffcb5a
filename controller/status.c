/* SPDX-License-Identifier: Apache-2.0 */
/* The ConfigMap's writer. Must not decide what stands in it. */
#include "controller/status.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "controller/status-text.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/base/str.h"
#include "pkg/hypernode/hypernode.h"
#include "pkg/json/json.h"
#include "pkg/kube/client.h"
#include "pkg/loop/loop.h"

enum {
    MAGIC = 0x77737461,
    VERSION_MAX = 64,
    FAILURES_MAX = 6,
    /* the text with every character escaped, and what is around it */
    BODY_MAX = 2 * WEFT_STATUS_TEXT_MAX + 4096
};
_Static_assert((int)BODY_MAX < (int)WEFT_KUBE_REQUEST_MAX, "the client takes it");

#define GAP_NS (10 * WEFT_NS_PER_S)
#define RETRY_NS (5 * WEFT_NS_PER_S)
#define AGAIN_NS (50 * WEFT_NS_PER_MS)
/* as every write of ours: a leader that lost its Lease has none under way when another starts */
#define TIMEOUT_NS (4 * WEFT_NS_PER_S)

static const struct weft_kube_resource config_maps = {
    .group = "", .version = "v1", .plural = "configmaps"};

struct weft_status {
    unsigned magic;
    struct weft_status_env env;
    char *ns, *name, *instance;
    struct weft_timer *timer;
    struct weft_kube_call *call;
    char *wanted; /* NULL: nothing is to be written */
    size_t wanted_len;
    uint64_t wanted_hash;
    uint64_t sent_hash;
    /* as it is on the server */
    bool known;
    bool exists;
    bool foreign; /* it is not ours */
    uint64_t live_hash;
    char version[VERSION_MAX];
    int64_t not_before; /* monotonic */
    unsigned failures;  /* in a row */
    char told[WEFT_ERROR_MESSAGE_MAX];
    struct weft_status_stats stats;
};

static void step(struct weft_status *s);

static void on_timer(void *data)
{
    struct weft_status *s = data;
    WEFT_CHECK(s, MAGIC);
    step(s);
}

int weft_status_new(struct weft_loop *loop, const struct weft_status_env *env,
                    struct weft_status **ret_status, struct weft_error *err)
{
    weft_auto(weft_status_free) struct weft_status *s = weft_calloc(1, sizeof(*s));
    if (s == NULL) {
        return weft_err_nomem(err);
    }
    s->magic = MAGIC;
    s->env = *env;
    s->env.gap_ns = env->gap_ns > 0 ? env->gap_ns : GAP_NS;
    s->ns = weft_strdup(env->ns);
    s->name = weft_strdup(env->name);
    s->instance = weft_strdup(env->instance);
    if (s->ns == NULL || s->name == NULL || s->instance == NULL) {
        return weft_err_nomem(err);
    }
    s->env.ns = NULL; /* were borrowed for this call */
    s->env.name = NULL;
    s->env.instance = NULL;
    const int rc = weft_timer_new(loop, on_timer, s, &s->timer, err);
    if (rc < 0) {
        return rc;
    }
    *ret_status = weft_steal(&s);
    return 0;
}

void weft_status_free(struct weft_status *s)
{
    if (s == NULL) {
        return;
    }
    if (s->call != NULL) {
        s->env.cancel(s->call);
    }
    weft_timer_free(s->timer);
    weft_free(s->wanted);
    weft_free(s->ns);
    weft_free(s->name);
    weft_free(s->instance);
    s->magic = 0;
    weft_free(s);
}

bool weft_status_busy(const struct weft_status *s)
{
    return s->call != NULL;
}

bool weft_status_current(const struct weft_status *s)
{
    return s->known && (s->foreign || (s->exists && s->live_hash == s->wanted_hash));
}

const struct weft_status_stats *weft_status_stats(const struct weft_status *s)
{
    WEFT_CHECK(s, MAGIC);
    return &s->stats;
}

static uint64_t hash_of(const char *text, size_t len)
{
    return weft_hash64(WEFT_HASH_SEED, text, len);
}

int weft_status_set(struct weft_status *s, const char *text, size_t len, struct weft_error *err)
{
    WEFT_CHECK(s, MAGIC);
    const uint64_t hash = hash_of(text, len);
    if (s->wanted != NULL && s->wanted_hash == hash) {
        return 0;
    }
    char *copy = weft_strndup(text, len);
    if (copy == NULL) {
        return weft_err_nomem(err);
    }
    weft_free(s->wanted);
    s->wanted = copy;
    s->wanted_len = len;
    s->wanted_hash = hash;
    step(s);
    return 0;
}

void weft_status_forget(struct weft_status *s)
{
    WEFT_CHECK(s, MAGIC);
    weft_timer_stop(s->timer);
    weft_free(s->wanted);
    s->wanted = NULL;
    s->known = false;
}

/* ---- answers ---- */

static void wait_for(struct weft_status *s, int64_t ns)
{
    weft_timer_start(s->timer, ns, 0);
}

static int64_t now(void)
{
    return weft_clock_monotonic(weft_clock_system());
}

static void take_version(struct weft_status *s, const struct weft_json *metadata)
{
    const char *version = weft_json_string(weft_json_get(metadata, "resourceVersion"));
    (void)snprintf(s->version, sizeof(s->version), "%s", version != NULL ? version : "");
}

static bool labelled(const struct weft_json *labels, const char *key, const char *value)
{
    const char *is = weft_json_string(weft_json_get(labels, key));
    return is != NULL && strcmp(is, value) == 0;
}

/* The object as a GET shows it. */
static void take_live(struct weft_status *s, const struct weft_json *object)
{
    const struct weft_json *metadata = weft_json_get(object, "metadata");
    const struct weft_json *labels = weft_json_get(metadata, "labels");
    const char *text =
        weft_json_string(weft_json_get(weft_json_get(object, "data"), WEFT_STATUS_KEY));
    take_version(s, metadata);
    s->known = true;
    s->exists = true;
    s->foreign = !labelled(labels, WEFT_LABEL_MANAGED_BY, WEFT_LABEL_MANAGED_BY_VALUE) ||
                 !labelled(labels, WEFT_LABEL_INSTANCE, s->instance);
    s->live_hash = text != NULL ? hash_of(text, strlen(text)) : 0;
    if (s->foreign) {
        weft_log(WEFT_LOG_WARN, "status not written", WEFT_KV_S("configmap", s->name),
                 WEFT_KV_S("error", "one of that name is there that this controller did not make"));
    }
}

static void failed(struct weft_status *s, const struct weft_error *error, int64_t at_least)
{
    int64_t wait = RETRY_NS;
    s->stats.failures++;
    for (unsigned i = 0; i < s->failures; i++) {
        wait *= 2;
    }
    s->failures += s->failures < FAILURES_MAX ? 1 : 0;
    if (strcmp(s->told, error->message) != 0) { /* it may be so for days */
        (void)snprintf(s->told, sizeof(s->told), "%s", error->message);
        weft_log(WEFT_LOG_WARN, "status not written", WEFT_KV_S("configmap", s->name),
                 WEFT_KV_S("error", error->message));
    }
    s->not_before = now() + (wait > at_least ? wait : at_least);
}

static void good(struct weft_status *s)
{
    s->failures = 0;
    s->told[0] = '\0';
}

static void idle(struct weft_status *s)
{
    step(s);
    if (s->call == NULL) {
        s->env.on_idle(s->env.data);
    }
}

static void on_read(void *data, const struct weft_kube_result *result)
{
    struct weft_status *s = data;
    WEFT_CHECK(s, MAGIC);
    s->call = NULL;
    if (result->error.code == 0) {
        good(s);
        take_live(s, result->body);
    } else if (result->error.code == -ENOENT) {
        good(s);
        s->known = true;
        s->exists = false;
        s->foreign = false;
    } else {
        failed(s, &result->error, result->retry_after_ns);
    }
    idle(s);
}

static void on_written(void *data, const struct weft_kube_result *result)
{
    struct weft_status *s = data;
    WEFT_CHECK(s, MAGIC);
    const int code = result->error.code;
    s->call = NULL;
    if (code == 0) {
        good(s);
        s->stats.writes++;
        take_version(s, weft_json_get(result->body, "metadata"));
        s->exists = true;
        s->live_hash = s->sent_hash;
        s->not_before = now() + s->env.gap_ns;
    } else {
        s->known = false; /* a conflict, an answer that was lost: it is read first */
        if (code == -ESTALE || code == -EEXIST || (code == -ENOENT && s->exists)) {
            s->not_before = now() + AGAIN_NS;
        } else {
            failed(s, &result->error, result->retry_after_ns);
        }
    }
    idle(s);
}

/* ---- requests ---- */

static void put_object(const struct weft_status *s, struct weft_buf *buf)
{
    struct weft_json_writer w;
    weft_json_writer_init(&w, buf, 0);
    weft_json_open(&w, '{');
    weft_json_kv_string(&w, "apiVersion", "v1");
    weft_json_kv_string(&w, "kind", "ConfigMap");
    weft_json_put_key(&w, "metadata");
    weft_json_open(&w, '{');
    weft_json_kv_string(&w, "name", s->name);
    weft_json_kv_string(&w, "namespace", s->ns);
    if (s->exists) {
        weft_json_kv_string(&w, "resourceVersion", s->version);
    }
    weft_json_put_key(&w, "labels");
    weft_json_open(&w, '{');
    weft_json_kv_string(&w, WEFT_LABEL_MANAGED_BY, WEFT_LABEL_MANAGED_BY_VALUE);
    weft_json_kv_string(&w, WEFT_LABEL_INSTANCE, s->instance);
    weft_json_close(&w, '}');
    weft_json_close(&w, '}');
    weft_json_put_key(&w, "data");
    weft_json_open(&w, '{');
    weft_json_kv_string(&w, WEFT_STATUS_KEY, s->wanted);
    weft_json_close(&w, '}');
    weft_json_close(&w, '}');
}

static int submit(struct weft_status *s, enum weft_kube_verb verb, struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf body;
    weft_buf_init(&body, BODY_MAX);
    if (verb != WEFT_KUBE_GET) {
        put_object(s, &body);
    }
    weft_autofree char *path =
        weft_kube_path(&config_maps, s->ns, verb == WEFT_KUBE_CREATE ? NULL : s->name);
    if (path == NULL || body.status < 0) {
        return weft_err_nomem(err);
    }
    const struct weft_kube_op op = {
        .verb = verb,
        .path = path,
        .body = verb != WEFT_KUBE_GET ? weft_buf_text(&body) : NULL,
        .body_len = body.len,
        .timeout_ns = TIMEOUT_NS,
        .on_done = verb != WEFT_KUBE_GET ? on_written : on_read,
        .data = s,
    };
    s->sent_hash = s->wanted_hash;
    return s->env.submit(s->env.client, &op, &s->call, err);
}

static void step(struct weft_status *s)
{
    struct weft_error err = {0};
    if (s->call != NULL || s->wanted == NULL || weft_status_current(s)) {
        return;
    }
    const int64_t wait = s->not_before - now();
    if (wait > 0) {
        wait_for(s, wait);
        return;
    }
    if (!s->env.may_write(s->env.data)) {
        wait_for(s, WEFT_NS_PER_S);
        return;
    }
    const enum weft_kube_verb write = s->exists ? WEFT_KUBE_REPLACE : WEFT_KUBE_CREATE;
    if (submit(s, s->known ? write : WEFT_KUBE_GET, &err) < 0) {
        failed(s, &err, 0);
        wait_for(s, s->not_before - now());
    }
}
