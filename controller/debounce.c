/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of waiting; must not read a clock or set a timer. */
#include "controller/debounce.h"

static int64_t add_capped(int64_t a, int64_t b)
{
    return a > INT64_MAX - 1 - b ? INT64_MAX - 1 : a + b;
}

void weft_debounce_init(struct weft_debounce *debounce, int64_t quiet, int64_t max)
{
    *debounce = (struct weft_debounce){.quiet = quiet, .max = max, .pending = true, .urgent = true};
}

void weft_debounce_configure(struct weft_debounce *debounce, int64_t quiet, int64_t max)
{
    debounce->quiet = quiet;
    debounce->max = max;
}

void weft_debounce_touch(struct weft_debounce *debounce, int64_t now)
{
    if (!debounce->pending) {
        debounce->pending = true;
        debounce->first = now;
    }
    debounce->last = now;
}

void weft_debounce_rush(struct weft_debounce *debounce, int64_t now)
{
    weft_debounce_touch(debounce, now);
    debounce->urgent = true;
}

int64_t weft_debounce_due(const struct weft_debounce *debounce)
{
    if (!debounce->pending) {
        return WEFT_DEBOUNCE_NEVER;
    }
    if (debounce->urgent) {
        return 0;
    }
    const int64_t quiet = add_capped(debounce->last, debounce->quiet);
    const int64_t max = add_capped(debounce->first, debounce->max);
    return quiet < max ? quiet : max;
}

void weft_debounce_clear(struct weft_debounce *debounce)
{
    debounce->pending = false;
    debounce->urgent = false;
}
