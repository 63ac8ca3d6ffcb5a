/* SPDX-License-Identifier: Apache-2.0 */
/* /debug/tree over a cluster that is decided on as in a pass: what stands in it, how long one part
 * takes and how large it is, and what happens when the world changes between two parts. */
#include "controller/debug-tree.h"

#include <stdio.h>

#include "controller/controller-internal.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/http/http.h"
#include "pkg/json/json.h"
#include "pkg/kube/meta.h"
#include "pkg/loop/loop.h"
#include "pkg/source/config.h"
#include "tests/unit/unit.h"

#define CONFIG                                                                                     \
    "apiVersion: weft.dev/v1alpha1\nkind: ControllerConfig\ntiers: [leaf, spine]\n"                \
    "sources:\n- labels: {keys: [a.test/leaf, a.test/spine]}\n"

enum { LEAF = 32, SPINE = 1024, PART_BYTES = 64 << 10 };

static void put_node(struct weft_controller *c, size_t i, bool placed)
{
    char name[32];
    char leaf[32];
    char spine[32];
    enum weft_view_change change = WEFT_VIEW_SAME;
    (void)snprintf(name, sizeof(name), "node-%06zu", i);
    (void)snprintf(leaf, sizeof(leaf), "l%zu", i / LEAF);
    (void)snprintf(spine, sizeof(spine), "s%zu", i / SPINE);
    const struct weft_kube_pair labels[] = {{"a.test/leaf", leaf}, {"a.test/spine", spine}};
    const struct weft_kube_meta meta = {.name = name,
                                        .ns = "",
                                        .uid = name,
                                        .resource_version = "1",
                                        .labels = labels,
                                        .label_count = placed ? 2 : 0};
    CHECK_INT(weft_view_nodes_put(&c->nodes, &meta, &change), 0);
}

static void decide(struct weft_controller *c)
{
    struct weft_node *nodes = NULL;
    size_t count = 0;
    const struct weft_source_result *results[WEFT_CONFIG_SOURCES_MAX] = {0};
    CHECK_INT(weft_view_nodes_array(&c->nodes, &nodes, &count), 0);
    struct weft_decide_memory *memory = weft_calloc(count + 1, sizeof(*memory));
    for (size_t i = 0; i < count; i++) {
        memory[i].source = WEFT_KEEP_NO_SOURCE;
    }
    const struct weft_decide_input input = {.config = c->config,
                                            .ours = &c->ours,
                                            .results = results,
                                            .nodes = nodes,
                                            .memory = memory,
                                            .node_count = count,
                                            .live = &c->hypernodes.set,
                                            .keep = c->keep};
    CHECK_INT(weft_decide(&input, &c->decision, NULL), 0);
    for (size_t i = 0; i < count; i++) {
        weft_view_nodes_get(&c->nodes, nodes[i].name)->source = memory[i].source;
    }
    weft_hypernode_set_done(&c->hypernodes.set);
    CHECK_INT(weft_hypernode_set_copy(&c->decision.keep.set, &c->hypernodes.set), 0);
    weft_free(memory);
    weft_free(nodes);
}

/* Of so many nodes the last three have no labels. */
static struct weft_controller *up(size_t count)
{
    struct weft_controller *c = weft_calloc(1, sizeof(*c));
    bool changed = false;
    c->magic = WEFT_CONTROLLER_MAGIC;
    c->ours = (struct weft_names_of_ours){.prefix = "weft.dev/", .instance = "weft"};
    const struct weft_sources_options options = {.once = true};
    struct weft_sources_options with_loop = options;
    CHECK_INT(weft_loop_new(&c->loop, NULL), 0);
    with_loop.loop = c->loop;
    CHECK_INT(weft_config_parse(CONFIG, strlen(CONFIG), "config", &c->config, NULL), 0);
    CHECK_INT(weft_sources_new(&with_loop, &c->sources, NULL), 0);
    CHECK_INT(weft_sources_configure(c->sources, c->config->sources, c->config->source_count, NULL),
              0);
    CHECK_INT(weft_view_nodes_init(&c->nodes, "weft.dev/"), 0);
    CHECK_INT(weft_view_nodes_keys(&c->nodes, c->config, &changed), 0);
    c->keep = weft_keep_new();
    for (size_t i = 0; i < count; i++) {
        put_node(c, i, i + 3 < count);
    }
    decide(c);
    return c;
}

