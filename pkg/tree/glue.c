/* SPDX-License-Identifier: Apache-2.0 */
/* Union-find and the glue operation: items that share more than half of the smaller one's keys are
 * one. Nothing here depends on the order of its calls. */
#include <errno.h>

#include "pkg/tree/tree-internal.h"

int weft_union_init(struct weft_union *u, size_t count)
{
    u->count = count;
    u->parent = weft_calloc(count, sizeof(*u->parent));
    if (u->parent == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        u->parent[i] = (uint32_t)i;
    }
    return 0;
}

void weft_union_done(struct weft_union *u)
{
    weft_free(u->parent);
    u->parent = NULL;
}

uint32_t weft_union_find(struct weft_union *u, uint32_t id)
{
    while (u->parent[id] != id) {
        u->parent[id] = u->parent[u->parent[id]];
        id = u->parent[id];
    }
    return id;
}

bool weft_union_join(struct weft_union *u, uint32_t a, uint32_t b)
{
    a = weft_union_find(u, a);
    b = weft_union_find(u, b);
    if (a == b) {
        return false;
    }
    u->parent[a > b ? a : b] = a < b ? a : b;
    return true;
}

void weft_pairs_init(struct weft_pairs *pairs, uint64_t budget)
{
    weft_idmap_init(&pairs->map, PAIRS_MAX);
    pairs->budget = budget;
}

void weft_pairs_done(struct weft_pairs *pairs)
{
    weft_idmap_done(&pairs->map);
}

int weft_pairs_add(struct weft_pairs *pairs, uint32_t a, uint32_t b, uint64_t amount)
{
    if (pairs->budget == 0) {
        return -EFBIG;
    }
    pairs->budget--;
    const uint64_t low = a < b ? a : b;
    const uint64_t high = a < b ? b : a;
    uint64_t *shared = NULL;
    const int rc = weft_idmap_at(&pairs->map, low << 32 | high, &shared, NULL);
    if (rc == 0) {
        *shared += amount;
    }
    return rc;
}

void weft_pairs_glue(const struct weft_pairs *pairs, const uint64_t *size, struct weft_union *u)
{
    size_t pos = 0;
    uint64_t key = 0;
    uint64_t shared = 0;
    while (weft_idmap_next(&pairs->map, &pos, &key, &shared)) {
        const uint32_t a = (uint32_t)(key >> 32);
        const uint32_t b = (uint32_t)key;
        const uint64_t smaller = size[a] < size[b] ? size[a] : size[b];
        if (2 * shared > smaller) {
            (void)weft_union_join(u, a, b);
        }
    }
}
