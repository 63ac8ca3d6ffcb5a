/* SPDX-License-Identifier: Apache-2.0 */
/* What one GPU says of itself. Each answer is optional: a laptop's, a virtual machine's or an
 * integrated GPU's library supports few of these questions. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/machine/discover-nvml-internal.h"
#include "pkg/machine/host-internal.h"
#include "pkg/machine/host.h"
#include "pkg/machine/machine-internal.h"

enum { NODE_WORDS = 16, BITS = 8 * (int)sizeof(unsigned long), SCOPE_NODE = 0 };

static bool is_trouble(int rc)
{
    return rc == WEFT_NVML_GPU_IS_LOST || rc == WEFT_NVML_RESET_REQUIRED;
}

uint64_t weft_nvml_field(struct weft_nvml *nvml, struct weft_nvml_handle *device, uint32_t field)
{
    enum { TYPE_U64 = 2, TYPE_U64_TOO = 3 };
    struct weft_nvml_field f = {.id = field};
    const int rc = WEFT_NVML_CALL(nvml, DeviceGetFieldValues, device, 1, &f);
    if (rc != WEFT_NVML_OK || f.rc != WEFT_NVML_OK) {
        return UINT64_MAX;
    }
    return f.value_type == TYPE_U64 || f.value_type == TYPE_U64_TOO ? f.value.u64 : f.value.u32;
}

/* ---- who it is ---- */

static void ask_address(struct weft_nvml *nvml, struct weft_nvml_gpu *gpu)
{
    struct weft_nvml_pci pci = {0};
    if (WEFT_NVML_CALL(nvml, DeviceGetPciInfo, gpu->handle, &pci) == WEFT_NVML_OK &&
        pci.bus <= UINT8_MAX && pci.device <= 0x1f) {
        gpu->bdf = (struct weft_bdf){.known = true,
                                     .domain = pci.domain,
                                     .bus = (uint8_t)pci.bus,
                                     .device = (uint8_t)pci.device};
    }
}

/* "Key: \t value" of /proc/driver/nvidia/gpus/<bdf>/information into text; false if not there. */
static bool read_information(const struct weft_nvml *nvml, const struct weft_bdf *bdf,
                             const char *key, char *text, size_t size)
{
    char address[WEFT_BDF_TEXT_MAX], path[96], information[WEFT_HOST_TEXT_MAX];
    (void)snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/information",
                   weft_bdf_format(bdf, address));
    const int len = weft_host_read(nvml->host, path, information, sizeof(information));
    struct weft_str rest = {information, len > 0 ? (size_t)len : 0}, line, name;
    while (weft_str_line(&rest, &line)) {
        if (weft_str_split(&line, ':', &name) && weft_str_eq(weft_str_trim(name), key)) {
            const struct weft_str value = weft_str_trim(line);
            return value.len > 0 && !weft_machine_copy_visible(text, size, value.data, value.len);
        }
    }
    return false;
}

static void read_minor(const struct weft_nvml *nvml, struct weft_nvml_gpu *gpu)
{
    char text[16];
    uint64_t number = 0;
    if (gpu->bdf.known && read_information(nvml, &gpu->bdf, "Device Minor", text, sizeof(text)) &&
        weft_parse_u64(weft_str(text), INT16_MAX, &number) == 0) {
        gpu->minor = (int)number;
    }
}

static void ask_minor(struct weft_nvml *nvml, struct weft_nvml_gpu *gpu)
{
    unsigned minor = 0;
    const int rc = WEFT_NVML_CALL(nvml, DeviceGetMinorNumber, gpu->handle, &minor);
    if (rc == WEFT_NVML_OK && minor <= INT16_MAX) {
        gpu->minor = (int)minor;
    } else {
        read_minor(nvml, gpu);
    }
}

/* The UUID; else the one that the kernel module tells; else, for an integrated GPU that has none,
 * a name made from what is stable about it. */
static int ask_uuid(struct weft_nvml *nvml, unsigned index, struct weft_nvml_gpu *gpu)
{
    char text[WEFT_NVML_TEXT_MAX] = "";
    const int rc = WEFT_NVML_CALL(nvml, DeviceGetUUID, gpu->handle, text, sizeof(text));
    text[sizeof(text) - 1] = '\0';
    if (rc == WEFT_NVML_OK && weft_device_id_valid(text)) {
        (void)snprintf(gpu->uuid, sizeof(gpu->uuid), "%.63s", text);
        return WEFT_NVML_OK;
    }
    char address[WEFT_BDF_TEXT_MAX];
    if (gpu->bdf.known &&
        read_information(nvml, &gpu->bdf, "GPU UUID", gpu->uuid, sizeof(gpu->uuid)) &&
        weft_device_id_valid(gpu->uuid) && strchr(gpu->uuid, '?') == NULL) {
        return is_trouble(rc) ? rc : WEFT_NVML_OK;
    }
    if (is_trouble(rc)) {
        gpu->uuid[0] = '\0';
        return rc;
    }
    if (gpu->bdf.known) {
        (void)snprintf(gpu->uuid, sizeof(gpu->uuid), "GPU-%s", weft_bdf_format(&gpu->bdf, address));
    } else {
        (void)snprintf(gpu->uuid, sizeof(gpu->uuid), "GPU-index-%u", index);
    }
    return WEFT_NVML_OK;
}

