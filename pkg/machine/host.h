/* SPDX-License-Identifier: Apache-2.0 */
/* What Linux says of a host in /sys and /proc: where a PCI function sits, how far two are apart,
 * which NICs there are. Every vendor backend gets NUMA, sockets, T and N from here.
 *
 * The host is a folder ("/", or the host's root as a container sees it) or a tree in memory that
 * was read from a recording. Paths are the host's own ("/sys/class/net"); symbolic links are
 * resolved here, inside the root: an absolute link and a ".." above the root stay within it.
 *
 * Plain sysfs and not hwloc, because sysfs says all that is needed (the chain of bridges is the
 * real path of a function), reads only the functions that matter, works on a recording in memory,
 * and keeps libhwloc's 0.4 MB, its five udev stubs and its walk over every function's config space
 * out of the plugin. `lstopo` recordings are XML, which weft reads as such, in all versions.
 * tests/unit/test_host_hwloc.c holds all of it against hwloc. They differ in this only: hwloc has
 * one locality for each root bus, of its first function, and guesses it from local_cpus where
 * numa_node is -1; here every function has its own numa_node, and -1 is unknown, as to the kernel.
 * hwloc also lists network devices of virtual functions and behind USB; here these are no NICs.
 *
 * T is derived as nvidia-smi words it, from the chains "host bridge, bridge, ..., function":
 *   PSB   functions of one PCI device, or below the card's own switch
 *   PIX   the last bridge that both share is a port of one switch: at most one more bridge on the
 *         way down to each of them
 *   PXB   they share a bridge, and there is a further switch on the way down
 *   PHB   they share a host bridge only
 *   NODE  different host bridges, one known NUMA node;   SYS  different NUMA nodes; also: unknown
 * A bridge of the function's own vendor that is not on the root bus is part of an AMD or Intel
 * card (Linux: amdgpu_device_partner_bandwidth skips them for the same reason) and is no switch.
 *
 * A host is immutable once built; any thread. All functions do blocking I/O for a folder. */
#ifndef WEFT_MACHINE_HOST_H
#define WEFT_MACHINE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/machine/machine.h"

enum {
    WEFT_HOST_PATH_MAX = 4096,
    WEFT_HOST_TEXT_MAX = 4096 + 1, /* a sysfs attribute is one page at most */
    WEFT_HOST_NAMES_MAX = 65536,   /* entries of one folder: a host may have thousands of VFs */
    WEFT_HOST_DEPTH_MAX = 32,      /* bridges above one function */
    WEFT_HOST_ENTRIES_MAX = 1 << 18,
};

struct weft_host;

/* A folder as the host's root. -ENOTDIR, -ENOENT, -EACCES, -ENOMEM. */
int weft_host_open(const char *root, struct weft_host **ret_host, struct weft_error *err)
    __attribute__((warn_unused_result));
/* An empty tree in memory; fill it with the two functions below, then weft_host_seal it before any
 * other use. Of two entries with one path the later one counts. -EINVAL for a path that is not
 * absolute, has ".." or is too long, -EFBIG over WEFT_HOST_ENTRIES_MAX, -ENOMEM. */
int weft_host_new_recorded(struct weft_host **ret_host) __attribute__((warn_unused_result));
int weft_host_add_file(struct weft_host *host, const char *path, const void *bytes, size_t len)
    __attribute__((warn_unused_result));
int weft_host_add_link(struct weft_host *host, const char *path, const char *target)
    __attribute__((warn_unused_result));
void weft_host_seal(struct weft_host *host);
void weft_host_free(struct weft_host *host);
WEFT_DEFINE_AUTO(struct weft_host, weft_host_free)

/* The real path of what path names, inside the root; real has WEFT_HOST_PATH_MAX bytes. 0, -ENOENT,
 * -ELOOP, -ENAMETOOLONG, or an error of the file system. */
int weft_host_resolve(const struct weft_host *host, const char *path, char *real)
    __attribute__((warn_unused_result));
bool weft_host_exists(const struct weft_host *host, const char *path);
/* Reads a whole attribute into text (size bytes, NUL-terminated, white space at its end dropped).
 * Returns the length, or -errno; -EFBIG if it does not fit. */
int weft_host_read(const struct weft_host *host, const char *path, char *text, size_t size)
    __attribute__((warn_unused_result));
