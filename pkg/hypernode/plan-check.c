/* SPDX-License-Identifier: Apache-2.0 */
/* Replays a plan on the model of Volcano's cache. What is wrong before the first step may stay
 * until the plan has mended it (or for good, where others did it); nothing may become wrong that
 * was not. A passing loss of the top tier is no fault: a tree that is built or replaced has none.
 */
#include <errno.h>
#include <string.h>

#include "pkg/hypernode/model-internal.h"
#include "pkg/hypernode/plan.h"

struct replay {
    struct weft_model *model;
    unsigned *flags;  /* of the entries before the first step */
    bool *contested;  /* children that several objects listed then */
    size_t count;     /* entries then */
    bool was_unready; /* or anything was contested: the ready flag says nothing of us */
};

static void replay_done(struct replay *r)
{
    weft_model_free(r->model);
    weft_free(r->flags);
    weft_free(r->contested);
}
WEFT_DEFINE_AUTO_VALUE(struct replay, replay_done)

static int start(struct replay *r, const struct weft_hypernode_set *current)
{
    r->model = weft_model_new(false);
    if (r->model == NULL) {
        return -ENOMEM;
    }
    const int rc = weft_model_load(r->model, current);
    if (rc < 0) {
        return rc;
    }
    r->count = r->model->count;
    r->flags = weft_calloc(r->count, sizeof(*r->flags));
    r->contested = weft_calloc(r->count, sizeof(*r->contested));
    if (r->flags == NULL || r->contested == NULL) {
        return -ENOMEM;
    }
    r->was_unready = !r->model->ready;
    for (size_t i = 0; i < r->count; i++) {
        r->flags[i] = r->model->entries[i].flags;
        r->contested[i] = r->model->entries[i].listers.n > 1;
        r->was_unready = r->was_unready || r->contested[i];
    }
    return 0;
}

/* Is every child that hangs elsewhere one that was fought over before? */
static bool only_contested(const struct replay *r, size_t id)
{
    const struct weft_entry *e = &r->model->entries[id];
    for (size_t i = 0; i < e->kid_count; i++) {
        const size_t kid = e->kids[i].id;
        const struct weft_entry *child = &r->model->entries[kid];
        const bool linked = e->kids[i].linked && child->parent == id;
        if (child->exists && child->object && !linked && (kid >= r->count || !r->contested[kid])) {
            return false;
        }
    }
    return true;
}

static bool is_worse(const struct replay *r)
{
    const struct weft_model *m = r->model;
    if (!m->ready && !r->was_unready) {
        return true;
    }
    const size_t flagged =
        m->flag_count[0] + m->flag_count[1] + m->flag_count[2] + m->flag_count[3];
    for (size_t i = 0; flagged > 0 && i < m->count; i++) {
        unsigned fresh = m->entries[i].flags & ~(i < r->count ? r->flags[i] : 0U);
        if ((fresh & WEFT_MODEL_FLAG_UNLINKED) != 0 && only_contested(r, i)) {
            fresh &= ~(unsigned)WEFT_MODEL_FLAG_UNLINKED;
        }
        if (fresh != 0) {
            return true;
        }
    }
    return false;
}

int weft_plan_check(const struct weft_hypernode_set *current, const struct weft_plan *plan,
                    struct weft_error *err)
{
    weft_auto(replay_done) struct replay r = {0};
    if (start(&r, current) < 0) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct weft_step *s = &plan->steps[i];
        const int rc = s->kind == WEFT_STEP_DELETE ? weft_model_delete(r.model, s->object.name)
                                                   : weft_model_apply(r.model, &s->object);
        if (rc < 0) {
            return weft_err_nomem(err);
        }
        if (rc == WEFT_MODEL_REFUSED || is_worse(&r)) {
            return weft_err_set(err, -EPROTO, WEFT_ERR_CONFIG,
                                "step %zu of %zu (%s %.63s) must not be taken: %s", i + 1,
                                plan->step_count, weft_step_kind_name(s->kind), s->object.name,
                                rc == WEFT_MODEL_REFUSED ? "the API server would refuse it"
                                                         : weft_model_text(r.model));
        }
    }
    return 0;
}
