/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's topology as its files give it, whatever their form: switches or blocks with hostlists.
 * Private to pkg/fabric. */
#ifndef WEFT_FABRIC_SLURM_INTERNAL_H
#define WEFT_FABRIC_SLURM_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/map.h"
#include "pkg/base/str.h"
#include "pkg/fabric/declared-internal.h"
#include "pkg/fabric/hostlist.h"
#include "pkg/fabric/slurm.h"

/* A switch or a block. */
struct weft_slurm_topo_item {
    char *name;
    char *nodes;    /* hostlist, "" if none */
    char *children; /* hostlist, "" if none; switches only */
    unsigned line;
    size_t parent; /* index, SIZE_MAX: none */
    int level;     /* -1: not yet known */
    size_t child_start;
    size_t child_count;
};

/* Zero it, set source and options, add items, finish once. */
struct weft_slurm_topo {
    const char *source;
    const struct weft_slurm_options *options; /* may be NULL */
    bool blocks;                              /* what the items are */
    bool implied; /* a child without a record of its own is a switch without nodes */
    struct weft_slurm_topo_item *items;
    size_t count;
    size_t cap;
    size_t *children; /* of all items, indexes */
    size_t child_count;
    size_t child_cap;
    struct weft_map *names;
    uint32_t sizes[WEFT_LEVELS_MAX]; /* BlockSizes; none: blocks are not aggregated */
    size_t size_count;
    struct weft_rows rows;
};

void weft_slurm_topo_done(struct weft_slurm_topo *topo);
WEFT_DEFINE_AUTO_VALUE(struct weft_slurm_topo, weft_slurm_topo_done)

/* nodes and children may be empty. Errors: -EINVAL for no name, one too long, or one that is there
 * already; -EFBIG, -ENOMEM. */
int weft_slurm_topo_add(struct weft_slurm_topo *topo, struct weft_str name, struct weft_str nodes,
                        struct weft_str children, unsigned line, struct weft_error *err)
    __attribute__((warn_unused_result));
/* One more of BlockSizes. -EINVAL for what Slurm refuses: not a power of two of the first. */
int weft_slurm_topo_size(struct weft_slurm_topo *topo, uint64_t size, unsigned line,
                         struct weft_error *err) __attribute__((warn_unused_result));
/* Checks as slurmctld does and makes the declared set. */
int weft_slurm_topo_finish(struct weft_slurm_topo *topo, struct weft_declared **ret_declared,
                           struct weft_error *err) __attribute__((warn_unused_result));
/* The parts of it: slurm-block.c. */
int weft_slurm_topo_finish_blocks(struct weft_slurm_topo *topo, struct weft_declared **ret_declared,
                                  struct weft_error *err) __attribute__((warn_unused_result));
/* The names of an item's hostlist, with the place of a syntax error. */
int weft_slurm_topo_expand(const struct weft_slurm_topo *topo,
                           const struct weft_slurm_topo_item *item, const char *text,
                           struct weft_hostlist *ret_list, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
