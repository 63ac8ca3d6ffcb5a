/* SPDX-License-Identifier: Apache-2.0 */
/* The key of allocation.md for one candidate, computed entry by entry and only as far as needed to
 * tell whether it beats the best one so far. Everything is counted by class. */
#include <errno.h>
#include <string.h>

#include "pkg/allocator/eval-internal.h"
#include "pkg/machine/machine.h"

enum {
    GROUP_BOUND_MIN = 12,       /* fewer classes get their cut as fast as a bound by groups */
    CUT_SHOWN_CLASSES_MAX = 256 /* more, and an objective's cut is its upper bound */
};

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static size_t count_present(const struct weft_eval *e)
{
    return weft_bit_count(e->present, e->a->classes.words);
}

/* Walks the classes of the candidate: for (size_t c = NONE; next_present(e, &c);) */
#define NONE SIZE_MAX
static bool next_present(const struct weft_eval *e, size_t *class)
{
    const size_t words = e->a->classes.words;
    const size_t from = *class + 1; /* NONE + 1 is 0 */
    size_t w = from / 64;
    if (w >= words) {
        return false;
    }
    uint64_t left = e->present[w] & UINT64_MAX << (from % 64);
    while (left == 0) {
        if (++w == words) {
            return false;
        }
        left = e->present[w];
    }
    *class = w * 64 + (size_t)__builtin_ctzll(left);
    return true;
}

/* ---- entries 1 and 2: links ---- */

/* Takes all classes that links of left reach from todo out of left. */
static void flood(const struct weft_classes *c, uint64_t *left, uint64_t *todo)
{
    for (size_t w = 0; w < c->words;) {
        if (todo[w] == 0) {
            w++;
            continue;
        }
        const size_t at = w * 64 + (size_t)__builtin_ctzll(todo[w]);
        weft_bit_clear(todo, at);
        weft_bit_clear(left, at);
        size_t lowest = w;
        for (size_t v = 0; v < c->words; v++) {
            const uint64_t reached = c->linked[at * c->words + v] & left[v];
            todo[v] |= reached;
            lowest = reached != 0 && v < lowest ? v : lowest;
        }
        w = lowest;
    }
}

static bool has_linked_class(const struct weft_eval *e, size_t class)
{
    const struct weft_classes *c = &e->a->classes;
    for (size_t w = 0; w < c->words; w++) {
        if ((c->linked[class * c->words + w] & e->present[w]) != 0) {
            return true;
        }
    }
    return false;
}

/* Floods from the lowest class not yet reached. The members of a class are one component if they
 * are linked, or if any other class of the candidate is linked to them. */
static uint32_t count_components(const struct weft_eval *e)
{
    const struct weft_classes *c = &e->a->classes;
    uint64_t *left = e->walk_scratch;
    uint64_t *todo = e->walk_scratch + c->words;
    uint32_t components = 0;
    memcpy(left, e->present, c->words * sizeof(*left));
    memset(todo, 0, c->words * sizeof(*todo));
    for (size_t w = 0; w < c->words; w++) {
        while (left[w] != 0) {
            const size_t class = w * 64 + (size_t)__builtin_ctzll(left[w]);
            const bool joined = c->b[class * c->count + class] > 0 || has_linked_class(e, class);
            components += joined ? 1 : e->have[class];
            weft_bit_set(todo, class);
            flood(c, left, todo);
        }
    }
    return components;
}

/* What splitting off one device costs, at least: an upper bound of the minimum cut. */
static uint64_t smallest_degree(const struct weft_eval *e)
{
    const struct weft_classes *c = &e->a->classes;
    uint64_t smallest = UINT64_MAX;
    for (size_t i = NONE; next_present(e, &i);) {
        const uint64_t degree = e->degree[i] - c->b[i * c->count + i];
        smallest = degree < smallest ? degree : smallest;
    }
    return smallest;
}

