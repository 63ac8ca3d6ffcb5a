/* SPDX-License-Identifier: Apache-2.0 */
/* The rules by which Volcano's HyperNodesInfo keeps its tree: what an update and a delete do to
 * Parent, Children, the tier index, the sets of real nodes and the ready flag, the odd cases
 * included. The rules are stated in docs/hypernodes.md; nothing here is wished for. */
#include <errno.h>
#include <string.h>

#include "pkg/hypernode/model-internal.h"

/* A chain of ancestors that is longer than any real one, cycles included. */
enum { CHAIN_MAX = 100000 };

/* One rebuild: the ancestors of a name, itself first. */
struct chain {
    struct weft_ids ids;
    struct weft_ids stack; /* the path walked down now */
    struct weft_ids processed;
};

static void chain_done(struct chain *c)
{
    weft_ids_done(&c->ids);
    weft_ids_done(&c->stack);
    weft_ids_done(&c->processed);
}
WEFT_DEFINE_AUTO_VALUE(struct chain, chain_done)

/* Without a Parent pointer the parent is looked for among those of greater tier that list it. */
static size_t find_parent(const struct weft_model *m, size_t id)
{
    const struct weft_entry *e = &m->entries[id];
    const int64_t tier = e->exists ? e->spec.tier : -1;
    size_t found = WEFT_MODEL_NO_ID;
    for (size_t i = 0; i < e->listers.n; i++) {
        const struct weft_entry *l = &m->entries[e->listers.v[i]];
        if (l->exists && l->spec.tier > tier &&
            (found == WEFT_MODEL_NO_ID || strcmp(l->name, m->entries[found].name) < 0)) {
            found = e->listers.v[i];
        }
    }
    return found;
}

static int find_chain(const struct weft_model *m, size_t id, struct chain *c)
{
    size_t at = id;
    while (at != WEFT_MODEL_NO_ID && !weft_ids_has(&c->ids, at)) {
        if (c->ids.n >= CHAIN_MAX) {
            return -EFBIG;
        }
        const int rc = weft_ids_add(&c->ids, at);
        if (rc < 0) {
            return rc;
        }
        const struct weft_entry *e = &m->entries[at];
        at = e->exists && e->parent != WEFT_MODEL_NO_ID ? e->parent : find_parent(m, at);
    }
    return 0;
}

static int reset_parent(struct weft_model *m, size_t id)
{
    if (m->entries[id].exists) {
        m->entries[id].parent = WEFT_MODEL_NO_ID;
    }
    return weft_model_mark(m, id);
}

/* Links child under parent. 1: it already hangs under another. */
static int link_child(struct weft_model *m, size_t parent, struct weft_kid *kid)
{
    struct weft_entry *child = &m->entries[kid->id];
    if (!child->exists) {
        child->exists = true; /* a placeholder: tier 0, no members */
        child->object = false;
        child->deleting = false;
        child->parent = WEFT_MODEL_NO_ID;
    }
    const int rc = weft_model_mark(m, kid->id);
    if (rc < 0) {
        return rc;
    }
    if (child->parent != WEFT_MODEL_NO_ID && child->parent != parent) {
        return 1;
    }
    child->parent = parent;
    kid->linked = true;
    return 0;
}

static int build(struct weft_model *m, size_t id, struct chain *c);

static int build_kids(struct weft_model *m, size_t id, struct chain *c)
{
    for (size_t i = 0; i < m->entries[id].kid_count; i++) {
        struct weft_kid *kid = &m->entries[id].kids[i];
        int rc = link_child(m, id, kid);
        if (rc != 0) {
            return rc;
        }
        rc = build(m, kid->id, c);
        if (rc != 0) {
            return rc;
        }
        if (m->with_nodes) {
            rc = weft_ids_union(&m->entries[id].real, &m->entries[kid->id].real);
            if (rc != 0) {
                return rc;
            }
        }
    }
    return 0;
}

/* Rebuilds one entry of the chain, and on the way down those of its children that are in the chain
 * too. 1: a cycle or a second parent; what was built so far stays. The recursion is as deep as the
 * chain is long: each entry is on the stack at most once. */
