/* SPDX-License-Identifier: Apache-2.0 */
/* From texts to what they say, by kind of source. Reads nothing but the files of names. */
#include <errno.h>
#include <string.h>

#include "pkg/base/file.h"
#include "pkg/base/str.h"
#include "pkg/fabric/cabling.h"
#include "pkg/fabric/cloud.h"
#include "pkg/fabric/fabric-file.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/inventory.h"
#include "pkg/fabric/partitions.h"
#include "pkg/fabric/labels.h"
#include "pkg/fabric/lldp.h"
#include "pkg/fabric/slurm.h"
#include "pkg/fabric/ufm.h"
#include "pkg/source/source-internal.h"

enum { PARTS_MAX = WEFT_CONFIG_FILES_MAX };

void weft_source_texts_done(struct weft_source_texts *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        weft_free(texts->items[i].path);
        weft_free(texts->items[i].text);
    }
    weft_free(texts->items);
    *texts = (struct weft_source_texts){0};
}

int weft_source_texts_add(struct weft_source_texts *texts, const char *path, char *text, size_t len)
{
    void *list = texts->items;
    weft_autofree char *owned = text;
    int rc =
        weft_array_reserve(&list, &texts->cap, texts->count + 1, sizeof(*texts->items), PARTS_MAX);
    texts->items = list;
    if (rc < 0) {
        return rc;
    }
    struct weft_source_text *to = &texts->items[texts->count];
    *to = (struct weft_source_text){.path = weft_strdup(path), .len = len};
    if (to->path == NULL) {
        return -ENOMEM;
    }
    to->text = weft_steal(&owned);
    texts->count++;
    return 0;
}

size_t weft_source_text_max(enum weft_source_kind kind)
{
    switch (kind) {
    case WEFT_SOURCE_INFINIBAND:
        return WEFT_FABRIC_TEXT_MAX;
    case WEFT_SOURCE_UFM:
        return WEFT_UFM_TEXT_MAX;
    case WEFT_SOURCE_LLDP:
        return WEFT_LLDP_TEXT_MAX;
    case WEFT_SOURCE_SLURM:
        return WEFT_SLURM_TEXT_MAX;
    case WEFT_SOURCE_PTM:
        return WEFT_CABLING_TEXT_MAX;
    case WEFT_SOURCE_AWS_API:
    case WEFT_SOURCE_OCI_IMDS:
        return WEFT_CLOUD_TEXT_MAX;
    case WEFT_SOURCE_FILE:
    case WEFT_SOURCE_LABELS:
    case WEFT_SOURCE_COUNT:
        break;
    }
    return WEFT_FABRIC_FILE_MAX;
}

/* The system that a report is of: the file's name without its end. Owned; NULL without memory. */
static char *host_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const struct weft_str text = weft_str(name);
    return weft_strndup(name, weft_str_ends(text, ".json") ? text.len - 5 : text.len);
}

/* ---- switch graphs ---- */

static int parse_infiniband(const struct weft_config_source *settings,
                            const struct weft_source_texts *texts,
                            struct weft_source_result *result, struct weft_error *err)
{
    struct weft_fabric **parts = weft_calloc(texts->count, sizeof(struct weft_fabric *));
    int rc = parts == NULL ? weft_err_nomem(err) : 0;
    for (size_t i = 0; rc == 0 && i < texts->count; i++) {
        const struct weft_source_text *t = &texts->items[i];
        rc = weft_parse_infiniband(t->text, t->len, t->path, &parts[i], err);
    }
    if (rc == 0 && texts->count == 1) {
        result->fabric = weft_steal(&parts[0]);
    } else if (rc == 0) {
        rc = weft_fabric_join((const struct weft_fabric *const *)parts, texts->count,
                              settings->name, &result->fabric, err);
    }
    for (size_t i = 0; parts != NULL && i < texts->count; i++) {
        weft_fabric_free(parts[i]);
    }
    weft_free(parts);
    return rc;
}

static int parse_ufm(const struct weft_config_source *settings,
                     const struct weft_source_texts *texts, struct weft_source_result *result,
                     struct weft_error *err)
{
    weft_auto(weft_ufm_free) struct weft_ufm *ufm = weft_ufm_new(settings->name);
    int rc = ufm == NULL ? weft_err_nomem(err) : 0;
    for (size_t i = 0; rc == 0 && i < texts->count; i++) {
        const struct weft_source_text *t = &texts->items[i];
        enum weft_ufm_resource resource = WEFT_UFM_LINKS;
        rc = weft_ufm_guess(t->text, t->len, t->path, &resource, err);
        rc = rc < 0 ? rc : weft_ufm_add(ufm, resource, t->text, t->len, t->path, NULL, err);
    }
    return rc < 0 ? rc : weft_ufm_finish(ufm, &result->fabric, err);
}

