/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator against the brute force of oracle.c, on random machines that go through the JSON
 * reader: raw readings on one side, the whole path on the other. */
#include <inttypes.h>
#include <stdio.h>

#include "pkg/allocator/allocator.h"
#include "pkg/base/buf.h"
#include "pkg/machine/machine.h"
#include "tests/unit/oracle.h"
#include "tests/unit/unit.h"

/* ---- random machines ---- */

static int below(uint64_t *state, int limit)
{
    return (int)weft_random_below(state, (uint64_t)limit);
}

static bool chance(uint64_t *state, int percent)
{
    return below(state, 100) < percent;
}

static void both(struct oracle_machine *m, int i, int j, int64_t link)
{
    m->link[i][j] = m->link[j][i] = link;
}

/* Switch pairs, quads, two sockets; numbers shuffled later by the device order. */
static void tree_distances(struct oracle_machine *m, int pair, int quad, int half)
{
    for (int i = 0; i < m->n; i++) {
        for (int j = 0; j < m->n; j++) {
            m->dist[i][j] = i / 2 == j / 2   ? pair
                            : i / 4 == j / 4 ? quad
                            : i / 8 == j / 8 ? half
                                             : 5;
        }
    }
}

static void random_distances(uint64_t *s, struct oracle_machine *m)
{
    for (int i = 0; i < m->n; i++) {
        for (int j = i + 1; j < m->n; j++) {
            m->dist[i][j] = m->dist[j][i] = below(s, 6);
        }
    }
}

static void links(uint64_t *s, struct oracle_machine *m)
{
    const int kind = below(s, 7);
    const int density = 10 + below(s, 90);
    for (int i = 0; i < m->n; i++) {
        for (int j = i + 1; j < m->n; j++) {
            const int64_t random = 25000 * (1 + below(s, 3));
            switch (kind) {
            case 0: /* none */
                both(m, i, j, 0);
                break;
            case 1: /* all to all through switches */
                both(m, i, j, 450000);
                break;
            case 2: /* bridged pairs */
                both(m, i, j, i / 2 == j / 2 ? 300000 : 0);
                break;
            case 3: /* quads, and a ring through them */
                both(m, i, j, i / 4 == j / 4 ? 25000 * (1 + (i + j) % 2) : j - i == 4 ? 50000 : 0);
                break;
            case 4: /* islands of different strength */
                both(m, i, j, i % 3 == j % 3 ? random : 0);
                break;
            default:
                both(m, i, j, chance(s, density) ? random : 0);
                break;
            }
        }
    }
}

/* One device with some of its links down; one direction of a pair worse than the other. */
static void degrade(uint64_t *s, struct oracle_machine *m)
{
    if (chance(s, 25)) {
        const int bad = below(s, m->n);
        for (int j = 0; j < m->n; j++) {
            both(m, bad, j, m->link[bad][j] / 2);
        }
    }
    for (int times = below(s, 3); times > 0; times--) {
        const int i = below(s, m->n);
        const int j = below(s, m->n);
        if (i != j) {
            m->link[i][j] = chance(s, 50) ? 0 : m->link[i][j] / 2;
            m->dist[i][j] = below(s, 7) - 1;
        }
    }
}

static void places(uint64_t *s, struct oracle_machine *m)
{
    const int known = below(s, 4); /* none, some, all, all */
    const int nodes = 1 + below(s, 4);
    for (int i = 0; i < m->n; i++) {
        const bool know = known > 1 || (known == 1 && chance(s, 60));
        m->numa[i] = know ? i * nodes / m->n : -1;
        m->socket[i] = know && chance(s, 90) ? m->numa[i] / 2 : -1;
        if (chance(s, 5)) {
            m->numa[i] = below(s, 3);
        }
    }
}

static void identity(uint64_t *s, struct oracle_machine *m)
{
    const bool all_bdf = chance(s, 80);
    const bool partitions = chance(s, 15);
    int shuffled[ORACLE_DEVICES_MAX];
    for (int i = 0; i < m->n; i++) {
        const int j = below(s, i + 1);
        shuffled[i] = shuffled[j];
        shuffled[j] = i;
    }
    for (int i = 0; i < m->n; i++) {
        const int slot = partitions ? i / 2 : shuffled[i];
        m->index[i] = shuffled[i];
        m->parent[i] = partitions ? slot : -1;
        m->partition[i] = partitions && chance(s, 80) ? i % 2 : 0;
        m->bdf[i] =
            all_bdf || chance(s, 50) ? (int64_t)(slot / 8) << 32 | (slot * 7 % 256) << 16 : -1;
        m->healthy[i] = !chance(s, 8);
        (void)snprintf(m->id[i], sizeof(m->id[i]), "GPU-%c%d", 'z' - i, below(s, 100));
    }
}

static void random_machine(uint64_t *s, int n, struct oracle_machine *m)
{
    *m = (struct oracle_machine){.n = n, .nics = below(s, 5)};
    if (chance(s, 60)) {
        tree_distances(m, below(s, 4), 2 + below(s, 3), 4);
    } else {
        random_distances(s, m);
    }
    links(s, m);
    places(s, m);
    identity(s, m);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < m->nics; k++) {
            m->nic_dist[i][k] = chance(s, 50) ? i * m->nics / n == k ? 1 : 4 : below(s, 7) - 1;
        }
    }
    degrade(s, m);
}

