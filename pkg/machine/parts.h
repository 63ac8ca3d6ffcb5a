/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a machine (machine.h, which includes this): addresses, links, NICs, and what is known of
 * GPUs that are split into partitions. */
#ifndef WEFT_MACHINE_PARTS_H
#define WEFT_MACHINE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

struct weft_bdf {
    bool known;
    uint32_t domain;
    uint8_t bus, device, function;
};

/* A device's own PCIe link: generation and width, now and at most; 0 unknown. A link at rest may
 * show a lower generation than it has under load. */
struct weft_pcie {
    uint8_t generation, width;
    uint8_t max_generation, max_width;
};

/* What a partition has of its GPU, as NVIDIA tells it of MIG instances; gpu 0: unknown. */
struct weft_slices {
    uint16_t gpu, compute; /* slices of the GPU instance and of the compute instance */
    uint16_t multiprocessors, copy, decoders, encoders, jpegs, ofas; /* engines, shared ones too */
};

/* A GPU that is split: its partitions are the devices, it is none itself. */
struct weft_parent {
    int index; /* the vendor's, as devices name it in .parent */
    char model[64];
    char capability[16];
    uint64_t memory_mib; /* 0 unknown */
    uint32_t pci_class;  /* 0 unknown */
};

enum weft_nic_layer {
    WEFT_NIC_LAYER_UNKNOWN,
    WEFT_NIC_LAYER_INFINIBAND,
    WEFT_NIC_LAYER_ETHERNET,
    WEFT_NIC_LAYER_COUNT
};

struct weft_nic {
    char name[64];   /* "mlx5_0", "NIC0": the RDMA device's where there is one */
    char netdev[32]; /* "ens3f0np0"; "" if none or unknown */
    struct weft_bdf bdf;
    int numa_node; /* -1 unknown */
    enum weft_nic_layer layer;
    uint64_t rate_mbps; /* megabits a second of its port, 0 unknown */
    int up;             /* the port: 1 active, 0 not, -1 unknown */
    uint64_t guid;      /* node GUID of the RDMA device, 0 unknown */
};

#endif
