/* SPDX-License-Identifier: Apache-2.0 */
/* Findings, names, properties and failures of fabric trees. */
#include <errno.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/base/file.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/node.h"
#include "pkg/tree/build.h"
#include "pkg/tree/rails.h"
#include "pkg/tree/tree-internal.h"
#include "pkg/tree/tree.h"
#include "tests/bench/fabric_gen.h"
#include "tests/unit/unit.h"

/* "kind|subject|detail" lines of that kind. */
static void check_findings(const struct weft_tree *tree, const char *kind, const char *expected)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1 << 20);
    for (size_t i = 0; tree != NULL && i < tree->finding_count; i++) {
        const struct weft_finding *f = &tree->findings[i];
        if (strcmp(f->kind, kind) == 0) {
            (void)weft_buf_printf(&buf, "%s: %s\n", f->subject, f->detail);
        }
    }
    CHECK_STR(weft_buf_text(&buf), expected);
}

/* One pod of three units of six nodes, four rails, two spines. */
static struct gen small(struct gen_rft *shape)
{
    struct gen g;
    gen_init(&g, 21);
    *shape = (struct gen_rft){.pods = 1, .units = 3, .nodes = 6, .rails = 4, .spines = 2};
    gen_rail_fat_tree(&g, shape);
    return g;
}

static struct gen_cable *cable_of(struct gen *g, const char *host, unsigned rail)
{
    for (size_t i = 0; i < g->cable_count; i++) {
        struct gen_cable *c = &g->cables[i];
        if (c->host && c->rail == rail && strcmp(g->hosts[c->a].name, host) == 0) {
            return c;
        }
    }
    return NULL;
}

static void a_sound_fabric_has_no_findings(void)
{
    struct gen_rft shape;
    weft_auto(gen_done) struct gen g = small(&shape);
    weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, NULL);
    CHECK_INT(tree != NULL ? tree->finding_count : 1, 0);
}

static void swapped_adapters_are_named(void)
{
    struct gen_rft shape;
    weft_auto(gen_done) struct gen g = small(&shape);
    cable_of(&g, "n0-1-2", 0)->b = gen_leaf(&shape, 0, 1, 3);
    cable_of(&g, "n0-1-2", 3)->b = gen_leaf(&shape, 0, 1, 0);
    weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, NULL);
    check_findings(tree, "rail-swap",
                   "n0-1-2: mlx5_0 and mlx5_3 are swapped: mlx5_0 is on leaf leaf-0-1-3 port 3, "
                   "expected leaf-0-1-0; mlx5_3 is on leaf leaf-0-1-0 port 3, expected leaf-0-1-3 "
                   "(same leaf group leaf-0-1)\n");
    CHECK_INT(tree != NULL ? tree->finding_count : 0, 1);
}

static void a_deviating_adapter_is_named(void)
{
    struct gen_rft shape;
    weft_auto(gen_done) struct gen g = small(&shape);
    cable_of(&g, "n0-2-0", 1)->b = gen_leaf(&shape, 0, 2, 2);
    weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, NULL);
    check_findings(tree, "rail-deviation",
                   "n0-2-0: mlx5_1 is on leaf leaf-0-2-2 port 1, expected leaf leaf-0-2-1 (same "
                   "leaf group leaf-0-2, other rail)\n");
    CHECK_INT(tree != NULL ? tree->finding_count : 0, 1);
}

static void a_split_node_is_named_with_where_it_belongs(void)
{
    struct gen_rft shape;
    weft_auto(gen_done) struct gen g = small(&shape);
    cable_of(&g, "n0-0-4", 2)->b = gen_leaf(&shape, 0, 1, 2);
    weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, NULL);
    check_findings(tree, "split-node",
                   "n0-0-4: mlx5_2 is on leaf leaf-0-1-2 port 1 (group leaf-0-1), expected leaf "
                   "leaf-0-0-2 (group leaf-0-0)\n");
    CHECK_INT(tree != NULL ? tree->finding_count : 0, 1);
    CHECK(gen_has_truth(&g, tree, 0));
}

