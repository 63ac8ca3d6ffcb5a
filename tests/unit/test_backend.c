/* SPDX-License-Identifier: Apache-2.0 */
/* Which backend answers for a machine, what is said where none does, and the watch over calls. */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "pkg/base/clock.h"
#include "pkg/machine/discover.h"
#include "tests/unit/conform.h"
#include "tests/unit/unit.h"

/* Two vendors of this test, told by these what to do. */
static struct {
    bool probe;
    int open, enumerate; /* what they return */
    size_t devices;
    int opened; /* now */
} one, two;

static bool probe_one(const struct weft_backend_options *options)
{
    (void)options;
    return one.probe;
}

static bool probe_two(const struct weft_backend_options *options)
{
    (void)options;
    return two.probe;
}

static int open_one(const struct weft_backend_options *options, void **ret_state,
                    struct weft_error *err)
{
    (void)options;
    if (one.open < 0) {
        return weft_err_set(err, one.open, WEFT_ERR_CONFIG, "its driver sleeps");
    }
    one.opened++;
    *ret_state = &one;
    return 0;
}

static int open_two(const struct weft_backend_options *options, void **ret_state,
                    struct weft_error *err)
{
    (void)options;
    (void)err;
    two.opened++;
    *ret_state = &two;
    return two.open;
}

static int make(size_t devices, const char *vendor, struct weft_machine **ret_machine,
                struct weft_error *err)
{
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    const int rc = weft_machine_new("test", devices, 0, &m, err);
    if (rc < 0) {
        return rc;
    }
    weft_free(m->vendor);
    m->vendor = weft_strdup(vendor);
    if (m->vendor == NULL) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < devices; i++) {
        (void)snprintf(m->devices[i].id, sizeof(m->devices[i].id), "%s-%zu", vendor, i);
    }
    *ret_machine = weft_steal(&m);
    return 0;
}

static int enumerate_one(void *state, struct weft_machine **ret_machine, struct weft_error *err)
{
    (void)state;
    return one.enumerate < 0
               ? weft_err_set(err, one.enumerate, WEFT_ERR_CONFIG, "its library is confused")
               : make(one.devices, "one", ret_machine, err);
}

static int enumerate_two(void *state, struct weft_machine **ret_machine, struct weft_error *err)
{
    (void)state;
    return make(two.devices, "two", ret_machine, err);
}

static void close_one(void *state)
{
    one.opened -= state != NULL;
}

static void close_two(void *state)
{
    two.opened -= state != NULL;
}

static const struct weft_backend backend_one = {.vendor = "one",
                                                .probe = probe_one,
                                                .open = open_one,
                                                .enumerate = enumerate_one,
                                                .close = close_one};
static const struct weft_backend backend_two = {.vendor = "two",
                                                .probe = probe_two,
                                                .open = open_two,
                                                .enumerate = enumerate_two,
                                                .close = close_two};
static const struct weft_backend *const both[] = {&backend_one, &backend_two, NULL};

/* Connects, checks who answered ("" nobody), that only it is open, and the first warning. */
static void expect(const char *vendor, const char *only, size_t devices, const char *warning)
{
    struct weft_backend_handle handle = {0};
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    struct weft_error err = {0};
    const struct weft_backend_options options = {.vendor = only};
    if (!CHECK_INT(weft_backend_connect(both, &options, &handle, &m, &err), 0)) {
        return;
    }
    CHECK_STR(handle.backend != NULL ? handle.backend->vendor : "", vendor);
    CHECK_STR(m->vendor, handle.backend != NULL ? vendor : only != NULL ? only : "");
    CHECK_INT(m->device_count, devices);
    CHECK_INT(one.opened, strcmp(vendor, "one") == 0);
    CHECK_INT(two.opened, strcmp(vendor, "two") == 0);
    CHECK_STR(m->warning_count > 0 ? m->warnings[0] : "", warning);
    weft_backend_disconnect(&handle);
    weft_backend_disconnect(&handle);
    CHECK_INT(one.opened + two.opened, 0);
}

static void the_first_backend_with_a_device_answers(void)
{
    memset(&one, 0, sizeof(one));
    memset(&two, 0, sizeof(two));
    expect("", NULL, 0, "no accelerator and no driver of one was found");
    CHECK(!weft_backend_probe(both, &(struct weft_backend_options){0}));
    one.probe = two.probe = true;
    one.devices = 2;
    two.devices = 3;
    CHECK(weft_backend_probe(both, &(struct weft_backend_options){.vendor = "two"}));
    expect("one", NULL, 2, "");
    expect("two", "two", 3, "");
    one.devices = 0;
    expect("two", NULL, 3, "");
    two.devices = 0;
    expect("", NULL, 0, "one: the driver knows no device");
    one.open = -ENODEV;
    expect("", NULL, 0, "one: its driver sleeps");
    one.open = 0;
    one.enumerate = -EIO;
    expect("", NULL, 0, "one: its library is confused");
    two.devices = 1;
    expect("two", NULL, 1, "");
}

