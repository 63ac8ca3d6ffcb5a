/* SPDX-License-Identifier: Apache-2.0 */
/* Who keeps a place, what the brakes hold, and that the result is a forest. Expected sets are
 * written down by hand from the rules. */
#include "controller/keep.h"

#include <errno.h>
#include <stdio.h>

#include "pkg/base/clock.h"
#include "tests/unit/hypernodes.h"
#include "tests/unit/unit.h"

enum { NODES_MAX = 64 };

#define TEN "n0 n1 n2 n3 n4 n5 n6 n7 n8 n9"

struct bench {
    struct weft_hypernode_set live;
    struct weft_hypernode_set wanted;
    struct weft_keep *keep;
    struct weft_keep_node nodes[NODES_MAX];
    size_t count;
    char names[NODES_MAX][24];
    struct weft_keep_options options;
    struct weft_acceptance accepted;
    struct weft_keep_result result;
};

/* Somebody accepts what the first refusal of the last decision is called. */
static void accept_first(struct bench *b)
{
    CHECK(b->result.refusals.count > 0);
    b->accepted = (struct weft_acceptance){0};
    memcpy(b->accepted.hash, b->result.refusals.items[0].hash, sizeof(b->accepted.hash));
    b->options.accepted = &b->accepted;
    b->options.accepted_count = 1;
}

/* count Nodes n0, n1, …; all selected, of source 0. */
static void setup(struct bench *b, size_t count, const char *live, const char *wanted)
{
    *b = (struct bench){.keep = weft_keep_new(), .count = count};
    hypernodes_read(&b->live, live);
    hypernodes_read(&b->wanted, wanted);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(b->names[i], sizeof(b->names[i]), "n%zu", i);
        b->nodes[i] = (struct weft_keep_node){.name = b->names[i], .selected = true};
    }
    b->options = (struct weft_keep_options){.instance = "weft",
                                            .snapshots = 3,
                                            .period = 600 * WEFT_NS_PER_S,
                                            .forget_after = WEFT_KEEP_NEVER,
                                            .lost_percent = 20,
                                            .moved_percent = 20,
                                            .min_nodes = 8,
                                            .now = 1000 * WEFT_NS_PER_S};
}

static int decide(struct bench *b)
{
    weft_keep_result_done(&b->result);
    b->result = (struct weft_keep_result){0};
    const struct weft_keep_input input = {.live = &b->live,
                                          .wanted = &b->wanted,
                                          .nodes = b->nodes,
                                          .node_count = b->count,
                                          .options = &b->options};
    return weft_keep_decide(b->keep, &input, &b->result, NULL);
}

static void teardown(struct bench *b)
{
    weft_keep_result_done(&b->result);
    weft_hypernode_set_done(&b->live);
    weft_hypernode_set_done(&b->wanted);
    weft_keep_free(b->keep);
}

/* Decides once and compares. */
static void expect(size_t count, const char *live, const char *wanted, const char *result)
{
    struct bench b;
    setup(&b, count, live, wanted);
    CHECK_INT(decide(&b), 0);
    CHECK_SET(&b.result.set, result);
    CHECK(!b.result.refused);
    teardown(&b);
}

static void test_first_install(void)
{
    expect(4, "", "a 1 n0 n1\nb 1 n2 n3\ns 2 a b\n", "a 1 n0 n1\nb 1 n2 n3\ns 2 a b\n");
}

/* n1's labels are gone: nobody places it, it stays. n9, which does not exist, does not. */
static void test_lost_node_keeps_its_place(void)
{
    expect(4, "a 1 n0 n1 n9\nb 1 n2 n3\ns 2 a b\n", "a 1 n0\nb 1 n2 n3\ns 2 a b\n",
           "a 1 n0 n1\nb 1 n2 n3\ns 2 a b\n");
}

