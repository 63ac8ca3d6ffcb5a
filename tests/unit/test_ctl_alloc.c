/* SPDX-License-Identifier: Apache-2.0 */
/* weftctl alloc from its arguments to its two outputs. */
#include <stdio.h>

#include "ctl/ctl.h"
#include "pkg/json/json.h"
#include "tests/unit/ctl_run.h"
#include "tests/unit/unit.h"

/* Runs "alloc" with the words of args ("--available=" and a blank give an empty value). */
static struct ctl_result run(const char *args)
{
    return ctl_run(weft_ctl_alloc_to, "alloc", args);
}

#define PAIRS "--machine tests/fixtures/machine/pairs8.json "
#define PCIE "--machine tests/fixtures/machine/pcie8.txt "

/* Case A of test_allocator.c, in the promised form: keys, order, null for no tier. */
static void json_output(void)
{
    weft_auto(ctl_result_done) struct ctl_result r =
        run(PCIE "--size 3 --available 0,1,2,3,4 -o json");
    CHECK_INT(r.status, 0);
    CHECK_STR(r.err, "");
    /* components 3; NODE is tier 4; {2,3} and {0..3} broken, 3 left in both; 1 + 4 + 4 */
    CHECK_STR(r.out, "{\"devices\":[\"GPU0\",\"GPU1\",\"GPU2\"],\"indices\":[0,1,2],\"exact\":true,"
                     "\"objective\":{\"components\":3,\"min_cut_mbps\":0,\"worst_tier\":4,"
                     "\"sockets\":1,\"numa_nodes\":1,\"broken_groups\":2,\"leftover\":2,"
                     "\"nic_near\":0,\"nic_distinct\":0,\"bandwidth_mbps\":0,\"tier_sum\":9}}\n");

    weft_auto(ctl_result_done) struct ctl_result pair = run(PAIRS "--size 2 --output=json");
    weft_auto(weft_json_free) struct weft_json *doc = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_json_parse(pair.out, strlen(pair.out), "out", &doc, &err), 0);
    const struct weft_json *o = weft_json_get(doc, "objective");
    CHECK_INT(weft_json_type(weft_json_get(o, "worst_tier")), WEFT_JSON_NULL);
    CHECK_INT(weft_json_int(weft_json_get(o, "min_cut_mbps"), -1), 300000);
    CHECK_INT(weft_json_int(weft_json_at(weft_json_get(doc, "indices"), 1), -1), 2);
    CHECK_STR(weft_json_string(weft_json_at(weft_json_get(doc, "devices"), 0)),
              "GPU-b9f245aa-bf72-44af-a9e6-8a70a1ed4ddb");
}

/* Ids, indices and GPU<n> may be mixed. */
static void ids_in_any_form(void)
{
    weft_auto(ctl_result_done) struct ctl_result r =
        run(PAIRS "--size 2 -o json --required 3 "
                  "--available GPU-165d8c16-7e62-44b4-a73d-40b9b6bb04dd,GPU3,4,5");
    CHECK_INT(r.status, 0);
    CHECK_CONTAINS(r.out, "\"indices\":[1,3]");
    weft_auto(ctl_result_done) struct ctl_result none = run(PAIRS "--size 2 -o json --available=");
    CHECK_INT(none.status, 0);
    CHECK_CONTAINS(none.out, "{\"devices\":[],\"indices\":[],\"exact\":true");
    CHECK_CONTAINS(none.out, "\"worst_tier\":null");
}

static void table_output(void)
{
    weft_auto(ctl_result_done) struct ctl_result r =
        run("--machine tests/fixtures/machine/hgx-h100-8.json --size 2 --available 1,4,5,6,7");
    CHECK_INT(r.status, 0);
    CHECK_CONTAINS(r.out, "2 of 5 available devices, policy performance\n");
    CHECK_CONTAINS(r.out, "INDEX  ID ");
    CHECK_CONTAINS(r.out, "0000:9d:00.0  1     1       mlx5_4 PIX, mlx5_5 PXB\n");
    CHECK_CONTAINS(r.out, "narrowest cut carries 450.0 GB/s\n");
    CHECK_CONTAINS(r.out, "no pair is without a direct link\n");
    CHECK_CONTAINS(r.out, "1 socket, 1 NUMA node\n");
    CHECK_CONTAINS(r.out, "2 devices with a NIC behind the same switches, 2 such NICs\n");

    weft_auto(ctl_result_done) struct ctl_result all =
        run(PCIE "--size 9 --available 0,5 --policy packed");
    CHECK_INT(all.status, 0);
    CHECK_CONTAINS(all.out, "2 of 2 available devices, policy packed\n");
    CHECK_CONTAINS(all.out, "no choice: these are all that is available\n");

    weft_auto(ctl_result_done) struct ctl_result apart =
        run(PCIE "--size 2 --available 0,2,5 -o table");
    CHECK_CONTAINS(apart.out, "direct links leave 2 separate parts\n");
    CHECK_CONTAINS(apart.out, "the farthest pair without a direct link is at NODE\n");
    weft_auto(ctl_result_done) struct ctl_result nothing = run(PCIE "--size 0");
    CHECK_STR(nothing.out, "0 of 8 available devices, policy performance\n");
    CHECK_INT(nothing.status, 0);
}

