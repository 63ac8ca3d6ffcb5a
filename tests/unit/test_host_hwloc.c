/* SPDX-License-Identifier: Apache-2.0 */
/* weft's reading of a host against hwloc's, function by function: our own trees, recorded ones, and
 * the machine that the test runs on. Where the two may differ, and why:
 *   numa_node -1     hwloc guesses the node from local_cpus, and on a host of one node it is that
 *                    one; to weft it is unknown, as to the kernel
 *   locality         hwloc has one for each root bus, that of the first function on it; weft has
 *                    each function's own numa_node
 *   T                follows from these where two host bridges are apart: NODE, SYS or unknown
 *   NICs             hwloc hangs a USB adapter below its controller and every virtual function's
 *                    devices below that; weft's NICs are physical functions that are one themselves
 * Everything else has to agree. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "pkg/machine/host-internal.h"
#include "pkg/machine/machine-internal.h"
#include "tests/unit/hwloc_judge.h"
#include "tests/unit/hwloc_tree.h"
#include "tests/unit/proc.h"
#include "tests/unit/unit.h"

enum {
    PCIS_MAX = 4096,
    PATH_TEXT_MAX = 1024,
    TAR_MS = 60000,
    CLASS_NETWORK = 0x02,
};

/* ---- weft's side ---- */

struct reading {
    struct weft_host *host;
    struct weft_host_pci *pcis;
    const struct judge_function **judged; /* beside each, NULL if hwloc does not see it */
    size_t count;
    struct judge *judge;
};

static void reading_done(struct reading *r)
{
    weft_host_free(r->host);
    judge_free(r->judge);
    weft_free(r->pcis);
    weft_free(r->judged);
}
WEFT_DEFINE_AUTO_VALUE(struct reading, reading_done)

/* root as weft takes it ("/" for this machine). */
static bool read_both(const char *root, struct reading *r)
{
    const bool live = strcmp(root, "/") == 0;
    r->pcis = weft_calloc(PCIS_MAX, sizeof(*r->pcis));
    r->judged = weft_calloc(PCIS_MAX, sizeof(struct judge_function *));
    struct weft_error err = {0};
    if (r->pcis == NULL || r->judged == NULL || weft_host_open(root, &r->host, &err) < 0) {
        CHECK_STR(err.message, "");
        return false;
    }
    r->judge = judge_new(live ? NULL : root);
    if (r->judge == NULL) {
        return false;
    }
    r->count = hwloc_tree_functions(r->host, r->pcis, PCIS_MAX);
    for (size_t i = 0; i < r->count; i++) {
        r->judged[i] = judge_find(r->judge, &r->pcis[i].bdf);
    }
    return true;
}

static void say(const struct reading *r, size_t i, const char *what, int ours, int theirs)
{
    char text[WEFT_BDF_TEXT_MAX];
    (void)fprintf(stderr, "  %s: %s: weft %d, hwloc %d\n", weft_bdf_format(&r->pcis[i].bdf, text),
                  what, ours, theirs);
}

/* ---- functions ---- */

/* The first function of i's root bus that hwloc sees: its locality is the whole bus's to hwloc. */
static size_t first_of_bus(const struct reading *r, size_t i)
{
    const struct weft_host_pci *pci = &r->pcis[i];
    for (size_t k = 0; k < r->count; k++) {
        const struct weft_host_pci *other = &r->pcis[k];
        if (r->judged[k] != NULL && other->depth == 2 && pci->depth >= 2 &&
            weft_bdf_cmp(&other->path[0].bdf, &pci->path[0].bdf) == 0) {
            return k;
        }
    }
    return i;
}

static bool locality_agrees(const struct reading *r, size_t i, int ours, int theirs, int first)
{
    return ours == theirs || r->pcis[i].numa_node < 0 || /* unknown: hwloc guesses */
           first == theirs;
}

static void check_function(const struct reading *r, size_t i)
{
    const struct weft_host_pci *pci = &r->pcis[i];
    const struct judge_function *f = r->judged[i];
    const struct weft_host_pci *first = &r->pcis[first_of_bus(r, i)];
    bool same = CHECK_INT(pci->vendor, f->vendor);
    same = CHECK_INT(pci->device, f->device) && same;
    same = CHECK_INT(pci->class_code >> 8, f->class_id) && same;
    const bool node = locality_agrees(r, i, pci->numa_node, f->numa_node, first->numa_node);
    const bool package = locality_agrees(r, i, pci->socket, f->package, first->socket);
    CHECK(node);
    CHECK(package);
    if (!same || !node || !package) {
        say(r, i, "NUMA node", pci->numa_node, f->numa_node);
        say(r, i, "package", pci->socket, f->package);
    }
}

