/* SPDX-License-Identifier: Apache-2.0 */
/* HyperNodes of ours that somebody deleted although another one still lists them: the next job with
 * a topology would end Volcano's scheduler. What they were is remembered until they are made again,
 * so that this waits neither for a debounce nor for a source that has not answered yet. */
#ifndef WEFT_CONTROLLER_LOST_H
#define WEFT_CONTROLLER_LOST_H

#include <stdbool.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/hypernode/hypernode.h"

struct weft_plan;

/* Remembers a copy; without memory it is not remembered: a pass makes it again as well. */
void weft_lost_note(struct weft_hypernode_set *lost, const struct weft_hypernode *hn);
/* live, and of the lost objects of that instance those that a living one lists, with what hangs
 * below these. *ret_any: there are such; else *ret_set stays empty. The caller owns it. */
int weft_lost_places(const struct weft_hypernode_set *live, const struct weft_hypernode_set *lost,
                     const char *instance, struct weft_hypernode_set *ret_set, bool *ret_any,
                     struct weft_error *err) __attribute__((warn_unused_result));
/* The plan from live to places (as weft_lost_places gives it), so without any source. */
int weft_lost_plan(const struct weft_hypernode_set *live, const struct weft_hypernode_set *places,
                   const char *instance, struct weft_plan *ret_plan, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