static void down(struct weft_controller *c)
{
    weft_decision_done(&c->decision);
    weft_keep_free(c->keep);
    weft_view_nodes_done(&c->nodes);
    weft_view_hypernodes_done(&c->hypernodes);
    weft_sources_free(c->sources);
    weft_config_free(c->config);
    weft_loop_free(c->loop);
    weft_free(c);
}

struct walk {
    struct weft_buf all;
    size_t parts;
    size_t largest; /* bytes */
    int64_t longest;
};

/* Reads the page as the server does; between, if not NULL, is called after each part. */
static void read_page(struct weft_controller *c, struct walk *walk,
                      void (*between)(struct weft_controller *c, size_t part))
{
    struct weft_http_answer answer = {0};
    weft_auto(weft_buf_done) struct weft_buf part;
    *walk = (struct walk){0};
    weft_buf_init(&walk->all, WEFT_HTTP_BODY_MAX);
    weft_buf_init(&part, WEFT_HTTP_PART_MAX);
    weft_debug_tree(c, &answer);
    CHECK_STR(answer.type, "application/json");
    do {
        const int64_t start = weft_clock_monotonic(weft_clock_system());
        weft_buf_reset(&part);
        answer.more(answer.stream, &part);
        const int64_t took = weft_clock_monotonic(weft_clock_system()) - start;
        walk->longest = took > walk->longest ? took : walk->longest;
        walk->largest = part.len > walk->largest ? part.len : walk->largest;
        walk->parts++;
        CHECK_INT(part.status, 0);
        (void)weft_buf_append(&walk->all, weft_buf_text(&part), part.len);
        if (between != NULL) {
            between(c, walk->parts);
        }
    } while (part.len > 0);
    answer.done(answer.stream);
}

static struct weft_json *document(const struct walk *walk)
{
    struct weft_json *doc = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_json_parse(weft_buf_text(&walk->all), walk->all.len, "page", &doc, &err), 0);
    CHECK_STR(err.message, "");
    return doc;
}

static const struct weft_json *named(const struct weft_json *list, const char *name)
{
    for (size_t i = 0; i < weft_json_count(list); i++) {
        const char *is = weft_json_string(weft_json_get(weft_json_at(list, i), "name"));
        if (is != NULL && strcmp(is, name) == 0) {
            return weft_json_at(list, i);
        }
    }
    return NULL;
}

/* 2,048 nodes: 64 leaves of 32 under two spines. */
static void what_stands_in_it(void)
{
    struct weft_controller *c = up(2 * SPINE);
    struct walk walk;
    read_page(c, &walk, NULL);
    weft_auto(weft_json_free) struct weft_json *doc = document(&walk);
    CHECK_STR(weft_json_string(weft_json_get(doc, "role")), "follower");
    const struct weft_json *counts = weft_json_get(weft_json_get(doc, "status"), "nodes");
    CHECK_INT(weft_json_int(weft_json_get(counts, "placed"), -1), 2 * SPINE - 3);
    CHECK_INT(weft_json_int(weft_json_get(counts, "unplaced"), -1), 3);
    CHECK_INT(weft_json_count(weft_json_get(doc, "hyperNodes")), 64 + 2);
    CHECK_INT(weft_json_count(weft_json_get(doc, "nodes")), 2 * SPINE);
    CHECK(weft_json_bool(weft_json_get(doc, "consistent"), false));
    size_t unplaced = 0;
    const struct weft_json *findings = weft_json_get(doc, "findings");
    for (size_t i = 0; i < weft_json_count(findings); i++) {
        const struct weft_json *f = weft_json_at(findings, i);
        const char *subject = weft_json_string(weft_json_get(f, "subject"));
        unplaced += subject != NULL && strncmp(subject, "node-", 5) == 0;
    }
    CHECK_INT(unplaced, 3);
    const struct weft_json *node = named(weft_json_get(doc, "nodes"), "node-000040");
    CHECK_STR(weft_json_string(weft_json_get(node, "source")), "labels");
    const struct weft_json *places = weft_json_get(node, "hyperNodes");
    CHECK_INT(weft_json_count(places), 2);
    const char *leaf = weft_json_string(weft_json_at(places, 0));
    const struct weft_json *hn = named(weft_json_get(doc, "hyperNodes"), leaf != NULL ? leaf : "");
    CHECK(weft_json_bool(weft_json_get(hn, "ours"), false));
    CHECK_INT(weft_json_int(weft_json_get(hn, "tier"), 0), 1);
    CHECK_STR(weft_json_string(weft_json_get(hn, "tierName")), "leaf");
    CHECK_CONTAINS(weft_json_string(weft_json_get(hn, "identity")), "l1");
    CHECK_INT(weft_json_count(weft_json_get(hn, "members")), LEAF);
    node = named(weft_json_get(doc, "nodes"), "node-002047");
    CHECK(node != NULL && weft_json_get(node, "source") == NULL);
    CHECK_INT(weft_json_count(weft_json_get(node, "hyperNodes")), 0);
    weft_buf_done(&walk.all);
    down(c);
}

