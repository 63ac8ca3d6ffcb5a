/* SPDX-License-Identifier: Apache-2.0 */
/* weftctl tree over configurations with sources of several kinds, and over files that tell their
 * kind. What must come out follows from the samples as they are written. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "pkg/base/file.h"
#include "pkg/base/mem.h"
#include "pkg/fabric/fabric.h"
#include "pkg/loop/loop.h"
#include "pkg/source/source.h"
#include "tests/unit/unit.h"

#define SAMPLES "manifests/samples/sources/"
#define DUMP "manifests/samples/fabric.ibnetdiscover.txt"
enum { ARGS_MAX = 12 };

struct output {
    char *out, *err;
    int rc;
};

static void output_done(struct output *o)
{
    free(o->out); /* open_memstream's own */
    free(o->err);
}
WEFT_DEFINE_AUTO_VALUE(struct output, output_done)

static struct output run(const char *const *args)
{
    char *argv[ARGS_MAX + 2] = {(char[]){"tree"}};
    int argc = 1;
    for (; args[argc - 1] != NULL && argc <= ARGS_MAX; argc++) {
        argv[argc] = weft_strdup(args[argc - 1]);
    }
    struct output o = {0};
    size_t out_len = 0;
    size_t err_len = 0;
    FILE *out = open_memstream(&o.out, &out_len);
    FILE *err = open_memstream(&o.err, &err_len);
    o.rc = weft_ctl_tree_to(argc, argv, out, err);
    (void)fclose(out);
    (void)fclose(err);
    for (int i = 1; i < argc; i++) {
        weft_free(argv[i]);
    }
    return o;
}

#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

/* A configuration with these tiers and sources, as a file; static storage. */
static const char *config(const char *tiers, const char *sources)
{
    static char path[256];
    weft_autofree char *text =
        weft_asprintf("apiVersion: weft.dev/v1alpha1\nkind: ControllerConfig\ntiers: [%s]\n"
                      "sources:\n%s",
                      tiers, sources);
    (void)snprintf(path, sizeof(path), "%s/ctl-sources.yaml", weft_test_dir());
    CHECK_INT(weft_file_replace(path, text, strlen(text), 0600, NULL), 0);
    return path;
}

static void a_map_says_which_node_an_instance_is(void)
{
    weft_autofree char *nodes = weft_asprintf("%s/instance-nodes.txt", weft_test_dir());
    CHECK_INT(weft_file_replace(nodes, "gpu-01\ngpu-02\ngpu-03\n", 21, 0600, NULL), 0);
    weft_auto(output_done) struct output o =
        RUN("--nodes", nodes, "--config",
            config("leaf, spine, core", "- awsApiFile: {file: " SAMPLES "aws.json, "
                                        "nodeMap: " SAMPLES "instances.yaml}\n"));
    CHECK_INT(o.rc, 0);
    CHECK_STR(o.err, "");
    CHECK_CONTAINS(o.out, "gpu-[01-02]"); /* i-0a and i-0b, on nn-leaf1 */
    CHECK(strstr(o.out, "i-0a") == NULL);
}

/* An inventory's GUID is believed before a name: the host that calls itself gpu-02 is gpu-99. */
static void an_inventory_comes_before_names(void)
{
    weft_autofree char *inventory = weft_asprintf("%s/inventory.txt", weft_test_dir());
    static const char map[] = "0xa088c20300000102 \"gpu-99\"\n";
    CHECK_INT(weft_file_replace(inventory, map, strlen(map), 0600, NULL), 0);
    weft_autofree char *nodes = weft_asprintf("%s/nodes.txt", weft_test_dir());
    CHECK_INT(weft_file_replace(nodes, "gpu-01\ngpu-99\n", 14, 0600, NULL), 0);
    weft_autofree char *sources =
        weft_asprintf("- ufm: {url: \"https://u\", credentials: c, inventory: %s}\n", inventory);
    weft_auto(output_done) struct output o =
        RUN("--from", "ufm=" SAMPLES "ufm-links.json", "--nodes", nodes, "--config",
            config("leaf, spine, core", sources));
    CHECK_INT(o.rc, 0);
    CHECK_CONTAINS(o.out, "gpu-[01,99]");
}

static void a_configuration_runs_its_commands(void)
{
    weft_auto(output_done) struct output file = RUN("--from", "infiniband=" DUMP);
    weft_auto(output_done) struct output command =
        RUN("--config", config("leaf, spine, core", "- infiniband: {command: [cat, " DUMP "]}\n"));
    CHECK_INT(command.rc, 0);
    char *findings = strstr(file.out, "findings:"); /* these name the file */
    CHECK(findings != NULL && strlen(file.out) > 100);
    const size_t tree = findings != NULL ? (size_t)(findings - file.out) : 0;
    CHECK(strncmp(file.out, command.out, tree) == 0);
}

