/* SPDX-License-Identifier: Apache-2.0 */
/* HyperNode objects from and to JSON documents. Reading is lenient where the API server already
 * was strict (lint says what is odd), and strict where a wrong guess would lose a member. */
#include <errno.h>
#include <string.h>

#include "pkg/hypernode/hypernode.h"
#include "pkg/base/buf.h"
#include "pkg/json/json.h"

/* The longest name or text that Kubernetes takes in the places read here. */
enum { NAME_MAX_BYTES = 253, LABEL_MAX_BYTES = 63, IDENTITY_MAX_BYTES = 256 * 1024 };

static int check_kind(const struct weft_json *object, struct weft_error *err)
{
    if (weft_json_type(object) != WEFT_JSON_OBJECT) {
        return weft_json_error(object, err, "a HyperNode must be an object");
    }
    const char *kind = "HyperNode"; /* items of a list from the API server have neither */
    const char *version = WEFT_HYPERNODE_API_VERSION;
    int rc = weft_json_get_string(object, "kind", &kind, err);
    if (rc < 0) {
        return rc;
    }
    rc = weft_json_get_string(object, "apiVersion", &version, err);
    if (rc < 0) {
        return rc;
    }
    if (strcmp(kind, "HyperNode") != 0 || strcmp(version, WEFT_HYPERNODE_API_VERSION) != 0) {
        return weft_json_error(object, err,
                               "is %.64s %.64s, not " WEFT_HYPERNODE_API_VERSION " HyperNode",
                               version, kind);
    }
    return 0;
}

/* *field = the member's text, "" if it is absent. */
static int read_text(const struct weft_json *object, const char *key, size_t max, char **field,
                     struct weft_error *err)
{
    const char *text = "";
    const int rc = weft_json_get_string(object, key, &text, err);
    if (rc < 0) {
        return rc;
    }
    if (strlen(text) > max) {
        return weft_json_error(weft_json_get(object, key), err, "longer than %zu bytes", max);
    }
    return weft_hypernode_set_text(field, text) < 0 ? weft_err_nomem(err) : 0;
}

static int read_labels(const struct weft_json *metadata, struct weft_hypernode *hn,
                       struct weft_error *err)
{
    const struct weft_json *labels = NULL;
    int rc = weft_json_get_object(metadata, "labels", &labels, err);
    if (rc < 0) {
        return rc;
    }
    rc = read_text(labels, WEFT_LABEL_SOURCE, LABEL_MAX_BYTES, &hn->source, err);
    if (rc < 0) {
        return rc;
    }
    rc = read_text(labels, WEFT_LABEL_MANAGED_BY, LABEL_MAX_BYTES, &hn->managed_by, err);
    if (rc < 0) {
        return rc;
    }
    return read_text(labels, WEFT_LABEL_INSTANCE, LABEL_MAX_BYTES, &hn->instance, err);
}

static int read_identity(const struct weft_json *metadata, const char *prefix,
                         struct weft_hypernode *hn, struct weft_error *err)
{
    const struct weft_json *annotations = NULL;
    const int rc = weft_json_get_object(metadata, "annotations", &annotations, err);
    if (rc < 0) {
        return rc;
    }
    weft_autofree char *key = weft_asprintf("%sidentity", prefix);
    if (key == NULL) {
        return weft_err_nomem(err);
    }
    return read_text(annotations, key, IDENTITY_MAX_BYTES, &hn->identity, err);
}

/* ---- what others put on the object ---- */

enum { OTHERS_BYTES_MAX = 512 * 1024 };

static bool is_ours(const char *key, const char *identity_key)
{
    return strcmp(key, WEFT_LABEL_SOURCE) == 0 || strcmp(key, WEFT_LABEL_MANAGED_BY) == 0 ||
           strcmp(key, WEFT_LABEL_INSTANCE) == 0 || strcmp(key, identity_key) == 0;
}

