/* SPDX-License-Identifier: Apache-2.0 */
/* How much may change at once, what is held, and what of it somebody accepted. Must not put anybody
 * back. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/forest.h"
#include "controller/keep-internal.h"
#include "pkg/base/clock.h"
#include "pkg/base/str.h"

enum { TALLIES = WEFT_KEEP_SOURCES_MAX + 1, SHOWN = 8 };

/* ---- what a change is called ---- */

static int compare_names(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;
    return strcmp(*x, *y);
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return weft_hash64(hash, text, strlen(text) + 1); /* the NULs keep the pieces apart */
}

static uint64_t hash_chain(uint64_t hash, const struct weft_forest *forest, const char *node)
{
    size_t chain[WEFT_FOREST_TIERS_MAX];
    const size_t tiers = weft_forest_chain(forest, node, chain);
    for (size_t t = 0; t < tiers; t++) {
        hash = hash_text(hash, weft_forest_object(forest, chain[t])->name);
    }
    return hash_text(hash, ">");
}

static void put_hash(uint64_t hash, char text[WEFT_REFUSAL_HASH_MAX])
{
    (void)snprintf(text, WEFT_REFUSAL_HASH_MAX, "%016" PRIx64, hash);
}

/* The names of the nodes (by index) that are set; sorted, since no hash may depend on the order in
 * which Nodes come. The caller frees the array. */
static int sorted_names(const struct weft_keep_judge *j, const bool *nodes, const char ***ret_names,
                        size_t *ret_count)
{
    const char **names = weft_calloc(j->count + 1, sizeof(*names));
    if (names == NULL) {
        return -ENOMEM;
    }
    size_t count = 0;
    for (size_t i = 0; i < j->count; i++) {
        if (nodes[i]) {
            names[count++] = j->nodes[i].name;
        }
    }
    qsort(names, count, sizeof(*names), compare_names);
    *ret_names = names;
    *ret_count = count;
    return 0;
}

int weft_keep_name_change(const struct weft_keep_judge *j, const bool *nodes,
                          struct weft_refusal *refusal)
{
    weft_autofree const char **names = NULL;
    size_t count = 0;
    const int rc = sorted_names(j, nodes, &names, &count);
    if (rc < 0) {
        return rc;
    }
    uint64_t hash = hash_text(WEFT_HASH_SEED, weft_refusal_kind_name(refusal->kind));
    for (size_t i = 0; i < count; i++) {
        hash = hash_text(hash, names[i]);
        hash = hash_chain(hash, j->live, names[i]);
        hash = hash_chain(hash, j->wanted, names[i]);
    }
    put_hash(hash, refusal->hash);
    return 0;
}

int weft_keep_name_target(const struct weft_keep_judge *j, const bool *nodes,
                          struct weft_refusal *refusal)
{
    weft_autofree const char **names = NULL;
    size_t count = 0;
    const int rc = sorted_names(j, nodes, &names, &count);
    if (rc < 0) {
        return rc;
    }
    uint64_t hash = hash_text(WEFT_HASH_SEED, "to");
    hash = hash_text(hash, weft_refusal_kind_name(refusal->kind));
    for (size_t i = 0; i < count; i++) {
        hash = hash_text(hash, names[i]);
        hash = hash_chain(hash, j->wanted, names[i]);
    }
    put_hash(hash, refusal->target);
    return 0;
}

bool weft_keep_add_refusal(struct weft_keep_judge *j, const struct weft_refusal *refusal)
{
    struct weft_refusals *all = &j->result->refusals;
    size_t at = 0;
    if (weft_refusal_accepted(refusal, j->options->accepted, j->options->accepted_count, &at)) {
        j->result->used |= UINT64_C(1) << at;
        return true;
    }
    if (all->count < WEFT_REFUSALS_MAX) { /* see keep.h: always */
        all->items[all->count++] = *refusal;
    }
    return false;
}

/* ---- brakes ---- */

static bool too_many(size_t part, size_t whole, unsigned percent)
{
    return percent < 100 && part * 100 > whole * percent;
}

static void pull(const struct weft_keep_judge *j, size_t source)
{
    struct weft_keep_tally *tally = &j->result->tallies[source];
    if (tally->placed < j->options->min_nodes) {
        return;
    }
    tally->lost_trip = too_many(tally->lost, tally->placed, j->options->lost_percent);
    /* where tiers change their meaning everybody moves: that is a refusal of its own */
    tally->moved_trip = !j->tiers.differ &&
                        too_many(tally->moved, tally->placed, j->options->moved_percent) &&
                        !weft_keep_is_open(j->keep, j->input, source);
    tally->held = tally->lost_trip || tally->moved_trip;
}

