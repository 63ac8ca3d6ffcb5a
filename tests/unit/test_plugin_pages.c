/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's pages, asked of the running process while the kubelet stand-in works with it: every
 * number is one that the stand-in's own doings say. */
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/buf.h"
#include "pkg/base/file.h"
#include "pkg/base/str.h"
#include "pkg/machine/machine.h"
#include "tests/unit/http_get.h"
#include "tests/unit/proc.h"
#include "tests/unit/unit.h"

#define PAIRS "tests/fixtures/machine/pairs8.json"
#define GPU0 "GPU-b9f245aa-bf72-44af-a9e6-8a70a1ed4ddb"
#define GPU2 "GPU-a0993686-581c-4447-ae1b-2d4f98dcf1f8"

struct pages {
    char dir[256], machine[300];
    struct proc plugin, kubelet;
    uint16_t port;
    struct weft_buf page;
};

static void copy_file(const char *from, const char *to)
{
    weft_autofree char *text = NULL;
    size_t len = 0;
    CHECK_INT(weft_file_read(from, 1U << 20, &text, &len, NULL), 0);
    CHECK_INT(weft_file_replace(to, text, len, 0600, NULL), 0);
}

static bool start_kubelet(struct pages *p)
{
    char program[512];
    (void)snprintf(program, sizeof(program), "%s", proc_path("fakes/fake_kubelet"));
    const char *const argv[] = {program, "--dir", p->dir, "--timeout", "60", NULL};
    return proc_start(&p->kubelet, argv) && proc_expect(&p->kubelet, "serving") != NULL;
}

static bool up(struct pages *p, const char *level)
{
    static int number;
    *p = (struct pages){.plugin.pid = -1, .kubelet.pid = -1};
    weft_buf_init(&p->page, 4 << 20);
    (void)snprintf(p->dir, sizeof(p->dir), "%s/pages%d", weft_test_dir(), number++);
    (void)snprintf(p->machine, sizeof(p->machine), "%s.json", p->dir);
    CHECK_INT(mkdir(p->dir, 0700), 0);
    copy_file(PAIRS, p->machine);
    char program[512];
    (void)snprintf(program, sizeof(program), "%s", proc_path("bin/weft-device-plugin"));
    const char *const argv[] = {program, "--machine",   p->machine,    "--plugin-dir",
                                p->dir,  "--listen",    "127.0.0.1:0", "--partitions",
                                "mixed", "--log-level", level,         NULL};
    const char *line =
        proc_start(&p->plugin, argv) ? proc_expect(&p->plugin, "event=listening") : NULL;
    const char *port = line != NULL ? strstr(line, " port=") : NULL;
    uint64_t number_of_port = 0;
    CHECK(port != NULL);
    CHECK_INT(port != NULL
                  ? weft_parse_u64(weft_str_trim(weft_str(port + 6)), UINT16_MAX, &number_of_port)
                  : -1,
              0);
    p->port = (uint16_t)number_of_port;
    return p->port > 0;
}

static void down(struct pages *p)
{
    CHECK_INT(proc_end(&p->plugin, SIGTERM, 5000), 0);
    (void)proc_end(&p->kubelet, SIGTERM, 5000);
    weft_buf_done(&p->page);
}

/* The whole answer, head and body. */
static const char *get(struct pages *p, const char *path)
{
    return http_get((uint16_t)p->port, path, &p->page);
}

static void ready_means_registered(void)
{
    struct pages p;
    if (up(&p, "info")) {
        CHECK_CONTAINS(get(&p, "/livez"), "HTTP/1.1 200 ");
        CHECK_CONTAINS(get(&p, "/readyz"), "HTTP/1.1 503 ");
        CHECK_CONTAINS(weft_buf_text(&p.page), "not registered at the kubelet for nvidia.com/gpu");
        CHECK_CONTAINS(get(&p, "/metrics"),
                       "\nweft_plugin_registered{resource=\"nvidia.com/gpu\"} 0\n");
        if (start_kubelet(&p)) {
            proc_expect(&p.plugin, "event=registered");
            proc_expect(&p.kubelet, "list devices=8");
            CHECK_CONTAINS(get(&p, "/readyz"), "HTTP/1.1 200 ");
            CHECK_CONTAINS(get(&p, "/metrics"),
                           "\nweft_plugin_registered{resource=\"nvidia.com/gpu\"} 1\n");
            CHECK_INT(proc_end(&p.kubelet, SIGTERM, 5000), 0);
            proc_expect(&p.plugin, "event=kubelet-changed");
            CHECK_CONTAINS(get(&p, "/readyz"), "HTTP/1.1 503 ");
        }
    }
    down(&p);
}

