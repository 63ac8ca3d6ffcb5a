/* SPDX-License-Identifier: Apache-2.0 */
/* lstopo XML of formats 1, 2 and 3: which functions are GPUs and NICs, where they sit, distances by
 * the PCI tree, matrices of links, partitions, cut files, refusals. Expected values are read off
 * the texts by eye. */
#include <errno.h>
#include <stdio.h>

#include "pkg/base/mem.h"
#include "pkg/machine/lstopo-internal.h"
#include "pkg/machine/machine.h"
#include "tests/unit/machine_util.h"
#include "tests/unit/unit.h"

/* Format 3. Package 0 with NUMA node 0 (and HBM node 2 beside it), package 1 with node 1.
 *   host bridge, root port 10, switch (11 up; 12.0, 12.1, 12.2 down): GPU 13, GPU 14, and
 * below 12.2 a further switch (15 up, 16.0 down): NIC 17 with its virtual function the same host
 * bridge, root port 20: GPU 21 package 1: host bridge, root port 40: GPU 41; a VGA chip on the
 * board; NVSwitch 51 */
#define BRIDGE(gp, bus)                                                                            \
    "<object type=\"Bridge\" gp_index=\"" gp "\" bridge_type=\"1-1\" pci_busid=\"0000:" bus        \
    "\" pci_type=\"0604 [10b5:9781] [10b5:9781] b0 00\">\n"
#define HOST(gp)                                                                                   \
    "<object type=\"Bridge\" gp_index=\"" gp "\" bridge_type=\"0-1\" "                             \
    "bridge_pci=\"0000:[00-ff]\">\n"
#define PCI(gp, bus, type, inside)                                                                 \
    "<object type=\"PCIDev\" gp_index=\"" gp "\" pci_busid=\"0000:" bus "\" pci_type=\"" type      \
    " [0000:0000] a1 00\">" inside "</object>\n"
#define NVML(gp, name)                                                                             \
    "<object type=\"OSDev\" gp_index=\"" gp "\" name=\"" name "\" osdev_type=\"12\"><info "        \
    "name=\"GPUModel\" value=\"Big GPU  80GB\"/></object>"
#define END "</object>\n"

#define MATRIX                                                                                     \
    "<distances2hetero nbobjs=\"6\" kind=\"25\" name=\"NVLinkBandwidth\">"                         \
    "<indexes length=\"50\">OSDev:101 OSDev:102 OSDev:103 OSDev:104 </indexes>"                    \
    "<indexes length=\"20\">PCIDev:51 Package:5 </indexes>"                                        \
    "<u64values length=\"9\">0 40000 0 0 100000 7</u64values>"                                     \
    "<u64values length=\"9\">30000 0 0 0 50000 7</u64values>"                                      \
    "<u64values length=\"9\">0 0 0 0 75000 7</u64values>"                                          \
    "<u64values length=\"9\">0 0 0 0 0 7</u64values>"                                              \
    "<u64values length=\"9\">100000 50000 75000 0 0 0</u64values>"                                 \
    "<u64values length=\"9\">7 7 7 7 7 7</u64values></distances2hetero>"

