/* SPDX-License-Identifier: Apache-2.0 */
/* Reads ControllerConfig field by field; config-sources.c reads its sources. */
#include "pkg/source/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/file.h"
#include "pkg/base/str.h"
#include "pkg/fabric/selector.h"
#include "pkg/json/json.h"
#include "pkg/source/config-internal.h"
#include "pkg/source/source.h"
#include "pkg/yaml/yaml.h"

enum { TIERS_MAX = 16, TIER_NAME_MAX = 32, WORDS_TEXT_MAX = 128 };

/* CPU nodes of the control plane stay out unless the file says otherwise */
#define DEFAULT_SELECTOR "node-role.kubernetes.io/control-plane notin ()"

void weft_names_done(struct weft_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        weft_free(names->items[i]);
    }
    weft_free(names->items);
    *names = (struct weft_names){0};
}

int weft_names_add(struct weft_names *names, const char *text, struct weft_error *err)
{
    void *list = weft_reallocarray(names->items, names->count + 1, sizeof(char *));
    if (list == NULL) {
        return weft_err_nomem(err);
    }
    names->items = list;
    names->items[names->count] = weft_strdup(text);
    if (names->items[names->count] == NULL) {
        return weft_err_nomem(err);
    }
    names->count++;
    return 0;
}

void weft_config_free(struct weft_config *config)
{
    if (config == NULL) {
        return;
    }
    for (size_t s = 0; s < config->source_count; s++) {
        weft_config_source_done(&config->sources[s]);
    }
    weft_free(config->sources);
    weft_names_done(&config->tiers);
    weft_node_selector_free(config->node_selector);
    weft_free(config->node_selector_text);
    weft_free(config->settle.epoch_file);
    weft_free(config);
}

int weft_config_word(const struct weft_json *object, const char *key, const char *const *words,
                     size_t count, int *ret_index, struct weft_error *err)
{
    const char *text = NULL;
    const int rc = weft_json_get_string(object, key, &text, err);
    if (rc <= 0) {
        return rc;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], text) == 0) {
            *ret_index = (int)i;
            return 1;
        }
    }
    char list[WORDS_TEXT_MAX] = "";
    for (size_t i = 0, len = 0; i < count && len < sizeof(list); i++) {
        const int n =
            snprintf(list + len, sizeof(list) - len, "%s%s", i > 0 ? " nor " : "", words[i]);
        len += n > 0 ? (size_t)n : 0;
    }
    return weft_json_error(weft_json_get(object, key), err, "\"%.40s\" is neither %s", text, list);
}

int weft_config_duration(const struct weft_json *object, const char *key, int64_t *ret_ns,
                         struct weft_error *err)
{
    const char *text = NULL;
    const int rc = weft_json_get_string(object, key, &text, err);
    if (rc <= 0) {
        return rc;
    }
    int64_t ns = 0;
    if (weft_parse_duration(weft_str(text), &ns) < 0 || ns < 0) {
        return weft_json_error(weft_json_get(object, key), err,
                               "\"%.40s\" is not a duration such as 500ms, 10s, 5m or 1h", text);
    }
    *ret_ns = ns;
    return 1;
}

/* "20%" */
int weft_config_percent(const struct weft_json *object, const char *key, unsigned *ret_percent,
                        struct weft_error *err)
{
    const char *text = NULL;
    const int rc = weft_json_get_string(object, key, &text, err);
    if (rc <= 0) {
        return rc;
    }
    struct weft_str number = weft_str(text);
    uint64_t percent = 0;
    if (!weft_str_ends(number, "%") ||
        weft_parse_u64((struct weft_str){number.data, number.len - 1}, 100, &percent) < 0) {
        return weft_json_error(weft_json_get(object, key), err,
                               "\"%.40s\" is not a percentage from \"0%%\" to \"100%%\"", text);
    }
    *ret_percent = (unsigned)percent;
    return 1;
}

int weft_config_unsigned(const struct weft_json *object, const char *key, int64_t min, int64_t max,
                         unsigned *ret_value, struct weft_error *err)
{
    int64_t value = *ret_value;
    const int rc = weft_json_get_int(object, key, min, max, &value, err);
    if (rc > 0) {
        *ret_value = (unsigned)value;
    }
    return rc;
}

