/* SPDX-License-Identifier: Apache-2.0 */
/* AMD machines from KFD topologies and sysfs. Expected values are worked out by hand from the
 * tables at the top of the fixtures (tests/fixtures/kfd). */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/file.h"
#include "pkg/machine/discover-sysfs.h"
#include "pkg/machine/host-internal.h"
#include "pkg/machine/kfd.h"
#include "pkg/machine/machine-internal.h"
#include "tests/unit/conform.h"
#include "tests/unit/fake_host.h"
#include "tests/unit/unit.h"

static int machine_of(const struct weft_host *host, struct weft_machine **ret_machine,
                      struct weft_error *err)
{
    weft_auto(weft_kfd_done) struct weft_kfd kfd = {0};
    const int rc = weft_kfd_read(host, WEFT_KFD_ROOT, "t", false, &kfd, err);
    return rc < 0 ? rc : weft_kfd_machine(host, &kfd, "t", ret_machine, err);
}

static struct weft_machine *machine(const struct weft_host *host)
{
    struct weft_machine *m = NULL;
    struct weft_error err = {0};
    if (host == NULL || machine_of(host, &m, &err) < 0) {
        CHECK_STR(err.message, "");
        CU_FAIL("no machine");
    }
    return m;
}

static struct weft_machine *machine_from_text(const char *text, struct weft_error *err)
{
    weft_auto(weft_host_free) struct weft_host *host = fake_host_text(text);
    struct weft_machine *m = NULL;
    *err = (struct weft_error){0};
    if (host != NULL) {
        weft_host_seal(host);
        CHECK((machine_of(host, &m, err) == 0) == (m != NULL));
    }
    return m;
}

/* Writes a fixture as a folder and gives its path; static storage. */
static const char *folder_of(const struct weft_host *host, const char *name)
{
    static char dir[512];
    (void)snprintf(dir, sizeof(dir), "%s/amd-%s", weft_test_dir(), name);
    const bool ok = host != NULL && mkdir(dir, 0755) == 0 && fake_host_write(host, dir);
    CHECK(ok);
    return ok ? dir : "/nonexistent";
}

static void reads_mi300x(void)
{
    weft_auto(weft_host_free) struct weft_host *host = fake_host("kfd/mi300x-8.txt");
    weft_auto(weft_machine_free) struct weft_machine *m = machine(host);
    if (m == NULL || !CHECK_INT(m->device_count, 8) || !CHECK_INT(m->nic_count, 3)) {
        return;
    }
    CHECK_STR(m->vendor, "amd");
    CHECK_STR(m->driver_version, "6.12.12");
    CHECK_INT(m->common_node_count, 1);
    CHECK_STR(m->common_nodes[0], "/dev/kfd");
    const struct weft_device *d = &m->devices[0];
    CHECK_STR(d->id, "0000:05:00.0");
    CHECK_STR(d->model, "AMD Instinct MI300X OAM");
    CHECK_STR(d->capability, "gfx942");
    CHECK_STR(d->profile, "");
    CHECK_INT(d->parent, -1);
    CHECK_INT(d->memory_mib, 196592); /* 206141652992 / 1048576 */
    CHECK_INT(d->pcie.generation, 5); /* its card's outer bridge */
    CHECK_INT(d->pcie.width, 16);
    if (CHECK_INT(d->node_count, 2)) {
        CHECK_STR(d->nodes[0], "/dev/dri/card1");
        CHECK_STR(d->nodes[1], "/dev/dri/renderD128");
    }
    CHECK_STR(m->devices[7].id, "0000:b5:00.0");
    CHECK_STR(m->devices[7].model, "AMD Instinct MI300X");
    CHECK_INT(m->devices[7].numa_node, 1);
    CHECK_INT(m->devices[7].socket, 1);
    for (size_t i = 0; i < 8; i++) {
        for (size_t j = 0; j < 8; j++) {
            CHECK_INT(weft_machine_b(m, i, j), i == j ? 0 : 64000);
        }
    }
    CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_PHB);
    CHECK_INT(weft_machine_t(m, 0, 2), WEFT_DISTANCE_NODE);
    CHECK_INT(weft_machine_t(m, 0, 4), WEFT_DISTANCE_SYS);
    CHECK_INT(weft_machine_n(m, 0, 0), WEFT_DISTANCE_PIX);
    CHECK_INT(weft_machine_n(m, 1, 1), WEFT_DISTANCE_PIX);
    CHECK_INT(weft_machine_n(m, 1, 0), WEFT_DISTANCE_PHB);
    CHECK_INT(weft_machine_n(m, 5, 2), WEFT_DISTANCE_NODE);
    CHECK_STR(m->nics[2].name, "rdma2");
    CHECK_INT(m->nics[2].rate_mbps, 400000);
    if (CHECK_INT(m->warning_count, 1)) {
        CHECK_CONTAINS(m->warnings[0], "0000:15:00.0: 3 uncorrectable memory errors");
    }
}

