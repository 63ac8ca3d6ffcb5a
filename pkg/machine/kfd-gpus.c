/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes of a KFD topology are GPUs, which of those are partitions of one GPU, and which DRM
 * devices belong to them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/machine/host-internal.h"
#include "pkg/machine/kfd-internal.h"

#define PLATFORM_DEVICES "/sys/devices/platform"
#define XCP_PREFIX "amdgpu_xcp" /* then "_5", or ".5" as some kernels name it (ROCm/k8s 157) */

enum { PATH_TEXT_MAX = 512, XCPS_MAX = WEFT_MACHINE_DEVICES_MAX };

static struct weft_bdf bdf_of(const struct weft_kfd_node *node)
{
    const uint64_t at = node->location_id; /* PCI_DEVID: bus << 8 | device << 3 | function */
    return (struct weft_bdf){.known = true,
                             .domain = (uint32_t)node->domain,
                             .bus = (uint8_t)(at >> 8 & 0xff),
                             .device = (uint8_t)(at >> 3 & 0x1f),
                             .function = (uint8_t)(at & 7)};
}

static bool is_gpu(const struct weft_kfd_node *node)
{
    return node->permitted && node->simd_count > 0 &&
           (node->vendor_id == 0 || node->vendor_id == WEFT_PCI_VENDOR_AMD);
}

static bool same_card(const struct weft_bdf *a, const struct weft_bdf *b)
{
    return a->domain == b->domain && a->bus == b->bus && a->device == b->device;
}

static int add_gpu(struct weft_kfd_gpus *gpus, struct weft_kfd_gpu gpu)
{
    void *array = gpus->items;
    const int rc = weft_array_reserve(&array, &gpus->cap, gpus->count + 1, sizeof(*gpus->items),
                                      WEFT_MACHINE_DEVICES_MAX);
    gpus->items = array;
    if (rc == 0) {
        gpus->items[gpus->count++] = gpu;
    }
    return rc;
}

static bool has_function(const struct weft_host *host, const struct weft_bdf *bdf)
{
    char text[WEFT_BDF_TEXT_MAX];
    char path[PATH_TEXT_MAX];
    (void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", weft_bdf_format(bdf, text));
    return weft_host_exists(host, path);
}

/* Partitions of one GPU are nodes with its bus and device; the function counts them (newer
 * kernels) or is 0 for all. A function that PCI really has is a GPU of its own (SR-IOV). */
static bool may_be_partition(const struct weft_host *host, const struct weft_kfd_node *node)
{
    const struct weft_bdf bdf = bdf_of(node);
    return node->gfx_target_version >= WEFT_KFD_GFX_PARTITIONED &&
           (bdf.function == 0 || !has_function(host, &bdf));
}

static int refuse_twins(const struct weft_kfd_gpu *a, const struct weft_kfd_gpu *b,
                        const char *name, struct weft_error *err)
{
    char text[WEFT_BDF_TEXT_MAX];
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                        "%.100s: nodes %u and %u have one PCI address, %s, and are no GPU that can "
                        "be partitioned",
                        name, a->node->number, b->node->number, weft_bdf_format(&a->bdf, text));
}

/* Finds gpus[i]'s place among the partitions of its GPU, or sets its own number. */
static int place(struct weft_kfd_gpus *gpus, size_t i, int *physical, const char *name,
                 struct weft_error *err)
{
    struct weft_kfd_gpu *gpu = &gpus->items[i];
    for (size_t j = 0; j < i; j++) {
        struct weft_kfd_gpu *before = &gpus->items[j];
        if (!same_card(&before->bdf, &gpu->bdf)) {
            continue;
        }
        if (gpu->partitionable && before->partitionable) {
            before->is_partition = gpu->is_partition = true;
            gpu->parent = before->parent;
            gpu->partition++;
        } else if (before->bdf.function == gpu->bdf.function) {
            return refuse_twins(before, gpu, name, err);
        }
    }
    if (gpu->partition == 0) {
        gpu->parent = (*physical)++;
    }
    return 0;
}

static void finish_partitions(struct weft_kfd_gpus *gpus)
{
    for (size_t i = 0; i < gpus->count; i++) {
        struct weft_kfd_gpu *gpu = &gpus->items[i];
        for (size_t j = 0; j < gpus->count; j++) {
            gpu->siblings += gpus->items[j].parent == gpu->parent;
        }
    }
    for (size_t i = 0; i < gpus->count; i++) {
        if (gpus->items[i].is_partition) {
            gpus->items[i].bdf.function = 0; /* the GPU's own: partitions have no function */
        }
    }
}

/* Functions that amdgpu drives, but KFD does not know: a GPU whose compute part did not start. */
static int add_strangers(const struct weft_host *host, struct weft_kfd_gpus *gpus, int physical)
{
    weft_autofree struct weft_host_pci *pcis = NULL;
    size_t count = 0;
    int rc = weft_host_find_gpus(host, WEFT_PCI_VENDOR_AMD, &pcis, &count);
    const size_t known = gpus->count;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        bool found = strcmp(pcis[i].driver, "amdgpu") != 0;
        for (size_t j = 0; j < known && !found; j++) {
            found = weft_bdf_cmp(&gpus->items[j].bdf, &pcis[i].bdf) == 0;
        }
        if (!found) {
            rc = add_gpu(gpus, (struct weft_kfd_gpu){.bdf = pcis[i].bdf,
                                                     .parent = physical++,
                                                     .siblings = 1,
                                                     .card = pcis[i].card,
                                                     .render = pcis[i].render});
        }
    }
    return rc;
}

