/* SPDX-License-Identifier: Apache-2.0 */
/* A plan less what depends on objects that the server would not write: what is left goes on. */
#ifndef WEFT_HYPERNODE_PLAN_AROUND_H
#define WEFT_HYPERNODE_PLAN_AROUND_H

#include "pkg/hypernode/plan.h"

/* plan leads from current; the named objects stay as they are. Steps on them are left out, what
 * they cannot let go of is not claimed, and what they were to become is not listed. The rest is
 * replayed on the model as every plan is. target, findings and held nodes stay empty. Errors:
 * -EPROTO if what is left must not be done, -ENOMEM, -EFBIG. The caller owns *ret_plan. */
int weft_plan_around(const struct weft_hypernode_set *current, const struct weft_plan *plan,
                     const char *const *names, size_t count, struct weft_plan *ret_plan,
                     struct weft_error *err) __attribute__((warn_unused_result));

#endif
