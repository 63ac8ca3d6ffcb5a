/* SPDX-License-Identifier: Apache-2.0 */
/* Gangs under a re-cabled fabric; what is expected follows from the sets by hand. */
#include "pkg/hypernode/affected.h"

#include <errno.h>

#include "pkg/base/buf.h"
#include "pkg/hypernode/hypernode.h"
#include "tests/unit/hypernodes.h"
#include "tests/unit/unit.h"

/* Leaf b goes from pod s to pod u; node n9 from leaf c to leaf d; leaf e is called f afterwards. */
/* Another owner's leaf is not in what weft wants: it stays. */
#define BEFORE                                                                                     \
    "a 1 n0 n1\nb 1 n2 n3\nc 1 n8 n9\nd 1 n6 n7\ne 1 n4 n5\ns 2 a b\nu 2 c d e\n!z 1 n10 n11\n"
#define AFTER "a 1 n0 n1\nb 1 n2 n3\nc 1 n8\nd 1 n6 n7 n9\nf 1 n4 n5\ns 2 a\nu 2 b c d f\n"

static void check(const struct weft_placement *placements, size_t count, const char *expected)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set before = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set after = {0};
    weft_auto(weft_affected_done) struct weft_affected affected = {0};
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 4096);
    hypernodes_read(&before, BEFORE);
    hypernodes_read(&after, AFTER);
    const struct weft_affected_input input = {&before, &after, "weft", placements, count};
    CHECK_INT(weft_hypernode_affected(&input, &affected, NULL), 0);
    for (size_t i = 0; i < affected.count; i++) {
        const struct weft_affected_gang *g = &affected.items[i];
        (void)weft_buf_printf(&buf, "%s %s %zu/%zu %zu/%zu %s%s\n", g->hypernode, g->gang,
                              g->leaving_nodes, g->nodes, g->leaving_pods, g->pods, g->moves,
                              g->torn ? " torn" : "");
    }
    CHECK_STR(weft_buf_text(&buf), expected);
}

static void who_stays_is_not_affected(void)
{
    static const struct weft_placement pods[] = {{"n0", "x/one"},    {"n1", "x/one"},
                                                 {"n8", "x/two"},    {"n7", "x/two"},
                                                 {"n99", "x/three"}, {"n10", "x/four"}};
    check(pods, WEFT_ARRAY_LEN(pods), "");
    check(NULL, 0, "");
}

static void gangs_of_what_moves_are_named(void)
{
    static const struct weft_placement pods[] = {
        /* over leaves a and b of pod s: b leaves it, and no pod has all of it then */
        {"n3", "x/wide"},
        {"n0", "x/wide"},
        {"n2", "x/wide"},
        {"n2", "x/wide"},
        /* in leaf b: it stays one leaf, in another pod */
        {"n2", "x/leaf"},
        {"n3", "x/leaf"},
        /* in leaf c, of which n9 goes: apart in leaves, together in the pod */
        {"n8", "x/pair"},
        {"n9", "x/pair"},
        /* in leaf e, which gets another name */
        {"n4", "x/named"},
        {"n5", "x/named"},
    };
    check(pods, WEFT_ARRAY_LEN(pods),
          "c x/pair 1/2 1/2 n9 to d torn\n"
          "e x/named 2/2 2/2 n4 to f, n5 to f\n"
          "s x/leaf 2/2 2/2 n2 to u, n3 to u\n"
          "s x/wide 2/3 3/4 n2 to u, n3 to u torn\n");
}

/* A gang of ten nodes whose leaf goes: eight are named. */
static void many_moves_are_counted(void)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set before = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set after = {0};
    weft_auto(weft_affected_done) struct weft_affected affected = {0};
    hypernodes_read(&before, "a 1 n0 n1 n2 n3 n4 n5 n6 n7 n8 n9\n");
    hypernodes_read(&after, "b 1 n1\n");
    struct weft_placement pods[10];
    static const char *const nodes[10] = {"n0", "n1", "n2", "n3", "n4",
                                          "n5", "n6", "n7", "n8", "n9"};
    for (size_t i = 0; i < 10; i++) {
        pods[i] = (struct weft_placement){nodes[i], "x"};
    }
    const struct weft_affected_input input = {&before, &after, "weft", pods, 10};
    CHECK_INT(weft_hypernode_affected(&input, &affected, NULL), 0);
    CHECK_INT(affected.count, 1);
    CHECK_STR(affected.items[0].moves,
              "n0 to none, n1 to b, n2 to none, n3 to none, n4 to none, n5 to none, n6 to none, "
              "n7 to none, 2 more");
}

static void no_memory(void)
{
    static const struct weft_placement pods[] = {{"n3", "x"}, {"n0", "x"}, {"n9", "y"}};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set before = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set after = {0};
    hypernodes_read(&before, BEFORE);
    hypernodes_read(&after, AFTER);
    const struct weft_affected_input input = {&before, &after, "weft", pods, 3};
    int rc = -ENOMEM;
    for (uint64_t n = 1; rc < 0 && n < 5000; n++) {
        weft_auto(weft_affected_done) struct weft_affected affected = {0};
        (void)weft_mem_fail_after(n);
        rc = weft_hypernode_affected(&input, &affected, NULL);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || (rc == -ENOMEM && affected.items == NULL));
    }
    CHECK_INT(rc, 0);
}

WEFT_SUITE(affected, {"who_stays_is_not_affected", who_stays_is_not_affected},
           {"gangs_of_what_moves_are_named", gangs_of_what_moves_are_named},
           {"many_moves_are_counted", many_moves_are_counted}, {"no_memory", no_memory})
