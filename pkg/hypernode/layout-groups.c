/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes take part, and each one's chain of groups over the plan's tiers, with the levels that
 * a chain lacks filled in. */
#include <errno.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/hypernode/layout-internal.h"

enum { GROUPS_MAX = WEFT_HYPERNODES_MAX, MEMBER_JSON_BYTES = 64 };

/* The tree's group of the node on the plan's tier, or WEFT_TREE_NONE. */
static size_t level_group(const struct weft_lwork *w, size_t tree_node, size_t tier)
{
    const size_t level = w->level_of[tier];
    return level == WEFT_TREE_NONE ? WEFT_TREE_NONE : w->tree->tiers[level].node_group[tree_node];
}

/* The lowest plan tier that the node has a group on, or WEFT_TREE_NONE. */
static size_t first_level(const struct weft_lwork *w, size_t tree_node)
{
    for (size_t t = 0; t < w->tiers; t++) {
        if (level_group(w, tree_node, t) != WEFT_TREE_NONE) {
            return t;
        }
    }
    return WEFT_TREE_NONE;
}

/* A member's name may have 63 characters (volcano.md 1.4: the policy and the webhooks before v1.14
 * refuse more). A pattern would get round that, but makes Volcano rebuild on every node event, so
 * such a node is left out and reported. 1: fit, 0: not (a finding says so). */
static int check_name(struct weft_lwork *w, const char *name)
{
    if (strlen(name) > WEFT_HYPERNODE_NAME_MAX) {
        const int rc = weft_findings_add(
            &w->findings, "long-node-name", name,
            "the name has %zu characters, a HyperNode's member may have %d: the node is left out",
            strlen(name), WEFT_HYPERNODE_NAME_MAX);
        return rc < 0 ? rc : 0;
    }
    if (!weft_dns_subdomain_valid(name)) {
        const int rc = weft_findings_add(&w->findings, "bad-node-name", name,
                                         "not a name that Kubernetes takes: the node is left out");
        return rc < 0 ? rc : 0;
    }
    return 1;
}

static int pick_unplaced(struct weft_lwork *w, const char *name, bool single)
{
    int rc = weft_findings_add(&w->findings, "unplaced", name, "%s",
                               single ? "no source knows the node: it stands alone on every tier"
                                      : "no source knows the node: it is in no HyperNode");
    if (rc < 0 || !single) {
        return rc;
    }
    rc = check_name(w, name);
    if (rc == 1) {
        w->nodes[w->node_count++] = (struct weft_lnode){.name = name, .tree_node = WEFT_TREE_NONE};
    }
    return rc < 0 ? rc : 0;
}

/* Nodes without any level of the plan, placed by the tree or not. */
static int pick_all_unplaced(struct weft_lwork *w, size_t count)
{
    bool single = w->options->unplaced == WEFT_LAYOUT_UNPLACED_SINGLETON;
    if (single && count > WEFT_LAYOUT_SINGLETONS_MAX) {
        single = false;
        const int rc = weft_findings_add(
            &w->findings, "unplaced-limit", "",
            "%zu nodes are known to no source; more than %d do not get a HyperNode each", count,
            WEFT_LAYOUT_SINGLETONS_MAX);
        if (rc < 0) {
            return rc;
        }
    }
    int rc = 0;
    for (size_t i = 0; i < w->tree->unplaced_count && rc == 0; i++) {
        rc = pick_unplaced(w, w->tree->unplaced[i], single);
    }
    for (size_t i = 0; i < w->tree->node_count && rc == 0; i++) {
        if (first_level(w, i) == WEFT_TREE_NONE) {
            rc = pick_unplaced(w, w->tree->nodes[i], single);
        }
    }
    return rc;
}

static int decide_padding(struct weft_lwork *w, size_t lacking)
{
    w->pad_single = w->options->pad == WEFT_LAYOUT_PAD_SINGLETON;
    if (!w->pad_single || lacking <= WEFT_LAYOUT_SINGLETONS_MAX) {
        return 0;
    }
    w->pad_single = false;
    return weft_findings_add(&w->findings, "pad-limit", w->options->tiers[0],
                             "%zu nodes lack the closest tier; more than %d do not get a HyperNode "
                             "each, they share a copy of the level above",
                             lacking, WEFT_LAYOUT_SINGLETONS_MAX);
}

int weft_lwork_pick_nodes(struct weft_lwork *w, struct weft_error *err)
{
    const struct weft_tree *tree = w->tree;
    w->nodes = weft_calloc(tree->node_count + tree->unplaced_count, sizeof(*w->nodes));
    if (w->nodes == NULL) {
        return weft_err_nomem(err);
    }
    size_t lacking = 0;
    size_t unplaced = tree->unplaced_count;
    int rc = 0;
    for (size_t i = 0; i < tree->node_count && rc >= 0; i++) {
        const size_t first = first_level(w, i);
        unplaced += first == WEFT_TREE_NONE;
        rc = first == WEFT_TREE_NONE ? 0 : check_name(w, tree->nodes[i]);
        if (rc == 1) {
            lacking += first > 0;
            w->nodes[w->node_count++] = (struct weft_lnode){.name = tree->nodes[i], .tree_node = i};
        }
    }
    rc = rc < 0 ? rc : decide_padding(w, lacking);
    rc = rc < 0 ? rc : pick_all_unplaced(w, unplaced);
    if (rc == -EFBIG) {
        return weft_err_set(err, rc, WEFT_ERR_CONFIG, "more than %d findings", WEFT_FINDINGS_MAX);
    }
    return rc < 0 ? weft_err_nomem(err) : 0;
}

