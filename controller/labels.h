/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the tier labels of Nodes by server-side apply: all tiers of a Node or none, a few Nodes at
 * a time, no faster than a rate, since every label change of a Node is an event for every scheduler
 * and agent that watches Nodes. What to write and whether it is needed is decided elsewhere. Loop
 * thread only. */
#ifndef WEFT_CONTROLLER_LABELS_H
#define WEFT_CONTROLLER_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_json;
struct weft_kube_call;
struct weft_kube_client;
struct weft_kube_op;
struct weft_labels;
struct weft_loop;
struct weft_node;

enum { WEFT_LABELS_RATE_DEFAULT = 20, WEFT_LABELS_RATE_MAX = 1000 };
/* The owner of the labels in the Nodes' managedFields. */
#define WEFT_LABELS_FIELD_MANAGER "weft-controller-labels"

struct weft_labels_result {
    size_t written; /* Nodes */
    size_t failed;  /* given up: the server would not */
    size_t stale;   /* not as they were last seen: decide again from what is there now */
    bool stopped;   /* may_write said no, or the server would not take any */
};

struct weft_labels_env {
    /* As weft_kube_submit and weft_kube_call_cancel, whose client is client. */
    int (*submit)(struct weft_kube_client *client, const struct weft_kube_op *op,
                  struct weft_kube_call **ret_call, struct weft_error *err);
    void (*cancel)(struct weft_kube_call *call);
    struct weft_kube_client *client;
    bool (*may_write)(void *data);
    /* The resourceVersion of the Node as it was last seen; 0: gone, or no number. A write asks for
     * this version, so that one that comes late (sent, or the process stopped after may_write,
     * longer ago than the Lease lasts) meets a conflict where the next leader has written. */
    uint64_t (*version)(void *data, const char *node);
    /* A Node as the server has it after a write. */
    void (*on_node)(void *data, const struct weft_json *node);
    /* A write did not go through; err says why, it is tried again if retry is set. May not free. */
    void (*on_error)(void *data, const char *node, const struct weft_error *err, bool retry);
    /* All that was asked for is written, or given up. May not free. */
    void (*on_done)(void *data, const struct weft_labels_result *result);
    void *data;
};

/* rate: writes a second, 1…WEFT_LABELS_RATE_MAX. prefix is copied. -ENOMEM. */
int weft_labels_new(struct weft_loop *loop, const char *prefix, unsigned rate,
                    const struct weft_labels_env *env, struct weft_labels **ret_labels,
                    struct weft_error *err) __attribute__((warn_unused_result));
/* Cancels what is under way. NULL is fine. */
void weft_labels_free(struct weft_labels *labels);
WEFT_DEFINE_AUTO(struct weft_labels, weft_labels_free)

/* Does the Node carry exactly these tier labels (count 0: none)? */
bool weft_labels_current(const struct weft_node *node, const char *prefix,
                         const char *const *values, size_t count);

/* Is a write of exactly these labels to the Node under way? */
bool weft_labels_under_way(const struct weft_labels *labels, const char *node,
                           const char *const *values, size_t count);
/* Is the Node as the write of it that is under way makes it? Its watch event may come before the
 * answer. */
bool weft_labels_expects(const struct weft_labels *labels, const struct weft_node *node);

/* Forgets what waits (not what is under way). A new round of weft_labels_add follows. */
void weft_labels_clear(struct weft_labels *labels);
/* Adds a Node to write; text is copied. The uid keeps a write from creating a Node anew that was
 * deleted meanwhile. -ENOMEM, -EFBIG. */
int weft_labels_add(struct weft_labels *labels, const char *node, const char *uid,
                    const char *const *values, size_t count) __attribute__((warn_unused_result));
/* Starts what waits; on_done comes from the loop. Nothing waiting: no on_done. */
void weft_labels_start(struct weft_labels *labels);
bool weft_labels_busy(const struct weft_labels *labels);

#endif
