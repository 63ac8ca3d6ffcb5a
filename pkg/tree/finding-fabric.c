/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about the scan as a whole: adapters without a name, nodes without a place, hosts on
 * spines, a flat graph, an incomplete dump. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/base/str.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/inventory.h"
#include "pkg/tree/tree-internal.h"
#include "pkg/tree/tree.h"

/* a finding names so many examples, then how many more there are */
enum { SHOWN = 8, LIST_MAX = 3072 };

/* Is it an adapter whose description says no host's name, and that no inventory knows? Then only
 * the GUID tells whose it is. */
static bool is_default(const struct weft_graph *graph, size_t index)
{
    const struct weft_device *device = &graph->fabric->devices[index];
    struct weft_str host = {0};
    struct weft_str hca = {0};
    if (device->host == WEFT_FABRIC_NO_HOST || graph->device_host[index] < graph->node_count) {
        return false;
    }
    /* "name hca": as the parser decides, more words are a vendor's text */
    struct weft_str rest = weft_str(device->desc);
    struct weft_str more = {0};
    return !weft_str_word(&rest, &host) ||
           (weft_str_word(&rest, &hca) && weft_str_word(&rest, &more));
}

static void list_begin(struct weft_buf *buf)
{
    weft_buf_init(buf, LIST_MAX);
}

static void list_item(struct weft_buf *buf, size_t index, const char *text)
{
    if (index < SHOWN) {
        (void)weft_buf_printf(buf, "%s%s", index > 0 ? ", " : "", text);
    }
}

static void list_end(struct weft_buf *buf, size_t count)
{
    if (count > SHOWN) {
        (void)weft_buf_printf(buf, " and %zu more", count - SHOWN);
    }
}

/* The default-description adapters of one switch: links[first, end) are its links. */
static int default_on_switch(const struct weft_shape *shape, size_t first, size_t end,
                             struct weft_findings *findings)
{
    const struct weft_fabric *fabric = shape->graph->fabric;
    weft_auto(weft_buf_done) struct weft_buf list;
    list_begin(&list);
    size_t count = 0;
    for (size_t l = first; l < end; l++) {
        const struct weft_link *link = &fabric->links[l];
        const struct weft_device *ca = &fabric->devices[link->b];
        if (is_default(shape->graph, link->b)) {
            char text[64];
            (void)snprintf(text, sizeof(text), "port %u %016" PRIx64, (unsigned)link->a_port,
                           ca->guid);
            list_item(&list, count++, text);
        }
    }
    list_end(&list, count);
    if (count == 0) {
        return 0;
    }
    return weft_findings_add(
        findings, "default-description", shape->graph->switch_names[fabric->links[first].a],
        "%zu HCA%s without a host name: %s", count, count > 1 ? "s" : "", weft_buf_text(&list));
}

static int default_summary(const struct weft_graph *graph, struct weft_findings *findings)
{
    const struct weft_fabric *fabric = graph->fabric;
    size_t hcas = 0;
    size_t defaults = 0;
    const char *example = NULL;
    for (size_t d = fabric->switch_count; d < fabric->device_count; d++) {
        const struct weft_device *device = &fabric->devices[d];
        hcas += device->host != WEFT_FABRIC_NO_HOST;
        if (is_default(graph, d)) {
            defaults++;
            example = example == NULL || strcmp(device->desc, example) < 0 ? device->desc : example;
        }
    }
    if (defaults == 0) {
        return 0;
    }
    return weft_findings_add(findings, "default-description", fabric->source,
                             "%zu of %zu HCAs have a default description (\"%s\"), so that their "
                             "hosts are known by GUID only and are no cluster nodes here",
                             defaults, hcas, example);
}

static int find_defaults(const struct weft_shape *shape, struct weft_findings *findings)
{
    const struct weft_fabric *fabric = shape->graph->fabric;
    int rc = default_summary(shape->graph, findings);
    for (size_t l = 0; rc == 0 && l < fabric->link_count;) {
        size_t end = l;
        while (end < fabric->link_count && fabric->links[end].a == fabric->links[l].a) {
            end++;
        }
        if (fabric->links[l].a < fabric->switch_count) {
            rc = default_on_switch(shape, l, end, findings);
        }
        l = end;
    }
    return rc;
}

/* Names that a system has before anybody gives it its own. */
static int find_default_names(const struct weft_graph *graph, struct weft_findings *findings)
{
    const struct weft_fabric *fabric = graph->fabric;
    weft_autofree bool *foreign = weft_calloc(fabric->host_count, sizeof(*foreign));
    if (foreign == NULL) {
        return -ENOMEM;
    }
    for (size_t d = fabric->switch_count; d < fabric->device_count; d++) {
        const size_t host = fabric->devices[d].host;
        if (host != WEFT_FABRIC_NO_HOST && graph->device_host[d] >= graph->node_count) {
            foreign[host] = true;
        }
    }
    int rc = 0;
    for (size_t h = 0; rc == 0 && h < fabric->host_count; h++) {
        const struct weft_host *host = &fabric->hosts[h];
        if (host->full_name[0] != '\0' && !host->mappable && foreign[h]) {
            rc = weft_findings_add(findings, "default-name", host->full_name,
                                   "this is a system's name before it gets its own: never taken "
                                   "for a node (an adapter of it has system image GUID %016" PRIx64
                                   ")",
                                   host->system_guid);
        }
    }
    return rc;
}

