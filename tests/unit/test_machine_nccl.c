/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL topology files: what each element becomes, how the PCI tree gives distances, how links give
 * bandwidth, skeletons without GPUs, cut files, what is refused at which line. Expected values are
 * read off the fixtures by eye. */
#include <stdio.h>

#include "pkg/base/mem.h"
#include "pkg/machine/machine.h"
#include "tests/unit/machine_util.h"
#include "tests/unit/unit.h"

/* Two sockets; on the first a switch with a switch below it:
 *   switch 10: GPU0 (11), NIC (12, two ports), switch 20: GPU1 (21)
 * and GPU2 (30) right under the processor; on the second GPU3 (40). */
static const char tree[] =
    "<system version=\"1\">\n"
    "<cpu numaid=\"3\" affinity=\"0000,ffff\" arch=\"x86_64\">\n"
    "<pci busid=\"0000:10:00.0\" class=\"0x060400\" vendor=\"0x1000\" link_speed=\"16.0 GT/s "
    "PCIe\" "
    "link_width=\"16\">\n"
    " <pci busid=\"0000:11:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" "
    "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
    "  <gpu dev=\"0\" sm=\"90\" rank=\"0\" gdr=\"1\">\n"
    "   <nvlink target=\"0000:21:00.0\" count=\"4\" tclass=\"0x030200\"/>\n"
    "   <nvlink target=\"0000:40:00.0\" count=\"2\" tclass=\"0x030200\"/>\n"
    "  </gpu></pci>\n"
    " <pci busid=\"0000:12:00.0\" class=\"0x020700\" link_speed=\"\" link_width=\"0\"><nic>\n"
    "  <net name=\"mlx5_0\" dev=\"0\" speed=\"400000\" port=\"1\" guid=\"0xa0b1\" gdr=\"1\"/>\n"
    "  <net name=\"mlx5_1\" dev=\"1\" speed=\"400000\" port=\"2\" guid=\"0xa0b1\" gdr=\"1\"/>\n"
    " </nic></pci>\n"
    " <pci busid=\"0000:20:00.0\" class=\"0x060400\" vendor=\"0x1000\">\n"
    "  <pci busid=\"0000:21:00.0\" class=\"0x030200\" vendor=\"0x10de\">\n"
    "   <gpu dev=\"1\" sm=\"90\" rank=\"1\" gdr=\"1\">\n"
    "    <nvlink target=\"0000:11:00.0\" count=\"4\" tclass=\"0x030200\"/></gpu></pci></pci>\n"
    "</pci>\n"
    "<pci busid=\"0000:30:00.0\" class=\"0x030200\" vendor=\"0x10de\">\n"
    " <gpu dev=\"2\" sm=\"90\" rank=\"2\" gdr=\"1\"/></pci>\n"
    "<nic><net name=\"eth0\" dev=\"2\" speed=\"10000\" port=\"0\" guid=\"0x0\"/></nic>\n"
    "</cpu>\n"
    "<cpu numaid=\"7\" affinity=\"ffff,0000\">\n"
    "<pci busid=\"0000:40:00.0\" class=\"0x030200\" vendor=\"0x10de\">\n"
    " <gpu dev=\"3\" sm=\"121\" rank=\"3\" gdr=\"1\">\n"
    "  <nvlink target=\"0000:11:00.0\" count=\"1\" tclass=\"0x030200\"/></gpu></pci>\n"
    "</cpu></system>\n";

static void devices_and_nics(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_read(tree);
    if (m == NULL) {
        return;
    }
    CHECK_STR(m->vendor, "nvidia");
    CHECK_INT(m->partial, false);
    CHECK_INT(m->device_count, 4);
    CHECK_STR(m->devices[0].id, "GPU0");
    CHECK_STR(m->devices[0].capability, "9.0");
    CHECK_STR(m->devices[3].capability, "12.1");
    CHECK_INT(m->devices[0].pcie.generation, 5); /* 32 GT/s */
    CHECK_INT(m->devices[0].pcie.width, 16);
    CHECK_INT(m->devices[1].pcie.generation, 0);
    CHECK_INT(m->devices[0].links_up, 6);
    CHECK_INT(m->devices[2].links_up, -1); /* the file says nothing of its links */
    CHECK_INT(m->devices[0].numa_node, 3);
    CHECK_INT(m->devices[3].numa_node, 7);
    CHECK_INT(m->devices[3].bdf.bus, 0x40);
    /* two ports of one function are one NIC; eth0 has no PCI function */
    CHECK_INT(m->nic_count, 1);
    CHECK_STR(m->nics[0].name, "mlx5_0");
    CHECK_INT(m->nics[0].rate_mbps, 400000);
    CHECK_INT(m->nics[0].guid, 0xa0b1);
    CHECK_INT(m->nics[0].numa_node, 3);
    CHECK_INT(m->nics[0].layer, WEFT_NIC_LAYER_INFINIBAND);
}

