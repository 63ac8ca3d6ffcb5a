/* SPDX-License-Identifier: Apache-2.0 */
/* HyperNode manifests: YAML written through the document type (so that strings are quoted the one
 * safe way), and streams of YAML or JSON documents read back. */
#include "pkg/hypernode/manifest.h"

#include <errno.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/json/json.h"
#include "pkg/yaml/yaml.h"

/* Room for one object as JSON text: more than the API server would take. */
enum { OBJECT_MAX = 8 << 20 };

static int to_document(const struct weft_hypernode *hn, const char *prefix,
                       struct weft_json **ret_root)
{
    weft_auto(weft_buf_done) struct weft_buf text = {0};
    weft_buf_init(&text, OBJECT_MAX);
    struct weft_json_writer w;
    weft_json_writer_init(&w, &text, 0);
    weft_hypernode_to_json(hn, prefix, false, &w);
    if (text.status < 0) {
        return text.status;
    }
    return weft_json_parse(weft_buf_text(&text), text.len, hn->name, ret_root, NULL);
}

int weft_hypernode_write_yaml(const struct weft_hypernode *hn, const char *prefix,
                              struct weft_buf *buf)
{
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    const int rc = to_document(hn, prefix, &root);
    if (rc < 0) {
        return rc;
    }
    weft_yaml_write(root, buf);
    return buf->status;
}

int weft_hypernodes_write_yaml(const struct weft_hypernode_set *set, const char *prefix,
                               struct weft_buf *buf)
{
    weft_autofree struct weft_hypernode_ref *order = weft_hypernode_set_ascending(set);
    if (order == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < set->count; i++) {
        (void)weft_buf_puts(buf, "---\n");
        const int rc = weft_hypernode_write_yaml(order[i].hn, prefix, buf);
        if (rc < 0) {
            return rc;
        }
    }
    return buf->status;
}

/* ---- reading ---- */

struct reader {
    const char *prefix;
    struct weft_hypernode_set *set;
    struct weft_manifest_counts counts;
};

static int read_object(struct reader *r, const struct weft_json *object, struct weft_error *err)
{
    weft_auto(weft_hypernode_done) struct weft_hypernode hn = {0};
    int rc = weft_hypernode_from_json(object, r->prefix, &hn, err);
    if (rc < 0) {
        return rc;
    }
    if (weft_hypernode_set_find(r->set, hn.name, NULL)) {
        (void)weft_json_error(object, err, "HyperNode %.64s is there twice", hn.name);
        return -EEXIST;
    }
    rc = weft_hypernode_set_put(r->set, &hn);
    if (rc == -EFBIG) {
        return weft_err_set(err, rc, WEFT_ERR_CONFIG, "more than %d HyperNodes",
                            WEFT_HYPERNODES_MAX);
    }
    return rc < 0 ? weft_err_nomem(err) : 0;
}

static bool is_list(const char *kind)
{
    return strcmp(kind, "List") == 0 || strcmp(kind, "HyperNodeList") == 0;
}

/* One document, or one item of a list (items of a HyperNodeList need not name their kind). */
static int read_document(struct reader *r, const struct weft_json *doc, const char *default_kind,
                         struct weft_error *err)
{
    if (weft_json_type(doc) == WEFT_JSON_NULL) {
        return 0;
    }
    if (weft_json_type(doc) != WEFT_JSON_OBJECT) {
        return weft_json_error(doc, err, "not a Kubernetes object");
    }
    const char *kind = default_kind;
    const int rc = weft_json_get_string(doc, "kind", &kind, err);
    if (rc < 0) {
        return rc;
    }
    if (strcmp(kind, "HyperNode") == 0) {
        return read_object(r, doc, err);
    }
    r->counts.skipped += weft_json_count(doc) > 0;
    return 0;
}

static int read_list(struct reader *r, const struct weft_json *list, const char *kind,
                     struct weft_error *err)
{
    const struct weft_json *items = NULL;
    int rc = weft_json_get_array(list, "items", &items, err);
    if (rc >= 0 && weft_json_get(list, "items") != NULL && weft_json_count(items) == 0) {
        r->counts.empty_lists++;
    }
    const char *item_kind = strcmp(kind, "HyperNodeList") == 0 ? "HyperNode" : "";
    for (size_t i = 0; rc >= 0 && i < weft_json_count(items); i++) {
        rc = read_document(r, weft_json_at(items, i), item_kind, err);
    }
    return rc < 0 ? rc : 0;
}

static int read_top(struct reader *r, const struct weft_json *doc, struct weft_error *err)
{
    const char *kind = "";
    if (weft_json_type(doc) == WEFT_JSON_OBJECT) {
        const int rc = weft_json_get_string(doc, "kind", &kind, err);
        if (rc < 0) {
            return rc;
        }
    }
    return is_list(kind) ? read_list(r, doc, kind, err) : read_document(r, doc, "", err);
}

int weft_hypernodes_read(const struct weft_manifest_text *source, struct weft_hypernode_set *set,
                         struct weft_manifest_counts *ret_counts, struct weft_error *err)
{
    weft_auto(weft_json_free) struct weft_json *docs = NULL;
    int rc = weft_yaml_parse_all(source->text, source->len, source->name, &docs, err);
    if (rc < 0) {
        return rc;
    }
    struct reader r = {.prefix = source->prefix, .set = set};
    for (size_t i = 0; rc >= 0 && i < weft_json_count(docs); i++) {
        rc = read_top(&r, weft_json_at(docs, i), err);
    }
    if (ret_counts != NULL) {
        *ret_counts = r.counts;
    }
    return rc < 0 ? rc : 0;
}
