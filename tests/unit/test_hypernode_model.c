/* SPDX-License-Identifier: Apache-2.0 */
/* The model must say what the real scheduler did. Rows in brackets, [0.5] or [b], are those of the
 * runs that saw it (../shared/reference/volcano-live.md); the tree is theirs: leaves s0..s3 with
 * two nodes each, s4 = s0 s1, s5 = s2 s3, s6 = s4 s5. */
#include <stdio.h>

#include "pkg/hypernode/model.h"
#include "tests/unit/hypernode_util.h"
#include "tests/unit/unit.h"

static int add(struct weft_model *m, const char *name, int64_t tier, const char *members)
{
    weft_auto(weft_hypernode_done) struct weft_hypernode hn = hn_make(name, tier, members);
    return weft_model_apply(m, &hn);
}

static struct weft_model *make_tree(void)
{
    struct weft_model *m = weft_model_new(true);
    CHECK_INT(add(m, "s0", 1, "n:n0 n:n1"), WEFT_MODEL_OK);
    CHECK_INT(add(m, "s1", 1, "n:n2 n:n3"), WEFT_MODEL_OK);
    CHECK_INT(add(m, "s2", 1, "n:n4 n:n5"), WEFT_MODEL_OK);
    CHECK_INT(add(m, "s3", 1, "n:n6 n:n7"), WEFT_MODEL_OK);
    CHECK_INT(add(m, "s4", 2, "h:s0 h:s1"), WEFT_MODEL_OK);
    CHECK_INT(add(m, "s5", 2, "h:s2 h:s3"), WEFT_MODEL_OK);
    CHECK_INT(add(m, "s6", 3, "h:s4 h:s5"), WEFT_MODEL_OK);
    return m;
}

/* Is the whole tree as it was built? */
static void check_whole(const struct weft_model *m)
{
    CHECK(weft_model_ready(m));
    CHECK_INT(weft_model_session(m, WEFT_MODEL_JOB_TOPOLOGY), WEFT_MODEL_OK);
    CHECK_STR(weft_model_parent(m, "s0"), "s4");
    CHECK_STR(weft_model_parent(m, "s3"), "s5");
    CHECK_STR(weft_model_parent(m, "s5"), "s6");
    CHECK_STR(weft_model_parent(m, "s6"), "");
    CHECK_INT(weft_model_node_count(m, "s6"), 8);
    CHECK_INT(weft_model_root_tier(m), 4);
}

static void whole_tree(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    check_whole(m);
    CHECK(weft_model_has_node(m, "s4", "n3"));
    CHECK(!weft_model_has_node(m, "s4", "n4"));
    CHECK_STR(weft_model_lowest(m, "n5"), "s2");
    CHECK_INT(weft_model_restart(m), WEFT_MODEL_OK);
    check_whole(m);
}

/* [a] [0.6]: the plain job runs on until a topology job comes. */
static void child_deleted_first(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    CHECK_INT(weft_model_delete(m, "s0"), WEFT_MODEL_PANIC);
    CHECK(weft_model_ready(m));
    CHECK(weft_model_links(m, "s4", "s0"));
    CHECK_INT(weft_model_session(m, WEFT_MODEL_JOB_PLAIN), WEFT_MODEL_OK);
    CHECK_INT(weft_model_session(m, WEFT_MODEL_JOB_TOPOLOGY), WEFT_MODEL_PANIC);
    CHECK_CONTAINS(weft_model_text(m), "s0 is gone while s4 still lists it");
}

/* [0.6 Xa-parent]: a middle node too. */
static void middle_deleted_first(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    CHECK_INT(weft_model_delete(m, "s4"), WEFT_MODEL_PANIC);
    CHECK_STR(weft_model_parent(m, "s0"), "");
}

/* [0.6 Xa-none]: a delayed bomb. */
static void bomb_waits_for_a_job(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    CHECK_INT(weft_model_delete(m, "s0"), WEFT_MODEL_PANIC);
    CHECK_INT(weft_model_session(m, WEFT_MODEL_JOB_NONE), WEFT_MODEL_OK);
    CHECK_INT(add(m, "s2", 1, "n:n4 n:n5 n:n8"), WEFT_MODEL_PANIC); /* s4 is not on its way up */
    CHECK_INT(weft_model_session(m, WEFT_MODEL_JOB_TOPOLOGY), WEFT_MODEL_PANIC);
}

