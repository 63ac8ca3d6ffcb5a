/* SPDX-License-Identifier: Apache-2.0 */
/* The public dumps of real fabrics, where they are at hand: counts and groups that were worked out
 * from the files by other means (host and switch names say the rack). */
#include <errno.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/base/file.h"
#include "pkg/base/str.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/node.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree-internal.h"
#include "pkg/tree/tree.h"
#include "tests/bench/fabric_gen.h"
#include "tests/unit/unit.h"

#define GB200 "ib-fabric/topograph-example.ibnetdiscover.txt"
#define DIRECTOR "ib-fabric/ufm-ndt-director.ibnetdiscover.txt"

static char *read_shared(const char *name, size_t *ret_len)
{
    const char *path = weft_shared(name);
    char *text = NULL;
    if (path != NULL && weft_file_read(path, 16 << 20, &text, ret_len, NULL) < 0) {
        CU_FAIL("cannot be read");
    }
    return text;
}

static struct weft_fabric *load(const char *name)
{
    size_t len = 0;
    weft_autofree char *text = read_shared(name, &len);
    struct weft_fabric *fabric = NULL;
    struct weft_error err = {0};
    if (text != NULL) {
        (void)!weft_parse_ibnetdiscover(text, len, name, &fabric, &err);
        CHECK_STR(err.message, "");
    }
    return fabric;
}

/* Hosts whose name has this part are the cluster. */
static void choose(const struct weft_fabric *fabric, const char *part, struct weft_nodes *nodes)
{
    for (size_t h = 0; h < fabric->host_count; h++) {
        struct weft_node *node = NULL;
        if (strstr(fabric->hosts[h].full_name, part) != NULL) {
            CHECK_INT(weft_nodes_add(nodes, fabric->hosts[h].full_name, NULL, &node), 0);
        }
    }
}

static struct weft_tree *tree_of(const struct weft_fabric *fabric, const char *part)
{
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    struct weft_tree *tree = NULL;
    struct weft_error err = {0};
    choose(fabric, part, &nodes);
    (void)!weft_tree_from_fabric(fabric, nodes.items, nodes.count, NULL, &tree, &err);
    CHECK_STR(err.message, "");
    CHECK_INT(tree != NULL ? weft_tree_check(tree, &err) : -1, 0);
    CHECK_STR(err.message, "");
    return tree;
}

static void check_levels(const struct weft_fabric *fabric, const char *part, size_t first,
                         size_t second, size_t third)
{
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    weft_auto(weft_graph_free) struct weft_graph *graph = NULL;
    weft_auto(weft_shape_free) struct weft_shape *shape = NULL;
    size_t levels[8] = {0};
    choose(fabric, part, &nodes);
    CHECK_INT(weft_graph_build(fabric, nodes.items, nodes.count, NULL, &graph, NULL), 0);
    CHECK_INT(graph != NULL ? weft_shape_build(graph, &shape, NULL) : -1, 0);
    for (size_t i = 0; shape != NULL && i < shape->reached; i++) {
        levels[shape->level[shape->by_level[i]]]++;
    }
    CHECK_INT(levels[0], first);
    CHECK_INT(levels[1], second);
    CHECK_INT(levels[2], third);
    CHECK_INT(levels[3], 0);
}

static size_t count_findings(const struct weft_tree *tree, const char *kind)
{
    size_t count = 0;
    for (size_t i = 0; i < tree->finding_count; i++) {
        count += strcmp(tree->findings[i].kind, kind) == 0;
    }
    return count;
}

static const char *detail(const struct weft_tree *tree, const char *kind, const char *subject)
{
    for (size_t i = 0; i < tree->finding_count; i++) {
        if (strcmp(tree->findings[i].kind, kind) == 0 &&
            strcmp(tree->findings[i].subject, subject) == 0) {
            return tree->findings[i].detail;
        }
    }
    return NULL;
}

