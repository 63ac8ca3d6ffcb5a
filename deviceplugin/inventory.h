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

/* Starts the building of the allocator's tables. -EAGAIN without a thread; requests are then
 * answered without tables for ever. */
int weft_inventory_build(struct weft_inventory *inventory, struct weft_loop *loop,
                         struct weft_error *err) __attribute__((warn_unused_result));
/* Answers at any time; the best there is now, for one pick (borrowed). Loop thread. */
const struct weft_allocator *weft_inventory_allocator(const struct weft_inventory *inventory);

#endif
