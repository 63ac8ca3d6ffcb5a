/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin as a process whose Nth allocation fails, for every N of everything it does: a start,
 * a pod (GetPreferredAllocation, Allocate), a new machine (ListAndWatch), a restarted kubelet
 * (Register). It lives on, every answer is whole or an error, and when memory is back all is as
 * it should be. One process takes all failures of a part, so that none leaves damage for later. */
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/file.h"
#include "pkg/base/mem.h"
#include "pkg/base/str.h"
#include "tests/unit/proc.h"
#include "tests/unit/unit.h"

enum {
    RUNS_MAX = 20000,
    STRIDE = 7 /* of the short run's long parts; with WEFT_LONG all is done for every N */
};

struct world {
    char dir[256], machine[300];
    struct proc plugin, kubelet;
    bool broken;
};

/* Two GPUs; the second is unhealthy in a broken machine. */
static void write_machine(const char *path, bool broken)
{
    char text[600];
    const int len = snprintf(
        text, sizeof(text),
        "{\"weft_machine\": 1, \"vendor\": \"nvidia\", \"devices\": ["
        "{\"id\": \"GPU-a\", \"index\": 0, \"nodes\": [\"/dev/nvidia0\"]},"
        "{\"id\": \"GPU-b\", \"index\": 1, \"nodes\": [\"/dev/nvidia1\"], \"healthy\": %s}],"
        "\"common_nodes\": [\"/dev/nvidiactl\"]}",
        broken ? "false" : "true");
    CHECK_INT(weft_file_replace(path, text, (size_t)len, 0600, NULL), 0);
}

static bool start_plugin(struct world *w)
{
    char program[512];
    (void)snprintf(program, sizeof(program), "%s", proc_path("fakes/starved_plugin"));
    const char *const argv[] = {program, "--machine",   w->machine, "--plugin-dir",
                                w->dir,  "--log-level", "warn",     NULL};
    return proc_start(&w->plugin, argv);
}

static bool up(struct world *w)
{
    static int number;
    *w = (struct world){.plugin.pid = -1, .kubelet.pid = -1};
    (void)snprintf(w->dir, sizeof(w->dir), "%s/starved%d", weft_test_dir(), number++);
    (void)snprintf(w->machine, sizeof(w->machine), "%s.json", w->dir);
    CHECK_INT(mkdir(w->dir, 0700), 0);
    write_machine(w->machine, false);
    char program[512];
    (void)snprintf(program, sizeof(program), "%s", proc_path("fakes/fake_kubelet"));
    const char *const argv[] = {program, "--dir", w->dir, "--timeout", "3000", NULL};
    return proc_start(&w->kubelet, argv) && proc_expect(&w->kubelet, "serving") != NULL;
}

static void down(struct world *w)
{
    CHECK_INT(proc_end(&w->plugin, SIGTERM, 5000), 0);
    (void)proc_end(&w->kubelet, SIGTERM, 5000);
}

static void arm(const struct world *w, int number)
{
    CHECK_INT(sigqueue(w->plugin.pid, SIGUSR1, (union sigval){.sival_int = number}), 0);
    (void)usleep(2000); /* it is one of the process's threads that gets it, some time */
}

/* How many allocations there were since arm. -1: the plugin is gone. */
static int64_t counted(struct world *w)
{
    uint64_t count = 0;
    (void)kill(w->plugin.pid, SIGUSR2);
    const char *line = proc_expect(&w->plugin, "count=");
    const char *at = line != NULL ? strstr(line, "count=") : NULL;
    if (at == NULL || weft_parse_u64(weft_str_trim(weft_str(at + 6)), INT32_MAX, &count) < 0) {
        return -1;
    }
    return (int64_t)count;
}

/* One thing the plugin does; false: something is wrong. */
typedef bool (*part_fn)(struct world *w, int number);

static bool pod(struct world *w, int number)
{
    proc_send(&w->kubelet, "ask 1");
    proc_expect(&w->kubelet, "pod-asks count=1 free=2");
    proc_send(&w->kubelet, "release");
    const char *line = proc_expect(&w->kubelet, "pod-gets count=1 ids=GPU-");
    const bool first = line != NULL && strstr(line, "ids=GPU-a") != NULL;
    line = proc_expect(&w->kubelet, " c"); /* "allocated containers=1", "allocate-failed code=13" */
    while (line != NULL && strstr(line, "allocate") == NULL) {
        line = proc_expect(&w->kubelet, " c");
    }
    bool good = line != NULL;
    if (line != NULL && strstr(line, "allocated") != NULL) {
        /* what came before that line, whole: the env and three nodes */
        const char *text = w->kubelet.text;
        const char *from =
            strstr(text + (w->kubelet.at > 600 ? w->kubelet.at - 600 : 0), "pod-gets");
        for (const char *next = from; next != NULL; next = strstr(next + 1, "pod-gets")) {
            from = next;
        }
        const char *gpu =
            first ? "env NVIDIA_VISIBLE_DEVICES=GPU-a\n" : "env NVIDIA_VISIBLE_DEVICES=GPU-b\n";
        const char *node = first
                               ? "device /dev/nvidia0 as /dev/nvidia0 rw\ndevice /dev/nvidiactl as"
                               : "device /dev/nvidia1 as /dev/nvidia1 rw\ndevice /dev/nvidiactl as";
        good = from != NULL && strstr(from, gpu) != NULL && strstr(from, node) != NULL;
        if (!good) {
            (void)fprintf(stderr, "allocation %d: a wrong answer:\n%s\n", number,
                          from != NULL ? from : "");
        }
    }
    proc_expect(&w->kubelet, "done release");
    return good;
}

