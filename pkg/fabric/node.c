/* SPDX-License-Identifier: Apache-2.0 */
/* The node list: adding, looking up and freeing. */
#include "pkg/fabric/node.h"

#include <errno.h>
#include <string.h>

void weft_node_done(struct weft_node *node)
{
    if (node == NULL) {
        return;
    }
    for (size_t i = 0; i < node->label_count; i++) {
        weft_free(node->labels[i].key);
        weft_free(node->labels[i].value);
    }
    weft_free(node->labels);
    weft_free(node->name);
    weft_free(node->uid);
    *node = (struct weft_node){0};
}

void weft_nodes_done(struct weft_nodes *nodes)
{
    if (nodes == NULL) {
        return;
    }
    for (size_t i = 0; i < nodes->count; i++) {
        weft_node_done(&nodes->items[i]);
    }
    weft_free(nodes->items);
    *nodes = (struct weft_nodes){0};
}

static struct weft_label *find_label(const struct weft_node *node, const char *key)
{
    for (size_t i = 0; i < node->label_count; i++) {
        if (strcmp(node->labels[i].key, key) == 0) {
            return &node->labels[i];
        }
    }
    return NULL;
}

const char *weft_node_label(const struct weft_node *node, const char *key)
{
    const struct weft_label *label = find_label(node, key);
    return label != NULL ? label->value : NULL;
}

int weft_node_set_label(struct weft_node *node, const char *key, const char *value)
{
    weft_autofree char *copy = weft_strdup(value);
    struct weft_label *label = find_label(node, key);
    if (copy == NULL) {
        return -ENOMEM;
    }
    if (label != NULL) {
        weft_free(label->value);
        label->value = weft_steal(&copy);
        return 0;
    }
    if (node->label_count >= WEFT_NODE_LABELS_MAX) {
        return -EFBIG;
    }
    /* room for a power of two: the struct has no capacity of its own, as caches fill it in too */
    const size_t count = node->label_count;
    if ((count & (count - 1)) == 0) {
        void *bigger =
            weft_reallocarray(node->labels, count == 0 ? 1 : 2 * count, sizeof(*node->labels));
        if (bigger == NULL) {
            return -ENOMEM;
        }
        node->labels = bigger;
    }
    char *key_copy = weft_strdup(key);
    if (key_copy == NULL) {
        return -ENOMEM;
    }
    node->labels[node->label_count++] = (struct weft_label){key_copy, weft_steal(&copy)};
    return 0;
}

int weft_nodes_add(struct weft_nodes *nodes, const char *name, const char *uid,
                   struct weft_node **ret_node)
{
    void *list = nodes->items;
    const int rc = weft_array_reserve(&list, &nodes->cap, nodes->count + 1, sizeof(*nodes->items),
                                      WEFT_NODES_MAX);
    nodes->items = list;
    if (rc < 0) {
        return rc;
    }
    struct weft_node node = {.name = weft_strdup(name), .uid = weft_strdup(uid != NULL ? uid : "")};
    if (node.name == NULL || node.uid == NULL) {
        weft_node_done(&node);
        return -ENOMEM;
    }
    nodes->items[nodes->count] = node;
    *ret_node = &nodes->items[nodes->count++];
    return 0;
}
