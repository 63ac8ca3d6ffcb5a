/* SPDX-License-Identifier: Apache-2.0 */
/* A decision as manifests in a folder, and such a folder as the state before. Reads and writes
 * files only. */
#ifndef WEFT_CONTROLLER_OUTPUT_H
#define WEFT_CONTROLLER_OUTPUT_H

#include "pkg/base/error.h"

struct weft_config;
struct weft_decision;
struct weft_hypernode_set;
struct weft_options;

/* The folder of --against; without it the set stays empty. */
int weft_controller_read_against(const struct weft_options *options,
                                 struct weft_hypernode_set *ret_set, struct weft_error *err)
    __attribute__((warn_unused_result));
int weft_controller_write_folder(const struct weft_options *options,
                                 const struct weft_config *config,
                                 const struct weft_decision *decision, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
