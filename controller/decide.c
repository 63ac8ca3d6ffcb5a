/* SPDX-License-Identifier: Apache-2.0 */
/* Strings the pure parts together; must not look at the world itself. */
#include "controller/decide.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/forest.h"
#include "controller/homes.h"
#include "pkg/fabric/labels.h"
#include "pkg/fabric/selector.h"
#include "pkg/source/config.h"
#include "pkg/source/source.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"

enum { LABEL_KEY_MAX = 320 };

_Static_assert((int)WEFT_PAD_INHERIT == (int)WEFT_LAYOUT_PAD_INHERIT &&
                   (int)WEFT_PAD_SINGLETON == (int)WEFT_LAYOUT_PAD_SINGLETON &&
                   (int)WEFT_UNPLACED_OMIT == (int)WEFT_LAYOUT_UNPLACED_OMIT &&
                   (int)WEFT_UNPLACED_SINGLETON == (int)WEFT_LAYOUT_UNPLACED_SINGLETON &&
                   (int)WEFT_ON_CROSS_DOMAIN_WINS == (int)WEFT_CROSS_DOMAIN_WINS &&
                   (int)WEFT_ON_CROSS_SPLIT == (int)WEFT_CROSS_SPLIT &&
                   (int)WEFT_ON_CROSS_LIFT == (int)WEFT_CROSS_LIFT,
               "the configuration's words are the layout's");

void weft_decision_done(struct weft_decision *decision)
{
    weft_tree_free(decision->tree);
    weft_layout_done(&decision->layout);
    weft_keep_result_done(&decision->keep);
    weft_plan_done(&decision->plan);
    weft_forest_free(decision->places);
    *decision = (struct weft_decision){0};
}

bool weft_node_excluded(const struct weft_node *node, const char *prefix)
{
    char key[LABEL_KEY_MAX];
    (void)snprintf(key, sizeof(key), "%sexclude", prefix);
    const char *value = weft_node_label(node, key);
    return value != NULL && strcmp(value, "false") != 0;
}

/* ---- sources to a tree ---- */

static const char *const *names(const struct weft_names *list)
{
    return (const char *const *)list->items;
}

static void fill_source(const struct weft_config_source *from,
                        const struct weft_source_result *result,
                        const struct weft_nic_inventory *instances, struct weft_tree_source *to)
{
    *to = (struct weft_tree_source){0};
    if (result == NULL) {
        to->levels = &from->levels;
        return;
    }
    const bool by_instance =
        result->declared != NULL && result->declared->names == WEFT_NAMES_INSTANCES;
    to->fabric = result->fabric;
    to->declared = result->declared;
    to->expected = result->expected;
    to->options = (struct weft_tree_options){
        .tiers = from->tiers.count > 0 ? names(&from->tiers) : NULL,
        .tier_count = from->tiers.count,
        .exclude_hcas = names(&from->exclude_hcas),
        .exclude_hca_count = from->exclude_hcas.count,
        .exclude_switches = names(&from->exclude_switches),
        .exclude_switch_count = from->exclude_switches.count,
        .inventory = result->inventory == NULL && by_instance ? instances : result->inventory,
        .keep_slow_hcas = from->keep_slow_hcas,
    };
}

/* Shallow copies of the Nodes that take part; the caller frees the array only. */
static int select_nodes(const struct weft_decide_input *in, struct weft_node **ret_selected,
                        struct weft_keep_node *flags, struct weft_decision *decision)
{
    struct weft_node *selected = weft_calloc(in->node_count + 1, sizeof(*selected));
    if (selected == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < in->node_count; i++) {
        const struct weft_node *node = &in->nodes[i];
        flags[i] = (struct weft_keep_node){
            .name = node->name,
            .excluded = weft_node_excluded(node, in->ours->prefix),
            .selected = weft_node_selector_matches(in->config->node_selector, node),
            .fresh = in->memory[i].fresh,
            .gang = in->gangs != NULL ? in->gangs[i] : WEFT_KEEP_GANG_NONE,
        };
        decision->excluded += flags[i].excluded;
        if (flags[i].selected && !flags[i].excluded) {
            selected[decision->selected++] = *node;
        }
    }
    *ret_selected = selected;
    return 0;
}

