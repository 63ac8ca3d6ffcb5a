/* SPDX-License-Identifier: Apache-2.0 */
/* The NVIDIA backend on the mock of the driver's library: what it makes of each kind of machine.
 * Expected numbers come from the fixtures by hand; the sums stand beside them. */
#include <stdio.h>

#include "pkg/machine/discover-nvml.h"
#include "pkg/machine/host.h"
#include "tests/unit/conform.h"
#include "tests/unit/fake_host.h"
#include "tests/unit/nvml_world.h"
#include "tests/unit/unit.h"

#define GPU(n) "GPU-0000000" #n "-0000-4000-8000-00000000000" #n

static void an_hgx_machine_is_seen_whole(void)
{
    struct nvml_world w;
    nvml_world_up(&w, "hgx-h100-8.json", 8);
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m == NULL) {
        return;
    }
    CHECK_INT(m->device_count, 8);
    CHECK_STR(m->vendor, "nvidia");
    CHECK_STR(m->driver_version, "550.54.15");
    CHECK_STR(m->runtime_version, "12.4");
    CHECK_STR(m->clique, ""); /* a fabric of one machine: its cluster UUID is 0 */
    CHECK_INT(m->common_node_count, 2);
    CHECK_STR(m->common_nodes[0], "/dev/nvidiactl");
    const struct weft_device *d = &m->devices[5];
    CHECK_STR(d->id, GPU(5));
    CHECK_STR(d->model, "NVIDIA H100 80GB HBM3");
    CHECK_STR(d->capability, "9.0");
    CHECK_INT(d->memory_mib, 81559);
    CHECK_INT(d->bdf.bus, 0xc3);
    CHECK_INT(d->numa_node, 1);
    CHECK_INT(d->parent, -1);
    CHECK_INT(d->links_up, 18);
    CHECK_INT(d->links_total, 18);
    CHECK_INT(d->pcie.generation, 5);
    CHECK_INT(d->pcie.max_width, 16);
    CHECK(d->healthy);
    CHECK_INT(d->node_count, 1);
    CHECK_STR(d->node_count > 0 ? d->nodes[0] : "", "/dev/nvidia5");
    CHECK_INT(weft_machine_b(m, 0, 7), 18 * 26562);
    CHECK_INT(weft_machine_t(m, 0, 3), WEFT_DISTANCE_NODE);
    CHECK_INT(weft_machine_t(m, 0, 4), WEFT_DISTANCE_SYS);
}

static void links_that_are_down_weaken_all_pairs_of_their_gpu(void)
{
    struct nvml_world w;
    nvml_world_up(&w, "hgx-degraded.json", 8);
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m == NULL) {
        return;
    }
    CHECK_INT(m->devices[3].links_up, 12);
    CHECK_INT(m->devices[3].links_total, 18);
    CHECK(m->devices[3].healthy);
    CHECK_INT(weft_machine_b(m, 3, 0), 12 * 26562);
    CHECK_INT(weft_machine_b(m, 7, 3), 12 * 26562);
    CHECK_INT(weft_machine_b(m, 0, 7), 18 * 26562);
    CHECK(nvml_warns(m, "GPU 3: 12 of 18 NVLinks are up"));
}

static void direct_links_are_summed_for_each_pair(void)
{
    struct nvml_world w;
    nvml_world_up(&w, "dgx1v.json", 8);
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m == NULL) {
        return;
    }
    /* 04:2, 01:1, 25 none; 3-7 one */
    CHECK_INT(weft_machine_b(m, 0, 4), 2 * 25781);
    CHECK_INT(weft_machine_b(m, 0, 1), 25781);
    CHECK_INT(weft_machine_b(m, 2, 5), 0);
    CHECK_INT(weft_machine_b(m, 3, 7), 25781);
    CHECK_INT(m->devices[0].links_up, 6); /* 1 + 1 + 2 + 2 */
    CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_PIX);
    CHECK_INT(weft_machine_t(m, 0, 2), WEFT_DISTANCE_PHB);
    CHECK_INT(weft_machine_t(m, 0, 4), WEFT_DISTANCE_SYS);
    CHECK(!nvml_warns(m, "NVLink"));
}

static void the_weaker_direction_counts(void)
{
    struct nvml_world w;
    nvml_world_up(&w, "dgx1v.json", 8);
    nvml_world_edit(&w, "[2, 4]]", "[1, 4], [1, 4, \"down\"]]"); /* GPU 0's links to 4 */
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m != NULL) {
        CHECK_INT(weft_machine_b(m, 0, 4), 25781);
        CHECK_INT(weft_machine_b(m, 4, 0), 25781);
        CHECK(nvml_warns(m, "see each other differently"));
    }
}

