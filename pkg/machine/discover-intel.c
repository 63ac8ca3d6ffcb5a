/* SPDX-License-Identifier: Apache-2.0 */
/* Intel GPUs (drivers i915 and xe), from sysfs alone. B is 0: sysfs shows that a card has Xe-Link
 * ports, but not where they lead; that takes the driver's netlink interface. Not yet run on
 * hardware: docs/hardware.md. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/machine/discover-sysfs.h"
#include "pkg/machine/host-internal.h"
#include "pkg/machine/machine-internal.h"

#define BY_PATH "/dev/dri/by-path"

enum { PATH_TEXT_MAX = 512, VENDOR_INTEL = 0x8086, TILES_MAX = 4, BYTES_PER_MIB = 1 << 20 };

/* What pci.ids calls the accelerators; the kernel has no names. */
static const struct {
    uint16_t device;
    const char *model;
} models[] = {
    {0x0bd5, "Intel Data Center GPU Max 1550"},
    {0x0bda, "Intel Data Center GPU Max 1100"},
    {0x56c0, "Intel Data Center GPU Flex 170"},
    {0x56c1, "Intel Data Center GPU Flex 140"},
    {0xe211, "Intel Arc Pro B60"},
    {0xe212, "Intel Arc Pro B50"},
};

static bool intel_probe(const struct weft_backend_options *options)
{
    return weft_backend_host_has(options, "/sys/bus/pci/drivers/i915") ||
           weft_backend_host_has(options, "/sys/bus/pci/drivers/xe");
}

/* A function that a container can be given: driven as a GPU, and not split into virtual functions,
 * which then are the devices. */
static bool is_usable(const struct weft_host_pci *pci)
{
    const bool driven = strcmp(pci->driver, "i915") == 0 || strcmp(pci->driver, "xe") == 0;
    return driven && pci->vf_count == 0 && pci->card >= 0;
}

static uint64_t read_size(const struct weft_host *host, const struct weft_host_pci *pci,
                          const char *attribute)
{
    char address[WEFT_BDF_TEXT_MAX];
    char path[PATH_TEXT_MAX];
    int64_t size = 0;
    (void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s",
                   weft_bdf_format(&pci->bdf, address), attribute);
    return weft_host_read_i64(host, path, &size) == 0 && size > 0 ? (uint64_t)size : 0;
}

/* xe tells each tile's memory, i915 (out of tree) that of the card. */
static uint64_t read_memory(const struct weft_host *host, const struct weft_host_pci *pci)
{
    char attribute[64];
    uint64_t bytes = 0;
    for (int tile = 0; tile < TILES_MAX; tile++) {
        (void)snprintf(attribute, sizeof(attribute), "tile%d/physical_vram_size_bytes", tile);
        bytes += read_size(host, pci, attribute);
    }
    if (bytes == 0) {
        (void)snprintf(attribute, sizeof(attribute), "drm/card%d/lmem_total_bytes", pci->card);
        bytes = read_size(host, pci, attribute);
    }
    return bytes / BYTES_PER_MIB;
}

/* "i915.iaf.31" or "iaf.31" below the function: the card has Xe-Link ports. */
static int has_xe_link(const struct weft_host *host, const struct weft_host_pci *pci)
{
    char address[WEFT_BDF_TEXT_MAX];
    char path[PATH_TEXT_MAX];
    weft_auto(weft_host_names_done) struct weft_host_names names = {0};
    (void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s",
                   weft_bdf_format(&pci->bdf, address));
    const int rc = weft_host_list(host, path, &names);
    for (size_t i = 0; rc == 0 && i < names.count; i++) {
        if (strncmp(names.names[i], "i915.iaf.", 9) == 0 ||
            strncmp(names.names[i], "iaf.", 4) == 0) {
            return 1;
        }
    }
    return rc == -ENOMEM ? rc : 0;
}

/* Intel's media and compute libraries look a card up by its PCI address, through udev's links. */
static int add_by_path(const struct weft_host *host, const struct weft_host_names *links,
                       struct weft_device *d)
{
    char prefix[WEFT_BDF_TEXT_MAX + 8], address[WEFT_BDF_TEXT_MAX];
    char path[WEFT_MACHINE_PATH_MAX];
    (void)snprintf(prefix, sizeof(prefix), "pci-%s-", weft_bdf_format(&d->bdf, address));
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < links->count; i++) {
        const int len = snprintf(path, sizeof(path), BY_PATH "/%s", links->names[i]);
        if (strncmp(links->names[i], prefix, strlen(prefix)) == 0 && len < (int)sizeof(path) &&
            weft_host_exists(host, path)) {
            rc = weft_machine_add_mount(d, path);
        }
    }
    return rc == -EFBIG ? 0 : rc;
}

