/* SPDX-License-Identifier: Apache-2.0 */
/* LLDP reports: lldpd's two JSON forms, collectors' records of switches, and what is one switch. */
#include <errno.h>

#include "pkg/base/buf.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/lldp.h"
#include "tests/unit/unit.h"

struct report {
    const char *reporter;
    const char *text;
};

static int read_all(const struct report *reports, size_t count, struct weft_fabric **ret_fabric,
                    struct weft_error *err)
{
    weft_auto(weft_lldp_free) struct weft_lldp *lldp = weft_lldp_new("lldp");
    int rc = lldp != NULL ? 0 : weft_err_nomem(err);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = weft_lldp_add(lldp, reports[i].text, strlen(reports[i].text), "report",
                           reports[i].reporter, err);
    }
    return rc < 0 ? rc : weft_lldp_finish(lldp, ret_fabric, err);
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "leaf1:swp1-gpu1:eth0 …", sorted: made-up GUIDs order devices in a way that says nothing. */
static char *links_text(const struct weft_fabric *f)
{
    char *lines[64] = {NULL};
    size_t count = 0;
    for (size_t i = 0; i < f->link_count && i < WEFT_ARRAY_LEN(lines); i++) {
        const struct weft_link *l = &f->links[i];
        const struct weft_device *b = &f->devices[l->b];
        weft_autofree char *ca = weft_ca_name(b);
        const bool host = b->host != WEFT_FABRIC_NO_HOST;
        const char *a_port = weft_fabric_port_name(f, l->a, l->a_port);
        const char *names[2] = {f->devices[l->a].desc, host ? f->hosts[b->host].name : b->desc};
        const char *ports[2] = {a_port, host ? ca : weft_fabric_port_name(f, l->b, l->b_port)};
        const bool swap = !host && strcmp(names[0], names[1]) > 0;
        lines[count++] = weft_asprintf("%s:%s-%s:%s%s", names[swap], ports[swap], names[!swap],
                                       ports[!swap], l->both ? "*" : "");
    }
    qsort(lines, count, sizeof(char *), compare_text);
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1 << 16);
    for (size_t i = 0; i < count; i++) {
        (void)weft_buf_printf(&buf, "%s%s", i > 0 ? " " : "", lines[i]);
        weft_free(lines[i]);
    }
    return weft_buf_steal(&buf);
}

/* Cables that both ends report have a star. */
static struct weft_fabric *check(const struct report *reports, size_t count, const char *links)
{
    struct weft_fabric *fabric = NULL;
    struct weft_error err = {0};
    (void)!read_all(reports, count, &fabric, &err);
    CHECK_STR(err.message, "");
    weft_autofree char *text = fabric != NULL ? links_text(fabric) : NULL;
    CHECK_STR(text != NULL ? text : "nothing", links);
    return fabric;
}

/* ---- lldpd ---- */

#define JSON0(interfaces) "{\"lldp\": [{\"interface\": [" interfaces "]}]}"
#define ENTRY0(port, mac, name, peer)                                                              \
    "{\"name\": \"" port "\", \"via\": \"LLDP\", \"chassis\": [{\"id\": [{\"type\": \"mac\", "     \
    "\"value\": \"" mac "\"}], \"name\": [{\"value\": \"" name                                     \
    "\"}], \"capability\": [{\"type\": "                                                           \
    "\"Bridge\", \"enabled\": true}]}], \"port\": [{\"id\": [{\"type\": \"ifname\", \"value\": "   \
    "\"" peer "\"}], \"ttl\": [{\"value\": \"120\"}]}]}"
#define ENTRY(mac, name, peer)                                                                     \
    "{\"via\": \"LLDP\", \"age\": \"1 day, 03:21:35\", \"chassis\": {\"" name                      \
    "\": {\"id\": {\"type\": \"mac\", \"value\": \"" mac                                           \
    "\"}, \"mgmt-ip\": \"10.0.0.1\"}}, \"port\": {\"id\": {\"type\": \"ifname\", \"value\": "      \
    "\"" peer "\"}, \"ttl\": \"120\"}}"

