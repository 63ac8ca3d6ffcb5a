/* SPDX-License-Identifier: Apache-2.0 */
/* The devices and NICs of weft's own recorded machine (docs/machine.md): one object each. */
#include <errno.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/json/json.h"
#include "pkg/machine/machine-internal.h"
#include "pkg/machine/read-json-internal.h"

enum { PCI_CLASS_MAX = 0xffffff };

int weft_read_json_text(const struct weft_json *object, const char *key, char *to, size_t size,
                        struct weft_error *err)
{
    const char *text = NULL;
    const int rc = weft_json_get_string(object, key, &text, err);
    if (rc <= 0) {
        return rc;
    }
    const size_t len = strlen(text);
    if (len >= size) {
        return weft_json_error(weft_json_get(object, key), err, "longer than %zu bytes", size - 1);
    }
    memcpy(to, text, len + 1);
    return 1;
}

static int read_int(const struct weft_json *object, const char *key, int64_t min, int *to,
                    struct weft_error *err)
{
    int64_t value = 0;
    const int rc = weft_json_get_int(object, key, min, INT32_MAX, &value, err);
    if (rc > 0) {
        *to = (int)value;
    }
    return rc;
}

static int read_bdf(const struct weft_json *object, struct weft_bdf *to, struct weft_error *err)
{
    const char *text = NULL;
    const int rc = weft_json_get_string(object, "bdf", &text, err);
    if (rc > 0 && weft_bdf_parse(text, to) < 0) {
        return weft_json_error(weft_json_get(object, "bdf"), err,
                               "\"%.40s\" is no PCI address like 0000:1b:00.0", text);
    }
    return rc < 0 ? rc : 0;
}

int weft_read_json_node_failed(const struct weft_json *node, int rc, struct weft_error *err)
{
    switch (rc) {
    case 0:
        return 0;
    case -EFBIG:
        return weft_json_error(node, err, "too many paths");
    case -EINVAL:
        return weft_json_error(node, err, "needs an absolute path of at most %d bytes",
                               WEFT_MACHINE_PATH_MAX - 1);
    default:
        return weft_err_nomem(err);
    }
}

/* The member's paths, each added to the device. */
static int read_paths(const struct weft_json *object, const char *key,
                      int (*add)(struct weft_device *device, const char *path),
                      struct weft_device *d, struct weft_error *err)
{
    const struct weft_json *paths = NULL;
    const int rc = weft_json_get_array(object, key, &paths, err);
    for (size_t i = 0; rc > 0 && i < weft_json_count(paths); i++) {
        const struct weft_json *node = weft_json_at(paths, i);
        const char *path = weft_json_string(node);
        const int added =
            weft_read_json_node_failed(node, path == NULL ? -EINVAL : add(d, path), err);
        if (added < 0) {
            return added;
        }
    }
    return rc < 0 ? rc : 0;
}

/* The label groups devices, the node is the kernel's number: each stands for the other where only
 * one is given. */
static int read_numa(const struct weft_json *object, struct weft_device *d, struct weft_error *err)
{
    const char *label = NULL;
    int rc = weft_json_get_string(object, "numa", &label, err);
    if (rc > 0) {
        weft_device_set_numa(d, label, strlen(label));
    }
    if (rc >= 0) {
        rc = read_int(object, "numa_node", -1, &d->numa_node, err);
    }
    if (rc > 0 && d->numa_label[0] == '\0' && d->numa_node >= 0) {
        weft_autofree char *text = weft_asprintf("%d", d->numa_node);
        if (text == NULL) {
            return weft_err_nomem(err);
        }
        weft_device_set_numa(d, text, strlen(text));
    }
    return rc < 0 ? rc : 0;
}

/* Numbers that are not negative; absent leaves them as they are. */
static int read_u64(const struct weft_json *object, const char *key, uint64_t *to,
                    struct weft_error *err)
{
    int64_t value = 0;
    const int rc = weft_json_get_int(object, key, 0, INT64_MAX, &value, err);
    if (rc > 0) {
        *to = (uint64_t)value;
    }
    return rc;
}

