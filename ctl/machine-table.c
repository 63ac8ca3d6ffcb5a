/* SPDX-License-Identifier: Apache-2.0 */
/* weftctl machine on a terminal: what is there, what to look at, what belongs together. The
 * matrices are machine-matrix.c's. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl/machine-view.h"
#include "pkg/allocator/allocator.h"
#include "pkg/base/buf.h"

enum { COLUMNS = 9, CELL_MAX = 48 };

struct line {
    char cell[COLUMNS][CELL_MAX];
    bool bad; /* its last cell wants to be seen */
};

/* ---- a table whose empty columns are left out ---- */

static void widen(struct line *line, size_t columns, size_t *widths)
{
    for (size_t c = 0; c < columns; c++) {
        weft_view_clean(line->cell[c]);
        const size_t len = strlen(line->cell[c]);
        widths[c] = len > widths[c] ? len : widths[c];
    }
}

static void put_line(struct line *line, size_t columns, const size_t *widths, bool color,
                     struct weft_buf *buf)
{
    size_t blanks = 2; /* not yet printed ones: a line has none at its end */
    for (size_t c = 0; c < columns; c++) {
        const size_t len = strlen(line->cell[c]);
        if (widths[c] == 0) {
            continue;
        }
        weft_view_clean(line->cell[c]);
        const bool red = color && line->bad && c + 1 == columns;
        (void)weft_buf_printf(buf, "%*s%s%s%s", (int)blanks, "", red ? "\x1b[31m" : "",
                              len > 0 ? line->cell[c] : "-", red ? "\x1b[0m" : "");
        blanks = widths[c] - (len > 0 ? len : 1) + 2;
    }
    (void)weft_buf_putc(buf, '\n');
}

/* ---- devices ---- */

static void put_pcie(const struct weft_pcie *p, char *cell)
{
    char max_generation[8] = "";
    char max_width[8] = "";
    if (p->max_generation > p->generation) {
        (void)snprintf(max_generation, sizeof(max_generation), "/%u", (unsigned)p->max_generation);
    }
    if (p->max_width > p->width) {
        (void)snprintf(max_width, sizeof(max_width), "/%u", (unsigned)p->max_width);
    }
    if (p->generation > 0 && p->width > 0) {
        (void)snprintf(cell, CELL_MAX, "gen%u%s x%u%s", (unsigned)p->generation, max_generation,
                       (unsigned)p->width, max_width);
    }
}

static void put_number(int number, char *cell)
{
    if (number >= 0) {
        (void)snprintf(cell, CELL_MAX, "%d", number);
    }
}

static void put_links(const struct weft_device *d, char *cell)
{
    if (d->links_up >= 0 && d->links_total >= 0) {
        (void)snprintf(cell, CELL_MAX, "%d/%d up", d->links_up, d->links_total);
    } else if (d->links_up >= 0) {
        (void)snprintf(cell, CELL_MAX, "%d up", d->links_up);
    }
}

/* The model all devices have, or NULL. */
static const char *common_model(const struct weft_machine *m)
{
    for (size_t i = 1; i < m->device_count; i++) {
        if (strcmp(m->devices[i].model, m->devices[0].model) != 0) {
            return NULL;
        }
    }
    return m->device_count > 0 && m->devices[0].model[0] != '\0' ? m->devices[0].model : NULL;
}

static void fill_device(const struct weft_view *v, size_t row, struct line *line)
{
    const struct weft_machine *m = v->machine;
    const struct weft_view_row *r = &v->rows[row];
    const struct weft_device *d = &m->devices[r->device];
    char bdf[WEFT_BDF_TEXT_MAX];
    memset(line, 0, sizeof(*line));
    (void)snprintf(line->cell[0], CELL_MAX, "%s", r->label);
    if (common_model(m) == NULL) {
        (void)snprintf(line->cell[1], CELL_MAX, "%.26s", d->model);
    }
    (void)snprintf(line->cell[2], CELL_MAX, "%s", d->profile);
    (void)snprintf(line->cell[3], CELL_MAX, "%s%s", weft_bdf_format(&d->bdf, bdf),
                   r->count > 1 && d->bdf.known && d->parent < 0 ? ".." : "");
    (void)snprintf(line->cell[4], CELL_MAX, "%.16s", d->numa_label);
    put_number(d->socket, line->cell[5]);
    put_pcie(&d->pcie, line->cell[6]);
    put_links(d, line->cell[7]);
    (void)snprintf(line->cell[8], CELL_MAX, "%s", d->healthy ? "ok" : "UNHEALTHY");
    line->bad = !d->healthy;
}

