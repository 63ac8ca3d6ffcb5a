/* SPDX-License-Identifier: Apache-2.0 */
/* Takes an lstopo XML file apart. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/base/str.h"
#include "pkg/machine/lstopo-internal.h"
#include "pkg/machine/machine-internal.h"
#include "pkg/xml/xml.h"

enum {
    NUMBERS_MAX = 24 << 20, /* bytes of one matrix's text: 1280 x 1280 numbers of 14 digits */
    SLURP_NOTHING = 0,
    SLURP_INDEXES,
    SLURP_VALUES,
};

/* An open element. */
struct open {
    size_t object; /* tree node of the nearest object that has one, WEFT_PCI_NONE */
    size_t osdev;  /* index if this is an OS device, WEFT_PCI_NONE */
    bool starts;   /* this element is that object */
};

struct parse {
    struct weft_lstopo *l;
    struct open stack[WEFT_XML_DEPTH_MAX];
    size_t depth;
    bool in_matrix;
    size_t matrix_objects;
    unsigned matrix_line;
    int slurp; /* where text goes */
    struct weft_buf indexes, values;
};

static int over(const struct weft_xml *x, int rc, const char *what, struct weft_error *err)
{
    if (rc == -ENOMEM) {
        return weft_err_nomem(err);
    }
    (void)weft_xml_error(x, err, "more %s than are handled", what);
    if (err != NULL) {
        err->code = rc;
    }
    return rc;
}

/* ---- objects ---- */

static int add_object(struct parse *p, const struct weft_xml *x, enum weft_pci_kind kind,
                      const char *const *attrs, struct weft_error *err)
{
    struct weft_lstopo *l = p->l;
    struct open *open = &p->stack[p->depth];
    size_t node = 0;
    uint64_t gp = 0;
    if (weft_xml_attr_u64(x, attrs, "gp_index", UINT64_MAX, &gp, err) < 0) {
        return -EINVAL;
    }
    int rc = weft_pci_add(&l->tree, open->object, kind, weft_xml_line(x), &node);
    void *objects = l->objects;
    rc = rc < 0 ? rc
                : weft_array_reserve(&objects, &l->object_cap, node + 1, sizeof(*l->objects),
                                     WEFT_PCI_NODES_MAX);
    l->objects = objects;
    if (rc < 0) {
        return over(x, rc, "objects", err);
    }
    const char *nodes = weft_xml_attr(attrs, "nodeset");
    l->objects[node] =
        (struct weft_lstopo_object){.gp_index = gp,
                                    .numa = nodes != NULL ? weft_lstopo_only_bit(nodes) : -1,
                                    .own_numa = -1,
                                    .package = -1,
                                    .io = kind != WEFT_PCI_OUTER};
    l->object_count = node + 1;
    open->object = node;
    open->starts = true;
    return 0;
}

/* "0302 [10de:1db1] [10de:1212] a1" */
static int parse_pci_type(const char *text, struct weft_pci_node *node)
{
    struct weft_str rest = weft_str(text);
    struct weft_str class;
    struct weft_str ids;
    struct weft_str vendor;
    uint64_t value[3];
    if (!weft_str_word(&rest, &class) || !weft_str_word(&rest, &ids) || ids.len != 11 ||
        ids.data[0] != '[' || ids.data[10] != ']') {
        return -EINVAL;
    }
    ids = (struct weft_str){ids.data + 1, 9};
    if (!weft_str_split(&ids, ':', &vendor) || class.len != 4 || vendor.len != 4 ||
        weft_parse_hex64(class, &value[0]) < 0 || weft_parse_hex64(vendor, &value[1]) < 0 ||
        weft_parse_hex64(ids, &value[2]) < 0) {
        return -EINVAL;
    }
    node->class = (uint32_t)value[0];
    node->vendor = (uint32_t)value[1];
    node->device = (uint32_t)value[2];
    return 0;
}

