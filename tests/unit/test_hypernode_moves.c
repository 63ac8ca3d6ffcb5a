/* SPDX-License-Identifier: Apache-2.0 */
/* Random re-arrangements: every prefix of every plan must leave Volcano's scheduler alive and ready
 * (by the model) and the API server's objects a strict forest (by a check that shares nothing with
 * the planner); the end must be what was wanted; and plain writes in ascending order must fail the
 * same checks often, or the checks could not fail at all. */
#include <errno.h>
#include <stdio.h>

#include "pkg/hypernode/model.h"
#include "pkg/hypernode/plan.h"
#include "tests/unit/hypernode_util.h"
#include "tests/unit/unit.h"

enum { NODES_MAX = 200, LEAVES = 40, SPINES = 12, CORES = 3, RUNS = 2400, NOWHERE = -1 };

/* Where everything hangs: an index one tier up, or NOWHERE. */
struct world {
    int node_count;
    int node[NODES_MAX];
    int leaf[LEAVES];
    int spine[SPINES];
};

static int pick(uint64_t *rng, int limit)
{
    return (int)weft_random_below(rng, (uint64_t)limit);
}

static void make_world(struct world *w, uint64_t *rng)
{
    static const int sizes[] = {20, 60, 200};
    w->node_count = sizes[pick(rng, 3)];
    const int leaves = w->node_count == 20 ? 5 : w->node_count == 60 ? 12 : 25;
    const int spines = leaves / 3;
    for (int i = 0; i < w->node_count; i++) {
        w->node[i] = pick(rng, 20) == 0 ? NOWHERE : pick(rng, leaves);
    }
    for (int i = 0; i < LEAVES; i++) {
        w->leaf[i] = pick(rng, spines);
    }
    for (int i = 0; i < SPINES; i++) {
        w->spine[i] = pick(rng, CORES);
    }
}

/* ---- what may happen to a cluster ---- */

static void move_nodes(struct world *w, uint64_t *rng)
{
    for (int i = 0; i < w->node_count / 10 + 1; i++) {
        w->node[pick(rng, w->node_count)] = pick(rng, LEAVES / 2);
    }
}

static void move_groups(struct world *w, uint64_t *rng)
{
    for (int i = 0; i < LEAVES / 5; i++) {
        w->leaf[pick(rng, LEAVES)] = pick(rng, SPINES);
    }
    w->spine[pick(rng, SPINES)] = pick(rng, CORES);
    w->spine[pick(rng, SPINES)] = pick(rng, CORES);
}

static void drop_nodes(struct world *w, uint64_t *rng)
{
    for (int i = 0; i < w->node_count / 20 + 1; i++) {
        w->node[pick(rng, w->node_count)] = NOWHERE;
    }
}

static void merge_leaves(struct world *w, uint64_t *rng)
{
    const int from = pick(rng, LEAVES / 2);
    const int to = pick(rng, LEAVES / 2);
    for (int i = 0; i < w->node_count; i++) {
        w->node[i] = w->node[i] == from ? to : w->node[i];
    }
}

static void split_leaf(struct world *w, uint64_t *rng)
{
    const int from = pick(rng, LEAVES / 2);
    const int to = pick(rng, LEAVES);
    for (int i = 0; i < w->node_count; i++) {
        w->node[i] = w->node[i] == from && (i & 1) != 0 ? to : w->node[i];
    }
}

/* Two leaves change all their nodes, two spines all their leaves: everything would be empty on the
 * way. */
static void swap_contents(struct world *w, uint64_t *rng)
{
    const int a = pick(rng, LEAVES / 2);
    const int b = pick(rng, LEAVES / 2);
    for (int i = 0; i < w->node_count; i++) {
        w->node[i] = w->node[i] == a ? b : w->node[i] == b ? a : w->node[i];
    }
    const int c = pick(rng, SPINES / 2);
    const int d = pick(rng, SPINES / 2);
    for (int i = 0; i < LEAVES; i++) {
        w->leaf[i] = w->leaf[i] == c ? d : w->leaf[i] == d ? c : w->leaf[i];
    }
}

/* Leaves pass their nodes round, a ring of singletons among them. */
static void rotate(struct world *w, uint64_t *rng)
{
    const int first = pick(rng, LEAVES / 2);
    const int count = 2 + pick(rng, 4);
    for (int i = 0; i < w->node_count; i++) {
        if (w->node[i] >= first && w->node[i] < first + count) {
            w->node[i] = first + (w->node[i] - first + 1) % count;
        }
    }
}

static void swap_cores(struct world *w, uint64_t *rng)
{
    const int by = 1 + pick(rng, CORES - 1);
    for (int i = 0; i < SPINES; i++) {
        w->spine[i] = (w->spine[i] + by) % CORES;
    }
}

