/* SPDX-License-Identifier: Apache-2.0 */
/* weftctl machine from its arguments to its four outputs. Expected lines are read off the fixtures
 * by eye. */
#include <stdio.h>

#include "ctl/ctl.h"
#include "ctl/machine-view.h"
#include "pkg/base/buf.h"
#include "pkg/machine/machine.h"
#include "tests/unit/ctl_run.h"
#include "tests/unit/machines.h"
#include "tests/unit/proc.h"
#include "tests/unit/unit.h"

/* Runs "machine" with the words of args. */
static struct ctl_result run(const char *args)
{
    return ctl_run(weft_ctl_machine_to, "machine", args);
}

#define FIXTURE(name) "--machine tests/fixtures/machine/" name

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        count++;
    }
    return count;
}

static size_t longest_line(const char *text)
{
    size_t longest = 0;
    for (const char *at = text; *at != '\0';) {
        const size_t len = strcspn(at, "\n");
        longest = len > longest ? len : longest;
        at += len + (at[len] == '\n');
    }
    return longest;
}

static void table_of_an_hgx(void)
{
    weft_auto(ctl_result_done) struct ctl_result r = run(FIXTURE("hgx-h100-8.json"));
    CHECK_INT(r.status, 0);
    CHECK_STR(r.err, "");
    CHECK_CONTAINS(r.out, "8 devices (NVIDIA H100 80GB HBM3), 8 NICs\n");
    CHECK_CONTAINS(r.out, "  GPU  PCI           NUMA  SOCKET  HEALTH\n"
                          "  0    0000:1b:00.0  0     0       ok\n");
    CHECK_CONTAINS(r.out, "\n  5     450 SYS   450 SYS   450 SYS   450 SYS   450 PXB         X  "
                          "450 NODE  450 NODE\n");
    CHECK_CONTAINS(r.out, "\n  5       SYS     SYS     SYS     SYS     PXB     PIX    NODE    "
                          "NODE\n");
    CHECK_CONTAINS(r.out, "what belongs together, and by what:\n"
                          "  0-1               PCIe switches (PXB)\n");
    CHECK_CONTAINS(r.out, "  0-3               one NUMA node (NODE), socket 0\n");
    CHECK_CONTAINS(r.out, "  0-7               links of 450 GB/s\n");
    CHECK(strstr(r.out, "to look at") == NULL);
    CHECK(strstr(r.out, "\x1b[") == NULL); /* no terminal: no colours */
    CHECK(longest_line(r.out) <= 100);
}

static void what_to_look_at(void)
{
    weft_auto(ctl_result_done) struct ctl_result r = run(FIXTURE("every-field.json"));
    CHECK_INT(r.status, 0);
    CHECK_CONTAINS(r.out, "2 devices (nvidia), 3 NICs; driver 570.133.20, runtime 12.8\n"
                          "NVLink clique b2f0c1d4-6a3e-4d0f-9d55-0c6f5a1e7b90.7\n"
                          "only a part: the source was cut short\n");
    CHECK_CONTAINS(r.out, "  gen1/5 x8/16  17/18 up  UNHEALTHY\n");
    CHECK_CONTAINS(r.out, "to look at:\n"
                          "  GPU 0: recovering: XID 79: the GPU has fallen off the bus\n"
                          "  GPU 0: 1 of 18 direct links are down\n"
                          "  GPU 0: the PCIe link runs x8 of x16\n"
                          "  GPU 0: the PCIe link runs gen1 of gen5 (at rest that is usual)\n"
                          "  mlx5_1: the port is down\n");
    CHECK_CONTAINS(r.out, "  mlx5_0  ibp3s0  0000:03:00.0  0     InfiniBand 400 Gb/s  up\n");

    weft_auto(ctl_result_done) struct ctl_result odd = run(FIXTURE("asymmetric4.txt"));
    CHECK_CONTAINS(odd.out,
                   "to look at:\n  GPU0 and GPU1 are 'NV2' one way and 'NV1' the other: the "
                   "smaller bandwidth and the larger distance\n    count\n");
    CHECK_CONTAINS(odd.out, "\n  1    25 NODE        X     NODE     NODE\n");
}

/* Rings of links, and none. */
static void tables_of_other_machines(void)
{
    weft_auto(ctl_result_done) struct ctl_result ring = run(FIXTURE("mtt-s4000-8.json"));
    CHECK_CONTAINS(ring.out, "\n  0           X   120 PIX      NODE  120 NODE       SYS");
    CHECK_CONTAINS(ring.out, "  0-3               links of 120 GB/s, one NUMA node (NODE), socket "
                             "0\n");
    weft_auto(ctl_result_done) struct ctl_result flat = run(FIXTURE("flat-vm.txt"));
    CHECK_CONTAINS(flat.out, "GPU to GPU: the PCIe path; no direct links are known\n");
    CHECK_CONTAINS(flat.out, "  0-3               a host bridge (PHB)\n");
    CHECK(strstr(flat.out, "GPU to NIC") == NULL);
}

