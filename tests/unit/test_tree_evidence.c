/* SPDX-License-Identifier: Apache-2.0 */
/* Two nodes are together only if the cables say so, whatever is cut, moved, renamed or shuffled.
 * What the cables say is found here from the generator's own list, not from a fabric or graph. */
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/node.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"
#include "tests/bench/fabric_gen.h"
#include "tests/unit/unit.h"

enum { ROUNDS = 120, THINGS_MAX = 1024 };

/* ---- what the cables say ---- */

/* Hosts, then switches. */
struct linked {
    size_t parent[THINGS_MAX];
};

static size_t root_of(const struct linked *l, size_t a)
{
    while (l->parent[a] != a) {
        a = l->parent[a];
    }
    return a;
}

static size_t host_named(const struct gen *g, const char *name)
{
    size_t h = 0;
    while (h < g->host_count && strcmp(g->hosts[h].name, name) != 0) {
        h++;
    }
    return h;
}

/* Joined by cables; host_only: by those of hosts, so through the leaves that hosts share. Hosts
 * that say the same name are one: adapters of different names and cards may be one host's. */
static void follow_cables(const struct gen *g, bool host_only, struct linked *l)
{
    for (size_t i = 0; i < g->host_count + g->switch_count; i++) {
        l->parent[i] = i;
    }
    for (size_t c = 0; c < g->cable_count; c++) {
        const struct gen_cable *cable = &g->cables[c];
        if (cable->gone || (host_only && !cable->host)) {
            continue;
        }
        const size_t a = cable->a + (cable->host ? 0 : g->host_count);
        l->parent[root_of(l, a)] = root_of(l, g->host_count + cable->b);
    }
    for (size_t a = 0; a < g->host_count; a++) {
        l->parent[root_of(l, a)] = root_of(l, host_named(g, g->hosts[a].name));
    }
}

/* Who is in one group is linked: in the closest tier by shared leaves, in others by any cables. */
static void check_no_strangers(const struct gen *all, const struct weft_tree *tree)
{
    static struct linked leaves;
    static struct linked wires;
    follow_cables(all, true, &leaves);
    follow_cables(all, false, &wires);
    size_t strangers = 0;
    for (size_t t = 0; t < tree->tier_count; t++) {
        const struct linked *by = t == 0 ? &leaves : &wires;
        size_t root[THINGS_MAX];
        for (size_t n = 0; n < tree->node_count; n++) {
            root[n] = root_of(by, host_named(all, tree->nodes[n]));
            for (size_t b = 0; b < n; b++) {
                strangers += tree->tiers[t].node_group[n] == tree->tiers[t].node_group[b] &&
                             root[n] != root[b];
            }
        }
    }
    CHECK_INT(strangers, 0);
}

/* ---- faults ---- */

static void make_fabric(struct gen *g, struct gen_rft *shape, uint64_t seed)
{
    gen_init(g, seed);
    *shape = (struct gen_rft){.pods = 1 + gen_below(g, 3),
                              .units = 1 + gen_below(g, 3),
                              .nodes = 1 + gen_below(g, 5),
                              .rails = 1 + gen_below(g, 3),
                              .spines = 2 + 2 * gen_below(g, 2),
                              .cores = 4 * gen_below(g, 2)};
    gen_rail_fat_tree(g, shape);
    const struct gen_faults faults = {.host_lost = (double)gen_below(g, 60),
                                      .host_moved = (double)gen_below(g, 30),
                                      .switch_lost = (double)gen_below(g, 70),
                                      .spine_moved = (double)gen_below(g, 20)};
    if (gen_below(g, 4) > 0) {
        gen_break(g, shape, &faults);
    }
    for (size_t h = 0; h < g->host_count; h++) {
        g->hosts[h].foreign = gen_below(g, 8) == 0;
    }
}

static bool has_host_cable(const struct gen *g)
{
    bool any = false;
    for (size_t c = 0; c < g->cable_count; c++) {
        any = any || (g->cables[c].host && !g->cables[c].gone);
    }
    return any;
}

/* One cable in ten goes. */
static void cut(struct gen *g)
{
    for (size_t c = 0; c < g->cable_count; c++) {
        g->cables[c].gone = g->cables[c].gone || gen_below(g, 10) == 0;
    }
}

/* Cables go until few are left; the trees say nothing that the first cables did not. */
static void cut_cables_make_no_strangers(void)
{
    size_t trees = 0;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        weft_auto(gen_done) struct gen g;
        struct gen_rft shape;
        make_fabric(&g, &shape, seed);
        for (int step = 0; step < 8 && has_host_cable(&g); step++) {
            weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, NULL);
            check_no_strangers(&g, tree);
            trees += tree->tier_count > 1;
            cut(&g);
        }
    }
    CHECK(trees > 2 * (size_t)ROUNDS); /* else they show nothing */
}

