/* SPDX-License-Identifier: Apache-2.0 */
/* Reads topology.conf as Slurm's own parser does (src/common/parse_config.c): a record a line,
 * Key=Value with blanks between, quotes, "#" comments, "\" at the end of a line that goes on. */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "pkg/base/buf.h"
#include "pkg/fabric/document-internal.h"
#include "pkg/fabric/slurm-internal.h"

enum { RECORD_MAX = 16 << 20 /* bytes of one record with its continuations */ };

enum key { KEY_SWITCH, KEY_BLOCK, KEY_SIZES, KEY_SWITCHES, KEY_NODES, KEY_SPEED, KEY_COUNT };

static const char *const key_names[KEY_COUNT] = {"SwitchName", "BlockName", "BlockSizes",
                                                 "Switches",   "Nodes",     "LinkSpeed"};

struct reader {
    struct weft_slurm_topo *topo;
    unsigned line; /* where the record began */
    bool kind_known;
    struct weft_str values[KEY_COUNT];
    bool seen[KEY_COUNT];
};

static int refuse(const struct reader *r, const char *what, struct weft_str word,
                  struct weft_error *err)
{
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s:%u: %s: %.*s", r->topo->source, r->line,
                        what, word.len > 60 ? 60 : (int)word.len, word.data);
}

static bool same_word(struct weft_str word, const char *text)
{
    return word.len == strlen(text) && strncasecmp(word.data, text, word.len) == 0;
}

static void skip(struct weft_str *s, size_t count)
{
    s->data += count;
    s->len -= count;
}

static void skip_blanks(struct weft_str *s)
{
    while (s->len > 0 && isspace((unsigned char)*s->data)) {
        skip(s, 1);
    }
}

static struct weft_str take_while_key(struct weft_str *s)
{
    size_t n = 0;
    while (n < s->len && (isalnum((unsigned char)s->data[n]) || s->data[n] == '_')) {
        n++;
    }
    const struct weft_str key = {s->data, n};
    skip(s, n);
    return key;
}

/* "value" or value, up to a blank; false for a quote that does not end. */
static bool take_value(struct weft_str *s, struct weft_str *ret_value)
{
    if (s->len > 0 && s->data[0] == '"') {
        const char *end = memchr(s->data + 1, '"', s->len - 1);
        if (end == NULL) {
            return false;
        }
        *ret_value = (struct weft_str){s->data + 1, (size_t)(end - s->data) - 1};
        skip(s, ret_value->len + 2);
        return true;
    }
    size_t n = 0;
    while (n < s->len && !isspace((unsigned char)s->data[n])) {
        n++;
    }
    *ret_value = (struct weft_str){s->data, n};
    skip(s, n);
    return n > 0;
}

static int find_key(const struct reader *r, struct weft_str word, enum key *ret_key,
                    struct weft_error *err)
{
    for (size_t k = 0; k < KEY_COUNT; k++) {
        if (same_word(word, key_names[k])) {
            *ret_key = (enum key)k;
            return 0;
        }
    }
    if (same_word(word, "RingName") || same_word(word, "TorusName")) {
        return refuse(r, "a ring or torus has no groups; weft reads switches and blocks", word,
                      err);
    }
    return refuse(r,
                  "unknown key, allowed are SwitchName, Switches, Nodes, LinkSpeed, BlockName, "
                  "BlockSizes",
                  word, err);
}

/* Key=Value pairs to r->values. */
static int read_pairs(struct reader *r, struct weft_str rest, struct weft_error *err)
{
    memset(r->seen, 0, sizeof(r->seen));
    memset(r->values, 0, sizeof(r->values));
    for (skip_blanks(&rest); rest.len > 0; skip_blanks(&rest)) {
        const struct weft_str from = rest;
        const struct weft_str word = take_while_key(&rest);
        struct weft_str value = {0};
        enum key key = KEY_COUNT;
        if (same_word(word, "include")) {
            return refuse(r, "include is not followed: give weft one file with all of it", from,
                          err);
        }
        skip_blanks(&rest);
        if (word.len == 0 || rest.len == 0 || rest.data[0] != '=') {
            return refuse(r, "expected Key=Value", from, err);
        }
        skip(&rest, 1);
        skip_blanks(&rest);
        const int rc = find_key(r, word, &key, err);
        if (rc < 0) {
            return rc;
        }
        if (!take_value(&rest, &value)) {
            return refuse(r, "expected a value", from, err);
        }
        if (r->seen[key]) {
            return refuse(r, "the key is there twice in one record", word, err);
        }
        r->seen[key] = true;
        r->values[key] = value;
    }
    return 0;
}

