/* SPDX-License-Identifier: Apache-2.0 */
/* The NVIDIA backend: asks the driver's management library (NVML) what GPUs and MIG instances there
 * are and how they are wired. The first field of every answer is whether there is one: what a
 * driver, a virtual machine or an integrated GPU does not support is left unknown. */
#include "pkg/machine/discover-nvml.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/machine/discover-nvml-internal.h"
#include "pkg/machine/host.h"
#include "pkg/machine/machine-internal.h"

#define WSL_NODE "/dev/dxg"
#define WSL_ID "all" /* what NVIDIA's own plugin calls it, so that pods survive a switch */

static bool is_wsl(const struct weft_backend_options *options)
{
    return !weft_backend_host_has(options, "/dev/nvidiactl") &&
           weft_backend_host_has(options, WSL_NODE);
}

static bool probe(const struct weft_backend_options *options)
{
    static const char *const signs[] = {"/proc/driver/nvidia/version", "/dev/nvidiactl",
                                        "/sys/bus/pci/drivers/nvidia", WSL_NODE};
    bool found = options->library != NULL;
    for (size_t i = 0; !found && i < WEFT_ARRAY_LEN(signs); i++) {
        found = weft_backend_host_has(options, signs[i]);
    }
    return found;
}

/* ---- open and close ---- */

static void close_nvml(void *state)
{
    struct weft_nvml *nvml = state;
    if (nvml == NULL) {
        return;
    }
    WEFT_CHECK(nvml, WEFT_NVML_MAGIC);
    weft_nvml_stop_listening(nvml);
    weft_nvml_unload(nvml);
    weft_host_free(nvml->host);
    weft_free(nvml->gpus);
    weft_free(nvml->p2p);
    weft_free(nvml->distance);
    nvml->magic = 0;
    weft_free(nvml);
}

static void close_auto(struct weft_nvml **nvml)
{
    close_nvml(*nvml);
}

static void ask_versions(struct weft_nvml *nvml)
{
    char text[WEFT_NVML_TEXT_MAX] = "";
    int cuda = 0;
    if (WEFT_NVML_CALL(nvml, SystemGetDriverVersion, text, sizeof(text)) == WEFT_NVML_OK) {
        text[sizeof(text) - 1] = '\0';
        (void)snprintf(nvml->driver_version, sizeof(nvml->driver_version), "%.63s", text);
    }
    if (WEFT_NVML_CALL(nvml, SystemGetCudaDriverVersion, &cuda) == WEFT_NVML_OK && cuda > 0) {
        /* 12040 is 12.4 */
        (void)snprintf(nvml->cuda_version, sizeof(nvml->cuda_version), "%d.%d", cuda / 1000,
                       cuda % 1000 / 10);
    }
}

static int open_nvml(const struct weft_backend_options *options, void **ret_state,
                     struct weft_error *err)
{
    __attribute__((cleanup(close_auto))) struct weft_nvml *nvml = weft_calloc(1, sizeof(*nvml));
    if (nvml == NULL) {
        return weft_err_nomem(err);
    }
    nvml->magic = WEFT_NVML_MAGIC;
    nvml->options = *options;
    nvml->wsl = is_wsl(options);
    const bool root = options->host_root != NULL && options->host_root[0] != '\0';
    int rc = weft_host_open(root ? options->host_root : "/", &nvml->host, err);
    rc = rc == 0 ? weft_nvml_load(nvml, err) : rc;
    if (rc < 0) {
        return rc;
    }
    const int code = WEFT_NVML_CALL(nvml, Init);
    if (code != WEFT_NVML_OK) {
        return weft_err_set(err, -ENODEV, WEFT_ERR_NVML, "%s (NVML %d)", weft_nvml_reason(code),
                            code);
    }
    nvml->initialized = true;
    ask_versions(nvml);
    *ret_state = weft_steal(&nvml);
    return 0;
}

/* ---- all GPUs ---- */

/* The pairs' answers are kept from one enumeration to the next, for GPUs that get lost. */
static int resize_pairs(struct weft_nvml *nvml, size_t count)
{
    if (count == nvml->gpu_count && nvml->p2p != NULL) {
        return 0;
    }
    uint8_t *p2p = weft_calloc(count * count, 1);
    uint8_t *distance = weft_malloc(count * count);
    if (p2p == NULL || distance == NULL) {
        weft_free(p2p);
        weft_free(distance);
        return -ENOMEM;
    }
    memset(distance, 0xff, count * count);
    weft_free(nvml->p2p);
    weft_free(nvml->distance);
    nvml->p2p = p2p;
    nvml->distance = distance;
    return 0;
}

