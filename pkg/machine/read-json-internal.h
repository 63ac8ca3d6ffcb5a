/* SPDX-License-Identifier: Apache-2.0 */
/* Between the two files that read weft's own recorded machine. All of them set err to file, line
 * and field, and return -EINVAL, or -ENOMEM. */
#ifndef WEFT_MACHINE_READ_JSON_INTERNAL_H
#define WEFT_MACHINE_READ_JSON_INTERNAL_H

#include <stddef.h>

#include "pkg/base/error.h"

struct weft_device;
struct weft_json;
struct weft_machine;
struct weft_nic;

/* A text of at most size - 1 bytes: 1, or 0 if it is absent and to is left as it is. */
int weft_read_json_text(const struct weft_json *object, const char *key, char *to, size_t size,
                        struct weft_error *err) __attribute__((warn_unused_result));
/* Turns what adding a device node returned into an error about that element; 0 stays 0. */
int weft_read_json_node_failed(const struct weft_json *node, int rc, struct weft_error *err)
    __attribute__((warn_unused_result));
int weft_read_json_device(const struct weft_json *object, struct weft_device *d,
                          struct weft_error *err) __attribute__((warn_unused_result));
int weft_read_json_nic(const struct weft_json *object, struct weft_nic *nic, struct weft_error *err)
    __attribute__((warn_unused_result));

/* The machine's "parents". */
int weft_read_json_parents(const struct weft_json *root, struct weft_machine *machine,
                           struct weft_error *err) __attribute__((warn_unused_result));

#endif
