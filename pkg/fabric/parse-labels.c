/* SPDX-License-Identifier: Apache-2.0 */
/* Node labels as declared groups: the levels' keys, presets of platforms, and the values by node.
 * Paths and groups are pkg/tree's. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/base/str.h"
#include "pkg/fabric/labels.h"
#include "pkg/fabric/node.h"

enum { TIER_MAX = 63 };

/* NVIDIA's label of a node's NVLink domain: "<cluster UUID>.<clique id>". The clique 32766 is what
 * GPUs without a fabric report, an all-zero cluster a fabric that is not up. */
#define CLIQUE_LABEL "nvidia.com/gpu.clique"
#define NO_CLIQUE "32766"

struct preset {
    const char *name;
    const char *alias; /* of another preset: then without levels */
    bool align;
    struct {
        const char *key;
        const char *tier;
    } levels[4];
};

/* Closest first. AWS counts its layers from the top: layer 3 is the closest of a three-layer
 * network, layer 4 of a four-layer one (docs.aws.amazon.com, instance topology); aws-any takes
 * both. topograph counts from 0, Nebius from 1, both from the closest. */
static const struct preset presets[] = {
    {"aws",
     NULL,
     false,
     {{"topology.k8s.aws/network-node-layer-3", "leaf"},
      {"topology.k8s.aws/network-node-layer-2", "spine"},
      {"topology.k8s.aws/network-node-layer-1", "core"}}},
    {"aws-4",
     NULL,
     false,
     {{"topology.k8s.aws/network-node-layer-4", "leaf"},
      {"topology.k8s.aws/network-node-layer-3", "spine"},
      {"topology.k8s.aws/network-node-layer-2", "core"},
      {"topology.k8s.aws/network-node-layer-1", "super-core"}}},
    {"aws-any",
     NULL,
     true,
     {{"topology.k8s.aws/network-node-layer-4", "leaf"},
      {"topology.k8s.aws/network-node-layer-3", "spine"},
      {"topology.k8s.aws/network-node-layer-2", "core"},
      {"topology.k8s.aws/network-node-layer-1", "super-core"}}},
    {"gke",
     NULL,
     false,
     {{"cloud.google.com/gce-topology-subblock", "leaf"},
      {"cloud.google.com/gce-topology-block", "spine"}}},
    {"gcp", "gke", false, {{NULL, NULL}}},
    {"oci",
     NULL,
     false,
     {{"oci.oraclecloud.com/rdma.local_block_id", "leaf"},
      {"oci.oraclecloud.com/rdma.network_block_id", "spine"},
      {"oci.oraclecloud.com/rdma.hpc_island_id", "core"}}},
    {"oke", "oci", false, {{NULL, NULL}}},
    {"coreweave",
     NULL,
     false,
     {{"backend.coreweave.cloud/leafgroup", "leaf"},
      {"backend.coreweave.cloud/superpod", "spine"},
      {"backend.coreweave.cloud/fabric", "core"}}},
    {"coreweave-ib",
     NULL,
     false,
     {{"ib.coreweave.cloud/leafgroup", "leaf"},
      {"ib.coreweave.cloud/superpod", "spine"},
      {"ib.coreweave.cloud/fabric", "core"}}},
    {"coreweave-nvlink", NULL, false, {{"ds.coreweave.com/nvlink.domain", "nvlink-domain"}}},
    {"nebius",
     NULL,
     false,
     {{"topology.nebius.com/tier-1", "leaf"},
      {"topology.nebius.com/tier-2", "spine"},
      {"topology.nebius.com/tier-3", "core"}}},
    {"topograph",
     NULL,
     false,
     {{"fabric.topograph.run/tier-0", "leaf"},
      {"fabric.topograph.run/tier-1", "spine"},
      {"fabric.topograph.run/tier-2", "core"}}},
    {"topograph-nvlink", NULL, false, {{"accelerator.topograph.run/domain", "nvlink-domain"}}},
    {"topograph-old",
     NULL,
     false,
     {{"network.topology.nvidia.com/leaf", "leaf"},
      {"network.topology.nvidia.com/spine", "spine"},
      {"network.topology.nvidia.com/core", "core"}}},
    {"topograph-old-nvlink",
     NULL,
     false,
     {{"network.topology.nvidia.com/accelerator", "nvlink-domain"}}},
    {"gpu-clique", NULL, false, {{CLIQUE_LABEL, "nvlink-domain"}}},
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
    struct weft_label_level level = {.key = weft_strdup(key), .tier = weft_strdup(tier)};
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

static int unknown_preset(const char *preset, struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf list;
    weft_buf_init(&list, WEFT_ERROR_MESSAGE_MAX);
    for (size_t p = 0; p < WEFT_ARRAY_LEN(presets); p++) {
        (void)weft_buf_printf(&list, "%s%s", p > 0 ? ", " : "", presets[p].name);
    }
    return weft_err_set(err, -ENOENT, WEFT_ERR_CONFIG, "no preset \"%.40s\"; there are %s", preset,
                        weft_buf_text(&list));
}

int weft_label_preset(const char *preset, struct weft_label_levels *ret_levels,
                      struct weft_error *err)
{
    size_t p = 0;
    while (p < WEFT_ARRAY_LEN(presets) && strcmp(presets[p].name, preset) != 0) {
        p++;
    }
    if (p == WEFT_ARRAY_LEN(presets)) {
        return unknown_preset(preset, err);
    }
    if (presets[p].alias != NULL) {
        return weft_label_preset(presets[p].alias, ret_levels, err);
    }
    weft_auto(weft_label_levels_done) struct weft_label_levels levels = {.align = presets[p].align};
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
        to->items[i].missing = from->items[i].missing;
    }
    to->align = from->align;
    return from->count > 0
               ? 0
               : weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "no label levels are given");
}