static const char machine3[] =
    "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology "
    "version=\"3.0\">\n"
    "<object type=\"Machine\" nodeset=\"0x00000007\" gp_index=\"1\">\n"
    "<object type=\"Package\" os_index=\"4\" nodeset=\"0x00000005\" gp_index=\"2\">\n"
    "<object type=\"NUMANode\" os_index=\"2\" nodeset=\"0x00000004\" gp_index=\"3\"/>\n"
    "<object type=\"NUMANode\" os_index=\"0\" nodeset=\"0x00000001\" gp_index=\"4\"/>\n" //
    HOST("60") BRIDGE("61", "00:01.0") BRIDGE("62", "11:00.0")                           //
    BRIDGE("63", "12:00.0") PCI("13", "13:00.0", "0302 [10de:2330]", NVML("101", "nvml1"))
        END BRIDGE("64", "12:01.0") PCI("14", "14:00.0", "0302 [10de:2330]", NVML("102", "nvml0"))
            END BRIDGE("65", "12:02.0") BRIDGE("66", "15:00.0") BRIDGE("67", "16:00.0") PCI(
                "17", "17:00.0", "0207 [15b3:1021]",
                "<object type=\"OSDev\" gp_index=\"201\" name=\"ib0\" osdev_type=\"16\"/>"
                "<object type=\"OSDev\" gp_index=\"202\" name=\"mlx5_0\" osdev_type=\"32\">"
                "<info name=\"NodeGUID\" value=\"00a1:0000:0000:00b2\"/>"
                "<info name=\"Port1State\" value=\"4\"/></object>")
                PCI("18", "17:00.1", "0207 [15b3:101e]",
                    "<object type=\"OSDev\" gp_index=\"203\" name=\"mlx5_1\" osdev_type=\"32\"/>")
                    END END END END END BRIDGE("68", "00:02.0")
                        PCI("21", "21:00.0", "0302 [10de:2330]", NVML("103", "nvml2")) END END END
    "<object type=\"Package\" os_index=\"5\" nodeset=\"0x00000002\" gp_index=\"5\">\n"
    "<object type=\"NUMANode\" os_index=\"1\" nodeset=\"0x00000002\" gp_index=\"6\"/>\n" //
    HOST("69") BRIDGE("70", "40:01.0")
        PCI("41", "41:00.0", "0302 [10de:2330]", NVML("104", "nvml3"))
            PCI("42", "42:00.0", "0300 [102b:0536]",
                "") "<object type=\"PCIDev\" gp_index=\"51\" subtype=\"NVSwitch\" "
                    "pci_busid=\"0000:51:00.0\" "
                    "pci_type=\"0000 [0000:0000] [0000:0000] 00 00\"/>" PCI(
                        "43", "43:00.0", "0200 [8086:1521]",
                        "<object type=\"OSDev\" gp_index=\"204\" name=\"eth0\" osdev_type=\"16\"/>")
                        PCI("44", "44:00.0", "0280 [8086:2725]",
                            "<object type=\"OSDev\" gp_index=\"205\" name=\"wlan0\" "
                            "osdev_type=\"16\"/>") END END END END MATRIX "</topology>\n";

static void devices_and_places(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_read(machine3);
    if (m == NULL) {
        return;
    }
    CHECK_STR(m->vendor, "nvidia");
    CHECK_INT(m->device_count, 4); /* not the VGA chip, not the switch */
    CHECK_STR(m->devices[0].id, "GPU1");
    CHECK_STR(m->devices[1].id, "GPU0");
    CHECK_STR(m->devices[0].model, "Big GPU  80GB");
    CHECK_INT(m->devices[0].bdf.bus, 0x13);
    CHECK_INT(m->devices[0].numa_node, 0); /* not the HBM's 2 */
    CHECK_INT(m->devices[3].numa_node, 1);
    CHECK_INT(m->devices[0].socket, 4);
    CHECK_INT(m->devices[3].socket, 5);
    /* mlx5_0 without its virtual function, eth0, but no wireless */
    CHECK_INT(m->nic_count, 2);
    CHECK_STR(m->nics[0].name, "mlx5_0");
    CHECK_STR(m->nics[0].netdev, "ib0");
    CHECK_INT(m->nics[0].guid, 0x00a10000000000b2);
    CHECK_INT(m->nics[0].up, 1);
    CHECK_INT(m->nics[0].layer, WEFT_NIC_LAYER_INFINIBAND);
    CHECK_STR(m->nics[1].name, "eth0");
    CHECK_INT(m->nics[1].up, -1);
}

static void distances(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_read(machine3);
    if (m == NULL) {
        return;
    }
    CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_PIX); /* one switch */
    CHECK_INT(weft_machine_t(m, 0, 2), WEFT_DISTANCE_PHB); /* two root ports of a host bridge */
    CHECK_INT(weft_machine_t(m, 0, 3), WEFT_DISTANCE_SYS);
    CHECK_INT(weft_machine_n(m, 0, 0), WEFT_DISTANCE_PXB); /* a further switch */
    CHECK_INT(weft_machine_n(m, 2, 0), WEFT_DISTANCE_PHB);
    CHECK_INT(weft_machine_n(m, 3, 0), WEFT_DISTANCE_SYS);
    CHECK_INT(weft_machine_n(m, 3, 1), WEFT_DISTANCE_PIX); /* below one port */
}

static void matrices_of_links(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_read(machine3);
    if (m == NULL) {
        return;
    }
    CHECK_INT(weft_machine_b(m, 0, 1), 30000 + 50000); /* the smaller way, and the switch */
    CHECK_INT(weft_machine_b(m, 0, 2), 75000);
    CHECK_INT(weft_machine_b(m, 1, 2), 50000);
    CHECK_INT(weft_machine_b(m, 0, 3), 0); /* links to the processor do not count */
    CHECK_INT(m->warning_count, 1);
    machine_warned(m, "GPU1 to GPU0 has 90000 MB/s, the way back 80000: the smaller counts");
}

