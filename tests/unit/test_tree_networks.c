/* SPDX-License-Identifier: Apache-2.0 */
/* Several networks in one cluster, and networks that are re-cabled: trees, the HyperNodes made of
 * them, and the writes from one to the next. What is right follows from how the fabrics are made.
 */
#include <errno.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/labels.h"
#include "pkg/fabric/node.h"
#include "pkg/hypernode/layout.h"
#include "pkg/hypernode/model.h"
#include "pkg/hypernode/plan.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"
#include "tests/bench/fabric_gen.h"
#include "tests/unit/unit.h"

static const char *const plan_tiers[] = {"leaf", "spine", "core"};

/* ---- from a tree to HyperNodes ---- */

static bool lay_out(const struct weft_tree *tree, const struct weft_hypernode_set *existing,
                    struct weft_layout *layout)
{
    const struct weft_layout_options options = {
        .tiers = plan_tiers, .tier_count = 3, .instance = "test", .existing = existing};
    struct weft_error err = {0};
    CHECK_INT(weft_layout_build(tree, &options, layout, &err), 0);
    CHECK_STR(err.message, "");
    return err.code == 0;
}

/* Every node is in exactly one HyperNode of each tier, and the scheduler is content. */
static void check_layout(const struct weft_layout *layout)
{
    weft_auto(weft_model_free) struct weft_model *model = weft_model_new(true);
    CHECK_INT(weft_model_load(model, &layout->desired), WEFT_MODEL_OK);
    CHECK_STR(weft_model_text(model), "");
    for (size_t n = 0; n < layout->node_count; n++) {
        size_t found[4] = {0};
        for (size_t i = 0; i < layout->desired.count; i++) {
            const struct weft_hypernode *hn = &layout->desired.items[i];
            found[hn->tier] += weft_model_has_node(model, hn->name, layout->nodes[n]);
        }
        CHECK(found[1] == 1 && found[2] == 1 && found[3] == 1);
    }
}

/* "release spine-0 (3 members); …": by the words of the objects' names. */
static void check_writes(const struct weft_hypernode_set *before, const struct weft_tree *tree,
                         struct weft_hypernode_set *ret_after, const char *expected)
{
    weft_auto(weft_layout_done) struct weft_layout layout = {0};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    weft_auto(weft_buf_done) struct weft_buf buf;
    const struct weft_plan_options options = {.instance = "test", .check = true};
    weft_buf_init(&buf, 4096);
    if (!lay_out(tree, before, &layout)) {
        return;
    }
    check_layout(&layout);
    CHECK_INT(weft_plan_build(before, &layout.desired, &options, &plan, NULL), 0);
    for (size_t i = 0; i < plan.step_count; i++) {
        const struct weft_hypernode *hn = &plan.steps[i].object;
        /* weft-leaf-leaf-0-0-<hash>: without the hash */
        (void)weft_buf_printf(&buf, "%s%s %.*s (%zu)", i > 0 ? "; " : "",
                              weft_step_kind_name(plan.steps[i].kind), (int)(strlen(hn->name) - 9),
                              hn->name, hn->member_count);
    }
    CHECK_STR(weft_buf_text(&buf), expected);
    CHECK_INT(weft_hypernode_set_copy(&layout.desired, ret_after), 0);
}

static struct weft_tree *build(const struct weft_tree_source *sources, size_t count,
                               const struct weft_nodes *nodes)
{
    const struct weft_tree_input input = {.sources = sources,
                                          .source_count = count,
                                          .plan = plan_tiers,
                                          .plan_count = 3,
                                          .nodes = nodes->items,
                                          .node_count = nodes->count};
    struct weft_tree *tree = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_tree_build(&input, &tree, &err), 0);
    CHECK_INT(tree != NULL ? weft_tree_check(tree, &err) : -1, 0);
    CHECK_STR(err.message, "");
    return tree;
}

/* ---- diverse networks ---- */

