/* SPDX-License-Identifier: Apache-2.0 */
/* Re-cabled fabrics: moves wait until looks agree, unless the owner of the cabling says that it was
 * meant. Expected sets follow from the texts by hand. */
#include <errno.h>
#include <stdio.h>

#include "controller/keep.h"
#include "pkg/base/clock.h"
#include "tests/unit/hypernodes.h"
#include "tests/unit/unit.h"

/* Two pods of two leaves of four nodes; leaf b is re-cabled from pod s to pod u. */
#define LEAVES "a 1 n0 n1 n2 n3\nb 1 n4 n5 n6 n7\nc 1 n10 n11 n8 n9\nd 1 n12 n13 n14 n15\n"
#define BEFORE LEAVES "s 2 a b\nu 2 c d\n"
#define AFTER LEAVES "s 2 a\nu 2 b c d\n"
/* On the way b seemed to be a pod of its own. */
#define BETWEEN LEAVES "s 2 a\nt 2 b\nu 2 c d\n"

enum { NODES = 16 };

struct world {
    struct weft_hypernode_set live;
    struct weft_hypernode_set wanted;
    struct weft_keep *keep;
    struct weft_keep_node nodes[NODES];
    char names[NODES][8];
    struct weft_keep_options options;
    struct weft_keep_result result;
    uint64_t looks;
    const char *epoch;
};

static void setup(struct world *w)
{
    *w = (struct world){.keep = weft_keep_new(), .looks = 1};
    hypernodes_read(&w->live, BEFORE);
    for (size_t i = 0; i < NODES; i++) {
        (void)snprintf(w->names[i], sizeof(w->names[i]), "n%zu", i);
        w->nodes[i] = (struct weft_keep_node){.name = w->names[i], .selected = true};
    }
    w->options = (struct weft_keep_options){.instance = "weft",
                                            .snapshots = 3,
                                            .period = 600 * WEFT_NS_PER_S,
                                            .forget_after = WEFT_KEEP_NEVER,
                                            .lost_percent = 20,
                                            .moved_percent = 40,
                                            .settle = 2,
                                            .min_nodes = 8,
                                            .now = 1000 * WEFT_NS_PER_S};
}

static void done(struct world *w)
{
    weft_keep_result_done(&w->result);
    weft_hypernode_set_done(&w->live);
    weft_hypernode_set_done(&w->wanted);
    weft_keep_free(w->keep);
}

static int try(struct world *w, const char *wanted)
{
    weft_keep_result_done(&w->result);
    weft_hypernode_set_done(&w->wanted);
    w->result = (struct weft_keep_result){0};
    w->wanted = (struct weft_hypernode_set){0};
    hypernodes_read(&w->wanted, wanted);
    const struct weft_keep_input input = {.live = &w->live,
                                          .wanted = &w->wanted,
                                          .nodes = w->nodes,
                                          .node_count = NODES,
                                          .options = &w->options,
                                          .looks = &w->looks,
                                          .look_count = 1,
                                          .epoch = w->epoch};
    return weft_keep_decide(w->keep, &input, &w->result, NULL);
}

/* One decision on a new look, or (again) on the same one. */
static void look(struct world *w, const char *wanted)
{
    w->looks++;
    CHECK_INT(try(w, wanted), 0);
}

static void again(struct world *w, const char *wanted)
{
    CHECK_INT(try(w, wanted), 0);
}

static void a_move_waits_for_a_second_look(void)
{
    struct world w;
    setup(&w);
    look(&w, AFTER);
    CHECK_SET(&w.result.set, BEFORE);
    CHECK_INT(w.result.settling, 4);
    CHECK(!w.result.refused);
    CHECK_INT(w.result.due, 1030 * WEFT_NS_PER_S);
    again(&w, AFTER); /* something else woke us up: nothing new was seen */
    CHECK_SET(&w.result.set, BEFORE);
    look(&w, AFTER);
    CHECK_SET(&w.result.set, AFTER);
    CHECK_INT(w.result.settling, 0);
    CHECK_INT(w.result.due, INT64_MAX);
    done(&w);
}

static void a_look_that_differs_starts_anew(void)
{
    struct world w;
    setup(&w);
    look(&w, BETWEEN);
    CHECK_SET(&w.result.set, BEFORE);
    look(&w, AFTER);
    CHECK_SET(&w.result.set, BEFORE);
    look(&w, BEFORE); /* and back: forgotten */
    CHECK_SET(&w.result.set, BEFORE);
    CHECK_INT(w.result.settling, 0);
    look(&w, AFTER);
    CHECK_SET(&w.result.set, BEFORE);
    look(&w, AFTER);
    CHECK_SET(&w.result.set, AFTER);
    done(&w);
}

/* Joins go on, and only the movers wait: n9 moved to d is there at its second look. */
static void others_do_not_wait(void)
{
    static const char *const wanted =
        "a 1 n0 n1 n2 n3\nb 1 n4 n5 n6 n7\nc 1 n10 n11 n8\nd 1 n12 n13 n14 n15 n9\n"
        "s 2 a\nu 2 b c d\n";
    struct world w;
    setup(&w);
    w.nodes[15].fresh = true; /* joins */
    look(&w, wanted);
    CHECK_SET(&w.result.set, BEFORE);
    CHECK_INT(w.result.settling, 5);
    CHECK_INT(w.result.tallies[0].joined, 1);
    look(&w, wanted);
    CHECK_SET(&w.result.set, wanted);
    done(&w);
}

