/* SPDX-License-Identifier: Apache-2.0 */
/* The layout: options checked, parts called in order, result put together. */
#include "pkg/hypernode/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/hypernode/layout-internal.h"

static void lwork_done(struct weft_lwork *w)
{
    for (size_t i = 0; i < w->group_count; i++) {
        weft_free(w->groups[i].identity);
        weft_free(w->groups[i].annotation);
        weft_free(w->groups[i].name);
    }
    for (size_t t = 0; t < WEFT_LAYOUT_TIERS_MAX; t++) {
        for (size_t s = 0; s < WEFT_LAYOUT_TIERS_MAX; s++) {
            weft_free(w->copies[t][s]);
        }
    }
    weft_free(w->groups);
    weft_free(w->nodes);
    weft_free(w->chain);
    weft_findings_done(&w->findings);
}
WEFT_DEFINE_AUTO_VALUE(struct weft_lwork, lwork_done)

static int check_options(const struct weft_layout_options *o, struct weft_error *err)
{
    if (o->tier_count == 0 || o->tier_count > WEFT_LAYOUT_TIERS_MAX) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%zu tiers: a plan has 1 to %d",
                            o->tier_count, WEFT_LAYOUT_TIERS_MAX);
    }
    for (size_t i = 0; i < o->tier_count; i++) {
        const char *name = o->tiers[i];
        if (!weft_dns_label_valid(name) || strlen(name) > WEFT_LAYOUT_TIER_NAME_MAX) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "tier name \"%.64s\": lower-case letters, digits and '-', at most "
                                "%d characters",
                                name, WEFT_LAYOUT_TIER_NAME_MAX);
        }
        for (size_t k = 0; k < i; k++) {
            if (strcmp(name, o->tiers[k]) == 0) {
                return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "tier %s is there twice", name);
            }
        }
    }
    return 0;
}

/* The tree's tiers by name among the plan's, in the plan's order. */
static int map_tiers(struct weft_lwork *w, struct weft_error *err)
{
    for (size_t t = 0; t < w->tiers; t++) {
        w->level_of[t] = WEFT_TREE_NONE;
    }
    size_t next = 0;
    for (size_t level = 0; level < w->tree->tier_count; level++) {
        const char *name = w->tree->tiers[level].name;
        size_t t = 0;
        while (t < w->tiers && strcmp(name, w->options->tiers[t]) != 0) {
            t++;
        }
        if (t == w->tiers) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "tier %.64s of the tree is not in the plan of tiers", name);
        }
        if (t < next) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "tier %.64s stands higher in the tree than in the plan", name);
        }
        w->level_of[t] = level;
        next = t + 1;
    }
    return 0;
}

/* ---- the result ---- */

static int make_object(const struct weft_lwork *w, const struct weft_lgroup *g,
                       struct weft_hypernode *hn)
{
    hn->tier = (int64_t)g->tier + 1;
    int rc = weft_hypernode_set_text(&hn->name, g->name);
    rc = rc == 0 ? weft_hypernode_set_text(&hn->tier_name, w->options->tiers[g->tier]) : rc;
    rc = rc == 0 ? weft_hypernode_set_text(&hn->identity, g->annotation) : rc;
    rc = rc == 0 ? weft_hypernode_set_text(&hn->source, WEFT_LABEL_SOURCE_VALUE) : rc;
    rc = rc == 0 ? weft_hypernode_set_text(&hn->managed_by, WEFT_LABEL_MANAGED_BY_VALUE) : rc;
    rc = rc == 0 ? weft_hypernode_set_text(&hn->instance, w->options->instance) : rc;
    rc = rc == 0 ? weft_hypernode_set_text(&hn->uid, "") : rc;
    return rc == 0 ? weft_hypernode_set_text(&hn->resource_version, "") : rc;
}

/* Puts the members in. Objects and groups have the same index until the set is sorted. */
static int fill_members(const struct weft_lwork *w, struct weft_hypernode_set *set)
{
    int rc = 0;
    for (size_t i = 0; i < w->node_count && rc == 0; i++) {
        rc = weft_hypernode_add_member(&set->items[w->chain[i * w->tiers]], WEFT_MEMBER_NODE,
                                       WEFT_SELECTOR_EXACT, w->nodes[i].name);
    }
    for (size_t i = 0; i < w->group_count && rc == 0; i++) {
        const size_t parent = w->groups[i].parent;
        if (parent != WEFT_TREE_NONE) {
            rc = weft_hypernode_add_member(&set->items[parent], WEFT_MEMBER_HYPERNODE,
                                           WEFT_SELECTOR_EXACT, w->groups[i].name);
        }
    }
    return rc;
}

static int make_objects(const struct weft_lwork *w, struct weft_hypernode_set *set)
{
    int rc = 0;
    for (size_t i = 0; i < w->group_count && rc == 0; i++) {
        weft_auto(weft_hypernode_done) struct weft_hypernode hn = {0};
        rc = make_object(w, &w->groups[i], &hn);
        rc = rc == 0 ? weft_hypernode_set_append(set, &hn) : rc;
    }
    rc = rc == 0 ? fill_members(w, set) : rc;
    for (size_t i = 0; i < set->count; i++) {
        weft_hypernode_sort(&set->items[i]);
    }
    weft_hypernode_set_sort(set);
    return rc;
}

