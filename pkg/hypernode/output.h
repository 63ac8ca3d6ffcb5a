/* SPDX-License-Identifier: Apache-2.0 */
/* What other tools than Volcano read, made from the HyperNodes themselves, so that all of them
 * agree (docs/outputs.md). Pure; any thread. */
#ifndef WEFT_HYPERNODE_OUTPUT_H
#define WEFT_HYPERNODE_OUTPUT_H

#include <stddef.h>

#include "pkg/base/error.h"

struct weft_buf;
struct weft_hypernode_set;

enum weft_output {
    WEFT_OUTPUT_SLURM_CONF, /* topology.conf: switches are HyperNodes */
    WEFT_OUTPUT_SLURM_YAML, /* topology.yaml, one tree topology "weft" */
    WEFT_OUTPUT_DOT,        /* graphviz */
    WEFT_OUTPUT_KUEUE,      /* kueue.x-k8s.io Topology */
    WEFT_OUTPUT_KAI,        /* kai.scheduler Topology */
    WEFT_OUTPUT_LABELS,     /* "node key=value key=value", a node a line */
    WEFT_OUTPUT_COUNT
};

enum {
    /* slurm.conf(5): "the size of each line in the file is limited to 1024 characters" */
    WEFT_OUTPUT_SLURM_LINE_MAX = 1023,
    /* Kueue's Topology takes so many levels, the host name included */
    WEFT_OUTPUT_LEVELS_MAX = 16
};

/* A forest of HyperNodes as a layout makes it: exactMatch members, every node in one HyperNode of
 * each tier 1..tier_count. */
struct weft_output_input {
    const struct weft_hypernode_set *set;
    const char *const *tiers; /* their names, closest first */
    size_t tier_count;
    const char *prefix;   /* of labels: "weft.dev/" */
    const char *instance; /* app.kubernetes.io/instance; also the Topology objects' name */
};

/* Appends that output. Errors: -EINVAL for a set without nodes or with more tiers than the format
 * has levels for, -EFBIG over the buffer's cap, -ENOMEM. */
int weft_output_write(enum weft_output output, const struct weft_output_input *input,
                      struct weft_buf *buf, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Its name on the command line: "slurm", "slurm-yaml", "dot", "kueue", "kai", "labels". */
const char *weft_output_name(enum weft_output output);
/* The name of its file in a folder: "topology.conf", "topology.yaml", "fabric.dot"… */
const char *weft_output_file(enum weft_output output);

#endif
