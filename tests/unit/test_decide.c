/* SPDX-License-Identifier: Apache-2.0 */
/* From Nodes and a configuration to plan and labels. Expected places follow from the labels given
 * here, by hand. */
#include "controller/decide.h"

#include <errno.h>
#include <stdio.h>

#include "controller/forest.h"
#include "controller/labelled.h"
#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/fabric/fabric.h"
#include "pkg/source/config.h"
#include "pkg/source/source.h"
#include "tests/unit/decide_world.h"
#include "tests/unit/hypernodes.h"
#include "tests/unit/unit.h"

#define RACKS                                                                                      \
    "tiers: [rack, zone]\n"                                                                        \
    "sources:\n"                                                                                   \
    "- labels: {keys: [{key: x/rack, tierName: rack}, {key: x/zone, tierName: zone}]}\n"

/* The same keys under other names. */
#define RENAMED                                                                                    \
    "apiVersion: weft.dev/v1alpha1\nkind: ControllerConfig\n"                                      \
    "tiers: [shelf, hall]\n"                                                                       \
    "sources:\n"                                                                                   \
    "- labels: {keys: [{key: x/rack, tierName: shelf}, {key: x/zone, tierName: hall}]}\n"

/* "rack zone" of the Node as the groups' names without prefix and hash, "" if it has no labels. */
static void check_place(const struct decide_world *w, const char *node, const char *rack,
                        const char *zone)
{
    const char *values[WEFT_LAYOUT_TIERS_MAX] = {"", ""};
    const size_t count = weft_decision_labels(&w->decision, node, values);
    CHECK_INT(count, rack[0] == '\0' ? 0 : 2);
    if (count == 2) {
        weft_autofree char *at1 = weft_asprintf("weft-rack-%s-", rack);
        weft_autofree char *at2 = weft_asprintf("weft-zone-%s-", zone);
        CHECK_CONTAINS(values[0], at1);
        CHECK_CONTAINS(values[1], at2);
    }
}

static void test_first_pass(void)
{
    struct decide_world w;
    decide_world_init(&w, RACKS);
    decide_world_add_nodes(&w, 16);
    decide_world_decided(&w);
    CHECK_INT(w.decision.selected, 16);
    CHECK_INT(w.decision.plan.step_count, 6); /* four racks, two zones */
    CHECK_INT(w.decision.plan.steps[0].object.tier, 1);
    CHECK_INT(w.decision.plan.steps[5].object.tier, 2);
    check_place(&w, "n00", "r0", "z0");
    check_place(&w, "n07", "r1", "z0");
    check_place(&w, "n15", "r3", "z1");
    check_place(&w, "unknown", "", "");
    CHECK(w.memory[3].placed);
    CHECK_INT(w.memory[3].source, 0);
    decide_world_carry_out(&w);
    decide_world_decided(&w);
    CHECK_INT(w.decision.plan.step_count, 0);
    decide_world_done(&w);
}

static void test_selector_and_exclude(void)
{
    struct decide_world w;
    decide_world_init(&w, "nodeSelector: \"gpu=yes\"\n" RACKS);
    decide_world_add_nodes(&w, 8);
    for (size_t i = 0; i < 6; i++) {
        char name[24];
        (void)snprintf(name, sizeof(name), "n%02zu", i);
        decide_world_label(&w, name, "gpu", "yes");
    }
    decide_world_label(&w, "n01", "weft.dev/exclude", "");
    decide_world_label(&w, "n02", "weft.dev/exclude", "false");
    decide_world_decided(&w);
    CHECK_INT(w.decision.selected, 5);
    CHECK_INT(w.decision.excluded, 1);
    check_place(&w, "n00", "r0", "z0");
    check_place(&w, "n01", "", "");
    check_place(&w, "n02", "r0", "z0");
    check_place(&w, "n06", "", "");
    decide_world_done(&w);
}

static void test_lost_labels_keep_the_place(void)
{
    struct decide_world w;
    decide_world_init(&w, RACKS);
    decide_world_add_nodes(&w, 16);
    decide_world_decided(&w);
    decide_world_carry_out(&w);
    decide_world_unlabel(&w, "n05");
    decide_world_decided(&w);
    CHECK_INT(w.decision.plan.step_count, 0);
    CHECK_INT(w.decision.keep.kept, 1);
    check_place(&w, "n05", "r1", "z0");
    /* positive evidence elsewhere: two writes */
    decide_world_label(&w, "n05", "x/rack", "r3");
    decide_world_label(&w, "n05", "x/zone", "z1");
    decide_world_decided(&w);
    CHECK_INT(w.decision.plan.step_count, 2);
    CHECK_INT(w.decision.plan.steps[0].kind, WEFT_STEP_RELEASE);
    CHECK_INT(w.decision.plan.steps[1].kind, WEFT_STEP_CLAIM);
    check_place(&w, "n05", "r3", "z1");
    decide_world_done(&w);
}

