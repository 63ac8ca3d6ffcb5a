/* SPDX-License-Identifier: Apache-2.0 */
/* The topology of amd-smi (text, JSON) and rocm-smi: what each table means, NUMA lines, cut and
 * broken texts. Expected values are read off the texts by eye. */
#include <stdio.h>

#include "pkg/base/mem.h"
#include "pkg/machine/machine.h"
#include "tests/unit/machine_util.h"
#include "tests/unit/unit.h"

#define ROCM_TABLES                                                                                \
    "======= ROCm System Management Interface =======\n"                                           \
    "=========== Weight between two GPUs ============\n"                                           \
    "       GPU0   GPU1   GPU2   GPU3   \n"                                                        \
    "GPU0   0      15     40     72     \n"                                                        \
    "GPU1   15     0      30     72     \n"                                                        \
    "GPU2   40     30     0      72     \n"                                                        \
    "GPU3   72     72     72     0      \n\n"                                                      \
    "=========== Hops between two GPUs ==============\n"                                           \
    "       GPU0   GPU1   GPU2   GPU3   \n"                                                        \
    "GPU0   0      1      2      3      \n"                                                        \
    "GPU1   1      0      2      3      \n"                                                        \
    "GPU2   2      2      0      2      \n"                                                        \
    "GPU3   3      3      2      0      \n\n"                                                      \
    "========= Link Type between two GPUs ===========\n"                                           \
    "       GPU0   GPU1   GPU2   GPU3   \n"                                                        \
    "GPU0   0      XGMI   PCIE   PCIE   \n"                                                        \
    "GPU1   XGMI   0      XGMI   PCIE   \n"                                                        \
    "GPU2   PCIE   XGMI   0      PCIE   \n"                                                        \
    "GPU3   PCIE   PCIE   PCIE   0      \n\n"

static const char rocm[] =
    "\n\nWARNING: AMD GPU device(s) is/are in a low-power state.\n\n" ROCM_TABLES
    "================== Numa Nodes ==================\n"
    "GPU[0]\t\t: (Topology) Numa Node: 0\n"
    "GPU[0]\t\t: (Topology) Numa Affinity: 0\n"
    "GPU[1]\\t\\t: (Topology) Numa Node: 0\n"
    "GPU[1]\t\t: (Topology) Numa Affinity: -1\n"
    "GPU[2]\t\t: (Topology) Numa Node: 0\n"
    "GPU[2]\t\t: (Topology) Numa Affinity: 0\n"
    "GPU[3]\t\t: (Topology) Numa Node: 1\n"
    "GPU[3]\t\t: (Topology) Numa Affinity: 1\n"
    "============= End of ROCm SMI Log ==============\n";

static void rocm_smi(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_read(rocm);
    if (m == NULL) {
        return;
    }
    CHECK_STR(m->vendor, "amd");
    CHECK_INT(m->device_count, 4);
    CHECK_INT(m->nic_count, 0);
    CHECK_STR(m->devices[3].id, "GPU3");
    CHECK_INT(m->devices[1].numa_node, 0); /* affinity -1 is not known, the node is */
    CHECK_INT(m->devices[3].numa_node, 1);
    CHECK_INT(weft_machine_b(m, 0, 1), 25000); /* a direct link, of no known rate */
    CHECK_INT(weft_machine_b(m, 1, 2), 0);     /* xGMI, but two hops */
    CHECK_INT(weft_machine_b(m, 0, 3), 0);
    CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_NODE);
    CHECK_INT(weft_machine_t(m, 0, 2), WEFT_DISTANCE_NODE); /* PCIe, through one processor */
    CHECK_INT(weft_machine_t(m, 0, 3), WEFT_DISTANCE_SYS);
    CHECK_INT(weft_machine_t(m, 2, 3), WEFT_DISTANCE_SYS); /* two hops, but two NUMA nodes */
    CHECK_INT(m->warning_count, 0);
}

/* Without the NUMA lines the hops of PCIe paths remain. */
static void without_numa(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_read(ROCM_TABLES);
    if (m == NULL) {
        return;
    }
    CHECK(!m->partial);
    CHECK_INT(m->devices[0].numa_group, -1);
    CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_SYS);
    CHECK_INT(weft_machine_t(m, 0, 2), WEFT_DISTANCE_NODE);
    CHECK_INT(weft_machine_t(m, 0, 3), WEFT_DISTANCE_SYS);
    CHECK_INT(m->warning_count, 1);
    machine_warned(m, "does not say the NUMA node of 4 of the GPUs");
}

