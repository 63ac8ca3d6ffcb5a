/* SPDX-License-Identifier: Apache-2.0 */
/* A tree as JSON for programs and as a drawing for people. */
#ifndef WEFT_CTL_TREE_PRINT_H
#define WEFT_CTL_TREE_PRINT_H

#include <stdbool.h>
#include <stddef.h>

struct weft_buf;
struct weft_tree;

enum { WEFT_CTL_TREE_TEXT_MAX = 512 << 20 };

/* {"tiers": […], "findings": […], "unplaced": […]} and a line end. 0, -ENOMEM, -EFBIG. */
int weft_ctl_tree_json(const struct weft_tree *tree, struct weft_buf *buf)
    __attribute__((warn_unused_result));
/* Box drawing with utf8, else ASCII. Counts, the tree, findings, unplaced nodes. */
int weft_ctl_tree_draw(const struct weft_tree *tree, bool utf8, struct weft_buf *buf)
    __attribute__((warn_unused_result));

#endif
