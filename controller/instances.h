/* SPDX-License-Identifier: Apache-2.0 */
/* Which cloud instance each Node is: sources that name instances need spec.providerID, which the
 * metadata that is watched does not have. Each new Node is read once, a few at a time and no faster
 * than a rate; one whose providerID is not set yet is looked at again now and then. Reads only.
 * Loop thread. */
#ifndef WEFT_CONTROLLER_INSTANCES_H
#define WEFT_CONTROLLER_INSTANCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_config;
struct weft_controller;
struct weft_instances;
struct weft_kube_call;
struct weft_kube_client;
struct weft_kube_op;
struct weft_loop;
struct weft_nic_inventory;
struct weft_view_nodes;

enum { WEFT_INSTANCES_FLIGHTS = 8, WEFT_INSTANCES_RATE = 200 }; /* at once; a second */

struct weft_instances_env {
    /* As weft_kube_submit and weft_kube_call_cancel, whose client is client. */
    int (*submit)(struct weft_kube_client *client, const struct weft_kube_op *op,
                  struct weft_kube_call **ret_call, struct weft_error *err);
    void (*cancel)(struct weft_kube_call *call);
    struct weft_kube_client *client;
    struct weft_view_nodes *nodes; /* where they are from, and what is learnt goes */
    /* Every Node has been read; or, with news, one got its providerID later. May not free. */
    void (*on_known)(void *data, bool news);
    void (*on_error)(void *data, const char *node, const struct weft_error *err);
    void *data;
    int64_t retry_ns; /* the first wait after a failure; ten times that after a Node without
                         providerID [5 s]; both double, to 1 min and 1 h */
};

/* Do sources of config name instances without saying which Node each is? */
bool weft_instances_wanted(const struct weft_config *config);

/* -ENOMEM. */
int weft_instances_new(struct weft_loop *loop, const struct weft_instances_env *env,
                       struct weft_instances **ret_instances, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Cancels what is under way. NULL is fine. */
void weft_instances_free(struct weft_instances *instances);
WEFT_DEFINE_AUTO(struct weft_instances, weft_instances_free)

/* There may be new Nodes. */
void weft_instances_look(struct weft_instances *instances);
/* Was every Node that exists read? */
bool weft_instances_known(const struct weft_instances *instances);

/* "i-0123" of "aws:///us-west-2a/i-0123", an OCID of "oci://ocid1…" or of itself; borrowed. */
const char *weft_instances_id(const char *provider_id);
/* The Nodes by instance, for sources that name those. The caller frees *ret_inventory. -ENOMEM. */
int weft_instances_inventory(const struct weft_view_nodes *nodes,
                             struct weft_nic_inventory **ret_inventory)
    __attribute__((warn_unused_result));

/* ---- watch.c: the controller's own ---- */

/* The configuration is another one: are instances needed now? */
int weft_controller_configure_instances(struct weft_controller *c, struct weft_error *err)
    __attribute__((warn_unused_result));
/* For a decision; *ret_inventory stays NULL where no source needs it. -ENOMEM. */
int weft_controller_instances(const struct weft_controller *c,
                              struct weft_nic_inventory **ret_inventory, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