static int read_pci(struct parse *p, const struct weft_xml *x, const char *const *attrs,
                    struct weft_error *err)
{
    const size_t at = p->stack[p->depth].object;
    struct weft_pci_node *node = &p->l->tree.nodes[at];
    const char *busid = weft_xml_attr(attrs, "pci_busid");
    const char *type = weft_xml_attr(attrs, "pci_type");
    if (busid == NULL || weft_bdf_parse(busid, &node->bdf) < 0) {
        return weft_xml_error(x, err,
                              "pci_busid=\"%.40s\" is not a PCI address such as 0000:1b:00.0",
                              busid != NULL ? busid : "");
    }
    if (type == NULL || parse_pci_type(type, node) < 0) {
        return weft_xml_error(x, err, "pci_type=\"%.40s\" is not \"class [vendor:device] …\"",
                              type != NULL ? type : "");
    }
    const char *subtype = weft_xml_attr(attrs, "subtype");
    p->l->objects[at].nvswitch = (subtype != NULL && strcmp(subtype, "NVSwitch") == 0) ||
                                 (node->vendor == 0x10de && node->class == 0x0680);
    return 0;
}

static int start_bridge(struct parse *p, const struct weft_xml *x, const char *const *attrs,
                        struct weft_error *err)
{
    const char *type = weft_xml_attr(attrs, "bridge_type");
    const bool host = type == NULL || type[0] == '0';
    const int rc = add_object(p, x, host ? WEFT_PCI_HOST : WEFT_PCI_BRIDGE, attrs, err);
    return rc < 0 || host ? rc : read_pci(p, x, attrs, err);
}

static int start_pci(struct parse *p, const struct weft_xml *x, const char *const *attrs,
                     struct weft_error *err)
{
    const int rc = add_object(p, x, WEFT_PCI_FUNCTION, attrs, err);
    return rc < 0 ? rc : read_pci(p, x, attrs, err);
}

/* A NUMA node is an object around others in format 1, a child of the object that it serves later.
 */
static int start_numa(struct parse *p, const struct weft_xml *x, const char *const *attrs,
                      struct weft_error *err)
{
    uint64_t number = 0;
    const int has = weft_xml_attr_u64(x, attrs, "os_index", INT32_MAX, &number, err);
    if (has < 0) {
        return has;
    }
    const size_t parent = p->stack[p->depth].object;
    int *least = parent != WEFT_PCI_NONE ? &p->l->objects[parent].own_numa : NULL;
    if (p->l->format >= 2 && has == 1 && least != NULL && (*least < 0 || (int)number < *least)) {
        *least = (int)number;
    }
    const int rc = add_object(p, x, WEFT_PCI_OUTER, attrs, err);
    if (rc == 0 && has == 1) {
        p->l->objects[p->stack[p->depth].object].own_numa = (int)number;
    }
    return rc;
}

static int start_outer(struct parse *p, const struct weft_xml *x, const char *type,
                       const char *const *attrs, struct weft_error *err)
{
    uint64_t number = 0;
    const int has = weft_xml_attr_u64(x, attrs, "os_index", UINT32_MAX, &number, err);
    if (has < 0) {
        return has;
    }
    const int rc = add_object(p, x, WEFT_PCI_OUTER, attrs, err);
    const bool package = strcmp(type, "Package") == 0 || strcmp(type, "Socket") == 0;
    if (rc == 0 && package && has == 1 && number <= INT32_MAX) {
        p->l->objects[p->stack[p->depth].object].package = (int)number;
    }
    return rc;
}

/* ---- OS devices ---- */

static enum weft_lstopo_osdev_kind kind_of(const struct parse *p, const char *name, uint64_t type)
{
    static const struct {
        const char *prefix;
        enum weft_lstopo_osdev_kind kind;
    } names[] = {
        {"nvml", WEFT_LSTOPO_NVML}, {"rsmi", WEFT_LSTOPO_RSMI},     {"cuda", WEFT_LSTOPO_CUDA},
        {"ze", WEFT_LSTOPO_ZE},     {"opencl", WEFT_LSTOPO_OPENCL},
    };
    /* hwloc_obj_osdev_type_e: a number up to format 2, a set of bits from format 3 on */
    const bool rdma = p->l->format >= 3 ? (type & 32) != 0 : type == 3;
    const bool net = p->l->format >= 3 ? (type & 16) != 0 : type == 2;
    if (rdma || net) {
        return rdma ? WEFT_LSTOPO_RDMA : WEFT_LSTOPO_NET;
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
        const size_t len = strlen(names[i].prefix);
        if (strncmp(name, names[i].prefix, len) == 0 && name[len] >= '0' && name[len] <= '9') {
            return names[i].kind;
        }
    }
    return WEFT_LSTOPO_OTHER;
}

