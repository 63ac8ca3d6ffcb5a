/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of several sources to one. Private to pkg/tree. */
#ifndef WEFT_TREE_MERGE_H
#define WEFT_TREE_MERGE_H

#include <stddef.h>

#include "pkg/base/error.h"

struct weft_tree;

/* trees: best source first, all made from the same nodes; every tier of theirs is in plan, in its
 * order. The caller owns *ret_tree. Errors: -ENOMEM. */
int weft_tree_merge(const struct weft_tree *const *trees, size_t count, const char *const *plan,
                    size_t plan_count, struct weft_tree **ret_tree, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