static const struct weft_nvml_gpu *find_gpu(const struct weft_nvml_gpu *gpus, size_t count,
                                            const char *uuid)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(gpus[i].uuid, uuid) == 0) {
            return &gpus[i];
        }
    }
    return NULL;
}

/* Is it not the GPU that it was, though it has its name? Then it was reset, and what was wrong with
 * it is over. */
static void compare(const struct weft_nvml *nvml, struct weft_nvml_gpu *gpu)
{
    const struct weft_nvml_gpu *old = find_gpu(nvml->gpus, nvml->gpu_count, gpu->uuid);
    if (old != NULL && gpu->trouble == 0) {
        gpu->anew = old->trouble != 0 || old->handle != gpu->handle;
        gpu->registered = old->registered && old->handle == gpu->handle && !gpu->anew;
    }
}

/* GPUs that the library listed and does not list any more stay, behind the others. Returns how
 * many there are in all; gpus has room for them. */
static size_t keep_gone(const struct weft_nvml *nvml, struct weft_nvml_gpu *gpus, size_t count)
{
    const size_t counted = count;
    for (size_t i = 0; i < nvml->gpu_count && count < WEFT_NVML_GPUS_MAX; i++) {
        const struct weft_nvml_gpu *old = &nvml->gpus[i];
        if (old->uuid[0] != '\0' && find_gpu(gpus, counted, old->uuid) == NULL) {
            gpus[count] = *old;
            gpus[count].handle = NULL;
            gpus[count].trouble = WEFT_NVML_GPU_IS_LOST;
            gpus[count].recovery = -1;
            gpus[count++].registered = false;
        }
    }
    return count;
}

static int ask_all(struct weft_nvml *nvml, struct weft_error *err)
{
    unsigned count = 0;
    const int code = WEFT_NVML_CALL(nvml, DeviceGetCount, &count);
    if (code != WEFT_NVML_OK) {
        return weft_err_set(err, -EIO, WEFT_ERR_NVML, "counting GPUs: %s (NVML %d)",
                            weft_nvml_reason(code), code);
    }
    count = count < WEFT_NVML_GPUS_MAX ? count : (unsigned)WEFT_NVML_GPUS_MAX;
    struct weft_nvml_gpu *gpus = weft_calloc(count + nvml->gpu_count + 1, sizeof(*gpus));
    if (gpus == NULL) {
        return weft_err_nomem(err);
    }
    for (unsigned i = 0; i < count; i++) {
        /* where their number is another one, numbers tell nothing of who is who */
        const bool same = count == nvml->counted;
        if (weft_nvml_ask_gpu(nvml, i, same ? &nvml->gpus[i] : NULL, &gpus[i])) {
            compare(nvml, &gpus[i]);
        }
    }
    const size_t total = keep_gone(nvml, gpus, count);
    if (resize_pairs(nvml, total) < 0) {
        weft_free(gpus);
        return weft_err_nomem(err);
    }
    weft_free(nvml->gpus);
    nvml->gpus = gpus;
    nvml->gpu_count = total;
    nvml->counted = count;
    weft_nvml_name_lost(nvml);
    weft_nvml_aim_links(nvml);
    weft_nvml_ask_pairs(nvml);
    weft_nvml_recover(nvml);
    weft_nvml_listen(nvml);
    return 0;
}

/* ---- the machine of it ---- */

/* Which GPU, and which of its instances, each device of the machine is. */
struct places {
    size_t count;
    size_t gpu[WEFT_NVML_GPUS_MAX * WEFT_NVML_INSTANCES_MAX];
    int instance[WEFT_NVML_GPUS_MAX * WEFT_NVML_INSTANCES_MAX]; /* -1: the whole GPU */
};

static void place_devices(const struct weft_nvml *nvml, struct places *places)
{
    places->count = 0;
    for (size_t i = 0; i < nvml->gpu_count; i++) {
        const struct weft_nvml_gpu *gpu = &nvml->gpus[i];
        const int instances = gpu->uuid[0] == '\0' ? 0 : gpu->mig ? (int)gpu->instance_count : 1;
        for (int k = 0; k < instances; k++) {
            places->gpu[places->count] = i;
            places->instance[places->count++] = gpu->mig ? k : -1;
        }
    }
}

/* A node that is not there would keep every container from starting. Whether it is there can be
 * told where the driver's nodes are seen at all. */
