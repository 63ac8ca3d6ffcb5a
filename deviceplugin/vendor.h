/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor thread: the only one that calls into a vendor's library. It finds the backend that
 * this node needs, asks it for the machine, waits for its events, and hands each machine that
 * differs over to the loop thread. Nobody ever waits for it: a vendor call that takes longer than
 * it may makes all devices unhealthy ("unresponsive") with the last good wiring kept, and they are
 * as before when the call is back. Where there is no driver, it looks again now and then. */
#ifndef WEFT_DEVICEPLUGIN_VENDOR_H
#define WEFT_DEVICEPLUGIN_VENDOR_H

#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/machine/backend.h"

struct weft_loop;
struct weft_machine;
struct weft_vendor;

struct weft_vendor_options {
    struct weft_loop *loop;
    const struct weft_backend *const *backends;                  /* weft_backends; static storage */
    const char *host_root, *driver_root, *only, *ignored_errors; /* NULL: none; copied */
    int64_t limit_ns;  /* a single vendor call may take that long */
    int64_t rescan_ns; /* how often to look again: for a driver, for what is unhealthy, and how long
                          one wait for events is */
    /* Loop thread: a machine that differs from the one before; the callee owns it. The first one
     * comes soon, with 0 devices and warnings where there is nothing. */
    void (*changed)(void *data, struct weft_machine *machine);
    void *data;
};

/* Starts the thread. -EAGAIN without one, -ENOMEM. Loop thread. */
int weft_vendor_new(const struct weft_vendor_options *options, struct weft_vendor **ret_vendor,
                    struct weft_error *err) __attribute__((warn_unused_result));
/* Asks the thread to end and waits a moment for it; a thread that is inside a vendor call is left
 * behind, with what it holds, and touches nothing of the caller's any more. NULL is fine. */
void weft_vendor_free(struct weft_vendor *vendor);
WEFT_DEFINE_AUTO(struct weft_vendor, weft_vendor_free)

/* Looks again as soon as the thread is free: at once, or when its wait for events is over. */
void weft_vendor_rescan(struct weft_vendor *vendor);

#endif
