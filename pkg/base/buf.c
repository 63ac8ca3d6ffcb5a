/* SPDX-License-Identifier: Apache-2.0 */
/* The capped, growing byte buffer. */
#include "pkg/base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void weft_buf_init(struct weft_buf *buf, size_t max)
{
    *buf = (struct weft_buf){.max = max < SIZE_MAX ? max : SIZE_MAX - 1};
}

void weft_buf_done(struct weft_buf *buf)
{
    if (buf != NULL) {
        weft_free(buf->data);
        *buf = (struct weft_buf){.max = buf->max};
    }
}

static int make_room(struct weft_buf *buf, size_t more)
{
    if (buf->status != 0) {
        return buf->status;
    }
    if (more > buf->max - buf->len) {
        buf->status = -EFBIG;
        return buf->status;
    }
    void *data = buf->data;
    buf->status = weft_array_reserve(&data, &buf->cap, buf->len + more + 1, 1, buf->max + 1);
    buf->data = data;
    return buf->status;
}

int weft_buf_append(struct weft_buf *buf, const void *bytes, size_t len)
{
    const int rc = make_room(buf, len);
    if (rc == 0) {
        if (len > 0) {
            memcpy(buf->data + buf->len, bytes, len);
        }
        buf->len += len;
        buf->data[buf->len] = '\0';
    }
    return rc;
}

int weft_buf_puts(struct weft_buf *buf, const char *text)
{
    return weft_buf_append(buf, text, strlen(text));
}

int weft_buf_putc(struct weft_buf *buf, char c)
{
    return weft_buf_append(buf, &c, 1);
}

int weft_buf_printf(struct weft_buf *buf, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    va_list again;
    va_copy(again, ap);
    const int len = vsnprintf(NULL, 0, format, ap);
    va_end(ap);
    int rc = make_room(buf, len < 0 ? 0 : (size_t)len);
    if (rc == 0 && len >= 0) {
        (void)vsnprintf(buf->data + buf->len, (size_t)len + 1, format, again);
        buf->len += (size_t)len;
    }
    va_end(again);
    return rc;
}

void weft_buf_consume(struct weft_buf *buf, size_t len)
{
    if (len >= buf->len) {
        len = buf->len;
    }
    if (len > 0) {
        memmove(buf->data, buf->data + len, buf->len - len + 1);
        buf->len -= len;
    }
}

void weft_buf_reset(struct weft_buf *buf)
{
    buf->len = 0;
    buf->status = 0;
    if (buf->data != NULL) {
        buf->data[0] = '\0';
    }
}

const char *weft_buf_text(const struct weft_buf *buf)
{
    return buf->data != NULL ? buf->data : "";
}

char *weft_buf_steal(struct weft_buf *buf)
{
    if (weft_buf_append(buf, "", 0) != 0) {
        return NULL;
    }
    char *text = weft_steal(&buf->data);
    buf->len = buf->cap = 0;
    return text;
}
