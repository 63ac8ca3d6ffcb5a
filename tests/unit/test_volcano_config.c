/* SPDX-License-Identifier: Apache-2.0 */
/* What weft says about Volcano's own configuration. Expected findings follow from what Volcano's
 * scheduler does with each field (docs/volcano.md). */
#include "controller/volcano-config.h"

#include <errno.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/base/file.h"
#include "pkg/base/mem.h"
#include "pkg/hypernode/hypernode.h"
#include "pkg/json/json.h"
#include "pkg/tree/findings.h"
#include "pkg/yaml/yaml.h"
#include "tests/unit/unit.h"

#define NAME "volcano-system/volcano-scheduler-configmap"
#define GOOD                                                                                       \
    "        weight: 10\n"                                                                         \
    "        hypernode.binpack.resources: nvidia.com/gpu\n"                                        \
    "        hypernode.binpack.resources.nvidia.com/gpu: 10\n"

static char *kinds_of(const struct weft_findings *f)
{
    struct weft_buf text;
    weft_buf_init(&text, 4096);
    for (size_t i = 0; i < f->count; i++) {
        (void)weft_buf_printf(&text, "%s%s", i > 0 ? " " : "", f->items[i].kind);
    }
    return weft_buf_steal(&text);
}

static void judge(const char *text, const char *kinds, const char *part)
{
    weft_auto(weft_findings_done) struct weft_findings f = {0};
    CHECK_INT(weft_volcano_judge_scheduler(text, strlen(text), NAME, &f), 0);
    weft_findings_sort(&f);
    weft_autofree char *got = kinds_of(&f);
    CHECK_STR(got, kinds);
    for (size_t i = 0; i < f.count; i++) {
        CHECK_STR(f.items[i].subject, NAME);
    }
    if (part != NULL && f.count > 0) {
        CHECK_CONTAINS(f.items[0].detail, part);
    }
}

static void scheduler(const char *plugin, const char *kinds, const char *part)
{
    weft_autofree char *text = weft_asprintf("actions: \"enqueue, allocate, backfill\"\n"
                                             "tiers:\n"
                                             "- plugins:\n"
                                             "  - name: priority\n"
                                             "- plugins:\n"
                                             "  - name: predicates\n%s",
                                             plugin);
    judge(text, kinds, part);
}

#define PLUGIN "  - name: network-topology-aware\n"
#define ARGUMENTS "    arguments:\n"

static void the_plugin_and_its_switches(void)
{
    scheduler("", "topology-plugin-missing", "not even a hard one");
    scheduler(PLUGIN ARGUMENTS GOOD, "", NULL);
    scheduler(PLUGIN "    enabledHyperNodeGradient: true\n" ARGUMENTS GOOD, "", NULL);
    scheduler(PLUGIN "    enabledHyperNodeGradient: false\n" ARGUMENTS GOOD, "topology-plugin-off",
              "enabledHyperNodeGradient: false");
    scheduler(PLUGIN "    enabledHyperNodeOrder: false\n" ARGUMENTS GOOD, "topology-plugin-off",
              "enabledHyperNodeOrder: false");
}

static void the_gpu_and_weights(void)
{
    static const char r[] = "        hypernode.binpack.resources: ";
    char args[512];
    scheduler(PLUGIN, "binpack-without-gpu", "nvidia.com/gpu");
    scheduler(PLUGIN "    arguments:\n", "binpack-without-gpu", NULL);
    (void)snprintf(args, sizeof(args), PLUGIN ARGUMENTS "%s\"cpu, memory\"\n", r);
    scheduler(args, "binpack-without-gpu", NULL);
    (void)snprintf(args, sizeof(args), PLUGIN ARGUMENTS "%s\"cpu, amd.com/gpu\"\n", r);
    scheduler(args, "", NULL); /* its weight is then 1 */
    (void)snprintf(args, sizeof(args),
                   PLUGIN ARGUMENTS "%sa.com/x,b.com/y\n"
                                    "        hypernode.binpack.resources.a.com/x: 5\n"
                                    "        hypernode.binpack.resources.b.com/y: 0\n",
                   r);
    scheduler(args, "topology-weight", "hypernode.binpack.resources.b.com/y");
    (void)snprintf(args, sizeof(args),
                   PLUGIN ARGUMENTS "%sa.com/x\n"
                                    "        hypernode.binpack.resources.a.com/x: \"5\"\n",
                   r);
    scheduler(args, "topology-weight", "without quotes");
    scheduler(PLUGIN ARGUMENTS "        hypernode.binpack.resources: nvidia.com/gpu\n"
                               "        weight: 0\n",
              "topology-weight", "closeness does not count");
    scheduler(PLUGIN ARGUMENTS "        weight: ten\n", "binpack-without-gpu topology-weight",
              NULL);
}

