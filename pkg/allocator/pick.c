/* SPDX-License-Identifier: Apache-2.0 */
/* One request: clipped as allocation.md "Request" says, answered at once where there is no choice,
 * from the tables where they are, else by search. */
#include <errno.h>
#include <string.h>

#include "pkg/allocator/eval-internal.h"

/* Byte tables of one pick. */
struct pick {
    const struct weft_eval *e;
    uint32_t candidates[2][256]; /* packed combination to subset, by byte */
    uint16_t leftover[8][256];   /* sum of |g & A| over the groups of a byte of a touched mask */
    size_t leftover_bytes;
    uint64_t intact;
    uint32_t all; /* the machine's devices */
};

static void add_devices(const struct weft_allocator *a, const size_t *devices, size_t count,
                        const uint64_t *within, uint64_t *set)
{
    for (size_t i = 0; i < count; i++) {
        if (devices[i] < a->n && weft_bit_get(within, a->rank_of[devices[i]])) {
            weft_bit_set(set, a->rank_of[devices[i]]);
        }
    }
}

void weft_pick_give(struct weft_eval *e, const uint64_t *set, bool exact,
                    struct weft_choice *ret_choice)
{
    const struct weft_allocator *a = e->a;
    struct weft_choice c = {.devices = e->answer, .exact = exact};
    weft_eval_objective(e, set, &c.objective);
    for (size_t rank = 0; rank < a->n; rank++) {
        if (weft_bit_get(set, rank)) {
            c.devices[c.count++] = a->device_of[rank];
        }
    }
    e->answer = NULL; /* the block is the answer's now */
    *ret_choice = c;
}

/* The first count devices of from, in device order. */
static void first_of(const struct weft_allocator *a, const uint64_t *from, size_t count,
                     uint64_t *set)
{
    for (size_t rank = 0; rank < a->n && count > 0; rank++) {
        if (weft_bit_get(from, rank)) {
            weft_bit_set(set, rank);
            count--;
        }
    }
}

/* ---- from the tables ---- */

static uint32_t join_bytes(const uint32_t table[2][256], uint32_t at)
{
    return table[0][at & 255] | table[1][at >> 8];
}

static void prepare(struct pick *p, const struct weft_eval *e, uint32_t candidates)
{
    const struct weft_allocator *a = e->a;
    uint32_t bits[16] = {0};
    p->e = e;
    size_t count = 0;
    for (uint32_t left = candidates; left != 0; left &= left - 1) {
        bits[count++] = left & -left;
    }
    for (size_t half = 0; half < 2; half++) {
        p->candidates[half][0] = 0;
        for (size_t v = 1; v < 256; v++) {
            p->candidates[half][v] =
                p->candidates[half][v & (v - 1)] | bits[half * 8 + (size_t)__builtin_ctzll(v)];
        }
    }
    p->intact = 0;
    p->all = (uint32_t)((1U << a->n) - 1);
    p->leftover_bytes = (a->group_count + 7) / 8;
    for (size_t byte = 0; byte < p->leftover_bytes; byte++) {
        p->leftover[byte][0] = 0;
        for (size_t v = 1; v < 256; v++) {
            const size_t g = byte * 8 + (size_t)__builtin_ctzll(v);
            const uint16_t available = g < a->group_count ? p->e->group_available[g] : 0;
            p->leftover[byte][v] = (uint16_t)(p->leftover[byte][v & (v - 1)] + available);
        }
    }
    for (size_t g = 0; g < a->group_count; g++) {
        p->intact |= (uint64_t)p->e->group_intact[g] << g;
    }
}

/* Entry 5a. */
static uint64_t broken_groups(const struct pick *p, uint32_t set, uint64_t touched)
{
    const struct weft_tables *t = p->e->a->tables;
    const uint32_t others = p->all & ~set;
    /* broken: touched by the set, and by the machine's other devices */
    const uint64_t elsewhere = t->touched[0][others & 255] | t->touched[1][others >> 8];
    return (uint64_t)__builtin_popcountll(touched & elsewhere & p->intact);
}