/* Labels or annotations that are not ours. true if there are any. */
static bool put_other_texts(const struct weft_json *metadata, const char *field,
                            const char *identity_key, struct weft_json_writer *w)
{
    const struct weft_json *all = weft_json_get(metadata, field);
    bool any = false;
    for (size_t i = 0; i < weft_json_count(all); i++) {
        const struct weft_json *text = weft_json_at(all, i);
        if (weft_json_string(text) == NULL || is_ours(weft_json_key(text), identity_key)) {
            continue;
        }
        if (!any) {
            weft_json_put_key(w, field);
            weft_json_open(w, '{');
        }
        any = true;
        weft_json_kv_string(w, weft_json_key(text), weft_json_string(text));
    }
    if (any) {
        weft_json_close(w, '}');
    }
    return any;
}

static bool put_list(const struct weft_json *metadata, const char *field,
                     struct weft_json_writer *w)
{
    const struct weft_json *list = weft_json_get(metadata, field);
    if (weft_json_count(list) == 0) {
        return false;
    }
    weft_json_put_key(w, field);
    weft_json_put_node(w, list);
    return true;
}

static int read_others(const struct weft_json *metadata, const char *prefix,
                       struct weft_hypernode *hn, struct weft_error *err)
{
    weft_autofree char *key = weft_asprintf("%sidentity", prefix);
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, OTHERS_BYTES_MAX);
    if (key == NULL) {
        return weft_err_nomem(err);
    }
    struct weft_json_writer w;
    weft_json_writer_init(&w, &buf, 0);
    weft_json_open(&w, '{');
    bool any = put_other_texts(metadata, "labels", key, &w);
    any = put_other_texts(metadata, "annotations", key, &w) || any;
    any = put_list(metadata, "finalizers", &w) || any;
    any = put_list(metadata, "ownerReferences", &w) || any;
    weft_json_close(&w, '}');
    if (buf.status < 0) {
        return weft_err_errno(err, -buf.status, "HyperNode %.64s: metadata", hn->name);
    }
    return weft_hypernode_set_text(&hn->others, any ? weft_buf_text(&buf) : "") < 0
               ? weft_err_nomem(err)
               : 0;
}

static int read_metadata(const struct weft_json *object, const char *prefix,
                         struct weft_hypernode *hn, struct weft_error *err)
{
    const struct weft_json *metadata = NULL;
    int rc = weft_json_get_object(object, "metadata", &metadata, err);
    if (rc < 0) {
        return rc;
    }
    rc = read_text(metadata, "name", NAME_MAX_BYTES, &hn->name, err);
    if (rc < 0) {
        return rc;
    }
    if (hn->name[0] == '\0') {
        return weft_json_error(rc == 0 && metadata == NULL ? object : metadata, err,
                               "metadata.name is missing");
    }
    rc = read_text(metadata, "uid", NAME_MAX_BYTES, &hn->uid, err);
    if (rc < 0) {
        return rc;
    }
    rc = read_text(metadata, "resourceVersion", NAME_MAX_BYTES, &hn->resource_version, err);
    if (rc < 0) {
        return rc;
    }
    const char *deletion = NULL;
    rc = weft_json_get_string(metadata, "deletionTimestamp", &deletion, err);
    if (rc < 0) {
        return rc;
    }
    hn->terminating = deletion != NULL;
    rc = read_labels(metadata, hn, err);
    rc = rc < 0 ? rc : read_identity(metadata, prefix, hn, err);
    return rc < 0 ? rc : read_others(metadata, prefix, hn, err);
}

/* The one selector of a member: its kind and text. */
static int read_selector(const struct weft_json *member, enum weft_selector *ret_selector,
                         const char **ret_name, struct weft_error *err)
{
    const struct weft_json *selector = NULL;
    int rc = weft_json_get_object(member, "selector", &selector, err);
    if (rc < 0) {
        return rc;
    }
    static const char *const kinds[] = {"exactMatch", "regexMatch", "labelMatch"};
    static const char *const fields[] = {"name", "pattern", NULL};
    size_t found = 0;
    *ret_selector = WEFT_SELECTOR_NONE;
    *ret_name = "";
    for (size_t i = 0; i < WEFT_ARRAY_LEN(kinds); i++) {
        const struct weft_json *match = NULL;
        rc = weft_json_get_object(selector, kinds[i], &match, err);
        if (rc < 0) {
            return rc;
        }
        if (match == NULL) {
            continue;
        }
        found++;
        *ret_selector = (enum weft_selector)i;
        rc = fields[i] != NULL ? weft_json_get_string(match, fields[i], ret_name, err) : 0;
        if (rc < 0) {
            return rc;
        }
    }
    return found > 1 ? weft_json_error(selector, err, "more than one kind of selector") : 0;
}

