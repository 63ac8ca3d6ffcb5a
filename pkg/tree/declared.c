/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of declared groups. A group is its path: the value and all values above it, so that
 * equal values under different parents are different groups, and two nodes of one group agree in
 * every tier above it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/base/map.h"
#include "pkg/fabric/labels.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree-internal.h"
#include "pkg/tree/tree.h"

/* 16 levels of a key (317) and a value (63), escaped at worst */
enum { PATH_MAX_LEN = 32768, EXAMPLES = 8 };

static const char *value_of(const struct weft_declared *declared, size_t node, size_t level)
{
    return declared->values[node * declared->levels.count + level];
}

static void put_escaped(struct weft_buf *buf, const char *value)
{
    for (const char *p = value; *p != '\0';) {
        const size_t plain = strcspn(p, "/=%");
        (void)weft_buf_append(buf, p, plain);
        p += plain;
        if (*p != '\0') {
            (void)weft_buf_printf(buf, "%%%02x", (unsigned)*p++);
        }
    }
}

/* "core=a/spine=b/leaf=c": farthest first, levels that the node lacks left out. Tier names rather
 * than keys, so that a key may be renamed without every group becoming another. "/" and "=" cannot
 * be in a label's value; other sources' values get them escaped. */
static int make_path(const struct weft_declared *declared, size_t node, size_t level,
                     struct weft_buf *buf)
{
    weft_buf_reset(buf);
    for (size_t l = declared->levels.count; l-- > level;) {
        const char *value = value_of(declared, node, l);
        if (value == NULL) {
            continue;
        }
        (void)weft_buf_puts(buf, buf->len > 0 ? "/" : "");
        (void)weft_buf_puts(buf, declared->levels.items[l].tier);
        (void)weft_buf_putc(buf, '=');
        put_escaped(buf, value);
    }
    return buf->status;
}

/* Do two nodes have the same path from that level up? */
static bool same_path(const struct weft_declared *declared, size_t a, size_t b, size_t level)
{
    for (size_t l = level; l < declared->levels.count; l++) {
        const char *x = value_of(declared, a, l);
        const char *y = value_of(declared, b, l);
        if (x != y && (x == NULL || y == NULL || strcmp(x, y) != 0)) {
            return false;
        }
    }
    return true;
}

static bool has_any(const struct weft_declared *declared, size_t node)
{
    for (size_t l = 0; l < declared->levels.count; l++) {
        if (value_of(declared, node, l) != NULL) {
            return true;
        }
    }
    return false;
}

static int add_group(struct weft_tree_tier *tier, size_t *cap, const char *name, const char *path)
{
    void *list = tier->groups;
    const int rc = weft_array_reserve(&list, cap, tier->group_count + 1, sizeof(*tier->groups),
                                      SIZE_MAX / 1024);
    tier->groups = list;
    if (rc < 0) {
        return rc;
    }
    struct weft_tree_group group = {
        .name = weft_strdup(name), .identity = weft_strdup(path), .parent = WEFT_TREE_NONE};
    if (group.name == NULL || group.identity == NULL) {
        weft_free(group.name);
        weft_free(group.identity);
        return -ENOMEM;
    }
    tier->groups[tier->group_count++] = group;
    return 0;
}

static int fill_tier(const struct weft_declared *declared, const size_t *placed, size_t level,
                     struct weft_tree *tree)
{
    struct weft_tree_tier *tier = &tree->tiers[level];
    weft_auto(weft_map_free) struct weft_map *seen = weft_map_new(SIZE_MAX / 2);
    weft_auto(weft_buf_done) struct weft_buf path;
    weft_buf_init(&path, PATH_MAX_LEN);
    size_t cap = 0;
    tier->name = weft_strdup(declared->levels.items[level].tier);
    tier->node_group = weft_calloc(tree->node_count, sizeof(size_t));
    if (seen == NULL || tier->name == NULL || tier->node_group == NULL) {
        return -ENOMEM;
    }
    for (size_t n = 0; n < tree->node_count; n++) {
        const char *value = value_of(declared, placed[n], level);
        size_t group = WEFT_TREE_NONE;
        tier->node_group[n] = WEFT_TREE_NONE;
        if (value == NULL) {
            continue;
        }
        if (n > 0 && same_path(declared, placed[n - 1], placed[n], level)) {
            tier->node_group[n] = tier->node_group[n - 1]; /* neighbours by name, most often */
            continue;
        }
        int rc = make_path(declared, placed[n], level, &path);
        if (rc == 0 && !weft_map_get(seen, weft_buf_text(&path), &group)) {
            group = tier->group_count;
            rc = add_group(tier, &cap, value, weft_buf_text(&path));
            rc = rc == 0 ? weft_map_put(seen, weft_buf_text(&path), group) : rc;
        }
        if (rc < 0) {
            return rc;
        }
        tier->node_group[n] = group;
    }
    return weft_tree_sort_groups(tier, tree->node_count);
}

/* A level that some placed nodes lack: their groups of that tier must be padded. */
static int find_gaps(const struct weft_tree *tree, const struct weft_declared *declared,
                     struct weft_findings *findings)
{
    int rc = 0;
    for (size_t t = 0; rc == 0 && t < tree->tier_count; t++) {
        weft_auto(weft_buf_done) struct weft_buf list;
        weft_buf_init(&list, PATH_MAX_LEN);
        size_t count = 0;
        for (size_t n = 0; n < tree->node_count; n++) {
            if (tree->tiers[t].node_group[n] == WEFT_TREE_NONE && count++ < EXAMPLES) {
                (void)weft_buf_printf(&list, "%s%s", count > 1 ? ", " : "", tree->nodes[n]);
            }
        }
        if (count > 0) {
            rc = weft_findings_add(findings, "missing-level", declared->levels.items[t].tier,
                                   "%zu of %zu nodes lack %s %s: %s%s", count, tree->node_count,
                                   declared->source != NULL ? "a group of level" : "label",
                                   declared->levels.items[t].key, weft_buf_text(&list),
                                   count > EXAMPLES ? " and others" : "");
        }
    }
    return rc;
}

