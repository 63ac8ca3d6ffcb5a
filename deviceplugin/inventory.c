/* SPDX-License-Identifier: Apache-2.0 */
/* A machine, the numbers of its ids, and the thread that builds its allocator. */
#include "deviceplugin/inventory.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "deviceplugin/offer.h"
#include "pkg/allocator/allocator.h"
#include "pkg/base/log.h"
#include "pkg/base/map.h"
#include "pkg/loop/loop.h"
#include "pkg/machine/machine.h"

enum { INVENTORY_MAGIC = 0x496e7674 /* "Invt" */ };

struct weft_inventory {
    uint32_t magic;
    struct weft_machine *machine;
    uint32_t replicas; /* at least 1 */
    bool one_only;
    struct weft_offer *offer;
    struct weft_map *numbers;      /* id -> device number x replicas + replica */
    struct weft_allocator *direct; /* without tables: answers until they are there, or for ever */
    struct weft_allocator *tables; /* the thread's while building */
    bool building;
    struct weft_error build_error;
    pthread_t thread;
    struct weft_loop *loop;
    struct weft_post post;
};

/* Returns its length. */
static size_t make_id(const struct weft_inventory *inventory, size_t device, uint32_t replica,
                      char id[WEFT_INVENTORY_ID_MAX])
{
    const char *own = inventory->machine->devices[device].id;
    if (inventory->replicas > 1) {
        (void)snprintf(id, WEFT_INVENTORY_ID_MAX, "%s::%" PRIu32, own, replica);
    } else {
        (void)snprintf(id, WEFT_INVENTORY_ID_MAX, "%s", own);
    }
    return strlen(id);
}

const char *weft_inventory_id(const struct weft_inventory *inventory, size_t device,
                              uint32_t replica, char *id)
{
    WEFT_CHECK(inventory, INVENTORY_MAGIC);
    (void)make_id(inventory, device, replica, id);
    return id;
}

/* Ids to numbers: device x replicas + replica. */
static int add_ids(struct weft_inventory *inventory, size_t device, struct weft_error *err)
{
    const char *machine = inventory->machine->name;
    for (uint32_t r = 0; r < inventory->replicas; r++) {
        char id[WEFT_INVENTORY_ID_MAX];
        if (make_id(inventory, device, r, id) >= WEFT_DEVICE_ID_MAX) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "%s: %s is too long for an id, which has at most %d bytes", machine,
                                id, WEFT_DEVICE_ID_MAX - 1);
        }
        const int rc = weft_map_put(inventory->numbers, id, device * inventory->replicas + r);
        if (rc < 0) {
            return weft_err_set(err, rc, WEFT_ERR_ERRNO, "devices of %s", machine);
        }
        if (rc > 0) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s: two devices have the id %s",
                                machine, id);
        }
    }
    return 0;
}

static int fill(struct weft_inventory *inventory, struct weft_error *err)
{
    for (size_t i = 0; i < inventory->machine->device_count; i++) {
        const int rc = add_ids(inventory, i, err);
        if (rc < 0) {
            return rc;
        }
    }
    return weft_allocator_new_direct(inventory->machine, &inventory->direct, err);
}

int weft_inventory_new(struct weft_machine *machine, const struct weft_inventory_options *options,
                       struct weft_inventory **ret_inventory, struct weft_error *err)
{
    weft_auto(weft_inventory_free) struct weft_inventory *inventory =
        weft_calloc(1, sizeof(*inventory));
    if (inventory == NULL) {
        return weft_err_nomem(err);
    }
    inventory->magic = INVENTORY_MAGIC;
    inventory->replicas = options != NULL && options->replicas > 1 ? options->replicas : 1;
    inventory->one_only = options != NULL && options->fail_above_one;
    inventory->numbers = weft_map_new(WEFT_REPLICAS_MAX);
    if (inventory->numbers == NULL) {
        return weft_err_nomem(err);
    }
    inventory->machine = machine;
    int rc = fill(inventory, err);
    rc = rc < 0 ? rc
                : weft_offer_new(machine, options != NULL ? options->respond : NULL,
                                 options != NULL ? options->extras : NULL, &inventory->offer, err);
    if (rc < 0) {
        inventory->machine = NULL; /* stays the caller's */
        return rc;
    }
    *ret_inventory = weft_steal(&inventory);
    return 0;
}

