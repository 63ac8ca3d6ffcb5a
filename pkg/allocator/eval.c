/* SPDX-License-Identifier: Apache-2.0 */
/* One request under work: its memory, its sets, and the candidate, which is kept up to date as
 * devices are added and taken out. What the candidate is worth stands in objective.c. */
#include <errno.h>
#include <string.h>

#include "pkg/allocator/eval-internal.h"

/* Hands out aligned pieces of a block; with base NULL it only adds up the sizes. */
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

static void carve_sets(struct weft_eval *e, struct carver *c)
{
    const struct weft_allocator *a = e->a;
    e->available = carve(c, a->words, sizeof(uint64_t));
    e->required = carve(c, a->words, sizeof(uint64_t));
    e->candidates = carve(c, a->words, sizeof(uint64_t));
    e->whole = carve(c, a->words, sizeof(uint64_t));
    e->best_set = carve(c, a->words, sizeof(uint64_t));
}

static void carve_candidate(struct weft_eval *e, struct carver *c)
{
    const struct weft_allocator *a = e->a;
    const size_t classes = a->classes.count;
    e->group_available = carve(c, a->group_count, sizeof(uint16_t));
    e->group_intact = carve(c, a->group_count, sizeof(bool));
    e->place_scratch = carve(c, a->words, sizeof(uint64_t));
    e->nic_scratch = carve(c, a->nic_words, sizeof(uint64_t));
    e->base = carve(c, classes, sizeof(uint16_t));
    e->ranks = carve(c, a->n, sizeof(uint16_t));
    e->first = carve(c, classes + 1, sizeof(uint16_t));
    e->nics = carve(c, (a->n + classes) * a->nic_words, sizeof(uint64_t));
    e->have = carve(c, classes, sizeof(uint16_t));
    e->degree = carve(c, classes, sizeof(uint64_t));
    e->group_taken = carve(c, a->group_count, sizeof(uint16_t));
    e->present = carve(c, a->classes.words, sizeof(uint64_t));
    e->best_have = carve(c, classes, sizeof(uint16_t));
    e->walk_scratch = carve(c, 2 * a->classes.words, sizeof(uint64_t));
    e->record = carve(c, classes, sizeof(uint16_t));
    e->order = carve(c, classes, sizeof(uint16_t));
    e->chain = carve(c, classes, sizeof(uint16_t));
    e->room = carve(c, classes, sizeof(uint16_t));
    if (classes <= WEFT_CLIMB_CUT_MAX) {
        e->beyond = carve(c, classes * (e->size + 1), sizeof(uint64_t));
    }
    e->worst = carve(c, classes, sizeof(int8_t));
    e->broken = carve(c, classes, sizeof(uint16_t));
    e->last_place = carve(c, a->group_count, sizeof(uint16_t));
    e->cut_scratch = carve(c, classes * classes + weft_min_cut_scratch(classes), sizeof(uint64_t));
}

int weft_eval_init(struct weft_eval *e, const struct weft_allocator *a, size_t size,
                   size_t answer_bytes, size_t extra_bytes)
{
    struct carver c = {0};
    *e = (struct weft_eval){.a = a, .size = size};
    for (int pass = 0; pass < 2; pass++) {
        e->answer = carve(&c, 1, answer_bytes);
        e->extra = carve(&c, 1, extra_bytes);
        carve_sets(e, &c);
        if (a->tables == NULL) {
            carve_candidate(e, &c);
        }
        if (pass == 0) {
            c = (struct carver){.base = weft_calloc(1, c.used + 1)};
        }
        if (c.base == NULL) {
            return -ENOMEM;
        }
    }
    return 0;
}

void weft_eval_done(struct weft_eval *e)
{
    if (e != NULL) {
        weft_free(e->answer); /* the beginning of the block */
        *e = (struct weft_eval){0};
    }
}

/* ---- the request ---- */

void weft_eval_count_groups(struct weft_eval *e)
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

static bool is_free(const struct weft_eval *e, size_t rank)
{
    return weft_bit_get(e->candidates, rank) && !weft_bit_get(e->required, rank);
}