/* What lies between the classes of a group and the rest of the candidate. */
static uint64_t cut_along(struct weft_eval *e, const uint64_t *group)
{
    const struct weft_classes *c = &e->a->classes;
    uint64_t cut = 0;
    for (size_t i = NONE; next_present(e, &i);) {
        if (!weft_bit_get(group, c->rep[i])) {
            continue;
        }
        uint64_t out = 0;
        for (size_t j = NONE; next_present(e, &j);) {
            out += weft_bit_get(group, c->rep[j]) ? 0 : e->have[j] * c->b[i * c->count + j];
        }
        cut += e->have[i] * out;
        e->work += c->count;
    }
    return cut;
}

/* The cut along each group that divides the candidate is an upper bound, too: where islands hang
 * together by weak links only, it is far below the smallest degree. Stops at the first below
 * enough. */
static uint64_t group_cut_bound(struct weft_eval *e, uint64_t high, uint64_t enough)
{
    const struct weft_allocator *a = e->a;
    for (size_t g = 0; g < a->group_count && high >= enough; g++) {
        if (e->group_taken[g] > 0 && e->group_taken[g] < e->count) {
            const uint64_t cut = cut_along(e, &a->groups[g * a->words]);
            high = cut < high ? cut : high;
        }
    }
    return high;
}

/* A cut that splits the members of a class is never better than one that does not, the smallest
 * degree apart: as a function of how many members are on one side, all else fixed, the cut is
 * concave, so that its minimum is at an end, unless the end leaves one side empty; then one member
 * alone is. So the classes as wholes are the vertices. */
static uint64_t exact_cut(struct weft_eval *e, uint64_t high)
{
    const struct weft_classes *c = &e->a->classes;
    const size_t count = count_present(e);
    uint64_t *w = e->cut_scratch;
    if (count < 2) {
        return high;
    }
    size_t row = 0;
    for (size_t i = NONE; next_present(e, &i); row++) {
        size_t column = 0;
        for (size_t j = NONE; next_present(e, &j); column++) {
            w[row * count + column] = i == j ? 0 : c->b[i * c->count + j] * e->have[i] * e->have[j];
        }
    }
    e->work += count * count * count;
    const uint64_t cut = weft_min_cut(w, count, w + count * count);
    return cut < high ? cut : high;
}

/* Entry 2 of a connected set. Where its bound only ties with the best, the exact cut waits until
 * the later entries say whether it matters (e->cut_pending). */
static int compare_cuts(struct weft_eval *e, const struct weft_objective *best,
                        struct weft_objective *o)
{
    const uint64_t enough = best != NULL ? best->min_cut_mbps : 0;
    const size_t classes = count_present(e);
    uint64_t high = smallest_degree(e);
    e->work += classes;
    if (high >= enough && classes >= GROUP_BOUND_MIN && !e->skip_cut) {
        high = group_cut_bound(e, high, enough);
    }
    if (high < enough) {
        return 1;
    }
    o->min_cut_mbps = high;
    if (classes > 1 && !e->skip_cut) {
        e->cut_pending = best != NULL && high == enough;
        o->min_cut_mbps = e->cut_pending ? high : exact_cut(e, high);
    }
    return best != NULL ? compare_u64(enough, o->min_cut_mbps) : 0;
}

/* Entries 1 and 2. best may be NULL; the result is as of strcmp, negative if the candidate is
 * better, and when it is positive the rest of o may be missing. */
static int stage_links(struct weft_eval *e, const struct weft_objective *best,
                       struct weft_objective *o)
{
    o->components = count_components(e);
    o->min_cut_mbps = 0;
    e->work += 4 * count_present(e) * e->a->classes.words;
    const int order = best != NULL ? compare_u64(o->components, best->components) : 0;
    if (order > 0 || o->components != 1 || e->count < 2) {
        return order;
    }
    const int cuts = compare_cuts(e, order == 0 ? best : NULL, o);
    return order != 0 ? order : cuts;
}

/* ---- entries 3 and 4: places ---- */

static bool any_unlinked_at(const struct weft_eval *e, size_t distance)
{
    const struct weft_classes *c = &e->a->classes;
    for (size_t i = NONE; next_present(e, &i);) {
        const size_t inside = i * c->count + i;
        if (e->have[i] > 1 && c->b[inside] == 0 && c->t[inside] == distance) {
            return true;
        }
        const uint64_t *others = &c->unlinked[(i * WEFT_DISTANCE_COUNT + distance) * c->words];
        for (size_t w = 0; w < c->words; w++) {
            if ((others[w] & e->present[w]) != 0) {
                return true;
            }
        }
    }
    return false;
}

