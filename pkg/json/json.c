/* SPDX-License-Identifier: Apache-2.0 */
/* The document tree: look-ups, typed getters, errors that name the place, and building. */
#include "pkg/json/json.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/base/str.h"
#include "pkg/json/json-internal.h"

struct weft_json *weft_json_new(enum weft_json_type type, const char *name)
{
    struct weft_json *root = weft_calloc(1, sizeof(*root));
    char *text = weft_strdup(name);
    if (root == NULL || text == NULL) {
        weft_free(root);
        weft_free(text);
        return NULL;
    }
    root->type = type;
    root->name = text;
    return root;
}

void weft_json_free(struct weft_json *root)
{
    /* depth first without recursion: descend to the last child, free it, go back up */
    struct weft_json *node = root;
    while (node != NULL) {
        if (node->child_count > 0) {
            node = node->children[node->child_count - 1];
            continue;
        }
        struct weft_json *parent = node == root ? NULL : node->parent;
        weft_free(node->children);
        weft_free(node->key);
        weft_free(node->text);
        weft_free(node->name);
        weft_free(node);
        if (parent != NULL) {
            parent->child_count--;
        }
        node = parent;
    }
}

static bool is_container(enum weft_json_type type)
{
    return type == WEFT_JSON_ARRAY || type == WEFT_JSON_OBJECT;
}

static int set_value(struct weft_json *node, enum weft_json_type type, const char *text, size_t len)
{
    node->type = type;
    if (is_container(type) || type == WEFT_JSON_NULL) {
        return 0;
    }
    node->text = weft_strndup(text, len);
    if (node->text == NULL) {
        return -ENOMEM;
    }
    if (type == WEFT_JSON_INT) {
        return weft_parse_i64(weft_str(node->text), INT64_MIN, INT64_MAX, &node->number);
    } else if (type == WEFT_JSON_BOOL) {
        node->number = strcmp(node->text, "true") == 0;
    }
    return 0;
}

struct weft_json *weft_json_add(struct weft_json *parent, const char *key, enum weft_json_type type,
                                const char *text, size_t text_len, unsigned line)
{
    void *list = parent->children;
    const int rc = weft_array_reserve(&list, &parent->child_cap, parent->child_count + 1,
                                      sizeof(struct weft_json *), SIZE_MAX / 16);
    parent->children = list;
    struct weft_json *node = rc < 0 ? NULL : weft_calloc(1, sizeof(*node));
    if (node == NULL) {
        return NULL;
    }
    node->parent = parent;
    node->line = line;
    node->key = key != NULL ? weft_strdup(key) : NULL;
    if ((key != NULL && node->key == NULL) || set_value(node, type, text, text_len) < 0) {
        weft_free(node->key);
        weft_free(node);
        return NULL;
    }
    parent->children[parent->child_count++] = node;
    return node;
}

struct weft_json *weft_json_take_only(struct weft_json *list, const char *name)
{
    struct weft_json *root = list->children[0];
    root->name = weft_strdup(name);
    if (root->name == NULL) {
        return NULL;
    }
    root->parent = NULL;
    list->child_count = 0;
    return root;
}

static size_t digits_at(const char *text, size_t from, size_t len)
{
    size_t n = 0;
    while (from + n < len && text[from + n] >= '0' && text[from + n] <= '9') {
        n++;
    }
    return n;
}

/* The text from i on is an exponent to the end, or nothing. */
static bool is_exponent(const char *text, size_t i, size_t len)
{
    if (i == len) {
        return true;
    }
    if (text[i] != 'e' && text[i] != 'E') {
        return false;
    }
    i += i + 1 < len && (text[i + 1] == '+' || text[i + 1] == '-') ? 2 : 1;
    return i < len && i + digits_at(text, i, len) == len;
}

/* JSON's number grammar (RFC 8259 section 6): -? int frac? exp? without leading zeros. */
static bool is_json_number(const char *text, size_t len)
{
    size_t i = len > 0 && text[0] == '-' ? 1 : 0;
    const size_t whole = digits_at(text, i, len);
    if (whole == 0 || (whole > 1 && text[i] == '0')) {
        return false;
    }
    i += whole;
    if (i < len && text[i] == '.') {
        const size_t fraction = digits_at(text, i + 1, len);
        i += fraction + 1;
        if (fraction == 0) {
            return false;
        }
    }
    return is_exponent(text, i, len);
}