/* The node of a card or its renderer; one that is not there makes the device useless. */
static int add_dri_node(const struct weft_host *host, const char *kind, int minor,
                        struct weft_device *d)
{
    char path[WEFT_MACHINE_PATH_MAX];
    (void)snprintf(path, sizeof(path), "/dev/dri/%s%d", kind, minor);
    weft_device_check_node(host, path, d);
    return weft_machine_add_node(d, path);
}

static int fill_device(const struct weft_host *host, const struct weft_host_pci *pci,
                       const struct weft_host_names *links, struct weft_device *d)
{
    d->bdf = pci->bdf;
    /* as Intel's own plugin names a whole card, so that a site can switch */
    (void)snprintf(d->id, sizeof(d->id), "card%d-0", pci->card);
    for (size_t i = 0; i < WEFT_ARRAY_LEN(models); i++) {
        if (models[i].device == pci->device) {
            (void)snprintf(d->model, sizeof(d->model), "%s", models[i].model);
        }
    }
    d->memory_mib = read_memory(host, pci);
    int rc = add_dri_node(host, "card", pci->card, d);
    if (rc == 0 && pci->render >= 0) {
        rc = add_dri_node(host, "renderD", pci->render, d);
    }
    return rc < 0 ? rc : add_by_path(host, links, d);
}

static int fill(const struct weft_host *host, const struct weft_host_pci *pcis, size_t count,
                struct weft_machine *m)
{
    weft_autofree char *vendor = weft_strdup("intel");
    if (vendor == NULL) {
        return -ENOMEM;
    }
    weft_free(m->vendor);
    m->vendor = weft_steal(&vendor);
    int rc = 0;
    size_t linked = 0;
    weft_auto(weft_host_names_done) struct weft_host_names links = {0};
    rc = weft_host_list(host, BY_PATH, &links) == -ENOMEM ? -ENOMEM : 0;
    for (size_t i = 0; rc >= 0 && i < count; i++) {
        rc = fill_device(host, &pcis[i], &links, &m->devices[i]);
        rc = rc < 0 ? rc : has_xe_link(host, &pcis[i]);
        linked += rc > 0;
    }
    if (rc >= 0 && linked > 1) {
        rc = weft_machine_warn(m,
                               "%zu cards have Xe-Link ports; sysfs does not show where they "
                               "lead, so they do not count",
                               linked);
    }
    return rc < 0 ? rc : 0;
}

/* Moves the usable functions to the front; returns how many there are. */
static size_t keep_usable(struct weft_host_pci *pcis, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_usable(&pcis[i])) {
            pcis[kept++] = pcis[i];
        }
    }
    return kept;
}

static int machine_of(const struct weft_host *host, struct weft_machine **ret_machine,
                      struct weft_error *err)
{
    weft_autofree struct weft_host_pci *pcis = NULL;
    size_t count = 0;
    int rc = weft_host_find_gpus(host, VENDOR_INTEL, &pcis, &count);
    if (rc < 0) {
        return weft_err_errno(err, -rc, "PCI functions of the host");
    }
    count = keep_usable(pcis, count);
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    rc = weft_host_machine(host, "this machine", count, &m, err);
    if (rc < 0) {
        return rc;
    }
    if (fill(host, pcis, count, m) < 0) {
        return weft_err_nomem(err);
    }
    rc = weft_host_wire(host, m, err);
    rc = rc < 0 ? rc : weft_machine_finish(m, err);
    if (rc == 0) {
        *ret_machine = weft_steal(&m);
    }
    return rc;
}

static int intel_enumerate(void *state, struct weft_machine **ret_machine, struct weft_error *err)
{
    struct weft_sysfs *s = state;
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    int rc = machine_of(s->host, &m, err);
    if (rc == 0) {
        weft_sysfs_mark_dead(s->host, m);
    }
    rc = rc < 0 ? rc : weft_sysfs_keep_lost(&s->last, &m, err);
    if (rc == 0) {
        *ret_machine = weft_steal(&m);
    }
    return rc;
}

const struct weft_backend weft_backend_intel = {.vendor = "intel",
                                                .probe = intel_probe,
                                                .open = weft_sysfs_open,
                                                .enumerate = intel_enumerate,
                                                .close = weft_sysfs_close};