/* Small, as it is looked at once for each allocation: two GPUs with xGMI, and a NIC. */
static const char pair_text[] =
    "cpus 0 1 0\nnode 0 0-1\n"
    "pci pci0000:00/0000:00:01.0/0000:01:00.0 vendor=0x1002 class=0x120000 numa_node=0 "
    "driver=amdgpu drm=card0,renderD128\n"
    "pci pci0000:00/0000:00:02.0/0000:02:00.0 vendor=0x1002 class=0x120000 numa_node=0 "
    "driver=amdgpu drm=card1,renderD129\n"
    "pci pci0000:00/0000:00:03.0/0000:03:00.0 vendor=0x15b3 class=0x020700 numa_node=0\n"
    "rdma mlx5_0 pci0000:00/0000:00:03.0/0000:03:00.0 ports/1/link_layer=InfiniBand\n"
    "kfd 0 cpu_cores_count=2\n"
    "kfd 1 simd_count=8 vendor_id=4098 location_id=256 drm_render_minor=128\n"
    "kfd 2 simd_count=8 vendor_id=4098 location_id=512 drm_render_minor=129\n"
    "pair 1 2 type=11 weight=15 max_bandwidth=50000\n";

static void conforms(void)
{
    weft_auto(weft_host_free) struct weft_host *host = fake_host_text(pair_text);
    if (host == NULL) {
        return;
    }
    weft_host_seal(host);
    const struct conform_case c = {.backend = &weft_backend_amd,
                                   .options = {.host_root = folder_of(host, "conform")},
                                   .devices = 2};
    conform(&c);
}

static void reads_mi250x(void)
{
    /* the table of the fixture, in units of 50,000 MB/s */
    static const uint8_t links[8][8] = {{0, 4, 1, 0, 0, 0, 2, 0}, {4, 0, 0, 1, 0, 2, 0, 0},
                                        {1, 0, 0, 4, 2, 0, 0, 0}, {0, 1, 4, 0, 0, 0, 0, 2},
                                        {0, 0, 2, 0, 0, 4, 1, 0}, {0, 2, 0, 0, 4, 0, 0, 1},
                                        {2, 0, 0, 0, 1, 0, 0, 4}, {0, 0, 0, 2, 0, 1, 4, 0}};
    static const int numa[8] = {3, 3, 1, 1, 0, 0, 2, 2};
    weft_auto(weft_host_free) struct weft_host *host = fake_host("kfd/mi250x-8.txt");
    weft_auto(weft_machine_free) struct weft_machine *m = machine(host);
    if (m == NULL || !CHECK_INT(m->device_count, 8)) {
        return;
    }
    for (size_t i = 0; i < 8; i++) {
        CHECK_INT(m->devices[i].numa_node, numa[i]);
        CHECK_INT(m->devices[i].parent, -1);
        CHECK_STR(m->devices[i].capability, "gfx90a");
        for (size_t j = 0; j < 8; j++) {
            CHECK_INT(weft_machine_b(m, i, j), 50000 * links[i][j]);
            if (i != j) {
                CHECK_INT(weft_machine_t(m, i, j),
                          numa[i] == numa[j] ? WEFT_DISTANCE_NODE : WEFT_DISTANCE_SYS);
            }
        }
    }
    CHECK_STR(m->devices[1].id, "0000:c6:00.0");
    /* 28 pairs less the 12 with links, two directions each */
    if (CHECK_INT(m->warning_count, 1)) {
        CHECK_CONTAINS(m->warnings[0], "32 xGMI links are not direct");
    }
}

