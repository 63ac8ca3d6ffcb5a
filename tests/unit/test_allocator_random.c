/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator against the brute force of oracle.c, on random machines that go through the JSON
 * reader: raw readings on one side, the whole path on the other. */
#include <inttypes.h>
#include <stdio.h>

#include "pkg/allocator/allocator.h"
#include "pkg/base/buf.h"
#include "pkg/machine/machine.h"
#include "tests/unit/oracle.h"
#include "tests/unit/random_machine.h"
#include "tests/unit/unit.h"

static int below(uint64_t *state, int limit)
{
    return (int)weft_random_below(state, (uint64_t)limit);
}

static bool chance(uint64_t *state, int percent)
{
    return below(state, 100) < percent;
}

/* ---- one request ---- */

struct ids {
    size_t list[3 * ORACLE_DEVICES_MAX];
    size_t count;
};

/* The devices of a set in random order, some twice, with ids that do not exist. */
static void shuffle_ids(uint64_t *s, uint32_t set, struct ids *ids)
{
    ids->count = 0;
    for (int i = 0; i < ORACLE_DEVICES_MAX; i++) {
        for (int times = (set >> i & 1) != 0 ? 1 + chance(s, 10) : 0; times > 0; times--) {
            const size_t at = (size_t)below(s, (int)ids->count + 1);
            ids->list[ids->count++] = ids->list[at];
            ids->list[at] = (size_t)i;
        }
    }
    if (chance(s, 10)) {
        ids->list[ids->count++] = 9999;
    }
}

static bool same(const struct weft_choice *c, const struct oracle_answer *want)
{
    uint32_t set = 0;
    for (size_t i = 0; i < c->count; i++) {
        set |= 1U << c->devices[i];
    }
    const struct weft_objective *o = &c->objective;
    const int64_t got[11] = {
        o->components,   (int64_t)o->min_cut_mbps,   o->worst_tier, o->sockets,
        o->numa_nodes,   o->broken_groups,           o->leftover,   o->nic_near,
        o->nic_distinct, (int64_t)o->bandwidth_mbps, o->tier_sum};
    const bool equal = c->exact && set == want->set &&
                       c->count == (size_t)__builtin_popcount(set) &&
                       memcmp(got, want->entry, sizeof(got)) == 0;
    if (!equal) {
        (void)fprintf(stderr, "set %x, not %x\n", set, want->set);
        for (int e = 0; e < 11; e++) {
            (void)fprintf(stderr, "  %" PRId64 " %" PRId64 "\n", got[e], want->entry[e]);
        }
    }
    return equal;
}

/* The best other set, where there is something to choose. */
static bool other_agrees(const struct oracle_machine *m, const struct weft_allocator *a,
                         const struct weft_request *request, struct oracle_request *r,
                         const struct oracle_answer *best)
{
    struct oracle_answer want = {0};
    weft_auto(weft_choice_done) struct weft_choice choice = {0};
    weft_auto(weft_choice_done) struct weft_choice other = {0};
    uint32_t left = r->available;
    for (int i = 0; i < m->n; i++) {
        left &= m->healthy[i] ? UINT32_MAX : ~(1U << i);
    }
    if (r->size > __builtin_popcount(left & r->required) && r->size < __builtin_popcount(left)) {
        r->except = best->set;
        oracle_pick(m, r, &want);
    }
    CHECK_INT(weft_allocator_pick_two(a, request, &choice, &other, NULL), 0);
    return same(&choice, best) && (want.set == 0 ? other.count == 0 : same(&other, &want));
}

