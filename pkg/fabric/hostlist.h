/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's hostlists both ways: "n[01-16,20]" to names, and names to the short form. Pure. */
#ifndef WEFT_FABRIC_HOSTLIST_H
#define WEFT_FABRIC_HOSTLIST_H

#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/base/str.h"

struct weft_buf;

enum {
    WEFT_HOSTLIST_NAMES_MAX = 200000, /* as many as a cluster has nodes (WEFT_NODES_MAX) */
    WEFT_HOSTLIST_NAME_MAX = 253,     /* a host name (RFC 1123) */
    WEFT_HOSTLIST_BRACKETS_MAX = 8    /* in one name: "rack[1-4]node[1-8]" has two */
};

/* Names in the order of the text, owned. Zero it before its first use. */
struct weft_hostlist {
    char **names;
    size_t count;
    size_t cap;
};

void weft_hostlist_done(struct weft_hostlist *list);
WEFT_DEFINE_AUTO_VALUE(struct weft_hostlist, weft_hostlist_done)

/* Appends the names that text stands for: items between commas or blanks, each with any number of
 * [ranges], which multiply; the width of a range's first number is kept ("[08-11]"). Empty items
 * are passed over, as Slurm does. The message says what is wrong at which character, without a
 * place: the caller wraps it. Errors: -EINVAL for unbalanced or nested brackets, a range that is no
 * number or runs backwards, or a name over WEFT_HOSTLIST_NAME_MAX; -EFBIG over
 * WEFT_HOSTLIST_NAMES_MAX names in the list; -ENOMEM. What was appended before stays. */
int weft_hostlist_add(struct weft_hostlist *list, struct weft_str text, struct weft_error *err)
    __attribute__((warn_unused_result));

/* Appends the names in short, in natural order: names that differ in the last number of their first
 * label only become a range; pieces are joined by separator (Slurm reads "," only). After max
 * pieces it says "… and N more". Returns buf->status or -ENOMEM. */
int weft_hostlist_format(const char *const *names, size_t count, const char *separator, size_t max,
                         struct weft_buf *buf) __attribute__((warn_unused_result));

#endif
