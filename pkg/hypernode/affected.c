/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of two sets, compared gang by gang. */
#include "pkg/hypernode/affected.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/base/map.h"
#include "pkg/hypernode/hypernode.h"

enum {
    DEPTH_MAX = 16,
    ITEMS_MAX = 1 << 24,
    /* a node's and an object's name (253 each), the words between and after them */
    MOVES_TEXT_MAX = WEFT_AFFECTED_MOVES_MAX * (2 * 253 + 8) + 32
};

#define NONE SIZE_MAX

/* Who lists whom: the first by name, as the scheduler's cache has one parent only. */
struct parents {
    const struct weft_hypernode_set *set;
    struct weft_map *of_node;
    struct weft_map *of_object;
};

static void parents_done(struct parents *p)
{
    weft_map_free(p->of_node);
    weft_map_free(p->of_object);
}
WEFT_DEFINE_AUTO_VALUE(struct parents, parents_done)

static int parents_init(struct parents *p, const struct weft_hypernode_set *set)
{
    *p = (struct parents){
        .set = set, .of_node = weft_map_new(ITEMS_MAX), .of_object = weft_map_new(ITEMS_MAX)};
    if (p->of_node == NULL || p->of_object == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < set->count; i++) {
        const struct weft_hypernode *hn = &set->items[i];
        for (size_t m = 0; m < hn->member_count; m++) {
            const struct weft_member *member = &hn->members[m];
            struct weft_map *map = member->type == WEFT_MEMBER_NODE ? p->of_node : p->of_object;
            if (member->selector == WEFT_SELECTOR_EXACT && !weft_map_get(map, member->name, NULL) &&
                weft_map_put(map, member->name, i) < 0) {
                return -ENOMEM;
            }
        }
    }
    return 0;
}

/* The objects above the node, closest first; how many. Tiers rise, so it ends on a cycle too. */
static size_t chain_of(const struct parents *p, const char *node, size_t chain[DEPTH_MAX])
{
    size_t count = 0;
    size_t at = NONE;
    bool found = weft_map_get(p->of_node, node, &at);
    while (found && count < DEPTH_MAX &&
           (count == 0 || p->set->items[at].tier > p->set->items[chain[count - 1]].tier)) {
        chain[count++] = at;
        found = weft_map_get(p->of_object, p->set->items[at].name, &at);
    }
    return count;
}

/* ---- one gang ---- */

/* One of the gang's nodes, below one object of before. */
struct row {
    size_t object;
    const char *node;
    size_t pods; /* of the gang on it */
    bool leaves;
    const char *now; /* what it will be below on that tier; NULL: nothing */
};

static int compare_row(const void *a, const void *b)
{
    const struct row *x = a;
    const struct row *y = b;
    if (x->object != y->object) {
        return x->object < y->object ? -1 : 1;
    }
    return strcmp(x->node, y->node);
}

struct work {
    struct parents before;
    struct parents after;
    const char *instance;
    struct row *rows; /* scratch: DEPTH_MAX a node of a gang */
    struct weft_affected *result;
};

static size_t fill_rows(const struct work *w, const char *node, size_t pods, struct row *rows)
{
    size_t from[DEPTH_MAX];
    size_t to[DEPTH_MAX];
    size_t count = 0;
    const size_t from_count = chain_of(&w->before, node, from);
    const size_t to_count = chain_of(&w->after, node, to);
    for (size_t i = 0; i < from_count; i++) {
        const struct weft_hypernode *was = &w->before.set->items[from[i]];
        if (!weft_hypernode_is_ours(was, w->instance)) {
            continue;
        }
        struct row row = {.object = from[i], .node = node, .pods = pods, .leaves = true};
        for (size_t k = 0; k < to_count; k++) {
            const struct weft_hypernode *is = &w->after.set->items[to[k]];
            row.leaves = row.leaves && strcmp(is->name, was->name) != 0;
            row.now = is->tier == was->tier ? is->name : row.now;
        }
        rows[count++] = row;
    }
    return count;
}

static char *moves_text(const struct row *rows, size_t count)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, MOVES_TEXT_MAX);
    size_t leaving = 0;
    int rc = 0;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].leaves && ++leaving <= WEFT_AFFECTED_MOVES_MAX && rc == 0) {
            rc = weft_buf_printf(&buf, "%s%.253s to %.253s", leaving > 1 ? ", " : "", rows[i].node,
                                 rows[i].now != NULL ? rows[i].now : "none");
        }
    }
    if (leaving > WEFT_AFFECTED_MOVES_MAX && rc == 0) {
        rc = weft_buf_printf(&buf, ", %zu more", leaving - WEFT_AFFECTED_MOVES_MAX);
    }
    return rc == 0 ? weft_strdup(weft_buf_text(&buf)) : NULL;
}

static void affected_gang_done(struct weft_affected_gang *item)
{
    weft_free(item->hypernode);
    weft_free(item->gang);
    weft_free(item->moves);
}

/* Takes over the item's texts. */
static int keep_item(struct weft_affected *result, struct weft_affected_gang *item)
{
    void *list = result->items;
    int rc = weft_array_reserve(&list, &result->cap, result->count + 1, sizeof(*result->items),
                                ITEMS_MAX);
    result->items = list;
    if (item->hypernode == NULL || item->gang == NULL || item->moves == NULL) {
        rc = -ENOMEM;
    }
    if (rc < 0) {
        affected_gang_done(item);
        return rc;
    }
    result->items[result->count++] = *item;
    return 0;
}

