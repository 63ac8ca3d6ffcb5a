/* SPDX-License-Identifier: Apache-2.0 */
/* The other texts of InfiniBand's tools: port lists, iblinkinfo, what is refused, and the table of
 * what every public sample is. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/base/file.h"
#include "pkg/base/str.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/node.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"
#include "tests/bench/fabric_gen.h"
#include "tests/bench/fabric_gen_cases.h"
#include "tests/unit/unit.h"

static struct weft_fabric *parse_n(const char *text, size_t len, struct weft_error *err)
{
    struct weft_fabric *fabric = NULL;
    *err = (struct weft_error){0};
    (void)!weft_parse_infiniband(text, len, "text", &fabric, err);
    return fabric;
}

static struct weft_fabric *parse(const char *text)
{
    struct weft_error err = {0};
    struct weft_fabric *fabric = parse_n(text, strlen(text), &err);
    CHECK_STR(err.message, "");
    return fabric;
}

static void check_refused(const char *text, const char *part)
{
    struct weft_error err = {0};
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = parse_n(text, strlen(text), &err);
    CHECK(fabric == NULL);
    CHECK_INT(err.code, -EINVAL);
    CHECK_CONTAINS(err.message, part);
}

static const struct weft_device *device_by_guid(const struct weft_fabric *f, uint64_t guid)
{
    for (size_t i = 0; i < f->device_count; i++) {
        if (f->devices[i].guid == guid) {
            return &f->devices[i];
        }
    }
    return NULL;
}

/* ---- the port list ---- */

/* Two leaves under a spine; a card with two ports; a port that is down, one without a cable. */
static const char ports_text[] =
    "SW     1  1 0x000000000000a000 4x EDR - CA    11  1 0x0000000000000101 ( 'leaf a' - 'n1 "
    "HCA-1' "
    ")\n"
    "CA    11  1 0x0000000000000101 4x EDR - SW     1  1 0x000000000000a000 ( 'n1 HCA-1' - 'leaf "
    "a' "
    ")\n"
    "CA    12  2 0x0000000000000102 4x HDR - SW     2  7 0x000000000000b000 ( 'n1 HCA-1' - 'leaf "
    "b' "
    ")\n"
    "SW     2  7 0x000000000000b000 4x HDR - CA    12  2 0x0000000000000102 ( 'leaf b' - 'n1 "
    "HCA-1' "
    ")\n"
    "SW     1 36 0x000000000000a000 4x EDR - SW     3  1 0x000000000000c000 ( 'leaf a' - 'spine' "
    ")\n"
    "SW     3  1 0x000000000000c000 4x EDR - SW     1 36 0x000000000000a000 ( 'spine' - 'leaf a' "
    ")\n"
    "SW     2 36 0x000000000000b000 4x EDR - SW     3  2 0x000000000000c000 ( 'leaf b' - 'spine' "
    ")\n"
    "SW     3  2 0x000000000000c000 4x EDR - SW     2 36 0x000000000000b000 ( 'spine' - 'leaf b' "
    ")\n"
    "SW     3  3 0x000000000000c000 4x ??? - SW     2 35 0x000000000000b000 ( 'spine' - 'leaf b' "
    ")\n"
    "SW     3  4 0x000000000000c000 4x SDR                                    'spine'\n"
    "SW     3  5 0x000000000000c000 4x ???                                    spine\n";

static void a_port_list_is_a_fabric(void)
{
    weft_auto(weft_fabric_free) struct weft_fabric *f = parse(ports_text);
    if (f == NULL) {
        return;
    }
    CHECK_INT(f->switch_count, 3);
    CHECK_INT(f->device_count, 5);
    CHECK_INT(f->link_count, 4);
    CHECK_INT(f->host_count, 1);
    CHECK_STR(f->hosts[0].name, "n1");
    CHECK_INT(f->hosts[0].mappable, true);
    CHECK_INT(f->partial, false);
    CHECK_INT(f->warning_total, 0);
    const struct weft_device *leaf = device_by_guid(f, 0xa000);
    CHECK_STR(leaf != NULL ? leaf->desc : "", "leaf a");
    /* in order of device and port: a-n1 100, a-spine 100, b-n1 200, b-spine 100 */
    const uint32_t rates[] = {100, 100, 200, 100};
    for (size_t i = 0; i < f->link_count; i++) {
        CHECK_INT(f->links[i].both, true);
        CHECK_INT(f->links[i].gbps, rates[i]);
    }
}

