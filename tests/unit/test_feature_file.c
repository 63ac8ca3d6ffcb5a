/* SPDX-License-Identifier: Apache-2.0 */
/* The file with labels: when it is written, and what stands in it. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "deviceplugin/feature-file.h"
#include "deviceplugin/options.h"
#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/base/mem.h"
#include "pkg/loop/loop.h"
#include "pkg/machine/machine.h"
#include "tests/unit/unit.h"

struct bench {
    char dir[200], path[300], temporary[300], type[300];
    int64_t now_ns;
    struct weft_clock clock;
    struct weft_options options;
    struct weft_loop *loop;
    struct weft_feature_file *file;
    struct weft_machine *machine;
};

static int64_t at(void *data)
{
    return *(const int64_t *)data;
}

static void up(struct bench *b)
{
    static int number;
    *b = (struct bench){.now_ns = INT64_C(1764500000) * WEFT_NS_PER_S};
    (void)snprintf(b->dir, sizeof(b->dir), "%s/ff%d", weft_test_dir(), number++);
    (void)snprintf(b->path, sizeof(b->path), "%s/weft", b->dir);
    (void)snprintf(b->temporary, sizeof(b->temporary), "%s/.weft.tmp-0", b->dir);
    (void)snprintf(b->type, sizeof(b->type), "%s/type", b->dir);
    CHECK_INT(mkdir(b->dir, 0700), 0);
    CHECK_INT(weft_file_replace(b->type, "Model 7\nmore\n", 13, 0600, NULL), 0);
    b->clock = (struct weft_clock){.monotonic = at, .realtime = at, .data = &b->now_ns};
    b->options.labels.file = b->path;
    b->options.labels.machine_type = b->type;
    CHECK_INT(weft_loop_new(&b->loop, NULL), 0);
    const struct weft_feature_file_options options = {
        .loop = b->loop, .options = &b->options, .clock = &b->clock};
    CHECK_INT(weft_feature_file_new(&options, &b->file, NULL), 0);
    CHECK_INT(weft_machine_load(weft_fixture("features/a100x2.json"), &b->machine, NULL), 0);
}

static void down(struct bench *b)
{
    weft_feature_file_free(b->file);
    weft_loop_free(b->loop);
    weft_machine_free(b->machine);
}

/* The file's text; "" if it is not there. The caller frees it. */
static char *content(const struct bench *b)
{
    char *text = NULL;
    return weft_file_read(b->path, 1 << 20, &text, NULL, NULL) == 0 ? text : weft_strdup("");
}

static ino_t inode_of(const char *path)
{
    struct stat st = {0};
    CHECK_INT(stat(path, &st), 0);
    return st.st_ino;
}

static void is_written_when_it_changes_and_only_then(void)
{
    struct bench b;
    up(&b);
    weft_feature_file_update(b.file, b.machine);
    weft_autofree char *first = content(&b);
    CHECK_CONTAINS(first,
                   "nvidia.com/gfd.timestamp=1764500000\nnvidia.com/cuda.driver-version.full");
    CHECK_CONTAINS(first, "nvidia.com/gpu.machine=Model-7\n");
    CHECK_CONTAINS(first, "nvidia.com/gpu.count=2\n");
    struct stat st = {0};
    CHECK_INT(stat(b.path, &st), 0);
    CHECK_INT(st.st_mode & 07777, 0644);
    CHECK(access(b.temporary, F_OK) < 0);
    const ino_t inode = inode_of(b.path);
    b.now_ns += 60 * WEFT_NS_PER_S;
    weft_feature_file_update(b.file, b.machine);
    CHECK(inode_of(b.path) == inode);
    b.machine->devices[0].healthy = false; /* no label says it */
    weft_feature_file_update(b.file, b.machine);
    CHECK(inode_of(b.path) == inode);
    b.machine->devices[0].memory_mib = 81920;
    weft_feature_file_update(b.file, b.machine);
    weft_autofree char *second = content(&b);
    CHECK_CONTAINS(second, "nvidia.com/gfd.timestamp=1764500060\n");
    CHECK_CONTAINS(second, "nvidia.com/gpu.memory=81920\n");
    /* somebody else's change is taken back */
    CHECK_INT(weft_file_replace(b.path, "a=b\n", 4, 0600, NULL), 0);
    weft_feature_file_update(b.file, b.machine);
    weft_autofree char *third = content(&b);
    CHECK_STR(third, second);
    b.options.labels.no_timestamp = true;
    weft_feature_file_update(b.file, b.machine);
    weft_autofree char *fourth = content(&b);
    CHECK(strstr(fourth, "timestamp") == NULL);
    down(&b);
}

