/* SPDX-License-Identifier: Apache-2.0 */
/* The brute force behind the property tests of the allocator: see oracle.h. */
#include "tests/unit/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS_MAX = 128, KEY_MAX = 11 };

/* B: the smaller of two readings. */
static int64_t b_of(const struct oracle_machine *m, int i, int j)
{
    return m->link[i][j] < m->link[j][i] ? m->link[i][j] : m->link[j][i];
}

static int one_reading(const struct oracle_machine *m, int i, int j)
{
    if (m->dist[i][j] >= 0) {
        return m->dist[i][j];
    }
    return m->numa[i] >= 0 && m->numa[i] == m->numa[j] ? 4 : 5;
}

/* T: the larger of two readings. */
static int t_of(const struct oracle_machine *m, int i, int j)
{
    const int a = one_reading(m, i, j);
    const int b = one_reading(m, j, i);
    return a > b ? a : b;
}

/* ---- groups ---- */

struct relation {
    bool on[ORACLE_DEVICES_MAX][ORACLE_DEVICES_MAX];
};

static void close_transitively(const struct oracle_machine *m, struct relation *r)
{
    for (int k = 0; k < m->n; k++) {
        for (int i = 0; i < m->n; i++) {
            for (int j = 0; j < m->n; j++) {
                r->on[i][j] = r->on[i][j] || i == j || (r->on[i][k] && r->on[k][j]);
            }
        }
    }
}

static int add_set(uint32_t *groups, int count, uint32_t set)
{
    if (__builtin_popcount(set) < 2) {
        return count;
    }
    for (int g = 0; g < count; g++) {
        if (groups[g] == set) {
            return count;
        }
    }
    if (count < GROUPS_MAX) {
        groups[count++] = set;
    }
    return count;
}

static int add_relation(const struct oracle_machine *m, const struct relation *r, uint32_t *groups,
                        int count)
{
    for (int i = 0; i < m->n; i++) {
        uint32_t set = 0;
        for (int j = 0; j < m->n; j++) {
            set |= r->on[i][j] ? 1U << j : 0;
        }
        count = add_set(groups, count, set);
    }
    return count;
}

static bool half_link(const struct oracle_machine *m, const struct relation *r, int i, int j)
{
    for (int out = 0; out < m->n; out++) {
        if (!r->on[i][out] &&
            (2 * b_of(m, i, j) <= b_of(m, i, out) || 2 * b_of(m, i, j) <= b_of(m, j, out))) {
            return true;
        }
    }
    return false;
}

static bool level_is_left_out(const struct oracle_machine *m, const struct relation *r, int t)
{
    for (int i = 0; i < m->n; i++) {
        for (int j = 0; j < m->n; j++) {
            if (t <= 3 && i != j && r->on[i][j] && b_of(m, i, j) > 0 && half_link(m, r, i, j)) {
                return true;
            }
        }
    }
    return false;
}

static int distance_groups(const struct oracle_machine *m, uint32_t *groups, int count)
{
    for (int t = 0; t <= 4; t++) {
        struct relation r = {0};
        for (int i = 0; i < m->n; i++) {
            for (int j = 0; j < m->n; j++) {
                r.on[i][j] = i != j && t_of(m, i, j) <= t;
            }
        }
        close_transitively(m, &r);
        if (!level_is_left_out(m, &r, t)) {
            count = add_relation(m, &r, groups, count);
        }
    }
    return count;
}

static int link_groups(const struct oracle_machine *m, uint32_t *groups, int count)
{
    for (int x = 0; x < m->n; x++) {
        for (int y = x + 1; y < m->n; y++) {
            const int64_t b = b_of(m, x, y);
            struct relation r = {0};
            for (int i = 0; b > 0 && i < m->n; i++) {
                for (int j = 0; j < m->n; j++) {
                    r.on[i][j] = i != j && b_of(m, i, j) >= b;
                }
            }
            close_transitively(m, &r);
            count = b > 0 ? add_relation(m, &r, groups, count) : count;
        }
    }
    return count;
}

