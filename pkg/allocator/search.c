/* SPDX-License-Identifier: Apache-2.0 */
/* The search without tables. Interchangeable devices are counted, not told apart: a candidate is
 * how many of each class it takes, always the lowest of each (entry 8). Where there are few such
 * count vectors all are tried; else a bounded search climbs from several starts, and says so. */
#include <errno.h>
#include <string.h>

#include "pkg/allocator/allocator-internal.h"

enum {
    STARTS_MAX = 24,
    CUT_EXACT_MAX = 48, /* larger sets are compared by the bound of their cut while climbing */
};
/* What a bounded search may spend, in weft_eval.work: about a tenth of a second. */
#define WORK_MAX UINT64_C(60000000)

/* The devices that may be chosen freely (candidates without M), by class. */
struct classes {
    struct weft_eval *e;
    size_t count;
    size_t free;     /* how many are to be chosen beside M */
    uint16_t *ranks; /* of all classes, one after the other, ascending inside each */
    uint16_t *first; /* by class: where it begins in ranks; count + 1 entries */
    uint16_t *taken; /* by class: how many the candidate has */
    void *arena;
};

static size_t class_size(const struct classes *c, size_t i)
{
    return (size_t)(c->first[i + 1] - c->first[i]);
}

static void classes_done(struct classes *c)
{
    weft_free(c->arena);
}
WEFT_DEFINE_AUTO_VALUE(struct classes, classes_done)

static int classes_init(struct classes *c, struct weft_eval *e)
{
    const struct weft_allocator *a = e->a;
    uint16_t *room = weft_calloc(3 * (a->n + 1), sizeof(*room));
    *c = (struct classes){.e = e, .arena = room};
    if (room == NULL) {
        return -ENOMEM;
    }
    c->ranks = room;
    c->first = room + a->n + 1;
    c->taken = room + 2 * (a->n + 1);
    c->free = e->size - weft_bit_count(e->required, a->words);
    uint16_t at = 0;
    for (size_t class = 0; class < a->n; class ++) {
        c->first[c->count] = at;
        for (size_t i = 0; i < a->n; i++) {
            if (a->class_of[i] == class && weft_bit_get(e->candidates, i) &&
                !weft_bit_get(e->required, i)) {
                c->ranks[at++] = (uint16_t)i;
            }
        }
        c->count += at > c->first[c->count];
    }
    c->first[c->count] = at;
    return 0;
}

/* The number of count vectors, or more than the limit if there are more. ways: room for free + 1.
 */
static uint64_t count_vectors(const struct classes *c, uint64_t *ways)
{
    memset(ways, 0, (c->free + 1) * sizeof(*ways));
    ways[0] = 1;
    for (size_t i = 0; i < c->count; i++) {
        const size_t size = class_size(c, i);
        for (size_t total = c->free; total > 0; total--) {
            for (size_t take = 1; take <= size && take <= total; take++) {
                ways[total] += ways[total - take];
            }
            if (ways[total] > WEFT_COUNT_VECTORS_MAX) {
                ways[total] = WEFT_COUNT_VECTORS_MAX + 1;
            }
        }
    }
    return ways[c->free];
}

/* Spreads left devices over the classes from i on, as many as fit in each. */
static void spread(const struct classes *c, size_t i, size_t left)
{
    for (; i < c->count; i++) {
        const size_t size = class_size(c, i);
        c->taken[i] = (uint16_t)(left < size ? left : size);
        left -= c->taken[i];
    }
}

/* The next count vector in descending lexicographic order; false after the last. */
static bool next_vector(const struct classes *c)
{
    size_t behind = 0; /* devices taken, and room, in the classes after i */
    size_t room = 0;
    for (size_t i = c->count; i-- > 0;) {
        if (c->taken[i] > 0 && behind < room) {
            c->taken[i]--;
            spread(c, i + 1, behind + 1);
            return true;
        }
        behind += c->taken[i];
        room += class_size(c, i);
    }
    return false;
}

static void make_candidate(const struct classes *c)
{
    struct weft_eval *e = c->e;
    weft_eval_clear(e);
    for (size_t i = 0; i < e->a->n; i++) {
        if (weft_bit_get(e->required, i)) {
            weft_eval_add(e, i);
        }
    }
    for (size_t i = 0; i < c->count; i++) {
        for (size_t k = 0; k < c->taken[i]; k++) {
            weft_eval_add(e, c->ranks[c->first[i] + k]);
        }
    }
}

