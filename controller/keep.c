/* SPDX-License-Identifier: Apache-2.0 */
/* Judges each Node's change of place, pulls the brakes, and puts back who stays. Must not do I/O.
 */
#include "controller/keep.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/forest.h"
#include "controller/keep-internal.h"
#include "pkg/base/clock.h"
#include "pkg/base/str.h"

enum { TALLIES = WEFT_KEEP_SOURCES_MAX + 1 };

/* how soon a move is looked at again: a source that finds all as it was does not say so */
#define SETTLE_NS (30 * WEFT_NS_PER_S)

/* IN_PART: what is left of the node's evidence agrees with its last place */
enum verdict { STAYS, JOINS, MOVES, LOST, IN_PART, ABSENT, LEAVES };

/* One call's state, so that its steps take one argument. */
struct judge {
    struct weft_keep *keep;
    const struct weft_keep_input *input;
    const struct weft_keep_options *options;
    const struct weft_keep_node *nodes;
    size_t count;
    struct weft_forest *live;
    struct weft_forest *wanted;
    enum verdict *verdicts;
    struct weft_keep_result *result;
};

void weft_keep_result_done(struct weft_keep_result *result)
{
    weft_hypernode_set_done(&result->set);
}

/* ---- judging ---- */

static size_t tally_of(const struct weft_keep_node *node)
{
    return node->source < WEFT_KEEP_SOURCES_MAX ? node->source : WEFT_KEEP_SOURCES_MAX;
}

static const struct weft_hypernode *object_at(const struct weft_forest *forest, size_t item)
{
    return weft_forest_object(forest, item);
}

/* A chain of live that was cut short by a crash between two writes is being completed, not moved:
 * only tiers that both have are compared. */
static bool has_moved(const struct judge *j, const char *node)
{
    size_t from[WEFT_FOREST_TIERS_MAX];
    size_t to[WEFT_FOREST_TIERS_MAX];
    const size_t from_count = weft_forest_chain(j->live, node, from);
    const size_t to_count = weft_forest_chain(j->wanted, node, to);
    if (from_count > to_count) {
        return true;
    }
    for (size_t i = 0; i < from_count; i++) {
        if (strcmp(object_at(j->live, from[i])->name, object_at(j->wanted, to[i])->name) != 0) {
            return true;
        }
    }
    return false;
}

static enum verdict judge_node(const struct judge *j, const struct weft_keep_node *node)
{
    const bool before = !node->fresh && weft_forest_home(j->live, node->name) != WEFT_FOREST_NONE;
    const bool after = weft_forest_home(j->wanted, node->name) != WEFT_FOREST_NONE;
    if (node->excluded) {
        return before ? LEAVES : ABSENT;
    }
    if (!before) {
        return after ? JOINS : ABSENT;
    }
    if (!after) {
        return LOST;
    }
    if (!has_moved(j, node->name)) {
        return STAYS;
    }
    return weft_keep_gap_holds(j->live, j->wanted, node->name, node->gaps) ? IN_PART : MOVES;
}

static bool is_lost(enum verdict v)
{
    return v == LOST || v == IN_PART;
}

static void judge_all(const struct judge *j)
{
    for (size_t i = 0; i < j->count; i++) {
        struct weft_keep_tally *tally = &j->result->tallies[tally_of(&j->nodes[i])];
        const enum verdict v = judge_node(j, &j->nodes[i]);
        j->verdicts[i] = v;
        tally->joined += v == JOINS;
        tally->moved += v == MOVES;
        tally->lost += is_lost(v);
        tally->placed += v == STAYS || v == MOVES || is_lost(v);
    }
}

/* ---- brakes ---- */

static bool too_many(size_t part, size_t whole, unsigned percent)
{
    return percent < 100 && part * 100 > whole * percent;
}

static void pull_brakes(const struct judge *j)
{
    for (size_t i = 0; i < TALLIES; i++) {
        struct weft_keep_tally *tally = &j->result->tallies[i];
        if (tally->placed < j->options->min_nodes) {
            continue;
        }
        tally->lost_trip = too_many(tally->lost, tally->placed, j->options->lost_percent);
        tally->moved_trip = too_many(tally->moved, tally->placed, j->options->moved_percent) &&
                            !weft_keep_is_open(j->keep, j->input, i);
        tally->held = tally->lost_trip || tally->moved_trip;
    }
}

static int compare_lines(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;
    return strcmp(*x, *y);
}

/* The hash names what was held: each Node and where it should have gone. It must not depend on the
 * order of the Nodes. */