static void reads_two_hives(void)
{
    weft_auto(weft_host_free) struct weft_host *host = fake_host("kfd/mi210-2x4.txt");
    weft_auto(weft_machine_free) struct weft_machine *m = machine(host);
    if (m == NULL || !CHECK_INT(m->device_count, 8)) {
        return;
    }
    for (size_t i = 0; i < 8; i++) {
        CHECK_INT(m->devices[i].numa_node, i / 4);
        for (size_t j = 0; j < 8; j++) {
            CHECK_INT(weft_machine_b(m, i, j), i != j && i / 4 == j / 4 ? 50000 : 0);
        }
    }
    CHECK_STR(m->devices[0].model, "AMD Instinct MI210");
    CHECK_STR(m->devices[4].nodes[0], "/dev/dri/renderD132");
    CHECK_INT(m->warning_count, 0);
}

static bool add_partition(struct weft_host *host, int gpu, int part, const char *separator,
                          bool functions)
{
    const int render = 128 + 8 * gpu + part;
    const unsigned bus = 5 + 16 * (unsigned)gpu;
    bool ok = fake_host_line(
        host,
        "kfd %d gpu_id=%d simd_count=152 gfx_target_version=90402 vendor_id=4098 device_id=29857 "
        "location_id=%d drm_render_minor=%d hive_id=7 unique_id=%d num_xcc=1",
        2 + 8 * gpu + part, render, (int)bus * 256 + (functions ? part : 0), render, 100 + gpu);
    if (part == 0) {
        ok = ok && fake_host_line(host,
                                  "pci pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0 vendor=0x1002 "
                                  "class=0x120000 numa_node=%d driver=amdgpu drm=card%d,renderD%d "
                                  "current_compute_partition=CPX current_memory_partition=NPS4",
                                  bus - 5, bus - 5, bus, gpu / 4, render - 127, render);
    } else {
        ok = ok &&
             fake_host_line(host, "/sys/devices/platform/amdgpu_xcp%s%d/drm/renderD%d/uevent = ",
                            separator, 7 * gpu + part - 1, render);
        ok = ok && fake_host_line(host, "/sys/devices/platform/amdgpu_xcp%s%d/drm/card%d/uevent = ",
                                  separator, 7 * gpu + part - 1, render - 127);
    }
    return ok;
}

/* 8 GPUs in CPX: 64 partitions. The kernel tells the bandwidth inside a package only. */
static struct weft_host *cpx_host(const char *separator, bool functions)
{
    weft_auto(weft_host_free) struct weft_host *host =
        fake_host_text("kfd 0 cpu_cores_count=4\nkfd 1 cpu_cores_count=4\n"
                       "mesh 2 65 type=11 weight=41 max_bandwidth=0\n");
    for (int gpu = 0; gpu < 8; gpu++) {
        bool ok = host != NULL &&
                  fake_host_line(host, "mesh %d %d type=11 weight=13 max_bandwidth=819200",
                                 2 + 8 * gpu, 9 + 8 * gpu);
        for (int part = 0; ok && part < 8; part++) {
            ok = add_partition(host, gpu, part, separator, functions);
        }
        if (!ok) {
            return NULL;
        }
    }
    weft_host_seal(host);
    return weft_steal(&host);
}

