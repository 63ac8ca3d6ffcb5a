/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the part of Graphviz' language (graphviz.org, "DOT language") in which cabling is written
 * for the Prescriptive Topology Manager: undirected edges between ports, attributes of nodes.
 * Subgraphs only draw boxes. */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "pkg/base/buf.h"
#include "pkg/fabric/cabling-internal.h"

enum { NESTED_MAX = 16, TEXT_MAX = 4096 };

enum token { TOKEN_END, TOKEN_TEXT, TOKEN_EDGE, TOKEN_ARROW, TOKEN_SIGN, TOKEN_BAD };

struct reader {
    struct weft_cabling_builder builder;
    const char *at;
    const char *end;
    unsigned line;
    /* the token that is looked at */
    enum token token;
    char sign;
    unsigned token_line;
    struct weft_buf text;
    /* devices of the out-of-band network, by index */
    bool *apart;
    size_t apart_cap;
};

/* ---- tokens ---- */

static int refuse(const struct reader *r, const char *what, struct weft_error *err)
{
    if (r->text.status == -ENOMEM) {
        return weft_err_nomem(err);
    }
    const bool text = r->token == TOKEN_TEXT;
    const char sign[2] = {r->token == TOKEN_SIGN ? r->sign : '\0', '\0'};
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s:%u: %s, found %s%.60s%s",
                        r->builder.source, r->token_line, what, text ? "\"" : "",
                        r->token == TOKEN_END     ? "the end of the file"
                        : r->token == TOKEN_EDGE  ? "--"
                        : r->token == TOKEN_ARROW ? "->"
                        : r->token == TOKEN_BAD   ? "what is no DOT"
                        : text                    ? weft_buf_text(&r->text)
                                                  : sign,
                        text ? "\"" : "");
}

static bool starts(const struct reader *r, const char *text)
{
    const size_t len = strlen(text);
    return (size_t)(r->end - r->at) >= len && memcmp(r->at, text, len) == 0;
}

static void skip_to(struct reader *r, const char *mark)
{
    while (r->at < r->end && !starts(r, mark)) {
        r->line += *r->at++ == '\n';
    }
}

/* Blanks, comments in C's forms, and lines that begin with "#". */
static void skip_blanks(struct reader *r)
{
    for (;;) {
        if (r->at < r->end && isspace((unsigned char)*r->at)) {
            r->line += *r->at++ == '\n';
        } else if (starts(r, "//") || starts(r, "#")) {
            skip_to(r, "\n");
        } else if (starts(r, "/*")) {
            r->at += 2;
            skip_to(r, "*/");
            r->at += starts(r, "*/") ? 2 : 0;
        } else {
            return;
        }
    }
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || (c & 0x80) != 0;
}

/* "text": \" stands for a quote; a line that ends with "\" goes on. */
static enum token read_quoted(struct reader *r)
{
    for (r->at++; r->at < r->end && *r->at != '"'; r->at++) {
        const bool escape = *r->at == '\\' && r->at + 1 < r->end;
        if (escape && r->at[1] == '"') {
            r->at++;
        } else if (escape && r->at[1] == '\n') {
            r->at++;
            r->line++;
            continue;
        }
        r->line += *r->at == '\n';
        (void)weft_buf_putc(&r->text, *r->at);
    }
    const bool nul = strlen(weft_buf_text(&r->text)) != r->text.len;
    if (r->at == r->end || r->text.status != 0 || nul) {
        return TOKEN_BAD;
    }
    r->at++;
    return TOKEN_TEXT;
}

static enum token read_token(struct reader *r)
{
    skip_blanks(r);
    weft_buf_reset(&r->text);
    r->token_line = r->line;
    if (r->at == r->end) {
        return TOKEN_END;
    }
    if (starts(r, "--") || starts(r, "->")) {
        r->at += 2;
        return r->at[-1] == '-' ? TOKEN_EDGE : TOKEN_ARROW;
    }
    if (*r->at == '"') {
        return read_quoted(r);
    }
    if (is_word(*r->at) || *r->at == '-') {
        do {
            (void)weft_buf_putc(&r->text, *r->at++);
        } while (r->at < r->end && is_word(*r->at));
        return r->text.status == 0 ? TOKEN_TEXT : TOKEN_BAD;
    }
    r->sign = *r->at++;
    return strchr("{}[]=;,:", r->sign) != NULL && r->sign != '\0' ? TOKEN_SIGN : TOKEN_BAD;
}

static void next(struct reader *r)
{
    r->token = read_token(r);
}

static bool is_sign(const struct reader *r, char sign)
{
    return r->token == TOKEN_SIGN && r->sign == sign;
}

static bool is_word_of(const struct reader *r, const char *word)
{
    return r->token == TOKEN_TEXT && strcasecmp(weft_buf_text(&r->text), word) == 0;
}

static bool take_sign(struct reader *r, char sign)
{
    if (!is_sign(r, sign)) {
        return false;
    }
    next(r);
    return true;
}