static int place_groups(const struct oracle_machine *m, const int *places, uint32_t *groups,
                        int count)
{
    for (int i = 0; i < m->n; i++) {
        uint32_t set = 0;
        for (int j = 0; places[i] >= 0 && j < m->n; j++) {
            set |= places[j] == places[i] ? 1U << j : 0;
        }
        count = add_set(groups, count, set);
    }
    return count;
}

static int all_groups(const struct oracle_machine *m, uint32_t *groups)
{
    int count = distance_groups(m, groups, 0);
    count = place_groups(m, m->socket, groups, count);
    count = place_groups(m, m->parent, groups, count);
    return link_groups(m, groups, count);
}

/* ---- the key ---- */

struct context {
    const struct oracle_machine *m;
    uint32_t available;
    uint32_t untouched; /* devices of which no id is in use */
    uint32_t groups[GROUPS_MAX];
    int group_count;
    int order[ORACLE_DEVICES_MAX]; /* device numbers in device order */
    int64_t b[ORACLE_DEVICES_MAX][ORACLE_DEVICES_MAX];
    int t[ORACLE_DEVICES_MAX][ORACLE_DEVICES_MAX];
};

static int in(uint32_t set, int i)
{
    return (int)(set >> i & 1);
}

static int64_t components(const struct context *c, uint32_t set)
{
    struct relation r = {0};
    int64_t count = 0;
    for (int i = 0; i < c->m->n; i++) {
        for (int j = 0; j < c->m->n; j++) {
            r.on[i][j] = in(set, i) && in(set, j) && c->b[i][j] > 0;
        }
    }
    close_transitively(c->m, &r);
    for (int i = 0; i < c->m->n; i++) {
        bool first = in(set, i);
        for (int j = 0; j < i; j++) {
            first = first && !r.on[i][j];
        }
        count += first;
    }
    return count;
}

static int64_t across(const struct context *c, uint32_t x, uint32_t y)
{
    int64_t sum = 0;
    for (int i = 0; i < c->m->n; i++) {
        for (int j = 0; in(x, i) && j < c->m->n; j++) {
            sum += in(y, j) ? c->b[i][j] : 0;
        }
    }
    return sum;
}

static int64_t min_cut(const struct context *c, uint32_t set)
{
    int64_t best = INT64_MAX;
    for (uint32_t side = (set - 1) & set; side != 0; side = (side - 1) & set) {
        const int64_t cut = across(c, side, set & ~side);
        best = cut < best ? cut : best;
    }
    return best;
}

static int64_t distinct(const struct context *c, uint32_t set, const int *places)
{
    int64_t count = 0;
    for (int i = 0; i < c->m->n; i++) {
        bool first = in(set, i);
        for (int j = 0; j < i; j++) {
            first = first && !(in(set, j) && (places[i] == places[j]));
        }
        count += first;
    }
    return count;
}

static void groups_entry(const struct context *c, uint32_t set, int64_t *entry)
{
    for (int g = 0; g < c->group_count; g++) {
        const uint32_t group = c->groups[g];
        if ((set & group) == 0) {
            continue;
        }
        const bool intact = (group & ~c->untouched) == 0;
        entry[5] += intact && (set & group) != group;
        entry[6] += __builtin_popcount(group & c->available & ~set);
    }
}

static void nics_entry(const struct context *c, uint32_t set, int64_t *entry)
{
    uint32_t nics = 0;
    for (int i = 0; i < c->m->n; i++) {
        uint32_t near = 0;
        for (int k = 0; in(set, i) && k < c->m->nics; k++) {
            near |= c->m->nic_dist[i][k] >= 0 && c->m->nic_dist[i][k] <= 2 ? 1U << k : 0;
        }
        entry[7] += near != 0;
        nics |= near;
    }
    entry[8] = __builtin_popcount(nics);
}

