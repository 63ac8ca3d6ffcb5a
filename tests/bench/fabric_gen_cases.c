/* SPDX-License-Identifier: Apache-2.0 */
/* One fabric for each shape that a simpler rule than pkg/tree's gets wrong, and the series of lost
 * and moved cables. */
#include "tests/bench/fabric_gen_cases.h"

#include "pkg/base/mem.h"
#include "pkg/tree/tree.h"

const struct gen_rft gen_base = {
    .pods = 4, .units = 8, .nodes = 16, .rails = 8, .spines = 16, .cores = 64};

struct gen_rft gen_make_base(struct gen *g)
{
    struct gen_rft shape = gen_base;
    gen_rail_fat_tree(g, &shape);
    return shape;
}

static void rail_fat_tree(struct gen *g, struct gen_rft shape)
{
    gen_rail_fat_tree(g, &shape);
}

/* Hosts name0… name(count-1) with one adapter on that switch. */
static void hang(struct gen *g, const char *name, size_t count, size_t on, bool foreign)
{
    for (size_t i = 0; i < count; i++) {
        const size_t host = gen_host(g, "%s%zu", name, i);
        g->hosts[host].foreign = foreign;
        gen_plug(g, host, 0, on);
    }
}

/* Each of switches [a, a + a_count) to each of [b, b + b_count). */
static void mesh(struct gen *g, size_t a, size_t a_count, size_t b, size_t b_count)
{
    for (size_t i = 0; i < a_count * b_count; i++) {
        gen_link(g, a + i / b_count, b + i % b_count);
    }
}

static size_t switches(struct gen *g, const char *name, size_t count)
{
    const size_t first = g->switch_count;
    for (size_t i = 0; i < count; i++) {
        (void)gen_switch(g, "%s-%zu", name, i);
    }
    return first;
}

/* ---- plain fat-trees ---- */

static void two_levels(struct gen *g)
{
    const size_t leaf = switches(g, "leaf", 8);
    mesh(g, leaf, 8, switches(g, "spine", 4), 4);
    for (size_t i = 0; i < 8; i++) {
        hang(g, g->switches[leaf + i], 16, leaf + i, false);
    }
}

static void three_levels(struct gen *g)
{
    rail_fat_tree(g, (struct gen_rft){4, 8, 16, 1, 8, 16, 0, 0, 0});
}

/* 32 hosts share two uplinks. */
static void oversubscribed(struct gen *g)
{
    rail_fat_tree(g, (struct gen_rft){2, 4, 32, 1, 2, 2, 0, 0, 0});
}

static void large(struct gen *g)
{
    rail_fat_tree(g, (struct gen_rft){8, 32, 32, 8, 32, 256, 0, 0, 0});
}

/* Every leaf is below the line under which a switch with hosts may be a spine. */
static void sparse(struct gen *g)
{
    rail_fat_tree(g, (struct gen_rft){4, 4, 1, 2, 8, 16, 0, 0, 0});
}

/* Pod 0 is full, the other pods have one node a unit. */
static void sparse_pods(struct gen *g)
{
    rail_fat_tree(g, (struct gen_rft){4, 4, 8, 2, 8, 16, 0, 0, 0});
    for (size_t i = 0; i < g->cable_count; i++) {
        struct gen_cable *c = &g->cables[i];
        /* hosts are numbered pod by pod, 32 each, 8 a unit */
        c->gone = c->host && c->a >= 32 && c->a % 8 != 0;
    }
}

/* ---- other shapes ---- */

/* Two directors of four line and four spine cards; leaf i has a cable to line card i/2 of each. */
static void directors(struct gen *g)
{
    const size_t leaf = switches(g, "edge", 8);
    for (size_t d = 0; d < 2; d++) {
        const size_t line = switches(g, d == 0 ? "dir0-L" : "dir1-L", 4);
        mesh(g, line, 4, switches(g, d == 0 ? "dir0-S" : "dir1-S", 4), 4);
        for (size_t i = 0; i < 8; i++) {
            gen_link(g, leaf + i, line + i / 2);
        }
    }
    for (size_t i = 0; i < 8; i++) {
        hang(g, g->switches[leaf + i], 8, leaf + i, false);
    }
}

static void dragonfly_plus(struct gen *g)
{
    for (size_t i = 0; i < (size_t)6 * 8; i++) {
        (void)gen_switch(g, "%s-%zu-%zu", i % 8 < 4 ? "leaf" : "spine", i / 8, i % 4);
    }
    for (size_t group = 0; group < 6; group++) {
        mesh(g, group * 8, 4, group * 8 + 4, 4);
        for (size_t i = 0; i < 64; i++) {
            gen_plug(g, gen_host(g, "h%zu-%zu", group, i), 0, group * 8 + i / 16);
        }
        for (size_t other = group + 1; other < 6; other++) {
            gen_link(g, group * 8 + 4 + other % 4, other * 8 + 4 + group % 4);
        }
    }
}

