/* SPDX-License-Identifier: Apache-2.0 */
/* A generated fabric as a value, its tree, and how that compares with the truth. */
#include <stdio.h>
#include <stdlib.h>

#include "pkg/base/buf.h"
#include "pkg/base/map.h"
#include "pkg/fabric/fabric-internal.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"
#include "tests/bench/fabric_gen.h"

static void die(const char *what, const struct weft_error *err)
{
    (void)fprintf(stderr, "generated %s: %s\n", what, err->message);
    abort();
}

void gen_nodes(const struct gen *g, struct weft_nodes *ret_nodes)
{
    weft_autofree bool *linked = weft_calloc(g->host_count, sizeof(*linked));
    if (linked == NULL) {
        abort();
    }
    for (size_t i = 0; i < g->cable_count; i++) {
        if (g->cables[i].host && !g->cables[i].gone) {
            linked[g->cables[i].a] = true;
        }
    }
    for (size_t h = 0; h < g->host_count; h++) {
        struct weft_node *node = NULL;
        if (linked[h] && !g->hosts[h].foreign &&
            weft_nodes_add(ret_nodes, g->hosts[h].name, NULL, &node) < 0) {
            abort();
        }
    }
}

static uint32_t add_device(struct weft_raw *raw, enum weft_device_kind kind, uint64_t guid,
                           const char *desc)
{
    uint32_t index = 0;
    if (weft_raw_device(raw, kind, guid, &index) < 0) {
        abort();
    }
    raw->devices[index].line = 1;
    raw->devices[index].system_guid = guid;
    raw->devices[index].desc = weft_str(desc);
    return index;
}

static void add_both(struct weft_raw *raw, struct raw_link link)
{
    const struct raw_link back = {link.to, link.from, link.to_port, link.from_port, link.gbps};
    if (weft_raw_link(raw, &link) < 0 || weft_raw_link(raw, &back) < 0) {
        abort();
    }
}

struct weft_fabric *gen_fabric(const struct gen *g)
{
    weft_auto(weft_raw_done) struct weft_raw raw;
    weft_raw_init(&raw, "generated");
    weft_autofree char(*descs)[64] = weft_calloc(g->cable_count, sizeof(*descs));
    weft_autofree uint16_t *ports = gen_ports(g);
    struct weft_fabric *fabric = NULL;
    struct weft_error err = {0};
    if (descs == NULL) {
        abort();
    }
    for (size_t s = 0; s < g->switch_count; s++) {
        (void)add_device(&raw, WEFT_DEVICE_SWITCH, gen_switch_guid(g, s), g->switches[s]);
    }
    for (size_t i = 0; i < g->cable_count; i++) {
        const struct gen_cable *c = &g->cables[i];
        struct raw_link link = {.to = (uint32_t)c->b,
                                .from_port = ports[2 * i],
                                .to_port = ports[2 * i + 1],
                                .gbps = 400};
        if (c->gone) {
            continue;
        }
        if (c->host) {
            (void)snprintf(descs[i], sizeof(descs[i]), "%s mlx5_%u", g->hosts[c->a].name, c->rail);
            link.from = add_device(&raw, WEFT_DEVICE_CA, gen_ca_guid(g, c->a, c->rail), descs[i]);
        } else {
            link.from = (uint32_t)c->a;
        }
        add_both(&raw, link);
    }
    if (weft_raw_finish(&raw, &fabric, &err) < 0) {
        die("fabric", &err);
    }
    return fabric;
}

struct weft_tree *gen_tree(const struct gen *g, const struct weft_tree_options *options)
{
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = gen_fabric(g);
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    struct weft_tree *tree = NULL;
    struct weft_error err = {0};
    gen_nodes(g, &nodes);
    if (weft_tree_from_fabric(fabric, nodes.items, nodes.count, options, &tree, &err) < 0 ||
        weft_tree_check(tree, &err) < 0) {
        die("tree", &err);
    }
    return tree;
}

/* Does each key always come with the same value? */
static bool is_function(const size_t *keys, const size_t *values, size_t count)
{
    weft_auto(weft_idmap_done) struct weft_idmap map;
    weft_idmap_init(&map, SIZE_MAX / 2);
    for (size_t i = 0; i < count; i++) {
        uint64_t *value = NULL;
        bool is_new = false;
        if (weft_idmap_at(&map, keys[i], &value, &is_new) < 0) {
            abort();
        }
        if (!is_new && *value != values[i]) {
            return false;
        }
        *value = values[i];
    }
    return true;
}

bool gen_has_truth(const struct gen *g, const struct weft_tree *tree, size_t t)
{
    weft_autofree size_t *truth = weft_calloc(tree->node_count, sizeof(*truth));
    weft_auto(weft_map_free) struct weft_map *hosts = weft_map_new(SIZE_MAX / 2);
    for (size_t h = 0; h < g->host_count; h++) {
        if (truth == NULL || hosts == NULL || weft_map_put(hosts, g->hosts[h].name, h) < 0) {
            abort();
        }
    }
    for (size_t n = 0; n < tree->node_count; n++) {
        size_t host = 0;
        (void)weft_map_get(hosts, tree->nodes[n], &host);
        truth[n] = g->hosts[host].truth[t];
    }
    for (size_t i = 0; i < tree->tier_count; i++) {
        const size_t *group = tree->tiers[i].node_group;
        if (is_function(truth, group, tree->node_count) &&
            is_function(group, truth, tree->node_count)) {
            return true;
        }
    }
    return false;
}

static int compare_size(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a;
    const size_t y = *(const size_t *)b;
    return (x > y) - (x < y);
}

void gen_sizes(const struct weft_tree *tree, struct weft_buf *buf)
{
    for (size_t t = 0; t < tree->tier_count; t++) {
        const struct weft_tree_tier *tier = &tree->tiers[t];
        weft_autofree size_t *sizes = weft_calloc(tier->group_count, sizeof(*sizes));
        if (sizes == NULL) {
            abort();
        }
        for (size_t n = 0; n < tree->node_count; n++) {
            if (tier->node_group[n] != WEFT_TREE_NONE) {
                sizes[tier->node_group[n]]++;
            }
        }
        qsort(sizes, tier->group_count, sizeof(*sizes), compare_size);
        for (size_t g = 0; g < tier->group_count;) {
            size_t end = g + 1;
            while (end < tier->group_count && sizes[end] == sizes[g]) {
                end++;
            }
            (void)weft_buf_puts(buf, g > 0 ? "," : t > 0 ? " " : "");
            if (end - g > 1) {
                (void)weft_buf_printf(buf, "%zux", end - g);
            }
            (void)weft_buf_printf(buf, "%zu", sizes[g]);
            g = end;
        }
    }
}
