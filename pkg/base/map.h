/* SPDX-License-Identifier: Apache-2.0 */
/* A map from strings to size_t values (an index, usually) with a cap on its entries. Keys are
 * copied. Iteration is in order of insertion, so that nothing depends on hash order. One thread at
 * a time. */
#ifndef WEFT_BASE_MAP_H
#define WEFT_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/base/mem.h"

struct weft_map;

/* At most max entries. NULL without memory. */
struct weft_map *weft_map_new(size_t max) __attribute__((warn_unused_result));
void weft_map_free(struct weft_map *map);
WEFT_DEFINE_AUTO(struct weft_map, weft_map_free)

/* Adds or replaces. 0, 1 if the key was there (then the value is replaced), -ENOMEM, -EFBIG. */
int weft_map_put(struct weft_map *map, const char *key, size_t value)
    __attribute__((warn_unused_result));
/* The same for a key that is a piece of text. */
int weft_map_put_n(struct weft_map *map, const char *key, size_t len, size_t value)
    __attribute__((warn_unused_result));
/* Adds, but lets an entry that is there be: 0, or 1 if it was; *ret_value is the entry's value
 * then. -ENOMEM, -EFBIG. */
int weft_map_add(struct weft_map *map, const char *key, size_t value, size_t *ret_value)
    __attribute__((warn_unused_result));
/* true and *ret_value (may be NULL) if the key is there. */
bool weft_map_get(const struct weft_map *map, const char *key, size_t *ret_value);
bool weft_map_get_n(const struct weft_map *map, const char *key, size_t len, size_t *ret_value);
bool weft_map_remove(struct weft_map *map, const char *key);
size_t weft_map_count(const struct weft_map *map);
/* Walks all entries: *pos starts at 0. false at the end. The key is borrowed; no put or remove
 * during a walk. */
bool weft_map_next(const struct weft_map *map, size_t *pos, const char **ret_key,
                   size_t *ret_value);

#endif
