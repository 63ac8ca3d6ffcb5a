/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a labels source. */
#include <errno.h>

#include "pkg/json/json.h"
#include "pkg/source/config-internal.h"

static int get_missing(const struct weft_json *object, int *ret_missing, struct weft_error *err)
{
    static const char *const words[] = {[WEFT_MISSING_PAD] = "pad",
                                        [WEFT_MISSING_UNPLACED] = "unplaced",
                                        [WEFT_MISSING_FAIL] = "fail"};
    return weft_config_word(object, "missing", words, WEFT_ARRAY_LEN(words), ret_missing, err);
}

/* A key as a string, or as {key, tierName, missing}. Without tierName the plan's name at the same
 * place, if there is a plan. */
static int read_level(const struct weft_json *item, const struct weft_config *config,
                      enum weft_missing otherwise, struct weft_config_source *source,
                      struct weft_error *err)
{
    static const char *const keys[] = {"key", "tierName", "missing", NULL};
    const char *key = weft_json_string(item);
    const char *tier = NULL;
    int missing = (int)otherwise;
    int rc = 0;
    if (key == NULL) {
        rc = weft_json_only(item, keys, err);
        rc = rc < 0 ? rc : weft_json_get_string(item, "key", &key, err);
        rc = rc < 0 ? rc : weft_json_get_string(item, "tierName", &tier, err);
        rc = rc < 0 ? rc : get_missing(item, &missing, err);
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
    if (rc < 0) {
        return weft_config_at(item, &why, err);
    }
    source->levels.items[source->levels.count - 1].missing = (enum weft_missing)missing;
    return 0;
}

int weft_config_read_labels(const struct weft_json *object, const struct weft_config *config,
                            struct weft_config_source *source, struct weft_error *err)
{
    static const char *const keys[] = {"preset", "keys", "missing", NULL};
    const char *preset = NULL;
    const struct weft_json *list = NULL;
    int missing = WEFT_MISSING_PAD;
    int rc = weft_json_only(object, keys, err);
    rc = rc < 0 ? rc : get_missing(object, &missing, err);
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
        for (size_t i = 0; i < source->levels.count; i++) {
            source->levels.items[i].missing = (enum weft_missing)missing;
        }
        return rc < 0 ? weft_config_at(weft_json_get(object, "preset"), &why, err) : 0;
    }
    if (weft_json_count(list) == 0 || weft_json_count(list) > WEFT_LEVELS_MAX) {
        return weft_json_error(list, err, "expected 1 to %d keys, closest first",
                               (int)WEFT_LEVELS_MAX);
    }
    for (size_t i = 0; rc >= 0 && i < weft_json_count(list); i++) {
        rc = read_level(weft_json_at(list, i), config, (enum weft_missing)missing, source, err);
    }
    return rc;
}
