/* SPDX-License-Identifier: Apache-2.0 */
/* From an NCCL or RCCL topology file to a machine. The GPUs are the <gpu> elements; a file without
 * any (the static topologies that cloud providers ship) gives those of a GPU's PCI class. T and N
 * come from the file's PCI tree (pci-tree-internal.h), B from the counts of links: one nominal rate
 * for all, since the file names none (allocation.md: rates of one origin a machine). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/machine/host-internal.h"
#include "pkg/machine/machine-internal.h"
#include "pkg/machine/nccl-xml-internal.h"

struct builder {
    const struct weft_nccl *nccl;
    struct weft_machine *machine;
    size_t *gpus; /* per device: index of its <gpu>, WEFT_PCI_NONE in a file without any */
    size_t *pcis; /* per device: index of its <pci> */
    size_t *nics; /* per NIC: index of its <pci> */
    size_t device_count, nic_count;
    uint32_t *switch_links; /* per device: links to switches */
};

static const struct weft_pci_node *node_of(const struct weft_nccl *n, size_t pci)
{
    return &n->tree.nodes[n->pcis[pci].node];
}

static bool is_bare(const struct weft_nccl *n, size_t pci)
{
    return n->pcis[pci].leaf && n->pcis[pci].whole && !n->pcis[pci].has_gpu &&
           n->pcis[pci].nic == WEFT_PCI_NONE;
}

/* ---- which devices and NICs there are ---- */

static int allocate_lists(struct builder *b)
{
    const size_t most = b->nccl->pci_count > 0 ? b->nccl->pci_count : 1;
    b->gpus = weft_calloc(most, sizeof(*b->gpus));
    b->pcis = weft_calloc(most, sizeof(*b->pcis));
    b->nics = weft_calloc(most, sizeof(*b->nics));
    b->switch_links = weft_calloc(most, sizeof(*b->switch_links));
    const bool all =
        b->gpus != NULL && b->pcis != NULL && b->nics != NULL && b->switch_links != NULL;
    return all ? 0 : -ENOMEM;
}

static void pick_devices(struct builder *b)
{
    const struct weft_nccl *n = b->nccl;
    for (size_t i = 0; i < n->gpu_count; i++) {
        if (n->gpus[i].whole) {
            b->gpus[b->device_count] = i;
            b->pcis[b->device_count++] = n->gpus[i].pci;
        }
    }
    for (size_t i = 0; n->gpu_count == 0 && i < n->pci_count; i++) {
        if (is_bare(n, i) && weft_pci_is_gpu_class(node_of(n, i)->class)) {
            b->gpus[b->device_count] = WEFT_PCI_NONE;
            b->pcis[b->device_count++] = i;
        }
    }
}

static void pick_nics(struct builder *b)
{
    const struct weft_nccl *n = b->nccl;
    for (size_t i = 0; i < n->pci_count; i++) {
        const bool by_class =
            n->net_count == 0 && is_bare(n, i) && weft_pci_is_nic_class(node_of(n, i)->class);
        if ((by_class || n->pcis[i].nic != WEFT_PCI_NONE) &&
            !weft_pci_is_virtual_beside_physical(&n->tree, n->pcis[i].node)) {
            b->nics[b->nic_count++] = i;
        }
    }
}

/* ---- devices ---- */

/* "90" is compute capability 9.0; AMD's gcn is "gfx942" or, in older files, the number alone, where
 * 910 stands for gfx90a (HIP's gcnArch). */
static void set_capability(struct weft_device *d, const struct weft_nccl_gpu *gpu)
{
    if (gpu->gcn[0] == '\0') {
        if (gpu->sm >= 10) {
            (void)snprintf(d->capability, sizeof(d->capability), "%u.%u", gpu->sm / 10,
                           gpu->sm % 10);
        }
    } else if (strcmp(gpu->gcn, "910") == 0) {
        (void)snprintf(d->capability, sizeof(d->capability), "gfx90a");
    } else {
        const bool bare = strncmp(gpu->gcn, "gfx", 3) != 0;
        (void)snprintf(d->capability, sizeof(d->capability), "%s%.12s", bare ? "gfx" : "",
                       gpu->gcn);
    }
}

