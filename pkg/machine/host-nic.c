/* SPDX-License-Identifier: Apache-2.0 */
/* The NICs of a host: RDMA devices (Documentation/ABI/stable/sysfs-class-infiniband) and network
 * devices (testing/sysfs-class-net), joined by the PCI function both belong to. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/machine/host-internal.h"
#include "pkg/machine/machine-internal.h"

#define RDMA_CLASS "/sys/class/infiniband"
#define NET_CLASS "/sys/class/net"

enum {
    PATH_TEXT_MAX = 512,
    TYPE_ETHERNET = 1, /* ARPHRD_ETHER, ARPHRD_INFINIBAND: linux/if_arp.h */
    TYPE_INFINIBAND = 32,
    CLASS_NETWORK = 0x02, /* PCI base class */
    PORT_ACTIVE = 4,      /* IB_PORT_ACTIVE */
};

struct nics {
    struct weft_nic *items;
    size_t count, cap, left_out;
};

static int read_at(const struct weft_host *host, const char *folder, const char *name,
                   const char *attribute, char *text, size_t size)
{
    char path[PATH_TEXT_MAX];
    const int n = snprintf(path, sizeof(path), "%s/%s/%s", folder, name, attribute);
    text[0] = '\0';
    return n < 0 || (size_t)n >= sizeof(path) ? -ENAMETOOLONG
                                              : weft_host_read(host, path, text, size);
}

static bool function_at(const struct weft_host *host, const char *folder, const char *name,
                        struct weft_bdf *ret_bdf)
{
    char path[PATH_TEXT_MAX];
    const int n = snprintf(path, sizeof(path), "%s/%s/device", folder, name);
    return n > 0 && (size_t)n < sizeof(path) && weft_host_function_of(host, path, ret_bdf) == 0;
}

static struct weft_nic *find(struct nics *nics, const struct weft_bdf *bdf)
{
    for (size_t i = 0; i < nics->count; i++) {
        if (weft_bdf_cmp(&nics->items[i].bdf, bdf) == 0) {
            return &nics->items[i];
        }
    }
    return NULL;
}

/* A NIC for the function, or *ret_nic NULL if it is none. */
static int add(const struct weft_host *host, struct nics *nics, const struct weft_bdf *bdf,
               bool rdma, struct weft_nic **ret_nic)
{
    struct weft_host_pci pci;
    *ret_nic = NULL;
    int rc = weft_host_pci(host, bdf, &pci);
    if (rc == -ENOMEM) {
        return rc;
    }
    if (rc < 0 || pci.is_vf || (!rdma && pci.class_code >> 16 != CLASS_NETWORK)) {
        return 0;
    }
    if (nics->count == WEFT_MACHINE_NICS_MAX) {
        nics->left_out++;
        return 0;
    }
    void *array = nics->items;
    rc = weft_array_reserve(&array, &nics->cap, nics->count + 1, sizeof(*nics->items),
                            WEFT_MACHINE_NICS_MAX);
    nics->items = array;
    if (rc == 0) {
        *ret_nic = &nics->items[nics->count++];
        **ret_nic = (struct weft_nic){.bdf = *bdf, .numa_node = pci.numa_node, .up = -1};
    }
    return rc;
}

/* "0c42:a103:00b4:d3e2" */
static uint64_t parse_guid(const char *text)
{
    char digits[17] = "";
    size_t n = 0;
    for (; *text != '\0' && n < sizeof(digits) - 1; text++) {
        if (*text != ':') {
            digits[n++] = *text;
        }
    }
    uint64_t guid = 0;
    return weft_parse_hex64((struct weft_str){digits, n}, &guid) < 0 ? 0 : guid;
}

/* "200 Gb/sec (4X HDR)", "2.5 Gb/sec (1X SDR)": megabits a second. */
static uint64_t parse_rate(const char *text)
{
    struct weft_str rest = weft_str(text);
    struct weft_str number;
    struct weft_str part;
    uint64_t whole = 0;
    if (!weft_str_word(&rest, &number) || !weft_str_split(&number, '.', &part) ||
        weft_parse_u64(part, 1 << 20, &whole) < 0) {
        return 0;
    }
    const bool half = number.len > 0 && number.data[0] == '5';
    return whole * 1000 + (half ? 500 : 0);
}

struct port {
    enum weft_nic_layer layer;
    uint64_t rate_mbps;
    bool active;
};

static struct port read_port(const struct weft_host *host, const char *device, const char *number)
{
    char attribute[128];
    char text[128];
    struct port port = {0};
    (void)snprintf(attribute, sizeof(attribute), "ports/%.32s/link_layer", number);
    (void)read_at(host, RDMA_CLASS, device, attribute, text, sizeof(text));
    if (strcmp(text, "InfiniBand") == 0) {
        port.layer = WEFT_NIC_LAYER_INFINIBAND;
    } else if (strcmp(text, "Ethernet") == 0) {
        port.layer = WEFT_NIC_LAYER_ETHERNET;
    }
    (void)snprintf(attribute, sizeof(attribute), "ports/%.32s/state", number);
    (void)read_at(host, RDMA_CLASS, device, attribute, text, sizeof(text));
    port.active = text[0] == '0' + PORT_ACTIVE && text[1] == ':';
    (void)snprintf(attribute, sizeof(attribute), "ports/%.32s/rate", number);
    (void)read_at(host, RDMA_CLASS, device, attribute, text, sizeof(text));
    port.rate_mbps = port.active ? parse_rate(text) : 0;
    return port;
}