static void both_forms_of_lldpd(void)
{
    const struct report json0[] = {
        {"gpu1", JSON0(ENTRY0("ens1np0", "70:06:92:6e:32:64", "leaf1", "Ethernet8") "," ENTRY0(
                     "ens2np0", "70:06:92:6e:40:64", "leaf2", "Ethernet8"))},
        {"GPU2", JSON0(ENTRY0("ens1np0", "70:06:92:6e:32:64", "leaf1", "Ethernet16"))}};
    weft_auto(weft_fabric_free) struct weft_fabric *f =
        check(json0, 2,
              "leaf1:Ethernet16-gpu2:ens1np0 leaf1:Ethernet8-gpu1:ens1np0 "
              "leaf2:Ethernet8-gpu1:ens2np0");
    CHECK(f != NULL && f->switch_count == 2 && f->host_count == 2 && !f->partial &&
          f->warning_total == 0);
    /* json: an object keyed by interface, the chassis keyed by name; the same fabric */
    const struct report json[] = {
        {"gpu1",
         "{\"lldp\": {\"interface\": {\"ens1np0\": " ENTRY(
             "70:06:92:6e:32:64", "leaf1",
             "Ethernet8") ", \"ens2np0\": " ENTRY("70:06:92:6e:40:64", "leaf2", "Ethernet8") "}}}"},
        {"GPU2", "{\"lldp\": {\"interface\": [{\"ens1np0\": " ENTRY("70:06:92:6e:32:64", "leaf1",
                                                                    "Ethernet16") "}]}}"}};
    weft_fabric_free(check(json, 2,
                           "leaf1:Ethernet16-gpu2:ens1np0 leaf1:Ethernet8-gpu1:ens1np0 "
                           "leaf2:Ethernet8-gpu1:ens2np0"));
}

static void chassis_without_a_name(void)
{
    const struct report reports[] = {
        {"gpu1", "{\"lldp\": {\"interface\": {\"eth0\": {\"via\": \"LLDP\", \"chassis\": {\"id\": "
                 "{\"type\": \"mac\", \"value\": \"70:06:92:6e:32:64\"}}, \"port\": {\"id\": "
                 "{\"type\": \"local\", \"value\": \"7\"}, \"descr\": \"to gpu1\"}}}}}"},
        {"gpu2", "{\"lldp\": {\"interface\": {\"eth0\": {\"via\": \"LLDP\", \"chassis\": {\"id\": "
                 "{\"type\": \"mac\", \"value\": \"7006.926e.3265\"}}, \"port\": {\"id\": "
                 "{\"type\": \"local\", \"value\": \"8\"}}}}}}"}};
    /* near addresses are two switches where no name joins them */
    weft_auto(weft_fabric_free) struct weft_fabric *f =
        check(reports, 2, "7006.926e.3265:8-gpu2:eth0 70:06:92:6e:32:64:7-gpu1:eth0");
    CHECK(f != NULL && f->switch_count == 2);
}

/* ---- what is one switch ---- */

static size_t switches_of(const char *mac1, const char *mac2, const char *port1, const char *port2,
                          size_t *ret_warnings)
{
    weft_autofree char *one =
        weft_asprintf(JSON0(ENTRY0("eth0", "%s", "spine", "%s")), mac1, port1);
    weft_autofree char *two =
        weft_asprintf(JSON0(ENTRY0("eth0", "%s", "spine", "%s")), mac2, port2);
    const struct report reports[] = {{"n1", one}, {"n2", two}};
    struct weft_fabric *fabric = NULL;
    struct weft_error err = {0};
    (void)!read_all(reports, 2, &fabric, &err);
    CHECK_STR(err.message, "");
    weft_auto(weft_fabric_free) struct weft_fabric *owned = fabric;
    *ret_warnings = owned != NULL ? owned->warning_total : 0;
    return owned != NULL ? owned->switch_count : 0;
}

static void one_switch_or_two(void)
{
    size_t warnings = 0;
    /* a port's own address as chassis id (NX-OS) */
    CHECK_INT(switches_of("50:0b:00:00:01:03", "50:0b:00:00:01:05", "swp1", "swp2", &warnings), 1);
    CHECK_INT(warnings, 0);
    /* the same name far apart: nobody named them */
    CHECK_INT(switches_of("50:0b:00:00:01:03", "50:0c:00:00:01:03", "swp1", "swp2", &warnings), 2);
    CHECK_INT(warnings, 1);
    /* near, but then one port would have two cables */
    CHECK_INT(switches_of("50:0b:00:00:01:03", "50:0b:00:00:01:04", "swp1", "swp1", &warnings), 2);
    /* at the edge of a block: 1,024 addresses apart */
    CHECK_INT(switches_of("50:0b:00:00:00:00", "50:0b:00:00:04:00", "swp1", "swp2", &warnings), 1);
    CHECK_INT(switches_of("50:0b:00:00:00:00", "50:0b:00:00:04:01", "swp1", "swp2", &warnings), 2);
}

/* ---- switch-side reports ---- */

