/* SPDX-License-Identifier: Apache-2.0 */
/* From what layout wants to what may be written: objects of others are left alone, and so is
 * whatever of ours would collide with them. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "pkg/base/map.h"
#include "pkg/hypernode/plan-internal.h"

/* tierNames of others that are looked at; a cluster has a handful */
enum { FOREIGN_TIERS_MAX = 64 };

static void standback_done(struct weft_standback *s)
{
    weft_free(s->state);
    weft_free(s->parent);
    weft_map_free(s->holder);
    weft_map_free(s->listed);
    weft_ids_done(&s->ascending);
    weft_hypernode_set_done(&s->kept);
}
WEFT_DEFINE_AUTO_VALUE(struct weft_standback, standback_done)

static bool is_ours(const struct weft_standback *s, const struct weft_hypernode *hn)
{
    return weft_hypernode_is_ours(hn, s->w->options->instance);
}

/* ---- what layout promised ---- */

static int refuse(struct weft_error *err, const struct weft_hypernode *hn, const char *what,
                  const char *name)
{
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "wanted HyperNode %.63s: %s %.63s",
                        weft_hypernode_text(hn->name), what, name);
}

static int check_member(struct weft_standback *s, size_t item, const struct weft_member *m,
                        struct weft_error *err)
{
    const struct weft_hypernode *hn = &s->set->items[item];
    if (m->selector != WEFT_SELECTOR_EXACT) {
        return refuse(err, hn, "a member is no exactMatch:", m->name);
    }
    if (m->type == WEFT_MEMBER_NODE) {
        const int rc = weft_map_put(s->holder, m->name, item);
        return rc == 0  ? 0
               : rc < 0 ? weft_err_nomem(err)
                        : refuse(err, hn, "shares with another node", m->name);
    }
    size_t kid;
    if (!weft_hypernode_set_find(s->set, m->name, &kid)) {
        return refuse(err, hn, "lists a HyperNode that is not wanted:", m->name);
    }
    if (s->parent[kid] != WEFT_MODEL_NO_ID) {
        return refuse(err, hn, "shares with another child", m->name);
    }
    if (s->set->items[kid].tier >= hn->tier) {
        return refuse(err, hn, "tier is not above that of child", m->name);
    }
    s->parent[kid] = item;
    return 0;
}

static int check_item(struct weft_standback *s, size_t item, struct weft_error *err)
{
    const struct weft_hypernode *hn = &s->set->items[item];
    if (hn->tier < 1 || hn->member_count == 0) {
        return refuse(err, hn, "tier below 1, or no members", "");
    }
    if (!is_ours(s, hn)) {
        return refuse(err, hn, "is not labelled as this instance's", "");
    }
    int rc = 0;
    for (size_t i = 0; i < hn->member_count && rc == 0; i++) {
        rc = check_member(s, item, &hn->members[i], err);
    }
    return rc;
}

/* Children before parents: parents are found by walking up, as tiers rise on the way. */
static int order_items(struct weft_standback *s)
{
    int64_t done = 0;
    while (s->ascending.n < s->set->count) {
        int64_t next = INT64_MAX;
        for (size_t i = 0; i < s->set->count; i++) {
            const int64_t tier = s->set->items[i].tier;
            next = tier > done && tier < next ? tier : next;
        }
        for (size_t i = 0; i < s->set->count; i++) {
            if (s->set->items[i].tier == next && weft_ids_add(&s->ascending, i) < 0) {
                return -ENOMEM;
            }
        }
        done = next;
    }
    return 0;
}

/* ---- standing back ---- */

void weft_standback_drop(struct weft_hypernode *hn, enum weft_member_type type, const char *name)
{
    for (size_t i = 0; i < hn->member_count; i++) {
        if (hn->members[i].type == type && strcmp(hn->members[i].name, name) == 0) {
            weft_free(hn->members[i].name);
            memmove(&hn->members[i], &hn->members[i + 1],
                    (hn->member_count - i - 1) * sizeof(hn->members[0]));
            hn->member_count--;
            return;
        }
    }
}

