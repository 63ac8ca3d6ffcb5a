/* SPDX-License-Identifier: Apache-2.0 */
/* Waits between tries: exponential, capped, with jitter. Pure: the caller has the clock, and the
 * seed decides every wait. */
#ifndef WEFT_KUBE_BACKOFF_H
#define WEFT_KUBE_BACKOFF_H

#include <stdint.h>

struct weft_kube_backoff {
    int64_t min_ns, max_ns;
    unsigned failures; /* in a row */
    uint64_t random;
};

/* seed 0 = from the clock and the process id, so that a fleet does not move in step. */
void weft_kube_backoff_init(struct weft_kube_backoff *backoff, int64_t min_ns, int64_t max_ns,
                            uint64_t seed);
/* Counts a failure and says how long to wait: half to all of min · 2^(failures-1), at most max, but
 * at least at_least_ns (what a server asked for) and up to a tenth more. */
int64_t weft_kube_backoff_next(struct weft_kube_backoff *backoff, int64_t at_least_ns);
/* Something went well. */
void weft_kube_backoff_reset(struct weft_kube_backoff *backoff);
/* A number in [from, to), or from if that is empty. */
int64_t weft_kube_backoff_between(struct weft_kube_backoff *backoff, int64_t from, int64_t to);

#endif
