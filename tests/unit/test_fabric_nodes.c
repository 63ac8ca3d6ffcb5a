/* SPDX-License-Identifier: Apache-2.0 */
/* Node lists in every form, label selectors, and label levels. */
#include <errno.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/base/file.h"
#include "pkg/fabric/labels.h"
#include "pkg/fabric/node.h"
#include "pkg/fabric/selector.h"
#include "tests/unit/unit.h"

/* "a b c": the names in order, or the error. */
static void check_names(const char *text, const char *expected)
{
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    struct weft_error err = {0};
    char names[256] = "";
    if (weft_nodes_parse(text, strlen(text), "list", &nodes, &err) < 0) {
        CHECK_CONTAINS(err.message, expected);
        return;
    }
    for (size_t n = 0; n < nodes.count; n++) {
        const size_t len = strlen(names);
        (void)snprintf(names + len, sizeof(names) - len, "%s%s", n > 0 ? " " : "",
                       nodes.items[n].name);
    }
    CHECK_STR(names, expected);
}

static void names_by_line(void)
{
    check_names("a\nb.example\nc", "a b.example c");
    check_names("# the cluster\r\n\r\n  n1 \r\nnode/n2\nn3 # spare\n", "n1 n2 n3");
    check_names("NAME   STATUS   ROLES   AGE\nn1   Ready   <none>   3d\nn2  NotReady gpu 4d\n",
                "n1 n2");
    check_names("n1\nn1\n", "list:2: node n1 is there twice");
    check_names("n1 n2\n", "list:1: more than one word");
    check_names("Node_1\n", "list:1: \"Node_1\" is not a Kubernetes node name");
    check_names("# nothing\n\n", "list: no node in it");
    check_names("", "no node in it");
}

static void json_lists(void)
{
    check_names(
        "{\"kind\":\"List\",\"items\":[{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"}},"
        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"}},{\"metadata\":{\"name\":\"b\"}}]}",
        "a b");
    check_names("{\"kind\":\"NodeList\",\"items\":[{\"metadata\":{\"name\":\"a\"}}]}", "a");
    check_names("{\"kind\":\"Node\",\"metadata\":{\"name\":\"one\"}}", "one");
    check_names("[{\"kind\":\"Node\",\"metadata\":{\"name\":\"one\"}}]", "one");
    check_names("{\"kind\":\"List\",\"items\":[]}", "no node in it");
    check_names("{\"kind\":\"Node\",\"metadata\":{}}", "without metadata.name");
    check_names("{\"kind\":\"Node\",\"metadata\":{\"name\":7}}", "name");
    check_names("{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":1}}}",
                "a label's value must be a string");
    check_names("{\"kind\":\"Node\",", "list");
}

static void yaml_lists(void)
{
    static const char kubectl[] = "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n"
                                  "  metadata:\n    name: a\n    labels:\n      k: \"1\"\n"
                                  "- apiVersion: v1\n  kind: Node\n  metadata:\n    name: b\n"
                                  "kind: List\nmetadata:\n  resourceVersion: \"\"\n";
    check_names(kubectl, "a b");
    check_names("apiVersion: v1\nkind: NodeList\nitems:\n  - metadata:\n      name: a\n"
                "  - metadata:\n      name: b\n",
                "a b");
    check_names("---\nkind: Node\nmetadata:\n  name: a\n---\n# none\n---\nkind: Node\nmetadata:\n"
                "  name: b\n",
                "a b");
    check_names("kind: Node\nmetadata: {name: a}\n---\nkind: Pod\nmetadata: {name: p}\n", "a");
    check_names("kind: List\nitems:\n- kind: Node\n  metadata:\n    name: a\n"
                "- kind: Node\n  metadata:\n    name: a\n",
                "node a is there twice");
    check_names("kind: List\nitems:\n- kind: Node\n  metadata:\n    name: a\n"
                "- kind: Node\n  metadata: &x\n    name: b\n",
                "from line 6");
    check_names("kind: Pod\nmetadata: {name: p}\n", "no node in it");
}

static void labels_and_uid_are_read(void)
{
    static const char text[] =
        "kind: List\nitems:\n- kind: Node\n  metadata:\n    name: a\n    uid: u-1\n"
        "    labels: {rack: r1, empty: \"\"}\n";
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    CHECK_INT(weft_nodes_parse(text, strlen(text), "list", &nodes, NULL), 0);
    if (nodes.count == 1) {
        CHECK_STR(nodes.items[0].uid, "u-1");
        CHECK_STR(weft_node_label(&nodes.items[0], "rack"), "r1");
        CHECK_STR(weft_node_label(&nodes.items[0], "empty"), "");
        CHECK(weft_node_label(&nodes.items[0], "other") == NULL);
    }
}

