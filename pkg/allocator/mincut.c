/* SPDX-License-Identifier: Apache-2.0 */
/* The exact minimum cut of a small dense graph: Stoer and Wagner's algorithm on a matrix. */
#include "pkg/allocator/allocator-internal.h"

size_t weft_min_cut_scratch(size_t count)
{
    return 2 * count;
}

/* One phase orders the live vertices by how strongly each is tied to those before it; the last
 * one's tie is a cut. Returns it, with the last two vertices. */
static uint64_t phase(uint64_t *w, size_t stride, size_t live, uint64_t *tie, size_t *ret_last,
                      size_t *ret_before)
{
    uint64_t *in_order = tie + stride;
    for (size_t v = 0; v < live; v++) {
        tie[v] = 0;
        in_order[v] = 0;
    }
    *ret_last = *ret_before = 0;
    for (size_t step = 0; step < live; step++) {
        size_t next = live;
        for (size_t v = 0; v < live; v++) {
            if (in_order[v] == 0 && (next == live || tie[v] > tie[next])) {
                next = v;
            }
        }
        in_order[next] = 1;
        *ret_before = *ret_last;
        *ret_last = next;
        for (size_t v = 0; step + 1 < live && v < live; v++) {
            tie[v] += in_order[v] == 0 ? w[next * stride + v] : 0;
        }
    }
    return tie[*ret_last];
}

/* Merges vertex b into a and moves the highest vertex into b's place. */
static void merge(uint64_t *w, size_t stride, size_t live, size_t a, size_t b)
{
    for (size_t v = 0; v < live; v++) {
        w[a * stride + v] += w[b * stride + v];
        w[v * stride + a] = w[a * stride + v];
    }
    const size_t top = live - 1;
    for (size_t v = 0; v < live; v++) {
        w[b * stride + v] = w[top * stride + v];
    }
    for (size_t v = 0; v < live; v++) {
        w[v * stride + b] = w[v * stride + top];
    }
    w[a * stride + a] = 0;
    w[b * stride + b] = 0;
}

uint64_t weft_min_cut(uint64_t *w, size_t count, uint64_t *scratch)
{
    uint64_t best = count < 2 ? 0 : UINT64_MAX;
    for (size_t live = count; live > 1 && best > 0; live--) {
        size_t last = 0;
        size_t before = 0;
        const uint64_t cut = phase(w, count, live, scratch, &last, &before);
        best = cut < best ? cut : best;
        merge(w, count, live, before, last);
    }
    return best;
}
