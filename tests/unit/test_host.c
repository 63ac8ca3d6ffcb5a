/* SPDX-License-Identifier: Apache-2.0 */
/* What weft takes from a host's sysfs: paths inside the root, PCI functions, T, NICs. Expected
 * values come from the drawing at the top of tests/fixtures/sysfs/two-sockets.txt. */
#include "pkg/machine/host.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/machine/host-internal.h"
#include "pkg/machine/machine-internal.h"
#include "tests/unit/fake_host.h"
#include "tests/unit/unit.h"

static struct weft_bdf bdf_of(const char *text)
{
    struct weft_bdf bdf = {0};
    if (weft_bdf_parse(text, &bdf) < 0) {
        CU_FAIL("a PCI address");
    }
    return bdf;
}

static struct weft_host_pci pci_of(const struct weft_host *host, const char *text)
{
    const struct weft_bdf bdf = bdf_of(text);
    struct weft_host_pci pci = {0};
    CHECK_INT(weft_host_pci(host, &bdf, &pci), 0);
    return pci;
}

static const char *resolved(const struct weft_host *host, const char *path)
{
    static char real[WEFT_HOST_PATH_MAX];
    const int rc = weft_host_resolve(host, path, real);
    return rc == 0 ? real : rc == -ELOOP ? "loop" : rc == -ENOENT ? "none" : "error";
}

static const char links_text[] = "/a/file = text\n"
                                 "/a/b/deep = x\n"
                                 "/abs -> /a/b\n"
                                 "/up -> ../../../../a\n"
                                 "/a/b/back -> ../file\n"
                                 "/loop1 -> loop2\n"
                                 "/loop2 -> /loop1\n"
                                 "/dead -> nowhere\n"
                                 "/chain -> abs/back\n";

static void check_links(const struct weft_host *host)
{
    CHECK_STR(resolved(host, "/a/file"), "/a/file");
    CHECK_STR(resolved(host, "/abs/deep"), "/a/b/deep");
    CHECK_STR(resolved(host, "/up/file"), "/a/file");
    CHECK_STR(resolved(host, "/a/b/back"), "/a/file");
    CHECK_STR(resolved(host, "/chain"), "/a/file");
    CHECK_STR(resolved(host, "/../../a/./b//deep"), "/a/b/deep");
    CHECK_STR(resolved(host, "/"), "");
    CHECK_STR(resolved(host, "/loop1"), "loop");
    CHECK_STR(resolved(host, "/dead"), "none");
    CHECK_STR(resolved(host, "/a/none"), "none");
    CHECK_STR(resolved(host, "relative"), "error");
    char text[16];
    CHECK_INT(weft_host_read(host, "/chain", text, sizeof(text)), 4);
    CHECK_STR(text, "text");
    CHECK_INT(weft_host_read(host, "/chain", text, 4), -EFBIG);
    CHECK_INT(weft_host_read(host, "/a", text, sizeof(text)), -EISDIR);
    CHECK_INT(weft_host_read(host, "/none", text, sizeof(text)), -ENOENT);
    weft_auto(weft_host_names_done) struct weft_host_names names = {0};
    CHECK_INT(weft_host_list(host, "/up", &names), 0);
    if (CHECK_INT(names.count, 2)) {
        CHECK_STR(names.names[0], "b");
        CHECK_STR(names.names[1], "file");
    }
    struct weft_host_names none = {0};
    CHECK_INT(weft_host_list(host, "/a/file", &none), -ENOTDIR);
    CHECK_INT(weft_host_list(host, "/none", &none), -ENOENT);
}

