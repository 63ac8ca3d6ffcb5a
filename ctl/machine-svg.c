/* SPDX-License-Identifier: Apache-2.0 */
/* A machine as one picture: the accelerators side by side, nested in switches, NUMA nodes and
 * sockets, their NICs below and their direct links above, coloured by bandwidth. Self-contained,
 * for light and dark pages; the same machine gives the same bytes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/machine-view.h"
#include "pkg/base/buf.h"

enum {
    CELL = 104, /* a device's or NIC's width with its margins */
    BOX_WIDTH = 92,
    BOX_HEIGHT = 46,
    NIC_HEIGHT = 26,
    PAD = 12, /* between a box and what is in it */
    MARGIN = 16,
    TITLE = 44, /* above the links */
    LEGEND = 30,
    BAR_SPACE = 86, /* of a switched fabric */
    ARC_MIN = 46,
    ARC_MAX = 240,
    RATES_MAX = 6,
    LABEL_HEIGHT = 16,
};

/* Okabe and Ito's palette: told apart by colour-blind eyes, on white and on black. */
static const char *const colors[RATES_MAX] = {"#009e73", "#56b4e9", "#e69f00",
                                              "#d55e00", "#cc79a7", "#999999"};

struct svg {
    const struct weft_view *view;
    struct weft_buf *buf;
    uint64_t rates[RATES_MAX];
    size_t rate_count;
    struct weft_buf *back; /* boxes: behind all else */
    bool gap;              /* a box was closed: leave room before what is next */
    int *x;                /* by row: the middle */
    int top;               /* of the devices */
    int cursor;            /* where the next thing begins */
    int lower;             /* where the next NIC begins, in an open switch */
    int begin[WEFT_BOX_COUNT];
    char label[WEFT_BOX_COUNT][WEFT_VIEW_BOX_LABEL_MAX];
};

static void put_word(struct svg *s, const char *word)
{
    char text[320];
    (void)snprintf(text, sizeof(text), "%s", word);
    weft_view_clean(text);
    for (const char *p = text; *p != '\0'; p++) {
        switch (*p) {
        case '&':
            (void)weft_buf_puts(s->buf, "&amp;");
            break;
        case '<':
            (void)weft_buf_puts(s->buf, "&lt;");
            break;
        case '>':
            (void)weft_buf_puts(s->buf, "&gt;");
            break;
        default:
            (void)weft_buf_putc(s->buf, *p);
            break;
        }
    }
}

static void put_text(struct svg *s, int x, int y, const char *class, const char *text)
{
    (void)weft_buf_printf(s->buf, "<text x=\"%d\" y=\"%d\" class=\"%s\">", x, y, class);
    put_word(s, text);
    (void)weft_buf_puts(s->buf, "</text>\n");
}

static const char *color_of(const struct svg *s, uint64_t mbps)
{
    size_t i = 0;
    while (i + 1 < s->rate_count && s->rates[i] > mbps) {
        i++;
    }
    return colors[i];
}

/* Below a device's middle: the NICs' lane, if there are any. */
static int nic_lane(const struct svg *s)
{
    return s->view->machine->nic_count > 0 ? NIC_HEIGHT + PAD : 0;
}

/* ---- boxes ---- */

static void leave_gap(struct svg *s)
{
    s->cursor += s->gap ? PAD / 2 : 0;
    s->gap = false;
}

static void open_box(void *arg, enum weft_view_box box, const char *label)
{
    struct svg *s = arg;
    leave_gap(s);
    s->begin[box] = s->cursor;
    (void)snprintf(s->label[box], sizeof(s->label[box]), "%s", label);
    s->cursor += PAD;
    s->lower = s->cursor;
}

