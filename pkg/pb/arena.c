/* SPDX-License-Identifier: Apache-2.0 */
/* The bump allocator behind protobuf-c. */
#include "pkg/pb/arena.h"

#include <string.h>

enum { ARENA_MAGIC = 0x4172656e /* "Aren" */, ARENA_ALIGN = 16, ARENA_BLOCK = 16384 };

struct weft_pb_block {
    struct weft_pb_block *next;
    size_t size, used; /* bytes of data */
    _Alignas(ARENA_ALIGN) unsigned char data[];
};

static void *on_alloc(void *data, size_t size)
{
    struct weft_pb_arena *arena = data;
    WEFT_CHECK(arena, ARENA_MAGIC);
    return weft_pb_arena_alloc(arena, size);
}

static void on_free(void *data, void *pointer)
{
    (void)data;
    (void)pointer;
}

void weft_pb_arena_init(struct weft_pb_arena *arena, size_t max)
{
    *arena = (struct weft_pb_arena){.magic = ARENA_MAGIC, .max = max};
    arena->allocator = (ProtobufCAllocator){
        .alloc = on_alloc,
        .free = on_free,
        .allocator_data = arena,
    };
}

/* A new block in front, big enough for size. */
static struct weft_pb_block *add_block(struct weft_pb_arena *arena, size_t size)
{
    const size_t room = size > ARENA_BLOCK ? size : ARENA_BLOCK;
    struct weft_pb_block *block = weft_malloc(sizeof(*block) + room);
    if (block != NULL) {
        *block = (struct weft_pb_block){.next = arena->blocks, .size = room};
        arena->blocks = block;
    }
    return block;
}

void *weft_pb_arena_alloc(struct weft_pb_arena *arena, size_t size)
{
    if (size > arena->max) {
        return NULL;
    }
    const size_t need =
        (size > 0 ? size + ARENA_ALIGN - 1 : ARENA_ALIGN) & ~(size_t)(ARENA_ALIGN - 1);
    if (need > arena->max - arena->used) {
        return NULL;
    }
    struct weft_pb_block *block = arena->blocks;
    if (block == NULL || need > block->size - block->used) {
        block = add_block(arena, need);
    }
    if (block == NULL) {
        arena->starved = true;
        return NULL;
    }
    void *memory = block->data + block->used;
    block->used += need;
    arena->used += need;
    memset(memory, 0, need);
    return memory;
}

void weft_pb_arena_reset(struct weft_pb_arena *arena)
{
    WEFT_CHECK(arena, ARENA_MAGIC);
    while (arena->blocks != NULL && arena->blocks->next != NULL) {
        struct weft_pb_block *block = arena->blocks;
        arena->blocks = block->next;
        weft_free(block);
    }
    if (arena->blocks != NULL) {
        arena->blocks->used = 0; /* the first and so, with one size, a small one */
    }
    arena->used = 0;
    arena->starved = false;
}

void weft_pb_arena_done(struct weft_pb_arena *arena)
{
    while (arena->blocks != NULL) {
        struct weft_pb_block *block = arena->blocks;
        arena->blocks = block->next;
        weft_free(block);
    }
    arena->used = 0;
    arena->starved = false;
}