/* All of b's Nodes are lost, so b is wanted by nobody: it stays with them, under its parent. */
static void test_lost_group_stays(void)
{
    expect(4, "a 1 n0 n1\nb 1 n2 n3\ns 2 a b\n", "a 1 n0 n1\ns 2 a\n",
           "a 1 n0 n1\nb 1 n2 n3\ns 2 a b\n");
    /* the parent too */
    expect(4, "a 1 n0 n1\nb 1 n2 n3\ns 2 a\nu 2 b\n", "a 1 n0 n1\ns 2 a\n",
           "a 1 n0 n1\nb 1 n2 n3\ns 2 a\nu 2 b\n");
}

/* a moves below u by the word of n0; the lost n1 goes where its group goes. */
static void test_lost_node_follows_its_group(void)
{
    expect(3, "a 1 n0 n1\nb 1 n2\ns 2 a\nu 2 b\n", "a 1 n0\nb 1 n2\nu 2 a b\n",
           "a 1 n0 n1\nb 1 n2\nu 2 a b\n");
}

static void test_excluded_fresh_and_unselected_go(void)
{
    struct bench b;
    setup(&b, 4, "a 1 n0 n1 n2 n3\ns 2 a\n", "a 1 n3\ns 2 a\n");
    b.nodes[0].excluded = true;
    b.nodes[1].fresh = true;
    b.nodes[2].selected = false;
    CHECK_INT(decide(&b), 0);
    CHECK_SET(&b.result.set, "a 1 n3\ns 2 a\n");
    CHECK_INT(b.result.dropped, 1); /* n2; the others never counted */
    CHECK_INT(b.result.tallies[0].placed, 2);
    teardown(&b);
}

static void test_small_move_goes(void)
{
    /* two of ten are 20 %, not more */
    expect(10, "a 1 " TEN "\ns 2 a\n", "a 1 n2 n3 n4 n5 n6 n7 n8 n9\nb 1 n0 n1\ns 2 a b\n",
           "a 1 n2 n3 n4 n5 n6 n7 n8 n9\nb 1 n0 n1\ns 2 a b\n");
    /* seven Nodes: no brakes */
    expect(7, "a 1 n0 n1 n2 n3 n4 n5 n6\ns 2 a\n", "b 1 n0 n1 n2 n3 n4 n5 n6\ns 2 b\n",
           "b 1 n0 n1 n2 n3 n4 n5 n6\ns 2 b\n");
}

static void test_large_move_is_held_joins_go_on(void)
{
    struct bench b;
    char hash[WEFT_REFUSAL_HASH_MAX];
    const char *wanted = "a 1 n3 n4 n5 n6 n7 n8 n9\nb 1 n0 n1 n10 n2\ns 2 a b\n";
    setup(&b, 11, "a 1 " TEN "\ns 2 a\n", wanted);
    CHECK_INT(decide(&b), 0);
    CHECK(b.result.refused);
    CHECK(b.result.tallies[0].moved_trip);
    CHECK_INT(b.result.tallies[0].moved, 3);
    CHECK_INT(b.result.tallies[0].joined, 1);
    CHECK_SET(&b.result.set, "a 1 " TEN "\nb 1 n10\ns 2 a b\n");
    CHECK_INT(b.result.refusals.count, 1);
    CHECK_INT(b.result.refusals.items[0].kind, WEFT_REFUSAL_BRAKE);
    CHECK_INT(strlen(b.result.refusals.items[0].hash), 16);
    CHECK_STR(b.result.tallies[0].hash, b.result.refusals.items[0].hash);
    (void)snprintf(hash, sizeof(hash), "%s", b.result.refusals.items[0].hash);

    /* another order of the Nodes is the same change */
    const struct weft_keep_node first = b.nodes[0];
    b.nodes[0] = b.nodes[9];
    b.nodes[9] = first;
    CHECK_INT(decide(&b), 0);
    CHECK_STR(b.result.refusals.items[0].hash, hash);

    /* somebody accepts it */
    accept_first(&b);
    CHECK_INT(decide(&b), 0);
    CHECK(!b.result.refused);
    CHECK(b.result.tallies[0].accepted);
    CHECK_SET(&b.result.set, wanted);

    /* another change needs another word */
    weft_hypernode_set_done(&b.wanted);
    hypernodes_read(&b.wanted, "a 1 n4 n5 n6 n7 n8 n9\nb 1 n0 n1 n10\nc 1 n2 n3\ns 2 a b c\n");
    CHECK_INT(decide(&b), 0);
    CHECK_INT(b.result.tallies[0].moved, 2); /* n0 and n1 still go where they may */
    CHECK(!b.result.refused);
    weft_hypernode_set_done(&b.wanted);
    hypernodes_read(&b.wanted, "a 1 n4 n5 n6 n7 n8 n9\nb 1 n10\nc 1 n0 n1 n2 n3\ns 2 a b c\n");
    CHECK_INT(decide(&b), 0);
    CHECK(b.result.refused);
    CHECK(strcmp(b.result.refusals.items[0].hash, hash) != 0);
    teardown(&b);
}

