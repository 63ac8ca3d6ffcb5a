/* SPDX-License-Identifier: Apache-2.0 */
/* YAML events to the document tree. The event interface is used, not libyaml's document interface:
 * there an alias can make a cycle and a duplicate key passes silently. */
#include <errno.h>
#include <string.h>
#include <yaml.h>

#include "pkg/base/map.h"
#include "pkg/base/mem.h"
#include "pkg/base/str.h"
#include "pkg/json/json.h"
#include "pkg/yaml/yaml.h"

enum { LINEAR_KEYS_MAX = 16 }; /* keys that are compared one by one: most objects have fewer */

struct level {
    struct weft_json *node;
    char *key;             /* of an object, waiting for its value */
    struct weft_map *keys; /* of an object with more than LINEAR_KEYS_MAX of them */
};

struct reader {
    yaml_parser_t parser;
    const char *name;
    struct level stack[WEFT_YAML_DEPTH_MAX + 1]; /* [0] holds the list of documents */
    size_t depth;                                /* open containers, the list included */
    struct weft_error *err;
};

static int refuse(const struct reader *r, const yaml_event_t *event, const char *why)
{
    return weft_err_set(r->err, -EINVAL, WEFT_ERR_YAML, "%s:%zu: %s", r->name,
                        event->start_mark.line + 1, why);
}

static enum weft_json_type plain_type(const char *text, size_t len)
{
    const struct weft_str s = {.data = text, .len = len};
    if (len == 0 || weft_str_eq(s, "null") || weft_str_eq(s, "~")) {
        return WEFT_JSON_NULL;
    }
    if (weft_str_eq(s, "true") || weft_str_eq(s, "false")) {
        return WEFT_JSON_BOOL;
    }
    return weft_json_number_type(text, len);
}

/* 0, -EEXIST for a second member of that key, -ENOMEM. */
static int note_key(struct level *level, const char *key)
{
    const size_t count = weft_json_count(level->node);
    if (level->keys == NULL && count < LINEAR_KEYS_MAX) {
        return weft_json_get(level->node, key) != NULL ? -EEXIST : 0;
    }
    if (level->keys == NULL) {
        level->keys = weft_map_new(SIZE_MAX);
        for (size_t i = 0; level->keys != NULL && i < count; i++) {
            if (weft_map_put(level->keys, weft_json_key(weft_json_at(level->node, i)), 0) < 0) {
                return -ENOMEM;
            }
        }
    }
    const int rc = level->keys != NULL ? weft_map_put(level->keys, key, 0) : -ENOMEM;
    return rc == 1 ? -EEXIST : rc;
}

static void level_done(struct level *level)
{
    weft_free(weft_steal(&level->key));
    weft_map_free(weft_steal(&level->keys));
}

/* The scalar becomes a key, or the value of the waiting key, or an element. */
static int on_key(struct reader *r, const yaml_event_t *event)
{
    struct level *top = &r->stack[r->depth - 1];
    const char *text = (const char *)event->data.scalar.value;
    if (event->type != YAML_SCALAR_EVENT) {
        return refuse(r, event, "a field name must be plain text");
    }
    if (strlen(text) != event->data.scalar.length) {
        return refuse(r, event, "a NUL character in a field name");
    }
    if (strcmp(text, "<<") == 0 && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        return refuse(r, event, "merge keys (<<) are not read");
    }
    const int rc = note_key(top, text);
    if (rc == -EEXIST) {
        return weft_err_set(r->err, -EINVAL, WEFT_ERR_YAML,
                            "%s:%zu: the field %.60s is there twice", r->name,
                            event->start_mark.line + 1, text);
    }
    top->key = rc == 0 ? weft_strdup(text) : NULL;
    return top->key != NULL ? 0 : weft_err_nomem(r->err);
}

