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

/* Entries 1 to 4 of a set. */
struct weft_first {
    uint64_t min_cut_mbps;
    uint8_t components;
    uint8_t sockets;
    uint8_t numa_nodes;
    int8_t worst_tier;
};

/* Entries 1-4 and 6-8 as dense ranks of all subsets, 0 the best; touched groups and the number of
 * groups of a device as byte tables, to be joined over the two bytes of a subset. */
struct weft_tables {
    uint16_t *first;           /* entries 1 to 4 */
    struct weft_first *firsts; /* by rank: what they are */
    uint16_t *last;            /* entries 6 to 8: no two subsets of one size are equal */
    uint16_t *order;           /* the subsets by size, those of a size by first, then by last */
    uint32_t start[WEFT_TABLE_DEVICES_MAX + 2]; /* by size: where they begin in order */
    uint64_t touched[2][256];
    uint16_t memberships[2][256];
    /* by class */
    uint16_t members[WEFT_TABLE_DEVICES_MAX];
    uint64_t groups[WEFT_TABLE_DEVICES_MAX]; /* the groups that its devices are in */
    /* The nearest class before it of its block (blocks.c) that precedes it device by device, or
     * itself: of two sets that their swap takes onto each other, the one with more devices of that
     * class is better by entry 8. */
    uint8_t twin[WEFT_TABLE_DEVICES_MAX];
    uint16_t near; /* the devices with a near NIC */
};

enum { WEFT_PLACE_OWN = UINT16_MAX }; /* each member of a class is alone in a place of its own */

/* Interchangeable devices, and what the objective sees of them: a set's entries 1 to 7 depend only
 * on how many of each class it has. Matrices are count x count; the diagonal is a pair of members.
 * A group holds all members of a class or none (classes.c says why). */
struct weft_classes {
    size_t count;
    size_t words;       /* of a bitset over classes */
    uint16_t *of;       /* by rank */
    uint16_t *rep;      /* by class: its lowest rank */
    uint16_t *size;     /* by class */
    uint16_t *block;    /* by class: classes that can be swapped whole have equal blocks */
    uint64_t *b;        /* bandwidth */
    uint8_t *t;         /* distance */
    uint64_t *linked;   /* by class a bitset: the others with B > 0 */
    uint64_t *unlinked; /* by class and distance a bitset: the others with B = 0 at that T */
    uint16_t *socket;   /* by class: number of its socket, or WEFT_PLACE_OWN */
    uint16_t *numa;
    bool any_links;
    uint16_t *groups;      /* numbers of the groups of all classes, one class after the other */
    uint32_t *first_group; /* by class: where they begin; count + 1 entries */
};

struct weft_allocator {
    size_t n;
    size_t words;      /* of a bitset over ranks */
    size_t nic_words;  /* of a bitset over NICs */
    size_t *device_of; /* rank to number in the machine */
    size_t *rank_of;   /* and back */
    uint64_t *b;       /* n x n */
    uint8_t *t;        /* n x n */
    uint64_t *healthy; /* bitset */
    uint16_t *socket;  /* dense; unknown ones share one number */
    uint16_t *numa;
    int *socket_number;         /* the machine's, -1 unknown */
    int *parent;                /* -1 for whole devices */
    uint64_t *near_nics;        /* n bitsets over NICs: those at T <= 2 */
    uint64_t *groups;           /* group_count bitsets */
    struct weft_group *reasons; /* by group */
    size_t group_count;
    struct weft_classes classes;
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

/* Finds the classes; after the groups. 0 or -ENOMEM. */
int weft_classes_derive(struct weft_allocator *a) __attribute__((warn_unused_result));
void weft_classes_done(struct weft_classes *c);

/* ---- blocks.c ---- */

/* Which classes can be swapped whole: fills classes.block, of which rest is known. 0 or -ENOMEM. */
int weft_blocks_derive(struct weft_allocator *a) __attribute__((warn_unused_result));

/* ---- tables.c ---- */

/* For at most WEFT_TABLE_DEVICES_MAX devices. 0 or -ENOMEM. */
int weft_tables_build(struct weft_allocator *a) __attribute__((warn_unused_result));
void weft_tables_free(struct weft_tables *tables);

/* ---- mincut.c ---- */

/* Words of scratch that weft_min_cut needs for count vertices, the matrix not among them. */
size_t weft_min_cut_scratch(size_t count);
/* The minimum over all bipartitions of the vertices of the sum of weights across, 0 for fewer than
 * two. w is a symmetric count x count matrix; it is used up. Exact (Stoer and Wagner, JACM 44(4),
 * 1997). */
uint64_t weft_min_cut(uint64_t *w, size_t count, uint64_t *scratch);

#endif
