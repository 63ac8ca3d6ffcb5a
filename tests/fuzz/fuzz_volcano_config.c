/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as Volcano's scheduler's and controller's configuration. Whatever it is, each finding
 * has a kind, the file's name as its subject and something to do, and a second look says the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "controller/volcano-config.h"
#include "pkg/tree/findings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void judge(const char *text, size_t size, struct weft_findings *findings)
{
    if (weft_volcano_judge_scheduler(text, size, "ns/name", findings) < 0 ||
        weft_volcano_judge_controller(text, size, "ns/name", findings) < 0) {
        abort();
    }
    weft_findings_sort(findings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_auto(weft_findings_done) struct weft_findings first = {0};
    weft_auto(weft_findings_done) struct weft_findings second = {0};
    judge((const char *)data, size, &first);
    judge((const char *)data, size, &second);
    if (first.count != second.count) {
        abort();
    }
    for (size_t i = 0; i < first.count; i++) {
        const struct weft_finding *f = &first.items[i];
        if (f->kind[0] == '\0' || strcmp(f->subject, "ns/name") != 0 || f->detail[0] == '\0' ||
            strcmp(f->detail, second.items[i].detail) != 0) {
            abort();
        }
    }
    return 0;
}
