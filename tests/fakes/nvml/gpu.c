/* SPDX-License-Identifier: Apache-2.0 */
/* The library's functions about the system, a GPU, and MIG. */
#include <string.h>

#include "tests/fakes/nvml/mock.h"

enum { BITS = 8 * (int)sizeof(unsigned long) };

/* The library's names, as the program under test looks them up. */
#define EXPORT __attribute__((visibility("default")))

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned size);
EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version);
EXPORT int nvmlDeviceGetCount_v2(unsigned *count);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct weft_nvml_handle **device);
EXPORT int nvmlDeviceGetPciInfo_v3(struct weft_nvml_handle *device, struct weft_nvml_pci *pci);
EXPORT int nvmlDeviceGetMemoryInfo(struct weft_nvml_handle *device, struct weft_nvml_memory *m);
EXPORT int nvmlDeviceGetCudaComputeCapability(struct weft_nvml_handle *device, int *major,
                                              int *minor);
EXPORT int nvmlDeviceGetMemoryAffinity(struct weft_nvml_handle *device, unsigned words,
                                       unsigned long *set, unsigned scope);
EXPORT int nvmlDeviceGetTopologyCommonAncestor(struct weft_nvml_handle *a,
                                               struct weft_nvml_handle *b, int *level);
EXPORT int nvmlDeviceGetP2PStatus(struct weft_nvml_handle *a, struct weft_nvml_handle *b,
                                  int capability, int *status);
EXPORT int nvmlDeviceGetMigMode(struct weft_nvml_handle *device, unsigned *now, unsigned *pending);
EXPORT int nvmlDeviceGetMaxMigDeviceCount(struct weft_nvml_handle *device, unsigned *count);
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(struct weft_nvml_handle *device, unsigned index,
                                               struct weft_nvml_handle **instance);
EXPORT int nvmlDeviceGetRemappedRows(struct weft_nvml_handle *device, unsigned *corrected,
                                     unsigned *uncorrected, unsigned *pending, unsigned *failed);
EXPORT int nvmlDeviceGetAttributes_v2(struct weft_nvml_handle *device,
                                      struct weft_nvml_attributes *attributes);

int nvmlInit_v2(void)
{
    const int rc = mock_begin("nvmlInit_v2", NULL);
    return rc != 0 ? rc : mock_end(0);
}

int nvmlShutdown(void)
{
    const int rc = mock_begin("nvmlShutdown", NULL);
    return rc != 0 ? rc : mock_end(0);
}

int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    const int rc = mock_begin("nvmlSystemGetDriverVersion", NULL);
    return rc != 0 ? rc : mock_end(mock_text(mock_root("driver"), text, size));
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    unsigned value = 0;
    int rc = mock_begin("nvmlSystemGetCudaDriverVersion_v2", NULL);
    if (rc == 0) {
        rc = mock_end(mock_number(mock_root("cuda"), &value));
        *version = (int)value;
    }
    return rc;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    const int rc = mock_begin("nvmlDeviceGetCount_v2", NULL);
    if (rc != 0) {
        return rc;
    }
    *count = (unsigned)mock_gpu_count();
    return mock_end(0);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct weft_nvml_handle **device)
{
    const struct weft_nvml_handle asked = {.gpu = (int)index, .instance = -1};
    const int rc = mock_begin("nvmlDeviceGetHandleByIndex_v2", &asked);
    if (rc != 0) {
        return rc;
    }
    if ((int)index >= mock_gpu_count()) {
        return mock_end(WEFT_NVML_INVALID_ARGUMENT);
    }
    *device = mock_handle((int)index, -1);
    return mock_end(0);
}

