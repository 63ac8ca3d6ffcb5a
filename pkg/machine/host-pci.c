/* SPDX-License-Identifier: Apache-2.0 */
/* One PCI function in sysfs (Linux: Documentation/ABI/testing/sysfs-bus-pci), and how far two are
 * apart. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/machine/host-internal.h"
#include "pkg/machine/machine-internal.h"

#define PCI_DEVICES "/sys/bus/pci/devices"

enum {
    PATH_TEXT_MAX = 512, /* of a path that is put together here */
    VENDOR_AMD = 0x1002,
    VENDOR_INTEL = 0x8086,
    WIDTH_UNKNOWN = 255,
    CPUS_MAX = 1 << 20,
};

int weft_bdf_cmp(const struct weft_bdf *a, const struct weft_bdf *b)
{
    const uint32_t pa[] = {a->domain, a->bus, a->device, a->function};
    const uint32_t pb[] = {b->domain, b->bus, b->device, b->function};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(pa); i++) {
        if (pa[i] != pb[i]) {
            return pa[i] < pb[i] ? -1 : 1;
        }
    }
    return 0;
}

bool weft_host_parse_bdf(const char *text, size_t len, struct weft_bdf *ret_bdf)
{
    char copy[WEFT_BDF_TEXT_MAX];
    /* "0000:00:00.0" is the shortest form that the kernel writes */
    if (len < 12 || len >= sizeof(copy)) {
        return false;
    }
    (void)snprintf(copy, sizeof(copy), "%.*s", (int)len, text);
    return weft_bdf_parse(copy, ret_bdf) == 0;
}

/* "pci0000:3a", a host bridge's folder. */
static bool parse_host_bridge(struct weft_str name, struct weft_bdf *ret_bdf)
{
    char text[WEFT_BDF_TEXT_MAX + 8];
    if (!weft_str_starts(name, "pci") || name.len < 10 || name.len > WEFT_BDF_TEXT_MAX - 4) {
        return false;
    }
    (void)snprintf(text, sizeof(text), "%.*s:00.0", (int)name.len - 3, name.data + 3);
    return weft_bdf_parse(text, ret_bdf) == 0;
}

int weft_host_function_of(const struct weft_host *host, const char *path, struct weft_bdf *ret_bdf)
{
    char real[WEFT_HOST_PATH_MAX];
    const int rc = weft_host_resolve(host, path, real);
    if (rc < 0) {
        return rc;
    }
    struct weft_str rest = weft_str(real);
    struct weft_str name;
    bool found = false;
    while (weft_str_split(&rest, '/', &name)) {
        found = weft_host_parse_bdf(name.data, name.len, ret_bdf) || found;
    }
    return found ? 0 : -ENOENT;
}

/* The attribute name of a function, put together into path (PATH_TEXT_MAX bytes). */
static const char *attribute(const struct weft_bdf *bdf, const char *name, char *path)
{
    char text[WEFT_BDF_TEXT_MAX];
    (void)snprintf(path, PATH_TEXT_MAX, PCI_DEVICES "/%s/%s", weft_bdf_format(bdf, text), name);
    return path;
}

static uint64_t read_hex(const struct weft_host *host, const struct weft_bdf *bdf, const char *name)
{
    char path[PATH_TEXT_MAX];
    char text[32];
    uint64_t value = 0;
    const int len = weft_host_read(host, attribute(bdf, name, path), text, sizeof(text));
    if (len < 0 || weft_parse_hex64((struct weft_str){text, (size_t)len}, &value) < 0) {
        return 0;
    }
    return value;
}

static int64_t read_number(const struct weft_host *host, const struct weft_bdf *bdf,
                           const char *name, int64_t fallback)
{
    char path[PATH_TEXT_MAX];
    int64_t value = 0;
    return weft_host_read_i64(host, attribute(bdf, name, path), &value) == 0 ? value : fallback;
}

