/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the steps from a graph to its partitions, and frees them. */
#include <errno.h>

#include "pkg/tree/tree-internal.h"

void weft_shape_free(struct weft_shape *shape)
{
    if (shape == NULL) {
        return;
    }
    for (size_t t = 0; t < shape->tier_count; t++) {
        weft_free(shape->tiers[t]);
    }
    weft_free(shape->seed);
    weft_free(shape->demoted);
    weft_free(shape->leaf);
    weft_free(shape->level);
    weft_free(shape->by_level);
    weft_free(shape->home);
    weft_free(shape->joins_group);
    weft_free(shape->joins_tier);
    weft_free(shape->straggler);
    weft_free(shape);
}

static struct weft_shape *shape_new(const struct weft_graph *graph)
{
    weft_auto(weft_shape_free) struct weft_shape *shape = weft_calloc(1, sizeof(*shape));
    const size_t count = graph->switch_count;
    if (shape == NULL) {
        return NULL;
    }
    shape->graph = graph;
    shape->seed = weft_calloc(count, sizeof(bool));
    shape->demoted = weft_calloc(count, sizeof(bool));
    shape->leaf = weft_calloc(count, sizeof(uint32_t));
    shape->level = weft_calloc(count, sizeof(uint32_t));
    shape->by_level = weft_calloc(count, sizeof(uint32_t));
    shape->joins_group = weft_calloc(count, sizeof(uint32_t));
    shape->joins_tier = weft_calloc(count, sizeof(uint32_t));
    shape->home = weft_calloc(graph->node_count, sizeof(uint32_t));
    if (shape->seed == NULL || shape->demoted == NULL || shape->leaf == NULL ||
        shape->level == NULL || shape->by_level == NULL || shape->joins_group == NULL ||
        shape->joins_tier == NULL || shape->home == NULL) {
        return NULL;
    }
    for (size_t s = 0; s < count; s++) {
        shape->joins_group[s] = ID_NONE;
        shape->joins_tier[s] = ID_NONE;
    }
    return weft_steal(&shape);
}

/* Three or more linked leaf groups and no switch above any of them: the routers of a dragonfly or
 * torus. (Two are a pair of switches back to back.) */
static bool is_flat(const struct weft_shape *shape)
{
    const struct weft_graph *graph = shape->graph;
    size_t groups = 0;
    bool linked = false;
    if (shape->level_count != 1) {
        return false;
    }
    for (size_t i = 0; i < shape->reached; i++) {
        const uint32_t s = shape->by_level[i];
        groups += shape->leaf[s] == s;
        for (size_t e = graph->peers.start[s]; !linked && e < graph->peers.start[s + 1]; e++) {
            linked = shape->leaf[graph->peers.edges[e].to] != shape->leaf[s];
        }
    }
    return linked && groups > 2;
}

int weft_shape_build(const struct weft_graph *graph, struct weft_shape **ret_shape,
                     struct weft_error *err)
{
    weft_auto(weft_shape_free) struct weft_shape *shape = shape_new(graph);
    int rc = shape != NULL ? weft_shape_leaves(shape) : -ENOMEM;
    rc = rc == 0 ? weft_shape_levels(shape) : rc;
    rc = rc == 0 ? weft_shape_tiers(shape) : rc;
    if (rc == -EFBIG) {
        return weft_err_set(err, rc, WEFT_ERR_CONFIG,
                            "the switch graph is denser or deeper than any real fabric (more than "
                            "%d tiers or too many shared neighbours)",
                            (int)TIERS_MAX);
    }
    if (rc < 0) {
        return weft_err_nomem(err);
    }
    shape->flat = is_flat(shape);
    *ret_shape = weft_steal(&shape);
    return 0;
}
