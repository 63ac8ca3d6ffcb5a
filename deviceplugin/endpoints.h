/* SPDX-License-Identifier: Apache-2.0 */
/* All resources of the node at work: each has its own socket, registration and generation counter
 * (link.h), its own device list (service.h), and a part of the machine (pools.h). Level-triggered:
 * given a machine, the resources become what pools.h says; one that has no device any more stays
 * registered with none, so that the kubelet sees its capacity go at once. Loop thread. */
#ifndef WEFT_DEVICEPLUGIN_ENDPOINTS_H
#define WEFT_DEVICEPLUGIN_ENDPOINTS_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/allocator/allocator.h"
#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_endpoints;
struct weft_extras;
struct weft_link;
struct weft_loop;
struct weft_machine;
struct weft_pool_settings;
struct weft_respond_settings;
struct weft_rpc;
struct weft_service;
struct weft_stats;

/* All borrowed; must live as long. */
struct weft_endpoints_options {
    struct weft_loop *loop;
    struct weft_rpc *rpc;
    const char *folder;   /* the kubelet's plugin folder */
    const char *registry; /* that of its plugin watcher; NULL: Register instead of being found */
    const struct weft_pool_settings *pools;
    enum weft_policy policy;
    /* Registers the resource of whole devices also while there is none: it was named, or the
     * machine is a recorded one. Else a node without devices keeps quiet. */
    bool always;
    /* What containers get (offer.h); both may change before each weft_endpoints_use. */
    const struct weft_respond_settings *respond; /* NULL: a variable and device nodes */
    const struct weft_extras *extras;            /* NULL: none */
    struct weft_stats *stats;
};

int weft_endpoints_new(const struct weft_endpoints_options *options,
                       struct weft_endpoints **ret_endpoints, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Ends all sockets, but keeps the claims on the resources until weft_endpoints_free: the next
 * instance must not register before gRPC has let go of our streams. NULL is fine. */
void weft_endpoints_stop(struct weft_endpoints *endpoints);
void weft_endpoints_free(struct weft_endpoints *endpoints);
WEFT_DEFINE_AUTO(struct weft_endpoints, weft_endpoints_free)

/* The settings that options point to have new content, and these are new too: makes the resources
 * what they say. Errors as of weft_endpoints_use, with the machine in use. */
int weft_endpoints_configure(struct weft_endpoints *endpoints, enum weft_policy policy, bool always,
                             struct weft_error *err) __attribute__((warn_unused_result));
/* Takes the machine over in any case. On failure some resources may have the new machine and
 * others the one of before; those that failed keep it. Where none has the new one, the devices of
 * before get the health that they have now. -ENOMEM (tried again by itself, a second
 * later), -EINVAL, -EFBIG. */
int weft_endpoints_use(struct weft_endpoints *endpoints, struct weft_machine *machine,
                       struct weft_error *err) __attribute__((warn_unused_result));
/* Why devices of the machine in use are not advertised, a sentence; "" if all are. */
const char *weft_endpoints_left_out(const struct weft_endpoints *endpoints);
/* The machine in use, borrowed; NULL before the first. */
const struct weft_machine *weft_endpoints_machine(const struct weft_endpoints *endpoints);

/* One resource, for pages. link is NULL while it is not to be registered yet. */
struct weft_endpoint_view {
    const char *resource;
    const struct weft_service *service;
    const struct weft_link *link;
};
size_t weft_endpoints_count(const struct weft_endpoints *endpoints);
struct weft_endpoint_view weft_endpoints_at(const struct weft_endpoints *endpoints, size_t index);

#endif