/* ---- what nodes are ---- */

/* NVIDIA Air's and PTM's words for "function". */
static bool role_of(const char *function, enum weft_cabling_role *ret_role)
{
    static const struct {
        const char *word;
        enum weft_cabling_role role;
    } words[] = {{"host", WEFT_CABLING_HOST},          {"server", WEFT_CABLING_HOST},
                 {"compute", WEFT_CABLING_HOST},       {"gpu", WEFT_CABLING_HOST},
                 {"oob-server", WEFT_CABLING_HOST},    {"leaf", WEFT_CABLING_SWITCH},
                 {"spine", WEFT_CABLING_SWITCH},       {"superspine", WEFT_CABLING_SWITCH},
                 {"super-spine", WEFT_CABLING_SWITCH}, {"core", WEFT_CABLING_SWITCH},
                 {"exit", WEFT_CABLING_SWITCH},        {"border", WEFT_CABLING_SWITCH},
                 {"tor", WEFT_CABLING_SWITCH},         {"switch", WEFT_CABLING_SWITCH},
                 {"oob-switch", WEFT_CABLING_SWITCH}};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(words); i++) {
        if (strcasecmp(function, words[i].word) == 0) {
            *ret_role = words[i].role;
            return true;
        }
    }
    return false;
}

static int set_function(struct reader *r, size_t device, const char *function,
                        struct weft_error *err)
{
    struct weft_cabling_device *d = &r->builder.devices[device];
    d->role_given = role_of(function, &d->role);
    if (strncasecmp(function, "oob", 3) != 0) {
        return 0;
    }
    void *apart = r->apart;
    const size_t old = r->apart_cap;
    if (weft_array_reserve(&apart, &r->apart_cap, device + 1, sizeof(bool),
                           WEFT_CABLING_DEVICES_MAX) < 0) {
        return weft_err_nomem(err);
    }
    r->apart = apart;
    memset(&r->apart[old], 0, (r->apart_cap - old) * sizeof(bool));
    r->apart[device] = true;
    return 0;
}

/* key, or key = value, and what may stand behind it. */
static int read_attribute(struct reader *r, size_t device, struct weft_error *err)
{
    if (r->token != TOKEN_TEXT) {
        return refuse(r, "expected an attribute or \"]\"", err);
    }
    const bool function = is_word_of(r, "function") && device != SIZE_MAX;
    next(r);
    if (take_sign(r, '=')) {
        if (r->token != TOKEN_TEXT) {
            return refuse(r, "expected an attribute's value", err);
        }
        const int rc = function ? set_function(r, device, weft_buf_text(&r->text), err) : 0;
        if (rc < 0) {
            return rc;
        }
        next(r);
    }
    while (is_sign(r, ',') || is_sign(r, ';')) {
        next(r);
    }
    return 0;
}

/* "[" … "]", any number of them. device SIZE_MAX: of no node. */
static int read_attributes(struct reader *r, size_t device, struct weft_error *err)
{
    while (take_sign(r, '[')) {
        while (!is_sign(r, ']')) {
            const int rc = read_attribute(r, device, err);
            if (rc < 0) {
                return rc;
            }
        }
        next(r);
    }
    return 0;
}

/* ---- statements ---- */

/* One end: node, or node:port, or node:port:compass. port is "" if there is none. */
static int read_end(struct reader *r, size_t *ret_device, struct weft_buf *port,
                    struct weft_error *err)
{
    const struct weft_str name = weft_str(weft_buf_text(&r->text));
    int rc = weft_cabling_device(&r->builder, name, r->token_line, ret_device, err);
    weft_buf_reset(port);
    next(r);
    for (unsigned part = 0; rc == 0 && part < 2 && take_sign(r, ':'); part++) {
        if (r->token != TOKEN_TEXT) {
            return refuse(r, "expected a port", err);
        }
        (void)weft_buf_puts(port, part == 0 ? weft_buf_text(&r->text) : "");
        next(r);
    }
    return rc == 0 && port->status != 0 ? weft_err_nomem(err) : rc;
}

/* a -- b -- c: each step is a cable. */
static int read_edges(struct reader *r, struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf from;
    weft_auto(weft_buf_done) struct weft_buf to;
    weft_buf_init(&from, TEXT_MAX);
    weft_buf_init(&to, TEXT_MAX);
    size_t a = 0;
    int rc = read_end(r, &a, &from, err);
    if (rc < 0 || r->token != TOKEN_EDGE) {
        return rc < 0 ? rc : read_attributes(r, a, err);
    }
    while (r->token == TOKEN_EDGE) {
        const unsigned line = r->token_line;
        size_t b = 0;
        next(r);
        if (r->token != TOKEN_TEXT || is_word_of(r, "subgraph")) {
            return refuse(r, "expected the cable's other end", err);
        }
        rc = read_end(r, &b, &to, err);
        const struct weft_cable_end ends[2] = {{a, weft_str(weft_buf_text(&from))},
                                               {b, weft_str(weft_buf_text(&to))}};
        rc = rc == 0 ? weft_cabling_cable(&r->builder, ends, line, err) : rc;
        if (rc < 0) {
            return rc;
        }
        a = b;
        weft_buf_reset(&from);
        if (weft_buf_puts(&from, weft_buf_text(&to)) < 0) {
            return weft_err_nomem(err);
        }
    }
    return read_attributes(r, SIZE_MAX, err);
}

