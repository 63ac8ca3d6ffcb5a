/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a forest of ranked places. From the farthest tier down, each group whose nodes are in
 * different groups above is either kept whole (its nodes take over the places above of most of
 * them) or cut. Whoever takes over takes all tiers above along, from a node that has them: so what
 * was settled above stays settled, and one pass is enough. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/tree/merge-internal.h"
#include "pkg/tree/tree.h"

/* A group whose better places above differ in more ways is taken apart without a look at which of
 * them agree: comparing costs the square. */
enum { KINDS_MAX = 512 };

/* The members of one group with the same places above. */
struct kind {
    const struct merge_row *members;
    size_t count;
    size_t key;  /* number of its places in the binding tiers */
    size_t home; /* the key that its part goes by */
};

struct group {
    struct merge *m;
    size_t level;
    size_t part;
    struct kind *kinds; /* by home, once that is known */
    size_t kind_count;
    bool *binding; /* tier: its groups cut this one if they differ */
    struct merge_row *scratch;
    size_t *numbers; /* scratch */
};

/* The kinds of one home. */
struct share {
    struct kind *kinds;
    size_t count;
};

static size_t kind_place(const struct group *g, const struct kind *kind, size_t level)
{
    return g->m->levels[level].place[kind->members[0].node];
}

static size_t place_of(const struct group *g, size_t kind, size_t level)
{
    return kind_place(g, &g->kinds[kind], level);
}

/* ---- the places above, as one number ---- */

/* Numbers the places that nodes have in the tiers from level on: equal number, equal places. */
static void number_places(const struct merge *m, size_t level, size_t *above,
                          struct merge_row *scratch)
{
    memset(above, 0, m->node_count * sizeof(*above));
    for (size_t l = m->level_count; l-- > level;) {
        for (size_t n = 0; n < m->node_count; n++) {
            scratch[n] = (struct merge_row){m->levels[l].place[n], above[n], n};
        }
        weft_merge_number(scratch, m->node_count, above);
    }
}

/* ---- what may differ ---- */

/* The tiers whose groups cut this one: those in which a better source knows one of its nodes. A
 * domain is cut by all of them or by none. */
static void find_binding(struct group *g)
{
    const struct merge *m = g->m;
    const struct merge_level *own = &m->levels[g->level];
    for (size_t l = g->level + 1; l < m->level_count; l++) {
        g->binding[l] = own->domain && m->on_cross == WEFT_CROSS_SPLIT;
        for (size_t k = 0; k < g->kind_count && !own->domain; k++) {
            const size_t place = place_of(g, k, l);
            g->binding[l] =
                g->binding[l] || (place != WEFT_TREE_NONE &&
                                  m->levels[l].parts[place].source < own->parts[g->part].source);
        }
    }
}

/* Is all that kind a has in those tiers (NULL: all above) also what b has? */
static bool is_within(const struct group *g, const bool *tiers, const struct kind *a,
                      const struct kind *b)
{
    for (size_t l = g->level + 1; l < g->m->level_count; l++) {
        const size_t place = kind_place(g, a, l);
        if ((tiers == NULL || tiers[l]) && place != WEFT_TREE_NONE &&
            place != kind_place(g, b, l)) {
            return false;
        }
    }
    return true;
}

static int compare_key(const void *a, const void *b)
{
    const struct kind *x = a;
    const struct kind *y = b;
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    return (x->members > y->members) - (x->members < y->members);
}

/* Numbers what kinds have in the binding tiers, and sorts them by it. */
static void number_keys(struct group *g)
{
    const size_t count = g->kind_count;
    memset(g->numbers, 0, count * sizeof(*g->numbers));
    for (size_t l = g->m->level_count; l-- > g->level + 1;) {
        for (size_t k = 0; k < count; k++) {
            const size_t place = g->binding[l] ? place_of(g, k, l) : 0;
            g->scratch[k] = (struct merge_row){place, g->numbers[k], k};
        }
        weft_merge_number(g->scratch, count, g->numbers);
    }
    for (size_t k = 0; k < count; k++) {
        g->kinds[k].key = g->numbers[k];
        g->kinds[k].home = g->numbers[k];
    }
    qsort(g->kinds, count, sizeof(*g->kinds), compare_key);
}

