/* SPDX-License-Identifier: Apache-2.0 */
/* Switches that hold so many of a group's nodes that they alone make it one group: most likely a
 * storage or management network, which a dump cannot tell from the compute one. Without a hint the
 * whole tree would collapse into one group. */
#include <errno.h>
#include <stdlib.h>

#include "pkg/base/buf.h"
#include "pkg/tree/tree-internal.h"
#include "pkg/tree/tree.h"

enum {
    HEAVY_TIMES = 2,  /* hosts of a heavy switch over the median of its group's */
    GROUP_LEAVES = 3, /* fewer say nothing about what is usual */
    SHOWN = 8,
    LIST_MAX = 2048,
};

/* Seeds by leaf group, then by how many hosts they hold. */
struct seed {
    uint32_t group;
    uint32_t leaf;
    size_t hosts;
};

static int compare_seed(const void *a, const void *b)
{
    const struct seed *x = a;
    const struct seed *y = b;
    if (x->group != y->group) {
        return x->group < y->group ? -1 : 1;
    }
    if (x->hosts != y->hosts) {
        return x->hosts < y->hosts ? -1 : 1;
    }
    return (x->leaf > y->leaf) - (x->leaf < y->leaf);
}

static size_t list_seeds(const struct weft_shape *shape, struct seed *seeds)
{
    const struct weft_graph *graph = shape->graph;
    size_t count = 0;
    for (size_t s = 0; s < graph->switch_count; s++) {
        if (shape->leaf[s] != ID_NONE) {
            seeds[count++] = (struct seed){shape->leaf[s], (uint32_t)s,
                                           graph->hosts.start[s + 1] - graph->hosts.start[s]};
        }
    }
    if (count > 0) {
        qsort(seeds, count, sizeof(*seeds), compare_seed);
    }
    return count;
}

static size_t group_end(const struct seed *seeds, size_t count, size_t first)
{
    size_t end = first;
    while (end < count && seeds[end].group == seeds[first].group) {
        end++;
    }
    return end;
}

/* The first heavy one of seeds[first, end), or end. */
static size_t first_heavy(const struct seed *seeds, size_t first, size_t end)
{
    const size_t median = seeds[first + (end - first - 1) / 2].hosts;
    size_t heavy = end;
    while (end - first >= GROUP_LEAVES && heavy > first &&
           seeds[heavy - 1].hosts >= HEAVY_TIMES * median) {
        heavy--;
    }
    return heavy;
}

/* Into how many parts do the light leaves of a group fall by themselves? */
static size_t count_parts(const struct seed *seeds, size_t first, size_t heavy,
                          struct weft_union *u, bool *seen)
{
    size_t parts = 0;
    for (size_t i = first; i < heavy; i++) {
        const uint32_t root = weft_union_find(u, seeds[i].leaf);
        parts += !seen[root];
        seen[root] = true;
    }
    return parts;
}

static const char *group_name(const struct weft_shape *shape, const struct weft_tree *tree,
                              uint32_t group)
{
    for (size_t n = 0; n < tree->node_count; n++) {
        if (shape->home[n] == group) {
            return tree->tiers[0].groups[tree->tiers[0].node_group[n]].name;
        }
    }
    return "?";
}

static int report(const struct weft_shape *shape, const struct weft_tree *tree,
                  const struct seed *seeds, size_t count, size_t parts,
                  struct weft_findings *findings)
{
    weft_auto(weft_buf_done) struct weft_buf list;
    weft_buf_init(&list, LIST_MAX);
    for (size_t i = 0; i < count && i < SHOWN; i++) {
        (void)weft_buf_printf(&list, "%s%s (%zu hosts)", i > 0 ? ", " : "",
                              shape->graph->switch_names[seeds[i].leaf], seeds[i].hosts);
    }
    return weft_findings_add(findings, "joining-switch", group_name(shape, tree, seeds[0].group),
                             "only %s%s make this one leaf group, of %zu that share no hosts "
                             "otherwise; if this is a storage or management network, leave it out "
                             "with excludeSwitches or excludeHCAs",
                             weft_buf_text(&list), count > SHOWN ? " and others" : "", parts);
}

static int check_groups(const struct weft_shape *shape, const struct weft_tree *tree,
                        const struct seed *seeds, size_t count, struct weft_findings *findings)
{
    const size_t switches = shape->graph->switch_count;
    weft_autofree bool *light = weft_memdup(shape->seed, switches * sizeof(bool));
    weft_autofree bool *seen = weft_calloc(switches, sizeof(bool));
    weft_auto(weft_union_done) struct weft_union u = {0};
    bool any = false;
    if (light == NULL || seen == NULL || weft_union_init(&u, switches) < 0) {
        return -ENOMEM;
    }
    for (size_t first = 0, end = 0; first < count; first = end) {
        end = group_end(seeds, count, first);
        for (size_t i = first_heavy(seeds, first, end); i < end; i++) {
            light[seeds[i].leaf] = false;
            any = true;
        }
    }
    int rc = any ? weft_shape_glue_leaves(shape->graph, light, &u) : 0;
    for (size_t first = 0, end = 0; any && rc == 0 && first < count; first = end) {
        end = group_end(seeds, count, first);
        const size_t heavy = first_heavy(seeds, first, end);
        const size_t parts = heavy < end ? count_parts(seeds, first, heavy, &u, seen) : 0;
        if (parts > 1) {
            rc = report(shape, tree, &seeds[heavy], end - heavy, parts, findings);
        }
    }
    return rc;
}

int weft_find_joining(const struct weft_shape *shape, const struct weft_tree *tree,
                      struct weft_findings *findings)
{
    weft_autofree struct seed *seeds = weft_calloc(shape->graph->switch_count, sizeof(*seeds));
    if (seeds == NULL) {
        return -ENOMEM;
    }
    return check_groups(shape, tree, seeds, list_seeds(shape, seeds), findings);
}
