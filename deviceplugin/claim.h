/* SPDX-License-Identifier: Apache-2.0 */
/* Who may register a resource on this node: one process at a time, however many run. The claim is
 * a flock on a file in the kubelet's plugin folder, which every instance on the node sees, whatever
 * container it is in: the kernel gives it back when its holder ends, also by SIGKILL.
 *
 * The file may go (a wiped folder; old kubelets empty theirs at every start). Its holder then makes
 * it anew and keeps the claim; one that waits lets it do so for WEFT_CLAIM_GRACE_NS. Whoever finds
 * another's lock on the file that is there now has lost, so there is never more than one for longer
 * than that. Level-triggered: weft_claim_check compares and acts; a few quick system calls. Loop
 * thread. */
#ifndef WEFT_DEVICEPLUGIN_CLAIM_H
#define WEFT_DEVICEPLUGIN_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "pkg/base/clock.h"
#include "pkg/base/error.h"
#include "pkg/base/mem.h"

#define WEFT_CLAIM_GRACE_NS (400 * WEFT_NS_PER_MS)

enum { WEFT_CLAIM_HOLDER_MAX = 160 };

enum weft_claim_state {
    WEFT_CLAIM_HELD,
    WEFT_CLAIM_TAKEN,   /* by another process */
    WEFT_CLAIM_UNKNOWN, /* the file cannot be made or locked here: nobody can be asked */
    WEFT_CLAIM_COUNT
};

struct weft_claim;

/* Takes nothing yet. slug: the resource as a part of a file name (weft_folder_slug). -ENOMEM. */
int weft_claim_new(const char *folder, const char *slug, struct weft_claim **ret_claim,
                   struct weft_error *err) __attribute__((warn_unused_result));
/* Gives the claim back. NULL is fine. */
void weft_claim_free(struct weft_claim *claim);
WEFT_DEFINE_AUTO(struct weft_claim, weft_claim_free)

/* Takes the claim if it is free, and sees whether it still is ours. err (may be NULL) is set for
 * WEFT_CLAIM_UNKNOWN. */
enum weft_claim_state weft_claim_check(struct weft_claim *claim, int64_t now_ns,
                                       struct weft_error *err);
/* What the holder wrote into the file about itself ("pid=7 host=weft-x2x4d"), for a person; "" if
 * unknown. Borrowed until the next check. */
const char *weft_claim_holder(const struct weft_claim *claim);
/* The file's name in the folder. */
const char *weft_claim_name(const struct weft_claim *claim);

#endif
