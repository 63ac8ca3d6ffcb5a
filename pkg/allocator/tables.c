/* SPDX-License-Identifier: Apache-2.0 */
/* What depends on the machine alone, for all 2^n subsets of at most 16 devices: entries 1 to 4 and
 * entries 6 to 8 as dense ranks, so that a pick compares integers. Subsets are numbers whose bit r
 * is rank r; each is worked out from the subset without its lowest device. */
#include <errno.h>
#include <string.h>

#include "pkg/allocator/allocator-internal.h"
#include "pkg/machine/machine.h"

enum { NICS_WORDS_MAX = WEFT_MACHINE_NICS_MAX / 64 + 1 };

/* A device's sums over a subset of others, by the two bytes of the subset. */
struct byte_sums {
    uint64_t b[2][256];
    uint16_t t[2][256];
};

struct build {
    const struct weft_allocator *a;
    struct weft_tables *tables;
    size_t subsets;
    struct byte_sums *sums;                                         /* by device */
    uint32_t unlinked[WEFT_TABLE_DEVICES_MAX][WEFT_DISTANCE_COUNT]; /* B = 0 and T = t, as sets */
    uint32_t linked[WEFT_TABLE_DEVICES_MAX];
    uint64_t nics[2][256][NICS_WORDS_MAX];
    /* by subset */
    uint64_t *bandwidth;
    uint64_t *cut;
    uint64_t *keys;
    uint16_t *tier_sum;
    uint8_t *components;
    int8_t *worst;
    uint16_t *order; /* scratch of the sort, twice as many */
};

/* ---- dense ranks ---- */

/* Orders the subsets by their keys: radix sort, least byte first, passing over bytes that all keys
 * share. Returns the order. */
static const uint16_t *sort_keys(const uint64_t *keys, size_t count, uint16_t *scratch)
{
    uint16_t *from = scratch;
    uint16_t *to = scratch + count;
    uint64_t differ = 0;
    for (size_t i = 0; i < count; i++) {
        from[i] = (uint16_t)i;
        differ |= keys[i] ^ keys[0];
    }
    for (unsigned shift = 0; shift < 64; shift += 8) {
        if ((differ >> shift & 0xff) == 0) {
            continue;
        }
        uint32_t start[257] = {0};
        for (size_t i = 0; i < count; i++) {
            start[(keys[i] >> shift & 0xff) + 1]++;
        }
        for (size_t v = 1; v < 257; v++) {
            start[v] += start[v - 1];
        }
        for (size_t i = 0; i < count; i++) {
            to[start[keys[from[i]] >> shift & 0xff]++] = from[i];
        }
        uint16_t *swap = from;
        from = to;
        to = swap;
    }
    return from;
}

/* Equal keys get equal ranks; the smallest key has rank 0. Returns how many ranks there are. */
static size_t rank_keys(struct build *x, const uint64_t *keys, uint16_t *ranks)
{
    const uint16_t *order = sort_keys(keys, x->subsets, x->order);
    uint16_t rank = 0;
    for (size_t i = 0; i < x->subsets; i++) {
        rank = (uint16_t)(rank + (i > 0 && keys[order[i]] != keys[order[i - 1]]));
        ranks[order[i]] = rank;
    }
    return (size_t)rank + 1;
}

/* ---- per device ---- */

static void fill_sums(struct build *x, size_t i)
{
    const struct weft_allocator *a = x->a;
    for (size_t half = 0; half < 2; half++) {
        for (size_t v = 1; v < 256; v++) {
            const size_t rest = v & (v - 1);
            const size_t j = half * 8 + (size_t)__builtin_ctzll(v);
            const bool there = j < a->n;
            x->sums[i].b[half][v] = x->sums[i].b[half][rest] + (there ? a->b[i * a->n + j] : 0);
            x->sums[i].t[half][v] =
                (uint16_t)(x->sums[i].t[half][rest] + (there ? a->t[i * a->n + j] : 0));
        }
    }
}

