/* SPDX-License-Identifier: Apache-2.0 */
/* The controller's configuration: every field, every default, and errors with their line. */
#include <errno.h>

#include "pkg/fabric/node.h"
#include "pkg/fabric/selector.h"
#include "pkg/source/config.h"
#include "tests/unit/unit.h"

/* The text with its head below it, so that lines stay what the tests say. */
static int parse_headed(const char *text, struct weft_config **ret_config, struct weft_error *err)
{
    weft_autofree char *whole =
        weft_asprintf("%s%sapiVersion: weft.dev/v1alpha1\nkind: ControllerConfig\n", text,
                      text[0] == '\0' || text[strlen(text) - 1] == '\n' ? "" : "\n");
    if (whole == NULL) {
        return -ENOMEM;
    }
    const bool has_head = strstr(text, "kind: ") != NULL || strstr(text, "apiVersion: ") != NULL;
    const char *given = has_head ? text : whole;
    return weft_config_parse(given, strlen(given), "weft.yaml", ret_config, err);
}

static struct weft_config *parse(const char *text)
{
    struct weft_config *config = NULL;
    struct weft_error err = {0};
    (void)!parse_headed(text, &config, &err);
    CHECK_STR(err.message, "");
    return config;
}

static void check_refused(const char *text, const char *part)
{
    struct weft_config *config = NULL;
    struct weft_error err = {0};
    CHECK_INT(parse_headed(text, &config, &err), -EINVAL);
    CHECK(config == NULL);
    CHECK_CONTAINS(err.message, part);
}

/* An editor may empty a file for a moment: that must not set a running controller to defaults. */
static void an_empty_file_is_no_configuration(void)
{
    const char *const texts[] = {"", "\n", "# comment\n", "paused: true\n",
                                 "kind: ControllerConfig\n"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(texts); i++) {
        struct weft_config *config = NULL;
        struct weft_error err = {0};
        CHECK_INT(weft_config_parse(texts[i], strlen(texts[i]), "weft.yaml", &config, &err),
                  -EINVAL);
        CHECK(config == NULL);
        CHECK_CONTAINS(err.message, "expected apiVersion weft.dev/v1alpha1 and kind");
    }
}

static void a_head_alone_is_the_default(void)
{
    weft_auto(weft_config_free) struct weft_config *c = parse("");
    if (c == NULL) {
        return;
    }
    CHECK_INT(c->paused, false);
    CHECK_INT(c->source_count, 1);
    CHECK_INT(c->sources[0].kind, WEFT_SOURCE_LABELS);
    CHECK_STR(c->sources[0].levels.items[0].key, "topology.k8s.aws/network-node-layer-3");
    CHECK_INT(c->tiers.count, 3);
    CHECK_STR(c->tiers.items[0], "leaf");
    CHECK_STR(c->tiers.items[2], "core");
    CHECK_INT(c->pad, WEFT_PAD_INHERIT);
    CHECK_INT(c->unplaced, WEFT_UNPLACED_OMIT);
    CHECK_INT(c->debounce.quiet_ns, 1000000000);
    CHECK_INT(c->debounce.max_ns, 10000000000);
    CHECK_INT(c->hold_down.snapshots, 3);
    CHECK_INT(c->hold_down.period_ns, 600000000000);
    CHECK_INT(c->hold_down.forget_after_ns, WEFT_CONFIG_NEVER);
    CHECK_INT(c->brakes.lost_percent, 20);
    CHECK_INT(c->brakes.min_nodes, 8);
    CHECK(c->outputs.hyper_nodes && c->outputs.labels);
    /* the default selector leaves out control-plane nodes, whose role label is empty */
    weft_auto(weft_node_done) struct weft_node node = {0};
    CHECK(weft_node_selector_matches(c->node_selector, &node));
    CHECK_INT(weft_node_set_label(&node, "node-role.kubernetes.io/control-plane", ""), 0);
    CHECK(!weft_node_selector_matches(c->node_selector, &node));
}

