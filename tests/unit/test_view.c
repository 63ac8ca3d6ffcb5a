/* SPDX-License-Identifier: Apache-2.0 */
/* The caches of Nodes and HyperNodes: late, repeated and reordered news. */
#include "controller/view.h"

#include <errno.h>

#include "pkg/kube/meta.h"
#include "tests/unit/hypernodes.h"
#include "tests/unit/unit.h"

static enum weft_view_change put_node(struct weft_view_nodes *nodes, const char *name,
                                      const char *uid, const char *version, const char *key,
                                      const char *value)
{
    const struct weft_kube_pair labels[] = {{"unrelated/key", "v"}, {key, value}};
    const struct weft_kube_meta meta = {.name = name,
                                        .ns = "",
                                        .uid = uid,
                                        .resource_version = version,
                                        .labels = labels,
                                        .label_count = 2};
    enum weft_view_change change = WEFT_VIEW_CHANGE_COUNT;
    CHECK_INT(weft_view_nodes_put(nodes, &meta, &change), 0);
    return change;
}

static void test_node_news(void)
{
    struct weft_view_nodes nodes;
    CHECK_INT(weft_view_nodes_init(&nodes, "weft.dev/"), 0);
    CHECK_INT(put_node(&nodes, "n0", "u0", "10", "weft.dev/tier-1", "a"), WEFT_VIEW_OTHER);
    /* a heart-beat */
    CHECK_INT(put_node(&nodes, "n0", "u0", "11", "weft.dev/tier-1", "a"), WEFT_VIEW_SAME);
    /* a label that does not matter, then one that does */
    CHECK_INT(put_node(&nodes, "n0", "u0", "12", "weft.dev/tier-1", "b"), WEFT_VIEW_OTHER);
    /* an event from before the answer to a write */
    CHECK_INT(put_node(&nodes, "n0", "u0", "11", "weft.dev/tier-1", "a"), WEFT_VIEW_SAME);
    const struct weft_view_node *entry = weft_view_nodes_get(&nodes, "n0");
    CHECK(entry != NULL);
    CHECK_STR(weft_node_label(&entry->node, "weft.dev/tier-1"), "b");
    CHECK_INT(entry->node.label_count, 1);
    CHECK(!entry->fresh);
    weft_view_nodes_done(&nodes);
}

static void test_node_reborn(void)
{
    struct weft_view_nodes nodes;
    CHECK_INT(weft_view_nodes_init(&nodes, "weft.dev/"), 0);
    (void)put_node(&nodes, "n0", "u0", "10", "weft.dev/x", "a");
    weft_view_nodes_gone(&nodes, "n0", "another-uid");
    CHECK(weft_view_nodes_get(&nodes, "n0") != NULL);
    weft_view_nodes_gone(&nodes, "n0", "u0");
    CHECK(weft_view_nodes_get(&nodes, "n0") == NULL);
    /* a late event does not bring it back; a new Node of that name is known as one */
    CHECK_INT(put_node(&nodes, "n0", "u0", "11", "weft.dev/x", "b"), WEFT_VIEW_SAME);
    CHECK(weft_view_nodes_get(&nodes, "n0") == NULL);
    CHECK_INT(put_node(&nodes, "n0", "u1", "20", "weft.dev/x", "a"), WEFT_VIEW_OTHER);
    CHECK(weft_view_nodes_get(&nodes, "n0")->fresh);
    /* also when the deletion was missed */
    (void)put_node(&nodes, "n1", "u0", "21", "weft.dev/x", "a");
    CHECK(!weft_view_nodes_get(&nodes, "n1")->fresh);
    CHECK_INT(put_node(&nodes, "n1", "u2", "22", "weft.dev/x", "a"), WEFT_VIEW_OTHER);
    CHECK(weft_view_nodes_get(&nodes, "n1")->fresh);
    weft_view_nodes_done(&nodes);
}

/* While another controller leads, Nodes come and go; what was seen of that is no news to a new
 * leader. The deleted ones are counted, so that a follower can drop them. */
static void test_node_follower(void)
{
    struct weft_view_nodes nodes;
    CHECK_INT(weft_view_nodes_init(&nodes, "weft.dev/"), 0);
    (void)put_node(&nodes, "n0", "u0", "10", "weft.dev/x", "a");
    (void)put_node(&nodes, "n1", "u1", "11", "weft.dev/x", "a");
    (void)put_node(&nodes, "n2", "u2", "12", "weft.dev/x", "a");
    CHECK_INT(nodes.gone_count, 0);
    weft_view_nodes_gone(&nodes, "n0", "u0");
    weft_view_nodes_gone(&nodes, "n0", "u0");
    weft_view_nodes_gone(&nodes, "n1", "u1");
    CHECK_INT(nodes.gone_count, 2);
    (void)put_node(&nodes, "n1", "u9", "13", "weft.dev/x", "a");
    CHECK_INT(nodes.gone_count, 1);
    CHECK(weft_view_nodes_get(&nodes, "n1")->fresh);
    weft_view_nodes_get(&nodes, "n2")->source = 1;
    weft_view_nodes_start_over(&nodes);
    CHECK_INT(nodes.count, 2);
    CHECK_INT(nodes.gone_count, 0);
    CHECK(!weft_view_nodes_get(&nodes, "n1")->fresh);
    CHECK(weft_view_nodes_get(&nodes, "n2")->source == SIZE_MAX);
    weft_view_nodes_done(&nodes);
}