static int compare_names(const void *key, const void *item)
{
    return strcmp(key, *(const char *const *)item);
}

/* The tree's node of that name, or SIZE_MAX. guess: where it may well be. */
static size_t find_node(const struct weft_tree *tree, const char *name, size_t guess)
{
    if (guess < tree->node_count && strcmp(tree->nodes[guess], name) == 0) {
        return guess;
    }
    char *const *at = tree->node_count > 0 ? bsearch(name, tree->nodes, tree->node_count,
                                                     sizeof(*tree->nodes), compare_names)
                                           : NULL;
    return at != NULL ? (size_t)(at - tree->nodes) : SIZE_MAX;
}

static void note_sources(const struct weft_decide_input *in, const struct weft_tree *tree,
                         const size_t *places, struct weft_keep_node *flags)
{
    for (size_t i = 0; i < in->node_count; i++) {
        struct weft_decide_memory *memory = &in->memory[i];
        const size_t node = places[i];
        memory->placed = node != SIZE_MAX;
        if (memory->placed) {
            memory->source = tree->node_source != NULL ? tree->node_source[node] : 0;
        } else if (in->config->source_count == 1) {
            memory->source = 0;
        }
        flags[i].source = memory->source;
        const struct weft_source_result *result =
            memory->source < in->config->source_count ? in->results[memory->source] : NULL;
        flags[i].part = result != NULL && result->partial;
    }
}

/* ---- levels that sources miss ---- */

/* Does the configuration let a source place Nodes on that tier? A level that nobody declares any
 * more is no missing evidence, its padding is meant. How deep a fabric is, only its dump tells. */
static bool can_be_known(const struct weft_config *config, const char *tier)
{
    for (size_t s = 0; s < config->source_count; s++) {
        const struct weft_config_source *source = &config->sources[s];
        if (source->kind != WEFT_SOURCE_LABELS) {
            return true;
        }
        for (size_t l = 0; l < source->levels.count; l++) {
            if (strcmp(source->levels.items[l].tier, tier) == 0) {
                return true;
            }
        }
    }
    return false;
}

static const struct weft_tree_tier *find_tier(const struct weft_tree *tree, const char *name)
{
    for (size_t t = 0; t < tree->tier_count; t++) {
        if (strcmp(tree->tiers[t].name, name) == 0) {
            return &tree->tiers[t];
        }
    }
    return NULL;
}

static void note_gaps(const struct weft_decide_input *in, const struct weft_tree *tree,
                      const size_t *places, struct weft_keep_node *flags)
{
    const struct weft_names *plan = &in->config->tiers;
    for (size_t t = 0; t < plan->count && t < WEFT_LAYOUT_TIERS_MAX; t++) {
        if (!can_be_known(in->config, plan->items[t])) {
            continue;
        }
        const struct weft_tree_tier *tier = find_tier(tree, plan->items[t]);
        for (size_t i = 0; i < in->node_count; i++) {
            const size_t node = places[i];
            if (node != SIZE_MAX && (tier == NULL || tier->node_group[node] == WEFT_TREE_NONE)) {
                flags[i].gaps |= UINT32_C(1) << t;
            }
        }
    }
}

static int note_places(const struct weft_decide_input *in, const struct weft_tree *tree,
                       struct weft_keep_node *flags)
{
    weft_autofree size_t *places = weft_calloc(in->node_count + 1, sizeof(*places));
    if (places == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < in->node_count; i++) {
        const size_t guess = i == 0 || places[i - 1] == SIZE_MAX ? i : places[i - 1] + 1;
        places[i] = find_node(tree, in->nodes[i].name, guess);
    }
    note_sources(in, tree, places, flags);
    note_gaps(in, tree, places, flags);
    return 0;
}

