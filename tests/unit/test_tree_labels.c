/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of node labels, and of labels together with a fabric. Expectations are written by hand. */
#include <errno.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/labels.h"
#include "pkg/fabric/node.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"
#include "tests/bench/fabric_gen.h"
#include "tests/unit/unit.h"

/* A node and the values of rack, block, zone; NULL: it lacks the label. */
struct row {
    const char *name, *rack, *block, *zone;
};

static void add_label(struct weft_node *node, const char *key, const char *value)
{
    if (value != NULL) {
        CHECK_INT(weft_node_set_label(node, key, value), 0);
    }
}

static void make_nodes(const struct row *rows, size_t count, struct weft_nodes *nodes)
{
    for (size_t i = 0; i < count; i++) {
        struct weft_node *node = NULL;
        CHECK_INT(weft_nodes_add(nodes, rows[i].name, NULL, &node), 0);
        add_label(node, "rack", rows[i].rack);
        add_label(node, "example.com/block", rows[i].block);
        add_label(node, "zone", rows[i].zone);
    }
}

static void make_levels(struct weft_label_levels *levels)
{
    CHECK_INT(weft_label_levels_add(levels, "rack", NULL, NULL), 0);
    CHECK_INT(weft_label_levels_add(levels, "example.com/block", NULL, NULL), 0);
    CHECK_INT(weft_label_levels_add(levels, "zone", NULL, NULL), 0);
}

static struct weft_tree *tree_of(const struct row *rows, size_t count)
{
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    weft_auto(weft_label_levels_done) struct weft_label_levels levels = {0};
    struct weft_tree *tree = NULL;
    struct weft_error err = {0};
    make_nodes(rows, count, &nodes);
    make_levels(&levels);
    const struct weft_tree_source source = {.levels = &levels};
    const struct weft_tree_input input = {
        .sources = &source, .source_count = 1, .nodes = nodes.items, .node_count = nodes.count};
    CHECK_INT(weft_tree_build(&input, &tree, &err), 0);
    CHECK_STR(err.message, "");
    CHECK_INT(tree != NULL ? weft_tree_check(tree, &err) : 0, 0);
    CHECK_STR(err.message, "");
    return tree;
}

/* "name(parent):node,node name:…" of a tier. */
static void check_tier(const struct weft_tree *tree, size_t t, const char *expected)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 4096);
    const struct weft_tree_tier *tier = &tree->tiers[t];
    for (size_t g = 0; g < tier->group_count; g++) {
        const size_t parent = tier->groups[g].parent;
        (void)weft_buf_printf(&buf, "%s%s(%s):", g > 0 ? " " : "", tier->groups[g].name,
                              parent != WEFT_TREE_NONE ? tree->tiers[t + 1].groups[parent].name
                                                       : "-");
        const char *comma = "";
        for (size_t n = 0; n < tree->node_count; n++) {
            if (tier->node_group[n] == g) {
                (void)weft_buf_printf(&buf, "%s%s", comma, tree->nodes[n]);
                comma = ",";
            }
        }
    }
    CHECK_STR(weft_buf_text(&buf), expected);
}

static const struct weft_finding *find(const struct weft_tree *tree, const char *kind)
{
    for (size_t i = 0; i < tree->finding_count; i++) {
        if (strcmp(tree->findings[i].kind, kind) == 0) {
            return &tree->findings[i];
        }
    }
    return NULL;
}

