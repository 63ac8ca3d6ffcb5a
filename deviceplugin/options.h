/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin was told to do: flags over environment over file over defaults. The file is our
 * own (kind DevicePluginConfig) or NVIDIA's (version: v1). Ours must be understood whole; of
 * NVIDIA's, what weft does not do is named in a note, and is an error where a pod could be given
 * something else than the file promises. Does file I/O. */
#ifndef WEFT_DEVICEPLUGIN_OPTIONS_H
#define WEFT_DEVICEPLUGIN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "deviceplugin/health.h"
#include "deviceplugin/pools.h"
#include "deviceplugin/respond.h"
#include "pkg/allocator/allocator.h"
#include "pkg/base/error.h"
#include "pkg/base/log.h"
#include "pkg/base/mem.h"

struct weft_buf;

enum {
    WEFT_CONFIG_MAX = 1 << 20,  /* bytes of a config file */
    WEFT_OPTION_NOTES_MAX = 64, /* things that are named as not done */
};

/* How the kubelet comes to know the plugin. */
enum weft_registration {
    WEFT_REGISTRATION_CLASSIC, /* it is told: Register */
    WEFT_REGISTRATION_WATCHER, /* it finds a socket in registry_dir */
    WEFT_REGISTRATION_COUNT
};

/* GPU feature labels (features.h). */
struct weft_label_options {
    char *file;         /* NFD's local feature file to write; NULL: none */
    char *machine_type; /* the file whose first line is the label gpu.machine */
    bool no_timestamp;
};

struct weft_options {
    char *machine;                        /* a recorded one; NULL: ask the vendors' drivers */
    struct weft_pool_settings pools;      /* which resources there are */
    struct weft_respond_settings respond; /* what Allocate answers */
    struct weft_label_options labels;
    char *host_root;                        /* NULL: "/" */
    char *container_driver_root;            /* where the plugin sees the driver's files; NULL:
                                               respond.driver_root */
    char *vendor;                           /* NULL: all */
    struct weft_health_settings health;     /* made of the next three, too */
    char *ignored_errors;                   /* NULL: the vendor's own list */
    char *health_disabled, *health_enabled; /* as NVIDIA's plugin has them; NULL: none */
    int64_t driver_timeout_ns, rescan_ns;
    char *plugin_dir;
    enum weft_registration registration;
    char *registry_dir; /* of the kubelet's plugin watcher */
    char *config;       /* NULL: none */
    char *listen;       /* NULL: no metrics and probes */
    enum weft_policy policy;
    enum weft_log_format log_format;
    enum weft_log_level log_level;
    char *notes[WEFT_OPTION_NOTES_MAX]; /* one sentence each: what was said and is not done */
    size_t note_count;
    bool help, version, validate; /* asked for; after the first two nothing else is checked */
    bool uninstall;               /* asked for: remove what outlives the program, and end */
};

/* argv as main got it. env looks a variable up (getenv). The caller owns *ret_options' content
 * (weft_options_done). Errors: -EINVAL for wrong use, with a message for a person; -EBADMSG for a
 * file that is not understood; -errno of the file; -ENOMEM. */
int weft_options_read(int argc, char *const *argv, char *(*env)(const char *name),
                      struct weft_options *ret_options, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_options_done(struct weft_options *options);
WEFT_DEFINE_AUTO_VALUE(struct weft_options, weft_options_done)

/* Applies a config file's text to options. name is for messages. */
int weft_options_apply_file(const char *text, size_t len, const char *name,
                            struct weft_options *options, struct weft_error *err)
    __attribute__((warn_unused_result));

/* Appends the options as our own config file, every field that has a value: reading it gives the
 * same options again. Check buf->status. -ENOMEM. */
int weft_options_write(const struct weft_options *options, struct weft_buf *buf)
    __attribute__((warn_unused_result));
/* Appends a line or more for each flag. */
void weft_options_help(struct weft_buf *buf);

/* The first option that differs and can be set at a start only, as the file calls it; NULL if there
 * is none. */
const char *weft_options_fixed_difference(const struct weft_options *a,
                                          const struct weft_options *b);

/* Exchanges the two, but for texts that can be set at a start only: those stay where they are, as
 * others point to them. They must be equal (weft_options_fixed_difference). */
void weft_options_swap(struct weft_options *a, struct weft_options *b);

/* An extended resource name as the kubelet accepts it: <domain>/<name>, at most 63 bytes after the
 * slash, domain not kubernetes.io or below it, nor beginning with "requests."
 * (IsExtendedResourceName in Kubernetes' pkg/apis/core/v1/helper). */
bool weft_resource_valid(const char *name);

/* What a vendor's own device plugin calls its devices; "nvidia.com/gpu" for "" and unknown ones.
 * Static storage. */
const char *weft_resource_of_vendor(const char *vendor);

#endif
