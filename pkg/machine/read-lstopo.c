/* SPDX-License-Identifier: Apache-2.0 */
/* From an lstopo XML file to a machine: which PCI functions are GPUs and NICs, where they sit. T
 * and N come from the file's PCI tree (pci-tree-internal.h), B from its matrices of bandwidths
 * (read-lstopo-links.c). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/machine/host-internal.h"
#include "pkg/machine/lstopo-build-internal.h"
#include "pkg/machine/machine-internal.h"

static const struct weft_pci_node *node_at(const struct weft_lstopo_build *b, size_t node)
{
    return &b->l->tree.nodes[node];
}

/* ---- which functions are GPUs and NICs ---- */

static void note_osdev(struct weft_lstopo_build *b, size_t at)
{
    const struct weft_lstopo_osdev *d = &b->l->osdevs[at];
    struct weft_lstopo_face *face = &b->faces[d->function];
    size_t *place = NULL;
    switch (d->kind) {
    case WEFT_LSTOPO_RSMI:
        face->rsmi_count++;
        place = &face->vendor;
        break;
    case WEFT_LSTOPO_NVML:
        place = &face->vendor;
        break;
    case WEFT_LSTOPO_CUDA:
    case WEFT_LSTOPO_ZE:
        place = &face->runtime;
        break;
    case WEFT_LSTOPO_NET:
        place = &face->net;
        break;
    case WEFT_LSTOPO_RDMA:
        place = &face->rdma;
        break;
    case WEFT_LSTOPO_OPENCL:
        face->opencl = true;
        break;
    case WEFT_LSTOPO_OTHER:
    case WEFT_LSTOPO_OSDEV_KIND_COUNT:
        break;
    }
    if (place != NULL && *place == WEFT_PCI_NONE) {
        *place = at;
    }
    if (d->model[0] != '\0' && face->model == NULL) {
        face->model = d->model;
    }
    b->any_net = b->any_net || d->kind == WEFT_LSTOPO_NET || d->kind == WEFT_LSTOPO_RDMA;
}

static bool is_gpu(const struct weft_lstopo_build *b, size_t node)
{
    const struct weft_pci_node *f = node_at(b, node);
    const struct weft_lstopo_face *face = &b->faces[node];
    if (f->kind != WEFT_PCI_FUNCTION || !b->l->objects[node].whole) {
        return false;
    }
    if (face->vendor != WEFT_PCI_NONE || face->runtime != WEFT_PCI_NONE) {
        return true;
    }
    if (!weft_pci_is_gpu_class(f->class)) {
        return false;
    }
    /* Intel's VGA class is the display part of its processors; a board's VGA chip is of others */
    return face->opencl || f->vendor == 0x10de || f->vendor == 0x1002 || f->vendor == 0x1ed5 ||
           (f->vendor == 0x8086 && f->class != 0x0300);
}

/* A network function that has a device, or any of its class where the file shows no devices. Other
 * network controllers (0280h: wireless) count with an RDMA device only. */
static bool is_nic(const struct weft_lstopo_build *b, size_t node)
{
    const struct weft_pci_node *f = node_at(b, node);
    const struct weft_lstopo_face *face = &b->faces[node];
    if (f->kind != WEFT_PCI_FUNCTION || !b->l->objects[node].whole ||
        !weft_pci_is_nic_class(f->class) ||
        weft_pci_is_virtual_beside_physical(&b->l->tree, node)) {
        return false;
    }
    const bool wired = f->class != 0x0280;
    return face->rdma != WEFT_PCI_NONE || (wired && (face->net != WEFT_PCI_NONE || !b->any_net));
}

/* The partitions of one GPU show as several rsmi devices on one function. */
static void add_devices(struct weft_lstopo_build *b, size_t node)
{
    const struct weft_lstopo_face *face = &b->faces[node];
    if (face->rsmi_count < 2) {
        const size_t osdev = face->vendor != WEFT_PCI_NONE ? face->vendor : face->runtime;
        b->devices[b->device_count++] = (struct weft_lstopo_device){node, osdev, -1};
        return;
    }
    int partition = 0;
    for (size_t i = 0; i < b->l->osdev_count; i++) {
        if (b->l->osdevs[i].function == node && b->l->osdevs[i].kind == WEFT_LSTOPO_RSMI) {
            b->devices[b->device_count++] = (struct weft_lstopo_device){node, i, partition++};
        }
    }
}

static int pick(struct weft_lstopo_build *b)
{
    const struct weft_lstopo *l = b->l;
    const size_t n = l->object_count > 0 ? l->object_count : 1;
    b->faces = weft_calloc(n, sizeof(*b->faces));
    b->devices = weft_calloc(n + l->osdev_count, sizeof(*b->devices));
    b->nics = weft_calloc(n, sizeof(*b->nics));
    if (b->faces == NULL || b->devices == NULL || b->nics == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < l->object_count; i++) {
        struct weft_lstopo_face *face = &b->faces[i];
        face->vendor = face->runtime = face->net = face->rdma = WEFT_PCI_NONE;
    }
    for (size_t i = 0; i < l->osdev_count; i++) {
        if (l->osdevs[i].function != WEFT_PCI_NONE) {
            note_osdev(b, i);
        }
    }
    for (size_t i = 0; i < l->object_count; i++) {
        if (is_gpu(b, i)) {
            add_devices(b, i);
        } else if (is_nic(b, i)) {
            b->nics[b->nic_count++] = i;
        }
    }
    return 0;
}