static void empty_all(struct world *w, uint64_t *rng)
{
    const int keep = pick(rng, 2);
    for (int i = 0; i < w->node_count; i++) {
        w->node[i] = keep != 0 && i % 7 == 0 ? w->node[i] : NOWHERE;
    }
}

static void mutate(struct world *w, uint64_t *rng)
{
    static void (*const kinds[])(struct world *, uint64_t *) = {
        move_nodes,    move_groups, drop_nodes, merge_leaves, split_leaf,
        swap_contents, rotate,      swap_cores, empty_all};
    const int count = 1 + pick(rng, 4);
    for (int i = 0; i < count; i++) {
        /* emptying all but rarely, or little else would be left to see */
        const int kind = pick(rng, 40) == 0 ? 8 : pick(rng, 8);
        kinds[kind](w, rng);
    }
}

/* ---- the world as HyperNodes ---- */

static void add_members(struct weft_hypernode_set *set, const char *prefix, int count, int64_t tier,
                        const int *below, int below_count, const bool *below_there,
                        const char *below_prefix, bool *ret_there)
{
    for (int g = 0; g < count; g++) {
        char text[NODES_MAX * 16] = "";
        size_t len = 0;
        for (int i = 0; i < below_count; i++) {
            if (below[i] == g && (below_there == NULL || below_there[i])) {
                len += (size_t)snprintf(text + len, sizeof(text) - len, " %s%03d", below_prefix, i);
            }
        }
        ret_there[g] = len > 0;
        if (len > 0) {
            char name[32];
            (void)snprintf(name, sizeof(name), "%s%03d", prefix, g);
            hn_put(set, name, tier, text);
        }
    }
}

static void make_set(const struct world *w, struct weft_hypernode_set *set)
{
    bool leaves[LEAVES];
    bool spines[SPINES];
    bool cores[CORES];
    add_members(set, "leaf", LEAVES, 1, w->node, w->node_count, NULL, "n:node", leaves);
    add_members(set, "spine", SPINES, 2, w->leaf, LEAVES, leaves, "h:leaf", spines);
    add_members(set, "core", CORES, 3, w->spine, SPINES, spines, "h:spine", cores);
}

/* ---- the objects as the API server holds them ---- */

/* Is anything listed twice, by nobody that is there, or not there? O(n²), on purpose naive. */
static bool is_forest(const struct weft_hypernode_set *set)
{
    for (size_t a = 0; a < set->count; a++) {
        const struct weft_hypernode *x = &set->items[a];
        if (x->member_count == 0) {
            return false;
        }
        for (size_t i = 0; i < x->member_count; i++) {
            const struct weft_member *m = &x->members[i];
            if (m->type == WEFT_MEMBER_HYPERNODE && weft_hypernode_set_get(set, m->name) == NULL) {
                return false;
            }
            for (size_t b = 0; b < set->count; b++) {
                if (b != a && weft_hypernode_lists(&set->items[b], m->type, m->name)) {
                    return false;
                }
            }
        }
    }
    return true;
}

/* Carries a step out. false: the API server would have refused it. */
static bool perform(struct weft_hypernode_set *set, const struct weft_step *step)
{
    const bool there = weft_hypernode_set_get(set, step->object.name) != NULL;
    if (step->kind == WEFT_STEP_DELETE) {
        return weft_hypernode_set_remove(set, step->object.name);
    }
    if (there == (step->kind == WEFT_STEP_CREATE)) {
        return false;
    }
    weft_auto(weft_hypernode_done) struct weft_hypernode hn = {0};
    return weft_hypernode_copy(&step->object, &hn) == 0 && weft_hypernode_set_put(set, &hn) == 0;
}

static int play(struct weft_model *model, const struct weft_step *step)
{
    return step->kind == WEFT_STEP_DELETE ? weft_model_delete(model, step->object.name)
                                          : weft_model_apply(model, &step->object);
}

static bool is_fine(int outcome)
{
    return outcome == WEFT_MODEL_OK || outcome == WEFT_MODEL_LOOSE;
}

/* Does the scheduler see just what the objects say? */
static bool model_agrees(const struct weft_model *model, const struct weft_hypernode_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct weft_hypernode *hn = &set->items[i];
        for (size_t k = 0; k < hn->member_count; k++) {
            const struct weft_member *m = &hn->members[k];
            const bool held = m->type == WEFT_MEMBER_NODE
                                  ? weft_model_has_node(model, hn->name, m->name)
                                  : weft_model_links(model, hn->name, m->name) &&
                                        strcmp(weft_model_parent(model, m->name), hn->name) == 0;
            if (!held) {
                return false;
            }
        }
    }
    return true;
}

static bool same_sets(const struct weft_hypernode_set *a, const struct weft_hypernode_set *b)
{
    weft_autofree char *x = hn_dump(a);
    weft_autofree char *y = hn_dump(b);
    return strcmp(x, y) == 0;
}

