/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that somebody deleted under their parent come back as they were, with no source asked.
 * Expected plans are written down by hand. */
#include "controller/lost.h"

#include <errno.h>
#include <stdio.h>

#include "pkg/hypernode/plan.h"
#include "tests/unit/hypernodes.h"
#include "tests/unit/unit.h"

struct bench {
    struct weft_hypernode_set live, lost, places;
    struct weft_plan plan;
    bool any;
};

static int go(struct bench *b)
{
    weft_hypernode_set_done(&b->places);
    weft_plan_done(&b->plan);
    int rc = weft_lost_places(&b->live, &b->lost, "weft", &b->places, &b->any, NULL);
    if (rc == 0 && b->any) {
        rc = weft_lost_plan(&b->live, &b->places, "weft", &b->plan, NULL);
    }
    return rc;
}

static void setup(struct bench *b, const char *live, const char *lost)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set gone = {0};
    *b = (struct bench){0};
    hypernodes_read(&b->live, live);
    for (size_t i = 0; i < b->live.count; i++) {
        b->live.items[i].resource_version[0] = '\0';
    }
    hypernodes_read(&gone, lost);
    for (size_t i = 0; i < gone.count; i++) {
        weft_lost_note(&b->lost, &gone.items[i]);
    }
}

static void teardown(struct bench *b)
{
    weft_hypernode_set_done(&b->live);
    weft_hypernode_set_done(&b->lost);
    weft_hypernode_set_done(&b->places);
    weft_plan_done(&b->plan);
}

static void check_step(const struct bench *b, size_t i, const char *name)
{
    CHECK(i < b->plan.step_count);
    if (i < b->plan.step_count) {
        CHECK_INT(b->plan.steps[i].kind, WEFT_STEP_CREATE);
        CHECK_STR(b->plan.steps[i].object.name, name);
    }
}

static void a_leaf_comes_back(void)
{
    struct bench b;
    setup(&b, "b 1 n2 n3\ns 2 a b\n", "a 1 n0 n1\n");
    CHECK_INT(go(&b), 0);
    CHECK_INT(b.plan.step_count, 1);
    check_step(&b, 0, "a");
    CHECK_SET(&b.plan.target, "a 1 n0 n1\nb 1 n2 n3\ns 2 a b\n");
    teardown(&b);
}

/* The middle one and its child: the child first, or the parent would list what is not there. */
static void a_subtree_comes_back(void)
{
    struct bench b;
    setup(&b, "b 1 n2\nu 2 b\nx 3 s u\n", "a 1 n0 n1\ns 2 a\n");
    CHECK_INT(go(&b), 0);
    CHECK_INT(b.plan.step_count, 2);
    check_step(&b, 0, "a");
    check_step(&b, 1, "s");
    teardown(&b);
}

/* What nobody lists endangers nobody; what is there again is not lost; others' are others'. */
static void only_what_is_listed(void)
{
    static const char *const lost[] = {"x 3 s\n", "a 1 n0\n", "!c 1 n9\n", ""};
    for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
        struct bench b;
        setup(&b, "a 1 n0\nc 1 n8\ns 2 a\nt 2 c\n", lost[i]);
        CHECK_INT(go(&b), 0);
        CHECK(!b.any);
        CHECK_INT(b.places.count, 0);
        teardown(&b);
    }
}

static void no_memory(void)
{
    struct bench b;
    setup(&b, "b 1 n2\nu 2 b\nx 3 s u\n", "a 1 n0 n1\ns 2 a\n");
    int rc = -ENOMEM;
    uint64_t n = 1;
    for (; rc == -ENOMEM && n < 10000; n++) {
        (void)weft_mem_fail_after(n);
        rc = go(&b);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || rc == -ENOMEM);
    }
    CHECK_INT(rc, 0);
    CHECK(n > 20);
    teardown(&b);
}

WEFT_SUITE(lost, {"a_leaf_comes_back", a_leaf_comes_back},
           {"a_subtree_comes_back", a_subtree_comes_back},
           {"only_what_is_listed", only_what_is_listed}, {"no_memory", no_memory})
