/* SPDX-License-Identifier: Apache-2.0 */
/* The one place that reads the clock. Time is int64_t nanoseconds. Code that waits or stamps takes
 * a struct weft_clock, so that tests move time by hand. */
#ifndef WEFT_BASE_CLOCK_H
#define WEFT_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#define WEFT_NS_PER_MS INT64_C(1000000)
#define WEFT_NS_PER_S INT64_C(1000000000)

struct weft_clock {
    int64_t (*monotonic)(void *data); /* CLOCK_MONOTONIC */
    int64_t (*realtime)(void *data);  /* CLOCK_REALTIME, since 1970 UTC */
    void *data;
};

/* The system's clock; static storage, any thread. */
const struct weft_clock *weft_clock_system(void);
int64_t weft_clock_monotonic(const struct weft_clock *clock);
int64_t weft_clock_realtime(const struct weft_clock *clock);

enum { WEFT_TIME_TEXT_MAX = 40 };
/* RFC 3339 in UTC with microseconds ("2026-11-30T12:24:13.000000Z"), the form of Kubernetes'
 * MicroTime. text has room for WEFT_TIME_TEXT_MAX bytes; returns text. */
const char *weft_time_format(int64_t realtime_ns, char *text);

#endif