/* Two units of three hosts, two rails, one pod without cores: leaves and spines only. */
static void make_roce(struct gen *g)
{
    for (size_t s = 0; s < 2; s++) {
        (void)gen_switch(g, "roce-spine-%zu", s);
    }
    for (size_t unit = 0; unit < 2; unit++) {
        const size_t leaf = g->switch_count;
        for (size_t rail = 0; rail < 2; rail++) {
            (void)gen_switch(g, "roce-leaf-%zu-%zu", unit, rail);
            gen_link(g, leaf + rail, 0);
            gen_link(g, leaf + rail, 1);
        }
        for (size_t n = 0; n < 3; n++) {
            const size_t host = gen_host(g, "roce-%zu-%zu", unit, n);
            gen_plug(g, host, 0, leaf);
            gen_plug(g, host, 1, leaf + 1);
        }
    }
}

static void add_cloud_nodes(struct weft_nodes *nodes)
{
    for (size_t i = 0; i < 6; i++) {
        char text[32];
        struct weft_node *node = NULL;
        (void)snprintf(text, sizeof(text), "cloud-%zu", i);
        CHECK_INT(weft_nodes_add(nodes, text, NULL, &node), 0);
        (void)snprintf(text, sizeof(text), "block-%zu", i / 2);
        CHECK_INT(weft_node_set_label(node, "leaf", text), 0);
        CHECK_INT(weft_node_set_label(node, "spine", i < 4 ? "east" : "west"), 0);
        CHECK_INT(weft_node_set_label(node, "core", "zone"), 0);
    }
}

/* The networks of each group's nodes (n…, roce-…, cloud-…: by the first letter): one each. */
static void check_networks_apart(const struct weft_tree *tree)
{
    size_t mixed = 0;
    for (size_t t = 0; t < tree->tier_count; t++) {
        char network[64] = "";
        for (size_t n = 0; n < tree->node_count; n++) {
            const size_t group = tree->tiers[t].node_group[n];
            if (group != WEFT_TREE_NONE) {
                mixed += network[group] != '\0' && network[group] != tree->nodes[n][0];
                network[group] = tree->nodes[n][0];
            }
        }
    }
    CHECK_INT(mixed, 0);
}

static void three_networks_in_one_cluster(void)
{
    weft_auto(gen_done) struct gen ib;
    weft_auto(gen_done) struct gen roce;
    gen_init(&ib, 1);
    gen_init(&roce, 2);
    struct gen_rft shape = {.pods = 2, .units = 2, .nodes = 4, .rails = 2, .spines = 2, .cores = 2};
    gen_rail_fat_tree(&ib, &shape);
    make_roce(&roce);
    weft_auto(weft_fabric_free) struct weft_fabric *one = gen_fabric(&ib);
    weft_auto(weft_fabric_free) struct weft_fabric *two = gen_fabric(&roce);
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    weft_auto(weft_nodes_done) struct weft_nodes more = {0};
    weft_auto(weft_label_levels_done) struct weft_label_levels levels = {0};
    struct weft_node *node = NULL;
    gen_nodes(&ib, &nodes);
    gen_nodes(&roce, &more);
    for (size_t i = 0; i < more.count; i++) {
        CHECK_INT(weft_nodes_add(&nodes, more.items[i].name, NULL, &node), 0);
    }
    add_cloud_nodes(&nodes);
    CHECK_INT(weft_nodes_add(&nodes, "cpu-1", NULL, &node), 0);
    CHECK_INT(weft_nodes_add(&nodes, "cpu-2", NULL, &node), 0);
    for (size_t t = 0; t < 3; t++) {
        CHECK_INT(weft_label_levels_add(&levels, plan_tiers[t], plan_tiers[t], NULL), 0);
    }
    const struct weft_tree_source sources[] = {
        {.fabric = one}, {.fabric = two}, {.levels = &levels}};
    weft_auto(weft_tree_free) struct weft_tree *tree = build(sources, 3, &nodes);
    weft_auto(weft_buf_done) struct weft_buf sizes;
    weft_buf_init(&sizes, 1024);
    gen_sizes(tree, &sizes);
    /* InfiniBand 4 x 4, 2 x 8, 16; RoCE 2 x 3, 6, no core; cloud 3 x 2, 4 and 2, 6 */
    CHECK_STR(weft_buf_text(&sizes), "3x2,2x3,4x4 2,4,6,2x8 6,16");
    CHECK_INT(tree->unplaced_count, 2);
    check_networks_apart(tree);
    weft_auto(weft_layout_done) struct weft_layout layout = {0};
    CHECK(lay_out(tree, NULL, &layout));
    check_layout(&layout);
    CHECK_INT(layout.node_count, 16 + 6 + 6);
    size_t tiers[4] = {0};
    for (size_t i = 0; i < layout.desired.count; i++) {
        tiers[layout.desired.items[i].tier]++;
    }
    CHECK_INT(tiers[1], 4 + 2 + 3);
    CHECK_INT(tiers[2], 2 + 1 + 2);
    CHECK_INT(tiers[3], 1 + 1 + 1); /* the RoCE island's core is a copy of its spine */
}