static void distances_and_links(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_read(tree);
    if (m == NULL) {
        return;
    }
    CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_PXB);  /* switches 10 and 20 */
    CHECK_INT(weft_machine_t(m, 0, 2), WEFT_DISTANCE_NODE); /* the processor only */
    CHECK_INT(weft_machine_t(m, 0, 3), WEFT_DISTANCE_SYS);
    CHECK_INT(weft_machine_n(m, 0, 0), WEFT_DISTANCE_PIX); /* switch 10 */
    CHECK_INT(weft_machine_n(m, 1, 0), WEFT_DISTANCE_PXB);
    CHECK_INT(weft_machine_n(m, 2, 0), WEFT_DISTANCE_NODE);
    CHECK_INT(weft_machine_n(m, 3, 0), WEFT_DISTANCE_SYS);
    CHECK_INT(weft_machine_b(m, 0, 1), 4 * 25000);
    CHECK_INT(weft_machine_b(m, 0, 3), 1 * 25000); /* 2 there, 1 back */
    CHECK_INT(weft_machine_b(m, 1, 2), 0);
    CHECK_INT(m->warning_count, 1);
    machine_warned(m, "GPU0 has 2 links to GPU3, which has 1 back");
}

/* Behind switches: the smaller sum of the two GPUs; one switch has no address (virtual machines).
 */
static void switches(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_read(
        "<system version=\"1\"><cpu numaid=\"0\">"
        "<pci busid=\"0000:01:00.0\" class=\"0x030200\"><gpu dev=\"0\" sm=\"80\">"
        "<nvlink target=\"0000:c1:00.0\" count=\"5\" tclass=\"0x068000\"/>"
        "<nvlink target=\"0000:c2:00.0\" count=\"7\" tclass=\"0x068000\"/></gpu></pci>"
        "<pci busid=\"0000:02:00.0\" class=\"0x030200\"><gpu dev=\"1\" sm=\"80\">"
        "<nvlink target=\"fffffff:ffff:ff\" count=\"18\" tclass=\"0x068000\"/></gpu></pci>"
        "<pci busid=\"0000:03:00.0\" class=\"0x030200\"><gpu dev=\"2\" sm=\"80\"/></pci>"
        "</cpu></system>");
    if (m != NULL) {
        CHECK_INT(weft_machine_b(m, 0, 1), 12 * 25000);
        CHECK_INT(weft_machine_b(m, 0, 2), 0);
        CHECK_INT(m->warning_count, 0);
    }
}

static void links_to_gpus_that_are_not_there(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m =
        machine_read("<system version=\"1\"><cpu numaid=\"0\">"
                     "<pci busid=\"0000:01:00.0\" class=\"0x030200\"><gpu dev=\"4\" sm=\"80\">"
                     "<nvlink target=\"0000:02:00.0\" count=\"4\" tclass=\"0x030200\"/></gpu></pci>"
                     "<pci busid=\"0000:09:00.0\" class=\"0x030200\"/>"
                     "</cpu></system>");
    if (m != NULL) {
        CHECK_INT(m->device_count, 1);
        CHECK_STR(m->devices[0].id, "GPU4");
        machine_warned(m, "1 link elements lead to PCI addresses that no <gpu> here has");
        machine_warned(m, "1 PCI functions of a GPU's class have no <gpu>");
    }
}

