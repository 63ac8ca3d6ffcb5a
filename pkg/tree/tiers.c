/* SPDX-License-Identifier: Apache-2.0 */
/* The upper tiers: level by level, items (groups of the tier below) that share most of their
 * switches of that level become one. Only merges, so the result is a forest whatever the graph. One
 * union-find lives through all levels; a partition is kept where it differs from the one before. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/tree/tree-internal.h"

/* What an item has at the current level. */
struct load {
    uint32_t item;
    uint64_t weight;
};

struct climb {
    struct weft_shape *shape;
    size_t ids; /* switches, then nodes; behind them the switches again, for the last tier */
    struct weft_union u;
    uint32_t *comp;    /* switch with a level that was reached: an id of its item */
    bool *joins;       /* switch of the current level: links at least two items */
    uint64_t *keys;    /* item: its connectors at this level */
    uint64_t *weight;  /* item: its link weight to them */
    uint32_t *touched; /* items with an entry in the two above */
    size_t touched_count;
    struct load *scratch;
    size_t groups; /* of the last partition */
    uint64_t budget;
};

static void climb_done(struct climb *c)
{
    weft_union_done(&c->u);
    weft_free(c->comp);
    weft_free(c->joins);
    weft_free(c->keys);
    weft_free(c->weight);
    weft_free(c->touched);
    weft_free(c->scratch);
}

static int compare_load(const void *a, const void *b)
{
    const struct load *x = a;
    const struct load *y = b;
    return (x->item > y->item) - (x->item < y->item);
}

static bool is_single(const struct climb *c, uint32_t host)
{
    const struct weft_graph *graph = c->shape->graph;
    return host < graph->node_count && c->shape->home[host] >= graph->switch_count;
}

/* The items below switch b with their link weight, by item, each once. singles: also the nodes on
 * no leaf, each with weight 1. */
static size_t items_below(struct climb *c, uint32_t b, bool singles)
{
    const struct weft_shape *shape = c->shape;
    const struct weft_graph *graph = shape->graph;
    size_t count = 0;
    for (size_t e = graph->peers.start[b]; e < graph->peers.start[b + 1]; e++) {
        const struct weft_edge *edge = &graph->peers.edges[e];
        if (shape->level[edge->to] < shape->level[b]) {
            c->scratch[count++] =
                (struct load){weft_union_find(&c->u, c->comp[edge->to]), edge->weight};
        }
    }
    for (size_t e = graph->hosts.start[b]; singles && e < graph->hosts.start[b + 1]; e++) {
        const uint32_t host = graph->hosts.edges[e].to;
        if (is_single(c, host)) {
            const uint32_t id = (uint32_t)(graph->switch_count + host);
            c->scratch[count++] = (struct load){weft_union_find(&c->u, id), 1};
        }
    }
    qsort(c->scratch, count, sizeof(*c->scratch), compare_load);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && c->scratch[kept - 1].item == c->scratch[i].item) {
            c->scratch[kept - 1].weight += c->scratch[i].weight;
        } else {
            c->scratch[kept++] = c->scratch[i];
        }
    }
    return kept;
}

static void note(struct climb *c, const struct load *load)
{
    if (c->keys[load->item] == 0) {
        c->touched[c->touched_count++] = load->item;
    }
    c->keys[load->item]++;
    c->weight[load->item] += load->weight;
}

/* The switches of one level. */
struct range {
    const uint32_t *items;
    size_t count;
};

/* Each pair of the first count items in scratch shares one connector more. */
static int share_one(const struct climb *c, size_t count, struct weft_pairs *pairs)
{
    int rc = 0;
    for (size_t x = 0; x < count; x++) {
        for (size_t y = x + 1; rc == 0 && y < count; y++) {
            rc = weft_pairs_add(pairs, c->scratch[x].item, c->scratch[y].item, 1);
        }
    }
    return rc;
}

/* Connectors of this level: what they share, and how many each item has. */
static int share_connectors(struct climb *c, struct range level, struct weft_pairs *pairs)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < level.count; i++) {
        const size_t count = items_below(c, level.items[i], true);
        c->joins[level.items[i]] = count >= 2;
        for (size_t x = 0; x < count; x++) {
            note(c, &c->scratch[x]);
        }
        rc = share_one(c, count, pairs);
    }
    return rc;
}

