/* SPDX-License-Identifier: Apache-2.0 */
/* The outputs of one layout: each is read back by a reader of its own and must say what the
 * HyperNodes and the tier labels say. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "ctl/ctl.h"
#include "pkg/base/buf.h"
#include "pkg/base/file.h"
#include "pkg/base/map.h"
#include "pkg/base/str.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/labels.h"
#include "pkg/fabric/slurm.h"
#include "pkg/hypernode/layout.h"
#include "pkg/hypernode/manifest.h"
#include "pkg/hypernode/output.h"
#include "pkg/json/json.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"
#include "pkg/yaml/yaml.h"
#include "tests/bench/fabric_gen.h"
#include "tests/bench/fabric_gen_cases.h"
#include "tests/unit/proc.h"
#include "tests/unit/unit.h"

static struct weft_output_input input_of(const struct weft_layout *layout)
{
    return (struct weft_output_input){.set = &layout->desired,
                                      .tiers = (const char *const *)layout->tier_names,
                                      .tier_count = layout->tier_count,
                                      .prefix = "weft.dev/",
                                      .instance = "weft"};
}

static void lay_out(const struct weft_tree *tree, size_t plan, struct weft_layout *layout)
{
    static const char *const tiers[] = {"leaf",    "spine",   "core",    "tier-4", "t5",  "t6",
                                        "t7",      "t8",      "t9",      "t10",    "t11", "t12",
                                        "tier-13", "tier-14", "tier-15", "tier-16"};
    const struct weft_layout_options options = {
        .tiers = tiers, .tier_count = plan > 0 ? plan : tree->tier_count, .instance = "weft"};
    struct weft_error err = {0};
    CHECK_INT(weft_layout_build(tree, &options, layout, &err), 0);
    CHECK_STR(err.message, "");
}

static void write_one(enum weft_output output, const struct weft_layout *layout,
                      struct weft_buf *buf)
{
    struct weft_error err = {0};
    const struct weft_output_input input = input_of(layout);
    weft_buf_init(buf, 64 << 20);
    CHECK_INT(weft_output_write(output, &input, buf, &err), 0);
    CHECK_STR(err.message, "");
}

/* ---- Slurm ---- */

static void check_declared(const struct weft_declared *declared, const struct weft_layout *layout)
{
    CHECK_INT(declared->node_count, layout->node_count);
    CHECK_INT(declared->levels.count, layout->tier_count);
    /* Slurm and weft warn of trees without a common root; two fabrics have none */
    size_t roots = 0;
    for (size_t i = 0; i < layout->desired.count; i++) {
        roots += layout->desired.items[i].tier == (int64_t)layout->tier_count;
    }
    CHECK_INT(declared->warning_total, roots > 1);
    CHECK_INT(declared->partial, false);
    if (declared->node_count != layout->node_count ||
        declared->levels.count != layout->tier_count) {
        return;
    }
    for (size_t n = 0; n < layout->node_count; n++) {
        CHECK_STR(declared->nodes[n], layout->nodes[n]);
        for (size_t t = 0; t < layout->tier_count; t++) {
            const char *value = declared->values[n * layout->tier_count + t];
            CHECK_STR(value != NULL ? value : "(none)", weft_layout_label(layout, n, t + 1));
        }
    }
}

static void check_slurm(const struct weft_layout *layout)
{
    for (int yaml = 0; yaml < 2; yaml++) {
        weft_auto(weft_buf_done) struct weft_buf buf;
        weft_auto(weft_declared_free) struct weft_declared *declared = NULL;
        struct weft_error err = {0};
        write_one(yaml ? WEFT_OUTPUT_SLURM_YAML : WEFT_OUTPUT_SLURM_CONF, layout, &buf);
        CHECK_INT(weft_parse_slurm(weft_buf_text(&buf), buf.len, "out", NULL, &declared, &err), 0);
        CHECK_STR(err.message, "");
        if (declared != NULL) {
            check_declared(declared, layout);
        }
    }
}

/* ---- graphviz ---- */

