/* SPDX-License-Identifier: Apache-2.0 */
/* A growing list of findings, for layout and plan. Not for others. */
#ifndef WEFT_HYPERNODE_FINDINGS_H
#define WEFT_HYPERNODE_FINDINGS_H

#include <stddef.h>

#include "pkg/base/mem.h"
#include "pkg/tree/tree.h"

struct weft_findings {
    struct weft_finding *v;
    size_t n;
    size_t cap;
};

enum { WEFT_FINDINGS_MAX = 1000000 };

/* detail is a format. 0, -ENOMEM, -EFBIG. */
int weft_findings_add(struct weft_findings *list, const char *kind, const char *subject,
                      const char *detail, ...) __attribute__((format(printf, 4, 5)));
/* By kind, subject, detail; repeats are dropped. */
void weft_findings_sort(struct weft_findings *list);
void weft_findings_done(struct weft_findings *list);
WEFT_DEFINE_AUTO_VALUE(struct weft_findings, weft_findings_done)

#endif
