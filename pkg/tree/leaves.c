/* SPDX-License-Identifier: Apache-2.0 */
/* The closest tier: which switches are leaves, which leaves serve the same hosts, and where each
 * node is at home. */
#include <errno.h>
#include <stdlib.h>

#include "pkg/tree/tree-internal.h"

/* Under this share of host links in all its connected ports a switch may be a spine with a host on
 * it rather than a leaf. */
enum { LOW_PERCENT = 25 };

/* Counts host h for each pair of seeds that it is on. */
static int share_host(const struct weft_graph *graph, const bool *seeds, size_t h,
                      struct weft_pairs *pairs)
{
    const struct weft_edge *edges = graph->uplinks.edges;
    const size_t end = graph->uplinks.start[h + 1];
    int rc = 0;
    for (size_t i = graph->uplinks.start[h]; i < end; i++) {
        for (size_t j = i + 1; rc == 0 && seeds[edges[i].to] && j < end; j++) {
            rc = seeds[edges[j].to] ? weft_pairs_add(pairs, edges[i].to, edges[j].to, 1) : 0;
        }
    }
    return rc;
}

int weft_shape_glue_leaves(const struct weft_graph *graph, const bool *seeds, struct weft_union *u)
{
    weft_auto(weft_pairs_done) struct weft_pairs pairs;
    weft_pairs_init(&pairs, PAIR_BUDGET);
    weft_autofree uint64_t *size = weft_calloc(graph->switch_count, sizeof(*size));
    if (size == NULL) {
        return -ENOMEM;
    }
    for (size_t s = 0; s < graph->switch_count; s++) {
        size[s] = graph->hosts.start[s + 1] - graph->hosts.start[s];
    }
    for (size_t h = 0; h < graph->host_count; h++) {
        const int rc = share_host(graph, seeds, h, &pairs);
        if (rc < 0) {
            return rc;
        }
    }
    weft_pairs_glue(&pairs, size, u);
    return 0;
}

int weft_shape_distance(const struct weft_graph *graph, const bool *from, uint32_t *level,
                        uint32_t *by_level, size_t *ret_reached)
{
    size_t tail = 0;
    for (size_t s = 0; s < graph->switch_count; s++) {
        level[s] = from[s] ? 0 : ID_NONE;
        if (from[s]) {
            by_level[tail++] = (uint32_t)s;
        }
    }
    for (size_t head = 0; head < tail; head++) {
        const uint32_t s = by_level[head];
        for (size_t e = graph->peers.start[s]; e < graph->peers.start[s + 1]; e++) {
            const uint32_t b = graph->peers.edges[e].to;
            if (level[b] == ID_NONE) {
                level[b] = level[s] + 1;
                by_level[tail++] = b;
            }
        }
    }
    *ret_reached = tail;
    return 0;
}

static uint64_t row_weight(const struct weft_adjacency *adjacency, size_t row)
{
    uint64_t sum = 0;
    for (size_t e = adjacency->start[row]; e < adjacency->start[row + 1]; e++) {
        sum += adjacency->edges[e].weight;
    }
    return sum;
}

static void find_seeds(struct weft_shape *shape)
{
    const struct weft_graph *graph = shape->graph;
    for (size_t n = 0; n < graph->node_count; n++) {
        for (size_t e = graph->uplinks.start[n]; e < graph->uplinks.start[n + 1]; e++) {
            shape->seed[graph->uplinks.edges[e].to] = true;
        }
    }
}

/* ---- the demotion guard ---- */

struct guard {
    bool *low;
    bool *base;
    uint32_t *distance; /* from base */
    uint32_t *order;    /* switches by distance */
    size_t reached;
    struct weft_union group; /* leaf groups of base */
    struct weft_union below; /* what is one component under the current distance */
};

static void guard_done(struct guard *g)
{
    weft_free(g->low);
    weft_free(g->base);
    weft_free(g->distance);
    weft_free(g->order);
    weft_union_done(&g->group);
    weft_union_done(&g->below);
}

/* Splits the seeds; false if one side is empty and nothing is to be decided. */
static bool split_seeds(const struct weft_shape *shape, struct guard *g)
{
    const struct weft_graph *graph = shape->graph;
    bool any_low = false;
    bool any_base = false;
    for (size_t s = 0; s < graph->switch_count; s++) {
        if (!shape->seed[s]) {
            continue;
        }
        const uint64_t host = row_weight(&graph->hosts, s);
        const uint64_t peer = row_weight(&graph->peers, s);
        g->low[s] = peer > 0 && host * 100 < LOW_PERCENT * (host + peer);
        g->base[s] = !g->low[s];
        any_low = any_low || g->low[s];
        any_base = any_base || g->base[s];
    }
    return any_low && any_base;
}

/* Adds switch a to the components of those nearer than it. */
static void join_below(const struct weft_graph *graph, struct guard *g, uint32_t a)
{
    if (g->low[a]) {
        return;
    }
    if (g->distance[a] == 0) {
        (void)weft_union_join(&g->below, a, weft_union_find(&g->group, a));
    }
    for (size_t e = graph->peers.start[a]; e < graph->peers.start[a + 1]; e++) {
        const uint32_t b = graph->peers.edges[e].to;
        if (!g->low[b] && g->distance[b] < g->distance[a]) {
            (void)weft_union_join(&g->below, a, b);
        }
    }
}