/* Sorts M and the free devices by class. */
static void list_devices(struct weft_eval *e)
{
    const struct weft_allocator *a = e->a;
    const struct weft_classes *c = &a->classes;
    memset(e->base, 0, c->count * sizeof(*e->base));
    memset(e->first, 0, (c->count + 1) * sizeof(*e->first));
    for (size_t rank = 0; rank < a->n; rank++) {
        e->base[c->of[rank]] += weft_bit_get(e->required, rank);
        e->first[c->of[rank]] += is_free(e, rank);
    }
    uint16_t end = 0;
    for (size_t i = 0; i <= c->count; i++) {
        end = (uint16_t)(end + e->first[i]);
        e->first[i] = end;
    }
    for (size_t rank = a->n; rank-- > 0;) {
        if (is_free(e, rank)) {
            e->ranks[--e->first[c->of[rank]]] = (uint16_t)rank;
        }
    }
}

static uint64_t *nics_at(const struct weft_eval *e, size_t class, size_t taken)
{
    return &e->nics[(e->first[class] + class + taken) * e->a->nic_words];
}

static void add_nics(const struct weft_allocator *a, size_t rank, uint64_t *nics)
{
    for (size_t w = 0; w < a->nic_words; w++) {
        nics[w] |= a->near_nics[rank * a->nic_words + w];
    }
}

/* The NICs near to M's devices of each class with 0, 1, ... of its free ones. */
static void list_nics(struct weft_eval *e)
{
    const struct weft_allocator *a = e->a;
    const size_t bytes = a->nic_words * sizeof(*e->nics);
    memset(e->nics, 0, (a->n + a->classes.count) * bytes);
    for (size_t rank = 0; rank < a->n; rank++) {
        if (weft_bit_get(e->required, rank)) {
            add_nics(a, rank, nics_at(e, a->classes.of[rank], 0));
        }
    }
    for (size_t class = 0; class < a->classes.count; class ++) {
        for (size_t i = 0; i < weft_eval_free(e, class); i++) {
            memcpy(nics_at(e, class, i + 1), nics_at(e, class, i), bytes);
            add_nics(a, e->ranks[e->first[class] + i], nics_at(e, class, i + 1));
        }
    }
}

void weft_eval_begin(struct weft_eval *e)
{
    weft_eval_count_groups(e);
    list_devices(e);
    list_nics(e);
    e->have_best = false;
    weft_eval_reset(e);
}

/* ---- the candidate ---- */

void weft_eval_add(struct weft_eval *e, size_t class, int count)
{
    const struct weft_classes *c = &e->a->classes;
    const uint64_t *b = &c->b[class * c->count];
    const uint64_t times = (uint64_t)(int64_t)count; /* wraps, and sums of it wrap back */
    e->have[class] = (uint16_t)(e->have[class] + count);
    e->count = (size_t)((int64_t)e->count + count);
    for (size_t i = 0; i < c->count; i++) {
        e->degree[i] += times * b[i];
    }
    for (uint32_t i = c->first_group[class]; i < c->first_group[class + 1]; i++) {
        e->group_taken[c->groups[i]] = (uint16_t)(e->group_taken[c->groups[i]] + count);
    }
    if (e->have[class] > 0) {
        weft_bit_set(e->present, class);
    } else {
        weft_bit_clear(e->present, class);
    }
    e->work += c->count + 8;
}

static void make_empty(struct weft_eval *e)
{
    const struct weft_classes *c = &e->a->classes;
    e->count = 0;
    memset(e->have, 0, c->count * sizeof(*e->have));
    memset(e->degree, 0, c->count * sizeof(*e->degree));
    memset(e->present, 0, c->words * sizeof(*e->present));
    memset(e->group_taken, 0, e->a->group_count * sizeof(*e->group_taken));
}

void weft_eval_reset(struct weft_eval *e)
{
    make_empty(e);
    for (size_t class = 0; class < e->a->classes.count; class ++) {
        if (e->base[class] > 0) {
            weft_eval_add(e, class, e->base[class]);
        }
    }
}

void weft_eval_settle(struct weft_eval *e)
{
    const struct weft_allocator *a = e->a;
    memcpy(e->best_set, e->required, a->words * sizeof(*e->best_set));
    for (size_t class = 0; class < a->classes.count; class ++) {
        for (size_t i = 0; i < (size_t)(e->best_have[class] - e->base[class]); i++) {
            weft_bit_set(e->best_set, e->ranks[e->first[class] + i]);
        }
    }
}

void weft_eval_load(struct weft_eval *e, const uint64_t *set)
{
    const struct weft_allocator *a = e->a;
    make_empty(e);
    for (size_t rank = 0; rank < a->n; rank++) {
        if (weft_bit_get(set, rank)) {
            weft_eval_add(e, a->classes.of[rank], 1);
        }
    }
}
