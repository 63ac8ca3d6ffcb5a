/* SPDX-License-Identifier: Apache-2.0 */
/* Faults that come and go: what each discovery would write. */
#include <stdio.h>
#include <stdlib.h>

#include "pkg/hypernode/layout.h"
#include "pkg/tree/tree.h"
#include "tests/bench/fabric_gen_cases.h"

/* The cables that an event takes: those of one adapter, node, leaf or unit. Returns the writes that
 * it and its repair cannot do without: a node leaves its leaf group and comes back; a unit's group
 * goes and its parent changes, and both again. */
static size_t fail(struct gen *g, const struct gen_rft *s)
{
    const size_t kind = gen_below(g, 100);
    const size_t host = gen_below(g, g->host_count);
    const size_t rail = gen_below(g, s->rails);
    const size_t unit = gen_below(g, s->pods * s->units);
    for (size_t i = 0; i < g->cable_count; i++) {
        struct gen_cable *c = &g->cables[i];
        const bool here = c->host && g->hosts[c->a].truth[0] == unit;
        const size_t leaf = unit * s->rails + rail; /* leaves are the first switches, by unit */
        if (kind < 50) {
            c->gone = c->host && c->a == host && c->rail == rail;
        } else if (kind < 80) {
            c->gone = c->host && c->a == host;
        } else if (kind < 95) {
            c->gone = c->b == leaf || (!c->host && c->a == leaf);
        } else {
            c->gone = here;
        }
    }
    return kind < 50 ? 0 : kind < 80 ? 2 : kind < 95 ? 0 : 4;
}

static void repair(struct gen *g)
{
    for (size_t i = 0; i < g->cable_count; i++) {
        g->cables[i].gone = false;
    }
}

static void count_writes(const struct weft_hypernode_set *before,
                         const struct weft_hypernode_set *after, struct gen_churn *churn)
{
    size_t writes = 0;
    for (size_t i = 0; i < after->count; i++) {
        const struct weft_hypernode *now = &after->items[i];
        const struct weft_hypernode *old = weft_hypernode_set_get(before, now->name);
        const bool changed =
            old == NULL || old->tier != now->tier || !weft_hypernode_same_members(old, now);
        writes += changed;
        churn->identities += !changed && !weft_hypernode_same(old, now);
    }
    for (size_t i = 0; i < before->count; i++) {
        writes += !weft_hypernode_set_find(after, before->items[i].name, NULL);
    }
    churn->writes += writes;
    churn->worst = writes > churn->worst ? writes : churn->worst;
}

/* One discovery: live becomes what it makes. */
static void discover(const struct gen *g, struct weft_hypernode_set *live,
                     const struct gen_hold *hold, struct gen_churn *churn)
{
    static const char *const tiers[] = {"leaf", "spine", "core"};
    const struct weft_layout_options options = {
        .tiers = tiers, .tier_count = 3, .instance = "weft", .existing = live};
    weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(g, NULL);
    weft_auto(weft_layout_done) struct weft_layout layout = {0};
    struct weft_hypernode_set next = {0};
    struct weft_error err = {0};
    if (weft_layout_build(tree, &options, &layout, &err) < 0) {
        (void)fprintf(stderr, "generated layout: %s\n", err.message);
        abort();
    }
    if (hold != NULL) {
        hold->decide(hold->context, live, &layout.desired, &next);
    } else {
        next = layout.desired;
        layout.desired = (struct weft_hypernode_set){0};
    }
    count_writes(live, &next, churn);
    weft_hypernode_set_done(live);
    *live = next;
}

struct gen_churn gen_churn(uint64_t seed, unsigned events, const struct gen_hold *hold)
{
    struct gen_churn churn = {0};
    weft_auto(gen_done) struct gen g;
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set live = {0};
    gen_init(&g, seed);
    const struct gen_rft shape = gen_make_base(&g);
    discover(&g, &live, hold, &churn);
    churn = (struct gen_churn){0}; /* the first install is none */
    for (unsigned i = 0; i < 2 * events; i++) {
        if (i % 2 == 0) {
            churn.least += fail(&g, &shape);
        } else {
            repair(&g);
        }
        discover(&g, &live, hold, &churn);
    }
    return churn;
}
