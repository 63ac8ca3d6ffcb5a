/* SPDX-License-Identifier: Apache-2.0 */
/* What of ours must stay although layout does not want it (any more): objects that a foreign one
 * lists, objects below a name that another owner took, and what these list. */
#include <errno.h>

#include "pkg/base/map.h"
#include "pkg/hypernode/plan-internal.h"

static bool is_ours(const struct weft_standback *s, const struct weft_hypernode *hn)
{
    return weft_hypernode_is_ours(hn, s->w->options->instance);
}

static void drop_empty(struct weft_standback *s)
{
    for (size_t i = 0; i < s->ascending.n; i++) {
        const size_t item = s->ascending.v[i];
        if (s->state[item] == WEFT_STANDBACK_LIVE && s->set->items[item].member_count == 0) {
            weft_standback_cut(s, item);
            s->state[item] = WEFT_STANDBACK_EMPTY;
        }
    }
}

static bool has_state(const struct weft_standback *s, const char *name,
                      enum weft_standback_state state)
{
    size_t item;
    return weft_hypernode_set_find(s->set, name, &item) && s->state[item] == state;
}

/* The live item that claims the member, or WEFT_MODEL_NO_ID. */
static size_t claimer(const struct weft_standback *s, const struct weft_member *m)
{
    size_t item = WEFT_MODEL_NO_ID;
    if (m->selector != WEFT_SELECTOR_EXACT) {
        return item;
    }
    if (m->type == WEFT_MEMBER_NODE) {
        const bool held = weft_map_get(s->holder, m->name, &item);
        return held && s->state[item] == WEFT_STANDBACK_LIVE ? item : WEFT_MODEL_NO_ID;
    }
    const bool known = weft_hypernode_set_find(s->set, m->name, &item);
    return known && s->state[item] == WEFT_STANDBACK_LIVE ? s->parent[item] : WEFT_MODEL_NO_ID;
}

/* Does the member name a HyperNode that neither is nor will be? */
static bool is_dangling(const struct weft_standback *s, const struct weft_member *m)
{
    return m->type == WEFT_MEMBER_HYPERNODE && m->selector == WEFT_SELECTOR_EXACT &&
           !weft_hypernode_set_find(s->w->current, m->name, NULL) &&
           !has_state(s, m->name, WEFT_STANDBACK_LIVE);
}

/* The live item goes without the member. */
static void take_from(struct weft_standback *s, size_t item, const struct weft_member *m)
{
    weft_standback_drop(&s->set->items[item], m->type, m->name);
    size_t kid;
    if (m->type == WEFT_MEMBER_NODE) {
        (void)weft_map_remove(s->holder, m->name);
    } else if (weft_hypernode_set_find(s->set, m->name, &kid)) {
        s->parent[kid] = WEFT_MODEL_NO_ID;
    }
}

/* cur as it shall stay: without what live objects claim and what is not there. If that is all it
 * has, it keeps all, and the claimers go without. 1: they had to. */
static int keep_one(struct weft_standback *s, const struct weft_hypernode *cur)
{
    weft_auto(weft_hypernode_done) struct weft_hypernode hn = {0};
    int rc = weft_hypernode_copy(cur, &hn);
    if (rc < 0) {
        return rc;
    }
    size_t left = 0;
    for (size_t i = 0; i < cur->member_count; i++) {
        left +=
            claimer(s, &cur->members[i]) == WEFT_MODEL_NO_ID && !is_dangling(s, &cur->members[i]);
    }
    bool took = false;
    for (size_t i = 0; i < cur->member_count; i++) {
        const struct weft_member *m = &cur->members[i];
        const size_t item = claimer(s, m);
        if (left > 0 && (item != WEFT_MODEL_NO_ID || is_dangling(s, m))) {
            weft_standback_drop(&hn, m->type, m->name);
        } else if (item != WEFT_MODEL_NO_ID) {
            take_from(s, item, m);
            took = true;
        }
    }
    rc = weft_hypernode_set_put(&s->kept, &hn);
    return rc < 0 ? rc : took;
}

/* Must the object stay although nobody wants it (any more)? */
static bool must_keep(const struct weft_standback *s, const struct weft_hypernode *cur)
{
    return is_ours(s, cur) && !has_state(s, cur->name, WEFT_STANDBACK_LIVE) &&
           (weft_map_get(s->listed, cur->name, NULL) ||
            has_state(s, cur->name, WEFT_STANDBACK_FROZEN));
}

static int add_kept(struct weft_map *kept, struct weft_ids *order, const char *name, size_t at)
{
    const int rc = weft_map_put(kept, name, at);
    return rc == 0 ? weft_ids_add(order, at) : rc < 0 ? rc : 0;
}

/* What of ours the kept object lists and nobody wants: it would dangle. */
static int add_kids(const struct weft_standback *s, size_t at, struct weft_map *kept,
                    struct weft_ids *order)
{
    const struct weft_hypernode_set *current = s->w->current;
    const struct weft_hypernode *hn = &current->items[at];
    int rc = 0;
    for (size_t k = 0; k < hn->member_count && rc >= 0; k++) {
        const struct weft_member *m = &hn->members[k];
        size_t kid;
        if (m->type == WEFT_MEMBER_HYPERNODE && m->selector == WEFT_SELECTOR_EXACT &&
            !has_state(s, m->name, WEFT_STANDBACK_LIVE) &&
            weft_hypernode_set_find(current, m->name, &kid) && is_ours(s, &current->items[kid])) {
            rc = add_kept(kept, order, m->name, kid);
        }
    }
    return rc;
}

static int find_kept(const struct weft_standback *s, struct weft_map *kept, struct weft_ids *order)
{
    const struct weft_hypernode_set *current = s->w->current;
    int rc = 0;
    for (size_t i = 0; i < current->count && rc == 0; i++) {
        rc =
            must_keep(s, &current->items[i]) ? add_kept(kept, order, current->items[i].name, i) : 0;
    }
    for (size_t i = 0; i < order->n && rc == 0; i++) {
        rc = add_kids(s, order->v[i], kept, order);
    }
    return rc;
}

/* Each round either takes a member from a live object or is the last. */
int weft_standback_keep(struct weft_standback *s)
{
    for (;;) {
        drop_empty(s);
        weft_auto(weft_map_free) struct weft_map *kept = weft_map_new(WEFT_HYPERNODES_MAX);
        weft_auto(weft_ids_done) struct weft_ids order = {0};
        if (kept == NULL || find_kept(s, kept, &order) < 0) {
            return -ENOMEM;
        }
        weft_hypernode_set_done(&s->kept);
        bool again = false;
        for (size_t i = 0; i < order.n; i++) {
            const int rc = keep_one(s, &s->w->current->items[order.v[i]]);
            if (rc < 0) {
                return rc;
            }
            again = again || rc > 0;
        }
        if (!again) {
            return 0;
        }
    }
}
