/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices are interchangeable: swapping two of them, with a renaming of NICs, sockets and
 * NUMA nodes, maps everything that the objective looks at onto itself. Swaps generate the symmetric
 * group of a class, so a set's key (entry 8 apart) depends only on how many of each class it has.
 */
#include <errno.h>
#include <string.h>

#include "pkg/allocator/allocator-internal.h"
#include "pkg/machine/machine.h"

/* NICs as bitsets over devices. */
struct nics {
    const struct weft_allocator *a;
    uint64_t *columns; /* count x a->words */
    uint64_t *scratch; /* 2 x a->words */
    size_t count;
};

static size_t count_equal(const struct weft_allocator *a, const uint16_t *places, uint16_t place)
{
    size_t count = 0;
    for (size_t i = 0; i < a->n; i++) {
        count += places[i] == place;
    }
    return count;
}

/* Same place, or each alone in its own: then renaming the two places undoes the swap. */
static bool places_swap(const struct weft_allocator *a, const uint16_t *places, size_t i, size_t j)
{
    return places[i] == places[j] ||
           (count_equal(a, places, places[i]) == 1 && count_equal(a, places, places[j]) == 1);
}

static bool parents_swap(const struct weft_allocator *a, size_t i, size_t j)
{
    if (a->parent[i] == a->parent[j]) {
        return true;
    }
    for (size_t k = 0; k < a->n; k++) {
        if (a->parent[k] >= 0 && ((k != i && a->parent[k] == a->parent[i]) ||
                                  (k != j && a->parent[k] == a->parent[j]))) {
            return false;
        }
    }
    return true;
}

static bool wiring_swaps(const struct weft_allocator *a, size_t i, size_t j)
{
    for (size_t k = 0; k < a->n; k++) {
        if (k != i && k != j &&
            (a->b[i * a->n + k] != a->b[j * a->n + k] ||
             a->t[i * a->n + k] != a->t[j * a->n + k])) {
            return false;
        }
    }
    return true;
}

/* The NIC's column without the devices i and j. */
static const uint64_t *column_rest(const struct nics *x, size_t nic, size_t i, size_t j,
                                   uint64_t *scratch)
{
    memcpy(scratch, &x->columns[nic * x->a->words], x->a->words * sizeof(*scratch));
    weft_bit_clear(scratch, i);
    weft_bit_clear(scratch, j);
    return scratch;
}

/* How many NICs near one device and not the other have that rest. */
static size_t count_rest(const struct nics *x, size_t near_one, size_t other, const uint64_t *rest)
{
    const struct weft_allocator *a = x->a;
    size_t count = 0;
    for (size_t nic = 0; nic < x->count; nic++) {
        const uint64_t *column = &x->columns[nic * a->words];
        if (weft_bit_get(column, near_one) && !weft_bit_get(column, other)) {
            const uint64_t *own = column_rest(x, nic, near_one, other, x->scratch + a->words);
            count += memcmp(own, rest, a->words * sizeof(*rest)) == 0;
        }
    }
    return count;
}

/* Swapping two rows of N permutes its columns: for each NIC that only one of the two is near to,
 * the other must be near to as many NICs that are alike otherwise. */
static bool nics_swap(const struct nics *x, size_t i, size_t j)
{
    const struct weft_allocator *a = x->a;
    const uint64_t *ni = &a->near_nics[i * a->nic_words];
    const uint64_t *nj = &a->near_nics[j * a->nic_words];
    if (weft_bit_count(ni, a->nic_words) != weft_bit_count(nj, a->nic_words)) {
        return false;
    }
    for (size_t nic = 0; nic < x->count; nic++) {
        if (weft_bit_get(ni, nic) && !weft_bit_get(nj, nic)) {
            const uint64_t *rest = column_rest(x, nic, i, j, x->scratch);
            if (count_rest(x, i, j, rest) != count_rest(x, j, i, rest)) {
                return false;
            }
        }
    }
    return true;
}

static bool swappable(const struct nics *x, size_t i, size_t j)
{
    const struct weft_allocator *a = x->a;
    return wiring_swaps(a, i, j) && places_swap(a, a->socket, i, j) &&
           places_swap(a, a->numa, i, j) && parents_swap(a, i, j) && nics_swap(x, i, j);
}

/* One device of each class stands for it, as the relation is transitive. */
static void number_classes(struct weft_allocator *a, const struct nics *x)
{
    struct weft_classes *c = &a->classes;
    for (size_t i = 0; i < a->n; i++) {
        uint16_t class = 0;
        while (class < c->count && !swappable(x, i, c->rep[class])) {
            class ++;
        }
        if (class == c->count) {
            c->rep[c->count++] = (uint16_t)i;
        }
        c->of[i] = class;
        c->size[class]++;
    }
}

/* ---- what the objective sees of a class ---- */

/* A member of the class other than its lowest, or that one if there is no other. */
static size_t another_member(const struct weft_allocator *a, size_t class)
{
    size_t i = (size_t)a->classes.rep[class];
    for (size_t k = i + 1; k < a->n; k++) {
        if (a->classes.of[k] == class) {
            return k;
        }
    }
    return i;
}

