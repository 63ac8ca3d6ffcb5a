/* SPDX-License-Identifier: Apache-2.0 */
/* What people are told: log lines and Events (report.c), the status (tell.c). Loop thread only. */
#ifndef WEFT_CONTROLLER_TELL_H
#define WEFT_CONTROLLER_TELL_H

#include <stdbool.h>
#include <stddef.h>

#include "controller/status-text.h"
#include "pkg/base/error.h"
#include "pkg/source/config.h"
#include "pkg/tree/findings.h"

struct weft_controller;
struct weft_status;
struct weft_timer;
struct weft_volcano;

struct weft_tell {
    struct weft_status *status; /* this and the next two: NULL in a run that only reads */
    struct weft_volcano *volcano;
    struct weft_timer *timer;
    struct weft_findings beside; /* HyperNodes of Volcano's own discovery */
    struct weft_error source_errors[WEFT_CONFIG_SOURCES_MAX];
    char pass_error[WEFT_ERROR_MESSAGE_MAX]; /* of the last pass, or "" */
    bool thought;                            /* a pass has run since the Lease was taken */
    bool ending;                             /* a run that ends by itself waits for the status */
};

/* ---- tell.c ---- */

int weft_controller_tell_init(struct weft_controller *c, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_controller_tell_done(struct weft_controller *c);
/* The Lease was taken, or lost. */
void weft_controller_tell_lead(struct weft_controller *c, bool leading);
/* Which versions of HyperNodes are served has changed: Volcano is looked at now. */
void weft_controller_look_beside(struct weft_controller *c);
/* A pass has ended: error is why it came to nothing, or "". */
void weft_controller_thought(struct weft_controller *c, const char *error);
/* Something that the status shows may have changed: it is written soon, after HyperNodes. */
void weft_controller_tell(struct weft_controller *c);
/* Is a request of the status under way? */
bool weft_controller_telling(const struct weft_controller *c);
/* Writes the status of a run that ends by itself, then stops; without waiting if that fails. */
void weft_controller_end_once(struct weft_controller *c, int exit_status);
/* Borrowed until the loop runs on. */
void weft_controller_facts(struct weft_controller *c, struct weft_status_facts *ret);
void weft_controller_findings(const struct weft_controller *c, struct weft_finding_lists *ret);

/* ---- report.c ---- */

void weft_controller_report(struct weft_controller *c);
void weft_controller_say_findings(struct weft_controller *c);
void weft_controller_say(struct weft_controller *c, bool warning, const char *reason,
                         const char *action, const char *note);
/* The end of a word that count stands before: "" or "s". */
const char *weft_controller_s(size_t count);
void weft_controller_print_plan(const struct weft_controller *c);

#endif