static int hash_held(const struct judge *j)
{
    weft_autofree size_t *held = weft_calloc(j->count + 1, sizeof(*held));
    weft_autofree const char **names = weft_calloc(j->count + 1, sizeof(*names));
    if (held == NULL || names == NULL) {
        return -ENOMEM;
    }
    size_t count = 0;
    for (size_t i = 0; i < j->count; i++) {
        const bool change = j->verdicts[i] == MOVES || is_lost(j->verdicts[i]);
        if (change && j->result->tallies[tally_of(&j->nodes[i])].held) {
            names[count++] = j->nodes[i].name;
        }
    }
    j->result->hash[0] = '\0';
    if (count == 0) {
        return 0;
    }
    qsort(names, count, sizeof(*names), compare_lines);
    uint64_t hash = WEFT_HASH_SEED;
    for (size_t i = 0; i < count; i++) {
        size_t chain[WEFT_FOREST_TIERS_MAX];
        const size_t tiers = weft_forest_chain(j->wanted, names[i], chain);
        hash = weft_hash64(hash, names[i], strlen(names[i]) + 1);
        for (size_t t = 0; t < tiers; t++) {
            const char *to = object_at(j->wanted, chain[t])->name;
            hash = weft_hash64(hash, to, strlen(to) + 1);
        }
    }
    (void)snprintf(j->result->hash, sizeof(j->result->hash), "%016" PRIx64, hash);
    return 0;
}

static void release_accepted(const struct judge *j)
{
    struct weft_keep_result *result = j->result;
    const char *accepted = j->options->accepted;
    const bool free_it =
        accepted != NULL && result->hash[0] != '\0' && strcmp(accepted, result->hash) == 0;
    for (size_t i = 0; i < TALLIES; i++) {
        struct weft_keep_tally *tally = &result->tallies[i];
        tally->accepted = tally->held && free_it;
        tally->held = tally->held && !free_it;
        result->refused = result->refused || tally->held;
    }
}

/* ---- how long a Node has been missing ---- */

/* May this missing node be forgotten? Also moves result->due. */
static bool expired(const struct judge *j, const struct weft_keep_note *note)
{
    const struct weft_keep_options *o = j->options;
    if (o->forget_after == WEFT_KEEP_NEVER) {
        return false;
    }
    const int64_t wait = o->forget_after > o->period ? o->forget_after : o->period;
    const int64_t at = note->since + wait;
    if (o->now >= at && note->times >= o->snapshots) {
        return true;
    }
    /* enough time but too few passes: the next one soon, not at once */
    const int64_t due = o->now < at ? at : o->now + o->period / (int64_t)(o->snapshots + 1) + 1;
    if (due < j->result->due) {
        j->result->due = due;
    }
    return false;
}

/* ---- putting back ---- */

/* Is the live object's tier the same one in what is wanted? A tier whose number or name changed has
 * no place for an old object. */
static bool fits(const struct judge *j, const struct weft_hypernode *object)
{
    const size_t same = weft_forest_find(j->wanted, object->name);
    if (same != WEFT_FOREST_NONE) {
        return object_at(j->wanted, same)->tier == object->tier;
    }
    return true;
}

/* Puts the node back into its chain of live. pin: the chain's objects get their old parents too;
 * else an object that is still wanted stays where it now belongs and only takes the node in. */
static int put_back(const struct judge *j, const char *node, bool pin)
{
    size_t chain[WEFT_FOREST_TIERS_MAX];
    const size_t count = weft_forest_chain(j->live, node, chain);
    size_t below = WEFT_FOREST_NONE;
    for (size_t i = 0; i < count; i++) {
        const struct weft_hypernode *object = object_at(j->live, chain[i]);
        const bool known = weft_forest_find(j->wanted, object->name) != WEFT_FOREST_NONE;
        size_t item = WEFT_FOREST_NONE;
        if (!fits(j, object)) {
            return 0;
        }
        int rc = weft_forest_add(j->wanted, object, &item);
        if (rc < 0) {
            return rc;
        }
        rc = below == WEFT_FOREST_NONE ? weft_forest_put(j->wanted, node, item)
                                       : weft_forest_hang(j->wanted, below, item);
        if (rc < 0 && rc != -EINVAL) {
            return rc;
        }
        if (known && !pin) {
            return 0;
        }
        below = item;
    }
    return 0;
}

static void count_kept(const struct judge *j, const char *node)
{
    struct weft_keep_result *result = j->result;
    if (result->kept < WEFT_ARRAY_LEN(result->kept_names)) {
        result->kept_names[result->kept] = node;
    }
    result->kept++;
}

/* One lost node that no brake holds: does it keep its place? If not and it was lost in part, its
 * padded chain is wanted already. */
static int settle_lost(const struct judge *j, size_t at, bool accepted)
{
    const struct weft_keep_node *node = &j->nodes[at];
    const bool in_part = j->verdicts[at] == IN_PART;
    const struct weft_keep_note *note = NULL;
    if (node->selected && !accepted) {
        int rc = weft_keep_take_note(j->keep, j->input, node, 0, &note);
        if (rc < 0) {
            return rc;
        }
        if (!expired(j, note)) {
            count_kept(j, node->name);
            return in_part ? weft_keep_put_back_part(j->live, j->wanted, node->name, node->gaps)
                           : put_back(j, node->name, false);
        }
    }
    j->result->dropped++;
    return 0;
}

