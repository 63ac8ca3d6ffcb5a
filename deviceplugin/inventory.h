/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin has to give: one machine as it was read, with what is derived from it, never
 * changed after it was made. A changed machine is a new inventory. The allocator's tables take
 * tens of milliseconds for 16 devices and are made by a thread of their own, so that neither
 * registration nor a request ever waits for them. */
#ifndef WEFT_DEVICEPLUGIN_INVENTORY_H
#define WEFT_DEVICEPLUGIN_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_allocator;
struct weft_inventory;
struct weft_loop;
struct weft_machine;

/* Takes the machine over on success. -ENOMEM, -EINVAL (two devices of one id). */
int weft_inventory_new(struct weft_machine *machine, struct weft_inventory **ret_inventory,
                       struct weft_error *err) __attribute__((warn_unused_result));
/* Waits for a build that is under way. NULL is fine. */
void weft_inventory_free(struct weft_inventory *inventory);
WEFT_DEFINE_AUTO(struct weft_inventory, weft_inventory_free)

const struct weft_machine *weft_inventory_machine(const struct weft_inventory *inventory);
/* Device number of an id, SIZE_MAX if there is none. */
size_t weft_inventory_find(const struct weft_inventory *inventory, const char *id);

/* Starts the building of the allocator; built(data) runs on the loop once it is there, or cannot
 * be had (weft_inventory_allocator then stays NULL). -EAGAIN without a thread. */
int weft_inventory_build(struct weft_inventory *inventory, struct weft_loop *loop,
                         void (*built)(void *data), void *data, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Is there an answer yet whether there is an allocator? */
bool weft_inventory_settled(const struct weft_inventory *inventory);
const struct weft_allocator *weft_inventory_allocator(const struct weft_inventory *inventory);

#endif
