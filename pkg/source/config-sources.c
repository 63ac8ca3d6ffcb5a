/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration's sources and what they do to the tier plan. */
#include <errno.h>
#include <string.h>

#include "pkg/json/json.h"
#include "pkg/source/config-internal.h"

enum { TIERS_MAX = 16 };

static const char *const default_fabric_tiers[] = {"leaf", "spine", "core"};

void weft_config_source_done(struct weft_config_source *source)
{
    weft_label_levels_done(&source->levels);
    weft_free(source->dump);
    weft_names_done(&source->tiers);
    weft_names_done(&source->exclude_hcas);
    weft_names_done(&source->exclude_switches);
}

/* An error of a part that knows no file: put where the configuration says it. */
static int at_node(const struct weft_json *node, const struct weft_error *why,
                   struct weft_error *err)
{
    return why->code == -ENOMEM ? weft_err_nomem(err)
                                : weft_json_error(node, err, "%.180s", why->message);
}

/* A key as a string, or as {key, tierName}. Without tierName the plan's name at the same place, if
 * there is a plan. */
static int read_level(const struct weft_json *item, const struct weft_config *config,
                      struct weft_config_source *source, struct weft_error *err)
{
    static const char *const keys[] = {"key", "tierName", NULL};
    const char *key = weft_json_string(item);
    const char *tier = NULL;
    int rc = 0;
    if (key == NULL) {
        rc = weft_json_only(item, keys, err);
        rc = rc < 0 ? rc : weft_json_get_string(item, "key", &key, err);
        rc = rc < 0 ? rc : weft_json_get_string(item, "tierName", &tier, err);
        if (rc < 0) {
            return rc;
        }
    }
    if (key == NULL) {
        return weft_json_error(item, err, "expected a label key, or key and tierName");
    }
    if (tier == NULL && source->levels.count < config->tiers.count) {
        tier = config->tiers.items[source->levels.count];
    }
    struct weft_error why = {0};
    rc = weft_label_levels_add(&source->levels, key, tier, &why);
    return rc < 0 ? at_node(item, &why, err) : 0;
}

static int read_labels(const struct weft_json *object, const struct weft_config *config,
                       struct weft_config_source *source, struct weft_error *err)
{
    static const char *const keys[] = {"preset", "keys", NULL};
    const char *preset = NULL;
    const struct weft_json *list = NULL;
    int rc = weft_json_only(object, keys, err);
    rc = rc < 0 ? rc : weft_json_get_string(object, "preset", &preset, err);
    rc = rc < 0 ? rc : weft_json_get_array(object, "keys", &list, err);
    if (rc < 0) {
        return rc;
    }
    if ((preset != NULL) == (list != NULL)) {
        return weft_json_error(object, err, "expected either preset or keys");
    }
    if (preset != NULL) {
        struct weft_error why = {0};
        rc = weft_label_preset(preset, &source->levels, &why);
        return rc < 0 ? at_node(weft_json_get(object, "preset"), &why, err) : 0;
    }
    if (weft_json_count(list) == 0 || weft_json_count(list) > WEFT_LEVELS_MAX) {
        return weft_json_error(list, err, "expected 1 to %d keys, closest first",
                               (int)WEFT_LEVELS_MAX);
    }
    for (size_t i = 0; rc >= 0 && i < weft_json_count(list); i++) {
        rc = read_level(weft_json_at(list, i), config, source, err);
    }
    return rc;
}

static int read_infiniband(const struct weft_json *object, struct weft_config_source *source,
                           struct weft_error *err)
{
    static const char *const keys[] = {"dump", "tiers", "excludeHCAs", "excludeSwitches", NULL};
    const char *dump = NULL;
    int rc = weft_json_only(object, keys, err);
    rc = rc < 0 ? rc : weft_json_get_string(object, "dump", &dump, err);
    if (rc < 0) {
        return rc;
    }
    if (dump == NULL || dump[0] == '\0') {
        return weft_json_error(object, err, "dump, the path of ibnetdiscover's output, is missing");
    }
    source->dump = weft_strdup(dump);
    if (source->dump == NULL) {
        return weft_err_nomem(err);
    }
    rc = weft_config_names(object, "tiers", TIERS_MAX, &source->tiers, err);
    rc = rc < 0 ? rc : weft_config_check_tiers(weft_json_get(object, "tiers"), &source->tiers, err);
    rc = rc < 0 ? rc
                : weft_config_names(object, "excludeHCAs", WEFT_CONFIG_GLOBS_MAX,
                                    &source->exclude_hcas, err);
    return rc < 0 ? rc
                  : weft_config_names(object, "excludeSwitches", WEFT_CONFIG_GLOBS_MAX,
                                      &source->exclude_switches, err);
}