/* ---- to JSON ---- */

static void write_device(struct weft_buf *b, const struct oracle_machine *m, int i)
{
    (void)weft_buf_printf(b, "%s{\"id\":\"%s\",\"index\":%d,\"numa_node\":%d,\"socket\":%d,",
                          i > 0 ? "," : "", m->id[i], m->index[i], m->numa[i], m->socket[i]);
    if (m->bdf[i] >= 0) {
        (void)weft_buf_printf(b, "\"bdf\":\"%04x:%02x:00.0\",", (unsigned)(m->bdf[i] >> 32),
                              (unsigned)(m->bdf[i] >> 16 & 255));
    }
    (void)weft_buf_printf(b, "\"parent\":%d,\"partition\":%d,\"healthy\":%s}", m->parent[i],
                          m->partition[i], m->healthy[i] ? "true" : "false");
}

static const char *word(int distance)
{
    static const char *const words[] = {"null",    "\"PSB\"",  "\"PIX\"", "\"PXB\"",
                                        "\"PHB\"", "\"NODE\"", "\"SYS\""};
    return words[distance + 1];
}

static void write_row(struct weft_buf *b, const struct oracle_machine *m, const char *key, int i)
{
    const bool links = strcmp(key, "bandwidth") == 0;
    const bool nics = strcmp(key, "nic_distance") == 0;
    (void)weft_buf_puts(b, i > 0 ? ",[" : "[");
    for (int j = 0; j < (nics ? m->nics : m->n); j++) {
        (void)weft_buf_puts(b, j > 0 ? "," : "");
        if (links) {
            (void)weft_buf_printf(b, "%" PRId64, m->link[i][j]);
        } else {
            (void)weft_buf_puts(b, word(nics ? m->nic_dist[i][j] : m->dist[i][j]));
        }
    }
    (void)weft_buf_putc(b, ']');
}

static void write_machine(struct weft_buf *b, const struct oracle_machine *m)
{
    static const char *const matrices[] = {"bandwidth", "distance", "nic_distance"};
    (void)weft_buf_puts(b, "{\"weft_machine\":1,\"devices\":[");
    for (int i = 0; i < m->n; i++) {
        write_device(b, m, i);
    }
    (void)weft_buf_puts(b, "],\"nics\":[");
    for (int k = 0; k < m->nics; k++) {
        (void)weft_buf_printf(b, "%s{\"name\":\"n%d\"}", k > 0 ? "," : "", k);
    }
    for (size_t at = 0; at < WEFT_ARRAY_LEN(matrices); at++) {
        (void)weft_buf_printf(b, "],\"%s\":[", matrices[at]);
        for (int i = 0; i < m->n; i++) {
            write_row(b, m, matrices[at], i);
        }
    }
    (void)weft_buf_puts(b, "]}");
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

static bool check_request(uint64_t *s, const struct oracle_machine *m,
                          const struct weft_allocator *a, const struct weft_allocator *direct)
{
    const uint32_t all = m->n == 32 ? ~0U : (1U << m->n) - 1;
    struct oracle_request r = {.available = all, .packed = chance(s, 35)};
    r.available = chance(s, 30) ? all : (uint32_t)weft_random(s) & all;
    r.required = chance(s, 60) ? 0 : (uint32_t)(weft_random(s) & weft_random(s)) & all;
    if (m->n <= 12) {
        r.size = below(s, m->n + 3) - 1;
    } else {
        r.available = m->n > 16 ? r.available : all;
        r.size = m->n > 16 ? 1 + below(s, 5) : 12 + below(s, m->n - 12);
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
    return same(&by_tables, &want) && same(&by_search, &want);
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
    write_machine(&text, &m);
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

/* 500 machines of 1 to 11 devices, 6 requests each: 3,000 requests. */
static void agrees_with_brute_force(void)
{
    for (uint64_t seed = 1; seed <= 500; seed++) {
        check_machine(seed * 7919, 1 + (int)(seed % 11), 6, check_request);
    }
}

/* Beyond the tables: the search over classes. */
static void agrees_above_sixteen_devices(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        check_machine(seed * 104729, 17 + (int)(seed % 2), 2, check_request);
    }
}

/* Large sets, where the search bounds a cut by groups first and computes it late. */
static void agrees_on_large_sets(void)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        check_machine(seed * 15485863, 13 + (int)(seed % 2), 2, check_request);
    }
}

/* 2,000 requests among several ids a device. */
static void agrees_on_replicas(void)
{
    for (uint64_t seed = 1; seed <= 250; seed++) {
        check_machine(seed * 32452843, 1 + (int)(seed % 8), 4, check_shared);
    }
}

WEFT_SUITE(allocator_random, {"3,000 requests agree with brute force", agrees_with_brute_force},
           {"40 requests above 16 devices agree", agrees_above_sixteen_devices},
           {"120 requests for 12 or 13 devices agree", agrees_on_large_sets},
           {"2,000 requests among replicas agree", agrees_on_replicas})