static void sixteen_gpus_behind_switches(void)
{
    struct nvml_world w;
    nvml_world_up(&w, "dgx2.json", 16);
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m != NULL) {
        CHECK_INT(m->device_count, 16);
        CHECK_INT(weft_machine_b(m, 0, 15), 6 * 25781);
        CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_PIX);
        CHECK_INT(weft_machine_t(m, 0, 3), WEFT_DISTANCE_PXB);
        CHECK_INT(weft_machine_t(m, 15, 8), WEFT_DISTANCE_NODE);
    }
}

static void a_gb200_tray_has_a_clique_and_cpu_nodes(void)
{
    struct nvml_world w;
    nvml_world_up(&w, "gb200-tray.json", 4);
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m == NULL) {
        return;
    }
    CHECK_STR(m->clique, "5e1f0a3c-0000-0000-0000-00000000a001.32766");
    CHECK_STR(m->devices[3].clique, m->clique);
    CHECK_INT(weft_machine_b(m, 0, 3), 18 * 53125);
    CHECK_INT(m->devices[0].bdf.domain, 8);
    for (int i = 0; i < 4; i++) { /* affinity names the CPU's node and the GPU's own: 2 + 8 i */
        CHECK_INT(m->devices[i].numa_node, i / 2);
    }
}

static void a_clique_needs_a_finished_fabric_and_all_gpus(void)
{
    static const struct {
        const char *from, *to, *clique0, *warning;
        int b; /* between 0 and 1, in links */
    } rows[] = {
        {"\"state\": 3", "\"state\": 2", "", "registration is in progress", 18},
        {"\"status\": 0", "\"status\": 999", "", "registration failed", 18},
        {"\"minor\": 1,",
         "\"minor\": 1, \"fabric\": {\"state\": 3, \"status\": 0, \"clique\": 9, "
         "\"cluster\": \"5e1f0a3c00000000000000000000a001\"},",
         "5e1f0a3c-0000-0000-0000-00000000a001.32766", "not all in one NVLink clique", 0},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        struct nvml_world w;
        nvml_world_up(&w, "gb200-tray.json", 4);
        nvml_world_edit(&w, rows[i].from, rows[i].to);
        weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
        if (m != NULL) {
            CHECK_STR(m->clique, "");
            CHECK_STR(m->devices[0].clique, rows[i].clique0);
            CHECK(nvml_warns(m, rows[i].warning));
            CHECK_INT(weft_machine_b(m, 0, 1), rows[i].b * 53125);
            CHECK_INT(weft_machine_b(m, 0, 2), 18 * 53125);
        }
    }
}

/* Four PCIe switches, two a socket, each with two GPUs and a NIC: GPU 2 i and 2 i + 1 and NIC i. */
static void add_l40s_sysfs(const struct nvml_world *w)
{
    static const unsigned gpu_bus[4][2] = {{0x16, 0x17}, {0x38, 0x39}, {0x98, 0x99}, {0xb8, 0xb9}};
    weft_auto(weft_host_free) struct weft_host *host =
        fake_host_text("cpus 0 7 0\ncpus 8 15 1\nnode 0 0-7\nnode 1 8-15\n");
    for (unsigned i = 0; host != NULL && i < 4; i++) {
        char up[128];
        const unsigned node = i / 2, bus = gpu_bus[i][0] & 0xf0;
        (void)snprintf(up, sizeof(up), "pci pci0000:%02x/0000:%02x:01.0", bus, bus);
        fake_host_line(host, "%s vendor=0x8086 class=0x060400 numa_node=%u", up, node);
        (void)snprintf(up, sizeof(up), "pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0", bus, bus,
                       bus + 1);
        fake_host_line(host, "pci %s vendor=0x1000 class=0x060400 numa_node=%u", up, node);
        for (unsigned port = 0; port < 3; port++) {
            const unsigned end = port < 2 ? gpu_bus[i][port] : bus + 0xa;
            fake_host_line(host, "pci %s/0000:%02x:%02x.0 vendor=0x1000 class=0x060400", up,
                           bus + 2, port);
            fake_host_line(host,
                           "pci %s/0000:%02x:%02x.0/0000:%02x:00.0 vendor=0x%s class=0x%s "
                           "numa_node=%u",
                           up, bus + 2, port, end, port < 2 ? "10de" : "15b3",
                           port < 2 ? "030200" : "020700", node);
        }
        fake_host_line(host, "rdma mlx5_%u %s/0000:%02x:02.0/0000:%02x:00.0", i, up, bus + 2,
                       bus + 0xa);
    }
    weft_host_seal(host);
    CHECK(fake_host_write(host, w->root));
}