enum weft_json_type weft_json_number_type(const char *text, size_t len)
{
    int64_t value = 0;
    if (!is_json_number(text, len)) {
        return WEFT_JSON_STRING;
    }
    const struct weft_str s = {.data = text, .len = len};
    return weft_parse_i64(s, INT64_MIN, INT64_MAX, &value) == 0 ? WEFT_JSON_INT : WEFT_JSON_DOUBLE;
}

enum weft_json_type weft_json_type(const struct weft_json *node)
{
    return node != NULL ? node->type : WEFT_JSON_NULL;
}

size_t weft_json_count(const struct weft_json *node)
{
    return node != NULL ? node->child_count : 0;
}

const struct weft_json *weft_json_at(const struct weft_json *node, size_t index)
{
    return index < weft_json_count(node) ? node->children[index] : NULL;
}

const struct weft_json *weft_json_get(const struct weft_json *object, const char *key)
{
    if (weft_json_type(object) != WEFT_JSON_OBJECT) {
        return NULL;
    }
    for (size_t i = 0; i < object->child_count; i++) {
        if (strcmp(object->children[i]->key, key) == 0) {
            return object->children[i];
        }
    }
    return NULL;
}

const char *weft_json_key(const struct weft_json *node)
{
    return node != NULL ? node->key : NULL;
}

const char *weft_json_string(const struct weft_json *node)
{
    return weft_json_type(node) == WEFT_JSON_STRING ? node->text : NULL;
}

bool weft_json_bool(const struct weft_json *node, bool fallback)
{
    return weft_json_type(node) == WEFT_JSON_BOOL ? node->number != 0 : fallback;
}

int64_t weft_json_int(const struct weft_json *node, int64_t fallback)
{
    return weft_json_type(node) == WEFT_JSON_INT ? node->number : fallback;
}

double weft_json_double(const struct weft_json *node, double fallback)
{
    switch (weft_json_type(node)) {
    case WEFT_JSON_INT:
        return (double)node->number;
    case WEFT_JSON_DOUBLE:
        return strtod(node->text, NULL);
    case WEFT_JSON_NULL:
    case WEFT_JSON_BOOL:
    case WEFT_JSON_STRING:
    case WEFT_JSON_ARRAY:
    case WEFT_JSON_OBJECT:
    case WEFT_JSON_TYPE_COUNT:
        break;
    }
    return fallback;
}

unsigned weft_json_line(const struct weft_json *node)
{
    return node != NULL ? node->line : 0;
}

/* ---- errors ---- */

enum { PATH_MAX_BYTES = 160 };

/* Appends the node's path ("sources[0].labels") and returns its root. */
static const struct weft_json *put_path(const struct weft_json *node, struct weft_buf *path)
{
    const struct weft_json *chain[WEFT_JSON_DEPTH_MAX + 1] = {NULL};
    size_t depth = 0;
    while (node->parent != NULL && depth < WEFT_ARRAY_LEN(chain)) {
        chain[depth++] = node;
        node = node->parent;
    }
    while (depth-- > 0) {
        const struct weft_json *step = chain[depth];
        if (step->key != NULL) {
            (void)weft_buf_printf(path, "%s%s", path->len > 0 ? "." : "", step->key);
            continue;
        }
        size_t index = 0;
        while (index < step->parent->child_count && step->parent->children[index] != step) {
            index++;
        }
        (void)weft_buf_printf(path, "[%zu]", index);
    }
    return node;
}

int weft_json_error(const struct weft_json *node, struct weft_error *err, const char *format, ...)
{
    char message[WEFT_ERROR_MESSAGE_MAX];
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(message, sizeof(message), format, ap);
    va_end(ap);
    if (node == NULL) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s", message);
    }
    weft_auto(weft_buf_done) struct weft_buf path;
    weft_buf_init(&path, PATH_MAX_BYTES);
    const struct weft_json *root = put_path(node, &path);
    char line[16] = "";
    if (node->line > 0) {
        (void)snprintf(line, sizeof(line), "%u: ", node->line);
    }
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s:%s%s%s%s%s", root->name,
                        line[0] != '\0' ? line : " ", weft_buf_text(&path),
                        path.status != 0 ? "…" : "", path.len > 0 ? ": " : "", message);
}