static void a_missing_cable_is_named(void)
{
    struct gen_rft shape;
    weft_auto(gen_done) struct gen g = small(&shape);
    cable_of(&g, "n0-0-4", 2)->gone = true;
    weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, NULL);
    check_findings(tree, "missing-link",
                   "n0-0-4: no link to leaf leaf-0-0-2, where 5 of 6 nodes of group leaf-0-0 have "
                   "one\n");
    CHECK_INT(tree != NULL ? tree->finding_count : 0, 1);
}

static void a_missing_rail_is_named_and_its_leaf_guessed(void)
{
    struct gen_rft shape;
    weft_auto(gen_done) struct gen g = small(&shape);
    for (size_t i = 0; i < g.cable_count; i++) {
        struct gen_cable *c = &g.cables[i];
        const size_t leaf = gen_leaf(&shape, 0, 1, 2);
        c->gone = c->gone || c->b == leaf || (!c->host && c->a == leaf);
    }
    weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, NULL);
    check_findings(
        tree, "missing-rail",
        "leaf-0-1: no leaf for mlx5_2, probably leaf-0-1-2: 3 leaf switches where 2 of 3 "
        "groups have 4, and most of its 6 nodes have no mlx5_2, which in group leaf-0-0 "
        "is on leaf-0-0-2\n");
    CHECK_INT(tree != NULL ? tree->finding_count : 0, 1);
}

static void missing_spine_links_are_counted(void)
{
    struct gen_rft shape;
    weft_auto(gen_done) struct gen g = small(&shape);
    for (size_t i = 0; i < g.cable_count; i++) {
        struct gen_cable *c = &g.cables[i];
        c->gone = !c->host && c->a == gen_leaf(&shape, 0, 2, 1) && c->b == gen_spine(&shape, 0, 1);
    }
    weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, NULL);
    check_findings(tree, "missing-spine-link",
                   "leaf-0-2-1: 1 of 2 links to its spines are missing: spine-0-1 has 0 of 1\n");
    CHECK_INT(tree != NULL ? tree->finding_count : 0, 1);
}

static void switches_that_join_what_is_apart_are_named(void)
{
    struct gen_rft shape;
    weft_auto(gen_done) struct gen g = small(&shape);
    const size_t first = gen_switch(&g, "storage-1");
    const size_t second = gen_switch(&g, "storage-2");
    for (size_t h = 0; h < 18; h++) {
        gen_plug(&g, h, 4, first);
        gen_plug(&g, h, 5, second);
    }
    weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, NULL);
    CHECK_INT(tree != NULL ? tree->tiers[0].group_count : 0, 1);
    bool found = false;
    for (size_t i = 0; tree != NULL && i < tree->finding_count; i++) {
        const struct weft_finding *f = &tree->findings[i];
        if (strcmp(f->kind, "joining-switch") == 0) {
            found = true;
            CHECK_CONTAINS(f->detail, "storage-1 (18 hosts)");
            CHECK_CONTAINS(f->detail, "storage-2 (18 hosts)");
            CHECK_CONTAINS(f->detail, "of 3 that share no hosts otherwise");
        }
    }
    CHECK(found);
}

static void a_node_on_a_spine_is_named(void)
{
    weft_auto(gen_done) struct gen g;
    gen_init(&g, 22);
    struct gen_rft shape = {.pods = 8, .units = 2, .nodes = 4, .rails = 2, .spines = 4, .cores = 8};
    gen_rail_fat_tree(&g, &shape);
    gen_plug(&g, gen_host(&g, "ufm"), 0, shape.first_core);
    weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, NULL);
    check_findings(tree, "node-on-spine",
                   "core-0: joins parts of the fabric that are apart without it, so it is no leaf "
                   "although nodes are on it: ufm\n");
    CHECK_STR(tree != NULL ? tree->tiers[0].groups[16].name : NULL, "ufm");
    CHECK_STR(tree != NULL ? tree->tiers[0].groups[16].identity : NULL, "host:ufm");
}

/* ---- nodes and hosts ---- */

