/* SPDX-License-Identifier: Apache-2.0 */
/* What backends without a vendor library share: the host below the options' root, and that a
 * device which is gone stays, unhealthy. Vendor thread. */
#ifndef WEFT_MACHINE_DISCOVER_SYSFS_H
#define WEFT_MACHINE_DISCOVER_SYSFS_H

#include "pkg/base/error.h"
#include "pkg/machine/backend.h"

struct weft_host;
struct weft_map;

extern const struct weft_backend weft_backend_amd;
extern const struct weft_backend weft_backend_intel;

/* The state of such a backend. */
struct weft_sysfs {
    const struct weft_backend_options *options;
    struct weft_host *host;
    struct weft_machine *last; /* what was told last, NULL at first */
    struct weft_map *errors;   /* by PCI address: how many each had; NULL at first */
};

/* For weft_backend.open and .close. */
int weft_sysfs_open(const struct weft_backend_options *options, void **ret_state,
                    struct weft_error *err) __attribute__((warn_unused_result));
void weft_sysfs_close(void *state);
/* Adds to *machine what *last had and it lacks, and keeps a copy in *last for the next time.
 * *machine may be another one then. On failure it is freed and NULL. 0 or -ENOMEM. */
int weft_sysfs_keep_lost(struct weft_machine **last, struct weft_machine **machine,
                         struct weft_error *err) __attribute__((warn_unused_result));
/* Devices whose PCI function is gone from a bus that is seen, or does not answer any more, are
 * unhealthy. */
void weft_sysfs_mark_dead(const struct weft_host *host, struct weft_machine *machine);
/* machine with the devices of last that are lost. Lost is a device whose PCI function has no device
 * in machine any more (whose id is gone, where there is no PCI address): partitions that were made
 * anew are not. Lost devices keep their wiring to those that were there with them; their indices
 * and parents go on after those of machine. Pure. */
int weft_machine_with_lost(const struct weft_machine *machine, const struct weft_machine *last,
                           struct weft_machine **ret_machine, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
