/* SPDX-License-Identifier: Apache-2.0 */
/* A machine, the numbers of its ids, and the thread that builds its allocator. */
#include "deviceplugin/inventory.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>

#include "pkg/allocator/allocator.h"
#include "pkg/base/log.h"
#include "pkg/base/map.h"
#include "pkg/loop/loop.h"
#include "pkg/machine/machine.h"

enum { INVENTORY_MAGIC = 0x496e7674 /* "Invt" */ };

struct weft_inventory {
    uint32_t magic;
    struct weft_machine *machine;
    struct weft_map *numbers;      /* id -> device number */
    struct weft_allocator *direct; /* without tables: answers until they are there, or for ever */
    struct weft_allocator *tables; /* the thread's while building */
    bool building;
    struct weft_error build_error;
    pthread_t thread;
    struct weft_loop *loop;
    struct weft_post post;
};

int weft_inventory_new(struct weft_machine *machine, struct weft_inventory **ret_inventory,
                       struct weft_error *err)
{
    weft_auto(weft_inventory_free) struct weft_inventory *inventory =
        weft_calloc(1, sizeof(*inventory));
    if (inventory == NULL) {
        return weft_err_nomem(err);
    }
    inventory->magic = INVENTORY_MAGIC;
    inventory->numbers = weft_map_new(WEFT_MACHINE_DEVICES_MAX);
    if (inventory->numbers == NULL) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < machine->device_count; i++) {
        const int rc = weft_map_put(inventory->numbers, machine->devices[i].id, i);
        if (rc < 0) {
            return weft_err_set(err, rc, WEFT_ERR_ERRNO, "devices of %s", machine->name);
        }
        if (rc > 0) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s: two devices have the id %s",
                                machine->name, machine->devices[i].id);
        }
    }
    const int rc = weft_allocator_new_direct(machine, &inventory->direct, err);
    if (rc < 0) {
        return rc;
    }
    inventory->machine = machine;
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
    weft_machine_free(inventory->machine);
    inventory->magic = 0;
    weft_free(inventory);
}

const struct weft_machine *weft_inventory_machine(const struct weft_inventory *inventory)
{
    WEFT_CHECK(inventory, INVENTORY_MAGIC);
    return inventory->machine;
}

size_t weft_inventory_find(const struct weft_inventory *inventory, const char *id)
{
    WEFT_CHECK(inventory, INVENTORY_MAGIC);
    size_t number = SIZE_MAX;
    return weft_map_get(inventory->numbers, id, &number) ? number : SIZE_MAX;
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
