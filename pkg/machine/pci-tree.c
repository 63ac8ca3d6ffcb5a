/* SPDX-License-Identifier: Apache-2.0 */
/* Distances in the PCI tree of a recording; the rule stands in pci-tree-internal.h. */
#include "pkg/machine/pci-tree-internal.h"

#include <errno.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/machine/machine-internal.h"

enum {
    VENDOR_ATI = 0x1002,
    VENDOR_AMD = 0x1022,
    VENDOR_INTEL = 0x8086,
};

int weft_pci_add(struct weft_pci_tree *t, size_t parent, enum weft_pci_kind kind, unsigned line,
                 size_t *ret_node)
{
    void *nodes = t->nodes;
    const int rc =
        weft_array_reserve(&nodes, &t->cap, t->count + 1, sizeof(*t->nodes), WEFT_PCI_NODES_MAX);
    t->nodes = nodes;
    if (rc < 0) {
        return rc;
    }
    const size_t depth = parent == WEFT_PCI_NONE ? 0 : t->nodes[parent].depth + 1;
    *ret_node = t->count++;
    t->nodes[*ret_node] =
        (struct weft_pci_node){.parent = parent, .depth = depth, .kind = kind, .line = line};
    return 0;
}

void weft_pci_done(struct weft_pci_tree *t)
{
    weft_free(t->nodes);
    t->nodes = NULL;
    t->count = t->cap = 0;
}

/* Is the bridge part of the card of a function below it? amdgpu and the Intel drivers skip these
 * bridges too when they look for the slot (amdgpu_device_partner_bandwidth). A bridge on the root
 * bus of lstopo's tree is a root port of the same vendor's processor. */
static bool is_own_bridge(const struct weft_pci_tree *t, size_t bridge, size_t function)
{
    const struct weft_pci_node *b = &t->nodes[bridge];
    const uint32_t vendor = t->nodes[function].vendor;
    if (t->ports > 0 &&
        (b->parent == WEFT_PCI_NONE || t->nodes[b->parent].kind != WEFT_PCI_BRIDGE)) {
        return false;
    }
    if (vendor == VENDOR_ATI) {
        return b->vendor == VENDOR_ATI || b->vendor == VENDOR_AMD;
    }
    return vendor == VENDOR_INTEL && b->vendor == VENDOR_INTEL &&
           weft_pci_is_gpu_class(t->nodes[function].class);
}

/* The bridges strictly between the function and a bridge above it, but for the card's own. */
static size_t bridges_between(const struct weft_pci_tree *t, size_t function, size_t top)
{
    size_t count = 0;
    bool own = true;
    /* top may be the function itself, where a file nests functions */
    for (size_t at = function == top ? top : t->nodes[function].parent; at != top;
         at = t->nodes[at].parent) {
        own = own && is_own_bridge(t, at, function);
        count += !own && t->nodes[at].kind == WEFT_PCI_BRIDGE;
    }
    return count;
}

static size_t common_ancestor(const struct weft_pci_tree *t, size_t a, size_t b)
{
    while (a != b && a != WEFT_PCI_NONE && b != WEFT_PCI_NONE) {
        if (t->nodes[a].depth >= t->nodes[b].depth) {
            a = t->nodes[a].parent;
        } else {
            b = t->nodes[b].parent;
        }
    }
    return a == b ? a : WEFT_PCI_NONE;
}

static bool same_pci_device(const struct weft_bdf *a, const struct weft_bdf *b)
{
    return a->known && b->known && a->domain == b->domain && a->bus == b->bus &&
           a->device == b->device;
}

int weft_pci_distance(const struct weft_pci_tree *t, size_t a, size_t b)
{
    if (a == b || (t->nodes[a].parent == t->nodes[b].parent &&
                   same_pci_device(&t->nodes[a].bdf, &t->nodes[b].bdf))) {
        return WEFT_DISTANCE_PSB;
    }
    const size_t top = common_ancestor(t, a, b);
    if (top == WEFT_PCI_NONE || t->nodes[top].kind == WEFT_PCI_OUTER) {
        return WEFT_DISTANCE_UNKNOWN;
    }
    if (t->nodes[top].kind == WEFT_PCI_HOST) {
        return WEFT_DISTANCE_PHB;
    }
    if (is_own_bridge(t, top, a) && is_own_bridge(t, top, b)) {
        return WEFT_DISTANCE_PSB;
    }
    const bool near =
        bridges_between(t, a, top) <= t->ports && bridges_between(t, b, top) <= t->ports;
    return near ? WEFT_DISTANCE_PIX : WEFT_DISTANCE_PXB;
}

/* Device ids whose name in pci.ids is "... Virtual Function". */
static bool is_virtual(const struct weft_pci_node *f)
{
    static const struct {
        uint16_t vendor, device;
    } ids[] = {
        {0x15b3, 0x1002}, {0x15b3, 0x1004}, {0x15b3, 0x1012}, {0x15b3, 0x1014}, {0x15b3, 0x1016},
        {0x15b3, 0x1018}, {0x15b3, 0x101a}, {0x15b3, 0x101c}, {0x15b3, 0x101e}, {0x15b3, 0xa2d3},
        {0x8086, 0x10ca}, {0x8086, 0x10ed}, {0x8086, 0x1515}, {0x8086, 0x1520}, {0x8086, 0x154c},
        {0x8086, 0x1565}, {0x8086, 0x1889}, {0x8086, 0x37cd}, {0x14e4, 0x16dc}, {0x14e4, 0x16c1},
        {0x14e4, 0x1806}, {0x14e4, 0x1807}, {0x14e4, 0x1808}, {0x14e4, 0x1809},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(ids); i++) {
        if (ids[i].vendor == f->vendor && ids[i].device == f->device) {
            return true;
        }
    }
    return f->named_virtual;
}

bool weft_pci_is_virtual_beside_physical(const struct weft_pci_tree *t, size_t function)
{
    const struct weft_pci_node *f = &t->nodes[function];
    if (!is_virtual(f)) {
        return false;
    }
    for (size_t i = 0; i < t->count; i++) {
        const struct weft_pci_node *other = &t->nodes[i];
        if (other->parent == f->parent && other->vendor == f->vendor &&
            other->kind == WEFT_PCI_FUNCTION && !is_virtual(other)) {
            return true;
        }
    }
    return false;
}

bool weft_pci_is_gpu_class(uint32_t class)
{
    /* VGA, 3D, other display (PCI code and ID assignment, base class 03h); accelerators (12h) */
    return class == 0x0300 || class == 0x0302 || class == 0x0380 || class == 0x1200;
}

bool weft_pci_is_nic_class(uint32_t class)
{
    return class >> 8 == 0x02;
}

enum weft_nic_layer weft_pci_layer(uint32_t class)
{
    if (class == 0x0207) {
        return WEFT_NIC_LAYER_INFINIBAND;
    }
    return class == 0x0200 ? WEFT_NIC_LAYER_ETHERNET : WEFT_NIC_LAYER_UNKNOWN;
}

uint8_t weft_pci_generation(const char *speed)
{
    static const char *const rates[] = {"2.5", "5", "8", "16", "32", "64"};
    struct weft_str rest = weft_str(speed);
    struct weft_str rate;
    struct weft_str unit;
    if (!weft_str_word(&rest, &rate) || !weft_str_word(&rest, &unit) ||
        !weft_str_eq(unit, "GT/s")) {
        return 0;
    }
    if (weft_str_ends(rate, ".0")) {
        rate.len -= 2;
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rates); i++) {
        if (weft_str_eq(rate, rates[i])) {
            return (uint8_t)(i + 1);
        }
    }
    return 0;
}
