/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of made-up fabrics whose right answer is known from how they were made: fat-trees with
 * faults, and one fabric for each shape that a simpler rule gets wrong. */
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/node.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree-internal.h"
#include "pkg/tree/tree.h"
#include "tests/unit/fabric_gen.h"
#include "tests/unit/unit.h"

static const struct gen_rft base = {
    .pods = 4, .units = 8, .nodes = 16, .rails = 8, .spines = 16, .cores = 64};

static void check_sizes(const struct gen *g, const char *expected)
{
    weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(g, NULL);
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 4096);
    if (tree != NULL) {
        gen_sizes(tree, &buf);
        CHECK_STR(weft_buf_text(&buf), expected);
    }
}

/* How many of the draws have the first `tiers` true partitions in their tree. */
static int count_right(const struct gen_faults *faults, int draws, size_t first, size_t tiers)
{
    int right = 0;
    for (int draw = 0; draw < draws; draw++) {
        weft_auto(gen_done) struct gen g;
        gen_init(&g, 1000 + (uint64_t)draw);
        struct gen_rft shape = base;
        gen_rail_fat_tree(&g, &shape);
        gen_break(&g, &shape, faults);
        weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, NULL);
        bool all = tree != NULL;
        for (size_t t = first; all && t < tiers; t++) {
            all = gen_has_truth(&g, tree, t);
        }
        right += all;
    }
    return right;
}

static void every_tier_survives_lost_and_moved_cables(void)
{
    static const struct gen_faults rows[] = {
        {0, 0, 0, 0},   {1, 0, 1, 0},   {5, 0, 5, 0},   {10, 0, 10, 0},
        {0, 0.1, 0, 0}, {0, 0.5, 0, 0}, {2, 0.5, 2, 0}, {5, 2, 5, 0},
    };
    int right = 0;
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        const int found = count_right(&rows[i], 20, 0, 3);
        if (found != 20) {
            (void)fprintf(stderr, "row %zu: %d of 20\n", i, found);
        }
        right += found;
    }
    CHECK_INT(right, 160);
}

static void pods_survive_moved_spine_cables(void)
{
    static const struct {
        struct gen_faults faults;
        int least;
    } rows[] = {{{0, 0, 0, 0.2}, 20}, {{0, 0, 0, 1}, 20}, {{0, 0, 10, 1}, 20}, {{0, 0, 5, 5}, 19}};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        const int found = count_right(&rows[i].faults, 20, 1, 2);
        CHECK(found >= rows[i].least);
        if (found < rows[i].least) {
            (void)fprintf(stderr, "row %zu: %d of 20\n", i, found);
        }
    }
}

static void a_large_fabric_is_exact(void)
{
    weft_auto(gen_done) struct gen g;
    gen_init(&g, 7);
    struct gen_rft big = {
        .pods = 8, .units = 32, .nodes = 32, .rails = 8, .spines = 32, .cores = 256};
    gen_rail_fat_tree(&g, &big);
    CHECK_INT(g.switch_count, 2560);
    check_sizes(&g, "256x32 8x1024 8192");
}

static void dragonfly_plus(void)
{
    weft_auto(gen_done) struct gen g;
    gen_init(&g, 1);
    for (size_t i = 0; i < 6 * 8; i++) {
        (void)gen_switch(&g, "%s-%zu-%zu", i % 8 < 4 ? "leaf" : "spine", i / 8, i % 4);
    }
    for (size_t group = 0; group < 6; group++) {
        for (size_t i = 0; i < 16; i++) {
            gen_link(&g, group * 8 + i / 4, group * 8 + 4 + i % 4);
        }
        for (size_t i = 0; i < 64; i++) {
            gen_plug(&g, gen_host(&g, "h%zu-%zu", group, i), 0, group * 8 + i / 16);
        }
        for (size_t other = group + 1; other < 6; other++) {
            gen_link(&g, group * 8 + 4 + other % 4, other * 8 + 4 + group % 4);
        }
    }
    check_sizes(&g, "24x16 6x64 384");
}

