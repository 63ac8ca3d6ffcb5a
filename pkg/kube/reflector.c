/* SPDX-License-Identifier: Apache-2.0 */
/* List, watch, resume, wait: what is asked when. One request or one timer is pending at any time.
 */
#include "pkg/kube/reflector.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/kube/path.h"
#include "pkg/kube/reflector-internal.h"
#include "pkg/loop/loop.h"

#define ACCEPT(kind)                                                                               \
    "application/vnd.kubernetes.protobuf;as=" kind ";g=meta.k8s.io;v=v1,"                          \
    "application/json;as=" kind ";g=meta.k8s.io;v=v1"

/* A page has at most 500 objects, each below 1.5 MiB in etcd; servers may ignore the limit. */
#define LIST_BYTES_MAX (UINT64_C(1) << 30)

enum {
    /* A watch that ends within this without an event counts as a failure, so that a server that
     * closes every watch does not make us turn in a circle. */
    SHORT_WATCH_MS = 1000,
    /* After so many refused watches in a row the version itself is suspect (a restored etcd): a
     * list finds out. */
    WATCH_FAILURES_MAX = 5,
    /* After so many in a row pages are asked for: something on the way may hold streams back. */
    STREAM_FAILURES_MAX = 2,
    /* A streamed list has so many times the time of a page. */
    STREAM_PAGES = 10,
};

static void start_request(void *data);

static int64_t now_ns(void)
{
    return weft_clock_monotonic(weft_clock_system());
}

/* ---- life ---- */

static void destroy(struct weft_kube_reflector *r)
{
    weft_kube_reflector_drop_answer(r);
    weft_timer_free(r->timer);
    weft_pb_arena_done(&r->arena);
    weft_free(r->path);
    weft_free(r->selectors);
    weft_free(r->resource_version);
    weft_free(r->continue_token);
    r->magic = 0;
    weft_free(r);
}

static void enter(struct weft_kube_reflector *r)
{
    r->depth++;
}

/* false if the reflector is gone. */
static bool leave(struct weft_kube_reflector *r)
{
    r->depth--;
    if (r->freed && r->depth == 0) {
        destroy(r);
        return false;
    }
    return !r->freed;
}

static void stop_call(struct weft_kube_reflector *r)
{
    if (r->call != NULL) {
        weft_kube_call_cancel(weft_steal(&r->call));
        r->abandoned = true;
    }
}

void weft_kube_reflector_free(struct weft_kube_reflector *r)
{
    if (r == NULL) {
        return;
    }
    WEFT_CHECK(r, WEFT_KUBE_REFLECTOR_MAGIC);
    stop_call(r);
    weft_timer_stop(r->timer);
    r->freed = true;
    if (r->depth == 0) {
        destroy(r);
    }
}

static void set_default(int64_t *value, int64_t otherwise)
{
    *value = *value > 0 ? *value : otherwise;
}

static void set_defaults(struct weft_kube_reflector_options *o)
{
    o->page_size = o->page_size > 0 ? o->page_size : 500;
    o->watch_seconds = o->watch_seconds > 0 ? o->watch_seconds : 300;
    o->item_max = o->item_max > 0 ? o->item_max : 4U << 20;
    set_default(&o->idle_ns, 90 * WEFT_NS_PER_S);
    set_default(&o->page_timeout_ns, 60 * WEFT_NS_PER_S);
    set_default(&o->backoff_min_ns, 500 * WEFT_NS_PER_MS);
    set_default(&o->backoff_max_ns, 30 * WEFT_NS_PER_S);
    set_default(&o->missing_retry_ns, 60 * WEFT_NS_PER_S);
}

static int copy_texts(struct weft_kube_reflector *r, const struct weft_kube_reflector_options *o)
{
    weft_auto(weft_buf_done) struct weft_buf selectors;
    weft_buf_init(&selectors, 16384);
    if (o->label_selector != NULL) {
        weft_kube_put_param(&selectors, "labelSelector", o->label_selector);
    }
    if (o->field_selector != NULL) {
        weft_kube_put_param(&selectors, "fieldSelector", o->field_selector);
    }
    r->options.label_selector = r->options.field_selector = NULL;
    r->options.path = r->path = weft_strdup(o->path);
    r->selectors = weft_buf_steal(&selectors);
    return r->path != NULL && r->selectors != NULL ? 0 : -ENOMEM;
}

