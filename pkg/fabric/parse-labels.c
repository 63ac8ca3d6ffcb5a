/* SPDX-License-Identifier: Apache-2.0 */
/* Node labels as declared groups: the levels' keys, presets of platforms, and the values by node.
 * Paths and groups are pkg/tree's. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/fabric/labels.h"
#include "pkg/fabric/node.h"

enum { TIER_MAX = 63 };

/* Closest first. AWS counts its layers from the top: layer 3 is the closest of a three-layer
 * network, layer 4 of a four-layer one (docs.aws.amazon.com, instance topology). */
static const struct {
    const char *name;
    struct {
        const char *key;
        const char *tier;
    } levels[4];
} presets[] = {
    {"aws",
     {{"topology.k8s.aws/network-node-layer-3", "leaf"},
      {"topology.k8s.aws/network-node-layer-2", "spine"},
      {"topology.k8s.aws/network-node-layer-1", "core"}}},
    {"aws-4",
     {{"topology.k8s.aws/network-node-layer-4", "leaf"},
      {"topology.k8s.aws/network-node-layer-3", "spine"},
      {"topology.k8s.aws/network-node-layer-2", "core"},
      {"topology.k8s.aws/network-node-layer-1", "super-core"}}},
    {"gke",
     {{"cloud.google.com/gce-topology-subblock", "leaf"},
      {"cloud.google.com/gce-topology-block", "spine"}}},
    {"oke",
     {{"oci.oraclecloud.com/rdma.local_block_id", "leaf"},
      {"oci.oraclecloud.com/rdma.network_block_id", "spine"},
      {"oci.oraclecloud.com/rdma.hpc_island_id", "core"}}},
    {"coreweave",
     {{"backend.coreweave.cloud/leafgroup", "leaf"},
      {"backend.coreweave.cloud/superpod", "spine"},
      {"backend.coreweave.cloud/fabric", "core"}}},
    {"nebius",
     {{"topology.nebius.com/tier-1", "leaf"},
      {"topology.nebius.com/tier-2", "spine"},
      {"topology.nebius.com/tier-3", "core"}}},
};

void weft_label_levels_done(struct weft_label_levels *levels)
{
    if (levels == NULL) {
        return;
    }
    for (size_t i = 0; i < levels->count; i++) {
        weft_free(levels->items[i].key);
        weft_free(levels->items[i].tier);
    }
    weft_free(levels->items);
    *levels = (struct weft_label_levels){0};
}

/* The part of a key after its last "/" as a DNS label; "" if nothing of it can be one. */
static void tier_of_key(const char *key, char *tier)
{
    const char *slash = strrchr(key, '/');
    const char *from = slash != NULL ? slash + 1 : key;
    size_t len = 0;
    for (; *from != '\0' && len < TIER_MAX; from++) {
        if (isalnum((unsigned char)*from)) {
            tier[len++] = (char)tolower((unsigned char)*from);
        } else if (len > 0 && tier[len - 1] != '-') {
            tier[len++] = '-';
        }
    }
    while (len > 0 && tier[len - 1] == '-') {
        len--;
    }
    tier[len] = '\0';
}

static int check_level(const struct weft_label_levels *levels, const char *key, const char *tier,
                       struct weft_error *err)
{
    if (key[0] == '\0' || strlen(key) > 317) { /* 253 of prefix, "/", 63 of name */
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "\"%.80s\" is not a label key", key);
    }
    if (!weft_dns_label_valid(tier)) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "tier name \"%.80s\" of label %.80s is not a lowercase DNS label", tier,
                            key);
    }
    for (size_t i = 0; i < levels->count; i++) {
        if (strcmp(levels->items[i].key, key) == 0 || strcmp(levels->items[i].tier, tier) == 0) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "label %.80s or tier name \"%s\" is there twice", key, tier);
        }
    }
    return 0;
}

int weft_label_levels_add(struct weft_label_levels *levels, const char *key, const char *tier,
                          struct weft_error *err)
{
    char made[TIER_MAX + 1];
    if (tier == NULL) {
        tier_of_key(key, made);
        tier = made;
    }
    const int rc = check_level(levels, key, tier, err);
    if (rc < 0) {
        return rc;
    }
    if (levels->count >= WEFT_LEVELS_MAX) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "more than %d label levels",
                            (int)WEFT_LEVELS_MAX);
    }
    void *list = weft_reallocarray(levels->items, levels->count + 1, sizeof(*levels->items));
    if (list == NULL) {
        return weft_err_nomem(err);
    }
    levels->items = list;
    struct weft_label_level level = {weft_strdup(key), weft_strdup(tier)};
    if (level.key == NULL || level.tier == NULL) {
        weft_free(level.key);
        weft_free(level.tier);
        return weft_err_nomem(err);
    }
    levels->items[levels->count++] = level;
    return 0;
}

