/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded KFD topologies: archives, folders, choosing one of several, and what is refused. The
 * archives of tests/fixtures/kfd were made with GNU tar: two-machines (sites/alpha: two GPUs with
 * an xGMI link of 50,000 MB/s; sites/beta: three GPUs without links), long-* (alpha again, below
 * names of over 100 bytes, in the two forms that long names have), host (alpha with its PCI tree,
 * below hosts/host1, one properties file filled up to 4096 with NULs as tar does with sysfs). */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "pkg/base/file.h"
#include "pkg/machine/host.h"
#include "pkg/machine/machine.h"
#include "pkg/machine/read-kfd.h"
#include "pkg/machine/tar.h"
#include "tests/unit/fake_host.h"
#include "tests/unit/unit.h"

enum { ARCHIVE_MAX = 64 << 20 };

static struct weft_machine *load(const char *path)
{
    struct weft_machine *m = NULL;
    struct weft_error err = {0};
    if (weft_machine_load(path, &m, &err) < 0) {
        CHECK_STR(err.message, "");
    }
    return m;
}

static struct weft_machine *load_fixture(const char *name, const char *part)
{
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s%s", weft_fixture(name), part);
    return load(path);
}

static void expect_refused(const char *path, const char *message)
{
    struct weft_machine *m = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_machine_load(path, &m, &err), -EINVAL);
    CHECK(m == NULL);
    CHECK_CONTAINS(err.message, message);
}

static void check_alpha(const struct weft_machine *m)
{
    if (m != NULL && CHECK_INT(m->device_count, 2)) {
        CHECK_STR(m->vendor, "amd");
        CHECK_STR(m->devices[1].id, "0000:02:00.0");
        CHECK_INT(weft_machine_b(m, 0, 1), 50000);
        CHECK_INT(m->warning_count, 0);
        CHECK(!m->partial);
    }
}

static void one_of_several(void)
{
    weft_auto(weft_machine_free) struct weft_machine *alpha =
        load_fixture("kfd/two-machines.tar.gz", "#sites/alpha");
    check_alpha(alpha);
    weft_auto(weft_machine_free) struct weft_machine *beta =
        load_fixture("kfd/two-machines.tar.gz", "#/sites/beta/topology/");
    if (beta != NULL) {
        CHECK_INT(beta->device_count, 3);
        CHECK_INT(weft_machine_b(beta, 0, 1), 0);
    }
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s", weft_fixture("kfd/two-machines.tar.gz"));
    expect_refused(path, "2 KFD topologies are in it, choose one as FILE#FOLDER: "
                         "sites/alpha/topology, sites/beta/topology");
    (void)snprintf(path, sizeof(path), "%s#sites", weft_fixture("kfd/two-machines.tar.gz"));
    expect_refused(path, "\"sites\" names none or several of its KFD topologies: sites/alpha");
    (void)snprintf(path, sizeof(path), "%s#sites/al", weft_fixture("kfd/two-machines.tar.gz"));
    expect_refused(path, "\"sites/al\" names none");
    (void)snprintf(path, sizeof(path), "%s#part", weft_fixture("machine/flat-vm.txt"));
    expect_refused(path, "only an archive or a folder has parts, as #part");
}

static void long_names(void)
{
    weft_auto(weft_machine_free) struct weft_machine *pax = load_fixture("kfd/long-pax.tar.gz", "");
    check_alpha(pax);
    weft_auto(weft_machine_free) struct weft_machine *gnu = load_fixture("kfd/long-gnu.tar.gz", "");
    check_alpha(gnu);
}

static void with_the_pci_tree(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = load_fixture("kfd/host.tar.gz", "");
    check_alpha(m);
    if (m != NULL && m->device_count == 2) {
        CHECK_INT(m->devices[0].numa_node, 1);
        CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_PHB);
        CHECK_INT(m->devices[1].node_count, 2);
        CHECK_STR(m->devices[1].nodes[0], "/dev/dri/card2");
    }
}

