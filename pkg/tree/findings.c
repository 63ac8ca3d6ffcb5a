/* SPDX-License-Identifier: Apache-2.0 */
/* The list of findings, while it is collected. */
#include "pkg/tree/findings.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/tree/tree-internal.h"

enum { DETAIL_MAX = 4096 };

void weft_findings_done(struct weft_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        weft_finding_done(&findings->items[i]);
    }
    weft_free(findings->items);
    *findings = (struct weft_findings){0};
}

int weft_findings_add(struct weft_findings *findings, const char *kind, const char *subject,
                      const char *format, ...)
{
    void *list = findings->items;
    const int rc = weft_array_reserve(&list, &findings->cap, findings->count + 1,
                                      sizeof(*findings->items), WEFT_FINDINGS_MAX);
    findings->items = list;
    if (rc < 0) {
        return rc == -EFBIG ? 0 : rc;
    }
    char text[DETAIL_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    struct weft_finding finding = {
        .kind = weft_strdup(kind), .subject = weft_strdup(subject), .detail = weft_strdup(text)};
    if (finding.kind == NULL || finding.subject == NULL || finding.detail == NULL) {
        weft_finding_done(&finding);
        return -ENOMEM;
    }
    findings->items[findings->count++] = finding;
    return 0;
}

static int compare_finding(const void *a, const void *b)
{
    const struct weft_finding *x = a;
    const struct weft_finding *y = b;
    const int kind = strcmp(x->kind, y->kind);
    const int subject = kind != 0 ? kind : weft_str_natural_cmp(x->subject, y->subject);
    return subject != 0 ? subject : strcmp(x->detail, y->detail);
}

void weft_findings_sort(struct weft_findings *findings)
{
    if (findings->count < 2) {
        return;
    }
    qsort(findings->items, findings->count, sizeof(*findings->items), compare_finding);
    size_t kept = 1;
    for (size_t i = 1; i < findings->count; i++) {
        if (compare_finding(&findings->items[i], &findings->items[kept - 1]) == 0) {
            weft_finding_done(&findings->items[i]);
        } else {
            findings->items[kept++] = findings->items[i];
        }
    }
    findings->count = kept;
}

void weft_findings_give(struct weft_findings *findings, struct weft_tree *tree)
{
    weft_findings_sort(findings);
    tree->findings = findings->items;
    tree->finding_count = findings->count;
    *findings = (struct weft_findings){0};
}
