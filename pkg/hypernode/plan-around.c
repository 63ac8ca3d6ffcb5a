/* SPDX-License-Identifier: Apache-2.0 */
/* Takes what depends on some objects out of a plan. Whether the rest is sound is not argued here:
 * the replay on the model says so. */
#include "pkg/hypernode/plan-around.h"

#include <errno.h>
#include <string.h>

#include "pkg/base/map.h"

struct around {
    const struct weft_hypernode_set *current;
    const struct weft_plan *plan;
    const char *const *names;
    size_t count;
    struct weft_map *taken[WEFT_MEMBER_TYPE_COUNT]; /* who cannot be listed by others */
    struct weft_map *last;                          /* name → its last step in out */
    struct weft_plan out;
};

static void around_done(struct around *a)
{
    for (size_t t = 0; t < WEFT_MEMBER_TYPE_COUNT; t++) {
        weft_map_free(a->taken[t]);
    }
    weft_map_free(a->last);
    weft_plan_done(&a->out);
}
WEFT_DEFINE_AUTO_VALUE(struct around, around_done)

static bool is_named(const struct around *a, const char *name)
{
    for (size_t i = 0; i < a->count; i++) {
        if (strcmp(a->names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static int take(struct around *a, enum weft_member_type type, const char *name)
{
    const int rc = weft_map_put(a->taken[type], name, 0);
    return rc < 0 ? rc : 0;
}

/* The object stays as it is: so does what it lists; one that is not there cannot be listed. */
static int leave(struct around *a, const char *name)
{
    const struct weft_hypernode *cur = weft_hypernode_set_get(a->current, name);
    int rc = cur == NULL ? take(a, WEFT_MEMBER_HYPERNODE, name) : 0;
    for (size_t i = 0; cur != NULL && i < cur->member_count && rc == 0; i++) {
        if (cur->members[i].selector == WEFT_SELECTOR_EXACT) {
            rc = take(a, cur->members[i].type, cur->members[i].name);
        }
    }
    return rc;
}

static bool may_list(const struct around *a, const struct weft_hypernode *cur,
                     const struct weft_member *m)
{
    return !weft_map_get(a->taken[m->type], m->name, NULL) ||
           (cur != NULL && weft_hypernode_lists(cur, m->type, m->name));
}

/* The step's object without what it cannot have. */
static int reduce(const struct around *a, const struct weft_hypernode *from,
                  struct weft_hypernode *ret_object)
{
    const struct weft_hypernode *cur = weft_hypernode_set_get(a->current, from->name);
    struct weft_hypernode bare = *from;
    bare.members = NULL;
    bare.member_count = 0;
    weft_auto(weft_hypernode_done) struct weft_hypernode object = {0};
    int rc = weft_hypernode_copy(&bare, &object);
    for (size_t i = 0; i < from->member_count && rc == 0; i++) {
        const struct weft_member *m = &from->members[i];
        rc = may_list(a, cur, m) ? weft_hypernode_add_member(&object, m->type, m->selector, m->name)
                                 : 0;
    }
    if (rc == 0) {
        *ret_object = object;
        object = (struct weft_hypernode){0};
    }
    return rc;
}

/* Preconditions follow the steps that are left. */
static int add(struct around *a, const struct weft_step *from, struct weft_hypernode *object)
{
    struct weft_step step = {.kind = from->kind, .touch = from->touch, .previous = WEFT_STEP_NONE};
    size_t last = 0;
    const struct weft_hypernode *cur = weft_hypernode_set_get(a->current, from->object.name);
    const bool again = weft_map_get(a->last, from->object.name, &last);
    const bool as_read = !again && from->kind != WEFT_STEP_CREATE && cur != NULL;
    int rc = weft_hypernode_set_text(&object->resource_version,
                                     as_read ? weft_hypernode_text(cur->resource_version) : "");
    rc = rc == 0 && as_read ? weft_hypernode_set_text(&object->uid, weft_hypernode_text(cur->uid))
                            : rc;
    step.previous = again ? last : WEFT_STEP_NONE;
    void *list = a->out.steps;
    rc = rc < 0 ? rc
                : weft_array_reserve(&list, &a->out.step_cap, a->out.step_count + 1,
                                     sizeof(*a->out.steps), a->plan->step_count + 1);
    a->out.steps = list;
    rc = rc < 0 ? rc : weft_map_put(a->last, from->object.name, a->out.step_count);
    if (rc < 0) {
        return rc;
    }
    step.object = *object;
    *object = (struct weft_hypernode){0};
    a->out.steps[a->out.step_count++] = step;
    return 0;
}

static int take_step(struct around *a, const struct weft_step *s)
{
    const char *name = s->object.name;
    weft_auto(weft_hypernode_done) struct weft_hypernode object = {0};
    if (is_named(a, name)) {
        return 0;
    }
    if (s->kind == WEFT_STEP_DELETE) {
        const bool listed = weft_map_get(a->taken[WEFT_MEMBER_HYPERNODE], name, NULL);
        const int rc = listed ? leave(a, name) : weft_hypernode_copy(&s->object, &object);
        return rc < 0 || listed ? rc : add(a, s, &object);
    }
    const int rc = reduce(a, &s->object, &object);
    if (rc < 0) {
        return rc;
    }
    const struct weft_hypernode *cur = weft_hypernode_set_get(a->current, name);
    const bool begun = weft_map_get(a->last, name, NULL);
    const bool same = cur != NULL && !begun && !s->touch && weft_hypernode_same(cur, &object);
    if (object.member_count == 0 || same) {
        return same ? 0 : leave(a, name);
    }
    return add(a, s, &object);
}

static int take_steps(struct around *a)
{
    int rc = 0;
    for (size_t i = 0; i < a->count && rc == 0; i++) {
        rc = leave(a, a->names[i]);
    }
    for (size_t i = 0; i < a->plan->step_count && rc == 0; i++) {
        rc = take_step(a, &a->plan->steps[i]);
    }
    return rc;
}

int weft_plan_around(const struct weft_hypernode_set *current, const struct weft_plan *plan,
                     const char *const *names, size_t count, struct weft_plan *ret_plan,
                     struct weft_error *err)
{
    weft_auto(around_done) struct around a = {
        .current = current, .plan = plan, .names = names, .count = count};
    a.taken[WEFT_MEMBER_NODE] = weft_map_new(WEFT_HYPERNODES_MAX);
    a.taken[WEFT_MEMBER_HYPERNODE] = weft_map_new(WEFT_HYPERNODES_MAX);
    a.last = weft_map_new(WEFT_HYPERNODES_MAX);
    if (a.taken[WEFT_MEMBER_NODE] == NULL || a.taken[WEFT_MEMBER_HYPERNODE] == NULL ||
        a.last == NULL) {
        return weft_err_nomem(err);
    }
    int rc = take_steps(&a);
    if (rc < 0) {
        return weft_err_errno(err, -rc, "HyperNodes");
    }
    rc = weft_plan_check(current, &a.out, err);
    if (rc < 0) {
        return rc;
    }
    *ret_plan = a.out;
    a.out = (struct weft_plan){0};
    return 0;
}
