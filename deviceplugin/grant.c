/* SPDX-License-Identifier: Apache-2.0 */
/* From ids to device numbers and back: preferred allocation and the list of devices. */
#include "deviceplugin/grant.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "deviceplugin/inventory.h"
#include "deviceplugin/preference.h"
#include "pkg/base/buf.h"
#include "pkg/base/log.h"
#include "pkg/machine/machine.h"
#include "pkg/pb/arena.h"

/* ---- preferred allocation ---- */

/* The devices of the known ids; unknown ones are dropped, as the objective says. */
static size_t *numbers_of(const struct weft_inventory *inventory, struct weft_pb_arena *arena,
                          const struct weft_kubelet_ids *ids, size_t *ret_count)
{
    size_t *numbers = weft_pb_arena_alloc(arena, (ids->count + 1) * sizeof(numbers[0]));
    *ret_count = 0;
    for (size_t i = 0; numbers != NULL && i < ids->count; i++) {
        const size_t number = weft_inventory_find(inventory, ids->ids[i], NULL);
        if (number != SIZE_MAX) {
            numbers[(*ret_count)++] = number;
        }
    }
    return numbers;
}

static int prefer_devices(const struct weft_grant_preferring *from,
                          const struct weft_kubelet_preferred *container,
                          struct weft_preference *ret_preference)
{
    const struct weft_inventory *inventory = from->inventory;
    struct weft_pb_arena *arena = from->arena;
    struct weft_request request = {.size = container->size, .policy = from->policy};
    const size_t *available =
        numbers_of(inventory, arena, &container->available, &request.available_count);
    const size_t *required =
        numbers_of(inventory, arena, &container->required, &request.required_count);
    if (available == NULL || required == NULL) {
        return -ENOMEM;
    }
    request.available = available;
    request.required = required;
    weft_auto(weft_choice_done) struct weft_choice choice = {0};
    const int rc =
        weft_allocator_pick(weft_inventory_allocator(inventory), &request, &choice, NULL);
    if (rc < 0) {
        return rc;
    }
    const struct weft_machine *machine = weft_inventory_machine(inventory);
    const char **ids = weft_pb_arena_alloc(arena, (choice.count + 1) * sizeof(ids[0]));
    if (ids == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < choice.count; i++) {
        ids[i] = machine->devices[choice.devices[i]].id;
    }
    ret_preference->answered = true;
    ret_preference->exact = choice.exact;
    ret_preference->scored = choice.count > 0;
    ret_preference->objective = choice.objective;
    ret_preference->ids = ids;
    ret_preference->count = choice.count;
    return 0;
}

static struct weft_replica *replicas_of(const struct weft_inventory *inventory,
                                        struct weft_pb_arena *arena,
                                        const struct weft_kubelet_ids *ids, size_t *ret_count)
{
    struct weft_replica *replicas =
        weft_pb_arena_alloc(arena, (ids->count + 1) * sizeof(replicas[0]));
    *ret_count = 0;
    for (size_t i = 0; replicas != NULL && i < ids->count; i++) {
        struct weft_replica r = {0};
        r.device = weft_inventory_find(inventory, ids->ids[i], &r.number);
        if (r.device != SIZE_MAX) {
            replicas[(*ret_count)++] = r;
        }
    }
    return replicas;
}

/* The ids of a choice, in the arena. */
static const char **replica_ids(const struct weft_inventory *inventory, struct weft_pb_arena *arena,
                                const struct weft_replica_choice *choice)
{
    const char **ids = weft_pb_arena_alloc(arena, (choice->count + 1) * sizeof(ids[0]));
    for (size_t i = 0; ids != NULL && i < choice->count; i++) {
        char *id = weft_pb_arena_alloc(arena, WEFT_INVENTORY_ID_MAX);
        if (id == NULL) {
            return NULL;
        }
        ids[i] = weft_inventory_id(inventory, choice->ids[i].device, choice->ids[i].number, id);
    }
    return ids;
}

