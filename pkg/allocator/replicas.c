/* SPDX-License-Identifier: Apache-2.0 */
/* Several ids a device. The entry that goes before all others, the sum of replicas in use over S,
 * is a plain sum, so it needs no search of its own: the devices below the value where the sum is
 * met must be in S, those at it may be, the others cannot; the usual search decides among the
 * middle. */
#include <errno.h>
#include <string.h>

#include "pkg/allocator/eval-internal.h"

/* By rank; ids are bits of rows of one bitset. */
struct ledger {
    const struct weft_replica_request *request;
    struct weft_eval *e;
    size_t *first;      /* where a rank's ids begin; n + 1 entries */
    uint32_t *used;     /* ids in use or given */
    uint64_t *free;     /* ids of A that are not given */
    uint64_t *required; /* ids of M */
    uint64_t *given;
    uint32_t *free_count; /* by rank: of free */
    size_t given_count;
};

/* The lower value is the better one, whatever the sharing. */
static uint64_t load_of(const struct ledger *l, size_t rank)
{
    const uint32_t used = l->used[rank];
    return l->request->sharing == WEFT_SHARING_PACKED ? UINT32_MAX - (uint64_t)used : used;
}

/* All ids of the machine, or more than the most. */
static size_t count_all(const struct weft_allocator *a, const struct weft_replica_request *request)
{
    size_t total = 0;
    for (size_t i = 0; i < a->n && total <= WEFT_REPLICAS_MAX; i++) {
        total += request->totals[i];
    }
    return total;
}

static size_t set_words(size_t total)
{
    return total / 64 + 1;
}

static size_t ledger_bytes(const struct weft_allocator *a, size_t total)
{
    return (3 * set_words(total) + 2 * (a->n + 1)) * sizeof(uint64_t);
}

/* Lays the ledger out in e->extra, which has ledger_bytes. */
static void ledger_init(struct ledger *l, const struct weft_replica_request *request,
                        struct weft_eval *e, size_t total)
{
    const struct weft_allocator *a = e->a;
    const size_t words = set_words(total);
    uint64_t *room = e->extra;
    *l = (struct ledger){.request = request, .e = e};
    l->free = room;
    l->required = room + words;
    l->given = room + 2 * words;
    l->first = (size_t *)(room + 3 * words);
    l->used = (uint32_t *)(room + 3 * words + a->n + 1);
    l->free_count = l->used + a->n;
    for (size_t rank = 0; rank < a->n; rank++) {
        l->first[rank + 1] = l->first[rank] + request->totals[a->device_of[rank]];
    }
}

/* Marks the ids of a list that exist, are healthy and are within (NULL: any). */
static void mark(const struct ledger *l, const struct weft_replica *ids, size_t count,
                 const uint64_t *within, uint64_t *set)
{
    const struct weft_allocator *a = l->e->a;
    for (size_t i = 0; i < count; i++) {
        if (ids[i].device >= a->n || ids[i].number >= l->request->totals[ids[i].device]) {
            continue;
        }
        const size_t rank = a->rank_of[ids[i].device];
        const size_t at = l->first[rank] + ids[i].number;
        if (weft_bit_get(a->healthy, rank) && (within == NULL || weft_bit_get(within, at))) {
            weft_bit_set(set, at);
        }
    }
}

/* The lowest id of a device from at on that is in the set and, if not NULL, not in the other;
 * end if there is none. */
static size_t next_id(size_t at, size_t end, const uint64_t *set, const uint64_t *without)
{
    while (at < end) {
        const size_t w = at / 64;
        const uint64_t word = set[w] & (without != NULL ? ~without[w] : UINT64_MAX);
        const uint64_t left = word & UINT64_MAX << (at % 64);
        if (left != 0) {
            const size_t found = w * 64 + (size_t)__builtin_ctzll(left);
            return found < end ? found : end;
        }
        at = (w + 1) * 64;
    }
    return end;
}

