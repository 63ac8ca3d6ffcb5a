/* SPDX-License-Identifier: Apache-2.0 */
/* The model's events and questions. */
#include "pkg/hypernode/model.h"

#include <errno.h>
#include <string.h>

#include "pkg/base/map.h"
#include "pkg/base/str.h"
#include "pkg/hypernode/model-internal.h"

/* Names that were ever seen count, so twice what may exist at a time. */
enum { NODES_MAX = 10000000, TIER_NAME_BYTES_MAX = 253, ENTRIES_MAX = WEFT_HYPERNODES_MAX * 2 };

static const char *const outcome_names[WEFT_MODEL_OUTCOME_COUNT] = {
    [WEFT_MODEL_OK] = "ok",
    [WEFT_MODEL_LOOSE] = "loose",
    [WEFT_MODEL_DOUBLE] = "node twice",
    [WEFT_MODEL_TIER] = "tier order",
    [WEFT_MODEL_ORPHAN] = "orphan",
    [WEFT_MODEL_NOT_READY] = "not ready",
    [WEFT_MODEL_PANIC] = "panic",
    [WEFT_MODEL_REFUSED] = "refused",
};

const char *weft_model_outcome_name(enum weft_model_outcome outcome)
{
    return outcome_names[outcome];
}

struct weft_model *weft_model_new(bool with_nodes)
{
    weft_auto(weft_model_free) struct weft_model *m = weft_calloc(1, sizeof(*m));
    if (m == NULL) {
        return NULL;
    }
    m->with_nodes = with_nodes;
    m->ready = true;
    m->root_tier = 1;
    m->names = weft_map_new(ENTRIES_MAX);
    m->node_names = weft_map_new(NODES_MAX);
    return m->names != NULL && m->node_names != NULL ? weft_steal(&m) : NULL;
}

void weft_model_free(struct weft_model *model)
{
    if (model == NULL) {
        return;
    }
    for (size_t i = 0; i < model->count; i++) {
        struct weft_entry *e = &model->entries[i];
        weft_free(e->name);
        weft_free(e->kids);
        weft_ids_done(&e->nodes);
        weft_ids_done(&e->real);
        weft_ids_done(&e->listers);
        weft_hypernode_done(&e->spec);
    }
    for (size_t i = 0; i < model->node_count; i++) {
        weft_free(model->nodes[i].name);
        weft_ids_done(&model->nodes[i].holders);
    }
    weft_free(model->entries);
    weft_free(model->nodes);
    weft_ids_done(&model->dirty);
    weft_map_free(model->names);
    weft_map_free(model->node_names);
    weft_free(model);
}

int weft_model_entry(struct weft_model *m, const char *name, size_t *ret_id)
{
    if (weft_map_get(m->names, name, ret_id)) {
        return 0;
    }
    void *list = m->entries;
    int rc = weft_array_reserve(&list, &m->cap, m->count + 1, sizeof(m->entries[0]), ENTRIES_MAX);
    m->entries = list;
    if (rc < 0) {
        return rc;
    }
    char *copy = weft_strdup(name);
    if (copy == NULL) {
        return -ENOMEM;
    }
    rc = weft_map_put(m->names, name, m->count);
    if (rc < 0) {
        weft_free(copy);
        return rc;
    }
    *ret_id = m->count;
    m->entries[m->count++] = (struct weft_entry){.name = copy, .parent = WEFT_MODEL_NO_ID};
    return 0;
}

int weft_model_node(struct weft_model *m, const char *name, size_t *ret_id)
{
    void *list = m->nodes;
    int rc =
        weft_array_reserve(&list, &m->node_cap, m->node_count + 1, sizeof(m->nodes[0]), NODES_MAX);
    m->nodes = list;
    rc = rc == 0 ? weft_map_add(m->node_names, name, m->node_count, ret_id) : rc;
    if (rc != 0) {
        return rc < 0 ? rc : 0;
    }
    char *copy = weft_strdup(name);
    if (copy == NULL) {
        (void)weft_map_remove(m->node_names, name);
        return -ENOMEM;
    }
    m->nodes[m->node_count++] = (struct weft_model_node){.name = copy};
    return 0;
}

