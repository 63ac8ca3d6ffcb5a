/* SPDX-License-Identifier: Apache-2.0 */
/* The graph of the tree algorithm: which links count, between which switches and hosts, with
 * parallel links summed. Decides what is evidence; draws no conclusion from it. */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/map.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/node.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree-internal.h"

static void strings_free(char **strings, size_t count)
{
    for (size_t i = 0; strings != NULL && i < count; i++) {
        weft_free(strings[i]);
    }
    weft_free(strings);
}

static void adjacency_done(struct weft_adjacency *adjacency)
{
    weft_free(adjacency->start);
    weft_free(adjacency->edges);
}

void weft_graph_free(struct weft_graph *graph)
{
    if (graph == NULL) {
        return;
    }
    adjacency_done(&graph->peers);
    adjacency_done(&graph->uplinks);
    adjacency_done(&graph->hosts);
    strings_free(graph->node_names, graph->node_count);
    strings_free(graph->unplaced, graph->unplaced_count);
    strings_free(graph->switch_names, graph->switch_count);
    weft_free(graph->was_on);
    weft_free(graph->device_host);
    weft_findings_done(&graph->findings);
    weft_free(graph->excluded_switch);
    weft_free(graph->excluded_device);
    weft_free(graph);
}

/* ---- what is excluded ---- */

static bool matches(const char *text, const char *const *globs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fnmatch(globs[i], text, 0) == 0) {
            return true;
        }
    }
    return false;
}

/* Names for people; where two switches have the same one, with the GUID. */
static int name_switches(struct weft_graph *graph)
{
    weft_auto(weft_map_free) struct weft_map *seen = weft_map_new(WEFT_FABRIC_DEVICES_MAX);
    graph->switch_names = weft_calloc(graph->switch_count, sizeof(char *));
    if (seen == NULL || graph->switch_names == NULL) {
        return -ENOMEM;
    }
    for (size_t s = 0; s < graph->switch_count; s++) {
        size_t times = 0;
        char *name = weft_device_name(&graph->fabric->devices[s]);
        graph->switch_names[s] = name;
        if (name == NULL) {
            return -ENOMEM;
        }
        (void)weft_map_get(seen, name, &times);
        if (weft_map_put(seen, name, times + 1) < 0) {
            return -ENOMEM;
        }
    }
    for (size_t s = 0; s < graph->switch_count; s++) {
        size_t times = 0;
        char *name = graph->switch_names[s];
        if (weft_map_get(seen, name, &times) && times > 1) {
            graph->switch_names[s] =
                weft_asprintf("%s (%016" PRIx64 ")", name, graph->fabric->devices[s].guid);
            weft_free(name);
            if (graph->switch_names[s] == NULL) {
                return -ENOMEM;
            }
        }
    }
    return 0;
}

/* Switches by name or GUID, adapters by their own name. */
static int exclude(struct weft_graph *graph, const struct weft_tree_options *options)
{
    const struct weft_fabric *fabric = graph->fabric;
    graph->excluded_switch = weft_calloc(graph->switch_count, sizeof(bool));
    graph->excluded_device = weft_calloc(fabric->device_count, sizeof(bool));
    if (graph->excluded_switch == NULL || graph->excluded_device == NULL) {
        return -ENOMEM;
    }
    for (size_t s = 0; s < graph->switch_count; s++) {
        char guid[17];
        (void)snprintf(guid, sizeof(guid), "%016" PRIx64, fabric->devices[s].guid);
        graph->excluded_switch[s] =
            matches(graph->switch_names[s], options->exclude_switches,
                    options->exclude_switch_count) ||
            matches(guid, options->exclude_switches, options->exclude_switch_count);
    }
    for (size_t d = graph->switch_count; d < fabric->device_count; d++) {
        if (options->exclude_hca_count > 0 && fabric->devices[d].host != WEFT_FABRIC_NO_HOST) {
            weft_autofree char *name = weft_ca_name(&fabric->devices[d]);
            if (name == NULL) {
                return -ENOMEM;
            }
            graph->excluded_device[d] =
                matches(name, options->exclude_hcas, options->exclude_hca_count);
        }
    }
    return 0;
}

