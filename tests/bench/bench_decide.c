/* SPDX-License-Identifier: Apache-2.0 */
/* How long one pass of the controller thinks about a cluster of 10,000 and of 100,000 Nodes of
 * which one was relabelled: from the labels to a checked plan of two writes. 32 Nodes a leaf, 16
 * leaves a spine, one core, as in the benchmark against a real API server, of whose time this is a
 * part. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/decide.h"
#include "pkg/base/clock.h"
#include "pkg/fabric/node.h"
#include "pkg/hypernode/hypernode.h"
#include "pkg/source/config.h"

enum { RUNS = 15, SMALL = 10000, LARGE = 100000, A_LEAF = 32, A_SPINE = 512 };

static const char config_text[] =
    "apiVersion: weft.dev/v1alpha1\n"
    "kind: ControllerConfig\n"
    "nodeSelector: nvidia.com/gpu.present=true\n"
    "tiers: [leaf, spine, core]\n"
    "sources:\n"
    "- labels: {keys: [bench.example/leaf, bench.example/spine, bench.example/core]}\n";

struct world {
    struct weft_config *config;
    struct weft_nodes nodes;
    struct weft_decide_memory *memory;
    struct weft_hypernode_set live;
    struct weft_keep *keep;
};

static void must(bool good, const char *what)
{
    if (!good) {
        (void)fprintf(stderr, "bench_decide: %s\n", what);
        exit(1);
    }
}

static void label(struct weft_node *node, const char *key, const char *format, size_t number)
{
    char value[32];
    /* the formats are those below */
    (void)snprintf(value, sizeof(value), "%s-%04zu", format, number);
    must(weft_node_set_label(node, key, value) == 0, "no memory");
}

static void init(struct world *w, size_t count)
{
    struct weft_error err = {0};
    *w = (struct world){.keep = weft_keep_new(), .memory = weft_calloc(count, sizeof(*w->memory))};
    must(w->keep != NULL && w->memory != NULL, "no memory");
    must(weft_config_parse(config_text, strlen(config_text), "config", &w->config, &err) == 0,
         err.message);
    for (size_t i = 0; i < count; i++) {
        char name[32];
        struct weft_node *node = NULL;
        (void)snprintf(name, sizeof(name), "node-%05zu", i);
        must(weft_nodes_add(&w->nodes, name, "uid", &node) == 0, "no memory");
        label(node, "nvidia.com/gpu.present", "true", 0);
        must(weft_node_set_label(node, "nvidia.com/gpu.present", "true") == 0, "no memory");
        label(node, "bench.example/leaf", "leaf", i / A_LEAF);
        label(node, "bench.example/spine", "spine", i / A_SPINE);
        label(node, "bench.example/core", "core", 0);
        w->memory[i].source = WEFT_KEEP_NO_SOURCE;
    }
}

static void done(struct world *w)
{
    weft_keep_free(w->keep);
    weft_hypernode_set_done(&w->live);
    weft_nodes_done(&w->nodes);
    weft_config_free(w->config);
    weft_free(w->memory);
}

/* The time from labels to a plan, which is then carried out. */
static int64_t pass(struct world *w, size_t writes)
{
    static const struct weft_names_of_ours ours = {.prefix = "weft.dev/", .instance = "weft"};
    const struct weft_source_result *results[WEFT_CONFIG_SOURCES_MAX] = {0};
    const struct weft_decide_input input = {
        .config = w->config,
        .ours = &ours,
        .results = results,
        .nodes = w->nodes.items,
        .memory = w->memory,
        .node_count = w->nodes.count,
        .live = &w->live,
        .keep = w->keep,
        .now = WEFT_NS_PER_S,
    };
    struct weft_error err = {0};
    weft_auto(weft_decision_done) struct weft_decision decision = {0};
    const int64_t start = weft_clock_monotonic(weft_clock_system());
    must(weft_decide(&input, &decision, &err) == 0, err.message);
    const int64_t took = weft_clock_monotonic(weft_clock_system()) - start;
    must(decision.plan.step_count == writes, "not as many writes as there should be");
    weft_hypernode_set_done(&w->live);
    w->live = (struct weft_hypernode_set){0};
    must(weft_hypernode_set_copy(&decision.plan.target, &w->live) == 0, "no memory");
    for (size_t i = 0; i < w->live.count; i++) {
        must(weft_hypernode_set_text(&w->live.items[i].uid, "uid") == 0 &&
                 weft_hypernode_set_text(&w->live.items[i].resource_version, "1") == 0,
             "no memory");
    }
    return took;
}

static int compare_times(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a;
    const int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name, size_t count)
{
    struct world w;
    int64_t times[RUNS];
    init(&w, count);
    const size_t leaves = (count + A_LEAF - 1) / A_LEAF;
    const size_t spines = (count + A_SPINE - 1) / A_SPINE;
    const int64_t first = pass(&w, leaves + spines + 1);
    for (size_t i = 0; i < RUNS; i++) {
        label(&w.nodes.items[5], "bench.example/leaf", "leaf", i + 1);
        times[i] = pass(&w, 2);
    }
    qsort(times, RUNS, sizeof(times[0]), compare_times);
    (void)printf("decide_%s_first %.1f ms\n", name, (double)first / 1e6);
    (void)printf("decide_%s_relabel %.1f ms\n", name, (double)times[RUNS / 2] / 1e6);
    (void)fflush(stdout);
    done(&w);
}

int main(void)
{
    measure("10k", SMALL);
    measure("100k", LARGE);
    return 0;
}
