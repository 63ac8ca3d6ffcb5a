/* SPDX-License-Identifier: Apache-2.0 */
/* pkg/base: the prefix sort against qsort, and the id map against a plain list. */
#include <errno.h>

#include "pkg/base/idmap.h"
#include "pkg/base/mem.h"
#include "pkg/base/sort.h"
#include "tests/unit/unit.h"

struct item {
    uint64_t key;
    uint32_t minor;
    uint32_t place; /* where it stood before */
};

static uint64_t prefix(const void *item)
{
    return ((const struct item *)item)->key;
}

static int compare(const void *a, const void *b)
{
    const struct item *x = a;
    const struct item *y = b;
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    if (x->minor != y->minor) {
        return x->minor < y->minor ? -1 : 1;
    }
    return (x->place > y->place) - (x->place < y->place);
}

/* spread: bits that keys have; few bits make many ties */
static void fill(struct item *items, size_t count, unsigned spread, uint64_t *random)
{
    for (size_t i = 0; i < count; i++) {
        items[i] = (struct item){.key = weft_random(random) >> (64 - spread),
                                 .minor = (uint32_t)weft_random_below(random, 3),
                                 .place = (uint32_t)i};
    }
}

static void sorts_as_qsort_does(void)
{
    static const size_t counts[] = {0, 1, 2, 63, 64, 65, 300, 5000};
    static const unsigned spreads[] = {1, 3, 9, 40, 64};
    static struct item items[5000];
    static struct item expected[5000];
    uint64_t random = 5;
    for (size_t c = 0; c < WEFT_ARRAY_LEN(counts); c++) {
        for (size_t s = 0; s < WEFT_ARRAY_LEN(spreads); s++) {
            const size_t bytes = counts[c] * sizeof(*items);
            fill(items, counts[c], spreads[s], &random);
            memcpy(expected, items, bytes);
            qsort(expected, counts[c], sizeof(*items), compare);
            CHECK_INT(weft_sort(items, counts[c], sizeof(*items), prefix, compare), 0);
            CHECK(memcmp(items, expected, bytes) == 0);
        }
    }
}

static void keeps_the_order_of_ties_without_a_comparison(void)
{
    static struct item items[1000];
    uint64_t random = 6;
    for (size_t count = 2; count <= 1000; count += 499) {
        fill(items, count, 2, &random);
        CHECK_INT(weft_sort(items, count, sizeof(*items), prefix, NULL), 0);
        for (size_t i = 1; i < count; i++) {
            CHECK(items[i - 1].key < items[i].key ||
                  (items[i - 1].key == items[i].key && items[i - 1].place < items[i].place));
        }
    }
}

static void changes_nothing_without_memory(void)
{
    static struct item items[100];
    static struct item before[100];
    uint64_t random = 7;
    for (uint64_t nth = 1; nth <= 2; nth++) {
        fill(items, 100, 64, &random);
        memcpy(before, items, sizeof(items));
        (void)weft_mem_fail_after(nth);
        CHECK_INT(weft_sort(items, 100, sizeof(*items), prefix, compare), -ENOMEM);
        (void)weft_mem_fail_after(0);
        CHECK(memcmp(items, before, sizeof(items)) == 0);
    }
}

/* Ids of a small range, so that they meet again, 0 among them. */
static void the_id_map_knows_what_was_put(void)
{
    enum { IDS = 500, STEPS = 3000 };
    uint64_t expected[IDS] = {0};
    uint64_t random = 8;
    size_t known = 0;
    weft_auto(weft_idmap_done) struct weft_idmap map;
    weft_idmap_init(&map, IDS);
    CHECK(!weft_idmap_get(&map, 0, NULL));
    for (uint64_t step = 1; step <= STEPS; step++) {
        const uint64_t id = weft_random_below(&random, IDS);
        uint64_t *value = NULL;
        bool is_new = false;
        CHECK_INT(weft_idmap_at(&map, id, &value, &is_new), 0);
        CHECK_INT(is_new, expected[id] == 0);
        CHECK_INT(*value, expected[id]);
        known += is_new;
        *value = expected[id] = step;
    }
    size_t pos = 0;
    size_t walked = 0;
    uint64_t key = 0;
    uint64_t value = 0;
    while (weft_idmap_next(&map, &pos, &key, &value)) {
        CHECK(key < IDS && expected[key] == value);
        walked++;
    }
    CHECK(!weft_idmap_next(&map, &pos, &key, &value));
    CHECK_INT(walked, known);
    CHECK_INT(map.count, known);
    for (uint64_t id = 0; id < IDS; id++) {
        CHECK_INT(weft_idmap_get(&map, id, &value), expected[id] != 0);
        CHECK(expected[id] == 0 || value == expected[id]);
    }
    weft_idmap_reset(&map);
    CHECK_INT(map.count, 0);
    CHECK(!weft_idmap_get(&map, 0, NULL) && !weft_idmap_get(&map, 1, NULL));
}

static void the_id_map_has_a_cap(void)
{
    weft_auto(weft_idmap_done) struct weft_idmap map;
    weft_idmap_init(&map, 2);
    uint64_t *value = NULL;
    CHECK_INT(weft_idmap_at(&map, 0, &value, NULL), 0);
    CHECK_INT(weft_idmap_at(&map, 7, &value, NULL), 0);
    CHECK_INT(weft_idmap_at(&map, 8, &value, NULL), -EFBIG);
    CHECK_INT(weft_idmap_at(&map, 7, &value, NULL), 0);
    weft_auto(weft_idmap_done) struct weft_idmap other;
    weft_idmap_init(&other, 2);
    (void)weft_mem_fail_after(1);
    CHECK_INT(weft_idmap_at(&other, 7, &value, NULL), -ENOMEM);
    (void)weft_mem_fail_after(0);
    CHECK_INT(other.count, 0);
}

WEFT_SUITE(sort, {"sorts_as_qsort_does", sorts_as_qsort_does},
           {"keeps_the_order_of_ties_without_a_comparison",
            keeps_the_order_of_ties_without_a_comparison},
           {"changes_nothing_without_memory", changes_nothing_without_memory},
           {"the_id_map_knows_what_was_put", the_id_map_knows_what_was_put},
           {"the_id_map_has_a_cap", the_id_map_has_a_cap})
