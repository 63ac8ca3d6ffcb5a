/* SPDX-License-Identifier: Apache-2.0 */
/* Reads topology.yaml (Slurm 24.05 and later: a list of named topologies, of which weft reads one)
 * and topograph's cluster model, which is the same tree in other words. */
#include <errno.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/fabric/document-internal.h"
#include "pkg/fabric/slurm-internal.h"
#include "pkg/json/json.h"
#include "pkg/yaml/yaml.h"

enum { LIST_MAX = 160, NODES_TEXT_MAX = 16 << 20 };

static int too_large(const char *source, struct weft_error *err)
{
    return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "%s: larger than %d MiB", source,
                        (int)(WEFT_SLURM_TEXT_MAX >> 20));
}

/* ---- which topology ---- */

static const char *name_of(const struct weft_json *topology)
{
    const char *name = weft_json_string(weft_json_get(topology, "topology"));
    return name != NULL ? name : "";
}

static int no_such(const struct weft_json *root, const char *name, struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf list;
    weft_buf_init(&list, LIST_MAX);
    for (size_t i = 0; i < weft_json_count(root); i++) {
        (void)weft_buf_printf(&list, "%s%s", i > 0 ? ", " : "", name_of(weft_json_at(root, i)));
    }
    return weft_json_error(root, err, "no topology \"%.40s\"; there are %s", name,
                           weft_buf_text(&list));
}

/* By name; else the cluster's default; else the first (topology.yaml(5)). */
static int choose(const struct weft_json *root, const char *name,
                  const struct weft_json **ret_topology, struct weft_error *err)
{
    const struct weft_json *chosen = NULL;
    for (size_t i = 0; i < weft_json_count(root); i++) {
        const struct weft_json *one = weft_json_at(root, i);
        bool is_default = false;
        const int rc = weft_json_get_bool(one, "cluster_default", &is_default, err);
        if (rc < 0) {
            return rc;
        }
        if (name_of(one)[0] == '\0') {
            return weft_json_error(one, err, "a topology without a name (topology: …)");
        }
        for (size_t j = 0; j < i; j++) {
            if (strcmp(name_of(weft_json_at(root, j)), name_of(one)) == 0) {
                return weft_json_error(one, err, "topology %.60s is there twice", name_of(one));
            }
        }
        if (chosen == NULL && (name != NULL ? strcmp(name, name_of(one)) == 0 : is_default)) {
            chosen = one;
        }
    }
    if (chosen == NULL && name != NULL) {
        return no_such(root, name, err);
    }
    *ret_topology = chosen != NULL ? chosen : weft_json_at(root, 0);
    return 0;
}

/* ---- its content ---- */

/* A list's member, which must be there. */
static int get_list(const struct weft_json *object, const char *key,
                    const struct weft_json **ret_list, struct weft_error *err)
{
    const int rc = weft_json_get_array(object, key, ret_list, err);
    return rc == 0 ? weft_json_error(object, err, "lacks the list %s", key) : (rc < 0 ? rc : 0);
}

static int read_items(struct weft_slurm_topo *topo, const struct weft_json *list,
                      const char *name_key, struct weft_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < weft_json_count(list); i++) {
        const struct weft_json *item = weft_json_at(list, i);
        struct weft_doc_text name = {0};
        struct weft_doc_text nodes = {0};
        struct weft_doc_text children = {0};
        rc = weft_doc_get_text(item, name_key, &name, err);
        rc = rc < 0 ? rc : weft_doc_get_text(item, "nodes", &nodes, err);
        rc = rc < 0 ? rc : weft_doc_get_text(item, "children", &children, err);
        rc = rc < 0 ? rc
                    : weft_slurm_topo_add(topo, name.text, nodes.text, children.text,
                                          weft_json_line(item), err);
    }
    return rc;
}

static int read_block_sizes(struct weft_slurm_topo *topo, const struct weft_json *block,
                            struct weft_error *err)
{
    const struct weft_json *sizes = NULL;
    int rc = weft_json_get_array(block, "block_sizes", &sizes, err);
    rc = rc < 0 ? rc : 0;
    for (size_t i = 0; rc == 0 && i < weft_json_count(sizes); i++) {
        const struct weft_json *size = weft_json_at(sizes, i);
        if (weft_json_type(size) != WEFT_JSON_INT || weft_json_int(size, 0) <= 0) {
            return weft_json_error(size, err, "a block size must be a positive number");
        }
        rc =
            weft_slurm_topo_size(topo, (uint64_t)weft_json_int(size, 0), weft_json_line(size), err);
    }
    return rc;
}

static int read_topology(struct weft_slurm_topo *topo, const struct weft_json *topology,
                         struct weft_error *err)
{
    static const char *const others[] = {"flat", "ring", "torus3d"};
    const struct weft_json *tree = NULL;
    const struct weft_json *block = NULL;
    const struct weft_json *list = NULL;
    int rc = weft_json_get_object(topology, "tree", &tree, err);
    rc = rc < 0 ? rc : weft_json_get_object(topology, "block", &block, err);
    if (rc < 0) {
        return rc;
    }
    if (tree != NULL && block != NULL) {
        return weft_json_error(topology, err, "topology %.60s is a tree and a block topology",
                               name_of(topology));
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(others); i++) {
        if (weft_json_get(topology, others[i]) != NULL) {
            return weft_json_error(topology, err,
                                   "topology %.60s is of the kind %s, which has no groups; name a "
                                   "tree or block topology",
                                   name_of(topology), others[i]);
        }
    }
    if (tree == NULL && block == NULL) {
        return weft_json_error(topology, err, "topology %.60s has no tree and no block",
                               name_of(topology));
    }
    topo->blocks = block != NULL;
    rc = get_list(tree != NULL ? tree : block, tree != NULL ? "switches" : "blocks", &list, err);
    rc = rc == 0 && block != NULL ? read_block_sizes(topo, block, err) : rc;
    return rc == 0 ? read_items(topo, list, tree != NULL ? "switch" : "block", err) : rc;
}

