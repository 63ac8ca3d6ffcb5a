/* SPDX-License-Identifier: Apache-2.0 */
/* A machine in Graphviz's language: clusters for sockets, NUMA nodes and switches, edges for direct
 * links. */
#include <stdio.h>
#include <string.h>

#include "ctl/machine-view.h"
#include "pkg/base/buf.h"

struct dot {
    const struct weft_view *view;
    struct weft_buf *buf;
    int depth;
    int clusters;
};

enum { WORD_MAX = 320, INDENT = 2 };

static void start_line(const struct dot *d)
{
    (void)weft_buf_printf(d->buf, "%*s", (d->depth + 1) * INDENT, "");
}

/* A word of the source inside a quoted string. */
static void put_word(struct dot *d, const char *word)
{
    char text[WORD_MAX];
    (void)snprintf(text, sizeof(text), "%s", word);
    weft_view_clean(text);
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\') {
            (void)weft_buf_putc(d->buf, '\\');
        }
        (void)weft_buf_putc(d->buf, *p);
    }
}

static void open_cluster(void *arg, enum weft_view_box box, const char *label)
{
    static const char *const styles[WEFT_BOX_COUNT] = {
        [WEFT_BOX_SOCKET] = "rounded",
        [WEFT_BOX_NUMA] = "dashed",
        [WEFT_BOX_BOARD] = "filled,rounded",
    };
    struct dot *d = arg;
    start_line(d);
    (void)weft_buf_printf(d->buf, "subgraph cluster_%d {\n", d->clusters++);
    d->depth++;
    start_line(d);
    (void)weft_buf_puts(d->buf, "label=\"");
    put_word(d, label);
    (void)weft_buf_printf(d->buf, "\"; style=\"%s\";\n", styles[box]);
}

static void close_cluster(void *arg, enum weft_view_box box)
{
    struct dot *d = arg;
    (void)box;
    d->depth--;
    start_line(d);
    (void)weft_buf_puts(d->buf, "}\n");
}

static void put_device(void *arg, size_t row)
{
    struct dot *d = arg;
    const struct weft_view_row *r = &d->view->rows[row];
    const struct weft_device *device = &d->view->machine->devices[r->device];
    char bdf[WEFT_BDF_TEXT_MAX];
    start_line(d);
    (void)weft_buf_printf(d->buf, "g%zu [label=\"GPU %s", row, r->label);
    if (device->profile[0] != '\0') {
        (void)weft_buf_puts(d->buf, "\\n");
        put_word(d, device->profile);
    }
    if (device->bdf.known) {
        (void)weft_buf_printf(d->buf, "\\n%s", weft_bdf_format(&device->bdf, bdf));
    }
    (void)weft_buf_printf(d->buf, "\"%s];\n", device->healthy ? "" : ", color=\"#d62728\"");
}

static void put_nic(void *arg, size_t nic)
{
    struct dot *d = arg;
    const struct weft_nic *n = &d->view->machine->nics[nic];
    start_line(d);
    (void)weft_buf_printf(d->buf, "n%zu [label=\"", nic);
    put_word(d, n->name);
    (void)weft_buf_printf(d->buf, "\", shape=ellipse%s];\n",
                          n->up == 0 ? ", color=\"#d62728\"" : "");
}

static void put_edge(const struct dot *d, size_t row, const char *to, uint64_t mbps)
{
    char rate[24];
    weft_view_rate(mbps, rate, sizeof(rate));
    const uint64_t most = d->view->most_bandwidth;
    start_line(d);
    (void)weft_buf_printf(d->buf, "g%zu -- %s [label=\"%s\", penwidth=%s, color=\"%s\"];\n", row,
                          to, rate, 2 * mbps > most ? "3" : "1.5",
                          mbps == most ? "#2ca02c" : "#ff7f0e");
}

static void put_links(const struct dot *d)
{
    const struct weft_view *v = d->view;
    char to[24];
    if (v->is_switched) {
        start_line(d);
        (void)weft_buf_puts(d->buf, "fabric [label=\"switched links, GB/s one way\", "
                                    "shape=hexagon];\n");
    }
    for (size_t i = 0; i < v->row_count; i++) {
        if (v->is_switched && v->own_bandwidth[i] > 0) {
            put_edge(d, i, "fabric", v->own_bandwidth[i]);
        }
        for (size_t j = i; !v->is_switched && j < v->row_count; j++) {
            (void)snprintf(to, sizeof(to), "g%zu", j);
            if (weft_view_b(v, i, j) > 0) {
                put_edge(d, i, to, weft_view_b(v, i, j));
            }
        }
    }
}

void weft_view_put_dot(const struct weft_view *v, struct weft_buf *buf)
{
    struct dot d = {.view = v, .buf = buf};
    const struct weft_view_pen pen = {
        .open = open_cluster, .close = close_cluster, .row = put_device, .nic = put_nic, .arg = &d};
    (void)weft_buf_puts(buf, "graph machine {\n"
                             "  graph [fontname=\"sans-serif\", color=\"#888888\", "
                             "fillcolor=\"#f4f4f4\"];\n"
                             "  node [fontname=\"sans-serif\", shape=box, style=rounded];\n"
                             "  edge [fontname=\"sans-serif\", fontsize=10];\n");
    weft_view_walk(v, &pen);
    put_links(&d);
    (void)weft_buf_puts(buf, "}\n");
}