static void labels_and_slurm_are_one_tree(void)
{
    static const char nodes[] =
        "{\"kind\": \"NodeList\", \"items\": ["
        "{\"metadata\": {\"name\": \"gpu-01\", \"labels\": {\"example.com/d\": \"d1\"}}},"
        "{\"metadata\": {\"name\": \"gpu-02\", \"labels\": {\"example.com/d\": \"d1\"}}},"
        "{\"metadata\": {\"name\": \"gpu-06\", \"labels\": {\"example.com/d\": \"d2\"}}}]}";
    weft_autofree char *file = weft_asprintf("%s/three-nodes.json", weft_test_dir());
    CHECK_INT(weft_file_replace(file, nodes, strlen(nodes), 0600, NULL), 0);
    weft_auto(output_done) struct output o = RUN(
        "--nodes", file, "--config",
        config("nvlink, leaf, spine", "- labels: {keys: [{key: example.com/d, tierName: nvlink}]}\n"
                                      "- slurm: {conf: " SAMPLES "topology.conf}\n"));
    CHECK_INT(o.rc, 0);
    CHECK_CONTAINS(o.out, "3 nodes in 3 tiers: 1 nvlink (2 groups), 2 leaf (2 groups), 3 spine (1 "
                          "group)");
}

static void a_file_tells_its_kind(void)
{
    static const char *const files[] = {SAMPLES "topology.conf",   SAMPLES "topology.dot",
                                        SAMPLES "fabric.yaml",     SAMPLES "aws.json",
                                        SAMPLES "ufm-links.json",  SAMPLES "lldp/gpu-01.json",
                                        SAMPLES "oci/gpu-01.json", DUMP};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(files); i++) {
        weft_auto(output_done) struct output o = RUN("--from", files[i]);
        CHECK_INT(o.rc, 0);
        CHECK_STR(o.err, "");
    }
    weft_auto(output_done) struct output none = RUN("--from", "LICENSE");
    CHECK_INT(none.rc, 1);
    CHECK_CONTAINS(none.err, "LICENSE is of no kind that shows: say what it is: --from KIND=FILE, "
                             "KIND is infiniband, labels, slurm, lldp, ufm, ptm, aws, oci or file");
    weft_auto(output_done) struct output folder = RUN("--from", SAMPLES "lldp");
    CHECK_INT(folder.rc, 1);
    CHECK_CONTAINS(folder.err,
                   "lldp is a folder: say what it is: --from lldp=FOLDER or oci=FOLDER");
    weft_auto(output_done) struct output input = RUN("--from", "-");
    CHECK_INT(input.rc, 1);
    CHECK_CONTAINS(input.err, "standard input needs its kind");
}

static void a_failing_source_is_named(void)
{
    weft_auto(output_done) struct output o =
        RUN("--config", config("leaf, spine, core", "- slurm: {conf: " SAMPLES "topology.conf}\n"
                                                    "- infiniband: {command: [\"false\"]}\n"));
    CHECK_INT(o.rc, 1);
    CHECK_CONTAINS(o.err, "source infiniband: false: exit status 1");
}

/* ---- memory ---- */

/* Reading all kinds, with names of nodes: a failed allocation is an error of that source. */
static void every_failing_allocation_is_an_error(void)
{
    static const char text[] =
        "apiVersion: weft.dev/v1alpha1\nkind: ControllerConfig\ntiers: [leaf, spine, core, rack, "
        "row]\nsources:\n"
        "- infiniband: {dumps: [" DUMP ", " DUMP "]}\n"
        "- lldp: {folder: " SAMPLES "lldp}\n"
        "- ptm: {topology: " SAMPLES "topology.dot}\n"
        "- awsApiFile: {file: " SAMPLES "aws.json, nodeMap: " SAMPLES "instances.yaml}\n"
        "- ociImds: {folder: " SAMPLES "oci}\n"
        "- file: {path: " SAMPLES "fabric.yaml}\n";
    weft_auto(weft_config_free) struct weft_config *c = NULL;
    CHECK_INT(weft_config_parse(text, strlen(text), "config", &c, NULL), 0);
    for (size_t s = 0; c != NULL && s < c->source_count; s++) {
        int rc = -ENOMEM;
        for (uint64_t n = 1; rc < 0 && n < 60000; n += 1 + n / 40) {
            struct weft_sources *sources = NULL;
            (void)weft_mem_fail_after(n);
            rc = weft_sources_read(&c->sources[s], 1, &sources, NULL);
            (void)weft_mem_fail_after(0);
            rc = rc < 0 ? rc : weft_sources_check(sources, NULL);
            CHECK(rc == 0 || rc == -ENOMEM || rc == -ENODATA);
            weft_sources_free(sources);
        }
        CHECK_INT(rc, 0);
    }
}

WEFT_SUITE(ctl_sources,
           {"a map says which node an instance is", a_map_says_which_node_an_instance_is},
           {"an inventory comes before names", an_inventory_comes_before_names},
           {"a configuration runs its commands", a_configuration_runs_its_commands},
           {"labels and slurm are one tree", labels_and_slurm_are_one_tree},
           {"a file tells its kind", a_file_tells_its_kind},
           {"a failing source is named", a_failing_source_is_named},
           {"every failing allocation is an error", every_failing_allocation_is_an_error})
