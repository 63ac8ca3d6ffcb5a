/* SPDX-License-Identifier: Apache-2.0 */
/* The best set from the tables of at most 16 devices, of which as few are looked at as will do:
 * entries 1 to 4 do not depend on the request, so the best ones by those are known in order; where
 * they are too many, one set for each way of taking so many of each class of interchangeable
 * devices, but for ways that break more groups than a set which is there already. The kubelet
 * admits no pod meanwhile, and a call over its socket takes some hundred microseconds: none of this
 * may be felt beside it. */
#include "pkg/allocator/eval-internal.h"

enum {
    FEW_SETS = 16,   /* so many are looked at before it is worked out whether classes have fewer */
    WAYS_PER_SET = 8 /* most ways by class are passed over unseen; measured */
};

/* The free devices of a class. */
struct kind {
    uint64_t groups; /* that the class is in */
    uint64_t behind; /* groups of the free devices of the kinds after it */
    uint32_t free;
    uint8_t count; /* of free */
    uint8_t room;  /* free devices of the kinds after it */
    uint8_t class;
    uint8_t twin; /* the class of a kind before it that it can be swapped with, or its own */
};

/* What one pick derives from its request. */
struct pick {
    const struct weft_allocator *a;
    const struct weft_tables *t;
    bool packed;
    size_t size;
    uint32_t available, required, allowed; /* A, M, and M with the candidates */
    /* Sum of |g & A| over the groups of four bits of a touched mask. A table for eight bits took
     * longer to fill than most requests have sets to look at. */
    uint16_t leftover[16][16];
    size_t leftover_count;
    uint64_t intact;
    uint64_t first; /* the best entries 1 to 4 that there are; not of policy packed */
    uint64_t best_key;
    uint32_t best;
    struct kind kinds[WEFT_TABLE_DEVICES_MAX + 1]; /* and one without devices */
    size_t kind_count;
    uint8_t taken[WEFT_TABLE_DEVICES_MAX]; /* by class, where classes after it are to be taken */
};

/* As __builtin_popcountll, which is a call where the processor is not known to have it. */
static inline uint32_t count_bits(uint64_t x)
{
    x -= x >> 1 & UINT64_C(0x5555555555555555);
    x = (x & UINT64_C(0x3333333333333333)) + (x >> 2 & UINT64_C(0x3333333333333333));
    x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (uint32_t)(x * UINT64_C(0x0101010101010101) >> 56);
}

static inline uint32_t highest_bit(uint32_t x)
{
    return UINT32_C(1) << (31 - __builtin_clz(x));
}

static inline uint64_t touched_by(const struct weft_tables *t, uint32_t set)
{
    return t->touched[0][set & 255] | t->touched[1][set >> 8];
}

/* ---- what the request says of groups and classes ---- */

static void prepare_groups(struct pick *p, uint32_t whole)
{
    const struct weft_allocator *a = p->a;
    p->leftover_count = (a->group_count + 3) / 4;
    for (size_t part = 0; part < p->leftover_count; part++) {
        uint16_t *sums = p->leftover[part];
        sums[0] = 0;
        for (size_t bit = 0; bit < 4; bit++) {
            const size_t g = part * 4 + bit;
            const uint32_t group = g < a->group_count ? (uint32_t)a->groups[g] : 0;
            const uint32_t available = count_bits(group & p->available);
            /* A holds healthy devices only */
            p->intact |= (uint64_t)(group != 0 && (group & ~whole) == 0) << g;
            for (size_t v = 0; v < (size_t)1 << bit; v++) {
                sums[v + ((size_t)1 << bit)] = (uint16_t)(sums[v] + available);
            }
        }
    }
}

/* Can the class be swapped with its twins in this request, too? Of an empty node's it can; others
 * are rarely alike, so they are not compared. */
static bool is_whole(const struct pick *p, size_t class, uint32_t whole)
{
    return (p->t->members[class] & ~(p->allowed & ~p->required & whole)) == 0;
}

/* The class's nearest twin that is whole as it is, or itself. */
static size_t find_twin(const struct pick *p, size_t class, uint32_t whole)
{
    size_t at = class;
    if (!is_whole(p, class, whole)) {
        return class;
    }
    do {
        at = p->t->twin[at];
    } while (!is_whole(p, at, whole) && p->t->twin[at] != at);
    return is_whole(p, at, whole) ? at : class;
}

static void list_kinds(struct pick *p, uint32_t whole)
{
    const uint32_t candidates = p->allowed & ~p->required;
    p->kind_count = 0;
    for (size_t class = 0; class < p->a->classes.count; class ++) {
        const uint32_t free = p->t->members[class] & candidates;
        if (free != 0) {
            p->kinds[p->kind_count++] = (struct kind){.groups = p->t->groups[class],
                                                      .free = free,
                                                      .count = (uint8_t)count_bits(free),
                                                      .class = (uint8_t) class,
                                                      .twin = (uint8_t)find_twin(p, class, whole)};
        }
    }
    p->kinds[p->kind_count] = (struct kind){0};
    for (size_t i = p->kind_count; i > 0; i--) {
        p->kinds[i - 1].room = (uint8_t)(p->kinds[i].room + p->kinds[i].count);
        p->kinds[i - 1].behind = p->kinds[i].behind | p->kinds[i].groups;
    }
}