/* Outer boxes are higher: room for the labels of those inside. */
static void close_box(void *arg, enum weft_view_box box)
{
    struct svg *s = arg;
    static const char *const classes[WEFT_BOX_COUNT] = {"socket", "numa", "board"};
    const int out = (int)(WEFT_BOX_COUNT - 1 - box);
    s->cursor = (s->cursor > s->lower ? s->cursor : s->lower) + PAD;
    const int y = s->top - PAD - out * PAD / 2;
    const int height =
        BOX_HEIGHT + nic_lane(s) + 2 * PAD + LABEL_HEIGHT + out * LABEL_HEIGHT + out * PAD / 2;
    struct weft_buf *front = s->buf;
    s->buf = s->back;
    (void)weft_buf_printf(s->buf,
                          "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"8\" "
                          "class=\"%s\"/>\n",
                          s->begin[box], y, s->cursor - s->begin[box], height, classes[box]);
    put_text(s, s->begin[box] + PAD, y + height - 5, "where", s->label[box]);
    s->buf = front;
    s->gap = true;
    s->lower = s->cursor;
}

static void put_device(void *arg, size_t row)
{
    struct svg *s = arg;
    const struct weft_view_row *r = &s->view->rows[row];
    const struct weft_device *d = &s->view->machine->devices[r->device];
    char text[64];
    char bdf[WEFT_BDF_TEXT_MAX];
    leave_gap(s);
    const int left = s->cursor + (CELL - BOX_WIDTH) / 2;
    const int middle = left + BOX_WIDTH / 2;
    s->x[row] = middle;
    s->cursor += CELL;
    (void)weft_buf_printf(s->buf,
                          "<g><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\" "
                          "class=\"gpu%s\"/><title>",
                          left, s->top, BOX_WIDTH, BOX_HEIGHT, d->healthy ? "" : " bad");
    put_word(s, d->id);
    put_word(s, d->model[0] != '\0' ? " " : "");
    put_word(s, d->model);
    put_word(s, d->healthy ? "" : ", unhealthy ");
    put_word(s, d->health_reason);
    (void)weft_buf_puts(s->buf, "</title>\n");
    (void)snprintf(text, sizeof(text), "GPU %s", r->label);
    put_text(s, middle, s->top + 19, "name", text);
    if (d->links_up >= 0 && d->links_up < d->links_total) {
        (void)snprintf(text, sizeof(text), "%d/%d links", d->links_up, d->links_total);
    } else {
        (void)snprintf(text, sizeof(text), "%s",
                       d->profile[0] != '\0' ? d->profile : weft_bdf_format(&d->bdf, bdf));
    }
    put_text(s, middle, s->top + 36, "small", text);
    (void)weft_buf_puts(s->buf, "</g>\n");
}

static void put_nic(void *arg, size_t nic)
{
    struct svg *s = arg;
    const struct weft_nic *n = &s->view->machine->nics[nic];
    const bool below = s->view->nics[nic].board >= 0; /* its switch has devices above it */
    if (!below) {
        leave_gap(s);
    }
    const int at = below ? s->lower : s->cursor;
    const int left = at + (CELL - BOX_WIDTH) / 2;
    const int y = s->top + BOX_HEIGHT + PAD;
    (void)weft_buf_printf(s->buf,
                          "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"13\" "
                          "class=\"nic%s\"/>\n",
                          left, y, BOX_WIDTH, NIC_HEIGHT, n->up == 0 ? " bad" : "");
    char name[16];
    (void)snprintf(name, sizeof(name), "%.15s", n->name);
    put_text(s, left + BOX_WIDTH / 2, y + 17, "small", name);
    if (below) {
        s->lower += CELL;
    } else {
        s->cursor += CELL;
        s->lower = s->cursor;
    }
}

/* ---- links ---- */