/* The same notions in format 1: NUMA nodes around, no gp_index, other numbers for device types. */
static const char machine1[] =
    "<topology>\n<object type=\"Machine\" nodeset=\"0x00000101\">\n"
    "<object type=\"NUMANode\" os_index=\"0\" nodeset=\"0x00000001\">\n"
    "<object type=\"Socket\" os_index=\"0\" nodeset=\"0x00000001\"/>\n"
    "<object type=\"Bridge\" bridge_type=\"0-1\" bridge_pci=\"0004:[00-0a]\">\n"
    "<object type=\"PCIDev\" pci_busid=\"0004:04:00.0\" pci_type=\"0302 [10de:1db1] [10de:1212] "
    "a1\"><info name=\"PCIDevice\" value=\"GV100GL\"/><object type=\"OSDev\" name=\"card1\" "
    "osdev_type=\"1\"/></object>\n"
    "<object type=\"PCIDev\" pci_busid=\"0004:03:00.0\" pci_type=\"0302 [10de:1db1] [10de:1212] "
    "a1\"/>\n"
    "<object type=\"PCIDev\" pci_busid=\"0004:06:00.0\" pci_type=\"0207 [15b3:1019] [1014:0617] "
    "00\"><object type=\"OSDev\" name=\"hsi0\" osdev_type=\"2\"/><object type=\"OSDev\" "
    "name=\"mlx5_0\" osdev_type=\"3\"><info name=\"Port1State\" value=\"1\"/></object></object>\n"
    "</object></object>\n"
    "<object type=\"NUMANode\" os_index=\"8\" nodeset=\"0x00000100\">\n"
    "<object type=\"Bridge\" bridge_type=\"0-1\" bridge_pci=\"0035:[00-0a]\">\n"
    "<object type=\"PCIDev\" pci_busid=\"0035:03:00.0\" pci_type=\"0302 [10de:1db1] [10de:1212] "
    "a1\"/></object></object></object></topology>\n";

static void format_one(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_read(machine1);
    if (m == NULL) {
        return;
    }
    CHECK_INT(m->device_count, 3);
    /* without numbers from a library: by address */
    CHECK_STR(m->devices[0].id, "GPU1");
    CHECK_STR(m->devices[1].id, "GPU0");
    CHECK_STR(m->devices[2].id, "GPU2");
    CHECK_STR(m->devices[0].model, "GV100GL");
    CHECK_INT(m->devices[0].numa_node, 0);
    CHECK_INT(m->devices[0].socket, 0); /* the only one inside the NUMA node */
    CHECK_INT(m->devices[2].numa_node, 8);
    CHECK_INT(m->devices[2].socket, -1);
    CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_PHB);
    CHECK_INT(weft_machine_t(m, 0, 2), WEFT_DISTANCE_SYS);
    CHECK_INT(m->nic_count, 1);
    CHECK_STR(m->nics[0].name, "mlx5_0");
    CHECK_INT(m->nics[0].up, 0);
    machine_warned(m, "no matrix of NVLink or xGMI bandwidths");
}

/* Two GPUs of two partitions each (several rsmi devices on a function), of format 2. */
static const char partitions[] =
    "<topology version=\"2.0\"><object type=\"Machine\" nodeset=\"0x00000001\" gp_index=\"1\">" //
    HOST("2") PCI("3", "02:00.0", "1200 [1002:74a0]",
                  "<object type=\"OSDev\" gp_index=\"11\" name=\"rsmi0\" osdev_type=\"1\"/>"
                  "<object type=\"OSDev\" gp_index=\"12\" name=\"rsmi1\" osdev_type=\"1\"/>")
        PCI("4", "01:00.0", "1200 [1002:74a0]",
            "<object type=\"OSDev\" gp_index=\"13\" name=\"rsmi2\" osdev_type=\"1\"/>"
            "<object type=\"OSDev\" gp_index=\"14\" name=\"rsmi3\" osdev_type=\"1\"/>") END END
    "<distances2 type=\"OSDev\" nbobjs=\"4\" kind=\"9\" name=\"XGMIBandwidth\" indexing=\"gp\">"
    "<indexes length=\"12\">11 12 13 14 </indexes>"
    "<u64values length=\"12\">1000000 5 6 7 5 1000000 8 9 </u64values>"
    "<u64values length=\"12\">6 8 1000000 5 7 9 5 1000000 </u64values></distances2>"
    "<distances2 type=\"OSDev\" nbobjs=\"4\" kind=\"5\" name=\"XGMIHops\" indexing=\"gp\">"
    "<indexes length=\"12\">11 12 13 14 </indexes></distances2></topology>";

