/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of a plan when the server would not write one object. Expected sets are written down
 * by hand. */
#include "pkg/hypernode/plan-around.h"

#include <errno.h>

#include "pkg/base/str.h"
#include "tests/unit/hypernodes.h"
#include "tests/unit/unit.h"

/* Carries steps out on the set. */
static void carry_out(struct weft_hypernode_set *set, const struct weft_plan *plan)
{
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct weft_step *s = &plan->steps[i];
        const bool exists = weft_hypernode_set_find(set, s->object.name, NULL);
        weft_auto(weft_hypernode_done) struct weft_hypernode copy = {0};
        CHECK_INT(exists, s->kind != WEFT_STEP_CREATE);
        CHECK(s->previous == WEFT_STEP_NONE || s->previous < i);
        if (s->kind == WEFT_STEP_DELETE) {
            CHECK(weft_hypernode_set_remove(set, s->object.name));
            continue;
        }
        CHECK_INT(weft_hypernode_copy(&s->object, &copy), 0);
        CHECK(weft_hypernode_set_put(set, &copy) >= 0);
    }
}

static int build(const struct weft_hypernode_set *live, const struct weft_hypernode_set *wanted,
                 const char *stuck, struct weft_plan *ret_around)
{
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    const struct weft_plan_options options = {.instance = "weft", .check = true};
    const int rc = weft_plan_build(live, wanted, &options, &plan, NULL);
    return rc < 0 ? rc : weft_plan_around(live, &plan, &stuck, 1, ret_around, NULL);
}

static void expect(const char *before, const char *wanted, const char *stuck, const char *result)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set live = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set desired = {0};
    weft_auto(weft_plan_done) struct weft_plan around = {0};
    hypernodes_read(&live, before);
    hypernodes_read(&desired, wanted);
    CHECK_INT(build(&live, &desired, stuck, &around), 0);
    carry_out(&live, &around);
    CHECK_SET(&live, result);
}

#define TREE "a 1 n0\nb 1 n1\nc 1 n2\ns 2 a b\nu 2 c\nx 3 s u\n"

static void first_install(void)
{
    expect("", TREE, "a", "b 1 n1\nc 1 n2\ns 2 b\nu 2 c\nx 3 s u\n");
    /* its only child: the parent cannot be made either */
    expect("", TREE, "c", "a 1 n0\nb 1 n1\ns 2 a b\nx 3 s\n");
    expect("", TREE, "s", "a 1 n0\nb 1 n1\nc 1 n2\nu 2 c\nx 3 u\n");
    expect("", TREE, "x", "a 1 n0\nb 1 n1\nc 1 n2\ns 2 a b\nu 2 c\n");
}

/* n0 should go from a to b and n2 from c to d. */
static void moves(void)
{
    const char *before = "a 1 n0 n9\nb 1 n1\nc 1 n2 n3\nd 1 n4\ns 2 a b\nu 2 c d\n";
    const char *wanted = "a 1 n9\nb 1 n0 n1\nc 1 n3\nd 1 n2 n4\ns 2 a b\nu 2 c d\n";
    /* a does not let go of n0: b goes without */
    expect(before, wanted, "a", "a 1 n0 n9\nb 1 n1\nc 1 n3\nd 1 n2 n4\ns 2 a b\nu 2 c d\n");
    /* b does not take it */
    expect(before, wanted, "b", "a 1 n9\nb 1 n1\nc 1 n3\nd 1 n2 n4\ns 2 a b\nu 2 c d\n");
}

static void deletes(void)
{
    /* s should go with its leaves, and cannot: they stay below it */
    expect("a 1 n0\nb 1 n1\nc 1 n2\ns 2 a b\nu 2 c\nx 3 s u\n", "c 1 n2\nu 2 c\nx 3 u\n", "s",
           "a 1 n0\nb 1 n1\nc 1 n2\ns 2 a b\nu 2 c\nx 3 u\n");
    /* x does not let go of s */
    expect("a 1 n0\nc 1 n2\ns 2 a\nu 2 c\nx 3 s u\n", "c 1 n2\nu 2 c\nx 3 u\n", "x",
           "a 1 n0\nc 1 n2\ns 2 a\nu 2 c\nx 3 s u\n");
    /* a leaf that cannot be deleted costs nobody else anything */
    expect("a 1 n0\nb 1 n1\ns 2 a b\n", "s 2 z\nz 1 n5\n", "a", "a 1 n0\ns 2 z\nz 1 n5\n");
}

static void no_memory(void)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set live = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set desired = {0};
    weft_auto(weft_plan_done) struct weft_plan around = {0};
    hypernodes_read(&desired, TREE);
    int rc = -ENOMEM;
    uint64_t n = 1;
    for (; rc == -ENOMEM && n < 20000; n++) {
        (void)weft_mem_fail_after(n);
        rc = build(&live, &desired, "a", &around);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || rc == -ENOMEM);
    }
    CHECK_INT(rc, 0);
    CHECK(n > 20);
}

WEFT_SUITE(plan_around, {"first_install", first_install}, {"moves", moves}, {"deletes", deletes},
           {"no_memory", no_memory})