static void numa_alone(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m =
        machine_read("==== Numa Nodes ====\n"
                     "GPU[0]\t\t: (Topology) Numa Node: 0\n"
                     "GPU[0]\t\t: (Topology) Numa Affinity: 0\n"
                     "GPU[2]\t\t: (Topology) Numa Node: 0\n"
                     "GPU[2]\t\t: (Topology) Numa Affinity: 3\n"
                     "==== End of ROCm SMI Log ====\n");
    if (m == NULL) {
        return;
    }
    CHECK_INT(m->device_count, 2);
    CHECK_STR(m->devices[1].id, "GPU2");
    CHECK_INT(m->devices[1].numa_node, -1);
    machine_warned(m, "no table of link types or bandwidths");
    machine_warned(m, "GPU2 has NUMA node 0 but NUMA affinity 3");
}

static const char amd[] = "HOPS TABLE:\n"
                          "             0000:0c:00.0 0000:22:00.0 0000:38:00.0 \n"
                          "0000:0c:00.0 0            1            1            \n"
                          "0000:22:00.0 1            0            1            \n"
                          "0000:38:00.0 1            1            0            \n\n"
                          "LINK TYPE TABLE:\n"
                          "             0000:0c:00.0 0000:22:00.0 0000:38:00.0 \n"
                          "0000:0c:00.0 SELF         XGMI         XGMI         \n"
                          "0000:22:00.0 XGMI         SELF         XGMI         \n"
                          "0000:38:00.0 XGMI         XGMI         SELF         \n\n"
                          "NUMA BW TABLE:\n"
                          "             0000:0c:00.0 0000:22:00.0 0000:38:00.0 \n"
                          "0000:0c:00.0 N/A          50000-200000 50000-50000  \n"
                          "0000:22:00.0 50000-200000 N/A          50000-100000 \n"
                          "0000:38:00.0 50000-50000  50000-50000  N/A          \n";

static void amd_smi_text(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_read(amd);
    if (m == NULL) {
        return;
    }
    CHECK_INT(m->device_count, 3);
    CHECK_STR(m->devices[1].id, "GPU1");
    CHECK_INT(m->devices[1].bdf.bus, 0x22);
    CHECK_INT(weft_machine_b(m, 0, 1), 200000); /* of all links together */
    CHECK_INT(weft_machine_b(m, 0, 2), 50000);
    CHECK_INT(weft_machine_b(m, 1, 2), 50000); /* the smaller of the two ways */
    machine_warned(m, "the tables tell GPU1 to GPU2 otherwise than the way back");
}

static void rates_of_some_links_only(void)
{
    char text[sizeof(amd)];
    (void)snprintf(text, sizeof(text), "%s", amd);
    char *at = strstr(text, "50000-100000");
    memset(at + 3, ' ', 9);
    at[0] = 'N';
    at[1] = '/';
    at[2] = 'A';
    weft_auto(weft_machine_free) struct weft_machine *m = machine_read(text);
    if (m != NULL) {
        CHECK_INT(weft_machine_b(m, 0, 1), 25000);
        CHECK_INT(weft_machine_b(m, 1, 2), 25000);
        machine_warned(m, "the bandwidth of some links only");
    }
}

static void tables_without_wiring(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m =
        machine_read("CACHE COHERANCY TABLE:\n"
                     "             0000:0c:00.0 0000:22:00.0\n"
                     "0000:0c:00.0 SELF         NC\n"
                     "0000:22:00.0 C            SELF\n\n"
                     "DMA TABLE:\n"
                     "             0000:0c:00.0 0000:22:00.0\n"
                     "0000:0c:00.0 SELF         T\n"
                     "0000:22:00.0 T            SELF\n\n"
                     "Legend:\n SELF = Current GPU\n");
    if (m != NULL) {
        CHECK_INT(m->device_count, 2);
        CHECK_INT(weft_machine_b(m, 0, 1), 0);
        CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_SYS);
        CHECK(!m->partial);
        machine_warned(m, "no table of link types or bandwidths");
    }
}

