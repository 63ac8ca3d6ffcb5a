/* SPDX-License-Identifier: Apache-2.0 */
/* The model of one machine: its accelerators, its NICs, and how they are wired, exactly as
 * allocation.md ("Machine") defines it; docs/allocation.md says the same for users. A machine is
 * a value: built once by a reader (read-*.c) or a vendor backend, then immutable, shared and read
 * from any thread. No I/O here but in the functions that say so. */
#ifndef WEFT_MACHINE_MACHINE_H
#define WEFT_MACHINE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/machine/parts.h"

struct weft_buf;

enum {
    WEFT_MACHINE_DEVICES_MAX =
        1024, /* CPX on 8 GPUs is 64; time-slicing replicas are ids, not devices */
    WEFT_MACHINE_NICS_MAX = 256,
    WEFT_DEVICE_ID_MAX = 64,     /* with its NUL: the kubelet's api.proto allows ids of 63 */
    WEFT_MACHINE_NODES_MAX = 8,  /* device nodes of one device */
    WEFT_MACHINE_MOUNTS_MAX = 8, /* mounts of one device */
    WEFT_MACHINE_COMMON_MAX = 32,
    WEFT_MACHINE_WARNINGS_MAX = 64,
    WEFT_MACHINE_PATH_MAX = 256,      /* longest device node path, with its NUL */
    WEFT_MACHINE_FILE_MAX = 32 << 20, /* bytes of a recorded machine */
    WEFT_BDF_TEXT_MAX = 20,           /* "ffffffff:ff:1f.7" and its NUL fit */
};

/* PCIe distance classes T and N (nvidia-smi's words): allocation.md "Machine". */
enum weft_distance {
    WEFT_DISTANCE_PSB,  /* same board */
    WEFT_DISTANCE_PIX,  /* one PCIe switch */
    WEFT_DISTANCE_PXB,  /* several PCIe switches */
    WEFT_DISTANCE_PHB,  /* a host bridge */
    WEFT_DISTANCE_NODE, /* one NUMA node */
    WEFT_DISTANCE_SYS,  /* across; also: unknown */
    WEFT_DISTANCE_COUNT
};

/* As .healthy says; healthy, but for the doubt in .health_reason; not healthy, and found in order
 * for a while (docs/device-plugin.md, "Health"). */
enum weft_device_state { WEFT_DEVICE_PLAIN, WEFT_DEVICE_SUSPECT, WEFT_DEVICE_RECOVERING };

struct weft_device {
    char id[WEFT_DEVICE_ID_MAX]; /* what the kubelet sees: NVIDIA's UUID, or "GPU3" of a matrix */
    char model[64];              /* "" if unknown */
    char numa_label[64];         /* as the source wrote it, "" if unknown; longer ones are cut and
                                    end in '~' and a hash of the whole */
    int index;                   /* the vendor's index */
    struct weft_bdf bdf;
    int numa_node; /* the kernel's NUMA node for TopologyInfo, -1 if unknown */
    int numa_group; /* dense 0…: equal numbers = same NUMA label; -1 unknown. Never the GPU's own */
    int socket;     /* physical package, -1 unknown */
    int parent;     /* the vendor's index of the parent GPU for partitions, -1 for whole devices */
    int partition; /* partition index inside its parent, 0 for whole devices */
    bool healthy;
    enum weft_device_state state;
    char health_reason[96]; /* why not, one sentence; "" if healthy or not said */
    char profile[32];       /* of a partition: "1g.10gb", "CPX"; "" for whole devices */
    char capability[16];    /* compute capability or instruction set: "9.0", "gfx942"; "" unknown */
    char clique[64];        /* "<cluster UUID>.<clique id>" of a finished NVLink fabric, else "" */
    uint64_t memory_mib;    /* 0 unknown */
    int links_up;           /* direct links (NVLink, xGMI, MTLink) that are active, -1 unknown */
    int links_total;        /* that the device has, -1 unknown */
    struct weft_pcie pcie;
    uint32_t pci_class;        /* 0x030200 = 3D controller; 0 unknown */
    bool partitionable;        /* can be split into partitions (MIG) */
    struct weft_slices slices; /* of a partition: what it has of its GPU */
    /* device nodes a container needs for this device alone, e.g. "/dev/nvidia0" */
    char *nodes[WEFT_MACHINE_NODES_MAX];
    size_t node_count;
    /* links to them that programs look for, mounted read-only: Intel's "/dev/dri/by-path/…" */
    char *mounts[WEFT_MACHINE_MOUNTS_MAX];
    size_t mount_count;
};