/* 16 GPUs fold to 8 pairs, 64 parts to 8 GPUs; nothing gets wider than a terminal. */
static void many_devices_fold(void)
{
    weft_auto(ctl_result_done) struct ctl_result r = run(FIXTURE("dgx-2.txt"));
    CHECK_CONTAINS(r.out, "\n  2-3    0     ok\n");
    CHECK_CONTAINS(r.out, "\n  2-3     150 PXB   150 PIX  150 NODE  150 NODE   150 SYS");
    CHECK(longest_line(r.out) <= 100);

    weft_auto(weft_machine_free) struct weft_machine *m = machine_mi300x_cpx();
    weft_auto(weft_view_free) struct weft_view *view = NULL;
    weft_auto(weft_buf_done) struct weft_buf text;
    weft_buf_init(&text, 1U << 20);
    if (m == NULL || weft_view_new(m, &view, NULL) < 0) {
        CU_FAIL("no view");
        return;
    }
    CHECK_INT(view->row_count, 8);
    const struct weft_view_style style = {.color = true, .width = 100};
    weft_view_put_table(view, &style, &text);
    CHECK_INT(text.status, 0);
    CHECK_CONTAINS(weft_buf_text(&text), "\n  8-15   CPX      0000:20:00.0  0     0       ok\n");
    CHECK_CONTAINS(weft_buf_text(&text), "\n  0-7    \x1b[32m600 PSB\x1b[0m  \x1b[33m64 NODE\x1b");
    CHECK_CONTAINS(weft_buf_text(&text), "parts of GPU 1");
    CHECK_CONTAINS(weft_buf_text(&text), "\n  0-7     \x1b[32mPIX\x1b[0m  NODE");
}

/* What is written is read back as the same machine. */
static void json_round_trips(void)
{
    static const char *const fixtures[] = {"hgx-h100-8.json", "every-field.json", "l40s-8.txt",
                                           "asymmetric4.txt"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(fixtures); i++) {
        char args[128];
        char name[64];
        (void)snprintf(args, sizeof(args), "--machine tests/fixtures/machine/%s -o json",
                       fixtures[i]);
        (void)snprintf(name, sizeof(name), "machine/%s", fixtures[i]);
        weft_auto(ctl_result_done) struct ctl_result r = run(args);
        weft_auto(weft_machine_free) struct weft_machine *m = NULL;
        weft_auto(weft_machine_free) struct weft_machine *again = NULL;
        CHECK_INT(r.status, 0);
        CHECK_INT(weft_machine_load(weft_fixture(name), &m, NULL), 0);
        CHECK_INT(weft_machine_read(r.out, strlen(r.out), "again", &again, NULL), 0);
        CHECK(m != NULL && again != NULL && weft_machine_equal(m, again));
    }
}

/* ---- pictures ---- */

/* Is every element closed, in order? Enough XML for what is drawn here. */
static bool is_well_formed(const char *text)
{
    enum { DEPTH_MAX = 16, NAME_MAX_LEN = 16 };
    char open[DEPTH_MAX][NAME_MAX_LEN];
    size_t depth = 0;
    for (const char *at = strchr(text, '<'); at != NULL; at = strchr(at + 1, '<')) {
        const bool closes = at[1] == '/';
        const char *name = at + 1 + closes;
        const size_t len = strcspn(name, " />");
        const char *end = strchr(at, '>');
        if (end == NULL || len == 0 || len >= NAME_MAX_LEN) {
            return false;
        }
        if (closes) {
            if (depth == 0 || strncmp(open[--depth], name, len) != 0) {
                return false;
            }
        } else if (end[-1] != '/') {
            if (depth == DEPTH_MAX) {
                return false;
            }
            (void)snprintf(open[depth++], NAME_MAX_LEN, "%.*s", (int)len, name);
        }
    }
    return depth == 0;
}

