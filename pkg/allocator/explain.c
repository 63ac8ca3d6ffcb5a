/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer had to beat: the best other set, the entry that decided, and the groups. For
 * people, so it may take the time of several picks. */
#include <errno.h>

#include "pkg/allocator/eval-internal.h"

static const char *const entry_names[WEFT_ENTRY_COUNT] = {
    [WEFT_ENTRY_COMPONENTS] = "components",     [WEFT_ENTRY_MIN_CUT] = "min_cut_mbps",
    [WEFT_ENTRY_WORST_TIER] = "worst_tier",     [WEFT_ENTRY_SOCKETS] = "sockets",
    [WEFT_ENTRY_NUMA_NODES] = "numa_nodes",     [WEFT_ENTRY_BROKEN_GROUPS] = "broken_groups",
    [WEFT_ENTRY_LEFTOVER] = "leftover",         [WEFT_ENTRY_NIC_NEAR] = "nic_near",
    [WEFT_ENTRY_NIC_DISTINCT] = "nic_distinct", [WEFT_ENTRY_BANDWIDTH] = "bandwidth_mbps",
    [WEFT_ENTRY_TIER_SUM] = "tier_sum",         [WEFT_ENTRY_ORDER] = "order",
};

const char *weft_entry_name(enum weft_entry entry)
{
    return entry < WEFT_ENTRY_COUNT ? entry_names[entry] : "?";
}

int64_t weft_objective_value(const struct weft_objective *o, enum weft_entry entry)
{
    const int64_t values[WEFT_ENTRY_COUNT] = {
        [WEFT_ENTRY_COMPONENTS] = o->components,
        [WEFT_ENTRY_MIN_CUT] = (int64_t)o->min_cut_mbps,
        [WEFT_ENTRY_WORST_TIER] = o->worst_tier,
        [WEFT_ENTRY_SOCKETS] = o->sockets,
        [WEFT_ENTRY_NUMA_NODES] = o->numa_nodes,
        [WEFT_ENTRY_BROKEN_GROUPS] = o->broken_groups,
        [WEFT_ENTRY_LEFTOVER] = o->leftover,
        [WEFT_ENTRY_NIC_NEAR] = o->nic_near,
        [WEFT_ENTRY_NIC_DISTINCT] = o->nic_distinct,
        [WEFT_ENTRY_BANDWIDTH] = (int64_t)o->bandwidth_mbps,
        [WEFT_ENTRY_TIER_SUM] = o->tier_sum,
    };
    return entry < WEFT_ENTRY_COUNT ? values[entry] : 0;
}

static bool more_is_better(enum weft_entry entry)
{
    return entry == WEFT_ENTRY_MIN_CUT || entry == WEFT_ENTRY_NIC_NEAR ||
           entry == WEFT_ENTRY_NIC_DISTINCT || entry == WEFT_ENTRY_BANDWIDTH;
}

int weft_objective_compare(enum weft_policy policy, const struct weft_objective *x,
                           const struct weft_objective *y, enum weft_entry *ret_entry)
{
    /* packed puts 5 before all others; coming back to it later changes nothing */
    static const enum weft_entry first[] = {WEFT_ENTRY_BROKEN_GROUPS, WEFT_ENTRY_LEFTOVER};
    const size_t ahead = policy == WEFT_POLICY_PACKED ? WEFT_ARRAY_LEN(first) : 0;
    for (size_t i = 0; i < ahead + WEFT_ENTRY_ORDER; i++) {
        const enum weft_entry entry = i < ahead ? first[i] : (enum weft_entry)(i - ahead);
        const int64_t vx = weft_objective_value(x, entry);
        const int64_t vy = weft_objective_value(y, entry);
        if (vx != vy) {
            *ret_entry = entry;
            return (vx < vy) == more_is_better(entry) ? 1 : -1;
        }
    }
    *ret_entry = WEFT_ENTRY_ORDER;
    return 0;
}

/* ---- the best other set ---- */

/* Answers are in device order. */
static bool is_better(const struct weft_allocator *a, enum weft_policy policy,
                      const struct weft_choice *x, const struct weft_choice *y)
{
    enum weft_entry entry = WEFT_ENTRY_ORDER;
    int order = weft_objective_compare(policy, &x->objective, &y->objective, &entry);
    for (size_t i = 0; order == 0 && i < x->count && i < y->count; i++) {
        const size_t rx = a->rank_of[x->devices[i]];
        const size_t ry = a->rank_of[y->devices[i]];
        order = (rx > ry) - (rx < ry);
    }
    return order < 0;
}

