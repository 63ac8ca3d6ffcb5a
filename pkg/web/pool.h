/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl on the loop, for the clients that talk HTTP (pkg/kube and weft_web): a client owns pools,
 * a pool is one multi handle with its connections, a call is one easy handle in a pool and lives
 * inside its client's own struct. Loop thread only; no callback is made from inside start, cancel.
 */
#ifndef WEFT_WEB_POOL_H
#define WEFT_WEB_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <curl/curl.h>

#include "pkg/base/error.h"
#include "pkg/loop/loop.h"

enum {
    WEFT_WEB_POOL_MAGIC = 0x5765506f, /* "WePo" */
    WEFT_WEB_CALL_MAGIC = 0x57654361, /* "WeCa" */
};

/* Calls go to the newest pool. After a time-out its connection is suspect (HTTP/2 would put the
 * next request on it again): the pool is retired, which means that its calls go on, new ones get a
 * new pool with a new connection, and the last call takes it along. */
struct weft_web_pool {
    uint32_t magic;
    struct weft_web_pools *owner;
    CURLM *multi;
    struct weft_timer *timer;
    struct weft_post start; /* takes up calls that were added */
    struct weft_web_socket *sockets;
    struct weft_web_call *calls;
    size_t call_count;
    unsigned busy; /* inside libcurl: no function of the multi handle may be called */
    unsigned held; /* on the stack somewhere: must not be freed */
    bool retired;
    bool changed; /* calls were added or cancelled while busy */
    struct weft_web_pool *next;
};

/* A client's pools. Zero it and set loop. */
struct weft_web_pools {
    struct weft_loop *loop;
    struct weft_web_pool *newest;
    size_t call_count;
};

/* Opens the client's own struct of a call. The client sets magic, easy (with itself as
 * CURLOPT_PRIVATE), report and free; the rest is the pool's. */
struct weft_web_call {
    uint32_t magic;
    struct weft_web_pool *pool;
    struct weft_web_call *next, *prev; /* in the pool */
    CURL *easy;
    bool in_multi;
    bool cancelled; /* its owner wants to hear no more of it */
    /* Once, when it ended, unless it was cancelled; free follows. */
    void (*report)(struct weft_web_call *call, CURLcode code);
    void (*free)(struct weft_web_call *call);
};

/* Starts the call a moment later, in the newest pool. On failure the call is still the caller's.
 * Errors: -ENOMEM. */
int weft_web_call_start(struct weft_web_pools *pools, struct weft_web_call *call,
                        struct weft_error *err) __attribute__((warn_unused_result));
/* Ends the call without a report and frees it, from inside libcurl a moment later. */
void weft_web_call_cancel(struct weft_web_call *call);
/* Ends the call with code, reports, frees it. Not from inside libcurl. */
void weft_web_call_end(struct weft_web_call *call, CURLcode code);
/* Cancels what is under way and closes the connections. */
void weft_web_pools_done(struct weft_web_pools *pools);
/* libcurl's code for a call without an answer as -errno (-ETIMEDOUT, -ECONNREFUSED, -EPROTO for
 * TLS, … else -EIO); *ret_retryable: may the same call work later? */
int weft_web_errno(CURLcode code, bool *ret_retryable);

#endif
