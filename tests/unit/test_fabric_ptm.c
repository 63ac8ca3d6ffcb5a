/* SPDX-License-Identifier: Apache-2.0 */
/* Cabling plans (PTM, UFM's design table), NetQ's graph, plans as fabrics, and plans against what
 * was observed. */
#include <errno.h>

#include "pkg/base/buf.h"
#include "pkg/fabric/cabling-internal.h"
#include "pkg/fabric/cabling.h"
#include "pkg/fabric/fabric.h"
#include "tests/unit/unit.h"

typedef int (*parse_fn)(const char *text, size_t len, const char *source,
                        struct weft_cabling **ret_cabling, struct weft_error *err);

/* "leaf1* host1: leaf1:swp1-host1:eth0 …": switches have a star. */
static char *cabling_text(const struct weft_cabling *c)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1 << 20);
    for (size_t d = 0; d < c->device_count; d++) {
        (void)weft_buf_printf(&buf, "%s%s%s", d > 0 ? " " : "", c->devices[d].name,
                              c->devices[d].role == WEFT_CABLING_SWITCH ? "*" : "");
    }
    (void)weft_buf_puts(&buf, ":");
    for (size_t i = 0; i < c->cable_count; i++) {
        const struct weft_cable *cable = &c->cables[i];
        (void)weft_buf_printf(&buf, " %s:%s-%s:%s", c->devices[cable->a].name, cable->a_port,
                              c->devices[cable->b].name, cable->b_port);
    }
    return weft_buf_steal(&buf);
}

static struct weft_cabling *parse(parse_fn fn, const char *text, struct weft_error *err)
{
    struct weft_cabling *cabling = NULL;
    const int rc = fn(text, strlen(text), "plan", &cabling, err);
    CHECK_INT(rc < 0, cabling == NULL);
    CHECK(rc == 0 || rc == -EINVAL);
    return cabling;
}

static void check(parse_fn fn, const char *text, const char *expected)
{
    struct weft_error err = {0};
    weft_auto(weft_cabling_free) struct weft_cabling *cabling = parse(fn, text, &err);
    weft_autofree char *found = cabling != NULL ? cabling_text(cabling) : NULL;
    CHECK_STR(err.message, "");
    CHECK_STR(found != NULL ? found : "nothing", expected);
}

static void check_refused(parse_fn fn, const char *text, const char *part)
{
    struct weft_error err = {0};
    CHECK(parse(fn, text, &err) == NULL);
    CHECK_CONTAINS(err.message, part);
}

/* ---- port names ---- */

static void port_names_tell(void)
{
    static const struct {
        const char *name;
        enum weft_port_kind kind;
    } rows[] = {{"swp1", WEFT_PORT_SWITCH},
                {"swp17s0", WEFT_PORT_SWITCH},
                {"Ethernet120", WEFT_PORT_SWITCH},
                {"Ethernet1/5", WEFT_PORT_SWITCH},
                {"Eth1/1", WEFT_PORT_SWITCH},
                {"et-0/0/1", WEFT_PORT_SWITCH},
                {"xe-0/0/0", WEFT_PORT_SWITCH},
                {"Gi0/39", WEFT_PORT_SWITCH},
                {"GigabitEthernet0/7", WEFT_PORT_SWITCH},
                {"HundredGigE0/0/0/1", WEFT_PORT_SWITCH},
                {"TwentyFiveGigE1/0/3", WEFT_PORT_SWITCH},
                {"0/31", WEFT_PORT_SWITCH},
                {"521", WEFT_PORT_SWITCH},
                {"Port 21", WEFT_PORT_SWITCH},
                {"mgmt0", WEFT_PORT_MANAGEMENT},
                {"Management1", WEFT_PORT_MANAGEMENT},
                {"Ma1", WEFT_PORT_MANAGEMENT},
                {"fxp0", WEFT_PORT_MANAGEMENT},
                {"eth0", WEFT_PORT_HOST},
                {"eno1", WEFT_PORT_HOST},
                {"enp2s0f0", WEFT_PORT_HOST},
                {"ens841np0", WEFT_PORT_HOST},
                {"ens801f0", WEFT_PORT_HOST},
                {"ibp11s0f0", WEFT_PORT_HOST},
                {"ib0", WEFT_PORT_HOST},
                {"mlx5_0", WEFT_PORT_HOST},
                {"p0", WEFT_PORT_HOST},
                {"pf0hpf", WEFT_PORT_HOST},
                {"oob_net0", WEFT_PORT_HOST},
                {"HCA-1", WEFT_PORT_HOST},
                {"cadabra", WEFT_PORT_UNKNOWN},
                {"", WEFT_PORT_UNKNOWN},
                {"08:00:27:59:9e:6b", WEFT_PORT_UNKNOWN}};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        if (!CHECK_INT(weft_port_kind(rows[i].name), rows[i].kind)) {
            CU_FAIL(rows[i].name);
        }
    }
    CHECK_INT(weft_port_number("swp21"), 21);
    CHECK_INT(weft_port_number("Port 21"), 21);
    CHECK_INT(weft_port_number("7"), 7);
    CHECK_INT(weft_port_number("swp1s0"), 0);
    CHECK_INT(weft_port_number("Eth1/1"), 0);
    CHECK_INT(weft_port_number("70000"), 0);
}