/* Names that several systems have. */
static int find_shared_names(const struct weft_graph *graph, struct weft_findings *findings)
{
    const struct weft_fabric *fabric = graph->fabric;
    size_t shared = 0;
    const char *example = NULL;
    for (size_t d = fabric->switch_count; d < fabric->device_count; d++) {
        const struct weft_device *device = &fabric->devices[d];
        if (device->host != WEFT_FABRIC_NO_HOST && !is_default(graph, d) &&
            graph->device_host[d] >= graph->node_count &&
            fabric->hosts[device->host].full_name[0] == '\0') {
            shared++;
            example = example == NULL || strcmp(device->desc, example) < 0 ? device->desc : example;
        }
    }
    if (shared == 0) {
        return 0;
    }
    return weft_findings_add(findings, "shared-description", fabric->source,
                             "%zu HCAs of different systems have descriptions that are not "
                             "unique (\"%s\"), so that their hosts are known by GUID only",
                             shared, example);
}

static int find_conflicts(const struct weft_nic_inventory *inventory,
                          struct weft_findings *findings)
{
    uint64_t guid = 0;
    const char *node = NULL;
    int rc = 0;
    for (size_t i = 0;
         rc == 0 && inventory != NULL && weft_nic_inventory_conflict(inventory, i, &guid, &node);
         i++) {
        rc =
            weft_findings_add(findings, "guid-conflict", node,
                              "an adapter with GUID %016" PRIx64
                              " is said to be this node's and another's: it is taken for neither's",
                              guid);
    }
    return rc;
}

static int find_unplaced(const struct weft_tree *tree, const char *source,
                         struct weft_findings *findings)
{
    if (tree->unplaced_count == 0) {
        return 0;
    }
    weft_auto(weft_buf_done) struct weft_buf list;
    list_begin(&list);
    for (size_t n = 0; n < tree->unplaced_count; n++) {
        list_item(&list, n, tree->unplaced[n]);
    }
    list_end(&list, tree->unplaced_count);
    return weft_findings_add(
        findings, "unplaced", source, "%zu of %zu nodes have no adapter on this fabric: %s",
        tree->unplaced_count, tree->unplaced_count + tree->node_count, weft_buf_text(&list));
}

/* A switch whose hosts did not make it a leaf. */
static int find_demoted(const struct weft_shape *shape, struct weft_findings *findings)
{
    const struct weft_graph *graph = shape->graph;
    int rc = 0;
    for (size_t s = 0; rc == 0 && s < graph->switch_count; s++) {
        if (!shape->demoted[s]) {
            continue;
        }
        weft_auto(weft_buf_done) struct weft_buf list;
        list_begin(&list);
        size_t count = 0;
        for (size_t e = graph->hosts.start[s]; e < graph->hosts.start[s + 1]; e++) {
            if (graph->hosts.edges[e].to < graph->node_count) {
                list_item(&list, count++, graph->node_names[graph->hosts.edges[e].to]);
            }
        }
        list_end(&list, count);
        rc = weft_findings_add(findings, "node-on-spine", graph->switch_names[s],
                               "joins parts of the fabric that are apart without it, so it is no "
                               "leaf although nodes are on it: %s",
                               weft_buf_text(&list));
    }
    return rc;
}

static int find_stragglers(const struct weft_shape *shape, const struct weft_tree *tree,
                           struct weft_findings *findings)
{
    if (shape->straggler == NULL || tree->tier_count == 0) {
        return 0;
    }
    const struct weft_tree_tier *top = &tree->tiers[tree->tier_count - 1];
    int rc = 0;
    for (size_t n = 0; rc == 0 && n < tree->node_count; n++) {
        if (shape->straggler[n]) {
            rc = weft_findings_add(findings, "straggler", tree->nodes[n],
                                   "it reaches the rest of the fabric by few links only; with less "
                                   "than 5 %% of the nodes like it, it is put under %s of tier %s "
                                   "instead of a tier of its own above",
                                   top->groups[top->node_group[n]].name, top->name);
        }
    }
    return rc;
}

static int find_incomplete(const struct weft_fabric *fabric, struct weft_findings *findings)
{
    if (fabric->partial) {
        const int rc = weft_findings_add(
            findings, "partial-dump", fabric->source,
            "the scan or the file is incomplete; what is missing from it proves nothing%s%s",
            fabric->warning_count > 0 ? ": " : "",
            fabric->warning_count > 0 ? fabric->warnings[fabric->warning_count - 1] : "");
        if (rc < 0) {
            return rc;
        }
    }
    if (fabric->warning_total == 0) {
        return 0;
    }
    return weft_findings_add(findings, "dump-warnings", fabric->source,
                             "%zu line%s could not be used, first %s", fabric->warning_total,
                             fabric->warning_total > 1 ? "s" : "",
                             fabric->warning_count > 0 ? fabric->warnings[0] : "");
}

int weft_find_fabric(const struct weft_shape *shape, const struct weft_tree *tree,
                     struct weft_findings *findings)
{
    const struct weft_fabric *fabric = shape->graph->fabric;
    int rc = find_defaults(shape, findings);
    rc = rc == 0 ? find_default_names(shape->graph, findings) : rc;
    rc = rc == 0 ? find_shared_names(shape->graph, findings) : rc;
    rc = rc == 0 ? find_conflicts(shape->graph->inventory, findings) : rc;
    rc = rc == 0 ? find_unplaced(tree, fabric->source, findings) : rc;
    rc = rc == 0 ? find_demoted(shape, findings) : rc;
    rc = rc == 0 ? find_incomplete(fabric, findings) : rc;
    rc = rc == 0 ? find_stragglers(shape, tree, findings) : rc;
    if (rc == 0 && shape->flat) {
        rc = weft_findings_add(findings, "flat-switch-graph", fabric->source,
                               "every switch holds hosts (dragonfly or torus): the cables alone "
                               "do not say which leaves form a group; name groups by node labels");
    }
    return rc;
}