static void access_that_is_off(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m =
        machine_read("ACCESS TABLE:\n             0000:0c:00.0 0000:22:00.0\n"
                     "0000:0c:00.0 ENABLED      DISABLED\n0000:22:00.0 DISABLED     ENABLED\n\n"
                     "LINK TYPE TABLE:\n             0000:0c:00.0 0000:22:00.0\n"
                     "0000:0c:00.0 SELF         XGMI\n0000:22:00.0 XGMI         SELF\n");
    CHECK(m != NULL && weft_machine_b(m, 0, 1) == 0);
}

#define LINK(bdf, status, type, hops, bandwidth)                                                   \
    "{\"gpu\":0,\"bdf\":\"0000:" bdf ":00.0\",\"weight\":15,\"link_status\":\"" status             \
    "\",\"link_type\":\"" type "\",\"num_hops\":" hops ",\"bandwidth\":\"" bandwidth "\"}"

static const char json[] =
    "[{\"gpu\":1,\"bdf\":\"0000:01:00.0\",\"links\":[" LINK("01", "ENABLED", "SELF", "0", "N/A") "," LINK(
        "02", "ENABLED", "XGMI", "1",
        "50000-100000") "," LINK("03", "ENABLED", "PCIE", "2",
                                 "N/A") "]},\n{\"gpu\":0,\"bdf\":\"0000:02:00.0\",\"links\":"
                                        "[" LINK("01", "ENABLED", "XGMI", "1", "50000-100000") "," LINK(
                                            "03", "DISABLED", "PCIE", "3",
                                            "N/A") "]},\n{"
                                                   "\"gpu\":2,"
                                                   "\"bdf\":"
                                                   "\"0000:03:"
                                                   "00.0\","
                                                   "\"links\":"
                                                   "[" LINK("01",
                                                            "ENA"
                                                            "BLE"
                                                            "D",
                                                            "PCI"
                                                            "E",
                                                            "2",
                                                            "N/"
                                                            "A") "," LINK("02", "DISABLED", "PCIE",
                                                                          "3", "N/A") "]}]\n";

static void amd_smi_json(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_read(json);
    if (m == NULL) {
        return;
    }
    CHECK_STR(m->devices[0].id, "GPU1");
    CHECK_INT(m->devices[0].bdf.bus, 1);
    CHECK_INT(weft_machine_b(m, 0, 1), 100000);
    CHECK_INT(weft_machine_b(m, 0, 2), 0);
    CHECK_INT(weft_machine_t(m, 0, 2), WEFT_DISTANCE_NODE);
    CHECK_INT(weft_machine_t(m, 1, 2), WEFT_DISTANCE_SYS);
}

static void cut_texts(void)
{
    machine_read_cut(rocm);
    machine_read_cut(amd);
    char text[sizeof(rocm)];
    (void)snprintf(text, sizeof(text), "%s", rocm);
    *strstr(text, "GPU[2]\t\t: (Topology) Numa Affinity") = '\0';
    weft_auto(weft_machine_free) struct weft_machine *numa = machine_read(text);
    if (numa != NULL) {
        CHECK_INT(numa->device_count, 4);
        machine_warned(numa, "the NUMA node of 1 of the GPUs");
    }
    *strstr(text, "GPU2   PCIE") = '\0'; /* in the table of link types */
    weft_auto(weft_machine_free) struct weft_machine *rows = machine_read(text);
    if (rows != NULL) {
        CHECK_INT(rows->device_count, 2);
        CHECK(rows->partial);
        machine_warned(rows, "2 of the GPUs lack a whole row");
    }
}

/* A text that ends after a table's header has lost that table, not the devices. */
static void a_table_without_rows(void)
{
    char text[sizeof(amd)];
    (void)snprintf(text, sizeof(text), "%s", amd);
    *strstr(text, "0000:0c:00.0 N/A ") = '\0';
    weft_auto(weft_machine_free) struct weft_machine *m = machine_read(text);
    if (m != NULL) {
        CHECK_INT(m->device_count, 3);
        CHECK_INT(weft_machine_b(m, 0, 1), 25000);
        CHECK(m->partial);
    }
}

#define TYPES(row0, row1) "LINK TYPE TABLE:\n     GPU0 GPU1\nGPU0 " row0 "\nGPU1 " row1 "\nend\n"