/* Is it the label of a domain that exists? */
static bool clique_is_real(const char *value)
{
    const char *dot = strrchr(value, '.');
    const size_t cluster = dot != NULL ? (size_t)(dot - value) : strlen(value);
    return strspn(value, "0-") < cluster && (dot == NULL || strcmp(dot + 1, NO_CLIQUE) != 0);
}

static const char *value_of(const struct weft_node *node, const char *key)
{
    const char *value = weft_node_label(node, key);
    if (value == NULL || value[0] == '\0') {
        return NULL; /* present but empty is missing (CoreWeave's CPU nodes) */
    }
    return strcmp(key, CLIQUE_LABEL) != 0 || clique_is_real(value) ? value : NULL;
}

/* Fills found[level] as the policies say; all NULL: the node is not known. */
static int find_values(const struct weft_label_levels *levels, const struct weft_node *node,
                       const char **found, struct weft_error *err)
{
    bool any = false;
    bool drop = false;
    const struct weft_label_level *fail = NULL;
    for (size_t i = 0; i < levels->count; i++) {
        const struct weft_label_level *level = &levels->items[i];
        found[i] = value_of(node, level->key);
        any = any || found[i] != NULL;
        drop = drop || (found[i] == NULL && level->missing == WEFT_MISSING_UNPLACED);
        if (found[i] == NULL && level->missing == WEFT_MISSING_FAIL && fail == NULL) {
            fail = level;
        }
    }
    if (any && fail != NULL) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "node %s lacks label %s, which must be there (missing: fail)",
                            node->name, fail->key);
    }
    for (size_t i = 0, to = 0; i < levels->count; i++) {
        const char *value = drop ? NULL : found[i];
        found[i] = levels->align ? NULL : value;
        if (levels->align && value != NULL) {
            found[to++] = value;
        }
    }
    return 0;
}

static int fill_node(struct weft_declared *declared, size_t n, const struct weft_node *node,
                     struct weft_error *err)
{
    const char *found[WEFT_LEVELS_MAX] = {NULL};
    const int rc = find_values(&declared->levels, node, found, err);
    if (rc < 0) {
        return rc;
    }
    declared->nodes[n] = weft_strdup(node->name);
    if (declared->nodes[n] == NULL) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < declared->levels.count; i++) {
        char **place = &declared->values[n * declared->levels.count + i];
        *place = found[i] != NULL ? weft_strdup(found[i]) : NULL;
        if (found[i] != NULL && *place == NULL) {
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