void weft_standback_cut(struct weft_standback *s, size_t item)
{
    if (s->parent[item] != WEFT_MODEL_NO_ID) {
        weft_standback_drop(&s->set->items[s->parent[item]], WEFT_MEMBER_HYPERNODE,
                            s->set->items[item].name);
        s->parent[item] = WEFT_MODEL_NO_ID;
    }
}

/* The item and all below it. As deep as there are tiers. */
static void freeze(struct weft_standback *s, size_t item)
{
    s->state[item] = WEFT_STANDBACK_FROZEN;
    const struct weft_hypernode *hn = &s->set->items[item];
    for (size_t i = 0; i < hn->member_count; i++) {
        size_t kid;
        if (hn->members[i].type == WEFT_MEMBER_HYPERNODE &&
            weft_hypernode_set_find(s->set, hn->members[i].name, &kid)) {
            freeze(s, kid);
        }
    }
}

static int find_taken_names(struct weft_standback *s)
{
    int rc = 0;
    for (size_t i = 0; i < s->set->count && rc == 0; i++) {
        const char *name = s->set->items[i].name;
        const struct weft_hypernode *cur = weft_hypernode_set_get(s->w->current, name);
        if (cur == NULL || is_ours(s, cur)) {
            continue;
        }
        weft_standback_cut(s, i);
        freeze(s, i);
        rc = weft_findings_add(&s->w->findings, "name-taken", name,
                               "a HyperNode of another owner (source \"%s\", managed by \"%s\", "
                               "instance \"%s\") has this name: neither it nor what belongs below "
                               "it is written",
                               weft_hypernode_text(cur->source),
                               weft_hypernode_text(cur->managed_by),
                               weft_hypernode_text(cur->instance));
    }
    return rc;
}

static int foreign_child(struct weft_standback *s, const char *foreign, const char *name)
{
    size_t item;
    if (weft_map_put(s->listed, name, 0) < 0) {
        return -ENOMEM;
    }
    if (!weft_hypernode_set_find(s->set, name, &item) || s->state[item] == WEFT_STANDBACK_FROZEN) {
        return 0;
    }
    if (s->parent[item] == WEFT_MODEL_NO_ID) {
        return weft_findings_add(&s->w->findings, "foreign-parent", name,
                                 "HyperNode %s of another owner lists it", foreign);
    }
    const char *parent = s->set->items[s->parent[item]].name;
    const int rc = weft_findings_add(&s->w->findings, "foreign-child", name,
                                     "HyperNode %s of another owner lists it, so %s does not: two "
                                     "parents would stop the scheduler",
                                     foreign, parent);
    weft_standback_cut(s, item);
    return rc;
}

static int foreign_node(struct weft_standback *s, const char *foreign, const char *name)
{
    size_t item;
    if (!weft_map_get(s->holder, name, &item) || s->state[item] == WEFT_STANDBACK_FROZEN) {
        return 0;
    }
    struct weft_hypernode *hn = &s->set->items[item];
    const struct weft_hypernode *cur = weft_hypernode_set_get(s->w->current, hn->name);
    const bool stays = cur != NULL && weft_hypernode_lists(cur, WEFT_MEMBER_NODE, name);
    const int rc = weft_findings_add(&s->w->findings, "foreign-node", name,
                                     "HyperNode %s of another owner lists it: %s %s", foreign,
                                     hn->name, stays ? "keeps it" : "does not take it");
    if (!stays) {
        weft_standback_drop(hn, WEFT_MEMBER_NODE, name);
        (void)weft_map_remove(s->holder, name);
    }
    return rc;
}