static void nics_and_sockets_come_from_the_host(void)
{
    struct nvml_world w;
    nvml_world_up(&w, "l40s-8.json", 8);
    add_l40s_sysfs(&w);
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m == NULL || !CHECK_INT(m->nic_count, 4)) {
        return;
    }
    for (size_t i = 0; i < 8; i++) {
        CHECK_INT(m->devices[i].numa_node, i / 4);
        CHECK_INT(m->devices[i].socket, i / 4);
        for (size_t n = 0; n < 4; n++) {
            CHECK_INT(weft_machine_n(m, i, n), n == i / 2       ? WEFT_DISTANCE_PIX
                                               : n / 2 == i / 4 ? WEFT_DISTANCE_NODE
                                                                : WEFT_DISTANCE_SYS);
        }
    }
    CHECK_INT(m->warning_count, 0);
}

/* Where the library cannot tell how far GPUs are apart, sysfs does. */
static void distances_come_from_sysfs_where_the_library_has_none(void)
{
    struct nvml_world w;
    nvml_world_up(&w, "l40s-8.json", 8);
    add_l40s_sysfs(&w);
    static const char *const gone[] = {"nvmlDeviceGetTopologyCommonAncestor",
                                       "nvmlDeviceGetMemoryAffinity", NULL};
    nvml_world_remove(&w, gone);
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m != NULL) {
        CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_PIX);
        CHECK_INT(weft_machine_t(m, 0, 3), WEFT_DISTANCE_NODE);
        CHECK_INT(weft_machine_t(m, 0, 4), WEFT_DISTANCE_SYS);
        CHECK_INT(m->devices[4].numa_node, 1);
    }
}

static void pcie_gpus_have_no_links(void)
{
    struct nvml_world w;
    nvml_world_up(&w, "l40s-8.json", 8);
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m != NULL) {
        CHECK_INT(m->devices[0].links_total, 0);
        CHECK_INT(weft_machine_b(m, 0, 1), 0);
        CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_PIX);
        CHECK_INT(m->devices[0].pcie.generation, 1); /* at rest */
        CHECK_INT(m->devices[0].pcie.max_generation, 4);
        CHECK(!nvml_warns(m, "NVLink"));
    }
}

static void peer_access_that_is_denied_is_no_bandwidth(void)
{
    struct nvml_world w;
    nvml_world_up(&w, "hgx-h100-8.json", 8);
    nvml_world_edit(&w, "\"minor\": 2,", "\"minor\": 2, \"p2p\": [0, 0, 0, 0, 0, 5, 0, 0],");
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m != NULL) {
        CHECK_INT(weft_machine_b(m, 2, 5), 0);
        CHECK_INT(weft_machine_b(m, 5, 2), 0);
        CHECK_INT(weft_machine_b(m, 2, 6), 18 * 26562);
    }
}

static void a_number_without_a_link_hides_none_behind_it(void)
{
    struct nvml_world w;
    nvml_world_up(&w, "hgx-h100-8.json", 8);
    nvml_world_edit(&w, "[[18, \"switch\"]]",
                    "[[6, \"switch\"], [2, 0, \"none\"], [6, \"switch\"]]");
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m != NULL) {
        CHECK_INT(m->devices[0].links_up, 12);
        CHECK_INT(m->devices[0].links_total, 12);
        CHECK_INT(weft_machine_b(m, 0, 1), 12 * 26562);
        CHECK(!nvml_warns(m, "NVLinks are up"));
    }
}

static void links_to_cpus_and_strangers_are_no_bandwidth(void)
{
    struct nvml_world w;
    nvml_world_up(&w, "hgx-h100-8.json", 8);
    nvml_world_edit(&w, "[[18, \"switch\"]]", "[[6, \"npu\"], [6, \"unknown\"]]");
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m != NULL) {
        CHECK_INT(m->devices[0].links_up, 12);
        CHECK_INT(weft_machine_b(m, 0, 1), 0);
    }
}

