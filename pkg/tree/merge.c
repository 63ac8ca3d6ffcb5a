/* SPDX-License-Identifier: Apache-2.0 */
/* Several ranked sources to one tree over a tier plan: each node's place in a tier comes from the
 * first source that knows it. Where groups of two sources cross, the better source's group stays
 * whole, and only the nodes of that group are touched. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/tree/merge-internal.h"
#include "pkg/tree/merge.h"
#include "pkg/tree/tree-internal.h"
#include "pkg/tree/tree.h"

static void merge_done(struct merge *m)
{
    for (size_t l = 0; m->levels != NULL && l < m->level_count; l++) {
        weft_free(m->levels[l].parts);
        weft_free(m->levels[l].place);
    }
    weft_free(m->levels);
    for (size_t n = 0; m->nodes != NULL && n < m->node_count; n++) {
        weft_free(m->nodes[n]);
    }
    weft_free(m->nodes);
    weft_findings_done(&m->findings);
}

static int compare_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int unite_nodes(struct merge *m)
{
    size_t total = 0;
    for (size_t s = 0; s < m->tree_count; s++) {
        total += m->trees[s]->node_count;
    }
    weft_autofree char **all = weft_calloc(total, sizeof(char *));
    m->nodes = weft_calloc(total, sizeof(char *));
    if (all == NULL || m->nodes == NULL) {
        return -ENOMEM;
    }
    size_t count = 0;
    for (size_t s = 0; s < m->tree_count; s++) {
        memcpy(all + count, m->trees[s]->nodes, m->trees[s]->node_count * sizeof(char *));
        count += m->trees[s]->node_count;
    }
    qsort(all, count, sizeof(char *), compare_name);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && strcmp(all[i - 1], all[i]) == 0) {
            continue;
        }
        m->nodes[m->node_count] = weft_strdup(all[i]);
        if (m->nodes[m->node_count] == NULL) {
            return -ENOMEM;
        }
        m->node_count++;
    }
    return 0;
}

static const struct weft_tree_tier *tier_named(const struct weft_tree *tree, const char *name)
{
    for (size_t t = 0; t < tree->tier_count; t++) {
        if (strcmp(tree->tiers[t].name, name) == 0) {
            return &tree->tiers[t];
        }
    }
    return NULL;
}

static int add_part(struct merge_level *level, struct merge_part part, size_t *ret_index)
{
    void *list = level->parts;
    const int rc = weft_array_reserve(&list, &level->cap, level->count + 1, sizeof(*level->parts),
                                      SIZE_MAX / 1024);
    level->parts = list;
    if (rc == 0) {
        *ret_index = level->count;
        level->parts[level->count++] = part;
    }
    return rc;
}

/* Places the nodes that the source knows in this tier and that no better source has placed. */
static int place_from(struct merge *m, struct merge_level *level, size_t source,
                      const struct weft_tree_tier *tier)
{
    const struct weft_tree *tree = m->trees[source];
    weft_autofree size_t *part_of = weft_calloc(tier->group_count, sizeof(*part_of));
    if (part_of == NULL) {
        return -ENOMEM;
    }
    for (size_t g = 0; g < tier->group_count; g++) {
        part_of[g] = WEFT_TREE_NONE;
    }
    size_t n = 0;
    for (size_t i = 0; i < tree->node_count; i++) {
        while (strcmp(m->nodes[n], tree->nodes[i]) != 0) {
            n++; /* both are sorted, and ours has all of theirs */
        }
        const size_t g = tier->node_group[i];
        if (g == WEFT_TREE_NONE || level->place[n] != WEFT_TREE_NONE) {
            continue;
        }
        const struct merge_part part = {source, &tier->groups[g], WEFT_TREE_NONE};
        if (part_of[g] == WEFT_TREE_NONE && add_part(level, part, &part_of[g]) < 0) {
            return -ENOMEM;
        }
        level->place[n] = part_of[g];
    }
    return 0;
}

static int fill_level(struct merge *m, const char *name, struct merge_level *level, bool *ret_any)
{
    level->name = name;
    level->place = weft_calloc(m->node_count, sizeof(size_t));
    if (level->place == NULL) {
        return -ENOMEM;
    }
    for (size_t n = 0; n < m->node_count; n++) {
        level->place[n] = WEFT_TREE_NONE;
    }
    *ret_any = false;
    for (size_t s = 0; s < m->tree_count; s++) {
        const struct weft_tree_tier *tier = tier_named(m->trees[s], name);
        if (tier != NULL) {
            *ret_any = true;
            if (place_from(m, level, s, tier) < 0) {
                return -ENOMEM;
            }
        }
    }
    return 0;
}

/* ---- crossing groups ---- */

struct member {
    size_t part;  /* in the lower tier */
    size_t above; /* in the upper tier, or WEFT_TREE_NONE */
    size_t node;
};

static int compare_member(const void *a, const void *b)
{
    const struct member *x = a;
    const struct member *y = b;
    if (x->part != y->part) {
        return x->part < y->part ? -1 : 1;
    }
    if (x->above != y->above) {
        return x->above < y->above ? -1 : 1;
    }
    return (x->node > y->node) - (x->node < y->node);
}

/* The upper part with most of the members, the first at a tie; those without one do not vote. */
static const struct member *majority(const struct member *members, size_t count)
{
    const struct member *best = NULL;
    size_t most = 0;
    for (size_t i = 0; i < count;) {
        size_t end = i + 1;
        while (end < count && members[end].above == members[i].above) {
            end++;
        }
        if (members[i].above != WEFT_TREE_NONE && end - i > most) {
            most = end - i;
            best = &members[i];
        }
        i = end;
    }
    return best;
}

