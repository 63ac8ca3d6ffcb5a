/* SPDX-License-Identifier: Apache-2.0 */
/* A growing byte buffer with a cap, NUL-terminated at all times once something was appended. The
 * first failure sticks: later appends do nothing and return the same code, so that a writer may
 * append many times and check once at the end. One thread at a time. */
#ifndef WEFT_BASE_BUF_H
#define WEFT_BASE_BUF_H

#include <stddef.h>

#include "pkg/base/mem.h"

struct weft_buf {
    char *data; /* NULL while empty; see weft_buf_text */
    size_t len;
    size_t cap;
    size_t max; /* most bytes of content */
    int status; /* 0, -ENOMEM or -EFBIG, sticky */
};

/* max is the cap in bytes. */
void weft_buf_init(struct weft_buf *buf, size_t max);
void weft_buf_done(struct weft_buf *buf);
WEFT_DEFINE_AUTO_VALUE(struct weft_buf, weft_buf_done)

/* Each returns 0 or the buffer's sticky -ENOMEM / -EFBIG. */
int weft_buf_append(struct weft_buf *buf, const void *bytes, size_t len);
int weft_buf_puts(struct weft_buf *buf, const char *text);
int weft_buf_putc(struct weft_buf *buf, char c);
int weft_buf_printf(struct weft_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Drops the first len bytes (all, if there are fewer). */
void weft_buf_consume(struct weft_buf *buf, size_t len);
/* Empties it and clears the sticky status; keeps the memory. */
void weft_buf_reset(struct weft_buf *buf);
/* The content as text, "" when empty; borrowed until the next change. */
const char *weft_buf_text(const struct weft_buf *buf);
/* Hands the content over as an owned string (never NULL on success) and empties the buffer.
 * NULL if the status is not 0 or memory is short. */
char *weft_buf_steal(struct weft_buf *buf) __attribute__((warn_unused_result));

#endif