int weft_eval_worst(const struct weft_eval *e)
{
    size_t distance = WEFT_DISTANCE_COUNT;
    while (distance > 0 && !any_unlinked_at(e, distance - 1)) {
        distance--;
    }
    return (int)distance - 1;
}

uint32_t weft_eval_places(const struct weft_eval *e, const uint16_t *places)
{
    uint32_t count = 0;
    memset(e->place_scratch, 0, e->a->words * sizeof(*e->place_scratch));
    for (size_t i = NONE; next_present(e, &i);) {
        if (places[i] == WEFT_PLACE_OWN) {
            count += e->have[i];
        } else if (!weft_bit_get(e->place_scratch, places[i])) {
            weft_bit_set(e->place_scratch, places[i]);
            count++;
        }
    }
    return count;
}

static int stage_place(struct weft_eval *e, const struct weft_objective *best,
                       struct weft_objective *o)
{
    const struct weft_classes *c = &e->a->classes;
    o->worst_tier = weft_eval_worst(e);
    o->sockets = weft_eval_places(e, c->socket);
    o->numa_nodes = weft_eval_places(e, c->numa);
    e->work += count_present(e) * (6 * c->words + 4);
    if (best == NULL) {
        return 0;
    }
    int order = o->worst_tier - best->worst_tier;
    order = order != 0 ? order : compare_u64(o->sockets, best->sockets);
    return order != 0 ? order : compare_u64(o->numa_nodes, best->numa_nodes);
}

/* ---- entries 5 to 7 ---- */

static int stage_groups(struct weft_eval *e, const struct weft_objective *best,
                        struct weft_objective *o)
{
    o->broken_groups = o->leftover = 0;
    for (size_t g = 0; g < e->a->group_count; g++) {
        const uint32_t taken = e->group_taken[g];
        if (taken > 0) {
            const uint32_t left = e->group_available[g] - taken;
            o->leftover += left;
            o->broken_groups += e->group_intact[g] && left > 0;
        }
    }
    e->work += e->a->group_count;
    if (best == NULL) {
        return 0;
    }
    const int order = compare_u64(o->broken_groups, best->broken_groups);
    return order != 0 ? order : compare_u64(o->leftover, best->leftover);
}

static bool has_near_nic(const struct weft_allocator *a, size_t rank)
{
    return weft_bit_count(&a->near_nics[rank * a->nic_words], a->nic_words) > 0;
}

static int stage_nics(struct weft_eval *e, const struct weft_objective *best,
                      struct weft_objective *o)
{
    const struct weft_allocator *a = e->a;
    o->nic_near = 0;
    memset(e->nic_scratch, 0, a->nic_words * sizeof(*e->nic_scratch));
    for (size_t i = NONE; next_present(e, &i);) {
        const size_t taken = (size_t)(e->have[i] - e->base[i]);
        const uint64_t *nics = &e->nics[(e->first[i] + i + taken) * a->nic_words];
        for (size_t w = 0; w < a->nic_words; w++) {
            e->nic_scratch[w] |= nics[w];
        }
        o->nic_near += has_near_nic(a, a->classes.rep[i]) ? e->have[i] : 0;
    }
    o->nic_distinct = (uint32_t)weft_bit_count(e->nic_scratch, a->nic_words);
    e->work += 2 * count_present(e) * a->nic_words;
    if (best == NULL) {
        return 0;
    }
    const int order = compare_u64(best->nic_near, o->nic_near);
    return order != 0 ? order : compare_u64(best->nic_distinct, o->nic_distinct);
}

