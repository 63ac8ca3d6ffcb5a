/* SPDX-License-Identifier: Apache-2.0 */
/* Whose each adapter is: a cluster node's, in this order: as the node or an inventory reports its
 * GUID, by the host's name if that is unique, as a user's map says; else a foreign host's, which is
 * evidence of how leaves belong together, and never a member. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/map.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/inventory.h"
#include "pkg/fabric/node.h"
#include "pkg/tree/tree-internal.h"

/* host: adapters of two nodes are on it */
#define SEVERAL (ID_NONE - 1)

struct owner {
    const struct weft_fabric *fabric;
    const struct weft_nic_inventory *inventory;
    struct weft_map *nodes; /* name to index */
    uint32_t *node_of;      /* device: node index, or ID_NONE */
    uint32_t *by_name;      /* host: node that has its name, or ID_NONE */
    uint32_t *by_guid;      /* host: the one node that reports adapters of it, ID_NONE or SEVERAL */
};

/* ---- by GUID ---- */

static const char *find_guid(const struct weft_nic_inventory *inventory,
                             enum weft_nic_inventory_rank rank, const struct weft_device *device)
{
    const char *node = weft_nic_inventory_node(inventory, rank, device->guid);
    return node != NULL ? node : weft_nic_inventory_node(inventory, rank, device->system_guid);
}

static uint32_t node_index(const struct owner *o, const char *name)
{
    size_t index = ID_NONE;
    return name != NULL && weft_map_get(o->nodes, name, &index) ? (uint32_t)index : ID_NONE;
}

static void note_report(const struct owner *o, size_t host, uint32_t node)
{
    uint32_t *by_guid = &o->by_guid[host];
    *by_guid = *by_guid == ID_NONE || *by_guid == node ? node : SEVERAL;
}

/* Adapters that an inventory says to be somebody's, also somebody's who is no node here. */
static void own_reported(const struct owner *o, bool *settled)
{
    const struct weft_fabric *fabric = o->fabric;
    for (size_t d = fabric->switch_count; d < fabric->device_count; d++) {
        const struct weft_device *device = &fabric->devices[d];
        const char *name = device->host != WEFT_FABRIC_NO_HOST
                               ? find_guid(o->inventory, WEFT_NIC_INVENTORY_REPORTED, device)
                               : NULL;
        if (name != NULL) {
            settled[d] = true;
            o->node_of[d] = node_index(o, name);
            note_report(o, device->host, o->node_of[d]);
        }
    }
}

/* ---- by name ---- */

/* What a user's map says of names that no node has. */
static void own_mapped_names(const struct owner *o)
{
    for (size_t h = 0; h < o->fabric->host_count; h++) {
        const struct weft_host *host = &o->fabric->hosts[h];
        if (o->by_name[h] != ID_NONE || host->full_name[0] == '\0') {
            continue;
        }
        const char *node = weft_nic_inventory_node_named(o->inventory, host->full_name);
        node = node != NULL ? node : weft_nic_inventory_node_named(o->inventory, host->name);
        o->by_name[h] = node_index(o, node);
    }
}

/* The rest of a host: by its name; without one with those of its adapters that are reported, for it
 * is one card or one name; then by a user's map. */
static void own_rest(const struct owner *o, const bool *settled)
{
    const struct weft_fabric *fabric = o->fabric;
    for (size_t d = fabric->switch_count; d < fabric->device_count; d++) {
        const struct weft_device *device = &fabric->devices[d];
        if (device->host == WEFT_FABRIC_NO_HOST || (settled != NULL && settled[d])) {
            continue;
        }
        uint32_t node = o->by_name[device->host];
        if (node == ID_NONE && o->by_guid != NULL && o->by_guid[device->host] != SEVERAL) {
            node = o->by_guid[device->host];
        }
        if (node == ID_NONE && o->inventory != NULL) {
            node = node_index(o, find_guid(o->inventory, WEFT_NIC_INVENTORY_MAPPED, device));
        }
        o->node_of[d] = node;
    }
}

static int own_by_inventory(struct owner *o, const struct weft_node *nodes, size_t node_count)
{
    const size_t hosts = o->fabric->host_count;
    weft_auto(weft_map_free) struct weft_map *index = weft_map_new(WEFT_NODES_MAX);
    weft_autofree uint32_t *by_guid = weft_calloc(hosts, sizeof(*by_guid));
    weft_autofree bool *settled = weft_calloc(o->fabric->device_count, sizeof(*settled));
    if (index == NULL || by_guid == NULL || settled == NULL) {
        return -ENOMEM;
    }
    for (size_t n = 0; n < node_count; n++) {
        if (weft_map_put(index, nodes[n].name, n) < 0) {
            return -ENOMEM;
        }
    }
    for (size_t h = 0; h < hosts; h++) {
        by_guid[h] = ID_NONE;
    }
    o->nodes = index;
    o->by_guid = by_guid;
    own_reported(o, settled);
    own_mapped_names(o);
    own_rest(o, settled);
    return 0;
}

