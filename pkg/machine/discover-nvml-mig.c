/* SPDX-License-Identifier: Apache-2.0 */
/* MIG: which instances a partitioned GPU has, what they are called, and which device nodes a
 * container needs for one. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/machine/discover-nvml-internal.h"
#include "pkg/machine/host.h"
#include "pkg/machine/machine-internal.h"

#define CAPS_FOLDER "/dev/nvidia-caps"
#define CAPABILITIES "/proc/driver/nvidia/capabilities"

enum { MIG_ON = 1, INSTANCES_USUAL = 7 };

/* "1g.10gb" of "NVIDIA H100 80GB HBM3 MIG 1g.10gb". */
static bool profile_of_name(const char *name, char *profile, size_t size)
{
    const char *mig = strstr(name, "MIG ");
    if (mig == NULL) {
        return false;
    }
    const struct weft_str word = weft_str_trim(weft_str(mig + strlen("MIG ")));
    return word.len > 0 && !weft_machine_copy_visible(profile, size, word.data, word.len);
}

/* The vendor's naming: memory in eighths of the GPU's, in whole GiB of its rounded-up size. */
static void profile_of_attributes(struct weft_nvml *nvml, struct weft_nvml_handle *handle,
                                  uint64_t gpu_mib, char *profile, size_t size)
{
    struct weft_nvml_attributes a = {0};
    (void)snprintf(profile, size, "mig");
    if (WEFT_NVML_CALL(nvml, DeviceGetAttributes, handle, &a) != WEFT_NVML_OK || gpu_mib == 0) {
        return;
    }
    const uint64_t eighths = (a.memory_mib * 8 + gpu_mib - 1) / gpu_mib;
    const uint64_t gib = ((gpu_mib + 1023) / 1024 * eighths + 4) / 8;
    if (a.compute_slices == a.gpu_slices) {
        (void)snprintf(profile, size, "%" PRIu32 "g.%" PRIu64 "gb", a.gpu_slices, gib);
    } else {
        (void)snprintf(profile, size, "%" PRIu32 "c.%" PRIu32 "g.%" PRIu64 "gb", a.compute_slices,
                       a.gpu_slices, gib);
    }
}

static uint16_t narrow(uint32_t value)
{
    return value <= UINT16_MAX ? (uint16_t)value : UINT16_MAX;
}

static void ask_slices(struct weft_nvml *nvml, struct weft_nvml_handle *handle,
                       struct weft_slices *slices)
{
    struct weft_nvml_attributes a = {0};
    if (WEFT_NVML_CALL(nvml, DeviceGetAttributes, handle, &a) == WEFT_NVML_OK) {
        *slices = (struct weft_slices){.gpu = narrow(a.gpu_slices),
                                       .compute = narrow(a.compute_slices),
                                       .multiprocessors = narrow(a.multiprocessors),
                                       .copy = narrow(a.copy_engines),
                                       .decoders = narrow(a.decoders),
                                       .encoders = narrow(a.encoders),
                                       .jpegs = narrow(a.jpegs),
                                       .ofas = narrow(a.ofas)};
    }
}

static uint32_t known_id(int rc, const unsigned *id)
{
    return rc == WEFT_NVML_OK ? *id : UINT32_MAX;
}

static void ask_profile(struct weft_nvml *nvml, const struct weft_nvml_gpu *gpu,
                        struct weft_nvml_handle *handle, struct weft_nvml_instance *instance)
{
    char *profile = instance->profile;
    char name[WEFT_NVML_TEXT_MAX] = "";
    const int rc = WEFT_NVML_CALL(nvml, DeviceGetName, handle, name, sizeof(name));
    name[sizeof(name) - 1] = '\0';
    if (rc != WEFT_NVML_OK || !profile_of_name(name, profile, sizeof(instance->profile))) {
        profile_of_attributes(nvml, handle, gpu->memory_mib, profile, sizeof(instance->profile));
    }
}

/* false for a place without an instance. */
static bool ask_instance(struct weft_nvml *nvml, const struct weft_nvml_gpu *gpu, unsigned index,
                         struct weft_nvml_instance *instance)
{
    struct weft_nvml_handle *handle = NULL;
    char uuid[WEFT_NVML_TEXT_MAX] = "";
    int rc = WEFT_NVML_CALL(nvml, DeviceGetMigDeviceHandleByIndex, gpu->handle, index, &handle);
    if (rc != WEFT_NVML_OK) {
        return false;
    }
    rc = WEFT_NVML_CALL(nvml, DeviceGetUUID, handle, uuid, sizeof(uuid));
    if (rc != WEFT_NVML_OK) {
        return false;
    }
    uuid[sizeof(uuid) - 1] = '\0';
    *instance = (struct weft_nvml_instance){.index = index};
    (void)snprintf(instance->uuid, sizeof(instance->uuid), "%.63s", uuid);
    unsigned id = 0;
    rc = WEFT_NVML_CALL(nvml, DeviceGetGpuInstanceId, handle, &id);
    instance->gi = known_id(rc, &id);
    rc = WEFT_NVML_CALL(nvml, DeviceGetComputeInstanceId, handle, &id);
    instance->ci = known_id(rc, &id);
    struct weft_nvml_memory memory = {0};
    rc = WEFT_NVML_CALL(nvml, DeviceGetMemoryInfo, handle, &memory);
    instance->memory_mib = rc == WEFT_NVML_OK ? memory.total >> 20 : 0;
    ask_profile(nvml, gpu, handle, instance);
    ask_slices(nvml, handle, &instance->slices);
    return true;
}

