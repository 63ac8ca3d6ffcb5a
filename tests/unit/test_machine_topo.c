/* SPDX-License-Identifier: Apache-2.0 */
/* `nvidia-smi topo -m` texts: the shapes they come in, what each cell means, what is refused; and
 * all public dumps of the shared data, where that is at hand. */
#include <errno.h>
#include <stdio.h>

#include "pkg/base/file.h"
#include "pkg/machine/machine.h"
#include "tests/unit/unit.h"

static struct weft_machine *parse_n(const char *text, size_t len, struct weft_error *err)
{
    struct weft_machine *m = NULL;
    *err = (struct weft_error){0};
    const int rc = weft_machine_read(text, len, "t", &m, err);
    CHECK((rc == 0) == (m != NULL));
    return m;
}

/* Reads a text that must be fine. */
static struct weft_machine *parse(const char *text)
{
    struct weft_error err;
    struct weft_machine *m = parse_n(text, strlen(text), &err);
    CHECK_STR(err.message, "");
    return m;
}

/* ---- shapes ---- */

/* One matrix as the program prints it, and as people paste it. */
static const char *const dresses[] = {
    "\tGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV4\tSYS\tPIX\t0-7\t0\t\tN/A\n"
    "GPU1\tNV4\t X \tSYS\tPXB\t0-7\t0\t\tN/A\n"
    "GPU2\tSYS\tSYS\t X \tSYS\t8-15\t1\t\tN/A\n"
    "NIC0\tPIX\tPXB\tSYS\t X \t\t\t\n",
    /* colours, a prompt, CR LF, a legend */
    "$ nvidia-smi topo -m\r\n"
    "\t\033[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\033[0m\r\n"
    "\033[1;32mGPU0\033[0m\t X \tNV4\tSYS\tPIX\t0-7\t0\t\tN/A\t\t\r\n"
    "GPU1\tNV4\t X \tSYS\tPXB\t0-7\t0\t\tN/A\t\r\n"
    "GPU2\tSYS\tSYS\t X \tSYS\t8-15\t1\t\tN/A\r\n"
    "NIC0\tPIX\tPXB\tSYS\t X \r\n\r\nLegend:\r\n\r\n  X    = Self\r\n  NV#  = Connection\r\n",
    /* under their titles */
    "        GPU0    GPU1    GPU2    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
    "GPU0     X      NV4     SYS     PIX     0-7             0               N/A\n"
    "GPU1    NV4      X      SYS     PXB     0-7             0               N/A\n"
    "GPU2    SYS     SYS      X      SYS     8-15            1               N/A\n",
    /* indented, single blanks */
    "    GPU0    GPU1    GPU2    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
    "    GPU0     X  NV4 SYS PIX 0-7  0       N/A\n"
    "    GPU1    NV4  X  SYS PXB 0-7  0       N/A\n"
    "    GPU2    SYS SYS  X  SYS 8-15 1       N/A\n",
    /* doubled tabs */
    "\t\tGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity    NUMA Affinity\n"
    "GPU0\t X \t\tNV4\t    SYS\t\tPIX\t\t0-7\t\t0\n"
    "GPU1\tNV4\t \tX \t\tSYS\tPXB\t\t0-7\t\t0\n"
    "GPU2\tSYS\t\tSYS\t \tX \tSYS\t8-15\t\t1\n",
    /* Markdown */
    "|      | GPU0 | GPU1 | GPU2 | NIC0 | CPU Affinity | NUMA Affinity |\n"
    "|------|------|------|------|------|---|---|\n"
    "| GPU0 | X    | NV4  | SYS  | PIX  | 0-7  | 0 |\n"
    "| GPU1 | NV4  | X    | SYS  | PXB  | 0-7  | 0 |\n"
    "| GPU2 | SYS  | SYS  | X    | SYS  | 8-15 | 1 |\n",
};

