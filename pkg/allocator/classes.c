/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices are interchangeable: swapping two of them, with a renaming of NICs, sockets and
 * NUMA nodes, maps everything that the objective looks at onto itself. Swaps generate the symmetric
 * group of a class, so a set's key (entry 8 apart) depends only on how many of each class it has.
 */
#include <errno.h>
#include <string.h>

#include "pkg/allocator/allocator-internal.h"

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

/* first: room for n; one device of each class stands for it, as the relation is transitive. */
static void number_classes(struct weft_allocator *a, const struct nics *x, uint16_t *first)
{
    uint16_t classes = 0;
    for (size_t i = 0; i < a->n; i++) {
        uint16_t c = 0;
        while (c < classes && !swappable(x, i, first[c])) {
            c++;
        }
        if (c == classes) {
            first[classes++] = (uint16_t)i;
        }
        a->class_of[i] = c;
    }
}

int weft_classes_derive(struct weft_allocator *a)
{
    const size_t count = a->nic_words * 64;
    weft_autofree uint64_t *columns = weft_calloc(count * a->words, sizeof(*columns));
    weft_autofree uint64_t *scratch = weft_calloc(2 * a->words, sizeof(*scratch));
    weft_autofree uint16_t *first = weft_calloc(a->n, sizeof(*first));
    if (columns == NULL || scratch == NULL || first == NULL) {
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
    number_classes(a, &x, first);
    return 0;
}