static int copy_names(const char *const *from, size_t count, char ***ret_to, size_t *ret_count)
{
    *ret_to = weft_calloc(count, sizeof(**ret_to));
    if (*ret_to == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        (*ret_to)[i] = weft_strdup(from[i]);
        if ((*ret_to)[i] == NULL) {
            return -ENOMEM;
        }
        *ret_count = i + 1;
    }
    return 0;
}

/* Node names, each with the index of its object on every tier. */
static int make_places(const struct weft_lwork *w, struct weft_layout *l)
{
    l->nodes = weft_calloc(w->node_count, sizeof(*l->nodes));
    l->place = weft_calloc(w->node_count * w->tiers, sizeof(*l->place));
    weft_autofree size_t *objects =
        weft_calloc(w->group_count + 1, sizeof(*objects)); /* by group */
    if (l->nodes == NULL || l->place == NULL || objects == NULL) {
        return -ENOMEM;
    }
    for (size_t g = 0; g < w->group_count; g++) {
        (void)weft_hypernode_set_find(&l->desired, w->groups[g].name, &objects[g]);
    }
    for (size_t i = 0; i < w->node_count; i++) {
        l->nodes[i] = weft_strdup(w->nodes[i].name);
        if (l->nodes[i] == NULL) {
            return -ENOMEM;
        }
        l->node_count = i + 1;
        for (size_t t = 0; t < w->tiers; t++) {
            l->place[i * w->tiers + t] = objects[w->chain[i * w->tiers + t]];
        }
    }
    return 0;
}

static int make_layout(struct weft_lwork *w, struct weft_layout *l)
{
    int rc = make_objects(w, &l->desired);
    rc = rc == 0 ? copy_names(w->options->tiers, w->tiers, &l->tier_names, &l->tier_count) : rc;
    rc = rc == 0 ? make_places(w, l) : rc;
    weft_findings_sort(&w->findings);
    l->findings = w->findings.items;
    l->finding_count = w->findings.count;
    w->findings = (struct weft_findings){0};
    return rc;
}

static int cmp_node(const void *a, const void *b)
{
    const struct weft_lnode *x = a;
    const struct weft_lnode *y = b;
    return strcmp(x->name, y->name);
}

static int sort_nodes(struct weft_lwork *w, struct weft_error *err)
{
    if (w->node_count > 1) {
        qsort(w->nodes, w->node_count, sizeof(w->nodes[0]), cmp_node);
    }
    for (size_t i = 1; i < w->node_count; i++) {
        if (strcmp(w->nodes[i].name, w->nodes[i - 1].name) == 0) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "node %.63s is in the tree twice",
                                w->nodes[i].name);
        }
    }
    return 0;
}

int weft_layout_build(const struct weft_tree *tree, const struct weft_layout_options *options,
                      struct weft_layout *ret_layout, struct weft_error *err)
{
    int rc = check_options(options, err);
    if (rc < 0) {
        return rc;
    }
    weft_auto(lwork_done) struct weft_lwork w = {
        .tree = tree, .options = options, .tiers = options->tier_count};
    rc = map_tiers(&w, err);
    rc = rc < 0 ? rc : weft_lwork_pick_nodes(&w, err);
    rc = rc < 0 ? rc : sort_nodes(&w, err);
    rc = rc < 0 ? rc : weft_lwork_build_groups(&w, err);
    rc = rc < 0 ? rc : weft_lwork_name_groups(&w, err);
    if (rc < 0) {
        return rc;
    }
    weft_auto(weft_layout_done) struct weft_layout layout = {0};
    if (make_layout(&w, &layout) < 0) {
        return weft_err_nomem(err);
    }
    *ret_layout = layout;
    layout = (struct weft_layout){0};
    return 0;
}

static void names_free(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        weft_free(names[i]);
    }
    weft_free(names);
}

void weft_layout_done(struct weft_layout *layout)
{
    if (layout == NULL) {
        return;
    }
    struct weft_findings findings = {.items = layout->findings, .count = layout->finding_count};
    weft_findings_done(&findings);
    names_free(layout->tier_names, layout->tier_count);
    names_free(layout->nodes, layout->node_count);
    weft_free(layout->place);
    weft_hypernode_set_done(&layout->desired);
    *layout = (struct weft_layout){0};
}

const char *weft_layout_label(const struct weft_layout *layout, size_t node, size_t tier)
{
    return layout->desired.items[layout->place[node * layout->tier_count + tier - 1]].name;
}

bool weft_layout_find(const struct weft_layout *layout, const char *node, size_t *ret_node)
{
    size_t low = 0;
    size_t high = layout->node_count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const int order = strcmp(layout->nodes[mid], node);
        if (order == 0) {
            if (ret_node != NULL) {
                *ret_node = mid;
            }
            return true;
        }
        low = order < 0 ? mid + 1 : low;
        high = order < 0 ? high : mid;
    }
    return false;
}
