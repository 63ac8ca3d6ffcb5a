/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, homes and parents of a set of HyperNodes, by index; must not know about servers, brakes or
 * why anything changes its place. */
#include "controller/forest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/map.h"
#include "pkg/hypernode/hypernode.h"

/* one cluster's Nodes: ten times what Kubernetes is tested with */
enum { NODES_MAX = 200000 };

struct item {
    const struct weft_hypernode *object;
    size_t parent;
};

struct node {
    const char *name;
    size_t home;
};

struct weft_forest {
    struct item *items;
    size_t item_count;
    size_t item_cap;
    struct node *nodes;
    size_t node_count;
    size_t node_cap;
    struct weft_map *by_name;
    struct weft_map *by_node;
};

void weft_forest_free(struct weft_forest *forest)
{
    if (forest == NULL) {
        return;
    }
    weft_free(forest->items);
    weft_free(forest->nodes);
    weft_map_free(forest->by_name);
    weft_map_free(forest->by_node);
    weft_free(forest);
}

int weft_forest_add(struct weft_forest *forest, const struct weft_hypernode *object,
                    size_t *ret_item)
{
    if (weft_map_get(forest->by_name, object->name, ret_item)) {
        return 0;
    }
    int rc = weft_array_reserve((void **)&forest->items, &forest->item_cap, forest->item_count + 1,
                                sizeof(*forest->items), WEFT_HYPERNODES_MAX);
    if (rc < 0) {
        return rc;
    }
    rc = weft_map_put(forest->by_name, object->name, forest->item_count);
    if (rc < 0) {
        return rc;
    }
    forest->items[forest->item_count] = (struct item){.object = object, .parent = WEFT_FOREST_NONE};
    *ret_item = forest->item_count++;
    return 0;
}

/* The node's place in the list, new ones without a home. The map says when there are too many: one
 * that is there is found also then. */
static int find_or_add_node(struct weft_forest *forest, const char *name, size_t *ret_at)
{
    const int rc =
        weft_array_reserve((void **)&forest->nodes, &forest->node_cap, forest->node_count + 1,
                           sizeof(*forest->nodes), NODES_MAX + 1);
    const int added = rc < 0 ? rc : weft_map_add(forest->by_node, name, forest->node_count, ret_at);
    if (added == 0) {
        forest->nodes[forest->node_count++] = (struct node){.name = name, .home = WEFT_FOREST_NONE};
    }
    return added < 0 ? added : 0;
}

int weft_forest_put(struct weft_forest *forest, const char *node, size_t item)
{
    size_t at = 0;
    const int rc = find_or_add_node(forest, node, &at);
    if (rc == 0) {
        forest->nodes[at].home = item;
    }
    return rc;
}

int weft_forest_hang(struct weft_forest *forest, size_t item, size_t parent)
{
    if (parent != WEFT_FOREST_NONE &&
        forest->items[parent].object->tier <= forest->items[item].object->tier) {
        return -EINVAL;
    }
    forest->items[item].parent = parent;
    return 0;
}

/* Takes up what one object lists: homes of Nodes, parents of children that are there. */
static int read_members(struct weft_forest *forest, size_t item)
{
    const struct weft_hypernode *object = forest->items[item].object;
    for (size_t i = 0; i < object->member_count; i++) {
        const struct weft_member *m = &object->members[i];
        if (m->selector != WEFT_SELECTOR_EXACT) {
            continue;
        }
        if (m->type == WEFT_MEMBER_NODE) {
            size_t at = 0;
            const int rc = find_or_add_node(forest, m->name, &at);
            if (rc < 0) {
                return rc;
            }
            struct node *node = &forest->nodes[at];
            node->home = node->home == WEFT_FOREST_NONE ? item : node->home;
            continue;
        }
        const size_t child = weft_forest_find(forest, m->name);
        if (child != WEFT_FOREST_NONE && forest->items[child].parent == WEFT_FOREST_NONE) {
            (void)!weft_forest_hang(forest, child, item); /* a wrong tier stays without parent */
        }
    }
    return 0;
}

