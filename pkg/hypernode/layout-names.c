/* SPDX-License-Identifier: Apache-2.0 */
/* Identity and names of groups. A name is never made for one physical group and used for another:
 * the scheduler remembers a running gang's place by name. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/base/idmap.h"
#include "pkg/base/map.h"
#include "pkg/base/str.h"
#include "pkg/hypernode/layout-internal.h"

/* Names of ours that are, and names that shall be. */
enum { NAMES_MAX = 2 * WEFT_HYPERNODES_MAX };
enum { IDENTITY_BYTES_MAX = 64 * 1024, SALTS_MAX = 1000, HASH_DIGITS = 8 };
/* switches of all groups: more than a fabric may have devices */
enum { GUIDS_MAX = 1 << 23 };

char *weft_layout_slug(const char *text, size_t max)
{
    char *slug = weft_malloc(max + 1);
    if (slug == NULL) {
        return NULL;
    }
    size_t n = 0;
    bool gap = false;
    for (const char *p = text; *p != '\0' && n < max; p++) {
        char c = *p;
        if (c >= 'A' && c <= 'Z') {
            c = (char)(c - 'A' + 'a');
        }
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))) {
            gap = n > 0;
            continue;
        }
        if (gap && n + 1 < max) {
            slug[n++] = '-';
        } else if (gap) {
            break; /* room for a dash, but not for what follows it */
        }
        gap = false;
        slug[n++] = c;
    }
    slug[n] = '\0';
    return slug;
}

/* ---- identity ---- */

/* What sets the identities of one tier apart by where they come from: "" for the tier's own groups,
 * so that a copy never takes over the name of a real group. */
static void put_class(const struct weft_lwork *w, const struct weft_lgroup *g, struct weft_buf *buf)
{
    if (g->source != g->tier) {
        (void)weft_buf_printf(buf, "copy-of-%s:", w->options->tiers[g->source]);
    }
}

static char *make_identity(const struct weft_lwork *w, const struct weft_lgroup *g)
{
    weft_auto(weft_buf_done) struct weft_buf buf = {0};
    weft_buf_init(&buf, IDENTITY_BYTES_MAX);
    put_class(w, g, &buf);
    (void)weft_buf_printf(&buf, "%s%s", g->from != NULL ? "" : "node:",
                          g->from != NULL ? g->from->identity : g->node);
    return buf.status == 0 ? weft_buf_steal(&buf) : NULL;
}

/* The identity as written down: of a switch group all its switches, or the smallest of them. */
static char *make_annotation(const struct weft_lwork *w, const struct weft_lgroup *g)
{
    if (g->from == NULL || g->from->switch_guid_count == 0) {
        return weft_strdup(g->identity);
    }
    weft_auto(weft_buf_done) struct weft_buf buf = {0};
    weft_buf_init(&buf, IDENTITY_BYTES_MAX);
    put_class(w, g, &buf);
    (void)weft_buf_puts(&buf, "switch:");
    size_t count = g->from->switch_guid_count;
    count = count > WEFT_LAYOUT_GUIDS_MAX ? WEFT_LAYOUT_GUIDS_MAX : count;
    for (size_t i = 0; i < count; i++) {
        (void)weft_buf_printf(&buf, "%s%016" PRIx64, i > 0 ? "," : "", g->from->switch_guids[i]);
    }
    return buf.status == 0 ? weft_buf_steal(&buf) : NULL;
}

/* ---- names ---- */

/* weft-<tierName>-<slug>-<hash8>; salt 0 first, others only where that name is taken. */
static char *make_name(const struct weft_lwork *w, const struct weft_lgroup *g, unsigned salt)
{
    uint64_t hash = weft_hash64(WEFT_HASH_SEED, g->identity, strlen(g->identity));
    if (salt > 0) {
        hash = weft_hash64(hash,
                           &(unsigned char[]){(unsigned char)salt, (unsigned char)(salt >> 8)}, 2);
    }
    const char *tier = w->options->tiers[g->tier];
    const size_t room =
        (size_t)WEFT_HYPERNODE_NAME_MAX - strlen("weft-") - strlen(tier) - 2 - HASH_DIGITS;
    weft_autofree char *slug = weft_layout_slug(g->from != NULL ? g->from->name : g->node, room);
    if (slug == NULL) {
        return NULL;
    }
    return weft_asprintf("weft-%s-%s%s%08" PRIx32, tier, slug, slug[0] != '\0' ? "-" : "",
                         (uint32_t)hash);
}

/* taken: names of this layout and of all our existing objects. */
static int choose_name(const struct weft_lwork *w, struct weft_lgroup *g, struct weft_map *taken,
                       struct weft_error *err)
{
    for (unsigned salt = 0; salt < SALTS_MAX; salt++) {
        weft_autofree char *name = make_name(w, g, salt);
        if (name == NULL) {
            return weft_err_nomem(err);
        }
        if (weft_map_get(taken, name, NULL)) {
            continue;
        }
        if (weft_map_put(taken, name, 0) < 0) {
            return weft_err_nomem(err);
        }
        g->name = weft_steal(&name);
        return 0;
    }
    return weft_err_set(err, -EEXIST, WEFT_ERR_CONFIG, "no free name for group %.128s",
                        g->identity);
}

/* qsort has no room for a context, so what is ordered are references. */
struct group_ref {
    struct weft_lgroup *group;
};

static int cmp_group(const void *a, const void *b)
{
    const struct weft_lgroup *x = ((const struct group_ref *)a)->group;
    const struct weft_lgroup *y = ((const struct group_ref *)b)->group;
    if (x->tier != y->tier) {
        return x->tier < y->tier ? -1 : 1;
    }
    return strcmp(x->identity, y->identity);
}