static void svg_pictures(void)
{
    weft_auto(ctl_result_done) struct ctl_result r = run(FIXTURE("hgx-h100-8.json -o svg"));
    weft_auto(ctl_result_done) struct ctl_result again = run(FIXTURE("hgx-h100-8.json -o svg"));
    CHECK_INT(r.status, 0);
    CHECK_STR(again.out, r.out);
    CHECK(strncmp(r.out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=", 48) == 0);
    CHECK(is_well_formed(r.out));
    CHECK_INT(count_of(r.out, "class=\"gpu\""), 8);
    CHECK_INT(count_of(r.out, "class=\"nic\""), 8);
    CHECK_INT(count_of(r.out, "class=\"board\""), 4); /* T <= PXB joins pairs */
    CHECK_INT(count_of(r.out, "class=\"numa\""), 2);
    CHECK_INT(count_of(r.out, "class=\"socket\""), 2);
    CHECK_INT(count_of(r.out, "class=\"fabric\""), 1);
    CHECK_INT(count_of(r.out, "class=\"link\""), 8); /* each GPU to the fabric */
    CHECK_CONTAINS(r.out, "prefers-color-scheme:dark");
    CHECK_CONTAINS(r.out, ">450 GB/s</text>");

    /* the cube mesh has 16 links: eight of 50, eight of 25 GB/s (deviceplugin.md 3.2, E) */
    weft_auto(ctl_result_done) struct ctl_result mesh = run(FIXTURE("cube-mesh-v100.txt -o svg"));
    CHECK(is_well_formed(mesh.out));
    CHECK_INT(count_of(mesh.out, "<title>50 GB/s</title>"), 8);
    CHECK_INT(count_of(mesh.out, "<title>25 GB/s</title>"), 8);
    weft_auto(ctl_result_done) struct ctl_result none = run(FIXTURE("pcie8.txt -o svg"));
    CHECK(is_well_formed(none.out));
    CHECK_CONTAINS(none.out, "no direct links are known");
    weft_auto(ctl_result_done) struct ctl_result bad = run(FIXTURE("every-field.json -o svg"));
    CHECK_INT(count_of(bad.out, "class=\"gpu bad\""), 1);
    CHECK_INT(count_of(bad.out, "class=\"nic bad\""), 1);
    CHECK_CONTAINS(bad.out, ">17/18 links</text>");
}

static void dot_graphs(void)
{
    weft_auto(ctl_result_done) struct ctl_result r = run(FIXTURE("hgx-h100-8.json -o dot"));
    CHECK_INT(r.status, 0);
    CHECK(strncmp(r.out, "graph machine {\n", 16) == 0);
    CHECK_INT(count_of(r.out, "{"), count_of(r.out, "}"));
    CHECK_INT(count_of(r.out, "subgraph cluster_"), 2 + 2 + 4);
    CHECK_INT(count_of(r.out, " -- fabric [label=\"450\""), 8);
    CHECK_CONTAINS(r.out, "        g0 [label=\"GPU 0\\n0000:1b:00.0\"];\n");
    weft_auto(ctl_result_done) struct ctl_result mesh = run(FIXTURE("cube-mesh-v100.txt -o dot"));
    CHECK_INT(count_of(mesh.out, " -- g"), 16);
    CHECK_CONTAINS(mesh.out, "  g0 -- g3 [label=\"50\"");
}

/* ---- odd sources ---- */

/* Words of a source must not reach a terminal or a picture as they are. */
static void words_are_made_harmless(void)
{
    static const char text[] =
        "{\"weft_machine\":1,\"devices\":[{\"id\":\"<a&b>\",\"model\":\"M\\u001b[2J<&>\\\"\","
        "\"healthy\":false,\"health_reason\":\"line\\nbreak\",\"links_up\":1,\"links_total\":2}],"
        "\"nics\":[{\"name\":\"n\\u0007\\\"\\\\\",\"up\":false}],\"warnings\":[\"w\\u001b\"]}";
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    weft_auto(weft_view_free) struct weft_view *view = NULL;
    weft_auto(weft_buf_done) struct weft_buf table;
    weft_auto(weft_buf_done) struct weft_buf dot;
    weft_auto(weft_buf_done) struct weft_buf svg;
    weft_buf_init(&table, 1U << 16);
    weft_buf_init(&dot, 1U << 16);
    weft_buf_init(&svg, 1U << 16);
    CHECK_INT(weft_machine_read(text, strlen(text), "t", &m, NULL), 0);
    if (m == NULL || weft_view_new(m, &view, NULL) < 0) {
        CU_FAIL("no view");
        return;
    }
    const struct weft_view_style style = {.width = 100};
    weft_view_put_table(view, &style, &table);
    weft_view_put_dot(view, &dot);
    weft_view_put_svg(view, &svg);
    CHECK(strchr(weft_buf_text(&table), '\x1b') == NULL);
    CHECK(strchr(weft_buf_text(&table), '\a') == NULL);
    CHECK_CONTAINS(weft_buf_text(&table), "GPU 0: unhealthy: line?break\n");
    CHECK_CONTAINS(weft_buf_text(&dot), "n0 [label=\"n?\\\"\\\\\", shape");
    CHECK_CONTAINS(weft_buf_text(&svg), "<title>&lt;a&amp;b&gt; M?[2J&lt;&amp;&gt;\"");
    CHECK(strchr(weft_buf_text(&svg), '\x1b') == NULL);
    CHECK(is_well_formed(weft_buf_text(&svg)));
}

static void a_node_without_devices(void)
{
    static const char *const formats[] = {"table", "json", "dot", "svg"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(formats); i++) {
        char args[512];
        /* an empty folder as the host: no driver of any vendor */
        (void)snprintf(args, sizeof(args), "--host-root %s -o %s", weft_test_dir(), formats[i]);
        weft_auto(ctl_result_done) struct ctl_result r = run(args);
        CHECK_INT(r.status, 0);
        CHECK_STR(r.err, "");
        CHECK(r.out != NULL && r.out[0] != '\0');
        if (i == 0) {
            CHECK_CONTAINS(r.out, "0 devices, 0 NICs\n");
            CHECK_CONTAINS(r.out, "to look at:\n");
        }
    }
}

struct bad {
    const char *args, *message;
    int status;
};

static void wrong_use_is_one_line(void)
{
    static const struct bad cases[] = {
        {"-o yaml", "-o is table, json, dot or svg", 2},
        {"--machine x --host-root /host", "exclude each other", 2},
        {"--host-root /nonexistent", "host root /nonexistent: No such file or directory", 1},
        {"--machine", "--machine needs a value", 2},
        {"--size 2", "unknown option \"--size\"", 2},
        {"topo.txt", "unknown argument \"topo.txt\"", 2},
        {FIXTURE("none.txt"), "No such file", 1},
        {"--machine tests/unit/unit.h", "unit.h", 1},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
        weft_auto(ctl_result_done) struct ctl_result r = run(cases[i].args);
        CHECK_INT(r.status, cases[i].status);
        CHECK_STR(r.out, "");
        CHECK_CONTAINS(r.err, cases[i].message);
        const char *newline = strchr(r.err, '\n');
        CHECK(newline != NULL && newline[1] == '\0');
        CHECK(cases[i].status != 2 || strstr(r.err, "; see weftctl help machine\n") != NULL);
    }
}

/* The reader of a pipe that goes first is no failure: nothing is said. */
static void a_reader_that_goes_is_no_error(void)
{
    char command[512];
    (void)snprintf(command, sizeof(command),
                   "(sleep 0.2; %s machine --machine tests/fixtures/machine/hgx-h100-8.json; "
                   "echo status $? >&2) | true",
                   proc_path("bin/weftctl"));
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    struct proc p = {0};
    CHECK(proc_start(&p, argv));
    (void)proc_expect(&p, "status 0");
    CHECK_INT(proc_end(&p, 0, 5000), 0);
    CHECK(p.text == NULL || strstr(p.text, "weftctl:") == NULL);
    free(p.text);

    const char *const full[] = {"/bin/sh", "-c", command, NULL};
    (void)snprintf(command, sizeof(command),
                   "%s machine --machine tests/fixtures/machine/hgx-h100-8.json >/dev/full",
                   proc_path("bin/weftctl"));
    struct proc q = {0};
    CHECK(proc_start(&q, full));
    (void)proc_expect(&q, "standard output could not be written");
    CHECK_INT(proc_end(&q, 0, 5000), 1);
    free(q.text);
}

static void failing_allocations(void)
{
    static const char *const formats[] = {"table", "json", "dot", "svg"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(formats); i++) {
        char args[128];
        bool done = false;
        (void)snprintf(args, sizeof(args), FIXTURE("dgx-2.txt -o %s"), formats[i]);
        for (uint64_t nth = 1; !done && nth < 1000; nth++) {
            (void)weft_mem_fail_after(nth);
            weft_auto(ctl_result_done) struct ctl_result r = run(args);
            (void)weft_mem_fail_after(0);
            done = r.status == 0;
            CHECK(done || (r.status == 1 && r.out[0] == '\0'));
        }
        CHECK(done);
    }
}

WEFT_SUITE(ctl_machine, {"the table of an HGX", table_of_an_hgx},
           {"what to look at", what_to_look_at},
           {"tables of other machines", tables_of_other_machines},
           {"many devices fold", many_devices_fold}, {"JSON round trips", json_round_trips},
           {"SVG pictures", svg_pictures}, {"DOT graphs", dot_graphs},
           {"words are made harmless", words_are_made_harmless},
           {"a node without devices", a_node_without_devices},
           {"wrong use is one line", wrong_use_is_one_line},
           {"a reader that goes is no error", a_reader_that_goes_is_no_error},
           {"failing allocations", failing_allocations})