/* Three of ten are lost: that alone would keep them; the brake also holds the one that moves. Once
 * accepted, the lost ones are let go. */
static void test_large_loss(void)
{
    struct bench b;
    setup(&b, 10, "a 1 " TEN "\ns 2 a\n", "a 1 n4 n5 n6 n7 n8 n9\nb 1 n3\ns 2 a b\n");
    CHECK_INT(decide(&b), 0);
    CHECK(b.result.refused);
    CHECK(b.result.tallies[0].lost_trip);
    CHECK_SET(&b.result.set, "a 1 " TEN "\ns 2 a\n");
    accept_first(&b);
    CHECK_INT(decide(&b), 0);
    CHECK_SET(&b.result.set, "a 1 n4 n5 n6 n7 n8 n9\nb 1 n3\ns 2 a b\n");
    CHECK_INT(b.result.dropped, 3);
    teardown(&b);
}

/* An empty result holds everything; a selector that takes nothing is one way to get it. */
static void test_empty_result_is_held(void)
{
    struct bench b;
    setup(&b, 10, "a 1 " TEN "\ns 2 a\n", "");
    for (size_t i = 0; i < 10; i++) {
        b.nodes[i].selected = false;
    }
    CHECK_INT(decide(&b), 0);
    CHECK(b.result.refused);
    CHECK_SET(&b.result.set, "a 1 " TEN "\ns 2 a\n");
    teardown(&b);
}

/* Source 0 loses all its Nodes; a Node of source 1 moves all the same. */
static void test_brakes_are_per_source(void)
{
    struct bench b;
    setup(&b, 20, "a 1 " TEN "\nb 1 n10 n11 n12 n13 n14 n15 n16 n17 n18 n19\ns 2 a b\n",
          "b 1 n11 n12 n13 n14 n15 n16 n17 n18 n19\nc 1 n10\ns 2 b c\n");
    for (size_t i = 10; i < 20; i++) {
        b.nodes[i].source = 1;
    }
    CHECK_INT(decide(&b), 0);
    CHECK(b.result.tallies[0].held);
    CHECK(!b.result.tallies[1].held);
    CHECK_SET(&b.result.set,
              "a 1 " TEN "\nb 1 n11 n12 n13 n14 n15 n16 n17 n18 n19\nc 1 n10\ns 2 a b c\n");
    teardown(&b);
}

/* Leaf a goes from s to u with all its Nodes: held, it stays below s, and so does the one that
 * joins a meanwhile. */
static void test_held_group_keeps_its_parent(void)
{
    struct bench b;
    setup(&b, 11, "a 1 " TEN "\ns 2 a\n", "a 1 n0 n1 n10 n2 n3 n4 n5 n6 n7 n8 n9\nu 2 a\n");
    CHECK_INT(decide(&b), 0);
    CHECK(b.result.refused);
    CHECK_SET(&b.result.set, "a 1 n0 n1 n10 n2 n3 n4 n5 n6 n7 n8 n9\ns 2 a\n");
    teardown(&b);
}

/* A crash between the creation of the leaves and of the spine: completing it is no move. */
static void test_interrupted_creation_is_no_move(void)
{
    expect(10, "a 1 n0 n1 n2 n3 n4\nb 1 n5 n6 n7 n8 n9\n",
           "a 1 n0 n1 n2 n3 n4\nb 1 n5 n6 n7 n8 n9\ns 2 a b\n",
           "a 1 n0 n1 n2 n3 n4\nb 1 n5 n6 n7 n8 n9\ns 2 a b\n");
}