/* Neither sees a function that the other does not. */
static void check_functions(const struct reading *r)
{
    size_t both = 0;
    for (size_t i = 0; i < r->count; i++) {
        /* hwloc 2.9 has 16 bits for a domain; Intel VMD's begin above */
        const bool seen = r->judged[i] != NULL || r->pcis[i].bdf.domain > UINT16_MAX;
        if (!CHECK_INT(seen, true)) {
            say(r, i, "seen", 1, 0);
        } else if (r->judged[i] != NULL) {
            both++;
            check_function(r, i);
        }
    }
    CHECK_INT(judge_count(r->judge), both);
}

/* ---- T ---- */

/* What T of two functions below different host bridges may be. */
static bool is_apart(int distance)
{
    return distance == WEFT_DISTANCE_NODE || distance == WEFT_DISTANCE_SYS ||
           distance == WEFT_DISTANCE_UNKNOWN;
}

static bool same_nodes(const struct reading *r, size_t i)
{
    return r->pcis[i].numa_node == r->judged[i]->numa_node;
}

static void check_distances(const struct reading *r)
{
    size_t wrong = 0;
    for (size_t i = 0; i < r->count; i++) {
        for (size_t k = i + 1; k < r->count && r->judged[i] != NULL; k++) {
            if (r->judged[k] == NULL) {
                continue;
            }
            const int ours = weft_host_distance(&r->pcis[i], &r->pcis[k]);
            const int theirs = judge_distance(r->judged[i], r->judged[k]);
            const bool node_known = same_nodes(r, i) && same_nodes(r, k);
            if (ours != theirs && (node_known || !is_apart(ours) || !is_apart(theirs))) {
                say(r, i, "T, to the next line's", ours, theirs);
                say(r, k, "T", ours, theirs);
                wrong++;
            }
        }
    }
    CHECK_INT(wrong, 0);
}

/* ---- NICs ---- */

static const struct weft_nic *find_nic(const struct weft_nic *nics, size_t count,
                                       const struct weft_bdf *bdf)
{
    for (size_t i = 0; i < count; i++) {
        if (weft_bdf_cmp(&nics[i].bdf, bdf) == 0) {
            return &nics[i];
        }
    }
    return NULL;
}

static void check_nic(const struct reading *r, const struct weft_nic *nic)
{
    const struct judge_function *f = judge_find(r->judge, &nic->bdf);
    if (!CHECK_INT(f != NULL, true)) {
        return;
    }
    CHECK(nic->netdev[0] == '\0' || judge_has_device(f, false, nic->netdev));
    CHECK(strcmp(nic->name, nic->netdev) == 0 || judge_has_device(f, true, nic->name));
    CHECK(f->rdma == (strcmp(nic->name, nic->netdev) != 0 || judge_has_device(f, true, nic->name)));
}

/* *ret_vfs: virtual functions with devices of their own, none of them a NIC. */
static void check_nics(const struct reading *r, size_t *ret_nics, size_t *ret_vfs)
{
    weft_autofree struct weft_nic *nics = NULL;
    size_t left_out = 0;
    *ret_nics = *ret_vfs = 0;
    if (!CHECK_INT(weft_host_nics(r->host, &nics, ret_nics, &left_out), 0)) {
        return;
    }
    for (size_t i = 0; i < *ret_nics; i++) {
        check_nic(r, &nics[i]);
    }
    for (size_t i = 0; i < r->count; i++) {
        const struct judge_function *f = r->judged[i];
        const bool is_nic = find_nic(nics, *ret_nics, &r->pcis[i].bdf) != NULL;
        CHECK(!is_nic || !r->pcis[i].is_vf);
        *ret_vfs += f != NULL && r->pcis[i].is_vf && (f->net || f->rdma);
        if (f != NULL && (f->rdma || (f->net && f->class_id >> 8 == CLASS_NETWORK)) &&
            !CHECK_INT(is_nic || r->pcis[i].is_vf || left_out > 0, true)) {
            say(r, i, "NIC", is_nic, 1);
        }
    }
}