static int add_affected(struct work *w, const char *gang, size_t gang_nodes, const struct row *rows,
                        size_t count)
{
    const struct weft_hypernode *hn = &w->before.set->items[rows[0].object];
    struct weft_affected_gang item = {.tier = hn->tier, .nodes = count};
    bool together = rows[0].now != NULL;
    for (size_t i = 0; i < count; i++) {
        item.pods += rows[i].pods;
        item.leaving_nodes += rows[i].leaves;
        item.leaving_pods += rows[i].leaves ? rows[i].pods : 0;
        together = together && rows[i].now != NULL && strcmp(rows[i].now, rows[0].now) == 0;
    }
    item.torn = count == gang_nodes && !together;
    if (item.leaving_nodes == 0) {
        return 0;
    }
    item.hypernode = weft_strdup(hn->name);
    item.gang = weft_strdup(gang);
    item.moves = moves_text(rows, count);
    return keep_item(w->result, &item);
}

/* placements[0, count) are one gang's, by node. */
static int compare_gang(struct work *w, const struct weft_placement *placements, size_t count)
{
    size_t rows = 0;
    size_t nodes = 0;
    for (size_t i = 0; i < count; nodes++) {
        size_t end = i + 1;
        while (end < count && strcmp(placements[end].node, placements[i].node) == 0) {
            end++;
        }
        rows += fill_rows(w, placements[i].node, end - i, &w->rows[rows]);
        i = end;
    }
    if (rows > 0) {
        qsort(w->rows, rows, sizeof(*w->rows), compare_row);
    }
    int rc = 0;
    for (size_t i = 0; i < rows && rc == 0;) {
        size_t end = i + 1;
        while (end < rows && w->rows[end].object == w->rows[i].object) {
            end++;
        }
        rc = add_affected(w, placements[0].gang, nodes, &w->rows[i], end - i);
        i = end;
    }
    return rc;
}

/* ---- all ---- */

static int compare_placement(const void *a, const void *b)
{
    const struct weft_placement *x = a;
    const struct weft_placement *y = b;
    const int gang = strcmp(x->gang, y->gang);
    return gang != 0 ? gang : strcmp(x->node, y->node);
}

static int compare_affected(const void *a, const void *b)
{
    const struct weft_affected_gang *x = a;
    const struct weft_affected_gang *y = b;
    if (x->tier != y->tier) {
        return x->tier < y->tier ? -1 : 1;
    }
    const int name = strcmp(x->hypernode, y->hypernode);
    return name != 0 ? name : strcmp(x->gang, y->gang);
}

static size_t gang_end(const struct weft_placement *placements, size_t count, size_t first)
{
    size_t end = first + 1;
    while (end < count && strcmp(placements[end].gang, placements[first].gang) == 0) {
        end++;
    }
    return end;
}

static int compare_gangs(struct work *w, const struct weft_placement *sorted, size_t count)
{
    size_t most = 0;
    for (size_t i = 0; i < count;) {
        const size_t end = gang_end(sorted, count, i);
        most = end - i > most ? end - i : most;
        i = end;
    }
    weft_autofree struct row *rows = weft_calloc(most * DEPTH_MAX, sizeof(*rows));
    int rc = rows != NULL ? 0 : -ENOMEM;
    w->rows = rows;
    for (size_t i = 0; i < count && rc == 0;) {
        const size_t end = gang_end(sorted, count, i);
        rc = compare_gang(w, &sorted[i], end - i);
        i = end;
    }
    return rc;
}

void weft_affected_done(struct weft_affected *affected)
{
    for (size_t i = 0; i < affected->count; i++) {
        affected_gang_done(&affected->items[i]);
    }
    weft_free(affected->items);
    *affected = (struct weft_affected){0};
}

int weft_hypernode_affected(const struct weft_affected_input *input,
                            struct weft_affected *ret_affected, struct weft_error *err)
{
    const size_t count = input->count;
    if (count > WEFT_PLACEMENTS_MAX) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "more than %d pods of gangs",
                            (int)WEFT_PLACEMENTS_MAX);
    }
    weft_auto(weft_affected_done) struct weft_affected result = {0};
    weft_auto(parents_done) struct parents old = {0};
    weft_auto(parents_done) struct parents new = {0};
    weft_autofree struct weft_placement *sorted = weft_calloc(count, sizeof(*sorted));
    int rc = sorted != NULL ? parents_init(&old, input->before) : -ENOMEM;
    rc = rc == 0 ? parents_init(&new, input->after) : rc;
    if (rc == 0 && count > 0) {
        memcpy(sorted, input->placements, count * sizeof(*sorted));
        qsort(sorted, count, sizeof(*sorted), compare_placement);
    }
    struct work w = {.before = old, .after = new, .instance = input->instance, .result = &result};
    rc = rc == 0 ? compare_gangs(&w, sorted, count) : rc;
    if (rc < 0) {
        return weft_err_nomem(err);
    }
    if (result.count > 0) {
        qsort(result.items, result.count, sizeof(*result.items), compare_affected);
    }
    *ret_affected = result;
    result = (struct weft_affected){0};
    return 0;
}
