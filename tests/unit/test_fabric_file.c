/* SPDX-License-Identifier: Apache-2.0 */
/* weft's own fabric file, and GUID maps. */
#include <errno.h>

#include "pkg/fabric/fabric-file.h"
#include "pkg/fabric/labels.h"
#include "tests/unit/declared_text.h"
#include "tests/unit/unit.h"

#define HEAD "apiVersion: weft.dev/v1alpha1\nkind: FabricFile\n"

static struct weft_fabric_file *parse(const char *text, struct weft_error *err)
{
    struct weft_fabric_file *file = NULL;
    const int rc = weft_parse_fabric_file(text, strlen(text), "f.yaml", &file, err);
    CHECK_INT(rc < 0, file == NULL);
    return file;
}

static void check_groups(const char *text, const char *expected)
{
    struct weft_error err = {0};
    weft_auto(weft_fabric_file_free) struct weft_fabric_file *file = parse(text, &err);
    CHECK_STR(err.message, "");
    weft_autofree char *groups =
        file != NULL && file->groups != NULL ? weft_declared_text(file->groups) : NULL;
    CHECK_STR(groups != NULL ? groups : "nothing", expected);
}

static void groups_nested_and_flat(void)
{
    check_groups(HEAD "levels: [rack, row]\n"
                      "groups:\n"
                      "- name: a\n  level: row\n  nodes: n9\n  groups:\n"
                      "  - {name: r1, level: rack, nodes: \"n[1-2]\"}\n"
                      "  - {name: r2, level: rack, nodes: [n3, \"n[4-5]\"]}\n"
                      "- name: b\n  level: row\n  groups:\n"
                      "  - {name: r1, level: rack, nodes: [7]}\n",
                 "rack row: 7=r1/b n1=r1/a n2=r1/a n3=r2/a n4=r2/a n5=r2/a n9=-/a");
    check_groups(HEAD "levels: [rack, row]\n"
                      "groups:\n"
                      "- {name: r1, level: rack, nodes: \"n[1-2]\"}\n"
                      "- {name: a, level: row, nodes: \"n[1-3]\"}\n",
                 "rack row: n1=r1/a n2=r1/a n3=-/a");
    /* JSON is YAML */
    check_groups("{\"apiVersion\": \"weft.dev/v1alpha1\", \"kind\": \"FabricFile\", \"levels\": "
                 "[\"rack\"], \"groups\": [{\"name\": 1, \"level\": \"rack\", \"nodes\": \"n1\"}]}",
                 "rack: n1=1");
}

static void maps_and_epoch(void)
{
    struct weft_error err = {0};
    weft_auto(weft_fabric_file_free) struct weft_fabric_file *file =
        parse(HEAD "epoch: 17\n"
                   "guids:\n"
                   "- {node: n2, guids: [\"0x0c42a103001b7ab6\"]}\n"
                   "- {node: n1, guids: [\"b\", \"0x00000000000000A\"]}\n"
                   "hosts:\n"
                   "- {host: z.example.com, node: n1}\n"
                   "- {host: SAT1, node: n2}\n",
              &err);
    CHECK_STR(err.message, "");
    if (file == NULL) {
        return;
    }
    CHECK(file->groups == NULL);
    CHECK_STR(file->epoch, "17");
    CHECK_INT(file->guid_count, 3);
    CHECK(file->guids[0].guid == 0xa && file->guids[1].guid == 0xb);
    CHECK(file->guids[2].guid == UINT64_C(0x0c42a103001b7ab6));
    CHECK_STR(file->guids[2].node, "n2");
    CHECK_INT(file->host_count, 2);
    CHECK_STR(file->hosts[0].host, "SAT1");
    CHECK_STR(file->hosts[0].node, "n2");
    CHECK_STR(file->hosts[1].host, "z.example.com");
}

