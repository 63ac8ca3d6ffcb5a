/* SPDX-License-Identifier: Apache-2.0 */
/* The key of allocation.md for one candidate set, computed entry by entry and only as far as needed
 * to tell whether the candidate beats the best one so far. */
#include "pkg/allocator/allocator-internal.h"

#include <errno.h>
#include <string.h>

/* Sets below this size get their cut as fast as a bound by groups. */
enum { GROUP_BOUND_MIN = 12 };

/* ---- set-up ---- */

/* Hands out aligned pieces of the arena; with base NULL it only adds up the sizes. */
struct carver {
    char *base;
    size_t used;
};

static void *carve(struct carver *c, size_t count, size_t size)
{
    void *piece = c->base != NULL ? c->base + c->used : NULL;
    c->used += (count * size + 15) / 16 * 16;
    return piece;
}

static void carve_all(struct weft_eval *e, struct carver *c, size_t size)
{
    const struct weft_allocator *a = e->a;
    e->available = carve(c, a->words, sizeof(uint64_t));
    e->required = carve(c, a->words, sizeof(uint64_t));
    e->candidates = carve(c, a->words, sizeof(uint64_t));
    e->whole = carve(c, a->words, sizeof(uint64_t));
    e->group_available = carve(c, a->group_count, sizeof(uint16_t));
    e->group_intact = carve(c, a->group_count, sizeof(bool));
    e->set = carve(c, a->words, sizeof(uint64_t));
    e->members = carve(c, a->n + 1, sizeof(uint16_t));
    e->best_set = carve(c, a->words, sizeof(uint64_t));
    e->nic_scratch = carve(c, a->nic_words, sizeof(uint64_t));
    e->walk_scratch = carve(c, 2 * a->words, sizeof(uint64_t));
    e->seen = carve(c, a->n + 1, sizeof(uint8_t));
    e->cut_scratch = carve(c, weft_min_cut_scratch(size), sizeof(uint64_t));
}

int weft_eval_init(struct weft_eval *e, const struct weft_allocator *a, size_t size)
{
    *e = (struct weft_eval){.a = a, .size = size};
    struct carver c = {0};
    carve_all(e, &c, size);
    e->arena = weft_calloc(1, c.used);
    if (e->arena == NULL) {
        return -ENOMEM;
    }
    c = (struct carver){.base = e->arena};
    carve_all(e, &c, size);
    return 0;
}

void weft_eval_done(struct weft_eval *e)
{
    if (e != NULL) {
        weft_free(e->arena);
        *e = (struct weft_eval){0};
    }
}

void weft_eval_begin(struct weft_eval *e)
{
    const struct weft_allocator *a = e->a;
    for (size_t g = 0; g < a->group_count; g++) {
        const uint64_t *group = &a->groups[g * a->words];
        size_t count = 0;
        bool intact = true;
        for (size_t w = 0; w < a->words; w++) {
            count += (size_t)__builtin_popcountll(group[w] & e->available[w]);
            /* A holds healthy devices only */
            intact = intact && (group[w] & ~e->whole[w]) == 0;
        }
        e->group_available[g] = (uint16_t)count;
        e->group_intact[g] = intact;
    }
}

void weft_eval_clear(struct weft_eval *e)
{
    memset(e->set, 0, e->a->words * sizeof(*e->set));
    e->count = 0;
}

void weft_eval_add(struct weft_eval *e, size_t rank)
{
    weft_bit_set(e->set, rank);
    e->members[e->count++] = (uint16_t)rank;
}

void weft_eval_remove(struct weft_eval *e, size_t rank)
{
    weft_bit_clear(e->set, rank);
    for (size_t i = 0; i < e->count; i++) {
        if (e->members[i] == rank) {
            e->members[i] = e->members[--e->count];
            return;
        }
    }
}

/* ---- the entries ---- */

/* Takes all devices that links of left reach from todo out of left. */
static void flood(const struct weft_allocator *a, uint64_t *left, uint64_t *todo)
{
    for (size_t w = 0; w < a->words;) {
        if (todo[w] == 0) {
            w++;
            continue;
        }
        const size_t at = w * 64 + (size_t)__builtin_ctzll(todo[w]);
        weft_bit_clear(todo, at);
        weft_bit_clear(left, at);
        size_t lowest = w;
        for (size_t v = 0; v < a->words; v++) {
            const uint64_t reached = a->linked[at * a->words + v] & left[v];
            todo[v] |= reached;
            lowest = reached != 0 && v < lowest ? v : lowest;
        }
        w = lowest;
    }
}

