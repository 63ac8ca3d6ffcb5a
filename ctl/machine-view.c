/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices are drawn as one, and where things sit: see machine-view.h. */
#include "ctl/machine-view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pkg/allocator/allocator.h"
#include "pkg/base/buf.h"

enum {
    FOLD_ABOVE = 8,      /* so many devices fit a terminal one by one */
    NIC_LABEL_SHORT = 7, /* "mlx5_10" */
};

/* ---- rows ---- */

static bool same_nics(const struct weft_machine *m, size_t i, size_t j)
{
    return memcmp(&m->nic_distance[i * m->nic_count], &m->nic_distance[j * m->nic_count],
                  m->nic_count) == 0;
}

static bool same_text(const struct weft_device *x, const struct weft_device *y)
{
    return strcmp(x->model, y->model) == 0 && strcmp(x->profile, y->profile) == 0 &&
           strcmp(x->numa_label, y->numa_label) == 0 &&
           strcmp(x->health_reason, y->health_reason) == 0 && x->state == y->state;
}

static bool look_alike(const struct weft_view *v, size_t i, size_t j)
{
    const struct weft_machine *m = v->machine;
    const struct weft_device *x = &m->devices[i];
    const struct weft_device *y = &m->devices[j];
    return m->device_count > FOLD_ABOVE &&
           weft_allocator_class_of(v->allocator, i) == weft_allocator_class_of(v->allocator, j) &&
           same_nics(m, i, j) && same_text(x, y) && x->parent == y->parent &&
           x->socket == y->socket && x->healthy == y->healthy && x->links_up == y->links_up &&
           x->links_total == y->links_total && memcmp(&x->pcie, &y->pcie, sizeof(x->pcie)) == 0;
}

static void fold_rows(struct weft_view *v)
{
    for (size_t i = 0; i < v->machine->device_count; i++) {
        size_t r = 0;
        while (r < v->row_count && !look_alike(v, v->rows[r].device, i)) {
            r++;
        }
        if (r == v->row_count) {
            v->rows[v->row_count++] = (struct weft_view_row){
                .device = i,
                .socket = v->machine->devices[i].socket,
                .numa = v->machine->devices[i].numa_group,
                .board = -1,
            };
        }
        v->rows[r].count++;
        v->row_of[i] = r;
    }
}

void weft_view_put_indices(const struct weft_machine *m, const bool *members, struct weft_buf *buf)
{
    const char *comma = "";
    for (size_t i = 0; i < m->device_count; i++) {
        size_t end = i;
        if (!members[i]) {
            continue;
        }
        while (end + 1 < m->device_count && members[end + 1] &&
               m->devices[end + 1].index == m->devices[end].index + 1) {
            end++;
        }
        (void)weft_buf_printf(buf, "%s%d", comma, m->devices[i].index);
        if (end > i) {
            (void)weft_buf_printf(buf, "-%d", m->devices[end].index);
        }
        comma = ",";
        i = end;
    }
}

static void label_row(struct weft_view *v, size_t row, bool *members)
{
    weft_auto(weft_buf_done) struct weft_buf text;
    weft_buf_init(&text, 1U << 14);
    struct weft_view_row *r = &v->rows[row];
    for (size_t i = 0; i < v->machine->device_count; i++) {
        members[i] = v->row_of[i] == row;
    }
    weft_view_put_indices(v->machine, members, &text);
    (void)snprintf(r->label, sizeof(r->label), "%s", weft_buf_text(&text));
    if (text.len >= sizeof(r->label)) {
        (void)snprintf(r->label, sizeof(r->label), "%d+%zu more",
                       v->machine->devices[r->device].index, r->count - 1);
    }
}

uint64_t weft_view_b(const struct weft_view *v, size_t i, size_t j)
{
    const struct weft_machine *m = v->machine;
    size_t other = v->rows[j].device;
    for (size_t k = other + 1; i == j && other == v->rows[j].device && k < m->device_count; k++) {
        other = v->row_of[k] == j ? k : other;
    }
    return other == v->rows[i].device ? 0 : weft_machine_b(m, v->rows[i].device, other);
}

enum weft_distance weft_view_t(const struct weft_view *v, size_t i, size_t j)
{
    const struct weft_machine *m = v->machine;
    size_t other = v->rows[j].device;
    for (size_t k = other + 1; i == j && other == v->rows[j].device && k < m->device_count; k++) {
        other = v->row_of[k] == j ? k : other;
    }
    return weft_machine_t(m, v->rows[i].device, other);
}

/* ---- places ---- */

static void name_board(struct weft_view *v, int from, int to)
{
    for (size_t r = 0; r < v->row_count; r++) {
        v->rows[r].board = v->rows[r].board == from ? to : v->rows[r].board;
    }
    for (size_t n = 0; n < v->machine->nic_count; n++) {
        v->nics[n].board = v->nics[n].board == from ? to : v->nics[n].board;
    }
}

/* Puts a row and another, or a NIC, behind the same switches. */
static void join_boards(struct weft_view *v, int *x, int *y, int *next)
{
    if (*x < 0 && *y < 0) {
        *x = *y = (*next)++;
    } else if (*x < 0) {
        *x = *y;
    } else if (*y < 0) {
        *y = *x;
    } else if (*x != *y) {
        name_board(v, *y, *x);
    }
}

static void find_boards(struct weft_view *v)
{
    const struct weft_machine *m = v->machine;
    int next = 0;
    for (size_t i = 0; i < v->row_count; i++) {
        for (size_t j = i; j < v->row_count; j++) {
            const bool inside = i != j || v->rows[i].count > 1;
            if (inside && weft_view_t(v, i, j) <= WEFT_DISTANCE_PXB) {
                join_boards(v, &v->rows[i].board, &v->rows[j].board, &next);
            }
        }
        for (size_t n = 0; n < m->nic_count; n++) {
            if (weft_machine_n(m, v->rows[i].device, n) <= WEFT_DISTANCE_PXB) {
                join_boards(v, &v->rows[i].board, &v->nics[n].board, &next);
            }
        }
    }
}

