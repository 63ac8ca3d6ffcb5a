/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text to the document tree. cJSON checks the syntax and decodes strings; a cursor walks the
 * text in step with cJSON's tree, so that each node gets its line and each number its own text
 * (cJSON keeps doubles only, which round integers over 2^53). Duplicate keys and NUL characters,
 * which cJSON lets through, are refused. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

#include "pkg/base/map.h"
#include "pkg/base/str.h"
#include "pkg/json/json.h"

/* Objects with more members than this look duplicates up in a map instead of one by one. */
enum { LINEAR_KEYS_MAX = 24 };

struct cursor {
    const char *at;
    const char *end;
    unsigned line;
};

struct level {
    const cJSON *next; /* the next sibling to convert */
    struct weft_json *parent;
    struct weft_map *keys; /* of an object with many members, else NULL */
};

struct conversion {
    struct cursor cursor;
    struct level stack[WEFT_JSON_DEPTH_MAX];
    size_t depth;
};

static unsigned line_of(const char *text, const char *at)
{
    unsigned line = 1;
    for (const char *p = text; p < at; p++) {
        line += *p == '\n';
    }
    return line;
}

/* What stands inside a string and cJSON would let pass; at is not its closing quote. */
static const char *scan_in_string(const char *at, size_t left)
{
    if ((unsigned char)*at < ' ') {
        return "a control character in a string (RFC 8259 wants it escaped)";
    }
    return left > 5 && memcmp(at, "\\u0000", 6) == 0 ? "a NUL character in a string" : NULL;
}

/* The same outside strings; cJSON would recurse on depth, and takes any byte up to 0x20 as blank.
 */
static const char *scan_outside(char c, unsigned *depth)
{
    if ((unsigned char)c < ' ' && (c == '\0' || strchr("\t\n\r", c) == NULL)) {
        return "a control character";
    }
    if (c == '{' || c == '[') {
        return ++*depth > WEFT_JSON_DEPTH_MAX ? "nested too deeply" : NULL;
    }
    *depth -= (c == '}' || c == ']') && *depth > 0;
    return NULL;
}

/* NULL if fine, else why not, with *ret_at. */
static const char *scan(const char *text, size_t len, const char **ret_at)
{
    unsigned depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < len; i++) {
        const char *why =
            in_string ? scan_in_string(text + i, len - i) : scan_outside(text[i], &depth);
        if (why != NULL) {
            *ret_at = text + i;
            return why;
        }
        if (text[i] == '"') {
            in_string = !in_string;
        }
        i += in_string && text[i] == '\\';
    }
    return NULL;
}

static void skip_string(struct cursor *c)
{
    for (c->at++; c->at < c->end && *c->at != '"'; c->at++) {
        if (*c->at == '\\') {
            c->at++;
        }
        c->line += c->at < c->end && *c->at == '\n';
    }
    c->at += c->at < c->end;
}

static void skip_to_token(struct cursor *c)
{
    while (c->at < c->end && strchr(" \t\r\n,:]}", *c->at) != NULL) {
        c->line += *c->at == '\n';
        c->at++;
    }
}

/* Moves to the start of the next value in document order; syntax was checked by cJSON. */
static void next_value(struct cursor *c, bool in_object)
{
    skip_to_token(c);
    if (in_object) {
        skip_string(c);
        skip_to_token(c);
    }
}

static size_t number_len(const struct cursor *c)
{
    size_t n = 0;
    while (c->at + n < c->end && strchr("+-0123456789.eE", c->at[n]) != NULL) {
        n++;
    }
    return n;
}

/* Adds the item, leaves the cursor behind it (behind the bracket of a container). */
static struct weft_json *add_item(struct cursor *c, struct weft_json *parent, const cJSON *item)
{
    next_value(c, weft_json_type(parent) == WEFT_JSON_OBJECT);
    const unsigned line = c->line;
    enum weft_json_type type = WEFT_JSON_NULL;
    const char *text = "";
    size_t len = 0;
    if (cJSON_IsString(item)) {
        type = WEFT_JSON_STRING;
        text = item->valuestring;
        len = strlen(text);
        skip_string(c);
    } else if (cJSON_IsArray(item) || cJSON_IsObject(item)) {
        type = cJSON_IsArray(item) ? WEFT_JSON_ARRAY : WEFT_JSON_OBJECT;
        c->at++;
    } else if (cJSON_IsNumber(item)) {
        text = c->at;
        len = number_len(c);
        type = weft_json_number_type(text, len);
        type = type == WEFT_JSON_STRING ? WEFT_JSON_DOUBLE : type; /* cJSON takes "01" */
        c->at += len;
    } else {
        type = cJSON_IsBool(item) ? WEFT_JSON_BOOL : WEFT_JSON_NULL;
        text = cJSON_IsTrue(item) ? "true" : "false";
        len = strlen(text);
        c->at += cJSON_IsFalse(item) ? 5 : 4;
    }
    const char *key = weft_json_type(parent) == WEFT_JSON_OBJECT ? item->string : NULL;
    return weft_json_add(parent, key, type, text, len, line);
}

