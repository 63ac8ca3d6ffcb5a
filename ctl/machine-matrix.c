/* SPDX-License-Identifier: Apache-2.0 */
/* The two matrices of weftctl machine: device by device and device by NIC. Columns that do not fit
 * the terminal go into further blocks below. */
#include <stdio.h>
#include <string.h>

#include "ctl/machine-view.h"
#include "pkg/base/buf.h"

enum { CELL_MAX = 24 };

struct matrix {
    const struct weft_view *view;
    const struct weft_view_style *style;
    struct weft_buf *buf;
    bool nics;
    size_t columns;
    size_t head;  /* width of the labels of rows */
    size_t width; /* of a cell */
};

static const char *column_label(const struct matrix *x, size_t column)
{
    return x->nics ? x->view->nics[column].label : x->view->rows[column].label;
}

/* What a cell says: "450 PXB", "PIX"; and in what colour. */
static const char *fill_cell(const struct matrix *x, size_t row, size_t column, char *cell)
{
    const struct weft_view *v = x->view;
    char rate[16] = "";
    if (x->nics) {
        const enum weft_distance n = weft_machine_n(v->machine, v->rows[row].device, column);
        (void)snprintf(cell, CELL_MAX, "%s", weft_distance_name(n));
        return n <= WEFT_DISTANCE_PXB ? "\x1b[32m" : "";
    }
    if (row == column && v->rows[row].count == 1) {
        (void)snprintf(cell, CELL_MAX, "X");
        return "";
    }
    const uint64_t b = weft_view_b(v, row, column);
    const enum weft_distance t = weft_view_t(v, row, column);
    if (b > 0) {
        weft_view_rate(b, rate, sizeof(rate));
    }
    (void)snprintf(cell, CELL_MAX, "%s%s%s", rate, b > 0 ? " " : "", weft_distance_name(t));
    if (b > 0) {
        return b == v->most_bandwidth ? "\x1b[32m" : "\x1b[33m";
    }
    return t <= WEFT_DISTANCE_PXB ? "\x1b[36m" : "";
}

static void measure(struct matrix *x)
{
    char cell[CELL_MAX];
    x->head = 3;
    x->width = 1;
    for (size_t c = 0; c < x->columns; c++) {
        const size_t len = strlen(column_label(x, c));
        x->width = len > x->width ? len : x->width;
    }
    for (size_t r = 0; r < x->view->row_count; r++) {
        const size_t len = strlen(x->view->rows[r].label);
        x->head = len > x->head ? len : x->head;
        for (size_t c = 0; c < x->columns; c++) {
            (void)fill_cell(x, r, c, cell);
            x->width = strlen(cell) > x->width ? strlen(cell) : x->width;
        }
    }
}

static void put_block(const struct matrix *x, size_t from, size_t to)
{
    char cell[CELL_MAX];
    (void)weft_buf_printf(x->buf, "  %-*s", (int)x->head, "");
    for (size_t c = from; c < to; c++) {
        (void)weft_buf_printf(x->buf, "  %*s", (int)x->width, column_label(x, c));
    }
    (void)weft_buf_putc(x->buf, '\n');
    for (size_t r = 0; r < x->view->row_count; r++) {
        (void)weft_buf_printf(x->buf, "  %-*s", (int)x->head, x->view->rows[r].label);
        for (size_t c = from; c < to; c++) {
            const char *color = fill_cell(x, r, c, cell);
            const bool paint = x->style->color && color[0] != '\0';
            (void)weft_buf_printf(x->buf, "  %*s%s%s%s", (int)(x->width - strlen(cell)), "",
                                  paint ? color : "", cell, paint ? "\x1b[0m" : "");
        }
        (void)weft_buf_putc(x->buf, '\n');
    }
}

static void put_matrix(struct matrix *x)
{
    measure(x);
    const size_t used = x->head + 2;
    const size_t room = x->style->width > used ? x->style->width - used : 0;
    const size_t fit = room / (x->width + 2);
    const size_t step = fit > 0 ? fit : 1;
    for (size_t from = 0; from < x->columns; from += step) {
        put_block(x, from, from + step < x->columns ? from + step : x->columns);
    }
}

void weft_view_put_matrices(const struct weft_view *v, const struct weft_view_style *style,
                            struct weft_buf *buf)
{
    struct matrix x = {.view = v, .style = style, .buf = buf, .columns = v->row_count};
    if (v->machine->device_count > 1) {
        (void)weft_buf_puts(buf, v->most_bandwidth > 0
                                     ? "\nGPU to GPU: GB/s one way over direct links, and the "
                                       "PCIe path beside them\n"
                                     : "\nGPU to GPU: the PCIe path; no direct links are known\n");
        put_matrix(&x);
    }
    if (v->machine->device_count > 0 && v->machine->nic_count > 0) {
        (void)weft_buf_puts(buf, "\nGPU to NIC: the PCIe path\n");
        x.nics = true;
        x.columns = v->machine->nic_count;
        put_matrix(&x);
    }
    if (v->machine->device_count > 1 || v->machine->nic_count > 0) {
        (void)weft_buf_puts(buf, "\n  PSB one board  PIX one switch  PXB several switches  PHB a "
                                 "host bridge\n  NODE one NUMA node  SYS across, or unknown\n");
    }
}
