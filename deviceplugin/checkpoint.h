/* SPDX-License-Identifier: Apache-2.0 */
/* What the kubelet's checkpoint of its device manager says of a resource. It is the only place
 * where a plugin can see that the kubelet asks another one: a later registration replaces the
 * devices, and the stream of the earlier plugin stays open. It is never written to. */
#ifndef WEFT_DEVICEPLUGIN_CHECKPOINT_H
#define WEFT_DEVICEPLUGIN_CHECKPOINT_H

#include <stddef.h>

#include "pkg/base/error.h"

#define WEFT_CHECKPOINT_FILE "kubelet_internal_checkpoint" /* in the plugin folder */

enum { WEFT_CHECKPOINT_MAX = 4 << 20 /* bytes that are read */ };

/* One of the ids that the kubelet has registered for the resource, into id (size bytes); "" if
 * there is none, or none that fits. -EINVAL for a text that is not such a checkpoint; -ENOMEM. */
int weft_checkpoint_device(const char *text, size_t len, const char *resource, char *id,
                           size_t size, struct weft_error *err) __attribute__((warn_unused_result));

#endif
