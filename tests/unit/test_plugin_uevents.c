/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's uevents: which of its messages matter (their form is that of lib/kobject_uevent.c),
 * how events of the kernel under this test are gathered, and what the plugin makes of one. Real
 * events come from writing to the "uevent" file of a PCI function, which the kernel answers with
 * the event asked for and nothing else (Documentation/ABI/testing/sysfs-uevent). */
#include "deviceplugin/uevents.h"

#include <fcntl.h>
#include <glob.h>
#include <linux/netlink.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/clock.h"
#include "pkg/loop/loop.h"
#include "pkg/machine/host.h"
#include "tests/unit/fake_host.h"
#include "tests/unit/proc.h"
#include "tests/unit/unit.h"

/* A message: the string is whole with the NUL that the compiler puts after it. */
#define MATTERS(text) weft_uevent_matters(text, sizeof(text))

static void what_matters(void)
{
    CHECK(MATTERS("remove@/devices/pci0000:00/0000:00:01.0/0000:05:00.0\0ACTION=remove\0"
                  "DEVPATH=/devices/pci0000:00/0000:00:01.0/0000:05:00.0\0SUBSYSTEM=pci\0"
                  "PCI_CLASS=120000\0PCI_ID=1002:74A1\0SEQNUM=4711"));
    CHECK(MATTERS("change@/devices/pci0000:00/0000:05:00.0/drm/card1\0ACTION=change\0"
                  "SUBSYSTEM=drm\0WEDGED=rebind,bus-reset\0DEVNAME=dri/card1\0SEQNUM=1"));
    CHECK(MATTERS("add@/module/nvidia\0ACTION=add\0DEVPATH=/module/nvidia\0SUBSYSTEM=module"));
    CHECK(MATTERS("add@/x\0SUBSYSTEM=infiniband"));
    CHECK(!MATTERS("add@/devices/virtual/net/veth0\0ACTION=add\0SUBSYSTEM=net\0IFINDEX=9"));
    CHECK(!MATTERS("add@/pci\0ACTION=add\0SUBSYSTEM=pci_bus"));
    CHECK(!MATTERS("add@/x\0SUBSYSTEM=pc"));
    CHECK(!MATTERS("add@/x\0SUBSYSTEM="));
    CHECK(!MATTERS("add@/x\0XSUBSYSTEM=pci"));
    CHECK(!MATTERS("add@/x\0SUBSYSTEM=net\0SUBSYSTEM=pci")); /* the kernel's is the first */
    CHECK(!MATTERS(""));
    CHECK(!weft_uevent_matters("SUBSYSTEM=pci", 12)); /* cut off */
    CHECK(weft_uevent_matters("SUBSYSTEM=pci", 13));
    CHECK(!weft_uevent_matters("", 0));
}

/* Makes the kernel tell of a PCI function. False, and said so, where it cannot be asked to. */
static bool kernel_tells(void)
{
    glob_t found = {0};
    bool done = false;
    if (glob("/sys/bus/pci/devices/*/uevent", 0, NULL, &found) == 0) {
        weft_autoclose const int fd = open(found.gl_pathv[0], O_WRONLY | O_CLOEXEC);
        done = fd >= 0 && write(fd, "change", 6) == 6;
    }
    globfree(&found);
    if (!done) {
        (void)printf("SKIP: no PCI function whose uevent file can be written\n");
    }
    return done;
}

struct heard {
    int times;
    bool once;
    int64_t at; /* the last time */
};

static void on_happened(void *data)
{
    struct heard *heard = data;
    heard->times++;
    heard->once = true;
    heard->at = weft_clock_monotonic(weft_clock_system());
}

static void wait_ms(struct weft_loop *loop, int ms)
{
    const bool never = false;
    (void)weft_loop_run_until(loop, &never, ms * WEFT_NS_PER_MS);
}

static void events_are_gathered(void)
{
    struct heard heard = {0};
    struct weft_loop *loop = NULL;
    struct weft_uevents *uevents = NULL;
    CHECK_INT(weft_loop_new(&loop, NULL), 0);
    if (weft_uevents_new(loop, on_happened, &heard, &uevents, NULL) < 0 || !kernel_tells()) {
        (void)printf("SKIP: no uevents here\n");
    } else {
        for (int i = 0; i < 20; i++) {
            (void)kernel_tells();
        }
        CHECK(weft_loop_run_until(loop, &heard.once, 10 * WEFT_NS_PER_S));
        CHECK_INT(heard.times, 1);
        const int64_t first = heard.at;
        heard.once = false;
        (void)kernel_tells(); /* so soon after the last one it waits */
        CHECK(weft_loop_run_until(loop, &heard.once, 10 * WEFT_NS_PER_S));
        CHECK(heard.at - first > 900 * WEFT_NS_PER_MS);
        CHECK_INT(heard.times, 2);
    }
    weft_uevents_free(uevents);
    weft_loop_free(loop);
}

/* More than the socket holds, while the loop is busy elsewhere: the kernel says that some were
 * lost, by an error that must not end the watch. */