/* RFT(2,2,4,2,2,4) with a leaf of two hosts that hangs on cores 0 and 2. */
static struct gen leaf_on_core(void)
{
    struct gen g;
    gen_init(&g, 3);
    struct gen_rft shape = {.pods = 2, .units = 2, .nodes = 4, .rails = 2, .spines = 2, .cores = 4};
    gen_rail_fat_tree(&g, &shape);
    const size_t leaf = gen_switch(&g, "leaf-x");
    gen_link(&g, leaf, shape.first_core);
    gen_link(&g, leaf, shape.first_core + 2);
    gen_plug(&g, gen_host(&g, "x0"), 0, leaf);
    gen_plug(&g, gen_host(&g, "x1"), 0, leaf);
    return g;
}

static void a_leaf_on_the_core_joins_at_its_level(void)
{
    weft_auto(gen_done) struct gen g = leaf_on_core();
    check_sizes(&g, "2,4x4 2,2x8 18");
}

static void a_foreign_host_on_a_core_changes_nothing(void)
{
    weft_auto(gen_done) struct gen g = leaf_on_core();
    const size_t host = gen_host(&g, "management");
    g.hosts[host].foreign = true;
    gen_plug(&g, host, 0, 2 * 2 * 2 + 2 * 2 + 1);
    check_sizes(&g, "2,4x4 2,2x8 18");
}

static void a_node_on_a_core_is_alone_until_its_level(void)
{
    weft_auto(gen_done) struct gen g = leaf_on_core();
    gen_plug(&g, gen_host(&g, "management"), 0, 2 * 2 * 2 + 2 * 2 + 1);
    check_sizes(&g, "1,2,4x4 1,2,2x8 1,18 19");
}

static void separate_fabrics_stay_separate(void)
{
    weft_auto(gen_done) struct gen g;
    gen_init(&g, 4);
    struct gen_rft shape = {.pods = 1, .units = 2, .nodes = 4, .rails = 2, .spines = 2, .cores = 0};
    gen_rail_fat_tree(&g, &shape);
    const size_t leaf = gen_switch(&g, "alone");
    for (size_t i = 0; i < 4; i++) {
        gen_plug(&g, gen_host(&g, "a%zu", i), 0, leaf);
    }
    check_sizes(&g, "3x4 4,8");
}

static void planes_meet_in_their_hosts(void)
{
    weft_auto(gen_done) struct gen g;
    gen_init(&g, 5);
    for (size_t i = 0; i < 16; i++) {
        (void)gen_switch(&g, "leaf-%zu-%zu", i / 4, i % 4);
    }
    for (size_t i = 0; i < 16; i++) {
        (void)gen_switch(&g, "spine-%zu-%zu", i / 4, i % 4);
    }
    for (size_t i = 0; i < 64; i++) {
        const size_t leaf = i / 4;
        gen_link(&g, leaf, 16 + leaf % 4 * 4 + i % 4);
    }
    for (size_t i = 0; i < 32; i++) {
        const size_t host = gen_host(&g, "h%zu", i);
        for (unsigned rail = 0; rail < 4; rail++) {
            gen_plug(&g, host, rail, i / 8 * 4 + rail);
        }
    }
    check_sizes(&g, "4x8 32");
}

static void switch_pairs_with_peer_links(void)
{
    weft_auto(gen_done) struct gen g;
    gen_init(&g, 6);
    for (size_t i = 0; i < 8; i++) {
        (void)gen_switch(&g, "tor-%zu-%zu", i / 2, i % 2);
    }
    for (size_t i = 0; i < 2; i++) {
        (void)gen_switch(&g, "spine-%zu", i);
    }
    for (size_t pair = 0; pair < 4; pair++) {
        for (size_t i = 0; i < 4; i++) {
            gen_link(&g, 2 * pair, 2 * pair + 1);
            gen_link(&g, 2 * pair + i / 2, 8 + i % 2);
        }
        for (size_t i = 0; i < 8; i++) {
            const size_t host = gen_host(&g, "h%zu-%zu", pair, i);
            gen_plug(&g, host, 0, 2 * pair);
            gen_plug(&g, host, 1, 2 * pair + 1);
        }
    }
    check_sizes(&g, "4x8 32");
}

/* Eight leaves of eight hosts, four under each of two sets of four spines, which meet in two cores;
 * only hosts on leaves 0 and 4 are nodes. */
