/* SPDX-License-Identifier: Apache-2.0 */
/* Which resources there are, as the two kinds of config file say it: renames and sharing. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "deviceplugin/options-internal.h"
#include "pkg/json/json.h"

enum { LIST_MAX = 64 };

/* Grows a list by a zeroed item; items is read and written as a void pointer. */
static void *add_item(void *items, size_t count, size_t size)
{
    void *list = weft_reallocarray(items, count + 1, size);
    if (list != NULL) {
        memset((char *)list + count * size, 0, size);
    }
    return list;
}

static int copy_string(const struct weft_json *object, const char *key, char **ret,
                       struct weft_error *err)
{
    const char *text = NULL;
    const int rc = weft_json_get_string(object, key, &text, err);
    if (rc > 0) {
        *ret = weft_strdup(text);
        return *ret == NULL ? weft_err_nomem(err) : 1;
    }
    return rc;
}

/* A resource name; with_domain gives one without a domain NVIDIA's, as its plugin does. */
static int copy_resource(const struct weft_json *object, const char *key, bool with_domain,
                         char **ret, struct weft_error *err)
{
    const char *text = NULL;
    const int rc = weft_json_get_string(object, key, &text, err);
    if (rc <= 0) {
        return rc;
    }
    weft_autofree char *name = with_domain && strchr(text, '/') == NULL
                                   ? weft_asprintf("nvidia.com/%s", text)
                                   : weft_strdup(text);
    if (name == NULL) {
        return weft_err_nomem(err);
    }
    if (!weft_resource_valid(name)) {
        return weft_json_error(weft_json_get(object, key), err,
                               "\"%.100s\" is not a resource name like nvidia.com/gpu", text);
    }
    *ret = weft_steal(&name);
    return 1;
}

static int list_of(const struct weft_json *object, const char *key, const struct weft_json **ret,
                   struct weft_error *err)
{
    const int rc = weft_json_get_array(object, key, ret, err);
    if (rc > 0 && weft_json_count(*ret) > LIST_MAX) {
        return weft_json_error(*ret, err, "at most %d entries are allowed", (int)LIST_MAX);
    }
    return rc;
}

/* ---- sharing ---- */

static int add_share(const struct weft_json *entry, bool nvidia,
                     struct weft_pool_settings *settings, struct weft_error *err)
{
    static const char *const keys[] = {"name", "replicas", "rename", NULL};
    int rc = weft_json_only(entry, keys, err);
    if (rc < 0) {
        return rc;
    }
    struct weft_pool_share *shares =
        add_item(settings->shares, settings->share_count, sizeof(*shares));
    if (shares == NULL) {
        return weft_err_nomem(err);
    }
    settings->shares = shares;
    struct weft_pool_share *share = &shares[settings->share_count++];
    int64_t replicas = 0;
    rc = copy_resource(entry, "name", nvidia, &share->resource, err);
    if (rc == 0) {
        return weft_json_error(entry, err, "needs a \"name\"");
    }
    rc = rc < 0 ? rc
                : weft_json_get_int(entry, "replicas", 2, WEFT_POOL_REPLICAS_MAX, &replicas, err);
    if (rc == 0) {
        return weft_json_error(entry, err, "needs \"replicas\", at least 2");
    }
    share->replicas = (uint32_t)replicas;
    rc = rc < 0 ? rc : copy_resource(entry, "rename", nvidia, &share->rename, err);
    for (size_t i = 0; rc >= 0 && i + 1 < settings->share_count; i++) {
        if (strcmp(settings->shares[i].resource, share->resource) == 0) {
            return weft_json_error(entry, err, "%s stands there twice", share->resource);
        }
    }
    return rc < 0 ? rc : 0;
}

static int read_sharing(const struct weft_json *sharing, bool nvidia,
                        struct weft_pool_settings *settings, struct weft_error *err)
{
    int rc = weft_json_get_bool(sharing, "renameByDefault", &settings->rename_by_default, err);
    rc = rc < 0 ? rc
                : weft_json_get_bool(sharing, "failRequestsGreaterThanOne",
                                     &settings->fail_above_one, err);
    const struct weft_json *list = NULL;
    rc = rc < 0 ? rc : list_of(sharing, "resources", &list, err);
    for (size_t i = 0; rc >= 0 && i < weft_json_count(list); i++) {
        rc = add_share(weft_json_at(list, i), nvidia, settings, err);
    }
    return rc < 0 ? rc : 0;
}

/* ---- renames ---- */

