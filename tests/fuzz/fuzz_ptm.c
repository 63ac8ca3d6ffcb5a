/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a cabling plan: DOT, UFM's table, NetQ's graph. What is read is a fabric with a
 * lawful tree, and as a plan of itself it has no deviation. */
#include <stdlib.h>

#include "pkg/fabric/cabling.h"
#include "pkg/fabric/fabric.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct weft_cabling *cabling)
{
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = NULL;
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    weft_auto(weft_cable_findings_done) struct weft_cable_findings findings = {0};
    if (cabling == NULL || weft_cabling_fabric(cabling, &fabric, NULL) < 0) {
        return;
    }
    if (weft_tree_from_fabric(fabric, NULL, 0, NULL, &tree, NULL) == 0 &&
        weft_tree_check(tree, NULL) < 0) {
        abort();
    }
    if (weft_cabling_compare(cabling, fabric, &findings, NULL) < 0 ||
        findings.right > cabling->cable_count) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int (*const readers[])(const char *, size_t, const char *, struct weft_cabling **,
                                  struct weft_error *) = {weft_parse_ptm, weft_parse_ndt,
                                                          weft_parse_netq};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(readers); i++) {
        weft_auto(weft_cabling_free) struct weft_cabling *cabling = NULL;
        struct weft_error err = {0};
        if (readers[i]((const char *)data, size, "plan", &cabling, &err) < 0 &&
            err.message[0] == '\0') {
            abort();
        }
        check(cabling);
    }
    return 0;
}
