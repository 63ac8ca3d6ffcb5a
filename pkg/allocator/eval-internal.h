/* SPDX-License-Identifier: Apache-2.0 */
/* One request under work, between the files that answer it. */
#ifndef WEFT_ALLOCATOR_EVAL_INTERNAL_H
#define WEFT_ALLOCATOR_EVAL_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/allocator/allocator-internal.h"

/* ---- eval.c, objective.c ---- */

/* One request under work: its sets, the candidate, and the best one so far. A candidate is how many
 * of each class it has: M's and the lowest free ones (entry 8). All of it lies in one block of
 * memory, whose beginning becomes the answer. */
struct weft_eval {
    const struct weft_allocator *a;
    enum weft_policy policy;
    size_t size; /* k */

    /* bitsets over ranks, filled by the caller */
    uint64_t *available;  /* A */
    uint64_t *required;   /* M */
    uint64_t *candidates; /* what may be chosen beside M; A without replicas */
    uint64_t *whole;      /* devices all of whose ids are available; A without replicas */
    uint64_t *best_set;   /* the answer */

    /* What follows from them: weft_eval_begin. All from here on is for requests that the tables do
     * not answer; where there are tables, there is no memory for it. */
    uint16_t *group_available; /* |g & A| by group */
    bool *group_intact;
    uint16_t *base;  /* by class: how many are in M */
    uint16_t *ranks; /* the free devices of all classes, one class after the other, ascending */
    uint16_t *first; /* by class: where its free devices begin; count + 1 entries */
    uint64_t *nics;  /* by class and number taken a bitset: the NICs near to those */

    /* the candidate */
    uint16_t *have;   /* by class, M's included */
    uint64_t *degree; /* by class: sum of B to the candidate's devices, a member itself included */
    uint16_t *group_taken;
    uint64_t *present; /* bitset over classes: have > 0 */
    size_t count;

    bool have_best;
    uint16_t *best_have;
    struct weft_objective best;

    bool cut_pending;        /* the candidate's entry 2 is a bound that ties with the best */
    bool skip_cut;           /* entry 2 by its upper bound, the smallest degree */
    uint64_t *walk_scratch;  /* 2 x classes.words */
    uint64_t *place_scratch; /* words */
    uint64_t *nic_scratch;   /* nic_words */
    uint16_t *record;        /* by class; for the bounded search */
    uint16_t *order;         /* by class, with those below: for the exact search */
    uint16_t *chain;
    uint16_t *room;
    uint64_t *beyond; /* by place and number: see search.c; NULL on machines of many classes */
    int8_t *worst;
    uint16_t *broken;
    uint16_t *last_place;  /* by group */
    uint64_t *cut_scratch; /* weft_min_cut_scratch of all classes */
    uint64_t work;         /* spent so far, in about nanoseconds */
    void *answer;          /* answer_bytes, the beginning of the block */
    void *extra;           /* extra_bytes */
};

/* Sets up for a's devices and candidates of at most size devices: one allocation, with room for an
 * answer and for what the caller keeps beside (both zeroed). 0 or -ENOMEM. */
int weft_eval_init(struct weft_eval *e, const struct weft_allocator *a, size_t size,
                   size_t answer_bytes, size_t extra_bytes) __attribute__((warn_unused_result));
/* After the four sets of the request are filled: group_available and group_intact. */
void weft_eval_count_groups(struct weft_eval *e);
/* The same, and all else that a search needs. The candidate is then M. */
void weft_eval_begin(struct weft_eval *e);
void weft_eval_done(struct weft_eval *e);
WEFT_DEFINE_AUTO_VALUE(struct weft_eval, weft_eval_done)

static inline size_t weft_eval_free(const struct weft_eval *e, size_t class)
{
    return (size_t)(e->first[class + 1] - e->first[class]);
}
/* Adds one device of the class to the candidate, or count; negative: takes them out. */
void weft_eval_add(struct weft_eval *e, size_t class, int count);
/* The candidate becomes a set of available devices, of which only the number of each class is kept.
 */
void weft_eval_load(struct weft_eval *e, const uint64_t *set);
/* The candidate becomes M. */
void weft_eval_reset(struct weft_eval *e);
/* Compares the candidate with the best and keeps the better one. Returns whether it was better. */
bool weft_eval_try(struct weft_eval *e);
/* best_set from best_have. */
void weft_eval_settle(struct weft_eval *e);
/* Parts of the key of the candidate as it is: entry 3, and the places of entry 4. */
int weft_eval_worst(const struct weft_eval *e);
uint32_t weft_eval_places(const struct weft_eval *e, const uint16_t *places);
/* The whole key of any set of devices, which must be available. The candidate is lost. */
void weft_eval_objective(struct weft_eval *e, const uint64_t *set,
                         struct weft_objective *ret_objective);

/* ---- pick.c ---- */

/* Fills the sets of a request that was set up by weft_pick_init. */
void weft_pick_fill(struct weft_eval *e, const struct weft_request *request);
/* Makes an answer of a set; takes e's memory over. */
void weft_pick_give(struct weft_eval *e, const uint64_t *set, bool exact,
                    struct weft_choice *ret_choice);

/* Leaves the best set of e->size devices between M and M with candidates in e->best_set. More than
 * |M| and fewer than there are devices are asked for. Returns whether it is surely the best. */
bool weft_pick_best(struct weft_eval *e);
/* The same from the tables, which there are; always the best. pick-tables.c */
void weft_pick_by_tables(struct weft_eval *e);
/* weft_eval_objective from the tables. */
void weft_objective_by_tables(const struct weft_eval *e, const uint64_t *set,
                              struct weft_objective *ret_objective);
/* weft_eval_init for a request of size (clipped), with its policy. */
int weft_pick_init(struct weft_eval *e, const struct weft_allocator *a, int64_t size,
                   enum weft_policy policy, size_t answer_bytes, size_t extra_bytes)
    __attribute__((warn_unused_result));

/* ---- search.c, climb.c ---- */

/* weft_pick_best without tables. */
bool weft_search(struct weft_eval *e);
/* On machines of more classes the bounded search compares sets by the bound of their cut. */
enum { WEFT_CLIMB_CUT_MAX = 48 };
/* The bounded search: leaves what it finds in e->best_have. It spends about work at most. */
void weft_climb(struct weft_eval *e, uint64_t work);

#endif
