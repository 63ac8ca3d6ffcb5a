/* SPDX-License-Identifier: Apache-2.0 */
/* AMD GPUs, from sysfs alone: the KFD topology says what there is and how xGMI joins it, PCI where
 * it sits. */
#include <errno.h>

#include "pkg/machine/discover-sysfs.h"
#include "pkg/machine/host.h"
#include "pkg/machine/kfd.h"

static bool amd_probe(const struct weft_backend_options *options)
{
    return weft_backend_host_has(options, WEFT_KFD_ROOT) ||
           weft_backend_host_has(options, "/sys/module/amdgpu");
}

static int amd_enumerate(void *state, struct weft_machine **ret_machine, struct weft_error *err)
{
    struct weft_sysfs *s = state;
    weft_auto(weft_kfd_done) struct weft_kfd kfd = {0};
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    int rc = weft_kfd_read(s->host, WEFT_KFD_ROOT, "this machine", true, &kfd, err);
    if (rc < 0 && rc != -ENOENT) {
        return rc; /* -ENOENT: amdgpu without KFD: its GPUs are there, but not usable */
    }
    rc = weft_kfd_machine(s->host, &kfd, "this machine", &m, err);
    if (rc == 0) {
        weft_sysfs_mark_dead(s->host, m);
    }
    rc = rc < 0 ? rc : weft_sysfs_keep_lost(&s->last, &m, err);
    if (rc == 0) {
        *ret_machine = weft_steal(&m);
    }
    return rc;
}

const struct weft_backend weft_backend_amd = {.vendor = "amd",
                                              .probe = amd_probe,
                                              .open = weft_sysfs_open,
                                              .enumerate = amd_enumerate,
                                              .close = weft_sysfs_close};
