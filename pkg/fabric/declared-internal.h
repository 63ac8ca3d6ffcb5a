/* SPDX-License-Identifier: Apache-2.0 */
/* Between the parsers and what they make: warnings with their place, and rows of nodes with a value
 * a level. Private to pkg/fabric. */
#ifndef WEFT_FABRIC_DECLARED_INTERNAL_H
#define WEFT_FABRIC_DECLARED_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/base/str.h"
#include "pkg/fabric/labels.h"

/* "file:line: …", the first of them. */
struct weft_warnings {
    char **items;
    size_t count;
    size_t cap;
    size_t total;
};

void weft_warnings_done(struct weft_warnings *warnings);
/* Keeps "source:line: message" (line 0: without); never fails, short memory drops the text only. */
void weft_warn(struct weft_warnings *warnings, const char *source, unsigned line,
               const char *format, ...) __attribute__((format(printf, 4, 5)));

struct weft_row {
    char *node;
    char *values[WEFT_LEVELS_MAX];
    unsigned line;
};

/* What a text has said so far. Zero it and set source. */
struct weft_rows {
    const char *source;
    struct weft_row *items;
    size_t count;
    size_t cap;
    struct weft_warnings warnings;
    bool partial;
};

void weft_rows_done(struct weft_rows *rows);
WEFT_DEFINE_AUTO_VALUE(struct weft_rows, weft_rows_done)
/* Adds a node without values; valid until the next add. 0, or err set: -EFBIG, -ENOMEM. */
int weft_rows_add(struct weft_rows *rows, struct weft_str node, unsigned line,
                  struct weft_row **ret_row, struct weft_error *err)
    __attribute__((warn_unused_result));
/* 0 or -ENOMEM. An empty value is none. */
int weft_row_set(struct weft_row *row, size_t level, struct weft_str value)
    __attribute__((warn_unused_result));

/* count levels by their tiers' names: those given, else the defaults (NULL at the end), else
 * "tier-N". The key is the name. Errors of weft_label_levels_add. */
int weft_rows_levels(size_t count, const char *const *tiers, size_t tier_count,
                     const char *const *defaults, struct weft_label_levels *ret_levels,
                     struct weft_error *err) __attribute__((warn_unused_result));

/* Sorts by node and joins the rows of one node: it keeps the chain that is first in natural order,
 * so that the order of the text decides nothing. Levels and warnings move. */
int weft_rows_finish(struct weft_rows *rows, struct weft_label_levels *levels,
                     enum weft_names_kind names, struct weft_declared **ret_declared,
                     struct weft_error *err) __attribute__((warn_unused_result));

#endif
