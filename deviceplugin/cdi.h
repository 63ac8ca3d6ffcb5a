/* SPDX-License-Identifier: Apache-2.0 */
/* CDI files: what a container's runtime does for each device that an answer names
 * (https://github.com/cncf-tags/container-device-interface, SPEC.md). One file a kind, called as
 * NVIDIA's plugin calls its own, which it replaces on a switch: two files that name one device
 * would make the runtime refuse both. They outlive the plugin, as containers that it allocated may
 * be started again; only weft_cdi_remove removes them. */
#ifndef WEFT_DEVICEPLUGIN_CDI_H
#define WEFT_DEVICEPLUGIN_CDI_H

#include "pkg/base/error.h"

struct weft_buf;
struct weft_driver_files;
struct weft_extras;
struct weft_machine;
struct weft_respond_settings;

enum {
    WEFT_CDI_FILE_MAX = 8 << 20,
    WEFT_CDI_PATH_MAX = 512 /* of a file, with its NUL */
};

/* All borrowed. */
struct weft_cdi {
    const struct weft_machine *machine; /* the node's, not one resource's */
    const struct weft_respond_settings *settings;
    const struct weft_extras *extras;
    const struct weft_driver_files *files; /* NULL: none are needed */
    const char *hook;                      /* NVIDIA's hook on the host; NULL: there is none */
};

/* The file of the kind "<vendor>/gpu" into an empty buffer: each device by id and by index. Pure. 0
 * with nothing in it: no device has anything to let in. -EINVAL for a device that is healthy and
 * has nothing to let in, or that CDI cannot name; -ENOMEM, -EFBIG. */
int weft_cdi_write_devices(const struct weft_cdi *cdi, struct weft_buf *buf, struct weft_error *err)
    __attribute__((warn_unused_result));
/* The file of a feature (enum weft_extra) likewise: a device each IMEX channel, else one, "all". */
int weft_cdi_write_extra(const struct weft_cdi *cdi, int extra, struct weft_buf *buf)
    __attribute__((warn_unused_result));

/* "<folder>/k8s.device-plugin.nvidia.com-gpu.json"; path has WEFT_CDI_PATH_MAX bytes and is
 * returned. */
const char *weft_cdi_path(const char *folder, const char *vendor, const char *kind, char *path);
/* Replaces one file whole, for everybody to read; makes the folder if it is not there. */
int weft_cdi_save(const char *path, const struct weft_buf *text, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Removes all files that any vendor's devices may have; what is not there is removed. Returns how
 * many there were, or the error of the first that stays. */
int weft_cdi_remove(const char *folder, struct weft_error *err) __attribute__((warn_unused_result));

#endif
