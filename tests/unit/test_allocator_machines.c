/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator on further machines that are sold, one fixture each. The right answers were worked
 * out by hand from the fixture and allocation.md; the comments say how. (test_allocator.c has the
 * ten requests A to J, HGX, NVLinks that are down, and the flat virtual machine.) */
#include <stdio.h>

#include "pkg/allocator/allocator.h"
#include "pkg/base/str.h"
#include "pkg/machine/machine.h"
#include "tests/unit/machines.h"
#include "tests/unit/unit.h"

struct request {
    const char *available; /* indices; NULL: all */
    const char *required;
    int64_t size;
    const char *want; /* indices in device order */
    enum weft_policy policy;
};

/* Picks with and without tables. */
static void check(const struct weft_machine *m, const struct request *r,
                  struct weft_objective *ret_objective)
{
    size_t available[64];
    size_t required[64];
    size_t want[64];
    const size_t want_count = machine_ids(m, r->want, want);
    for (size_t i = 0; i < m->device_count; i++) {
        available[i] = m->device_count - 1 - i;
    }
    const struct weft_request request = {
        .available = available,
        .available_count =
            r->available != NULL ? machine_ids(m, r->available, available) : m->device_count,
        .required = required,
        .required_count = r->required != NULL ? machine_ids(m, r->required, required) : 0,
        .size = r->size,
        .policy = r->policy,
    };
    for (int tables = 0; tables < 2; tables++) {
        weft_auto(weft_allocator_free) struct weft_allocator *a = NULL;
        weft_auto(weft_choice_done) struct weft_choice c = {0};
        CHECK_INT(tables ? weft_allocator_new(m, &a, NULL) : weft_allocator_new_direct(m, &a, NULL),
                  0);
        CHECK_INT(weft_allocator_pick(a, &request, &c, NULL), 0);
        CHECK(c.exact);
        CHECK_INT(c.count, want_count);
        for (size_t i = 0; i < c.count && i < want_count; i++) {
            if (!CHECK_INT(c.devices[i], want[i])) {
                (void)fprintf(stderr, "%s, %d of %s, wanted %s\n", m->name, (int)r->size,
                              r->available != NULL ? r->available : "all", r->want);
            }
        }
        if (ret_objective != NULL) {
            *ret_objective = c.objective;
        }
    }
}

/* Four GPUs of two Grace CPUs, all behind NVSwitch with 18 links of 50,000. Any two have the same
 * cut; one socket decides. Three take one socket whole and break the other and the four: any such
 * set, so the first. With 0 gone its socket is not whole any more: 1 breaks nothing. */
static void gb200_tray(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_fixture("gb200-tray-4.json");
    struct weft_objective o;
    if (m == NULL) {
        return;
    }
    check(m, &(struct request){.size = 2, .want = "0,1"}, &o);
    CHECK_INT(o.min_cut_mbps, 900000);
    CHECK_INT(o.sockets, 1);
    CHECK_INT(o.broken_groups, 1); /* the four */
    CHECK_INT(o.nic_near, 0);      /* each NIC hangs on a root port of its own */
    check(m, &(struct request){.size = 3, .want = "0,1,2"}, &o);
    CHECK_INT(o.min_cut_mbps, 2 * 900000);
    CHECK_INT(o.broken_groups, 2);
    check(m, &(struct request){.available = "1,2,3", .size = 1, .want = "1"}, NULL);
    check(m, &(struct request){.available = "1,2,3", .size = 2, .want = "2,3"}, NULL);
    check(m, &(struct request){.size = 4, .want = "0,1,2,3"}, &o);
    CHECK_INT(o.min_cut_mbps, 3 * 900000);
}

/* Full mesh of 64,000 between 8 GPUs of two sockets, a NIC beside each. Five: all sets have a cut
 * of 4 links; 4 + 1 break one socket and the eight, 3 + 2 both sockets. */
static void mi300x_mesh(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_fixture("mi300x-8.json");
    struct weft_objective o;
    if (m == NULL) {
        return;
    }
    check(m, &(struct request){.size = 4, .want = "0,1,2,3"}, &o);
    CHECK_INT(o.min_cut_mbps, 3 * 64000);
    CHECK_INT(o.nic_near, 4);
    CHECK_INT(o.nic_distinct, 4);
    check(m, &(struct request){.size = 5, .want = "0,1,2,3,4"}, &o);
    CHECK_INT(o.min_cut_mbps, 4 * 64000);
    CHECK_INT(o.broken_groups, 2);
    CHECK_INT(o.leftover, 3 + 3);
    check(m, &(struct request){.available = "1,2,3,4,5,6,7", .size = 4, .want = "4,5,6,7"}, NULL);
}