static void every_dress_is_the_same_machine(void)
{
    weft_auto(weft_machine_free) struct weft_machine *first = parse(dresses[0]);
    if (first == NULL) {
        return;
    }
    CHECK_INT(first->device_count, 3);
    CHECK_INT(first->nic_count, 1);
    CHECK_STR(first->vendor, "nvidia");
    CHECK_STR(first->devices[2].id, "GPU2");
    CHECK_INT(first->devices[2].numa_node, 1);
    CHECK_INT(first->devices[2].socket, -1);
    CHECK_INT(weft_machine_b(first, 0, 1), 100000);
    /* hidden by the link: NUMA equal gives NODE, the NIC at PIX and PXB gives PXB */
    CHECK_INT(weft_machine_t(first, 0, 1), WEFT_DISTANCE_PXB);
    CHECK_INT(weft_machine_b(first, 0, 2), 0);
    CHECK_INT(weft_machine_t(first, 0, 2), WEFT_DISTANCE_SYS);
    CHECK_INT(weft_machine_n(first, 1, 0), WEFT_DISTANCE_PXB);
    for (size_t i = 0; i < WEFT_ARRAY_LEN(dresses); i++) {
        weft_auto(weft_machine_free) struct weft_machine *m = parse(dresses[i]);
        const bool equal = m != NULL && weft_machine_equal(first, m) && m->warning_count == 0;
        CHECK(equal);
        if (!equal) {
            (void)fprintf(stderr, "dress %zu%s%s\n", i,
                          m != NULL && m->warning_count > 0 ? ": " : "",
                          m != NULL && m->warning_count > 0 ? m->warnings[0] : "");
        }
    }
}

/* ---- affinities ---- */

static void empty_affinity_cells(void)
{
    /* a container whose cpuset touches one node only: CPU cells are empty, NUMA cells are not */
    weft_auto(weft_machine_free) struct weft_machine *tabs =
        parse("\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
              "GPU0\t X \tNV4\tNV4\t44\t0\t\tN/A\n"
              "GPU1\tNV4\t X \tNV4\t\t1\t\tN/A\n"
              "GPU2\tNV4\tNV4\t X \t\t1\t\tN/A\n");
    /* the same with blanks: the word stands under its title */
    weft_auto(weft_machine_free) struct weft_machine *blanks =
        parse("       GPU0  GPU1  GPU2  CPU Affinity  NUMA Affinity  GPU NUMA ID\n"
              "GPU0    X    NV4   NV4   44            0              N/A\n"
              "GPU1   NV4    X    NV4                 1              N/A\n"
              "GPU2   NV4   NV4    X                  1              N/A\n");
    if (tabs == NULL || blanks == NULL) {
        return;
    }
    CHECK(weft_machine_equal(tabs, blanks));
    CHECK_INT(tabs->devices[0].numa_node, 0);
    CHECK_INT(tabs->devices[1].numa_node, 1);
    CHECK_INT(weft_machine_t(tabs, 1, 2), WEFT_DISTANCE_NODE);
    CHECK_INT(weft_machine_t(tabs, 0, 1), WEFT_DISTANCE_SYS);
    CHECK_INT(tabs->warning_count, 0);
}

static void unknown_numa_compares_the_cpus(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m =
        parse("\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\n"
              "GPU0\t X \tNV1\tNV1\tNV1\t0-31\t\tN/A\n"
              "GPU1\tNV1\t X \tNV1\tNV1\t0-31\t-1\n"
              "GPU2\tNV1\tNV1\t X \tNV1\t32-63\t\n"
              "GPU3\tNV1\tNV1\tNV1\t X \t32-63\t0\n");
    if (m == NULL) {
        return;
    }
    CHECK_INT(m->devices[0].numa_group, -1);
    CHECK_INT(m->devices[1].numa_group, -1);
    CHECK_INT(m->devices[2].numa_group, -1);
    CHECK_INT(m->devices[3].numa_node, 0);
    CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_NODE);
    CHECK_INT(weft_machine_t(m, 2, 3), WEFT_DISTANCE_NODE); /* one side known is not enough */
    CHECK_INT(weft_machine_t(m, 0, 2), WEFT_DISTANCE_SYS);
}

