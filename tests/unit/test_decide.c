/* SPDX-License-Identifier: Apache-2.0 */
/* From Nodes and a configuration to plan and labels. Expected places follow from the labels given
 * here, by hand. */
#include "controller/decide.h"

#include <errno.h>
#include <stdio.h>

#include "controller/labelled.h"
#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/fabric/fabric.h"
#include "pkg/source/config.h"
#include "tests/unit/hypernodes.h"
#include "tests/unit/unit.h"

enum { NODES_MAX = 40 };

#define RACKS                                                                                      \
    "tiers: [rack, zone]\n"                                                                        \
    "sources:\n"                                                                                   \
    "- labels: {keys: [{key: x/rack, tierName: rack}, {key: x/zone, tierName: zone}]}\n"

struct world {
    struct weft_config *config;
    struct weft_nodes nodes;
    struct weft_decide_memory memory[NODES_MAX];
    struct weft_hypernode_set live;
    struct weft_keep *keep;
    struct weft_decision decision;
    const char *accepted;
    const struct weft_hypernode_set *places;
    bool prunes;
    struct weft_error err;
};

static void world_init(struct world *w, const char *config)
{
    *w = (struct world){.keep = weft_keep_new()};
    weft_autofree char *whole =
        weft_asprintf("apiVersion: weft.dev/v1alpha1\nkind: ControllerConfig\n%s", config);
    CHECK_INT(weft_config_parse(whole, strlen(whole), "config", &w->config, &w->err), 0);
    if (w->err.code != 0) {
        (void)fprintf(stderr, "%s\n", w->err.message);
    }
    for (size_t i = 0; i < NODES_MAX; i++) {
        w->memory[i].source = WEFT_KEEP_NO_SOURCE;
    }
}

static void world_done(struct world *w)
{
    weft_decision_done(&w->decision);
    weft_keep_free(w->keep);
    weft_hypernode_set_done(&w->live);
    weft_nodes_done(&w->nodes);
    weft_config_free(w->config);
}

static struct weft_node *find_node(struct world *w, const char *name)
{
    for (size_t i = 0; i < w->nodes.count; i++) {
        if (strcmp(w->nodes.items[i].name, name) == 0) {
            return &w->nodes.items[i];
        }
    }
    return NULL;
}

static void label(struct world *w, const char *name, const char *key, const char *value)
{
    struct weft_node *node = find_node(w, name);
    if (node == NULL) {
        CHECK_INT(weft_nodes_add(&w->nodes, name, "uid", &node), 0);
    }
    CHECK_INT(weft_node_set_label(node, key, value), 0);
}

static void unlabel(struct world *w, const char *name)
{
    struct weft_node *node = find_node(w, name);
    CHECK(node != NULL);
    for (size_t i = 0; node != NULL && i < node->label_count; i++) {
        weft_free(node->labels[i].key);
        weft_free(node->labels[i].value);
    }
    if (node != NULL) {
        node->label_count = 0;
    }
}

/* count Nodes n00…, four a rack, two racks a zone. */
static void add_nodes(struct world *w, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char name[24];
        char rack[24];
        char zone[24];
        (void)snprintf(name, sizeof(name), "n%02zu", i);
        (void)snprintf(rack, sizeof(rack), "r%zu", i / 4);
        (void)snprintf(zone, sizeof(zone), "z%zu", i / 8);
        label(w, name, "x/rack", rack);
        label(w, name, "x/zone", zone);
    }
}

static int decide(struct world *w)
{
    static const struct weft_names_of_ours ours = {.prefix = "weft.dev/", .instance = "weft"};
    const struct weft_fabric *fabrics[WEFT_CONFIG_SOURCES_MAX] = {0};
    weft_decision_done(&w->decision);
    const struct weft_decide_input input = {
        .config = w->config,
        .ours = &ours,
        .fabrics = fabrics,
        .nodes = w->nodes.items,
        .memory = w->memory,
        .node_count = w->nodes.count,
        .live = &w->live,
        .places = w->places,
        .prunes_tier_name = w->prunes,
        .keep = w->keep,
        .accepted = w->accepted,
        .now = WEFT_NS_PER_S,
    };
    return weft_decide(&input, &w->decision, &w->err);
}

static void decided(struct world *w)
{
    if (decide(w) < 0) {
        CHECK_STR(w->err.message, "no error");
    }
}

/* The writes happen: what is wanted exists now. */
static void carry_out(struct world *w)
{
    weft_hypernode_set_done(&w->live);
    w->live = (struct weft_hypernode_set){0};
    CHECK_INT(weft_hypernode_set_copy(&w->decision.plan.target, &w->live), 0);
    for (size_t i = 0; i < w->live.count; i++) {
        weft_free(w->live.items[i].uid);
        weft_free(w->live.items[i].resource_version);
        w->live.items[i].uid = weft_strdup("uid");
        w->live.items[i].resource_version = weft_strdup("1");
    }
}

