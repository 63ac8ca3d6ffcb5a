/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a node's adapters are on the compute network: by what the inventory says of them, else
 * by their rate. A storage or management network that holds all nodes would make them one group.
 * Switches and adapters that the user names are excluded already. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/map.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/inventory.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree-internal.h"

/* ---- by inventory ---- */

static enum weft_nic_role role_of(const struct weft_graph *graph, size_t device)
{
    const struct weft_device *d = &graph->fabric->devices[device];
    const enum weft_nic_role role = weft_nic_inventory_role(graph->inventory, d->guid);
    return role != WEFT_NIC_UNKNOWN ? role
                                    : weft_nic_inventory_role(graph->inventory, d->system_guid);
}

/* A node of which a compute adapter is known has no others. */
static int exclude_by_role(struct weft_graph *graph, const uint32_t *node_of, size_t count)
{
    const struct weft_fabric *fabric = graph->fabric;
    weft_autofree bool *has_compute = weft_calloc(count, sizeof(*has_compute));
    if (has_compute == NULL) {
        return -ENOMEM;
    }
    for (size_t d = graph->switch_count; d < fabric->device_count; d++) {
        if (node_of[d] != ID_NONE && role_of(graph, d) == WEFT_NIC_COMPUTE) {
            has_compute[node_of[d]] = true;
        }
    }
    for (size_t d = graph->switch_count; d < fabric->device_count; d++) {
        const enum weft_nic_role role =
            node_of[d] != ID_NONE ? role_of(graph, d) : WEFT_NIC_UNKNOWN;
        if (node_of[d] != ID_NONE &&
            (role == WEFT_NIC_OTHER || (role == WEFT_NIC_UNKNOWN && has_compute[node_of[d]]))) {
            graph->excluded_device[d] = true;
        }
    }
    return 0;
}

/* ---- by rate ---- */

/* How many nodes have an adapter of a name, and on how many of them it is slow. */
struct named {
    size_t all;
    size_t slow;
    uint32_t gbps; /* one of the slow ones', the smallest */
    uint32_t others;
};

struct rates {
    struct weft_graph *graph;
    const uint32_t *node_of;
    uint32_t *gbps;       /* device: its fastest link; 0: unknown */
    uint32_t *most;       /* node: its fastest adapter */
    struct weft_map *ids; /* adapter's name to index */
    struct named *named;
    size_t *id_of; /* device: its name's index */
};

static void rates_done(struct rates *r)
{
    weft_free(r->gbps);
    weft_free(r->most);
    weft_map_free(r->ids);
    weft_free(r->named);
    weft_free(r->id_of);
}
WEFT_DEFINE_AUTO_VALUE(struct rates, rates_done)

/* Less than half of the node's fastest adapter: a link that is down to half its rate is not. */
static bool is_slow(const struct rates *r, size_t device)
{
    return r->gbps[device] > 0 && 2 * r->gbps[device] < r->most[r->node_of[device]];
}

static bool counts(const struct rates *r, size_t device)
{
    return r->node_of[device] != ID_NONE && !r->graph->excluded_device[device] &&
           r->gbps[device] > 0;
}

static bool find_rates(struct rates *r)
{
    const struct weft_graph *graph = r->graph;
    const struct weft_fabric *fabric = graph->fabric;
    bool any = false;
    for (size_t l = 0; l < fabric->link_count; l++) {
        const struct weft_link *link = &fabric->links[l];
        /* 1: the dump does not say */
        if (link->a < graph->switch_count && link->gbps > 1 && link->gbps > r->gbps[link->b]) {
            r->gbps[link->b] = link->gbps;
        }
    }
    for (size_t d = graph->switch_count; d < fabric->device_count; d++) {
        if (counts(r, d) && r->gbps[d] > r->most[r->node_of[d]]) {
            r->most[r->node_of[d]] = r->gbps[d];
        }
    }
    for (size_t d = graph->switch_count; d < fabric->device_count; d++) {
        any = any || (counts(r, d) && is_slow(r, d));
    }
    return any;
}

static int count_names(struct rates *r)
{
    const struct weft_fabric *fabric = r->graph->fabric;
    for (size_t d = r->graph->switch_count; d < fabric->device_count; d++) {
        if (!counts(r, d)) {
            continue;
        }
        weft_autofree char *name = weft_ca_name(&fabric->devices[d]);
        size_t id = name != NULL ? weft_map_count(r->ids) : 0;
        if (name == NULL ||
            (!weft_map_get(r->ids, name, &id) && weft_map_put(r->ids, name, id) < 0)) {
            return -ENOMEM;
        }
        struct named *named = &r->named[id];
        r->id_of[d] = id;
        named->all++;
        if (is_slow(r, d)) {
            named->slow++;
            named->gbps = named->slow == 1 || r->gbps[d] < named->gbps ? r->gbps[d] : named->gbps;
            named->others =
                r->most[r->node_of[d]] > named->others ? r->most[r->node_of[d]] : named->others;
        }
    }
    return 0;
}

/* On most nodes that have it: then it is so by design, and no bad cable. */
static bool is_slow_by_design(const struct named *named)
{
    return 2 * named->slow > named->all;
}

static int report_slow(const struct rates *r)
{
    size_t pos = 0;
    size_t id = 0;
    const char *name = NULL;
    int rc = 0;
    while (rc == 0 && weft_map_next(r->ids, &pos, &name, &id)) {
        const struct named *named = &r->named[id];
        if (is_slow_by_design(named)) {
            rc = weft_findings_add(&r->graph->findings, "slow-adapter", name,
                                   "at %u Gb/s on %zu nodes, where others have %u: taken for a "
                                   "storage or management adapter, whose switches say nothing",
                                   (unsigned)named->gbps, named->slow, (unsigned)named->others);
        }
    }
    return rc;
}

static int exclude_by_rate(struct weft_graph *graph, const uint32_t *node_of, size_t count)
{
    const size_t devices = graph->fabric->device_count;
    weft_auto(rates_done) struct rates r = {
        .graph = graph,
        .node_of = node_of,
        .gbps = weft_calloc(devices, sizeof(uint32_t)),
        .most = weft_calloc(count, sizeof(uint32_t)),
    };
    if (r.gbps == NULL || r.most == NULL) {
        return -ENOMEM;
    }
    if (!find_rates(&r)) {
        return 0;
    }
    r.ids = weft_map_new(WEFT_FABRIC_DEVICES_MAX);
    r.named = weft_calloc(devices, sizeof(*r.named));
    r.id_of = weft_calloc(devices, sizeof(*r.id_of));
    if (r.ids == NULL || r.named == NULL || r.id_of == NULL || count_names(&r) < 0) {
        return -ENOMEM;
    }
    for (size_t d = graph->switch_count; d < devices; d++) {
        if (counts(&r, d) && is_slow(&r, d) && is_slow_by_design(&r.named[r.id_of[d]])) {
            graph->excluded_device[d] = true;
        }
    }
    return report_slow(&r);
}

int weft_graph_roles(struct weft_graph *graph, const uint32_t *node_of, size_t count,
                     bool keep_slow)
{
    int rc = graph->inventory != NULL ? exclude_by_role(graph, node_of, count) : 0;
    if (rc == 0 && !keep_slow) {
        rc = exclude_by_rate(graph, node_of, count);
    }
    return rc;
}
