/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin put together: source → inventory → service, and the link to the kubelet. */
#ifndef WEFT_DEVICEPLUGIN_PLUGIN_H
#define WEFT_DEVICEPLUGIN_PLUGIN_H

#include <stdbool.h>

#include "pkg/base/error.h"

struct weft_command;
struct weft_options;

/* Runs until SIGTERM or SIGINT. options is what command says (reload.h), and changes with it. 0, or
 * why it could not start. *ret_stuck is set in any case: a thread is still inside a vendor's
 * library or gRPC, so the process must end without the destructors of libraries. */
int weft_plugin_run(const struct weft_command *command, struct weft_options *options,
                    bool *ret_stuck, struct weft_error *err) __attribute__((warn_unused_result));

#endif