/* [a]: a restart hides it behind a placeholder. */
static void restart_survives(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    CHECK_INT(weft_model_delete(m, "s0"), WEFT_MODEL_PANIC);
    CHECK_INT(weft_model_restart(m), WEFT_MODEL_OK);
    CHECK_INT(weft_model_has(m, "s0"), 1);
    CHECK_INT(weft_model_session(m, WEFT_MODEL_JOB_TOPOLOGY), WEFT_MODEL_OK);
}

/* The object that was deleted by hand comes back: its parent finds it again. */
static void deleted_child_comes_back(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    CHECK_INT(weft_model_delete(m, "s0"), WEFT_MODEL_PANIC);
    CHECK_INT(add(m, "s0", 1, "n:n0 n:n1"), WEFT_MODEL_OK);
    check_whole(m);
}

/* [a Xa-release]: the parent lets go first. */
static void release_then_delete(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    CHECK_INT(add(m, "s4", 2, "h:s1"), WEFT_MODEL_OK);
    CHECK_INT(weft_model_delete(m, "s0"), WEFT_MODEL_OK);
    CHECK_INT(weft_model_node_count(m, "s6"), 6);
    CHECK_INT(weft_model_has(m, "s0"), 0);
}

/* [C3]: top-down teardown is alive and ready all the way; [h]: and with the last one everything
 * runs anywhere. */
static void tear_down_from_the_top(void)
{
    static const char *const order[] = {"s6", "s5", "s4", "s3", "s2", "s1", "s0"};
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    for (size_t i = 0; i < WEFT_ARRAY_LEN(order); i++) {
        const int outcome = weft_model_delete(m, order[i]);
        CHECK(outcome == WEFT_MODEL_OK || outcome == WEFT_MODEL_LOOSE);
        CHECK(weft_model_ready(m));
    }
    CHECK_INT(weft_model_root_tier(m), 1);
}

/* C3's negative control: from the leaves up. */
static void tear_down_from_the_bottom(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    CHECK_INT(weft_model_delete(m, "s0"), WEFT_MODEL_PANIC);
    CHECK_INT(weft_model_delete(m, "s1"), WEFT_MODEL_PANIC);
    CHECK_INT(weft_model_delete(m, "s4"), WEFT_MODEL_PANIC);
}

/* [h]: losing only the root loosens hard/3 alone. */
static void root_lost(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    CHECK_INT(weft_model_delete(m, "s6"), WEFT_MODEL_LOOSE);
    CHECK_INT(weft_model_root_tier(m), 3);
    CHECK_INT(weft_model_session(m, WEFT_MODEL_JOB_TOPOLOGY), WEFT_MODEL_OK);
}

/* [b]: two parents: not ready at once; plain jobs run. */
static struct weft_model *make_second_parent(void)
{
    struct weft_model *m = make_tree();
    CHECK_INT(add(m, "s9", 2, "h:s0"), WEFT_MODEL_NOT_READY);
    CHECK(!weft_model_ready(m));
    CHECK_INT(weft_model_session(m, WEFT_MODEL_JOB_PLAIN), WEFT_MODEL_OK);
    CHECK_INT(weft_model_session(m, WEFT_MODEL_JOB_TOPOLOGY), WEFT_MODEL_NOT_READY);
    return m;
}

/* [b]: dropping the child from the second parent is a clean way out. */
static void second_parent_lets_go(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_second_parent();
    CHECK_INT(add(m, "s9", 2, "n:n9"), WEFT_MODEL_OK);
    check_whole(m);
    CHECK_INT(weft_model_delete(m, "s9"), WEFT_MODEL_OK);
    check_whole(m);
}

/* [b]: the first parent lets go: the second adopts at once. */
static void first_parent_lets_go(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_second_parent();
    CHECK_INT(add(m, "s4", 2, "h:s1"), WEFT_MODEL_OK);
    CHECK_STR(weft_model_parent(m, "s0"), "s9");
    CHECK(weft_model_has_node(m, "s9", "n0"));
}

