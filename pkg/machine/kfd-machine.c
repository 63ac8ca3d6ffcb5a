/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a machine from a KFD topology and what else the host shows of AMD GPUs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/machine/host-internal.h"
#include "pkg/machine/kfd-internal.h"
#include "pkg/machine/machine-internal.h"

enum { PATH_TEXT_MAX = 512, WORD_MAX = 16, BYTES_PER_MIB = 1 << 20 };

/* What pci.ids calls the accelerators that are sold; the kernel only has code names. */
static const struct {
    uint16_t device;
    const char *model;
} models[] = {
    {0x6860, "AMD Radeon Instinct MI25"},  {0x66a1, "AMD Instinct MI50/MI60"},
    {0x738c, "AMD Instinct MI100"},        {0x7408, "AMD Instinct MI250X"},
    {0x740c, "AMD Instinct MI250X/MI250"}, {0x740f, "AMD Instinct MI210"},
    {0x74a0, "AMD Instinct MI300A"},       {0x74a1, "AMD Instinct MI300X"},
    {0x74a2, "AMD Instinct MI308X"},       {0x74a5, "AMD Instinct MI325X"},
    {0x75a0, "AMD Instinct MI350X"},       {0x75a3, "AMD Instinct MI355X"},
};

/* A visible copy that keeps single blanks: models have them. */
static void copy_words(char *to, size_t size, const char *text)
{
    size_t n = 0;
    for (; *text != '\0' && n + 1 < size; text++) {
        to[n++] = (*text >= ' ' && *text <= '~') ? *text : '?';
    }
    to[n] = '\0';
}

static int read_attribute(const struct weft_host *host, const struct weft_bdf *bdf,
                          const char *name, char *text, size_t size)
{
    char address[WEFT_BDF_TEXT_MAX];
    char path[PATH_TEXT_MAX];
    (void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", weft_bdf_format(bdf, address),
                   name);
    return weft_host_read(host, path, text, size);
}

static void set_model(const struct weft_host *host, const struct weft_kfd_gpu *gpu,
                      struct weft_device *d)
{
    char text[sizeof(d->model)];
    if (read_attribute(host, &gpu->bdf, "product_name", text, sizeof(text)) > 0) {
        copy_words(d->model, sizeof(d->model), text);
        return;
    }
    for (size_t i = 0; gpu->node != NULL && i < WEFT_ARRAY_LEN(models); i++) {
        if (models[i].device == gpu->node->device_id) {
            copy_words(d->model, sizeof(d->model), models[i].model);
        }
    }
}

/* gfx_target_version: major * 10000 + minor * 100 + stepping, shown as "gfx", decimal and two
 * hexadecimal digits: 90010 is gfx90a. */
static void set_capability(struct weft_device *d, uint64_t version)
{
    if (version > 0) {
        (void)snprintf(d->capability, sizeof(d->capability), "gfx%u%x%x",
                       (unsigned)(version / 10000 % 100), (unsigned)(version / 100 % 100),
                       (unsigned)(version % 100));
    }
}

static void lower(char *text)
{
    for (; *text != '\0'; text++) {
        *text = (char)(*text >= 'A' && *text <= 'Z' ? *text - 'A' + 'a' : *text);
    }
}

/* "cpx_nps4", as AMD's plugin names resources. A recording without the mode has as many partitions
 * as its mode says; CPX is one compute die in each. */
static void set_profile(const struct weft_host *host, const struct weft_kfd_gpu *gpu,
                        struct weft_device *d)
{
    char mode[WORD_MAX];
    char memory[WORD_MAX];
    if (read_attribute(host, &gpu->bdf, "current_compute_partition", mode, sizeof(mode)) <= 0) {
        static const char *const by_count[] = {"part", "spx", "dpx", "tpx", "qpx"};
        const size_t n = (size_t)gpu->siblings;
        const bool one_die = gpu->node->num_xcc == 1 || n >= WEFT_ARRAY_LEN(by_count);
        (void)snprintf(mode, sizeof(mode), "%s", one_die ? "cpx" : by_count[n]);
    }
    const int rc =
        read_attribute(host, &gpu->bdf, "current_memory_partition", memory, sizeof(memory));
    (void)snprintf(d->profile, sizeof(d->profile), "%s%s%s", mode, rc > 0 ? "_" : "",
                   rc > 0 ? memory : "");
    lower(d->profile);
}