static void gb200_hosts_and_switches(void)
{
    weft_auto(weft_fabric_free) struct weft_fabric *f = load(GB200);
    if (f == NULL) {
        return;
    }
    size_t aggregation = 0;
    size_t hcas = 0;
    for (size_t i = f->switch_count; i < f->device_count; i++) {
        aggregation += f->devices[i].role == WEFT_CA_AGGREGATION;
        hcas += f->devices[i].role == WEFT_CA_HOST;
    }
    CHECK_INT(f->switch_count, 40);
    CHECK_INT(f->device_count - f->switch_count, 582);
    CHECK_INT(aggregation, 40);
    CHECK_INT(hcas, 542);
    CHECK_INT(f->host_count, 191);
    CHECK_INT(f->partial, false);
    CHECK_INT(f->warning_total, 0);
}

static void gb200_racks(void)
{
    static const struct {
        const char *host, *name;
        size_t nodes, leaves;
    } racks[] = {{"a05", "A09-P1-IBLEAF-01", 10, 3}, {"a06", "A09-P1-IBLEAF-02", 11, 4},
                 {"a07", "A09-P1-IBLEAF-03", 18, 4}, {"a08", "A09-P1-IBLEAF-04", 17, 4},
                 {"b05", "B09-P1-IBLEAF-05", 18, 4}, {"b06", "B09-P1-IBLEAF-06", 15, 4},
                 {"b07", "B09-P1-IBLEAF-07", 16, 4}, {"b08", "B09-P1-IBLEAF-08", 14, 4}};
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = load(GB200);
    weft_auto(weft_tree_free) struct weft_tree *tree =
        fabric != NULL ? tree_of(fabric, "dgx") : NULL;
    if (tree == NULL) {
        return;
    }
    check_levels(fabric, "dgx", 31, 9, 0);
    CHECK_INT(tree->node_count, 119);
    CHECK_INT(tree->tier_count, 2);
    CHECK_INT(tree->tiers[1].group_count, 1);
    CHECK_INT(tree->tiers[0].group_count, 8);
    for (size_t r = 0; tree->tiers[0].group_count == 8 && r < 8; r++) {
        size_t nodes = 0;
        for (size_t n = 0; n < tree->node_count; n++) {
            const bool here = tree->tiers[0].node_group[n] == r;
            nodes += here;
            CHECK_INT(strncmp(tree->nodes[n], racks[r].host, 3) == 0, here);
        }
        CHECK_INT(nodes, racks[r].nodes);
        CHECK_STR(tree->tiers[0].groups[r].name, racks[r].name);
        CHECK_INT(tree->tiers[0].groups[r].switch_count, racks[r].leaves);
    }
}

static void gb200_findings(void)
{
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = load(GB200);
    weft_auto(weft_tree_free) struct weft_tree *tree =
        fabric != NULL ? tree_of(fabric, "dgx") : NULL;
    if (tree == NULL) {
        return;
    }
    CHECK_INT(count_findings(tree, "split-node"), 0);
    CHECK_INT(count_findings(tree, "rail-swap"), 1);
    CHECK_INT(count_findings(tree, "rail-deviation"), 0);
    const char *swap = detail(tree, "rail-swap", "b08-p1-dgx-08-c01");
    CHECK_CONTAINS(swap, "HCA-5 is on leaf B09-P1-IBLEAF-04-08 port 1, expected "
                         "B09-P1-IBLEAF-03-08");
    CHECK_CONTAINS(swap, "HCA-6 is on leaf B09-P1-IBLEAF-03-08 port 1, expected "
                         "B09-P1-IBLEAF-04-08");
    CHECK_INT(count_findings(tree, "missing-rail"), 1);
    CHECK_CONTAINS(detail(tree, "missing-rail", "A09-P1-IBLEAF-01"), "A09-P1-IBLEAF-03-01");
    CHECK_INT(count_findings(tree, "missing-spine-link"), 12);
    CHECK_CONTAINS(detail(tree, "default-description", GB200), "69 of 542 HCAs");
    CHECK_CONTAINS(detail(tree, "default-description", "A09-P1-IBLEAF-01-02"),
                   "port 6 e09d7303008579dc");
    CHECK_INT(count_findings(tree, "missing-link"), 0);
}

