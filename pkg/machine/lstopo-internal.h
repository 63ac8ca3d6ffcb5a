/* SPDX-License-Identifier: Apache-2.0 */
/* An lstopo (hwloc) XML file of format 1, 2 or 3 as lists of what it says; what that means for a
 * machine is read-lstopo.c's business. Read here and not by hwloc's own import, because Debian's
 * hwloc 2.9 refuses format 3 and rebuilds a live topology where only objects are wanted. The format
 * is hwloc's (hwloc2.dtd, doc "Importing and exporting topologies from/to XML files"): nested
 * <object>s with <info>s, then matrices of distances between objects. */
#ifndef WEFT_MACHINE_LSTOPO_INTERNAL_H
#define WEFT_MACHINE_LSTOPO_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/machine/machine.h"
#include "pkg/machine/pci-tree-internal.h"

enum {
    WEFT_LSTOPO_OSDEVS_MAX = 1 << 14,
    WEFT_LSTOPO_MATRICES_MAX = 16,
    WEFT_LSTOPO_MATRIX_MAX = 1280, /* objects of one matrix: devices and their switches */
};

/* What is known of a tree node beyond its place in the PCI tree; same index. */
struct weft_lstopo_object {
    uint64_t gp_index; /* hwloc's number that matrices use; 0: none */
    int numa;          /* the only NUMA node in its node set, else -1 */
    int own_numa;      /* the least number of the NUMA nodes right inside it, else -1 */
    int package;       /* its own number, if it is a package, else -1 */
    bool nvswitch;
    bool whole; /* its end was read */
    bool io;    /* a bridge or PCI function */
    char name[64];
};

enum weft_lstopo_osdev_kind {
    WEFT_LSTOPO_OTHER,
    WEFT_LSTOPO_NVML,
    WEFT_LSTOPO_RSMI,
    WEFT_LSTOPO_CUDA,
    WEFT_LSTOPO_ZE,
    WEFT_LSTOPO_OPENCL,
    WEFT_LSTOPO_NET,
    WEFT_LSTOPO_RDMA,
    WEFT_LSTOPO_OSDEV_KIND_COUNT
};

struct weft_lstopo_osdev {
    size_t function; /* tree node, WEFT_PCI_NONE for one without */
    enum weft_lstopo_osdev_kind kind;
    int number; /* the 3 of nvml3, -1 */
    uint64_t gp_index;
    char name[64];
    char model[64];
    uint64_t guid;
    int port_up; /* 1, 0, -1 not said */
};

/* A matrix of bandwidths in MB/s. */
struct weft_lstopo_matrix {
    unsigned line;
    size_t count;
    uint64_t *objects; /* gp_index of each */
    uint64_t *values;  /* count x count, row-major */
};

struct weft_lstopo {
    const char *file;
    struct weft_pci_tree tree;
    struct weft_lstopo_object *objects;
    size_t object_count, object_cap;
    struct weft_lstopo_osdev *osdevs;
    size_t osdev_count, osdev_cap;
    struct weft_lstopo_matrix matrices[WEFT_LSTOPO_MATRICES_MAX];
    size_t matrix_count;
    int format; /* 1, 2 or 3 */
    bool cut;
    unsigned last_line;
};

/* Errors: -EINVAL with "file:line: reason", -EFBIG, -ENOMEM. */
int weft_lstopo_parse(const char *text, size_t len, const char *file,
                      struct weft_lstopo *ret_lstopo, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_lstopo_done(struct weft_lstopo *lstopo);
WEFT_DEFINE_AUTO_VALUE(struct weft_lstopo, weft_lstopo_done)

/* The numbers of a matrix's text: words of digits, or "Type:digits". Fills at
 * most max values; -EINVAL for anything else. *ret_count is how many words there were. */
int weft_lstopo_numbers(const char *text, size_t len, uint64_t *values, size_t max,
                        size_t *ret_count) __attribute__((warn_unused_result));
/* The only bit of a set as hwloc writes it ("0x00000001,,0x0"), -1 for none or several. */
int weft_lstopo_only_bit(const char *set);
/* "ec0d:9a03:0049:a212", 0 for anything else. */
uint64_t weft_lstopo_guid(const char *text);

#endif
