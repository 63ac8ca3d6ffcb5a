/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about sources that say different things of the same nodes in the same tier. The better
 * one is believed; somebody should know which is wrong. Changes nothing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/tree/merge-internal.h"
#include "pkg/tree/tree.h"

/* so many are told of one source in one tier: more say that the sources mean different things */
enum { REPORTS_MAX = 32 };

/* A node that the source has in group, and a better one in part. */
struct both {
    size_t group;
    size_t part;
    size_t node;
};

struct compared {
    struct merge *m;
    size_t level;
    size_t source;
    const struct weft_tree_tier *tier;
    struct both *rows;
    size_t count;
    size_t reports;
};

static int compare_by_group(const void *a, const void *b)
{
    const struct both *x = a;
    const struct both *y = b;
    if (x->group != y->group) {
        return x->group < y->group ? -1 : 1;
    }
    if (x->part != y->part) {
        return x->part < y->part ? -1 : 1;
    }
    return (x->node > y->node) - (x->node < y->node);
}

static int compare_by_part(const void *a, const void *b)
{
    const struct both *x = a;
    const struct both *y = b;
    if (x->part != y->part) {
        return x->part < y->part ? -1 : 1;
    }
    if (x->group != y->group) {
        return x->group < y->group ? -1 : 1;
    }
    return (x->node > y->node) - (x->node < y->node);
}

static const struct merge_part *part_at(const struct compared *c, size_t row)
{
    return &c->m->levels[c->level].parts[c->rows[row].part];
}

/* rows[first, end) are one group's, by part: where most of them are, and somebody who is not. */
static int report_group(struct compared *c, size_t first, size_t end)
{
    size_t most = first;
    size_t longest = 0;
    size_t parts = 0;
    for (size_t i = first; i < end;) {
        size_t next = i + 1;
        while (next < end && c->rows[next].part == c->rows[i].part) {
            next++;
        }
        if (next - i > longest) {
            longest = next - i;
            most = i;
        }
        parts++;
        i = next;
    }
    const size_t other = most == first ? first + longest : first;
    return weft_findings_add(
        &c->m->findings, "mismatch", c->tier->groups[c->rows[first].group].name,
        "source %zu has these %zu nodes in one %s group, better sources in %zu: %zu of them in %s "
        "(source %zu), others elsewhere, such as %s in %s",
        c->source + 1, end - first, c->tier->name, parts, longest, part_at(c, most)->from->name,
        part_at(c, most)->source + 1, c->m->nodes[c->rows[other].node],
        part_at(c, other)->from->name);
}

/* rows[first, end) are in one better group, by the source's own, which are all inside of it. */
static int report_part(struct compared *c, size_t first, size_t end)
{
    size_t groups = 1;
    for (size_t i = first + 1; i < end; i++) {
        groups += c->rows[i].group != c->rows[i - 1].group;
    }
    return weft_findings_add(
        &c->m->findings, "mismatch", part_at(c, first)->from->name,
        "source %zu has these %zu nodes in one %s group, source %zu in %zu, "
        "such as %s in %s and %s in %s",
        part_at(c, first)->source + 1, end - first, c->tier->name, c->source + 1, groups,
        c->m->nodes[c->rows[first].node], c->tier->groups[c->rows[first].group].name,
        c->m->nodes[c->rows[end - 1].node], c->tier->groups[c->rows[end - 1].group].name);
}

/* Groups of the source that better ones have apart; spread says which. */
static int find_spread(struct compared *c, bool *spread)
{
    int rc = 0;
    if (c->count > 0) {
        qsort(c->rows, c->count, sizeof(*c->rows), compare_by_group);
    }
    for (size_t i = 0; i < c->count && rc == 0;) {
        size_t end = i + 1;
        while (end < c->count && c->rows[end].group == c->rows[i].group) {
            end++;
        }
        spread[c->rows[i].group] = c->rows[i].part != c->rows[end - 1].part;
        if (spread[c->rows[i].group] && c->reports++ < REPORTS_MAX) {
            rc = report_group(c, i, end);
        }
        i = end;
    }
    return rc;
}

/* Better groups that the source has apart, unless that was said from the other side. */
static int find_apart(struct compared *c, const bool *spread)
{
    int rc = 0;
    if (c->count > 0) {
        qsort(c->rows, c->count, sizeof(*c->rows), compare_by_part);
    }
    for (size_t i = 0; i < c->count && rc == 0;) {
        size_t end = i;
        bool said = false;
        while (end < c->count && c->rows[end].part == c->rows[i].part) {
            said = said || spread[c->rows[end].group];
            end++;
        }
        if (!said && c->rows[i].group != c->rows[end - 1].group && c->reports++ < REPORTS_MAX) {
            rc = report_part(c, i, end);
        }
        i = end;
    }
    return rc;
}

/* The nodes that the source knows in this tier and a better one placed. */
static void collect(struct compared *c)
{
    const struct weft_tree *tree = c->m->trees[c->source];
    const struct merge_level *level = &c->m->levels[c->level];
    size_t n = 0;
    for (size_t i = 0; i < tree->node_count; i++) {
        while (strcmp(c->m->nodes[n], tree->nodes[i]) != 0) {
            n++;
        }
        const size_t part = level->place[n];
        if (c->tier->node_group[i] != WEFT_TREE_NONE && part != WEFT_TREE_NONE &&
            level->parts[part].source < c->source) {
            c->rows[c->count++] = (struct both){c->tier->node_group[i], part, n};
        }
    }
}

static int compare_source(struct compared *c)
{
    weft_autofree bool *spread = weft_calloc(c->tier->group_count, sizeof(*spread));
    if (spread == NULL) {
        return -ENOMEM;
    }
    c->count = 0;
    c->reports = 0;
    collect(c);
    int rc = find_spread(c, spread);
    rc = rc == 0 ? find_apart(c, spread) : rc;
    if (rc == 0 && c->reports > REPORTS_MAX) {
        rc = weft_findings_add(&c->m->findings, "mismatch", c->tier->name,
                               "source %zu and better sources differ about %zu groups of this "
                               "tier, of which %d are told: do they mean the same by it?",
                               c->source + 1, c->reports, (int)REPORTS_MAX);
    }
    return rc;
}

static const struct weft_tree_tier *tier_named(const struct weft_tree *tree, const char *name)
{
    size_t t = 0;
    while (t < tree->tier_count && strcmp(tree->tiers[t].name, name) != 0) {
        t++;
    }
    return t < tree->tier_count ? &tree->tiers[t] : NULL;
}

int weft_merge_mismatches(struct merge *m)
{
    weft_autofree struct both *rows = weft_calloc(m->node_count, sizeof(*rows));
    int rc = rows != NULL ? 0 : -ENOMEM;
    for (size_t l = 0; l < m->level_count; l++) {
        for (size_t s = 1; rc == 0 && s < m->tree_count; s++) {
            struct compared c = {.m = m, .level = l, .source = s, .rows = rows};
            c.tier = tier_named(m->trees[s], m->levels[l].name);
            rc = c.tier != NULL ? compare_source(&c) : 0;
        }
    }
    return rc;
}