/* Of `"a" -- "b";` the two words; false for other lines. */
static bool edge(struct weft_str line, struct weft_str *ret_a, struct weft_str *ret_b)
{
    struct weft_str arrow = {0};
    struct weft_str s = weft_str_trim(line);
    if (!weft_str_word(&s, ret_a) || !weft_str_word(&s, &arrow) || !weft_str_eq(arrow, "--") ||
        !weft_str_word(&s, ret_b)) {
        return false;
    }
    CHECK(weft_str_starts(*ret_a, "\"") && weft_str_ends(*ret_a, "\""));
    CHECK(weft_str_starts(*ret_b, "\"") && weft_str_ends(*ret_b, "\";"));
    *ret_a = (struct weft_str){ret_a->data + 1, ret_a->len - 2};
    *ret_b = (struct weft_str){ret_b->data + 1, ret_b->len - 3};
    return true;
}

static void check_dot(const struct weft_layout *layout)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    size_t edges = 0;
    size_t members = 0;
    write_one(WEFT_OUTPUT_DOT, layout, &buf);
    struct weft_str rest = weft_str(weft_buf_text(&buf));
    struct weft_str line = {0};
    while (weft_str_line(&rest, &line)) {
        struct weft_str a = {0};
        struct weft_str b = {0};
        if (!edge(line, &a, &b)) {
            continue;
        }
        char parent[64];
        char child[300];
        const bool node = weft_str_starts(b, "node:");
        (void)snprintf(parent, sizeof(parent), "%.*s", WEFT_STR_ARG(a));
        (void)snprintf(child, sizeof(child), "%.*s", (int)(b.len - (node ? 5 : 0)),
                       b.data + (node ? 5 : 0));
        const struct weft_hypernode *hn = weft_hypernode_set_get(&layout->desired, parent);
        CHECK(hn != NULL &&
              weft_hypernode_lists(hn, node ? WEFT_MEMBER_NODE : WEFT_MEMBER_HYPERNODE, child));
        edges++;
    }
    for (size_t i = 0; i < layout->desired.count; i++) {
        members += layout->desired.items[i].member_count;
    }
    CHECK_INT(edges, members);
}

/* ---- labels and Topology objects ---- */

static void check_labels(const struct weft_layout *layout)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    write_one(WEFT_OUTPUT_LABELS, layout, &buf);
    struct weft_str rest = weft_str(weft_buf_text(&buf));
    struct weft_str line = {0};
    size_t n = 0;
    for (; weft_str_line(&rest, &line) && n < layout->node_count; n++) {
        struct weft_str word = {0};
        CHECK(weft_str_word(&line, &word) && weft_str_eq(word, layout->nodes[n]));
        for (size_t t = 1; t <= layout->tier_count; t++) {
            char expected[160];
            (void)snprintf(expected, sizeof(expected), "weft.dev/tier-%zu=%s", t,
                           weft_layout_label(layout, n, t));
            CHECK(weft_str_word(&line, &word) && weft_str_eq(word, expected));
        }
        CHECK(!weft_str_word(&line, &word));
    }
    CHECK_INT(n, layout->node_count);
    CHECK_INT(rest.len, 0);
}

/* Levels farthest first, each but the last a label that every node has. */
static void check_topology(enum weft_output output, const char *api_version,
                           const struct weft_layout *layout)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_auto(weft_json_free) struct weft_json *root = NULL;
    struct weft_error err = {0};
    write_one(output, layout, &buf);
    CHECK_INT(weft_yaml_parse(weft_buf_text(&buf), buf.len, "out", &root, &err), 0);
    CHECK_STR(err.message, "");
    if (root == NULL) {
        return;
    }
    const char *text = "";
    CHECK(weft_json_get_string(root, "apiVersion", &text, NULL) >= 0);
    CHECK_STR(text, api_version);
    CHECK(weft_json_get_string(root, "kind", &text, NULL) >= 0);
    CHECK_STR(text, "Topology");
    CHECK(weft_json_get_string(weft_json_get(root, "metadata"), "name", &text, NULL) >= 0);
    CHECK_STR(text, "weft");
    const struct weft_json *levels = weft_json_get(weft_json_get(root, "spec"), "levels");
    CHECK_INT(weft_json_count(levels), layout->tier_count + 1);
    for (size_t i = 0; i <= layout->tier_count && i < weft_json_count(levels); i++) {
        char expected[64];
        (void)snprintf(expected, sizeof(expected), "weft.dev/tier-%zu", layout->tier_count - i);
        CHECK(weft_json_get_string(weft_json_at(levels, i), "nodeLabel", &text, NULL) >= 0);
        CHECK_STR(text, i < layout->tier_count ? expected : "kubernetes.io/hostname");
    }
}

