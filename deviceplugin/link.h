/* SPDX-License-Identifier: Apache-2.0 */
/* Being registered at the kubelet, and staying it. Level-triggered: whatever happened (an inotify
 * event, a stream that ended, a slow look around, a timer), the same function compares what is
 * there with what should be and takes the next step:
 *
 *   have the claim → serve on a new socket → see that it accepts → Register → wait for ListAndWatch
 *
 * or, where the kubelet's plugin watcher is to find us, serve in its folder → wait for the stream.
 *
 * A kubelet that restarts makes kubelet.sock anew and removes ours; a wiped folder removes both; a
 * stream that ends means the kubelet has forgotten us, for it never reconnects by itself. In each
 * case the plugin starts again with a new socket name: gRPC removes a closed server's socket by
 * name, and the kubelet remembers names.
 *
 * One process a node registers a resource (claim.h); a second one waits and takes over when the
 * first ends, so that a new version can be ready before the old one goes. Plugins that are not
 * weft's know nothing of that: one whose socket is there, or that shows by our stream ending twice
 * in a minute at a living kubelet, is named and kept away from (rivalry.h). Loop thread. */
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
    const char *folder;   /* the kubelet's plugin folder, borrowed */
    const char *registry; /* the folder of its plugin watcher, borrowed; NULL: Register instead */
    const char *resource; /* borrowed */
    struct weft_stats *stats;       /* counted into; borrowed */
    void (*registered)(void *data); /* after each successful Register; may be NULL */
    void *data;
};

/* Starts at once. -ENOMEM. */
int weft_link_new(const struct weft_link_options *options, struct weft_link **ret_link,
                  struct weft_error *err) __attribute__((warn_unused_result));
/* Closes the socket and does nothing more, but keeps the claim: until gRPC has let go of the
 * streams, whose end would close the next instance's too. Only weft_link_free may follow. */
void weft_link_stop(struct weft_link *link);
/* Stops, and gives the claim back. NULL is fine. */
void weft_link_free(struct weft_link *link);
WEFT_DEFINE_AUTO(struct weft_link, weft_link_free)

enum weft_link_role {
    WEFT_LINK_WAITING,    /* for the kubelet, for a retry, for a rival to go */
    WEFT_LINK_REGISTERED, /* the kubelet knows us, as far as we know */
    WEFT_LINK_STANDBY,    /* another process of ours registers the resource */
    WEFT_LINK_ROLE_COUNT
};
enum weft_link_role weft_link_role(const struct weft_link *link);
bool weft_link_registered(const struct weft_link *link);
/* The socket of another vendor's plugin that serves the resource; "unknown" for one that only its
 * doings show; "" for none. Borrowed. */
const char *weft_link_rival(const struct weft_link *link);

/* The service's streams changed. */
void weft_link_streams_changed(struct weft_link *link);
/* The plugin watcher told how it went. */
void weft_link_told(struct weft_link *link, bool registered, const char *error);

#endif