static int read_sizes(struct reader *r, struct weft_error *err)
{
    struct weft_str rest = r->values[KEY_SIZES];
    struct weft_str piece = {0};
    while (weft_str_split(&rest, ',', &piece)) {
        uint64_t size = 0;
        if (weft_parse_u64(piece, UINT32_MAX, &size) < 0) {
            return refuse(r, "BlockSizes are numbers with commas between", piece, err);
        }
        const int rc = weft_slurm_topo_size(r->topo, size, r->line, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* A file is of switches or of blocks: Slurm loads one plugin, which knows its own keys only. */
static int set_kind(struct reader *r, bool blocks, struct weft_error *err)
{
    if (r->kind_known && r->topo->blocks != blocks) {
        return refuse(r, "switches and blocks in one file",
                      weft_str(r->seen[KEY_SWITCH] ? "SwitchName" : "BlockName"), err);
    }
    r->kind_known = true;
    r->topo->blocks = blocks;
    return 0;
}

/* Which keys may stand together. */
static int check_record(const struct reader *r, struct weft_str text, struct weft_error *err)
{
    const bool is_switch = r->seen[KEY_SWITCH];
    const bool is_block = r->seen[KEY_BLOCK];
    if (!is_switch && !is_block && !r->seen[KEY_SIZES]) {
        return refuse(r, "a record begins with SwitchName, BlockName or BlockSizes", text, err);
    }
    if (is_switch && (is_block || r->seen[KEY_SIZES])) {
        return refuse(r, "a switch and a block in one record", text, err);
    }
    if (!is_switch && (r->seen[KEY_SWITCHES] || r->seen[KEY_SPEED])) {
        return refuse(r, "a block has nodes only", text, err);
    }
    return 0;
}

static int read_record(struct reader *r, struct weft_str text, struct weft_error *err)
{
    if (memchr(text.data, '\0', text.len) != NULL) {
        return refuse(r, "a NUL character", text, err);
    }
    int rc = read_pairs(r, text, err);
    rc = rc == 0 ? check_record(r, text, err) : rc;
    rc = rc == 0 ? set_kind(r, !r->seen[KEY_SWITCH], err) : rc;
    if (rc == 0 && r->seen[KEY_SIZES]) {
        rc = read_sizes(r, err);
    }
    if (rc < 0 || (!r->seen[KEY_SWITCH] && !r->seen[KEY_BLOCK])) {
        return rc;
    }
    return weft_slurm_topo_add(r->topo, r->values[r->seen[KEY_SWITCH] ? KEY_SWITCH : KEY_BLOCK],
                               r->values[KEY_NODES], r->values[KEY_SWITCHES], r->line, err);
}

/* Without its comment: from a "#" that no "\" stands before. */
static struct weft_str without_comment(struct weft_str line)
{
    for (size_t i = 0; i < line.len; i++) {
        if (line.data[i] == '#' && (i == 0 || line.data[i - 1] != '\\')) {
            return (struct weft_str){line.data, i};
        }
    }
    return line;
}

static int read_lines(struct reader *r, struct weft_str rest, struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf record;
    weft_buf_init(&record, RECORD_MAX);
    struct weft_str line = {0};
    unsigned number = 0;
    bool open = false; /* the line before ended with "\" */
    while (weft_str_line(&rest, &line)) {
        number++;
        if (!open) {
            r->line = number;
            weft_buf_reset(&record);
        }
        struct weft_str part = weft_str_trim(without_comment(line));
        open = weft_str_ends(part, "\\");
        part.len -= open ? 1 : 0;
        (void)weft_buf_append(&record, part.data, part.len);
        if (record.status != 0) {
            return record.status == -ENOMEM ? weft_err_nomem(err)
                                            : weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG,
                                                           "%s:%u: a record of more than 16 MiB",
                                                           r->topo->source, r->line);
        }
        const struct weft_str text = {record.data, record.len};
        const int rc = open || record.len == 0 ? 0 : read_record(r, text, err);
        if (rc < 0) {
            return rc;
        }
    }
    return open ? refuse(r, "the file ends in the middle of this record",
                         weft_str(weft_buf_text(&record)), err)
                : 0;
}

int weft_parse_slurm_conf(const char *text, size_t len, const char *source,
                          const struct weft_slurm_options *options,
                          struct weft_declared **ret_declared, struct weft_error *err)
{
    weft_auto(weft_slurm_topo_done) struct weft_slurm_topo topo = {.source = source,
                                                                   .options = options};
    struct reader r = {.topo = &topo};
    if (len > WEFT_SLURM_TEXT_MAX) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "%s: larger than %d MiB", source,
                            (int)(WEFT_SLURM_TEXT_MAX >> 20));
    }
    const struct weft_str whole = {text, len};
    int rc = read_lines(&r, whole, err);
    rc = rc < 0 ? rc : weft_doc_check_end(whole, source, err);
    return rc < 0 ? rc : weft_slurm_topo_finish(&topo, ret_declared, err);
}

enum form { FORM_CONF, FORM_YAML, FORM_MODEL };

/* The first line with content tells: a key and "=", a list of topologies, or topograph's maps. */
static enum form form_of(struct weft_str rest)
{
    struct weft_str line = {0};
    while (weft_str_line(&rest, &line)) {
        line = weft_str_trim(without_comment(line));
        if (line.len == 0 || weft_str_eq(line, "---")) {
            continue;
        }
        const struct weft_str key = take_while_key(&line);
        skip_blanks(&line);
        if ((line.len > 0 && line.data[0] == '=') || same_word(key, "include")) {
            return FORM_CONF;
        }
        return weft_str_eq(key, "switches") || weft_str_eq(key, "blocks") ? FORM_MODEL : FORM_YAML;
    }
    return FORM_CONF; /* nothing but comments: said to be empty by any */
}

int weft_parse_slurm(const char *text, size_t len, const char *source,
                     const struct weft_slurm_options *options, struct weft_declared **ret_declared,
                     struct weft_error *err)
{
    switch (form_of((struct weft_str){text, len})) {
    case FORM_CONF:
        return weft_parse_slurm_conf(text, len, source, options, ret_declared, err);
    case FORM_YAML:
        return weft_parse_slurm_yaml(text, len, source, options, ret_declared, err);
    case FORM_MODEL:
        break;
    }
    return weft_parse_topograph_model(text, len, source, options, ret_declared, err);
}