static void full_labels_make_full_chains(void)
{
    static const struct row rows[] = {{"n3", "r2", "b1", "z1"},
                                      {"n1", "r1", "b1", "z1"},
                                      {"n2", "r1", "b1", "z1"},
                                      {"n10", "r10", "b2", "z1"}};
    weft_auto(weft_tree_free) struct weft_tree *tree = tree_of(rows, WEFT_ARRAY_LEN(rows));
    if (tree == NULL) {
        return;
    }
    CHECK_INT(tree->tier_count, 3);
    CHECK_STR(tree->tiers[0].name, "rack");
    CHECK_STR(tree->tiers[1].name, "block");
    check_tier(tree, 0, "r1(b1):n1,n2 r2(b1):n3 r10(b2):n10");
    check_tier(tree, 1, "b1(z1):n1,n2,n3 b2(z1):n10");
    check_tier(tree, 2, "z1(-):n1,n10,n2,n3");
    CHECK_STR(tree->tiers[0].groups[0].identity, "zone=z1/block=b1/rack=r1");
    CHECK_INT(tree->finding_count, 0);
    CHECK_INT(tree->unplaced_count, 0);
}

static void equal_values_under_different_parents_are_different_groups(void)
{
    static const struct row rows[] = {{"a", "r1", "b1", "z1"},
                                      {"b", "r1", "b2", "z1"},
                                      {"c", "r1", "b1", "z2"},
                                      {"d", "r1", "b1", "z1"}};
    weft_auto(weft_tree_free) struct weft_tree *tree = tree_of(rows, WEFT_ARRAY_LEN(rows));
    if (tree == NULL) {
        return;
    }
    check_tier(tree, 0, "r1(b1):a,d r1(b2):b r1(b1):c");
    check_tier(tree, 1, "b1(z1):a,d b1(z2):c b2(z1):b");
    check_tier(tree, 2, "z1(-):a,b,d z2(-):c");
    const struct weft_finding *f = find(tree, "equal-value");
    CHECK_STR(f != NULL ? f->subject : NULL, "b1");
}

static void a_missing_level_is_a_gap_and_nothing_else(void)
{
    static const struct row rows[] = {
        {"a", "r1", "b1", "z1"}, {"b", "r1", NULL, "z1"}, {"c", NULL, "b1", "z1"},
        {"d", NULL, NULL, "z1"}, {"e", "r2", "b1", NULL}, {"f", "", "b1", "z1"},
        {"g", NULL, NULL, NULL}, {"h", "", "", ""},
    };
    weft_auto(weft_tree_free) struct weft_tree *tree = tree_of(rows, WEFT_ARRAY_LEN(rows));
    if (tree == NULL) {
        return;
    }
    /* b's rack is not known to be a's: the level between is missing. e has no zone */
    check_tier(tree, 0, "r1(b1):a r1(-):b r2(b1):e");
    check_tier(tree, 1, "b1(-):e b1(z1):a,c,f");
    check_tier(tree, 2, "z1(-):a,b,c,d,f");
    CHECK_INT(tree->node_count, 6);
    CHECK_INT(tree->unplaced_count, 2);
    CHECK_STR(tree->unplaced[0], "g");
    CHECK_STR(tree->unplaced[1], "h");
    const struct weft_finding *gap = find(tree, "missing-level");
    CHECK_STR(gap != NULL ? gap->subject : NULL, "block");
    CHECK_CONTAINS(gap != NULL ? gap->detail : NULL, "2 of 6 nodes lack label example.com/block");
    CHECK(find(tree, "unplaced") != NULL);
}

static void nobody_has_labels(void)
{
    static const struct row rows[] = {{"a", NULL, NULL, NULL}, {"b", NULL, NULL, NULL}};
    weft_auto(weft_tree_free) struct weft_tree *tree = tree_of(rows, WEFT_ARRAY_LEN(rows));
    if (tree != NULL) {
        CHECK_INT(tree->node_count, 0);
        CHECK_INT(tree->unplaced_count, 2);
        CHECK_INT(tree->tier_count, 3);
        CHECK_INT(tree->tiers[0].group_count, 0);
    }
}

static void identities_cannot_be_forged_by_values(void)
{
    static const struct row rows[] = {{"a", "x", "b/rack=x", NULL}, {"b", "x", "b%2frack=x", NULL}};
    weft_auto(weft_tree_free) struct weft_tree *tree = tree_of(rows, WEFT_ARRAY_LEN(rows));
    if (tree != NULL) {
        CHECK_INT(tree->tiers[1].group_count, 2);
        CHECK_STR(tree->tiers[1].groups[1].identity, "block=b%2frack%3dx");
    }
}