static void copy_wiring(struct weft_allocator *a)
{
    struct weft_classes *c = &a->classes;
    for (size_t i = 0; i < c->count; i++) {
        for (size_t j = 0; j < c->count; j++) {
            const size_t from = c->rep[i];
            const size_t to = i == j ? another_member(a, i) : c->rep[j];
            const uint64_t b = a->b[from * a->n + to];
            const uint8_t t = a->t[from * a->n + to];
            c->any_links = c->any_links || b > 0;
            c->b[i * c->count + j] = b;
            c->t[i * c->count + j] = t;
            if (i != j && b > 0) {
                weft_bit_set(&c->linked[i * c->words], j);
            } else if (i != j) {
                weft_bit_set(&c->unlinked[(i * WEFT_DISTANCE_COUNT + t) * c->words], j);
            }
        }
    }
}

static void copy_places(const struct weft_allocator *a, const uint16_t *places, uint16_t *to)
{
    const struct weft_classes *c = &a->classes;
    for (size_t i = 0; i < c->count; i++) {
        const uint16_t place = places[c->rep[i]];
        to[i] = place == places[another_member(a, i)] ? place : (uint16_t)WEFT_PLACE_OWN;
    }
}

/* A group holds all members of a class or none: swapping one inside with one outside maps the
 * groups of the same family and level onto each other; those are disjoint or equal, and the two
 * share every further member of the group. */
static size_t count_groups_of(const struct weft_allocator *a, size_t class)
{
    size_t count = 0;
    for (size_t g = 0; g < a->group_count; g++) {
        count += weft_bit_get(&a->groups[g * a->words], a->classes.rep[class]);
    }
    return count;
}

static int list_groups(struct weft_allocator *a)
{
    struct weft_classes *c = &a->classes;
    for (size_t i = 0; i < c->count; i++) {
        c->first_group[i + 1] = c->first_group[i] + (uint32_t)count_groups_of(a, i);
    }
    c->groups = weft_calloc(c->first_group[c->count], sizeof(*c->groups));
    if (c->groups == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < c->count; i++) {
        uint16_t *to = &c->groups[c->first_group[i]];
        for (size_t g = 0; g < a->group_count; g++) {
            if (weft_bit_get(&a->groups[g * a->words], c->rep[i])) {
                *to++ = (uint16_t)g;
            }
        }
    }
    return 0;
}

static int allocate_numbers(struct weft_allocator *a)
{
    struct weft_classes *c = &a->classes;
    c->of = weft_calloc(a->n, sizeof(*c->of));
    c->rep = weft_calloc(a->n, sizeof(*c->rep));
    c->size = weft_calloc(a->n, sizeof(*c->size));
    return c->of == NULL || c->rep == NULL || c->size == NULL ? -ENOMEM : 0;
}

static int allocate_content(struct weft_classes *c)
{
    c->words = c->count / 64 + 1;
    c->block = weft_calloc(c->count, sizeof(*c->block));
    c->b = weft_calloc(c->count * c->count, sizeof(*c->b));
    c->t = weft_calloc(c->count * c->count, sizeof(*c->t));
    c->linked = weft_calloc(c->count * c->words, sizeof(*c->linked));
    c->unlinked = weft_calloc(c->count * WEFT_DISTANCE_COUNT * c->words, sizeof(*c->unlinked));
    c->socket = weft_calloc(c->count, sizeof(*c->socket));
    c->numa = weft_calloc(c->count, sizeof(*c->numa));
    c->first_group = weft_calloc(c->count + 1, sizeof(*c->first_group));
    const bool complete = c->block != NULL && c->b != NULL && c->t != NULL && c->linked != NULL &&
                          c->unlinked != NULL && c->socket != NULL && c->numa != NULL &&
                          c->first_group != NULL;
    return complete ? 0 : -ENOMEM;
}

int weft_classes_derive(struct weft_allocator *a)
{
    const size_t count = a->nic_words * 64;
    weft_autofree uint64_t *columns = weft_calloc(count * a->words, sizeof(*columns));
    weft_autofree uint64_t *scratch = weft_calloc(2 * a->words, sizeof(*scratch));
    if (columns == NULL || scratch == NULL || allocate_numbers(a) < 0) {
        return -ENOMEM;
    }
    const struct nics x = {.a = a, .columns = columns, .scratch = scratch, .count = count};
    for (size_t nic = 0; nic < count; nic++) {
        for (size_t i = 0; i < a->n; i++) {
            if (weft_bit_get(&a->near_nics[i * a->nic_words], nic)) {
                weft_bit_set(&columns[nic * a->words], i);
            }
        }
    }
    number_classes(a, &x);
    if (allocate_content(&a->classes) < 0 || list_groups(a) < 0) {
        return -ENOMEM;
    }
    copy_wiring(a);
    copy_places(a, a->socket, a->classes.socket);
    copy_places(a, a->numa, a->classes.numa);
    return weft_blocks_derive(a);
}

void weft_classes_done(struct weft_classes *c)
{
    weft_free(c->of);
    weft_free(c->rep);
    weft_free(c->size);
    weft_free(c->block);
    weft_free(c->b);
    weft_free(c->t);
    weft_free(c->linked);
    weft_free(c->unlinked);
    weft_free(c->socket);
    weft_free(c->numa);
    weft_free(c->groups);
    weft_free(c->first_group);
    *c = (struct weft_classes){0};
}