static void without_settle_moves_go_at_once(void)
{
    struct world w;
    setup(&w);
    for (unsigned settle = 0; settle < 2; settle++) {
        w.options.settle = settle;
        look(&w, AFTER);
        CHECK_SET(&w.result.set, AFTER);
    }
    done(&w);
}

/* A scan that saw a part cannot tell a moved Node from one whose cables it did not see. */
static void a_part_moves_nobody(void)
{
    struct world w;
    setup(&w);
    w.options.settle = 1;
    for (size_t i = 0; i < NODES; i++) {
        w.nodes[i].part = true;
    }
    w.epoch = "17";
    look(&w, BEFORE);
    w.epoch = "18"; /* nor because moves are expected */
    for (int i = 0; i < 3; i++) {
        look(&w, AFTER);
        CHECK_SET(&w.result.set, BEFORE);
        CHECK(w.result.settling > 0 && !w.result.refused);
    }
    for (size_t i = 0; i < NODES; i++) {
        w.nodes[i].part = false;
    }
    look(&w, AFTER);
    CHECK_SET(&w.result.set, AFTER);
    done(&w);
}

/* Eight of sixteen Nodes move: more than 40 %. */
#define LARGE LEAVES "s 2 a c\nu 2 b d\n"

static void an_epoch_says_that_it_was_meant(void)
{
    struct world w;
    setup(&w);
    w.epoch = "17";
    look(&w, BEFORE); /* the first epoch seen changes nothing */
    look(&w, LARGE);
    CHECK(w.result.refused);
    CHECK_SET(&w.result.set, BEFORE);
    w.epoch = "18";
    again(&w, LARGE);
    CHECK(!w.result.refused);
    CHECK_SET(&w.result.set, LARGE);
    CHECK_INT(w.result.settling, 0);
    done(&w);
}

/* The look under way when the epoch changed may be old; the one after it is not. Then the door
 * closes. */
static void an_epoch_is_for_two_looks(void)
{
    struct world w;
    setup(&w);
    w.epoch = "17";
    look(&w, BEFORE);
    w.epoch = "18";
    again(&w, BEFORE);
    look(&w, BEFORE);
    look(&w, LARGE);
    CHECK_SET(&w.result.set, LARGE);
    look(&w, LARGE);
    CHECK(w.result.refused);
    CHECK_SET(&w.result.set, BEFORE);
    done(&w);
}

static void an_epoch_makes_no_loss_believed(void)
{
    struct world w;
    setup(&w);
    w.epoch = "17";
    look(&w, BEFORE);
    w.epoch = "18";
    look(&w, "a 1 n0 n1 n2 n3\ns 2 a\n"); /* 12 of 16 are unknown now */
    CHECK(w.result.refused);
    CHECK_SET(&w.result.set, BEFORE);
    done(&w);
}

/* A loss counts after looks too, not after passes that something else caused. */
static void losses_are_counted_by_looks(void)
{
    static const char *const wanted =
        "a 1 n0 n1 n2\nb 1 n4 n5 n6 n7\nc 1 n10 n11 n8 n9\nd 1 n12 n13 n14 n15\ns 2 a b\nu 2 c d\n";
    struct world w;
    setup(&w);
    w.options.forget_after = 600 * WEFT_NS_PER_S;
    look(&w, wanted);
    w.options.now += 3600 * WEFT_NS_PER_S;
    for (int i = 0; i < 5; i++) {
        again(&w, wanted);
        CHECK_SET(&w.result.set, BEFORE);
    }
    look(&w, wanted);
    CHECK_SET(&w.result.set, BEFORE);
    look(&w, wanted);
    CHECK_SET(&w.result.set, wanted);
    done(&w);
}

static void no_memory(void)
{
    struct world w;
    setup(&w);
    w.epoch = "17";
    look(&w, BEFORE);
    int rc = -ENOMEM;
    w.epoch = "18";
    for (uint64_t n = 1; rc < 0 && n < 5000; n++) {
        struct weft_keep_result result = {0};
        const struct weft_keep_input input = {.live = &w.live,
                                              .wanted = &w.wanted,
                                              .nodes = w.nodes,
                                              .node_count = NODES,
                                              .options = &w.options,
                                              .looks = &w.looks,
                                              .look_count = 1,
                                              .epoch = w.epoch};
        (void)weft_mem_fail_after(n);
        rc = weft_keep_decide(w.keep, &input, &result, NULL);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || rc == -ENOMEM);
        weft_keep_result_done(&result);
    }
    CHECK_INT(rc, 0);
    done(&w);
}

WEFT_SUITE(keep_settle, {"a_move_waits_for_a_second_look", a_move_waits_for_a_second_look},
           {"a_look_that_differs_starts_anew", a_look_that_differs_starts_anew},
           {"others_do_not_wait", others_do_not_wait}, {"a_part_moves_nobody", a_part_moves_nobody},
           {"without_settle_moves_go_at_once", without_settle_moves_go_at_once},
           {"an_epoch_says_that_it_was_meant", an_epoch_says_that_it_was_meant},
           {"an_epoch_is_for_two_looks", an_epoch_is_for_two_looks},
           {"an_epoch_makes_no_loss_believed", an_epoch_makes_no_loss_believed},
           {"losses_are_counted_by_looks", losses_are_counted_by_looks}, {"no_memory", no_memory})