static void put_line(struct svg *s, int x1, int x2, int height, uint64_t mbps)
{
    const uint64_t most = s->view->most_bandwidth;
    char rate[24];
    weft_view_rate(mbps, rate, sizeof(rate));
    (void)weft_buf_printf(s->buf,
                          "<path d=\"M%d %d C%d %d %d %d %d %d\" stroke=\"%s\" "
                          "stroke-width=\"%s\" class=\"link\"><title>%s GB/s</title></path>\n",
                          x1, s->top, x1, s->top - height, x2, s->top - height, x2, s->top,
                          color_of(s, mbps), 2 * mbps > most ? "3" : "1.5", rate);
}

static int arc_height(int distance)
{
    const int height = ARC_MIN + distance / 4;
    return height < ARC_MAX ? height : ARC_MAX;
}

static void put_arcs(struct svg *s)
{
    const struct weft_view *v = s->view;
    for (size_t i = 0; i < v->row_count; i++) {
        const uint64_t inside = v->rows[i].count > 1 ? weft_view_b(v, i, i) : 0;
        if (inside > 0) {
            put_line(s, s->x[i] - BOX_WIDTH / 4, s->x[i] + BOX_WIDTH / 4, ARC_MIN / 2, inside);
        }
        for (size_t j = i + 1; j < v->row_count; j++) {
            const int distance = s->x[i] < s->x[j] ? s->x[j] - s->x[i] : s->x[i] - s->x[j];
            if (weft_view_b(v, i, j) > 0) {
                put_line(s, s->x[i], s->x[j], arc_height(distance), weft_view_b(v, i, j));
            }
        }
    }
}

static void put_fabric(struct svg *s)
{
    const struct weft_view *v = s->view;
    const int y = s->top - BAR_SPACE + 20;
    int left = s->cursor;
    int right = 0;
    for (size_t i = 0; i < v->row_count; i++) {
        if (v->own_bandwidth[i] == 0) {
            continue;
        }
        left = s->x[i] < left ? s->x[i] : left;
        right = s->x[i] > right ? s->x[i] : right;
        (void)weft_buf_printf(s->buf,
                              "<path d=\"M%d %d V%d\" stroke=\"%s\" stroke-width=\"%s\" "
                              "class=\"link\"/>\n",
                              s->x[i], s->top, y + 22, color_of(s, v->own_bandwidth[i]),
                              2 * v->own_bandwidth[i] > v->most_bandwidth ? "3" : "1.5");
    }
    (void)weft_buf_printf(s->buf,
                          "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"22\" rx=\"4\" "
                          "class=\"fabric\"/>\n",
                          left - BOX_WIDTH / 2, y, right - left + BOX_WIDTH);
    put_text(s, (left + right) / 2, y + 15, "small",
             "all to all: a pair has the smaller of the two");
}

/* ---- around it ---- */

static void put_style(struct svg *s)
{
    (void)weft_buf_puts(
        s->buf,
        "<style>\n"
        "svg{--ink:#1f2328;--dim:#656d76;--paper:#ffffff;--gpu:#eaf3ff;--nic:#f3eefb;--edge:#"
        "8c959f}\n"
        "@media (prefers-color-scheme:dark){svg{--ink:#e6edf3;--dim:#9198a1;--paper:#0d1117;"
        "--gpu:#14304f;--nic:#2f2445;--edge:#6e7681}}\n"
        "text{font-family:system-ui,sans-serif;font-size:12px;fill:var(--ink)}\n"
        ".title{font-size:15px;font-weight:600}.name{font-weight:600;text-anchor:middle}\n"
        ".small{font-size:10.5px;text-anchor:middle}.where{font-size:10.5px;fill:var(--dim)}\n"
        ".paper{fill:var(--paper)}.gpu{fill:var(--gpu);stroke:var(--edge)}\n"
        ".nic{fill:var(--nic);stroke:var(--edge)}.bad{stroke:#d1242f;stroke-width:2.5}\n"
        ".socket{fill:none;stroke:var(--edge);stroke-width:1.5}\n"
        ".numa{fill:none;stroke:var(--edge);stroke-dasharray:5 4}\n"
        ".board{fill:var(--edge);fill-opacity:.12}.fabric{fill:var(--gpu);stroke:var(--edge)}\n"
        ".link{fill:none}\n"
        "</style>\n");
}