static void refusals(void)
{
    machine_refused(TYPES("0 XXXX", "XGMI 0"),
                    "t:3: 'XXXX' is nothing that a table of link types holds");
    machine_refused(TYPES("0", "XGMI 0"), "t:3: the row has 1 cells, the table 2 columns");
    machine_refused(TYPES("0 XGMI XGMI", "XGMI 0"), "t:3: 'XGMI' has no column");
    machine_refused(TYPES("0 XGMI", "XGMI 0\nGPU1 XGMI 0"), "t:5: 'GPU1' has a second row");
    machine_refused(TYPES("0 XGMI", "XGMI 0\nGPU10 XGMI 0"),
                    "t:5: 'GPU10' has a row but no column");
    machine_refused(TYPES("0 XGMI", "XGMI 0") TYPES("0 XGMI", "XGMI 0"),
                    "t:7: a second table of link types");
    machine_refused(TYPES("0 XGMI", "XGMI 0") "HOPS TABLE:\n GPU1 GPU0\n",
                    "t:7: 'GPU1' is not at its place of the first table");
    machine_refused(TYPES("0 XGMI", "XGMI 0") "HOPS TABLE:\n GPU0\n",
                    "t:7: the line names 1 GPUs, the first table 2");
    machine_refused("HOPS TABLE:\n GPU0 GPU0\n", "t:2: 'GPU0' is named twice");
    machine_refused("HOPS TABLE:\n GPU0 other\n", "t:2: 'other' is no GPU");
    machine_refused("=== Weight between two GPUs ===\n"
                    "ERROR: GPU[1]   : Cannot read Link Weight\n\n"
                    "      GPU0 GPU1\nGPU0  0    XGMI\nGPU1  XGMI 0\n===\n",
                    "t:5: 'XGMI' is nothing that a table of weights holds");
    machine_refused("NUMA BW TABLE:\n GPU0 GPU1\nGPU0 N/A 5\nGPU1 5 N/A\nend\n",
                    "t:3: '5' is nothing that a table of bandwidths holds");
    machine_refused(ROCM_TABLES "GPU[9]\t\t: (Topology) Numa Node: 0\n",
                    "t:23: '9' is a GPU that the tables do not have");
    machine_refused("GPU[0]\t\t: (Topology) Numa Node: zero\n", "t:1: 'zero' is not a NUMA node");
    machine_refused("HOPS TABLE:\n\n", "t:1: none of the tables names a GPU");
    machine_refused("[1]", "is not a GPU with bdf and links");
    machine_refused("[{\"gpu\":0,\"bdf\":\"x\"}]", "bdf 'x' is not a PCI address");
    machine_refused("[{\"gpu\":0,\"bdf\":\"0000:01:00.0\"}]", "has no links");
    machine_refused("[]", "not a list of GPUs with bdf and links");
    machine_refused("[{\"gpu\":0,\"bdf\":\"0000:01:00.0\",\"links\":[" //
                    LINK("07", "ENABLED", "XGMI", "1", "N/A") "]}]",
                    "its bdf is of no GPU of the list");
    machine_refused("[{\"gpu\":0,\"bdf\":\"0000:01:00.0\",\"links\":[" //
                    LINK("01", "ENABLED", "WIRE", "1", "N/A") "]}]",
                    "link_type 'WIRE' is not known");
    machine_refused("[{\"gpu\":0,\"bdf\":\"0000:01:00.0\",\"links\":[]},\n"
                    "{\"gpu\":0,\"bdf\":\"0000:02:00.0\",\"links\":[]}]",
                    "the bdf or number of an earlier GPU");
    machine_refused("[\n{\"gpu\":0,},\n]", "t:2: ");
}

static void a_reported_error(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m =
        machine_read("ERROR: GPU[1]   : Cannot read Link Weight\n" TYPES("0 XGMI", "XGMI 0"));
    if (m != NULL) {
        machine_warned(m, "line 1: ERROR: GPU[1]   : Cannot read Link Weight");
    }
}

static void out_of_memory(void)
{
    machine_read_out_of_memory(rocm);
    machine_read_out_of_memory(json);
}

WEFT_SUITE(machine_amdsmi, {"rocm-smi", rocm_smi}, {"without NUMA", without_numa},
           {"NUMA alone", numa_alone}, {"amd-smi text", amd_smi_text},
           {"rates of some links only", rates_of_some_links_only},
           {"tables without wiring", tables_without_wiring},
           {"access that is off", access_that_is_off}, {"amd-smi JSON", amd_smi_json},
           {"cut texts", cut_texts}, {"a table without rows", a_table_without_rows},
           {"refusals", refusals}, {"a reported error", a_reported_error},
           {"out of memory", out_of_memory})
