/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the tables of `nvidia-smi topo -p2p`. They have the shape of topo -m, with a status in each
 * cell: OK, or why not. A status says nothing of distances or links, so alone it gives devices of
 * unknown wiring; beside topo -m, what is not OK has no bandwidth (allocation.md: "P2P not OK: 0").
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/machine/machine-internal.h"
#include "pkg/machine/smi-p2p-internal.h"
#include "pkg/machine/smi-topo-internal.h"

static bool is_status(struct weft_str word)
{
    /* the legend of topo -p2p; DR is "disabled by regkey" */
    static const char *const words[] = {"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(words); i++) {
        if (weft_str_eq(word, words[i])) {
            return true;
        }
    }
    return false;
}

/* ---- taking a recording apart ---- */

enum line_kind { LINE_OTHER, LINE_HEADER, LINE_STATUS, LINE_MATRIX };

static enum line_kind kind_of(struct weft_str line)
{
    struct weft_str word;
    if (!weft_str_word(&line, &word) || weft_topo_gpu_number(word) < 0) {
        return LINE_OTHER;
    }
    bool first = true;
    enum line_kind kind = LINE_OTHER;
    while (weft_str_word(&line, &word)) {
        if (first && weft_topo_gpu_number(word) >= 0) {
            return LINE_HEADER;
        }
        first = false;
        if (weft_topo_is_cell(word) && !weft_str_eq(word, "X")) {
            return LINE_MATRIX;
        }
        kind = is_status(word) ? LINE_STATUS : kind;
    }
    return kind;
}

/* A copy of the text in which all but [start, end) is blank. */
static char *only(const char *text, size_t len, size_t start, size_t end)
{
    char *copy = weft_malloc(len + 1);
    for (size_t i = 0; copy != NULL && i < len; i++) {
        copy[i] = (i >= start && i < end) || text[i] == '\n' ? text[i] : ' ';
    }
    if (copy != NULL) {
        copy[len] = '\0';
    }
    return copy;
}

/* The text under work, and the block of it that began at the last header line. */
struct split {
    struct weft_smi_parts *parts;
    const char *text, *name;
    bool any_matrix;
    size_t start;
    bool open, status, matrix;
};

/* Moves the block, which ends before end, out of the matrix text. */
static int take_block(struct split *s, size_t end, struct weft_error *err)
{
    struct weft_smi_parts *p = s->parts;
    if (p->p2p_count == WEFT_SMI_P2P_MAX) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s: more than %d tables of topo -p2p",
                            s->name, (int)WEFT_SMI_P2P_MAX);
    }
    p->p2p[p->p2p_count] = only(s->text, p->len, s->start, end);
    if (p->p2p[p->p2p_count] == NULL) {
        return weft_err_nomem(err);
    }
    p->p2p_count++;
    for (size_t i = s->start; i < end; i++) {
        p->matrix[i] = p->matrix[i] == '\n' ? '\n' : ' ';
    }
    if (end == p->len) {
        p->matrix[end - 1] = '\n'; /* the matrix before is not the end of a cut file */
    }
    return 0;
}

static int close_block(struct split *s, size_t end, struct weft_error *err)
{
    const bool take = s->open && s->status && !s->matrix;
    const int rc = take ? take_block(s, end, err) : 0;
    s->any_matrix = s->any_matrix || (s->open && !take);
    s->start = end;
    s->open = s->status = s->matrix = false;
    return rc;
}

static int split_lines(struct split *s, struct weft_error *err)
{
    struct weft_str rest = {s->text, s->parts->len};
    struct weft_str line;
    while (weft_str_line(&rest, &line)) {
        const enum line_kind kind = kind_of(line);
        if (kind == LINE_HEADER) {
            const int rc = close_block(s, (size_t)(line.data - s->text), err);
            if (rc < 0) {
                return rc;
            }
            s->open = true;
        }
        s->status = s->status || kind == LINE_STATUS;
        s->matrix = s->matrix || kind == LINE_MATRIX;
    }
    return close_block(s, s->parts->len, err);
}

int weft_smi_split(const char *text, size_t len, const char *name, struct weft_smi_parts *ret_parts,
                   struct weft_error *err)
{
    weft_auto(weft_smi_parts_done) struct weft_smi_parts p = {.matrix = only(text, len, 0, len),
                                                              .len = len};
    if (p.matrix == NULL) {
        return weft_err_nomem(err);
    }
    struct split s = {.parts = &p, .text = text, .name = name};
    const int rc = split_lines(&s, err);
    if (rc < 0) {
        return rc;
    }
    if (p.p2p_count > 0 && !s.any_matrix) {
        weft_free(p.matrix);
        p.matrix = NULL;
    }
    *ret_parts = p;
    p = (struct weft_smi_parts){0};
    return 0;
}

