/* SPDX-License-Identifier: Apache-2.0 */
/* The outputs of weftctl alloc. */
#include "ctl/alloc-print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/json/json.h"

/* ---- JSON ---- */

static void put_objective(struct weft_json_writer *w, const struct weft_objective *o)
{
    weft_json_put_key(w, "objective");
    weft_json_open(w, '{');
    weft_json_kv_int(w, "components", o->components);
    weft_json_kv_int(w, "min_cut_mbps", (int64_t)o->min_cut_mbps);
    weft_json_put_key(w, "worst_tier");
    if (o->worst_tier < 0) {
        weft_json_put_null(w);
    } else {
        weft_json_put_int(w, o->worst_tier);
    }
    weft_json_kv_int(w, "sockets", o->sockets);
    weft_json_kv_int(w, "numa_nodes", o->numa_nodes);
    weft_json_kv_int(w, "broken_groups", o->broken_groups);
    weft_json_kv_int(w, "leftover", o->leftover);
    weft_json_kv_int(w, "nic_near", o->nic_near);
    weft_json_kv_int(w, "nic_distinct", o->nic_distinct);
    weft_json_kv_int(w, "bandwidth_mbps", (int64_t)o->bandwidth_mbps);
    weft_json_kv_int(w, "tier_sum", o->tier_sum);
    weft_json_close(w, '}');
}

void weft_alloc_put_choice(struct weft_json_writer *w, const struct weft_machine *m,
                           const struct weft_choice *choice)
{
    weft_json_put_key(w, "devices");
    weft_json_open(w, '[');
    for (size_t i = 0; i < choice->count; i++) {
        weft_json_put_string(w, m->devices[choice->devices[i]].id);
    }
    weft_json_close(w, ']');
    weft_json_put_key(w, "indices");
    weft_json_open(w, '[');
    for (size_t i = 0; i < choice->count; i++) {
        weft_json_put_int(w, m->devices[choice->devices[i]].index);
    }
    weft_json_close(w, ']');
    weft_json_kv_bool(w, "exact", choice->exact);
    put_objective(w, &choice->objective);
}

void weft_alloc_print_json(const struct weft_alloc_answer *answer, struct weft_buf *buf)
{
    struct weft_json_writer w;
    weft_json_writer_init(&w, buf, 0);
    weft_json_open(&w, '{');
    weft_alloc_put_choice(&w, answer->machine, answer->choice);
    if (answer->other != NULL) {
        weft_alloc_explain_json(answer, &w);
    }
    weft_json_close(&w, '}');
    (void)weft_buf_putc(buf, '\n');
}

/* ---- the table of devices ---- */

enum { COLUMNS = 6, CELL_MAX = 96 };
struct row {
    char cell[COLUMNS][CELL_MAX];
};

static void name_near_nics(const struct weft_machine *m, size_t device, char *cell)
{
    size_t len = 0;
    (void)snprintf(cell, CELL_MAX, "-");
    for (size_t n = 0; n < m->nic_count; n++) {
        const enum weft_distance distance = weft_machine_n(m, device, n);
        if (distance > WEFT_DISTANCE_PXB) {
            continue;
        }
        const int put = snprintf(cell + len, CELL_MAX - len, "%s%s %s", len > 0 ? ", " : "",
                                 m->nics[n].name, weft_distance_name(distance));
        len += put > 0 ? (size_t)put : 0;
        if (len >= CELL_MAX) {
            (void)snprintf(cell + CELL_MAX - 4, 4, "...");
            return;
        }
    }
}

static void put_number(char *cell, int number)
{
    if (number < 0) {
        (void)snprintf(cell, CELL_MAX, "-");
    } else {
        (void)snprintf(cell, CELL_MAX, "%d", number);
    }
}

static void fill_row(const struct weft_machine *m, size_t device, struct row *row)
{
    const struct weft_device *d = &m->devices[device];
    char bdf[WEFT_BDF_TEXT_MAX];
    put_number(row->cell[0], d->index);
    (void)snprintf(row->cell[1], CELL_MAX, "%s", d->id);
    (void)snprintf(row->cell[2], CELL_MAX, "%s",
                   d->bdf.known ? weft_bdf_format(&d->bdf, bdf) : "-");
    (void)snprintf(row->cell[3], CELL_MAX, "%s", d->numa_label[0] != '\0' ? d->numa_label : "-");
    put_number(row->cell[4], d->socket);
    name_near_nics(m, device, row->cell[5]);
}

static void widen(const struct row *row, size_t *widths)
{
    for (size_t c = 0; c < COLUMNS; c++) {
        const size_t len = strlen(row->cell[c]);
        widths[c] = len > widths[c] ? len : widths[c];
    }
}

static void put_row(const struct row *row, const size_t *widths, struct weft_buf *buf)
{
    for (size_t c = 0; c + 1 < COLUMNS; c++) {
        (void)weft_buf_printf(buf, "%-*s  ", (int)widths[c], row->cell[c]);
    }
    (void)weft_buf_printf(buf, "%s\n", row->cell[COLUMNS - 1]);
}

