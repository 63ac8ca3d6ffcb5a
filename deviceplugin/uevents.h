/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's word that a device came, went or changed: its uevents (netlink(7),
 * NETLINK_KOBJECT_UEVENT; Documentation/core-api/kobject.rst). They tell of what no driver's
 * library tells, such as the loss of an AMD GPU, a driver that is bound, or one that is loaded
 * late. The kernel sends them to every network namespace of the first user namespace, so that a pod
 * hears them too. Loop thread. */
#ifndef WEFT_DEVICEPLUGIN_UEVENTS_H
#define WEFT_DEVICEPLUGIN_UEVENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_loop;
struct weft_uevents;

/* happened(data) runs a tenth of a second after an event of something that a machine is made of,
 * once for all that came by then, and at most once a second. It is a hint: look at what is there.
 * It must not free the watch. -errno: none are to be had here; -ENOMEM. */
int weft_uevents_new(struct weft_loop *loop, void (*happened)(void *data), void *data,
                     struct weft_uevents **ret_uevents, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_uevents_free(struct weft_uevents *uevents);
WEFT_DEFINE_AUTO(struct weft_uevents, weft_uevents_free)

/* Is this message, as the kernel sends it ("ACTION@DEVPATH" and a NUL, then "KEY=VALUE" and a NUL
 * each), of a PCI function, a GPU, an RDMA device or a driver's module? */
bool weft_uevent_matters(const char *bytes, size_t len);

#endif
