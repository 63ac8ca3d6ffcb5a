/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the NVIDIA backend: the library (load), one GPU's answers (gpu), MIG instances
 * (mig), wiring (wire), health (health), and the backend that puts them together (discover-nvml.c).
 * Vendor thread only. */
#ifndef WEFT_MACHINE_DISCOVER_NVML_INTERNAL_H
#define WEFT_MACHINE_DISCOVER_NVML_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/machine/backend.h"
#include "pkg/machine/discover-nvml-api.h"

enum {
    WEFT_NVML_MAGIC = 0x4e766d6c,    /* "Nvml" */
    WEFT_NVML_GPUS_MAX = 64,         /* of one machine; 16 is the most that was built */
    WEFT_NVML_INSTANCES_MAX = 8,     /* MIG devices of one GPU; the library says at most 7 */
    WEFT_NVML_WAIT_FAILURES_MAX = 3, /* then events are given up, and health is looked at */
    WEFT_NVML_SICK_MAX = 64,         /* remembered faults */
    WEFT_NVML_LINK_NOWHERE = -1,     /* an active link that leads to no GPU and no switch */
    WEFT_NVML_LINK_SWITCH = -2,
};

struct weft_host;

struct weft_nvml_link {
    bool active; /* up; false too for a number without a link */
    int type;    /* WEFT_NVML_REMOTE_*, -1 unknown */
    struct weft_bdf remote;
    int to;             /* index of the GPU at its end, or one of the above */
    uint32_t rate_mbps; /* by field value, MB/s one way; 0 unknown */
    uint32_t version;   /* the library's numbering; 0 unknown */
};

struct weft_nvml_instance {
    char uuid[WEFT_DEVICE_ID_MAX];
    char profile[32];
    unsigned index;  /* NVML's, by which the container runtime names it; indices may have gaps */
    uint32_t gi, ci; /* UINT32_MAX unknown */
    uint64_t memory_mib;
    struct weft_slices slices;
};

struct weft_nvml_gpu {
    struct weft_nvml_handle *handle; /* NULL: the library gives none */
    int trouble; /* why the GPU itself does not answer: GPU_IS_LOST, RESET_REQUIRED; 0 none */
    int doubt;   /* how the GPU answered what any should know; 0: as it should */
    bool anew;   /* it was in trouble, or was opened anew, and answers now: it was reset */
    bool on_bus; /* the kernel showed its PCI function */
    bool rows_failed, rows_pending; /* remapping of memory rows */
    char uuid[WEFT_DEVICE_ID_MAX];
    char model[64];
    char capability[16];
    struct weft_bdf bdf;
    int minor;     /* of /dev/nvidia<minor>, -1 unknown */
    int numa_node; /* by memory affinity, -1 unknown */
    uint64_t memory_mib;
    struct weft_pcie pcie;
    int link_count;        /* numbers of links that may be there: entries of links */
    int link_total;        /* links that are */
    uint64_t switch_links; /* that lead to a switch, where their types are unknown */
    struct weft_nvml_link links[WEFT_NVML_LINKS_MAX];
    char clique[64];
    int fabric_state; /* 0: no fabric */
    int fabric_status;
    int recovery;    /* recovery action, -1 unknown */
    bool registered; /* for events */
    bool mig_capable;
    bool mig; /* partitioned: its instances are the devices */
    size_t instance_count;
    struct weft_nvml_instance instances[WEFT_NVML_INSTANCES_MAX];
};

/* A fault that an event told of. */
struct weft_nvml_sick {
    bool all;                      /* the event named no GPU that is known here */
    char uuid[WEFT_DEVICE_ID_MAX]; /* of the GPU, not of an instance */
    uint32_t gi, ci;               /* UINT32_MAX: all of them */
    uint64_t xid;                  /* 0: not an XID */
};

struct weft_nvml {
    uint32_t magic;
    struct weft_backend_options options;
    struct weft_host *host;
    void *library;
    struct weft_nvml_api api;
    bool initialized;
    bool wsl;
    char driver_version[64], cuda_version[32];
    size_t gpu_count; /* as of the last enumeration */
    size_t counted;   /* by the library; GPUs that it does not list any more come behind them */
    struct weft_nvml_gpu *gpus;
    uint8_t *p2p;      /* gpu_count², 1: the driver says no */
    uint8_t *distance; /* likewise, enum weft_distance or 0xff unknown */
    struct weft_nvml_set *events;
    bool events_lacking; /* this library or these GPUs tell no events */
    int wait_failures;   /* in a row */
    size_t sick_count;
    struct weft_nvml_sick sick[WEFT_NVML_SICK_MAX];
    size_t queued, queue_at; /* events that one of the library's became */
    struct weft_backend_event queue[WEFT_NVML_INSTANCES_MAX];
};

