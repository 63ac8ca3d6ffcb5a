/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin counts of faults and of changes of health. */
#include "deviceplugin/stats.h"

#include "pkg/base/mem.h"
#include "pkg/machine/backend.h"
#include "tests/unit/unit.h"

static void tell(struct weft_stats *stats, enum weft_backend_event_kind kind, uint64_t code,
                 bool again)
{
    weft_stats_event(stats,
                     &(struct weft_backend_event){.kind = kind, .code = code, .again = again});
}

static void codes_are_counted_once_for_all_devices(void)
{
    struct weft_stats stats = {0};
    tell(&stats, WEFT_EVENT_UNHEALTHY, 79, false);
    tell(&stats, WEFT_EVENT_UNHEALTHY, 79, true); /* the GPU's next MIG instance */
    tell(&stats, WEFT_EVENT_NOTICE, 31, false);
    tell(&stats, WEFT_EVENT_NOTICE, 31, false);
    tell(&stats, WEFT_EVENT_NOTICE, 79, false); /* the settings changed */
    tell(&stats, WEFT_EVENT_UNHEALTHY, 0, false);
    CHECK_INT(stats.code_count, 2);
    CHECK_INT(stats.codes[0].code, 79);
    CHECK_INT(stats.codes[0].faults, 1);
    CHECK_INT(stats.codes[0].notices, 1);
    CHECK_INT(stats.codes[1].code, 31);
    CHECK_INT(stats.codes[1].faults, 0);
    CHECK_INT(stats.codes[1].notices, 2);
}

static void more_codes_than_places_share_one(void)
{
    struct weft_stats stats = {0};
    for (uint64_t code = 1; code <= WEFT_STATS_CODES_MAX + 5; code++) {
        tell(&stats, WEFT_EVENT_UNHEALTHY, code, false);
    }
    CHECK_INT(stats.code_count, WEFT_STATS_CODES_MAX);
    CHECK_INT(stats.codes[0].faults, 1);
    CHECK(stats.codes[WEFT_STATS_CODES_MAX - 1].code == UINT64_MAX);
    CHECK_INT(stats.codes[WEFT_STATS_CODES_MAX - 1].faults, 6);
    tell(&stats, WEFT_EVENT_UNHEALTHY, 1, false);
    CHECK_INT(stats.codes[0].faults, 2);
}

static void changes_of_health_are_counted_by_state_and_cause(void)
{
    struct weft_stats stats = {0};
    struct weft_health_move move = {.device = "gpu-0",
                                    .from = WEFT_HEALTH_HEALTHY,
                                    .to = WEFT_HEALTH_UNHEALTHY,
                                    .cause = WEFT_CAUSE_EVENT,
                                    .reason = "XID 79"};
    weft_stats_move(&stats, &move);
    move.damped = true;
    weft_stats_move(&stats, &move);
    CHECK_INT(stats.health_moves[WEFT_HEALTH_UNHEALTHY][WEFT_CAUSE_EVENT], 2);
    CHECK_INT(stats.health_moves[WEFT_HEALTH_UNHEALTHY][WEFT_CAUSE_LOOK], 0);
    CHECK_INT(stats.flapping, 1);
}

WEFT_SUITE(stats,
           {"codes are counted once for all devices", codes_are_counted_once_for_all_devices},
           {"more codes than places share one", more_codes_than_places_share_one},
           {"changes of health are counted by state and cause",
            changes_of_health_are_counted_by_state_and_cause})