/* 0, -EEXIST for a second member of that key, -ENOMEM. */
static int note_key(struct level *level, const char *key)
{
    const size_t count = weft_json_count(level->parent);
    if (level->keys == NULL && count < LINEAR_KEYS_MAX) {
        return weft_json_get(level->parent, key) != NULL ? -EEXIST : 0;
    }
    if (level->keys == NULL) {
        level->keys = weft_map_new(SIZE_MAX);
        for (size_t i = 0; level->keys != NULL && i < count; i++) {
            if (weft_map_put(level->keys, weft_json_key(weft_json_at(level->parent, i)), 0) < 0) {
                return -ENOMEM;
            }
        }
    }
    const int rc = level->keys != NULL ? weft_map_put(level->keys, key, 0) : -ENOMEM;
    return rc == 1 ? -EEXIST : rc;
}

static void conversion_done(struct conversion *conv)
{
    while (conv->depth > 0) {
        weft_map_free(conv->stack[--conv->depth].keys);
    }
}
WEFT_DEFINE_AUTO_VALUE(struct conversion, conversion_done)

static int convert_item(struct conversion *conv, struct level *level, struct weft_error *err)
{
    const cJSON *item = level->next;
    level->next = item->next;
    const bool in_object = weft_json_type(level->parent) == WEFT_JSON_OBJECT;
    const int rc = in_object ? note_key(level, item->string) : 0;
    struct weft_json *node = rc == -ENOMEM ? NULL : add_item(&conv->cursor, level->parent, item);
    if (node == NULL) {
        return weft_err_nomem(err);
    }
    if (rc == -EEXIST) {
        return weft_json_error(node, err, "the field is there twice");
    }
    if (item->child != NULL) {
        conv->stack[conv->depth++] = (struct level){.next = item->child, .parent = node};
    }
    return 0;
}

static int convert(struct weft_json *root, const cJSON *top, const char *text, size_t len,
                   struct weft_error *err)
{
    weft_auto(conversion_done) struct conversion conv = {
        .cursor = {.at = text, .end = text + len, .line = 1},
        .stack = {{.next = top->child, .parent = root}},
        .depth = 1,
    };
    next_value(&conv.cursor, false);
    conv.cursor.at++;
    while (conv.depth > 0) {
        struct level *level = &conv.stack[conv.depth - 1];
        if (level->next == NULL) {
            weft_map_free(level->keys);
            conv.depth--;
            continue;
        }
        const int rc = convert_item(&conv, level, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static void delete_cjson(cJSON **item)
{
    cJSON_Delete(*item);
}

int weft_json_parse(const char *text, size_t len, const char *name, struct weft_json **ret_root,
                    struct weft_error *err)
{
    const char *at = text;
    const char *why =
        !weft_utf8_valid(text, len) ? "bad UTF-8 or a NUL byte" : scan(text, len, &at);
    if (why != NULL) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_JSON, "%s:%u: %s", name, line_of(text, at), why);
    }
    __attribute__((cleanup(delete_cjson))) cJSON *top =
        cJSON_ParseWithLengthOpts(text, len, &at, 0);
    if (top == NULL) {
        const size_t left = at < text + len ? (size_t)(text + len - at) : 0;
        size_t show = 0; /* text need not end with a NUL; one line of it is enough */
        while (show < left && show < 20 && (unsigned char)at[show] >= ' ') {
            show++;
        }
        return weft_err_set(err, -EINVAL, WEFT_ERR_JSON, "%s:%u: no JSON here: \"%.*s\"", name,
                            line_of(text, at), (int)show, at);
    }
    const struct weft_str rest =
        weft_str_trim((struct weft_str){.data = at, .len = (size_t)(text + len - at)});
    if (rest.len > 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_JSON, "%s:%u: text after the document", name,
                            line_of(text, rest.data));
    }
    if (!cJSON_IsArray(top) && !cJSON_IsObject(top)) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_JSON,
                            "%s: the document is neither an object nor a list", name);
    }
    weft_auto(weft_json_free) struct weft_json *root =
        weft_json_new(cJSON_IsArray(top) ? WEFT_JSON_ARRAY : WEFT_JSON_OBJECT, name);
    if (root == NULL) {
        return weft_err_nomem(err);
    }
    const int rc = convert(root, top, text, len, err);
    if (rc == 0) {
        *ret_root = weft_steal(&root);
    }
    return rc;
}
