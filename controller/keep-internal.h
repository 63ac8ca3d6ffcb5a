/* SPDX-License-Identifier: Apache-2.0 */
/* What is compared between the HyperNodes that exist and those wanted before a Node's place is
 * judged. Private to controller/keep*.c. Pure. */
#ifndef WEFT_CONTROLLER_KEEP_INTERNAL_H
#define WEFT_CONTROLLER_KEEP_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

struct weft_forest;
struct weft_hypernode_set;

/* Do the tiers of our objects in live have the numbers and names that wanted gives them? */
bool weft_keep_tiers_agree(const struct weft_hypernode_set *live,
                           const struct weft_hypernode_set *wanted, const char *instance);

/* Is all that speaks for another place of the node that its sources miss levels? True if it had a
 * group of its own (no padding) on one of the tiers in gaps (bit n: tier n + 1), and the chain that
 * it would have there today agrees with what is known on all other tiers. The node has a place in
 * both forests. */
bool weft_keep_gap_holds(const struct weft_forest *live, const struct weft_forest *wanted,
                         const char *node, uint32_t gaps);
/* Puts such a node into that chain. -ENOMEM, -EFBIG. */
int weft_keep_put_back_part(const struct weft_forest *live, struct weft_forest *wanted,
                            const char *node, uint32_t gaps) __attribute__((warn_unused_result));

#endif
