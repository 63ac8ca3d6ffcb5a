/* SPDX-License-Identifier: Apache-2.0 */
/* The machine as a value: made, filled, looked up, compared, freed. What the values mean and how
 * they are derived stands in derive.c. */
#include "pkg/machine/machine.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/map.h"
#include "pkg/base/str.h"
#include "pkg/machine/machine-internal.h"

static int allocate_content(struct weft_machine *m, const char *name)
{
    const size_t n = m->device_count;
    m->name = weft_strdup(name);
    m->vendor = weft_strdup("");
    m->devices = weft_calloc(n, sizeof(*m->devices));
    m->nics = weft_calloc(m->nic_count, sizeof(*m->nics));
    m->bandwidth = weft_calloc(n * n, sizeof(*m->bandwidth));
    m->distance = weft_malloc(n * n);
    m->nic_distance = weft_malloc(n * m->nic_count);
    const bool complete = m->name != NULL && m->vendor != NULL && m->devices != NULL &&
                          m->nics != NULL && m->bandwidth != NULL && m->distance != NULL &&
                          m->nic_distance != NULL;
    return complete ? 0 : -ENOMEM;
}

static void set_unknown(struct weft_machine *m)
{
    for (size_t i = 0; i < m->device_count; i++) {
        struct weft_device *d = &m->devices[i];
        d->index = (int)i;
        d->numa_node = d->numa_group = d->socket = d->parent = -1;
        d->healthy = true;
        d->links_up = d->links_total = -1;
    }
    for (size_t i = 0; i < m->nic_count; i++) {
        m->nics[i].numa_node = -1;
        m->nics[i].up = -1;
    }
    memset(m->distance, WEFT_DISTANCE_SYS, m->device_count * m->device_count);
    memset(m->nic_distance, WEFT_DISTANCE_SYS, m->device_count * m->nic_count);
    for (size_t i = 0; i < m->device_count; i++) {
        m->distance[i * m->device_count + i] = WEFT_DISTANCE_PSB;
    }
}

int weft_machine_new(const char *name, size_t device_count, size_t nic_count,
                     struct weft_machine **ret_machine, struct weft_error *err)
{
    if (device_count > WEFT_MACHINE_DEVICES_MAX || nic_count > WEFT_MACHINE_NICS_MAX) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG,
                            "%s: %zu devices and %zu NICs, at most %d and %d are handled", name,
                            device_count, nic_count, (int)WEFT_MACHINE_DEVICES_MAX,
                            (int)WEFT_MACHINE_NICS_MAX);
    }
    weft_auto(weft_machine_free) struct weft_machine *m = weft_calloc(1, sizeof(*m));
    if (m == NULL) {
        return weft_err_nomem(err);
    }
    m->device_count = device_count;
    m->nic_count = nic_count;
    if (allocate_content(m, name) < 0) {
        return weft_err_nomem(err);
    }
    set_unknown(m);
    *ret_machine = weft_steal(&m);
    return 0;
}

static void free_texts(char **texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        weft_free(texts[i]);
    }
}

void weft_machine_free(struct weft_machine *m)
{
    if (m == NULL) {
        return;
    }
    for (size_t i = 0; m->devices != NULL && i < m->device_count; i++) {
        free_texts(m->devices[i].nodes, m->devices[i].node_count);
        free_texts(m->devices[i].mounts, m->devices[i].mount_count);
    }
    free_texts(m->common_nodes, m->common_node_count);
    free_texts(m->warnings, m->warning_count);
    weft_free(m->name);
    weft_free(m->vendor);
    weft_free(m->devices);
    weft_free(m->nics);
    weft_free(m->parents);
    weft_free(m->bandwidth);
    weft_free(m->distance);
    weft_free(m->nic_distance);
    weft_free(m->common_nodes);
    weft_free(m->warnings);
    weft_free(m);
}

/* Appends an owned text to a list that is allocated at its full size on first use: these lists are
 * short and their caps small. */
static int append_text(char ***list, size_t *count, size_t max, char *text)
{
    if (*list == NULL) {
        *list = weft_calloc(max, sizeof(**list));
    }
    if (text == NULL || *list == NULL) {
        weft_free(text);
        return -ENOMEM;
    }
    (*list)[(*count)++] = text;
    return 0;
}

/* Words of a source may hold anything; a warning is printed and written as JSON. */
static void make_printable(char *text)
{
    const bool utf8 = weft_utf8_valid(text, strlen(text));
    for (char *p = text; *p != '\0'; p++) {
        const unsigned char c = (unsigned char)*p;
        if (c < ' ' || c == 0x7f || (c > 0x7f && !utf8)) {
            *p = '?';
        }
    }
}