/* A member object with only these keys; *ret is NULL if it is absent. */
static int get_section(const struct weft_json *root, const char *key, const char *const *keys,
                       const struct weft_json **ret, struct weft_error *err)
{
    *ret = NULL;
    const int rc = weft_json_get_object(root, key, ret, err);
    return rc <= 0 ? rc : weft_json_only(*ret, keys, err);
}

static int read_debounce(const struct weft_json *root, struct weft_config *config,
                         struct weft_error *err)
{
    static const char *const keys[] = {"quiet", "max", NULL};
    const struct weft_json *section = NULL;
    int rc = get_section(root, "debounce", keys, &section, err);
    rc = rc < 0 ? rc : weft_config_duration(section, "quiet", &config->debounce.quiet_ns, err);
    rc = rc < 0 ? rc : weft_config_duration(section, "max", &config->debounce.max_ns, err);
    if (rc >= 0 && config->debounce.max_ns < config->debounce.quiet_ns) {
        return weft_json_error(section, err, "max is shorter than quiet");
    }
    return rc;
}

static int read_hold_down(const struct weft_json *root, struct weft_config *config,
                          struct weft_error *err)
{
    static const char *const keys[] = {"snapshots", "period", "forgetAfter", NULL};
    const struct weft_json *section = NULL;
    int rc = get_section(root, "holdDown", keys, &section, err);
    rc = rc < 0 ? rc
                : weft_config_unsigned(section, "snapshots", 1, 1000, &config->hold_down.snapshots,
                                       err);
    rc = rc < 0 ? rc : weft_config_duration(section, "period", &config->hold_down.period_ns, err);
    const char *forget = weft_json_string(weft_json_get(section, "forgetAfter"));
    if (rc < 0 || (forget != NULL && strcmp(forget, "never") == 0)) {
        return rc;
    }
    return weft_config_duration(section, "forgetAfter", &config->hold_down.forget_after_ns, err);
}

static int read_settle(const struct weft_json *root, struct weft_config *config,
                       struct weft_error *err)
{
    static const char *const keys[] = {"snapshots", "epochFile", NULL};
    const struct weft_json *section = NULL;
    int rc = get_section(root, "settle", keys, &section, err);
    rc = rc < 0
             ? rc
             : weft_config_unsigned(section, "snapshots", 1, 1000, &config->settle.snapshots, err);
    return rc < 0 ? rc : weft_config_text(section, "epochFile", &config->settle.epoch_file, err);
}

static int read_brakes(const struct weft_json *root, struct weft_config *config,
                       struct weft_error *err)
{
    static const char *const keys[] = {"lost", "moved", "minNodes", NULL};
    const struct weft_json *section = NULL;
    int rc = get_section(root, "brakes", keys, &section, err);
    rc = rc < 0 ? rc : weft_config_percent(section, "lost", &config->brakes.lost_percent, err);
    rc = rc < 0 ? rc : weft_config_percent(section, "moved", &config->brakes.moved_percent, err);
    return rc < 0 ? rc
                  : weft_config_unsigned(section, "minNodes", 0, 1000000, &config->brakes.min_nodes,
                                         err);
}

static int read_outputs(const struct weft_json *root, struct weft_config *config,
                        struct weft_error *err)
{
    static const char *const keys[] = {"hyperNodes", "labels", "slurm", "kueue",
                                       "kai",        "dot",    NULL};
    bool *const values[] = {&config->outputs.hyper_nodes, &config->outputs.labels,
                            &config->outputs.slurm,       &config->outputs.kueue,
                            &config->outputs.kai,         &config->outputs.dot};
    const struct weft_json *section = NULL;
    int rc = get_section(root, "outputs", keys, &section, err);
    for (size_t i = 0; rc >= 0 && i < WEFT_ARRAY_LEN(values); i++) {
        rc = weft_json_get_bool(section, keys[i], values[i], err);
    }
    return rc;
}

