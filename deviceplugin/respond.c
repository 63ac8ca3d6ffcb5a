/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the settings. */
#include "deviceplugin/respond.h"

#include <errno.h>
#include <string.h>

#include "pkg/base/str.h"

static const struct {
    enum weft_respond_strategy strategy;
    const char *name;
} strategies[] = {
    {WEFT_RESPOND_ENVVAR, "envvar"},
    {WEFT_RESPOND_VOLUME_MOUNTS, "volume-mounts"},
    {WEFT_RESPOND_CDI_ANNOTATIONS, "cdi-annotations"},
    {WEFT_RESPOND_CDI_CRI, "cdi-cri"},
};

void weft_respond_settings_done(struct weft_respond_settings *settings)
{
    weft_free(settings->driver_root);
    weft_free(settings->dev_root);
    weft_free(settings->cdi_folder);
    weft_free(settings->cdi_hook);
    weft_free(settings->annotation_prefix);
    *settings = (struct weft_respond_settings){0};
}

/* A path that only names the root is no prefix. */
static const char *prefix_of(const char *root)
{
    return root == NULL || strcmp(root, "/") == 0 ? "" : root;
}

const char *weft_respond_driver_root(const struct weft_respond_settings *settings)
{
    return prefix_of(settings->driver_root);
}

const char *weft_respond_dev_root(const struct weft_respond_settings *settings)
{
    return prefix_of(settings->dev_root != NULL ? settings->dev_root : settings->driver_root);
}

const char *weft_respond_strategy_name(enum weft_respond_strategy strategy)
{
    for (size_t i = 0; i < WEFT_ARRAY_LEN(strategies); i++) {
        if (strategies[i].strategy == strategy) {
            return strategies[i].name;
        }
    }
    return "";
}

static unsigned bit_of(struct weft_str word)
{
    for (size_t i = 0; i < WEFT_ARRAY_LEN(strategies); i++) {
        if (weft_str_eq(word, strategies[i].name)) {
            return strategies[i].strategy;
        }
    }
    return 0;
}

int weft_respond_parse_strategies(const char *text, unsigned *ret_strategies)
{
    struct weft_str rest = weft_str(text), word;
    unsigned found = 0;
    while (weft_str_split(&rest, ',', &word)) {
        const unsigned bit = bit_of(weft_str_trim(word));
        if (bit == 0) {
            return -EINVAL;
        }
        found |= bit;
    }
    if (found == 0) {
        return -EINVAL;
    }
    *ret_strategies = found;
    return 0;
}

int weft_respond_parse_id(const char *text, enum weft_respond_id *ret_id)
{
    const bool index = strcmp(text, "index") == 0;
    if (!index && strcmp(text, "uuid") != 0) {
        return -EINVAL;
    }
    *ret_id = index ? WEFT_RESPOND_INDEX : WEFT_RESPOND_UUID;
    return 0;
}
