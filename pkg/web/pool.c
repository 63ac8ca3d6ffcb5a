/* SPDX-License-Identifier: Apache-2.0 */
/* One libcurl multi handle on the loop. libcurl says which sockets and which time it waits for and
 * is told when they come; it must not be called from its own callbacks, so calls that are added or
 * cancelled from inside one are dealt with when it has returned. */
#include "pkg/web/pool.h"

#include <errno.h>

#include "pkg/base/clock.h"
#include "pkg/loop/loop.h"

enum { SOCKET_MAGIC = 0x4b75536f /* "KuSo" */ };

struct weft_web_socket {
    uint32_t magic;
    struct weft_web_pool *pool;
    curl_socket_t fd;
    struct weft_fdwatch *watch;
    struct weft_web_socket *next, *prev;
};

static void act(struct weft_web_pool *pool, curl_socket_t fd, int events);
static void on_start(void *data);

/* ---- sockets and time ---- */

static void on_readable(void *data, unsigned events)
{
    struct weft_web_socket *s = data;
    WEFT_CHECK(s, SOCKET_MAGIC);
    int bits = 0;
    bits |= (events & WEFT_FD_READ) != 0 ? CURL_CSELECT_IN : 0;
    bits |= (events & WEFT_FD_WRITE) != 0 ? CURL_CSELECT_OUT : 0;
    bits |= (events & WEFT_FD_ERROR) != 0 ? CURL_CSELECT_ERR : 0;
    act(s->pool, s->fd, bits); /* s may be gone after this */
}

static void socket_free(struct weft_web_socket *s)
{
    weft_fdwatch_free(s->watch);
    *(s->prev != NULL ? &s->prev->next : &s->pool->sockets) = s->next;
    if (s->next != NULL) {
        s->next->prev = s->prev;
    }
    s->magic = 0;
    weft_free(s);
}

static struct weft_web_socket *socket_new(struct weft_web_pool *pool, curl_socket_t fd)
{
    struct weft_web_socket *s = weft_calloc(1, sizeof(*s));
    if (s == NULL || weft_fdwatch_new(pool->owner->loop, fd, on_readable, s, &s->watch, NULL) < 0) {
        weft_free(s);
        return NULL;
    }
    s->magic = SOCKET_MAGIC;
    s->pool = pool;
    s->fd = fd;
    s->next = pool->sockets;
    if (s->next != NULL) {
        s->next->prev = s;
    }
    pool->sockets = s;
    return s;
}

/* libcurl's wish for a socket. -1 ends all calls of this multi handle with an error. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *data, void *socket_data)
{
    (void)easy;
    struct weft_web_pool *pool = data;
    WEFT_CHECK(pool, WEFT_WEB_POOL_MAGIC);
    struct weft_web_socket *s = socket_data;
    if (what == CURL_POLL_REMOVE) {
        if (s != NULL) {
            WEFT_CHECK(s, SOCKET_MAGIC);
            (void)curl_multi_assign(pool->multi, fd, NULL);
            socket_free(s);
        }
        return 0;
    }
    if (s == NULL) {
        s = socket_new(pool, fd);
        if (s == NULL) {
            pool->retired = true;
            return -1;
        }
        (void)curl_multi_assign(pool->multi, fd, s);
    }
    WEFT_CHECK(s, SOCKET_MAGIC);
    unsigned bits = (what & CURL_POLL_IN) != 0 ? WEFT_FD_READ : 0U;
    bits |= (what & CURL_POLL_OUT) != 0 ? WEFT_FD_WRITE : 0U;
    return weft_fdwatch_set(s->watch, bits) < 0 ? -1 : 0;
}

static int on_timeout_wish(CURLM *multi, long timeout_ms, void *data)
{
    (void)multi;
    struct weft_web_pool *pool = data;
    WEFT_CHECK(pool, WEFT_WEB_POOL_MAGIC);
    if (timeout_ms < 0) {
        weft_timer_stop(pool->timer);
    } else {
        weft_timer_start(pool->timer, timeout_ms * WEFT_NS_PER_MS, 0);
    }
    return 0;
}

static void on_timer(void *data)
{
    struct weft_web_pool *pool = data;
    WEFT_CHECK(pool, WEFT_WEB_POOL_MAGIC);
    act(pool, CURL_SOCKET_TIMEOUT, 0);
}

/* ---- life ---- */

