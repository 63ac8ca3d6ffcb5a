/* SPDX-License-Identifier: Apache-2.0 */
/* The client's insides: the client owns pools, a pool is one libcurl multi handle on the loop with
 * its connections, a call is one easy handle in a pool. Only these files include curl.h. */
#ifndef WEFT_KUBE_CLIENT_INTERNAL_H
#define WEFT_KUBE_CLIENT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <curl/curl.h>

#include "pkg/base/buf.h"
#include "pkg/kube/client.h"
#include "pkg/loop/loop.h"

enum {
    WEFT_KUBE_CLIENT_MAGIC = 0x4b75436c, /* "KuCl" */
    WEFT_KUBE_POOL_MAGIC = 0x4b75506f,   /* "KuPo" */
    WEFT_KUBE_CALL_MAGIC = 0x4b754361,   /* "KuCa" */
};

/* Requests go to the newest pool. After a time-out its connection is suspect (HTTP/2 would put the
 * next request on it again): the pool is retired, which means that its calls go on, new ones get a
 * new pool with a new connection, and the last call takes it along. */
struct weft_kube_pool {
    uint32_t magic;
    struct weft_kube_client *client;
    CURLM *multi;
    struct weft_timer *timer;
    struct weft_post start; /* takes up calls that were added */
    struct weft_kube_socket *sockets;
    struct weft_kube_call *calls;
    size_t call_count;
    unsigned busy; /* inside libcurl: no function of the multi handle may be called */
    unsigned held; /* on the stack somewhere: must not be freed */
    bool retired;
    bool changed; /* calls were added or cancelled while busy */
    struct weft_kube_pool *next;
};

struct weft_kube_client {
    uint32_t magic;
    struct weft_loop *loop;
    struct weft_kube_config *config;
    char *program;
    char *user_agent;
    struct curl_slist *connect_to; /* tls-server-name: "<name>:<port>:<host>:<port>" */
    char *url_base;                /* what paths are put after */
    struct weft_kube_pool *pools;  /* the newest first */
    size_t call_count;
    struct weft_kube_stats stats;
};

struct weft_kube_call {
    uint32_t magic;
    struct weft_kube_client *client;
    struct weft_kube_pool *pool;
    struct weft_kube_call *next, *prev; /* in the pool */
    CURL *easy;
    bool in_multi;
    bool cancelled;

    /* the request */
    char *what; /* "PUT /api/v1/…", for messages */
    char *url;
    char *body;
    size_t body_len;
    struct curl_slist *headers;
    bool is_write;
    int64_t timeout_ns;
    int64_t idle_ns;
    struct weft_timer *idle_timer;
    int64_t last_byte_at;

    /* the answer */
    bool head_seen;
    int status;
    char content_type[128];
    uint64_t received;
    uint64_t body_max;
    struct weft_buf answer;    /* collected, or the body of an error */
    struct weft_error failure; /* of a callback or a cap; code 0 = none */
    char curl_text[CURL_ERROR_SIZE];

    int (*on_head)(void *data, const struct weft_kube_head *head, struct weft_error *err);
    int (*on_bytes)(void *data, const char *bytes, size_t len, struct weft_error *err);
    weft_kube_result_fn on_done;
    void *data;
};

/* ---- pool.c ---- */

int weft_kube_pool_new(struct weft_kube_client *client, struct weft_kube_pool **ret_pool,
                       struct weft_error *err) __attribute__((warn_unused_result));
/* Only with no calls left. */
void weft_kube_pool_free(struct weft_kube_pool *pool);
/* Takes the call over; from inside libcurl it starts a moment later. */
void weft_kube_pool_add(struct weft_kube_pool *pool, struct weft_kube_call *call);
/* Ends the call without a callback and frees it, from inside libcurl a moment later. */
void weft_kube_pool_drop(struct weft_kube_pool *pool, struct weft_kube_call *call);
/* Ends the call with code, tells its owner, frees it. Not from inside libcurl. */
void weft_kube_pool_finish(struct weft_kube_pool *pool, struct weft_kube_call *call, CURLcode code);

/* ---- call.c ---- */

struct weft_kube_request {
    const char *method;
    const char *path, *query;
    const char *accept, *content_type;
    const char *body;
    size_t body_len;
    int64_t timeout_ns, idle_ns;
    uint64_t body_max;
};

/* Builds a call and hands it to the newest pool; of callbacks only the functions and data are used.
 * Errors as weft_kube_submit. */
int weft_kube_call_start(struct weft_kube_client *client, const struct weft_kube_request *request,
                         const struct weft_kube_stream *callbacks, struct weft_kube_call **ret_call,
                         struct weft_error *err) __attribute__((warn_unused_result));
void weft_kube_call_free(struct weft_kube_call *call);
/* Takes status and content type from libcurl and tells on_head of a 2xx; its answer. */
int weft_kube_call_read_head(struct weft_kube_call *call);

/* ---- answer.c ---- */

/* Makes the result of an ended call and gives it to its owner. */
void weft_kube_call_report(struct weft_kube_call *call, CURLcode code);

#endif
