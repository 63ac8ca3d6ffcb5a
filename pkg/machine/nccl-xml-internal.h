/* SPDX-License-Identifier: Apache-2.0 */
/* An NCCL (or RCCL) topology file as lists of what it says; what that means for a machine is
 * read-nccl-xml.c's business. The format is that of NCCL's topo.cc/xml.cc: <system> holds <cpu>s,
 * they hold a tree of <pci>, a <pci> may hold a <gpu> (with its <nvlink>s or <xgmi>s) or a <nic>
 * (with its <net>s). Every <pci> between a function and its <cpu> is one PCIe switch. */
#ifndef WEFT_MACHINE_NCCL_XML_INTERNAL_H
#define WEFT_MACHINE_NCCL_XML_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/machine/machine.h"
#include "pkg/machine/pci-tree-internal.h"

enum {
    WEFT_NCCL_GPUS_MAX = WEFT_MACHINE_DEVICES_MAX,
    WEFT_NCCL_LINKS_MAX = 1 << 16,
    WEFT_NCCL_CPUS_MAX = 1024,
    WEFT_NCCL_SWITCH_CLASS = 0x0680, /* "other bridge": what an NVSwitch is on PCI */
};

struct weft_nccl_cpu {
    size_t node;
    char label[64]; /* the NUMA id, or the CPU mask where that is missing; "" unknown */
    bool numa;      /* label is a NUMA id */
};

/* A <pci>; tree index is its own index in pcis' node. */
struct weft_nccl_pci {
    size_t node;
    size_t cpu; /* index, WEFT_PCI_NONE outside any */
    struct weft_pcie link;
    bool leaf;  /* nothing in it but perhaps a <gpu> or a <nic> */
    bool whole; /* its end was read */
    bool has_gpu;
    size_t nic; /* index of its first <net>, WEFT_PCI_NONE: none */
};

struct weft_nccl_gpu {
    size_t pci;
    int dev;
    uint32_t sm;
    char gcn[16]; /* "" on NVIDIA */
    bool whole;
    unsigned line;
};

struct weft_nccl_link {
    size_t gpu;
    struct weft_bdf target; /* unknown for a switch that has no address */
    char target_text[32];
    uint32_t class; /* base and sub class of the target, 0 unknown */
    uint32_t count;
    unsigned line;
};

struct weft_nccl_net {
    char name[64];
    uint64_t speed; /* Mbit/s */
    uint64_t guid;
};

struct weft_nccl {
    const char *file;
    struct weft_pci_tree tree;
    struct weft_nccl_cpu *cpus;
    struct weft_nccl_pci *pcis;
    struct weft_nccl_gpu *gpus;
    struct weft_nccl_link *links;
    struct weft_nccl_net *nets;
    size_t cpu_count, pci_count, gpu_count, link_count, net_count;
    size_t cpu_cap, pci_cap, gpu_cap, link_cap, net_cap;
    bool xgmi;          /* a link of AMD's kind was seen */
    bool cut;           /* the file ends too early */
    unsigned last_line; /* of what was read */
    char host_hash[32]; /* of the first <cpu> that has one */
    unsigned host_hash_line;
};

/* Errors: -EINVAL with "file:line: reason", -EFBIG, -ENOMEM. */
int weft_nccl_parse(const char *text, size_t len, const char *file, struct weft_nccl *ret_nccl,
                    struct weft_error *err) __attribute__((warn_unused_result));
void weft_nccl_done(struct weft_nccl *nccl);
WEFT_DEFINE_AUTO_VALUE(struct weft_nccl, weft_nccl_done)

#endif
