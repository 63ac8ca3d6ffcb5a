/* SPDX-License-Identifier: Apache-2.0 */
/* The error value: where a person will read what went wrong, a function takes a struct weft_error
 * as its last argument. It is caller-owned, never allocates, and may be NULL. */
#ifndef WEFT_BASE_ERROR_H
#define WEFT_BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

enum weft_error_domain {
    WEFT_ERR_NONE,
    WEFT_ERR_ERRNO,
    WEFT_ERR_NVML,
    WEFT_ERR_CURL,
    WEFT_ERR_GRPC,
    WEFT_ERR_HTTP,
    WEFT_ERR_JSON,
    WEFT_ERR_YAML,
    WEFT_ERR_CONFIG,
    WEFT_ERR_PROTOBUF,
    WEFT_ERR_COUNT
};

enum { WEFT_ERROR_MESSAGE_MAX = 256 };

struct weft_error {
    int code; /* negative errno that the failing function returned */
    enum weft_error_domain domain;
    int domain_code; /* HTTP status, CURLcode, gRPC status…; 0 if the domain has none */
    bool retryable;  /* the same call may succeed later without anybody changing anything */
    /* of a request to the API server, as its audit log has it (auditID); "" for all else. Not part
     * of the message, so that the same failure has the same one. */
    char request_id[40];
    char message[WEFT_ERROR_MESSAGE_MAX];
};

/* Sets err (if not NULL) and returns code, so that a failure is one statement:
 * return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "…"). A message that is too long is cut. */
int weft_err_set(struct weft_error *err, int code, enum weft_error_domain domain,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));
/* For a failed system call: "<formatted>: <strerror(errnum)>", code -errnum, domain ERRNO.
 * EAGAIN, EINTR, ENOMEM, ECONNREFUSED, ECONNRESET, ETIMEDOUT and EPIPE are retryable. */
int weft_err_errno(struct weft_error *err, int errnum, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts "<formatted>: " before the message, once per layer; domain and flags stay. Returns code. */
int weft_err_wrap(struct weft_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* -ENOMEM with its message. */
int weft_err_nomem(struct weft_error *err);

#endif
