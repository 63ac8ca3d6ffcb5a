/* SPDX-License-Identifier: Apache-2.0 */
/* A recursive-descent-free reader of Kubernetes label selectors: terms between commas, each of a
 * key, an operator and values. */
#include "pkg/fabric/selector.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/fabric/node.h"

enum term_op { OP_EXISTS, OP_MISSING, OP_IN, OP_NOT_IN };

struct term {
    char *key;
    enum term_op op;
    char **values;
    size_t value_count;
};

struct weft_node_selector {
    struct term *terms;
    size_t count;
};

void weft_node_selector_free(struct weft_node_selector *selector)
{
    if (selector == NULL) {
        return;
    }
    for (size_t i = 0; i < selector->count; i++) {
        struct term *term = &selector->terms[i];
        for (size_t v = 0; v < term->value_count; v++) {
            weft_free(term->values[v]);
        }
        weft_free(term->values);
        weft_free(term->key);
    }
    weft_free(selector->terms);
    weft_free(selector);
}

struct cursor {
    const char *text;
    const char *p;
};

static int bad(const struct cursor *c, const char *what, struct weft_error *err)
{
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "selector \"%.120s\": %s at character %zu",
                        c->text, what, (size_t)(c->p - c->text) + 1);
}

static void skip_blanks(struct cursor *c)
{
    while (isspace((unsigned char)*c->p)) {
        c->p++;
    }
}

static bool word_char(char ch)
{
    return isalnum((unsigned char)ch) || ch == '-' || ch == '_' || ch == '.' || ch == '/';
}

static struct weft_str word(struct cursor *c)
{
    skip_blanks(c);
    const char *start = c->p;
    while (word_char(*c->p)) {
        c->p++;
    }
    return (struct weft_str){start, (size_t)(c->p - start)};
}

static int add_value(struct term *term, struct weft_str value, struct weft_error *err)
{
    void *list = weft_reallocarray(term->values, term->value_count + 1, sizeof(char *));
    if (list == NULL) {
        return weft_err_nomem(err);
    }
    term->values = list;
    term->values[term->value_count] = weft_strndup(value.len > 0 ? value.data : "", value.len);
    return term->values[term->value_count++] != NULL ? 0 : weft_err_nomem(err);
}

/* "(a, b)"; "()" and empty places are the empty value. */
static int read_set(struct cursor *c, struct term *term, struct weft_error *err)
{
    skip_blanks(c);
    if (*c->p != '(') {
        return bad(c, "expected \"(\"", err);
    }
    do {
        c->p++;
        if (term->value_count >= WEFT_NODE_SELECTOR_VALUES_MAX) {
            return bad(c, "too many values", err);
        }
        const int rc = add_value(term, word(c), err);
        if (rc < 0) {
            return rc;
        }
        skip_blanks(c);
    } while (*c->p == ',');
    if (*c->p != ')') {
        return bad(c, "expected \",\" or \")\"", err);
    }
    c->p++;
    return 0;
}

/* What follows the key. */
static int read_operator(struct cursor *c, struct term *term, struct weft_error *err)
{
    skip_blanks(c);
    if (*c->p == '\0' || *c->p == ',') {
        return 0; /* exists or, after "!", missing */
    }
    if (term->op == OP_MISSING) {
        return bad(c, "nothing may follow \"!key\"", err);
    }
    if (*c->p == '=' || (*c->p == '!' && c->p[1] == '=')) {
        term->op = *c->p == '!' ? OP_NOT_IN : OP_IN;
        c->p += *c->p == '!' || c->p[1] == '=' ? 2 : 1;
        return add_value(term, word(c), err);
    }
    const struct weft_str name = word(c);
    if (weft_str_eq(name, "in")) {
        term->op = OP_IN;
    } else if (weft_str_eq(name, "notin")) {
        term->op = OP_NOT_IN;
    } else {
        return bad(c, "expected =, !=, in or notin", err);
    }
    return read_set(c, term, err);
}

static int read_term(struct cursor *c, struct weft_node_selector *selector, struct weft_error *err)
{
    if (selector->count >= WEFT_NODE_SELECTOR_TERMS_MAX) {
        return bad(c, "too many terms", err);
    }
    void *list = weft_reallocarray(selector->terms, selector->count + 1, sizeof(*selector->terms));
    if (list == NULL) {
        return weft_err_nomem(err);
    }
    selector->terms = list;
    struct term *term = &selector->terms[selector->count];
    *term = (struct term){.op = OP_EXISTS};
    skip_blanks(c);
    if (*c->p == '!') {
        term->op = OP_MISSING;
        c->p++;
    }
    const struct weft_str key = word(c);
    if (key.len == 0) {
        return bad(c, "expected a label key", err);
    }
    term->key = weft_strndup(key.data, key.len);
    if (term->key == NULL) {
        return weft_err_nomem(err);
    }
    selector->count++;
    return read_operator(c, term, err);
}

int weft_node_selector_parse(const char *text, struct weft_node_selector **ret_selector,
                             struct weft_error *err)
{
    weft_auto(weft_node_selector_free) struct weft_node_selector *selector =
        weft_calloc(1, sizeof(*selector));
    struct cursor c = {text, text};
    if (selector == NULL) {
        return weft_err_nomem(err);
    }
    skip_blanks(&c);
    while (*c.p != '\0') {
        const int rc = read_term(&c, selector, err);
        if (rc < 0) {
            return rc;
        }
        skip_blanks(&c);
        if (*c.p == ',') {
            c.p++;
            skip_blanks(&c);
            if (*c.p == '\0') {
                return bad(&c, "expected a term", err);
            }
        } else if (*c.p != '\0') {
            return bad(&c, "expected \",\"", err);
        }
    }
    *ret_selector = weft_steal(&selector);
    return 0;
}

static bool has_value(const struct term *term, const char *value)
{
    for (size_t v = 0; v < term->value_count; v++) {
        if (strcmp(term->values[v], value) == 0) {
            return true;
        }
    }
    return false;
}

static bool term_matches(const struct term *term, const struct weft_node *node)
{
    const char *value = weft_node_label(node, term->key);
    switch (term->op) {
    case OP_EXISTS:
        return value != NULL;
    case OP_MISSING:
        return value == NULL;
    case OP_IN:
        return value != NULL && has_value(term, value);
    case OP_NOT_IN: /* a node without the label is taken, as Kubernetes does */
        return value == NULL || !has_value(term, value);
    }
    return false;
}

bool weft_node_selector_matches(const struct weft_node_selector *selector,
                                const struct weft_node *node)
{
    for (size_t i = 0; selector != NULL && i < selector->count; i++) {
        if (!term_matches(&selector->terms[i], node)) {
            return false;
        }
    }
    return true;
}

const char *weft_node_selector_key(const struct weft_node_selector *selector, size_t index)
{
    return selector != NULL && index < selector->count ? selector->terms[index].key : NULL;
}