/* ---- what it is ---- */

/* Returns what the memory's size was answered with: only the GPU itself knows it, while a library
 * may still tell a lost GPU's name. */
static int ask_attributes(struct weft_nvml *nvml, struct weft_nvml_gpu *gpu)
{
    char name[WEFT_NVML_TEXT_MAX] = "";
    if (WEFT_NVML_CALL(nvml, DeviceGetName, gpu->handle, name, sizeof(name)) == WEFT_NVML_OK) {
        name[sizeof(name) - 1] = '\0';
        (void)snprintf(gpu->model, sizeof(gpu->model), "%.63s", name);
    }
    struct weft_nvml_memory memory = {0};
    const int rc = WEFT_NVML_CALL(nvml, DeviceGetMemoryInfo, gpu->handle, &memory);
    if (rc == WEFT_NVML_OK) {
        gpu->memory_mib = memory.total >> 20;
    }
    int major = 0, minor = 0;
    if (WEFT_NVML_CALL(nvml, DeviceGetCudaComputeCapability, gpu->handle, &major, &minor) ==
        WEFT_NVML_OK) {
        (void)snprintf(gpu->capability, sizeof(gpu->capability), "%d.%d", major, minor);
    }
    return rc;
}

static uint8_t answered(int rc, const unsigned *value)
{
    return rc == WEFT_NVML_OK && *value <= UINT8_MAX ? (uint8_t)*value : 0;
}

static void ask_pcie(struct weft_nvml *nvml, struct weft_nvml_gpu *gpu)
{
    unsigned v = 0;
    struct weft_pcie *pcie = &gpu->pcie;
    int rc = WEFT_NVML_CALL(nvml, DeviceGetCurrPcieLinkGeneration, gpu->handle, &v);
    pcie->generation = answered(rc, &v);
    rc = WEFT_NVML_CALL(nvml, DeviceGetCurrPcieLinkWidth, gpu->handle, &v);
    pcie->width = answered(rc, &v);
    rc = WEFT_NVML_CALL(nvml, DeviceGetMaxPcieLinkGeneration, gpu->handle, &v);
    pcie->max_generation = answered(rc, &v);
    rc = WEFT_NVML_CALL(nvml, DeviceGetMaxPcieLinkWidth, gpu->handle, &v);
    pcie->max_width = answered(rc, &v);
}

/* The NUMA node whose memory is nearest: one, and not the GPU's own memory, which is a node too on
 * a Grace machine (GetNumaNodeId names it) and holds no CPU. Several leave it unknown. */
static void ask_numa(struct weft_nvml *nvml, struct weft_nvml_gpu *gpu)
{
    unsigned own = UINT32_MAX;
    if (WEFT_NVML_CALL(nvml, DeviceGetNumaNodeId, gpu->handle, &own) != WEFT_NVML_OK) {
        own = UINT32_MAX;
    }
    unsigned long set[NODE_WORDS] = {0};
    if (WEFT_NVML_CALL(nvml, DeviceGetMemoryAffinity, gpu->handle, NODE_WORDS, set, SCOPE_NODE) !=
        WEFT_NVML_OK) {
        return;
    }
    int found = -1, count = 0;
    for (int node = 0; node < NODE_WORDS * BITS; node++) {
        if ((set[node / BITS] >> (node % BITS) & 1) != 0 && (unsigned)node != own) {
            found = node;
            count++;
        }
    }
    gpu->numa_node = count == 1 ? found : -1;
}

/* ---- its fabric ---- */

static void set_clique(struct weft_nvml_gpu *gpu, const uint8_t *cluster, uint32_t clique)
{
    static const uint8_t none[16] = {0};
    if (gpu->fabric_state != WEFT_NVML_FABRIC_COMPLETED || gpu->fabric_status != WEFT_NVML_OK ||
        memcmp(cluster, none, sizeof(none)) == 0) {
        return;
    }
    char *to = gpu->clique;
    size_t len = 0;
    for (size_t i = 0; i < sizeof(none); i++) {
        const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        len += (size_t)snprintf(to + len, sizeof(gpu->clique) - len, "%s%02x", dash ? "-" : "",
                                (unsigned)cluster[i]);
    }
    (void)snprintf(to + len, sizeof(gpu->clique) - len, ".%" PRIu32, clique);
}

