/* SPDX-License-Identifier: Apache-2.0 */
/* Every recorded machine of the shared data, and the matrices among the fixtures, against the table
 * tests/fixtures/expect/machines.tsv, whose values come from the recordings and not from weft. A
 * file without a row fails the test, so that a new recording cannot go unread. */
#include <dirent.h>
#include <regex.h>
#include <stdio.h>

#include "pkg/allocator/allocator.h"
#include "pkg/base/map.h"
#include "pkg/base/mem.h"
#include "pkg/base/str.h"
#include "pkg/machine/machine.h"
#include "tests/unit/unit.h"

enum {
    ROWS_MAX = 1024,
    TEXT_MAX = 1024,
};

enum column {
    COLUMN_FILE,
    COLUMN_KIND,
    COLUMN_GPUS,
    COLUMN_NICS,
    COLUMN_LINKED,
    COLUMN_MBPS,
    COLUMN_FAR,
    COLUMN_NEAR,
    COLUMN_GROUPS,
    COLUMN_LABELS,
    COLUMN_WARNINGS,
    COLUMN_PATTERN,
    COLUMN_DERIVATION,
    COLUMN_COUNT
};

static const char *const titles[] = {
    [COLUMN_FILE] = "file",       [COLUMN_KIND] = "kind",         [COLUMN_GPUS] = "gpus",
    [COLUMN_NICS] = "nics",       [COLUMN_LINKED] = "linked",     [COLUMN_MBPS] = "mbps",
    [COLUMN_FAR] = "far",         [COLUMN_NEAR] = "near",         [COLUMN_GROUPS] = "groups",
    [COLUMN_LABELS] = "labels",   [COLUMN_WARNINGS] = "warnings", [COLUMN_PATTERN] = "pattern",
    [COLUMN_DERIVATION] = "from",
};

/* Folders whose files must all have a row; a folder of which any row is given must have all, too.
 */
static const char *const folders[] = {"smi-topo",      "nccl-topo",     "hwloc",
                                      "amd-rccl-topo", "nvml-profiles", "amd-smi",
                                      "nvidia-hwinfo", "amd-kfd"};

struct row {
    char cells[COLUMN_COUNT][TEXT_MAX];
};

/* ---- the table ---- */

static bool parse_row(struct weft_str line, struct row *row)
{
    struct weft_str cell;
    size_t i = 0;
    for (; i < COLUMN_COUNT && weft_str_split(&line, '\t', &cell); i++) {
        (void)snprintf(row->cells[i], TEXT_MAX, "%.*s", WEFT_STR_ARG(cell));
    }
    return i == COLUMN_COUNT && line.data == NULL;
}

/* The rows; *names maps the files to their rows. */
static struct row *load_table(size_t *ret_count, struct weft_map *names)
{
    weft_autofree char *text = weft_fixture_text("expect/machines.tsv", NULL);
    struct row *rows = weft_calloc(ROWS_MAX, sizeof(*rows));
    struct weft_str rest = weft_str(text != NULL ? text : "");
    struct weft_str line;
    *ret_count = 0;
    while (rows != NULL && *ret_count < ROWS_MAX && weft_str_line(&rest, &line)) {
        if (weft_str_starts(line, "#")) {
            continue;
        }
        struct row *row = &rows[*ret_count];
        const bool good =
            parse_row(line, row) && weft_map_put(names, row->cells[COLUMN_FILE], *ret_count) == 0;
        CHECK(good);
        if (!good) {
            (void)fprintf(stderr, "not a row, or a second one: %.*s\n", WEFT_STR_ARG(line));
        }
        (*ret_count)++;
    }
    return rows;
}

/* ---- what a machine is, in the table's words ---- */