/* Five groups of four fully meshed routers, one cable a pair of groups: no leaf to tell them by. */
static void dragonfly(struct gen *g)
{
    const size_t first = switches(g, "router", 20);
    for (size_t i = 0; i < 20; i++) {
        for (size_t j = i + 1; j < i / 4 * 4 + 4; j++) {
            gen_link(g, first + i, first + j);
        }
        hang(g, g->switches[first + i], 4, first + i, false);
    }
    for (size_t a = 0; a < 5; a++) {
        for (size_t b = a + 1; b < 5; b++) {
            gen_link(g, first + a * 4 + b % 4, first + b * 4 + a % 4);
        }
    }
}

size_t gen_leaf_on_core(struct gen *g)
{
    struct gen_rft shape = {2, 2, 4, 2, 2, 4, 0, 0, 0};
    gen_rail_fat_tree(g, &shape);
    const size_t leaf = gen_switch(g, "leaf-x");
    gen_link(g, leaf, shape.first_core);
    gen_link(g, leaf, shape.first_core + 2);
    hang(g, "x", 2, leaf, false);
    return shape.first_core + 1;
}

static void leaf_on_core(struct gen *g)
{
    (void)gen_leaf_on_core(g);
}

static void foreign_on_core(struct gen *g)
{
    hang(g, "management", 1, gen_leaf_on_core(g), true);
}

static void node_on_core(struct gen *g)
{
    hang(g, "management", 1, gen_leaf_on_core(g), false);
}

static size_t wide(struct gen *g)
{
    struct gen_rft shape = {8, 2, 4, 2, 4, 8, 0, 0, 0};
    gen_rail_fat_tree(g, &shape);
    hang(g, "on-core", 1, shape.first_core + 1, false);
    return shape.first_spine;
}

static void wide_node_on_core(struct gen *g)
{
    (void)wide(g);
}

static void wide_node_on_spine(struct gen *g)
{
    hang(g, "on-spine", 1, wide(g), false);
}

static void forest(struct gen *g)
{
    rail_fat_tree(g, (struct gen_rft){1, 2, 4, 2, 2, 0, 0, 0, 0});
    hang(g, "a", 4, gen_switch(g, "alone"), false);
}

/* Four units of eight nodes; rail r's leaves have spines of their own. */
static void planes(struct gen *g)
{
    const size_t leaf = switches(g, "leaf", 16);
    for (size_t rail = 0; rail < 4; rail++) {
        const size_t spine = switches(g, "spine", 4);
        for (size_t unit = 0; unit < 4; unit++) {
            mesh(g, leaf + unit * 4 + rail, 1, spine, 4);
        }
    }
    for (size_t i = 0; i < 32; i++) {
        const size_t host = gen_host(g, "h%zu", i);
        for (unsigned rail = 0; rail < 4; rail++) {
            gen_plug(g, host, rail, leaf + i / 8 * 4 + rail);
        }
    }
}

/* Four pairs of top-of-rack switches with four peer cables, each with two spines above. */
static void pairs(struct gen *g)
{
    const size_t tor = switches(g, "tor", 8);
    const size_t spine = switches(g, "spine", 2);
    for (size_t pair = 0; pair < 4; pair++) {
        const size_t one = tor + 2 * pair;
        for (size_t i = 0; i < 4; i++) {
            gen_link(g, one, one + 1);
            gen_link(g, one + i / 2, spine + i % 2);
        }
        for (size_t i = 0; i < 8; i++) {
            const size_t host = gen_host(g, "h%zu-%zu", pair, i);
            gen_plug(g, host, 0, one);
            gen_plug(g, host, 1, one + 1);
        }
    }
}

/* Eight leaves of eight hosts, four under each of two sets of four spines, which meet in two cores;
 * only hosts on leaves 0 and 4 are nodes. */
static void subset(struct gen *g)
{
    const size_t leaf = switches(g, "leaf", 8);
    const size_t spine = switches(g, "spine", 8);
    mesh(g, leaf, 4, spine, 4);
    mesh(g, leaf + 4, 4, spine + 4, 4);
    mesh(g, spine, 8, switches(g, "core", 2), 2);
    for (size_t i = 0; i < 8; i++) {
        hang(g, g->switches[leaf + i], 8, leaf + i, i != 0 && i != 4);
    }
}

/* ---- the base fabric with something else on it ---- */

static void storage_island(struct gen *g)
{
    const struct gen_rft s = gen_make_base(g);
    for (size_t i = 0; i < 2; i++) {
        const size_t leaf = gen_switch(g, "storage-%zu", i);
        mesh(g, leaf, 1, gen_spine(&s, 0, 0), s.spines);
        hang(g, g->switches[leaf], 8, leaf, true);
    }
}

/* A service host on a leaf of each of two pods. */
static struct gen_rft service_host(struct gen *g)
{
    const struct gen_rft s = gen_make_base(g);
    const size_t host = gen_host(g, "service");
    g->hosts[host].foreign = true;
    gen_plug(g, host, 0, gen_leaf(&s, 0, 0, 0));
    gen_plug(g, host, 1, gen_leaf(&s, 1, 0, 0));
    return s;
}

