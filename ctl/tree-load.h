/* SPDX-License-Identifier: Apache-2.0 */
/* What weftctl tree was asked, and the tree of it: reads the files, calls the library. */
#ifndef WEFT_CTL_TREE_LOAD_H
#define WEFT_CTL_TREE_LOAD_H

#include <stddef.h>

#include "pkg/base/error.h"

struct weft_config;
struct weft_tree;

enum { WEFT_CTL_SOURCES_MAX = 16 };

struct weft_ctl_tree_ask {
    const char *from[WEFT_CTL_SOURCES_MAX]; /* "KIND=FILE", best first */
    size_t from_count;
    const char *nodes;          /* file, or NULL */
    const char *preset;         /* or NULL */
    struct weft_config *config; /* or NULL; borrowed */
};

/* Is what was asked complete and free of contradictions? 0 or -EINVAL with a message for the user
 * (wrong use). Opens no file. */
int weft_ctl_tree_check(const struct weft_ctl_tree_ask *ask, struct weft_error *err)
    __attribute__((warn_unused_result));
/* The tree. The caller owns *ret_tree. Errors: as the readers and weft_tree_build. */
int weft_ctl_tree_load(const struct weft_ctl_tree_ask *ask, struct weft_tree **ret_tree,
                       struct weft_error *err) __attribute__((warn_unused_result));

#endif
