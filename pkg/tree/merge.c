/* SPDX-License-Identifier: Apache-2.0 */
/* Several ranked sources to one tree over a tier plan (docs/tree.md, "Several sources"): each
 * node's place in a tier comes from the first source that knows it. What then does not fit together
 * is settled in merge-settle.c. */
#include "pkg/tree/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/idmap.h"
#include "pkg/tree/merge-internal.h"
#include "pkg/tree/tree.h"

enum { PARTS_MAX = 1 << 24, GUIDS_MAX = 1 << 24 };

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
    weft_free(m->source);
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

/* Whose node each is: of those that place it the first. */
static int find_sources(struct merge *m)
{
    m->source = weft_calloc(m->node_count, sizeof(*m->source));
    if (m->source == NULL) {
        return -ENOMEM;
    }
    for (size_t s = m->tree_count; s-- > 0;) {
        size_t n = 0;
        for (size_t i = 0; i < m->trees[s]->node_count; i++) {
            while (strcmp(m->nodes[n], m->trees[s]->nodes[i]) != 0) {
                n++; /* both are sorted, and ours has all of theirs */
            }
            m->source[n] = s;
        }
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

int weft_merge_add_part(struct merge_level *level, struct merge_part part, size_t *ret_index)
{
    void *list = level->parts;
    const int rc =
        weft_array_reserve(&list, &level->cap, level->count + 1, sizeof(*level->parts), PARTS_MAX);
    level->parts = list;
    if (rc == 0) {
        *ret_index = level->count;
        level->parts[level->count++] = part;
    }
    return rc;
}

int weft_merge_compare(const void *a, const void *b)
{
    const struct merge_row *x = a;
    const struct merge_row *y = b;
    if (x->part != y->part) {
        return x->part < y->part ? -1 : 1;
    }
    if (x->above != y->above) {
        return x->above < y->above ? -1 : 1;
    }
    return (x->node > y->node) - (x->node < y->node);
}

void weft_merge_number(struct merge_row *rows, size_t count, size_t *numbers)
{
    size_t number = 0;
    qsort(rows, count, sizeof(*rows), weft_merge_compare);
    for (size_t i = 0; i < count; i++) {
        number += i > 0 && (rows[i].part != rows[i - 1].part || rows[i].above != rows[i - 1].above);
        numbers[rows[i].node] = number;
    }
}

/* ---- one group, seen by two sources ---- */

/* Notes whose switches the part's are. */
static int claim_switches(struct weft_idmap *owners, const struct weft_tree_group *group,
                          size_t part)
{
    for (size_t i = 0; i < group->switch_guid_count; i++) {
        uint64_t *owner = NULL;
        bool is_new = false;
        if (weft_idmap_at(owners, group->switch_guids[i], &owner, &is_new) < 0) {
            return -ENOMEM;
        }
        if (is_new) {
            *owner = part;
        }
    }
    return 0;
}

static int compare_u64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The better source's group that shares more than half of the smaller one's switches with this one,
 * as groups keep their identity from one scan to the next; else WEFT_TREE_NONE. */
static int same_switches(const struct merge_level *level, const struct weft_idmap *owners,
                         const struct weft_tree_group *group, size_t *ret_part)
{
    const size_t count = group->switch_guid_count;
    weft_autofree uint64_t *found = weft_calloc(count, sizeof(*found));
    size_t n = 0;
    *ret_part = WEFT_TREE_NONE;
    if (found == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        n += weft_idmap_get(owners, group->switch_guids[i], &found[n]);
    }
    if (n > 0) {
        qsort(found, n, sizeof(*found), compare_u64);
    }
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        while (end < n && found[end] == found[i]) {
            end++;
        }
        const size_t other = level->parts[found[i]].from->switch_guid_count;
        if (2 * (end - i) > (other < count ? other : count)) {
            *ret_part = (size_t)found[i];
            return 0;
        }
        i = end;
    }
    return 0;
}

/* ---- who is where, source by source ---- */

struct filler {
    struct merge *m;
    struct merge_level *level;
    struct weft_idmap owners; /* switch GUID to part */
};

static int part_for(struct filler *f, size_t source, const struct weft_tree_group *group,
                    size_t *ret_part)
{
    int rc = same_switches(f->level, &f->owners, group, ret_part);
    if (rc < 0 || *ret_part != WEFT_TREE_NONE) {
        return rc;
    }
    const struct merge_part part = {source, group, WEFT_TREE_NONE, WEFT_TREE_NONE};
    rc = weft_merge_add_part(f->level, part, ret_part);
    return rc < 0 ? rc : claim_switches(&f->owners, group, *ret_part);
}

/* Places the nodes that the source knows in this tier and that no better source has placed. */
static int place_from(struct filler *f, size_t source, const struct weft_tree_tier *tier)
{
    const struct merge *m = f->m;
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
        if (g == WEFT_TREE_NONE || f->level->place[n] != WEFT_TREE_NONE) {
            continue;
        }
        if (part_of[g] == WEFT_TREE_NONE &&
            part_for(f, source, &tier->groups[g], &part_of[g]) < 0) {
            return -ENOMEM;
        }
        f->level->place[n] = part_of[g];
    }
    return 0;
}