/* "rack zone" of the Node as the groups' names without prefix and hash, "" if it has no labels. */
static void check_place(const struct world *w, const char *node, const char *rack, const char *zone)
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
    struct world w;
    world_init(&w, RACKS);
    add_nodes(&w, 16);
    decided(&w);
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
    carry_out(&w);
    decided(&w);
    CHECK_INT(w.decision.plan.step_count, 0);
    world_done(&w);
}

static void test_selector_and_exclude(void)
{
    struct world w;
    world_init(&w, "nodeSelector: \"gpu=yes\"\n" RACKS);
    add_nodes(&w, 8);
    for (size_t i = 0; i < 6; i++) {
        char name[24];
        (void)snprintf(name, sizeof(name), "n%02zu", i);
        label(&w, name, "gpu", "yes");
    }
    label(&w, "n01", "weft.dev/exclude", "");
    label(&w, "n02", "weft.dev/exclude", "false");
    decided(&w);
    CHECK_INT(w.decision.selected, 5);
    CHECK_INT(w.decision.excluded, 1);
    check_place(&w, "n00", "r0", "z0");
    check_place(&w, "n01", "", "");
    check_place(&w, "n02", "r0", "z0");
    check_place(&w, "n06", "", "");
    world_done(&w);
}

static void test_lost_labels_keep_the_place(void)
{
    struct world w;
    world_init(&w, RACKS);
    add_nodes(&w, 16);
    decided(&w);
    carry_out(&w);
    unlabel(&w, "n05");
    decided(&w);
    CHECK_INT(w.decision.plan.step_count, 0);
    CHECK_INT(w.decision.keep.kept, 1);
    check_place(&w, "n05", "r1", "z0");
    /* positive evidence elsewhere: two writes */
    label(&w, "n05", "x/rack", "r3");
    label(&w, "n05", "x/zone", "z1");
    decided(&w);
    CHECK_INT(w.decision.plan.step_count, 2);
    CHECK_INT(w.decision.plan.steps[0].kind, WEFT_STEP_RELEASE);
    CHECK_INT(w.decision.plan.steps[1].kind, WEFT_STEP_CLAIM);
    check_place(&w, "n05", "r3", "z1");
    world_done(&w);
}

/* Everything loses its labels: nothing is written, it is said. */
static void test_all_labels_lost(void)
{
    struct world w;
    world_init(&w, RACKS);
    add_nodes(&w, 16);
    decided(&w);
    carry_out(&w);
    for (size_t i = 0; i < 16; i++) {
        unlabel(&w, w.nodes.items[i].name);
    }
    decided(&w);
    CHECK(w.decision.keep.refused);
    CHECK_INT(w.decision.plan.step_count, 0);
    check_place(&w, "n09", "r2", "z1");
    world_done(&w);
}

/* Half of the racks go to the other zone: held, but a joining Node gets its place. */
static void test_brake(void)
{
    struct world w;
    world_init(&w, RACKS);
    add_nodes(&w, 16);
    decided(&w);
    carry_out(&w);
    for (size_t i = 0; i < 8; i++) {
        label(&w, w.nodes.items[i].name, "x/zone", "z1");
    }
    label(&w, "new", "x/rack", "r2");
    label(&w, "new", "x/zone", "z1");
    decided(&w);
    CHECK(w.decision.keep.refused);
    CHECK_INT(w.decision.plan.step_count, 1);
    check_place(&w, "n00", "r0", "z0");
    check_place(&w, "new", "r2", "z1");
    char hash[WEFT_KEEP_HASH_MAX];
    (void)snprintf(hash, sizeof(hash), "%s", w.decision.keep.hash);
    w.accepted = hash;
    decided(&w);
    CHECK(!w.decision.keep.refused);
    check_place(&w, "n00", "r0", "z1");
    world_done(&w);
}

/* Two sources of labels: that one of them loses everything does not hold the other's moves. */
static void test_two_sources(void)
{
    struct world w;
    world_init(
        &w, "tiers: [rack, zone]\n"
            "sources:\n"
            "- labels: {keys: [{key: a/rack, tierName: rack}, {key: a/zone, tierName: zone}]}\n"
            "- labels: {keys: [{key: b/rack, tierName: rack}, {key: b/zone, tierName: zone}]}\n");
    for (size_t i = 0; i < 20; i++) {
        char name[24];
        (void)snprintf(name, sizeof(name), "n%02zu", i);
        label(&w, name, i < 10 ? "a/rack" : "b/rack", i < 10 ? "r0" : "r1");
        label(&w, name, i < 10 ? "a/zone" : "b/zone", i < 10 ? "z0" : "z1");
    }
    decided(&w);
    CHECK_INT(w.memory[0].source, 0);
    CHECK_INT(w.memory[19].source, 1);
    carry_out(&w);
    for (size_t i = 0; i < 10; i++) {
        unlabel(&w, w.nodes.items[i].name);
    }
    label(&w, "n19", "b/rack", "r2");
    decided(&w);
    CHECK(w.decision.keep.tallies[0].held);
    CHECK(!w.decision.keep.tallies[1].held);
    check_place(&w, "n00", "r0", "z0");
    check_place(&w, "n19", "r2", "z1");
    world_done(&w);
}