/* ---- HyperNodes: the manifests read back say the same forest ---- */

static void check_manifests(const struct weft_layout *layout)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set set = {0};
    weft_buf_init(&buf, 64 << 20);
    CHECK_INT(weft_hypernodes_write_yaml(&layout->desired, "weft.dev/", &buf), 0);
    const struct weft_manifest_text text = {weft_buf_text(&buf), buf.len, "out", "weft.dev/"};
    CHECK_INT(weft_hypernodes_read(&text, &set, NULL, NULL), 0);
    CHECK_INT(set.count, layout->desired.count);
    for (size_t i = 0; i < set.count && set.count == layout->desired.count; i++) {
        CHECK(weft_hypernode_same(&set.items[i], &layout->desired.items[i]));
    }
}

static void check_all(const struct weft_layout *layout)
{
    check_slurm(layout);
    check_dot(layout);
    check_labels(layout);
    check_topology(WEFT_OUTPUT_KUEUE, "kueue.x-k8s.io/v1beta2", layout);
    check_topology(WEFT_OUTPUT_KAI, "kai.scheduler/v1alpha1", layout);
    check_manifests(layout);
}

static void all_outputs_of_every_shape_agree(void)
{
    size_t count = 0;
    const struct gen_case *cases = gen_cases(&count);
    for (size_t i = 0; i < count; i++) {
        weft_auto(gen_done) struct gen g;
        gen_init(&g, 80 + i);
        cases[i].make(&g);
        if (g.host_count > 1000) {
            continue;
        }
        weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, NULL);
        for (size_t plan = 0; plan < 2; plan++) { /* the tree's own depth, and padded to five */
            weft_auto(weft_layout_done) struct weft_layout layout = {0};
            lay_out(tree, plan * 5, &layout);
            check_all(&layout);
        }
    }
}

/* ---- form ---- */

/* One leaf of hosts whose names do not shorten: "host-<i>-x" for scattered i. */
static struct weft_tree *long_leaf(size_t hosts)
{
    weft_auto(gen_done) struct gen g;
    gen_init(&g, 3);
    const size_t leaf = gen_switch(&g, "leaf");
    for (size_t i = 0; i < hosts; i++) {
        gen_plug(&g, gen_host(&g, "host-%zu", i * 37 % 9973), 0, leaf);
    }
    return gen_tree(&g, NULL);
}

static void slurm_lines_have_a_length(void)
{
    weft_auto(weft_tree_free) struct weft_tree *tree = long_leaf(900);
    weft_auto(weft_layout_done) struct weft_layout layout = {0};
    weft_auto(weft_buf_done) struct weft_buf buf;
    lay_out(tree, 0, &layout);
    write_one(WEFT_OUTPUT_SLURM_CONF, &layout, &buf);
    struct weft_str rest = weft_str(weft_buf_text(&buf));
    struct weft_str line = {0};
    size_t lines = 0;
    size_t continued = 0;
    for (; weft_str_line(&rest, &line); lines++) {
        CHECK(line.len <= 1024);
        continued += weft_str_ends(line, ",\\");
    }
    CHECK_INT(lines, 2 + continued); /* the comment and the switch */
    CHECK(continued >= 3);
    check_slurm(&layout);
}

