/* SPDX-License-Identifier: Apache-2.0 */
/* The library's functions about NVLinks, fabrics, field values and events. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/fakes/nvml/mock.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int nvmlDeviceGetNvLinkState(struct weft_nvml_handle *device, unsigned link, int *active);
EXPORT int nvmlDeviceGetNvLinkVersion(struct weft_nvml_handle *device, unsigned link,
                                      unsigned *version);
EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct weft_nvml_handle *device, unsigned link,
                                               struct weft_nvml_pci *pci);
EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(struct weft_nvml_handle *device, unsigned link,
                                               int *type);
EXPORT int nvmlDeviceGetFieldValues(struct weft_nvml_handle *device, int count,
                                    struct weft_nvml_field *values);
EXPORT int nvmlDeviceGetGpuFabricInfoV(struct weft_nvml_handle *device,
                                       struct weft_nvml_fabric_v *fabric);
EXPORT int nvmlDeviceGetGpuFabricInfo(struct weft_nvml_handle *device,
                                      struct weft_nvml_fabric *fabric);
EXPORT int nvmlEventSetCreate(struct weft_nvml_set **set);
EXPORT int nvmlDeviceGetSupportedEventTypes(struct weft_nvml_handle *device, uint64_t *types);
EXPORT int nvmlDeviceRegisterEvents(struct weft_nvml_handle *device, uint64_t types,
                                    struct weft_nvml_set *set);
EXPORT int nvmlEventSetWait_v2(struct weft_nvml_set *set, struct weft_nvml_event *event,
                               unsigned timeout_ms);
EXPORT int nvmlEventSetFree(struct weft_nvml_set *set);

/* [count, where, "down"] of the group that the link is in; NULL: there is no such link. */
static const cJSON *link_of(const struct weft_nvml_handle *device, unsigned link)
{
    const cJSON *group = NULL;
    cJSON_ArrayForEach(group, mock_of(device, "links"))
    {
        const unsigned count = (unsigned)cJSON_GetArrayItem(group, 0)->valueint;
        if (link < count) {
            return group;
        }
        link -= count;
    }
    return NULL;
}

static bool is_up(const cJSON *group)
{
    return group != NULL && cJSON_GetArraySize(group) < 3;
}

int nvmlDeviceGetNvLinkState(struct weft_nvml_handle *device, unsigned link, int *active)
{
    const int rc = mock_begin("nvmlDeviceGetNvLinkState", device);
    if (rc != 0) {
        return rc;
    }
    const cJSON *group = link_of(device, link);
    *active = is_up(group);
    const int none = mock_of(device, "links") == NULL ? (int)WEFT_NVML_NOT_SUPPORTED
                                                      : (int)WEFT_NVML_INVALID_ARGUMENT;
    const cJSON *state = cJSON_GetArrayItem(group, 2);
    const bool hole = cJSON_IsString(state) && strcmp(state->valuestring, "none") == 0;
    return mock_end(hole ? (int)WEFT_NVML_NOT_SUPPORTED : group != NULL ? 0 : none);
}

int nvmlDeviceGetNvLinkVersion(struct weft_nvml_handle *device, unsigned link, unsigned *version)
{
    const int rc = mock_begin("nvmlDeviceGetNvLinkVersion", device);
    (void)link;
    return rc != 0 ? rc : mock_end(mock_number(mock_of(device, "version"), version));
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct weft_nvml_handle *device, unsigned link,
                                        struct weft_nvml_pci *pci)
{
    const int rc = mock_begin("nvmlDeviceGetNvLinkRemotePciInfo_v2", device);
    if (rc != 0) {
        return rc;
    }
    const cJSON *where = cJSON_GetArrayItem(link_of(device, link), 1);
    if (where == NULL) {
        return mock_end(WEFT_NVML_INVALID_ARGUMENT);
    }
    *pci = (struct weft_nvml_pci){.bus = 0xf0}; /* a switch, a CPU */
    if (cJSON_IsNumber(where)) {
        (void)mock_bdf(mock_of(mock_handle(where->valueint, -1), "bdf"), pci);
    }
    return mock_end(0);
}

