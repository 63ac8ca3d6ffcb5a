/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's config file, version v1. Its own reader ignores what it does not know and takes keys in
 * any case; here a key that differs in its case only is an error, as it would decide something
 * there, and one that nobody knows is a note. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "deviceplugin/options-internal.h"
#include "pkg/json/json.h"

enum { PATH_MAX_BYTES = 3 * WEFT_OPTION_KEY_MAX };

/* Objects of the file, and those that options-resources.c reads. */
static const char *const objects[] = {"version",   "flags",   "flags.plugin", "flags.gfd",
                                      "resources", "sharing", "imex"};

static bool read_apart(const char *path)
{
    return strcmp(path, "version") == 0 || strcmp(path, "resources") == 0 ||
           strcmp(path, "sharing") == 0;
}

/* What is known by that path; by_case: in any case. */
static const char *known_path(const char *path, int (*same)(const char *, const char *),
                              const struct weft_option **ret_option)
{
    *ret_option = NULL;
    for (size_t i = 0; i < weft_option_count; i++) {
        const char *nvidia = weft_option_table[i].nvidia;
        if (nvidia != NULL && same(nvidia, path) == 0) {
            *ret_option = &weft_option_table[i];
            return nvidia;
        }
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(objects); i++) {
        if (same(objects[i], path) == 0) {
            return objects[i];
        }
    }
    return NULL;
}

static int unknown(const struct weft_json *member, const char *path, struct weft_options *options,
                   struct weft_error *err)
{
    const struct weft_option *option = NULL;
    const char *meant = known_path(path, strcasecmp, &option);
    if (meant != NULL) {
        return weft_json_error(member, err, "is written %s", meant);
    }
    return weft_options_note_at(options, member,
                                "has no effect: neither NVIDIA's plugin nor weft knows it") < 0
               ? weft_err_nomem(err)
               : 0;
}

static int apply_object(const struct weft_json *object, const char *prefix,
                        struct weft_options *options, struct weft_error *err);

static int apply_member(const struct weft_json *member, const char *prefix,
                        struct weft_options *options, struct weft_error *err)
{
    char path[PATH_MAX_BYTES];
    const int len = snprintf(path, sizeof(path), "%s%s%s", prefix, prefix[0] != '\0' ? "." : "",
                             weft_json_key(member));
    const struct weft_option *option = NULL;
    const bool known = len < (int)sizeof(path) && known_path(path, strcmp, &option) != NULL;
    if (!known) {
        path[sizeof(path) - 1] = '\0';
        return unknown(member, path, options, err);
    }
    if (option != NULL) {
        return weft_option_set_node(options, option, member, err);
    }
    if (read_apart(path) || weft_json_type(member) == WEFT_JSON_NULL) {
        return 0;
    }
    if (weft_json_type(member) != WEFT_JSON_OBJECT) {
        return weft_json_error(member, err, "is no object");
    }
    return apply_object(member, path, options, err);
}

/* Three levels at most: deeper paths are not known and not followed. */
static int apply_object(const struct weft_json *object, const char *prefix,
                        struct weft_options *options, struct weft_error *err)
{
    for (size_t i = 0; i < weft_json_count(object); i++) {
        const int rc = apply_member(weft_json_at(object, i), prefix, options, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

int weft_options_apply_nvidia(const struct weft_json *root, struct weft_options *options,
                              struct weft_error *err)
{
    const struct weft_json *version = weft_json_get(root, "version");
    const char *text = weft_json_string(version);
    if (text == NULL || strcmp(text, "v1") != 0) {
        return weft_json_error(version, err, "only v1 is known");
    }
    const int rc = apply_object(root, "", options, err);
    return rc == 0 ? weft_options_nvidia_resources(root, options, err) : rc;
}