static int build(struct weft_model *m, size_t id, struct chain *c)
{
    if (weft_ids_has(&c->stack, id)) {
        return 1;
    }
    if (weft_ids_has(&c->processed, id) || !weft_ids_has(&c->ids, id)) {
        return 0;
    }
    if (!m->entries[id].exists || m->entries[id].deleting) {
        return 0;
    }
    int rc = weft_ids_add(&c->stack, id);
    if (rc < 0) {
        return rc;
    }
    if (m->with_nodes) {
        rc = weft_ids_union(&m->entries[id].real, &m->entries[id].nodes);
    }
    rc = rc == 0 ? build_kids(m, id, c) : rc;
    weft_ids_remove(&c->stack, id);
    return rc == 0 ? weft_ids_add(&c->processed, id) : rc;
}

/* Clears what is derived for the name and all its ancestors, then computes it anew. Siblings are
 * not looked at. 0, 1 (error inside), -ENOMEM. */
static int rebuild(struct weft_model *m, size_t id)
{
    weft_auto(chain_done) struct chain c = {0};
    int rc = find_chain(m, id, &c);
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; i < c.ids.n; i++) {
        struct weft_entry *e = &m->entries[c.ids.v[i]];
        e->real.n = 0;
        for (size_t k = 0; e->exists && k < e->kid_count; k++) {
            e->kids[k].linked = false;
        }
        rc = reset_parent(m, c.ids.v[i]);
        if (rc < 0) {
            return rc;
        }
    }
    for (size_t i = 0; i < c.ids.n && rc == 0; i++) {
        if (m->entries[c.ids.v[i]].exists) {
            rc = build(m, c.ids.v[i], &c);
        }
    }
    return rc;
}

void weft_model_unlist(struct weft_model *m, size_t id)
{
    struct weft_entry *e = &m->entries[id];
    for (size_t i = 0; i < e->kid_count; i++) {
        weft_ids_remove(&m->entries[e->kids[i].id].listers, id);
    }
    for (size_t i = 0; i < e->nodes.n; i++) {
        weft_ids_remove(&m->nodes[e->nodes.v[i]].holders, id);
    }
    weft_free(e->kids);
    e->kids = NULL;
    e->kid_count = 0;
    e->nodes.n = 0;
}

/* Everyone that holds one of the entry's nodes must be looked at again. */
static int mark_holders(struct weft_model *m, size_t id)
{
    const struct weft_ids *nodes = &m->entries[id].nodes;
    int rc = 0;
    for (size_t i = 0; i < nodes->n && rc == 0; i++) {
        const struct weft_ids *holders = &m->nodes[nodes->v[i]].holders;
        for (size_t k = 0; holders->n > 1 && k < holders->n && rc == 0; k++) {
            rc = weft_model_mark(m, holders->v[k]);
        }
    }
    return rc;
}

static int list_node(struct weft_model *m, size_t id, const char *name)
{
    size_t node;
    int rc = weft_model_node(m, name, &node);
    rc = rc == 0 ? weft_ids_add(&m->entries[id].nodes, node) : rc;
    return rc == 0 ? weft_ids_add(&m->nodes[node].holders, id) : rc;
}

static int list_kid(struct weft_model *m, size_t id, const char *name)
{
    size_t kid;
    int rc = weft_model_entry(m, name, &kid);
    rc = rc == 0 ? weft_ids_add(&m->entries[kid].listers, id) : rc;
    if (rc == 0) {
        struct weft_entry *e = &m->entries[id];
        e->kids[e->kid_count++] = (struct weft_kid){.id = kid};
    }
    return rc;
}

/* Fills kids and nodes from the spec. */
static int list_members(struct weft_model *m, size_t id)
{
    const struct weft_hypernode *spec = &m->entries[id].spec;
    m->entries[id].kids = weft_calloc(spec->member_count, sizeof(struct weft_kid));
    if (m->entries[id].kids == NULL) {
        return -ENOMEM;
    }
    int rc = 0;
    for (size_t i = 0; i < spec->member_count && rc == 0; i++) {
        /* interning may move the entries, not the spec's members */
        const struct weft_member *member = &m->entries[id].spec.members[i];
        if (member->selector != WEFT_SELECTOR_EXACT) {
            continue;
        }
        rc = member->type == WEFT_MEMBER_NODE ? list_node(m, id, member->name)
                                              : list_kid(m, id, member->name);
        spec = &m->entries[id].spec;
    }
    weft_ids_sort(&m->entries[id].nodes);
    return rc;
}

/* The children that the entry's spec lists and hn does not. */
static int find_freed(const struct weft_model *m, size_t id, const struct weft_hypernode *hn,
                      struct weft_ids *ret_freed)
{
    const struct weft_entry *e = &m->entries[id];
    int rc = 0;
    for (size_t i = 0; e->exists && i < e->kid_count && rc == 0; i++) {
        const size_t kid = e->kids[i].id;
        if (!weft_hypernode_lists(hn, WEFT_MEMBER_HYPERNODE, m->entries[kid].name)) {
            rc = weft_ids_add(ret_freed, kid);
        }
    }
    return rc;
}

