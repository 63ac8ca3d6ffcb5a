/* SPDX-License-Identifier: Apache-2.0 */
/* One line per event on stderr, logfmt or JSON. Programs log once, where an event is handled;
 * library code (pkg/) returns errors and logs at debug at most. Any thread; one write(2) a line. A
 * full pipe holds nobody up for more than 100 ms: lines are dropped, and their number is logged
 * when there is room again. */
#ifndef WEFT_BASE_LOG_H
#define WEFT_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum weft_log_level {
    WEFT_LOG_DEBUG,
    WEFT_LOG_INFO,
    WEFT_LOG_WARN,
    WEFT_LOG_ERROR,
    WEFT_LOG_LEVEL_COUNT
};
enum weft_log_format { WEFT_LOG_LOGFMT, WEFT_LOG_JSON, WEFT_LOG_FORMAT_COUNT };

/* A key and a value; made by the WEFT_KV_* helpers. */
struct weft_kv {
    const char *key;
    enum { WEFT_KV_END, WEFT_KV_TEXT, WEFT_KV_INT } type;
    const char *text;
    int64_t number;
};

#define WEFT_KV_S(k, v) ((struct weft_kv){.key = (k), .type = WEFT_KV_TEXT, .text = (v)})
#define WEFT_KV_I(k, v) ((struct weft_kv){.key = (k), .type = WEFT_KV_INT, .number = (int64_t)(v)})

/* Lines below level are dropped. fd: where to (2 unless a test says otherwise). Call before other
 * threads start. */
void weft_log_setup(enum weft_log_level level, enum weft_log_format format, int fd);
/* Parses "logfmt" or "json": 0 or -EINVAL; "debug" … "error" likewise. */
int weft_log_parse_format(const char *text, enum weft_log_format *ret_format);
int weft_log_parse_level(const char *text, enum weft_log_level *ret_level);

/* Is a line of this level written? For lines that are costly to make. */
bool weft_log_enabled(enum weft_log_level level);

void weft_log_kv(enum weft_log_level level, const char *event, const struct weft_kv *kvs);

/* weft_log(WEFT_LOG_INFO, "registered", WEFT_KV_S("resource", r), WEFT_KV_I("devices", n)); */
#define weft_log(level, event, ...)                                                                \
    weft_log_kv((level), (event), (const struct weft_kv[]){__VA_ARGS__ __VA_OPT__(, ){0}})

#endif
