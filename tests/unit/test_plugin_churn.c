/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin through a working day in fast motion, against the kubelet stand-in: pods come and go,
 * devices fail and recover, the machine and the config file change, the kubelet restarts, drops its
 * stream, hangs; a second plugin waits and takes over. A few seconds in a normal run; with
 * WEFT_CHURN=<seconds> as long as that, which make check-long does under the sanitizers. A
 * sanitizer's finding is an exit status. */
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/base/mem.h"
#include "pkg/base/str.h"
#include "tests/unit/proc.h"
#include "tests/unit/unit.h"

enum { GPUS = 8, SHORT_SECONDS = 3, MACHINE_MAX = 8192, LOG_MAX = 1 << 20, STEPS = 11 };

struct churn {
    char dir[256], machine[300], config[300];
    struct proc kubelet, plugin, standby;
    uint64_t random;
    bool healthy[GPUS], shared;
    unsigned done[STEPS];
};

static int64_t now_s(void)
{
    return weft_clock_monotonic(weft_clock_system()) / WEFT_NS_PER_S;
}

static int64_t duration(void)
{
    uint64_t seconds = SHORT_SECONDS;
    const char *text = getenv("WEFT_CHURN");
    if (text != NULL) {
        CHECK_INT(weft_parse_u64(weft_str(text), 86400, &seconds), 0);
    }
    return (int64_t)seconds;
}

static void write_machine(const struct churn *c)
{
    weft_auto(weft_buf_done) struct weft_buf text;
    weft_buf_init(&text, MACHINE_MAX);
    (void)weft_buf_puts(&text, "{\"weft_machine\": 1, \"vendor\": \"nvidia\", \"devices\": [");
    for (int i = 0; i < GPUS; i++) {
        (void)weft_buf_printf(
            &text,
            "%s{\"id\": \"GPU-%d\", \"index\": %d, \"nodes\": [\"/dev/nvidia%d\"], "
            "\"healthy\": %s, \"numa_node\": %d}",
            i > 0 ? "," : "", i, i, i, c->healthy[i] ? "true" : "false", i / 4);
    }
    (void)weft_buf_puts(&text, "], \"common_nodes\": [\"/dev/nvidiactl\"]}");
    CHECK_INT(weft_file_replace(c->machine, weft_buf_text(&text), text.len, 0600, NULL), 0);
}

static void write_config(const struct churn *c)
{
    static const char plain[] = "apiVersion: weft.dev/v1alpha1\nkind: DevicePluginConfig\n";
    static const char shared[] =
        "apiVersion: weft.dev/v1alpha1\nkind: DevicePluginConfig\n"
        "sharing:\n  resources:\n  - {name: nvidia.com/gpu, replicas: 3}\n";
    CHECK_INT(weft_file_replace(c->config, c->shared ? shared : plain,
                                c->shared ? sizeof(shared) - 1 : sizeof(plain) - 1, 0600, NULL),
              0);
}

static bool start_plugin(const struct churn *c, struct proc *p)
{
    char program[512];
    (void)snprintf(program, sizeof(program), "%s", proc_path("bin/weft-device-plugin"));
    const char *const argv[] = {program,       "--machine",   c->machine, "--plugin-dir",
                                c->dir,        "--config",    c->config,  "--listen",
                                "127.0.0.1:0", "--log-level", "info",     NULL};
    return proc_start(p, argv);
}

static bool start_kubelet(struct churn *c)
{
    char program[512], seconds[32];
    (void)snprintf(program, sizeof(program), "%s", proc_path("fakes/fake_kubelet"));
    (void)snprintf(seconds, sizeof(seconds), "%lld", (long long)duration() + 600);
    const char *const argv[] = {program, "--dir", c->dir, "--timeout", seconds, NULL};
    return proc_start(&c->kubelet, argv) && proc_expect(&c->kubelet, "serving") != NULL;
}

/* Reads what was written so far, and lets go of what a long run would pile up. */
static void drain(struct proc *p)
{
    if (p->pid > 0) {
        (void)proc_says(p, "", 1);
        if (p->len > LOG_MAX) {
            p->len = p->at = 0;
            p->text[0] = '\0';
        }
    }
}

/* A pod or two, and all are gone again. A Register that the stand-in did not answer, as when a
 * plugin ends amid its own, is given up after 30 s: there is time for that. The stand-in says which
 * devices it got; a refusal is fine where it asks for one that has just failed. */