static void actions_and_odd_files(void)
{
    judge("", "topology-plugin-missing", NULL); /* the scheduler's built-in configuration */
    judge("tiers: 7\n", "topology-plugin-missing", NULL);
    judge("actions: \"enqueue, backfill\"\ntiers:\n- plugins:\n" PLUGIN ARGUMENTS GOOD,
          "allocate-missing", "\"enqueue, backfill\"");
    judge("actions: \"allocate\"\ntiers:\n- plugins:\n" PLUGIN ARGUMENTS GOOD, "", NULL);
    judge("actions: [", "scheduler-config-unread", "weft cannot read it");
    judge("actions: &a allocate\n", "scheduler-config-unread", NULL); /* fine for Volcano */
}

static void the_sample_is_without_fault(void)
{
    weft_autofree char *text = NULL;
    size_t len = 0;
    weft_auto(weft_json_free) struct weft_json *doc = NULL;
    CHECK_INT(
        weft_file_read("manifests/samples/scheduler-configmap.yaml", 1 << 16, &text, &len, NULL),
        0);
    CHECK_INT(weft_yaml_parse(text, len, "sample", &doc, NULL), 0);
    const char *conf = weft_volcano_config_text(doc);
    CHECK(conf != NULL);
    judge(conf != NULL ? conf : "", "", NULL);
}

static void discovery_that_is_on(void)
{
    static const char text[] = "networkTopologyDiscovery:\n"
                               "- source: ufm\n"
                               "  enabled: true\n"
                               "  interval: 10m\n"
                               "- source: roce\n"
                               "  enabled: false\n"
                               "- source: label\n"
                               "  enabled: true\n";
    weft_auto(weft_findings_done) struct weft_findings f = {0};
    CHECK_INT(weft_volcano_judge_controller(text, strlen(text), "a/b", &f), 0);
    CHECK_INT(f.count, 2);
    if (f.count == 2) {
        CHECK_STR(f.items[0].kind, "volcano-discovery");
        CHECK_CONTAINS(f.items[0].detail, "\"ufm\"");
        CHECK_CONTAINS(f.items[1].detail, "\"label\"");
        CHECK_CONTAINS(f.items[1].detail, "enabled: false");
    }
    CHECK_INT(weft_volcano_judge_controller("", 0, "a/b", &f), 0);
    CHECK_INT(weft_volcano_judge_controller("- ]", 3, "a/b", &f), 0);
    CHECK_INT(f.count, 3);
    CHECK_STR(f.items[2].kind, "discovery-config-unread");
}

static void put(struct weft_hypernode_set *set, const char *name, const char *source)
{
    struct weft_hypernode hn = {.tier = 1};
    char **const fields[] = {&hn.tier_name, &hn.identity, &hn.managed_by,      &hn.instance,
                             &hn.others,    &hn.uid,      &hn.resource_version};
    CHECK_INT(weft_hypernode_set_text(&hn.name, name), 0);
    CHECK_INT(weft_hypernode_set_text(&hn.source, source), 0);
    for (size_t i = 0; i < WEFT_ARRAY_LEN(fields); i++) {
        CHECK_INT(weft_hypernode_set_text(fields[i], ""), 0);
    }
    CHECK_INT(weft_hypernode_set_put(set, &hn), 0);
}

