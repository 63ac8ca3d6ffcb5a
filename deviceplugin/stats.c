/* SPDX-License-Identifier: Apache-2.0 */
#include "deviceplugin/stats.h"

#include "deviceplugin/preference.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/base/mem.h"
#include "pkg/machine/backend.h"

enum { LINE_MAX_BYTES = 8192 };

void weft_stats_done(struct weft_stats *stats)
{
    for (size_t i = 0; i < WEFT_PREFERENCES_KEPT; i++) {
        weft_free(weft_steal(&stats->preferences[i]));
    }
}

void weft_stats_prefer(struct weft_stats *stats, const struct weft_preference *preference)
{
    if (!preference->answered) {
        stats->preferred_empty++;
    } else if (preference->exact) {
        stats->preferred_exact++;
    } else {
        stats->preferred_bounded++;
    }
    struct weft_kept_preference *kept =
        weft_preference_keep(preference, weft_clock_realtime(weft_clock_system()));
    if (kept == NULL) {
        return; /* short of memory: counted, not told */
    }
    if (weft_log_enabled(WEFT_LOG_DEBUG)) {
        weft_auto(weft_buf_done) struct weft_buf line;
        weft_buf_init(&line, LINE_MAX_BYTES);
        weft_preference_write(kept, &line);
        weft_log(WEFT_LOG_DEBUG, "preferred", WEFT_KV_S("allocation", weft_buf_text(&line)));
    }
    struct weft_kept_preference **place =
        &stats->preferences[stats->preference_count++ % WEFT_PREFERENCES_KEPT];
    weft_free(*place);
    *place = kept;
}

void weft_stats_event(struct weft_stats *stats, const struct weft_backend_event *event)
{
    if (event->again || event->code == 0) {
        return;
    }
    size_t at = 0;
    while (at < stats->code_count && stats->codes[at].code != event->code) {
        at++;
    }
    if (at == WEFT_STATS_CODES_MAX) {
        at = WEFT_STATS_CODES_MAX - 1;
        stats->codes[at].code = UINT64_MAX; /* others, too */
    } else if (at == stats->code_count) {
        stats->codes[stats->code_count++].code = event->code;
    }
    stats->codes[at].faults += event->kind == WEFT_EVENT_UNHEALTHY ? 1 : 0;
    stats->codes[at].notices += event->kind == WEFT_EVENT_NOTICE ? 1 : 0;
}

void weft_stats_move(struct weft_stats *stats, const struct weft_health_move *move)
{
    stats->health_moves[move->to][move->cause]++;
    weft_log(
        weft_health_advertised(move->to) ? WEFT_LOG_INFO : WEFT_LOG_WARN, "health",
        WEFT_KV_S("device", move->device), WEFT_KV_S("from", weft_health_state_name(move->from)),
        WEFT_KV_S("to", weft_health_state_name(move->to)),
        WEFT_KV_S("cause", weft_health_cause_name(move->cause)), WEFT_KV_S("reason", move->reason));
    if (move->damped) {
        stats->flapping++;
        weft_log(WEFT_LOG_WARN, "flapping", WEFT_KV_S("device", move->device),
                 WEFT_KV_S("effect", "it has to be in order for longer before it is back"));
    }
}