/* forgetAfter 1 h, 3 passes: not before both. */
static void test_forgetting(void)
{
    struct bench b;
    const int64_t hour = 3600 * WEFT_NS_PER_S;
    const char *kept = "a 1 n0 n1\ns 2 a\n";
    setup(&b, 2, kept, "a 1 n0\ns 2 a\n");
    const int64_t start = b.options.now;
    b.options.forget_after = hour;
    CHECK_INT(decide(&b), 0);
    CHECK_INT(b.result.due, start + hour);
    CHECK_INT(b.result.kept, 1);
    CHECK_STR(b.result.kept_names[0], "n1");
    b.options.now = start + hour;
    CHECK_INT(decide(&b), 0); /* long enough, but only two passes saw it */
    CHECK_SET(&b.result.set, kept);
    CHECK(b.result.due > start + hour);
    CHECK_INT(decide(&b), 0);
    CHECK_SET(&b.result.set, "a 1 n0\ns 2 a\n");
    CHECK_INT(b.result.dropped, 1);
    teardown(&b);
}

/* It comes back in between: the count starts over. */
static void test_forgetting_starts_over(void)
{
    struct bench b;
    setup(&b, 2, "a 1 n0 n1\ns 2 a\n", "a 1 n0\ns 2 a\n");
    b.options.forget_after = 0;
    b.options.snapshots = 1;
    CHECK_INT(decide(&b), 0);
    weft_hypernode_set_done(&b.wanted);
    hypernodes_read(&b.wanted, "a 1 n0 n1\ns 2 a\n");
    b.options.now += 601 * WEFT_NS_PER_S;
    CHECK_INT(decide(&b), 0);
    weft_hypernode_set_done(&b.wanted);
    hypernodes_read(&b.wanted, "a 1 n0\ns 2 a\n");
    CHECK_INT(decide(&b), 0);
    CHECK_SET(&b.result.set, "a 1 n0 n1\ns 2 a\n");
    teardown(&b);
}

/* The tiers changed their meaning and everybody moves: refused, nothing at all is touched. */
static void test_changed_tiers_freeze(void)
{
    struct bench b;
    setup(&b, 10, "a 1 " TEN "\ns 2 a\n!f 1 n0\n", "s 1 n1\n");
    weft_free(b.wanted.items[0].tier_name);
    b.wanted.items[0].tier_name = weft_strdup("pod");
    CHECK_INT(decide(&b), 0);
    CHECK(b.result.refused);
    CHECK(b.result.frozen);
    CHECK_INT(b.result.refusals.count, 2); /* that Nodes are lost is another matter */
    CHECK_INT(b.result.refusals.items[0].kind, WEFT_REFUSAL_TIERS);
    CHECK_INT(b.result.refusals.items[1].kind, WEFT_REFUSAL_BRAKE);
    CHECK_SET(&b.result.set, "a 1 " TEN "\ns 2 a\n");
    accept_first(&b);
    CHECK_INT(decide(&b), 0);
    CHECK(b.result.frozen);
    CHECK_INT(b.result.refusals.count, 1);
    CHECK_SET(&b.result.set, "a 1 " TEN "\ns 2 a\n");
    teardown(&b);
}

static void set_identity(struct weft_hypernode *object, const char *identity)
{
    weft_free(object->identity);
    object->identity = weft_strdup(identity);
}

/* Decides with the last lacking of n0 and n1 without the tiers of gaps; compares set and kept.
 * Wanted objects "pad…" are padding. */