int nvmlDeviceGetNvLinkRemoteDeviceType(struct weft_nvml_handle *device, unsigned link, int *type)
{
    const int rc = mock_begin("nvmlDeviceGetNvLinkRemoteDeviceType", device);
    if (rc != 0) {
        return rc;
    }
    const cJSON *where = cJSON_GetArrayItem(link_of(device, link), 1);
    const char *word = cJSON_IsString(where) ? where->valuestring : "";
    *type = strcmp(word, "switch") == 0    ? WEFT_NVML_REMOTE_SWITCH
            : strcmp(word, "npu") == 0     ? WEFT_NVML_REMOTE_NPU
            : strcmp(word, "unknown") == 0 ? WEFT_NVML_REMOTE_UNKNOWN
                                           : WEFT_NVML_REMOTE_GPU;
    return mock_end(where != NULL ? 0 : (int)WEFT_NVML_INVALID_ARGUMENT);
}

static void answer_field(const struct weft_nvml_handle *device, struct weft_nvml_field *f)
{
    const cJSON *group = link_of(device, f->scope);
    const cJSON *item = NULL;
    unsigned value = 0;
    switch (f->id) {
    case WEFT_NVML_FIELD_LINK_SPEED_COMMON:
        item = mock_of(device, "common_rate");
        break;
    case WEFT_NVML_FIELD_LINK_SPEED:
        item = is_up(group) ? mock_of(device, "rate") : NULL;
        break;
    case WEFT_NVML_FIELD_LINK_VERSION:
        item = mock_of(device, "version");
        break;
    case WEFT_NVML_FIELD_SWITCH_LINKS:
        item = mock_of(device, "switch_links");
        break;
    case WEFT_NVML_FIELD_RECOVERY_ACTION:
        item = mock_of(device, "recovery");
        break;
    default:
        break;
    }
    f->value_type = 1;
    f->rc = mock_number(item, &value);
    if (f->id == WEFT_NVML_FIELD_LINK_STATE && group != NULL) {
        value = is_up(group);
        f->rc = 0;
    }
    f->value.u64 = 0;
    f->value.u32 = value;
}

int nvmlDeviceGetFieldValues(struct weft_nvml_handle *device, int count,
                             struct weft_nvml_field *values)
{
    const int rc = mock_begin("nvmlDeviceGetFieldValues", device);
    if (rc != 0) {
        return rc;
    }
    for (int i = 0; i < count; i++) {
        answer_field(device, &values[i]);
    }
    return mock_end(0);
}

/* ---- fabric ---- */

static unsigned number_in(const cJSON *object, const char *key)
{
    unsigned value = 0;
    (void)mock_number(cJSON_GetObjectItemCaseSensitive(object, key), &value);
    return value;
}

static void cluster_of(const cJSON *fabric, uint8_t *cluster)
{
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(fabric, "cluster");
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < 16; i++) {
        cluster[i] = 0;
        if (cJSON_IsString(text) && strlen(text->valuestring) == 32) {
            const char *high = strchr(digits, text->valuestring[2 * i]);
            const char *low = strchr(digits, text->valuestring[2 * i + 1]);
            cluster[i] = (uint8_t)((high - digits) * 16 + (low - digits));
        }
    }
}

int nvmlDeviceGetGpuFabricInfoV(struct weft_nvml_handle *device, struct weft_nvml_fabric_v *fabric)
{
    const int rc = mock_begin("nvmlDeviceGetGpuFabricInfoV", device);
    if (rc != 0) {
        return rc;
    }
    const cJSON *f = mock_of(device, "fabric");
    if (fabric->version != WEFT_NVML_FABRIC_V2) {
        return mock_end(WEFT_NVML_ARGUMENT_VERSION_MISMATCH);
    }
    cluster_of(f, fabric->cluster);
    fabric->status = (int)number_in(f, "status");
    fabric->clique = number_in(f, "clique");
    fabric->state = (uint8_t)number_in(f, "state");
    return mock_end(0);
}

