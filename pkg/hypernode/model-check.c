/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with the modelled state: flags per HyperNode, kept up to date by looking only at
 * what an event touched, and what a scheduling session would make of it all. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/map.h"
#include "pkg/hypernode/model-internal.h"

static int mark_one(struct weft_model *m, size_t id)
{
    if (m->entries[id].dirty) {
        return 0;
    }
    const int rc = weft_ids_add(&m->dirty, id);
    m->entries[id].dirty = rc == 0;
    return rc;
}

int weft_model_mark(struct weft_model *m, size_t id)
{
    int rc = mark_one(m, id);
    const struct weft_ids *listers = &m->entries[id].listers;
    for (size_t i = 0; i < listers->n && rc == 0; i++) {
        rc = mark_one(m, listers->v[i]);
    }
    return rc;
}

static unsigned kid_flags(const struct weft_model *m, size_t id, const struct weft_kid *kid)
{
    const struct weft_entry *child = &m->entries[kid->id];
    if (!child->exists) {
        return kid->linked ? WEFT_MODEL_FLAG_DANGLING : 0;
    }
    unsigned flags = 0;
    if (child->object) {
        flags |= child->spec.tier >= m->entries[id].spec.tier ? WEFT_MODEL_FLAG_TIER : 0;
        flags |= !kid->linked || child->parent != id ? WEFT_MODEL_FLAG_UNLINKED : 0;
    }
    return flags;
}

/* Does another object of the same tier list the node? */
static bool is_double(const struct weft_model *m, size_t id, size_t node)
{
    const struct weft_ids *holders = &m->nodes[node].holders;
    for (size_t i = 0; i < holders->n; i++) {
        const size_t other = holders->v[i];
        if (other != id && m->entries[other].exists &&
            m->entries[other].spec.tier == m->entries[id].spec.tier) {
            return true;
        }
    }
    return false;
}

static unsigned find_flags(const struct weft_model *m, size_t id)
{
    const struct weft_entry *e = &m->entries[id];
    if (!e->exists || !e->object) {
        return 0;
    }
    unsigned flags = e->spec.tier == 0 ? WEFT_MODEL_FLAG_TIER : 0;
    for (size_t i = 0; i < e->kid_count; i++) {
        flags |= kid_flags(m, id, &e->kids[i]);
    }
    for (size_t i = 0; i < e->nodes.n; i++) {
        flags |= is_double(m, id, e->nodes.v[i]) ? WEFT_MODEL_FLAG_DOUBLE : 0;
    }
    return flags;
}

void weft_model_evaluate(struct weft_model *m)
{
    for (size_t i = 0; i < m->dirty.n; i++) {
        struct weft_entry *e = &m->entries[m->dirty.v[i]];
        const unsigned flags = find_flags(m, m->dirty.v[i]);
        for (unsigned bit = 0; bit < WEFT_ARRAY_LEN(m->flag_count); bit++) {
            m->flag_count[bit] -= (e->flags >> bit) & 1;
            m->flag_count[bit] += (flags >> bit) & 1;
        }
        e->flags = flags;
        e->dirty = false;
    }
    m->dirty.n = 0;
}

int64_t weft_model_top_tier(const struct weft_model *m)
{
    int64_t top = 0;
    for (size_t i = 0; i < m->count; i++) {
        const struct weft_entry *e = &m->entries[i];
        if (e->exists && e->indexed && e->spec.tier > top) {
            top = e->spec.tier;
        }
    }
    return top + 1;
}

/* The smallest name that has the flag. */
static const struct weft_entry *find_flagged(const struct weft_model *m, unsigned flag)
{
    const struct weft_entry *found = NULL;
    for (size_t i = 0; i < m->count; i++) {
        const struct weft_entry *e = &m->entries[i];
        if ((e->flags & flag) != 0 && (found == NULL || strcmp(e->name, found->name) < 0)) {
            found = e;
        }
    }
    return found;
}

