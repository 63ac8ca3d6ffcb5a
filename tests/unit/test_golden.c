/* SPDX-License-Identifier: Apache-2.0 */
/* Upgrades: for each input that an earlier release has written HyperNodes for, this weft has
 * nothing to write where those stand, and gives the same names to a cluster that has none yet. The
 * goldens were read through by hand (tests/fixtures/golden/<version>/README.md). */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "pkg/base/file.h"
#include "pkg/base/mem.h"
#include "tests/unit/proc.h"
#include "tests/unit/unit.h"

#define GOLDEN "tests/fixtures/golden"

enum { GOLDEN_PATH_MAX = 512, GOLDEN_FILE_MAX = 1 << 20 };

/* Runs the controller on the input in dir; against NULL: on an empty cluster. */
static void run(const char *dir, const char *against, const char *out, const char *expect,
                int status)
{
    char config[GOLDEN_PATH_MAX], nodes[GOLDEN_PATH_MAX], program[GOLDEN_PATH_MAX];
    (void)snprintf(config, sizeof(config), "%s/config.yaml", dir);
    (void)snprintf(nodes, sizeof(nodes), "%s/nodes.json", dir);
    (void)snprintf(program, sizeof(program), "%s", proc_path("bin/weft-controller"));
    const char *argv[] = {program,    "--config", config, "--nodes", nodes,
                          "--output", out,        NULL,   NULL,      NULL};
    if (against != NULL) {
        argv[7] = "--against";
        argv[8] = against;
    }
    struct proc p;
    if (proc_start(&p, argv)) {
        (void)proc_says(&p, "no such text", 5000);
        CHECK_CONTAINS(p.text != NULL ? p.text : "", expect);
        CHECK_INT(proc_end(&p, 0, 5000), status);
    }
}

static char *read_text(const char *dir)
{
    char path[GOLDEN_PATH_MAX];
    char *text = NULL;
    size_t len = 0;
    (void)snprintf(path, sizeof(path), "%s/apply.yaml", dir);
    CHECK_INT(weft_file_read(path, GOLDEN_FILE_MAX, &text, &len, NULL), 0);
    return text;
}

static void check_case(const char *dir)
{
    char golden[GOLDEN_PATH_MAX], out[GOLDEN_PATH_MAX], expect[2 * GOLDEN_PATH_MAX];
    (void)snprintf(golden, sizeof(golden), "%s/hypernodes", dir);
    (void)snprintf(out, sizeof(out), "%s/golden-upgraded", weft_test_dir());
    (void)snprintf(expect, sizeof(expect), ": 0 steps from %s\n", golden);
    run(dir, golden, out, expect, 0);

    (void)snprintf(out, sizeof(out), "%s/golden-new", weft_test_dir());
    run(dir, NULL, out, " HyperNodes of ", 0);
    weft_autofree char *now = read_text(out);
    weft_autofree char *then = read_text(golden);
    if (now != NULL && then != NULL && !CHECK_INT(strcmp(now, then), 0)) {
        (void)fprintf(stderr, "%s is not what %s holds\n", out, golden);
    }
}

/* Calls check for each folder in dir. */
static size_t each(const char *dir, void (*check)(const char *dir))
{
    DIR *folder = opendir(dir);
    size_t count = 0;
    const struct dirent *entry;
    CHECK(folder != NULL);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        char path[GOLDEN_PATH_MAX];
        struct stat st;
        (void)snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
        if (entry->d_name[0] != '.' && stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
            check(path);
            count++;
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return count;
}

static void check_release(const char *dir)
{
    CHECK(each(dir, check_case) >= 3);
}

static void what_earlier_releases_wrote_stands(void)
{
    CHECK(each(GOLDEN, check_release) >= 1);
}

/* One object of the golden, known by another identity, into the folder. */
static void copy_changed(const char *name, const char *to)
{
    char path[2 * GOLDEN_PATH_MAX];
    char *text = NULL;
    size_t len = 0;
    (void)snprintf(path, sizeof(path), GOLDEN "/0.1.0/labels/hypernodes/%s", name);
    CHECK_INT(weft_file_read(path, GOLDEN_FILE_MAX, &text, &len, NULL), 0);
    char *at = text != NULL ? strstr(text, "identity: \"core=nn-core0/spine=nn-Spine_0\"") : NULL;
    if (at != NULL) {
        at[strlen("identity: \"core=nn-core")] = '9';
    }
    (void)snprintf(path, sizeof(path), "%s/%s", to, name);
    CHECK_INT(weft_file_replace(path, text, len, 0644, NULL), 0);
    weft_free(text);
}

/* The other way round: a weft that knows a group by another identity would have to move its two of
 * eight nodes, which the brakes hold. */
static void another_identity_is_noticed(void)
{
    char out[GOLDEN_PATH_MAX], before[GOLDEN_PATH_MAX];
    (void)snprintf(before, sizeof(before), "%s/golden-before", weft_test_dir());
    (void)snprintf(out, sizeof(out), "%s/golden-after", weft_test_dir());
    (void)mkdir(before, 0755);
    DIR *folder = opendir(GOLDEN "/0.1.0/labels/hypernodes");
    const struct dirent *entry;
    CHECK(folder != NULL);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (strncmp(entry->d_name, "weft-", 5) == 0) {
            copy_changed(entry->d_name, before);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    run(GOLDEN "/0.1.0/labels", before, out, "would move 2 and drop 0", 1);
}

WEFT_SUITE(golden, {"what_earlier_releases_wrote_stands", what_earlier_releases_wrote_stands},
           {"another_identity_is_noticed", another_identity_is_noticed})