static void test_pruned_tier_name(void)
{
    struct world w;
    world_init(&w, RACKS);
    add_nodes(&w, 8);
    decided(&w);
    carry_out(&w);
    for (size_t i = 0; i < w.live.count; i++) {
        w.live.items[i].tier_name[0] = '\0';
    }
    decided(&w);
    CHECK_INT(w.decision.plan.step_count, 3); /* hand edits are put right… */
    w.prunes = true;
    decided(&w);
    CHECK_INT(w.decision.plan.step_count, 0); /* …but not what the server drops */
    world_done(&w);
}

/* A foreign object has the Node already: it gets no labels, and nothing touches that object. */
static void test_foreign(void)
{
    struct world w;
    world_init(&w, RACKS);
    add_nodes(&w, 8);
    hypernodes_read(&w.live, "!theirs 1 n03\n");
    decided(&w);
    check_place(&w, "n03", "", "");
    check_place(&w, "n02", "r0", "z0");
    CHECK(w.decision.plan.finding_count > 0);
    for (size_t i = 0; i < w.decision.plan.step_count; i++) {
        CHECK(strcmp(w.decision.plan.steps[i].object.name, "theirs") != 0);
    }
    world_done(&w);
}

static void test_fresh_node_is_forgotten(void)
{
    struct world w;
    world_init(&w, RACKS);
    add_nodes(&w, 8);
    decided(&w);
    carry_out(&w);
    unlabel(&w, "n02");
    w.memory[2].fresh = true;
    decided(&w);
    check_place(&w, "n02", "", "");
    CHECK_INT(w.decision.plan.step_count, 1);
    world_done(&w);
}

/* Without HyperNodes the labels on the Nodes tell the last places. */
static void test_places_from_labels(void)
{
    struct world w;
    static const struct weft_names_of_ours ours = {.prefix = "weft.dev/", .instance = "weft"};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set places = {0};
    world_init(&w, RACKS);
    add_nodes(&w, 8);
    decided(&w);
    for (size_t i = 0; i < 8; i++) {
        const char *values[WEFT_LAYOUT_TIERS_MAX];
        const char *name = w.nodes.items[i].name;
        CHECK_INT(weft_decision_labels(&w.decision, name, values), 2);
        label(&w, name, "weft.dev/tier-1", values[0]);
        label(&w, name, "weft.dev/tier-2", values[1]);
    }
    /* one that has only a part of them has no place */
    label(&w, "n99", "weft.dev/tier-1", "weft-rack-r0-00000000");
    weft_autofree char *want = hypernodes_text(&w.decision.keep.set);
    CHECK_INT(weft_labelled_places(w.nodes.items, w.nodes.count, 2, &ours, &places, NULL), 0);
    CHECK_SET(&places, want);

    (void)!weft_node_set_label(find_node(&w, "n05"), "x/rack", "");
    (void)!weft_node_set_label(find_node(&w, "n05"), "x/zone", "");
    w.places = &places;
    decided(&w);
    check_place(&w, "n05", "r1", "z0");
    CHECK_INT(w.decision.plan.step_count, 3); /* the HyperNodes are still to be made */
    world_done(&w);
}

static void test_without_memory(void)
{
    struct world w;
    int rc = -ENOMEM;
    uint64_t n = 1;
    world_init(&w, RACKS);
    add_nodes(&w, 8);
    for (; rc < 0 && n < 20000; n++) {
        (void)weft_mem_fail_after(n);
        rc = decide(&w);
        (void)weft_mem_fail_after(0);
    }
    CHECK_INT(rc, 0);
    CHECK(n > 100);
    CHECK_INT(w.decision.plan.step_count, 3);
    world_done(&w);
}

WEFT_SUITE(decide, {"first pass", test_first_pass},
           {"selector and exclude", test_selector_and_exclude},
           {"lost labels keep the place", test_lost_labels_keep_the_place},
           {"all labels lost", test_all_labels_lost}, {"brake", test_brake},
           {"two sources", test_two_sources}, {"pruned tierName", test_pruned_tier_name},
           {"foreign", test_foreign}, {"fresh node is forgotten", test_fresh_node_is_forgotten},
           {"places from labels", test_places_from_labels}, {"without memory", test_without_memory})
