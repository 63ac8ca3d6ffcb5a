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
    size_t count;     /* entries then */
    bool was_unready; /* or a child had two parents, or was missing */
};

static void replay_done(struct replay *r)
{
    weft_model_free(r->model);
    weft_free(r->flags);
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
    if (r->flags == NULL) {
        return -ENOMEM;
    }
    r->was_unready = !r->model->ready;
    for (size_t i = 0; i < r->count; i++) {
        r->flags[i] = r->model->entries[i].flags;
        const struct weft_entry *e = &r->model->entries[i];
        r->was_unready = r->was_unready || e->listers.n > 1 || (e->listers.n > 0 && !e->exists);
    }
    return 0;
}

/* What of the entry is wrong now and was not before. Where children were fought over before the
 * first step, the cache is half built on the way to its mending, and hidden children say nothing of
 * the step. */
static unsigned fresh_flags(const struct replay *r, size_t id)
{
    unsigned fresh = r->model->entries[id].flags & ~(id < r->count ? r->flags[id] : 0U);
    return r->was_unready ? fresh & ~(unsigned)WEFT_MODEL_FLAG_UNLINKED : fresh;
}

/* What is worse than before, or NULL. */
static const char *find_worse(const struct replay *r)
{
    struct weft_model *m = r->model;
    const size_t flagged =
        m->flag_count[0] + m->flag_count[1] + m->flag_count[2] + m->flag_count[3];
    for (size_t i = 0; flagged > 0 && i < m->count; i++) {
        const unsigned fresh = fresh_flags(r, i);
        if (fresh != 0) {
            return weft_model_describe(m, i,
                                       fresh & ~(fresh - 1)); /* the worst bit is the lowest */
        }
    }
    return m->ready || r->was_unready ? NULL : weft_model_describe(m, 0, 0);
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
        const int rc = s->touch                      ? weft_model_touch(r.model, s->object.name)
                       : s->kind == WEFT_STEP_DELETE ? weft_model_delete(r.model, s->object.name)
                                                     : weft_model_apply(r.model, &s->object);
        if (rc < 0) {
            return weft_err_nomem(err);
        }
        const char *worse =
            rc == WEFT_MODEL_REFUSED ? "the API server would refuse it" : find_worse(&r);
        if (worse != NULL) {
            return weft_err_set(
                err, -EPROTO, WEFT_ERR_CONFIG, "step %zu of %zu (%s %.63s) must not be taken: %s",
                i + 1, plan->step_count, weft_step_kind_name(s->kind), s->object.name, worse);
        }
    }
    return 0;
}
