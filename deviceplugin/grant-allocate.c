/* SPDX-License-Identifier: Apache-2.0 */
/* What a container gets for the ids it was given: picks from the offer that was made when the
 * machine came. No I/O, no vendor call; the work grows with the request alone. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "deviceplugin/grant.h"
#include "deviceplugin/inventory.h"
#include "deviceplugin/offer.h"
#include "pkg/base/buf.h"
#include "pkg/base/str.h"
#include "pkg/machine/machine.h"
#include "pkg/pb/arena.h"

/* The devices of one container in the vendor's order, each once. */
struct granted {
    const struct weft_offer *offer;
    struct weft_pb_arena *arena;
    size_t *numbers;
    size_t count;
};

struct place {
    int index, partition;
    size_t number;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->index != y->index) {
        return x->index < y->index ? -1 : 1;
    }
    return (x->partition > y->partition) - (x->partition < y->partition);
}

static int check_id(const struct weft_inventory *inventory, const char *id, size_t *ret_number,
                    struct weft_error *err)
{
    const struct weft_machine *machine = weft_inventory_machine(inventory);
    *ret_number = weft_inventory_find(inventory, id, NULL);
    if (*ret_number == SIZE_MAX) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_GRPC, "there is no device %.80s", id);
    }
    const struct weft_device *d = &machine->devices[*ret_number];
    if (!d->healthy) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_GRPC, "device %s is unhealthy%s%s", id,
                            d->health_reason[0] != '\0' ? ": " : "", d->health_reason);
    }
    return 0;
}

static int collect(const struct weft_inventory *inventory, const struct weft_kubelet_ids *ids,
                   struct place *places, struct granted *granted, struct weft_error *err)
{
    const struct weft_machine *machine = weft_inventory_machine(inventory);
    bool *taken = weft_pb_arena_alloc(granted->arena, machine->device_count + 1);
    if (taken == NULL) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < ids->count; i++) {
        size_t number = 0;
        const int rc = check_id(inventory, ids->ids[i], &number, err);
        if (rc < 0) {
            return rc;
        }
        const struct weft_device *d = &machine->devices[number];
        if (!taken[number]) {
            taken[number] = true;
            places[granted->count++] = (struct place){d->index, d->partition, number};
        }
    }
    if (granted->count == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_GRPC, "a container asks for no device");
    }
    return 0;
}

static int resolve(const struct weft_inventory *inventory, const struct weft_kubelet_ids *ids,
                   struct granted *granted, struct weft_error *err)
{
    if (ids->count > 1 && weft_inventory_one_only(inventory)) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_GRPC,
                            "a container asks for %zu shared devices: the configuration allows 1 "
                            "(failRequestsGreaterThanOne), as more give it no larger share",
                            ids->count);
    }
    struct place *places =
        weft_pb_arena_alloc(granted->arena, (ids->count + 1) * sizeof(places[0]));
    granted->numbers =
        weft_pb_arena_alloc(granted->arena, (ids->count + 1) * sizeof(granted->numbers[0]));
    if (places == NULL || granted->numbers == NULL) {
        return weft_err_nomem(err);
    }
    const int rc = collect(inventory, ids, places, granted, err);
    if (rc < 0) {
        return rc;
    }
    qsort(places, granted->count, sizeof(places[0]), compare_places);
    for (size_t i = 0; i < granted->count; i++) {
        granted->numbers[i] = places[i].number;
    }
    return 0;
}

/* ---- the parts of an answer ---- */

/* The devices' texts with commas between them, then the further ones. NULL without memory. */
static char *join(const struct granted *g, const char *const *texts, size_t count)
{
    size_t len = 1;
    for (size_t i = 0; i < count; i++) {
        len += strlen(texts[i]) + 1;
    }
    char *list = weft_pb_arena_alloc(g->arena, len);
    char *at = list;
    for (size_t i = 0; list != NULL && i < count; i++) {
        const size_t part = strlen(texts[i]);
        if (i > 0) {
            *at++ = ',';
        }
        memcpy(at, texts[i], part);
        at += part;
    }
    return list;
}

static int put_envs(const struct granted *g, struct weft_kubelet_grant *grant)
{
    const struct weft_offer *offer = g->offer;
    struct weft_kubelet_pair *envs =
        weft_pb_arena_alloc(g->arena, (offer->env_count + 1) * sizeof(envs[0]));
    const char **names = weft_pb_arena_alloc(g->arena, g->count * sizeof(names[0]));
    if (envs == NULL || names == NULL) {
        return -ENOMEM;
    }
    memcpy(envs, offer->envs, offer->env_count * sizeof(envs[0]));
    grant->envs = envs;
    grant->env_count = offer->env_count;
    if (offer->list_variable == NULL) {
        return 0;
    }
    for (size_t i = 0; i < g->count; i++) {
        names[i] = offer->devices[g->numbers[i]].name;
    }
    const char *value = offer->list_value != NULL ? offer->list_value : join(g, names, g->count);
    envs[grant->env_count++] =
        (struct weft_kubelet_pair){.key = offer->list_variable, .value = value};
    return value != NULL ? 0 : -ENOMEM;
}

