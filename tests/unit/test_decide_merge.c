/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration's onCross and settle, from its text to the Nodes' places. Expected places
 * follow from the labels given here, by hand. */
#include <stdio.h>

#include "controller/decide.h"
#include "pkg/source/config.h"
#include "tests/unit/decide_world.h"
#include "tests/unit/unit.h"

#define SOURCES                                                                                    \
    "tiers: [nvlink, leaf]\nsources:\n"                                                            \
    "- labels: {keys: [{key: x/leaf, tierName: leaf}]}\n"                                          \
    "- labels: {keys: [{key: x/nvl, tierName: nvlink}]}\n"

/* Leaf l0: n00 to n03, l1: n04 and n05; domain d: n02, n03, n04, d2: the others of l0. */
static void make_world(struct decide_world *w, const char *config)
{
    decide_world_init(w, config);
    for (size_t i = 0; i < 6; i++) {
        char name[8];
        (void)snprintf(name, sizeof(name), "n%02zu", i);
        decide_world_label(w, name, "x/leaf", i < 4 ? "l0" : "l1");
        decide_world_label(w, name, "x/nvl", i < 2 ? "d2" : i < 5 ? "d" : "d3");
    }
    decide_world_decided(w);
}

static const char *place(const struct decide_world *w, const char *node, size_t tier)
{
    const char *values[WEFT_LAYOUT_TIERS_MAX] = {""};
    CHECK_INT(weft_decision_labels(&w->decision, node, values), 2);
    return values[tier];
}

static bool together(const struct decide_world *w, const char *a, const char *b, size_t tier)
{
    return strcmp(place(w, a, tier), place(w, b, tier)) == 0;
}

static void test_domain_wins(void)
{
    struct decide_world w;
    make_world(&w, SOURCES);
    CHECK(together(&w, "n02", "n04", 0));
    CHECK_CONTAINS(place(&w, "n04", 1), "weft-leaf-l0-");
    CHECK_CONTAINS(place(&w, "n05", 1), "weft-leaf-l1-");
    decide_world_done(&w);
}

static void test_split(void)
{
    struct decide_world w;
    make_world(&w, SOURCES "onCross: split\n");
    CHECK(together(&w, "n02", "n03", 0));
    CHECK(!together(&w, "n02", "n04", 0));
    CHECK_CONTAINS(place(&w, "n04", 1), "weft-leaf-l1-");
    decide_world_done(&w);
}

/* There is no tier above the leaves: the domain stands by itself, padded on its leaf's tier. */
static void test_lift(void)
{
    struct decide_world w;
    make_world(&w, SOURCES "onCross: lift\n");
    CHECK(together(&w, "n02", "n04", 0));
    CHECK(together(&w, "n02", "n04", 1));
    CHECK(!together(&w, "n02", "n00", 1));
    CHECK(!together(&w, "n05", "n04", 1));
    decide_world_done(&w);
}

/* n05 is said to be in l0: it counts when a second pass agrees (labels are seen in every pass). */
static void test_settle(void)
{
    struct decide_world w;
    make_world(&w, SOURCES "settle: {snapshots: 2}\n");
    decide_world_carry_out(&w);
    decide_world_label(&w, "n05", "x/leaf", "l0");
    decide_world_decided(&w);
    CHECK_INT(w.decision.plan.step_count, 0);
    CHECK_INT(w.decision.keep.settling, 1);
    CHECK_CONTAINS(place(&w, "n05", 1), "weft-leaf-l1-");
    decide_world_decided(&w);
    CHECK_INT(w.decision.keep.settling, 0);
    CHECK_CONTAINS(place(&w, "n05", 1), "weft-leaf-l0-");
    decide_world_done(&w);
}

WEFT_SUITE(decide_merge, {"domain wins", test_domain_wins}, {"split", test_split},
           {"lift", test_lift}, {"settle", test_settle})
