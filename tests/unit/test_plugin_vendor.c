/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin as a process that asks the driver, here the mock of NVIDIA's library under the real
 * one's name on the loader's path: what a kubelet sees of GPUs that break, hang, get lost, come
 * late, and recover. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/clock.h"
#include "pkg/base/mem.h"
#include "tests/unit/nvml_world.h"
#include "tests/unit/proc.h"
#include "tests/unit/unit.h"

#define GPU(n) "GPU-0000000" #n "-0000-4000-8000-00000000000" #n

struct bench {
    struct nvml_world w;
    char dir[256];
    struct proc plugin, kubelet;
};

/* Short times, so that a test sees each of them pass: a call may take 300 ms. */
static bool start_plugin(struct bench *b)
{
    char program[512], folder[512];
    (void)snprintf(folder, sizeof(folder), "%s", proc_path("fakes"));
    (void)snprintf(program, sizeof(program), "%s", proc_path("bin/weft-device-plugin"));
    CHECK_INT(setenv("LD_LIBRARY_PATH", folder, 1), 0);
    const char *const argv[] = {program,  "--host-root", b->w.root, "--plugin-dir",
                                b->dir,   "--log-level", "debug",   "--driver-timeout",
                                "300ms",  "--rescan",    "100ms",   "--vendor",
                                "nvidia", NULL};
    const bool started = proc_start(&b->plugin, argv);
    CHECK_INT(unsetenv("LD_LIBRARY_PATH"), 0);
    return started;
}

static bool up(struct bench *b, const char *fixture, int gpus)
{
    char program[512];
    *b = (struct bench){.plugin.pid = -1, .kubelet.pid = -1};
    nvml_world_up(&b->w, fixture, gpus);
    (void)snprintf(b->dir, sizeof(b->dir), "%s/dp", b->w.root);
    CHECK_INT(mkdir(b->dir, 0700), 0);
    (void)snprintf(program, sizeof(program), "%s", proc_path("fakes/fake_kubelet"));
    const char *const argv[] = {program, "--dir", b->dir, "--timeout", "60", NULL};
    return proc_start(&b->kubelet, argv) && proc_expect(&b->kubelet, "serving") != NULL &&
           start_plugin(b);
}

static void down(struct bench *b)
{
    CHECK_INT(proc_end(&b->plugin, SIGTERM, 5000), 0);
    (void)proc_end(&b->kubelet, SIGTERM, 5000);
}

static void tell(struct bench *b, const char *events)
{
    char text[512];
    (void)snprintf(text, sizeof(text), "{\n \"events\": [%s],\n \"driver\"", events);
    nvml_world_edit(&b->w, "{\n \"driver\"", text);
}

static void pods_get_gpus_that_the_driver_knows(void)
{
    struct bench b;
    if (up(&b, "hgx-h100-8.json", 8)) {
        proc_expect(&b.kubelet, "resource=nvidia.com/gpu");
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
        proc_expect(&b.kubelet, "id " GPU(0) " Healthy numa=0");
        proc_send(&b.kubelet, "ask 2");
        proc_expect(&b.kubelet, "env NVIDIA_VISIBLE_DEVICES=" GPU(0) "," GPU(1));
        proc_expect(&b.kubelet, "device /dev/nvidia1 as /dev/nvidia1 rw");
        proc_expect(&b.kubelet, "device /dev/nvidia-uvm as /dev/nvidia-uvm rw");
    }
    down(&b);
}

static void an_xid_takes_its_gpu_away_until_it_recovers(void)
{
    struct bench b;
    if (up(&b, "hgx-h100-8.json", 8)) {
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
        nvml_world_edit(&b.w, "\"minor\": 5,", "\"minor\": 5, \"recovery\": 1,");
        tell(&b, "{\"gpu\": 5, \"type\": 8, \"data\": 79}");
        proc_expect(&b.kubelet, "list devices=8 healthy=7");
        proc_expect(&b.kubelet, "id " GPU(5) " Unhealthy");
        proc_expect(&b.plugin, "event=health device=" GPU(
                                   5) " from=healthy to=unhealthy "
                                      "cause=event reason=\"XID 79: GPU has fallen off the bus\"");
        proc_send(&b.kubelet, "allocate " GPU(5));
        proc_expect(&b.kubelet, "allocate-failed");
        proc_send(&b.kubelet, "ask 4");
        proc_expect(&b.kubelet, "allocated containers=1");
        nvml_world_edit(&b.w, "\"recovery\": 1,", "\"recovery\": 0,");
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
        proc_expect(&b.plugin, "event=health device=" GPU(5) " from=recovering to=healthy");
    }
    down(&b);
}