/* Two groups of one tier with one identity would be one group. */
static int check_unique(const struct group_ref *order, size_t count, struct weft_error *err)
{
    for (size_t i = 1; i < count; i++) {
        if (cmp_group(&order[i - 1], &order[i]) == 0) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "two groups of one tier have the identity %.128s",
                                order[i].group->identity);
        }
    }
    return 0;
}

/* Which switches there are: GUID to the tiers that it is in, a bit each. */
static int list_present(const struct weft_lwork *w, struct weft_idmap *present)
{
    for (size_t i = 0; i < w->group_count; i++) {
        const struct weft_lgroup *g = &w->groups[i];
        for (size_t k = 0; g->from != NULL && k < g->from->switch_guid_count; k++) {
            uint64_t *tiers = NULL;
            if (weft_idmap_at(present, g->from->switch_guids[k], &tiers, NULL) < 0) {
                return -ENOMEM;
            }
            *tiers |= UINT64_C(1) << g->tier;
        }
    }
    return 0;
}

/* Is the group's list of switches the object's without some that are in no group of the tier? Both
 * lists are ascending, in digits of one width. */
static bool only_lacks_absent(const struct weft_lgroup *g, const char *identity,
                              const struct weft_idmap *present)
{
    struct weft_str class = {0};
    struct weft_str old_class = {0};
    struct weft_str guids = {0};
    struct weft_str old_guids = {0};
    struct weft_str guid = {0};
    struct weft_str old = {0};
    if (!weft_layout_split_guids(g->annotation, &class, &guids) ||
        !weft_layout_split_guids(identity, &old_class, &old_guids) || class.len != old_class.len ||
        memcmp(class.data, old_class.data, class.len) != 0) {
        return false;
    }
    bool more = weft_str_split(&guids, ',', &guid);
    while (weft_str_split(&old_guids, ',', &old)) {
        uint64_t number = 0;
        uint64_t tiers = 0;
        if (more && old.len == guid.len && memcmp(old.data, guid.data, old.len) == 0) {
            more = weft_str_split(&guids, ',', &guid);
        } else if (weft_parse_hex64(old, &number) < 0 ||
                   (weft_idmap_get(present, number, &tiers) && (tiers >> g->tier & 1) != 0)) {
            return false;
        }
    }
    return !more;
}

/* The object's name goes on; so does the list of switches that it is known by while some of them
 * are away: a leaf that reboots is no reason to write (a change that only wiggles costs none). */
static int keep_object(struct weft_lgroup *g, const struct weft_hypernode *object,
                       const struct weft_idmap *present)
{
    const char *identity = weft_hypernode_text(object->identity);
    g->name = weft_strdup(object->name);
    if (g->name == NULL || !only_lacks_absent(g, identity, present)) {
        return g->name != NULL ? 0 : -ENOMEM;
    }
    char *kept = weft_strdup(identity);
    if (kept == NULL) {
        return -ENOMEM;
    }
    weft_free(g->annotation);
    g->annotation = kept;
    return 0;
}

/* Our existing names: kept by the groups that were matched, barred to all others. */
static int keep_names(struct weft_lwork *w, const size_t *matched, struct weft_map *taken)
{
    const struct weft_hypernode_set *existing = w->options->existing;
    for (size_t i = 0; existing != NULL && i < existing->count; i++) {
        if (weft_hypernode_is_ours(&existing->items[i], w->options->instance) &&
            weft_map_put(taken, existing->items[i].name, 0) < 0) {
            return -ENOMEM;
        }
    }
    weft_auto(weft_idmap_done) struct weft_idmap present;
    weft_idmap_init(&present, GUIDS_MAX);
    int rc = existing != NULL ? list_present(w, &present) : 0;
    for (size_t g = 0; rc == 0 && existing != NULL && g < w->group_count; g++) {
        if (matched[g] != 0) {
            rc = keep_object(&w->groups[g], &existing->items[matched[g] - 1], &present);
        }
    }
    return rc;
}

static int set_identities(struct weft_lwork *w)
{
    for (size_t i = 0; i < w->group_count; i++) {
        struct weft_lgroup *g = &w->groups[i];
        g->identity = make_identity(w, g);
        g->annotation = g->identity != NULL ? make_annotation(w, g) : NULL;
        if (g->annotation == NULL) {
            return -ENOMEM;
        }
    }
    return 0;
}

int weft_lwork_name_groups(struct weft_lwork *w, struct weft_error *err)
{
    weft_autofree struct group_ref *order = weft_calloc(w->group_count, sizeof(*order));
    weft_autofree size_t *matched = weft_calloc(w->group_count, sizeof(*matched));
    weft_auto(weft_map_free) struct weft_map *taken = weft_map_new(NAMES_MAX);
    if (order == NULL || matched == NULL || taken == NULL || set_identities(w) < 0) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < w->group_count; i++) {
        order[i].group = &w->groups[i];
    }
    if (w->group_count > 1) {
        qsort(order, w->group_count, sizeof(*order), cmp_group);
    }
    int rc = check_unique(order, w->group_count, err);
    if (rc < 0) {
        return rc;
    }
    if (weft_lwork_match(w, matched) < 0 || keep_names(w, matched, taken) < 0) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < w->group_count && rc == 0; i++) {
        rc = order[i].group->name == NULL ? choose_name(w, order[i].group, taken, err) : 0;
    }
    return rc;
}
