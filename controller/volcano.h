/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at Volcano's own configuration now and then: its scheduler's and its controller's
 * ConfigMaps, and which versions of its API are served. What is unwise becomes findings. Three
 * reads a look, never a write; without the right to read a ConfigMap that is said once and that
 * part is left out. Loop thread only. */
#ifndef WEFT_CONTROLLER_VOLCANO_H
#define WEFT_CONTROLLER_VOLCANO_H

#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_findings;
struct weft_kube_call;
struct weft_kube_client;
struct weft_kube_op;
struct weft_loop;
struct weft_volcano;

struct weft_volcano_options {
    /* As weft_kube_submit and weft_kube_call_cancel, whose client is client. */
    int (*submit)(struct weft_kube_client *client, const struct weft_kube_op *op,
                  struct weft_kube_call **ret_call, struct weft_error *err);
    void (*cancel)(struct weft_kube_call *call);
    struct weft_kube_client *client;
    const char *ns;      /* where Volcano is installed; copied */
    const char *release; /* of its chart: the ConfigMaps are <release>-scheduler-configmap and
                            <release>-controller-configmap; copied */
    int64_t period_ns;   /* between two looks */
    void (*changed)(void *data); /* the findings are others now. May not free */
    void *data;
};

/* Nothing is looked at yet. Errors: -ENOMEM. */
int weft_volcano_new(struct weft_loop *loop, const struct weft_volcano_options *options,
                     struct weft_volcano **ret_volcano, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Cancels what is under way. NULL is fine. */
void weft_volcano_free(struct weft_volcano *volcano);
WEFT_DEFINE_AUTO(struct weft_volcano, weft_volcano_free)

/* Looks now, unless it is doing so, and again each period. */
void weft_volcano_start(struct weft_volcano *volcano);
/* No look any more; the findings stay. */
void weft_volcano_stop(struct weft_volcano *volcano);

/* Of the last look that got answers; sorted; borrowed until the loop runs on. */
const struct weft_findings *weft_volcano_findings(const struct weft_volcano *volcano);

#endif
