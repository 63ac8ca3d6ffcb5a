/* SPDX-License-Identifier: Apache-2.0 */
/* The groups of allocation.md: what belongs together by PCIe distance, by socket, by parent and by
 * direct links. Each family is laminar or a partition, so n devices have at most 3n groups (16
 * devices: 15 by distance, 15 by links, 8 by socket, 8 by parent). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/allocator/allocator-internal.h"
#include "pkg/machine/machine.h"

struct edge {
    uint64_t b;
    uint16_t i, j;
};

/* Union-find over ranks, and what a derivation needs beside it. */
struct forest {
    struct weft_allocator *a;
    uint16_t *root;
    uint64_t *
        outside; /* by rank: the best link out of its class; or the value its class was added for */
    uint64_t *set; /* the group under work */
    struct weft_group why;
    size_t group_cap;
};

static uint16_t find_root(uint16_t *root, size_t i)
{
    size_t at = i;
    while (root[at] != at) {
        root[at] = root[root[at]];
        at = root[at];
    }
    return (uint16_t)at;
}

/* The lower rank becomes the root. Returns it. */
static uint16_t join(uint16_t *root, size_t i, size_t j)
{
    const uint16_t ri = find_root(root, i);
    const uint16_t rj = find_root(root, j);
    const uint16_t low = ri < rj ? ri : rj;
    root[ri] = root[rj] = low;
    return low;
}

static const struct weft_group no_reason = {.level = -1, .socket = -1, .parent = -1};

static void separate(const struct forest *f)
{
    for (size_t i = 0; i < f->a->n; i++) {
        f->root[i] = (uint16_t)i;
    }
}

static int make_room(struct forest *f)
{
    struct weft_allocator *a = f->a;
    if (a->group_count < f->group_cap) {
        return 0;
    }
    const size_t cap = f->group_cap > 0 ? f->group_cap * 2 : 16;
    uint64_t *groups = weft_reallocarray(a->groups, cap, a->words * sizeof(*groups));
    if (groups == NULL) {
        return -ENOMEM;
    }
    a->groups = groups;
    struct weft_group *reasons = weft_reallocarray(a->reasons, cap, sizeof(*reasons));
    if (reasons == NULL) {
        return -ENOMEM;
    }
    a->reasons = reasons;
    f->group_cap = cap;
    return 0;
}

/* The first reason of each kind is kept: the families come closest and strongest first. */
static void add_reason(struct weft_group *to, const struct weft_group *why)
{
    to->level = to->level < 0 ? why->level : to->level;
    to->socket = to->socket < 0 ? why->socket : to->socket;
    to->parent = to->parent < 0 ? why->parent : to->parent;
    to->links = to->links == 0 ? why->links : to->links;
}

/* Adds f->set unless it has fewer than two devices; where it is there already, only the reason. */
static int add_group(struct forest *f)
{
    struct weft_allocator *a = f->a;
    const size_t bytes = a->words * sizeof(*f->set);
    if (weft_bit_count(f->set, a->words) < 2) {
        return 0;
    }
    for (size_t g = 0; g < a->group_count; g++) {
        if (memcmp(&a->groups[g * a->words], f->set, bytes) == 0) {
            add_reason(&a->reasons[g], &f->why);
            return 0;
        }
    }
    const int rc = make_room(f);
    if (rc < 0) {
        return rc;
    }
    memcpy(&a->groups[a->group_count * a->words], f->set, bytes);
    a->reasons[a->group_count] = f->why;
    a->group_count++;
    return 0;
}

/* Adds the class of one root. */
static int add_class(struct forest *f, uint16_t root)
{
    memset(f->set, 0, f->a->words * sizeof(*f->set));
    for (size_t i = root; i < f->a->n; i++) {
        if (find_root(f->root, i) == root) {
            weft_bit_set(f->set, i);
        }
    }
    return add_group(f);
}

static int add_classes(struct forest *f)
{
    for (size_t i = 0; i < f->a->n; i++) {
        if (f->root[i] == i) {
            const int rc = add_class(f, (uint16_t)i);
            if (rc < 0) {
                return rc;
            }
        }
    }
    return 0;
}

/* The half-link rule: does a linked pair of one class have a link no better than half of one that
 * leads out of the class? Then the links, not the switches, say what belongs together. */
static bool links_contradict(const struct forest *f)
{
    const struct weft_allocator *a = f->a;
    for (size_t i = 0; i < a->n; i++) {
        f->outside[i] = 0;
        for (size_t j = 0; j < a->n; j++) {
            const uint64_t b = a->b[i * a->n + j];
            if (b > f->outside[i] && find_root(f->root, i) != find_root(f->root, j)) {
                f->outside[i] = b;
            }
        }
    }
    for (size_t i = 0; i < a->n; i++) {
        for (size_t j = i + 1; j < a->n; j++) {
            const uint64_t b = a->b[i * a->n + j];
            const uint64_t out = f->outside[i] > f->outside[j] ? f->outside[i] : f->outside[j];
            if (b > 0 && 2 * b <= out && find_root(f->root, i) == find_root(f->root, j)) {
                return true;
            }
        }
    }
    return false;
}

