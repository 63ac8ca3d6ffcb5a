/* SPDX-License-Identifier: Apache-2.0 */
/* HyperNode values, sets, and their JSON and YAML forms. */
#include "pkg/hypernode/hypernode.h"

#include <errno.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/hypernode/manifest.h"
#include "pkg/json/json.h"
#include "pkg/yaml/yaml.h"
#include "tests/unit/hypernode_util.h"
#include "tests/unit/unit.h"

#define PREFIX "weft.dev/"

static int read_yaml(const char *text, struct weft_hypernode_set *set, struct weft_error *err)
{
    const struct weft_manifest_text source = {
        .text = text, .len = strlen(text), .name = "in.yaml", .prefix = PREFIX};
    return weft_hypernodes_read(&source, set, NULL, err);
}

/* What an API server answers: server fields, a status, labels of others. */
static void from_server(void)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    static const char text[] =
        "{\"apiVersion\":\"topology.volcano.sh/v1alpha1\",\"kind\":\"HyperNode\",\"metadata\":{"
        "\"name\":\"weft-leaf-a-00000001\",\"uid\":\"u-1\",\"resourceVersion\":\"42\","
        "\"generation\":3,\"labels\":{\"volcano.sh/network-topology-source\":\"weft\","
        "\"app.kubernetes.io/managed-by\":\"weft-controller\",\"app.kubernetes.io/instance\":\"i\","
        "\"team\":\"x\"},\"annotations\":{\"weft.dev/identity\":\"zone=a/rack=7\"}},\"spec\":{"
        "\"tier\":1,\"tierName\":\"leaf\",\"members\":["
        "{\"type\":\"Node\",\"selector\":{\"exactMatch\":{\"name\":\"gpu-2\"}}},"
        "{\"type\":\"Node\",\"selector\":{\"exactMatch\":{\"name\":\"gpu-1\"}}}]},"
        "\"status\":{\"nodeCount\":2}}";
    struct weft_error err = {0};
    CHECK_INT(read_yaml(text, &set, &err), 0);
    const struct weft_hypernode *hn = weft_hypernode_set_get(&set, "weft-leaf-a-00000001");
    if (hn == NULL) {
        CU_FAIL("not read");
        return;
    }
    CHECK_INT(hn->tier, 1);
    CHECK_STR(hn->tier_name, "leaf");
    CHECK_STR(hn->uid, "u-1");
    CHECK_STR(hn->resource_version, "42");
    CHECK_STR(hn->identity, "zone=a/rack=7");
    CHECK(!hn->terminating);
    CHECK_INT(hn->member_count, 2);
    CHECK_STR(hn->members[0].name, "gpu-1"); /* sorted */
    CHECK(weft_hypernode_is_ours(hn, "i"));
    CHECK(!weft_hypernode_is_ours(hn, "j"));
    CHECK(weft_hypernode_lists(hn, WEFT_MEMBER_NODE, "gpu-2"));
    CHECK(!weft_hypernode_lists(hn, WEFT_MEMBER_HYPERNODE, "gpu-2"));
    CHECK(!weft_hypernode_lists(hn, WEFT_MEMBER_NODE, "gpu-3"));
}

/* What others write: all selectors, no labels, no tierName. */
static void from_others(void)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    static const char text[] =
        "apiVersion: v1\n"
        "kind: List\n"
        "items:\n"
        "- apiVersion: topology.volcano.sh/v1alpha1\n"
        "  kind: HyperNode\n"
        "  metadata: {name: s0, deletionTimestamp: \"2026-11-30T12:00:00Z\"}\n"
        "  spec:\n"
        "    tier: 2\n"
        "    members:\n"
        "    - {type: Node, selector: {regexMatch: {pattern: \"^node-[0-9]\"}}}\n"
        "    - {type: Node, selector: {labelMatch: {matchLabels: {a: b}}}}\n"
        "    - {type: Node}\n"
        "    - {type: HyperNode, selector: {exactMatch: {name: s1}}}\n"
        "- {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}\n";
    struct weft_error err = {0};
    CHECK_INT(read_yaml(text, &set, &err), 0);
    weft_autofree char *dump = hn_dump(&set);
    CHECK_STR(dump, "s0 2 n:label: n:none: n:re:^node-[0-9] h:s1\n");
    CHECK(set.count == 1 && set.items[0].terminating);
    CHECK_STR(set.items[0].tier_name, "");
}

static void lists_without_kinds(void)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    static const char text[] = "kind: HyperNodeList\nitems:\n"
                               "- {metadata: {name: b}, spec: {tier: 1}}\n"
                               "- {metadata: {name: a}, spec: {tier: 1, members: []}}\n"
                               "---\n---\n"
                               "kind: Service\n";
    struct weft_error err = {0};
    const struct weft_manifest_text source = {
        .text = text, .len = strlen(text), .name = "in", .prefix = PREFIX};
    struct weft_manifest_counts counts = {0};
    CHECK_INT(weft_hypernodes_read(&source, &set, &counts, &err), 0);
    CHECK_INT(set.count, 2);
    CHECK_INT(counts.skipped, 1);
    CHECK_INT(counts.empty_lists, 0);
    CHECK_STR(set.items[0].name, "a");
}

