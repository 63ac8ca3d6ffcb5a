/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps Nodes where they are while there is doubt, and re-cabled ones until it is settled where
 * they are. A Node that exists and that no source places any more keeps its last place, read from
 * the HyperNodes that exist; so does one of which the sources only miss levels, as long as what
 * they say agrees with that place. A change that is too large to be believed is held back (brakes)
 * until it is accepted by its hash. Joins always go on.
 *
 * It compares two sets and returns a third: no I/O, no clock of its own. What it remembers between
 * passes is only for how long a Node has been missing; losing that memory makes it keep longer,
 * never shorter. */
#ifndef WEFT_CONTROLLER_KEEP_H
#define WEFT_CONTROLLER_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/apply/refusal.h"
#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/hypernode/hypernode.h"

struct weft_keep;

enum { WEFT_KEEP_SOURCES_MAX = 64 };
_Static_assert((int)WEFT_REFUSALS_MAX >= (int)WEFT_KEEP_SOURCES_MAX + 4,
               "one brake a source and one of Nodes without, and one refusal of each other kind");
/* the source of a Node that none is known to have placed */
#define WEFT_KEEP_NO_SOURCE SIZE_MAX
#define WEFT_KEEP_NEVER INT64_C(-1)

/* Does a pod of a gang run on the Node? Asked only of Nodes that are about to move. */
enum weft_keep_gang { WEFT_KEEP_GANG_NONE, WEFT_KEEP_GANG_UNKNOWN, WEFT_KEEP_GANG_RUNS };

/* A Node that exists now. */
struct weft_keep_node {
    const char *name; /* borrowed for the call */
    bool selected;    /* takes part (nodeSelector) */
    bool excluded;    /* carries the exclude label: leaves at once, counts nowhere */
    bool fresh;       /* a new Node under an old name: has no last place */
    bool part;        /* its source saw only a part, which moves nobody */
    uint32_t gaps;    /* bit n: a source could place it on tier n + 1 and none does (padding) */
    size_t source;    /* rank of the source that places it, or last did; or WEFT_KEEP_NO_SOURCE */
    enum weft_keep_gang gang;
};

struct weft_keep_options {
    const char *instance;  /* whose objects are ours */
    unsigned snapshots;    /* a loss counts after so many passes… */
    int64_t period;        /* …and this long, ns… */
    int64_t forget_after;  /* …and this long, ns, or WEFT_KEEP_NEVER */
    unsigned lost_percent; /* brakes; 100 or more: off */
    unsigned moved_percent;
    /* a move counts once so many looks in a row of the node's source agree on it; 0, 1: at once */
    unsigned settle;
    size_t min_nodes; /* below so many placed Nodes of a source its brakes are off */
    /* how long a Node with a running gang waits before it moves, ns; 0: it does not */
    int64_t move_delay;
    const struct weft_acceptance *accepted;
    size_t accepted_count; /* at most WEFT_ACCEPTANCES_MAX */
    int64_t now;           /* monotonic, ns */
};

struct weft_keep_input {
    const struct weft_hypernode_set *live;   /* all HyperNodes that exist */
    const struct weft_hypernode_set *wanted; /* the layout of what the sources say */
    const struct weft_keep_node *nodes;      /* each name once */
    size_t node_count;
    const struct weft_keep_options *options;
    /* by source: how many complete looks at it there were so far, which is how often something is
     * seen; one beyond look_count is looked at in every call */
    const uint64_t *looks;
    size_t look_count;
    /* names the cabling as its owner counts it (an optical switch's controller). When it changes,
     * moves were meant: until a source's second look after, its moves neither wait nor trip the
     * brake. NULL: nobody counts. Not remembered over a restart, after which moves wait */
    const char *epoch;
};

/* What one source wanted and what became of it. */
struct weft_keep_tally {
    size_t placed; /* existing Nodes with a place before */
    size_t joined;
    size_t moved;
    size_t lost;    /* no place now: unknown to the sources, also on one tier, or not selected */
    bool held;      /* moves and losses are held back… */
    bool accepted;  /* …or would be, but were accepted */
    bool lost_trip; /* which brake it was */
    bool moved_trip;
    char hash[WEFT_REFUSAL_HASH_MAX]; /* names the held or accepted change; "" if none */
};

struct weft_keep_result {
    struct weft_hypernode_set set; /* what to aim for */
    /* by source; the last entry is for Nodes without one */
    struct weft_keep_tally tallies[WEFT_KEEP_SOURCES_MAX + 1];
    bool refused; /* something is held until it is accepted (a move that waits apart) */
    bool frozen;  /* refused such that nothing at all is changed */
    struct weft_refusals refusals; /* all that is held, moves that wait too */
    uint64_t used;                 /* bit i: options' accepted[i] let something through */
    size_t kept; /* Nodes that keep their place although no source places them, or all of them */
    size_t settling; /* Nodes that keep their place until another look agrees on the new one */
    size_t waiting;  /* Nodes that keep their place because of a gang, or until one is ruled out */
    /* of these the ones of which it is not known; the list is owned, the names are borrowed */
    const char **unknown;
    size_t unknown_count;
    size_t dropped; /* Nodes that lost their place, or a tier of it, now (excluded ones apart) */
    /* names of the kept, the first few, borrowed from the nodes */
    const char *kept_names[8];
    int64_t due; /* monotonic time to decide again: a kept Node may be forgotten, or a move be
                    settled; INT64_MAX: never */
};

struct weft_keep *weft_keep_new(void) __attribute__((warn_unused_result));
void weft_keep_free(struct weft_keep *keep);
WEFT_DEFINE_AUTO(struct weft_keep, weft_keep_free)

void weft_keep_result_done(struct weft_keep_result *result);
WEFT_DEFINE_AUTO_VALUE(struct weft_keep_result, weft_keep_result_done)

/* The caller owns *ret_result (weft_keep_result_done). Errors: -ENOMEM, -EFBIG; then the memory of
 * missing Nodes is as before or has one pass less counted. */
int weft_keep_decide(struct weft_keep *keep, const struct weft_keep_input *input,
                     struct weft_keep_result *ret_result, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
