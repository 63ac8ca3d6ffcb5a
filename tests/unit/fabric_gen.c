/* SPDX-License-Identifier: Apache-2.0 */
/* Generators of fabrics. Ports are numbered in the order of the cables; GUIDs are scrambled, so
 * that nothing about a switch's place can be read from its order. */
#include "tests/unit/fabric_gen.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/base/map.h"
#include "pkg/fabric/fabric-internal.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"
#include "tests/unit/unit.h"

static void *grown(void *list, size_t *cap, size_t count, size_t size)
{
    if (weft_array_reserve(&list, cap, count + 1, size, SIZE_MAX / size) < 0) {
        abort();
    }
    return list;
}

void gen_init(struct gen *g, uint64_t seed)
{
    *g = (struct gen){.random = seed, .salt = seed * UINT64_C(0x9e3779b97f4a7c15)};
}

void gen_done(struct gen *g)
{
    weft_free(g->hosts);
    weft_free(g->switches);
    weft_free(g->cables);
}

size_t gen_switch(struct gen *g, const char *format, ...)
{
    g->switches = grown(g->switches, &g->switch_cap, g->switch_count, sizeof(*g->switches));
    va_list args;
    va_start(args, format);
    (void)vsnprintf(g->switches[g->switch_count], sizeof(*g->switches), format, args);
    va_end(args);
    return g->switch_count++;
}

size_t gen_host(struct gen *g, const char *format, ...)
{
    g->hosts = grown(g->hosts, &g->host_cap, g->host_count, sizeof(*g->hosts));
    struct gen_host *host = &g->hosts[g->host_count];
    *host = (struct gen_host){.foreign = false};
    va_list args;
    va_start(args, format);
    (void)vsnprintf(host->name, sizeof(host->name), format, args);
    va_end(args);
    return g->host_count++;
}

static void add_cable(struct gen *g, struct gen_cable cable)
{
    g->cables = grown(g->cables, &g->cable_cap, g->cable_count, sizeof(*g->cables));
    g->cables[g->cable_count++] = cable;
}

void gen_plug(struct gen *g, size_t host, unsigned rail, size_t leaf)
{
    add_cable(g, (struct gen_cable){.a = host, .b = leaf, .rail = rail, .host = true});
}

void gen_link(struct gen *g, size_t a, size_t b)
{
    add_cable(g, (struct gen_cable){.a = a, .b = b});
}

size_t gen_leaf(const struct gen_rft *s, size_t pod, size_t unit, size_t rail)
{
    return s->first_leaf + (pod * s->units + unit) * s->rails + rail;
}

size_t gen_spine(const struct gen_rft *s, size_t pod, size_t spine)
{
    return s->first_spine + pod * s->spines + spine;
}

static void add_switches(struct gen *g, struct gen_rft *s)
{
    s->first_leaf = g->switch_count;
    for (size_t i = 0; i < s->pods * s->units * s->rails; i++) {
        (void)gen_switch(g, "leaf-%zu-%zu-%zu", i / (s->units * s->rails), i / s->rails % s->units,
                         i % s->rails);
    }
    s->first_spine = g->switch_count;
    for (size_t i = 0; i < s->pods * s->spines; i++) {
        (void)gen_switch(g, "spine-%zu-%zu", i / s->spines, i % s->spines);
    }
    s->first_core = g->switch_count;
    for (size_t i = 0; i < s->cores; i++) {
        (void)gen_switch(g, "core-%zu", i);
    }
}

static void add_pod(struct gen *g, const struct gen_rft *s, size_t pod)
{
    for (size_t i = 0; i < s->units * s->nodes; i++) {
        const size_t unit = i / s->nodes;
        const size_t host = gen_host(g, "n%zu-%zu-%zu", pod, unit, i % s->nodes);
        g->hosts[host].truth[0] = pod * s->units + unit;
        g->hosts[host].truth[1] = pod;
        for (unsigned rail = 0; rail < s->rails; rail++) {
            gen_plug(g, host, rail, gen_leaf(s, pod, unit, rail));
        }
    }
    for (size_t i = 0; i < s->units * s->rails * s->spines; i++) {
        gen_link(g, gen_leaf(s, pod, 0, 0) + i / s->spines, gen_spine(s, pod, i % s->spines));
    }
    const size_t each = s->spines > 0 ? s->cores / s->spines : 0;
    for (size_t i = 0; i < s->spines * each; i++) {
        gen_link(g, gen_spine(s, pod, i / each), s->first_core + i);
    }
}

void gen_rail_fat_tree(struct gen *g, struct gen_rft *shape)
{
    add_switches(g, shape);
    for (size_t pod = 0; pod < shape->pods; pod++) {
        add_pod(g, shape, pod);
    }
}

static bool chance(struct gen *g, double percent)
{
    return (double)weft_random_below(&g->random, 1000000) < percent * 10000.0;
}