static void fill_devices(struct build *x)
{
    const struct weft_allocator *a = x->a;
    for (size_t i = 0; i < a->n; i++) {
        fill_sums(x, i);
        for (size_t j = 0; j < a->n; j++) {
            if (a->b[i * a->n + j] > 0) {
                x->linked[i] |= 1U << j;
            } else if (i != j) {
                x->unlinked[i][a->t[i * a->n + j]] |= 1U << j;
            }
        }
        const bool near = weft_bit_count(&a->near_nics[i * a->nic_words], a->nic_words) > 0;
        x->tables->near = (uint16_t)(x->tables->near | near << i);
        x->tables->members[a->classes.of[i]] =
            (uint16_t)(x->tables->members[a->classes.of[i]] | 1U << i);
    }
}

/* The byte tables over single devices: NICs, touched groups, memberships. */
static void fill_bytes(struct build *x)
{
    const struct weft_allocator *a = x->a;
    for (size_t at = 1; at < 512; at++) {
        const size_t half = at / 256;
        const size_t v = at % 256;
        const size_t rest = v & (v - 1);
        const size_t j = half * 8 + (v != 0 ? (size_t)__builtin_ctzll(v) : 0);
        if (v == 0 || j >= a->n) {
            continue;
        }
        for (size_t w = 0; w < a->nic_words; w++) {
            x->nics[half][v][w] = x->nics[half][rest][w] | a->near_nics[j * a->nic_words + w];
        }
        uint64_t groups = 0;
        for (size_t g = 0; g < a->group_count; g++) {
            groups |= (a->groups[g] >> j & 1) << g; /* one word a group: n <= 16 */
        }
        x->tables->touched[half][v] = x->tables->touched[half][rest] | groups;
        x->tables->memberships[half][v] =
            (uint16_t)(x->tables->memberships[half][rest] + __builtin_popcountll(groups));
    }
}

/* Of as many devices each: is the first, second... one of the one below that of the other? */
static bool precedes(uint32_t one, uint32_t other)
{
    while (one != 0 && __builtin_ctz(one) < __builtin_ctz(other)) {
        one &= one - 1;
        other &= other - 1;
    }
    return one == 0;
}

static void fill_classes(struct build *x)
{
    struct weft_tables *t = x->tables;
    for (size_t class = 0; class < x->a->classes.count; class ++) {
        const uint32_t members = t->members[class];
        t->groups[class] = t->touched[0][members & 255] | t->touched[1][members >> 8];
        t->twin[class] = (uint8_t) class;
        for (size_t other = 0; other < class; other++) {
            if (x->a->classes.block[other] == x->a->classes.block[class] &&
                precedes(t->members[other], members)) {
                t->twin[class] = (uint8_t)other;
            }
        }
    }
}

/* ---- per subset ---- */

static uint64_t degree(const struct build *x, size_t device, uint32_t set)
{
    const struct byte_sums *s = &x->sums[device];
    return s->b[0][set & 255] + s->b[1][set >> 8];
}

static uint8_t count_components(const struct build *x, uint32_t set)
{
    uint8_t components = 0;
    for (uint32_t left = set; left != 0; components++) {
        uint32_t todo = left & -left;
        left &= ~todo;
        while (todo != 0) {
            const uint32_t reached = x->linked[__builtin_ctz(todo)] & left;
            left &= ~reached;
            todo = (todo & (todo - 1)) | reached;
        }
    }
    return components;
}

/* The exact minimum cut of a connected subset of two or more. A cut that leaves at least two
 * devices on each side crosses every S - v, and each pair across is in k - 2 of those: so it
 * carries at least the sum of cut(S - v) over all v, divided by k - 2. Where that reaches the
 * smallest degree, which is what splitting off one device costs, the degree is the answer: so it is
 * for nearly every subset of a real machine. The rest is computed. */
static uint64_t min_cut(const struct build *x, uint32_t set)
{
    uint64_t high = UINT64_MAX;
    uint64_t sum = 0;
    uint16_t members[WEFT_TABLE_DEVICES_MAX];
    size_t count = 0;
    for (uint32_t left = set; left != 0; left &= left - 1) {
        const uint32_t bit = left & -left;
        const uint16_t device = (uint16_t)__builtin_ctz(left);
        const uint64_t d = degree(x, device, set);
        high = d < high ? d : high;
        sum += x->cut[set & ~bit];
        members[count++] = device;
    }
    if (count < 4 || sum >= (count - 2) * high) {
        return high;
    }
    uint64_t w[WEFT_TABLE_DEVICES_MAX * (WEFT_TABLE_DEVICES_MAX + 2)];
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            w[i * count + j] = x->a->b[(size_t)members[i] * x->a->n + members[j]];
        }
    }
    return weft_min_cut(w, count, w + count * count);
}

