/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that lose a part of their levels. Expected places follow from the labels given here, by
 * hand. */
#include "controller/decide.h"
#include "pkg/source/config.h"
#include "tests/unit/decide_world.h"
#include "tests/unit/unit.h"

#define HALLS                                                                                      \
    "tiers: [rack, zone, hall]\nsources:\n- labels:\n    keys:\n"                                  \
    "    - {key: x/rack, tierName: rack}\n    - {key: x/zone, tierName: zone}\n"                   \
    "    - {key: x/hall, tierName: hall}\n"

/* Node n05 of 16 in two halls (r1, z0, h0) after it lost the levels of lost ("x/rack"…). */
static void lose_levels(struct decide_world *w, const char *const *lost, size_t count)
{
    decide_world_init(w, HALLS);
    decide_world_add_nodes(w, 16);
    for (size_t i = 0; i < 16; i++) {
        decide_world_label(w, w->nodes.items[i].name, "x/hall", i < 8 ? "h0" : "h1");
    }
    decide_world_decided(w);
    decide_world_carry_out(w);
    for (size_t i = 0; i < count; i++) {
        decide_world_label(w, "n05", lost[i], "");
    }
    decide_world_decided(w);
}

/* Any level may be missing; what is left names the groups where it is. A restart, a keep without
 * memory, changes nothing. */
static void test_lost_level_keeps_the_place(void)
{
    static const char *const levels[] = {"x/rack", "x/zone", "x/hall", "x/rack"};
    for (size_t first = 0; first < WEFT_ARRAY_LEN(levels); first++) {
        for (size_t count = 1; count <= 2 && first + count <= WEFT_ARRAY_LEN(levels); count++) {
            struct decide_world w;
            lose_levels(&w, &levels[first], count);
            CHECK_INT(w.decision.plan.step_count, 0);
            CHECK_INT(w.decision.keep.kept, 1);
            CHECK_STR(w.decision.keep.kept_names[0], "n05");
            const char *values[WEFT_LAYOUT_TIERS_MAX] = {""};
            CHECK_INT(weft_decision_labels(&w.decision, "n05", values), 3);
            CHECK_CONTAINS(values[0], "weft-rack-r1-");
            weft_keep_free(w.keep);
            w.keep = weft_keep_new();
            decide_world_decided(&w);
            CHECK_INT(w.decision.plan.step_count, 0);
            CHECK_INT(w.decision.keep.kept, 1);
            decide_world_done(&w);
        }
    }
}

/* All of rack r1 lack their zone: without brakes they stay as well, though no source names their
 * rack by its full path any more. */
static void test_group_loses_a_level(void)
{
    struct decide_world w;
    lose_levels(&w, NULL, 0);
    w.config->brakes.lost_percent = 100;
    for (size_t i = 4; i < 8; i++) {
        decide_world_label(&w, w.nodes.items[i].name, "x/zone", "");
    }
    decide_world_decided(&w);
    CHECK_INT(w.decision.plan.step_count, 0);
    CHECK_INT(w.decision.keep.kept, 4);
    decide_world_done(&w);
}

/* n05 without its rack, but in another zone: it goes there, into padding. */
static void test_lost_level_and_other_zone(void)
{
    struct decide_world w;
    static const char *const rack[] = {"x/rack"};
    lose_levels(&w, rack, 1);
    decide_world_label(&w, "n05", "x/zone", "z1");
    decide_world_label(&w, "n05", "x/hall", "h1");
    decide_world_decided(&w);
    const char *values[WEFT_LAYOUT_TIERS_MAX] = {""};
    CHECK_INT(w.decision.keep.kept, 0);
    CHECK_INT(weft_decision_labels(&w.decision, "n05", values), 3);
    CHECK_CONTAINS(values[0], "weft-rack-z1-");
    CHECK_CONTAINS(values[1], "weft-zone-z1-");
    /* once it is there, the padding is its place */
    decide_world_carry_out(&w);
    decide_world_decided(&w);
    CHECK_INT(w.decision.plan.step_count, 0);
    CHECK_INT(w.decision.keep.kept, 0);
    decide_world_done(&w);
}

/* A new Node without a rack never had one: padding. */
static void test_never_had_a_level(void)
{
    struct decide_world w;
    lose_levels(&w, NULL, 0);
    decide_world_label(&w, "n99", "x/zone", "z1");
    decide_world_label(&w, "n99", "x/hall", "h1");
    decide_world_decided(&w);
    const char *values[WEFT_LAYOUT_TIERS_MAX] = {""};
    CHECK_INT(w.decision.keep.kept, 0);
    CHECK_INT(weft_decision_labels(&w.decision, "n99", values), 3);
    CHECK_CONTAINS(values[0], "weft-rack-z1-");
    decide_world_done(&w);
}

/* The racks are taken out of the sources, the tier stays in the plan: that is no doubt. */
static void test_level_not_declared_any_more(void)
{
    struct decide_world w;
    lose_levels(&w, NULL, 0);
    weft_config_free(w.config);
    static const char config[] = "apiVersion: weft.dev/v1alpha1\nkind: ControllerConfig\ntiers: "
                                 "[rack, zone, hall]\nsources:\n- labels: {keys: [{key: "
                                 "x/zone, tierName: zone}, {key: x/hall, tierName: hall}]}\n"
                                 "brakes: {moved: 100%}\n";
    CHECK_INT(weft_config_parse(config, strlen(config), "config", &w.config, &w.err), 0);
    decide_world_decided(&w);
    const char *values[WEFT_LAYOUT_TIERS_MAX] = {""};
    CHECK_INT(w.decision.keep.kept, 0);
    CHECK_INT(weft_decision_labels(&w.decision, "n05", values), 3);
    CHECK_CONTAINS(values[0], "weft-rack-z0-");
    decide_world_done(&w);
}

WEFT_SUITE(decide_levels, {"lost level keeps the place", test_lost_level_keeps_the_place},
           {"group loses a level", test_group_loses_a_level},
           {"lost level and other zone", test_lost_level_and_other_zone},
           {"never had a level", test_never_had_a_level},
           {"level not declared any more", test_level_not_declared_any_more})
