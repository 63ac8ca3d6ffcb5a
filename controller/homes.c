/* SPDX-License-Identifier: Apache-2.0 */
/* From objects with switches in their identity to Nodes with a switch. */
#include "controller/homes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "controller/forest.h"
#include "pkg/base/str.h"
#include "pkg/fabric/node.h"
#include "pkg/hypernode/hypernode.h"

static int compare_home(const void *a, const void *b)
{
    const struct weft_tree_home *x = a;
    const struct weft_tree_home *y = b;
    return strcmp(x->node, y->node);
}

/* "switch:<guid>,…": the first, which is the smallest. A copy on another tier is no leaf group. */
static bool first_guid(const struct weft_hypernode *object, uint64_t *ret_guid)
{
    const char *identity = weft_hypernode_text(object->identity);
    if (strncmp(identity, "switch:", strlen("switch:")) != 0) {
        return false;
    }
    identity += strlen("switch:");
    return weft_parse_hex64((struct weft_str){identity, strcspn(identity, ",")}, ret_guid) == 0;
}

static bool find_home(const struct weft_forest *forest, const char *node, uint64_t *ret_guid)
{
    size_t chain[WEFT_FOREST_TIERS_MAX];
    const size_t count = weft_forest_chain(forest, node, chain);
    bool found = false;
    for (size_t i = 0; i < count && !found; i++) {
        found = first_guid(weft_forest_object(forest, chain[i]), ret_guid);
    }
    return found;
}

int weft_homes_before(const struct weft_hypernode_set *places, const char *instance,
                      const struct weft_node *nodes, size_t node_count,
                      struct weft_homes *ret_homes, struct weft_error *err)
{
    weft_auto(weft_forest_free) struct weft_forest *forest = NULL;
    weft_autofree struct weft_tree_home *homes = weft_calloc(node_count, sizeof(*homes));
    const int rc =
        homes != NULL ? weft_forest_new(places, instance, &forest, err) : weft_err_nomem(err);
    if (rc < 0) {
        return rc;
    }
    size_t count = 0;
    for (size_t n = 0; n < node_count; n++) {
        homes[count].node = nodes[n].name;
        count += find_home(forest, nodes[n].name, &homes[count].switch_guid);
    }
    if (count > 0) {
        qsort(homes, count, sizeof(*homes), compare_home);
    }
    *ret_homes = (struct weft_homes){weft_steal(&homes), count};
    return 0;
}
