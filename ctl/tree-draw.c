/* SPDX-License-Identifier: Apache-2.0 */
/* The tree as people like to see it: farthest tier at the left, each group with its counts, the
 * nodes in short, and below it what is odd. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/tree-print.h"
#include "pkg/base/buf.h"
#include "pkg/fabric/hostlist.h"
#include "pkg/tree/tree.h"

enum { PIECES_MAX = 16 };

/* A group of any tier, in one numbering: tier by tier, closest first. */
struct item {
    size_t tier;
    size_t group;
    size_t parent; /* item, or SIZE_MAX: a root */
    size_t nodes;  /* all below it */
    size_t *own;   /* nodes that have no closer group; views into one array */
    size_t own_count;
    size_t child; /* first child and next sibling, in order; SIZE_MAX: none */
    size_t sibling;
};

struct drawing {
    const struct weft_tree *tree;
    struct weft_buf *buf;
    bool utf8;
    struct item *items;
    size_t count;
    size_t *first; /* tier: its first item */
    size_t *own;   /* nodes by item */
    size_t *place; /* node: its closest group's item */
    bool more[64]; /* by depth: a sibling follows */
};

static size_t item_at(const struct drawing *d, size_t tier, size_t group)
{
    return d->first[tier] + group;
}

/* The node's next group above tier t, over gaps; SIZE_MAX if there is none. */
static size_t above(const struct drawing *d, size_t node, size_t t)
{
    for (size_t up = t; up < d->tree->tier_count; up++) {
        const size_t g = d->tree->tiers[up].node_group[node];
        if (g != WEFT_TREE_NONE) {
            return item_at(d, up, g);
        }
    }
    return SIZE_MAX;
}

static int number_items(struct drawing *d)
{
    const struct weft_tree *tree = d->tree;
    d->first = weft_calloc(tree->tier_count + 1, sizeof(size_t));
    d->own = weft_calloc(tree->node_count, sizeof(size_t));
    d->place = weft_calloc(tree->node_count, sizeof(size_t));
    if (d->first == NULL || d->own == NULL || d->place == NULL) {
        return -ENOMEM;
    }
    for (size_t t = 0; t < tree->tier_count; t++) {
        d->first[t] = d->count;
        d->count += tree->tiers[t].group_count;
    }
    d->items = weft_calloc(d->count, sizeof(*d->items));
    if (d->items == NULL) {
        return -ENOMEM;
    }
    for (size_t t = 0; t < tree->tier_count; t++) {
        for (size_t g = 0; g < tree->tiers[t].group_count; g++) {
            d->items[item_at(d, t, g)] = (struct item){
                .tier = t, .group = g, .parent = SIZE_MAX, .child = SIZE_MAX, .sibling = SIZE_MAX};
        }
    }
    return 0;
}

static void place_nodes(struct drawing *d)
{
    const struct weft_tree *tree = d->tree;
    for (size_t n = 0; n < tree->node_count; n++) {
        d->place[n] = above(d, n, 0);
        for (size_t t = 0; t < tree->tier_count; t++) {
            const size_t g = tree->tiers[t].node_group[n];
            if (g != WEFT_TREE_NONE) {
                struct item *item = &d->items[item_at(d, t, g)];
                item->nodes++;
                item->parent = above(d, n, t + 1);
            }
        }
        if (d->place[n] != SIZE_MAX) {
            d->items[d->place[n]].own_count++;
        }
    }
    size_t *next = d->own;
    for (size_t i = 0; i < d->count; i++) {
        d->items[i].own = next;
        next += d->items[i].own_count;
        d->items[i].own_count = 0;
    }
    for (size_t n = 0; n < tree->node_count; n++) {
        if (d->place[n] != SIZE_MAX) {
            struct item *item = &d->items[d->place[n]];
            item->own[item->own_count++] = n;
        }
    }
}

/* From the last to the first, so that each is put before its later siblings. */
static void link_children(struct drawing *d)
{
    for (size_t i = d->count; i-- > 0;) {
        struct item *item = &d->items[i];
        if (item->parent != SIZE_MAX) {
            item->sibling = d->items[item->parent].child;
            d->items[item->parent].child = i;
        }
    }
}

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

/* The lines at the left of a line at that depth; branch: the line names a group there. */
static void put_stem(struct drawing *d, size_t depth, bool branch)
{
    for (size_t i = 1; i <= depth; i++) {
        const bool last = i == depth && branch;
        if (last) {
            (void)weft_buf_puts(d->buf, d->utf8 ? (d->more[i] ? "├── " : "└── ")
                                                : (d->more[i] ? "|-- " : "`-- "));
        } else {
            (void)weft_buf_puts(d->buf, d->more[i] ? (d->utf8 ? "│   " : "|   ") : "    ");
        }
    }
}

