/* SPDX-License-Identifier: Apache-2.0 */
/* Options and machines that change while the plugin runs. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "deviceplugin/options.h"
#include "deviceplugin/reload.h"
#include "deviceplugin/stats.h"
#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/base/mem.h"
#include "pkg/loop/loop.h"
#include "tests/unit/proc.h"
#include "tests/unit/unit.h"

#define PAIRS "tests/fixtures/machine/pairs8.json"
#define HEAD "apiVersion: weft.dev/v1alpha1\nkind: DevicePluginConfig\n"

static char *no_env(const char *name)
{
    (void)name;
    return NULL;
}

static void put(const char *path, const char *text)
{
    CHECK_INT(weft_file_replace(path, text, strlen(text), 0600, NULL), 0);
}

static void copy_file(const char *from, const char *to)
{
    weft_autofree char *text = NULL;
    size_t len = 0;
    CHECK_INT(weft_file_read(from, 1U << 20, &text, &len, NULL), 0);
    CHECK_INT(weft_file_replace(to, text, len, 0600, NULL), 0);
}

/* ---- the reload alone ---- */

struct bench {
    char file[300];
    char program[8], flag[16];
    char *argv[4];
    struct weft_loop *loop;
    struct weft_options options;
    struct weft_stats stats;
    struct weft_reload *reload;
    int applied;
    const char *refuse; /* a resource that apply does not want */
};

static int apply(void *data, struct weft_error *err)
{
    struct bench *b = data;
    const char *resource = b->options.pools.resource;
    b->applied++;
    return b->refuse != NULL && resource != NULL && strcmp(resource, b->refuse) == 0
               ? weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "no %s here", resource)
               : 0;
}

static void up(struct bench *b, const char *text)
{
    static int number;
    *b = (struct bench){.program = "plugin", .flag = "--config"};
    (void)snprintf(b->file, sizeof(b->file), "%s/reload%d.yaml", weft_test_dir(), number++);
    put(b->file, text);
    b->argv[0] = b->program;
    b->argv[1] = b->flag;
    b->argv[2] = b->file;
    struct weft_error err = {0};
    CHECK_INT(weft_options_read(3, b->argv, no_env, &b->options, &err), 0);
    CHECK_STR(err.message, "");
    CHECK_INT(weft_loop_new(&b->loop, NULL), 0);
    const struct weft_reload_options options = {
        .loop = b->loop,
        .command = {.argc = 3, .argv = b->argv, .env = no_env},
        .options = &b->options,
        .apply = apply,
        .data = b,
        .stats = &b->stats};
    CHECK_INT(weft_reload_new(&options, &b->reload, NULL), 0);
}

static void down(struct bench *b)
{
    weft_reload_free(b->reload);
    weft_loop_free(b->loop);
    weft_options_done(&b->options);
    weft_stats_done(&b->stats);
}

static void good_options_are_used_and_equal_ones_change_nothing(void)
{
    struct bench b;
    up(&b, HEAD "resource: a.com/one\npluginDir: /plugins\n");
    const char *folder = b.options.plugin_dir;
    put(b.file, HEAD "resource: a.com/two\npluginDir: /plugins\nallocationPolicy: packed\n");
    weft_reload_now(b.reload);
    CHECK_STR(b.options.pools.resource, "a.com/two");
    CHECK_INT(b.options.policy, WEFT_POLICY_PACKED);
    CHECK_INT(b.stats.config_used, 1);
    CHECK_INT(b.applied, 1);
    CHECK(b.options.plugin_dir == folder); /* others point to it */
    put(b.file, HEAD "# other words\nallocationPolicy: packed\npluginDir: /plugins\n"
                     "resource: a.com/two\n");
    weft_reload_now(b.reload);
    CHECK_INT(b.stats.config_unchanged, 1);
    CHECK_INT(b.applied, 1);
    put(b.file, HEAD "pluginDir: /plugins\n"); /* defaults come back */
    weft_reload_now(b.reload);
    CHECK(b.options.pools.resource == NULL);
    CHECK_INT(b.options.policy, WEFT_POLICY_PERFORMANCE);
    down(&b);
}