static void expect_error(const char *text, int code, const char *part)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    struct weft_error err = {0};
    CHECK_INT(read_yaml(text, &set, &err), code);
    CHECK_CONTAINS(err.message, part);
}

#define HN "kind: HyperNode\nmetadata: {name: a}\n"

static void bad_objects(void)
{
    expect_error("kind: HyperNode\nspec: {tier: 1}\n", -EINVAL, "metadata.name is missing");
    expect_error(HN, -EINVAL, "spec.tier of HyperNode a is missing");
    expect_error(HN "spec: {tier: one}\n", -EINVAL, "spec.tier");
    expect_error(HN "spec: {tier: -1}\n", -EINVAL, "spec.tier");
    expect_error(HN "spec: {tier: 1, members: {}}\n", -EINVAL, "spec.members");
    expect_error(HN "spec:\n  tier: 1\n  members:\n  - {type: Pod}\n", -EINVAL, "in.yaml:6");
    expect_error(HN "spec:\n  tier: 1\n  members:\n  - {type: Pod}\n", -EINVAL,
                 "type is \"Pod\", not Node or HyperNode");
    expect_error(HN "spec:\n  tier: 1\n  members:\n  - gpu-1\n", -EINVAL,
                 "a member must be an object");
    expect_error(HN "spec:\n  tier: 1\n  members:\n  - type: Node\n    selector:\n"
                    "      exactMatch: {name: a}\n      regexMatch: {pattern: b}\n",
                 -EINVAL, "more than one kind of selector");
    expect_error("apiVersion: topology.volcano.sh/v2\n" HN "spec: {tier: 1}\n", -EINVAL,
                 "is topology.volcano.sh/v2 HyperNode, not topology.volcano.sh/v1alpha1");
    expect_error(HN "spec: {tier: 1}\n---\n" HN "spec: {tier: 2}\n", -EEXIST,
                 "HyperNode a is there twice");
    expect_error("- a\n", -EINVAL, "not a Kubernetes object");
    expect_error("kind: 7\n", -EINVAL, "kind");
}

static bool round_trips(const struct weft_hypernode *hn)
{
    weft_auto(weft_buf_done) struct weft_buf yaml = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    weft_buf_init(&yaml, 1U << 20);
    return weft_hypernode_write_yaml(hn, PREFIX, &yaml) == 0 &&
           read_yaml(weft_buf_text(&yaml), &set, NULL) == 0 && set.count == 1 &&
           weft_hypernode_same(&set.items[0], hn) && strcmp(set.items[0].name, hn->name) == 0;
}

/* Texts that plain YAML would take for something else. */
static void round_trip(void)
{
    static const char *const texts[] = {
        "no",   "0777", "1e3", "null", "~", "a: b", "\"q\"", "caf\xc3\xa9/\xe6\xa9\x9f\xe6\x9e\xb6",
        "x\ny", " lead"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(texts); i++) {
        weft_auto(weft_hypernode_done) struct weft_hypernode hn =
            hn_make("a", 1, "n:1e3 n:0777 n:null n:b re:^a{2} h:no label: none:");
        CHECK_INT(weft_hypernode_set_text(&hn.identity, texts[i]), 0);
        CHECK_INT(weft_hypernode_set_text(&hn.tier_name, texts[i]), 0);
        CHECK(round_trips(&hn));
    }
}

static void put_body(void)
{
    weft_auto(weft_hypernode_done) struct weft_hypernode hn = hn_make("a", 1, "n:g1");
    CHECK_INT(weft_hypernode_set_text(&hn.uid, "u"), 0);
    CHECK_INT(weft_hypernode_set_text(&hn.resource_version, "9"), 0);
    weft_auto(weft_buf_done) struct weft_buf buf = {0};
    weft_buf_init(&buf, 1U << 20);
    struct weft_json_writer w;
    weft_json_writer_init(&w, &buf, 0);
    weft_hypernode_to_json(&hn, PREFIX, true, &w);
    CHECK_STR(weft_buf_text(&buf),
              "{\"apiVersion\":\"topology.volcano.sh/v1alpha1\",\"kind\":\"HyperNode\","
              "\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"9\",\"labels\":{"
              "\"app.kubernetes.io/instance\":\"test\","
              "\"app.kubernetes.io/managed-by\":\"weft-controller\","
              "\"volcano.sh/network-topology-source\":\"weft\"}},"
              "\"spec\":{\"tier\":1,\"tierName\":\"tier1\",\"members\":[{\"type\":\"Node\","
              "\"selector\":{\"exactMatch\":{\"name\":\"g1\"}}}]}}");
}

