/* SPDX-License-Identifier: Apache-2.0 */
/* AMD GPUs, from sysfs alone: the KFD topology says what there is and how xGMI joins it, PCI where
 * it sits. */
#include <errno.h>
#include <stdio.h>

#include "pkg/base/map.h"
#include "pkg/machine/discover-sysfs.h"
#include "pkg/machine/host.h"
#include "pkg/machine/kfd.h"

static bool amd_probe(const struct weft_backend_options *options)
{
    return weft_backend_host_has(options, WEFT_KFD_ROOT) ||
           weft_backend_host_has(options, "/sys/module/amdgpu");
}

/* Remembers for the next look how many errors each GPU had. */
static int remember_errors(struct weft_sysfs *s, const struct weft_machine *m)
{
    if (s->errors == NULL) {
        s->errors = weft_map_new(WEFT_MACHINE_DEVICES_MAX);
    }
    int rc = s->errors == NULL ? -ENOMEM : 0;
    for (size_t i = 0; rc >= 0 && i < m->device_count; i++) {
        char address[WEFT_BDF_TEXT_MAX];
        const struct weft_bdf *bdf = &m->devices[i].bdf;
        rc = weft_map_put(s->errors, weft_bdf_format(bdf, address),
                          (size_t)weft_kfd_uncorrectable(s->host, bdf));
    }
    return rc == -EFBIG || rc > 0 ? 0 : rc; /* more GPUs came and went than there are places */
}

/* Errors that came since the last look took programs with them. The driver retires the pages, so
 * the GPU is well again if no more come. All partitions of a GPU share its memory controllers. */
static void mark_new_errors(const struct weft_sysfs *s, struct weft_machine *m)
{
    for (size_t i = 0; s->errors != NULL && i < m->device_count; i++) {
        struct weft_device *d = &m->devices[i];
        char address[WEFT_BDF_TEXT_MAX];
        size_t before = 0;
        const uint64_t now = weft_kfd_uncorrectable(s->host, &d->bdf);
        if (d->healthy && weft_map_get(s->errors, weft_bdf_format(&d->bdf, address), &before) &&
            now > before) {
            d->healthy = false;
            (void)snprintf(d->health_reason, sizeof(d->health_reason),
                           "%llu new uncorrectable memory errors",
                           (unsigned long long)(now - before));
        }
    }
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
        mark_new_errors(s, m);
        rc = remember_errors(s, m) < 0 ? weft_err_nomem(err) : 0;
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
