/* SPDX-License-Identifier: Apache-2.0 */
/* Live against wanted: tiers, and Nodes of which only a part is known. Must not decide what follows
 * from it. */
#include "controller/keep-internal.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "controller/forest.h"
#include "pkg/base/str.h"
#include "pkg/hypernode/hypernode.h"

bool weft_keep_tiers_agree(const struct weft_hypernode_set *live,
                           const struct weft_hypernode_set *wanted, const char *instance)
{
    const char *names[WEFT_FOREST_TIERS_MAX + 1] = {0};
    int64_t top = 0;
    for (size_t i = 0; i < wanted->count; i++) {
        const struct weft_hypernode *hn = &wanted->items[i];
        if (hn->tier >= 0 && hn->tier <= WEFT_FOREST_TIERS_MAX) {
            names[hn->tier] = hn->tier_name;
            top = hn->tier > top ? hn->tier : top;
        }
    }
    for (size_t i = 0; i < live->count && top > 0; i++) {
        const struct weft_hypernode *hn = &live->items[i];
        if (!weft_hypernode_is_ours(hn, instance)) {
            continue;
        }
        if (hn->tier < 1 || hn->tier > top) {
            return false;
        }
        const char *name = names[hn->tier] != NULL ? names[hn->tier] : "";
        const char *live_name = hn->tier_name != NULL ? hn->tier_name : "";
        /* a server that drops tierName tells nothing */
        if (name[0] != '\0' && live_name[0] != '\0' && strcmp(name, live_name) != 0) {
            return false;
        }
    }
    return true;
}

/* ---- levels that sources miss ---- */

static const struct weft_hypernode *object_or_null(const struct weft_forest *forest, size_t item)
{
    return item != WEFT_FOREST_NONE ? weft_forest_object(forest, item) : NULL;
}

/* The object as wanted, if it is; objects read from labels know no identity of their own. */
static const struct weft_hypernode *as_wanted(const struct weft_forest *wanted,
                                              const struct weft_hypernode *object)
{
    const size_t item = weft_forest_find(wanted, object->name);
    return item != WEFT_FOREST_NONE ? weft_forest_object(wanted, item) : object;
}

/* Padding: "copy-of-<tier>:…" or a node alone, "node:…" (a group's path has "<tier>=" first). */
static bool is_padding(const struct weft_hypernode *object)
{
    const char *identity = weft_hypernode_text(object->identity);
    const char *first = identity + strcspn(identity, "=:");
    return *first == ':' && (strncmp(identity, "copy-of-", strlen("copy-of-")) == 0 ||
                             strncmp(identity, "node:", strlen("node:")) == 0);
}

/* All Nodes below an object that hangs in padding for a missing level miss that level. */
static bool is_padded(const struct weft_hypernode *parent, uint32_t gaps)
{
    return parent->tier >= 1 && parent->tier <= WEFT_FOREST_TIERS_MAX &&
           ((gaps >> (parent->tier - 1)) & 1) != 0 && is_padding(parent);
}

/* What a node that is put back into the live object of that name would have above it: an object
 * that is still wanted hangs where it is wanted, unless that is padding for a missing level. */
static const struct weft_hypernode *above(const struct weft_forest *live,
                                          const struct weft_forest *wanted, const char *name,
                                          uint32_t gaps)
{
    const size_t now = weft_forest_find(wanted, name);
    if (now != WEFT_FOREST_NONE) {
        const struct weft_hypernode *parent =
            object_or_null(wanted, weft_forest_parent(wanted, now));
        if (parent != NULL && !is_padded(parent, gaps)) {
            return parent;
        }
    }
    const size_t old = weft_forest_find(live, name);
    return old != WEFT_FOREST_NONE ? object_or_null(live, weft_forest_parent(live, old)) : NULL;
}

/* Does path have the components of part, in their order? "core=a/leaf=c" is a part of
 * "core=a/spine=b/leaf=c": the same group, seen by somebody who lacks the middle. */
static bool path_has(const char *path, const char *part)
{
    if (*part == '\0') {
        return false;
    }
    while (*part != '\0' && *path != '\0') {
        const size_t len = strcspn(path, "/");
        const size_t want = strcspn(part, "/");
        if (len == want && memcmp(path, part, len) == 0) {
            part += want + (part[want] == '/');
        }
        path += len + (path[len] == '/');
    }
    return *part == '\0';
}

static bool agrees(const struct weft_hypernode *known, const struct weft_hypernode *last)
{
    return strcmp(known->name, last->name) == 0 ||
           path_has(weft_hypernode_text(last->identity), weft_hypernode_text(known->identity));
}

bool weft_keep_gap_holds(const struct weft_forest *live, const struct weft_forest *wanted,
                         const char *node, uint32_t gaps)
{
    size_t chain[WEFT_FOREST_TIERS_MAX];
    const size_t count = weft_forest_chain(wanted, node, chain);
    const struct weft_hypernode *last = object_or_null(live, weft_forest_home(live, node));
    bool had_place = false;
    for (size_t t = 0; t < count && gaps != 0; t++) {
        if (last == NULL || last->tier != (int64_t)t + 1) {
            return false;
        }
        const struct weft_hypernode *now = as_wanted(wanted, last);
        const bool gap = ((gaps >> t) & 1) != 0;
        if (now->tier != last->tier ||
            (!gap && !agrees(weft_forest_object(wanted, chain[t]), now))) {
            return false;
        }
        had_place = had_place || (gap && !is_padding(now));
        last = above(live, wanted, last->name, gaps);
    }
    return had_place;
}

int weft_keep_put_back_part(const struct weft_forest *live, struct weft_forest *wanted,
                            const char *node, uint32_t gaps)
{
    const struct weft_hypernode *object = object_or_null(live, weft_forest_home(live, node));
    size_t below = WEFT_FOREST_NONE;
    for (size_t t = 0; object != NULL && t < WEFT_FOREST_TIERS_MAX; t++) {
        size_t item = WEFT_FOREST_NONE;
        int rc = weft_forest_add(wanted, object, &item);
        if (rc < 0) {
            return rc;
        }
        rc = t == 0 ? weft_forest_put(wanted, node, item) : weft_forest_hang(wanted, below, item);
        if (rc < 0 && rc != -EINVAL) {
            return rc;
        }
        below = item;
        object = above(live, wanted, object->name, gaps);
    }
    return 0;
}
