/* SPDX-License-Identifier: Apache-2.0 */
/* The single outputs. Private to pkg/hypernode. Each returns 0, -ENOMEM or -EFBIG; err is not set.
 */
#ifndef WEFT_HYPERNODE_OUTPUT_INTERNAL_H
#define WEFT_HYPERNODE_OUTPUT_INTERNAL_H

#include <stddef.h>

struct weft_buf;
struct weft_hypernode;
struct weft_output_input;

int weft_output_slurm_conf(const struct weft_output_input *input, struct weft_buf *buf)
    __attribute__((warn_unused_result));
int weft_output_slurm_yaml(const struct weft_output_input *input, struct weft_buf *buf)
    __attribute__((warn_unused_result));
int weft_output_dot(const struct weft_output_input *input, struct weft_buf *buf)
    __attribute__((warn_unused_result));
int weft_output_labels(const struct weft_output_input *input, struct weft_buf *buf)
    __attribute__((warn_unused_result));
/* Kueue's and KAI's Topology have one form. */
int weft_output_topology(const char *api_version, const struct weft_output_input *input,
                         struct weft_buf *buf) __attribute__((warn_unused_result));
/* The HyperNode's members in Slurm's short form. */
int weft_output_hostlist(const struct weft_hypernode *hn, struct weft_buf *buf)
    __attribute__((warn_unused_result));

#endif