/* What a node is said to have has a name without a device, too: --vendor amd is amd.com/gpu. */
static void nothing_is_of_the_vendor_that_was_asked_for(void)
{
    static const char *const asked[] = {"one", NULL};
    for (size_t i = 0; i < 2; i++) {
        const struct weft_backend_options options = {.vendor = asked[i]};
        struct weft_backend_handle handle = {0};
        weft_auto(weft_machine_free) struct weft_machine *m = NULL;
        one.probe = two.probe = false;
        if (CHECK_INT(weft_backend_connect(both, &options, &handle, &m, NULL), 0)) {
            CHECK_INT(m->device_count, 0);
            CHECK_STR(m->vendor, i == 0 ? "one" : "");
        }
    }
}

static void an_unknown_vendor_is_wrong_use(void)
{
    struct weft_backend_handle handle = {0};
    struct weft_machine *m = NULL;
    struct weft_error err = {0};
    const struct weft_backend_options options = {.vendor = "three"};
    CHECK_INT(weft_backend_connect(both, &options, &handle, &m, &err), -EINVAL);
    CHECK_STR(err.message, "\"three\" is no vendor that weft can ask, which are: one, two");
}

static void lack_of_memory_is_told_and_closes_all(void)
{
    one.probe = two.probe = true;
    one.open = one.enumerate = 0;
    one.devices = 0;
    two.devices = 2;
    int rc = -ENOMEM;
    uint64_t count = 1;
    for (; rc < 0 && count < 200; count++) {
        struct weft_backend_handle handle = {0};
        weft_auto(weft_machine_free) struct weft_machine *m = NULL;
        (void)weft_mem_fail_after(count);
        rc = weft_backend_connect(both, &(struct weft_backend_options){0}, &handle, &m, NULL);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || rc == -ENOMEM);
        weft_backend_disconnect(&handle);
        CHECK_INT(one.opened + two.opened, 0);
    }
    CHECK(count > 5 && count < 200);
}

static void a_call_that_hangs_is_seen(void)
{
    struct weft_backend_watch watch = {0};
    const char *call = NULL;
    CHECK(weft_backend_late(&watch, 1000, 10, &call) == INT64_MIN);
    const int64_t before = weft_clock_monotonic(weft_clock_system());
    weft_backend_enter(&watch, "nvmlInit_v2", 5 * WEFT_NS_PER_S);
    const int64_t after = weft_clock_monotonic(weft_clock_system());
    /* begun between before and after; 10 s on: 10 of 2 + 5 allowed ones are gone */
    const int64_t late =
        weft_backend_late(&watch, before + 10 * WEFT_NS_PER_S, 2 * WEFT_NS_PER_S, &call);
    CHECK(late <= 3 * WEFT_NS_PER_S && late >= 3 * WEFT_NS_PER_S - (after - before));
    CHECK_STR(call, "nvmlInit_v2");
    CHECK(weft_backend_late(&watch, after + 6 * WEFT_NS_PER_S, 2 * WEFT_NS_PER_S, &call) < 0);
    weft_backend_leave(&watch);
    CHECK(weft_backend_late(&watch, after + 60 * WEFT_NS_PER_S, 0, &call) == INT64_MIN);
    CHECK_INT(watch.calls, 1);
    weft_backend_enter(NULL, "x", 0);
    weft_backend_leave(NULL);
}

static const struct weft_backend_calls *kind_of(const struct weft_backend_watch *watch,
                                                const char *call)
{
    for (size_t i = 0; i < WEFT_BACKEND_CALLS_MAX && watch->kinds[i].call != NULL; i++) {
        if (strcmp(watch->kinds[i].call, call) == 0) {
            return &watch->kinds[i];
        }
    }
    return NULL;
}

static void calls_are_counted_by_kind(void)
{
    static struct weft_backend_watch watch;
    static char names[WEFT_BACKEND_CALLS_MAX + 10][16];
    const int64_t begin = weft_clock_monotonic(weft_clock_system());
    for (int i = 0; i < 3; i++) {
        weft_backend_enter(&watch, "look", 0);
        const struct timespec time = {.tv_nsec = 5 * WEFT_NS_PER_MS};
        (void)nanosleep(&time, NULL);
        weft_backend_leave(&watch);
    }
    const int64_t took = weft_clock_monotonic(weft_clock_system()) - begin;
    weft_backend_enter(&watch, "wait", WEFT_NS_PER_S); /* waiting is no work */
    weft_backend_leave(&watch);
    CHECK(kind_of(&watch, "wait") == NULL);
    const struct weft_backend_calls *look = kind_of(&watch, "look");
    if (CHECK_INT(look != NULL, 1) && look != NULL) {
        CHECK_INT(look->count, 3);
        CHECK(look->total_ns >= 15 * WEFT_NS_PER_MS && look->total_ns <= took);
    }
    /* 64 kinds have a place: look and 62 others, and one for all that come later */
    for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
        (void)snprintf(names[i], sizeof(names[i]), "call-%zu", i);
        weft_backend_enter(&watch, names[i], 0);
        weft_backend_leave(&watch);
    }
    CHECK(kind_of(&watch, "call-61") != NULL);
    CHECK(kind_of(&watch, "call-62") == NULL);
    const struct weft_backend_calls *others = kind_of(&watch, "others");
    CHECK_INT(others != NULL ? others->count : 0, WEFT_ARRAY_LEN(names) - 62);
}

