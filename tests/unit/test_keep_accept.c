/* SPDX-License-Identifier: Apache-2.0 */
/* What waits for somebody's word: tiers that change their meaning, tierNames that others use, moves
 * under a running gang; and that one word frees one change, to its end. Expected sets are written
 * down by hand from the rules. */
#include <errno.h>
#include <stdio.h>

#include "controller/keep.h"
#include "pkg/base/clock.h"
#include "tests/unit/hypernodes.h"
#include "tests/unit/unit.h"

enum { NODES = 10 };

#define FIVE "n0 n1 n2 n3 n4"
#define REST "n5 n6 n7 n8 n9"
#define BEFORE "a 1 " FIVE "\nb 1 " REST "\ns 2 a b\n"
/* six of ten move */
#define AFTER "a 1 n3 n4\nb 1 n8 n9\nc 1 n0 n1 n2 n5 n6 n7\ns 2 a b c\n"

struct bench {
    struct weft_hypernode_set live;
    struct weft_hypernode_set wanted;
    struct weft_keep *keep;
    struct weft_keep_node nodes[NODES];
    char names[NODES][8];
    struct weft_keep_options options;
    struct weft_acceptance accepted;
    struct weft_keep_result result;
};

static void read_set(struct weft_hypernode_set *set, const char *text)
{
    weft_hypernode_set_done(set);
    *set = (struct weft_hypernode_set){0};
    hypernodes_read(set, text);
}

static void setup(struct bench *b, const char *live, const char *wanted)
{
    *b = (struct bench){.keep = weft_keep_new()};
    read_set(&b->live, live);
    read_set(&b->wanted, wanted);
    for (size_t i = 0; i < NODES; i++) {
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
                                            .move_delay = 600 * WEFT_NS_PER_S,
                                            .now = 1000 * WEFT_NS_PER_S};
}