static void doubled_nodes_are_refused(void)
{
    const struct weft_node nodes[] = {{.name = (char *)(uintptr_t) "a", .uid = NULL},
                                      {.name = (char *)(uintptr_t) "a", .uid = NULL}};
    weft_auto(weft_label_levels_done) struct weft_label_levels levels = {0};
    struct weft_declared *declared = NULL;
    struct weft_error err = {0};
    make_levels(&levels);
    CHECK_INT(weft_parse_labels(nodes, 2, &levels, &declared, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "node a is there twice");
}

static void the_order_of_nodes_does_not_matter(void)
{
    struct row rows[60];
    char text[60][4][8];
    for (size_t i = 0; i < 60; i++) {
        (void)snprintf(text[i][0], 8, "n%02zu", i);
        (void)snprintf(text[i][1], 8, "r%zu", i / 3);
        (void)snprintf(text[i][2], 8, "b%zu", i / 12 % 3);
        (void)snprintf(text[i][3], 8, "z%zu", i / 30);
        rows[i] = (struct row){text[i][0], i % 7 == 0 ? NULL : text[i][1],
                               i % 11 == 0 ? NULL : text[i][2], text[i][3]};
    }
    weft_auto(weft_tree_free) struct weft_tree *first = tree_of(rows, 60);
    uint64_t random = 1;
    for (size_t round = 0; round < 20; round++) {
        for (size_t i = 60; i > 1; i--) {
            const size_t j = weft_random_below(&random, i);
            const struct row row = rows[i - 1];
            rows[i - 1] = rows[j];
            rows[j] = row;
        }
        weft_auto(weft_tree_free) struct weft_tree *tree = tree_of(rows, 60);
        for (size_t t = 0; first != NULL && tree != NULL && t < 3; t++) {
            CHECK_INT(tree->tiers[t].group_count, first->tiers[t].group_count);
            CHECK_INT(
                memcmp(tree->tiers[t].node_group, first->tiers[t].node_group, 60 * sizeof(size_t)),
                0);
        }
    }
}

/* ---- labels and a fabric ---- */

static const char *const plan[] = {"rack", "leaf", "spine", "core"};

/* Two units of four hosts under one pod, and what their "rack" labels say. */
static struct weft_tree *merged(const char *const *racks, size_t count, bool labels_first)
{
    weft_auto(gen_done) struct gen g;
    gen_init(&g, 1);
    struct gen_rft shape = {.pods = 1, .units = 2, .nodes = 4, .rails = 2, .spines = 2};
    gen_rail_fat_tree(&g, &shape);
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = gen_fabric(&g);
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    weft_auto(weft_label_levels_done) struct weft_label_levels levels = {0};
    gen_nodes(&g, &nodes);
    for (size_t n = 0; n < nodes.count; n++) {
        add_label(&nodes.items[n], "rack", racks[n]);
    }
    for (size_t n = nodes.count; n < count; n++) {
        struct weft_node *node = NULL;
        CHECK_INT(weft_nodes_add(&nodes, n == 8 ? "off-fabric" : "nowhere", NULL, &node), 0);
        add_label(node, "rack", racks[n]);
    }
    CHECK_INT(weft_label_levels_add(&levels, "rack", NULL, NULL), 0);
    const struct weft_tree_source by_labels = {.levels = &levels};
    const struct weft_tree_source by_fabric = {.fabric = fabric};
    const struct weft_tree_source sources[] = {labels_first ? by_labels : by_fabric,
                                               labels_first ? by_fabric : by_labels};
    const struct weft_tree_input input = {.sources = sources,
                                          .source_count = 2,
                                          .plan = plan,
                                          .plan_count = 4,
                                          .nodes = nodes.items,
                                          .node_count = nodes.count};
    struct weft_tree *tree = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_tree_build(&input, &tree, &err), 0);
    CHECK_STR(err.message, "");
    CHECK_INT(tree != NULL ? weft_tree_check(tree, &err) : 0, 0);
    CHECK_STR(err.message, "");
    return tree;
}