static int read_words(const struct weft_json *root, struct weft_config *config,
                      struct weft_error *err)
{
    static const char *const crossings[] = {
        [WEFT_ON_CROSS_DOMAIN_WINS] = "domain-wins",
        [WEFT_ON_CROSS_SPLIT] = "split",
        [WEFT_ON_CROSS_LIFT] = "lift",
    };
    static const char *const pads[] = {"inherit", "singleton"};
    static const char *const unplaced[] = {"omit", "singleton"};
    int word = (int)config->pad;
    int rc = weft_config_word(root, "pad", pads, WEFT_ARRAY_LEN(pads), &word, err);
    config->pad = word == 0 ? WEFT_PAD_INHERIT : WEFT_PAD_SINGLETON;
    word = (int)config->unplaced;
    rc = rc < 0
             ? rc
             : weft_config_word(root, "unplaced", unplaced, WEFT_ARRAY_LEN(unplaced), &word, err);
    config->unplaced = word == 0 ? WEFT_UNPLACED_OMIT : WEFT_UNPLACED_SINGLETON;
    word = (int)config->on_cross;
    rc = rc < 0
             ? rc
             : weft_config_word(root, "onCross", crossings, WEFT_ARRAY_LEN(crossings), &word, err);
    config->on_cross = (enum weft_on_cross)word;
    return rc < 0 ? rc : weft_json_get_bool(root, "paused", &config->paused, err);
}

static int read_selector(const struct weft_json *root, struct weft_config *config,
                         struct weft_error *err)
{
    const char *text = DEFAULT_SELECTOR;
    const int rc = weft_json_get_string(root, "nodeSelector", &text, err);
    if (rc < 0) {
        return rc;
    }
    struct weft_error why = {0};
    config->node_selector_text = weft_strdup(text);
    if (config->node_selector_text == NULL) {
        return weft_err_nomem(err);
    }
    if (weft_node_selector_parse(text, &config->node_selector, &why) < 0) {
        return weft_config_at(weft_json_get(root, "nodeSelector"), &why, err);
    }
    return 0;
}

int weft_config_words(const struct weft_json *list, size_t max, struct weft_names *names,
                      struct weft_error *err)
{
    if (weft_json_type(list) != WEFT_JSON_ARRAY || weft_json_count(list) == 0 ||
        weft_json_count(list) > max) {
        return weft_json_error(list, err, "expected 1 to %zu names", max);
    }
    for (size_t i = 0; i < weft_json_count(list); i++) {
        const char *text = weft_json_string(weft_json_at(list, i));
        if (text == NULL || text[0] == '\0') {
            return weft_json_error(weft_json_at(list, i), err, "expected a name");
        }
        const int added = weft_names_add(names, text, err);
        if (added < 0) {
            return added;
        }
    }
    return 1;
}

int weft_config_names(const struct weft_json *object, const char *key, size_t max,
                      struct weft_names *names, struct weft_error *err)
{
    const struct weft_json *list = NULL;
    const int rc = weft_json_get_array(object, key, &list, err);
    return rc <= 0 ? rc : weft_config_words(list, max, names, err);
}

int weft_config_text(const struct weft_json *object, const char *key, char **ret_text,
                     struct weft_error *err)
{
    const char *text = NULL;
    const int rc = weft_json_get_string(object, key, &text, err);
    if (rc <= 0) {
        return rc;
    }
    if (text[0] == '\0') {
        return weft_json_error(weft_json_get(object, key), err, "is empty");
    }
    *ret_text = weft_strdup(text);
    return *ret_text != NULL ? 1 : weft_err_nomem(err);
}

int weft_config_at(const struct weft_json *node, const struct weft_error *why,
                   struct weft_error *err)
{
    return why->code == -ENOMEM ? weft_err_nomem(err)
                                : weft_json_error(node, err, "%.180s", why->message);
}

int weft_config_check_tiers(const struct weft_json *list, const struct weft_names *tiers,
                            struct weft_error *err)
{
    for (size_t i = 0; i < tiers->count; i++) {
        if (!weft_dns_label_valid(tiers->items[i]) || strlen(tiers->items[i]) > TIER_NAME_MAX) {
            return weft_json_error(weft_json_at(list, i), err,
                                   "tier name \"%.80s\" is not a lowercase DNS label of at most %d "
                                   "characters",
                                   tiers->items[i], (int)TIER_NAME_MAX);
        }
        for (size_t j = 0; j < i; j++) {
            if (strcmp(tiers->items[i], tiers->items[j]) == 0) {
                return weft_json_error(weft_json_at(list, i), err, "tier %s is there twice",
                                       tiers->items[i]);
            }
        }
    }
    return 0;
}

