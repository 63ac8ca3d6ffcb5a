/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Volcano's configuration files as far as HyperNodes are concerned. Must not judge anything
 * else of them: they are somebody else's. Meaning of the fields: volcano-sh/volcano,
 * pkg/scheduler/conf, pkg/scheduler/framework/arguments.go and the plugin network-topology-aware;
 * pkg/controllers/hypernode for the discovery. */
#include "controller/volcano-config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/base/str.h"
#include "pkg/hypernode/hypernode.h"
#include "pkg/json/json.h"
#include "pkg/tree/findings.h"
#include "pkg/yaml/yaml.h"

enum { KEY_MAX = 320, VERSIONS_TEXT_MAX = 128 };

#define PLUGIN "network-topology-aware"
#define BINPACK "hypernode.binpack.resources"

/* What Volcano's discoverers write into WEFT_LABEL_SOURCE; "roce" is documented, not built. */
static const char *const discoverers[] = {"label", "ufm", "roce"};

/* The file as a document, or a finding that says why it is none: Volcano's own reader takes some
 * YAML that ours does not (anchors), so this is no verdict on the file. NULL in both cases of
 * *ret_root being untouched. */
static int parse(const char *text, size_t len, const char *name, const char *kind,
                 struct weft_findings *findings, struct weft_json **ret_root)
{
    struct weft_error err = {0};
    int rc = len > WEFT_VOLCANO_CONFIG_MAX
                 ? weft_err_set(&err, -EFBIG, WEFT_ERR_CONFIG, "larger than %d KiB",
                                (int)(WEFT_VOLCANO_CONFIG_MAX >> 10))
                 : weft_yaml_parse(text, len, name, ret_root, &err);
    if (rc < 0 && rc != -ENOMEM) {
        rc = weft_findings_add(findings, kind, name, "weft cannot read it: %s", err.message);
    }
    return rc;
}

/* ---- the scheduler's ---- */

static const struct weft_json *find_plugin(const struct weft_json *root, const char *name)
{
    const struct weft_json *tiers = weft_json_get(root, "tiers");
    for (size_t i = 0; i < weft_json_count(tiers); i++) {
        const struct weft_json *plugins = weft_json_get(weft_json_at(tiers, i), "plugins");
        for (size_t k = 0; k < weft_json_count(plugins); k++) {
            const struct weft_json *plugin = weft_json_at(plugins, k);
            const char *is = weft_json_string(weft_json_get(plugin, "name"));
            if (is != NULL && strcmp(is, name) == 0) {
                return plugin;
            }
        }
    }
    return NULL;
}

/* "enqueue, allocate, backfill" */
static bool has_action(const char *actions, const char *action)
{
    struct weft_str rest = weft_str(actions);
    struct weft_str piece;
    while (weft_str_split(&rest, ',', &piece)) {
        if (weft_str_eq(weft_str_trim(piece), action)) {
            return true;
        }
    }
    return false;
}

