/* SPDX-License-Identifier: Apache-2.0 */
/* On which of the Nodes that are about to move a gang runs: the pods of these Nodes alone are
 * listed (field selector spec.nodeName), which needs a right that a cluster may withhold. Without
 * it nobody waits, and that is said once: where a Node hangs is true with or without a gang on it.
 * Loop thread only. */
#ifndef WEFT_CONTROLLER_GANGS_H
#define WEFT_CONTROLLER_GANGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/keep.h"
#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_gangs;
struct weft_kube_client;

struct weft_gangs_options {
    struct weft_kube_client *client;
    /* All that weft_gangs_ask and weft_gangs_refresh asked for is answered. */
    void (*answered)(void *data);
    /* There is no right to list pods; comes once. */
    void (*forbidden)(void *data, const struct weft_error *error);
    void *data;
};

/* client is borrowed. -ENOMEM. */
int weft_gangs_new(const struct weft_gangs_options *options, struct weft_gangs **ret_gangs,
                   struct weft_error *err) __attribute__((warn_unused_result));
void weft_gangs_free(struct weft_gangs *gangs);
WEFT_DEFINE_AUTO(struct weft_gangs, weft_gangs_free)

/* What is known of the node. A node that could not be asked about counts as one with a gang; that
 * there was none tells nothing after 25 s. now: monotonic, ns. */
enum weft_keep_gang weft_gangs_of(const struct weft_gangs *gangs, const char *node, int64_t now);
/* Asks about the node, unless that is under way. -ENOMEM, -EFBIG. */
int weft_gangs_ask(struct weft_gangs *gangs, const char *node) __attribute__((warn_unused_result));
/* The node may be about to move: asks now, so that the answer is there when it is wanted. Not about
 * more than 8 (where many change at once, a brake may hold them), and not said to be answered. */
void weft_gangs_ask_ahead(struct weft_gangs *gangs, const char *node);
/* Asks again about those with a gang that were asked about long ago. now: monotonic, ns. */
void weft_gangs_refresh(struct weft_gangs *gangs, int64_t now);
bool weft_gangs_busy(const struct weft_gangs *gangs);
/* Nobody waits any more: forgets all answers. */
void weft_gangs_forget(struct weft_gangs *gangs);

#endif