/* One bad report among several must not stop the others: it makes the result a part. */
static int add_report(struct weft_lldp *lldp, const struct weft_source_texts *texts, size_t i,
                      struct weft_error *err)
{
    const struct weft_source_text *t = &texts->items[i];
    struct weft_error why = {0};
    weft_autofree char *host = host_of(t->path);
    if (host == NULL) {
        return weft_err_nomem(err);
    }
    const int rc = weft_lldp_add(lldp, t->text, t->len, t->path, host, &why);
    if (rc == -EINVAL && texts->count > 1) {
        weft_lldp_lost(lldp, &why);
        return 0;
    }
    if (rc < 0 && err != NULL) {
        *err = why;
    }
    return rc;
}

static int parse_lldp(const struct weft_config_source *settings,
                      const struct weft_source_texts *texts, struct weft_source_result *result,
                      struct weft_error *err)
{
    weft_auto(weft_lldp_free) struct weft_lldp *lldp = weft_lldp_new(settings->name);
    int rc = lldp == NULL ? weft_err_nomem(err) : 0;
    for (size_t i = 0; rc == 0 && i < texts->count; i++) {
        rc = add_report(lldp, texts, i, err);
    }
    return rc < 0 ? rc : weft_lldp_finish(lldp, &result->fabric, err);
}

static int parse_ptm(const struct weft_source_text *text, struct weft_source_result *result,
                     struct weft_error *err)
{
    const int rc = weft_parse_cabling(text->text, text->len, text->path, &result->expected, err);
    return rc < 0 ? rc : weft_cabling_fabric(result->expected, &result->fabric, err);
}

/* ---- groups ---- */

static const char *const *tiers_of(const struct weft_config_source *settings)
{
    return settings->tiers.count > 0 ? (const char *const *)settings->tiers.items : NULL;
}

static int parse_slurm(const struct weft_config_source *settings,
                       const struct weft_source_text *text, struct weft_source_result *result,
                       struct weft_error *err)
{
    const struct weft_slurm_options options = {.topology = settings->topology,
                                               .tiers = tiers_of(settings),
                                               .tier_count = settings->tiers.count};
    return weft_parse_slurm(text->text, text->len, text->path, &options, &result->declared, err);
}

static int parse_aws(const struct weft_config_source *settings, const struct weft_source_text *text,
                     struct weft_source_result *result, struct weft_error *err)
{
    const struct weft_cloud_options options = {.tiers = tiers_of(settings),
                                               .tier_count = settings->tiers.count};
    return weft_parse_aws_topology(text->text, text->len, text->path, &options, &result->declared,
                                   err);
}

/* One list of hosts, or an answer a host. */
static int parse_oci(const struct weft_config_source *settings,
                     const struct weft_source_texts *texts, struct weft_source_result *result,
                     struct weft_error *err)
{
    struct weft_cloud_options options = {.tiers = tiers_of(settings),
                                         .tier_count = settings->tiers.count};
    if (settings->folder == NULL && texts->count == 1) {
        const struct weft_source_text *t = &texts->items[0];
        const int rc = weft_parse_oci(t->text, t->len, t->path, &options, &result->declared, err);
        if (rc != -EINVAL) {
            return rc;
        }
    }
    struct weft_declared **parts = weft_calloc(texts->count, sizeof(struct weft_declared *));
    int rc = parts == NULL ? weft_err_nomem(err) : 0;
    for (size_t i = 0; rc == 0 && i < texts->count; i++) {
        const struct weft_source_text *t = &texts->items[i];
        weft_autofree char *host = host_of(t->path);
        options.host = host;
        rc = host == NULL ? weft_err_nomem(err)
                          : weft_parse_oci(t->text, t->len, t->path, &options, &parts[i], err);
    }
    if (rc == 0) {
        rc = weft_declared_join((const struct weft_declared *const *)parts, texts->count,
                                settings->name, &result->declared, err);
    }
    for (size_t i = 0; parts != NULL && i < texts->count; i++) {
        weft_declared_free(parts[i]);
    }
    weft_free(parts);
    return rc;
}

/* Adds a file's GUIDs and names. */
static int take_names(struct weft_source_result *result, enum weft_nic_inventory_rank rank,
                      const struct weft_fabric_file *file, struct weft_error *err)
{
    if (result->inventory == NULL) {
        result->inventory = weft_nic_inventory_new();
    }
    const int rc = result->inventory == NULL
                       ? -ENOMEM
                       : weft_nic_inventory_add_file(result->inventory, rank, file);
    return rc < 0 ? weft_err_errno(err, -rc, "names of nodes") : 0;
}

/* Its groups; what it says of names counts for the nodes of these groups. */
static int parse_plan(const struct weft_source_text *text, struct weft_source_result *result,
                      struct weft_error *err)
{
    weft_auto(weft_fabric_file_free) struct weft_fabric_file *file = NULL;
    const int rc = weft_parse_fabric_file(text->text, text->len, text->path, &file, err);
    if (rc < 0) {
        return rc;
    }
    if (file->groups == NULL) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s: no groups; a file with guids and hosts only is a source's nodeMap",
                            text->path);
    }
    result->declared = weft_steal(&file->groups);
    result->epoch = weft_steal(&file->epoch);
    return take_names(result, WEFT_NIC_INVENTORY_MAPPED, file, err);
}

/* ---- all ---- */