int weft_parse_slurm_yaml(const char *text, size_t len, const char *source,
                          const struct weft_slurm_options *options,
                          struct weft_declared **ret_declared, struct weft_error *err)
{
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    weft_auto(weft_slurm_topo_done) struct weft_slurm_topo topo = {.source = source,
                                                                   .options = options};
    const struct weft_json *topology = NULL;
    if (len > WEFT_SLURM_TEXT_MAX) {
        return too_large(source, err);
    }
    int rc = weft_yaml_parse(text, len, source, &root, err);
    if (rc == 0 && (weft_json_type(root) != WEFT_JSON_ARRAY || weft_json_count(root) == 0)) {
        rc = weft_json_error(root, err, "a topology.yaml is a list of topologies");
    }
    rc = rc < 0 ? rc : choose(root, options != NULL ? options->topology : NULL, &topology, err);
    rc = rc < 0 ? rc : read_topology(&topo, topology, err);
    rc = rc < 0 ? rc : weft_doc_check_end((struct weft_str){text, len}, source, err);
    return rc < 0 ? rc : weft_slurm_topo_finish(&topo, ret_declared, err);
}

/* ---- topograph's model ---- */

/* A list of strings as one hostlist; a string alone is one already. */
static int join_texts(const struct weft_json *list, struct weft_buf *buf, struct weft_error *err)
{
    struct weft_doc_text text = {0};
    weft_buf_reset(buf);
    if (weft_json_type(list) != WEFT_JSON_ARRAY) {
        const int rc = weft_doc_text_of(list, &text, err);
        (void)weft_buf_append(buf, text.text.data, rc < 0 ? 0 : text.text.len);
        return rc;
    }
    for (size_t i = 0; i < weft_json_count(list); i++) {
        const int rc = weft_doc_text_of(weft_json_at(list, i), &text, err);
        if (rc < 0) {
            return rc;
        }
        (void)weft_buf_puts(buf, i > 0 ? "," : "");
        (void)weft_buf_append(buf, text.text.data, text.text.len);
    }
    if (buf->status == -EFBIG) {
        return weft_json_error(list, err, "a list of more than 16 MiB");
    }
    return buf->status < 0 ? weft_err_nomem(err) : 0;
}

static int read_model_switches(struct weft_slurm_topo *topo, const struct weft_json *switches,
                               struct weft_buf *buf, struct weft_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < weft_json_count(switches); i++) {
        const struct weft_json *item = weft_json_at(switches, i);
        const struct weft_json *children = NULL;
        rc = weft_json_get_array(item, "switches", &children, err);
        rc = rc < 0 ? rc : join_texts(children, buf, err);
        rc = rc < 0 ? rc
                    : weft_slurm_topo_add(topo, weft_str(weft_json_key(item)), (struct weft_str){0},
                                          weft_str(weft_buf_text(buf)), weft_json_line(item), err);
    }
    return rc;
}

static int read_model_blocks(struct weft_slurm_topo *topo, const struct weft_json *blocks,
                             struct weft_buf *buf, struct weft_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < weft_json_count(blocks); i++) {
        const struct weft_json *item = weft_json_at(blocks, i);
        struct weft_doc_text name = {0};
        rc = weft_doc_get_text(item, "switch", &name, err);
        rc = rc < 0 ? rc : join_texts(weft_json_get(item, "nodes"), buf, err);
        rc = rc < 0 ? rc
                    : weft_slurm_topo_add(topo, name.text, weft_str(weft_buf_text(buf)),
                                          (struct weft_str){0}, weft_json_line(item), err);
    }
    return rc;
}

int weft_parse_topograph_model(const char *text, size_t len, const char *source,
                               const struct weft_slurm_options *options,
                               struct weft_declared **ret_declared, struct weft_error *err)
{
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_auto(weft_slurm_topo_done) struct weft_slurm_topo topo = {
        .source = source, .options = options, .implied = true};
    const struct weft_json *switches = NULL;
    const struct weft_json *blocks = NULL;
    weft_buf_init(&buf, NODES_TEXT_MAX);
    if (len > WEFT_SLURM_TEXT_MAX) {
        return too_large(source, err);
    }
    int rc = weft_yaml_parse(text, len, source, &root, err);
    rc = rc < 0 ? rc : weft_json_get_object(root, "switches", &switches, err);
    rc = rc < 0 ? rc : get_list(root, "blocks", &blocks, err);
    rc = rc < 0 ? rc : read_model_switches(&topo, switches, &buf, err);
    rc = rc < 0 ? rc : read_model_blocks(&topo, blocks, &buf, err);
    rc = rc < 0 ? rc : weft_doc_check_end((struct weft_str){text, len}, source, err);
    return rc < 0 ? rc : weft_slurm_topo_finish(&topo, ret_declared, err);
}