static void put_devices(const struct weft_view *v, const struct weft_view_style *style,
                        struct weft_buf *buf)
{
    struct line title = {
        {"GPU", "MODEL", "PROFILE", "PCI", "NUMA", "SOCKET", "PCIE", "LINKS", "HEALTH"}, false};
    size_t widths[COLUMNS] = {0};
    struct line line;
    for (size_t r = 0; r < v->row_count; r++) {
        fill_device(v, r, &line);
        widen(&line, COLUMNS, widths);
    }
    for (size_t c = 0; c < COLUMNS; c++) {
        const size_t len = strlen(title.cell[c]);
        widths[c] = widths[c] > 0 && widths[c] < len ? len : widths[c];
    }
    (void)weft_buf_putc(buf, '\n');
    put_line(&title, COLUMNS, widths, false, buf);
    for (size_t r = 0; r < v->row_count; r++) {
        fill_device(v, r, &line);
        put_line(&line, COLUMNS, widths, style->color, buf);
    }
}

/* ---- NICs ---- */

enum { NIC_COLUMNS = 7 };

static void fill_nic(const struct weft_view *v, size_t n, struct line *line)
{
    const struct weft_nic *nic = &v->machine->nics[n];
    char bdf[WEFT_BDF_TEXT_MAX];
    char rate[24] = "";
    static const char *const layers[WEFT_NIC_LAYER_COUNT] = {"", "InfiniBand", "Ethernet"};
    memset(line, 0, sizeof(*line));
    (void)snprintf(line->cell[0], CELL_MAX, "%s", v->nics[n].label);
    if (strcmp(v->nics[n].label, nic->name) != 0) {
        (void)snprintf(line->cell[1], CELL_MAX, "%.28s", nic->name);
    }
    (void)snprintf(line->cell[2], CELL_MAX, "%s", nic->netdev);
    (void)snprintf(line->cell[3], CELL_MAX, "%s", weft_bdf_format(&nic->bdf, bdf));
    put_number(nic->numa_node, line->cell[4]);
    if (nic->rate_mbps > 0) {
        (void)snprintf(rate, sizeof(rate), " %" PRIu64 " Gb/s", nic->rate_mbps / 1000);
    }
    if (nic->layer < WEFT_NIC_LAYER_COUNT) {
        const char *layer = layers[nic->layer];
        (void)snprintf(line->cell[5], CELL_MAX, "%s%s", layer,
                       layer[0] == '\0' && rate[0] != '\0' ? rate + 1 : rate);
    }
    if (nic->up >= 0) {
        (void)snprintf(line->cell[6], CELL_MAX, "%s", nic->up > 0 ? "up" : "DOWN");
    }
    line->bad = nic->up == 0;
}

/* Says nothing that the matrix does not say, if all that is known of the NICs is a short name. */
static void put_nics(const struct weft_view *v, const struct weft_view_style *style,
                     struct weft_buf *buf)
{
    struct line title = {{"NIC", "NAME", "NETDEV", "PCI", "NUMA", "PORT", "STATE"}, false};
    size_t widths[COLUMNS] = {0};
    size_t known = 0;
    struct line line;
    for (size_t n = 0; n < v->machine->nic_count; n++) {
        fill_nic(v, n, &line);
        widen(&line, NIC_COLUMNS, widths);
    }
    for (size_t c = 0; c < NIC_COLUMNS; c++) {
        const size_t len = strlen(title.cell[c]);
        known += c > 0 && widths[c] > 0;
        widths[c] = widths[c] > 0 && widths[c] < len ? len : widths[c];
    }
    if (known == 0) {
        return;
    }
    (void)weft_buf_putc(buf, '\n');
    put_line(&title, NIC_COLUMNS, widths, false, buf);
    for (size_t n = 0; n < v->machine->nic_count; n++) {
        fill_nic(v, n, &line);
        put_line(&line, NIC_COLUMNS, widths, style->color, buf);
    }
}

/* ---- groups ---- */

static const char *level_words(int level)
{
    static const char *const words[WEFT_DISTANCE_COUNT] = {
        "same board (PSB)",    "one PCIe switch (PIX)", "PCIe switches (PXB)",
        "a host bridge (PHB)", "one NUMA node (NODE)",  ""};
    return level >= 0 && level < WEFT_DISTANCE_COUNT ? words[level] : "";
}

