/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the readers and vendor backends of this folder: how a machine is filled, and the rules
 * of allocation.md "Machine" that turn what a source said into B, T and N. The rules stand here
 * once; a reader only says what it saw. */
#ifndef WEFT_MACHINE_MACHINE_INTERNAL_H
#define WEFT_MACHINE_MACHINE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/machine/machine.h"

enum {
    WEFT_DISTANCE_UNKNOWN = -1,
    /* MB/s of one NVLink in a matrix, which names no generation: only relative size matters. */
    WEFT_MACHINE_LINK_MBPS = 25000,
    WEFT_MACHINE_LINKS_MAX = 1000, /* links of one pair */
};
/* So large that no real link has it, so small that sums over any machine fit 63 bits. */
#define WEFT_MACHINE_BANDWIDTH_MAX (UINT64_C(1) << 40)

/* What a source says of a pair, seen from one of the two. */
struct weft_reading {
    uint64_t bandwidth; /* MB/s, 0 for none */
    int distance;       /* enum weft_distance, or WEFT_DISTANCE_UNKNOWN */
};

/* Sets B and T of a pair from its two readings: B the smaller, T the larger, an unknown T by the
 * NUMA groups (set before). Returns whether the readings were equal. */
bool weft_machine_set_pair(struct weft_machine *machine, size_t i, size_t j,
                           struct weft_reading from_i, struct weft_reading from_j);
/* Sets N; unknown becomes NODE where both NUMA nodes are known and equal, else SYS. */
void weft_machine_set_nic(struct weft_machine *machine, size_t device, size_t nic, int distance);
/* T for a pair whose direct link hides it: through the nearest NIC that both see (N must be set),
 * and never farther than NODE where the affinities are equal, SYS where they are not. */
enum weft_distance weft_machine_hidden_t(const struct weft_machine *machine, size_t i, size_t j,
                                         bool affinities_equal);

/* Copies a word of a source: visible ASCII as it is, other bytes as '?', cut to size - 1. Returns
 * whether anything was lost. */
bool weft_machine_copy_visible(char *to, size_t size, const char *text, size_t len);
/* Sets a device's NUMA label ("N/A", "-1" and "" are unknown) and, where the label is a plain
 * number, its NUMA node. */
void weft_device_set_numa(struct weft_device *device, const char *label, size_t len);
/* Numbers equal NUMA labels alike (numa_group); after all labels are set. */
void weft_machine_group_numa(struct weft_machine *machine);

/* One device over another, whose own nodes must be freed before. -ENOMEM: half done. */
int weft_device_copy(struct weft_device *to, const struct weft_device *from)
    __attribute__((warn_unused_result));
/* Copies them into the machine. -ENOMEM. */
int weft_machine_set_parents(struct weft_machine *machine, const struct weft_parent *parents,
                             size_t count) __attribute__((warn_unused_result));
/* What a machine says beside its devices and matrices: vendor, versions, NICs (to has as many),
 * common nodes, warnings. -ENOMEM: half done. */
int weft_machine_copy_head(struct weft_machine *to, const struct weft_machine *from)
    __attribute__((warn_unused_result));

/* Marks a device unhealthy that a container could not use: its folder is seen here ("/dev/dri"),
 * and the node is not in it. Where the folder is not seen, nothing is known. */
struct weft_host;
void weft_device_check_node(const struct weft_host *host, const char *path,
                            struct weft_device *device);
/* Marks a device unhealthy, unless it is so for another reason. */
void weft_device_lacks(struct weft_device *device, const char *path, const char *what);

/* The last step of every reader: refuses empty, overlong, malformed and duplicate ids and two
 * whole devices with one index. 0 or -EINVAL, -ENOMEM. */
int weft_machine_finish(const struct weft_machine *machine, struct weft_error *err)
    __attribute__((warn_unused_result));
/* "infiniband", "ethernet"; "" for unknown. The reader of JSON takes the same words. */
const char *weft_nic_layer_name(enum weft_nic_layer layer);
/* May this text be a device id: 1 to 63 visible ASCII characters, no comma (lists of ids). */
bool weft_device_id_valid(const char *id);

/* The formats; text is not NUL-terminated. */
int weft_machine_read_json(const char *text, size_t len, const char *name,
                           struct weft_machine **ret_machine, struct weft_error *err)
    __attribute__((warn_unused_result));
int weft_machine_read_nccl_xml(const char *text, size_t len, const char *name,
                               struct weft_machine **ret_machine, struct weft_error *err)
    __attribute__((warn_unused_result));
int weft_machine_read_amd_smi(const char *text, size_t len, const char *name,
                              struct weft_machine **ret_machine, struct weft_error *err)
    __attribute__((warn_unused_result));
int weft_machine_read_lstopo(const char *text, size_t len, const char *name,
                             struct weft_machine **ret_machine, struct weft_error *err)
    __attribute__((warn_unused_result));
int weft_machine_read_smi_topo(const char *text, size_t len, const char *name,
                               struct weft_machine **ret_machine, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
