/* SPDX-License-Identifier: Apache-2.0 */
/* The Nodes that exist. Must not judge them: selection and places are discovery's. */
#include <errno.h>
#include <string.h>

#include "controller/view.h"
#include "pkg/base/intern.h"
#include "pkg/base/map.h"
#include "pkg/base/str.h"
#include "pkg/fabric/selector.h"
#include "pkg/kube/meta.h"
#include "pkg/source/config.h"

/* Texts: a leaf has some nodes, and so does each value; keys are few. A node with values of its own
 * on every tier has 16 of ours and 16 of others'. */
enum { KEYS_MAX = 1024, TEXTS_MAX = 32 * WEFT_NODES_MAX };

/* Frees what take_node made. */
static void drop_node(struct weft_view_nodes *nodes, struct weft_node *node)
{
    for (size_t i = 0; i < node->label_count; i++) {
        weft_intern_unref(nodes->texts, node->labels[i].key);
        weft_intern_unref(nodes->texts, node->labels[i].value);
    }
    weft_free(node->labels); /* the name and uid are in the same piece */
    *node = (struct weft_node){0};
}

int weft_view_nodes_init(struct weft_view_nodes *nodes, const char *prefix)
{
    *nodes = (struct weft_view_nodes){.prefix = weft_strdup(prefix),
                                      .index = weft_map_new(WEFT_NODES_MAX),
                                      .texts = weft_intern_new(TEXTS_MAX)};
    if (nodes->prefix == NULL || nodes->index == NULL || nodes->texts == NULL) {
        weft_view_nodes_done(nodes);
        return -ENOMEM;
    }
    return 0;
}

static void keys_done(char **keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        weft_free(keys[i]);
    }
    weft_free(keys);
}

void weft_view_nodes_done(struct weft_view_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++) {
        drop_node(nodes, &nodes->items[i].node);
        weft_free(nodes->items[i].instance);
    }
    weft_free(nodes->items);
    keys_done(nodes->keys, nodes->key_count);
    weft_map_free(nodes->index);
    weft_intern_free(nodes->texts);
    weft_free(nodes->prefix);
    *nodes = (struct weft_view_nodes){0};
}

/* ---- keys ---- */

struct keys {
    char **items;
    size_t count;
    size_t cap;
};

static int add_key(struct keys *keys, const char *key)
{
    int rc = weft_array_reserve((void **)&keys->items, &keys->cap, keys->count + 1,
                                sizeof(*keys->items), KEYS_MAX);
    if (rc < 0) {
        return rc;
    }
    keys->items[keys->count] = weft_strdup(key);
    if (keys->items[keys->count] == NULL) {
        return -ENOMEM;
    }
    keys->count++;
    return 0;
}

static int collect_keys(const struct weft_config *config, struct keys *keys)
{
    for (size_t i = 0; i < config->source_count; i++) {
        const struct weft_label_levels *levels = &config->sources[i].levels;
        for (size_t k = 0; k < levels->count; k++) {
            int rc = add_key(keys, levels->items[k].key);
            if (rc < 0) {
                return rc;
            }
        }
    }
    for (size_t i = 0;; i++) {
        const char *key = weft_node_selector_key(config->node_selector, i);
        if (key == NULL) {
            return 0;
        }
        int rc = add_key(keys, key);
        if (rc < 0) {
            return rc;
        }
    }
}

static bool same_keys(const struct weft_view_nodes *nodes, const struct keys *keys)
{
    if (nodes->key_count != keys->count) {
        return false;
    }
    for (size_t i = 0; i < keys->count; i++) {
        if (strcmp(nodes->keys[i], keys->items[i]) != 0) {
            return false;
        }
    }
    return true;
}

int weft_view_nodes_keys(struct weft_view_nodes *nodes, const struct weft_config *config,
                         bool *ret_changed)
{
    struct keys keys = {0};
    const int rc = collect_keys(config, &keys);
    if (rc < 0) {
        keys_done(keys.items, keys.count);
        return rc;
    }
    *ret_changed = !same_keys(nodes, &keys);
    keys_done(nodes->keys, nodes->key_count);
    nodes->keys = keys.items;
    nodes->key_count = keys.count;
    return 0;
}

