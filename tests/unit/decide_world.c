/* SPDX-License-Identifier: Apache-2.0 */
/* One pass's world; must not expect anything of the decision. */
#include "tests/unit/decide_world.h"

#include <stdio.h>

#include "pkg/base/clock.h"
#include "pkg/fabric/fabric.h"
#include "pkg/source/config.h"
#include "tests/unit/hypernodes.h"
#include "tests/unit/unit.h"

void decide_world_init(struct decide_world *w, const char *config)
{
    *w = (struct decide_world){.keep = weft_keep_new()};
    weft_autofree char *whole =
        weft_asprintf("apiVersion: weft.dev/v1alpha1\nkind: ControllerConfig\n%s", config);
    CHECK_INT(weft_config_parse(whole, strlen(whole), "config", &w->config, &w->err), 0);
    if (w->err.code != 0) {
        (void)fprintf(stderr, "%s\n", w->err.message);
    }
    for (size_t i = 0; i < DECIDE_WORLD_NODES_MAX; i++) {
        w->memory[i].source = WEFT_KEEP_NO_SOURCE;
    }
}

void decide_world_done(struct decide_world *w)
{
    weft_decision_done(&w->decision);
    weft_keep_free(w->keep);
    weft_hypernode_set_done(&w->live);
    weft_nodes_done(&w->nodes);
    weft_config_free(w->config);
}

struct weft_node *decide_world_node(struct decide_world *w, const char *name)
{
    for (size_t i = 0; i < w->nodes.count; i++) {
        if (strcmp(w->nodes.items[i].name, name) == 0) {
            return &w->nodes.items[i];
        }
    }
    return NULL;
}

void decide_world_label(struct decide_world *w, const char *name, const char *key,
                        const char *value)
{
    struct weft_node *node = decide_world_node(w, name);
    if (node == NULL) {
        CHECK_INT(weft_nodes_add(&w->nodes, name, "uid", &node), 0);
    }
    CHECK_INT(weft_node_set_label(node, key, value), 0);
}

void decide_world_unlabel(struct decide_world *w, const char *name)
{
    struct weft_node *node = decide_world_node(w, name);
    CHECK(node != NULL);
    for (size_t i = 0; node != NULL && i < node->label_count; i++) {
        weft_free(node->labels[i].key);
        weft_free(node->labels[i].value);
    }
    if (node != NULL) {
        node->label_count = 0;
    }
}

/* count Nodes n00…, four a rack, two racks a zone. */
void decide_world_add_nodes(struct decide_world *w, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char name[24];
        char rack[24];
        char zone[24];
        (void)snprintf(name, sizeof(name), "n%02zu", i);
        (void)snprintf(rack, sizeof(rack), "r%zu", i / 4);
        (void)snprintf(zone, sizeof(zone), "z%zu", i / 8);
        decide_world_label(w, name, "x/rack", rack);
        decide_world_label(w, name, "x/zone", zone);
    }
}

int decide_world_decide(struct decide_world *w)
{
    static const struct weft_names_of_ours ours = {.prefix = "weft.dev/", .instance = "weft"};
    const struct weft_source_result *results[WEFT_CONFIG_SOURCES_MAX] = {0};
    results[0] = w->result;
    weft_decision_done(&w->decision);
    const struct weft_decide_input input = {
        .config = w->config,
        .ours = &ours,
        .results = results,
        .nodes = w->nodes.items,
        .memory = w->memory,
        .node_count = w->nodes.count,
        .live = &w->live,
        .places = w->places,
        .lost = w->lost,
        .prunes_tier_name = w->prunes,
        .keep = w->keep,
        .accepted = w->accepted,
        .accepted_count = w->accepted_count,
        .gangs = w->gangs,
        .now = WEFT_NS_PER_S,
    };
    return weft_decide(&input, &w->decision, &w->err);
}

void decide_world_decided(struct decide_world *w)
{
    if (decide_world_decide(w) < 0) {
        CHECK_STR(w->err.message, "no error");
    }
}

void decide_world_accept(struct decide_world *w)
{
    const struct weft_refusals *refusals = &w->decision.keep.refusals;
    w->accepted_count = refusals->count;
    for (size_t i = 0; i < refusals->count; i++) {
        w->accepted[i] = (struct weft_acceptance){0};
        memcpy(w->accepted[i].hash, refusals->items[i].hash, sizeof(w->accepted[i].hash));
    }
}

/* The writes happen: what is wanted exists now. */
void decide_world_carry_out(struct decide_world *w)
{
    weft_hypernode_set_done(&w->live);
    w->live = (struct weft_hypernode_set){0};
    CHECK_INT(weft_hypernode_set_copy(&w->decision.plan.target, &w->live), 0);
    for (size_t i = 0; i < w->live.count; i++) {
        weft_free(w->live.items[i].uid);
        weft_free(w->live.items[i].resource_version);
        w->live.items[i].uid = weft_strdup("uid");
        w->live.items[i].resource_version = weft_strdup("1");
    }
}