static size_t same_key_end(const struct group *g, size_t first)
{
    size_t end = first + 1;
    while (end < g->kind_count && g->kinds[end].key == g->kinds[first].key) {
        end++;
    }
    return end;
}

/* The home of a key: the one that knows most in the binding tiers among those that agree with it.
 * With two of them that differ it is in doubt, and its own. */
static size_t find_home(const struct group *g, const struct kind *own)
{
    const struct kind *home = own;
    for (size_t b = 0; b < g->kind_count; b = same_key_end(g, b)) {
        const struct kind *other = &g->kinds[b];
        if (!is_within(g, g->binding, own, other) || is_within(g, g->binding, other, home)) {
            continue;
        }
        if (!is_within(g, g->binding, home, other)) {
            return own->key;
        }
        home = other;
    }
    return home->key;
}

static int compare_home(const void *a, const void *b)
{
    const struct kind *x = a;
    const struct kind *y = b;
    if (x->home != y->home) {
        return x->home < y->home ? -1 : 1;
    }
    return (x->members > y->members) - (x->members < y->members);
}

/* Sorts the kinds by home; returns how many homes there are. */
static size_t find_homes(struct group *g)
{
    size_t keys = 0;
    number_keys(g);
    for (size_t k = 0; k < g->kind_count; k = same_key_end(g, k)) {
        keys++;
    }
    for (size_t k = 0; k < g->kind_count && keys <= KINDS_MAX;) {
        const size_t end = same_key_end(g, k);
        const size_t home = find_home(g, &g->kinds[k]);
        for (; k < end; k++) {
            g->kinds[k].home = home;
        }
    }
    qsort(g->kinds, g->kind_count, sizeof(*g->kinds), compare_home);
    size_t homes = 0;
    for (size_t k = 0; k < g->kind_count; k++) {
        homes += k == 0 || g->kinds[k].home != g->kinds[k - 1].home;
    }
    return homes;
}

/* ---- keeping together ---- */

/* Of the kinds that know all that the home knows, the one that most of the members agree with; at a
 * tie that of the first node. */
static const struct kind *find_leader(const struct group *g, const struct share *share)
{
    const struct kind *leader = share->kinds;
    size_t most = 0;
    for (size_t a = 0; a < share->count; a++) {
        const struct kind *kind = &share->kinds[a];
        if (kind->key != kind->home) {
            continue;
        }
        size_t votes = share->count > KINDS_MAX ? kind->count : 0;
        for (size_t b = 0; b < share->count && share->count <= KINDS_MAX; b++) {
            votes += is_within(g, NULL, &share->kinds[b], kind) ? share->kinds[b].count : 0;
        }
        const bool first = kind->members[0].node < leader->members[0].node;
        if (votes > most || (votes == most && first)) {
            most = votes;
            leader = kind;
        }
    }
    return leader;
}

/* The lowest tier in which the two have different groups, or level_count. */
static size_t first_difference(const struct group *g, const struct kind *a, const struct kind *b)
{
    size_t l = g->level + 1;
    while (l < g->m->level_count) {
        const size_t x = kind_place(g, a, l);
        const size_t y = kind_place(g, b, l);
        if (x != y && x != WEFT_TREE_NONE && y != WEFT_TREE_NONE) {
            break;
        }
        l++;
    }
    return l;
}

static void follow(const struct group *g, const struct kind *kind, size_t node)
{
    for (size_t l = g->level + 1; l < g->m->level_count; l++) {
        for (size_t i = 0; i < kind->count; i++) {
            g->m->levels[l].place[kind->members[i].node] = g->m->levels[l].place[node];
        }
    }
}