struct weft_machine {
    char *name;               /* of the source, for messages; never NULL */
    char *vendor;             /* "nvidia", "amd", "intel", "mthreads"; "" if unknown */
    char driver_version[64];  /* "" unknown */
    char runtime_version[32]; /* CUDA, ROCm…: "12.4"; "" unknown */
    char clique[64];          /* the devices' clique, if all are in the same one; else "" */
    bool partial;             /* the source was cut: only whole devices are here */
    size_t device_count;
    struct weft_device *devices; /* in the source's order */
    size_t nic_count;
    struct weft_nic *nics;
    size_t parent_count;
    struct weft_parent *parents; /* GPUs that are split, also those without a partition */
    uint64_t *bandwidth;         /* B, device_count x device_count, row-major, MB/s one way */
    uint8_t *distance;           /* T, likewise, enum weft_distance */
    uint8_t *nic_distance;       /* N, device_count x nic_count */
    char **common_nodes;         /* device nodes every container gets: "/dev/nvidiactl", … */
    size_t common_node_count;
    char **warnings; /* what the reader could not be sure of, one sentence each */
    size_t warning_count;
};

static inline uint64_t weft_machine_b(const struct weft_machine *m, size_t i, size_t j)
{
    return m->bandwidth[i * m->device_count + j];
}
static inline enum weft_distance weft_machine_t(const struct weft_machine *m, size_t i, size_t j)
{
    return (enum weft_distance)m->distance[i * m->device_count + j];
}
static inline enum weft_distance weft_machine_n(const struct weft_machine *m, size_t i, size_t nic)
{
    return (enum weft_distance)m->nic_distance[i * m->nic_count + nic];
}

/* A machine of that size, everything unknown: B 0, T and N SYS, healthy, indices 0…. Owned. */
int weft_machine_new(const char *name, size_t device_count, size_t nic_count,
                     struct weft_machine **ret_machine, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_machine_free(struct weft_machine *machine);
WEFT_DEFINE_AUTO(struct weft_machine, weft_machine_free)

/* A machine of some of the devices, by number, in that order, with all NICs. Owned. */
int weft_machine_subset(const struct weft_machine *from, const size_t *devices, size_t count,
                        struct weft_machine **ret_machine, struct weft_error *err)
    __attribute__((warn_unused_result));
/* The same machine again. Owned. */
int weft_machine_copy(const struct weft_machine *from, struct weft_machine **ret_machine,
                      struct weft_error *err) __attribute__((warn_unused_result));

/* Reads a recorded machine of any known format (docs/recorded-machines.md), recognised by content
 * (never by the file's name). name is for messages. */
int weft_machine_read(const char *text, size_t len, const char *name,
                      struct weft_machine **ret_machine, struct weft_error *err)
    __attribute__((warn_unused_result));
/* The same from a file ("-" is standard input), or from a folder with a KFD topology;
 * "FILE#FOLDER" is one of several in an archive or a folder. Does I/O. */
int weft_machine_load(const char *path, struct weft_machine **ret_machine, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Appends the machine as weft's own JSON; weft_machine_read reads the same machine back. */
int weft_machine_write_json(const struct weft_machine *machine, struct weft_buf *buf)
    __attribute__((warn_unused_result));

/* Adds one sentence to the warnings (the last place, when they are full, says so). For readers and
 * vendor backends while they build. 0 or -ENOMEM. */
int weft_machine_warn(struct weft_machine *machine, const char *format, ...)
    __attribute__((format(printf, 2, 3), warn_unused_result));
/* Adds a device node or a mount (an absolute path) to one device, or a node to every container.
 * -EINVAL for a path that is not absolute or too long, -EFBIG, -ENOMEM. */
int weft_machine_add_node(struct weft_device *device, const char *path)
    __attribute__((warn_unused_result));
int weft_machine_add_mount(struct weft_device *device, const char *path)
    __attribute__((warn_unused_result));
int weft_machine_add_common_node(struct weft_machine *machine, const char *path)
    __attribute__((warn_unused_result));

/* "healthy", "suspect", "unhealthy", "recovering". */
const char *weft_device_state_name(const struct weft_device *device);

/* "SYS" and so on; SOC, the older word for SYS, is read too. */
const char *weft_distance_name(enum weft_distance distance);
bool weft_distance_parse(const char *text, size_t len, enum weft_distance *ret_distance);
/* "0000:1b:00.0"; the domain may have up to eight digits. text has WEFT_BDF_TEXT_MAX bytes and is
 * returned; "" for an unknown address. */
const char *weft_bdf_format(const struct weft_bdf *bdf, char *text);
/* 0 or -EINVAL. */
int weft_bdf_parse(const char *text, struct weft_bdf *ret_bdf) __attribute__((warn_unused_result));

/* Index of the device with that id, or SIZE_MAX. */
size_t weft_machine_find_id(const struct weft_machine *machine, const char *id);
/* The same, or of the one with that vendor index as text ("3"; "GPU3" too), or
 * SIZE_MAX. Ids win over indices. */
size_t weft_machine_find(const struct weft_machine *machine, const char *id);
/* Do two machines hold the same devices, wiring and health? */
bool weft_machine_equal(const struct weft_machine *a, const struct weft_machine *b);

#endif
