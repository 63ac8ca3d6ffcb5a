/* SPDX-License-Identifier: Apache-2.0 */
/* The small HTTP server of weft's programs: metrics, probes and debug pages, on the loop thread,
 * without a thread or a wake-up of its own. A layer over libmicrohttpd; no other folder includes
 * its header. Plain HTTP: its TLS is left out of the link (gnutls-stub.c), which saves 2.6 MB.
 *
 * Bounded: 16 connections (a further one ends the oldest), 8 KiB a request, 10 s of silence; more
 * is refused or cut. */
#ifndef WEFT_HTTP_HTTP_H
#define WEFT_HTTP_HTTP_H

#include <stdint.h>

#include "pkg/base/buf.h"
#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_http;
struct weft_loop;

enum {
    WEFT_HTTP_BODY_MAX = 64 << 20, /* of one answer that is built at once */
    WEFT_HTTP_PART_MAX = 4 << 20,  /* of one part of an answer that is not */
    WEFT_HTTP_CONNECTIONS_MAX = 16
};

/* What the handler fills in. It starts as 200, "text/plain; charset=utf-8", an empty body. */
struct weft_http_answer {
    unsigned status;
    const char *type;     /* borrowed until the answer is sent: a literal */
    struct weft_buf body; /* a body that could not be built (its status) is answered with 500 */
    /* For a page that is too large to be built at once, instead of a body: more is called for one
     * part after the other, each when the client has taken the one before, until it leaves part
     * empty; a part that could not be built (its status) cuts the answer. The loop does other work
     * in between. done ends it, also when the client went away. */
    void (*more)(void *stream, struct weft_buf *part);
    void (*done)(void *stream);
    void *stream;
};

struct weft_http_options {
    struct weft_loop *loop;
    /* "ADDRESS:PORT", "[ADDRESS]:PORT" or ":PORT" for all addresses of both families; port 0 takes
     * a free one. */
    const char *listen;
    /* GET and HEAD of any path; the query is cut off. Loop thread; must not free the server. */
    void (*answer)(void *data, const char *path, struct weft_http_answer *answer);
    void *data;
};

/* Listens from now on. -EINVAL for an address that is none, -EADDRINUSE, other -errno of bind,
 * -ENOMEM. */
int weft_http_new(const struct weft_http_options *options, struct weft_http **ret_http,
                  struct weft_error *err) __attribute__((warn_unused_result));
/* Ends all connections. NULL is fine. */
void weft_http_free(struct weft_http *http);
WEFT_DEFINE_AUTO(struct weft_http, weft_http_free)
/* The port it listens on. */
uint16_t weft_http_port(const struct weft_http *http);

/* Is this an address that weft_http_new can read? For options, before anything is opened. -EINVAL
 * with a message. */
int weft_http_check_listen(const char *listen, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