static void fill_entries(const struct context *c, uint32_t set, int64_t *entry)
{
    memset(entry, 0, KEY_MAX * sizeof(*entry));
    entry[0] = components(c, set);
    entry[1] = entry[0] == 1 && __builtin_popcount(set) >= 2 ? min_cut(c, set) : 0;
    entry[2] = -1;
    for (int i = 0; i < c->m->n; i++) {
        for (int j = i + 1; in(set, i) && j < c->m->n; j++) {
            if (in(set, j)) {
                entry[2] = c->b[i][j] == 0 && c->t[i][j] > entry[2] ? c->t[i][j] : entry[2];
                entry[9] += c->b[i][j];
                entry[10] += c->t[i][j];
            }
        }
    }
    entry[3] = distinct(c, set, c->m->socket);
    entry[4] = distinct(c, set, c->m->numa);
    groups_entry(c, set, entry);
    nics_entry(c, set, entry);
}

/* Entry 8: both sorted in device order, element by element. */
static bool vector_less(const struct context *c, uint32_t x, uint32_t y)
{
    for (int at = 0; at < c->m->n; at++) {
        const int d = c->order[at];
        if (in(x, d) != in(y, d)) {
            return in(x, d);
        }
    }
    return false;
}

static bool better(const struct context *c, bool packed, const struct oracle_answer *x,
                   const struct oracle_answer *y)
{
    /* +1: smaller is better, -1: greater is */
    static const int sign[KEY_MAX] = {1, -1, 1, 1, 1, 1, 1, -1, -1, -1, 1};
    static const int orders[2][KEY_MAX] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
                                           {5, 6, 0, 1, 2, 3, 4, 7, 8, 9, 10}};
    for (int at = 0; at < KEY_MAX; at++) {
        const int e = orders[packed][at];
        if (x->entry[e] != y->entry[e]) {
            return sign[e] * x->entry[e] < sign[e] * y->entry[e];
        }
    }
    return vector_less(c, x->set, y->set);
}

static bool ordered(const struct oracle_machine *m, int x, int y)
{
    bool by_bdf = true;
    for (int i = 0; i < m->n; i++) {
        by_bdf = by_bdf && m->bdf[i] >= 0;
    }
    const int64_t a = by_bdf ? m->bdf[x] : m->index[x];
    const int64_t b = by_bdf ? m->bdf[y] : m->index[y];
    if (a != b) {
        return a < b;
    }
    if (m->partition[x] != m->partition[y]) {
        return m->partition[x] < m->partition[y];
    }
    return strcmp(m->id[x], m->id[y]) < 0;
}

static void prepare(struct context *c, const struct oracle_machine *m)
{
    c->m = m;
    c->group_count = all_groups(m, c->groups);
    for (int i = 0; i < m->n; i++) {
        int place = 0;
        for (int j = 0; j < m->n; j++) {
            place += j != i && ordered(m, j, i);
            c->b[i][j] = i == j ? 0 : b_of(m, i, j);
            c->t[i][j] = i == j ? 0 : t_of(m, i, j);
        }
        c->order[place] = i;
    }
}

void oracle_pick(const struct oracle_machine *m, const struct oracle_request *request,
                 struct oracle_answer *ret_answer)
{
    struct context c = {0};
    prepare(&c, m);
    uint32_t healthy = 0;
    for (int i = 0; i < m->n; i++) {
        healthy |= m->healthy[i] ? 1U << i : 0;
    }
    c.available = c.untouched = request->available & healthy;
    const uint32_t required = request->required & c.available;
    const int64_t k = request->size;
    *ret_answer = (struct oracle_answer){0};
    if (k <= 0) {
        /* empty */
    } else if (k >= __builtin_popcount(c.available)) {
        ret_answer->set = c.available;
    } else if (k <= __builtin_popcount(required)) {
        for (int at = 0; __builtin_popcount(ret_answer->set) < k; at++) {
            ret_answer->set |= required & 1U << c.order[at];
        }
    } else {
        bool have = false;
        for (uint32_t set = c.available; set != 0; set = (set - 1) & c.available) {
            struct oracle_answer a = {.set = set};
            if (__builtin_popcount(set) == k && (set & required) == required &&
                set != request->except) {
                fill_entries(&c, set, a.entry);
                *ret_answer =
                    !have || better(&c, request->packed, &a, ret_answer) ? a : *ret_answer;
                have = true;
            }
        }
    }
    fill_entries(&c, ret_answer->set, ret_answer->entry);
}

