/* SPDX-License-Identifier: Apache-2.0 */
/* A watched file: every way in which what stands at a path can become something else. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "deviceplugin/filewatch.h"
#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/base/mem.h"
#include "pkg/loop/loop.h"
#include "tests/unit/unit.h"

struct bench {
    char dir[200], path[300], other[300];
    struct weft_loop *loop;
    struct weft_filewatch *watch;
    int count;
    bool seen;
};

static void on_changed(void *data)
{
    struct bench *b = data;
    b->count++;
    b->seen = true;
}

static void put(const char *path, const char *text)
{
    CHECK_INT(weft_file_replace(path, text, strlen(text), 0600, NULL), 0);
}

static void up(struct bench *b)
{
    static int number;
    *b = (struct bench){0};
    (void)snprintf(b->dir, sizeof(b->dir), "%s/fw%d", weft_test_dir(), number++);
    (void)snprintf(b->path, sizeof(b->path), "%s/file", b->dir);
    (void)snprintf(b->other, sizeof(b->other), "%s/other", b->dir);
    CHECK_INT(mkdir(b->dir, 0700), 0);
    CHECK_INT(weft_loop_new(&b->loop, NULL), 0);
}

static void watch(struct bench *b, const char *path)
{
    CHECK_INT(weft_filewatch_new(b->loop, path, on_changed, b, &b->watch, NULL), 0);
}

static void down(struct bench *b)
{
    weft_filewatch_free(b->watch);
    weft_loop_free(b->loop);
}

/* Was a change told within two seconds? */
static bool told(struct bench *b)
{
    b->seen = false;
    return weft_loop_run_until(b->loop, &b->seen, 2 * WEFT_NS_PER_S);
}

static bool quiet(struct bench *b)
{
    b->seen = false;
    return !weft_loop_run_until(b->loop, &b->seen, 300 * WEFT_NS_PER_MS);
}

static void a_file_that_is_written_replaced_removed_and_made(void)
{
    struct bench b;
    up(&b);
    put(b.path, "one");
    watch(&b, b.path);
    CHECK(!weft_filewatch_polls(b.watch));
    CHECK(quiet(&b));
    put(b.path, "two!");
    CHECK(told(&b));
    FILE *file = fopen(b.path, "ae"); /* in place */
    CHECK(file != NULL && fputs("more", file) >= 0 && fclose(file) == 0);
    CHECK(told(&b));
    CHECK_INT(unlink(b.path), 0);
    CHECK(told(&b));
    put(b.path, "three");
    CHECK(told(&b));
    put(b.other, "not ours");
    CHECK(quiet(&b));
    down(&b);
}

static void several_writes_are_one_change(void)
{
    struct bench b;
    up(&b);
    put(b.path, "0");
    watch(&b, b.path);
    for (int i = 0; i < 20; i++) {
        put(b.path, i % 2 == 0 ? "some" : "others");
    }
    CHECK(told(&b));
    CHECK(quiet(&b));
    CHECK_INT(b.count, 1);
    down(&b);
}

static void set_link(const char *dir, const char *name, const char *target)
{
    char path[400], fresh[400];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    (void)snprintf(fresh, sizeof(fresh), "%s/%s.tmp", dir, name);
    CHECK_INT(symlink(target, fresh), 0);
    CHECK_INT(rename(fresh, path), 0);
}

static void put_in(const char *dir, const char *folder, const char *text)
{
    char path[500];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, folder);
    CHECK_INT(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/%s/file", dir, folder);
    put(path, text);
}

/* As the kubelet sets a ConfigMap anew: file -> ..data/file, ..data -> ..<time>. */
static void a_configmap(void)
{
    struct bench b;
    up(&b);
    put_in(b.dir, "..1", "one");
    set_link(b.dir, "..data", "..1");
    set_link(b.dir, "file", "..data/file");
    watch(&b, b.path);
    CHECK(!weft_filewatch_polls(b.watch));
    for (int i = 2; i < 6; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "..%d", i);
        put_in(b.dir, name, "same"); /* another file of the same length counts too */
        CHECK(quiet(&b));
        set_link(b.dir, "..data", name);
        CHECK(told(&b));
    }
    down(&b);
}

/* As a config manager does it: a link elsewhere that is removed and made; then what it leads to
 * changes by itself. */
static void a_link_out_of_the_folder(void)
{
    struct bench b;
    up(&b);
    char far[300], link[300];
    (void)snprintf(far, sizeof(far), "%s/far", b.dir);
    (void)snprintf(link, sizeof(link), "%s/near/link", b.dir);
    put_in(b.dir, "far", "one");
    put_in(b.dir, "near", "unused");
    char target[400];
    (void)snprintf(target, sizeof(target), "%s/file", far);
    CHECK_INT(symlink(target, link), 0);
    watch(&b, link);
    put(target, "two!");
    CHECK(told(&b));
    CHECK_INT(unlink(link), 0);
    put(b.other, "three");
    CHECK_INT(symlink("../other", link), 0);
    CHECK(told(&b));
    put(target, "nobody's now");
    CHECK(quiet(&b));
    put(b.other, "four");
    CHECK(told(&b));
    down(&b);
}

static void a_folder_that_goes_and_comes_back(void)
{
    struct bench b;
    up(&b);
    char sub[300], path[400];
    (void)snprintf(sub, sizeof(sub), "%s/sub", b.dir);
    (void)snprintf(path, sizeof(path), "%s/file", sub);
    put_in(b.dir, "sub", "one");
    watch(&b, path);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(rmdir(sub), 0);
    CHECK(told(&b));
    CHECK(quiet(&b));
    put_in(b.dir, "sub", "two");
    CHECK(told(&b));
    put(path, "three");
    CHECK(told(&b));
    /* moved away with all in it, and another one put there */
    CHECK_INT(rename(sub, b.other), 0);
    CHECK(told(&b));
    put_in(b.dir, "sub", "four");
    CHECK(told(&b));
    down(&b);
}

static void a_folder_is_looked_at_now_and_then(void)
{
    struct bench b;
    up(&b);
    watch(&b, b.dir);
    CHECK(weft_filewatch_polls(b.watch));
    down(&b);
}

static void links_that_lead_nowhere(void)
{
    struct bench b;
    up(&b);
    CHECK_INT(symlink("file", b.path), 0); /* to itself */
    watch(&b, b.path);
    CHECK(quiet(&b));
    CHECK_INT(unlink(b.path), 0);
    put(b.path, "at last");
    CHECK(told(&b));
    down(&b);
}

static void without_memory(void)
{
    struct bench b;
    up(&b);
    put(b.path, "one");
    int rc = -1;
    for (uint64_t nth = 1; nth < 50 && rc < 0; nth++) {
        (void)weft_mem_fail_after(nth);
        rc = weft_filewatch_new(b.loop, b.path, on_changed, &b, &b.watch, NULL);
        (void)weft_mem_fail_after(0);
    }
    CHECK_INT(rc, 0);
    down(&b);
}

WEFT_SUITE(filewatch,
           {"a file that is written, replaced, removed and made",
            a_file_that_is_written_replaced_removed_and_made},
           {"several writes are one change", several_writes_are_one_change},
           {"a ConfigMap", a_configmap}, {"a link out of the folder", a_link_out_of_the_folder},
           {"a folder that goes and comes back", a_folder_that_goes_and_comes_back},
           {"a folder is looked at now and then", a_folder_is_looked_at_now_and_then},
           {"links that lead nowhere", links_that_lead_nowhere}, {"without memory", without_memory})
