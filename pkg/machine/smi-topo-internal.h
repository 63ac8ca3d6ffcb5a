/* SPDX-License-Identifier: Apache-2.0 */
/* The text of `nvidia-smi topo -m` as a table of words: which columns there are, which rows are
 * whole. What the words mean for B, T and N is read-smi-topo.c's business. Words are borrowed from
 * the cleaned text that the table owns. */
#ifndef WEFT_MACHINE_SMI_TOPO_INTERNAL_H
#define WEFT_MACHINE_SMI_TOPO_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/base/str.h"
#include "pkg/machine/machine.h"

enum {
    WEFT_TOPO_COLUMNS_MAX = WEFT_MACHINE_DEVICES_MAX + WEFT_MACHINE_NICS_MAX,
    WEFT_TOPO_TAIL_MAX = 8, /* columns after the matrix: affinities, and what a driver may add */
};

struct weft_topo_column {
    struct weft_str name;
    int gpu;                /* the number of a GPU column, -1 for a NIC */
    struct weft_str legend; /* a NIC's name in the legend, or empty */
};

/* The row of one GPU column. */
struct weft_topo_row {
    unsigned line;             /* 0: there is none */
    bool whole;                /* all its cells are there */
    struct weft_str *cells;    /* one a column */
    struct weft_str cpu, numa; /* affinity cells, empty where missing */
};

struct weft_topo {
    const char *name; /* of the source, borrowed */
    char *text;
    size_t text_len;
    unsigned header_line; /* 0: no header yet */
    size_t column_count, gpu_count, nic_count;
    struct weft_topo_column *columns;
    size_t tail_count;                      /* columns after the matrix */
    size_t tail_offset[WEFT_TOPO_TAIL_MAX]; /* where their titles begin in the header line */
    int cpu_at, numa_at;                    /* which of them, -1: there is none */
    struct weft_topo_row *rows;             /* by column; NIC columns have none */
    struct weft_str *cells;
    bool have_rows;
    unsigned last_row_line, last_line; /* of the last GPU row; of the last line that is not blank */
    unsigned stray_rows, stray_line;   /* rows that no column names; the first of them */
};

/* Copies the text without terminal control sequences, and with Markdown's bars as tabs, so that a
 * pasted table reads like the program's own output; lines stay. The caller owns *ret_text. */
int weft_topo_clean(const char *text, size_t len, char **ret_text, size_t *ret_len)
    __attribute__((warn_unused_result));
/* Errors: -EINVAL with "name:line: reason", -EFBIG, -ENOMEM. */
int weft_topo_parse(const char *text, size_t len, const char *name, struct weft_topo *ret_topo,
                    struct weft_error *err) __attribute__((warn_unused_result));
void weft_topo_done(struct weft_topo *topo);
WEFT_DEFINE_AUTO_VALUE(struct weft_topo, weft_topo_done)

/* Takes one row of the table apart (smi-topo-row.c); rest is the line after the row's name,
 * line_start where the line begins. */
int weft_topo_parse_row(struct weft_topo *topo, size_t column, unsigned line,
                        const char *line_start, struct weft_str rest, struct weft_error *err)
    __attribute__((warn_unused_result));
/* A cell of the matrix as topo -m writes it: X, a distance word or NV<k>. */
bool weft_topo_is_cell(struct weft_str word);
/* Is any word of the text such a cell? */
bool weft_topo_has_cell(struct weft_str text);
/* The number of "GPU<n>", or -1. */
int weft_topo_gpu_number(struct weft_str word);

#endif
