/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as an LLDP report of a host and, the same, of a switch. What is read makes a lawful
 * tree.
 */
#include <stdlib.h>

#include "pkg/fabric/fabric.h"
#include "pkg/fabric/lldp.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const reporters[] = {"gpu1", "leaf1"};
    weft_auto(weft_lldp_free) struct weft_lldp *lldp = weft_lldp_new("lldp");
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = NULL;
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    for (size_t i = 0; lldp != NULL && i < WEFT_ARRAY_LEN(reporters); i++) {
        struct weft_error err = {0};
        if (weft_lldp_add(lldp, (const char *)data, size, "report", reporters[i], &err) < 0 &&
            err.message[0] == '\0') {
            abort();
        }
    }
    if (lldp != NULL && weft_lldp_finish(lldp, &fabric, NULL) == 0 &&
        weft_tree_from_fabric(fabric, NULL, 0, NULL, &tree, NULL) == 0 &&
        weft_tree_check(tree, NULL) < 0) {
        abort();
    }
    return 0;
}
