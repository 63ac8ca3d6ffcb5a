/* SPDX-License-Identifier: Apache-2.0 */
/* Exponential waits with jitter. */
#include "pkg/kube/backoff.h"

#include <unistd.h>

#include "pkg/base/clock.h"

void weft_kube_backoff_init(struct weft_kube_backoff *backoff, int64_t min_ns, int64_t max_ns,
                            uint64_t seed)
{
    if (seed == 0) {
        const struct weft_clock *clock = weft_clock_system();
        seed = (uint64_t)weft_clock_realtime(clock) ^ (uint64_t)getpid() << 40;
    }
    *backoff = (struct weft_kube_backoff){.min_ns = min_ns, .max_ns = max_ns, .random = seed};
}

/* splitmix64: spreads neighbouring seeds. */
static uint64_t next_random(struct weft_kube_backoff *backoff)
{
    uint64_t z = backoff->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

int64_t weft_kube_backoff_between(struct weft_kube_backoff *backoff, int64_t from, int64_t to)
{
    return to > from ? from + (int64_t)(next_random(backoff) % (uint64_t)(to - from)) : from;
}

int64_t weft_kube_backoff_next(struct weft_kube_backoff *backoff, int64_t at_least_ns)
{
    int64_t wait = backoff->min_ns;
    for (unsigned i = 0; i < backoff->failures && wait < backoff->max_ns; i++) {
        wait = wait > backoff->max_ns / 2 ? backoff->max_ns : wait * 2;
    }
    backoff->failures += backoff->failures < 1000;
    wait = wait < backoff->max_ns ? wait : backoff->max_ns;
    const int64_t jittered = weft_kube_backoff_between(backoff, wait / 2, wait);
    if (jittered >= at_least_ns) {
        return jittered;
    }
    return weft_kube_backoff_between(backoff, at_least_ns, at_least_ns + at_least_ns / 10);
}

void weft_kube_backoff_reset(struct weft_kube_backoff *backoff)
{
    backoff->failures = 0;
}
