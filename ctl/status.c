/* SPDX-License-Identifier: Apache-2.0 */
/* weftctl status: what the controller says of itself in its ConfigMap. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ctl/cluster.h"
#include "ctl/ctl.h"
#include "pkg/base/str.h"
#include "pkg/json/json.h"

const char weft_ctl_status_help[] =
    "usage: weftctl status [options]\n\n"
    "Shows what weft-controller last wrote into its ConfigMap weft-status: its sources, how many\n"
    "Nodes and HyperNodes there are, changes that it holds back, and what it finds odd.\n\n"
    "  --namespace NS     where the controller runs (default weft-system)\n"
    "  --instance NAME    the controller's --instance (default weft); it writes NAME-status\n"
    "  --kubeconfig FILE  default: $KUBECONFIG, else ~/.kube/config; --context NAME\n"
    "  -o text, json      text, or the document as it is\n\n"
    "It reads that ConfigMap (verb get) and writes nothing.\n"
    "exit status: 0 nothing is odd; 1 something is, or a failure; 2 wrong use\n";

enum { TEXT_MAX = 4096 };

static const struct weft_kube_resource configmaps = {
    .group = "", .version = "v1", .plural = "configmaps"};

struct run {
    FILE *out, *err;
    bool json;
    bool odd;
    struct weft_error why;
};

/* ---- as text ---- */

/* What stands in a ConfigMap must not steer a terminal. */
static void put(struct run *run, const char *before, const char *text, const char *after)
{
    char clean[TEXT_MAX];
    (void)snprintf(clean, sizeof(clean), "%s", text != NULL ? text : "");
    weft_str_printable(clean, strlen(clean), "");
    (void)fprintf(run->out, "%s%s%s", before, clean, after);
}

static const char *text_of(const struct weft_json *object, const char *key)
{
    const char *text = weft_json_string(weft_json_get(object, key));
    return text != NULL ? text : "";
}

static int64_t number(const struct weft_json *object, const char *key)
{
    return weft_json_int(weft_json_get(object, key), 0);
}

static void put_state(struct run *run, const struct weft_json *doc)
{
    static const struct {
        const char *key, *label;
    } errors[] = {{"configError", "the configuration file is not in use: "},
                  {"passError", "nothing is decided: "}};
    put(run, "instance ", text_of(doc, "instance"), "");
    (void)fputs(weft_json_bool(weft_json_get(doc, "paused"), false) ? ", paused\n" : "\n",
                run->out);
    for (size_t i = 0; i < WEFT_ARRAY_LEN(errors); i++) {
        if (weft_json_get(doc, errors[i].key) != NULL) {
            put(run, errors[i].label, text_of(doc, errors[i].key), "\n");
        }
    }
    if (!weft_json_bool(weft_json_get(doc, "hyperNodesServed"), true)) {
        (void)fputs("the API server does not serve HyperNodes\n", run->out);
    }
}

static void put_counts(struct run *run, const struct weft_json *doc)
{
    const struct weft_json *nodes = weft_json_get(doc, "nodes");
    const struct weft_json *tiers = weft_json_get(doc, "tiers");
    if (nodes == NULL) {
        return;
    }
    (void)fprintf(run->out,
                  "Nodes: %" PRId64 " selected, %" PRId64 " placed, %" PRId64 " unplaced, %" PRId64
                  " excluded, %" PRId64 " kept in their last place\n\n",
                  number(nodes, "selected"), number(nodes, "placed"), number(nodes, "unplaced"),
                  number(nodes, "excluded"), number(nodes, "kept"));
    (void)fprintf(run->out, "%-5s %-20s %s\n", "TIER", "NAME", "HYPERNODES");
    for (size_t i = 0; i < weft_json_count(tiers); i++) {
        const struct weft_json *tier = weft_json_at(tiers, i);
        char name[64];
        (void)snprintf(name, sizeof(name), "%-20.40s", text_of(tier, "name"));
        (void)fprintf(run->out, "%-5" PRId64 " ", number(tier, "tier"));
        put(run, "", name, "");
        (void)fprintf(run->out, " %" PRId64 "\n", number(tier, "hyperNodes"));
    }
    if (number(doc, "foreignHyperNodes") > 0) {
        (void)fprintf(run->out, "%" PRId64 " HyperNodes of others\n",
                      number(doc, "foreignHyperNodes"));
    }
}

static void put_sources(struct run *run, const struct weft_json *doc)
{
    const struct weft_json *sources = weft_json_get(doc, "sources");
    (void)fputs("\n", run->out);
    for (size_t i = 0; i < weft_json_count(sources); i++) {
        const struct weft_json *source = weft_json_at(sources, i);
        const char *state = text_of(source, "state");
        const char *error = text_of(source, "error");
        put(run, "source ", text_of(source, "name"), ": ");
        put(run, "", state, "");
        if (weft_json_get(source, "placedNodes") != NULL) {
            (void)fprintf(run->out, ", decides %" PRId64 " Nodes", number(source, "placedNodes"));
        }
        put(run, error[0] != '\0' ? ": " : "", error, "\n");
    }
}

static void put_changes(struct run *run, const struct weft_json *doc)
{
    const struct weft_json *changes = weft_json_get(doc, "refusedChanges");
    const size_t count = weft_json_count(changes);
    (void)fprintf(run->out, "\nchanges held back: %zu%s\n", count,
                  count > 0 ? " (weftctl accept HASH)" : "");
    for (size_t i = 0; i < count; i++) {
        const struct weft_json *change = weft_json_at(changes, i);
        put(run, "  ", text_of(change, "hash"), "  ");
        put(run, "", text_of(change, "kind"), "  ");
        put(run, "", text_of(change, "text"), "\n");
    }
}

