/* SPDX-License-Identifier: Apache-2.0 */
/* Which files of NVIDIA's driver a container needs that no NVIDIA runtime prepares: libraries of
 * the kernel module's version, tools, sockets of daemons. They go into the CDI file. Reads folders:
 * when the driver's version is new, not in a request. */
#ifndef WEFT_DEVICEPLUGIN_DRIVER_FILES_H
#define WEFT_DEVICEPLUGIN_DRIVER_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

enum { WEFT_DRIVER_FILES_MAX = 512, WEFT_DRIVER_FOLDERS_MAX = 2 };

struct weft_driver_file {
    char *host, *container; /* paths; the host's is below the driver's root */
    bool socket;            /* or a folder of such: programs write to it */
};

struct weft_driver_files {
    struct weft_driver_file *items;
    size_t count, cap;
    char *folders[WEFT_DRIVER_FOLDERS_MAX]; /* of libraries, as the container sees them */
    size_t folder_count;
};

/* view: where the driver's root is seen here; root: what it is called on the host ("" for "/").
 * version is the driver's. A library's other names (libcuda.so.1) are files of their own here, so
 * that no program needs to make links in the container. The caller owns *ret_files. -ENOENT: no
 * libcuda of that version; -EFBIG, -ENOMEM, errors of the folders. */
int weft_driver_files_find(const char *view, const char *root, const char *version,
                           struct weft_driver_files *ret_files, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_driver_files_done(struct weft_driver_files *files);
WEFT_DEFINE_AUTO_VALUE(struct weft_driver_files, weft_driver_files_done)

#endif