static void service(struct gen *g)
{
    (void)service_host(g);
}

static void service_switch(struct gen *g)
{
    const struct gen_rft s = service_host(g);
    const size_t own = gen_switch(g, "service-switch");
    for (size_t i = 1; i < 3; i++) {
        const size_t host = gen_host(g, "service-%zu", i);
        g->hosts[host].foreign = true;
        gen_plug(g, host, 0, own);
        gen_plug(g, host, 1, gen_leaf(&s, 0, i, 0));
        gen_plug(g, host, 2, gen_leaf(&s, 1, i, 0));
    }
}

static void stray_leaf_cable(struct gen *g)
{
    const struct gen_rft s = gen_make_base(g);
    gen_link(g, gen_leaf(&s, 0, 0, 0), gen_leaf(&s, 1, 0, 0));
}

static void stray_spine_cable(struct gen *g)
{
    const struct gen_rft s = gen_make_base(g);
    gen_link(g, gen_spine(&s, 0, 0), gen_spine(&s, 1, 0));
}

/* What must be left out by configuration: it makes all one group. */
static void storage_for_all(struct gen *g)
{
    (void)gen_make_base(g);
    const size_t storage = gen_switch(g, "storage-1");
    for (size_t h = 0; h < 512; h++) {
        gen_plug(g, h, 8, storage);
    }
}

const struct gen_case *gen_cases(size_t *ret_count)
{
    static const char unchanged[] = "32x16 4x128 512";
    static const struct gen_case cases[] = {
        {"two-levels", "8x16 128", two_levels},
        {"three-levels", "32x16 4x128 512", three_levels},
        {"oversubscribed", "8x32 2x128 256", oversubscribed},
        {"large", "256x32 8x1024 8192", large},
        {"sparse", "16x1 4x4 16", sparse},
        {"sparse-pods", "12x1,4x8 3x4,32 44", sparse_pods},
        {"directors", "8x8 4x16 64", directors},
        {"dragonfly-plus", "24x16 6x64 384", dragonfly_plus},
        {"dragonfly", "20x4 80", dragonfly},
        {"leaf-on-core", "2,4x4 2,2x8 18", leaf_on_core},
        {"foreign-host-on-core", "2,4x4 2,2x8 18", foreign_on_core},
        {"node-on-core", "1,2,4x4 1,2,2x8 1,18 19", node_on_core},
        {"wide-node-on-core", "1,16x4 1,8x8 65", wide_node_on_core},
        {"wide-node-on-spine", "2x1,16x4 1,7x8,9 66", wide_node_on_spine},
        {"forest", "3x4 4,8", forest},
        {"planes", "4x8 32", planes},
        {"switch-pairs", "4x8 32", pairs},
        {"subset", "2x8 16", subset},
        {"storage-island", unchanged, storage_island},
        {"service-host", unchanged, service},
        {"service-hosts-on-own-switch", unchanged, service_switch},
        {"stray-leaf-cable", unchanged, stray_leaf_cable},
        {"stray-spine-cable", unchanged, stray_spine_cable},
        {"storage-for-all", "512", storage_for_all},
    };
    *ret_count = WEFT_ARRAY_LEN(cases);
    return cases;
}

/* ---- series of random faults ---- */

const struct gen_series *gen_series(size_t *ret_count)
{
    static const struct gen_series rows[] = {
        {"none", {0, 0, 0, 0}, 0, 3, 20},
        {"lost-1", {1, 0, 1, 0}, 0, 3, 20},
        {"lost-5", {5, 0, 5, 0}, 0, 3, 20},
        {"lost-10", {10, 0, 10, 0}, 0, 3, 20},
        {"moved-0.1", {0, 0.1, 0, 0}, 0, 3, 20},
        {"moved-0.5", {0, 0.5, 0, 0}, 0, 3, 20},
        {"lost-2-moved-0.5", {2, 0.5, 2, 0}, 0, 3, 20},
        {"lost-5-moved-2", {5, 2, 5, 0}, 0, 3, 20},
        {"spine-moved-0.2", {0, 0, 0, 0.2}, 1, 1, 20},
        {"spine-moved-1", {0, 0, 0, 1}, 1, 1, 20},
        {"spine-moved-1-lost-10", {0, 0, 10, 1}, 1, 1, 20},
        {"spine-moved-5-lost-5", {0, 0, 5, 5}, 1, 1, 19},
    };
    *ret_count = WEFT_ARRAY_LEN(rows);
    return rows;
}

unsigned gen_series_right(const struct gen_series *series, unsigned draws)
{
    unsigned right = 0;
    for (unsigned draw = 0; draw < draws; draw++) {
        weft_auto(gen_done) struct gen g;
        gen_init(&g, 1000 + (uint64_t)draw);
        const struct gen_rft shape = gen_make_base(&g);
        gen_break(&g, &shape, &series->faults);
        weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, NULL);
        bool all = true;
        for (size_t t = 0; all && t < series->tiers; t++) {
            all = gen_has_truth(&g, tree, series->first + t);
        }
        right += all;
    }
    return right;
}