static void check_match(const char *desc, const char *node, bool expected)
{
    char text[1024];
    (void)snprintf(text, sizeof(text),
                   "Switch 8 \"S-00000000000000a1\" # \"sw\" base port 0\n"
                   "[1] \"H-00000000000000b1\"[1](b1) # \"%s\" lid 4 4xHDR\n"
                   "[2] \"H-00000000000000b2\"[1](b2) # \"other.example HCA-1\" lid 4 4xHDR\n",
                   desc);
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = NULL;
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    struct weft_node *added = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_parse_ibnetdiscover(text, strlen(text), "dump", &fabric, &err), 0);
    CHECK_INT(weft_nodes_add(&nodes, node, NULL, &added), 0);
    if (fabric != NULL) {
        CHECK_INT(weft_tree_from_fabric(fabric, nodes.items, 1, NULL, &tree, &err), 0);
    }
    if (tree != NULL) {
        CHECK_INT(tree->node_count, expected);
        CHECK_INT(tree->unplaced_count, !expected);
    }
}

static void node_names_and_descriptions(void)
{
    check_match("node-1 mlx5_0", "node-1", true);
    check_match("Node-1 HCA-1", "node-1", true);
    check_match("node-1 ibp11s0f0", "node-1.cluster.example", true);
    check_match("node-1.cluster.example mlx5_0", "node-1", true);
    check_match("node-1.cluster.example mlx5_0", "node-1.cluster.example", true);
    check_match("node-1", "node-1", true);
    check_match("node-11 mlx5_0", "node-1", false);
    check_match("localhost mlx5_0", "localhost", false);
    check_match("MT4129 ConnectX7   Mellanox Technologies", "mt4129", false);
}

static void a_short_name_that_two_nodes_have_is_nobodys(void)
{
    static const char text[] = "Switch 8 \"S-00000000000000a1\" # \"sw\" base port 0\n"
                               "[1] \"H-00000000000000b1\"[1](b1) # \"n HCA-1\" lid 4 4xHDR\n"
                               "[2] \"H-00000000000000b2\"[1](b2) # \"m.a HCA-1\" lid 4 4xHDR\n";
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = NULL;
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    struct weft_node *added = NULL;
    uint32_t host[4] = {0};
    static const char *const names[] = {"n.a", "n.b", "m.a", "m.b"};
    CHECK_INT(weft_parse_ibnetdiscover(text, strlen(text), "dump", &fabric, NULL), 0);
    for (size_t i = 0; i < 4; i++) {
        CHECK_INT(weft_nodes_add(&nodes, names[i], NULL, &added), 0);
    }
    CHECK_INT(weft_graph_match(fabric, nodes.items, 4, host), 0);
    CHECK_INT(host[0], ID_NONE);
    CHECK_INT(host[1], ID_NONE);
    CHECK(host[2] != ID_NONE); /* the full name decides */
    CHECK_INT(host[3], ID_NONE);
}

/* ---- names ---- */

static void check_common(const char *const *names, size_t count, const char *expected)
{
    char *list[8] = {0};
    for (size_t i = 0; i < count; i++) {
        list[i] = weft_strdup(names[i]);
    }
    weft_autofree char *name = NULL;
    CHECK_INT(weft_common_name(list, count, &name), 0);
    CHECK_STR(name, expected);
    for (size_t i = 0; i < count; i++) {
        weft_free(list[i]);
    }
}

static void groups_are_called_by_what_their_switches_share(void)
{
    check_common((const char *const[]){"A09-P1-IBLEAF-01-02", "A09-P1-IBLEAF-03-02"}, 2,
                 "A09-P1-IBLEAF-02");
    check_common((const char *const[]){"leaf1", "leaf2"}, 2, "leaf");
    check_common((const char *const[]){"leaf-1"}, 1, "leaf-1");
    check_common((const char *const[]){"rack7.leaf.a", "rack7.leaf.b"}, 2, "rack7.leaf");
    check_common((const char *const[]){"x1", "y2"}, 2, NULL);
    check_common((const char *const[]){"1-2", "1-3"}, 2, NULL);
    check_common(NULL, 0, NULL);
}

