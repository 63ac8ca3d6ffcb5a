/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON writer. */
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/json/json-internal.h"

void weft_json_writer_init(struct weft_json_writer *w, struct weft_buf *buf, unsigned indent)
{
    *w = (struct weft_json_writer){.buf = buf, .indent = indent};
}

static void new_line(struct weft_json_writer *w)
{
    if (w->indent > 0) {
        (void)weft_buf_putc(w->buf, '\n');
        for (unsigned i = 0; i < w->depth * w->indent; i++) {
            (void)weft_buf_putc(w->buf, ' ');
        }
    }
}

/* What stands before a value or key: a comma and a line of its own, unless a key does already. */
static void before(struct weft_json_writer *w)
{
    if (w->after_key) {
        w->after_key = false;
        return;
    }
    if (w->comma) {
        (void)weft_buf_putc(w->buf, ',');
    }
    if (w->depth > 0) {
        new_line(w);
    }
    w->comma = true;
}

static void put_quoted(struct weft_buf *buf, const char *text)
{
    (void)weft_buf_putc(buf, '"');
    for (const char *p = text; *p != '\0'; p++) {
        const unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\') {
            (void)weft_buf_putc(buf, '\\');
            (void)weft_buf_putc(buf, *p);
        } else if (c < ' ' || c == 0x7f) {
            (void)weft_buf_printf(buf, "\\u%04x", (unsigned)c);
        } else {
            (void)weft_buf_putc(buf, *p);
        }
    }
    (void)weft_buf_putc(buf, '"');
}

void weft_json_open(struct weft_json_writer *w, char bracket)
{
    before(w);
    (void)weft_buf_putc(w->buf, bracket);
    w->depth++;
    w->comma = false;
}

void weft_json_close(struct weft_json_writer *w, char bracket)
{
    const bool empty = !w->comma;
    w->depth--;
    if (!empty) {
        new_line(w);
    }
    (void)weft_buf_putc(w->buf, bracket);
    w->comma = true;
}

void weft_json_put_key(struct weft_json_writer *w, const char *key)
{
    before(w);
    put_quoted(w->buf, key);
    (void)weft_buf_puts(w->buf, w->indent > 0 ? ": " : ":");
    w->after_key = true;
}

void weft_json_put_string(struct weft_json_writer *w, const char *text)
{
    before(w);
    put_quoted(w->buf, text);
}

void weft_json_put_int(struct weft_json_writer *w, int64_t value)
{
    before(w);
    (void)weft_buf_printf(w->buf, "%lld", (long long)value);
}

void weft_json_put_bool(struct weft_json_writer *w, bool value)
{
    before(w);
    (void)weft_buf_puts(w->buf, value ? "true" : "false");
}

void weft_json_put_null(struct weft_json_writer *w)
{
    before(w);
    (void)weft_buf_puts(w->buf, "null");
}

void weft_json_kv_string(struct weft_json_writer *w, const char *key, const char *text)
{
    weft_json_put_key(w, key);
    weft_json_put_string(w, text);
}

void weft_json_kv_int(struct weft_json_writer *w, const char *key, int64_t value)
{
    weft_json_put_key(w, key);
    weft_json_put_int(w, value);
}

void weft_json_kv_bool(struct weft_json_writer *w, const char *key, bool value)
{
    weft_json_put_key(w, key);
    weft_json_put_bool(w, value);
}

static void put_scalar(struct weft_json_writer *w, const struct weft_json *node)
{
    switch (node->type) {
    case WEFT_JSON_STRING:
        weft_json_put_string(w, node->text);
        return;
    case WEFT_JSON_INT:
    case WEFT_JSON_DOUBLE:
    case WEFT_JSON_BOOL:
        before(w);
        (void)weft_buf_puts(w->buf, node->text);
        return;
    case WEFT_JSON_NULL:
    case WEFT_JSON_ARRAY:
    case WEFT_JSON_OBJECT:
    case WEFT_JSON_TYPE_COUNT:
        break;
    }
    weft_json_put_null(w);
}

void weft_json_put_node(struct weft_json_writer *w, const struct weft_json *node)
{
    const enum weft_json_type type = weft_json_type(node);
    if (type != WEFT_JSON_ARRAY && type != WEFT_JSON_OBJECT) {
        if (node == NULL) {
            weft_json_put_null(w);
        } else {
            put_scalar(w, node);
        }
        return;
    }
    weft_json_open(w, type == WEFT_JSON_ARRAY ? '[' : '{');
    for (size_t i = 0; i < node->child_count; i++) {
        if (type == WEFT_JSON_OBJECT) {
            weft_json_put_key(w, node->children[i]->key);
        }
        weft_json_put_node(w, node->children[i]); /* depth is capped where a document is made */
    }
    weft_json_close(w, type == WEFT_JSON_ARRAY ? ']' : '}');
}