static void set_id(const struct weft_kfd_gpu *gpu, struct weft_device *d)
{
    char address[WEFT_BDF_TEXT_MAX];
    (void)weft_bdf_format(&gpu->bdf, address);
    if (gpu->platform[0] != '\0') {
        (void)snprintf(d->id, sizeof(d->id), "%s", gpu->platform);
    } else if (gpu->is_partition && gpu->partition > 0) {
        (void)snprintf(d->id, sizeof(d->id), "%s-p%d", address, gpu->partition);
    } else {
        (void)snprintf(d->id, sizeof(d->id), "%s", address);
    }
}

static int add_dri_node(const struct weft_host *host, struct weft_device *d, const char *kind,
                        int minor)
{
    char path[WEFT_MACHINE_PATH_MAX];
    if (minor < 0) {
        return 0;
    }
    (void)snprintf(path, sizeof(path), "/dev/dri/%s%d", kind, minor);
    weft_device_check_node(host, path, d);
    return weft_machine_add_node(d, path);
}

/* "ue: 2\nce: 10" of the memory controllers (Linux: Documentation/gpu/amdgpu/ras.rst). */
uint64_t weft_kfd_uncorrectable(const struct weft_host *host, const struct weft_bdf *bdf)
{
    char text[128];
    uint64_t count = 0;
    const int len = read_attribute(host, bdf, "ras/umc_err_count", text, sizeof(text));
    struct weft_str rest = {text, len > 0 ? (size_t)len : 0};
    struct weft_str line;
    struct weft_str key;
    while (weft_str_line(&rest, &line)) {
        if (weft_str_word(&line, &key) && weft_str_eq(key, "ue:")) {
            (void)!weft_parse_u64(weft_str_trim(line), UINT32_MAX, &count);
        }
    }
    return count;
}

/* The driver retires the pages, so that old errors leave the GPU healthy; a person should know. */
static int warn_of_errors(const struct weft_host *host, const struct weft_kfd_gpu *gpu,
                          struct weft_machine *m, const char *id)
{
    const uint64_t count = weft_kfd_uncorrectable(host, &gpu->bdf);
    if (count == 0 || gpu->partition > 0) {
        return 0;
    }
    return weft_machine_warn(m, "%s: %llu uncorrectable memory errors since its driver was loaded",
                             id, (unsigned long long)count);
}

static int fill_device(const struct weft_host *host, const struct weft_kfd *kfd,
                       const struct weft_kfd_gpu *gpu, struct weft_machine *m,
                       struct weft_device *d)
{
    d->bdf = gpu->bdf;
    set_id(gpu, d);
    set_model(host, gpu, d);
    if (gpu->is_partition) {
        d->parent = gpu->parent;
        d->partition = gpu->partition;
        set_profile(host, gpu, d);
    }
    if (gpu->node != NULL) {
        set_capability(d, gpu->node->gfx_target_version);
        d->memory_mib = gpu->node->memory_bytes / BYTES_PER_MIB;
    } else {
        bool hidden = false;
        for (size_t i = 0; i < kfd->node_count; i++) {
            hidden = hidden || !kfd->nodes[i].permitted;
        }
        d->healthy = false;
        (void)snprintf(d->health_reason, sizeof(d->health_reason), "%s",
                       hidden ? "the device cgroup hides it from this process"
                              : "its driver has no compute node (KFD) for it");
    }
    int rc = add_dri_node(host, d, "card", gpu->card);
    rc = rc < 0 ? rc : add_dri_node(host, d, "renderD", gpu->render);
    return rc < 0 ? rc : warn_of_errors(host, gpu, m, d->id);
}

/* A recording of the topology alone: the NUMA node is that of the CPU with the shortest link, CPU
 * nodes being numbered as NUMA nodes are. */
static void numa_from_links(const struct weft_kfd *kfd, const struct weft_kfd_gpu *gpu,
                            struct weft_device *d)
{
    uint32_t weight = UINT32_MAX;
    const struct weft_kfd_node *cpu = NULL;
    for (size_t i = 0; gpu->node != NULL && i < kfd->link_count; i++) {
        const struct weft_kfd_link *link = &kfd->links[i];
        const struct weft_kfd_node *to = weft_kfd_find(kfd, link->to);
        if (link->from == gpu->node->number && to != NULL && to->cpu_cores > 0 &&
            link->weight < weight) {
            weight = link->weight;
            cpu = to;
        }
    }
    int number = cpu == NULL ? -1 : 0;
    for (const struct weft_kfd_node *n = kfd->nodes; cpu != NULL && n < cpu; n++) {
        number += n->cpu_cores > 0;
    }
    char label[WORD_MAX];
    const int len = snprintf(label, sizeof(label), "%d", number);
    weft_device_set_numa(d, label, (size_t)len);
}

