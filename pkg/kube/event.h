/* SPDX-License-Identifier: Apache-2.0 */
/* Kubernetes Events (events.k8s.io/v1) that `kubectl describe` and `kubectl get events` show. One
 * call is one request; the caller keeps their rate down. A failure is reported and nothing is tried
 * again. An Event's name is made from what it says: who says the same thing again, after a restart
 * or as another replica, meets 409 AlreadyExists instead of repeating it. Loop thread only. */
#ifndef WEFT_KUBE_EVENT_H
#define WEFT_KUBE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/kube/client.h"

struct weft_kube_event {
    /* The object it is about; ns "" for cluster-scoped (the Event then stands in "default", as
     * the API demands). uid may be "". */
    const char *api_version, *kind, *ns, *name, *uid;
    bool warning;           /* type Warning, else Normal */
    const char *reason;     /* CamelCase, at most 128 bytes */
    const char *action;     /* what was done or not done, CamelCase, at most 128 bytes */
    const char *note;       /* for people; cut at 1024 bytes on a character's border */
    const char *controller; /* which kind of program reports: "weft.dev/controller" */
    const char *instance;   /* which process of it, at most 128 bytes */
    /* 0: it is said for the first time. From 2 on: the Event that was posted with the same content
     * is told that it was seen so often until now (its series; all else of an Event is immutable);
     * 404 if the server has forgotten it. */
    uint32_t count;
    weft_kube_result_fn on_done; /* may be NULL */
    void *data;
};

/* *ret_call (may be NULL) as in weft_kube_submit; errors likewise. */
int weft_kube_event_post(struct weft_kube_client *client, const struct weft_kube_event *event,
                         struct weft_kube_call **ret_call, struct weft_error *err)
    __attribute__((warn_unused_result));

/* A hash of what the Event says about which object: equal hash, equal Event. Who says it (instance)
 * and when is not in it. */
uint64_t weft_kube_event_id(const struct weft_kube_event *event);

#endif