static void a_peer_without_rows_is_missing(void)
{
    weft_auto(weft_fabric_free) struct weft_fabric *f =
        parse("SW 1 1 0xa000 4x EDR - CA 11 1 0x101 ( 'leaf' - 'n1 HCA-1' )\n"
              "SW 1 2 0xa000 4x EDR - CA 12 1 0x201 ( 'leaf' - 'n2 HCA-1' )\n"
              "CA 11 1 0x101 4x EDR - SW 1 1 0xa000 ( 'n1 HCA-1' - 'leaf' )\n");
    CHECK_INT(f != NULL ? f->partial : 0, true);
    CHECK_INT(f != NULL ? f->link_count : 0, 2);
    CHECK_INT(f != NULL ? f->host_count : 0, 2);
}

static void descriptions_may_hold_anything(void)
{
    weft_auto(weft_fabric_free) struct weft_fabric *f =
        parse("SW 1 1 0xa000 4x EDR - CA 11 1 0x101 ( 'bob's - leaf' - 'n1 HCA-1' )\n"
              "CA 11 1 0x101 4x EDR - SW 1 1 0xa000 ( 'n1 HCA-1' - 'bob's - leaf' )\n"
              "SW 1 2 0xa000 4x EDR - CA 12 1 0x201 ( 'x' - 'y' - 'n2 HCA-1' )\n"
              "CA 12 1 0x201 4x EDR - SW 1 2 0xa000 ( 'n2 HCA-1' - 'x' - 'y' )\n");
    const struct weft_device *leaf = f != NULL ? device_by_guid(f, 0xa000) : NULL;
    const struct weft_device *other = f != NULL ? device_by_guid(f, 0x201) : NULL;
    CHECK_STR(leaf != NULL ? leaf->desc : "", "bob's - leaf");
    CHECK_STR(other != NULL ? other->desc : "?", ""); /* nobody can tell whose words these are */
    CHECK_INT(f != NULL ? f->warning_total : 0, 2);
    CHECK_INT(f != NULL ? f->link_count : 0, 2);
}

static void bad_rows_make_a_port_list_partial(void)
{
    static const char *const rows[] = {
        "SW 1 x 0xa000 4x EDR 'leaf'\n",
        "SW 1 1 a000 4x EDR 'leaf'\n",
        "XX 1 1 0xa000 4x EDR 'leaf'\n",
        "SW 1 9999 0xa000 4x EDR 'leaf'\n",
        "SW 1 1 0xa000 4x\n",
        "SW 1 0 0xa000 4x EDR - CA 11 1 0x101 ( 'leaf' - 'n1' )\n",
        "SW 1 1 0xa000 4x EDR - CA 11 1 ( 'leaf' - 'n1' )\n",
        "SW 1 1 0xa000 4x EDR - CA 11 1 0x101 ( 'leaf'\n",
        "what is this\n",
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        weft_auto(weft_buf_done) struct weft_buf buf;
        weft_buf_init(&buf, 1 << 16);
        (void)weft_buf_puts(&buf, ports_text);
        (void)weft_buf_puts(&buf, rows[i]);
        weft_auto(weft_fabric_free) struct weft_fabric *f = parse(weft_buf_text(&buf));
        CHECK_INT(f != NULL ? f->partial : 0, true);
        CHECK_INT(f != NULL ? f->warning_total : 0, 1);
        CHECK_INT(f != NULL ? f->link_count : 0, 4);
    }
}

/* ---- iblinkinfo ---- */

static const char linkinfo_text[] =
    "CA: n1 HCA-1:\n"
    "      0x0000000000000101     11    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       "
    "1  "
    "  1[  ] \"leaf \"a\"\" ( )\n"
    "      0x0000000000000102     12    2[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>       "
    "2  "
    "  7[  3] \"leaf b\" ( Could be NDR )\n"
    "Switch: 0x000000000000a000 leaf \"a\":\n"
    "           1    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>      11    1[  ] \"n1 "
    "HCA-1\" ( )\n"
    "           1    2[  ] ==(                Down/ Polling)==>             [  ] \"\" ( )\n"
    "           1   36[  ] ==( 4X          10.0 Gbps   Init/  LinkUp)==>       2   36[  ] \"leaf "
    "b\" "
    "( )\n"
    "Switch: 0x000000000000b000 leaf b:\n"
    "           2    7[  3] ==( 4X        53.125 Gbps Active/  LinkUp)==>      12    2[  ] \"n1 "
    "HCA-1\" ( )\n"
    "           2   36[  ] ==( 4X          10.0 Gbps Active/  LinkUp)==>       1   36[  ] \"leaf "
    "\"a\"\" ( )\n";

