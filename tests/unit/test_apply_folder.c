/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of manifests: what is written (against goldens that were read over by hand), read back,
 * swept and left alone. */
#include "pkg/apply/folder.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pkg/base/file.h"
#include "pkg/hypernode/plan.h"
#include "tests/unit/hypernode_util.h"
#include "tests/unit/unit.h"

#define PREFIX "weft.dev/"

/* A new folder's path for each test; owned. */
static char *new_dir(const char *name)
{
    return weft_asprintf("%s/folder-%s", weft_test_dir(), name);
}

static char *read_text(const char *dir, const char *file)
{
    weft_autofree char *path = weft_asprintf("%s/%s", dir, file);
    char *text = NULL;
    return weft_file_read(path, 1U << 20, &text, NULL, NULL) < 0 ? NULL : text;
}

static void write_text(const char *dir, const char *file, const char *text)
{
    weft_autofree char *path = weft_asprintf("%s/%s", dir, file);
    CHECK_INT(weft_file_replace(path, text, strlen(text), 0644, NULL), 0);
}

static bool is_there(const char *dir, const char *file)
{
    weft_autofree char *path = weft_asprintf("%s/%s", dir, file);
    return access(path, F_OK) == 0;
}

static void check_golden(const char *dir, const char *file, const char *golden)
{
    weft_autofree char *path = weft_asprintf("apply_folder/%s", golden);
    weft_autofree char *got = read_text(dir, file);
    weft_autofree char *want = weft_fixture_text(path, NULL);
    CHECK_STR(got, want);
}

static void put_identity(struct weft_hypernode_set *set, const char *name, const char *identity)
{
    size_t at = 0;
    CHECK(weft_hypernode_set_find(set, name, &at));
    CHECK_INT(weft_hypernode_set_text(&set->items[at].identity, identity), 0);
}

/* Two leaves under a spine; server fields must not get into a manifest. */
static void make_old(struct weft_hypernode_set *set)
{
    hn_put(set, "weft-leaf-a-11111111", 1, "n:gpu-1 n:gpu-2");
    hn_put(set, "weft-leaf-b-22222222", 1, "n:gpu-3");
    hn_put(set, "weft-spine-s-33333333", 2, "h:weft-leaf-a-11111111 h:weft-leaf-b-22222222");
    put_identity(set, "weft-leaf-a-11111111", "zone=no/rack=0x1");
    CHECK_INT(weft_hypernode_set_text(&set->items[0].uid, "uid-1"), 0);
    CHECK_INT(weft_hypernode_set_text(&set->items[0].resource_version, "7"), 0);
}

/* gpu-2 moves to a new leaf, b goes. */
static void make_new(struct weft_hypernode_set *set)
{
    hn_put(set, "weft-leaf-a-11111111", 1, "n:gpu-1");
    hn_put(set, "weft-leaf-c-44444444", 1, "n:gpu-2 n:gpu-3");
    hn_put(set, "weft-spine-s-33333333", 2, "h:weft-leaf-a-11111111 h:weft-leaf-c-44444444");
    put_identity(set, "weft-leaf-a-11111111", "zone=no/rack=0x1");
}

static void first_install(void)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    weft_autofree char *dir = new_dir("first");
    make_old(&set);
    struct weft_folder_counts counts = {0};
    struct weft_error err = {0};
    CHECK_INT(weft_folder_write(dir, &set, PREFIX, &counts, &err), 0);
    CHECK_INT(counts.written, 4);
    check_golden(dir, "apply.yaml", "apply.yaml");
    check_golden(dir, "weft-leaf-a-11111111.yaml", "leaf-a.yaml");
    /* again: nothing to do */
    CHECK_INT(weft_folder_write(dir, &set, PREFIX, &counts, &err), 0);
    CHECK_INT(counts.written, 0);
    CHECK_INT(counts.unchanged, 4);
    CHECK_INT(counts.removed, 0);
}

