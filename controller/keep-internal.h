/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of keep share: the judge (keep.c), the brakes (keep-brakes.c), tiers
 * (keep-tiers.c), places (keep-places.c) and what is remembered between passes (keep-memory.c).
 * Private to controller/keep*.c. Pure. */
#ifndef WEFT_CONTROLLER_KEEP_INTERNAL_H
#define WEFT_CONTROLLER_KEEP_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/keep.h"

struct weft_forest;
struct weft_hypernode_set;

/* ---- one call ---- */

/* IN_PART: what is left of the node's evidence agrees with its last place */
enum weft_keep_verdict {
    WEFT_KEEP_STAYS,
    WEFT_KEEP_JOINS,
    WEFT_KEEP_MOVES,
    WEFT_KEEP_LOST,
    WEFT_KEEP_IN_PART,
    WEFT_KEEP_ABSENT,
    WEFT_KEEP_LEAVES
};

/* What stands in the way as far as tiers go. */
struct weft_keep_tiers {
    bool differ; /* tierName or number of existing objects would change */
    bool freed;  /* …which was accepted */
    bool clash;  /* a tierName would be new to ours and another owner's has it on another tier */
};

/* One call's state, so that its steps take one argument. */
struct weft_keep_judge {
    struct weft_keep *keep;
    const struct weft_keep_input *input;
    const struct weft_keep_options *options;
    const struct weft_keep_node *nodes;
    size_t count;
    struct weft_forest *live;
    struct weft_forest *wanted;
    enum weft_keep_verdict *verdicts;
    bool *freed; /* by node: its change was accepted, in this call or an earlier one */
    struct weft_keep_tiers tiers;
    struct weft_keep_result *result;
};

static inline bool weft_keep_is_lost(enum weft_keep_verdict v)
{
    return v == WEFT_KEEP_LOST || v == WEFT_KEEP_IN_PART;
}

/* The index of the node's tally. */
size_t weft_keep_tally_of(const struct weft_keep_node *node);
/* Names the place at which the node is wanted; never 0. */
uint64_t weft_keep_target(const struct weft_forest *wanted, const char *node);

/* keep-brakes.c: pulls the brakes, names what they hold, and lets go of what is accepted. */
int weft_keep_brake(struct weft_keep_judge *j) __attribute__((warn_unused_result));
/* keep-brakes.c: refuses the moves of these nodes (by index), which wait for a gang's end, unless
 * they are accepted: then *ret_free. */
int weft_keep_refuse_moves(struct weft_keep_judge *j, const bool *nodes, bool *ret_free)
    __attribute__((warn_unused_result));
/* keep-brakes.c: fills the refusal's hash from where these nodes are and where they are wanted, or
 * its target from the latter alone. */
int weft_keep_name_change(const struct weft_keep_judge *j, const bool *nodes,
                          struct weft_refusal *refusal) __attribute__((warn_unused_result));
int weft_keep_name_target(const struct weft_keep_judge *j, const bool *nodes,
                          struct weft_refusal *refusal) __attribute__((warn_unused_result));
/* keep-brakes.c: adds it to the result, or returns true if it is accepted. */
bool weft_keep_add_refusal(struct weft_keep_judge *j, const struct weft_refusal *refusal);
/* keep-brakes.c: the change of these nodes is accepted, until it is done. */
int weft_keep_free_nodes(struct weft_keep_judge *j, const bool *nodes)
    __attribute__((warn_unused_result));
/* keep-tiers.c: fills j->tiers and refuses what must be; before the nodes are judged. */
int weft_keep_check_tiers(struct weft_keep_judge *j) __attribute__((warn_unused_result));

/* keep-settle.c: puts back who waits or is kept. */
int weft_keep_settle(struct weft_keep_judge *j) __attribute__((warn_unused_result));
/* keep-tiers.c: does wanted use the object's tier under its tierName? */
bool weft_keep_tier_wanted(const struct weft_hypernode_set *wanted,
                           const struct weft_hypernode *object);

/* ---- memory ---- */

/* A Node that is missing, or wanted elsewhere. */
struct weft_keep_note {
    int64_t since;
    uint64_t target; /* 0: missing; else names the place that it is wanted at */
    unsigned times;  /* looks of its source in a row that said so */
    uint64_t look;   /* the last of them */
    uint64_t pass;   /* the last pass that took note */
    bool freed;      /* going to target was accepted */
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
/* Was it accepted in an earlier pass that the node goes to target (0: is lost)? */
bool weft_keep_was_freed(const struct weft_keep *keep, const char *node, uint64_t target);
/* Takes note of it. */
int weft_keep_free_node(struct weft_keep *keep, const struct weft_keep_input *input,
                        const struct weft_keep_node *node, uint64_t target)
    __attribute__((warn_unused_result));
/* The tiers that were accepted in this process, as a hash of tiers and names; 0: none. */
uint64_t *weft_keep_freed_tiers(struct weft_keep *keep);
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