static void links_stay_inside(void)
{
    weft_auto(weft_host_free) struct weft_host *host = fake_host_text(links_text);
    if (host == NULL) {
        return;
    }
    weft_host_seal(host);
    check_links(host);

    char dir[512];
    (void)snprintf(dir, sizeof(dir), "%s/links", weft_test_dir());
    CHECK_INT(mkdir(dir, 0755), 0);
    weft_auto(weft_host_free) struct weft_host *folder = NULL;
    if (fake_host_write(host, dir) && weft_host_open(dir, &folder, NULL) == 0) {
        check_links(folder);
        /* as on a kernel that cannot follow links inside a root */
        struct weft_host_ops old = weft_host_folder_ops;
        old.read_unresolved = NULL;
        old.list_unresolved = NULL;
        folder->ops = &old;
        check_links(folder);
        folder->ops = &weft_host_folder_ops;
    }
    /* a pipe must not hold a reader up */
    char pipe_path[600];
    (void)snprintf(pipe_path, sizeof(pipe_path), "%s/pipe", dir);
    CHECK_INT(mkfifo(pipe_path, 0644), 0);
    char text[16];
    CHECK(folder != NULL && weft_host_read(folder, "/pipe", text, sizeof(text)) == 0);
}

static void roots_that_are_none(void)
{
    weft_auto(weft_host_free) struct weft_host *host = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_host_open("/nonexistent/root", &host, &err), -ENOENT);
    CHECK_CONTAINS(err.message, "/nonexistent/root");
    CHECK_INT(weft_host_open("/dev/null", &host, &err), -ENOTDIR);
    CHECK(host == NULL);
}

static void entries_that_are_refused(void)
{
    weft_auto(weft_host_free) struct weft_host *host = NULL;
    CHECK_INT(weft_host_new_recorded(&host), 0);
    static const char *const bad[] = {"a", "/", "", "/a/../b", "/a//b", "/a/.", "/a/"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(bad); i++) {
        CHECK_INT(weft_host_add_file(host, bad[i], "x", 1), -EINVAL);
        CHECK_INT(weft_host_add_link(host, bad[i], "x"), -EINVAL);
    }
    CHECK_INT(weft_host_add_link(host, "/a", ""), -EINVAL);
    /* of two entries with one path the later one counts */
    CHECK_INT(weft_host_add_file(host, "/a", "first", 5), 0);
    CHECK_INT(weft_host_add_file(host, "/a", "second", 6), 0);
    weft_host_seal(host);
    char text[16];
    CHECK_INT(weft_host_read(host, "/a", text, sizeof(text)), 6);
}

static void one_function(void)
{
    weft_auto(weft_host_free) struct weft_host *host = fake_host("sysfs/two-sockets.txt");
    if (host == NULL) {
        return;
    }
    struct weft_host_pci gpu = pci_of(host, "0000:03:00.0");
    CHECK_INT(gpu.vendor, 0x10de);
    CHECK_INT(gpu.device, 0x2330);
    CHECK_INT(gpu.class_code, 0x030200);
    CHECK_STR(gpu.driver, "nvidia");
    CHECK_INT(gpu.numa_node, 0);
    CHECK_INT(gpu.socket, 0);
    CHECK_INT(gpu.card, 1);
    CHECK_INT(gpu.render, 128);
    CHECK_INT(gpu.pcie.generation, 4);
    CHECK_INT(gpu.pcie.max_generation, 5);
    CHECK_INT(gpu.pcie.width, 16);
    CHECK_INT(gpu.pcie.max_width, 16);
    CHECK_INT(gpu.depth, 5); /* host bridge, root port, two ports of switch A, the GPU */
    CHECK(gpu.path[0].host_bridge);
    CHECK_INT(gpu.path[3].bdf.bus, 2);
    CHECK(!gpu.is_vf);
    gpu = pci_of(host, "0000:07:00.0"); /* as older kernels write it; 255 is "unknown" */
    CHECK_INT(gpu.pcie.generation, 1);
    CHECK_INT(gpu.pcie.max_generation, 3);
    CHECK_INT(gpu.pcie.width, 8);
    CHECK_INT(gpu.pcie.max_width, 0);
    CHECK_INT(gpu.card, -1);
    CHECK_INT(gpu.render, -1);
    gpu = pci_of(host, "0000:08:00.0");
    CHECK_INT(gpu.pcie.generation, 0);
    gpu = pci_of(host, "0000:81:00.0");
    CHECK_INT(gpu.numa_node, 1);
    CHECK_INT(gpu.socket, 1);
    CHECK(pci_of(host, "0000:04:00.2").is_vf);
    const struct weft_bdf none = bdf_of("0000:ff:00.0");
    CHECK_INT(weft_host_pci(host, &none, &gpu), -ENOENT);
    const struct weft_bdf unknown = {0};
    CHECK_INT(weft_host_pci(host, &unknown, &gpu), -EINVAL);
}

