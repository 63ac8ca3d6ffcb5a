/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTPS client for sources that are servers: one server, requests with a deadline and a
 * cap, TLS verified against the system's authorities, a CA file or a pinned public key, redirects
 * not followed, cookies of the session kept. It never retries and never prints a secret. Loop
 * thread only; no callback is made from inside start or cancel. */
#ifndef WEFT_WEB_WEB_H
#define WEFT_WEB_WEB_H

#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_loop;
struct weft_secret;
struct weft_web;
struct weft_web_get;

enum { WEFT_WEB_GETS_MAX = 16 }; /* under way at once; more are refused with -EBUSY */

struct weft_web_options {
    const char *base; /* "https://host[:port]"; paths are put after it */
    const char *user_agent;
    const char *ca_file; /* PEM; NULL: the system's authorities, or with a pin none */
    const char *pin;     /* "sha256//<base64>": the server's public key must be this one */
};

/* Text is copied; loop must outlive the client. Nothing is sent yet. Errors: -ENOMEM, -EIO if
 * libcurl cannot start. */
int weft_web_new(struct weft_loop *loop, const struct weft_web_options *options,
                 struct weft_web **ret_web, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Cancels what is under way. NULL is fine. Not from inside one of its own callbacks. */
void weft_web_free(struct weft_web *web);
WEFT_DEFINE_AUTO(struct weft_web, weft_web_free)
/* Forgets the session's cookies. */
void weft_web_forget(struct weft_web *web);

struct weft_web_answer {
    int status;       /* HTTP status; 0: no answer */
    const char *body; /* NUL-terminated, borrowed for the call; "" if none */
    size_t len;
    int64_t retry_after_ns; /* as the server asked; 0 if it did not */
    /* code 0: a 2xx that is whole. Without an answer: domain CURL, code as weft_web_errno, or
     * -EFBIG over the cap; with another status: domain HTTP, code -EACCES for 401 and 403, else
     * -EIO. domain_code is the status or the CURLcode. */
    struct weft_error error;
};

struct weft_web_request {
    const char *path; /* with the query, percent-encoded */
    /* POST of form fields: name, value, name, value …, NULL-terminated; NULL: a GET */
    const struct weft_secret *const *form_values;
    const char *const *form_names;
    const char *scheme;                 /* of the Authorization header; NULL: none */
    const struct weft_secret *user;     /* with scheme "Basic" and password: user:password… */
    const struct weft_secret *password; /* …in base64 */
    const struct weft_secret *token;    /* else this, as it is */
    size_t body_max;
    int64_t timeout_ns; /* of the whole request */
    void (*on_done)(void *data, const struct weft_web_answer *answer);
    void *data;
};

/* *ret_get is valid until on_done returns. On failure nothing was started: -ENOMEM, -EBUSY. */
int weft_web_start(struct weft_web *web, const struct weft_web_request *request,
                   struct weft_web_get **ret_get, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Ends it without its callback. NULL is fine. */
void weft_web_cancel(struct weft_web_get *get);

#endif
