/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's topology files as declared groups: a tree of switches by its levels from the leaves up, a
 * block topology by its blocks and their aggregates. What slurmctld refuses is an error here with
 * its line; what it only warns of is a warning. Node names are host names (WEFT_NAMES_HOSTS). Pure.
 */
#ifndef WEFT_FABRIC_SLURM_H
#define WEFT_FABRIC_SLURM_H

#include <stddef.h>

#include "pkg/base/error.h"

struct weft_declared;

enum {
    WEFT_SLURM_TEXT_MAX = 64 << 20,
    WEFT_SLURM_SWITCHES_MAX = 1 << 17,
    WEFT_SLURM_NAME_MAX = 64 /* SwitchName and BlockName, topology.conf(5) */
};

/* May be NULL where it is asked for: all defaults. */
struct weft_slurm_options {
    /* topology.yaml: the topology's name; NULL: the one with cluster_default, else the first */
    const char *topology;
    /* tier names, closest first; NULL: leaf, spine, core of a tree, block of blocks. Levels beyond
     * the list are tier-N, N from 1; of blocks, blocks-N with N base blocks in each. */
    const char *const *tiers;
    size_t tier_count;
};

/* topology.conf: SwitchName or BlockName records. A switch of level N (0 has nodes, others are one
 * above their highest child, as Slurm counts) gives level N of the nodes below it; a level between
 * that a branch does not have stays empty, for the plan to pad. Errors: -EINVAL with file:line,
 * -EFBIG, -ENOMEM. */
int weft_parse_slurm_conf(const char *text, size_t len, const char *source,
                          const struct weft_slurm_options *options,
                          struct weft_declared **ret_declared, struct weft_error *err)
    __attribute__((warn_unused_result));

/* topology.yaml: one of its tree or block topologies. flat, ring and torus3d have no groups and are
 * refused if they are the one to read. Errors as above. */
int weft_parse_slurm_yaml(const char *text, size_t len, const char *source,
                          const struct weft_slurm_options *options,
                          struct weft_declared **ret_declared, struct weft_error *err)
    __attribute__((warn_unused_result));

/* Any form: a text that begins with "SwitchName=" and its like is a topology.conf, one that begins
 * with "switches:" or "blocks:" topograph's model (below), all else topology.yaml. */
int weft_parse_slurm(const char *text, size_t len, const char *source,
                     const struct weft_slurm_options *options, struct weft_declared **ret_declared,
                     struct weft_error *err) __attribute__((warn_unused_result));

/* topograph's cluster model (YAML: switches, blocks): a tree, by the same rules. Annotations and
 * labels are passed over. Errors as above. */
int weft_parse_topograph_model(const char *text, size_t len, const char *source,
                               const struct weft_slurm_options *options,
                               struct weft_declared **ret_declared, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
