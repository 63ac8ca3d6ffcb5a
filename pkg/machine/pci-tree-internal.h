/* SPDX-License-Identifier: Apache-2.0 */
/* The PCI tree of a recorded machine, and the rule that makes T and N of it. Both XML formats
 * (NCCL's, lstopo's) come through here, so that a distance means the same in both:
 *   PSB  functions of one PCI device, or below the card's own switch
 *   PIX  both hang directly on the last switch that they share
 *   PXB  they share a switch, and there is a further one on the way down to one of them
 *   PHB  they share a host bridge only (lstopo; NCCL's files do not show host bridges)
 *   unknown, which machine-internal.h turns into NODE or SYS by the NUMA nodes, for all else.
 * A switch is one node in NCCL's files and two in lstopo's (its upstream and its downstream port):
 * ports says how many bridges below the shared one still are the shared switch. A bridge of the
 * GPU vendor's own right above the function is part of the card and no switch. */
#ifndef WEFT_MACHINE_PCI_TREE_INTERNAL_H
#define WEFT_MACHINE_PCI_TREE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/mem.h"
#include "pkg/machine/machine.h"

enum {
    WEFT_PCI_NODES_MAX = 1 << 16, /* a host with all its virtual functions has some thousands */
};
#define WEFT_PCI_NONE SIZE_MAX

enum weft_pci_kind {
    WEFT_PCI_OUTER,    /* not PCI: a processor, a NUMA node, the machine */
    WEFT_PCI_HOST,     /* a host bridge */
    WEFT_PCI_BRIDGE,   /* a switch, a port of one, or a root port */
    WEFT_PCI_FUNCTION, /* an end point */
    WEFT_PCI_KIND_COUNT
};

struct weft_pci_node {
    size_t parent; /* WEFT_PCI_NONE for a root */
    size_t depth;
    enum weft_pci_kind kind;
    struct weft_bdf bdf;
    uint32_t vendor, device; /* PCI ids, 0 unknown */
    uint32_t class;          /* base and sub class: 0x0302; 0 unknown */
    bool named_virtual;      /* its name says that it is a virtual function */
    unsigned line;
};

struct weft_pci_tree {
    struct weft_pci_node *nodes;
    size_t count, cap;
    size_t ports; /* see above: 0 for NCCL's files, 1 for lstopo's */
};

/* Adds a node below parent; *ret_node is its index. 0, -EFBIG or -ENOMEM. */
int weft_pci_add(struct weft_pci_tree *tree, size_t parent, enum weft_pci_kind kind, unsigned line,
                 size_t *ret_node) __attribute__((warn_unused_result));
void weft_pci_done(struct weft_pci_tree *tree);

/* enum weft_distance, or WEFT_DISTANCE_UNKNOWN. */
int weft_pci_distance(const struct weft_pci_tree *tree, size_t a, size_t b);

/* Is the function a virtual one (by its device id or name) whose physical one is in the tree beside
 * it? In a virtual machine the virtual function is all there is, and then it is the NIC. */
bool weft_pci_is_virtual_beside_physical(const struct weft_pci_tree *tree, size_t function);
/* By the PCI class: a display controller or accelerator; a network controller. */
bool weft_pci_is_gpu_class(uint32_t class);
bool weft_pci_is_nic_class(uint32_t class);
/* InfiniBand or Ethernet by the class. */
enum weft_nic_layer weft_pci_layer(uint32_t class);
/* The generation that a transfer rate in GT/s stands for ("16.0 GT/s PCIe"), 0 for no known one. */
uint8_t weft_pci_generation(const char *speed);

#endif
