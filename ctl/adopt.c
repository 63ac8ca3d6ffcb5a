/* SPDX-License-Identifier: Apache-2.0 */
/* weftctl adopt: HyperNodes made by hand, or by Volcano's label source, become weft's. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cluster.h"
#include "ctl/ctl.h"
#include "pkg/base/buf.h"
#include "pkg/base/str.h"
#include "pkg/hypernode/adopt.h"
#include "pkg/json/json.h"
#include "pkg/kube/path.h"

const char weft_ctl_adopt_help[] =
    "usage: weftctl adopt [options]\n\n"
    "Hands HyperNodes that were made by hand, or by Volcano's label source, over to "
    "weft-controller:\n"
    "they get its labels, one write each, and nothing else of them changes, so the scheduler's "
    "tree\n"
    "stays as it is. The controller then keeps their names where their nodes are still together, "
    "and\n"
    "writes what differs in its own order. It refuses while Volcano's label source is switched "
    "on,\n"
    "which would make its HyperNodes again beside them. Other sources' and other weft instances'\n"
    "HyperNodes are left alone.\n\n"
    "  --dry-run                 says what it would do\n"
    "  --instance NAME           the controller's --instance (default weft)\n"
    "  --label-prefix P/         the controller's --label-prefix (default weft.dev/)\n"
    "  --volcano-namespace NS    where Volcano is installed (default volcano-system)\n"
    "  --volcano-release NAME    its Helm release (default volcano)\n"
    "  --kubeconfig FILE         default: $KUBECONFIG, else ~/.kube/config; --context NAME\n\n"
    "Rights: get on Volcano's controller ConfigMap; list and patch on hypernodes.\n"
    "exit status: 0 done, or nothing to do; 1 refused, or a failure (run it again); 2 wrong use\n";

enum { PAGE = 200, PATH_MAX_BYTES = 512, TEXT_MAX = 4096, TOKEN_MAX = 4096 };

static const struct weft_kube_resource configmaps = {
    .group = "", .version = "v1", .plural = "configmaps"};

struct run {
    FILE *out, *err;
    const char *instance, *prefix, *volcano_ns, *volcano_release;
    bool dry_run;
    struct weft_ctl_cluster *cluster;
    struct weft_hypernode_set set;
    char more[TOKEN_MAX]; /* of the list: where the next page begins; "" = it was the last */
    int source_is_on;     /* 1, 0, or an error's code */
    struct weft_error why;
};

/* ---- is Volcano's label source on? ---- */

static void take_config(void *data, const struct weft_kube_result *result)
{
    struct run *run = data;
    const struct weft_json *map = weft_json_get(result->body, "data");
    for (size_t i = 0; i < weft_json_count(map) && run->source_is_on == 0; i++) {
        const struct weft_json *item = weft_json_at(map, i);
        const char *text = weft_json_string(item);
        if (text != NULL && weft_str_ends(weft_str(weft_json_key(item)), ".conf")) {
            run->source_is_on =
                weft_adopt_source_is_on(text, strlen(text), weft_json_key(item), &run->why);
        }
    }
}

/* Where there is no such ConfigMap, Volcano's controller discovers nothing; or it is installed
 * under another name, which only the reader can tell. */
static int check_source(struct run *run, struct weft_error *err)
{
    char name[PATH_MAX_BYTES];
    struct weft_error error = {0};
    (void)snprintf(name, sizeof(name), "%s-controller-configmap", run->volcano_release);
    weft_autofree char *path = weft_kube_path(&configmaps, run->volcano_ns, name);
    if (path == NULL) {
        return weft_err_nomem(err);
    }
    const struct weft_kube_op op = {.verb = WEFT_KUBE_GET, .path = path};
    const int rc = weft_ctl_cluster_ask(run->cluster, &op, take_config, run, &error);
    if (rc < 0 && !weft_ctl_cluster_lacks(&error)) {
        *err = error;
        return weft_err_wrap(err, rc, "is Volcano's label source off?");
    }
    if (rc < 0) {
        (void)fprintf(run->out,
                      "no ConfigMap %s/%s: Volcano's label source is taken to be off (else see "
                      "--volcano-namespace, --volcano-release)\n",
                      run->volcano_ns, name);
    }
    if (run->source_is_on < 0) {
        *err = run->why;
        return weft_err_wrap(err, run->source_is_on, "is Volcano's label source off? %s", name);
    }
    return run->source_is_on == 0
               ? 0
               : weft_err_set(err, -EPERM, WEFT_ERR_CONFIG,
                              "Volcano's label source is on (%s/%s): it would make its HyperNodes "
                              "again beside those that are adopted. Set enabled: false there first",
                              run->volcano_ns, name);
}