static bool changes(const struct weft_keep_judge *j, size_t node)
{
    return weft_keep_is_lost(j->verdicts[node]) ||
           (j->verdicts[node] == WEFT_KEEP_MOVES && !j->tiers.differ);
}

static int name_held(const struct weft_keep_judge *j, size_t source, bool *held,
                     struct weft_refusal *refusal)
{
    weft_autofree bool *all = weft_calloc(j->count + 1, sizeof(*all));
    if (all == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < j->count; i++) {
        const bool of_source = weft_keep_tally_of(&j->nodes[i]) == source;
        held[i] = of_source && changes(j, i) && !j->freed[i];
        all[i] = of_source && !j->nodes[i].excluded;
    }
    const int rc = weft_keep_name_change(j, held, refusal);
    return rc < 0 ? rc : weft_keep_name_target(j, all, refusal);
}

static void describe_held(const struct weft_keep_judge *j, size_t source,
                          struct weft_refusal *refusal)
{
    const struct weft_keep_tally *t = &j->result->tallies[source];
    char who[48] = "the sources";
    if (source < WEFT_KEEP_SOURCES_MAX) {
        (void)snprintf(who, sizeof(who), "source %zu", source + 1);
    }
    (void)snprintf(
        refusal->text, sizeof(refusal->text),
        "Of %zu placed Nodes, %s would move %zu and drop %zu, more than the brakes allow "
        "(moved %u%%, lost %u%%). They stay where they are; Nodes that join are placed.",
        t->placed, who, t->moved, t->lost, j->options->moved_percent, j->options->lost_percent);
}

int weft_keep_free_nodes(struct weft_keep_judge *j, const bool *nodes)
{
    for (size_t i = 0; i < j->count; i++) {
        if (!nodes[i]) {
            continue;
        }
        const bool lost = weft_keep_is_lost(j->verdicts[i]);
        const uint64_t target = lost ? 0 : weft_keep_target(j->wanted, j->nodes[i].name);
        const int rc = weft_keep_free_node(j->keep, j->input, &j->nodes[i], target);
        if (rc < 0) {
            return rc;
        }
        j->freed[i] = true;
    }
    return 0;
}

int weft_keep_brake(struct weft_keep_judge *j)
{
    weft_autofree bool *held = weft_calloc(j->count + 1, sizeof(*held));
    if (held == NULL) {
        return -ENOMEM;
    }
    for (size_t source = 0; source < TALLIES; source++) {
        struct weft_keep_tally *tally = &j->result->tallies[source];
        struct weft_refusal refusal = {.kind = WEFT_REFUSAL_BRAKE};
        pull(j, source);
        if (!tally->held) {
            continue;
        }
        int rc = name_held(j, source, held, &refusal);
        if (rc < 0) {
            return rc;
        }
        describe_held(j, source, &refusal);
        memcpy(tally->hash, refusal.hash, sizeof(tally->hash));
        tally->accepted = weft_keep_add_refusal(j, &refusal);
        tally->held = !tally->accepted;
        j->result->refused = j->result->refused || tally->held;
        rc = tally->accepted ? weft_keep_free_nodes(j, held) : 0;
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* ---- moves that wait ---- */

static void describe_moves(const struct weft_keep_judge *j, const bool *nodes,
                           struct weft_refusal *refusal)
{
    char names[WEFT_REFUSAL_TEXT_MAX / 2] = "";
    size_t len = 0;
    size_t count = 0;
    for (size_t i = 0; i < j->count; i++) {
        if (!nodes[i]) {
            continue;
        }
        if (count++ < SHOWN && len < sizeof(names)) {
            const int n = snprintf(names + len, sizeof(names) - len, "%s%s", len > 0 ? ", " : "",
                                   j->nodes[i].name);
            len += n > 0 ? (size_t)n : 0;
        }
    }
    (void)snprintf(refusal->text, sizeof(refusal->text),
                   "%zu Node%s on which a gang runs wait%s up to %" PRId64 " s before moving: %s%s",
                   count, count == 1 ? "" : "s", count == 1 ? "s" : "",
                   j->options->move_delay / WEFT_NS_PER_S, names, count > SHOWN ? " …" : "");
}

int weft_keep_refuse_moves(struct weft_keep_judge *j, const bool *nodes, bool *ret_free)
{
    struct weft_refusal refusal = {.kind = WEFT_REFUSAL_MOVE};
    int rc = weft_keep_name_change(j, nodes, &refusal);
    if (rc < 0) {
        return rc;
    }
    describe_moves(j, nodes, &refusal);
    *ret_free = weft_keep_add_refusal(j, &refusal);
    return *ret_free ? weft_keep_free_nodes(j, nodes) : 0;
}