static void read_back(void)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set back = {0};
    weft_autofree char *dir = new_dir("back");
    make_old(&set);
    struct weft_error err = {0};
    CHECK_INT(weft_folder_write(dir, &set, PREFIX, NULL, &err), 0);
    write_text(dir, "notes.md", "# mine\n");
    write_text(dir, "kustomization.yaml", "kind: Kustomization\nresources: [apply.yaml]\n");
    CHECK_INT(weft_folder_read(dir, PREFIX, &back, &err), 0);
    CHECK_INT(back.count, 3);
    for (size_t i = 0; i < set.count && i < back.count; i++) {
        CHECK(weft_hypernode_same(&set.items[i], &back.items[i]));
        CHECK_STR(back.items[i].uid, "");
    }
    weft_autofree char *gone = new_dir("not-there");
    CHECK_INT(weft_folder_read(gone, PREFIX, &back, &err), -ENOENT);
    write_text(dir, "twice.yaml",
               "kind: HyperNode\nmetadata: {name: weft-leaf-a-11111111}\nspec: {tier: 1}\n");
    CHECK_INT(weft_folder_read(dir, PREFIX, &back, &err), -EEXIST);
    CHECK_CONTAINS(err.message, "weft-leaf-a-11111111.yaml");
    write_text(dir, "twice.yaml", "kind: HyperNode\nspec: [\n");
    CHECK_INT(weft_folder_read(dir, PREFIX, &back, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "twice.yaml:");
    CHECK_INT(back.count, 3); /* a failed read leaves it alone */
}

/* Files of ours for objects that are gone go; others' stay. */
static void sweep(void)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set before = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set after = {0};
    weft_autofree char *dir = new_dir("sweep");
    make_old(&before);
    make_new(&after);
    struct weft_error err = {0};
    CHECK_INT(weft_folder_write(dir, &before, PREFIX, NULL, &err), 0);
    write_text(dir, "mine.yaml", "kind: ConfigMap\n");
    struct weft_folder_counts counts = {0};
    CHECK_INT(weft_folder_write(dir, &after, PREFIX, &counts, &err), 0);
    CHECK_INT(counts.removed, 1);
    CHECK(!is_there(dir, "weft-leaf-b-22222222.yaml"));
    CHECK(is_there(dir, "weft-leaf-c-44444444.yaml"));
    CHECK(is_there(dir, "mine.yaml"));
}

/* Somebody else's file where ours should go: nothing at all is written. */
static void in_the_way(void)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    weft_autofree char *dir = new_dir("way");
    make_old(&set);
    CHECK_INT(mkdir(dir, 0755), 0);
    write_text(dir, "weft-spine-s-33333333.yaml", "mine: true\n");
    struct weft_error err = {0};
    CHECK_INT(weft_folder_write(dir, &set, PREFIX, NULL, &err), -EEXIST);
    CHECK_CONTAINS(err.message, "weft-spine-s-33333333.yaml is in the way");
    CHECK(!is_there(dir, "apply.yaml"));
    CHECK(!is_there(dir, "weft-leaf-a-11111111.yaml"));
    weft_autofree char *file = weft_asprintf("%s/weft-spine-s-33333333.yaml", dir);
    CHECK_INT(weft_folder_write(file, &set, PREFIX, NULL, &err), -ENOTDIR);
    weft_autofree char *deep = weft_asprintf("%s/a/b", dir);
    CHECK_INT(weft_folder_write(deep, &set, PREFIX, NULL, &err), -ENOENT);
}

static void bad_names(void)
{
    static const char *const names[] = {"../../etc/x", "a b", "apply", ""};
    weft_autofree char *dir = new_dir("names");
    for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
        weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
        hn_put(&set, names[i], 1, "n:gpu-1");
        struct weft_error err = {0};
        CHECK_INT(weft_folder_write(dir, &set, PREFIX, NULL, &err), -EINVAL);
    }
    CHECK(!is_there(dir, "apply.yaml"));
    /* nor into the script */
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set evil = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set none = {0};
    hn_put(&evil, "x; touch /tmp/y", 1, "n:gpu-1");
    const struct weft_plan_options options = {.instance = "test"};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    struct weft_error err = {0};
    CHECK_INT(weft_plan_build(&evil, &none, &options, &plan, &err), 0);
    CHECK_INT(plan.step_count, 1);
    CHECK_INT(weft_folder_write_steps(dir, &plan, PREFIX, NULL, &err), -EINVAL);
    CHECK(!is_there(dir, "run.sh"));
}

static int make_plan(const struct weft_hypernode_set *from, const struct weft_hypernode_set *to,
                     struct weft_plan *plan)
{
    const struct weft_plan_options options = {.instance = "test", .check = true};
    return weft_plan_build(from, to, &options, plan, NULL);
}

