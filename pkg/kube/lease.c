/* SPDX-License-Identifier: Apache-2.0 */
/* Leader election: look, take or renew, wait; one request or one timer at a time. */
#include "pkg/kube/lease.h"

#include <errno.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/json/json.h"
#include "pkg/kube/backoff.h"
#include "pkg/kube/client.h"
#include "pkg/loop/loop.h"

enum { LEASE_MAGIC = 0x4b754c65 /* "KuLe" */, LEASE_BYTES_MAX = 4096, HOLDER_MAX = 256 };

/* A Lease as it was last seen. */
struct record {
    char holder[HOLDER_MAX];
    char renew_time[WEFT_TIME_TEXT_MAX];
    char acquire_time[WEFT_TIME_TEXT_MAX];
    char resource_version[64];
    int64_t duration_s;
    int64_t transitions;
};

struct weft_kube_lease {
    uint32_t magic;
    struct weft_kube_client *client;
    struct weft_kube_lease_options options; /* texts: our copies */
    char *ns, *name, *identity, *path, *collection;
    struct weft_timer *timer;    /* the next look or renewal */
    struct weft_timer *deadline; /* when a held Lease is lost without a renewal */
    struct weft_kube_call *call;
    struct weft_kube_backoff random; /* for jitter only */

    struct record seen;
    bool has_seen;
    int64_t seen_at; /* when we first saw this very record, by our clock */
    bool held;
    int64_t sent_at;    /* of the write under way */
    int64_t renewed_at; /* when the last successful write was sent */
    bool conflicted;    /* the last write met a conflict */

    bool releasing;
    void (*on_released)(void *data);
    unsigned depth;
    bool freed;
};

static void look(struct weft_kube_lease *l);
static void on_timer(void *data);
static void on_deadline(void *data);

static int64_t now_ns(const struct weft_kube_lease *l)
{
    return weft_clock_monotonic(l->options.clock);
}

/* ---- life ---- */

static void destroy(struct weft_kube_lease *l)
{
    weft_timer_free(l->timer);
    weft_timer_free(l->deadline);
    weft_free(l->ns);
    weft_free(l->name);
    weft_free(l->identity);
    weft_free(l->path);
    weft_free(l->collection);
    l->magic = 0;
    weft_free(l);
}

static void leave(struct weft_kube_lease *l)
{
    l->depth--;
    if (l->freed && l->depth == 0) {
        destroy(l);
    }
}

void weft_kube_lease_free(struct weft_kube_lease *l)
{
    if (l == NULL) {
        return;
    }
    WEFT_CHECK(l, LEASE_MAGIC);
    weft_kube_call_cancel(weft_steal(&l->call));
    weft_timer_stop(l->timer);
    weft_timer_stop(l->deadline);
    l->freed = true;
    l->held = false;
    if (l->depth == 0) {
        destroy(l);
    }
}

static void set_default(int64_t *value, int64_t otherwise)
{
    *value = *value > 0 ? *value : otherwise;
}

static bool options_sound(const struct weft_kube_lease_options *o)
{
    return o->ns != NULL && o->name != NULL && o->identity != NULL && o->on_acquired != NULL &&
           o->on_lost != NULL && strlen(o->identity) < HOLDER_MAX &&
           o->duration_ns % WEFT_NS_PER_S == 0 && o->fence_ns + o->timeout_ns <= o->duration_ns &&
           o->renew_ns < o->fence_ns;
}

static int set_options(struct weft_kube_lease *l, const struct weft_kube_lease_options *options,
                       struct weft_error *err)
{
    struct weft_kube_lease_options *o = &l->options;
    *o = *options;
    set_default(&o->duration_ns, 15 * WEFT_NS_PER_S);
    set_default(&o->renew_ns, 5 * WEFT_NS_PER_S);
    set_default(&o->retry_ns, 2 * WEFT_NS_PER_S);
    set_default(&o->timeout_ns, 4 * WEFT_NS_PER_S);
    set_default(&o->fence_ns, 6 * WEFT_NS_PER_S);
    o->clock = o->clock != NULL ? o->clock : weft_clock_system();
    if (!options_sound(o)) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "a Lease needs namespace, name, identity, whole seconds, time for a "
                            "last write (fence + timeout <= duration), and renew < fence");
    }
    weft_kube_backoff_init(&l->random, o->retry_ns, o->retry_ns, o->seed);
    l->ns = weft_strdup(o->ns);
    l->name = weft_strdup(o->name);
    l->identity = weft_strdup(o->identity);
    l->path = weft_kube_path(&weft_kube_leases, o->ns, o->name);
    l->collection = weft_kube_path(&weft_kube_leases, o->ns, NULL);
    const bool complete = l->ns != NULL && l->name != NULL && l->identity != NULL &&
                          l->path != NULL && l->collection != NULL;
    return complete ? 0 : weft_err_nomem(err);
}