static const char *const type_names[WEFT_JSON_TYPE_COUNT] = {
    "null", "a boolean", "an integer", "a number", "a string", "a list", "an object"};

/* 1 and *ret_node if the member is there with the type, 0 if absent or null, -EINVAL else. */
static int typed_member(const struct weft_json *object, const char *key, enum weft_json_type type,
                        const struct weft_json **ret_node, struct weft_error *err)
{
    if (object != NULL && object->type != WEFT_JSON_OBJECT) {
        return weft_json_error(object, err, "is %s, an object is expected",
                               type_names[object->type]);
    }
    const struct weft_json *node = weft_json_get(object, key);
    if (weft_json_type(node) == WEFT_JSON_NULL) {
        return 0;
    }
    if (node->type != type) {
        const bool quote = node->type != WEFT_JSON_ARRAY && node->type != WEFT_JSON_OBJECT;
        return weft_json_error(node, err, "is %s%s%.40s%s, %s is expected", type_names[node->type],
                               quote ? " (" : "", quote ? node->text : "", quote ? ")" : "",
                               type_names[type]);
    }
    *ret_node = node;
    return 1;
}

int weft_json_get_string(const struct weft_json *object, const char *key, const char **ret,
                         struct weft_error *err)
{
    const struct weft_json *node = NULL;
    const int rc = typed_member(object, key, WEFT_JSON_STRING, &node, err);
    if (rc == 1) {
        *ret = node->text;
    }
    return rc;
}

int weft_json_get_bool(const struct weft_json *object, const char *key, bool *ret,
                       struct weft_error *err)
{
    const struct weft_json *node = NULL;
    const int rc = typed_member(object, key, WEFT_JSON_BOOL, &node, err);
    if (rc == 1) {
        *ret = node->number != 0;
    }
    return rc;
}

int weft_json_get_int(const struct weft_json *object, const char *key, int64_t min, int64_t max,
                      int64_t *ret, struct weft_error *err)
{
    const struct weft_json *node = NULL;
    const int rc = typed_member(object, key, WEFT_JSON_INT, &node, err);
    if (rc != 1) {
        return rc;
    }
    if (node->number < min || node->number > max) {
        return weft_json_error(node, err, "is %lld, allowed is %lld to %lld",
                               (long long)node->number, (long long)min, (long long)max);
    }
    *ret = node->number;
    return 1;
}

int weft_json_get_array(const struct weft_json *object, const char *key,
                        const struct weft_json **ret, struct weft_error *err)
{
    return typed_member(object, key, WEFT_JSON_ARRAY, ret, err);
}

int weft_json_get_object(const struct weft_json *object, const char *key,
                         const struct weft_json **ret, struct weft_error *err)
{
    return typed_member(object, key, WEFT_JSON_OBJECT, ret, err);
}

int weft_json_only(const struct weft_json *object, const char *const *keys, struct weft_error *err)
{
    if (weft_json_type(object) != WEFT_JSON_OBJECT) {
        return weft_json_error(object, err, "is %s, an object is expected",
                               type_names[weft_json_type(object)]);
    }
    for (size_t i = 0; i < object->child_count; i++) {
        const struct weft_json *member = object->children[i];
        const char *const *key = keys;
        while (*key != NULL && strcmp(*key, member->key) != 0) {
            key++;
        }
        if (*key != NULL) {
            continue;
        }
        weft_auto(weft_buf_done) struct weft_buf allowed;
        weft_buf_init(&allowed, WEFT_ERROR_MESSAGE_MAX);
        for (key = keys; *key != NULL; key++) {
            (void)weft_buf_printf(&allowed, "%s%s", key == keys ? "" : ", ", *key);
        }
        return weft_json_error(member, err, "unknown field, allowed are: %s",
                               weft_buf_text(&allowed));
    }
    return 0;
}