static void what_counts_as_same(void)
{
    weft_auto(weft_hypernode_done) struct weft_hypernode a = hn_make("a", 1, "n:g2 n:g1 n:g1");
    weft_auto(weft_hypernode_done) struct weft_hypernode b = hn_make("a", 1, "n:g1 n:g2");
    CHECK_INT(a.member_count, 2); /* repeats go */
    CHECK(weft_hypernode_same(&a, &b));
    CHECK_INT(weft_hypernode_set_text(&b.resource_version, "7"), 0);
    CHECK(weft_hypernode_same(&a, &b));
    b.tier = 2;
    CHECK(!weft_hypernode_same(&a, &b));
    b.tier = 1;
    CHECK_INT(weft_hypernode_set_text(&b.identity, "x"), 0);
    CHECK(!weft_hypernode_same(&a, &b));
    weft_auto(weft_hypernode_done) struct weft_hypernode c = hn_make("a", 1, "n:g1 re:g2");
    CHECK(!weft_hypernode_same(&a, &c));
    CHECK(!weft_hypernode_lists(&c, WEFT_MEMBER_NODE, "g2"));
}

static void sets(void)
{
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    hn_put(&set, "m", 1, "n:1");
    hn_put(&set, "z", 1, "n:2");
    hn_put(&set, "a", 2, "h:m");
    hn_put(&set, "m", 1, "n:3"); /* replaces */
    weft_autofree char *dump = hn_dump(&set);
    CHECK_STR(dump, "a 2 h:m\nm 1 n:3\nz 1 n:2\n");
    weft_autofree struct weft_hypernode_ref *up = weft_hypernode_set_ascending(&set);
    CHECK_STR(up[0].hn->name, "m");
    CHECK_STR(up[2].hn->name, "a");
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set copy = {0};
    CHECK_INT(weft_hypernode_set_copy(&set, &copy), 0);
    CHECK(weft_hypernode_set_remove(&set, "m"));
    CHECK(!weft_hypernode_set_remove(&set, "m"));
    CHECK_INT(set.count, 2);
    CHECK(weft_hypernode_set_get(&copy, "m") != NULL);
    CHECK(weft_hypernode_set_get(&set, "m") == NULL);
    struct weft_hypernode extra = hn_make("b", 1, "n:9");
    CHECK_INT(weft_hypernode_set_append(&copy, &extra), 0);
    weft_hypernode_set_sort(&copy);
    size_t at = 0;
    CHECK(weft_hypernode_set_find(&copy, "b", &at) && at == 1);
}

static void too_many_members(void)
{
    weft_auto(weft_hypernode_done) struct weft_hypernode hn = hn_make("a", 1, "");
    int rc = 0;
    char name[16];
    for (int i = 0; i <= WEFT_HYPERNODE_MEMBERS_MAX && rc == 0; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        rc = weft_hypernode_add_member(&hn, WEFT_MEMBER_NODE, WEFT_SELECTOR_EXACT, name);
    }
    CHECK_INT(rc, -EFBIG);
    CHECK_INT(hn.member_count, WEFT_HYPERNODE_MEMBERS_MAX);
}

static void torture(void)
{
    static const char text[] =
        "kind: HyperNode\nmetadata: {name: a, labels: {app.kubernetes.io/instance: i}, "
        "annotations: {weft.dev/identity: x}}\nspec: {tier: 1, tierName: leaf, members: [{type: "
        "Node, selector: {exactMatch: {name: b}}}, {type: HyperNode, selector: {exactMatch: {name: "
        "c}}}]}\n";
    int rc = -ENOMEM;
    uint64_t n = 1;
    for (; rc < 0 && n < 2000; n++) {
        weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
        weft_auto(weft_hypernode_set_done) struct weft_hypernode_set copy = {0};
        weft_auto(weft_buf_done) struct weft_buf buf = {0};
        weft_buf_init(&buf, 1U << 20);
        (void)weft_mem_fail_after(n);
        rc = read_yaml(text, &set, NULL);
        rc = rc == 0 ? weft_hypernode_set_copy(&set, &copy) : rc;
        rc = rc == 0 ? weft_hypernodes_write_yaml(&copy, PREFIX, &buf) : rc;
        (void)weft_mem_fail_after(0);
    }
    CHECK_INT(rc, 0);
    CHECK(n > 40);
}

WEFT_SUITE(hypernode, {"from server", from_server}, {"from others", from_others},
           {"lists without kinds", lists_without_kinds}, {"bad objects", bad_objects},
           {"round trip", round_trip}, {"put body", put_body},
           {"what counts as same", what_counts_as_same}, {"sets", sets},
           {"too many members", too_many_members}, {"torture", torture})
