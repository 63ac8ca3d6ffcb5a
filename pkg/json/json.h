/* SPDX-License-Identifier: Apache-2.0 */
/* The one document type of weft: a tree of values that was read from JSON (cJSON) or YAML (libyaml
 * events, pkg/yaml) or built by hand. Every node knows its place, so that an error can name file,
 * line and field. Numbers keep their text: an integer is exact up to int64_t.
 *
 * Ownership: a document is owned through its root; nodes and strings handed out are borrowed and
 * live as long as the root. One thread at a time. */
#ifndef WEFT_JSON_JSON_H
#define WEFT_JSON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_buf;
struct weft_json;

enum weft_json_type {
    WEFT_JSON_NULL,
    WEFT_JSON_BOOL,
    WEFT_JSON_INT,    /* a number without fraction or exponent that fits int64_t */
    WEFT_JSON_DOUBLE, /* any other number */
    WEFT_JSON_STRING,
    WEFT_JSON_ARRAY,
    WEFT_JSON_OBJECT,
    WEFT_JSON_TYPE_COUNT
};

enum { WEFT_JSON_DEPTH_MAX = 64 };

/* ---- reading ---- */

/* Parses one JSON document of len bytes (any size the caller's cap allowed). name is the file name
 * for errors, copied. Refused: syntax errors (with line), nesting over WEFT_JSON_DEPTH_MAX,
 * duplicate keys, NUL inside a string, bad UTF-8, trailing text. The caller owns *ret_root.
 * Errors: -EINVAL, -ENOMEM. */
int weft_json_parse(const char *text, size_t len, const char *name, struct weft_json **ret_root,
                    struct weft_error *err) __attribute__((warn_unused_result));
/* Frees a root and all below it; NULL is fine. */
void weft_json_free(struct weft_json *root);
WEFT_DEFINE_AUTO(struct weft_json, weft_json_free)

/* All of these accept NULL (type NULL, count 0, NULL results), so that look-ups chain. */
enum weft_json_type weft_json_type(const struct weft_json *node);
size_t weft_json_count(const struct weft_json *node); /* members or elements */
const struct weft_json *weft_json_at(const struct weft_json *node, size_t index);
const struct weft_json *weft_json_get(const struct weft_json *object, const char *key);
const char *weft_json_key(const struct weft_json *node);    /* its key in its object, or NULL */
const char *weft_json_string(const struct weft_json *node); /* a string's text, or NULL */
bool weft_json_bool(const struct weft_json *node, bool fallback);
int64_t weft_json_int(const struct weft_json *node, int64_t fallback);
double weft_json_double(const struct weft_json *node, double fallback);
unsigned weft_json_line(const struct weft_json *node); /* 1…; 0 if unknown (JSON) */

/* Typed members with an error: 1 and *ret if there, 0 if absent or null (*ret untouched), -EINVAL
 * if of another type or out of range; the message names file, line, field, what was found. */
int weft_json_get_string(const struct weft_json *object, const char *key, const char **ret,
                         struct weft_error *err) __attribute__((warn_unused_result));
int weft_json_get_bool(const struct weft_json *object, const char *key, bool *ret,
                       struct weft_error *err) __attribute__((warn_unused_result));
int weft_json_get_int(const struct weft_json *object, const char *key, int64_t min, int64_t max,
                      int64_t *ret, struct weft_error *err) __attribute__((warn_unused_result));
int weft_json_get_array(const struct weft_json *object, const char *key,
                        const struct weft_json **ret, struct weft_error *err)
    __attribute__((warn_unused_result));
int weft_json_get_object(const struct weft_json *object, const char *key,
                         const struct weft_json **ret, struct weft_error *err)
    __attribute__((warn_unused_result));

/* Refuses a node that is not an object, and members whose key is not in the NULL-terminated list:
 * "file:line: a.b.c: unknown field, allowed are …". 0 or -EINVAL. */
int weft_json_only(const struct weft_json *object, const char *const *keys, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Sets err to "file:line: path: <formatted>", domain CONFIG; returns -EINVAL. */
int weft_json_error(const struct weft_json *node, struct weft_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- building (pkg/yaml, tests) ---- */

/* A root of type OBJECT or ARRAY; name as in weft_json_parse. NULL without memory. */
struct weft_json *weft_json_new(enum weft_json_type type, const char *name)
    __attribute__((warn_unused_result));
/* Adds a child (key NULL for arrays) and returns it, borrowed. text is the value's text: the
 * string, the number's digits, "true"/"false"; ignored for containers and null. NULL without
 * memory. */
struct weft_json *weft_json_add(struct weft_json *parent, const char *key, enum weft_json_type type,
                                const char *text, size_t text_len, unsigned line)
    __attribute__((warn_unused_result));
/* What a plain text is as a number: INT if it is an exact int64, DOUBLE for other JSON numbers,
 * else STRING. */
enum weft_json_type weft_json_number_type(const char *text, size_t len);

/* Takes the only child of a list out of it and makes it a root of its own (list stays the caller's,
 * now empty). name as in weft_json_parse. NULL without memory. */
struct weft_json *weft_json_take_only(struct weft_json *list, const char *name)
    __attribute__((warn_unused_result));

/* ---- writing ---- */

/* A writer over a capped buffer; check buf->status once at the end. indent 0 = one line. */
struct weft_json_writer {
    struct weft_buf *buf;
    unsigned indent;
    unsigned depth;
    bool comma;     /* a value was written at this level */
    bool after_key; /* the next value belongs to a key */
};

void weft_json_writer_init(struct weft_json_writer *w, struct weft_buf *buf, unsigned indent);
void weft_json_open(struct weft_json_writer *w, char bracket);  /* '{' or '[' */
void weft_json_close(struct weft_json_writer *w, char bracket); /* '}' or ']' */
void weft_json_put_key(struct weft_json_writer *w, const char *key);
void weft_json_put_string(struct weft_json_writer *w, const char *text);
void weft_json_put_int(struct weft_json_writer *w, int64_t value);
void weft_json_put_bool(struct weft_json_writer *w, bool value);
void weft_json_put_null(struct weft_json_writer *w);
/* Key and value in one call. */
void weft_json_kv_string(struct weft_json_writer *w, const char *key, const char *text);
void weft_json_kv_int(struct weft_json_writer *w, const char *key, int64_t value);
void weft_json_kv_bool(struct weft_json_writer *w, const char *key, bool value);
/* A whole node as a value. */
void weft_json_put_node(struct weft_json_writer *w, const struct weft_json *node);

#endif
