/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of an `nvidia-smi topo -m` text: finds the header, hands rows to smi-topo-row.c, reads
 * the NIC legend and passes over all else (prompts, legend, NIC rows, Markdown rules). */
#include <errno.h>
#include <string.h>

#include "pkg/machine/machine-internal.h"
#include "pkg/machine/smi-topo-internal.h"

int weft_topo_clean(const char *text, size_t len, char **ret_text, size_t *ret_len)
{
    char *clean = weft_malloc(len + 1);
    if (clean == NULL) {
        return -ENOMEM;
    }
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\033' && i + 1 < len && text[i + 1] == '[') {
            i += 2;
            while (i < len && (text[i] < '@' || text[i] > '~')) {
                i++;
            }
            continue;
        }
        const bool nbsp = text[i] == '\xc2' && i + 1 < len && text[i + 1] == '\xa0';
        i += nbsp;
        clean[n++] = nbsp || text[i] == '\0' ? ' ' : text[i];
        if (text[i] == '|') {
            clean[n - 1] = '\t';
        }
    }
    clean[n] = '\0';
    *ret_text = clean;
    *ret_len = n;
    return 0;
}

int weft_topo_gpu_number(struct weft_str word)
{
    uint64_t number = 0;
    if (!weft_str_starts(word, "GPU") ||
        weft_parse_u64((struct weft_str){word.data + 3, word.len - 3}, 65535, &number) < 0) {
        return -1;
    }
    return (int)number;
}

bool weft_topo_is_cell(struct weft_str word)
{
    enum weft_distance distance;
    uint64_t links = 0;
    return weft_str_eq(word, "X") || weft_distance_parse(word.data, word.len, &distance) ||
           (weft_str_starts(word, "NV") &&
            weft_parse_u64((struct weft_str){word.data + 2, word.len - 2}, WEFT_MACHINE_LINKS_MAX,
                           &links) == 0);
}

bool weft_topo_has_cell(struct weft_str line)
{
    struct weft_str word;
    while (weft_str_word(&line, &word)) {
        if (weft_topo_is_cell(word)) {
            return true;
        }
    }
    return false;
}

static bool next_is(struct weft_str *rest, const char *text)
{
    struct weft_str after = *rest;
    struct weft_str word;
    if (!weft_str_word(&after, &word) || !weft_str_eq(word, text)) {
        return false;
    }
    *rest = after;
    return true;
}

/* Notes a column after the matrix; which says what it is. */
static void add_tail(struct weft_topo *t, size_t offset, int *which)
{
    if (t->tail_count < WEFT_TOPO_TAIL_MAX) {
        if (which != NULL && *which < 0) {
            *which = (int)t->tail_count;
        }
        t->tail_offset[t->tail_count++] = offset;
    }
}

static int add_column(struct weft_topo *t, unsigned line, struct weft_str word,
                      struct weft_error *err)
{
    const int gpu = weft_topo_gpu_number(word);
    size_t *count = gpu >= 0 ? &t->gpu_count : &t->nic_count;
    const size_t max = gpu >= 0 ? WEFT_MACHINE_DEVICES_MAX : WEFT_MACHINE_NICS_MAX;
    if (*count == max) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "%s:%u: more than %zu columns of %s",
                            t->name, line, max, gpu >= 0 ? "GPUs" : "NICs");
    }
    for (size_t i = 0; gpu >= 0 && i < t->column_count; i++) {
        if (t->columns[i].gpu == gpu) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s:%u: two columns GPU%d", t->name,
                                line, gpu);
        }
    }
    (*count)++;
    t->columns[t->column_count++] = (struct weft_topo_column){.name = word, .gpu = gpu};
    return 0;
}

static int parse_header(struct weft_topo *t, unsigned line, struct weft_str text,
                        struct weft_error *err)
{
    t->header_line = line;
    t->column_count = t->gpu_count = t->nic_count = t->tail_count = 0;
    t->cpu_at = t->numa_at = -1;
    const char *start = text.data;
    struct weft_str word;
    while (weft_str_word(&text, &word)) {
        const size_t offset = (size_t)(word.data - start);
        if (weft_str_eq(word, "CPU") && next_is(&text, "Affinity")) {
            add_tail(t, offset, &t->cpu_at);
        } else if (weft_str_eq(word, "NUMA") && next_is(&text, "Affinity")) {
            add_tail(t, offset, &t->numa_at);
        } else if ((weft_str_eq(word, "GPU") && next_is(&text, "NUMA") && next_is(&text, "ID")) ||
                   t->tail_count > 0) {
            add_tail(t, offset, NULL); /* GPU NUMA ID, or a column of a driver to come */
        } else {
            const int rc = add_column(t, line, word, err);
            if (rc < 0) {
                return rc;
            }
        }
    }
    return 0;
}

