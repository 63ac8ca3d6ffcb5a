/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as one of InfiniBand's tools may print it. Whatever is read makes a lawful tree; what is
 * refused says why; and lines after it in comments change nothing. */
#include <stdlib.h>
#include <string.h>

#include "pkg/fabric/fabric.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct weft_fabric *fabric_of(const char *text, size_t len)
{
    struct weft_fabric *fabric = NULL;
    struct weft_error err = {0};
    if (weft_parse_infiniband(text, len, "text", &fabric, &err) < 0 &&
        (err.message[0] == '\0' || fabric != NULL)) {
        abort();
    }
    return fabric;
}

static void check_tree(const struct weft_fabric *fabric)
{
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    struct weft_error err = {0};
    if (weft_tree_from_fabric(fabric, NULL, 0, NULL, &tree, &err) == 0 &&
        weft_tree_check(tree, &err) < 0) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char comment[] = "\n\n# end\n";
    weft_autofree char *text = weft_malloc(size + sizeof(comment));
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    memcpy(text + size, comment, sizeof(comment));
    weft_auto(weft_fabric_free) struct weft_fabric *cut = fabric_of(text, size);
    weft_auto(weft_fabric_free) struct weft_fabric *whole =
        fabric_of(text, size + sizeof(comment) - 1);
    if (whole != NULL) {
        check_tree(whole);
    }
    /* what is whole without its last line end is the same with one */
    if (cut != NULL && whole != NULL &&
        (cut->device_count != whole->device_count || cut->link_count != whole->link_count ||
         cut->host_count != whole->host_count)) {
        abort();
    }
    return 0;
}
