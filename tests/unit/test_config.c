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
    CHECK_INT(c->on_cross, WEFT_ON_CROSS_DOMAIN_WINS);
    CHECK_INT(c->settle.snapshots, 1);
    CHECK(c->settle.epoch_file == NULL);
    CHECK_INT(c->debounce.quiet_ns, 1000000000);
    CHECK_INT(c->debounce.max_ns, 10000000000);
    CHECK_INT(c->hold_down.snapshots, 3);
    CHECK_INT(c->hold_down.period_ns, 600000000000);
    CHECK_INT(c->hold_down.forget_after_ns, WEFT_CONFIG_NEVER);
    CHECK_INT(c->brakes.lost_percent, 20);
    CHECK_INT(c->brakes.min_nodes, 8);
    CHECK(c->outputs.hyper_nodes && c->outputs.labels);
    CHECK(!c->outputs.slurm && !c->outputs.kueue && !c->outputs.kai && !c->outputs.dot);
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
              "onCross: split\n"
              "settle: {snapshots: 2, epochFile: /etc/weft/epoch}\n"
              "unplaced: singleton\n"
              "debounce: {quiet: 500ms, max: 1m}\n"
              "holdDown: {snapshots: 5, period: 2h, forgetAfter: 48h}\n"
              "brakes: {lost: 10%, moved: 0%, minNodes: 16}\n"
              "outputs: {hyperNodes: false, labels: true, slurm: true, kai: true}\n");
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
    CHECK_STR(c->sources[2].files.items[0], "/etc/weft/fabric.txt");
    CHECK_INT(c->sources[2].interval_ns, INT64_C(10000000000));
    CHECK_STR(c->sources[0].name, "labels");
    CHECK_STR(c->sources[1].name, "labels-2");
    CHECK_STR(c->sources[2].name, "infiniband");
    CHECK_STR(c->sources[2].tiers.items[1], "spine");
    CHECK_STR(c->sources[2].exclude_hcas.items[1], "mlx5_bond*");
    CHECK_STR(c->sources[2].exclude_switches.items[0], "storage-*");
    CHECK_INT(c->pad, WEFT_PAD_SINGLETON);
    CHECK_INT(c->unplaced, WEFT_UNPLACED_SINGLETON);
    CHECK_INT(c->on_cross, WEFT_ON_CROSS_SPLIT);
    CHECK_INT(c->settle.snapshots, 2);
    CHECK_STR(c->settle.epoch_file, "/etc/weft/epoch");
    CHECK_INT(c->debounce.quiet_ns, 500000000);
    CHECK_INT(c->debounce.max_ns, INT64_C(60000000000));
    CHECK_INT(c->hold_down.snapshots, 5);
    CHECK_INT(c->hold_down.period_ns, INT64_C(7200000000000));
    CHECK_INT(c->hold_down.forget_after_ns, INT64_C(172800000000000));
    CHECK_INT(c->brakes.lost_percent, 10);
    CHECK_INT(c->brakes.moved_percent, 0);
    CHECK_INT(c->brakes.min_nodes, 16);
    CHECK_INT(c->outputs.hyper_nodes, false);
    CHECK(c->outputs.slurm && c->outputs.kai && !c->outputs.kueue && !c->outputs.dot);
}