static int add_node(const struct weft_nvml *nvml, struct weft_machine *m, struct weft_device *d,
                    const char *path)
{
    if (weft_nvml_has_node(nvml, path)) {
        return weft_machine_add_node(d, path);
    }
    if (weft_nvml_has_node(nvml, "/dev/nvidiactl")) {
        weft_device_lacks(d, path, "is not there");
    }
    return weft_machine_warn(m, "%s: %s is not there", d->id, path);
}

static int add_nodes(const struct weft_nvml *nvml, const struct weft_nvml_gpu *gpu,
                     const struct weft_nvml_instance *instance, struct weft_machine *m,
                     struct weft_device *d)
{
    if (nvml->wsl) {
        return 0;
    }
    if (gpu->minor < 0) {
        return weft_machine_warn(m, "%s: the driver does not tell its device node", d->id);
    }
    char path[32];
    (void)snprintf(path, sizeof(path), "/dev/nvidia%d", gpu->minor);
    const int rc = add_node(nvml, m, d, path);
    return rc == 0 && instance != NULL ? weft_nvml_add_cap_nodes(nvml, gpu, instance, m, d) : rc;
}

static int fill_device(const struct weft_nvml *nvml, const struct places *places, size_t at,
                       struct weft_machine *m)
{
    struct weft_device *d = &m->devices[at];
    const struct weft_nvml_gpu *gpu = &nvml->gpus[places->gpu[at]];
    const int k = places->instance[at];
    const struct weft_nvml_instance *instance = k >= 0 ? &gpu->instances[k] : NULL;
    (void)snprintf(d->id, sizeof(d->id), "%s", instance != NULL ? instance->uuid : gpu->uuid);
    (void)snprintf(d->model, sizeof(d->model), "%s", gpu->model);
    (void)snprintf(d->capability, sizeof(d->capability), "%s", gpu->capability);
    (void)snprintf(d->clique, sizeof(d->clique), "%s", gpu->clique);
    d->index = (int)places->gpu[at];
    d->bdf = gpu->bdf;
    d->pcie = gpu->pcie;
    d->memory_mib = instance != NULL ? instance->memory_mib : gpu->memory_mib;
    d->links_total = gpu->link_total;
    d->links_up = 0;
    for (int l = 0; l < gpu->link_count; l++) {
        d->links_up += gpu->links[l].active;
    }
    if (instance != NULL) {
        (void)snprintf(d->profile, sizeof(d->profile), "%s", instance->profile);
        d->parent = d->index;
        d->partition = (int)instance->index;
        d->slices = instance->slices;
    }
    d->partitionable = instance == NULL && gpu->mig_capable;
    weft_nvml_set_health(nvml, gpu, instance, d);
    return add_nodes(nvml, gpu, instance, m, d);
}

/* Where sysfs knows no NUMA node, the driver's memory affinity is the next best. A GPU's own memory
 * node is never the answer of either. */
static void fill_numa(const struct weft_nvml *nvml, const struct places *places,
                      struct weft_machine *m)
{
    for (size_t i = 0; i < m->device_count; i++) {
        const int node = nvml->gpus[places->gpu[i]].numa_node;
        if (m->devices[i].numa_node < 0 && node >= 0) {
            char label[16];
            (void)snprintf(label, sizeof(label), "%d", node);
            weft_device_set_numa(&m->devices[i], label, strlen(label));
        }
    }
    weft_machine_group_numa(m);
}

static int fill_common(const struct weft_nvml *nvml, struct weft_machine *m)
{
    static const char *const nodes[] = {"/dev/nvidiactl", "/dev/nvidia-uvm",
                                        "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset", WSL_NODE};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < WEFT_ARRAY_LEN(nodes); i++) {
        if (weft_nvml_has_node(nvml, nodes[i])) {
            rc = weft_machine_add_common_node(m, nodes[i]);
        }
    }
    if (rc == 0 && !nvml->wsl && !weft_nvml_has_node(nvml, "/dev/nvidia-uvm")) {
        /* made when the first CUDA program or nvidia-modprobe asks for it */
        rc =
            weft_machine_warn(m, "/dev/nvidia-uvm is not there: CUDA will not start in containers");
    }
    return rc;
}

