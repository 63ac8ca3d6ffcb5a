/* SPDX-License-Identifier: Apache-2.0 */
/* A list of findings while it is collected (tree, layout, plan). One thread at a time. */
#ifndef WEFT_TREE_FINDINGS_H
#define WEFT_TREE_FINDINGS_H

#include <stddef.h>

#include "pkg/base/mem.h"
#include "pkg/tree/tree.h"

enum { WEFT_FINDINGS_MAX = 10000 };

struct weft_findings {
    struct weft_finding *items;
    size_t count;
    size_t cap;
};

void weft_findings_done(struct weft_findings *findings);
WEFT_DEFINE_AUTO_VALUE(struct weft_findings, weft_findings_done)
/* Adds one, its detail by format; over WEFT_FINDINGS_MAX it adds none and says nothing (who has so
 * many reads the first). 0 or -ENOMEM. */
int weft_findings_add(struct weft_findings *findings, const char *kind, const char *subject,
                      const char *format, ...)
    __attribute__((format(printf, 4, 5), warn_unused_result));
/* By kind, subject (natural order) and detail; repeats are dropped. */
void weft_findings_sort(struct weft_findings *findings);

#endif