/* [0.5]: deleting the second parent tears the child from the first. */
static void second_parent_deleted(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_second_parent();
    CHECK_INT(weft_model_delete(m, "s9"), WEFT_MODEL_ORPHAN);
    CHECK(weft_model_ready(m));
    CHECK_STR(weft_model_parent(m, "s0"), "");
    CHECK_CONTAINS(weft_model_text(m), "s4 lists s0, which hangs elsewhere: its nodes are hidden");
    /* healed by a rewrite of the child's members, a new order is enough */
    CHECK_INT(weft_model_touch(m, "s0"), WEFT_MODEL_OK);
    check_whole(m);
}

/* [0.5]: a rewrite of the first parent should do too, and a restart. */
static void torn_child_heals(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_second_parent();
    CHECK_INT(weft_model_delete(m, "s9"), WEFT_MODEL_ORPHAN);
    CHECK_INT(weft_model_touch(m, "s4"), WEFT_MODEL_OK);
    check_whole(m);

    weft_auto(weft_model_free) struct weft_model *again = make_second_parent();
    CHECK_INT(weft_model_delete(again, "s9"), WEFT_MODEL_ORPHAN);
    CHECK_INT(weft_model_restart(again), WEFT_MODEL_OK);
    check_whole(again);
}

/* [b]: any member change elsewhere makes it ready again, and s9 has no nodes. */
static void ready_though_broken(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_second_parent();
    CHECK_INT(add(m, "s3", 1, "n:n6 n:n7 n:n8"), WEFT_MODEL_ORPHAN);
    CHECK(weft_model_ready(m));
    CHECK_INT(weft_model_node_count(m, "s9"), 0);
    CHECK((weft_model_flags(m, "s9") & WEFT_MODEL_FLAG_UNLINKED) != 0);
}

/* [0.4]: the retry of the failed object, or a label on it, sets nothing right. */
static void retry_does_not_help(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_second_parent();
    for (int i = 0; i < 5; i++) {
        CHECK_INT(add(m, "s9", 2, "h:s0"), WEFT_MODEL_NOT_READY);
    }
    CHECK(!weft_model_ready(m));
}

/* [b]: the first parent deleted: the child stays without until s9's members change; a label patch
 * on s9 does nothing. */
static void first_parent_deleted(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_second_parent();
    CHECK_INT(add(m, "s6", 3, "h:s5"), WEFT_MODEL_ORPHAN); /* so that s4 may go; ready again */
    CHECK_INT(weft_model_delete(m, "s4"), WEFT_MODEL_ORPHAN);
    CHECK_STR(weft_model_parent(m, "s0"), "");
    CHECK_INT(add(m, "s9", 2, "h:s0"), WEFT_MODEL_ORPHAN);
    CHECK_STR(weft_model_parent(m, "s0"), "");
    CHECK_INT(add(m, "s9", 2, "h:s0 h:s1"), WEFT_MODEL_OK);
    CHECK_STR(weft_model_parent(m, "s0"), "s9");
}

/* [b], unit test of upstream: a cycle; mending the offender mends all. */
static void cycle(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    CHECK_INT(add(m, "s4", 2, "h:s0 h:s1 h:s6"), WEFT_MODEL_NOT_READY);
    CHECK(!weft_model_ready(m));
    CHECK_INT(add(m, "s4", 2, "h:s0 h:s1"), WEFT_MODEL_OK);
    check_whole(m);
}

static void own_child(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    CHECK_INT(add(m, "s4", 2, "h:s0 h:s1 h:s4"), WEFT_MODEL_NOT_READY);
}

/* [c]: claim, then release: not ready between, right at the end. */
static void claim_first(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    CHECK_INT(add(m, "s5", 2, "h:s1 h:s2 h:s3"), WEFT_MODEL_NOT_READY);
    CHECK_INT(add(m, "s4", 2, "h:s0"), WEFT_MODEL_OK);
    CHECK_STR(weft_model_parent(m, "s1"), "s5");
    CHECK_INT(weft_model_node_count(m, "s5"), 6);
}

/* [c] [C4]: release, then claim: never. */
static void release_first(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    CHECK_INT(add(m, "s4", 2, "h:s0"), WEFT_MODEL_OK);
    CHECK_INT(weft_model_node_count(m, "s6"), 6);
    CHECK_INT(add(m, "s5", 2, "h:s1 h:s2 h:s3"), WEFT_MODEL_OK);
    CHECK_INT(weft_model_node_count(m, "s6"), 8);
}

/* [c]: two leaves swapped the naive way, one final write each: the first claims what the second
 * still has. */
