/* SPDX-License-Identifier: Apache-2.0 */
/* The last step joins whatever is connected. Where all that it did was to take in a handful of
 * nodes on a spine or behind a stray cable, a tier for that would push every other group one
 * farther from the top; the handful goes one tier lower instead. */
#include <errno.h>
#include <string.h>

#include "pkg/tree/tree-internal.h"

/* So few nodes are a handful. */
enum { STRAGGLERS_PERCENT = 5 };

/* Below this tier the claim would be that they share a pod's leaves. */
enum { LOWEST_TIER = 1 };

struct handful {
    const uint32_t *below; /* node: its group in the tier below the last */
    const uint32_t *last;  /* node: its group in the last tier */
    size_t *size;          /* group of the tier below: nodes */
    uint32_t *main;        /* group of the last tier: its largest part */
};

static size_t find_handful(const struct handful *h, size_t ids, size_t nodes, bool *straggler)
{
    for (size_t i = 0; i < ids; i++) {
        h->main[i] = ID_NONE;
    }
    for (size_t n = 0; n < nodes; n++) {
        h->size[h->below[n]]++;
    }
    for (size_t n = 0; n < nodes; n++) {
        uint32_t *main = &h->main[h->last[n]];
        const uint32_t own = h->below[n];
        if (*main == ID_NONE || h->size[own] > h->size[*main] ||
            (h->size[own] == h->size[*main] && *main > own)) {
            *main = own;
        }
    }
    size_t count = 0;
    for (size_t n = 0; n < nodes; n++) {
        straggler[n] = h->below[n] != h->main[h->last[n]];
        count += straggler[n];
    }
    return count;
}

static void drop_last_tier(struct weft_shape *shape, const struct handful *h)
{
    const size_t last = shape->tier_count - 1;
    for (size_t n = 0; n < shape->graph->node_count; n++) {
        shape->tiers[last - 1][n] = h->main[h->last[n]];
    }
    for (size_t s = 0; s < shape->graph->switch_count; s++) {
        if (shape->joins_tier[s] == last) {
            shape->joins_tier[s] = ID_NONE;
            shape->joins_group[s] = ID_NONE;
        }
    }
    weft_free(shape->tiers[last]);
    shape->tiers[last] = NULL;
    shape->tier_count = last;
}

int weft_shape_stragglers(struct weft_shape *shape)
{
    const struct weft_graph *graph = shape->graph;
    const size_t ids = 2 * graph->switch_count + graph->node_count;
    const size_t nodes = graph->node_count;
    if (shape->tier_count < LOWEST_TIER + 2) {
        return 0;
    }
    weft_autofree size_t *size = weft_calloc(ids, sizeof(*size));
    weft_autofree uint32_t *main = weft_calloc(ids, sizeof(*main));
    weft_autofree bool *straggler = weft_calloc(nodes, sizeof(*straggler));
    if (size == NULL || main == NULL || straggler == NULL) {
        return -ENOMEM;
    }
    const struct handful h = {.below = shape->tiers[shape->tier_count - 2],
                              .last = shape->tiers[shape->tier_count - 1],
                              .size = size,
                              .main = main};
    if (find_handful(&h, ids, nodes, straggler) * 100 < nodes * STRAGGLERS_PERCENT) {
        drop_last_tier(shape, &h);
        shape->straggler = weft_steal(&straggler);
    }
    return 0;
}