static int on_value(struct reader *r, const yaml_event_t *event)
{
    struct level *top = &r->stack[r->depth - 1];
    enum weft_json_type type = event->type == YAML_MAPPING_START_EVENT    ? WEFT_JSON_OBJECT
                               : event->type == YAML_SEQUENCE_START_EVENT ? WEFT_JSON_ARRAY
                                                                          : WEFT_JSON_STRING;
    const char *text = "";
    size_t len = 0;
    if (event->type == YAML_SCALAR_EVENT) {
        text = (const char *)event->data.scalar.value;
        len = event->data.scalar.length;
        if (strlen(text) != len) {
            return refuse(r, event, "a NUL character in a value");
        }
        if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
            type = plain_type(text, len);
        }
    } else if (r->depth > WEFT_YAML_DEPTH_MAX) {
        return refuse(r, event, "nested too deeply");
    }
    struct weft_json *node =
        weft_json_add(top->node, top->key, type, text, len, (unsigned)event->start_mark.line + 1);
    weft_free(top->key);
    top->key = NULL;
    if (node == NULL) {
        return weft_err_nomem(r->err);
    }
    if (event->type != YAML_SCALAR_EVENT) {
        r->stack[r->depth++] = (struct level){.node = node};
    }
    return 0;
}

static bool has_tag_or_anchor(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return event->data.scalar.anchor != NULL || event->data.scalar.tag != NULL;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.anchor != NULL || event->data.sequence_start.tag != NULL;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.anchor != NULL || event->data.mapping_start.tag != NULL;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
    case YAML_ALIAS_EVENT:
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        break;
    }
    return event->type == YAML_ALIAS_EVENT;
}

static int on_event(struct reader *r, const yaml_event_t *event)
{
    if (has_tag_or_anchor(event)) {
        return refuse(r, event, "anchors, aliases and tags are not read");
    }
    if (event->type == YAML_SEQUENCE_END_EVENT || event->type == YAML_MAPPING_END_EVENT) {
        level_done(&r->stack[--r->depth]);
        return 0;
    }
    if (event->type != YAML_SCALAR_EVENT && event->type != YAML_SEQUENCE_START_EVENT &&
        event->type != YAML_MAPPING_START_EVENT) {
        return 0; /* stream and document marks */
    }
    const struct level *top = &r->stack[r->depth - 1];
    const bool wants_key = weft_json_type(top->node) == WEFT_JSON_OBJECT && top->key == NULL;
    return wants_key ? on_key(r, event) : on_value(r, event);
}

static int read_events(struct reader *r)
{
    for (bool more = true; more;) {
        yaml_event_t event;
        if (yaml_parser_parse(&r->parser, &event) == 0) {
            const char *problem = r->parser.problem != NULL ? r->parser.problem : "no memory";
            const int code = r->parser.error == YAML_MEMORY_ERROR ? -ENOMEM : -EINVAL;
            return weft_err_set(r->err, code, WEFT_ERR_YAML, "%s:%zu: %s", r->name,
                                r->parser.problem_mark.line + 1, problem);
        }
        const int rc = on_event(r, &event);
        more = event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

int weft_yaml_parse_all(const char *text, size_t len, const char *name, struct weft_json **ret_root,
                        struct weft_error *err)
{
    weft_auto(weft_json_free) struct weft_json *list = weft_json_new(WEFT_JSON_ARRAY, name);
    struct reader r = {.name = name, .stack = {{.node = list}}, .depth = 1, .err = err};
    if (list == NULL || yaml_parser_initialize(&r.parser) == 0) {
        return weft_err_nomem(err);
    }
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
    const int rc = read_events(&r);
    yaml_parser_delete(&r.parser);
    for (size_t i = 0; i < WEFT_ARRAY_LEN(r.stack); i++) {
        level_done(&r.stack[i]);
    }
    if (rc == 0) {
        *ret_root = weft_steal(&list);
    }
    return rc;
}

int weft_yaml_parse(const char *text, size_t len, const char *name, struct weft_json **ret_root,
                    struct weft_error *err)
{
    weft_auto(weft_json_free) struct weft_json *list = NULL;
    const int rc = weft_yaml_parse_all(text, len, name, &list, err);
    if (rc < 0) {
        return rc;
    }
    if (weft_json_count(list) > 1) {
        return weft_json_error(weft_json_at(list, 1), err, "one document is expected");
    }
    /* no document, or one of comments alone, is an empty object */
    const bool empty = weft_json_type(weft_json_at(list, 0)) == WEFT_JSON_NULL;
    struct weft_json *root =
        empty ? weft_json_new(WEFT_JSON_OBJECT, name) : weft_json_take_only(list, name);
    if (root == NULL) {
        return weft_err_nomem(err);
    }
    *ret_root = root;
    return 0;
}