static void partitions_of_a_gpu(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_read(partitions);
    if (m == NULL) {
        return;
    }
    CHECK_STR(m->vendor, "amd");
    CHECK_INT(m->device_count, 4);
    CHECK_STR(m->devices[3].id, "GPU3");
    CHECK_INT(m->devices[0].parent, 1); /* 02:00.0 is the second by address */
    CHECK_INT(m->devices[2].parent, 0);
    CHECK_INT(m->devices[1].partition, 1);
    CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_PSB);
    CHECK_INT(weft_machine_t(m, 1, 2), WEFT_DISTANCE_PHB);
    CHECK_INT(weft_machine_b(m, 0, 1), 5);
    CHECK_INT(weft_machine_b(m, 1, 3), 9);
    CHECK_INT(m->warning_count, 0);
}

static void machines_without_gpus(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_read(
        "<topology version=\"3.0\"><object type=\"Machine\" nodeset=\"0x1\"/></topology>");
    CHECK(m != NULL && m->device_count == 0);
    if (m != NULL) {
        machine_warned(m, "no PCI functions (lstopo without I/O devices)");
    }
    weft_auto(weft_machine_free) struct weft_machine *vga =
        machine_read("<topology version=\"2.0\"><object type=\"Machine\">" //
                     HOST("2") PCI("3", "02:00.0", "0300 [1a03:2000]", "") END END "</topology>");
    CHECK(vga != NULL && vga->device_count == 0);
    if (vga != NULL) {
        machine_warned(vga, "none of the 1 PCI functions is a GPU");
    }
}

static void several_vendors(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = machine_read(
        "<topology version=\"2.0\"><object type=\"Machine\">" //
        HOST("2") PCI("3", "02:00.0", "0300 [1002:6863]",
                      "<object type=\"OSDev\" gp_index=\"9\" name=\"opencl0d0\" "
                      "osdev_type=\"5\"/>")
            PCI("4", "01:00.0", "0300 [10de:1b81]", NVML("10", "nvml0")) END END "</topology>");
    if (m != NULL) {
        CHECK_INT(m->device_count, 2);
        CHECK_STR(m->vendor, "");
        CHECK_STR(m->devices[0].id, "GPU1"); /* by address, as not all have a number */
        CHECK_INT(m->devices[0].numa_node, -1);
        machine_warned(m, "the GPUs are of several vendors");
    }
}

static void notations(void)
{
    static const struct {
        const char *set;
        int bit;
    } sets[] = {
        {"0x00000001", 0},       {"0x00000008", 3},  {"0x00000001,0x0", 32},
        {"0x00000001,,0x0", 64}, {"0x00000003", -1}, {"0x1,0x1", -1},
        {"0xf...f,0x0", -1},     {"", -1},           {"0x0", -1},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(sets); i++) {
        CHECK_INT(weft_lstopo_only_bit(sets[i].set), sets[i].bit);
    }
    uint64_t values[3] = {0};
    size_t count = 0;
    CHECK_INT(weft_lstopo_numbers(" 1 OSDev:22\n3 4", 15, values, 3, &count), 0);
    CHECK_INT(count, 4);
    CHECK_INT(values[1], 22);
    CHECK_INT(weft_lstopo_numbers("1 x", 3, values, 3, &count), -EINVAL);
    CHECK_INT(weft_lstopo_numbers("-1", 2, values, 3, &count), -EINVAL);
    CHECK_INT(weft_lstopo_guid("ec0d:9a03:0049:a212"), (int64_t)0xec0d9a030049a212);
    CHECK_INT(weft_lstopo_guid("ec0d:9a03:0049"), 0);
}

static void cut_files(void)
{
    machine_read_cut(machine3);
    machine_read_cut(machine1);
    machine_read_cut(partitions);
    char text[sizeof(machine3)];
    (void)snprintf(text, sizeof(text), "%s", machine3);
    *strstr(text, "<distances2") = '\0';
    weft_auto(weft_machine_free) struct weft_machine *m = machine_read(text);
    if (m != NULL) {
        CHECK_INT(m->device_count, 4);
        CHECK(m->partial);
        machine_warned(m, "the matrices of links stand at its end");
    }
}

