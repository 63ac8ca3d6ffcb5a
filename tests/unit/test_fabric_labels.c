/* SPDX-License-Identifier: Apache-2.0 */
/* Node labels as declared groups: presets, policies for what is missing, values that are none. */
#include <errno.h>
#include <stdio.h>

#include "pkg/fabric/labels.h"
#include "pkg/fabric/node.h"
#include "tests/unit/declared_text.h"
#include "tests/unit/unit.h"

/* "name key=value key=value" a node, NULL ends. */
static void fill(struct weft_nodes *nodes, const char *const *lines)
{
    for (; *lines != NULL; lines++) {
        struct weft_node *node = NULL;
        char line[256];
        char *save = NULL;
        (void)snprintf(line, sizeof(line), "%s", *lines);
        CHECK_INT(weft_nodes_add(nodes, strtok_r(line, " ", &save), NULL, &node), 0);
        for (char *pair = strtok_r(NULL, " ", &save); pair != NULL;
             pair = strtok_r(NULL, " ", &save)) {
            char *equals = strchr(pair, '=');
            *equals = '\0';
            CHECK_INT(weft_node_set_label(node, pair, equals + 1), 0);
        }
    }
}

static struct weft_declared *parse(const char *const *lines, const struct weft_label_levels *levels,
                                   struct weft_error *err)
{
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    struct weft_declared *declared = NULL;
    fill(&nodes, lines);
    (void)!weft_parse_labels(nodes.items, nodes.count, levels, &declared, err);
    return declared;
}

static void check_preset(const char *preset, const char *const *lines, const char *expected)
{
    weft_auto(weft_label_levels_done) struct weft_label_levels levels = {0};
    struct weft_error err = {0};
    CHECK_INT(weft_label_preset(preset, &levels, &err), 0);
    struct weft_declared *declared = parse(lines, &levels, &err);
    CHECK_STR(err.message, "");
    CHECK(declared == NULL || declared->names == WEFT_NAMES_NODES);
    weft_declared_check(declared, expected);
}

#define AWS "topology.k8s.aws/network-node-layer-"

static void presets_of_clouds(void)
{
    static const char *const three[] = {"a " AWS "1=t " AWS "2=m " AWS "3=l",
                                        "b " AWS "1=t " AWS "2=m " AWS "3=k " AWS "4=j", NULL};
    check_preset("aws", three, "leaf spine core: a=l/m/t b=k/m/t");
    check_preset("aws-4", three, "leaf spine core super-core: a=-/l/m/t b=j/k/m/t");
    /* the closest layer that a node has is its leaf */
    check_preset("aws-any", three, "leaf spine core super-core: a=l/m/t/- b=j/k/m/t");
    static const char *const gke[] = {"n cloud.google.com/gce-topology-block=b "
                                      "cloud.google.com/gce-topology-subblock=s",
                                      NULL};
    check_preset("gke", gke, "leaf spine: n=s/b");
    check_preset("gcp", gke, "leaf spine: n=s/b");
    static const char *const oci[] = {"n oci.oraclecloud.com/rdma.local_block_id=l "
                                      "oci.oraclecloud.com/rdma.network_block_id=b "
                                      "oci.oraclecloud.com/rdma.hpc_island_id=i",
                                      NULL};
    check_preset("oci", oci, "leaf spine core: n=l/b/i");
    check_preset("oke", oci, "leaf spine core: n=l/b/i");
    static const char *const nebius[] = {"n topology.nebius.com/tier-1=c "
                                         "topology.nebius.com/tier-3=a",
                                         NULL};
    check_preset("nebius", nebius, "leaf spine core: n=c/-/a");
}