/* A plugin that starts anew finds what the one before it wrote, and it stays when both are gone. */
static void stays_over_restarts(void)
{
    struct bench b;
    up(&b);
    weft_feature_file_update(b.file, b.machine);
    const ino_t inode = inode_of(b.path);
    weft_feature_file_free(b.file);
    const struct weft_feature_file_options options = {
        .loop = b.loop, .options = &b.options, .clock = &b.clock};
    CHECK_INT(weft_feature_file_new(&options, &b.file, NULL), 0);
    b.now_ns += 60 * WEFT_NS_PER_S;
    weft_feature_file_update(b.file, b.machine);
    CHECK(inode_of(b.path) == inode);
    weft_machine_free(b.machine);
    b.machine = NULL;
    CHECK_INT(weft_machine_new("nothing", 0, 0, &b.machine, NULL), 0);
    CHECK_INT(weft_machine_warn(b.machine, "the driver is not loaded"), 0);
    weft_feature_file_update(b.file, b.machine);
    CHECK(inode_of(b.path) == inode);
    down(&b);
    CHECK(access(b.path, F_OK) == 0);
}

/* Removed or damaged by somebody, it comes back without a change of the machine. */
static void comes_back(void)
{
    struct bench b;
    const bool never = false;
    up(&b);
    weft_feature_file_free(b.file);
    const struct weft_feature_file_options options = {
        .loop = b.loop, .options = &b.options, .clock = &b.clock, .again_ns = 20 * WEFT_NS_PER_MS};
    CHECK_INT(weft_feature_file_new(&options, &b.file, NULL), 0);
    weft_feature_file_update(b.file, b.machine);
    weft_autofree char *whole = content(&b);
    CHECK_CONTAINS(whole, "nvidia.com/gpu.count=2\n");
    for (int damaged = 0; damaged < 2; damaged++) {
        CHECK_INT(damaged ? weft_file_replace(b.path, "garbage", 7, 0644, NULL) : unlink(b.path),
                  0);
        bool back = false;
        for (int i = 0; i < 500 && !back; i++) {
            (void)weft_loop_run_until(b.loop, &never, 10 * WEFT_NS_PER_MS);
            weft_autofree char *text = content(&b);
            back = strcmp(text, whole) == 0;
        }
        CHECK(back);
    }
    down(&b);
}

static void what_cannot_be_written_harms_nothing(void)
{
    struct bench b;
    up(&b);
    char other[320];
    (void)snprintf(other, sizeof(other), "%s/no/folder", b.dir);
    b.options.labels.file = other;
    weft_feature_file_update(b.file, b.machine);
    CHECK(access(other, F_OK) < 0);
    b.options.labels.file = NULL; /* not asked for any more */
    weft_feature_file_update(b.file, b.machine);
    b.options.labels.file = b.path;
    b.options.labels.machine_type = other; /* unknown, then */
    weft_feature_file_update(b.file, b.machine);
    weft_autofree char *text = content(&b);
    CHECK_CONTAINS(text, "nvidia.com/gpu.machine=unknown\n");
    for (uint64_t nth = 1; nth < 60; nth++) { /* the file is whole at any time */
        b.machine->devices[0].memory_mib = 1000 + nth;
        (void)weft_mem_fail_after(nth);
        weft_feature_file_update(b.file, b.machine);
        (void)weft_mem_fail_after(0);
        weft_autofree char *now = content(&b);
        CHECK_CONTAINS(now, "nvidia.com/gpu.count=2\n");
        CHECK_CONTAINS(now, "nvidia.com/mps.capable=false\n");
    }
    weft_autofree char *last = content(&b);
    CHECK_CONTAINS(last, "nvidia.com/gpu.memory=1059\n");
    down(&b);
}

/* Were it renamed over, as root and with a path like /dev/stdout, it would be gone for all. */
static void a_device_or_a_pipe_stays_what_it_is(void)
{
    struct bench b;
    struct stat st = {0};
    struct weft_error err = {0};
    up(&b);
    CHECK_INT(mkfifo(b.path, 0600), 0);
    weft_feature_file_update(b.file, b.machine);
    CHECK_INT(lstat(b.path, &st), 0);
    CHECK(S_ISFIFO(st.st_mode));
    CHECK(access(b.temporary, F_OK) < 0);
    CHECK_INT(weft_feature_file_remove(b.path, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "is no regular file");
    CHECK_INT(lstat(b.path, &st), 0);
    CHECK_INT(unlink(b.path), 0);
    CHECK_INT(weft_feature_file_remove(b.path, &err), 0);
    weft_feature_file_update(b.file, b.machine);
    CHECK_INT(weft_file_replace(b.temporary, "half", 4, 0600, NULL),
              0); /* by one that was killed */
    CHECK_INT(weft_feature_file_remove(b.path, &err), 0);
    CHECK(access(b.path, F_OK) < 0);
    CHECK(access(b.temporary, F_OK) < 0);
    down(&b);
}

WEFT_SUITE(feature_file,
           {"is written when it changes, and only then", is_written_when_it_changes_and_only_then},
           {"stays over restarts", stays_over_restarts}, {"comes back", comes_back},
           {"what cannot be written harms nothing", what_cannot_be_written_harms_nothing},
           {"a device or a pipe stays what it is", a_device_or_a_pipe_stays_what_it_is})