static int read_u8(const struct weft_json *object, const char *key, uint8_t *to,
                   struct weft_error *err)
{
    int64_t value = 0;
    const int rc = weft_json_get_int(object, key, 0, UINT8_MAX, &value, err);
    if (rc > 0) {
        *to = (uint8_t)value;
    }
    return rc;
}

static int read_pcie(const struct weft_json *device, struct weft_pcie *p, struct weft_error *err)
{
    static const char *const keys[] = {"generation", "width", "max_generation", "max_width", NULL};
    const struct weft_json *object = NULL;
    const int rc = weft_json_get_object(device, "pcie", &object, err);
    if (rc <= 0) {
        return rc;
    }
    const bool bad = weft_json_only(object, keys, err) < 0 ||
                     read_u8(object, "generation", &p->generation, err) < 0 ||
                     read_u8(object, "width", &p->width, err) < 0 ||
                     read_u8(object, "max_generation", &p->max_generation, err) < 0 ||
                     read_u8(object, "max_width", &p->max_width, err) < 0;
    return bad ? -EINVAL : 0;
}

static int read_links(const struct weft_json *object, struct weft_device *d, struct weft_error *err)
{
    if (read_int(object, "links_up", -1, &d->links_up, err) < 0 ||
        read_int(object, "links_total", -1, &d->links_total, err) < 0) {
        return -EINVAL;
    }
    if (d->links_total >= 0 && d->links_up > d->links_total) {
        return weft_json_error(weft_json_get(object, "links_up"), err,
                               "is %d, of %d links in links_total", d->links_up, d->links_total);
    }
    return 0;
}

/* "suspect" of a healthy device, "recovering" of one that is not; the other two say nothing new. */
static int read_doubt(const struct weft_json *object, struct weft_device *d, struct weft_error *err)
{
    const char *state = NULL;
    const int rc = weft_json_get_string(object, "state", &state, err);
    if (rc <= 0) {
        return rc;
    }
    d->state = strcmp(state, "suspect") == 0      ? WEFT_DEVICE_SUSPECT
               : strcmp(state, "recovering") == 0 ? WEFT_DEVICE_RECOVERING
                                                  : WEFT_DEVICE_PLAIN;
    const bool healthy = d->state == WEFT_DEVICE_SUSPECT || strcmp(state, "healthy") == 0;
    if (strcmp(state, weft_device_state_name(d)) != 0 || healthy != d->healthy) {
        return weft_json_error(weft_json_get(object, "state"), err,
                               "is no state of %s device: %s are allowed",
                               d->healthy ? "a healthy" : "an unhealthy",
                               d->healthy ? "healthy and suspect" : "unhealthy and recovering");
    }
    return 0;
}

static int read_class(const struct weft_json *object, uint32_t *to, struct weft_error *err)
{
    const char *text = NULL;
    uint64_t value = 0;
    const int rc = weft_json_get_string(object, "pci_class", &text, err);
    if (rc > 0 && (weft_parse_hex64(weft_str(text), &value) < 0 || value > PCI_CLASS_MAX)) {
        return weft_json_error(weft_json_get(object, "pci_class"), err,
                               "\"%.40s\" is no PCI class like 0x030200", text);
    }
    *to = rc > 0 ? (uint32_t)value : *to;
    return rc < 0 ? rc : 0;
}

static int read_u16(const struct weft_json *object, const char *key, int64_t min, uint16_t *to,
                    struct weft_error *err)
{
    int64_t value = 0;
    const int rc = weft_json_get_int(object, key, min, UINT16_MAX, &value, err);
    *to = rc > 0 ? (uint16_t)value : *to;
    return rc < 0 ? rc : 0;
}

