/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody deleted under its parent, and the plan that makes it again. Pure. */
#include "controller/lost.h"

#include <errno.h>

#include "controller/forest.h"
#include "pkg/hypernode/plan.h"

void weft_lost_note(struct weft_hypernode_set *lost, const struct weft_hypernode *hn)
{
    struct weft_hypernode copy = {0};
    if (weft_hypernode_copy(hn, &copy) < 0 || weft_hypernode_set_put(lost, &copy) < 0) {
        weft_hypernode_done(&copy);
    }
}

static bool is_listed(const struct weft_hypernode_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++) {
        if (weft_hypernode_lists(&set->items[i], WEFT_MEMBER_HYPERNODE, name)) {
            return true;
        }
    }
    return false;
}

/* Adds lost objects that the set lists and lacks, until there are no more: one may list the next.
 */
static int add_listed(const struct weft_hypernode_set *lost, const char *instance,
                      struct weft_hypernode_set *set, bool *ret_any)
{
    bool again = true;
    while (again) {
        again = false;
        for (size_t i = 0; i < lost->count; i++) {
            const struct weft_hypernode *hn = &lost->items[i];
            weft_auto(weft_hypernode_done) struct weft_hypernode copy = {0};
            if (!weft_hypernode_is_ours(hn, instance) ||
                weft_hypernode_set_find(set, hn->name, NULL) || !is_listed(set, hn->name)) {
                continue;
            }
            if (weft_hypernode_copy(hn, &copy) < 0 || weft_hypernode_set_put(set, &copy) < 0) {
                return -ENOMEM;
            }
            again = true;
            *ret_any = true;
        }
    }
    return 0;
}

int weft_lost_places(const struct weft_hypernode_set *live, const struct weft_hypernode_set *lost,
                     const char *instance, struct weft_hypernode_set *ret_set, bool *ret_any,
                     struct weft_error *err)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    *ret_any = false;
    if (lost->count == 0) {
        return 0;
    }
    if (weft_hypernode_set_copy(live, &set) < 0 || add_listed(lost, instance, &set, ret_any) < 0) {
        return weft_err_nomem(err);
    }
    if (*ret_any) {
        *ret_set = set;
        set = (struct weft_hypernode_set){0};
    }
    return 0;
}

int weft_lost_plan(const struct weft_hypernode_set *live, const struct weft_hypernode_set *places,
                   const char *instance, struct weft_plan *ret_plan, struct weft_error *err)
{
    weft_auto(weft_forest_free) struct weft_forest *forest = NULL;
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set wanted = {0};
    const struct weft_plan_options options = {.instance = instance, .check = true};
    int rc = weft_forest_new(places, instance, &forest, err);
    rc = rc < 0 ? rc : weft_forest_to_set(forest, &wanted, err);
    return rc < 0 ? rc : weft_plan_build(live, &wanted, &options, ret_plan, err);
}