#define IN_MACHINE(inside)                                                                         \
    "<topology version=\"2.0\">\n<object type=\"Machine\">\n" inside "</object></topology>"
#define TWO_GPUS                                                                                   \
    PCI("3", "02:00.0", "0302 [10de:2330]", NVML("10", "nvml0"))                                   \
    PCI("4", "01:00.0", "0302 [10de:2330]", NVML("11", "nvml1"))
#define LINKS(attrs, indexes, values)                                                              \
    "<distances2 type=\"OSDev\" name=\"NVLinkBandwidth\" " attrs ">\n<indexes>" indexes            \
    "</indexes><u64values>" values "</u64values></distances2>\n"

static void refusals(void)
{
    machine_refused(IN_MACHINE(PCI("3", "02:00.0", "0302 [10de:2330]", NVML("10", "nvml0"))
                                   PCI("4", "01:00.0", "0302 [10de:2330]", NVML("11", "nvml0"))),
                    "t:4: GPU0 has the number or address of the one in line 3");
    machine_refused("<topology version=\"4.0\"/>",
                    "t:1: <topology version=\"4.0\">: formats 1 to 3");
    machine_refused(IN_MACHINE("<object type=\"OSDev\" osdev_type=\"1\"/>"),
                    "t:3: an OS device without a name");
    machine_refused(IN_MACHINE("<object/>"), "t:3: <object> without type");
    machine_refused(IN_MACHINE("<object type=\"PCIDev\" pci_busid=\"1\"/>"),
                    "t:3: pci_busid=\"1\" is not a PCI address");
    machine_refused(IN_MACHINE("<object type=\"PCIDev\" pci_busid=\"0000:01:00.0\"/>"),
                    "t:3: pci_type=\"\" is not");
    machine_refused(IN_MACHINE("<object type=\"PCIDev\" pci_busid=\"0000:01:00.0\" "
                               "pci_type=\"0302 [10de:zzzz]\"/>"),
                    "t:3: pci_type=\"0302 [10de:zzzz]\"");
    machine_refused(IN_MACHINE(TWO_GPUS LINKS("nbobjs=\"2\"", "10 11", "1 2 3")),
                    "t:5: the matrix of bandwidths needs 4 values");
    machine_refused(IN_MACHINE(TWO_GPUS LINKS("nbobjs=\"2\"", "10", "1 2 3 4")),
                    "t:5: the matrix of bandwidths needs 2 objects");
    machine_refused(IN_MACHINE(TWO_GPUS LINKS("nbobjs=\"2\"", "10 11", "1 2 3 x")),
                    "t:5: the matrix of bandwidths needs 4 values");
    machine_refused(IN_MACHINE(TWO_GPUS LINKS("nbobjs=\"9999\"", "10 11", "1 2 3 4")),
                    "t:5: nbobjs=\"9999\" is not a whole number from 0 to 1280");
    machine_refused(IN_MACHINE(TWO_GPUS LINKS("", "10 11", "1 2 3 4")),
                    "t:5: NVLinkBandwidth: nbobjs is missing");
    machine_refused(IN_MACHINE(TWO_GPUS LINKS("nbobjs=\"2\" indexing=\"os\"", "1 2", "1 2 3 4")),
                    "t:5: NVLinkBandwidth: indexing=\"os\"");
    machine_refused(IN_MACHINE(TWO_GPUS LINKS("nbobjs=\"2\"", "10 10", "1 2 3 4")),
                    "t:5: the matrix of bandwidths has GPU0 twice");
    machine_refused(
        IN_MACHINE(TWO_GPUS LINKS("nbobjs=\"2\"", "10 11", "0 9999999999999 9999999999999 0")),
        "t:5: a bandwidth of 9999999999999 MB/s");
}

static void out_of_memory(void)
{
    machine_read_out_of_memory(machine3);
    machine_read_out_of_memory(partitions);
}

WEFT_SUITE(machine_lstopo, {"devices and places", devices_and_places}, {"distances", distances},
           {"matrices of links", matrices_of_links}, {"format one", format_one},
           {"partitions of a GPU", partitions_of_a_gpu},
           {"machines without GPUs", machines_without_gpus}, {"several vendors", several_vendors},
           {"notations", notations}, {"cut files", cut_files}, {"refusals", refusals},
           {"out of memory", out_of_memory})