static void leaves_swapped(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    CHECK_INT(add(m, "s4", 2, "h:s0 h:s2"), WEFT_MODEL_NOT_READY);
    CHECK_INT(add(m, "s5", 2, "h:s1 h:s3"), WEFT_MODEL_OK);
    CHECK_STR(weft_model_parent(m, "s2"), "s4");
    CHECK_STR(weft_model_parent(m, "s1"), "s5");
}

/* [g]: two nodes swapped the naive way: for a moment one is in two leaves. */
static void nodes_swapped(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    CHECK_INT(add(m, "s0", 1, "n:n1 n:n2"), WEFT_MODEL_DOUBLE);
    CHECK_INT(add(m, "s1", 1, "n:n0 n:n3"), WEFT_MODEL_OK);
}

/* [g]: a node in two HyperNodes: both hold it, no warning, ready. */
static void node_twice(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    CHECK_INT(add(m, "s8", 1, "n:n0 n:n9"), WEFT_MODEL_DOUBLE);
    CHECK(weft_model_ready(m));
    CHECK(weft_model_has_node(m, "s0", "n0") && weft_model_has_node(m, "s8", "n0"));
    CHECK((weft_model_flags(m, "s0") & WEFT_MODEL_FLAG_DOUBLE) != 0);
    CHECK_INT(weft_model_delete(m, "s8"), WEFT_MODEL_OK);
    CHECK_INT(weft_model_flags(m, "s0"), 0);
    /* in two tiers is another matter: nothing is random there */
    CHECK_INT(add(m, "s9", 2, "n:n0"), WEFT_MODEL_OK);
}

/* [i]: tier 0, created after its parent, is never in the tier index. */
static void tier_zero(void)
{
    weft_auto(weft_model_free) struct weft_model *m = weft_model_new(true);
    CHECK_INT(add(m, "p", 1, "h:z"), WEFT_MODEL_OK);
    CHECK_INT(add(m, "z", 0, "n:n0"), WEFT_MODEL_TIER);
    CHECK(!weft_model_indexed(m, "z"));
    CHECK_INT(add(m, "y", 0, "n:n1"), WEFT_MODEL_TIER);
    CHECK(weft_model_indexed(m, "y")); /* without a placeholder before it */
}

/* "tier order parent > child: not enforced" (volcano.md 2.3), but other rules count on it. */
static void tier_order(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    CHECK_INT(add(m, "s4", 1, "h:s0 h:s1"), WEFT_MODEL_TIER);
    CHECK(weft_model_ready(m));
    CHECK_STR(weft_model_parent(m, "s0"), "s4");
}

/* [extra]: parent before child: a placeholder, no crash; it becomes real when the object comes. */
static void parent_first(void)
{
    weft_auto(weft_model_free) struct weft_model *m = weft_model_new(true);
    CHECK_INT(add(m, "s4", 2, "h:s0"), WEFT_MODEL_OK);
    CHECK_INT(weft_model_has(m, "s0"), 1);
    CHECK_INT(weft_model_session(m, WEFT_MODEL_JOB_TOPOLOGY), WEFT_MODEL_OK);
    CHECK_INT(add(m, "s0", 1, "n:n0"), WEFT_MODEL_OK);
    CHECK_INT(weft_model_has(m, "s0"), 2);
    CHECK(weft_model_indexed(m, "s0"));
    CHECK(weft_model_has_node(m, "s4", "n0"));
}

/* [C1]: any order of creation ends with the same tree, never not ready. */
static void any_order(void)
{
    static const struct {
        const char *name;
        int64_t tier;
        const char *members;
    } objects[] = {{"s0", 1, "n:n0 n:n1"}, {"s1", 1, "n:n2 n:n3"}, {"s2", 1, "n:n4 n:n5"},
                   {"s3", 1, "n:n6 n:n7"}, {"s4", 2, "h:s0 h:s1"}, {"s5", 2, "h:s2 h:s3"},
                   {"s6", 3, "h:s4 h:s5"}};
    uint64_t rng = 3;
    for (int run = 0; run < 50; run++) {
        weft_auto(weft_model_free) struct weft_model *m = weft_model_new(true);
        size_t order[] = {0, 1, 2, 3, 4, 5, 6};
        for (size_t i = WEFT_ARRAY_LEN(order); i > 1; i--) {
            const size_t k = weft_random_below(&rng, i);
            const size_t swap = order[k];
            order[k] = order[i - 1];
            order[i - 1] = swap;
        }
        for (size_t i = 0; i < WEFT_ARRAY_LEN(order); i++) {
            const size_t o = order[i];
            CHECK(add(m, objects[o].name, objects[o].tier, objects[o].members) < WEFT_MODEL_DOUBLE);
        }
        check_whole(m);
    }
}