/* A driver that tells no recovery action cannot say that a fault is over; a person can. */
static void a_hangup_forgets_what_an_old_driver_cannot(void)
{
    struct bench b;
    if (up(&b, "dgx1v.json", 8)) {
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
        tell(&b, "{\"gpu\": 2, \"type\": 8, \"data\": 74}");
        proc_expect(&b.kubelet, "list devices=8 healthy=7");
        CHECK(!proc_says(&b.kubelet, "list devices=8 healthy=8", 600));
        CHECK_INT(kill(b.plugin.pid, SIGHUP), 0);
        proc_expect(&b.plugin, "from=unhealthy to=recovering cause=clean reason=\"XID 74");
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
    }
    down(&b);
}

static void a_gpu_in_doubt_is_suspect_first(void)
{
    struct bench b;
    if (up(&b, "hgx-h100-8.json", 8)) {
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
        nvml_world_edit(&b.w, "\"minor\": 6,",
                        "\"minor\": 6, \"returns\": {\"nvmlDeviceGetMemoryInfo\": 999},");
        proc_expect(&b.plugin, "event=health device=" GPU(6) " from=healthy to=suspect cause=look");
        proc_expect(&b.plugin, "event=health device=" GPU(6) " from=suspect to=unhealthy");
        proc_expect(&b.kubelet, "list devices=8 healthy=7");
        nvml_world_edit(&b.w, "{\"nvmlDeviceGetMemoryInfo\": 999}", "{}");
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
        CHECK(!proc_says(&b.plugin, "event=flapping", 10));
    }
    down(&b);
}

static void a_gpu_that_flaps_is_damped(void)
{
    struct bench b;
    if (up(&b, "hgx-h100-8.json", 8)) {
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
        tell(&b, "{\"gpu\": 1, \"type\": 8, \"data\": 94}");
        for (int i = 0; i < 3; i++) {
            proc_expect(&b.kubelet, "list devices=8 healthy=7");
            if (i < 2) {
                proc_expect(&b.kubelet, "list devices=8 healthy=8");
                nvml_world_edit(&b.w, "\"data\": 94}]",
                                "\"data\": 94}, {\"gpu\": 1, \"type\": 8, \"data\": 94}]");
            }
        }
        proc_expect(&b.plugin, "event=flapping device=" GPU(1));
        CHECK(!proc_says(&b.kubelet, "list devices=8 healthy=8", 1000)); /* ten minutes, now */
    }
    down(&b);
}

static void a_lost_gpu_is_unhealthy_and_not_gone(void)
{
    struct bench b;
    if (up(&b, "hgx-h100-8.json", 8)) {
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
        nvml_world_edit(&b.w, "\"minor\": 3,", "\"minor\": 3, \"lost\": true,");
        proc_expect(&b.kubelet, "list devices=8 healthy=7");
        proc_expect(&b.kubelet, "id " GPU(3) " Unhealthy");
        nvml_world_edit(&b.w, " \"lost\": true,", "");
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
    }
    down(&b);
}

/* The driver hangs for 2 s while the plugin asks it; the kubelet's questions are answered all the
 * time. */
static void a_driver_that_hangs_hangs_nothing_else(void)
{
    struct bench b;
    if (up(&b, "hgx-h100-8.json", 8)) {
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
        nvml_world_edit(&b.w, "{\n \"driver\"",
                        "{\n \"hang_ms\": {\"nvmlDeviceGetCount_v2\": 2000},\n"
                        " \"events\": [{\"gpu\": 0, \"type\": 256}],\n \"driver\"");
        proc_expect(&b.plugin, "event=driver-unresponsive call=nvmlDeviceGetCount");
        proc_expect(&b.kubelet, "list devices=8 healthy=0");
        const int64_t begin = weft_clock_monotonic(weft_clock_system());
        proc_send(&b.kubelet, "prefer 2 " GPU(0) "," GPU(1) "," GPU(2));
        proc_expect(&b.kubelet, "preferred count=");
        proc_send(&b.kubelet, "allocate " GPU(0));
        proc_expect(&b.kubelet, "allocate-failed");
        CHECK(weft_clock_monotonic(weft_clock_system()) - begin < WEFT_NS_PER_S);
        nvml_world_edit(&b.w, "\"nvmlDeviceGetCount_v2\": 2000", "");
        proc_expect(&b.plugin, "event=driver-answers-again");
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
        proc_send(&b.kubelet, "ask 2");
        proc_expect(&b.kubelet, "allocated containers=1");
    }
    down(&b);
}