static void distances(void)
{
    weft_auto(weft_host_free) struct weft_host *host = fake_host("sysfs/two-sockets.txt");
    if (host == NULL) {
        return;
    }
    static const struct {
        const char *a, *b;
        int distance;
    } rows[] = {
        {"0000:03:00.0", "0000:03:00.0", WEFT_DISTANCE_PSB},
        {"0000:04:00.0", "0000:04:00.1", WEFT_DISTANCE_PSB},  /* two functions of one card */
        {"0000:07:00.0", "0000:08:00.0", WEFT_DISTANCE_PIX},  /* both below switch B */
        {"0000:03:00.0", "0000:04:00.0", WEFT_DISTANCE_PIX},  /* both below switch A */
        {"0000:03:00.0", "0000:07:00.0", WEFT_DISTANCE_PXB},  /* switch A, then switch B */
        {"0000:08:00.0", "0000:04:00.0", WEFT_DISTANCE_PXB},  /* likewise */
        {"0000:03:00.0", "0000:09:00.0", WEFT_DISTANCE_PHB},  /* two ports of one host bridge */
        {"0000:09:00.0", "0000:00:1f.6", WEFT_DISTANCE_PHB},  /* on the root bus itself */
        {"0000:09:00.0", "0000:21:00.0", WEFT_DISTANCE_NODE}, /* host bridges of one NUMA node */
        {"0000:09:00.0", "0000:81:00.0", WEFT_DISTANCE_SYS},
        {"0000:81:00.0", "0000:82:00.0", WEFT_DISTANCE_PHB},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        const struct weft_host_pci a = pci_of(host, rows[i].a);
        const struct weft_host_pci b = pci_of(host, rows[i].b);
        CHECK_INT(weft_host_distance(&a, &b), rows[i].distance);
        CHECK_INT(weft_host_distance(&b, &a), rows[i].distance);
    }
}

/* Chains that the big fixture does not have. */
static const char odd_text[] =
    /* no NUMA node known, different host bridges: unknown */
    "pci pci0000:00/0000:00:01.0/0000:01:00.0 vendor=0x10de numa_node=-1\n"
    "pci pci0000:40/0000:40:01.0/0000:41:00.0 vendor=0x10de numa_node=-1\n"
    /* two functions of the root bus with one device number are not one board */
    "pci pci0000:00/0000:00:05.0 vendor=0x10de\n"
    "pci pci0000:00/0000:00:05.1 vendor=0x10de\n"
    /* behind a platform device, as on Arm; a domain of 32 bits */
    "pci platform/3f00.pcie/pci0004:00/0004:00:00.0/0004:01:00.0 vendor=0x10de numa_node=1\n"
    "pci pci10000:e0/10000:e0:02.0/10000:e1:00.0 vendor=0x10de numa_node=1\n"
    /* an AMD card with its own switch: its outer port has the slot's link */
    "pci pci0000:60/0000:60:01.0/0000:61:00.0 vendor=0x1002 class=0x060400"
    " current_link_speed=\"16.0 GT/s PCIe\" current_link_width=8\n"
    "pci pci0000:60/0000:60:01.0/0000:61:00.0/0000:62:00.0 vendor=0x1002 class=0x060400"
    " current_link_speed=\"32.0 GT/s PCIe\" current_link_width=16\n"
    "pci pci0000:60/0000:60:01.0/0000:61:00.0/0000:62:00.0/0000:63:00.0 vendor=0x1002"
    " class=0x030000 current_link_speed=\"32.0 GT/s PCIe\" current_link_width=16\n"
    /* two such cards below one switch */
    "pci pci0000:70/0000:70:01.0/0000:71:00.0 vendor=0x1000 class=0x060400\n"
    "pci pci0000:70/0000:70:01.0/0000:71:00.0/0000:72:00.0/0000:73:00.0 vendor=0x1002\n"
    "pci pci0000:70/0000:70:01.0/0000:71:00.0/0000:72:00.0/0000:73:00.0/0000:74:00.0"
    " vendor=0x1002\n"
    "pci pci0000:70/0000:70:01.0/0000:71:00.0/0000:72:00.0/0000:73:00.0/0000:74:00.0/"
    "0000:75:00.0 vendor=0x1002\n"
    "pci pci0000:70/0000:70:01.0/0000:71:00.0/0000:72:01.0/0000:76:00.0 vendor=0x1002\n"
    "pci pci0000:70/0000:70:01.0/0000:71:00.0/0000:72:01.0/0000:76:00.0/0000:77:00.0"
    " vendor=0x1002\n"
    "pci pci0000:70/0000:70:01.0/0000:71:00.0/0000:72:01.0/0000:76:00.0/0000:77:00.0/"
    "0000:78:00.0 vendor=0x1002\n"
    /* two GPUs on one card, below the card's own switch */
    "pci pci0000:90/0000:90:01.0/0000:91:00.0 vendor=0x1002\n"
    "pci pci0000:90/0000:90:01.0/0000:91:00.0/0000:92:00.0/0000:93:00.0 vendor=0x1002\n"
    "pci pci0000:90/0000:90:01.0/0000:91:00.0/0000:92:01.0/0000:94:00.0 vendor=0x1002\n";