static void without_a_numa_column_the_cpus_are_the_label(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = parse("\tGPU0\tGPU1\tGPU2\tCPU Affinity\n"
                                                                "GPU0\t X \tNV1\tSOC\t0\n"
                                                                "GPU1\tNV1\t X \tSOC\t0\n"
                                                                "GPU2\tSOC\tSOC\t X \t1-3,9\n");
    if (m == NULL) {
        return;
    }
    CHECK_STR(m->devices[0].numa_label, "0");
    CHECK_INT(m->devices[0].numa_node, -1); /* CPU 0, not node 0 */
    CHECK_INT(m->devices[1].numa_group, 0);
    CHECK_STR(m->devices[2].numa_label, "1-3,9");
    CHECK_INT(m->devices[2].numa_group, 1);
    CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_NODE);
    CHECK_INT(weft_machine_t(m, 0, 2), WEFT_DISTANCE_SYS);
}

/* Two interleaved CPU lists that are equal for longer than a label holds. */
static void long_labels_stay_apart(void)
{
    char text[2048];
    char cpus[400] = "0";
    for (int i = 2; i < 200; i += 2) {
        (void)snprintf(cpus + strlen(cpus), sizeof(cpus) - strlen(cpus), ",%d", i);
    }
    (void)snprintf(text, sizeof(text),
                   "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\tX\tSYS\tSYS\t%s\n"
                   "GPU1\tSYS\tX\tSYS\t%s,200\nGPU2\tSYS\tSYS\tX\t%s\n",
                   cpus, cpus, cpus);
    weft_auto(weft_machine_free) struct weft_machine *m = parse(text);
    if (m != NULL) {
        CHECK_INT(m->devices[0].numa_group, 0);
        CHECK_INT(m->devices[1].numa_group, 1);
        CHECK_INT(m->devices[2].numa_group, 0);
    }
}

/* ---- NICs ---- */

static void nics_and_their_names(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m =
        parse("\tGPU2\tGPU5\tmlx5_9\tNIC1\tCPU Affinity\tNUMA Affinity\n"
              "GPU2\t X \tNV2\tNODE\tPIX\t0-7\t0\n"
              "GPU5\tNV2\t X \tPHB\tPHB\t8-15\t1\n"
              "mlx5_9\tNODE\tPHB\t X \tSYS\n"
              "NIC1\tPIX\tPHB\tSYS\t X\n"
              "\nNIC Legend:\n\n  NIC1: rocep13s0f0\n");
    if (m == NULL) {
        return;
    }
    CHECK_INT(m->devices[0].index, 2);
    CHECK_STR(m->devices[1].id, "GPU5");
    CHECK_INT(weft_machine_find(m, "5"), 1);
    CHECK_STR(m->nics[0].name, "mlx5_9");
    CHECK_STR(m->nics[1].name, "rocep13s0f0");
    /* NUMA nodes differ: SYS; through mlx5_9 NODE, through NIC1 PHB: the nearest counts */
    CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_PHB);
    CHECK_INT(weft_machine_n(m, 0, 0), WEFT_DISTANCE_NODE);
    CHECK_INT(m->warning_count, 0);
}

static void nic_rows_without_columns(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = parse("\tGPU0\tGPU1\tCPU Affinity\n"
                                                                "GPU0\t X \tNV8\t0-7\n"
                                                                "GPU1\tNV8\t X \t0-7\n"
                                                                "NIC0\tPIX\tNODE\n"
                                                                "NIC1\tNODE\tPIX\n");
    if (m != NULL) {
        CHECK_INT(m->nic_count, 0);
        CHECK_INT(m->warning_count, 1);
        CHECK_CONTAINS(m->warnings[0], "line 4: 2 rows of NICs");
    }
}

/* ---- cells ---- */