static void check_cpx(const struct weft_machine *m, const char *last_id)
{
    if (m == NULL || !CHECK_INT(m->device_count, 64)) {
        return;
    }
    for (size_t i = 0; i < 64; i++) {
        const struct weft_device *d = &m->devices[i];
        CHECK_INT(d->parent, i / 8);
        CHECK_INT(d->partition, i % 8);
        CHECK_STR(d->profile, "cpx_nps4");
        CHECK_INT(d->bdf.bus, 5 + 16 * (i / 8));
        CHECK_INT(d->bdf.function, 0);
        CHECK_INT(d->numa_node, i / 32);
        CHECK_INT(d->node_count, 2);
        for (size_t j = 0; j < 64; j++) {
            CHECK_INT(weft_machine_b(m, i, j), i != j && i / 8 == j / 8 ? 819200 : 0);
            const int t = i / 8 == j / 8     ? WEFT_DISTANCE_PSB
                          : i / 32 == j / 32 ? WEFT_DISTANCE_NODE
                                             : WEFT_DISTANCE_SYS;
            CHECK_INT(weft_machine_t(m, i, j), t);
        }
    }
    CHECK_STR(m->devices[8].id, "0000:15:00.0");
    CHECK_STR(m->devices[8].nodes[0], "/dev/dri/card9");
    CHECK_STR(m->devices[8].nodes[1], "/dev/dri/renderD136");
    CHECK_STR(m->devices[63].id, last_id);
    CHECK_STR(m->devices[63].nodes[0], "/dev/dri/card64");
    CHECK_STR(m->devices[63].nodes[1], "/dev/dri/renderD191");
    /* 64 x 56 links between packages */
    if (CHECK_INT(m->warning_count, 1)) {
        CHECK_CONTAINS(m->warnings[0], "3584 xGMI links");
    }
}

static void reads_cpx(void)
{
    weft_auto(weft_host_free) struct weft_host *host = cpx_host("_", true);
    weft_auto(weft_machine_free) struct weft_machine *m = machine(host);
    check_cpx(m, "amdgpu_xcp_55");
    /* as other kernels name the platform devices, and with one function for all partitions */
    weft_auto(weft_host_free) struct weft_host *other = cpx_host(".", false);
    weft_auto(weft_machine_free) struct weft_machine *n = machine(other);
    check_cpx(n, "amdgpu_xcp.55");
}

static void recorded_partitions(void)
{
    /* the topology alone: no platform devices and no mode; 3 partitions of 2 dies each are TPX */
    struct weft_error err;
    weft_auto(weft_machine_free) struct weft_machine *m = machine_from_text(
        "kfd 0 cpu_cores_count=4\n"
        "kfd 1 simd_count=1 gfx_target_version=90402 location_id=256 num_xcc=2 unique_id=1\n"
        "kfd 2 simd_count=1 gfx_target_version=90402 location_id=256 num_xcc=2 unique_id=2\n"
        "kfd 3 simd_count=1 gfx_target_version=90402 location_id=256 num_xcc=2 unique_id=3\n"
        "kfd 4 simd_count=1 gfx_target_version=90402 location_id=512 num_xcc=6 unique_id=4\n",
        &err);
    if (m == NULL || !CHECK_INT(m->device_count, 4)) {
        return;
    }
    CHECK_STR(m->devices[0].id, "0000:01:00.0");
    CHECK_STR(m->devices[1].id, "0000:01:00.0-p1");
    CHECK_STR(m->devices[2].id, "0000:01:00.0-p2");
    CHECK_STR(m->devices[2].profile, "tpx");
    CHECK_INT(m->devices[2].parent, 0);
    CHECK_INT(m->devices[3].parent, -1);
    CHECK_INT(weft_machine_t(m, 0, 2), WEFT_DISTANCE_PSB);
    CHECK_INT(weft_machine_t(m, 0, 3), WEFT_DISTANCE_SYS);
}

/* An old kernel tells no bandwidth: direct links count alike, pairs of several hops not at all. */
static void links_without_bandwidth(void)
{
    struct weft_error err;
    weft_auto(weft_machine_free) struct weft_machine *m = machine_from_text(
        "kfd 1 simd_count=1 location_id=256 gfx_target_version=90006\n"
        "kfd 2 simd_count=1 location_id=512 gfx_target_version=90006\n"
        "kfd 3 simd_count=1 location_id=768 gfx_target_version=90006\n"
        "pair 1 2 type=11 weight=15\npair 2 3 type=11 weight=15\npair 1 3 type=11 weight=30\n",
        &err);
    if (m == NULL) {
        CU_FAIL("no machine");
        return;
    }
    CHECK_INT(weft_machine_b(m, 0, 1), WEFT_MACHINE_LINK_MBPS);
    CHECK_INT(weft_machine_b(m, 1, 2), WEFT_MACHINE_LINK_MBPS);
    CHECK_INT(weft_machine_b(m, 0, 2), 0);
    CHECK_INT(m->warning_count, 1);
}