static int warn_gpus(const struct weft_nvml *nvml, struct weft_machine *m)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < nvml->gpu_count; i++) {
        const struct weft_nvml_gpu *gpu = &nvml->gpus[i];
        if (gpu->uuid[0] == '\0') {
            rc = weft_machine_warn(m, "GPU %zu is left out: it tells no UUID: %s", i,
                                   weft_nvml_reason(gpu->trouble));
        } else if (gpu->mig && gpu->instance_count == 0) {
            rc = weft_machine_warn(m, "GPU %zu is left out: MIG is on and it has no instance", i);
        }
        if (rc == 0 && gpu->rows_pending) {
            /* "new workloads can be launched": NVIDIA's guide to memory errors, response flags */
            rc = weft_machine_warn(m, "%s: memory rows are remapped at its next reset", gpu->uuid);
        }
    }
    if (rc == 0 && nvml->events_lacking) {
        rc = weft_machine_warn(m, "the driver tells no events: faults are seen when looked for");
    }
    return rc == 0 ? weft_nvml_warn_lacking(nvml, m) : rc;
}

/* GPUs in MIG mode, with or without instances. */
static int fill_parents(const struct weft_nvml *nvml, struct weft_machine *m)
{
    struct weft_parent parents[WEFT_NVML_GPUS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < nvml->gpu_count; i++) {
        const struct weft_nvml_gpu *gpu = &nvml->gpus[i];
        if (gpu->uuid[0] == '\0' || !gpu->mig) {
            continue;
        }
        struct weft_parent *p = &parents[count++];
        *p = (struct weft_parent){.index = (int)i, .memory_mib = gpu->memory_mib};
        (void)snprintf(p->model, sizeof(p->model), "%s", gpu->model);
        (void)snprintf(p->capability, sizeof(p->capability), "%s", gpu->capability);
        struct weft_host_pci pci;
        const int rc = weft_host_pci(nvml->host, &gpu->bdf, &pci);
        if (rc == -ENOMEM) {
            return rc;
        }
        p->pci_class = rc == 0 ? pci.class_code : 0;
    }
    return weft_machine_set_parents(m, parents, count);
}

static int set_texts(const struct weft_nvml *nvml, struct weft_machine *m)
{
    char *vendor = weft_strdup("nvidia");
    if (vendor == NULL) {
        return -ENOMEM;
    }
    weft_free(m->vendor);
    m->vendor = vendor;
    (void)snprintf(m->driver_version, sizeof(m->driver_version), "%s", nvml->driver_version);
    (void)snprintf(m->runtime_version, sizeof(m->runtime_version), "%s", nvml->cuda_version);
    return 0;
}

static int build(const struct weft_nvml *nvml, const struct places *places, struct weft_machine *m,
                 struct weft_error *err)
{
    int rc = set_texts(nvml, m);
    for (size_t i = 0; rc == 0 && i < m->device_count; i++) {
        rc = fill_device(nvml, places, i, m);
    }
    if (rc == 0 && nvml->wsl && m->device_count == 1) {
        /* WSL hands out its GPUs together, through one node */
        (void)snprintf(m->devices[0].id, sizeof(m->devices[0].id), WSL_ID);
    }
    if (rc == 0) {
        const int wired = weft_host_wire(nvml->host, m, err);
        if (wired < 0) {
            return wired;
        }
        fill_numa(nvml, places, m);
        rc = weft_nvml_wire(nvml, places->gpu, m);
    }
    rc = rc == 0 ? fill_common(nvml, m) : rc;
    rc = rc == 0 ? fill_parents(nvml, m) : rc;
    rc = rc == 0 ? warn_gpus(nvml, m) : rc;
    if (rc < 0) {
        return rc == -ENOMEM ? weft_err_nomem(err) : weft_err_errno(err, -rc, "device nodes");
    }
    return weft_machine_finish(m, err);
}

static int enumerate(void *state, struct weft_machine **ret_machine, struct weft_error *err)
{
    struct weft_nvml *nvml = state;
    WEFT_CHECK(nvml, WEFT_NVML_MAGIC);
    int rc = ask_all(nvml, err);
    if (rc < 0) {
        return rc;
    }
    struct places places = {0};
    place_devices(nvml, &places);
    if (nvml->wsl && places.count > 1) {
        places.count = 1;
    }
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    rc = weft_host_machine(nvml->host, "NVML", places.count, &m, err);
    rc = rc == 0 ? build(nvml, &places, m, err) : rc;
    if (rc == 0) {
        *ret_machine = weft_steal(&m);
    }
    return rc;
}

const struct weft_backend weft_backend_nvml = {
    .vendor = "nvidia",
    .probe = probe,
    .open = open_nvml,
    .enumerate = enumerate,
    .wait = weft_nvml_wait,
    .close = close_nvml,
};