static int stage_sums(struct weft_eval *e, const struct weft_objective *best,
                      struct weft_objective *o)
{
    const struct weft_classes *c = &e->a->classes;
    uint64_t bandwidth = 0; /* each pair from both sides */
    uint64_t distance = 0;
    for (size_t i = NONE; next_present(e, &i);) {
        const size_t inside = i * c->count + i;
        uint64_t sum = 0;
        for (size_t j = NONE; next_present(e, &j);) {
            sum += (uint64_t)e->have[j] * c->t[i * c->count + j];
        }
        distance += e->have[i] * (sum - c->t[inside]);
        bandwidth += e->have[i] * (e->degree[i] - c->b[inside]);
    }
    o->bandwidth_mbps = bandwidth / 2;
    o->tier_sum = (uint32_t)(distance / 2);
    e->work += count_present(e) * count_present(e);
    if (best == NULL) {
        return 0;
    }
    const int order = compare_u64(best->bandwidth_mbps, o->bandwidth_mbps);
    return order != 0 ? order : compare_u64(o->tier_sum, best->tier_sum);
}

/* ---- the order of the entries ---- */

typedef int (*stage_fn)(struct weft_eval *e, const struct weft_objective *best,
                        struct weft_objective *o);
enum { STAGE_COUNT = 5 };
static const stage_fn stages[WEFT_POLICY_COUNT][STAGE_COUNT] = {
    [WEFT_POLICY_PERFORMANCE] = {stage_links, stage_place, stage_groups, stage_nics, stage_sums},
    [WEFT_POLICY_PACKED] = {stage_groups, stage_links, stage_place, stage_nics, stage_sums},
};

/* Entry 8: the set with the lowest device that only one of them has. Of each class both have the
 * lowest ones, so that device is the first one that the smaller count lacks. */
static bool comes_first(const struct weft_eval *e)
{
    uint16_t lowest = UINT16_MAX;
    bool candidate_has = false;
    for (size_t i = 0; i < e->a->classes.count; i++) {
        const uint16_t fewer = e->have[i] < e->best_have[i] ? e->have[i] : e->best_have[i];
        if (e->have[i] == e->best_have[i]) {
            continue;
        }
        const uint16_t rank = e->ranks[e->first[i] + fewer - e->base[i]];
        if (rank < lowest) {
            lowest = rank;
            candidate_has = e->have[i] > fewer;
        }
    }
    return candidate_has;
}

bool weft_eval_try(struct weft_eval *e)
{
    struct weft_objective o = {0};
    int order = 0;
    e->cut_pending = false;
    for (size_t s = 0; s < STAGE_COUNT; s++) {
        const bool undecided = e->have_best && order == 0;
        const int stage = stages[e->policy][s](e, undecided ? &e->best : NULL, &o);
        order = undecided ? stage : order;
        if (order > 0) {
            return false;
        }
    }
    if (e->have_best && order == 0 && !comes_first(e)) {
        return false;
    }
    if (e->cut_pending && exact_cut(e, o.min_cut_mbps) < o.min_cut_mbps) {
        return false; /* no tie at entry 2 after all */
    }
    e->have_best = true;
    e->best = o;
    memcpy(e->best_have, e->have, e->a->classes.count * sizeof(*e->have));
    return true;
}

static uint32_t distinct_nics(const struct weft_eval *e, const uint64_t *set)
{
    const struct weft_allocator *a = e->a;
    memset(e->nic_scratch, 0, a->nic_words * sizeof(*e->nic_scratch));
    for (size_t rank = 0; rank < a->n; rank++) {
        for (size_t w = 0; weft_bit_get(set, rank) && w < a->nic_words; w++) {
            e->nic_scratch[w] |= a->near_nics[rank * a->nic_words + w];
        }
    }
    return (uint32_t)weft_bit_count(e->nic_scratch, a->nic_words);
}

void weft_eval_objective(struct weft_eval *e, const uint64_t *set, struct weft_objective *ret)
{
    const bool skip_cut = e->skip_cut;
    weft_eval_count_groups(e);
    weft_eval_load(e, set);
    e->skip_cut = count_present(e) > CUT_SHOWN_CLASSES_MAX;
    *ret = (struct weft_objective){0};
    (void)stage_links(e, NULL, ret);
    (void)stage_place(e, NULL, ret);
    (void)stage_groups(e, NULL, ret);
    (void)stage_sums(e, NULL, ret);
    for (size_t i = NONE; next_present(e, &i);) {
        ret->nic_near += has_near_nic(e->a, e->a->classes.rep[i]) ? e->have[i] : 0;
    }
    ret->nic_distinct = distinct_nics(e, set);
    e->skip_cut = skip_cut;
}