/* The same fabric seen by two managers, each lacking a node that the other has: its groups are the
 * same by their switches. */
static void one_fabric_by_two_sources(void)
{
    weft_auto(gen_done) struct gen g;
    gen_init(&g, 3);
    struct gen_rft shape = {.pods = 1, .units = 2, .nodes = 4, .rails = 2, .spines = 2};
    gen_rail_fat_tree(&g, &shape);
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    gen_nodes(&g, &nodes);
    weft_auto(weft_fabric_free) struct weft_fabric *whole = gen_fabric(&g);
    for (size_t c = 0; c < g.cable_count; c++) {
        g.cables[c].gone = g.cables[c].host && g.cables[c].a % 4 == 1; /* one of each unit */
    }
    weft_auto(weft_fabric_free) struct weft_fabric *part = gen_fabric(&g);
    const struct weft_tree_source sources[] = {{.fabric = part}, {.fabric = whole}};
    weft_auto(weft_tree_free) struct weft_tree *tree = build(sources, 2, &nodes);
    weft_auto(weft_buf_done) struct weft_buf sizes;
    weft_buf_init(&sizes, 1024);
    gen_sizes(tree, &sizes);
    CHECK_STR(weft_buf_text(&sizes), "2x4 8");
    CHECK_INT(tree->unplaced_count, 0);
    for (size_t i = 0; i < tree->finding_count; i++) {
        CHECK(strcmp(tree->findings[i].kind, "mismatch") != 0);
        CHECK(strcmp(tree->findings[i].kind, "crossing") != 0);
    }
}

/* ---- stragglers ---- */

/* Two pods of so many units of nodes; a core has two links, so that with a node on it, a third of
 * its ports, it counts as a leaf between the pods: next to nobody shares most of anything with it.
 */
static void check_on_core(size_t units, size_t nodes, bool manager, const char *expected)
{
    weft_auto(gen_done) struct gen g;
    gen_init(&g, 8);
    struct gen_rft shape = {
        .pods = 2, .units = units, .nodes = nodes, .rails = 2, .spines = 2, .cores = 4};
    gen_rail_fat_tree(&g, &shape);
    if (manager) {
        gen_plug(&g, gen_host(&g, "manager"), 0, shape.first_core + 1);
    }
    weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, NULL);
    weft_auto(weft_buf_done) struct weft_buf sizes;
    weft_buf_init(&sizes, 1024);
    gen_sizes(tree, &sizes);
    CHECK_STR(weft_buf_text(&sizes), expected);
    const struct weft_finding *found = NULL;
    for (size_t i = 0; i < tree->finding_count; i++) {
        found = strcmp(tree->findings[i].kind, "straggler") == 0 ? &tree->findings[i] : found;
    }
    CHECK_STR(found != NULL ? found->subject : "none",
              tree->tier_count == 3 && manager ? "manager" : "none");
}

/* A handful behind a core costs no tier of its own: 1 of 49 is under 5 %, 1 of 17 is not. */
static void a_handful_costs_no_tier(void)
{
    check_on_core(3, 8, false, "6x8 2x24 48");
    check_on_core(3, 8, true, "1,6x8 1,2x24 49");
    check_on_core(2, 4, true, "1,4x4 1,2x8 1,16 17");
}

/* ---- re-cabling ---- */

static struct weft_tree *tree_of(struct gen *g, const struct weft_nodes *nodes)
{
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = gen_fabric(g);
    const struct weft_tree_source source = {.fabric = fabric};
    return build(&source, 1, nodes);
}

