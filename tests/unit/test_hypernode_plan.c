/* SPDX-License-Identifier: Apache-2.0 */
/* Plans worked out by hand: which writes, in which order, with which preconditions. */
#include <errno.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/hypernode/model.h"
#include "pkg/hypernode/plan.h"
#include "tests/unit/hypernode_util.h"
#include "tests/unit/unit.h"

static const struct weft_plan_options options = {.instance = "test", .check = true};

/* A set from lines "name tier member member…", "!" before the name for another owner's. */
static void fill(struct weft_hypernode_set *set, const char *const *lines)
{
    for (; *lines != NULL; lines++) {
        char name[80] = "";
        int tier = 0;
        int at = 0;
        const bool foreign = (*lines)[0] == '!';
        CHECK_INT(sscanf(*lines + foreign, "%79s %d %n", name, &tier, &at), 2);
        (foreign ? hn_put_foreign : hn_put)(set, name, tier, *lines + foreign + at);
    }
}

#define SET(name, ...)                                                                             \
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set name = {0};                       \
    fill(&name, (const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

/* "kind name member member\n" a step. */
static char *dump_steps(const struct weft_plan *plan)
{
    weft_auto(weft_buf_done) struct weft_buf buf = {0};
    weft_buf_init(&buf, 1U << 20);
    (void)weft_buf_puts(&buf, "");
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct weft_step *s = &plan->steps[i];
        (void)weft_buf_printf(&buf, "%s %s", weft_step_kind_name(s->kind), s->object.name);
        for (size_t k = 0; k < s->object.member_count && s->kind != WEFT_STEP_DELETE; k++) {
            (void)weft_buf_printf(&buf, " %s", s->object.members[k].name);
        }
        (void)weft_buf_puts(&buf, "\n");
    }
    return weft_buf_steal(&buf);
}

/* "kind subject\n" a finding. */
static char *dump_findings(const struct weft_plan *plan)
{
    weft_auto(weft_buf_done) struct weft_buf buf = {0};
    weft_buf_init(&buf, 1U << 20);
    (void)weft_buf_puts(&buf, "");
    for (size_t i = 0; i < plan->finding_count; i++) {
        (void)weft_buf_printf(&buf, "%s %s\n", plan->findings[i].kind, plan->findings[i].subject);
    }
    return weft_buf_steal(&buf);
}

static void expect(const struct weft_hypernode_set *current,
                   const struct weft_hypernode_set *desired, const char *steps,
                   const char *findings)
{
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    struct weft_error err = {0};
    if (!CHECK_INT(weft_plan_build(current, desired, &options, &plan, &err), 0)) {
        (void)fprintf(stderr, "%s\n", err.message);
        return;
    }
    weft_autofree char *got = dump_steps(&plan);
    weft_autofree char *said = dump_findings(&plan);
    CHECK_STR(got, steps);
    CHECK_STR(said, findings);
}

#define TREE                                                                                       \
    "a 1 n:n1 n:n2", "b 1 n:n3 n:n4", "c 1 n:n5 n:n6", "x 2 h:a h:b", "y 2 h:c", "top 3 h:x h:y"

static void first_install(void)
{
    SET(none);
    SET(tree, TREE);
    expect(&none, &tree,
           "create a n1 n2\ncreate b n3 n4\ncreate c n5 n6\ncreate x a b\ncreate y c\n"
           "create top x y\n",
           "");
    expect(&tree, &tree, "", "");
    expect(&tree, &none, "delete top\ndelete x\ndelete y\ndelete a\ndelete b\ndelete c\n", "");
}

/* The promise of the project: 2 writes a move, 1 for a node that comes or goes. */
static void few_writes(void)
{
    SET(tree, TREE);
    SET(moved, "a 1 n:n1", "b 1 n:n2 n:n3 n:n4", "c 1 n:n5 n:n6", "x 2 h:a h:b", "y 2 h:c",
        "top 3 h:x h:y");
    expect(&tree, &moved, "release a n1\nclaim b n2 n3 n4\n", "");
    SET(gone, "a 1 n:n1", "b 1 n:n3 n:n4", "c 1 n:n5 n:n6", "x 2 h:a h:b", "y 2 h:c",
        "top 3 h:x h:y");
    expect(&tree, &gone, "claim a n1\n", "");
    expect(&gone, &tree, "claim a n1 n2\n", "");
}

/* Two nodes change places: the second release may already take what the first gave. */
static void nodes_swapped(void)
{
    SET(tree, TREE);
    SET(swapped, "a 1 n:n1 n:n3", "b 1 n:n2 n:n4", "c 1 n:n5 n:n6", "x 2 h:a h:b", "y 2 h:c",
        "top 3 h:x h:y");
    expect(&tree, &swapped, "release a n1\nrelease b n2 n4\nclaim a n1 n3\n", "");
}

static void group_moved(void)
{
    SET(tree, TREE);
    SET(moved, "a 1 n:n1 n:n2", "b 1 n:n3 n:n4", "c 1 n:n5 n:n6", "x 2 h:a", "y 2 h:b h:c",
        "top 3 h:x h:y");
    expect(&tree, &moved, "release x a\nclaim y b c\n", "");
}

/* The last member moves away: the object goes, its parent first. */
static void group_emptied(void)
{
    SET(tree, TREE);
    SET(merged, "a 1 n:n1 n:n2", "b 1 n:n3 n:n4 n:n5 n:n6", "x 2 h:a h:b", "top 3 h:x");
    expect(&tree, &merged, "release top x\ndelete y\ndelete c\nclaim b n3 n4 n5 n6\n", "");
}

/* Two singletons swap: neither may be empty, so both are made anew, and so are their parents, whose
 * only children they are, up to the top. */
static void singletons_swapped(void)
{
    SET(tree, "a 1 n:n1", "b 1 n:n2", "x 2 h:a", "y 2 h:b", "top 3 h:x h:y");
    SET(swapped, "a 1 n:n2", "b 1 n:n1", "x 2 h:a", "y 2 h:b", "top 3 h:x h:y");
    expect(&tree, &swapped,
           "delete top\ndelete x\ndelete y\ndelete a\ndelete b\n"
           "create a n2\ncreate b n1\ncreate x a\ncreate y b\ncreate top x y\n",
           "");
}

/* If one of them has a node to spare, three writes do: the release of a takes what b let go. */
static void singleton_swapped_with_group(void)
{
    SET(tree, "a 1 n:n1", "b 1 n:n2 n:n9", "x 2 h:a h:b");
    SET(swapped, "a 1 n:n2", "b 1 n:n1 n:n9", "x 2 h:a h:b");
    expect(&tree, &swapped, "release b n9\nrelease a n2\nclaim b n1 n9\n", "");
}

/* n2 is deleted, n1 and n3 change places: until n3 comes, n2 keeps a from being empty. */
static void deleted_node_holds_the_place(void)
{
    SET(tree, "a 1 n:n1 n:n2", "b 1 n:n3 n:n4", "x 2 h:a h:b");
    SET(after, "a 1 n:n3", "b 1 n:n1 n:n4", "x 2 h:a h:b");
    expect(&tree, &after, "release a n2\nrelease b n1 n4\nclaim a n3\n", "");
}

/* a's only node leaves and two come: it lets go when both are free, also where one is already. */
static void release_waits_for_what_comes(void)
{
    SET(tree, "a 1 n:n1", "b 1 n:n2 n:n3", "c 1 n:n4 n:n5", "d 1 n:n6", "x 2 h:a h:b h:c h:d");
    SET(half, "a 1 n:n1", "b 1 n:n3", "c 1 n:n4 n:n5", "d 1 n:n6", "x 2 h:a h:b h:c h:d");
    SET(after, "a 1 n:n2 n:n4", "b 1 n:n3", "c 1 n:n5", "d 1 n:n1 n:n6", "x 2 h:a h:b h:c h:d");
    expect(&tree, &after, "release b n3\nrelease c n5\nrelease a n2 n4\nclaim d n1 n6\n", "");
    expect(&half, &after, "release c n5\nrelease a n2 n4\nclaim d n1 n6\n", "");
}

/* A renumbered plan: objects change tier by going and coming back. */
static void tier_changed(void)
{
    SET(before, "a 1 n:n1", "x 2 h:a");
    SET(after, "new 1 n:n1", "a 2 h:new", "x 3 h:a");
    expect(&before, &after, "delete x\ndelete a\ncreate new n1\ncreate a new\ncreate x a\n", "");
}

/* A parent of ours lost its child to somebody's kubectl delete: before anything else it comes
 * back. */
static void deleted_by_hand(void)
{
    SET(broken, "a 1 n:n1 n:n2", "c 1 n:n5 n:n6", "x 2 h:a h:b", "y 2 h:c", "top 3 h:x h:y");
    SET(wanted, "a 1 n:n1", "b 1 n:n2 n:n3 n:n4", "c 1 n:n5 n:n6", "x 2 h:a h:b", "y 2 h:c",
        "top 3 h:x h:y");
    /* n2 is still a's, so b gets it at the end */
    expect(&broken, &wanted, "create b n3 n4\nrelease a n1\nclaim b n2 n3 n4\n", "");
}

static void subtree_deleted_by_hand(void)
{
    SET(broken, "c 1 n:n5 n:n6", "y 2 h:c", "top 3 h:x h:y");
    SET(wanted, TREE);
    expect(&broken, &wanted, "create a n1 n2\ncreate b n3 n4\ncreate x a b\n", "");
}

/* Deleted by hand and no longer wanted: the parent lets go. */
static void deleted_by_hand_for_good(void)
{
    SET(broken, "a 1 n:n1 n:n2", "x 2 h:a h:b");
    SET(wanted, "a 1 n:n1 n:n2", "x 2 h:a");
    expect(&broken, &wanted, "release x a\n", "");
}

/* What is missing cannot come back yet: all its nodes are elsewhere. Its parent drops it first. */
static void deleted_by_hand_and_robbed(void)
{
    SET(broken, "a 1 n:n1 n:n2", "x 2 h:a h:b");
    SET(wanted, "a 1 n:n1", "b 1 n:n2", "x 2 h:a h:b");
    expect(&broken, &wanted, "release x a\nrelease a n1\ncreate b n2\nclaim x a b\n", "");
}

/* Somebody made a child have two parents: the wrong one lets go, by an update. */
static void second_parent_by_hand(void)
{
    SET(broken, "a 1 n:n1", "b 1 n:n2", "x 2 h:a", "y 2 h:a h:b");
    SET(wanted, "a 1 n:n1", "b 1 n:n2", "x 2 h:a", "y 2 h:b");
    expect(&broken, &wanted, "release y b\n", "");
    /* and if the wrong one is to go altogether, it lets go before it is deleted */
    SET(stray, "a 1 n:n1", "b 1 n:n2", "x 2 h:a h:b", "z 2 h:a n:n9");
    SET(clean, "a 1 n:n1", "b 1 n:n2", "x 2 h:a h:b");
    expect(&stray, &clean, "release z n9\ndelete z\n", "");
    /* if the child is all it has, the right one lets go instead, and claims it again */
    SET(only, "a 1 n:n1", "b 1 n:n2", "x 2 h:a h:b", "z 2 h:a");
    expect(&only, &clean, "release x b\ndelete z\nclaim x a b\n", "");
}

static void cycle_by_hand(void)
{
    SET(broken, "a 1 n:n1", "x 2 h:a h:y", "y 3 h:x");
    SET(wanted, "a 1 n:n1", "x 2 h:a", "y 3 h:x");
    expect(&broken, &wanted, "claim x a\n", "");
    SET(strays, "p 1 h:q n:n1", "q 2 h:p");
    SET(none);
    expect(&strays, &none, "release p n1\ndelete q\ndelete p\n", "");
    SET(knot, "p 1 h:q", "q 2 h:p");
    expect(&knot, &none, "", "undeletable p\nundeletable q\n");
}

/* Hand edits are put back: a pattern, a foreign child, a wrong label. */
static void hand_edits(void)
{
    SET(edited, "a 1 n:n1 re:^n9$", "x 2 h:a");
    SET(wanted, "a 1 n:n1", "x 2 h:a");
    expect(&edited, &wanted, "claim a n1\n", "");
    /* no members at all: an old CRD, or no webhook, let that pass */
    SET(bare, "a 1", "b 1", "x 2 h:a");
    expect(&bare, &wanted, "delete b\nclaim a n1\n", "");
    SET(named, "a 1 n:n1", "x 2 h:a");
    CHECK_INT(weft_hypernode_set_text(&named.items[0].tier_name, "other"), 0);
    CHECK_INT(weft_hypernode_set_text(&named.items[1].identity, "gone"), 0);
    expect(&named, &wanted, "claim a n1\nclaim x a\n", "");
}

/* A CRD before v1.14 drops tierName: that alone must not loop. */
static void tier_name_dropped(void)
{
    SET(pruned, "a 1 n:n1");
    SET(wanted, "a 1 n:n1");
    CHECK_INT(weft_hypernode_set_text(&pruned.items[0].tier_name, ""), 0);
    expect(&pruned, &wanted, "claim a n1\n", "");
    const struct weft_plan_options old = {
        .instance = "test", .check = true, .ignore_tier_name = true};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    CHECK_INT(weft_plan_build(&pruned, &wanted, &old, &plan, NULL), 0);
    CHECK_INT(plan.step_count, 0);
}

/* ---- others' objects ---- */

/* A foreign object without a bearing on ours changes nothing and is never written. */
static void foreign_apart(void)
{
    SET(now, "!rack-1 1 n:m1", "!pod 2 h:rack-1", TREE);
    SET(wanted, TREE);
    expect(&now, &wanted, "", "");
    SET(none);
    expect(&now, &none, "delete top\ndelete x\ndelete y\ndelete a\ndelete b\ndelete c\n", "");
}

/* It lists our node: the node is not claimed; where it is already, it stays. */
static void foreign_has_node(void)
{
    SET(now, "!rack-1 1 n:n1 n:n4", "a 1 n:n1 n:n2");
    SET(wanted, "a 1 n:n1 n:n2", "b 1 n:n3 n:n4");
    expect(&now, &wanted, "create b n3\n", "foreign-node n1\nforeign-node n4\n");
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    CHECK_INT(weft_plan_build(&now, &wanted, &options, &plan, NULL), 0);
    CHECK(weft_plan_holds(&plan, "n4"));
    CHECK(!weft_plan_holds(&plan, "n1"));
    CHECK(!weft_plan_holds(&plan, "n3"));
    CHECK_INT(plan.held_node_count, 1);
}

/* All of a cluster is somebody else's: nothing is written at all. */
static void foreign_has_all(void)
{
    SET(now, "!r1 1 n:n1 n:n2 n:n3", "!r2 1 n:n4 n:n5 n:n6");
    SET(wanted, TREE);
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    CHECK_INT(weft_plan_build(&now, &wanted, &options, &plan, NULL), 0);
    CHECK_INT(plan.step_count, 0);
    CHECK_INT(plan.held_node_count, 6);
    CHECK_INT(plan.target.count, 0);
}

/* It lists our child: two parents would stop the scheduler, so our parent lets go. */
static void foreign_has_child(void)
{
    SET(now, "!pod 2 h:b", TREE);
    SET(wanted, TREE);
    expect(&now, &wanted, "claim x a\n", "foreign-child b\n");
    SET(after, "!pod 2 h:b", "a 1 n:n1 n:n2", "b 1 n:n3 n:n4", "c 1 n:n5 n:n6", "x 2 h:a",
        "y 2 h:c", "top 3 h:x h:y");
    expect(&after, &wanted, "", "foreign-child b\n");
    /* a root of ours under a foreign object has one parent: fine */
    SET(above, "!zone 9 h:top", TREE);
    expect(&above, &wanted, "", "foreign-parent top\n");
}

/* What a foreign object lists is never deleted; what is wanted of it elsewhere it lets go. */
static void foreign_keeps(void)
{
    SET(now, "!pod 2 h:b", "a 1 n:n1 n:n2", "b 1 n:n3 n:n4");
    SET(wanted, "a 1 n:n1 n:n2 n:n3");
    expect(&now, &wanted, "release b n4\nclaim a n1 n2 n3\n", "kept b\n");
    /* if it would be empty, it keeps all, and the claimer goes without */
    SET(all, "a 1 n:n1 n:n2 n:n3 n:n4");
    expect(&now, &all, "", "kept b\n");
    /* a pattern on it, not ours to write, stays too */
    SET(odd, "!pod 2 h:b", "a 1 n:n1", "b 1 n:n3 n:n4 re:^n5$");
    SET(some, "a 1 n:n1 n:n3");
    expect(&odd, &some, "release b ^n5$ n4\nclaim a n1 n3\n", "kept b\n");
    SET(still, "!pod 2 h:b", "b 1 re:^n5$ none:");
    SET(nothing);
    expect(&still, &nothing, "", "kept b\n");
    /* with a tree below it */
    SET(deep, "!zone 9 h:y", "c 1 n:n5", "y 2 h:c");
    SET(none);
    expect(&deep, &none, "", "kept c\nkept y\n");
}

/* Our name is another's: neither that object nor what belongs below it is touched. */
static void name_taken(void)
{
    SET(now, "!x 2 n:m1");
    SET(wanted, TREE);
    expect(&now, &wanted, "create c n5 n6\ncreate y c\ncreate top y\n", "name-taken x\n");
    /* what of the subtree exists already stays as it is */
    SET(grown, "!x 2 n:m1", "a 1 n:n1", "c 1 n:n5 n:n6", "y 2 h:c", "top 3 h:y");
    expect(&grown, &wanted, "", "kept a\nname-taken x\n");
}

/* Another instance of weft is another owner. */
static void other_instance(void)
{
    SET(now, "a 1 n:n1");
    CHECK_INT(weft_hypernode_set_text(&now.items[0].instance, "blue"), 0);
    SET(wanted, "a 1 n:n1");
    expect(&now, &wanted, "", "name-taken a\n");
    SET(none);
    expect(&now, &none, "", "");
}

/* A wanted object that could only be replaced, but is listed by another's, stays as it is. */
static void irreplaceable(void)
{
    SET(now, "!zone 9 h:a", "a 1 n:n1", "b 1 n:n2");
    SET(wanted, "a 1 n:n2", "b 1 n:n1");
    /* b shall have what a cannot give, so nothing is left of it */
    expect(&now, &wanted, "delete b\n", "foreign-parent a\nkept a\n");
}

static void terminating(void)
{
    SET(now, TREE);
    SET(wanted, TREE);
    now.items[1].terminating = true;
    expect(&now, &wanted, "", "terminating b\n");
}

/* ---- preconditions ---- */

static void set_version(struct weft_hypernode_set *set, size_t item, const char *uid,
                        const char *version)
{
    CHECK_INT(weft_hypernode_set_text(&set->items[item].uid, uid), 0);
    CHECK_INT(weft_hypernode_set_text(&set->items[item].resource_version, version), 0);
}

static void preconditions(void)
{
    /* d goes for good; a can have its node only then, and would be empty before */
    SET(tree, "a 1 n:n1", "b 1 n:n2", "d 1 n:n9", "x 2 h:a h:b h:d");
    SET(after, "a 1 n:n9", "b 1 n:n1 n:n2", "x 2 h:a h:b");
    static const char *const uids[] = {"ua", "ub", "ud", "ux"};
    static const char *const versions[] = {"1", "2", "3", "4"};
    for (size_t i = 0; i < tree.count; i++) {
        set_version(&tree, i, uids[i], versions[i]);
    }
    static const struct {
        const char *uid;
        const char *version;
        size_t previous;
    } want[] = {{"ux", "4", WEFT_STEP_NONE}, {"ua", "1", WEFT_STEP_NONE},
                {"ud", "3", WEFT_STEP_NONE}, {"", "", 1},
                {"ub", "2", WEFT_STEP_NONE}, {"ux", "", 0}};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    CHECK_INT(weft_plan_build(&tree, &after, &options, &plan, NULL), 0);
    weft_autofree char *steps = dump_steps(&plan);
    CHECK_STR(steps, "release x b\ndelete a\ndelete d\ncreate a n9\nclaim b n1 n2\nclaim x a b\n");
    for (size_t i = 0; i < plan.step_count && i < WEFT_ARRAY_LEN(want); i++) {
        CHECK_STR(plan.steps[i].object.uid, want[i].uid);
        CHECK_STR(plan.steps[i].object.resource_version, want[i].version);
        CHECK(plan.steps[i].previous == want[i].previous);
    }
}

/* ---- refusals ---- */

static void expect_refused(const struct weft_hypernode_set *desired, const char *text)
{
    SET(none);
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    struct weft_error err = {0};
    CHECK_INT(weft_plan_build(&none, desired, &options, &plan, &err), -EINVAL);
    CHECK_CONTAINS(err.message, text);
}

static void bad_wishes(void)
{
    SET(two, "a 1 n:n1", "x 2 h:a", "y 2 h:a");
    expect_refused(&two, "shares with another child a");
    SET(twice, "a 1 n:n1", "b 1 n:n1");
    expect_refused(&twice, "shares with another node n1");
    SET(missing, "x 2 h:a");
    expect_refused(&missing, "not wanted: a");
    SET(order, "a 2 n:n1", "x 2 h:a");
    expect_refused(&order, "tier is not above that of child a");
    SET(zero, "a 0 n:n1");
    expect_refused(&zero, "tier below 1");
    SET(empty, "a 1");
    expect_refused(&empty, "no members");
    SET(pattern, "a 1 re:^n1$");
    expect_refused(&pattern, "no exactMatch");
    SET(foreign, "!a 1 n:n1");
    expect_refused(&foreign, "not labelled");
}

/* The check must be able to say no: the right steps in the wrong order. */
static void check_refuses(void)
{
    SET(tree, TREE);
    SET(moved, "a 1 n:n1 n:n2", "b 1 n:n3 n:n4", "c 1 n:n5 n:n6", "x 2 h:a", "y 2 h:b h:c",
        "top 3 h:x h:y");
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    struct weft_error err = {0};
    CHECK_INT(weft_plan_build(&tree, &moved, &options, &plan, &err), 0);
    CHECK_INT(weft_plan_check(&tree, &plan, &err), 0);
    const struct weft_step first = plan.steps[0];
    plan.steps[0] = plan.steps[1];
    plan.steps[1] = first;
    CHECK_INT(weft_plan_check(&tree, &plan, &err), -EPROTO);
    CHECK_CONTAINS(err.message, "step 1 of 2 (claim y)");
    CHECK_CONTAINS(err.message, "topology jobs wait");

    SET(none);
    weft_auto(weft_plan_done) struct weft_plan down = {0};
    CHECK_INT(weft_plan_build(&tree, &none, &options, &down, &err), 0);
    const struct weft_step top = down.steps[0];
    down.steps[0] = down.steps[5];
    down.steps[5] = top;
    CHECK_INT(weft_plan_check(&tree, &down, &err), -EPROTO);
    CHECK_CONTAINS(err.message, "c is gone while y still lists it");
}

static void hashes(void)
{
    SET(tree, TREE);
    SET(none);
    weft_auto(weft_plan_done) struct weft_plan up = {0};
    weft_auto(weft_plan_done) struct weft_plan again = {0};
    weft_auto(weft_plan_done) struct weft_plan down = {0};
    weft_auto(weft_plan_done) struct weft_plan nothing = {0};
    CHECK_INT(weft_plan_build(&none, &tree, &options, &up, NULL), 0);
    CHECK_INT(weft_plan_build(&none, &tree, &options, &again, NULL), 0);
    CHECK_INT(weft_plan_build(&tree, &none, &options, &down, NULL), 0);
    CHECK_INT(weft_plan_build(&tree, &tree, &options, &nothing, NULL), 0);
    CHECK(weft_plan_hash(&up) == weft_plan_hash(&again));
    CHECK(weft_plan_hash(&up) != weft_plan_hash(&down));
    CHECK(weft_plan_hash(&nothing) == 0 && weft_plan_hash(&up) != 0);
}

/* Every allocation fails once: an error, no crash, no leak, *ret_plan untouched. */
static void torture(void)
{
    SET(before, "!zone 9 h:c", "!rack 1 n:n7", TREE);
    SET(after, "a 1 n:n3", "b 1 n:n1 n:n7", "x 2 h:b", "y 2 h:a", "top 3 h:x h:y");
    int rc = -ENOMEM;
    uint64_t n = 1;
    for (; rc == -ENOMEM && n < 5000; n++) {
        weft_auto(weft_plan_done) struct weft_plan plan = {0};
        struct weft_error err = {0};
        (void)weft_mem_fail_after(n);
        rc = weft_plan_build(&before, &after, &options, &plan, &err);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || plan.steps == NULL);
    }
    CHECK_INT(rc, 0);
    CHECK(n > 100);
}

