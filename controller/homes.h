/* SPDX-License-Identifier: Apache-2.0 */
/* Which leaf group each Node was in, read from the HyperNodes that exist: a Node that is plugged
 * into two groups alike must not go from one to the other with every pass. Pure. */
#ifndef WEFT_CONTROLLER_HOMES_H
#define WEFT_CONTROLLER_HOMES_H

#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/tree/build.h"

struct weft_hypernode_set;
struct weft_node;

struct weft_homes {
    struct weft_tree_home *items; /* by node; names are borrowed from the Nodes */
    size_t count;
};

/* The Nodes that are below one of our objects whose identity is a set of switches: the closest one,
 * by the smallest of its GUIDs. The caller owns ret_homes->items (weft_free). Errors: -ENOMEM,
 * -EFBIG. */
int weft_homes_before(const struct weft_hypernode_set *places, const char *instance,
                      const struct weft_node *nodes, size_t node_count,
                      struct weft_homes *ret_homes, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