/* Links between switches of the level below in different items. */
static int share_peers(struct climb *c, struct range below, struct weft_pairs *peers)
{
    const struct weft_shape *shape = c->shape;
    const struct weft_adjacency *adjacency = &shape->graph->peers;
    for (size_t i = 0; i < below.count; i++) {
        const uint32_t s = below.items[i];
        for (size_t e = adjacency->start[s]; e < adjacency->start[s + 1]; e++) {
            const uint32_t b = adjacency->edges[e].to;
            if (b <= s || shape->level[b] != shape->level[s]) {
                continue; /* each link once */
            }
            const uint32_t from = weft_union_find(&c->u, c->comp[s]);
            const uint32_t to = weft_union_find(&c->u, c->comp[b]);
            const int rc =
                from != to ? weft_pairs_add(peers, from, to, adjacency->edges[e].weight) : 0;
            if (rc < 0) {
                return rc;
            }
        }
    }
    return 0;
}

/* A connector belongs to the item with most links to it, the smaller at a tie. */
static void place_connectors(struct climb *c, struct range level)
{
    for (size_t i = 0; i < level.count; i++) {
        const size_t count = items_below(c, level.items[i], false);
        uint64_t most = 0;
        c->comp[level.items[i]] = level.items[i];
        for (size_t x = 0; x < count; x++) {
            if (c->scratch[x].weight > most) {
                most = c->scratch[x].weight;
                c->comp[level.items[i]] = c->scratch[x].item;
            }
        }
    }
}

/* Keeps the nodes' partition as a tier if it differs from the last one. As items only merge, it
 * does exactly if there are fewer groups. */
static int keep_partition(struct climb *c, bool *ret_kept)
{
    struct weft_shape *shape = c->shape;
    const size_t nodes = shape->graph->node_count;
    uint32_t *tier = weft_calloc(nodes, sizeof(*tier));
    weft_autofree bool *seen = weft_calloc(c->u.count, sizeof(*seen));
    *ret_kept = false;
    if (tier == NULL || seen == NULL) {
        weft_free(tier);
        return -ENOMEM;
    }
    size_t groups = 0;
    for (size_t n = 0; n < nodes; n++) {
        tier[n] = weft_union_find(&c->u, shape->home[n]);
        groups += !seen[tier[n]];
        seen[tier[n]] = true;
    }
    const bool differs = groups > 0 && (shape->tier_count == 0 || groups < c->groups);
    c->groups = groups;
    if (!differs || shape->tier_count >= TIERS_MAX) {
        weft_free(tier);
        return differs ? -EFBIG : 0;
    }
    shape->tiers[shape->tier_count++] = tier;
    *ret_kept = true;
    return 0;
}

/* The switches that made this level's merges are the new tier's own. */
static void own_connectors(struct climb *c, struct range level)
{
    struct weft_shape *shape = c->shape;
    for (size_t i = 0; i < level.count; i++) {
        const uint32_t s = level.items[i];
        if (c->joins[s] && shape->joins_tier[s] == ID_NONE) {
            shape->joins_group[s] = weft_union_find(&c->u, c->comp[s]);
            shape->joins_tier[s] = (uint32_t)shape->tier_count - 1;
        }
    }
}

static int climb_level(struct climb *c, struct range below, struct range level)
{
    weft_auto(weft_pairs_done) struct weft_pairs shared;
    weft_auto(weft_pairs_done) struct weft_pairs peers;
    weft_pairs_init(&shared, c->budget);
    weft_pairs_init(&peers, c->budget);
    int rc = share_connectors(c, level, &shared);
    rc = rc == 0 ? share_peers(c, below, &peers) : rc;
    if (rc < 0) {
        return rc;
    }
    c->budget = shared.budget < peers.budget ? shared.budget : peers.budget;
    weft_pairs_glue(&shared, c->keys, &c->u);
    weft_pairs_glue(&peers, c->weight, &c->u);
    const bool may_differ = shared.map.count > 0 || peers.map.count > 0;
    for (size_t i = 0; i < c->touched_count; i++) {
        c->keys[c->touched[i]] = 0;
        c->weight[c->touched[i]] = 0;
    }
    c->touched_count = 0;
    place_connectors(c, level);
    bool kept = false;
    rc = may_differ ? keep_partition(c, &kept) : 0;
    if (kept) {
        own_connectors(c, level);
    }
    return rc;
}