static void steps(void)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set before = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set after = {0};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    weft_autofree char *dir = new_dir("steps");
    make_old(&before);
    make_new(&after);
    CHECK_INT(make_plan(&before, &after, &plan), 0);
    struct weft_folder_counts counts = {0};
    struct weft_error err = {0};
    CHECK_INT(weft_folder_write_steps(dir, &plan, PREFIX, &counts, &err), 0);
    CHECK_INT(counts.written, plan.step_count + 2);
    check_golden(dir, "steps.txt", "steps.txt");
    check_golden(dir, "run.sh", "run.sh");
    check_golden(dir, "001-release-weft-spine-s-33333333.yaml", "release.yaml");
    check_golden(dir, "003-delete-weft-leaf-b-22222222.yaml", "delete.yaml");
    struct stat st;
    weft_autofree char *script = weft_asprintf("%s/run.sh", dir);
    CHECK(stat(script, &st) == 0 && (st.st_mode & S_IXUSR) != 0);
    /* steps are no state */
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set none = {0};
    CHECK_INT(weft_folder_read(dir, PREFIX, &none, &err), 0);
    CHECK_INT(none.count, 0);
    /* the steps of the way back take their place, and a new state removes them all */
    weft_auto(weft_plan_done) struct weft_plan back = {0};
    CHECK_INT(make_plan(&after, &before, &back), 0);
    CHECK_INT(weft_folder_write_steps(dir, &back, PREFIX, &counts, &err), 0);
    CHECK(!is_there(dir, "003-delete-weft-leaf-b-22222222.yaml"));
    CHECK(is_there(dir, "002-delete-weft-leaf-c-44444444.yaml"));
    CHECK_INT(weft_folder_write(dir, &before, PREFIX, &counts, &err), 0);
    CHECK(!is_there(dir, "run.sh"));
    CHECK(!is_there(dir, "steps.txt"));
    CHECK(!is_there(dir, "002-delete-weft-leaf-c-44444444.yaml"));
}

/* The script does in order what the steps say, with a kubectl that only writes down. */
static void script_runs(void)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set before = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set after = {0};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    weft_autofree char *dir = new_dir("script");
    make_old(&before);
    make_new(&after);
    CHECK_INT(make_plan(&before, &after, &plan), 0);
    CHECK_INT(weft_folder_write_steps(dir, &plan, PREFIX, NULL, NULL), 0);
    write_text(dir, "kubectl",
               "#!/bin/sh\n"
               "[ \"$1\" = get ] && exit 1\n"
               "echo \"$@\" >> log.txt\n");
    weft_autofree char *kubectl = weft_asprintf("%s/kubectl", dir);
    CHECK_INT(chmod(kubectl, 0755), 0);
    weft_autofree char *script = weft_asprintf("%s/run.sh", dir);
    const pid_t child = fork();
    if (child == 0) {
        (void)setenv("KUBECTL", "./kubectl", 1);
        (void)execl("/bin/sh", "sh", script, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    check_golden(dir, "log.txt", "log.txt");
}

static void many_steps(void)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set none = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set many = {0};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    weft_autofree char *dir = new_dir("many");
    for (int i = 0; i < 1000; i++) {
        char name[32];
        char members[32];
        (void)snprintf(name, sizeof(name), "leaf-%04d", i);
        (void)snprintf(members, sizeof(members), "n:node-%04d", i);
        hn_put(&many, name, 1, members);
    }
    CHECK_INT(make_plan(&none, &many, &plan), 0);
    CHECK_INT(weft_folder_write_steps(dir, &plan, PREFIX, NULL, NULL), 0);
    CHECK(is_there(dir, "0001-create-leaf-0000.yaml"));
    CHECK(is_there(dir, "1000-create-leaf-0999.yaml"));
}

static void torture(void)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set before = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set after = {0};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    weft_autofree char *dir = new_dir("torture");
    make_old(&before);
    make_new(&after);
    CHECK_INT(make_plan(&before, &after, &plan), 0);
    int rc = -ENOMEM;
    uint64_t n = 1;
    for (; rc == -ENOMEM && n < 5000; n++) {
        weft_auto(weft_hypernode_set_done) struct weft_hypernode_set back = {0};
        struct weft_error err = {0};
        (void)weft_mem_fail_after(n);
        rc = weft_folder_write(dir, &before, PREFIX, NULL, &err);
        rc = rc == 0 ? weft_folder_write_steps(dir, &plan, PREFIX, NULL, &err) : rc;
        rc = rc == 0 ? weft_folder_read(dir, PREFIX, &back, &err) : rc;
        (void)weft_mem_fail_after(0);
    }
    CHECK_INT(rc, 0);
    CHECK(n > 100);
}

WEFT_SUITE(apply_folder, {"first install", first_install}, {"read back", read_back},
           {"sweep", sweep}, {"in the way", in_the_way}, {"bad names", bad_names}, {"steps", steps},
           {"script runs", script_runs}, {"many steps", many_steps}, {"torture", torture})