/* Tells the switch graphs where Nodes were, for those that hang on two groups alike. */
static int add_homes(const struct weft_decide_input *in, const struct weft_node *selected,
                     size_t count, struct weft_tree_source *sources, struct weft_homes *ret_homes,
                     struct weft_error *err)
{
    bool any = false;
    for (size_t i = 0; i < in->config->source_count; i++) {
        any = any || sources[i].fabric != NULL;
    }
    if (!any || in->any_host) {
        return 0;
    }
    const int rc = weft_homes_before(in->places != NULL ? in->places : in->live, in->ours->instance,
                                     selected, count, ret_homes, err);
    for (size_t i = 0; rc == 0 && i < in->config->source_count; i++) {
        sources[i].options.homes = ret_homes->items;
        sources[i].options.home_count = ret_homes->count;
    }
    return rc;
}

static int build_tree(const struct weft_decide_input *in, struct weft_keep_node *flags,
                      struct weft_decision *decision, struct weft_error *err)
{
    const struct weft_config *config = in->config;
    struct weft_tree_source sources[WEFT_CONFIG_SOURCES_MAX];
    for (size_t i = 0; i < config->source_count; i++) {
        fill_source(&config->sources[i], in->results[i], in->instances, &sources[i]);
    }
    weft_autofree struct weft_node *selected = NULL;
    if (select_nodes(in, &selected, flags, decision) < 0) {
        return weft_err_nomem(err);
    }
    struct weft_homes homes = {0};
    int rc = add_homes(in, selected, decision->selected, sources, &homes, err);
    weft_autofree struct weft_tree_home *owned = homes.items;
    if (rc < 0) {
        return rc;
    }
    const struct weft_tree_input input = {
        .sources = sources,
        .source_count = config->source_count,
        .plan = names(&config->tiers),
        .plan_count = config->tiers.count,
        .nodes = in->any_host ? NULL : selected,
        .node_count = decision->selected,
        .on_cross = (enum weft_tree_cross)config->on_cross,
    };
    rc = weft_tree_build(&input, &decision->tree, err);
    if (rc < 0) {
        return rc;
    }
    return note_places(in, decision->tree, flags) < 0 ? weft_err_nomem(err) : 0;
}

/* ---- tree to a plan ---- */

static int build_layout(const struct weft_decide_input *in, struct weft_decision *decision,
                        struct weft_error *err)
{
    const struct weft_layout_options options = {
        .tiers = names(&in->config->tiers),
        .tier_count = in->config->tiers.count,
        .pad = (enum weft_layout_pad)in->config->pad,
        .unplaced = (enum weft_layout_unplaced)in->config->unplaced,
        .instance = in->ours->instance,
        .existing = in->places != NULL ? in->places : in->live,
    };
    return weft_layout_build(decision->tree, &options, &decision->layout, err);
}

/* A field that the server drops must not look like a difference for ever. */
static int drop_tier_names(struct weft_hypernode_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        char *none = weft_strdup("");
        if (none == NULL) {
            return -ENOMEM;
        }
        weft_free(set->items[i].tier_name);
        set->items[i].tier_name = none;
    }
    return 0;
}

/* A partial look knows a part of a group's switches: it must not be what the group is known by from
 * then on. */
