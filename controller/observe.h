/* SPDX-License-Identifier: Apache-2.0 */
/* The controller's pages: /metrics, /livez, /readyz, /debug/tree; and what is counted for them.
 * Loop thread. */
#ifndef WEFT_CONTROLLER_OBSERVE_H
#define WEFT_CONTROLLER_OBSERVE_H

#include <stdint.h>

#include "pkg/apply/apply.h"
#include "pkg/base/error.h"
#include "pkg/http/metrics.h"

struct weft_controller;

/* Filled in where it happens. */
struct weft_controller_stats {
    uint64_t passes, passes_failed;
    struct weft_histogram pass_time;
    uint64_t applies[WEFT_APPLY_OUTCOME_COUNT]; /* plans that were carried out, by how it ended */
    uint64_t writes;                            /* confirmed HyperNode writes */
    uint64_t labels_written, labels_failed;     /* Nodes */
    uint64_t leads;                             /* how often the Lease was taken */
    int64_t last_pass; /* realtime, ns, of the last good one; 0: none yet */
};

/* Listens where the options say; not asked for: does nothing. Errors of weft_http_new. */
int weft_controller_observe(struct weft_controller *c, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