static void test_node_list(void)
{
    struct weft_view_nodes nodes;
    CHECK_INT(weft_view_nodes_init(&nodes, "weft.dev/"), 0);
    weft_view_nodes_list(&nodes);
    (void)put_node(&nodes, "n0", "u0", "10", "weft.dev/x", "a");
    (void)put_node(&nodes, "n1", "u1", "10", "weft.dev/x", "a");
    (void)put_node(&nodes, "n2", "u2", "10", "weft.dev/x", "a");
    CHECK(!weft_view_nodes_listed(&nodes));
    weft_view_nodes_list(&nodes);
    (void)put_node(&nodes, "n0", "u0", "10", "weft.dev/x", "a");
    (void)put_node(&nodes, "n2", "u2", "10", "weft.dev/x", "a");
    CHECK(weft_view_nodes_listed(&nodes));
    CHECK(weft_view_nodes_get(&nodes, "n1") == NULL);
    weft_autofree struct weft_node *array = NULL;
    size_t count = 0;
    CHECK_INT(weft_view_nodes_array(&nodes, &array, &count), 0);
    CHECK_INT(count, 2);
    weft_view_nodes_forget(&nodes);
    CHECK_INT(nodes.count, 2);
    CHECK_STR(weft_view_nodes_get(&nodes, "n0")->node.name, "n0");
    CHECK_STR(weft_view_nodes_get(&nodes, "n2")->node.name, "n2");
    CHECK(weft_view_nodes_get(&nodes, "n1") == NULL);
    /* forgotten: whoever comes now is no successor of anybody */
    (void)put_node(&nodes, "n1", "u9", "30", "weft.dev/x", "a");
    CHECK(!weft_view_nodes_get(&nodes, "n1")->fresh);
    weft_view_nodes_done(&nodes);
}

static enum weft_view_change put(struct weft_view_hypernodes *view, const char *text,
                                 const char *uid, const char *version)
{
    struct weft_hypernode_set one = {0};
    hypernodes_read(&one, text);
    weft_free(one.items[0].uid);
    weft_free(one.items[0].resource_version);
    one.items[0].uid = weft_strdup(uid);
    one.items[0].resource_version = weft_strdup(version);
    struct weft_hypernode hn = {0};
    CHECK_INT(weft_hypernode_copy(&one.items[0], &hn), 0);
    weft_hypernode_set_done(&one);
    enum weft_view_change change = WEFT_VIEW_CHANGE_COUNT;
    CHECK_INT(weft_view_hypernodes_put(view, &hn, &change), 0);
    return change;
}

static void test_hypernode_news(void)
{
    struct weft_view_hypernodes view = {0};
    CHECK_INT(put(&view, "a 1 n0 n1", "u0", "9"), WEFT_VIEW_OTHER);
    CHECK_INT(put(&view, "a 1 n0 n1", "u0", "10"), WEFT_VIEW_SAME); /* its status */
    CHECK_STR(view.set.items[0].resource_version, "10");
    CHECK_INT(put(&view, "a 1 n0", "u0", "12"), WEFT_VIEW_OTHER);
    CHECK_INT(put(&view, "a 1 n0 n1", "u0", "11"), WEFT_VIEW_SAME); /* late */
    CHECK_SET(&view.set, "a 1 n0\n");
    CHECK_INT(put(&view, "a 1 n0", "u1", "13"), WEFT_VIEW_OTHER); /* another object */
    CHECK(!weft_view_hypernodes_gone(&view, "a", "u0"));
    CHECK(weft_view_hypernodes_gone(&view, "a", "u1"));
    CHECK_INT(put(&view, "a 1 n0", "u1", "13"), WEFT_VIEW_SAME); /* late: it does not come back */
    CHECK_SET(&view.set, "");
    CHECK_INT(put(&view, "a 1 n0", "u2", "14"), WEFT_VIEW_OTHER);
    CHECK(weft_view_hypernodes_gone(&view, "a", ""));
    weft_view_hypernodes_done(&view);
}

/* While a list runs, a write of ours is answered: the object is newer than the list. */
static void test_hypernode_list(void)
{
    struct weft_view_hypernodes view = {0};
    (void)put(&view, "a 1 n0", "u0", "10");
    (void)put(&view, "b 1 n1", "u1", "11");
    CHECK_INT(weft_view_hypernodes_list(&view), 0);
    (void)put(&view, "a 1 n0", "u0", "10");
    (void)put(&view, "c 1 n2", "u2", "15");                      /* created by us now */
    CHECK(weft_view_hypernodes_gone(&view, "a", "u0"));          /* deleted by us now */
    CHECK_INT(put(&view, "a 1 n0", "u0", "10"), WEFT_VIEW_SAME); /* a page from before */
    CHECK(weft_view_hypernodes_listed(&view, NULL, NULL));       /* b is gone */
    CHECK_SET(&view.set, "c 1 n2\n");
    CHECK(!weft_view_hypernodes_listed(&view, NULL, NULL));
    weft_view_hypernodes_clear(&view);
    CHECK_INT(view.set.count, 0);
    weft_view_hypernodes_done(&view);
}

/* Versions that are no numbers are taken in the order in which they come. */
static void test_opaque_versions(void)
{
    struct weft_view_hypernodes view = {0};
    (void)put(&view, "a 1 n0", "u0", "zz");
    CHECK_INT(put(&view, "a 1 n1", "u0", "aa"), WEFT_VIEW_OTHER);
    CHECK_SET(&view.set, "a 1 n1\n");
    weft_view_hypernodes_done(&view);
}

WEFT_SUITE(view, {"node news", test_node_news}, {"node reborn", test_node_reborn},
           {"a follower keeps no memory of places", test_node_follower},
           {"node list", test_node_list}, {"hypernode news", test_hypernode_news},
           {"hypernode list", test_hypernode_list}, {"opaque versions", test_opaque_versions})