void weft_nvml_ask_mig(struct weft_nvml *nvml, struct weft_nvml_gpu *gpu)
{
    unsigned now = 0, pending = 0, max = 0;
    const int rc = WEFT_NVML_CALL(nvml, DeviceGetMigMode, gpu->handle, &now, &pending);
    gpu->mig_capable = rc == WEFT_NVML_OK;
    gpu->mig = gpu->mig_capable && now == MIG_ON;
    if (!gpu->mig) {
        return;
    }
    if (WEFT_NVML_CALL(nvml, DeviceGetMaxMigDeviceCount, gpu->handle, &max) != WEFT_NVML_OK) {
        max = INSTANCES_USUAL;
    }
    for (unsigned i = 0; i < max && gpu->instance_count < WEFT_NVML_INSTANCES_MAX; i++) {
        if (ask_instance(nvml, gpu, i, &gpu->instances[gpu->instance_count])) {
            gpu->instance_count++;
        }
    }
}

/* ---- device nodes ---- */

/* The kernel module says under /proc which minor below /dev/nvidia-caps lets one in: a file
 * "access" for each instance, "DeviceFileMinor: 12". -ENOENT, -EINVAL. */
static int read_minor(const struct weft_nvml *nvml, const char *path, uint64_t *ret_minor)
{
    char text[WEFT_HOST_TEXT_MAX];
    const int len = weft_host_read(nvml->host, path, text, sizeof(text));
    struct weft_str rest = {text, len > 0 ? (size_t)len : 0}, line, name;
    while (weft_str_line(&rest, &line)) {
        if (weft_str_split(&line, ':', &name) &&
            weft_str_eq(weft_str_trim(name), "DeviceFileMinor")) {
            return weft_parse_u64(weft_str_trim(line), INT32_MAX, ret_minor);
        }
    }
    return -ENOENT;
}

bool weft_nvml_has_node(const struct weft_nvml *nvml, const char *path)
{
    const char *root = nvml->options.dev_root != NULL ? nvml->options.dev_root : "";
    char below[WEFT_HOST_PATH_MAX];
    (void)snprintf(below, sizeof(below), "%s/dev/nvidiactl", root);
    const bool seen = weft_host_exists(nvml->host, below);
    (void)snprintf(below, sizeof(below), "%s%s", seen ? root : "", path);
    return weft_host_exists(nvml->host, below);
}

/* Without it no program in a container may open the instance: as bad as no device node. */
static int add_cap(const struct weft_nvml *nvml, const char *path, struct weft_machine *machine,
                   struct weft_device *device)
{
    uint64_t minor = 0;
    if (read_minor(nvml, path, &minor) < 0) {
        if (weft_host_exists(nvml->host, CAPABILITIES)) {
            weft_device_lacks(device, path, "names no node");
        }
        return weft_machine_warn(machine, "%s: %s does not tell its device node", device->id, path);
    }
    char node[64];
    (void)snprintf(node, sizeof(node), CAPS_FOLDER "/nvidia-cap%" PRIu64, minor);
    if (weft_nvml_has_node(nvml, CAPS_FOLDER) && !weft_nvml_has_node(nvml, node)) {
        weft_device_lacks(device, node, "is not there");
    }
    return weft_machine_add_node(device, node);
}

int weft_nvml_add_cap_nodes(const struct weft_nvml *nvml, const struct weft_nvml_gpu *gpu,
                            const struct weft_nvml_instance *instance, struct weft_machine *machine,
                            struct weft_device *device)
{
    if (gpu->minor < 0 || instance->gi == UINT32_MAX || instance->ci == UINT32_MAX) {
        weft_device_lacks(device, CAPS_FOLDER, "node: the driver names none");
        return weft_machine_warn(machine, "%s: the driver does not tell its device nodes",
                                 device->id);
    }
    char path[128];
    (void)snprintf(path, sizeof(path), CAPABILITIES "/gpu%d/mig/gi%" PRIu32 "/access", gpu->minor,
                   instance->gi);
    int rc = add_cap(nvml, path, machine, device);
    (void)snprintf(path, sizeof(path), CAPABILITIES "/gpu%d/mig/gi%" PRIu32 "/ci%" PRIu32 "/access",
                   gpu->minor, instance->gi, instance->ci);
    rc = rc == 0 ? add_cap(nvml, path, machine, device) : rc;
    return rc;
}