static void rates_of_different_origin_are_never_mixed(void)
{
    static const struct {
        const char *from, *to;
        uint64_t rate;
    } rows[] = {
        /* one GPU without a field value: all by version 6 (4.0), 25,000 */
        {"\"minor\": 2,", "\"minor\": 2, \"rate\": null,", 25000},
        {"\"version\": 6, \"rate\": 26562", "\"version\": 7", 50000},
        {"\"version\": 6, \"rate\": 26562", "\"version\": 1", 20000},
        /* no version and no field: flat */
        {"\"version\": 6, \"rate\": 26562", "\"version\": 99", 25000},
        {"\"version\": 6, \"rate\": 26562", "\"common_rate\": 26000", 26000},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        struct nvml_world w;
        nvml_world_up(&w, "hgx-h100-8.json", 8);
        nvml_world_edit(&w, rows[i].from, rows[i].to);
        weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
        if (m != NULL) {
            CHECK_INT(weft_machine_b(m, 2, 5), 18 * rows[i].rate);
            CHECK_INT(weft_machine_b(m, 0, 1), 18 * rows[i].rate);
            CHECK_INT(nvml_warns(m, "the rates of NVLinks are unknown"), i == 3);
        }
    }
}

/* ---- MIG ---- */

static void caps(struct nvml_world *w, const char *path, int minor)
{
    char text[64], whole[128];
    (void)snprintf(text, sizeof(text), "DeviceFileMinor: %d\nDeviceFileMode: 292\n", minor);
    (void)snprintf(whole, sizeof(whole), "/proc/driver/nvidia/capabilities/gpu0/mig/%s/access",
                   path);
    nvml_world_put(w, whole, text);
}

static void mig_world(struct nvml_world *w)
{
    nvml_world_up(w, "mig-mixed.json", 2);
    caps(w, "gi1", 12);
    caps(w, "gi1/ci0", 13);
    caps(w, "gi9", 84);
    caps(w, "gi9/ci0", 85);
}

static void mig_instances_are_devices_and_their_gpu_is_not(void)
{
    struct nvml_world w;
    mig_world(&w);
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m == NULL || !CHECK_INT(m->device_count, 4)) {
        return;
    }
    static const char *const profiles[] = {"3g.40gb", "1g.10gb", "1g.10gb", ""};
    static const char *const ids[] = {"MIG-00000010-0000-4000-8000-000000000010",
                                      "MIG-00000011-0000-4000-8000-000000000011",
                                      "MIG-00000012-0000-4000-8000-000000000012", GPU(1)};
    for (int i = 0; i < 4; i++) {
        CHECK_STR(m->devices[i].id, ids[i]);
        CHECK_STR(m->devices[i].profile, profiles[i]);
        CHECK_INT(m->devices[i].parent, i < 3 ? 0 : -1);
        CHECK_INT(m->devices[i].partition, i < 3 ? i : 0);
    }
    const struct weft_device *d = &m->devices[0];
    CHECK_INT(d->memory_mib, 40192);
    CHECK_INT(d->bdf.bus, 0x1b);
    if (CHECK_INT(d->node_count, 3)) {
        CHECK_STR(d->nodes[0], "/dev/nvidia0");
        CHECK_STR(d->nodes[1], "/dev/nvidia-caps/nvidia-cap12");
        CHECK_STR(d->nodes[2], "/dev/nvidia-caps/nvidia-cap13");
    }
    CHECK_INT(weft_machine_b(m, 0, 1), 0);
    CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_PSB);
    CHECK_INT(weft_machine_b(m, 0, 3), 0); /* no peer access with MIG on */
    CHECK_INT(weft_machine_t(m, 0, 3), WEFT_DISTANCE_NODE);
    CHECK(nvml_warns(m, "gi11/access does not tell its device node"));
    CHECK(m->devices[1].healthy && !m->devices[2].healthy); /* a container could not open it */
    CHECK_CONTAINS(m->devices[2].health_reason, "gi11/access names no node");
}

/* The runtime's name of an instance is "GPU:index" with NVML's index: another number would be
 * another instance. */
static void mig_indices_may_have_gaps(void)
{
    struct nvml_world w;
    mig_world(&w);
    nvml_world_edit(&w, "\"mig\": [", "\"mig\": [null,");
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m != NULL && CHECK_INT(m->device_count, 4)) {
        CHECK_STR(m->devices[0].id, "MIG-00000010-0000-4000-8000-000000000010");
        for (int i = 0; i < 3; i++) {
            CHECK_INT(m->devices[i].partition, i + 1);
        }
    }
}