static void both_ends_report(void)
{
    /* the switch writes the host's port by its MAC address and describes it */
    const struct report reports[] = {
        {"gpu1", JSON0(ENTRY0("ens1np0", "70:06:92:6e:32:64", "leaf1.example.com", "swp1"))},
        {"leaf1",
         "{\"lldp\": [{\"interface\": [{\"name\": \"swp1\", \"via\": \"LLDP\", \"chassis\": "
         "[{\"id\": [{\"type\": \"mac\", \"value\": \"08:00:27:59:9e:6b\"}], \"name\": "
         "[{\"value\": \"gpu1.example.com\"}]}], \"port\": [{\"id\": [{\"type\": \"mac\", "
         "\"value\": \"08:00:27:59:9e:6c\"}], \"descr\": [{\"value\": \"ens1np0\"}]}]},"
         "{\"name\": \"swp51\", \"via\": \"LLDP\", \"chassis\": [{\"id\": [{\"type\": \"mac\", "
         "\"value\": \"70:06:92:6f:00:01\"}], \"name\": [{\"value\": \"spine1\"}]}], \"port\": "
         "[{\"id\": [{\"type\": \"ifname\", \"value\": \"swp1\"}]}]},"
         "{\"name\": \"mgmt0\", \"via\": \"LLDP\", \"chassis\": [{\"id\": [{\"type\": \"mac\", "
         "\"value\": \"70:06:92:6f:99:01\"}], \"name\": [{\"value\": \"oob\"}]}], \"port\": "
         "[{\"id\": [{\"type\": \"ifname\", \"value\": \"swp9\"}]}]}]}]}"}};
    weft_auto(weft_fabric_free) struct weft_fabric *f =
        check(reports, 2, "leaf1:swp1-gpu1:ens1np0* leaf1:swp51-spine1:swp1");
    CHECK(f != NULL && f->switch_count == 2 && f->host_count == 1 && f->warning_total == 0);
}

/* Answers of EOS, Junos and NX-OS about a spine that gives each port's address as its chassis id, a
 * CDP answer, and one in text. */
static void records_of_switches(void)
{
    weft_autofree char *text = weft_fixture_text("fabric/lldp-records.json", NULL);
    const struct report reports[] = {{NULL, text}};
    weft_auto(weft_fabric_free) struct weft_fabric *f =
        check(reports, 1, "leaf1:Ethernet1-spine1:Ethernet1/5* leaf2:xe-0/0/0-spine1:Ethernet1/3*");
    if (f != NULL) {
        CHECK_INT(f->switch_count, 3);
        CHECK(f->partial);
        CHECK_INT(f->warning_total, 1);
        CHECK_CONTAINS(f->warnings[0], "leaf3: the answer is no JSON");
    }
}

/* ---- what is left out ---- */

static void rows_that_are_no_cable(void)
{
    const struct report reports[] = {
        {"gpu1",
         JSON0(ENTRY0("eth0", "70:06:92:6e:32:64", "leaf1", "swp1") "," ENTRY0(
             "eth1", "08:00:27:59:9e:6b", "gpu1.example.com",
             "eth2") "," ENTRY0("eth3", "08:00:27:59:9e:7b", "gpu9",
                                "eth0") "," ENTRY0("eth4", "70:06:92:6e:32:64", "leaf1",
                                                   "swp4") "," ENTRY0("eth4", "70:06:92:7e:32:64",
                                                                      "leaf2",
                                                                      "swp4") ",{\"name\": "
                                                                              "\"eth5\", \"via\": "
                                                                              "\"LLDP\"}")},
        {"gpu2", "{\"lldp\": [{}]}"},
        {"gpu3", "{\"lldp\": {\"interface\": {\"p0\": {\"via\": \"LLDP\", \"chassis\": {\"bf\": "
                 "{\"id\": {\"value\": \"0c:42:a1:00:00:01\"}, \"descr\": \"Ubuntu 22.04 Linux "
                 "5.15.0-1060-bluefield\"}}, \"port\": {\"id\": {\"value\": \"swp1\"}}}}}}"}};
    weft_auto(weft_fabric_free) struct weft_fabric *f = check(reports, 3, "leaf1:swp1-gpu1:eth0");
    if (f == NULL) {
        return;
    }
    CHECK(f->partial);
    static const char *const parts[] = {
        "eth5: a neighbour without a chassis id and a name",
        "gpu2 hears no neighbour",
        "gpu1 port eth1: passed over, it hears itself",
        "gpu1 port eth3: passed over, it looks like another host: gpu9",
        "gpu3 port p0: passed over, a data processing unit",
        "gpu1 port eth4: passed over, several neighbours are heard"};
    CHECK_INT(f->warning_total, WEFT_ARRAY_LEN(parts));
    for (size_t i = 0; i < WEFT_ARRAY_LEN(parts) && i < f->warning_count; i++) {
        CHECK_CONTAINS(f->warnings[i], parts[i]);
    }
}

