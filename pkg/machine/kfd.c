/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the KFD topology: nodes, their memory and their links. */
#include "pkg/machine/kfd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/machine/host.h"
#include "pkg/machine/machine-internal.h"

enum {
    PATH_TEXT_MAX = WEFT_HOST_PATH_MAX,
    NAME_TEXT_MAX = 160, /* "name: nodes/2/io_links/3/properties", cut to fit a message */
    BANKS_MAX = 64,
    HEAP_PUBLIC = 1, /* frame buffer heaps: HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC and _PRIVATE */
    HEAP_PRIVATE = 2,
};

int weft_kfd_parse_properties(const char *text, size_t len, const char *name,
                              const struct weft_kfd_field *fields, size_t field_count,
                              struct weft_error *err)
{
    struct weft_str rest = {text, len};
    struct weft_str line;
    for (unsigned number = 1; weft_str_line(&rest, &line); number++) {
        struct weft_str key;
        if (!weft_str_word(&line, &key)) {
            continue;
        }
        const struct weft_str value = weft_str_trim(line);
        for (size_t i = 0; i < field_count; i++) {
            if (!weft_str_eq(key, fields[i].key)) {
                continue;
            }
            if (weft_parse_u64(value, fields[i].max, fields[i].value) < 0) {
                return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                    "%s:%u: %s is \"%.*s\", a number of at most %llu is wanted",
                                    name, number, fields[i].key,
                                    (int)(value.len < 40 ? value.len : 40), value.data,
                                    (unsigned long long)fields[i].max);
            }
        }
    }
    return 0;
}

/* A reading of one topology: where it is, and how it is called in messages. */
struct reading {
    const struct weft_host *host;
    const char *root, *name;
    bool cut;
    struct weft_kfd *kfd;
    struct weft_error *err;
};

/* "<root>/<below>" into path; below is put together by the caller and short. */
static int join(const struct reading *r, const char *below, char *path)
{
    const int n = snprintf(path, PATH_TEXT_MAX, "%s/%s", r->root, below);
    if (n < 0 || n >= PATH_TEXT_MAX) {
        return weft_err_set(r->err, -ENAMETOOLONG, WEFT_ERR_CONFIG, "%.100s: too long a path",
                            r->name);
    }
    return 0;
}

static int read_properties(const struct reading *r, const char *below,
                           const struct weft_kfd_field *fields, size_t field_count)
{
    char path[PATH_TEXT_MAX];
    char text[WEFT_HOST_TEXT_MAX];
    char name[NAME_TEXT_MAX];
    int rc = join(r, below, path);
    if (rc < 0) {
        return rc;
    }
    (void)snprintf(name, sizeof(name), "%.80s: %s", r->name, below);
    rc = weft_host_read(r->host, path, text, sizeof(text));
    if (rc < 0) {
        return weft_err_errno(r->err, -rc, "%s", name);
    }
    return weft_kfd_parse_properties(text, (size_t)rc, name, fields, field_count, r->err);
}

static int list(const struct reading *r, const char *below, struct weft_host_names *ret_names)
{
    char path[PATH_TEXT_MAX];
    const int rc = join(r, below, path);
    return rc < 0 ? rc : weft_host_list(r->host, path, ret_names);
}

static int add_link(const struct reading *r, const char *below, uint64_t *found)
{
    uint64_t type = 0;
    uint64_t weight = 0;
    uint64_t from = UINT32_MAX;
    uint64_t to = UINT32_MAX;
    uint64_t bandwidth = 0;
    const struct weft_kfd_field fields[] = {{"type", &type, UINT32_MAX},
                                            {"weight", &weight, UINT32_MAX},
                                            {"node_from", &from, WEFT_KFD_NODES_MAX},
                                            {"node_to", &to, WEFT_KFD_NODES_MAX},
                                            {"max_bandwidth", &bandwidth, UINT32_MAX}};
    int rc = read_properties(r, below, fields, WEFT_ARRAY_LEN(fields));
    if (rc == -ENOENT && r->cut) {
        return 0;
    }
    if (rc < 0) {
        return rc;
    }
    (*found)++;
    if (from == UINT32_MAX || to == UINT32_MAX) {
        return weft_err_set(r->err, -EINVAL, WEFT_ERR_CONFIG,
                            "%.80s: %s: there is no line with node_from and node_to", r->name,
                            below);
    }
    void *array = r->kfd->links;
    rc = weft_array_reserve(&array, &r->kfd->link_cap, r->kfd->link_count + 1,
                            sizeof(*r->kfd->links), WEFT_KFD_LINKS_MAX);
    r->kfd->links = array;
    if (rc < 0) {
        return weft_err_set(r->err, rc, WEFT_ERR_CONFIG, "%.80s: links: %s", r->name,
                            rc == -EFBIG ? "more than are handled" : "out of memory");
    }
    r->kfd->links[r->kfd->link_count++] = (struct weft_kfd_link){.type = (uint32_t)type,
                                                                 .weight = (uint32_t)weight,
                                                                 .from = (uint32_t)from,
                                                                 .to = (uint32_t)to,
                                                                 .bandwidth_mbps = bandwidth};
    return 0;
}