struct tally {
    size_t writes;
    size_t plain_writes;
    size_t plain_bad_runs;
    size_t plain_bad_states;
    size_t replaced; /* CREATEs after a DELETE of the same name */
};

/* Plays the plan; says what went wrong. */
static const char *check_plan(const struct weft_hypernode_set *current,
                              const struct weft_hypernode_set *desired, struct tally *t)
{
    const struct weft_plan_options options = {.instance = "test", .check = true};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set now = {0};
    weft_auto(weft_model_free) struct weft_model *model = weft_model_new(true);
    struct weft_error err = {0};
    if (weft_plan_build(current, desired, &options, &plan, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        return "no plan";
    }
    if (model == NULL || weft_hypernode_set_copy(current, &now) < 0 ||
        weft_model_load(model, current) < 0) {
        return "no memory";
    }
    for (size_t i = 0; i < plan.step_count; i++) {
        const struct weft_step *s = &plan.steps[i];
        t->replaced += s->kind == WEFT_STEP_CREATE && s->previous != WEFT_STEP_NONE;
        if (!perform(&now, s)) {
            return "a step that the API server would refuse";
        }
        if (!is_forest(&now)) {
            return "no forest on the way";
        }
        if (!is_fine(play(model, s))) {
            (void)fprintf(stderr, "step %zu: %s\n", i, weft_model_text(model));
            return "the model refuses a step";
        }
    }
    t->writes += plan.step_count;
    if (!same_sets(&now, desired) || !model_agrees(model, &now)) {
        return "not what was wanted";
    }
    weft_auto(weft_plan_done) struct weft_plan again = {0};
    if (weft_plan_build(&now, desired, &options, &again, &err) < 0 || again.step_count != 0) {
        return "a second plan has steps";
    }
    return plan.finding_count == 0 ? NULL : "findings";
}

/* Ascending writes of what differs, then deletes: what a simple controller does. */
static void play_plain(const struct weft_hypernode_set *current,
                       const struct weft_hypernode_set *desired, struct tally *t)
{
    weft_auto(weft_model_free) struct weft_model *model = weft_model_new(false);
    size_t bad = 0;
    if (model == NULL || weft_model_load(model, current) < 0) {
        CU_FAIL("no memory");
        return;
    }
    for (int64_t tier = 1; tier <= 3; tier++) {
        for (size_t i = 0; i < desired->count; i++) {
            const struct weft_hypernode *hn = &desired->items[i];
            const struct weft_hypernode *cur = weft_hypernode_set_get(current, hn->name);
            if (hn->tier == tier && (cur == NULL || !weft_hypernode_same(cur, hn))) {
                bad += weft_model_apply(model, hn) >= WEFT_MODEL_ORPHAN;
                t->plain_writes++;
            }
        }
    }
    for (size_t i = 0; i < current->count; i++) {
        if (weft_hypernode_set_get(desired, current->items[i].name) == NULL) {
            bad += weft_model_delete(model, current->items[i].name) >= WEFT_MODEL_ORPHAN;
            t->plain_writes++;
        }
    }
    t->plain_bad_states += bad;
    t->plain_bad_runs += bad > 0;
}

static void random_moves(void)
{
    struct tally t = {0};
    unsigned failed = 0;
    for (uint64_t seed = 1; seed <= RUNS && failed < 3; seed++) {
        uint64_t rng = seed;
        struct world w;
        make_world(&w, &rng);
        weft_auto(weft_hypernode_set_done) struct weft_hypernode_set before = {0};
        weft_auto(weft_hypernode_set_done) struct weft_hypernode_set after = {0};
        make_set(&w, &before);
        mutate(&w, &rng);
        make_set(&w, &after);
        const char *what = check_plan(&before, &after, &t);
        if (what != NULL) {
            (void)fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, what);
            failed++;
        }
        play_plain(&before, &after, &t);
    }
    CHECK_INT(failed, 0);
    (void)printf("%d re-arrangements: %zu writes (%zu objects made anew), plain order %zu writes "
                 "with %zu bad states in %zu runs ... ",
                 RUNS, t.writes, t.replaced, t.plain_writes, t.plain_bad_states, t.plain_bad_runs);
    CHECK(t.replaced > 100);
    CHECK(t.plain_bad_runs > RUNS / 4);
}

/* From nothing and back to nothing: each object once. */
static void build_and_tear_down(void)
{
    uint64_t rng = 7;
    struct world w;
    make_world(&w, &rng);
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set none = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set all = {0};
    make_set(&w, &all);
    struct tally t = {0};
    CHECK(check_plan(&none, &all, &t) == NULL);
    CHECK_INT(t.writes, all.count);
    t.writes = 0;
    CHECK(check_plan(&all, &none, &t) == NULL);
    CHECK_INT(t.writes, all.count);
}

WEFT_SUITE(hypernode_moves, {"random moves", random_moves},
           {"build and tear down", build_and_tear_down})