/* Four packages of two dies: 4 links inside, between them 0-6 and 2-4 with two links, 0-2 1-3 1-5
 * 3-7 4-6 5-7 with one; 50,000 each. AMD's own weights see xGMI or not, so that a package ties with
 * a pair across. Two dies of different packages: 0-6 and 2-4 have two links; PCI order. Four: no
 * set has more than two links in its narrowest cut (two packages have at most two between them; a
 * package with two single dies leaves one of these on one link; of four single dies only 0,2,4,6
 * and 1,3,5,7 are rings). Package pairs with two links stay in two NUMA nodes: {0,1,2,3},
 * {0,1,6,7}, {2,3,4,5}, {4,5,6,7}. Joined by two links are {0,1,6,7} and {2,3,4,5}: taking one of
 * these breaks only the eight, the others break both. */
static void mi250x_packages(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_fixture("mi250x-8.json");
    struct weft_objective o;
    if (m == NULL) {
        return;
    }
    check(m, &(struct request){.size = 2, .want = "0,1"}, &o);
    CHECK_INT(o.min_cut_mbps, 4 * 50000);
    check(m, &(struct request){.available = "0,2,4,6", .size = 2, .want = "0,6"}, &o);
    CHECK_INT(o.min_cut_mbps, 2 * 50000);
    check(m, &(struct request){.size = 4, .want = "0,1,6,7"}, &o);
    CHECK_INT(o.min_cut_mbps, 2 * 50000);
    CHECK_INT(o.broken_groups, 1);
    CHECK_INT(o.numa_nodes, 2);
    CHECK_INT(o.bandwidth_mbps, (4 + 4 + 2) * 50000);
}

/* MI300X in CPX mode: 8 parts a GPU, 600,000 inside, 64,000 between. Twelve of two GPUs: 6 + 6 have
 * 36 x 64,000 = 2,304,000 between them and each part 5 x 600,000 + 6 x 64,000; 7 + 5 have 35, 8 + 4
 * have 32 between. A third GPU leaves parts with less: 4 + 4 + 4 have 4 x 8 x 64,000 around each
 * four. Packed: 8 + 4 break one GPU, 6 + 6 two. With part 0 in use seven of GPU 0 break nothing. */
static void mi300x_parts(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_mi300x_cpx();
    struct weft_objective o;
    if (m == NULL) {
        CU_FAIL("no machine");
        return;
    }
    check(m, &(struct request){.size = 8, .want = "0,1,2,3,4,5,6,7"}, &o);
    CHECK_INT(o.min_cut_mbps, 7 * 600000);
    check(m, &(struct request){.size = 12, .want = "0,1,2,3,4,5,8,9,10,11,12,13"}, &o);
    CHECK_INT(o.min_cut_mbps, 36 * 64000);
    check(m,
          &(struct request){
              .size = 12, .want = "0,1,2,3,4,5,6,7,8,9,10,11", .policy = WEFT_POLICY_PACKED},
          &o);
    CHECK_INT(o.min_cut_mbps, 32 * 64000);
    check(m, &(struct request){.size = 1, .required = "63", .want = "63"}, NULL);
    char rest[256] = "";
    for (int i = 1; i < 64; i++) {
        (void)snprintf(rest + strlen(rest), sizeof(rest) - strlen(rest), "%d%s", i,
                       i < 63 ? "," : "");
    }
    check(m, &(struct request){.available = rest, .size = 1, .want = "1"}, NULL);
    check(m, &(struct request){.available = rest, .size = 7, .want = "1,2,3,4,5,6,7"}, &o);
    CHECK_INT(o.broken_groups, 0);
}

/* Ten GPUs, five behind each of two switches of one CPU; NUMA unknown. Six must cross: five of one
 * switch and one of the other break one switch and the ten, all else both switches. */
static void plx_without_numa(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_fixture("plx10.txt");
    struct weft_objective o;
    if (m == NULL) {
        return;
    }
    CHECK_INT(m->devices[0].numa_node, -1);
    check(m, &(struct request){.size = 4, .want = "0,1,2,3"}, &o);
    CHECK_INT(o.worst_tier, WEFT_DISTANCE_PIX);
    CHECK_INT(o.numa_nodes, 1); /* all unknown ones are one */
    check(m, &(struct request){.size = 5, .want = "0,1,2,3,4"}, &o);
    CHECK_INT(o.broken_groups, 1); /* the ten */
    check(m, &(struct request){.size = 6, .want = "0,1,2,3,4,5"}, &o);
    CHECK_INT(o.worst_tier, WEFT_DISTANCE_PHB);
    CHECK_INT(o.broken_groups, 2);
    check(m, &(struct request){.available = "1,2,3,4,5,6,7,8,9", .size = 2, .want = "1,2"}, NULL);
    check(m, &(struct request){.size = 2, .required = "7", .want = "5,7"}, NULL);
}

