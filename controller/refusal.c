/* SPDX-License-Identifier: Apache-2.0 */
/* The words for kinds of refusals. */
#include "controller/refusal.h"

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
