/* SPDX-License-Identifier: Apache-2.0 */
/* What the vendor thread and the loop thread share. */
#ifndef WEFT_DEVICEPLUGIN_VENDOR_INTERNAL_H
#define WEFT_DEVICEPLUGIN_VENDOR_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "deviceplugin/health.h"
#include "pkg/loop/loop.h"
#include "pkg/machine/backend.h"
#include "pkg/machine/discover.h"

/* What the thread has to say, in the order in which it came. */
enum weft_vendor_news {
    WEFT_NEWS_LOOK,  /* a whole look at the machine */
    WEFT_NEWS_EVENT, /* of a device, or of all: a fault, or worth a notice */
    WEFT_NEWS_GONE,  /* the driver, or its library */
};

struct weft_vendor_note {
    enum weft_vendor_news news;
    struct weft_machine *machine;      /* of a look; owned; NULL: as at the look before */
    struct weft_backend_event trouble; /* of the others: device and reason */
};

enum { WEFT_VENDOR_NOTES_MAX = 32 }; /* the loop takes them all at once, within milliseconds */

/* Counted: the loop's side holds one reference, the thread the other, as the thread may outlive the
 * loop inside a vendor call. */
struct weft_vendor_shared {
    pthread_mutex_t lock;
    pthread_cond_t wake; /* the thread's: stop or rescan */
    pthread_cond_t over; /* the loop's: the thread has ended */
    unsigned references;
    bool stop;
    bool rescan, reopen; /* look at once; after having opened the library anew */
    int64_t pace_ns;     /* how soon to look again; 0: all is well */
    int64_t quick_ns;    /* how soon to look after an event */
    struct weft_health_settings health;
    struct weft_loop *loop; /* NULL once the loop's side is gone */
    struct weft_post post;  /* there are notes */
    size_t note_count;
    struct weft_vendor_note notes[WEFT_VENDOR_NOTES_MAX];
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

#endif