static void try_all(const struct classes *c)
{
    spread(c, 0, c->free);
    do {
        make_candidate(c);
        (void)weft_eval_try(c->e);
    } while (next_vector(c));
}

/* ---- the bounded search ---- */

static bool may_spend(const struct classes *c)
{
    return c->e->work < WORK_MAX;
}

static void take(const struct classes *c, size_t class)
{
    weft_eval_add(c->e, c->ranks[c->first[class] + c->taken[class]]);
    c->taken[class]++;
}

static void give_back(const struct classes *c, size_t class)
{
    c->taken[class]--;
    weft_eval_remove(c->e, c->ranks[c->first[class] + c->taken[class]]);
}

/* Adds the device that makes the best set of its size. Without work left, any. */
static void grow_once(const struct classes *c)
{
    struct weft_eval *e = c->e;
    size_t best = c->count;
    e->have_best = false;
    for (size_t i = 0; i < c->count; i++) {
        if (c->taken[i] == class_size(c, i) || (best < c->count && !may_spend(c))) {
            continue;
        }
        take(c, i);
        best = weft_eval_try(e) ? i : best;
        give_back(c, i);
    }
    take(c, best);
}

/* Tries to better the set, which is e->best, by one device of another class for one of out. */
static bool climb_once(const struct classes *c, size_t out)
{
    struct weft_eval *e = c->e;
    bool better = false;
    for (size_t in = 0; in < c->count && c->taken[out] > 0 && may_spend(c); in++) {
        if (in == out || c->taken[in] == class_size(c, in)) {
            continue;
        }
        give_back(c, out);
        take(c, in);
        if (weft_eval_try(e)) {
            better = true;
            continue;
        }
        give_back(c, in);
        take(c, out);
    }
    return better;
}

static void climb(const struct classes *c)
{
    bool better = true;
    while (better && may_spend(c)) {
        better = false;
        for (size_t out = 0; out < c->count; out++) {
            better = climb_once(c, out) || better;
        }
    }
}

/* From M and one first device to a set that no swap betters. */
static void climb_from(const struct classes *c, size_t start)
{
    struct weft_eval *e = c->e;
    memset(c->taken, 0, c->count * sizeof(*c->taken));
    make_candidate(c);
    take(c, start);
    while (e->count < e->size) {
        grow_once(c);
    }
    e->have_best = false;
    (void)weft_eval_try(e);
    climb(c);
}

/* The best of all starts so far, beside e->best, which a climb uses up. */
struct record {
    bool have;
    struct weft_objective objective;
    uint64_t *set;
};

static void keep_better(struct weft_eval *e, struct record *r)
{
    const size_t bytes = e->a->words * sizeof(*r->set);
    if (r->have) {
        /* meet again: the record as the best, the new one as the candidate */
        weft_eval_clear(e);
        for (size_t i = 0; i < e->a->n; i++) {
            if (weft_bit_get(e->best_set, i)) {
                weft_eval_add(e, i);
            }
        }
        e->best = r->objective;
        memcpy(e->best_set, r->set, bytes);
        (void)weft_eval_try(e);
    }
    r->have = true;
    r->objective = e->best;
    memcpy(r->set, e->best_set, bytes);
}

static int search_bounded(const struct classes *c)
{
    struct weft_eval *e = c->e;
    weft_autofree uint64_t *set = weft_calloc(e->a->words, sizeof(*set));
    if (set == NULL) {
        return -ENOMEM;
    }
    struct record record = {.set = set};
    e->skip_cut = e->size > CUT_EXACT_MAX;
    /* spread over the classes, so that few starts still see all of the machine */
    const size_t step = c->count / STARTS_MAX + 1;
    for (size_t start = 0; start < c->count && (start == 0 || may_spend(c)); start += step) {
        climb_from(c, start);
        keep_better(e, &record);
    }
    e->best = record.objective;
    memcpy(e->best_set, record.set, e->a->words * sizeof(*set));
    return 0;
}

int weft_search(struct weft_eval *e, bool *ret_exact)
{
    weft_auto(classes_done) struct classes c;
    weft_autofree uint64_t *ways = weft_calloc(e->size + 1, sizeof(*ways));
    if (classes_init(&c, e) < 0 || ways == NULL) {
        return -ENOMEM;
    }
    *ret_exact = count_vectors(&c, ways) <= WEFT_COUNT_VECTORS_MAX;
    if (*ret_exact) {
        try_all(&c);
        return 0;
    }
    return search_bounded(&c);
}