static void every_field_is_read(void)
{
    weft_auto(weft_config_free) struct weft_config *c =
        parse("apiVersion: weft.dev/v1alpha1\n"
              "kind: ControllerConfig\n"
              "paused: true\n"
              "nodeSelector: \"gpu=yes\"\n"
              "tiers: [nvlink, leaf, spine, core]\n"
              "sources:\n"
              "- labels: {keys: [{key: nvidia.com/gpu.clique, tierName: nvlink}]}\n"
              "- labels: {preset: aws}\n"
              "- infiniband:\n"
              "    dump: /etc/weft/fabric.txt\n"
              "    tiers: [leaf, spine]\n"
              "    excludeHCAs: [\"mlx5_4\", \"mlx5_bond*\"]\n"
              "    excludeSwitches: [\"storage-*\"]\n"
              "pad: singleton\n"
              "unplaced: singleton\n"
              "debounce: {quiet: 500ms, max: 1m}\n"
              "holdDown: {snapshots: 5, period: 2h, forgetAfter: 48h}\n"
              "brakes: {lost: 10%, moved: 0%, minNodes: 16}\n"
              "outputs: {hyperNodes: false, labels: true}\n");
    if (c == NULL) {
        return;
    }
    CHECK_INT(c->paused, true);
    CHECK_STR(c->node_selector_text, "gpu=yes");
    CHECK_INT(c->tiers.count, 4);
    CHECK_INT(c->source_count, 3);
    CHECK_STR(c->sources[0].levels.items[0].tier, "nvlink");
    CHECK_INT(c->sources[1].levels.count, 3);
    CHECK_INT(c->sources[2].kind, WEFT_SOURCE_INFINIBAND);
    CHECK_STR(c->sources[2].dump, "/etc/weft/fabric.txt");
    CHECK_STR(c->sources[2].tiers.items[1], "spine");
    CHECK_STR(c->sources[2].exclude_hcas.items[1], "mlx5_bond*");
    CHECK_STR(c->sources[2].exclude_switches.items[0], "storage-*");
    CHECK_INT(c->pad, WEFT_PAD_SINGLETON);
    CHECK_INT(c->unplaced, WEFT_UNPLACED_SINGLETON);
    CHECK_INT(c->debounce.quiet_ns, 500000000);
    CHECK_INT(c->debounce.max_ns, INT64_C(60000000000));
    CHECK_INT(c->hold_down.snapshots, 5);
    CHECK_INT(c->hold_down.period_ns, INT64_C(7200000000000));
    CHECK_INT(c->hold_down.forget_after_ns, INT64_C(172800000000000));
    CHECK_INT(c->brakes.lost_percent, 10);
    CHECK_INT(c->brakes.moved_percent, 0);
    CHECK_INT(c->brakes.min_nodes, 16);
    CHECK_INT(c->outputs.hyper_nodes, false);
}

static void the_plan_comes_from_the_source_if_the_file_has_none(void)
{
    weft_auto(weft_config_free) struct weft_config *labels =
        parse("sources: [{labels: {keys: [example.com/rack, {key: zone, tierName: room}]}}]\n");
    CHECK_INT(labels != NULL ? labels->tiers.count : 0, 2);
    CHECK_STR(labels != NULL ? labels->tiers.items[0] : NULL, "rack");
    CHECK_STR(labels != NULL ? labels->tiers.items[1] : NULL, "room");
    weft_auto(weft_config_free) struct weft_config *fabric =
        parse("sources: [{infiniband: {dump: f}}]\n");
    CHECK_INT(fabric != NULL ? fabric->tiers.count : 0, 3);
    CHECK_STR(fabric != NULL ? fabric->tiers.items[0] : NULL, "leaf");
    /* keys without names take the plan's, by place */
    weft_auto(weft_config_free) struct weft_config *named =
        parse("tiers: [a, b, c]\nsources: [{labels: {keys: [x, y]}}]\n");
    CHECK_STR(named != NULL ? named->sources[0].levels.items[1].tier : NULL, "b");
}

