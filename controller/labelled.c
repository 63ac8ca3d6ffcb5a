/* SPDX-License-Identifier: Apache-2.0 */
/* Tier labels to HyperNodes; must not look at anything but labels. */
#include "controller/labelled.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/decide.h"
#include "pkg/base/map.h"
#include "pkg/fabric/node.h"
#include "pkg/hypernode/layout.h"

enum { KEY_MAX = 320 };

struct reading {
    const struct weft_names_of_ours *ours;
    struct weft_map *index; /* name → object */
    struct weft_hypernode *objects;
    size_t count;
    size_t cap;
};

static int text_fields(const struct reading *r, const char *name, struct weft_hypernode *hn)
{
    struct {
        char **field;
        const char *text;
    } const fields[] = {
        {&hn->name, name},
        {&hn->source, WEFT_LABEL_SOURCE_VALUE},
        {&hn->managed_by, WEFT_LABEL_MANAGED_BY_VALUE},
        {&hn->instance, r->ours->instance},
        {&hn->tier_name, ""},
        {&hn->identity, ""},
        {&hn->uid, ""},
        {&hn->resource_version, ""},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(fields); i++) {
        if (weft_hypernode_set_text(fields[i].field, fields[i].text) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

/* 1: it is new. */
static int find_or_add(struct reading *r, const char *name, size_t tier, size_t *ret_object)
{
    if (weft_map_get(r->index, name, ret_object)) {
        return 0;
    }
    int rc = weft_array_reserve((void **)&r->objects, &r->cap, r->count + 1, sizeof(*r->objects),
                                WEFT_HYPERNODES_MAX);
    if (rc < 0) {
        return rc;
    }
    weft_auto(weft_hypernode_done) struct weft_hypernode hn = {.tier = (int64_t)tier};
    rc = text_fields(r, name, &hn);
    if (rc == 0) {
        rc = weft_map_put(r->index, name, r->count);
    }
    if (rc < 0) {
        return rc;
    }
    r->objects[r->count] = hn;
    hn = (struct weft_hypernode){0};
    *ret_object = r->count++;
    return 1;
}

static int add_chain(struct reading *r, const struct weft_node *node, const char *const *values,
                     size_t tiers)
{
    const char *below = node->name;
    bool below_is_new = true; /* the Node itself */
    for (size_t i = 0; i < tiers; i++) {
        size_t at = 0;
        const int added = find_or_add(r, values[i], i + 1, &at);
        if (added < 0) {
            return added;
        }
        if (r->objects[at].tier != (int64_t)(i + 1)) {
            return 0; /* one name on two tiers: not our writing */
        }
        const int rc = below_is_new
                           ? weft_hypernode_add_member(
                                 &r->objects[at], i == 0 ? WEFT_MEMBER_NODE : WEFT_MEMBER_HYPERNODE,
                                 WEFT_SELECTOR_EXACT, below)
                           : 0;
        if (rc < 0) {
            return rc;
        }
        below = values[i];
        below_is_new = added == 1;
    }
    return 0;
}

static int read_nodes(struct reading *r, const struct weft_node *nodes, size_t count, size_t tiers)
{
    for (size_t n = 0; n < count; n++) {
        const char *values[WEFT_LAYOUT_TIERS_MAX];
        size_t found = 0;
        for (; found < tiers; found++) {
            char key[KEY_MAX];
            (void)snprintf(key, sizeof(key), "%stier-%zu", r->ours->prefix, found + 1);
            values[found] = weft_node_label(&nodes[n], key);
            if (values[found] == NULL || values[found][0] == '\0') {
                break;
            }
        }
        const int rc = found == tiers ? add_chain(r, &nodes[n], values, tiers) : 0;
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

int weft_labelled_places(const struct weft_node *nodes, size_t count, size_t tiers,
                         const struct weft_names_of_ours *ours, struct weft_hypernode_set *ret_set,
                         struct weft_error *err)
{
    struct reading r = {.ours = ours, .index = weft_map_new(WEFT_HYPERNODES_MAX)};
    int rc = r.index == NULL || tiers > WEFT_LAYOUT_TIERS_MAX ? -ENOMEM : 0;
    rc = rc == 0 ? read_nodes(&r, nodes, count, tiers) : rc;
    for (size_t i = 0; i < r.count; i++) {
        weft_hypernode_sort(&r.objects[i]);
        if (rc >= 0) {
            rc = weft_hypernode_set_put(ret_set, &r.objects[i]);
        }
        weft_hypernode_done(&r.objects[i]);
    }
    weft_map_free(r.index);
    weft_free(r.objects);
    return rc < 0 ? weft_err_errno(err, -rc, "tier labels") : 0;
}

bool weft_labelled_by_other(const struct weft_node *node, const struct weft_names_of_ours *ours,
                            const struct weft_hypernode_set *hypernodes)
{
    for (size_t i = 0; i < WEFT_LAYOUT_TIERS_MAX; i++) {
        char key[KEY_MAX];
        (void)snprintf(key, sizeof(key), "%stier-%zu", ours->prefix, i + 1);
        const char *name = weft_node_label(node, key);
        const struct weft_hypernode *hn =
            name != NULL ? weft_hypernode_set_get(hypernodes, name) : NULL;
        if (hn != NULL && !weft_hypernode_is_ours(hn, ours->instance) &&
            strcmp(weft_hypernode_text(hn->managed_by), WEFT_LABEL_MANAGED_BY_VALUE) == 0) {
            return true;
        }
    }
    return false;
}
