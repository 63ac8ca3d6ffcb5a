/* SPDX-License-Identifier: Apache-2.0 */
/* The search without tables. Interchangeable devices are counted, not told apart: a candidate is
 * how many of each class it takes. Of classes that can be swapped whole (blocks.c), only counts
 * that do not increase are looked at: the others are worse by entry 8 alone. Where there are few
 * such count vectors all are tried, but for those that a bound rules out; else climb.c looks for a
 * good one, and the answer says so. */
#include <errno.h>
#include <string.h>

#include "pkg/allocator/eval-internal.h"
#include "pkg/machine/machine.h"

/* What may be spent, in weft_eval.work: about nanoseconds. A first candidate makes the bounds of an
 * exact search bite; a bounded search has the time in which a person sees no delay, of a kubelet
 * that admits one pod at a time. */
enum { FEW_VECTORS = 500 }; /* as many are tried as fast as a first candidate is found */
#define FIRST_WORK UINT64_C(30000)
#define BOUNDED_WORK UINT64_C(3000000)

/* The classes with free devices, in the order in which their counts are chosen. Swappable ones
 * stand together, as a chain; chain[i] is how many of it come after i, so that i + 1 continues the
 * chain of i if that is not 0. */
struct walk {
    struct weft_eval *e;
    size_t classes;
    size_t free;     /* devices to choose beside M */
    uint16_t *taken; /* by place in the order */
    int base_worst;  /* entry 3 of M */
    uint64_t vectors;
    uint64_t vectors_max;
    bool count_only;
};

/* ---- the order ---- */

static size_t count_members(const struct weft_eval *e, size_t class, const uint64_t *set)
{
    size_t count = 0;
    for (size_t i = 0; i < e->a->n; i++) {
        count += e->a->classes.of[i] == class && weft_bit_get(set, i);
    }
    return count;
}

/* Can d follow c in a chain: are they swappable in this request, too, and is taking more of c than
 * of d always the better by entry 8? */
static bool continues(const struct weft_eval *e, size_t c, size_t d)
{
    const uint16_t *block = e->a->classes.block;
    const size_t free = weft_eval_free(e, c);
    if (block[c] != block[d] || free != weft_eval_free(e, d) || e->base[c] != e->base[d] ||
        count_members(e, c, e->available) != count_members(e, d, e->available) ||
        count_members(e, c, e->whole) != count_members(e, d, e->whole)) {
        return false;
    }
    for (size_t i = 0; i < free; i++) {
        if (e->ranks[e->first[c] + i] > e->ranks[e->first[d] + i]) {
            return false;
        }
    }
    return true;
}

/* Appends class and what can follow it; placed by class. */
static void append_chain(struct walk *w, size_t class, uint16_t *placed)
{
    struct weft_eval *e = w->e;
    const size_t begin = w->classes;
    size_t last = class;
    for (size_t c = class; c < e->a->classes.count; c++) {
        if (placed[c] == 0 && weft_eval_free(e, c) > 0 && (c == class || continues(e, last, c))) {
            placed[c] = 1;
            e->order[w->classes++] = (uint16_t)c;
            last = c;
        }
    }
    for (size_t i = begin; i < w->classes; i++) {
        e->chain[i] = (uint16_t)(w->classes - 1 - i);
    }
}

/* Where the last class of each group is in the order; of a group without one, nowhere. */
static void place_groups(const struct walk *w)
{
    const struct weft_eval *e = w->e;
    const struct weft_classes *c = &e->a->classes;
    memset(e->last_place, 0xff, e->a->group_count * sizeof(*e->last_place));
    for (size_t i = 0; i < w->classes; i++) {
        for (uint32_t g = c->first_group[e->order[i]]; g < c->first_group[e->order[i] + 1]; g++) {
            e->last_place[c->groups[g]] = (uint16_t)i;
        }
    }
}

/* How many devices the chains after i's have. */
static void look_ahead(const struct walk *w)
{
    const struct weft_eval *e = w->e;
    size_t room = 0;
    for (size_t i = w->classes; i-- > 0;) {
        e->room[i] = (uint16_t)(e->chain[i] == 0 ? room : e->room[i + 1]);
        room += weft_eval_free(e, e->order[i]);
    }
}

/* The most that devices of the classes behind a place can add to the degree of one at it: beyond[n]
 * is what the n best links add up to. */