/* A text or number of the device as the answer. */
#define TEXT_OF(function, key)                                                                     \
    EXPORT int function(struct weft_nvml_handle *device, char *text, unsigned size);               \
    int function(struct weft_nvml_handle *device, char *text, unsigned size)                       \
    {                                                                                              \
        const int rc = mock_begin(#function, device);                                              \
        return rc != 0 ? rc : mock_end(mock_text(mock_of(device, key), text, size));               \
    }
#define NUMBER_OF(function, item)                                                                  \
    EXPORT int function(struct weft_nvml_handle *device, unsigned *value);                         \
    int function(struct weft_nvml_handle *device, unsigned *value)                                 \
    {                                                                                              \
        const int rc = mock_begin(#function, device);                                              \
        return rc != 0 ? rc : mock_end(mock_number(item, value));                                  \
    }

TEXT_OF(nvmlDeviceGetUUID, "uuid")
TEXT_OF(nvmlDeviceGetName, "name")
NUMBER_OF(nvmlDeviceGetMinorNumber, mock_of(device, "minor"))
NUMBER_OF(nvmlDeviceGetNumaNodeId, mock_of(device, "own_node"))
NUMBER_OF(nvmlDeviceGetGpuInstanceId, mock_of(device, "gi"))
NUMBER_OF(nvmlDeviceGetComputeInstanceId, mock_of(device, "ci"))
NUMBER_OF(nvmlDeviceGetCurrPcieLinkGeneration, cJSON_GetArrayItem(mock_of(device, "pcie"), 0))
NUMBER_OF(nvmlDeviceGetCurrPcieLinkWidth, cJSON_GetArrayItem(mock_of(device, "pcie"), 1))
NUMBER_OF(nvmlDeviceGetMaxPcieLinkGeneration, cJSON_GetArrayItem(mock_of(device, "pcie"), 2))
NUMBER_OF(nvmlDeviceGetMaxPcieLinkWidth, cJSON_GetArrayItem(mock_of(device, "pcie"), 3))

int nvmlDeviceGetPciInfo_v3(struct weft_nvml_handle *device, struct weft_nvml_pci *pci)
{
    const int rc = mock_begin("nvmlDeviceGetPciInfo_v3", device);
    if (rc != 0) {
        return rc;
    }
    return mock_end(mock_bdf(mock_of(device, "bdf"), pci) ? 0 : (int)WEFT_NVML_NOT_SUPPORTED);
}

int nvmlDeviceGetMemoryInfo(struct weft_nvml_handle *device, struct weft_nvml_memory *m)
{
    unsigned mib = 0;
    int rc = mock_begin("nvmlDeviceGetMemoryInfo", device);
    if (rc == 0) {
        rc = mock_end(mock_number(mock_of(device, "memory_mib"), &mib));
        *m = (struct weft_nvml_memory){.total = (uint64_t)mib << 20, .free = (uint64_t)mib << 20};
    }
    return rc;
}

int nvmlDeviceGetRemappedRows(struct weft_nvml_handle *device, unsigned *corrected,
                              unsigned *uncorrected, unsigned *pending, unsigned *failed)
{
    unsigned *const to[] = {corrected, uncorrected, pending, failed};
    int rc = mock_begin("nvmlDeviceGetRemappedRows", device);
    if (rc != 0) {
        return rc;
    }
    for (int i = 0; rc == 0 && i < 4; i++) {
        rc = mock_number(cJSON_GetArrayItem(mock_of(device, "rows"), i), to[i]);
    }
    return mock_end(rc);
}

int nvmlDeviceGetCudaComputeCapability(struct weft_nvml_handle *device, int *major, int *minor)
{
    const int rc = mock_begin("nvmlDeviceGetCudaComputeCapability", device);
    if (rc != 0) {
        return rc;
    }
    unsigned value[2] = {0};
    const cJSON *capability = mock_of(device, "capability");
    const int code = mock_number(cJSON_GetArrayItem(capability, 0), &value[0]);
    (void)mock_number(cJSON_GetArrayItem(capability, 1), &value[1]);
    *major = (int)value[0];
    *minor = (int)value[1];
    return mock_end(code);
}

int nvmlDeviceGetMemoryAffinity(struct weft_nvml_handle *device, unsigned words, unsigned long *set,
                                unsigned scope)
{
    (void)scope;
    const int rc = mock_begin("nvmlDeviceGetMemoryAffinity", device);
    if (rc != 0) {
        return rc;
    }
    const cJSON *nodes = mock_of(device, "affinity"), *node = NULL;
    memset(set, 0, words * sizeof(*set));
    cJSON_ArrayForEach(node, nodes)
    {
        if (node->valueint < (int)words * BITS) {
            set[node->valueint / BITS] |= 1UL << (node->valueint % BITS);
        }
    }
    return mock_end(nodes != NULL ? 0 : (int)WEFT_NVML_NOT_SUPPORTED);
}

int nvmlDeviceGetTopologyCommonAncestor(struct weft_nvml_handle *a, struct weft_nvml_handle *b,
                                        int *level)
{
    int rc = mock_begin("nvmlDeviceGetTopologyCommonAncestor", a);
    unsigned value = 0;
    if (rc == 0) {
        const bool lost = cJSON_IsTrue(mock_of(b, "lost"));
        rc = mock_number(cJSON_GetArrayItem(mock_of(a, "ancestors"), b->gpu), &value);
        *level = (int)value;
        rc = mock_end(lost ? (int)WEFT_NVML_GPU_IS_LOST : rc);
    }
    return rc;
}

int nvmlDeviceGetP2PStatus(struct weft_nvml_handle *a, struct weft_nvml_handle *b, int capability,
                           int *status)
{
    (void)capability;
    const int rc = mock_begin("nvmlDeviceGetP2PStatus", a);
    if (rc != 0) {
        return rc;
    }
    unsigned value = 0;
    (void)mock_number(cJSON_GetArrayItem(mock_of(a, "p2p"), b->gpu), &value);
    *status = (int)value;
    return mock_end(0);
}

/* ---- MIG ---- */

int nvmlDeviceGetMigMode(struct weft_nvml_handle *device, unsigned *now, unsigned *pending)
{
    const int rc = mock_begin("nvmlDeviceGetMigMode", device);
    if (rc != 0) {
        return rc;
    }
    if (cJSON_IsFalse(mock_of(device, "mig"))) {
        return mock_end(WEFT_NVML_NOT_SUPPORTED);
    }
    *now = *pending = cJSON_IsArray(mock_of(device, "mig")) ? 1 : 0;
    return mock_end(0);
}

int nvmlDeviceGetMaxMigDeviceCount(struct weft_nvml_handle *device, unsigned *count)
{
    const int rc = mock_begin("nvmlDeviceGetMaxMigDeviceCount", device);
    if (rc != 0) {
        return rc;
    }
    *count = MOCK_INSTANCES_MAX - 1;
    return mock_end(0);
}

int nvmlDeviceGetMigDeviceHandleByIndex(struct weft_nvml_handle *device, unsigned index,
                                        struct weft_nvml_handle **instance)
{
    const int rc = mock_begin("nvmlDeviceGetMigDeviceHandleByIndex", device);
    if (rc != 0) {
        return rc;
    }
    const cJSON *item = cJSON_GetArrayItem(mock_of(device, "mig"), (int)index);
    if (item == NULL || cJSON_IsNull(item) || index >= MOCK_INSTANCES_MAX) { /* null: a gap */
        return mock_end(WEFT_NVML_NOT_FOUND);
    }
    *instance = mock_handle(device->gpu, (int)index);
    return mock_end(0);
}

int nvmlDeviceGetAttributes_v2(struct weft_nvml_handle *device,
                               struct weft_nvml_attributes *attributes)
{
    const int rc = mock_begin("nvmlDeviceGetAttributes_v2", device);
    if (rc != 0) {
        return rc;
    }
    unsigned mib = 0;
    const cJSON *slices = mock_of(device, "slices");
    *attributes = (struct weft_nvml_attributes){0};
    int code = mock_number(mock_of(device, "memory_mib"), &mib);
    code =
        code == 0 ? mock_number(cJSON_GetArrayItem(slices, 0), &attributes->compute_slices) : code;
    code = code == 0 ? mock_number(cJSON_GetArrayItem(slices, 1), &attributes->gpu_slices) : code;
    attributes->memory_mib = mib;
    uint32_t *const engines[] = {&attributes->multiprocessors, &attributes->copy_engines,
                                 &attributes->decoders,        &attributes->encoders,
                                 &attributes->jpegs,           &attributes->ofas};
    const cJSON *counts = mock_of(device, "engines"); /* in that order; may be left out */
    for (int i = 0; counts != NULL && code == 0 && i < (int)(sizeof(engines) / sizeof(engines[0]));
         i++) {
        code = mock_number(cJSON_GetArrayItem(counts, i), engines[i]);
    }
    return mock_end(code);
}