/* The same machines as folders. */
static void folders(void)
{
    weft_auto(weft_host_free) struct weft_host *host = fake_host("kfd/mi210-2x4.txt");
    char dir[512];
    char path[1024];
    (void)snprintf(dir, sizeof(dir), "%s/kfd-folder", weft_test_dir());
    if (host == NULL || mkdir(dir, 0755) < 0 || !fake_host_write(host, dir)) {
        CU_FAIL("folder");
        return;
    }
    static const char *const ways[] = {"", "/sys/class/kfd", "/sys/class/kfd/kfd/topology",
                                       "/sys/devices/virtual/kfd/kfd/topology/"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(ways); i++) {
        (void)snprintf(path, sizeof(path), "%s%s", dir, ways[i]);
        if (i == 1) {
            expect_refused(path, "no KFD topology is in it"); /* a link out of that folder */
            continue;
        }
        weft_auto(weft_machine_free) struct weft_machine *m = load(path);
        CHECK(m != NULL && m->device_count == 8 && weft_machine_b(m, 4, 7) == 50000);
    }
    (void)snprintf(path, sizeof(path), "%s#sys", dir);
    weft_auto(weft_machine_free) struct weft_machine *picked = load(path);
    CHECK(picked != NULL && picked->device_count == 8);
}

static void archives_that_are_cut(void)
{
    size_t len = 0;
    weft_autofree char *packed = weft_fixture_text("kfd/host.tar.gz", &len);
    weft_autofree char *tar = NULL;
    size_t tar_len = 0;
    if (packed == NULL ||
        !CHECK_INT(weft_gunzip(packed, len, ARCHIVE_MAX, &tar, &tar_len, NULL), 0)) {
        return;
    }
    CHECK_INT(tar_len % 10240, 0); /* tar's record size */
    size_t whole = 0;
    size_t partial = 0;
    for (size_t n = 512; n <= tar_len; n += 256) {
        weft_auto(weft_machine_free) struct weft_machine *m = NULL;
        struct weft_error err = {0};
        const int rc = weft_kfd_read_archive(tar, n, "t", NULL, &m, &err);
        CHECK(rc == 0 || (rc == -EINVAL && err.message[0] != '\0'));
        if (rc == 0) {
            whole += !m->partial;
            partial += m->partial;
            CHECK(m->partial == (m->warning_count > 0));
            CHECK(m->device_count == 2 || m->partial);
        }
    }
    CHECK(whole > 0 && partial > 0);
    /* cut inside the gzip data: what was whole before counts */
    partial = 0;
    for (size_t n = len / 2; n < len; n++) {
        weft_auto(weft_machine_free) struct weft_machine *m = NULL;
        struct weft_error err = {0};
        const int rc = weft_kfd_read_archive(packed, n, "t", NULL, &m, &err);
        CHECK(rc == 0 || (rc == -EINVAL && err.message[0] != '\0'));
        partial += rc == 0 && m->partial;
    }
    CHECK(partial > 0);
}