void weft_inventory_free(struct weft_inventory *inventory)
{
    if (inventory == NULL) {
        return;
    }
    WEFT_CHECK(inventory, INVENTORY_MAGIC);
    if (inventory->building) {
        (void)pthread_join(inventory->thread, NULL);
        (void)weft_loop_unpost(inventory->loop, &inventory->post);
    }
    weft_allocator_free(inventory->tables);
    weft_allocator_free(inventory->direct);
    weft_map_free(inventory->numbers);
    weft_offer_free(inventory->offer);
    weft_machine_free(inventory->machine);
    inventory->magic = 0;
    weft_free(inventory);
}

const struct weft_machine *weft_inventory_machine(const struct weft_inventory *inventory)
{
    WEFT_CHECK(inventory, INVENTORY_MAGIC);
    return inventory->machine;
}

size_t weft_inventory_find(const struct weft_inventory *inventory, const char *id,
                           uint32_t *ret_replica)
{
    WEFT_CHECK(inventory, INVENTORY_MAGIC);
    size_t number = 0;
    if (!weft_map_get(inventory->numbers, id, &number)) {
        return SIZE_MAX;
    }
    if (ret_replica != NULL) {
        *ret_replica = (uint32_t)(number % inventory->replicas);
    }
    return number / inventory->replicas;
}

uint32_t weft_inventory_replicas(const struct weft_inventory *inventory)
{
    WEFT_CHECK(inventory, INVENTORY_MAGIC);
    return inventory->replicas;
}

const struct weft_offer *weft_inventory_offer(const struct weft_inventory *inventory)
{
    WEFT_CHECK(inventory, INVENTORY_MAGIC);
    return inventory->offer;
}

bool weft_inventory_one_only(const struct weft_inventory *inventory)
{
    WEFT_CHECK(inventory, INVENTORY_MAGIC);
    return inventory->one_only;
}

static void *build(void *data)
{
    struct weft_inventory *inventory = data;
    WEFT_CHECK(inventory, INVENTORY_MAGIC);
    if (weft_allocator_new(inventory->machine, &inventory->tables, &inventory->build_error) < 0) {
        inventory->tables = NULL; /* on_built says so */
    }
    weft_loop_post(inventory->loop, &inventory->post);
    return NULL;
}

static void on_built(void *data)
{
    struct weft_inventory *inventory = data;
    WEFT_CHECK(inventory, INVENTORY_MAGIC);
    (void)pthread_join(inventory->thread, NULL); /* it has posted: nothing to wait for */
    inventory->building = false;
    if (inventory->tables == NULL) {
        weft_log(WEFT_LOG_ERROR, "no-allocator-tables",
                 WEFT_KV_S("reason", inventory->build_error.message),
                 WEFT_KV_S("effect", "choosing devices takes longer, the choice is the same"));
    }
}

int weft_inventory_build(struct weft_inventory *inventory, struct weft_loop *loop,
                         struct weft_error *err)
{
    WEFT_CHECK(inventory, INVENTORY_MAGIC);
    inventory->loop = loop;
    inventory->post = (struct weft_post){.fn = on_built, .data = inventory};
    inventory->building = true;
    const int rc = pthread_create(&inventory->thread, NULL, build, inventory);
    if (rc != 0) {
        inventory->building = false;
        return weft_err_errno(err, rc, "thread for the allocator's tables");
    }
    return 0;
}

const struct weft_allocator *weft_inventory_allocator(const struct weft_inventory *inventory)
{
    WEFT_CHECK(inventory, INVENTORY_MAGIC);
    const bool built = !inventory->building && inventory->tables != NULL;
    return built ? inventory->tables : inventory->direct;
}