const struct weft_entry *weft_model_find(const struct weft_model *m, const char *name)
{
    size_t id;
    return weft_map_get(m->names, name, &id) ? &m->entries[id] : NULL;
}

/* Would the CRD take it? (An empty member list, tier -1, upper case: 422.) */
static bool is_admissible(const struct weft_hypernode *hn)
{
    if (hn->member_count == 0 || hn->tier < 0 || !weft_dns_subdomain_valid(hn->name) ||
        strlen(weft_hypernode_text(hn->tier_name)) > TIER_NAME_BYTES_MAX) {
        return false;
    }
    for (size_t i = 0; i < hn->member_count; i++) {
        const struct weft_member *m = &hn->members[i];
        if (m->selector == WEFT_SELECTOR_EXACT && !weft_dns_subdomain_valid(m->name)) {
            return false;
        }
        if (m->selector == WEFT_SELECTOR_REGEX && m->name[0] == '\0') {
            return false;
        }
    }
    return true;
}

/* Deletes that failed inside are tried again, as the scheduler's queue does. */
static int retry_deletes(struct weft_model *m)
{
    for (size_t i = 0; i < m->count; i++) {
        if (m->entries[i].gone) {
            const int rc = weft_model_tree_delete(m, i);
            if (rc < 0) {
                return rc;
            }
            m->entries[i].gone = rc > 0;
        }
    }
    return 0;
}

static int outcome_after(struct weft_model *m)
{
    weft_model_evaluate(m);
    const int64_t before = m->root_tier;
    m->root_tier = weft_model_top_tier(m);
    if (m->flag_count[0] > 0) {
        return WEFT_MODEL_PANIC;
    }
    const enum weft_model_outcome now = weft_model_session(m, WEFT_MODEL_JOB_TOPOLOGY);
    return (int)(now == WEFT_MODEL_OK && m->root_tier < before ? WEFT_MODEL_LOOSE : now);
}

static int apply(struct weft_model *m, const struct weft_hypernode *hn, bool reordered)
{
    size_t id;
    int rc = weft_model_entry(m, hn->name, &id);
    if (rc == 0) {
        m->entries[id].gone = false;
        rc = weft_model_tree_update(m, id, hn, reordered);
    }
    rc = rc >= 0 ? retry_deletes(m) : rc;
    return rc >= 0 ? outcome_after(m) : rc;
}

int weft_model_apply(struct weft_model *model, const struct weft_hypernode *hn)
{
    return is_admissible(hn) ? apply(model, hn, false) : (int)WEFT_MODEL_REFUSED;
}

int weft_model_touch(struct weft_model *model, const char *name)
{
    const struct weft_entry *e = weft_model_find(model, name);
    if (e == NULL || !e->object) {
        return WEFT_MODEL_REFUSED;
    }
    weft_auto(weft_hypernode_done) struct weft_hypernode copy = {0};
    const int rc = weft_hypernode_copy(&e->spec, &copy);
    return rc == 0 ? apply(model, &copy, true) : rc;
}

int weft_model_delete(struct weft_model *model, const char *name)
{
    size_t id;
    if (!weft_map_get(model->names, name, &id) || !model->entries[id].object ||
        model->entries[id].gone) {
        return WEFT_MODEL_REFUSED; /* 404 */
    }
    int rc = weft_model_tree_delete(model, id);
    if (rc >= 0) {
        model->entries[id].gone = rc > 0;
        rc = retry_deletes(model);
    }
    return rc >= 0 ? outcome_after(model) : rc;
}

/* Applies all, tiers ascending: they are there, so the API server took them once, under whatever
 * rules it had then. */
static int apply_all(struct weft_model *m, const struct weft_hypernode_ref *refs, size_t count)
{
    int rc = 0;
    for (size_t i = 0; i < count && rc >= 0; i++) {
        rc = apply(m, refs[i].hn, false);
    }
    return rc;
}

