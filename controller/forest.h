/* SPDX-License-Identifier: Apache-2.0 */
/* A set of HyperNodes seen as what it means: each Node has a home (its object of the lowest tier),
 * each object a parent. In this form a Node is put back to an earlier place, or a chain is pinned,
 * by changing one relation; the members of the objects follow when it is turned into a set again.
 * Pure. Objects and names are borrowed from the sets, which must outlive the forest. */
#ifndef WEFT_CONTROLLER_FOREST_H
#define WEFT_CONTROLLER_FOREST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_forest;
struct weft_hypernode;
struct weft_hypernode_set;

#define WEFT_FOREST_NONE SIZE_MAX
/* Most tiers of a chain: more than any fabric has, and a bound for every walk. */
enum { WEFT_FOREST_TIERS_MAX = 16 };

/* Of the objects of set that are ours (instance; NULL: all). Where two objects list one member, the
 * first by name is its home or parent. A parent that is not of a higher tier is no parent. Errors:
 * -ENOMEM, -EFBIG. */
int weft_forest_new(const struct weft_hypernode_set *set, const char *instance,
                    struct weft_forest **ret_forest, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_forest_free(struct weft_forest *forest);
WEFT_DEFINE_AUTO(struct weft_forest, weft_forest_free)

size_t weft_forest_node_count(const struct weft_forest *forest);
const char *weft_forest_node_name(const struct weft_forest *forest, size_t node);
/* The item that is the node's home, or WEFT_FOREST_NONE (also for an unknown node). */
size_t weft_forest_home(const struct weft_forest *forest, const char *node);
/* The item of that name, or WEFT_FOREST_NONE. */
size_t weft_forest_find(const struct weft_forest *forest, const char *name);
size_t weft_forest_parent(const struct weft_forest *forest, size_t item);
const struct weft_hypernode *weft_forest_object(const struct weft_forest *forest, size_t item);
/* Fills chain with the items from the node's home upwards; returns how many (0: no place). */
size_t weft_forest_chain(const struct weft_forest *forest, const char *node,
                         size_t chain[WEFT_FOREST_TIERS_MAX]);
/* Does the node have the same chain of object names in both? Two empty chains are the same. */
bool weft_forest_same_place(const struct weft_forest *a, const struct weft_forest *b,
                            const char *node);

/* Adds object as an item without parent or members, or finds the one of its name. */
int weft_forest_add(struct weft_forest *forest, const struct weft_hypernode *object,
                    size_t *ret_item) __attribute__((warn_unused_result));
/* Gives the node a home; WEFT_FOREST_NONE takes its home away. -ENOMEM, -EFBIG. */
int weft_forest_put(struct weft_forest *forest, const char *node, size_t item)
    __attribute__((warn_unused_result));
/* Gives the item a parent. -EINVAL if its tier is not higher than the item's. */
int weft_forest_hang(struct weft_forest *forest, size_t item, size_t parent)
    __attribute__((warn_unused_result));

/* Turns it into a set: objects with at least one Node below them, members from the relations,
 * sorted by type and name; everything else copied from the item's object. */
int weft_forest_to_set(const struct weft_forest *forest, struct weft_hypernode_set *ret_set,
                       struct weft_error *err) __attribute__((warn_unused_result));

#endif