/* Everything loses its labels: nothing is written, it is said. */
static void test_all_labels_lost(void)
{
    struct decide_world w;
    decide_world_init(&w, RACKS);
    decide_world_add_nodes(&w, 16);
    decide_world_decided(&w);
    decide_world_carry_out(&w);
    for (size_t i = 0; i < 16; i++) {
        decide_world_unlabel(&w, w.nodes.items[i].name);
    }
    decide_world_decided(&w);
    CHECK(w.decision.keep.refused);
    CHECK_INT(w.decision.plan.step_count, 0);
    check_place(&w, "n09", "r2", "z1");
    decide_world_done(&w);
}

/* Half of the racks go to the other zone: held, but a joining Node gets its place. */
static void test_brake(void)
{
    struct decide_world w;
    decide_world_init(&w, RACKS);
    decide_world_add_nodes(&w, 16);
    decide_world_decided(&w);
    decide_world_carry_out(&w);
    for (size_t i = 0; i < 8; i++) {
        decide_world_label(&w, w.nodes.items[i].name, "x/zone", "z1");
    }
    decide_world_label(&w, "new", "x/rack", "r2");
    decide_world_label(&w, "new", "x/zone", "z1");
    decide_world_decided(&w);
    CHECK(w.decision.keep.refused);
    CHECK_INT(w.decision.plan.step_count, 1);
    check_place(&w, "n00", "r0", "z0");
    check_place(&w, "new", "r2", "z1");
    decide_world_accept(&w);
    decide_world_decided(&w);
    CHECK(!w.decision.keep.refused);
    check_place(&w, "n00", "r0", "z1");
    decide_world_done(&w);
}

/* The tiers would be called otherwise: nothing is written, but what somebody deleted under its
 * parent; once accepted, everything is written anew. */
static void test_tiers_renamed(void)
{
    struct decide_world w;
    decide_world_init(&w, RACKS);
    decide_world_add_nodes(&w, 16);
    decide_world_decided(&w);
    decide_world_carry_out(&w);
    weft_config_free(w.config);
    CHECK_INT(weft_config_parse(RENAMED, strlen(RENAMED), "config", &w.config, NULL), 0);
    decide_world_decided(&w);
    CHECK(w.decision.keep.frozen);
    CHECK_INT(w.decision.plan.step_count, 0);

    /* the first rack is deleted by hand */
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set before = {0};
    CHECK_INT(weft_hypernode_set_copy(&w.live, &before), 0);
    weft_autofree char *rack = weft_strdup(w.decision.keep.set.items[0].name);
    CHECK(weft_hypernode_set_remove(&w.live, rack));
    w.places = &before;
    w.lost = true;
    decide_world_decided(&w);
    CHECK(w.decision.keep.frozen);
    CHECK_INT(w.decision.plan.step_count, 1);
    CHECK_STR(w.decision.plan.steps[0].object.name, rack);
    CHECK_INT(w.decision.plan.steps[0].kind, WEFT_STEP_CREATE);
    w.places = NULL;
    w.lost = false;
    weft_hypernode_set_done(&w.live);
    CHECK_INT(weft_hypernode_set_copy(&before, &w.live), 0);

    decide_world_accept(&w);
    CHECK_INT(w.accepted_count, 1);
    decide_world_decided(&w);
    CHECK(!w.decision.keep.refused);
    CHECK_INT(w.decision.plan.step_count, 12); /* 4 racks, 2 zones: each goes, each comes */
    decide_world_carry_out(&w);
    decide_world_decided(&w);
    CHECK_INT(w.decision.plan.step_count, 0);
    decide_world_done(&w);
}

#define SWITCHES "tiers: [leaf, spine]\nsources:\n- infiniband: {dump: /nowhere}\n"

static void parse_dump(struct weft_source_result *ret)
{
    weft_autofree char *text = NULL;
    size_t len = 0;
    CHECK_INT(weft_file_read("tests/fixtures/fabric/two-racks.ibnetdiscover.txt", 1 << 20, &text,
                             &len, NULL),
              0);
    *ret = (struct weft_source_result){0};
    CHECK_INT(weft_parse_infiniband(text, len, "dump", &ret->fabric, NULL), 0);
}

