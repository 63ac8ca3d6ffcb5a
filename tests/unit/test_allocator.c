/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator on machines that the industry ships: the ten requests that other plugins are known
 * to answer wrongly (A to J), and what each entry of allocation.md decides. The right answers were
 * worked out by hand; the comments say how. */
#include <errno.h>
#include <stdio.h>

#include "pkg/allocator/allocator.h"
#include "pkg/base/str.h"
#include "pkg/machine/machine.h"
#include "tests/unit/machines.h"
#include "tests/unit/unit.h"

struct request {
    const char *fixture;
    const char *available; /* indices; NULL: all */
    const char *required;
    int64_t size;
    const char *want; /* indices in device order */
    enum weft_policy policy;
};

static void join_indices(const struct weft_machine *m, const struct weft_choice *c, char *text,
                         size_t size)
{
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < c->count; i++) {
        len += (size_t)snprintf(text + len, size - len, "%s%d", i > 0 ? "," : "",
                                m->devices[c->devices[i]].index);
    }
}

/* Picks with and without tables; both must give the wanted set. *ret_objective may be NULL. */
static void check(const struct request *r, struct weft_objective *ret_objective)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_fixture(r->fixture);
    for (int tables = 0; m != NULL && tables < 2; tables++) {
        size_t available[64];
        size_t required[64];
        char got[256];
        weft_auto(weft_allocator_free) struct weft_allocator *a = NULL;
        weft_auto(weft_choice_done) struct weft_choice choice = {0};
        size_t available_count = m->device_count;
        for (size_t i = 0; i < m->device_count; i++) {
            available[i] = i;
        }
        if (r->available != NULL) {
            available_count = machine_ids(m, r->available, available);
        }
        const struct weft_request request = {
            .available = available,
            .available_count = available_count,
            .required = required,
            .required_count = r->required != NULL ? machine_ids(m, r->required, required) : 0,
            .size = r->size,
            .policy = r->policy,
        };
        CHECK_INT(tables ? weft_allocator_new(m, &a, NULL) : weft_allocator_new_direct(m, &a, NULL),
                  0);
        CHECK_INT(weft_allocator_pick(a, &request, &choice, NULL), 0);
        join_indices(m, &choice, got, sizeof(got));
        if (!CHECK_STR(got, r->want)) {
            (void)fprintf(stderr, "%s, %d of %s, tables %d\n", r->fixture, (int)r->size,
                          r->available != NULL ? r->available : "all", tables);
        }
        CHECK(choice.exact);
        if (ret_objective != NULL) {
            *ret_objective = choice.objective;
        }
    }
}

/* A: bridges (0,2) (1,3) (4,5) (6,7), all else SYS. Of the sets of 3 only {4,5,x} have 2 components
 * (no other bridge is whole); all have a pair at SYS; {4,5,6} alone stays in one socket. */
static void case_a(void)
{
    struct weft_objective o;
    check(
        &(struct request){
            .fixture = "pairs8.json", .available = "0,1,4,5,6", .size = 3, .want = "4,5,6"},
        &o);
    CHECK_INT(o.components, 2);
    CHECK_INT(o.min_cut_mbps, 0);
    CHECK_INT(o.worst_tier, 5);
    CHECK_INT(o.sockets, 1);
    CHECK_INT(o.bandwidth_mbps, 300000);
    CHECK_INT(o.tier_sum, 4 + 5 + 5);
    /* intact: {4,5} by its bridge and by T <= 4; broken by neither. {6,7} and the socket miss 7 */
    CHECK_INT(o.broken_groups, 0);
}

/* B: no links; {0,1,2} and its like stay at NODE, any set with 4 crosses at SYS. Among them each
 * breaks one switch pair and the socket and leaves one of each; PCI order decides. */
static void case_b(void)
{
    struct weft_objective o;
    check(
        &(struct request){
            .fixture = "pcie8.txt", .available = "0,1,2,3,4", .size = 3, .want = "0,1,2"},
        &o);
    CHECK_INT(o.components, 3);
    CHECK_INT(o.worst_tier, 4);
    CHECK_INT(o.broken_groups, 2); /* {2,3} and {0,1,2,3} */
    CHECK_INT(o.leftover, 2);      /* 3 in each of them */
    CHECK_INT(o.tier_sum, 1 + 4 + 4);
}

