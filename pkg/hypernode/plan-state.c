/* SPDX-License-Identifier: Apache-2.0 */
/* The state that a plan is worked out on: every name once, who lists it now, who shall. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/map.h"
#include "pkg/hypernode/plan-internal.h"

enum { OBJECTS_MAX = 10000000, STEPS_MAX = 4 * WEFT_HYPERNODES_MAX };

void weft_pwork_done(struct weft_pwork *w)
{
    for (size_t i = 0; i < w->count; i++) {
        weft_ids_done(&w->objs[i].start);
        weft_ids_done(&w->objs[i].now);
        weft_ids_done(&w->objs[i].want);
    }
    weft_free(w->objs);
    weft_map_free(w->hypernodes);
    weft_map_free(w->nodes);
    weft_ids_done(&w->top_down);
    weft_ids_done(&w->bottom_up);
    weft_findings_done(&w->findings);
}

bool weft_pids_has(const struct weft_ids *ids, size_t id)
{
    size_t low = 0;
    size_t high = ids->n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (ids->v[mid] == id) {
            return true;
        }
        low = ids->v[mid] < id ? mid + 1 : low;
        high = ids->v[mid] < id ? high : mid;
    }
    return false;
}

static int intern(struct weft_pwork *w, const char *name, bool is_node, size_t *ret_id)
{
    struct weft_map *map = is_node ? w->nodes : w->hypernodes;
    void *list = w->objs;
    int rc = weft_array_reserve(&list, &w->cap, w->count + 1, sizeof(w->objs[0]), OBJECTS_MAX);
    w->objs = list;
    *ret_id = w->count;
    rc = rc == 0 ? weft_map_add(map, name, w->count, ret_id) : rc;
    if (rc == 0) {
        w->objs[w->count++] = (struct weft_pobj){.name = name,
                                                 .is_node = is_node,
                                                 .owner = WEFT_MODEL_NO_ID,
                                                 .last_step = WEFT_STEP_NONE};
    }
    return rc < 0 ? rc : 0;
}

/* The ids of all exactMatch members, ascending. */
static int intern_members(struct weft_pwork *w, const struct weft_hypernode *hn,
                          struct weft_ids *ret_ids)
{
    for (size_t i = 0; i < hn->member_count; i++) {
        const struct weft_member *m = &hn->members[i];
        size_t id;
        if (m->selector != WEFT_SELECTOR_EXACT) {
            continue;
        }
        int rc = intern(w, m->name, m->type == WEFT_MEMBER_NODE, &id);
        rc = rc == 0 ? weft_ids_add(ret_ids, id) : rc;
        if (rc < 0) {
            return rc;
        }
    }
    weft_ids_sort(ret_ids);
    return 0;
}

void weft_pwork_set(struct weft_pwork *w, size_t id, struct weft_ids *members)
{
    struct weft_pobj *o = &w->objs[id];
    for (size_t i = 0; i < o->now.n; i++) {
        w->objs[o->now.v[i]].holders--;
    }
    for (size_t i = 0; i < members->n; i++) {
        w->objs[members->v[i]].holders++;
    }
    weft_ids_done(&o->now);
    o->now = *members;
    *members = (struct weft_ids){0};
    o->exists = true;
}

void weft_pwork_unset(struct weft_pwork *w, size_t id)
{
    weft_pwork_set(w, id, &(struct weft_ids){0});
    w->objs[id].exists = false;
}

/* The next member from *at on that is no exactMatch, or NULL. */
static const struct weft_member *next_odd(const struct weft_hypernode *hn, size_t *at)
{
    while (*at < hn->member_count && hn->members[*at].selector == WEFT_SELECTOR_EXACT) {
        (*at)++;
    }
    return *at < hn->member_count ? &hn->members[(*at)++] : NULL;
}

static bool has_odd_members(const struct weft_hypernode *hn)
{
    return next_odd(hn, &(size_t){0}) != NULL;
}

static int load_current(struct weft_pwork *w)
{
    for (size_t i = 0; i < w->current->count; i++) {
        const struct weft_hypernode *hn = &w->current->items[i];
        weft_auto(weft_ids_done) struct weft_ids members = {0};
        size_t id;
        int rc = intern(w, hn->name, false, &id);
        rc = rc == 0 ? intern_members(w, hn, &members) : rc;
        if (rc < 0) {
            return rc;
        }
        w->objs[id].cur = hn;
        w->objs[id].ours = weft_hypernode_is_ours(hn, w->options->instance);
        w->objs[id].tier = hn->tier;
        w->objs[id].odd = has_odd_members(hn);
        for (size_t k = 0; !w->objs[id].ours && k < members.n; k++) {
            w->objs[members.v[k]].pinned = true;
        }
        weft_pwork_set(w, id, &members);
    }
    return 0;
}

