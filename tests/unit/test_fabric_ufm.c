/* SPDX-License-Identifier: Apache-2.0 */
/* UFM's REST answers: links, ports, systems, virtual ports, in their odd forms. */
#include <errno.h>

#include "pkg/base/buf.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/ufm.h"
#include "tests/unit/unit.h"

struct answer {
    enum weft_ufm_resource resource;
    const char *text;
};

static int read_all(const struct answer *answers, size_t count, struct weft_fabric **ret_fabric,
                    struct weft_error *err)
{
    weft_auto(weft_ufm_free) struct weft_ufm *ufm = weft_ufm_new("ufm");
    int rc = ufm != NULL ? 0 : weft_err_nomem(err);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = weft_ufm_add(ufm, answers[i].resource, answers[i].text, strlen(answers[i].text),
                          "answer", NULL, err);
    }
    return rc < 0 ? rc : weft_ufm_finish(ufm, ret_fabric, err);
}

/* "leaf-1#3-n1#mlx5_0 …": each cable by the names of its ends; switches with their port. */
static char *links_text(const struct weft_fabric *f)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1 << 16);
    for (size_t i = 0; i < f->link_count; i++) {
        const struct weft_link *l = &f->links[i];
        const size_t ends[2] = {l->a, l->b};
        const unsigned ports[2] = {l->a_port, l->b_port};
        for (size_t e = 0; e < 2; e++) {
            const struct weft_device *d = &f->devices[ends[e]];
            weft_autofree char *name = weft_device_name(d);
            (void)weft_buf_printf(&buf, "%s%s#%u", e > 0 ? "-" : (i > 0 ? "; " : ""), name,
                                  ports[e]);
        }
    }
    return weft_buf_steal(&buf);
}

static struct weft_fabric *check(const struct answer *answers, size_t count, const char *links)
{
    struct weft_fabric *fabric = NULL;
    struct weft_error err = {0};
    (void)!read_all(answers, count, &fabric, &err);
    CHECK_STR(err.message, "");
    weft_autofree char *text = fabric != NULL ? links_text(fabric) : NULL;
    CHECK_STR(text != NULL ? text : "nothing", links);
    return fabric;
}

#define LINK(a, ap, ad, b, bp, bd)                                                                 \
    "{\"source_guid\": \"" a "\", \"source_port\": " ap                                            \
    ", \"source_port_node_description\": \"" ad "\", \"destination_guid\": \"" b                   \
    "\", \"destination_port\": " bp ", \"destination_port_node_description\": \"" bd               \
    "\", \"width\": \"4x\"}"

static void links_alone(void)
{
    const struct answer answers[] = {
        {WEFT_UFM_LINKS,
         "[" LINK("0c42a10300000011", "\"1\"", "n1 mlx5_0", "0x0c42a10300000001", "\"3\"",
                  "leaf-1:3") ",\n" LINK("c42a10300000012", "1", "n2 mlx5_0", "0c42a10300000001",
                                         "4", "leaf-1:4") "]"},
        {WEFT_UFM_LINKS, "{\"data\": [" LINK("0c42a10300000001", "40", "leaf-1:40",
                                             "0c42a10300000002", "40", "leaf-2:40") "]}"}};
    weft_auto(weft_fabric_free) struct weft_fabric *f =
        check(answers, 2, "leaf-1#3-n1 mlx5_0#1; leaf-1#4-n2 mlx5_0#1; leaf-1#40-leaf-2#40");
    if (f == NULL) {
        return;
    }
    CHECK_INT(f->switch_count, 2);
    CHECK_INT(f->host_count, 2);
    CHECK_STR(f->hosts[0].name, "n1");
    CHECK_INT(f->warning_total, 0);
    CHECK(!f->partial && f->links[0].both);
}