static void put_devices(const struct weft_machine *m, const struct weft_choice *choice,
                        struct weft_buf *buf)
{
    const struct row title = {{"INDEX", "ID", "PCI", "NUMA", "SOCKET", "NEAR NICS"}};
    size_t widths[COLUMNS] = {0};
    struct row row;
    widen(&title, widths);
    for (size_t i = 0; i < choice->count; i++) {
        fill_row(m, choice->devices[i], &row);
        widen(&row, widths);
    }
    put_row(&title, widths, buf);
    for (size_t i = 0; i < choice->count; i++) {
        fill_row(m, choice->devices[i], &row);
        put_row(&row, widths, buf);
    }
}

/* ---- the reasons ---- */

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

void weft_alloc_put_rate(struct weft_buf *buf, uint64_t mbps)
{
    if (mbps >= 1000) {
        (void)weft_buf_printf(buf, "%" PRIu64 ".%" PRIu64 " GB/s", mbps / 1000, mbps % 1000 / 100);
    } else {
        (void)weft_buf_printf(buf, "%" PRIu64 " MB/s", mbps);
    }
}

static void reason_links(const struct weft_choice *c, struct weft_buf *buf)
{
    const struct weft_objective *o = &c->objective;
    (void)weft_buf_puts(buf, "  links     ");
    if (c->count < 2) {
        (void)weft_buf_puts(buf, "a single device\n");
        return;
    }
    if (o->components > 1) {
        (void)weft_buf_printf(buf, "direct links leave %" PRIu32 " separate parts\n",
                              o->components);
        return;
    }
    (void)weft_buf_puts(buf, "all joined by direct links; their narrowest cut carries ");
    weft_alloc_put_rate(buf, o->min_cut_mbps);
    (void)weft_buf_putc(buf, '\n');
}

static void reason_place(const struct weft_choice *c, struct weft_buf *buf)
{
    const struct weft_objective *o = &c->objective;
    (void)weft_buf_puts(buf, "  distance  ");
    if (o->worst_tier < 0) {
        (void)weft_buf_puts(buf, "no pair is without a direct link\n");
    } else {
        (void)weft_buf_printf(buf, "the farthest pair without a direct link is at %s\n",
                              weft_distance_name((enum weft_distance)o->worst_tier));
    }
    (void)weft_buf_printf(buf, "  place     %" PRIu32 " socket%s, %" PRIu32 " NUMA node%s\n",
                          o->sockets, plural(o->sockets), o->numa_nodes, plural(o->numa_nodes));
}

static void reason_groups(const struct weft_choice *c, struct weft_buf *buf)
{
    const struct weft_objective *o = &c->objective;
    (void)weft_buf_printf(buf,
                          "  groups    breaks %" PRIu32 " whole group%s of devices, leaves %" PRIu32
                          " free place%s in groups it uses\n",
                          o->broken_groups, plural(o->broken_groups), o->leftover,
                          plural(o->leftover));
}

static void reason_rest(const struct weft_choice *c, struct weft_buf *buf)
{
    const struct weft_objective *o = &c->objective;
    (void)weft_buf_printf(buf,
                          "  NICs      %" PRIu32 " device%s with a NIC behind the same switches, "
                          "%" PRIu32 " such NIC%s\n",
                          o->nic_near, plural(o->nic_near), o->nic_distinct,
                          plural(o->nic_distinct));
    (void)weft_buf_puts(buf, "  sums      ");
    weft_alloc_put_rate(buf, o->bandwidth_mbps);
    (void)weft_buf_printf(buf, " over all pairs, distances add up to %" PRIu32 "\n", o->tier_sum);
    (void)weft_buf_puts(buf, "  ties      the first in PCI order (by index, if an address is "
                             "missing)\n");
}

/* Available means healthy, too, and each device once. */
static size_t count_available(const struct weft_machine *m, const struct weft_request *r)
{
    size_t count = 0;
    for (size_t i = 0; i < m->device_count; i++) {
        bool found = false;
        for (size_t k = 0; k < r->available_count && !found; k++) {
            found = r->available[k] == i && m->devices[i].healthy;
        }
        count += found;
    }
    return count;
}

static void put_reasons(const struct weft_choice *choice, enum weft_policy policy,
                        struct weft_buf *buf)
{
    (void)weft_buf_puts(buf, "\nwhy, by weight:\n");
    if (policy == WEFT_POLICY_PACKED) {
        reason_groups(choice, buf);
    }
    reason_links(choice, buf);
    reason_place(choice, buf);
    if (policy != WEFT_POLICY_PACKED) {
        reason_groups(choice, buf);
    }
    reason_rest(choice, buf);
}

void weft_alloc_print_table(const struct weft_alloc_answer *answer, struct weft_buf *buf)
{
    const struct weft_choice *choice = answer->choice;
    const enum weft_policy policy = answer->request->policy;
    const size_t available = count_available(answer->machine, answer->request);
    (void)weft_buf_printf(buf, "%zu of %zu available device%s, policy %s%s\n", choice->count,
                          available, plural(available), weft_policy_name(policy),
                          choice->exact ? "" : ", by a bounded search (not surely the best)");
    if (choice->count == 0) {
        return;
    }
    (void)weft_buf_putc(buf, '\n');
    put_devices(answer->machine, choice, buf);
    if (choice->count == available) {
        (void)weft_buf_puts(buf, "\nno choice: these are all that is available\n");
        return;
    }
    put_reasons(choice, policy, buf);
    if (answer->other != NULL) {
        weft_alloc_explain_table(answer, buf);
    }
}
