/* SPDX-License-Identifier: Apache-2.0 */
/* What is remembered of a preferred allocation: kept as it is, which costs the kubelet, which waits
 * for the answer, next to nothing; its line is written when somebody reads it. */
#ifndef WEFT_DEVICEPLUGIN_PREFERENCE_H
#define WEFT_DEVICEPLUGIN_PREFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/allocator/allocator.h"

struct weft_buf;
struct weft_kept_preference;

/* One answered container of a GetPreferredAllocation request; lives as long as the answer. */
struct weft_preference {
    size_t available, required; /* ids asked about, known or not */
    int64_t size;
    bool answered; /* else the kubelet was left to choose itself */
    bool exact;    /* else by a bounded search */
    bool scored;   /* the objective below is of this answer */
    struct weft_objective objective;
    const char *const *ids; /* borrowed */
    size_t count;
};

/* A copy, with at most the first 64 ids; freed by weft_free. at_ns is the time of day. NULL without
 * memory. */
struct weft_kept_preference *weft_preference_keep(const struct weft_preference *preference,
                                                  int64_t at_ns);

/* Appends its line, without an end of line: what was asked, what was answered, and the entries of
 * the objective (allocation.md) that the answer has. Errors are buf's. */
void weft_preference_write(const struct weft_kept_preference *kept, struct weft_buf *buf);

#endif
