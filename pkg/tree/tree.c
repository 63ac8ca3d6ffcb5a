/* SPDX-License-Identifier: Apache-2.0 */
/* The tree value itself: freeing it and checking its laws. No algorithm lives here. */
#include "pkg/tree/tree.h"

#include <errno.h>
#include <string.h>

#include "pkg/base/map.h"

void weft_finding_done(struct weft_finding *finding)
{
    if (finding != NULL) {
        weft_free(finding->kind);
        weft_free(finding->subject);
        weft_free(finding->detail);
        *finding = (struct weft_finding){0};
    }
}

static void group_done(struct weft_tree_group *group)
{
    for (size_t i = 0; i < group->switch_count; i++) {
        weft_free(group->switches[i]);
    }
    weft_free(group->switches);
    weft_free(group->switch_guids);
    weft_free(group->name);
    weft_free(group->identity);
}

static void strings_free(char **strings, size_t count)
{
    for (size_t i = 0; strings != NULL && i < count; i++) {
        weft_free(strings[i]);
    }
    weft_free(strings);
}

void weft_tree_free(struct weft_tree *tree)
{
    if (tree == NULL) {
        return;
    }
    for (size_t t = 0; tree->tiers != NULL && t < tree->tier_count; t++) {
        struct weft_tree_tier *tier = &tree->tiers[t];
        for (size_t g = 0; tier->groups != NULL && g < tier->group_count; g++) {
            group_done(&tier->groups[g]);
        }
        weft_free(tier->groups);
        weft_free(tier->node_group);
        weft_free(tier->name);
    }
    weft_free(tree->tiers);
    strings_free(tree->nodes, tree->node_count);
    weft_free(tree->node_source);
    strings_free(tree->unplaced, tree->unplaced_count);
    for (size_t i = 0; tree->findings != NULL && i < tree->finding_count; i++) {
        weft_finding_done(&tree->findings[i]);
    }
    weft_free(tree->findings);
    weft_free(tree);
}

static int bad(struct weft_error *err, const char *tier, const char *what, const char *subject)
{
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "tree: tier %s: %s: %s", tier, what,
                        subject);
}

static int check_nodes(const struct weft_tree *tree, struct weft_error *err)
{
    for (size_t n = 0; n < tree->node_count; n++) {
        if (tree->nodes[n] == NULL || (n > 0 && strcmp(tree->nodes[n - 1], tree->nodes[n]) >= 0)) {
            return bad(err, "-", "nodes are not sorted and unique",
                       tree->nodes[n] != NULL ? tree->nodes[n] : "(null)");
        }
    }
    return 0;
}

static int check_groups(const struct weft_tree_tier *tier, size_t parents, struct weft_error *err)
{
    weft_auto(weft_map_free) struct weft_map *seen = weft_map_new(SIZE_MAX / 2);
    if (seen == NULL) {
        return weft_err_nomem(err);
    }
    for (size_t g = 0; g < tier->group_count; g++) {
        const struct weft_tree_group *group = &tier->groups[g];
        if (group->name == NULL || group->identity == NULL) {
            return bad(err, tier->name, "a group lacks a name or an identity", "");
        }
        if (group->parent != WEFT_TREE_NONE && group->parent >= parents) {
            return bad(err, tier->name, "parent out of range", group->name);
        }
        const int rc = weft_map_put(seen, group->identity, g);
        if (rc < 0) {
            return weft_err_nomem(err);
        }
        if (rc == 1) {
            return bad(err, tier->name, "two groups have one identity", group->identity);
        }
    }
    return 0;
}

/* Every node of a group has the group's parent in the tier above. */
static int check_chains(const struct weft_tree *tree, size_t t, struct weft_error *err)
{
    const struct weft_tree_tier *tier = &tree->tiers[t];
    const struct weft_tree_tier *above = t + 1 < tree->tier_count ? &tree->tiers[t + 1] : NULL;
    for (size_t n = 0; n < tree->node_count; n++) {
        const size_t g = tier->node_group[n];
        if (g == WEFT_TREE_NONE) {
            continue;
        }
        if (g >= tier->group_count) {
            return bad(err, tier->name, "group out of range", tree->nodes[n]);
        }
        const size_t parent = above != NULL ? above->node_group[n] : WEFT_TREE_NONE;
        if (tier->groups[g].parent != parent) {
            return bad(err, tier->name, "a node is not under its group's parent", tree->nodes[n]);
        }
    }
    return 0;
}

/* Across a gap the parent chain says nothing: two nodes of one group must agree in every tier
 * above it. first is the group's first node, by group. */
static int check_above(const struct weft_tree *tree, size_t t, size_t *first,
                       struct weft_error *err)
{
    const struct weft_tree_tier *tier = &tree->tiers[t];
    for (size_t g = 0; g < tier->group_count; g++) {
        first[g] = WEFT_TREE_NONE;
    }
    for (size_t n = 0; n < tree->node_count; n++) {
        const size_t g = tier->node_group[n];
        if (g == WEFT_TREE_NONE) {
            continue;
        }
        if (first[g] == WEFT_TREE_NONE) {
            first[g] = n;
        }
        for (size_t up = t + 1; up < tree->tier_count; up++) {
            const size_t *above = tree->tiers[up].node_group;
            if (above[n] != above[first[g]]) {
                return bad(err, tier->name, "nodes of one group part higher up", tree->nodes[n]);
            }
        }
    }
    for (size_t g = 0; g < tier->group_count; g++) {
        if (first[g] == WEFT_TREE_NONE) {
            return bad(err, tier->name, "empty group", tier->groups[g].name);
        }
    }
    return 0;
}

int weft_tree_check(const struct weft_tree *tree, struct weft_error *err)
{
    int rc = check_nodes(tree, err);
    for (size_t t = 0; t < tree->tier_count && rc == 0; t++) {
        const struct weft_tree_tier *tier = &tree->tiers[t];
        const bool top = t + 1 == tree->tier_count;
        if (tier->name == NULL || (tier->node_group == NULL && tree->node_count > 0)) {
            return bad(err, "?", "a tier lacks a name or its nodes", "");
        }
        rc = check_groups(tier, top ? 0 : tree->tiers[t + 1].group_count, err);
        rc = rc < 0 ? rc : check_chains(tree, t, err);
        if (rc < 0) {
            break;
        }
        weft_autofree size_t *first = weft_calloc(tier->group_count, sizeof(*first));
        rc = first == NULL ? weft_err_nomem(err) : check_above(tree, t, first, err);
    }
    return rc;
}