static void labels_below_a_fabric(void)
{
    static const char *const racks[] = {"a", "a", "b", "b", "c", "c", "c", "c"};
    weft_auto(weft_tree_free) struct weft_tree *tree = merged(racks, 8, true);
    if (tree == NULL) {
        return;
    }
    CHECK_INT(tree->tier_count, 3); /* the fabric has no core tier */
    check_tier(tree, 0,
               "a(leaf-0-0):n0-0-0,n0-0-1 b(leaf-0-0):n0-0-2,n0-0-3 "
               "c(leaf-0-1):n0-1-0,n0-1-1,n0-1-2,n0-1-3");
    CHECK(find(tree, "crossing") == NULL);
}

static void the_better_source_keeps_its_group_whole(void)
{
    /* rack b has three nodes of unit 0 and one of unit 1 */
    static const char *const racks[] = {"a", "b", "b", "b", "b", "c", "c", "c"};
    weft_auto(weft_tree_free) struct weft_tree *tree = merged(racks, 8, true);
    if (tree == NULL) {
        return;
    }
    check_tier(tree, 0,
               "a(leaf-0-0):n0-0-0 b(leaf-0-0):n0-0-1,n0-0-2,n0-0-3,n0-1-0 "
               "c(leaf-0-1):n0-1-1,n0-1-2,n0-1-3");
    check_tier(tree, 1,
               "leaf-0-0(spine-0):n0-0-0,n0-0-1,n0-0-2,n0-0-3,n0-1-0 "
               "leaf-0-1(spine-0):n0-1-1,n0-1-2,n0-1-3");
    const struct weft_finding *f = find(tree, "crossing");
    CHECK_STR(f != NULL ? f->subject : NULL, "b");
    CHECK_CONTAINS(f != NULL ? f->detail : NULL, "n0-1-0");
}

static void the_worse_source_is_cut(void)
{
    static const char *const racks[] = {"a", "b", "b", "b", "b", "c", "c", "c"};
    weft_auto(weft_tree_free) struct weft_tree *tree = merged(racks, 8, false);
    if (tree == NULL) {
        return;
    }
    check_tier(tree, 0,
               "a(leaf-0-0):n0-0-0 b(leaf-0-0):n0-0-1,n0-0-2,n0-0-3 b(leaf-0-1):n0-1-0 "
               "c(leaf-0-1):n0-1-1,n0-1-2,n0-1-3");
    CHECK(find(tree, "crossing") != NULL);
}

static void a_node_off_the_fabric_goes_with_its_rack(void)
{
    static const char *const racks[] = {"a", "a", "a", "a", "c", "c", "c", "c", "a", NULL};
    weft_auto(weft_tree_free) struct weft_tree *tree = merged(racks, 10, true);
    if (tree == NULL) {
        return;
    }
    check_tier(tree, 1,
               "leaf-0-0(spine-0):n0-0-0,n0-0-1,n0-0-2,n0-0-3,off-fabric "
               "leaf-0-1(spine-0):n0-1-0,n0-1-1,n0-1-2,n0-1-3");
    CHECK_INT(tree->unplaced_count, 1);
    CHECK_STR(tree->unplaced[0], "nowhere");
}

static void random_sources_always_make_a_forest(void)
{
    uint64_t random = 42;
    for (int round = 0; round < 300; round++) {
        static const char *const names[] = {"a", "b", "c", "d", NULL};
        const char *racks[10];
        for (size_t i = 0; i < 10; i++) {
            racks[i] = names[weft_random_below(&random, 5)];
        }
        weft_auto(weft_tree_free) struct weft_tree *tree = merged(racks, 10, round % 2 == 0);
        CHECK(tree != NULL);
    }
}