static void iblinkinfo_is_a_fabric(void)
{
    weft_auto(weft_fabric_free) struct weft_fabric *f = parse(linkinfo_text);
    if (f == NULL) {
        return;
    }
    CHECK_INT(f->switch_count, 2);
    CHECK_INT(f->device_count, 4);
    CHECK_INT(f->link_count, 3);
    CHECK_INT(f->host_count, 1);
    CHECK_STR(f->hosts[0].name, "n1");
    CHECK_INT(f->partial, false);
    CHECK_INT(f->warning_total, 0);
    CHECK_STR(f->devices[0].desc, "leaf \"a\"");
    const uint32_t rates[] = {100, 40, 200}; /* a-n1, a-b, b-n1 */
    for (size_t i = 0; i < f->link_count; i++) {
        CHECK_INT(f->links[i].both, true);
        CHECK_INT(f->links[i].gbps, rates[i]);
    }
}

static void iblinkinfo_needs_lids_of_one_subnet(void)
{
    static const char row[] = "      0x101 0 1[  ] ==( 4X 10.0 Gbps Init/ LinkUp)==> 0 1[  ] \"x\" "
                              "( )\n";
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1 << 16);
    (void)weft_buf_puts(&buf, "Switch: 0xa000 leaf:\nCA: n1 HCA-1:\n");
    (void)weft_buf_puts(&buf, row);
    check_refused(weft_buf_text(&buf), "have LID 0");

    /* two switches with LID 1: nobody knows on which of them the peer is */
    weft_buf_reset(&buf);
    (void)weft_buf_puts(&buf, linkinfo_text);
    (void)weft_buf_puts(&buf,
                        "Switch: 0xc000 leaf c:\n"
                        "   1 36[  ] ==( 4X 10.0 Gbps Active/ LinkUp)==> 2 36[  ] \"b\" ( )\n");
    weft_auto(weft_fabric_free) struct weft_fabric *f = parse(weft_buf_text(&buf));
    CHECK_INT(f != NULL ? f->partial : 0, true);
    CHECK_CONTAINS(f != NULL && f->warning_count > 0 ? f->warnings[0] : "",
                   "belongs to several devices");
}

static void a_peer_without_a_record_is_missing(void)
{
    weft_auto(weft_fabric_free) struct weft_fabric *f =
        parse("Switch: 0xa000 leaf:\n"
              "   1 1[  ] ==( 4X 10.0 Gbps Active/ LinkUp)==> 11 1[  ] \"n1 HCA-1\" ( )\n"
              "   1 2[  ] ==( 4X 10.0 Gbps Active/ LinkUp)==> 12 1[  ] \"n2 HCA-1\" ( )\n"
              "CA: n1 HCA-1:\n"
              "   0x101 11 1[  ] ==( 4X 10.0 Gbps Active/ LinkUp)==> 1 1[  ] \"leaf\" ( )\n");
    CHECK_INT(f != NULL ? f->partial : 0, true);
    CHECK_INT(f != NULL ? f->link_count : 0, 1);
    CHECK_CONTAINS(f != NULL && f->warning_count > 0 ? f->warnings[0] : "",
                   "text:3: the peer with LID 12, \"n2 HCA-1\", has no record of its own");
}

static void bad_lines_make_iblinkinfo_partial(void)
{
    static const char *const lines[] = {
        "Switch: a switch without a GUID:\n",
        "CA: cut\n",
        "   0x301 13 ==( 4X 10.0 Gbps Active/ LinkUp)==> 1 1[  ] \"leaf\" ( )\n",
        "   2 9[  ] ==( 4X 10.0 Gbps Active/ LinkUp)==> \"n9\" ( )\n",
        "   2 9[  ] ==( 4X 10.0 Gbps Active/ LinkUp)==> 12 3[  ] n9\n",
        "   2 99999[  ] ==( Down/ Polling)==> [  ] \"\" ( )\n",
        "src/ibnetdisc.c:100; recv failed\n",
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(lines); i++) {
        weft_auto(weft_buf_done) struct weft_buf buf;
        weft_buf_init(&buf, 1 << 16);
        (void)weft_buf_puts(&buf, linkinfo_text);
        (void)weft_buf_puts(&buf, lines[i]);
        weft_auto(weft_fabric_free) struct weft_fabric *f = parse(weft_buf_text(&buf));
        CHECK_INT(f != NULL ? f->partial : 0, true);
        CHECK_INT(f != NULL ? f->link_count : 0, 3);
    }
}

