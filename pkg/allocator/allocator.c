/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator as a value: a machine's numbers copied into device order, with what can be derived
 * from the machine alone. */
#include <errno.h>
#include <string.h>

#include "pkg/allocator/allocator-internal.h"
#include "pkg/machine/machine.h"

/* Entry 6 counts NICs behind the same or several switches, but no host bridge. */
enum { NIC_NEAR_MAX = WEFT_DISTANCE_PXB };

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static uint64_t bdf_number(const struct weft_bdf *b)
{
    return (uint64_t)b->domain << 32 | (uint64_t)b->bus << 16 | (uint64_t)b->device << 8 |
           b->function;
}

static int compare_devices(const struct weft_device *x, const struct weft_device *y, bool by_bdf)
{
    int order = by_bdf ? compare_numbers(bdf_number(&x->bdf), bdf_number(&y->bdf))
                       : compare_numbers((uint64_t)(int64_t)x->index, (uint64_t)(int64_t)y->index);
    if (order == 0) {
        order = compare_numbers((uint64_t)(int64_t)x->partition, (uint64_t)(int64_t)y->partition);
    }
    return order != 0 ? order : strcmp(x->id, y->id);
}

/* Device order, by insertion: sources list devices nearly in order. */
static void set_order(struct weft_allocator *a, const struct weft_machine *m)
{
    bool by_bdf = true;
    for (size_t i = 0; i < a->n; i++) {
        by_bdf = by_bdf && m->devices[i].bdf.known;
    }
    for (size_t i = 0; i < a->n; i++) {
        size_t at = i;
        while (at > 0 &&
               compare_devices(&m->devices[i], &m->devices[a->device_of[at - 1]], by_bdf) < 0) {
            a->device_of[at] = a->device_of[at - 1];
            at--;
        }
        a->device_of[at] = i;
    }
    for (size_t r = 0; r < a->n; r++) {
        a->rank_of[a->device_of[r]] = r;
    }
}

static int allocate_arrays(struct weft_allocator *a)
{
    const size_t n = a->n;
    a->device_of = weft_calloc(n, sizeof(*a->device_of));
    a->rank_of = weft_calloc(n, sizeof(*a->rank_of));
    a->b = weft_calloc(n * n, sizeof(*a->b));
    a->t = weft_calloc(n * n, sizeof(*a->t));
    a->healthy = weft_calloc(a->words, sizeof(*a->healthy));
    a->socket = weft_calloc(n, sizeof(*a->socket));
    a->numa = weft_calloc(n, sizeof(*a->numa));
    a->socket_number = weft_calloc(n, sizeof(*a->socket_number));
    a->parent = weft_calloc(n, sizeof(*a->parent));
    a->near_nics = weft_calloc(n * a->nic_words, sizeof(*a->near_nics));
    const bool complete = a->device_of != NULL && a->rank_of != NULL && a->b != NULL &&
                          a->t != NULL && a->healthy != NULL && a->socket != NULL &&
                          a->numa != NULL && a->socket_number != NULL && a->parent != NULL &&
                          a->near_nics != NULL;
    return complete ? 0 : -ENOMEM;
}

static void copy_wiring(struct weft_allocator *a, const struct weft_machine *m)
{
    for (size_t i = 0; i < a->n; i++) {
        const size_t di = a->device_of[i];
        for (size_t j = 0; j < a->n; j++) {
            const size_t dj = a->device_of[j];
            if (i == j) {
                continue;
            }
            a->b[i * a->n + j] = weft_machine_b(m, di, dj);
            a->t[i * a->n + j] = (uint8_t)weft_machine_t(m, di, dj);
        }
        for (size_t k = 0; k < m->nic_count; k++) {
            if ((int)weft_machine_n(m, di, k) <= NIC_NEAR_MAX) {
                weft_bit_set(&a->near_nics[i * a->nic_words], k);
            }
        }
    }
}

static int socket_of(const struct weft_device *d)
{
    return d->socket;
}

static int numa_of(const struct weft_device *d)
{
    return d->numa_group;
}