static void place_nics(struct weft_view *v)
{
    const struct weft_machine *m = v->machine;
    size_t longest = 0;
    for (size_t n = 0; n < m->nic_count; n++) {
        const size_t len = strlen(m->nics[n].name);
        longest = len > longest ? len : longest;
    }
    for (size_t n = 0; n < m->nic_count; n++) {
        struct weft_view_nic *nic = &v->nics[n];
        nic->board = nic->numa = -1;
        if (longest <= NIC_LABEL_SHORT) {
            (void)snprintf(nic->label, sizeof(nic->label), "%.20s", m->nics[n].name);
            weft_view_clean(nic->label);
        } else {
            (void)snprintf(nic->label, sizeof(nic->label), "N%zu", n);
        }
        for (size_t i = 0; m->nics[n].numa_node >= 0 && i < m->device_count; i++) {
            if (m->devices[i].numa_node == m->nics[n].numa_node) {
                nic->numa = m->devices[i].numa_group;
            }
        }
    }
}

static int compare_rows(const struct weft_view_row *x, const struct weft_view_row *y)
{
    const int keys[4][2] = {{x->socket, y->socket},
                            {x->numa, y->numa},
                            {x->board, y->board},
                            {(int)x->device, (int)y->device}};
    for (size_t i = 0; i < 4; i++) {
        if (keys[i][0] != keys[i][1]) {
            return keys[i][0] < keys[i][1] ? -1 : 1;
        }
    }
    return 0;
}

static void order_rows(struct weft_view *v)
{
    for (size_t i = 0; i < v->row_count; i++) {
        size_t at = i;
        while (at > 0 && compare_rows(&v->rows[i], &v->rows[v->draw_order[at - 1]]) < 0) {
            v->draw_order[at] = v->draw_order[at - 1];
            at--;
        }
        v->draw_order[at] = i;
    }
}

/* ---- links ---- */

static void find_fabric(struct weft_view *v)
{
    size_t linked = 0;
    v->is_switched = true;
    for (size_t i = 0; i < v->row_count; i++) {
        for (size_t j = 0; j < v->row_count; j++) {
            const uint64_t b = weft_view_b(v, i, j);
            v->own_bandwidth[i] = b > v->own_bandwidth[i] ? b : v->own_bandwidth[i];
        }
        v->most_bandwidth =
            v->own_bandwidth[i] > v->most_bandwidth ? v->own_bandwidth[i] : v->most_bandwidth;
        linked += v->own_bandwidth[i] > 0 ? v->rows[i].count : 0;
    }
    for (size_t i = 0; i < v->row_count; i++) {
        for (size_t j = 0; j < v->row_count; j++) {
            const uint64_t x = v->own_bandwidth[i];
            const uint64_t y = v->own_bandwidth[j];
            const bool pair = i != j || v->rows[i].count > 1;
            v->is_switched = v->is_switched && (!pair || weft_view_b(v, i, j) == (x < y ? x : y));
        }
    }
    v->is_switched = v->is_switched && linked > 2;
}

void weft_view_rate(uint64_t mbps, char *text, size_t size)
{
    if (mbps % 1000 < 50 || mbps >= 100000) {
        (void)snprintf(text, size, "%" PRIu64, (mbps + 500) / 1000);
    } else {
        (void)snprintf(text, size, "%" PRIu64 ".%" PRIu64, mbps / 1000, mbps % 1000 / 100);
    }
}

/* ---- all of it ---- */

static int fill(struct weft_view *v, struct weft_error *err)
{
    const struct weft_machine *m = v->machine;
    v->rows = weft_calloc(m->device_count, sizeof(*v->rows));
    v->row_of = weft_calloc(m->device_count, sizeof(*v->row_of));
    v->draw_order = weft_calloc(m->device_count, sizeof(*v->draw_order));
    v->own_bandwidth = weft_calloc(m->device_count, sizeof(*v->own_bandwidth));
    v->nics = weft_calloc(m->nic_count, sizeof(*v->nics));
    weft_autofree bool *members = weft_calloc(m->device_count + 1, sizeof(*members));
    if (v->rows == NULL || v->row_of == NULL || v->draw_order == NULL || v->own_bandwidth == NULL ||
        v->nics == NULL || members == NULL) {
        return weft_err_nomem(err);
    }
    const int rc = weft_allocator_new_direct(m, &v->allocator, err);
    if (rc < 0) {
        return rc;
    }
    fold_rows(v);
    for (size_t r = 0; r < v->row_count; r++) {
        label_row(v, r, members);
    }
    place_nics(v);
    find_boards(v);
    order_rows(v);
    find_fabric(v);
    return 0;
}

int weft_view_new(const struct weft_machine *machine, struct weft_view **ret_view,
                  struct weft_error *err)
{
    weft_auto(weft_view_free) struct weft_view *v = weft_calloc(1, sizeof(*v));
    if (v == NULL) {
        return weft_err_nomem(err);
    }
    v->machine = machine;
    const int rc = fill(v, err);
    if (rc == 0) {
        *ret_view = weft_steal(&v);
    }
    return rc;
}

void weft_view_free(struct weft_view *v)
{
    if (v != NULL) {
        weft_allocator_free(v->allocator);
        weft_free(v->rows);
        weft_free(v->row_of);
        weft_free(v->draw_order);
        weft_free(v->own_bandwidth);
        weft_free(v->nics);
        weft_free(v);
    }
}
