/* SPDX-License-Identifier: Apache-2.0 */
/* weftctl tree: the tiers of a fabric dump or of node labels, as a drawing, JSON or HyperNodes. No
 * cluster is needed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/tree-load.h"
#include "ctl/tree-print.h"
#include "pkg/base/buf.h"
#include "pkg/base/str.h"
#include "pkg/hypernode/layout.h"
#include "pkg/hypernode/manifest.h"
#include "pkg/hypernode/output.h"
#include "pkg/source/config.h"
#include "pkg/tree/tree.h"

const char weft_ctl_tree_help[] =
    "usage: weftctl tree --from KIND=FILE... [options]\n"
    "\n"
    "Shows which nodes are close to which, from the closest tier up, and what is odd.\n"
    "\n"
    "  --from infiniband=FILE  output of `ibnetdiscover`; - is stdin\n"
    "  --from labels=FILE      `kubectl get nodes -o json` (or yaml): groups by node labels\n"
    "  --from slurm=FILE       topology.conf or topology.yaml\n"
    "  --from lldp=FILE,...    `lldpcli -f json0 show neighbors`, a file HOST.json a system, or "
    "their\n"
    "                          folder\n"
    "  --from ufm=FILE,...     saved answers of UFM's /ufmRest/resources/links, ports, systems\n"
    "  --from ptm=FILE         topology.dot: the links that should be\n"
    "  --from aws=FILE         `aws ec2 describe-instance-topology`\n"
    "  --from oci=FILE,...     OCI's rdmaTopologyData, a file HOST.json a host, or a list of "
    "hosts\n"
    "  --from file=FILE        weft's own FabricFile: groups by hand\n"
    "  --from FILE             one of these, told by what is in it\n"
    "                          several --from: the first that knows a node decides; FILE,FILE is "
    "one\n"
    "                          source of several files (infiniband: one a subnet)\n"
    "  --nodes FILE            the cluster's nodes: a name a line, or the JSON or YAML of "
    "kubectl;\n"
    "                          without it every host of the fabric counts\n"
    "  --preset NAME           label keys of a platform: aws, aws-4, aws-any, gke, oci,\n"
    "                          coreweave[-ib|-nvlink], nebius, topograph[-nvlink], "
    "topograph-old[-nvlink],\n"
    "                          gpu-clique\n"
    "  --config FILE           tiers, label keys and filters of a ControllerConfig; without "
    "--from\n"
    "                          also its sources: files are read, commands run, servers asked\n"
    "  -o FORMAT               tree (default), json, yaml (HyperNode manifests), slurm\n"
    "                          (topology.conf), slurm-yaml (topology.yaml), dot (graphviz), kueue\n"
    "                          or kai (Topology), labels (a node and its tier labels a line)\n"
    "\n"
    "Exit status: 0 if a tree was made (findings are shown), 1 if no node could be placed or a "
    "file\n"
    "cannot be used, 2 for wrong use.\n"
    "\n"
    "  ibnetdiscover | weftctl tree --from infiniband=-\n"
    "  kubectl get nodes -o json | weftctl tree --from labels=- --preset aws\n"
    "  weftctl tree --from infiniband=dump.txt --nodes nodes.txt -o yaml\n";

/* FORMAT_OTHER: one of pkg/hypernode's outputs */
enum format { FORMAT_TREE, FORMAT_JSON, FORMAT_YAML, FORMAT_OTHER };

struct options {
    struct weft_ctl_tree_ask ask;
    const char *config, *output;
    enum format format;
    enum weft_output other;
};

/* the label and annotation prefix of manifests, and the release that they belong to */
#define PREFIX "weft.dev/"
#define INSTANCE "weft"

static int read_format(struct options *o, struct weft_error *err)
{
    static const char *const names[] = {"tree", "json", "yaml"};
    if (o->output == NULL) {
        return 0;
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
        if (strcmp(o->output, names[i]) == 0) {
            o->format = (enum format)i;
            return 0;
        }
    }
    for (size_t i = 0; i < WEFT_OUTPUT_COUNT; i++) {
        if (strcmp(o->output, weft_output_name((enum weft_output)i)) == 0) {
            o->format = FORMAT_OTHER;
            o->other = (enum weft_output)i;
            return 0;
        }
    }
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                        "-o is tree, json, yaml, slurm, slurm-yaml, dot, kueue, kai or labels, not "
                        "\"%.40s\"",
                        o->output);
}

static int read_options(int argc, char **argv, struct options *o, struct weft_error *err)
{
    struct weft_ctl_option table[] = {
        {"--from", o->ask.from, WEFT_CTL_SOURCES_MAX, 0},
        {"--nodes", &o->ask.nodes, 1, 0},
        {"--preset", &o->ask.preset, 1, 0},
        {"--config", &o->config, 1, 0},
        {"--output", &o->output, 1, 0},
        {"-o", &o->output, 1, 0},
        {NULL, NULL, 0, 0},
    };
    const int rc = weft_ctl_options(argc, argv, table, err);
    o->ask.from_count = table[0].count;
    if (rc < 0) {
        return rc;
    }
    return read_format(o, err);
}

/* Does the terminal take box drawing characters? (POSIX: the first that is set decides) */
static bool is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0') {
            return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
        }
    }
    return false;
}

