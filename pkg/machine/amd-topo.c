/* SPDX-License-Identifier: Apache-2.0 */
/* The text of `amd-smi topology` and `rocm-smi --showtopo`, line by line: titles, the line that
 * names the GPUs, rows, NUMA lines. A row that does not fit its table is an error with its line,
 * unless the text ends there. */
#include "pkg/machine/amd-topo-internal.h"

#include <errno.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/machine/host-internal.h"
#include "pkg/machine/machine-internal.h"

/* ---- tables ---- */

int weft_amd_add_gpu(struct weft_amd_topo *t, int index, const struct weft_bdf *bdf)
{
    void *gpus = t->gpus;
    const int rc = weft_array_reserve(&gpus, &t->cap, t->count + 1, sizeof(*t->gpus),
                                      WEFT_MACHINE_DEVICES_MAX);
    t->gpus = gpus;
    if (rc == 0) {
        t->gpus[t->count++] = (struct weft_amd_gpu){.index = index,
                                                    .bdf = *bdf,
                                                    .numa_node = WEFT_AMD_NUMA_UNSAID,
                                                    .numa_affinity = WEFT_AMD_NUMA_UNSAID};
    }
    return rc;
}

int weft_amd_make_cells(struct weft_amd_topo *t)
{
    for (size_t i = 0; i < WEFT_AMD_TABLE_COUNT; i++) {
        if (t->cells[i] == NULL) {
            t->cells[i] = weft_calloc(t->count * t->count, sizeof(*t->cells[i]));
        }
        if (t->cells[i] == NULL) {
            return -ENOMEM;
        }
    }
    return 0;
}

void weft_amd_topo_done(struct weft_amd_topo *t)
{
    for (size_t i = 0; i < WEFT_AMD_TABLE_COUNT; i++) {
        weft_free(t->cells[i]);
    }
    weft_free(t->gpus);
    *t = (struct weft_amd_topo){0};
}

static bool one_of(struct weft_str word, const char *a, const char *b)
{
    return weft_str_eq(word, a) || weft_str_eq(word, b);
}

static bool read_type(struct weft_str word, uint64_t *ret)
{
    if (one_of(word, "XGMI", "xgmi")) {
        *ret = WEFT_AMD_LINK_XGMI;
    } else if (one_of(word, "PCIE", "pcie")) {
        *ret = WEFT_AMD_LINK_PCIE;
    } else if (one_of(word, "SELF", "0")) {
        *ret = WEFT_AMD_LINK_SELF;
    } else {
        return false;
    }
    return true;
}

/* "50000-100000": of one link, of all together (amd-smi prints least and most). */
static bool read_bandwidth(struct weft_str word, uint64_t *ret)
{
    struct weft_str least;
    uint64_t ignored = 0;
    return weft_str_split(&word, '-', &least) && word.data != NULL &&
           weft_parse_u64(least, WEFT_MACHINE_BANDWIDTH_MAX, &ignored) == 0 &&
           weft_parse_u64(word, WEFT_MACHINE_BANDWIDTH_MAX, ret) == 0;
}

bool weft_amd_read_cell(enum weft_amd_table table, const char *data, size_t len, uint64_t *ret)
{
    const struct weft_str word = {data, len};
    *ret = 0;
    if (one_of(word, "N/A", "SELF") && table != WEFT_AMD_TYPE) {
        return true;
    }
    switch (table) {
    case WEFT_AMD_WEIGHT:
    case WEFT_AMD_HOPS:
        return weft_parse_u64(word, 100000, ret) == 0;
    case WEFT_AMD_TYPE:
        return weft_str_eq(word, "N/A") || read_type(word, ret);
    case WEFT_AMD_BANDWIDTH:
        return read_bandwidth(word, ret);
    case WEFT_AMD_ACCESS:
        *ret = one_of(word, "ENABLED", "True") ? WEFT_AMD_ACCESS_YES : WEFT_AMD_ACCESS_NO;
        return *ret == WEFT_AMD_ACCESS_YES || one_of(word, "DISABLED", "False");
    case WEFT_AMD_OTHER:
    case WEFT_AMD_TABLE_COUNT:
        break;
    }
    return true;
}

