/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of several sources, once it is settled who is where. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/base/map.h"
#include "pkg/tree/merge-internal.h"
#include "pkg/tree/tree.h"

/* 16 paths of 16 levels, as pkg/tree/declared.c makes them at worst */
enum { IDENTITY_MAX = 1 << 20 };

static int compare_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "rack=7", and of a part of a group "rack=7@switch:0…": what cuts it, which may be a part itself.
 */
static int put_identity(const struct merge *m, const struct merge_part *part, size_t l,
                        struct weft_buf *buf)
{
    for (size_t steps = 0; steps <= m->level_count; steps++) {
        const unsigned ordinal = m->levels[l].ordinal[part->source];
        if (ordinal > 1) {
            /* also where the best source says no such thing: no name depends on what others say */
            (void)weft_buf_printf(buf, "source-%u:", ordinal);
        }
        (void)weft_buf_puts(buf, part->from->identity);
        if (part->under_level == WEFT_TREE_NONE) {
            break;
        }
        (void)weft_buf_putc(buf, '@');
        l = part->under_level;
        part = &m->levels[l].parts[part->under];
    }
    return buf->status < 0 ? -ENOMEM : 0;
}

/* A part of a group is not told by its switches: the other parts are on them too. */
static int copy_switches(const struct merge_part *part, struct weft_tree_group *group)
{
    const struct weft_tree_group *from = part->from;
    const size_t guids = part->under_level == WEFT_TREE_NONE ? from->switch_guid_count : 0;
    group->switches = weft_calloc(from->switch_count, sizeof(char *));
    group->switch_guids = weft_memdup(from->switch_guids, guids * sizeof(uint64_t));
    if (group->switches == NULL || group->switch_guids == NULL) {
        return -ENOMEM;
    }
    group->switch_guid_count = guids;
    for (size_t i = 0; i < from->switch_count; i++) {
        group->switches[i] = weft_strdup(from->switches[i]);
        group->switch_count = i + 1;
        if (group->switches[i] == NULL) {
            return -ENOMEM;
        }
    }
    return 0;
}

static int copy_group(const struct merge *m, size_t l, const struct merge_part *part,
                      struct weft_tree_group *group)
{
    weft_auto(weft_buf_done) struct weft_buf identity;
    weft_buf_init(&identity, IDENTITY_MAX);
    if (put_identity(m, part, l, &identity) < 0) {
        return -ENOMEM;
    }
    group->parent = WEFT_TREE_NONE;
    group->name = weft_strdup(part->from->name);
    group->identity = weft_strdup(weft_buf_text(&identity));
    return group->name != NULL && group->identity != NULL ? copy_switches(part, group) : -ENOMEM;
}

/* Two fabrics may give one identity to different groups of a tier, by a switch that both have; the
 * source's rank tells them apart. */
static int make_identities_differ(struct weft_tree_tier *tier, const size_t *sources)
{
    weft_auto(weft_map_free) struct weft_map *seen = weft_map_new(SIZE_MAX / 2);
    for (size_t g = 0; seen != NULL && g < tier->group_count; g++) {
        struct weft_tree_group *group = &tier->groups[g];
        if (weft_map_get(seen, group->identity, NULL)) {
            char *other = weft_asprintf("source-%zu:%s", sources[g] + 1, group->identity);
            if (other == NULL) {
                return -ENOMEM;
            }
            weft_free(group->identity);
            group->identity = other;
        }
        if (weft_map_put(seen, group->identity, g) < 0) {
            return -ENOMEM;
        }
    }
    return seen != NULL ? 0 : -ENOMEM;
}

static int emit_level(const struct merge *m, size_t l, struct weft_tree_tier *tier)
{
    const struct merge_level *level = &m->levels[l];
    weft_autofree size_t *index = weft_calloc(level->count, sizeof(*index));
    weft_autofree size_t *sources = weft_calloc(level->count, sizeof(*sources));
    tier->name = weft_strdup(level->name);
    tier->groups = weft_calloc(level->count, sizeof(*tier->groups));
    tier->node_group = weft_calloc(m->node_count, sizeof(size_t));
    if (index == NULL || sources == NULL || tier->name == NULL || tier->groups == NULL ||
        tier->node_group == NULL) {
        return -ENOMEM;
    }
    for (size_t p = 0; p < level->count; p++) {
        index[p] = WEFT_TREE_NONE;
    }
    for (size_t n = 0; n < m->node_count; n++) {
        const size_t p = level->place[n];
        if (p != WEFT_TREE_NONE && index[p] == WEFT_TREE_NONE) {
            index[p] = tier->group_count;
            sources[index[p]] = level->parts[p].source;
            tier->group_count++;
            if (copy_group(m, l, &level->parts[p], &tier->groups[index[p]]) < 0) {
                return -ENOMEM;
            }
        }
        tier->node_group[n] = p != WEFT_TREE_NONE ? index[p] : WEFT_TREE_NONE;
    }
    return make_identities_differ(tier, sources) < 0 ? -ENOMEM
                                                     : weft_tree_sort_groups(tier, m->node_count);
}

/* Nodes that some source looked for and none found. */
static int fill_unplaced(const struct merge *m, struct weft_tree *tree)
{
    const struct weft_tree *first = m->trees[0];
    tree->unplaced = weft_calloc(first->unplaced_count, sizeof(char *));
    for (size_t i = 0; tree->unplaced != NULL && i < first->unplaced_count; i++) {
        if (bsearch(&first->unplaced[i], m->nodes, m->node_count, sizeof(char *), compare_name) ==
            NULL) {
            tree->unplaced[tree->unplaced_count] = weft_strdup(first->unplaced[i]);
            if (tree->unplaced[tree->unplaced_count] == NULL) {
                return -ENOMEM;
            }
            tree->unplaced_count++;
        }
    }
    return tree->unplaced != NULL ? 0 : -ENOMEM;
}

static int collect_findings(struct merge *m, const struct weft_tree *result)
{
    int rc = 0;
    for (size_t s = 0; rc == 0 && s < m->tree_count; s++) {
        for (size_t i = 0; rc == 0 && i < m->trees[s]->finding_count; i++) {
            const struct weft_finding *f = &m->trees[s]->findings[i];
            if (strcmp(f->kind, "unplaced") != 0) {
                rc = weft_findings_add(&m->findings, f->kind, f->subject, "%s", f->detail);
            }
        }
    }
    if (rc == 0 && result->unplaced_count > 0) {
        rc = weft_findings_add(&m->findings, "unplaced", "all sources",
                               "%zu of %zu nodes are known to no source, such as %s",
                               result->unplaced_count, result->unplaced_count + result->node_count,
                               result->unplaced[0]);
    }
    return rc;
}

int weft_merge_emit(struct merge *m, struct weft_tree *tree)
{
    tree->tiers = weft_calloc(m->level_count, sizeof(*tree->tiers));
    if (tree->tiers == NULL) {
        return -ENOMEM;
    }
    for (size_t l = 0; l < m->level_count; l++) {
        tree->tier_count = l + 1;
        if (emit_level(m, l, &tree->tiers[l]) < 0) {
            return -ENOMEM;
        }
    }
    if (fill_unplaced(m, tree) < 0) {
        return -ENOMEM;
    }
    tree->nodes = weft_steal(&m->nodes);
    tree->node_source = weft_steal(&m->source);
    tree->node_count = m->node_count;
    m->node_count = 0;
    weft_tree_link_parents(tree);
    if (collect_findings(m, tree) < 0) {
        return -ENOMEM;
    }
    weft_findings_give(&m->findings, tree);
    return 0;
}