/* What a device has as a partition, and whether it can have partitions. */
static int read_split(const struct weft_json *device, struct weft_device *d, struct weft_error *err)
{
    static const char *const keys[] = {
        "gpu", "compute", "multiprocessors", "copy", "decoders", "encoders", "jpegs", "ofas", NULL};
    struct weft_slices *s = &d->slices;
    const struct weft_json *object = NULL;
    int rc = read_class(device, &d->pci_class, err);
    rc = rc < 0 ? rc : weft_json_get_bool(device, "partitionable", &d->partitionable, err);
    rc = rc < 0 ? rc : weft_json_get_object(device, "slices", &object, err);
    if (rc <= 0) {
        return rc;
    }
    const bool bad = weft_json_only(object, keys, err) < 0 ||
                     read_u16(object, "gpu", 1, &s->gpu, err) < 0 ||
                     read_u16(object, "compute", 0, &s->compute, err) < 0 ||
                     read_u16(object, "multiprocessors", 0, &s->multiprocessors, err) < 0 ||
                     read_u16(object, "copy", 0, &s->copy, err) < 0 ||
                     read_u16(object, "decoders", 0, &s->decoders, err) < 0 ||
                     read_u16(object, "encoders", 0, &s->encoders, err) < 0 ||
                     read_u16(object, "jpegs", 0, &s->jpegs, err) < 0 ||
                     read_u16(object, "ofas", 0, &s->ofas, err) < 0;
    if (!bad && s->gpu == 0) {
        return weft_json_error(object, err, "needs \"gpu\", at least 1");
    }
    return bad ? -EINVAL : 0;
}

static int read_parent(const struct weft_json *object, struct weft_parent *p,
                       struct weft_error *err)
{
    static const char *const keys[] = {"index",      "model",     "capability",
                                       "memory_mib", "pci_class", NULL};
    const bool bad =
        weft_json_only(object, keys, err) < 0 || read_int(object, "index", 0, &p->index, err) < 0 ||
        weft_read_json_text(object, "model", p->model, sizeof(p->model), err) < 0 ||
        weft_read_json_text(object, "capability", p->capability, sizeof(p->capability), err) < 0 ||
        read_u64(object, "memory_mib", &p->memory_mib, err) < 0 ||
        read_class(object, &p->pci_class, err) < 0;
    return bad ? -EINVAL : 0;
}

int weft_read_json_parents(const struct weft_json *root, struct weft_machine *m,
                           struct weft_error *err)
{
    const struct weft_json *list = NULL;
    int rc = weft_json_get_array(root, "parents", &list, err);
    if (rc <= 0) {
        return rc;
    }
    const size_t count = weft_json_count(list);
    if (count > WEFT_MACHINE_DEVICES_MAX) {
        return weft_json_error(list, err, "%zu entries, at most %d are handled", count,
                               (int)WEFT_MACHINE_DEVICES_MAX);
    }
    weft_autofree struct weft_parent *parents = weft_calloc(count + 1, sizeof(*parents));
    if (parents == NULL) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < count; i++) {
        rc = read_parent(weft_json_at(list, i), &parents[i], err);
        if (rc < 0) {
            return rc;
        }
    }
    return weft_machine_set_parents(m, parents, count) < 0 ? weft_err_nomem(err) : 0;
}

/* What vendors tell beside the wiring. */
static int read_state(const struct weft_json *object, struct weft_device *d, struct weft_error *err)
{
    const bool bad =
        weft_json_get_bool(object, "healthy", &d->healthy, err) < 0 ||
        read_doubt(object, d, err) < 0 ||
        weft_read_json_text(object, "health_reason", d->health_reason, sizeof(d->health_reason),
                            err) < 0 ||
        weft_read_json_text(object, "profile", d->profile, sizeof(d->profile), err) < 0 ||
        weft_read_json_text(object, "capability", d->capability, sizeof(d->capability), err) < 0 ||
        weft_read_json_text(object, "clique", d->clique, sizeof(d->clique), err) < 0 ||
        read_u64(object, "memory_mib", &d->memory_mib, err) < 0 || read_links(object, d, err) < 0 ||
        read_pcie(object, &d->pcie, err) < 0 || read_split(object, d, err) < 0;
    return bad ? -EINVAL : 0;
}

