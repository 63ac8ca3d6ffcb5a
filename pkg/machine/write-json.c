/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a machine as weft's own JSON (docs/machine.md): what read-json.c reads back. */
#include <inttypes.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/json/json.h"
#include "pkg/machine/machine-internal.h"

/* Unknown numbers are left out, so that a reader of the file sees at once what is known. */
static void put_known(struct weft_json_writer *w, const char *key, int value)
{
    if (value >= 0) {
        weft_json_kv_int(w, key, value);
    }
}

static void put_text(struct weft_json_writer *w, const char *key, const char *text)
{
    if (text[0] != '\0') {
        weft_json_kv_string(w, key, text);
    }
}

static void put_texts(struct weft_json_writer *w, const char *key, char *const *texts, size_t count)
{
    weft_json_put_key(w, key);
    weft_json_open(w, '[');
    for (size_t i = 0; i < count; i++) {
        weft_json_put_string(w, texts[i]);
    }
    weft_json_close(w, ']');
}

static void put_number(struct weft_json_writer *w, const char *key, uint64_t value)
{
    if (value > 0) {
        weft_json_kv_int(w, key, (int64_t)value);
    }
}

static void put_pcie(struct weft_json_writer *w, const struct weft_pcie *p)
{
    if (p->generation == 0 && p->width == 0 && p->max_generation == 0 && p->max_width == 0) {
        return;
    }
    const unsigned indent = w->indent;
    weft_json_put_key(w, "pcie");
    weft_json_open(w, '{');
    w->indent = 0;
    put_number(w, "generation", p->generation);
    put_number(w, "width", p->width);
    put_number(w, "max_generation", p->max_generation);
    put_number(w, "max_width", p->max_width);
    weft_json_close(w, '}');
    w->indent = indent;
}

static void put_class(struct weft_json_writer *w, uint32_t class_code)
{
    char text[16] = "";
    if (class_code != 0) {
        (void)snprintf(text, sizeof(text), "0x%06" PRIx32, class_code);
    }
    put_text(w, "pci_class", text);
}

static void put_slices(struct weft_json_writer *w, const struct weft_slices *s)
{
    if (s->gpu == 0) {
        return;
    }
    const unsigned indent = w->indent;
    weft_json_put_key(w, "slices");
    weft_json_open(w, '{');
    w->indent = 0;
    weft_json_kv_int(w, "gpu", s->gpu);
    weft_json_kv_int(w, "compute", s->compute);
    weft_json_kv_int(w, "multiprocessors", s->multiprocessors);
    weft_json_kv_int(w, "copy", s->copy);
    weft_json_kv_int(w, "decoders", s->decoders);
    weft_json_kv_int(w, "encoders", s->encoders);
    weft_json_kv_int(w, "jpegs", s->jpegs);
    weft_json_kv_int(w, "ofas", s->ofas);
    weft_json_close(w, '}');
    w->indent = indent;
}

static void put_parents(struct weft_json_writer *w, const struct weft_machine *m)
{
    if (m->parent_count == 0) {
        return;
    }
    weft_json_put_key(w, "parents");
    weft_json_open(w, '[');
    for (size_t i = 0; i < m->parent_count; i++) {
        const struct weft_parent *p = &m->parents[i];
        weft_json_open(w, '{');
        weft_json_kv_int(w, "index", p->index);
        put_text(w, "model", p->model);
        put_text(w, "capability", p->capability);
        put_number(w, "memory_mib", p->memory_mib);
        put_class(w, p->pci_class);
        weft_json_close(w, '}');
    }
    weft_json_close(w, ']');
}

/* What vendors tell beside the wiring. */
static void put_state(struct weft_json_writer *w, const struct weft_device *d)
{
    weft_json_kv_bool(w, "healthy", d->healthy);
    put_text(w, "state", d->state != WEFT_DEVICE_PLAIN ? weft_device_state_name(d) : "");
    put_text(w, "health_reason", d->health_reason);
    put_text(w, "profile", d->profile);
    put_text(w, "capability", d->capability);
    put_text(w, "clique", d->clique);
    put_number(w, "memory_mib", d->memory_mib);
    put_known(w, "links_up", d->links_up);
    put_known(w, "links_total", d->links_total);
    put_pcie(w, &d->pcie);
    put_class(w, d->pci_class);
    if (d->partitionable) {
        weft_json_kv_bool(w, "partitionable", true);
    }
    put_slices(w, &d->slices);
}

