/* SPDX-License-Identifier: Apache-2.0 */
/* Short ways to write HyperNodes and trees down in tests. */
#ifndef WEFT_TESTS_UNIT_HYPERNODE_UTIL_H
#define WEFT_TESTS_UNIT_HYPERNODE_UTIL_H

#include "pkg/hypernode/hypernode.h"
#include "pkg/tree/tree.h"

/* A HyperNode of ours (instance "test"): members are words, "n:gpu-1" a node, "h:leaf-1" a child,
 * "re:^x$" a pattern, "label:" a labelMatch, "none:" a member without selector. Aborts the run
 * without memory. */
struct weft_hypernode hn_make(const char *name, int64_t tier, const char *members);
/* Puts one into the set. */
void hn_put(struct weft_hypernode_set *set, const char *name, int64_t tier, const char *members);
/* The same, of another owner (source "label"). */
void hn_put_foreign(struct weft_hypernode_set *set, const char *name, int64_t tier,
                    const char *members);
/* All of a set as text, a line an object: "name tier member member…\n". Owned. */
char *hn_dump(const struct weft_hypernode_set *set);

/* A tree from a table: a line a node, "node group-of-tier-1 group-of-tier-2 …", '-' for none;
 * "node ?" puts it among the unplaced. tiers are names from the closest up. A group's identity is
 * "<tier>=<name>", its name the word; switches as given by hn_tree_guids. Owned:
 * hn_tree_free. */
struct weft_tree *hn_tree(const char *tiers, const char *table);
/* Gives the named group its switch GUIDs (hex words) and the identity "switch:<smallest>". */
void hn_tree_guids(struct weft_tree *tree, const char *tier, const char *group, const char *guids);
void hn_tree_free(struct weft_tree *tree);
WEFT_DEFINE_AUTO(struct weft_tree, hn_tree_free)

#endif