static void pods(struct churn *c)
{
    char line[64];
    for (int i = 0; i < 3; i++) {
        (void)snprintf(line, sizeof(line), "ask %u",
                       (unsigned)weft_random_below(&c->random, 3) + 1);
        proc_send(&c->kubelet, line);
    }
    proc_send(&c->kubelet, "release");
    (void)proc_expect_at(__FILE__, __LINE__, &c->kubelet, "done release", 100000);
}

static void flip(struct churn *c)
{
    const size_t i = (size_t)weft_random_below(&c->random, GPUS);
    c->healthy[i] = !c->healthy[i];
    write_machine(c);
    (void)kill(c->plugin.pid, SIGHUP);
}

static void step(struct churn *c, unsigned kind)
{
    c->done[kind]++;
    switch (kind) {
    case 0:
    case 1:
    case 2:
    case 3:
        pods(c);
        break;
    case 4:
    case 5:
        flip(c);
        break;
    case 6:
        c->shared = !c->shared;
        write_config(c); /* seen by itself, or by a SIGHUP that comes */
        break;
    case 7:
        proc_send(&c->kubelet, "restart");
        break;
    case 8: /* a Register without an answer; the restart that follows is news enough */
        proc_send(&c->kubelet, "hang on");
        proc_send(&c->kubelet, "restart");
        proc_send(&c->kubelet, "hang off");
        proc_send(&c->kubelet, "restart");
        break;
    case 9:
        (void)proc_end(&c->kubelet, SIGKILL, 10000);
        (void)start_kubelet(c);
        break;
    default: /* a handover: the next one is there before this one goes */
        if (start_plugin(c, &c->standby)) {
            (void)proc_expect_at(__FILE__, __LINE__, &c->standby, "event=standby", 30000);
            CHECK_INT(proc_end(&c->plugin, SIGTERM, 30000), 0);
            (void)proc_expect_at(__FILE__, __LINE__, &c->standby, "event=takes-over", 30000);
            c->plugin = c->standby;
            c->standby = (struct proc){.pid = -1};
        }
        break;
    }
}

static void a_working_day_leaves_no_trace(void)
{
    struct churn c = {
        .random = (uint64_t)now_s(), .kubelet.pid = -1, .plugin.pid = -1, .standby.pid = -1};
    const uint64_t seed = c.random;
    unsigned steps = 0;
    for (int i = 0; i < GPUS; i++) {
        c.healthy[i] = true;
    }
    (void)snprintf(c.dir, sizeof(c.dir), "%s/churn", weft_test_dir());
    (void)snprintf(c.machine, sizeof(c.machine), "%s.json", c.dir);
    (void)snprintf(c.config, sizeof(c.config), "%s.yaml", c.dir);
    CHECK_INT(mkdir(c.dir, 0700), 0);
    write_machine(&c);
    write_config(&c);
    bool good = start_kubelet(&c) && start_plugin(&c, &c.plugin) &&
                proc_expect(&c.kubelet, "list devices=8 healthy=8") != NULL;
    const int64_t end = now_s() + duration();
    while (good && now_s() < end) {
        step(&c, (unsigned)weft_random_below(&c.random, STEPS));
        steps++;
        drain(&c.kubelet);
        drain(&c.plugin);
        good = kill(c.plugin.pid, 0) == 0 && CU_get_number_of_failures() == 0;
    }
    CHECK(good);
    /* and it is as good as new */
    for (int i = 0; i < GPUS; i++) {
        c.healthy[i] = true;
    }
    c.shared = false;
    write_machine(&c);
    write_config(&c);
    (void)kill(c.plugin.pid, SIGHUP);
    proc_send(&c.kubelet, "restart");
    (void)proc_expect_at(__FILE__, __LINE__, &c.kubelet, "list devices=8 healthy=8", 100000);
    CHECK_INT(proc_end(&c.plugin, SIGTERM, 30000), 0);
    (void)proc_end(&c.kubelet, SIGTERM, 10000);
    (void)printf("churn: %u steps, seed %llu:", steps, (unsigned long long)seed);
    for (size_t i = 0; i < STEPS; i++) {
        (void)printf(" %u", c.done[i]);
    }
    (void)printf("\n");
}

WEFT_SUITE(plugin_churn, {"a working day leaves no trace", a_working_day_leaves_no_trace})