static void bad_options_leave_the_last_good_ones(void)
{
    static const struct {
        const char *text, *problem;
    } rows[] = {
        {HEAD "resource: a.com/two\nallocationPolicy: best\n",
         "yaml:4: allocationPolicy: \"best\""},
        {HEAD "resource: a.com/two\ncolour: red\n", "yaml:4: colour: unknown field"},
        {"{", "yaml"},
        {HEAD "resource: a.com/two\npluginDir: /other\n", "pluginDir cannot change while"},
        {HEAD "resource: a.com/two\nmachine: /m.json\n", "machine cannot change while"},
        {HEAD "resource: a.com/refused\n", "no a.com/refused here"},
    };
    struct bench b;
    up(&b, HEAD "resource: a.com/one\n");
    b.refuse = "a.com/refused";
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        put(b.file, rows[i].text);
        weft_reload_now(b.reload);
        CHECK_CONTAINS(b.stats.config_problem, rows[i].problem);
        CHECK_STR(b.options.pools.resource, "a.com/one");
        CHECK_INT(b.stats.config_refused, i + 1);
    }
    CHECK_INT(b.applied, 2); /* what was refused, and what was before */
    CHECK_INT(unlink(b.file), 0);
    weft_reload_now(b.reload);
    CHECK_CONTAINS(b.stats.config_problem, "No such file");
    CHECK_STR(b.options.pools.resource, "a.com/one");
    put(b.file, HEAD "resource: a.com/one\n");
    weft_reload_now(b.reload);
    CHECK_STR(b.stats.config_problem, "");
    down(&b);
}

static void a_changed_file_is_seen(void)
{
    struct bench b;
    up(&b, HEAD "resource: a.com/one\n");
    const bool never = false;
    CHECK(!weft_loop_run_until(b.loop, &never, 300 * WEFT_NS_PER_MS));
    CHECK_INT(b.stats.config_unchanged + b.stats.config_used + b.stats.config_refused, 0);
    put(b.file, HEAD "resource: a.com/two\n");
    (void)weft_loop_run_until(b.loop, &never, WEFT_NS_PER_S);
    CHECK_STR(b.options.pools.resource, "a.com/two");
    CHECK_INT(b.applied, 1);
    down(&b);
}

static void without_memory_nothing_changes(void)
{
    struct bench b;
    up(&b, HEAD "resource: a.com/one\n");
    put(b.file, HEAD "resource: a.com/two\nsharing:\n  resources:\n"
                     "  - {name: a.com/two, replicas: 2}\n");
    uint64_t nth = 1;
    for (; nth < 2000 && b.stats.config_used == 0; nth++) {
        (void)weft_mem_fail_after(nth);
        weft_reload_now(b.reload);
        (void)weft_mem_fail_after(0);
        if (b.stats.config_used == 0) {
            CHECK_STR(b.options.pools.resource, "a.com/one");
        }
    }
    CHECK(nth > 20 && nth < 2000);
    CHECK_STR(b.options.pools.resource, "a.com/two");
    down(&b);
}

/* ---- the program ---- */

struct world {
    char dir[256], config[300], machine[300];
    struct proc plugin, kubelet;
};

static bool start_world(struct world *w, const char *config)
{
    static int number;
    *w = (struct world){.plugin.pid = -1, .kubelet.pid = -1};
    (void)snprintf(w->dir, sizeof(w->dir), "%s/rl%d", weft_test_dir(), number++);
    (void)snprintf(w->config, sizeof(w->config), "%s.yaml", w->dir);
    (void)snprintf(w->machine, sizeof(w->machine), "%s.json", w->dir);
    CHECK_INT(mkdir(w->dir, 0700), 0);
    put(w->config, config);
    copy_file(PAIRS, w->machine);
    char kubelet[512], plugin[512];
    (void)snprintf(kubelet, sizeof(kubelet), "%s", proc_path("fakes/fake_kubelet"));
    (void)snprintf(plugin, sizeof(plugin), "%s", proc_path("bin/weft-device-plugin"));
    const char *const first[] = {kubelet, "--dir", w->dir, "--timeout", "60", NULL};
    const char *const second[] = {plugin, "--machine", w->machine, "--plugin-dir",
                                  w->dir, "--config",  w->config,  NULL};
    return proc_start(&w->kubelet, first) && proc_expect(&w->kubelet, "serving") != NULL &&
           proc_start(&w->plugin, second);
}

static void end_world(struct world *w)
{
    CHECK_INT(proc_end(&w->plugin, SIGTERM, 5000), 0);
    (void)proc_end(&w->kubelet, SIGTERM, 5000);
}

#define SHARED(n)                                                                                  \
    "version: v1\nsharing:\n  timeSlicing:\n    resources:\n"                                      \
    "    - {name: nvidia.com/gpu, replicas: " #n "}\n"

