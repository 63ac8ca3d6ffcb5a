/* SPDX-License-Identifier: Apache-2.0 */
/* What the vendor thread and the loop thread share. */
#ifndef WEFT_DEVICEPLUGIN_VENDOR_INTERNAL_H
#define WEFT_DEVICEPLUGIN_VENDOR_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "pkg/loop/loop.h"
#include "pkg/machine/backend.h"
#include "pkg/machine/discover.h"

/* Counted: the loop's side holds one reference, the thread the other, as the thread may outlive the
 * loop inside a vendor call. */
struct weft_vendor_shared {
    pthread_mutex_t lock;
    pthread_cond_t wake; /* the thread's: stop or rescan */
    pthread_cond_t over; /* the loop's: the thread has ended */
    unsigned references;
    bool stop, rescan;
    struct weft_loop *loop;      /* NULL once the loop's side is gone */
    struct weft_post post;       /* latest is new */
    struct weft_machine *latest; /* for the loop's side to take */
    /* constant while the thread runs */
    const struct weft_backend *const *backends;
    struct weft_backend_options options;
    char *strings[4]; /* that options point to, owned */
    struct weft_backend_watch watch;
    int64_t rescan_ns;
};

/* The thread's function; data is the shared part, of which it drops its reference at the end. */
void *weft_vendor_thread(void *data);
void weft_vendor_unref(struct weft_vendor_shared *shared);
/* A copy of the machine with all its devices unhealthy for that reason. -ENOMEM. */
int weft_vendor_all_unhealthy(const struct weft_machine *machine, const char *reason,
                              struct weft_machine **ret_machine)
    __attribute__((warn_unused_result));

#endif
