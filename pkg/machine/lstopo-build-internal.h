/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two halves that make a machine of an lstopo file: read-lstopo.c (devices, NICs,
 * places) and read-lstopo-links.c (bandwidths). */
#ifndef WEFT_MACHINE_LSTOPO_BUILD_INTERNAL_H
#define WEFT_MACHINE_LSTOPO_BUILD_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/machine/lstopo-internal.h"
#include "pkg/machine/machine.h"

/* What the OS devices of one PCI function say; indices of OS devices, WEFT_PCI_NONE: none. */
struct weft_lstopo_face {
    size_t vendor;  /* the first of NVML or RSMI */
    size_t runtime; /* the first of CUDA or oneAPI Level Zero */
    size_t net, rdma;
    size_t rsmi_count;
    bool opencl;
    const char *model;
};

struct weft_lstopo_device {
    size_t node;   /* its PCI function */
    size_t osdev;  /* that numbers it, WEFT_PCI_NONE */
    int partition; /* -1 for a whole GPU */
};

struct weft_lstopo_build {
    const struct weft_lstopo *l;
    struct weft_machine *machine;
    struct weft_lstopo_face *faces; /* by tree node */
    struct weft_lstopo_device *devices;
    size_t device_count;
    size_t *nics; /* tree nodes */
    size_t nic_count;
    bool any_net; /* the file shows network devices */
};

/* Sets B and T of all pairs; warns where the file says nothing of links. */
int weft_lstopo_set_links(const struct weft_lstopo_build *build, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