/* Without numbers in the file: as the driver numbers, in the order of the PCI addresses. */
static int index_by_address(const struct builder *b, size_t device)
{
    int index = 0;
    for (size_t i = 0; i < b->device_count; i++) {
        index += weft_bdf_cmp(&node_of(b->nccl, b->pcis[i])->bdf,
                              &node_of(b->nccl, b->pcis[device])->bdf) < 0;
    }
    return index;
}

/* <gpu>s with one number or address were refused; functions of a skeleton may share an address. */
static int check_addresses(const struct builder *b, struct weft_error *err)
{
    for (size_t i = 0; i < b->device_count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (b->machine->devices[i].index == b->machine->devices[j].index) {
                return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                    "%s:%u: a second <pci> with the address of line %u",
                                    b->nccl->file, node_of(b->nccl, b->pcis[i])->line,
                                    node_of(b->nccl, b->pcis[j])->line);
            }
        }
    }
    return 0;
}

static void set_devices(const struct builder *b)
{
    const struct weft_nccl *n = b->nccl;
    for (size_t i = 0; i < b->device_count; i++) {
        const struct weft_nccl_pci *pci = &n->pcis[b->pcis[i]];
        struct weft_device *d = &b->machine->devices[i];
        d->bdf = node_of(n, b->pcis[i])->bdf;
        d->pcie = pci->link;
        d->index = index_by_address(b, i);
        if (b->gpus[i] != WEFT_PCI_NONE) {
            d->index = n->gpus[b->gpus[i]].dev;
            set_capability(d, &n->gpus[b->gpus[i]]);
        }
        (void)snprintf(d->id, sizeof(d->id), "GPU%d", d->index);
        if (pci->cpu != WEFT_PCI_NONE) {
            const struct weft_nccl_cpu *cpu = &n->cpus[pci->cpu];
            weft_device_set_numa(d, cpu->label, strlen(cpu->label));
            d->numa_node = cpu->numa ? d->numa_node : -1;
        }
    }
    weft_machine_group_numa(b->machine);
}

static void set_nics(const struct builder *b)
{
    const struct weft_nccl *n = b->nccl;
    for (size_t i = 0; i < b->nic_count; i++) {
        const struct weft_nccl_pci *pci = &n->pcis[b->nics[i]];
        struct weft_nic *nic = &b->machine->nics[i];
        nic->bdf = node_of(n, b->nics[i])->bdf;
        nic->layer = weft_pci_layer(node_of(n, b->nics[i])->class);
        (void)snprintf(nic->name, sizeof(nic->name), "NIC%zu", i);
        if (pci->nic != WEFT_PCI_NONE) {
            const struct weft_nccl_net *net = &n->nets[pci->nic];
            if (net->name[0] != '\0') {
                (void)snprintf(nic->name, sizeof(nic->name), "%s", net->name);
            }
            nic->rate_mbps = net->speed;
            nic->guid = net->guid;
        }
        uint64_t numa = 0;
        if (pci->cpu != WEFT_PCI_NONE && n->cpus[pci->cpu].numa &&
            weft_parse_u64(weft_str(n->cpus[pci->cpu].label), INT32_MAX, &numa) == 0) {
            nic->numa_node = (int)numa;
        }
        for (size_t d = 0; d < b->device_count; d++) {
            weft_machine_set_nic(b->machine, d, i,
                                 weft_pci_distance(&n->tree, n->pcis[b->pcis[d]].node, pci->node));
        }
    }
}

static const char *vendor_of(const struct builder *b)
{
    if (b->device_count == 0) {
        return "";
    }
    const struct weft_nccl *n = b->nccl;
    const uint32_t id = node_of(n, b->pcis[0])->vendor;
    const struct weft_nccl_gpu *gpu = b->gpus[0] != WEFT_PCI_NONE ? &n->gpus[b->gpus[0]] : NULL;
    if (id == 0x1002 || n->xgmi || (gpu != NULL && gpu->gcn[0] != '\0')) {
        return "amd";
    }
    return id == 0x10de || gpu != NULL ? "nvidia" : "";
}

