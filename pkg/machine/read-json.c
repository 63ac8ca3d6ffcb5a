/* SPDX-License-Identifier: Apache-2.0 */
/* Reads weft's own recorded machine (docs/machine.md). Strict: an unknown field, a matrix that
 * is not square or a value out of range is an error that names its place; nothing is guessed. */
#include <errno.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/json/json.h"
#include "pkg/machine/machine-internal.h"
#include "pkg/machine/read-json-internal.h"

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

static int read_common_nodes(const struct weft_json *root, struct weft_machine *m,
                             struct weft_error *err)
{
    const struct weft_json *nodes = NULL;
    const int rc = weft_json_get_array(root, "common_nodes", &nodes, err);
    for (size_t i = 0; rc > 0 && i < weft_json_count(nodes); i++) {
        const struct weft_json *node = weft_json_at(nodes, i);
        const char *path = weft_json_string(node);
        const int added = weft_read_json_node_failed(
            node, path == NULL ? -EINVAL : weft_machine_add_common_node(m, path), err);
        if (added < 0) {
            return added;
        }
    }
    return rc < 0 ? rc : 0;
}

/* What the source says of the machine as a whole. */
static int read_source(const struct weft_json *root, struct weft_machine *m, struct weft_error *err)
{
    const char *vendor = NULL;
    const int rc = weft_json_get_string(root, "vendor", &vendor, err);
    if (rc > 0) {
        weft_free(m->vendor);
        m->vendor = weft_strdup(vendor);
        if (m->vendor == NULL) {
            return weft_err_nomem(err);
        }
    }
    const bool bad = rc < 0 ||
                     weft_read_json_text(root, "driver_version", m->driver_version,
                                         sizeof(m->driver_version), err) < 0 ||
                     weft_read_json_text(root, "runtime_version", m->runtime_version,
                                         sizeof(m->runtime_version), err) < 0 ||
                     weft_read_json_text(root, "clique", m->clique, sizeof(m->clique), err) < 0 ||
                     weft_json_get_bool(root, "partial", &m->partial, err) < 0;
    return bad ? -EINVAL : 0;
}

static int read_content(const struct weft_json *root, const struct weft_json *devices,
                        const struct weft_json *nics, struct weft_machine *m,
                        struct weft_error *err)
{
    for (size_t i = 0; i < m->device_count; i++) {
        const int rc = weft_read_json_device(weft_json_at(devices, i), &m->devices[i], err);
        if (rc < 0) {
            return rc;
        }
    }
    for (size_t i = 0; i < m->nic_count; i++) {
        const int rc = weft_read_json_nic(weft_json_at(nics, i), &m->nics[i], err);
        if (rc < 0) {
            return rc;
        }
    }
    int rc = read_source(root, m, err);
    weft_machine_group_numa(m);
    rc = rc < 0 ? rc : read_warnings(root, m, err);
    rc = rc < 0 ? rc : read_common_nodes(root, m, err);
    rc = rc < 0 ? rc : weft_read_json_parents(root, m, err);
    rc = rc < 0 ? rc : read_wiring(root, m, err);
    return rc < 0 ? rc : weft_machine_finish(m, err);
}

static int read_root(const struct weft_json *root, const char *name,
                     struct weft_machine **ret_machine, struct weft_error *err)
{
    static const char *const keys[] = {"weft_machine",    "vendor",   "driver_version",
                                       "runtime_version", "clique",   "partial",
                                       "common_nodes",    "devices",  "nics",
                                       "bandwidth",       "distance", "nic_distance",
                                       "warnings",        "parents",  NULL};
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