static bool check_request(uint64_t *s, const struct oracle_machine *m,
                          const struct weft_allocator *a, const struct weft_allocator *direct)
{
    const uint32_t all = m->n == 32 ? ~0U : (1U << m->n) - 1;
    struct oracle_request r = {.available = all, .packed = chance(s, 35)};
    /* whole blocks (random_machine.h) are free more often than by chance, and few are missing */
    r.available = chance(s, 30) ? all : (uint32_t)weft_random(s) & all;
    r.available |= chance(s, 30) ? (uint32_t)weft_random(s) & all : 0;
    r.required = chance(s, 60) ? 0 : (uint32_t)(weft_random(s) & weft_random(s)) & all;
    if (m->n <= 12) {
        r.size = below(s, m->n + 3) - 1;
    } else if (m->n > 16) {
        r.size = 1 + below(s, 4); /* brute force takes too long for more */
    } else {
        r.size = 1 + below(s, m->n);
    }
    struct oracle_answer want;
    oracle_pick(m, &r, &want);

    struct ids available;
    struct ids required;
    shuffle_ids(s, r.available, &available);
    shuffle_ids(s, r.required, &required);
    const struct weft_request request = {
        .available = available.list,
        .available_count = available.count,
        .required = required.list,
        .required_count = required.count,
        .size = r.size,
        .policy = r.packed ? WEFT_POLICY_PACKED : WEFT_POLICY_PERFORMANCE,
    };
    weft_auto(weft_choice_done) struct weft_choice by_tables = {0};
    weft_auto(weft_choice_done) struct weft_choice by_search = {0};
    CHECK_INT(weft_allocator_pick(a, &request, &by_tables, NULL), 0);
    CHECK_INT(weft_allocator_pick(direct, &request, &by_search, NULL), 0);
    return same(&by_tables, &want) && same(&by_search, &want) &&
           (m->n > 10 || other_agrees(m, chance(s, 50) ? a : direct, &request, &r, &want));
}

/* ---- several ids a device ---- */

static void random_sharing(uint64_t *s, const struct oracle_machine *m, struct oracle_sharing *r)
{
    int64_t ids = 0;
    *r = (struct oracle_sharing){.packed = chance(s, 35), .packed_sharing = chance(s, 40)};
    for (int i = 0; i < m->n; i++) {
        r->total[i] = chance(s, 80) ? 4 : 1 + below(s, 5);
        r->available[i] = chance(s, 40) ? 31 : (uint32_t)below(s, 32);
        r->required[i] = chance(s, 25) ? (uint32_t)below(s, 32) : 0;
        ids += __builtin_popcount(r->available[i]);
    }
    r->size = below(s, (int)ids + 3) - 1;
}

static size_t list_replicas(uint64_t *s, const struct oracle_machine *m, const uint32_t *ids,
                            struct weft_replica *list)
{
    size_t count = 0;
    for (int i = 0; i < m->n; i++) {
        for (uint32_t number = 0; number < 5; number++) {
            if ((ids[i] >> number & 1) != 0) {
                const size_t at = (size_t)below(s, (int)count + 1);
                list[count++] = list[at];
                list[at] = (struct weft_replica){(size_t)i, number};
            }
        }
    }
    return count;
}

static bool check_sharing(uint64_t *s, const struct oracle_machine *m,
                          const struct weft_allocator *a)
{
    struct oracle_sharing r;
    struct weft_replica available[5 * ORACLE_DEVICES_MAX + 1];
    struct weft_replica required[5 * ORACLE_DEVICES_MAX + 1];
    uint32_t totals[ORACLE_DEVICES_MAX];
    uint32_t want[ORACLE_DEVICES_MAX] = {0};
    uint32_t got[ORACLE_DEVICES_MAX] = {0};
    random_sharing(s, m, &r);
    oracle_share(m, &r, want);
    for (int i = 0; i < m->n; i++) {
        totals[i] = (uint32_t)r.total[i];
    }
    const struct weft_replica_request request = {
        .available = available,
        .available_count = list_replicas(s, m, r.available, available),
        .required = required,
        .required_count = list_replicas(s, m, r.required, required),
        .totals = totals,
        .size = r.size,
        .policy = r.packed ? WEFT_POLICY_PACKED : WEFT_POLICY_PERFORMANCE,
        .sharing = r.packed_sharing ? WEFT_SHARING_PACKED : WEFT_SHARING_DISTRIBUTED,
    };
    weft_auto(weft_replica_choice_done) struct weft_replica_choice c = {0};
    CHECK_INT(weft_allocator_pick_replicas(a, &request, &c, NULL), 0);
    for (size_t i = 0; i < c.count; i++) {
        got[c.ids[i].device] |= 1U << c.ids[i].number;
    }
    const bool equal = c.exact && memcmp(got, want, sizeof(got)) == 0;
    for (int i = 0; !equal && i < m->n; i++) {
        (void)fprintf(stderr, "  %d: total %d, in A %x, in M %x: %x, not %x\n", i, r.total[i],
                      r.available[i], r.required[i], got[i], want[i]);
    }
    return equal;
}