static int number_of(const char *name)
{
    const char *digits = name + strcspn(name, "0123456789");
    uint64_t number = 0;
    return weft_parse_u64(weft_str(digits), 65535, &number) == 0 ? (int)number : -1;
}

static int start_osdev(struct parse *p, const struct weft_xml *x, const char *const *attrs,
                       struct weft_error *err)
{
    struct weft_lstopo *l = p->l;
    uint64_t type = UINT64_MAX;
    uint64_t gp = 0;
    if (weft_xml_attr_u64(x, attrs, "osdev_type", UINT32_MAX, &type, err) < 0 ||
        weft_xml_attr_u64(x, attrs, "gp_index", UINT64_MAX, &gp, err) < 0) {
        return -EINVAL;
    }
    void *osdevs = l->osdevs;
    const int rc = weft_array_reserve(&osdevs, &l->osdev_cap, l->osdev_count + 1,
                                      sizeof(*l->osdevs), WEFT_LSTOPO_OSDEVS_MAX);
    l->osdevs = osdevs;
    if (rc < 0) {
        return over(x, rc, "OS devices", err);
    }
    const char *name = weft_xml_attr(attrs, "name");
    if (name == NULL || name[0] == '\0') {
        return weft_xml_error(x, err, "an OS device without a name");
    }
    const size_t above = p->stack[p->depth].object;
    const bool pci = above != WEFT_PCI_NONE && l->tree.nodes[above].kind == WEFT_PCI_FUNCTION;
    struct weft_lstopo_osdev *d = &l->osdevs[l->osdev_count];
    *d = (struct weft_lstopo_osdev){.function = pci ? above : WEFT_PCI_NONE,
                                    .kind = kind_of(p, name, type),
                                    .number = number_of(name),
                                    .gp_index = gp,
                                    .port_up = -1};
    (void)weft_machine_copy_visible(d->name, sizeof(d->name), name, strlen(name));
    p->stack[p->depth].osdev = l->osdev_count++;
    return 0;
}

/* ---- infos ---- */

/* Free text of a vendor: as weft_machine_copy_visible, but blanks inside stay. */
static void copy_text(char *to, size_t size, const char *text)
{
    const struct weft_str s = weft_str_trim(weft_str(text));
    const size_t n = s.len < size - 1 ? s.len : size - 1;
    for (size_t i = 0; i < n; i++) {
        to[i] = s.data[i] >= ' ' && s.data[i] <= '~' ? s.data[i] : '?';
    }
    to[n] = '\0';
}

static void read_info(const struct parse *p, const char *const *attrs)
{
    const struct open *owner = p->depth > 0 ? &p->stack[p->depth - 1] : NULL;
    const char *name = weft_xml_attr(attrs, "name");
    const char *value = weft_xml_attr(attrs, "value");
    if (owner == NULL || name == NULL || value == NULL) {
        return;
    }
    if (owner->osdev != WEFT_PCI_NONE) {
        struct weft_lstopo_osdev *d = &p->l->osdevs[owner->osdev];
        if (strcmp(name, "GPUModel") == 0) {
            copy_text(d->model, sizeof(d->model), value);
        } else if (strcmp(name, "NodeGUID") == 0) {
            d->guid = weft_lstopo_guid(value);
        } else if (strcmp(name, "Port1State") == 0) {
            d->port_up = strcmp(value, "4") == 0; /* 4 is active (IB spec, PortInfo:PortState) */
        }
    } else if (owner->starts && strcmp(name, "PCIDevice") == 0) {
        struct weft_lstopo_object *o = &p->l->objects[owner->object];
        copy_text(o->name, sizeof(o->name), value);
        p->l->tree.nodes[owner->object].named_virtual = strstr(value, "Virtual Function") != NULL;
    }
}

