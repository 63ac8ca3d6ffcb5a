/* SPDX-License-Identifier: Apache-2.0 */
/* System clock and time text. */
#include "pkg/base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
    struct timespec ts;
    if (clock_gettime(id, &ts) < 0) {
        return 0;
    }
    return (int64_t)ts.tv_sec * WEFT_NS_PER_S + ts.tv_nsec;
}

static int64_t system_monotonic(void *data)
{
    (void)data;
    return read_clock(CLOCK_MONOTONIC);
}

static int64_t system_realtime(void *data)
{
    (void)data;
    return read_clock(CLOCK_REALTIME);
}

const struct weft_clock *weft_clock_system(void)
{
    static const struct weft_clock clock = {.monotonic = system_monotonic,
                                            .realtime = system_realtime};
    return &clock;
}

int64_t weft_clock_monotonic(const struct weft_clock *clock)
{
    return clock->monotonic(clock->data);
}

int64_t weft_clock_realtime(const struct weft_clock *clock)
{
    return clock->realtime(clock->data);
}

const char *weft_time_format(int64_t realtime_ns, char *text)
{
    const time_t seconds = (time_t)(realtime_ns / WEFT_NS_PER_S);
    struct tm tm;
    char date[24];
    if (gmtime_r(&seconds, &tm) == NULL ||
        strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm) == 0) {
        date[0] = '\0';
    }
    (void)snprintf(text, WEFT_TIME_TEXT_MAX, "%s.%06dZ", date,
                   (int)(realtime_ns % WEFT_NS_PER_S / 1000));
    return text;
}