static void bad_files_are_refused_with_their_line(void)
{
    check_refused("paused: true\nnodeSelecter: x\n", "weft.yaml:2");
    check_refused("nodeSelecter: x\n", "unknown field");
    check_refused("paused: maybe\n", "weft.yaml:1");
    check_refused("\nkind: Config\n", "kind ControllerConfig");
    check_refused("apiVersion: weft.dev/v2\n", "weft.dev/v1alpha1");
    check_refused("nodeSelector: \"a in b\"\n", "weft.yaml:1");
    check_refused("tiers: []\n", "1 to 16 names");
    check_refused("tiers: [leaf, Leaf]\n", "lowercase DNS label");
    check_refused("tiers: [leaf, leaf]\n", "leaf is there twice");
    check_refused("tiers: [leaf, abcdefghijklmnopqrstuvwxyz-0123456]\n", "at most 32");
    check_refused("tiers: leaf\n", "weft.yaml:1");
    check_refused("sources: []\n", "1 to 16 sources");
    check_refused("sources:\n- labels: {preset: nowhere}\n", "weft.yaml:2");
    check_refused("sources:\n- labels: {preset: aws, keys: [a]}\n", "either preset or keys");
    check_refused("sources:\n- labels: {}\n", "either preset or keys");
    check_refused("sources:\n- labels: {keys: []}\n", "closest first");
    check_refused("sources:\n- labels: {keys: [a, a]}\n", "there twice");
    check_refused("sources:\n- labels: {keys: [{key: a, tier: b}]}\n", "tier");
    check_refused("sources:\n- labels: {keys: [{tierName: b}]}\n", "expected a label key");
    check_refused("sources:\n- infiniband: {}\n", "dump");
    check_refused("sources:\n- infiniband: {dump: f, color: red}\n", "unknown field");
    check_refused("sources:\n- infiniband: {dump: f}\n  labels: {preset: aws}\n", "either");
    check_refused("sources:\n- ufm: {}\n", "unknown field");
    check_refused("sources: [{labels: {preset: aws}}, {infiniband: {dump: f}}]\n",
                  "several sources need tiers");
    check_refused("tiers: [leaf]\nsources:\n- labels: {preset: aws}\n",
                  "tier \"spine\" of this source is not in tiers");
    check_refused("pad: none\n", "neither inherit nor singleton");
    check_refused("unplaced: 1\n", "weft.yaml:1");
    check_refused("debounce: {quiet: 10}\n", "weft.yaml:1");
    check_refused("debounce: {quiet: ten}\n", "not a duration");
    check_refused("debounce: {quiet: 20s}\n", "max is shorter than quiet");
    check_refused("holdDown: {snapshots: 0}\n", "snapshots");
    check_refused("holdDown: {forgetAfter: always}\n", "not a duration");
    check_refused("brakes: {lost: 20}\n", "weft.yaml:1");
    check_refused("brakes: {lost: 120%}\n", "percentage");
    check_refused("outputs: {events: true}\n", "unknown field");
    check_refused("- a\n", "weft.yaml");
    check_refused("a: &x 1\nb: *x\n", "weft.yaml");
}

static void a_missing_file_is_an_error(void)
{
    struct weft_config *config = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_config_load("/nonexistent/weft.yaml", &config, &err), -ENOENT);
    CHECK_CONTAINS(err.message, "/nonexistent/weft.yaml");
}

static void every_failing_allocation_is_an_error(void)
{
    static const char text[] = "tiers: [nvlink, leaf, spine, core]\nnodeSelector: \"a in (b)\"\n"
                               "sources:\n- labels: {keys: [{key: k, tierName: nvlink}]}\n"
                               "- infiniband: {dump: f, excludeHCAs: [x], tiers: [leaf, spine]}\n"
                               "- labels: {preset: aws}\n";
    int rc = -ENOMEM;
    for (uint64_t n = 1; rc < 0 && n < 10000; n++) {
        weft_auto(weft_config_free) struct weft_config *config = NULL;
        (void)weft_mem_fail_after(n);
        rc = parse_headed(text, &config, NULL);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || (rc == -ENOMEM && config == NULL));
    }
    CHECK_INT(rc, 0);
}

WEFT_SUITE(config, {"an_empty_file_is_no_configuration", an_empty_file_is_no_configuration},
           {"a_head_alone_is_the_default", a_head_alone_is_the_default},
           {"every_field_is_read", every_field_is_read},
           {"the_plan_comes_from_the_source_if_the_file_has_none",
            the_plan_comes_from_the_source_if_the_file_has_none},
           {"bad_files_are_refused_with_their_line", bad_files_are_refused_with_their_line},
           {"a_missing_file_is_an_error", a_missing_file_is_an_error},
           {"every_failing_allocation_is_an_error", every_failing_allocation_is_an_error})
