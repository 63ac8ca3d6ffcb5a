/* SPDX-License-Identifier: Apache-2.0 */
/* The entry points: a fabric's tree with its findings, and the tree of several sources. */
#include "pkg/tree/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/labels.h"
#include "pkg/fabric/node.h"
#include "pkg/tree/merge.h"
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
    findings = graph->findings;
    graph->findings = (struct weft_findings){0};
    rc = weft_find_fabric(shape, tree, &findings);
    rc = rc == 0 ? weft_find_rails(shape, tree, &findings) : rc;
    rc = rc == 0 ? weft_find_joining(shape, tree, &findings) : rc;
    rc = rc == 0 ? weft_find_spines(shape, &findings) : rc;
    if (rc < 0) {
        return weft_err_nomem(err);
    }
    weft_findings_give(&findings, tree);
    *ret_tree = weft_steal(&tree);
    return 0;
}

/* ---- several sources ---- */

static int one_source(const struct weft_tree_source *source, const struct weft_node *nodes,
                      size_t node_count, struct weft_tree **ret_tree, struct weft_error *err)
{
    if (source->fabric != NULL) {
        return weft_tree_from_fabric(source->fabric, nodes, node_count, &source->options, ret_tree,
                                     err);
    }
    if (source->declared != NULL) {
        return weft_tree_from_said(source->declared, source->options.inventory, nodes, node_count,
                                   ret_tree, err);
    }
    if (nodes == NULL) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "node labels need a list of nodes");
    }
    weft_auto(weft_declared_free) struct weft_declared *declared = NULL;
    const int rc = weft_parse_labels(nodes, node_count, source->levels, &declared, err);
    return rc < 0 ? rc : weft_tree_from_declared(declared, ret_tree, err);
}

static size_t plan_index(const char *const *plan, size_t plan_count, const char *name)
{
    size_t t = 0;
    while (t < plan_count && strcmp(plan[t], name) != 0) {
        t++;
    }
    return t;
}

/* The names that a fabric's tiers get under a plan if the source does not say: from "leaf" on, or
 * all of them if the plan has other words. */
static void default_tiers(const char *const *plan, size_t plan_count,
                          struct weft_tree_options *options)
{
    const size_t leaf = plan_index(plan, plan_count, "leaf");
    const size_t first = leaf < plan_count ? leaf : 0;
    options->tiers = plan + first;
    options->tier_count = plan_count - first;
}

/* Tiers beyond the plan's end have no number: they go, and a finding says so. */
static int cut_to_plan(struct weft_tree *tree, const struct weft_tree_options *options)
{
    if (tree->tier_count <= options->tier_count) {
        return 0;
    }
    weft_auto(weft_tree_free) struct weft_tree *rest = weft_calloc(1, sizeof(*rest));
    weft_auto(weft_findings_done) struct weft_findings findings = {
        .items = tree->findings, .count = tree->finding_count, .cap = tree->finding_count};
    tree->findings = NULL;
    tree->finding_count = 0;
    const size_t cut = tree->tier_count - options->tier_count;
    if (rest == NULL ||
        weft_findings_add(&findings, "deeper-than-plan", tree->tiers[options->tier_count].name,
                          "the fabric has %zu tiers, %zu more than the plan names from its closest "
                          "on; the farthest are left out",
                          tree->tier_count, cut) < 0) {
        return -ENOMEM;
    }
    rest->tiers =
        weft_memdup(tree->tiers + options->tier_count, cut * sizeof(struct weft_tree_tier));
    if (rest->tiers == NULL) {
        return -ENOMEM;
    }
    rest->tier_count = cut; /* frees them */
    tree->tier_count = options->tier_count;
    weft_tree_link_parents(tree);
    weft_findings_give(&findings, tree);
    return 0;
}

static int not_in_plan(const char *tier, const char *const *plan, size_t plan_count, size_t source,
                       struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf names;
    weft_buf_init(&names, WEFT_ERROR_MESSAGE_MAX);
    for (size_t i = 0; i < plan_count; i++) {
        (void)weft_buf_printf(&names, "%s%s", i > 0 ? ", " : "", plan[i]);
    }
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                        "source %zu has tier \"%s\", which is not in the tier plan (tiers: %s)",
                        source + 1, tier, weft_buf_text(&names));
}

static int check_plan(const struct weft_tree *tree, const char *const *plan, size_t plan_count,
                      size_t source, struct weft_error *err)
{
    size_t last = 0;
    for (size_t t = 0; t < tree->tier_count; t++) {
        const size_t index = plan_index(plan, plan_count, tree->tiers[t].name);
        if (index == plan_count) {
            return not_in_plan(tree->tiers[t].name, plan, plan_count, source, err);
        }
        if (t > 0 && index <= last) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "source %zu has tier \"%s\" above \"%s\", against the tier plan",
                                source + 1, tree->tiers[t].name, tree->tiers[t - 1].name);
        }
        last = index;
    }
    return 0;
}

static int planned_source(const struct weft_tree_input *input, size_t index,
                          struct weft_tree **ret_tree, struct weft_error *err)
{
    struct weft_tree_source source = input->sources[index];
    if (source.fabric != NULL && source.options.tiers == NULL && input->plan != NULL) {
        default_tiers(input->plan, input->plan_count, &source.options);
    }
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    int rc = one_source(&source, input->nodes, input->node_count, &tree, err);
    if (rc < 0 || tree == NULL) {
        return rc;
    }
    if (input->plan != NULL) {
        if (source.fabric != NULL && cut_to_plan(tree, &source.options) < 0) {
            return weft_err_nomem(err);
        }
        rc = check_plan(tree, input->plan, input->plan_count, index, err);
    }
    if (rc == 0) {
        *ret_tree = weft_steal(&tree);
    }
    return rc;
}

static int merge(const struct weft_tree_input *input, struct weft_tree *const *trees,
                 struct weft_tree **ret_tree, struct weft_error *err)
{
    bool declared[WEFT_TREE_SOURCES_MAX] = {0};
    for (size_t s = 0; s < input->source_count; s++) {
        declared[s] = input->sources[s].fabric == NULL;
    }
    const struct weft_merge_options options = {
        .plan = input->plan,
        .plan_count = input->plan_count,
        .on_cross = input->on_cross,
        .domain = input->domain,
        .declared = declared,
    };
    return weft_tree_merge((const struct weft_tree *const *)trees, input->source_count, &options,
                           ret_tree, err);
}

int weft_tree_build(const struct weft_tree_input *input, struct weft_tree **ret_tree,
                    struct weft_error *err)
{
    struct weft_tree *trees[WEFT_TREE_SOURCES_MAX] = {0};
    const size_t count = input->source_count;
    if (count == 0 || count > WEFT_TREE_SOURCES_MAX || (input->plan == NULL && count > 1)) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            count > 1 ? "several sources (at most %d) need a tier plan"
                                      : "no source (at most %d)",
                            (int)WEFT_TREE_SOURCES_MAX);
    }
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    int rc = 0;
    for (size_t s = 0; rc == 0 && s < count; s++) {
        rc = planned_source(input, s, &trees[s], err);
    }
    if (rc == 0 && count == 1) {
        tree = weft_steal(&trees[0]);
    } else if (rc == 0) {
        rc = merge(input, trees, &tree, err);
    }
    rc = rc == 0 ? weft_tree_find_cabling(input, tree, err) : rc;
    if (rc == 0) {
        *ret_tree = weft_steal(&tree);
    }
    for (size_t s = 0; s < count; s++) {
        weft_tree_free(trees[s]);
    }
    return rc;
}
