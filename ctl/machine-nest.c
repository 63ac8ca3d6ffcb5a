/* SPDX-License-Identifier: Apache-2.0 */
/* The nest of sockets, NUMA nodes and PCIe switches as a walk, for all that draws it. */
#include <stdio.h>
#include <string.h>

#include "ctl/machine-view.h"

struct walk {
    const struct weft_view *view;
    const struct weft_view_pen *pen;
    int open[WEFT_BOX_COUNT]; /* the number of the open box of each kind, -1 none */
};

static void name_nics(const struct walk *w, int board, int numa)
{
    for (size_t n = 0; n < w->view->machine->nic_count; n++) {
        const struct weft_view_nic *nic = &w->view->nics[n];
        if (nic->board == board && (board >= 0 || nic->numa == numa)) {
            w->pen->nic(w->pen->arg, n);
        }
    }
}

/* Is the row the last of its switch, or of its NUMA node, in drawing order? A switch that spans two
 * nodes is drawn in parts; its NICs are in the last one. */
static bool is_last(const struct weft_view *v, size_t at, enum weft_view_box box)
{
    const struct weft_view_row *row = &v->rows[v->draw_order[at]];
    for (size_t i = at + 1; i < v->row_count; i++) {
        const struct weft_view_row *r = &v->rows[v->draw_order[i]];
        if (box == WEFT_BOX_BOARD ? r->board == row->board : r->numa == row->numa) {
            return false;
        }
    }
    return true;
}

static void close_boxes(struct walk *w, size_t at, enum weft_view_box from)
{
    for (int box = WEFT_BOX_COUNT - 1; box >= (int)from; box--) {
        if (w->open[box] < 0) {
            continue;
        }
        if (box == WEFT_BOX_BOARD && is_last(w->view, at, WEFT_BOX_BOARD)) {
            name_nics(w, w->open[box], -1);
        }
        if (box == WEFT_BOX_NUMA && is_last(w->view, at, WEFT_BOX_NUMA)) {
            name_nics(w, -1, w->open[box]);
        }
        w->pen->close(w->pen->arg, (enum weft_view_box)box);
        w->open[box] = -1;
    }
}

static void open_box(struct walk *w, enum weft_view_box box, int number, const char *label)
{
    if (number >= 0 && w->open[box] < 0) {
        w->open[box] = number;
        w->pen->open(w->pen->arg, box, label);
    }
}

/* Is there more than one switch on the way between any two of the board? */
static bool has_several_switches(const struct weft_view *v, int board)
{
    for (size_t i = 0; i < v->row_count; i++) {
        for (size_t j = 0; v->rows[i].board == board && j < v->row_count; j++) {
            if (i != j && v->rows[j].board == board && weft_view_t(v, i, j) > WEFT_DISTANCE_PIX) {
                return true;
            }
        }
    }
    return false;
}

static void open_boxes(struct walk *w, const struct weft_view_row *row)
{
    char label[WEFT_VIEW_BOX_LABEL_MAX];
    const struct weft_device *d = &w->view->machine->devices[row->device];
    (void)snprintf(label, sizeof(label), "socket %d", row->socket);
    open_box(w, WEFT_BOX_SOCKET, row->socket, label);
    (void)snprintf(label, sizeof(label), "NUMA %.60s", d->numa_label);
    open_box(w, WEFT_BOX_NUMA, row->numa, label);
    open_box(w, WEFT_BOX_BOARD, row->board,
             row->board >= 0 && has_several_switches(w->view, row->board) ? "PCIe switches"
                                                                          : "PCIe switch");
}

void weft_view_walk(const struct weft_view *view, const struct weft_view_pen *pen)
{
    struct walk w = {.view = view, .pen = pen, .open = {-1, -1, -1}};
    for (size_t at = 0; at < view->row_count; at++) {
        const struct weft_view_row *row = &view->rows[view->draw_order[at]];
        const int place[WEFT_BOX_COUNT] = {row->socket, row->numa, row->board};
        int differs = 0;
        while (differs < WEFT_BOX_COUNT && place[differs] == w.open[differs]) {
            differs++;
        }
        if (at > 0) {
            close_boxes(&w, at - 1, (enum weft_view_box)differs);
        }
        open_boxes(&w, row);
        pen->row(pen->arg, view->draw_order[at]);
    }
    if (view->row_count > 0) {
        close_boxes(&w, view->row_count - 1, WEFT_BOX_SOCKET);
    }
    name_nics(&w, -1, -1);
}

size_t weft_view_rates(const struct weft_view *v, uint64_t *rates, size_t max)
{
    size_t count = 0;
    uint64_t below = UINT64_MAX;
    while (count < max) {
        uint64_t best = 0;
        for (size_t i = 0; i < v->row_count; i++) {
            for (size_t j = 0; j < v->row_count; j++) {
                const uint64_t b = weft_view_b(v, i, j);
                best = b < below && b > best ? b : best;
            }
        }
        if (best == 0) {
            break;
        }
        rates[count++] = below = best;
    }
    return count;
}

void weft_view_clean(char *text)
{
    for (char *p = text; *p != '\0'; p++) {
        const unsigned char c = (unsigned char)*p;
        if (c < ' ' || c == 0x7f) {
            *p = '?';
        }
    }
}
