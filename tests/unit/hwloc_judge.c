/* SPDX-License-Identifier: Apache-2.0 */
/* hwloc's view of a host. */
#include "tests/unit/hwloc_judge.h"

#include <hwloc.h>

#include "pkg/base/mem.h"
#include "pkg/machine/host-internal.h"
#include "pkg/machine/machine-internal.h"
#include "tests/unit/unit.h"

enum {
    FUNCTIONS_MAX = 16384,
    CHAIN_MAX = 32,
    VENDOR_AMD = 0x1002,
    VENDOR_INTEL = 0x8086,
};

struct judge {
    hwloc_topology_t topology;
    struct judge_function *items;
    size_t count;
};

/* ---- loading ---- */

/* hwloc, manual: "Environment Variables". Taken back after the load. */
static const char *const variables[][2] = {
    {"HWLOC_PLUGINS_PATH", "/nonexistent"},
    {"HWLOC_COMPONENTS", "linux,stop"},
    {"HWLOC_HIDE_ERRORS", "2"},
    {"HWLOC_KEEP_NVIDIA_GPU_NUMA_NODES", "0"},
};

static void set_environment(const char *root)
{
    for (size_t i = 0; i < WEFT_ARRAY_LEN(variables); i++) {
        (void)setenv(variables[i][0], variables[i][1], 1);
    }
    if (root != NULL) {
        (void)setenv("HWLOC_FSROOT", root, 1);
        (void)setenv("HWLOC_DUMPED_HWDATA_DIR", "/nonexistent", 1);
    }
}

static void clear_environment(void)
{
    for (size_t i = 0; i < WEFT_ARRAY_LEN(variables); i++) {
        (void)unsetenv(variables[i][0]);
    }
    (void)unsetenv("HWLOC_FSROOT");
    (void)unsetenv("HWLOC_DUMPED_HWDATA_DIR");
}

static bool load(hwloc_topology_t *topology, const char *root)
{
    set_environment(root);
    bool ok = hwloc_topology_init(topology) == 0;
    /* CPUs that this container may not use count as well: they are the machine's */
    ok = ok && hwloc_topology_set_flags(*topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) == 0 &&
         hwloc_topology_set_io_types_filter(*topology, HWLOC_TYPE_FILTER_KEEP_ALL) == 0 &&
         hwloc_topology_load(*topology) == 0;
    clear_environment();
    return ok;
}

/* ---- one function ---- */

static bool is_pci_bridge(hwloc_obj_t obj)
{
    return obj->type == HWLOC_OBJ_BRIDGE && obj->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI;
}

static const struct hwloc_pcidev_attr_s *pci_of(hwloc_obj_t obj)
{
    return is_pci_bridge(obj) ? &obj->attr->bridge.upstream.pci : &obj->attr->pcidev;
}

static int package_of(hwloc_topology_t topology, hwloc_const_bitmap_t cpus)
{
    const int packages = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE);
    for (int i = 0; i < packages; i++) {
        const hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, (unsigned)i);
        if (package != NULL && package->os_index <= INT32_MAX && !hwloc_bitmap_iszero(cpus) &&
            hwloc_bitmap_isincluded(cpus, package->cpuset)) {
            return (int)package->os_index;
        }
    }
    return -1;
}

static void read_devices(hwloc_obj_t obj, struct judge_function *f)
{
    for (hwloc_obj_t child = obj->io_first_child; child != NULL; child = child->next_sibling) {
        if (child->type == HWLOC_OBJ_OS_DEVICE) {
            f->net = f->net || child->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK;
            f->rdma = f->rdma || child->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS;
        }
    }
}

static void add(struct judge *judge, hwloc_obj_t obj)
{
    const struct hwloc_pcidev_attr_s *pci = pci_of(obj);
    const hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(judge->topology, obj);
    if (!CHECK_INT(judge->count < FUNCTIONS_MAX, true)) {
        return;
    }
    struct judge_function *f = &judge->items[judge->count++];
    *f = (struct judge_function){
        .bdf = {.domain = pci->domain,
                .bus = pci->bus,
                .device = pci->dev,
                .function = pci->func,
                .known = true},
        .vendor = pci->vendor_id,
        .device = pci->device_id,
        .class_id = pci->class_id,
        .numa_node =
            hwloc_bitmap_weight(near->nodeset) == 1 ? hwloc_bitmap_first(near->nodeset) : -1,
        .package = package_of(judge->topology, near->cpuset),
        .obj = obj,
    };
    read_devices(obj, f);
}

