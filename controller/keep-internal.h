/* SPDX-License-Identifier: Apache-2.0 */
/* What is compared between the HyperNodes that exist and those wanted before a Node's place is
 * judged, and what is remembered between passes. Private to controller/keep*.c. Pure. */
#ifndef WEFT_CONTROLLER_KEEP_INTERNAL_H
#define WEFT_CONTROLLER_KEEP_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_forest;
struct weft_hypernode_set;
struct weft_keep;
struct weft_keep_input;
struct weft_keep_node;

/* ---- memory ---- */

/* A Node that is missing, or wanted elsewhere. */
struct weft_keep_note {
    int64_t since;
    uint64_t target; /* 0: missing; else names the place that it is wanted at */
    unsigned times;  /* looks of its source in a row that said so */
    uint64_t look;   /* the last of them */
    uint64_t pass;   /* the last pass that took note */
};

/* Begins a pass: sees whether the epoch changed. -ENOMEM. */
int weft_keep_begin(struct weft_keep *keep, const struct weft_keep_input *input)
    __attribute__((warn_unused_result));
/* Was the cabling changed on purpose, so that the source's moves count at once? */
bool weft_keep_is_open(const struct weft_keep *keep, const struct weft_keep_input *input,
                       size_t source);
/* Counts this pass for the node; *ret_note is borrowed until the next call. -ENOMEM, -EFBIG. */
int weft_keep_take_note(struct weft_keep *keep, const struct weft_keep_input *input,
                        const struct weft_keep_node *node, uint64_t target,
                        const struct weft_keep_note **ret_note) __attribute__((warn_unused_result));
/* Ends a pass: forgets all of which it took no note: they came back, or are gone for good. */
int weft_keep_end(struct weft_keep *keep) __attribute__((warn_unused_result));

/* ---- comparing ---- */

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