/* All of the share follow the leader. A finding says so if somebody leaves a known place. */
static int keep_whole(const struct group *g, const struct share *share)
{
    struct merge *m = g->m;
    const struct kind *leader = find_leader(g, share);
    const size_t node = leader->members[0].node;
    size_t tier = m->level_count;
    size_t moved = 0;
    size_t all = 0;
    const char *example = NULL;
    for (size_t k = 0; k < share->count; k++) {
        const struct kind *kind = &share->kinds[k];
        const size_t difference = first_difference(g, kind, leader);
        all += kind->count;
        if (difference < m->level_count) {
            moved += kind->count;
            tier = difference < tier ? difference : tier;
            example = example != NULL ? example : m->nodes[kind->members[0].node];
        }
    }
    for (size_t k = 0; k < share->count; k++) {
        follow(g, &share->kinds[k], node);
    }
    if (moved == 0) {
        return 0;
    }
    const struct merge_level *above = &m->levels[tier];
    return weft_findings_add(
        &m->findings, "crossing", m->levels[g->level].parts[g->part].from->name,
        "the %zu nodes of this %s group are in several %s groups by another source; all are put "
        "under %s, where most are (%zu moved, such as %s)",
        all, m->levels[g->level].name, above->name, above->parts[above->place[node]].from->name,
        moved, example);
}

/* ---- cutting ---- */

/* A part of the group for this share, named after the closest binding group above it. */
static int cut_off(const struct group *g, const struct share *share)
{
    const struct merge *m = g->m;
    struct merge_level *level = &g->m->levels[g->level];
    struct merge_part part = level->parts[g->part];
    size_t home = 0;
    while (share->kinds[home].key != share->kinds[home].home) {
        home++;
    }
    for (size_t l = g->level + 1; l < m->level_count && part.under_level == WEFT_TREE_NONE; l++) {
        const size_t place = kind_place(g, &share->kinds[home], l);
        if (g->binding[l] && place != WEFT_TREE_NONE) {
            part.under_level = l;
            part.under = place;
        }
    }
    size_t index = 0;
    const int rc = weft_merge_add_part(level, part, &index);
    for (size_t k = 0; rc == 0 && k < share->count; k++) {
        for (size_t i = 0; i < share->kinds[k].count; i++) {
            level->place[share->kinds[k].members[i].node] = index;
        }
    }
    return rc;
}

/* Do all that have a place in this tier have the same? */
static bool agree(const struct group *g, size_t level)
{
    size_t first = WEFT_TREE_NONE;
    for (size_t k = 0; k < g->kind_count; k++) {
        const size_t place = place_of(g, k, level);
        if (first != WEFT_TREE_NONE && place != WEFT_TREE_NONE && place != first) {
            return false;
        }
        first = first != WEFT_TREE_NONE ? first : place;
    }
    return true;
}

static int report_cut(const struct group *g, size_t parts)
{
    struct merge *m = g->m;
    const struct merge_level *level = &m->levels[g->level];
    size_t count = 0;
    for (size_t k = 0; k < g->kind_count; k++) {
        count += g->kinds[k].count;
    }
    size_t tier = g->level + 1;
    while (tier + 1 < m->level_count && (!g->binding[tier] || agree(g, tier))) {
        tier++;
    }
    return weft_findings_add(&m->findings, "crossing", level->parts[g->part].from->name,
                             "the %zu nodes of this %s group are in several %s groups by %s; it "
                             "is cut into %zu along them",
                             count, level->name, m->levels[tier].name,
                             level->domain ? "another source" : "a better source", parts);
}

static int settle_parts(struct group *g)
{
    find_binding(g);
    const size_t parts = find_homes(g);
    int rc = parts > 1 ? report_cut(g, parts) : 0;
    for (size_t k = 0; k < g->kind_count && rc == 0;) {
        struct share share = {.kinds = &g->kinds[k]};
        while (k < g->kind_count && g->kinds[k].home == share.kinds[0].home) {
            share.count++;
            k++;
        }
        rc = parts > 1 ? cut_off(g, &share) : 0;
        rc = rc == 0 ? keep_whole(g, &share) : rc;
    }
    return rc;
}

/* ---- lifting a domain ---- */