int weft_kube_reflector_new(struct weft_kube_client *client,
                            const struct weft_kube_reflector_options *options,
                            struct weft_kube_reflector **ret_reflector, struct weft_error *err)
{
    if (options->path == NULL || options->watcher.on_object == NULL ||
        options->watcher.on_synced == NULL) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "a reflector without path or watcher");
    }
    struct weft_kube_reflector *r = weft_calloc(1, sizeof(*r));
    if (r == NULL) {
        return weft_err_nomem(err);
    }
    r->magic = WEFT_KUBE_REFLECTOR_MAGIC;
    r->client = client;
    r->options = *options;
    r->pages = options->pages;
    weft_pb_arena_init(&r->arena, WEFT_KUBE_UNPACK_MAX);
    set_defaults(&r->options);
    weft_kube_backoff_init(&r->backoff, r->options.backoff_min_ns, r->options.backoff_max_ns,
                           options->seed);
    if (copy_texts(r, options) < 0 ||
        weft_timer_new(weft_kube_client_loop(client), start_request, r, &r->timer, NULL) < 0) {
        destroy(r);
        return weft_err_nomem(err);
    }
    weft_timer_start(r->timer, 0, 0);
    *ret_reflector = r;
    return 0;
}

bool weft_kube_reflector_synced(const struct weft_kube_reflector *r)
{
    WEFT_CHECK(r, WEFT_KUBE_REFLECTOR_MAGIC);
    return r->synced;
}

static void forget_version(struct weft_kube_reflector *r)
{
    r->synced = false;
    weft_free(weft_steal(&r->resource_version));
    weft_free(weft_steal(&r->continue_token));
}

void weft_kube_reflector_relist(struct weft_kube_reflector *r)
{
    WEFT_CHECK(r, WEFT_KUBE_REFLECTOR_MAGIC);
    stop_call(r);
    forget_version(r);
    weft_timer_start(r->timer, 0, 0);
}

/* ---- what comes back ---- */

/* Does this answer say that our resourceVersion is of no use? */
static bool refuses_version(int status)
{
    return status == 400 || status == 404 || status == 410 || status == 422;
}

/* Does this answer say that the server does not stream lists? client-go takes 422 for it; 400 is
 * what some proxies make of it. */
static bool refuses_stream(const struct weft_kube_reflector *r, int status)
{
    return r->phase == WEFT_KUBE_STREAMING && (status == 400 || status == 422);
}

/* A stream that began and broke, or that something on the way holds back. That nobody is there, or
 * that a server is busy, says nothing about streams. */
static void note_stream(struct weft_kube_reflector *r, const struct weft_error *error)
{
    const bool silent =
        error->domain == WEFT_ERR_HTTP && error->code == -ETIMEDOUT && error->domain_code == 0;
    r->streams_failed += r->phase == WEFT_KUBE_STREAMING && (r->began || silent);
    if (r->streams_failed >= STREAM_FAILURES_MAX) {
        r->pages = true;
    }
}

/* Reports the error and asks again later. */
static void fail(struct weft_kube_reflector *r, const struct weft_error *error,
                 int64_t retry_after_ns)
{
    const int status = error->domain == WEFT_ERR_HTTP ? error->domain_code : 0;
    if (refuses_stream(r, status)) {
        r->pages = true;
        weft_timer_start(r->timer, 0, 0);
        return;
    }
    note_stream(r, error);
    int64_t wait = weft_kube_backoff_next(&r->backoff, retry_after_ns);
    if (r->phase != WEFT_KUBE_WATCHING || refuses_version(status) ||
        (status != 0 && r->backoff.failures > WATCH_FAILURES_MAX)) {
        forget_version(r);
    }
    if (status == 404) {
        weft_kube_backoff_reset(&r->backoff);
        wait = r->options.missing_retry_ns;
    }
    weft_timer_start(r->timer, wait, 0);
    if (r->options.watcher.on_error != NULL) {
        r->options.watcher.on_error(r->options.watcher.data, error, wait);
    }
}

/* The page is whole: the next one, or all are there. The back-off goes on: a server whose lists
 * work and whose watches do not is asked for fewer and fewer lists. */