/* [d]: a node whose lowest HyperNode is of a higher tier than others' is in no score. */
static void mixed_depth(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    CHECK_INT(add(m, "s7", 2, "n:n8"), WEFT_MODEL_OK);
    CHECK_STR(weft_model_lowest(m, "n8"), "");
    CHECK_STR(weft_model_lowest(m, "n0"), "s0");
    CHECK_INT(add(m, "s8", 1, "n:n8"), WEFT_MODEL_OK); /* the padding cures it */
    CHECK_STR(weft_model_lowest(m, "n8"), "s8");
}

/* [C10]: 422: an empty list, tier -1, upper case. */
static void refused(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    CHECK_INT(add(m, "s0", 1, ""), WEFT_MODEL_REFUSED);
    CHECK_INT(add(m, "x", -1, "n:n8"), WEFT_MODEL_REFUSED);
    CHECK_INT(add(m, "X", 1, "n:n8"), WEFT_MODEL_REFUSED);
    CHECK_INT(add(m, "x", 1, "n:N8"), WEFT_MODEL_REFUSED);
    CHECK_INT(add(m, "x", 1, "re:"), WEFT_MODEL_REFUSED);
    CHECK_INT(weft_model_delete(m, "x"), WEFT_MODEL_REFUSED); /* 404 */
    CHECK_INT(weft_model_touch(m, "x"), WEFT_MODEL_REFUSED);
    check_whole(m);
    /* [C10]: these are 201 */
    CHECK_INT(add(m, "x", 1, "none:"), WEFT_MODEL_OK);
    CHECK_INT(add(m, "y", 2, "hre:.*"), WEFT_MODEL_OK);
}

/* [j] [0.12]: a changed tier rebuilds nothing, and the index follows. */
static void tier_changes_in_place(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    CHECK_INT(add(m, "s6", 5, "h:s4 h:s5"), WEFT_MODEL_OK);
    CHECK_INT(weft_model_root_tier(m), 6);
    CHECK_STR(weft_model_parent(m, "s4"), "s6");
    CHECK_INT(add(m, "s6", 3, "h:s4 h:s5"), WEFT_MODEL_LOOSE);
    check_whole(m);
}

/* [j] [0.12]: an object with a pattern is rebuilt by any touch, which also sets ready. */
static void pattern_rebuilds(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_second_parent();
    CHECK_INT(add(m, "r", 1, "re:^a"), WEFT_MODEL_ORPHAN);
    weft_auto(weft_model_free) struct weft_model *again = make_tree();
    CHECK_INT(add(again, "r", 1, "re:^a"), WEFT_MODEL_OK);
    CHECK_INT(add(again, "s9", 2, "h:s0"), WEFT_MODEL_NOT_READY);
    CHECK_INT(add(again, "r", 1, "re:^a"), WEFT_MODEL_ORPHAN);
    CHECK(weft_model_ready(again));
}

/* [C2] [C5]: a deleted middle node's leaves hang at the root; a moved node's ancestors follow. */
static void others_stay_right(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    CHECK_INT(add(m, "s6", 3, "h:s5"), WEFT_MODEL_OK);
    CHECK_INT(weft_model_delete(m, "s4"), WEFT_MODEL_OK);
    CHECK_STR(weft_model_parent(m, "s0"), "");
    CHECK_INT(weft_model_node_count(m, "s0"), 2);
    CHECK_INT(add(m, "s0", 1, "n:n1"), WEFT_MODEL_OK);
    CHECK_INT(add(m, "s2", 1, "n:n0 n:n4 n:n5"), WEFT_MODEL_OK);
    CHECK(weft_model_has_node(m, "s6", "n0"));
}

/* A delete that fails inside (its parent cannot be rebuilt) is tried again until it goes through.
 */
