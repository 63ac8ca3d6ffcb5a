/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the cluster: its Nodes (metadata, only the labels that matter) and its
 * HyperNodes, each fed by a list, a watch, and the answers to own writes. Whatever order these
 * arrive in, an older state never replaces a newer one, and what was deleted does not come back by
 * a late event. No I/O. Loop thread. */
#ifndef WEFT_CONTROLLER_VIEW_H
#define WEFT_CONTROLLER_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/fabric/node.h"
#include "pkg/hypernode/hypernode.h"

struct weft_config;
struct weft_intern;
struct weft_kube_meta;
struct weft_map;

/* What a new state of an object changed of what weft looks at. */
enum weft_view_change {
    WEFT_VIEW_SAME,  /* nothing, or only its version */
    WEFT_VIEW_OTHER, /* something */
    WEFT_VIEW_CHANGE_COUNT
};

/* ---- Nodes ---- */

struct weft_view_node {
    struct weft_node node; /* labels that matter only; never for weft_node_done or _set_label */
    uint64_t version;      /* resourceVersion; 0 if it is no number */
    uint64_t seen;         /* the list that saw it last */
    bool gone;             /* deleted; kept until forgotten, so that a successor is recognised */
    bool fresh;            /* a new Node under an old name, not yet placed by any source */
    size_t source;         /* rank of the source that last placed it, or SIZE_MAX */
    char *instance;        /* instances.h; NULL: not read */
};

struct weft_view_nodes {
    struct weft_view_node *items;
    size_t count;
    size_t cap;
    size_t gone_count;         /* entries that are gone */
    struct weft_map *index;    /* name → item */
    struct weft_intern *texts; /* label keys and values */
    char **keys;               /* label keys that matter */
    size_t key_count;
    char *prefix; /* keys below it matter too */
    uint64_t list;
};

/* -ENOMEM. prefix is copied. */
int weft_view_nodes_init(struct weft_view_nodes *nodes, const char *prefix)
    __attribute__((warn_unused_result));
void weft_view_nodes_done(struct weft_view_nodes *nodes);
/* Takes the label keys that config's sources and selector look at; true in *ret_changed if a list
 * is needed because they are not those of before. -ENOMEM. */
int weft_view_nodes_keys(struct weft_view_nodes *nodes, const struct weft_config *config,
                         bool *ret_changed) __attribute__((warn_unused_result));
/* A list begins; weft_view_nodes_listed ends it: true if Nodes are gone by it. */
void weft_view_nodes_list(struct weft_view_nodes *nodes);
bool weft_view_nodes_listed(struct weft_view_nodes *nodes);
/* -ENOMEM, -EFBIG; then the node's old state stays. */
int weft_view_nodes_put(struct weft_view_nodes *nodes, const struct weft_kube_meta *meta,
                        enum weft_view_change *ret_change) __attribute__((warn_unused_result));
void weft_view_nodes_gone(struct weft_view_nodes *nodes, const char *name, const char *uid);
/* Borrowed, or NULL if there is no such Node (now). */
struct weft_view_node *weft_view_nodes_get(const struct weft_view_nodes *nodes, const char *name);
/* Drops the entries of deleted Nodes: no HyperNode lists them any more. */
void weft_view_nodes_forget(struct weft_view_nodes *nodes);
/* For a new leader: what it saw while another one led says nothing about places, as that one acted
 * on it. Every Node that exists is one of old, known to no source yet. */
void weft_view_nodes_start_over(struct weft_view_nodes *nodes);
/* All Nodes that exist, as shallow copies for discovery; the caller frees the array only. */
int weft_view_nodes_array(const struct weft_view_nodes *nodes, struct weft_node **ret_array,
                          size_t *ret_count) __attribute__((warn_unused_result));

/* ---- HyperNodes ---- */

struct weft_view_hypernodes {
    struct weft_hypernode_set set;
    struct weft_map *seen;    /* names, while a list runs; else NULL */
    struct weft_map *deleted; /* uids whose late events must not bring them back */
};

void weft_view_hypernodes_done(struct weft_view_hypernodes *view);
int weft_view_hypernodes_list(struct weft_view_hypernodes *view)
    __attribute__((warn_unused_result));
/* Ends a list: names that it did not show are gone; true if there were any. on_gone (may be NULL)
 * sees each before. */
bool weft_view_hypernodes_listed(struct weft_view_hypernodes *view,
                                 void (*on_gone)(void *data, const struct weft_hypernode *hn),
                                 void *data);
/* Takes hn's content over (also on failure). */
int weft_view_hypernodes_put(struct weft_view_hypernodes *view, struct weft_hypernode *hn,
                             enum weft_view_change *ret_change) __attribute__((warn_unused_result));
/* true if it was there. uid "" = whatever object has the name. */
bool weft_view_hypernodes_gone(struct weft_view_hypernodes *view, const char *name,
                               const char *uid);
/* Another owner's object is not as before any more, but as after (NULL: gone): objects of ours that
 * list what it listed are torn. true if there are any. */
bool weft_view_hypernodes_tear(struct weft_view_hypernodes *view, const char *instance,
                               const struct weft_hypernode *before,
                               const struct weft_hypernode *after);
/* All gone: the server does not know HyperNodes any more. */
void weft_view_hypernodes_clear(struct weft_view_hypernodes *view);

#endif