/* All members follow the node with the majority's place, in this tier and all above it. */
static int keep_whole(struct merge *m, size_t upper, const struct member *members, size_t count)
{
    const struct member *leader = majority(members, count);
    const struct merge_level *above = &m->levels[upper];
    const struct merge_part *part = &m->levels[upper - 1].parts[members[0].part];
    const char *example = NULL;
    size_t moved = 0;
    for (size_t i = 0; i < count; i++) {
        if (members[i].above == leader->above) {
            continue;
        }
        if (members[i].above != WEFT_TREE_NONE) {
            moved++;
            example = m->nodes[members[i].node];
        }
        for (size_t l = upper; l < m->level_count; l++) {
            m->levels[l].place[members[i].node] = m->levels[l].place[leader->node];
        }
    }
    if (moved == 0) {
        return 0;
    }
    return weft_findings_add(&m->findings, "crossing", part->from->name,
                             "the %zu nodes of this %s group are in several %s groups by another "
                             "source; all are put under %s, where most are (%zu moved, such as %s)",
                             count, m->levels[upper - 1].name, above->name,
                             above->parts[leader->above].from->name, moved, example);
}

/* The better source's tier above cuts the group: a part of it under each. */
static int cut(struct merge *m, size_t upper, const struct member *members, size_t count)
{
    struct merge_level *below = &m->levels[upper - 1];
    const struct merge_part whole = below->parts[members[0].part];
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0;) {
        size_t index = 0;
        const struct merge_part part = {whole.source, whole.from, members[i].above};
        rc = add_part(below, part, &index);
        const size_t above = members[i].above;
        for (; rc == 0 && i < count && members[i].above == above; i++) {
            below->place[members[i].node] = index;
        }
    }
    if (rc < 0) {
        return rc;
    }
    return weft_findings_add(&m->findings, "crossing", whole.from->name,
                             "the %zu nodes of this %s group are in several %s groups by a better "
                             "source; it is cut along them",
                             count, below->name, m->levels[upper].name);
}

static int settle_part(struct merge *m, size_t upper, const struct member *members, size_t count,
                       bool *ret_cut)
{
    if (members[0].above == members[count - 1].above) {
        return 0;
    }
    const size_t own = m->levels[upper - 1].parts[members[0].part].source;
    size_t best = SIZE_MAX, different = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t above = members[i].above;
        if (above != WEFT_TREE_NONE) {
            const size_t source = m->levels[upper].parts[above].source;
            best = source < best ? source : best;
            different += i == 0 || members[i - 1].above != above;
        }
    }
    /* nodes that the tier above does not know go with those that it does */
    if (different > 1 && best < own) {
        *ret_cut = true;
        return cut(m, upper, members, count);
    }
    return keep_whole(m, upper, members, count);
}

/* Makes the tier below fit into the tier upper; says whether a group of it was cut. */
static int settle(struct merge *m, size_t upper, bool *ret_cut)
{
    weft_autofree struct member *members = weft_calloc(m->node_count, sizeof(*members));
    size_t count = 0;
    if (members == NULL) {
        return -ENOMEM;
    }
    for (size_t n = 0; n < m->node_count; n++) {
        const size_t part = m->levels[upper - 1].place[n];
        if (part != WEFT_TREE_NONE) {
            members[count++] = (struct member){part, m->levels[upper].place[n], n};
        }
    }
    qsort(members, count, sizeof(*members), compare_member);
    for (size_t i = 0; i < count;) {
        size_t end = i + 1;
        while (end < count && members[end].part == members[i].part) {
            end++;
        }
        const int rc = settle_part(m, upper, &members[i], end - i, ret_cut);
        if (rc < 0) {
            return rc;
        }
        i = end;
    }
    return 0;
}

/* ---- all ---- */

static int fill_levels(struct merge *m, const char *const *plan, size_t plan_count)
{
    m->levels = weft_calloc(plan_count, sizeof(*m->levels));
    if (m->levels == NULL) {
        return -ENOMEM;
    }
    for (size_t t = 0; t < plan_count; t++) {
        bool any = false;
        struct merge_level *level = &m->levels[m->level_count++];
        if (fill_level(m, plan[t], level, &any) < 0) {
            return -ENOMEM;
        }
        if (!any) {
            weft_free(level->place);
            *level = (struct merge_level){0};
            m->level_count--;
        }
    }
    return 0;
}

int weft_tree_merge(const struct weft_tree *const *trees, size_t count, const char *const *plan,
                    size_t plan_count, struct weft_tree **ret_tree, struct weft_error *err)
{
    weft_auto(weft_tree_free) struct weft_tree *tree = weft_calloc(1, sizeof(*tree));
    struct merge m = {.trees = trees, .tree_count = count};
    int rc = tree != NULL ? unite_nodes(&m) : -ENOMEM;
    rc = rc == 0 ? fill_levels(&m, plan, plan_count) : rc;
    /* a cut makes its tier finer, so what lies below it may cross it now: one step back. Whoever
     * moves takes all tiers above along, so this ends */
    for (size_t upper = 1; rc == 0 && upper < m.level_count;) {
        bool was_cut = false;
        rc = settle(&m, upper, &was_cut);
        upper = was_cut && upper > 1 ? upper - 1 : upper + 1;
    }
    rc = rc == 0 ? weft_merge_emit(&m, tree) : rc;
    merge_done(&m);
    if (rc < 0) {
        return weft_err_nomem(err);
    }
    *ret_tree = weft_steal(&tree);
    return 0;
}