/* Entry 5b. */
static uint64_t leftover(const struct pick *p, uint32_t set, uint64_t touched)
{
    const struct weft_tables *t = p->e->a->tables;
    uint64_t sum = 0;
    for (size_t byte = 0; byte < p->leftover_bytes; byte++) {
        sum += p->leftover[byte][touched >> (8 * byte) & 255];
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
    const uint64_t touched = t->touched[0][set & 255] | t->touched[1][set >> 8];
    const uint64_t broken = broken_groups(p, set, touched);
    if (packed ? broken > best >> 48 : (first << 8 | broken) > best >> 32) {
        return UINT64_MAX;
    }
    const uint64_t left = leftover(p, set, touched);
    return packed ? broken << 48 | left << 32 | first << 16 | t->last[set]
                  : first << 40 | broken << 32 | left << 16 | t->last[set];
}

/* All combinations of free of the candidates, in Gosper's order of packed numbers. */
static uint32_t pick_by_tables(const struct pick *p, uint32_t required, size_t candidates,
                               size_t free)
{
    const uint32_t end = 1U << candidates;
    uint64_t best_key = UINT64_MAX;
    uint32_t best = 0;
    for (uint32_t packed = (1U << free) - 1; packed < end;) {
        const uint32_t set = required | join_bytes(p->candidates, packed);
        const uint64_t key = key_of(p, set, best_key);
        best = key < best_key ? set : best;
        best_key = key < best_key ? key : best_key;
        const uint32_t low = packed & -packed;
        const uint32_t ripple = packed + low;
        packed = ripple | (packed ^ ripple) >> (2 + __builtin_ctz(low));
    }
    return best;
}

bool weft_pick_best(struct weft_eval *e)
{
    const struct weft_allocator *a = e->a;
    if (a->tables == NULL) {
        return weft_search(e);
    }
    struct pick p;
    const uint32_t candidates = (uint32_t)(e->candidates[0] & ~e->required[0]);
    prepare(&p, e, candidates);
    e->best_set[0] =
        pick_by_tables(&p, (uint32_t)e->required[0], (size_t)__builtin_popcount(candidates),
                       e->size - weft_bit_count(e->required, a->words));
    return true;
}

/* k clipped to what there is, so that the scratch of a pick is no larger than the machine. */
static size_t clip_size(const struct weft_allocator *a, int64_t size)
{
    if (size <= 0) {
        return 0;
    }
    return (uint64_t)size > a->n ? a->n : (size_t)size;
}

int weft_pick_init(struct weft_eval *e, const struct weft_allocator *a, int64_t size,
                   enum weft_policy policy, size_t answer_bytes, size_t extra_bytes)
{
    const int rc = weft_eval_init(e, a, clip_size(a, size), answer_bytes, extra_bytes);
    e->policy = policy;
    return rc;
}

void weft_pick_fill(struct weft_eval *e, const struct weft_request *request)
{
    const struct weft_allocator *a = e->a;
    add_devices(a, request->available, request->available_count, a->healthy, e->available);
    add_devices(a, request->required, request->required_count, e->available, e->required);
    memcpy(e->candidates, e->available, a->words * sizeof(*e->available));
    memcpy(e->whole, e->available, a->words * sizeof(*e->available));
}

static void pick(struct weft_eval *e, const struct weft_request *request,
                 struct weft_choice *ret_choice)
{
    const struct weft_allocator *a = e->a;
    weft_pick_fill(e, request);
    weft_eval_begin(e);
    if (e->size >= weft_bit_count(e->available, a->words)) {
        weft_pick_give(e, e->available, true, ret_choice);
        return;
    }
    if (e->size <= weft_bit_count(e->required, a->words)) {
        first_of(a, e->required, e->size, e->best_set);
        weft_pick_give(e, e->best_set, true, ret_choice);
        return;
    }
    const bool exact = weft_pick_best(e);
    weft_pick_give(e, e->best_set, exact, ret_choice);
}

int weft_allocator_pick(const struct weft_allocator *allocator, const struct weft_request *request,
                        struct weft_choice *ret_choice, struct weft_error *err)
{
    weft_auto(weft_eval_done) struct weft_eval e;
    if (weft_pick_init(&e, allocator, request->size, request->policy,
                       (allocator->n + 1) * sizeof(size_t), 0) < 0) {
        return weft_err_nomem(err);
    }
    pick(&e, request, ret_choice);
    return 0;
}
