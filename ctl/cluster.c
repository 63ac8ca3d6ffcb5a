/* SPDX-License-Identifier: Apache-2.0 */
/* A loop, a client, and one call at a time. Must not know what is asked. */
#include "ctl/cluster.h"

#include <errno.h>

#include "pkg/kube/config.h"
#include "pkg/loop/loop.h"

struct weft_ctl_cluster {
    struct weft_loop *loop;
    struct weft_kube_client *client;
    /* of the call under way */
    weft_kube_result_fn take;
    void *data;
    struct weft_error error;
    bool done;
};

int weft_ctl_cluster_new(const char *kubeconfig, const char *context,
                         struct weft_ctl_cluster **ret_cluster, struct weft_error *err)
{
    weft_auto(weft_ctl_cluster_free) struct weft_ctl_cluster *c = weft_calloc(1, sizeof(*c));
    struct weft_kube_config *config = NULL;
    if (c == NULL) {
        return weft_err_nomem(err);
    }
    int rc = weft_loop_new(&c->loop, err);
    rc = rc < 0 ? rc : weft_kube_config_load(kubeconfig, context, &config, err);
    rc = rc < 0 ? rc : weft_kube_client_new(c->loop, config, "weftctl", &c->client, err);
    if (rc == 0) {
        *ret_cluster = weft_steal(&c);
    }
    return rc;
}

void weft_ctl_cluster_free(struct weft_ctl_cluster *c)
{
    if (c == NULL) {
        return;
    }
    weft_kube_client_free(c->client);
    weft_loop_free(c->loop);
    weft_free(c);
}

static void on_done(void *data, const struct weft_kube_result *result)
{
    struct weft_ctl_cluster *c = data;
    c->error = result->error;
    if (result->error.code == 0 && c->take != NULL) {
        c->take(c->data, result);
    }
    c->done = true;
}

int weft_ctl_cluster_ask(struct weft_ctl_cluster *c, const struct weft_kube_op *op,
                         weft_kube_result_fn take, void *data, struct weft_error *err)
{
    struct weft_kube_op asked = *op;
    asked.on_done = on_done;
    asked.data = c;
    c->take = take;
    c->data = data;
    c->done = false;
    const int rc = weft_kube_submit(c->client, &asked, NULL, err);
    if (rc < 0) {
        return rc;
    }
    while (!c->done) { /* the call has a time limit of its own */
        (void)weft_loop_run_until(c->loop, &c->done, INT64_C(60) * 1000000000);
    }
    if (c->error.code < 0 && err != NULL) {
        *err = c->error;
    }
    return c->error.code < 0 ? c->error.code : 0;
}

bool weft_ctl_cluster_lacks(const struct weft_error *error)
{
    return error->domain == WEFT_ERR_HTTP && error->domain_code == 404;
}