static void expect_gap(uint32_t gaps, const char *live, const char *wanted, const char *result,
                       size_t lacking)
{
    struct bench b;
    setup(&b, 4, live, wanted);
    for (size_t i = 0; i < b.wanted.count; i++) {
        if (strncmp(b.wanted.items[i].name, "pad", 3) == 0) {
            set_identity(&b.wanted.items[i], "copy-of-other:t=1");
        }
    }
    for (size_t i = 2 - lacking; i < 2; i++) {
        b.nodes[i].gaps = gaps;
    }
    CHECK_INT(decide(&b), 0);
    CHECK_SET(&b.result.set, result);
    CHECK_INT(b.result.kept, strcmp(wanted, result) != 0 ? lacking : 0);
    CHECK(!b.result.refused);
    teardown(&b);
}

#define PAIRS "a 1 n0 n1\nb 1 n2 n3\ns 2 a\nu 2 b\nx 3 s u\n"

/* n1's leaf is not known any more: pad is a copy of the spine. */
static void test_gap_keeps_the_place(void)
{
    expect_gap(1, PAIRS, "a 1 n0\nb 1 n2 n3\npad 1 n1\ns 2 a pad\nu 2 b\nx 3 s u\n", PAIRS, 1);
    /* both lower tiers */
    expect_gap(3, PAIRS, "a 1 n0\nb 1 n2 n3\npad 1 n1\npad2 2 pad\ns 2 a\nu 2 b\nx 3 pad2 s u\n",
               PAIRS, 1);
    /* the top, with all that is below s: groups of switches are the same ones without it */
    expect_gap(4, PAIRS, "a 1 n0 n1\nb 1 n2 n3\ns 2 a\nu 2 b\nx 3 u\npad 3 s\n", PAIRS, 2);
    /* no other Node is left in its group */
    const char *alone = "a 1 n1\nb 1 n0 n2 n3\ns 2 a b\n";
    expect_gap(1, alone, "b 1 n0 n2 n3\npad 1 n1\ns 2 b pad\n", alone, 1);
    /* the same without a gap is a move */
    expect_gap(0, alone, "b 1 n0 n2 n3\npad 1 n1\ns 2 b pad\n",
               "b 1 n0 n2 n3\npad 1 n1\ns 2 b pad\n", 0);
}

/* What is known speaks for another place: it moves, with padding for what is not known. */
static void test_gap_and_evidence_elsewhere(void)
{
    const char *wanted = "a 1 n0\nb 1 n2 n3\npad 1 n1\ns 2 a\nu 2 b pad\nx 3 s u\n";
    expect_gap(1, PAIRS, wanted, wanted, 1);
    /* n1 is still under s, but its group went below u */
    wanted = "a 1 n0\nb 1 n2 n3\npad 1 n1\ns 2 pad\nu 2 a b\nx 3 s u\n";
    expect_gap(1, PAIRS, wanted, wanted, 1);
    /* its leaf is another one, its spine unknown */
    wanted = "a 1 n0\nb 1 n1 n2 n3\ns 2 a\nu 2 b\nx 3 s u\n";
    expect_gap(2, PAIRS, wanted, wanted, 1);
}

/* It went below u with its group, and u is what is known of it: it follows. */
static void test_gap_follows_its_group(void)
{
    expect_gap(1, PAIRS, "a 1 n0\nb 1 n2 n3\npad 1 n1\nu 2 a b pad\nx 3 u\n",
               "a 1 n0 n1\nb 1 n2 n3\nu 2 a b\nx 3 u\n", 1);
}

/* Its last place on the missing tier was padding itself: nothing to hold on to. */
static void test_gap_where_padding_was(void)
{
    static const char *const identities[] = {"copy-of-t2:t2=s", "node:n1", "t2=s/t1=a"};
    const char *wanted = "b 1 n0 n2 n3\npad 1 n1\ns 2 b pad\n";
    for (size_t i = 0; i < WEFT_ARRAY_LEN(identities); i++) {
        struct bench b;
        setup(&b, 4, "old 1 n1\nb 1 n0 n2 n3\ns 2 b old\n", wanted);
        const size_t old = (size_t)(weft_hypernode_set_get(&b.live, "old") - b.live.items);
        set_identity(&b.live.items[old], identities[i]);
        b.nodes[1].gaps = 1;
        CHECK_INT(decide(&b), 0);
        CHECK_SET(&b.result.set, i < 2 ? wanted : "b 1 n0 n2 n3\nold 1 n1\ns 2 b old\n");
        teardown(&b);
    }
}

