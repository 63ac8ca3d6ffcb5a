/* SPDX-License-Identifier: Apache-2.0 */
/* Which classes can be swapped whole, as the partitions of one GPU with those of another: swapping
 * two such classes member by member, with a renaming of NICs, sockets, NUMA nodes and parents, maps
 * everything that the objective looks at onto itself. The swaps generate the symmetric group of a
 * block's classes, so that a search need look at only one order of their counts. Classes of one
 * device are never in one block: the devices would be of one class. */
#include <errno.h>
#include <string.h>

#include "pkg/allocator/allocator-internal.h"

struct swap {
    const struct weft_allocator *a;
    size_t c, d;
    const uint16_t *partner; /* by rank: where the swap takes it */
    uint64_t *columns;       /* NICs as bitsets over devices */
    uint64_t *image;         /* words */
    size_t nics;
};

static bool wiring_swaps(const struct weft_classes *x, size_t c, size_t d)
{
    const size_t n = x->count;
    bool equal = x->b[c * n + c] == x->b[d * n + d] && x->t[c * n + c] == x->t[d * n + d];
    for (size_t e = 0; equal && e < n; e++) {
        equal = e == c || e == d ||
                (x->b[c * n + e] == x->b[d * n + e] && x->t[c * n + e] == x->t[d * n + e]);
    }
    return equal;
}

/* Does the place hold nobody but the class? */
static bool place_is_only(const struct weft_allocator *a, const uint16_t *places, size_t class)
{
    const uint16_t place = places[a->classes.rep[class]];
    for (size_t i = 0; i < a->n; i++) {
        if (places[i] == place && a->classes.of[i] != class) {
            return false;
        }
    }
    return true;
}

/* Both in one place, or each class alone in its own, or each device. */
static bool places_swap(const struct weft_allocator *a, const uint16_t *places,
                        const uint16_t *by_class, size_t c, size_t d)
{
    if (by_class[c] == WEFT_PLACE_OWN || by_class[d] == WEFT_PLACE_OWN) {
        return by_class[c] == by_class[d];
    }
    return by_class[c] == by_class[d] ||
           (place_is_only(a, places, c) && place_is_only(a, places, d));
}

static size_t count_sharing(const struct weft_allocator *a, const int *places, size_t class,
                            bool inside)
{
    const int place = places[a->classes.rep[class]];
    size_t count = 0;
    for (size_t i = 0; i < a->n; i++) {
        count += places[i] == place && (a->classes.of[i] == class) == inside;
    }
    return count;
}

/* Known places (sockets, parents) make groups, so it also matters whether they are known. */
static bool groups_swap(const struct weft_allocator *a, const int *places, size_t c, size_t d)
{
    const int pc = places[a->classes.rep[c]];
    const int pd = places[a->classes.rep[d]];
    if (pc == pd) {
        return count_sharing(a, places, c, true) == count_sharing(a, places, d, true);
    }
    return pc >= 0 && pd >= 0 && count_sharing(a, places, c, false) == 0 &&
           count_sharing(a, places, d, false) == 0 &&
           count_sharing(a, places, c, true) == count_sharing(a, places, d, true);
}

static size_t count_columns(const struct swap *s, const uint64_t *column)
{
    const size_t words = s->a->words;
    size_t count = 0;
    for (size_t nic = 0; nic < s->nics; nic++) {
        count += memcmp(&s->columns[nic * words], column, words * sizeof(*column)) == 0;
    }
    return count;
}

/* The swap must take the columns of N onto each other. */
static bool nics_swap(const struct swap *s)
{
    const struct weft_allocator *a = s->a;
    for (size_t nic = 0; nic < s->nics; nic++) {
        const uint64_t *column = &s->columns[nic * a->words];
        memset(s->image, 0, a->words * sizeof(*s->image));
        for (size_t i = 0; i < a->n; i++) {
            if (weft_bit_get(column, i)) {
                weft_bit_set(s->image, s->partner[i]);
            }
        }
        if (memcmp(s->image, column, a->words * sizeof(*column)) != 0 &&
            count_columns(s, s->image) != count_columns(s, column)) {
            return false;
        }
    }
    return true;
}

static void pair_members(const struct weft_allocator *a, size_t c, size_t d, uint16_t *partner)
{
    const uint16_t *of = a->classes.of;
    size_t j = 0;
    for (size_t i = 0; i < a->n; i++) {
        partner[i] = of[i] == c || of[i] == d ? partner[i] : (uint16_t)i;
        if (of[i] == c) {
            while (of[j] != d) {
                j++;
            }
            partner[i] = (uint16_t)j;
            partner[j] = (uint16_t)i;
            j++;
        }
    }
}

static bool swappable(struct swap *s, uint16_t *partner)
{
    const struct weft_allocator *a = s->a;
    const struct weft_classes *x = &a->classes;
    if (x->size[s->c] != x->size[s->d] || x->size[s->c] < 2 || !wiring_swaps(x, s->c, s->d) ||
        !places_swap(a, a->socket, x->socket, s->c, s->d) ||
        !places_swap(a, a->numa, x->numa, s->c, s->d) ||
        !groups_swap(a, a->socket_number, s->c, s->d) || !groups_swap(a, a->parent, s->c, s->d)) {
        return false;
    }
    pair_members(a, s->c, s->d, partner);
    return nics_swap(s);
}

int weft_blocks_derive(struct weft_allocator *a)
{
    const size_t nics = a->nic_words * 64;
    weft_autofree uint16_t *partner = weft_calloc(a->n, sizeof(*partner));
    weft_autofree uint64_t *columns = weft_calloc((nics + 1) * a->words, sizeof(*columns));
    if (partner == NULL || columns == NULL) {
        return -ENOMEM;
    }
    struct swap s = {.a = a, .partner = partner, .columns = columns, .nics = nics};
    s.image = columns + nics * a->words;
    for (size_t nic = 0; nic < nics; nic++) {
        for (size_t i = 0; i < a->n; i++) {
            if (weft_bit_get(&a->near_nics[i * a->nic_words], nic)) {
                weft_bit_set(&columns[nic * a->words], i);
            }
        }
    }
    /* a block is named by its first class */
    for (s.d = 0; s.d < a->classes.count; s.d++) {
        s.c = 0;
        while (s.c < s.d && (a->classes.block[s.c] != s.c || !swappable(&s, partner))) {
            s.c++;
        }
        a->classes.block[s.d] = (uint16_t)s.c;
    }
    return 0;
}
