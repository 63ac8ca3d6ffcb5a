/* SPDX-License-Identifier: Apache-2.0 */
/* --pods: which running gangs a change touches, printed after the plan. */
#ifndef WEFT_CONTROLLER_AFFECTED_H
#define WEFT_CONTROLLER_AFFECTED_H

#include "pkg/base/error.h"

struct weft_hypernode_set;
struct weft_options;
struct weft_plan;
struct weft_pods;

/* Reads the file; the pods stay empty without --pods. The caller owns *ret_pods' content. Errors:
 * those of reading it and of weft_pods_parse. */
int weft_controller_read_pods(const struct weft_options *options, struct weft_pods *ret_pods,
                              struct weft_error *err) __attribute__((warn_unused_result));
/* Prints which HyperNodes with running gangs the plan takes nodes from, or that there are none;
 * nothing without --pods. before: the HyperNodes that exist. 0, or -ENOMEM. */
int weft_controller_print_affected(const struct weft_options *options, const struct weft_pods *pods,
                                   const struct weft_hypernode_set *before,
                                   const struct weft_plan *plan, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
