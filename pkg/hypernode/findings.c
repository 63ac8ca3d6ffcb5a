/* SPDX-License-Identifier: Apache-2.0 */
#include "pkg/hypernode/findings.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DETAIL_MAX = 1024 };

static void finding_done(struct weft_finding *f)
{
    weft_free(f->kind);
    weft_free(f->subject);
    weft_free(f->detail);
    *f = (struct weft_finding){0};
}

int weft_findings_add(struct weft_findings *list, const char *kind, const char *subject,
                      const char *detail, ...)
{
    char text[DETAIL_MAX];
    va_list ap;
    va_start(ap, detail);
    (void)vsnprintf(text, sizeof(text), detail, ap);
    va_end(ap);
    void *v = list->v;
    const int rc =
        weft_array_reserve(&v, &list->cap, list->n + 1, sizeof(list->v[0]), WEFT_FINDINGS_MAX);
    list->v = v;
    if (rc < 0) {
        return rc;
    }
    struct weft_finding f = {
        .kind = weft_strdup(kind), .subject = weft_strdup(subject), .detail = weft_strdup(text)};
    if (f.kind == NULL || f.subject == NULL || f.detail == NULL) {
        finding_done(&f);
        return -ENOMEM;
    }
    list->v[list->n++] = f;
    return 0;
}

static int cmp_finding(const void *a, const void *b)
{
    const struct weft_finding *x = a;
    const struct weft_finding *y = b;
    int order = strcmp(x->kind, y->kind);
    order = order != 0 ? order : strcmp(x->subject, y->subject);
    return order != 0 ? order : strcmp(x->detail, y->detail);
}

void weft_findings_sort(struct weft_findings *list)
{
    if (list->n < 2) {
        return;
    }
    qsort(list->v, list->n, sizeof(list->v[0]), cmp_finding);
    size_t kept = 1;
    for (size_t i = 1; i < list->n; i++) {
        if (cmp_finding(&list->v[i], &list->v[kept - 1]) == 0) {
            finding_done(&list->v[i]);
        } else {
            list->v[kept++] = list->v[i];
        }
    }
    list->n = kept;
}

void weft_findings_done(struct weft_findings *list)
{
    for (size_t i = 0; i < list->n; i++) {
        finding_done(&list->v[i]);
    }
    weft_free(list->v);
    *list = (struct weft_findings){0};
}