static int allocate_rows(struct weft_topo *t)
{
    if (t->have_rows) {
        return 0;
    }
    t->have_rows = true;
    t->rows = weft_calloc(t->column_count, sizeof(*t->rows));
    t->cells = weft_calloc(t->gpu_count * t->column_count, sizeof(*t->cells));
    if (t->rows == NULL || t->cells == NULL) {
        return -ENOMEM;
    }
    struct weft_str *next = t->cells;
    for (size_t i = 0; i < t->column_count; i++) {
        if (t->columns[i].gpu >= 0) {
            t->rows[i].cells = next;
            next += t->column_count;
        }
    }
    return 0;
}

static size_t find_column(const struct weft_topo *t, struct weft_str name)
{
    const int gpu = weft_topo_gpu_number(name);
    for (size_t i = 0; i < t->column_count; i++) {
        const struct weft_topo_column *c = &t->columns[i];
        const bool same = c->name.len == name.len && memcmp(c->name.data, name.data, name.len) == 0;
        if (gpu >= 0 ? c->gpu == gpu : same) {
            return i;
        }
    }
    return SIZE_MAX;
}

/* A line that begins with GPU<n>: the header, or a row. */
static int gpu_line(struct weft_topo *t, unsigned line, struct weft_str text,
                    struct weft_error *err)
{
    struct weft_str rest = text;
    struct weft_str name;
    struct weft_str second = {0};
    (void)weft_str_word(&rest, &name);
    struct weft_str after = rest;
    const bool header =
        weft_str_word(&after, &second) ? !weft_topo_has_cell(text) : t->header_line == 0;
    const bool again = weft_topo_gpu_number(second) >= 0;
    if (header && !t->have_rows && (t->header_line == 0 || again)) {
        return parse_header(t, line, text, err); /* the last one before the rows counts */
    }
    if (t->header_line == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: row %.*s stands before a header line that names the columns",
                            t->name, line, WEFT_STR_ARG(name));
    }
    if (again) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: a second matrix begins; one machine a file", t->name, line);
    }
    const size_t column = find_column(t, name);
    if (column == SIZE_MAX) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s:%u: row %.*s has no column", t->name,
                            line, WEFT_STR_ARG(name));
    }
    if (allocate_rows(t) < 0) {
        return weft_err_nomem(err);
    }
    if (t->rows[column].line != 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s:%u: a second row %.*s (line %u)",
                            t->name, line, WEFT_STR_ARG(name), t->rows[column].line);
    }
    t->last_row_line = line;
    return weft_topo_parse_row(t, column, line, text.data, rest, err);
}

/* Any other line: "NIC0: mlx5_0" of the legend, the row of a NIC, or something to pass over. */
static void other_line(struct weft_topo *t, unsigned line, struct weft_str text)
{
    struct weft_str name;
    struct weft_str second;
    if (!weft_str_word(&text, &name) || !weft_str_word(&text, &second)) {
        return;
    }
    if (name.data[name.len - 1] == ':') {
        name.len--;
        const size_t column = find_column(t, name);
        if (column != SIZE_MAX && t->columns[column].gpu < 0) {
            t->columns[column].legend = second;
        }
        return;
    }
    if (t->header_line != 0 && weft_topo_is_cell(second) && find_column(t, name) == SIZE_MAX) {
        t->stray_line = t->stray_rows == 0 ? line : t->stray_line;
        t->stray_rows++;
    }
}

static int parse_lines(struct weft_topo *t, struct weft_error *err)
{
    struct weft_str rest = {t->text, t->text_len};
    struct weft_str text;
    for (unsigned line = 1; weft_str_line(&rest, &text); line++) {
        struct weft_str word;
        struct weft_str look = text;
        if (!weft_str_word(&look, &word)) {
            continue;
        }
        t->last_line = line;
        if (weft_topo_gpu_number(word) < 0) {
            other_line(t, line, text);
            continue;
        }
        const int rc = gpu_line(t, line, text, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

int weft_topo_parse(const char *text, size_t len, const char *name, struct weft_topo *ret_topo,
                    struct weft_error *err)
{
    weft_auto(weft_topo_done) struct weft_topo t = {.name = name, .cpu_at = -1, .numa_at = -1};
    t.columns = weft_calloc(WEFT_TOPO_COLUMNS_MAX, sizeof(*t.columns));
    if (t.columns == NULL || weft_topo_clean(text, len, &t.text, &t.text_len) < 0) {
        return weft_err_nomem(err);
    }
    int rc = parse_lines(&t, err);
    if (rc < 0) {
        return rc;
    }
    if (t.header_line == 0) {
        return weft_err_set(
            err, -EINVAL, WEFT_ERR_CONFIG,
            "%s: neither weft's machine JSON nor the output of nvidia-smi topo -m "
            "(no header line that begins with GPU0), nor any other recording that is "
            "known",
            name);
    }
    if (allocate_rows(&t) < 0) { /* a header without any row */
        return weft_err_nomem(err);
    }
    *ret_topo = t;
    t = (struct weft_topo){0};
    return 0;
}

void weft_topo_done(struct weft_topo *t)
{
    if (t != NULL) {
        weft_free(t->text);
        weft_free(t->columns);
        weft_free(t->rows);
        weft_free(t->cells);
        *t = (struct weft_topo){0};
    }
}