int weft_kube_lease_new(struct weft_kube_client *client,
                        const struct weft_kube_lease_options *options,
                        struct weft_kube_lease **ret_lease, struct weft_error *err)
{
    struct weft_kube_lease *l = weft_calloc(1, sizeof(*l));
    if (l == NULL) {
        return weft_err_nomem(err);
    }
    l->magic = LEASE_MAGIC;
    l->client = client;
    struct weft_loop *loop = weft_kube_client_loop(client);
    int rc = set_options(l, options, err);
    rc = rc < 0 ? rc : weft_timer_new(loop, on_timer, l, &l->timer, err);
    rc = rc < 0 ? rc : weft_timer_new(loop, on_deadline, l, &l->deadline, err);
    if (rc < 0) {
        destroy(l);
        return rc;
    }
    weft_timer_start(l->timer, 0, 0);
    *ret_lease = l;
    return 0;
}

/* ---- state ---- */

bool weft_kube_lease_held(const struct weft_kube_lease *l)
{
    WEFT_CHECK(l, LEASE_MAGIC);
    return l->held;
}

bool weft_kube_lease_fresh(const struct weft_kube_lease *l)
{
    WEFT_CHECK(l, LEASE_MAGIC);
    return l->held && !l->releasing && now_ns(l) - l->renewed_at < l->options.fence_ns;
}

/* Somebody else's Lease, or one that could not be asked for. */
static void wait_to_look(struct weft_kube_lease *l)
{
    const int64_t retry = l->options.retry_ns;
    weft_timer_start(l->timer, weft_kube_backoff_between(&l->random, retry, retry + retry / 5), 0);
}

/* Our own: counted from when the last renewal was sent, as the fence is. */
static void wait_to_renew(struct weft_kube_lease *l, bool renewed)
{
    const int64_t renew = l->options.renew_ns;
    const int64_t wait = renewed ? weft_kube_backoff_between(&l->random, renew - renew / 5, renew)
                                 : l->options.retry_ns;
    const int64_t left = l->sent_at + wait - now_ns(l);
    weft_timer_start(l->timer, left > 0 ? left : 0, 0);
}

static void wait_again(struct weft_kube_lease *l)
{
    if (l->held) {
        wait_to_renew(l, false);
    } else {
        wait_to_look(l);
    }
}

static void lose(struct weft_kube_lease *l)
{
    if (l->held) {
        l->held = false;
        weft_timer_stop(l->deadline);
        if (!l->releasing) {
            l->options.on_lost(l->options.data);
        }
    }
}

static void on_deadline(void *data)
{
    struct weft_kube_lease *l = data;
    WEFT_CHECK(l, LEASE_MAGIC);
    l->depth++;
    lose(l);
    leave(l);
}

static void keep_text(char *into, size_t size, const struct weft_json *object, const char *key)
{
    const char *text = weft_json_string(weft_json_get(object, key));
    const size_t len = text != NULL ? strnlen(text, size - 1) : 0;
    memcpy(into, text != NULL ? text : "", len);
    into[len] = '\0';
}

