/* SPDX-License-Identifier: Apache-2.0 */
/* Leaf groups with fewer leaves than most of their sisters: which rail they lack, and what its
 * leaf would be called. */
#include <errno.h>
#include <string.h>

#include "pkg/tree/rails.h"
#include "pkg/tree/tree-internal.h"
#include "pkg/tree/tree.h"

struct groups {
    const struct weft_shape *shape;
    const struct weft_tree_tier *tier; /* the closest */
    uint32_t *item;                    /* group: item id */
    size_t *nodes;                     /* group */
    size_t usual;                      /* leaves of most groups; 0: no such number */
    size_t usual_groups;               /* how many have it */
    struct weft_idmap present;         /* item << 32 | key: expected leaf, or ID_NONE */
    size_t *key_groups;                /* key: groups where most nodes have it */
};

static void groups_done(struct groups *g)
{
    weft_free(g->item);
    weft_free(g->nodes);
    weft_free(g->key_groups);
    weft_idmap_done(&g->present);
}

/* The number of leaves that more than half of the groups have. */
static void find_usual(struct groups *g)
{
    /* a majority survives pairwise cancelling (Boyer and Moore) */
    size_t votes = 0;
    for (size_t i = 0; i < g->tier->group_count; i++) {
        const size_t leaves = g->tier->groups[i].switch_count;
        if (votes == 0) {
            g->usual = leaves;
        }
        votes = leaves == g->usual ? votes + 1 : votes - 1;
    }
    for (size_t i = 0; i < g->tier->group_count; i++) {
        g->usual_groups += g->tier->groups[i].switch_count == g->usual;
    }
    if (2 * g->usual_groups <= g->tier->group_count) {
        g->usual = 0;
    }
}

static uint64_t present_key(uint32_t item, uint32_t key)
{
    return (uint64_t)item << 32 | key;
}

/* Which adapters most nodes of each group have. */
static int find_present(struct groups *g, const struct weft_rails *rails, const size_t *item_nodes)
{
    for (size_t i = 0; i < rails->count;) {
        const struct weft_rail *first = &rails->items[i];
        size_t end = i;
        while (end < rails->count && rails->items[end].group == first->group &&
               rails->items[end].key == first->key) {
            end++;
        }
        if (2 * (end - i) > item_nodes[first->group]) {
            uint64_t *leaf = NULL;
            if (weft_idmap_at(&g->present, present_key(first->group, first->key), &leaf, NULL) <
                0) {
                return -ENOMEM;
            }
            *leaf = first->expected;
            g->key_groups[first->key]++;
        }
        i = end;
    }
    return 0;
}

static int groups_init(struct groups *g, const struct weft_rails *rails)
{
    const struct weft_graph *graph = g->shape->graph;
    weft_autofree size_t *item_nodes =
        weft_calloc(graph->switch_count + graph->node_count, sizeof(size_t));
    g->item = weft_calloc(g->tier->group_count, sizeof(*g->item));
    g->nodes = weft_calloc(g->tier->group_count, sizeof(*g->nodes));
    g->key_groups = weft_calloc(rails->key_count, sizeof(*g->key_groups));
    if (item_nodes == NULL || g->item == NULL || g->nodes == NULL || g->key_groups == NULL) {
        return -ENOMEM;
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        const size_t group = g->tier->node_group[n];
        g->item[group] = g->shape->home[n];
        g->nodes[group]++;
        item_nodes[g->shape->home[n]]++;
    }
    find_usual(g);
    return find_present(g, rails, item_nodes);
}

/* The first group of the usual size that has the adapter on one leaf. */
static size_t find_sister(const struct groups *g, uint32_t key, uint32_t *ret_leaf)
{
    for (size_t i = 0; i < g->tier->group_count; i++) {
        uint64_t leaf = ID_NONE;
        if (g->tier->groups[i].switch_count == g->usual &&
            weft_idmap_get(&g->present, present_key(g->item[i], key), &leaf) && leaf != ID_NONE) {
            *ret_leaf = (uint32_t)leaf;
            return i;
        }
    }
    return SIZE_MAX;
}

static int report_rail(const struct groups *g, size_t group, const char *key, uint32_t key_index,
                       struct weft_findings *findings)
{
    const struct weft_tree_group *own = &g->tier->groups[group];
    uint32_t leaf = ID_NONE;
    const size_t sister = find_sister(g, key_index, &leaf);
    if (sister == SIZE_MAX) {
        return 0;
    }
    const struct weft_tree_group *other = &g->tier->groups[sister];
    const char *leaf_name = g->shape->graph->switch_names[leaf];
    weft_autofree char *guess = NULL;
    if (weft_sister_name(own->switches, own->switch_count, other->switches, other->switch_count,
                         leaf_name, &guess) < 0) {
        return -ENOMEM;
    }
    return weft_findings_add(
        findings, "missing-rail", own->name,
        "no leaf for %s%s%s: %zu leaf switch%s where %zu of %zu groups have %zu, and most of its "
        "%zu nodes have no %s, which in group %s is on %s",
        key, guess != NULL ? ", probably " : "", guess != NULL ? guess : "", own->switch_count,
        own->switch_count == 1 ? "" : "es", g->usual_groups, g->tier->group_count, g->usual,
        g->nodes[group], key, other->name, leaf_name);
}

static int check_group(const struct groups *g, size_t group, const struct weft_rails *rails,
                       struct weft_findings *findings)
{
    const size_t before = findings->count;
    int rc = 0;
    for (uint32_t key = 0; rc == 0 && key < rails->key_count; key++) {
        if (2 * g->key_groups[key] > g->tier->group_count &&
            !weft_idmap_get(&g->present, present_key(g->item[group], key), NULL)) {
            rc = report_rail(g, group, rails->keys[key], key, findings);
        }
    }
    const struct weft_tree_group *own = &g->tier->groups[group];
    if (rc == 0 && findings->count == before) {
        rc = weft_findings_add(findings, "missing-rail", own->name,
                               "%zu leaf switch%s where %zu of %zu groups have %zu",
                               own->switch_count, own->switch_count == 1 ? "" : "es",
                               g->usual_groups, g->tier->group_count, g->usual);
    }
    return rc;
}

int weft_find_missing_rails(const struct weft_shape *shape, const struct weft_tree *tree,
                            const struct weft_rails *rails, struct weft_findings *findings)
{
    if (tree->tier_count == 0) {
        return 0;
    }
    struct groups g = {.shape = shape, .tier = &tree->tiers[0]};
    weft_idmap_init(&g.present, SIZE_MAX / 2);
    int rc = groups_init(&g, rails);
    for (size_t i = 0; rc == 0 && i < g.tier->group_count; i++) {
        const size_t leaves = g.tier->groups[i].switch_count;
        if (leaves > 0 && leaves < g.usual) {
            rc = check_group(&g, i, rails, findings);
        }
    }
    groups_done(&g);
    return rc;
}