/* C: bridged neighbours. Two whole pairs are the only set of 4 with 2 components. */
static void case_c(void)
{
    struct weft_objective o;
    check(
        &(struct request){
            .fixture = "pairs8b.txt", .available = "0,1,2,4,5,6", .size = 4, .want = "0,1,4,5"},
        &o);
    CHECK_INT(o.components, 2);
    CHECK_INT(o.bandwidth_mbps, 2 * 4 * 25000);
}

/* D: cube mesh of single links. 0-1-5-4 is a ring, so every cut has 2 links; each other set of 4
 * has a device that hangs on 1. */
static void case_d(void)
{
    struct weft_objective o;
    check(&(struct request){.fixture = "cube-mesh-p100.txt",
                            .available = "0,1,2,4,5",
                            .size = 4,
                            .want = "0,1,4,5"},
          &o);
    CHECK_INT(o.components, 1);
    CHECK_INT(o.min_cut_mbps, 2 * 25000);
}

/* E: the pairs of {0,1,2,6} are linked 01:1 02:1 12:2 26:1. */
static void case_e(void)
{
    struct weft_objective o;
    check(
        &(struct request){
            .fixture = "cube-mesh-v100.txt", .available = "0,1,2,6", .size = 2, .want = "1,2"},
        &o);
    CHECK_INT(o.min_cut_mbps, 2 * 25000);
}

/* F: 02:1 04:2 45:1. NVIDIA's own test wants {4,5}; allocation.md says why this wants {0,4}. */
static void case_f(void)
{
    check(
        &(struct request){
            .fixture = "cube-mesh-v100.txt", .available = "0,2,4,5", .size = 2, .want = "0,4"},
        NULL);
}

/* G: 16 GPUs in switch pairs, ids in a random order, 12 required: its partner is 13. */
static void case_g(void)
{
    struct weft_objective o;
    check(&(struct request){.fixture = "tree16.txt",
                            .available = "7,9,8,2,5,14,15,1,0,6,3,12,13,10",
                            .required = "12",
                            .size = 2,
                            .want = "12,13"},
          &o);
    CHECK_INT(o.worst_tier, 1);
}

/* H: one GPU. 4 is gone, so taking 5 breaks nothing; any of 0..3 breaks a pair and the quad. With 1
 * gone as well, 0 breaks nothing either, but leaves 2 and 3 in its quad, where 5 leaves nobody. */
static void case_h(void)
{
    check(
        &(struct request){.fixture = "pcie8.txt", .available = "0,1,2,3,5", .size = 1, .want = "5"},
        NULL);
    check(&(struct request){.fixture = "pcie8.txt", .available = "5,3,2,0", .size = 1, .want = "5"},
          NULL);
}

/* I: 0-1 has two links one way and one the other: it counts as one, so 2-3 is better. */
static void case_i(void)
{
    struct weft_objective o;
    check(&(struct request){.fixture = "asymmetric4.txt", .size = 2, .want = "2,3"}, &o);
    CHECK_INT(o.min_cut_mbps, 50000);
    check(&(struct request){.fixture = "asymmetric4.txt",
                            .available = "1,0",
                            .required = "0",
                            .size = 2,
                            .want = "0,1"},
          &o);
    CHECK_INT(o.min_cut_mbps, 25000);
}

/* J: GPU3 has 12 of 18 links. 4 without it have a cut of 3 x 18 links; {4,5,6,7} are the only such
 * set in one NUMA node. All 8 still work: GPU3 alone is the narrowest cut. */
