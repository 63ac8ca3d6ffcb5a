/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of made-up fabrics whose right answer is known from how they were made: fat-trees with
 * faults, and one fabric for each shape that a simpler rule gets wrong. */
#include <stdio.h>

#include "controller/keep.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/node.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree-internal.h"
#include "pkg/tree/tree.h"
#include "tests/bench/fabric_gen.h"
#include "tests/bench/fabric_gen_cases.h"
#include "tests/unit/unit.h"

/* of the base fabric; of the churn, a part of what the benchmark plays */
enum { NODES = 512, EVENTS = 40 };

static void check_sizes(const struct gen *g, const struct weft_tree_options *options,
                        const char *name, const char *expected)
{
    weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(g, options);
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 4096);
    gen_sizes(tree, &buf);
    if (!CHECK_STR(weft_buf_text(&buf), expected)) {
        (void)fprintf(stderr, "fabric %s\n", name);
    }
}

static void every_shape_has_its_tree(void)
{
    size_t count = 0;
    const struct gen_case *cases = gen_cases(&count);
    for (size_t i = 0; i < count; i++) {
        weft_auto(gen_done) struct gen g;
        gen_init(&g, 1 + i);
        cases[i].make(&g);
        check_sizes(&g, NULL, cases[i].name, cases[i].sizes);
    }
}

/* No row may lose more than the prototype of the design did; the benchmark prints the rates. */
static void true_tiers_survive_lost_and_moved_cables(void)
{
    size_t count = 0;
    const struct gen_series *rows = gen_series(&count);
    for (size_t i = 0; i < count; i++) {
        const unsigned right = gen_series_right(&rows[i], GEN_DRAWS);
        CHECK(right >= rows[i].least);
        if (right < rows[i].least) {
            (void)fprintf(stderr, "series %s: %u of %d\n", rows[i].name, right, (int)GEN_DRAWS);
        }
    }
}

static void a_case(struct gen *g, uint64_t seed, const char *name)
{
    size_t count = 0;
    const struct gen_case *cases = gen_cases(&count);
    gen_init(g, seed);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(cases[i].name, name) == 0) {
            cases[i].make(g);
            return;
        }
    }
    CU_FAIL("no such case");
}

/* The cluster is on leaves 0 and 4 of eight. */
static void other_leaves_are_levels_but_no_groups(void)
{
    weft_auto(gen_done) struct gen g;
    a_case(&g, 8, "subset");
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = gen_fabric(&g);
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    weft_auto(weft_graph_free) struct weft_graph *graph = NULL;
    weft_auto(weft_shape_free) struct weft_shape *shape = NULL;
    gen_nodes(&g, &nodes);
    CHECK_INT(weft_graph_build(fabric, nodes.items, nodes.count, NULL, &graph, NULL), 0);
    CHECK_INT(weft_shape_build(graph, &shape, NULL), 0);
    size_t levels[4] = {0};
    for (size_t i = 0; shape != NULL && i < shape->reached; i++) {
        levels[shape->level[shape->by_level[i]]]++;
    }
    CHECK_INT(levels[0], 2);
    CHECK_INT(levels[1], 8);
    CHECK_INT(levels[2], 8);
    weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, NULL);
    CHECK_INT(tree != NULL ? tree->tiers[1].groups[0].switch_count : 0, 2);
    for (size_t i = 0; tree != NULL && i < tree->tiers[1].groups[0].switch_count; i++) {
        CHECK(strncmp(tree->tiers[1].groups[0].switches[i], "core-", 5) == 0);
    }
}

static void a_dragonfly_is_flat_and_says_so(void)
{
    weft_auto(gen_done) struct gen g;
    a_case(&g, 9, "dragonfly");
    weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, NULL);
    bool said = false;
    for (size_t i = 0; tree != NULL && i < tree->finding_count; i++) {
        said = said || strcmp(tree->findings[i].kind, "flat-switch-graph") == 0;
    }
    CHECK(said);
}

static void a_storage_switch_can_be_excluded(void)
{
    const char *const hcas[] = {"mlx5_8"};
    const char *const switches[] = {"storage-*"};
    const struct weft_tree_options ways[] = {
        {.exclude_hcas = hcas, .exclude_hca_count = 1},
        {.exclude_switches = switches, .exclude_switch_count = 1},
    };
    weft_auto(gen_done) struct gen g;
    a_case(&g, 16, "storage-for-all");
    for (size_t i = 0; i < WEFT_ARRAY_LEN(ways); i++) {
        check_sizes(&g, &ways[i], "storage-for-all", "32x16 4x128 512");
        weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, &ways[i]);
        CHECK(gen_has_truth(&g, tree, 0) && gen_has_truth(&g, tree, 1));
    }
}

/* Node n of the base fabric, as gen_rail_fat_tree calls it. */
static void name_nodes(char (*names)[32], struct weft_keep_node *nodes)
{
    for (size_t n = 0; n < NODES; n++) {
        (void)snprintf(names[n], sizeof(names[n]), "n%zu-%zu-%zu", n / 128, n / 16 % 8, n % 16);
        nodes[n] = (struct weft_keep_node){.name = names[n], .selected = true};
    }
}

static void hold(void *context, const struct weft_hypernode_set *live,
                 const struct weft_hypernode_set *wanted, struct weft_hypernode_set *ret_next)
{
    static char names[NODES][32];
    static struct weft_keep_node nodes[NODES];
    const struct weft_keep_options options = {.instance = "weft",
                                              .snapshots = 3,
                                              .period = 600 * WEFT_NS_PER_S,
                                              .forget_after = WEFT_KEEP_NEVER,
                                              .lost_percent = 20,
                                              .moved_percent = 20,
                                              .min_nodes = 8};
    const struct weft_keep_input input = {
        .live = live, .wanted = wanted, .nodes = nodes, .node_count = NODES, .options = &options};
    struct weft_keep_result result = {0};
    name_nodes(names, nodes);
    CHECK_INT(weft_keep_decide(context, &input, &result, NULL), 0);
    *ret_next = result.set;
    result.set = (struct weft_hypernode_set){0};
    weft_keep_result_done(&result);
}

/* Other events than the prototype's (230 writes for 300) have other sums: what counts is that no
 * write is one too many. */
static void transient_faults_cost_no_write_too_many(void)
{
    const struct gen_churn c = gen_churn(1, EVENTS, NULL);
    CHECK(c.worst <= GEN_CHURN_WORST);
    CHECK(c.least > 0);
    CHECK_INT(c.writes, c.least);
    CHECK_INT(c.identities, 0); /* a leaf that is away for a while is no reason to write */

    weft_auto(weft_keep_free) struct weft_keep *keep = weft_keep_new();
    const struct gen_hold holding = {.context = keep, .decide = hold};
    const struct gen_churn held = gen_churn(1, EVENTS, &holding);
    CHECK_INT(held.writes, 0);
}

WEFT_SUITE(tree_fabrics, {"every_shape_has_its_tree", every_shape_has_its_tree},
           {"true_tiers_survive_lost_and_moved_cables", true_tiers_survive_lost_and_moved_cables},
           {"other_leaves_are_levels_but_no_groups", other_leaves_are_levels_but_no_groups},
           {"a_dragonfly_is_flat_and_says_so", a_dragonfly_is_flat_and_says_so},
           {"a_storage_switch_can_be_excluded", a_storage_switch_can_be_excluded},
           {"transient_faults_cost_no_write_too_many", transient_faults_cost_no_write_too_many})
