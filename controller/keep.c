/* SPDX-License-Identifier: Apache-2.0 */
/* Judges each Node's change of place. Must not do I/O. */
#include "controller/keep.h"

#include <errno.h>
#include <string.h>

#include "controller/forest.h"
#include "controller/keep-internal.h"
#include "pkg/base/str.h"

void weft_keep_result_done(struct weft_keep_result *result)
{
    weft_hypernode_set_done(&result->set);
    weft_free(result->unknown);
    result->unknown = NULL;
    result->unknown_count = 0;
}

/* ---- judging ---- */

size_t weft_keep_tally_of(const struct weft_keep_node *node)
{
    return node->source < WEFT_KEEP_SOURCES_MAX ? node->source : WEFT_KEEP_SOURCES_MAX;
}

static const struct weft_hypernode *object_at(const struct weft_forest *forest, size_t item)
{
    return weft_forest_object(forest, item);
}

struct chain {
    size_t items[WEFT_FOREST_TIERS_MAX];
    size_t count;
};

static struct chain chain_of(const struct weft_forest *forest, const char *node)
{
    struct chain c;
    c.count = weft_forest_chain(forest, node, c.items);
    return c;
}

/* A chain of live that was cut short by a crash between two writes is being completed, not moved:
 * only tiers that both have are compared. */
static bool has_moved(const struct weft_keep_judge *j, const struct chain *from,
                      const struct chain *to)
{
    if (from->count > to->count) {
        return true;
    }
    for (size_t i = 0; i < from->count; i++) {
        if (strcmp(object_at(j->live, from->items[i])->name,
                   object_at(j->wanted, to->items[i])->name) != 0) {
            return true;
        }
    }
    return false;
}

static enum weft_keep_verdict judge_node(const struct weft_keep_judge *j,
                                         const struct weft_keep_node *node)
{
    const struct chain from = chain_of(j->live, node->name);
    const struct chain to = chain_of(j->wanted, node->name);
    const bool before = !node->fresh && from.count > 0;
    const bool after = to.count > 0;
    if (node->excluded) {
        return before ? WEFT_KEEP_LEAVES : WEFT_KEEP_ABSENT;
    }
    if (!before) {
        return after ? WEFT_KEEP_JOINS : WEFT_KEEP_ABSENT;
    }
    if (!after) {
        return WEFT_KEEP_LOST;
    }
    if (!has_moved(j, &from, &to)) {
        return WEFT_KEEP_STAYS;
    }
    const bool in_part =
        !j->tiers.differ && weft_keep_gap_holds(j->live, j->wanted, node->name, node->gaps);
    return in_part ? WEFT_KEEP_IN_PART : WEFT_KEEP_MOVES;
}

uint64_t weft_keep_target(const struct weft_forest *wanted, const char *node)
{
    size_t chain[WEFT_FOREST_TIERS_MAX];
    const size_t tiers = weft_forest_chain(wanted, node, chain);
    uint64_t hash = WEFT_HASH_SEED;
    for (size_t t = 0; t < tiers; t++) {
        const char *name = object_at(wanted, chain[t])->name;
        hash = weft_hash64(hash, name, strlen(name) + 1);
    }
    return hash != 0 ? hash : 1;
}

/* What was accepted before goes on, in however many passes, and counts for no brake. */
static int go_on(struct weft_keep_judge *j, size_t at)
{
    const struct weft_keep_node *node = &j->nodes[at];
    const bool lost = weft_keep_is_lost(j->verdicts[at]);
    if (!lost && j->verdicts[at] != WEFT_KEEP_MOVES) {
        return 0;
    }
    const uint64_t target = lost ? 0 : weft_keep_target(j->wanted, node->name);
    j->freed[at] = weft_keep_was_freed(j->keep, node->name, target);
    return j->freed[at] ? weft_keep_free_node(j->keep, j->input, node, target) : 0;
}

static int judge_all(struct weft_keep_judge *j)
{
    for (size_t i = 0; i < j->count; i++) {
        struct weft_keep_tally *tally = &j->result->tallies[weft_keep_tally_of(&j->nodes[i])];
        const enum weft_keep_verdict v = judge_node(j, &j->nodes[i]);
        j->verdicts[i] = v;
        const int rc = go_on(j, i);
        if (rc < 0) {
            return rc;
        }
        tally->joined += v == WEFT_KEEP_JOINS;
        tally->moved += v == WEFT_KEEP_MOVES && !j->freed[i];
        tally->lost += weft_keep_is_lost(v) && !j->freed[i];
        tally->placed += v == WEFT_KEEP_STAYS || v == WEFT_KEEP_MOVES || weft_keep_is_lost(v);
    }
    return 0;
}

/* ---- all ---- */

static int decide(struct weft_keep_judge *j, struct weft_error *err)
{
    int rc = weft_keep_begin(j->keep, j->input);
    rc = rc < 0 ? rc : weft_keep_check_tiers(j);
    rc = rc < 0 ? rc : judge_all(j);
    rc = rc < 0 ? rc : weft_keep_brake(j);
    if (rc < 0) {
        return weft_err_errno(err, -rc, "brakes");
    }
    j->result->frozen = j->result->frozen || (j->result->refused && j->tiers.differ);
    if (j->result->frozen) {
        return weft_forest_to_set(j->live, &j->result->set, err);
    }
    rc = weft_keep_settle(j);
    rc = rc < 0 ? rc : weft_keep_end(j->keep);
    if (rc < 0) {
        return weft_err_errno(err, -rc, "last places");
    }
    return weft_forest_to_set(j->wanted, &j->result->set, err);
}

int weft_keep_decide(struct weft_keep *keep, const struct weft_keep_input *input,
                     struct weft_keep_result *ret_result, struct weft_error *err)
{
    weft_auto(weft_keep_result_done) struct weft_keep_result result = {.due = INT64_MAX};
    weft_auto(weft_forest_free) struct weft_forest *before = NULL;
    weft_auto(weft_forest_free) struct weft_forest *after = NULL;
    int rc = weft_forest_new(input->live, input->options->instance, &before, err);
    if (rc == 0) {
        rc = weft_forest_new(input->wanted, NULL, &after, err);
    }
    if (rc < 0) {
        return rc;
    }
    weft_autofree enum weft_keep_verdict *verdicts =
        weft_calloc(input->node_count + 1, sizeof(*verdicts));
    weft_autofree bool *freed = weft_calloc(input->node_count + 1, sizeof(*freed));
    if (verdicts == NULL || freed == NULL) {
        return weft_err_nomem(err);
    }
    struct weft_keep_judge j = {.keep = keep,
                                .input = input,
                                .options = input->options,
                                .nodes = input->nodes,
                                .count = input->node_count,
                                .live = before,
                                .wanted = after,
                                .verdicts = verdicts,
                                .freed = freed,
                                .result = &result};
    rc = decide(&j, err);
    if (rc < 0) {
        return rc;
    }
    *ret_result = result;
    result = (struct weft_keep_result){0};
    return 0;
}