static void every_kind_has_its_fields(void)
{
    weft_auto(weft_config_free) struct weft_config *c =
        parse("tiers: [leaf, spine, core]\n"
              "sources:\n"
              "- infiniband: {dumps: [a.txt, b.txt], interval: 30s, jitter: 0%}\n"
              "- infiniband:\n"
              "    commands: [[ibnetdiscover, -C, mlx5_0], [ibnetdiscover, -C, mlx5_1]]\n"
              "    timeout: 90s\n"
              "    inventory: guids.yaml\n"
              "    keepSlowHCAs: true\n"
              "- ufm:\n"
              "    url: https://ufm.example.com:8443\n"
              "    auth: session\n"
              "    credentials: /etc/weft/ufm\n"
              "    caFile: /etc/weft/ufm/ca.crt\n"
              "    pin: sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
              "    pageRows: 500\n"
              "    nodeMap: names.txt\n"
              "- lldp: {folder: /var/lib/weft/lldp}\n"
              "- lldp: {files: [x.json]}\n"
              "- slurm: {yaml: topology.yaml, topology: gpu}\n"
              "- ptm: {topology: topology.dot}\n"
              "- awsApiFile: {file: aws.json}\n"
              "- ociImds: {file: oci.json, tiers: [leaf, spine, core]}\n"
              "- file: {path: plan.yaml, interval: 1m}\n");
    if (c == NULL) {
        return;
    }
    const struct weft_config_source *s = c->sources;
    CHECK_INT(c->source_count, 10);
    CHECK_INT(s[0].files.count, 2);
    CHECK_INT(s[0].interval_ns, INT64_C(30000000000));
    CHECK_INT(s[0].jitter_percent, 0);
    CHECK_STR(s[1].name, "infiniband-2");
    CHECK_INT(s[1].command_count, 2);
    CHECK_INT(s[1].commands[1].count, 3);
    CHECK_STR(s[1].commands[1].items[2], "mlx5_1");
    CHECK_INT(s[1].interval_ns, INT64_C(300000000000));
    CHECK_INT(s[1].jitter_percent, 10);
    CHECK_INT(s[1].timeout_ns, INT64_C(90000000000));
    CHECK_STR(s[1].inventory, "guids.yaml");
    CHECK(s[1].keep_slow_hcas && !s[2].keep_slow_hcas);
    CHECK_INT(s[2].kind, WEFT_SOURCE_UFM);
    CHECK_STR(s[2].ufm.url, "https://ufm.example.com:8443");
    CHECK_INT(s[2].ufm.auth, WEFT_UFM_SESSION);
    CHECK_STR(s[2].ufm.credentials, "/etc/weft/ufm");
    CHECK_STR(s[2].ufm.ca_file, "/etc/weft/ufm/ca.crt");
    CHECK_CONTAINS(s[2].ufm.pin, "sha256//AAAA");
    CHECK_INT(s[2].ufm.page_rows, 500);
    CHECK_STR(s[2].node_map, "names.txt");
    CHECK_STR(s[3].folder, "/var/lib/weft/lldp");
    CHECK_STR(s[4].files.items[0], "x.json");
    CHECK_STR(s[5].topology, "gpu");
    CHECK_INT(s[6].kind, WEFT_SOURCE_PTM);
    CHECK_STR(s[7].name, "awsApiFile");
    CHECK_INT(s[8].kind, WEFT_SOURCE_OCI_IMDS);
    CHECK_INT(s[9].interval_ns, INT64_C(60000000000));
    CHECK(strcmp(s[3].text, s[4].text) != 0);
}

/* A source that did not change in a newer file is the same source: its last good result stays. */
static void what_is_missing_is_said_a_level(void)
{
    weft_auto(weft_config_free) struct weft_config *c =
        parse("tiers: [a, b, leaf, spine, core]\nsources:\n"
              "- labels: {keys: [{key: x, missing: unplaced}, y], missing: fail}\n"
              "- labels: {preset: aws, missing: unplaced}\n");
    if (c != NULL) {
        CHECK_INT(c->sources[0].levels.items[0].missing, WEFT_MISSING_UNPLACED);
        CHECK_INT(c->sources[0].levels.items[1].missing, WEFT_MISSING_FAIL);
        CHECK_INT(c->sources[1].levels.items[2].missing, WEFT_MISSING_UNPLACED);
    }
}

static void the_same_settings_have_the_same_text(void)
{
    weft_auto(weft_config_free) struct weft_config *a =
        parse("tiers: [x]\nsources:\n- slurm: {conf: f, tiers: [x]}\n- file: {path: p}\n");
    weft_auto(weft_config_free) struct weft_config *b =
        parse("tiers: [x]\nsources:\n- file:\n    path: p\n- slurm: {conf: g, tiers: [x]}\n");
    if (a != NULL && b != NULL) {
        CHECK_STR(a->sources[1].text, b->sources[0].text);
        CHECK(strcmp(a->sources[0].text, b->sources[1].text) != 0);
    }
}

