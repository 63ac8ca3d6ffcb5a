/* SPDX-License-Identifier: Apache-2.0 */
/* Kubernetes label selectors (k8s.io/apimachinery pkg/labels): "a=b,c!=d,e in (f,g),h notin (i),
 * j,!k". "()" is the set of the empty value, as there. Pure. */
#ifndef WEFT_FABRIC_SELECTOR_H
#define WEFT_FABRIC_SELECTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_node;
struct weft_node_selector;

enum { WEFT_NODE_SELECTOR_TERMS_MAX = 64, WEFT_NODE_SELECTOR_VALUES_MAX = 256 };

/* The caller owns *ret_selector. An empty text selects every node. Errors: -EINVAL, -ENOMEM. */
int weft_node_selector_parse(const char *text, struct weft_node_selector **ret_selector,
                             struct weft_error *err) __attribute__((warn_unused_result));
void weft_node_selector_free(struct weft_node_selector *selector);
WEFT_DEFINE_AUTO(struct weft_node_selector, weft_node_selector_free)

/* Does the selector (NULL: everything) take the node? */
bool weft_node_selector_matches(const struct weft_node_selector *selector,
                                const struct weft_node *node);
/* The label keys it looks at: index from 0, borrowed, NULL at the end. For a cache that keeps only
 * the labels that matter. */
const char *weft_node_selector_key(const struct weft_node_selector *selector, size_t index);

#endif
