/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as each of UFM's answers. What is read makes a lawful tree; reading an answer twice adds
 * nothing. */
#include <stdlib.h>

#include "pkg/fabric/fabric.h"
#include "pkg/fabric/ufm.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct weft_fabric *read_times(const char *text, size_t len, unsigned times)
{
    weft_auto(weft_ufm_free) struct weft_ufm *ufm = weft_ufm_new("ufm");
    struct weft_fabric *fabric = NULL;
    for (unsigned i = 0; ufm != NULL && i < times * WEFT_UFM_RESOURCE_COUNT; i++) {
        struct weft_error err = {0};
        if (weft_ufm_add(ufm, (enum weft_ufm_resource)(i % WEFT_UFM_RESOURCE_COUNT), text, len,
                         "answer", NULL, &err) < 0 &&
            err.message[0] == '\0') {
            abort();
        }
    }
    if (ufm != NULL) {
        (void)!weft_ufm_finish(ufm, &fabric, NULL);
    }
    return fabric;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_auto(weft_fabric_free) struct weft_fabric *once = read_times((const char *)data, size, 1);
    weft_auto(weft_fabric_free) struct weft_fabric *twice = read_times((const char *)data, size, 2);
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    if ((once != NULL) != (twice != NULL) ||
        (once != NULL &&
         (once->device_count != twice->device_count || once->link_count != twice->link_count))) {
        abort();
    }
    if (once != NULL && weft_tree_from_fabric(once, NULL, 0, NULL, &tree, NULL) == 0 &&
        weft_tree_check(tree, NULL) < 0) {
        abort();
    }
    return 0;
}