static void far_text(const struct weft_machine *m, char *text)
{
    size_t counts[WEFT_DISTANCE_COUNT] = {0};
    size_t len = 0;
    for (size_t i = 0; i < m->device_count; i++) {
        for (size_t j = i + 1; j < m->device_count; j++) {
            counts[weft_machine_t(m, i, j)]++;
        }
    }
    (void)snprintf(text, TEXT_MAX, "-");
    for (size_t d = 0; d < WEFT_DISTANCE_COUNT; d++) {
        if (counts[d] > 0) {
            len += (size_t)snprintf(text + len, TEXT_MAX - len, "%s%s:%zu", len > 0 ? " " : "",
                                    weft_distance_name((enum weft_distance)d), counts[d]);
        }
    }
}

static void labels_text(const struct weft_machine *m, char *text)
{
    size_t len = 0;
    (void)snprintf(text, TEXT_MAX, "-");
    for (size_t i = 0; i < m->device_count;) {
        const char *label = m->devices[i].numa_label;
        size_t run = 0;
        while (i + run < m->device_count && strcmp(m->devices[i + run].numa_label, label) == 0) {
            run++;
        }
        len += (size_t)snprintf(text + len, TEXT_MAX - len, "%s%s*%zu", len > 0 ? " " : "",
                                label[0] != '\0' ? label : "-", run);
        i += run;
    }
}

static size_t group_count(const struct weft_machine *m)
{
    weft_auto(weft_allocator_free) struct weft_allocator *a = NULL;
    struct weft_error err = {0};
    if (m->device_count == 0) {
        return 0;
    }
    CHECK_INT(weft_allocator_new_direct(m, &a, &err), 0);
    return a != NULL ? weft_allocator_group_count(a) : 0;
}

static void put(struct row *row, enum column column, uint64_t value)
{
    (void)snprintf(row->cells[column], TEXT_MAX, "%llu", (unsigned long long)value);
}

static void describe(const struct weft_machine *m, struct row *row)
{
    uint64_t linked = 0;
    uint64_t mbps = 0;
    uint64_t near = 0;
    for (size_t i = 0; i < m->device_count; i++) {
        for (size_t j = i + 1; j < m->device_count; j++) {
            linked += weft_machine_b(m, i, j) > 0;
            mbps += weft_machine_b(m, i, j);
        }
        for (size_t n = 0; n < m->nic_count; n++) {
            near += weft_machine_n(m, i, n) <= WEFT_DISTANCE_PXB;
        }
    }
    (void)snprintf(row->cells[COLUMN_KIND], TEXT_MAX, "%s", m->partial ? "partial" : "machine");
    put(row, COLUMN_GPUS, m->device_count);
    put(row, COLUMN_NICS, m->nic_count);
    put(row, COLUMN_LINKED, linked);
    put(row, COLUMN_MBPS, mbps);
    far_text(m, row->cells[COLUMN_FAR]);
    put(row, COLUMN_NEAR, near);
    put(row, COLUMN_GROUPS, group_count(m));
    labels_text(m, row->cells[COLUMN_LABELS]);
    put(row, COLUMN_WARNINGS, m->warning_count);
}

/* ---- comparing ---- */

static bool matches(const char *pattern, const char *text)
{
    regex_t compiled;
    if (regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB) != 0) {
        return false;
    }
    const bool found = regexec(&compiled, text, 0, NULL, 0) == 0;
    regfree(&compiled);
    return found;
}

static bool pattern_holds(const struct row *want, const struct weft_machine *m, const char *refusal)
{
    const char *pattern = want->cells[COLUMN_PATTERN];
    bool found = strcmp(pattern, "-") == 0 || matches(pattern, refusal);
    for (size_t i = 0; m != NULL && i < m->warning_count; i++) {
        found = found || matches(pattern, m->warnings[i]);
    }
    return found;
}