int weft_read_json_device(const struct weft_json *object, struct weft_device *d,
                          struct weft_error *err)
{
    static const char *const keys[] = {
        "id",         "index",         "model",         "bdf",        "numa",
        "numa_node",  "socket",        "parent",        "partition",  "healthy",
        "nodes",      "health_reason", "profile",       "capability", "clique",
        "memory_mib", "links_up",      "links_total",   "pcie",       "state",
        "mounts",     "pci_class",     "partitionable", "slices",     NULL};
    int rc = weft_json_only(object, keys, err);
    if (rc < 0) {
        return rc;
    }
    rc = weft_read_json_text(object, "id", d->id, sizeof(d->id), err);
    if (rc < 0) {
        return rc;
    }
    if (!weft_device_id_valid(d->id)) {
        return weft_json_error(object, err,
                               "needs an \"id\" of 1 to 63 visible ASCII characters, no comma");
    }
    if (weft_read_json_text(object, "model", d->model, sizeof(d->model), err) < 0 ||
        read_int(object, "index", 0, &d->index, err) < 0 ||
        read_int(object, "socket", -1, &d->socket, err) < 0 ||
        read_int(object, "parent", -1, &d->parent, err) < 0 ||
        read_int(object, "partition", 0, &d->partition, err) < 0 ||
        read_state(object, d, err) < 0) {
        return -EINVAL;
    }
    rc = read_bdf(object, &d->bdf, err);
    rc = rc < 0 ? rc : read_numa(object, d, err);
    rc = rc < 0 ? rc : read_paths(object, "nodes", weft_machine_add_node, d, err);
    return rc < 0 ? rc : read_paths(object, "mounts", weft_machine_add_mount, d, err);
}

static int read_layer(const struct weft_json *object, enum weft_nic_layer *to,
                      struct weft_error *err)
{
    const char *text = NULL;
    const int rc = weft_json_get_string(object, "layer", &text, err);
    if (rc <= 0) {
        return rc;
    }
    for (int layer = 0; layer < WEFT_NIC_LAYER_COUNT; layer++) {
        if (strcmp(text, weft_nic_layer_name((enum weft_nic_layer)layer)) == 0) {
            *to = (enum weft_nic_layer)layer;
            return 1;
        }
    }
    return weft_json_error(weft_json_get(object, "layer"), err,
                           "\"%.40s\" is neither infiniband nor ethernet", text);
}

static int read_guid(const struct weft_json *object, uint64_t *to, struct weft_error *err)
{
    const char *text = NULL;
    const int rc = weft_json_get_string(object, "guid", &text, err);
    if (rc > 0 && weft_parse_hex64(weft_str(text), to) < 0) {
        return weft_json_error(weft_json_get(object, "guid"), err,
                               "\"%.40s\" is no GUID like 0x506b4b0300c3f0aa", text);
    }
    return rc;
}

/* What is known of the NIC's port. */
static int read_port(const struct weft_json *object, struct weft_nic *nic, struct weft_error *err)
{
    bool up = false;
    const int rc = weft_json_get_bool(object, "up", &up, err);
    if (rc > 0) {
        nic->up = up;
    }
    const bool bad =
        rc < 0 ||
        weft_read_json_text(object, "netdev", nic->netdev, sizeof(nic->netdev), err) < 0 ||
        read_u64(object, "rate_mbps", &nic->rate_mbps, err) < 0 ||
        read_layer(object, &nic->layer, err) < 0 || read_guid(object, &nic->guid, err) < 0;
    return bad ? -EINVAL : 0;
}

int weft_read_json_nic(const struct weft_json *object, struct weft_nic *nic, struct weft_error *err)
{
    static const char *const keys[] = {"name",      "netdev", "bdf",  "numa_node", "layer",
                                       "rate_mbps", "up",     "guid", NULL};
    int rc = weft_json_only(object, keys, err);
    rc = rc < 0 ? rc : weft_read_json_text(object, "name", nic->name, sizeof(nic->name), err);
    if (rc == 0 || (rc > 0 && nic->name[0] == '\0')) {
        return weft_json_error(object, err, "needs a \"name\"");
    }
    rc = rc < 0 ? rc : read_bdf(object, &nic->bdf, err);
    rc = rc < 0 ? rc : read_int(object, "numa_node", -1, &nic->numa_node, err);
    return rc < 0 ? rc : read_port(object, nic, err);
}