static void gb200_parts(void)
{
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = load(GB200);
    if (fabric == NULL) {
        return;
    }
    weft_auto(weft_tree_free) struct weft_tree *rack = tree_of(fabric, "b07-");
    check_levels(fabric, "b07-", 4, 9, 27);
    if (rack != NULL) {
        CHECK_INT(rack->tier_count, 1);
        CHECK_INT(rack->tiers[0].group_count, 1);
        CHECK_INT(rack->node_count, 16);
        CHECK_INT(rack->tiers[0].groups[0].switch_count, 4);
    }
    weft_auto(weft_tree_free) struct weft_tree *node = tree_of(fabric, "b07-p1-dgx-07-c01");
    if (node != NULL) {
        CHECK_INT(node->tier_count, 1);
        CHECK_INT(node->node_count, 1);
    }
    /* without a list every host with a usable name: the management host joins its rack */
    weft_auto(weft_tree_free) struct weft_tree *all = NULL;
    CHECK_INT(weft_tree_from_fabric(fabric, NULL, 0, NULL, &all, NULL), 0);
    CHECK_INT(all != NULL ? all->node_count : 0, 120);
    CHECK_INT(all != NULL ? all->tiers[0].group_count : 0, 8);
}

static void digest(const char *text, size_t len, struct weft_buf *buf)
{
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = NULL;
    struct weft_error err = {0};
    (void)!weft_parse_ibnetdiscover(text, len, GB200, &fabric, &err);
    CHECK_STR(err.message, "");
    weft_auto(weft_tree_free) struct weft_tree *tree =
        fabric != NULL ? tree_of(fabric, "dgx") : NULL;
    for (size_t t = 0; tree != NULL && t < tree->tier_count; t++) {
        for (size_t n = 0; n < tree->node_count; n++) {
            (void)weft_buf_printf(buf, "%s %s\n", tree->nodes[n],
                                  tree->tiers[t].groups[tree->tiers[t].node_group[n]].identity);
        }
    }
    for (size_t i = 0; tree != NULL && i < tree->finding_count; i++) {
        (void)weft_buf_printf(buf, "%s %s\n", tree->findings[i].kind, tree->findings[i].detail);
    }
}

/* The dump's records (between blank lines) in random order, with the lines of each record behind
 * its head shuffled too; crlf also ends lines so. */
static void shuffle(const char *text, size_t len, uint64_t *random, bool crlf, struct weft_buf *buf)
{
    static struct weft_str records[2000];
    size_t count = 0;
    const char *start = text;
    for (const char *p = text; p + 1 < text + len && count < WEFT_ARRAY_LEN(records); p++) {
        if (p[0] == '\n' && p[1] == '\n') {
            records[count++] = (struct weft_str){start, (size_t)(p + 1 - start)};
            start = p + 2;
        }
    }
    records[count++] = (struct weft_str){start, (size_t)(text + len - start)};
    for (size_t i = count; i > 1; i--) {
        const size_t j = weft_random_below(random, i);
        const struct weft_str record = records[i - 1];
        records[i - 1] = records[j];
        records[j] = record;
    }
    for (size_t i = 0; i < count; i++) {
        struct weft_str rest = records[i];
        struct weft_str line = {0};
        while (weft_str_line(&rest, &line)) {
            (void)weft_buf_append(buf, line.data, line.len);
            (void)weft_buf_puts(buf, crlf ? "\r\n" : "\n");
        }
        (void)weft_buf_puts(buf, i + 1 < count ? (crlf ? "\r\n" : "\n") : "");
    }
}

static void gb200_in_any_order(void)
{
    size_t len = 0;
    weft_autofree char *text = read_shared(GB200, &len);
    if (text == NULL) {
        return;
    }
    weft_auto(weft_buf_done) struct weft_buf expected;
    weft_buf_init(&expected, 1 << 20);
    digest(text, len, &expected);
    uint64_t random = 3;
    for (int i = 0; i < 6; i++) {
        weft_auto(weft_buf_done) struct weft_buf other;
        weft_auto(weft_buf_done) struct weft_buf actual;
        weft_buf_init(&other, 1 << 20);
        weft_buf_init(&actual, 1 << 20);
        shuffle(text, len, &random, i % 2 == 1, &other);
        digest(other.data, other.len, &actual);
        CHECK_STR(weft_buf_text(&actual), weft_buf_text(&expected));
    }
    weft_auto(weft_buf_done) struct weft_buf shorter;
    weft_buf_init(&shorter, 1 << 20);
    while (len > 0 && text[len - 1] == '\n') {
        len--;
    }
    digest(text, len, &shorter);
    CHECK_STR(weft_buf_text(&shorter), weft_buf_text(&expected));
}