/* The name of a link carries another GUID than its fields: the fields count. */
static void a_name_with_another_guid(void)
{
    const struct answer answers[] = {
        {WEFT_UFM_LINKS,
         "[{\"source_guid\": \"0c42a103001b7ab6\", \"source_port\": \"1\", "
         "\"destination_guid\": \"0c42a103009d7af6\", \"destination_port\": \"19\", "
         "\"source_port_node_description\": \"l-1 mlx5_10\", "
         "\"destination_port_node_description\": \"S-10:19\", "
         "\"name\": \"0c42a103001b7bf6_1:0c42a103009d7af6_19\"}]"}};
    weft_auto(weft_fabric_free) struct weft_fabric *f = check(answers, 1, "S-10#19-l-1 mlx5_10#1");
    if (f != NULL) {
        CHECK(f->devices[1].guid == UINT64_C(0x0c42a103001b7ab6));
        CHECK_INT(f->warning_total, 1);
        CHECK_CONTAINS(f->warnings[0], "answer:1: the name says 0c42a103001b7bf6_1");
    }
}

#define PORT(guid, system, number, state, of, desc, peer, peer_port, peer_desc)                    \
    "{\"guid\": \"" guid "\", \"systemID\": \"" system "\", \"number\": " number                   \
    ", \"physical_state\": \"" state "\", \"logical_state\": \"Active\", \"description\": \"" of   \
    " IB Port\", \"node_description\": \"" desc "\", \"peer_guid\": \"" peer                       \
    "\", \"peer_node_guid\": \"" peer "\", \"peer\": \"" peer "_" peer_port                        \
    "\", \"peer_node_description\": \"" peer_desc                                                  \
    "\", \"active_width\": \"4x\", \"active_speed\": \"NDR\", \"tier\": \"N/A\"}"

#define PORTS                                                                                      \
    "[" PORT("a1", "a1", "3", "Link Up", "Switch", "leaf-1:3", "b1", "1", "n1 mlx5_0") "," PORT(   \
        "b1", "b0", "1", "Link Up", "Computer", "n1 mlx5_0", "a1", "3",                            \
        "leaf-1:3") "," PORT("b2", "b0", "1", "Link Up", "Computer", "n1 mlx5_1", "a1", "4",       \
                             "leaf-1:4") "," PORT("a1", "a1", "5", "Disabled", "Switch",           \
                                                  "leaf-1:5", "b9", "1", "old mlx5_0") "]"

static void ports_alone(void)
{
    const struct answer answers[] = {{WEFT_UFM_PORTS, PORTS}};
    weft_auto(weft_fabric_free) struct weft_fabric *f =
        check(answers, 1, "leaf-1#3-n1 mlx5_0#1; leaf-1#4-n1 mlx5_1#1");
    if (f == NULL) {
        return;
    }
    CHECK(f->links[0].both && !f->links[1].both);
    CHECK_INT(f->links[0].gbps, 400);
    CHECK_INT(f->host_count, 1);
    CHECK_INT(f->hosts[0].system_guid, 0xb0);
    CHECK_INT(f->switch_count, 1);
}

/* A cable that UFM remembers, on a port that is not up now; a device that is not active. */
static void what_is_gone_does_not_count(void)
{
    const struct answer answers[] = {
        {WEFT_UFM_PORTS, PORTS},
        {WEFT_UFM_LINKS,
         "[" LINK("b9", "1", "old mlx5_0", "a1", "5", "leaf-1:5") "," LINK(
             "b8", "1", "gone mlx5_0", "a1", "6", "leaf-1:6") "," LINK("c1", "1", "n1 mlx5_7", "a1",
                                                                       "7", "leaf-1:7") "]"},
        {WEFT_UFM_SYSTEMS,
         "[{\"system_guid\": \"b8\", \"type\": \"host\", \"state\": \"inactive\"},"
         "{\"guid\": \"a1\", \"system_guid\": \"a1\", \"type\": \"switch\", \"state\": \"active\","
         " \"system_name\": \"leaf-1\", \"modules\": [], \"temperature\": \"N/A\"}]"},
        {WEFT_UFM_VPORTS, "[{\"virtual_port_guid\": \"c1\", \"port_guid\": \"b1\"}]"}};
    weft_auto(weft_fabric_free) struct weft_fabric *f =
        check(answers, 4, "leaf-1#3-n1 mlx5_0#1; leaf-1#4-n1 mlx5_1#1");
    if (f != NULL) {
        CHECK_INT(f->warning_total, 1);
        CHECK_STR(f->warnings[0], "ufm: 1 cables of devices that are not active are passed over");
    }
}