static int add_rename(const struct weft_json *entry, const char *name_key, bool partitions,
                      struct weft_pool_settings *settings, struct weft_error *err)
{
    struct weft_pool_rename *renames =
        add_item(settings->renames, settings->rename_count, sizeof(*renames));
    if (renames == NULL) {
        return weft_err_nomem(err);
    }
    settings->renames = renames;
    struct weft_pool_rename *rename = &renames[settings->rename_count++];
    rename->partitions = partitions;
    int rc = copy_string(entry, "pattern", &rename->pattern, err);
    if (rc == 0 || (rc > 0 && rename->pattern[0] == '\0')) {
        return weft_json_error(entry, err, "needs a \"pattern\", like \"*A100*\"");
    }
    rc = rc < 0 ? rc : copy_resource(entry, name_key, true, &rename->resource, err);
    if (rc == 0) {
        return weft_json_error(entry, err, "needs a \"%s\"", name_key);
    }
    return rc < 0 ? rc : 0;
}

static int read_renames(const struct weft_json *list, struct weft_pool_settings *settings,
                        struct weft_error *err)
{
    static const char *const keys[] = {"pattern", "resource", "partitions", NULL};
    for (size_t i = 0; i < weft_json_count(list); i++) {
        const struct weft_json *entry = weft_json_at(list, i);
        bool partitions = false;
        int rc = weft_json_only(entry, keys, err);
        rc = rc < 0 ? rc : weft_json_get_bool(entry, "partitions", &partitions, err);
        rc = rc < 0 ? rc : add_rename(entry, "resource", partitions, settings, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

int weft_options_own_resources(const struct weft_json *root, struct weft_pool_settings *settings,
                               struct weft_error *err)
{
    static const char *const keys[] = {"policy", "renameByDefault", "failRequestsGreaterThanOne",
                                       "resources", NULL};
    const struct weft_json *sharing = NULL;
    const struct weft_json *renames = NULL;
    const char *policy = NULL;
    int rc = list_of(root, "renames", &renames, err);
    rc = rc < 0 ? rc : read_renames(renames, settings, err);
    rc = rc < 0 ? rc : weft_json_get_object(root, "sharing", &sharing, err);
    if (rc <= 0) {
        return rc;
    }
    rc = weft_json_only(sharing, keys, err);
    rc = rc < 0 ? rc : weft_json_get_string(sharing, "policy", &policy, err);
    if (rc > 0 && weft_sharing_parse(policy, &settings->sharing) < 0) {
        return weft_json_error(weft_json_get(sharing, "policy"), err,
                               "\"%.40s\" is not distributed or packed", policy);
    }
    return rc < 0 ? rc : read_sharing(sharing, false, settings, err);
}

/* ---- NVIDIA's file ---- */

static int nvidia_renames(const struct weft_json *resources, const char *key, bool partitions,
                          struct weft_pool_settings *settings, struct weft_error *err)
{
    static const char *const keys[] = {"pattern", "name", NULL};
    const struct weft_json *list = NULL;
    int rc = list_of(resources, key, &list, err);
    for (size_t i = 0; rc >= 0 && i < weft_json_count(list); i++) {
        const struct weft_json *entry = weft_json_at(list, i);
        rc = weft_json_only(entry, keys, err);
        rc = rc < 0 ? rc : add_rename(entry, "name", partitions, settings, err);
    }
    return rc < 0 ? rc : 0;
}

int weft_options_nvidia_resources(const struct weft_json *root, struct weft_pool_settings *settings,
                                  struct weft_error *err)
{
    static const char *const resource_keys[] = {"gpus", "mig", NULL};
    static const char *const time_keys[] = {"renameByDefault", "failRequestsGreaterThanOne",
                                            "resources", NULL};
    const struct weft_json *resources = NULL;
    const struct weft_json *sharing = NULL;
    const struct weft_json *time = NULL;
    int rc = weft_json_get_object(root, "resources", &resources, err);
    rc = rc <= 0 ? rc : weft_json_only(resources, resource_keys, err);
    rc = rc < 0 ? rc : nvidia_renames(resources, "gpus", false, settings, err);
    rc = rc < 0 ? rc : nvidia_renames(resources, "mig", true, settings, err);
    rc = rc < 0 ? rc : weft_json_get_object(root, "sharing", &sharing, err);
    if (rc <= 0) {
        return rc;
    }
    const struct weft_json *mps = weft_json_get(sharing, "mps");
    if (mps != NULL) { /* without its control daemon the limits that pods rely on are not there */
        return weft_json_error(mps, err,
                               "MPS is not supported: pods would share a GPU without its limits");
    }
    static const char *const sharing_keys[] = {"timeSlicing", NULL};
    rc = weft_json_only(sharing, sharing_keys, err);
    rc = rc < 0 ? rc : weft_json_get_object(sharing, "timeSlicing", &time, err);
    rc = rc <= 0 ? rc : weft_json_only(time, time_keys, err);
    return rc < 0 ? rc : read_sharing(time, true, settings, err);
}
