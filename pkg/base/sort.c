/* SPDX-License-Identifier: Apache-2.0 */
/* Radix sort by prefix, from its lowest byte to its highest; bytes that all items share cost only
 * their counting. */
#include "pkg/base/sort.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/mem.h"

enum { DIGIT = 8, DIGITS = 64 / DIGIT, VALUES = 1 << DIGIT, SHORT_MAX = 64 };

struct keyed {
    uint64_t prefix;
    size_t index;
};

static size_t digit_of(uint64_t prefix, unsigned digit)
{
    return (size_t)(prefix >> digit * DIGIT) & (VALUES - 1);
}

/* One pass from `from` to `to`; false if all items have the same digit and nothing was done. */
static bool pass(const struct keyed *from, struct keyed *to, size_t count, unsigned digit)
{
    size_t next[VALUES] = {0};
    for (size_t i = 0; i < count; i++) {
        next[digit_of(from[i].prefix, digit)]++;
    }
    if (next[digit_of(from[0].prefix, digit)] == count) {
        return false;
    }
    size_t sum = 0;
    for (size_t v = 0; v < VALUES; v++) {
        const size_t here = next[v];
        next[v] = sum;
        sum += here;
    }
    for (size_t i = 0; i < count; i++) {
        to[next[digit_of(from[i].prefix, digit)]++] = from[i];
    }
    return true;
}

/* Returns which of the two arrays holds the result. */
static struct keyed *radix(struct keyed *from, struct keyed *to, size_t count)
{
    for (unsigned digit = 0; digit < DIGITS; digit++) {
        if (pass(from, to, count, digit)) {
            struct keyed *swap = from;
            from = to;
            to = swap;
        }
    }
    return from;
}

static void sort_ties(char *items, const struct keyed *order, size_t count, size_t size,
                      weft_sort_compare_fn compare)
{
    for (size_t i = 0; i < count;) {
        size_t end = i + 1;
        while (end < count && order[end].prefix == order[i].prefix) {
            end++;
        }
        if (end - i > 1) {
            qsort(items + i * size, end - i, size, compare);
        }
        i = end;
    }
}

int weft_sort(void *items, size_t count, size_t size, weft_sort_prefix_fn prefix,
              weft_sort_compare_fn compare)
{
    if (count < 2) {
        return 0;
    }
    if (count <= SHORT_MAX && compare != NULL) {
        qsort(items, count, size, compare);
        return 0;
    }
    char *bytes = items;
    weft_autofree struct keyed *keyed = weft_calloc(count, 2 * sizeof(*keyed));
    weft_autofree char *copy = weft_memdup(items, count * size);
    if (keyed == NULL || copy == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        keyed[i] = (struct keyed){prefix(bytes + i * size), i};
    }
    const struct keyed *order = radix(keyed, keyed + count, count);
    for (size_t i = 0; i < count; i++) {
        memcpy(bytes + i * size, copy + order[i].index * size, size);
    }
    if (compare != NULL) {
        sort_ties(bytes, order, count, size, compare);
    }
    return 0;
}