static void finish_page(struct weft_kube_reflector *r)
{
    weft_free(weft_steal(&r->continue_token));
    weft_timer_start(r->timer, 0, 0);
    if (r->page_continue != NULL && r->page_continue[0] != '\0') {
        r->continue_token = weft_steal(&r->page_continue);
        return;
    }
    weft_free(r->resource_version);
    r->resource_version = weft_steal(&r->page_version);
    r->synced = true;
    r->options.watcher.on_synced(r->options.watcher.data);
}

int weft_kube_reflector_streamed(struct weft_kube_reflector *r, const char *version,
                                 struct weft_error *err)
{
    char *copy = weft_strdup(version);
    if (copy == NULL) {
        return weft_err_nomem(err);
    }
    weft_free(r->resource_version);
    r->resource_version = copy;
    r->phase = WEFT_KUBE_WATCHING;
    r->started_at = now_ns();
    r->events = 0; /* of the watch that this is from here on */
    r->synced = true;
    r->streams_failed = 0;
    r->options.watcher.on_synced(r->options.watcher.data);
    return r->abandoned ? weft_err_set(err, -ECANCELED, WEFT_ERR_HTTP, "not wanted any more") : 0;
}

/* Did the watch work for a while? Then a failure is the first one again. */
static bool watch_lasted(const struct weft_kube_reflector *r)
{
    return now_ns() - r->started_at >= SHORT_WATCH_MS * WEFT_NS_PER_MS;
}

static bool watch_worked(const struct weft_kube_reflector *r)
{
    return r->events > 0 || watch_lasted(r);
}

/* The server has ended the watch as agreed: go on from the last version. After a short one not at
 * once, whatever it brought: some servers end each with a bookmark. */
static void finish_watch(struct weft_kube_reflector *r)
{
    if (watch_worked(r)) {
        weft_kube_backoff_reset(&r->backoff);
        const int64_t wait = watch_lasted(r) ? 0 : weft_kube_backoff_next(&r->backoff, 0);
        weft_timer_start(r->timer, wait, 0);
        return;
    }
    struct weft_error error = {0};
    (void)weft_err_set(&error, -EIO, WEFT_ERR_HTTP, "%s: a watch ended at once", r->options.path);
    error.retryable = true;
    fail(r, &error, 0);
}

static void finish(struct weft_kube_reflector *r, const struct weft_kube_result *result)
{
    struct weft_error error = r->event_error.code != 0 ? r->event_error : result->error;
    memcpy(error.request_id, result->error.request_id, sizeof(error.request_id));
    if (error.code == 0 && weft_kube_reflector_end_answer(r, &error) == 0) {
        if (r->phase == WEFT_KUBE_STREAMING) {
            (void)weft_err_set(&error, -EIO, WEFT_ERR_HTTP, "%s: a streamed list ended early",
                               r->options.path);
            error.retryable = true;
            fail(r, &error, 0);
            return;
        }
        if (r->phase == WEFT_KUBE_LISTING) {
            finish_page(r);
        } else {
            finish_watch(r);
        }
        return;
    }
    if (r->phase == WEFT_KUBE_WATCHING && result->status == 200 &&
        (watch_lasted(r) || (r->events > 0 && !refuses_version(error.domain_code)))) {
        weft_kube_backoff_reset(&r->backoff);
    }
    fail(r, &error, result->retry_after_ns);
}

static void on_done(void *data, const struct weft_kube_result *result)
{
    struct weft_kube_reflector *r = data;
    WEFT_CHECK(r, WEFT_KUBE_REFLECTOR_MAGIC);
    r->call = NULL;
    enter(r);
    finish(r, result);
    (void)leave(r);
}

static int on_head(void *data, const struct weft_kube_head *head, struct weft_error *err)
{
    struct weft_kube_reflector *r = data;
    WEFT_CHECK(r, WEFT_KUBE_REFLECTOR_MAGIC);
    r->began = true;
    int rc = weft_kube_reflector_begin_answer(r, head->content_type, err);
    if (rc < 0 || r->phase == WEFT_KUBE_WATCHING || !r->first_page ||
        r->options.watcher.on_list == NULL) {
        return rc;
    }
    enter(r);
    r->options.watcher.on_list(r->options.watcher.data);
    rc = r->abandoned ? -ECANCELED : 0;
    (void)leave(r);
    return rc;
}

