/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of NVIDIA's management library that weft calls, each with what is lost where a
 * driver's library lacks it. Included by discover-nvml-api.h, whose types it names. */
#ifndef WEFT_MACHINE_DISCOVER_NVML_FUNCTIONS_H
#define WEFT_MACHINE_DISCOVER_NVML_FUNCTIONS_H

/* X(field of the table, its parameters, its names from the newest on, what weft
 * lacks without it: "" if weft cannot do without, NULL if nothing). */
#define WEFT_NVML_FUNCTIONS(X)                                                                     \
    X(Init, (void), "nvmlInit_v2", NULL, "")                                                       \
    X(Shutdown, (void), "nvmlShutdown", NULL, "")                                                  \
    X(SystemGetDriverVersion, (char *text, unsigned size), "nvmlSystemGetDriverVersion", NULL,     \
      "the driver's version is unknown")                                                           \
    X(SystemGetCudaDriverVersion, (int *version), "nvmlSystemGetCudaDriverVersion_v2",             \
      "nvmlSystemGetCudaDriverVersion", "the CUDA version is unknown")                             \
    X(DeviceGetCount, (unsigned *count), "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount", "")        \
    X(DeviceGetHandleByIndex, (unsigned index, struct weft_nvml_handle **device),                  \
      "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex", "")                           \
    X(DeviceGetUUID, (struct weft_nvml_handle * device, char *text, unsigned size),                \
      "nvmlDeviceGetUUID", NULL, "")                                                               \
    X(DeviceGetName, (struct weft_nvml_handle * device, char *text, unsigned size),                \
      "nvmlDeviceGetName", NULL, "models are unknown")                                             \
    X(DeviceGetMinorNumber, (struct weft_nvml_handle * device, unsigned *minor),                   \
      "nvmlDeviceGetMinorNumber", NULL, "device nodes come from /proc/driver/nvidia/gpus")         \
    X(DeviceGetPciInfo, (struct weft_nvml_handle * device, struct weft_nvml_pci * pci),            \
      "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2",                                        \
      "PCI addresses are unknown, and with them direct NVLinks")                                   \
    X(DeviceGetMemoryInfo, (struct weft_nvml_handle * device, struct weft_nvml_memory * memory),   \
      "nvmlDeviceGetMemoryInfo", NULL, "memory sizes are unknown")                                 \
    X(DeviceGetCudaComputeCapability, (struct weft_nvml_handle * device, int *major, int *minor),  \
      "nvmlDeviceGetCudaComputeCapability", NULL, "compute capabilities are unknown")              \
    X(DeviceGetCurrPcieLinkGeneration, (struct weft_nvml_handle * device, unsigned *value),        \
      "nvmlDeviceGetCurrPcieLinkGeneration", NULL, "PCIe generations in use are unknown")          \
    X(DeviceGetCurrPcieLinkWidth, (struct weft_nvml_handle * device, unsigned *value),             \
      "nvmlDeviceGetCurrPcieLinkWidth", NULL, "PCIe widths in use are unknown")                    \
    X(DeviceGetMaxPcieLinkGeneration, (struct weft_nvml_handle * device, unsigned *value),         \
      "nvmlDeviceGetMaxPcieLinkGeneration", NULL, "possible PCIe generations are unknown")         \
    X(DeviceGetMaxPcieLinkWidth, (struct weft_nvml_handle * device, unsigned *value),              \
      "nvmlDeviceGetMaxPcieLinkWidth", NULL, "possible PCIe widths are unknown")                   \
    X(DeviceGetMemoryAffinity,                                                                     \
      (struct weft_nvml_handle * device, unsigned words, unsigned long *set, unsigned scope),      \
      "nvmlDeviceGetMemoryAffinity", NULL, "NUMA nodes come from sysfs alone")                     \
    X(DeviceGetNumaNodeId, (struct weft_nvml_handle * device, unsigned *node),                     \
      "nvmlDeviceGetNumaNodeId", NULL,                                                             \
      "a GPU's own memory node cannot be told apart where it is one")                              \
    X(DeviceGetTopologyCommonAncestor,                                                             \
      (struct weft_nvml_handle * a, struct weft_nvml_handle * b, int *level),                      \
      "nvmlDeviceGetTopologyCommonAncestor", NULL, "PCIe distances come from sysfs alone")         \
    X(DeviceGetP2PStatus,                                                                          \
      (struct weft_nvml_handle * a, struct weft_nvml_handle * b, int capability, int *status),     \
      "nvmlDeviceGetP2PStatus", NULL, "links count without a look at peer-to-peer access")         \
    X(DeviceGetNvLinkState, (struct weft_nvml_handle * device, unsigned link, int *active),        \
      "nvmlDeviceGetNvLinkState", NULL, "states of NVLinks come from field values")                \
    X(DeviceGetNvLinkVersion,                                                                      \
      (struct weft_nvml_handle * device, unsigned link, unsigned *version),                        \
      "nvmlDeviceGetNvLinkVersion", NULL, "NVLink versions come from field values")                \
    X(DeviceGetNvLinkRemotePciInfo,                                                                \
      (struct weft_nvml_handle * device, unsigned link, struct weft_nvml_pci *pci),                \
      "nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemotePciInfo",                   \
      "direct NVLinks are not seen")                                                               \
    X(DeviceGetNvLinkRemoteDeviceType,                                                             \
      (struct weft_nvml_handle * device, unsigned link, int *type),                                \
      "nvmlDeviceGetNvLinkRemoteDeviceType", NULL, "NVSwitch links are told by their count alone") \
    X(DeviceGetFieldValues,                                                                        \
      (struct weft_nvml_handle * device, int count, struct weft_nvml_field *values),               \
      "nvmlDeviceGetFieldValues", NULL,                                                            \
      "link rates come from the NVLink version, and repairs are not seen")                         \
    X(DeviceGetGpuFabricInfoV,                                                                     \
      (struct weft_nvml_handle * device, struct weft_nvml_fabric_v * fabric),                      \
      "nvmlDeviceGetGpuFabricInfoV", NULL,                                                         \
      "NVLink fabrics are asked for in the older way, if at all")                                  \
    X(DeviceGetGpuFabricInfo,                                                                      \
      (struct weft_nvml_handle * device, struct weft_nvml_fabric * fabric),                        \
      "nvmlDeviceGetGpuFabricInfo", NULL, NULL)                                                    \
    X(DeviceGetMigMode, (struct weft_nvml_handle * device, unsigned *now, unsigned *pending),      \
      "nvmlDeviceGetMigMode", NULL, "MIG instances are not seen")                                  \
    X(DeviceGetMaxMigDeviceCount, (struct weft_nvml_handle * device, unsigned *count),             \
      "nvmlDeviceGetMaxMigDeviceCount", NULL, "MIG instances are sought among seven")              \
    X(DeviceGetMigDeviceHandleByIndex,                                                             \
      (struct weft_nvml_handle * device, unsigned index, struct weft_nvml_handle **instance),      \
      "nvmlDeviceGetMigDeviceHandleByIndex", NULL, "MIG instances are not seen")                   \
    X(DeviceGetGpuInstanceId, (struct weft_nvml_handle * device, unsigned *id),                    \
      "nvmlDeviceGetGpuInstanceId", NULL, "MIG instances get no device nodes")                     \
    X(DeviceGetComputeInstanceId, (struct weft_nvml_handle * device, unsigned *id),                \
      "nvmlDeviceGetComputeInstanceId", NULL, "MIG instances get no device nodes")                 \
    X(DeviceGetAttributes,                                                                         \
      (struct weft_nvml_handle * device, struct weft_nvml_attributes * attributes),                \
      "nvmlDeviceGetAttributes_v2", NULL, "MIG profiles come from names alone")                    \
    X(DeviceGetRemappedRows,                                                                       \
      (struct weft_nvml_handle * device, unsigned *corrected, unsigned *uncorrected,               \
       unsigned *pending, unsigned *failed),                                                       \
      "nvmlDeviceGetRemappedRows", NULL, "memory that is worn out is not seen")                    \
    X(EventSetCreate, (struct weft_nvml_set * *set), "nvmlEventSetCreate", NULL,                   \
      "health is looked at now and then, not told")                                                \
    X(DeviceGetSupportedEventTypes, (struct weft_nvml_handle * device, uint64_t * types),          \
      "nvmlDeviceGetSupportedEventTypes", NULL, "only XIDs are waited for")                        \
    X(DeviceRegisterEvents,                                                                        \
      (struct weft_nvml_handle * device, uint64_t types, struct weft_nvml_set * set),              \
      "nvmlDeviceRegisterEvents", NULL, "health is looked at now and then, not told")              \
    X(EventSetWait,                                                                                \
      (struct weft_nvml_set * set, struct weft_nvml_event * event, unsigned timeout_ms),           \
      "nvmlEventSetWait_v2", "nvmlEventSetWait", "health is looked at now and then, not told")     \
    X(EventSetFree, (struct weft_nvml_set * set), "nvmlEventSetFree", NULL,                        \
      "event sets stay until the end")

#endif