static void a_gpu_with_mig_on_and_no_instance_is_named(void)
{
    struct nvml_world w;
    nvml_world_up(&w, "hgx-h100-8.json", 8);
    nvml_world_edit(&w, "\"minor\": 4,", "\"minor\": 4, \"mig\": [],");
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m != NULL) {
        CHECK_INT(m->device_count, 7);
        CHECK_INT(m->devices[4].index, 5);
        CHECK(nvml_warns(m, "GPU 4 is left out: MIG is on and it has no instance"));
        CHECK_INT(m->parent_count, 1);
        CHECK_INT(m->parents[0].index, 4);
    }
}

static void what_instances_have_of_their_gpu_is_told(void)
{
    struct nvml_world w;
    mig_world(&w);
    nvml_world_edit(&w, "\"slices\": [3, 4]",
                    "\"slices\": [3, 4], \"engines\": [42, 3, 2, 0, 1, 5]");
    weft_auto(weft_machine_free) struct weft_machine *m = nvml_world_look(&w);
    if (m == NULL || !CHECK_INT(m->device_count, 4) || !CHECK_INT(m->parent_count, 1)) {
        return;
    }
    const struct weft_slices *s = &m->devices[0].slices;
    CHECK_INT(s->compute, 3);
    CHECK_INT(s->gpu, 4);
    CHECK_INT(s->multiprocessors, 42);
    CHECK_INT(s->copy, 3);
    CHECK_INT(s->decoders, 2);
    CHECK_INT(s->encoders, 0);
    CHECK_INT(s->jpegs, 1);
    CHECK_INT(s->ofas, 5);
    CHECK_STR(m->parents[0].model, m->devices[0].model);
    CHECK(m->parents[0].memory_mib > m->devices[0].memory_mib);
    CHECK(!m->devices[0].partitionable && m->devices[3].partitionable);
    nvml_world_edit(&w, "\"minor\": 1,", "\"minor\": 1, \"mig\": false,");
    weft_auto(weft_machine_free) struct weft_machine *other = nvml_world_look(&w);
    CHECK(other != NULL && !other->devices[3].partitionable);
}

/* ---- what every backend holds ---- */

static void it_conforms(void)
{
    static const struct {
        const char *fixture;
        int nodes;
        size_t devices;
    } rows[] = {
        {"hgx-h100-8.json", 8, 8}, {"hgx-degraded.json", 8, 8}, {"mig-mixed.json", 2, 4},
        {"gb200-tray.json", 4, 4}, {"dgx1v.json", 8, 8},        {"dgx2.json", 16, 16},
        {"l40s-8.json", 8, 8},     {"gb10.json", 1, 1},         {"tegra.json", 1, 1},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        struct nvml_world w;
        nvml_world_up(&w, rows[i].fixture, rows[i].nodes);
        conform(&(struct conform_case){
            .backend = &weft_backend_nvml, .options = w.options, .devices = rows[i].devices});
    }
}

WEFT_SUITE(
    nvml, {"an HGX machine is seen whole", an_hgx_machine_is_seen_whole},
    {"links that are down weaken all pairs of their GPU",
     links_that_are_down_weaken_all_pairs_of_their_gpu},
    {"direct links are summed for each pair", direct_links_are_summed_for_each_pair},
    {"the weaker direction counts", the_weaker_direction_counts},
    {"sixteen GPUs behind switches", sixteen_gpus_behind_switches},
    {"a GB200 tray has a clique and CPU nodes", a_gb200_tray_has_a_clique_and_cpu_nodes},
    {"a clique needs a finished fabric and all GPUs",
     a_clique_needs_a_finished_fabric_and_all_gpus},
    {"PCIe GPUs have no links", pcie_gpus_have_no_links},
    {"NICs and sockets come from the host", nics_and_sockets_come_from_the_host},
    {"distances come from sysfs where the library has none",
     distances_come_from_sysfs_where_the_library_has_none},
    {"peer access that is denied is no bandwidth", peer_access_that_is_denied_is_no_bandwidth},
    {"a number without a link hides none behind it", a_number_without_a_link_hides_none_behind_it},
    {"links to CPUs and strangers are no bandwidth", links_to_cpus_and_strangers_are_no_bandwidth},
    {"rates of different origin are never mixed", rates_of_different_origin_are_never_mixed},
    {"MIG instances are devices and their GPU is not",
     mig_instances_are_devices_and_their_gpu_is_not},
    {"a GPU with MIG on and no instance is named", a_gpu_with_mig_on_and_no_instance_is_named},
    {"what instances have of their GPU is told", what_instances_have_of_their_gpu_is_told},
    {"MIG indices may have gaps", mig_indices_may_have_gaps}, {"it conforms", it_conforms})