static const char *first_kid(const struct weft_model *m, const struct weft_entry *e, unsigned flag)
{
    const size_t id = (size_t)(e - m->entries);
    for (size_t i = 0; i < e->kid_count; i++) {
        if ((kid_flags(m, id, &e->kids[i]) & flag) != 0) {
            return m->entries[e->kids[i].id].name;
        }
    }
    return e->name;
}

const char *weft_model_describe(struct weft_model *m, size_t id, unsigned flag)
{
    const struct weft_entry *e = &m->entries[id];
    const char *kid = first_kid(m, e, flag);
    switch (flag) {
    case WEFT_MODEL_FLAG_DANGLING:
        (void)snprintf(m->text, sizeof(m->text),
                       "child %.127s is gone while %.127s still lists it: a topology job ends the "
                       "scheduler",
                       kid, e->name);
        break;
    case WEFT_MODEL_FLAG_UNLINKED:
        (void)snprintf(m->text, sizeof(m->text), "%.127s lists %.127s, which hangs elsewhere%s",
                       e->name, kid, m->ready ? ": its nodes are hidden" : ": topology jobs wait");
        break;
    case WEFT_MODEL_FLAG_TIER:
        (void)snprintf(m->text, sizeof(m->text),
                       "tier %" PRId64 " of %.127s is 0 or not above that of its child %.127s",
                       e->spec.tier, e->name, kid);
        break;
    case WEFT_MODEL_FLAG_DOUBLE:
        (void)snprintf(m->text, sizeof(m->text),
                       "%.127s shares a node with another HyperNode of tier %" PRId64, e->name,
                       e->spec.tier);
        break;
    default:
        (void)snprintf(m->text, sizeof(m->text), "the last rebuild failed: topology jobs wait");
        break;
    }
    return m->text;
}

const char *weft_model_text(struct weft_model *model)
{
    static const unsigned order[] = {WEFT_MODEL_FLAG_DANGLING, WEFT_MODEL_FLAG_UNLINKED, 0,
                                     WEFT_MODEL_FLAG_TIER, WEFT_MODEL_FLAG_DOUBLE};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(order); i++) {
        const struct weft_entry *e = find_flagged(model, order[i]);
        if (e != NULL) {
            return weft_model_describe(model, (size_t)(e - model->entries), order[i]);
        }
        if (order[i] == 0 && !model->ready) {
            return weft_model_describe(model, 0, 0);
        }
    }
    model->text[0] = '\0';
    return model->text;
}

static enum weft_model_outcome soft_outcome(const struct weft_model *m)
{
    if (m->flag_count[1] > 0) {
        return WEFT_MODEL_ORPHAN;
    }
    if (m->flag_count[2] > 0) {
        return WEFT_MODEL_TIER;
    }
    return m->flag_count[3] > 0 ? WEFT_MODEL_DOUBLE : WEFT_MODEL_OK;
}

/* Walks down from the virtual root as a topology job's search does. true: it meets a child that is
 * not in the cache. */
static bool walk_meets_nil(const struct weft_model *m)
{
    for (size_t i = 0; i < m->count; i++) {
        const struct weft_entry *e = &m->entries[i];
        if ((e->flags & WEFT_MODEL_FLAG_DANGLING) == 0) {
            continue;
        }
        /* reached if the chain of links leads up to a root; a longer chain than there are
         * entries is a cycle, which hangs under no root */
        size_t at = i;
        size_t steps = 0;
        while (m->entries[at].parent != WEFT_MODEL_NO_ID && steps++ <= m->count) {
            at = m->entries[at].parent;
        }
        if (steps <= m->count) {
            return true;
        }
    }
    return false;
}

enum weft_model_outcome weft_model_session(const struct weft_model *model,
                                           enum weft_model_job pending)
{
    if (pending == WEFT_MODEL_JOB_TOPOLOGY) {
        if (!model->ready) {
            return WEFT_MODEL_NOT_READY;
        }
        if (model->flag_count[0] > 0 && walk_meets_nil(model)) {
            return WEFT_MODEL_PANIC;
        }
        return soft_outcome(model);
    }
    return WEFT_MODEL_OK;
}
