/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration's sources and what they do to the tier plan. */
#include <errno.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/json/json.h"
#include "pkg/source/config-internal.h"

/* most bytes of one source's settings, for the comparison with those of a newer file */
enum { SOURCE_TEXT_MAX = WEFT_CONFIG_MAX };

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

/* Groups that a file declares without names for their levels: those of the plan, from "leaf" on, or
 * all of them if the plan has other words. (A switch graph's tiers get theirs when it is built: how
 * deep it is, only the scan tells.) */
static int name_tiers(const struct weft_config *config, struct weft_config_source *source,
                      struct weft_error *err)
{
    const bool unnamed = source->kind == WEFT_SOURCE_SLURM || source->kind == WEFT_SOURCE_AWS_API ||
                         source->kind == WEFT_SOURCE_OCI_IMDS;
    if (!unnamed || source->tiers.count > 0) {
        return 0;
    }
    size_t first = 0;
    while (first < config->tiers.count && strcmp(config->tiers.items[first], "leaf") != 0) {
        first++;
    }
    int rc = 0;
    for (size_t t = first < config->tiers.count ? first : 0; rc == 0 && t < config->tiers.count;
         t++) {
        rc = weft_names_add(&source->tiers, config->tiers.items[t], err);
    }
    return rc;
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
    const char *const *own = weft_source_default_tiers(source->kind);
    for (; rc == 0 && source->tiers.count == 0 && *own != NULL; own++) {
        rc = weft_names_add(&config->tiers, *own, err);
    }
    if (rc == 0 && config->tiers.count == 0) {
        return weft_json_error(list, err,
                               "a source of kind %s needs tiers: the names of all levels, closest "
                               "first",
                               weft_source_kind_name(source->kind));
    }
    return rc;
}

/* What people call it, and what it is known by when the file is read again. */
static int name_source(const struct weft_config *config, size_t index, const struct weft_json *item,
                       struct weft_error *err)
{
    struct weft_config_source *source = &config->sources[index];
    const char *kind = weft_source_kind_name(source->kind);
    unsigned nth = 1;
    for (size_t s = 0; s < index; s++) {
        nth += config->sources[s].kind == source->kind;
    }
    source->name = nth == 1 ? weft_strdup(kind) : weft_asprintf("%s-%u", kind, nth);
    weft_auto(weft_buf_done) struct weft_buf text;
    struct weft_json_writer writer;
    weft_buf_init(&text, SOURCE_TEXT_MAX);
    weft_json_writer_init(&writer, &text, 0);
    weft_json_put_node(&writer, item);
    source->text = weft_buf_steal(&text);
    return source->name != NULL && source->text != NULL ? 0 : weft_err_nomem(err);
}

static int default_source(struct weft_config *config, struct weft_error *err)
{
    config->sources = weft_calloc(1, sizeof(*config->sources));
    if (config->sources == NULL) {
        return weft_err_nomem(err);
    }
    config->source_count = 1;
    const int rc = weft_label_preset("aws", &config->sources[0].levels, err);
    return rc < 0 ? rc : name_source(config, 0, NULL, err);
}

static int read_list(const struct weft_json *list, struct weft_config *config,
                     struct weft_error *err)
{
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
    int rc = 0;
    for (size_t s = 0; rc >= 0 && s < count; s++) {
        const struct weft_json *item = weft_json_at(list, s);
        rc = weft_config_read_source(item, config, &config->sources[s], err);
        rc = rc < 0 ? rc : name_source(config, s, item, err);
    }
    return rc;
}

int weft_config_read_sources(const struct weft_json *root, struct weft_config *config,
                             struct weft_error *err)
{
    const struct weft_json *list = NULL;
    int rc = weft_json_get_array(root, "sources", &list, err);
    if (rc >= 0) {
        rc = rc == 0 ? default_source(config, err) : read_list(list, config, err);
    }
    if (rc >= 0 && config->tiers.count == 0) {
        rc = make_plan(list, config, err);
    }
    for (size_t s = 0; rc >= 0 && s < config->source_count; s++) {
        const struct weft_json *item = list != NULL ? weft_json_at(list, s) : root;
        rc = name_tiers(config, &config->sources[s], err);
        rc = rc < 0 ? rc : check_source(item, config, &config->sources[s], err);
    }
    return rc < 0 ? rc : 0;
}
