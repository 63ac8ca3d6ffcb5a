/* SPDX-License-Identifier: Apache-2.0 */
/* The five DevicePlugin methods, and where it is to be found by the kubelet's plugin watcher that
 * one's two, on one socket at a time. Every answer comes from the current
 * inventory in memory; nothing here reads a file, calls a vendor library or waits. A
 * GetPreferredAllocation that comes before the allocator is built is answered when it is. Loop
 * thread. */
#ifndef WEFT_DEVICEPLUGIN_SERVICE_H
#define WEFT_DEVICEPLUGIN_SERVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/allocator/allocator.h"
#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_inventory;
struct weft_loop;
struct weft_rpc;
struct weft_service;
struct weft_stats;

struct weft_service_options {
    struct weft_loop *loop;
    struct weft_rpc *rpc;
    enum weft_policy policy;
    enum weft_sharing sharing;
    struct weft_stats *stats; /* counted into; borrowed */
    /* A ListAndWatch stream of the current socket opened or ended by the peer. */
    void (*streams_changed)(void *data);
    /* Serves the plugin watcher's Registration service too, for this resource (borrowed); NULL:
     * not. told hears how its registration went. */
    const char *watched_resource;
    void (*told)(void *data, bool registered, const char *error);
    void *data;
};

int weft_service_new(const struct weft_service_options *options, struct weft_service **ret_service,
                     struct weft_error *err) __attribute__((warn_unused_result));
void weft_service_free(struct weft_service *service);
WEFT_DEFINE_AUTO(struct weft_service, weft_service_free)

/* From the next request on. */
void weft_service_set_policy(struct weft_service *service, enum weft_policy policy,
                             enum weft_sharing sharing);
/* Takes the inventory over (also on failure) and sends its list to all streams, if it differs from
 * the last. -ENOMEM, -EFBIG: the old inventory stays. */
int weft_service_set_inventory(struct weft_service *service, struct weft_inventory *inventory,
                               struct weft_error *err) __attribute__((warn_unused_result));
const struct weft_inventory *weft_service_inventory(const struct weft_service *service);

/* Serves on a new socket, after closing the old one. Errors of weft_rpc_server_new. */
int weft_service_serve(struct weft_service *service, const char *path, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Ends all streams and calls, and the socket. */
void weft_service_close(struct weft_service *service);
/* ListAndWatch streams that are open on the current socket. */
size_t weft_service_streams(const struct weft_service *service);

#endif