/* Whatever is physically connected, through switches or through a node. */
static int climb_last(struct climb *c, bool *ret_kept)
{
    const struct weft_graph *graph = c->shape->graph;
    const uint32_t offset = (uint32_t)c->ids;
    const struct weft_shape *shape = c->shape;
    const struct range all = {shape->by_level, shape->reached};
    for (size_t i = 0; i < all.count; i++) {
        const uint32_t s = all.items[i];
        c->joins[s] = shape->level[s] > 0 && items_below(c, s, true) >= 2;
    }
    for (size_t s = 0; s < graph->switch_count; s++) {
        for (size_t e = graph->peers.start[s]; e < graph->peers.start[s + 1]; e++) {
            (void)weft_union_join(&c->u, offset + (uint32_t)s, offset + graph->peers.edges[e].to);
        }
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        for (size_t e = graph->uplinks.start[n]; e < graph->uplinks.start[n + 1]; e++) {
            (void)weft_union_join(&c->u, c->shape->home[n], offset + graph->uplinks.edges[e].to);
        }
    }
    const int rc = keep_partition(c, ret_kept);
    if (*ret_kept) {
        own_connectors(c, all);
    }
    return rc;
}

static int climb_init(struct climb *c)
{
    const struct weft_shape *shape = c->shape;
    const struct weft_graph *graph = shape->graph;
    size_t most = 0;
    for (size_t s = 0; s < graph->switch_count; s++) {
        const size_t degree = graph->peers.start[s + 1] - graph->peers.start[s] +
                              graph->hosts.start[s + 1] - graph->hosts.start[s];
        most = degree > most ? degree : most;
    }
    c->ids = graph->switch_count + graph->node_count;
    c->budget = PAIR_BUDGET;
    c->comp = weft_calloc(graph->switch_count, sizeof(*c->comp));
    c->joins = weft_calloc(graph->switch_count, sizeof(*c->joins));
    c->keys = weft_calloc(c->ids, sizeof(*c->keys));
    c->weight = weft_calloc(c->ids, sizeof(*c->weight));
    c->touched = weft_calloc(c->ids, sizeof(*c->touched));
    c->scratch = weft_calloc(most, sizeof(*c->scratch));
    if (weft_union_init(&c->u, c->ids + graph->switch_count) < 0 || c->comp == NULL ||
        c->joins == NULL || c->keys == NULL || c->weight == NULL || c->touched == NULL ||
        c->scratch == NULL) {
        return -ENOMEM;
    }
    for (size_t s = 0; s < graph->switch_count; s++) {
        if (shape->leaf[s] != ID_NONE) {
            c->comp[s] = shape->leaf[s];
        }
    }
    return 0;
}

int weft_shape_levels(struct weft_shape *shape)
{
    const struct weft_graph *graph = shape->graph;
    const int rc =
        weft_shape_distance(graph, shape->seed, shape->level, shape->by_level, &shape->reached);
    if (rc == 0 && shape->reached > 0) {
        shape->level_count = shape->level[shape->by_level[shape->reached - 1]] + 1;
    }
    return rc;
}

/* The switches of that level: by_level is sorted by it. *pos walks on. */
static struct range next_level(const struct weft_shape *shape, uint32_t level, size_t *pos)
{
    const struct range range = {.items = &shape->by_level[*pos], .count = 0};
    size_t count = 0;
    while (*pos + count < shape->reached && shape->level[range.items[count]] == level) {
        count++;
    }
    *pos += count;
    return (struct range){range.items, count};
}

int weft_shape_tiers(struct weft_shape *shape)
{
    struct climb c = {.shape = shape};
    bool kept = false;
    int rc = climb_init(&c);
    rc = rc == 0 ? keep_partition(&c, &kept) : rc;
    size_t pos = 0;
    struct range below = next_level(shape, 0, &pos);
    for (uint32_t k = 1; rc == 0 && k <= shape->level_count; k++) {
        const struct range level = next_level(shape, k, &pos);
        rc = climb_level(&c, below, level);
        below = level;
    }
    kept = false;
    rc = rc == 0 ? climb_last(&c, &kept) : rc;
    climb_done(&c);
    return rc == 0 && kept ? weft_shape_stragglers(shape) : rc;
}