struct judge *judge_new(const char *root)
{
    struct judge *judge = weft_calloc(1, sizeof(*judge));
    if (judge == NULL) {
        CU_FAIL("no memory");
        return NULL;
    }
    judge->items = weft_calloc(FUNCTIONS_MAX, sizeof(*judge->items));
    if (judge->items == NULL || !load(&judge->topology, root)) {
        CU_FAIL("hwloc cannot load a host");
        judge_free(judge);
        return NULL;
    }
    hwloc_obj_t obj = NULL;
    while ((obj = hwloc_get_next_pcidev(judge->topology, obj)) != NULL) {
        add(judge, obj);
    }
    while ((obj = hwloc_get_next_bridge(judge->topology, obj)) != NULL) {
        if (is_pci_bridge(obj)) {
            add(judge, obj);
        }
    }
    return judge;
}

void judge_free(struct judge *judge)
{
    if (judge != NULL) {
        if (judge->topology != NULL) {
            hwloc_topology_destroy(judge->topology);
        }
        weft_free(judge->items);
        weft_free(judge);
    }
}

size_t judge_count(const struct judge *judge)
{
    return judge->count;
}

const struct judge_function *judge_at(const struct judge *judge, size_t i)
{
    return &judge->items[i];
}

const struct judge_function *judge_find(const struct judge *judge, const struct weft_bdf *bdf)
{
    for (size_t i = 0; i < judge->count; i++) {
        if (weft_bdf_cmp(&judge->items[i].bdf, bdf) == 0) {
            return &judge->items[i];
        }
    }
    return NULL;
}

bool judge_has_device(const struct judge_function *f, bool rdma, const char *name)
{
    const struct hwloc_obj *obj = f->obj;
    const hwloc_obj_osdev_type_t type =
        rdma ? HWLOC_OBJ_OSDEV_OPENFABRICS : HWLOC_OBJ_OSDEV_NETWORK;
    for (hwloc_obj_t child = obj->io_first_child; child != NULL; child = child->next_sibling) {
        if (child->type == HWLOC_OBJ_OS_DEVICE && child->attr->osdev.type == type &&
            strcmp(child->name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- T ---- */

/* Host bridge, bridge, ..., function. */
struct chain {
    const struct hwloc_obj *steps[CHAIN_MAX];
    size_t depth;
};

static struct chain chain_of(const struct judge_function *f)
{
    struct chain chain = {0};
    const struct hwloc_obj *obj = f->obj;
    while (obj != NULL && hwloc_obj_type_is_io(obj->type) && chain.depth < CHAIN_MAX) {
        chain.steps[chain.depth++] = obj;
        obj = obj->parent;
    }
    for (size_t i = 0; i < chain.depth / 2; i++) {
        const struct hwloc_obj *swap = chain.steps[i];
        chain.steps[i] = chain.steps[chain.depth - 1 - i];
        chain.steps[chain.depth - 1 - i] = swap;
    }
    return chain;
}

/* A bridge of an AMD or Intel card itself: its vendor's, and not on the root bus. */
static bool is_own(const struct judge_function *f, const struct chain *chain, size_t i)
{
    const bool vendor = f->vendor == VENDOR_AMD || f->vendor == VENDOR_INTEL;
    return vendor && i >= 2 && i + 1 < chain->depth &&
           chain->steps[i]->attr->bridge.upstream.pci.vendor_id == f->vendor;
}

static size_t bridges_below(const struct judge_function *f, const struct chain *chain, size_t from)
{
    size_t bridges = 0;
    for (size_t i = from; i + 1 < chain->depth; i++) {
        bridges += !is_own(f, chain, i);
    }
    return bridges;
}

static bool one_device(const struct judge_function *a, const struct judge_function *b)
{
    return a->bdf.domain == b->bdf.domain && a->bdf.bus == b->bdf.bus &&
           a->bdf.device == b->bdf.device;
}

static int by_node(const struct judge_function *a, const struct judge_function *b)
{
    if (a->numa_node < 0 || b->numa_node < 0) {
        return WEFT_DISTANCE_UNKNOWN;
    }
    return a->numa_node == b->numa_node ? WEFT_DISTANCE_NODE : WEFT_DISTANCE_SYS;
}

int judge_distance(const struct judge_function *a, const struct judge_function *b)
{
    const struct chain ca = chain_of(a);
    const struct chain cb = chain_of(b);
    size_t shared = 0;
    while (shared < ca.depth && shared < cb.depth && ca.steps[shared] == cb.steps[shared]) {
        shared++;
    }
    if (a->obj == b->obj || (one_device(a, b) && ca.depth > 2)) {
        return WEFT_DISTANCE_PSB;
    }
    if (shared == 0) {
        return by_node(a, b);
    }
    if (shared == 1) {
        return WEFT_DISTANCE_PHB;
    }
    if (is_own(a, &ca, shared - 1) && is_own(b, &cb, shared - 1)) {
        return WEFT_DISTANCE_PSB;
    }
    const bool one_switch =
        bridges_below(a, &ca, shared) <= 1 && bridges_below(b, &cb, shared) <= 1;
    return one_switch ? WEFT_DISTANCE_PIX : WEFT_DISTANCE_PXB;
}