static void uneven_links(void)
{
    struct weft_error err;
    weft_auto(weft_machine_free) struct weft_machine *m = machine_from_text(
        "kfd 1 simd_count=1 location_id=256\nkfd 2 simd_count=1 location_id=512\n"
        "kfd 3 simd_count=1 location_id=768\n"
        "link 1 io_links 0 type=11 node_from=1 node_to=2 weight=15 max_bandwidth=50000\n"
        "link 1 io_links 1 type=11 node_from=1 node_to=2 weight=15 max_bandwidth=50000\n"
        "link 2 io_links 0 type=11 node_from=2 node_to=1 weight=15 max_bandwidth=50000\n"
        "link 2 io_links 1 type=11 node_from=2 node_to=3 weight=15 max_bandwidth=50000\n",
        &err);
    if (m == NULL) {
        CU_FAIL("no machine");
        return;
    }
    CHECK_INT(weft_machine_b(m, 0, 1), 50000); /* 100,000 there, 50,000 back */
    CHECK_INT(weft_machine_b(m, 1, 2), 0);     /* nothing back */
    if (CHECK_INT(m->warning_count, 1)) {
        CHECK_CONTAINS(m->warnings[0], "2 pairs");
    }
}

static void refused_topologies(void)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"kfd 0 cpu_cores_count=x\n", "t: nodes/0/properties:1: cpu_cores_count is \"x\""},
        {"kfd 0 simd_count=4 location_id=99999999999\n",
         "t: nodes/0/properties:2: location_id is \"99999999999\""},
        {"kfd 0 simd_count=-1\n", "simd_count is \"-1\""},
        {"kfd 0 simd_count=1\nlink 0 io_links 3 type=11 node_from=0\n",
         "t: nodes/0/io_links/3: no"},
        {"kfd 0 simd_count=1\nlink 0 io_links 3 type=11 node_from=0 node_to=9999\n",
         "t: nodes/0/io_links/3/properties:3: node_to is \"9999\""},
        {"/etc/x = y\n", "t: the KFD topology's folder of nodes: No such file"},
        {"/sys/class/kfd/kfd/topology/nodes/x/properties = y\n", "t: the KFD topology has no node"},
        {"/sys/class/kfd/kfd/topology/nodes/0/gpu_id = 0\n", "t: nodes/0/properties: No such file"},
        /* one function cannot be two GPUs where it cannot be partitioned */
        {"kfd 1 simd_count=1 location_id=6400 unique_id=5 gfx_target_version=90010\n"
         "kfd 2 simd_count=1 location_id=6400 unique_id=6 gfx_target_version=90010\n",
         "t: nodes 1 and 2 have one PCI address, 0000:19:00.0"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        struct weft_error err;
        weft_auto(weft_machine_free) struct weft_machine *m = machine_from_text(rows[i].text, &err);
        CHECK(m == NULL);
        if (i == 3) {
            CHECK_CONTAINS(err.message, "there is no line with node_from and node_to");
        } else {
            CHECK_CONTAINS(err.message, rows[i].message);
        }
    }
}

static void links_that_are_missing(void)
{
    struct weft_error err;
    weft_auto(weft_machine_free) struct weft_machine *m = machine_from_text(
        "kfd 1 simd_count=1 location_id=256 io_links_count=2 p2p_links_count=1\n"
        "kfd 2 simd_count=1 location_id=512 io_links_count=1\npair 1 2 type=11 weight=15\n",
        &err);
    if (m == NULL) {
        CU_FAIL("no machine");
        return;
    }
    CHECK(m->partial);
    if (CHECK_INT(m->warning_count, 2)) {
        CHECK_CONTAINS(m->warnings[1], "2 links of 1 KFD nodes are not in the recording");
    }
}