/* Calls a function of the table, told to the watch; FUNCTION_NOT_FOUND where it is lacking. */
#define WEFT_NVML_CALL(nvml, function, ...)                                                        \
    ({                                                                                             \
        int rc_ = WEFT_NVML_FUNCTION_NOT_FOUND;                                                    \
        if ((nvml)->api.function != NULL) {                                                        \
            weft_backend_enter((nvml)->options.watch, "nvml" #function, 0);                        \
            rc_ = (nvml)->api.function(__VA_ARGS__);                                               \
            weft_backend_leave((nvml)->options.watch);                                             \
        }                                                                                          \
        rc_;                                                                                       \
    })

/* ---- load ---- */

/* Loads the library and looks its functions up. -ENODEV with where it was sought. */
int weft_nvml_load(struct weft_nvml *nvml, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_nvml_unload(struct weft_nvml *nvml);
/* A warning for each function that is lacking. 0 or -ENOMEM. */
int weft_nvml_warn_lacking(const struct weft_nvml *nvml, struct weft_machine *machine)
    __attribute__((warn_unused_result));
/* What a return code means, for a person; static storage. */
const char *weft_nvml_reason(int rc);

/* ---- gpu ---- */

/* Asks everything about the GPU of that index. old is what was known of it (NULL: nothing), which
 * stays where the GPU is lost. Returns false if there is nothing to show for it: it gives neither
 * a handle nor a UUID, and never did. */
bool weft_nvml_ask_gpu(struct weft_nvml *nvml, unsigned index, const struct weft_nvml_gpu *old,
                       struct weft_nvml_gpu *gpu);
/* What the GPU says of its links; to is set by weft_nvml_aim_links when all GPUs are known. */
void weft_nvml_ask_links(struct weft_nvml *nvml, struct weft_nvml_gpu *gpu);
/* Names GPUs that are lost and were never seen, as far as the kernel module lists them. */
void weft_nvml_name_lost(struct weft_nvml *nvml);
/* One field value of scope 0, or UINT64_MAX. */
uint64_t weft_nvml_field(struct weft_nvml *nvml, struct weft_nvml_handle *device, uint32_t field);

/* ---- mig ---- */

void weft_nvml_ask_mig(struct weft_nvml *nvml, struct weft_nvml_gpu *gpu);
/* Is the node in the /dev of the driver (options->dev_root), or, where that is not seen here, in
 * our own, into which a container's runtime puts it? */
bool weft_nvml_has_node(const struct weft_nvml *nvml, const char *path);
/* The nodes below /dev/nvidia-caps that one instance needs. 0 or -ENOMEM; one that is not found is
 * a warning, and the instance unhealthy. */
int weft_nvml_add_cap_nodes(const struct weft_nvml *nvml, const struct weft_nvml_gpu *gpu,
                            const struct weft_nvml_instance *instance, struct weft_machine *machine,
                            struct weft_device *device) __attribute__((warn_unused_result));

/* ---- wire ---- */

/* Finds out which GPU is at the other end of each link, peer-to-peer access and PCIe distances. */
void weft_nvml_aim_links(struct weft_nvml *nvml);
void weft_nvml_ask_pairs(struct weft_nvml *nvml);
/* Sets B and T of the machine's devices; gpu_of gives each device's GPU. Cliques too. -ENOMEM. */
int weft_nvml_wire(const struct weft_nvml *nvml, const size_t *gpu_of, struct weft_machine *machine)
    __attribute__((warn_unused_result));

/* ---- health ---- */

/* Asks the GPU, and the kernel about it, whether it works. rc is what the GPU answered when asked
 * for its memory; returns its trouble. */
int weft_nvml_examine(struct weft_nvml *nvml, struct weft_nvml_gpu *gpu, int rc);
/* Registers for the events of all GPUs that are there, if that was not done yet. */
void weft_nvml_listen(struct weft_nvml *nvml);
void weft_nvml_stop_listening(struct weft_nvml *nvml);
/* Forgets the faults that are over. */
void weft_nvml_recover(struct weft_nvml *nvml);
/* Sets healthy and health_reason of a device: of the instance, or of the whole GPU (NULL). */
void weft_nvml_set_health(const struct weft_nvml *nvml, const struct weft_nvml_gpu *gpu,
                          const struct weft_nvml_instance *instance, struct weft_device *device);
/* struct weft_backend.wait */
int weft_nvml_wait(void *state, int64_t timeout_ns, struct weft_backend_event *ret_event,
                   struct weft_error *err);

#endif
