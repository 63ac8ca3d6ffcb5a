/* SPDX-License-Identifier: Apache-2.0 */
/* Which resources there are, as the two kinds of config file say it: renames and sharing. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "deviceplugin/options-internal.h"
#include "pkg/base/buf.h"
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
    static const char *const nvidia_keys[] = {"name", "replicas", "rename", "devices", NULL};
    int rc = weft_json_only(entry, nvidia ? nvidia_keys : keys, err);
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

static int read_shares(const struct weft_json *sharing, bool nvidia,
                       struct weft_pool_settings *settings, struct weft_error *err)
{
    const struct weft_json *list = NULL;
    int rc = list_of(sharing, "resources", &list, err);
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
    const struct weft_json *sharing = NULL;
    const struct weft_json *renames = NULL;
    int rc = list_of(root, "renames", &renames, err);
    rc = rc < 0 ? rc : read_renames(renames, settings, err);
    rc = rc < 0 ? rc : weft_json_get_object(root, "sharing", &sharing, err);
    return rc <= 0 ? rc : read_shares(sharing, false, settings, err);
}

/* ---- NVIDIA's file ---- */

/* Of NVIDIA's patterns only '*' stands for something else; the file's text becomes a glob. */
static int escape(char **pattern, struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf glob;
    weft_buf_init(&glob, 2 * strlen(*pattern) + 1);
    for (const char *c = *pattern; *c != '\0'; c++) {
        (void)weft_buf_puts(&glob, strchr("?[\\", *c) != NULL ? "\\" : "");
        (void)weft_buf_putc(&glob, *c);
    }
    char *text = weft_buf_steal(&glob);
    if (text == NULL) {
        return weft_err_nomem(err);
    }
    weft_free(*pattern);
    *pattern = text;
    return 0;
}

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
        char **pattern = rc < 0 ? NULL : &settings->renames[settings->rename_count - 1].pattern;
        rc = pattern != NULL && *pattern != NULL ? escape(pattern, err) : rc;
    }
    return rc < 0 ? rc : 0;
}

/* Sharing of some devices only: NVIDIA's plugin reads it, and shares all of them. */
static int check_devices(const struct weft_json *list, struct weft_error *err)
{
    for (size_t i = 0; i < weft_json_count(list); i++) {
        const struct weft_json *devices = weft_json_get(weft_json_at(list, i), "devices");
        const char *text = weft_json_string(devices);
        if (devices != NULL && (text == NULL || strcmp(text, "all") != 0)) {
            return weft_json_error(devices, err,
                                   "only all is supported: devices that are to be whole would be "
                                   "shared too");
        }
    }
    return 0;
}

static int nvidia_sharing(const struct weft_json *sharing, struct weft_options *options,
                          struct weft_error *err)
{
    static const char *const sharing_keys[] = {"timeSlicing", "mps", NULL};
    static const char *const time_keys[] = {"renameByDefault", "failRequestsGreaterThanOne",
                                            "resources", NULL};
    struct weft_pool_settings *pools = &options->pools;
    const struct weft_json *mps = NULL;
    const struct weft_json *time = NULL;
    int rc = weft_json_only(sharing, sharing_keys, err);
    rc = rc < 0 ? rc : weft_json_get_object(sharing, "mps", &mps, err);
    if (rc > 0) { /* without its control daemon the limits that pods rely on are not there */
        return weft_json_error(mps, err,
                               "MPS is not supported: pods would share a GPU without its limits");
    }
    rc = rc < 0 ? rc : weft_json_get_object(sharing, "timeSlicing", &time, err);
    rc = rc <= 0 ? rc : weft_json_only(time, time_keys, err);
    rc = rc < 0 ? rc : weft_json_get_bool(time, "renameByDefault", &pools->rename_by_default, err);
    rc = rc < 0
             ? rc
             : weft_json_get_bool(time, "failRequestsGreaterThanOne", &pools->fail_above_one, err);
    rc = rc < 0 ? rc : check_devices(weft_json_get(time, "resources"), err);
    return rc < 0 ? rc : read_shares(time, true, pools, err);
}

/* NVIDIA's plugin reads new names of resources and ignores them; here they are what is advertised.
 */
static int note_renames(const struct weft_json *node, struct weft_options *options,
                        struct weft_error *err)
{
    return weft_options_note_at(options, node,
                                "has an effect here, other than in NVIDIA's plugin: resources get "
                                "these names") < 0
               ? weft_err_nomem(err)
               : 0;
}

int weft_options_nvidia_resources(const struct weft_json *root, struct weft_options *options,
                                  struct weft_error *err)
{
    static const char *const resource_keys[] = {"gpus", "mig", NULL};
    const struct weft_json *resources = NULL;
    const struct weft_json *sharing = NULL;
    int rc = weft_json_get_object(root, "resources", &resources, err);
    rc = rc <= 0 ? rc : weft_json_only(resources, resource_keys, err);
    rc = rc < 0 ? rc : nvidia_renames(resources, "gpus", false, &options->pools, err);
    rc = rc < 0 ? rc : nvidia_renames(resources, "mig", true, &options->pools, err);
    if (rc == 0 && options->pools.rename_count > 0) {
        rc = note_renames(resources, options, err);
    }
    rc = rc < 0 ? rc : weft_json_get_object(root, "sharing", &sharing, err);
    rc = rc <= 0 ? rc : nvidia_sharing(sharing, options, err);
    for (size_t i = 0; rc == 0 && i < options->pools.share_count; i++) {
        if (options->pools.shares[i].rename != NULL) {
            return note_renames(sharing, options, err);
        }
    }
    return rc;
}
