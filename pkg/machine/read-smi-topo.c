/* SPDX-License-Identifier: Apache-2.0 */
/* From the table of an `nvidia-smi topo -m` text to a machine, by allocation.md "Reading". A GPU
 * whose row is missing or cut is left out with a warning: nothing about it is guessed from the
 * rows of others. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/machine/machine-internal.h"
#include "pkg/machine/smi-p2p-internal.h"
#include "pkg/machine/smi-topo-internal.h"

enum { NAMES_TEXT_MAX = 200 }; /* bytes of a list of names in a warning */

struct builder {
    const struct weft_topo *topo;
    struct weft_machine *machine;
    size_t *columns; /* of the whole GPUs, in the header's order */
    size_t device_count;
};

static bool is_unknown(struct weft_str cell)
{
    return cell.len == 0 || weft_str_eq(cell, "N/A") || weft_str_eq(cell, "-1");
}

static bool same_text(struct weft_str a, struct weft_str b)
{
    return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* ---- rows that a cut file leaves unsure ---- */

static bool is_proper_prefix(struct weft_str a, struct weft_str of)
{
    return a.len > 0 && a.len < of.len && memcmp(a.data, of.data, a.len) == 0;
}

static bool rows_missing(const struct weft_topo *t)
{
    for (size_t i = 0; i < t->column_count; i++) {
        if (t->columns[i].gpu >= 0 && t->rows[i].line == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the row that ends the file may have lost the end of its last word, although all cells
 * are there. */
static bool last_row_unsure(const struct weft_topo *t, const struct weft_topo_row *row)
{
    const bool no_newline = t->text_len > 0 && t->text[t->text_len - 1] != '\n';
    const bool missing = rows_missing(t);
    const bool no_tail = row->cpu.len == 0 && row->numa.len == 0;
    if (missing && no_newline) {
        return true;
    }
    if ((missing || no_newline) && no_tail && t->tail_count > 0) {
        /* NV1 may be the start of NV18; the other words cannot be the start of one another */
        return weft_str_starts(row->cells[t->column_count - 1], "NV");
    }
    for (size_t i = 0; (missing || no_newline) && i < t->column_count; i++) {
        const struct weft_str last = row->numa.len > 0 ? row->numa : row->cpu;
        if (is_proper_prefix(last, row->numa.len > 0 ? t->rows[i].numa : t->rows[i].cpu)) {
            return true;
        }
    }
    return false;
}

static void mark_cut_end(struct weft_topo *t)
{
    for (size_t i = 0; i < t->column_count; i++) {
        struct weft_topo_row *row = &t->rows[i];
        if (row->whole && row->line == t->last_line && last_row_unsure(t, row)) {
            row->whole = false;
        }
    }
}

/* ---- what is left out, said once ---- */

static void add_name(char *names, size_t *len, struct weft_str name)
{
    if (*len + name.len + 8 < NAMES_TEXT_MAX) {
        *len += (size_t)snprintf(names + *len, NAMES_TEXT_MAX - *len, "%s%.*s",
                                 *len > 0 ? ", " : "", WEFT_STR_ARG(name));
    } else if (!weft_str_ends((struct weft_str){names, *len}, "…")) {
        *len += (size_t)snprintf(names + *len, NAMES_TEXT_MAX - *len, ", …");
    }
}

static int warn_missing(const struct weft_topo *t, struct weft_machine *m)
{
    char names[NAMES_TEXT_MAX] = "";
    size_t len = 0;
    for (size_t i = 0; i < t->column_count; i++) {
        const struct weft_topo_row *row = &t->rows[i];
        m->partial = m->partial || (t->columns[i].gpu >= 0 && !row->whole);
        if (t->columns[i].gpu >= 0 && row->line == 0) {
            add_name(names, &len, t->columns[i].name);
        } else if (t->columns[i].gpu >= 0 && !row->whole &&
                   weft_machine_warn(m, "line %u: row %.*s is cut; the device is left out",
                                     row->line, WEFT_STR_ARG(t->columns[i].name)) < 0) {
            return -ENOMEM;
        }
    }
    if (len > 0) {
        return weft_machine_warn(m, "line %u: the header names devices without a row, left out: %s",
                                 t->header_line, names);
    }
    return 0;
}

static int warn_rest(const struct weft_topo *t, struct weft_machine *m)
{
    int rc = warn_missing(t, m);
    if (rc == 0 && t->stray_rows > 0) {
        rc =
            weft_machine_warn(m, "line %u: %u rows of NICs have no column; those NICs are left out",
                              t->stray_line, t->stray_rows);
    }
    for (size_t i = 0; rc == 0 && i < t->column_count; i++) {
        const struct weft_topo_row *row = &t->rows[i];
        if (row->whole && row->cpu.len == 0 && row->numa.len == 0 && t->tail_count > 0) {
            rc = weft_machine_warn(m, "line %u: row %.*s has no affinity; its NUMA node is unknown",
                                   row->line, WEFT_STR_ARG(t->columns[i].name));
        }
    }
    return rc;
}

/* ---- devices, NICs, pairs ---- */

static void set_devices(const struct builder *b)
{
    for (size_t d = 0; d < b->device_count; d++) {
        const struct weft_topo *t = b->topo;
        const struct weft_topo_row *row = &t->rows[b->columns[d]];
        struct weft_device *device = &b->machine->devices[d];
        const struct weft_str label = t->numa_at >= 0 ? row->numa : row->cpu;
        device->index = t->columns[b->columns[d]].gpu;
        (void)snprintf(device->id, sizeof(device->id), "GPU%d", device->index);
        weft_device_set_numa(device, label.data, label.len);
        if (t->numa_at < 0) {
            device->numa_node = -1; /* "0" is then a CPU, not a node */
        }
    }
    weft_machine_group_numa(b->machine);
}

static int warn_unreadable(const struct builder *b, size_t d, size_t column)
{
    const struct weft_topo *t = b->topo;
    const struct weft_topo_row *row = &t->rows[b->columns[d]];
    char cell[24];
    (void)weft_machine_copy_visible(cell, sizeof(cell), row->cells[column].data,
                                    row->cells[column].len);
    return weft_machine_warn(b->machine,
                             "line %u: cell '%s' of %s and %.*s is not known: no link, "
                             "distance unknown",
                             row->line, cell, b->machine->devices[d].id,
                             WEFT_STR_ARG(t->columns[column].name));
}

static int set_nics(const struct builder *b)
{
    const struct weft_topo *t = b->topo;
    size_t nic = 0;
    for (size_t c = 0; c < t->column_count; c++) {
        if (t->columns[c].gpu >= 0) {
            continue;
        }
        const struct weft_topo_column *column = &t->columns[c];
        const struct weft_str name = column->legend.len > 0 ? column->legend : column->name;
        (void)weft_machine_copy_visible(b->machine->nics[nic].name, sizeof(b->machine->nics->name),
                                        name.data, name.len);
        for (size_t d = 0; d < b->device_count; d++) {
            const struct weft_str cell = t->rows[b->columns[d]].cells[c];
            enum weft_distance distance = WEFT_DISTANCE_SYS;
            const bool known = weft_distance_parse(cell.data, cell.len, &distance);
            weft_machine_set_nic(b->machine, d, nic, known ? (int)distance : WEFT_DISTANCE_UNKNOWN);
            if (!known && warn_unreadable(b, d, c) < 0) {
                return -ENOMEM;
            }
        }
        nic++;
    }
    return 0;
}

/* allocation.md: NUMA labels where both are known, else the CPU affinities as text. */
static bool affinities_equal(const struct builder *b, size_t i, size_t j)
{
    const int gi = b->machine->devices[i].numa_group;
    const int gj = b->machine->devices[j].numa_group;
    if (gi >= 0 && gj >= 0) {
        return gi == gj;
    }
    const struct weft_str ci = b->topo->rows[b->columns[i]].cpu;
    const struct weft_str cj = b->topo->rows[b->columns[j]].cpu;
    return !is_unknown(ci) && same_text(ci, cj);
}

/* 1 read, 0 not a word that topo -m writes. */
static int read_cell(const struct builder *b, size_t i, size_t j, struct weft_reading *ret)
{
    const struct weft_str cell = b->topo->rows[b->columns[i]].cells[b->columns[j]];
    enum weft_distance distance = WEFT_DISTANCE_SYS;
    uint64_t links = 0;
    *ret = (struct weft_reading){.distance = WEFT_DISTANCE_UNKNOWN};
    if (weft_distance_parse(cell.data, cell.len, &distance)) {
        ret->distance = (int)distance;
        return 1;
    }
    if (weft_topo_is_cell(cell) && !weft_str_eq(cell, "X") &&
        weft_parse_u64((struct weft_str){cell.data + 2, cell.len - 2}, WEFT_MACHINE_LINKS_MAX,
                       &links) == 0) {
        ret->bandwidth = links * WEFT_MACHINE_LINK_MBPS;
        ret->distance = (int)weft_machine_hidden_t(b->machine, i, j, affinities_equal(b, i, j));
        return 1;
    }
    return 0;
}

static int set_pair(const struct builder *b, size_t i, size_t j)
{
    struct weft_reading from_i;
    struct weft_reading from_j;
    int rc = 0;
    if (read_cell(b, i, j, &from_i) == 0) {
        rc = warn_unreadable(b, i, b->columns[j]);
    }
    if (read_cell(b, j, i, &from_j) == 0 && rc == 0) {
        rc = warn_unreadable(b, j, b->columns[i]);
    }
    if (!weft_machine_set_pair(b->machine, i, j, from_i, from_j) && rc == 0) {
        const struct weft_str ij = b->topo->rows[b->columns[i]].cells[b->columns[j]];
        const struct weft_str ji = b->topo->rows[b->columns[j]].cells[b->columns[i]];
        rc = weft_machine_warn(b->machine,
                               "%s and %s are '%.*s' one way and '%.*s' the other: the "
                               "smaller bandwidth and the larger distance count",
                               b->machine->devices[i].id, b->machine->devices[j].id,
                               WEFT_STR_ARG(ij), WEFT_STR_ARG(ji));
    }
    return rc;
}

static int fill(const struct builder *b)
{
    weft_free(b->machine->vendor);
    b->machine->vendor = weft_strdup("nvidia");
    if (b->machine->vendor == NULL) {
        return -ENOMEM;
    }
    set_devices(b);
    int rc = warn_rest(b->topo, b->machine);
    rc = rc < 0 ? rc : set_nics(b);
    for (size_t i = 0; rc == 0 && i < b->device_count; i++) {
        for (size_t j = i + 1; rc == 0 && j < b->device_count; j++) {
            rc = set_pair(b, i, j);
        }
    }
    return rc;
}

static int build(struct weft_topo *t, struct weft_machine **ret_machine, struct weft_error *err)
{
    weft_autofree size_t *columns = weft_calloc(t->gpu_count, sizeof(*columns));
    if (columns == NULL) {
        return weft_err_nomem(err);
    }
    struct builder b = {.topo = t, .columns = columns};
    for (size_t i = 0; i < t->column_count; i++) {
        if (t->columns[i].gpu >= 0 && t->rows[i].whole) {
            columns[b.device_count++] = i;
        }
    }
    if (b.device_count == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: none of the %zu GPUs that the header names has a whole row",
                            t->name, t->header_line, t->gpu_count);
    }
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    int rc = weft_machine_new(t->name, b.device_count, t->nic_count, &m, err);
    if (rc < 0) {
        return rc;
    }
    b.machine = m;
    if (fill(&b) < 0) {
        return weft_err_nomem(err);
    }
    rc = weft_machine_finish(m, err);
    if (rc == 0) {
        *ret_machine = weft_steal(&m);
    }
    return rc;
}

static int read_matrix(const char *text, size_t len, const char *name,
                       struct weft_machine **ret_machine, struct weft_error *err)
{
    weft_auto(weft_topo_done) struct weft_topo t = {0};
    const int rc = weft_topo_parse(text, len, name, &t, err);
    if (rc < 0) {
        return rc;
    }
    mark_cut_end(&t);
    return build(&t, ret_machine, err);
}

int weft_machine_read_smi_topo(const char *text, size_t len, const char *name,
                               struct weft_machine **ret_machine, struct weft_error *err)
{
    weft_auto(weft_smi_parts_done) struct weft_smi_parts parts = {0};
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    weft_autofree char *clean = NULL;
    size_t clean_len = 0;
    if (weft_topo_clean(text, len, &clean, &clean_len) < 0) {
        return weft_err_nomem(err);
    }
    int rc = weft_smi_split(clean, clean_len, name, &parts, err);
    if (rc < 0) {
        return rc;
    }
    if (parts.matrix == NULL) {
        return weft_smi_p2p_alone(&parts, name, ret_machine, err);
    }
    rc = read_matrix(parts.matrix, parts.len, name, &m, err);
    rc = rc < 0 ? rc : weft_smi_apply_p2p(&parts, m, err);
    if (rc == 0) {
        *ret_machine = weft_steal(&m);
    }
    return rc;
}
