/* SPDX-License-Identifier: Apache-2.0 */
/* A child that another owner listed too, and does not any more: who is marked, until when, and the
 * one write that comes of it. */
#include "controller/view.h"
#include "pkg/hypernode/plan.h"
#include "tests/unit/hypernodes.h"
#include "tests/unit/unit.h"

#define OURS "a 1 n0\nb 1 n1\ns 2 a b\n"

static void put(struct weft_view_hypernodes *view, const char *text)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    hypernodes_read(&set, text);
    for (size_t i = 0; i < set.count; i++) {
        enum weft_view_change change = WEFT_VIEW_SAME;
        struct weft_hypernode hn = {0};
        CHECK_INT(weft_hypernode_copy(&set.items[i], &hn), 0);
        CHECK_INT(weft_view_hypernodes_put(view, &hn, &change), 0);
    }
}

static bool torn(const struct weft_view_hypernodes *view, const char *name)
{
    const struct weft_hypernode *hn = weft_hypernode_set_get(&view->set, name);
    return hn != NULL && hn->torn;
}

static bool tear(struct weft_view_hypernodes *view, const char *before, const char *after)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set a = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set b = {0};
    hypernodes_read(&a, before);
    hypernodes_read(&b, after);
    return weft_view_hypernodes_tear(view, "weft", &a.items[0], b.count > 0 ? &b.items[0] : NULL);
}

static void who_is_torn_and_until_when(void)
{
    struct weft_view_hypernodes view = {0};
    put(&view, OURS);
    CHECK(!tear(&view, "!f 2 c\n", ""));         /* nobody of ours lists c */
    CHECK(!tear(&view, "!f 2 a\n", "!f 2 a\n")); /* it still claims a */
    CHECK(!tear(&view, "!f 1 a\n", ""));         /* that a is a Node */
    CHECK(!torn(&view, "s"));
    CHECK(tear(&view, "!f 2 a b\n", "!f 2 b\n"));
    CHECK(torn(&view, "s") && !torn(&view, "a"));
    /* a status write does not mend it */
    put(&view, OURS);
    CHECK(torn(&view, "s"));
    /* another order does, and another member */
    weft_auto(weft_hypernode_done) struct weft_hypernode hn = {0};
    enum weft_view_change change = WEFT_VIEW_SAME;
    CHECK_INT(weft_hypernode_copy(weft_hypernode_set_get(&view.set, "s"), &hn), 0);
    hn.reordered = true;
    CHECK_INT(weft_view_hypernodes_put(&view, &hn, &change), 0);
    CHECK(!torn(&view, "s"));
    CHECK(tear(&view, "!f 2 a\n", ""));
    put(&view, "c 1 n2\ns 2 a b c\n");
    CHECK(!torn(&view, "s"));
    weft_view_hypernodes_done(&view);
}

static void plan_of(const char *live, const char *wanted, bool is_torn, struct weft_plan *ret_plan)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set current = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set desired = {0};
    const struct weft_plan_options options = {.instance = "weft", .check = true};
    hypernodes_read(&current, live);
    hypernodes_read(&desired, wanted);
    for (size_t i = 0; i < current.count; i++) {
        current.items[i].torn = is_torn && strcmp(current.items[i].name, "s") == 0;
    }
    CHECK_INT(weft_plan_build(&current, &desired, &options, ret_plan, NULL), 0);
}

static void one_write_and_not_beside_another(void)
{
    weft_auto(weft_plan_done) struct weft_plan none = {0};
    weft_auto(weft_plan_done) struct weft_plan one = {0};
    weft_auto(weft_plan_done) struct weft_plan other = {0};
    plan_of(OURS, OURS, false, &none);
    CHECK_INT(none.step_count, 0);
    plan_of(OURS, OURS, true, &one);
    CHECK_INT(one.step_count, 1);
    CHECK_STR(one.steps[0].object.name, "s");
    CHECK(one.steps[0].touch && one.steps[0].kind == WEFT_STEP_CLAIM);
    CHECK_INT(one.steps[0].object.member_count, 2);
    /* a member change of its own is as good */
    plan_of(OURS, "a 1 n0\nb 1 n1\nc 1 n2\ns 2 a b c\n", true, &other);
    CHECK_INT(other.step_count, 2);
    CHECK(!other.steps[0].touch && !other.steps[1].touch);
}

WEFT_SUITE(torn, {"who_is_torn_and_until_when", who_is_torn_and_until_when},
           {"one_write_and_not_beside_another", one_write_and_not_beside_another})
