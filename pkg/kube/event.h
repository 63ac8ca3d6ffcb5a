/* SPDX-License-Identifier: Apache-2.0 */
/* Kubernetes Events (events.k8s.io/v1) that `kubectl describe` and `kubectl get events` show. One
 * call is one Event; the caller keeps their rate down. Fire and forget: a failure is reported and
 * nothing is tried again. Loop thread only. */
#ifndef WEFT_KUBE_EVENT_H
#define WEFT_KUBE_EVENT_H

#include <stdbool.h>

#include "pkg/base/error.h"
#include "pkg/kube/client.h"

struct weft_kube_event {
    /* The object it is about; ns "" for cluster-scoped (the Event then stands in "default", as
     * the API demands). uid may be "". */
    const char *api_version, *kind, *ns, *name, *uid;
    bool warning;                /* type Warning, else Normal */
    const char *reason;          /* CamelCase, at most 128 bytes */
    const char *action;          /* what was done or not done, CamelCase, at most 128 bytes */
    const char *note;            /* for people; cut at 1024 bytes on a character's border */
    const char *controller;      /* which kind of program reports: "weft.dev/controller" */
    const char *instance;        /* which process of it, at most 128 bytes */
    weft_kube_result_fn on_done; /* may be NULL */
    void *data;
};

/* Errors as weft_kube_submit. */
int weft_kube_event_post(struct weft_kube_client *client, const struct weft_kube_event *event,
                         struct weft_error *err) __attribute__((warn_unused_result));

#endif
