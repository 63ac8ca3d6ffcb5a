/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out what this machine is, by asking the vendors' backends in turn (backend.h). */
#ifndef WEFT_MACHINE_DISCOVER_H
#define WEFT_MACHINE_DISCOVER_H

#include "pkg/base/error.h"
#include "pkg/machine/backend.h"

/* A backend that was opened; backend is NULL if none is. */
struct weft_backend_handle {
    const struct weft_backend *backend;
    void *state;
};

/* The first backend of the list that finds a device, left open, and its machine, which the caller
 * owns. Where none does: no backend, and a machine of 0 devices whose warnings say for each vendor
 * why. backends is weft_backends, or a test's own list, which ends with NULL. -ENOMEM; -EINVAL for
 * a vendor that no backend is for. Vendor thread. */
int weft_backend_connect(const struct weft_backend *const *backends,
                         const struct weft_backend_options *options,
                         struct weft_backend_handle *ret_handle, struct weft_machine **ret_machine,
                         struct weft_error *err) __attribute__((warn_unused_result));
/* Closes it; a second time does nothing. Vendor thread. */
void weft_backend_disconnect(struct weft_backend_handle *handle);
/* Would any backend be worth opening? As cheap as probe. */
bool weft_backend_probe(const struct weft_backend *const *backends,
                        const struct weft_backend_options *options);

/* One look: the machine as it is now, with 0 devices and warnings where there is none. The caller
 * owns it. For a CLI; calls into vendor code on this thread and may take as long as that does. */
int weft_machine_discover(const struct weft_backend_options *options,
                          struct weft_machine **ret_machine, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