/* Entry 1: floods from the lowest member not yet reached. */
static uint32_t count_components(struct weft_eval *e)
{
    const struct weft_allocator *a = e->a;
    uint64_t *left = e->walk_scratch;
    uint64_t *todo = e->walk_scratch + a->words;
    uint32_t components = 0;
    memcpy(left, e->set, a->words * sizeof(*left));
    memset(todo, 0, a->words * sizeof(*todo));
    for (size_t w = 0; w < a->words; w++) {
        while (left[w] != 0) {
            weft_bit_set(todo, w * 64 + (size_t)__builtin_ctzll(left[w]));
            flood(a, left, todo);
            components++;
        }
    }
    return components;
}

/* Bounds of entry 2 that cost k^2: the smallest degree is a cut; and every bipartition of k devices
 * is crossed by at least k - 1 pairs. */
static void cut_bounds(const struct weft_eval *e, uint64_t *ret_low, uint64_t *ret_high)
{
    const struct weft_allocator *a = e->a;
    uint64_t weakest = UINT64_MAX;
    *ret_high = UINT64_MAX;
    for (size_t i = 0; i < e->count; i++) {
        const uint64_t *row = &a->b[(size_t)e->members[i] * a->n];
        uint64_t degree = 0;
        for (size_t j = 0; j < e->count; j++) {
            const uint64_t b = row[e->members[j]];
            degree += b;
            weakest = i != j && b < weakest ? b : weakest;
        }
        *ret_high = degree < *ret_high ? degree : *ret_high;
    }
    *ret_low = weakest * (e->count - 1);
}

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* The cut along each group that divides the set is an upper bound, too: where islands hang together
 * by weak links only, it is far below the smallest degree. Stops at the first below enough. */
static uint64_t group_cut_bound(struct weft_eval *e, uint64_t high, uint64_t enough)
{
    const struct weft_allocator *a = e->a;
    for (size_t g = 0; g < a->group_count && high >= enough; g++) {
        const uint64_t *group = &a->groups[g * a->words];
        uint64_t cut = 0;
        size_t inside = 0;
        for (size_t i = 0; i < e->count && cut < high; i++) {
            if (!weft_bit_get(group, e->members[i])) {
                continue;
            }
            inside++;
            const uint64_t *row = &a->b[(size_t)e->members[i] * a->n];
            for (size_t j = 0; j < e->count; j++) {
                cut += weft_bit_get(group, e->members[j]) ? 0 : row[e->members[j]];
            }
        }
        e->work += e->count * (inside + 1);
        /* a cut of nothing is a group that holds all or none of the set */
        high = cut > 0 && cut < high ? cut : high;
    }
    return high;
}

static uint64_t exact_cut(struct weft_eval *e)
{
    e->work += e->count * e->count * e->count;
    return weft_min_cut(e->a, e->members, e->count, e->cut_scratch);
}

/* Entry 2 of a connected set. Where its bound only ties with the best, the exact cut waits until
 * the later entries say whether it matters (e->cut_pending). */