static void fill_subset(struct build *x, uint32_t set)
{
    const size_t low = (size_t)__builtin_ctz(set);
    const uint32_t rest = set & (set - 1);
    const struct byte_sums *s = &x->sums[low];
    int8_t worst = x->worst[rest];
    for (int t = WEFT_DISTANCE_SYS; t > worst; t--) {
        if ((x->unlinked[low][t] & rest) != 0) {
            worst = (int8_t)t;
        }
    }
    x->worst[set] = worst;
    x->bandwidth[set] = x->bandwidth[rest] + degree(x, low, rest);
    x->tier_sum[set] = (uint16_t)(x->tier_sum[rest] + s->t[0][rest & 255] + s->t[1][rest >> 8]);
    x->components[set] = count_components(x, set);
    x->cut[set] = rest != 0 && x->components[set] == 1 ? min_cut(x, set) : 0;
}

static uint8_t count_places(const uint16_t *places, uint32_t set)
{
    uint32_t seen = 0;
    for (uint32_t left = set; left != 0; left &= left - 1) {
        seen |= 1U << places[__builtin_ctz(left)];
    }
    return (uint8_t)__builtin_popcount(seen);
}

/* ---- entries to ranks ---- */

static struct weft_first entries_of(const struct build *x, uint32_t set)
{
    return (struct weft_first){.min_cut_mbps = x->cut[set],
                               .components = x->components[set],
                               .sockets = count_places(x->a->socket, set),
                               .numa_nodes = count_places(x->a->numa, set),
                               .worst_tier = x->worst[set]};
}

static int rank_first(struct build *x)
{
    uint16_t *cut_rank = x->tables->first; /* replaced below */
    (void)rank_keys(x, x->cut, cut_rank);
    for (uint32_t set = 0; set < x->subsets; set++) {
        const struct weft_first f = entries_of(x, set);
        uint64_t key = f.components;
        key = key << 16 | (uint16_t)~cut_rank[set];
        key = key << 3 | (uint64_t)(f.worst_tier + 1);
        key = key << 5 | f.sockets;
        key = key << 5 | f.numa_nodes;
        x->keys[set] = key;
    }
    const size_t ranks = rank_keys(x, x->keys, x->tables->first);
    x->tables->firsts = weft_calloc(ranks, sizeof(*x->tables->firsts));
    for (uint32_t set = 0; x->tables->firsts != NULL && set < x->subsets; set++) {
        struct weft_first *f = &x->tables->firsts[x->tables->first[set]];
        if (f->components == 0) { /* the first of its rank, or no device: others say the same */
            *f = entries_of(x, set);
        }
    }
    return x->tables->firsts != NULL ? 0 : -ENOMEM;
}

static uint64_t count_nics(const struct build *x, uint32_t set)
{
    uint64_t count = 0;
    for (size_t w = 0; w < x->a->nic_words; w++) {
        count += (uint64_t)__builtin_popcountll(x->nics[0][set & 255][w] | x->nics[1][set >> 8][w]);
    }
    return count;
}

/* Bit r to bit 15 - r: entry 8 prefers the set with the lowest device, which is then the larger
 * number. */
static uint64_t reverse16(uint32_t set)
{
    uint32_t r = 0;
    for (unsigned i = 0; i < 16; i++) {
        r |= (set >> i & 1) << (15 - i);
    }
    return r;
}