static void a_missing_leaf_gets_its_sisters_form(void)
{
    char *own[] = {(char[]){"a09-leaf-01-01"}, (char[]){"a09-leaf-02-01"}};
    char *sister[] = {(char[]){"b09-leaf-01-05"}, (char[]){"b09-leaf-02-05"},
                      (char[]){"b09-leaf-03-05"}};
    weft_autofree char *name = NULL;
    CHECK_INT(weft_sister_name(own, 2, sister, 3, "b09-leaf-03-05", &name), 0);
    CHECK_STR(name, "a09-leaf-03-01");
    weft_autofree char *there = NULL;
    CHECK_INT(weft_sister_name(own, 2, sister, 3, "b09-leaf-02-05", &there), 0);
    CHECK_STR(there, NULL);
    char *other[] = {(char[]){"spine"}};
    CHECK_INT(weft_sister_name(other, 1, sister, 3, "b09-leaf-03-05", &there), 0);
    CHECK_STR(there, NULL);
}

static void tier_names(void)
{
    struct gen_rft shape;
    weft_auto(gen_done) struct gen g = small(&shape);
    const char *const names[] = {"rack"};
    weft_auto(weft_tree_free) struct weft_tree *plain = gen_tree(&g, NULL);
    weft_auto(weft_tree_free) struct weft_tree *named =
        gen_tree(&g, &(struct weft_tree_options){.tiers = names, .tier_count = 1});
    if (plain != NULL && named != NULL) {
        CHECK_STR(plain->tiers[0].name, "leaf");
        CHECK_STR(plain->tiers[1].name, "spine");
        CHECK_STR(named->tiers[0].name, "rack");
        CHECK_STR(named->tiers[1].name, "tier-2");
        CHECK_STR(plain->tiers[0].groups[0].name, "leaf-0-0");
        CHECK_INT(plain->tiers[0].groups[0].switch_count, 4);
        CHECK_STR(plain->tiers[0].groups[0].switches[3], "leaf-0-0-3");
        char identity[64];
        (void)snprintf(identity, sizeof(identity), "switch:%016llx",
                       (unsigned long long)plain->tiers[0].groups[0].switch_guids[0]);
        CHECK_STR(plain->tiers[0].groups[0].identity, identity);
        CHECK_INT(plain->tiers[1].groups[0].switch_count, 2);
    }
}

/* ---- properties ---- */

static void digest(const struct weft_tree *tree, struct weft_buf *buf)
{
    for (size_t t = 0; t < tree->tier_count; t++) {
        for (size_t n = 0; n < tree->node_count; n++) {
            const struct weft_tree_group *group =
                &tree->tiers[t].groups[tree->tiers[t].node_group[n]];
            (void)weft_buf_printf(buf, "%s %s %s\n", tree->nodes[n], group->name, group->identity);
        }
    }
    for (size_t i = 0; i < tree->finding_count; i++) {
        (void)weft_buf_printf(buf, "%s %s %s\n", tree->findings[i].kind, tree->findings[i].subject,
                              tree->findings[i].detail);
    }
}

static void digest_text(struct gen *g, const struct gen_text *how, struct weft_buf *buf)
{
    weft_auto(weft_buf_done) struct weft_buf text;
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = NULL;
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    struct weft_error err = {0};
    weft_buf_init(&text, 64 << 20);
    gen_write(g, how, &text);
    gen_nodes(g, &nodes);
    int rc = weft_parse_ibnetdiscover(text.data, text.len, "generated", &fabric, &err);
    rc = rc == 0 ? weft_tree_from_fabric(fabric, nodes.items, nodes.count, NULL, &tree, &err) : rc;
    CHECK_STR(err.message, "");
    if (rc == 0) {
        digest(tree, buf);
    }
}