/* An adapter whose port has a GUID of its own: links name the node's, ports the port's. The
 * switch's port has one cable all the same, that of links, and the host is one. */
static void node_and_port_guids_of_one_adapter(void)
{
    const struct answer answers[] = {
        {WEFT_UFM_PORTS,
         "[" PORT("b1", "b0", "1", "Link Up", "Computer", "n1 mlx5_0", "a1", "3", "leaf-1:3") "]"},
        {WEFT_UFM_LINKS, "[" LINK("b0", "1", "n1 mlx5_0", "a1", "3", "leaf-1:3") "]"}};
    weft_auto(weft_fabric_free) struct weft_fabric *f = check(answers, 2, "leaf-1#3-n1 mlx5_0#1");
    if (f != NULL) {
        CHECK_INT(f->host_count, 1);
        CHECK_INT(f->warning_total, 1);
        CHECK_CONTAINS(f->warnings[0], "has 2 different peers");
        CHECK(f->links[0].both);
    }
}

static void aggregation_nodes_are_no_hosts(void)
{
    const struct answer answers[] = {
        {WEFT_UFM_LINKS,
         "[" LINK("b1", "1", "n1 mlx5_0", "a1", "1", "leaf-1:1") "," LINK(
             "d1", "1", "Mellanox Technologies Aggregation Node", "a1", "37", "leaf-1:37") "]"}};
    weft_auto(weft_fabric_free) struct weft_fabric *f = check(
        answers, 1, "leaf-1#1-n1 mlx5_0#1; leaf-1#37-Mellanox Technologies Aggregation Node#1");
    if (f != NULL) {
        CHECK_INT(f->host_count, 1);
        CHECK_INT(f->devices[2].role, WEFT_CA_AGGREGATION);
    }
}

/* Rows that cannot be read make the answer partial, not the others lost. */
static void rows_that_cannot_be_read(void)
{
    const struct answer answers[] = {
        {WEFT_UFM_LINKS,
         "[" LINK("b1", "1", "n1 mlx5_0", "a1", "1",
                  "leaf-1:1") ",\n"
                              "{\"source_guid\": \"x\", \"destination_guid\": \"a1\"},\n" LINK(
                                  "b2", "\"N/A\"", "n2 mlx5_0", "a1", "2",
                                  "leaf-1:2") ",\n" LINK("b3", "-4", "n3 mlx5_0", "a1", "2000",
                                                         "leaf-1:2") "]"}};
    weft_auto(weft_fabric_free) struct weft_fabric *f = check(answers, 1, "leaf-1#1-n1 mlx5_0#1");
    if (f != NULL) {
        CHECK(f->partial);
        CHECK_INT(f->warning_total, 3);
        CHECK_STR(f->warnings[0],
                  "answer:2: a row that cannot be read: no source_guid and destination_guid");
    }
}

