/* SPDX-License-Identifier: Apache-2.0 */
/* The HyperNodes that exist, ours and others'. Must not judge them. */
#include <errno.h>
#include <string.h>

#include "controller/view.h"
#include "pkg/base/map.h"
#include "pkg/base/str.h"

/* uids remembered between two lists; beyond it a late event costs one needless conflict */
enum { DELETED_MAX = 65536 };

void weft_view_hypernodes_done(struct weft_view_hypernodes *view)
{
    weft_hypernode_set_done(&view->set);
    weft_map_free(view->seen);
    weft_map_free(view->deleted);
    *view = (struct weft_view_hypernodes){0};
}

void weft_view_hypernodes_clear(struct weft_view_hypernodes *view)
{
    weft_view_hypernodes_done(view);
}

int weft_view_hypernodes_list(struct weft_view_hypernodes *view)
{
    weft_map_free(view->seen);
    weft_map_free(view->deleted);
    view->deleted = NULL;
    view->seen = weft_map_new(WEFT_HYPERNODES_MAX);
    return view->seen == NULL ? -ENOMEM : 0;
}

bool weft_view_hypernodes_listed(struct weft_view_hypernodes *view,
                                 void (*on_gone)(void *data, const struct weft_hypernode *hn),
                                 void *data)
{
    bool any = false;
    for (size_t i = view->set.count; view->seen != NULL && i > 0; i--) {
        const struct weft_hypernode *hn = &view->set.items[i - 1];
        if (weft_map_get(view->seen, hn->name, NULL)) {
            continue;
        }
        if (on_gone != NULL) {
            on_gone(data, hn);
        }
        any = weft_hypernode_set_remove(&view->set, hn->name) || any;
    }
    weft_map_free(view->seen);
    view->seen = NULL;
    return any;
}

/* Is a's state older than b's of the same object? Versions that are no numbers are not compared:
 * they are then taken in the order they come. */
static bool older(const struct weft_hypernode *a, const struct weft_hypernode *b)
{
    uint64_t x = 0;
    uint64_t y = 0;
    return weft_parse_u64(weft_str(a->resource_version), UINT64_MAX, &x) == 0 &&
           weft_parse_u64(weft_str(b->resource_version), UINT64_MAX, &y) == 0 && x < y;
}

static bool same_object(const struct weft_hypernode *a, const struct weft_hypernode *b)
{
    return a->terminating == b->terminating && strcmp(a->uid, b->uid) == 0 &&
           weft_hypernode_same(a, b);
}

/* Until its members are written anew. */
static bool stays_torn(const struct weft_hypernode *known, const struct weft_hypernode *now)
{
    return known->torn && known->reordered == now->reordered && strcmp(known->uid, now->uid) == 0 &&
           weft_hypernode_same_members(known, now);
}

/* Is it older news than what is known? known may be NULL. */
static bool is_late(const struct weft_view_hypernodes *view, const struct weft_hypernode *hn,
                    const struct weft_hypernode *known)
{
    return (view->deleted != NULL && weft_map_get(view->deleted, hn->uid, NULL)) ||
           (known != NULL && older(hn, known));
}

int weft_view_hypernodes_put(struct weft_view_hypernodes *view, struct weft_hypernode *hn,
                             enum weft_view_change *ret_change)
{
    *ret_change = WEFT_VIEW_SAME;
    int rc = view->seen == NULL ? 0 : weft_map_put(view->seen, hn->name, 0);
    const struct weft_hypernode *known = weft_hypernode_set_get(&view->set, hn->name);
    if (rc < 0 || is_late(view, hn, known)) {
        weft_hypernode_done(hn);
        return rc < 0 ? rc : 0;
    }
    *ret_change = known != NULL && same_object(known, hn) ? WEFT_VIEW_SAME : WEFT_VIEW_OTHER;
    hn->torn = known != NULL && stays_torn(known, hn);
    rc = weft_hypernode_set_put(&view->set, hn);
    if (rc < 0) {
        weft_hypernode_done(hn);
    }
    return rc < 0 ? rc : 0;
}

bool weft_view_hypernodes_gone(struct weft_view_hypernodes *view, const char *name, const char *uid)
{
    const struct weft_hypernode *known = weft_hypernode_set_get(&view->set, name);
    if (uid[0] != '\0') {
        if (view->deleted == NULL) {
            view->deleted = weft_map_new(DELETED_MAX);
        }
        if (view->deleted != NULL) {
            (void)!weft_map_put(view->deleted, uid, 0); /* full or no memory: see DELETED_MAX */
        }
    }
    if (known == NULL || (uid[0] != '\0' && strcmp(known->uid, uid) != 0)) {
        return false;
    }
    return weft_hypernode_set_remove(&view->set, name);
}

bool weft_view_hypernodes_tear(struct weft_view_hypernodes *view, const char *instance,
                               const struct weft_hypernode *before,
                               const struct weft_hypernode *after)
{
    bool any = false;
    for (size_t i = 0; i < before->member_count; i++) {
        const struct weft_member *m = &before->members[i];
        if (m->type != WEFT_MEMBER_HYPERNODE || m->selector != WEFT_SELECTOR_EXACT ||
            (after != NULL && weft_hypernode_lists(after, m->type, m->name))) {
            continue;
        }
        for (size_t k = 0; k < view->set.count; k++) {
            struct weft_hypernode *hn = &view->set.items[k];
            const bool tears =
                weft_hypernode_is_ours(hn, instance) && weft_hypernode_lists(hn, m->type, m->name);
            hn->torn = hn->torn || tears;
            any = any || tears;
        }
    }
    return any;
}
