/* SPDX-License-Identifier: Apache-2.0 */
/* docs/fault-reports.md and docs/device-plugin-reports.md: every row is there, and every test that
 * they name. */
#include <errno.h>
#include <glob.h>
#include <stdio.h>

#include "pkg/base/file.h"
#include "pkg/base/mem.h"
#include "pkg/base/str.h"
#include "tests/unit/unit.h"

enum { ROWS = 67, TEXT_MAX = 1 << 20 };

static char *read_text(const char *path)
{
    char *text = NULL;
    size_t len = 0;
    return weft_file_read(path, TEXT_MAX, &text, &len, NULL) == 0 ? text : NULL;
}

static bool has_unit_test(const char *suite, const char *name)
{
    weft_autofree char *path = weft_asprintf("tests/unit/test_%s.c", suite);
    weft_autofree char *text = read_text(path);
    weft_autofree char *entry = weft_asprintf("{\"%s\"", name);
    return text != NULL && (strcmp(name, "*") == 0 || strstr(text, entry) != NULL);
}

static bool has_cluster_test(const char *name)
{
    weft_autofree char *entry = weft_asprintf("func %s(", name);
    glob_t files = {0};
    bool found = false;
    if (glob("tests/cluster/*_test.go", 0, NULL, &files) == 0) {
        for (size_t i = 0; i < files.gl_pathc && !found; i++) {
            weft_autofree char *text = read_text(files.gl_pathv[i]);
            found = text != NULL && strstr(text, entry) != NULL;
        }
    }
    globfree(&files);
    return found;
}

static void check_named(const char *named, size_t row)
{
    const char *colon = strstr(named, ": ");
    bool found = false;
    if (strncmp(named, "cluster ", strlen("cluster ")) == 0) {
        found = has_cluster_test(named + strlen("cluster "));
    } else if (colon != NULL) {
        weft_autofree char *suite = weft_strndup(named, (size_t)(colon - named));
        found = has_unit_test(suite, colon + 2);
    }
    if (!found) {
        (void)fprintf(stderr, "row %zu names no test: %s\n", row, named);
    }
    CHECK(found);
}

/* The tests in the last column, each between backquotes; returns how many. */
static size_t check_last_column(const char *line, size_t len, size_t row)
{
    const char *end = line + len;
    const char *column = end - 2; /* the closing bar */
    while (column > line && column[-1] != '|') {
        column--;
    }
    size_t count = 0;
    for (const char *p = column; (p = memchr(p, '`', (size_t)(end - p))) != NULL; count++) {
        const char *close = memchr(p + 1, '`', (size_t)(end - p - 1));
        if (close == NULL) {
            break;
        }
        weft_autofree char *named = weft_strndup(p + 1, (size_t)(close - p - 1));
        check_named(named, row);
        p = close + 1;
    }
    return count;
}

static void check_page(const char *path, size_t shown_min)
{
    weft_autofree char *text = read_text(path);
    size_t row = 0;
    size_t shown = 0;
    CHECK(text != NULL);
    for (const char *line = text; line != NULL && *line != '\0';) {
        const size_t len = strcspn(line, "\n");
        uint64_t number = 0;
        if (strncmp(line, "| ", 2) == 0 &&
            weft_parse_u64((struct weft_str){line + 2, strcspn(line + 2, " ")}, ROWS, &number) ==
                0) {
            CHECK_INT(number, ++row);
            const size_t tests = check_last_column(line, len, row);
            shown += tests > 0;
            /* a row without a test says that it is not done, or that it is what weft is */
            CHECK(tests > 0 || memmem(line, len, "| - |", 5) != NULL);
        }
        line += len + (line[len] == '\n');
    }
    CHECK_INT(row, ROWS);
    CHECK(shown >= shown_min);
}

static void every_row_has_its_tests(void)
{
    check_page("docs/fault-reports.md", 55);
}

static void every_row_of_device_plugins_has_its_tests(void)
{
    check_page("docs/device-plugin-reports.md", 66);
}

WEFT_SUITE(fault_reports, {"every_row_has_its_tests", every_row_has_its_tests},
           {"every_row_of_device_plugins_has_its_tests", every_row_of_device_plugins_has_its_tests})
