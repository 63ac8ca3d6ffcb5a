/* SPDX-License-Identifier: Apache-2.0 */
/* The fabrics whose tree is known from how they are made, and the fault series: what the unit tests
 * require and the benchmark prints. Expected values are those of the design's prototype, worked out
 * from the shapes; none comes from weft's own output. */
#ifndef WEFT_TESTS_BENCH_FABRIC_GEN_CASES_H
#define WEFT_TESTS_BENCH_FABRIC_GEN_CASES_H

#include <stddef.h>

#include "tests/bench/fabric_gen.h"

struct weft_hypernode_set;

struct gen_case {
    const char *name;
    const char *sizes;           /* of the groups, as gen_sizes prints them */
    void (*make)(struct gen *g); /* into an initialised, empty generator */
};

/* The table, *ret_count long. */
const struct gen_case *gen_cases(size_t *ret_count);

/* One row of random draws of the base fabric with faults: in `least` of 20 draws the prototype had
 * all of the true partitions [first, first + tiers). */
struct gen_series {
    const char *name;
    struct gen_faults faults;
    size_t first, tiers;
    unsigned least;
};

enum { GEN_DRAWS = 20 };

const struct gen_series *gen_series(size_t *ret_count);
/* In how many of the first `draws` draws the partitions are right. */
unsigned gen_series_right(const struct gen_series *series, unsigned draws);

/* Faults that come and go in the base fabric: half of the events lose an adapter's cable, 30 % a
 * node, 15 % a leaf, 5 % a unit; one discovery with the fault, one after its repair. A write is an
 * object made or deleted, or whose tier or members change. hold (may be NULL) says what becomes of
 * what is wanted. */
struct gen_churn {
    size_t writes;
    size_t least;      /* what these events cannot do without */
    size_t worst;      /* in one discovery */
    size_t identities; /* objects of which only the switches they are known by change */
};
struct gen_hold {
    void *context;
    void (*decide)(void *context, const struct weft_hypernode_set *live,
                   const struct weft_hypernode_set *wanted, struct weft_hypernode_set *ret_next);
};
/* What the design's prototype needed for 300 events. */
enum { GEN_CHURN_EVENTS = 300, GEN_CHURN_WRITES = 230, GEN_CHURN_WORST = 2 };
struct gen_churn gen_churn(uint64_t seed, unsigned events, const struct gen_hold *hold);

/* RFT(4,8,16,8,16,64): 512 nodes, 32 units, 4 pods. */
extern const struct gen_rft gen_base;
/* Makes it, and returns where its switches are. */
struct gen_rft gen_make_base(struct gen *g);
/* RFT(2,2,4,2,2,4) with a leaf of two hosts that hangs on cores 0 and 2; its core 1 is returned. */
size_t gen_leaf_on_core(struct gen *g);

#endif