/* We write none such; of what is kept they stay as they are. */
static bool same_odd_members(const struct weft_hypernode *a, const struct weft_hypernode *b)
{
    size_t i = 0;
    size_t k = 0;
    for (;;) {
        const struct weft_member *x = next_odd(a, &i);
        const struct weft_member *y = next_odd(b, &k);
        if (x == NULL || y == NULL) {
            return x == y;
        }
        if (weft_member_cmp(x, y) != 0) {
            return false;
        }
    }
}

/* Is all but the exactMatch members as wanted? */
static bool same_texts(const struct weft_pwork *w, const struct weft_pobj *o)
{
    struct weft_hypernode a = *o->cur;
    struct weft_hypernode b = *o->tgt;
    if (!same_odd_members(&a, &b)) {
        return false;
    }
    if (w->options->ignore_tier_name && weft_hypernode_text(a.tier_name)[0] == '\0') {
        b.tier_name = NULL;
    }
    a.members = b.members = NULL;
    a.member_count = b.member_count = 0;
    return weft_hypernode_same(&a, &b);
}

static int load_target(struct weft_pwork *w)
{
    for (size_t i = 0; i < w->plan->target.count; i++) {
        const struct weft_hypernode *hn = &w->plan->target.items[i];
        weft_auto(weft_ids_done) struct weft_ids members = {0};
        size_t id;
        int rc = intern(w, hn->name, false, &id);
        rc = rc == 0 ? intern_members(w, hn, &members) : rc;
        if (rc < 0) {
            return rc;
        }
        struct weft_pobj *o = &w->objs[id];
        o->tgt = hn;
        o->odd = has_odd_members(hn);
        o->tier = o->cur != NULL ? o->cur->tier : hn->tier;
        o->want = members;
        members = (struct weft_ids){0};
        o->as_target = o->cur != NULL && same_texts(w, o);
        for (size_t k = 0; k < o->want.n; k++) {
            w->objs[o->want.v[k]].owner = id;
        }
    }
    return 0;
}

/* An id with what it is sorted by. */
struct ranked {
    int64_t tier; /* negated for descending order */
    const char *name;
    size_t id;
};

static int cmp_ranked(const void *a, const void *b)
{
    const struct ranked *x = a;
    const struct ranked *y = b;
    if (x->tier != y->tier) {
        return x->tier < y->tier ? -1 : 1;
    }
    return strcmp(x->name, y->name);
}

static int put_order(struct ranked *list, size_t n, struct weft_ids *ret_order)
{
    if (n > 1) {
        qsort(list, n, sizeof(*list), cmp_ranked);
    }
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = weft_ids_add(ret_order, list[i].id);
    }
    return rc;
}

static int make_orders(struct weft_pwork *w)
{
    weft_autofree struct ranked *list = weft_calloc(w->count, sizeof(*list));
    if (list == NULL) {
        return -ENOMEM;
    }
    size_t n = 0;
    for (size_t i = 0; i < w->count; i++) {
        const struct weft_pobj *o = &w->objs[i];
        if (!o->is_node && (o->ours || o->tgt != NULL)) {
            list[n++] =
                (struct ranked){-(o->cur != NULL ? o->cur->tier : o->tgt->tier), o->name, i};
        }
    }
    int rc = put_order(list, n, &w->top_down);
    n = 0;
    for (size_t i = 0; i < w->count; i++) {
        const struct weft_pobj *o = &w->objs[i];
        if (o->tgt != NULL) {
            list[n++] = (struct ranked){o->tgt->tier, o->name, i};
        }
    }
    return rc == 0 ? put_order(list, n, &w->bottom_up) : rc;
}

int weft_pwork_load(struct weft_pwork *w)
{
    w->hypernodes = weft_map_new(OBJECTS_MAX);
    w->nodes = weft_map_new(OBJECTS_MAX);
    if (w->hypernodes == NULL || w->nodes == NULL) {
        return -ENOMEM;
    }
    int rc = load_current(w);
    rc = rc == 0 ? load_target(w) : rc;
    return rc == 0 ? make_orders(w) : rc;
}

