/* SPDX-License-Identifier: Apache-2.0 */
/* Moore Threads' management library (libmtml.so, MTML 2.x): what weft declares of it, as its header
 * is proprietary. Layouts are those that MooreThreads/mthreads-ml-py checks against the header
 * (test_abi_layout.py). Only discover-mthreads*.c and the tests' mock include this. */
#ifndef WEFT_MACHINE_DISCOVER_MTHREADS_INTERNAL_H
#define WEFT_MACHINE_DISCOVER_MTHREADS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/machine/backend.h"

struct weft_host;

enum {
    WEFT_MTML_OK = 0,
    WEFT_MTML_DRIVER_NOT_LOADED = 1,
    WEFT_MTML_NOT_SUPPORTED = 4,
    WEFT_MTML_NO_PERMISSION = 5,
    WEFT_MTML_GPU_IS_LOST = 669,
    WEFT_MTML_LINK_DOWN = 0,
    WEFT_MTML_LINK_UP = 1,
    WEFT_MTML_LINK_DOWNGRADE = 2,
    WEFT_MTML_NAME_SIZE = 32,
    WEFT_MTML_UUID_SIZE = 48,
    WEFT_MTML_PATH_SIZE = 64,
    WEFT_MTML_VERSION_SIZE = 80,
    WEFT_MTML_LINKS_MAX = 64, /* of one device */
};

/* Opaque handles. */
struct weft_mtml_library;
struct weft_mtml_system;
struct weft_mtml_device;
struct weft_mtml_memory;

struct weft_mtml_pci { /* mtmlPciInfo */
    char address[32];  /* "00000000:3b:00.0" */
    uint32_t segment, bus, device, device_id, subsystem_id, bus_width;
    float max_speed, speed;
    uint32_t max_width, width, max_generation, generation, reserved[6];
};

struct weft_mtml_link_spec {                    /* mtmlMtLinkSpec */
    uint32_t version, gbps, links, reserved[4]; /* gigabits a second of one link */
};

struct weft_mtml_profile { /* mtmlMpcProfile */
    uint32_t id, cores;
    uint64_t memory_mib;
    char name[32];
    uint32_t reserved[10];
};

_Static_assert(sizeof(struct weft_mtml_pci) == 104, "mtmlPciInfo");
_Static_assert(sizeof(struct weft_mtml_link_spec) == 28, "mtmlMtLinkSpec");
_Static_assert(sizeof(struct weft_mtml_profile) == 88, "mtmlMpcProfile");

/* X(field, parameters, symbol, needed: weft uses the library only if it has it). */
#define WEFT_MTML_FUNCTIONS(X)                                                                     \
    X(init, (struct weft_mtml_library * *library), "mtmlLibraryInit", true)                        \
    X(shut_down, (struct weft_mtml_library * library), "mtmlLibraryShutDown", true)                \
    X(count, (const struct weft_mtml_library *library, unsigned *count), "mtmlLibraryCountDevice", \
      true)                                                                                        \
    X(device,                                                                                      \
      (const struct weft_mtml_library *library, unsigned index, struct weft_mtml_device **device), \
      "mtmlLibraryInitDeviceByIndex", true)                                                        \
    X(free_device, (struct weft_mtml_device * device), "mtmlLibraryFreeDevice", false)             \
    X(uuid, (const struct weft_mtml_device *device, char *text, unsigned size),                    \
      "mtmlDeviceGetUUID", true)                                                                   \
    X(name, (const struct weft_mtml_device *device, char *text, unsigned size),                    \
      "mtmlDeviceGetName", false)                                                                  \
    X(pci, (const struct weft_mtml_device *device, struct weft_mtml_pci *pci),                     \
      "mtmlDeviceGetPciInfo", false)                                                               \
    X(gpu_path, (const struct weft_mtml_device *device, char *text, unsigned size),                \
      "mtmlDeviceGetGpuPath", false)                                                               \
    X(card_path, (const struct weft_mtml_device *device, char *text, unsigned size),               \
      "mtmlDeviceGetPrimaryPath", false)                                                           \
    X(render_path, (const struct weft_mtml_device *device, char *text, unsigned size),             \
      "mtmlDeviceGetRenderPath", false)                                                            \
    X(system, (const struct weft_mtml_library *library, struct weft_mtml_system **system),         \
      "mtmlLibraryInitSystem", false)                                                              \
    X(free_system, (struct weft_mtml_system * system), "mtmlLibraryFreeSystem", false)             \
    X(driver_version, (const struct weft_mtml_system *system, char *text, unsigned size),          \
      "mtmlSystemGetDriverVersion", false)                                                         \
    X(memory, (const struct weft_mtml_device *device, struct weft_mtml_memory **memory),           \
      "mtmlDeviceInitMemory", false)                                                               \
    X(free_memory, (struct weft_mtml_memory * memory), "mtmlDeviceFreeMemory", false)              \
    X(memory_total, (const struct weft_mtml_memory *memory, uint64_t *bytes),                      \
      "mtmlMemoryGetTotal", false)                                                                 \
    X(link_spec, (const struct weft_mtml_device *device, struct weft_mtml_link_spec *spec),        \
      "mtmlDeviceGetMtLinkSpec", false)                                                            \
    X(link_state, (const struct weft_mtml_device *device, unsigned link, unsigned *state),         \
      "mtmlDeviceGetMtLinkState", false)                                                           \
    X(link_remote,                                                                                 \
      (const struct weft_mtml_device *device, unsigned link, struct weft_mtml_device **remote),    \
      "mtmlDeviceGetMtLinkRemoteDevice", false)                                                    \
    X(instance_count, (const struct weft_mtml_device *device, unsigned *count),                    \
      "mtmlDeviceCountMpcInstances", false)                                                        \
    X(instance,                                                                                    \
      (const struct weft_mtml_device *device, unsigned index, struct weft_mtml_device **instance), \
      "mtmlDeviceGetMpcInstanceByIndex", false)                                                    \
    X(profile, (const struct weft_mtml_device *instance, struct weft_mtml_profile *profile),       \
      "mtmlDeviceGetMpcProfileInfo", false)

