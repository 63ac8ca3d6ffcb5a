/* SPDX-License-Identifier: Apache-2.0 */
/* Compares refusals with what was accepted. */
#include "controller/refusal.h"

#include <string.h>

const char *weft_refusal_kind_name(enum weft_refusal_kind kind)
{
    static const char *const names[WEFT_REFUSAL_KIND_COUNT] = {
        [WEFT_REFUSAL_BRAKE] = "brake",
        [WEFT_REFUSAL_TIERS] = "tiers",
        [WEFT_REFUSAL_FOREIGN] = "foreign-tier",
        [WEFT_REFUSAL_MOVE] = "move",
    };
    return names[kind];
}

bool weft_refusal_accepted(const struct weft_refusal *refusal,
                           const struct weft_acceptance *accepted, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct weft_acceptance *a = &accepted[i];
        if (strcmp(a->hash, refusal->hash) == 0 ||
            (a->target[0] != '\0' && strcmp(a->target, refusal->target) == 0)) {
            return true;
        }
    }
    return false;
}
