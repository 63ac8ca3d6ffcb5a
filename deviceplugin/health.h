/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be made of the signs of a device's health: the settings that people give. The states
 * they lead to stand below them. Pure: values in, values out; time is an argument. */
#ifndef WEFT_DEVICEPLUGIN_HEALTH_H
#define WEFT_DEVICEPLUGIN_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"

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

/* The text of --ignored-errors: numbers with commas between them, "" for none. Replaces the list of
 * codes that are ignored. These three: -EINVAL with what is allowed; settings are untouched then. */
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

#endif
