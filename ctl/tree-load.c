/* SPDX-License-Identifier: Apache-2.0 */
/* From the command line to a tree: which file is which source, and which nodes take part. */
#include "ctl/tree-load.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/file.h"
#include "pkg/base/map.h"
#include "pkg/base/str.h"
#include "pkg/fabric/labels.h"
#include "pkg/fabric/node.h"
#include "pkg/fabric/selector.h"
#include "pkg/source/config.h"
#include "pkg/source/guess.h"
#include "pkg/source/source.h"
#include "pkg/tree/build.h"

/* a plan that no file gives: the sources' own tiers in order */
enum { PLAN_MAX = 64 };

struct load {
    const struct weft_ctl_tree_ask *ask;
    struct weft_config_source own[WEFT_CTL_SOURCES_MAX]; /* of --from */
    size_t own_count;
    const struct weft_config_source *settings; /* those, or the configuration's */
    size_t count;
    struct weft_sources *sources;
    struct weft_label_levels preset;
    struct weft_nodes nodes;
    struct weft_node *selected; /* shallow copies of nodes */
    size_t selected_count;
};

static void load_done(struct load *l)
{
    weft_sources_free(l->sources);
    for (size_t s = 0; s < l->own_count; s++) {
        weft_config_source_done(&l->own[s]);
    }
    weft_label_levels_done(&l->preset);
    weft_nodes_done(&l->nodes);
    weft_free(l->selected);
}

/* ---- which sources ---- */

/* "KIND=FILE"; COUNT if there is no KIND: it is to be guessed. false: an unknown kind, no file. */
static bool split_from(const char *text, enum weft_source_kind *ret_kind, const char **ret_file)
{
    static const struct {
        const char *name;
        enum weft_source_kind kind;
    } shorter[] = {{"aws", WEFT_SOURCE_AWS_API}, {"oci", WEFT_SOURCE_OCI_IMDS}};
    const char *equals = strchr(text, '=');
    *ret_kind = WEFT_SOURCE_COUNT;
    *ret_file = equals != NULL ? equals + 1 : text;
    const struct weft_str name = {text, equals != NULL ? (size_t)(equals - text) : 0};
    for (int k = 0; equals != NULL && k < WEFT_SOURCE_COUNT; k++) {
        if (weft_str_eq(name, weft_source_kind_name((enum weft_source_kind)k))) {
            *ret_kind = (enum weft_source_kind)k;
        }
    }
    for (size_t i = 0; equals != NULL && i < WEFT_ARRAY_LEN(shorter); i++) {
        if (weft_str_eq(name, shorter[i].name)) {
            *ret_kind = shorter[i].kind;
        }
    }
    return **ret_file != '\0' && (equals == NULL || *ret_kind != WEFT_SOURCE_COUNT);
}

static int guess(const char *path, enum weft_source_kind *ret_kind, struct weft_error *err)
{
    if (strcmp(path, "-") == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "standard input needs its kind: --from KIND=-");
    }
    char text[WEFT_SOURCE_GUESS_MAX];
    struct stat st;
    weft_autoclose const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &st) == 0 && !S_ISREG(st.st_mode)) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            S_ISDIR(st.st_mode)
                                ? "%s is a folder: say what it is: --from lldp=FOLDER or oci=FOLDER"
                                : "%s can be read only once: say what it is: --from KIND=FILE",
                            path);
    }
    const ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text));
    return len < 0 ? weft_err_errno(err, errno, "%s", path)
                   : weft_source_guess(text, (size_t)len, path, ret_kind, err);
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

/* --from says which, else the configuration's own sources. */
static int list_sources(struct load *l, struct weft_error *err)
{
    const struct weft_ctl_tree_ask *ask = l->ask;
    size_t of_kind[WEFT_SOURCE_COUNT] = {0};
    l->settings = ask->from_count > 0 || ask->config == NULL ? l->own : ask->config->sources;
    l->count = ask->from_count == 0 && ask->config != NULL ? ask->config->source_count : 0;
    for (size_t i = 0; i < ask->from_count; i++) {
        enum weft_source_kind kind = WEFT_SOURCE_COUNT;
        const char *file = NULL;
        (void)!split_from(ask->from[i], &kind, &file);
        int rc = kind == WEFT_SOURCE_COUNT ? guess(file, &kind, err) : 0;
        if (rc == 0) {
            rc = weft_source_for_file(kind, file, settings_of(ask->config, kind, of_kind[kind]++),
                                      &l->own[l->own_count++], err);
        }
        if (rc < 0) {
            return rc;
        }
        l->count = l->own_count;
    }
    return 0;
}

static const char *file_of(const struct load *l, size_t s)
{
    return l->own_count > 0 && l->own[s].files.count > 0 ? l->own[s].files.items[0] : NULL;
}

static const struct weft_label_levels *levels_of(const struct load *l, size_t s)
{
    return l->settings[s].levels.count > 0 ? &l->settings[s].levels : &l->preset;
}

/* What labels need besides. */
static int check_labels(const struct load *l, struct weft_error *err)
{
    for (size_t s = 0; s < l->count; s++) {
        if (l->settings[s].kind != WEFT_SOURCE_LABELS) {
            continue;
        }
        if (levels_of(l, s)->count == 0) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                l->ask->config != NULL
                                    ? "the configuration has no labels source; --from labels needs "
                                      "one, or --preset NAME"
                                    : "--from labels needs --preset NAME or --config FILE, which "
                                      "say the label keys");
        }
        if (file_of(l, s) == NULL && l->ask->nodes == NULL) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "the configuration reads node labels: give --nodes FILE or --from "
                                "labels=FILE");
        }
    }
    return 0;
}