const char *weft_label_preset_name(size_t index)
{
    return index < WEFT_ARRAY_LEN(presets) ? presets[index].name : NULL;
}

int weft_label_preset(const char *preset, struct weft_label_levels *ret_levels,
                      struct weft_error *err)
{
    for (size_t p = 0; p < WEFT_ARRAY_LEN(presets); p++) {
        if (strcmp(presets[p].name, preset) != 0) {
            continue;
        }
        weft_auto(weft_label_levels_done) struct weft_label_levels levels = {0};
        for (size_t i = 0; i < WEFT_ARRAY_LEN(presets[p].levels); i++) {
            if (presets[p].levels[i].key == NULL) {
                break;
            }
            const int rc = weft_label_levels_add(&levels, presets[p].levels[i].key,
                                                 presets[p].levels[i].tier, err);
            if (rc < 0) {
                return rc;
            }
        }
        *ret_levels = levels;
        levels = (struct weft_label_levels){0};
        return 0;
    }
    return weft_err_set(err, -ENOENT, WEFT_ERR_CONFIG,
                        "no preset \"%.40s\"; there are aws, aws-4, gke, oke, coreweave, nebius",
                        preset);
}

void weft_declared_free(struct weft_declared *declared)
{
    if (declared == NULL) {
        return;
    }
    for (size_t n = 0; declared->nodes != NULL && n < declared->node_count; n++) {
        weft_free(declared->nodes[n]);
    }
    for (size_t i = 0;
         declared->values != NULL && i < declared->node_count * declared->levels.count; i++) {
        weft_free(declared->values[i]);
    }
    weft_free(declared->nodes);
    weft_free(declared->values);
    weft_label_levels_done(&declared->levels);
    weft_free(declared);
}

static int compare_node(const void *a, const void *b)
{
    const struct weft_node *x = *(const struct weft_node *const *)a;
    const struct weft_node *y = *(const struct weft_node *const *)b;
    return strcmp(x->name, y->name);
}

static int copy_levels(const struct weft_label_levels *from, struct weft_label_levels *to,
                       struct weft_error *err)
{
    for (size_t i = 0; i < from->count; i++) {
        const int rc = weft_label_levels_add(to, from->items[i].key, from->items[i].tier, err);
        if (rc < 0) {
            return rc;
        }
    }
    return from->count > 0
               ? 0
               : weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "no label levels are given");
}

static int fill_node(struct weft_declared *declared, size_t n, const struct weft_node *node,
                     struct weft_error *err)
{
    declared->nodes[n] = weft_strdup(node->name);
    if (declared->nodes[n] == NULL) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < declared->levels.count; i++) {
        const char *value = weft_node_label(node, declared->levels.items[i].key);
        if (value == NULL || value[0] == '\0') {
            continue; /* present but empty is missing (CoreWeave's CPU nodes) */
        }
        char **place = &declared->values[n * declared->levels.count + i];
        *place = weft_strdup(value);
        if (*place == NULL) {
            return weft_err_nomem(err);
        }
    }
    return 0;
}

int weft_parse_labels(const struct weft_node *nodes, size_t node_count,
                      const struct weft_label_levels *levels, struct weft_declared **ret_declared,
                      struct weft_error *err)
{
    weft_auto(weft_declared_free) struct weft_declared *declared =
        weft_calloc(1, sizeof(*declared));
    weft_autofree const struct weft_node **sorted = weft_calloc(node_count, sizeof(void *));
    if (declared == NULL || sorted == NULL) {
        return weft_err_nomem(err);
    }
    int rc = copy_levels(levels, &declared->levels, err);
    if (rc < 0) {
        return rc;
    }
    for (size_t n = 0; n < node_count; n++) {
        sorted[n] = &nodes[n];
    }
    qsort(sorted, node_count, sizeof(void *), compare_node);
    declared->nodes = weft_calloc(node_count, sizeof(char *));
    declared->values = weft_calloc(node_count * levels->count, sizeof(char *));
    if (declared->nodes == NULL || declared->values == NULL) {
        return weft_err_nomem(err);
    }
    declared->node_count = node_count;
    for (size_t n = 0; rc == 0 && n < node_count; n++) {
        if (n > 0 && strcmp(sorted[n - 1]->name, sorted[n]->name) == 0) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "node %s is there twice",
                                sorted[n]->name);
        }
        rc = fill_node(declared, n, sorted[n], err);
    }
    if (rc == 0) {
        *ret_declared = weft_steal(&declared);
    }
    return rc;
}