static int read_head(const struct weft_json *root, struct weft_error *err)
{
    static const char *const keys[] = {
        "apiVersion", "kind",     "metadata", "paused", "nodeSelector", "tiers",    "sources",
        "pad",        "unplaced", "onCross",  "settle", "debounce",     "holdDown", "brakes",
        "moveDelay",  "outputs",  NULL};
    /* both must be there: an empty file, as an editor leaves it for a moment, is no configuration
     * that sets everything back to defaults */
    const char *version = "none";
    const char *kind = "none";
    int rc = weft_json_only(root, keys, err);
    rc = rc < 0 ? rc : weft_json_get_string(root, "apiVersion", &version, err);
    rc = rc < 0 ? rc : weft_json_get_string(root, "kind", &kind, err);
    if (rc < 0) {
        return rc;
    }
    if (strcmp(version, "weft.dev/v1alpha1") != 0 || strcmp(kind, "ControllerConfig") != 0) {
        return weft_json_error(root, err,
                               "expected apiVersion weft.dev/v1alpha1 and kind "
                               "ControllerConfig, not %.60s and %.60s",
                               version, kind);
    }
    return 0;
}

static int read_all(const struct weft_json *root, struct weft_config *config,
                    struct weft_error *err)
{
    int rc = read_head(root, err);
    rc = rc < 0 ? rc : read_words(root, config, err);
    rc = rc < 0 ? rc : read_selector(root, config, err);
    rc = rc < 0 ? rc : weft_config_names(root, "tiers", TIERS_MAX, &config->tiers, err);
    rc = rc < 0 ? rc : weft_config_check_tiers(weft_json_get(root, "tiers"), &config->tiers, err);
    rc = rc < 0 ? rc : weft_config_read_sources(root, config, err);
    rc = rc < 0 ? rc : read_settle(root, config, err);
    rc = rc < 0 ? rc : read_debounce(root, config, err);
    rc = rc < 0 ? rc : read_hold_down(root, config, err);
    rc = rc < 0 ? rc : weft_config_duration(root, "moveDelay", &config->move_delay_ns, err);
    rc = rc < 0 ? rc : read_brakes(root, config, err);
    return rc < 0 ? rc : read_outputs(root, config, err);
}

static struct weft_config *config_new(void)
{
    struct weft_config *config = weft_calloc(1, sizeof(*config));
    if (config != NULL) {
        const int64_t second = INT64_C(1000000000);
        config->debounce.quiet_ns = second;
        config->debounce.max_ns = 10 * second;
        config->settle.snapshots = 1;
        config->hold_down.snapshots = 3;
        config->hold_down.period_ns = 600 * second;
        config->hold_down.forget_after_ns = WEFT_CONFIG_NEVER;
        config->move_delay_ns = 600 * second;
        config->brakes.lost_percent = 20;
        config->brakes.moved_percent = 20;
        config->brakes.min_nodes = 8;
        config->outputs.hyper_nodes = true;
        config->outputs.labels = true;
    }
    return config;
}

int weft_config_parse(const char *text, size_t len, const char *name,
                      struct weft_config **ret_config, struct weft_error *err)
{
    weft_auto(weft_config_free) struct weft_config *config = config_new();
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    if (config == NULL) {
        return weft_err_nomem(err);
    }
    if (len > WEFT_CONFIG_MAX) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "%s: larger than %d KiB", name,
                            (int)(WEFT_CONFIG_MAX >> 10));
    }
    int rc = weft_yaml_parse(text, len, name, &root, err);
    rc = rc < 0 ? rc : read_all(root, config, err);
    if (rc < 0) {
        return rc;
    }
    *ret_config = weft_steal(&config);
    return 0;
}

int weft_config_load(const char *path, struct weft_config **ret_config, struct weft_error *err)
{
    weft_autofree char *text = NULL;
    size_t len = 0;
    const int rc = weft_file_read(path, WEFT_CONFIG_MAX, &text, &len, err);
    return rc < 0 ? rc : weft_config_parse(text, len, path, ret_config, err);
}