/* Three of ten lose a level: the brake counts them as lost; accepted, they are padded. */
static void test_gap_brake(void)
{
    struct bench b;
    const char *wanted = "a 1 n3 n4 n5 n6 n7 n8 n9\npad 1 n0 n1 n2\ns 2 a pad\n";
    setup(&b, 10, "a 1 " TEN "\ns 2 a\n", wanted);
    for (size_t i = 0; i < 3; i++) {
        b.nodes[i].gaps = 1;
    }
    CHECK_INT(decide(&b), 0);
    CHECK(b.result.tallies[0].lost_trip);
    CHECK(!b.result.tallies[0].moved_trip);
    CHECK_SET(&b.result.set, "a 1 " TEN "\ns 2 a\n");
    accept_first(&b);
    CHECK_INT(decide(&b), 0);
    CHECK_SET(&b.result.set, wanted);
    teardown(&b);
}

/* forgetAfter ends it as it does for a Node of which nothing is known; a fresh Node has no past. */
static void test_gap_ends(void)
{
    struct bench b;
    const char *wanted = "a 1 n0\npad 1 n1\ns 2 a pad\n";
    setup(&b, 2, "a 1 n0 n1\ns 2 a\n", wanted);
    b.nodes[1].gaps = 1;
    b.options.forget_after = 0;
    b.options.snapshots = 1;
    CHECK_INT(decide(&b), 0);
    CHECK_SET(&b.result.set, "a 1 n0 n1\ns 2 a\n");
    CHECK_INT(b.result.due, b.options.now + b.options.period);
    b.options.now += b.options.period;
    CHECK_INT(decide(&b), 0);
    CHECK_SET(&b.result.set, wanted);
    b.options.forget_after = WEFT_KEEP_NEVER;
    b.nodes[1].fresh = true;
    CHECK_INT(decide(&b), 0);
    CHECK_SET(&b.result.set, wanted);
    teardown(&b);
}

static void test_without_memory(void)
{
    struct bench b;
    setup(&b, 10, "a 1 n0 n1 n2 n3 n4\nb 1 n5 n6 n7 n8 n9\ns 2 a b\n",
          "a 1 n0 n1 n3 n4\nb 1 n5 n6 n7 n8 n9 n2\ns 2 b\nu 2 a\n");
    int rc = -ENOMEM;
    uint64_t n = 1;
    for (; rc == -ENOMEM && n < 10000; n++) {
        (void)weft_mem_fail_after(n);
        rc = decide(&b);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || rc == -ENOMEM);
    }
    CHECK_INT(rc, 0);
    CHECK(n > 20);
    teardown(&b);
}

WEFT_SUITE(keep, {"first install", test_first_install},
           {"lost node keeps its place", test_lost_node_keeps_its_place},
           {"lost group stays", test_lost_group_stays},
           {"lost node follows its group", test_lost_node_follows_its_group},
           {"excluded, fresh, unselected go", test_excluded_fresh_and_unselected_go},
           {"small move goes", test_small_move_goes},
           {"large move is held, joins go on", test_large_move_is_held_joins_go_on},
           {"large loss", test_large_loss}, {"empty result is held", test_empty_result_is_held},
           {"brakes are per source", test_brakes_are_per_source},
           {"held group keeps its parent", test_held_group_keeps_its_parent},
           {"interrupted creation is no move", test_interrupted_creation_is_no_move},
           {"forgetting", test_forgetting}, {"forgetting starts over", test_forgetting_starts_over},
           {"changed tiers freeze", test_changed_tiers_freeze},
           {"gap keeps the place", test_gap_keeps_the_place},
           {"gap and evidence elsewhere", test_gap_and_evidence_elsewhere},
           {"gap follows its group", test_gap_follows_its_group},
           {"gap where padding was", test_gap_where_padding_was}, {"gap and brake", test_gap_brake},
           {"gap ends", test_gap_ends}, {"without memory", test_without_memory})
