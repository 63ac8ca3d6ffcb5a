/* SPDX-License-Identifier: Apache-2.0 */
/* manifests/: what must hold in every overlay, checked on the files themselves. That a real API
 * server takes them is tested in tests/cluster. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "pkg/base/file.h"
#include "pkg/base/mem.h"
#include "pkg/base/str.h"
#include "pkg/json/json.h"
#include "pkg/yaml/yaml.h"
#include "tests/unit/unit.h"

enum { TEST_PATH_MAX = 512, TEST_FILE_MAX = 1 << 20 };

/* All documents of a YAML file, or NULL with a failed check. */
static struct weft_json *load(const char *path)
{
    weft_autofree char *text = NULL;
    struct weft_json *docs = NULL;
    struct weft_error err = {0};
    size_t len = 0;
    if (weft_file_read(path, TEST_FILE_MAX, &text, &len, &err) < 0 ||
        weft_yaml_parse_all(text, len, path, &docs, &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        CHECK(false);
        return NULL;
    }
    return docs;
}

static const struct weft_json *find(const struct weft_json *docs, const char *kind,
                                    const char *name)
{
    for (size_t i = 0; i < weft_json_count(docs); i++) {
        const struct weft_json *doc = weft_json_at(docs, i);
        const char *found = weft_json_string(weft_json_get(weft_json_get(doc, "metadata"), "name"));
        const char *found_kind = weft_json_string(weft_json_get(doc, "kind"));
        if (found && found_kind && strcmp(found, name) == 0 && strcmp(found_kind, kind) == 0) {
            return doc;
        }
    }
    return NULL;
}

/* A member at a dotted path; a number names an element of a list. */
static const struct weft_json *at(const struct weft_json *node, const char *path)
{
    while (*path && node) {
        char step[64];
        const size_t len = strcspn(path, ".");
        if (len >= sizeof(step)) {
            return NULL;
        }
        memcpy(step, path, len);
        step[len] = '\0';
        node = weft_json_type(node) == WEFT_JSON_ARRAY ? weft_json_at(node, (size_t)(step[0] - '0'))
                                                       : weft_json_get(node, step);
        path += len + (path[len] == '.');
    }
    return node;
}

static bool lists(const struct weft_json *array, const char *text)
{
    for (size_t i = 0; i < weft_json_count(array); i++) {
        const char *item = weft_json_string(weft_json_at(array, i));
        if (item && strcmp(item, text) == 0) {
            return true;
        }
    }
    return false;
}

static void check_exists(const char *folder, const char *file)
{
    char path[TEST_PATH_MAX];
    CHECK(file && snprintf(path, sizeof(path), "%s/%s", folder, file) < (int)sizeof(path));
    if (file && !CHECK_INT(access(path, R_OK), 0)) {
        fprintf(stderr, "%s is missing\n", path);
    }
}

/* Calls check for each kustomization: manifests/, the base, every overlay. */
static void each_kustomization(void (*check)(const char *folder, const struct weft_json *doc))
{
    char folder[TEST_PATH_MAX] = "manifests";
    char path[TEST_PATH_MAX + 32];
    DIR *overlays = opendir("manifests/overlays");
    CHECK(overlays != NULL);
    const struct dirent *entry = NULL;
    size_t count = 0;
    do {
        snprintf(path, sizeof(path), "%s/kustomization.yaml", folder);
        weft_auto(weft_json_free) struct weft_json *docs = load(path);
        CHECK_INT(weft_json_count(docs), 1);
        check(folder, weft_json_at(docs, 0));
        if (++count == 1) {
            snprintf(folder, sizeof(folder), "manifests/base");
            continue;
        }
        while (overlays && (entry = readdir(overlays)) && entry->d_name[0] == '.') {
        }
        if (entry) {
            snprintf(folder, sizeof(folder), "manifests/overlays/%s", entry->d_name);
        }
    } while (count == 1 || entry);
    CHECK(count >= 6);
    if (overlays) {
        closedir(overlays);
    }
}

static void check_files(const char *folder, const struct weft_json *doc)
{
    const struct weft_json *resources = weft_json_get(doc, "resources");
    CHECK(weft_json_count(resources) > 0);
    for (size_t i = 0; i < weft_json_count(resources); i++) {
        check_exists(folder, weft_json_string(weft_json_at(resources, i)));
    }
    const struct weft_json *patches = weft_json_get(doc, "patches");
    for (size_t i = 0; i < weft_json_count(patches); i++) {
        check_exists(folder, weft_json_string(at(weft_json_at(patches, i), "path")));
    }
    const struct weft_json *generators = weft_json_get(doc, "configMapGenerator");
    for (size_t i = 0; i < weft_json_count(generators); i++) {
        const struct weft_json *files = weft_json_get(weft_json_at(generators, i), "files");
        CHECK(weft_json_count(files) > 0);
        for (size_t k = 0; k < weft_json_count(files); k++) {
            check_exists(folder, weft_json_string(weft_json_at(files, k)));
        }
    }
}

static void test_files(void)
{
    each_kustomization(check_files);
}

/* kustomize renames the ConfigMap (a hash is added) and whatever refers to it by name, a Role's
 * resourceNames included: the Lease must not share its name. */
static void check_names(const char *folder, const struct weft_json *doc)
{
    (void)folder;
    const struct weft_json *generators = weft_json_get(doc, "configMapGenerator");
    for (size_t i = 0; i < weft_json_count(generators); i++) {
        const char *name = weft_json_string(weft_json_get(weft_json_at(generators, i), "name"));
        CHECK(name && strcmp(name, "weft-controller") != 0);
        CHECK_STR(weft_json_string(weft_json_get(weft_json_at(generators, i), "namespace")),
                  "weft-system");
    }
}

static void test_names(void)
{
    each_kustomization(check_names);
}

static void test_images(void)
{
    weft_auto(weft_json_free) struct weft_json *docs = load("manifests/base/kustomization.yaml");
    const struct weft_json *images = at(docs, "0.images");
    CHECK_INT(weft_json_count(images), 2);
    for (size_t i = 0; i < weft_json_count(images); i++) {
        CHECK_STR(weft_json_string(at(weft_json_at(images, i), "newTag")), WEFT_VERSION);
    }
}

/* The pod must be able to do its work and nothing more. */
static void test_plugin(void)
{
    weft_auto(weft_json_free) struct weft_json *docs = load("manifests/base/device-plugin.yaml");
    const struct weft_json *spec = at(find(docs, "DaemonSet", "weft-device-plugin"), "spec");
    /* the new pod is standby until the old one ends (docs/device-plugin.md, "Upgrade") */
    CHECK_STR(weft_json_string(at(spec, "updateStrategy.rollingUpdate.maxSurge")), "10%");
    CHECK_INT(weft_json_int(at(spec, "updateStrategy.rollingUpdate.maxUnavailable"), -1), 0);
    const struct weft_json *pod = at(spec, "template.spec");
    CHECK_STR(weft_json_string(at(pod, "priorityClassName")), "system-node-critical");
    CHECK(!weft_json_bool(at(pod, "automountServiceAccountToken"), true));
    CHECK(!weft_json_bool(at(pod, "hostNetwork"), false) &&
          !weft_json_bool(at(pod, "hostPID"), false));
    const struct weft_json *resources = at(pod, "containers.0.resources");
    CHECK_STR(weft_json_string(at(resources, "requests.cpu")), "10m");
    CHECK_STR(weft_json_string(at(resources, "requests.memory")), "16Mi");
    CHECK_STR(weft_json_string(at(resources, "limits.memory")), "64Mi");
    CHECK(at(resources, "limits.cpu") == NULL);
    const struct weft_json *security = at(pod, "containers.0.securityContext");
    CHECK(weft_json_bool(at(security, "readOnlyRootFilesystem"), false));
    CHECK(!weft_json_bool(at(security, "allowPrivilegeEscalation"), true));
    CHECK(!weft_json_bool(at(security, "privileged"), true));
    CHECK(lists(at(security, "capabilities.drop"), "ALL") && !at(security, "capabilities.add"));
}

static void test_controller(void)
{
    weft_auto(weft_json_free) struct weft_json *docs = load("manifests/base/controller.yaml");
    const struct weft_json *pod =
        at(find(docs, "Deployment", "weft-controller"), "spec.template.spec");
    CHECK(weft_json_bool(at(pod, "securityContext.runAsNonRoot"), false));
    CHECK_STR(weft_json_string(at(pod, "securityContext.seccompProfile.type")), "RuntimeDefault");
    const struct weft_json *security = at(pod, "containers.0.securityContext");
    CHECK(weft_json_bool(at(security, "readOnlyRootFilesystem"), false));
    CHECK(!weft_json_bool(at(security, "allowPrivilegeEscalation"), true));
    CHECK(lists(at(security, "capabilities.drop"), "ALL"));
    CHECK(find(docs, "PodDisruptionBudget", "weft-controller") != NULL);
}

static void check_rule(const struct weft_json *rule, bool may_patch_nodes, bool may_list_pods)
{
    const struct weft_json *resources = weft_json_get(rule, "resources");
    const struct weft_json *verbs = weft_json_get(rule, "verbs");
    CHECK(!lists(verbs, "*") && !lists(resources, "*"));
    CHECK(!lists(weft_json_get(rule, "apiGroups"), "*"));
    CHECK(!lists(resources, "secrets"));
    CHECK_INT(lists(resources, "pods"), may_list_pods);
    CHECK(!lists(resources, "pods") || weft_json_count(verbs) == 1);
    CHECK(!lists(verbs, "deletecollection") && !lists(verbs, "bind") && !lists(verbs, "escalate"));
    if (lists(resources, "nodes")) {
        CHECK(!lists(verbs, "update") && !lists(verbs, "delete") && !lists(verbs, "create"));
        CHECK_INT(lists(verbs, "patch"), may_patch_nodes);
    }
}

/* What may be done beyond the base is granted by overlays of their own. */
static void test_rights(void)
{
    static const struct {
        const char *file;
        bool may_patch_nodes, may_list_pods;
        size_t roles;
    } files[] = {
        {"manifests/base/controller-rbac.yaml", false, false, 3},
        {"manifests/overlays/node-labels/rights.yaml", true, false, 1},
        {"manifests/overlays/gang-moves/rights.yaml", false, true, 1},
    };
    for (size_t f = 0; f < sizeof(files) / sizeof(files[0]); f++) {
        weft_auto(weft_json_free) struct weft_json *docs = load(files[f].file);
        size_t roles = 0;
        for (size_t i = 0; i < weft_json_count(docs); i++) {
            const struct weft_json *rules = weft_json_get(weft_json_at(docs, i), "rules");
            roles += rules != NULL;
            for (size_t k = 0; k < weft_json_count(rules); k++) {
                check_rule(weft_json_at(rules, k), files[f].may_patch_nodes,
                           files[f].may_list_pods);
            }
        }
        CHECK_INT(roles, files[f].roles);
    }
}

/* The right to patch Nodes never comes without the policy that narrows it, and that one says no to
 * whoever it cannot judge. */
static void test_policy(void)
{
    weft_auto(weft_json_free) struct weft_json *all =
        load("manifests/overlays/node-labels/kustomization.yaml");
    CHECK(lists(at(all, "0.resources"), "rights.yaml"));
    CHECK(lists(at(all, "0.resources"), "policy.yaml"));
    weft_auto(weft_json_free) struct weft_json *docs =
        load("manifests/overlays/node-labels/policy.yaml");
    const char *name = "weft-controller-node-labels";
    const struct weft_json *policy = find(docs, "ValidatingAdmissionPolicy", name);
    const struct weft_json *binding = find(docs, "ValidatingAdmissionPolicyBinding", name);
    CHECK_STR(weft_json_string(at(policy, "spec.failurePolicy")), "Fail");
    CHECK_STR(weft_json_string(at(binding, "spec.policyName")), name);
    CHECK(lists(at(binding, "spec.validationActions"), "Deny"));
}

/* A tier that a sample job names exists in the configuration that it is a sample for; a wrong name
 * is no error for the scheduler, it just drops the constraint. */
static void test_job_tiers(void)
{
    weft_auto(weft_json_free) struct weft_json *config =
        load("manifests/overlays/labels-aws/config.yaml");
    weft_auto(weft_json_free) struct weft_json *job = load("manifests/samples/vcjob-hard.yaml");
    const struct weft_json *tiers = at(config, "0.tiers");
    const struct weft_json *spec = at(job, "0.spec");
    const struct weft_json *task = at(spec, "tasks.0");
    const char *outer = weft_json_string(at(spec, "networkTopology.highestTierName"));
    const char *inner =
        weft_json_string(at(task, "partitionPolicy.networkTopology.highestTierName"));
    CHECK(outer && lists(tiers, outer));
    CHECK(inner && lists(tiers, inner));
    CHECK_INT(weft_json_int(at(task, "partitionPolicy.totalPartitions"), 0) *
                  weft_json_int(at(task, "partitionPolicy.partitionSize"), 0),
              weft_json_int(at(task, "replicas"), -1));
    CHECK_INT(weft_json_int(at(spec, "minAvailable"), 0), weft_json_int(at(task, "replicas"), -1));
}

WEFT_SUITE(manifests, {"files", test_files}, {"names", test_names}, {"images", test_images},
           {"plugin", test_plugin}, {"controller", test_controller}, {"rights", test_rights},
           {"policy", test_policy}, {"job_tiers", test_job_tiers})
