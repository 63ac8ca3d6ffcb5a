/* SPDX-License-Identifier: Apache-2.0 */
/* Health of NVIDIA GPUs: which events are faults of which device, and what tells that a fault is
 * over: the driver itself, where it can say that no recovery is needed (recovery action NONE,
 * drivers from 560 on); else that the GPU was reset, or that the fault was of a kind that needs
 * none. How long all has to be well before anybody trusts it is decided by whoever asks. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/clock.h"
#include "pkg/machine/discover-nvml-internal.h"
#include "pkg/machine/host.h"

/* ---- words ---- */

/* What the XIDs that end a GPU's service mean, from the driver's catalogue of them. */
static const char *xid_meaning(uint64_t xid)
{
    static const struct {
        uint64_t xid;
        const char *meaning;
    } meanings[] = {
        {48, "double-bit memory error"},
        {61, "internal microcontroller halt"},
        {62, "internal microcontroller halt"},
        {64, "memory row remapping failed"},
        {74, "NVLink error"},
        {79, "GPU has fallen off the bus"},
        {92, "high rate of memory errors"},
        {94, "contained memory error"},
        {95, "uncontained memory error"},
        {119, "GPU system processor timeout"},
        {120, "GPU system processor error"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(meanings); i++) {
        if (meanings[i].xid == xid) {
            return meanings[i].meaning;
        }
    }
    return "see the driver's XID catalogue";
}

static void describe(const struct weft_nvml_sick *sick, char *text, size_t size)
{
    if (sick->xid == 0) {
        (void)snprintf(text, size, "the driver says the GPU is unavailable");
    } else {
        (void)snprintf(text, size, "XID %" PRIu64 ": %s", sick->xid, xid_meaning(sick->xid));
    }
}

static const char *recovery_reason(int action)
{
    switch (action) {
    case WEFT_NVML_RECOVERY_RESET:
        return "the driver asks for a reset of the GPU";
    case WEFT_NVML_RECOVERY_REBOOT:
        return "the driver asks for a reboot of the node";
    case WEFT_NVML_RECOVERY_DRAIN_P2P:
        return "the driver asks to drain peer-to-peer work from the GPU";
    case WEFT_NVML_RECOVERY_DRAIN_AND_RESET:
        return "the driver asks to drain and reset the GPU";
    default:
        return "the driver asks for a recovery of the GPU";
    }
}

/* ---- faults that are remembered ---- */

static bool same_place(const struct weft_nvml_sick *a, const struct weft_nvml_sick *b)
{
    return a->all == b->all && strcmp(a->uuid, b->uuid) == 0 && a->gi == b->gi && a->ci == b->ci;
}

/* One entry a place, the latest fault; when full, the whole machine's entry takes the rest. */
static void remember(struct weft_nvml *nvml, struct weft_nvml_sick sick)
{
    for (size_t i = 0; i < nvml->sick_count; i++) {
        if (same_place(&nvml->sick[i], &sick)) {
            nvml->sick[i] = sick;
            return;
        }
    }
    if (nvml->sick_count == WEFT_NVML_SICK_MAX) {
        sick.all = true;
        nvml->sick[WEFT_NVML_SICK_MAX - 1] = sick;
        return;
    }
    nvml->sick[nvml->sick_count++] = sick;
}

/* After these a GPU serves on without a reset: NVIDIA's XID catalogue has "restart the application"
 * or nothing at all as the immediate action. What is not here is not trusted. */
static bool serves_on(uint64_t xid)
{
    static const uint64_t xids[] = {8, 11, 13, 31, 43, 45, 63, 68, 69, 92, 94, 109};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(xids); i++) {
        if (xids[i] == xid) {
            return true;
        }
    }
    return false;
}

static bool is_over_for(const struct weft_nvml_sick *sick, const struct weft_nvml_gpu *gpu)
{
    if (gpu->trouble != 0 || gpu->recovery > WEFT_NVML_RECOVERY_NONE) {
        return false;
    }
    return gpu->recovery == WEFT_NVML_RECOVERY_NONE || gpu->anew || serves_on(sick->xid);
}

static bool is_over(const struct weft_nvml *nvml, const struct weft_nvml_sick *sick)
{
    bool over = true;
    for (size_t i = 0; over && i < nvml->gpu_count; i++) {
        const struct weft_nvml_gpu *gpu = &nvml->gpus[i];
        const bool meant = sick->all || strcmp(gpu->uuid, sick->uuid) == 0;
        over = !meant || is_over_for(sick, gpu);
    }
    return over;
}

