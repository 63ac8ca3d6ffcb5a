/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to one API server: a libcurl multi handle on the loop, HTTP/2 with all calls on one
 * connection where the server can. It never blocks, never retries and keeps no state of the
 * cluster; callers decide what to try again (error.retryable, retry_after_ns). TLS is verified
 * unless the configuration says otherwise; redirects are not followed.
 *
 * Everything runs on the loop's thread. No callback is made from inside submit or cancel. */
#ifndef WEFT_KUBE_CLIENT_H
#define WEFT_KUBE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_json;
struct weft_kube_call;
struct weft_kube_client;
struct weft_kube_config;
struct weft_loop;

enum {
    WEFT_KUBE_CALLS_MAX = 256,        /* calls under way at once; more are refused with -EBUSY */
    WEFT_KUBE_BODY_MAX = 8 << 20,     /* of a collected answer, in bytes */
    WEFT_KUBE_REQUEST_MAX = 2 << 20,  /* of a request body; etcd takes 1.5 MiB */
    WEFT_KUBE_ERROR_BODY_MAX = 65536, /* kept of an answer that is no 2xx */
};

/* ---- the client ---- */

/* Takes ownership of config, also on failure; loop is borrowed and must outlive the client. The
 * user agent is "<program>/<version>", program also the default field manager (both copied).
 * Nothing is sent yet. Errors: -ENOMEM, -EIO if libcurl cannot start. */
int weft_kube_client_new(struct weft_loop *loop, struct weft_kube_config *config,
                         const char *program, struct weft_kube_client **ret_client,
                         struct weft_error *err) __attribute__((warn_unused_result));
/* Cancels what is under way (no callbacks) and closes the connections. NULL is fine. Not from
 * inside one of its own callbacks. */
void weft_kube_client_free(struct weft_kube_client *client);
WEFT_DEFINE_AUTO(struct weft_kube_client, weft_kube_client_free)

const struct weft_kube_config *weft_kube_client_config(const struct weft_kube_client *client);
struct weft_loop *weft_kube_client_loop(const struct weft_kube_client *client);

/* Counters since the start, for metrics and tests. */
struct weft_kube_stats {
    uint64_t requests;            /* sent, all methods */
    uint64_t writes;              /* of these POST, PUT, PATCH, DELETE */
    uint64_t failed;              /* without an HTTP answer */
    uint64_t bytes_in;            /* of bodies, decoded */
    uint64_t http2;               /* answers that came over HTTP/2 */
    uint64_t connections;         /* opened */
    uint64_t token_reloads;       /* token files that had changed */
    uint64_t certificate_reloads; /* the CA's or our own, likewise */
};
void weft_kube_client_stats(const struct weft_kube_client *client, struct weft_kube_stats *ret);

/* ---- one object or document: the usual calls ---- */

enum weft_kube_verb {
    WEFT_KUBE_GET,
    WEFT_KUBE_CREATE,      /* POST body to a collection */
    WEFT_KUBE_REPLACE,     /* PUT body; metadata.resourceVersion in the body is the precondition */
    WEFT_KUBE_DELETE,      /* with uid and resource_version as preconditions where given */
    WEFT_KUBE_APPLY,       /* server-side apply of a JSON body, field_manager, force */
    WEFT_KUBE_MERGE_PATCH, /* application/merge-patch+json */
    WEFT_KUBE_VERB_COUNT
};

struct weft_kube_result {
    int status;         /* HTTP status; 0 if no answer came */
    const char *reason; /* metav1.Status reason ("Conflict", "AlreadyExists", …), "" if none */
    /* The answer's document (the object; for errors the metav1.Status), NULL if there is none.
     * Borrowed during the callback. */
    const struct weft_json *body;
    struct weft_error error; /* code 0 = 2xx; see below */
    int64_t retry_after_ns;  /* as the server asked; 0 if it did not */
    /* A write that left us, and whose answer did not arrive whole or was a 5xx: it may or may not
     * have been done; read back before trying again. */
    bool outcome_unknown;
};