static void fields_of_kinds_are_checked(void)
{
    check_refused("sources:\n- infiniband: {dump: f, command: [x]}\n", "one of dump, dumps");
    check_refused("sources:\n- infiniband: {command: ibnetdiscover}\n", "weft.yaml:2");
    check_refused("sources:\n- infiniband: {command: []}\n", "weft.yaml:2");
    check_refused("sources:\n- infiniband: {commands: [x]}\n", "expected 1 to 64 names");
    check_refused("sources:\n- infiniband: {dump: f, timeout: 5s}\n", "for commands only");
    check_refused("sources:\n- infiniband: {dump: f, interval: 10ms}\n", "between 1s and 24h");
    check_refused("sources:\n- infiniband: {dump: f, interval: 48h}\n", "between 1s and 24h");
    check_refused("sources:\n- infiniband: {dump: f, jitter: 10}\n", "weft.yaml:2");
    check_refused("sources:\n- infiniband: {command: [x], timeout: 0s}\n", "between 1s and 24h");
    check_refused("sources:\n- ufm: {credentials: d}\n", "url");
    check_refused("sources:\n- ufm: {url: \"http://u\", credentials: d}\n", "https://HOST");
    check_refused("sources:\n- ufm: {url: \"https://u/x\", credentials: d}\n", "https://HOST");
    check_refused("sources:\n- ufm: {url: \"https://a:b@u\", credentials: d}\n", "https://HOST");
    check_refused("sources:\n- ufm: {url: \"https://u\"}\n", "the files username and password");
    check_refused("sources:\n- ufm: {url: \"https://u\", auth: token}\n", "the files token");
    check_refused("sources:\n- ufm: {url: \"https://u\", auth: kerberos}\n",
                  "neither basic nor token nor session");
    check_refused("sources:\n- ufm: {url: \"https://u\", credentials: d, pin: abc}\n", "sha256//");
    check_refused("sources:\n- ufm: {url: \"https://u\", credentials: d, password: p}\n",
                  "unknown field");
    check_refused("sources:\n- lldp: {}\n", "either files or folder");
    check_refused("sources:\n- lldp: {files: [a], folder: b}\n", "either files or folder");
    check_refused("sources:\n- slurm: {}\n", "either conf");
    check_refused("sources:\n- slurm: {conf: a, yaml: b}\n", "either conf");
    check_refused("sources:\n- slurm: {conf: a, topology: b}\n", "only a topology.yaml");
    check_refused("sources:\n- ptm: {}\n", "topology, the path of a file, is missing");
    check_refused("sources:\n- ptm: {topology: \"\"}\n", "is empty");
    check_refused("sources:\n- awsApiFile: {}\n", "file, the path of a file, is missing");
    check_refused("sources:\n- ociImds: {url: x}\n", "unknown field");
    check_refused("sources:\n- ociImds: {file: a, folder: b}\n", "either file or folder");
    check_refused("sources:\n- labels: {preset: aws, missing: error}\n",
                  "neither pad nor unplaced nor fail");
    check_refused("sources:\n- file: {}\n", "path, the path of a file, is missing");
    check_refused("sources:\n- file: {path: p}\n", "needs tiers");
    check_refused("sources:\n- file: p\n", "a source is exactly one of");
    check_refused("sources:\n- {}\n", "a source is exactly one of");
    check_refused("onCross: merge\n", "neither domain-wins nor split nor lift");
    check_refused("settle: {snapshots: 0}\n", "snapshots");
    check_refused("settle: {epoch: x}\n", "unknown field");
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
    /* so do the levels of a file that names none, from "leaf" on */
    weft_auto(weft_config_free) struct weft_config *slurm =
        parse("tiers: [nvlink, leaf, spine]\nsources: [{slurm: {conf: f}}]\n");
    CHECK_INT(slurm != NULL ? slurm->sources[0].tiers.count : 0, 2);
    CHECK_STR(slurm != NULL ? slurm->sources[0].tiers.items[0] : NULL, "leaf");
    weft_auto(weft_config_free) struct weft_config *oci =
        parse("sources: [{ociImds: {folder: f}}]\n");
    CHECK_STR(oci != NULL ? oci->tiers.items[2] : NULL, "core");
    CHECK_STR(oci != NULL ? oci->sources[0].folder : NULL, "f");
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
    check_refused("sources:\n- infiniband: {dump: f}\n  labels: {preset: aws}\n", "exactly one");
    check_refused("sources:\n- netq: {}\n", "unknown field");
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
                               "- infiniband: {commands: [[a, b], [c]], nodeMap: m}\n"
                               "- ufm: {url: \"https://u\", credentials: d, caFile: f}\n"
                               "- lldp: {folder: f}\n"
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
           {"every_kind_has_its_fields", every_kind_has_its_fields},
           {"what_is_missing_is_said_a_level", what_is_missing_is_said_a_level},
           {"the_same_settings_have_the_same_text", the_same_settings_have_the_same_text},
           {"fields_of_kinds_are_checked", fields_of_kinds_are_checked},
           {"the_plan_comes_from_the_source_if_the_file_has_none",
            the_plan_comes_from_the_source_if_the_file_has_none},
           {"bad_files_are_refused_with_their_line", bad_files_are_refused_with_their_line},
           {"a_missing_file_is_an_error", a_missing_file_is_an_error},
           {"every_failing_allocation_is_an_error", every_failing_allocation_is_an_error})