static void check_file(const struct row *want, const char *path)
{
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    struct weft_error err = {0};
    struct row got = {0};
    const int rc = weft_machine_load(path, &m, &err);
    (void)snprintf(got.cells[COLUMN_KIND], TEXT_MAX, "refused");
    if (rc == 0) {
        describe(m, &got);
    }
    bool good = true;
    const bool refused = strcmp(want->cells[COLUMN_KIND], "refused") == 0;
    for (size_t i = COLUMN_KIND; i <= COLUMN_WARNINGS && (i == COLUMN_KIND || !refused); i++) {
        if (!CHECK_STR(got.cells[i], want->cells[i])) {
            (void)fprintf(stderr, "  in %s, column %s\n", want->cells[COLUMN_FILE], titles[i]);
            good = false;
        }
    }
    const bool said = pattern_holds(want, m, err.message);
    CHECK(said);
    if (!said || !good) {
        (void)fprintf(stderr, "  %s: %s%s\n", want->cells[COLUMN_FILE],
                      said ? "" : "nothing matches the pattern; ",
                      rc < 0                              ? err.message
                      : m != NULL && m->warning_count > 0 ? m->warnings[0]
                                                          : "no warnings");
    }
}

static void every_row_holds(void)
{
    weft_auto(weft_map_free) struct weft_map *names = weft_map_new(ROWS_MAX);
    size_t count = 0;
    weft_autofree struct row *rows = load_table(&count, names);
    CHECK(count > 100);
    const bool shared = weft_shared("smi-topo") != NULL;
    for (size_t i = 0; rows != NULL && i < count; i++) {
        const char *file = rows[i].cells[COLUMN_FILE];
        const bool own = strncmp(file, "fixtures/", 9) == 0;
        CHECK(strlen(rows[i].cells[COLUMN_DERIVATION]) > 0);
        if (own || shared) {
            const char *path = own ? weft_fixture(file + 9) : weft_shared(file);
            CHECK(path != NULL);
            check_file(&rows[i], path != NULL ? path : file);
        }
    }
}

/* ---- no file without a row ---- */

static void check_folder(const char *folder, const struct weft_map *names)
{
    const char *path = weft_shared(folder);
    DIR *dir = path != NULL ? opendir(path) : NULL;
    size_t files = 0;
    for (struct dirent *e = dir != NULL ? readdir(dir) : NULL; e != NULL; e = readdir(dir)) {
        char name[TEXT_MAX];
        (void)snprintf(name, sizeof(name), "%s/%s", folder, e->d_name);
        if (e->d_name[0] == '.') {
            continue;
        }
        files++;
        const bool known = weft_map_get(names, name, NULL);
        CHECK(known);
        if (!known) {
            (void)fprintf(stderr, "%s has no row in expect/machines.tsv\n", name);
        }
    }
    if (dir != NULL) {
        CHECK(files > 0);
        (void)closedir(dir);
    }
}

static void every_file_has_a_row(void)
{
    weft_auto(weft_map_free) struct weft_map *names = weft_map_new(ROWS_MAX);
    weft_auto(weft_map_free) struct weft_map *seen = weft_map_new(ROWS_MAX);
    size_t count = 0;
    weft_autofree struct row *rows = load_table(&count, names);
    if (weft_shared("smi-topo") == NULL || seen == NULL) {
        return;
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(folders); i++) {
        CHECK_INT(weft_map_put(seen, folders[i], 0), 0);
        check_folder(folders[i], names);
    }
    for (size_t i = 0; rows != NULL && i < count; i++) {
        struct weft_str rest = weft_str(rows[i].cells[COLUMN_FILE]);
        struct weft_str folder;
        char name[TEXT_MAX];
        (void)weft_str_split(&rest, '/', &folder);
        (void)snprintf(name, sizeof(name), "%.*s", WEFT_STR_ARG(folder));
        if (strcmp(name, "fixtures") != 0 && weft_map_put(seen, name, 0) == 0) {
            check_folder(name, names);
        }
    }
}

WEFT_SUITE(machine_expect, {"every row holds", every_row_holds},
           {"every file has a row", every_file_has_a_row})