/* ---- chains ---- */

static int new_group(struct weft_lwork *w, const struct weft_lgroup *group, size_t *ret_group)
{
    void *list = w->groups;
    const int rc = weft_array_reserve(&list, &w->group_cap, w->group_count + 1,
                                      sizeof(w->groups[0]), GROUPS_MAX);
    w->groups = list;
    if (rc < 0) {
        return rc;
    }
    *ret_group = w->group_count;
    w->groups[w->group_count++] = *group;
    return 0;
}

/* The group on tier that shows the tree's group g of level source. */
static int group_of(struct weft_lwork *w, size_t tier, size_t source, size_t g, size_t *ret_group)
{
    const struct weft_tree_tier *level = &w->tree->tiers[w->level_of[source]];
    size_t **table = &w->copies[tier][source];
    if (*table == NULL) {
        *table = weft_calloc(level->group_count, sizeof(**table));
        if (*table == NULL) {
            return -ENOMEM;
        }
    }
    if ((*table)[g] != 0) {
        *ret_group = (*table)[g] - 1;
        return 0;
    }
    const struct weft_lgroup group = {
        .tier = tier, .source = source, .from = &level->groups[g], .parent = WEFT_TREE_NONE};
    const int rc = new_group(w, &group, ret_group);
    if (rc == 0) {
        (*table)[g] = *ret_group + 1;
    }
    return rc;
}

static int alone(struct weft_lwork *w, size_t tier, const char *node, size_t *ret_group)
{
    const struct weft_lgroup group = {
        .tier = tier, .source = tier, .node = node, .parent = WEFT_TREE_NONE};
    return new_group(w, &group, ret_group);
}

/* One node's groups on all tiers. A level that is lacking shows the nearest known level below: that
 * claims no closeness that nobody vouched for. Below the first known level there is none; then it
 * is the first level itself, or the node alone. */
static int fill_chain(struct weft_lwork *w, size_t at)
{
    const struct weft_lnode *node = &w->nodes[at];
    size_t *chain = &w->chain[at * w->tiers];
    const bool placed = node->tree_node != WEFT_TREE_NONE;
    const size_t first = placed ? first_level(w, node->tree_node) : w->tiers;
    size_t source = first;
    int rc = 0;
    for (size_t t = 0; t < w->tiers && rc == 0; t++) {
        if (!placed || (t < first && w->pad_single)) {
            rc = alone(w, t, node->name, &chain[t]);
            continue;
        }
        if (t > first && level_group(w, node->tree_node, t) != WEFT_TREE_NONE) {
            source = t;
        }
        rc = group_of(w, t, source, level_group(w, node->tree_node, source), &chain[t]);
    }
    return rc;
}

static const char *group_text(const struct weft_lgroup *g)
{
    return g->from != NULL ? g->from->name : g->node;
}

/* Ties the group to its parent: all its nodes must agree on it. */
static int set_parent(struct weft_lwork *w, size_t group, size_t parent, const char *node,
                      struct weft_error *err)
{
    struct weft_lgroup *g = &w->groups[group];
    struct weft_lgroup *p = &w->groups[parent];
    if (g->parent == WEFT_TREE_NONE) {
        g->parent = parent;
        p->members++;
        p->bytes += MEMBER_JSON_BYTES + WEFT_HYPERNODE_NAME_MAX;
        return 0;
    }
    if (g->parent == parent) {
        return 0;
    }
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                        "not a tree: group %.40s of tier %s is under %.40s and, by node %.63s, "
                        "under %.40s",
                        group_text(g), w->options->tiers[g->tier],
                        group_text(&w->groups[g->parent]), node, group_text(p));
}

static int check_sizes(const struct weft_lwork *w, struct weft_error *err)
{
    for (size_t i = 0; i < w->group_count; i++) {
        const struct weft_lgroup *g = &w->groups[i];
        if (g->members > WEFT_HYPERNODE_MEMBERS_MAX || g->bytes > WEFT_HYPERNODE_BYTES_MAX) {
            return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG,
                                "group %.63s of tier %s has %zu members (%zu bytes), more than fit "
                                "one HyperNode: name a closer tier below it",
                                group_text(g), w->options->tiers[g->tier], g->members, g->bytes);
        }
    }
    return 0;
}

int weft_lwork_build_groups(struct weft_lwork *w, struct weft_error *err)
{
    w->chain = weft_calloc(w->node_count * w->tiers, sizeof(*w->chain));
    if (w->chain == NULL) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < w->node_count; i++) {
        const int rc = fill_chain(w, i);
        if (rc == -EFBIG) {
            return weft_err_set(err, rc, WEFT_ERR_CONFIG, "more than %d groups", GROUPS_MAX);
        }
        if (rc < 0) {
            return weft_err_nomem(err);
        }
    }
    for (size_t i = 0; i < w->node_count; i++) {
        const size_t *chain = &w->chain[i * w->tiers];
        w->groups[chain[0]].members++;
        w->groups[chain[0]].bytes += MEMBER_JSON_BYTES + strlen(w->nodes[i].name);
        for (size_t t = 0; t + 1 < w->tiers; t++) {
            const int rc = set_parent(w, chain[t], chain[t + 1], w->nodes[i].name, err);
            if (rc < 0) {
                return rc;
            }
        }
    }
    return check_sizes(w, err);
}
