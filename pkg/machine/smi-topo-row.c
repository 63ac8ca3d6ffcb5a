/* SPDX-License-Identifier: Apache-2.0 */
/* One row of the matrix: which word or tab field belongs to which column. Real dumps leave affinity
 * cells empty, double their tabs, or lose them to spaces; a row is read by words where their number
 * or their kind leaves no doubt, by tab fields where it does, and refused where neither fits. */
#include <errno.h>
#include <string.h>

#include "pkg/machine/smi-topo-internal.h"

/* A row under work. */
struct scan {
    struct weft_topo *topo;
    struct weft_topo_row *row;
    size_t column; /* the row's own, where X belongs */
    const char *line_start;
    struct weft_str rest; /* after the row's name */
    size_t words;
};

static size_t count_words(struct weft_str text)
{
    struct weft_str word;
    size_t count = 0;
    while (weft_str_word(&text, &word)) {
        count++;
    }
    return count;
}

static bool is_x(const struct scan *s)
{
    return weft_str_eq(s->row->cells[s->column], "X");
}

static void set_tail(struct scan *s, size_t at, struct weft_str word)
{
    if ((int)at == s->topo->cpu_at) {
        s->row->cpu = word;
    } else if ((int)at == s->topo->numa_at) {
        s->row->numa = word;
    }
}

/* The first cells by words; *ret_tail is what follows. Returns whether all are cells that topo -m
 * writes and X is where it belongs. */
static bool cells_by_words(struct scan *s, struct weft_str *ret_tail)
{
    bool readable = true;
    *ret_tail = s->rest;
    for (size_t i = 0; i < s->topo->column_count; i++) {
        if (!weft_str_word(ret_tail, &s->row->cells[i])) {
            return false;
        }
        readable = readable && weft_topo_is_cell(s->row->cells[i]);
    }
    return readable && is_x(s);
}

/* The tab fields after the row's name; false where the name is not followed by a tab. */
static bool begin_fields(const struct scan *s, struct weft_str *ret_fields)
{
    struct weft_str name_rest;
    *ret_fields = s->rest;
    return weft_str_split(ret_fields, '\t', &name_rest) && ret_fields->data != NULL &&
           weft_str_trim(name_rest).len == 0;
}

/* What a tab field of the matrix may hold. */
enum field_rule {
    FIELD_WORD, /* one word */
    FIELD_TEXT, /* or some other text ("Unknown Error"), but not several cells */
    FIELD_ANY   /* or nothing */
};

static bool field_allowed(struct weft_str field, enum field_rule rule)
{
    const size_t words = count_words(field);
    if (words == 0) {
        return rule == FIELD_ANY;
    }
    return words == 1 || (rule != FIELD_WORD && !weft_topo_has_cell(field));
}

/* The first cells by tab fields. */
static bool cells_by_fields(struct scan *s, enum field_rule rule, struct weft_str *ret_tail)
{
    struct weft_str field;
    if (!begin_fields(s, ret_tail)) {
        return false;
    }
    for (size_t i = 0; i < s->topo->column_count; i++) {
        if (!weft_str_split(ret_tail, '\t', &field)) {
            return false;
        }
        s->row->cells[i] = weft_str_trim(field);
        if (!field_allowed(field, rule)) {
            return false;
        }
    }
    return is_x(s);
}

static void tail_by_words(struct scan *s, struct weft_str tail)
{
    struct weft_str word;
    for (size_t i = 0; weft_str_word(&tail, &word); i++) {
        set_tail(s, i, word);
    }
}

static void tail_by_fields(struct scan *s, struct weft_str tail)
{
    struct weft_str field;
    for (size_t i = 0; weft_str_split(&tail, '\t', &field); i++) {
        set_tail(s, i, weft_str_trim(field));
    }
}

/* For rows without tabs and with empty cells: a word belongs to the title that it stands under, to
 * the byte; a word under none leaves all of them unknown. */
static void tail_by_position(struct scan *s, struct weft_str tail)
{
    const struct weft_topo *t = s->topo;
    struct weft_str word;
    if (memchr(tail.data, '\t', tail.len) != NULL) {
        return;
    }
    while (weft_str_word(&tail, &word)) {
        size_t at = 0;
        while (at < t->tail_count && t->tail_offset[at] != (size_t)(word.data - s->line_start)) {
            at++;
        }
        if (at == t->tail_count) {
            s->row->cpu = s->row->numa = (struct weft_str){0};
            return;
        }
        set_tail(s, at, word);
    }
}

/* Is this the last line of the text, and its last cell the only one that does not read? Then the
 * file was cut inside that cell. */
static bool is_cut_in_last_cell(const struct scan *s)
{
    const struct weft_topo *t = s->topo;
    const char *end = s->rest.data + s->rest.len;
    const struct weft_str after = {end, (size_t)(t->text + t->text_len - end)};
    if (s->words != t->column_count || weft_str_trim(after).len > 0) {
        return false;
    }
    if (t->tail_count == 0 && after.len > 0) {
        return false; /* the row should end here, and its line does */
    }
    for (size_t i = 0; i + 1 < t->column_count; i++) {
        if (!weft_topo_is_cell(s->row->cells[i])) {
            return false;
        }
    }
    return true;
}

static int refuse(const struct scan *s, struct weft_error *err)
{
    const struct weft_topo *t = s->topo;
    const struct weft_str name = t->columns[s->column].name;
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                        "%s:%u: row %.*s cannot be laid under its %zu columns: it has %zu cells, "
                        "or X is not under %.*s",
                        t->name, s->row->line, WEFT_STR_ARG(name), t->column_count + t->tail_count,
                        s->words, WEFT_STR_ARG(name));
}

int weft_topo_parse_row(struct weft_topo *t, size_t column, unsigned line, const char *line_start,
                        struct weft_str rest, struct weft_error *err)
{
    struct scan s = {.topo = t,
                     .row = &t->rows[column],
                     .column = column,
                     .line_start = line_start,
                     .rest = rest,
                     .words = count_words(rest)};
    struct weft_str tail = {0};
    s.row->line = line;
    s.row->whole = true;
    const bool readable = cells_by_words(&s, &tail);
    const bool complete = s.words == t->column_count + t->tail_count;
    struct weft_str fields;
    /* the tries from sure to lenient: their order is what matters, branches may repeat
     * NOLINTBEGIN(bugprone-branch-clone) */
    if (readable && complete) {
        tail_by_words(&s, tail);
    } else if (!readable && is_cut_in_last_cell(&s)) {
        s.row->whole = false;
    } else if (cells_by_fields(&s, readable ? FIELD_WORD : FIELD_TEXT, &fields)) {
        tail_by_fields(&s, fields);
    } else if (cells_by_words(&s, &tail) || (complete && is_x(&s))) {
        if (complete) {
            tail_by_words(&s, tail);
        } else {
            tail_by_position(&s, tail);
        }
    } else if (cells_by_fields(&s, FIELD_ANY, &fields)) {
        tail_by_fields(&s, fields);
    } else if (s.words < t->column_count) {
        s.row->whole = false;
    } else {
        return refuse(&s, err);
    }
    /* NOLINTEND(bugprone-branch-clone) */
    return 0;
}