static void answers_that_are_none(void)
{
    static const struct {
        struct answer answer;
        const char *part;
    } rows[] = {
        {{WEFT_UFM_LINKS, "[]"}, "ufm: no cable that is up in UFM's answers (0 devices, 0 cables"},
        {{WEFT_UFM_LINKS, "{\"error\": \"unauthorized\"}"}, "not an answer of UFM"},
        {{WEFT_UFM_LINKS, "[1]"}, "answer:1: [0]: a row must be an object"},
        {{WEFT_UFM_LINKS, "<html>"}, "answer:1:"},
        {{WEFT_UFM_LINKS, "[{\"system_guid\": \"a1\"}]"},
         "a row of systems, where rows of links are expected"},
        {{WEFT_UFM_SYSTEMS, "[{\"system_guid\": \"a1\", \"type\": \"switch\"}]"},
         "no cable that is up in UFM's answers (1 devices, 0 cables, 0 ports down)"},
        {{WEFT_UFM_LINKS, "[" LINK("b1", "1", "n1 mlx5_0", "b2", "1", "n2 mlx5_0") "]"},
         "no switch in UFM's answers"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        struct weft_fabric *fabric = NULL;
        struct weft_error err = {0};
        CHECK_INT(read_all(&rows[i].answer, 1, &fabric, &err), -EINVAL);
        CHECK(fabric == NULL);
        CHECK_CONTAINS(err.message, rows[i].part);
    }
}

static void resources_are_told_by_their_rows(void)
{
    static const struct {
        const char *text;
        enum weft_ufm_resource resource;
    } rows[] = {{"[{\"source_guid\": \"1\"}]", WEFT_UFM_LINKS},
                {PORTS, WEFT_UFM_PORTS},
                {"{\"data\": [{\"system_guid\": \"1\", \"modules\": []}]}", WEFT_UFM_SYSTEMS},
                {"[{\"virtual_port_guid\": \"1\", \"system_guid\": \"2\"}]", WEFT_UFM_VPORTS}};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        enum weft_ufm_resource found = WEFT_UFM_RESOURCE_COUNT;
        CHECK_INT(weft_ufm_guess(rows[i].text, strlen(rows[i].text), "f", &found, NULL), 0);
        CHECK_INT(found, rows[i].resource);
    }
    enum weft_ufm_resource found = WEFT_UFM_RESOURCE_COUNT;
    struct weft_error err = {0};
    CHECK_INT(weft_ufm_guess("[{\"DomainUUID\": \"x\"}]", 21, "f", &found, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "neither links, ports, systems nor vports of UFM");
}

static void pages_are_counted(void)
{
    weft_auto(weft_ufm_free) struct weft_ufm *ufm = weft_ufm_new("ufm");
    size_t rows = 9;
    CHECK_INT(weft_ufm_add(ufm, WEFT_UFM_PORTS, PORTS, strlen(PORTS), "p", &rows, NULL), 0);
    CHECK_INT(rows, 4);
    CHECK_INT(weft_ufm_add(ufm, WEFT_UFM_PORTS, "[]", 2, "p", &rows, NULL), 0);
    CHECK_INT(rows, 0);
}

static void no_memory(void)
{
    static const struct answer answers[] = {
        {WEFT_UFM_PORTS, PORTS},
        {WEFT_UFM_LINKS, "[" LINK("b9", "1", "old mlx5_0", "a1", "6", "leaf-1:6") ", {}]"},
        {WEFT_UFM_SYSTEMS,
         "[{\"system_guid\": \"a1\", \"type\": \"switch\", \"system_name\": \"x\"}]"},
        {WEFT_UFM_VPORTS, "[{\"virtual_port_guid\": \"c1\"}]"}};
    int rc = -ENOMEM;
    uint64_t n = 0;
    while (rc < 0 && n < 100000) {
        struct weft_fabric *fabric = NULL;
        struct weft_error err = {0};
        (void)weft_mem_fail_after(++n);
        rc = read_all(answers, 4, &fabric, &err);
        (void)weft_mem_fail_after(0);
        CHECK_INT(rc < 0 ? rc : -ENOMEM, -ENOMEM);
        CHECK_INT(fabric != NULL, rc == 0);
        weft_fabric_free(fabric);
    }
    CHECK_INT(rc, 0);
    CHECK(n > 50);
}

WEFT_SUITE(fabric_ufm, {"links_alone", links_alone},
           {"a_name_with_another_guid", a_name_with_another_guid}, {"ports_alone", ports_alone},
           {"what_is_gone_does_not_count", what_is_gone_does_not_count},
           {"node_and_port_guids_of_one_adapter", node_and_port_guids_of_one_adapter},
           {"aggregation_nodes_are_no_hosts", aggregation_nodes_are_no_hosts},
           {"rows_that_cannot_be_read", rows_that_cannot_be_read},
           {"answers_that_are_none", answers_that_are_none},
           {"resources_are_told_by_their_rows", resources_are_told_by_their_rows},
           {"pages_are_counted", pages_are_counted}, {"no_memory", no_memory})