/* Do adapters of two hosts say that they are the same one of a host of that name? */
static bool two_say(const struct gen *g, const char *name)
{
    size_t owner[8];
    for (size_t rail = 0; rail < 8; rail++) {
        owner[rail] = g->host_count;
    }
    for (size_t c = 0; c < g->cable_count; c++) {
        const struct gen_cable *cable = &g->cables[c];
        if (cable->gone || !cable->host || strcmp(g->hosts[cable->a].name, name) != 0) {
            continue;
        }
        if (owner[cable->rail] != g->host_count && owner[cable->rail] != cable->a) {
            return true;
        }
        owner[cable->rail] = cable->a;
    }
    return false;
}

/* Hosts lose their names or take one that another has: they are no nodes then, or where their
 * adapters are; nobody else is put together by it. */
static void lost_names_make_no_strangers(void)
{
    static const char *const useless[] = {"localhost", "ubuntu"};
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        weft_auto(gen_done) struct gen g;
        struct gen_rft shape;
        make_fabric(&g, &shape, seed);
        weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
        gen_nodes(&g, &nodes);
        for (size_t h = 0; h < g.host_count; h++) {
            if (gen_below(&g, 3) == 0) {
                const char *name = gen_below(&g, 2) == 0
                                       ? useless[gen_below(&g, 2)]
                                       : g.hosts[gen_below(&g, g.host_count)].name;
                (void)snprintf(g.hosts[h].name, sizeof(g.hosts[h].name), "%s", name);
            }
        }
        if (!has_host_cable(&g)) {
            continue;
        }
        weft_auto(weft_fabric_free) struct weft_fabric *fabric = gen_fabric(&g);
        weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
        struct weft_error err = {0};
        CHECK_INT(weft_tree_from_fabric(fabric, nodes.items, nodes.count, NULL, &tree, &err), 0);
        CHECK_INT(weft_tree_check(tree, &err), 0);
        CHECK_INT(tree->node_count + tree->unplaced_count, nodes.count);
        for (size_t n = 0; n < tree->node_count; n++) {
            CHECK(strcmp(tree->nodes[n], "localhost") != 0);
            CHECK(strcmp(tree->nodes[n], "ubuntu") != 0);
            CHECK(!two_say(&g, tree->nodes[n]));
        }
        check_no_strangers(&g, tree);
    }
}

/* The same cables in any order of records, through the text. */
static void order_decides_nothing(void)
{
    for (uint64_t seed = 1; seed <= ROUNDS / 4; seed++) {
        weft_auto(gen_done) struct gen g;
        struct gen_rft shape;
        make_fabric(&g, &shape, seed);
        if (!has_host_cable(&g)) {
            continue;
        }
        weft_auto(weft_tree_free) struct weft_tree *first = gen_tree(&g, NULL);
        weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
        gen_nodes(&g, &nodes);
        for (size_t i = 0; i + 1 < nodes.count; i += 2) {
            const struct weft_node node = nodes.items[i];
            nodes.items[i] = nodes.items[nodes.count - 1 - i];
            nodes.items[nodes.count - 1 - i] = node;
        }
        const struct gen_text how = {.shuffle = true, .crlf = seed % 2 == 0};
        weft_auto(weft_buf_done) struct weft_buf buf;
        weft_auto(weft_fabric_free) struct weft_fabric *fabric = NULL;
        weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
        weft_buf_init(&buf, 1 << 24);
        gen_write(&g, &how, &buf);
        CHECK_INT(weft_parse_ibnetdiscover(weft_buf_text(&buf), buf.len, "text", &fabric, NULL), 0);
        CHECK_INT(weft_tree_from_fabric(fabric, nodes.items, nodes.count, NULL, &tree, NULL), 0);
        CHECK_INT(tree->node_count, first->node_count);
        CHECK_INT(tree->tier_count, first->tier_count);
        for (size_t t = 0; t < tree->tier_count && tree->tier_count == first->tier_count; t++) {
            CHECK_INT(memcmp(tree->tiers[t].node_group, first->tiers[t].node_group,
                             tree->node_count * sizeof(size_t)),
                      0);
            for (size_t i = 0; i < tree->tiers[t].group_count; i++) {
                CHECK_STR(tree->tiers[t].groups[i].identity, first->tiers[t].groups[i].identity);
            }
        }
    }
}

WEFT_SUITE(tree_evidence, {"cut_cables_make_no_strangers", cut_cables_make_no_strangers},
           {"lost_names_make_no_strangers", lost_names_make_no_strangers},
           {"order_decides_nothing", order_decides_nothing})