static void paths_are_below_the_host_root(void)
{
    static const struct {
        const char *root, *path;
    } rows[] = {{NULL, "/dev/nvidiactl"},
                {"", "/dev/nvidiactl"},
                {"/", "/dev/nvidiactl"},
                {"/host", "/host/dev/nvidiactl"},
                {"/host//", "/host/dev/nvidiactl"}};
    char path[WEFT_MACHINE_PATH_MAX];
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        const struct weft_backend_options options = {.host_root = rows[i].root};
        CHECK_INT(weft_backend_host_path(&options, "/dev/nvidiactl", path), 0);
        CHECK_STR(path, rows[i].path);
    }
    char root[WEFT_MACHINE_PATH_MAX];
    memset(root, 'r', sizeof(root) - 1);
    root[sizeof(root) - 1] = '\0';
    const struct weft_backend_options options = {.host_root = root};
    CHECK_INT(weft_backend_host_path(&options, "/dev", path), -ENAMETOOLONG);
    CHECK(!weft_backend_host_has(&options, "/dev"));
    const struct weft_backend_options here = {.host_root = weft_test_dir()};
    CHECK(weft_backend_host_has(&here, ""));
    CHECK(!weft_backend_host_has(&here, "/dev/nvidiactl"));
}

static void this_machine_can_always_be_asked(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    const struct weft_backend_options options = {.host_root = weft_test_dir()};
    CHECK_INT(weft_machine_discover(&options, &m, NULL), 0);
    if (m != NULL) {
        CHECK_INT(m->device_count, 0);
        CHECK_INT(m->warning_count, 1);
    }
}

static void a_copy_is_the_same_machine_again(void)
{
    weft_auto(weft_machine_free) struct weft_machine *from = NULL;
    CHECK_INT(weft_machine_load(weft_fixture("machine/hgx-h100-8.json"), &from, NULL), 0);
    if (from == NULL || !CHECK_INT(weft_machine_warn(from, "%s", "100%% odd"), 0)) {
        return;
    }
    int rc = -ENOMEM;
    uint64_t count = 1;
    for (; rc < 0 && count < 500; count++) {
        weft_auto(weft_machine_free) struct weft_machine *to = NULL;
        (void)weft_mem_fail_after(count);
        rc = weft_machine_copy(from, &to, NULL);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || (rc == -ENOMEM && to == NULL));
        if (rc == 0) {
            CHECK(weft_machine_equal(from, to));
            CHECK_STR(to->name, from->name);
            CHECK_STR(to->devices[3].nodes[0], "/dev/nvidia3");
            CHECK(to->devices[3].nodes[0] != from->devices[3].nodes[0]);
            CHECK_INT(to->warning_count, 1);
            CHECK_STR(to->warnings[0], from->warnings[0]);
        }
    }
    CHECK(count > 10 && count < 500);
}

/* A row for each vendor's backend and machine stands in that vendor's own suite; this one shows
 * that the conformance test itself accepts a right backend. */
static void a_plain_backend_conforms(void)
{
    one.probe = true;
    one.open = one.enumerate = 0;
    one.devices = 3;
    conform(&(struct conform_case){.backend = &backend_one, .devices = 3});
}

WEFT_SUITE(backend,
           {"the first backend with a device answers", the_first_backend_with_a_device_answers},
           {"nothing is of the vendor that was asked for",
            nothing_is_of_the_vendor_that_was_asked_for},
           {"an unknown vendor is wrong use", an_unknown_vendor_is_wrong_use},
           {"lack of memory is told and closes all", lack_of_memory_is_told_and_closes_all},
           {"a call that hangs is seen", a_call_that_hangs_is_seen},
           {"calls are counted by kind", calls_are_counted_by_kind},
           {"paths are below the host root", paths_are_below_the_host_root},
           {"this machine can always be asked", this_machine_can_always_be_asked},
           {"a copy is the same machine again", a_copy_is_the_same_machine_again},
           {"a plain backend conforms", a_plain_backend_conforms})
