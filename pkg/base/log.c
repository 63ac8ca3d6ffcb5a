/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines in logfmt or JSON. A value is escaped so that a line stays a line whatever a device or
 * a peer calls itself. */
#include "pkg/base/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pkg/base/buf.h"
#include "pkg/base/clock.h"

enum { LOG_LINE_MAX = PIPE_BUF }; /* a pipe takes it whole, or poll says that it is full */

static _Atomic int log_level = WEFT_LOG_INFO;
static _Atomic int log_format = WEFT_LOG_LOGFMT;
static _Atomic int log_fd = STDERR_FILENO;
static _Atomic unsigned log_dropped; /* lines since the last one that was written */

static const char *const level_names[WEFT_LOG_LEVEL_COUNT] = {"debug", "info", "warn", "error"};
static const char *const format_names[WEFT_LOG_FORMAT_COUNT] = {"logfmt", "json"};

void weft_log_setup(enum weft_log_level level, enum weft_log_format format, int fd)
{
    atomic_store(&log_level, (int)level);
    atomic_store(&log_format, (int)format);
    atomic_store(&log_fd, fd);
}

static int name_index(const char *const *names, int count, const char *text)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], text) == 0) {
            return i;
        }
    }
    return -EINVAL;
}

int weft_log_parse_format(const char *text, enum weft_log_format *ret_format)
{
    const int i = name_index(format_names, WEFT_LOG_FORMAT_COUNT, text);
    if (i >= 0) {
        *ret_format = (enum weft_log_format)i;
    }
    return i < 0 ? i : 0;
}

int weft_log_parse_level(const char *text, enum weft_log_level *ret_level)
{
    const int i = name_index(level_names, WEFT_LOG_LEVEL_COUNT, text);
    if (i >= 0) {
        *ret_level = (enum weft_log_level)i;
    }
    return i < 0 ? i : 0;
}

static bool needs_quotes(const char *text)
{
    if (*text == '\0') {
        return true;
    }
    for (const char *p = text; *p != '\0'; p++) {
        const unsigned char c = (unsigned char)*p;
        if (c <= ' ' || c == '"' || c == '\\' || c == '=' || c == 0x7f) {
            return true;
        }
    }
    return false;
}

static void put_quoted(struct weft_buf *line, const char *text)
{
    (void)weft_buf_putc(line, '"');
    for (const char *p = text; *p != '\0'; p++) {
        const unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\') {
            (void)weft_buf_printf(line, "\\%c", c);
        } else if (c < ' ' || c == 0x7f) {
            (void)weft_buf_printf(line, "\\u%04x", (unsigned)c);
        } else {
            (void)weft_buf_putc(line, *p);
        }
    }
    (void)weft_buf_putc(line, '"');
}

static void put_kv(struct weft_buf *line, bool json, const struct weft_kv *kv)
{
    if (json) {
        (void)weft_buf_putc(line, line->len > 1 ? ',' : ' ');
        put_quoted(line, kv->key);
        (void)weft_buf_putc(line, ':');
    } else {
        (void)weft_buf_printf(line, "%s%s=", line->len > 0 ? " " : "", kv->key);
    }
    if (kv->type == WEFT_KV_INT) {
        (void)weft_buf_printf(line, "%lld", (long long)kv->number);
    } else if (json || needs_quotes(kv->text != NULL ? kv->text : "")) {
        put_quoted(line, kv->text != NULL ? kv->text : "");
    } else {
        (void)weft_buf_puts(line, kv->text);
    }
}

bool weft_log_enabled(enum weft_log_level level)
{
    return (int)level >= atomic_load(&log_level);
}

/* A reader that is slow gets this long to make room for a line, and none for those that follow one
 * that was dropped. */
enum { FULL_WAIT_MS = 100 };

/* A log that nobody reads (a pipe to a runtime that hangs) must not stop the loop that writes it:
 * then lines are dropped and counted. */
static bool may_write(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    const bool full = atomic_load(&log_dropped) > 0;
    if (poll(&p, 1, full ? 0 : FULL_WAIT_MS) == 0) {
        (void)atomic_fetch_add(&log_dropped, 1);
        return false;
    }
    return true; /* also where poll cannot tell */
}

static void ignore(ssize_t written)
{
    (void)written;
}

static void write_line(int fd, const char *text, size_t len)
{
    if (!may_write(fd)) {
        return;
    }
    const unsigned dropped = atomic_exchange(&log_dropped, 0);
    if (dropped > 0) {
        char note[128];
        const int note_len =
            snprintf(note, sizeof(note),
                     atomic_load(&log_format) == WEFT_LOG_JSON
                         ? "{ \"level\":\"warn\",\"event\":\"log-lines-dropped\",\"count\":%u}\n"
                         : "level=warn event=log-lines-dropped count=%u\n",
                     dropped);
        ignore(write(fd, note, (size_t)note_len));
        if (!may_write(fd)) {
            return;
        }
    }
    ignore(write(fd, text, len)); /* a closed stderr must not stop a node's plugin */
}

void weft_log_kv(enum weft_log_level level, const char *event, const struct weft_kv *kvs)
{
    if (!weft_log_enabled(level)) {
        return;
    }
    const bool json = atomic_load(&log_format) == WEFT_LOG_JSON;
    weft_auto(weft_buf_done) struct weft_buf line;
    weft_buf_init(&line, LOG_LINE_MAX);
    char now[WEFT_TIME_TEXT_MAX];
    const struct weft_kv head[] = {
        WEFT_KV_S("time", weft_time_format(weft_clock_realtime(weft_clock_system()), now)),
        WEFT_KV_S("level", level_names[level]),
        WEFT_KV_S("event", event),
    };
    if (json) {
        (void)weft_buf_putc(&line, '{');
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(head); i++) {
        put_kv(&line, json, &head[i]);
    }
    for (; kvs->type != WEFT_KV_END; kvs++) {
        put_kv(&line, json, kvs);
    }
    (void)weft_buf_puts(&line, json ? "}\n" : "\n");
    if (line.status != 0) { /* too long or no memory: what fits, on a line of its own */
        weft_buf_done(&line);
        (void)weft_buf_printf(&line, "level=%s event=\"%.200s\" cut=1\n", level_names[level],
                              event);
    }
    write_line(atomic_load(&log_fd), weft_buf_text(&line), line.len);
}