static void public_node_lists(void)
{
    static const struct {
        const char *file;
        size_t nodes;
    } rows[] = {{"k8s-nodes/alibaba-openb-1213-gpu-nodes.yaml", 1213},
                {"k8s-nodes/pai-node-00.yaml", 1},
                {"k8s-nodes/slinky-4-annotated-nodes.yaml", 4}};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        const char *path = weft_shared(rows[i].file);
        weft_autofree char *text = NULL;
        size_t len = 0;
        weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
        struct weft_error err = {0};
        if (path == NULL || weft_file_read(path, 1 << 20, &text, &len, &err) < 0) {
            continue;
        }
        (void)!weft_nodes_parse(text, len, rows[i].file, &nodes, &err);
        CHECK_STR(err.message, "");
        CHECK_INT(nodes.count, rows[i].nodes);
    }
}

/* A list of more than 4 MiB is read item by item. */
static void large_json_lists(void)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    struct weft_error err = {0};
    weft_buf_init(&buf, 16 << 20);
    (void)weft_buf_puts(&buf, "{\"kind\":\"List\",\"items\":[\n");
    for (int i = 0; i < 3000; i++) {
        (void)weft_buf_printf(&buf,
                              "%s{\"kind\":\"Node\",\"metadata\":{\"name\":\"n%d\",\"labels\":"
                              "{\"rack\":\"r%d\"},\"annotations\":{\"fill\":\"%02000d\"}}}\n",
                              i > 0 ? "," : "", i, i / 8, i);
    }
    (void)weft_buf_puts(&buf, "]}\n");
    (void)!weft_nodes_parse(buf.data, buf.len, "list", &nodes, &err);
    CHECK_STR(err.message, "");
    CHECK_INT(nodes.count, 3000);
    CHECK_STR(nodes.count == 3000 ? weft_node_label(&nodes.items[2999], "rack") : NULL, "r374");
    struct weft_nodes none = {0};
    CHECK_INT(weft_nodes_parse(buf.data, buf.len - 3, "list", &none, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "list");
    memcpy(strstr(buf.data, "\"n7\""), "\"N7\"", 4);
    CHECK_INT(weft_nodes_parse(buf.data, buf.len, "list", &none, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "\"N7\" is not a Kubernetes node name");
}

static void no_memory_for_nodes(void)
{
    static const char text[] = "kind: List\nitems:\n- kind: Node\n  metadata:\n    name: a\n"
                               "    labels: {x: y}\n- kind: Node\n  metadata: {name: b}\n";
    int rc = -ENOMEM;
    for (uint64_t n = 1; rc < 0 && n < 10000; n++) {
        weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
        (void)weft_mem_fail_after(n);
        rc = weft_nodes_parse(text, strlen(text), "list", &nodes, NULL);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || (rc == -ENOMEM && nodes.count == 0));
    }
    CHECK_INT(rc, 0);
}

/* ---- selectors ---- */

static bool selects(const char *text, const char *key, const char *value)
{
    weft_auto(weft_node_selector_free) struct weft_node_selector *selector = NULL;
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    struct weft_node *node = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_nodes_add(&nodes, "n", NULL, &node), 0);
    if (key != NULL) {
        CHECK_INT(weft_node_set_label(node, key, value), 0);
    }
    CHECK_INT(weft_node_selector_parse(text, &selector, &err), 0);
    CHECK_STR(err.message, "");
    return weft_node_selector_matches(selector, node);
}