static void pool_free(struct weft_web_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    (void)weft_loop_unpost(pool->owner->loop, &pool->start);
    pool->busy++;
    (void)curl_multi_cleanup(pool->multi);
    while (pool->sockets != NULL) {
        socket_free(pool->sockets);
    }
    weft_timer_free(pool->timer);
    pool->magic = 0;
    weft_free(pool);
}

static int pool_new(struct weft_web_pools *owner, struct weft_web_pool **ret_pool,
                    struct weft_error *err)
{
    struct weft_web_pool *pool = weft_calloc(1, sizeof(*pool));
    if (pool == NULL) {
        return weft_err_nomem(err);
    }
    pool->magic = WEFT_WEB_POOL_MAGIC;
    pool->owner = owner;
    pool->start = (struct weft_post){.fn = on_start, .data = pool};
    pool->multi = curl_multi_init();
    if (pool->multi == NULL ||
        weft_timer_new(owner->loop, on_timer, pool, &pool->timer, NULL) < 0) {
        pool_free(pool);
        return weft_err_nomem(err);
    }
    (void)curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    (void)curl_multi_setopt(pool->multi, CURLMOPT_SOCKETDATA, pool);
    (void)curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, on_timeout_wish);
    (void)curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool);
    (void)curl_multi_setopt(pool->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    *ret_pool = pool;
    return 0;
}

static void hold(struct weft_web_pool *pool)
{
    pool->held++;
}

/* The counterpart of hold; frees a retired pool that is not needed any more. */
static void release(struct weft_web_pool *pool)
{
    pool->held--;
    if (pool->held > 0 || !pool->retired || pool->call_count > 0) {
        return;
    }
    struct weft_web_pool **at = &pool->owner->newest;
    while (*at != pool) {
        at = &(*at)->next;
    }
    *at = pool->next;
    pool_free(pool);
}

/* ---- calls ---- */

static void link_call(struct weft_web_pool *pool, struct weft_web_call *call)
{
    call->pool = pool;
    call->next = pool->calls;
    if (call->next != NULL) {
        call->next->prev = call;
    }
    pool->calls = call;
    pool->call_count++;
    pool->owner->call_count++;
}

static void unlink_call(struct weft_web_pool *pool, struct weft_web_call *call)
{
    *(call->prev != NULL ? &call->prev->next : &pool->calls) = call->next;
    if (call->next != NULL) {
        call->next->prev = call->prev;
    }
    call->next = call->prev = NULL;
    pool->call_count--;
    pool->owner->call_count--;
}

/* Takes the call out of libcurl and out of the pool. */
static void detach(struct weft_web_pool *pool, struct weft_web_call *call)
{
    if (call->in_multi) {
        pool->busy++;
        (void)curl_multi_remove_handle(pool->multi, call->easy);
        pool->busy--;
        call->in_multi = false;
    }
    unlink_call(pool, call);
}

static void finish(struct weft_web_pool *pool, struct weft_web_call *call, CURLcode code)
{
    hold(pool);
    const bool cancelled = call->cancelled;
    if (code == CURLE_OPERATION_TIMEDOUT) {
        pool->retired = true; /* see struct weft_web_pool */
    }
    detach(pool, call);
    if (!cancelled) {
        call->report(call, code);
    }
    call->free(call);
    release(pool);
}

static void attach(struct weft_web_pool *pool, struct weft_web_call *call)
{
    pool->busy++;
    call->in_multi = curl_multi_add_handle(pool->multi, call->easy) == CURLM_OK;
    pool->busy--;
    if (!call->in_multi) {
        finish(pool, call, CURLE_OUT_OF_MEMORY);
    }
}

/* The next call that was cancelled or added while libcurl was busy, or NULL. */
static struct weft_web_call *find_changed(const struct weft_web_pool *pool)
{
    struct weft_web_call *call = pool->calls;
    while (call != NULL && call->in_multi && !call->cancelled) {
        call = call->next;
    }
    return call;
}

/* Starts and ends what was asked for while libcurl was busy. Each step may change the list. */
static void catch_up(struct weft_web_pool *pool)
{
    if (!pool->changed) {
        return;
    }
    pool->changed = false;
    for (struct weft_web_call *call = find_changed(pool); call != NULL; call = find_changed(pool)) {
        if (call->cancelled) {
            detach(pool, call);
            call->free(call);
        } else {
            attach(pool, call);
        }
    }
}

