/* SPDX-License-Identifier: Apache-2.0 */
/* How a container is told which devices it was given: the strategies of NVIDIA's plugin
 * (deviceListStrategy), several of which may be used at once, and what goes with them. Here stand
 * the settings, as they are read from flags, environment and file; grant.h answers by them. */
#ifndef WEFT_DEVICEPLUGIN_RESPOND_H
#define WEFT_DEVICEPLUGIN_RESPOND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/mem.h"

enum { WEFT_RESPOND_IMEX_MAX = 16 /* IMEX channels of one container */ };

#define WEFT_RESPOND_CDI_FOLDER "/var/run/cdi"
#define WEFT_RESPOND_ANNOTATION_PREFIX "cdi.k8s.io/"

/* Bits. */
enum weft_respond_strategy {
    WEFT_RESPOND_ENVVAR = 1U << 0,          /* "envvar": a variable that the runtime reads */
    WEFT_RESPOND_VOLUME_MOUNTS = 1U << 1,   /* "volume-mounts": mounts that the runtime reads */
    WEFT_RESPOND_CDI_ANNOTATIONS = 1U << 2, /* "cdi-annotations": CDI names, for any kubelet */
    WEFT_RESPOND_CDI_CRI = 1U << 3,         /* "cdi-cri": CDI names, for kubelets since 1.28 */
};

/* By what a device is named to the container's runtime; the kubelet's ids stay the UUIDs. */
enum weft_respond_id { WEFT_RESPOND_UUID, WEFT_RESPOND_INDEX, WEFT_RESPOND_ID_COUNT };

/* Zero but for pass_device_specs is the default. Strings are owned, and paths are the host's. */
struct weft_respond_settings {
    unsigned strategies; /* of enum weft_respond_strategy; 0: envvar alone */
    enum weft_respond_id id_strategy;
    bool pass_device_specs; /* device nodes too; other vendors than NVIDIA's always have them */
    char *driver_root;      /* the driver's files, "/run/nvidia/driver"; NULL: "/" */
    char *dev_root;         /* the folder whose /dev has the nodes; NULL: as driver_root */
    char *cdi_folder;       /* where CDI files are written; NULL: WEFT_RESPOND_CDI_FOLDER */
    char *cdi_hook; /* NVIDIA's nvidia-cdi-hook, or nvidia-ctk, as the runtime finds it; NULL: the
                       usual places are looked at */
    char *annotation_prefix; /* NULL: WEFT_RESPOND_ANNOTATION_PREFIX */
    bool gdrcopy, gds, mofed;
    uint32_t imex_channels[WEFT_RESPOND_IMEX_MAX];
    size_t imex_channel_count;
    bool imex_required; /* a missing channel is an error, else it is left out */
};

/* Frees what the settings own; the struct is zero afterwards. */
void weft_respond_settings_done(struct weft_respond_settings *settings);

/* The host's folder whose /dev has the nodes: "" for the root.
 * Borrowed from the settings. */
const char *weft_respond_dev_root(const struct weft_respond_settings *settings);
/* Likewise where the driver's files are. */
const char *weft_respond_driver_root(const struct weft_respond_settings *settings);

/* "envvar,cdi-cri" to bits: 0, or -EINVAL for another word or none. */
int weft_respond_parse_strategies(const char *text, unsigned *ret_strategies)
    __attribute__((warn_unused_result));
/* The word of one bit. Static storage. */
const char *weft_respond_strategy_name(enum weft_respond_strategy strategy);
/* "uuid", "index"; 0 or -EINVAL. */
int weft_respond_parse_id(const char *text, enum weft_respond_id *ret_id)
    __attribute__((warn_unused_result));

#endif
