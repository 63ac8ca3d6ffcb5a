/* SPDX-License-Identifier: Apache-2.0 */
/* From partitions to the tree value: groups with names, identities and switches, in an order that
 * no input order changes. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/map.h"
#include "pkg/base/str.h"
#include "pkg/fabric/fabric.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree-internal.h"
#include "pkg/tree/tree.h"

/* A list of switch indexes that belongs to a group. */
struct members {
    uint32_t *items;
    size_t count;
    size_t cap;
};

/* A tier while it is made: groups numbered by first node, before they are sorted. */
struct draft {
    size_t group_count;
    size_t *group_of;         /* node */
    size_t *index_of;         /* item id: group, or SIZE_MAX */
    size_t *first_node;       /* group */
    struct members *switches; /* group */
};

static void draft_done(struct draft *draft)
{
    for (size_t g = 0; draft->switches != NULL && g < draft->group_count; g++) {
        weft_free(draft->switches[g].items);
    }
    weft_free(draft->switches);
    weft_free(draft->group_of);
    weft_free(draft->index_of);
    weft_free(draft->first_node);
}

static int members_add(struct members *members, uint32_t item)
{
    void *list = members->items;
    const int rc = weft_array_reserve(&list, &members->cap, members->count + 1,
                                      sizeof(*members->items), WEFT_FABRIC_DEVICES_MAX);
    members->items = list;
    if (rc == 0) {
        members->items[members->count++] = item;
    }
    return rc;
}

static int number_groups(const struct weft_shape *shape, size_t t, struct draft *draft)
{
    const struct weft_graph *graph = shape->graph;
    const size_t ids = 2 * graph->switch_count + graph->node_count;
    draft->group_of = weft_calloc(graph->node_count, sizeof(size_t));
    draft->index_of = weft_calloc(ids, sizeof(size_t));
    draft->first_node = weft_calloc(graph->node_count, sizeof(size_t));
    if (draft->group_of == NULL || draft->index_of == NULL || draft->first_node == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < ids; i++) {
        draft->index_of[i] = SIZE_MAX;
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        size_t *index = &draft->index_of[shape->tiers[t][n]];
        if (*index == SIZE_MAX) {
            *index = draft->group_count++;
            draft->first_node[*index] = n;
        }
        draft->group_of[n] = *index;
    }
    draft->switches = weft_calloc(draft->group_count, sizeof(*draft->switches));
    return draft->switches != NULL ? 0 : -ENOMEM;
}

