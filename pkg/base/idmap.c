/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear probing, at most half full, for the id map. */
#include "pkg/base/idmap.h"

#include <errno.h>
#include <string.h>

enum { FIRST_SLOTS = 64 };

/* the finaliser of splitmix64: GUIDs of one vendor differ in few low bits only */
static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void weft_idmap_init(struct weft_idmap *map, size_t max)
{
    *map = (struct weft_idmap){.max = max};
}

void weft_idmap_done(struct weft_idmap *map)
{
    if (map != NULL) {
        weft_free(map->slots);
        weft_idmap_init(map, map->max);
    }
}

void weft_idmap_reset(struct weft_idmap *map)
{
    if (map->slot_count > 0 && map->count > 0) {
        memset(map->slots, 0, map->slot_count * sizeof(*map->slots));
    }
    map->count = 0;
    map->has_zero = false;
    map->zero.value = 0;
}

/* The key's (not 0) slot, or the free slot where it belongs. The table always has free slots. */
static struct weft_idmap_entry *find(const struct weft_idmap *map, uint64_t key)
{
    size_t i = (size_t)mix(key) & (map->slot_count - 1);
    while (map->slots[i].key != 0 && map->slots[i].key != key) {
        i = (i + 1) & (map->slot_count - 1);
    }
    return &map->slots[i];
}

static int grow(struct weft_idmap *map)
{
    struct weft_idmap bigger = *map;
    bigger.slot_count = map->slot_count > 0 ? map->slot_count * 2 : FIRST_SLOTS;
    bigger.slots = weft_calloc(bigger.slot_count, sizeof(*bigger.slots));
    if (bigger.slots == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < map->slot_count; i++) {
        if (map->slots[i].key != 0) {
            *find(&bigger, map->slots[i].key) = map->slots[i];
        }
    }
    weft_free(map->slots);
    *map = bigger;
    return 0;
}

static int add(struct weft_idmap *map, uint64_t key, struct weft_idmap_entry **slot)
{
    if (map->count >= map->max) {
        return -EFBIG;
    }
    if (*slot == NULL || (key != 0 && (map->count + 1) * 2 > map->slot_count)) {
        const int rc = grow(map);
        if (rc < 0) {
            return rc;
        }
        *slot = find(map, key);
    }
    map->has_zero = map->has_zero || key == 0;
    (*slot)->key = key;
    (*slot)->value = 0;
    map->count++;
    return 0;
}

int weft_idmap_at(struct weft_idmap *map, uint64_t key, uint64_t **ret_value, bool *ret_new)
{
    struct weft_idmap_entry *slot = key == 0               ? &map->zero
                                    : map->slot_count == 0 ? NULL
                                                           : find(map, key);
    const bool is_new = key == 0 ? !map->has_zero : slot == NULL || slot->key == 0;
    if (is_new) {
        const int rc = add(map, key, &slot);
        if (rc < 0) {
            return rc;
        }
    }
    if (ret_new != NULL) {
        *ret_new = is_new;
    }
    *ret_value = &slot->value;
    return 0;
}

bool weft_idmap_get(const struct weft_idmap *map, uint64_t key, uint64_t *ret_value)
{
    const struct weft_idmap_entry *slot = &map->zero;
    if (key == 0 ? !map->has_zero : map->slot_count == 0) {
        return false;
    }
    if (key != 0) {
        slot = find(map, key);
        if (slot->key == 0) {
            return false;
        }
    }
    if (ret_value != NULL) {
        *ret_value = slot->value;
    }
    return true;
}

/* The entry of key 0 comes last, at position slot_count. */
bool weft_idmap_next(const struct weft_idmap *map, size_t *pos, uint64_t *ret_key,
                     uint64_t *ret_value)
{
    while (*pos < map->slot_count && map->slots[*pos].key == 0) {
        (*pos)++;
    }
    const bool in_slots = *pos < map->slot_count;
    if (!in_slots && (*pos > map->slot_count || !map->has_zero)) {
        return false;
    }
    const struct weft_idmap_entry *slot = in_slots ? &map->slots[*pos] : &map->zero;
    (*pos)++;
    *ret_key = slot->key;
    *ret_value = slot->value;
    return true;
}