/* Does x link at least two components that are apart below its own distance? */
static bool joins_two(const struct weft_graph *graph, struct guard *g, uint32_t x)
{
    uint32_t first = ID_NONE;
    for (size_t e = graph->peers.start[x]; e < graph->peers.start[x + 1]; e++) {
        const uint32_t b = graph->peers.edges[e].to;
        if (g->low[b] || g->distance[b] >= g->distance[x]) {
            continue;
        }
        const uint32_t component = weft_union_find(&g->below, b);
        if (first != ID_NONE && component != first) {
            return true;
        }
        first = component;
    }
    return false;
}

/* A switch of distance d sees the components of all switches nearer than d, so these are joined
 * distance by distance: one pass for all low seeds. */
static void demote(struct weft_shape *shape, struct guard *g)
{
    size_t begin = 0;
    while (begin < g->reached) {
        size_t end = begin;
        while (end < g->reached && g->distance[g->order[end]] == g->distance[g->order[begin]]) {
            end++;
        }
        for (size_t i = begin; i < end; i++) {
            const uint32_t x = g->order[i];
            if (g->low[x] && joins_two(shape->graph, g, x)) {
                shape->demoted[x] = true;
                shape->seed[x] = false;
            }
        }
        for (size_t i = begin; i < end; i++) {
            join_below(shape->graph, g, g->order[i]);
        }
        begin = end;
    }
}

static int guard_seeds(struct weft_shape *shape)
{
    const struct weft_graph *graph = shape->graph;
    const size_t count = graph->switch_count;
    struct guard g = {
        .low = weft_calloc(count, sizeof(bool)),
        .base = weft_calloc(count, sizeof(bool)),
        .distance = weft_calloc(count, sizeof(uint32_t)),
        .order = weft_calloc(count, sizeof(uint32_t)),
    };
    int rc = -ENOMEM;
    if (g.low != NULL && g.base != NULL && g.distance != NULL && g.order != NULL) {
        rc = 0;
        if (split_seeds(shape, &g)) {
            rc = weft_union_init(&g.group, count);
            rc = rc == 0 ? weft_union_init(&g.below, count) : rc;
            rc = rc == 0 ? weft_shape_glue_leaves(graph, g.base, &g.group) : rc;
            rc = rc == 0 ? weft_shape_distance(graph, g.base, g.distance, g.order, &g.reached) : rc;
            if (rc == 0) {
                demote(shape, &g);
            }
        }
    }
    guard_done(&g);
    return rc;
}

/* ---- the nodes' homes ---- */

struct share {
    uint32_t group;
    uint64_t weight;
};

static int compare_share(const void *a, const void *b)
{
    const struct share *x = a;
    const struct share *y = b;
    return (x->group > y->group) - (x->group < y->group);
}

static uint32_t home_before(const struct weft_shape *shape, size_t node)
{
    const struct weft_graph *graph = shape->graph;
    const uint32_t on = graph->was_on != NULL ? graph->was_on[node] : ID_NONE;
    return on != ID_NONE ? shape->leaf[on] : ID_NONE;
}

/* The group with most of the node's weight; at a tie the one where it was, else the smaller id;
 * ID_NONE if it is on no leaf. scratch has room for its links. */
static uint32_t home_of(const struct weft_shape *shape, size_t node, struct share *scratch)
{
    const struct weft_adjacency *up = &shape->graph->uplinks;
    size_t count = 0;
    for (size_t e = up->start[node]; e < up->start[node + 1]; e++) {
        const uint32_t group = shape->leaf[up->edges[e].to];
        if (group != ID_NONE) {
            scratch[count++] = (struct share){group, up->edges[e].weight};
        }
    }
    qsort(scratch, count, sizeof(*scratch), compare_share);
    const uint32_t before = home_before(shape, node);
    uint32_t best = ID_NONE;
    uint64_t most = 0;
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        const bool same = i > 0 && scratch[i - 1].group == scratch[i].group;
        sum = (same ? sum : 0) + scratch[i].weight;
        if (sum > most || (sum == most && scratch[i].group == before)) {
            most = sum;
            best = scratch[i].group;
        }
    }
    return best;
}

static int find_homes(struct weft_shape *shape)
{
    const struct weft_graph *graph = shape->graph;
    size_t most = 0;
    for (size_t n = 0; n < graph->node_count; n++) {
        const size_t degree = graph->uplinks.start[n + 1] - graph->uplinks.start[n];
        most = degree > most ? degree : most;
    }
    weft_autofree struct share *scratch = weft_calloc(most, sizeof(*scratch));
    if (scratch == NULL) {
        return -ENOMEM;
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        const uint32_t home = home_of(shape, n, scratch);
        shape->home[n] = home != ID_NONE ? home : (uint32_t)(graph->switch_count + n);
    }
    return 0;
}

int weft_shape_leaves(struct weft_shape *shape)
{
    const struct weft_graph *graph = shape->graph;
    find_seeds(shape);
    int rc = guard_seeds(shape);
    weft_auto(weft_union_done) struct weft_union u = {0};
    rc = rc == 0 ? weft_union_init(&u, graph->switch_count) : rc;
    rc = rc == 0 ? weft_shape_glue_leaves(graph, shape->seed, &u) : rc;
    if (rc < 0) {
        return rc;
    }
    for (size_t s = 0; s < graph->switch_count; s++) {
        shape->leaf[s] = shape->seed[s] ? weft_union_find(&u, (uint32_t)s) : ID_NONE;
    }
    return find_homes(shape);
}