/* Names the place at which the node is wanted; never 0. */
static uint64_t target_of(const struct judge *j, const char *node)
{
    size_t chain[WEFT_FOREST_TIERS_MAX];
    const size_t tiers = weft_forest_chain(j->wanted, node, chain);
    uint64_t hash = WEFT_HASH_SEED;
    for (size_t t = 0; t < tiers; t++) {
        const char *name = object_at(j->wanted, chain[t])->name;
        hash = weft_hash64(hash, name, strlen(name) + 1);
    }
    return hash != 0 ? hash : 1;
}

/* A move that no brake holds: must it wait until another look agrees, or a whole one? *ret_waits
 * says so. */
static int wait_for_move(const struct judge *j, size_t at, bool *ret_waits)
{
    const struct weft_keep_node *node = &j->nodes[at];
    const size_t source = tally_of(node);
    const struct weft_keep_note *note = NULL;
    *ret_waits = node->part && !j->result->tallies[source].accepted;
    if (*ret_waits) {
        j->result->settling++;
        return 0;
    }
    if (j->options->settle < 2 || j->result->tallies[source].accepted ||
        weft_keep_is_open(j->keep, j->input, source)) {
        return 0;
    }
    const int rc = weft_keep_take_note(j->keep, j->input, node, target_of(j, node->name), &note);
    if (rc == 0 && note->times < j->options->settle) {
        const int64_t due = j->options->now + SETTLE_NS;
        j->result->settling++;
        j->result->due = due < j->result->due ? due : j->result->due;
        *ret_waits = true;
    }
    return rc;
}

/* Who waits is found before anybody is put back, which changes what is wanted. */
static int pin(const struct judge *j, bool *pinned)
{
    for (size_t i = 0; i < j->count; i++) {
        const enum verdict v = j->verdicts[i];
        pinned[i] = (v == MOVES || is_lost(v)) && j->result->tallies[tally_of(&j->nodes[i])].held;
        if (v == MOVES && !pinned[i]) {
            const int rc = wait_for_move(j, i, &pinned[i]);
            if (rc < 0) {
                return rc;
            }
        }
    }
    for (size_t i = 0; i < j->count; i++) {
        const int rc = pinned[i] ? put_back(j, j->nodes[i].name, true) : 0;
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* Pinned chains first: what is merely kept follows whatever its objects' parents then are. */
static int settle(const struct judge *j)
{
    weft_autofree bool *pinned = weft_calloc(j->count + 1, sizeof(*pinned));
    int pins = pinned != NULL ? pin(j, pinned) : -ENOMEM;
    if (pins < 0) {
        return pins;
    }
    for (size_t i = 0; i < j->count; i++) {
        const struct weft_keep_tally *tally = &j->result->tallies[tally_of(&j->nodes[i])];
        if (is_lost(j->verdicts[i]) && !tally->held) {
            int rc = settle_lost(j, i, tally->accepted);
            if (rc < 0) {
                return rc;
            }
        }
    }
    return 0;
}

/* All of ours as they are. */
static int copy_ours(const struct weft_hypernode_set *live, const char *instance,
                     struct weft_hypernode_set *ret_set)
{
    for (size_t i = 0; i < live->count; i++) {
        if (!weft_hypernode_is_ours(&live->items[i], instance)) {
            continue;
        }
        weft_auto(weft_hypernode_done) struct weft_hypernode copy = {0};
        int rc = weft_hypernode_copy(&live->items[i], &copy);
        if (rc == 0) {
            rc = weft_hypernode_set_put(ret_set, &copy);
        }
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int decide(struct judge *j, const struct weft_hypernode_set *live,
                  const struct weft_hypernode_set *wanted, struct weft_error *err)
{
    if (weft_keep_begin(j->keep, j->input) < 0) {
        return weft_err_nomem(err);
    }
    judge_all(j);
    pull_brakes(j);
    int rc = hash_held(j);
    if (rc < 0) {
        return weft_err_errno(err, -rc, "brakes");
    }
    release_accepted(j);
    if (j->result->refused && !weft_keep_tiers_agree(live, wanted, j->options->instance)) {
        j->result->frozen = true;
        rc = copy_ours(live, j->options->instance, &j->result->set);
        return rc < 0 ? weft_err_errno(err, -rc, "HyperNodes") : 0;
    }
    rc = settle(j);
    if (rc == 0) {
        rc = weft_keep_end(j->keep);
    }
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
    weft_autofree enum verdict *verdicts = weft_calloc(input->node_count + 1, sizeof(*verdicts));
    if (verdicts == NULL) {
        return weft_err_nomem(err);
    }
    struct judge j = {.keep = keep,
                      .input = input,
                      .options = input->options,
                      .nodes = input->nodes,
                      .count = input->node_count,
                      .live = before,
                      .wanted = after,
                      .verdicts = verdicts,
                      .result = &result};
    rc = decide(&j, input->live, input->wanted, err);
    if (rc < 0) {
        return rc;
    }
    *ret_result = result;
    result = (struct weft_keep_result){0};
    return 0;
}
