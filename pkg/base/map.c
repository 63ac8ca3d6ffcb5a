/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing over an insertion-ordered entry list; removed entries leave a hole, and a key
 * that nobody needs, until the next growth. Keys stand in a few big blocks in the order in which
 * they came: a pass of the controller makes a dozen maps of all nodes, and allocating each key, and
 * missing the cache with each, was most of their cost. */
#include "pkg/base/map.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "pkg/base/str.h"

/* Maps of all nodes are most of a large cluster's memory: an entry and its slots are kept small. */
struct entry {
    char *key; /* NULL: removed */
    size_t value;
    uint32_t len;
    uint32_t hash;
};

/* The first block is small, each next one twice as big, up to the most. */
enum { BLOCK_MIN = 256, BLOCK_MAX = 1 << 16 };

struct block {
    struct block *next;
    size_t used;
    size_t cap;
    char bytes[];
};

struct weft_map {
    struct entry *entries;
    size_t used; /* entries in the list, holes included */
    size_t cap;
    size_t count; /* live entries */
    size_t max;
    uint32_t *slots;      /* entry index + 1, 0 = never used */
    size_t slot_count;    /* power of two, or 0 */
    struct block *blocks; /* the newest first */
    size_t key_bytes;     /* in the blocks */
    size_t dead_bytes;    /* of these, of removed keys */
};

struct weft_map *weft_map_new(size_t max)
{
    struct weft_map *map = weft_calloc(1, sizeof(*map));
    if (map != NULL) {
        map->max = max;
    }
    return map;
}

/* ---- keys ---- */

static void free_blocks(struct block *block)
{
    while (block != NULL) {
        struct block *next = block->next;
        weft_free(block);
        block = next;
    }
}

/* A copy of the key in the newest block, or in a new one. */
static char *copy_key(struct block **blocks, const char *key, size_t len)
{
    struct block *block = *blocks;
    if (block == NULL || block->cap - block->used < len + 1) {
        size_t cap = block == NULL ? BLOCK_MIN : block->cap * 2;
        cap = cap > BLOCK_MAX ? BLOCK_MAX : cap;
        cap = cap < len + 1 ? len + 1 : cap;
        block = weft_malloc(sizeof(*block) + cap);
        if (block == NULL) {
            return NULL;
        }
        *block = (struct block){.next = *blocks, .cap = cap};
        *blocks = block;
    }
    char *copy = block->bytes + block->used;
    memcpy(copy, key, len);
    copy[len] = '\0';
    block->used += len + 1;
    return copy;
}

/* Leaves the bytes of removed keys behind; without memory for that they stay. */
static void compact_keys(struct weft_map *map)
{
    const size_t live = map->key_bytes - map->dead_bytes;
    struct block *whole = weft_malloc(sizeof(*whole) + live);
    if (whole == NULL) {
        return;
    }
    *whole = (struct block){.cap = live};
    for (size_t i = 0; i < map->used; i++) {
        struct entry *e = &map->entries[i];
        e->key = e->key != NULL ? copy_key(&whole, e->key, e->len) : NULL; /* there is room */
    }
    free_blocks(map->blocks);
    map->blocks = whole;
    map->key_bytes = live;
    map->dead_bytes = 0;
}

/* ---- the map ---- */

void weft_map_free(struct weft_map *map)
{
    if (map == NULL) {
        return;
    }
    free_blocks(map->blocks);
    weft_free(map->entries);
    weft_free(map->slots);
    weft_free(map);
}

static uint32_t hash_of(const char *key, size_t len)
{
    const uint64_t hash = weft_hash_in_memory(key, len);
    return (uint32_t)(hash ^ hash >> 32);
}

/* The slot of the key, or the free slot where it would go. */
static uint32_t *find_slot(const struct weft_map *map, const char *key, size_t len, uint32_t hash)
{
    size_t at = hash & (map->slot_count - 1);
    while (map->slots[at] != 0) {
        const struct entry *e = &map->entries[map->slots[at] - 1];
        if (e->key != NULL && e->hash == hash && e->len == len && memcmp(e->key, key, len) == 0) {
            break;
        }
        at = (at + 1) & (map->slot_count - 1);
    }
    return &map->slots[at];
}

static void close_holes(struct weft_map *map)
{
    size_t to = 0;
    for (size_t from = 0; from < map->used; from++) {
        if (map->entries[from].key != NULL) {
            map->entries[to++] = map->entries[from];
        }
    }
    map->used = to;
}

