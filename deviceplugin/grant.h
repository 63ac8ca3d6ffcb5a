/* SPDX-License-Identifier: Apache-2.0 */
/* The two answers about devices: which a request should prefer, and what a container gets for the
 * ones it was given. Pure: an inventory and a request in, an answer out. */
#ifndef WEFT_DEVICEPLUGIN_GRANT_H
#define WEFT_DEVICEPLUGIN_GRANT_H

#include <stdbool.h>

#include "pkg/allocator/allocator.h"
#include "pkg/base/error.h"
#include "pkg/kubelet/kubelet.h"

struct weft_buf;
struct weft_inventory;
struct weft_machine;
struct weft_pb_arena;
struct weft_preference;

/* What preferred allocations are answered from. All borrowed. */
struct weft_grant_preferring {
    const struct weft_inventory *inventory;
    enum weft_policy policy;
    enum weft_sharing sharing;
    struct weft_pb_arena *arena; /* working memory */
    /* Called for each container with what is answered, borrowed for the call; may be NULL. */
    void (*told)(void *data, const struct weft_preference *preference);
    void *data;
};

/* Appends the answer to a GetPreferredAllocation request. It never fails: what cannot be answered
 * (bad bytes, unknown ids, no memory) gets an empty list, and the kubelet then chooses itself. A
 * pod whose question fails is lost. */
void weft_grant_prefer(const struct weft_grant_preferring *from, const void *request, size_t len,
                       struct weft_buf *buf);

/* Appends the answer to an Allocate request, what the inventory offers (offer.h), never for another
 * device than those asked for. -EINVAL for an unknown or unhealthy id, a bad or empty request;
 * -ENOMEM, -EFBIG. On failure buf is not to be sent. */
int weft_grant_allocate(const struct weft_inventory *inventory, struct weft_pb_arena *arena,
                        const void *request, size_t len, struct weft_buf *buf,
                        struct weft_error *err) __attribute__((warn_unused_result));

/* Would a container that is granted a device of it be let in to that device? False for a machine
 * without device nodes whose ids are no UUIDs either, by which a vendor's runtime finds devices:
 * a bare `nvidia-smi topo -m` matrix. True without devices. */
bool weft_grant_possible(const struct weft_machine *machine);

/* Appends the device list for ListAndWatch. -ENOMEM or buf->status. */
int weft_grant_list(const struct weft_inventory *inventory, struct weft_pb_arena *arena,
                    struct weft_buf *buf) __attribute__((warn_unused_result));

#endif
