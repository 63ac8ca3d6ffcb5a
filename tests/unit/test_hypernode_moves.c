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

enum {
    NODES_MAX = 200,
    LEAVES = 40,
    SPINES = 12,
    CORES = 3,
    RUNS = 2400,
    LONG_RUNS = 88000 /* a million writes and more */,
    NOWHERE = -1
};

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

/* Whatever the order in which steps that may be under way together come to the server, no state on
 * the way may be worse than before. *ret_moved counts the steps that were done in another order. */
static const char *check_any_order(const struct weft_hypernode_set *current,
                                   const struct weft_hypernode_set *desired, uint64_t *rng,
                                   size_t *ret_moved)
{
    const struct weft_plan_options options = {.instance = "test"};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    struct weft_error err = {0};
    if (weft_plan_build(current, desired, &options, &plan, &err) < 0) {
        return "no plan";
    }
    for (size_t first = 0, end = 1; first < plan.step_count; first = end, end++) {
        while (weft_plan_overlaps(&plan, end)) {
            end++;
        }
        for (size_t i = end - 1; i > first; i--) {
            const size_t other = first + (size_t)pick(rng, (int)(i - first + 1));
            const struct weft_step step = plan.steps[i];
            plan.steps[i] = plan.steps[other];
            plan.steps[other] = step;
            *ret_moved += other != i;
        }
    }
    if (weft_plan_check(current, &plan, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        return "not sound in another order of what may overlap";
    }
    return NULL;
}

struct tally {
    size_t writes;
    size_t moved; /* steps that were done in another order */
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
    const char *at_length = getenv("WEFT_LONG");
    const bool is_long = at_length != NULL && at_length[0] != '\0';
    const size_t runs = is_long ? LONG_RUNS : RUNS;
    for (uint64_t seed = 1; seed <= runs && failed < 3; seed++) {
        uint64_t rng = seed;
        struct world w;
        make_world(&w, &rng);
        weft_auto(weft_hypernode_set_done) struct weft_hypernode_set before = {0};
        weft_auto(weft_hypernode_set_done) struct weft_hypernode_set after = {0};
        make_set(&w, &before);
        mutate(&w, &rng);
        make_set(&w, &after);
        const struct weft_hypernode_set none = {0}; /* from there most may overlap */
        const char *what = check_plan(&before, &after, &t);
        what = what != NULL
                   ? what
                   : check_any_order(seed % 8 == 0 ? &none : &before, &after, &rng, &t.moved);
        if (what != NULL) {
            (void)fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, what);
            failed++;
        }
        play_plain(&before, &after, &t);
    }
    CHECK_INT(failed, 0);
    (void)printf("%zu re-arrangements: %zu writes (%zu objects made anew), plain order %zu writes "
                 "with %zu bad states in %zu runs ... ",
                 runs, t.writes, t.replaced, t.plain_writes, t.plain_bad_states, t.plain_bad_runs);
    CHECK(t.replaced > 100);
    CHECK(t.moved > runs);
    CHECK(t.plain_bad_runs > runs / 4);
    CHECK(!is_long || t.writes >= 1000000);
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

/* ---- states that no plan of ours made ---- */

/* What hands, other controllers and half-done deletes leave: ours and others', children listed
 * twice or missing, nodes twice, patterns; but parents above children, as all who know Volcano
 * write them. */
static void make_messy(struct weft_hypernode_set *set, uint64_t *rng)
{
    static const char *const kinds[] = {"leaf", "spine", "core"};
    static const char *const below[] = {"n:node", "h:leaf", "h:spine"};
    static const int limits[] = {12, 6, 4};
    const int count = 3 + pick(rng, 14);
    for (int i = 0; i < count; i++) {
        const int kind = pick(rng, 7);
        const int level = kind < 4 ? 0 : kind < 6 ? 1 : 2;
        char name[32];
        char text[512] = "";
        size_t len = 0;
        const int members = 1 + pick(rng, 4);
        for (int k = 0; k < members; k++) {
            const bool pattern = pick(rng, 20) == 0;
            len += (size_t)snprintf(text + len, sizeof(text) - len,
                                    pattern ? " re:^x%s%d$" : " %s%03d",
                                    pattern ? "" : below[level], pick(rng, limits[level]));
        }
        const bool foreign = pick(rng, 5) == 0;
        (void)snprintf(name, sizeof(name), "%s%03d",
                       foreign && pick(rng, 2) == 0 ? "other" : kinds[level], pick(rng, 6));
        (foreign ? hn_put_foreign : hn_put)(set, name, level + 1, text);
    }
}

static void make_small_forest(struct weft_hypernode_set *set, uint64_t *rng)
{
    struct world w;
    make_world(&w, rng);
    w.node_count = 12;
    for (int i = 0; i < w.node_count; i++) {
        w.node[i] = pick(rng, 8) == 0 ? NOWHERE : pick(rng, 6);
    }
    for (int i = 0; i < LEAVES; i++) {
        w.leaf[i] = pick(rng, 4);
    }
    for (int i = 0; i < SPINES; i++) {
        w.spine[i] = pick(rng, 2);
    }
    make_set(&w, set);
}

static bool is_foreign(const struct weft_hypernode_set *set, const char *name)
{
    const struct weft_hypernode *hn = weft_hypernode_set_get(set, name);
    return hn != NULL && !weft_hypernode_is_ours(hn, "test");
}

static bool foreign_lists(const struct weft_hypernode_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++) {
        if (is_foreign(set, set->items[i].name) &&
            weft_hypernode_lists(&set->items[i], WEFT_MEMBER_HYPERNODE, name)) {
            return true;
        }
    }
    return false;
}

