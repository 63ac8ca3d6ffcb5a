/* SPDX-License-Identifier: Apache-2.0 */
/* What every suite needs: one suite a module, in tests/unit/test_<module>.c, which defines
 * weft_suite_<module>() with WEFT_SUITE. The runner's list is generated from the file names. */
#ifndef WEFT_TESTS_UNIT_UNIT_H
#define WEFT_TESTS_UNIT_UNIT_H

#include <CUnit/CUnit.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct weft_test {
    const char *name;
    void (*run)(void);
};

/* Registers the tests (ends with a NULL name) as a suite. */
void weft_unit_add(const char *suite, const struct weft_test *tests);

#define WEFT_SUITE(module, ...)                                                                    \
    void weft_suite_##module(void);                                                                \
    void weft_suite_##module(void)                                                                 \
    {                                                                                              \
        static const struct weft_test tests[] = {__VA_ARGS__, {NULL, NULL}};                       \
        weft_unit_add(#module, tests);                                                             \
    }

/* tests/fixtures/<name> as a path; static storage, one at a time. */
const char *weft_fixture(const char *name);
/* ../shared/data/<name> if it is there, else NULL (the test then says SKIP and passes). */
const char *weft_shared(const char *name);
/* Reads a fixture whole (fails the test and returns NULL if it cannot); the caller frees it. */
char *weft_fixture_text(const char *name, size_t *ret_len);
/* A private temporary folder for the test, removed with all below it at the end of the run. */
const char *weft_test_dir(void);

/* A small deterministic generator for property tests (splitmix64): the seed is printed on failure
 * by the test itself. */
uint64_t weft_random(uint64_t *state);
uint64_t weft_random_below(uint64_t *state, uint64_t limit);

/* Non-fatal checks: a _FATAL assert of CUnit longjmps past clean-up attributes. */
#define CHECK(x) CU_ASSERT(x)
#define CHECK_INT(actual, expected)                                                                \
    weft_check_int(__FILE__, __LINE__, #actual, (int64_t)(actual), (int64_t)(expected))
#define CHECK_STR(actual, expected)                                                                \
    weft_check_str(__FILE__, __LINE__, #actual, (actual), (expected))
#define CHECK_CONTAINS(text, part) weft_check_contains(__FILE__, __LINE__, #text, (text), (part))
/* Each returns whether it held, and prints both values when it did not. */
int weft_check_int(const char *file, int line, const char *what, int64_t actual, int64_t expected);
int weft_check_str(const char *file, int line, const char *what, const char *actual,
                   const char *expected);
int weft_check_contains(const char *file, int line, const char *what, const char *text,
                        const char *part);

#endif