/* ---- trees of our own ---- */

struct expected {
    const char *name;
    size_t functions, nics, vfs;
};

static void check_tree(const char *root, const struct expected *want)
{
    weft_auto(reading_done) struct reading r = {0};
    size_t nics = 0;
    size_t vfs = 0;
    if (!read_both(root, &r)) {
        return;
    }
    check_functions(&r);
    check_distances(&r);
    check_nics(&r, &nics, &vfs);
    if (want != NULL) {
        CHECK_INT(r.count, want->functions);
        CHECK_INT(nics, want->nics);
        CHECK_INT(vfs, want->vfs);
    }
}

/* Functions: the pci lines (awk '{print $2}') and each bridge that only a chain names. NICs: RDMA
 * and net devices by their function, without virtual functions and USB. */
static const struct expected own[] = {
    {"sysfs/two-sockets.txt", 26, 4, 1},
    {"sysfs/intel.txt", 19, 0, 0},
    {"sysfs/mthreads.txt", 16, 0, 0},
    {"kfd/mi300x-8.txt", 32, 3, 0},
};

static void own_trees(void)
{
    for (size_t i = 0; i < WEFT_ARRAY_LEN(own); i++) {
        char dir[PATH_TEXT_MAX];
        (void)snprintf(dir, sizeof(dir), "%s/hwloc-own-%zu", weft_test_dir(), i);
        if (CHECK_INT(hwloc_tree_write(own[i].name, dir), true)) {
            check_tree(dir, &own[i]);
        }
    }
}

/* ---- recorded trees ---- */

/* What either reads, of ten times as many files. tar ends with 2 where an archive has none of one
 * pattern; the counts of recorded[] say that enough came out. */
static bool unpack(const char *archive, const char *dir)
{
    struct proc tar = {0};
    const char *const argv[] = {"/usr/bin/env",
                                "tar",
                                "xjf",
                                archive,
                                "-C",
                                dir,
                                "--strip-components=1",
                                "--no-same-owner",
                                "--exclude=cache",
                                "--exclude=power",
                                "--exclude=virtual",
                                "--exclude=proc",
                                "--wildcards",
                                "*/bus/pci/devices/*",
                                "*/class/net/*",
                                "*/class/infiniband/*",
                                "*/sys/devices/pci*/net/*/type",
                                "*/sys/devices/pci*/infiniband/*",
                                "*/sys/devices/pci*/vendor",
                                "*/sys/devices/pci*/device",
                                "*/sys/devices/pci*/class",
                                "*/sys/devices/pci*/config",
                                "*/numa_node",
                                "*/local_cpu*",
                                "*/cpumap",
                                "*/cpulist",
                                "*/topology/core_id",
                                "*/topology/*siblings",
                                "*/topology/physical_package_id",
                                NULL};
    if (mkdir(dir, 0755) < 0 || !proc_start(&tar, argv)) {
        return false;
    }
    const int code = proc_end(&tar, 0, TAR_MS);
    return code == 0 || code == 2;
}

/* ls sys/bus/pci/devices | wc -l;  readlink -f sys/class/{net,infiniband}/NAME/device | sort -u */
static const struct expected recorded[] = {
    {"hwloc/40intel64-2g2n4c+pcilocality.sysfs.tar.bz2", 37, 5, 0},
    {"hwloc/40intel64-4n10c+pci-conflicts.sysfs.tar.bz2", 3, 0, 0},
    {"hwloc/fakepcilocalities.sysfs.tar.bz2", 30, 5, 0},
    {"hwloc/power9-6xV100-gpunumanodes.sysfs.tar.bz2", 6, 0, 0},
};

static void recorded_trees(void)
{
    for (size_t i = 0; i < WEFT_ARRAY_LEN(recorded); i++) {
        char dir[PATH_TEXT_MAX];
        const char *archive = weft_shared(recorded[i].name);
        (void)snprintf(dir, sizeof(dir), "%s/hwloc-recorded-%zu", weft_test_dir(), i);
        if (archive != NULL && CHECK_INT(unpack(archive, dir), true)) {
            check_tree(dir, &recorded[i]);
        }
    }
}

static void this_machine(void)
{
    check_tree("/", NULL);
}

WEFT_SUITE(host_hwloc, {"own trees", own_trees}, {"recorded trees", recorded_trees},
           {"this machine", this_machine})