static void put_findings(const struct weft_tree *tree, FILE *err_stream)
{
    for (size_t i = 0; i < tree->finding_count; i++) {
        const struct weft_finding *f = &tree->findings[i];
        weft_autofree char *line = weft_asprintf("%s  %s: %s", f->kind, f->subject, f->detail);
        if (line != NULL) {
            weft_str_printable(line, strlen(line), "");
            (void)fprintf(err_stream, "finding: %s\n", line);
        }
    }
}

/* What a first install would make: the plan is the configuration's, else what the tree has. */
static int lay_out(const struct options *o, const struct weft_tree *tree,
                   struct weft_layout *ret_layout, struct weft_error *err)
{
    const struct weft_config *config = o->ask.config;
    const char *own[WEFT_LAYOUT_TIERS_MAX] = {0};
    struct weft_layout_options options = {
        .tiers = own, .tier_count = tree->tier_count, .instance = INSTANCE};
    for (size_t t = 0; t < tree->tier_count && t < WEFT_LAYOUT_TIERS_MAX; t++) {
        own[t] = tree->tiers[t].name;
    }
    if (config != NULL) {
        options.tiers = (const char *const *)config->tiers.items;
        options.tier_count = config->tiers.count;
        options.pad =
            config->pad == WEFT_PAD_INHERIT ? WEFT_LAYOUT_PAD_INHERIT : WEFT_LAYOUT_PAD_SINGLETON;
        options.unplaced = config->unplaced == WEFT_UNPLACED_OMIT ? WEFT_LAYOUT_UNPLACED_OMIT
                                                                  : WEFT_LAYOUT_UNPLACED_SINGLETON;
    }
    return weft_layout_build(tree, &options, ret_layout, err);
}

/* HyperNodes, or what other tools read of the same layout. */
static int put_layout(const struct options *o, const struct weft_tree *tree, struct weft_buf *buf,
                      FILE *err_stream, struct weft_error *err)
{
    weft_auto(weft_layout_done) struct weft_layout layout = {0};
    int rc = lay_out(o, tree, &layout, err);
    const struct weft_output_input input = {.set = &layout.desired,
                                            .tiers = (const char *const *)layout.tier_names,
                                            .tier_count = layout.tier_count,
                                            .prefix = PREFIX,
                                            .instance = INSTANCE};
    if (rc == 0) {
        rc = o->format == FORMAT_YAML ? weft_hypernodes_write_yaml(&layout.desired, PREFIX, buf)
                                      : weft_output_write(o->other, &input, buf, err);
    }
    if (rc == 0 && o->ask.nodes == NULL && o->ask.from_count > 0) {
        (void)fputs(
            "note: without --nodes, members are hosts as the source writes them; those that "
            "are no Kubernetes nodes, and names in upper case, match nothing\n",
            err_stream);
    }
    if (rc == 0) {
        put_findings(tree, err_stream);
    }
    return rc;
}

static int put(const struct options *o, const struct weft_tree *tree, FILE *out, FILE *err_stream,
               struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, WEFT_CTL_TREE_TEXT_MAX);
    int rc = 0;
    switch (o->format) {
    case FORMAT_TREE:
        if (tree->node_count > 0) {
            rc = weft_ctl_tree_draw(tree, is_utf8(), &buf);
        } else { /* nothing to draw; what is odd may be why */
            put_findings(tree, err_stream);
        }
        break;
    case FORMAT_JSON:
        rc = weft_ctl_tree_json(tree, &buf);
        break;
    case FORMAT_YAML:
    case FORMAT_OTHER:
        rc = tree->node_count > 0 ? put_layout(o, tree, &buf, err_stream, err) : 0;
        break;
    }
    if (rc < 0) {
        return err->code != 0 ? rc : weft_err_nomem(err);
    }
    if (buf.len > 0) {
        weft_str_printable(buf.data, buf.len, "\n");
    }
    (void)fwrite(weft_buf_text(&buf), 1, buf.len, out);
    return 0;
}

static int show(struct options *o, FILE *out, FILE *err_stream)
{
    weft_auto(weft_config_free) struct weft_config *config = NULL;
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    struct weft_error err = {0};
    int rc = o->config != NULL ? weft_config_load(o->config, &config, &err) : 0;
    if (rc < 0) {
        return weft_ctl_fail(err_stream, "tree", err.message);
    }
    o->ask.config = config;
    if (weft_ctl_tree_check(&o->ask, &err) < 0) {
        return weft_ctl_wrong_use(err_stream, "tree", err.message);
    }
    rc = weft_ctl_tree_load(&o->ask, &tree, &err);
    rc = rc < 0 ? rc : put(o, tree, out, err_stream, &err);
    if (rc < 0) {
        return weft_ctl_fail(err_stream, "tree", err.message);
    }
    if (tree->node_count == 0) {
        return weft_ctl_fail(err_stream, "tree",
                             tree->unplaced_count > 0 ? "no source knows any of the nodes"
                                                      : "no host of the fabric has a usable name; "
                                                        "give the GUIDs names, or node labels");
    }
    return WEFT_CTL_OK;
}

int weft_ctl_tree_to(int argc, char **argv, FILE *out, FILE *err)
{
    struct options o = {0};
    struct weft_error why = {0};
    if (read_options(argc, argv, &o, &why) < 0) {
        return weft_ctl_wrong_use(err, "tree", why.message);
    }
    return show(&o, out, err);
}

int weft_ctl_tree(int argc, char **argv)
{
    return weft_ctl_tree_to(argc, argv, stdout, stderr);
}
