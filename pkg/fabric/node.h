/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster's nodes as discovery needs them: name, uid and labels. The command line reads them
 * from a file, the controller fills them from its node cache; both then use the same functions.
 * Pure. */
#ifndef WEFT_FABRIC_NODE_H
#define WEFT_FABRIC_NODE_H

#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

enum {
    WEFT_NODES_MAX = 200000,
    WEFT_NODE_LABELS_MAX = 4096,
    /* `kubectl get nodes -o json` of 10,000 nodes is about 300 MB */
    WEFT_NODES_TEXT_MAX = 512 << 20
};

struct weft_label {
    char *key;
    char *value; /* never NULL; may be "" */
};

/* Functions that read nodes take a plain array of these, so that a cache may pass shallow copies
 * with only the labels that matter. */
struct weft_node {
    char *name; /* metadata.name: never the hostname label */
    char *uid;  /* "" if unknown */
    struct weft_label *labels;
    size_t label_count;
};

/* An owned list. */
struct weft_nodes {
    struct weft_node *items;
    size_t count;
    size_t cap;
};

void weft_node_done(struct weft_node *node);
WEFT_DEFINE_AUTO_VALUE(struct weft_node, weft_node_done)
void weft_nodes_done(struct weft_nodes *nodes);
WEFT_DEFINE_AUTO_VALUE(struct weft_nodes, weft_nodes_done)

/* The label's value, borrowed, or NULL if the node lacks it. */
const char *weft_node_label(const struct weft_node *node, const char *key);
/* Adds or replaces a label of an owned node (text is copied). 0, -ENOMEM, -EFBIG. */
int weft_node_set_label(struct weft_node *node, const char *key, const char *value)
    __attribute__((warn_unused_result));
/* Adds a node without labels (text is copied) and returns it, borrowed until the next add. uid may
 * be NULL. 0, -ENOMEM, -EFBIG. */
int weft_nodes_add(struct weft_nodes *nodes, const char *name, const char *uid,
                   struct weft_node **ret_node) __attribute__((warn_unused_result));

/* Reads a node list: a name a line ("node/NAME" too, # comments), or the JSON or YAML of
 * `kubectl get nodes` (Node, NodeList, List, several documents), item by item. name is the file's
 * name for errors. A node named twice is an error, as is a list without any node. On success the
 * caller owns *ret_nodes' content, in the order of the text. Errors: -EINVAL with file:line,
 * -EFBIG, -ENOMEM. */
int weft_nodes_parse(const char *text, size_t len, const char *name, struct weft_nodes *ret_nodes,
                     struct weft_error *err) __attribute__((warn_unused_result));

#endif