static int read_member(const struct weft_json *member, struct weft_hypernode *hn,
                       struct weft_error *err)
{
    if (weft_json_type(member) != WEFT_JSON_OBJECT) {
        return weft_json_error(member, err, "a member must be an object");
    }
    const char *type = "";
    int rc = weft_json_get_string(member, "type", &type, err);
    if (rc < 0) {
        return rc;
    }
    const bool is_node = strcmp(type, "Node") == 0;
    if (!is_node && strcmp(type, "HyperNode") != 0) {
        return weft_json_error(member, err, "type is \"%.64s\", not Node or HyperNode", type);
    }
    enum weft_selector selector;
    const char *name;
    rc = read_selector(member, &selector, &name, err);
    if (rc < 0) {
        return rc;
    }
    rc = weft_hypernode_add_member(hn, is_node ? WEFT_MEMBER_NODE : WEFT_MEMBER_HYPERNODE, selector,
                                   name);
    if (rc == -EFBIG) {
        return weft_err_set(err, rc, WEFT_ERR_CONFIG, "HyperNode %.64s has more than %d members",
                            hn->name, WEFT_HYPERNODE_MEMBERS_MAX);
    }
    return rc < 0 ? weft_err_nomem(err) : 0;
}

static int read_spec(const struct weft_json *object, struct weft_hypernode *hn,
                     struct weft_error *err)
{
    const struct weft_json *spec = NULL;
    int rc = weft_json_get_object(object, "spec", &spec, err);
    if (rc < 0) {
        return rc;
    }
    rc = weft_json_get_int(spec, "tier", 0, INT64_MAX - 1, &hn->tier, err);
    if (rc <= 0) {
        return rc < 0 ? rc
                      : weft_json_error(spec == NULL ? object : spec, err,
                                        "spec.tier of HyperNode %.64s is missing", hn->name);
    }
    rc = read_text(spec, "tierName", NAME_MAX_BYTES, &hn->tier_name, err);
    if (rc < 0) {
        return rc;
    }
    const struct weft_json *members = NULL;
    rc = weft_json_get_array(spec, "members", &members, err);
    for (size_t i = 0; rc >= 0 && i < weft_json_count(members); i++) {
        rc = read_member(weft_json_at(members, i), hn, err);
    }
    return rc < 0 ? rc : 0;
}

int weft_hypernode_from_json(const struct weft_json *object, const char *prefix,
                             struct weft_hypernode *ret_hn, struct weft_error *err)
{
    weft_auto(weft_hypernode_done) struct weft_hypernode hn = {0};
    int rc = check_kind(object, err);
    rc = rc < 0 ? rc : read_metadata(object, prefix, &hn, err);
    rc = rc < 0 ? rc : read_spec(object, &hn, err);
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 1; i < hn.member_count; i++) {
        hn.reordered = hn.reordered || weft_member_cmp(&hn.members[i - 1], &hn.members[i]) >= 0;
    }
    weft_hypernode_sort(&hn);
    *ret_hn = hn;
    hn = (struct weft_hypernode){0};
    return 0;
}

/* ---- writing ---- */

static void put_text(struct weft_json_writer *w, const char *key, const char *text)
{
    if (text != NULL && text[0] != '\0') {
        weft_json_kv_string(w, key, text);
    }
}

