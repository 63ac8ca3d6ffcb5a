/* SPDX-License-Identifier: Apache-2.0 */
/* Which HyperNodes with running gangs a change touches: the scheduler remembers a gang's place by
 * name, so a node that leaves a HyperNode under a running gang sends replacement pods elsewhere.
 * Compares two sets for given pods; who runs where, the caller knows. Pure. */
#ifndef WEFT_HYPERNODE_AFFECTED_H
#define WEFT_HYPERNODE_AFFECTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_hypernode_set;

enum { WEFT_PLACEMENTS_MAX = 1 << 22 };

/* A pod of a gang (a PodGroup: "namespace/name") on a node. Borrowed. */
struct weft_placement {
    const char *node;
    const char *gang;
};

/* How many of the nodes that leave are named. */
enum { WEFT_AFFECTED_MOVES_MAX = 8 };

/* A gang with pods in a HyperNode that some of their nodes leave. */
struct weft_affected_gang {
    char *hypernode; /* as it is called now */
    int64_t tier;
    char *gang;
    size_t nodes;         /* of the gang that are below it now */
    size_t pods;          /* of the gang on these */
    size_t leaving_nodes; /* of these, who will not be below it */
    size_t leaving_pods;
    /* the first of those by name and where they go on that tier: "n1 to b, n2 to none, 7 more" */
    char *moves;
    /* all of the gang is below it now, and no HyperNode of that tier will have all of it */
    bool torn;
};

struct weft_affected {
    struct weft_affected_gang *items; /* by tier, HyperNode, gang */
    size_t count;
    size_t cap;
};

void weft_affected_done(struct weft_affected *affected);
WEFT_DEFINE_AUTO_VALUE(struct weft_affected, weft_affected_done)

struct weft_affected_input {
    const struct weft_hypernode_set *before; /* the HyperNodes that exist */
    const struct weft_hypernode_set *after;  /* what shall be (weft_plan.target) */
    const char *instance;                    /* whose HyperNodes change; others stay as they are */
    const struct weft_placement *placements; /* in any order, several pods on a node too */
    size_t count;
};

/* Members other than by exactMatch are not followed. The caller owns *ret_affected's content.
 * Errors: -EFBIG over WEFT_PLACEMENTS_MAX, -ENOMEM. */
int weft_hypernode_affected(const struct weft_affected_input *input,
                            struct weft_affected *ret_affected, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
