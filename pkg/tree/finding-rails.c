/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about single cables and adapters: what the other nodes of a leaf group do says where
 * each adapter belongs. Reports; never moves a node. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/base/map.h"
#include "pkg/base/sort.h"
#include "pkg/base/str.h"
#include "pkg/fabric/fabric.h"
#include "pkg/tree/rails.h"
#include "pkg/tree/tree-internal.h"
#include "pkg/tree/tree.h"

/* A habit of the group: at least so many nodes, of which at least so many in a hundred agree. */
enum { HABIT_NODES = 4, HABIT_PERCENT = 75 };

static bool is_habit(size_t agree, size_t all)
{
    return all >= HABIT_NODES && agree * 100 >= all * HABIT_PERCENT;
}

void weft_rails_done(struct weft_rails *rails)
{
    for (size_t k = 0; rails->keys != NULL && k < rails->key_count; k++) {
        weft_free(rails->keys[k]);
    }
    weft_free(rails->keys);
    weft_free(rails->items);
    *rails = (struct weft_rails){0};
}

static int add_key(struct weft_rails *rails, struct weft_map *ids, char *key, uint32_t *ret_key)
{
    size_t id = rails->key_count;
    if (key == NULL) {
        return -ENOMEM;
    }
    if (!weft_map_get(ids, key, &id)) {
        void *list = rails->keys;
        if (weft_array_reserve(&list, &rails->key_cap, id + 1, sizeof(char *),
                               WEFT_FABRIC_LINKS_MAX) < 0) {
            return -ENOMEM;
        }
        rails->keys = list;
        if (weft_map_put(ids, key, id) < 0) {
            return -ENOMEM;
        }
        rails->keys[rails->key_count++] = key;
    }
    *ret_key = (uint32_t)id;
    return 0;
}

/* An adapter's port as its node calls it: "HCA-1", "mlx5_0 port 2". Most adapters share few keys,
 * so a known one costs no memory. */
static int key_of(struct weft_rails *rails, struct weft_map *ids, const struct weft_device *ca,
                  unsigned port, uint32_t *ret_key)
{
    struct weft_str host = {0};
    struct weft_str hca = {0};
    size_t id = 0;
    if (port == 1 && weft_desc_split(ca->desc, &host, &hca) && hca.len > 0 &&
        weft_map_get_n(ids, hca.data, hca.len, &id)) {
        *ret_key = (uint32_t)id;
        return 0;
    }
    weft_autofree char *name = weft_ca_name(ca);
    weft_autofree char *key = name == NULL ? NULL
                              : port == 1  ? weft_strdup(name)
                                           : weft_asprintf("%s port %u", name, port);
    const size_t before = rails->key_count;
    const int rc = add_key(rails, ids, key, ret_key);
    if (rails->key_count > before) {
        (void)weft_steal(&key);
    }
    return rc;
}