static size_t count_ids(const struct ledger *l, size_t rank, const uint64_t *set)
{
    const size_t end = l->first[rank + 1];
    size_t count = 0;
    for (size_t at = next_id(l->first[rank], end, set, NULL); at < end;
         at = next_id(at + 1, end, set, NULL)) {
        count++;
    }
    return count;
}

/* Gives the lowest id of the set that the device has there. */
static bool give_lowest(struct ledger *l, size_t rank, const uint64_t *set)
{
    const size_t end = l->first[rank + 1];
    const size_t at = next_id(l->first[rank], end, set, l->given);
    if (at >= end) {
        return false;
    }
    weft_bit_set(l->given, at);
    weft_bit_clear(l->free, at);
    l->used[rank]++;
    l->free_count[rank]--;
    l->given_count++;
    return true;
}

/* Fills the request's sets of devices. */
static void count_devices(struct ledger *l)
{
    struct weft_eval *e = l->e;
    for (size_t rank = 0; rank < e->a->n; rank++) {
        const size_t total = l->first[rank + 1] - l->first[rank];
        const size_t available = count_ids(l, rank, l->free);
        l->used[rank] = (uint32_t)(total - available);
        l->free_count[rank] = (uint32_t)available;
        if (available > 0) {
            weft_bit_set(e->available, rank);
        }
        if (available > 0 && available == total) {
            weft_bit_set(e->whole, rank);
        }
        if (count_ids(l, rank, l->required) > 0) {
            weft_bit_set(e->required, rank);
        }
    }
}

/* ---- which devices ---- */

static bool is_open(const struct weft_eval *e, size_t rank)
{
    return weft_bit_get(e->available, rank) && !weft_bit_get(e->required, rank);
}

static size_t count_below(const struct ledger *l, uint64_t load)
{
    size_t count = 0;
    for (size_t rank = 0; rank < l->e->a->n; rank++) {
        count += is_open(l->e, rank) && load_of(l, rank) < load;
    }
    return count;
}

/* The load of the device that completes the least sum of want open devices: the greatest load with
 * fewer than want devices below it. */
static uint64_t decisive_load(const struct ledger *l, size_t want)
{
    uint64_t decisive = 0;
    for (size_t rank = 0; rank < l->e->a->n; rank++) {
        const uint64_t load = load_of(l, rank);
        if (is_open(l->e, rank) && load > decisive && count_below(l, load) < want) {
            decisive = load;
        }
    }
    return decisive;
}

/* Devices below the decisive load become required, those at it candidates. */
static void settle_loads(struct ledger *l)
{
    struct weft_eval *e = l->e;
    const size_t n = e->a->n;
    const size_t want = e->size - weft_bit_count(e->required, e->a->words);
    const uint64_t load = decisive_load(l, want);
    for (size_t rank = 0; rank < n; rank++) {
        if (is_open(e, rank) && load_of(l, rank) == load) {
            weft_bit_set(e->candidates, rank);
        }
    }
    for (size_t rank = 0; rank < n; rank++) {
        if (is_open(e, rank) && load_of(l, rank) < load) {
            weft_bit_set(e->required, rank);
        }
    }
}

/* Leaves the devices in e->best_set; M's ids are given already. Returns whether it is exact. */
static bool choose_devices(struct ledger *l)
{
    struct weft_eval *e = l->e;
    const struct weft_allocator *a = e->a;
    const size_t available = weft_bit_count(e->available, a->words);
    const size_t missing = (size_t)l->request->size - l->given_count;
    const size_t devices = weft_bit_count(e->required, a->words) + missing;
    if (devices >= available) {
        memcpy(e->best_set, e->available, a->words * sizeof(*e->best_set));
        return true;
    }
    e->size = devices;
    settle_loads(l);
    const size_t required = weft_bit_count(e->required, a->words);
    if (required + weft_bit_count(e->candidates, a->words) == devices) {
        for (size_t w = 0; w < a->words; w++) {
            e->best_set[w] = e->required[w] | e->candidates[w];
        }
        return true;
    }
    return weft_pick_best(e);
}

/* ---- which ids ---- */

