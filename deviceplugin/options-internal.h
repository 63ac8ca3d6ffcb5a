/* SPDX-License-Identifier: Apache-2.0 */
/* What flags and file share. */
#ifndef WEFT_DEVICEPLUGIN_OPTIONS_INTERNAL_H
#define WEFT_DEVICEPLUGIN_OPTIONS_INTERNAL_H

#include "deviceplugin/options.h"

struct weft_json;

enum weft_option {
    WEFT_OPTION_MACHINE,
    WEFT_OPTION_RESOURCE,
    WEFT_OPTION_PLUGIN_DIR,
    WEFT_OPTION_CONFIG,
    WEFT_OPTION_LISTEN,
    WEFT_OPTION_HOST_ROOT,
    WEFT_OPTION_DRIVER_ROOT,
    WEFT_OPTION_VENDOR,
    WEFT_OPTION_IGNORED_ERRORS,
    WEFT_OPTION_DRIVER_TIMEOUT,
    WEFT_OPTION_RESCAN,
    WEFT_OPTION_POLICY,
    WEFT_OPTION_PARTITIONS,
    WEFT_OPTION_SHARING,
    WEFT_OPTION_LOG_FORMAT,
    WEFT_OPTION_LOG_LEVEL,
    WEFT_OPTION_COUNT
};

/* Checks and sets one. -EINVAL with what is allowed, -ENOMEM. */
int weft_option_set(struct weft_options *options, enum weft_option option, const char *value,
                    struct weft_error *err) __attribute__((warn_unused_result));

/* options-resources.c: our file's "partitions", "sharing" and "renames". 0, -EINVAL, -ENOMEM. */
int weft_options_own_resources(const struct weft_json *root, struct weft_pool_settings *settings,
                               struct weft_error *err) __attribute__((warn_unused_result));
/* NVIDIA's "sharing" and "resources". */
int weft_options_nvidia_resources(const struct weft_json *root, struct weft_pool_settings *settings,
                                  struct weft_error *err) __attribute__((warn_unused_result));

#endif
