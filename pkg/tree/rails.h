/* SPDX-License-Identifier: Apache-2.0 */
/* Where each adapter of each node is plugged in, and where its group's habit would have it. Private
 * to pkg/tree's findings. */
#ifndef WEFT_TREE_RAILS_H
#define WEFT_TREE_RAILS_H

#include <stddef.h>
#include <stdint.h>

#include "pkg/base/mem.h"

struct weft_findings;
struct weft_shape;
struct weft_tree;

struct weft_rail {
    uint32_t node;
    uint32_t group;    /* the node's home: item id */
    uint32_t key;      /* the adapter's name at its node: index into keys */
    uint32_t leaf;     /* switch it is on */
    uint32_t expected; /* switch where the group's nodes have it, or ID_NONE if they do not agree */
    uint16_t port;     /* of the switch */
};

struct weft_rails {
    struct weft_rail *items;
    size_t count;
    char **keys;
    size_t key_count;
    size_t key_cap;
};

void weft_rails_done(struct weft_rails *rails);
WEFT_DEFINE_AUTO_VALUE(struct weft_rails, weft_rails_done)
/* Sorted by group, key, leaf, node. 0 or -ENOMEM. */
int weft_rails_collect(const struct weft_shape *shape, struct weft_rails *rails)
    __attribute__((warn_unused_result));
/* Groups with fewer leaves than their sisters. rails as collected. */
int weft_find_missing_rails(const struct weft_shape *shape, const struct weft_tree *tree,
                            const struct weft_rails *rails, struct weft_findings *findings)
    __attribute__((warn_unused_result));
/* What a leaf would be called in the group of own names that is called sister_leaf in the group of
 * sister names: "A09-03-02" among "A09-*-02" gives "A09-03-01" among "A09-*-01". *ret_name is
 * owned, NULL if the names have no such form. 0 or -ENOMEM. */
int weft_sister_name(char *const *own, size_t own_count, char *const *sister, size_t sister_count,
                     const char *sister_leaf, char **ret_name) __attribute__((warn_unused_result));

#endif
