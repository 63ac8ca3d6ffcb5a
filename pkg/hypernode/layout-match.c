/* SPDX-License-Identifier: Apache-2.0 */
/* Which group is which existing object of ours: by the identity written on it; for switch groups by
 * more than half of the switches shared; by members only where nothing is written. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/map.h"
#include "pkg/base/str.h"
#include "pkg/hypernode/layout-internal.h"

/* A group and an object that might be it. */
struct pair {
    size_t shared;
    size_t group;
    size_t object;
    const char *identity; /* the group's, for the order */
};

struct matcher {
    const struct weft_lwork *w;
    const struct weft_hypernode_set *existing;
    size_t *names;   /* [group]: object + 1 */
    bool *used;      /* [object] */
    size_t *tier;    /* [object]: plan index, or WEFT_TREE_NONE for not ours */
    size_t *shared;  /* [group]: scratch */
    size_t *touched; /* scratch: groups with shared > 0 */
    size_t touched_count;
    struct pair *pairs;
    size_t pair_count;
    size_t pair_cap;
};

enum { PAIRS_MAX = 10000000, MATCH_DEPTH_MAX = 64 };

static void matcher_done(struct matcher *m)
{
    weft_free(m->used);
    weft_free(m->tier);
    weft_free(m->shared);
    weft_free(m->touched);
    weft_free(m->pairs);
}
WEFT_DEFINE_AUTO_VALUE(struct matcher, matcher_done)

/* By tier name, which stays when a plan is renumbered; by number where the CRD dropped the name. */
static size_t tier_of(const struct matcher *m, const struct weft_hypernode *hn)
{
    if (!weft_hypernode_is_ours(hn, m->w->options->instance)) {
        return WEFT_TREE_NONE;
    }
    for (size_t t = 0; t < m->w->tiers; t++) {
        const char *name = weft_hypernode_text(hn->tier_name);
        if (name[0] == '\0' ? hn->tier == (int64_t)t + 1
                            : strcmp(name, m->w->options->tiers[t]) == 0) {
            return t;
        }
    }
    return WEFT_TREE_NONE;
}

static void take(struct matcher *m, size_t group, size_t object)
{
    m->names[group] = object + 1;
    m->used[object] = true;
}

static int match_exact(struct matcher *m)
{
    weft_auto(weft_map_free) struct weft_map *map = weft_map_new(WEFT_HYPERNODES_MAX);
    if (map == NULL) {
        return -ENOMEM;
    }
    for (size_t i = m->existing->count; i-- > 0;) { /* so that the smallest name wins */
        const char *identity = weft_hypernode_text(m->existing->items[i].identity);
        if (m->tier[i] == WEFT_TREE_NONE || identity[0] == '\0') {
            continue;
        }
        weft_autofree char *key = weft_asprintf("%zu/%s", m->tier[i], identity);
        if (key == NULL || weft_map_put(map, key, i) < 0) {
            return -ENOMEM;
        }
    }
    for (size_t g = 0; g < m->w->group_count; g++) {
        const struct weft_lgroup *group = &m->w->groups[g];
        weft_autofree char *key = weft_asprintf("%zu/%s", group->tier, group->annotation);
        if (key == NULL) {
            return -ENOMEM;
        }
        size_t object;
        if (weft_map_get(map, key, &object)) {
            take(m, g, object);
        }
    }
    return 0;
}

/* ---- pairs ---- */

static void share(struct matcher *m, size_t group)
{
    if (m->shared[group]++ == 0) {
        m->touched[m->touched_count++] = group;
    }
}

/* Turns the scratch counts into pairs with the object; size[group] and object_size are the sizes of
 * the two sides. */
static int collect_pairs(struct matcher *m, size_t object, size_t object_size, const size_t *size)
{
    int rc = 0;
    for (size_t i = 0; i < m->touched_count && rc == 0; i++) {
        const size_t group = m->touched[i];
        const size_t shared = m->shared[group];
        m->shared[group] = 0;
        const size_t smaller = size[group] < object_size ? size[group] : object_size;
        if (shared * 2 <= smaller) {
            continue;
        }
        void *list = m->pairs;
        rc = weft_array_reserve(&list, &m->pair_cap, m->pair_count + 1, sizeof(m->pairs[0]),
                                PAIRS_MAX);
        m->pairs = list;
        if (rc == 0) {
            m->pairs[m->pair_count++] = (struct pair){.shared = shared,
                                                      .group = group,
                                                      .object = object,
                                                      .identity = m->w->groups[group].identity};
        }
    }
    m->touched_count = 0;
    return rc;
}