static int put_nodes(struct drawing *d, const struct item *item, size_t depth)
{
    if (item->own_count == 0) {
        return 0;
    }
    weft_autofree const char **names = weft_calloc(item->own_count, sizeof(char *));
    if (names == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < item->own_count; i++) {
        names[i] = d->tree->nodes[item->own[i]];
    }
    put_stem(d, depth, false);
    (void)weft_buf_puts(d->buf, item->child != SIZE_MAX ? (d->utf8 ? "│   " : "|   ") : "    ");
    if (weft_hostlist_format(names, item->own_count, ", ", PIECES_MAX, d->buf) == -ENOMEM) {
        return -ENOMEM;
    }
    return weft_buf_putc(d->buf, '\n');
}

static void put_group(struct drawing *d, const struct item *item, size_t depth)
{
    const struct weft_tree_tier *tier = &d->tree->tiers[item->tier];
    const struct weft_tree_group *group = &tier->groups[item->group];
    put_stem(d, depth, depth > 0);
    (void)weft_buf_printf(d->buf, "%s  [%s, %zu node%s", group->name, tier->name, item->nodes,
                          plural(item->nodes));
    if (group->switch_count > 0) {
        (void)weft_buf_printf(d->buf, ", %zu switch%s", group->switch_count,
                              group->switch_count == 1 ? "" : "es");
    }
    (void)weft_buf_puts(d->buf, "]\n");
}

/* Depth first without recursion: a chain is as deep as there are tiers. */
static int put_root(struct drawing *d, size_t root)
{
    size_t depth = 0;
    size_t i = root;
    for (;;) {
        const struct item *item = &d->items[i];
        d->more[depth] = depth > 0 && item->sibling != SIZE_MAX;
        put_group(d, item, depth);
        if (put_nodes(d, item, depth) == -ENOMEM) {
            return -ENOMEM;
        }
        if (item->child != SIZE_MAX && depth + 1 < sizeof(d->more)) {
            i = item->child;
            depth++;
            continue;
        }
        while (depth > 0 && d->items[i].sibling == SIZE_MAX) {
            i = d->items[i].parent;
            depth--;
        }
        if (depth == 0) {
            return 0;
        }
        i = d->items[i].sibling;
    }
}

static void put_counts(struct drawing *d)
{
    const struct weft_tree *tree = d->tree;
    (void)weft_buf_printf(d->buf, "%zu node%s in %zu tier%s:", tree->node_count,
                          plural(tree->node_count), tree->tier_count, plural(tree->tier_count));
    for (size_t t = 0; t < tree->tier_count; t++) {
        (void)weft_buf_printf(d->buf, "%s %zu %s (%zu group%s)", t > 0 ? "," : "", t + 1,
                              tree->tiers[t].name, tree->tiers[t].group_count,
                              plural(tree->tiers[t].group_count));
    }
    (void)weft_buf_puts(d->buf, tree->tier_count > 1 ? "; tier 1 is the closest\n\n" : "\n\n");
}

static int put_unplaced(struct drawing *d)
{
    const struct weft_tree *tree = d->tree;
    if (tree->unplaced_count == 0) {
        return 0;
    }
    (void)weft_buf_printf(d->buf, "\nin no group (%zu): ", tree->unplaced_count);
    if (weft_hostlist_format((const char *const *)tree->unplaced, tree->unplaced_count, ", ",
                             PIECES_MAX, d->buf) == -ENOMEM) {
        return -ENOMEM;
    }
    return weft_buf_putc(d->buf, '\n');
}

static void put_findings(struct drawing *d)
{
    const struct weft_tree *tree = d->tree;
    if (tree->finding_count == 0) {
        (void)weft_buf_puts(d->buf, "\nnothing odd found\n");
        return;
    }
    (void)weft_buf_printf(d->buf, "\n%zu finding%s:\n", tree->finding_count,
                          plural(tree->finding_count));
    for (size_t i = 0; i < tree->finding_count; i++) {
        const struct weft_finding *f = &tree->findings[i];
        (void)weft_buf_printf(d->buf, "  %s  %s: %s\n", f->kind, f->subject, f->detail);
    }
}

static int draw(struct drawing *d)
{
    if (number_items(d) < 0) {
        return -ENOMEM;
    }
    place_nodes(d);
    link_children(d);
    put_counts(d);
    for (size_t t = d->tree->tier_count; t-- > 0;) {
        for (size_t g = 0; g < d->tree->tiers[t].group_count; g++) {
            const size_t i = item_at(d, t, g);
            if (d->items[i].parent == SIZE_MAX && put_root(d, i) == -ENOMEM) {
                return -ENOMEM;
            }
        }
    }
    if (put_unplaced(d) == -ENOMEM) {
        return -ENOMEM;
    }
    put_findings(d);
    return d->buf->status;
}

int weft_ctl_tree_draw(const struct weft_tree *tree, bool utf8, struct weft_buf *buf)
{
    struct drawing d = {.tree = tree, .buf = buf, .utf8 = utf8};
    const int rc = draw(&d);
    weft_free(d.first);
    weft_free(d.own);
    weft_free(d.place);
    weft_free(d.items);
    return rc;
}