/* ---- lines ---- */

static const char *const table_names[] = {
    [WEFT_AMD_WEIGHT] = "weights",  [WEFT_AMD_HOPS] = "hops",
    [WEFT_AMD_TYPE] = "link types", [WEFT_AMD_BANDWIDTH] = "bandwidths",
    [WEFT_AMD_ACCESS] = "access",   [WEFT_AMD_OTHER] = "something",
};

struct scan {
    struct weft_amd_topo *topo;
    enum weft_amd_table table; /* of the last title */
    bool titled;               /* a title came, its header line did not yet */
    bool in_table;             /* its header line came */
    unsigned line, table_line; /* now; of the table's header */
    bool last;                 /* nothing follows this line */
    bool ended;                /* the line has its newline */
};

static bool contains(struct weft_str text, const char *part)
{
    return memmem(text.data, text.len, part, strlen(part)) != NULL;
}

/* Is the line the title of a table? */
static bool read_title(struct scan *s, struct weft_str line)
{
    static const struct {
        const char *text;
        enum weft_amd_table table;
    } titles[] = {
        {"Weight between two GPUs", WEFT_AMD_WEIGHT},
        {"WEIGHT TABLE:", WEFT_AMD_WEIGHT},
        {"Hops between two GPUs", WEFT_AMD_HOPS},
        {"HOPS TABLE:", WEFT_AMD_HOPS},
        {"Link Type between two GPUs", WEFT_AMD_TYPE},
        {"LINK TYPE TABLE:", WEFT_AMD_TYPE},
        {"NUMA BW TABLE:", WEFT_AMD_BANDWIDTH},
        {"Link accessibility between two GPUs", WEFT_AMD_ACCESS},
        {"ACCESS TABLE:", WEFT_AMD_ACCESS},
        {"TABLE:", WEFT_AMD_OTHER},
        {"between two GPUs", WEFT_AMD_OTHER},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(titles); i++) {
        if (contains(line, titles[i].text)) {
            s->table = titles[i].table;
            s->titled = true;
            s->in_table = false;
            return true;
        }
    }
    return false;
}

/* "GPU3" or "0000:1b:00.0"; index is -1 for an address. */
static bool read_name(struct weft_str word, int *ret_index, struct weft_bdf *ret_bdf)
{
    uint64_t number = 0;
    *ret_index = -1;
    *ret_bdf = (struct weft_bdf){0};
    if (weft_str_starts(word, "GPU") &&
        weft_parse_u64((struct weft_str){word.data + 3, word.len - 3}, 65535, &number) == 0) {
        *ret_index = (int)number;
        return true;
    }
    return weft_host_parse_bdf(word.data, word.len, ret_bdf);
}

static size_t find_gpu(const struct weft_amd_topo *t, int index, const struct weft_bdf *bdf)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct weft_amd_gpu *g = &t->gpus[i];
        if (index >= 0 ? g->index == index : g->bdf.known && weft_bdf_cmp(&g->bdf, bdf) == 0) {
            return i;
        }
    }
    return SIZE_MAX;
}

static int refuse(const struct scan *s, struct weft_error *err, const char *what,
                  struct weft_str word)
{
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s:%u: '%.*s' %s", s->topo->file, s->line,
                        (int)(word.len < 40 ? word.len : 40), word.data, what);
}

static int add_named(struct scan *s, struct weft_str word, int index, const struct weft_bdf *bdf,
                     struct weft_error *err)
{
    struct weft_amd_topo *t = s->topo;
    if (find_gpu(t, index, bdf) != SIZE_MAX) {
        return refuse(s, err, "is named twice", word);
    }
    const int rc = weft_amd_add_gpu(t, index >= 0 ? index : (int)t->count, bdf);
    if (rc == -EFBIG) {
        return weft_err_set(err, rc, WEFT_ERR_CONFIG, "%s:%u: more than %d GPUs", t->file, s->line,
                            (int)WEFT_MACHINE_DEVICES_MAX);
    }
    return rc < 0 ? weft_err_nomem(err) : 0;
}

