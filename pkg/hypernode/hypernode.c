/* SPDX-License-Identifier: Apache-2.0 */
/* HyperNode values and sets of them: copies, comparisons, look-ups. Text fields may be NULL while
 * an object is being built; NULL and "" mean the same. */
#include "pkg/hypernode/hypernode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *weft_hypernode_text(const char *field)
{
    return field != NULL ? field : "";
}

int weft_hypernode_set_text(char **field, const char *text)
{
    char *copy = weft_strdup(text);
    if (copy == NULL) {
        return -ENOMEM;
    }
    weft_free(*field);
    *field = copy;
    return 0;
}

void weft_hypernode_done(struct weft_hypernode *hn)
{
    if (hn == NULL) {
        return;
    }
    for (size_t i = 0; i < hn->member_count; i++) {
        weft_free(hn->members[i].name);
    }
    weft_free(hn->members);
    weft_free(hn->name);
    weft_free(hn->tier_name);
    weft_free(hn->identity);
    weft_free(hn->source);
    weft_free(hn->managed_by);
    weft_free(hn->instance);
    weft_free(hn->others);
    weft_free(hn->uid);
    weft_free(hn->resource_version);
    *hn = (struct weft_hypernode){0};
}

int weft_hypernode_add_member(struct weft_hypernode *hn, enum weft_member_type type,
                              enum weft_selector selector, const char *name)
{
    void *list = hn->members;
    const int rc = weft_array_reserve(&list, &hn->member_cap, hn->member_count + 1,
                                      sizeof(struct weft_member), WEFT_HYPERNODE_MEMBERS_MAX);
    hn->members = list;
    if (rc < 0) {
        return rc;
    }
    char *copy = weft_strdup(name);
    if (copy == NULL) {
        return -ENOMEM;
    }
    hn->members[hn->member_count++] =
        (struct weft_member){.type = type, .selector = selector, .name = copy};
    return 0;
}

int weft_member_cmp(const struct weft_member *a, const struct weft_member *b)
{
    if (a->type != b->type) {
        return a->type < b->type ? -1 : 1;
    }
    const int by_name = strcmp(a->name, b->name);
    if (by_name != 0) {
        return by_name;
    }
    return (a->selector > b->selector) - (a->selector < b->selector);
}

static int cmp_member(const void *a, const void *b)
{
    return weft_member_cmp(a, b);
}

void weft_hypernode_sort(struct weft_hypernode *hn)
{
    if (hn->member_count < 2) {
        return;
    }
    qsort(hn->members, hn->member_count, sizeof(hn->members[0]), cmp_member);
    size_t kept = 1;
    for (size_t i = 1; i < hn->member_count; i++) {
        if (weft_member_cmp(&hn->members[i], &hn->members[kept - 1]) == 0) {
            weft_free(hn->members[i].name);
        } else {
            hn->members[kept++] = hn->members[i];
        }
    }
    hn->member_count = kept;
}

static int copy_texts(const struct weft_hypernode *from, struct weft_hypernode *to)
{
    const char *const source[] = {from->name,       from->tier_name, from->identity,
                                  from->source,     from->others,    from->uid,
                                  from->managed_by, from->instance,  from->resource_version};
    char **const target[] = {&to->name,       &to->tier_name, &to->identity,
                             &to->source,     &to->others,    &to->uid,
                             &to->managed_by, &to->instance,  &to->resource_version};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(source); i++) {
        *target[i] = weft_strdup(weft_hypernode_text(source[i]));
        if (*target[i] == NULL) {
            return -ENOMEM;
        }
    }
    return 0;
}

int weft_hypernode_copy(const struct weft_hypernode *from, struct weft_hypernode *ret_to)
{
    weft_auto(weft_hypernode_done) struct weft_hypernode to = {.tier = from->tier,
                                                               .terminating = from->terminating,
                                                               .reordered = from->reordered,
                                                               .torn = from->torn};
    int rc = copy_texts(from, &to);
    for (size_t i = 0; i < from->member_count && rc == 0; i++) {
        const struct weft_member *m = &from->members[i];
        rc = weft_hypernode_add_member(&to, m->type, m->selector, m->name);
    }
    if (rc == 0) {
        *ret_to = to;
        to = (struct weft_hypernode){0};
    }
    return rc;
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(weft_hypernode_text(a), weft_hypernode_text(b)) == 0;
}

bool weft_hypernode_same_members(const struct weft_hypernode *a, const struct weft_hypernode *b)
{
    if (a->member_count != b->member_count) {
        return false;
    }
    for (size_t i = 0; i < a->member_count; i++) {
        if (weft_member_cmp(&a->members[i], &b->members[i]) != 0) {
            return false;
        }
    }
    return true;
}

bool weft_hypernode_same(const struct weft_hypernode *a, const struct weft_hypernode *b)
{
    return a->tier == b->tier && same_text(a->tier_name, b->tier_name) &&
           same_text(a->identity, b->identity) && same_text(a->source, b->source) &&
           same_text(a->managed_by, b->managed_by) && same_text(a->instance, b->instance) &&
           weft_hypernode_same_members(a, b);
}

bool weft_hypernode_is_ours(const struct weft_hypernode *hn, const char *instance)
{
    return same_text(hn->source, WEFT_LABEL_SOURCE_VALUE) &&
           same_text(hn->managed_by, WEFT_LABEL_MANAGED_BY_VALUE) &&
           same_text(hn->instance, instance);
}