static const char *leaf_identity(const struct decide_world *w)
{
    const struct weft_forest *places = w->decision.places;
    const size_t leaf = weft_forest_home(places, "gpu-11.example");
    return leaf != WEFT_FOREST_NONE ? weft_forest_object(places, leaf)->identity : "";
}

/* The first rack's group is known by one of its two leaf switches. A partial look, which sees both,
 * does not say what it is known by from then on; a whole one does, by one write. */
static void test_part_keeps_identities(void)
{
    struct decide_world w;
    struct weft_source_result dump;
    parse_dump(&dump);
    decide_world_init(&w, SWITCHES);
    for (size_t i = 1; i <= 3; i++) {
        char name[24];
        (void)snprintf(name, sizeof(name), "gpu-1%zu.example", i);
        decide_world_label(&w, name, "x", "y");
    }
    w.result = &dump;
    decide_world_decided(&w);
    CHECK_STR(leaf_identity(&w), "switch:00a1000000000111,00a1000000000112");
    decide_world_carry_out(&w);
    for (size_t i = 0; i < w.live.count; i++) {
        if (w.live.items[i].tier == 1) {
            CHECK_INT(weft_hypernode_set_text(&w.live.items[i].identity, "switch:00a1000000000111"),
                      0);
        }
    }
    dump.partial = true;
    decide_world_decided(&w);
    CHECK_INT(w.decision.plan.step_count, 0);
    CHECK_STR(leaf_identity(&w), "switch:00a1000000000111");
    dump.partial = false;
    decide_world_decided(&w);
    CHECK_INT(w.decision.plan.step_count, 1);
    CHECK_STR(leaf_identity(&w), "switch:00a1000000000111,00a1000000000112");
    decide_world_done(&w);
    weft_fabric_free(dump.fabric);
}

/* Two sources of labels: that one of them loses everything does not hold the other's moves. */
static void test_two_sources(void)
{
    struct decide_world w;
    decide_world_init(
        &w, "tiers: [rack, zone]\n"
            "sources:\n"
            "- labels: {keys: [{key: a/rack, tierName: rack}, {key: a/zone, tierName: zone}]}\n"
            "- labels: {keys: [{key: b/rack, tierName: rack}, {key: b/zone, tierName: zone}]}\n");
    for (size_t i = 0; i < 20; i++) {
        char name[24];
        (void)snprintf(name, sizeof(name), "n%02zu", i);
        decide_world_label(&w, name, i < 10 ? "a/rack" : "b/rack", i < 10 ? "r0" : "r1");
        decide_world_label(&w, name, i < 10 ? "a/zone" : "b/zone", i < 10 ? "z0" : "z1");
    }
    decide_world_decided(&w);
    CHECK_INT(w.memory[0].source, 0);
    CHECK_INT(w.memory[19].source, 1);
    decide_world_carry_out(&w);
    for (size_t i = 0; i < 10; i++) {
        decide_world_unlabel(&w, w.nodes.items[i].name);
    }
    decide_world_label(&w, "n19", "b/rack", "r2");
    decide_world_decided(&w);
    CHECK(w.decision.keep.tallies[0].held);
    CHECK(!w.decision.keep.tallies[1].held);
    check_place(&w, "n00", "r0", "z0");
    check_place(&w, "n19", "r2", "z1");
    decide_world_done(&w);
}

static void test_pruned_tier_name(void)
{
    struct decide_world w;
    decide_world_init(&w, RACKS);
    decide_world_add_nodes(&w, 8);
    decide_world_decided(&w);
    decide_world_carry_out(&w);
    for (size_t i = 0; i < w.live.count; i++) {
        w.live.items[i].tier_name[0] = '\0';
    }
    decide_world_decided(&w);
    CHECK_INT(w.decision.plan.step_count, 3); /* hand edits are put right… */
    w.prunes = true;
    decide_world_decided(&w);
    CHECK_INT(w.decision.plan.step_count, 0); /* …but not what the server drops */
    decide_world_done(&w);
}

/* A foreign object has the Node already: it gets no labels, and nothing touches that object. */
static void test_foreign(void)
{
    struct decide_world w;
    decide_world_init(&w, RACKS);
    decide_world_add_nodes(&w, 8);
    hypernodes_read(&w.live, "!theirs 1 n03\n");
    decide_world_decided(&w);
    check_place(&w, "n03", "", "");
    check_place(&w, "n02", "r0", "z0");
    CHECK(w.decision.plan.finding_count > 0);
    for (size_t i = 0; i < w.decision.plan.step_count; i++) {
        CHECK(strcmp(w.decision.plan.steps[i].object.name, "theirs") != 0);
    }
    decide_world_done(&w);
}