/* Case E of test_allocator.c: 0-1, 0-2 and 2-6 have one link, 1-2 two. The best other set is 0,1 by
 * device order. */
static void explains_by_the_best_other_set(void)
{
    static const char cube[] = "--machine tests/fixtures/machine/cube-mesh-v100.txt --size 2 "
                               "--available 0,1,2,6 --explain";
    weft_auto(ctl_result_done) struct ctl_result r = run(cube);
    CHECK_INT(r.status, 0);
    CHECK_CONTAINS(r.out, "the best other set is 0,1; what decided is\n"
                          "  rule 2: a wider narrowest cut: 50.0 GB/s, not 25.0 GB/s\n");
    CHECK_CONTAINS(r.out,
                   "  2   narrowest cut                     50.0 GB/s     25.0 GB/s  <- decides\n");
    CHECK_CONTAINS(r.out, "  1   parts without a link between              1             1\n");

    char json[256];
    (void)snprintf(json, sizeof(json), "%s -o json", cube);
    weft_auto(ctl_result_done) struct ctl_result j = run(json);
    CHECK_CONTAINS(j.out, "{\"devices\":[\"GPU1\",\"GPU2\"]");
    CHECK_CONTAINS(j.out, "\"other\":{\"devices\":[\"GPU0\",\"GPU1\"],\"indices\":[0,1],"
                          "\"exact\":true,\"objective\":{\"components\":1,\"min_cut_mbps\":25000,");
    CHECK_CONTAINS(j.out, "\"decided\":{\"entry\":\"min_cut_mbps\",\"rule\":\"2\","
                          "\"chosen\":50000,\"other\":25000,\"text\":\"rule 2: ");
}

/* A tie up to the last rule; nothing to choose; packed, whose rule 5 comes first. */
static void explains_where_little_is_to_be_said(void)
{
    weft_auto(ctl_result_done) struct ctl_result tie =
        run("--machine tests/fixtures/machine/flat-vm.txt --size 2 --explain -o json");
    CHECK_CONTAINS(tie.out, "\"other\":{\"devices\":[\"GPU0\",\"GPU2\"]");
    CHECK_CONTAINS(tie.out, "\"decided\":{\"entry\":\"order\",\"rule\":\"8\",\"text\":"
                            "\"rule 8: the first in device order; nothing else");
    weft_auto(ctl_result_done) struct ctl_result none = run(PCIE "--size 8 --explain -o json");
    CHECK_CONTAINS(none.out, "\"other\":null,\"decided\":null}\n");
    weft_auto(ctl_result_done) struct ctl_result must =
        run(PCIE "--size 1 --available 3,4 --required 3 --explain");
    CHECK_CONTAINS(must.out, "there is no other set");

    /* 0 and 2 in use, one of two links (4,7) would break {4..7}; {1,3} breaks nothing */
    weft_auto(ctl_result_done) struct ctl_result packed =
        run("--machine tests/fixtures/machine/cube-mesh-v100.txt --available 1,3,4,5,6,7 --size 2 "
            "--policy packed --explain");
    CHECK_CONTAINS(packed.out, "rule 5a: fewer whole groups broken: 0, not 1\n");
    const char *rule5 = strstr(packed.out, "  5a  whole groups");
    const char *rule1 = strstr(packed.out, "  1   parts");
    CHECK(rule5 != NULL && rule1 != NULL && rule5 < rule1);
}