static int cmp_pair(const void *a, const void *b)
{
    const struct pair *x = a;
    const struct pair *y = b;
    if (x->shared != y->shared) {
        return x->shared > y->shared ? -1 : 1;
    }
    const int order = strcmp(x->identity, y->identity);
    return order != 0 ? order : (x->object > y->object) - (x->object < y->object);
}

/* Most in common first, one to one. */
static void take_pairs(struct matcher *m)
{
    if (m->pair_count > 1) {
        qsort(m->pairs, m->pair_count, sizeof(m->pairs[0]), cmp_pair);
    }
    for (size_t i = 0; i < m->pair_count; i++) {
        const struct pair *p = &m->pairs[i];
        if (m->names[p->group] == 0 && !m->used[p->object]) {
            take(m, p->group, p->object);
        }
    }
    m->pair_count = 0;
}

/* ---- by switches ---- */

struct guid_group {
    uint64_t guid;
    size_t group;
};

static int cmp_guid(const void *a, const void *b)
{
    const struct guid_group *x = a;
    const struct guid_group *y = b;
    if (x->guid != y->guid) {
        return x->guid < y->guid ? -1 : 1;
    }
    return (x->group > y->group) - (x->group < y->group);
}

bool weft_layout_split_guids(const char *identity, struct weft_str *ret_class,
                             struct weft_str *ret_guids)
{
    const char *at = strstr(identity, "switch:");
    if (at == NULL || (at != identity && strncmp(identity, "copy-of-", strlen("copy-of-")) != 0)) {
        return false;
    }
    at += strlen("switch:");
    *ret_class = (struct weft_str){identity, (size_t)(at - identity)};
    *ret_guids = weft_str(at);
    return true;
}

static size_t guid_count(const struct weft_lgroup *g)
{
    const size_t count = g->from != NULL ? g->from->switch_guid_count : 0;
    return count > WEFT_LAYOUT_GUIDS_MAX ? WEFT_LAYOUT_GUIDS_MAX : count;
}

/* All (GUID, unmatched group), sorted. */
static int list_guids(const struct matcher *m, struct guid_group **ret_list, size_t *ret_count)
{
    size_t count = 0;
    for (size_t g = 0; g < m->w->group_count; g++) {
        count += m->names[g] == 0 ? guid_count(&m->w->groups[g]) : 0;
    }
    struct guid_group *list = weft_calloc(count, sizeof(*list));
    if (list == NULL) {
        return -ENOMEM;
    }
    size_t n = 0;
    for (size_t g = 0; g < m->w->group_count; g++) {
        const struct weft_lgroup *group = &m->w->groups[g];
        for (size_t i = 0; m->names[g] == 0 && i < guid_count(group); i++) {
            list[n++] = (struct guid_group){group->from->switch_guids[i], g};
        }
    }
    if (n > 1) {
        qsort(list, n, sizeof(*list), cmp_guid);
    }
    *ret_list = list;
    *ret_count = n;
    return 0;
}

/* Counts the object's GUID for every group of its tier and class that has it. */
static void share_guid(struct matcher *m, size_t object, struct weft_str class, uint64_t guid,
                       const struct guid_group *list, size_t count)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        low = list[mid].guid < guid ? mid + 1 : low;
        high = list[mid].guid < guid ? high : mid;
    }
    for (; low < count && list[low].guid == guid; low++) {
        const struct weft_lgroup *g = &m->w->groups[list[low].group];
        if (g->tier == m->tier[object] && strncmp(g->annotation, class.data, class.len) == 0) {
            share(m, list[low].group);
        }
    }
}