static void give_all(struct ledger *l, const uint64_t *set, size_t most)
{
    for (size_t rank = 0; rank < l->e->a->n; rank++) {
        while (l->given_count < most && give_lowest(l, rank, set)) {
        }
    }
}

/* One id for each device of the set that has none of M. */
static void give_one_each(struct ledger *l, const uint64_t *devices)
{
    for (size_t rank = 0; rank < l->e->a->n; rank++) {
        if (weft_bit_get(devices, rank) && count_ids(l, rank, l->required) == 0) {
            (void)give_lowest(l, rank, l->free);
        }
    }
}

/* What is left over, one id at a time, to the device with the best load. */
static void deal(struct ledger *l, size_t most)
{
    const size_t n = l->e->a->n;
    while (l->given_count < most) {
        size_t best = n;
        for (size_t rank = 0; rank < n; rank++) {
            if (l->free_count[rank] > 0 && (best == n || load_of(l, rank) < load_of(l, best))) {
                best = rank;
            }
        }
        if (best == n || !give_lowest(l, best, l->free)) {
            return;
        }
    }
}

/* The answer lies at the beginning of e's block, which becomes the choice's. */
static void hand_out(struct ledger *l, bool exact, struct weft_replica_choice *ret_choice)
{
    const struct weft_allocator *a = l->e->a;
    struct weft_replica *ids = l->e->answer;
    size_t count = 0;
    for (size_t rank = 0; rank < a->n; rank++) {
        const size_t end = l->first[rank + 1];
        for (size_t at = next_id(l->first[rank], end, l->given, NULL); at < end;
             at = next_id(at + 1, end, l->given, NULL)) {
            ids[count++] = (struct weft_replica){.device = a->device_of[rank],
                                                 .number = (uint32_t)(at - l->first[rank])};
        }
    }
    l->e->answer = NULL;
    *ret_choice = (struct weft_replica_choice){.ids = ids, .count = count, .exact = exact};
}

static void pick(struct ledger *l, struct weft_replica_choice *ret_choice)
{
    const struct weft_replica_request *r = l->request;
    mark(l, r->available, r->available_count, NULL, l->free);
    mark(l, r->required, r->required_count, l->free, l->required);
    count_devices(l);
    size_t available = 0;
    size_t required = 0;
    for (size_t rank = 0; rank < l->e->a->n; rank++) {
        available += l->free_count[rank];
        required += count_ids(l, rank, l->required);
    }
    bool exact = true;
    if (r->size > 0 && (uint64_t)r->size >= available) {
        give_all(l, l->free, available);
    } else if (r->size > 0) {
        const size_t size = (size_t)r->size;
        give_all(l, l->required, size);
        if (size > required) {
            exact = choose_devices(l);
            give_one_each(l, l->e->best_set);
            deal(l, size);
        }
    }
    hand_out(l, exact, ret_choice);
}

int weft_allocator_pick_replicas(const struct weft_allocator *allocator,
                                 const struct weft_replica_request *request,
                                 struct weft_replica_choice *ret_choice, struct weft_error *err)
{
    const size_t total = count_all(allocator, request);
    if (total > WEFT_REPLICAS_MAX) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "more than %d ids",
                            (int)WEFT_REPLICAS_MAX);
    }
    weft_auto(weft_eval_done) struct weft_eval e;
    const uint64_t most =
        request->size > 0 && (uint64_t)request->size < total ? (uint64_t)request->size : total;
    const int rc = weft_pick_init(&e, allocator, request->size, request->policy,
                                  ((size_t)most + 1) * sizeof(struct weft_replica),
                                  ledger_bytes(allocator, total));
    if (rc < 0) {
        return weft_err_nomem(err);
    }
    struct ledger l;
    ledger_init(&l, request, &e, total);
    pick(&l, ret_choice);
    return 0;
}

void weft_replica_choice_done(struct weft_replica_choice *choice)
{
    if (choice != NULL) {
        weft_free(choice->ids);
        *choice = (struct weft_replica_choice){0};
    }
}
