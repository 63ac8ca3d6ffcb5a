/* SPDX-License-Identifier: Apache-2.0 */
/* What a tier's number and name mean to jobs. Both are part of what users write into their jobs
 * (highestTierAllowed, highestTierName), so a change of what existing objects say waits until it is
 * accepted; and Volcano takes a random tier where two have one name. Must not move anybody. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/forest.h"
#include "controller/keep-internal.h"
#include "pkg/base/str.h"

/* Tiers that others use are not bounded by us; of more pairs the rest is not looked at. */
enum { PAIRS_MAX = 64 };

/* Which tierName stands for which tier, each pair once, by tier and name; names are borrowed. */
struct pairs {
    struct pair {
        int64_t tier;
        const char *name; /* never "" */
    } items[PAIRS_MAX];
    size_t count;
};

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a;
    const struct pair *y = b;
    return x->tier != y->tier ? (x->tier < y->tier ? -1 : 1) : strcmp(x->name, y->name);
}

static bool has_pair(const struct pairs *pairs, int64_t tier, const char *name)
{
    for (size_t i = 0; i < pairs->count; i++) {
        if (pairs->items[i].tier == tier && strcmp(pairs->items[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* A server that drops tierName tells nothing. */
static void add_pair(struct pairs *pairs, const struct weft_hypernode *hn)
{
    const char *name = weft_hypernode_text(hn->tier_name);
    if (name[0] != '\0' && pairs->count < PAIRS_MAX && !has_pair(pairs, hn->tier, name)) {
        pairs->items[pairs->count++] = (struct pair){hn->tier, name};
    }
}

static void read_pairs(const struct weft_hypernode_set *set, const char *instance, bool ours,
                       struct pairs *pairs)
{
    *pairs = (struct pairs){0};
    for (size_t i = 0; i < set->count; i++) {
        if (instance == NULL || weft_hypernode_is_ours(&set->items[i], instance) == ours) {
            add_pair(pairs, &set->items[i]);
        }
    }
    qsort(pairs->items, pairs->count, sizeof(pairs->items[0]), compare_pairs);
}

static uint64_t hash_pairs(uint64_t hash, const struct pairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++) {
        const struct pair *p = &pairs->items[i];
        hash = weft_hash64(hash, &p->tier, sizeof(p->tier));
        hash = weft_hash64(hash, p->name, strlen(p->name) + 1);
    }
    return weft_hash64(hash, ">", 2);
}

/* "leaf=1 spine=2" */
static void write_pairs(const struct pairs *pairs, char *text, size_t size)
{
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < pairs->count && len < size; i++) {
        const int n = snprintf(text + len, size - len, "%s%s=%" PRId64, i > 0 ? " " : "",
                               pairs->items[i].name, pairs->items[i].tier);
        len += n > 0 ? (size_t)n : 0;
    }
}

/* ---- our own tiers ---- */

/* Mixes what the nodes' change is called into what the tiers' change is called. */
static void mix(char text[WEFT_REFUSAL_HASH_MAX], uint64_t pairs)
{
    const uint64_t hash = weft_hash64(pairs, text, strlen(text) + 1);
    (void)snprintf(text, WEFT_REFUSAL_HASH_MAX, "%016" PRIx64, hash);
}

static int refuse_tiers(struct weft_keep_judge *j, const struct pairs *live,
                        const struct pairs *wanted)
{
    weft_autofree bool *all = weft_calloc(j->count + 1, sizeof(*all));
    if (all == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < j->count; i++) {
        all[i] = !j->nodes[i].excluded;
    }
    struct weft_refusal refusal = {.kind = WEFT_REFUSAL_TIERS};
    int rc = weft_keep_name_change(j, all, &refusal);
    rc = rc < 0 ? rc : weft_keep_name_target(j, all, &refusal);
    if (rc < 0) {
        return rc;
    }
    const uint64_t target = hash_pairs(WEFT_HASH_SEED, wanted);
    mix(refusal.hash, hash_pairs(hash_pairs(WEFT_HASH_SEED, live), wanted));
    mix(refusal.target, target);
    char before[WEFT_REFUSAL_TEXT_MAX / 4];
    char after[WEFT_REFUSAL_TEXT_MAX / 4];
    write_pairs(live, before, sizeof(before));
    write_pairs(wanted, after, sizeof(after));
    (void)snprintf(
        refusal.text, sizeof(refusal.text),
        "The tiers of existing HyperNodes would change from %s to %s, and with them what "
        "highestTierAllowed and highestTierName of jobs mean. Nothing is changed.",
        before[0] != '\0' ? before : "(no names)", after[0] != '\0' ? after : "(none)");
    uint64_t *freed = weft_keep_freed_tiers(j->keep);
    j->tiers.freed = *freed == target || weft_keep_add_refusal(j, &refusal);
    *freed = j->tiers.freed ? target : 0;
    if (!j->tiers.freed) {
        j->result->refused = true;
        j->result->frozen = true;
    }
    return 0;
}

/* ---- others' tiers ---- */

/* The first tierName that would be new to us and that another owner has on another tier. */
static bool find_clash(const struct pairs *live, const struct pairs *wanted,
                       const struct pairs *foreign, struct pair *ret_ours, int64_t *ret_theirs)
{
    for (size_t i = 0; i < wanted->count; i++) {
        const struct pair *p = &wanted->items[i];
        if (has_pair(live, p->tier, p->name)) {
            continue;
        }
        for (size_t k = 0; k < foreign->count; k++) {
            if (foreign->items[k].tier != p->tier && strcmp(foreign->items[k].name, p->name) == 0) {
                *ret_ours = *p;
                *ret_theirs = foreign->items[k].tier;
                return true;
            }
        }
    }
    return false;
}

static void refuse_clash(struct weft_keep_judge *j, const struct pairs *live,
                         const struct pairs *wanted, const struct pairs *foreign)
{
    struct pair ours = {0};
    int64_t theirs = 0;
    if (!find_clash(live, wanted, foreign, &ours, &theirs)) {
        return;
    }
    struct weft_refusal refusal = {.kind = WEFT_REFUSAL_FOREIGN};
    uint64_t hash = weft_hash64(WEFT_HASH_SEED, "foreign-tier", sizeof("foreign-tier"));
    hash = hash_pairs(hash_pairs(hash, wanted), foreign);
    (void)snprintf(refusal.hash, sizeof(refusal.hash), "%016" PRIx64, hash);
    (void)snprintf(refusal.text, sizeof(refusal.text),
                   "tierName %s would be tier %" PRId64 " here, and HyperNodes of another owner "
                   "have it as tier %" PRId64 ": a job that names it gets a random one of the two. "
                   "Nothing is changed.",
                   ours.name, ours.tier, theirs);
    j->tiers.clash = !weft_keep_add_refusal(j, &refusal);
    j->result->refused = j->result->refused || j->tiers.clash;
    j->result->frozen = j->result->frozen || j->tiers.clash;
}

bool weft_keep_tier_wanted(const struct weft_hypernode_set *wanted,
                           const struct weft_hypernode *object)
{
    const char *name = weft_hypernode_text(object->tier_name);
    for (size_t i = 0; i < wanted->count; i++) {
        const struct weft_hypernode *hn = &wanted->items[i];
        if (hn->tier == object->tier) { /* all of a tier have one name */
            return name[0] == '\0' || strcmp(weft_hypernode_text(hn->tier_name), name) == 0;
        }
    }
    return false;
}

int weft_keep_check_tiers(struct weft_keep_judge *j)
{
    struct pairs live;
    struct pairs wanted;
    struct pairs foreign;
    read_pairs(j->input->live, j->options->instance, true, &live);
    read_pairs(j->input->wanted, NULL, true, &wanted);
    read_pairs(j->input->live, j->options->instance, false, &foreign);
    j->tiers.differ =
        !weft_keep_tiers_agree(j->input->live, j->input->wanted, j->options->instance);
    const int rc = j->tiers.differ ? refuse_tiers(j, &live, &wanted) : 0;
    if (!j->tiers.differ) {
        *weft_keep_freed_tiers(j->keep) = 0;
    }
    if (rc == 0) {
        refuse_clash(j, &live, &wanted, &foreign);
    }
    return rc;
}