/* ---- machines ---- */

typedef bool (*check_fn)(uint64_t *s, const struct oracle_machine *m,
                         const struct weft_allocator *a, const struct weft_allocator *direct);

static bool check_shared(uint64_t *s, const struct oracle_machine *m,
                         const struct weft_allocator *a, const struct weft_allocator *direct)
{
    return check_sharing(s, m, a) && check_sharing(s, m, direct);
}

static void check_machine(uint64_t seed, int n, int requests, check_fn check)
{
    uint64_t s = seed;
    struct oracle_machine m;
    struct weft_error err = {0};
    weft_auto(weft_buf_done) struct weft_buf text;
    weft_auto(weft_machine_free) struct weft_machine *machine = NULL;
    weft_auto(weft_allocator_free) struct weft_allocator *a = NULL;
    weft_auto(weft_allocator_free) struct weft_allocator *direct = NULL;
    weft_buf_init(&text, 1U << 20);
    random_machine(&s, n, &m);
    random_machine_json(&m, &text);
    if (weft_machine_read(text.data, text.len, "random", &machine, &err) < 0 ||
        weft_allocator_new(machine, &a, &err) < 0 ||
        weft_allocator_new_direct(machine, &direct, &err) < 0) {
        (void)fprintf(stderr, "seed %" PRIu64 ": %s\n%s\n", seed, err.message, text.data);
        CU_FAIL("a random machine was refused");
        return;
    }
    for (int i = 0; i < requests; i++) {
        const bool agree = check(&s, &m, a, direct);
        CHECK(agree);
        if (!agree) {
            (void)fprintf(stderr, "seed %" PRIu64 ", %d devices, request %d\n%s\n", seed, n, i,
                          text.data);
            return;
        }
    }
}

/* ---- what must not matter ---- */

/* The same machine with its devices in another order and under other names. */
static void permute(const struct oracle_machine *m, const int *to, struct oracle_machine *p)
{
    *p = *m;
    for (int i = 0; i < m->n; i++) {
        const int at = to[i];
        for (int j = 0; j < m->n; j++) {
            p->link[at][to[j]] = m->link[i][j];
            p->dist[at][to[j]] = m->dist[i][j];
        }
        for (int k = 0; k < m->nics; k++) {
            p->nic_dist[at][m->nics - 1 - k] = m->nic_dist[i][k];
        }
        p->numa[at] = m->numa[i];
        p->socket[at] = m->socket[i];
        p->parent[at] = m->parent[i];
        p->partition[at] = m->partition[i];
        p->index[at] = m->index[i];
        p->bdf[at] = m->bdf[i];
        p->healthy[at] = m->healthy[i];
        (void)snprintf(p->id[at], sizeof(p->id[at]), "%c-%d", 'a' + at, i * 7 % 10);
    }
}

static struct weft_allocator *make(const struct oracle_machine *m)
{
    weft_auto(weft_buf_done) struct weft_buf text;
    weft_auto(weft_machine_free) struct weft_machine *machine = NULL;
    struct weft_allocator *a = NULL;
    weft_buf_init(&text, 1U << 20);
    random_machine_json(m, &text);
    if (weft_machine_read(text.data, text.len, "random", &machine, NULL) < 0 ||
        weft_allocator_new(machine, &a, NULL) < 0) {
        CU_FAIL("a random machine was refused");
    }
    return a;
}