/* The tier that a wanted object of that tierName has, if it is another one; else tier. */
static int64_t other_tier(const struct weft_standback *s, const char *name, int64_t tier)
{
    for (size_t k = 0; k < s->set->count; k++) {
        const struct weft_hypernode *hn = &s->set->items[k];
        if (hn->tier != tier && strcmp(weft_hypernode_text(hn->tier_name), name) == 0) {
            return hn->tier;
        }
    }
    return tier;
}

/* Volcano takes a random tier of two that have one name. One finding for each tier of others. */
static int find_foreign_tiers(struct weft_standback *s)
{
    const struct weft_hypernode *seen[FOREIGN_TIERS_MAX];
    size_t count = 0;
    int rc = 0;
    for (size_t i = 0; i < s->w->current->count && count < FOREIGN_TIERS_MAX && rc == 0; i++) {
        const struct weft_hypernode *hn = &s->w->current->items[i];
        const char *name = weft_hypernode_text(hn->tier_name);
        bool known = is_ours(s, hn) || name[0] == '\0';
        for (size_t k = 0; k < count && !known; k++) {
            known = seen[k]->tier == hn->tier && strcmp(seen[k]->tier_name, name) == 0;
        }
        if (known) {
            continue;
        }
        seen[count++] = hn;
        const int64_t ours = other_tier(s, name, hn->tier);
        rc = ours == hn->tier
                 ? 0
                 : weft_findings_add(&s->w->findings, "foreign-tier", hn->name,
                                     "another owner's tierName %.63s is tier %" PRId64
                                     ", ours is %" PRId64 ": a job that names it gets either",
                                     name, hn->tier, ours);
    }
    return rc;
}

static int find_foreign_claims(struct weft_standback *s)
{
    int rc = 0;
    for (size_t i = 0; i < s->w->current->count; i++) {
        const struct weft_hypernode *hn = &s->w->current->items[i];
        for (size_t k = 0; !is_ours(s, hn) && k < hn->member_count && rc == 0; k++) {
            const struct weft_member *m = &hn->members[k];
            if (m->selector != WEFT_SELECTOR_EXACT) {
                continue;
            }
            rc = m->type == WEFT_MEMBER_NODE ? foreign_node(s, hn->name, m->name)
                                             : foreign_child(s, hn->name, m->name);
        }
    }
    return rc;
}

/* What foreign objects list is never deleted, so it cannot be replaced either: an object that could
 * only be replaced stays as it is. */
static void freeze_irreplaceable(struct weft_standback *s)
{
    for (size_t i = 0; i < s->set->count; i++) {
        const struct weft_hypernode *hn = &s->set->items[i];
        const struct weft_hypernode *cur = weft_hypernode_set_get(s->w->current, hn->name);
        if (s->state[i] != WEFT_STANDBACK_LIVE || cur == NULL ||
            !weft_map_get(s->listed, hn->name, NULL)) {
            continue;
        }
        bool shares = false;
        for (size_t k = 0; k < hn->member_count; k++) {
            shares |= weft_hypernode_lists(cur, hn->members[k].type, hn->members[k].name);
        }
        if (!shares || cur->tier != hn->tier) {
            weft_standback_cut(s, i);
            s->state[i] = WEFT_STANDBACK_FROZEN;
        }
    }
}

/* ---- the result ---- */

static int report_kept(struct weft_standback *s)
{
    int rc = 0;
    for (size_t i = 0; i < s->kept.count && rc == 0; i++) {
        const char *name = s->kept.items[i].name;
        rc = weft_findings_add(
            &s->w->findings, "kept", name, "is not wanted as it is, but stays: %s",
            weft_map_get(s->listed, name, NULL) ? "a HyperNode of another owner lists it"
                                                : "it belongs to what was stood back from");
    }
    return rc;
}

static int report_terminating(struct weft_standback *s)
{
    int rc = 0;
    for (size_t i = 0; i < s->w->current->count && rc == 0; i++) {
        const struct weft_hypernode *hn = &s->w->current->items[i];
        if (hn->terminating && is_ours(s, hn)) {
            rc = weft_findings_add(&s->w->findings, "terminating", hn->name,
                                   "is being deleted by somebody and waits for a finalizer");
        }
    }
    return rc;
}