static void odd_chains(void)
{
    weft_auto(weft_host_free) struct weft_host *host = fake_host_text(odd_text);
    if (host == NULL) {
        return;
    }
    weft_host_seal(host);
    static const struct {
        const char *a, *b;
        int distance;
    } rows[] = {
        {"0000:01:00.0", "0000:41:00.0", WEFT_DISTANCE_UNKNOWN},
        {"0000:00:05.0", "0000:00:05.1", WEFT_DISTANCE_PHB},
        {"0004:01:00.0", "10000:e1:00.0", WEFT_DISTANCE_NODE},
        {"0000:75:00.0", "0000:78:00.0", WEFT_DISTANCE_PIX},
        {"0000:93:00.0", "0000:94:00.0", WEFT_DISTANCE_PSB},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        const struct weft_host_pci a = pci_of(host, rows[i].a);
        const struct weft_host_pci b = pci_of(host, rows[i].b);
        CHECK_INT(weft_host_distance(&a, &b), rows[i].distance);
    }
    const struct weft_host_pci card = pci_of(host, "0000:63:00.0");
    CHECK_INT(card.pcie.generation, 4);
    CHECK_INT(card.pcie.width, 8);
    CHECK_INT(card.numa_node, -1);
    CHECK_INT(card.socket, -1);
}

static void sockets(void)
{
    static const char text[] = "cpus 0 3 0\ncpus 4 7 1\nnode 0 0-1,4-5\nnode 1 2-3\nnode 2\n"
                               "pci pci0000:00/0000:00:01.0 numa_node=0\n"
                               "pci pci0000:00/0000:00:02.0 numa_node=1\n"
                               "pci pci0000:00/0000:00:03.0 numa_node=2\n"
                               "pci pci0000:00/0000:00:04.0 numa_node=-1 local_cpulist=4-7\n"
                               "pci pci0000:00/0000:00:05.0 numa_node=-1 local_cpulist=0-7\n";
    weft_auto(weft_host_free) struct weft_host *host = fake_host_text(text);
    if (host == NULL) {
        return;
    }
    weft_host_seal(host);
    CHECK_INT(pci_of(host, "0000:00:01.0").socket, -1); /* a node over two packages */
    CHECK_INT(pci_of(host, "0000:00:02.0").socket, 0);
    CHECK_INT(pci_of(host, "0000:00:03.0").socket, -1); /* a node without CPUs */
    CHECK_INT(pci_of(host, "0000:00:04.0").socket, 1);
    CHECK_INT(pci_of(host, "0000:00:05.0").socket, -1);
}

