/* SPDX-License-Identifier: Apache-2.0 */
/* --output: a decision as manifests in a folder. With Nodes from a file, or with switch graphs
 * alone, it needs no API server at all. */
#include "controller/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "controller/affected.h"
#include "controller/controller-internal.h"
#include "controller/controller.h"
#include "controller/options.h"
#include "pkg/apply/folder.h"
#include "pkg/base/buf.h"
#include "pkg/base/file.h"
#include "pkg/base/log.h"
#include "pkg/hypernode/output.h"
#include "pkg/source/config.h"
#include "pkg/tree/tree.h"

/* as much as weftctl prints */
enum { OUTPUT_MAX = 512 << 20 };
/* of the folder's whole state (docs/folder.md) */
#define STATE_FILE "apply.yaml"

int weft_controller_read_against(const struct weft_options *options,
                                 struct weft_hypernode_set *ret_set, struct weft_error *err)
{
    if (options->against == NULL) {
        return 0;
    }
    const int rc = weft_folder_read(options->against, options->prefix, ret_set, err);
    return rc < 0 ? weft_err_wrap(err, rc, "--against %s", options->against) : 0;
}

/* DIR/outputs/<file>: a folder of its own, since DIR is read back as HyperNodes. */
static int write_output(const struct weft_options *options, enum weft_output output,
                        const struct weft_output_input *input, struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, OUTPUT_MAX);
    weft_autofree char *dir = weft_asprintf("%s/outputs", options->output);
    weft_autofree char *path =
        weft_asprintf("%s/outputs/%s", options->output, weft_output_file(output));
    if (dir == NULL || path == NULL) {
        return weft_err_nomem(err);
    }
    if (mkdir(dir, 0755) < 0 && errno != EEXIST) {
        return weft_err_errno(err, errno, "%s", dir);
    }
    const int rc = weft_output_write(output, input, &buf, err);
    return rc < 0 ? rc : weft_file_replace(path, weft_buf_text(&buf), buf.len, 0644, err);
}

/* What other tools read, of the same HyperNodes (docs/outputs.md). */
static int write_outputs(const struct weft_options *options, const struct weft_config *config,
                         const struct weft_hypernode_set *set, struct weft_error *err)
{
    const struct weft_output_input input = {
        .set = set,
        .tiers = (const char *const *)config->tiers.items,
        .tier_count = config->tiers.count,
        .prefix = options->prefix,
        .instance = options->instance,
    };
    const bool wanted[WEFT_OUTPUT_COUNT] = {
        [WEFT_OUTPUT_SLURM_CONF] = config->outputs.slurm,
        [WEFT_OUTPUT_SLURM_YAML] = config->outputs.slurm,
        [WEFT_OUTPUT_KUEUE] = config->outputs.kueue,
        [WEFT_OUTPUT_KAI] = config->outputs.kai,
        [WEFT_OUTPUT_DOT] = config->outputs.dot,
    };
    int rc = 0;
    for (size_t i = 0; rc >= 0 && set->count > 0 && i < WEFT_OUTPUT_COUNT; i++) {
        rc = wanted[i] ? write_output(options, (enum weft_output)i, &input, err) : rc;
    }
    return rc;
}

int weft_controller_write_folder(const struct weft_options *options,
                                 const struct weft_config *config,
                                 const struct weft_decision *decision, struct weft_error *err)
{
    struct weft_folder_counts state = {0};
    struct weft_folder_counts steps = {0};
    int rc = weft_folder_write(options->output, &decision->keep.set, options->prefix, &state, err);
    if (rc == 0 && options->against != NULL) {
        rc =
            weft_folder_write_steps(options->output, &decision->plan, options->prefix, &steps, err);
    }
    rc = rc == 0 ? write_outputs(options, config, &decision->keep.set, err) : rc;
    if (rc < 0) {
        return weft_err_wrap(err, rc, "--output %s", options->output);
    }
    const size_t hypernodes = decision->keep.set.count;
    const size_t nodes = decision->tree->node_count;
    (void)printf("%s: %zu HyperNode%s of %zu Node%s; %zu file%s written, %zu as %s, %zu removed\n",
                 options->output, hypernodes, weft_controller_s(hypernodes), nodes,
                 weft_controller_s(nodes), state.written, weft_controller_s(state.written),
                 state.unchanged, state.unchanged == 1 ? "it was" : "they were", state.removed);
    if (options->against != NULL) {
        (void)printf("%s: %zu step%s from %s\n", options->output, decision->plan.step_count,
                     weft_controller_s(decision->plan.step_count), options->against);
    }
    return 0;
}

/* ---- without an API server ---- */

struct offline {
    struct weft_config *config;
    struct weft_sources *sources;
    struct weft_nodes nodes;
    struct weft_hypernode_set live;
    struct weft_pods pods;
    struct weft_keep *keep;
    struct weft_decision decision;
};

static void offline_done(struct offline *o)
{
    weft_decision_done(&o->decision);
    weft_keep_free(o->keep);
    weft_pods_done(&o->pods);
    weft_hypernode_set_done(&o->live);
    weft_nodes_done(&o->nodes);
    weft_sources_free(o->sources);
    weft_config_free(o->config);
}
WEFT_DEFINE_AUTO_VALUE(struct offline, offline_done)