static void wire_from_links(const struct weft_kfd *kfd, const struct weft_kfd_gpus *gpus,
                            struct weft_machine *m)
{
    for (size_t i = 0; i < gpus->count; i++) {
        numa_from_links(kfd, &gpus->items[i], &m->devices[i]);
    }
    weft_machine_group_numa(m);
    for (size_t i = 0; i < gpus->count; i++) {
        for (size_t j = i + 1; j < gpus->count; j++) {
            const bool one_gpu = gpus->items[i].parent == gpus->items[j].parent;
            const struct weft_reading reading = {.distance = one_gpu ? WEFT_DISTANCE_PSB
                                                                     : WEFT_DISTANCE_UNKNOWN};
            (void)weft_machine_set_pair(m, i, j, reading, reading);
        }
    }
}

static int warn_of_gaps(const struct weft_kfd *kfd, struct weft_machine *m)
{
    size_t hidden = 0;
    size_t partial = 0;
    for (size_t i = 0; i < kfd->node_count; i++) {
        hidden += !kfd->nodes[i].permitted;
        partial += kfd->nodes[i].partial;
    }
    int rc = 0;
    if (hidden > 0) {
        rc =
            weft_machine_warn(m, "the device cgroup hides %zu KFD nodes from this process", hidden);
    }
    if (rc == 0 && kfd->missing_nodes > 0) {
        m->partial = true;
        rc = weft_machine_warn(m, "%zu KFD nodes have no properties and are left out",
                               kfd->missing_nodes);
    }
    if (rc == 0 && partial > 0) {
        m->partial = true;
        rc = weft_machine_warn(m, "%zu links of %zu KFD nodes are not in the recording",
                               kfd->missing_links, partial);
    }
    return rc;
}

static int fill(const struct weft_host *host, const struct weft_kfd *kfd,
                const struct weft_kfd_gpus *gpus, struct weft_machine *m, struct weft_error *err)
{
    weft_autofree char *vendor = weft_strdup("amd");
    if (vendor == NULL) {
        return -ENOMEM;
    }
    weft_free(m->vendor);
    m->vendor = weft_steal(&vendor);
    char version[sizeof(m->driver_version)];
    const int len = weft_host_read(host, "/sys/module/amdgpu/version", version, sizeof(version));
    if (len > 0) {
        (void)weft_machine_copy_visible(m->driver_version, sizeof(version), version, (size_t)len);
    }
    int rc = weft_machine_add_common_node(m, "/dev/kfd");
    for (size_t i = 0; rc == 0 && i < gpus->count; i++) {
        rc = fill_device(host, kfd, &gpus->items[i], m, &m->devices[i]);
    }
    if (rc == 0 && weft_host_exists(host, "/sys/bus/pci/devices")) {
        rc = weft_host_wire(host, m, err);
    } else if (rc == 0) {
        wire_from_links(kfd, gpus, m);
    }
    rc = rc < 0 ? rc : weft_kfd_set_bandwidth(kfd, gpus, m);
    return rc < 0 ? rc : warn_of_gaps(kfd, m);
}

int weft_kfd_machine(const struct weft_host *host, const struct weft_kfd *kfd, const char *name,
                     struct weft_machine **ret_machine, struct weft_error *err)
{
    weft_auto(weft_kfd_gpus_done) struct weft_kfd_gpus gpus = {0};
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    int rc = weft_kfd_find_gpus(host, kfd, name, &gpus, err);
    rc = rc < 0 ? rc : weft_host_machine(host, name, gpus.count, &m, err);
    if (rc < 0) {
        return rc;
    }
    if (fill(host, kfd, &gpus, m, err) < 0) {
        return weft_err_nomem(err); /* nothing else can go wrong there */
    }
    rc = weft_machine_finish(m, err);
    if (rc == 0) {
        *ret_machine = weft_steal(&m);
    }
    return rc;
}
