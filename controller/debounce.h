/* SPDX-License-Identifier: Apache-2.0 */
/* When the next pass is due: some quiet after the last change, but never longer than max after the
 * first; at once for what cannot wait. It holds times only and asks no clock: every call takes the
 * monotonic time in nanoseconds. One thread. */
#ifndef WEFT_CONTROLLER_DEBOUNCE_H
#define WEFT_CONTROLLER_DEBOUNCE_H

#include <stdbool.h>
#include <stdint.h>

#define WEFT_DEBOUNCE_NEVER INT64_MAX

struct weft_debounce {
    int64_t quiet; /* ns without a change before a pass */
    int64_t max;   /* longest wait of the first change, ns */
    int64_t first; /* time of the oldest change that waits; valid while pending */
    int64_t last;  /* time of the newest */
    bool pending;
    bool urgent; /* due at once */
};

/* A fresh one is urgent: the first pass waits for nothing. */
void weft_debounce_init(struct weft_debounce *debounce, int64_t quiet, int64_t max);
/* Takes new times (a changed configuration); what waits goes on waiting. */
void weft_debounce_configure(struct weft_debounce *debounce, int64_t quiet, int64_t max);
/* Something changed at now. */
void weft_debounce_touch(struct weft_debounce *debounce, int64_t now);
/* Something changed that must not wait: an object of ours was deleted by hand. */
void weft_debounce_rush(struct weft_debounce *debounce, int64_t now);
/* The monotonic time at which the next pass is due; WEFT_DEBOUNCE_NEVER if nothing changed. */
int64_t weft_debounce_due(const struct weft_debounce *debounce);
/* A pass begins: all changes so far are in it. */
void weft_debounce_clear(struct weft_debounce *debounce);

#endif