/* As the device cgroup answers for GPUs that are not ours. */
static int read_but_not_node_3(const struct weft_host *host, const char *path, char *text,
                               size_t size)
{
    return strstr(path, "nodes/3/") != NULL ? -EPERM
                                            : weft_host_recorded_ops.read(host, path, text, size);
}

static void hidden_by_the_cgroup(void)
{
    weft_auto(weft_host_free) struct weft_host *host = fake_host("kfd/mi300x-8.txt");
    if (host == NULL) {
        return;
    }
    struct weft_host_ops ops = weft_host_recorded_ops;
    ops.read = read_but_not_node_3;
    host->ops = &ops;
    weft_auto(weft_machine_free) struct weft_machine *m = machine(host);
    if (m != NULL && CHECK_INT(m->device_count, 8)) {
        const struct weft_device *d = &m->devices[7]; /* behind those that can be seen */
        CHECK_STR(d->id, "0000:15:00.0");
        CHECK(!d->healthy);
        CHECK_CONTAINS(d->health_reason, "cgroup");
        CHECK_INT(weft_machine_b(m, 0, 7), 0);
        CHECK(m->devices[6].healthy);
    }
    host->ops = &weft_host_recorded_ops;
}

static void amdgpu_without_kfd(void)
{
    weft_auto(weft_host_free) struct weft_host *host =
        fake_host_text("/sys/module/amdgpu/version = 6.8\n"
                       "pci pci0000:00/0000:00:01.0/0000:01:00.0 vendor=0x1002 class=0x120000 "
                       "driver=amdgpu drm=card0,renderD128\n"
                       "pci pci0000:00/0000:00:02.0/0000:02:00.0 vendor=0x1002 class=0x120000 "
                       "driver=vfio-pci\n");
    if (host == NULL) {
        return;
    }
    weft_host_seal(host);
    const struct weft_backend_options options = {.host_root = folder_of(host, "no-kfd")};
    const struct conform_case c = {.backend = &weft_backend_amd, .options = options, .devices = 1};
    conform(&c);
    void *state = NULL;
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    if (CHECK_INT(weft_backend_amd.open(&options, &state, NULL), 0) &&
        CHECK_INT(weft_backend_amd.enumerate(state, &m, NULL), 0)) {
        CHECK_STR(m->devices[0].id, "0000:01:00.0");
        CHECK(!m->devices[0].healthy);
        CHECK_CONTAINS(m->devices[0].health_reason, "KFD");
    }
    weft_backend_amd.close(state);
}

static void remove_below(const char *dir, const char *path)
{
    static int removed;
    char from[1024];
    char to[1024];
    (void)snprintf(from, sizeof(from), "%s%s", dir, path);
    (void)snprintf(to, sizeof(to), "%s/removed-%d", dir, removed++);
    CHECK_INT(rename(from, to), 0);
}

static struct weft_machine *look_again(void *state, size_t devices)
{
    struct weft_machine *m = NULL;
    struct weft_error err = {0};
    if (weft_backend_amd.enumerate(state, &m, &err) < 0) {
        CHECK_STR(err.message, "");
        return NULL;
    }
    CHECK_INT(m->device_count, devices);
    return m;
}

static void a_gpu_that_fell_off_the_bus_is_unhealthy(void)
{
    weft_auto(weft_host_free) struct weft_host *host = fake_host("kfd/mi300x-8.txt");
    const struct weft_backend_options options = {.host_root = folder_of(host, "dead")};
    void *state = NULL;
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/0000:05:00.0/current_link_width",
                   options.host_root);
    if (!CHECK_INT(weft_backend_amd.open(&options, &state, NULL), 0)) {
        return;
    }
    CHECK_INT(weft_file_replace(path, "63\n", 3, 0600, NULL), 0);
    weft_auto(weft_machine_free) struct weft_machine *m = look_again(state, 8);
    for (size_t i = 0; m != NULL && i < m->device_count; i++) {
        CHECK_INT(m->devices[i].healthy, strcmp(m->devices[i].id, "0000:05:00.0") != 0);
    }
    CHECK_INT(weft_file_replace(path, "16\n", 3, 0600, NULL), 0);
    weft_auto(weft_machine_free) struct weft_machine *again = look_again(state, 8);
    for (size_t i = 0; again != NULL && i < again->device_count; i++) {
        CHECK(again->devices[i].healthy);
    }
    weft_backend_amd.close(state);
}

