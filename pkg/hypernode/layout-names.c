/* SPDX-License-Identifier: Apache-2.0 */
/* Identity and names of groups. A name is never made for one physical group and used for another:
 * the scheduler remembers a running gang's place by name. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/base/map.h"
#include "pkg/base/str.h"
#include "pkg/hypernode/layout-internal.h"

/* Names of ours that are, and names that shall be. */
enum { NAMES_MAX = 2 * WEFT_HYPERNODES_MAX };
enum { IDENTITY_BYTES_MAX = 64 * 1024, SALTS_MAX = 1000, HASH_DIGITS = 8 };

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
    for (size_t g = 0; existing != NULL && g < w->group_count; g++) {
        if (matched[g] == 0) {
            continue;
        }
        w->groups[g].name = weft_strdup(existing->items[matched[g] - 1].name);
        if (w->groups[g].name == NULL) {
            return -ENOMEM;
        }
    }
    return 0;
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
