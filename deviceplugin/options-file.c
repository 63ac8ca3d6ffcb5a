/* SPDX-License-Identifier: Apache-2.0 */
/* The config file: our own kind, or NVIDIA's version v1. */
#include <errno.h>
#include <string.h>

#include "deviceplugin/options-internal.h"
#include "pkg/json/json.h"
#include "pkg/yaml/yaml.h"

static int set_member(const struct weft_json *object, const char *key, enum weft_option option,
                      struct weft_options *options, struct weft_error *err)
{
    const char *value = NULL;
    int rc = weft_json_get_string(object, key, &value, err);
    if (rc > 0) {
        struct weft_error why = {0};
        rc = weft_option_set(options, option, value, &why);
        rc = rc < 0 ? weft_json_error(weft_json_get(object, key), err, "%s", why.message) : 0;
    }
    return rc;
}

static int apply_own(const struct weft_json *root, struct weft_options *options,
                     struct weft_error *err)
{
    static const char *const keys[] = {
        "apiVersion", "kind",   "machine",       "resource",      "pluginDir", "hostRoot",
        "driverRoot", "vendor", "ignoredErrors", "driverTimeout", "rescan",    "allocationPolicy",
        "listen",     "log",    "partitions",    "sharing",       "renames",   NULL};
    static const struct {
        const char *key;
        enum weft_option option;
    } members[] = {
        {"machine", WEFT_OPTION_MACHINE},
        {"resource", WEFT_OPTION_RESOURCE},
        {"pluginDir", WEFT_OPTION_PLUGIN_DIR},
        {"hostRoot", WEFT_OPTION_HOST_ROOT},
        {"driverRoot", WEFT_OPTION_DRIVER_ROOT},
        {"vendor", WEFT_OPTION_VENDOR},
        {"ignoredErrors", WEFT_OPTION_IGNORED_ERRORS},
        {"driverTimeout", WEFT_OPTION_DRIVER_TIMEOUT},
        {"rescan", WEFT_OPTION_RESCAN},
        {"allocationPolicy", WEFT_OPTION_POLICY},
        {"listen", WEFT_OPTION_LISTEN},
        {"partitions", WEFT_OPTION_PARTITIONS},
    };
    static const char *const log_keys[] = {"format", "level", NULL};
    const char *version = weft_json_string(weft_json_get(root, "apiVersion"));
    if (version == NULL || strcmp(version, "weft.dev/v1alpha1") != 0) {
        return weft_json_error(root, err, "apiVersion is not weft.dev/v1alpha1");
    }
    int rc = weft_json_only(root, keys, err);
    for (size_t i = 0; rc == 0 && i < WEFT_ARRAY_LEN(members); i++) {
        rc = set_member(root, members[i].key, members[i].option, options, err);
    }
    rc = rc == 0 ? weft_options_own_resources(root, &options->pools, err) : rc;
    const struct weft_json *log = NULL;
    rc = rc == 0 ? weft_json_get_object(root, "log", &log, err) : rc;
    if (rc <= 0) {
        return rc;
    }
    rc = weft_json_only(log, log_keys, err);
    rc = rc == 0 ? set_member(log, "format", WEFT_OPTION_LOG_FORMAT, options, err) : rc;
    return rc == 0 ? set_member(log, "level", WEFT_OPTION_LOG_LEVEL, options, err) : rc;
}

/* ---- NVIDIA's file ---- */

/* A field of NVIDIA's that this plugin honours only with the value that says what it does anyway;
 * NULL: with any value, as it decides nothing here. */
struct fixed_field {
    const char *key, *value;
};

static int check_fixed(const struct weft_json *object, const struct fixed_field *fields,
                       struct weft_error *err)
{
    for (size_t i = 0; i < weft_json_count(object); i++) {
        const struct weft_json *member = weft_json_at(object, i);
        const struct fixed_field *field = fields;
        while (field->key != NULL && strcmp(field->key, weft_json_key(member)) != 0) {
            field++;
        }
        if (field->key == NULL) {
            return weft_json_error(member, err, "this field of NVIDIA's file is not supported");
        }
        const struct weft_json *value =
            weft_json_type(member) == WEFT_JSON_ARRAY && weft_json_count(member) == 1
                ? weft_json_at(member, 0)
                : member;
        const char *text = weft_json_type(value) == WEFT_JSON_BOOL
                               ? (weft_json_bool(value, false) ? "true" : "false")
                               : weft_json_string(value);
        if (field->value != NULL && (text == NULL || strcmp(text, field->value) != 0)) {
            return weft_json_error(member, err, "only %s is supported", field->value);
        }
    }
    return 0;
}

/* Members that are objects of their own are checked apart; failOnInitError decides nothing here:
 * a node without a driver is looked at again and again. */
static int check_flags(const struct weft_json *flags, struct weft_options *options,
                       struct weft_error *err)
{
    static const struct fixed_field top[] = {{"migStrategy", NULL},
                                             {"failOnInitError", NULL},
                                             {"nvidiaDriverRoot", NULL},
                                             {"gdsEnabled", "false"},
                                             {"gdrcopyEnabled", "false"},
                                             {"mofedEnabled", "false"},
                                             {"gfd", NULL},
                                             {"plugin", NULL},
                                             {NULL, NULL}};
    static const struct fixed_field plugin_fields[] = {
        {"passDeviceSpecs", "true"},
        {"deviceListStrategy", "envvar"},
        {"deviceIDStrategy", "uuid"},
        {NULL, NULL},
    };
    int rc = check_fixed(flags, top, err);
    rc = rc < 0 ? rc : set_member(flags, "migStrategy", WEFT_OPTION_PARTITIONS, options, err);
    rc = rc < 0 ? rc : set_member(flags, "nvidiaDriverRoot", WEFT_OPTION_DRIVER_ROOT, options, err);
    const struct weft_json *plugin = NULL;
    const int found = rc == 0 ? weft_json_get_object(flags, "plugin", &plugin, err) : rc;
    return found > 0 ? check_fixed(plugin, plugin_fields, err) : found;
}

static int apply_nvidia(const struct weft_json *root, struct weft_options *options,
                        struct weft_error *err)
{
    static const struct fixed_field top[] = {
        {"version", "v1"}, {"flags", NULL}, {"resources", NULL}, {"sharing", NULL}, {NULL, NULL}};
    int rc = check_fixed(root, top, err);
    rc = rc < 0 ? rc : weft_options_nvidia_resources(root, &options->pools, err);
    const struct weft_json *flags = NULL;
    const int found = rc == 0 ? weft_json_get_object(root, "flags", &flags, err) : rc;
    return found > 0 ? check_flags(flags, options, err) : found;
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
        return apply_nvidia(root, options, err);
    }
    return weft_json_error(root, err, "neither kind: DevicePluginConfig nor NVIDIA's version: v1");
}