static void rank_last(struct build *x)
{
    uint16_t *bandwidth_rank = x->tables->last; /* replaced below */
    (void)rank_keys(x, x->bandwidth, bandwidth_rank);
    for (uint32_t set = 0; set < x->subsets; set++) {
        uint64_t key = 16U - (uint64_t)__builtin_popcount(set & x->tables->near);
        key = key << 9 | (WEFT_MACHINE_NICS_MAX - count_nics(x, set));
        key = key << 16 | (uint16_t)~bandwidth_rank[set];
        key = key << 10 | x->tier_sum[set];
        key = key << 16 | (0xffff - reverse16(set));
        x->keys[set] = key;
    }
    (void)rank_keys(x, x->keys, x->tables->last);
}

/* The order in which a pick looks for the best set of its size. */
static void order_subsets(struct build *x)
{
    struct weft_tables *t = x->tables;
    for (uint32_t set = 0; set < x->subsets; set++) {
        const uint32_t size = (uint32_t)__builtin_popcount(set);
        x->keys[set] = (uint64_t)size << 32 | (uint32_t)t->first[set] << 16 | t->last[set];
        t->start[size + 1]++;
    }
    for (size_t size = 1; size <= x->a->n + 1; size++) {
        t->start[size] += t->start[size - 1];
    }
    memcpy(t->order, sort_keys(x->keys, x->subsets, x->order), x->subsets * sizeof(*t->order));
}

/* ---- all of it ---- */

static int allocate(struct build *x)
{
    const size_t n = x->subsets;
    x->sums = weft_calloc(x->a->n + 1, sizeof(*x->sums));
    x->bandwidth = weft_calloc(n, sizeof(*x->bandwidth));
    x->cut = weft_calloc(n, sizeof(*x->cut));
    x->keys = weft_calloc(n, sizeof(*x->keys));
    x->tier_sum = weft_calloc(n, sizeof(*x->tier_sum));
    x->components = weft_calloc(n, sizeof(*x->components));
    x->worst = weft_calloc(n, sizeof(*x->worst));
    x->order = weft_calloc(2 * n, sizeof(*x->order));
    x->tables = weft_calloc(1, sizeof(*x->tables));
    if (x->tables != NULL) {
        x->tables->first = weft_calloc(n, sizeof(*x->tables->first));
        x->tables->last = weft_calloc(n, sizeof(*x->tables->last));
        x->tables->order = weft_calloc(n, sizeof(*x->tables->order));
    }
    const bool complete = x->sums != NULL && x->bandwidth != NULL && x->cut != NULL &&
                          x->keys != NULL && x->tier_sum != NULL && x->components != NULL &&
                          x->worst != NULL && x->order != NULL && x->tables != NULL &&
                          x->tables->first != NULL && x->tables->last != NULL &&
                          x->tables->order != NULL;
    return complete ? 0 : -ENOMEM;
}

static void build_free(struct build *x)
{
    if (x != NULL) {
        weft_free(x->sums);
        weft_free(x->bandwidth);
        weft_free(x->cut);
        weft_free(x->keys);
        weft_free(x->tier_sum);
        weft_free(x->components);
        weft_free(x->worst);
        weft_free(x->order);
        weft_tables_free(x->tables);
        weft_free(x);
    }
}
WEFT_DEFINE_AUTO(struct build, build_free)

int weft_tables_build(struct weft_allocator *a)
{
    if (a->group_count > WEFT_TABLE_GROUPS_MAX) {
        return 0; /* cannot be with 16 devices; picks then go without tables */
    }
    weft_auto(build_free) struct build *x = weft_calloc(1, sizeof(*x));
    if (x == NULL) {
        return -ENOMEM;
    }
    x->a = a;
    x->subsets = (size_t)1 << a->n;
    if (allocate(x) < 0) {
        return -ENOMEM;
    }
    fill_devices(x);
    fill_bytes(x);
    fill_classes(x);
    x->worst[0] = -1;
    for (uint32_t set = 1; set < x->subsets; set++) {
        fill_subset(x, set);
    }
    if (rank_first(x) < 0) {
        return -ENOMEM;
    }
    rank_last(x);
    order_subsets(x);
    a->tables = weft_steal(&x->tables);
    return 0;
}

void weft_tables_free(struct weft_tables *tables)
{
    if (tables != NULL) {
        weft_free(tables->first);
        weft_free(tables->firsts);
        weft_free(tables->last);
        weft_free(tables->order);
        weft_free(tables);
    }
}
