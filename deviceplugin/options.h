/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin was told to do: flags over environment over file over defaults. The file is our
 * own (kind DevicePluginConfig) or NVIDIA's (version: v1), of which the fields that mean the same
 * here are read; any other field is an error that names it and its line, so that nothing is
 * ignored in silence. Does file I/O. */
#ifndef WEFT_DEVICEPLUGIN_OPTIONS_H
#define WEFT_DEVICEPLUGIN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "deviceplugin/pools.h"
#include "pkg/allocator/allocator.h"
#include "pkg/base/error.h"
#include "pkg/base/log.h"
#include "pkg/base/mem.h"

enum { WEFT_CONFIG_MAX = 1 << 20 }; /* bytes of a config file */

struct weft_options {
    char *machine;                   /* a recorded one; NULL: ask the vendors' drivers */
    struct weft_pool_settings pools; /* which resources there are */
    char *host_root;                 /* NULL: "/" */
    char *driver_root;               /* NULL: none */
    char *vendor;                    /* NULL: all */
    char *ignored_errors;            /* NULL: the backend's own list */
    int64_t driver_timeout_ns, rescan_ns;
    char *plugin_dir;
    char *config; /* NULL: none */
    char *listen; /* NULL: no metrics and probes */
    enum weft_policy policy;
    enum weft_log_format log_format;
    enum weft_log_level log_level;
    bool help, version; /* asked for; then nothing else is checked */
};

/* argv as main got it. env looks a variable up (getenv). The caller owns *ret_options' content
 * (weft_options_done). Errors: -EINVAL for wrong use, with a message for a person; -EBADMSG for a
 * file that is not understood; -errno of the file; -ENOMEM. */
int weft_options_read(int argc, char **argv, char *(*env)(const char *name),
                      struct weft_options *ret_options, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_options_done(struct weft_options *options);
WEFT_DEFINE_AUTO_VALUE(struct weft_options, weft_options_done)

/* Applies a config file's text to options. name is for messages. */
int weft_options_apply_file(const char *text, size_t len, const char *name,
                            struct weft_options *options, struct weft_error *err)
    __attribute__((warn_unused_result));

/* An extended resource name as the kubelet accepts it: <domain>/<name>, at most 63 bytes after the
 * slash, domain not kubernetes.io or below it. */
bool weft_resource_valid(const char *name);

/* What a vendor's own device plugin calls its devices; "nvidia.com/gpu" for "" and unknown ones.
 * Static storage. */
const char *weft_resource_of_vendor(const char *vendor);

#endif
