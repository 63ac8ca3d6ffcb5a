/* SPDX-License-Identifier: Apache-2.0 */
/* Who of those that change their place waits, and how those are put back into the place that they
 * have. Must not judge whether they change it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "controller/forest.h"
#include "controller/keep-internal.h"
#include "pkg/base/clock.h"
#include "pkg/base/str.h"

/* how soon a move is looked at again: a source that finds all as it was does not say so */
#define SETTLE_NS (30 * WEFT_NS_PER_S)
/* …and a gang's end does not either */
#define GANG_NS (30 * WEFT_NS_PER_S)

/* ---- how long a Node has been missing ---- */

/* May this missing node be forgotten? Also moves result->due. */
static bool expired(const struct weft_keep_judge *j, const struct weft_keep_note *note)
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
static bool fits(const struct weft_keep_judge *j, const struct weft_hypernode *object)
{
    if (j->tiers.differ && !weft_keep_tier_wanted(j->input->wanted, object)) {
        return false;
    }
    const size_t same = weft_forest_find(j->wanted, object->name);
    if (same != WEFT_FOREST_NONE) {
        return weft_forest_object(j->wanted, same)->tier == object->tier;
    }
    return true;
}

static bool all_fit(const struct weft_keep_judge *j, const size_t *chain, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!fits(j, weft_forest_object(j->live, chain[i]))) {
            return false;
        }
    }
    return true;
}

/* Puts the node back into its chain of live. pin: the chain's objects get their old parents too;
 * else an object that is still wanted stays where it now belongs and only takes the node in. */