/* The static topologies of cloud providers: classes, no <gpu>, no <net>. */
static void skeletons(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m =
        machine_read("<!-- a comment --><system version=\"1\"><cpu numaid=\"0\">"
                     "<pci busid=\"ffff:ff:01.0\" class=\"0x060400\">"
                     "<pci busid=\"0003:00:00.0\" class=\"0x030200\"/><pci busid=\"0103:00:00.0\" "
                     "class=\"0x020700\"/></pci></cpu>"
                     "<cpu numaid=\"1\"><pci busid=\"ffff:ff:02.0\" class=\"0x060400\">"
                     "<pci busid=\"0001:00:00.0\" class=\"0x030200\"/><pci busid=\"0101:00:00.0\" "
                     "class=\"0x020000\"/></pci></cpu></system>");
    if (m != NULL) {
        CHECK_INT(m->device_count, 2);
        CHECK_INT(m->nic_count, 2);
        CHECK_STR(m->devices[0].id, "GPU1"); /* 0001 before 0003 */
        CHECK_INT(m->devices[0].bdf.domain, 3);
        CHECK_STR(m->nics[1].name, "NIC1");
        CHECK_INT(m->nics[1].layer, WEFT_NIC_LAYER_ETHERNET);
        CHECK_INT(weft_machine_n(m, 0, 0), WEFT_DISTANCE_PIX);
        CHECK_INT(weft_machine_n(m, 0, 1), WEFT_DISTANCE_SYS);
        CHECK_STR(m->vendor, "");
        machine_warned(m, "no <gpu>: 2 PCI functions of a GPU's class");
    }
    weft_auto(weft_machine_free) struct weft_machine *bare =
        machine_read("<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:00:16.0\"/>"
                     "<pci busid=\"0000:00:17.0\"/></cpu></system>");
    if (bare != NULL) {
        CHECK_INT(bare->device_count, 0);
        machine_warned(bare, "a machine without GPUs");
        machine_warned(bare, "2 <pci> elements have no class");
    }
}

static void unknown_numa(void)
{
    /* -1: the CPU mask is the label; no mask either: unknown */
    weft_auto(weft_machine_free) struct weft_machine *m = machine_read(
        "<system version=\"1\">"
        "<cpu numaid=\"-1\" affinity=\"00ff\"><pci busid=\"0000:01:00.0\"><gpu dev=\"0\" "
        "sm=\"70\"/></pci></cpu>"
        "<cpu affinity=\"00ff\"><pci busid=\"0000:02:00.0\"><gpu dev=\"1\" sm=\"70\"/></pci></cpu>"
        "<cpu arch=\"arm64\"><pci busid=\"0000:03:00.0\"><gpu dev=\"2\" sm=\"70\"/></pci>"
        "<pci busid=\"0000:04:00.0\"><gpu dev=\"3\" sm=\"70\"/></pci></cpu></system>");
    if (m != NULL) {
        CHECK_STR(m->devices[0].numa_label, "00ff");
        CHECK_INT(m->devices[0].numa_node, -1);
        CHECK_INT(m->devices[2].numa_group, -1);
        CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_NODE);
        CHECK_INT(weft_machine_t(m, 2, 3), WEFT_DISTANCE_SYS);
    }
}

/* Virtual functions beside their physical one are no NICs; alone they are. */
static void virtual_functions(void)
{
    static const char format[] =
        "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:10:00.0\" class=\"0x060400\">"
        "<pci busid=\"0000:11:00.0\" class=\"0x020700\" vendor=\"0x15b3\" device=\"%s\"><nic><net "
        "name=\"mlx5_0\" speed=\"1\"/></nic></pci>"
        "<pci busid=\"0000:11:00.1\" class=\"0x020700\" vendor=\"0x15b3\" device=\"0x101e\"><nic>"
        "<net name=\"mlx5_1\" speed=\"1\"/></nic></pci></pci></cpu></system>";
    char text[1024];
    (void)snprintf(text, sizeof(text), format, "0x1021");
    weft_auto(weft_machine_free) struct weft_machine *host = machine_read(text);
    (void)snprintf(text, sizeof(text), format, "0x101e");
    weft_auto(weft_machine_free) struct weft_machine *guest = machine_read(text);
    CHECK(host != NULL && host->nic_count == 1 && strcmp(host->nics[0].name, "mlx5_0") == 0);
    CHECK(guest != NULL && guest->nic_count == 2);
}

/* Elements that this reader does not know are passed over, with all in them. */
static void unknown_elements(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_read(
        "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"000f:01:00.0\">"
        "<gpu dev=\"0\" sm=\"121\"><c2c bw=\"43125\" count=\"8\"/><future><gpu dev=\"0\"/></future>"
        "</gpu></pci></cpu></system>");
    if (m != NULL) {
        CHECK_INT(m->device_count, 1);
        CHECK_INT(m->warning_count, 0);
    }
}

static void cut_files(void)
{
    machine_read_cut(tree);
    char text[sizeof(tree)];
    (void)snprintf(text, sizeof(text), "%s", tree);
    *strstr(text, "<nvlink target=\"0000:11:00.0\" count=\"4\"") = '\0'; /* inside GPU1 */
    weft_auto(weft_machine_free) struct weft_machine *m = machine_read(text);
    if (m != NULL) {
        CHECK_INT(m->device_count, 1);
        CHECK_INT(m->nic_count, 1);
        CHECK(m->partial);
        machine_warned(m, "the file is cut after line 15");
        machine_warned(m, "line 15: <gpu dev=\"1\"> is cut");
    }
    *strstr(text, "</gpu>") = '\0';
    machine_refused(text, "t:7: the file is cut here, before the first whole GPU");
}