static void selectors_match_as_in_kubernetes(void)
{
    CHECK(selects("", NULL, NULL));
    CHECK(selects("a", "a", "x") && !selects("a", "b", "x"));
    CHECK(selects("!a", "b", "x") && !selects("!a", "a", ""));
    CHECK(selects("a=x", "a", "x") && selects("a==x", "a", "x") && !selects("a=x", "a", "y"));
    CHECK(!selects("a=x", NULL, NULL));
    CHECK(selects("a!=x", "a", "y") && selects("a!=x", NULL, NULL) && !selects("a!=x", "a", "x"));
    CHECK(selects("a in (x, y)", "a", "y") && !selects("a in (x,y)", "a", "z"));
    CHECK(selects("a notin (x,y)", "a", "z") && selects("a notin (x,y)", NULL, NULL));
    CHECK(!selects("a notin (x,y)", "a", "x"));
    /* "()" is the set of the empty value: what control-plane labels have */
    CHECK(!selects("node-role.kubernetes.io/control-plane notin ()",
                   "node-role.kubernetes.io/control-plane", ""));
    CHECK(selects("node-role.kubernetes.io/control-plane notin ()", "a", "b"));
    CHECK(selects("a, a in (x) , !b", "a", "x") && !selects("a,b", "a", "x"));
    CHECK(selects("a=", "a", ""));
    CHECK(weft_node_selector_matches(NULL, &(struct weft_node){0}));
}

static void bad_selectors_are_refused(void)
{
    static const char *const texts[] = {",",    "a,",  "a in x", "a in (x",    "a like b",
                                        "!a=b", "a b", "=x",     "a in (x) y", "a;b"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(texts); i++) {
        struct weft_node_selector *selector = NULL;
        struct weft_error err = {0};
        CHECK_INT(weft_node_selector_parse(texts[i], &selector, &err), -EINVAL);
        CHECK_CONTAINS(err.message, "at character");
    }
    weft_auto(weft_node_selector_free) struct weft_node_selector *selector = NULL;
    CHECK_INT(weft_node_selector_parse("a in (x),!b", &selector, NULL), 0);
    CHECK_STR(weft_node_selector_key(selector, 1), "b");
    CHECK(weft_node_selector_key(selector, 2) == NULL);
}

/* ---- levels ---- */

static void presets_are_closest_first(void)
{
    weft_auto(weft_label_levels_done) struct weft_label_levels levels = {0};
    struct weft_error err = {0};
    CHECK_INT(weft_label_preset("aws", &levels, &err), 0);
    CHECK_INT(levels.count, 3);
    CHECK_STR(levels.items[0].key, "topology.k8s.aws/network-node-layer-3");
    CHECK_STR(levels.items[0].tier, "leaf");
    CHECK_STR(levels.items[2].key, "topology.k8s.aws/network-node-layer-1");
    struct weft_label_levels none = {0};
    CHECK_INT(weft_label_preset("nowhere", &none, &err), -ENOENT);
    for (size_t i = 0; weft_label_preset_name(i) != NULL; i++) {
        weft_auto(weft_label_levels_done) struct weft_label_levels each = {0};
        CHECK_INT(weft_label_preset(weft_label_preset_name(i), &each, NULL), 0);
        CHECK_CONTAINS(err.message, weft_label_preset_name(i));
    }
}

static void tier_names_come_from_keys(void)
{
    weft_auto(weft_label_levels_done) struct weft_label_levels levels = {0};
    struct weft_error err = {0};
    CHECK_INT(weft_label_levels_add(&levels, "example.com/Rack_Row", NULL, &err), 0);
    CHECK_STR(levels.items[0].tier, "rack-row");
    CHECK_INT(weft_label_levels_add(&levels, "zone", "z", &err), 0);
    CHECK_INT(weft_label_levels_add(&levels, "zone", "other", &err), -EINVAL);
    CHECK_INT(weft_label_levels_add(&levels, "zone2", "z", &err), -EINVAL);
    CHECK_INT(weft_label_levels_add(&levels, "", NULL, &err), -EINVAL);
    CHECK_INT(weft_label_levels_add(&levels, "x", "Bad", &err), -EINVAL);
    CHECK_INT(weft_label_levels_add(&levels, "example.com/___", NULL, &err), -EINVAL);
    CHECK_INT(levels.count, 2);
}

WEFT_SUITE(fabric_nodes, {"names_by_line", names_by_line}, {"json_lists", json_lists},
           {"yaml_lists", yaml_lists}, {"labels_and_uid_are_read", labels_and_uid_are_read},
           {"public_node_lists", public_node_lists}, {"large_json_lists", large_json_lists},
           {"no_memory_for_nodes", no_memory_for_nodes},
           {"selectors_match_as_in_kubernetes", selectors_match_as_in_kubernetes},
           {"bad_selectors_are_refused", bad_selectors_are_refused},
           {"presets_are_closest_first", presets_are_closest_first},
           {"tier_names_come_from_keys", tier_names_come_from_keys})