/* The loop is never held up for long, and memory is that of one part. */
static void a_hundred_thousand_nodes(void)
{
#ifdef __SANITIZE_ADDRESS__
    enum { COUNT = 20000 };
#else
    enum { COUNT = 100000 };
#endif
    struct weft_controller *c = up(COUNT);
    struct walk walk;
    read_page(c, &walk, NULL);
    CHECK(walk.longest < 100 * WEFT_NS_PER_MS);
    CHECK(walk.largest <= PART_BYTES);
    CHECK(walk.parts > 50);
    (void)printf("/debug/tree of %d nodes: %zu bytes in %zu parts, the longest took %lld us\n",
                 (int)COUNT, walk.all.len, walk.parts, (long long)(walk.longest / 1000));
    weft_auto(weft_json_free) struct weft_json *doc = document(&walk);
    CHECK_INT(weft_json_count(weft_json_get(doc, "nodes")), COUNT);
    weft_buf_done(&walk.all);
    down(c);
}

/* HyperNodes and Nodes vanish, others come, a pass replaces all findings. */
static void upset(struct weft_controller *c, size_t part)
{
    if (part == 1) {
        const size_t half = c->hypernodes.set.count / 2;
        while (c->hypernodes.set.count > half) {
            char name[64];
            (void)snprintf(name, sizeof(name), "%s", c->hypernodes.set.items[half / 2].name);
            CHECK(weft_hypernode_set_remove(&c->hypernodes.set, name));
        }
    } else if (part == 3) {
        for (size_t i = 0; i < 2 * SPINE; i += 2) {
            char name[32];
            (void)snprintf(name, sizeof(name), "node-%06zu", i);
            weft_view_nodes_gone(&c->nodes, name, name);
        }
        weft_view_nodes_forget(&c->nodes);
        weft_decision_done(&c->decision);
        c->decision = (struct weft_decision){0};
        c->stats.passes++;
    }
}

static void the_world_changes_meanwhile(void)
{
    struct weft_controller *c = up(2 * SPINE);
    struct walk walk;
    read_page(c, &walk, upset);
    CHECK(walk.parts > 4);
    weft_auto(weft_json_free) struct weft_json *doc = document(&walk);
    CHECK(!weft_json_bool(weft_json_get(doc, "consistent"), true));
    CHECK(weft_json_count(weft_json_get(doc, "hyperNodes")) >= 33);
    weft_buf_done(&walk.all);
    down(c);
}

/* Whichever allocation fails: the page is cut, and nothing leaks. */
static void without_memory(void)
{
    struct weft_controller *c = up(2 * LEAF);
    bool failed = true;
    for (uint64_t n = 1; failed && n < 200; n++) {
        struct weft_http_answer answer = {0};
        weft_auto(weft_buf_done) struct weft_buf part;
        weft_buf_init(&part, WEFT_HTTP_PART_MAX);
        (void)weft_mem_fail_after(n);
        weft_debug_tree(c, &answer);
        while (answer.more != NULL && part.status == 0) {
            weft_buf_reset(&part);
            answer.more(answer.stream, &part);
            if (part.len == 0) {
                break;
            }
        }
        failed = weft_mem_fail_after(0) >= n;
        CHECK(!failed || answer.more == NULL || part.status < 0);
        if (answer.done != NULL) {
            answer.done(answer.stream);
        }
    }
    CHECK(!failed);
    down(c);
}

WEFT_SUITE(debug_tree, {"what stands in it", what_stands_in_it},
           {"a hundred thousand nodes", a_hundred_thousand_nodes},
           {"the world changes meanwhile", the_world_changes_meanwhile},
           {"without memory", without_memory})
