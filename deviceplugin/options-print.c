/* SPDX-License-Identifier: Apache-2.0 */
/* Options for people: as a config file, as --help, and what of them differs. Pure. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "deviceplugin/options-internal.h"
#include "pkg/base/buf.h"
#include "pkg/json/json.h"
#include "pkg/yaml/yaml.h"

/* Adds a member; without memory the whole is given up at the end (*ok). */
static struct weft_json *add(struct weft_json *parent, const char *key, enum weft_json_type type,
                             const char *text, bool *ok)
{
    struct weft_json *node =
        *ok ? weft_json_add(parent, key, type, text, text != NULL ? strlen(text) : 0, 0) : NULL;
    *ok = node != NULL;
    return node;
}

static void add_list(struct weft_json *parent, const char *key, enum weft_json_type type,
                     const char *text, bool *ok)
{
    struct weft_json *list = add(parent, key, WEFT_JSON_ARRAY, NULL, ok);
    while (*ok && *text != '\0') {
        char item[WEFT_OPTION_KEY_MAX];
        const size_t len = strcspn(text, ",");
        (void)snprintf(item, sizeof(item), "%.*s", (int)len, text);
        (void)add(list, NULL, type, item, ok);
        text += len + (text[len] == ',' ? 1 : 0);
    }
}

static void add_option(struct weft_json *parent, const char *key, const struct weft_option *option,
                       const char *text, bool *ok)
{
    if (option->kind == WEFT_OPTION_WORDS) {
        add_list(parent, key, WEFT_JSON_STRING, text, ok);
    } else if (option->kind == WEFT_OPTION_CHANNELS) {
        add_list(parent, key, WEFT_JSON_INT, text, ok);
    } else {
        const enum weft_json_type type = option->kind == WEFT_OPTION_BOOL     ? WEFT_JSON_BOOL
                                         : option->kind == WEFT_OPTION_NUMBER ? WEFT_JSON_INT
                                                                              : WEFT_JSON_STRING;
        (void)add(parent, key, type, text, ok);
    }
}

static void add_shares(struct weft_json *parent, const struct weft_pool_settings *pools, bool *ok)
{
    struct weft_json *list =
        pools->share_count > 0 ? add(parent, "resources", WEFT_JSON_ARRAY, NULL, ok) : NULL;
    for (size_t i = 0; *ok && i < pools->share_count; i++) {
        const struct weft_pool_share *share = &pools->shares[i];
        char replicas[16];
        (void)snprintf(replicas, sizeof(replicas), "%" PRIu32, share->replicas);
        struct weft_json *entry = add(list, NULL, WEFT_JSON_OBJECT, NULL, ok);
        (void)add(entry, "name", WEFT_JSON_STRING, share->resource, ok);
        (void)add(entry, "replicas", WEFT_JSON_INT, replicas, ok);
        if (share->rename != NULL) {
            (void)add(entry, "rename", WEFT_JSON_STRING, share->rename, ok);
        }
    }
}

static void add_renames(struct weft_json *root, const struct weft_pool_settings *pools, bool *ok)
{
    struct weft_json *list =
        pools->rename_count > 0 ? add(root, "renames", WEFT_JSON_ARRAY, NULL, ok) : NULL;
    for (size_t i = 0; *ok && i < pools->rename_count; i++) {
        const struct weft_pool_rename *rename = &pools->renames[i];
        struct weft_json *entry = add(list, NULL, WEFT_JSON_OBJECT, NULL, ok);
        (void)add(entry, "pattern", WEFT_JSON_STRING, rename->pattern, ok);
        (void)add(entry, "resource", WEFT_JSON_STRING, rename->resource, ok);
        (void)add(entry, "partitions", WEFT_JSON_BOOL, rename->partitions ? "true" : "false", ok);
    }
}