/* Output and status of a clipped request stay; one line each says what was clipped. */
static void clipping_is_noted(void)
{
    static const struct {
        const char *args, *indices, *notes;
    } rows[] = {
        {"--size 2 --available 0,1,1,2 --required 1", "[0,1]", ""},
        {"--size 8", "[0,1,2,3,4,5,6,7]", ""},
        {"--size 9", "[0,1,2,3,4,5,6,7]", "note: --size 9 is more than is available: 8\n"},
        {"--size 3 --available 0,0,5", "[0,5]", "note: --size 3 is more than is available: 2\n"},
        {"--size 0", "[]", "note: --size 0 asks for nothing\n"},
        {"--size -3", "[]", "note: --size -3 asks for nothing\n"},
        {"--size 1 --available 0,1 --required 6,1,7", "[1]",
         "note: --required: not available and left out: GPU6,GPU7\n"},
        {"--size 1 --required 5,2", "[2]", "note: --size 1 is less than is required: 2\n"},
        {"--size 3 --available 4,5 --required 0", "[4,5]",
         "note: --required: not available and left out: GPU0\n"
         "note: --size 3 is more than is available: 2\n"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        char args[256];
        char indices[64];
        (void)snprintf(args, sizeof(args), PCIE "%s -o json", rows[i].args);
        (void)snprintf(indices, sizeof(indices), "\"indices\":%s", rows[i].indices);
        weft_auto(ctl_result_done) struct ctl_result r = run(args);
        CHECK_INT(r.status, 0);
        CHECK_CONTAINS(r.out, indices);
        CHECK_STR(r.err, rows[i].notes);
    }
    weft_auto(ctl_result_done) struct ctl_result ended = run(PCIE "--size 1 -o json --");
    CHECK_INT(ended.status, 0);
    weft_auto(ctl_result_done) struct ctl_result more = run(PCIE "--size 1 -- -o");
    CHECK_INT(more.status, 2);
    CHECK_CONTAINS(more.err, "unknown argument \"-o\"");
}

struct bad {
    const char *args, *message;
    int status;
};

static void wrong_use_is_one_line(void)
{
    static const struct bad cases[] = {
        {"--size 2", "--machine FILE is needed", 2},
        {PCIE, "--size K is needed", 2},
        {PCIE "--size two", "--size is a number, not \"two\"", 2},
        {PCIE "--size 1.5", "--size is a number", 2},
        {PCIE "--size", "--size needs a value", 2},
        {PCIE "--size 2 --size 3", "--size may be given 1 time;", 2},
        {PCIE "--sizes 2", "unknown option \"--sizes\"", 2},
        {PCIE "--size 2 --explain=yes", "--explain takes no value", 2},
        {PCIE "--size 2 tree", "unknown argument \"tree\"", 2},
        {PCIE "--size 2 --policy fast", "--policy is performance or packed, not \"fast\"", 2},
        {PCIE "--size 2 -o yaml", "-o is table or json, not \"yaml\"", 2},
        {PCIE "--size 2 --available 0,9",
         "--available: no device \"9\" in tests/fixtures/machine/pcie8.txt; there are indices "
         "0,1,2,3,4,5,6,7 (id GPU0, ...)",
         2},
        {PCIE "--size 2 --available 0,,1", "no device \"\"", 2},
        {PCIE "--size 2 --required GPU-x", "--required: no device \"GPU-x\"", 2},
        {"--machine tests/fixtures/machine/none.txt --size 2", "No such file", 1},
        {"--machine tests/unit/unit.h --size 2", "neither weft's machine JSON nor", 1},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
        weft_auto(ctl_result_done) struct ctl_result r = run(cases[i].args);
        CHECK_INT(r.status, cases[i].status);
        CHECK_STR(r.out, "");
        CHECK_CONTAINS(r.err, cases[i].message);
        const char *newline = strchr(r.err, '\n');
        CHECK(newline != NULL && newline[1] == '\0');
        CHECK(cases[i].status != 2 || strstr(r.err, "; see weftctl help alloc\n") != NULL);
    }
}

static void fail_allocations_of(const char *args)
{
    bool done = false;
    for (uint64_t nth = 1; !done && nth < 500; nth++) {
        (void)weft_mem_fail_after(nth);
        weft_auto(ctl_result_done) struct ctl_result r = run(args);
        (void)weft_mem_fail_after(0);
        done = r.status == 0;
        CHECK(done || (r.status == 1 && r.out[0] == '\0'));
    }
    CHECK(done);
}

static void failing_allocations(void)
{
    fail_allocations_of(PCIE "--size 3 --available 0,1,2,3,4 -o json");
    fail_allocations_of(PCIE "--size 3 --available 0,1,2,3,4 --explain");
    fail_allocations_of(PCIE "--size 3 --available 0,1,2,3,4 --explain -o json");
}

WEFT_SUITE(ctl_alloc, {"JSON output", json_output}, {"ids in any form", ids_in_any_form},
           {"table output", table_output},
           {"explains by the best other set", explains_by_the_best_other_set},
           {"explains where little is to be said", explains_where_little_is_to_be_said},
           {"clipping is noted", clipping_is_noted},
           {"wrong use is one line", wrong_use_is_one_line},
           {"failing allocations", failing_allocations})
