/* SPDX-License-Identifier: Apache-2.0 */
/* Being registered at the kubelet, and staying it. Level-triggered: whatever happened (an inotify
 * event, a stream that ended, a slow look around, a timer), the same function compares what is
 * there with what should be and takes the next step:
 *
 *   serve on a new socket → see that it accepts → Register → wait for ListAndWatch
 *
 * A kubelet that restarts makes kubelet.sock anew and removes ours; a wiped folder removes both; a
 * stream that ends means the kubelet has forgotten us, for it never reconnects by itself. In each
 * case the plugin starts again with a new socket name: gRPC removes a closed server's socket by
 * name, and the kubelet remembers names. A kubelet.sock that stays the same while our stream ends
 * twice in a minute means that another plugin registers the same resource: then we step back, up
 * to five minutes, and say so. Loop thread. */
#ifndef WEFT_DEVICEPLUGIN_LINK_H
#define WEFT_DEVICEPLUGIN_LINK_H

#include <stdbool.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_link;
struct weft_loop;
struct weft_rpc;
struct weft_service;
struct weft_stats;

struct weft_link_options {
    struct weft_loop *loop;
    struct weft_rpc *rpc;
    struct weft_service *service;
    const char *folder;             /* the kubelet's plugin folder, borrowed */
    const char *resource;           /* borrowed */
    struct weft_stats *stats;       /* counted into; borrowed */
    void (*registered)(void *data); /* after each successful Register; may be NULL */
    void *data;
};

/* Starts at once. -ENOMEM. */
int weft_link_new(const struct weft_link_options *options, struct weft_link **ret_link,
                  struct weft_error *err) __attribute__((warn_unused_result));
/* Stops; the socket is closed by the service. NULL is fine. */
void weft_link_free(struct weft_link *link);
WEFT_DEFINE_AUTO(struct weft_link, weft_link_free)

/* Does the kubelet know us, as far as we know? */
bool weft_link_registered(const struct weft_link *link);

/* The service's streams changed. */
void weft_link_streams_changed(struct weft_link *link);

#endif