static void the_order_of_the_text_decides_nothing(void)
{
    weft_auto(gen_done) struct gen g;
    gen_init(&g, 23);
    struct gen_rft shape = {.pods = 2, .units = 4, .nodes = 6, .rails = 4, .spines = 4, .cores = 8};
    gen_rail_fat_tree(&g, &shape);
    gen_break(&g, &shape, &(struct gen_faults){5, 2, 5, 1});
    weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, NULL);
    weft_auto(weft_buf_done) struct weft_buf expected;
    weft_buf_init(&expected, 1 << 20);
    if (tree == NULL) {
        return;
    }
    digest(tree, &expected);
    CHECK(tree->finding_count > 10);
    for (int i = 0; i < 12; i++) {
        weft_auto(weft_buf_done) struct weft_buf buf;
        weft_buf_init(&buf, 1 << 20);
        const struct gen_text how = {
            .shuffle = i > 0, .crlf = i % 2 == 1, .no_last_blank = i % 3 == 1};
        digest_text(&g, &how, &buf);
        CHECK_STR(weft_buf_text(&buf), weft_buf_text(&expected));
    }
}

/* Where a node is in the tree of more hosts, its old company stays together and gets nobody new
 * from among the old ones. */
static void check_unmoved(const struct weft_tree *before, const struct weft_tree *after)
{
    CHECK_INT(before->tier_count, after->tier_count);
    for (size_t t = 0; t < before->tier_count && t < after->tier_count; t++) {
        weft_auto(weft_idmap_done) struct weft_idmap map;
        weft_idmap_init(&map, SIZE_MAX / 2);
        for (size_t n = 0, m = 0; n < before->node_count; n++) {
            while (strcmp(after->nodes[m], before->nodes[n]) != 0) {
                m++;
            }
            uint64_t *group = NULL;
            bool is_new = false;
            CHECK_INT(weft_idmap_at(&map, before->tiers[t].node_group[n], &group, &is_new), 0);
            *group = is_new ? after->tiers[t].node_group[m] : *group;
            CHECK_INT(*group, after->tiers[t].node_group[m]);
        }
        CHECK_INT(map.count, before->tiers[t].group_count);
    }
}

static void more_hosts_move_nobody(void)
{
    weft_auto(gen_done) struct gen g;
    gen_init(&g, 24);
    struct gen_rft shape = {.pods = 2, .units = 4, .nodes = 6, .rails = 4, .spines = 4, .cores = 8};
    gen_rail_fat_tree(&g, &shape);
    gen_break(&g, &shape, &(struct gen_faults){2, 0.5, 2, 0});
    weft_auto(weft_tree_free) struct weft_tree *before = gen_tree(&g, NULL);
    for (size_t i = 0; i < 24; i++) {
        const size_t host = gen_host(&g, "zz-new-%02zu", i);
        g.hosts[host].foreign = i % 2 == 0;
        for (unsigned rail = 0; rail < 4; rail++) {
            gen_plug(&g, host, rail, gen_leaf(&shape, i % 2, i / 2 % 4, rail));
        }
    }
    weft_auto(weft_tree_free) struct weft_tree *after = gen_tree(&g, NULL);
    if (before != NULL && after != NULL) {
        CHECK_INT(after->node_count, before->node_count + 12);
        check_unmoved(before, after);
    }
}

static void a_long_chain_of_switches_is_not_slow(void)
{
    weft_auto(gen_done) struct gen g;
    gen_init(&g, 25);
    for (size_t i = 0; i < 20000; i++) {
        (void)gen_switch(&g, "s%zu", i);
        if (i > 0) {
            gen_link(&g, i - 1, i);
        }
    }
    gen_plug(&g, gen_host(&g, "a"), 0, 0);
    gen_plug(&g, gen_host(&g, "b"), 0, 19999);
    weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, NULL);
    CHECK_INT(tree != NULL ? tree->tier_count : 0, 2);
}

/* ---- failures ---- */

