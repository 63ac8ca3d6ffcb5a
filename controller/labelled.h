/* SPDX-License-Identifier: Apache-2.0 */
/* Last places where no HyperNodes can tell them (no CRD, or labels are the only output): the tier
 * labels that Nodes carry, read back as the HyperNodes that they name. Pure. */
#ifndef WEFT_CONTROLLER_LABELLED_H
#define WEFT_CONTROLLER_LABELLED_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/hypernode/hypernode.h"

struct weft_names_of_ours;
struct weft_node;

/* Adds to *ret_set what the labels of those of the count nodes say that have all of tiers tiers.
 * Where two Nodes disagree on an object's parent, the first by order of nodes is right. The objects
 * are ours, without identity and tierName. Errors: -ENOMEM, -EFBIG. */
int weft_labelled_places(const struct weft_node *nodes, size_t count, size_t tiers,
                         const struct weft_names_of_ours *ours, struct weft_hypernode_set *ret_set,
                         struct weft_error *err) __attribute__((warn_unused_result));

/* Does a tier label of the Node name a HyperNode of another weft instance? Then the labels are that
 * one's, which has the same prefix. */
bool weft_labelled_by_other(const struct weft_node *node, const struct weft_names_of_ours *ours,
                            const struct weft_hypernode_set *hypernodes);

#endif