static int fill_level(struct merge *m, const char *name, struct merge_level *level, bool *ret_any)
{
    struct filler f = {.m = m, .level = level};
    unsigned declared = 0;
    weft_idmap_init(&f.owners, GUIDS_MAX);
    level->name = name;
    level->place = weft_calloc(m->node_count, sizeof(size_t));
    int rc = level->place != NULL ? 0 : -ENOMEM;
    for (size_t n = 0; rc == 0 && n < m->node_count; n++) {
        level->place[n] = WEFT_TREE_NONE;
    }
    *ret_any = false;
    for (size_t s = 0; rc == 0 && s < m->tree_count; s++) {
        const struct weft_tree_tier *tier = tier_named(m->trees[s], name);
        if (tier != NULL) {
            *ret_any = true;
            level->ordinal[s] = m->declared[s] ? ++declared : 0;
            rc = place_from(&f, s, tier);
        }
    }
    weft_idmap_done(&f.owners);
    return rc;
}

static int fill_levels(struct merge *m, const struct weft_merge_options *options)
{
    const char *domain = options->domain != NULL ? options->domain : "nvlink";
    m->levels = weft_calloc(options->plan_count, sizeof(*m->levels));
    if (m->levels == NULL) {
        return -ENOMEM;
    }
    for (size_t t = 0; t < options->plan_count; t++) {
        bool any = false;
        struct merge_level *level = &m->levels[m->level_count++];
        if (fill_level(m, options->plan[t], level, &any) < 0) {
            return -ENOMEM;
        }
        level->domain = strcmp(level->name, domain) == 0;
        if (!any) {
            weft_free(level->place);
            *level = (struct merge_level){0};
            m->level_count--;
        }
    }
    return 0;
}

int weft_tree_merge(const struct weft_tree *const *trees, size_t count,
                    const struct weft_merge_options *options, struct weft_tree **ret_tree,
                    struct weft_error *err)
{
    weft_auto(weft_tree_free) struct weft_tree *tree = weft_calloc(1, sizeof(*tree));
    struct merge m = {.trees = trees,
                      .tree_count = count,
                      .declared = options->declared,
                      .on_cross = options->on_cross};
    int rc = tree != NULL ? unite_nodes(&m) : -ENOMEM;
    rc = rc == 0 ? find_sources(&m) : rc;
    rc = rc == 0 ? fill_levels(&m, options) : rc;
    rc = rc == 0 ? weft_merge_mismatches(&m) : rc;
    rc = rc == 0 ? weft_merge_settle(&m) : rc;
    rc = rc == 0 ? weft_merge_emit(&m, tree) : rc;
    merge_done(&m);
    if (rc < 0) {
        return weft_err_nomem(err);
    }
    *ret_tree = weft_steal(&tree);
    return 0;
}
