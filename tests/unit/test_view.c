/* SPDX-License-Identifier: Apache-2.0 */
/* The caches of Nodes and HyperNodes: late, repeated and reordered news. */
#include "controller/view.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>

#include "pkg/base/intern.h"
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

/* What a node takes beyond its topology labels: 10,000 of the shape that `make bench` uses, counted
 * by malloc itself; the labels' own memory is the array of two pointers each. */
static void test_node_size(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return; /* their allocators do not count */
#else
    enum { NODES = 10000, LABELS = 3 };
    struct weft_view_nodes nodes;
    const struct mallinfo2 before = mallinfo2();
    CHECK_INT(weft_view_nodes_init(&nodes, "bench.example/"), 0);
    for (unsigned i = 0; i < NODES; i++) {
        char name[32];
        char uid[40];
        char values[LABELS][16];
        (void)snprintf(name, sizeof(name), "node-%05u", i);
        (void)snprintf(uid, sizeof(uid), "%08x-0000-4000-8000-000000000000", i);
        (void)snprintf(values[0], sizeof(values[0]), "leaf-%04u", i / 32);
        (void)snprintf(values[1], sizeof(values[1]), "spine-%03u", i / 512);
        (void)snprintf(values[2], sizeof(values[2]), "core-0");
        const struct weft_kube_pair labels[LABELS] = {{"bench.example/leaf", values[0]},
                                                      {"bench.example/spine", values[1]},
                                                      {"bench.example/core", values[2]}};
        const struct weft_kube_meta meta = {.name = name,
                                            .ns = "",
                                            .uid = uid,
                                            .resource_version = "1",
                                            .labels = labels,
                                            .label_count = LABELS};
        enum weft_view_change change = WEFT_VIEW_SAME;
        CHECK_INT(weft_view_nodes_put(&nodes, &meta, &change), 0);
    }
    const struct mallinfo2 after = mallinfo2();
    const size_t used = after.uordblks + after.hblkhd - before.uordblks - before.hblkhd;
    const size_t each = used / NODES - LABELS * sizeof(struct weft_label);
    (void)printf("node cache: %zu bytes a node beyond its labels\n", each);
    CHECK(each > 0 && each <= 400);
    /* 313 leaves, 20 spines, a core, three keys */
    CHECK_INT(weft_intern_count(nodes.texts), 313 + 20 + 1 + 3);
    weft_view_nodes_done(&nodes);
#endif
}

/* The texts of a node that changes or goes do not stay. */
static void test_node_texts(void)
{
    struct weft_view_nodes nodes;
    CHECK_INT(weft_view_nodes_init(&nodes, "weft.dev/"), 0);
    (void)put_node(&nodes, "n0", "u0", "10", "weft.dev/x", "a");
    (void)put_node(&nodes, "n1", "u1", "10", "weft.dev/x", "a");
    CHECK_INT(weft_intern_count(nodes.texts), 2);
    (void)put_node(&nodes, "n0", "u0", "11", "weft.dev/x", "b");
    CHECK_INT(weft_intern_count(nodes.texts), 3);
    (void)put_node(&nodes, "n1", "u1", "12", "weft.dev/y", "b");
    CHECK_INT(weft_intern_count(nodes.texts), 3); /* x, y, b */
    CHECK_STR(weft_node_label(&weft_view_nodes_get(&nodes, "n0")->node, "weft.dev/x"), "b");
    weft_view_nodes_gone(&nodes, "n0", "u0");
    weft_view_nodes_forget(&nodes);
    CHECK_INT(weft_intern_count(nodes.texts), 2);
    weft_view_nodes_done(&nodes);
}

/* A heart-beat takes no memory at all; other news that cannot be taken leaves what was. */
static void test_node_memory(void)
{
    struct weft_view_nodes nodes;
    CHECK_INT(weft_view_nodes_init(&nodes, "weft.dev/"), 0);
    (void)put_node(&nodes, "n0", "u0", "10", "weft.dev/x", "a");
    const struct weft_kube_pair same = {"weft.dev/x", "a"};
    const struct weft_kube_pair labels[] = {{"weft.dev/x", "b"}, {"weft.dev/y", "c"}};
    struct weft_kube_meta meta = {.name = "n0",
                                  .ns = "",
                                  .uid = "u0",
                                  .resource_version = "11",
                                  .labels = &same,
                                  .label_count = 1};
    enum weft_view_change change = WEFT_VIEW_OTHER;
    (void)weft_mem_fail_after(1);
    CHECK_INT(weft_view_nodes_put(&nodes, &meta, &change), 0);
    CHECK_INT(weft_mem_fail_after(0), 0);
    CHECK_INT(change, WEFT_VIEW_SAME);
    meta.labels = labels;
    meta.label_count = 2;
    meta.resource_version = "12";
    int rc = -ENOMEM;
    uint64_t nth = 0;
    while (rc == -ENOMEM && nth < 50) {
        CHECK_STR(weft_node_label(&weft_view_nodes_get(&nodes, "n0")->node, "weft.dev/x"), "a");
        CHECK_INT(weft_intern_count(nodes.texts), 2);
        (void)weft_mem_fail_after(++nth);
        rc = weft_view_nodes_put(&nodes, &meta, &change);
        (void)weft_mem_fail_after(0);
    }
    CHECK_INT(rc, 0);
    CHECK_INT(nth, 5); /* a piece and three new texts were refused before */
    CHECK_STR(weft_node_label(&weft_view_nodes_get(&nodes, "n0")->node, "weft.dev/y"), "c");
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
           {"node list", test_node_list}, {"node size", test_node_size},
           {"node texts", test_node_texts}, {"node memory", test_node_memory},
           {"hypernode news", test_hypernode_news}, {"hypernode list", test_hypernode_list},
           {"opaque versions", test_opaque_versions})