static void put_reasons(const struct weft_group *g, struct weft_buf *buf)
{
    const char *comma = "";
    char rate[24];
    if (g->links > 0) {
        weft_view_rate(g->links, rate, sizeof(rate));
        (void)weft_buf_printf(buf, "links of %s GB/s", rate);
        comma = ", ";
    }
    if (g->parent >= 0) {
        (void)weft_buf_printf(buf, "%sparts of GPU %d", comma, g->parent);
        comma = ", ";
    }
    if (g->level >= 0) {
        (void)weft_buf_printf(buf, "%s%s", comma, level_words(g->level));
        comma = ", ";
    }
    if (g->socket >= 0) {
        (void)weft_buf_printf(buf, "%ssocket %d", comma, g->socket);
    }
    (void)weft_buf_putc(buf, '\n');
}

enum { GROUP_WIDTH = 16, GROUP_LIST_MAX = 44, GROUPS_SHOWN_MAX = 64 };

/* The devices of a group; a long list is cut, and says how many there are. */
static void put_members(const struct weft_machine *m, const bool *members, struct weft_buf *buf)
{
    weft_auto(weft_buf_done) struct weft_buf list;
    size_t count = 0;
    weft_buf_init(&list, 1U << 16);
    weft_view_put_indices(m, members, &list);
    for (size_t i = 0; i < m->device_count; i++) {
        count += members[i];
    }
    size_t len = list.len;
    while (len > GROUP_LIST_MAX || (len < list.len && weft_buf_text(&list)[len] != ',')) {
        len--;
    }
    const int width = GROUP_WIDTH;
    if (len == list.len) {
        (void)weft_buf_printf(buf, "  %-*s", width, weft_buf_text(&list));
    } else {
        (void)weft_buf_printf(buf, "  %.*s,... (%zu)", (int)len, weft_buf_text(&list), count);
    }
    buf->status = buf->status < 0 ? buf->status : list.status;
}

static void put_groups(const struct weft_view *v, bool *members, struct weft_buf *buf)
{
    const size_t count = weft_allocator_group_count(v->allocator);
    if (count == 0) {
        return;
    }
    (void)weft_buf_puts(buf, "\nwhat belongs together, and by what:\n");
    for (size_t g = 0; g < count && g < GROUPS_SHOWN_MAX; g++) {
        const struct weft_group group = weft_allocator_group(v->allocator, g);
        for (size_t i = 0; i < v->machine->device_count; i++) {
            members[i] = weft_allocator_group_has(v->allocator, g, i);
        }
        put_members(v->machine, members, buf);
        (void)weft_buf_puts(buf, "  ");
        put_reasons(&group, buf);
    }
    if (count > GROUPS_SHOWN_MAX) {
        (void)weft_buf_printf(buf, "  and %zu more groups\n", count - GROUPS_SHOWN_MAX);
    }
}

/* ---- what to look at ---- */

/* A sentence in lines of at most width columns, those after the first further in. */
static void put_wrapped(const char *text, size_t width, struct weft_buf *buf)
{
    size_t indent = 2;
    while (*text != '\0') {
        const size_t room = width > indent ? width - indent : 1;
        size_t len = strlen(text);
        if (len > room) {
            len = room;
            while (len > 0 && text[len] != ' ') {
                len--;
            }
            len = len > 0 ? len : room; /* a word that is longer than a line */
        }
        (void)weft_buf_printf(buf, "%*s%.*s\n", (int)indent, "", (int)len, text);
        text += len;
        text += strspn(text, " ");
        indent = 4;
    }
}

static void put_finding(const struct weft_view_style *style, struct weft_buf *buf,
                        const char *prefix, const char *text)
{
    char line[640];
    (void)snprintf(line, sizeof(line), "%s%s", prefix, text);
    weft_view_clean(line);
    (void)weft_buf_puts(buf, style->color ? "\x1b[33m" : "");
    put_wrapped(line, style->width, buf);
    (void)weft_buf_puts(buf, style->color ? "\x1b[0m" : "");
}