static void nics(void)
{
    weft_auto(weft_host_free) struct weft_host *host = fake_host("sysfs/two-sockets.txt");
    weft_autofree struct weft_nic *n = NULL;
    size_t count = 0;
    size_t left_out = 1;
    if (host == NULL || weft_host_nics(host, &n, &count, &left_out) < 0) {
        CU_FAIL("NICs");
        return;
    }
    CHECK_INT(left_out, 0);
    if (!CHECK_INT(count, 4)) {
        return;
    }
    char text[WEFT_BDF_TEXT_MAX];
    CHECK_STR(weft_bdf_format(&n[0].bdf, text), "0000:00:1f.6");
    CHECK_STR(n[0].name, "eno1");
    CHECK_STR(n[0].netdev, "eno1");
    CHECK_INT(n[0].rate_mbps, 1000);
    CHECK_INT(n[0].up, 1);
    CHECK_INT(n[0].layer, WEFT_NIC_LAYER_ETHERNET);
    CHECK_STR(weft_bdf_format(&n[1].bdf, text), "0000:04:00.0");
    CHECK_STR(n[1].name, "mlx5_0");
    CHECK_STR(n[1].netdev, "ens1f0np0");
    CHECK_INT(n[1].rate_mbps, 200000);
    CHECK_INT(n[1].layer, WEFT_NIC_LAYER_ETHERNET);
    CHECK(n[1].guid == UINT64_C(0x0c42a10300b4d3e2));
    CHECK_INT(n[1].numa_node, 0);
    CHECK_STR(n[2].name, "mlx5_1"); /* down: the rate that the driver shows is no link's */
    CHECK_INT(n[2].up, 0);
    CHECK_INT(n[2].rate_mbps, 0);
    CHECK_STR(n[3].name, "mlx5_3"); /* its second port is the active one */
    CHECK_STR(n[3].netdev, "ib0");
    CHECK_INT(n[3].layer, WEFT_NIC_LAYER_INFINIBAND);
    CHECK_INT(n[3].up, 1);
    CHECK_INT(n[3].rate_mbps, 2500);
    CHECK_INT(n[3].numa_node, 1);
}

static void set_bdfs(struct weft_machine *m, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        m->devices[i].bdf = bdf_of(texts[i]);
        (void)snprintf(m->devices[i].id, sizeof(m->devices[i].id), "gpu-%zu", i);
    }
}

static void wires_a_machine(void)
{
    static const char *const bdfs[] = {"0000:03:00.0", "0000:07:00.0", "0000:81:00.0",
                                       "0000:ff:00.0"};
    weft_auto(weft_host_free) struct weft_host *host = fake_host("sysfs/two-sockets.txt");
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    if (host == NULL || weft_host_machine(host, "t", 4, &m, NULL) < 0) {
        CU_FAIL("machine");
        return;
    }
    set_bdfs(m, bdfs, WEFT_ARRAY_LEN(bdfs));
    m->bandwidth[1] = m->bandwidth[4] = 50000;
    CHECK_INT(weft_host_wire(host, m, NULL), 0);
    CHECK_INT(m->nic_count, 4);
    CHECK_INT(weft_machine_b(m, 0, 1), 50000);
    CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_PXB);
    CHECK_INT(weft_machine_t(m, 0, 2), WEFT_DISTANCE_SYS);
    CHECK_INT(weft_machine_t(m, 0, 3), WEFT_DISTANCE_SYS);
    CHECK_INT(weft_machine_n(m, 0, 1), WEFT_DISTANCE_PIX);
    CHECK_INT(weft_machine_n(m, 1, 1), WEFT_DISTANCE_PXB);
    CHECK_INT(weft_machine_n(m, 2, 1), WEFT_DISTANCE_SYS);
    CHECK_INT(weft_machine_n(m, 2, 3), WEFT_DISTANCE_PHB);
    CHECK_STR(m->devices[2].numa_label, "1");
    CHECK_INT(m->devices[2].numa_group, 1);
    CHECK_INT(m->devices[2].socket, 1);
    CHECK_INT(m->devices[0].pcie.max_generation, 5);
    CHECK_INT(m->devices[3].numa_node, -1);
    CHECK_INT(m->devices[3].numa_group, -1);
    if (CHECK_INT(m->warning_count, 1)) {
        CHECK_CONTAINS(m->warnings[0], "gpu-3");
    }
    CHECK_INT(weft_machine_finish(m, NULL), 0);
}