static void delete_is_retried(void)
{
    weft_auto(weft_model_free) struct weft_model *m = make_tree();
    CHECK_INT(add(m, "x", 1, "n:n8"), WEFT_MODEL_OK);
    CHECK_INT(add(m, "s9", 2, "h:s0 h:x"), WEFT_MODEL_NOT_READY);
    CHECK_INT(weft_model_delete(m, "x"), WEFT_MODEL_NOT_READY);
    CHECK_INT(weft_model_has(m, "x"), 2);
    CHECK_INT(weft_model_delete(m, "x"), WEFT_MODEL_REFUSED); /* the API server has it no more */
    CHECK_INT(add(m, "s9", 2, "h:x"), WEFT_MODEL_PANIC);
    CHECK_INT(weft_model_has(m, "x"), 0);
}

/* A set that lists what is not there stands for the worst: deleted under its parent. */
static void load_assumes_the_worst(void)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    hn_put(&set, "s4", 2, "h:s0 h:s1");
    hn_put(&set, "s1", 1, "n:n2");
    weft_auto(weft_model_free) struct weft_model *m = weft_model_new(false);
    CHECK_INT(weft_model_load(m, &set), WEFT_MODEL_PANIC);
    CHECK_INT(weft_model_has(m, "s0"), 0);
    CHECK_INT(weft_model_restart(m), WEFT_MODEL_OK);
}

static void names_of_outcomes(void)
{
    for (int i = 0; i < WEFT_MODEL_OUTCOME_COUNT; i++) {
        CHECK(weft_model_outcome_name((enum weft_model_outcome)i) != NULL);
    }
    CHECK_STR(weft_model_outcome_name(WEFT_MODEL_NOT_READY), "not ready");
}

/* Every allocation fails once: never a crash, never a leak. */
static void torture(void)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    hn_put(&set, "s0", 1, "n:n0 n:n1");
    hn_put(&set, "s1", 1, "n:n2 n:n3");
    hn_put(&set, "s4", 2, "h:s0 h:s1 h:s8");
    weft_auto(weft_hypernode_done) struct weft_hypernode moved = hn_make("s4", 2, "h:s1");
    int rc = -1;
    uint64_t n = 1;
    for (; rc < 0 && n < 2000; n++) {
        (void)weft_mem_fail_after(n);
        weft_auto(weft_model_free) struct weft_model *m = weft_model_new(true);
        rc = m != NULL ? weft_model_load(m, &set) : -1;
        rc = rc >= 0 ? weft_model_apply(m, &moved) : rc;
        rc = rc >= 0 ? weft_model_delete(m, "s0") : rc;
        rc = rc >= 0 ? weft_model_restart(m) : rc;
        (void)weft_mem_fail_after(0);
    }
    CHECK_INT(rc, WEFT_MODEL_OK);
    CHECK(n > 50);
}

WEFT_SUITE(
    hypernode_model, {"whole tree", whole_tree}, {"child deleted first", child_deleted_first},
    {"middle deleted first", middle_deleted_first}, {"bomb waits for a job", bomb_waits_for_a_job},
    {"restart survives", restart_survives}, {"deleted child comes back", deleted_child_comes_back},
    {"release then delete", release_then_delete},
    {"tear down from the top", tear_down_from_the_top},
    {"tear down from the bottom", tear_down_from_the_bottom}, {"root lost", root_lost},
    {"second parent lets go", second_parent_lets_go},
    {"first parent lets go", first_parent_lets_go},
    {"second parent deleted", second_parent_deleted}, {"torn child heals", torn_child_heals},
    {"ready though broken", ready_though_broken}, {"retry does not help", retry_does_not_help},
    {"first parent deleted", first_parent_deleted}, {"cycle", cycle}, {"own child", own_child},
    {"claim first", claim_first}, {"release first", release_first},
    {"leaves swapped", leaves_swapped}, {"nodes swapped", nodes_swapped},
    {"node twice", node_twice}, {"tier zero", tier_zero}, {"tier order", tier_order},
    {"parent first", parent_first}, {"any order", any_order}, {"mixed depth", mixed_depth},
    {"refused", refused}, {"tier changes in place", tier_changes_in_place},
    {"pattern rebuilds", pattern_rebuilds}, {"others stay right", others_stay_right},
    {"delete is retried", delete_is_retried}, {"load assumes the worst", load_assumes_the_worst},
    {"names of outcomes", names_of_outcomes}, {"torture", torture})