static void case_j(void)
{
    struct weft_objective o;
    check(&(struct request){.fixture = "hgx-degraded.txt", .size = 4, .want = "4,5,6,7"}, &o);
    CHECK_INT(o.min_cut_mbps, 3 * 18 * 25000);
    check(&(struct request){.fixture = "hgx-degraded.txt",
                            .available = "0,1,2,3,4,5",
                            .size = 4,
                            .want = "0,1,2,4"},
          NULL);
    check(&(struct request){.fixture = "hgx-degraded.txt", .size = 8, .want = "0,1,2,3,4,5,6,7"},
          &o);
    CHECK_INT(o.min_cut_mbps, 7 * 12 * 25000);
}

/* HGX: all links equal, so entries 4 and 5 place the pods. 2 of 8: one socket; a switch pair is a
 * whole group, so a half of two pairs would break two. With 0 in use, 1 is left over in a broken
 * pair: it goes first for one GPU, and 2 GPUs take the next whole pair. 3 with 6: {4,5,6}, {4,6,7}
 * and {5,6,7} each break a pair, the socket and all 8, leave 1 in each of a pair and the socket and
 * 5 of all, see 4 NICs, and add up to the same: PCI order. */
static void hgx(void)
{
    const char *f = "hgx-h100-8.json";
    struct weft_objective o;
    check(&(struct request){.fixture = f, .size = 2, .want = "0,1"}, &o);
    CHECK_INT(o.sockets, 1);
    /* broken: the socket and all 8; left over: 2 in the socket, 6 of all */
    CHECK_INT(o.broken_groups, 2);
    CHECK_INT(o.leftover, 2 + 6);
    CHECK_INT(o.nic_near, 2);
    CHECK_INT(o.nic_distinct, 2);
    CHECK_INT(o.tier_sum, 2);
    check(&(struct request){.fixture = f, .available = "1,2,3,4,5,6,7", .size = 1, .want = "1"},
          NULL);
    check(&(struct request){.fixture = f, .available = "1,2,3,4,5,6,7", .size = 2, .want = "2,3"},
          NULL);
    check(&(struct request){.fixture = f, .available = "2,3,4,5,6,7", .size = 4, .want = "4,5,6,7"},
          NULL);
    check(&(struct request){.fixture = f, .size = 3, .required = "6", .want = "4,5,6"}, NULL);
}

/* Entry 6: four switch pairs, NICs behind the second and the fourth. Four single GPUs would do for
 * entries 1 to 5 on {0,1} and {2,3} alike; the NIC draws the pair to {2,3}. */
static void nics_draw(void)
{
    struct weft_objective o;
    check(&(struct request){.fixture = "pcie8-nics.txt", .size = 2, .want = "2,3"}, &o);
    CHECK_INT(o.nic_near, 2);
    CHECK_INT(o.nic_distinct, 1);
    /* PXB is near, too */
    check(
        &(struct request){
            .fixture = "pcie8-nics.txt", .available = "4,5,6,7", .size = 2, .want = "6,7"},
        NULL);
}

/* Policy packed looks at the damage first. */
static void packed_policy(void)
{
    /* pcie8, 3 in use, 2 wanted: performance takes the first whole switch pair {0,1}, as PIX beats
     * all; packed, too: it breaks nothing that is whole ({0,1} is used up) and leaves 2 in the quad
     * that is broken already. {4,5} would break the other quad. */
    check(
        &(struct request){
            .fixture = "pcie8.txt", .available = "0,1,2,4,5,6,7", .size = 2, .want = "0,1"},
        NULL);
    check(&(struct request){.fixture = "pcie8.txt",
                            .available = "0,1,2,4,5,6,7",
                            .size = 2,
                            .want = "0,1",
                            .policy = WEFT_POLICY_PACKED},
          NULL);
    /* 0 and 2 in use on DGX-1V, 2 wanted of {1,3,4,5,6,7}. Performance: two links are 1-5, 4-7,
     * 5-6, 6-7; the whole NUMA node {4..7} is intact (T <= 4), and B >= 2 links joins all 8, which
     * is not intact. 4-7, 5-6 and 6-7 stay in one NUMA node: 1-5 falls out at entry 4. Each of the
     * three breaks {4..7}: the first is {4,7}. Packed: {1,3} breaks nothing, though it has 1 link
     */
    check(
        &(struct request){
            .fixture = "cube-mesh-v100.txt", .available = "1,3,4,5,6,7", .size = 2, .want = "4,7"},
        NULL);
    check(&(struct request){.fixture = "cube-mesh-v100.txt",
                            .available = "1,3,4,5,6,7",
                            .size = 2,
                            .want = "1,3",
                            .policy = WEFT_POLICY_PACKED},
          NULL);
}