static int on_bytes(void *data, const char *bytes, size_t len, struct weft_error *err)
{
    struct weft_kube_reflector *r = data;
    WEFT_CHECK(r, WEFT_KUBE_REFLECTOR_MAGIC);
    enter(r);
    int rc = weft_kube_reflector_feed(r, bytes, len, err);
    if (rc == 0 && r->phase == WEFT_KUBE_STREAMING &&
        now_ns() - r->started_at > STREAM_PAGES * r->options.page_timeout_ns) {
        /* such a server may not know what it was asked for, and watches from now on */
        rc = weft_err_set(err, -ETIMEDOUT, WEFT_ERR_HTTP, "%s: a streamed list without end",
                          r->options.path);
    }
    (void)leave(r);
    return rc;
}

/* ---- what is asked ---- */

static void put_list_query(const struct weft_kube_reflector *r, struct weft_buf *query)
{
    char text[16];
    (void)snprintf(text, sizeof(text), "%u", r->options.page_size);
    weft_kube_put_param(query, "limit", text);
    if (r->continue_token != NULL) {
        weft_kube_put_param(query, "continue", r->continue_token);
    }
}

static void put_watch_query(struct weft_kube_reflector *r, struct weft_buf *query)
{
    char text[24];
    const int64_t least = r->options.watch_seconds;
    (void)snprintf(text, sizeof(text), "%lld",
                   (long long)weft_kube_backoff_between(&r->backoff, least, 2 * least));
    weft_kube_put_param(query, "watch", "true");
    weft_kube_put_param(query, "allowWatchBookmarks", "true");
    if (r->phase == WEFT_KUBE_STREAMING) {
        weft_kube_put_param(query, "sendInitialEvents", "true");
        weft_kube_put_param(query, "resourceVersionMatch", "NotOlderThan");
    } else {
        weft_kube_put_param(query, "resourceVersion", r->resource_version);
    }
    weft_kube_put_param(query, "timeoutSeconds", text);
}

static int request(struct weft_kube_reflector *r, struct weft_error *err)
{
    const bool listing = r->phase == WEFT_KUBE_LISTING;
    const bool metadata = r->options.codec == WEFT_KUBE_METADATA;
    weft_auto(weft_buf_done) struct weft_buf query;
    weft_buf_init(&query, 32768);
    (void)weft_buf_puts(&query, r->selectors);
    if (listing) {
        put_list_query(r, &query);
    } else {
        put_watch_query(r, &query);
    }
    if (query.status < 0) {
        return weft_err_set(err, query.status, WEFT_ERR_HTTP, "%s: no query", r->options.path);
    }
    const char *accept =
        listing ? ACCEPT("PartialObjectMetadataList") : ACCEPT("PartialObjectMetadata");
    const struct weft_kube_stream stream = {
        .path = r->options.path,
        .query = weft_buf_text(&query),
        .accept = metadata ? accept : NULL,
        .timeout_ns = listing ? r->options.page_timeout_ns : 0,
        .idle_ns = listing ? 0 : r->options.idle_ns,
        .body_max = listing ? LIST_BYTES_MAX : UINT64_MAX,
        .on_head = on_head,
        .on_bytes = on_bytes,
        .on_done = on_done,
        .data = r,
    };
    return weft_kube_stream_start(r->client, &stream, &r->call, err);
}

static void start_request(void *data)
{
    struct weft_kube_reflector *r = data;
    WEFT_CHECK(r, WEFT_KUBE_REFLECTOR_MAGIC);
    weft_kube_reflector_drop_answer(r);
    r->phase = r->pages ? WEFT_KUBE_LISTING : WEFT_KUBE_STREAMING;
    if (r->resource_version != NULL) {
        r->phase = WEFT_KUBE_WATCHING;
    }
    r->first_page = r->continue_token == NULL;
    r->abandoned = false;
    r->began = false;
    r->events = 0;
    r->started_at = now_ns();
    struct weft_error error = {0};
    if (request(r, &error) < 0) {
        enter(r);
        fail(r, &error, 0);
        (void)leave(r);
    }
}