/* The links in one folder of a node. p2p_links are only counted: they are PCIe paths (the kernel
 * adds them where two devices may reach each other over PCIe), and PCIe is no B. */
static int read_links(const struct reading *r, const struct weft_kfd_node *node, const char *kind,
                      uint64_t *found)
{
    char below[128];
    weft_auto(weft_host_names_done) struct weft_host_names names = {0};
    (void)snprintf(below, sizeof(below), "nodes/%u/%s", node->number, kind);
    int rc = list(r, below, &names);
    if (rc < 0) {
        return rc == -ENOENT ? 0 : weft_err_errno(r->err, -rc, "%.80s: %s", r->name, below);
    }
    for (size_t i = 0; rc == 0 && i < names.count; i++) {
        uint64_t number = 0;
        if (weft_parse_u64(weft_str(names.names[i]), UINT32_MAX, &number) < 0) {
            continue;
        }
        if (strcmp(kind, "io_links") != 0) {
            (*found)++;
        } else {
            (void)snprintf(below, sizeof(below), "nodes/%u/%s/%llu/properties", node->number, kind,
                           (unsigned long long)number);
            rc = add_link(r, below, found);
        }
    }
    return rc;
}

static int read_memory(const struct reading *r, struct weft_kfd_node *node)
{
    char below[128];
    weft_auto(weft_host_names_done) struct weft_host_names names = {0};
    (void)snprintf(below, sizeof(below), "nodes/%u/mem_banks", node->number);
    int rc = list(r, below, &names);
    if (rc < 0) {
        return rc == -ENOENT ? 0 : weft_err_errno(r->err, -rc, "%.80s: %s", r->name, below);
    }
    for (size_t i = 0; rc == 0 && i < names.count && i < BANKS_MAX; i++) {
        uint64_t heap = 0;
        uint64_t size = 0;
        const struct weft_kfd_field fields[] = {{"heap_type", &heap, UINT32_MAX},
                                                {"size_in_bytes", &size, UINT64_MAX / BANKS_MAX}};
        (void)snprintf(below, sizeof(below), "nodes/%u/mem_banks/%.20s/properties", node->number,
                       names.names[i]);
        rc = read_properties(r, below, fields, WEFT_ARRAY_LEN(fields));
        rc = rc == -ENOENT ? 0 : rc;
        if (rc == 0 && (heap == HEAP_PUBLIC || heap == HEAP_PRIVATE)) {
            node->memory_bytes += size;
        }
    }
    return rc;
}

/* The small files beside the properties: both may be missing in a recording. Returns whether the
 * device cgroup lets us see the node at all (kfd_topology.c: -EPERM otherwise). */
static bool read_beside(const struct reading *r, struct weft_kfd_node *node)
{
    char below[64];
    char path[PATH_TEXT_MAX];
    char text[128];
    (void)snprintf(below, sizeof(below), "nodes/%u/gpu_id", node->number);
    int rc = join(r, below, path);
    rc = rc < 0 ? rc : weft_host_read(r->host, path, text, sizeof(text));
    if (rc == -EPERM || rc == -EACCES) {
        return false;
    }
    (void)snprintf(below, sizeof(below), "nodes/%u/name", node->number);
    rc = join(r, below, path);
    rc = rc < 0 ? rc : weft_host_read(r->host, path, text, sizeof(text));
    if (rc > 0) {
        (void)weft_machine_copy_visible(node->name, sizeof(node->name), text, (size_t)rc);
    }
    return true;
}