/* The domain leaves the tiers up to the last in which its nodes are apart. */
static int lift(struct group *g, bool *ret_lifted)
{
    struct merge *m = g->m;
    size_t top = m->level_count;
    while (top > g->level + 1 && agree(g, top - 1)) {
        top--;
    }
    *ret_lifted = top > g->level + 1;
    if (!*ret_lifted) {
        return 0;
    }
    size_t all = 0;
    for (size_t k = 0; k < g->kind_count; k++) {
        all += g->kinds[k].count;
        for (size_t i = 0; i < g->kinds[k].count; i++) {
            for (size_t l = g->level + 1; l < top; l++) {
                m->levels[l].place[g->kinds[k].members[i].node] = WEFT_TREE_NONE;
            }
        }
    }
    return weft_findings_add(
        &m->findings, "crossing", m->levels[g->level].parts[g->part].from->name,
        "the %zu nodes of this %s group are in several %s groups by another source; it is in none "
        "of them and hangs %s%s",
        all, m->levels[g->level].name, m->levels[top - 1].name,
        top < m->level_count ? "under their common group of tier " : "by itself",
        top < m->level_count ? m->levels[top].name : "");
}

static int settle_group(struct group *g)
{
    const struct merge *m = g->m;
    bool lifted = false;
    int rc = 0;
    if (m->levels[g->level].domain && m->on_cross == WEFT_CROSS_LIFT) {
        rc = lift(g, &lifted);
    }
    /* what is left to do for a lifted domain are the tiers above, in which its nodes agree */
    return rc < 0 ? rc : settle_parts(g);
}

/* ---- all ---- */

struct room {
    size_t *above;
    size_t *numbers;
    struct merge_row *members;
    struct merge_row *scratch;
    struct kind *kinds;
    bool *binding;
};

static void room_done(struct room *room)
{
    weft_free(room->above);
    weft_free(room->numbers);
    weft_free(room->members);
    weft_free(room->scratch);
    weft_free(room->kinds);
    weft_free(room->binding);
}
WEFT_DEFINE_AUTO_VALUE(struct room, room_done)

/* Splits a group's members, sorted, into kinds and settles it. */
static int settle_members(struct merge *m, size_t level, const struct merge_row *members,
                          size_t count, const struct room *room)
{
    struct group g = {.m = m,
                      .level = level,
                      .part = members[0].part,
                      .kinds = room->kinds,
                      .binding = room->binding,
                      .scratch = room->scratch,
                      .numbers = room->numbers};
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || members[i].above != members[i - 1].above) {
            g.kinds[g.kind_count++] = (struct kind){.members = &members[i]};
        }
        g.kinds[g.kind_count - 1].count++;
    }
    return g.kind_count > 1 ? settle_group(&g) : 0;
}

static int settle_level(struct merge *m, size_t level, const struct room *room)
{
    size_t count = 0;
    number_places(m, level + 1, room->above, room->members);
    for (size_t n = 0; n < m->node_count; n++) {
        const size_t part = m->levels[level].place[n];
        if (part != WEFT_TREE_NONE) {
            room->members[count++] = (struct merge_row){part, room->above[n], n};
        }
    }
    if (count > 0) {
        qsort(room->members, count, sizeof(*room->members), weft_merge_compare);
    }
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0;) {
        size_t end = i + 1;
        while (end < count && room->members[end].part == room->members[i].part) {
            end++;
        }
        rc = settle_members(m, level, &room->members[i], end - i, room);
        i = end;
    }
    return rc;
}

int weft_merge_settle(struct merge *m)
{
    weft_auto(room_done) struct room room = {
        .above = weft_calloc(m->node_count, sizeof(size_t)),
        .numbers = weft_calloc(m->node_count, sizeof(size_t)),
        .members = weft_calloc(m->node_count, sizeof(struct merge_row)),
        .scratch = weft_calloc(m->node_count, sizeof(struct merge_row)),
        .kinds = weft_calloc(m->node_count, sizeof(struct kind)),
        .binding = weft_calloc(m->level_count, sizeof(bool)),
    };
    if (room.above == NULL || room.numbers == NULL || room.members == NULL ||
        room.scratch == NULL || room.kinds == NULL || room.binding == NULL) {
        return -ENOMEM;
    }
    int rc = 0;
    for (size_t level = m->level_count; level-- > 0 && rc == 0;) {
        rc = settle_level(m, level, &room);
    }
    return rc;
}