static void put_row_findings(const struct weft_view *v, size_t row,
                             const struct weft_view_style *style, struct weft_buf *buf)
{
    const struct weft_view_row *r = &v->rows[row];
    const struct weft_device *d = &v->machine->devices[r->device];
    char prefix[WEFT_VIEW_LABEL_MAX + 8];
    char text[160];
    (void)snprintf(prefix, sizeof(prefix), "GPU %s: ", r->label);
    if (!d->healthy || d->state != WEFT_DEVICE_PLAIN) {
        (void)snprintf(text, sizeof(text), "%s%s%s", weft_device_state_name(d),
                       d->health_reason[0] != '\0' ? ": " : "", d->health_reason);
        put_finding(style, buf, prefix, text);
    }
    if (d->links_up >= 0 && d->links_up < d->links_total) {
        (void)snprintf(text, sizeof(text), "%d of %d direct links are down",
                       d->links_total - d->links_up, d->links_total);
        put_finding(style, buf, prefix, text);
    }
    if (d->pcie.width > 0 && d->pcie.width < d->pcie.max_width) {
        (void)snprintf(text, sizeof(text), "the PCIe link runs x%u of x%u", (unsigned)d->pcie.width,
                       (unsigned)d->pcie.max_width);
        put_finding(style, buf, prefix, text);
    }
    if (d->pcie.generation > 0 && d->pcie.generation < d->pcie.max_generation) {
        (void)snprintf(text, sizeof(text), "the PCIe link runs gen%u of gen%u%s",
                       (unsigned)d->pcie.generation, (unsigned)d->pcie.max_generation,
                       " (at rest that is usual)");
        put_finding(style, buf, prefix, text);
    }
}

static void put_findings(const struct weft_view *v, const struct weft_view_style *style,
                         struct weft_buf *buf)
{
    const struct weft_machine *m = v->machine;
    const size_t begin = buf->len;
    (void)weft_buf_puts(buf, "\nto look at:\n");
    const size_t title = buf->len;
    for (size_t r = 0; r < v->row_count; r++) {
        put_row_findings(v, r, style, buf);
    }
    for (size_t n = 0; n < m->nic_count; n++) {
        if (m->nics[n].up == 0) {
            put_finding(style, buf, m->nics[n].name, ": the port is down");
        }
    }
    for (size_t i = 0; i < m->warning_count; i++) {
        put_finding(style, buf, "", m->warnings[i]);
    }
    if (buf->len == title && buf->status == 0) {
        buf->len = begin;
        buf->data[begin] = '\0';
    }
}

/* ---- all of it ---- */

static void put_headline(const struct weft_machine *m, struct weft_buf *buf)
{
    const char *model = common_model(m);
    char driver[96] = "";
    char runtime[64] = "";
    char line[320];
    if (m->driver_version[0] != '\0') {
        (void)snprintf(driver, sizeof(driver), "; driver %s", m->driver_version);
    }
    if (m->runtime_version[0] != '\0') {
        (void)snprintf(runtime, sizeof(runtime), "%s runtime %s", driver[0] != '\0' ? "," : ";",
                       m->runtime_version);
    }
    const char *what = model != NULL ? model : m->vendor;
    (void)snprintf(line, sizeof(line), "%zu device%s%s%.80s%s, %zu NIC%s%s%s", m->device_count,
                   m->device_count == 1 ? "" : "s", what[0] != '\0' ? " (" : "", what,
                   what[0] != '\0' ? ")" : "", m->nic_count, m->nic_count == 1 ? "" : "s", driver,
                   runtime);
    weft_view_clean(line);
    (void)weft_buf_printf(buf, "%s\n", line);
    if (m->clique[0] != '\0') {
        (void)snprintf(line, sizeof(line), "NVLink clique %s", m->clique);
        weft_view_clean(line);
        (void)weft_buf_printf(buf, "%s\n", line);
    }
    if (m->partial) {
        (void)weft_buf_puts(buf, "only a part: the source was cut short\n");
    }
}

void weft_view_put_table(const struct weft_view *v, const struct weft_view_style *style,
                         struct weft_buf *buf)
{
    weft_autofree bool *members = weft_calloc(v->machine->device_count + 1, sizeof(*members));
    if (members == NULL) {
        buf->status = -ENOMEM;
        return;
    }
    put_headline(v->machine, buf);
    if (v->machine->device_count > 0) {
        put_devices(v, style, buf);
    }
    if (v->machine->nic_count > 0) {
        put_nics(v, style, buf);
    }
    weft_view_put_matrices(v, style, buf);
    put_groups(v, members, buf);
    put_findings(v, style, buf);
}