static void prepare(struct pick *p, const struct weft_eval *e)
{
    p->a = e->a;
    p->t = e->a->tables;
    p->packed = e->policy == WEFT_POLICY_PACKED;
    p->size = e->size;
    p->available = (uint32_t)e->available[0];
    p->required = (uint32_t)e->required[0];
    p->allowed = (uint32_t)e->candidates[0] | p->required;
    p->intact = 0;
    p->first = 0;
    p->best_key = UINT64_MAX;
    p->best = 0;
    prepare_groups(p, (uint32_t)e->whole[0]);
}

/* ---- the key ---- */

/* Entry 5b. */
static uint64_t leftover(const struct pick *p, uint32_t set, uint64_t touched)
{
    const struct weft_tables *t = p->t;
    uint64_t sum = 0;
    for (size_t part = 0; part < p->leftover_count; part++) {
        sum += p->leftover[part][touched >> (4 * part) & 15];
    }
    return sum - t->memberships[0][set & 255] - t->memberships[1][set >> 8];
}

/* Compares the set with the best one so far. The whole key is one number, the smallest the best;
 * its bits: performance 16 first, 8 broken, 16 leftover, 16 last; packed 8 broken, 16 leftover, 16
 * first, 16 last. Entry 5a: a group is broken that is touched by the set, and by a device that it
 * leaves. What is surely greater than the best is not worked out to the end. */
static void try_set(struct pick *p, uint32_t set, uint64_t touched, uint64_t left)
{
    const uint64_t broken = count_bits(touched & left & p->intact);
    uint64_t key = 0;
    if (p->packed) {
        key = broken << 48 | leftover(p, set, touched) << 32;
        if (key >> 32 > p->best_key >> 32) {
            return;
        }
        key |= (uint64_t)p->t->first[set] << 16;
    } else {
        key = (uint64_t)p->t->first[set] << 40 | broken << 32;
        if (key >> 32 > p->best_key >> 32) {
            return;
        }
        key |= leftover(p, set, touched) << 16;
    }
    if (key >> 16 > p->best_key >> 16) {
        return;
    }
    key |= p->t->last[set];
    if (key < p->best_key) {
        p->best_key = key;
        p->best = set;
    }
}

/* ---- by count of each class ---- */

/* In how many ways so many devices can be taken, if it matters only how many of each class. */
static size_t count_vectors(const struct pick *p, size_t want)
{
    size_t ways[WEFT_TABLE_DEVICES_MAX + 1] = {1}; /* by how many are taken so far */
    for (size_t i = 0; i < p->kind_count; i++) {
        for (size_t taken = want; taken > 0; taken--) {
            for (size_t of_it = 1; of_it <= p->kinds[i].count && of_it <= taken; of_it++) {
                ways[taken] += ways[taken - of_it];
            }
        }
    }
    return ways[want];
}

/* Can no set that touches these groups, and leaves devices of those, be better than the best so
 * far? More devices on either side only break more groups. */
static bool is_beaten(const struct pick *p, uint64_t touched, uint64_t left)
{
    const uint64_t broken = count_bits(touched & left & p->intact);
    return p->packed ? broken > p->best_key >> 48 : (p->first << 8 | broken) > p->best_key >> 32;
}

/* Takes from all to none of a kind's devices, the lowest ones (entry 8), and no more than of its
 * twin, and goes on with the next kind. touched and left: the groups of the devices taken, and of
 * those passed over. At most 16 deep: each kind has a device. */
static void take_kinds(struct pick *p, const struct kind *k, uint32_t want, uint32_t set,
                       uint64_t touched, uint64_t left)
{
    const uint32_t most = k->twin == k->class ? k->count : p->taken[k->twin];
    uint32_t taken = k->free;
    uint32_t count = k->count;
    for (; count > want || count > most; count--) {
        taken &= ~highest_bit(taken);
    }
    while (want - count <= k->room) { /* else fewer of this kind would be too few */
        const uint64_t also_touched = count > 0 ? touched | k->groups : touched;
        const uint64_t also_left = count < k->count ? left | k->groups : left;
        if (count == want) {
            try_set(p, set | taken, also_touched, also_left | k->behind);
        } else if (!is_beaten(p, also_touched, also_left)) {
            p->taken[k->class] = (uint8_t)count;
            take_kinds(p, k + 1, want - count, set | taken, also_touched, also_left);
        }
        if (count == 0) {
            return;
        }
        taken &= ~highest_bit(taken);
        count--;
    }
}