/* error.code by HTTP status (domain HTTP, domain_code = status): 400 and 422 -EINVAL, 401 and 403
 * -EACCES, 404 -ENOENT, 409 -EEXIST (reason AlreadyExists) or -ESTALE (reason Conflict), 410
 * -ESTALE, 413 -EFBIG, 429 -EAGAIN, 504 -ETIMEDOUT, other -EIO. 408, 429 and 5xx are retryable, and
 * 401 while a token or certificate file may rotate. Without an answer: domain CURL, domain_code =
 * CURLcode, code -ETIMEDOUT, -ECONNREFUSED, -EPROTO (TLS; retryable if a certificate's file has
 * changed), -EFBIG (over the body cap), else -EIO. error.request_id is the request's auditID. */
typedef void (*weft_kube_result_fn)(void *data, const struct weft_kube_result *result);

struct weft_kube_op {
    enum weft_kube_verb verb;
    /* Path with percent-encoded parts (weft_kube_path), no query. Copied. */
    const char *path;
    const char *query; /* without "?", already encoded; NULL = none. Copied. */
    const char *body;  /* JSON text, copied; NULL = none */
    size_t body_len;
    const char *uid;              /* DELETE */
    const char *resource_version; /* DELETE */
    const char *field_manager; /* CREATE, REPLACE, APPLY, MERGE_PATCH; NULL = the program's name */
    bool force;                /* APPLY: take over conflicting fields */
    bool dry_run;              /* dryRun=All */
    /* fieldValidation=Strict for writes: unknown and duplicate fields are a 400/422 error. */
    bool strict;
    int64_t timeout_ns;          /* whole call; also sent as ?timeout= ; 0 = 30 s */
    weft_kube_result_fn on_done; /* once, unless cancelled; NULL = nobody wants to know */
    void *data;
};

/* Starts a call. *ret_call (may be NULL) is valid until on_done returns. Failure means that nothing
 * was started and on_done will not be called: -ENOMEM, -EBUSY (too many under way), -EFBIG (body
 * over WEFT_KUBE_REQUEST_MAX), -EINVAL. */
int weft_kube_submit(struct weft_kube_client *client, const struct weft_kube_op *op,
                     struct weft_kube_call **ret_call, struct weft_error *err)
    __attribute__((warn_unused_result));

/* Ends a call without its callback: the call is gone after this. Also from callbacks. A write that
 * is cancelled may or may not be done. NULL is fine. */
void weft_kube_call_cancel(struct weft_kube_call *call);

/* ---- streams: lists and watches (weft_kube_reflector uses these) ---- */

struct weft_kube_head {
    int status;
    const char *content_type; /* without parameters, lower case; "" if none */
};

struct weft_kube_stream {
    const char *path;
    const char *query;
    const char *accept; /* NULL = application/json */
    int64_t timeout_ns; /* whole call; 0 = none (give idle_ns then) */
    int64_t idle_ns;    /* most time without a byte; 0 = no limit but timeout_ns */
    uint64_t body_max;  /* of a 2xx answer; 0 = WEFT_KUBE_BODY_MAX */
    /* Once before the first byte of a 2xx answer; a negative return ends the call with it. */
    int (*on_head)(void *data, const struct weft_kube_head *head, struct weft_error *err);
    /* Bytes of a 2xx answer in any pieces; a negative return ends the call with it. */
    int (*on_bytes)(void *data, const char *bytes, size_t len, struct weft_error *err);
    /* Once at the end, unless cancelled. result->body is set for errors only. */
    weft_kube_result_fn on_done;
    void *data;
};

int weft_kube_stream_start(struct weft_kube_client *client, const struct weft_kube_stream *stream,
                           struct weft_kube_call **ret_call, struct weft_error *err)
    __attribute__((warn_unused_result));

/* ---- paths ---- */

struct weft_kube_resource {
    const char *group; /* "" = core */
    const char *version;
    const char *plural;
};

/* "/apis/<group>/<version>[/namespaces/<ns>]/<plural>[/<name>]" ("/api/v1/…" for core), each part
 * percent-encoded; namespace and name may be NULL. Owned; NULL without memory. */
char *weft_kube_path(const struct weft_kube_resource *resource, const char *ns, const char *name)
    __attribute__((warn_unused_result));
/* The resources weft talks about. */
extern const struct weft_kube_resource weft_kube_nodes;
extern const struct weft_kube_resource weft_kube_hypernodes; /* topology.volcano.sh/v1alpha1 */
extern const struct weft_kube_resource weft_kube_leases;
extern const struct weft_kube_resource weft_kube_events; /* events.k8s.io/v1 */
extern const struct weft_kube_resource weft_kube_pods;

#endif
