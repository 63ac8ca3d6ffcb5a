/* SPDX-License-Identifier: Apache-2.0 */
/* The topology that Linux's amdkfd driver shows in /sys/class/kfd/kfd/topology (Linux:
 * drivers/gpu/drm/amd/amdkfd/kfd_topology.c): one folder a node, CPU or GPU or GPU partition, with
 * its properties and its links. Read from a host, live or recorded; what it means for B, T and ids
 * is kfd-machine.c's business. A value; any thread; blocking I/O where the host is a folder. */
#ifndef WEFT_MACHINE_KFD_H
#define WEFT_MACHINE_KFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_bdf;
struct weft_host;
struct weft_machine;

#define WEFT_KFD_ROOT "/sys/class/kfd/kfd/topology"

enum {
    WEFT_KFD_NODES_MAX = 2048, /* GPU partitions and CPUs */
    WEFT_KFD_LINKS_MAX = 1 << 18,
    WEFT_KFD_LINK_PCIE = 2, /* CRAT's io link types: kfd_crat.h */
    WEFT_KFD_LINK_XGMI = 11,
    WEFT_KFD_XGMI_HOP = 15,           /* weight of one xGMI hop: KFD_CRAT_XGMI_WEIGHT */
    WEFT_KFD_GFX_PARTITIONED = 90400, /* the first gfx_target_version that can be partitioned */
};

struct weft_kfd_link {
    uint32_t type, weight;
    uint32_t from, to;       /* node numbers */
    uint64_t bandwidth_mbps; /* max_bandwidth: MB/s one way; 0: the driver does not say */
};

struct weft_kfd_node {
    uint32_t number;
    bool permitted; /* false: the device cgroup hides what it is, it is a GPU all the same */
    bool partial;   /* the recording lacks some of its links */
    char name[64];
    uint64_t cpu_cores, simd_count, gfx_target_version, location_id, domain, render_minor;
    uint64_t hive_id, unique_id, num_xcc, vendor_id, device_id;
    uint64_t link_count; /* that it should have, both kinds together */
    uint64_t memory_bytes;
};

struct weft_kfd {
    size_t node_count, node_cap, link_count, link_cap;
    struct weft_kfd_node *nodes; /* by number */
    struct weft_kfd_link *links; /* io_links only: p2p_links are PCIe, and no B */
    size_t missing_links;        /* that nodes count, but the recording lacks */
    size_t missing_nodes;        /* left out, as their properties are not there */
};

/* Reads what is below root ("<root>/nodes/0/properties"). name is the source's, for messages, which
 * say "name: nodes/2/properties:7: reason". cut: what is not there is left out and counted (a
 * recording that was cut off; a live host, whose driver may take nodes away while we read), else
 * it is an error. -ENOENT if there are no nodes, -EINVAL, -EFBIG, -ENOMEM. */
int weft_kfd_read(const struct weft_host *host, const char *root, const char *name, bool cut,
                  struct weft_kfd *ret_kfd, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_kfd_done(struct weft_kfd *kfd);
WEFT_DEFINE_AUTO_VALUE(struct weft_kfd, weft_kfd_done)
const struct weft_kfd_node *weft_kfd_find(const struct weft_kfd *kfd, uint32_t number);

/* One properties file, of a node or a link: lines "key value". Each field whose key is there gets
 * its value, a decimal number of at most max; other keys are not looked at. Pure. */
struct weft_kfd_field {
    const char *key;
    uint64_t *value;
    uint64_t max;
};
int weft_kfd_parse_properties(const char *text, size_t len, const char *name,
                              const struct weft_kfd_field *fields, size_t field_count,
                              struct weft_error *err) __attribute__((warn_unused_result));

/* The machine of a topology: devices in the order of its nodes; then, unhealthy, functions that the
 * amdgpu driver has and the topology lacks. Ids are those of AMD's own device plugin: the PCI
 * address of a GPU (and of its first partition), and for further partitions their platform
 * device's name ("amdgpu_xcp_5"); a recording without such devices has "<address>-p<n>". What the
 * host's PCI, NUMA and NIC folders say is used where they are there; a recording of the topology
 * alone has NUMA nodes from its links to CPUs. B is the bandwidth of direct xGMI links, the smaller
 * direction; PCIe is none. The caller owns *ret_machine. -EINVAL for what no machine can be. */
int weft_kfd_machine(const struct weft_host *host, const struct weft_kfd *kfd, const char *name,
                     struct weft_machine **ret_machine, struct weft_error *err)
    __attribute__((warn_unused_result));

/* Uncorrectable memory errors of a GPU since its driver was loaded; 0 also if that is not told. */
uint64_t weft_kfd_uncorrectable(const struct weft_host *host, const struct weft_bdf *bdf);

#endif