/* The clipping of allocation.md "Request". */
static void clipped_requests(void)
{
    const char *f = "pcie8.txt";
    check(&(struct request){.fixture = f, .size = 0, .want = ""}, NULL);
    check(&(struct request){.fixture = f, .size = -3, .want = ""}, NULL);
    check(&(struct request){.fixture = f, .available = "5,1", .size = 9, .want = "1,5"}, NULL);
    check(&(struct request){.fixture = f, .available = "5,1", .size = INT64_MAX, .want = "1,5"},
          NULL);
    check(&(struct request){.fixture = f, .required = "7,2,5", .size = 2, .want = "2,5"}, NULL);
    check(&(struct request){.fixture = f, .available = "", .size = 2, .want = ""}, NULL);
    /* twice, unknown (weft_machine_find gives SIZE_MAX), required but not available */
    check(
        &(struct request){
            .fixture = f, .available = "4,4,99,5,4", .required = "0,99", .size = 1, .want = "4"},
        NULL);
    check(&(struct request){.fixture = "flat-vm.txt", .size = 2, .want = "0,1"}, NULL);
}

static void unhealthy_devices_are_not_given(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_fixture("hgx-h100-8.json");
    weft_auto(weft_allocator_free) struct weft_allocator *a = NULL;
    weft_auto(weft_choice_done) struct weft_choice c = {0};
    const size_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};
    char got[64];
    if (m == NULL) {
        return;
    }
    /* 1 is down: 0 is then half of a broken pair. One GPU: 0, for it breaks no whole pair. */
    m->devices[1].healthy = false;
    CHECK_INT(weft_allocator_new(m, &a, NULL), 0);
    struct weft_request r = {.available = all, .available_count = 8, .size = 1};
    CHECK_INT(weft_allocator_pick(a, &r, &c, NULL), 0);
    join_indices(m, &c, got, sizeof(got));
    CHECK_STR(got, "0");
    weft_choice_done(&c);
    r.size = 8;
    CHECK_INT(weft_allocator_pick(a, &r, &c, NULL), 0);
    join_indices(m, &c, got, sizeof(got));
    CHECK_STR(got, "0,2,3,4,5,6,7");
}

/* Device order is the PCI address, not the index; without one address, the index. */
static void device_order(void)
{
    struct weft_error err = {0};
    for (int with_bdf = 0; with_bdf < 2; with_bdf++) {
        weft_auto(weft_machine_free) struct weft_machine *m = NULL;
        weft_auto(weft_allocator_free) struct weft_allocator *a = NULL;
        weft_auto(weft_choice_done) struct weft_choice c = {0};
        CHECK_INT(weft_machine_new("t", 3, 0, &m, &err), 0);
        for (size_t i = 0; m != NULL && i < 3; i++) {
            (void)snprintf(m->devices[i].id, sizeof(m->devices[i].id), "d%zu", i);
            m->devices[i].bdf = (struct weft_bdf){
                .known = with_bdf || i > 0, .domain = i == 0 ? 1 : 0, .bus = (uint8_t)(9 - i)};
        }
        const size_t all[] = {2, 0, 1};
        const struct weft_request r = {.available = all, .available_count = 3, .size = 3};
        CHECK_INT(weft_allocator_new(m, &a, &err), 0);
        CHECK_INT(weft_allocator_pick(a, &r, &c, &err), 0);
        CHECK_INT(c.count, 3);
        CHECK_INT(c.devices[0], with_bdf ? 2 : 0);
        CHECK_INT(c.devices[1], 1);
        CHECK_INT(c.devices[2], with_bdf ? 0 : 2);
    }
}