static void put_findings(struct run *run, const struct weft_json *doc)
{
    const struct weft_json *findings = weft_json_get(doc, "findings");
    (void)fprintf(run->out, "\nfindings: %" PRId64 "\n", number(doc, "findingCount"));
    for (size_t i = 0; i < weft_json_count(findings); i++) {
        const struct weft_json *finding = weft_json_at(findings, i);
        put(run, "  ", text_of(finding, "kind"), "  ");
        put(run, "", text_of(finding, "subject"), ": ");
        put(run, "", text_of(finding, "detail"), "\n");
    }
    if (number(doc, "findingsLeftOut") > 0) {
        (void)fprintf(run->out, "  and %" PRId64 " more\n", number(doc, "findingsLeftOut"));
    }
}

static bool is_odd(const struct weft_json *doc)
{
    const struct weft_json *sources = weft_json_get(doc, "sources");
    bool odd = weft_json_get(doc, "configError") != NULL ||
               weft_json_get(doc, "passError") != NULL ||
               !weft_json_bool(weft_json_get(doc, "hyperNodesServed"), true) ||
               weft_json_count(weft_json_get(doc, "refusedChanges")) > 0 ||
               number(doc, "findingCount") > 0;
    for (size_t i = 0; i < weft_json_count(sources) && !odd; i++) {
        odd = strcmp(text_of(weft_json_at(sources, i), "state"), "ok") != 0;
    }
    return odd;
}

/* ---- the verb ---- */

static void take(void *data, const struct weft_kube_result *result)
{
    struct run *run = data;
    const char *text =
        weft_json_string(weft_json_get(weft_json_get(result->body, "data"), "status.json"));
    weft_auto(weft_json_free) struct weft_json *doc = NULL;
    if (text == NULL) {
        (void)weft_err_set(&run->why, -ENODATA, WEFT_ERR_JSON,
                           "the ConfigMap has no key status.json");
    } else if (weft_json_parse(text, strlen(text), "status.json", &doc, &run->why) == 0) {
        if (weft_json_get(doc, "instance") == NULL) {
            (void)weft_err_set(&run->why, -EBADMSG, WEFT_ERR_JSON,
                               "status.json: no status of a controller: instance is missing");
            return;
        }
        run->odd = is_odd(doc);
        if (run->json) {
            (void)fputs(text, run->out);
            return;
        }
        put_state(run, doc);
        put_counts(run, doc);
        put_sources(run, doc);
        put_changes(run, doc);
        put_findings(run, doc);
    }
}

static int ask(struct run *run, struct weft_ctl_cluster *cluster, const char *ns, const char *name)
{
    struct weft_error err = {0};
    weft_autofree char *path = weft_kube_path(&configmaps, ns, name);
    if (path == NULL) {
        return weft_ctl_fail(run->err, "status", "out of memory");
    }
    const struct weft_kube_op op = {.verb = WEFT_KUBE_GET, .path = path};
    if (weft_ctl_cluster_ask(cluster, &op, take, run, &err) < 0) {
        return weft_ctl_fail(run->err, "status",
                             weft_ctl_cluster_lacks(&err)
                                 ? "there is no status: no controller has written one there"
                                 : err.message);
    }
    if (run->why.code != 0) {
        return weft_ctl_fail(run->err, "status", run->why.message);
    }
    return run->odd ? WEFT_CTL_FAILED : WEFT_CTL_OK;
}

static const char *wrong(const char *ns, const char *instance, const char *format)
{
    if (!weft_dns_label_valid(ns)) {
        return "--namespace must be a DNS label";
    }
    if (!weft_dns_label_valid(instance)) {
        return "--instance must be a DNS label";
    }
    return strcmp(format, "text") == 0 || strcmp(format, "json") == 0 ? NULL : "-o is text or json";
}

int weft_ctl_status_to(int argc, char **argv, FILE *out, FILE *err_out)
{
    const char *ns = "weft-system";
    const char *instance = "weft";
    const char *kubeconfig = NULL;
    const char *context = NULL;
    const char *format = "text";
    struct weft_ctl_option options[] = {
        {"--namespace", &ns, 1, 0},
        {"--instance", &instance, 1, 0},
        {"--kubeconfig", &kubeconfig, 1, 0},
        {"--context", &context, 1, 0},
        {"-o", &format, 1, 0},
        {NULL, NULL, 0, 0},
    };
    struct weft_error err = {0};
    if (weft_ctl_options(argc, argv, options, &err) < 0) {
        return weft_ctl_wrong_use(err_out, "status", err.message);
    }
    const char *why = wrong(ns, instance, format);
    if (why != NULL) {
        return weft_ctl_wrong_use(err_out, "status", why);
    }
    struct run run = {.out = out, .err = err_out, .json = strcmp(format, "json") == 0};
    char name[80];
    (void)snprintf(name, sizeof(name), "%s-status", instance);
    weft_auto(weft_ctl_cluster_free) struct weft_ctl_cluster *cluster = NULL;
    if (weft_ctl_cluster_new(kubeconfig, context, &cluster, &err) < 0) {
        return weft_ctl_fail(err_out, "status", err.message);
    }
    return ask(&run, cluster, ns, name);
}

int weft_ctl_status(int argc, char **argv)
{
    return weft_ctl_status_to(argc, argv, stdout, stderr);
}
