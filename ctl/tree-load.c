/* SPDX-License-Identifier: Apache-2.0 */
/* From the command line to a tree: which file is which source, and which nodes take part. */
#include "ctl/tree-load.h"

#include <errno.h>
#include <string.h>

#include "pkg/base/file.h"
#include "pkg/base/map.h"
#include "pkg/base/str.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/labels.h"
#include "pkg/fabric/node.h"
#include "pkg/fabric/selector.h"
#include "pkg/source/config.h"
#include "pkg/tree/build.h"

/* a plan that no file gives: the sources' own tiers in order */
enum { PLAN_MAX = 64 };

struct source {
    enum weft_source_kind kind;
    const char *file; /* infiniband: the dump; labels: a node list or NULL */
    const struct weft_config_source *settings; /* from the configuration, or NULL */
};

struct load {
    const struct weft_ctl_tree_ask *ask;
    struct source sources[WEFT_CTL_SOURCES_MAX];
    size_t source_count;
    struct weft_label_levels preset;
    struct weft_fabric *fabrics[WEFT_CTL_SOURCES_MAX];
    struct weft_nodes nodes;
    struct weft_node *selected; /* shallow copies of nodes */
    size_t selected_count;
};

static void load_done(struct load *l)
{
    for (size_t s = 0; s < l->source_count; s++) {
        weft_fabric_free(l->fabrics[s]);
    }
    weft_label_levels_done(&l->preset);
    weft_nodes_done(&l->nodes);
    weft_free(l->selected);
}

/* ---- which sources ---- */

static bool split_from(const char *text, struct source *source)
{
    if (strncmp(text, "labels=", 7) == 0) {
        source->kind = WEFT_SOURCE_LABELS;
        source->file = text + 7;
    } else if (strncmp(text, "infiniband=", 11) == 0) {
        source->kind = WEFT_SOURCE_INFINIBAND;
        source->file = text + 11;
    } else {
        return false;
    }
    return source->file[0] != '\0';
}

/* The configuration's index-th source of that kind, or its last one: several dumps (planes) may
 * share their settings. */
static const struct weft_config_source *settings_of(const struct weft_config *config,
                                                    enum weft_source_kind kind, size_t index)
{
    const struct weft_config_source *found = NULL;
    for (size_t s = 0; config != NULL && s < config->source_count; s++) {
        if (config->sources[s].kind == kind) {
            found = &config->sources[s];
            if (index-- == 0) {
                break;
            }
        }
    }
    return found;
}

/* --from says which, else the configuration's own sources with their own files. */
static int list_sources(struct load *l, struct weft_error *err)
{
    const struct weft_ctl_tree_ask *ask = l->ask;
    size_t of_kind[WEFT_SOURCE_COUNT] = {0};
    for (size_t i = 0; i < ask->from_count; i++) {
        struct source source = {0};
        if (!split_from(ask->from[i], &source)) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "--from is labels=FILE or infiniband=FILE, not \"%.80s\"",
                                ask->from[i]);
        }
        source.settings = settings_of(ask->config, source.kind, of_kind[source.kind]++);
        l->sources[l->source_count++] = source;
    }
    for (size_t i = 0; ask->from_count == 0 && ask->config != NULL &&
                       i < ask->config->source_count && i < WEFT_CTL_SOURCES_MAX;
         i++) {
        const struct weft_config_source *settings = &ask->config->sources[i];
        l->sources[l->source_count++] =
            (struct source){.kind = settings->kind,
                            .file = settings->files.count > 0 ? settings->files.items[0] : NULL,
                            .settings = settings};
    }
    return l->source_count > 0 ? 0
                               : weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                              "--from KIND=FILE is needed (labels or infiniband)");
}