bool weft_hypernode_lists(const struct weft_hypernode *hn, enum weft_member_type type,
                          const char *name)
{
    size_t low = 0;
    size_t high = hn->member_count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const struct weft_member *m = &hn->members[mid];
        int order = (m->type > type) - (m->type < type);
        order = order != 0 ? order : strcmp(m->name, name);
        if (order == 0) {
            order = m->selector > WEFT_SELECTOR_EXACT; /* EXACT is the smallest */
        }
        if (order == 0) {
            return true;
        }
        if (order < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return false;
}

/* ---- sets ---- */

void weft_hypernode_set_done(struct weft_hypernode_set *set)
{
    if (set == NULL) {
        return;
    }
    for (size_t i = 0; i < set->count; i++) {
        weft_hypernode_done(&set->items[i]);
    }
    weft_free(set->items);
    *set = (struct weft_hypernode_set){0};
}

/* The index of the first item whose name is not less than name. */
static size_t lower_bound(const struct weft_hypernode_set *set, const char *name)
{
    size_t low = 0;
    size_t high = set->count;
    /* sets are mostly built in order */
    if (high > 0 && strcmp(set->items[high - 1].name, name) < 0) {
        return high;
    }
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (strcmp(set->items[mid].name, name) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

bool weft_hypernode_set_find(const struct weft_hypernode_set *set, const char *name,
                             size_t *ret_index)
{
    const size_t at = lower_bound(set, name);
    if (at == set->count || strcmp(set->items[at].name, name) != 0) {
        return false;
    }
    if (ret_index != NULL) {
        *ret_index = at;
    }
    return true;
}

static int reserve(struct weft_hypernode_set *set)
{
    void *items = set->items;
    const int rc = weft_array_reserve(&items, &set->cap, set->count + 1, sizeof(set->items[0]),
                                      WEFT_HYPERNODES_MAX);
    set->items = items;
    return rc;
}

int weft_hypernode_set_put(struct weft_hypernode_set *set, struct weft_hypernode *hn)
{
    const size_t at = lower_bound(set, hn->name);
    if (at < set->count && strcmp(set->items[at].name, hn->name) == 0) {
        weft_hypernode_done(&set->items[at]);
    } else {
        const int rc = reserve(set);
        if (rc < 0) {
            return rc;
        }
        memmove(&set->items[at + 1], &set->items[at], (set->count - at) * sizeof(set->items[0]));
        set->count++;
    }
    set->items[at] = *hn;
    *hn = (struct weft_hypernode){0};
    return 0;
}

int weft_hypernode_set_append(struct weft_hypernode_set *set, struct weft_hypernode *hn)
{
    const int rc = reserve(set);
    if (rc < 0) {
        return rc;
    }
    set->items[set->count++] = *hn;
    *hn = (struct weft_hypernode){0};
    return 0;
}

static int cmp_name(const void *a, const void *b)
{
    const struct weft_hypernode *x = a;
    const struct weft_hypernode *y = b;
    return strcmp(x->name, y->name);
}

void weft_hypernode_set_sort(struct weft_hypernode_set *set)
{
    if (set->count > 1) {
        qsort(set->items, set->count, sizeof(set->items[0]), cmp_name);
    }
}

static int cmp_ascending(const void *a, const void *b)
{
    const struct weft_hypernode *x = ((const struct weft_hypernode_ref *)a)->hn;
    const struct weft_hypernode *y = ((const struct weft_hypernode_ref *)b)->hn;
    if (x->tier != y->tier) {
        return x->tier < y->tier ? -1 : 1;
    }
    return strcmp(x->name, y->name);
}

void weft_hypernode_refs_sort(struct weft_hypernode_ref *refs, size_t count)
{
    if (count > 1) {
        qsort(refs, count, sizeof(refs[0]), cmp_ascending);
    }
}

struct weft_hypernode_ref *weft_hypernode_set_ascending(const struct weft_hypernode_set *set)
{
    struct weft_hypernode_ref *refs = weft_calloc(set->count, sizeof(*refs));
    for (size_t i = 0; refs != NULL && i < set->count; i++) {
        refs[i].hn = &set->items[i];
    }
    if (refs != NULL) {
        weft_hypernode_refs_sort(refs, set->count);
    }
    return refs;
}

const struct weft_hypernode *weft_hypernode_set_get(const struct weft_hypernode_set *set,
                                                    const char *name)
{
    size_t at;
    return weft_hypernode_set_find(set, name, &at) ? &set->items[at] : NULL;
}

bool weft_hypernode_set_remove(struct weft_hypernode_set *set, const char *name)
{
    size_t at;
    if (!weft_hypernode_set_find(set, name, &at)) {
        return false;
    }
    weft_hypernode_done(&set->items[at]);
    set->count--;
    memmove(&set->items[at], &set->items[at + 1], (set->count - at) * sizeof(set->items[0]));
    return true;
}

int weft_hypernode_set_copy(const struct weft_hypernode_set *from,
                            struct weft_hypernode_set *ret_to)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set to = {0};
    for (size_t i = 0; i < from->count; i++) {
        weft_auto(weft_hypernode_done) struct weft_hypernode hn = {0};
        int rc = weft_hypernode_copy(&from->items[i], &hn);
        rc = rc == 0 ? weft_hypernode_set_append(&to, &hn) : rc;
        if (rc < 0) {
            return rc;
        }
    }
    *ret_to = to;
    to = (struct weft_hypernode_set){0};
    return 0;
}