static int put_mounts(const struct granted *g, struct weft_kubelet_grant *grant)
{
    const struct weft_offer *offer = g->offer;
    size_t most = offer->common_mount_count + g->count;
    for (size_t i = 0; i < g->count; i++) {
        most += offer->devices[g->numbers[i]].mount_count;
    }
    struct weft_kubelet_mount *mounts =
        weft_pb_arena_alloc(g->arena, (most + 1) * sizeof(mounts[0]));
    if (mounts == NULL) {
        return -ENOMEM;
    }
    size_t used = 0;
    for (size_t i = 0; i < g->count; i++) {
        const struct weft_offer_device *d = &offer->devices[g->numbers[i]];
        if (d->volume != NULL) {
            mounts[used++] =
                (struct weft_kubelet_mount){.container_path = d->volume, .host_path = "/dev/null"};
        }
        for (size_t k = 0; k < d->mount_count; k++) {
            mounts[used++] = offer->mounts[d->mounts[k]];
        }
    }
    for (size_t i = 0; i < offer->common_mount_count; i++) {
        mounts[used++] = offer->common_mounts[i];
    }
    grant->mounts = mounts;
    grant->mount_count = used;
    return 0;
}

static int put_nodes(const struct granted *g, struct weft_kubelet_grant *grant)
{
    const struct weft_offer *offer = g->offer;
    struct weft_kubelet_node *nodes =
        weft_pb_arena_alloc(g->arena, (offer->node_count + 1) * sizeof(nodes[0]));
    bool *taken = weft_pb_arena_alloc(g->arena, offer->node_count + 1);
    if (nodes == NULL || taken == NULL) {
        return -ENOMEM;
    }
    size_t used = 0;
    for (size_t i = 0; i < g->count; i++) {
        const struct weft_offer_device *d = &offer->devices[g->numbers[i]];
        for (size_t k = 0; k < d->node_count; k++) {
            if (!taken[d->nodes[k]]) { /* partitions of one GPU share its node */
                taken[d->nodes[k]] = true;
                nodes[used++] = offer->nodes[d->nodes[k]];
            }
        }
    }
    for (size_t i = offer->common; i < offer->node_count; i++) {
        nodes[used++] = offer->nodes[i];
    }
    grant->nodes = nodes;
    grant->node_count = used;
    return 0;
}

/* "cdi.k8s.io/weft-device-plugin_<hash>": a container may have several, one a resource, and equal
 * keys would hide one another. */
static int put_annotation(const struct granted *g, const char *const *names, size_t count,
                          struct weft_kubelet_grant *grant)
{
    const char *value = join(g, names, count);
    const char *prefix = g->offer->annotation_prefix;
    const size_t size = strlen(prefix) + sizeof("weft-device-plugin_0123456789abcdef");
    char *key = weft_pb_arena_alloc(g->arena, size);
    struct weft_kubelet_pair *pair = weft_pb_arena_alloc(g->arena, sizeof(*pair));
    if (value == NULL || key == NULL || pair == NULL) {
        return -ENOMEM;
    }
    (void)snprintf(key, size, "%sweft-device-plugin_%016" PRIx64, prefix,
                   weft_hash64(WEFT_HASH_SEED, value, strlen(value)));
    *pair = (struct weft_kubelet_pair){.key = key, .value = value};
    grant->annotations = pair;
    grant->annotation_count = 1;
    return 0;
}

static int put_cdi(const struct granted *g, struct weft_kubelet_grant *grant)
{
    const struct weft_offer *offer = g->offer;
    if (offer->annotation_prefix == NULL && !offer->cdi_devices) {
        return 0;
    }
    const size_t count = g->count + offer->common_cdi_count;
    const char **names = weft_pb_arena_alloc(g->arena, count * sizeof(names[0]));
    if (names == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < g->count; i++) {
        names[i] = offer->devices[g->numbers[i]].cdi;
    }
    for (size_t i = 0; i < offer->common_cdi_count; i++) {
        names[g->count + i] = offer->common_cdi[i];
    }
    if (offer->cdi_devices) {
        grant->cdi_devices = names;
        grant->cdi_device_count = count;
    }
    return offer->annotation_prefix != NULL ? put_annotation(g, names, count, grant) : 0;
}

static int grant_one(const struct weft_inventory *inventory, struct weft_pb_arena *arena,
                     const struct weft_kubelet_ids *ids, struct weft_kubelet_grant *ret_grant,
                     struct weft_error *err)
{
    struct granted granted = {.offer = weft_inventory_offer(inventory), .arena = arena};
    int rc = resolve(inventory, ids, &granted, err);
    if (rc < 0) {
        return rc;
    }
    rc = put_envs(&granted, ret_grant);
    rc = rc < 0 ? rc : put_mounts(&granted, ret_grant);
    rc = rc < 0 ? rc : put_nodes(&granted, ret_grant);
    rc = rc < 0 ? rc : put_cdi(&granted, ret_grant);
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