/* One bad report among many is lost, the others count; all bad are none. */
static void a_lost_report(void)
{
    weft_auto(weft_lldp_free) struct weft_lldp *lldp = weft_lldp_new("lldp");
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = NULL;
    static const char good[] = JSON0(ENTRY0("eth0", "70:06:92:6e:32:64", "leaf1", "swp1"));
    struct weft_error err = {0};
    CHECK_INT(weft_lldp_add(lldp, "{\"lldp\": ", 9, "gpu2.json", "gpu2", &err), -EINVAL);
    weft_lldp_lost(lldp, &err);
    CHECK_INT(weft_lldp_finish(lldp, &fabric, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "no cable in it; lldp: a report is lost: gpu2.json:1:");
    CHECK_INT(weft_lldp_add(lldp, good, strlen(good), "gpu1.json", "gpu1", &err), 0);
    CHECK_INT(weft_lldp_finish(lldp, &fabric, &err), 0);
    CHECK(fabric != NULL && fabric->partial && fabric->link_count == 1);
    CHECK_CONTAINS(fabric != NULL && fabric->warning_count > 0 ? fabric->warnings[0] : "",
                   "lldp: a report is lost: gpu2.json:1:");
}

static void reports_that_are_none(void)
{
    static const struct {
        struct report report;
        const char *part;
    } rows[] = {
        {{"gpu1", "-----\nLLDP neighbors:\n"},
         "report:1: not JSON: lldpcli's text form is not read, use -f json0"},
        {{"gpu1", ""}, "report:1: not JSON"},
        {{"gpu1", "{\"lldp\": "}, "report:1:"},
        {{"gpu1", "{\"links\": []}"}, "no LLDP report"},
        {{NULL, "{\"lldp\": []}"}, "report: the report does not say whose it is"},
        {{"gpu1", "{\"lldp\": [{\"interface\": [7]}]}"},
         "report:1: lldp[0].interface[0]: an interface must be an object"},
        {{"gpu1",
          "{\"lldp\": [{\"interface\": [{\"name\": \"eth0\", \"status\": [{\"value\": \"RX and "
          "TX\"}], \"ttl\": [{\"ttl\": \"120\"}]}]}]}"},
         "a system's own interfaces, not its neighbours"},
        {{"gpu1", "{\"lldp\": [{}]}"}, "lldp: no cable in it; report: gpu1 hears no neighbour"},
        {{NULL, "[{\"hostname\": \"a\", \"data\": \"{\", \"cmd\": \"show lldp\"}]"},
         "report: data of a:1:"},
        {{NULL, "[{\"hostname\": 7, \"data\": \"{}\"}]"}, "does not say whose it is"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        struct weft_fabric *fabric = NULL;
        struct weft_error err = {0};
        CHECK_INT(read_all(&rows[i].report, 1, &fabric, &err), -EINVAL);
        CHECK(fabric == NULL);
        CHECK_CONTAINS(err.message, rows[i].part);
    }
}

static void no_memory(void)
{
    weft_autofree char *records = weft_fixture_text("fabric/lldp-records.json", NULL);
    const struct report reports[] = {
        {"gpu1", JSON0(ENTRY0("eth0", "70:06:92:6e:32:64", "leaf1", "Eth1/1"))},
        {"gpu2", JSON0(ENTRY0("eth0", "70:06:93:6e:32:64", "leaf1", "swp1"))},
        {NULL, records}};
    int rc = -ENOMEM;
    uint64_t n = 0;
    while (rc < 0 && n < 100000) {
        struct weft_fabric *fabric = NULL;
        struct weft_error err = {0};
        (void)weft_mem_fail_after(++n);
        rc = read_all(reports, 3, &fabric, &err);
        (void)weft_mem_fail_after(0);
        CHECK_INT(rc < 0 ? rc : -ENOMEM, -ENOMEM);
        CHECK_INT(fabric != NULL, rc == 0);
        weft_fabric_free(fabric);
    }
    CHECK_INT(rc, 0);
    CHECK(n > 100);
}

WEFT_SUITE(fabric_lldp, {"both_forms_of_lldpd", both_forms_of_lldpd},
           {"chassis_without_a_name", chassis_without_a_name},
           {"one_switch_or_two", one_switch_or_two}, {"both_ends_report", both_ends_report},
           {"records_of_switches", records_of_switches},
           {"rows_that_are_no_cable", rows_that_are_no_cable}, {"a_lost_report", a_lost_report},
           {"reports_that_are_none", reports_that_are_none}, {"no_memory", no_memory})