static int decide(struct bench *b)
{
    weft_keep_result_done(&b->result);
    b->result = (struct weft_keep_result){0};
    const struct weft_keep_input input = {.live = &b->live,
                                          .wanted = &b->wanted,
                                          .nodes = b->nodes,
                                          .node_count = NODES,
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

/* What the first refusal is called is accepted from now on, by hash and target or by hash. */
static void accept_first(struct bench *b, bool with_target)
{
    const struct weft_refusal *first = &b->result.refusals.items[0];
    CHECK(b->result.refusals.count > 0);
    b->accepted = (struct weft_acceptance){0};
    memcpy(b->accepted.hash, first->hash, sizeof(first->hash));
    if (with_target) {
        memcpy(b->accepted.target, first->target, sizeof(first->target));
    }
    b->options.accepted = &b->accepted;
    b->options.accepted_count = 1;
}

static void take_back(struct bench *b)
{
    b->options.accepted_count = 0;
}

/* A controller that starts now. */
static void restart(struct bench *b)
{
    weft_keep_free(b->keep);
    b->keep = weft_keep_new();
}

static void expect(struct bench *b, bool refused, const char *set)
{
    CHECK_INT(decide(b), 0);
    CHECK_INT(b->result.refused, refused);
    CHECK_SET(&b->result.set, set);
}

/* The writes were cut short: n0 has moved and n5 is in no HyperNode. What is left has another hash;
 * it goes on all the same, as the nodes were let go. */
static void the_rest_of_an_accepted_change_goes_on(void)
{
    struct bench b;
    setup(&b, BEFORE, AFTER);
    expect(&b, true, BEFORE);
    accept_first(&b, true);
    expect(&b, false, AFTER);
    CHECK_INT(b.result.used, 1);
    take_back(&b);
    read_set(&b.live, "a 1 n1 n2 n3 n4\nb 1 n6 n7 n8 n9\nc 1 n0\ns 2 a b c\n");
    expect(&b, false, AFTER);
    /* others that move meanwhile have a brake of their own: three of nine */
    read_set(&b.wanted, "a 1 n4\nb 1 \nc 1 n0 n1 n2 n3 n5 n6 n7 n8 n9\ns 2 a c\n");
    CHECK_INT(decide(&b), 0);
    CHECK(b.result.refused);
    CHECK_INT(b.result.tallies[0].moved, 3);
    CHECK_SET(&b.result.set, "a 1 n3 n4\nb 1 n8 n9\nc 1 n0 n1 n2 n5 n6 n7\ns 2 a b c\n");
    teardown(&b);
}

/* After a restart it is known by where it leads; by the hash alone it is not, and waits. */
static void a_restart_knows_an_accepted_change(void)
{
    struct bench b;
    setup(&b, BEFORE, AFTER);
    expect(&b, true, BEFORE);
    accept_first(&b, false);
    restart(&b);
    expect(&b, false, AFTER);
    take_back(&b);
    restart(&b);
    expect(&b, true, BEFORE);
    accept_first(&b, true);
    const char *half = "a 1 n1 n2 n3 n4\nb 1 n6 n7 n8 n9\nc 1 n0\ns 2 a b c\n";
    read_set(&b.live, half);
    restart(&b);
    expect(&b, false, AFTER);
    b.accepted.target[0] = '\0';
    restart(&b);
    expect(&b, true, "a 1 n1 n2 n3 n4\nb 1 n6 n7 n8 n9\nc 1 n0 n5\ns 2 a b c\n");
    /* another end is another change */
    accept_first(&b, true);
    read_set(&b.wanted, "a 1 n3 n4\nb 1 n8 n9\nc 1 n0 n1 n2 n5 n6\nd 1 n7\ns 2 a b c d\n");
    restart(&b);
    CHECK_INT(decide(&b), 0);
    CHECK(b.result.refused);
    teardown(&b);
}

/* Two sources: the word for one does not free the other. */
static void each_source_has_its_own_hash(void)
{
    struct bench b;
    setup(&b, BEFORE, "c 1 " FIVE "\nd 1 " REST "\ns 2 c d\n");
    for (size_t i = 5; i < NODES; i++) {
        b.nodes[i].source = 1;
    }
    b.options.min_nodes = 5;
    expect(&b, true, BEFORE);
    CHECK_INT(b.result.refusals.count, 2);
    accept_first(&b, true);
    expect(&b, true, "b 1 " REST "\nc 1 " FIVE "\ns 2 b c\n");
    CHECK_INT(b.result.refusals.count, 1);
    CHECK_CONTAINS(b.result.refusals.items[0].text, "source 2 would move 5 and drop 0");
    teardown(&b);
}

/* Three nodes, far from any brake: that tier 1 is called otherwise is refused all the same. */
static void tiers_keep_their_meaning(void)
{
    struct bench b;
    const char *text = "a 1 n0 n1 n2\ns 2 a\n";
    const char *inserted = "a 2 x\ns 3 a\nx 1 n0 n1 n2\n";
    setup(&b, text, inserted);
    b.wanted.items[0].tier_name[1] = '1'; /* a: tier 2 now, still called t1 */
    b.wanted.items[1].tier_name[1] = '2'; /* s: t2 */
    b.wanted.items[2].tier_name[1] = '0'; /* x */
    expect(&b, true, text);
    CHECK(b.result.frozen);
    CHECK_INT(b.result.refusals.count, 1);
    CHECK_INT(b.result.refusals.items[0].kind, WEFT_REFUSAL_TIERS);
    CHECK_CONTAINS(b.result.refusals.items[0].text, "from t1=1 t2=2 to t0=1 t1=2 t2=3");
    accept_first(&b, true);
    expect(&b, false, inserted);
    /* goes on without the word while it is under way, not after it was done */
    take_back(&b);
    expect(&b, false, inserted);
    read_set(&b.live, "x 1 n0 n1 n2\n");
    b.live.items[0].tier_name[1] = '0';
    expect(&b, false, inserted);
    read_set(&b.live, text);
    expect(&b, true, text);
    /* the hash is that of this map: with another name it is another change */
    accept_first(&b, true);
    b.wanted.items[2].tier_name[1] = '9';
    expect(&b, true, text);
    teardown(&b);
}

/* One more tier on top changes nothing that existing objects say. */
static void a_tier_on_top_is_no_change(void)
{
    struct bench b;
    setup(&b, "a 1 n0 n1\nb 1 n2\n", "a 1 n0 n1\nb 1 n2\ns 2 a b\n");
    expect(&b, false, "a 1 n0 n1\nb 1 n2\ns 2 a b\n");
    teardown(&b);
}

/* Another owner calls its tier 2 "t1". */
static void a_tier_name_of_others_is_not_taken(void)
{
    struct bench b;
    setup(&b, "!f 2 g\n!g 1 x\n", "a 1 n0 n1\ns 2 a\n");
    weft_free(b.live.items[0].tier_name);
    b.live.items[0].tier_name = weft_strdup("t1");
    expect(&b, true, "");
    CHECK(b.result.frozen);
    CHECK_INT(b.result.refusals.items[0].kind, WEFT_REFUSAL_FOREIGN);
    CHECK_CONTAINS(b.result.refusals.items[0].text, "tierName t1 would be tier 1 here");
    accept_first(&b, false);
    expect(&b, false, "a 1 n0 n1\ns 2 a\n");
    /* what we have had before the other came is not given up, and joins go on */
    take_back(&b);
    read_set(&b.live, "a 1 n0 n1\ns 2 a\n!f 2 g\n!g 1 x\n");
    weft_free(b.live.items[1].tier_name);
    b.live.items[1].tier_name = weft_strdup("t1");
    read_set(&b.wanted, "a 1 n0 n1 n2\ns 2 a\n");
    expect(&b, false, "a 1 n0 n1 n2\ns 2 a\n");
    teardown(&b);
}

/* n0 and n5 move, n0 with a gang on it. */
static void a_gang_holds_a_move(void)
{
    struct bench b;
    const char *wanted = "a 1 n1 n2 n3 n4\nb 1 n0 n6 n7 n8 n9\nc 1 n5\ns 2 a b c\n";
    const char *held = "a 1 n0 n1 n2 n3 n4\nb 1 n6 n7 n8 n9\nc 1 n5\ns 2 a b c\n";
    setup(&b, BEFORE, wanted);
    b.nodes[0].gang = WEFT_KEEP_GANG_UNKNOWN;
    expect(&b, false, held);
    CHECK_INT(b.result.unknown_count, 1);
    CHECK_STR(b.result.unknown[0], "n0");
    CHECK_INT(b.result.refusals.count, 0); /* nothing is known yet that could be accepted */
    b.nodes[0].gang = WEFT_KEEP_GANG_RUNS;
    b.nodes[1].gang = WEFT_KEEP_GANG_RUNS; /* it stays anyway */
    expect(&b, false, held);
    CHECK_INT(b.result.waiting, 1);
    CHECK_INT(b.result.unknown_count, 0);
    CHECK_INT(b.result.refusals.count, 1);
    CHECK_INT(b.result.refusals.items[0].kind, WEFT_REFUSAL_MOVE);
    CHECK_CONTAINS(b.result.refusals.items[0].text,
                   "1 Node on which a gang runs waits up to 600 s before moving: n0");
    CHECK_INT(b.result.due, b.options.now + 30 * WEFT_NS_PER_S);
    /* after moveDelay it goes; the time counts from when it was first wanted there */
    b.options.now += 599 * WEFT_NS_PER_S;
    expect(&b, false, held);
    CHECK_INT(b.result.due, b.options.now + 1 * WEFT_NS_PER_S);
    b.options.now += 1 * WEFT_NS_PER_S;
    expect(&b, false, wanted);
    CHECK_INT(b.result.refusals.count, 0);
    teardown(&b);
}

static void a_gang_ends_or_somebody_says_so(void)
{
    struct bench b;
    const char *wanted = "a 1 n1 n2 n3 n4\nb 1 n0 n5 n6 n7 n8 n9\ns 2 a b\n";
    setup(&b, BEFORE, wanted);
    b.nodes[0].gang = WEFT_KEEP_GANG_RUNS;
    expect(&b, false, BEFORE);
    accept_first(&b, false);
    expect(&b, false, wanted);
    CHECK_INT(b.result.waiting, 0);
    take_back(&b);
    expect(&b, false, wanted); /* it was said */
    restart(&b);
    expect(&b, false, BEFORE);
    b.nodes[0].gang = WEFT_KEEP_GANG_NONE;
    expect(&b, false, wanted);
    b.nodes[0].gang = WEFT_KEEP_GANG_RUNS;
    b.options.move_delay = 0;
    restart(&b);
    expect(&b, false, wanted);
    teardown(&b);
}

static void no_memory(void)
{
    struct bench b;
    setup(&b, BEFORE, AFTER);
    b.nodes[0].gang = WEFT_KEEP_GANG_RUNS;
    for (int round = 0; round < 3; round++) {
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
        if (round == 0) {
            accept_first(&b, true);
        } else if (round == 1) { /* tiers differ */
            take_back(&b);
            b.wanted.items[0].tier_name[1] = '7';
        }
    }
    teardown(&b);
}

WEFT_SUITE(keep_accept,
           {"the_rest_of_an_accepted_change_goes_on", the_rest_of_an_accepted_change_goes_on},
           {"a_restart_knows_an_accepted_change", a_restart_knows_an_accepted_change},
           {"each_source_has_its_own_hash", each_source_has_its_own_hash},
           {"tiers_keep_their_meaning", tiers_keep_their_meaning},
           {"a_tier_on_top_is_no_change", a_tier_on_top_is_no_change},
           {"a_tier_name_of_others_is_not_taken", a_tier_name_of_others_is_not_taken},
           {"a_gang_holds_a_move", a_gang_holds_a_move},
           {"a_gang_ends_or_somebody_says_so", a_gang_ends_or_somebody_says_so},
           {"no_memory", no_memory})