/* ---- all formats ---- */

/* Any cut at all: never a whole fabric that is smaller, unless the cut is between two rows. */
static void cut_texts_are_refused_or_partial(void)
{
    static const char *const texts[] = {ports_text, linkinfo_text};
    for (size_t t = 0; t < WEFT_ARRAY_LEN(texts); t++) {
        const size_t len = strlen(texts[t]);
        weft_auto(weft_fabric_free) struct weft_fabric *whole = parse(texts[t]);
        size_t refused = 0;
        for (size_t cut = 1; whole != NULL && cut + 1 < len; cut++) {
            struct weft_error err = {0};
            weft_auto(weft_fabric_free) struct weft_fabric *f = parse_n(texts[t], cut, &err);
            refused += f == NULL;
            const struct weft_str rest = weft_str_trim((struct weft_str){texts[t], cut});
            CHECK(f == NULL || f->partial || texts[t][cut - 1] == '\n' ||
                  rest.data[rest.len - 1] == ')');
        }
        CHECK(refused > len / 2);
    }
}

static void texts_that_say_no_cabling(void)
{
    static const struct {
        const char *text, *part;
    } rows[] = {
        {"====\nQuantum\n====\npart number        | MQM8790\n", "text:4: ibswinfo"},
        {"# plan\nMTS800 SW-1\n  P1 -4x-5G-> Cougar H-1 P1\n",
         "text:3: a topology file of ibutils"},
        {"Gnu G\n  M/P1 -> Cougar H1 P2\n", "topology file of ibutils"},
        {"Cougar OSM P1 Gazelle G1 L1/P1\n", "cable list of ibutils"},
        {"{ CA Ports:02 SystemGUID:1 NodeGUID:2 {H-1} LID:0001 PN:01 } { SW }\n", "link list"},
        {"dump_ucast_routes: Switch 0x1\n", "forwarding tables"},
        {"SYSTEM MAIN\n\nNODE SW 8 MT43132 U1\n   1 -> P1\n", "text:3: an ibnl file"},
        {"0x000000000000a000 \"   leaf\" 1 1[  ] ==( 4X 10.0 Gbps Active/ LinkUp)==>  0x101 11 "
         "1[  ] \"n1\" ( )\n",
         "iblinkinfo --line"},
        {"", "no switch"},
        {"hello\n", "no switch"},
        {"SW 1 1 0xa000 4x SDR 'alone'\n", "no link"},
        {"CA: n1 HCA-1:\n", "no switch"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        check_refused(rows[i].text, rows[i].part);
    }
}

static struct weft_tree *tree_of_text(const struct weft_buf *buf, const struct gen *g)
{
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    struct weft_error err = {0};
    weft_auto(weft_fabric_free) struct weft_fabric *fabric =
        parse_n(weft_buf_text(buf), buf->len, &err);
    struct weft_tree *tree = NULL;
    gen_nodes(g, &nodes);
    CHECK_STR(err.message, "");
    if (fabric != NULL) {
        CHECK_INT(fabric->partial, false);
        CHECK_INT(weft_tree_from_fabric(fabric, nodes.items, nodes.count, NULL, &tree, &err), 0);
    }
    return tree;
}

static void check_same_tree(const struct weft_tree *a, const struct weft_tree *b)
{
    if (a == NULL || b == NULL || !CHECK_INT(a->tier_count, b->tier_count) ||
        !CHECK_INT(a->node_count, b->node_count)) {
        CU_FAIL("trees differ");
        return;
    }
    for (size_t t = 0; t < a->tier_count; t++) {
        CHECK(memcmp(a->tiers[t].node_group, b->tiers[t].node_group,
                     a->node_count * sizeof(size_t)) == 0);
        for (size_t g = 0; g < a->tiers[t].group_count; g++) {
            CHECK_STR(a->tiers[t].groups[g].name, b->tiers[t].groups[g].name);
            CHECK_STR(a->tiers[t].groups[g].identity, b->tiers[t].groups[g].identity);
        }
    }
    CHECK_INT(a->finding_count, b->finding_count);
}

static void every_format_gives_the_same_tree(void)
{
    size_t count = 0;
    const struct gen_case *cases = gen_cases(&count);
    for (size_t i = 0; i < count; i++) {
        weft_auto(gen_done) struct gen g;
        gen_init(&g, 50 + i);
        cases[i].make(&g);
        if (g.cable_count > 600) {
            continue;
        }
        weft_auto(weft_buf_done) struct weft_buf text;
        weft_buf_init(&text, 16 << 20);
        gen_write(&g, &(struct gen_text){.shuffle = true}, &text);
        weft_auto(weft_tree_free) struct weft_tree *full = tree_of_text(&text, &g);
        weft_buf_reset(&text);
        gen_write_ports(&g, &text);
        weft_auto(weft_tree_free) struct weft_tree *ports = tree_of_text(&text, &g);
        weft_buf_reset(&text);
        gen_write_linkinfo(&g, &text);
        weft_auto(weft_tree_free) struct weft_tree *info = tree_of_text(&text, &g);
        check_same_tree(full, ports);
        check_same_tree(full, info);
    }
}

static void every_failing_allocation_is_an_error(void)
{
    static const char *const texts[] = {ports_text, linkinfo_text};
    for (size_t t = 0; t < WEFT_ARRAY_LEN(texts); t++) {
        int rc = -ENOMEM;
        uint64_t n = 0;
        while (rc < 0 && n < 10000) {
            struct weft_fabric *fabric = NULL;
            struct weft_error err = {0};
            (void)weft_mem_fail_after(++n);
            rc = weft_parse_infiniband(texts[t], strlen(texts[t]), "text", &fabric, &err);
            (void)weft_mem_fail_after(0);
            CHECK(rc == 0 || (rc == -ENOMEM && fabric == NULL));
            weft_fabric_free(fabric);
        }
        CHECK_INT(rc, 0);
        CHECK(n > 10);
    }
}

/* ---- the public samples ---- */

enum { COLUMNS = 10 };

static void check_count(struct weft_str column, size_t actual, const char *what)
{
    uint64_t expected = 0;
    if (!weft_str_eq(column, "-") && weft_parse_u64(column, UINT64_MAX, &expected) == 0 &&
        !CHECK_INT(actual, expected)) {
        (void)fprintf(stderr, "  (%s)\n", what);
    }
}

static void choose(const struct weft_fabric *fabric, struct weft_str part, struct weft_nodes *nodes)
{
    for (size_t h = 0; h < fabric->host_count; h++) {
        const struct weft_host *host = &fabric->hosts[h];
        struct weft_node *node = NULL;
        if (memmem(host->full_name, strlen(host->full_name), part.data, part.len) != NULL) {
            CHECK_INT(weft_nodes_add(nodes, host->full_name, NULL, &node), 0);
        }
    }
}

/* "kind=count,kind=count" */
static void check_findings(const struct weft_tree *tree, struct weft_str list)
{
    struct weft_str item = {0};
    while (weft_str_split(&list, ',', &item)) {
        struct weft_str kind = {0};
        size_t count = 0;
        if (!weft_str_split(&item, '=', &kind)) {
            continue;
        }
        for (size_t i = 0; i < tree->finding_count; i++) {
            count += weft_str_eq(kind, tree->findings[i].kind);
        }
        check_count(item, count, "findings");
    }
}

static void check_tree_row(const struct weft_str *c, const struct weft_fabric *f)
{
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    weft_auto(weft_buf_done) struct weft_buf sizes;
    weft_buf_init(&sizes, 4096);
    const bool all = weft_str_eq(c[2], "-");
    if (!all) {
        choose(f, c[2], &nodes);
    }
    CHECK_INT(weft_tree_from_fabric(f, all ? NULL : nodes.items, nodes.count, NULL, &tree, NULL),
              0);
    check_count(c[3], f->switch_count, "switches");
    check_count(c[4], f->device_count - f->switch_count, "adapters");
    check_count(c[5], f->link_count, "links");
    check_count(c[6], f->host_count, "hosts");
    check_count(c[7], f->partial, "partial");
    if (tree != NULL) {
        gen_sizes(tree, &sizes);
        CHECK(weft_str_eq(c[8], sizes.len > 0 ? weft_buf_text(&sizes) : "-"));
        check_findings(tree, c[9]);
    }
}

static void check_row(const struct weft_str *c)
{
    char name[256];
    (void)snprintf(name, sizeof(name), "ib-fabric/%.*s", WEFT_STR_ARG(c[1]));
    const char *path = weft_shared(name);
    weft_autofree char *text = NULL;
    size_t len = 0;
    if (path == NULL || !CHECK_INT(weft_file_read(path, 16 << 20, &text, &len, NULL), 0)) {
        return;
    }
    struct weft_error err = {0};
    weft_auto(weft_fabric_free) struct weft_fabric *f = parse_n(text, len, &err);
    if (weft_str_eq(c[0], "refused")) {
        char part[256];
        (void)snprintf(part, sizeof(part), "%.*s", WEFT_STR_ARG(c[2]));
        CHECK(f == NULL);
        CHECK_CONTAINS(err.message, part);
    } else if (!CHECK_STR(err.message, "")) {
        (void)fprintf(stderr, "  (%s)\n", name);
    } else {
        check_tree_row(c, f);
    }
}

/* Rows of the table; with name only the row of that file. Returns how many there were. */
static size_t walk_table(const char *name)
{
    weft_autofree char *text = weft_fixture_text("expect/ib-fabric.tsv", NULL);
    struct weft_str rest = weft_str(text != NULL ? text : "");
    struct weft_str line = {0};
    size_t rows = 0;
    while (weft_str_line(&rest, &line)) {
        struct weft_str c[COLUMNS] = {{0}};
        for (size_t i = 0; i < COLUMNS && weft_str_split(&line, '\t', &c[i]); i++) {
        }
        if (c[1].len > 0 && c[0].data[0] != '#' && (name == NULL || weft_str_eq(c[1], name))) {
            rows++;
            if (name == NULL) {
                check_row(c);
            }
        }
    }
    return rows;
}

static void the_public_samples(void)
{
    CHECK(walk_table(NULL) > 60);
}

static void check_listed(const char *folder)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "ib-fabric%s%s", folder[0] != '\0' ? "/" : "", folder);
    const char *shared = weft_shared(path);
    DIR *dir = shared != NULL ? opendir(shared) : NULL;
    for (const struct dirent *e = dir != NULL ? readdir(dir) : NULL; e != NULL; e = readdir(dir)) {
        char name[512];
        (void)snprintf(name, sizeof(name), "%s%s%s", folder, folder[0] != '\0' ? "/" : "",
                       e->d_name);
        if (e->d_name[0] != '.' && e->d_type != DT_DIR && !CHECK_INT(walk_table(name), 1)) {
            (void)fprintf(stderr, "  (%s)\n", name);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

static void every_public_sample_is_in_the_table(void)
{
    check_listed("");
    check_listed("ibutils");
    check_listed("ibutils/ibnl");
}

WEFT_SUITE(fabric_infiniband, {"a_port_list_is_a_fabric", a_port_list_is_a_fabric},
           {"a_peer_without_rows_is_missing", a_peer_without_rows_is_missing},
           {"descriptions_may_hold_anything", descriptions_may_hold_anything},
           {"bad_rows_make_a_port_list_partial", bad_rows_make_a_port_list_partial},
           {"iblinkinfo_is_a_fabric", iblinkinfo_is_a_fabric},
           {"iblinkinfo_needs_lids_of_one_subnet", iblinkinfo_needs_lids_of_one_subnet},
           {"a_peer_without_a_record_is_missing", a_peer_without_a_record_is_missing},
           {"bad_lines_make_iblinkinfo_partial", bad_lines_make_iblinkinfo_partial},
           {"cut_texts_are_refused_or_partial", cut_texts_are_refused_or_partial},
           {"texts_that_say_no_cabling", texts_that_say_no_cabling},
           {"every_format_gives_the_same_tree", every_format_gives_the_same_tree},
           {"every_failing_allocation_is_an_error", every_failing_allocation_is_an_error},
           {"the_public_samples", the_public_samples},
           {"every_public_sample_is_in_the_table", every_public_sample_is_in_the_table})