static uint32_t set_of(const struct weft_choice *c)
{
    uint32_t set = 0;
    for (size_t i = 0; i < c->count; i++) {
        set |= 1U << c->devices[i];
    }
    return set;
}

static uint32_t permute_set(uint32_t set, const int *to, int n)
{
    uint32_t moved = 0;
    for (int i = 0; i < n; i++) {
        moved |= (set >> i & 1) << to[i];
    }
    return moved;
}

static uint32_t pick_set(uint64_t *s, const struct weft_allocator *a, uint32_t available,
                         uint32_t required, int64_t size, enum weft_policy policy)
{
    struct ids from;
    struct ids must;
    shuffle_ids(s, available, &from);
    shuffle_ids(s, required, &must);
    const struct weft_request r = {.available = from.list,
                                   .available_count = from.count,
                                   .required = must.list,
                                   .required_count = must.count,
                                   .size = size,
                                   .policy = policy};
    weft_auto(weft_choice_done) struct weft_choice c = {0};
    CHECK_INT(weft_allocator_pick(a, &r, &c, NULL), 0);
    return set_of(&c);
}

static void order_and_names_do_not_matter(void)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        uint64_t s = seed * 49979687;
        struct oracle_machine m;
        struct oracle_machine other;
        int to[ORACLE_DEVICES_MAX];
        random_machine(&s, 1 + (int)(seed % 20), &m);
        for (int i = 0; i < m.n; i++) {
            const int j = below(&s, i + 1);
            to[i] = to[j];
            to[j] = i;
            m.bdf[i] = (int64_t)i << 16; /* one each: names are the last resort of entry 8 */
        }
        permute(&m, to, &other);
        weft_auto(weft_allocator_free) struct weft_allocator *a = make(&m);
        weft_auto(weft_allocator_free) struct weft_allocator *b = make(&other);
        for (int i = 0; a != NULL && b != NULL && i < 6; i++) {
            const uint32_t all = (1U << m.n) - 1;
            const uint32_t available = (uint32_t)(weft_random(&s) | weft_random(&s)) & all;
            const uint32_t required = (uint32_t)(weft_random(&s) & weft_random(&s)) & all;
            const int64_t size = below(&s, m.n + 1);
            const enum weft_policy policy = (enum weft_policy)below(&s, WEFT_POLICY_COUNT);
            const uint32_t one = pick_set(&s, a, available, required, size, policy);
            const uint32_t two = pick_set(&s, b, permute_set(available, to, m.n),
                                          permute_set(required, to, m.n), size, policy);
            if (!CHECK_INT(two, permute_set(one, to, m.n))) {
                (void)fprintf(stderr, "seed %" PRIu64 "\n", seed);
            }
        }
    }
}

/* Which replicas of a device are free: other ones, as many. */
static uint32_t renumber(uint32_t ids, int total, int by)
{
    uint32_t moved = 0;
    for (int r = 0; r < total; r++) {
        moved |= (ids >> r & 1) << ((r + by) % total);
    }
    return moved;
}

static void count_given(uint64_t *s, const struct weft_allocator *a, const struct oracle_machine *m,
                        const struct oracle_sharing *r, int *given)
{
    struct weft_replica available[5 * ORACLE_DEVICES_MAX + 1];
    struct weft_replica required[5 * ORACLE_DEVICES_MAX + 1];
    uint32_t totals[ORACLE_DEVICES_MAX];
    for (int i = 0; i < m->n; i++) {
        totals[i] = (uint32_t)r->total[i];
        given[i] = 0;
    }
    const struct weft_replica_request request = {
        .available = available,
        .available_count = list_replicas(s, m, r->available, available),
        .required = required,
        .required_count = list_replicas(s, m, r->required, required),
        .totals = totals,
        .size = r->size,
        .policy = r->packed ? WEFT_POLICY_PACKED : WEFT_POLICY_PERFORMANCE,
        .sharing = r->packed_sharing ? WEFT_SHARING_PACKED : WEFT_SHARING_DISTRIBUTED,
    };
    weft_auto(weft_replica_choice_done) struct weft_replica_choice c = {0};
    CHECK_INT(weft_allocator_pick_replicas(a, &request, &c, NULL), 0);
    for (size_t i = 0; i < c.count; i++) {
        given[c.ids[i].device]++;
    }
}