WEFT_SUITE(hypernode_plan, {"first install", first_install}, {"few writes", few_writes},
           {"nodes swapped", nodes_swapped}, {"group moved", group_moved},
           {"group emptied", group_emptied}, {"singletons swapped", singletons_swapped},
           {"singleton swapped with group", singleton_swapped_with_group},
           {"deleted node holds the place", deleted_node_holds_the_place},
           {"release waits for what comes", release_waits_for_what_comes},
           {"tier changed", tier_changed}, {"deleted by hand", deleted_by_hand},
           {"subtree deleted by hand", subtree_deleted_by_hand},
           {"deleted by hand for good", deleted_by_hand_for_good},
           {"deleted by hand and robbed", deleted_by_hand_and_robbed},
           {"second parent by hand", second_parent_by_hand}, {"cycle by hand", cycle_by_hand},
           {"hand edits", hand_edits}, {"tier name dropped", tier_name_dropped},
           {"foreign apart", foreign_apart}, {"foreign has node", foreign_has_node},
           {"foreign has all", foreign_has_all}, {"foreign has child", foreign_has_child},
           {"foreign keeps", foreign_keeps}, {"name taken", name_taken},
           {"other instance", other_instance}, {"irreplaceable", irreplaceable},
           {"terminating", terminating}, {"preconditions", preconditions},
           {"bad wishes", bad_wishes}, {"check refuses", check_refuses}, {"hashes", hashes},
           {"torture", torture})
