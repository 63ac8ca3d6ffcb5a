/* SPDX-License-Identifier: Apache-2.0 */
/* The plan's phases but for the release (plan-release.c), and its value. */
#include "pkg/hypernode/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/hypernode/plan-internal.h"

WEFT_DEFINE_AUTO_VALUE(struct weft_pwork, weft_pwork_done)

static const char *const kind_names[WEFT_STEP_COUNT] = {
    [WEFT_STEP_RELEASE] = "release",
    [WEFT_STEP_DELETE] = "delete",
    [WEFT_STEP_CREATE] = "create",
    [WEFT_STEP_CLAIM] = "claim",
};

const char *weft_step_kind_name(enum weft_step_kind kind)
{
    return kind_names[kind];
}

/* ---- 1: what a living object misses ---- */

/* Marks the missing targets that some object lists, and the missing ones below them. */
static int find_missing(const struct weft_pwork *w, struct weft_ids *ret_missing)
{
    int rc = 0;
    for (size_t i = 0; i < w->bottom_up.n && rc == 0; i++) {
        const struct weft_pobj *o = &w->objs[w->bottom_up.v[i]];
        if (!o->exists && o->holders > 0) {
            rc = weft_ids_add(ret_missing, w->bottom_up.v[i]);
        }
    }
    for (size_t i = 0; i < ret_missing->n && rc == 0; i++) {
        const struct weft_pobj *o = &w->objs[ret_missing->v[i]];
        for (size_t k = 0; k < o->want.n && rc == 0; k++) {
            const struct weft_pobj *m = &w->objs[o->want.v[k]];
            if (!m->is_node && !m->exists && m->tgt != NULL && m->holders == 0) {
                rc = weft_ids_add(ret_missing, o->want.v[k]);
            }
        }
    }
    weft_ids_sort(ret_missing);
    return rc;
}

static int repair_one(struct weft_pwork *w, size_t id)
{
    const struct weft_pobj *o = &w->objs[id];
    weft_auto(weft_ids_done) struct weft_ids members = {0};
    int rc = 0;
    for (size_t k = 0; k < o->want.n && rc == 0; k++) {
        const struct weft_pobj *m = &w->objs[o->want.v[k]];
        const bool stays = m->is_node || (m->exists && (m->tgt == NULL || m->tier == m->tgt->tier));
        rc = m->holders == 0 && stays ? weft_ids_add(&members, o->want.v[k]) : 0;
    }
    /* with nothing to hold yet it cannot exist: its listers drop it in the release phase */
    return rc < 0 || members.n == 0 ? rc : weft_pwork_emit(w, WEFT_STEP_CREATE, id, &members);
}

static int repair(struct weft_pwork *w)
{
    weft_auto(weft_ids_done) struct weft_ids missing = {0};
    int rc = find_missing(w, &missing);
    for (size_t i = 0; i < w->bottom_up.n && missing.n > 0 && rc == 0; i++) {
        const size_t id = w->bottom_up.v[i];
        rc = weft_pids_has(&missing, id) && !w->objs[id].exists ? repair_one(w, id) : 0;
    }
    return rc;
}

/* ---- 3: deletes ---- */

static bool must_go(const struct weft_pobj *o)
{
    return o->exists && o->ours && (o->tgt == NULL || o->replaced);
}

static int delete_unlisted(struct weft_pwork *w)
{
    size_t before;
    int rc = 0;
    do {
        before = w->plan->step_count;
        for (size_t i = 0; i < w->top_down.n && rc == 0; i++) {
            const size_t id = w->top_down.v[i];
            const bool now = must_go(&w->objs[id]) && w->objs[id].holders == 0;
            rc = now ? weft_pwork_emit(w, WEFT_STEP_DELETE, id, NULL) : 0;
        }
    } while (rc == 0 && w->plan->step_count > before);
    return rc;
}