int weft_model_restart(struct weft_model *model)
{
    weft_auto(weft_model_free) struct weft_model *fresh = weft_model_new(model->with_nodes);
    weft_autofree struct weft_hypernode_ref *list = weft_calloc(model->count, sizeof(*list));
    if (fresh == NULL || list == NULL) {
        return -ENOMEM;
    }
    size_t count = 0;
    for (size_t i = 0; i < model->count; i++) {
        if (model->entries[i].object && !model->entries[i].gone) {
            list[count++].hn = &model->entries[i].spec;
        }
    }
    weft_hypernode_refs_sort(list, count);
    const int rc = apply_all(fresh, list, count);
    if (rc < 0) {
        return rc;
    }
    const struct weft_model old = *model;
    *model = *fresh;
    *fresh = old;
    return outcome_after(model);
}

int weft_model_load(struct weft_model *model, const struct weft_hypernode_set *set)
{
    weft_autofree struct weft_hypernode_ref *list = weft_hypernode_set_ascending(set);
    if (list == NULL) {
        return -ENOMEM;
    }
    int rc = apply_all(model, list, set->count);
    for (size_t i = 0; i < model->count && rc >= 0; i++) {
        struct weft_entry *e = &model->entries[i];
        if (e->exists && !e->object) {
            e->exists = false;
            rc = weft_model_mark(model, i);
        }
    }
    return rc >= 0 ? outcome_after(model) : rc;
}

/* ---- questions ---- */

bool weft_model_ready(const struct weft_model *model)
{
    return model->ready;
}

int weft_model_has(const struct weft_model *model, const char *name)
{
    const struct weft_entry *e = weft_model_find(model, name);
    return e == NULL || !e->exists ? 0 : 1 + e->object;
}

const char *weft_model_parent(const struct weft_model *model, const char *name)
{
    const struct weft_entry *e = weft_model_find(model, name);
    return e != NULL && e->exists && e->parent != WEFT_MODEL_NO_ID ? model->entries[e->parent].name
                                                                   : "";
}

bool weft_model_links(const struct weft_model *model, const char *parent, const char *child)
{
    const struct weft_entry *e = weft_model_find(model, parent);
    for (size_t i = 0; e != NULL && i < e->kid_count; i++) {
        if (strcmp(model->entries[e->kids[i].id].name, child) == 0) {
            return e->kids[i].linked;
        }
    }
    return false;
}

unsigned weft_model_flags(const struct weft_model *model, const char *name)
{
    const struct weft_entry *e = weft_model_find(model, name);
    return e != NULL ? e->flags : 0;
}

bool weft_model_has_node(const struct weft_model *model, const char *name, const char *node)
{
    const struct weft_entry *e = weft_model_find(model, name);
    size_t id;
    return e != NULL && weft_map_get(model->node_names, node, &id) && weft_ids_has(&e->real, id);
}

size_t weft_model_node_count(const struct weft_model *model, const char *name)
{
    const struct weft_entry *e = weft_model_find(model, name);
    return e != NULL ? e->real.n : 0;
}

int64_t weft_model_root_tier(const struct weft_model *model)
{
    return weft_model_top_tier(model);
}

bool weft_model_indexed(const struct weft_model *model, const char *name)
{
    const struct weft_entry *e = weft_model_find(model, name);
    return e != NULL && e->exists && e->indexed;
}

const char *weft_model_lowest(const struct weft_model *model, const char *node)
{
    int64_t lowest = INT64_MAX;
    for (size_t i = 0; i < model->count; i++) {
        const struct weft_entry *e = &model->entries[i];
        if (e->exists && e->indexed && e->spec.tier < lowest) {
            lowest = e->spec.tier;
        }
    }
    const char *found = "";
    for (size_t i = 0; i < model->count; i++) {
        const struct weft_entry *e = &model->entries[i];
        if (e->exists && e->indexed && e->spec.tier == lowest &&
            weft_model_has_node(model, e->name, node) &&
            (found[0] == '\0' || strcmp(e->name, found) < 0)) {
            found = e->name;
        }
    }
    return found;
}