static bool has_text(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static void put_texts(struct weft_json_writer *w, const struct weft_json *texts)
{
    for (size_t i = 0; i < weft_json_count(texts); i++) {
        const struct weft_json *text = weft_json_at(texts, i);
        weft_json_kv_string(w, weft_json_key(text), weft_json_string(text));
    }
}

static void put_labels(const struct weft_hypernode *hn, const struct weft_json *others,
                       struct weft_json_writer *w)
{
    const bool ours = has_text(hn->source) || has_text(hn->managed_by) || has_text(hn->instance);
    if (!ours && weft_json_count(others) == 0) {
        return;
    }
    weft_json_put_key(w, "labels");
    weft_json_open(w, '{');
    put_text(w, WEFT_LABEL_INSTANCE, hn->instance);
    put_text(w, WEFT_LABEL_MANAGED_BY, hn->managed_by);
    put_text(w, WEFT_LABEL_SOURCE, hn->source);
    put_texts(w, others);
    weft_json_close(w, '}');
}

static int put_annotations(const struct weft_hypernode *hn, const char *prefix,
                           const struct weft_json *others, struct weft_json_writer *w)
{
    if (!has_text(hn->identity) && weft_json_count(others) == 0) {
        return 0;
    }
    weft_autofree char *key = weft_asprintf("%sidentity", prefix);
    if (key == NULL) {
        return -ENOMEM;
    }
    weft_json_put_key(w, "annotations");
    weft_json_open(w, '{');
    put_text(w, key, hn->identity);
    put_texts(w, others);
    weft_json_close(w, '}');
    return 0;
}

static int put_metadata(const struct weft_hypernode *hn, const char *prefix, bool with_version,
                        struct weft_json_writer *w)
{
    weft_auto(weft_json_free) struct weft_json *others = NULL;
    if (with_version && has_text(hn->others)) {
        const int rc = weft_json_parse(hn->others, strlen(hn->others), "metadata", &others, NULL);
        if (rc < 0) {
            return rc;
        }
    }
    weft_json_put_key(w, "metadata");
    weft_json_open(w, '{');
    weft_json_kv_string(w, "name", hn->name);
    if (with_version) {
        put_text(w, "uid", hn->uid);
        put_text(w, "resourceVersion", hn->resource_version);
    }
    put_labels(hn, weft_json_get(others, "labels"), w);
    const int rc = put_annotations(hn, prefix, weft_json_get(others, "annotations"), w);
    (void)put_list(others, "finalizers", w);
    (void)put_list(others, "ownerReferences", w);
    weft_json_close(w, '}');
    return rc;
}

static void put_member(const struct weft_member *m, struct weft_json_writer *w)
{
    weft_json_open(w, '{');
    weft_json_kv_string(w, "type", m->type == WEFT_MEMBER_NODE ? "Node" : "HyperNode");
    static const char *const kinds[] = {"exactMatch", "regexMatch", "labelMatch", NULL};
    if (kinds[m->selector] != NULL) {
        weft_json_put_key(w, "selector");
        weft_json_open(w, '{');
        weft_json_put_key(w, kinds[m->selector]);
        weft_json_open(w, '{');
        if (m->selector != WEFT_SELECTOR_LABEL) {
            weft_json_kv_string(w, m->selector == WEFT_SELECTOR_EXACT ? "name" : "pattern",
                                m->name);
        }
        weft_json_close(w, '}');
        weft_json_close(w, '}');
    }
    weft_json_close(w, '}');
}

void weft_hypernode_to_json(const struct weft_hypernode *hn, const char *prefix, bool with_version,
                            struct weft_json_writer *w)
{
    weft_json_open(w, '{');
    weft_json_kv_string(w, "apiVersion", WEFT_HYPERNODE_API_VERSION);
    weft_json_kv_string(w, "kind", "HyperNode");
    const int rc = put_metadata(hn, prefix, with_version, w);
    w->buf->status = w->buf->status == 0 && rc < 0 ? rc : w->buf->status;
    weft_json_put_key(w, "spec");
    weft_json_open(w, '{');
    weft_json_kv_int(w, "tier", hn->tier);
    put_text(w, "tierName", hn->tier_name);
    weft_json_put_key(w, "members");
    weft_json_open(w, '[');
    for (size_t i = 0; i < hn->member_count; i++) {
        put_member(&hn->members[i], w);
    }
    weft_json_close(w, ']');
    weft_json_close(w, '}');
    weft_json_close(w, '}');
}
