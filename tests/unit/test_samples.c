/* SPDX-License-Identifier: Apache-2.0 */
/* manifests/: the sample inputs say what the documentation and the demo say of them. The truth is
 * that of hack/sample-fabric (2 pods, 2 units, 4 nodes, 4 rails, three things wrong) and of the
 * labels in nodes-aws.json, counted by hand. */
#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "pkg/base/file.h"
#include "pkg/base/mem.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/labels.h"
#include "pkg/fabric/node.h"
#include "pkg/source/config.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"
#include "tests/unit/unit.h"

enum { TEST_FILE_MAX = 1 << 20 };

static char *read_file(const char *path, size_t *ret_len)
{
    char *text = NULL;
    struct weft_error err = {0};
    if (weft_file_read(path, TEST_FILE_MAX, &text, ret_len, &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        CHECK(false);
    }
    return text;
}

/* The tier's group of the node, or NULL. */
static const struct weft_tree_group *group_of(const struct weft_tree *tree, size_t tier,
                                              const char *node)
{
    for (size_t i = 0; i < tree->node_count; i++) {
        if (strcmp(tree->nodes[i], node) == 0) {
            const size_t group = tree->tiers[tier].node_group[i];
            return group == WEFT_TREE_NONE ? NULL : &tree->tiers[tier].groups[group];
        }
    }
    return NULL;
}

static bool has_finding(const struct weft_tree *tree, const char *kind, const char *word)
{
    for (size_t i = 0; i < tree->finding_count; i++) {
        const struct weft_finding *f = &tree->findings[i];
        if (strcmp(f->kind, kind) == 0 && (strstr(f->subject, word) || strstr(f->detail, word))) {
            return true;
        }
    }
    return false;
}

static void test_fabric(void)
{
    size_t len = 0;
    weft_autofree char *text = read_file("manifests/samples/fabric.ibnetdiscover.txt", &len);
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = NULL;
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    if (!text || !CHECK_INT(weft_parse_ibnetdiscover(text, len, "sample", &fabric, NULL), 0) ||
        !CHECK_INT(weft_tree_from_fabric(fabric, NULL, 0, NULL, &tree, NULL), 0)) {
        return;
    }
    CHECK_INT(tree->node_count, 16);
    CHECK_INT(tree->unplaced_count, 0);
    if (!CHECK_INT(tree->tier_count, 3)) {
        return;
    }
    CHECK_INT(tree->tiers[0].group_count, 4);
    CHECK_INT(tree->tiers[1].group_count, 2);
    CHECK_INT(tree->tiers[2].group_count, 1);
    for (size_t i = 1; i < tree->node_count; i++) {
        /* "gpu-p1s2-03": equal up to the unit = one leaf group, up to the pod = one spine group */
        const char *a = tree->nodes[i - 1];
        const char *b = tree->nodes[i];
        CHECK_INT(group_of(tree, 0, a) == group_of(tree, 0, b), strncmp(a, b, 8) == 0);
        CHECK_INT(group_of(tree, 1, a) == group_of(tree, 1, b), strncmp(a, b, 6) == 0);
    }
    CHECK(has_finding(tree, "rail-swap", "gpu-p1s2-03"));
    CHECK(has_finding(tree, "split-node", "gpu-p2s1-02"));
    CHECK(has_finding(tree, "default-description", "b83fd20301010401"));
}

static void test_nodes(void)
{
    size_t len = 0;
    weft_autofree char *text = read_file("manifests/samples/nodes-aws.json", &len);
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    weft_auto(weft_label_levels_done) struct weft_label_levels levels = {0};
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    if (!text || !CHECK_INT(weft_nodes_parse(text, len, "sample", &nodes, NULL), 0) ||
        !CHECK_INT(weft_label_preset("aws", &levels, NULL), 0)) {
        return;
    }
    const struct weft_tree_source source = {.levels = &levels};
    const struct weft_tree_input input = {
        .sources = &source, .source_count = 1, .nodes = nodes.items, .node_count = nodes.count};
    if (!CHECK_INT(weft_tree_build(&input, &tree, NULL), 0) || !CHECK_INT(tree->tier_count, 3)) {
        return;
    }
    CHECK_INT(tree->node_count, 13);
    CHECK_INT(tree->tiers[0].group_count, 4);
    CHECK_INT(tree->tiers[1].group_count, 2);
    CHECK_INT(tree->tiers[2].group_count, 1);
    if (CHECK_INT(tree->unplaced_count, 1)) {
        CHECK_STR(tree->unplaced[0], "ip-10-0-99-12.us-west-2.compute.internal");
    }
    const char *a = "ip-10-0-16-8.us-west-2.compute.internal";
    const char *b = "ip-10-0-16-22.us-west-2.compute.internal";
    const char *c = "ip-10-0-32-9.us-west-2.compute.internal";
    const char *d = "ip-10-0-64-25.us-west-2.compute.internal";
    CHECK(group_of(tree, 0, a) && group_of(tree, 0, a) == group_of(tree, 0, b));
    CHECK(group_of(tree, 0, a) != group_of(tree, 0, c));
    CHECK(group_of(tree, 1, a) && group_of(tree, 1, a) == group_of(tree, 1, c));
    CHECK(group_of(tree, 1, a) != group_of(tree, 1, d));
}

static void check_config(const char *folder)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/config.yaml", folder);
    weft_auto(weft_config_free) struct weft_config *config = NULL;
    struct weft_error err = {0};
    if (!CHECK_INT(weft_config_load(path, &config, &err), 0)) {
        fprintf(stderr, "%s\n", err.message);
    }
}

/* Every ControllerConfig that is installed is one that the controller takes. */
static void test_configs(void)
{
    check_config("manifests/base");
    DIR *overlays = opendir("manifests/overlays");
    CHECK(overlays != NULL);
    size_t count = 0;
    const struct dirent *entry = NULL;
    while (overlays && (entry = readdir(overlays))) {
        char folder[300];
        char path[320];
        snprintf(folder, sizeof(folder), "manifests/overlays/%s", entry->d_name);
        snprintf(path, sizeof(path), "%s/config.yaml", folder);
        if (entry->d_name[0] != '.' && access(path, F_OK) == 0) { /* others change no config */
            check_config(folder);
            count++;
        }
    }
    CHECK_INT(count, 4);
    if (overlays) {
        closedir(overlays);
    }
}

WEFT_SUITE(samples, {"fabric", test_fabric}, {"nodes", test_nodes}, {"configs", test_configs})