static int check_from(const struct weft_ctl_tree_ask *ask, struct weft_error *err)
{
    unsigned standard_input = ask->nodes != NULL && strcmp(ask->nodes, "-") == 0;
    for (size_t i = 0; i < ask->from_count; i++) {
        enum weft_source_kind kind = WEFT_SOURCE_COUNT;
        const char *file = NULL;
        if (!split_from(ask->from[i], &kind, &file)) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "--from is KIND=FILE with KIND infiniband, labels, slurm, lldp, "
                                "ufm, ptm, file, aws or oci, not \"%.80s\"",
                                ask->from[i]);
        }
        standard_input += strcmp(file, "-") == 0;
    }
    if (ask->from_count == 0 && ask->config == NULL) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "--from KIND=FILE is needed, or --config FILE");
    }
    return standard_input < 2 ? 0
                              : weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                             "standard input (-) can be one file only");
}

/* Kinds that are only shown by their content are judged when the files are read. */
static bool all_kinds_are_said(const struct weft_ctl_tree_ask *ask)
{
    bool said = true;
    for (size_t i = 0; i < ask->from_count; i++) {
        said = said && strchr(ask->from[i], '=') != NULL;
    }
    return said;
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
    rc = rc == 0 ? check_from(ask, err) : rc;
    if (rc == 0 && all_kinds_are_said(ask)) {
        rc = list_sources(&l, err);
        rc = rc == 0 ? check_labels(&l, err) : rc;
    }
    load_done(&l);
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
    for (size_t s = 0; rc == 0 && s < l->count; s++) {
        weft_auto(weft_nodes_done) struct weft_nodes more = {0};
        if (l->settings[s].kind == WEFT_SOURCE_LABELS && file_of(l, s) != NULL) {
            rc = read_nodes(file_of(l, s), &more, err);
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

static const char *const *names(const struct weft_names *list)
{
    return (const char *const *)list->items;
}

static void fill_source(const struct load *l, size_t s, struct weft_tree_source *to)
{
    const struct weft_config_source *settings = &l->settings[s];
    const struct weft_source_result *result = weft_sources_result(l->sources, s);
    *to = (struct weft_tree_source){0};
    if (result == NULL) {
        to->levels = levels_of(l, s);
        return;
    }
    to->fabric = result->fabric;
    to->declared = result->declared;
    to->expected = result->expected;
    to->options = (struct weft_tree_options){
        .tiers = settings->tiers.count > 0 ? names(&settings->tiers) : NULL,
        .tier_count = settings->tiers.count,
        .exclude_hcas = names(&settings->exclude_hcas),
        .exclude_hca_count = settings->exclude_hcas.count,
        .exclude_switches = names(&settings->exclude_switches),
        .exclude_switch_count = settings->exclude_switches.count,
        .inventory = result->inventory,
        .keep_slow_hcas = settings->keep_slow_hcas,
    };
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

static void add_levels(const char **plan, size_t *count, const struct weft_label_levels *levels)
{
    for (size_t i = 0; i < levels->count; i++) {
        add_to_plan(plan, count, levels->items[i].tier);
    }
}

/* Several sources without a configuration: the tiers in the order in which the sources have them.
 */
static size_t make_plan(const struct load *l, const struct weft_tree_source *sources,
                        const char **plan)
{
    static const char *const fabric_tiers[] = {"leaf", "spine", "core"};
    size_t count = 0;
    for (size_t s = 0; s < l->count; s++) {
        if (sources[s].levels != NULL) {
            add_levels(plan, &count, sources[s].levels);
        }
        if (sources[s].declared != NULL) {
            add_levels(plan, &count, &sources[s].declared->levels);
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
    for (size_t s = 0; s < l->count; s++) {
        fill_source(l, s, &sources[s]);
    }
    struct weft_tree_input input = {
        .sources = sources,
        .source_count = l->count,
        .nodes = l->nodes.count > 0 ? l->selected : NULL,
        .node_count = l->selected_count,
    };
    if (l->ask->config != NULL) {
        input.plan = names(&l->ask->config->tiers);
        input.plan_count = l->ask->config->tiers.count;
        input.on_cross = (enum weft_tree_cross)l->ask->config->on_cross;
    } else if (l->count > 1) {
        input.plan_count = make_plan(l, sources, plan);
        input.plan = plan;
    }
    return weft_tree_build(&input, ret_tree, err);
}

/* Labels are read with the nodes; all others once, now. */
static int read_sources(struct load *l, struct weft_error *err)
{
    const int rc = weft_sources_read(l->settings, l->count, &l->sources, err);
    return rc == 0 ? weft_sources_check(l->sources, err) : rc;
}

int weft_ctl_tree_load(const struct weft_ctl_tree_ask *ask, struct weft_tree **ret_tree,
                       struct weft_error *err)
{
    struct load l = {.ask = ask};
    int rc = ask->preset != NULL ? weft_label_preset(ask->preset, &l.preset, err) : 0;
    rc = rc == 0 ? list_sources(&l, err) : rc;
    rc = rc == 0 ? check_labels(&l, err) : rc;
    rc = rc == 0 ? load_nodes(&l, err) : rc;
    rc = rc == 0 ? read_sources(&l, err) : rc;
    rc = rc == 0 ? build(&l, ret_tree, err) : rc;
    load_done(&l);
    return rc;
}
