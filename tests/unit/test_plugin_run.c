/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin as a process against the kubelet stand-in: what a kubelet sees of it, and what it
 * makes of everything that happens to its folder, its stream and its kubelet. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/file.h"
#include "pkg/base/mem.h"
#include "pkg/base/str.h"
#include "tests/unit/proc.h"
#include "tests/unit/unit.h"

#define PAIRS "tests/fixtures/machine/pairs8.json"
/* devices 0 and 2 of that machine, and 1 and 3: the first two bridged pairs */
#define GPU0 "GPU-b9f245aa-bf72-44af-a9e6-8a70a1ed4ddb"
#define GPU1 "GPU-165d8c16-7e62-44b4-a73d-40b9b6bb04dd"
#define GPU2 "GPU-a0993686-581c-4447-ae1b-2d4f98dcf1f8"
#define GPU3 "GPU-ea9f2638-3061-4f27-a48f-d8ac08194e94"

struct bench {
    char dir[256];
    struct proc plugin, kubelet;
};

static bool start_plugin(struct bench *b, const char *machine)
{
    char program[512];
    (void)snprintf(program, sizeof(program), "%s", proc_path("bin/weft-device-plugin"));
    const char *const argv[] = {program, "--machine",   machine, "--plugin-dir",
                                b->dir,  "--log-level", "debug", NULL};
    return proc_start(&b->plugin, argv);
}

static bool start_kubelet(struct bench *b)
{
    char program[512];
    (void)snprintf(program, sizeof(program), "%s", proc_path("fakes/fake_kubelet"));
    const char *const argv[] = {program, "--dir", b->dir, "--timeout", "60", NULL};
    return proc_start(&b->kubelet, argv);
}

static bool up(struct bench *b, const char *machine)
{
    static int number;
    *b = (struct bench){.plugin.pid = -1, .kubelet.pid = -1};
    (void)snprintf(b->dir, sizeof(b->dir), "%s/dp%d", weft_test_dir(), number++);
    CHECK_INT(mkdir(b->dir, 0700), 0);
    return start_kubelet(b) && proc_expect(&b->kubelet, "serving") != NULL &&
           start_plugin(b, machine);
}

static void down(struct bench *b)
{
    CHECK_INT(proc_end(&b->plugin, SIGTERM, 5000), 0);
    (void)proc_end(&b->kubelet, SIGTERM, 5000);
}