/* A folder and a tree in memory give the same answers. */
static void folder_and_memory_agree(void)
{
    weft_auto(weft_host_free) struct weft_host *memory = fake_host("sysfs/two-sockets.txt");
    weft_auto(weft_host_free) struct weft_host *folder = NULL;
    char dir[512];
    (void)snprintf(dir, sizeof(dir), "%s/two-sockets", weft_test_dir());
    if (memory == NULL || mkdir(dir, 0755) < 0 || !fake_host_write(memory, dir) ||
        weft_host_open(dir, &folder, NULL) < 0) {
        CU_FAIL("folder");
        return;
    }
    weft_autofree struct weft_host_pci *a = NULL;
    weft_autofree struct weft_host_pci *b = NULL;
    size_t a_count = 0;
    size_t b_count = 0;
    CHECK_INT(weft_host_find_gpus(memory, 0x10de, &a, &a_count), 0);
    CHECK_INT(weft_host_find_gpus(folder, 0x10de, &b, &b_count), 0);
    CHECK_INT(a_count, 6);
    if (CHECK_INT(b_count, 6)) {
        CHECK(memcmp(a, b, a_count * sizeof(*a)) == 0);
    }
    weft_autofree struct weft_nic *an = NULL;
    weft_autofree struct weft_nic *bn = NULL;
    size_t left_out = 0;
    CHECK_INT(weft_host_nics(memory, &an, &a_count, &left_out), 0);
    CHECK_INT(weft_host_nics(folder, &bn, &b_count, &left_out), 0);
    CHECK(a_count == b_count && memcmp(an, bn, a_count * sizeof(*an)) == 0);
}

static void hosts_without_anything(void)
{
    weft_auto(weft_host_free) struct weft_host *host = fake_host_text("/etc/hostname = x\n");
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    weft_autofree struct weft_host_pci *gpus = NULL;
    size_t count = 1;
    if (host == NULL) {
        return;
    }
    weft_host_seal(host);
    CHECK_INT(weft_host_find_gpus(host, 0x1002, &gpus, &count), 0);
    CHECK_INT(count, 0);
    CHECK_INT(weft_host_machine(host, "t", 0, &m, NULL), 0);
    CHECK(m != NULL && m->nic_count == 0 && weft_host_wire(host, m, NULL) == 0);
}

static int wire_once(const struct weft_host *host)
{
    static const char *const bdfs[] = {"0000:03:00.0", "0000:07:00.0"};
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    const int rc = weft_host_machine(host, "t", 2, &m, NULL);
    if (rc < 0) {
        return rc;
    }
    set_bdfs(m, bdfs, WEFT_ARRAY_LEN(bdfs));
    return weft_host_wire(host, m, NULL);
}

static void out_of_memory(void)
{
    weft_auto(weft_host_free) struct weft_host *host = fake_host("sysfs/two-sockets.txt");
    for (uint64_t nth = 1; host != NULL && nth < 10000; nth++) {
        (void)weft_mem_fail_after(nth);
        const int rc = wire_once(host);
        (void)weft_mem_fail_after(0);
        if (rc == 0) {
            CHECK(nth > 20);
            break;
        }
        CHECK_INT(rc, -ENOMEM);
    }
    for (uint64_t nth = 1; nth < 100; nth++) {
        (void)weft_mem_fail_after(nth);
        weft_auto(weft_host_free) struct weft_host *built = NULL;
        int rc = weft_host_new_recorded(&built);
        rc = rc == 0 ? weft_host_add_file(built, "/a", "b", 1) : rc;
        rc = rc == 0 ? weft_host_add_link(built, "/c", "a") : rc;
        (void)weft_mem_fail_after(0);
        if (rc == 0) {
            CHECK(nth > 4);
            break;
        }
        CHECK_INT(rc, -ENOMEM);
    }
}

WEFT_SUITE(host, {"links stay inside the root", links_stay_inside},
           {"roots that are none", roots_that_are_none},
           {"entries that are refused", entries_that_are_refused}, {"one function", one_function},
           {"distances", distances}, {"odd chains", odd_chains}, {"sockets", sockets},
           {"NICs", nics}, {"wires a machine", wires_a_machine},
           {"a folder and a tree in memory agree", folder_and_memory_agree},
           {"hosts without anything", hosts_without_anything}, {"out of memory", out_of_memory})
