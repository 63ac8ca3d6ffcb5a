/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded KFD topologies: a folder, or a tar archive (also .tar.gz) of one or several. Made with
 *   tar czhf kfd.tar.gz /sys/class/kfd/kfd/topology
 * A recording that also has the host's /sys/bus/pci, /sys/devices and /sys/class/net is read with
 * its PCI tree and NICs. */
#ifndef WEFT_MACHINE_READ_KFD_H
#define WEFT_MACHINE_READ_KFD_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/base/error.h"

struct weft_machine;

/* Is this a tar archive, or gzip data? */
bool weft_kfd_is_archive(const char *bytes, size_t len);
/* pick names one of several topologies by its path in the archive, or by a leading folder that no
 * other has; NULL or "" where there is one only. -EINVAL with what is wrong, and with the choices
 * where there are several; -EFBIG, -ENOMEM. The caller owns *ret_machine. No I/O. */
int weft_kfd_read_archive(const char *bytes, size_t len, const char *name, const char *pick,
                          struct weft_machine **ret_machine, struct weft_error *err)
    __attribute__((warn_unused_result));
/* The same for a folder. Does I/O. */
int weft_kfd_read_folder(const char *path, const char *pick, struct weft_machine **ret_machine,
                         struct weft_error *err) __attribute__((warn_unused_result));

#endif
