/* SPDX-License-Identifier: Apache-2.0 */
/* The part of NVIDIA's management library that weft calls, in declarations of its own: names,
 * numbers and layouts are the library's public interface. tests/fakes/nvml implements the same
 * declarations. Nothing here is linked: discover-nvml-load.c looks every function up. */
#ifndef WEFT_MACHINE_DISCOVER_NVML_API_H
#define WEFT_MACHINE_DISCOVER_NVML_API_H

#include <stdint.h>

#include "pkg/machine/discover-nvml-functions.h"

#define WEFT_NVML_LIBRARY "libnvidia-ml.so.1"

struct weft_nvml_handle; /* a GPU or a MIG instance; the library's */
struct weft_nvml_set;    /* an event set; the library's */

/* Return codes; a function gives an int. */
enum {
    WEFT_NVML_OK = 0,
    WEFT_NVML_UNINITIALIZED = 1,
    WEFT_NVML_INVALID_ARGUMENT = 2,
    WEFT_NVML_NOT_SUPPORTED = 3,
    WEFT_NVML_NO_PERMISSION = 4,
    WEFT_NVML_NOT_FOUND = 6,
    WEFT_NVML_INSUFFICIENT_SIZE = 7,
    WEFT_NVML_DRIVER_NOT_LOADED = 9,
    WEFT_NVML_TIMEOUT = 10,
    WEFT_NVML_LIBRARY_NOT_FOUND = 12,
    WEFT_NVML_FUNCTION_NOT_FOUND = 13,
    WEFT_NVML_GPU_IS_LOST = 15,
    WEFT_NVML_RESET_REQUIRED = 16,
    WEFT_NVML_LIB_RM_VERSION_MISMATCH = 18,
    WEFT_NVML_ARGUMENT_VERSION_MISMATCH = 25,
    WEFT_NVML_UNKNOWN = 999,
};

enum {
    WEFT_NVML_TEXT_MAX = 96,    /* buffers for names and UUIDs, as the library's header advises */
    WEFT_NVML_LINKS_MAX = 36,   /* NVLinks of a GPU, as of library 13 */
    WEFT_NVML_NO_INSTANCE = -1, /* 0xffffffff: an event is of the whole GPU */
};

/* Remote end of an NVLink. */
enum {
    WEFT_NVML_REMOTE_GPU = 0,
    WEFT_NVML_REMOTE_NPU = 1, /* a CPU that speaks NVLink: no accelerator */
    WEFT_NVML_REMOTE_SWITCH = 2,
    WEFT_NVML_REMOTE_UNKNOWN = 0xff
};

/* nvmlDeviceGetTopologyCommonAncestor */
enum {
    WEFT_NVML_ANCESTOR_INTERNAL = 0,
    WEFT_NVML_ANCESTOR_SINGLE = 10,
    WEFT_NVML_ANCESTOR_MULTIPLE = 20,
    WEFT_NVML_ANCESTOR_HOSTBRIDGE = 30,
    WEFT_NVML_ANCESTOR_NODE = 40,
    WEFT_NVML_ANCESTOR_SYSTEM = 50
};

/* nvmlDeviceGetP2PStatus: which capability is asked for, and the answer that is a yes. */
enum { WEFT_NVML_P2P_READ = 0, WEFT_NVML_P2P_OK = 0 };

/* nvmlDeviceGetFieldValues */
enum {
    WEFT_NVML_FIELD_LINK_SPEED_COMMON = 90, /* MB/s of each active link */
    WEFT_NVML_FIELD_SWITCH_LINKS = 147,     /* links that lead to an NVSwitch */
    WEFT_NVML_FIELD_LINK_SPEED = 164,       /* these three: scope is the link */
    WEFT_NVML_FIELD_LINK_STATE = 165,
    WEFT_NVML_FIELD_LINK_VERSION = 166,
    WEFT_NVML_FIELD_RECOVERY_ACTION = 230,
};
enum {
    WEFT_NVML_RECOVERY_NONE = 0,
    WEFT_NVML_RECOVERY_RESET = 1,
    WEFT_NVML_RECOVERY_REBOOT = 2,
    WEFT_NVML_RECOVERY_DRAIN_P2P = 3,
    WEFT_NVML_RECOVERY_DRAIN_AND_RESET = 4,
    WEFT_NVML_RECOVERY_IMEX = 5,
};

/* Event types, a bit mask. */
#define WEFT_NVML_EVENT_XID UINT64_C(0x8)
#define WEFT_NVML_EVENT_MIG_CHANGED UINT64_C(0x100)
#define WEFT_NVML_EVENT_UNAVAILABLE UINT64_C(0x4000)
#define WEFT_NVML_EVENT_RECOVERY UINT64_C(0x8000)

/* Version 3; earlier ones are shorter and begin the same way. */
struct weft_nvml_pci {
    char bus_id_legacy[16];
    uint32_t domain, bus, device;
    uint32_t pci_device_id, pci_subsystem_id;
    char bus_id[32];
};

struct weft_nvml_memory {
    uint64_t total, free, used; /* bytes */
};

struct weft_nvml_field {
    uint32_t id, scope;
    int64_t timestamp, latency_us;
    int value_type; /* 0 double, 1 uint32, 2 and 3 uint64, 4 int64 */
    int rc;         /* of this field alone */
    union {
        double real;
        uint32_t u32;
        uint64_t u64;
    } value;
};

struct weft_nvml_event {
    struct weft_nvml_handle *device;
    uint64_t type, data; /* data: the XID */
    uint32_t gpu_instance, compute_instance;
};

enum {
    WEFT_NVML_FABRIC_NOT_SUPPORTED,
    WEFT_NVML_FABRIC_NOT_STARTED,
    WEFT_NVML_FABRIC_IN_PROGRESS,
    WEFT_NVML_FABRIC_COMPLETED
};

struct weft_nvml_fabric { /* the call without a version */
    uint8_t cluster[16];
    int status;
    uint32_t clique;
    uint8_t state;
};

struct weft_nvml_fabric_v { /* version 2; version 3 appends to it */
    uint32_t version;
    uint8_t cluster[16];
    int status;
    uint32_t clique;
    uint8_t state;
    uint32_t health_mask;
};
#define WEFT_NVML_FABRIC_V2 ((uint32_t)(sizeof(struct weft_nvml_fabric_v) | (2U << 24)))

struct weft_nvml_attributes { /* of a MIG instance */
    uint32_t multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
    uint32_t gpu_slices, compute_slices;
    uint64_t memory_mib;
};

#define WEFT_NVML_FIELD(name, parameters, newest, older, lost) int(*name) parameters;
struct weft_nvml_api {
    WEFT_NVML_FUNCTIONS(WEFT_NVML_FIELD)
};
#undef WEFT_NVML_FIELD

#endif