/* A DRM device that is not below a PCI function: "cardN" and "renderDN" in the folder path. */
static int read_drm(const struct weft_host *host, const char *path, int *card, int *render)
{
    weft_auto(weft_host_names_done) struct weft_host_names names = {0};
    *card = *render = -1;
    const int rc = weft_host_list(host, path, &names);
    for (size_t i = 0; rc == 0 && i < names.count; i++) {
        uint64_t minor = 0;
        const struct weft_str s = weft_str(names.names[i]);
        const size_t skip = weft_str_starts(s, "card")      ? strlen("card")
                            : weft_str_starts(s, "renderD") ? strlen("renderD")
                                                            : 0;
        if (skip == 0 ||
            weft_parse_u64((struct weft_str){s.data + skip, s.len - skip}, INT32_MAX, &minor) < 0) {
            continue;
        }
        *(skip == strlen("card") ? card : render) = (int)minor;
    }
    return rc == -ENOMEM ? rc : 0;
}

static void give_platform(struct weft_kfd_gpus *gpus, const char *name, int card, int render)
{
    for (size_t i = 0; i < gpus->count; i++) {
        struct weft_kfd_gpu *gpu = &gpus->items[i];
        if (gpu->is_partition && render > 0 && gpu->render == render) {
            (void)snprintf(gpu->platform, sizeof(gpu->platform), "%s", name);
            gpu->card = card;
        }
    }
}

/* Partitions but the first have a platform device each, which has their DRM device. */
static int find_platform_devices(const struct weft_host *host, struct weft_kfd_gpus *gpus)
{
    weft_auto(weft_host_names_done) struct weft_host_names names = {0};
    int rc = weft_host_list(host, PLATFORM_DEVICES, &names);
    if (rc < 0) {
        return rc == -ENOMEM ? rc : 0;
    }
    for (size_t i = 0; rc == 0 && i < names.count; i++) {
        char path[PATH_TEXT_MAX];
        int card = -1;
        int render = -1;
        const size_t len = strlen(names.names[i]);
        if (strncmp(names.names[i], XCP_PREFIX, strlen(XCP_PREFIX)) != 0 ||
            len >= WEFT_DEVICE_ID_MAX) {
            continue;
        }
        (void)snprintf(path, sizeof(path), PLATFORM_DEVICES "/%s/drm", names.names[i]);
        rc = read_drm(host, path, &card, &render);
        if (rc == 0) {
            give_platform(gpus, names.names[i], card, render);
        }
    }
    return rc;
}

/* The card of a GPU, and of a first partition, is below its PCI function. */
static int find_cards(const struct weft_host *host, struct weft_kfd_gpus *gpus)
{
    for (size_t i = 0; i < gpus->count; i++) {
        struct weft_kfd_gpu *gpu = &gpus->items[i];
        struct weft_host_pci pci;
        const bool own = gpu->node != NULL && (!gpu->is_partition || gpu->partition == 0);
        const int rc = own ? weft_host_pci(host, &gpu->bdf, &pci) : -ENOENT;
        if (rc == -ENOMEM) {
            return rc;
        }
        if (rc == 0) {
            gpu->card = pci.card;
            gpu->render = gpu->render > 0 ? gpu->render : pci.render;
        }
    }
    return 0;
}

static int list_gpus(const struct weft_host *host, const struct weft_kfd *kfd, const char *name,
                     struct weft_kfd_gpus *gpus, struct weft_error *err)
{
    int physical = 0;
    for (size_t i = 0; i < kfd->node_count; i++) {
        const struct weft_kfd_node *node = &kfd->nodes[i];
        if (!is_gpu(node)) {
            continue;
        }
        const uint64_t render = node->render_minor;
        int rc = add_gpu(gpus, (struct weft_kfd_gpu){
                                   .node = node,
                                   .bdf = bdf_of(node),
                                   .partitionable = may_be_partition(host, node),
                                   .card = -1,
                                   .render = render > 0 && render <= INT32_MAX ? (int)render : -1});
        rc = rc < 0 ? rc : place(gpus, gpus->count - 1, &physical, name, err);
        if (rc < 0) {
            return rc;
        }
    }
    finish_partitions(gpus);
    return add_strangers(host, gpus, physical);
}

int weft_kfd_find_gpus(const struct weft_host *host, const struct weft_kfd *kfd, const char *name,
                       struct weft_kfd_gpus *ret_gpus, struct weft_error *err)
{
    weft_auto(weft_kfd_gpus_done) struct weft_kfd_gpus gpus = {0};
    int rc = list_gpus(host, kfd, name, &gpus, err);
    rc = rc < 0 ? rc : find_cards(host, &gpus);
    rc = rc < 0 ? rc : find_platform_devices(host, &gpus);
    if (rc < 0) {
        return rc == -EINVAL ? rc : weft_err_errno(err, -rc, "%.100s: GPUs of the host", name);
    }
    *ret_gpus = gpus;
    gpus = (struct weft_kfd_gpus){0};
    return 0;
}

void weft_kfd_gpus_done(struct weft_kfd_gpus *gpus)
{
    weft_free(gpus->items);
    *gpus = (struct weft_kfd_gpus){0};
}
