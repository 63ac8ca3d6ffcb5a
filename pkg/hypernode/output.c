/* SPDX-License-Identifier: Apache-2.0 */
/* Which output is written by whom, and what it is called. */
#include "pkg/hypernode/output.h"

#include <errno.h>

#include "pkg/base/buf.h"
#include "pkg/hypernode/hypernode.h"
#include "pkg/hypernode/output-internal.h"

const char *weft_output_name(enum weft_output output)
{
    static const char *const names[WEFT_OUTPUT_COUNT] = {
        [WEFT_OUTPUT_SLURM_CONF] = "slurm", [WEFT_OUTPUT_SLURM_YAML] = "slurm-yaml",
        [WEFT_OUTPUT_DOT] = "dot",          [WEFT_OUTPUT_KUEUE] = "kueue",
        [WEFT_OUTPUT_KAI] = "kai",          [WEFT_OUTPUT_LABELS] = "labels",
    };
    return names[output];
}

const char *weft_output_file(enum weft_output output)
{
    static const char *const names[WEFT_OUTPUT_COUNT] = {
        [WEFT_OUTPUT_SLURM_CONF] = "topology.conf", [WEFT_OUTPUT_SLURM_YAML] = "topology.yaml",
        [WEFT_OUTPUT_DOT] = "fabric.dot",           [WEFT_OUTPUT_KUEUE] = "kueue-topology.yaml",
        [WEFT_OUTPUT_KAI] = "kai-topology.yaml",    [WEFT_OUTPUT_LABELS] = "labels.txt",
    };
    return names[output];
}

static int write_it(enum weft_output output, const struct weft_output_input *input,
                    struct weft_buf *buf)
{
    switch (output) {
    case WEFT_OUTPUT_SLURM_CONF:
        return weft_output_slurm_conf(input, buf);
    case WEFT_OUTPUT_SLURM_YAML:
        return weft_output_slurm_yaml(input, buf);
    case WEFT_OUTPUT_DOT:
        return weft_output_dot(input, buf);
    case WEFT_OUTPUT_KUEUE:
        return weft_output_topology("kueue.x-k8s.io/v1beta2", input, buf);
    case WEFT_OUTPUT_KAI:
        return weft_output_topology("kai.scheduler/v1alpha1", input, buf);
    case WEFT_OUTPUT_LABELS:
        return weft_output_labels(input, buf);
    case WEFT_OUTPUT_COUNT:
        break;
    }
    return -EINVAL;
}

int weft_output_write(enum weft_output output, const struct weft_output_input *input,
                      struct weft_buf *buf, struct weft_error *err)
{
    const bool levels = output == WEFT_OUTPUT_KUEUE || output == WEFT_OUTPUT_KAI;
    if (input->set->count == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "no node has a place: nothing to write");
    }
    if (levels && input->tier_count + 1 > WEFT_OUTPUT_LEVELS_MAX) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "a Topology has at most %d levels with the host name; the plan has %zu "
                            "tiers",
                            (int)WEFT_OUTPUT_LEVELS_MAX, input->tier_count);
    }
    const int rc = write_it(output, input, buf);
    if (rc == -EFBIG) {
        return weft_err_set(err, rc, WEFT_ERR_CONFIG, "the output is larger than %zu MiB",
                            buf->max >> 20);
    }
    return rc < 0 ? weft_err_nomem(err) : 0;
}