/* The object for a group's members: the table has them together. */
static struct weft_json *group_of(struct weft_json *root, const char *own,
                                  const struct weft_options *options, char *group,
                                  struct weft_json *now, bool *ok)
{
    const size_t len = strcspn(own, ".");
    if (own[len] == '\0') {
        return root;
    }
    if (strlen(group) == len && strncmp(group, own, len) == 0) {
        return now;
    }
    (void)snprintf(group, WEFT_OPTION_KEY_MAX, "%.*s", (int)len, own);
    struct weft_json *object = add(root, group, WEFT_JSON_OBJECT, NULL, ok);
    if (*ok && strcmp(group, "sharing") == 0) {
        add_shares(object, &options->pools, ok);
    }
    return object;
}

static void add_all(struct weft_json *root, const struct weft_options *options, bool *ok)
{
    char group[WEFT_OPTION_KEY_MAX] = "";
    struct weft_json *object = NULL;
    (void)add(root, "apiVersion", WEFT_JSON_STRING, "weft.dev/v1alpha1", ok);
    (void)add(root, "kind", WEFT_JSON_STRING, "DevicePluginConfig", ok);
    for (size_t i = 0; *ok && i < weft_option_count; i++) {
        const struct weft_option *option = &weft_option_table[i];
        char room[WEFT_OPTION_TEXT_MAX];
        const char *text = option->own != NULL ? weft_option_text(options, option, room) : NULL;
        if (text == NULL) {
            continue;
        }
        struct weft_json *parent = group_of(root, option->own, options, group, object, ok);
        object = parent != root ? parent : object;
        const char *dot = strchr(option->own, '.');
        add_option(parent, dot != NULL ? dot + 1 : option->own, option, text, ok);
    }
    add_renames(root, &options->pools, ok);
}

int weft_options_write(const struct weft_options *options, struct weft_buf *buf)
{
    weft_auto(weft_json_free) struct weft_json *root = weft_json_new(WEFT_JSON_OBJECT, "options");
    bool ok = root != NULL;
    if (ok) {
        add_all(root, options, &ok);
    }
    if (ok) {
        weft_yaml_write(root, buf);
    }
    return ok ? buf->status : -ENOMEM;
}

/* ---- help ---- */

enum { HELP_COLUMN = 30 };

void weft_options_help(struct weft_buf *buf)
{
    for (size_t i = 0; i < weft_option_count; i++) {
        const struct weft_option *option = &weft_option_table[i];
        if (option->flags[0] == NULL || option->kind == WEFT_OPTION_IGNORED) {
            continue;
        }
        const char *help = option->help;
        char name[HELP_COLUMN * 2];
        const char *colon = strstr(help, ": ");
        const bool value = option->kind != WEFT_OPTION_BOOL && colon != NULL;
        const int len = snprintf(name, sizeof(name), "  %s%s%.*s", option->flags[0],
                                 value ? " " : "", value ? (int)(colon - help) : 0, help);
        help = value ? colon + 2 : help;
        (void)weft_buf_printf(buf, "%-*s", HELP_COLUMN - 1, name);
        (void)weft_buf_puts(buf, len < HELP_COLUMN - 1 ? " " : "\n");
        for (bool first = len < HELP_COLUMN - 1; *help != '\0'; first = false) {
            const size_t line = strcspn(help, "\n");
            (void)weft_buf_printf(buf, "%*s%.*s", first ? 0 : HELP_COLUMN, "", (int)line, help);
            help += line + (help[line] == '\n' ? 1 : 0);
            (void)weft_buf_puts(buf, *help != '\0' ? "\n" : "");
        }
        (void)weft_buf_printf(buf, option->fallback != NULL ? " (%s)\n" : "\n", option->fallback);
    }
}

/* ---- differences ---- */

const char *weft_options_fixed_difference(const struct weft_options *a,
                                          const struct weft_options *b)
{
    for (size_t i = 0; i < weft_option_count; i++) {
        const struct weft_option *option = &weft_option_table[i];
        char x[WEFT_OPTION_TEXT_MAX], y[WEFT_OPTION_TEXT_MAX];
        if (!option->fixed || option->own == NULL) {
            continue;
        }
        const char *now = weft_option_text(a, option, x);
        const char *then = weft_option_text(b, option, y);
        if ((now == NULL) != (then == NULL) || (now != NULL && strcmp(now, then) != 0)) {
            return option->own;
        }
    }
    return NULL;
}
