/* SPDX-License-Identifier: Apache-2.0 */
/* The best set from the tables of at most 16 devices, of which as few are looked at as will do:
 * entries 1 to 4 do not depend on the request, so the best ones by those are known in order; where
 * they are too many, one set for each way of taking so many of each class of interchangeable
 * devices, but for ways that break more groups than a set which is there already. The kubelet
 * admits no pod meanwhile, and a call over its socket takes some hundred microseconds: none of this
 * may be felt beside it. */
#include "pkg/allocator/eval-internal.h"

/* What one pick derives from its request. */
struct pick {
    const struct weft_eval *e;
    /* Sum of |g & A| over the groups of four bits of a touched mask. A table for eight bits took
     * longer to fill than most requests have sets to look at. */
    uint16_t leftover[16][16];
    size_t leftover_count;
    uint64_t intact;
    uint32_t all;   /* the machine's devices */
    uint64_t first; /* the best entries 1 to 4 that there are; not of policy packed */
    uint64_t best_key;
    uint32_t best;
    size_t room[WEFT_TABLE_DEVICES_MAX + 1]; /* by class: free devices of it and those after it */
};

static void prepare_leftover(struct pick *p)
{
    const struct weft_allocator *a = p->e->a;
    p->leftover_count = (a->group_count + 3) / 4;
    for (size_t part = 0; part < p->leftover_count; part++) {
        p->leftover[part][0] = 0;
        for (size_t v = 1; v < 16; v++) {
            const size_t g = part * 4 + (size_t)__builtin_ctzll(v);
            const uint16_t available = g < a->group_count ? p->e->group_available[g] : 0;
            p->leftover[part][v] = (uint16_t)(p->leftover[part][v & (v - 1)] + available);
        }
    }
}

static void prepare(struct pick *p, const struct weft_eval *e)
{
    const struct weft_allocator *a = e->a;
    p->e = e;
    p->intact = 0;
    p->all = (uint32_t)((1U << a->n) - 1);
    p->best_key = UINT64_MAX;
    p->best = 0;
    p->first = 0;
    prepare_leftover(p);
    for (size_t g = 0; g < a->group_count; g++) {
        p->intact |= (uint64_t)p->e->group_intact[g] << g;
    }
    p->room[a->classes.count] = 0;
    for (size_t class = a->classes.count; class > 0; class --) {
        p->room[class - 1] = p->room[class] + weft_eval_free(e, class - 1);
    }
}

/* As __builtin_popcountll, which is a call where the processor is not known to have it. */
static inline uint64_t count_bits(uint64_t x)
{
    x -= x >> 1 & UINT64_C(0x5555555555555555);
    x = (x & UINT64_C(0x3333333333333333)) + (x >> 2 & UINT64_C(0x3333333333333333));
    x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return x * UINT64_C(0x0101010101010101) >> 56;
}

static inline uint64_t touched_by(const struct pick *p, uint32_t set)
{
    const struct weft_tables *t = p->e->a->tables;
    return t->touched[0][set & 255] | t->touched[1][set >> 8];
}

/* Entry 5a: groups that are touched by the set, and by devices that it leaves. */
static inline uint64_t broken_groups(const struct pick *p, uint64_t touched, uint32_t left)
{
    return count_bits(touched & touched_by(p, left) & p->intact);
}

/* Entry 5b. */
static uint64_t leftover(const struct pick *p, uint32_t set, uint64_t touched)
{
    const struct weft_tables *t = p->e->a->tables;
    uint64_t sum = 0;
    for (size_t part = 0; part < p->leftover_count; part++) {
        sum += p->leftover[part][touched >> (4 * part) & 15];
    }
    return sum - t->memberships[0][set & 255] - t->memberships[1][set >> 8];
}

/* The whole key as one number, the smallest the best; UINT64_MAX as soon as it is surely greater
 * than the best so far. Bits: performance 16 first, 8 broken, 16 leftover, 16 last; packed 8
 * broken, 16 leftover, 16 first, 16 last. */
static uint64_t key_of(const struct pick *p, uint32_t set, uint64_t best)
{
    const struct weft_tables *t = p->e->a->tables;
    const uint64_t first = t->first[set];
    const bool packed = p->e->policy == WEFT_POLICY_PACKED;
    if (!packed && first > best >> 40) {
        return UINT64_MAX;
    }
    const uint64_t touched = touched_by(p, set);
    const uint64_t broken = broken_groups(p, touched, p->all & ~set);
    if (packed ? broken > best >> 48 : (first << 8 | broken) > best >> 32) {
        return UINT64_MAX;
    }
    const uint64_t left = leftover(p, set, touched);
    return packed ? broken << 48 | left << 32 | first << 16 | t->last[set]
                  : first << 40 | broken << 32 | left << 16 | t->last[set];
}