/* ---- matrices ---- */

static int start_matrix(struct parse *p, const struct weft_xml *x, const char *const *attrs,
                        struct weft_error *err)
{
    const char *name = weft_xml_attr(attrs, "name");
    if (name == NULL ||
        (strcmp(name, "NVLinkBandwidth") != 0 && strcmp(name, "XGMIBandwidth") != 0)) {
        return 0; /* latencies of NUMA nodes, hops */
    }
    uint64_t count = 0;
    const int rc = weft_xml_attr_u64(x, attrs, "nbobjs", WEFT_LSTOPO_MATRIX_MAX, &count, err);
    if (rc < 0) {
        return rc;
    }
    if (count == 0 || p->l->matrix_count == WEFT_LSTOPO_MATRICES_MAX) {
        return weft_xml_error(x, err, "%s: %s", name,
                              count == 0 ? "nbobjs is missing or 0" : "too many such matrices");
    }
    const char *indexing = weft_xml_attr(attrs, "indexing");
    if (indexing != NULL && strcmp(indexing, "gp") != 0) {
        return weft_xml_error(x, err, "%s: indexing=\"%.20s\", only gp is handled", name, indexing);
    }
    p->in_matrix = true;
    p->matrix_objects = (size_t)count;
    p->matrix_line = weft_xml_line(x);
    weft_buf_reset(&p->indexes);
    weft_buf_reset(&p->values);
    return 0;
}

static int bad_matrix(const struct parse *p, struct weft_error *err, const char *what, size_t want)
{
    return weft_err_set(
        err, -EINVAL, WEFT_ERR_CONFIG,
        "%s:%u: the matrix of bandwidths needs %zu %s, whole numbers; it has others", p->l->file,
        p->matrix_line, want, what);
}

static int end_matrix(struct parse *p, struct weft_error *err)
{
    const size_t n = p->matrix_objects;
    struct weft_lstopo_matrix *m = &p->l->matrices[p->l->matrix_count];
    p->in_matrix = false;
    m->line = p->matrix_line;
    m->count = n;
    m->objects = weft_calloc(n, sizeof(*m->objects));
    m->values = weft_calloc(n * n, sizeof(*m->values));
    p->l->matrix_count++; /* from here on it is freed with the rest */
    if (m->objects == NULL || m->values == NULL || p->indexes.status == -ENOMEM ||
        p->values.status == -ENOMEM) {
        return weft_err_nomem(err);
    }
    size_t count = 0;
    if (p->indexes.status < 0 ||
        weft_lstopo_numbers(weft_buf_text(&p->indexes), p->indexes.len, m->objects, n, &count) <
            0 ||
        count != n) {
        return bad_matrix(p, err, "objects", n);
    }
    if (p->values.status < 0 ||
        weft_lstopo_numbers(weft_buf_text(&p->values), p->values.len, m->values, n * n, &count) <
            0 ||
        count != n * n) {
        return bad_matrix(p, err, "values", n * n);
    }
    return 0;
}

/* ---- events ---- */

static int start_object(struct parse *p, const struct weft_xml *x, const char *const *attrs,
                        struct weft_error *err)
{
    const char *type = weft_xml_attr(attrs, "type");
    if (type == NULL) {
        return weft_xml_error(x, err, "<object> without type");
    }
    if (strcmp(type, "Bridge") == 0) {
        return start_bridge(p, x, attrs, err);
    }
    if (strcmp(type, "PCIDev") == 0) {
        return start_pci(p, x, attrs, err);
    }
    if (strcmp(type, "OSDev") == 0) {
        return start_osdev(p, x, attrs, err);
    }
    return strcmp(type, "NUMANode") == 0 ? start_numa(p, x, attrs, err)
                                         : start_outer(p, x, type, attrs, err);
}