static void odd_cells(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m =
        parse("\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\n"
              "GPU0\t X \tNV2\tPIX\tERR\t0-7\t0\n"
              "GPU1\tNV1\t X \tPSB\tSYS\t0-7\t0\n"
              "GPU2\tPXB\tPSB\t X \tNVx\t0-7\t0\n"
              "GPU3\tSYS\tSYS\tPIX\t X \t8-9\t1\n");
    if (m == NULL) {
        return;
    }
    CHECK_INT(weft_machine_b(m, 0, 1), 25000);
    CHECK_INT(weft_machine_t(m, 0, 2), WEFT_DISTANCE_PXB);
    CHECK_INT(weft_machine_t(m, 1, 2), WEFT_DISTANCE_PSB);
    CHECK_INT(weft_machine_t(m, 2, 3), WEFT_DISTANCE_SYS); /* NVx: unknown, other node; PIX */
    CHECK_INT(weft_machine_b(m, 2, 3), 0);
    /* 0-1 and 0-2 differ; ERR and NVx cannot be read, and so differ from what the other side says
     */
    CHECK_INT(m->warning_count, 6);
    CHECK_CONTAINS(m->warnings[0], "'NV2' one way and 'NV1' the other");
}

static void a_cell_of_several_words_is_unknown(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m =
        parse("\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
              "GPU0\t X \tNV2\tUnknown Error\t0-7\t0\t\tN/A\n"
              "GPU1\tNV2\t X \tPIX\t0-7\t0\t\tN/A\n"
              "GPU2\tUnknown Error\tPIX\t X \t8-9\t1\t\tN/A\n");
    if (m != NULL) {
        CHECK_INT(weft_machine_t(m, 0, 2), WEFT_DISTANCE_SYS);
        CHECK_INT(weft_machine_b(m, 0, 1), 50000);
        CHECK_INT(m->devices[2].numa_node, 1);
        CHECK_CONTAINS(m->warnings[0], "line 2: cell 'Unknown?Error' of GPU0 and GPU2");
    }
    /* as many words as columns, but not one a column */
    weft_auto(weft_machine_free) struct weft_machine *same_count =
        parse("\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
              "GPU0\t X \tUnknown Error\t0-7\t\tN/A\n"
              "GPU1\tPIX\t X \t0-7\t\tN/A\n");
    if (same_count != NULL) {
        CHECK_INT(weft_machine_t(same_count, 0, 1), WEFT_DISTANCE_SYS);
        CHECK_INT(same_count->devices[0].numa_group, -1);
    }
    /* doubled tabs and a word that is no cell */
    weft_auto(weft_machine_free) struct weft_machine *doubled =
        parse("\t\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\n"
              "GPU0\t X \t\tERR\t\tPIX\t\t0-7\t\t0\n"
              "GPU1\tNV2\t\t X \t\tPIX\t\t0-7\t\t0\n"
              "GPU2\tPIX\t\tPIX\t\t X \t\t0-7\t\t0\n");
    if (doubled != NULL) {
        CHECK_INT(doubled->devices[0].numa_node, 0);
        CHECK_INT(weft_machine_t(doubled, 0, 1), WEFT_DISTANCE_NODE);
        CHECK_INT(weft_machine_b(doubled, 0, 1), 0);
        CHECK_INT(weft_machine_t(doubled, 0, 2), WEFT_DISTANCE_PIX);
    }
}

static void an_empty_cell_is_unknown(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m =
        parse("\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\n"
              "GPU0\t X \t\tPIX\t0-7\t0\n"
              "GPU1\tPIX\t X \tPIX\t0-7\t0\n"
              "GPU2\tPIX\tPIX\t X \t0-7\t0\n");
    if (m != NULL) {
        CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_NODE); /* the larger of NODE and PIX */
        CHECK_INT(m->devices[0].numa_node, 0);
        CHECK_CONTAINS(m->warnings[0], "line 2");
    }
}

/* ---- cut texts ---- */