static int hold_identities(const struct weft_decide_input *in, struct weft_hypernode_set *set)
{
    bool partial = false;
    for (size_t i = 0; i < in->config->source_count; i++) {
        partial = partial || (in->results[i] != NULL && in->results[i]->partial);
    }
    for (size_t i = 0; partial && i < set->count; i++) {
        const struct weft_hypernode *live = weft_hypernode_set_get(in->live, set->items[i].name);
        const bool known = live != NULL && weft_hypernode_is_ours(live, in->ours->instance) &&
                           weft_hypernode_text(live->identity)[0] != '\0';
        if (known && weft_hypernode_set_text(&set->items[i].identity, live->identity) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

static int keep_places(const struct weft_decide_input *in, const struct weft_keep_node *flags,
                       struct weft_decision *decision, struct weft_error *err)
{
    const struct weft_config *config = in->config;
    const bool never = config->hold_down.forget_after_ns == WEFT_CONFIG_NEVER;
    const struct weft_keep_options options = {
        .instance = in->ours->instance,
        .snapshots = config->hold_down.snapshots,
        .period = config->hold_down.period_ns,
        .forget_after = never ? WEFT_KEEP_NEVER : config->hold_down.forget_after_ns,
        .lost_percent = config->brakes.lost_percent,
        .moved_percent = config->brakes.moved_percent,
        .settle = config->settle.snapshots,
        .min_nodes = config->brakes.min_nodes,
        .move_delay = config->move_delay_ns,
        .accepted = in->accepted,
        .accepted_count = in->accepted_count,
        .now = in->now,
    };
    const struct weft_keep_input input = {
        .live = in->places != NULL ? in->places : in->live,
        .wanted = &decision->layout.desired,
        .nodes = flags,
        .node_count = in->node_count,
        .options = &options,
        .looks = in->looks,
        .look_count = in->looks != NULL ? config->source_count : 0,
        .epoch = in->epoch,
    };
    int rc = weft_keep_decide(in->keep, &input, &decision->keep, err);
    if (rc < 0) {
        return rc;
    }
    rc = in->prunes_tier_name ? drop_tier_names(&decision->keep.set) : 0;
    rc = rc == 0 ? hold_identities(in, &decision->keep.set) : rc;
    return rc < 0 ? weft_err_nomem(err) : 0;
}

/* Without Nodes nothing is known to exist that could keep a place: what the sources say counts. */
static int keep_all(struct weft_decision *decision, struct weft_error *err)
{
    decision->keep.due = INT64_MAX;
    return weft_hypernode_set_copy(&decision->layout.desired, &decision->keep.set) < 0
               ? weft_err_nomem(err)
               : 0;
}

static bool any_torn(const struct weft_hypernode_set *live)
{
    for (size_t i = 0; i < live->count; i++) {
        if (live->items[i].torn) {
            return true;
        }
    }
    return false;
}

static int decide(const struct weft_decide_input *in, struct weft_keep_node *flags,
                  struct weft_decision *decision, struct weft_error *err)
{
    int rc = build_tree(in, flags, decision, err);
    if (rc == 0) {
        rc = build_layout(in, decision, err);
    }
    if (rc == 0) {
        rc = in->any_host ? keep_all(decision, err) : keep_places(in, flags, decision, err);
    }
    const struct weft_plan_options options = {.instance = in->ours->instance, .check = true};
    /* frozen: but what somebody deleted while it is listed is made again, and what is torn mended
     */
    if (rc == 0 && (!decision->keep.frozen || in->lost || any_torn(in->live))) {
        rc = weft_plan_build(in->live, &decision->keep.set, &options, &decision->plan, err);
    }
    if (rc == 0) {
        rc = weft_forest_new(&decision->keep.set, NULL, &decision->places, err);
    }
    return rc;
}

int weft_decide(const struct weft_decide_input *input, struct weft_decision *ret_decision,
                struct weft_error *err)
{
    weft_auto(weft_decision_done) struct weft_decision decision = {0};
    weft_autofree struct weft_keep_node *flags = weft_calloc(input->node_count + 1, sizeof(*flags));
    if (flags == NULL) {
        return weft_err_nomem(err);
    }
    const int rc = decide(input, flags, &decision, err);
    if (rc < 0) {
        return rc;
    }
    *ret_decision = decision;
    decision = (struct weft_decision){0};
    return 0;
}

int weft_decide_nothing(const struct weft_names_of_ours *ours,
                        const struct weft_hypernode_set *live, struct weft_decision *ret_decision,
                        struct weft_error *err)
{
    struct weft_decision decision = {.keep.due = INT64_MAX};
    const struct weft_plan_options options = {.instance = ours->instance, .check = true};
    int rc = weft_plan_build(live, &decision.keep.set, &options, &decision.plan, err);
    rc = rc < 0 ? rc : weft_forest_new(&decision.keep.set, NULL, &decision.places, err);
    if (rc < 0) {
        weft_decision_done(&decision);
        return rc;
    }
    *ret_decision = decision;
    return 0;
}

size_t weft_decision_labels(const struct weft_decision *decision, const char *node,
                            const char *ret_values[WEFT_LAYOUT_TIERS_MAX])
{
    size_t chain[WEFT_FOREST_TIERS_MAX];
    const size_t count = weft_forest_chain(decision->places, node, chain);
    /* all tiers or none */
    if (count != decision->layout.tier_count || weft_plan_holds(&decision->plan, node)) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        ret_values[i] = weft_forest_object(decision->places, chain[i])->name;
    }
    return count;
}
