/* SPDX-License-Identifier: Apache-2.0 */
/* A machine as the labels of NVIDIA's GPU feature discovery (v0.20): the same keys and values, so
 * that pods which select on them go where they went. Pure: a machine and settings in, text out.
 * Where GPU feature discovery's answer depends on chance (several models on one node) or would not
 * be a label (too long), the first model by index and a shortened value stand. */
#ifndef WEFT_DEVICEPLUGIN_FEATURES_H
#define WEFT_DEVICEPLUGIN_FEATURES_H

#include "pkg/base/error.h"

struct weft_buf;
struct weft_machine;
struct weft_pool_settings;
struct weft_vgpu;

/* What the machine does not say. */
struct weft_feature_settings {
    const struct weft_pool_settings *pools; /* partitions and sharing */
    const char *machine_type;               /* of the computer; NULL: unknown */
    const struct weft_vgpu *vgpu;           /* what a GPU of it is; NULL: unknown */
};

/* Appends a line "key=value" for each label, by key; none for a machine without NVIDIA GPUs.
 * -EINVAL for settings that do not go with the machine, -EFBIG, -ENOMEM. */
int weft_features_build(const struct weft_machine *machine,
                        const struct weft_feature_settings *settings, struct weft_buf *buf,
                        struct weft_error *err) __attribute__((warn_unused_result));

#endif