static void test_fresh_node_is_forgotten(void)
{
    struct decide_world w;
    decide_world_init(&w, RACKS);
    decide_world_add_nodes(&w, 8);
    decide_world_decided(&w);
    decide_world_carry_out(&w);
    decide_world_unlabel(&w, "n02");
    w.memory[2].fresh = true;
    decide_world_decided(&w);
    check_place(&w, "n02", "", "");
    CHECK_INT(w.decision.plan.step_count, 1);
    decide_world_done(&w);
}

/* Without HyperNodes the labels on the Nodes tell the last places. */
static void test_places_from_labels(void)
{
    struct decide_world w;
    static const struct weft_names_of_ours ours = {.prefix = "weft.dev/", .instance = "weft"};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set places = {0};
    decide_world_init(&w, RACKS);
    decide_world_add_nodes(&w, 8);
    decide_world_decided(&w);
    for (size_t i = 0; i < 8; i++) {
        const char *values[WEFT_LAYOUT_TIERS_MAX];
        const char *name = w.nodes.items[i].name;
        CHECK_INT(weft_decision_labels(&w.decision, name, values), 2);
        decide_world_label(&w, name, "weft.dev/tier-1", values[0]);
        decide_world_label(&w, name, "weft.dev/tier-2", values[1]);
    }
    /* one that has only a part of them has no place */
    decide_world_label(&w, "n99", "weft.dev/tier-1", "weft-rack-r0-00000000");
    weft_autofree char *want = hypernodes_text(&w.decision.keep.set);
    CHECK_INT(weft_labelled_places(w.nodes.items, w.nodes.count, 2, &ours, &places, NULL), 0);
    CHECK_SET(&places, want);

    (void)!weft_node_set_label(decide_world_node(&w, "n05"), "x/rack", "");
    (void)!weft_node_set_label(decide_world_node(&w, "n05"), "x/zone", "");
    w.places = &places;
    decide_world_decided(&w);
    check_place(&w, "n05", "r1", "z0");
    CHECK_INT(w.decision.plan.step_count, 3); /* the HyperNodes are still to be made */
    decide_world_done(&w);
}

static void test_without_memory(void)
{
    struct decide_world w;
    int rc = -ENOMEM;
    uint64_t n = 1;
    decide_world_init(&w, RACKS);
    decide_world_add_nodes(&w, 8);
    for (; rc < 0 && n < 20000; n++) {
        (void)weft_mem_fail_after(n);
        rc = decide_world_decide(&w);
        (void)weft_mem_fail_after(0);
    }
    CHECK_INT(rc, 0);
    CHECK(n > 100);
    CHECK_INT(w.decision.plan.step_count, 3);
    decide_world_done(&w);
}

/* A forest with as many Nodes as it takes still moves each of them; only one more is too many. */
static void test_full_forest(void)
{
    enum { MOST = 200000, NAME = 8 };
    weft_autofree char *names = weft_calloc(MOST + 1, NAME);
    weft_auto(weft_forest_free) struct weft_forest *forest = NULL;
    const struct weft_hypernode_set none = {0};
    CHECK_INT(weft_forest_new(&none, NULL, &forest, NULL), 0);
    int rc = 0;
    for (size_t i = 0; names != NULL && i < MOST && rc == 0; i++) {
        (void)snprintf(names + i * NAME, NAME, "n%06zu", i);
        rc = weft_forest_put(forest, names + i * NAME, 0);
    }
    CHECK_INT(rc, 0);
    CHECK_INT(weft_forest_node_count(forest), MOST);
    CHECK_INT(weft_forest_put(forest, names, WEFT_FOREST_NONE), 0);
    CHECK(weft_forest_home(forest, names) == WEFT_FOREST_NONE);
    CHECK_INT(weft_forest_put(forest, "more", 0), -EFBIG);
    CHECK_INT(weft_forest_node_count(forest), MOST);
}

WEFT_SUITE(decide, {"full forest", test_full_forest}, {"first pass", test_first_pass},
           {"selector and exclude", test_selector_and_exclude},
           {"lost labels keep the place", test_lost_labels_keep_the_place},
           {"all labels lost", test_all_labels_lost}, {"brake", test_brake},
           {"tiers renamed", test_tiers_renamed},
           {"part keeps identities", test_part_keeps_identities}, {"two sources", test_two_sources},
           {"pruned tierName", test_pruned_tier_name}, {"foreign", test_foreign},
           {"fresh node is forgotten", test_fresh_node_is_forgotten},
           {"places from labels", test_places_from_labels}, {"without memory", test_without_memory})