static void missing_and_cut_rows(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m =
        parse("\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\n"
              "GPU0\t X \tNV8\tNV8\tNV8\t0-7\t0\n"
              "GPU1\tNV8\t X \tNV8\tNV8\t0-7\t0\n"
              "GPU2\tNV8\tN");
    if (m != NULL) {
        CHECK_INT(m->device_count, 2);
        CHECK_INT(m->warning_count, 2);
        CHECK_CONTAINS(m->warnings[0], "line 4: row GPU2 is cut");
        CHECK_CONTAINS(m->warnings[1], "line 1: the header names devices without a row, left out: "
                                       "GPU3");
    }
}

/* What may have lost its end is not believed: NV1 of NV18, node 1 of 12, a CPU list. */
static void cut_in_the_last_word(void)
{
    static const char *const cut[] = {
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\tX\tNV18\t0-7\t0\nGPU1\tNV18\tX\t0-",
        "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\tX\tNV18\tSYS\t0-7\nGPU1\tNV18\tX\tNV1\n",
        "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\tX\tNV18\tSYS\t0-7,9\nGPU1\tNV18\tX\tSYS\t0-7\n",
        "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\tX\tNV18\tSYS\t0-7,9\nGPU1\tNV18\tX\tSYS\t0-9",
        "\tGPU0\tGPU1\tCPU Affinity\nGPU0\tX\tSYS\t0-7,9\nGPU1\tSY",
        "GPU0 GPU1 CPU Affinity\nGPU0 X PIX 0-7\nGPU1 PIX X 0-",
        "\tGPU0\tGPU1\tNIC0\tCPU Affinity\nGPU0\tX\tSYS\tPIX\t0-7\nGPU1\tSYS\tX\tPI\n",
        "GPU0 GPU1 NIC0\nGPU0 X SYS PIX\nGPU1 SYS X PI",
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(cut); i++) {
        weft_auto(weft_machine_free) struct weft_machine *m = parse(cut[i]);
        const bool one = m != NULL && m->device_count == 1;
        CHECK(one);
        if (!one) {
            (void)fprintf(stderr, "case %zu\n", i);
        }
    }
    /* all rows there, and only the newline missing: whole */
    weft_auto(weft_machine_free) struct weft_machine *whole =
        parse("\tGPU0\tGPU1\tCPU Affinity\nGPU0\tX\tSYS\t0-7\nGPU1\tSYS\tX\t8-9");
    CHECK(whole != NULL && whole->device_count == 2);
    /* no affinity columns: the line ends where it should, so the word is whole, and not known */
    weft_auto(weft_machine_free) struct weft_machine *odd =
        parse("GPU0 GPU1 NIC0\nGPU0 X SYS PIX\nGPU1 SYS X ERR\n");
    CHECK(odd != NULL && odd->device_count == 2 && odd->warning_count == 1);
    /* a last cell that has no longer form, without affinity */
    weft_auto(weft_machine_free) struct weft_machine *bare =
        parse("GPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\tX");
    CHECK(bare != NULL && bare->device_count == 1 && bare->warning_count == 1);
}

/* ---- refusals ---- */

struct bad {
    const char *text, *message;
};

