/* SPDX-License-Identifier: Apache-2.0 */
/* The controller as a whole: follows Nodes and HyperNodes on the API server and, while it holds the
 * Lease, keeps HyperNodes and tier labels as the sources say. */
#ifndef WEFT_CONTROLLER_CONTROLLER_H
#define WEFT_CONTROLLER_CONTROLLER_H

#include "pkg/base/error.h"

struct weft_options;

/* Runs until SIGTERM or SIGINT, or with --once and --dry-run until that is done. Returns the exit
 * status (0 or 1), or a negative errno with err if it could not start. */
int weft_controller_run(const struct weft_options *options, struct weft_error *err)
    __attribute__((warn_unused_result));

/* --output: reads the Nodes (from the API server, a file, or none where only switch graphs are
 * configured), writes manifests to a folder. Returns as above. */
int weft_controller_output(const struct weft_options *options, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