int nvmlDeviceGetGpuFabricInfo(struct weft_nvml_handle *device, struct weft_nvml_fabric *fabric)
{
    const int rc = mock_begin("nvmlDeviceGetGpuFabricInfo", device);
    if (rc != 0) {
        return rc;
    }
    const cJSON *f = mock_of(device, "fabric");
    cluster_of(f, fabric->cluster);
    fabric->status = (int)number_in(f, "status");
    fabric->clique = number_in(f, "clique");
    fabric->state = (uint8_t)number_in(f, "state");
    return mock_end(0);
}

/* ---- events ---- */

static int told; /* of the file's events */
static char the_set;
static struct weft_nvml_handle nobody = {.gpu = -1, .instance = -1};

int nvmlEventSetCreate(struct weft_nvml_set **set)
{
    const int rc = mock_begin("nvmlEventSetCreate", NULL);
    if (rc != 0) {
        return rc;
    }
    *set = (struct weft_nvml_set *)&the_set;
    told = cJSON_GetArraySize(mock_root("events")); /* what was before is told to nobody */
    (void)mock_end(0);
    mock_wait_change(0); /* watches from now on */
    return 0;
}

int nvmlEventSetFree(struct weft_nvml_set *set)
{
    (void)set;
    const int rc = mock_begin("nvmlEventSetFree", NULL);
    return rc != 0 ? rc : mock_end(0);
}

int nvmlDeviceGetSupportedEventTypes(struct weft_nvml_handle *device, uint64_t *types)
{
    const int rc = mock_begin("nvmlDeviceGetSupportedEventTypes", device);
    if (rc != 0) {
        return rc;
    }
    unsigned value = WEFT_NVML_EVENT_XID | WEFT_NVML_EVENT_MIG_CHANGED;
    (void)mock_number(mock_of(device, "event_types"), &value);
    *types = value;
    return mock_end(0);
}

int nvmlDeviceRegisterEvents(struct weft_nvml_handle *device, uint64_t types,
                             struct weft_nvml_set *set)
{
    (void)types;
    (void)set;
    const int rc = mock_begin("nvmlDeviceRegisterEvents", device);
    return rc != 0 ? rc : mock_end(0);
}

static bool next_event(struct weft_nvml_event *event)
{
    const cJSON *e = cJSON_GetArrayItem(mock_root("events"), told);
    if (e == NULL) {
        return false;
    }
    told++;
    const cJSON *gpu = cJSON_GetObjectItemCaseSensitive(e, "gpu");
    *event = (struct weft_nvml_event){
        .device = cJSON_IsNumber(gpu) ? mock_handle(gpu->valueint, -1) : &nobody,
        .type = number_in(e, "type"),
        .data = number_in(e, "data"),
        .gpu_instance = UINT32_MAX,
        .compute_instance = UINT32_MAX,
    };
    (void)mock_number(cJSON_GetObjectItemCaseSensitive(e, "gi"), &event->gpu_instance);
    (void)mock_number(cJSON_GetObjectItemCaseSensitive(e, "ci"), &event->compute_instance);
    return true;
}

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int nvmlEventSetWait_v2(struct weft_nvml_set *set, struct weft_nvml_event *event,
                        unsigned timeout_ms)
{
    (void)set;
    const int64_t end = now_ms() + (int64_t)timeout_ms;
    for (;;) {
        const int rc = mock_begin("nvmlEventSetWait_v2", NULL);
        if (rc != 0) {
            return rc;
        }
        if (mock_end(next_event(event))) {
            return WEFT_NVML_OK;
        }
        const int64_t left = end - now_ms();
        if (left <= 0) {
            return WEFT_NVML_TIMEOUT;
        }
        mock_wait_change((int)left);
    }
}
