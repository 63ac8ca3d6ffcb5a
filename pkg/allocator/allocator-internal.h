/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the allocator share. Inside this folder a device is its *rank*: its place in
 * the device order of allocation.md entry 8. Sets are bitsets over ranks, so that entry 8 compares
 * two sets by their lowest differing bit. */
#ifndef WEFT_ALLOCATOR_ALLOCATOR_INTERNAL_H
#define WEFT_ALLOCATOR_ALLOCATOR_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/allocator/allocator.h"
#include "pkg/base/mem.h"

enum {
    WEFT_TABLE_DEVICES_MAX = 16,    /* tables have 2^n entries */
    WEFT_TABLE_GROUPS_MAX = 64,     /* 16 devices have at most 46 groups; see groups.c */
    WEFT_COUNT_VECTORS_MAX = 200000 /* allocation.md "Size of the search" */
};

/* Entries 1-4 and 6-8 as dense ranks of all subsets, 0 the best; touched groups and the number of
 * groups of a device as byte tables, to be joined over the two bytes of a subset. */
struct weft_tables {
    uint16_t *first; /* entries 1 to 4 */
    uint16_t *last;  /* entries 6 to 8: no two subsets of one size are equal */
    uint64_t touched[2][256];
    uint16_t memberships[2][256];
};

struct weft_allocator {
    size_t n;
    size_t words;      /* of a bitset over ranks */
    size_t nic_words;  /* of a bitset over NICs */
    size_t *device_of; /* rank to number in the machine */
    size_t *rank_of;   /* and back */
    uint64_t *b;       /* n x n */
    uint8_t *t;        /* n x n */
    uint64_t *linked;  /* n bitsets: B > 0 */
    uint64_t *healthy; /* bitset */
    uint16_t *socket;  /* dense; unknown ones share one number */
    uint16_t *numa;
    bool *socket_known;
    int *parent;         /* -1 for whole devices */
    uint64_t *near_nics; /* n bitsets over NICs: those at T <= 2 */
    uint16_t *class_of;  /* interchangeable devices have equal classes */
    uint64_t *groups;    /* group_count bitsets */
    size_t group_count;
    struct weft_tables *tables; /* NULL: too many devices, or made without */
};

/* ---- bitsets of a->words words ---- */

static inline bool weft_bit_get(const uint64_t *set, size_t i)
{
    return (set[i / 64] >> (i % 64) & 1) != 0;
}
static inline void weft_bit_set(uint64_t *set, size_t i)
{
    set[i / 64] |= UINT64_C(1) << (i % 64);
}
static inline void weft_bit_clear(uint64_t *set, size_t i)
{
    set[i / 64] &= ~(UINT64_C(1) << (i % 64));
}
static inline size_t weft_bit_count(const uint64_t *set, size_t words)
{
    size_t count = 0;
    for (size_t w = 0; w < words; w++) {
        count += (size_t)__builtin_popcountll(set[w]);
    }
    return count;
}

/* ---- groups.c ---- */

/* Derives the groups of allocation.md. 0 or -ENOMEM. */
int weft_groups_derive(struct weft_allocator *a) __attribute__((warn_unused_result));

/* ---- classes.c ---- */

/* Numbers interchangeable devices alike. 0 or -ENOMEM. */
int weft_classes_derive(struct weft_allocator *a) __attribute__((warn_unused_result));

/* ---- tables.c ---- */

/* For at most WEFT_TABLE_DEVICES_MAX devices. 0 or -ENOMEM. */
int weft_tables_build(struct weft_allocator *a) __attribute__((warn_unused_result));
void weft_tables_free(struct weft_tables *tables);

/* ---- eval.c ---- */

/* One request under work: its sets, and the best candidate so far. Made and freed by a pick. */
struct weft_eval {
    const struct weft_allocator *a;
    enum weft_policy policy;
    size_t size;               /* k */
    uint64_t *available;       /* A, bitset */
    uint64_t *required;        /* M, bitset */
    uint64_t *candidates;      /* what may be chosen beside M; A without replicas */
    uint64_t *whole;           /* devices all of whose ids are available; A without replicas */
    uint16_t *group_available; /* |g & A| by group */
    bool *group_intact;
    bool cut_pending; /* the candidate's entry 2 is a bound that ties with the best */
    bool skip_cut; /* entry 2 by its upper bound, the smallest degree: sizes where cuts cost much */

    /* the candidate */
    uint64_t *set;
    uint16_t *members; /* the same as a list, in any order */
    size_t count;

    bool have_best;
    uint64_t *best_set;
    struct weft_objective best;

    uint64_t *nic_scratch;  /* nic_words */
    uint64_t *walk_scratch; /* 2 x words */
    uint8_t *seen;          /* by socket or NUMA number */
    uint64_t *cut_scratch;  /* weft_min_cut */
    uint64_t work;          /* spent so far, in about nanoseconds */
    void *arena;
};

/* Sets up for a's devices and candidates of at most size devices; the sets are empty. 0, -ENOMEM.
 * After the four sets of the request are filled, weft_eval_begin counts the groups. */
int weft_eval_init(struct weft_eval *e, const struct weft_allocator *a, size_t size)
    __attribute__((warn_unused_result));
void weft_eval_begin(struct weft_eval *e);
void weft_eval_done(struct weft_eval *e);
WEFT_DEFINE_AUTO_VALUE(struct weft_eval, weft_eval_done)

/* The candidate: emptied, grown, shrunk. */
void weft_eval_clear(struct weft_eval *e);
void weft_eval_add(struct weft_eval *e, size_t rank);
void weft_eval_remove(struct weft_eval *e, size_t rank);
/* Compares the candidate with the best and keeps the better one. Returns whether it was better. */
bool weft_eval_try(struct weft_eval *e);
/* The whole key of the candidate. */
void weft_eval_objective(struct weft_eval *e, struct weft_objective *ret_objective);
/* ---- mincut.c ---- */

/* Words of scratch that weft_min_cut needs for count members. */
size_t weft_min_cut_scratch(size_t count);
/* The minimum over all bipartitions of the members of the sum of B across; 0 for fewer than two.
 * Exact (Stoer and Wagner, JACM 44(4), 1997). */
uint64_t weft_min_cut(const struct weft_allocator *a, const uint16_t *members, size_t count,
                      uint64_t *scratch);

/* ---- pick.c ---- */

/* Leaves the best set of e->size devices between M and M with candidates in e->best_set. More than
 * |M| and fewer than there are devices are asked for. 0 or -ENOMEM. */
int weft_pick_best(struct weft_eval *e, bool *ret_exact) __attribute__((warn_unused_result));
/* weft_eval_init for a request of size (clipped), with its policy. */
int weft_pick_init(struct weft_eval *e, const struct weft_allocator *a, int64_t size,
                   enum weft_policy policy) __attribute__((warn_unused_result));

/* ---- search.c ---- */

/* Leaves the best candidate of size e->size in e; *ret_exact says whether it is surely the best. */
int weft_search(struct weft_eval *e, bool *ret_exact) __attribute__((warn_unused_result));

#endif
