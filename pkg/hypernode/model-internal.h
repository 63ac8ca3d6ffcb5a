/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the model share: model.c (events), model-tree.c (the cache's rules),
 * model-check.c (what is wrong), model-nodes.c (sets of nodes). Not for others. */
#ifndef WEFT_HYPERNODE_MODEL_INTERNAL_H
#define WEFT_HYPERNODE_MODEL_INTERNAL_H

#include "pkg/hypernode/model.h"

struct weft_map;

#define WEFT_MODEL_NO_ID SIZE_MAX

/* A list of ids: entries or nodes. */
struct weft_ids {
    size_t *v;
    size_t n;
    size_t cap;
};

void weft_ids_done(struct weft_ids *ids);
WEFT_DEFINE_AUTO_VALUE(struct weft_ids, weft_ids_done)
int weft_ids_add(struct weft_ids *ids, size_t id) __attribute__((warn_unused_result));
void weft_ids_remove(struct weft_ids *ids, size_t id);
bool weft_ids_has(const struct weft_ids *ids, size_t id);
/* Adds every id of from (both ascending) to to. */
int weft_ids_union(struct weft_ids *to, const struct weft_ids *from)
    __attribute__((warn_unused_result));
void weft_ids_sort(struct weft_ids *ids);

/* A child that an object's spec lists, and whether it is in the cache's Children of it. */
struct weft_kid {
    size_t id;
    bool linked;
};

/* One name that was ever seen. */
struct weft_entry {
    char *name;  /* borrowed from the map's key order; owned */
    bool exists; /* in the cache's map */
    bool object; /* not a placeholder */
    bool deleting;
    bool indexed; /* in the index of its tier */
    bool dirty;
    bool gone; /* the API server has it no more, but the cache could not take it out yet */
    struct weft_hypernode spec; /* the object as last seen; empty for a placeholder */
    size_t parent;              /* the cache's Parent, or WEFT_MODEL_NO_ID */
    struct weft_kid *kids;      /* the spec's exactMatch HyperNode members, by name */
    size_t kid_count;
    struct weft_ids nodes;   /* the spec's exactMatch Node members, ascending ids */
    struct weft_ids real;    /* the cache's realNodesSet (with_nodes), ascending ids */
    struct weft_ids listers; /* entries whose spec lists this one */
    unsigned flags;
};

struct weft_model_node {
    char *name;
    struct weft_ids holders; /* entries whose spec lists it */
};

struct weft_model {
    bool with_nodes;
    bool ready;
    struct weft_map *names; /* HyperNode name → entry */
    struct weft_entry *entries;
    size_t count;
    size_t cap;
    struct weft_map *node_names;
    struct weft_model_node *nodes;
    size_t node_count;
    size_t node_cap;
    struct weft_ids dirty;
    size_t flag_count[4]; /* entries that have the flag, by bit number */
    int64_t root_tier;    /* as of the last event */
    char text[512];
};

/* Interns: the id, or -ENOMEM / -EFBIG through ret. */
int weft_model_entry(struct weft_model *m, const char *name, size_t *ret_id)
    __attribute__((warn_unused_result));
int weft_model_node(struct weft_model *m, const char *name, size_t *ret_id)
    __attribute__((warn_unused_result));
/* The entry, or NULL. */
const struct weft_entry *weft_model_find(const struct weft_model *m, const char *name);

/* The cache's UpdateHyperNode / DeleteHyperNode. 1: an error inside (ready is false now), 0, or
 * -ENOMEM. */
int weft_model_tree_update(struct weft_model *m, size_t id, const struct weft_hypernode *hn,
                           bool reordered) __attribute__((warn_unused_result));
int weft_model_tree_delete(struct weft_model *m, size_t id) __attribute__((warn_unused_result));
/* Clears the entry's spec lists (kids, nodes) out of the reverse lists. */
void weft_model_unlist(struct weft_model *m, size_t id);

/* Notes that the entry, and those that list it, must be looked at again. */
int weft_model_mark(struct weft_model *m, size_t id) __attribute__((warn_unused_result));
/* Brings flags up to date with all marked entries. */
void weft_model_evaluate(struct weft_model *m);
/* What the flag (0: not ready) means for the entry, in one sentence; in m->text. */
const char *weft_model_describe(struct weft_model *m, size_t id, unsigned flag);
int64_t weft_model_top_tier(const struct weft_model *m);

#endif
