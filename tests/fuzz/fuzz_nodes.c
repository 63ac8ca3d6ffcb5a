/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a node list, and the tree of its labels. Whatever is read makes a lawful tree in
 * which every node is placed or named as unplaced. */
#include <stdlib.h>

#include "pkg/fabric/labels.h"
#include "pkg/fabric/node.h"
#include "pkg/fabric/selector.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_tree(const struct weft_nodes *nodes)
{
    weft_auto(weft_label_levels_done) struct weft_label_levels levels = {0};
    weft_auto(weft_declared_free) struct weft_declared *declared = NULL;
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    if (weft_label_levels_add(&levels, "rack", NULL, NULL) < 0 ||
        weft_label_levels_add(&levels, "zone", NULL, NULL) < 0 ||
        weft_parse_labels(nodes->items, nodes->count, &levels, &declared, NULL) < 0 ||
        weft_tree_from_declared(declared, &tree, NULL) < 0) {
        return;
    }
    if (weft_tree_check(tree, NULL) < 0 ||
        tree->node_count + tree->unplaced_count != nodes->count) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_autofree char *text = weft_strndup((const char *)data, size);
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    weft_auto(weft_node_selector_free) struct weft_node_selector *selector = NULL;
    struct weft_error err = {0};
    if (weft_nodes_parse((const char *)data, size, "list", &nodes, &err) == 0) {
        check_tree(&nodes);
    } else if (err.message[0] == '\0') {
        abort();
    }
    if (text != NULL && weft_node_selector_parse(text, &selector, NULL) == 0) {
        (void)weft_node_selector_matches(selector, &(struct weft_node){0});
    }
    return 0;
}