static int copy_ids(const struct weft_ids *from, struct weft_ids *to)
{
    to->n = 0;
    int rc = 0;
    for (size_t i = 0; i < from->n && rc == 0; i++) {
        rc = weft_ids_add(to, from->v[i]);
    }
    return rc;
}

int weft_pwork_save(struct weft_pwork *w)
{
    int rc = 0;
    for (size_t i = 0; i < w->top_down.n && rc == 0; i++) {
        struct weft_pobj *o = &w->objs[w->top_down.v[i]];
        rc = copy_ids(&o->now, &o->start);
    }
    return rc;
}

int weft_pwork_restore(struct weft_pwork *w)
{
    for (size_t i = 0; i < w->top_down.n; i++) {
        const size_t id = w->top_down.v[i];
        weft_auto(weft_ids_done) struct weft_ids members = {0};
        if (!w->objs[id].exists) {
            continue;
        }
        const int rc = copy_ids(&w->objs[id].start, &members);
        if (rc < 0) {
            return rc;
        }
        weft_pwork_set(w, id, &members);
    }
    return 0;
}

/* ---- steps ---- */

static int fill_object(const struct weft_pwork *w, size_t id, const struct weft_ids *members,
                       struct weft_hypernode *hn)
{
    const struct weft_pobj *o = &w->objs[id];
    const struct weft_hypernode *from = o->tgt != NULL ? o->tgt : o->cur;
    struct weft_hypernode texts = *from;
    texts.members = NULL; /* not shared with the copy */
    texts.member_count = texts.member_cap = 0;
    int rc = weft_hypernode_copy(&texts, hn);
    size_t at = 0;
    for (const struct weft_member *m = next_odd(from, &at); m != NULL && rc == 0;
         m = next_odd(from, &at)) {
        rc = weft_hypernode_add_member(hn, m->type, m->selector, m->name);
    }
    for (size_t i = 0; i < members->n && rc == 0; i++) {
        const struct weft_pobj *m = &w->objs[members->v[i]];
        rc = weft_hypernode_add_member(hn, m->is_node ? WEFT_MEMBER_NODE : WEFT_MEMBER_HYPERNODE,
                                       WEFT_SELECTOR_EXACT, m->name);
    }
    weft_hypernode_sort(hn);
    return rc;
}

static int set_preconditions(const struct weft_pobj *o, struct weft_step *step)
{
    const bool known = o->cur != NULL && !o->fresh && step->kind != WEFT_STEP_CREATE;
    const bool first = step->previous == WEFT_STEP_NONE;
    int rc =
        weft_hypernode_set_text(&step->object.uid, known ? weft_hypernode_text(o->cur->uid) : "");
    if (rc == 0) {
        rc = weft_hypernode_set_text(&step->object.resource_version,
                                     known && first ? weft_hypernode_text(o->cur->resource_version)
                                                    : "");
    }
    return rc;
}

static int add_step(struct weft_pwork *w, struct weft_step *step)
{
    struct weft_plan *p = w->plan;
    void *list = p->steps;
    const int rc =
        weft_array_reserve(&list, &p->step_cap, p->step_count + 1, sizeof(p->steps[0]), STEPS_MAX);
    p->steps = list;
    if (rc == 0) {
        p->steps[p->step_count++] = *step;
        step->object = (struct weft_hypernode){0};
    }
    return rc;
}

int weft_pwork_emit(struct weft_pwork *w, enum weft_step_kind kind, size_t id,
                    struct weft_ids *members)
{
    struct weft_pobj *o = &w->objs[id];
    struct weft_step step = {.kind = kind, .previous = o->last_step};
    int rc = fill_object(w, id, kind == WEFT_STEP_DELETE ? &o->now : members, &step.object);
    rc = rc == 0 ? set_preconditions(o, &step) : rc;
    rc = rc == 0 ? add_step(w, &step) : rc;
    weft_hypernode_done(&step.object);
    if (rc < 0) {
        return rc;
    }
    o->last_step = w->plan->step_count - 1;
    if (kind == WEFT_STEP_DELETE) {
        weft_pwork_unset(w, id);
        return 0;
    }
    weft_pwork_set(w, id, members);
    o->fresh = o->fresh || kind == WEFT_STEP_CREATE;
    o->ours = o->ours || kind == WEFT_STEP_CREATE;
    o->as_target = o->tgt != NULL;
    o->tier = o->tgt != NULL ? o->tgt->tier : o->tier;
    return 0;
}