/* Numbers the places densely, all negative (unknown) ones alike. */
static void number_densely(const struct weft_allocator *a, const struct weft_machine *m,
                           int (*place_of)(const struct weft_device *d), uint16_t *numbers)
{
    uint16_t next = 0;
    for (size_t i = 0; i < a->n; i++) {
        const int place = place_of(&m->devices[a->device_of[i]]);
        size_t same = 0;
        for (; same < i; same++) {
            const int other = place_of(&m->devices[a->device_of[same]]);
            if (place == other || (place < 0 && other < 0)) {
                break;
            }
        }
        numbers[i] = same < i ? numbers[same] : next++;
    }
}

static void copy_places(struct weft_allocator *a, const struct weft_machine *m)
{
    number_densely(a, m, socket_of, a->socket);
    number_densely(a, m, numa_of, a->numa);
    for (size_t i = 0; i < a->n; i++) {
        const struct weft_device *d = &m->devices[a->device_of[i]];
        a->socket_number[i] = d->socket;
        a->parent[i] = d->parent;
        if (d->healthy) {
            weft_bit_set(a->healthy, i);
        }
    }
}

static int fill(struct weft_allocator *a, const struct weft_machine *m, bool tables)
{
    a->n = m->device_count;
    a->words = a->n / 64 + 1;
    a->nic_words = m->nic_count / 64 + 1;
    if (allocate_arrays(a) < 0) {
        return -ENOMEM;
    }
    set_order(a, m);
    copy_wiring(a, m);
    copy_places(a, m);
    if (weft_groups_derive(a) < 0 || weft_classes_derive(a) < 0) {
        return -ENOMEM;
    }
    return tables && a->n <= WEFT_TABLE_DEVICES_MAX ? weft_tables_build(a) : 0;
}

static int make(const struct weft_machine *m, bool tables, struct weft_allocator **ret_allocator,
                struct weft_error *err)
{
    if (m->device_count > WEFT_MACHINE_DEVICES_MAX || m->nic_count > WEFT_MACHINE_NICS_MAX) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s: too many devices or NICs", m->name);
    }
    weft_auto(weft_allocator_free) struct weft_allocator *a = weft_calloc(1, sizeof(*a));
    if (a == NULL || fill(a, m, tables) < 0) {
        return weft_err_nomem(err);
    }
    *ret_allocator = weft_steal(&a);
    return 0;
}

int weft_allocator_new(const struct weft_machine *machine, struct weft_allocator **ret_allocator,
                       struct weft_error *err)
{
    return make(machine, true, ret_allocator, err);
}

int weft_allocator_new_direct(const struct weft_machine *machine,
                              struct weft_allocator **ret_allocator, struct weft_error *err)
{
    return make(machine, false, ret_allocator, err);
}

void weft_allocator_free(struct weft_allocator *a)
{
    if (a == NULL) {
        return;
    }
    weft_free(a->device_of);
    weft_free(a->rank_of);
    weft_free(a->b);
    weft_free(a->t);
    weft_free(a->healthy);
    weft_free(a->socket);
    weft_free(a->numa);
    weft_free(a->socket_number);
    weft_free(a->parent);
    weft_free(a->near_nics);
    weft_free(a->groups);
    weft_free(a->reasons);
    weft_classes_done(&a->classes);
    weft_tables_free(a->tables);
    weft_free(a);
}

void weft_choice_done(struct weft_choice *choice)
{
    if (choice != NULL) {
        weft_free(choice->devices);
        *choice = (struct weft_choice){0};
    }
}

static const char *const policy_names[] = {
    [WEFT_POLICY_PERFORMANCE] = "performance",
    [WEFT_POLICY_PACKED] = "packed",
};

const char *weft_policy_name(enum weft_policy policy)
{
    return policy < WEFT_POLICY_COUNT ? policy_names[policy] : "?";
}

int weft_policy_parse(const char *text, enum weft_policy *ret_policy)
{
    for (size_t i = 0; i < WEFT_ARRAY_LEN(policy_names); i++) {
        if (strcmp(text, policy_names[i]) == 0) {
            *ret_policy = (enum weft_policy)i;
            return 0;
        }
    }
    return -EINVAL;
}