static bool is_listed(const struct weft_hypernode_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++) {
        if (weft_hypernode_lists(&set->items[i], WEFT_MEMBER_HYPERNODE, name)) {
            return true;
        }
    }
    return false;
}

/* The rules that hold whatever there was before. */
static const char *check_step(const struct weft_hypernode_set *now, const struct weft_step *s)
{
    if (is_foreign(now, s->object.name)) {
        return "another owner's object is written";
    }
    if (s->kind == WEFT_STEP_DELETE) {
        return is_listed(now, s->object.name) ? "what is listed is deleted" : NULL;
    }
    return s->object.member_count == 0 ? "an object without members" : NULL;
}

static const char *check_messy(const struct weft_hypernode_set *current,
                               const struct weft_hypernode_set *desired, size_t *ret_held)
{
    const struct weft_plan_options options = {.instance = "test", .check = true};
    weft_auto(weft_plan_done) struct weft_plan plan = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set now = {0};
    struct weft_error err = {0};
    if (weft_plan_build(current, desired, &options, &plan, &err) < 0 ||
        weft_hypernode_set_copy(current, &now) < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        return "no plan";
    }
    for (size_t i = 0; i < plan.step_count; i++) {
        const char *what = check_step(&now, &plan.steps[i]);
        if (what != NULL) {
            return what;
        }
        if (!perform(&now, &plan.steps[i])) {
            return "a step that the API server would refuse";
        }
    }
    for (size_t i = 0; i < current->count; i++) {
        const char *name = current->items[i].name;
        if (foreign_lists(current, name) && weft_hypernode_set_get(&now, name) == NULL) {
            return "what another owner lists is gone";
        }
    }
    *ret_held += plan.held_node_count;
    /* a conflict with others may need a second look once the first plan has made room */
    for (int round = 0; round < 4; round++) {
        weft_auto(weft_plan_done) struct weft_plan again = {0};
        if (weft_plan_build(&now, desired, &options, &again, &err) < 0) {
            return "no plan after the first";
        }
        if (again.step_count == 0) {
            return NULL;
        }
        for (size_t i = 0; i < again.step_count; i++) {
            if (check_step(&now, &again.steps[i]) != NULL || !perform(&now, &again.steps[i])) {
                return "a bad step in a later plan";
            }
        }
    }
    return "plans without end";
}

static void messy_states(void)
{
    unsigned failed = 0;
    size_t held = 0;
    size_t moved = 0;
    for (uint64_t seed = 1; seed <= 8000 && failed < 3; seed++) {
        uint64_t rng = seed * 77;
        weft_auto(weft_hypernode_set_done) struct weft_hypernode_set before = {0};
        weft_auto(weft_hypernode_set_done) struct weft_hypernode_set after = {0};
        make_messy(&before, &rng);
        make_small_forest(&after, &rng);
        const char *what = check_messy(&before, &after, &held);
        what = what != NULL ? what : check_any_order(&before, &after, &rng, &moved);
        if (what != NULL) {
            weft_autofree char *x = hn_dump(&before);
            weft_autofree char *y = hn_dump(&after);
            (void)fprintf(stderr, "seed %llu: %s\n%s--\n%s", (unsigned long long)seed, what, x, y);
            failed++;
        }
    }
    CHECK_INT(failed, 0);
    CHECK(held > 400);
    CHECK(moved > 4000);
}

WEFT_SUITE(hypernode_moves, {"messy states", messy_states}, {"random moves", random_moves},
           {"build and tear down", build_and_tear_down})
