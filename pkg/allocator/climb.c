/* SPDX-License-Identifier: Apache-2.0 */
/* The bounded search: from several first devices it grows a set by the device that makes it best,
 * then swaps one device for one of another class as long as that is better. It spends no more than
 * it is given, and always ends with a set of the size asked for. */
#include <string.h>

#include "pkg/allocator/eval-internal.h"

enum { STARTS_MAX = 24 };

struct climb {
    struct weft_eval *e;
    uint64_t end; /* of e->work */
    bool have_record;
    struct weft_objective record; /* the best of all starts; its classes are in e->record */
};

static bool may_spend(const struct climb *c)
{
    return c->e->work < c->end;
}

static bool has_more(const struct weft_eval *e, size_t class)
{
    return (size_t)(e->have[class] - e->base[class]) < weft_eval_free(e, class);
}

/* Adds the device that makes the best set of its size. Without work left, the first. */
static void grow_once(const struct climb *c)
{
    struct weft_eval *e = c->e;
    size_t best = SIZE_MAX;
    e->have_best = false;
    for (size_t i = 0; i < e->a->classes.count; i++) {
        if (!has_more(e, i)) {
            continue;
        }
        if (!may_spend(c)) {
            best = best == SIZE_MAX ? i : best;
            break;
        }
        weft_eval_add(e, i, 1);
        best = weft_eval_try(e) ? i : best;
        weft_eval_add(e, i, -1);
    }
    weft_eval_add(e, best, 1);
}

/* Tries to better the set, which is the best so far, by one device of another class for one of
 * out. */
static bool climb_once(const struct climb *c, size_t out)
{
    struct weft_eval *e = c->e;
    bool better = false;
    for (size_t in = 0; in < e->a->classes.count && e->have[out] > e->base[out] && may_spend(c);
         in++) {
        if (in == out || !has_more(e, in)) {
            continue;
        }
        weft_eval_add(e, out, -1);
        weft_eval_add(e, in, 1);
        if (weft_eval_try(e)) {
            better = true;
            continue;
        }
        weft_eval_add(e, in, -1);
        weft_eval_add(e, out, 1);
    }
    return better;
}

static void climb_up(const struct climb *c)
{
    bool better = true;
    while (better && may_spend(c)) {
        better = false;
        for (size_t out = 0; out < c->e->a->classes.count; out++) {
            better = climb_once(c, out) || better;
        }
    }
}

/* Makes the record the best, and keeps the better of it and this start's. */
static void keep_better(struct climb *c)
{
    struct weft_eval *e = c->e;
    const size_t bytes = e->a->classes.count * sizeof(*e->record);
    if (c->have_record) {
        weft_eval_reset(e);
        for (size_t i = 0; i < e->a->classes.count; i++) {
            if (e->best_have[i] > e->base[i]) {
                weft_eval_add(e, i, e->best_have[i] - e->base[i]);
            }
        }
        e->best = c->record;
        memcpy(e->best_have, e->record, bytes);
        (void)weft_eval_try(e);
    }
    c->have_record = true;
    c->record = e->best;
    memcpy(e->record, e->best_have, bytes);
}

static void climb_from(struct climb *c, size_t start)
{
    struct weft_eval *e = c->e;
    weft_eval_reset(e);
    weft_eval_add(e, start, 1);
    while (e->count < e->size) {
        grow_once(c);
    }
    e->have_best = false;
    (void)weft_eval_try(e);
    climb_up(c);
    keep_better(c);
}

void weft_climb(struct weft_eval *e, uint64_t work)
{
    struct climb c = {.e = e, .end = e->work + work};
    const size_t classes = e->a->classes.count;
    const bool skip_cut = e->skip_cut;
    e->skip_cut = classes > WEFT_CLIMB_CUT_MAX;
    /* spread over the classes, so that few starts still see all of the machine */
    size_t starts = 0;
    for (size_t i = 0; i < classes; i++) {
        starts += weft_eval_free(e, i) > 0;
    }
    const size_t step = starts / STARTS_MAX + 1;
    size_t number = 0;
    for (size_t i = 0; i < classes; i++) {
        if (weft_eval_free(e, i) > 0 && number++ % step == 0 && (!c.have_record || may_spend(&c))) {
            climb_from(&c, i);
        }
    }
    e->skip_cut = skip_cut;
}
