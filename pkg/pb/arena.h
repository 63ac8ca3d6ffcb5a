/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for unpacking one protobuf message: a capped bump allocator. protobuf-c has no limit of
 * its own, and a message of empty submessages grows 24 times while it is unpacked; here the cap is
 * stated, and all of a message goes at once. One thread at a time. */
#ifndef WEFT_PB_ARENA_H
#define WEFT_PB_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "pkg/base/mem.h"

struct weft_pb_block;

struct weft_pb_arena {
    ProtobufCAllocator allocator; /* for <message>__unpack; its free does nothing */
    uint32_t magic;
    size_t max, used; /* bytes handed out, with alignment */
    bool starved;     /* since the last reset there was no memory, below the cap */
    struct weft_pb_block *blocks;
};

/* max: most bytes the messages of this arena may take. The arena must not move afterwards. */
void weft_pb_arena_init(struct weft_pb_arena *arena, size_t max);
/* Zeroed memory for 16-byte alignment that lives until reset or done. NULL over the cap or without
 * memory. */
void *weft_pb_arena_alloc(struct weft_pb_arena *arena, size_t size)
    __attribute__((warn_unused_result));
/* Frees all that was handed out; keeps one block for the next message. */
void weft_pb_arena_reset(struct weft_pb_arena *arena);
void weft_pb_arena_done(struct weft_pb_arena *arena);
WEFT_DEFINE_AUTO_VALUE(struct weft_pb_arena, weft_pb_arena_done)

#endif
