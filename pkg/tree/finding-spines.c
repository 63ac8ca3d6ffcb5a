/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves with fewer links to their spines than the other leaves of the same plane. */
#include <errno.h>
#include <stdlib.h>

#include "pkg/base/buf.h"
#include "pkg/tree/tree-internal.h"

enum {
    HABIT_LEAVES = 4,
    HABIT_PERCENT = 75,
    SHOWN = 12,
    LIST_MAX = 3072,
};

/* Leaves and the spines right above them, in planes: parts that share no spine. */
struct planes {
    const struct weft_shape *shape;
    struct weft_union plane; /* by switch */
    uint32_t *leaves;        /* spine: leaves with a link to it; plane's root: leaves in all */
    uint32_t *size;          /* plane's root: its leaves */
    uint32_t *order;         /* spines by plane */
    size_t order_count;
    uint32_t *usual; /* plane's root: parallel links that most pairs have */
};

static void planes_done(struct planes *p)
{
    weft_union_done(&p->plane);
    weft_free(p->leaves);
    weft_free(p->size);
    weft_free(p->order);
    weft_free(p->usual);
}

static bool is_spine(const struct weft_shape *shape, uint32_t s)
{
    return shape->level[s] == 1;
}

static void join_planes(struct planes *p)
{
    const struct weft_shape *shape = p->shape;
    const struct weft_adjacency *peers = &shape->graph->peers;
    for (size_t i = 0; i < shape->reached && shape->level[shape->by_level[i]] == 0; i++) {
        const uint32_t leaf = shape->by_level[i];
        for (size_t e = peers->start[leaf]; e < peers->start[leaf + 1]; e++) {
            if (is_spine(shape, peers->edges[e].to)) {
                (void)weft_union_join(&p->plane, leaf, peers->edges[e].to);
                p->leaves[peers->edges[e].to]++;
            }
        }
    }
    for (size_t i = 0; i < shape->reached; i++) {
        const uint32_t s = shape->by_level[i];
        if (shape->level[s] == 0) {
            p->size[weft_union_find(&p->plane, s)]++;
        } else if (is_spine(shape, s)) {
            p->order[p->order_count++] = s;
        }
    }
}

/* Majority of the parallel link counts in each plane (Boyer and Moore; a plane without a majority
 * gives some count, which the check below bears). votes is scratch. */
static void find_usual(struct planes *p, uint32_t *votes)
{
    const struct weft_adjacency *peers = &p->shape->graph->peers;
    for (size_t i = 0; i < p->order_count; i++) {
        const uint32_t spine = p->order[i];
        const uint32_t root = weft_union_find(&p->plane, spine);
        for (size_t e = peers->start[spine]; e < peers->start[spine + 1]; e++) {
            if (p->shape->level[peers->edges[e].to] != 0) {
                continue;
            }
            if (votes[root] == 0) {
                p->usual[root] = peers->edges[e].count;
            }
            votes[root] =
                peers->edges[e].count == p->usual[root] ? votes[root] + 1 : votes[root] - 1;
        }
    }
}

struct spine_order {
    uint32_t root;
    uint32_t spine;
};

static int compare_spine(const void *a, const void *b)
{
    const struct spine_order *x = a;
    const struct spine_order *y = b;
    if (x->root != y->root) {
        return x->root < y->root ? -1 : 1;
    }
    return (x->spine > y->spine) - (x->spine < y->spine);
}

static uint32_t links_between(const struct weft_graph *graph, uint32_t leaf, uint32_t spine)
{
    size_t low = graph->peers.start[leaf];
    size_t high = graph->peers.start[leaf + 1];
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct weft_edge *edge = &graph->peers.edges[middle];
        if (edge->to == spine) {
            return edge->count;
        }
        if (edge->to < spine) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return 0;
}

/* spines: those of the leaf's plane that its leaves have a habit of linking to. */
static int check_leaf(const struct planes *p, uint32_t leaf, uint32_t usual,
                      const struct spine_order *spines, size_t count,
                      struct weft_findings *findings)
{
    const struct weft_graph *graph = p->shape->graph;
    weft_auto(weft_buf_done) struct weft_buf list;
    weft_buf_init(&list, LIST_MAX);
    size_t missing = 0;
    size_t named = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t links = links_between(graph, leaf, spines[i].spine);
        if (links >= usual) {
            continue;
        }
        missing += usual - links;
        if (named++ < SHOWN) {
            (void)weft_buf_printf(&list, "%s%s has %u of %u", named > 1 ? ", " : "",
                                  graph->switch_names[spines[i].spine], links, usual);
        }
    }
    if (missing == 0) {
        return 0;
    }
    return weft_findings_add(findings, "missing-spine-link", graph->switch_names[leaf],
                             "%zu of %zu links to its spines are missing: %s%s", missing,
                             count * usual, weft_buf_text(&list),
                             named > SHOWN ? " and others" : "");
}

/* Keeps the spines that are a habit, by plane. */
static size_t keep_habits(struct planes *p, struct spine_order *spines)
{
    size_t count = 0;
    for (size_t i = 0; i < p->order_count; i++) {
        const uint32_t spine = p->order[i];
        const uint32_t root = weft_union_find(&p->plane, spine);
        if (p->size[root] >= HABIT_LEAVES &&
            (uint64_t)p->leaves[spine] * 100 >= (uint64_t)p->size[root] * HABIT_PERCENT) {
            spines[count++] = (struct spine_order){root, spine};
        }
    }
    if (count > 0) {
        qsort(spines, count, sizeof(*spines), compare_spine);
    }
    return count;
}

static int check_leaves(struct planes *p, const struct spine_order *spines, size_t count,
                        struct weft_findings *findings)
{
    const struct weft_shape *shape = p->shape;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < shape->reached && shape->level[shape->by_level[i]] == 0;
         i++) {
        const uint32_t leaf = shape->by_level[i];
        const uint32_t root = weft_union_find(&p->plane, leaf);
        size_t low = 0;
        size_t high = count;
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            if (spines[middle].root < root) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        size_t end = low;
        while (end < count && spines[end].root == root) {
            end++;
        }
        rc = check_leaf(p, leaf, p->usual[root], &spines[low], end - low, findings);
    }
    return rc;
}

int weft_find_spines(const struct weft_shape *shape, struct weft_findings *findings)
{
    const size_t count = shape->graph->switch_count;
    struct planes p = {
        .shape = shape,
        .leaves = weft_calloc(count, sizeof(uint32_t)),
        .size = weft_calloc(count, sizeof(uint32_t)),
        .order = weft_calloc(count, sizeof(uint32_t)),
        .usual = weft_calloc(count, sizeof(uint32_t)),
    };
    weft_autofree uint32_t *votes = weft_calloc(count, sizeof(*votes));
    weft_autofree struct spine_order *spines = weft_calloc(count, sizeof(*spines));
    int rc = -ENOMEM;
    if (p.leaves != NULL && p.size != NULL && p.order != NULL && p.usual != NULL && votes != NULL &&
        spines != NULL && weft_union_init(&p.plane, count) == 0) {
        join_planes(&p);
        find_usual(&p, votes);
        rc = check_leaves(&p, spines, keep_habits(&p, spines), findings);
    }
    planes_done(&p);
    return rc;
}