static bool machine(struct world *w, int number)
{
    (void)number;
    w->broken = !w->broken;
    const bool broken = w->broken;
    const char *want = broken ? "list devices=2 healthy=1" : "list devices=2 healthy=2";
    write_machine(w->machine, broken);
    (void)kill(w->plugin.pid, SIGHUP);
    if (proc_says(&w->kubelet, want, 60)) {
        return proc_expect(&w->kubelet, want) != NULL;
    }
    (void)kill(w->plugin.pid, SIGHUP); /* it may not have been able to read it */
    return proc_expect(&w->kubelet, want) != NULL;
}

static bool kubelet(struct world *w, int number)
{
    (void)number;
    proc_send(&w->kubelet, "restart");
    return proc_expect(&w->kubelet, "done restart") != NULL &&
           proc_expect(&w->kubelet, "list devices=2 healthy=2") != NULL;
}

static void sweep(const char *what, part_fn part, int stride)
{
    struct world w;
    int number = 1, runs = 0;
    if (!up(&w) || !start_plugin(&w) ||
        proc_expect(&w.kubelet, "list devices=2 healthy=2") == NULL) {
        down(&w);
        return;
    }
    for (; runs < RUNS_MAX; runs++, number += stride) {
        arm(&w, number);
        const bool good = part(&w, number);
        const int64_t count = counted(&w);
        CHECK(good && count >= 0);
        if (!good || count < number) {
            CHECK(count >= 0);
            break;
        }
    }
    (void)printf("starved %s: %d failures, the last of allocation %d\n", what, runs,
                 number - stride);
    CHECK(runs >= 5);
    if (w.broken) {
        CHECK(machine(&w, 0));
    }
    CHECK(pod(&w, 0)); /* it is as good as new */
    down(&w);
}

static int stride(void)
{
    return getenv("WEFT_LONG") != NULL ? 1 : STRIDE;
}

static void a_pod_survives_any_failure(void)
{
    sweep("pod", pod, 1);
}

static void a_new_machine_survives_any_failure(void)
{
    sweep("machine", machine, stride());
}

static void a_restarted_kubelet_survives_any_failure(void)
{
    sweep("kubelet", kubelet, 1);
}

/* At the start it may say that it cannot, and end with 1: the pod is started again. */
static void a_start_survives_or_says_why(void)
{
    struct world w;
    int number = 1, runs = 0;
    bool over = !up(&w);
    for (; !over && runs < RUNS_MAX; runs++, number += stride()) {
        char starve[16];
        (void)snprintf(starve, sizeof(starve), "%d", number);
        CHECK_INT(setenv("STARVE", starve, 1), 0);
        over = !start_plugin(&w);
        bool listed = false, failed = false;
        for (int waits = 0; !listed && !failed && waits < 1000; waits++) {
            listed = proc_says(&w.kubelet, "list devices=2 healthy=2", 5);
            failed = proc_says(&w.plugin, "failed:", 1);
        }
        if (failed) {
            CHECK_INT(proc_end(&w.plugin, 0, 5000), 1);
            continue;
        }
        over = proc_expect(&w.kubelet, "list devices=2 healthy=2") == NULL;
        const int64_t count = counted(&w);
        over = over || count < number;
        CHECK_INT(proc_end(&w.plugin, SIGTERM, 5000), 0);
    }
    CHECK_INT(unsetenv("STARVE"), 0);
    (void)printf("starved start: %d failures\n", runs);
    CHECK(runs >= 5);
    (void)proc_end(&w.kubelet, SIGTERM, 5000);
}

WEFT_SUITE(plugin_starved, {"a pod survives any failure", a_pod_survives_any_failure},
           {"a new machine survives any failure", a_new_machine_survives_any_failure},
           {"a restarted kubelet survives any failure", a_restarted_kubelet_survives_any_failure},
           {"a start survives or says why", a_start_survives_or_says_why})
