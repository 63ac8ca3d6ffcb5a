/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of ids, for the model. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/hypernode/model-internal.h"

/* As many as nodes there may be in all HyperNodes together. */
enum { IDS_MAX = 100 << 20 };

void weft_ids_done(struct weft_ids *ids)
{
    weft_free(ids->v);
    *ids = (struct weft_ids){0};
}

static int reserve(struct weft_ids *ids, size_t need)
{
    void *list = ids->v;
    const int rc = weft_array_reserve(&list, &ids->cap, need, sizeof(ids->v[0]), IDS_MAX);
    ids->v = list;
    return rc;
}

int weft_ids_add(struct weft_ids *ids, size_t id)
{
    const int rc = reserve(ids, ids->n + 1);
    if (rc == 0) {
        ids->v[ids->n++] = id;
    }
    return rc;
}

void weft_ids_remove(struct weft_ids *ids, size_t id)
{
    for (size_t i = 0; i < ids->n; i++) {
        if (ids->v[i] == id) {
            memmove(&ids->v[i], &ids->v[i + 1], (ids->n - i - 1) * sizeof(ids->v[0]));
            ids->n--;
            return;
        }
    }
}

bool weft_ids_has(const struct weft_ids *ids, size_t id)
{
    for (size_t i = 0; i < ids->n; i++) {
        if (ids->v[i] == id) {
            return true;
        }
    }
    return false;
}

static int cmp_id(const void *a, const void *b)
{
    const size_t *x = a;
    const size_t *y = b;
    return (*x > *y) - (*x < *y);
}

void weft_ids_sort(struct weft_ids *ids)
{
    if (ids->n > 1) {
        qsort(ids->v, ids->n, sizeof(ids->v[0]), cmp_id);
    }
}

int weft_ids_union(struct weft_ids *to, const struct weft_ids *from)
{
    if (from->n == 0) {
        return 0;
    }
    weft_auto(weft_ids_done) struct weft_ids sum = {0};
    const int rc = reserve(&sum, to->n + from->n);
    if (rc < 0) {
        return rc;
    }
    size_t i = 0;
    size_t j = 0;
    while (i < to->n || j < from->n) {
        const bool take_to = j >= from->n || (i < to->n && to->v[i] <= from->v[j]);
        const size_t id = take_to ? to->v[i] : from->v[j];
        i += i < to->n && to->v[i] == id;
        j += j < from->n && from->v[j] == id;
        sum.v[sum.n++] = id;
    }
    const struct weft_ids old = *to;
    *to = sum;
    sum = old;
    return 0;
}