/* Of several ports the first active one speaks for the function. */
static int read_ports(const struct weft_host *host, const char *device, struct weft_nic *nic)
{
    char path[PATH_TEXT_MAX];
    weft_auto(weft_host_names_done) struct weft_host_names ports = {0};
    (void)snprintf(path, sizeof(path), RDMA_CLASS "/%.128s/ports", device);
    if (weft_host_list(host, path, &ports) == -ENOMEM) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < ports.count; i++) {
        const struct port port = read_port(host, device, ports.names[i]);
        if (i > 0 && !(port.active && nic->up == 0)) {
            continue;
        }
        nic->layer = port.layer;
        nic->rate_mbps = port.rate_mbps;
        nic->up = port.active ? 1 : 0;
    }
    return 0;
}

static int add_rdma(const struct weft_host *host, const char *device, struct nics *nics)
{
    struct weft_bdf bdf;
    /* no PCI function: a software device (rxe, siw); a second device of one function is its
     * further port */
    if (!function_at(host, RDMA_CLASS, device, &bdf) || find(nics, &bdf) != NULL) {
        return 0;
    }
    struct weft_nic *nic = NULL;
    const int rc = add(host, nics, &bdf, true, &nic);
    if (rc < 0 || nic == NULL) {
        return rc;
    }
    char guid[64];
    (void)weft_machine_copy_visible(nic->name, sizeof(nic->name), device, strlen(device));
    (void)read_at(host, RDMA_CLASS, device, "node_guid", guid, sizeof(guid));
    nic->guid = parse_guid(guid);
    return read_ports(host, device, nic);
}

/* Representors of virtual and sub-functions belong to the physical function's folder, but are no
 * ports: devlink names them "pf0vf3", "c1pf0sf88" where a port is "p0". */
static bool is_representor(const struct weft_host *host, const char *device)
{
    char name[64];
    (void)read_at(host, NET_CLASS, device, "phys_port_name", name, sizeof(name));
    return strstr(name, "vf") != NULL || strstr(name, "sf") != NULL ||
           (strncmp(name, "pf", 2) == 0);
}

static enum weft_nic_layer layer_of(const struct weft_host *host, const char *device)
{
    char text[16];
    (void)read_at(host, NET_CLASS, device, "type", text, sizeof(text));
    int64_t type = 0;
    if (weft_parse_i64(weft_str(text), 0, UINT16_MAX, &type) < 0) {
        return WEFT_NIC_LAYER_UNKNOWN;
    }
    return type == TYPE_ETHERNET     ? WEFT_NIC_LAYER_ETHERNET
           : type == TYPE_INFINIBAND ? WEFT_NIC_LAYER_INFINIBAND
                                     : WEFT_NIC_LAYER_UNKNOWN;
}

static void read_net_state(const struct weft_host *host, const char *device, struct weft_nic *nic)
{
    char text[32];
    (void)read_at(host, NET_CLASS, device, "operstate", text, sizeof(text));
    nic->up = strcmp(text, "up") == 0                           ? 1
              : text[0] == '\0' || strcmp(text, "unknown") == 0 ? -1
                                                                : 0;
    (void)read_at(host, NET_CLASS, device, "speed", text, sizeof(text));
    int64_t speed = 0;
    if (nic->up == 1 && weft_parse_i64(weft_str(text), 1, INT32_MAX, &speed) == 0) {
        nic->rate_mbps = (uint64_t)speed;
    }
}

static int add_net(const struct weft_host *host, const char *device, struct nics *nics)
{
    struct weft_bdf bdf;
    const enum weft_nic_layer layer = layer_of(host, device);
    if (layer == WEFT_NIC_LAYER_UNKNOWN || !function_at(host, NET_CLASS, device, &bdf) ||
        is_representor(host, device)) {
        return 0;
    }
    struct weft_nic *nic = find(nics, &bdf);
    const bool had_rdma = nic != NULL;
    const int rc = had_rdma ? 0 : add(host, nics, &bdf, false, &nic);
    if (rc < 0 || nic == NULL || nic->netdev[0] != '\0') {
        return rc; /* a further port of the function */
    }
    (void)weft_machine_copy_visible(nic->netdev, sizeof(nic->netdev), device, strlen(device));
    if (!had_rdma) {
        (void)weft_machine_copy_visible(nic->name, sizeof(nic->name), device, strlen(device));
        nic->layer = layer;
        read_net_state(host, device, nic);
    }
    return 0;
}

static int each(const struct weft_host *host, const char *folder, struct nics *nics,
                int (*visit)(const struct weft_host *, const char *, struct nics *))
{
    weft_auto(weft_host_names_done) struct weft_host_names names = {0};
    int rc = weft_host_list(host, folder, &names);
    if (rc == -ENOENT) {
        return 0; /* no RDMA subsystem, or no network devices */
    }
    for (size_t i = 0; rc == 0 && i < names.count; i++) {
        rc = visit(host, names.names[i], nics);
    }
    return rc;
}

static int by_bdf(const void *a, const void *b)
{
    const struct weft_nic *na = a;
    const struct weft_nic *nb = b;
    return weft_bdf_cmp(&na->bdf, &nb->bdf);
}

int weft_host_nics(const struct weft_host *host, struct weft_nic **ret_nics, size_t *ret_count,
                   size_t *ret_left_out)
{
    struct nics nics = {0};
    int rc = each(host, RDMA_CLASS, &nics, add_rdma);
    if (rc == 0) {
        rc = each(host, NET_CLASS, &nics, add_net);
    }
    if (rc < 0) {
        weft_free(nics.items);
        return rc;
    }
    if (nics.count > 1) {
        qsort(nics.items, nics.count, sizeof(*nics.items), by_bdf);
    }
    *ret_nics = nics.items;
    *ret_count = nics.count;
    *ret_left_out = nics.left_out;
    return 0;
}
