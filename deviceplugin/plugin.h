/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin put together: source → inventory → service, and the link to the kubelet. */
#ifndef WEFT_DEVICEPLUGIN_PLUGIN_H
#define WEFT_DEVICEPLUGIN_PLUGIN_H

#include "pkg/base/error.h"

struct weft_command;
struct weft_options;

/* Runs until SIGTERM or SIGINT. options is what command says (reload.h), and changes with it. 0, or
 * why it could not start. */
int weft_plugin_run(const struct weft_command *command, struct weft_options *options,
                    struct weft_error *err) __attribute__((warn_unused_result));

#endif
