/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a fabric dump, and its tree. Whatever is read makes a lawful tree, and reading it
 * again after itself gives the same one. */
#include <stdlib.h>
#include <string.h>

#include "pkg/fabric/fabric.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct weft_tree *tree_of(const char *text, size_t len)
{
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = NULL;
    struct weft_tree *tree = NULL;
    struct weft_error err = {0};
    if (weft_parse_ibnetdiscover(text, len, "dump", &fabric, &err) < 0) {
        if (err.message[0] == '\0') {
            abort();
        }
        return NULL;
    }
    if (weft_tree_from_fabric(fabric, NULL, 0, NULL, &tree, &err) == 0 &&
        weft_tree_check(tree, &err) < 0) {
        abort();
    }
    return tree;
}

static void must_be_same(const struct weft_tree *a, const struct weft_tree *b)
{
    if (a->node_count != b->node_count || a->tier_count != b->tier_count) {
        abort();
    }
    for (size_t t = 0; t < a->tier_count; t++) {
        if (memcmp(a->tiers[t].node_group, b->tiers[t].node_group,
                   a->node_count * sizeof(size_t)) != 0) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* an unfinished record at the end would join what follows: a blank line ends it */
    weft_autofree char *twice = weft_malloc(2 * size + 4);
    if (twice == NULL) {
        return 0;
    }
    memcpy(twice, data, size);
    memcpy(twice + size, "\n\n", 2);
    memcpy(twice + size + 2, data, size);
    memcpy(twice + 2 * size + 2, "\n\n", 2);
    weft_auto(weft_tree_free) struct weft_tree *once = tree_of(twice, size + 2);
    weft_auto(weft_tree_free) struct weft_tree *again = tree_of(twice, 2 * size + 4);
    if (once != NULL && again != NULL) {
        must_be_same(once, again);
    }
    return 0;
}