static void a_director_fabric(void)
{
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = load(DIRECTOR);
    weft_auto(weft_tree_free) struct weft_tree *tree =
        fabric != NULL ? tree_of(fabric, "SAT1") : NULL;
    if (tree == NULL) {
        return;
    }
    CHECK_INT(fabric->switch_count, 400);
    CHECK_INT(fabric->device_count - fabric->switch_count, 2328);
    CHECK_INT(fabric->partial, false);
    check_levels(fabric, "SAT1", 153, 160, 87);
    CHECK_INT(tree->node_count, 278);
    CHECK_INT(tree->tier_count, 3);
    weft_auto(weft_buf_done) struct weft_buf sizes;
    weft_buf_init(&sizes, 4096);
    gen_sizes(tree, &sizes);
    CHECK_CONTAINS(weft_buf_text(&sizes), " 28,33,34,35,36,2x37,38 278");
    CHECK_INT(tree->tiers[0].group_count, 153);
    for (size_t g = 0; g < tree->tiers[1].group_count; g++) {
        CHECK_INT(tree->tiers[1].groups[g].switch_count, 20);
    }
    CHECK_INT(count_findings(tree, "split-node"), 0);
    CHECK_CONTAINS(detail(tree, "default-description", DIRECTOR), "103 of 2328 HCAs");
}

static void dumps_that_are_none(void)
{
    static const char *const names[] = {"ib-fabric/topograph-example-bad.ibnetdiscover.txt",
                                        "ib-fabric/mqm9700-redacted.ibnetdiscover.txt",
                                        "ib-fabric/treydock-ibswinfo-test-err1.txt",
                                        "ib-fabric/teaker-8node.iblinkinfo.txt"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
        size_t len = 0;
        weft_autofree char *text = read_shared(names[i], &len);
        weft_auto(weft_fabric_free) struct weft_fabric *fabric = NULL;
        struct weft_error err = {0};
        if (text != NULL) {
            CHECK_INT(weft_parse_ibnetdiscover(text, len, names[i], &fabric, &err), -EINVAL);
            CHECK_CONTAINS(err.message, names[i]);
            CHECK(fabric == NULL);
        }
    }
}

static void small_dumps(void)
{
    static const struct {
        const char *name;
        size_t switches, links, hosts;
    } rows[] = {{"ib-fabric/mixed-edr-fdr-small.ibnetdiscover.txt", 2, 16, 5},
                {"ib-fabric/ibtopotool-test1.topo", 2, 7, 4},
                {"ib-fabric/ibtopotool-test2.topo", 1, 2, 2},
                {"ib-fabric/ibtopotool-test4.topo", 1, 1, 1},
                {"ib-fabric/ibsim-net.net", 2, 4, 2},
                {"ib-fabric/ibsim-net.2sw2path4hca.net", 2, 6, 4}};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        weft_auto(weft_fabric_free) struct weft_fabric *f = load(rows[i].name);
        if (f != NULL) {
            CHECK_INT(f->switch_count, rows[i].switches);
            CHECK_INT(f->link_count, rows[i].links);
            CHECK_INT(f->host_count, rows[i].hosts);
            CHECK_INT(f->partial, false);
        }
    }
}

WEFT_SUITE(tree_dumps, {"gb200_hosts_and_switches", gb200_hosts_and_switches},
           {"gb200_racks", gb200_racks}, {"gb200_findings", gb200_findings},
           {"gb200_parts", gb200_parts}, {"gb200_in_any_order", gb200_in_any_order},
           {"a_director_fabric", a_director_fabric}, {"dumps_that_are_none", dumps_that_are_none},
           {"small_dumps", small_dumps})
