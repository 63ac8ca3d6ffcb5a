/* SPDX-License-Identifier: Apache-2.0 */
/* Takes an NCCL topology file apart. Elements that are not known (a later NCCL's) are passed over
 * with all in them; attributes that matter are checked, with the line of what is wrong. */
#include "pkg/machine/nccl-xml-internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/machine/host-internal.h"
#include "pkg/machine/machine-internal.h"
#include "pkg/xml/xml.h"

enum element {
    ELEMENT_SYSTEM,
    ELEMENT_CPU,
    ELEMENT_PCI,
    ELEMENT_GPU,
    ELEMENT_LINK,
    ELEMENT_NIC,
    ELEMENT_NET,
    ELEMENT_OTHER,
};

/* An open element; index is that of its cpu, pci or gpu. */
struct open {
    enum element element;
    size_t index;
};

struct parse {
    struct weft_nccl *nccl;
    struct open stack[WEFT_XML_DEPTH_MAX];
    size_t depth;
};

static const struct open *find_open(const struct parse *p, enum element element)
{
    for (size_t i = p->depth; i > 0; i--) {
        if (p->stack[i - 1].element == element) {
            return &p->stack[i - 1];
        }
    }
    return NULL;
}

/* A place at the end of one of the lists, zeroed. */
#define APPEND(nccl, list, max, ret)                                                               \
    append((void **)&(nccl)->list##s, &(nccl)->list##_cap, &(nccl)->list##_count,                  \
           sizeof(*(nccl)->list##s), max, ret)

static int append(void **array, size_t *cap, size_t *count, size_t size, size_t max,
                  size_t *ret_index)
{
    void *grown = *array;
    const int rc = weft_array_reserve(&grown, cap, *count + 1, size, max);
    *array = grown;
    if (rc == 0) {
        *ret_index = (*count)++;
        memset((char *)*array + (*ret_index * size), 0, size);
    }
    return rc;
}

static int no_room(const struct weft_xml *x, int rc, const char *what, struct weft_error *err)
{
    if (rc == -ENOMEM) {
        return weft_err_nomem(err);
    }
    (void)weft_xml_error(x, err, "more <%s> elements than are handled", what);
    if (err != NULL) {
        err->code = rc;
    }
    return rc;
}

static int parse_bdf(const struct weft_xml *x, const char *const *attrs, const char *element,
                     struct weft_bdf *ret, struct weft_error *err)
{
    const char *text = weft_xml_attr(attrs, "busid");
    if (text == NULL || weft_bdf_parse(text, ret) < 0) {
        return weft_xml_error(x, err,
                              "<%s busid=\"%.40s\">: not a PCI address such as 0000:1b:00.0",
                              element, text != NULL ? text : "");
    }
    return 0;
}

static int start_system(const struct parse *p, const struct weft_xml *x, const char *name,
                        struct weft_error *err)
{
    if (p->depth != 0) {
        return weft_xml_error(x, err, "<system> inside another element");
    }
    (void)name;
    return 0;
}

/* Files of machines that share one NVLink domain hold the <cpu>s of several hosts. */
static int check_host(struct weft_nccl *n, const struct weft_xml *x, const char *const *attrs,
                      struct weft_error *err)
{
    const char *hash = weft_xml_attr(attrs, "host_hash");
    if (hash == NULL) {
        return 0;
    }
    if (n->host_hash[0] == '\0') {
        (void)weft_machine_copy_visible(n->host_hash, sizeof(n->host_hash), hash, strlen(hash));
        n->host_hash_line = weft_xml_line(x);
        return 0;
    }
    if (strncmp(hash, n->host_hash, sizeof(n->host_hash) - 1) != 0) {
        return weft_xml_error(x, err,
                              "<cpu host_hash=\"%.31s\"> is of another host than that of line %u; "
                              "one machine a file",
                              hash, n->host_hash_line);
    }
    return 0;
}

static int start_cpu(struct parse *p, const struct weft_xml *x, const char *const *attrs,
                     struct weft_error *err)
{
    struct weft_nccl *n = p->nccl;
    int rc = check_host(n, x, attrs, err);
    if (rc < 0) {
        return rc;
    }
    size_t index = 0;
    rc = APPEND(n, cpu, WEFT_NCCL_CPUS_MAX, &index);
    rc = rc < 0 ? rc
                : weft_pci_add(&n->tree, WEFT_PCI_NONE, WEFT_PCI_OUTER, weft_xml_line(x),
                               &n->cpus[index].node);
    if (rc < 0) {
        return no_room(x, rc, "cpu", err);
    }
    const char *numa = weft_xml_attr(attrs, "numaid");
    const char *mask = weft_xml_attr(attrs, "affinity");
    int64_t id = 0;
    if (numa != NULL && weft_parse_i64(weft_str(numa), -1, INT32_MAX, &id) < 0) {
        return weft_xml_error(x, err, "<cpu numaid=\"%.40s\"> is not a NUMA node's number", numa);
    }
    struct weft_nccl_cpu *cpu = &n->cpus[index];
    cpu->numa = numa != NULL && id >= 0;
    const char *label = cpu->numa ? numa : mask;
    if (label != NULL && strlen(label) < sizeof(cpu->label)) {
        (void)weft_machine_copy_visible(cpu->label, sizeof(cpu->label), label, strlen(label));
    }
    p->stack[p->depth].index = index;
    return 0;
}

static int read_pci_attrs(struct weft_nccl *n, const struct weft_xml *x, const char *const *attrs,
                          struct weft_nccl_pci *pci, struct weft_error *err)
{
    struct weft_pci_node *node = &n->tree.nodes[pci->node];
    uint64_t class = 0;
    uint64_t vendor = 0;
    uint64_t device = 0;
    uint64_t width = 0;
    if (weft_xml_attr_u64(x, attrs, "class", 0xffffff, &class, err) < 0 ||
        weft_xml_attr_u64(x, attrs, "vendor", 0xffff, &vendor, err) < 0 ||
        weft_xml_attr_u64(x, attrs, "device", 0xffff, &device, err) < 0 ||
        weft_xml_attr_u64(x, attrs, "link_width", 64, &width, err) < 0) {
        return -EINVAL;
    }
    node->class = (uint32_t)(class >> 8);
    node->vendor = (uint32_t)vendor;
    node->device = (uint32_t)device;
    const char *speed = weft_xml_attr(attrs, "link_speed");
    pci->link.generation = speed != NULL ? weft_pci_generation(speed) : 0;
    pci->link.width = (uint8_t)width;
    return 0;
}

static int start_pci(struct parse *p, const struct weft_xml *x, const char *const *attrs,
                     struct weft_error *err)
{
    struct weft_nccl *n = p->nccl;
    const struct open *above = find_open(p, ELEMENT_PCI);
    const struct open *cpu = find_open(p, ELEMENT_CPU);
    size_t parent = cpu != NULL ? n->cpus[cpu->index].node : WEFT_PCI_NONE;
    if (above != NULL) {
        struct weft_nccl_pci *bridge = &n->pcis[above->index];
        parent = bridge->node;
        bridge->leaf = false;
        n->tree.nodes[parent].kind = WEFT_PCI_BRIDGE;
    }
    size_t index = 0;
    size_t node = 0;
    int rc = APPEND(n, pci, WEFT_PCI_NODES_MAX, &index);
    rc = rc < 0 ? rc : weft_pci_add(&n->tree, parent, WEFT_PCI_FUNCTION, weft_xml_line(x), &node);
    if (rc < 0) {
        return no_room(x, rc, "pci", err);
    }
    struct weft_nccl_pci *pci = &n->pcis[index];
    *pci = (struct weft_nccl_pci){.node = node,
                                  .cpu = cpu != NULL ? cpu->index : WEFT_PCI_NONE,
                                  .leaf = true,
                                  .nic = WEFT_PCI_NONE};
    p->stack[p->depth].index = index;
    rc = parse_bdf(x, attrs, "pci", &n->tree.nodes[node].bdf, err);
    return rc < 0 ? rc : read_pci_attrs(n, x, attrs, pci, err);
}

static int check_new_gpu(const struct weft_nccl *n, const struct weft_xml *x, size_t pci, int dev,
                         struct weft_error *err)
{
    for (size_t i = 0; i < n->gpu_count; i++) {
        if (n->gpus[i].dev == dev) {
            return weft_xml_error(x, err, "a second <gpu dev=\"%d\"> (line %u)", dev,
                                  n->gpus[i].line);
        }
        if (weft_bdf_cmp(&n->tree.nodes[n->pcis[n->gpus[i].pci].node].bdf,
                         &n->tree.nodes[n->pcis[pci].node].bdf) == 0) {
            return weft_xml_error(x, err, "a second <gpu> at the PCI address of line %u",
                                  n->gpus[i].line);
        }
    }
    return 0;
}

static int start_gpu(struct parse *p, const struct weft_xml *x, const char *const *attrs,
                     struct weft_error *err)
{
    struct weft_nccl *n = p->nccl;
    const struct open *pci = find_open(p, ELEMENT_PCI);
    if (pci == NULL) {
        return weft_xml_error(x, err, "<gpu> outside any <pci>");
    }
    uint64_t dev = 0;
    uint64_t sm = 0;
    const int has_dev = weft_xml_attr_u64(x, attrs, "dev", 65535, &dev, err);
    if (has_dev < 0 || weft_xml_attr_u64(x, attrs, "sm", 65535, &sm, err) < 0) {
        return -EINVAL;
    }
    if (has_dev == 0) {
        return weft_xml_error(x, err, "<gpu> without dev, the GPU's number");
    }
    int rc = check_new_gpu(n, x, pci->index, (int)dev, err);
    if (rc < 0) {
        return rc;
    }
    size_t index = 0;
    rc = APPEND(n, gpu, WEFT_NCCL_GPUS_MAX, &index);
    if (rc < 0) {
        return no_room(x, rc, "gpu", err);
    }
    n->pcis[pci->index].has_gpu = true;
    struct weft_nccl_gpu *gpu = &n->gpus[index];
    gpu->pci = pci->index;
    gpu->dev = (int)dev;
    gpu->sm = (uint32_t)sm;
    gpu->line = weft_xml_line(x);
    const char *gcn = weft_xml_attr(attrs, "gcn");
    if (gcn != NULL) {
        (void)weft_machine_copy_visible(gpu->gcn, sizeof(gpu->gcn), gcn, strlen(gcn));
    }
    p->stack[p->depth].index = index;
    return 0;
}

static int start_link(const struct parse *p, const struct weft_xml *x, const char *const *attrs,
                      struct weft_error *err)
{
    struct weft_nccl *n = p->nccl;
    const struct open *gpu = find_open(p, ELEMENT_GPU);
    if (gpu == NULL) {
        return weft_xml_error(x, err, "a link outside any <gpu>");
    }
    uint64_t count = 0;
    uint64_t class = 0;
    const int has_count = weft_xml_attr_u64(x, attrs, "count", WEFT_MACHINE_LINKS_MAX, &count, err);
    if (has_count < 0 || weft_xml_attr_u64(x, attrs, "tclass", 0xffffff, &class, err) < 0) {
        return -EINVAL;
    }
    const char *target = weft_xml_attr(attrs, "target");
    if (has_count == 0 || target == NULL) {
        return weft_xml_error(x, err, "a link without %s", has_count == 0 ? "count" : "target");
    }
    size_t index = 0;
    const int rc = APPEND(n, link, WEFT_NCCL_LINKS_MAX, &index);
    if (rc < 0) {
        return no_room(x, rc, "nvlink", err);
    }
    struct weft_nccl_link *link = &n->links[index];
    link->gpu = gpu->index;
    link->count = (uint32_t)count;
    link->class = (uint32_t)(class >> 8);
    link->line = weft_xml_line(x);
    (void)weft_machine_copy_visible(link->target_text, sizeof(link->target_text), target,
                                    strlen(target));
    if (weft_bdf_parse(target, &link->target) < 0 && link->class != WEFT_NCCL_SWITCH_CLASS) {
        return weft_xml_error(x, err,
                              "link target=\"%.31s\": not a PCI address such as 0000:1b:00.0",
                              link->target_text);
    }
    return 0;
}

static int start_net(const struct parse *p, const struct weft_xml *x, const char *const *attrs,
                     struct weft_error *err)
{
    struct weft_nccl *n = p->nccl;
    const struct open *pci = find_open(p, ELEMENT_PCI);
    if (pci == NULL || n->pcis[pci->index].nic != WEFT_PCI_NONE) {
        return 0; /* a device without a PCI function, or a further port of one */
    }
    size_t index = 0;
    const int rc = APPEND(n, net, WEFT_PCI_NODES_MAX, &index);
    if (rc < 0) {
        return no_room(x, rc, "net", err);
    }
    struct weft_nccl_net *net = &n->nets[index];
    const char *name = weft_xml_attr(attrs, "name");
    if (name != NULL) {
        (void)weft_machine_copy_visible(net->name, sizeof(net->name), name, strlen(name));
    }
    if (weft_xml_attr_u64(x, attrs, "speed", INT32_MAX, &net->speed, err) < 0 ||
        weft_xml_attr_u64(x, attrs, "guid", UINT64_MAX, &net->guid, err) < 0) {
        return -EINVAL;
    }
    n->pcis[pci->index].nic = index;
    return 0;
}

static enum element element_of(const char *name)
{
    static const struct {
        const char *name;
        enum element element;
    } elements[] = {
        {"system", ELEMENT_SYSTEM}, {"cpu", ELEMENT_CPU},     {"pci", ELEMENT_PCI},
        {"gpu", ELEMENT_GPU},       {"nvlink", ELEMENT_LINK}, {"xgmi", ELEMENT_LINK},
        {"nic", ELEMENT_NIC},       {"net", ELEMENT_NET},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(elements); i++) {
        if (strcmp(elements[i].name, name) == 0) {
            return elements[i].element;
        }
    }
    return ELEMENT_OTHER;
}

static int on_start(void *context, const struct weft_xml *x, const char *name,
                    const char *const *attrs, struct weft_error *err)
{
    struct parse *p = context;
    const bool skipped = p->depth > 0 && p->stack[p->depth - 1].element == ELEMENT_OTHER;
    const enum element element = skipped ? ELEMENT_OTHER : element_of(name);
    p->stack[p->depth] = (struct open){.element = element, .index = WEFT_PCI_NONE};
    int rc = 0;
    switch (element) {
    case ELEMENT_SYSTEM:
        rc = start_system(p, x, name, err);
        break;
    case ELEMENT_CPU:
        rc = start_cpu(p, x, attrs, err);
        break;
    case ELEMENT_PCI:
        rc = start_pci(p, x, attrs, err);
        break;
    case ELEMENT_GPU:
        rc = start_gpu(p, x, attrs, err);
        break;
    case ELEMENT_LINK:
        p->nccl->xgmi = p->nccl->xgmi || name[0] == 'x';
        rc = start_link(p, x, attrs, err);
        break;
    case ELEMENT_NET:
        rc = start_net(p, x, attrs, err);
        break;
    case ELEMENT_NIC:
    case ELEMENT_OTHER:
        break;
    }
    p->depth++;
    p->nccl->last_line = weft_xml_line(x);
    return rc;
}

static int on_end(void *context, const struct weft_xml *x, const char *name, struct weft_error *err)
{
    struct parse *p = context;
    const struct open *open = &p->stack[--p->depth];
    (void)name, (void)err;
    if (open->element == ELEMENT_PCI) {
        p->nccl->pcis[open->index].whole = true;
    } else if (open->element == ELEMENT_GPU) {
        p->nccl->gpus[open->index].whole = true;
    }
    p->nccl->last_line = weft_xml_line(x);
    return 0;
}

int weft_nccl_parse(const char *text, size_t len, const char *file, struct weft_nccl *ret_nccl,
                    struct weft_error *err)
{
    static const struct weft_xml_handler handler = {.start = on_start, .end = on_end};
    weft_auto(weft_nccl_done) struct weft_nccl n = {.file = file};
    weft_autofree struct parse *p = weft_calloc(1, sizeof(*p));
    if (p == NULL) {
        return weft_err_nomem(err);
    }
    p->nccl = &n;
    const int rc = weft_xml_parse(text, len, file, &handler, p, err);
    if (rc < 0) {
        return rc;
    }
    n.cut = rc == 1;
    *ret_nccl = n;
    n = (struct weft_nccl){0};
    return 0;
}

void weft_nccl_done(struct weft_nccl *n)
{
    if (n != NULL) {
        weft_pci_done(&n->tree);
        weft_free(n->cpus);
        weft_free(n->pcis);
        weft_free(n->gpus);
        weft_free(n->links);
        weft_free(n->nets);
        *n = (struct weft_nccl){0};
    }
}
