/* SPDX-License-Identifier: Apache-2.0 */
/* The config file: our own kind, or NVIDIA's version v1. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "deviceplugin/options-internal.h"
#include "pkg/base/buf.h"
#include "pkg/json/json.h"
#include "pkg/yaml/yaml.h"

enum { KEYS_MAX = 64 /* members of one object that are known */ };

/* ---- a value of a file as text ---- */

static int append_item(const struct weft_json *item, struct weft_buf *text, struct weft_error *err)
{
    if (weft_json_type(item) == WEFT_JSON_INT) {
        return weft_buf_printf(text, "%" PRId64, weft_json_int(item, 0));
    }
    const char *string = weft_json_string(item);
    return string != NULL ? weft_buf_puts(text, string)
                          : weft_json_error(item, err, "is neither a word nor a number");
}

/* A list is its items with commas between them. */
static int append_list(const struct weft_json *list, struct weft_buf *text, struct weft_error *err)
{
    for (size_t i = 0; i < weft_json_count(list); i++) {
        int rc = i > 0 ? weft_buf_putc(text, ',') : 0;
        rc = rc == 0 ? append_item(weft_json_at(list, i), text, err) : rc;
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* Which types of a file's values an option takes: a quoted "true" is text, as Go's reader has it.
 */
static bool takes(const struct weft_option *option, enum weft_json_type type)
{
    const enum weft_option_kind kind = option->kind;
    switch (type) {
    case WEFT_JSON_ARRAY:
        return kind == WEFT_OPTION_WORDS || kind == WEFT_OPTION_CHANNELS;
    case WEFT_JSON_BOOL:
        return kind == WEFT_OPTION_BOOL || kind == WEFT_OPTION_IGNORED;
    case WEFT_JSON_INT:
        return kind == WEFT_OPTION_NUMBER || kind == WEFT_OPTION_IGNORED;
    case WEFT_JSON_STRING:
        return kind != WEFT_OPTION_BOOL && kind != WEFT_OPTION_NUMBER &&
               kind != WEFT_OPTION_CHANNELS;
    case WEFT_JSON_NULL:
    case WEFT_JSON_DOUBLE:
    case WEFT_JSON_OBJECT:
    case WEFT_JSON_TYPE_COUNT:
        break;
    }
    return false;
}

static int append_value(const struct weft_option *option, const struct weft_json *node,
                        struct weft_buf *text, struct weft_error *err)
{
    const enum weft_json_type type = weft_json_type(node);
    if (!takes(option, type)) {
        return weft_json_error(node, err, "is not %s%s",
                               option->allowed != NULL ? option->allowed : "text",
                               type == WEFT_JSON_STRING ? " (without quotes)" : "");
    }
    if (type == WEFT_JSON_ARRAY) {
        return append_list(node, text, err);
    }
    if (type == WEFT_JSON_BOOL) {
        return weft_buf_puts(text, weft_json_bool(node, false) ? "true" : "false");
    }
    return append_item(node, text, err);
}

int weft_options_note_at(struct weft_options *options, const struct weft_json *node,
                         const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    struct weft_error place = {0};
    (void)weft_json_error(node, &place, "%s", text);
    return weft_options_note(options, "%s", place.message);
}

int weft_option_set_node(struct weft_options *options, const struct weft_option *option,
                         const struct weft_json *node, struct weft_error *err)
{
    if (weft_json_type(node) == WEFT_JSON_NULL) {
        return 0;
    }
    weft_auto(weft_buf_done) struct weft_buf text;
    weft_buf_init(&text, WEFT_OPTION_TEXT_MAX);
    int rc = append_value(option, node, &text, err);
    if (rc == -ENOMEM) {
        return weft_err_nomem(err);
    }
    if (rc == -EFBIG) {
        return weft_json_error(node, err, "is longer than %d bytes", (int)WEFT_OPTION_TEXT_MAX);
    }
    if (rc < 0) {
        return rc;
    }
    struct weft_error why = {0};
    const size_t notes = options->note_count;
    rc = weft_option_set(options, option, weft_buf_text(&text), &why);
    if (rc == -ENOMEM) {
        return weft_err_nomem(err);
    }
    if (rc < 0) {
        return weft_json_error(node, err, "%s", why.message);
    }
    if (options->note_count == notes) {
        return 0;
    }
    weft_autofree char *note = options->notes[--options->note_count];
    return weft_options_note_at(options, node, "%s", note) < 0 ? weft_err_nomem(err) : 0;
}

/* ---- our own file ---- */

/* Is path "<prefix>.<key>" or, with prefix "", "<key>" with anything after it? Gives the key. */
static bool member_of(const char *path, const char *prefix, char *key)
{
    const size_t len = strlen(prefix);
    if (len > 0 && (strncmp(path, prefix, len) != 0 || path[len] != '.')) {
        return false;
    }
    const char *rest = len > 0 ? path + len + 1 : path;
    (void)snprintf(key, WEFT_OPTION_KEY_MAX, "%.*s", (int)strcspn(rest, "."), rest);
    return true;
}

/* Members that an object of the file may have: those of the table and these others. */
static int only_known(const struct weft_json *object, const char *prefix, const char *const *others,
                      struct weft_error *err)
{
    char room[KEYS_MAX][WEFT_OPTION_KEY_MAX];
    const char *keys[2 * KEYS_MAX] = {NULL};
    size_t count = 0, used = 0;
    for (; others[count] != NULL; count++) {
        keys[count] = others[count];
    }
    for (size_t i = 0; i < weft_option_count && used < KEYS_MAX; i++) {
        const char *own = weft_option_table[i].own;
        if (own != NULL && member_of(own, prefix, room[used]) &&
            (used == 0 || strcmp(room[used - 1], room[used]) != 0)) {
            keys[count++] = room[used++];
        }
    }
    return weft_json_only(object, keys, err);
}

/* "log.level" below the root: 1 and the node, 0 if it is not there. */
static int find_node(const struct weft_json *root, const char *path, const struct weft_json **ret,
                     struct weft_error *err)
{
    const char *dot = strchr(path, '.');
    if (dot == NULL) {
        *ret = weft_json_get(root, path);
        return *ret != NULL ? 1 : 0;
    }
    char group[WEFT_OPTION_KEY_MAX];
    (void)snprintf(group, sizeof(group), "%.*s", (int)(dot - path), path);
    const struct weft_json *object = NULL;
    const int rc = weft_json_get_object(root, group, &object, err);
    if (rc <= 0) {
        return rc;
    }
    *ret = weft_json_get(object, dot + 1);
    return *ret != NULL ? 1 : 0;
}

static int check_groups(const struct weft_json *root, struct weft_error *err)
{
    static const char *const top[] = {"apiVersion", "kind", "renames", NULL};
    static const char *const none[] = {NULL};
    static const char *const sharing[] = {"resources", NULL};
    int rc = only_known(root, "", top, err);
    for (size_t i = 0; rc == 0 && i < weft_option_count; i++) {
        const char *own = weft_option_table[i].own;
        const char *dot = own != NULL ? strchr(own, '.') : NULL;
        if (dot == NULL) {
            continue;
        }
        char group[WEFT_OPTION_KEY_MAX];
        (void)snprintf(group, sizeof(group), "%.*s", (int)(dot - own), own);
        const struct weft_json *object = NULL;
        rc = weft_json_get_object(root, group, &object, err);
        rc = rc <= 0
                 ? rc
                 : only_known(object, group, strcmp(group, "sharing") == 0 ? sharing : none, err);
    }
    return rc;
}

static int apply_own(const struct weft_json *root, struct weft_options *options,
                     struct weft_error *err)
{
    const char *version = weft_json_string(weft_json_get(root, "apiVersion"));
    if (version == NULL || strcmp(version, "weft.dev/v1alpha1") != 0) {
        return weft_json_error(root, err, "apiVersion is not weft.dev/v1alpha1");
    }
    int rc = check_groups(root, err);
    for (size_t i = 0; rc == 0 && i < weft_option_count; i++) {
        const struct weft_option *option = &weft_option_table[i];
        const struct weft_json *node = NULL;
        rc = option->own != NULL ? find_node(root, option->own, &node, err) : 0;
        rc = rc > 0 ? weft_option_set_node(options, option, node, err) : rc;
    }
    return rc == 0 ? weft_options_own_resources(root, &options->pools, err) : rc;
}

int weft_options_apply_file(const char *text, size_t len, const char *name,
                            struct weft_options *options, struct weft_error *err)
{
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    const int rc = weft_yaml_parse(text, len, name, &root, err);
    if (rc < 0) {
        return rc;
    }
    const char *kind = weft_json_string(weft_json_get(root, "kind"));
    if (kind != NULL && strcmp(kind, "DevicePluginConfig") == 0) {
        return apply_own(root, options, err);
    }
    if (kind == NULL && weft_json_get(root, "version") != NULL) {
        return weft_options_apply_nvidia(root, options, err);
    }
    return weft_json_error(root, err, "neither kind: DevicePluginConfig nor NVIDIA's version: v1");
}