/* ---- by entries 1 to 4 ---- */

/* Does the set have all that is required, and nothing that is not available? */
static bool is_allowed(const struct pick *p, uint32_t set)
{
    return (set & ~p->allowed) == 0 && (p->required & ~set) == 0;
}

/* Where the sets of the size begin that are the best by entries 1 to 4, and where they end; among
 * them some that are not allowed. */
static uint32_t find_first(const struct pick *p, uint32_t *ret_end)
{
    const struct weft_tables *t = p->t;
    uint32_t from = t->start[p->size];
    while (!is_allowed(p, t->order[from])) { /* there is one: all of M with some candidates */
        from++;
    }
    const uint16_t first = t->first[t->order[from]];
    uint32_t low = from + 1;
    uint32_t high = t->start[p->size + 1];
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (t->first[t->order[middle]] == first) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *ret_end = low;
    return from;
}

static void walk(struct pick *p, uint32_t from, uint32_t end)
{
    const struct weft_tables *t = p->t;
    const uint32_t others = p->available;
    for (uint32_t i = from; i < end; i++) {
        const uint32_t set = t->order[i];
        if (is_allowed(p, set)) {
            try_set(p, set, touched_by(t, set), touched_by(t, others & ~set));
        }
    }
}

void weft_pick_by_tables(struct weft_eval *e)
{
    struct pick p;
    prepare(&p, e);
    const uint32_t want = (uint32_t)p.size - count_bits(p.required);
    uint32_t from = 0;
    uint32_t end = UINT32_MAX;
    if (!p.packed) {
        from = find_first(&p, &end); /* what comes first decides about the rest */
        p.first = p.t->first[p.t->order[from]];
    }
    const bool many = end - from > FEW_SETS;
    if (many) {
        list_kinds(&p, (uint32_t)e->whole[0]);
    }
    if (many && (p.packed || count_vectors(&p, want) / WAYS_PER_SET < end - from)) {
        take_kinds(&p, p.kinds, want, p.required, touched_by(p.t, p.required),
                   touched_by(p.t, p.available & ~p.allowed));
    } else {
        walk(&p, from, end);
    }
    e->best_set[0] = p.best;
}

/* ---- what a set is worth ---- */

static void add_groups(const struct weft_eval *e, uint32_t set, struct weft_objective *o)
{
    const uint32_t whole = (uint32_t)e->whole[0];
    const uint32_t others = (uint32_t)e->available[0] & ~set;
    for (uint64_t touched = touched_by(e->a->tables, set); touched != 0; touched &= touched - 1) {
        const uint32_t group = (uint32_t)e->a->groups[__builtin_ctzll(touched)];
        const uint32_t left = count_bits(group & others);
        o->leftover += left;
        o->broken_groups += left > 0 && (group & ~whole) == 0;
    }
}

static void add_nics(const struct weft_allocator *a, uint32_t set, struct weft_objective *o)
{
    o->nic_near = count_bits(set & a->tables->near);
    for (size_t w = 0; w < a->nic_words; w++) {
        uint64_t nics = 0;
        for (uint32_t left = set & a->tables->near; left != 0; left &= left - 1) {
            nics |= a->near_nics[(size_t)__builtin_ctz(left) * a->nic_words + w];
        }
        o->nic_distinct += count_bits(nics);
    }
}

/* Pairs of two classes, and of two devices of one. */
static void add_sums(const struct weft_allocator *a, uint32_t set, struct weft_objective *o)
{
    const struct weft_classes *c = &a->classes;
    uint32_t have[WEFT_TABLE_DEVICES_MAX];
    for (size_t i = 0; i < c->count; i++) {
        have[i] = count_bits(set & a->tables->members[i]);
        const uint64_t *b = &c->b[i * c->count];
        const uint8_t *t = &c->t[i * c->count];
        const uint32_t inside = have[i] * (have[i] - 1) / 2;
        o->bandwidth_mbps += inside * b[i];
        o->tier_sum += inside * t[i];
        for (size_t j = 0; have[i] > 0 && j < i; j++) {
            o->bandwidth_mbps += (uint64_t)have[i] * have[j] * b[j];
            o->tier_sum += have[i] * have[j] * t[j];
        }
    }
}

void weft_objective_by_tables(const struct weft_eval *e, const uint64_t *set,
                              struct weft_objective *ret)
{
    const uint32_t devices = (uint32_t)set[0];
    const struct weft_first *first = &e->a->tables->firsts[e->a->tables->first[devices]];
    *ret = (struct weft_objective){.components = first->components,
                                   .min_cut_mbps = first->min_cut_mbps,
                                   .worst_tier = first->worst_tier,
                                   .sockets = first->sockets,
                                   .numa_nodes = first->numa_nodes};
    add_groups(e, devices, ret);
    add_nics(e->a, devices, ret);
    add_sums(e->a, devices, ret);
}