#define IN_CPU(inside) "<system version=\"1\">\n<cpu numaid=\"0\">\n" inside "</cpu></system>"
#define GPU(bus, inside) "<pci busid=\"0000:" bus ":00.0\">" inside "</pci>\n"

static void refusals(void)
{
    machine_refused(IN_CPU("<pci busid=\"0000:01:00.0\" class=\"0x030200\"/>\n"
                           "<pci busid=\"0000:01:00.0\" class=\"0x030200\"/>"),
                    "t:4: a second <pci> with the address of line 3");
    machine_refused(IN_CPU("<pci busid=\"zz\"/>"), "t:3: <pci busid=\"zz\">: not a PCI address");
    machine_refused(IN_CPU("<pci class=\"0x030200\"/>"), "t:3: <pci busid=\"\">");
    machine_refused(IN_CPU("<gpu dev=\"0\"/>"), "t:3: <gpu> outside any <pci>");
    machine_refused(IN_CPU(GPU("01", "<gpu sm=\"80\"/>")), "t:3: <gpu> without dev");
    machine_refused(IN_CPU(GPU("01", "<gpu dev=\"x\"/>")), "t:3: dev=\"x\" is not a whole number");
    machine_refused(IN_CPU(GPU("01", "<gpu dev=\"0\"/>") GPU("02", "<gpu dev=\"0\"/>")),
                    "t:4: a second <gpu dev=\"0\"> (line 3)");
    machine_refused(IN_CPU(GPU("01", "<gpu dev=\"0\"/>") GPU("01", "<gpu dev=\"1\"/>")),
                    "t:4: a second <gpu> at the PCI address of line 3");
    machine_refused(IN_CPU(GPU("01", "<gpu dev=\"0\"><nvlink target=\"0000:02:00.0\"/></gpu>")),
                    "t:3: a link without count");
    machine_refused(IN_CPU(GPU("01", "<gpu dev=\"0\"><nvlink count=\"2\"/></gpu>")),
                    "t:3: a link without target");
    machine_refused(IN_CPU(GPU("01", "<gpu dev=\"0\"><nvlink target=\"?\" count=\"2\"/></gpu>")),
                    "t:3: link target=\"?\": not a PCI address");
    machine_refused(
        IN_CPU(GPU("01", "<gpu dev=\"0\"><nvlink target=\"0000:02:00.0\" count=\"1001\"/></gpu>")),
        "t:3: count=\"1001\" is not a whole number from 0 to 1000");
    machine_refused(
        IN_CPU(GPU("01", "<gpu dev=\"0\"><nvlink target=\"0000:01:00.0\" count=\"1\"/></gpu>")),
        "t:3: a link of GPU0 to itself");
    machine_refused(IN_CPU("<nvlink target=\"0000:01:00.0\" count=\"1\"/>"), "outside any <gpu>");
    machine_refused("<system><cpu numaid=\"a\"/></system>", "t:1: <cpu numaid=\"a\"> is not");
    machine_refused("<system>\n<cpu host_hash=\"0x1\"/>\n<cpu host_hash=\"0x2\"/></system>",
                    "t:3: <cpu host_hash=\"0x2\"> is of another host than that of line 2");
    machine_refused("<system>\n</cpu>", "t:2: not well-formed XML: mismatched tag");
    machine_refused("{\"dmi_data\":{},\"network_interfaces\":[]}",
                    "t: not a recorded machine: a hardware inventory");
    machine_refused("# a comment\ndevice_defaults:\n  name: x\ndevices:\n  - index: 0\n",
                    "t: not a recorded machine: the configuration of a mock NVML");
    machine_refused("BZh91AY", "t: not a recorded machine: bzip2 data");
    machine_refused("<!-- x -->\n<html><p/></html>", "XML with the root <html>");
}

static void out_of_memory(void)
{
    machine_read_out_of_memory(tree);
}

WEFT_SUITE(machine_nccl, {"devices and NICs", devices_and_nics},
           {"distances and links", distances_and_links}, {"switches", switches},
           {"links to GPUs that are not there", links_to_gpus_that_are_not_there},
           {"skeletons", skeletons}, {"unknown NUMA", unknown_numa},
           {"virtual functions", virtual_functions}, {"unknown elements", unknown_elements},
           {"cut files", cut_files}, {"refusals", refusals}, {"out of memory", out_of_memory})