static int compare_cuts(struct weft_eval *e, const struct weft_objective *best,
                        struct weft_objective *o)
{
    const uint64_t enough = best != NULL ? best->min_cut_mbps : 0;
    uint64_t low = 0;
    uint64_t high = 0;
    cut_bounds(e, &low, &high);
    e->work += e->count * e->count;
    if (low < high && high >= enough && e->count >= GROUP_BOUND_MIN && !e->skip_cut) {
        high = group_cut_bound(e, high, enough);
    }
    if (high < enough) {
        return 1;
    }
    o->min_cut_mbps = high;
    if (low < high && !e->skip_cut) {
        e->cut_pending = best != NULL && high == enough;
        o->min_cut_mbps = e->cut_pending ? high : exact_cut(e);
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
    e->work += 8 * e->count * e->a->words;
    const int order = best != NULL ? compare_u64(o->components, best->components) : 0;
    if (order > 0 || o->components != 1 || e->count < 2) {
        return order;
    }
    const int cuts = compare_cuts(e, order == 0 ? best : NULL, o);
    return order != 0 ? order : cuts;
}

static int worst_unlinked(const struct weft_eval *e)
{
    const struct weft_allocator *a = e->a;
    int worst = -1;
    for (size_t i = 0; i < e->count; i++) {
        for (size_t j = i + 1; j < e->count; j++) {
            const size_t at = (size_t)e->members[i] * a->n + e->members[j];
            if (a->b[at] == 0 && a->t[at] > worst) {
                worst = a->t[at];
            }
        }
    }
    return worst;
}

static uint32_t count_places(const struct weft_eval *e, const uint16_t *places)
{
    uint32_t count = 0;
    memset(e->seen, 0, e->a->n);
    for (size_t i = 0; i < e->count; i++) {
        uint8_t *seen = &e->seen[places[e->members[i]]];
        count += *seen == 0;
        *seen = 1;
    }
    return count;
}

/* Entries 3 and 4. */
static int stage_place(struct weft_eval *e, const struct weft_objective *best,
                       struct weft_objective *o)
{
    o->worst_tier = worst_unlinked(e);
    o->sockets = count_places(e, e->a->socket);
    o->numa_nodes = count_places(e, e->a->numa);
    e->work += e->count * e->count;
    if (best == NULL) {
        return 0;
    }
    int order = o->worst_tier - best->worst_tier;
    order = order != 0 ? order : compare_u64(o->sockets, best->sockets);
    return order != 0 ? order : compare_u64(o->numa_nodes, best->numa_nodes);
}

/* Entry 5. */
static int stage_groups(struct weft_eval *e, const struct weft_objective *best,
                        struct weft_objective *o)
{
    const struct weft_allocator *a = e->a;
    o->broken_groups = o->leftover = 0;
    for (size_t g = 0; g < a->group_count; g++) {
        uint32_t taken = 0;
        for (size_t w = 0; w < a->words; w++) {
            taken += (uint32_t)__builtin_popcountll(a->groups[g * a->words + w] & e->set[w]);
        }
        if (taken > 0) {
            const uint32_t left = e->group_available[g] - taken;
            o->leftover += left;
            o->broken_groups += e->group_intact[g] && left > 0;
        }
    }
    e->work += a->group_count * a->words;
    if (best == NULL) {
        return 0;
    }
    const int order = compare_u64(o->broken_groups, best->broken_groups);
    return order != 0 ? order : compare_u64(o->leftover, best->leftover);
}

/* Entry 6. */
static int stage_nics(struct weft_eval *e, const struct weft_objective *best,
                      struct weft_objective *o)
{
    const struct weft_allocator *a = e->a;
    o->nic_near = 0;
    memset(e->nic_scratch, 0, a->nic_words * sizeof(*e->nic_scratch));
    for (size_t i = 0; i < e->count; i++) {
        uint64_t any = 0;
        for (size_t w = 0; w < a->nic_words; w++) {
            const uint64_t nics = a->near_nics[(size_t)e->members[i] * a->nic_words + w];
            e->nic_scratch[w] |= nics;
            any |= nics;
        }
        o->nic_near += any != 0;
    }
    o->nic_distinct = (uint32_t)weft_bit_count(e->nic_scratch, a->nic_words);
    e->work += e->count * a->nic_words;
    if (best == NULL) {
        return 0;
    }
    const int order = compare_u64(best->nic_near, o->nic_near);
    return order != 0 ? order : compare_u64(best->nic_distinct, o->nic_distinct);
}

/* Entry 7. */
static int stage_sums(struct weft_eval *e, const struct weft_objective *best,
                      struct weft_objective *o)
{
    const struct weft_allocator *a = e->a;
    o->bandwidth_mbps = 0;
    o->tier_sum = 0;
    for (size_t i = 0; i < e->count; i++) {
        for (size_t j = i + 1; j < e->count; j++) {
            const size_t at = (size_t)e->members[i] * a->n + e->members[j];
            o->bandwidth_mbps += a->b[at];
            o->tier_sum += a->t[at];
        }
    }
    e->work += e->count * e->count;
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

void weft_eval_objective(struct weft_eval *e, struct weft_objective *ret_objective)
{
    const bool skip_cut = e->skip_cut;
    e->skip_cut = false;
    for (size_t s = 0; s < STAGE_COUNT; s++) {
        (void)stages[e->policy][s](e, NULL, ret_objective);
    }
    e->skip_cut = skip_cut;
}

/* Entry 8: the set with the lowest device that only one of them has. */
static int compare_sets(const struct weft_allocator *a, const uint64_t *x, const uint64_t *y)
{
    for (size_t w = 0; w < a->words; w++) {
        const uint64_t differ = x[w] ^ y[w];
        if (differ != 0) {
            return (x[w] & (differ & -differ)) != 0 ? -1 : 1;
        }
    }
    return 0;
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
    if (e->have_best && order == 0 && compare_sets(e->a, e->set, e->best_set) >= 0) {
        return false;
    }
    if (e->cut_pending && exact_cut(e) < o.min_cut_mbps) {
        return false; /* no tie at entry 2 after all */
    }
    e->have_best = true;
    e->best = o;
    memcpy(e->best_set, e->set, e->a->words * sizeof(*e->set));
    return true;
}
