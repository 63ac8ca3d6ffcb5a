/* SPDX-License-Identifier: Apache-2.0 */
/* A map from 64-bit ids (GUIDs, pairs of indexes) to 64-bit values with a cap on its entries. No
 * removal. One thread at a time. Nothing may depend on the order of a walk: sort what comes out. */
#ifndef WEFT_BASE_IDMAP_H
#define WEFT_BASE_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/mem.h"

struct weft_idmap_entry {
    uint64_t key;
    uint64_t value;
};

struct weft_idmap {
    struct weft_idmap_entry *slots; /* a power of two, or NULL; key 0 marks a free slot */
    size_t slot_count;
    size_t count;
    size_t max;                   /* most entries */
    bool has_zero;                /* key 0 itself is in no slot, but here */
    struct weft_idmap_entry zero; /* its value */
};

void weft_idmap_init(struct weft_idmap *map, size_t max);
void weft_idmap_done(struct weft_idmap *map);
WEFT_DEFINE_AUTO_VALUE(struct weft_idmap, weft_idmap_done)
/* Empties it and keeps the memory. */
void weft_idmap_reset(struct weft_idmap *map);

/* The place of the key's value, made (as 0) if it is not there; valid until the next call. *ret_new
 * (may be NULL) says whether it was made. 0, -ENOMEM, or -EFBIG over the cap. */
int weft_idmap_at(struct weft_idmap *map, uint64_t key, uint64_t **ret_value, bool *ret_new)
    __attribute__((warn_unused_result));
/* true and *ret_value (may be NULL) if the key is there. */
bool weft_idmap_get(const struct weft_idmap *map, uint64_t key, uint64_t *ret_value);
/* Walks all entries in no useful order: *pos starts at 0. false at the end. */
bool weft_idmap_next(const struct weft_idmap *map, size_t *pos, uint64_t *ret_key,
                     uint64_t *ret_value);

#endif
