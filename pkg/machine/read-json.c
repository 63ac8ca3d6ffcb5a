/* SPDX-License-Identifier: Apache-2.0 */
/* Reads weft's own recorded machine (docs/machine-json.md). Strict: an unknown field, a matrix that
 * is not square or a value out of range is an error that names its place; nothing is guessed. */
#include <errno.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/json/json.h"
#include "pkg/machine/machine-internal.h"

/* A text of at most size - 1 bytes; absent leaves it as it is. */
static int read_text(const struct weft_json *object, const char *key, char *to, size_t size,
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

static int add_failed(const struct weft_json *node, int rc, struct weft_error *err)
{
    switch (rc) {
    case 0:
        return 0;
    case -EFBIG:
        return weft_json_error(node, err, "too many device nodes");
    case -EINVAL:
        return weft_json_error(node, err, "a device node is an absolute path of at most %d bytes",
                               WEFT_MACHINE_PATH_MAX - 1);
    default:
        return weft_err_nomem(err);
    }
}

static int read_nodes(const struct weft_json *object, struct weft_device *d, struct weft_error *err)
{
    const struct weft_json *nodes = NULL;
    const int rc = weft_json_get_array(object, "nodes", &nodes, err);
    for (size_t i = 0; rc > 0 && i < weft_json_count(nodes); i++) {
        const struct weft_json *node = weft_json_at(nodes, i);
        const char *path = weft_json_string(node);
        const int added =
            add_failed(node, path == NULL ? -EINVAL : weft_machine_add_node(d, path), err);
        if (added < 0) {
            return added;
        }
    }
    return rc < 0 ? rc : 0;
}

static int read_common_nodes(const struct weft_json *root, struct weft_machine *m,
                             struct weft_error *err)
{
    const struct weft_json *nodes = NULL;
    const int rc = weft_json_get_array(root, "common_nodes", &nodes, err);
    for (size_t i = 0; rc > 0 && i < weft_json_count(nodes); i++) {
        const struct weft_json *node = weft_json_at(nodes, i);
        const char *path = weft_json_string(node);
        const int added =
            add_failed(node, path == NULL ? -EINVAL : weft_machine_add_common_node(m, path), err);
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

static int read_device(const struct weft_json *object, struct weft_device *d,
                       struct weft_error *err)
{
    static const char *const keys[] = {"id",        "index",     "model",  "bdf",
                                       "numa",      "numa_node", "socket", "parent",
                                       "partition", "healthy",   "nodes",  NULL};
    int rc = weft_json_only(object, keys, err);
    if (rc < 0) {
        return rc;
    }
    rc = read_text(object, "id", d->id, sizeof(d->id), err);
    if (rc < 0) {
        return rc;
    }
    if (!weft_device_id_valid(d->id)) {
        return weft_json_error(object, err,
                               "needs an \"id\" of 1 to 63 visible ASCII characters, no comma");
    }
    if (read_text(object, "model", d->model, sizeof(d->model), err) < 0 ||
        read_int(object, "index", 0, &d->index, err) < 0 ||
        read_int(object, "socket", -1, &d->socket, err) < 0 ||
        read_int(object, "parent", -1, &d->parent, err) < 0 ||
        read_int(object, "partition", 0, &d->partition, err) < 0 ||
        weft_json_get_bool(object, "healthy", &d->healthy, err) < 0) {
        return -EINVAL;
    }
    rc = read_bdf(object, &d->bdf, err);
    rc = rc < 0 ? rc : read_numa(object, d, err);
    return rc < 0 ? rc : read_nodes(object, d, err);
}

static int read_nic(const struct weft_json *object, struct weft_nic *nic, struct weft_error *err)
{
    static const char *const keys[] = {"name", "bdf", "numa_node", NULL};
    int rc = weft_json_only(object, keys, err);
    rc = rc < 0 ? rc : read_text(object, "name", nic->name, sizeof(nic->name), err);
    if (rc == 0 || (rc > 0 && nic->name[0] == '\0')) {
        return weft_json_error(object, err, "needs a \"name\"");
    }
    rc = rc < 0 ? rc : read_bdf(object, &nic->bdf, err);
    rc = rc < 0 ? rc : read_int(object, "numa_node", -1, &nic->numa_node, err);
    return rc < 0 ? rc : 0;
}

/* A matrix of rows x columns cells; *ret NULL if absent. */
static int read_matrix(const struct weft_json *root, const char *key, size_t rows, size_t columns,
                       const struct weft_json **ret, struct weft_error *err)
{
    const struct weft_json *matrix = NULL;
    const int rc = weft_json_get_array(root, key, &matrix, err);
    if (rc <= 0) {
        return rc;
    }
    if (weft_json_count(matrix) != rows) {
        return weft_json_error(matrix, err, "has %zu rows, one for each of %zu devices is needed",
                               weft_json_count(matrix), rows);
    }
    for (size_t i = 0; i < rows; i++) {
        const struct weft_json *row = weft_json_at(matrix, i);
        if (weft_json_type(row) != WEFT_JSON_ARRAY || weft_json_count(row) != columns) {
            return weft_json_error(row, err, "is no array of %zu cells", columns);
        }
    }
    *ret = matrix;
    return 1;
}

static const struct weft_json *cell_at(const struct weft_json *matrix, size_t i, size_t j)
{
    return weft_json_at(weft_json_at(matrix, i), j);
}

static int read_distance(const struct weft_json *cell, int *ret_distance, struct weft_error *err)
{
    enum weft_distance distance = WEFT_DISTANCE_SYS;
    const char *text = weft_json_string(cell);
    if (weft_json_type(cell) == WEFT_JSON_NULL) {
        *ret_distance = WEFT_DISTANCE_UNKNOWN;
        return 0;
    }
    if (text == NULL || !weft_distance_parse(text, strlen(text), &distance)) {
        return weft_json_error(cell, err, "is none of PSB PIX PXB PHB NODE SYS or null");
    }
    *ret_distance = (int)distance;
    return 0;
}

struct matrices {
    const struct weft_json *bandwidth, *distance;
};

static int read_cell(const struct matrices *x, size_t i, size_t j, struct weft_reading *ret,
                     struct weft_error *err)
{
    const struct weft_json *b = cell_at(x->bandwidth, i, j);
    *ret = (struct weft_reading){.distance = WEFT_DISTANCE_UNKNOWN};
    if (weft_json_type(b) != WEFT_JSON_NULL) {
        const int64_t value = weft_json_int(b, -1);
        if (value < 0 || (uint64_t)value > WEFT_MACHINE_BANDWIDTH_MAX) {
            return weft_json_error(b, err, "is no bandwidth in MB/s between 0 and %llu",
                                   (unsigned long long)WEFT_MACHINE_BANDWIDTH_MAX);
        }
        ret->bandwidth = (uint64_t)value;
    }
    return read_distance(cell_at(x->distance, i, j), &ret->distance, err);
}

static int read_pair(const struct matrices *x, struct weft_machine *m, size_t i, size_t j,
                     struct weft_error *err)
{
    struct weft_reading from_i;
    struct weft_reading from_j;
    if (read_cell(x, i, j, &from_i, err) < 0 || read_cell(x, j, i, &from_j, err) < 0) {
        return -EINVAL;
    }
    if (!weft_machine_set_pair(m, i, j, from_i, from_j) &&
        weft_machine_warn(m,
                          "%s and %s see their link differently: the smaller bandwidth and the "
                          "larger distance count",
                          m->devices[i].id, m->devices[j].id) < 0) {
        return weft_err_nomem(err);
    }
    return 0;
}

static int read_wiring(const struct weft_json *root, struct weft_machine *m, struct weft_error *err)
{
    const size_t n = m->device_count;
    struct matrices x = {NULL, NULL};
    const struct weft_json *nics = NULL;
    if (read_matrix(root, "bandwidth", n, n, &x.bandwidth, err) < 0 ||
        read_matrix(root, "distance", n, n, &x.distance, err) < 0 ||
        read_matrix(root, "nic_distance", n, m->nic_count, &nics, err) < 0) {
        return -EINVAL;
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n; j++) {
            const int rc = read_pair(&x, m, i, j, err);
            if (rc < 0) {
                return rc;
            }
        }
        for (size_t k = 0; k < m->nic_count; k++) {
            int distance = WEFT_DISTANCE_UNKNOWN;
            if (read_distance(cell_at(nics, i, k), &distance, err) < 0) {
                return -EINVAL;
            }
            weft_machine_set_nic(m, i, k, distance);
        }
    }
    return 0;
}

static int read_warnings(const struct weft_json *root, struct weft_machine *m,
                         struct weft_error *err)
{
    const struct weft_json *warnings = NULL;
    const int rc = weft_json_get_array(root, "warnings", &warnings, err);
    for (size_t i = 0; rc > 0 && i < weft_json_count(warnings); i++) {
        const struct weft_json *node = weft_json_at(warnings, i);
        if (weft_json_string(node) == NULL) {
            return weft_json_error(node, err, "is no text");
        }
        if (weft_machine_warn(m, "%s", weft_json_string(node)) < 0) {
            return weft_err_nomem(err);
        }
    }
    return rc < 0 ? rc : 0;
}

static int read_content(const struct weft_json *root, const struct weft_json *devices,
                        const struct weft_json *nics, struct weft_machine *m,
                        struct weft_error *err)
{
    for (size_t i = 0; i < m->device_count; i++) {
        const int rc = read_device(weft_json_at(devices, i), &m->devices[i], err);
        if (rc < 0) {
            return rc;
        }
    }
    for (size_t i = 0; i < m->nic_count; i++) {
        const int rc = read_nic(weft_json_at(nics, i), &m->nics[i], err);
        if (rc < 0) {
            return rc;
        }
    }
    const char *vendor = NULL;
    int rc = weft_json_get_string(root, "vendor", &vendor, err);
    if (rc > 0) {
        weft_free(m->vendor);
        m->vendor = weft_strdup(vendor);
        rc = m->vendor == NULL ? weft_err_nomem(err) : 0;
    }
    weft_machine_group_numa(m);
    rc = rc < 0 ? rc : read_warnings(root, m, err);
    rc = rc < 0 ? rc : read_common_nodes(root, m, err);
    rc = rc < 0 ? rc : read_wiring(root, m, err);
    return rc < 0 ? rc : weft_machine_finish(m, err);
}

static int read_root(const struct weft_json *root, const char *name,
                     struct weft_machine **ret_machine, struct weft_error *err)
{
    static const char *const keys[] = {"weft_machine", "vendor",    "common_nodes", "devices",
                                       "nics",         "bandwidth", "distance",     "nic_distance",
                                       "warnings",     NULL};
    int64_t version = 0;
    if (weft_json_type(root) == WEFT_JSON_OBJECT && weft_json_get(root, "weft_machine") == NULL) {
        return weft_json_error(root, err, "is JSON, but no machine: no \"weft_machine\" field");
    }
    if (weft_json_only(root, keys, err) < 0 ||
        weft_json_get_int(root, "weft_machine", 1, 1, &version, err) < 0) {
        return -EINVAL;
    }
    const struct weft_json *devices = NULL;
    const struct weft_json *nics = NULL;
    const int rc = weft_json_get_array(root, "devices", &devices, err);
    if (rc < 0 || weft_json_get_array(root, "nics", &nics, err) < 0) {
        return -EINVAL;
    }
    if (rc == 0) {
        return weft_json_error(root, err, "has no \"devices\"");
    }
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    int made = weft_machine_new(name, weft_json_count(devices), weft_json_count(nics), &m, err);
    made = made < 0 ? made : read_content(root, devices, nics, m, err);
    if (made == 0) {
        *ret_machine = weft_steal(&m);
    }
    return made;
}

int weft_machine_read_json(const char *text, size_t len, const char *name,
                           struct weft_machine **ret_machine, struct weft_error *err)
{
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    const int rc = weft_json_parse(text, len, name, &root, err);
    return rc < 0 ? rc : read_root(root, name, ret_machine, err);
}