static void policy_names(void)
{
    enum weft_policy policy = WEFT_POLICY_PERFORMANCE;
    CHECK_INT(weft_policy_parse("packed", &policy), 0);
    CHECK_INT(policy, WEFT_POLICY_PACKED);
    CHECK_INT(weft_policy_parse("spread", &policy), -EINVAL);
    CHECK_STR(weft_policy_name(WEFT_POLICY_PERFORMANCE), "performance");
}

/* ---- many devices ---- */

/* 8 GPUs in 8 partitions each (CPX): linked inside the parent, and weaker between parents. */
static struct weft_machine *partitioned(void)
{
    struct weft_machine *m = NULL;
    if (weft_machine_new("cpx", 64, 0, &m, NULL) < 0) {
        return NULL;
    }
    for (size_t i = 0; i < 64; i++) {
        (void)snprintf(m->devices[i].id, sizeof(m->devices[i].id), "p%zu", i);
        m->devices[i].parent = (int)(i / 8);
        m->devices[i].partition = (int)(i % 8);
        m->devices[i].index = (int)i;
        for (size_t j = 0; j < 64; j++) {
            if (i != j) {
                m->bandwidth[i * 64 + j] = i / 8 == j / 8 ? 600000 : 64000;
                m->distance[i * 64 + j] = i / 8 == j / 8 ? WEFT_DISTANCE_PSB : WEFT_DISTANCE_NODE;
            }
        }
    }
    return m;
}

static void check_partitions(const struct weft_allocator *a, int64_t size, const size_t *available,
                             size_t available_count, bool exact)
{
    weft_auto(weft_choice_done) struct weft_choice c = {0};
    const size_t required[] = {19};
    const struct weft_request r = {.available = available,
                                   .available_count = available_count,
                                   .required = required,
                                   .required_count = 1,
                                   .size = size};
    CHECK_INT(weft_allocator_pick(a, &r, &c, NULL), 0);
    CHECK_INT(c.count, size);
    CHECK(c.exact == exact);
    size_t last = 0;
    bool has_required = false;
    for (size_t i = 0; i < c.count; i++) {
        bool is_available = false;
        for (size_t k = 0; k < available_count; k++) {
            is_available = is_available || available[k] == c.devices[i];
        }
        CHECK(is_available);
        CHECK(i == 0 || c.devices[i] > last);
        last = c.devices[i];
        has_required = has_required || c.devices[i] == 19;
    }
    CHECK(has_required);
}

/* Interchangeable partitions are counted: 8 classes of 8 make 6,435 vectors for 8 devices, and the
 * answer is exact: all of the parent that holds 19. */
static void partitions_are_counted(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = partitioned();
    weft_auto(weft_allocator_free) struct weft_allocator *a = NULL;
    weft_auto(weft_choice_done) struct weft_choice c = {0};
    size_t all[64];
    for (size_t i = 0; i < 64; i++) {
        all[i] = i;
    }
    CHECK_INT(weft_allocator_new(m, &a, NULL), 0);
    const size_t required[] = {19};
    const struct weft_request r = {.available = all,
                                   .available_count = 64,
                                   .required = required,
                                   .required_count = 1,
                                   .size = 8};
    CHECK_INT(weft_allocator_pick(a, &r, &c, NULL), 0);
    CHECK(c.exact);
    for (size_t i = 0; i < c.count; i++) {
        CHECK_INT(c.devices[i], 16 + i);
    }
    /* whole parents can be swapped, too, so that every size is exact */
    for (int64_t size = 1; size < 64; size++) {
        check_partitions(a, size, all, 64, true);
    }
    check_partitions(a, 33, all, 50, true);
}

/* Three whole parents give each device 7 strong and 16 weak links, which no other set of 24 gives
 * to all: 7 x 600,000 + 16 x 64,000; a parent against the two others is 8 x 16 x 64,000, which is
 * more. */