static int read_source(const struct weft_json *item, const struct weft_config *config,
                       struct weft_config_source *source, struct weft_error *err)
{
    static const char *const keys[] = {"labels", "infiniband", NULL};
    const struct weft_json *labels = NULL;
    const struct weft_json *infiniband = NULL;
    int rc = weft_json_only(item, keys, err);
    rc = rc < 0 ? rc : weft_json_get_object(item, "labels", &labels, err);
    rc = rc < 0 ? rc : weft_json_get_object(item, "infiniband", &infiniband, err);
    if (rc < 0) {
        return rc;
    }
    if ((labels != NULL) == (infiniband != NULL)) {
        return weft_json_error(item, err, "a source is either labels or infiniband");
    }
    source->kind = labels != NULL ? WEFT_SOURCE_LABELS : WEFT_SOURCE_INFINIBAND;
    return labels != NULL ? read_labels(labels, config, source, err)
                          : read_infiniband(infiniband, source, err);
}

static bool in_plan(const struct weft_names *plan, const char *name)
{
    for (size_t t = 0; t < plan->count; t++) {
        if (strcmp(plan->items[t], name) == 0) {
            return true;
        }
    }
    return false;
}

static int need_in_plan(const struct weft_json *item, const struct weft_names *plan,
                        const char *name, struct weft_error *err)
{
    return in_plan(plan, name)
               ? 0
               : weft_json_error(item, err, "tier \"%s\" of this source is not in tiers", name);
}

static int check_source(const struct weft_json *item, const struct weft_config *config,
                        const struct weft_config_source *source, struct weft_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < source->levels.count; i++) {
        rc = need_in_plan(item, &config->tiers, source->levels.items[i].tier, err);
    }
    for (size_t i = 0; rc == 0 && i < source->tiers.count; i++) {
        rc = need_in_plan(item, &config->tiers, source->tiers.items[i], err);
    }
    return rc;
}

/* Without tiers the plan is the only source's own levels. */
static int make_plan(const struct weft_json *list, struct weft_config *config,
                     struct weft_error *err)
{
    const struct weft_config_source *source = &config->sources[0];
    if (config->source_count > 1) {
        return weft_json_error(list, err,
                               "several sources need tiers: the names of all levels, "
                               "closest first");
    }
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < source->levels.count; i++) {
        rc = weft_names_add(&config->tiers, source->levels.items[i].tier, err);
    }
    for (size_t i = 0; rc == 0 && i < source->tiers.count; i++) {
        rc = weft_names_add(&config->tiers, source->tiers.items[i], err);
    }
    for (size_t i = 0; rc == 0 && i < WEFT_ARRAY_LEN(default_fabric_tiers) &&
                       source->kind == WEFT_SOURCE_INFINIBAND && source->tiers.count == 0;
         i++) {
        rc = weft_names_add(&config->tiers, default_fabric_tiers[i], err);
    }
    return rc;
}

static int default_source(struct weft_config *config, struct weft_error *err)
{
    config->sources = weft_calloc(1, sizeof(*config->sources));
    if (config->sources == NULL) {
        return weft_err_nomem(err);
    }
    config->source_count = 1;
    return weft_label_preset("aws", &config->sources[0].levels, err);
}

int weft_config_read_sources(const struct weft_json *root, struct weft_config *config,
                             struct weft_error *err)
{
    const struct weft_json *list = NULL;
    int rc = weft_json_get_array(root, "sources", &list, err);
    if (rc < 0) {
        return rc;
    }
    if (rc == 0) {
        rc = default_source(config, err);
    } else {
        const size_t count = weft_json_count(list);
        if (count == 0 || count > WEFT_CONFIG_SOURCES_MAX) {
            return weft_json_error(list, err, "expected 1 to %d sources, best first",
                                   (int)WEFT_CONFIG_SOURCES_MAX);
        }
        config->sources = weft_calloc(count, sizeof(*config->sources));
        if (config->sources == NULL) {
            return weft_err_nomem(err);
        }
        config->source_count = count;
        for (size_t s = 0; rc >= 0 && s < count; s++) {
            rc = read_source(weft_json_at(list, s), config, &config->sources[s], err);
        }
    }
    if (rc >= 0 && config->tiers.count == 0) {
        rc = make_plan(list, config, err);
    }
    for (size_t s = 0; rc >= 0 && s < config->source_count; s++) {
        const struct weft_json *item = list != NULL ? weft_json_at(list, s) : root;
        rc = check_source(item, config, &config->sources[s], err);
    }
    return rc < 0 ? rc : 0;
}