/* An absent switch is on. */
static int judge_switches(const struct weft_json *plugin, const char *name,
                          struct weft_findings *findings)
{
    static const struct {
        const char *key;
        const char *effect;
    } rows[] = {
        {"enabledHyperNodeGradient", "no topology constraint of a job is enforced, not even a hard "
                                     "one"},
        {"enabledHyperNodeOrder", "HyperNodes that can hold a job are taken at random"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        if (weft_json_bool(weft_json_get(plugin, rows[i].key), true)) {
            continue;
        }
        const int rc =
            weft_findings_add(findings, "topology-plugin-off", name,
                              "the plugin " PLUGIN " has %s: false, so %s; drop the line",
                              rows[i].key, rows[i].effect);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* The scheduler takes whole numbers only; it ignores everything else, quoted numbers too. */
static int judge_number(const struct weft_json *arguments, const char *key, const char *effect,
                        const char *name, struct weft_findings *findings)
{
    const struct weft_json *value = weft_json_get(arguments, key);
    if (value == NULL || weft_json_type(value) == WEFT_JSON_NULL) {
        return 0;
    }
    if (weft_json_type(value) != WEFT_JSON_INT) {
        return weft_findings_add(findings, "topology-weight", name,
                                 "%s of the plugin " PLUGIN " is no whole number: the scheduler "
                                 "ignores it and takes 1; write it without quotes",
                                 key);
    }
    return weft_json_int(value, 1) != 0
               ? 0
               : weft_findings_add(findings, "topology-weight", name,
                                   "%s of the plugin " PLUGIN " is 0, so %s; 10 is a good value",
                                   key, effect);
}

/* A resource of a vendor has a domain: "nvidia.com/gpu". */
static int judge_resources(const struct weft_json *arguments, const char *name,
                           struct weft_findings *findings)
{
    const char *list = weft_json_string(weft_json_get(arguments, BINPACK));
    struct weft_str rest = weft_str(list != NULL ? list : "");
    struct weft_str piece;
    bool any = false;
    while (weft_str_split(&rest, ',', &piece)) {
        const struct weft_str resource = weft_str_trim(piece);
        char key[KEY_MAX];
        if (resource.len == 0 || memchr(resource.data, '/', resource.len) == NULL) {
            continue;
        }
        any = true;
        (void)snprintf(key, sizeof(key), BINPACK ".%.*s", WEFT_STR_ARG(resource));
        const int rc = judge_number(arguments, key, "this resource does not count", name, findings);
        if (rc < 0) {
            return rc;
        }
    }
    return any ? 0
               : weft_findings_add(
                     findings, "binpack-without-gpu", name,
                     BINPACK
                     " of the plugin " PLUGIN " names no GPU, so HyperNodes are filled up "
                     "by CPU and memory alone and jobs spread over half-empty ones; add " BINPACK
                     ": nvidia.com/gpu (your GPUs' resource) and a weight, " BINPACK
                     ".nvidia.com/gpu: 10");
}

static int judge_plugin(const struct weft_json *plugin, const char *name,
                        struct weft_findings *findings)
{
    const struct weft_json *arguments = weft_json_get(plugin, "arguments");
    int rc = judge_switches(plugin, name, findings);
    rc =
        rc < 0 ? rc : judge_number(arguments, "weight", "closeness does not count", name, findings);
    return rc < 0 ? rc : judge_resources(arguments, name, findings);
}

int weft_volcano_judge_scheduler(const char *text, size_t len, const char *name,
                                 struct weft_findings *findings)
{
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    int rc = parse(text, len, name, "scheduler-config-unread", findings, &root);
    if (root == NULL || rc < 0) {
        return rc;
    }
    const char *actions = weft_json_string(weft_json_get(root, "actions"));
    if (actions != NULL && !has_action(actions, "allocate")) {
        rc = weft_findings_add(findings, "allocate-missing", name,
                               "the actions \"%.80s\" lack allocate, the only one that places jobs "
                               "by topology; add it",
                               actions);
    }
    const struct weft_json *plugin = find_plugin(root, PLUGIN);
    if (rc == 0 && plugin == NULL) {
        rc = weft_findings_add(
            findings, "topology-plugin-missing", name,
            "no tier has the plugin " PLUGIN ": no topology constraint of a job is enforced, not "
            "even a hard one; add it, with " BINPACK ": nvidia.com/gpu among its arguments (weft's "
            "manifests/samples/scheduler-configmap.yaml is a complete example)");
    }
    return rc < 0 || plugin == NULL ? rc : judge_plugin(plugin, name, findings);
}

/* ---- the controller's ---- */

int weft_volcano_judge_controller(const char *text, size_t len, const char *name,
                                  struct weft_findings *findings)
{
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    int rc = parse(text, len, name, "discovery-config-unread", findings, &root);
    const struct weft_json *list = weft_json_get(root, "networkTopologyDiscovery");
    for (size_t i = 0; rc == 0 && i < weft_json_count(list); i++) {
        const struct weft_json *entry = weft_json_at(list, i);
        const char *source = weft_json_string(weft_json_get(entry, "source"));
        if (source == NULL || !weft_json_bool(weft_json_get(entry, "enabled"), false)) {
            continue;
        }
        rc = weft_findings_add(
            findings, "volcano-discovery", name,
            "Volcano discovers HyperNodes itself from its source \"%.40s\": a node or HyperNode "
            "with two parents makes the scheduler hold back every job with a topology; set "
            "enabled: false there (networkTopologyDiscovery)",
            source);
    }
    return rc;
}

/* ---- HyperNodes of its discovery ---- */

int weft_volcano_judge_objects(const struct weft_hypernode_set *set, const char *instance,
                               struct weft_findings *findings)
{
    for (size_t k = 0; k < WEFT_ARRAY_LEN(discoverers); k++) {
        const char *first = NULL;
        size_t count = 0;
        for (size_t i = 0; i < set->count; i++) {
            const struct weft_hypernode *hn = &set->items[i];
            if (strcmp(hn->source, discoverers[k]) == 0 && !weft_hypernode_is_ours(hn, instance)) {
                first = first == NULL ? hn->name : first;
                count++;
            }
        }
        const bool adoptable = strcmp(discoverers[k], "label") == 0;
        const int rc =
            count == 0
                ? 0
                : weft_findings_add(
                      findings, "volcano-source", discoverers[k],
                      "%zu HyperNode%s (such as %s) come%s from Volcano's own source \"%s\"; "
                      "switch "
                      "it off in Volcano's controller, then %sdelete them, parents first",
                      count, count == 1 ? "" : "s", first, count == 1 ? "s" : "", discoverers[k],
                      adoptable ? "let weft take them over (weftctl adopt) or " : "");
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* ---- the API ---- */

int weft_volcano_judge_versions(const struct weft_json *group, struct weft_findings *findings)
{
    const struct weft_json *versions = weft_json_get(group, "versions");
    const char *wanted = strchr(WEFT_HYPERNODE_API_VERSION, '/') + 1;
    weft_auto(weft_buf_done) struct weft_buf served;
    weft_buf_init(&served, VERSIONS_TEXT_MAX);
    for (size_t i = 0; i < weft_json_count(versions); i++) {
        const char *version = weft_json_string(weft_json_get(weft_json_at(versions, i), "version"));
        if (version != NULL && strcmp(version, wanted) == 0) {
            return 0;
        }
        if (version != NULL && strlen(version) + 2 < VERSIONS_TEXT_MAX - served.len) {
            (void)weft_buf_printf(&served, "%s%s", served.len > 0 ? ", " : "", version);
        }
    }
    return served.len == 0
               ? 0
               : weft_findings_add(findings, "hypernode-version", "topology.volcano.sh",
                                   "the API server has HyperNodes of version %s, and this weft "
                                   "writes " WEFT_HYPERNODE_API_VERSION " only: no HyperNode is "
                                   "written; use a weft that knows this version, or a Volcano that "
                                   "serves the one above",
                                   weft_buf_text(&served));
}

const char *weft_volcano_config_text(const struct weft_json *config_map)
{
    const struct weft_json *data = weft_json_get(config_map, "data");
    for (size_t i = 0; i < weft_json_count(data); i++) {
        const struct weft_json *entry = weft_json_at(data, i);
        const char *key = weft_json_key(entry);
        if (key != NULL && weft_str_ends(weft_str(key), ".conf")) {
            return weft_json_string(entry);
        }
    }
    return NULL;
}