static void whole_parents_are_filled(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = partitioned();
    weft_auto(weft_allocator_free) struct weft_allocator *a = NULL;
    weft_auto(weft_choice_done) struct weft_choice c = {0};
    size_t all[64];
    for (size_t i = 0; i < 64; i++) {
        all[i] = 63 - i;
    }
    CHECK_INT(weft_allocator_new(m, &a, NULL), 0);
    const struct weft_request r = {.available = all, .available_count = 64, .size = 24};
    CHECK_INT(weft_allocator_pick(a, &r, &c, NULL), 0);
    CHECK(c.exact);
    CHECK_INT(c.objective.min_cut_mbps, 7 * 600000 + 16 * 64000);
    for (size_t i = 0; i < c.count; i++) {
        CHECK_INT(c.devices[i], i);
    }
}

/* Two switch pairs that can be swapped whole, {0,3} and {1,2}; all linked alike. Each set of three
 * breaks one pair and is equal to each other one up to entry 7. {0,1,2} has the lowest device that
 * not all have, although it takes fewer of the pair with device 0. */
static void swapped_pairs_keep_device_order(void)
{
    enum { N = 4 };
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    CHECK_INT(weft_machine_new("crossed", N, 0, &m, NULL), 0);
    for (size_t i = 0; m != NULL && i < N; i++) {
        (void)snprintf(m->devices[i].id, sizeof(m->devices[i].id), "d%zu", i);
        m->devices[i].bdf = (struct weft_bdf){.known = true, .bus = (uint8_t)(16 + i)};
        for (size_t j = 0; j < N; j++) {
            m->bandwidth[i * N + j] = i != j ? 25000 : 0;
            m->distance[i * N + j] = i + j == N - 1 ? WEFT_DISTANCE_PIX : WEFT_DISTANCE_NODE;
        }
    }
    for (int way = 0; m != NULL && way < 4; way++) {
        weft_auto(weft_allocator_free) struct weft_allocator *a = NULL;
        weft_auto(weft_choice_done) struct weft_choice c = {0};
        const size_t all[N] = {0, 1, 2, 3};
        const struct weft_request r = {.available = all,
                                       .available_count = N,
                                       .size = 3,
                                       .policy = way / 2 == 0 ? WEFT_POLICY_PERFORMANCE
                                                              : WEFT_POLICY_PACKED};
        CHECK_INT(way % 2 == 0 ? weft_allocator_new(m, &a, NULL)
                               : weft_allocator_new_direct(m, &a, NULL),
                  0);
        CHECK_INT(weft_allocator_pick(a, &r, &c, NULL), 0);
        for (size_t i = 0; i < c.count; i++) {
            CHECK_INT(c.devices[i], i);
        }
        CHECK_INT(c.objective.broken_groups, 2); /* a pair, and all four */
        CHECK_INT(c.objective.leftover, 2);
    }
}

/* A large machine without any order in it. */
static void bounded_search_keeps_its_bounds(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    weft_auto(weft_allocator_free) struct weft_allocator *a = NULL;
    uint64_t seed = 11;
    enum { N = 200 };
    CHECK_INT(weft_machine_new("large", N, 4, &m, NULL), 0);
    size_t available[N];
    size_t count = 0;
    for (size_t i = 0; m != NULL && i < N; i++) {
        (void)snprintf(m->devices[i].id, sizeof(m->devices[i].id), "d%zu", i);
        m->devices[i].socket = m->devices[i].numa_group = (int)(i % 4);
        if (i == 19 || weft_random_below(&seed, 3) > 0) {
            available[count++] = i;
        }
        for (size_t j = i + 1; j < N; j++) {
            m->bandwidth[i * N + j] = m->bandwidth[j * N + i] = weft_random_below(&seed, 4) * 25000;
            m->distance[i * N + j] = m->distance[j * N + i] = (uint8_t)weft_random_below(&seed, 6);
        }
    }
    CHECK_INT(weft_allocator_new(m, &a, NULL), 0);
    check_partitions(a, 20, available, count, false);
    check_partitions(a, 60, available, count, false);
    check_partitions(a, (int64_t)count - 1, available, count, true);
}