/* "16.0 GT/s PCIe", in older kernels "8 GT/s": the transfer rate names the generation. */
static uint8_t read_generation(const struct weft_host *host, const struct weft_bdf *bdf,
                               const char *name)
{
    static const char *const rates[] = {"2.5", "5.0", "8.0", "16.0", "32.0", "64.0", "128.0"};
    char path[PATH_TEXT_MAX];
    char text[64];
    const int len = weft_host_read(host, attribute(bdf, name, path), text, sizeof(text));
    struct weft_str rest = {text, len < 0 ? 0 : (size_t)len};
    struct weft_str rate;
    if (!weft_str_word(&rest, &rate)) {
        return 0;
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rates); i++) {
        const size_t whole = strcspn(rates[i], ".");
        const bool short_form = rates[i][whole + 1] == '0' && rate.len == whole &&
                                memcmp(rate.data, rates[i], whole) == 0;
        if (short_form || weft_str_eq(rate, rates[i])) {
            return (uint8_t)(i + 1);
        }
    }
    return 0;
}

static uint8_t read_width(const struct weft_host *host, const struct weft_bdf *bdf,
                          const char *name)
{
    const int64_t width = read_number(host, bdf, name, 0);
    return width > 0 && width < WIDTH_UNKNOWN ? (uint8_t)width : 0;
}

static void read_link(const struct weft_host *host, struct weft_host_pci *pci)
{
    const struct weft_bdf *at = &pci->bdf;
    for (size_t i = pci->depth; i-- > 0;) {
        at = pci->path[i].own ? &pci->path[i].bdf : at; /* the card's outermost port */
    }
    pci->pcie = (struct weft_pcie){
        .generation = read_generation(host, at, "current_link_speed"),
        .width = read_width(host, at, "current_link_width"),
        .max_generation = read_generation(host, at, "max_link_speed"),
        .max_width = read_width(host, at, "max_link_width"),
    };
}

/* Is step i a bridge of the card itself? */
static bool is_own(const struct weft_host *host, const struct weft_host_pci *pci, size_t i)
{
    const bool below_root_port =
        i >= 2 && i + 1 < pci->depth && !pci->path[i].host_bridge && !pci->path[i - 1].host_bridge;
    const bool has_switch = pci->vendor == VENDOR_AMD || pci->vendor == VENDOR_INTEL;
    return below_root_port && has_switch &&
           read_hex(host, &pci->path[i].bdf, "vendor") == pci->vendor;
}

static void read_path(const struct weft_host *host, const char *real, struct weft_host_pci *pci)
{
    struct weft_str rest = weft_str(real);
    struct weft_str name;
    while (weft_str_split(&rest, '/', &name)) {
        struct weft_host_step s = {0};
        s.host_bridge = parse_host_bridge(name, &s.bdf);
        if (!s.host_bridge && !weft_host_parse_bdf(name.data, name.len, &s.bdf)) {
            continue;
        }
        if (pci->depth == WEFT_HOST_DEPTH_MAX) {
            pci->depth = 0; /* no real machine; without the whole chain nothing is known */
            return;
        }
        pci->path[pci->depth++] = s;
    }
    if (pci->depth > 0 && !pci->path[0].host_bridge) {
        pci->depth = 0;
    }
    for (size_t i = 0; i < pci->depth; i++) {
        pci->path[i].own = is_own(host, pci, i);
    }
}

static int socket_of_cpu(const struct weft_host *host, uint64_t cpu)
{
    char path[PATH_TEXT_MAX];
    int64_t socket = -1;
    (void)snprintf(path, sizeof(path),
                   "/sys/devices/system/cpu/cpu%llu/topology/physical_package_id",
                   (unsigned long long)cpu);
    const int rc = weft_host_read_i64(host, path, &socket);
    return rc == 0 && socket >= 0 && socket <= INT32_MAX ? (int)socket : -1;
}

/* "0-15,32-47": the package that holds both ends of every range, -1 if there is not one. */
static int socket_of_cpus(const struct weft_host *host, struct weft_str list)
{
    int socket = -1;
    struct weft_str range;
    while (weft_str_split(&list, ',', &range)) {
        struct weft_str end;
        while (weft_str_split(&range, '-', &end)) {
            uint64_t cpu = 0;
            const int of = weft_parse_u64(end, CPUS_MAX, &cpu) < 0 ? -1 : socket_of_cpu(host, cpu);
            if (of < 0 || (socket >= 0 && of != socket)) {
                return -1;
            }
            socket = of;
        }
    }
    return socket;
}

