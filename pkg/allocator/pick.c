/* SPDX-License-Identifier: Apache-2.0 */
/* One request: clipped as allocation.md "Request" says, answered at once where there is no choice,
 * from the tables where they are, else by search. */
#include <errno.h>
#include <string.h>

#include "pkg/allocator/eval-internal.h"

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
    if (a->tables != NULL) {
        weft_objective_by_tables(e, set, &c.objective);
    } else {
        weft_eval_objective(e, set, &c.objective);
    }
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

bool weft_pick_best(struct weft_eval *e)
{
    const struct weft_allocator *a = e->a;
    if (a->tables == NULL) {
        weft_eval_begin(e);
        return weft_search(e);
    }
    weft_pick_by_tables(e);
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