static int match_guids(struct matcher *m)
{
    weft_autofree struct guid_group *list = NULL;
    weft_autofree size_t *size = weft_calloc(m->w->group_count, sizeof(*size));
    size_t count = 0;
    if (size == NULL || list_guids(m, &list, &count) < 0) {
        return -ENOMEM;
    }
    for (size_t g = 0; g < m->w->group_count; g++) {
        size[g] = guid_count(&m->w->groups[g]);
    }
    int rc = 0;
    for (size_t i = 0; i < m->existing->count && count > 0 && rc == 0; i++) {
        struct weft_str class;
        struct weft_str guids;
        if (m->tier[i] == WEFT_TREE_NONE || m->used[i] ||
            !weft_layout_split_guids(weft_hypernode_text(m->existing->items[i].identity), &class,
                                     &guids)) {
            continue;
        }
        size_t object_size = 0;
        struct weft_str piece;
        uint64_t guid;
        while (weft_str_split(&guids, ',', &piece)) {
            if (weft_parse_hex64(piece, &guid) == 0) {
                share_guid(m, i, class, guid, list, count);
                object_size++;
            }
        }
        rc = collect_pairs(m, i, object_size, size);
    }
    take_pairs(m);
    return rc;
}

/* ---- by members ---- */

static bool find_node(const struct weft_lwork *w, const char *name, size_t *ret_node)
{
    size_t low = 0;
    size_t high = w->node_count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const int order = strcmp(w->nodes[mid].name, name);
        if (order == 0) {
            *ret_node = mid;
            return true;
        }
        low = order < 0 ? mid + 1 : low;
        high = order < 0 ? high : mid;
    }
    return false;
}

/* Counts the nodes below hn for the groups of tier; returns how many there are. Tiers fall from
 * step to step, so the recursion ends even on a cycle. */
static size_t share_members(struct matcher *m, const struct weft_hypernode *hn, size_t tier,
                            unsigned depth)
{
    size_t count = 0;
    for (size_t i = 0; i < hn->member_count && depth < MATCH_DEPTH_MAX; i++) {
        const struct weft_member *member = &hn->members[i];
        if (member->selector != WEFT_SELECTOR_EXACT) {
            continue;
        }
        if (member->type == WEFT_MEMBER_HYPERNODE) {
            const struct weft_hypernode *kid = weft_hypernode_set_get(m->existing, member->name);
            count +=
                kid != NULL && kid->tier < hn->tier ? share_members(m, kid, tier, depth + 1) : 0;
            continue;
        }
        size_t node;
        count++;
        if (find_node(m->w, member->name, &node)) {
            const size_t group = m->w->chain[node * m->w->tiers + tier];
            if (m->names[group] == 0) {
                share(m, group);
            }
        }
    }
    return count;
}

static int match_members(struct matcher *m)
{
    weft_autofree size_t *size = weft_calloc(m->w->group_count, sizeof(*size));
    if (size == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < m->w->node_count * m->w->tiers; i++) {
        size[m->w->chain[i]]++;
    }
    int rc = 0;
    for (size_t i = 0; i < m->existing->count && rc == 0; i++) {
        const struct weft_hypernode *hn = &m->existing->items[i];
        if (m->tier[i] == WEFT_TREE_NONE || m->used[i] ||
            weft_hypernode_text(hn->identity)[0] != '\0') {
            continue;
        }
        const size_t object_size = share_members(m, hn, m->tier[i], 0);
        rc = collect_pairs(m, i, object_size, size);
    }
    take_pairs(m);
    return rc;
}

int weft_lwork_match(const struct weft_lwork *w, size_t *names)
{
    if (w->options->existing == NULL || w->group_count == 0) {
        return 0;
    }
    const size_t count = w->options->existing->count;
    weft_auto(matcher_done) struct matcher m = {
        .w = w,
        .existing = w->options->existing,
        .names = names,
        .used = weft_calloc(count, sizeof(bool)),
        .tier = weft_calloc(count, sizeof(size_t)),
        .shared = weft_calloc(w->group_count, sizeof(size_t)),
        .touched = weft_calloc(w->group_count, sizeof(size_t)),
    };
    if (m.used == NULL || m.tier == NULL || m.shared == NULL || m.touched == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        m.tier[i] = tier_of(&m, &m.existing->items[i]);
    }
    int rc = match_exact(&m);
    rc = rc == 0 ? match_guids(&m) : rc;
    return rc == 0 ? match_members(&m) : rc;
}