/* ---- where they sit ---- */

/* The nearest object above that is not PCI: what the function is local to. */
static size_t local_object(const struct weft_lstopo_build *b, size_t node)
{
    while (node != WEFT_PCI_NONE && b->l->objects[node].io) {
        node = node_at(b, node)->parent;
    }
    return node;
}

/* Of several NUMA nodes for the same processors (HBM beside DRAM) the first is the processors'. */
static int numa_of(const struct weft_lstopo_build *b, size_t node)
{
    const size_t local = local_object(b, node);
    if (local == WEFT_PCI_NONE) {
        return -1;
    }
    const struct weft_lstopo_object *o = &b->l->objects[local];
    return o->numa >= 0 ? o->numa : o->own_numa;
}

static bool is_inside(const struct weft_lstopo_build *b, size_t node, size_t outer)
{
    while (node != WEFT_PCI_NONE && node != outer) {
        node = node_at(b, node)->parent;
    }
    return node == outer;
}

/* The package around the function, or the only one in what it is local to. */
static int socket_of(const struct weft_lstopo_build *b, size_t node)
{
    const size_t local = local_object(b, node);
    for (size_t at = local; at != WEFT_PCI_NONE; at = node_at(b, at)->parent) {
        if (b->l->objects[at].package >= 0) {
            return b->l->objects[at].package;
        }
    }
    int only = -1;
    for (size_t i = 0; local != WEFT_PCI_NONE && i < b->l->object_count; i++) {
        if (b->l->objects[i].package >= 0 && is_inside(b, i, local)) {
            if (only >= 0) {
                return -1;
            }
            only = b->l->objects[i].package;
        }
    }
    return only;
}

/* ---- devices ---- */

/* Do all have a number of the same library, so that it can be their index? */
static bool numbers_usable(const struct weft_lstopo_build *b)
{
    for (size_t i = 0; i < b->device_count; i++) {
        const size_t at = b->devices[i].osdev;
        const size_t first = b->devices[0].osdev;
        if (at == WEFT_PCI_NONE || b->l->osdevs[at].number < 0 ||
            b->l->osdevs[at].kind != b->l->osdevs[first].kind) {
            return false;
        }
    }
    return true;
}

/* How many devices come before by address (then partition); of whole GPUs if whole. */
static int rank_by_address(const struct weft_lstopo_build *b, size_t device, bool whole)
{
    const struct weft_lstopo_device *d = &b->devices[device];
    int rank = 0;
    for (size_t i = 0; i < b->device_count; i++) {
        const struct weft_lstopo_device *other = &b->devices[i];
        const int order = weft_bdf_cmp(&node_at(b, other->node)->bdf, &node_at(b, d->node)->bdf);
        const bool before = order < 0 || (order == 0 && other->partition < d->partition);
        rank += whole ? order < 0 && other->partition <= 0 : before;
    }
    return rank;
}

static void set_device(const struct weft_lstopo_build *b, size_t i, bool numbered)
{
    const struct weft_lstopo_device *from = &b->devices[i];
    const struct weft_lstopo_face *face = &b->faces[from->node];
    struct weft_device *d = &b->machine->devices[i];
    d->bdf = node_at(b, from->node)->bdf;
    d->index = numbered ? b->l->osdevs[from->osdev].number : rank_by_address(b, i, false);
    (void)snprintf(d->id, sizeof(d->id), "GPU%d", d->index);
    const char *model = face->model != NULL ? face->model : b->l->objects[from->node].name;
    (void)snprintf(d->model, sizeof(d->model), "%s", model);
    d->socket = socket_of(b, from->node);
    char label[16];
    const int numa = numa_of(b, from->node);
    (void)snprintf(label, sizeof(label), "%d", numa);
    weft_device_set_numa(d, label, strlen(label));
    if (from->partition >= 0) {
        d->partition = from->partition;
        d->parent = rank_by_address(b, i, true);
    }
}

static const char *vendor_name(uint32_t vendor)
{
    static const struct {
        uint32_t id;
        const char *name;
    } names[] = {{0x10de, "nvidia"}, {0x1002, "amd"}, {0x8086, "intel"}, {0x1ed5, "mthreads"}};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
        if (names[i].id == vendor) {
            return names[i].name;
        }
    }
    return "";
}

static int set_vendor(const struct weft_lstopo_build *b)
{
    const uint32_t first = b->device_count > 0 ? node_at(b, b->devices[0].node)->vendor : 0;
    bool same = true;
    for (size_t i = 0; i < b->device_count; i++) {
        same = same && node_at(b, b->devices[i].node)->vendor == first;
    }
    weft_free(b->machine->vendor);
    b->machine->vendor = weft_strdup(same ? vendor_name(first) : "");
    if (b->machine->vendor == NULL) {
        return -ENOMEM;
    }
    return same ? 0 : weft_machine_warn(b->machine, "the GPUs are of several vendors");
}