static void put_title(struct svg *s)
{
    const struct weft_machine *m = s->view->machine;
    char text[160];
    const char *model = m->device_count > 0 ? m->devices[0].model : "";
    (void)snprintf(text, sizeof(text), "%zu %s, %zu NIC%s", m->device_count,
                   model[0] != '\0' ? model : "devices", m->nic_count,
                   m->nic_count == 1 ? "" : "s");
    put_text(s, MARGIN, 28, "title", text);
}

static void put_legend(struct svg *s, int y)
{
    char rate[40];
    int x = MARGIN;
    for (size_t i = 0; i < s->rate_count; i++) {
        weft_view_rate(s->rates[i], rate, sizeof(rate) - 16);
        (void)snprintf(rate + strlen(rate), 16, " GB/s");
        (void)weft_buf_printf(s->buf, "<path d=\"M%d %d h28\" stroke=\"%s\" stroke-width=\"3\"/>\n",
                              x, y - 4, colors[i]);
        put_text(s, x + 34, y, "where", rate);
        x += CELL;
    }
    put_text(s, x, y, "where",
             s->rate_count > 0 ? "direct links, one way" : "no direct links are known");
}

static int link_space(const struct weft_view *v)
{
    if (v->most_bandwidth == 0) {
        return PAD;
    }
    return v->is_switched ? BAR_SPACE : arc_height((int)v->row_count * CELL) * 3 / 4 + PAD;
}

static void put_content(struct svg *s)
{
    const struct weft_view_pen pen = {
        .open = open_box, .close = close_box, .row = put_device, .nic = put_nic, .arg = s};
    s->cursor = s->lower = MARGIN;
    weft_view_walk(s->view, &pen);
    if (s->view->is_switched) {
        put_fabric(s);
    } else {
        put_arcs(s);
    }
    put_title(s);
    put_legend(s, s->top + BOX_HEIGHT + nic_lane(s) + 3 * LABEL_HEIGHT + 2 * PAD + LEGEND);
}

void weft_view_put_svg(const struct weft_view *v, struct weft_buf *buf)
{
    weft_auto(weft_buf_done) struct weft_buf content;
    weft_auto(weft_buf_done) struct weft_buf back;
    weft_autofree int *x = weft_calloc(v->row_count, sizeof(*x));
    weft_buf_init(&content, buf->max);
    weft_buf_init(&back, buf->max);
    if (x == NULL) {
        buf->status = -ENOMEM;
        return;
    }
    struct svg s = {
        .view = v, .buf = &content, .back = &back, .x = x, .top = TITLE + link_space(v)};
    s.rate_count = weft_view_rates(v, s.rates, RATES_MAX);
    put_content(&s);
    const int needed = s.cursor > s.lower ? s.cursor : s.lower;
    const int legend = MARGIN + (int)(s.rate_count + 2) * CELL;
    const int width = (needed > legend ? needed : legend) + MARGIN;
    const int height = s.top + BOX_HEIGHT + nic_lane(&s) + 3 * LABEL_HEIGHT + 3 * PAD + LEGEND;
    (void)weft_buf_printf(buf,
                          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                          "width=\"%d\" height=\"%d\" role=\"img\">\n",
                          width, height, width, height);
    s.buf = buf;
    put_style(&s);
    (void)weft_buf_printf(buf, "<rect width=\"%d\" height=\"%d\" class=\"paper\"/>\n", width,
                          height);
    (void)weft_buf_append(buf, weft_buf_text(&back), back.len);
    (void)weft_buf_append(buf, weft_buf_text(&content), content.len);
    (void)weft_buf_puts(buf, "</svg>\n");
    buf->status = buf->status < 0 ? buf->status : back.status;
    buf->status = buf->status < 0 ? buf->status : content.status;
}