static void refuses_with_line_and_reason(void)
{
    static const struct bad cases[] = {
        {"GPU0\tX\tNV1\n", "t:1: row GPU0 stands before a header"},
        {"\tGPU0\tGPU1\tGPU0\n", "t:1: two columns GPU0"},
        {"\tGPU0\tGPU1\nGPU0\tX\tSYS\nGPU0\tX\tSYS\n", "t:3: a second row GPU0"},
        {"\tGPU0\tGPU1\nGPU0\tX\tSYS\nGPU7\tX\tSYS\n", "t:3: row GPU7 has no column"},
        {"\tGPU0\tGPU1\nGPU0\tX\tSYS\nGPU1\tSYS\tX\n\tGPU0\tGPU1\n", "t:4: a second matrix"},
        {"\tGPU0\tGPU1\tCPU Affinity\nGPU0\tSYS\tX\t0-7\n", "t:2: row GPU0 cannot be laid"},
        {"GPU0 GPU1 GPU2 CPU Affinity\nGPU0 X PIX 0-7\nGPU1 PIX X PIX 0-7\n",
         "t:2: row GPU0 cannot be laid"},
        {"\tGPU0\tGPU1\n\nnothing\n", "t:1: none of the 2 GPUs"},
        {"\tGPU0\tGPU1\nGPU0\tX\n", "none of the 2 GPUs"},
        {"no matrix at all\n", "neither"},
        {"\xff\xfe\x00", "neither"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
        struct weft_error err;
        weft_auto(weft_machine_free) struct weft_machine *m =
            parse_n(cases[i].text, strlen(cases[i].text), &err);
        CHECK(m == NULL);
        CHECK_CONTAINS(err.message, cases[i].message);
    }
}

/* ---- topo -p2p ---- */

static void p2p_alone_is_devices_of_unknown_wiring(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m =
        parse("        GPU0    GPU1    GPU2\n GPU0   X       OK      CNS\n"
              " GPU1   OK      X       OK\n GPU2   CNS     OK      X\n\nLegend:\n\n"
              "  X    = Self\n  OK   = Status Ok\n  CNS  = Chipset not supported\n");
    if (m != NULL) {
        CHECK_INT(m->device_count, 3);
        CHECK_STR(m->devices[2].id, "GPU2");
        CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_SYS);
        CHECK_INT(weft_machine_b(m, 0, 1), 0);
        CHECK_INT(m->devices[0].numa_group, -1);
        CHECK(!m->partial);
        CHECK_INT(m->warning_count, 1);
        CHECK_CONTAINS(m->warnings[0], "topo -p2p says which GPUs may reach one another, not how");
    }
    weft_auto(weft_machine_free) struct weft_machine *cut =
        parse("\tGPU0\tGPU1\tGPU2\nGPU0\tX\tOK\tOK\nGPU1\tOK");
    if (cut != NULL) {
        CHECK_INT(cut->device_count, 1);
        CHECK(cut->partial);
        CHECK_CONTAINS(cut->warnings[1], "line 1: 2 of the GPUs that the header names");
    }
}

static const char matrix_with_p2p[] =
    "$ nvidia-smi topo -m\n"
    "\t\033[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\033[0m\n"
    "GPU0\t X \tNV4\tNV4\tPIX\t0-7\t0\n"
    "GPU1\tNV4\t X \tNV4\tSYS\t0-7\t0\n"
    "GPU2\tNV4\tNV4\t X \tSYS\t8-15\t1\n"
    "\nNIC Legend:\n\n  NIC0: mlx5_0\n"
    "$ nvidia-smi topo -p2p r\n"
    "\t\033[4mGPU0\tGPU1\tGPU2\033[0m\n"
    " GPU0\tX\tOK\tTNS\n"
    " GPU1\tOK\tX\tOK\n"
    " GPU2\tOK\tOK\tX\n";

static void p2p_beside_a_matrix(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = parse(matrix_with_p2p);
    if (m != NULL) {
        CHECK_INT(m->device_count, 3);
        CHECK_STR(m->nics[0].name, "mlx5_0");
        CHECK_INT(weft_machine_b(m, 0, 1), 100000);
        CHECK_INT(weft_machine_b(m, 0, 2), 0); /* one way is enough */
        CHECK_INT(weft_machine_b(m, 1, 2), 100000);
        CHECK_INT(m->warning_count, 1);
        CHECK_CONTAINS(m->warnings[0], "line 12: P2P of GPU0 and GPU2 is TNS");
    }
    /* the other way round, with the matrix last and cut */
    weft_auto(weft_machine_free) struct weft_machine *cut =
        parse("\tGPU0\tGPU1\nGPU0\tX\tCNS\nGPU1\tCNS\tX\n"
              "\tGPU0\tGPU1\tCPU Affinity\nGPU0\tX\tNV2\t0-7\nGPU1\tNV");
    if (cut != NULL) {
        CHECK_INT(cut->device_count, 1);
        CHECK(cut->partial);
    }
}