static int read_nodes(const char *path, struct weft_nodes *ret_nodes, struct weft_error *err)
{
    weft_autofree char *text = NULL;
    size_t len = 0;
    const int rc = weft_file_read(path, WEFT_NODES_TEXT_MAX, &text, &len, err);
    return rc < 0 ? rc : weft_nodes_parse(text, len, path, ret_nodes, err);
}

static void print_findings(const struct weft_finding *findings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        weft_log(WEFT_LOG_WARN, findings[i].kind, WEFT_KV_S("about", findings[i].subject),
                 WEFT_KV_S("detail", findings[i].detail));
    }
}

static int decide(struct offline *o, const struct weft_options *options, struct weft_error *err)
{
    const struct weft_source_result *results[WEFT_CONFIG_SOURCES_MAX] = {0};
    const struct weft_names_of_ours ours = {.prefix = options->prefix,
                                            .instance = options->instance};
    int rc = weft_controller_results(o->sources, o->config, results, err);
    if (rc < 0) {
        return rc;
    }
    weft_autofree struct weft_decide_memory *memory =
        weft_calloc(o->nodes.count + 1, sizeof(*memory));
    o->keep = weft_keep_new();
    if (memory == NULL || o->keep == NULL) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < o->nodes.count; i++) {
        memory[i].source = WEFT_KEEP_NO_SOURCE;
    }
    const struct weft_decide_input input = {
        .config = o->config,
        .ours = &ours,
        .results = results,
        .nodes = o->nodes.items,
        .memory = memory,
        .node_count = o->nodes.count,
        .any_host = options->nodes == NULL,
        .live = &o->live,
        .keep = o->keep,
    };
    return weft_decide(&input, &o->decision, err);
}

/* Places are kept of Nodes that are known, and of HyperNodes that are. Where one of both is not, a
 * part of a fabric would take away what it does not name. */
static int check_parts(const struct offline *o, const struct weft_options *options,
                       struct weft_error *err)
{
    weft_autofree char *state = weft_asprintf("%s/" STATE_FILE, options->output);
    if (state == NULL) {
        return weft_err_nomem(err);
    }
    const bool keeps = options->nodes != NULL && options->against != NULL;
    const bool first = options->against == NULL && access(state, F_OK) < 0;
    for (size_t i = 0; !keeps && !first && i < o->config->source_count; i++) {
        const struct weft_source_health *health = weft_sources_health(o->sources, i);
        if (health != NULL && health->state == WEFT_SOURCE_PARTIAL) {
            return weft_err_set(err, -ENODATA, WEFT_ERR_CONFIG,
                                "%s, which takes nothing away: give the whole, or --nodes and "
                                "--against",
                                health->error.message);
        }
    }
    return 0;
}

static int run_offline(struct offline *o, const struct weft_options *options,
                       struct weft_error *err)
{
    int rc = weft_sources_read(o->config->sources, o->config->source_count, &o->sources, err);
    rc = rc == 0 ? check_parts(o, options, err) : rc;
    if (rc == 0 && options->nodes != NULL) {
        rc = read_nodes(options->nodes, &o->nodes, err);
    }
    if (rc == 0) {
        rc = weft_controller_read_against(options, &o->live, err);
    }
    if (rc == 0) {
        rc = weft_controller_read_pods(options, &o->pods, err);
    }
    if (rc == 0) {
        rc = decide(o, options, err);
    }
    if (rc < 0) {
        return rc;
    }
    print_findings(o->decision.tree->findings, o->decision.tree->finding_count);
    print_findings(o->decision.layout.findings, o->decision.layout.finding_count);
    print_findings(o->decision.plan.findings, o->decision.plan.finding_count);
    rc = weft_controller_write_folder(options, o->config, &o->decision, err);
    if (rc == 0) {
        rc = weft_controller_print_affected(options, &o->pods, &o->live, &o->decision.plan, err);
    }
    if (rc == 0 && o->decision.keep.refused) {
        const struct weft_refusals *refusals = &o->decision.keep.refusals;
        for (size_t i = 0; i < refusals->count; i++) {
            weft_log(WEFT_LOG_WARN, "TopologyChangeRefused",
                     WEFT_KV_S("change", refusals->items[i].hash),
                     WEFT_KV_S("why", refusals->items[i].text),
                     WEFT_KV_S("kept", "the places in --against"));
        }
        return 1;
    }
    return rc;
}

static bool needs_nodes(const struct weft_config *config)
{
    for (size_t i = 0; i < config->source_count; i++) {
        if (config->sources[i].kind == WEFT_SOURCE_LABELS) {
            return true;
        }
    }
    return false;
}

int weft_controller_output(const struct weft_options *options, struct weft_error *err)
{
    weft_auto(offline_done) struct offline o = {0};
    const int rc = weft_config_load(options->config, &o.config, err);
    if (rc < 0) {
        return rc;
    }
    const bool cluster =
        options->nodes == NULL && (options->kubeconfig != NULL || needs_nodes(o.config));
    return cluster ? weft_controller_run(options, err) : run_offline(&o, options, err);
}