void gen_break(struct gen *g, const struct gen_rft *shape, const struct gen_faults *faults)
{
    const size_t leaves = shape->pods * shape->units * shape->rails;
    for (size_t i = 0; i < g->cable_count; i++) {
        struct gen_cable *c = &g->cables[i];
        const bool to_spine = !c->host && c->a < shape->first_spine && c->b >= shape->first_spine &&
                              c->b < shape->first_core;
        if (chance(g, c->host ? faults->host_lost : faults->switch_lost)) {
            c->gone = true;
        } else if (c->host && chance(g, faults->host_moved)) {
            c->b = shape->first_leaf + weft_random_below(&g->random, leaves);
        } else if (to_spine && chance(g, faults->spine_moved)) {
            c->b = shape->first_spine + weft_random_below(&g->random, shape->pods * shape->spines);
        }
    }
}

/* ---- as values ---- */

static uint64_t mixed(uint64_t z)
{
    return weft_random(&z);
}

static uint64_t switch_guid(const struct gen *g, size_t s)
{
    return mixed(g->salt + s) | 1;
}

static uint64_t ca_guid(const struct gen *g, size_t host, unsigned rail)
{
    return mixed(g->salt + UINT64_C(0x100000000) + host * 256 + rail) | 1;
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

/* The next free port of each switch, while cables are walked in order. */
static uint16_t *new_ports(const struct gen *g)
{
    uint16_t *ports = weft_calloc(g->switch_count, sizeof(*ports));
    if (ports == NULL) {
        abort();
    }
    return ports;
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
    weft_autofree uint16_t *ports = new_ports(g);
    struct weft_fabric *fabric = NULL;
    struct weft_error err = {0};
    if (descs == NULL) {
        abort();
    }
    for (size_t s = 0; s < g->switch_count; s++) {
        (void)add_device(&raw, WEFT_DEVICE_SWITCH, switch_guid(g, s), g->switches[s]);
    }
    for (size_t i = 0; i < g->cable_count; i++) {
        const struct gen_cable *c = &g->cables[i];
        struct raw_link link = {.to = (uint32_t)c->b, .from_port = 1, .gbps = 400};
        if (c->gone) {
            continue;
        }
        if (c->host) {
            (void)snprintf(descs[i], sizeof(descs[i]), "%s mlx5_%u", g->hosts[c->a].name, c->rail);
            link.from = add_device(&raw, WEFT_DEVICE_CA, ca_guid(g, c->a, c->rail), descs[i]);
        } else {
            link.from = (uint32_t)c->a;
            link.from_port = ++ports[c->a];
        }
        link.to_port = ++ports[c->b];
        add_both(&raw, link);
    }
    if (weft_raw_finish(&raw, &fabric, &err) < 0) {
        CU_FAIL("generated fabric");
        return NULL;
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
    if (fabric == NULL ||
        weft_tree_from_fabric(fabric, nodes.items, nodes.count, options, &tree, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        CU_FAIL("generated tree");
        return NULL;
    }
    CHECK_INT(weft_tree_check(tree, &err), 0);
    CHECK_STR(err.message, "");
    return tree;
}

/* ---- as text ---- */

static void put_end(struct weft_buf *buf, bool crlf)
{
    (void)weft_buf_puts(buf, crlf ? "\r\n" : "\n");
}

/* Where each end of each cable is plugged in: [cable * 2] at a, [cable * 2 + 1] at b. */
static uint16_t *plug_ports(const struct gen *g)
{
    weft_autofree uint16_t *next = new_ports(g);
    uint16_t *ports = weft_calloc(g->cable_count * 2, sizeof(*ports));
    if (ports == NULL) {
        abort();
    }
    for (size_t i = 0; i < g->cable_count; i++) {
        const struct gen_cable *c = &g->cables[i];
        if (!c->gone) {
            ports[2 * i] = c->host ? 1 : ++next[c->a];
            ports[2 * i + 1] = ++next[c->b];
        }
    }
    return ports;
}

/* Cables by switch, so that a record needs no walk over all of them. */
struct index {
    size_t *start;
    size_t *cables;
};

static struct index index_cables(const struct gen *g)
{
    struct index index = {.start = weft_calloc(g->switch_count + 2, sizeof(size_t)),
                          .cables = weft_calloc(2 * g->cable_count, sizeof(size_t))};
    if (index.start == NULL || index.cables == NULL) {
        abort();
    }
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < g->cable_count; i++) {
            const struct gen_cable *c = &g->cables[i];
            for (int end = c->host ? 1 : 0; !c->gone && end < 2; end++) {
                const size_t s = end == 0 ? c->a : c->b;
                if (pass == 0) {
                    index.start[s + 2]++;
                } else {
                    index.cables[index.start[s + 1]++] = 2 * i + (size_t)end;
                }
            }
        }
        for (size_t s = 0; pass == 0 && s < g->switch_count; s++) {
            index.start[s + 2] += index.start[s + 1];
        }
    }
    return index;
}

static void put_switch(const struct gen *g, size_t s, const struct index *index,
                       const uint16_t *ports, bool crlf, struct weft_buf *buf)
{
    const uint64_t guid = switch_guid(g, s);
    (void)weft_buf_printf(buf, "vendid=0x2c9%s\ndevid=0xd2f2%s\n", crlf ? "\r" : "",
                          crlf ? "\r" : "");
    (void)weft_buf_printf(buf, "sysimgguid=0x%" PRIx64 "%s\n", guid, crlf ? "\r" : "");
    (void)weft_buf_printf(buf, "switchguid=0x%" PRIx64 "(%" PRIx64 ")%s\n", guid, guid,
                          crlf ? "\r" : "");
    (void)weft_buf_printf(buf,
                          "Switch\t65 \"S-%016" PRIx64 "\"\t\t# \"MF0;%s:MQM9700/U1\" enhanced "
                          "port 0 lid %zu lmc 0",
                          guid, g->switches[s], s + 1);
    put_end(buf, crlf);
    for (size_t k = index->start[s]; k < index->start[s + 1]; k++) {
        const struct gen_cable *c = &g->cables[index->cables[k] / 2];
        const size_t end = index->cables[k] % 2;
        const unsigned own = ports[index->cables[k]];
        const unsigned other = ports[index->cables[k] ^ 1];
        if (c->host) {
            const uint64_t ca = ca_guid(g, c->a, c->rail);
            (void)weft_buf_printf(buf,
                                  "[%u]\t\"H-%016" PRIx64 "\"[1](%" PRIx64 ") \t\t# \"%s mlx5_%u\" "
                                  "lid 9 4xNDR",
                                  own, ca, ca, g->hosts[c->a].name, c->rail);
        } else {
            const size_t peer = end == 0 ? c->b : c->a;
            (void)weft_buf_printf(buf,
                                  "[%u]\t\"S-%016" PRIx64 "\"[%u]\t\t# \"MF0;%s:MQM9700/U1\" lid 5 "
                                  "4xNDR",
                                  own, switch_guid(g, peer), other, g->switches[peer]);
        }
        put_end(buf, crlf);
    }
}

static void put_ca(const struct gen *g, size_t cable, const uint16_t *ports, bool crlf,
                   struct weft_buf *buf)
{
    const struct gen_cable *c = &g->cables[cable];
    const uint64_t guid = ca_guid(g, c->a, c->rail);
    const char *cr = crlf ? "\r" : "";
    (void)weft_buf_printf(buf, "vendid=0x2c9%s\ndevid=0x1021%s\nsysimgguid=0x%" PRIx64 "%s\n", cr,
                          cr, guid, cr);
    (void)weft_buf_printf(buf, "caguid=0x%" PRIx64 "%s\nCa\t1 \"H-%016" PRIx64 "\"\t\t# ", guid, cr,
                          guid);
    (void)weft_buf_printf(buf, "\"%s mlx5_%u\"%s\n", g->hosts[c->a].name, c->rail, cr);
    (void)weft_buf_printf(buf,
                          "[1](%" PRIx64 ") \t\"S-%016" PRIx64 "\"[%u]\t\t# lid 9 lmc 0 "
                          "\"MF0;%s:MQM9700/U1\" lid 5 4xNDR%s\n",
                          guid, switch_guid(g, c->b), (unsigned)ports[2 * cable + 1],
                          g->switches[c->b], cr);
}

void gen_write(struct gen *g, const struct gen_text *how, struct weft_buf *buf)
{
    weft_autofree uint16_t *ports = plug_ports(g);
    struct index index = index_cables(g);
    const size_t total = g->switch_count + g->cable_count;
    weft_autofree size_t *order = weft_calloc(total, sizeof(*order));
    if (order == NULL) {
        abort();
    }
    for (size_t i = 0; i < total; i++) {
        const size_t j = how->shuffle ? weft_random_below(&g->random, i + 1) : i;
        order[i] = order[j];
        order[j] = i;
    }
    (void)weft_buf_puts(buf, "#\n# Topology file: generated for a test\n#\n\n");
    for (size_t i = 0; i < total; i++) {
        const size_t cable = order[i] - g->switch_count;
        if (order[i] < g->switch_count) {
            put_switch(g, order[i], &index, ports, how->crlf, buf);
        } else if (g->cables[cable].host && !g->cables[cable].gone) {
            put_ca(g, cable, ports, how->crlf, buf);
        } else {
            continue;
        }
        if (!how->no_last_blank || i + 1 < total) {
            put_end(buf, how->crlf);
        }
    }
    weft_free(index.start);
    weft_free(index.cables);
    if (buf->status < 0) {
        abort();
    }
}

/* ---- comparing ---- */

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
            sizes[tier->node_group[n]] += tier->node_group[n] != WEFT_TREE_NONE;
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