/* 0000:15:00.0 had three uncorrectable errors before anybody looked. */
static void new_memory_errors_are_a_fault_for_a_look(void)
{
    weft_auto(weft_host_free) struct weft_host *host = fake_host("kfd/mi300x-8.txt");
    const struct weft_backend_options options = {.host_root = folder_of(host, "errors")};
    static const struct {
        const char *errors, *reason;
    } looks[] = {
        {"ue: 3\nce: 0\n", ""},
        {"ue: 5\nce: 90\n", "2 new uncorrectable memory errors"},
        {"ue: 5\nce: 99\n", ""},
        {"ue: 0\nce: 0\n", ""}, /* the driver was loaded anew */
        {"ue: 1\nce: 0\n", "1 new uncorrectable memory errors"},
    };
    void *state = NULL;
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/0000:15:00.0/ras/umc_err_count",
                   options.host_root);
    if (!CHECK_INT(weft_backend_amd.open(&options, &state, NULL), 0)) {
        return;
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(looks); i++) {
        const char *errors = looks[i].errors;
        CHECK_INT(weft_file_replace(path, errors, strlen(errors), 0600, NULL), 0);
        weft_auto(weft_machine_free) struct weft_machine *m = look_again(state, 8);
        const size_t at = m != NULL ? weft_machine_find(m, "0000:15:00.0") : SIZE_MAX;
        for (size_t k = 0; at != SIZE_MAX && k < m->device_count; k++) {
            CHECK_STR(m->devices[k].health_reason, k == at ? looks[i].reason : "");
            CHECK_INT(m->devices[k].healthy, k != at || looks[i].reason[0] == '\0');
        }
    }
    weft_backend_amd.close(state);
}

static void a_lost_gpu_stays(void)
{
    weft_auto(weft_host_free) struct weft_host *host = fake_host("kfd/mi300x-8.txt");
    const struct weft_backend_options options = {.host_root = folder_of(host, "lost")};
    void *state = NULL;
    if (!CHECK_INT(weft_backend_amd.open(&options, &state, NULL), 0)) {
        return;
    }
    weft_auto(weft_machine_free) struct weft_machine *first = look_again(state, 8);
    remove_below(options.host_root, "/sys/devices/virtual/kfd/kfd/topology/nodes/2");
    remove_below(options.host_root, "/sys/bus/pci/devices/0000:05:00.0");
    weft_auto(weft_machine_free) struct weft_machine *second = look_again(state, 8);
    weft_auto(weft_machine_free) struct weft_machine *third = look_again(state, 8);
    if (first != NULL && second != NULL && third != NULL) {
        const struct weft_device *d = &second->devices[7];
        CHECK_STR(d->id, "0000:05:00.0");
        CHECK(!d->healthy && d->health_reason[0] != '\0');
        CHECK_INT(d->numa_node, 0);
        CHECK_INT(d->node_count, 2);
        CHECK_INT(weft_machine_b(second, 7, 0), 64000); /* its last wiring */
        CHECK_INT(weft_machine_t(second, 7, 0), WEFT_DISTANCE_PHB);
        CHECK_INT(weft_machine_n(second, 7, 0), WEFT_DISTANCE_PIX);
        CHECK_STR(second->devices[0].id, "0000:15:00.0");
        CHECK(second->devices[0].healthy);
        CHECK_INT(weft_machine_finish(second, NULL), 0);
        CHECK(weft_machine_equal(second, third));
    }
    weft_backend_amd.close(state);
}

