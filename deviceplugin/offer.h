/* SPDX-License-Identifier: Apache-2.0 */
/* What a container would get for each device of one inventory: every text of an answer, made once
 * when the machine comes, so that a request only picks. Immutable; loop thread. Pure. */
#ifndef WEFT_DEVICEPLUGIN_OFFER_H
#define WEFT_DEVICEPLUGIN_OFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "deviceplugin/respond.h"
#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/kubelet/kubelet.h"
#include "pkg/machine/machine.h"
#include "pkg/pb/arena.h"

enum {
    WEFT_EXTRAS_NODES_MAX = 128, /* device nodes of the features: a rail has two of InfiniBand */
    WEFT_OFFER_PAIRS_MAX = 8,
    WEFT_STORAGE_MOUNTS = 2
};

/* What GPUDirect Storage reads beside its nodes: udev's database, its configuration. */
extern const char *const weft_storage_mounts[WEFT_STORAGE_MOUNTS];

enum weft_extra {
    WEFT_EXTRA_IMEX,
    WEFT_EXTRA_GDRCOPY,
    WEFT_EXTRA_GDS,
    WEFT_EXTRA_MOFED,
    WEFT_EXTRA_COUNT
};

/* What there is on this host beside the machine, for the features that the settings name. */
struct weft_extras {
    char *nodes[WEFT_EXTRAS_NODES_MAX]; /* device nodes that are there; container paths, owned */
    enum weft_extra node_of[WEFT_EXTRAS_NODES_MAX]; /* which feature needs it */
    size_t node_count;
    uint32_t imex_channels[WEFT_RESPOND_IMEX_MAX]; /* those of the settings that are there */
    size_t imex_channel_count;
    bool storage_mounts[WEFT_STORAGE_MOUNTS]; /* those of weft_storage_mounts that are there */
    bool cdi[WEFT_EXTRA_COUNT];               /* a CDI file of that feature was written */
};

/* Of CDI's kinds: "imex-channel", "gdrcopy", "gds", "mofed". Static storage. */
const char *weft_extra_class(enum weft_extra extra);
void weft_extras_done(struct weft_extras *extras);
WEFT_DEFINE_AUTO_VALUE(struct weft_extras, weft_extras_done)

struct weft_offer_device {
    const char *name;    /* what the container's runtime calls it */
    const char *cdi;     /* "vendor.com/gpu=name"; NULL: no CDI strategy */
    const char *volume;  /* container path that names it; NULL: no volume-mounts */
    const size_t *nodes; /* into weft_offer.nodes, ascending */
    size_t node_count;
    const size_t *mounts; /* into weft_offer.mounts */
    size_t mount_count;
};

struct weft_offer {
    struct weft_pb_arena arena;        /* holds all below */
    struct weft_offer_device *devices; /* as in the machine */
    /* Each once: devices share their GPU's node. Those from common on are every container's. */
    struct weft_kubelet_node *nodes;
    size_t node_count, common;
    struct weft_kubelet_mount *mounts; /* of single devices */
    size_t mount_count;
    const char *list_variable;     /* NULL: the runtime reads none */
    const char *list_value;        /* of it, if it is not the devices' names */
    const char *annotation_prefix; /* NULL: no annotations */
    bool cdi_devices;              /* the names as such */
    /* for every container */
    struct weft_kubelet_pair envs[WEFT_OFFER_PAIRS_MAX];
    size_t env_count;
    struct weft_kubelet_mount *common_mounts;
    size_t common_mount_count;
    const char **common_cdi;
    size_t common_cdi_count;
};

/* settings NULL: a variable and device nodes. extras NULL: none. Both and the machine are read
 * during the call only. -EINVAL for a device that CDI cannot name, -ENOMEM. */
int weft_offer_new(const struct weft_machine *machine, const struct weft_respond_settings *settings,
                   const struct weft_extras *extras, struct weft_offer **ret_offer,
                   struct weft_error *err) __attribute__((warn_unused_result));
void weft_offer_free(struct weft_offer *offer);
WEFT_DEFINE_AUTO(struct weft_offer, weft_offer_free)

/* How the vendor's runtime calls a device: its UUID, or "3", "3:1" for partition 1 of GPU 3. name
 * has WEFT_DEVICE_ID_MAX bytes. */
void weft_offer_name(const struct weft_machine *machine, const struct weft_device *device,
                     enum weft_respond_id id_strategy, char *name);
/* "k8s.device-plugin.nvidia.com", the vendor part of CDI names. Static storage. */
const char *weft_offer_cdi_vendor(const struct weft_machine *machine);
const char *weft_offer_cdi_vendor_of(const char *vendor);
/* May this text be the name of a CDI device? */
bool weft_offer_cdi_name_valid(const char *name);
bool weft_offer_cdi(unsigned strategies);
/* Is it NVIDIA's, or of a source that names no vendor? */
bool weft_offer_nvidia(const struct weft_machine *machine);

#endif