static void set_nic(const struct weft_lstopo_build *b, size_t i)
{
    const size_t node = b->nics[i];
    const struct weft_lstopo_face *face = &b->faces[node];
    struct weft_nic *nic = &b->machine->nics[i];
    nic->bdf = node_at(b, node)->bdf;
    nic->numa_node = numa_of(b, node);
    nic->layer = weft_pci_layer(node_at(b, node)->class);
    (void)snprintf(nic->name, sizeof(nic->name), "NIC%zu", i);
    if (face->net != WEFT_PCI_NONE) {
        const char *name = b->l->osdevs[face->net].name;
        (void)snprintf(nic->netdev, sizeof(nic->netdev), "%.31s", name);
        (void)snprintf(nic->name, sizeof(nic->name), "%s", name);
    }
    if (face->rdma != WEFT_PCI_NONE) {
        const struct weft_lstopo_osdev *rdma = &b->l->osdevs[face->rdma];
        (void)snprintf(nic->name, sizeof(nic->name), "%s", rdma->name);
        nic->guid = rdma->guid;
        nic->up = rdma->port_up;
    }
    for (size_t d = 0; d < b->device_count; d++) {
        weft_machine_set_nic(b->machine, d, i,
                             weft_pci_distance(&b->l->tree, b->devices[d].node, node));
    }
}

/* ---- what the file leaves open ---- */

static int warn_rest(const struct weft_lstopo_build *b)
{
    const struct weft_lstopo *l = b->l;
    struct weft_machine *m = b->machine;
    size_t functions = 0;
    for (size_t i = 0; i < l->object_count; i++) {
        functions += node_at(b, i)->kind == WEFT_PCI_FUNCTION;
    }
    m->partial = l->cut;
    int rc = 0;
    if (l->cut) {
        rc = weft_machine_warn(m,
                               "the file is cut after line %u: only what is whole is here; the "
                               "matrices of links stand at its end",
                               l->last_line);
    }
    if (rc == 0 && functions == 0) {
        rc = weft_machine_warn(m, "the file has no PCI functions (lstopo without I/O devices): "
                                  "a machine without GPUs");
    } else if (rc == 0 && b->device_count == 0) {
        rc = weft_machine_warn(m, "none of the %zu PCI functions is a GPU: a machine without GPUs",
                               functions);
    }
    return rc;
}

/* Numbers come from the file or from its addresses; twice the same says that one is wrong. */
static int check_numbers(const struct weft_lstopo_build *b, struct weft_error *err)
{
    for (size_t i = 0; i < b->device_count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (b->machine->devices[i].index == b->machine->devices[j].index) {
                return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                    "%s:%u: %s has the number or address of the one in line %u",
                                    b->l->file, node_at(b, b->devices[i].node)->line,
                                    b->machine->devices[i].id,
                                    node_at(b, b->devices[j].node)->line);
            }
        }
    }
    return 0;
}

static int fill(const struct weft_lstopo_build *b, struct weft_error *err)
{
    int rc = set_vendor(b);
    rc = rc < 0 ? rc : warn_rest(b);
    if (rc < 0) {
        return weft_err_nomem(err);
    }
    const bool numbered = b->device_count > 0 && numbers_usable(b);
    for (size_t i = 0; i < b->device_count; i++) {
        set_device(b, i, numbered);
    }
    rc = check_numbers(b, err);
    if (rc < 0) {
        return rc;
    }
    weft_machine_group_numa(b->machine);
    for (size_t i = 0; i < b->nic_count; i++) {
        set_nic(b, i);
    }
    return weft_lstopo_set_links(b, err);
}

static int build(struct weft_lstopo_build *b, struct weft_machine **ret_machine,
                 struct weft_error *err)
{
    if (pick(b) < 0) {
        return weft_err_nomem(err);
    }
    if (b->l->cut && b->device_count == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: the file is cut here, before the first whole GPU", b->l->file,
                            b->l->last_line);
    }
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    int rc = weft_machine_new(b->l->file, b->device_count, b->nic_count, &m, err);
    if (rc < 0) {
        return rc;
    }
    b->machine = m;
    rc = fill(b, err);
    rc = rc < 0 ? rc : weft_machine_finish(m, err);
    if (rc == 0) {
        *ret_machine = weft_steal(&m);
    }
    return rc;
}

int weft_machine_read_lstopo(const char *text, size_t len, const char *name,
                             struct weft_machine **ret_machine, struct weft_error *err)
{
    weft_auto(weft_lstopo_done) struct weft_lstopo l = {0};
    int rc = weft_lstopo_parse(text, len, name, &l, err);
    if (rc < 0) {
        return rc;
    }
    struct weft_lstopo_build b = {.l = &l};
    rc = build(&b, ret_machine, err);
    weft_free(b.faces);
    weft_free(b.devices);
    weft_free(b.nics);
    return rc;
}