/* ---- PTM ---- */

static void plans_in_dot(void)
{
    check(weft_parse_ptm,
          "/* plan */ graph G {\n"
          "  graph [hostidtype=\"hostname\", version=\"1:0\"]; node [shape=box]\n"
          "  rankdir = LR;\n"
          "  # a comment\n"
          "  \"leaf01\" [function=\"leaf\" pos=\"1,2\"]; host01 [function=host]\n"
          "  \"leaf01\":\"swp51\" -- \"spine01\":\"swp1\" [speed=100G]; // to the spine\n"
          "  \"leaf01\":\"swp1\" -- \"host01\":\"eth1\"\n"
          "  subgraph cluster_a { leaf02:swp51 -- spine01:swp2; { \"ho\\\"st\":eth1:n -- "
          "leaf02:swp1 } }\n"
          "}\n",
          "ho\"st host01 leaf01* leaf02* spine01*: ho\"st:eth1-leaf02:swp1 "
          "host01:eth1-leaf01:swp1 leaf01:swp51-spine01:swp1 leaf02:swp51-spine01:swp2");
    /* a chain, and both directions of one cable */
    check(weft_parse_ptm, "strict graph { a:swp1 -- b:swp1; b:swp1 -- a:swp1 }",
          "a* b*: a:swp1-b:swp1");
    /* no port's name says what b is; its function does */
    check(weft_parse_ptm, "graph { b [function=spine]; a:swp1 -- b:x1 }", "a* b*: a:swp1-b:x1");
}

static void the_out_of_band_network_is_apart(void)
{
    struct weft_error err = {0};
    weft_auto(weft_cabling_free) struct weft_cabling *c =
        parse(weft_parse_ptm,
              "graph { \"oob-mgmt-switch\" [function=\"oob-switch\"]\n"
              "\"oob-mgmt-switch\":swp1 -- leaf01:eth0\n\"oob-mgmt-switch\":swp2 -- leaf02:eth0\n"
              "leaf01:swp1 -- leaf02:swp1 }",
              &err);
    CHECK_STR(err.message, "");
    CHECK_INT(c != NULL ? c->cable_count : 0, 1);
    CHECK_STR(c != NULL && c->warning_count == 1 ? c->warnings[0] : "",
              "plan: 2 cables of the out-of-band network are passed over");
}