static void what_the_kubelet_asked_is_counted(void)
{
    struct pages p;
    if (up(&p, "info") && start_kubelet(&p)) {
        proc_expect(&p.kubelet, "list devices=8 healthy=8");
        proc_send(&p.kubelet, "ask 2"); /* one preferred allocation and one Allocate */
        proc_expect(&p.kubelet, "allocated containers=1");
        proc_send(&p.kubelet, "ask 2");
        proc_expect(&p.kubelet, "allocated containers=1");
        proc_send(&p.kubelet, "allocate GPU-nobody");
        proc_expect(&p.kubelet, "allocate-failed");
        const char *page = get(&p, "/metrics");
        CHECK_CONTAINS(page, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
        CHECK_CONTAINS(page,
                       "\nweft_plugin_devices{resource=\"nvidia.com/gpu\",health=\"healthy\"} 8\n");
        CHECK_CONTAINS(page, "\nweft_plugin_device_healthy{device=\"" GPU0 "\",");
        CHECK_CONTAINS(page, "\nweft_plugin_preferred_allocations_total{answer=\"exact\"} 2\n");
        CHECK_CONTAINS(page, "\nweft_plugin_preferred_allocations_total{answer=\"none\"} 0\n");
        CHECK_CONTAINS(page, "\nweft_plugin_preferred_allocation_seconds_count 2\n");
        CHECK_CONTAINS(page, "\nweft_plugin_allocations_total{result=\"granted\"} 2\n");
        CHECK_CONTAINS(page, "\nweft_plugin_allocations_total{result=\"refused\"} 1\n");
        CHECK_CONTAINS(page, "\nweft_plugin_registrations_total{result=\"ok\"} 1\n");
        CHECK_CONTAINS(page, "\nweft_plugin_streams{resource=\"nvidia.com/gpu\"} 1\n");
        CHECK_CONTAINS(page, "\nweft_plugin_device_lists_sent_total 1\n");
        CHECK_CONTAINS(page, "\nprocess_resident_memory_bytes ");
    }
    down(&p);
}

static void the_last_allocations_can_be_read(void)
{
    struct pages p;
    if (up(&p, "debug") && start_kubelet(&p)) {
        proc_expect(&p.kubelet, "list devices=8");
        CHECK_CONTAINS(get(&p, "/debug/allocations"), "HTTP/1.1 200 ");
        proc_send(&p.kubelet, "ask 2");
        proc_expect(&p.kubelet, "allocated containers=1");
        proc_expect(&p.plugin, "event=preferred"); /* the same line, in the log */
        proc_send(&p.kubelet, "ask 1");
        proc_expect(&p.kubelet, "allocated containers=1");
        const char *page = get(&p, "/debug/allocations");
        /* the bridged pair of 12 links at 25,000 MB/s: one component, min-cut 300,000 */
        CHECK_CONTAINS(page, " size=2 available=8 required=0 chosen=" GPU0 "," GPU2
                             " exact=true components=1 min_cut_mbps=300000 ");
        const char *newer = strstr(page, " size=1 available=6 ");
        CHECK(newer != NULL && newer < strstr(page, " size=2 "));
    }
    down(&p);
}

#define MOVES "\nweft_plugin_health_transitions_total"

/* The first device of the file turns unhealthy, and healthy again. */
static void a_device_that_fails_shows(void)
{
    struct pages p;
    if (up(&p, "info") && start_kubelet(&p)) {
        proc_expect(&p.kubelet, "list devices=8 healthy=8");
        weft_autofree char *text = NULL;
        size_t len = 0;
        CHECK_INT(weft_file_read(p.machine, 1U << 20, &text, &len, NULL), 0);
        char *healthy = text != NULL ? strstr(text, "\"healthy\": true") : NULL;
        CHECK(healthy != NULL);
        if (healthy != NULL) {
            static const char unhealthy[] = "\"healthy\":false"; /* as long as the other */
            memcpy(healthy, unhealthy, sizeof(unhealthy) - 1);
            CHECK_INT(weft_file_replace(p.machine, text, len, 0600, NULL), 0);
            CHECK_INT(kill(p.plugin.pid, SIGHUP), 0);
        }
        proc_expect(&p.kubelet, "list devices=8 healthy=7");
        const char *page = get(&p, "/metrics");
        CHECK_CONTAINS(page, "health=\"healthy\"} 7\n");
        CHECK_CONTAINS(page, "health=\"unhealthy\"} 1\n");
        CHECK_CONTAINS(page, MOVES "{to=\"unhealthy\",reason=\"look\"} 1\n");
        CHECK_CONTAINS(page, MOVES "{to=\"healthy\",reason=\"clean\"} 0\n");
        CHECK_CONTAINS(page, "\nweft_plugin_devices_by_state{state=\"healthy\"} 7\n");
        CHECK_CONTAINS(page, "\nweft_plugin_devices_by_state{state=\"unhealthy\"} 1\n");
        CHECK_CONTAINS(page, "\nweft_plugin_device_lists_sent_total 2\n");
        proc_expect(&p.plugin, "event=health device=");
        copy_file(PAIRS, p.machine);
        CHECK_INT(kill(p.plugin.pid, SIGHUP), 0);
        proc_expect(&p.kubelet, "list devices=8 healthy=8");
        CHECK_CONTAINS(get(&p, "/metrics"), MOVES "{to=\"healthy\",reason=\"clean\"} 1\n");
    }
    down(&p);
}

static void the_machine_can_be_read_back(void)
{
    struct pages p;
    if (up(&p, "info")) {
        const char *page = get(&p, "/debug/machine");
        const char *body = strstr(page, "\r\n\r\n");
        weft_auto(weft_machine_free) struct weft_machine *served = NULL;
        weft_auto(weft_machine_free) struct weft_machine *file = NULL;
        CHECK(body != NULL);
        CHECK_INT(weft_machine_load(PAIRS, &file, NULL), 0);
        CHECK_INT(body != NULL
                      ? weft_machine_read(body + 4, strlen(body + 4), "page", &served, NULL)
                      : -1,
                  0);
        CHECK(served != NULL && file != NULL && weft_machine_equal(served, file));
        CHECK_CONTAINS(get(&p, "/debug/config"), "\npartitions: \"mixed\"\n");
        CHECK(strstr(weft_buf_text(&p.page), "# not used") == NULL);
        CHECK_CONTAINS(get(&p, "/metrics"),
                       "\nweft_plugin_config_reloads_total{result=\"refused\"} 0\n");
        CHECK_CONTAINS(weft_buf_text(&p.page), "\nweft_plugin_config_refused 0\n");
        CHECK_CONTAINS(get(&p, "/"), "HTTP/1.1 404 ");
    }
    down(&p);
}

/* A partition without a profile makes no resource name: the whole machine is refused, and the
 * devices of before stay, of which one is a partition now that is not well, and the others are
 * gone. */
static void a_refused_machine_is_not_shown(void)
{
    struct pages p;
    if (up(&p, "info") && start_kubelet(&p)) {
        static const char odd[] = "{\"weft_machine\": 1, \"vendor\": \"nvidia\", \"devices\": "
                                  "[{\"id\": \"" GPU0 "\", \"healthy\": false, \"parent\": 0}]}";
        proc_expect(&p.kubelet, "list devices=8 healthy=8");
        CHECK_INT(weft_file_replace(p.machine, odd, strlen(odd), 0600, NULL), 0);
        CHECK_INT(kill(p.plugin.pid, SIGHUP), 0);
        proc_expect(&p.plugin, "event=machine-not-used");
        const char *page = get(&p, "/metrics");
        CHECK_CONTAINS(page, "\nweft_plugin_machine_changes_total{result=\"refused\"} 1\n");
        CHECK_CONTAINS(page, "health=\"healthy\"} 0\n");
        CHECK_CONTAINS(page, "health=\"unhealthy\"} 8\n");
        CHECK_CONTAINS(get(&p, "/debug/machine"), GPU2);
        proc_expect(&p.kubelet, "list devices=8 healthy=0");
    }
    down(&p);
}

static void an_address_that_is_none_is_refused(void)
{
    char program[512];
    (void)snprintf(program, sizeof(program), "%s", proc_path("bin/weft-device-plugin"));
    const char *const argv[] = {program, "--machine", PAIRS, "--listen", "localhost", NULL};
    struct proc plugin = {.pid = -1};
    if (proc_start(&plugin, argv)) {
        proc_expect(&plugin, "--listen: \"localhost\" is no address to listen on");
    }
    CHECK_INT(proc_end(&plugin, 0, 5000), 2);
}

WEFT_SUITE(plugin_pages, {"ready means registered", ready_means_registered},
           {"what the kubelet asked is counted", what_the_kubelet_asked_is_counted},
           {"the last allocations can be read", the_last_allocations_can_be_read},
           {"a device that fails shows", a_device_that_fails_shows},
           {"the machine can be read back", the_machine_can_be_read_back},
           {"a refused machine is not shown", a_refused_machine_is_not_shown},
           {"an address that is none is refused", an_address_that_is_none_is_refused})