/* Rule 6: four switch pairs; two NICs behind {2,3}, one behind {4,5}, one behind {6,7}. Pairs tie
 * up to rule 5; {0,1} has no NIC near, {2,3} two. Four of one socket: {0,1,2,3} has two devices
 * near a NIC, {4,5,6,7} four. With 2 and 3 in use rule 5 comes first: {0,1} breaks nothing. */
static void l40s_nics(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_fixture("l40s-8.txt");
    struct weft_objective o;
    if (m == NULL) {
        return;
    }
    check(m, &(struct request){.size = 2, .want = "2,3"}, &o);
    CHECK_INT(o.nic_near, 2);
    CHECK_INT(o.nic_distinct, 2);
    check(m, &(struct request){.size = 1, .want = "2"}, NULL);
    check(m, &(struct request){.size = 4, .want = "4,5,6,7"}, &o);
    CHECK_INT(o.nic_near, 4);
    CHECK_INT(o.nic_distinct, 2);
    check(m, &(struct request){.available = "0,1,4,5,6,7", .size = 2, .want = "0,1"}, NULL);
}

/* Two rings of four cards, 120,000 a side. Neighbours are all linked alike; {0,1} is a switch pair,
 * {1,2} breaks two. Three are a chain: its ends are unlinked at NODE, its narrowest cut one side.
 * Four are a ring: two sides. */
static void mtt_rings(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_fixture("mtt-s4000-8.json");
    struct weft_objective o;
    if (m == NULL) {
        return;
    }
    check(m, &(struct request){.size = 2, .want = "0,1"}, &o);
    CHECK_INT(o.min_cut_mbps, 120000);
    CHECK_INT(o.broken_groups, 1); /* the ring */
    check(m, &(struct request){.available = "1,2,4,6", .size = 2, .want = "1,2"}, NULL);
    check(m, &(struct request){.size = 3, .want = "0,1,2"}, &o);
    CHECK_INT(o.min_cut_mbps, 120000);
    CHECK_INT(o.worst_tier, WEFT_DISTANCE_NODE);
    check(m, &(struct request){.size = 4, .want = "0,1,2,3"}, &o);
    CHECK_INT(o.min_cut_mbps, 2 * 120000);
    check(m, &(struct request){.size = 5, .want = "0,1,2,3,4"}, &o);
    CHECK_INT(o.components, 2);
}

/* 16 GPUs, 6 links of 25,000 each to switches. NV6 hides the PCIe path; the NICs tell that 0 and 1
 * sit behind one switch, 0 to 3 behind two. Five: a whole four and one of the next break a pair, a
 * four, an eight and the sixteen; anything else breaks more. */
static void dgx_2(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_fixture("dgx-2.txt");
    struct weft_objective o;
    if (m == NULL) {
        return;
    }
    CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_PIX);
    CHECK_INT(weft_machine_t(m, 1, 2), WEFT_DISTANCE_PXB);
    CHECK_INT(weft_machine_t(m, 3, 4), WEFT_DISTANCE_NODE);
    CHECK_INT(weft_machine_t(m, 7, 8), WEFT_DISTANCE_SYS);
    check(m, &(struct request){.size = 2, .want = "0,1"}, &o);
    CHECK_INT(o.min_cut_mbps, 6 * 25000);
    check(m, &(struct request){.size = 2, .required = "9", .want = "8,9"}, NULL);
    check(m, &(struct request){.size = 4, .want = "0,1,2,3"}, NULL);
    check(m, &(struct request){.size = 5, .want = "0,1,2,3,4"}, &o);
    CHECK_INT(o.min_cut_mbps, 4 * 6 * 25000);
    CHECK_INT(o.broken_groups, 4);
    CHECK_INT(o.leftover, 1 + 3 + 3 + 11);
    CHECK_INT(o.nic_near, 5);
    CHECK_INT(o.nic_distinct, 4);
    check(m, &(struct request){.size = 8, .want = "0,1,2,3,4,5,6,7"}, &o);
    CHECK_INT(o.broken_groups, 1);
    check(m,
          &(struct request){.available = "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
                            .size = 8,
                            .want = "8,9,10,11,12,13,14,15"},
          NULL);
}

WEFT_SUITE(allocator_machines, {"GB200 tray", gb200_tray}, {"MI300X", mi300x_mesh},
           {"MI250X", mi250x_packages}, {"MI300X in 64 parts", mi300x_parts},
           {"ten GPUs behind two switches, NUMA unknown", plx_without_numa},
           {"8 L40S and 4 NICs", l40s_nics}, {"8 MTT S4000", mtt_rings}, {"DGX-2", dgx_2})
