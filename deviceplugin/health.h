/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of the signs of a device's health: a state, which decides what the kubelet is told
 * (docs/device-plugin.md, "Health"). Pure: values in, values out; time is an argument. */
#ifndef WEFT_DEVICEPLUGIN_HEALTH_H
#define WEFT_DEVICEPLUGIN_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_machine;

enum { WEFT_HEALTH_CODES_MAX = 128 /* codes of one list */ };

/* A vendor's error codes, for NVIDIA XIDs: "13,31", "all". */
struct weft_health_codes {
    bool all;
    size_t count;
    uint64_t codes[WEFT_HEALTH_CODES_MAX];
};

/* Copied by value; owns nothing. */
struct weft_health_settings {
    /* An ambiguous sign makes a device Suspect; it is Unhealthy if the sign lasts that long.
     * 0: a third of --rescan (10 s). */
    int64_t suspect_ns;
    /* A device that recovers is Healthy after looks over that time that all found it in order.
     * 0: as --rescan (30 s). */
    int64_t recover_ns;
    /* A device that became Unhealthy flap_count times within flap_window_ns has to be in order for
     * flap_recover_ns. flap_count 0: such devices are treated like others. */
    unsigned flap_count;
    int64_t flap_window_ns, flap_recover_ns;
    /* Codes that are no fault of a device; those of counted are one in any case. */
    struct weft_health_codes ignored, counted;
    /* Nothing makes a device unhealthy but the codes of counted. */
    bool off;
    /* A device is Unhealthy while none of the NICs that are nearest to it has an active port. */
    bool nic_affects_gpu;
};

/* Three times in an hour means ten minutes; NVIDIA's list of codes that programs cause. */
void weft_health_settings_init(struct weft_health_settings *settings);

/* The text of --ignored-errors: numbers with commas between them, "" for none. Replaces the list
 * of codes that are ignored. These three: -EINVAL with what is allowed; settings are untouched
 * then. */
int weft_health_set_ignored(struct weft_health_settings *settings, const char *text,
                            struct weft_error *err) __attribute__((warn_unused_result));
/* NVIDIA's DP_DISABLE_HEALTHCHECKS: "all" for no health checks, "xids" for none by codes, numbers
 * to ignore as well. */
int weft_health_set_disabled(struct weft_health_settings *settings, const char *text,
                             struct weft_error *err) __attribute__((warn_unused_result));
/* NVIDIA's DP_ENABLE_HEALTHCHECKS: codes that count whatever the other lists say; "all" and "xids"
 * for every one. */
int weft_health_set_enabled(struct weft_health_settings *settings, const char *text,
                            struct weft_error *err) __attribute__((warn_unused_result));
/* Is a fault with that code one of the device? Code 0 is not of a list and is, unless off. */
bool weft_health_counts(const struct weft_health_settings *settings, uint64_t code);
/* The times that are 0 by what --rescan says. */
void weft_health_settings_finish(struct weft_health_settings *settings, int64_t rescan_ns);

/* ---- one device ---- */

enum weft_health_state {
    WEFT_HEALTH_HEALTHY,
    WEFT_HEALTH_SUSPECT, /* still advertised as healthy */
    WEFT_HEALTH_UNHEALTHY,
    WEFT_HEALTH_RECOVERING, /* still advertised as unhealthy */
    WEFT_HEALTH_STATE_COUNT
};

enum weft_health_sign {
    WEFT_SIGN_CLEAN, /* a look found it in order */
    WEFT_SIGN_DOUBT, /* a look got no clear answer */
    WEFT_SIGN_FAULT, /* an event, or a look that found it out of order */
    WEFT_SIGN_COUNT
};

enum { WEFT_HEALTH_FALLS_MAX = 16 /* the most that flap_count can be */ };

/* Zeroed: healthy. */
struct weft_health_unit {
    enum weft_health_state state;
    int64_t since_ns; /* when it came into that state; in Recovering the first clean look */
    bool damped;      /* it flaps: it has to be in order for longer */
    unsigned fall_count;
    int64_t falls_ns[WEFT_HEALTH_FALLS_MAX]; /* when it became Unhealthy, a ring */
};

/* Takes one sign in; true if the state is another one now. */
bool weft_health_step(const struct weft_health_settings *settings, struct weft_health_unit *unit,
                      enum weft_health_sign sign, int64_t now_ns);
/* Is a device of that state healthy to the kubelet? */
bool weft_health_advertised(enum weft_health_state state);
/* "healthy", "suspect"... */
const char *weft_health_state_name(enum weft_health_state state);

/* ---- all devices of a machine ---- */

/* Why a state changed, for people who count. */
enum weft_health_cause {
    WEFT_CAUSE_LOOK,         /* the driver or the kernel said so when asked */
    WEFT_CAUSE_EVENT,        /* the driver told of a fault: an XID */
    WEFT_CAUSE_UNRESPONSIVE, /* a call into the driver did not come back in time */
    WEFT_CAUSE_DRIVER,       /* the driver or its library is gone */
    WEFT_CAUSE_NIC,          /* nic_affects_gpu */
    WEFT_CAUSE_CLEAN,        /* it was found in order */
    WEFT_CAUSE_COUNT
};
const char *weft_health_cause_name(enum weft_health_cause cause);

/* One change of one device's state; valid during the call. */
struct weft_health_move {
    const char *device;
    enum weft_health_state from, to;
    enum weft_health_cause cause;
    const char *reason; /* one sentence; what was wrong, also where it is over */
    bool damped;        /* it flaps, from now on */
};

struct weft_health_table;

/* settings are copied, their times finished. moved is told each change of a state (may be NULL).
 * -ENOMEM. */
int weft_health_table_new(const struct weft_health_settings *settings,
                          void (*moved)(void *data, const struct weft_health_move *move),
                          void *data, struct weft_health_table **ret_table)
    __attribute__((warn_unused_result));
void weft_health_table_free(struct weft_health_table *table);
WEFT_DEFINE_AUTO(struct weft_health_table, weft_health_table_free)

/* Other settings from now on. */
void weft_health_table_configure(struct weft_health_table *table,
                                 const struct weft_health_settings *settings);
/* A look at the machine: each device is clean, in doubt (state SUSPECT) or at fault (not healthy).
 * A device that is not in the machine any more is forgotten. -ENOMEM: nothing was taken in. */
int weft_health_look(struct weft_health_table *table, const struct weft_machine *machine,
                     int64_t now_ns) __attribute__((warn_unused_result));
/* A fault of one device, or of all ("" or NULL). A device that no look showed is passed over. */
void weft_health_fault(struct weft_health_table *table, const char *device,
                       enum weft_health_cause cause, const char *reason, int64_t now_ns);
/* Writes what the kubelet is to be told into the devices of the machine: healthy, state, reason. */
void weft_health_apply(const struct weft_health_table *table, struct weft_machine *machine);
/* How soon the machine should be looked at again for the devices' sake; 0: all are healthy. */
int64_t weft_health_pace(const struct weft_health_table *table, int64_t rescan_ns);

#endif
