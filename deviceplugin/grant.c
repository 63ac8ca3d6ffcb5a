/* SPDX-License-Identifier: Apache-2.0 */
/* From ids to device numbers and back, and what a container needs to use its devices. */
#include "deviceplugin/grant.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "deviceplugin/inventory.h"
#include "deviceplugin/stats.h"
#include "pkg/base/buf.h"
#include "pkg/machine/machine.h"
#include "pkg/pb/arena.h"

enum { ENV_VALUE_MAX = WEFT_MACHINE_DEVICES_MAX * WEFT_DEVICE_ID_MAX };

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
    if (weft_kubelet_decode_preferred(arena, request, len, &asked, NULL) < 0) {
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

/* ---- allocation ---- */

static int compare_index(const void *a, const void *b)
{
    const struct weft_device *const *x = a, *const *y = b;
    return ((*x)->index > (*y)->index) - ((*x)->index < (*y)->index);
}

/* The devices of the ids in the vendor's order, each once. */
static int resolve(const struct weft_inventory *inventory, struct weft_pb_arena *arena,
                   const struct weft_kubelet_ids *ids, const struct weft_device ***ret_devices,
                   size_t *ret_count, struct weft_error *err)
{
    const struct weft_machine *machine = weft_inventory_machine(inventory);
    if (ids->count > 1 && weft_inventory_one_only(inventory)) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_GRPC,
                            "a container asks for %zu shared devices: the configuration allows 1 "
                            "(failRequestsGreaterThanOne), as more give it no larger share",
                            ids->count);
    }
    bool *taken = weft_pb_arena_alloc(arena, machine->device_count + 1);
    const struct weft_device **devices =
        weft_pb_arena_alloc(arena, (ids->count + 1) * sizeof(void *));
    if (taken == NULL || devices == NULL) {
        return weft_err_nomem(err);
    }
    size_t count = 0;
    for (size_t i = 0; i < ids->count; i++) {
        const size_t number = weft_inventory_find(inventory, ids->ids[i], NULL);
        if (number == SIZE_MAX) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_GRPC, "there is no device %.80s",
                                ids->ids[i]);
        }
        if (!machine->devices[number].healthy) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_GRPC, "device %s is unhealthy", ids->ids[i]);
        }
        if (!taken[number]) {
            taken[number] = true;
            devices[count++] = &machine->devices[number];
        }
    }
    if (count == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_GRPC, "a container asks for no device");
    }
    qsort(devices, count, sizeof(void *), compare_index);
    *ret_devices = devices;
    *ret_count = count;
    return 0;
}

/* NVIDIA's container runtime reads which GPUs to let in from this variable. */
static int put_envs(const struct weft_machine *machine, struct weft_pb_arena *arena,
                    const struct weft_device *const *devices, size_t count,
                    struct weft_kubelet_grant *grant)
{
    if (strcmp(machine->vendor, "nvidia") != 0 && machine->vendor[0] != '\0') {
        return 0;
    }
    weft_auto(weft_buf_done) struct weft_buf value;
    weft_buf_init(&value, ENV_VALUE_MAX);
    for (size_t i = 0; i < count; i++) {
        (void)weft_buf_printf(&value, "%s%s", i > 0 ? "," : "", devices[i]->id);
    }
    struct weft_kubelet_pair *env = weft_pb_arena_alloc(arena, sizeof(*env));
    char *text = weft_pb_arena_alloc(arena, value.len + 1);
    if (value.status < 0 || env == NULL || text == NULL) {
        return -ENOMEM;
    }
    memcpy(text, weft_buf_text(&value), value.len);
    *env = (struct weft_kubelet_pair){.key = "NVIDIA_VISIBLE_DEVICES", .value = text};
    grant->envs = env;
    grant->env_count = 1;
    return 0;
}

static int put_nodes(const struct weft_machine *machine, struct weft_pb_arena *arena,
                     const struct weft_device *const *devices, size_t count,
                     struct weft_kubelet_grant *grant)
{
    const size_t most = machine->common_node_count + count * WEFT_MACHINE_NODES_MAX;
    struct weft_kubelet_node *nodes = weft_pb_arena_alloc(arena, (most + 1) * sizeof(nodes[0]));
    if (nodes == NULL) {
        return -ENOMEM;
    }
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t n = 0; n < devices[i]->node_count; n++) {
            const char *path = devices[i]->nodes[n];
            nodes[used++] = (struct weft_kubelet_node){path, path, "rw"};
        }
    }
    for (size_t n = 0; n < machine->common_node_count; n++) {
        const char *path = machine->common_nodes[n];
        nodes[used++] = (struct weft_kubelet_node){path, path, "rw"};
    }
    grant->nodes = nodes;
    grant->node_count = used;
    return 0;
}

static int grant_one(const struct weft_inventory *inventory, struct weft_pb_arena *arena,
                     const struct weft_kubelet_ids *ids, struct weft_kubelet_grant *ret_grant,
                     struct weft_error *err)
{
    const struct weft_machine *machine = weft_inventory_machine(inventory);
    const struct weft_device **devices = NULL;
    size_t count = 0;
    int rc = resolve(inventory, arena, ids, &devices, &count, err);
    if (rc < 0) {
        return rc;
    }
    rc = put_envs(machine, arena, devices, count, ret_grant);
    if (rc == 0) {
        rc = put_nodes(machine, arena, devices, count, ret_grant);
    }
    return rc < 0 ? weft_err_nomem(err) : 0;
}

int weft_grant_allocate(const struct weft_inventory *inventory, struct weft_pb_arena *arena,
                        const void *request, size_t len, struct weft_buf *buf,
                        struct weft_error *err)
{
    struct weft_kubelet_id_lists asked = {0};
    int rc = weft_kubelet_decode_allocate(arena, request, len, &asked, err);
    if (rc < 0) {
        return rc;
    }
    if (asked.count == 0) { /* an answer without containers would leave devices taken */
        return weft_err_set(err, -EINVAL, WEFT_ERR_GRPC, "the request names no container");
    }
    struct weft_kubelet_grant *grants = weft_pb_arena_alloc(arena, asked.count * sizeof(grants[0]));
    if (grants == NULL) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < asked.count; i++) {
        rc = grant_one(inventory, arena, &asked.containers[i], &grants[i], err);
        if (rc < 0) {
            return rc;
        }
    }
    const struct weft_kubelet_grants answer = {.containers = grants, .count = asked.count};
    rc = weft_kubelet_encode_grants(arena, &answer, buf);
    return rc < 0 ? weft_err_errno(err, -rc, "Allocate answer") : 0;
}

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