static void put_device(struct weft_json_writer *w, const struct weft_device *d)
{
    char bdf[WEFT_BDF_TEXT_MAX];
    weft_json_open(w, '{');
    weft_json_kv_string(w, "id", d->id);
    weft_json_kv_int(w, "index", d->index);
    put_text(w, "model", d->model);
    put_text(w, "bdf", weft_bdf_format(&d->bdf, bdf));
    put_text(w, "numa", d->numa_label);
    if (d->numa_node >= 0 || d->numa_label[0] != '\0') {
        weft_json_kv_int(w, "numa_node", d->numa_node); /* -1 beside a label: it names no node */
    }
    put_known(w, "socket", d->socket);
    put_known(w, "parent", d->parent);
    if (d->partition > 0) {
        weft_json_kv_int(w, "partition", d->partition);
    }
    put_state(w, d);
    if (d->node_count > 0) {
        put_texts(w, "nodes", d->nodes, d->node_count);
    }
    if (d->mount_count > 0) {
        put_texts(w, "mounts", d->mounts, d->mount_count);
    }
    weft_json_close(w, '}');
}

static void put_devices(struct weft_json_writer *w, const struct weft_machine *m)
{
    weft_json_put_key(w, "devices");
    weft_json_open(w, '[');
    for (size_t i = 0; i < m->device_count; i++) {
        put_device(w, &m->devices[i]);
    }
    weft_json_close(w, ']');
}

static void put_nic(struct weft_json_writer *w, const struct weft_nic *nic)
{
    char bdf[WEFT_BDF_TEXT_MAX];
    char guid[24] = "";
    if (nic->guid != 0) {
        (void)snprintf(guid, sizeof(guid), "0x%016" PRIx64, nic->guid);
    }
    weft_json_open(w, '{');
    weft_json_kv_string(w, "name", nic->name);
    put_text(w, "netdev", nic->netdev);
    put_text(w, "bdf", weft_bdf_format(&nic->bdf, bdf));
    put_known(w, "numa_node", nic->numa_node);
    put_text(w, "layer", weft_nic_layer_name(nic->layer));
    put_number(w, "rate_mbps", nic->rate_mbps);
    if (nic->up >= 0) {
        weft_json_kv_bool(w, "up", nic->up > 0);
    }
    put_text(w, "guid", guid);
    weft_json_close(w, '}');
}

static void put_nics(struct weft_json_writer *w, const struct weft_machine *m)
{
    weft_json_put_key(w, "nics");
    weft_json_open(w, '[');
    for (size_t i = 0; i < m->nic_count; i++) {
        put_nic(w, &m->nics[i]);
    }
    weft_json_close(w, ']');
}

static void put_distance(struct weft_json_writer *w, const struct weft_machine *m, size_t i,
                         size_t j)
{
    if (i == j) {
        weft_json_put_null(w);
    } else {
        weft_json_put_string(w, weft_distance_name(weft_machine_t(m, i, j)));
    }
}

static void put_bandwidth(struct weft_json_writer *w, const struct weft_machine *m, size_t i,
                          size_t j)
{
    weft_json_put_int(w, (int64_t)weft_machine_b(m, i, j));
}

static void put_nic_distance(struct weft_json_writer *w, const struct weft_machine *m, size_t i,
                             size_t n)
{
    weft_json_put_string(w, weft_distance_name(weft_machine_n(m, i, n)));
}

typedef void (*put_cell_fn)(struct weft_json_writer *w, const struct weft_machine *m, size_t i,
                            size_t j);

static void put_matrix(struct weft_json_writer *w, const char *key, const struct weft_machine *m,
                       size_t columns, put_cell_fn put_cell)
{
    weft_json_put_key(w, key);
    weft_json_open(w, '[');
    for (size_t i = 0; i < m->device_count; i++) {
        const unsigned indent = w->indent;
        weft_json_open(w, '[');
        w->indent = 0; /* one line a row: a person compares rows */
        for (size_t j = 0; j < columns; j++) {
            put_cell(w, m, i, j);
        }
        weft_json_close(w, ']');
        w->indent = indent;
    }
    weft_json_close(w, ']');
}

int weft_machine_write_json(const struct weft_machine *m, struct weft_buf *buf)
{
    struct weft_json_writer w;
    weft_json_writer_init(&w, buf, 2);
    weft_json_open(&w, '{');
    weft_json_kv_int(&w, "weft_machine", 1);
    put_text(&w, "vendor", m->vendor);
    put_text(&w, "driver_version", m->driver_version);
    put_text(&w, "runtime_version", m->runtime_version);
    put_text(&w, "clique", m->clique);
    if (m->partial) {
        weft_json_kv_bool(&w, "partial", true);
    }
    put_texts(&w, "common_nodes", m->common_nodes, m->common_node_count);
    put_devices(&w, m);
    put_parents(&w, m);
    put_nics(&w, m);
    put_matrix(&w, "bandwidth", m, m->device_count, put_bandwidth);
    put_matrix(&w, "distance", m, m->device_count, put_distance);
    put_matrix(&w, "nic_distance", m, m->nic_count, put_nic_distance);
    if (m->warning_count > 0) {
        put_texts(&w, "warnings", m->warnings, m->warning_count);
    }
    weft_json_close(&w, '}');
    (void)weft_buf_putc(buf, '\n');
    return buf->status;
}