static void a_cluster_on_part_of_the_fabric(void)
{
    weft_auto(gen_done) struct gen g;
    gen_init(&g, 8);
    for (size_t i = 0; i < 18; i++) {
        (void)gen_switch(&g, "%s-%zu", i < 8 ? "leaf" : i < 16 ? "spine" : "core", i);
    }
    for (size_t i = 0; i < 32; i++) {
        gen_link(&g, i / 4, 8 + i / 16 * 4 + i % 4);
    }
    for (size_t i = 0; i < 16; i++) {
        gen_link(&g, 8 + i / 2, 16 + i % 2);
    }
    for (size_t i = 0; i < 64; i++) {
        const size_t host = gen_host(&g, "h%zu", i);
        g.hosts[host].foreign = i / 8 != 0 && i / 8 != 4;
        gen_plug(&g, host, 0, i / 8);
    }
    check_sizes(&g, "2x8 16");

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
    gen_init(&g, 9);
    for (size_t i = 0; i < 20; i++) {
        (void)gen_switch(&g, "router-%zu-%zu", i / 4, i % 4);
    }
    for (size_t i = 0; i < 20; i++) {
        for (size_t j = i + 1; j < i / 4 * 4 + 4; j++) {
            gen_link(&g, i, j);
        }
        for (size_t h = 0; h < 4; h++) {
            gen_plug(&g, gen_host(&g, "h%zu-%zu", i, h), 0, i);
        }
    }
    for (size_t a = 0; a < 5; a++) {
        for (size_t b = a + 1; b < 5; b++) {
            gen_link(&g, a * 4 + b % 4, b * 4 + a % 4);
        }
    }
    check_sizes(&g, "20x4 80");
    weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, NULL);
    bool said = false;
    for (size_t i = 0; tree != NULL && i < tree->finding_count; i++) {
        said = said || strcmp(tree->findings[i].kind, "flat-switch-graph") == 0;
    }
    CHECK(said);
}

static void hosts_on_cores_and_spines_are_no_leaves(void)
{
    weft_auto(gen_done) struct gen g;
    gen_init(&g, 10);
    struct gen_rft shape = {.pods = 8, .units = 2, .nodes = 4, .rails = 2, .spines = 4, .cores = 8};
    gen_rail_fat_tree(&g, &shape);
    gen_plug(&g, gen_host(&g, "on-core"), 0, shape.first_core + 1);
    check_sizes(&g, "1,16x4 1,8x8 65");
    gen_plug(&g, gen_host(&g, "on-spine"), 0, gen_spine(&shape, 0, 0));
    check_sizes(&g, "2x1,16x4 1,7x8,9 66");
}

static void sparse_leaves_are_leaves(void)
{
    weft_auto(gen_done) struct gen g;
    gen_init(&g, 11);
    struct gen_rft shape = {
        .pods = 4, .units = 4, .nodes = 1, .rails = 2, .spines = 8, .cores = 16};
    gen_rail_fat_tree(&g, &shape);
    check_sizes(&g, "16x1 4x4 16");

    weft_auto(gen_done) struct gen mixed;
    gen_init(&mixed, 12);
    struct gen_rft full = {.pods = 4, .units = 4, .nodes = 8, .rails = 2, .spines = 8, .cores = 16};
    gen_rail_fat_tree(&mixed, &full);
    for (size_t i = 0; i < mixed.cable_count; i++) {
        const struct gen_cable *c = &mixed.cables[i];
        const size_t host = c->host ? c->a : 0;
        /* hosts are numbered pod by pod, 32 each, 8 a unit */
        mixed.cables[i].gone = c->host && host >= 32 && host % 8 != 0;
    }
    check_sizes(&mixed, "12x1,4x8 3x4,32 44");
}

/* The base fabric with something else on it must have the same tree. */
static void check_base(const struct gen *g, const struct weft_tree_options *options)
{
    weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(g, options);
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 4096);
    if (tree != NULL) {
        gen_sizes(tree, &buf);
        CHECK_STR(weft_buf_text(&buf), "32x16 4x128 512");
        CHECK(gen_has_truth(g, tree, 0) && gen_has_truth(g, tree, 1) && gen_has_truth(g, tree, 2));
    }
}

