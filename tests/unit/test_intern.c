/* SPDX-License-Identifier: Apache-2.0 */
/* Counted texts against a table of what is held. */
#include "pkg/base/intern.h"

#include <stdint.h>
#include <stdio.h>

#include "tests/unit/unit.h"

enum { TEXTS = 300, STEPS = 60000 };

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525U + 1013904223U;
    return *state >> 8;
}

/* Every text has the pointer that it had when it was taken, as long as it is held, and goes when
 * nobody holds it. */
static void test_random(void)
{
    struct weft_intern *intern = weft_intern_new(TEXTS);
    const char *pointers[TEXTS] = {0};
    unsigned refs[TEXTS] = {0};
    size_t different = 0;
    uint32_t state = 1;
    CHECK(intern != NULL);
    for (int step = 0; intern != NULL && step < STEPS; step++) {
        const size_t k = next(&state) % TEXTS;
        /* phases of growth and of shrinking, so that runs of slots close up */
        const bool take = next(&state) % 10 < (step / 5000 % 2 == 0 ? 8U : 2U);
        if (take) {
            char text[32];
            (void)snprintf(text, sizeof(text), "text-%zu", k);
            const char *got = weft_intern_ref(intern, text);
            CHECK_STR(got, text);
            CHECK(refs[k] == 0 || got == pointers[k]);
            pointers[k] = got;
            different += refs[k]++ == 0;
        } else if (refs[k] > 0) {
            weft_intern_unref(intern, pointers[k]);
            different -= --refs[k] == 0;
        }
        if (weft_intern_count(intern) != different) {
            CHECK_INT(weft_intern_count(intern), different);
            break;
        }
    }
    for (size_t k = 0; k < TEXTS; k++) { /* all that is held can still be found */
        char text[32];
        (void)snprintf(text, sizeof(text), "text-%zu", k);
        const char *got = weft_intern_ref(intern, text);
        CHECK(refs[k] == 0 || got == pointers[k]);
        weft_intern_unref(intern, got);
        while (refs[k] > 0) {
            weft_intern_unref(intern, pointers[k]);
            refs[k]--;
        }
    }
    CHECK_INT(weft_intern_count(intern), 0);
    weft_intern_unref(intern, NULL);
    weft_intern_free(intern);
    weft_intern_free(NULL);
}

static void test_limits(void)
{
    struct weft_intern *intern = weft_intern_new(2);
    const char *a = weft_intern_ref(intern, "a");
    const char *empty = weft_intern_ref(intern, "");
    CHECK_STR(a, "a");
    CHECK_STR(empty, "");
    CHECK(weft_intern_ref(intern, "c") == NULL);
    CHECK(weft_intern_ref(intern, "a") == a);
    weft_intern_unref(intern, empty);
    const char *c = weft_intern_ref(intern, "c");
    CHECK_STR(c, "c");
    CHECK_INT(weft_intern_count(intern), 2);
    weft_intern_free(intern); /* with what is still held */
}

static void test_memory(void)
{
    for (uint64_t nth = 1; nth < 140; nth++) {
        (void)weft_mem_fail_after(nth);
        struct weft_intern *intern = weft_intern_new(100);
        size_t got = 0;
        for (int i = 0; intern != NULL && i < 100; i++) { /* grows once on the way */
            char text[16];
            (void)snprintf(text, sizeof(text), "%d", i);
            got += weft_intern_ref(intern, text) != NULL;
        }
        const uint64_t asked = weft_mem_fail_after(0);
        CHECK(intern == NULL || weft_intern_count(intern) == got);
        CHECK((asked >= nth) == (got < 100));
        weft_intern_free(intern);
    }
}

WEFT_SUITE(intern, {"random", test_random}, {"limits", test_limits}, {"memory", test_memory})