static int read_node_properties(const struct reading *r, struct weft_kfd_node *node)
{
    uint64_t io_links = 0;
    uint64_t p2p_links = 0;
    const struct weft_kfd_field fields[] = {
        {"cpu_cores_count", &node->cpu_cores, UINT32_MAX},
        {"simd_count", &node->simd_count, UINT32_MAX},
        {"gfx_target_version", &node->gfx_target_version, UINT32_MAX},
        {"location_id", &node->location_id, UINT32_MAX},
        {"domain", &node->domain, UINT32_MAX},
        {"drm_render_minor", &node->render_minor, UINT32_MAX},
        {"hive_id", &node->hive_id, UINT64_MAX},
        {"unique_id", &node->unique_id, UINT64_MAX},
        {"num_xcc", &node->num_xcc, UINT32_MAX},
        {"vendor_id", &node->vendor_id, UINT32_MAX},
        {"device_id", &node->device_id, UINT32_MAX},
        {"io_links_count", &io_links, WEFT_KFD_NODES_MAX},
        {"p2p_links_count", &p2p_links, WEFT_KFD_NODES_MAX},
    };
    char below[64];
    (void)snprintf(below, sizeof(below), "nodes/%u/properties", node->number);
    const int rc = read_properties(r, below, fields, WEFT_ARRAY_LEN(fields));
    node->link_count = io_links + p2p_links;
    return rc;
}

static int read_node(const struct reading *r, struct weft_kfd_node *node)
{
    node->permitted = read_beside(r, node);
    if (!node->permitted) {
        return 0;
    }
    int rc = read_node_properties(r, node);
    if (rc == -EPERM || rc == -EACCES) {
        node->permitted = false;
        return 0;
    }
    uint64_t found = 0;
    rc = rc < 0 ? rc : read_memory(r, node);
    rc = rc < 0 ? rc : read_links(r, node, "io_links", &found);
    rc = rc < 0 ? rc : read_links(r, node, "p2p_links", &found);
    if (rc == 0 && found < node->link_count) {
        node->partial = true;
        r->kfd->missing_links += node->link_count - found;
    }
    return rc;
}

static int add_node(const struct reading *r, const char *text)
{
    uint64_t number = 0;
    const bool canonical = text[0] != '0' || text[1] == '\0'; /* a node has one folder */
    if (!canonical || weft_parse_u64(weft_str(text), WEFT_KFD_NODES_MAX, &number) < 0) {
        return 0;
    }
    void *array = r->kfd->nodes;
    int rc = weft_array_reserve(&array, &r->kfd->node_cap, r->kfd->node_count + 1,
                                sizeof(*r->kfd->nodes), WEFT_KFD_NODES_MAX);
    r->kfd->nodes = array;
    if (rc < 0) {
        return weft_err_set(r->err, rc, WEFT_ERR_CONFIG, "%.80s: nodes: %s", r->name,
                            rc == -EFBIG ? "more than are handled" : "out of memory");
    }
    struct weft_kfd_node *node = &r->kfd->nodes[r->kfd->node_count];
    *node = (struct weft_kfd_node){.number = (uint32_t)number};
    rc = read_node(r, node);
    if (rc == -ENOENT && r->cut) {
        r->kfd->missing_nodes++;
        return 0;
    }
    r->kfd->node_count += rc == 0;
    return rc;
}

int weft_kfd_read(const struct weft_host *host, const char *root, const char *name, bool cut,
                  struct weft_kfd *ret_kfd, struct weft_error *err)
{
    weft_auto(weft_kfd_done) struct weft_kfd kfd = {0};
    weft_auto(weft_host_names_done) struct weft_host_names names = {0};
    const struct reading r = {
        .host = host, .root = root, .name = name, .cut = cut, .kfd = &kfd, .err = err};
    int rc = list(&r, "nodes", &names);
    if (rc < 0) {
        return weft_err_errno(err, -rc, "%.100s: the KFD topology's folder of nodes", name);
    }
    for (size_t i = 0; rc == 0 && i < names.count; i++) {
        rc = add_node(&r, names.names[i]);
    }
    if (rc < 0) {
        return rc;
    }
    if (kfd.node_count == 0) {
        return weft_err_set(err, -ENOENT, WEFT_ERR_CONFIG, "%.100s: the KFD topology has no node",
                            name);
    }
    *ret_kfd = kfd;
    kfd = (struct weft_kfd){0};
    return 0;
}

void weft_kfd_done(struct weft_kfd *kfd)
{
    weft_free(kfd->nodes);
    weft_free(kfd->links);
    *kfd = (struct weft_kfd){0};
}

const struct weft_kfd_node *weft_kfd_find(const struct weft_kfd *kfd, uint32_t number)
{
    size_t low = 0;
    size_t high = kfd->node_count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (kfd->nodes[mid].number < number) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < kfd->node_count && kfd->nodes[low].number == number ? &kfd->nodes[low] : NULL;
}
