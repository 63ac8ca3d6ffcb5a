/* SPDX-License-Identifier: Apache-2.0 */
/* Each node's tier labels as a line that `kubectl label node` takes. All tiers or none: a node
 * whose chain does not reach the top is left out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/base/map.h"
#include "pkg/hypernode/hypernode.h"
#include "pkg/hypernode/output-internal.h"
#include "pkg/hypernode/output.h"

struct row {
    const char *node;
    size_t leaf; /* index of its HyperNode of tier 1 */
};

static int compare_row(const void *a, const void *b)
{
    return strcmp(((const struct row *)a)->node, ((const struct row *)b)->node);
}

/* parent[i]: who lists HyperNode i, or SIZE_MAX. Returns the number of nodes, or -ENOMEM. */
static ssize_t find_parents(const struct weft_hypernode_set *set, size_t *parent)
{
    weft_auto(weft_map_free) struct weft_map *index = weft_map_new(WEFT_HYPERNODES_MAX);
    size_t nodes = 0;
    for (size_t i = 0; i < set->count; i++) {
        parent[i] = SIZE_MAX;
        if (index == NULL || weft_map_put(index, set->items[i].name, i) < 0) {
            return -ENOMEM;
        }
    }
    for (size_t i = 0; i < set->count; i++) {
        for (size_t m = 0; m < set->items[i].member_count; m++) {
            const struct weft_member *member = &set->items[i].members[m];
            size_t child = 0;
            if (member->type == WEFT_MEMBER_NODE) {
                nodes++;
            } else if (weft_map_get(index, member->name, &child)) {
                parent[child] = i;
            }
        }
    }
    return (ssize_t)nodes;
}

static void fill_rows(const struct weft_hypernode_set *set, struct row *rows)
{
    for (size_t i = 0; i < set->count; i++) {
        for (size_t m = 0; m < set->items[i].member_count; m++) {
            if (set->items[i].members[m].type == WEFT_MEMBER_NODE) {
                *rows++ = (struct row){set->items[i].members[m].name, i};
            }
        }
    }
}

static void put_row(const struct weft_output_input *input, const struct row *row,
                    const size_t *parent, struct weft_buf *buf)
{
    size_t depth = 0;
    for (size_t i = row->leaf; i != SIZE_MAX && depth <= input->tier_count; i = parent[i]) {
        depth++;
    }
    if (depth != input->tier_count) {
        return;
    }
    (void)weft_buf_puts(buf, row->node);
    size_t t = 1;
    for (size_t i = row->leaf; i != SIZE_MAX; i = parent[i], t++) {
        (void)weft_buf_printf(buf, " %stier-%zu=%s", input->prefix, t, input->set->items[i].name);
    }
    (void)weft_buf_putc(buf, '\n');
}

int weft_output_labels(const struct weft_output_input *input, struct weft_buf *buf)
{
    weft_autofree size_t *parent = weft_calloc(input->set->count, sizeof(*parent));
    const ssize_t count = parent != NULL ? find_parents(input->set, parent) : -ENOMEM;
    weft_autofree struct row *rows = count >= 0 ? weft_calloc((size_t)count, sizeof(*rows)) : NULL;
    if (rows == NULL) {
        return -ENOMEM;
    }
    fill_rows(input->set, rows);
    if (count > 1) {
        qsort(rows, (size_t)count, sizeof(*rows), compare_row);
    }
    for (ssize_t n = 0; n < count; n++) {
        put_row(input, &rows[n], parent, buf);
    }
    return buf->status;
}