static void what_is_refused(void)
{
    static const struct {
        const char *text, *part;
    } rows[] = {
        {"", "expected weft.dev/v1alpha1, FabricFile"},
        {"apiVersion: weft.dev/v2\nkind: FabricFile\n", "apiVersion \"weft.dev/v2\""},
        {HEAD, "neither groups nor guids nor hosts: an empty file"},
        {HEAD "group: []\n", "f.yaml:3: group: unknown field, allowed are: apiVersion"},
        {HEAD "groups:\n- {name: a, level: rack, nodes: n1}\n", "groups need levels"},
        {HEAD "levels: [rack, rack]\ngroups: [{}]\n", "f.yaml:3: levels[1]: "},
        {HEAD "levels: [Rack]\ngroups: [{}]\n", "levels[0]: tier name \"Rack\""},
        {HEAD "levels: [rack]\ngroups:\n- {level: rack, nodes: n1}\n",
         "f.yaml:5: groups[0]: a group needs a name"},
        {HEAD "levels: [rack]\ngroups:\n- {name: a, nodes: n1}\n", "a group needs a level"},
        {HEAD "levels: [rack]\ngroups:\n- {name: a, level: row, nodes: n1}\n",
         "f.yaml:5: groups[0].level: no level \"row\" in levels"},
        {HEAD "levels: [rack]\ngroups:\n- {name: a, level: rack}\n",
         "group a has neither nodes nor groups"},
        {HEAD "levels: [rack]\ngroups:\n- {name: a, level: rack, nodes: []}\n",
         "f.yaml:5: groups[0].nodes: an empty list of nodes"},
        {HEAD "levels: [rack]\ngroups:\n- {name: a, level: rack, nodes: \"\"}\n",
         "an empty list of nodes"},
        {HEAD "levels: [rack]\ngroups:\n- {name: a, level: rack, nodes: \"n[1-\"}\n",
         "f.yaml:5: groups[0].nodes: hostlist n[1-: \"[\" without \"]\""},
        {HEAD "levels: [rack]\ngroups:\n- {name: a, level: rack, nodes: n1}\n"
              "- {name: a, level: rack, nodes: n2}\n",
         "f.yaml:6: groups[1]: group a is there twice at this level"},
        {HEAD "levels: [rack]\ngroups:\n- {name: a, level: rack, nodes: n1}\n"
              "- {name: b, level: rack, nodes: n1}\n",
         "f.yaml:6: groups[1].nodes: node n1 is in a already (line 5)"},
        {HEAD "levels: [rack]\ngroups:\n- {name: a, level: rack, nodes: [n1, n1]}\n",
         "groups[0].nodes[1]: node n1 is in a already"},
        {HEAD "levels: [rack, row]\ngroups:\n- name: a\n  level: rack\n  groups:\n"
              "  - {name: b, level: row, nodes: n1}\n",
         "level row is not closer than rack, the level of the group around it"},
        {HEAD "guids:\n- {node: n1, guids: [\"0xfoo\"]}\n",
         "f.yaml:4: guids[0].guids[0]: is not a GUID"},
        {HEAD "guids:\n- {node: n1, guids: [12]}\n", "in quotes"},
        {HEAD "roles: {compute: [\"0x1\", x]}\n", "roles.compute[1]: is not a GUID"},
        {HEAD "roles: {storage: [\"0x1\"]}\n", "storage"},
        {HEAD "roles: {other: []}\n", "an empty file"},
        {HEAD "guids:\n- {guids: [\"0x1\"]}\n", "guids[0]: lacks node"},
        {HEAD "guids:\n- {node: n1, guids: [\"0x1\"]}\n- {node: n2, guids: [\"0x01\"]}\n",
         "f.yaml:5: GUID 0000000000000001 is of node n1 and of node n2"},
        {HEAD "hosts:\n- {host: a, node: n1}\n- {host: a, node: n2}\n",
         "f.yaml:5: hosts[1]: host a is there twice"},
        {HEAD "hosts: {a: n1}\n", "f.yaml:3: hosts: is an object, a list is expected"},
        {HEAD "epoch: [1]\n", "f.yaml:3: epoch: must be a string"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        struct weft_error err = {0};
        CHECK(parse(rows[i].text, &err) == NULL);
        CHECK_INT(err.code, -EINVAL);
        CHECK_CONTAINS(err.message, rows[i].part);
    }
}

static void guid_maps(void)
{
    static const char text[] = "# names\n0x0c42a103001b7ab6 \"n1 mlx5_0\"\n\n"
                               "n2: 0x155dfffd33ff33\r\n0x1 n3\n";
    struct weft_error err = {0};
    struct weft_fabric_file *file = NULL;
    CHECK_INT(weft_parse_guid_map(text, strlen(text), "map", &file, &err), 0);
    CHECK_STR(err.message, "");
    if (file != NULL) {
        CHECK_INT(file->guid_count, 3);
        CHECK_STR(file->guids[0].node, "n3");
        CHECK_STR(file->guids[1].node, "n2");
        CHECK(file->guids[1].guid == UINT64_C(0x155dfffd33ff33));
        CHECK_STR(file->guids[2].node, "n1");
        CHECK_STR(file->epoch, "");
    }
    weft_fabric_file_free(file);
    file = NULL;
    static const struct {
        const char *text, *part;
    } bad[] = {{"n1 0x1\n", "map:1: expected 0x<guid> \"name\" or name: 0x<guid>, found n1 0x1"},
               {"# x\n", "map: no GUID in it"},
               {"n1: 0x1\nn2: 0x1\n", "map:2: GUID 0000000000000001 is of node n1 and of node n2"},
               {"n1: 5e797fc6-0f46-421a-8724-0e102c0f723c\n", "map:1: expected"},
               {"0x12\n", "map:1: expected"}};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(bad); i++) {
        CHECK_INT(weft_parse_guid_map(bad[i].text, strlen(bad[i].text), "map", &file, &err),
                  -EINVAL);
        CHECK_CONTAINS(err.message, bad[i].part);
    }
}

static void no_memory(void)
{
    static const char text[] =
        HEAD "levels: [rack, row]\ngroups:\n- name: a\n  level: row\n  groups:\n"
             "  - {name: r1, level: rack, nodes: \"n[1-2]\"}\n"
             "guids: [{node: n1, guids: [\"0x2\", \"0x1\"]}]\nhosts: [{host: h, node: n1}]\n";
    int rc = -ENOMEM;
    uint64_t n = 0;
    while (rc < 0 && n < 100000) {
        struct weft_fabric_file *file = NULL;
        struct weft_error err = {0};
        (void)weft_mem_fail_after(++n);
        rc = weft_parse_fabric_file(text, strlen(text), "f", &file, &err);
        (void)weft_mem_fail_after(0);
        CHECK_INT(rc < 0 ? rc : -ENOMEM, -ENOMEM);
        CHECK_INT(file != NULL, rc == 0);
        weft_fabric_file_free(file);
    }
    CHECK_INT(rc, 0);
    CHECK(n > 50);
}

WEFT_SUITE(fabric_file, {"groups_nested_and_flat", groups_nested_and_flat},
           {"maps_and_epoch", maps_and_epoch}, {"what_is_refused", what_is_refused},
           {"guid_maps", guid_maps}, {"no_memory", no_memory})