#define WEFT_MTML_POINTER(field, parameters, symbol, needed) unsigned(*field) parameters;

enum { WEFT_MTML_GPUS_MAX = 64, WEFT_MTML_INSTANCES_MAX = 16 };

/* One device that the library told of: a GPU, or an instance (MPC partition) of one. */
struct weft_mtml_unit {
    struct weft_mtml_device *device, *gpu; /* the GPU is the device itself, or its parent */
    char uuid[WEFT_MTML_UUID_SIZE + 1];
    int number; /* of the GPU, from 0 */
    bool is_instance;
    int partition; /* of an instance */
};

struct weft_mtml_units {
    size_t count, gpu_count;
    size_t silent; /* devices that do not answer */
    struct weft_mtml_unit items[WEFT_MTML_GPUS_MAX * WEFT_MTML_INSTANCES_MAX];
    struct weft_mtml_device *gpus[WEFT_MTML_GPUS_MAX]; /* open handles */
};

/* A backend that was opened. Without a library (handle NULL) sysfs alone tells. */
struct weft_mtml {
    const struct weft_backend_options *options;
    struct weft_host *host;
    struct weft_machine *last;
    void *handle;      /* of dlopen */
    char why_not[160]; /* there is no library: the reason */
    struct weft_mtml_library *library;
    WEFT_MTML_FUNCTIONS(WEFT_MTML_POINTER)
};

/* One call, known to the watch: WEFT_MTML_NOT_SUPPORTED where the library lacks the function. */
#define WEFT_MTML_CALL(mtml, field, ...)                                                           \
    ({                                                                                             \
        unsigned code_ = WEFT_MTML_NOT_SUPPORTED;                                                  \
        if ((mtml)->field != NULL) {                                                               \
            weft_backend_enter((mtml)->options->watch, "mtml " #field, 0);                         \
            code_ = (mtml)->field(__VA_ARGS__);                                                    \
            weft_backend_leave((mtml)->options->watch);                                            \
        }                                                                                          \
        code_;                                                                                     \
    })

/* Loads and starts the library; what went wrong stands in why_not, and handle is NULL then. */
void weft_mtml_load(struct weft_mtml *mtml);
void weft_mtml_unload(struct weft_mtml *mtml);

/* Sets B, links_up and links_total of the whole GPUs. 0 or -ENOMEM. */
int weft_mtml_set_links(const struct weft_mtml *mtml, const struct weft_mtml_units *units,
                        struct weft_machine *machine) __attribute__((warn_unused_result));

extern const struct weft_backend weft_backend_mthreads;

#endif