/* ---- links ---- */

enum which { PEERS, HOSTS, NOWHERE };

/* Where a link counts: between switches (both ways), between a switch and a host, or nowhere. Its
 * switch is link->a; *ret_other is the other switch, or the host. */
static enum which place_of(const struct weft_graph *graph, const struct weft_link *link,
                           uint32_t *ret_other)
{
    if (link->a >= graph->switch_count || graph->excluded_switch[link->a] || link->a == link->b) {
        return NOWHERE;
    }
    *ret_other = link->b;
    if (link->b < graph->switch_count) {
        return graph->excluded_switch[link->b] ? NOWHERE : PEERS;
    }
    if (graph->excluded_device[link->b]) {
        return NOWHERE;
    }
    *ret_other = graph->device_host[link->b];
    return HOSTS;
}

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int compare_edge(const void *a, const void *b)
{
    const struct weft_edge *x = a;
    const struct weft_edge *y = b;
    return (x->to > y->to) - (x->to < y->to);
}

/* Sorts each row and sums its parallel links, in place. */
static void merge_rows(struct weft_adjacency *adjacency, size_t count)
{
    size_t kept = 0;
    size_t begin = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t end = adjacency->start[i + 1];
        if (end - begin > 1) {
            qsort(&adjacency->edges[begin], end - begin, sizeof(struct weft_edge), compare_edge);
        }
        adjacency->start[i] = kept;
        for (size_t e = begin; e < end; e++) {
            const struct weft_edge edge = adjacency->edges[e];
            if (kept > adjacency->start[i] && adjacency->edges[kept - 1].to == edge.to) {
                adjacency->edges[kept - 1].count += edge.count;
                adjacency->edges[kept - 1].weight += edge.weight;
            } else {
                adjacency->edges[kept++] = edge;
            }
        }
        begin = end;
    }
    adjacency->start[count] = kept;
}

/* Rows begin two later while they are counted, one later while they are filled. */
static int add_rows(struct weft_adjacency *adjacency, size_t count)
{
    adjacency->start = weft_calloc(count + 2, sizeof(*adjacency->start));
    return adjacency->start != NULL ? 0 : -ENOMEM;
}

static int add_edges(struct weft_adjacency *adjacency, size_t count)
{
    for (size_t i = 1; i <= count; i++) {
        adjacency->start[i + 1] += adjacency->start[i];
    }
    adjacency->edges = weft_calloc(adjacency->start[count + 1], sizeof(*adjacency->edges));
    return adjacency->edges != NULL ? 0 : -ENOMEM;
}

static void add_edge(struct weft_adjacency *adjacency, uint32_t from, uint32_t to, uint32_t gbps)
{
    adjacency->edges[adjacency->start[from + 1]++] =
        (struct weft_edge){.to = to, .count = 1, .weight = gbps};
}

static void count_links(struct weft_graph *graph)
{
    const struct weft_fabric *fabric = graph->fabric;
    uint32_t other = 0;
    for (size_t l = 0; l < fabric->link_count; l++) {
        const uint32_t a = fabric->links[l].a;
        const enum which which = place_of(graph, &fabric->links[l], &other);
        if (which == PEERS) {
            graph->peers.start[a + 2]++;
            graph->peers.start[other + 2]++;
        } else if (which == HOSTS) {
            graph->hosts.start[a + 2]++;
            graph->uplinks.start[other + 2]++;
        }
    }
}

static void fill_links(struct weft_graph *graph)
{
    const struct weft_fabric *fabric = graph->fabric;
    uint32_t other = 0;
    for (size_t l = 0; l < fabric->link_count; l++) {
        const struct weft_link *link = &fabric->links[l];
        const enum which which = place_of(graph, link, &other);
        if (which == PEERS) {
            add_edge(&graph->peers, link->a, other, link->gbps);
            add_edge(&graph->peers, other, link->a, link->gbps);
        } else if (which == HOSTS) {
            add_edge(&graph->hosts, link->a, other, link->gbps);
            add_edge(&graph->uplinks, other, link->a, link->gbps);
        }
    }
}