static void replicas_change_on_the_stream_that_is_open(void)
{
    struct world w;
    if (start_world(&w, SHARED(3))) {
        proc_expect(&w.kubelet, "list devices=24 healthy=24");
        put(w.config, SHARED(2));
        proc_expect(&w.kubelet, "list devices=16 healthy=16");
        proc_expect(&w.plugin, "event=config-used");
        put(w.config, SHARED(1)); /* two at least */
        proc_expect(&w.plugin, "level=error event=config-not-used reason=");
        CHECK(!proc_says(&w.kubelet, "list devices=", 300));
        put(w.config, "version: v1\n");
        proc_expect(&w.kubelet, "list devices=8 healthy=8");
        put(w.config, SHARED(4));
        CHECK_INT(kill(w.plugin.pid, SIGHUP), 0); /* at once */
        proc_expect(&w.kubelet, "list devices=32 healthy=32");
        CHECK(!proc_says(&w.kubelet, "register ", 100)); /* all on the first socket */
    }
    end_world(&w);
}

#define GPU0 "GPU-b9f245aa-bf72-44af-a9e6-8a70a1ed4ddb"

/* The next answer is by the new strategies. */
static void strategies_and_the_log_change(void)
{
    struct world w;
    if (start_world(&w, HEAD)) {
        proc_expect(&w.kubelet, "list devices=8 healthy=8");
        proc_send(&w.kubelet, "allocate " GPU0);
        proc_expect(&w.kubelet, "env NVIDIA_VISIBLE_DEVICES=" GPU0);
        proc_expect(&w.kubelet, "device /dev/nvidia0");
        put(w.config, HEAD "deviceIDStrategy: index\npassDeviceSpecs: false\n"
                           "log: {format: json, level: debug}\n");
        proc_expect(&w.plugin, "\"event\":\"config-used\"");
        proc_send(&w.kubelet, "allocate " GPU0);
        proc_expect(&w.kubelet, "env NVIDIA_VISIBLE_DEVICES=0");
        proc_expect(&w.kubelet, "allocated containers=1");
        const char *last = w.kubelet.text != NULL ? strstr(w.kubelet.text, "DEVICES=0") : NULL;
        CHECK(last != NULL && strstr(last, "device /") == NULL);
    }
    end_world(&w);
}

static void a_changed_machine_needs_no_signal(void)
{
    struct world w;
    if (start_world(&w, "version: v1\n")) {
        proc_expect(&w.kubelet, "list devices=8 healthy=8");
        put(w.machine, "{\"weft_machine\": 1, \"devices\": []}");
        proc_expect(&w.kubelet, "list devices=0");
        copy_file(PAIRS, w.machine);
        proc_expect(&w.kubelet, "list devices=8 healthy=8");
        put(w.machine, "{");
        proc_expect(&w.plugin, "event=machine-not-read");
        CHECK(!proc_says(&w.kubelet, "list devices=", 300));
    }
    end_world(&w);
}

/* A start would end with 1 as well. */
static void validate_fails(const struct world *w)
{
    char program[512];
    struct proc p = {.pid = -1};
    (void)snprintf(program, sizeof(program), "%s", proc_path("bin/weft-device-plugin"));
    const char *const argv[] = {program,    "--validate", "--machine", w->machine,
                                "--config", w->config,    NULL};
    CHECK(proc_start(&p, argv));
    proc_expect(&p, "two resources would be called nvidia.com/gpu");
    CHECK_INT(proc_end(&p, 0, 5000), 1);
}

/* Partitions that come would make two resources of one name. The list of before stays, but must not
 * hand out a GPU that has broken meanwhile, or one that is in partitions now. */
static void a_machine_that_cannot_be_used_still_takes_health(void)
{
    struct world w;
    if (start_world(&w, HEAD "partitions: mixed\nsharing:\n  resources:\n"
                             "  - {name: nvidia.com/mig-1g.10gb, replicas: 3, "
                             "rename: nvidia.com/gpu}\n")) {
        proc_expect(&w.kubelet, "list devices=8 healthy=8");
        put(w.machine, "{\"weft_machine\": 1, \"vendor\": \"nvidia\", \"devices\": ["
                       "{\"id\": \"MIG-1\", \"index\": 8, \"parent\": 1, \"profile\": \"1g.10gb\"},"
                       "{\"id\": \"GPU-new\", \"index\": 9},"
                       "{\"id\": \"" GPU0 "\", \"index\": 0, \"healthy\": false}]}");
        proc_expect(&w.plugin, "event=machine-not-used reason=\"two resources would be called "
                               "nvidia.com/gpu\"");
        proc_expect(&w.kubelet, "list devices=8 healthy=0");
        validate_fails(&w);
        proc_send(&w.kubelet, "allocate " GPU0);
        proc_expect(&w.kubelet, "allocate-failed");
        copy_file(PAIRS, w.machine);
        proc_expect(&w.kubelet, "list devices=8 healthy=8");
    }
    end_world(&w);
}

