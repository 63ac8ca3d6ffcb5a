/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong or unwise in a set of HyperNodes, whoever wrote them. Pure. */
#ifndef WEFT_HYPERNODE_LINT_H
#define WEFT_HYPERNODE_LINT_H

#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/hypernode/hypernode.h"

enum weft_lint_severity {
    WEFT_LINT_NOTE,    /* works, with a cost or a surprise */
    WEFT_LINT_WARNING, /* places jobs wrongly */
    WEFT_LINT_ERROR,   /* stops or crashes the scheduler, or is refused by the API server */
    WEFT_LINT_SEVERITY_COUNT
};

/* kinds: "bad-name", "cycle", "empty", "missing-child", "selector", "too-large", "two-parents"
 * (errors), "hypernode-selector", "long-name", "mixed-depth", "node-twice", "tier-name-clash",
 * "tier-order", "tier-zero" (warnings), "no-tier-name", "terminating", "tier-gap" (notes);
 * "selector" is an error, a warning or a note by what it selects with. */
struct weft_lint_finding {
    enum weft_lint_severity severity;
    const char *kind; /* static */
    char *object; /* HyperNode it is about; for node-twice the node, for the tier kinds the tier */
    char *text;   /* one sentence */
};

struct weft_lint {
    struct weft_lint_finding *findings; /* sorted: severity descending, kind, object, text */
    size_t count;
    size_t cap;
};

enum { WEFT_LINT_FINDINGS_MAX = 100000 };

/* 0 and *ret_lint (caller owns; weft_lint_done), -ENOMEM. More than WEFT_LINT_FINDINGS_MAX findings
 * are cut. Any thread. */
int weft_lint_run(const struct weft_hypernode_set *set, struct weft_lint *ret_lint,
                  struct weft_error *err) __attribute__((warn_unused_result));
void weft_lint_done(struct weft_lint *lint);
WEFT_DEFINE_AUTO_VALUE(struct weft_lint, weft_lint_done)
/* "note", "warning", "error"; static. */
const char *weft_lint_severity_name(enum weft_lint_severity severity);

#endif