static void objects_of_others(void)
{
    weft_auto(weft_findings_done) struct weft_findings f = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    put(&set, "by-hand", "");
    put(&set, "another-weft", "weft");
    CHECK_INT(weft_volcano_judge_objects(&set, "weft", &f), 0);
    CHECK_INT(f.count, 0);
    put(&set, "hypernode-rack-tier1-x7b2f", "label");
    put(&set, "hypernode-rack-tier1-abcde", "label");
    put(&set, "leaf-hn-0", "ufm");
    CHECK_INT(weft_volcano_judge_objects(&set, "weft", &f), 0);
    CHECK_INT(f.count, 2);
    if (f.count == 2) {
        CHECK_STR(f.items[0].kind, "volcano-source");
        CHECK_STR(f.items[0].subject, "label");
        CHECK_CONTAINS(f.items[0].detail,
                       "2 HyperNodes (such as hypernode-rack-tier1-abcde) come from");
        CHECK_CONTAINS(f.items[1].detail, "1 HyperNode (such as leaf-hn-0) comes from");
    }
}

static size_t versions(const char *text, char *detail, size_t size)
{
    weft_auto(weft_findings_done) struct weft_findings f = {0};
    weft_auto(weft_json_free) struct weft_json *doc = NULL;
    CHECK_INT(weft_json_parse(text, strlen(text), "group", &doc, NULL), 0);
    CHECK_INT(weft_volcano_judge_versions(doc, &f), 0);
    (void)snprintf(detail, size, "%s", f.count > 0 ? f.items[0].detail : "");
    return f.count;
}

static void versions_of_the_api(void)
{
    char detail[512];
    CHECK_INT(versions("{}", detail, sizeof(detail)), 0);
    CHECK_INT(versions("{\"versions\": [{\"version\": \"v1alpha1\"}]}", detail, sizeof(detail)), 0);
    CHECK_INT(versions("{\"versions\": [{\"version\": \"v2\"}, {\"version\": \"v1alpha1\"}]}",
                       detail, sizeof(detail)),
              0);
    CHECK_INT(versions("{\"versions\": [{\"version\": \"v2\"}, {\"version\": \"v1beta1\"}]}",
                       detail, sizeof(detail)),
              1);
    CHECK_CONTAINS(detail, "of version v2, v1beta1, and this weft writes "
                           "topology.volcano.sh/v1alpha1 only: no HyperNode is written");
}

static void which_key(void)
{
    static const char text[] = "{\"data\": {\"readme\": \"x\", \"volcano-scheduler.conf\": \"y\"}}";
    weft_auto(weft_json_free) struct weft_json *doc = NULL;
    CHECK_INT(weft_json_parse(text, strlen(text), "cm", &doc, NULL), 0);
    CHECK_STR(weft_volcano_config_text(doc), "y");
    CHECK(weft_volcano_config_text(NULL) == NULL);
}

/* Whatever allocation fails: no memory is said, and nothing leaks. */
static void without_memory(void)
{
    static const char text[] =
        "actions: \"enqueue\"\ntiers:\n- plugins:\n" PLUGIN ARGUMENTS "        weight: 0\n";
    bool failed = true;
    for (uint64_t n = 1; failed && n < 1000; n++) {
        weft_auto(weft_findings_done) struct weft_findings f = {0};
        (void)weft_mem_fail_after(n);
        const int rc = weft_volcano_judge_scheduler(text, strlen(text), NAME, &f);
        failed = weft_mem_fail_after(0) >= n;
        CHECK(rc == (failed ? -ENOMEM : 0));
    }
    CHECK(!failed);
}

WEFT_SUITE(volcano_config, {"the plugin and its switches", the_plugin_and_its_switches},
           {"the GPU and weights", the_gpu_and_weights},
           {"actions and odd files", actions_and_odd_files},
           {"the sample is without fault", the_sample_is_without_fault},
           {"discovery that is on", discovery_that_is_on}, {"objects of others", objects_of_others},
           {"versions of the API", versions_of_the_api}, {"which key", which_key},
           {"without memory", without_memory})
