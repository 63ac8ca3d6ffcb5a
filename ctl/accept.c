/* SPDX-License-Identifier: Apache-2.0 */
/* weftctl accept: what the controller holds back, and the word that lets one of it through. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cluster.h"
#include "ctl/ctl.h"
#include "pkg/apply/refusal.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/str.h"
#include "pkg/json/json.h"

const char weft_ctl_accept_help[] =
    "usage: weftctl accept [HASH] [options]\n\n"
    "Lets one change through that weft-controller holds back: a brake, tiers that change their\n"
    "meaning, a tierName that others use, a move under a running gang. Without HASH it lists what\n"
    "waits. A word is for that one change: it outlives a restart of the controller, is good once,\n"
    "and for a day. HASH may also come from `weft-controller --dry-run`, before the change.\n\n"
    "  --namespace NS     of the controller's Lease (default weft-system)\n"
    "  --instance NAME    the controller's --instance (default weft)\n"
    "  --kubeconfig FILE  default: $KUBECONFIG, else ~/.kube/config; --context NAME\n\n"
    "It writes the ConfigMap NAME-accepted (verbs patch and create on configmaps), nothing else.\n"
    "exit status: 0 accepted, or nothing waits; 1 changes wait, or a failure; 2 wrong use\n";

enum { TEXT_MAX = 4096 };

static const struct weft_kube_resource configmaps = {
    .group = "", .version = "v1", .plural = "configmaps"};

struct run {
    FILE *out, *err;
    const char *ns, *instance;
    struct weft_ctl_cluster *cluster;
    struct weft_refusals *refusals; /* that are shown as waiting */
    bool has_status;                /* there is a status that could show some */
    struct weft_acceptance accepted[WEFT_ACCEPTANCES_MAX];
    size_t accepted_count;
};

/* ---- what there is ---- */

static void take_refusals(void *data, const struct weft_kube_result *result)
{
    struct run *run = data;
    run->has_status = true;
    weft_refusals_read(result->body, run->refusals);
    for (size_t i = 0; i < run->refusals->count; i++) {
        char *text = run->refusals->items[i].text;
        weft_str_printable(text, strlen(text), "");
    }
}

static void take_accepted(void *data, const struct weft_kube_result *result)
{
    struct run *run = data;
    run->accepted_count =
        weft_accepted_read(result->body, weft_clock_realtime(weft_clock_system()), run->accepted);
}

/* A ConfigMap that is not there is an empty one. */
static int read_map(struct run *run, const char *suffix, weft_kube_result_fn take,
                    struct weft_error *err)
{
    struct weft_error error = {0};
    weft_autofree char *name = weft_asprintf("%s%s", run->instance, suffix);
    weft_autofree char *path = name != NULL ? weft_kube_path(&configmaps, run->ns, name) : NULL;
    if (path == NULL) {
        return weft_err_nomem(err);
    }
    const struct weft_kube_op op = {.verb = WEFT_KUBE_GET, .path = path};
    const int rc = weft_ctl_cluster_ask(run->cluster, &op, take, run, &error);
    if (rc < 0 && !weft_ctl_cluster_lacks(&error)) {
        *err = error;
        return rc;
    }
    return 0;
}

/* ---- list ---- */

static bool is_accepted(const struct run *run, const char *hash)
{
    for (size_t i = 0; i < run->accepted_count; i++) {
        if (strcmp(run->accepted[i].hash, hash) == 0) {
            return true;
        }
    }
    return false;
}

static int list(const struct run *run)
{
    size_t waiting = 0;
    for (size_t i = 0; i < run->refusals->count; i++) {
        const struct weft_refusal *r = &run->refusals->items[i];
        const bool accepted = is_accepted(run, r->hash);
        waiting += !accepted;
        (void)fprintf(run->out, "%s  %-12s  %s%s\n", r->hash, weft_refusal_kind_name(r->kind),
                      accepted ? "(accepted) " : "", r->text);
    }
    if (run->refusals->count == 0) {
        (void)fputs(run->has_status ? "nothing waits\n"
                                    : "nothing waits: no controller has written a status there\n",
                    run->out);
    }
    return waiting > 0 ? WEFT_CTL_FAILED : WEFT_CTL_OK;
}

/* ---- accept ---- */

static const struct weft_refusal *find(const struct run *run, const char *hash)
{
    for (size_t i = 0; i < run->refusals->count; i++) {
        if (strcmp(run->refusals->items[i].hash, hash) == 0) {
            return &run->refusals->items[i];
        }
    }
    return NULL;
}

