/* SPDX-License-Identifier: Apache-2.0 */
/* Runs all suites (or those named as arguments) and exits non-zero on any failure. */
#include <CUnit/Basic.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "pkg/base/file.h"
#include "pkg/base/mem.h"
#include "tests/unit/unit.h"

#define WEFT_SUITE_ENTRY(module) void weft_suite_##module(void);
#include "suites.inc"
#undef WEFT_SUITE_ENTRY

static int wanted_count;
static char **wanted;
static char test_dir[64];

static int is_wanted(const char *suite)
{
    for (int i = 0; i < wanted_count; i++) {
        if (strcmp(wanted[i], suite) == 0) {
            return 1;
        }
    }
    return wanted_count == 0;
}

void weft_unit_add(const char *suite, const struct weft_test *tests)
{
    if (!is_wanted(suite)) {
        return;
    }
    CU_pSuite s = CU_add_suite(suite, NULL, NULL);
    for (; s != NULL && tests->name != NULL; tests++) {
        if (CU_add_test(s, tests->name, tests->run) == NULL) {
            (void)fprintf(stderr, "%s.%s could not be added\n", suite, tests->name);
            exit(1);
        }
    }
}

const char *weft_fixture(const char *name)
{
    static char path[512];
    (void)snprintf(path, sizeof(path), "tests/fixtures/%s", name);
    return path;
}

const char *weft_shared(const char *name)
{
    static char path[512];
    const char *shared = getenv("WEFT_SHARED");
    (void)snprintf(path, sizeof(path), "%s/data/%s", shared != NULL ? shared : "../shared", name);
    if (access(path, R_OK) == 0) {
        return path;
    }
    (void)fprintf(stderr, "SKIP %s is not here\n", path);
    return NULL;
}

char *weft_fixture_text(const char *name, size_t *ret_len)
{
    struct weft_error err = {0};
    char *text = NULL;
    if (weft_file_read(weft_fixture(name), 64U << 20, &text, ret_len, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        CU_FAIL("fixture cannot be read");
        return NULL;
    }
    return text;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

const char *weft_test_dir(void)
{
    if (test_dir[0] == '\0') {
        (void)snprintf(test_dir, sizeof(test_dir), "/tmp/weft-unit-XXXXXX");
        if (mkdtemp(test_dir) == NULL) {
            perror("mkdtemp");
            exit(1);
        }
    }
    return test_dir;
}

uint64_t weft_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t weft_random_below(uint64_t *state, uint64_t limit)
{
    return limit > 0 ? weft_random(state) % limit : 0;
}

static int assert_at(const char *file, int line, int held, const char *what)
{
    (void)CU_assertImplementation(held ? CU_TRUE : CU_FALSE, (unsigned)line, what, file, "",
                                  CU_FALSE);
    return held;
}

int weft_check_int(const char *file, int line, const char *what, int64_t actual, int64_t expected)
{
    if (actual != expected) {
        (void)fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", file, line, what, (long long)actual,
                      (long long)expected);
    }
    return assert_at(file, line, actual == expected, what);
}

int weft_check_str(const char *file, int line, const char *what, const char *actual,
                   const char *expected)
{
    const int held =
        actual != NULL && expected != NULL ? strcmp(actual, expected) == 0 : actual == expected;
    if (!held) {
        (void)fprintf(stderr, "%s:%d: %s is\n  %s\nnot\n  %s\n", file, line, what,
                      actual != NULL ? actual : "(null)", expected != NULL ? expected : "(null)");
    }
    return assert_at(file, line, held, what);
}

int weft_check_contains(const char *file, int line, const char *what, const char *text,
                        const char *part)
{
    const int held = text != NULL && strstr(text, part) != NULL;
    if (!held) {
        (void)fprintf(stderr, "%s:%d: %s is\n  %s\nwithout\n  %s\n", file, line, what,
                      text != NULL ? text : "(null)", part);
    }
    return assert_at(file, line, held, what);
}

int main(int argc, char **argv)
{
    wanted_count = argc - 1;
    wanted = argv + 1;
    (void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    if (CU_initialize_registry() != CUE_SUCCESS) {
        return 1;
    }
#define WEFT_SUITE_ENTRY(module) weft_suite_##module();
#include "suites.inc"
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_ErrorCode rc = CU_basic_run_tests();
    const unsigned failures = CU_get_number_of_failures();
    const unsigned ran = CU_get_number_of_tests_run();
    CU_cleanup_registry();
    if (test_dir[0] != '\0') {
        (void)nftw(test_dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    }
    return rc != CUE_SUCCESS || failures > 0 || ran == 0;
}
