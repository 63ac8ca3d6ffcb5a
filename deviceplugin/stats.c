/* SPDX-License-Identifier: Apache-2.0 */
/* Preferred allocations, told in one line each: what was asked, what was answered, and the entries
 * of the objective (allocation.md) that the answer has; changes of health likewise. */
#include "deviceplugin/stats.h"

#include <inttypes.h>

#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/base/mem.h"
#include "pkg/machine/backend.h"

enum { LINE_MAX_BYTES = 4096, IDS_SHOWN = 64 };

void weft_stats_done(struct weft_stats *stats)
{
    for (size_t i = 0; i < WEFT_PREFERENCES_KEPT; i++) {
        weft_free(weft_steal(&stats->preferences[i]));
    }
}

static void put_ids(struct weft_buf *line, const struct weft_preference *p)
{
    const size_t shown = p->count < IDS_SHOWN ? p->count : IDS_SHOWN;
    for (size_t i = 0; i < shown; i++) {
        (void)weft_buf_printf(line, "%s%s", i > 0 ? "," : "", p->ids[i]);
    }
    if (shown < p->count) {
        (void)weft_buf_printf(line, ",… %zu more", p->count - shown);
    }
}

static void put_objective(struct weft_buf *line, const struct weft_objective *o)
{
    (void)weft_buf_printf(
        line,
        " components=%" PRIu32 " min_cut_mbps=%" PRIu64 " worst_tier=%d sockets=%" PRIu32
        " numa_nodes=%" PRIu32 " broken_groups=%" PRIu32 " leftover=%" PRIu32 " nic_near=%" PRIu32
        " nic_distinct=%" PRIu32 " bandwidth_mbps=%" PRIu64,
        o->components, o->min_cut_mbps, o->worst_tier, o->sockets, o->numa_nodes, o->broken_groups,
        o->leftover, o->nic_near, o->nic_distinct, o->bandwidth_mbps);
}

static char *describe(const struct weft_preference *p)
{
    char when[WEFT_TIME_TEXT_MAX];
    struct weft_buf line;
    weft_buf_init(&line, LINE_MAX_BYTES);
    (void)weft_buf_printf(&line, "ts=%s size=%" PRId64 " available=%zu required=%zu chosen=",
                          weft_time_format(weft_clock_realtime(weft_clock_system()), when), p->size,
                          p->available, p->required);
    put_ids(&line, p);
    if (!p->answered) {
        (void)weft_buf_puts(&line, " answer=none");
    } else {
        (void)weft_buf_printf(&line, " exact=%s", p->exact ? "true" : "false");
    }
    if (p->answered && p->scored) {
        put_objective(&line, &p->objective);
    }
    char *text = weft_buf_steal(&line);
    weft_buf_done(&line);
    return text;
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
    char *line = describe(preference);
    if (line == NULL) {
        return; /* short of memory: counted, not told */
    }
    weft_log(WEFT_LOG_DEBUG, "preferred", WEFT_KV_S("allocation", line));
    char **place = &stats->preferences[stats->preference_count++ % WEFT_PREFERENCES_KEPT];
    weft_free(*place);
    *place = line;
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
