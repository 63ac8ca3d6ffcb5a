/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor thread: the only one that calls into a vendor's library. It finds the backend that
 * this node needs, asks it for the machine, waits for its events, and tells the loop thread, which
 * makes of it what the kubelet is to see (health.h). Nobody ever waits for the thread: a vendor
 * call that takes longer than it may makes all devices unhealthy ("unresponsive") with the last
 * good wiring kept, until the call is back and looks find them in order. Where there is no driver,
 * it looks again now and then. */
#ifndef WEFT_DEVICEPLUGIN_VENDOR_H
#define WEFT_DEVICEPLUGIN_VENDOR_H

#include <stdbool.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/machine/backend.h"

struct weft_health_move;
struct weft_health_settings;
struct weft_loop;
struct weft_machine;
struct weft_vendor;

struct weft_vendor_options {
    struct weft_loop *loop;
    const struct weft_backend *const *backends;            /* weft_backends; static storage */
    const char *host_root, *driver_root, *only, *dev_root; /* NULL: none; copied */
    const struct weft_health_settings *health;             /* copied */
    int64_t limit_ns;  /* a single vendor call may take that long */
    int64_t rescan_ns; /* how often to look again: for a driver, for what is unhealthy, and how long
                          one wait for events is */
    /* Loop thread: a machine that differs from the one before; the callee owns it. The first one
     * comes soon, with 0 devices and warnings where there is nothing. */
    void (*changed)(void *data, struct weft_machine *machine);
    /* Loop thread: a device changed its state of health; may be NULL. */
    void (*moved)(void *data, const struct weft_health_move *move);
    /* Loop thread: the driver told of something, which is a fault (UNHEALTHY) or is not (NOTICE);
     * may be NULL. */
    void (*told)(void *data, const struct weft_backend_event *event);
    void *data;
};

/* Starts the thread. -EAGAIN without one, -ENOMEM. Loop thread. */
int weft_vendor_new(const struct weft_vendor_options *options, struct weft_vendor **ret_vendor,
                    struct weft_error *err) __attribute__((warn_unused_result));
/* Asks the thread to end and waits a moment for it; a thread that is inside a vendor call is left
 * behind, with what it holds, and touches nothing of the caller's any more. True if one was left:
 * then the vendor's library is in use for as long as the process lives. NULL is fine. */
bool weft_vendor_end(struct weft_vendor *vendor);
void weft_vendor_free(struct weft_vendor *vendor);
WEFT_DEFINE_AUTO(struct weft_vendor, weft_vendor_free)

/* Looks again as soon as the thread is free: at once, or when its wait for events is over. reopen:
 * by a library that is loaded anew if some device is not healthy, which forgets faults of which the
 * driver cannot say that they are over. */
void weft_vendor_rescan(struct weft_vendor *vendor, bool reopen);
/* Other settings from now on (copied); a state that a device is in stays until its next sign. */
void weft_vendor_configure(struct weft_vendor *vendor, const struct weft_health_settings *health);
/* What the calls into the vendor's library took; lives as long as the vendor. Any thread. */
const struct weft_backend_watch *weft_vendor_watch(const struct weft_vendor *vendor);

#endif