static size_t sockets_in(const char *path)
{
    size_t count = 0;
    DIR *dir = opendir(path);
    for (struct dirent *e = dir != NULL ? readdir(dir) : NULL; e != NULL; e = readdir(dir)) {
        count += e->d_type == DT_SOCK && strcmp(e->d_name, "kubelet.sock") != 0;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

/* Removes what is in the folder, as a wipe by hand does. */
static void empty(const char *path)
{
    DIR *dir = opendir(path);
    for (struct dirent *e = dir != NULL ? readdir(dir) : NULL; e != NULL; e = readdir(dir)) {
        char entry[600];
        (void)snprintf(entry, sizeof(entry), "%s/%s", path, e->d_name);
        (void)unlink(entry);
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

static void copy_file(const char *from, const char *to)
{
    weft_autofree char *text = NULL;
    size_t len = 0;
    CHECK_INT(weft_file_read(from, 1U << 20, &text, &len, NULL), 0);
    CHECK_INT(weft_file_replace(to, text, len, 0600, NULL), 0);
}

/* ---- what the kubelet sees ---- */

static void pods_get_bridged_pairs(void)
{
    struct bench b;
    if (up(&b, PAIRS)) {
        proc_expect(&b.kubelet, "register version=v1beta1 endpoint=nvidia.com-gpu-");
        proc_expect(&b.kubelet, "options preferred=1 pre-start=0 code=0");
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
        proc_expect(&b.kubelet, "id " GPU0 " Healthy numa=0");
        proc_send(&b.kubelet, "ask 2");
        proc_expect(&b.kubelet, "pod-gets count=2 ids=" GPU0 "," GPU2);
        proc_expect(&b.kubelet, "env NVIDIA_VISIBLE_DEVICES=" GPU0 "," GPU2);
        proc_expect(&b.kubelet, "device /dev/nvidia0 as /dev/nvidia0 rw");
        proc_expect(&b.kubelet, "device /dev/nvidia2 as /dev/nvidia2 rw");
        proc_expect(&b.kubelet, "device /dev/nvidiactl as /dev/nvidiactl rw");
        proc_expect(&b.kubelet, "allocated containers=1");
        proc_send(&b.kubelet, "ask 2");
        proc_expect(&b.kubelet, "pod-gets count=2 ids=" GPU1 "," GPU3);
        proc_expect(&b.kubelet, "allocated containers=1");
    }
    down(&b);
}

static void wrong_requests_are_refused_and_change_nothing(void)
{
    struct bench b;
    if (up(&b, PAIRS)) {
        proc_expect(&b.kubelet, "list devices=8");
        proc_send(&b.kubelet, "allocate GPU-nobody");
        proc_expect(&b.kubelet, "allocate-failed code=3 message=\"there is no device GPU-nobody\"");
        proc_send(&b.kubelet, "allocate " GPU0 ",GPU-nobody");
        proc_expect(&b.kubelet, "allocate-failed code=3");
        proc_send(&b.kubelet, "allocate ");
        proc_expect(&b.kubelet, "allocate-failed code=3");
        proc_send(&b.kubelet, "call /v1beta1.DevicePlugin/Allocate"); /* no container */
        proc_expect(&b.kubelet, "called code=3");
        proc_send(&b.kubelet, "call /v1beta1.DevicePlugin/Migrate");
        proc_expect(&b.kubelet, "called code=12");
        proc_send(&b.kubelet, "call /v1beta1.DevicePlugin/PreStartContainer");
        proc_expect(&b.kubelet, "called code=0 bytes=0");
        proc_send(&b.kubelet, "allocate " GPU2 "," GPU0 "," GPU2); /* twice is once, in order */
        proc_expect(&b.kubelet, "env NVIDIA_VISIBLE_DEVICES=" GPU0 "," GPU2);
        proc_expect(&b.kubelet, "allocated containers=1");
    }
    down(&b);
}

static void preferred_allocation_never_fails(void)
{
    struct bench b;
    if (up(&b, PAIRS)) {
        proc_expect(&b.kubelet, "list devices=8");
        proc_send(&b.kubelet, "prefer 2 GPU-nobody,GPU-noone");
        proc_expect(&b.kubelet, "preferred count=0");
        proc_send(&b.kubelet, "prefer -3 " GPU0 "," GPU1);
        proc_expect(&b.kubelet, "preferred count=0");
        proc_send(&b.kubelet, "prefer 99 " GPU1 "," GPU0);
        proc_expect(&b.kubelet, "preferred count=2 ids=" GPU0 "," GPU1);
        proc_send(&b.kubelet, "prefer 2 " GPU0 "," GPU1 "," GPU2 "," GPU3 " " GPU3);
        proc_expect(&b.kubelet, "preferred count=2 ids=" GPU1 "," GPU3);
        proc_send(&b.kubelet, "call /v1beta1.DevicePlugin/GetPreferredAllocation");
        proc_expect(&b.kubelet, "called code=0");
    }
    down(&b);
}

/* ---- what happens to it ---- */

static void a_restarted_kubelet_is_found_again(void)
{
    struct bench b;
    if (up(&b, PAIRS)) {
        for (int i = 1; i <= 4; i++) {
            char endpoint[64];
            (void)snprintf(endpoint, sizeof(endpoint), "-%d.sock resource=nvidia.com/gpu", i);
            proc_expect(&b.kubelet, endpoint); /* a new name each time */
            proc_expect(&b.kubelet, "list devices=8 healthy=8");
            proc_send(&b.kubelet, i < 4 ? "restart" : "ask 2");
        }
        proc_expect(&b.kubelet, "allocated containers=1");
        CHECK(!proc_says(&b.plugin, "another-plugin", 10));
        CHECK_INT(sockets_in(b.dir), 1);
    }
    down(&b);
}

static void a_killed_kubelet_is_found_again(void)
{
    struct bench b;
    if (up(&b, PAIRS)) {
        for (int i = 0; i < 2; i++) {
            proc_expect(&b.kubelet, "list devices=8 healthy=8");
            CHECK_INT(proc_end(&b.kubelet, SIGKILL, 5000), 1000 + SIGKILL);
            (void)start_kubelet(&b); /* its old socket still lies there */
        }
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
        CHECK(!proc_says(&b.plugin, "another-plugin", 10));
    }
    down(&b);
}

static void a_wiped_or_remade_folder_is_survived(void)
{
    struct bench b;
    if (up(&b, PAIRS)) {
        proc_expect(&b.kubelet, "list devices=8");
        (void)proc_end(&b.kubelet, SIGKILL, 5000);
        empty(b.dir);
        (void)start_kubelet(&b);
        proc_expect(&b.kubelet, "list devices=8");
        (void)proc_end(&b.kubelet, SIGKILL, 5000);
        empty(b.dir);
        CHECK_INT(rmdir(b.dir), 0);
        CHECK_INT(mkdir(b.dir, 0700), 0);
        (void)start_kubelet(&b);
        (void)proc_expect_at(__FILE__, __LINE__, &b.kubelet, "list devices=8", 25000);
    }
    down(&b);
}

static void its_own_socket_removed_makes_it_register_again(void)
{
    struct bench b;
    if (up(&b, PAIRS)) {
        proc_expect(&b.kubelet, "list devices=8");
        DIR *dir = opendir(b.dir);
        for (struct dirent *e = dir != NULL ? readdir(dir) : NULL; e != NULL; e = readdir(dir)) {
            if (strncmp(e->d_name, "nvidia.com-gpu-", 15) == 0) {
                CHECK_INT(unlinkat(dirfd(dir), e->d_name, 0), 0);
            }
        }
        if (dir != NULL) {
            (void)closedir(dir);
        }
        proc_expect(&b.kubelet, "-2.sock");
        proc_expect(&b.kubelet, "list devices=8");
        proc_expect(&b.plugin, "own socket is gone");
    }
    down(&b);
}

static void a_lost_stream_is_renewed_and_a_rival_is_named(void)
{
    struct bench b;
    if (up(&b, PAIRS)) {
        proc_expect(&b.kubelet, "list devices=8");
        proc_send(&b.kubelet, "end-stream");
        proc_expect(&b.plugin, "event=stream-lost");
        proc_expect(&b.kubelet, "register");
        proc_expect(&b.kubelet, "list devices=8");
        proc_send(&b.kubelet, "end-stream");
        proc_expect(&b.plugin, "event=another-plugin resource=nvidia.com/gpu");
        CHECK(!proc_says(&b.kubelet, "register", 1500));
        proc_send(&b.kubelet, "restart"); /* a new kubelet is news: no step back any more */
        proc_expect(&b.kubelet, "register");
        proc_expect(&b.kubelet, "list devices=8");
    }
    down(&b);
}

static void a_hung_kubelet_does_not_hang_it(void)
{
    struct bench b;
    if (up(&b, PAIRS)) {
        proc_expect(&b.kubelet, "list devices=8");
        proc_send(&b.kubelet, "hang on");
        proc_send(&b.kubelet, "restart");
        proc_expect(&b.kubelet, "hang=1");
        CHECK_INT(proc_end(&b.plugin, SIGTERM, 2000), 0);
        proc_expect(&b.kubelet, "register-given-up");
        CHECK_INT(sockets_in(b.dir), 0);
        (void)start_plugin(&b, PAIRS);
        proc_expect(&b.kubelet, "hang=1");
        (void)kill(b.kubelet.pid, SIGSTOP); /* not a word, not even a refusal */
        CHECK_INT(proc_end(&b.plugin, SIGTERM, 2000), 0);
        (void)kill(b.kubelet.pid, SIGCONT);
        (void)start_plugin(&b, PAIRS);
        proc_expect(&b.plugin, "event=devices"); /* and handles signals by now */
    }
    down(&b);
}

static void more_than_one_sigterm_is_still_a_clean_end(void)
{
    struct bench b;
    if (up(&b, PAIRS)) {
        proc_expect(&b.kubelet, "list devices=8");
        for (int i = 0; i < 20; i++) {
            (void)kill(b.plugin.pid, SIGTERM);
            (void)usleep(50);
        }
    }
    down(&b);
    CHECK_INT(sockets_in(b.dir), 0);
}

static void it_waits_for_a_kubelet_that_is_not_there(void)
{
    struct bench b;
    if (up(&b, PAIRS)) {
        proc_expect(&b.kubelet, "list devices=8");
        (void)proc_end(&b.kubelet, SIGKILL, 5000);
        CHECK_INT(proc_end(&b.plugin, SIGTERM, 5000), 0);
        (void)start_plugin(&b, PAIRS); /* the dead kubelet's socket is there: refused */
        proc_expect(&b.plugin, "event=not-registered"); /* 1 s, then 2 s, each up to a fifth less */
        const char *line = proc_expect(&b.plugin, "event=not-registered");
        const char *retry = line != NULL ? strstr(line, "retry_ms=") : NULL;
        uint64_t ms = 0;
        CHECK_INT(
            weft_parse_u64(weft_str_trim(weft_str(retry != NULL ? retry + 9 : "")), 99999, &ms), 0);
        CHECK(ms >= 1600 && ms <= 2000);
        empty(b.dir);
        proc_expect(&b.plugin, "event=waiting-for-kubelet");
        (void)start_kubelet(&b);
        proc_expect(&b.kubelet, "list devices=8");
    }
    down(&b);
}

static void a_missing_folder_is_warned_of(void)
{
    struct bench b = {.plugin.pid = -1, .kubelet.pid = -1};
    (void)snprintf(b.dir, sizeof(b.dir), "%s/not-made", weft_test_dir());
    char said[600];
    (void)snprintf(said, sizeof(said), "level=warn event=no-plugin-folder folder=%s ", b.dir);
    if (start_plugin(&b, PAIRS)) {
        proc_expect(&b.plugin, said);
    }
    CHECK_INT(proc_end(&b.plugin, SIGTERM, 5000), 0);
    CHECK_INT(weft_file_replace(b.dir, "x", 1, 0600, NULL), 0); /* no folder either */
    if (start_plugin(&b, PAIRS)) {
        proc_expect(&b.plugin, said);
    }
    CHECK_INT(proc_end(&b.plugin, SIGTERM, 5000), 0);
}

static void a_bare_matrix_is_warned_of(void)
{
    struct bench b;
    if (up(&b, "tests/fixtures/machine/pcie8.txt")) {
        proc_expect(&b.plugin, "level=warn event=machine-incomplete "
                               "machine=tests/fixtures/machine/pcie8.txt ");
        proc_expect(&b.kubelet, "list devices=8"); /* and it works on */
    }
    down(&b);
}

static void sockets_of_dead_plugins_go(void)
{
    struct bench b;
    if (up(&b, PAIRS)) {
        proc_expect(&b.kubelet, "list devices=8");
        for (int i = 0; i < 3; i++) { /* a crash leaves its socket */
            CHECK_INT(proc_end(&b.plugin, SIGKILL, 5000), 1000 + SIGKILL);
            CHECK_INT(sockets_in(b.dir), 1);
            (void)start_plugin(&b, PAIRS);
            proc_expect(&b.kubelet, "list devices=8");
        }
        CHECK_INT(sockets_in(b.dir), 1);
    }
    down(&b);
    CHECK_INT(sockets_in(b.dir), 0);
}

/* ---- the machine changes ---- */

#define NO_GPU "{\"weft_machine\": 1, \"devices\": []}"

static void no_gpu_is_no_failure_and_a_changed_machine_is_told(void)
{
    struct bench b;
    char file[300];
    (void)snprintf(file, sizeof(file), "%s/machine.json", weft_test_dir());
    CHECK_INT(weft_file_replace(file, NO_GPU, strlen(NO_GPU), 0600, NULL), 0);
    if (up(&b, file)) {
        proc_expect(&b.kubelet, "list devices=0 healthy=0");
        copy_file(PAIRS, file);
        CHECK_INT(kill(b.plugin.pid, SIGHUP), 0);
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
        proc_send(&b.kubelet, "ask 2");
        proc_expect(&b.kubelet, "pod-gets count=2 ids=" GPU0 "," GPU2);
        CHECK_INT(weft_file_replace(file, "garbage", 7, 0600, NULL), 0);
        CHECK_INT(kill(b.plugin.pid, SIGHUP), 0);
        proc_expect(&b.plugin, "event=machine-not-read");
        proc_send(&b.kubelet, "ask 2");
        proc_expect(&b.kubelet, "pod-gets count=2 ids=" GPU1 "," GPU3);
        proc_expect(&b.kubelet, "allocated");
        CHECK(!proc_says(&b.kubelet, "list", 100)); /* nothing changed: nothing is sent */
    }
    down(&b);
}

static void an_unhealthy_device_is_told_and_not_handed_out(void)
{
    struct bench b;
    char file[300];
    (void)snprintf(file, sizeof(file), "%s/machine.json", weft_test_dir());
    copy_file(PAIRS, file);
    if (up(&b, file)) {
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
        weft_autofree char *text = NULL;
        size_t len = 0;
        CHECK_INT(weft_file_read(PAIRS, 1U << 20, &text, &len, NULL), 0);
        char *healthy = strstr(text, "true"); /* device 0's */
        char *broken = NULL;
        const int head = (int)(healthy - text);
        broken = weft_asprintf("%.*sfalse%s", head, text, healthy + 4);
        CHECK_INT(weft_file_replace(file, broken, strlen(broken), 0600, NULL), 0);
        weft_free(broken);
        CHECK_INT(kill(b.plugin.pid, SIGHUP), 0);
        proc_expect(&b.kubelet, "list devices=8 healthy=7");
        proc_expect(&b.kubelet, "id " GPU0 " Unhealthy numa=0");
        proc_send(&b.kubelet, "allocate " GPU0);
        proc_expect(&b.kubelet, "allocate-failed code=3");
        proc_send(&b.kubelet, "ask 2");
        proc_expect(&b.kubelet, "pod-gets count=2 ids=" GPU1 "," GPU3);
        CHECK_INT(kill(b.plugin.pid, SIGHUP), 0); /* the same once more: no message */
        CHECK(!proc_says(&b.kubelet, "list", 200));
        copy_file(PAIRS, file);
        CHECK_INT(kill(b.plugin.pid, SIGHUP), 0);
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
    }
    down(&b);
}

/* ---- wrong use ---- */

static int run_plugin(const char *a, const char *a_value, const char *b, const char *b_value,
                      char *ret_line, size_t room)
{
    char program[512];
    (void)snprintf(program, sizeof(program), "%s", proc_path("bin/weft-device-plugin"));
    const char *const argv[] = {program, a, a_value, b, b_value, NULL};
    struct proc p;
    if (!proc_start(&p, argv)) {
        return -1;
    }
    (void)proc_says(&p, "", 3000); /* to the end of its output */
    (void)snprintf(ret_line, room, "%s", p.text != NULL ? p.text : "");
    return proc_end(&p, 0, 3000);
}

static void uninstall_removes_cdi_files(void)
{
    char said[8192], folder[300], file[400];
    (void)snprintf(folder, sizeof(folder), "%s/cdi-files", weft_test_dir());
    (void)snprintf(file, sizeof(file), "%s/k8s.device-plugin.nvidia.com-gpu.json", folder);
    CHECK_INT(mkdir(folder, 0700), 0);
    CHECK_INT(weft_file_replace(file, "{}", 2, 0600, NULL), 0);
    CHECK_INT(run_plugin("--uninstall", "--cdi-dir", folder, NULL, said, sizeof(said)), 0);
    CHECK_STR(said, "removed 1 CDI file\n");
    CHECK(access(file, F_OK) < 0);
    CHECK_INT(run_plugin("--cdi-dir", file, "--uninstall", NULL, said, sizeof(said)), 0);
    CHECK_STR(said, "removed 0 CDI files\n");
    CHECK_INT(run_plugin("--uninstall", "--cdi-dir", "/etc/hostname", NULL, said, sizeof(said)), 1);
    CHECK_CONTAINS(said, "/etc/hostname/k8s.device-plugin.nvidia.com-gpu.json: Not a directory");
}

static void wrong_use_is_explained(void)
{
    char said[8192], file[300];
    CHECK_INT(run_plugin("--help", NULL, NULL, NULL, said, sizeof(said)), 0);
    CHECK_CONTAINS(said, "--plugin-dir DIR");
    CHECK_INT(run_plugin("--version", NULL, NULL, NULL, said, sizeof(said)), 0);
    CHECK_STR(said, "weft-device-plugin " WEFT_VERSION "\n");
    CHECK_INT(run_plugin("--frobnicate", NULL, NULL, NULL, said, sizeof(said)), 2);
    CHECK_CONTAINS(said, "unknown argument --frobnicate");
    CHECK_INT(run_plugin("--log-level", "loud", NULL, NULL, said, sizeof(said)), 2);
    CHECK_CONTAINS(said, "--log-level: \"loud\" is not debug, info, warn or error");
    CHECK_INT(run_plugin("--log-level=info", "--log-level=debug", NULL, NULL, said, sizeof(said)),
              2);
    CHECK_CONTAINS(said, "--log-level stands there twice");
    CHECK_INT(run_plugin("--machine", "/nonexistent", NULL, NULL, said, sizeof(said)), 1);
    (void)snprintf(file, sizeof(file), "%s/pipe", weft_test_dir());
    CHECK_INT(mkfifo(file, 0600), 0); /* nobody writes: it must not wait */
    CHECK_INT(run_plugin("--machine", file, NULL, NULL, said, sizeof(said)), 1);
    CHECK_CONTAINS(said, "/pipe is no regular file");
    CHECK_INT(run_plugin("--host-root", "/nonexistent", NULL, NULL, said, sizeof(said)), 1);
    CHECK_CONTAINS(said, "host root /nonexistent: No such file");
    CHECK_INT(run_plugin("--host-root", "/etc/hostname", NULL, NULL, said, sizeof(said)), 1);
    CHECK_CONTAINS(said, "host root /etc/hostname: Not a directory");
    CHECK_INT(run_plugin("--machine", "/nonexistent", NULL, NULL, said, sizeof(said)), 1);
    CHECK_CONTAINS(said, "/nonexistent: No such file");
    (void)snprintf(file, sizeof(file), "%s/config.yaml", weft_test_dir());
    static const char bad[] =
        "apiVersion: weft.dev/v1alpha1\nkind: DevicePluginConfig\nmachina: x\n";
    CHECK_INT(weft_file_replace(file, bad, strlen(bad), 0600, NULL), 0);
    /* a bad file is a failure, as in the other programs: the command line was right */
    CHECK_INT(run_plugin("--config", file, "--machine", PAIRS, said, sizeof(said)), 1);
    CHECK_CONTAINS(said, "config.yaml:3: machina: unknown field");
    CHECK_INT(run_plugin("--config", "/nonexistent", "--machine", PAIRS, said, sizeof(said)), 1);
    CHECK_CONTAINS(said, "/nonexistent: No such file");
}

WEFT_SUITE(plugin_run, {"pods get bridged pairs", pods_get_bridged_pairs},
           {"wrong requests are refused and change nothing",
            wrong_requests_are_refused_and_change_nothing},
           {"preferred allocation never fails", preferred_allocation_never_fails},
           {"a restarted kubelet is found again", a_restarted_kubelet_is_found_again},
           {"a killed kubelet is found again", a_killed_kubelet_is_found_again},
           {"a wiped or remade folder is survived", a_wiped_or_remade_folder_is_survived},
           {"its own socket removed makes it register again",
            its_own_socket_removed_makes_it_register_again},
           {"a lost stream is renewed and a rival is named",
            a_lost_stream_is_renewed_and_a_rival_is_named},
           {"a hung kubelet does not hang it", a_hung_kubelet_does_not_hang_it},
           {"more than one SIGTERM is still a clean end",
            more_than_one_sigterm_is_still_a_clean_end},
           {"it waits for a kubelet that is not there", it_waits_for_a_kubelet_that_is_not_there},
           {"a missing folder is warned of", a_missing_folder_is_warned_of},
           {"a bare matrix is warned of", a_bare_matrix_is_warned_of},
           {"sockets of dead plugins go", sockets_of_dead_plugins_go},
           {"no gpu is no failure and a changed machine is told",
            no_gpu_is_no_failure_and_a_changed_machine_is_told},
           {"an unhealthy device is told and not handed out",
            an_unhealthy_device_is_told_and_not_handed_out},
           {"wrong use is explained", wrong_use_is_explained},
           {"uninstall removes CDI files", uninstall_removes_cdi_files})