/* A driver that does not let go of a GPU that was pulled out: its KFD node stays. */
static void a_gpu_without_its_function(void)
{
    static const char function[] = "/sys/bus/pci/devices/0000:05:00.0";
    char from[700], to[700];
    weft_auto(weft_host_free) struct weft_host *host = fake_host("kfd/mi300x-8.txt");
    const struct weft_backend_options options = {.host_root = folder_of(host, "pulled")};
    void *state = NULL;
    (void)snprintf(from, sizeof(from), "%s%s", options.host_root, function);
    (void)snprintf(to, sizeof(to), "%s/pulled", options.host_root);
    if (!CHECK_INT(weft_backend_amd.open(&options, &state, NULL), 0)) {
        return;
    }
    CHECK_INT(rename(from, to), 0);
    weft_auto(weft_machine_free) struct weft_machine *pulled = look_again(state, 8);
    CHECK_INT(rename(to, from), 0);
    weft_auto(weft_machine_free) struct weft_machine *back = look_again(state, 8);
    if (pulled != NULL && back != NULL) {
        CHECK_STR(pulled->devices[0].id, "0000:05:00.0");
        CHECK(!pulled->devices[0].healthy);
        CHECK_STR(pulled->devices[0].health_reason, "its PCI function is gone");
        CHECK(pulled->devices[1].healthy);
        CHECK(back->devices[0].healthy);
    }
    weft_backend_amd.close(state);
}

/* Partitions that were made anew are not lost ones. */
static void a_new_partition_mode(void)
{
    weft_auto(weft_host_free) struct weft_host *host = cpx_host("_", true);
    weft_auto(weft_machine_free) struct weft_machine *cpx = machine(host);
    weft_auto(weft_host_free) struct weft_host *whole = fake_host_text(
        "kfd 2 simd_count=1 location_id=1280 gfx_target_version=90402 drm_render_minor=128\n");
    if (whole == NULL || cpx == NULL) {
        return;
    }
    weft_host_seal(whole);
    weft_auto(weft_machine_free) struct weft_machine *spx = machine(whole);
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    weft_auto(weft_machine_free) struct weft_machine *again = NULL;
    if (spx != NULL && weft_machine_with_lost(spx, cpx, &m, NULL) == 0) {
        /* GPU 0 is whole now; the 56 partitions of the seven others are gone with their GPUs */
        CHECK_INT(m->device_count, 57);
        CHECK_INT(m->devices[1].parent, 0);
        CHECK_INT(m->devices[56].parent, 6);
        CHECK_INT(weft_machine_b(m, 1, 2), 819200);
        CHECK_INT(weft_machine_b(m, 1, 9), 0);
        CHECK_INT(weft_machine_finish(m, NULL), 0);
        CHECK_INT(weft_machine_with_lost(spx, m, &again, NULL), 0);
        CHECK(weft_machine_equal(m, again));
    }
}

static void out_of_memory(void)
{
    weft_auto(weft_host_free) struct weft_host *host = fake_host("kfd/mi210-2x4.txt");
    for (uint64_t nth = 1; host != NULL && nth < 10000; nth++) {
        weft_auto(weft_machine_free) struct weft_machine *m = NULL;
        struct weft_error err = {0};
        (void)weft_mem_fail_after(nth);
        const int rc = machine_of(host, &m, &err);
        (void)weft_mem_fail_after(0);
        if (rc == 0) {
            CHECK(nth > 50);
            break;
        }
        CHECK_INT(rc, -ENOMEM);
        CHECK(err.message[0] != '\0');
    }
}

WEFT_SUITE(amd, {"MI300X, a full mesh", reads_mi300x}, {"conforms", conforms},
           {"MI250X, two GCDs a card", reads_mi250x}, {"MI210, two hives", reads_two_hives},
           {"CPX, 64 partitions", reads_cpx}, {"recorded partitions", recorded_partitions},
           {"links without bandwidth", links_without_bandwidth}, {"uneven links", uneven_links},
           {"refused topologies", refused_topologies},
           {"links that are missing", links_that_are_missing},
           {"hidden by the cgroup", hidden_by_the_cgroup},
           {"amdgpu without KFD", amdgpu_without_kfd},
           {"a GPU that fell off the bus is unhealthy", a_gpu_that_fell_off_the_bus_is_unhealthy},
           {"new memory errors are a fault for a look", new_memory_errors_are_a_fault_for_a_look},
           {"a lost GPU stays", a_lost_gpu_stays},
           {"a GPU without its function", a_gpu_without_its_function},
           {"a new partition mode", a_new_partition_mode}, {"out of memory", out_of_memory})