/* A group's own switches: leaves in the closest tier, above it those that made its merges. */
static int own_switches(const struct weft_shape *shape, size_t t, struct draft *draft)
{
    const size_t count = shape->graph->switch_count;
    for (size_t s = 0; s < count; s++) {
        uint32_t id = ID_NONE;
        if (t == 0) {
            id = shape->leaf[s];
        } else if (shape->joins_tier[s] == t) {
            id = shape->joins_group[s];
        }
        if (id == ID_NONE || draft->index_of[id] == SIZE_MAX) {
            continue;
        }
        if (members_add(&draft->switches[draft->index_of[id]], (uint32_t)s) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

/* A group that merged without switches of its own, or did not merge at this tier, goes by those of
 * its parts. */
static int inherit_switches(const struct draft *below, struct draft *draft)
{
    weft_autofree bool *own = weft_calloc(draft->group_count, sizeof(*own));
    if (own == NULL) {
        return -ENOMEM;
    }
    for (size_t g = 0; g < draft->group_count; g++) {
        own[g] = draft->switches[g].count > 0;
    }
    for (size_t b = 0; b < below->group_count; b++) {
        const size_t g = draft->group_of[below->first_node[b]];
        for (size_t i = 0; !own[g] && i < below->switches[b].count; i++) {
            if (members_add(&draft->switches[g], below->switches[b].items[i]) < 0) {
                return -ENOMEM;
            }
        }
    }
    return 0;
}

static int compare_u32(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int compare_name(const void *a, const void *b)
{
    return weft_str_natural_cmp(*(char *const *)a, *(char *const *)b);
}

static int fill_switches(const struct weft_graph *graph, struct members *members,
                         struct weft_tree_group *group)
{
    if (members->count == 0) {
        return 0;
    }
    /* switches are numbered by GUID */
    qsort(members->items, members->count, sizeof(uint32_t), compare_u32);
    group->switches = weft_calloc(members->count, sizeof(char *));
    group->switch_guids = weft_calloc(members->count, sizeof(uint64_t));
    if (group->switches == NULL || group->switch_guids == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < members->count; i++) {
        group->switch_guids[i] = graph->fabric->devices[members->items[i]].guid;
        group->switches[i] = weft_strdup(graph->switch_names[members->items[i]]);
        group->switch_count = i + 1;
        if (group->switches[i] == NULL) {
            return -ENOMEM;
        }
    }
    group->switch_guid_count = members->count;
    return weft_common_name(group->switches, group->switch_count, &group->name);
}

static int fill_group(const struct weft_graph *graph, struct draft *draft, size_t g,
                      struct weft_tree_group *group)
{
    const char *node = graph->node_names[draft->first_node[g]];
    group->parent = SIZE_MAX;
    if (fill_switches(graph, &draft->switches[g], group) < 0) {
        return -ENOMEM;
    }
    group->identity = group->switch_guid_count > 0
                          ? weft_asprintf("switch:%016" PRIx64, group->switch_guids[0])
                          : weft_asprintf("host:%s", node);
    if (group->name == NULL) {
        group->name = weft_strdup(group->switch_count > 0 ? group->switches[0] : node);
    }
    return group->name != NULL && group->identity != NULL ? 0 : -ENOMEM;
}

/* A name that several groups of the tier have says nothing: these take their smallest switch's. */
static int make_names_differ(struct weft_tree_tier *tier)
{
    weft_auto(weft_map_free) struct weft_map *seen = weft_map_new(SIZE_MAX / 2);
    for (size_t g = 0; seen != NULL && g < tier->group_count; g++) {
        size_t times = 0;
        (void)weft_map_get(seen, tier->groups[g].name, &times);
        if (weft_map_put(seen, tier->groups[g].name, times + 1) < 0) {
            return -ENOMEM;
        }
    }
    for (size_t g = 0; seen != NULL && g < tier->group_count; g++) {
        struct weft_tree_group *group = &tier->groups[g];
        size_t times = 0;
        if (group->switch_count > 0 && weft_map_get(seen, group->name, &times) && times > 1) {
            weft_free(group->name);
            group->name = weft_strdup(group->switches[0]); /* not sorted yet: smallest GUID */
            if (group->name == NULL) {
                return -ENOMEM;
            }
        }
    }
    return seen != NULL ? 0 : -ENOMEM;
}

struct sortable {
    struct weft_tree_group group;
    size_t before;
};

static int compare_group(const void *a, const void *b)
{
    const struct weft_tree_group *x = &((const struct sortable *)a)->group;
    const struct weft_tree_group *y = &((const struct sortable *)b)->group;
    const int name = weft_str_natural_cmp(x->name, y->name);
    return name != 0 ? name : strcmp(x->identity, y->identity);
}

int weft_tree_sort_groups(struct weft_tree_tier *tier, size_t node_count)
{
    weft_autofree struct sortable *sorted = weft_calloc(tier->group_count, sizeof(*sorted));
    weft_autofree size_t *after = weft_calloc(tier->group_count, sizeof(*after));
    if (sorted == NULL || after == NULL) {
        return -ENOMEM;
    }
    for (size_t g = 0; g < tier->group_count; g++) {
        sorted[g] = (struct sortable){tier->groups[g], g};
    }
    qsort(sorted, tier->group_count, sizeof(*sorted), compare_group);
    for (size_t g = 0; g < tier->group_count; g++) {
        tier->groups[g] = sorted[g].group;
        after[sorted[g].before] = g;
        if (tier->groups[g].switch_count > 0) {
            qsort(tier->groups[g].switches, tier->groups[g].switch_count, sizeof(char *),
                  compare_name);
        }
    }
    for (size_t n = 0; n < node_count; n++) {
        if (tier->node_group[n] != WEFT_TREE_NONE) {
            tier->node_group[n] = after[tier->node_group[n]];
        }
    }
    return 0;
}

void weft_tree_link_parents(struct weft_tree *tree)
{
    for (size_t t = 0; t < tree->tier_count; t++) {
        const struct weft_tree_tier *above = t + 1 < tree->tier_count ? &tree->tiers[t + 1] : NULL;
        for (size_t n = 0; n < tree->node_count; n++) {
            const size_t g = tree->tiers[t].node_group[n];
            if (g != WEFT_TREE_NONE) {
                tree->tiers[t].groups[g].parent =
                    above != NULL ? above->node_group[n] : WEFT_TREE_NONE;
            }
        }
    }
}

static char *tier_name(const struct weft_tree_options *options, size_t t)
{
    static const char *const names[] = {"leaf", "spine", "core"};
    if (options != NULL && options->tiers != NULL) {
        return t < options->tier_count ? weft_strdup(options->tiers[t])
                                       : weft_asprintf("tier-%zu", t + 1);
    }
    return t < WEFT_ARRAY_LEN(names) ? weft_strdup(names[t]) : weft_asprintf("tier-%zu", t + 1);
}

static int emit_tier(const struct weft_shape *shape, size_t t, struct draft *drafts,
                     struct weft_tree_tier *tier)
{
    struct draft *draft = &drafts[t];
    if (number_groups(shape, t, draft) < 0 || own_switches(shape, t, draft) < 0 ||
        (t > 0 && inherit_switches(&drafts[t - 1], draft) < 0)) {
        return -ENOMEM;
    }
    tier->groups = weft_calloc(draft->group_count, sizeof(*tier->groups));
    if (tier->groups == NULL) {
        return -ENOMEM;
    }
    for (size_t g = 0; g < draft->group_count; g++) {
        tier->group_count = g + 1;
        if (fill_group(shape->graph, draft, g, &tier->groups[g]) < 0) {
            return -ENOMEM;
        }
    }
    const size_t nodes = shape->graph->node_count;
    tier->node_group = weft_memdup(draft->group_of, nodes * sizeof(size_t));
    if (tier->node_group == NULL || make_names_differ(tier) < 0) {
        return -ENOMEM;
    }
    return weft_tree_sort_groups(tier, nodes);
}

static int copy_strings(char *const *from, size_t count, char ***ret_to, size_t *ret_count)
{
    *ret_to = weft_calloc(count, sizeof(char *));
    for (size_t i = 0; *ret_to != NULL && i < count; i++) {
        (*ret_to)[i] = weft_strdup(from[i]);
        *ret_count = i + 1;
        if ((*ret_to)[i] == NULL) {
            return -ENOMEM;
        }
    }
    return *ret_to != NULL ? 0 : -ENOMEM;
}

static int emit_all(const struct weft_shape *shape, const struct weft_tree_options *options,
                    struct draft *drafts, struct weft_tree *tree)
{
    const struct weft_graph *graph = shape->graph;
    tree->tiers = weft_calloc(shape->tier_count, sizeof(*tree->tiers));
    if (tree->tiers == NULL ||
        copy_strings(graph->node_names, graph->node_count, &tree->nodes, &tree->node_count) < 0 ||
        copy_strings(graph->unplaced, graph->unplaced_count, &tree->unplaced,
                     &tree->unplaced_count) < 0) {
        return -ENOMEM;
    }
    for (size_t t = 0; t < shape->tier_count; t++) {
        tree->tier_count = t + 1;
        tree->tiers[t].name = tier_name(options, t);
        if (tree->tiers[t].name == NULL || emit_tier(shape, t, drafts, &tree->tiers[t]) < 0) {
            return -ENOMEM;
        }
    }
    weft_tree_link_parents(tree);
    return 0;
}

int weft_shape_emit(const struct weft_shape *shape, const struct weft_tree_options *options,
                    struct weft_tree **ret_tree, struct weft_error *err)
{
    weft_auto(weft_tree_free) struct weft_tree *tree = weft_calloc(1, sizeof(*tree));
    struct draft drafts[TIERS_MAX] = {0};
    const int rc = tree != NULL ? emit_all(shape, options, drafts, tree) : -ENOMEM;
    for (size_t t = 0; t < shape->tier_count; t++) {
        draft_done(&drafts[t]);
    }
    if (rc < 0) {
        return weft_err_nomem(err);
    }
    *ret_tree = weft_steal(&tree);
    return 0;
}