/* An optical switch takes unit 1 of pod 0 to pod 1: only the two pods are written. */
static void a_unit_goes_to_another_pod(void)
{
    weft_auto(gen_done) struct gen g;
    gen_init(&g, 4);
    struct gen_rft shape = {.pods = 3, .units = 3, .nodes = 4, .rails = 4, .spines = 4, .cores = 4};
    gen_rail_fat_tree(&g, &shape);
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    gen_nodes(&g, &nodes);
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set none = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set first = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set second = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set third = {0};
    weft_auto(weft_tree_free) struct weft_tree *before = tree_of(&g, &nodes);
    weft_auto(weft_layout_done) struct weft_layout layout = {0};
    CHECK(lay_out(before, &none, &layout));
    CHECK_INT(layout.desired.count, 9 + 3 + 1);
    CHECK_INT(weft_hypernode_set_copy(&layout.desired, &first), 0);
    check_writes(&first, before, &none, "");
    for (size_t c = 0; c < g.cable_count; c++) {
        struct gen_cable *cable = &g.cables[c];
        for (size_t rail = 0; !cable->host && rail < 4; rail++) {
            if (cable->a == gen_leaf(&shape, 0, 1, rail)) {
                cable->b += shape.spines; /* the same spine of the next pod */
            }
        }
    }
    weft_auto(weft_tree_free) struct weft_tree *after = tree_of(&g, &nodes);
    check_writes(&first, after, &second,
                 "release weft-spine-spine-0 (2); claim weft-spine-spine-1 (4)");
    /* and one node's adapters go to another unit: the two leaf groups */
    for (size_t c = 0; c < g.cable_count; c++) {
        struct gen_cable *cable = &g.cables[c];
        if (cable->host && cable->a == 0) {
            cable->b = gen_leaf(&shape, 2, 2, cable->rail);
        }
    }
    weft_auto(weft_tree_free) struct weft_tree *moved = tree_of(&g, &nodes);
    check_writes(&second, moved, &third,
                 "release weft-leaf-leaf-0-0 (3); claim weft-leaf-leaf-2-2 (5)");
}

/* ---- groups that are cut ---- */

/* A leaf group that a better source has in two pods: its parts keep apart, and their names, though
 * they have the same switches. */
static void parts_of_a_leaf_group_keep_their_names(void)
{
    weft_auto(gen_done) struct gen g;
    gen_init(&g, 5);
    struct gen_rft shape = {.pods = 1, .units = 2, .nodes = 4, .rails = 2, .spines = 2};
    gen_rail_fat_tree(&g, &shape);
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = gen_fabric(&g);
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    weft_auto(weft_label_levels_done) struct weft_label_levels levels = {0};
    gen_nodes(&g, &nodes);
    for (size_t n = 0; n < nodes.count; n++) {
        CHECK_INT(weft_node_set_label(&nodes.items[n], "spine", n < 3 ? "p" : "q"), 0);
    }
    CHECK_INT(weft_label_levels_add(&levels, "spine", "spine", NULL), 0);
    const struct weft_tree_source sources[] = {{.levels = &levels}, {.fabric = fabric}};
    weft_auto(weft_tree_free) struct weft_tree *tree = build(sources, 2, &nodes);
    weft_auto(weft_buf_done) struct weft_buf sizes;
    weft_buf_init(&sizes, 1024);
    gen_sizes(tree, &sizes);
    CHECK_STR(weft_buf_text(&sizes), "1,3,4 3,5");
    weft_auto(weft_layout_done) struct weft_layout layout = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set again = {0};
    CHECK(lay_out(tree, NULL, &layout));
    CHECK_INT(layout.desired.count, 3 + 2 + 2);
    check_writes(&layout.desired, tree, &again, "");
}

WEFT_SUITE(tree_networks, {"three_networks_in_one_cluster", three_networks_in_one_cluster},
           {"one_fabric_by_two_sources", one_fabric_by_two_sources},
           {"a_handful_costs_no_tier", a_handful_costs_no_tier},
           {"a_unit_goes_to_another_pod", a_unit_goes_to_another_pod},
           {"parts_of_a_leaf_group_keep_their_names", parts_of_a_leaf_group_keep_their_names})