static void replica_numbers_do_not_matter(void)
{
    for (uint64_t seed = 1; seed <= 600; seed++) {
        uint64_t s = seed * 67867967;
        struct oracle_machine m;
        struct oracle_sharing r;
        int one[ORACLE_DEVICES_MAX];
        int two[ORACLE_DEVICES_MAX];
        random_machine(&s, 1 + (int)(seed % 12), &m);
        random_sharing(&s, &m, &r);
        weft_auto(weft_allocator_free) struct weft_allocator *a = make(&m);
        if (a == NULL) {
            return;
        }
        count_given(&s, a, &m, &r, one);
        for (int i = 0; i < m.n; i++) {
            const int by = below(&s, r.total[i]);
            const uint32_t known = (1U << r.total[i]) - 1;
            r.available[i] = renumber(r.available[i] & known, r.total[i], by);
            r.required[i] = renumber(r.required[i] & known, r.total[i], by);
        }
        count_given(&s, a, &m, &r, two);
        for (int i = 0; i < m.n; i++) {
            if (!CHECK_INT(two[i], one[i])) {
                (void)fprintf(stderr, "seed %" PRIu64 "\n", seed);
            }
        }
    }
}

/* ---- the suite ---- */

/* WEFT_LONG is set by make check-long. */
static bool is_long(void)
{
    return getenv("WEFT_LONG") != NULL;
}

/* Machines of 1 to 12 devices, 6 requests each: 5,100, or 200,400 in a long run. */
static void agrees_with_brute_force(void)
{
    const uint64_t machines = is_long() ? 33400 : 850;
    for (uint64_t seed = 1; seed <= machines; seed++) {
        check_machine(seed * 7919, 1 + (int)(seed % 12), 6, check_request);
    }
    if (is_long()) {
        (void)printf("allocator: %" PRIu64 " random requests compared with brute force\n",
                     machines * 6);
    }
}

/* Beyond the tables: the search over classes and blocks. */
static void agrees_above_sixteen_devices(void)
{
    const uint64_t machines = is_long() ? 2000 : 60;
    for (uint64_t seed = 1; seed <= machines; seed++) {
        check_machine(seed * 104729, 17 + (int)(seed % 3), 2, check_request);
    }
}

/* Large sets, where the search bounds a cut by groups first and computes it late; and the most that
 * the tables hold. */
static void agrees_on_large_sets(void)
{
    const uint64_t machines = is_long() ? 3000 : 60;
    for (uint64_t seed = 1; seed <= machines; seed++) {
        check_machine(seed * 15485863, 13 + (int)(seed % 4), 2, check_request);
    }
}

static void agrees_on_replicas(void)
{
    const uint64_t machines = is_long() ? 10000 : 250;
    for (uint64_t seed = 1; seed <= machines; seed++) {
        check_machine(seed * 32452843, 1 + (int)(seed % 8), 4, check_shared);
    }
}

WEFT_SUITE(allocator_random, {"5,100 requests agree with brute force", agrees_with_brute_force},
           {"120 requests above 16 devices agree", agrees_above_sixteen_devices},
           {"120 requests on 13 to 16 devices agree", agrees_on_large_sets},
           {"2,000 requests among replicas agree", agrees_on_replicas},
           {"order and names do not matter", order_and_names_do_not_matter},
           {"replica numbers do not matter", replica_numbers_do_not_matter})