/* ---- links ---- */

static size_t device_at(const struct builder *b, const struct weft_bdf *bdf)
{
    for (size_t i = 0; i < b->device_count; i++) {
        if (weft_bdf_cmp(&node_of(b->nccl, b->pcis[i])->bdf, bdf) == 0) {
            return i;
        }
    }
    return WEFT_PCI_NONE;
}

static size_t device_of_gpu(const struct builder *b, size_t gpu)
{
    for (size_t i = 0; i < b->device_count; i++) {
        if (b->gpus[i] == gpu) {
            return i;
        }
    }
    return WEFT_PCI_NONE;
}

/* Counts one link element; links to what is not in the file lead nowhere here. */
static int add_link(const struct builder *b, const struct weft_nccl_link *link, size_t *strangers,
                    struct weft_error *err)
{
    struct weft_machine *m = b->machine;
    const size_t from = device_of_gpu(b, link->gpu);
    if (from == WEFT_PCI_NONE) {
        return 0; /* of a GPU that was cut off */
    }
    const bool to_switch = link->class == WEFT_NCCL_SWITCH_CLASS;
    const size_t to = to_switch ? WEFT_PCI_NONE : device_at(b, &link->target);
    struct weft_device *d = &m->devices[from];
    d->links_up = (d->links_up < 0 ? 0 : d->links_up) + (int)link->count;
    if (to == from) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s:%u: a link of %s to itself",
                            b->nccl->file, link->line, d->id);
    }
    if (!to_switch && to == WEFT_PCI_NONE) {
        (*strangers)++;
        return 0;
    }
    uint64_t count = link->count;
    if (to_switch) {
        count = b->switch_links[from] += link->count;
    } else {
        uint64_t *sum = &m->bandwidth[(from * m->device_count) + to];
        *sum += count * WEFT_MACHINE_LINK_MBPS;
        count = *sum / WEFT_MACHINE_LINK_MBPS;
    }
    if (count > WEFT_MACHINE_LINKS_MAX) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: more than %d links of %s to one target", b->nccl->file,
                            link->line, (int)WEFT_MACHINE_LINKS_MAX, d->id);
    }
    return 0;
}

static int set_pairs(const struct builder *b)
{
    struct weft_machine *m = b->machine;
    const size_t n = m->device_count;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n; j++) {
            const uint32_t si = b->switch_links[i];
            const uint32_t sj = b->switch_links[j];
            const uint64_t through = (uint64_t)(si < sj ? si : sj) * WEFT_MACHINE_LINK_MBPS;
            const int distance = weft_pci_distance(&b->nccl->tree, b->nccl->pcis[b->pcis[i]].node,
                                                   b->nccl->pcis[b->pcis[j]].node);
            const struct weft_reading from_i = {m->bandwidth[(i * n) + j] + through, distance};
            const struct weft_reading from_j = {m->bandwidth[(j * n) + i] + through, distance};
            if (!weft_machine_set_pair(m, i, j, from_i, from_j) &&
                weft_machine_warn(
                    m, "%s has %llu links to %s, which has %llu back: the fewer count",
                    m->devices[i].id,
                    (unsigned long long)(from_i.bandwidth / WEFT_MACHINE_LINK_MBPS),
                    m->devices[j].id,
                    (unsigned long long)(from_j.bandwidth / WEFT_MACHINE_LINK_MBPS)) < 0) {
                return -ENOMEM;
            }
        }
    }
    return 0;
}

static int set_links(const struct builder *b, struct weft_error *err)
{
    const struct weft_nccl *n = b->nccl;
    size_t strangers = 0;
    for (size_t i = 0; i < n->link_count; i++) {
        const int rc = add_link(b, &n->links[i], &strangers, err);
        if (rc < 0) {
            return rc;
        }
    }
    int rc = set_pairs(b);
    if (rc == 0 && strangers > 0) {
        rc = weft_machine_warn(b->machine,
                               "%zu link elements lead to PCI addresses that no <gpu> here has; "
                               "they do not count",
                               strangers);
    }
    return rc < 0 ? weft_err_nomem(err) : 0;
}