static void an_overrun_is_an_event(void)
{
    enum { MORE_THAN_FITS = 3000 };
    struct heard heard = {0};
    struct weft_loop *loop = NULL;
    struct weft_uevents *uevents = NULL;
    CHECK_INT(weft_loop_new(&loop, NULL), 0);
    if (weft_uevents_new(loop, on_happened, &heard, &uevents, NULL) < 0 || !kernel_tells()) {
        (void)printf("SKIP: no uevents here\n");
    } else {
        for (int i = 0; i < MORE_THAN_FITS; i++) {
            (void)kernel_tells();
        }
        CHECK(weft_loop_run_until(loop, &heard.once, 10 * WEFT_NS_PER_S));
        wait_ms(loop, 1500); /* what was left in the socket */
        heard.once = false;
        (void)kernel_tells();
        CHECK(weft_loop_run_until(loop, &heard.once, 10 * WEFT_NS_PER_S));
    }
    weft_uevents_free(uevents);
    weft_loop_free(loop);
}

/* Whoever has the right to can send to the kernel's group. */
static void a_stranger_is_not_heard(void)
{
    static const char forged[] = "remove@/devices/x\0ACTION=remove\0SUBSYSTEM=pci";
    const struct sockaddr_nl group = {.nl_family = AF_NETLINK, .nl_groups = 1};
    weft_autoclose const int fd =
        socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
    struct heard heard = {0};
    struct weft_loop *loop = NULL;
    struct weft_uevents *uevents = NULL;
    CHECK_INT(weft_loop_new(&loop, NULL), 0);
    if (weft_uevents_new(loop, on_happened, &heard, &uevents, NULL) < 0 ||
        sendto(fd, forged, sizeof(forged), 0, (const struct sockaddr *)&group, sizeof(group)) < 0) {
        (void)printf("SKIP: no right to send uevents\n");
    } else {
        wait_ms(loop, 400);
        CHECK_INT(heard.times, 0);
    }
    weft_uevents_free(uevents);
    weft_loop_free(loop);
}

static void take_away(const char *dir, const char *path, const char *name)
{
    char from[600], to[600];
    (void)snprintf(from, sizeof(from), "%s%s", dir, path);
    (void)snprintf(to, sizeof(to), "%s/%s", dir, name);
    CHECK_INT(rename(from, to), 0);
}

/* An AMD GPU that falls off the bus: no library tells of it, and the next look is 30 s away. */
static void a_lost_gpu_is_seen_at_once(void)
{
    char dir[256], plugins[300], plugin_path[512], kubelet_path[512];
    weft_auto(weft_host_free) struct weft_host *host = fake_host("kfd/mi300x-8.txt");
    (void)snprintf(dir, sizeof(dir), "%s/amd", weft_test_dir());
    (void)snprintf(plugins, sizeof(plugins), "%s/dp", dir);
    const bool made = host != NULL && mkdir(dir, 0755) == 0 && fake_host_write(host, dir) &&
                      mkdir(plugins, 0700) == 0;
    CHECK(made);
    if (!made || !kernel_tells()) {
        return;
    }
    struct proc kubelet = {.pid = -1}, plugin = {.pid = -1};
    (void)snprintf(kubelet_path, sizeof(kubelet_path), "%s", proc_path("fakes/fake_kubelet"));
    (void)snprintf(plugin_path, sizeof(plugin_path), "%s", proc_path("bin/weft-device-plugin"));
    const char *const serve[] = {kubelet_path, "--dir", plugins, "--timeout", "60", NULL};
    const char *const advertise[] = {
        plugin_path,    "--host-root", dir,           "--vendor", "amd",
        "--plugin-dir", plugins,       "--log-level", "debug",    NULL};
    if (proc_start(&kubelet, serve) && proc_expect(&kubelet, "serving") != NULL &&
        proc_start(&plugin, advertise)) {
        proc_expect(&kubelet, "resource=amd.com/gpu");
        proc_expect(&kubelet, "list devices=8 healthy=8");
        take_away(dir, "/sys/devices/virtual/kfd/kfd/topology/nodes/2", "node");
        take_away(dir, "/sys/bus/pci/devices/0000:05:00.0", "function");
        (void)kernel_tells();
        proc_expect(&plugin, "event=uevent message=change@/devices/pci");
        proc_expect(&kubelet, "list devices=8 healthy=7");
        proc_expect(&kubelet, "id 0000:05:00.0 Unhealthy");
    }
    CHECK_INT(proc_end(&plugin, SIGTERM, 5000), 0);
    (void)proc_end(&kubelet, SIGTERM, 5000);
}

WEFT_SUITE(plugin_uevents, {"what matters", what_matters},
           {"events are gathered", events_are_gathered},
           {"an overrun is an event", an_overrun_is_an_event},
           {"a stranger is not heard", a_stranger_is_not_heard},
           {"a lost GPU is seen at once", a_lost_gpu_is_seen_at_once})
