/* SPDX-License-Identifier: Apache-2.0 */
/* Reads node lists as people have them: names, or what kubectl prints. Objects are parsed one at a
 * time, so that a list of 10,000 nodes costs the memory of its text and not of a tree over it. */
#include <errno.h>
#include <string.h>

#include "pkg/base/map.h"
#include "pkg/base/str.h"
#include "pkg/fabric/node.h"
#include "pkg/json/json.h"
#include "pkg/json/split.h"
#include "pkg/yaml/yaml.h"

struct reader {
    struct weft_nodes *nodes;
    struct weft_map *seen;
    const char *file;
    unsigned line; /* of the piece that is read; its own lines count from 1 */
};

static int fail(const struct reader *r, int rc, struct weft_error *err)
{
    if (rc == -ENOMEM) {
        return weft_err_nomem(err);
    }
    return weft_err_set(err, rc, WEFT_ERR_CONFIG, "%s: more than %d nodes or %d labels", r->file,
                        (int)WEFT_NODES_MAX, (int)WEFT_NODE_LABELS_MAX);
}

static int add(struct reader *r, const char *name, const char *uid, struct weft_node **ret_node,
               struct weft_error *err)
{
    if (!weft_dns_subdomain_valid(name)) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: \"%.80s\" is not a Kubernetes node name", r->file, r->line,
                            name);
    }
    int rc = weft_map_put(r->seen, name, r->nodes->count);
    if (rc == 1) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s:%u: node %s is there twice", r->file,
                            r->line, name);
    }
    rc = rc == 0 ? weft_nodes_add(r->nodes, name, uid, ret_node) : rc;
    return rc < 0 ? fail(r, rc, err) : 0;
}

static int add_labels(const struct reader *r, const struct weft_json *labels,
                      struct weft_node *node, struct weft_error *err)
{
    for (size_t i = 0; i < weft_json_count(labels); i++) {
        const struct weft_json *label = weft_json_at(labels, i);
        const char *value = weft_json_string(label);
        if (weft_json_type(label) == WEFT_JSON_NULL) {
            continue;
        }
        if (value == NULL) {
            return weft_json_error(label, err, "a label's value must be a string");
        }
        const int rc = weft_node_set_label(node, weft_json_key(label), value);
        if (rc < 0) {
            return fail(r, rc, err);
        }
    }
    return 0;
}

/* One API object; anything but a Node in a mixed list is passed over. */
static int add_object(struct reader *r, const struct weft_json *object, struct weft_error *err)
{
    const char *kind = "Node";
    const char *name = NULL;
    const char *uid = NULL;
    const struct weft_json *metadata = NULL;
    const struct weft_json *labels = NULL;
    int rc = weft_json_get_string(object, "kind", &kind, err);
    if (rc < 0 || strcmp(kind, "Node") != 0) {
        return rc < 0 ? rc : 0;
    }
    rc = weft_json_get_object(object, "metadata", &metadata, err);
    rc = rc < 0 ? rc : weft_json_get_string(metadata, "name", &name, err);
    rc = rc < 0 ? rc : weft_json_get_string(metadata, "uid", &uid, err);
    rc = rc < 0 ? rc : weft_json_get_object(metadata, "labels", &labels, err);
    if (rc < 0) {
        return rc;
    }
    if (name == NULL) {
        return weft_json_error(object, err, "a node without metadata.name");
    }
    struct weft_node *node = NULL;
    rc = add(r, name, uid, &node, err);
    return rc < 0 ? rc : add_labels(r, labels, node, err);
}

/* A Node, a list of them, or an array of either. Nesting is what a parsed text has: two levels. */
static int add_document(struct reader *r, const struct weft_json *root, struct weft_error *err)
{
    const struct weft_json *items = NULL;
    const enum weft_json_type type = weft_json_type(root);
    if (type == WEFT_JSON_NULL || (type == WEFT_JSON_OBJECT && weft_json_count(root) == 0)) {
        return 0; /* an empty document between two "---" */
    }
    if (type == WEFT_JSON_ARRAY) {
        items = root;
    } else if (type != WEFT_JSON_OBJECT) {
        return weft_json_error(root, err, "not a Node or a list of Nodes");
    } else {
        const int rc = weft_json_get_array(root, "items", &items, err);
        if (rc <= 0) {
            return rc < 0 ? rc : add_object(r, root, err);
        }
    }
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < weft_json_count(items); i++) {
        rc = add_object(r, weft_json_at(items, i), err);
    }
    return rc;
}