/* Takes a Lease from an answer. A record that differs in anything restarts its holder's time. */
static void take_record(struct weft_kube_lease *l, const struct weft_json *lease)
{
    const struct weft_json *spec = weft_json_get(lease, "spec");
    struct record now = {
        .duration_s = weft_json_int(weft_json_get(spec, "leaseDurationSeconds"), 0),
        .transitions = weft_json_int(weft_json_get(spec, "leaseTransitions"), 0),
    };
    keep_text(now.holder, sizeof(now.holder), spec, "holderIdentity");
    keep_text(now.renew_time, sizeof(now.renew_time), spec, "renewTime");
    keep_text(now.acquire_time, sizeof(now.acquire_time), spec, "acquireTime");
    keep_text(now.resource_version, sizeof(now.resource_version), weft_json_get(lease, "metadata"),
              "resourceVersion");
    const bool same_holder = l->has_seen && strcmp(l->seen.holder, now.holder) == 0;
    if (!same_holder || strcmp(l->seen.renew_time, now.renew_time) != 0) {
        l->seen_at = now_ns(l);
    }
    l->seen = now;
    l->has_seen = true;
    if (!same_holder && now.holder[0] != '\0' && strcmp(now.holder, l->identity) != 0 &&
        l->options.on_holder != NULL) {
        l->options.on_holder(l->options.data, now.holder);
    }
}

static void report(struct weft_kube_lease *l, const struct weft_error *error)
{
    if (l->options.on_error != NULL) {
        l->options.on_error(l->options.data, error);
    }
}

/* ---- writing ---- */

static void put_spec(const struct weft_kube_lease *l, struct weft_json_writer *w, bool release)
{
    char now[WEFT_TIME_TEXT_MAX];
    (void)weft_time_format(weft_clock_realtime(l->options.clock), now);
    const bool ours = l->has_seen && strcmp(l->seen.holder, l->identity) == 0;
    weft_json_put_key(w, "spec");
    weft_json_open(w, '{');
    weft_json_kv_string(w, "holderIdentity", release ? "" : l->identity);
    weft_json_kv_int(w, "leaseDurationSeconds",
                     release ? 1 : l->options.duration_ns / WEFT_NS_PER_S);
    weft_json_kv_string(w, "acquireTime",
                        ours && l->seen.acquire_time[0] != '\0' ? l->seen.acquire_time : now);
    weft_json_kv_string(w, "renewTime", now);
    weft_json_kv_int(w, "leaseTransitions", l->has_seen ? l->seen.transitions + (ours ? 0 : 1) : 0);
    weft_json_close(w, '}');
}

static void put_lease(const struct weft_kube_lease *l, struct weft_buf *body, bool release)
{
    struct weft_json_writer w;
    weft_json_writer_init(&w, body, 0);
    weft_json_open(&w, '{');
    weft_json_kv_string(&w, "apiVersion", "coordination.k8s.io/v1");
    weft_json_kv_string(&w, "kind", "Lease");
    weft_json_put_key(&w, "metadata");
    weft_json_open(&w, '{');
    weft_json_kv_string(&w, "name", l->name);
    weft_json_kv_string(&w, "namespace", l->ns);
    if (l->has_seen) {
        weft_json_kv_string(&w, "resourceVersion", l->seen.resource_version);
    }
    weft_json_close(&w, '}');
    put_spec(l, &w, release);
    weft_json_close(&w, '}');
}

static int submit(struct weft_kube_lease *l, enum weft_kube_verb verb, const struct weft_buf *body,
                  weft_kube_result_fn on_done, struct weft_error *err)
{
    const struct weft_kube_op op = {
        .verb = verb,
        .path = verb == WEFT_KUBE_CREATE ? l->collection : l->path,
        .body = body != NULL ? weft_buf_text(body) : NULL,
        .body_len = body != NULL ? body->len : 0,
        .timeout_ns = l->options.timeout_ns,
        .on_done = on_done,
        .data = l,
    };
    l->sent_at = now_ns(l);
    return weft_kube_submit(l->client, &op, &l->call, err);
}

/* Creates or replaces the Lease as ours (or, to release it, as nobody's). */
static int write_lease(struct weft_kube_lease *l, bool release, weft_kube_result_fn on_done,
                       struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf body;
    weft_buf_init(&body, LEASE_BYTES_MAX);
    put_lease(l, &body, release);
    if (body.status < 0) {
        return weft_err_nomem(err);
    }
    return submit(l, l->has_seen ? WEFT_KUBE_REPLACE : WEFT_KUBE_CREATE, &body, on_done, err);
}

static void on_release_done(void *data, const struct weft_kube_result *result)
{
    struct weft_kube_lease *l = data;
    WEFT_CHECK(l, LEASE_MAGIC);
    (void)result; /* a Lease that could not be given up expires */
    l->call = NULL;
    l->depth++;
    l->held = false;
    weft_timer_stop(l->deadline);
    if (l->on_released != NULL) {
        l->on_released(l->options.data);
    }
    leave(l);
}

