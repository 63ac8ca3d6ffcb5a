/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's blocks: the checks of slurmctld (src/plugins/topology/block, block_record.c) and the
 * groups of blocks that BlockSizes makes of neighbours in the file. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pkg/fabric/slurm-internal.h"

enum {
    FACTOR_MAX = 1 << 15, /* Slurm: at most 2^15 base blocks in an aggregate */
    NODES_MAX = 1 << 24,
    TIER_MAX = 32
};

int weft_slurm_topo_size(struct weft_slurm_topo *topo, uint64_t size, unsigned line,
                         struct weft_error *err)
{
    const uint64_t base = topo->size_count > 0 ? topo->sizes[0] : size;
    const uint64_t factor = base > 0 ? size / base : 0;
    if (factor == 0 || size > NODES_MAX || factor * base != size || (factor & (factor - 1)) != 0 ||
        factor > FACTOR_MAX) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: block size %" PRIu64 ": must be the first (%" PRIu64
                            ") times a power of two up to 32768",
                            topo->source, line, size, base);
    }
    /* kept ascending and once each, as Slurm's bitmap of levels does */
    size_t at = 0;
    while (at < topo->size_count && topo->sizes[at] < size) {
        at++;
    }
    if (at < topo->size_count && topo->sizes[at] == size) {
        return 0;
    }
    if (topo->size_count == WEFT_LEVELS_MAX) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s:%u: more than %d block sizes",
                            topo->source, line, (int)WEFT_LEVELS_MAX);
    }
    memmove(&topo->sizes[at + 1], &topo->sizes[at], (topo->size_count - at) * sizeof(uint32_t));
    topo->sizes[at] = (uint32_t)size;
    topo->size_count++;
    return 0;
}

/* Base blocks in a group of each level, from 1 up; Slurm stops at the first that holds all. */
static size_t find_factors(const struct weft_slurm_topo *topo, size_t *factors)
{
    size_t count = 1;
    factors[0] = 1;
    for (size_t i = 1; i < topo->size_count && factors[count - 1] < topo->count; i++) {
        factors[count++] = topo->sizes[i] / topo->sizes[0];
    }
    return count;
}

/* "b1..b4": the block's group of a level; none where Slurm makes none, because the next lower level
 * holds all that is left. */
static int set_group(const struct weft_slurm_topo *topo, size_t block, size_t level,
                     const size_t *factors, struct weft_row *row)
{
    const size_t first = block - block % factors[level];
    const size_t left = topo->count - first;
    if (level > 0 && factors[level] > left && factors[level - 1] >= left) {
        return 0;
    }
    const size_t last = first + (left < factors[level] ? left : factors[level]) - 1;
    char name[2 * WEFT_SLURM_NAME_MAX + 3];
    (void)snprintf(name, sizeof(name), "%s%s%s", topo->items[first].name, last > first ? ".." : "",
                   last > first ? topo->items[last].name : "");
    return weft_row_set(row, level, weft_str(name));
}

static int add_block(struct weft_slurm_topo *topo, size_t block, const size_t *factors,
                     size_t levels, struct weft_error *err)
{
    const struct weft_slurm_topo_item *item = &topo->items[block];
    weft_auto(weft_hostlist_done) struct weft_hostlist list = {0};
    int rc = weft_slurm_topo_expand(topo, item, item->nodes, &list, err);
    if (rc < 0) {
        return rc;
    }
    if (list.count == 0 || (topo->size_count > 0 && list.count < topo->sizes[0])) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: block %.64s has %zu nodes, fewer than the base block size %u",
                            topo->source, item->line, item->name, list.count,
                            topo->size_count > 0 ? topo->sizes[0] : 1);
    }
    for (size_t n = 0; n < list.count; n++) {
        struct weft_row *row = NULL;
        rc = weft_rows_add(&topo->rows, weft_str(list.names[n]), item->line, &row, err);
        if (rc < 0) {
            return rc;
        }
        for (size_t l = 0; l < levels; l++) {
            if (set_group(topo, block, l, factors, row) < 0) {
                return weft_err_nomem(err);
            }
        }
    }
    return 0;
}

int weft_slurm_topo_finish_blocks(struct weft_slurm_topo *topo, struct weft_declared **ret_declared,
                                  struct weft_error *err)
{
    weft_auto(weft_label_levels_done) struct weft_label_levels levels = {0};
    size_t factors[WEFT_LEVELS_MAX] = {0};
    const size_t count = find_factors(topo, factors);
    int rc = 0;
    for (size_t b = 0; rc == 0 && b < topo->count; b++) {
        rc = add_block(topo, b, factors, count, err);
    }
    if (rc < 0) {
        return rc;
    }
    char text[WEFT_LEVELS_MAX][TIER_MAX] = {"block"};
    const char *names[WEFT_LEVELS_MAX + 1] = {text[0]};
    for (size_t l = 1; l < count; l++) {
        (void)snprintf(text[l], sizeof(text[l]), "blocks-%zu", factors[l]);
        names[l] = text[l];
    }
    const struct weft_slurm_options *options = topo->options;
    rc = weft_rows_levels(count, options != NULL ? options->tiers : NULL,
                          options != NULL ? options->tier_count : 0, names, &levels, err);
    return rc < 0 ? rc
                  : weft_rows_finish(&topo->rows, &levels, WEFT_NAMES_HOSTS, ret_declared, err);
}