static void a_plan_must_name_the_tiers(void)
{
    static const struct row rows[] = {{"a", "r", "b", "z"}};
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    weft_auto(weft_label_levels_done) struct weft_label_levels levels = {0};
    make_nodes(rows, 1, &nodes);
    make_levels(&levels);
    const struct weft_tree_source source = {.levels = &levels};
    struct weft_tree_input input = {.sources = &source,
                                    .source_count = 1,
                                    .plan = (const char *const[]){"rack", "zone"},
                                    .plan_count = 2,
                                    .nodes = nodes.items,
                                    .node_count = 1};
    struct weft_tree *tree = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_tree_build(&input, &tree, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "\"block\", which is not in the tier plan (tiers: rack, zone)");
    input.plan = (const char *const[]){"zone", "block", "rack"};
    input.plan_count = 3;
    CHECK_INT(weft_tree_build(&input, &tree, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "against the tier plan");
    input.plan = NULL;
    input.nodes = NULL;
    CHECK_INT(weft_tree_build(&input, &tree, &err), -EINVAL);
    input.source_count = 0;
    CHECK_INT(weft_tree_build(&input, &tree, &err), -EINVAL);
}

static void no_memory_for_a_merge(void)
{
    static const char *const racks[] = {"a", "b", "b", "b", "b", "c", "c", "c"};
    static const struct row rows[] = {
        {"a", "r1", "b1", "z1"}, {"b", NULL, "b1", "z1"}, {"c", NULL, NULL, NULL}};
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    weft_auto(weft_label_levels_done) struct weft_label_levels levels = {0};
    make_nodes(rows, 3, &nodes);
    make_levels(&levels);
    const struct weft_tree_source sources[] = {{.levels = &levels}, {.levels = &levels}};
    const struct weft_tree_input input = {.sources = sources,
                                          .source_count = 2,
                                          .plan = (const char *const[]){"rack", "block", "zone"},
                                          .plan_count = 3,
                                          .nodes = nodes.items,
                                          .node_count = 3};
    int rc = -ENOMEM;
    for (uint64_t n = 1; rc < 0 && n < 20000; n++) {
        weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
        (void)weft_mem_fail_after(n);
        rc = weft_tree_build(&input, &tree, NULL);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || (rc == -ENOMEM && tree == NULL));
    }
    CHECK_INT(rc, 0);
    weft_auto(weft_tree_free) struct weft_tree *after = merged(racks, 8, true);
    CHECK(after != NULL);
}

WEFT_SUITE(tree_labels, {"full_labels_make_full_chains", full_labels_make_full_chains},
           {"equal_values_under_different_parents_are_different_groups",
            equal_values_under_different_parents_are_different_groups},
           {"a_missing_level_is_a_gap_and_nothing_else", a_missing_level_is_a_gap_and_nothing_else},
           {"nobody_has_labels", nobody_has_labels},
           {"identities_cannot_be_forged_by_values", identities_cannot_be_forged_by_values},
           {"doubled_nodes_are_refused", doubled_nodes_are_refused},
           {"the_order_of_nodes_does_not_matter", the_order_of_nodes_does_not_matter},
           {"labels_below_a_fabric", labels_below_a_fabric},
           {"the_better_source_keeps_its_group_whole", the_better_source_keeps_its_group_whole},
           {"the_worse_source_is_cut", the_worse_source_is_cut},
           {"a_node_off_the_fabric_goes_with_its_rack", a_node_off_the_fabric_goes_with_its_rack},
           {"random_sources_always_make_a_forest", random_sources_always_make_a_forest},
           {"a_plan_must_name_the_tiers", a_plan_must_name_the_tiers},
           {"no_memory_for_a_merge", no_memory_for_a_merge})