/* Its library would hang in its destructor, too. */
static void the_plugin_ends_while_the_driver_hangs(void)
{
    struct bench b;
    if (up(&b, "hgx-h100-8.json", 8)) {
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
        nvml_world_edit(&b.w, "{\n \"driver\"",
                        "{\n \"hang_ms\": {\"nvmlDeviceGetCount_v2\": 60000, \"exit\": 60000},\n"
                        " \"events\": [{\"gpu\": 0, \"type\": 256}],\n \"driver\"");
        proc_expect(&b.plugin, "event=driver-unresponsive");
        const int64_t begin = weft_clock_monotonic(weft_clock_system());
        CHECK_INT(proc_end(&b.plugin, SIGTERM, 5000), 0);
        CHECK(weft_clock_monotonic(weft_clock_system()) - begin < 3 * WEFT_NS_PER_S);
        (void)proc_end(&b.kubelet, SIGTERM, 5000);
        return;
    }
    down(&b);
}

/* A driver that takes long to initialise, as without its persistence daemon: there is nothing to
 * register until it has answered. */
static void a_driver_that_starts_slowly_is_waited_for(void)
{
    struct bench b;
    if (up(&b, "driver-absent.json", 8)) {
        proc_expect(&b.plugin, "event=not-registered");
        nvml_world_put(
            &b.w, "/mock/machine.json",
            "{\"driver\": \"1\", \"hang_ms\": {\"nvmlInit_v2\": 900}, \"gpus\": [{\"uuid\": "
            "\"GPU-slow\", \"minor\": 0, \"memory_mib\": 1}]}");
        proc_expect(&b.plugin, "event=driver-unresponsive call=nvmlInit");
        proc_expect(&b.kubelet, "list devices=1 healthy=1");
    }
    down(&b);
}

static void a_driver_that_comes_later_is_found(void)
{
    struct bench b;
    if (up(&b, "hgx-h100-8.json", 8)) {
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
        down(&b);
    }
    if (up(&b, "driver-absent.json", 8)) {
        proc_expect(&b.plugin, "nvidia: the driver is not loaded");
        proc_expect(&b.plugin, "event=not-registered");
        CHECK(!proc_says(&b.kubelet, "register", 300));
        size_t len = 0;
        weft_autofree char *text = weft_fixture_text("nvml/hgx-h100-8.json", &len);
        nvml_world_put(&b.w, "/mock/machine.json", text != NULL ? text : "");
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
    }
    down(&b);
}

static void a_driver_that_goes_leaves_unhealthy_devices(void)
{
    struct bench b;
    if (up(&b, "hgx-h100-8.json", 8)) {
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
        nvml_world_edit(&b.w, "{\n",
                        "{\n \"returns\": {\"nvmlEventSetWait_v2\": 1, \"nvmlInit_v2\": 18},\n"
                        " \"events\": [{\"gpu\": 0, \"type\": 256}],\n");
        proc_expect(&b.plugin, "event=driver-lost");
        proc_expect(&b.kubelet, "list devices=8 healthy=0");
        CHECK(!proc_says(&b.kubelet, "list devices=0", 400));
        nvml_world_edit(&b.w, "\"nvmlEventSetWait_v2\": 1, \"nvmlInit_v2\": 18", "");
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
    }
    down(&b);
}

static void a_machine_that_stays_sends_nothing(void)
{
    struct bench b;
    if (up(&b, "l40s-8.json", 8)) {
        proc_expect(&b.kubelet, "list devices=8 healthy=8");
        /* a link that wakes up is no news; ten waits are a whole look */
        nvml_world_edit(&b.w, "\"pcie\": [1,", "\"pcie\": [4,");
        CHECK(!proc_says(&b.kubelet, "list", 1500));
        CHECK_INT(kill(b.plugin.pid, SIGHUP), 0);
        proc_expect(&b.plugin, "event=rescan");
        CHECK(!proc_says(&b.kubelet, "list", 500));
    }
    down(&b);
}

WEFT_SUITE(
    plugin_vendor, {"pods get GPUs that the driver knows", pods_get_gpus_that_the_driver_knows},
    {"an XID takes its GPU away until it recovers", an_xid_takes_its_gpu_away_until_it_recovers},
    {"a hangup forgets what an old driver cannot", a_hangup_forgets_what_an_old_driver_cannot},
    {"a GPU in doubt is suspect first", a_gpu_in_doubt_is_suspect_first},
    {"a GPU that flaps is damped", a_gpu_that_flaps_is_damped},
    {"a lost GPU is unhealthy and not gone", a_lost_gpu_is_unhealthy_and_not_gone},
    {"a driver that hangs hangs nothing else", a_driver_that_hangs_hangs_nothing_else},
    {"the plugin ends while the driver hangs", the_plugin_ends_while_the_driver_hangs},
    {"a driver that starts slowly is waited for", a_driver_that_starts_slowly_is_waited_for},
    {"a driver that comes later is found", a_driver_that_comes_later_is_found},
    {"a driver that goes leaves unhealthy devices", a_driver_that_goes_leaves_unhealthy_devices},
    {"a machine that stays sends nothing", a_machine_that_stays_sends_nothing})
