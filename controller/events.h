/* SPDX-License-Identifier: Apache-2.0 */
/* What people should see in `kubectl get events`, without flooding them: the same thing about the
 * same object is one Event whose count goes up now and then, new words about it come at most a few
 * in a row and then one a minute, all together ten requests a second, in a bounded queue. What
 * could not be said is said with the next report. Loop thread only. */
#ifndef WEFT_CONTROLLER_EVENTS_H
#define WEFT_CONTROLLER_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_clock;
struct weft_events;
struct weft_kube_call;
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
    /* One of several things of one reason about it; NULL: it is the only one. A thing with a part
     * is over once a sweep finds that it was not reported since the sweep before. */
    const char *part;
};

struct weft_events_options {
    /* As weft_kube_event_post and weft_kube_call_cancel, whose client is client (may be NULL then:
     * nothing is sent). */
    int (*post)(struct weft_kube_client *client, const struct weft_kube_event *event,
                struct weft_kube_call **ret_call, struct weft_error *err);
    void (*cancel)(struct weft_kube_call *call);
    struct weft_kube_client *client;
    const char *instance;           /* which process reports; copied */
    const struct weft_clock *clock; /* NULL: the system's */
};

/* Since the start, for metrics. */
struct weft_events_stats {
    uint64_t sent;     /* requests that the server took: new Events and counts of old ones */
    uint64_t repeats;  /* reports that needed no request: the same was said lately */
    uint64_t too_many; /* dropped: too often something else about one object and reason */
    uint64_t overflow; /* dropped: the queue was full, or memory short */
    uint64_t failed;   /* not taken by the server */
};

int weft_events_new(struct weft_loop *loop, const struct weft_events_options *options,
                    struct weft_events **ret_events, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Cancels what is under way. */
void weft_events_free(struct weft_events *events);
WEFT_DEFINE_AUTO(struct weft_events, weft_events_free)

/* true if it is new: then it is queued (or dropped and counted, see the stats); false if the same
 * was said about the object lately, or something else too often. */
bool weft_events_add(struct weft_events *events, const struct weft_event_object *object,
                     bool warning, const char *reason, const char *action, const char *note);
/* While held nothing is sent; what is added waits. */
void weft_events_hold(struct weft_events *events, bool hold);
/* The condition is over: when it is reported again, that is news. */
void weft_events_clear(struct weft_events *events, const char *kind, const char *name,
                       const char *reason);
/* All things with a part were reported that are the case now. */
void weft_events_sweep(struct weft_events *events);

const struct weft_events_stats *weft_events_stats(const struct weft_events *events);

#endif