static void give_up(struct weft_kube_lease *l)
{
    weft_timer_stop(l->timer);
    if (!l->held || write_lease(l, true, on_release_done, NULL) < 0) {
        l->held = false;
        weft_timer_stop(l->deadline);
        if (l->on_released != NULL) {
            l->on_released(l->options.data);
        }
    }
}

void weft_kube_lease_release(struct weft_kube_lease *l, void (*on_done)(void *data))
{
    WEFT_CHECK(l, LEASE_MAGIC);
    l->releasing = true;
    l->on_released = on_done;
    weft_timer_stop(l->timer);
    if (l->call == NULL) {
        weft_timer_start(l->timer, 0, 0); /* else when its answer is there */
    }
}

static void on_written(void *data, const struct weft_kube_result *result)
{
    struct weft_kube_lease *l = data;
    WEFT_CHECK(l, LEASE_MAGIC);
    l->call = NULL;
    l->depth++;
    if (result->error.code == 0 && result->body != NULL) {
        const bool was_held = l->held;
        l->held = true;
        l->conflicted = false;
        l->renewed_at = l->sent_at;
        wait_to_renew(l, true);
        take_record(l, result->body);
        weft_timer_start(l->deadline,
                         l->renewed_at + l->options.duration_ns - l->options.timeout_ns - now_ns(l),
                         0);
        if (!was_held && !l->releasing) {
            l->options.on_acquired(l->options.data);
        }
    } else {
        /* a 404 for a new Lease is another matter: its namespace is missing */
        const bool conflict = result->status == 409 || (result->status == 404 && l->has_seen);
        const bool again = conflict && l->conflicted;
        l->has_seen = l->has_seen && !conflict;
        l->conflicted = conflict;
        if (conflict && !again) {
            weft_timer_start(l->timer, 0, 0); /* somebody was faster: look who */
        } else {
            wait_again(l);
            report(l, &result->error);
        }
    }
    if (!l->freed && l->releasing) {
        give_up(l);
    }
    leave(l);
}

/* ---- looking ---- */

static bool may_take(const struct weft_kube_lease *l)
{
    if (l->seen.holder[0] == '\0' || strcmp(l->seen.holder, l->identity) == 0) {
        return true;
    }
    const int64_t duration =
        l->seen.duration_s > 0 ? l->seen.duration_s * WEFT_NS_PER_S : l->options.duration_ns;
    return now_ns(l) - l->seen_at >= duration;
}

static void take(struct weft_kube_lease *l)
{
    struct weft_error error = {0};
    if (write_lease(l, false, on_written, &error) < 0) {
        report(l, &error);
        wait_to_look(l); /* not at once: this did not even leave us */
    }
}

static void on_looked(void *data, const struct weft_kube_result *result)
{
    struct weft_kube_lease *l = data;
    WEFT_CHECK(l, LEASE_MAGIC);
    l->call = NULL;
    l->depth++;
    wait_to_look(l);
    if (l->releasing) {
        give_up(l);
    } else if (result->error.code == 0 && result->body != NULL) {
        take_record(l, result->body);
        if (l->held && strcmp(l->seen.holder, l->identity) != 0) {
            lose(l);
        }
        if (!l->freed && may_take(l)) {
            take(l);
        }
    } else if (result->status == 404) {
        l->has_seen = false;
        take(l);
    } else {
        report(l, &result->error);
    }
    leave(l);
}

static void look(struct weft_kube_lease *l)
{
    struct weft_error error = {0};
    if (submit(l, WEFT_KUBE_GET, NULL, on_looked, &error) < 0) {
        report(l, &error);
        wait_to_look(l);
    }
}

/* The holder renews on what it wrote last; everybody else looks first. */
static void on_timer(void *data)
{
    struct weft_kube_lease *l = data;
    WEFT_CHECK(l, LEASE_MAGIC);
    if (l->call != NULL) {
        return;
    }
    l->depth++;
    if (l->releasing) {
        give_up(l);
    } else if (l->held && l->has_seen) {
        take(l);
    } else {
        look(l);
    }
    leave(l);
}
