/* SPDX-License-Identifier: Apache-2.0 */
/* The entry points: a fabric's tree with its findings. */
#include "pkg/tree/build.h"

#include <errno.h>

#include "pkg/fabric/fabric.h"
#include "pkg/fabric/node.h"
#include "pkg/tree/tree-internal.h"
#include "pkg/tree/tree.h"

int weft_tree_from_fabric(const struct weft_fabric *fabric, const struct weft_node *nodes,
                          size_t node_count, const struct weft_tree_options *options,
                          struct weft_tree **ret_tree, struct weft_error *err)
{
    weft_auto(weft_graph_free) struct weft_graph *graph = NULL;
    weft_auto(weft_shape_free) struct weft_shape *shape = NULL;
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    weft_auto(weft_findings_done) struct weft_findings findings = {0};
    int rc = weft_graph_build(fabric, nodes, node_count, options, &graph, err);
    rc = rc == 0 ? weft_shape_build(graph, &shape, err) : rc;
    rc = rc == 0 ? weft_shape_emit(shape, options, &tree, err) : rc;
    if (rc < 0) {
        return rc;
    }
    rc = weft_find_fabric(shape, tree, &findings);
    rc = rc == 0 ? weft_find_rails(shape, tree, &findings) : rc;
    rc = rc == 0 ? weft_find_spines(shape, &findings) : rc;
    if (rc < 0) {
        return weft_err_nomem(err);
    }
    weft_findings_give(&findings, tree);
    *ret_tree = weft_steal(&tree);
    return 0;
}