/* The first dying object that lists another dying one and something else: it can let go of it. */
static int break_cycle(struct weft_pwork *w, bool *ret_done)
{
    *ret_done = false;
    for (size_t i = 0; i < w->top_down.n && !*ret_done; i++) {
        const size_t id = w->top_down.v[i];
        const struct weft_pobj *o = &w->objs[id];
        weft_auto(weft_ids_done) struct weft_ids rest = {0};
        for (size_t k = 0; must_go(o) && k < o->now.n; k++) {
            if (!must_go(&w->objs[o->now.v[k]]) && weft_ids_add(&rest, o->now.v[k]) < 0) {
                return -ENOMEM;
            }
        }
        if (rest.n > 0 && rest.n < o->now.n) {
            *ret_done = true;
            const int rc = weft_pwork_emit(w, WEFT_STEP_RELEASE, id, &rest);
            if (rc < 0) {
                return rc;
            }
        }
    }
    return 0;
}

static int report_stuck(struct weft_pwork *w)
{
    int rc = 0;
    for (size_t i = 0; i < w->top_down.n && rc == 0; i++) {
        const struct weft_pobj *o = &w->objs[w->top_down.v[i]];
        if (must_go(o)) {
            rc =
                weft_findings_add(&w->findings, "undeletable", o->name,
                                  "cannot be deleted: an object that cannot let go of it lists it");
        }
    }
    return rc;
}

static int delete_all(struct weft_pwork *w)
{
    bool again = true;
    while (again) {
        int rc = delete_unlisted(w);
        rc = rc == 0 ? break_cycle(w, &again) : rc;
        if (rc < 0) {
            return rc;
        }
    }
    return report_stuck(w);
}

/* ---- 4: creates and claims ---- */

static bool is_done(const struct weft_pobj *o, const struct weft_ids *members)
{
    if (!o->exists || !o->as_target || o->now.n != members->n) {
        return false;
    }
    return o->now.n == 0 || memcmp(o->now.v, members->v, o->now.n * sizeof(o->now.v[0])) == 0;
}

/* What it wants and may have: what others could not let go of stays with them. */
static int find_claimable(struct weft_pwork *w, const struct weft_pobj *o,
                          struct weft_ids *ret_members)
{
    int rc = 0;
    for (size_t k = 0; k < o->want.n && rc == 0; k++) {
        const struct weft_pobj *m = &w->objs[o->want.v[k]];
        const bool there = m->is_node || m->exists;
        if ((m->holders == 0 && there) || weft_pids_has(&o->now, o->want.v[k])) {
            rc = weft_ids_add(ret_members, o->want.v[k]);
            continue;
        }
        rc = m->is_node ? weft_plan_hold(w->plan, m->name) : 0;
        if (rc == 0) {
            rc = weft_findings_add(&w->findings, "held-back", m->name,
                                   "%s wants it, but it is not there, or held by an object that "
                                   "cannot let it go",
                                   o->name);
        }
    }
    return rc;
}