/* The file's text holds that within five seconds. */
static void expect_in_file(const char *path, const char *part)
{
    const int64_t end = weft_clock_monotonic(weft_clock_system()) + 5 * WEFT_NS_PER_S;
    bool found = false;
    while (!found && weft_clock_monotonic(weft_clock_system()) < end) {
        weft_autofree char *text = NULL;
        found = weft_file_read(path, 1 << 20, &text, NULL, NULL) == 0 && strstr(text, part) != NULL;
        (void)usleep(found ? 0 : 20000);
    }
    CHECK(found);
    if (!found) {
        (void)fprintf(stderr, "%s has no \"%s\"\n", path, part);
    }
}

/* Options of the file of which the program must tell: labels, and what a person runs by hand. */
static void labels_and_validation_of_the_program(void)
{
    struct world w;
    char features[300], config[900], program[512];
    (void)snprintf(features, sizeof(features), "%s/reload-features", weft_test_dir());
    (void)snprintf(config, sizeof(config),
                   "version: v1\nflags: {gfd: {outputFile: %s}}\nsharing:\n  timeSlicing:\n"
                   "    resources:\n    - {name: nvidia.com/gpu, replicas: 5}\n",
                   features);
    if (start_world(&w, "version: v1\n")) {
        proc_expect(&w.kubelet, "list devices=8 healthy=8");
        CHECK(access(features, F_OK) < 0);
        put(w.config, config);
        expect_in_file(features, "nvidia.com/gpu.replicas=5\n");
        expect_in_file(features, "nvidia.com/gpu.count=8\n");
    }
    end_world(&w);
    CHECK(access(features, F_OK) == 0); /* an upgrade takes no label away */
    (void)snprintf(program, sizeof(program), "%s", proc_path("bin/weft-device-plugin"));
    struct proc p;
    const char *const validate[] = {program, "--validate", "--config", w.config, NULL};
    CHECK(proc_start(&p, validate));
    (void)proc_says(&p, "", 3000); /* to the end of its output */
    CHECK_CONTAINS(p.text, "replicas: 5\n");
    char again[300];
    (void)snprintf(again, sizeof(again), "%s/again.yaml", weft_test_dir());
    put(again, p.text);
    weft_autofree char *first = weft_strdup(p.text);
    CHECK_INT(proc_end(&p, 0, 3000), 0);
    const char *const once_more[] = {program, "--validate", "--config", again, NULL};
    CHECK(proc_start(&p, once_more));
    (void)proc_says(&p, "", 3000);
    CHECK_STR(p.text, first);
    CHECK_INT(proc_end(&p, 0, 3000), 0);
    put(again, "version: v1\nflags: {migStrategy: all}\n");
    CHECK(proc_start(&p, once_more));
    (void)proc_says(&p, "", 3000);
    CHECK_CONTAINS(p.text, "again.yaml:2: flags.migStrategy: \"all\" is not auto, none, single");
    CHECK_INT(proc_end(&p, 0, 3000), 1);
    const char *const uninstall[] = {program,          "--uninstall", "--cdi-dir", w.dir,
                                     "--feature-file", features,      NULL};
    CHECK(proc_start(&p, uninstall));
    CHECK_INT(proc_end(&p, 0, 3000), 0);
    CHECK(access(features, F_OK) < 0);
}

WEFT_SUITE(plugin_reload,
           {"good options are used, and equal ones change nothing",
            good_options_are_used_and_equal_ones_change_nothing},
           {"bad options leave the last good ones", bad_options_leave_the_last_good_ones},
           {"a changed file is seen", a_changed_file_is_seen},
           {"without memory nothing changes", without_memory_nothing_changes},
           {"replicas change on the stream that is open",
            replicas_change_on_the_stream_that_is_open},
           {"strategies and the log change", strategies_and_the_log_change},
           {"a changed machine needs no signal", a_changed_machine_needs_no_signal},
           {"a machine that cannot be used still takes health",
            a_machine_that_cannot_be_used_still_takes_health},
           {"labels and validation of the program", labels_and_validation_of_the_program})