static int read_set(struct weft_forest *forest, const struct weft_hypernode_set *set,
                    const char *instance)
{
    for (size_t i = 0; i < set->count; i++) {
        size_t item = 0;
        if (instance != NULL && !weft_hypernode_is_ours(&set->items[i], instance)) {
            continue;
        }
        int rc = weft_forest_add(forest, &set->items[i], &item);
        if (rc < 0) {
            return rc;
        }
    }
    for (size_t i = 0; i < forest->item_count; i++) {
        int rc = read_members(forest, i);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

int weft_forest_new(const struct weft_hypernode_set *set, const char *instance,
                    struct weft_forest **ret_forest, struct weft_error *err)
{
    weft_auto(weft_forest_free) struct weft_forest *forest = weft_calloc(1, sizeof(*forest));
    if (forest == NULL) {
        return weft_err_nomem(err);
    }
    forest->by_name = weft_map_new(WEFT_HYPERNODES_MAX);
    forest->by_node = weft_map_new(NODES_MAX);
    if (forest->by_name == NULL || forest->by_node == NULL) {
        return weft_err_nomem(err);
    }
    const int rc = read_set(forest, set, instance);
    if (rc < 0) {
        return weft_err_errno(err, -rc, "HyperNodes");
    }
    *ret_forest = weft_steal(&forest);
    return 0;
}

size_t weft_forest_node_count(const struct weft_forest *forest)
{
    return forest->node_count;
}

const char *weft_forest_node_name(const struct weft_forest *forest, size_t node)
{
    return forest->nodes[node].name;
}

size_t weft_forest_home(const struct weft_forest *forest, const char *node)
{
    size_t at = 0;
    return weft_map_get(forest->by_node, node, &at) ? forest->nodes[at].home : WEFT_FOREST_NONE;
}

size_t weft_forest_find(const struct weft_forest *forest, const char *name)
{
    size_t item = 0;
    return weft_map_get(forest->by_name, name, &item) ? item : WEFT_FOREST_NONE;
}

size_t weft_forest_parent(const struct weft_forest *forest, size_t item)
{
    return forest->items[item].parent;
}

const struct weft_hypernode *weft_forest_object(const struct weft_forest *forest, size_t item)
{
    return forest->items[item].object;
}

size_t weft_forest_chain(const struct weft_forest *forest, const char *node,
                         size_t chain[WEFT_FOREST_TIERS_MAX])
{
    size_t count = 0;
    size_t item = weft_forest_home(forest, node);
    while (item != WEFT_FOREST_NONE && count < WEFT_FOREST_TIERS_MAX) {
        chain[count++] = item;
        item = forest->items[item].parent;
    }
    return count;
}

bool weft_forest_same_place(const struct weft_forest *a, const struct weft_forest *b,
                            const char *node)
{
    size_t x[WEFT_FOREST_TIERS_MAX];
    size_t y[WEFT_FOREST_TIERS_MAX];
    const size_t count = weft_forest_chain(a, node, x);
    if (weft_forest_chain(b, node, y) != count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(a->items[x[i]].object->name, b->items[y[i]].object->name) != 0) {
            return false;
        }
    }
    return true;
}

/* ---- back to a set ---- */

/* loads[i] = members of item i among what has Nodes below it; an item without any stays out. */
static void count_members(const struct weft_forest *forest, size_t *loads)
{
    for (size_t i = 0; i < forest->node_count; i++) {
        size_t item = forest->nodes[i].home;
        /* an item that gets its first member becomes a member of its parent */
        while (item != WEFT_FOREST_NONE && loads[item]++ == 0) {
            item = forest->items[item].parent;
        }
    }
}

static int compare_members(const void *a, const void *b)
{
    const struct weft_member *x = a;
    const struct weft_member *y = b;
    if (x->type != y->type) {
        return x->type < y->type ? -1 : 1;
    }
    return strcmp(x->name, y->name);
}

/* The item's object with room for its members and none of them. */
static int copy_bare(const struct weft_hypernode *object, size_t members,
                     struct weft_hypernode *ret_copy)
{
    struct weft_hypernode bare = *object;
    bare.members = NULL;
    bare.member_count = 0;
    weft_auto(weft_hypernode_done) struct weft_hypernode copy = {0};
    int rc = weft_hypernode_copy(&bare, &copy);
    if (rc < 0) {
        return rc;
    }
    weft_free(copy.members);
    copy.members = weft_calloc(members, sizeof(*copy.members));
    if (copy.members == NULL) {
        return -ENOMEM;
    }
    *ret_copy = copy;
    copy = (struct weft_hypernode){0};
    return 0;
}

static int append_member(struct weft_hypernode *to, enum weft_member_type type, const char *name)
{
    char *copy = weft_strdup(name);
    if (copy == NULL) {
        return -ENOMEM;
    }
    to->members[to->member_count++] =
        (struct weft_member){.type = type, .selector = WEFT_SELECTOR_EXACT, .name = copy};
    return 0;
}

static int fill(const struct weft_forest *forest, const size_t *loads,
                struct weft_hypernode *copies)
{
    for (size_t i = 0; i < forest->item_count; i++) {
        int rc = loads[i] == 0 ? 0 : copy_bare(forest->items[i].object, loads[i], &copies[i]);
        if (rc < 0) {
            return rc;
        }
    }
    for (size_t i = 0; i < forest->node_count; i++) {
        const struct node *n = &forest->nodes[i];
        int rc = n->home == WEFT_FOREST_NONE
                     ? 0
                     : append_member(&copies[n->home], WEFT_MEMBER_NODE, n->name);
        if (rc < 0) {
            return rc;
        }
    }
    for (size_t i = 0; i < forest->item_count; i++) {
        const size_t parent = forest->items[i].parent;
        int rc = loads[i] == 0 || parent == WEFT_FOREST_NONE
                     ? 0
                     : append_member(&copies[parent], WEFT_MEMBER_HYPERNODE, copies[i].name);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int put_all(struct weft_hypernode *copies, size_t count, struct weft_hypernode_set *set)
{
    for (size_t i = 0; i < count; i++) {
        if (copies[i].name == NULL) {
            continue;
        }
        qsort(copies[i].members, copies[i].member_count, sizeof(*copies[i].members),
              compare_members);
        int rc = weft_hypernode_set_put(set, &copies[i]);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

int weft_forest_to_set(const struct weft_forest *forest, struct weft_hypernode_set *ret_set,
                       struct weft_error *err)
{
    weft_autofree size_t *loads = weft_calloc(forest->item_count + 1, sizeof(*loads));
    weft_autofree struct weft_hypernode *copies =
        weft_calloc(forest->item_count + 1, sizeof(*copies));
    if (loads == NULL || copies == NULL) {
        return weft_err_nomem(err);
    }
    count_members(forest, loads);
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    int rc = fill(forest, loads, copies);
    if (rc == 0) {
        rc = put_all(copies, forest->item_count, &set);
    }
    for (size_t i = 0; i < forest->item_count; i++) {
        weft_hypernode_done(&copies[i]);
    }
    if (rc < 0) {
        return weft_err_errno(err, -rc, "HyperNodes");
    }
    *ret_set = set;
    set = (struct weft_hypernode_set){0};
    return 0;
}
