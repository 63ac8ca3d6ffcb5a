/* SPDX-License-Identifier: Apache-2.0 */
/* When a pass is due after changes. */
#include "controller/debounce.h"

#include "pkg/base/clock.h"
#include "tests/unit/unit.h"

#define S WEFT_NS_PER_S

static void test_first_is_due_at_once(void)
{
    struct weft_debounce d;
    weft_debounce_init(&d, 1 * S, 10 * S);
    CHECK_INT(weft_debounce_due(&d), 0);
    weft_debounce_clear(&d);
    CHECK(weft_debounce_due(&d) == WEFT_DEBOUNCE_NEVER);
}

static void test_quiet(void)
{
    struct weft_debounce d;
    weft_debounce_init(&d, 1 * S, 10 * S);
    weft_debounce_clear(&d);
    weft_debounce_touch(&d, 100 * S);
    CHECK_INT(weft_debounce_due(&d), 101 * S);
    weft_debounce_touch(&d, 100 * S + S / 2);
    CHECK_INT(weft_debounce_due(&d), 101 * S + S / 2);
    weft_debounce_clear(&d);
    weft_debounce_touch(&d, 200 * S);
    CHECK_INT(weft_debounce_due(&d), 201 * S);
}

/* Changes without end: the first one is served after max all the same. */
static void test_max(void)
{
    struct weft_debounce d;
    weft_debounce_init(&d, 1 * S, 10 * S);
    weft_debounce_clear(&d);
    for (int64_t t = 100 * S; t < 120 * S; t += S / 2) {
        weft_debounce_touch(&d, t);
        CHECK(weft_debounce_due(&d) <= 110 * S);
    }
    CHECK_INT(weft_debounce_due(&d), 110 * S);
}

static void test_rush(void)
{
    struct weft_debounce d;
    weft_debounce_init(&d, 1 * S, 10 * S);
    weft_debounce_clear(&d);
    weft_debounce_touch(&d, 100 * S);
    weft_debounce_rush(&d, 100 * S);
    CHECK_INT(weft_debounce_due(&d), 0);
    weft_debounce_touch(&d, 101 * S);
    CHECK_INT(weft_debounce_due(&d), 0);
}

static void test_configure_and_overflow(void)
{
    struct weft_debounce d;
    weft_debounce_init(&d, 1 * S, 10 * S);
    weft_debounce_clear(&d);
    weft_debounce_touch(&d, 100 * S);
    weft_debounce_configure(&d, 3 * S, 20 * S);
    CHECK_INT(weft_debounce_due(&d), 103 * S);
    weft_debounce_configure(&d, INT64_MAX, INT64_MAX);
    CHECK(weft_debounce_due(&d) > 0);
    CHECK(weft_debounce_due(&d) != WEFT_DEBOUNCE_NEVER);
}

WEFT_SUITE(debounce, {"first", test_first_is_due_at_once}, {"quiet", test_quiet}, {"max", test_max},
           {"rush", test_rush}, {"configure", test_configure_and_overflow})