int weft_source_parse(const struct weft_config_source *settings,
                      const struct weft_source_texts *texts, struct weft_source_result *ret_result,
                      struct weft_error *err)
{
    const struct weft_source_text *first = texts->items;
    int rc = -EINVAL;
    switch (settings->kind) {
    case WEFT_SOURCE_INFINIBAND:
        rc = parse_infiniband(settings, texts, ret_result, err);
        break;
    case WEFT_SOURCE_SLURM:
        rc = parse_slurm(settings, first, ret_result, err);
        break;
    case WEFT_SOURCE_AWS_API:
        rc = parse_aws(settings, first, ret_result, err);
        break;
    case WEFT_SOURCE_OCI_IMDS:
        rc = parse_oci(settings, texts, ret_result, err);
        break;
    case WEFT_SOURCE_FILE:
        rc = parse_plan(first, ret_result, err);
        break;
    case WEFT_SOURCE_UFM:
        rc = parse_ufm(settings, texts, ret_result, err);
        break;
    case WEFT_SOURCE_PTM:
        rc = parse_ptm(first, ret_result, err);
        break;
    case WEFT_SOURCE_LLDP:
        rc = parse_lldp(settings, texts, ret_result, err);
        break;
    case WEFT_SOURCE_LABELS:
    case WEFT_SOURCE_COUNT:
        rc = weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "sources of kind %s are not read here",
                          weft_source_kind_name(settings->kind));
        break;
    }
    if (rc == 0) {
        ret_result->partial = (ret_result->fabric != NULL && ret_result->fabric->partial) ||
                              (ret_result->declared != NULL && ret_result->declared->partial);
    }
    return rc;
}

/* ---- names ---- */

/* A document of ours begins with a key or a brace; a map of GUIDs with a GUID or a name and one. */
static bool is_document(const char *text, size_t len)
{
    struct weft_str rest = {text, len};
    struct weft_str line = {0};
    while (weft_str_line(&rest, &line)) {
        line = weft_str_trim(line);
        if (line.len > 0 && line.data[0] != '#') {
            return line.data[0] == '{' || weft_str_starts(line, "---") ||
                   weft_str_starts(line, "apiVersion:") || weft_str_starts(line, "kind:");
        }
    }
    return false;
}

static int read_names(const char *path, enum weft_nic_inventory_rank rank,
                      struct weft_source_result *result, struct weft_error *err)
{
    weft_auto(weft_fabric_file_free) struct weft_fabric_file *file = NULL;
    weft_autofree char *text = NULL;
    size_t len = 0;
    int rc = weft_file_read_regular(path, WEFT_FABRIC_FILE_MAX, &text, &len, err);
    if (rc < 0) {
        return rc;
    }
    rc = is_document(text, len) ? weft_parse_fabric_file(text, len, path, &file, err)
                                : weft_parse_guid_map(text, len, path, &file, err);
    return rc < 0 ? rc : take_names(result, rank, file, err);
}

/* Members that are no adapter of the fabric at all would exclude nobody, in silence. */
static int check_members(const struct weft_config_source *settings,
                         const struct weft_source_result *result, struct weft_error *err)
{
    const struct weft_fabric *fabric = result->fabric;
    for (size_t d = 0; fabric != NULL && d < fabric->device_count; d++) {
        if (weft_nic_inventory_role(result->inventory, fabric->devices[d].guid) ==
            WEFT_NIC_COMPUTE) {
            return 0;
        }
    }
    return fabric == NULL ? 0
                          : weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                         "%s: no member of computePartitions is an adapter of the "
                                         "fabric: a port's GUID must be its adapter's node GUID",
                                         settings->partitions);
}

static int read_partitions(const struct weft_config_source *settings,
                           struct weft_source_result *result, struct weft_error *err)
{
    weft_auto(weft_ib_partitions_free) struct weft_ib_partitions *partitions = NULL;
    weft_autofree char *text = NULL;
    size_t len = 0;
    int rc =
        weft_file_read_regular(settings->partitions, WEFT_PARTITIONS_TEXT_MAX, &text, &len, err);
    rc = rc < 0 ? rc : weft_parse_ib_partitions(text, len, settings->partitions, &partitions, err);
    if (rc == 0 && result->inventory == NULL) {
        result->inventory = weft_nic_inventory_new();
    }
    if (rc == 0 && (result->inventory == NULL || partitions == NULL)) {
        return weft_err_nomem(err);
    }
    rc = rc < 0 ? rc
                : weft_ib_partitions_roles(partitions, settings->compute.items,
                                           settings->compute.count, result->inventory, err);
    return rc < 0 ? rc : check_members(settings, result, err);
}

int weft_source_read_names(const struct weft_config_source *settings,
                           struct weft_source_result *result, struct weft_error *err)
{
    int rc = 0;
    if (settings->inventory != NULL) {
        rc = read_names(settings->inventory, WEFT_NIC_INVENTORY_REPORTED, result, err);
    }
    if (rc == 0 && settings->node_map != NULL) {
        rc = read_names(settings->node_map, WEFT_NIC_INVENTORY_MAPPED, result, err);
    }
    return rc == 0 && settings->partitions != NULL ? read_partitions(settings, result, err) : rc;
}