/* ---- what there is ---- */

static int take_items(struct run *run, const struct weft_json *items)
{
    for (size_t i = 0; i < weft_json_count(items); i++) {
        weft_auto(weft_hypernode_done) struct weft_hypernode hn = {0};
        int rc = weft_hypernode_from_json(weft_json_at(items, i), run->prefix, &hn, &run->why);
        rc = rc < 0 ? rc : weft_hypernode_set_append(&run->set, &hn);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static void take_page(void *data, const struct weft_kube_result *result)
{
    struct run *run = data;
    const struct weft_json *meta = weft_json_get(result->body, "metadata");
    const char *more = weft_json_string(weft_json_get(meta, "continue"));
    const int n = snprintf(run->more, sizeof(run->more), "%s", more != NULL ? more : "");
    run->why = (struct weft_error){0};
    if (take_items(run, weft_json_get(result->body, "items")) < 0 && run->why.code == 0) {
        run->why.code = -ENOMEM;
    }
    if (n >= (int)sizeof(run->more)) {
        (void)weft_err_set(&run->why, -EFBIG, WEFT_ERR_HTTP, "a list's token is too long");
    }
}

static int list_hypernodes(struct run *run, struct weft_error *err)
{
    weft_autofree char *path = weft_kube_path(&weft_kube_hypernodes, NULL, NULL);
    if (path == NULL) {
        return weft_err_nomem(err);
    }
    do {
        weft_auto(weft_buf_done) struct weft_buf query;
        weft_buf_init(&query, 4 * (size_t)TOKEN_MAX);
        (void)weft_buf_printf(&query, "limit=%d", PAGE);
        if (run->more[0] != '\0') {
            weft_kube_put_param(&query, "continue", run->more);
        }
        const struct weft_kube_op op = {
            .verb = WEFT_KUBE_GET, .path = path, .query = weft_buf_text(&query)};
        int rc = query.status < 0 ? weft_err_nomem(err)
                                  : weft_ctl_cluster_ask(run->cluster, &op, take_page, run, err);
        if (rc == 0 && run->why.code < 0) {
            *err = run->why;
            rc = run->why.code;
        }
        if (rc < 0) {
            return rc;
        }
    } while (run->more[0] != '\0');
    weft_hypernode_set_sort(&run->set);
    return 0;
}

/* ---- writing ---- */

/* All labels in one write, on the version that was read: half of them would be nobody's. */
static void put_patch(const struct run *run, const struct weft_hypernode *hn, struct weft_buf *body)
{
    struct weft_json_writer w;
    weft_json_writer_init(&w, body, 0);
    weft_json_open(&w, '{');
    weft_json_put_key(&w, "metadata");
    weft_json_open(&w, '{');
    weft_json_kv_string(&w, "resourceVersion", weft_hypernode_text(hn->resource_version));
    weft_json_put_key(&w, "labels");
    weft_json_open(&w, '{');
    weft_json_kv_string(&w, WEFT_LABEL_SOURCE, WEFT_LABEL_SOURCE_VALUE);
    weft_json_kv_string(&w, WEFT_LABEL_MANAGED_BY, WEFT_LABEL_MANAGED_BY_VALUE);
    weft_json_kv_string(&w, WEFT_LABEL_INSTANCE, run->instance);
    weft_json_close(&w, '}');
    weft_json_close(&w, '}');
    weft_json_close(&w, '}');
}

static int adopt_one(const struct run *run, const struct weft_hypernode *hn, struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf body;
    weft_autofree char *path = weft_kube_path(&weft_kube_hypernodes, NULL, hn->name);
    weft_buf_init(&body, TEXT_MAX);
    put_patch(run, hn, &body);
    if (path == NULL || body.status < 0) {
        return weft_err_nomem(err);
    }
    const struct weft_kube_op op = {.verb = WEFT_KUBE_MERGE_PATCH,
                                    .path = path,
                                    .body = weft_buf_text(&body),
                                    .body_len = body.len};
    return weft_ctl_cluster_ask(run->cluster, &op, NULL, NULL, err);
}

static void count_left(const struct run *run)
{
    static const char *const words[WEFT_ADOPT_WHY_COUNT] = {
        [WEFT_ADOPT_OURS] = "are this instance's already",
        [WEFT_ADOPT_WEFT] = "are another weft instance's",
        [WEFT_ADOPT_OTHER] = "come from another source",
        [WEFT_ADOPT_DYING] = "are being deleted",
    };
    size_t counts[WEFT_ADOPT_WHY_COUNT] = {0};
    for (size_t i = 0; i < run->set.count; i++) {
        counts[weft_adopt_judge(&run->set.items[i], run->instance)]++;
    }
    for (size_t i = 0; i < WEFT_ADOPT_WHY_COUNT; i++) {
        if (words[i] != NULL && counts[i] > 0) {
            (void)fprintf(run->out, "left alone: %zu that %s\n", counts[i], words[i]);
        }
    }
}

static int adopt_all(struct run *run, struct weft_error *err)
{
    weft_auto(weft_adopt_plan_done) struct weft_adopt_plan plan = {0};
    int rc = weft_adopt_build(&run->set, run->instance, &plan, err);
    size_t done = 0;
    for (; done < plan.count && rc == 0; done++) {
        const struct weft_hypernode *hn = &run->set.items[plan.items[done]];
        (void)fprintf(run->out, "%s %s (tier %" PRId64 ", %zu member%s, %s)\n",
                      run->dry_run ? "would adopt" : "adopt", hn->name, hn->tier, hn->member_count,
                      hn->member_count == 1 ? "" : "s",
                      hn->source[0] != '\0' ? "Volcano's label source" : "made by hand");
        rc = run->dry_run ? 0 : adopt_one(run, hn, err);
    }
    if (rc < 0) {
        return weft_err_wrap(err, rc, "%zu of %zu HyperNodes adopted; run it again",
                             done > 0 ? done - 1 : 0, plan.count);
    }
    count_left(run);
    (void)fprintf(run->out, "%zu HyperNode%s %s\n", plan.count, plan.count == 1 ? "" : "s",
                  run->dry_run ? "to adopt" : "adopted");
    return 0;
}

/* ---- the verb ---- */

static int go(struct run *run, const char *kubeconfig, const char *context)
{
    struct weft_error err = {0};
    int rc = weft_ctl_cluster_new(kubeconfig, context, &run->cluster, &err);
    rc = rc < 0 ? rc : check_source(run, &err);
    rc = rc < 0 ? rc : list_hypernodes(run, &err);
    rc = rc < 0 ? rc : adopt_all(run, &err);
    return rc < 0 ? weft_ctl_fail(run->err, "adopt", err.message) : WEFT_CTL_OK;
}

int weft_ctl_adopt_to(int argc, char **argv, FILE *out, FILE *err_out)
{
    struct run run = {.out = out,
                      .err = err_out,
                      .instance = "weft",
                      .prefix = "weft.dev/",
                      .volcano_ns = "volcano-system",
                      .volcano_release = "volcano"};
    const char *kubeconfig = NULL;
    const char *context = NULL;
    struct weft_ctl_option options[] = {
        {"--dry-run", NULL, 0, 0},
        {"--instance", &run.instance, 1, 0},
        {"--label-prefix", &run.prefix, 1, 0},
        {"--volcano-namespace", &run.volcano_ns, 1, 0},
        {"--volcano-release", &run.volcano_release, 1, 0},
        {"--kubeconfig", &kubeconfig, 1, 0},
        {"--context", &context, 1, 0},
        {NULL, NULL, 0, 0},
    };
    struct weft_error err = {0};
    if (weft_ctl_options(argc, argv, options, &err) < 0) {
        return weft_ctl_wrong_use(err_out, "adopt", err.message);
    }
    if (!weft_dns_label_valid(run.instance) || !weft_dns_label_valid(run.volcano_ns)) {
        return weft_ctl_wrong_use(err_out, "adopt", "a name must be a DNS label");
    }
    if (!weft_label_prefix_valid(run.prefix)) {
        return weft_ctl_wrong_use(err_out, "adopt",
                                  "--label-prefix must be a DNS subdomain and a slash");
    }
    run.dry_run = options[0].count > 0;
    const int status = go(&run, kubeconfig, context);
    weft_hypernode_set_done(&run.set);
    weft_ctl_cluster_free(run.cluster);
    return status;
}

int weft_ctl_adopt(int argc, char **argv)
{
    return weft_ctl_adopt_to(argc, argv, stdout, stderr);
}
