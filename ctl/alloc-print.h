/* SPDX-License-Identifier: Apache-2.0 */
/* How weftctl alloc shows a choice: the fixed JSON, and a table with the reasons. */
#ifndef WEFT_CTL_ALLOC_PRINT_H
#define WEFT_CTL_ALLOC_PRINT_H

#include "pkg/allocator/allocator.h"
#include "pkg/machine/machine.h"

struct weft_buf;

/* One line; failures stick in buf. */
void weft_alloc_print_json(const struct weft_machine *m, const struct weft_choice *choice,
                           struct weft_buf *buf);
void weft_alloc_print_table(const struct weft_machine *m, const struct weft_request *request,
                            const struct weft_choice *choice, struct weft_buf *buf);

#endif
