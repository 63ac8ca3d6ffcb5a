/* SPDX-License-Identifier: Apache-2.0 */
/* HyperNodes that people made by hand, or Volcano's label source made, become ours: they get our
 * labels, and nothing else of them changes. The scheduler looks at no label, so its tree stays as
 * it is; what the objects should be is then the controller's to write. Pure. */
#ifndef WEFT_HYPERNODE_ADOPT_H
#define WEFT_HYPERNODE_ADOPT_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/hypernode/hypernode.h"

enum weft_adopt_why {
    WEFT_ADOPT_TAKE,  /* to be adopted */
    WEFT_ADOPT_OURS,  /* is ours already */
    WEFT_ADOPT_WEFT,  /* another weft instance's */
    WEFT_ADOPT_OTHER, /* of a source that is not asked for */
    WEFT_ADOPT_DYING, /* is being deleted */
    WEFT_ADOPT_WHY_COUNT
};

/* The source label of what Volcano makes from node labels. */
#define WEFT_ADOPT_LABEL_SOURCE "label"

/* What becomes of the object. */
enum weft_adopt_why weft_adopt_judge(const struct weft_hypernode *hn, const char *instance);

struct weft_adopt_plan {
    size_t
        *items; /* of the set, in the order to adopt them: tiers ascending, then by name; owned */
    size_t count;
};
void weft_adopt_plan_done(struct weft_adopt_plan *plan);
WEFT_DEFINE_AUTO_VALUE(struct weft_adopt_plan, weft_adopt_plan_done)

/* Replays each step on the model of Volcano's cache: none may make the scheduler's state worse than
 * it is. Errors: -EPROTO with the step (a defect of ours), -ENOMEM. The caller owns *ret_plan. */
int weft_adopt_build(const struct weft_hypernode_set *set, const char *instance,
                     struct weft_adopt_plan *ret_plan, struct weft_error *err)
    __attribute__((warn_unused_result));

/* Is the label source switched on in the text of Volcano's controller configuration (YAML)? 1, 0,
 * or -EINVAL: the text is not understood. */
int weft_adopt_source_is_on(const char *text, size_t len, const char *name, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