static void every_failing_allocation_is_an_error(void)
{
    struct gen_rft shape;
    weft_auto(gen_done) struct gen g = small(&shape);
    cable_of(&g, "n0-1-2", 0)->b = gen_leaf(&shape, 0, 1, 3);
    cable_of(&g, "n0-1-2", 3)->b = gen_leaf(&shape, 0, 1, 0);
    cable_of(&g, "n0-0-4", 2)->b = gen_leaf(&shape, 0, 1, 2);
    cable_of(&g, "n0-2-1", 2)->gone = true;
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = gen_fabric(&g);
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    gen_nodes(&g, &nodes);
    nodes.count--; /* one is foreign */
    int rc = -ENOMEM;
    uint64_t n = 0;
    while (fabric != NULL && rc < 0 && n < 100000) {
        struct weft_tree *tree = NULL;
        struct weft_error err = {0};
        (void)weft_mem_fail_after(++n);
        rc = weft_tree_from_fabric(fabric, nodes.items, nodes.count, NULL, &tree, &err);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || (rc == -ENOMEM && tree == NULL && err.code == -ENOMEM));
        weft_tree_free(tree);
    }
    nodes.count++;
    CHECK_INT(rc, 0);
    CHECK(n > 200);
}

static void doubled_nodes_are_refused(void)
{
    struct gen_rft shape;
    weft_auto(gen_done) struct gen g = small(&shape);
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = gen_fabric(&g);
    const struct weft_node nodes[] = {{.name = g.hosts[0].name}, {.name = g.hosts[0].name}};
    struct weft_tree *tree = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_tree_from_fabric(fabric, nodes, 2, NULL, &tree, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "node n0-0-0 is there twice");
}

static void the_check_finds_broken_trees(void)
{
    struct gen_rft shape;
    weft_auto(gen_done) struct gen g = small(&shape);
    weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, NULL);
    struct weft_error err = {0};
    if (tree == NULL) {
        return;
    }
    size_t *group = &tree->tiers[0].node_group[0];
    const size_t before = *group;
    *group = 99;
    CHECK_INT(weft_tree_check(tree, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "group out of range");
    *group = before;
    tree->tiers[0].groups[1].parent = WEFT_TREE_NONE;
    CHECK_INT(weft_tree_check(tree, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "parent");
    tree->tiers[0].groups[1].parent = 0;
    char *identity = tree->tiers[0].groups[1].identity;
    tree->tiers[0].groups[1].identity = tree->tiers[0].groups[0].identity;
    CHECK_INT(weft_tree_check(tree, &err), -EINVAL);
    tree->tiers[0].groups[1].identity = identity;
    CHECK_INT(weft_tree_check(tree, &err), 0);
}

WEFT_SUITE(
    tree, {"a_sound_fabric_has_no_findings", a_sound_fabric_has_no_findings},
    {"swapped_adapters_are_named", swapped_adapters_are_named},
    {"a_deviating_adapter_is_named", a_deviating_adapter_is_named},
    {"a_split_node_is_named_with_where_it_belongs", a_split_node_is_named_with_where_it_belongs},
    {"a_missing_cable_is_named", a_missing_cable_is_named},
    {"a_missing_rail_is_named_and_its_leaf_guessed", a_missing_rail_is_named_and_its_leaf_guessed},
    {"missing_spine_links_are_counted", missing_spine_links_are_counted},
    {"switches_that_join_what_is_apart_are_named", switches_that_join_what_is_apart_are_named},
    {"a_node_on_a_spine_is_named", a_node_on_a_spine_is_named},
    {"node_names_and_descriptions", node_names_and_descriptions},
    {"a_short_name_that_two_nodes_have_is_nobodys", a_short_name_that_two_nodes_have_is_nobodys},
    {"groups_are_called_by_what_their_switches_share",
     groups_are_called_by_what_their_switches_share},
    {"a_missing_leaf_gets_its_sisters_form", a_missing_leaf_gets_its_sisters_form},
    {"tier_names", tier_names},
    {"the_order_of_the_text_decides_nothing", the_order_of_the_text_decides_nothing},
    {"more_hosts_move_nobody", more_hosts_move_nobody},
    {"a_long_chain_of_switches_is_not_slow", a_long_chain_of_switches_is_not_slow},
    {"every_failing_allocation_is_an_error", every_failing_allocation_is_an_error},
    {"doubled_nodes_are_refused", doubled_nodes_are_refused},
    {"the_check_finds_broken_trees", the_check_finds_broken_trees})