static int collect(const struct weft_shape *shape, struct weft_rails *rails)
{
    const struct weft_graph *graph = shape->graph;
    const struct weft_fabric *fabric = graph->fabric;
    weft_auto(weft_map_free) struct weft_map *ids = weft_map_new(WEFT_FABRIC_LINKS_MAX);
    rails->items = weft_calloc(fabric->link_count, sizeof(*rails->items));
    if (ids == NULL || rails->items == NULL) {
        return -ENOMEM;
    }
    for (size_t l = 0; l < fabric->link_count; l++) {
        const struct weft_link *link = &fabric->links[l];
        const struct weft_device *ca = &fabric->devices[link->b];
        if (link->a >= graph->switch_count || link->b < graph->switch_count ||
            graph->excluded_switch[link->a] || graph->excluded_device[link->b] ||
            graph->device_host[link->b] >= graph->node_count) {
            continue;
        }
        struct weft_rail *rail = &rails->items[rails->count++];
        *rail = (struct weft_rail){.node = graph->device_host[link->b],
                                   .leaf = link->a,
                                   .port = link->a_port,
                                   .expected = ID_NONE};
        rail->group = shape->home[rail->node];
        if (key_of(rails, ids, ca, link->b_port, &rail->key) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

static uint64_t group_prefix(const void *item)
{
    const struct weft_rail *rail = item;
    return (uint64_t)rail->group << 32 | rail->key;
}

static uint64_t node_prefix(const void *item)
{
    return ((const struct weft_rail *)item)->node;
}

static int compare_by_key(const void *a, const void *b)
{
    const struct weft_rail *x = a;
    const struct weft_rail *y = b;
    if (x->group != y->group) {
        return x->group < y->group ? -1 : 1;
    }
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    if (x->leaf != y->leaf) {
        return x->leaf < y->leaf ? -1 : 1;
    }
    if (x->node != y->node) {
        return x->node < y->node ? -1 : 1;
    }
    return (x->port > y->port) - (x->port < y->port);
}

static int compare_by_node(const void *a, const void *b)
{
    const struct weft_rail *x = a;
    const struct weft_rail *y = b;
    if (x->node != y->node) {
        return x->node < y->node ? -1 : 1;
    }
    if (x->leaf != y->leaf) {
        return x->leaf < y->leaf ? -1 : 1;
    }
    return (x->port > y->port) - (x->port < y->port);
}

/* The leaf on which most nodes of the group have this adapter, if that is a habit. items are one
 * group's and key's, sorted by leaf. */
static void set_expected(const struct weft_shape *shape, struct weft_rail *items, size_t count)
{
    size_t most = 0;
    uint32_t leaf = ID_NONE;
    for (size_t i = 0; i < count;) {
        size_t end = i + 1;
        while (end < count && items[end].leaf == items[i].leaf) {
            end++;
        }
        if (end - i > most && shape->leaf[items[i].leaf] == items[i].group) {
            most = end - i;
            leaf = items[i].leaf;
        }
        i = end;
    }
    for (size_t i = 0; is_habit(most, count) && i < count; i++) {
        items[i].expected = leaf;
    }
}

int weft_rails_collect(const struct weft_shape *shape, struct weft_rails *rails)
{
    if (collect(shape, rails) < 0) {
        return -ENOMEM;
    }
    if (weft_sort(rails->items, rails->count, sizeof(*rails->items), group_prefix, compare_by_key) <
        0) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < rails->count;) {
        size_t end = i + 1;
        while (end < rails->count && rails->items[end].group == rails->items[i].group &&
               rails->items[end].key == rails->items[i].key) {
            end++;
        }
        set_expected(shape, &rails->items[i], end - i);
        i = end;
    }
    return 0;
}

/* ---- one node's adapters ---- */

struct view {
    const struct weft_shape *shape;
    const struct weft_tree *tree;
    const struct weft_rails *rails;
    struct weft_findings *findings;
};

static const char *switch_name(const struct view *v, uint32_t s)
{
    return v->shape->graph->switch_names[s];
}

static const char *key_name(const struct view *v, const struct weft_rail *rail)
{
    return v->rails->keys[rail->key];
}

static const char *group_name(const struct view *v, size_t node)
{
    const struct weft_tree_tier *tier = &v->tree->tiers[0];
    return tier->groups[tier->node_group[node]].name;
}

/* The display name of the leaf group that a switch is in, by any node at home there; else its own.
 */
static const char *group_of_leaf(const struct view *v, uint32_t leaf)
{
    const struct weft_graph *graph = v->shape->graph;
    const uint32_t group = v->shape->leaf[leaf];
    for (size_t e = graph->hosts.start[leaf]; e < graph->hosts.start[leaf + 1]; e++) {
        const uint32_t host = graph->hosts.edges[e].to;
        if (host < graph->node_count && v->shape->home[host] == group) {
            return group_name(v, host);
        }
    }
    return switch_name(v, leaf);
}

static int report_split(const struct view *v, const struct weft_rail *rail)
{
    const char *home = group_name(v, rail->node);
    const bool known = rail->expected != ID_NONE;
    return weft_findings_add(v->findings, "split-node", v->tree->nodes[rail->node],
                             "%s is on leaf %s port %u (group %s), expected %s%s (group %s)",
                             key_name(v, rail), switch_name(v, rail->leaf), (unsigned)rail->port,
                             group_of_leaf(v, rail->leaf), known ? "leaf " : "a leaf of its group",
                             known ? switch_name(v, rail->expected) : "", home);
}

static int report_swap(const struct view *v, const struct weft_rail *a, const struct weft_rail *b)
{
    return weft_findings_add(
        v->findings, "rail-swap", v->tree->nodes[a->node],
        "%s and %s are swapped: %s is on leaf %s port %u, expected %s; %s is "
        "on leaf %s port %u, expected %s (same leaf group %s)",
        key_name(v, a), key_name(v, b), key_name(v, a), switch_name(v, a->leaf), (unsigned)a->port,
        switch_name(v, a->expected), key_name(v, b), switch_name(v, b->leaf), (unsigned)b->port,
        switch_name(v, b->expected), group_name(v, a->node));
}

static int report_deviation(const struct view *v, const struct weft_rail *rail)
{
    return weft_findings_add(
        v->findings, "rail-deviation", v->tree->nodes[rail->node],
        "%s is on leaf %s port %u, expected leaf %s (same leaf group %s, other "
        "rail)",
        key_name(v, rail), switch_name(v, rail->leaf), (unsigned)rail->port,
        switch_name(v, rail->expected), group_name(v, rail->node));
}

static bool deviates(const struct view *v, const struct weft_rail *rail)
{
    return rail->expected != ID_NONE && rail->expected != rail->leaf &&
           v->shape->leaf[rail->leaf] == rail->group;
}

/* The other half of a swap among the node's adapters, or NULL. */
static const struct weft_rail *partner(const struct view *v, const struct weft_rail *rails,
                                       size_t count, const struct weft_rail *rail)
{
    for (size_t i = 0; i < count; i++) {
        if (deviates(v, &rails[i]) && rails[i].leaf == rail->expected &&
            rails[i].expected == rail->leaf && rails[i].key != rail->key) {
            return &rails[i];
        }
    }
    return NULL;
}

static int check_node(const struct view *v, const struct weft_rail *rails, size_t count)
{
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        const struct weft_rail *rail = &rails[i];
        const uint32_t group = v->shape->leaf[rail->leaf];
        if (group != ID_NONE && group != rail->group) {
            rc = report_split(v, rail);
        } else if (deviates(v, rail)) {
            const struct weft_rail *other = partner(v, rails, count, rail);
            if (other == NULL) {
                rc = report_deviation(v, rail);
            } else if (strcmp(key_name(v, rail), key_name(v, other)) < 0) {
                rc = report_swap(v, rail, other); /* once for the two */
            }
        }
    }
    return rc;
}

/* ---- leaves that a node should be on ---- */

/* Which nodes of a group are on which of its leaves: the habit of the group. */
static bool is_on(const struct weft_rail *rails, size_t count, uint32_t leaf)
{
    for (size_t i = 0; i < count; i++) {
        if (rails[i].leaf == leaf || rails[i].expected == leaf) {
            return true; /* it is there, or it deviates, which is reported by itself */
        }
    }
    return false;
}

static int report_missing(const struct view *v, size_t node, uint32_t leaf, size_t agree,
                          size_t all)
{
    return weft_findings_add(v->findings, "missing-link", v->tree->nodes[node],
                             "no link to leaf %s, where %zu of %zu nodes of group %s have one",
                             switch_name(v, leaf), agree, all, group_name(v, node));
}

struct habit {
    uint32_t group;
    uint32_t leaf;
    size_t nodes;
};

static int compare_habit(const void *a, const void *b)
{
    const struct habit *x = a;
    const struct habit *y = b;
    if (x->group != y->group) {
        return x->group < y->group ? -1 : 1;
    }
    return (x->leaf > y->leaf) - (x->leaf < y->leaf);
}

/* The leaves that are a habit of their group, by group. size[group] = nodes at home there. */
static size_t find_habits(const struct weft_shape *shape, const size_t *size, struct habit *habits)
{
    const struct weft_graph *graph = shape->graph;
    size_t count = 0;
    for (size_t s = 0; s < graph->switch_count; s++) {
        const uint32_t group = shape->leaf[s];
        size_t nodes = 0;
        for (size_t e = graph->hosts.start[s]; group != ID_NONE && e < graph->hosts.start[s + 1];
             e++) {
            const uint32_t host = graph->hosts.edges[e].to;
            nodes += host < graph->node_count && shape->home[host] == group;
        }
        if (nodes > 0 && is_habit(nodes, size[group]) && nodes < size[group]) {
            habits[count++] = (struct habit){group, (uint32_t)s, nodes};
        }
    }
    if (count > 0) {
        qsort(habits, count, sizeof(*habits), compare_habit);
    }
    return count;
}

static int check_missing(const struct view *v, const struct weft_rail *rails, size_t count,
                         const struct habit *habits, size_t habit_count, const size_t *size)
{
    const struct habit key = {.group = rails[0].group};
    size_t low = 0;
    for (size_t high = habit_count; low < high;) {
        const size_t middle = low + (high - low) / 2;
        if (compare_habit(&habits[middle], &key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    int rc = 0;
    for (size_t i = low; rc == 0 && i < habit_count && habits[i].group == key.group; i++) {
        if (!is_on(rails, count, habits[i].leaf)) {
            rc = report_missing(v, rails[0].node, habits[i].leaf, habits[i].nodes, size[key.group]);
        }
    }
    return rc;
}

static int check_nodes(const struct view *v, const struct habit *habits, size_t habit_count,
                       const size_t *size)
{
    const struct weft_rails *rails = v->rails;
    int rc = 0;
    for (size_t i = 0; i < rails->count && rc == 0;) {
        size_t end = i + 1;
        while (end < rails->count && rails->items[end].node == rails->items[i].node) {
            end++;
        }
        rc = check_node(v, &rails->items[i], end - i);
        rc = rc == 0 ? check_missing(v, &rails->items[i], end - i, habits, habit_count, size) : rc;
        i = end;
    }
    return rc;
}

int weft_find_rails(const struct weft_shape *shape, const struct weft_tree *tree,
                    struct weft_findings *findings)
{
    const struct weft_graph *graph = shape->graph;
    weft_auto(weft_rails_done) struct weft_rails rails = {0};
    weft_autofree size_t *size =
        weft_calloc(graph->switch_count + graph->node_count, sizeof(*size));
    weft_autofree struct habit *habits = weft_calloc(graph->switch_count, sizeof(*habits));
    if (size == NULL || habits == NULL || weft_rails_collect(shape, &rails) < 0) {
        return -ENOMEM;
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        size[shape->home[n]]++;
    }
    /* while they are sorted by group and adapter */
    const int rc = weft_find_missing_rails(shape, tree, &rails, findings);
    if (rc < 0) {
        return rc;
    }
    if (weft_sort(rails.items, rails.count, sizeof(*rails.items), node_prefix, compare_by_node) <
        0) {
        return -ENOMEM;
    }
    const size_t habit_count = find_habits(shape, size, habits);
    const struct view v = {shape, tree, &rails, findings};
    return check_nodes(&v, habits, habit_count, size);
}