static int rehash(struct weft_map *map, size_t slot_count)
{
    uint32_t *slots = weft_calloc(slot_count, sizeof(*slots));
    if (slots == NULL) {
        return -ENOMEM;
    }
    close_holes(map);
    if (map->dead_bytes > map->key_bytes / 2) {
        compact_keys(map);
    }
    weft_free(map->slots);
    map->slots = slots;
    map->slot_count = slot_count;
    for (size_t i = 0; i < map->used; i++) {
        const struct entry *e = &map->entries[i];
        *find_slot(map, e->key, e->len, e->hash) = (uint32_t)i + 1;
    }
    return 0;
}

/* A new entry, for which slot is the place. */
static int add_entry(struct weft_map *map, const char *key, size_t len, uint32_t hash, size_t value,
                     uint32_t *slot)
{
    if (map->count >= map->max || map->used >= UINT32_MAX - 1 || len > UINT32_MAX) {
        return -EFBIG;
    }
    void *list = map->entries;
    const int rc = weft_array_reserve(&list, &map->cap, map->used + 1, sizeof(struct entry),
                                      SIZE_MAX / sizeof(struct entry));
    map->entries = list;
    if (rc < 0) {
        return rc;
    }
    char *copy = copy_key(&map->blocks, key, len);
    if (copy == NULL) {
        return -ENOMEM;
    }
    map->key_bytes += len + 1;
    *slot = (uint32_t)map->used + 1;
    map->entries[map->used++] =
        (struct entry){.key = copy, .value = value, .len = (uint32_t)len, .hash = hash};
    map->count++;
    return 0;
}

/* Room for one entry more: at most 3/4 full, holes counted, so that a probe always ends. */
static int make_room(struct weft_map *map)
{
    if ((map->used + 1) * 4 <= map->slot_count * 3) {
        return 0;
    }
    size_t want = map->slot_count < 16 ? 16 : map->slot_count;
    while ((map->count + 1) * 2 > want) {
        want *= 2;
    }
    return rehash(map, want);
}

/* The entry of the key: one that is there, or a new one with value. */
static int find_or_add(struct weft_map *map, const char *key, size_t len, size_t value,
                       struct entry **ret_entry)
{
    int rc = make_room(map);
    if (rc < 0) {
        return rc;
    }
    const uint32_t hash = hash_of(key, len);
    uint32_t *slot = find_slot(map, key, len, hash);
    const bool there = *slot != 0;
    rc = there ? 1 : add_entry(map, key, len, hash, value, slot);
    *ret_entry = rc < 0 ? NULL : &map->entries[*slot - 1];
    return rc;
}

int weft_map_put_n(struct weft_map *map, const char *key, size_t len, size_t value)
{
    struct entry *e = NULL;
    const int rc = find_or_add(map, key, len, value, &e);
    if (rc == 1) {
        e->value = value;
    }
    return rc;
}

int weft_map_add(struct weft_map *map, const char *key, size_t value, size_t *ret_value)
{
    struct entry *e = NULL;
    const int rc = find_or_add(map, key, strlen(key), value, &e);
    if (rc >= 0) {
        *ret_value = e->value;
    }
    return rc;
}

int weft_map_put(struct weft_map *map, const char *key, size_t value)
{
    return weft_map_put_n(map, key, strlen(key), value);
}

static struct entry *find_entry(const struct weft_map *map, const char *key, size_t len)
{
    if (map->slot_count == 0) {
        return NULL;
    }
    const size_t slot = *find_slot(map, key, len, hash_of(key, len));
    return slot != 0 ? &map->entries[slot - 1] : NULL;
}

bool weft_map_get_n(const struct weft_map *map, const char *key, size_t len, size_t *ret_value)
{
    const struct entry *e = find_entry(map, key, len);
    if (e != NULL && ret_value != NULL) {
        *ret_value = e->value;
    }
    return e != NULL;
}

bool weft_map_get(const struct weft_map *map, const char *key, size_t *ret_value)
{
    return weft_map_get_n(map, key, strlen(key), ret_value);
}

bool weft_map_remove(struct weft_map *map, const char *key)
{
    struct entry *e = find_entry(map, key, strlen(key));
    if (e == NULL) {
        return false;
    }
    e->key = NULL;
    map->dead_bytes += e->len + 1;
    map->count--;
    return true;
}

size_t weft_map_count(const struct weft_map *map)
{
    return map->count;
}

bool weft_map_next(const struct weft_map *map, size_t *pos, const char **ret_key, size_t *ret_value)
{
    while (*pos < map->used && map->entries[*pos].key == NULL) {
        (*pos)++;
    }
    if (*pos >= map->used) {
        return false;
    }
    const struct entry *e = &map->entries[(*pos)++];
    *ret_key = e->key;
    if (ret_value != NULL) {
        *ret_value = e->value;
    }
    return true;
}