/* {"data":{HASH: "<time> <target>"}}; name: as an object of its own, else NULL. */
static void put_body(const struct weft_refusal *refusal, const char *hash, const char *name,
                     struct weft_buf *body)
{
    char value[WEFT_TIME_TEXT_MAX + WEFT_REFUSAL_HASH_MAX + 2];
    char time[WEFT_TIME_TEXT_MAX];
    struct weft_json_writer w;
    (void)snprintf(value, sizeof(value), "%s %s",
                   weft_time_format(weft_clock_realtime(weft_clock_system()), time),
                   refusal != NULL ? refusal->target : "");
    weft_json_writer_init(&w, body, 0);
    weft_json_open(&w, '{');
    if (name != NULL) {
        weft_json_kv_string(&w, "apiVersion", "v1");
        weft_json_kv_string(&w, "kind", "ConfigMap");
        weft_json_put_key(&w, "metadata");
        weft_json_open(&w, '{');
        weft_json_kv_string(&w, "name", name);
        weft_json_close(&w, '}');
    }
    weft_json_put_key(&w, "data");
    weft_json_open(&w, '{');
    weft_json_kv_string(&w, hash, value);
    weft_json_close(&w, '}');
    weft_json_close(&w, '}');
}

static int put_word(struct run *run, const struct weft_refusal *refusal, const char *hash,
                    bool create, struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf body;
    weft_buf_init(&body, TEXT_MAX);
    weft_autofree char *name = weft_asprintf("%s" WEFT_ACCEPTED_SUFFIX, run->instance);
    weft_autofree char *path =
        name != NULL ? weft_kube_path(&configmaps, run->ns, create ? NULL : name) : NULL;
    put_body(refusal, hash, create ? name : NULL, &body);
    if (path == NULL || body.status < 0) {
        return weft_err_nomem(err);
    }
    const struct weft_kube_op op = {.verb = create ? WEFT_KUBE_CREATE : WEFT_KUBE_MERGE_PATCH,
                                    .path = path,
                                    .body = weft_buf_text(&body),
                                    .body_len = body.len};
    return weft_ctl_cluster_ask(run->cluster, &op, NULL, NULL, err);
}

static int accept_one(struct run *run, const char *hash, struct weft_error *err)
{
    const struct weft_refusal *refusal = find(run, hash);
    int rc = put_word(run, refusal, hash, false, err);
    if (rc < 0 && weft_ctl_cluster_lacks(err)) {
        rc = put_word(run, refusal, hash, true, err);
    }
    if (rc < 0) {
        return rc;
    }
    (void)fprintf(run->out, "%s accepted: %s\n", hash,
                  refusal != NULL ? refusal->text
                                  : "no change of that name waits now; it counts for a day");
    return 0;
}

/* ---- the verb ---- */

static int go(struct run *run, const char *hash, const char *kubeconfig, const char *context)
{
    struct weft_error err = {0};
    int rc = weft_ctl_cluster_new(kubeconfig, context, &run->cluster, &err);
    rc = rc < 0 ? rc : read_map(run, WEFT_STATUS_SUFFIX, take_refusals, &err);
    if (rc == 0 && hash != NULL) {
        rc = accept_one(run, hash, &err);
        return rc < 0 ? weft_ctl_fail(run->err, "accept", err.message) : WEFT_CTL_OK;
    }
    rc = rc < 0 ? rc : read_map(run, WEFT_ACCEPTED_SUFFIX, take_accepted, &err);
    return rc < 0 ? weft_ctl_fail(run->err, "accept", err.message) : list(run);
}

int weft_ctl_accept_to(int argc, char **argv, FILE *out, FILE *err_out)
{
    const char *ns = "weft-system";
    const char *instance = "weft";
    const char *kubeconfig = NULL;
    const char *context = NULL;
    const char *hash = argc > 1 && argv[1][0] != '-' ? argv[1] : NULL;
    struct weft_ctl_option options[] = {
        {"--namespace", &ns, 1, 0},
        {"--instance", &instance, 1, 0},
        {"--kubeconfig", &kubeconfig, 1, 0},
        {"--context", &context, 1, 0},
        {NULL, NULL, 0, 0},
    };
    struct weft_error err = {0};
    const int skip = hash != NULL ? 1 : 0;
    if (weft_ctl_options(argc - skip, argv + skip, options, &err) < 0) {
        return weft_ctl_wrong_use(err_out, "accept", err.message);
    }
    if (hash != NULL && !weft_refusal_is_hash(hash)) {
        return weft_ctl_wrong_use(err_out, "accept", "HASH is 16 hexadecimal digits");
    }
    if (!weft_dns_label_valid(ns) || !weft_dns_label_valid(instance)) {
        return weft_ctl_wrong_use(err_out, "accept",
                                  "--namespace and --instance must be DNS labels");
    }
    weft_autofree struct weft_refusals *refusals = weft_calloc(1, sizeof(*refusals));
    struct run run = {
        .out = out, .err = err_out, .ns = ns, .instance = instance, .refusals = refusals};
    if (refusals == NULL) {
        return weft_ctl_fail(err_out, "accept", "out of memory");
    }
    const int status = go(&run, hash, kubeconfig, context);
    weft_ctl_cluster_free(run.cluster);
    return status;
}

int weft_ctl_accept(int argc, char **argv)
{
    return weft_ctl_accept_to(argc, argv, stdout, stderr);
}
