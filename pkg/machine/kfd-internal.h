/* SPDX-License-Identifier: Apache-2.0 */
/* Between a KFD topology and a machine: the list of what becomes devices (kfd-gpus.c), and how
 * they are filled (kfd-machine.c). */
#ifndef WEFT_MACHINE_KFD_INTERNAL_H
#define WEFT_MACHINE_KFD_INTERNAL_H

#include "pkg/machine/host.h"
#include "pkg/machine/kfd.h"

enum { WEFT_PCI_VENDOR_AMD = 0x1002 };

struct weft_kfd_gpu {
    const struct weft_kfd_node *node; /* NULL: the driver has the function, KFD does not */
    struct weft_bdf bdf;
    bool partitionable; /* its node may be one of several of a GPU */
    bool is_partition;
    int parent;    /* which physical GPU, from 0 */
    int partition; /* inside it */
    int siblings;  /* partitions of that GPU */
    int card;      /* DRM minors, -1 unknown */
    int render;
    char platform[WEFT_DEVICE_ID_MAX]; /* "amdgpu_xcp_5"; "" none */
};

struct weft_kfd_gpus {
    size_t count, cap;
    struct weft_kfd_gpu *items;
};

/* 0, -EINVAL (two GPUs at one PCI address), -EFBIG, -ENOMEM. */
int weft_kfd_find_gpus(const struct weft_host *host, const struct weft_kfd *kfd, const char *name,
                       struct weft_kfd_gpus *ret_gpus, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_kfd_gpus_done(struct weft_kfd_gpus *gpus);
WEFT_DEFINE_AUTO_VALUE(struct weft_kfd_gpus, weft_kfd_gpus_done)
/* Sets B from the xGMI links, with warnings for what they lack. 0 or -ENOMEM. */
int weft_kfd_set_bandwidth(const struct weft_kfd *kfd, const struct weft_kfd_gpus *gpus,
                           struct weft_machine *machine) __attribute__((warn_unused_result));

#endif
