/* SPDX-License-Identifier: Apache-2.0 */
/* Losses and waits, as numbers. */
#include "deviceplugin/rivalry.h"

#include <stdbool.h>

#include "pkg/base/clock.h"

#define WINDOW_NS (60 * WEFT_NS_PER_S)
#define AWAY_MIN_NS (30 * WEFT_NS_PER_S)
#define AWAY_MAX_NS (300 * WEFT_NS_PER_S)

enum { SPREAD_PERCENT = 20 };

int64_t weft_rivalry_seen(struct weft_rivalry *rivalry, int64_t now_ns)
{
    const int64_t away = rivalry->away_ns > 0 ? rivalry->away_ns : AWAY_MIN_NS;
    rivalry->lost_ns = now_ns + away; /* the wait is no time of peace */
    rivalry->away_ns = away * 2 < AWAY_MAX_NS ? away * 2 : AWAY_MAX_NS;
    return away;
}

int64_t weft_rivalry_lost(struct weft_rivalry *rivalry, int64_t now_ns)
{
    const bool again = rivalry->lost_ns != 0 && now_ns - rivalry->lost_ns < WINDOW_NS;
    if (again) {
        return weft_rivalry_seen(rivalry, now_ns);
    }
    if (now_ns - rivalry->lost_ns > rivalry->away_ns + WINDOW_NS) {
        rivalry->away_ns = AWAY_MIN_NS;
    }
    rivalry->lost_ns = now_ns;
    return 0;
}

int64_t weft_spread(int64_t wait_ns, uint64_t *seed)
{
    *seed += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 (Steele, Lea, Flood 2014) */
    uint64_t z = *seed;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return wait_ns - wait_ns / 100 * (int64_t)(z % (SPREAD_PERCENT + 1));
}