static bool has_pattern(const struct weft_hypernode *hn)
{
    for (size_t i = 0; i < hn->member_count; i++) {
        const enum weft_selector s = hn->members[i].selector;
        if (s == WEFT_SELECTOR_REGEX || s == WEFT_SELECTOR_LABEL) {
            return true;
        }
    }
    return false;
}

/* Every other object that lists one of the freed children is rebuilt at once, so that it adopts
 * it. */
static int rebuild_claimers(struct weft_model *m, const struct weft_ids *freed, size_t but)
{
    int rc = 0;
    for (size_t i = 0; i < freed->n && rc == 0; i++) {
        const struct weft_ids *listers = &m->entries[freed->v[i]].listers;
        for (size_t k = 0; k < listers->n && rc == 0; k++) {
            if (listers->v[k] != but && m->entries[listers->v[k]].exists) {
                rc = rebuild(m, listers->v[k]);
            }
        }
    }
    return rc;
}

static int store_spec(struct weft_model *m, size_t id, const struct weft_hypernode *hn,
                      bool members_changed)
{
    weft_auto(weft_hypernode_done) struct weft_hypernode copy = {0};
    int rc = weft_hypernode_copy(hn, &copy);
    if (rc < 0) {
        return rc;
    }
    if (members_changed) {
        rc = mark_holders(m, id);
        weft_model_unlist(m, id);
    }
    struct weft_entry *e = &m->entries[id];
    const struct weft_hypernode old = e->spec;
    e->spec = copy;
    copy = old;
    if (!e->exists) {
        e->parent = WEFT_MODEL_NO_ID;
        e->deleting = false;
    }
    e->exists = true;
    e->object = true;
    if (members_changed && rc == 0) {
        rc = list_members(m, id);
    }
    rc = rc == 0 ? mark_holders(m, id) : rc;
    return rc == 0 ? weft_model_mark(m, id) : rc;
}

int weft_model_tree_update(struct weft_model *m, size_t id, const struct weft_hypernode *hn,
                           bool reordered)
{
    const bool exists = m->entries[id].exists;
    const bool members_changed =
        !exists || reordered || !weft_hypernode_same_members(&m->entries[id].spec, hn);
    const bool tier_changed = !exists || m->entries[id].spec.tier != hn->tier;

    weft_auto(weft_ids_done) struct weft_ids freed = {0};
    int rc = members_changed ? find_freed(m, id, hn, &freed) : 0;
    for (size_t i = 0; i < freed.n && rc == 0; i++) {
        rc = reset_parent(m, freed.v[i]);
    }
    rc = rc == 0 ? store_spec(m, id, hn, members_changed) : rc;
    if (rc < 0) {
        return rc;
    }
    if (tier_changed) {
        /* so a tier-0 object that follows its placeholder never enters the index */
        m->entries[id].indexed = true;
    }
    if (!members_changed && !has_pattern(hn)) {
        return 0;
    }
    rc = rebuild(m, id);
    rc = rc == 0 ? rebuild_claimers(m, &freed, id) : rc;
    if (rc >= 0) {
        m->ready = rc == 0;
    }
    return rc;
}

int weft_model_tree_delete(struct weft_model *m, size_t id)
{
    m->entries[id].deleting = m->entries[id].exists;
    int rc = rebuild(m, id);
    if (rc >= 0) {
        m->ready = rc == 0;
    }
    if (rc != 0) {
        return rc; /* it stays in the cache, and the delete is tried again later */
    }
    if (!m->entries[id].exists) {
        return 0;
    }
    /* whoever else lists these children still does, but is not told */
    for (size_t i = 0; i < m->entries[id].kid_count && rc == 0; i++) {
        rc = reset_parent(m, m->entries[id].kids[i].id);
    }
    rc = rc == 0 ? mark_holders(m, id) : rc;
    rc = rc == 0 ? weft_model_mark(m, id) : rc;
    weft_model_unlist(m, id);
    struct weft_entry *e = &m->entries[id];
    weft_hypernode_done(&e->spec);
    e->exists = false;
    e->object = false;
    e->indexed = false;
    e->deleting = false;
    e->parent = WEFT_MODEL_NO_ID;
    e->real.n = 0;
    return rc;
}