/* The best set without one device, which stays available: groups must not look fuller. */
static int pick_without(const struct weft_allocator *a, const struct weft_request *request,
                        size_t without, struct weft_choice *ret_choice)
{
    weft_auto(weft_eval_done) struct weft_eval e;
    if (weft_pick_init(&e, a, request->size, request->policy, (a->n + 1) * sizeof(size_t), 0) < 0) {
        return -ENOMEM;
    }
    weft_pick_fill(&e, request);
    weft_bit_clear(e.candidates, without);
    if (weft_bit_count(e.candidates, a->words) < e.size) {
        return 0; /* no other set: the caller's choice stays empty */
    }
    const bool exact = weft_pick_best(&e);
    weft_pick_give(&e, e.best_set, exact, ret_choice);
    return 0;
}

static bool is_required(const struct weft_request *r, size_t device)
{
    for (size_t i = 0; i < r->required_count; i++) {
        if (r->required[i] == device) {
            return true;
        }
    }
    return false;
}

/* Is a later device of the choice of its class and as free? Leaving that one out is better: the
 * lower ones come first in device order. */
static bool has_later_twin(const struct weft_allocator *a, const struct weft_request *r,
                           const struct weft_choice *choice, size_t at)
{
    const size_t class = weft_allocator_class_of(a, choice->devices[at]);
    for (size_t i = at + 1; i < choice->count; i++) {
        if (weft_allocator_class_of(a, choice->devices[i]) == class &&
            !is_required(r, choice->devices[i])) {
            return true;
        }
    }
    return false;
}

/* Every other set lacks one of the choice's devices that is not required. */
static int pick_other(const struct weft_allocator *a, const struct weft_request *r,
                      const struct weft_choice *choice, struct weft_choice *other)
{
    bool exact = true;
    for (size_t i = 0; i < choice->count; i++) {
        const size_t device = choice->devices[i];
        if (is_required(r, device) || has_later_twin(a, r, choice, i)) {
            continue;
        }
        weft_auto(weft_choice_done) struct weft_choice c = {0};
        const int rc = pick_without(a, r, a->rank_of[device], &c);
        if (rc < 0) {
            return rc;
        }
        exact = exact && (c.count == 0 || c.exact);
        if (c.count > 0 && (other->count == 0 || is_better(a, r->policy, &c, other))) {
            const struct weft_choice worse = *other;
            *other = c;
            c = worse;
        }
    }
    other->exact = exact;
    return 0;
}

static size_t count_left(const struct weft_allocator *a, const struct weft_request *r,
                         size_t *ret_required)
{
    size_t available = 0;
    *ret_required = 0;
    for (size_t i = 0; i < a->n; i++) {
        bool found = false;
        for (size_t k = 0; k < r->available_count && !found; k++) {
            found = r->available[k] == i && weft_bit_get(a->healthy, a->rank_of[i]);
        }
        available += found;
        *ret_required += found && is_required(r, i);
    }
    return available;
}

int weft_allocator_pick_two(const struct weft_allocator *a, const struct weft_request *request,
                            struct weft_choice *ret_choice, struct weft_choice *ret_other,
                            struct weft_error *err)
{
    weft_auto(weft_choice_done) struct weft_choice choice = {0};
    weft_auto(weft_choice_done) struct weft_choice other = {0};
    size_t required = 0;
    const size_t available = count_left(a, request, &required);
    const int rc = weft_allocator_pick(a, request, &choice, err);
    if (rc < 0) {
        return rc;
    }
    if (choice.count > required && choice.count < available &&
        pick_other(a, request, &choice, &other) < 0) {
        return weft_err_nomem(err);
    }
    *ret_choice = choice;
    *ret_other = other;
    choice = other = (struct weft_choice){0};
    return 0;
}

/* ---- groups ---- */

size_t weft_allocator_group_count(const struct weft_allocator *a)
{
    return a->group_count;
}

struct weft_group weft_allocator_group(const struct weft_allocator *a, size_t group)
{
    return a->reasons[group];
}

bool weft_allocator_group_has(const struct weft_allocator *a, size_t group, size_t device)
{
    return weft_bit_get(&a->groups[group * a->words], a->rank_of[device]);
}

size_t weft_allocator_class_of(const struct weft_allocator *a, size_t device)
{
    return a->classes.of[a->rank_of[device]];
}
