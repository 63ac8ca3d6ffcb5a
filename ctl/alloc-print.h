/* SPDX-License-Identifier: Apache-2.0 */
/* How weftctl alloc shows a choice: the fixed JSON, and a table with the reasons. */
#ifndef WEFT_CTL_ALLOC_PRINT_H
#define WEFT_CTL_ALLOC_PRINT_H

#include "pkg/allocator/allocator.h"
#include "pkg/machine/machine.h"

struct weft_buf;
struct weft_json_writer;

/* A request and its answer; other is the best other set with --explain, NULL without; its count is
 * 0 where there is none. */
struct weft_alloc_answer {
    const struct weft_machine *machine;
    const struct weft_request *request;
    const struct weft_choice *choice;
    const struct weft_choice *other;
};

/* One line; failures stick in buf, here and below. */
void weft_alloc_print_json(const struct weft_alloc_answer *answer, struct weft_buf *buf);
void weft_alloc_print_table(const struct weft_alloc_answer *answer, struct weft_buf *buf);

/* alloc-explain.c: the two sets side by side, and what decided. */
void weft_alloc_explain_table(const struct weft_alloc_answer *answer, struct weft_buf *buf);
/* The members "other" and "decided" of the answer's object. */
void weft_alloc_explain_json(const struct weft_alloc_answer *answer, struct weft_json_writer *w);

/* The members that describe a set: devices, indices, exact, objective. */
void weft_alloc_put_choice(struct weft_json_writer *w, const struct weft_machine *m,
                           const struct weft_choice *choice);
/* MB/s as people read it: "450.0 GB/s". */
void weft_alloc_put_rate(struct weft_buf *buf, uint64_t mbps);

#endif
