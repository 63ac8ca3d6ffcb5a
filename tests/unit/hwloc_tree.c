/* SPDX-License-Identifier: Apache-2.0 */
/* Our fixtures of hosts, with what hwloc needs beside what weft reads. */
#include "tests/unit/hwloc_tree.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "pkg/base/mem.h"
#include "pkg/base/str.h"
#include "pkg/machine/host-internal.h"
#include "tests/unit/fake_host.h"
#include "tests/unit/unit.h"

enum {
    PCIS_MAX = 1024,
    PATH_TEXT_MAX = 1024,
    CONFIG_SIZE = 64, /* the header of the configuration space */
    CPUS_MAX = 64,
};

size_t hwloc_tree_functions(const struct weft_host *host, struct weft_host_pci *pcis, size_t max)
{
    weft_auto(weft_host_names_done) struct weft_host_names names = {0};
    size_t count = 0;
    const int rc = weft_host_list(host, "/sys/bus/pci/devices", &names);
    CHECK(rc == 0 || rc == -ENOENT);
    for (size_t i = 0; i < names.count && count < max; i++) {
        struct weft_bdf bdf = {0};
        CHECK_INT(weft_bdf_parse(names.names[i], &bdf), 0);
        CHECK_INT(weft_host_pci(host, &bdf, &pcis[count]), 0);
        count++;
    }
    return count;
}

/* hwloc accepts a sysfs with CPU maps, and believes a bridge's configuration space only. */
static void add_cpu(struct weft_host *host, const struct weft_host *plain, const char *name)
{
    char path[PATH_TEXT_MAX];
    int64_t package = -1;
    uint64_t siblings = 0;
    (void)snprintf(path, sizeof(path), "/sys/devices/system/cpu/%s/topology/physical_package_id",
                   name);
    CHECK_INT(weft_host_read_i64(plain, path, &package), 0);
    for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
        int64_t other = -1;
        (void)snprintf(path, sizeof(path),
                       "/sys/devices/system/cpu/cpu%u/topology/physical_package_id", cpu);
        if (weft_host_read_i64(plain, path, &other) == 0 && other == package) {
            siblings |= UINT64_C(1) << cpu;
        }
    }
    uint64_t number = 0;
    CHECK_INT(weft_parse_u64(weft_str(name + strlen("cpu")), CPUS_MAX - 1, &number), 0);
    const uint64_t self = UINT64_C(1) << number;
    const char *const folder = "/sys/devices/system/cpu";
    (void)fake_host_line(host, "%s/%s/topology/core_siblings = %08x,%08x\\n", folder, name,
                         (unsigned)(siblings >> 32), (unsigned)siblings);
    (void)fake_host_line(host, "%s/%s/topology/thread_siblings = %08x,%08x\\n", folder, name,
                         (unsigned)(self >> 32), (unsigned)self);
    (void)fake_host_line(host, "%s/%s/topology/core_id = %d\\n", folder, name, (int)number);
}

static uint64_t mask_of(struct weft_str list)
{
    uint64_t mask = 0;
    struct weft_str range;
    while (weft_str_split(&list, ',', &range)) {
        struct weft_str end;
        uint64_t first = 0;
        uint64_t last = 0;
        (void)weft_str_split(&range, '-', &end);
        CHECK_INT(weft_parse_u64(end, CPUS_MAX - 1, &first), 0);
        last = first;
        if (range.len > 0) {
            CHECK_INT(weft_parse_u64(range, CPUS_MAX - 1, &last), 0);
        }
        for (uint64_t cpu = first; cpu <= last; cpu++) {
            mask |= UINT64_C(1) << cpu;
        }
    }
    return mask;
}

static uint64_t cpus_of_node(const struct weft_host *plain, const char *name)
{
    char path[PATH_TEXT_MAX];
    char list[PATH_TEXT_MAX];
    (void)snprintf(path, sizeof(path), "/sys/devices/system/node/%s/cpulist", name);
    CHECK(weft_host_read(plain, path, list, sizeof(list)) >= 0);
    return mask_of(weft_str(list));
}

static void add_node(struct weft_host *host, const struct weft_host *plain, const char *name)
{
    const uint64_t mask = cpus_of_node(plain, name);
    (void)fake_host_line(host, "/sys/devices/system/node/%s/cpumap = %08x,%08x\\n", name,
                         (unsigned)(mask >> 32), (unsigned)mask);
}