static int own_devices(const struct weft_graph *graph, const struct weft_node *nodes,
                       size_t node_count, uint32_t *node_of)
{
    const struct weft_fabric *fabric = graph->fabric;
    weft_autofree uint32_t *host_of = weft_calloc(node_count, sizeof(*host_of));
    weft_autofree uint32_t *by_name = weft_calloc(fabric->host_count, sizeof(*by_name));
    struct owner o = {
        .fabric = fabric, .inventory = graph->inventory, .node_of = node_of, .by_name = by_name};
    if (host_of == NULL || by_name == NULL ||
        weft_graph_match(fabric, nodes, node_count, host_of) < 0) {
        return -ENOMEM;
    }
    for (size_t h = 0; h < fabric->host_count; h++) {
        by_name[h] = ID_NONE;
    }
    for (size_t n = 0; n < node_count; n++) {
        if (host_of[n] != ID_NONE) {
            by_name[host_of[n]] = (uint32_t)n;
        }
    }
    if (o.inventory != NULL) {
        return own_by_inventory(&o, nodes, node_count);
    }
    own_rest(&o, NULL);
    return 0;
}

/* ---- without a list of nodes ---- */

/* Every host whose name may be a node's is one. */
static void own_by_hosts(const struct weft_fabric *fabric, uint32_t *node_of)
{
    for (size_t d = fabric->switch_count; d < fabric->device_count; d++) {
        const size_t host = fabric->devices[d].host;
        if (host != WEFT_FABRIC_NO_HOST && fabric->hosts[host].mappable) {
            node_of[d] = (uint32_t)host;
        }
    }
}

/* Adds the hosts whose names may be a node's and are not among those nodes under any form. */
static int add_other_hosts(const struct weft_graph *graph, struct weft_nodes *nodes)
{
    const struct weft_fabric *fabric = graph->fabric;
    const size_t count = nodes->count;
    weft_autofree uint32_t *host_of = weft_calloc(count, sizeof(*host_of));
    weft_autofree bool *taken = weft_calloc(fabric->host_count, sizeof(*taken));
    if (host_of == NULL || taken == NULL ||
        weft_graph_match(fabric, nodes->items, count, host_of) < 0) {
        return -ENOMEM;
    }
    for (size_t n = 0; n < count; n++) {
        if (host_of[n] != ID_NONE) {
            taken[host_of[n]] = true;
        }
    }
    int rc = 0;
    for (size_t h = 0; rc == 0 && h < fabric->host_count; h++) {
        const struct weft_host *host = &fabric->hosts[h];
        struct weft_node *node = NULL;
        if (host->mappable && !taken[h] &&
            weft_nic_inventory_node_named(graph->inventory, host->full_name) == NULL) {
            rc = weft_nodes_add(nodes, host->name, NULL, &node);
        }
    }
    return rc;
}

/* The nodes of the inventory, and the hosts whose names may be a node's, each once. */
static int list_known(const struct weft_graph *graph, struct weft_nodes *nodes)
{
    struct weft_node *node = NULL;
    const char *name = NULL;
    int rc = 0;
    for (size_t i = 0;
         rc == 0 && (name = weft_nic_inventory_each_node(graph->inventory, i)) != NULL; i++) {
        rc = weft_nodes_add(nodes, name, NULL, &node);
    }
    return rc == 0 ? add_other_hosts(graph, nodes) : rc;
}

/* ---- numbers ---- */

struct placed {
    const char *name;
    uint32_t node;
};

static int compare_placed(const void *a, const void *b)
{
    const struct placed *x = a;
    const struct placed *y = b;
    return strcmp(x->name, y->name);
}

/* The things that may be placed: nodes, or hosts. */
struct candidates {
    const struct weft_node *nodes; /* NULL: the fabric's hosts */
    size_t count;
    const uint32_t *node_of; /* device */
};

static const char *candidate_name(const struct weft_graph *graph, const struct candidates *c,
                                  size_t i)
{
    return c->nodes != NULL ? c->nodes[i].name : graph->fabric->hosts[i].name;
}

/* Which of them have a link that counts. */
static bool *find_usable(const struct weft_graph *graph, const struct candidates *c)
{
    const struct weft_fabric *fabric = graph->fabric;
    bool *usable = weft_calloc(c->count, sizeof(*usable));
    for (size_t l = 0; usable != NULL && l < fabric->link_count; l++) {
        const struct weft_link *link = &fabric->links[l];
        if (link->a < graph->switch_count && c->node_of[link->b] != ID_NONE &&
            !graph->excluded_switch[link->a] && !graph->excluded_device[link->b]) {
            usable[c->node_of[link->b]] = true;
        }
    }
    return usable;
}

static int put_unplaced(struct weft_graph *graph, const char *name)
{
    char *copy = weft_strdup(name);
    if (copy == NULL) {
        return -ENOMEM;
    }
    graph->unplaced[graph->unplaced_count++] = copy;
    return 0;
}