static int prefer_replicas(const struct weft_grant_preferring *from,
                           const struct weft_kubelet_preferred *container,
                           struct weft_preference *ret_preference)
{
    const struct weft_inventory *inventory = from->inventory;
    struct weft_pb_arena *arena = from->arena;
    const size_t devices = weft_inventory_machine(inventory)->device_count;
    struct weft_replica_request request = {
        .size = container->size, .policy = from->policy, .sharing = from->sharing};
    uint32_t *totals = weft_pb_arena_alloc(arena, (devices + 1) * sizeof(totals[0]));
    const struct weft_replica *available =
        replicas_of(inventory, arena, &container->available, &request.available_count);
    const struct weft_replica *required =
        replicas_of(inventory, arena, &container->required, &request.required_count);
    if (totals == NULL || available == NULL || required == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < devices; i++) {
        totals[i] = weft_inventory_replicas(inventory);
    }
    request.available = available;
    request.required = required;
    request.totals = totals;
    weft_auto(weft_replica_choice_done) struct weft_replica_choice choice = {0};
    const int rc =
        weft_allocator_pick_replicas(weft_inventory_allocator(inventory), &request, &choice, NULL);
    const char **ids = rc == 0 ? replica_ids(inventory, arena, &choice) : NULL;
    if (ids == NULL) {
        return rc < 0 ? rc : -ENOMEM;
    }
    ret_preference->answered = true;
    ret_preference->exact = choice.exact;
    ret_preference->ids = ids;
    ret_preference->count = choice.count;
    return 0;
}

void weft_grant_prefer(const struct weft_grant_preferring *from, const void *request, size_t len,
                       struct weft_buf *buf)
{
    struct weft_pb_arena *arena = from->arena;
    struct weft_kubelet_preferred_request asked = {0};
    struct weft_error err = {0};
    if (weft_kubelet_decode_preferred(arena, request, len, &asked, &err) < 0) {
        weft_log(WEFT_LOG_WARN, "preference-not-read", WEFT_KV_S("reason", err.message));
        if (from->told != NULL) {
            from->told(from->data, &(struct weft_preference){0});
        }
        return; /* an empty message is a valid answer without a preference */
    }
    struct weft_kubelet_ids *lists =
        weft_pb_arena_alloc(arena, (asked.count + 1) * sizeof(lists[0]));
    for (size_t i = 0; lists != NULL && i < asked.count; i++) {
        const struct weft_kubelet_preferred *container = &asked.containers[i];
        struct weft_preference preference = {.available = container->available.count,
                                             .required = container->required.count,
                                             .size = container->size};
        (void)(weft_inventory_replicas(from->inventory) > 1
                   ? prefer_replicas(from, container, &preference)
                   : prefer_devices(from, container, &preference));
        lists[i] = (struct weft_kubelet_ids){.ids = preference.ids, .count = preference.count};
        if (from->told != NULL) {
            from->told(from->data, &preference);
        }
    }
    const struct weft_kubelet_id_lists answer = {.containers = lists, .count = asked.count};
    if (lists == NULL || weft_kubelet_encode_preferred(arena, &answer, buf) < 0) {
        weft_buf_reset(buf);
    }
}

/* ---- devices ---- */

/* RFC 4122 form, anywhere in the id: "GPU-…", "MIG-…", "MIG-GPU-…/1/0". */
static bool has_uuid(const char *id)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    for (; strlen(id) >= sizeof(form) - 1; id++) {
        size_t i = 0;
        while (form[i] != '\0' &&
               (form[i] == 'x' ? isxdigit((unsigned char)id[i]) != 0 : id[i] == form[i])) {
            i++;
        }
        if (form[i] == '\0') {
            return true;
        }
    }
    return false;
}

bool weft_grant_possible(const struct weft_machine *machine)
{
    bool possible = machine->device_count == 0;
    for (size_t i = 0; i < machine->device_count && !possible; i++) {
        possible = machine->devices[i].node_count > 0 || has_uuid(machine->devices[i].id);
    }
    return possible;
}

int weft_grant_list(const struct weft_inventory *inventory, struct weft_pb_arena *arena,
                    struct weft_buf *buf)
{
    const struct weft_machine *machine = weft_inventory_machine(inventory);
    const uint32_t replicas = weft_inventory_replicas(inventory);
    const size_t count = machine->device_count * replicas;
    struct weft_kubelet_device *devices =
        weft_pb_arena_alloc(arena, (count + 1) * sizeof(devices[0]));
    if (devices == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        const struct weft_device *d = &machine->devices[i / replicas];
        char *id = weft_pb_arena_alloc(arena, WEFT_INVENTORY_ID_MAX);
        if (id == NULL) {
            return -ENOMEM;
        }
        devices[i] = (struct weft_kubelet_device){
            .id = weft_inventory_id(inventory, i / replicas, (uint32_t)(i % replicas), id),
            .healthy = d->healthy,
            .numa_node = d->numa_node};
    }
    const struct weft_kubelet_devices list = {.devices = devices, .count = count};
    return weft_kubelet_encode_devices(arena, &list, buf);
}