static void try_set(struct pick *p, uint32_t set)
{
    const uint64_t key = key_of(p, set, p->best_key);
    if (key < p->best_key) {
        p->best_key = key;
        p->best = set;
    }
}

/* ---- by count of each class ---- */

/* In how many ways so many devices can be taken, if it matters only how many of each class. */
static size_t count_vectors(const struct pick *p, size_t free)
{
    size_t ways[WEFT_TABLE_DEVICES_MAX + 1] = {1}; /* by how many are taken so far */
    for (size_t class = 0; class < p->e->a->classes.count; class ++) {
        const size_t most = weft_eval_free(p->e, class);
        for (size_t taken = free; taken > 0; taken--) {
            for (size_t of_it = 1; of_it <= most && of_it <= taken; of_it++) {
                ways[taken] += ways[taken - of_it];
            }
        }
    }
    return ways[free];
}

/* Can no set with these devices, and without those that are left, be better than the best so far?
 * More devices on either side only break more groups. */
static bool is_beaten(const struct pick *p, uint32_t set, uint32_t left)
{
    const uint64_t broken = broken_groups(p, touched_by(p, set), left);
    return p->e->policy == WEFT_POLICY_PACKED ? broken > p->best_key >> 48
                                              : (p->first << 8 | broken) > p->best_key >> 32;
}

/* Takes from all to none of a class's free devices, the lowest first (entry 8), and goes on with
 * the next class. At most 16 deep: each class has a device. */
static void take_classes(struct pick *p, size_t class, size_t free, uint32_t set, uint32_t left)
{
    if (free == 0) {
        try_set(p, set);
        return;
    }
    const struct weft_eval *e = p->e;
    const uint16_t *ranks = &e->ranks[e->first[class]];
    const size_t all = weft_eval_free(e, class);
    size_t taken = all < free ? all : free;
    for (size_t i = 0; i < all; i++) {
        *(i < taken ? &set : &left) |= 1U << ranks[i];
    }
    for (;; taken--) {
        if (free - taken > p->room[class + 1]) {
            return; /* fewer of this class would be too few */
        }
        if (!is_beaten(p, set, left)) {
            take_classes(p, class + 1, free - taken, set, left);
        }
        if (taken == 0) {
            return;
        }
        set &= ~(1U << ranks[taken - 1]);
        left |= 1U << ranks[taken - 1];
    }
}

/* ---- by entries 1 to 4 ---- */

/* Does the set have all that is required, and nothing that is not available? */
static bool is_allowed(const struct pick *p, uint32_t set)
{
    const struct weft_eval *e = p->e;
    const uint32_t required = (uint32_t)e->required[0];
    const uint32_t allowed = (uint32_t)e->candidates[0] | required;
    return (set & ~allowed) == 0 && (required & ~set) == 0;
}

/* Where the sets of the size begin that are the best by entries 1 to 4, and how many those are,
 * among them some that are not allowed; counted up to most. */
static uint32_t find_first(const struct pick *p, size_t most, uint32_t *ret_count)
{
    const struct weft_tables *t = p->e->a->tables;
    const uint32_t end = t->start[p->e->size + 1];
    uint32_t from = t->start[p->e->size];
    while (!is_allowed(p, t->order[from])) { /* there is one: all of M with some candidates */
        from++;
    }
    uint32_t to = from + 1;
    while (to < end && to - from < most && t->first[t->order[to]] == t->first[t->order[from]]) {
        to++;
    }
    *ret_count = to - from;
    return from;
}

static void walk(struct pick *p, uint32_t from, uint32_t count)
{
    const struct weft_tables *t = p->e->a->tables;
    for (uint32_t i = from; i < from + count; i++) {
        if (is_allowed(p, t->order[i])) {
            try_set(p, t->order[i]);
        }
    }
}

void weft_pick_by_tables(struct weft_eval *e)
{
    const size_t free = e->size - weft_bit_count(e->required, e->a->words);
    struct pick p;
    prepare(&p, e);
    const size_t vectors = count_vectors(&p, free);
    uint32_t from = 0;
    uint32_t count = UINT32_MAX;
    if (e->policy == WEFT_POLICY_PERFORMANCE) {
        from = find_first(&p, vectors + 1, &count); /* what comes first decides about the rest */
        p.first = e->a->tables->first[e->a->tables->order[from]];
    }
    if (vectors < count) {
        take_classes(&p, 0, free, (uint32_t)e->required[0], 0);
    } else {
        walk(&p, from, count);
    }
    e->best_set[0] = p.best;
}