static bool matters(const struct weft_view_nodes *nodes, const char *key)
{
    if (weft_str_starts(weft_str(key), nodes->prefix)) {
        return true;
    }
    for (size_t i = 0; i < nodes->key_count; i++) {
        if (strcmp(nodes->keys[i], key) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- entries ---- */

static uint64_t version_of(const char *text)
{
    uint64_t version = 0;
    return weft_parse_u64(weft_str(text), UINT64_MAX, &version) < 0 ? 0 : version;
}

static char *held(struct weft_intern *texts, const char *text)
{
    union {
        const char *in;
        char *out; /* as struct weft_label has it; nobody writes */
    } cast = {.in = weft_intern_ref(texts, text)};
    return cast.out;
}

static int take_label(struct weft_view_nodes *nodes, struct weft_node *node,
                      const struct weft_kube_pair *pair)
{
    struct weft_label *label = &node->labels[node->label_count++]; /* drop_node takes NULL */
    label->key = held(nodes->texts, pair->key);
    label->value = held(nodes->texts, pair->value);
    return label->key != NULL && label->value != NULL ? 0 : -ENOMEM;
}

/* One piece of memory a node: the array of its labels, its name, its uid. */
static int take_node(struct weft_view_nodes *nodes, const struct weft_kube_meta *meta,
                     struct weft_node *ret_node)
{
    size_t count = 0;
    for (size_t i = 0; i < meta->label_count; i++) {
        count += matters(nodes, meta->labels[i].key) ? 1 : 0;
    }
    if (count > WEFT_NODE_LABELS_MAX) {
        return -EFBIG;
    }
    const size_t labels_size = count * sizeof(struct weft_label);
    const size_t name_size = strlen(meta->name) + 1;
    const size_t uid_size = strlen(meta->uid) + 1;
    void *piece = weft_calloc(1, labels_size + name_size + uid_size);
    if (piece == NULL) {
        return -ENOMEM;
    }
    char *texts = (char *)piece + labels_size;
    struct weft_node node = {.name = texts, .uid = texts + name_size, .labels = piece};
    memcpy(node.name, meta->name, name_size);
    memcpy(node.uid, meta->uid, uid_size);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < meta->label_count; i++) {
        rc = matters(nodes, meta->labels[i].key) ? take_label(nodes, &node, &meta->labels[i]) : 0;
    }
    if (rc < 0) {
        drop_node(nodes, &node);
        return rc;
    }
    *ret_node = node;
    return 0;
}

/* Does meta say of the node what is known already? */
static bool same_node(const struct weft_view_nodes *nodes, const struct weft_node *node,
                      const struct weft_kube_meta *meta)
{
    size_t count = 0;
    for (size_t i = 0; i < meta->label_count; i++) {
        if (!matters(nodes, meta->labels[i].key)) {
            continue;
        }
        const char *value = weft_node_label(node, meta->labels[i].key);
        if (value == NULL || strcmp(value, meta->labels[i].value) != 0) {
            return false;
        }
        count++;
    }
    return count == node->label_count && strcmp(node->uid, meta->uid) == 0;
}

static int add_entry(struct weft_view_nodes *nodes, struct weft_node *node, uint64_t version)
{
    int rc = weft_array_reserve((void **)&nodes->items, &nodes->cap, nodes->count + 1,
                                sizeof(*nodes->items), WEFT_NODES_MAX);
    if (rc < 0) {
        return rc;
    }
    rc = weft_map_put(nodes->index, node->name, nodes->count);
    if (rc < 0) {
        return rc;
    }
    nodes->items[nodes->count++] = (struct weft_view_node){
        .node = *node, .version = version, .seen = nodes->list, .source = SIZE_MAX};
    *node = (struct weft_node){0};
    return 0;
}

static void set_gone(struct weft_view_nodes *nodes, struct weft_view_node *entry, bool gone)
{
    nodes->gone_count += gone && !entry->gone ? 1 : 0;
    nodes->gone_count -= !gone && entry->gone ? 1 : 0;
    entry->gone = gone;
}

static void replace_entry(struct weft_view_nodes *nodes, struct weft_view_node *entry,
                          struct weft_node *node, uint64_t version)
{
    if (entry->gone || strcmp(entry->node.uid, node->uid) != 0) {
        entry->fresh = true;
        entry->source = SIZE_MAX;
        weft_free(weft_steal(&entry->instance));
    }
    entry->version = version;
    drop_node(nodes, &entry->node);
    entry->node = *node;
    *node = (struct weft_node){0};
}

int weft_view_nodes_put(struct weft_view_nodes *nodes, const struct weft_kube_meta *meta,
                        enum weft_view_change *ret_change)
{
    *ret_change = WEFT_VIEW_SAME;
    const uint64_t version = version_of(meta->resource_version);
    size_t at = 0;
    struct weft_view_node *entry = NULL;
    if (weft_map_get(nodes->index, meta->name, &at)) {
        entry = &nodes->items[at];
        entry->seen = nodes->list;
        /* also the late event of a Node whose deletion was seen */
        if (version != 0 && version < entry->version) {
            return 0;
        }
    }
    if (entry != NULL && entry->gone && strcmp(entry->node.uid, meta->uid) == 0) {
        return 0;
    }
    if (entry != NULL && !entry->gone && same_node(nodes, &entry->node, meta)) {
        entry->version = version; /* a heart-beat: nothing is allocated for it */
        return 0;
    }
    struct weft_node node = {0};
    int rc = take_node(nodes, meta, &node);
    if (rc < 0) {
        return rc;
    }
    *ret_change = WEFT_VIEW_OTHER;
    if (entry == NULL) {
        rc = add_entry(nodes, &node, version);
        drop_node(nodes, &node); /* emptied if it was taken */
        return rc;
    }
    replace_entry(nodes, entry, &node, version);
    set_gone(nodes, entry, false);
    return 0;
}

void weft_view_nodes_gone(struct weft_view_nodes *nodes, const char *name, const char *uid)
{
    size_t at = 0;
    if (!weft_map_get(nodes->index, name, &at)) {
        return;
    }
    struct weft_view_node *entry = &nodes->items[at];
    if (uid[0] == '\0' || strcmp(entry->node.uid, uid) == 0) {
        set_gone(nodes, entry, true);
    }
}

void weft_view_nodes_list(struct weft_view_nodes *nodes)
{
    nodes->list++;
}

bool weft_view_nodes_listed(struct weft_view_nodes *nodes)
{
    bool any = false;
    for (size_t i = 0; i < nodes->count; i++) {
        struct weft_view_node *entry = &nodes->items[i];
        if (!entry->gone && entry->seen != nodes->list) {
            set_gone(nodes, entry, true);
            any = true;
        }
    }
    return any;
}

struct weft_view_node *weft_view_nodes_get(const struct weft_view_nodes *nodes, const char *name)
{
    size_t at = 0;
    if (!weft_map_get(nodes->index, name, &at) || nodes->items[at].gone) {
        return NULL;
    }
    return &nodes->items[at];
}

void weft_view_nodes_forget(struct weft_view_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count;) {
        struct weft_view_node *entry = &nodes->items[i];
        if (!entry->gone) {
            i++;
            continue;
        }
        struct weft_view_node *last = &nodes->items[nodes->count - 1];
        /* the key is there already, so this put replaces a value and cannot fail */
        if (entry != last && weft_map_put(nodes->index, last->node.name, i) < 0) {
            return;
        }
        (void)weft_map_remove(nodes->index, entry->node.name);
        drop_node(nodes, &entry->node);
        weft_free(weft_steal(&entry->instance));
        if (entry != last) {
            *entry = *last;
        }
        nodes->count--;
        nodes->gone_count--;
    }
}

void weft_view_nodes_start_over(struct weft_view_nodes *nodes)
{
    weft_view_nodes_forget(nodes);
    for (size_t i = 0; i < nodes->count; i++) {
        nodes->items[i].fresh = false;
        nodes->items[i].source = SIZE_MAX;
    }
}

int weft_view_nodes_array(const struct weft_view_nodes *nodes, struct weft_node **ret_array,
                          size_t *ret_count)
{
    struct weft_node *array = weft_calloc(nodes->count + 1, sizeof(*array));
    if (array == NULL) {
        return -ENOMEM;
    }
    size_t count = 0;
    for (size_t i = 0; i < nodes->count; i++) {
        if (!nodes->items[i].gone) {
            array[count++] = nodes->items[i].node;
        }
    }
    *ret_array = array;
    *ret_count = count;
    return 0;
}