/* As the kernel does: a function's local CPUs are those of its node. folder is the real one. */
static void add_locality(struct weft_host *host, const struct weft_host *plain, const char *folder,
                         int node)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "node%d", node);
    if (node >= 0) {
        const uint64_t mask = cpus_of_node(plain, name);
        (void)fake_host_line(host, "%s/numa_node = %d\\n", folder, node);
        (void)fake_host_line(host, "%s/local_cpus = %08x,%08x\\n", folder, (unsigned)(mask >> 32),
                             (unsigned)mask);
    }
}

static void each(struct weft_host *host, const struct weft_host *plain, const char *folder,
                 void (*add)(struct weft_host *, const struct weft_host *, const char *))
{
    weft_auto(weft_host_names_done) struct weft_host_names names = {0};
    CHECK_INT(weft_host_list(plain, folder, &names), 0);
    for (size_t i = 0; i < names.count; i++) {
        add(host, plain, names.names[i]);
    }
}

/* The bridge that is step at of pci, with the buses that are below it; its folder. */
static void add_bridge(struct weft_host *host, const struct weft_host_pci *pcis, size_t count,
                       const struct weft_host_pci *pci, size_t at, char *ret_folder)
{
    char chain[PATH_TEXT_MAX];
    char path[PATH_TEXT_MAX + 64];
    char text[WEFT_BDF_TEXT_MAX];
    const struct weft_bdf *bdf = &pci->path[at].bdf;
    size_t len = (size_t)snprintf(chain, sizeof(chain), "pci%04x:%02x",
                                  (unsigned)pci->path[0].bdf.domain, pci->path[0].bdf.bus);
    for (size_t i = 1; i <= at; i++) {
        len += (size_t)snprintf(chain + len, sizeof(chain) - len, "/%s",
                                weft_bdf_format(&pci->path[i].bdf, text));
    }
    uint8_t config[CONFIG_SIZE] = {[0x0e] = 1 /* a bridge's header */,
                                   [0x18] = (uint8_t)bdf->bus,
                                   [0x19] = (uint8_t)pci->path[at + 1].bdf.bus};
    for (size_t i = 0; i < count; i++) {
        const struct weft_host_pci *other = &pcis[i];
        const bool below = other->depth > at && weft_bdf_cmp(&other->path[at].bdf, bdf) == 0;
        if (below && other->bdf.bus > config[0x1a]) {
            config[0x1a] = (uint8_t)other->bdf.bus;
        }
    }
    (void)fake_host_line(host, "/sys/bus/pci/devices/%s -> ../../../devices/%s",
                         weft_bdf_format(bdf, text), chain);
    (void)fake_host_line(host, "/sys/devices/%s/class = 0x060400\\n", chain);
    (void)snprintf(ret_folder, PATH_TEXT_MAX, "/sys/devices/%.512s", chain);
    (void)snprintf(path, sizeof(path), "/sys/devices/%s/config", chain);
    CHECK_INT(weft_host_add_file(host, path, config, sizeof(config)), 0);
}

bool hwloc_tree_write(const char *fixture, const char *dir)
{
    weft_autofree char *text = weft_fixture_text(fixture, NULL);
    weft_auto(weft_host_free) struct weft_host *plain = fake_host(fixture);
    weft_auto(weft_host_free) struct weft_host *host = text != NULL ? fake_host_text(text) : NULL;
    weft_autofree struct weft_host_pci *pcis = weft_calloc(PCIS_MAX, sizeof(*pcis));
    if (plain == NULL || host == NULL || pcis == NULL) {
        return false;
    }
    char folder[WEFT_HOST_PATH_MAX];
    const size_t count = hwloc_tree_functions(plain, pcis, PCIS_MAX);
    each(host, plain, "/sys/devices/system/cpu", add_cpu);
    each(host, plain, "/sys/devices/system/node", add_node);
    for (size_t i = 0; i < count; i++) {
        for (size_t at = 1; at + 1 < pcis[i].depth; at++) {
            /* a bridge has the node of what is below it */
            add_bridge(host, pcis, count, &pcis[i], at, folder);
            add_locality(host, plain, folder, pcis[i].numa_node);
        }
    }
    for (size_t i = 0; i < count; i++) {
        char text_of[WEFT_BDF_TEXT_MAX];
        char link[PATH_TEXT_MAX];
        (void)snprintf(link, sizeof(link), "/sys/bus/pci/devices/%s",
                       weft_bdf_format(&pcis[i].bdf, text_of));
        CHECK_INT(weft_host_resolve(plain, link, folder), 0);
        add_locality(host, plain, folder, pcis[i].numa_node);
    }
    weft_host_seal(host);
    return mkdir(dir, 0755) == 0 && fake_host_write(host, dir);
}