void weft_nvml_recover(struct weft_nvml *nvml)
{
    size_t kept = 0;
    for (size_t i = 0; i < nvml->sick_count; i++) {
        if (!is_over(nvml, &nvml->sick[i])) {
            nvml->sick[kept++] = nvml->sick[i];
        }
    }
    nvml->sick_count = kept;
}

static bool concerns(const struct weft_nvml_sick *sick, const struct weft_nvml_gpu *gpu,
                     const struct weft_nvml_instance *instance)
{
    if (sick->all) {
        return true;
    }
    if (strcmp(sick->uuid, gpu->uuid) != 0) {
        return false;
    }
    return instance == NULL || sick->gi == UINT32_MAX ||
           (sick->gi == instance->gi && (sick->ci == UINT32_MAX || sick->ci == instance->ci));
}

void weft_nvml_set_health(const struct weft_nvml *nvml, const struct weft_nvml_gpu *gpu,
                          const struct weft_nvml_instance *instance, struct weft_device *device)
{
    char *reason = device->health_reason;
    const size_t size = sizeof(device->health_reason);
    reason[0] = '\0';
    if (gpu->trouble != 0) {
        (void)snprintf(reason, size, "%.95s", weft_nvml_reason(gpu->trouble));
    }
    for (size_t i = 0; reason[0] == '\0' && i < nvml->sick_count; i++) {
        if (concerns(&nvml->sick[i], gpu, instance)) {
            describe(&nvml->sick[i], reason, size);
        }
    }
    if (reason[0] == '\0' && gpu->recovery > WEFT_NVML_RECOVERY_NONE) {
        (void)snprintf(reason, size, "%s", recovery_reason(gpu->recovery));
    }
    if (reason[0] == '\0' && gpu->rows_failed) {
        (void)snprintf(reason, size, "its memory has no spare rows left: it has to be replaced");
    }
    device->healthy = reason[0] == '\0';
    if (device->healthy && gpu->doubt != WEFT_NVML_OK) {
        device->state = WEFT_DEVICE_SUSPECT;
        (void)snprintf(reason, size, "asked for its memory: %.50s (NVML %d)",
                       weft_nvml_reason(gpu->doubt), gpu->doubt);
    }
}

/* ---- looks ---- */

static bool is_trouble(int rc)
{
    return rc == WEFT_NVML_GPU_IS_LOST || rc == WEFT_NVML_RESET_REQUIRED;
}

/* Whoever works may still lack a function, or the right to call it. */
static bool is_answer(int rc)
{
    return rc == WEFT_NVML_OK || rc == WEFT_NVML_NOT_SUPPORTED ||
           rc == WEFT_NVML_FUNCTION_NOT_FOUND || rc == WEFT_NVML_NO_PERMISSION;
}

/* By what the kernel says. A function that it never showed is one of a virtual machine's. */
static bool is_off_bus(const struct weft_nvml *nvml, const struct weft_nvml_gpu *gpu,
                       enum weft_pci_sign *ret_sign)
{
    *ret_sign = weft_host_pci_sign(nvml->host, &gpu->bdf);
    return *ret_sign == WEFT_PCI_DEAD || (*ret_sign == WEFT_PCI_ABSENT && gpu->on_bus);
}

int weft_nvml_examine(struct weft_nvml *nvml, struct weft_nvml_gpu *gpu, int rc)
{
    enum weft_pci_sign sign;
    if (is_off_bus(nvml, gpu, &sign)) {
        return WEFT_NVML_GPU_IS_LOST;
    }
    gpu->on_bus = sign == WEFT_PCI_THERE;
    if (is_trouble(rc)) {
        return rc;
    }
    gpu->doubt = is_answer(rc) ? WEFT_NVML_OK : rc;
    unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    if (WEFT_NVML_CALL(nvml, DeviceGetRemappedRows, gpu->handle, &corrected, &uncorrected, &pending,
                       &failed) == WEFT_NVML_OK) {
        gpu->rows_pending = pending != 0;
        gpu->rows_failed = failed != 0;
    }
    return WEFT_NVML_OK;
}

/* ---- events ---- */

static uint64_t wanted_events(struct weft_nvml *nvml, const struct weft_nvml_gpu *gpu)
{
    const uint64_t all = WEFT_NVML_EVENT_XID | WEFT_NVML_EVENT_MIG_CHANGED |
                         WEFT_NVML_EVENT_UNAVAILABLE | WEFT_NVML_EVENT_RECOVERY;
    uint64_t supported = 0;
    const int rc = WEFT_NVML_CALL(nvml, DeviceGetSupportedEventTypes, gpu->handle, &supported);
    return rc == WEFT_NVML_OK ? supported & all : WEFT_NVML_EVENT_XID;
}