static void sum_links(const struct walk *w, size_t at)
{
    const struct weft_eval *e = w->e;
    const struct weft_classes *c = &e->a->classes;
    const uint64_t *b = &c->b[(size_t)e->order[at] * c->count];
    uint64_t *beyond = &e->beyond[at * (e->size + 1)];
    uint64_t below = UINT64_MAX;
    size_t n = 0;
    beyond[0] = 0;
    while (n < w->free) {
        uint64_t best = 0;
        size_t devices = 0;
        for (size_t k = at + 1; k < w->classes; k++) {
            const uint64_t link = b[e->order[k]];
            if (link < below && link >= best) {
                devices = link == best ? devices : 0;
                devices += weft_eval_free(e, e->order[k]);
                best = link;
            }
        }
        below = best;
        for (; n < w->free && (devices > 0 || best == 0); n++, devices--) {
            beyond[n + 1] = beyond[n] + best;
        }
    }
}

static void walk_init(struct walk *w, struct weft_eval *e)
{
    *w = (struct walk){.e = e, .free = e->size - e->count, .taken = e->record};
    uint16_t *placed = e->record;
    memset(placed, 0, e->a->classes.count * sizeof(*placed));
    for (size_t class = 0; class < e->a->classes.count; class ++) {
        if (placed[class] == 0 && weft_eval_free(e, class) > 0) {
            append_chain(w, class, placed);
        }
    }
    look_ahead(w);
    place_groups(w);
    for (size_t i = 0; e->beyond != NULL && i < w->classes; i++) {
        sum_links(w, i);
    }
    w->base_worst = weft_eval_worst(e);
}

/* ---- the walk ---- */

static int highest(const struct walk *w, size_t at, size_t left)
{
    size_t most = weft_eval_free(w->e, w->e->order[at]);
    if (at > 0 && w->e->chain[at - 1] > 0 && w->taken[at - 1] < most) {
        most = w->taken[at - 1];
    }
    return (int)(most < left ? most : left);
}

/* What the chain must take here, as it may take no more later, and others have no more room. */
static int lowest(const struct walk *w, size_t at, size_t left)
{
    const size_t room = w->e->room[at];
    const size_t share = (size_t)w->e->chain[at] + 1;
    return left > room ? (int)((left - room + share - 1) / share) : 0;
}

/* ---- bounds ---- */

/* What the classes up to at make of the candidate, and what no later one can undo: entry 3 of what
 * there is, and how many groups that have no class behind at are broken. */
static void note_bounds(const struct walk *w, size_t at)
{
    const struct weft_eval *e = w->e;
    const struct weft_classes *c = &e->a->classes;
    const size_t class = e->order[at];
    int worst = at > 0 ? e->worst[at - 1] : w->base_worst;
    uint16_t broken = at > 0 ? e->broken[at - 1] : 0;
    const size_t inside = class * c->count + class;
    for (int t = WEFT_DISTANCE_SYS; w->taken[at] > 0 && t > worst; t--) {
        const uint64_t *others = &c->unlinked[(class * WEFT_DISTANCE_COUNT + (size_t)t) * c->words];
        bool found = e->have[class] > 1 && c->b[inside] == 0 && c->t[inside] == t;
        for (size_t k = 0; k < c->words; k++) {
            found = found || (others[k] & e->present[k]) != 0;
        }
        worst = found ? t : worst;
    }
    for (uint32_t i = c->first_group[class]; i < c->first_group[class + 1]; i++) {
        const size_t g = c->groups[i];
        broken = (uint16_t)(broken + (e->last_place[g] == at && e->group_intact[g] &&
                                      e->group_taken[g] > 0 &&
                                      e->group_taken[g] < e->group_available[g]));
    }
    e->worst[at] = (int8_t)worst;
    e->broken[at] = broken;
}

/* The most that entry 2 can be: no cut is above a device's degree, and the left devices come from
 * classes behind at. */
static uint64_t cut_bound(const struct walk *w, size_t at, size_t left)
{
    const struct weft_eval *e = w->e;
    const struct weft_classes *c = &e->a->classes;
    uint64_t bound = UINT64_MAX;
    for (size_t i = 0; e->beyond != NULL && i <= at; i++) {
        const size_t class = e->order[i];
        const uint64_t degree =
            e->degree[class] - c->b[class * c->count + class] + e->beyond[i * (e->size + 1) + left];
        bound = e->have[class] > 0 && degree < bound ? degree : bound;
    }
    return bound;
}

/* The bounds below compare what can at best become of the candidate with the best one: positive if
 * that is surely worse, 0 if it may be equal, negative if it may be better. */
static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Entry 5: the broken groups that have no class behind at, and of each group touched what is left
 * over when all left devices come from it, if any can. */