static void archives_that_are_refused(void)
{
    size_t len = 0;
    weft_autofree char *packed = weft_fixture_text("kfd/two-machines.tar.gz", &len);
    weft_autofree char *tar = NULL;
    size_t tar_len = 0;
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    struct weft_error err = {0};
    if (packed == NULL || weft_gunzip(packed, len, ARCHIVE_MAX, &tar, &tar_len, NULL) != 0) {
        CU_FAIL("fixture");
        return;
    }
    tar[512] ^= 1; /* the second entry's name */
    CHECK_INT(weft_kfd_read_archive(tar, tar_len, "t", NULL, &m, &err), -EINVAL);
    CHECK_STR(err.message, "t: offset 512: not a tar header: its checksum is wrong");
    packed[len / 2] ^= 0x55;
    CHECK_INT(weft_kfd_read_archive(packed, len, "t", NULL, &m, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "the gzip data is damaged");
    /* a bomb is cut at the cap */
    weft_autofree char *out = NULL;
    size_t out_len = 0;
    packed[len / 2] ^= 0x55;
    CHECK_INT(weft_gunzip(packed, len, 1000, &out, &out_len, &err), -EFBIG);
    CHECK_CONTAINS(err.message, "unpacks to more than the cap of 1000 bytes");
    CHECK(out == NULL && m == NULL);
}

static void out_of_memory(void)
{
    size_t len = 0;
    weft_autofree char *packed = weft_fixture_text("kfd/host.tar.gz", &len);
    for (uint64_t nth = 1; packed != NULL && nth < 10000; nth++) {
        weft_auto(weft_machine_free) struct weft_machine *m = NULL;
        struct weft_error err = {0};
        (void)weft_mem_fail_after(nth);
        const int rc = weft_kfd_read_archive(packed, len, "t", NULL, &m, &err);
        (void)weft_mem_fail_after(0);
        if (rc == 0) {
            CHECK(nth > 100);
            break;
        }
        CHECK_INT(rc, -ENOMEM);
        CHECK(m == NULL && err.message[0] != '\0');
    }
}

/* ---- the public archives, where they are at hand ---- */

/* Each figure by: tar xzf FILE; find . -path '*io_links/<n>/properties' | xargs awk, counting
 * "type 11" links with max_bandwidth > 0 (each pair has two), and from simd_count > 0 in
 * nodes/<n>/properties; NUMA from the node_to of the "type 2" link to node 0 or 1. */
struct expected {
    const char *file;
    const char *refused; /* part of the message, NULL if it is read */
    size_t devices, parents, pairs, warnings, numa_0;
    uint64_t bandwidth; /* of each pair that has one */
    const char *first, *last, *model;
};

static const struct expected corpus[] = {
    {.file = "amd-kfd/debugfs-parsing.tar.gz", .refused = "no KFD topology is in it"},
    /* nodes 2-9; 24 links of 50,000 in two hives of four; 2-5 at CPU 0. 25344 = 0x6300: 63:00.0,
     * 41728 = 0xa300. Device 29711 = 0x740f */
    {.file = "amd-kfd/topo-mi210-xgmi-pcie.tar.gz",
     .devices = 8,
     .parents = 0,
     .pairs = 12,
     .numa_0 = 4,
     .bandwidth = 50000,
     .first = "0000:63:00.0",
     .last = "0000:a3:00.0",
     .model = "AMD Instinct MI210"},
    /* nodes 2-33, four a location: 8 GPUs of 4 partitions; 96 links of 819,200 (6 pairs in each
     * GPU); 896 "type 11" links without bandwidth; 2-17 at CPU 0. 2560 = 0x0a00; 51456 = 0xc900 in
     * domain 1. Device 29858 = 0x74a2 */
    {.file = "amd-kfd/topology-parsing-mi308.tar.gz",
     .devices = 32,
     .parents = 8,
     .pairs = 48,
     .warnings = 1,
     .numa_0 = 16,
     .bandwidth = 819200,
     .first = "0000:0a:00.0",
     .last = "0001:c9:00.0-p3",
     .model = "AMD Instinct MI308X"},
    /* its README: node 2 is a copy of node 1; location_id 6400 = 0x1900 in both */
    {.file = "amd-kfd/topology-parsing.tar.gz",
     .refused = "nodes 1 and 2 have one PCI address, 0000:19:00.0"},
};

static void check_figures(const struct expected *e, const struct weft_machine *m)
{
    size_t pairs = 0;
    size_t numa_0 = 0;
    int parents = -1;
    for (size_t i = 0; i < m->device_count; i++) {
        const struct weft_device *d = &m->devices[i];
        numa_0 += d->numa_node == 0;
        parents = d->parent > parents ? d->parent : parents;
        CHECK_STR(d->model, e->model);
        CHECK_STR(d->profile, e->parents > 0 ? "cpx" : "");
        for (size_t j = i + 1; j < m->device_count; j++) {
            pairs += weft_machine_b(m, i, j) > 0;
            CHECK(weft_machine_b(m, i, j) == 0 || weft_machine_b(m, i, j) == e->bandwidth);
        }
    }
    CHECK_INT(parents + 1, e->parents);
    CHECK_INT(pairs, e->pairs);
    CHECK_INT(numa_0, e->numa_0);
    CHECK_INT(m->warning_count, e->warnings);
    CHECK(!m->partial);
    CHECK_STR(m->devices[0].id, e->first);
    CHECK_STR(m->devices[m->device_count - 1].id, e->last);
}

static void public_archives(void)
{
    for (size_t i = 0; i < WEFT_ARRAY_LEN(corpus); i++) {
        const struct expected *e = &corpus[i];
        const char *path = weft_shared(e->file);
        if (path == NULL) {
            continue;
        }
        if (e->refused != NULL) {
            expect_refused(path, e->refused);
            continue;
        }
        weft_auto(weft_machine_free) struct weft_machine *m = load(path);
        if (m != NULL && CHECK_INT(m->device_count, e->devices)) {
            check_figures(e, m);
        }
    }
}

WEFT_SUITE(amd_recorded, {"one of several", one_of_several}, {"long names", long_names},
           {"with the PCI tree", with_the_pci_tree}, {"folders", folders},
           {"archives that are cut", archives_that_are_cut},
           {"archives that are refused", archives_that_are_refused},
           {"out of memory", out_of_memory}, {"public archives", public_archives})