static void bad_dot(void)
{
    static const struct {
        const char *text, *part;
    } rows[] = {
        {"", "plan:1: expected \"graph\" (undirected), found the end of the file"},
        {"digraph G { a:p1 -> b:p1 }", "expected \"graph\" (undirected), found \"digraph\""},
        {"graph G\n{\na:swp1 -> b:swp1 }", "plan:3: cables have no direction"},
        {"graph { a:swp1 -- b:swp1", "expected a statement or \"}\", found the end of the file"},
        {"graph { a -- b }", "plan:1: a cable between a and b without ports at both ends"},
        {"graph { a:swp1 -- b:swp1\n a:swp1 -- c:swp1 }",
         "plan:2: port swp1 of a has a cable already (line 1)"},
        {"graph { a:swp1 -- b:swp1\n c:swp1 -- b:swp1 }",
         "plan:2: port swp1 of b has a cable already (line 1)"},
        {"graph { a:swp1 -- a:swp1 }", "port swp1 of a has a cable already (line 1)"},
        {"graph { a:swp1 -- { b c } }", "expected the cable's other end, found {"},
        {"graph { a [function=] }", "expected an attribute's value, found ]"},
        {"graph { a [=x] }", "expected an attribute or \"]\", found ="},
        {"graph { a [x", "expected an attribute or \"]\", found the end"},
        {"graph { \"a:swp1 -- b }", "expected a statement or \"}\", found what is no DOT"},
        {"graph { a = }", "expected a value, found }"},
        {"graph { } }", "expected the end of the file, found }"},
        {"graph { }", "plan: no cable in it"},
        {"graph { a: -- b:p1 }", "expected a port, found --"},
        {"graph { \"\":p1 -- b:p1 }", "a device needs a name"},
        {"graph { <b>x</b> }", "found what is no DOT"},
        {"graph { {{{{{{{{{{{{{{{{ a:p1 -- b:p1 }", "at most 16 nested subgraphs"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        check_refused(weft_parse_ptm, rows[i].text, rows[i].part);
    }
}

/* ---- UFM's design table ---- */

#define HEADER "#StartDevice,StartPort,EndDevice,EndPort,LinkType\n"

static void design_tables(void)
{
    check(weft_parse_ndt,
          HEADER "N1,N1 ibp11s0f0,SW1,Port 1, Data\r\n"
                 "SW1,Port 21,DIR-A,Blade 16_Port 2/20,Data\n"
                 "DIR-A,Blade 16_Port 2/20,SW1,Port 21,Data\n\n",
          "DIR-A/L16/U2* N1 SW1*: DIR-A/L16/U2:20-SW1:21 N1:ibp11s0f0-SW1:1");
    /* columns among others, under a header with a prefix */
    check(weft_parse_ndt,
          ",rack #,U height,#Fields:StartDevice,StartPort,StartDeviceLocation,EndDevice,EndPort\n"
          ",R1,U41,SW1,Port 2,F01,SW2,Port 3,,x\n",
          "SW1* SW2*: SW1:2-SW2:3");
    static const struct {
        const char *text, *part;
    } rows[] = {
        {"#StartDevice,EndDevice,EndPort,LinkType\na,b,Port 1,Data\n",
         "plan:1: the first line must name the columns StartDevice, StartPort, EndDevice, EndPort; "
         "StartPort is not there"},
        {HEADER "a,abra,b,cadabra,Data\n", "plan:2: \"abra\" is not a port: expected \"Port N\""},
        {HEADER "a,Port 1,b\n", "plan:2: a row of 3 columns; the header needs 4"},
        {HEADER "a,Port 1,,Port 2,Data\n", "plan:2: a device needs a name"},
        {HEADER "a,Port 1,b,,Data\n", "plan:2: \"\" is not a port"},
        {HEADER "a,Port 1,b,Port 1,Data\na,Port 1,b,Port 2,Data\n",
         "plan:3: port 1 of a has a cable already (line 2)"},
        {HEADER, "plan: no cable in it"},
        {"", "plan: no cable in it"},
        {"{\"error\": \"\", \"report\": {}}\n", "StartDevice is not there"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        check_refused(weft_parse_ndt, rows[i].text, rows[i].part);
    }
}

/* ---- NetQ ---- */

#define CABLE(a, ap, b, bp)                                                                        \
    "{\"interfaces\": [{\"node\": \"" a "\", \"interface\": \"" ap "\"}, {\"node\": \"" b          \
    "\", \"interface\": \"" bp "\"}]}"

static void netq_graphs(void)
{
    check(weft_parse_netq,
          "[{\"nodes\": [{\"id\": \"tier-1\", \"name\": \"tier-1\", \"compounded_nodes\": "
          "[{\"id\": \"n0\", \"name\": \"leaf-1\", \"tier\": 1}]},"
          "{\"id\": \"t2\", \"compounded_nodes\": []}],"
          "\"links\": []},"
          "{\"nodes\": [{\"id\": \"n0\", \"name\": \"leaf-1\", \"tier\": 1},"
          "{\"id\": \"n7\", \"name\": \"dgx-01\", \"tier\": -1}],"
          "\"links\": [{\"id\": \"n0-*-n7\", \"compounded_links\": [" CABLE(
              "n0", "swp1s0", "n7", "x0") "," CABLE("n0", "swp1s1", "n7", "x1") "]}]}]",
          "dgx-01 leaf-1*: dgx-01:x0-leaf-1:swp1s0 dgx-01:x1-leaf-1:swp1s1");
    static const struct {
        const char *text, *part;
    } rows[] = {
        {"{}", "not NetQ's topology graph"},
        {"[{\"links\": []}]", "no list nodes"},
        {"[{\"nodes\": []}]", "no list links"},
        {"[{\"nodes\": [{\"name\": \"x\"}], \"links\": []}]",
         "plan:1: [0].nodes[0]: a node without an id"},
        {"[{\"nodes\": [], \"links\": [{\"compounded_links\": [{}]}]}]",
         "a cable needs a list of two interfaces"},
        {"[{\"nodes\": [], \"links\": [{\"compounded_links\": [" CABLE("a", "1", "b", "2") "]}]}]",
         "no node a in the graph"},
        {"[{\"nodes\": [], \"links\": []}]", "plan: no cable in it"},
        {"[{\"DomainUUID\": \"x\", \"Name\": \"n1\"}]", "no list nodes"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        check_refused(weft_parse_netq, rows[i].text, rows[i].part);
    }
}

/* ---- as a fabric ---- */

static struct weft_fabric *fabric_of(const char *dot)
{
    struct weft_error err = {0};
    struct weft_fabric *fabric = NULL;
    weft_auto(weft_cabling_free) struct weft_cabling *c = parse(weft_parse_ptm, dot, &err);
    if (c != NULL) {
        CHECK_INT(weft_cabling_fabric(c, &fabric, &err), 0);
    }
    CHECK_STR(err.message, "");
    return fabric;
}

static void a_plan_is_a_fabric(void)
{
    weft_auto(weft_fabric_free) struct weft_fabric *f =
        fabric_of("graph { leaf1:swp2 -- gpu1:eth0; leaf1:swp10 -- \"GPU2.x\":eth0;"
                  " leaf2:swp1 -- gpu1:eth1; leaf1:swp51 -- leaf2:swp51 }");
    if (f == NULL) {
        return;
    }
    CHECK_INT(f->switch_count, 2);
    CHECK_INT(f->device_count, 5); /* and three host ports */
    CHECK_INT(f->link_count, 4);
    CHECK_INT(f->host_count, 2);
    CHECK_STR(f->hosts[0].name, "gpu1");
    CHECK_STR(f->hosts[1].name, "gpu2");
    CHECK_STR(f->hosts[1].full_name, "gpu2.x");
    CHECK(f->hosts[0].mappable && !f->partial);
    CHECK_INT(f->warning_total, 0);
    for (size_t i = 0; i < f->device_count; i++) {
        CHECK(weft_guid_is_made(f->devices[i].guid));
    }
    for (size_t i = 0; i < f->link_count; i++) {
        CHECK(f->links[i].both);
    }
    /* ports of a switch are numbered in natural order of their names */
    const size_t leaf1 = strcmp(f->devices[0].desc, "leaf1") == 0 ? 0 : 1;
    CHECK_STR(f->devices[leaf1].desc, "leaf1");
    CHECK_STR(weft_fabric_port_name(f, leaf1, 1), "swp2");
    CHECK_STR(weft_fabric_port_name(f, leaf1, 2), "swp10");
    CHECK_STR(weft_fabric_port_name(f, leaf1, 3), "swp51");
    CHECK(weft_fabric_port_name(f, leaf1, 4) == NULL);
    weft_autofree char *nic = weft_ca_name(&f->devices[2]);
    CHECK(nic != NULL && strncmp(nic, "eth", 3) == 0);
}

static void made_guids_are_no_real_ones(void)
{
    CHECK(weft_guid_is_made(weft_guid_made("leaf01", 6)));
    CHECK(weft_guid_made("leaf01", 6) != weft_guid_made("leaf02", 6));
    CHECK(weft_guid_made("leaf01", 6) == weft_guid_made("leaf01", 6));
    CHECK(!weft_guid_is_made(UINT64_C(0x0c42a103001b7ab6)));
    CHECK(!weft_guid_is_made(UINT64_C(0xb83fd203002a1b1c)));
    CHECK(!weft_guid_is_made(UINT64_C(0x00155dfffd33ff33)));
}

/* The same cables in any order and with their ends swapped: the same fabric. */
static void order_decides_nothing(void)
{
    weft_auto(weft_fabric_free) struct weft_fabric *a =
        fabric_of("graph { l1:swp1 -- h1:eth0; l1:swp2 -- h2:eth0; l2:swp1 -- h1:eth1 }");
    weft_auto(weft_fabric_free) struct weft_fabric *b =
        fabric_of("graph { h1:eth1 -- l2:swp1; h2:eth0 -- l1:swp2; h1:eth0 -- l1:swp1 }");
    if (a == NULL || b == NULL) {
        return;
    }
    CHECK_INT(a->device_count, b->device_count);
    for (size_t i = 0; i < a->device_count; i++) {
        CHECK(a->devices[i].guid == b->devices[i].guid);
        CHECK_STR(a->devices[i].desc, b->devices[i].desc);
    }
    CHECK_INT(a->link_count, b->link_count);
    CHECK_INT(memcmp(a->links, b->links, a->link_count * sizeof(*a->links)), 0);
}

/* ---- against what was observed ---- */

static char *findings_text(const struct weft_cable_findings *findings)
{
    static const char *const states[] = {"missing", "miswired", "extra", "unseen"};
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1 << 20);
    (void)weft_buf_printf(&buf, "%zu right", findings->right);
    for (size_t i = 0; i < findings->count; i++) {
        const struct weft_cable_finding *f = &findings->items[i];
        (void)weft_buf_printf(&buf, "; %s %s - %s%s%s%s", states[f->state], f->a, f->b,
                              f->actual[0] != '\0' ? " (" : "", f->actual,
                              f->actual[0] != '\0' ? ")" : "");
    }
    return weft_buf_steal(&buf);
}

static void check_compare(const struct weft_cabling *plan, const struct weft_fabric *fabric,
                          const char *expected)
{
    weft_auto(weft_cable_findings_done) struct weft_cable_findings findings = {0};
    struct weft_error err = {0};
    CHECK_INT(weft_cabling_compare(plan, fabric, &findings, &err), 0);
    weft_autofree char *text = findings_text(&findings);
    CHECK_STR(text, expected);
}

#define PLAN                                                                                       \
    "graph { leaf1:swp1 -- h1:eth0\n leaf1:swp2 -- h2:eth0\n leaf2:swp1 -- h3:eth0\n"              \
    "leaf2:swp2 -- h4:eth0 }"

static void expected_against_observed(void)
{
    struct weft_error err = {0};
    weft_auto(weft_cabling_free) struct weft_cabling *plan = parse(weft_parse_ptm, PLAN, &err);
    weft_auto(weft_fabric_free) struct weft_fabric *same = fabric_of(PLAN);
    check_compare(plan, same, "4 right");
    /* h1 and h2 swapped, h3's cable gone, h4 not there, h3 on another port, other case */
    weft_auto(weft_fabric_free) struct weft_fabric *other =
        fabric_of("graph { \"Leaf1\":swp1 -- h2:eth0; \"Leaf1\":swp2 -- h1:eth0;"
                  " leaf2:swp9 -- h3:eth5 }");
    check_compare(plan, other,
                  "0 right; missing h3:eth0 - leaf2:swp1; "
                  "miswired h1:eth0 - leaf1:swp1 (Leaf1:swp2 - h1:eth0); "
                  "miswired h2:eth0 - leaf1:swp2 (Leaf1:swp1 - h2:eth0); "
                  "extra leaf2:swp9 - h3:eth5; unseen h4:eth0 - leaf2:swp2");
    /* what was not scanned is not missing; what is wrong still is */
    if (other != NULL) {
        other->partial = true;
        check_compare(plan, other,
                      "0 right; miswired h1:eth0 - leaf1:swp1 (Leaf1:swp2 - h1:eth0); "
                      "miswired h2:eth0 - leaf1:swp2 (Leaf1:swp1 - h2:eth0); "
                      "extra leaf2:swp9 - h3:eth5");
    }
}

/* A design table against an InfiniBand dump: ports are numbers there, names are in lower case. */
static void a_table_against_a_dump(void)
{
    weft_autofree char *text = weft_fixture_text("fabric/two-racks.ibnetdiscover.txt", NULL);
    struct weft_fabric *fabric = NULL;
    struct weft_error err = {0};
    if (text == NULL) {
        return;
    }
    CHECK_INT(weft_parse_ibnetdiscover(text, strlen(text), "dump", &fabric, &err), 0);
    weft_auto(weft_fabric_free) struct weft_fabric *owned = fabric;
    weft_auto(weft_buf_done) struct weft_buf table;
    weft_buf_init(&table, 1 << 16);
    (void)weft_buf_puts(&table, HEADER);
    /* the dump's own cables of host adapters, written as a table with one port moved */
    size_t rows = 0;
    for (size_t i = 0; owned != NULL && i < owned->link_count; i++) {
        const struct weft_link *l = &owned->links[i];
        const struct weft_device *ca = &owned->devices[l->b];
        if (ca->kind != WEFT_DEVICE_CA || ca->host == WEFT_FABRIC_NO_HOST ||
            !owned->hosts[ca->host].mappable) {
            continue;
        }
        weft_autofree char *name = weft_device_name(&owned->devices[l->a]);
        weft_autofree char *nic = weft_ca_name(ca);
        const char *host = owned->hosts[ca->host].name;
        (void)weft_buf_printf(&table, "%s,%s %s,%s,Port %u,Data\n", host, host, nic, name,
                              rows == 0 ? 99U : l->a_port);
        rows++;
    }
    CHECK(rows > 2);
    weft_auto(weft_cabling_free) struct weft_cabling *plan =
        parse(weft_parse_ndt, weft_buf_text(&table), &err);
    weft_auto(weft_cable_findings_done) struct weft_cable_findings findings = {0};
    if (plan != NULL && owned != NULL) {
        CHECK_INT(weft_cabling_compare(plan, owned, &findings, &err), 0);
        CHECK_INT(findings.right, rows - 1);
        CHECK(findings.count > 0 && findings.items[0].state == WEFT_CABLE_MISWIRED);
    }
}

/* ---- no memory ---- */

static int everything(struct weft_error *err)
{
    weft_auto(weft_cabling_free) struct weft_cabling *plan = NULL;
    weft_auto(weft_cabling_free) struct weft_cabling *table = NULL;
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = NULL;
    weft_auto(weft_cable_findings_done) struct weft_cable_findings findings = {0};
    static const char rows[] = HEADER "leaf1,Port 1,h1,h1 eth0,x\nleaf2,Port 5,h2,h2 eth0,x\n";
    static const char dot[] = "graph { o [function=oob-switch]; o:p1 -- leaf1:eth0\n"
                              "leaf1:swp1 -- h1:eth0; leaf2:swp5 -- \"h2.x\":eth0 }";
    int rc = weft_parse_ptm(dot, strlen(dot), "dot", &plan, err);
    rc = rc < 0 ? rc : weft_parse_ndt(rows, strlen(rows), "ndt", &table, err);
    rc = rc < 0 ? rc : weft_cabling_fabric(plan, &fabric, err);
    return rc < 0 ? rc : weft_cabling_compare(table, fabric, &findings, err);
}

static void no_memory(void)
{
    int rc = -ENOMEM;
    uint64_t n = 0;
    while (rc < 0 && n < 100000) {
        struct weft_error err = {0};
        (void)weft_mem_fail_after(++n);
        rc = everything(&err);
        (void)weft_mem_fail_after(0);
        CHECK_INT(rc < 0 ? rc : -ENOMEM, -ENOMEM);
    }
    CHECK_INT(rc, 0);
    CHECK(n > 100);
}

WEFT_SUITE(fabric_ptm, {"port_names_tell", port_names_tell}, {"plans_in_dot", plans_in_dot},
           {"the_out_of_band_network_is_apart", the_out_of_band_network_is_apart},
           {"bad_dot", bad_dot}, {"design_tables", design_tables}, {"netq_graphs", netq_graphs},
           {"a_plan_is_a_fabric", a_plan_is_a_fabric},
           {"made_guids_are_no_real_ones", made_guids_are_no_real_ones},
           {"order_decides_nothing", order_decides_nothing},
           {"expected_against_observed", expected_against_observed},
           {"a_table_against_a_dump", a_table_against_a_dump}, {"no_memory", no_memory})