/* Sorts who is placed by name; number[i]: its graph host, or ID_NONE. */
static int number_nodes(struct weft_graph *graph, const struct candidates *c, uint32_t *number)
{
    weft_autofree bool *usable = find_usable(graph, c);
    weft_autofree struct placed *placed = weft_calloc(c->count, sizeof(*placed));
    graph->node_names = weft_calloc(c->count, sizeof(char *));
    graph->unplaced = weft_calloc(c->nodes != NULL ? c->count : 0, sizeof(char *));
    if (usable == NULL || placed == NULL || graph->node_names == NULL || graph->unplaced == NULL) {
        return -ENOMEM;
    }
    size_t count = 0;
    for (size_t i = 0; i < c->count; i++) {
        const char *name = candidate_name(graph, c, i);
        number[i] = ID_NONE;
        if (usable[i]) {
            placed[count++] = (struct placed){name, (uint32_t)i};
        } else if (c->nodes != NULL && put_unplaced(graph, name) < 0) {
            return -ENOMEM;
        }
    }
    qsort(placed, count, sizeof(*placed), compare_placed);
    for (size_t n = 0; n < count; n++) {
        number[placed[n].node] = (uint32_t)n;
        graph->node_names[n] = weft_strdup(placed[n].name);
        graph->node_count = n + 1;
        if (graph->node_names[n] == NULL) {
            return -ENOMEM;
        }
    }
    return 0;
}

/* Hosts with adapters of no placed node come after the nodes, in the fabric's order. */
static int number_devices(struct weft_graph *graph, const struct candidates *c,
                          const uint32_t *number)
{
    const struct weft_fabric *fabric = graph->fabric;
    weft_autofree uint32_t *foreign = weft_calloc(fabric->host_count, sizeof(*foreign));
    if (foreign == NULL) {
        return -ENOMEM;
    }
    for (size_t d = graph->switch_count; d < fabric->device_count; d++) {
        const size_t host = fabric->devices[d].host;
        const uint32_t node = c->node_of[d];
        graph->device_host[d] = node != ID_NONE ? number[node] : ID_NONE;
        if (host != WEFT_FABRIC_NO_HOST && graph->device_host[d] == ID_NONE) {
            foreign[host] = 1;
        }
    }
    graph->host_count = graph->node_count;
    for (size_t h = 0; h < fabric->host_count; h++) {
        foreign[h] = foreign[h] != 0 ? (uint32_t)graph->host_count++ : ID_NONE;
    }
    for (size_t d = graph->switch_count; d < fabric->device_count; d++) {
        const size_t host = fabric->devices[d].host;
        if (host != WEFT_FABRIC_NO_HOST && graph->device_host[d] == ID_NONE) {
            graph->device_host[d] = foreign[host];
        }
    }
    return 0;
}

/* A cluster node's adapters count if they are compute adapters; of foreign hosts all count, as
 * they say more about the leaves. */
static void exclude_adapters(struct weft_graph *graph, const uint32_t *node_of)
{
    const struct weft_fabric *fabric = graph->fabric;
    for (size_t d = graph->switch_count; d < fabric->device_count; d++) {
        if (fabric->devices[d].host == WEFT_FABRIC_NO_HOST) {
            graph->excluded_device[d] = true;
        } else if (node_of[d] == ID_NONE) {
            graph->excluded_device[d] = false;
        }
    }
}

int weft_graph_hosts(struct weft_graph *graph, const struct weft_node *nodes, size_t node_count,
                     bool keep_slow)
{
    const struct weft_fabric *fabric = graph->fabric;
    weft_auto(weft_nodes_done) struct weft_nodes known = {0};
    weft_autofree uint32_t *node_of = weft_calloc(fabric->device_count, sizeof(*node_of));
    graph->device_host = weft_calloc(fabric->device_count, sizeof(*graph->device_host));
    if (node_of == NULL || graph->device_host == NULL) {
        return -ENOMEM;
    }
    for (size_t d = 0; d < fabric->device_count; d++) {
        node_of[d] = ID_NONE;
        graph->device_host[d] = ID_NONE;
    }
    struct candidates c = {.nodes = nodes, .count = node_count, .node_of = node_of};
    int rc = 0;
    if (nodes == NULL && graph->inventory != NULL) {
        rc = list_known(graph, &known);
        c.nodes = known.items;
        c.count = known.count;
    } else if (nodes == NULL) {
        c.count = fabric->host_count;
        own_by_hosts(fabric, node_of);
    }
    rc = rc == 0 && c.nodes != NULL ? own_devices(graph, c.nodes, c.count, node_of) : rc;
    rc = rc == 0 ? weft_graph_roles(graph, node_of, c.count, keep_slow) : rc;
    weft_autofree uint32_t *number = weft_calloc(c.count, sizeof(*number));
    if (rc < 0 || number == NULL) {
        return -ENOMEM;
    }
    exclude_adapters(graph, node_of);
    rc = number_nodes(graph, &c, number);
    return rc == 0 ? number_devices(graph, &c, number) : rc;
}