static int put_back(const struct weft_keep_judge *j, const char *node, bool pin)
{
    size_t chain[WEFT_FOREST_TIERS_MAX];
    const size_t count = weft_forest_chain(j->live, node, chain);
    size_t below = WEFT_FOREST_NONE;
    if (!all_fit(j, chain, count)) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        const struct weft_hypernode *object = weft_forest_object(j->live, chain[i]);
        const bool known = weft_forest_find(j->wanted, object->name) != WEFT_FOREST_NONE;
        size_t item = WEFT_FOREST_NONE;
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

static void count_kept(const struct weft_keep_judge *j, const char *node)
{
    struct weft_keep_result *result = j->result;
    if (result->kept < WEFT_ARRAY_LEN(result->kept_names)) {
        result->kept_names[result->kept] = node;
    }
    result->kept++;
}

/* One lost node that no brake holds: does it keep its place? If not and it was lost in part, its
 * padded chain is wanted already. */
static int settle_lost(const struct weft_keep_judge *j, size_t at, bool accepted)
{
    const struct weft_keep_node *node = &j->nodes[at];
    const bool in_part = j->verdicts[at] == WEFT_KEEP_IN_PART;
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

/* ---- moves that wait ---- */

static void due_by(const struct weft_keep_judge *j, int64_t at)
{
    j->result->due = at < j->result->due ? at : j->result->due;
}

/* A move that no brake holds: must it wait until another look agrees, or a whole one? *ret_waits
 * says so. */
static int wait_for_look(const struct weft_keep_judge *j, size_t at, bool *ret_waits)
{
    const struct weft_keep_node *node = &j->nodes[at];
    const struct weft_keep_note *note = NULL;
    *ret_waits = node->part;
    if (*ret_waits) {
        j->result->settling++;
        return 0;
    }
    if (j->options->settle < 2 || weft_keep_is_open(j->keep, j->input, weft_keep_tally_of(node))) {
        return 0;
    }
    const uint64_t target = weft_keep_target(j->wanted, node->name);
    const int rc = weft_keep_take_note(j->keep, j->input, node, target, &note);
    if (rc == 0 && note->times < j->options->settle) {
        j->result->settling++;
        due_by(j, j->options->now + SETTLE_NS);
        *ret_waits = true;
    }
    return rc;
}

/* A move that no look stands against: must it wait for the end of a gang on the node? A node of
 * which nobody knows yet waits for the answer. */
static int wait_for_gang(const struct weft_keep_judge *j, size_t at, bool *ret_waits)
{
    const struct weft_keep_node *node = &j->nodes[at];
    const struct weft_keep_note *note = NULL;
    *ret_waits = false;
    if (j->options->move_delay <= 0 || node->gang == WEFT_KEEP_GANG_NONE) {
        return 0;
    }
    const uint64_t target = weft_keep_target(j->wanted, node->name);
    const int rc = weft_keep_take_note(j->keep, j->input, node, target, &note);
    if (rc < 0 || j->options->now - note->since >= j->options->move_delay) {
        return rc;
    }
    if (node->gang == WEFT_KEEP_GANG_UNKNOWN) {
        j->result->unknown[j->result->unknown_count++] = node->name;
    }
    due_by(j, note->since + j->options->move_delay);
    due_by(j, j->options->now + GANG_NS);
    *ret_waits = true;
    return 0;
}

/* Finds who waits: pinned. */
static int find_waiting(struct weft_keep_judge *j, bool *pinned, bool *gangs)
{
    for (size_t i = 0; i < j->count; i++) {
        const enum weft_keep_verdict v = j->verdicts[i];
        const bool change = v == WEFT_KEEP_MOVES || weft_keep_is_lost(v);
        if (!change || j->freed[i]) {
            continue;
        }
        pinned[i] = j->result->tallies[weft_keep_tally_of(&j->nodes[i])].held;
        if (pinned[i] || v != WEFT_KEEP_MOVES || j->tiers.freed) {
            continue;
        }
        bool for_gang = false;
        int rc = wait_for_look(j, i, &pinned[i]);
        rc = rc == 0 && !pinned[i] ? wait_for_gang(j, i, &for_gang) : rc;
        if (rc < 0) {
            return rc;
        }
        j->result->waiting += for_gang;
        gangs[i] = for_gang && j->nodes[i].gang == WEFT_KEEP_GANG_RUNS;
        pinned[i] = pinned[i] || for_gang;
    }
    return 0;
}

/* What waits for a gang can be accepted, as a whole. */
static int let_accepted_go(struct weft_keep_judge *j, const bool *gangs, bool *pinned)
{
    bool any = false;
    bool accepted = false;
    for (size_t i = 0; i < j->count; i++) {
        any = any || gangs[i];
    }
    const int rc = any ? weft_keep_refuse_moves(j, gangs, &accepted) : 0;
    for (size_t i = 0; rc == 0 && accepted && i < j->count; i++) {
        pinned[i] = pinned[i] && !gangs[i];
        j->result->waiting -= gangs[i];
    }
    return rc;
}

/* Who waits is found before anybody is put back, which changes what is wanted. Pinned chains first:
 * what is merely kept follows whatever its objects' parents then are. */
static int pin(struct weft_keep_judge *j)
{
    weft_autofree bool *pinned = weft_calloc(j->count + 1, sizeof(*pinned));
    weft_autofree bool *gangs = weft_calloc(j->count + 1, sizeof(*gangs));
    j->result->unknown = weft_calloc(j->count + 1, sizeof(*j->result->unknown));
    if (pinned == NULL || gangs == NULL || j->result->unknown == NULL) {
        return -ENOMEM;
    }
    int rc = find_waiting(j, pinned, gangs);
    rc = rc == 0 ? let_accepted_go(j, gangs, pinned) : rc;
    for (size_t i = 0; i < j->count && rc == 0; i++) {
        rc = pinned[i] ? put_back(j, j->nodes[i].name, true) : 0;
    }
    return rc;
}

int weft_keep_settle(struct weft_keep_judge *j)
{
    int rc = pin(j);
    for (size_t i = 0; i < j->count && rc == 0; i++) {
        const bool held = j->result->tallies[weft_keep_tally_of(&j->nodes[i])].held;
        if (weft_keep_is_lost(j->verdicts[i]) && (!held || j->freed[i])) {
            rc = settle_lost(j, i, j->freed[i]);
        }
    }
    return rc;
}