static int check_sources(const struct load *l, struct weft_error *err)
{
    const struct weft_ctl_tree_ask *ask = l->ask;
    unsigned standard_input = ask->nodes != NULL && strcmp(ask->nodes, "-") == 0;
    for (size_t s = 0; s < l->source_count; s++) {
        const struct source *source = &l->sources[s];
        standard_input += source->file != NULL && strcmp(source->file, "-") == 0;
        if (source->kind != WEFT_SOURCE_LABELS) {
            if (source->file == NULL) {
                return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                    "the source %s of the configuration reads no file: give --from",
                                    source->settings->name);
            }
            continue;
        }
        if (source->settings == NULL && ask->preset == NULL) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                ask->config != NULL
                                    ? "the configuration has no labels source; --from labels needs "
                                      "one, or --preset NAME"
                                    : "--from labels needs --preset NAME or --config FILE, which "
                                      "say the label keys");
        }
        if (source->file == NULL && ask->nodes == NULL) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "the configuration reads node labels: give --nodes FILE or --from "
                                "labels=FILE");
        }
    }
    return standard_input < 2 ? 0
                              : weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                             "standard input (-) can be one file only");
}

int weft_ctl_tree_check(const struct weft_ctl_tree_ask *ask, struct weft_error *err)
{
    struct load l = {.ask = ask};
    int rc = 0;
    if (ask->preset != NULL && ask->config != NULL) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "--preset and --config exclude each other");
    }
    if (ask->preset != NULL) {
        rc = weft_label_preset(ask->preset, &l.preset, err);
    }
    rc = rc == 0 ? list_sources(&l, err) : rc;
    rc = rc == 0 ? check_sources(&l, err) : rc;
    weft_label_levels_done(&l.preset);
    return rc;
}

/* ---- which nodes ---- */

static int read_nodes(const char *path, struct weft_nodes *nodes, struct weft_error *err)
{
    weft_autofree char *text = NULL;
    size_t len = 0;
    const int rc = weft_file_read(path, WEFT_NODES_TEXT_MAX, &text, &len, err);
    return rc < 0 ? rc : weft_nodes_parse(text, len, path, nodes, err);
}