/* The line after a title: the names of the columns, alike in all tables. A cut one is dropped. */
static int read_header(struct scan *s, struct weft_str line, struct weft_error *err)
{
    struct weft_amd_topo *t = s->topo;
    struct weft_str word;
    const bool first = t->cells[0] == NULL;
    if (s->last && !s->ended) {
        t->cut = true;
        return 0;
    }
    size_t column = 0;
    for (; weft_str_word(&line, &word); column++) {
        int index = 0;
        struct weft_bdf bdf;
        if (!read_name(word, &index, &bdf)) {
            return refuse(s, err, "is no GPU in the line that names the columns", word);
        }
        if (first) {
            const int rc = add_named(s, word, index, &bdf, err);
            if (rc < 0) {
                return rc;
            }
        } else if (find_gpu(t, index, &bdf) != column) {
            return refuse(s, err, "is not at its place of the first table", word);
        }
    }
    if (column != t->count) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: the line names %zu GPUs, the first table %zu", t->file, s->line,
                            column, t->count);
    }
    if (weft_amd_make_cells(t) < 0) {
        return weft_err_nomem(err);
    }
    if (s->table != WEFT_AMD_OTHER && (t->tables & 1U << s->table) != 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: a second table of %s; one "
                            "machine a file",
                            t->file, s->line, table_names[s->table]);
    }
    t->tables |= 1U << s->table;
    s->titled = false;
    s->in_table = true;
    s->table_line = s->line;
    return 0;
}

/* A row; cut says that the text ends in it and it is not whole. */
static int read_cells(struct scan *s, size_t row, struct weft_str line, bool *ret_cut,
                      struct weft_error *err)
{
    struct weft_amd_topo *t = s->topo;
    struct weft_str word;
    size_t column = 0;
    /* a square table's last row ends in its diagonal, so its end may be missing */
    const bool unsure = s->last && !s->ended && row + 1 < t->count;
    *ret_cut = false;
    for (; weft_str_word(&line, &word); column++) {
        uint64_t value = 0;
        if (column == t->count) {
            return refuse(s, err, "has no column", word);
        }
        if (!weft_amd_read_cell(s->table, word.data, word.len, &value)) {
            if (s->last && !s->ended) {
                break;
            }
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "%s:%u: '%.*s' is nothing that a table of %s holds", t->file,
                                s->line, (int)(word.len < 40 ? word.len : 40), word.data,
                                table_names[s->table]);
        }
        t->cells[s->table][(row * t->count) + column] = value;
    }
    if (column < t->count && !s->last) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: the row has %zu cells, the table %zu columns", t->file, s->line,
                            column, t->count);
    }
    *ret_cut = column < t->count || unsure;
    return 0;
}

static int read_row(struct scan *s, struct weft_str name, struct weft_str rest,
                    struct weft_error *err)
{
    struct weft_amd_topo *t = s->topo;
    int index = 0;
    struct weft_bdf bdf;
    const bool named = read_name(name, &index, &bdf);
    const size_t row = named ? find_gpu(t, index, &bdf) : SIZE_MAX;
    if (row == SIZE_MAX) {
        if (s->last && !s->ended) {
            t->cut = true;
            return 0;
        }
        return named ? refuse(s, err, "has a row but no column", name) : 0;
    }
    if (t->gpus[row].table_line == s->table_line) {
        return refuse(s, err, "has a second row", name);
    }
    t->gpus[row].table_line = s->table_line;
    bool cut = false;
    const int rc = read_cells(s, row, rest, &cut, err);
    if (rc == 0 && !cut) {
        t->gpus[row].rows |= 1U << s->table;
    }
    t->cut = t->cut || cut;
    return rc;
}