static void join_closer(const struct forest *f, int t)
{
    const struct weft_allocator *a = f->a;
    for (size_t i = 0; i < a->n; i++) {
        for (size_t j = i + 1; j < a->n; j++) {
            if (a->t[i * a->n + j] <= t) {
                (void)join(f->root, i, j);
            }
        }
    }
}

static int add_distance_groups(struct forest *f)
{
    separate(f);
    for (int t = WEFT_DISTANCE_PSB; t <= WEFT_DISTANCE_NODE; t++) {
        join_closer(f, t);
        f->why = no_reason;
        f->why.level = t;
        if (t <= WEFT_DISTANCE_PHB && links_contradict(f)) {
            continue;
        }
        const int rc = add_classes(f);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int socket_at(const struct weft_allocator *a, size_t i)
{
    return a->socket_number[i];
}

static int parent_at(const struct weft_allocator *a, size_t i)
{
    return a->parent[i];
}

/* The devices of each place that is known. */
static int add_place_groups(struct forest *f,
                            int (*place_at)(const struct weft_allocator *, size_t), int *why)
{
    const struct weft_allocator *a = f->a;
    for (size_t i = 0; i < a->n; i++) {
        const int place = place_at(a, i);
        bool first = place >= 0;
        memset(f->set, 0, a->words * sizeof(*f->set));
        for (size_t j = 0; first && j < a->n; j++) {
            if (place_at(a, j) == place) {
                first = j >= i;
                weft_bit_set(f->set, j);
            }
        }
        f->why = no_reason;
        *why = place;
        const int rc = first ? add_group(f) : 0;
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int compare_edges(const void *x, const void *y)
{
    const struct edge *a = x;
    const struct edge *b = y;
    return (a->b < b->b) - (a->b > b->b);
}

/* Adds the components that the links of one value joined: each has a link of that value, and its
 * lowest device names it. */
static int add_joined(struct forest *f, const struct edge *edges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint16_t root = find_root(f->root, edges[i].i);
        const bool seen = f->outside[root] == edges[i].b;
        f->outside[root] = edges[i].b;
        f->why = no_reason;
        f->why.links = edges[i].b;
        const int rc = seen ? 0 : add_class(f, root);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* Strongest links first: after the last link of each value stand the components of B >= value. */
static int add_link_components(struct forest *f, const struct edge *edges, size_t count)
{
    separate(f);
    for (size_t at = 0; at < count;) {
        size_t end = at;
        for (; end < count && edges[end].b == edges[at].b; end++) {
            (void)join(f->root, edges[end].i, edges[end].j);
        }
        const int rc = add_joined(f, edges + at, end - at);
        if (rc < 0) {
            return rc;
        }
        at = end;
    }
    return 0;
}

static int add_link_groups(struct forest *f)
{
    const struct weft_allocator *a = f->a;
    weft_autofree struct edge *edges = weft_calloc(a->n * a->n / 2 + 1, sizeof(*edges));
    if (edges == NULL) {
        return -ENOMEM;
    }
    size_t count = 0;
    for (size_t i = 0; i < a->n; i++) {
        f->outside[i] = 0;
        for (size_t j = i + 1; j < a->n; j++) {
            if (a->b[i * a->n + j] > 0) {
                edges[count++] = (struct edge){a->b[i * a->n + j], (uint16_t)i, (uint16_t)j};
            }
        }
    }
    qsort(edges, count, sizeof(*edges), compare_edges);
    return add_link_components(f, edges, count);
}

int weft_groups_derive(struct weft_allocator *a)
{
    weft_autofree uint16_t *root = weft_calloc(a->n, sizeof(*root));
    weft_autofree uint64_t *outside = weft_calloc(a->n, sizeof(*outside));
    weft_autofree uint64_t *set = weft_calloc(a->words, sizeof(*set));
    if (root == NULL || outside == NULL || set == NULL) {
        return -ENOMEM;
    }
    struct forest f = {.a = a, .root = root, .outside = outside, .set = set};
    int rc = add_distance_groups(&f);
    rc = rc < 0 ? rc : add_place_groups(&f, socket_at, &f.why.socket);
    rc = rc < 0 ? rc : add_place_groups(&f, parent_at, &f.why.parent);
    return rc < 0 ? rc : add_link_groups(&f);
}