static void service_hosts_glue_nothing(void)
{
    weft_auto(gen_done) struct gen g;
    gen_init(&g, 13);
    struct gen_rft shape = base;
    gen_rail_fat_tree(&g, &shape);
    const size_t service = gen_host(&g, "service-0");
    g.hosts[service].foreign = true;
    gen_plug(&g, service, 0, gen_leaf(&shape, 0, 0, 0));
    gen_plug(&g, service, 1, gen_leaf(&shape, 1, 0, 0));
    check_base(&g, NULL);

    const size_t own = gen_switch(&g, "service-switch");
    for (size_t i = 1; i < 3; i++) {
        const size_t more = gen_host(&g, "service-%zu", i);
        g.hosts[more].foreign = true;
        gen_plug(&g, more, 0, own);
        gen_plug(&g, more, 1, gen_leaf(&shape, 0, i, 0));
        gen_plug(&g, more, 2, gen_leaf(&shape, 1, i, 0));
    }
    check_base(&g, NULL);
}

static void stray_cables_glue_nothing(void)
{
    weft_auto(gen_done) struct gen leaves;
    gen_init(&leaves, 14);
    struct gen_rft shape = base;
    gen_rail_fat_tree(&leaves, &shape);
    gen_link(&leaves, gen_leaf(&shape, 0, 0, 0), gen_leaf(&shape, 1, 0, 0));
    check_base(&leaves, NULL);

    weft_auto(gen_done) struct gen spines;
    gen_init(&spines, 15);
    shape = base;
    gen_rail_fat_tree(&spines, &shape);
    gen_link(&spines, gen_spine(&shape, 0, 0), gen_spine(&shape, 1, 0));
    check_base(&spines, NULL);
}

static void a_storage_switch_must_be_excluded(void)
{
    weft_auto(gen_done) struct gen g;
    gen_init(&g, 16);
    struct gen_rft shape = base;
    gen_rail_fat_tree(&g, &shape);
    const size_t storage = gen_switch(&g, "storage-1");
    for (size_t h = 0; h < 512; h++) {
        gen_plug(&g, h, 8, storage);
    }
    check_sizes(&g, "512");
    const char *const hcas[] = {"mlx5_8"};
    const char *const switches[] = {"storage-*"};
    check_base(&g, &(struct weft_tree_options){.exclude_hcas = hcas, .exclude_hca_count = 1});
    check_base(
        &g, &(struct weft_tree_options){.exclude_switches = switches, .exclude_switch_count = 1});
}

WEFT_SUITE(tree_fabrics,
           {"every_tier_survives_lost_and_moved_cables", every_tier_survives_lost_and_moved_cables},
           {"pods_survive_moved_spine_cables", pods_survive_moved_spine_cables},
           {"a_large_fabric_is_exact", a_large_fabric_is_exact}, {"dragonfly_plus", dragonfly_plus},
           {"a_leaf_on_the_core_joins_at_its_level", a_leaf_on_the_core_joins_at_its_level},
           {"a_foreign_host_on_a_core_changes_nothing", a_foreign_host_on_a_core_changes_nothing},
           {"a_node_on_a_core_is_alone_until_its_level", a_node_on_a_core_is_alone_until_its_level},
           {"separate_fabrics_stay_separate", separate_fabrics_stay_separate},
           {"planes_meet_in_their_hosts", planes_meet_in_their_hosts},
           {"switch_pairs_with_peer_links", switch_pairs_with_peer_links},
           {"a_cluster_on_part_of_the_fabric", a_cluster_on_part_of_the_fabric},
           {"a_dragonfly_is_flat_and_says_so", a_dragonfly_is_flat_and_says_so},
           {"hosts_on_cores_and_spines_are_no_leaves", hosts_on_cores_and_spines_are_no_leaves},
           {"sparse_leaves_are_leaves", sparse_leaves_are_leaves},
           {"service_hosts_glue_nothing", service_hosts_glue_nothing},
           {"stray_cables_glue_nothing", stray_cables_glue_nothing},
           {"a_storage_switch_must_be_excluded", a_storage_switch_must_be_excluded})