/* The same value at different places: what a merge by value alone would have made one. */
static int find_equal_values(const struct weft_tree *tree, struct weft_findings *findings)
{
    int rc = 0;
    for (size_t t = 0; rc == 0 && t < tree->tier_count; t++) {
        const struct weft_tree_tier *tier = &tree->tiers[t];
        for (size_t g = 0; rc == 0 && g < tier->group_count;) {
            size_t end = g + 1; /* groups are sorted by name */
            while (end < tier->group_count &&
                   strcmp(tier->groups[end].name, tier->groups[g].name) == 0) {
                end++;
            }
            if (end - g > 1) {
                rc = weft_findings_add(findings, "equal-value", tier->groups[g].name,
                                       "%zu different groups of tier %s have this value, under "
                                       "different parents (%s, %s%s)",
                                       end - g, tier->name, tier->groups[g].identity,
                                       tier->groups[g + 1].identity, end - g > 2 ? ", …" : "");
            }
            g = end;
        }
    }
    return rc;
}

static int find_unplaced(const struct weft_tree *tree, const char *source,
                         struct weft_findings *findings)
{
    weft_auto(weft_buf_done) struct weft_buf list;
    weft_buf_init(&list, PATH_MAX_LEN);
    for (size_t n = 0; n < tree->unplaced_count && n < EXAMPLES; n++) {
        (void)weft_buf_printf(&list, "%s%s", n > 0 ? ", " : "", tree->unplaced[n]);
    }
    if (tree->unplaced_count == 0) {
        return 0;
    }
    return weft_findings_add(
        findings, "unplaced", source != NULL ? source : "labels", "%zu of %zu nodes %s: %s%s",
        tree->unplaced_count, tree->unplaced_count + tree->node_count,
        source != NULL ? "are not in it" : "have none of the level labels", weft_buf_text(&list),
        tree->unplaced_count > EXAMPLES ? " and others" : "");
}

/* What the text lacks, and lines of it that were of no use. */
static int find_incomplete(const struct weft_declared *declared, struct weft_findings *findings)
{
    int rc = 0;
    if (declared->partial) {
        rc = weft_findings_add(findings, "partial-dump", declared->source,
                               "it is incomplete; what is missing from it proves nothing");
    }
    if (rc == 0 && declared->warning_total > 0) {
        rc = weft_findings_add(findings, "dump-warnings", declared->source,
                               "%zu thing%s in it could not be used, first %s",
                               declared->warning_total, declared->warning_total > 1 ? "s" : "",
                               declared->warning_count > 0 ? declared->warnings[0] : "");
    }
    return rc;
}

/* Placed: has any level. placed[i] = index in declared of the i-th of them. */
static int split_nodes(const struct weft_declared *declared, struct weft_tree *tree, size_t *placed)
{
    tree->nodes = weft_calloc(declared->node_count, sizeof(char *));
    tree->unplaced = weft_calloc(declared->node_count, sizeof(char *));
    if (tree->nodes == NULL || tree->unplaced == NULL) {
        return -ENOMEM;
    }
    for (size_t n = 0; n < declared->node_count; n++) {
        char *name = weft_strdup(declared->nodes[n]);
        if (name == NULL) {
            return -ENOMEM;
        }
        if (has_any(declared, n)) {
            placed[tree->node_count] = n;
            tree->nodes[tree->node_count++] = name;
        } else {
            tree->unplaced[tree->unplaced_count++] = name;
        }
    }
    return 0;
}

int weft_tree_from_declared(const struct weft_declared *declared, struct weft_tree **ret_tree,
                            struct weft_error *err)
{
    weft_auto(weft_tree_free) struct weft_tree *tree = weft_calloc(1, sizeof(*tree));
    weft_autofree size_t *placed = weft_calloc(declared->node_count, sizeof(*placed));
    weft_auto(weft_findings_done) struct weft_findings findings = {0};
    if (tree == NULL || placed == NULL || split_nodes(declared, tree, placed) < 0) {
        return weft_err_nomem(err);
    }
    tree->tiers = weft_calloc(declared->levels.count, sizeof(*tree->tiers));
    if (tree->tiers == NULL) {
        return weft_err_nomem(err);
    }
    int rc = 0;
    for (size_t l = 0; rc == 0 && l < declared->levels.count; l++) {
        tree->tier_count = l + 1;
        rc = fill_tier(declared, placed, l, tree);
    }
    if (rc == -EFBIG) {
        return weft_err_set(err, rc, WEFT_ERR_CONFIG, "a node's label path is over %d bytes",
                            (int)PATH_MAX_LEN);
    }
    if (rc < 0) {
        return weft_err_nomem(err);
    }
    weft_tree_link_parents(tree);
    rc = find_gaps(tree, declared, &findings);
    rc = rc == 0 ? find_equal_values(tree, &findings) : rc;
    rc = rc == 0 ? find_unplaced(tree, declared->source, &findings) : rc;
    if (rc == 0 && declared->source != NULL) {
        rc = find_incomplete(declared, &findings);
    }
    if (rc < 0) {
        return weft_err_nomem(err);
    }
    weft_findings_give(&findings, tree);
    *ret_tree = weft_steal(&tree);
    return 0;
}
