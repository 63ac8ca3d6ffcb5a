/* SPDX-License-Identifier: Apache-2.0 */
/* The tree as JSON. Every name in it means one group: where a tier has a name twice, both are
 * printed as their identity. */
#include <errno.h>
#include <string.h>

#include "ctl/tree-print.h"
#include "pkg/base/buf.h"
#include "pkg/base/map.h"
#include "pkg/json/json.h"
#include "pkg/tree/tree.h"

/* The names of one tier's groups as they are printed, borrowed from the tree. */
static const char **printed_names(const struct weft_tree_tier *tier)
{
    weft_auto(weft_map_free) struct weft_map *seen = weft_map_new(SIZE_MAX / 2);
    const char **names = weft_calloc(tier->group_count, sizeof(char *));
    for (size_t g = 0; names != NULL && seen != NULL && g < tier->group_count; g++) {
        size_t times = 0;
        (void)weft_map_get(seen, tier->groups[g].name, &times);
        if (weft_map_put(seen, tier->groups[g].name, times + 1) < 0) {
            weft_free(names);
            return NULL;
        }
    }
    for (size_t g = 0; names != NULL && seen != NULL && g < tier->group_count; g++) {
        size_t times = 0;
        (void)weft_map_get(seen, tier->groups[g].name, &times);
        names[g] = times > 1 ? tier->groups[g].identity : tier->groups[g].name;
    }
    if (seen == NULL) {
        weft_free(names);
        return NULL;
    }
    return names;
}

static void put_strings(struct weft_json_writer *w, const char *key, char *const *items,
                        size_t count)
{
    weft_json_put_key(w, key);
    weft_json_open(w, '[');
    for (size_t i = 0; i < count; i++) {
        weft_json_put_string(w, items[i]);
    }
    weft_json_close(w, ']');
}

/* Nodes by group: of group g, order[start[g], start[g + 1]), ascending. */
static int sort_nodes(const struct weft_tree *tree, size_t t, size_t *start, size_t *order)
{
    const struct weft_tree_tier *tier = &tree->tiers[t];
    weft_autofree size_t *next = weft_calloc(tier->group_count + 1, sizeof(*next));
    if (next == NULL) {
        return -ENOMEM;
    }
    for (size_t n = 0; n < tree->node_count; n++) {
        if (tier->node_group[n] != WEFT_TREE_NONE) {
            start[tier->node_group[n] + 1]++;
        }
    }
    for (size_t g = 0; g < tier->group_count; g++) {
        start[g + 1] += start[g];
        next[g] = start[g];
    }
    for (size_t n = 0; n < tree->node_count; n++) {
        if (tier->node_group[n] != WEFT_TREE_NONE) {
            order[next[tier->node_group[n]]++] = n;
        }
    }
    return 0;
}

static int put_tier(struct weft_json_writer *w, const struct weft_tree *tree, size_t t,
                    const char *const *names, const char *const *parents)
{
    const struct weft_tree_tier *tier = &tree->tiers[t];
    weft_autofree size_t *start = weft_calloc(tier->group_count + 1, sizeof(*start));
    weft_autofree size_t *order = weft_calloc(tree->node_count, sizeof(*order));
    if (start == NULL || order == NULL || sort_nodes(tree, t, start, order) < 0) {
        return -ENOMEM;
    }
    weft_json_open(w, '{');
    weft_json_kv_int(w, "tier", (int64_t)t + 1);
    weft_json_kv_string(w, "name", tier->name);
    weft_json_put_key(w, "groups");
    weft_json_open(w, '[');
    for (size_t g = 0; g < tier->group_count; g++) {
        const struct weft_tree_group *group = &tier->groups[g];
        weft_json_open(w, '{');
        weft_json_kv_string(w, "name", names[g]);
        weft_json_put_key(w, "parent");
        if (group->parent != WEFT_TREE_NONE) {
            weft_json_put_string(w, parents[group->parent]);
        } else {
            weft_json_put_null(w);
        }
        weft_json_put_key(w, "nodes");
        weft_json_open(w, '[');
        for (size_t i = start[g]; i < start[g + 1]; i++) {
            weft_json_put_string(w, tree->nodes[order[i]]);
        }
        weft_json_close(w, ']');
        put_strings(w, "switches", group->switches, group->switch_count);
        weft_json_close(w, '}');
    }
    weft_json_close(w, ']');
    weft_json_close(w, '}');
    return 0;
}

static int put_tiers(struct weft_json_writer *w, const struct weft_tree *tree)
{
    weft_autofree const char **names = NULL;
    for (size_t t = 0; t < tree->tier_count; t++) {
        weft_autofree const char **parents = NULL;
        if (names == NULL) {
            names = printed_names(&tree->tiers[t]);
        }
        if (t + 1 < tree->tier_count) {
            parents = printed_names(&tree->tiers[t + 1]);
        }
        if (names == NULL || (t + 1 < tree->tier_count && parents == NULL) ||
            put_tier(w, tree, t, names, parents) < 0) {
            return -ENOMEM;
        }
        weft_free(names);
        names = weft_steal(&parents);
    }
    return 0;
}

int weft_ctl_tree_json(const struct weft_tree *tree, struct weft_buf *buf)
{
    struct weft_json_writer w;
    weft_json_writer_init(&w, buf, 2);
    weft_json_open(&w, '{');
    weft_json_put_key(&w, "tiers");
    weft_json_open(&w, '[');
    if (put_tiers(&w, tree) < 0) {
        return -ENOMEM;
    }
    weft_json_close(&w, ']');
    weft_json_put_key(&w, "findings");
    weft_json_open(&w, '[');
    for (size_t i = 0; i < tree->finding_count; i++) {
        weft_json_open(&w, '{');
        weft_json_kv_string(&w, "kind", tree->findings[i].kind);
        weft_json_kv_string(&w, "subject", tree->findings[i].subject);
        weft_json_kv_string(&w, "detail", tree->findings[i].detail);
        weft_json_close(&w, '}');
    }
    weft_json_close(&w, ']');
    put_strings(&w, "unplaced", tree->unplaced, tree->unplaced_count);
    weft_json_close(&w, '}');
    return weft_buf_putc(buf, '\n');
}