int weft_web_call_start(struct weft_web_pools *pools, struct weft_web_call *call,
                        struct weft_error *err)
{
    struct weft_web_pool *pool = pools->newest;
    if (pool == NULL || pool->retired) {
        const int rc = pool_new(pools, &pool, err);
        if (rc < 0) {
            return rc;
        }
        pool->next = pools->newest;
        pools->newest = pool;
    }
    link_call(pool, call);
    pool->changed = true;
    if (pool->busy == 0) {
        /* not at once: no callback may come from inside a start */
        weft_loop_post(pools->loop, &pool->start);
    }
    return 0;
}

void weft_web_call_cancel(struct weft_web_call *call)
{
    WEFT_CHECK(call, WEFT_WEB_CALL_MAGIC);
    struct weft_web_pool *pool = call->pool;
    call->cancelled = true;
    if (pool->busy > 0) {
        pool->changed = true;
        return;
    }
    hold(pool);
    detach(pool, call);
    call->free(call);
    release(pool);
}

void weft_web_call_end(struct weft_web_call *call, CURLcode code)
{
    WEFT_CHECK(call, WEFT_WEB_CALL_MAGIC);
    finish(call->pool, call, code);
}

void weft_web_pools_done(struct weft_web_pools *pools)
{
    while (pools->newest != NULL) {
        struct weft_web_pool *pool = pools->newest;
        pool->retired = false; /* it is freed here, not with its last call */
        while (pool->calls != NULL) {
            weft_web_call_cancel(pool->calls);
        }
        pools->newest = pool->next;
        pool_free(pool);
    }
}

static void on_start(void *data)
{
    struct weft_web_pool *pool = data;
    WEFT_CHECK(pool, WEFT_WEB_POOL_MAGIC);
    hold(pool);
    catch_up(pool);
    release(pool);
}

/* Reports what has ended. A callback may cancel others: libcurl then drops their messages. */
static void report_ended(struct weft_web_pool *pool)
{
    int left = 0;
    const CURLMsg *message = curl_multi_info_read(pool->multi, &left);
    while (message != NULL) {
        if (message->msg == CURLMSG_DONE) {
            char *private = NULL;
            (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
            struct weft_web_call *call = (void *)private;
            WEFT_CHECK(call, WEFT_WEB_CALL_MAGIC);
            finish(pool, call, message->data.result);
        }
        message = curl_multi_info_read(pool->multi, &left);
    }
}

/* A broken multi handle (no memory for a socket) ends its calls; the next get a new pool. */
static void fail_all(struct weft_web_pool *pool)
{
    pool->retired = true;
    while (pool->calls != NULL) {
        finish(pool, pool->calls, CURLE_OUT_OF_MEMORY);
    }
}

static void act(struct weft_web_pool *pool, curl_socket_t fd, int events)
{
    hold(pool);
    catch_up(pool);
    int running = 0;
    pool->busy++;
    const CURLMcode rc = curl_multi_socket_action(pool->multi, fd, events, &running);
    pool->busy--;
    catch_up(pool);
    report_ended(pool);
    if (rc != CURLM_OK) {
        fail_all(pool);
    }
    release(pool);
}

/* ---- how a call ended ---- */

int weft_web_errno(CURLcode code, bool *ret_retryable)
{
    static const struct {
        CURLcode code;
        int result;
        bool permanent;
    } known[] = {
        {CURLE_OPERATION_TIMEDOUT, -ETIMEDOUT, false},
        {CURLE_COULDNT_CONNECT, -ECONNREFUSED, false},
        {CURLE_COULDNT_RESOLVE_HOST, -EHOSTUNREACH, false},
        {CURLE_COULDNT_RESOLVE_PROXY, -EHOSTUNREACH, false},
        {CURLE_OUT_OF_MEMORY, -ENOMEM, false},
        {CURLE_SSL_CONNECT_ERROR, -EPROTO, false},
        {CURLE_PEER_FAILED_VERIFICATION, -EPROTO, true},
        {CURLE_SSL_CERTPROBLEM, -EPROTO, true},
        {CURLE_SSL_CACERT_BADFILE, -EPROTO, true},
        {CURLE_SSL_CIPHER, -EPROTO, true},
        {CURLE_URL_MALFORMAT, -EINVAL, true},
        {CURLE_UNSUPPORTED_PROTOCOL, -EINVAL, true},
        {CURLE_FAILED_INIT, -EIO, true},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(known); i++) {
        if (known[i].code == code) {
            *ret_retryable = !known[i].permanent;
            return known[i].result;
        }
    }
    *ret_retryable = true;
    return -EIO;
}
