/* SPDX-License-Identifier: Apache-2.0 */
/* Fills struct weft_error at the point of failure. */
#include "pkg/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/str.h"

/* One line, and nothing that a terminal obeys: much of a message is what was found in a file. */
static void make_printable(char *text)
{
    weft_str_printable(text, strlen(text), "");
}

int weft_err_set(struct weft_error *err, int code, enum weft_error_domain domain,
                 const char *format, ...)
{
    if (err != NULL) {
        va_list ap;
        va_start(ap, format);
        *err = (struct weft_error){.code = code, .domain = domain};
        (void)vsnprintf(err->message, sizeof(err->message), format, ap);
        va_end(ap);
        make_printable(err->message);
    }
    return code;
}

static bool errno_is_retryable(int errnum)
{
    static const int transient[] = {EAGAIN,     EINTR,     ENOMEM, ECONNREFUSED,
                                    ECONNRESET, ETIMEDOUT, EPIPE};
    for (size_t i = 0; i < sizeof(transient) / sizeof(transient[0]); i++) {
        if (transient[i] == errnum) {
            return true;
        }
    }
    return false;
}

int weft_err_errno(struct weft_error *err, int errnum, const char *format, ...)
{
    if (err != NULL) {
        va_list ap;
        va_start(ap, format);
        *err = (struct weft_error){.code = -errnum,
                                   .domain = WEFT_ERR_ERRNO,
                                   .domain_code = errnum,
                                   .retryable = errno_is_retryable(errnum)};
        const int used = vsnprintf(err->message, sizeof(err->message), format, ap);
        va_end(ap);
        if (used >= 0 && (size_t)used < sizeof(err->message)) {
            char text[96];
            const char *reason = strerror_r(errnum, text, sizeof(text));
            (void)snprintf(err->message + used, sizeof(err->message) - (size_t)used, ": %s",
                           reason);
        }
        make_printable(err->message);
    }
    return -errnum;
}

int weft_err_wrap(struct weft_error *err, int code, const char *format, ...)
{
    if (err != NULL) {
        char prefix[WEFT_ERROR_MESSAGE_MAX];
        va_list ap;
        va_start(ap, format);
        const int used = vsnprintf(prefix, sizeof(prefix), format, ap);
        va_end(ap);
        /* "<prefix>: <message>", cut at the end; a prefix that fills all stands alone */
        if (used >= 0 && (size_t)used + 3 < sizeof(prefix)) {
            const size_t at = (size_t)used + 2;
            const size_t len = strnlen(err->message, sizeof(err->message) - at - 1);
            memmove(err->message + at, err->message, len);
            err->message[at + len] = '\0';
            memcpy(err->message, prefix, (size_t)used);
            memcpy(err->message + used, ": ", 2);
        } else {
            memcpy(err->message, prefix, sizeof(prefix));
        }
        make_printable(err->message);
        err->code = code;
    }
    return code;
}

int weft_err_nomem(struct weft_error *err)
{
    (void)weft_err_set(err, -ENOMEM, WEFT_ERR_ERRNO, "out of memory");
    if (err != NULL) {
        err->domain_code = ENOMEM;
        err->retryable = true;
    }
    return -ENOMEM;
}