static int read_socket(const struct weft_host *host, const struct weft_host_pci *pci)
{
    char path[PATH_TEXT_MAX];
    char text[WEFT_HOST_TEXT_MAX];
    if (pci->numa_node >= 0) {
        (void)snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist",
                       pci->numa_node);
    } else {
        (void)attribute(&pci->bdf, "local_cpulist", path);
    }
    const int len = weft_host_read(host, path, text, sizeof(text));
    return len <= 0 ? -1 : socket_of_cpus(host, (struct weft_str){text, (size_t)len});
}

static void read_driver(const struct weft_host *host, struct weft_host_pci *pci)
{
    char path[PATH_TEXT_MAX];
    char real[WEFT_HOST_PATH_MAX];
    if (weft_host_resolve(host, attribute(&pci->bdf, "driver", path), real) == 0) {
        const char *name = strrchr(real, '/');
        name = name == NULL ? "" : name + 1;
        (void)weft_machine_copy_visible(pci->driver, sizeof(pci->driver), name, strlen(name));
    }
}

static int minor_of(const char *name, const char *prefix)
{
    const struct weft_str s = weft_str(name);
    const size_t skip = strlen(prefix);
    uint64_t minor = 0;
    if (!weft_str_starts(s, prefix) ||
        weft_parse_u64((struct weft_str){name + skip, s.len - skip}, INT32_MAX, &minor) < 0) {
        return -1;
    }
    return (int)minor;
}

static int read_drm(const struct weft_host *host, struct weft_host_pci *pci)
{
    char path[PATH_TEXT_MAX];
    weft_auto(weft_host_names_done) struct weft_host_names names = {0};
    pci->card = pci->render = -1;
    if (weft_host_list(host, attribute(&pci->bdf, "drm", path), &names) == -ENOMEM) {
        return -ENOMEM;
    }
    for (size_t i = names.count; i-- > 0;) { /* the lowest one stays */
        const int card = minor_of(names.names[i], "card");
        const int render = minor_of(names.names[i], "renderD");
        pci->card = card >= 0 ? card : pci->card;
        pci->render = render >= 0 ? render : pci->render;
    }
    return 0;
}

static int read_function(const struct weft_host *host, struct weft_host_pci *pci)
{
    char path[PATH_TEXT_MAX];
    char real[WEFT_HOST_PATH_MAX];
    const int rc = weft_host_resolve(host, attribute(&pci->bdf, "", path), real);
    if (rc < 0) {
        return rc;
    }
    pci->vendor = (uint16_t)read_hex(host, &pci->bdf, "vendor");
    pci->device = (uint16_t)read_hex(host, &pci->bdf, "device");
    pci->class_code = (uint32_t)read_hex(host, &pci->bdf, "class");
    const int64_t node = read_number(host, &pci->bdf, "numa_node", -1);
    pci->numa_node = node >= 0 && node <= INT32_MAX ? (int)node : -1;
    const int64_t vfs = read_number(host, &pci->bdf, "sriov_numvfs", 0);
    pci->vf_count = vfs > 0 && vfs <= UINT16_MAX ? (int)vfs : 0;
    pci->is_vf = weft_host_exists(host, attribute(&pci->bdf, "physfn", path));
    read_path(host, real, pci);
    read_driver(host, pci);
    read_link(host, pci);
    pci->socket = read_socket(host, pci);
    return read_drm(host, pci);
}

int weft_host_pci(const struct weft_host *host, const struct weft_bdf *bdf,
                  struct weft_host_pci *ret_pci)
{
    if (!bdf->known) {
        return -EINVAL;
    }
    struct weft_host_pci pci = {.bdf = *bdf};
    const int rc = read_function(host, &pci);
    if (rc == 0) {
        *ret_pci = pci;
    }
    return rc;
}

static bool is_gpu_class(uint64_t class_code)
{
    const uint64_t base = class_code >> 16;
    return base == 0x03 || base == 0x12; /* PCI Code and ID Assignment: display, accelerator */
}