/* graph, node or edge with attributes, or key = value: of the drawing. */
static bool is_default(const struct reader *r)
{
    return is_word_of(r, "graph") || is_word_of(r, "node") || is_word_of(r, "edge");
}

/* Is the text followed by "="? Then it is an attribute of the graph. */
static bool is_assignment(const struct reader *r)
{
    struct reader ahead = *r;
    skip_blanks(&ahead);
    return ahead.at < ahead.end && *ahead.at == '=';
}

static int read_statement(struct reader *r, struct weft_error *err)
{
    if (r->token != TOKEN_TEXT) {
        return refuse(r, "expected a statement or \"}\"", err);
    }
    if (is_assignment(r)) {
        next(r);
        next(r);
        if (r->token != TOKEN_TEXT) {
            return refuse(r, "expected a value", err);
        }
        next(r);
        return 0;
    }
    if (is_default(r)) {
        next(r);
        return read_attributes(r, SIZE_MAX, err);
    }
    return read_edges(r, err);
}

/* Opens at "{" or at "subgraph name {"; true if it did. */
static bool open_subgraph(struct reader *r)
{
    if (is_word_of(r, "subgraph")) {
        next(r);
        if (r->token == TOKEN_TEXT) {
            next(r);
        }
    }
    return take_sign(r, '{');
}

static int read_statements(struct reader *r, struct weft_error *err)
{
    unsigned depth = 1;
    while (depth > 0) {
        int rc = 0;
        if (take_sign(r, '}')) {
            depth--;
        } else if (is_sign(r, '{') || is_word_of(r, "subgraph")) {
            depth++;
            rc = !open_subgraph(r)    ? refuse(r, "expected \"{\"", err)
                 : depth > NESTED_MAX ? refuse(r, "at most 16 nested subgraphs", err)
                                      : 0;
        } else if (!take_sign(r, ';') && !take_sign(r, ',')) {
            rc = read_statement(r, err);
        }
        if (rc == 0 && r->token == TOKEN_ARROW) {
            rc = refuse(r, "cables have no direction: expected --", err);
        }
        if (rc < 0) {
            return rc;
        }
    }
    return r->token == TOKEN_END ? 0 : refuse(r, "expected the end of the file", err);
}

static int read_graph(struct reader *r, struct weft_error *err)
{
    next(r);
    if (is_word_of(r, "strict")) {
        next(r);
    }
    if (!is_word_of(r, "graph")) {
        return refuse(r, "expected \"graph\" (undirected)", err);
    }
    next(r);
    if (r->token == TOKEN_TEXT) {
        next(r);
    }
    if (!take_sign(r, '{')) {
        return refuse(r, "expected \"{\"", err);
    }
    return read_statements(r, err);
}

/* ---- the out-of-band network ---- */

static bool is_apart(const struct reader *r, size_t device)
{
    return device < r->apart_cap && r->apart[device];
}

/* Its cables join all switches and would make them one group. */
static void drop_apart(struct reader *r)
{
    struct weft_cabling_builder *b = &r->builder;
    size_t kept = 0;
    for (size_t i = 0; i < b->cable_count; i++) {
        struct weft_cable *cable = &b->cables[i];
        if (is_apart(r, cable->a) || is_apart(r, cable->b)) {
            weft_free(cable->a_port);
            weft_free(cable->b_port);
        } else {
            b->cables[kept++] = *cable;
        }
    }
    if (kept < b->cable_count) {
        weft_warn(&b->warnings, b->source, 0,
                  "%zu cables of the out-of-band network are passed over", b->cable_count - kept);
    }
    b->cable_count = kept;
}

int weft_parse_ptm(const char *text, size_t len, const char *source,
                   struct weft_cabling **ret_cabling, struct weft_error *err)
{
    struct reader r = {.builder = {.source = source}, .at = text, .end = text + len, .line = 1};
    if (len > WEFT_CABLING_TEXT_MAX) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "%s: larger than %d MiB", source,
                            (int)(WEFT_CABLING_TEXT_MAX >> 20));
    }
    weft_buf_init(&r.text, TEXT_MAX);
    int rc = read_graph(&r, err);
    if (rc == 0) {
        drop_apart(&r);
        rc = weft_cabling_finish(&r.builder, ret_cabling, err);
    }
    weft_buf_done(&r.text);
    weft_free(r.apart);
    weft_cabling_builder_done(&r.builder);
    return rc;
}
