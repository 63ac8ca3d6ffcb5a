/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Oracle's answers: what a host's metadata service says of itself, and lists of compute hosts
 * (docs.oracle.com, ComputeHostSummary). Fields come in camelCase from the API and in hyphens from
 * the command line. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/fabric/cloud.h"
#include "pkg/fabric/declared-internal.h"
#include "pkg/fabric/document-internal.h"
#include "pkg/json/json.h"

enum { LEVELS = 3, KEYS_MAX = 3, KEY_LEN_MAX = 40 };

static const char *const default_tiers[] = {"leaf", "spine", "core", NULL};

/* By level, closest first: the metadata service's names, then the API's. */
static const char *const keys[LEVELS][KEYS_MAX] = {
    {"customerLocalBlock", "localBlockId", "customerLocalBlockId"},
    {"customerNetworkBlock", "networkBlockId", "customerNetworkBlockId"},
    {"customerHPCIslandId", "hpcIslandId", "customerHpcIslandId"}};

/* "localBlockId" as "local-block-id". */
static void hyphened(const char *key, char *out)
{
    size_t n = 0;
    for (const char *p = key; *p != '\0' && n + 2 < KEY_LEN_MAX; p++) {
        if (isupper((unsigned char)*p) && p > key && !isupper((unsigned char)p[-1])) {
            out[n++] = '-';
        }
        out[n++] = (char)tolower((unsigned char)*p);
    }
    out[n] = '\0';
}

static int get_either(const struct weft_json *object, const char *key, const char **ret,
                      struct weft_error *err)
{
    char other[KEY_LEN_MAX];
    hyphened(key, other);
    const int rc = weft_json_get_string(object, key, ret, err);
    return rc == 0 ? weft_json_get_string(object, other, ret, err) : rc;
}

static int find_value(const struct weft_json *object, size_t level, const char **ret_value,
                      struct weft_error *err)
{
    int rc = 0;
    *ret_value = NULL;
    for (size_t k = 0; rc == 0 && k < KEYS_MAX; k++) {
        rc = get_either(object, keys[level][k], ret_value, err);
        if (rc == 1 && (*ret_value)[0] == '\0') {
            rc = 0;
        }
    }
    return rc < 0 ? rc : 0;
}

/* A host without any of the three (another shape of machine) has no place. */
static int add_host(struct weft_rows *rows, const struct weft_json *object, const char *name,
                    struct weft_error *err)
{
    const char *values[LEVELS] = {NULL};
    bool any = false;
    int rc = 0;
    for (size_t l = 0; rc == 0 && l < LEVELS; l++) {
        rc = find_value(object, l, &values[l], err);
        any = any || (values[l] != NULL && values[l][0] != '\0');
    }
    if (rc < 0) {
        return rc;
    }
    if (!any) {
        rows->partial = true;
        weft_warn(&rows->warnings, rows->source, weft_json_line(object),
                  "host %.100s has no local block, network block or island", name);
        return 0;
    }
    struct weft_row *row = NULL;
    rc = weft_rows_add(rows, weft_str(name), weft_json_line(object), &row, err);
    for (size_t l = 0; rc == 0 && l < LEVELS; l++) {
        if (weft_row_set(row, l, weft_str(values[l] != NULL ? values[l] : "")) < 0) {
            rc = weft_err_nomem(err);
        }
    }
    return rc;
}

/* The list in "items", "data" or "data.items"; else the text itself if it is a list. */
static const struct weft_json *find_list(const struct weft_json *root)
{
    const struct weft_json *data = weft_json_get(root, "data");
    const struct weft_json *items = weft_json_get(data != NULL ? data : root, "items");
    const struct weft_json *list = items != NULL ? items : data != NULL ? data : root;
    return weft_json_type(list) == WEFT_JSON_ARRAY ? list : NULL;
}

static int read_list(struct weft_rows *rows, const struct weft_json *root, struct weft_error *err)
{
    const struct weft_json *list = find_list(root);
    if (list == NULL) {
        return weft_json_error(root, err,
                               "no list of compute hosts (items or data); an answer of one host "
                               "needs the host's name");
    }
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < weft_json_count(list); i++) {
        const struct weft_json *item = weft_json_at(list, i);
        const char *instance = NULL;
        rc = get_either(item, "instanceId", &instance, err);
        if (rc < 0) {
            return rc;
        }
        /* a host without an instance serves nobody */
        rc = instance != NULL && instance[0] != '\0' ? add_host(rows, item, instance, err) : 0;
    }
    return rc;
}

/* /opc/v2/host has the topology in it, /opc/v2/host/rdmaTopologyData is it. */
static int read_host(struct weft_rows *rows, const struct weft_json *root, const char *host,
                     struct weft_error *err)
{
    const struct weft_json *inner = NULL;
    if (weft_json_type(root) != WEFT_JSON_OBJECT) {
        return weft_json_error(root, err, "not an answer of /opc/v2/host/rdmaTopologyData");
    }
    const int rc = weft_json_get_object(root, "rdmaTopologyData", &inner, err);
    return rc < 0 ? rc : add_host(rows, rc == 1 ? inner : root, host, err);
}

int weft_parse_oci(const char *text, size_t len, const char *source,
                   const struct weft_cloud_options *options, struct weft_declared **ret_declared,
                   struct weft_error *err)
{
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    weft_auto(weft_rows_done) struct weft_rows rows = {.source = source};
    weft_auto(weft_label_levels_done) struct weft_label_levels levels = {0};
    const char *host = options != NULL ? options->host : NULL;
    if (len > WEFT_CLOUD_TEXT_MAX) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "%s: larger than %d MiB", source,
                            (int)(WEFT_CLOUD_TEXT_MAX >> 20));
    }
    int rc = weft_json_parse(text, len, source, &root, err);
    if (rc == 0) {
        rc = host != NULL ? read_host(&rows, root, host, err) : read_list(&rows, root, err);
    }
    if (rc == 0 && rows.count == 0 && host == NULL) {
        rc = weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                          "%s: no host with a local block, network block or island", source);
    }
    rc = rc < 0 ? rc
                : weft_rows_levels(LEVELS, options != NULL ? options->tiers : NULL,
                                   options != NULL ? options->tier_count : 0, default_tiers,
                                   &levels, err);
    return rc < 0 ? rc
                  : weft_rows_finish(&rows, &levels,
                                     host != NULL ? WEFT_NAMES_HOSTS : WEFT_NAMES_INSTANCES,
                                     ret_declared, err);
}
