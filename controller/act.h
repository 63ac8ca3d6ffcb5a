/* SPDX-License-Identifier: Apache-2.0 */
/* Carrying a decision out: HyperNodes, then labels; and when to try again. Loop thread. */
#ifndef WEFT_CONTROLLER_ACT_H
#define WEFT_CONTROLLER_ACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/hypernode/layout.h"

struct weft_controller;
struct weft_node;

/* after a failure, and after the server would not write something */
#define WAIT_RETRY_NS (1 * WEFT_NS_PER_S)
#define WAIT_REFUSED_NS (10 * WEFT_NS_PER_S)

/* act.c */
void weft_controller_act(struct weft_controller *c);
/* Carries c->repair out: HyperNodes only. */
void weft_controller_act_repair(struct weft_controller *c);
bool weft_controller_writing(const struct weft_controller *c);
/* Must the Node's labels be written, and which (0: none)? Those of another instance stay. */
bool weft_controller_needs_labels(const struct weft_controller *c, const struct weft_node *node,
                                  const char *values[WEFT_LAYOUT_TIERS_MAX], size_t *ret_count);
/* No pass before wait_ns and some jitter, nor sooner than another call has asked for: labels end
 * while HyperNodes wait as the server said. */
void weft_controller_back_off(struct weft_controller *c, int64_t wait_ns, bool at_least);
/* Somebody else's write was in the way, and what is there now is known or will be: a pass once
 * more, soon. What stays in the way is waited for, longer each time. */
void weft_act_conflict(struct weft_controller *c, unsigned in_a_row);
/* weft_controller_may_write as a callback. */
bool weft_act_may_write(void *data);
void weft_act_pass_ended(struct weft_controller *c, bool good);

/* act-labels.c: queues the labels that differ, and ends the pass when they are written. */
void weft_act_labels(struct weft_controller *c);

#endif
