/* SPDX-License-Identifier: Apache-2.0 */
/* One request at a time to a cluster's API server, waited for: what the verbs that talk to one
 * share. */
#ifndef WEFT_CTL_CLUSTER_H
#define WEFT_CTL_CLUSTER_H

#include <stdbool.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/kube/client.h"

struct weft_ctl_cluster;

/* kubeconfig and context: NULL as in weft_kube_config_load. Opens nothing yet. */
int weft_ctl_cluster_new(const char *kubeconfig, const char *context,
                         struct weft_ctl_cluster **ret_cluster, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_ctl_cluster_free(struct weft_ctl_cluster *cluster);
WEFT_DEFINE_AUTO(struct weft_ctl_cluster, weft_ctl_cluster_free)

/* Sends op (its on_done and data are the cluster's) and waits. A 2xx answer is shown to take (may
 * be NULL) before it returns 0; every other end is the call's error, which take does not see. */
int weft_ctl_cluster_ask(struct weft_ctl_cluster *cluster, const struct weft_kube_op *op,
                         weft_kube_result_fn take, void *data, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Does the error say that the object, or what it is in, is not there? */
bool weft_ctl_cluster_lacks(const struct weft_error *error);

#endif