void weft_smi_parts_done(struct weft_smi_parts *p)
{
    weft_free(p->matrix);
    for (size_t i = 0; i < p->p2p_count; i++) {
        weft_free(p->p2p[i]);
    }
    *p = (struct weft_smi_parts){0};
}

/* ---- beside a matrix ---- */

static size_t device_of(const struct weft_machine *m, int gpu)
{
    for (size_t i = 0; gpu >= 0 && i < m->device_count; i++) {
        if (m->devices[i].index == gpu) {
            return i;
        }
    }
    return SIZE_MAX;
}

static int apply_cell(const struct weft_topo *t, size_t row, size_t column, struct weft_machine *m)
{
    const struct weft_str cell = t->rows[row].cells[column];
    const size_t i = device_of(m, t->columns[row].gpu);
    const size_t j = device_of(m, t->columns[column].gpu);
    if (row == column || i == SIZE_MAX || j == SIZE_MAX || weft_str_eq(cell, "OK")) {
        return 0;
    }
    char text[24];
    (void)weft_machine_copy_visible(text, sizeof(text), cell.data, cell.len);
    if (!is_status(cell)) {
        return weft_machine_warn(m, "line %u: '%s' of %s and %s is no status of topo -p2p",
                                 t->rows[row].line, text, m->devices[i].id, m->devices[j].id);
    }
    if (weft_machine_b(m, i, j) == 0) {
        return 0;
    }
    m->bandwidth[(i * m->device_count) + j] = m->bandwidth[(j * m->device_count) + i] = 0;
    return weft_machine_warn(m, "line %u: P2P of %s and %s is %s: their links do not count",
                             t->rows[row].line, m->devices[i].id, m->devices[j].id, text);
}

static int apply_table(const struct weft_topo *t, struct weft_machine *m)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < t->column_count; i++) {
        for (size_t j = 0; rc == 0 && t->rows[i].whole && j < t->column_count; j++) {
            rc = apply_cell(t, i, j, m);
        }
    }
    return rc;
}

int weft_smi_apply_p2p(const struct weft_smi_parts *p, struct weft_machine *m,
                       struct weft_error *err)
{
    for (size_t k = 0; k < p->p2p_count; k++) {
        weft_auto(weft_topo_done) struct weft_topo t = {0};
        const int rc = weft_topo_parse(p->p2p[k], p->len, m->name, &t, err);
        if (rc < 0) {
            return rc;
        }
        if (apply_table(&t, m) < 0) {
            return weft_err_nomem(err);
        }
    }
    return 0;
}

/* ---- alone ---- */

static size_t whole_gpus(const struct weft_topo *t)
{
    size_t count = 0;
    for (size_t i = 0; i < t->column_count; i++) {
        count += t->columns[i].gpu >= 0 && t->rows[i].whole;
    }
    return count;
}

static int fill_alone(const struct weft_topo *t, struct weft_machine *m)
{
    size_t d = 0;
    for (size_t i = 0; i < t->column_count; i++) {
        if (t->columns[i].gpu >= 0 && t->rows[i].whole) {
            m->devices[d].index = t->columns[i].gpu;
            (void)snprintf(m->devices[d].id, sizeof(m->devices[d].id), "GPU%d",
                           m->devices[d].index);
            d++;
        }
    }
    weft_free(m->vendor);
    m->vendor = weft_strdup("nvidia");
    if (m->vendor == NULL) {
        return -ENOMEM;
    }
    m->partial = m->device_count < t->gpu_count;
    int rc = weft_machine_warn(m, "nvidia-smi topo -p2p says which GPUs may reach one another, not "
                                  "how they are wired: links, distances and NUMA nodes are not "
                                  "known; record nvidia-smi topo -m");
    if (rc == 0 && m->partial) {
        rc = weft_machine_warn(m,
                               "line %u: %zu of the GPUs that the header names have no whole "
                               "row and are left out",
                               t->header_line, t->gpu_count - m->device_count);
    }
    return rc;
}

int weft_smi_p2p_alone(const struct weft_smi_parts *p, const char *name,
                       struct weft_machine **ret_machine, struct weft_error *err)
{
    weft_auto(weft_topo_done) struct weft_topo t = {0};
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    int rc = weft_topo_parse(p->p2p[0], p->len, name, &t, err);
    if (rc < 0) {
        return rc;
    }
    if (whole_gpus(&t) == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: none of the %zu GPUs that the header names has a whole row",
                            name, t.header_line, t.gpu_count);
    }
    rc = weft_machine_new(name, whole_gpus(&t), 0, &m, err);
    if (rc < 0) {
        return rc;
    }
    rc = fill_alone(&t, m) < 0 ? weft_err_nomem(err) : weft_machine_finish(m, err);
    if (rc == 0) {
        *ret_machine = weft_steal(&m);
    }
    return rc;
}
