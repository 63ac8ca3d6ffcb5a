/* SPDX-License-Identifier: Apache-2.0 */
/* Which resources a machine's devices are advertised as: whole GPUs and partitions by strategy,
 * renamed, shared. The names and rules are those of NVIDIA's plugin (its MIG strategies and its
 * sharing.timeSlicing), so that a site's pods and checkpoints stay valid; AMD's mixed strategy
 * likewise. Pure: a machine and settings in, a list out. */
#ifndef WEFT_DEVICEPLUGIN_POOLS_H
#define WEFT_DEVICEPLUGIN_POOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/allocator/allocator.h"
#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_machine;

enum {
    WEFT_POOLS_MAX = 64,          /* resources of one node */
    WEFT_POOL_REPLICAS_MAX = 1024 /* ids of one device */
};

enum weft_partitions {
    WEFT_PARTITIONS_AUTO, /* NVIDIA: none; others: one resource for whole and partitioned devices */
    WEFT_PARTITIONS_NONE, /* whole devices only */
    WEFT_PARTITIONS_SINGLE, /* all are partitions of one profile, under the resource of whole ones
                             */
    WEFT_PARTITIONS_MIXED,  /* each profile is a resource of its own: nvidia.com/mig-1g.10gb */
    WEFT_PARTITIONS_COUNT
};

/* Devices that match get another resource: the first that matches wins. */
struct weft_pool_rename {
    char *pattern; /* glob over the model ("*A100*"), or over the profile of partitions */
    char *resource;
    bool partitions; /* of partitions; else of whole devices */
};

/* A resource of which each device is advertised several times. */
struct weft_pool_share {
    char *resource; /* as named before sharing */
    uint32_t replicas;
    char *rename; /* NULL: as rename_by_default says */
};

struct weft_pool_settings {
    char *resource; /* of whole devices; NULL: by the vendor */
    enum weft_partitions partitions;
    struct weft_pool_rename *renames;
    size_t rename_count;
    struct weft_pool_share *shares;
    size_t share_count;
    bool rename_by_default; /* shared resources are called "<resource>.shared" */
    bool fail_above_one;    /* a container may ask for one replica only */
    enum weft_sharing sharing;
};

/* Frees what the settings own; the struct is zero afterwards. */
void weft_pool_settings_done(struct weft_pool_settings *settings);

struct weft_pool {
    char *resource;
    size_t *devices; /* numbers in the machine, ascending */
    size_t device_count;
    uint32_t replicas; /* ids of each device; 1: not shared, and the id is the device's */
    bool fail_above_one;
};

struct weft_pools {
    struct weft_pool *items; /* the resource of whole devices first, then by name */
    size_t count;            /* at least 1: the first may be empty */
    char **problems;         /* one sentence each: devices that are not advertised, and why */
    size_t problem_count;
    /* numbers of shares that no device has the resource of: another node's, or mistyped */
    size_t *unused;
    size_t unused_count;
};

/* The caller owns *ret_pools (weft_pools_done). -ENOMEM; -EFBIG over WEFT_POOLS_MAX; -EINVAL for a
 * profile of which no resource name can be made. */
int weft_pools_plan(const struct weft_machine *machine, const struct weft_pool_settings *settings,
                    struct weft_pools *ret_pools, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_pools_done(struct weft_pools *pools);
WEFT_DEFINE_AUTO_VALUE(struct weft_pools, weft_pools_done)

/* "distributed", "packed"; 0 or -EINVAL. */
int weft_sharing_parse(const char *text, enum weft_sharing *ret_sharing);
/* "auto", "none", "single", "mixed"; 0 or -EINVAL. */
int weft_partitions_parse(const char *text, enum weft_partitions *ret_partitions);
const char *weft_partitions_name(enum weft_partitions partitions);

#endif