/* The same for an attribute that is one decimal number. 0, -errno, -EINVAL, -ERANGE. */
int weft_host_read_i64(const struct weft_host *host, const char *path, int64_t *ret_value)
    __attribute__((warn_unused_result));

/* The names in a folder, sorted as people sort numbers in names. */
struct weft_host_names {
    char **names;
    size_t count, cap;
};
int weft_host_list(const struct weft_host *host, const char *path,
                   struct weft_host_names *ret_names) __attribute__((warn_unused_result));
void weft_host_names_done(struct weft_host_names *names);
WEFT_DEFINE_AUTO_VALUE(struct weft_host_names, weft_host_names_done)

/* One step of the way from a host bridge down to a function. */
struct weft_host_step {
    struct weft_bdf bdf; /* of a host bridge: domain and bus */
    bool host_bridge;
    bool own; /* a bridge that is part of the function's own card */
};

struct weft_host_pci {
    struct weft_bdf bdf;
    uint16_t vendor, device; /* 0 unknown */
    uint32_t class_code;     /* 0x030200 = 3D controller; 0 unknown */
    char driver[32];         /* "" none */
    int numa_node;           /* -1 unknown */
    int socket;              /* -1 unknown */
    bool is_vf;              /* an SR-IOV virtual function */
    int vf_count;            /* virtual functions that it has now */
    struct weft_pcie pcie;   /* of the card: its slot's side where the card has a switch */
    int card, render;        /* DRM minors of cardN and renderDN, -1 none */
    size_t depth;            /* steps, the function itself being the last; 0 if unknown */
    struct weft_host_step path[WEFT_HOST_DEPTH_MAX];
};

/* -ENOENT if the host has no such function, -EINVAL if bdf is unknown, or an error of the file
 * system; single attributes that cannot be read are left unknown. */
int weft_host_pci(const struct weft_host *host, const struct weft_bdf *bdf,
                  struct weft_host_pci *ret_pci) __attribute__((warn_unused_result));
enum weft_pci_sign {
    WEFT_PCI_ABSENT, /* the kernel has no such function (any more) */
    WEFT_PCI_DEAD,   /* its registers read all ones, as of one that has fallen off the bus */
    WEFT_PCI_THERE,  /* it answers, or sleeps and is left to */
};
/* What the kernel says of a function's life. Wakes nothing up. */
enum weft_pci_sign weft_host_pci_sign(const struct weft_host *host, const struct weft_bdf *bdf);
/* Every PCI function of a vendor whose base class is display (0x03) or processing accelerator
 * (0x12), by address; at most WEFT_MACHINE_DEVICES_MAX, -EFBIG above. *ret_pcis is owned. */
int weft_host_find_gpus(const struct weft_host *host, uint16_t vendor,
                        struct weft_host_pci **ret_pcis, size_t *ret_count)
    __attribute__((warn_unused_result));
/* T of two functions: enum weft_distance, or WEFT_DISTANCE_UNKNOWN. Pure. */
int weft_host_distance(const struct weft_host_pci *a, const struct weft_host_pci *b);

/* The host's NICs, by PCI address: one for each physical PCI function with an RDMA device or a
 * network device (Ethernet or InfiniBand); virtual functions, virtual devices, VF representors and
 * further ports are left out. A port that is not active has no rate. *ret_nics is owned;
 * *ret_left_out counts those over WEFT_MACHINE_NICS_MAX. A host without such classes has none. */
int weft_host_nics(const struct weft_host *host, struct weft_nic **ret_nics, size_t *ret_count,
                   size_t *ret_left_out) __attribute__((warn_unused_result));

/* A machine of device_count devices with the host's NICs in place. The backend then sets each
 * device's bdf (and what else it knows) and calls weft_host_wire. */
int weft_host_machine(const struct weft_host *host, const char *name, size_t device_count,
                      struct weft_machine **ret_machine, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Fills from the host, by each device's bdf: NUMA node, label and group, socket, PCIe link (only
 * what is still 0), T and N. B stays; set it before or after (weft_machine_set_pair with the T
 * that is there). A device whose function the host lacks keeps its values, with a warning. */
int weft_host_wire(const struct weft_host *host, struct weft_machine *machine,
                   struct weft_error *err) __attribute__((warn_unused_result));

#endif