static int start_topology(const struct parse *p, const struct weft_xml *x, const char *const *attrs,
                          struct weft_error *err)
{
    const char *version = weft_xml_attr(attrs, "version");
    p->l->format = 1;
    if (version != NULL) {
        p->l->format =
            version[0] >= '1' && version[0] <= '9' && version[1] == '.' ? version[0] - '0' : 0;
    }
    if (p->l->format < 1 || p->l->format > 3) {
        return weft_xml_error(x, err, "<topology version=\"%.20s\">: formats 1 to 3 are handled",
                              version);
    }
    return 0;
}

static int on_start(void *context, const struct weft_xml *x, const char *name,
                    const char *const *attrs, struct weft_error *err)
{
    struct parse *p = context;
    p->stack[p->depth] =
        (struct open){.object = p->depth > 0 ? p->stack[p->depth - 1].object : WEFT_PCI_NONE,
                      .osdev = WEFT_PCI_NONE};
    int rc = 0;
    if (strcmp(name, "object") == 0) {
        rc = start_object(p, x, attrs, err);
    } else if (strcmp(name, "info") == 0) {
        read_info(p, attrs);
    } else if (strcmp(name, "topology") == 0) {
        rc = start_topology(p, x, attrs, err);
    } else if (strncmp(name, "distances2", 10) == 0) {
        rc = start_matrix(p, x, attrs, err);
    } else if (p->in_matrix && strcmp(name, "indexes") == 0) {
        p->slurp = SLURP_INDEXES;
    } else if (p->in_matrix && strcmp(name, "u64values") == 0) {
        p->slurp = SLURP_VALUES;
    }
    p->depth++;
    p->l->last_line = weft_xml_line(x);
    return rc;
}

static int on_text(void *context, const struct weft_xml *x, struct weft_str text,
                   struct weft_error *err)
{
    struct parse *p = context;
    (void)x, (void)err;
    if (p->slurp != SLURP_NOTHING) { /* a failure sticks, and is looked at in end_matrix */
        (void)weft_buf_append(p->slurp == SLURP_INDEXES ? &p->indexes : &p->values, text.data,
                              text.len);
    }
    return 0;
}

static int on_end(void *context, const struct weft_xml *x, const char *name, struct weft_error *err)
{
    struct parse *p = context;
    const struct open *open = &p->stack[--p->depth];
    if (open->starts) {
        p->l->objects[open->object].whole = true;
    }
    if (p->slurp != SLURP_NOTHING) {
        (void)weft_buf_putc(p->slurp == SLURP_INDEXES ? &p->indexes : &p->values, ' ');
        p->slurp = SLURP_NOTHING;
    }
    p->l->last_line = weft_xml_line(x);
    return p->in_matrix && strncmp(name, "distances2", 10) == 0 ? end_matrix(p, err) : 0;
}

int weft_lstopo_parse(const char *text, size_t len, const char *file,
                      struct weft_lstopo *ret_lstopo, struct weft_error *err)
{
    static const struct weft_xml_handler handler = {on_start, on_end, on_text};
    weft_auto(weft_lstopo_done) struct weft_lstopo l = {.file = file, .tree = {.ports = 1}};
    weft_autofree struct parse *p = weft_calloc(1, sizeof(*p));
    if (p == NULL) {
        return weft_err_nomem(err);
    }
    p->l = &l;
    weft_buf_init(&p->indexes, NUMBERS_MAX);
    weft_buf_init(&p->values, NUMBERS_MAX);
    const int rc = weft_xml_parse(text, len, file, &handler, p, err);
    weft_buf_done(&p->indexes);
    weft_buf_done(&p->values);
    if (rc < 0) {
        return rc;
    }
    l.cut = rc == 1;
    *ret_lstopo = l;
    l = (struct weft_lstopo){0};
    return 0;
}

void weft_lstopo_done(struct weft_lstopo *l)
{
    if (l != NULL) {
        for (size_t i = 0; i < l->matrix_count; i++) {
            weft_free(l->matrices[i].objects);
            weft_free(l->matrices[i].values);
        }
        weft_pci_done(&l->tree);
        weft_free(l->objects);
        weft_free(l->osdevs);
        *l = (struct weft_lstopo){0};
    }
}