/* ---- what the file leaves open ---- */

static int warn_skeleton(const struct builder *b)
{
    const struct weft_nccl *n = b->nccl;
    size_t classless = 0;
    size_t spare = 0; /* of a GPU's class, in a file that names its GPUs */
    for (size_t i = 0; i < n->pci_count; i++) {
        classless += is_bare(n, i) && node_of(n, i)->class == 0;
        spare += n->gpu_count > 0 && is_bare(n, i) && weft_pci_is_gpu_class(node_of(n, i)->class);
    }
    int rc = 0;
    if (n->gpu_count == 0 && b->device_count == 0) {
        rc = weft_machine_warn(b->machine, "the file has no <gpu> and no PCI function of a GPU's "
                                           "class: a machine without GPUs");
    } else if (n->gpu_count == 0) {
        rc = weft_machine_warn(b->machine,
                               "the file has no <gpu>: %zu PCI functions of a GPU's class are "
                               "taken for GPUs, numbered by address; their links are not known",
                               b->device_count);
    }
    if (rc == 0 && classless > 0) {
        rc = weft_machine_warn(b->machine,
                               "%zu <pci> elements have no class and nothing in them: whether they "
                               "are GPUs or NICs is not known; they are left out",
                               classless);
    }
    if (rc == 0 && spare > 0) {
        rc = weft_machine_warn(
            b->machine, "%zu PCI functions of a GPU's class have no <gpu>; they are left out",
            spare);
    }
    return rc;
}

static int warn_rest(const struct builder *b)
{
    const struct weft_nccl *n = b->nccl;
    b->machine->partial = n->cut;
    int rc = 0;
    if (n->cut) {
        rc = weft_machine_warn(
            b->machine, "the file is cut after line %u: only what is whole is here", n->last_line);
    }
    for (size_t i = 0; rc == 0 && i < n->gpu_count; i++) {
        if (!n->gpus[i].whole) {
            rc = weft_machine_warn(b->machine, "line %u: <gpu dev=\"%d\"> is cut; it is left out",
                                   n->gpus[i].line, n->gpus[i].dev);
        }
    }
    return rc < 0 ? rc : warn_skeleton(b);
}

static int build(struct builder *b, struct weft_machine **ret_machine, struct weft_error *err)
{
    const struct weft_nccl *n = b->nccl;
    if (allocate_lists(b) < 0) {
        return weft_err_nomem(err);
    }
    pick_devices(b);
    pick_nics(b);
    if (n->cut && b->device_count == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: the file is cut here, before the first whole GPU", n->file,
                            n->last_line);
    }
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    int rc = weft_machine_new(n->file, b->device_count, b->nic_count, &m, err);
    if (rc < 0) {
        return rc;
    }
    b->machine = m;
    weft_free(m->vendor);
    m->vendor = weft_strdup(vendor_of(b));
    if (m->vendor == NULL) {
        return weft_err_nomem(err);
    }
    set_devices(b);
    set_nics(b);
    rc = warn_rest(b) < 0 ? weft_err_nomem(err) : check_addresses(b, err);
    rc = rc < 0 ? rc : set_links(b, err);
    rc = rc < 0 ? rc : weft_machine_finish(m, err);
    if (rc == 0) {
        *ret_machine = weft_steal(&m);
    }
    return rc;
}

int weft_machine_read_nccl_xml(const char *text, size_t len, const char *name,
                               struct weft_machine **ret_machine, struct weft_error *err)
{
    weft_auto(weft_nccl_done) struct weft_nccl n = {0};
    int rc = weft_nccl_parse(text, len, name, &n, err);
    if (rc < 0) {
        return rc;
    }
    struct builder b = {.nccl = &n};
    rc = build(&b, ret_machine, err);
    weft_free(b.gpus);
    weft_free(b.pcis);
    weft_free(b.nics);
    weft_free(b.switch_links);
    return rc;
}