/* A request takes its memory in one piece, whatever it is and however it is answered. */
static void one_allocation_a_request(void)
{
    weft_auto(weft_machine_free) struct weft_machine *real = machine_fixture("tree16.txt");
    weft_auto(weft_machine_free) struct weft_machine *parts = partitioned();
    size_t all[64];
    uint32_t totals[64];
    struct weft_replica ids[64 * 4];
    for (uint32_t i = 0; i < 64 * 4; i++) {
        all[i / 4] = i / 4;
        totals[i / 4] = 4;
        ids[i] = (struct weft_replica){.device = i / 4, .number = i % 4};
    }
    for (int kind = 0; real != NULL && parts != NULL && kind < 3; kind++) {
        weft_auto(weft_allocator_free) struct weft_allocator *a = NULL;
        const struct weft_machine *m = kind == 2 ? parts : real;
        CHECK_INT(kind == 1 ? weft_allocator_new_direct(m, &a, NULL)
                            : weft_allocator_new(m, &a, NULL),
                  0);
        for (int64_t size = 0; size <= (int64_t)m->device_count; size += 4) {
            const struct weft_request r = {
                .available = all, .available_count = m->device_count, .size = size};
            const struct weft_replica_request shared = {.available = ids,
                                                        .available_count = 4 * m->device_count,
                                                        .totals = totals,
                                                        .size = size * 3};
            weft_auto(weft_choice_done) struct weft_choice c = {0};
            weft_auto(weft_replica_choice_done) struct weft_replica_choice d = {0};
            (void)weft_mem_fail_after(0);
            CHECK_INT(weft_allocator_pick(a, &r, &c, NULL), 0);
            CHECK_INT(weft_mem_fail_after(0), 1);
            CHECK_INT(weft_allocator_pick_replicas(a, &shared, &d, NULL), 0);
            CHECK_INT(weft_mem_fail_after(0), 1);
        }
    }
}

static void failing_allocations(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_fixture("tree16.txt");
    const size_t all[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    const struct weft_request r = {.available = all, .available_count = 12, .size = 5};
    bool done = m == NULL;
    for (uint64_t nth = 1; !done && nth < 500; nth++) {
        weft_auto(weft_allocator_free) struct weft_allocator *a = NULL;
        weft_auto(weft_allocator_free) struct weft_allocator *direct = NULL;
        weft_auto(weft_choice_done) struct weft_choice c = {0};
        weft_auto(weft_choice_done) struct weft_choice d = {0};
        struct weft_error err = {0};
        (void)weft_mem_fail_after(nth);
        int rc = weft_allocator_new(m, &a, &err);
        rc = rc == 0 ? weft_allocator_pick(a, &r, &c, &err) : rc;
        rc = rc == 0 ? weft_allocator_new_direct(m, &direct, &err) : rc;
        rc = rc == 0 ? weft_allocator_pick(direct, &r, &d, &err) : rc;
        (void)weft_mem_fail_after(0);
        done = rc == 0;
        CHECK(done || (rc == -ENOMEM && err.code == -ENOMEM));
    }
    CHECK(done);
}

WEFT_SUITE(allocator, {"A: the pair and a neighbour", case_a}, {"B: three of one socket", case_b},
           {"C: two whole pairs", case_c}, {"D: a ring, not a hanging device", case_d},
           {"E: two links, not one", case_e}, {"F: two links, not NVIDIA's one", case_f},
           {"G: the required one's partner", case_g}, {"H: one GPU from a broken group", case_h},
           {"I: links that differ by direction", case_i},
           {"J: the degraded GPU is avoided", case_j}, {"HGX", hgx}, {"NICs draw", nics_draw},
           {"policy packed", packed_policy}, {"clipped requests", clipped_requests},
           {"unhealthy devices are not given", unhealthy_devices_are_not_given},
           {"device order", device_order}, {"policy names", policy_names},
           {"partitions are counted", partitions_are_counted},
           {"whole parents are filled", whole_parents_are_filled},
           {"swapped pairs keep device order", swapped_pairs_keep_device_order},
           {"a bounded search keeps its bounds", bounded_search_keeps_its_bounds},
           {"one allocation a request", one_allocation_a_request},
           {"failing allocations", failing_allocations})