/* ---- several ids a device ---- */

struct shares {
    const struct oracle_sharing *request;
    struct context c;
    uint32_t free[ORACLE_DEVICES_MAX];
    uint32_t given[ORACLE_DEVICES_MAX];
    int64_t left; /* ids still to be given */
};

/* Replicas in use, those given now included. */
static int in_use(const struct shares *s, int i)
{
    return s->request->total[i] - __builtin_popcount(s->free[i]);
}

static void give(struct shares *s, int i, uint32_t ids)
{
    const uint32_t id = ids & -ids; /* the lowest number */
    s->free[i] &= ~id;
    s->given[i] |= id;
    s->left--;
}

static int64_t sum_in_use(const struct shares *s, uint32_t set)
{
    int64_t sum = 0;
    for (int i = 0; i < s->c.m->n; i++) {
        sum += in(set, i) ? in_use(s, i) : 0;
    }
    return s->request->packed_sharing ? -sum : sum;
}

/* The best set of that many devices that has all of M's. */
static uint32_t best_devices(const struct shares *s, uint32_t chosen, int size)
{
    struct oracle_answer best = {0};
    int64_t best_sum = 0;
    bool have = false;
    for (uint32_t set = s->c.available; set != 0; set = (set - 1) & s->c.available) {
        if (__builtin_popcount(set) != size || (set & chosen) != chosen) {
            continue;
        }
        struct oracle_answer a = {.set = set};
        const int64_t sum = sum_in_use(s, set);
        fill_entries(&s->c, set, a.entry);
        if (!have || sum < best_sum ||
            (sum == best_sum && better(&s->c, s->request->packed, &a, &best))) {
            best = a;
            best_sum = sum;
            have = true;
        }
    }
    return best.set;
}

static void deal(struct shares *s)
{
    while (s->left > 0) {
        int to = -1;
        for (int at = 0; at < s->c.m->n; at++) {
            const int i = s->c.order[at];
            const int gain = to < 0 ? 1 : in_use(s, to) - in_use(s, i);
            if (s->free[i] != 0 && (to < 0 || (s->request->packed_sharing ? gain < 0 : gain > 0))) {
                to = i;
            }
        }
        if (to < 0) {
            return;
        }
        give(s, to, s->free[to]);
    }
}

static void take_in(struct shares *s, const struct oracle_machine *m, uint32_t *required)
{
    for (int i = 0; i < m->n; i++) {
        const uint32_t exist = (1U << s->request->total[i]) - 1;
        s->free[i] = m->healthy[i] ? s->request->available[i] & exist : 0;
        required[i] = s->request->required[i] & s->free[i];
        s->c.available |= s->free[i] != 0 ? 1U << i : 0;
        s->c.untouched |= s->free[i] == exist && exist != 0 ? 1U << i : 0;
    }
}

void oracle_share(const struct oracle_machine *m, const struct oracle_sharing *request,
                  uint32_t *ret_ids)
{
    struct shares s = {.request = request, .left = request->size};
    uint32_t required[ORACLE_DEVICES_MAX] = {0};
    uint32_t chosen = 0;
    prepare(&s.c, m);
    take_in(&s, m, required);
    for (int at = 0; at < m->n; at++) {
        const int i = s.c.order[at];
        for (; s.left > 0 && required[i] != 0; required[i] &= required[i] - 1) {
            /* what is in use counts before this request, for the choice of devices */
            s.given[i] |= required[i] & -required[i];
            s.left--;
            chosen |= 1U << i;
        }
    }
    int size = __builtin_popcount(chosen) + (int)(s.left > 0 ? s.left : 0);
    size = size < __builtin_popcount(s.c.available) ? size : __builtin_popcount(s.c.available);
    const uint32_t set = s.left > 0 ? best_devices(&s, chosen, size) : chosen;
    for (int i = 0; i < m->n; i++) {
        s.free[i] &= ~s.given[i];
        if (in(set & ~chosen, i) && s.left > 0) {
            give(&s, i, s.free[i]);
        }
    }
    deal(&s);
    memcpy(ret_ids, s.given, (size_t)m->n * sizeof(*ret_ids));
}