/* Live items and kept objects, as one set. */
static int join(struct weft_standback *s)
{
    size_t to = 0;
    for (size_t i = 0; i < s->set->count; i++) {
        if (s->state[i] == WEFT_STANDBACK_LIVE) {
            const struct weft_hypernode hn = s->set->items[i];
            s->set->items[i] = (struct weft_hypernode){0};
            s->set->items[to++] = hn;
        } else {
            weft_hypernode_done(&s->set->items[i]);
        }
    }
    s->set->count = to;
    int rc = 0;
    for (size_t i = 0; i < s->kept.count && rc == 0; i++) {
        rc = weft_hypernode_set_append(s->set, &s->kept.items[i]);
    }
    weft_hypernode_set_sort(s->set);
    return rc;
}

int weft_plan_hold(struct weft_plan *plan, const char *node)
{
    void *list = plan->held_nodes;
    const int rc = weft_array_reserve(&list, &plan->held_node_cap, plan->held_node_count + 1,
                                      sizeof(char *), WEFT_FINDINGS_MAX);
    plan->held_nodes = list;
    char *copy = rc == 0 ? weft_strdup(node) : NULL;
    if (copy == NULL) {
        return -ENOMEM;
    }
    plan->held_nodes[plan->held_node_count++] = copy;
    return 0;
}

/* Nodes that their wanted object does not hold in the target. */
static int find_held(struct weft_pwork *w)
{
    int rc = 0;
    for (size_t i = 0; i < w->desired->count; i++) {
        const struct weft_hypernode *hn = &w->desired->items[i];
        const struct weft_hypernode *tgt = weft_hypernode_set_get(&w->plan->target, hn->name);
        for (size_t k = 0; k < hn->member_count && rc == 0; k++) {
            const struct weft_member *m = &hn->members[k];
            const bool held = m->type == WEFT_MEMBER_NODE &&
                              (tgt == NULL || !weft_hypernode_lists(tgt, m->type, m->name));
            rc = held ? weft_plan_hold(w->plan, m->name) : 0;
        }
    }
    return rc;
}

static int stand_back(struct weft_standback *s)
{
    int rc = order_items(s);
    rc = rc == 0 ? find_taken_names(s) : rc;
    rc = rc == 0 ? find_foreign_claims(s) : rc;
    rc = rc == 0 ? find_foreign_tiers(s) : rc;
    if (rc == 0) {
        freeze_irreplaceable(s);
    }
    rc = rc == 0 ? weft_standback_keep(s) : rc;
    rc = rc == 0 ? report_kept(s) : rc;
    rc = rc == 0 ? report_terminating(s) : rc;
    rc = rc == 0 ? join(s) : rc;
    return rc == 0 ? find_held(s->w) : rc;
}

int weft_pwork_target(struct weft_pwork *w, struct weft_error *err)
{
    struct weft_hypernode_set *set = &w->plan->target;
    weft_auto(standback_done) struct weft_standback s = {
        .w = w,
        .set = set,
        .state = weft_calloc(w->desired->count, sizeof(enum weft_standback_state)),
        .parent = weft_calloc(w->desired->count, sizeof(size_t)),
        .holder = weft_map_new(WEFT_FINDINGS_MAX * (size_t)10),
        .listed = weft_map_new(WEFT_FINDINGS_MAX * (size_t)10),
    };
    if (s.state == NULL || s.parent == NULL || s.holder == NULL || s.listed == NULL ||
        weft_hypernode_set_copy(w->desired, set) < 0) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < set->count; i++) {
        s.parent[i] = WEFT_MODEL_NO_ID;
    }
    for (size_t i = 0; i < set->count; i++) {
        const int rc = check_item(&s, i, err);
        if (rc < 0) {
            return rc;
        }
    }
    return stand_back(&s) < 0 ? weft_err_nomem(err) : 0;
}