int weft_machine_warn(struct weft_machine *m, const char *format, ...)
{
    if (m->warning_count == WEFT_MACHINE_WARNINGS_MAX) {
        return 0;
    }
    char text[512] = "further warnings are left out";
    if (m->warning_count < WEFT_MACHINE_WARNINGS_MAX - 1) {
        va_list ap;
        va_start(ap, format);
        (void)vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        make_printable(text);
    }
    return append_text(&m->warnings, &m->warning_count, WEFT_MACHINE_WARNINGS_MAX,
                       weft_strdup(text));
}

static bool is_device_path(const char *path)
{
    return path[0] == '/' && strlen(path) < WEFT_MACHINE_PATH_MAX;
}

static int add_path(char **list, size_t *count, size_t max, const char *path)
{
    if (!is_device_path(path)) {
        return -EINVAL;
    }
    if (*count == max) {
        return -EFBIG;
    }
    char *copy = weft_strdup(path);
    if (copy == NULL) {
        return -ENOMEM;
    }
    list[(*count)++] = copy;
    return 0;
}

int weft_machine_add_node(struct weft_device *d, const char *path)
{
    return add_path(d->nodes, &d->node_count, WEFT_MACHINE_NODES_MAX, path);
}

int weft_machine_add_mount(struct weft_device *d, const char *path)
{
    return add_path(d->mounts, &d->mount_count, WEFT_MACHINE_MOUNTS_MAX, path);
}

int weft_machine_add_common_node(struct weft_machine *m, const char *path)
{
    if (!is_device_path(path)) {
        return -EINVAL;
    }
    if (m->common_node_count == WEFT_MACHINE_COMMON_MAX) {
        return -EFBIG;
    }
    return append_text(&m->common_nodes, &m->common_node_count, WEFT_MACHINE_COMMON_MAX,
                       weft_strdup(path));
}

size_t weft_machine_find_id(const struct weft_machine *m, const char *id)
{
    for (size_t i = 0; i < m->device_count; i++) {
        if (strcmp(m->devices[i].id, id) == 0) {
            return i;
        }
    }
    return SIZE_MAX;
}

size_t weft_machine_find(const struct weft_machine *m, const char *id)
{
    const size_t with_id = weft_machine_find_id(m, id);
    if (with_id != SIZE_MAX) {
        return with_id;
    }
    struct weft_str digits = weft_str(id);
    if (weft_str_starts(digits, "GPU")) {
        digits = weft_str(id + 3);
    }
    uint64_t index = 0;
    if (weft_parse_u64(digits, INT32_MAX, &index) < 0) {
        return SIZE_MAX;
    }
    for (size_t i = 0; i < m->device_count; i++) {
        if (m->devices[i].index == (int)index) {
            return i;
        }
    }
    return SIZE_MAX;
}

bool weft_device_id_valid(const char *id)
{
    const size_t len = strnlen(id, WEFT_DEVICE_ID_MAX);
    for (size_t i = 0; i < len; i++) {
        if (id[i] <= ' ' || id[i] > '~' || id[i] == ',') {
            return false;
        }
    }
    return len > 0 && len < WEFT_DEVICE_ID_MAX;
}

static int check_index(struct weft_map *seen, const struct weft_device *d, const char *name,
                       struct weft_error *err)
{
    if (d->parent >= 0) {
        return 0; /* the partitions of one GPU may carry its index */
    }
    char key[16];
    (void)snprintf(key, sizeof(key), "%d", d->index);
    const int rc = weft_map_put(seen, key, 0);
    if (rc == 1) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s: two devices have index %d, the second is %s", name, d->index,
                            d->id);
    }
    return rc < 0 ? weft_err_nomem(err) : 0;
}