static void a_small_fabric_in_full(void)
{
    weft_auto(gen_done) struct gen g;
    gen_init(&g, 4);
    struct gen_rft shape = {.pods = 1, .units = 2, .nodes = 2, .rails = 1, .spines = 1};
    gen_rail_fat_tree(&g, &shape);
    weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, NULL);
    weft_auto(weft_layout_done) struct weft_layout layout = {0};
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_auto(weft_buf_done) struct weft_buf expected;
    weft_buf_init(&expected, 4096);
    lay_out(tree, 0, &layout);
    const char *const one = weft_layout_label(&layout, 0, 1);
    const char *const two = weft_layout_label(&layout, 2, 1);
    const char *const top = weft_layout_label(&layout, 0, 2);
    /* by name, as the members of a HyperNode are */
    const bool swap = strcmp(one, two) > 0;
    (void)weft_buf_puts(&expected, "# written by weft; a switch is a HyperNode; tiers, closest "
                                   "first: leaf, spine\n");
    for (size_t i = 0; i < 2; i++) {
        const bool first = (i == 0) != swap;
        (void)weft_buf_printf(&expected, "SwitchName=%s Nodes=n0-%d-[0-1]\n", first ? one : two,
                              first ? 0 : 1);
    }
    (void)weft_buf_printf(&expected, "SwitchName=%s Switches=%s,%s\n", top, swap ? two : one,
                          swap ? one : two);
    write_one(WEFT_OUTPUT_SLURM_CONF, &layout, &buf);
    CHECK_STR(weft_buf_text(&buf), weft_buf_text(&expected));
}