static void presets_of_tools(void)
{
    static const char *const fresh[] = {"n fabric.topograph.run/tier-0=l "
                                        "fabric.topograph.run/tier-2=c "
                                        "accelerator.topograph.run/domain=d",
                                        NULL};
    check_preset("topograph", fresh, "leaf spine core: n=l/-/c");
    check_preset("topograph-nvlink", fresh, "nvlink-domain: n=d");
    static const char *const old[] = {"n network.topology.nvidia.com/leaf=l "
                                      "network.topology.nvidia.com/spine=s "
                                      "network.topology.nvidia.com/accelerator=d",
                                      NULL};
    check_preset("topograph-old", old, "leaf spine core: n=l/s/-");
    check_preset("topograph-old-nvlink", old, "nvlink-domain: n=d");
    /* there but empty is missing: CoreWeave's machines without InfiniBand */
    static const char *const coreweave[] = {"m ib.coreweave.cloud/fabric= "
                                            "backend.coreweave.cloud/leafgroup=",
                                            "n ib.coreweave.cloud/leafgroup=1 "
                                            "backend.coreweave.cloud/leafgroup=2",
                                            NULL};
    check_preset("coreweave", coreweave, "leaf spine core: m=-/-/- n=2/-/-");
    check_preset("coreweave-ib", coreweave, "leaf spine core: m=-/-/- n=1/-/-");
}

static void cliques_that_are_none(void)
{
    static const char *const lines[] = {
        "a nvidia.com/gpu.clique=a2221497-dbce-4964-8826-684c3694fd45.2478",
        "b nvidia.com/gpu.clique=a2221497-dbce-4964-8826-684c3694fd45.32766",
        "c nvidia.com/gpu.clique=00000000-0000-0000-0000-000000000000.1",
        "d nvidia.com/gpu.clique=",
        "e nvidia.com/gpu.clique=32766",
        NULL};
    check_preset("gpu-clique", lines,
                 "nvlink-domain: a=a2221497-dbce-4964-8826-684c3694fd45.2478 b=- c=- d=- e=32766");
}

static void what_is_missing(void)
{
    static const char *const lines[] = {"a rack=r1 zone=z", "b zone=z", "c", NULL};
    weft_auto(weft_label_levels_done) struct weft_label_levels levels = {0};
    struct weft_error err = {0};
    CHECK_INT(weft_label_levels_add(&levels, "rack", NULL, &err), 0);
    CHECK_INT(weft_label_levels_add(&levels, "zone", NULL, &err), 0);
    weft_declared_check(parse(lines, &levels, &err), "rack zone: a=r1/z b=-/z c=-/-");
    levels.items[0].missing = WEFT_MISSING_UNPLACED;
    weft_declared_check(parse(lines, &levels, &err), "rack zone: a=r1/z b=-/- c=-/-");
    levels.items[0].missing = WEFT_MISSING_FAIL;
    CHECK(parse(lines, &levels, &err) == NULL);
    CHECK_STR(err.message, "node b lacks label rack, which must be there (missing: fail)");
    /* a node with no label at all is just not this source's */
    static const char *const none[] = {"a rack=r1", "c", NULL};
    weft_declared_check(parse(none, &levels, &err), "rack zone: a=r1/- c=-/-");
}

static void no_memory(void)
{
    static const char *const lines[] = {"a " AWS "3=l " AWS "1=t", NULL};
    weft_auto(weft_nodes_done) struct weft_nodes nodes = {0};
    fill(&nodes, lines);
    int rc = -ENOMEM;
    uint64_t n = 0;
    while (rc < 0 && n < 1000) {
        weft_auto(weft_label_levels_done) struct weft_label_levels levels = {0};
        struct weft_declared *declared = NULL;
        (void)weft_mem_fail_after(++n);
        rc = weft_label_preset("aws-any", &levels, NULL);
        rc = rc < 0 ? rc : weft_parse_labels(nodes.items, 1, &levels, &declared, NULL);
        (void)weft_mem_fail_after(0);
        CHECK_INT(rc < 0 ? rc : -ENOMEM, -ENOMEM);
        CHECK_INT(declared != NULL, rc == 0);
        weft_declared_free(declared);
    }
    CHECK_INT(rc, 0);
    CHECK(n > 15);
}

WEFT_SUITE(fabric_labels, {"presets_of_clouds", presets_of_clouds},
           {"presets_of_tools", presets_of_tools}, {"cliques_that_are_none", cliques_that_are_none},
           {"what_is_missing", what_is_missing}, {"no_memory", no_memory})