static void ask_fabric(struct weft_nvml *nvml, struct weft_nvml_gpu *gpu)
{
    struct weft_nvml_fabric_v v = {.version = WEFT_NVML_FABRIC_V2};
    if (WEFT_NVML_CALL(nvml, DeviceGetGpuFabricInfoV, gpu->handle, &v) == WEFT_NVML_OK) {
        gpu->fabric_state = v.state;
        gpu->fabric_status = v.status;
        set_clique(gpu, v.cluster, v.clique);
        return;
    }
    struct weft_nvml_fabric f = {0};
    if (WEFT_NVML_CALL(nvml, DeviceGetGpuFabricInfo, gpu->handle, &f) == WEFT_NVML_OK) {
        gpu->fabric_state = f.state;
        gpu->fabric_status = f.status;
        set_clique(gpu, f.cluster, f.clique);
    }
}

/* ---- all of it ---- */

static void ask_recovery(struct weft_nvml *nvml, struct weft_nvml_gpu *gpu)
{
    const uint64_t action = weft_nvml_field(nvml, gpu->handle, WEFT_NVML_FIELD_RECOVERY_ACTION);
    gpu->recovery = action <= INT16_MAX ? (int)action : -1;
}

/* A lost GPU is what it last was. */
static bool keep_old(const struct weft_nvml_gpu *old, int trouble, struct weft_nvml_gpu *gpu)
{
    struct weft_nvml_handle *const handle = gpu->handle;
    const struct weft_nvml_gpu asked = *gpu;
    if (old != NULL && (asked.uuid[0] == '\0' || strcmp(asked.uuid, old->uuid) == 0)) {
        *gpu = *old;
        gpu->handle = handle != NULL ? handle : old->handle;
    }
    gpu->trouble = trouble;
    gpu->doubt = WEFT_NVML_OK;
    gpu->recovery = -1;
    return gpu->uuid[0] != '\0';
}

bool weft_nvml_ask_gpu(struct weft_nvml *nvml, unsigned index, const struct weft_nvml_gpu *old,
                       struct weft_nvml_gpu *gpu)
{
    *gpu = (struct weft_nvml_gpu){
        .minor = -1, .numa_node = -1, .recovery = -1, .on_bus = old != NULL && old->on_bus};
    int rc = WEFT_NVML_CALL(nvml, DeviceGetHandleByIndex, index, &gpu->handle);
    if (rc != WEFT_NVML_OK) {
        gpu->handle = NULL;
        return keep_old(old, rc, gpu);
    }
    ask_address(nvml, gpu);
    rc = ask_uuid(nvml, index, gpu);
    ask_minor(nvml, gpu);
    const int memory_rc = ask_attributes(nvml, gpu);
    const int trouble = weft_nvml_examine(nvml, gpu, memory_rc);
    rc = rc == WEFT_NVML_OK ? trouble : rc;
    if (rc != WEFT_NVML_OK) {
        return keep_old(old, rc, gpu);
    }
    ask_pcie(nvml, gpu);
    ask_numa(nvml, gpu);
    ask_fabric(nvml, gpu);
    ask_recovery(nvml, gpu);
    weft_nvml_ask_links(nvml, gpu);
    weft_nvml_ask_mig(nvml, gpu);
    return true;
}

/* ---- GPUs that were lost before anybody looked ---- */

static bool is_known(const struct weft_nvml *nvml, const struct weft_bdf *bdf)
{
    for (size_t i = 0; i < nvml->gpu_count; i++) {
        const struct weft_nvml_gpu *gpu = &nvml->gpus[i];
        if (gpu->uuid[0] != '\0' && gpu->bdf.known && weft_bdf_cmp(&gpu->bdf, bdf) == 0) {
            return true;
        }
    }
    return false;
}

/* The next GPU that the kernel module lists and no GPU so far is. */
static bool next_unknown(const struct weft_nvml *nvml, const struct weft_host_names *names,
                         size_t *at, struct weft_bdf *ret_bdf)
{
    while (*at < names->count) {
        const char *name = names->names[(*at)++];
        if (weft_bdf_parse(name, ret_bdf) == 0 && !is_known(nvml, ret_bdf)) {
            return true;
        }
    }
    return false;
}

/* The library gives no handle for them, and so no address; the kernel module lists all it bound, in
 * the same order, by address. */
void weft_nvml_name_lost(struct weft_nvml *nvml)
{
    weft_auto(weft_host_names_done) struct weft_host_names names = {0};
    size_t at = 0;
    for (size_t i = 0; i < nvml->gpu_count; i++) {
        struct weft_nvml_gpu *gpu = &nvml->gpus[i];
        if (gpu->uuid[0] != '\0') {
            continue;
        }
        if (names.count == 0 &&
            weft_host_list(nvml->host, "/proc/driver/nvidia/gpus", &names) < 0) {
            return;
        }
        if (!next_unknown(nvml, &names, &at, &gpu->bdf)) {
            gpu->bdf = (struct weft_bdf){0};
            return;
        }
        if (!read_information(nvml, &gpu->bdf, "GPU UUID", gpu->uuid, sizeof(gpu->uuid)) ||
            !weft_device_id_valid(gpu->uuid) || strchr(gpu->uuid, '?') != NULL) {
            gpu->uuid[0] = '\0';
        }
        read_minor(nvml, gpu);
    }
}
