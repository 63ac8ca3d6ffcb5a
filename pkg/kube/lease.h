/* SPDX-License-Identifier: Apache-2.0 */
/* Leader election on a coordination.k8s.io/v1 Lease, in the way of client-go: the holder renews;
 * another takes over when it has seen the same record for the whole lease duration by its own
 * clock (clocks of different machines are never compared). It writes the Lease and nothing else.
 * Loop thread only.
 *
 * Fencing: weft_kube_lease_fresh is true only while the last successful renewal was *sent* less
 * than fence_ns ago. With a write timeout of at most duration - fence, a write ends before another
 * holder can start, unless the process is stopped (or the network holds the request up) in the very
 * moment between the look and the sending. For that a write has a precondition of its own, the
 * object's resourceVersion; a create, which can have none, is then the next holder's to take back.
 */
#ifndef WEFT_KUBE_LEASE_H
#define WEFT_KUBE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_clock;
struct weft_kube_client;
struct weft_kube_lease;

struct weft_kube_lease_options {
    const char *ns, *name; /* of the Lease. Copied. */
    const char *identity;  /* who we are, unique per process: "<pod>_<random>". Copied. */
    /* 0 = the default in brackets */
    int64_t duration_ns; /* whole seconds [15 s] */
    /* from one renewal to the next, less up to 20 % of jitter [5 s]: more often than the fence
     * closes, so that writes need not wait while the server answers within the difference */
    int64_t renew_ns;
    /* from a failed renewal's start to the next one (at once, if it took longer), and between looks
     * at another's Lease, there plus up to 20 % [2 s] */
    int64_t retry_ns;
    int64_t timeout_ns;             /* of one request [4 s] */
    int64_t fence_ns;               /* see above [6 s] */
    uint64_t seed;                  /* of the jitter; 0 = from the clock */
    const struct weft_clock *clock; /* NULL = the system's */
    /* We are the leader from now on. */
    void (*on_acquired)(void *data);
    /* We are not any more: another holds it, or no renewal succeeded for duration - timeout. Writes
     * must have stopped by then, as weft_kube_lease_fresh says. It goes on trying to acquire. */
    void (*on_lost)(void *data);
    /* Another holder was seen; holder is borrowed. May be NULL. */
    void (*on_holder)(void *data, const char *holder);
    /* A try failed (the next follows, see retry_ns). May be NULL. */
    void (*on_error)(void *data, const struct weft_error *error);
    void *data;
};

/* Starts trying. client is borrowed. Errors: -ENOMEM, -EINVAL. */
int weft_kube_lease_new(struct weft_kube_client *client,
                        const struct weft_kube_lease_options *options,
                        struct weft_kube_lease **ret_lease, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Stops without giving the Lease up (it expires). NULL is fine; also from its callbacks. */
void weft_kube_lease_free(struct weft_kube_lease *lease);
WEFT_DEFINE_AUTO(struct weft_kube_lease, weft_kube_lease_free)

/* May a write start now? */
bool weft_kube_lease_fresh(const struct weft_kube_lease *lease);
bool weft_kube_lease_held(const struct weft_kube_lease *lease);
/* Gives the Lease up after the last answer of a write, so that the next leader starts at once.
 * on_done (may be NULL) comes when it is done or has failed; no other callback comes any more. */
void weft_kube_lease_release(struct weft_kube_lease *lease, void (*on_done)(void *data));

#endif
