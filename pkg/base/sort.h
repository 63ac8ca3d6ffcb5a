/* SPDX-License-Identifier: Apache-2.0 */
/* A sort for long arrays whose order mostly shows in 64 bits. Pure; any thread. */
#ifndef WEFT_BASE_SORT_H
#define WEFT_BASE_SORT_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t (*weft_sort_prefix_fn)(const void *item);
typedef int (*weft_sort_compare_fn)(const void *a, const void *b);

/* Sorts like qsort(items, count, size, compare), in time that grows with count alone as long as
 * few items share a prefix: these are radix sorted, and compare is asked only about items of equal
 * prefix. prefix(a) < prefix(b) must imply compare(a, b) < 0. Unlike qsort it is stable if compare
 * is NULL, which says that equal prefixes need no order. Needs memory for a copy of items and 32
 * bytes an item. 0 or -ENOMEM (then nothing has changed). */
int weft_sort(void *items, size_t count, size_t size, weft_sort_prefix_fn prefix,
              weft_sort_compare_fn compare) __attribute__((warn_unused_result));

#endif