static void register_gpu(struct weft_nvml *nvml, struct weft_nvml_gpu *gpu)
{
    const uint64_t types = wanted_events(nvml, gpu);
    if (types != 0) {
        const int rc = WEFT_NVML_CALL(nvml, DeviceRegisterEvents, gpu->handle, types, nvml->events);
        gpu->registered = rc == WEFT_NVML_OK;
    }
}

void weft_nvml_listen(struct weft_nvml *nvml)
{
    if (nvml->wait_failures > WEFT_NVML_WAIT_FAILURES_MAX) {
        nvml->events_lacking = true; /* until the library is opened again */
        return;
    }
    if (nvml->events == NULL &&
        WEFT_NVML_CALL(nvml, EventSetCreate, &nvml->events) != WEFT_NVML_OK) {
        nvml->events = NULL;
    }
    bool any = false;
    for (size_t i = 0; nvml->events != NULL && i < nvml->gpu_count; i++) {
        struct weft_nvml_gpu *gpu = &nvml->gpus[i];
        if (gpu->handle == NULL || gpu->trouble != 0) {
            gpu->registered = false;
        } else if (!gpu->registered) {
            register_gpu(nvml, gpu);
        }
        any = any || gpu->registered;
    }
    nvml->events_lacking = !any || nvml->api.EventSetWait == NULL;
}

void weft_nvml_stop_listening(struct weft_nvml *nvml)
{
    if (nvml->events != NULL) {
        (void)WEFT_NVML_CALL(nvml, EventSetFree, nvml->events);
        nvml->events = NULL;
    }
    for (size_t i = 0; i < nvml->gpu_count; i++) {
        nvml->gpus[i].registered = false;
    }
}

static const struct weft_nvml_gpu *gpu_of(const struct weft_nvml *nvml,
                                          const struct weft_nvml_handle *handle)
{
    for (size_t i = 0; i < nvml->gpu_count; i++) {
        if (handle != NULL && nvml->gpus[i].handle == handle) { /* one that is gone has none */
            return &nvml->gpus[i];
        }
    }
    return NULL;
}

static void queue(struct weft_nvml *nvml, enum weft_backend_event_kind kind, const char *device,
                  uint64_t code, const char *reason)
{
    const bool again = nvml->queued > 0; /* the library's events are taken one by one */
    struct weft_backend_event *event = &nvml->queue[nvml->queued++];
    *event = (struct weft_backend_event){.kind = kind, .code = code, .again = again};
    (void)snprintf(event->device, sizeof(event->device), "%s", device);
    (void)snprintf(event->reason, sizeof(event->reason), "%.95s", reason);
}

/* One event for each device that the fault is of. */
static void queue_fault(struct weft_nvml *nvml, enum weft_backend_event_kind kind,
                        const struct weft_nvml_gpu *gpu, struct weft_nvml_sick sick)
{
    char reason[96];
    describe(&sick, reason, sizeof(reason));
    bool found = false;
    for (size_t i = 0; gpu != NULL && gpu->mig && i < gpu->instance_count; i++) {
        if (concerns(&sick, gpu, &gpu->instances[i])) {
            queue(nvml, kind, gpu->instances[i].uuid, sick.xid, reason);
            found = true;
        }
    }
    if (gpu != NULL && gpu->mig && !found) {
        /* an instance that is not known (any more): the whole GPU */
        sick.gi = sick.ci = UINT32_MAX;
        for (size_t i = 0; i < gpu->instance_count; i++) {
            queue(nvml, kind, gpu->instances[i].uuid, sick.xid, reason);
        }
    } else if (gpu == NULL || !gpu->mig) {
        queue(nvml, kind, gpu != NULL ? gpu->uuid : "", sick.xid, reason);
    }
    if (kind == WEFT_EVENT_UNHEALTHY) {
        remember(nvml, sick);
    }
}

static bool is_fault(const struct weft_nvml *nvml, uint64_t xid)
{
    const struct weft_backend_options *o = &nvml->options;
    return o->is_fault == NULL || o->is_fault(o->is_fault_data, xid);
}

