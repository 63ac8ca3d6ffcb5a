/* SPDX-License-Identifier: Apache-2.0 */
/* RCCL's dialect of the NCCL topology file: xGMI links, instruction sets, AMD's own bridges on the
 * cards. Expected values are read off the fixture by eye. */
#include "pkg/base/mem.h"
#include "pkg/machine/machine.h"
#include "tests/unit/machine_util.h"
#include "tests/unit/unit.h"

/* An MI250X's two halves (GPU0, GPU1) under one switch, each behind the bridge of its own; GPU2, of
 * another package, under a further switch. */
static const char packages[] =
    "<system version=\"2\"><cpu numaid=\"0\">"
    "<pci busid=\"0000:40:00.0\" class=\"0x060400\" vendor=\"0x1000\" device=\"0xc010\">"
    " <pci busid=\"0000:49:00.0\" class=\"0x060400\" vendor=\"0x1022\" device=\"0x14c7\">"
    "  <pci busid=\"0000:4b:00.0\" class=\"0x038000\" vendor=\"0x1002\">"
    "   <gpu dev=\"0\" sm=\"104\" gcn=\"910\" arch=\"38911\" rank=\"0\" gdr=\"1\">"
    "    <xgmi target=\"0000:4e:00.0\" count=\"4\" tclass=\"0x038000\"/>"
    "    <xgmi target=\"0000:5b:00.0\" count=\"1\" tclass=\"0x038000\"/></gpu></pci></pci>"
    " <pci busid=\"0000:4c:00.0\" class=\"0x060400\" vendor=\"0x1022\" device=\"0x14c7\">"
    "  <pci busid=\"0000:4e:00.0\" class=\"0x038000\" vendor=\"0x1002\">"
    "   <gpu dev=\"1\" sm=\"104\" gcn=\"gfx90a\" rank=\"1\" gdr=\"1\">"
    "    <xgmi target=\"0000:4b:00.0\" count=\"4\" tclass=\"0x038000\"/></gpu></pci></pci>"
    " <pci busid=\"0000:50:00.0\" class=\"0x060400\" vendor=\"0x1000\" device=\"0xc010\">"
    "  <pci busid=\"0000:59:00.0\" class=\"0x060400\" vendor=\"0x1022\" device=\"0x14c7\">"
    "   <pci busid=\"0000:5b:00.0\" class=\"0x038000\" vendor=\"0x1002\">"
    "    <gpu dev=\"2\" sm=\"304\" gcn=\"942\" rank=\"2\" gdr=\"1\">"
    "     <xgmi target=\"0000:4b:00.0\" count=\"1\" tclass=\"0x038000\"/></gpu></pci></pci></pci>"
    " <pci busid=\"0000:4f:00.0\" class=\"0x020700\" vendor=\"0x15b3\"><nic>"
    "  <net name=\"mlx5_0\" speed=\"200000\" guid=\"0x0\"/></nic></pci>"
    "</pci></cpu></system>";

static void links_and_instruction_sets(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_read(packages);
    if (m == NULL) {
        return;
    }
    CHECK_STR(m->vendor, "amd");
    CHECK_STR(m->devices[0].capability, "gfx90a"); /* 910 in older files */
    CHECK_STR(m->devices[1].capability, "gfx90a");
    CHECK_STR(m->devices[2].capability, "gfx942");
    CHECK_INT(weft_machine_b(m, 0, 1), 4 * 25000);
    CHECK_INT(weft_machine_b(m, 0, 2), 25000);
    CHECK_INT(weft_machine_b(m, 1, 2), 0);
    CHECK_INT(m->warning_count, 0);
}

/* The bridges 49, 4c and 59 are on the cards and count for nothing; 40 and 50 are switches. */
static void own_bridges_are_no_switches(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_read(packages);
    if (m == NULL) {
        return;
    }
    CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_PIX);
    CHECK_INT(weft_machine_t(m, 0, 2), WEFT_DISTANCE_PXB);
    CHECK_INT(weft_machine_n(m, 0, 0), WEFT_DISTANCE_PIX);
    CHECK_INT(weft_machine_n(m, 2, 0), WEFT_DISTANCE_PXB);
}

static void cut_and_out_of_memory(void)
{
    machine_read_cut(packages);
    machine_read_out_of_memory(packages);
}

WEFT_SUITE(machine_rccl, {"links and instruction sets", links_and_instruction_sets},
           {"own bridges are no switches", own_bridges_are_no_switches},
           {"cut and out of memory", cut_and_out_of_memory})