struct found {
    struct weft_host_pci *items;
    size_t count, cap;
};

static int consider(const struct weft_host *host, const char *name, uint16_t vendor,
                    struct found *found)
{
    struct weft_bdf bdf;
    if (!weft_host_parse_bdf(name, strlen(name), &bdf) ||
        read_hex(host, &bdf, "vendor") != vendor || !is_gpu_class(read_hex(host, &bdf, "class"))) {
        return 0;
    }
    void *array = found->items;
    int rc = weft_array_reserve(&array, &found->cap, found->count + 1, sizeof(*found->items),
                                WEFT_MACHINE_DEVICES_MAX);
    found->items = array;
    if (rc == 0) {
        rc = weft_host_pci(host, &bdf, &found->items[found->count]);
    }
    if (rc == -ENOENT) {
        return 0; /* taken out meanwhile */
    }
    found->count += rc == 0;
    return rc;
}

static int by_bdf(const void *a, const void *b)
{
    const struct weft_host_pci *pa = a;
    const struct weft_host_pci *pb = b;
    return weft_bdf_cmp(&pa->bdf, &pb->bdf);
}

int weft_host_find_gpus(const struct weft_host *host, uint16_t vendor,
                        struct weft_host_pci **ret_pcis, size_t *ret_count)
{
    weft_auto(weft_host_names_done) struct weft_host_names names = {0};
    int rc = weft_host_list(host, PCI_DEVICES, &names);
    rc = rc == -ENOENT ? 0 : rc; /* a host without PCI has none */
    struct found found = {0};
    for (size_t i = 0; rc == 0 && i < names.count; i++) {
        rc = consider(host, names.names[i], vendor, &found);
    }
    if (rc < 0) {
        weft_free(found.items);
        return rc;
    }
    if (found.count > 1) {
        qsort(found.items, found.count, sizeof(*found.items), by_bdf);
    }
    *ret_pcis = found.items;
    *ret_count = found.count;
    return 0;
}

static bool same_step(const struct weft_host_step *a, const struct weft_host_step *b)
{
    return a->host_bridge == b->host_bridge && weft_bdf_cmp(&a->bdf, &b->bdf) == 0;
}

/* The bridges on the way down that are no part of the card. */
static size_t bridges_below(const struct weft_host_pci *pci, size_t from)
{
    size_t bridges = 0;
    for (size_t i = from; i + 1 < pci->depth; i++) {
        bridges += !pci->path[i].own;
    }
    return bridges;
}

static bool same_slot(const struct weft_bdf *a, const struct weft_bdf *b)
{
    return a->domain == b->domain && a->bus == b->bus && a->device == b->device;
}

/* Two functions of one device are one board, but not on the root bus itself, where the functions of
 * one device number are ports of the processor. */
static bool is_one_board(const struct weft_host_pci *a, const struct weft_host_pci *b)
{
    return weft_bdf_cmp(&a->bdf, &b->bdf) == 0 || (same_slot(&a->bdf, &b->bdf) && a->depth > 2);
}

int weft_host_distance(const struct weft_host_pci *a, const struct weft_host_pci *b)
{
    if (is_one_board(a, b)) {
        return WEFT_DISTANCE_PSB;
    }
    size_t shared = 0;
    while (shared < a->depth && shared < b->depth &&
           same_step(&a->path[shared], &b->path[shared])) {
        shared++;
    }
    if (shared == 0) {
        if (a->numa_node < 0 || b->numa_node < 0) {
            return WEFT_DISTANCE_UNKNOWN;
        }
        return a->numa_node == b->numa_node ? WEFT_DISTANCE_NODE : WEFT_DISTANCE_SYS;
    }
    const struct weft_host_step *last = &a->path[shared - 1];
    if (last->host_bridge) {
        return WEFT_DISTANCE_PHB;
    }
    if (last->own && b->path[shared - 1].own) {
        return WEFT_DISTANCE_PSB;
    }
    const bool one_switch = bridges_below(a, shared) <= 1 && bridges_below(b, shared) <= 1;
    return one_switch ? WEFT_DISTANCE_PIX : WEFT_DISTANCE_PXB;
}