static void translate(struct weft_nvml *nvml, const struct weft_nvml_event *event)
{
    const struct weft_nvml_gpu *gpu = gpu_of(nvml, event->device);
    struct weft_nvml_sick sick = {.all = gpu == NULL,
                                  .gi = event->gpu_instance,
                                  .ci = event->compute_instance,
                                  .xid = event->type == WEFT_NVML_EVENT_XID ? event->data : 0};
    (void)snprintf(sick.uuid, sizeof(sick.uuid), "%s", gpu != NULL ? gpu->uuid : "");
    if (event->type == WEFT_NVML_EVENT_XID) {
        queue_fault(nvml, is_fault(nvml, event->data) ? WEFT_EVENT_UNHEALTHY : WEFT_EVENT_NOTICE,
                    gpu, sick);
    } else if (event->type == WEFT_NVML_EVENT_UNAVAILABLE) {
        queue_fault(nvml, WEFT_EVENT_UNHEALTHY, gpu, sick);
    } else {
        queue(nvml, WEFT_EVENT_CHANGED, "", 0,
              event->type == WEFT_NVML_EVENT_MIG_CHANGED ? "MIG instances changed"
                                                         : "the driver's advice for a GPU changed");
    }
}

/* A look at what no event told: a GPU that is lost or does not answer as before, or a driver that
 * changed its advice. Two cheap questions a GPU, and one to the kernel. */
static const char *peek_gpu(struct weft_nvml *nvml, const struct weft_nvml_gpu *gpu)
{
    struct weft_nvml_memory memory = {0};
    enum weft_pci_sign sign;
    if (is_off_bus(nvml, gpu, &sign)) {
        return weft_nvml_reason(WEFT_NVML_GPU_IS_LOST);
    }
    const int rc = WEFT_NVML_CALL(nvml, DeviceGetMemoryInfo, gpu->handle, &memory);
    const uint64_t action = weft_nvml_field(nvml, gpu->handle, WEFT_NVML_FIELD_RECOVERY_ACTION);
    if (is_trouble(rc) || (is_answer(rc) ? WEFT_NVML_OK : rc) != gpu->doubt) {
        return weft_nvml_reason(rc);
    }
    return action <= INT16_MAX && (int)action != gpu->recovery
               ? "the driver's advice for a GPU changed"
               : NULL;
}

static void peek(struct weft_nvml *nvml)
{
    for (size_t i = 0; i < nvml->gpu_count && nvml->queued == 0; i++) {
        const struct weft_nvml_gpu *gpu = &nvml->gpus[i];
        const char *news = gpu->handle != NULL && gpu->trouble == 0 ? peek_gpu(nvml, gpu) : NULL;
        if (news != NULL) {
            queue(nvml, WEFT_EVENT_CHANGED, "", 0, news);
        }
    }
}

static bool take(struct weft_nvml *nvml, struct weft_backend_event *ret_event)
{
    if (nvml->queue_at == nvml->queued) {
        nvml->queue_at = nvml->queued = 0;
        return false;
    }
    *ret_event = nvml->queue[nvml->queue_at++];
    return true;
}

int weft_nvml_wait(void *state, int64_t timeout_ns, struct weft_backend_event *ret_event,
                   struct weft_error *err)
{
    struct weft_nvml *nvml = state;
    WEFT_CHECK(nvml, WEFT_NVML_MAGIC);
    if (take(nvml, ret_event)) {
        return 1;
    }
    if (nvml->events == NULL || nvml->events_lacking) {
        return -ENOTSUP;
    }
    struct weft_nvml_event event = {0};
    weft_backend_enter(nvml->options.watch, "nvmlEventSetWait", timeout_ns);
    const int rc =
        nvml->api.EventSetWait(nvml->events, &event, (unsigned)(timeout_ns / WEFT_NS_PER_MS));
    weft_backend_leave(nvml->options.watch);
    if (rc == WEFT_NVML_TIMEOUT || rc == WEFT_NVML_OK) {
        nvml->wait_failures = 0;
        if (rc == WEFT_NVML_OK) {
            translate(nvml, &event);
        } else {
            peek(nvml);
        }
        return take(nvml, ret_event) ? 1 : 0;
    }
    if (rc == WEFT_NVML_UNINITIALIZED || rc == WEFT_NVML_DRIVER_NOT_LOADED ||
        rc == WEFT_NVML_LIB_RM_VERSION_MISMATCH) {
        return weft_err_set(err, -EIO, WEFT_ERR_NVML, "waiting for events: %s (NVML %d)",
                            weft_nvml_reason(rc), rc);
    }
    /* One GPU's trouble is not the others': the next look tells whose it is. A set with a lost GPU
     * in it may fail for ever, so that look makes one without it, and after some failures in a row
     * none any more. */
    nvml->wait_failures++;
    weft_nvml_stop_listening(nvml);
    queue(nvml, WEFT_EVENT_CHANGED, "", 0, weft_nvml_reason(rc));
    return take(nvml, ret_event) ? 1 : 0;
}