/* "GPU[3]\t\t: (Topology) Numa Node: 1"; the tabs may be written out as backslash and t. */
static int read_numa(struct scan *s, struct weft_str line, struct weft_error *err)
{
    struct weft_amd_topo *t = s->topo;
    struct weft_str rest = {line.data + 4, line.len - 4};
    struct weft_str digits;
    uint64_t index = 0;
    int64_t node = 0;
    const bool is_node = contains(line, "(Topology) Numa Node:");
    const bool is_affinity = contains(line, "(Topology) Numa Affinity:");
    if (!s->ended) {
        t->cut = true; /* a number may go on */
        return 0;
    }
    if (!is_node && !is_affinity) {
        return 0;
    }
    if (!weft_str_split(&rest, ']', &digits) || weft_parse_u64(digits, 65535, &index) < 0) {
        return refuse(s, err, "is not GPU[number]", line);
    }
    const char *colon = memrchr(rest.data, ':', rest.len);
    const struct weft_str value =
        weft_str_trim((struct weft_str){colon + 1, (size_t)(rest.data + rest.len - (colon + 1))});
    if (weft_parse_i64(value, -1, INT32_MAX, &node) < 0) {
        return refuse(s, err, "is not a NUMA node's number", value);
    }
    const struct weft_bdf unknown = {0};
    size_t at = find_gpu(t, (int)index, &unknown);
    if (at == SIZE_MAX && t->cells[0] == NULL) {
        const int rc = add_named(s, digits, (int)index, &unknown, err);
        if (rc < 0) {
            return rc;
        }
        at = t->count - 1;
    }
    if (at == SIZE_MAX) {
        return refuse(s, err, "is a GPU that the tables do not have", digits);
    }
    *(is_node ? &t->gpus[at].numa_node : &t->gpus[at].numa_affinity) = (int)node;
    return 0;
}

static int read_line(struct scan *s, struct weft_str line, struct weft_error *err)
{
    struct weft_str rest = line;
    struct weft_str word;
    int index = 0;
    struct weft_bdf bdf;
    if (!weft_str_word(&rest, &word)) {
        return 0;
    }
    s->topo->last_line = s->line;
    if (weft_str_starts(word, "GPU[")) {
        return read_numa(s, weft_str_trim(line), err);
    }
    if (weft_str_starts(word, "ERROR") && s->topo->error_line == 0) {
        s->topo->error_line = s->line;
        const struct weft_str text = weft_str_trim(line);
        const size_t n =
            text.len < sizeof(s->topo->error_text) - 1 ? text.len : sizeof(s->topo->error_text) - 1;
        memcpy(s->topo->error_text, text.data, n);
        return 0;
    }
    if (read_title(s, line)) {
        return 0;
    }
    if (weft_str_starts(word, "===")) {
        s->titled = s->in_table = false;
        return 0;
    }
    if (s->titled && read_name(word, &index, &bdf)) {
        return read_header(s, line, err);
    }
    return s->in_table ? read_row(s, word, rest, err) : 0;
}

/* A table that ends with its header was cut there, and says nothing. Coherency and the like say
 * nothing of wiring, so that their rows do not matter. */
static void drop_empty_table(const struct scan *s)
{
    struct weft_amd_topo *t = s->topo;
    bool empty = s->in_table;
    for (size_t i = 0; i < t->count; i++) {
        empty = empty && t->gpus[i].table_line != s->table_line;
        t->gpus[i].rows &= ~(1U << WEFT_AMD_OTHER);
    }
    if (empty) {
        t->tables &= ~(1U << s->table);
        t->cut = true;
    }
    t->tables &= ~(1U << WEFT_AMD_OTHER);
}

int weft_amd_parse_text(const char *text, size_t len, const char *file,
                        struct weft_amd_topo *ret_topo, struct weft_error *err)
{
    weft_auto(weft_amd_topo_done) struct weft_amd_topo t = {.file = file};
    struct scan s = {.topo = &t, .table = WEFT_AMD_OTHER};
    struct weft_str rest = {text, len};
    struct weft_str line;
    while (weft_str_line(&rest, &line)) {
        s.line++;
        s.last = weft_str_trim(rest).len == 0;
        s.ended = line.data + line.len < text + len;
        const int rc = read_line(&s, line, err);
        if (rc < 0) {
            return rc;
        }
    }
    drop_empty_table(&s);
    if (t.count == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s:%u: none of the tables names a GPU",
                            file, t.last_line);
    }
    *ret_topo = t;
    t = (struct weft_amd_topo){0};
    return 0;
}
