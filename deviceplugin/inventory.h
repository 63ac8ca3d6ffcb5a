/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin has to give: one machine as it was read, with what is derived from it, never
 * changed after it was made. A changed machine is a new inventory. The allocator's tables take
 * milliseconds for 16 devices and are made by a thread of their own, so that neither registration
 * nor a request ever waits for them: what comes earlier is answered without tables, the same way.
 */
#ifndef WEFT_DEVICEPLUGIN_INVENTORY_H
#define WEFT_DEVICEPLUGIN_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/machine/machine.h"

struct weft_allocator;
struct weft_extras;
struct weft_inventory;
struct weft_loop;
struct weft_offer;
struct weft_respond_settings;

struct weft_inventory_options {
    uint32_t replicas; /* ids of each device; 0, 1: its own id alone, else "<id>::0", "<id>::1"… as
                          NVIDIA's plugin writes them */
    bool fail_above_one; /* a container may be given one id only */
    /* What containers get (offer.h); read during weft_inventory_new only. */
    const struct weft_respond_settings *respond; /* NULL: a variable and device nodes */
    const struct weft_extras *extras;            /* NULL: none */
};

/* Takes the machine over on success. options NULL: no replicas. -ENOMEM; -EINVAL for two devices
 * of one id, an id that leaves no room for the replica's number, or one that CDI cannot name. */
int weft_inventory_new(struct weft_machine *machine, const struct weft_inventory_options *options,
                       struct weft_inventory **ret_inventory, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Waits for a build that is under way. NULL is fine. */
void weft_inventory_free(struct weft_inventory *inventory);
WEFT_DEFINE_AUTO(struct weft_inventory, weft_inventory_free)

const struct weft_machine *weft_inventory_machine(const struct weft_inventory *inventory);
/* Device number of an id, SIZE_MAX if there is none; *ret_replica (may be NULL) is the replica's.
 */
size_t weft_inventory_find(const struct weft_inventory *inventory, const char *id,
                           uint32_t *ret_replica);
/* Ids of each device, at least 1. */
uint32_t weft_inventory_replicas(const struct weft_inventory *inventory);
bool weft_inventory_one_only(const struct weft_inventory *inventory);
/* What its devices give to containers, borrowed. */
const struct weft_offer *weft_inventory_offer(const struct weft_inventory *inventory);
/* room for a device's id, "::" and any number */
enum { WEFT_INVENTORY_ID_MAX = WEFT_DEVICE_ID_MAX + 16 };
/* The id of a replica; id has WEFT_INVENTORY_ID_MAX bytes and is returned. */
const char *weft_inventory_id(const struct weft_inventory *inventory, size_t device,
                              uint32_t replica, char *id);

/* Starts the building of the allocator's tables. -EAGAIN without a thread; requests are then
 * answered without tables for ever. */
int weft_inventory_build(struct weft_inventory *inventory, struct weft_loop *loop,
                         struct weft_error *err) __attribute__((warn_unused_result));
/* Answers at any time; the best there is now, for one pick (borrowed). Loop thread. */
const struct weft_allocator *weft_inventory_allocator(const struct weft_inventory *inventory);

#endif