static void too_many_columns(void)
{
    weft_autofree char *text = weft_calloc(20000, 1);
    struct weft_error err;
    if (text == NULL) {
        return;
    }
    size_t len = 0;
    for (int i = 0; i < WEFT_MACHINE_DEVICES_MAX + 1; i++) {
        len += (size_t)snprintf(text + len, 20000 - len, "\tGPU%d", i);
    }
    weft_auto(weft_machine_free) struct weft_machine *m = parse_n(text, len, &err);
    CHECK(m == NULL);
    CHECK_CONTAINS(err.message, "more than 1024 columns of GPUs");
}

static void fail_each_allocation(const char *text)
{
    bool done = false;
    for (uint64_t nth = 1; !done && nth < 300; nth++) {
        weft_auto(weft_machine_free) struct weft_machine *m = NULL;
        struct weft_error err = {0};
        (void)weft_mem_fail_after(nth);
        const int rc = weft_machine_read(text, strlen(text), "t", &m, &err);
        (void)weft_mem_fail_after(0);
        done = rc == 0;
        CHECK(done || rc == -ENOMEM);
    }
    CHECK(done);
}

static void failing_allocations(void)
{
    fail_each_allocation(dresses[1]);
    fail_each_allocation(matrix_with_p2p);
    fail_each_allocation("GPU0 GPU1\nGPU0 X OK\nGPU1 OK X\n");
}

/* ---- the public dumps (all of them: test_machine_expect.c) ---- */

static struct weft_machine *load_dump(const char *name, struct weft_error *err)
{
    struct weft_machine *m = NULL;
    char file[128];
    (void)snprintf(file, sizeof(file), "smi-topo/%s.txt", name);
    *err = (struct weft_error){0};
    return weft_machine_load(weft_shared(file), &m, err) < 0 ? NULL : m;
}

/* Two records of one machine class, one clean, one with doubled tabs, differ in nothing. */
static void two_records_of_one_machine(void)
{
    if (weft_shared("smi-topo") == NULL) {
        return;
    }
    struct weft_error err;
    weft_auto(weft_machine_free) struct weft_machine *clean = load_dump("v100x8-2ib-hugectr", &err);
    weft_auto(weft_machine_free) struct weft_machine *mixed =
        load_dump("v100x8-2ib-oneflow-mixed-tabs", &err);
    CHECK(clean != NULL && mixed != NULL && weft_machine_equal(clean, mixed));
    if (clean != NULL) {
        /* GPU2 and GPU3 share mlx5_0 at PIX; GPU0 sees it at NODE; GPU1-GPU6 are on two nodes */
        CHECK_INT(weft_machine_t(clean, 2, 3), WEFT_DISTANCE_PIX);
        CHECK_INT(weft_machine_t(clean, 0, 2), WEFT_DISTANCE_NODE);
        CHECK_INT(weft_machine_t(clean, 1, 6), WEFT_DISTANCE_SYS);
    }
}

WEFT_SUITE(machine_topo, {"every dress is the same machine", every_dress_is_the_same_machine},
           {"empty affinity cells", empty_affinity_cells},
           {"unknown NUMA compares the CPUs", unknown_numa_compares_the_cpus},
           {"without a NUMA column", without_a_numa_column_the_cpus_are_the_label},
           {"long labels stay apart", long_labels_stay_apart},
           {"NICs and their names", nics_and_their_names},
           {"NIC rows without columns", nic_rows_without_columns}, {"odd cells", odd_cells},
           {"a cell of several words is unknown", a_cell_of_several_words_is_unknown},
           {"an empty cell is unknown", an_empty_cell_is_unknown},
           {"missing and cut rows", missing_and_cut_rows},
           {"cut in the last word", cut_in_the_last_word},
           {"refuses with line and reason", refuses_with_line_and_reason},
           {"p2p alone is devices of unknown wiring", p2p_alone_is_devices_of_unknown_wiring},
           {"p2p beside a matrix", p2p_beside_a_matrix}, {"too many columns", too_many_columns},
           {"failing allocations", failing_allocations},
           {"two records of one machine", two_records_of_one_machine})