static int add_links(struct weft_graph *graph)
{
    const size_t switches = graph->switch_count;
    if (add_rows(&graph->peers, switches) < 0 || add_rows(&graph->hosts, switches) < 0 ||
        add_rows(&graph->uplinks, graph->host_count) < 0) {
        return -ENOMEM;
    }
    count_links(graph);
    if (add_edges(&graph->peers, switches) < 0 || add_edges(&graph->hosts, switches) < 0 ||
        add_edges(&graph->uplinks, graph->host_count) < 0) {
        return -ENOMEM;
    }
    fill_links(graph);
    merge_rows(&graph->peers, switches);
    merge_rows(&graph->hosts, switches);
    merge_rows(&graph->uplinks, graph->host_count);
    return 0;
}

static int compare_home(const void *key, const void *item)
{
    return strcmp(key, ((const struct weft_tree_home *)item)->node);
}

/* The switch with that GUID (switches are sorted by it), or ID_NONE. */
static uint32_t find_switch(const struct weft_graph *graph, uint64_t guid)
{
    const struct weft_device *devices = graph->fabric->devices;
    size_t low = 0;
    size_t high = graph->switch_count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        low = devices[mid].guid < guid ? mid + 1 : low;
        high = devices[mid].guid < guid ? high : mid;
    }
    return low < graph->switch_count && devices[low].guid == guid ? (uint32_t)low : ID_NONE;
}

static int find_homes_before(struct weft_graph *graph, const struct weft_tree_options *options)
{
    if (options->home_count == 0) {
        return 0;
    }
    graph->was_on = weft_calloc(graph->node_count, sizeof(*graph->was_on));
    if (graph->was_on == NULL) {
        return -ENOMEM;
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct weft_tree_home *home =
            bsearch(graph->node_names[n], options->homes, options->home_count,
                    sizeof(*options->homes), compare_home);
        graph->was_on[n] = home != NULL ? find_switch(graph, home->switch_guid) : ID_NONE;
    }
    return 0;
}

static int check_doubles(const struct weft_node *nodes, size_t node_count, struct weft_error *err)
{
    weft_auto(weft_map_free) struct weft_map *seen = weft_map_new(WEFT_NODES_MAX);
    int rc = seen != NULL ? 0 : -ENOMEM;
    for (size_t n = 0; rc == 0 && nodes != NULL && n < node_count; n++) {
        rc = weft_map_put(seen, nodes[n].name, n);
        if (rc == 1) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "node %s is there twice",
                                nodes[n].name);
        }
    }
    return rc == -EFBIG
               ? weft_err_set(err, rc, WEFT_ERR_CONFIG, "more than %d nodes", (int)WEFT_NODES_MAX)
               : rc;
}

int weft_graph_build(const struct weft_fabric *fabric, const struct weft_node *nodes,
                     size_t node_count, const struct weft_tree_options *options,
                     struct weft_graph **ret_graph, struct weft_error *err)
{
    static const struct weft_tree_options none = {0};
    weft_auto(weft_graph_free) struct weft_graph *graph = weft_calloc(1, sizeof(*graph));
    if (graph == NULL) {
        return weft_err_nomem(err);
    }
    graph->fabric = fabric;
    graph->switch_count = fabric->switch_count;
    graph->inventory = options != NULL ? options->inventory : NULL;
    options = options != NULL ? options : &none;
    int rc = check_doubles(nodes, node_count, err);
    if (rc < 0 && rc != -ENOMEM) {
        return rc;
    }
    rc = rc == 0 ? name_switches(graph) : rc;
    rc = rc == 0 ? exclude(graph, options) : rc;
    rc = rc == 0 ? weft_graph_hosts(graph, nodes, node_count, options->keep_slow_hcas) : rc;
    rc = rc == 0 ? find_homes_before(graph, options) : rc;
    rc = rc == 0 ? add_links(graph) : rc;
    if (rc < 0) {
        return weft_err_nomem(err);
    }
    if (graph->unplaced_count > 0) {
        qsort(graph->unplaced, graph->unplaced_count, sizeof(char *), compare_strings);
    }
    *ret_graph = weft_steal(&graph);
    return 0;
}
