/* SPDX-License-Identifier: Apache-2.0 */
/* The client's insides: a call is an easy handle in one of the client's pools (pkg/web/pool.h). */
#ifndef WEFT_KUBE_CLIENT_INTERNAL_H
#define WEFT_KUBE_CLIENT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <curl/curl.h>

#include "pkg/base/buf.h"
#include "pkg/kube/client.h"
#include "pkg/loop/loop.h"
#include "pkg/web/pool.h"

enum {
    WEFT_KUBE_CLIENT_MAGIC = 0x4b75436c, /* "KuCl" */
    WEFT_KUBE_CALL_MAGIC = 0x4b754361,   /* "KuCa" */
};

struct weft_kube_client {
    uint32_t magic;
    struct weft_loop *loop;
    struct weft_kube_config *config;
    char *program;
    char *user_agent;
    struct curl_slist *connect_to; /* tls-server-name: "<name>:<port>:<host>:<port>" */
    char *url_base;                /* what paths are put after */
    struct weft_web_pools pools;
    struct weft_kube_stats stats;
};

struct weft_kube_call {
    struct weft_web_call web; /* first: the pool knows this part only */
    uint32_t magic;
    struct weft_kube_client *client;

    /* the request */
    char *what; /* "PUT /api/v1/…", for messages */
    char id[40];
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
void weft_kube_call_report(struct weft_web_call *web, CURLcode code);

#endif
