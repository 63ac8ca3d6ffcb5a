/* SPDX-License-Identifier: Apache-2.0 */
/* What people should see in `kubectl get events`, without flooding them: one Event an hour for one
 * reason and object, at most ten a second, a bounded queue. Loop thread only. */
#ifndef WEFT_CONTROLLER_EVENTS_H
#define WEFT_CONTROLLER_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_clock;
struct weft_events;
struct weft_kube_client;
struct weft_kube_event;
struct weft_loop;

enum { WEFT_EVENTS_QUEUE_MAX = 1000, WEFT_EVENTS_PER_SECOND = 10 };

/* The object an Event is about. Text is borrowed for the call. */
struct weft_event_object {
    const char *api_version;
    const char *kind;
    const char *ns; /* "" for cluster-scoped */
    const char *name;
    const char *uid; /* "" if unknown */
};

struct weft_events_options {
    /* As weft_kube_event_post, whose client is client (may be NULL then: nothing is sent). */
    int (*post)(struct weft_kube_client *client, const struct weft_kube_event *event,
                struct weft_error *err);
    struct weft_kube_client *client;
    const char *instance;           /* which process reports; copied */
    const struct weft_clock *clock; /* NULL: the system's */
};

int weft_events_new(struct weft_loop *loop, const struct weft_events_options *options,
                    struct weft_events **ret_events, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_events_free(struct weft_events *events);
WEFT_DEFINE_AUTO(struct weft_events, weft_events_free)

/* true if it is new: then it is queued (or dropped, if the queue is full or memory is short); false
 * if the same reason was reported for the same object within the last hour. */
bool weft_events_add(struct weft_events *events, const struct weft_event_object *object,
                     bool warning, const char *reason, const char *action, const char *note);
/* While held nothing is sent; what is added waits. */
void weft_events_hold(struct weft_events *events, bool hold);
/* The condition is over: the next time it is reported at once. */
void weft_events_clear(struct weft_events *events, const char *kind, const char *name,
                       const char *reason);

#endif