static int copy_labels(const struct weft_node *from, struct weft_node *to)
{
    for (size_t i = 0; i < from->label_count; i++) {
        if (weft_node_label(to, from->labels[i].key) == NULL &&
            weft_node_set_label(to, from->labels[i].key, from->labels[i].value) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

/* Adds what a labels file says: labels to the nodes that are there; without --nodes its nodes too.
 */
static int merge_nodes(struct load *l, const struct weft_nodes *more, bool add)
{
    weft_auto(weft_map_free) struct weft_map *index = weft_map_new(WEFT_NODES_MAX);
    if (index == NULL) {
        return -ENOMEM;
    }
    for (size_t n = 0; n < l->nodes.count; n++) {
        if (weft_map_put(index, l->nodes.items[n].name, n) < 0) {
            return -ENOMEM;
        }
    }
    for (size_t n = 0; n < more->count; n++) {
        const struct weft_node *from = &more->items[n];
        struct weft_node *to = NULL;
        size_t at = 0;
        if (weft_map_get(index, from->name, &at)) {
            to = &l->nodes.items[at];
        } else if (!add) {
            continue;
        } else if (weft_nodes_add(&l->nodes, from->name, from->uid, &to) < 0) {
            return -ENOMEM;
        }
        if (copy_labels(from, to) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

static int load_nodes(struct load *l, struct weft_error *err)
{
    const struct weft_ctl_tree_ask *ask = l->ask;
    int rc = ask->nodes != NULL ? read_nodes(ask->nodes, &l->nodes, err) : 0;
    for (size_t s = 0; rc == 0 && s < l->source_count; s++) {
        weft_auto(weft_nodes_done) struct weft_nodes more = {0};
        if (l->sources[s].kind == WEFT_SOURCE_LABELS && l->sources[s].file != NULL) {
            rc = read_nodes(l->sources[s].file, &more, err);
            if (rc == 0 && merge_nodes(l, &more, ask->nodes == NULL) < 0) {
                rc = weft_err_nomem(err);
            }
        }
    }
    if (rc < 0) {
        return rc;
    }
    l->selected = weft_calloc(l->nodes.count, sizeof(*l->selected));
    if (l->selected == NULL) {
        return weft_err_nomem(err);
    }
    const struct weft_node_selector *selector =
        ask->config != NULL ? ask->config->node_selector : NULL;
    for (size_t n = 0; n < l->nodes.count; n++) {
        if (weft_node_selector_matches(selector, &l->nodes.items[n])) {
            l->selected[l->selected_count++] = l->nodes.items[n];
        }
    }
    return 0;
}

/* ---- the tree ---- */

static int load_fabric(const char *path, struct weft_fabric **ret_fabric, struct weft_error *err)
{
    weft_autofree char *text = NULL;
    size_t len = 0;
    const int rc = weft_file_read(path, WEFT_FABRIC_TEXT_MAX, &text, &len, err);
    return rc < 0 ? rc : weft_parse_infiniband(text, len, path, ret_fabric, err);
}

static const char *const *names(const struct weft_names *list)
{
    return (const char *const *)list->items;
}

static int fill_source(struct load *l, size_t s, struct weft_tree_source *to,
                       struct weft_error *err)
{
    const struct weft_config_source *settings = l->sources[s].settings;
    *to = (struct weft_tree_source){0};
    if (l->sources[s].kind == WEFT_SOURCE_LABELS) {
        to->levels = settings != NULL ? &settings->levels : &l->preset;
        return 0;
    }
    if (settings != NULL) {
        to->options = (struct weft_tree_options){
            .tiers = settings->tiers.count > 0 ? names(&settings->tiers) : NULL,
            .tier_count = settings->tiers.count,
            .exclude_hcas = names(&settings->exclude_hcas),
            .exclude_hca_count = settings->exclude_hcas.count,
            .exclude_switches = names(&settings->exclude_switches),
            .exclude_switch_count = settings->exclude_switches.count,
        };
    }
    const int rc = load_fabric(l->sources[s].file, &l->fabrics[s], err);
    to->fabric = l->fabrics[s];
    return rc;
}

static void add_to_plan(const char **plan, size_t *count, const char *name)
{
    for (size_t t = 0; t < *count; t++) {
        if (strcmp(plan[t], name) == 0) {
            return;
        }
    }
    if (*count < PLAN_MAX) {
        plan[(*count)++] = name;
    }
}

/* Several sources without a configuration: the tiers in the order in which the sources have them.
 */
static size_t make_plan(const struct load *l, const struct weft_tree_source *sources,
                        const char **plan)
{
    static const char *const fabric_tiers[] = {"leaf", "spine", "core"};
    size_t count = 0;
    for (size_t s = 0; s < l->source_count; s++) {
        for (size_t i = 0; sources[s].levels != NULL && i < sources[s].levels->count; i++) {
            add_to_plan(plan, &count, sources[s].levels->items[i].tier);
        }
        for (size_t i = 0; sources[s].fabric != NULL && i < WEFT_ARRAY_LEN(fabric_tiers); i++) {
            add_to_plan(plan, &count, fabric_tiers[i]);
        }
    }
    return count;
}

static int build(struct load *l, struct weft_tree **ret_tree, struct weft_error *err)
{
    struct weft_tree_source sources[WEFT_CTL_SOURCES_MAX] = {0};
    const char *plan[PLAN_MAX] = {0};
    for (size_t s = 0; s < l->source_count; s++) {
        const int rc = fill_source(l, s, &sources[s], err);
        if (rc < 0) {
            return rc;
        }
    }
    struct weft_tree_input input = {
        .sources = sources,
        .source_count = l->source_count,
        .nodes = l->nodes.count > 0 ? l->selected : NULL,
        .node_count = l->selected_count,
    };
    if (l->ask->config != NULL) {
        input.plan = names(&l->ask->config->tiers);
        input.plan_count = l->ask->config->tiers.count;
    } else if (l->source_count > 1) {
        input.plan_count = make_plan(l, sources, plan);
        input.plan = plan;
    }
    return weft_tree_build(&input, ret_tree, err);
}

int weft_ctl_tree_load(const struct weft_ctl_tree_ask *ask, struct weft_tree **ret_tree,
                       struct weft_error *err)
{
    struct load l = {.ask = ask};
    int rc = ask->preset != NULL ? weft_label_preset(ask->preset, &l.preset, err) : 0;
    rc = rc == 0 ? list_sources(&l, err) : rc;
    rc = rc == 0 ? load_nodes(&l, err) : rc;
    rc = rc == 0 ? build(&l, ret_tree, err) : rc;
    load_done(&l);
    return rc;
}