static void what_cannot_be_written(void)
{
    weft_auto(weft_tree_free) struct weft_tree *tree = long_leaf(3);
    weft_auto(weft_layout_done) struct weft_layout layout = {0};
    weft_auto(weft_buf_done) struct weft_buf buf;
    struct weft_error err = {0};
    weft_buf_init(&buf, 64);
    const struct weft_layout nothing = {0};
    const struct weft_output_input empty = input_of(&nothing);
    CHECK_INT(weft_output_write(WEFT_OUTPUT_DOT, &empty, &buf, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "nothing to write");
    lay_out(tree, 16, &layout);
    const struct weft_output_input input = input_of(&layout);
    CHECK_INT(weft_output_write(WEFT_OUTPUT_KUEUE, &input, &buf, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "at most 16 levels");
    CHECK_INT(weft_output_write(WEFT_OUTPUT_KAI, &input, &buf, &err), -EINVAL);
    CHECK_INT(buf.len, 0);
    for (int i = 0; i < WEFT_OUTPUT_COUNT; i++) {
        CHECK(strlen(weft_output_name((enum weft_output)i)) > 2);
        CHECK(strlen(weft_output_file((enum weft_output)i)) > 6);
    }
    CHECK_INT(weft_output_write(WEFT_OUTPUT_SLURM_CONF, &input, &buf, &err), -EFBIG);
    CHECK_CONTAINS(err.message, "larger than");
}

static void every_failing_allocation_is_an_error(void)
{
    weft_auto(weft_tree_free) struct weft_tree *tree = long_leaf(20);
    weft_auto(weft_layout_done) struct weft_layout layout = {0};
    lay_out(tree, 2, &layout);
    const struct weft_output_input input = input_of(&layout);
    for (int output = 0; output < WEFT_OUTPUT_COUNT; output++) {
        int rc = -ENOMEM;
        uint64_t n = 0;
        while (rc < 0 && n < 10000) {
            weft_auto(weft_buf_done) struct weft_buf buf;
            weft_buf_init(&buf, 1 << 20);
            (void)weft_mem_fail_after(++n);
            rc = weft_output_write((enum weft_output)output, &input, &buf, NULL);
            (void)weft_mem_fail_after(0);
            CHECK(rc == 0 || rc == -ENOMEM);
        }
        CHECK_INT(rc, 0);
        CHECK(n > 1);
    }
}

/* graphviz itself, where it is installed */
static void graphviz_reads_it(void)
{
    static const char *const dots[] = {"/usr/bin/dot", "/usr/local/bin/dot"};
    const char *dot = access(dots[0], X_OK) == 0 ? dots[0] : dots[1];
    if (access(dot, X_OK) != 0) {
        (void)fprintf(stderr, "SKIP graphviz is not installed\n");
        return;
    }
    weft_auto(weft_tree_free) struct weft_tree *tree = long_leaf(3);
    weft_auto(weft_layout_done) struct weft_layout layout = {0};
    weft_auto(weft_buf_done) struct weft_buf buf;
    lay_out(tree, 0, &layout);
    write_one(WEFT_OUTPUT_DOT, &layout, &buf);
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/out.dot", weft_test_dir());
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        CU_FAIL("cannot write");
        return;
    }
    (void)fwrite(buf.data, 1, buf.len, file);
    (void)fclose(file);
    struct proc p = {0};
    const char *const argv[] = {dot, "-Tplain", path, NULL};
    CHECK(proc_start(&p, argv));
    CHECK(proc_expect(&p, "edge") != NULL);
    CHECK_INT(proc_end(&p, 0, 10000), 0);
}

/* The controller's folder holds what weftctl prints of the same configuration. */
static void the_controllers_folder_has_them(void)
{
    static const struct {
        const char *format, *file;
    } rows[] = {{"slurm", "topology.conf"},
                {"slurm-yaml", "topology.yaml"},
                {"kueue", "kueue-topology.yaml"},
                {"kai", "kai-topology.yaml"},
                {"dot", "fabric.dot"}};
    char config[512];
    char folder[512];
    char program[512];
    (void)snprintf(program, sizeof(program), "%s", proc_path("bin/weft-controller"));
    (void)snprintf(config, sizeof(config), "%s/outputs.yaml", weft_test_dir());
    (void)snprintf(folder, sizeof(folder), "%s/output-folder", weft_test_dir());
    FILE *file = fopen(config, "w");
    if (file == NULL) {
        CU_FAIL("cannot write");
        return;
    }
    (void)fprintf(file,
                  "apiVersion: weft.dev/v1alpha1\nkind: ControllerConfig\n"
                  "tiers: [leaf, spine, core]\n"
                  "sources:\n- infiniband: {dump: %s}\n"
                  "outputs: {slurm: true, kueue: true, kai: true, dot: true}\n",
                  weft_fixture("fabric/two-racks.ibnetdiscover.txt"));
    (void)fclose(file);
    struct proc p = {0};
    const char *const argv[] = {program, "--once", "--config", config, "--output", folder, NULL};
    CHECK(proc_start(&p, argv));
    (void)proc_says(&p, "", 10000);
    CHECK_INT(proc_end(&p, 0, 10000), 0);
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        char path[600];
        (void)snprintf(path, sizeof(path), "%s/outputs/%s", folder, rows[i].file);
        weft_autofree char *written = NULL;
        char *printed = NULL;
        size_t len = 0;
        FILE *out = open_memstream(&printed, &len);
        FILE *none = fopen("/dev/null", "w");
        const char *args[] = {"tree", "--config", config, "-o", rows[i].format, NULL};
        union {
            const char **in;
            char **out;
        } ctl = {.in = args};
        CHECK_INT(weft_ctl_tree_to(5, ctl.out, out, none), 0);
        (void)fclose(out);
        (void)fclose(none);
        CHECK_INT(weft_file_read(path, 1 << 20, &written, NULL, NULL), 0);
        CHECK_STR(written != NULL ? written : "", printed);
        free(printed);
    }
}

WEFT_SUITE(output, {"all_outputs_of_every_shape_agree", all_outputs_of_every_shape_agree},
           {"slurm_lines_have_a_length", slurm_lines_have_a_length},
           {"a_small_fabric_in_full", a_small_fabric_in_full},
           {"what_cannot_be_written", what_cannot_be_written},
           {"every_failing_allocation_is_an_error", every_failing_allocation_is_an_error},
           {"graphviz_reads_it", graphviz_reads_it},
           {"the_controllers_folder_has_them", the_controllers_folder_has_them})
