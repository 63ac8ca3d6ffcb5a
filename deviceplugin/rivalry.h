/* SPDX-License-Identifier: Apache-2.0 */
/* How often a living kubelet dropped us, and how long to keep away from what that means. Once may
 * be any reason; twice within a minute means that somebody else registers the same resource, for
 * the end of either one's stream closes the other's too. Pure. */
#ifndef WEFT_DEVICEPLUGIN_RIVALRY_H
#define WEFT_DEVICEPLUGIN_RIVALRY_H

#include <stdint.h>

/* Zero is the start: nothing was lost yet. */
struct weft_rivalry {
    int64_t lost_ns; /* the last loss, or the end of the last time away */
    int64_t away_ns; /* the next time away; 0: the shortest */
};

/* Our stream was lost at now_ns. 0: register again; else keep away so long: 30 s, then longer, 5
 * min at most. Peace for as long as the last time away and a minute more forgives. */
int64_t weft_rivalry_lost(struct weft_rivalry *rivalry, int64_t now_ns);
/* The other one was seen: as after a second loss. */
int64_t weft_rivalry_seen(struct weft_rivalry *rivalry, int64_t now_ns);

/* Spreads a wait, so that the nodes of a cluster do not all come at once: up to a fifth less. seed
 * is of the caller and changes. */
int64_t weft_spread(int64_t wait_ns, uint64_t *seed);

#endif