static int bound_groups(const struct walk *w, size_t at, size_t left)
{
    const struct weft_eval *e = w->e;
    uint32_t leftover = 0;
    if (e->broken[at] != e->best.broken_groups) {
        return compare_u64(e->broken[at], e->best.broken_groups);
    }
    for (size_t g = 0; g < e->a->group_count; g++) {
        const size_t to_come = e->last_place[g] > at && e->last_place[g] < w->classes ? left : 0;
        const size_t over = (size_t)e->group_available[g] - e->group_taken[g];
        leftover += e->group_taken[g] > 0 && over > to_come ? (uint32_t)(over - to_come) : 0;
    }
    return compare_u64(leftover, e->best.leftover);
}

/* Entries 1 and 2. */
static int bound_links(const struct walk *w, size_t at, size_t left)
{
    const struct weft_eval *e = w->e;
    if (e->size == 1 || !e->a->classes.any_links) {
        return 0; /* the same for all sets */
    }
    return e->best.components == 1 ? compare_u64(e->best.min_cut_mbps, cut_bound(w, at, left)) : -1;
}

/* Entries 3 and 4. */
static int bound_place(const struct walk *w, size_t at)
{
    const struct weft_eval *e = w->e;
    if (e->worst[at] != e->best.worst_tier) {
        return e->worst[at] - e->best.worst_tier;
    }
    const uint32_t sockets = weft_eval_places(e, e->a->classes.socket);
    return sockets != e->best.sockets
               ? compare_u64(sockets, e->best.sockets)
               : compare_u64(weft_eval_places(e, e->a->classes.numa), e->best.numa_nodes);
}

/* With left devices to come from classes behind at: is every such set worse than the best one? The
 * first entry whose bound differs from the best one's tells. */
static bool is_hopeless(const struct walk *w, size_t at, size_t left)
{
    if (!w->e->have_best) {
        return false;
    }
    const bool packed = w->e->policy == WEFT_POLICY_PACKED;
    int order = packed ? bound_groups(w, at, left) : 0;
    order = order == 0 ? bound_links(w, at, left) : order;
    order = order == 0 ? bound_place(w, at) : order;
    order = order == 0 && !packed ? bound_groups(w, at, left) : order;
    return order > 0;
}

static void put(const struct walk *w, size_t at, int count)
{
    if (!w->count_only && count != 0) {
        weft_eval_add(w->e, w->e->order[at], count);
    }
}

static bool is_worth_it(const struct walk *w, size_t at, size_t left)
{
    note_bounds(w, at);
    return !is_hopeless(w, at, left);
}

/* A whole vector. */
static void visit(struct walk *w, bool worth_it)
{
    w->vectors++;
    if (!w->count_only && worth_it) {
        (void)weft_eval_try(w->e);
    }
}

/* All count vectors, in descending lexicographic order of the chosen order, at most vectors_max. */
static void walk_all(struct walk *w)
{
    size_t at = 0;
    size_t left = w->free;
    int next = highest(w, 0, left);
    w->vectors = 0;
    while (w->vectors < w->vectors_max) {
        if (next < lowest(w, at, left)) {
            if (at == 0) {
                return;
            }
            at--;
            put(w, at, -(int)w->taken[at]);
            left += w->taken[at];
            next = (int)w->taken[at] - 1;
            continue;
        }
        w->taken[at] = (uint16_t)next;
        put(w, at, next);
        left -= (size_t)next;
        const bool go_on = w->count_only || is_worth_it(w, at, left);
        if (go_on && left > 0) {
            at++;
            next = highest(w, at, left);
            continue;
        }
        if (left == 0) {
            visit(w, go_on);
        }
        put(w, at, -next);
        left += (size_t)next;
        next--;
    }
}

/* ---- the search ---- */

bool weft_search(struct weft_eval *e)
{
    struct walk w;
    walk_init(&w, e);
    w.count_only = true;
    w.vectors_max = (uint64_t)WEFT_COUNT_VECTORS_MAX + 1;
    walk_all(&w);
    const bool exact = w.vectors < w.vectors_max;
    if (!exact || (w.vectors > FEW_VECTORS && e->a->classes.count <= WEFT_CLIMB_CUT_MAX)) {
        weft_climb(e, exact ? FIRST_WORK : BOUNDED_WORK);
    }
    if (exact) {
        weft_eval_reset(e);
        w.count_only = false;
        walk_all(&w);
    }
    weft_eval_settle(e);
    return exact;
}