/* ---- names ---- */

static int read_names(struct reader *r, struct weft_str rest, struct weft_error *err)
{
    struct weft_str line = {0};
    bool table = false; /* `kubectl get nodes` without -o: the first column */
    while (weft_str_line(&rest, &line)) {
        r->line++;
        struct weft_str word = {0};
        struct weft_str more = {0};
        if (!weft_str_word(&line, &word) || word.data[0] == '#') {
            continue;
        }
        if (weft_str_eq(word, "NAME") && r->nodes->count == 0) {
            table = true;
            continue;
        }
        if (!table && weft_str_word(&line, &more) && more.data[0] != '#') {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "%s:%u: more than one word; expected a node name a line", r->file,
                                r->line);
        }
        if (weft_str_starts(word, "node/")) {
            word = (struct weft_str){word.data + 5, word.len - 5};
        }
        weft_autofree char *name = weft_strndup(word.data, word.len);
        struct weft_node *node = NULL;
        const int rc = name == NULL ? weft_err_nomem(err) : add(r, name, NULL, &node, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* ---- YAML ---- */

static int read_yaml_piece(struct reader *r, struct weft_str piece, struct weft_error *err)
{
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    weft_autofree char *name =
        r->line > 1 ? weft_asprintf("%s (from line %u)", r->file, r->line) : weft_strdup(r->file);
    if (name == NULL) {
        return weft_err_nomem(err);
    }
    const int rc = weft_yaml_parse(piece.data, piece.len, name, &root, err);
    return rc < 0 ? rc : add_document(r, root, err);
}

/* Where a text is cut: "---" ends a document wherever it stands at the start of a line, and in
 * kubectl's form each element of "items:" begins with "- " there; nothing inside an element does,
 * as YAML wants everything in a block indented. */
enum cut { CUT_NONE, CUT_DOCUMENT, CUT_ITEMS, CUT_ITEM, CUT_OTHER };

static enum cut cut_of(struct weft_str line)
{
    if (weft_str_starts(line, "---") && (line.len == 3 || line.data[3] == ' ')) {
        return CUT_DOCUMENT;
    }
    if (line.len == 0 || line.data[0] == ' ' || line.data[0] == '#' || line.data[0] == '\t') {
        return CUT_NONE;
    }
    if (weft_str_starts(line, "- ")) {
        return CUT_ITEM;
    }
    return weft_str_eq(weft_str_trim(line), "items:") ? CUT_ITEMS : CUT_OTHER;
}

struct cutter {
    struct reader *reader;
    const char *start; /* of the piece that is open, or NULL */
    bool items;        /* inside "items:" of a document */
    bool list;         /* the document has cut items: the rest of it holds no node */
};

static int close_piece(struct cutter *c, const char *end, struct weft_error *err)
{
    const struct weft_str piece = {c->start, c->start != NULL ? (size_t)(end - c->start) : 0};
    c->start = NULL;
    return piece.len > 0 ? read_yaml_piece(c->reader, piece, err) : 0;
}

static int at_line(struct cutter *c, const char *text, enum cut cut, unsigned line,
                   struct weft_error *err)
{
    int rc = 0;
    switch (cut) {
    case CUT_NONE:
        break;
    case CUT_DOCUMENT:
        rc = close_piece(c, text, err);
        c->items = false;
        c->list = false;
        return rc;
    case CUT_ITEMS:
        c->items = true;
        break;
    case CUT_ITEM:
        if (c->items) {
            /* what stood before the first is apiVersion, kind, metadata */
            rc = c->list ? close_piece(c, text, err) : 0;
            c->list = true;
            c->start = text;
            c->reader->line = line;
            return rc;
        }
        break;
    case CUT_OTHER:
        if (c->items) {
            rc = c->list ? close_piece(c, text, err) : 0;
            c->items = false;
        }
        break;
    }
    if (c->start == NULL && !c->list && cut != CUT_NONE) {
        c->start = text;
        c->reader->line = line;
    }
    return rc;
}

static int read_yaml(struct reader *r, struct weft_str text, struct weft_error *err)
{
    struct cutter c = {.reader = r};
    struct weft_str rest = text;
    struct weft_str line = {0};
    unsigned number = 0;
    while (weft_str_line(&rest, &line)) {
        const int rc = at_line(&c, line.data, cut_of(line), ++number, err);
        if (rc < 0) {
            return rc;
        }
    }
    return close_piece(&c, text.data + text.len, err);
}

/* ---- all ---- */

/* A list over this size is cut into its items, which costs the line numbers in errors. */
enum { WHOLE_MAX = 4 << 20, ITEM_MAX = 16 << 20 };

static int on_item(void *data, const char *text, size_t len, struct weft_error *err)
{
    struct reader *r = data;
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    weft_autofree char *name = weft_asprintf("%s item %u", r->file, ++r->line);
    const int rc =
        name == NULL ? weft_err_nomem(err) : weft_json_parse(text, len, name, &root, err);
    return rc < 0 ? rc : add_object(r, root, err);
}

/* One item at a time. *ret_items = 0: the text is one object. */
static int read_json_items(struct reader *r, struct weft_str text, unsigned *ret_items,
                           struct weft_error *err)
{
    const struct weft_json_split_sink sink = {.on_item = on_item, .data = r};
    weft_auto(weft_json_split_free) struct weft_json_split *split =
        weft_json_split_new(WEFT_JSON_SPLIT_LIST, ITEM_MAX, &sink);
    if (split == NULL) {
        return weft_err_nomem(err);
    }
    int rc = weft_json_split_feed(split, text.data, text.len, err);
    rc = rc < 0 ? rc : weft_json_split_end(split, err);
    *ret_items = r->line;
    r->line = 0;
    /* what is wrong with the text is the caller's -EINVAL */
    return rc < 0 && rc != -ENOMEM ? weft_err_wrap(err, -EINVAL, "%s", r->file) : rc;
}

static int read_json(struct reader *r, struct weft_str text, struct weft_error *err)
{
    unsigned items = 0;
    if (text.len > WHOLE_MAX && weft_str_trim(text).data[0] == '{') {
        const int rc = read_json_items(r, text, &items, err);
        if (rc < 0 || items > 0) {
            return rc;
        }
    }
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    const int rc = weft_json_parse(text.data, text.len, r->file, &root, err);
    return rc < 0 ? rc : add_document(r, root, err);
}

enum form { FORM_NAMES, FORM_JSON, FORM_YAML };

/* The first line with content tells: names hold no colon. */
static enum form form_of(struct weft_str rest)
{
    struct weft_str line = {0};
    while (weft_str_line(&rest, &line)) {
        line = weft_str_trim(line);
        if (line.len == 0 || line.data[0] == '#') {
            continue;
        }
        if (line.data[0] == '{' || line.data[0] == '[') {
            return FORM_JSON;
        }
        return weft_str_starts(line, "---") || memchr(line.data, ':', line.len) != NULL
                   ? FORM_YAML
                   : FORM_NAMES;
    }
    return FORM_NAMES;
}

int weft_nodes_parse(const char *text, size_t len, const char *name, struct weft_nodes *ret_nodes,
                     struct weft_error *err)
{
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    weft_auto(weft_map_free) struct weft_map *seen = weft_map_new(WEFT_NODES_MAX);
    struct reader r = {.nodes = &nodes, .seen = seen, .file = name};
    const struct weft_str whole = {text, len};
    if (seen == NULL) {
        return weft_err_nomem(err);
    }
    if (len > WEFT_NODES_TEXT_MAX) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "%s: larger than %d MiB", name,
                            (int)(WEFT_NODES_TEXT_MAX >> 20));
    }
    int rc = 0;
    switch (form_of(whole)) {
    case FORM_NAMES:
        rc = read_names(&r, whole, err);
        break;
    case FORM_JSON:
        rc = read_json(&r, whole, err);
        break;
    case FORM_YAML:
        rc = read_yaml(&r, whole, err);
        break;
    }
    if (rc == 0 && nodes.count == 0) {
        rc = weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s: no node in it", name);
    }
    if (rc == 0) {
        *ret_nodes = nodes;
        nodes = (struct weft_nodes){0};
    }
    return rc;
}