static int build_up(struct weft_pwork *w)
{
    for (size_t i = 0; i < w->bottom_up.n; i++) {
        const size_t id = w->bottom_up.v[i];
        const struct weft_pobj *o = &w->objs[id];
        if (o->exists && (o->replaced || o->fixed)) {
            continue;
        }
        weft_auto(weft_ids_done) struct weft_ids members = {0};
        int rc = find_claimable(w, o, &members);
        if (rc == 0 && !is_done(o, &members) && (members.n > 0 || o->odd)) {
            rc = weft_pwork_emit(w, o->exists ? WEFT_STEP_CLAIM : WEFT_STEP_CREATE, id, &members);
        }
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* A member of an object that is torn hangs elsewhere in the scheduler's cache. */
static int touch_torn(struct weft_pwork *w)
{
    for (size_t i = 0; i < w->bottom_up.n; i++) {
        const size_t id = w->bottom_up.v[i];
        const struct weft_pobj *o = &w->objs[id];
        if (!o->exists || o->cur == NULL || !o->cur->torn || o->last_step != WEFT_STEP_NONE ||
            o->odd) {
            continue;
        }
        weft_auto(weft_ids_done) struct weft_ids members = {0};
        int rc = 0;
        for (size_t k = 0; k < o->now.n && rc == 0; k++) {
            rc = weft_ids_add(&members, o->now.v[k]);
        }
        rc = rc < 0 ? rc : weft_pwork_emit(w, WEFT_STEP_CLAIM, id, &members);
        if (rc < 0) {
            return rc;
        }
        w->plan->steps[w->plan->step_count - 1].touch = true;
    }
    return 0;
}

/* ---- all ---- */

static int make_steps(struct weft_pwork *w, struct weft_error *err)
{
    if (weft_pwork_load(w) < 0 || repair(w) < 0) {
        return weft_err_nomem(err);
    }
    const int rc = weft_pwork_release(w, err);
    if (rc < 0) {
        return rc;
    }
    return delete_all(w) < 0 || build_up(w) < 0 || touch_torn(w) < 0 ? weft_err_nomem(err) : 0;
}

static int cmp_text(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;
    return strcmp(*x, *y);
}

int weft_plan_build(const struct weft_hypernode_set *current,
                    const struct weft_hypernode_set *desired,
                    const struct weft_plan_options *options, struct weft_plan *ret_plan,
                    struct weft_error *err)
{
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    weft_auto(weft_pwork_done) struct weft_pwork w = {
        .current = current, .desired = desired, .options = options, .plan = &plan};
    int rc = weft_pwork_target(&w, err);
    rc = rc < 0 ? rc : make_steps(&w, err);
    rc = rc == 0 && options->check ? weft_plan_check(current, &plan, err) : rc;
    if (rc < 0) {
        return rc;
    }
    if (plan.held_node_count > 1) {
        qsort(plan.held_nodes, plan.held_node_count, sizeof(char *), cmp_text);
    }
    weft_findings_sort(&w.findings);
    plan.findings = w.findings.items;
    plan.finding_count = w.findings.count;
    w.findings = (struct weft_findings){0};
    *ret_plan = plan;
    plan = (struct weft_plan){0};
    return 0;
}

void weft_plan_done(struct weft_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    for (size_t i = 0; i < plan->step_count; i++) {
        weft_hypernode_done(&plan->steps[i].object);
    }
    weft_free(plan->steps);
    weft_hypernode_set_done(&plan->target);
    for (size_t i = 0; i < plan->held_node_count; i++) {
        weft_free(plan->held_nodes[i]);
    }
    weft_free(plan->held_nodes);
    struct weft_findings findings = {.items = plan->findings, .count = plan->finding_count};
    weft_findings_done(&findings);
    *plan = (struct weft_plan){0};
}

bool weft_plan_overlaps(const struct weft_plan *plan, size_t i)
{
    if (i == 0 || i >= plan->step_count) {
        return false;
    }
    const struct weft_step *before = &plan->steps[i - 1];
    const struct weft_step *step = &plan->steps[i];
    return before->kind == WEFT_STEP_CREATE && step->kind == WEFT_STEP_CREATE &&
           before->object.tier == step->object.tier;
}

bool weft_plan_holds(const struct weft_plan *plan, const char *node)
{
    size_t low = 0;
    size_t high = plan->held_node_count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const int order = strcmp(plan->held_nodes[mid], node);
        if (order == 0) {
            return true;
        }
        low = order < 0 ? mid + 1 : low;
        high = order < 0 ? high : mid;
    }
    return false;
}

uint64_t weft_plan_hash(const struct weft_plan *plan)
{
    uint64_t hash = plan->step_count > 0 ? WEFT_HASH_SEED : 0;
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct weft_step *s = &plan->steps[i];
        const char *kind = kind_names[s->kind];
        hash = weft_hash64(hash, kind, strlen(kind) + 1); /* NULs keep the pieces apart */
        hash = weft_hash64(hash, s->object.name, strlen(s->object.name) + 1);
        for (size_t k = 0; k < s->object.member_count && s->kind != WEFT_STEP_DELETE; k++) {
            const char *name = s->object.members[k].name;
            hash = weft_hash64(hash, name, strlen(name) + 1);
        }
    }
    return hash;
}