int weft_machine_finish(const struct weft_machine *m, struct weft_error *err)
{
    weft_auto(weft_map_free) struct weft_map *ids = weft_map_new(WEFT_MACHINE_DEVICES_MAX);
    weft_auto(weft_map_free) struct weft_map *indices = weft_map_new(WEFT_MACHINE_DEVICES_MAX);
    if (ids == NULL || indices == NULL) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < m->device_count; i++) {
        const struct weft_device *d = &m->devices[i];
        if (!weft_device_id_valid(d->id)) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "%s: device %zu: an id has 1 to 63 visible ASCII characters and no "
                                "comma",
                                m->name, i);
        }
        int rc = weft_map_put(ids, d->id, i);
        if (rc == 1) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s: two devices have the id %s",
                                m->name, d->id);
        }
        rc = rc < 0 ? weft_err_nomem(err) : check_index(indices, d, m->name, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static bool texts_equal(char *const *a, size_t a_count, char *const *b, size_t b_count)
{
    bool equal = a_count == b_count;
    for (size_t i = 0; equal && i < a_count; i++) {
        equal = strcmp(a[i], b[i]) == 0;
    }
    return equal;
}

static bool bdf_equal(const struct weft_bdf *a, const struct weft_bdf *b)
{
    if (!a->known || !b->known) {
        return a->known == b->known;
    }
    return a->domain == b->domain && a->bus == b->bus && a->device == b->device &&
           a->function == b->function;
}

static bool pcie_equal(const struct weft_pcie *a, const struct weft_pcie *b)
{
    return a->generation == b->generation && a->width == b->width &&
           a->max_generation == b->max_generation && a->max_width == b->max_width;
}

const char *weft_device_state_name(const struct weft_device *device)
{
    switch (device->state) {
    case WEFT_DEVICE_SUSPECT:
        return "suspect";
    case WEFT_DEVICE_RECOVERING:
        return "recovering";
    case WEFT_DEVICE_PLAIN:
        break;
    }
    return device->healthy ? "healthy" : "unhealthy";
}

static bool state_equal(const struct weft_device *a, const struct weft_device *b)
{
    return a->healthy == b->healthy && a->state == b->state &&
           strcmp(a->health_reason, b->health_reason) == 0 && strcmp(a->profile, b->profile) == 0 &&
           strcmp(a->capability, b->capability) == 0 && strcmp(a->clique, b->clique) == 0 &&
           a->memory_mib == b->memory_mib && a->links_up == b->links_up &&
           a->links_total == b->links_total && pcie_equal(&a->pcie, &b->pcie);
}

static bool paths_equal(const struct weft_device *a, const struct weft_device *b)
{
    return texts_equal(a->nodes, a->node_count, b->nodes, b->node_count) &&
           texts_equal(a->mounts, a->mount_count, b->mounts, b->mount_count);
}

static bool device_equal(const struct weft_device *a, const struct weft_device *b)
{
    return strcmp(a->id, b->id) == 0 && strcmp(a->model, b->model) == 0 &&
           strcmp(a->numa_label, b->numa_label) == 0 && a->index == b->index &&
           bdf_equal(&a->bdf, &b->bdf) && a->numa_node == b->numa_node &&
           a->numa_group == b->numa_group && a->socket == b->socket && a->parent == b->parent &&
           a->partition == b->partition && state_equal(a, b) && a->pci_class == b->pci_class &&
           a->partitionable == b->partitionable &&
           memcmp(&a->slices, &b->slices, sizeof(a->slices)) == 0 && paths_equal(a, b);
}

static bool nic_equal(const struct weft_nic *a, const struct weft_nic *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->netdev, b->netdev) == 0 &&
           bdf_equal(&a->bdf, &b->bdf) && a->numa_node == b->numa_node && a->layer == b->layer &&
           a->rate_mbps == b->rate_mbps && a->up == b->up && a->guid == b->guid;
}

static bool parent_equal(const struct weft_parent *a, const struct weft_parent *b)
{
    return a->index == b->index && strcmp(a->model, b->model) == 0 &&
           strcmp(a->capability, b->capability) == 0 && a->memory_mib == b->memory_mib &&
           a->pci_class == b->pci_class;
}

static bool source_equal(const struct weft_machine *a, const struct weft_machine *b)
{
    return strcmp(a->vendor, b->vendor) == 0 && strcmp(a->driver_version, b->driver_version) == 0 &&
           strcmp(a->runtime_version, b->runtime_version) == 0 &&
           strcmp(a->clique, b->clique) == 0 && a->partial == b->partial &&
           texts_equal(a->common_nodes, a->common_node_count, b->common_nodes,
                       b->common_node_count);
}

bool weft_machine_equal(const struct weft_machine *a, const struct weft_machine *b)
{
    const size_t n = a->device_count;
    bool equal = n == b->device_count && a->nic_count == b->nic_count && source_equal(a, b);
    for (size_t i = 0; equal && i < n; i++) {
        equal = device_equal(&a->devices[i], &b->devices[i]);
    }
    equal = equal && a->parent_count == b->parent_count;
    for (size_t i = 0; equal && i < a->parent_count; i++) {
        equal = parent_equal(&a->parents[i], &b->parents[i]);
    }
    for (size_t i = 0; equal && i < a->nic_count; i++) {
        equal = nic_equal(&a->nics[i], &b->nics[i]);
    }
    return equal && memcmp(a->bandwidth, b->bandwidth, n * n * sizeof(*a->bandwidth)) == 0 &&
           memcmp(a->distance, b->distance, n * n) == 0 &&
           memcmp(a->nic_distance, b->nic_distance, n * a->nic_count) == 0;
}
