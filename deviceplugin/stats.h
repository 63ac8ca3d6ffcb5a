/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin counts about itself, filled in where it happens, read by observe.c. Loop thread.
 */
#ifndef WEFT_DEVICEPLUGIN_STATS_H
#define WEFT_DEVICEPLUGIN_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "deviceplugin/health.h"
#include "pkg/base/error.h"
#include "pkg/http/metrics.h"

struct weft_backend_event;
struct weft_kept_preference;
struct weft_preference;

enum { WEFT_PREFERENCES_KEPT = 128 }; /* at /debug/allocations, the newest first */

enum { WEFT_STATS_CODES_MAX = 32 }; /* error codes that are told apart; the last takes the rest */

/* How often the driver told of a code: as a fault, and as none. */
struct weft_code_count {
    uint64_t code;
    uint64_t faults, notices;
};

struct weft_stats {
    uint64_t preferred_exact, preferred_bounded, preferred_empty; /* containers */
    struct weft_histogram preferred_time;                         /* of a request */
    uint64_t allocated, refused;                                  /* Allocate requests */
    struct weft_histogram allocate_time;
    uint64_t registered, register_failed;
    uint64_t stepped_back; /* from another plugin of the same resource */
    uint64_t lists_sent;   /* device lists, each to one stream */
    /* changes of a device's state of health, by the state that it came into, and why */
    uint64_t health_moves[WEFT_HEALTH_STATE_COUNT][WEFT_CAUSE_COUNT];
    struct weft_code_count codes[WEFT_STATS_CODES_MAX];
    size_t code_count;
    uint64_t flapping;                         /* devices that were found to flap */
    uint64_t machine_changes, machine_refused; /* new machines that were used, or not */
    uint64_t config_used, config_refused, config_unchanged; /* options that were read again */
    char machine_problem[WEFT_ERROR_MESSAGE_MAX]; /* why the latest machine is not in use, or "" */
    char config_problem[WEFT_ERROR_MESSAGE_MAX];  /* of the latest; "" if it was good */
    struct weft_kept_preference *preferences[WEFT_PREFERENCES_KEPT]; /* a ring; owned */
    uint64_t preference_count;
};

void weft_stats_done(struct weft_stats *stats);
/* Counts the answer, logs it at level debug and keeps it for its page. */
void weft_stats_prefer(struct weft_stats *stats, const struct weft_preference *preference);
/* Counts an error code, once for all devices that it is of. */
void weft_stats_event(struct weft_stats *stats, const struct weft_backend_event *event);
/* Counts the change and logs its line. */
void weft_stats_move(struct weft_stats *stats, const struct weft_health_move *move);

#endif
