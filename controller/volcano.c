/* SPDX-License-Identifier: Apache-2.0 */
/* One look is three reads, one after the other. Must not judge what it reads (volcano-config.c). */
#include "controller/volcano.h"

#include <errno.h>
#include <string.h>

#include "controller/volcano-config.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/json/json.h"
#include "pkg/kube/client.h"
#include "pkg/loop/loop.h"
#include "pkg/tree/findings.h"

enum { MAGIC = 0x77766f6c };

enum look { LOOK_SCHEDULER, LOOK_CONTROLLER, LOOK_VERSIONS, LOOK_COUNT };

static const struct weft_kube_resource config_maps = {
    .group = "", .version = "v1", .plural = "configmaps"};

struct weft_volcano {
    unsigned magic;
    struct weft_volcano_options options;
    char *names[LOOK_COUNT]; /* "namespace/name", as findings have it; versions: none */
    char *paths[LOOK_COUNT];
    struct weft_timer *timer;
    struct weft_kube_call *call;
    enum look look;
    struct weft_findings findings;
    struct weft_findings next;
    int told[LOOK_COUNT]; /* HTTP status that was logged last; 0: it could be read */
};

static void on_timer(void *data);

static int add_config_map(struct weft_volcano *v, enum look look, const char *suffix)
{
    weft_autofree char *name = weft_asprintf("%s-%s-configmap", v->options.release, suffix);
    if (name == NULL) {
        return -ENOMEM;
    }
    v->names[look] = weft_asprintf("%s/%s", v->options.ns, name);
    v->paths[look] = weft_kube_path(&config_maps, v->options.ns, name);
    return v->names[look] == NULL || v->paths[look] == NULL ? -ENOMEM : 0;
}

int weft_volcano_new(struct weft_loop *loop, const struct weft_volcano_options *options,
                     struct weft_volcano **ret_volcano, struct weft_error *err)
{
    weft_auto(weft_volcano_free) struct weft_volcano *v = weft_calloc(1, sizeof(*v));
    if (v == NULL) {
        return weft_err_nomem(err);
    }
    v->magic = MAGIC;
    v->options = *options;
    v->paths[LOOK_VERSIONS] = weft_strdup("/apis/topology.volcano.sh");
    if (add_config_map(v, LOOK_SCHEDULER, "scheduler") < 0 ||
        add_config_map(v, LOOK_CONTROLLER, "controller") < 0 || v->paths[LOOK_VERSIONS] == NULL) {
        return weft_err_nomem(err);
    }
    v->options.ns = NULL; /* were borrowed for this call */
    v->options.release = NULL;
    const int rc = weft_timer_new(loop, on_timer, v, &v->timer, err);
    if (rc < 0) {
        return rc;
    }
    *ret_volcano = weft_steal(&v);
    return 0;
}

void weft_volcano_free(struct weft_volcano *v)
{
    if (v == NULL) {
        return;
    }
    if (v->call != NULL) {
        v->options.cancel(v->call);
    }
    weft_timer_free(v->timer);
    for (size_t i = 0; i < LOOK_COUNT; i++) {
        weft_free(v->names[i]);
        weft_free(v->paths[i]);
    }
    weft_findings_done(&v->findings);
    weft_findings_done(&v->next);
    v->magic = 0;
    weft_free(v);
}

const struct weft_findings *weft_volcano_findings(const struct weft_volcano *v)
{
    WEFT_CHECK(v, MAGIC);
    return &v->findings;
}

/* ---- a look ---- */

static void ask(struct weft_volcano *v);

static bool same(const struct weft_findings *a, const struct weft_findings *b)
{
    bool equal = a->count == b->count;
    for (size_t i = 0; equal && i < a->count; i++) {
        equal = strcmp(a->items[i].kind, b->items[i].kind) == 0 &&
                strcmp(a->items[i].subject, b->items[i].subject) == 0 &&
                strcmp(a->items[i].detail, b->items[i].detail) == 0;
    }
    return equal;
}

static void finish(struct weft_volcano *v)
{
    weft_findings_sort(&v->next);
    const bool changed = !same(&v->findings, &v->next);
    weft_findings_done(&v->findings);
    v->findings = v->next;
    v->next = (struct weft_findings){0};
    if (changed) {
        v->options.changed(v->options.data);
    }
}

/* Not there, or not ours to read: both are fine, and said once. */
static void say_unread(struct weft_volcano *v, int status, const char *error)
{
    if (v->names[v->look] == NULL || v->told[v->look] == status) {
        return;
    }
    v->told[v->look] = status;
    weft_log(WEFT_LOG_INFO, "Volcano's configuration is not checked",
             WEFT_KV_S("configmap", v->names[v->look]), WEFT_KV_S("error", error));
}

static int judge(struct weft_volcano *v, const struct weft_json *body)
{
    const char *text = weft_volcano_config_text(body);
    const char *conf = text != NULL ? text : ""; /* without one Volcano uses its built-in one */
    v->told[v->look] = 0;
    switch (v->look) {
    case LOOK_SCHEDULER:
        return weft_volcano_judge_scheduler(conf, strlen(conf), v->names[v->look], &v->next);
    case LOOK_CONTROLLER:
        return weft_volcano_judge_controller(conf, strlen(conf), v->names[v->look], &v->next);
    case LOOK_VERSIONS:
        return weft_volcano_judge_versions(body, &v->next);
    case LOOK_COUNT:
        break;
    }
    return 0;
}

/* Ends the look without a result: the findings of before stay. */
static void give_up(struct weft_volcano *v, const char *error)
{
    weft_log(WEFT_LOG_DEBUG, "Volcano's configuration", WEFT_KV_S("error", error));
    weft_findings_done(&v->next);
}

static void on_answer(void *data, const struct weft_kube_result *result)
{
    struct weft_volcano *v = data;
    WEFT_CHECK(v, MAGIC);
    v->call = NULL;
    if (result->status == 403 || result->status == 404) {
        say_unread(v, result->status, result->error.message);
    } else if (result->error.code != 0) {
        give_up(v, result->error.message);
        return;
    } else if (judge(v, result->body) < 0) {
        give_up(v, "out of memory");
        return;
    }
    if (v->look + 1 < LOOK_COUNT) {
        v->look++;
        ask(v);
    } else {
        finish(v);
    }
}

static void ask(struct weft_volcano *v)
{
    struct weft_error err = {0};
    const struct weft_kube_op op = {
        .verb = WEFT_KUBE_GET,
        .path = v->paths[v->look],
        .timeout_ns = 10 * WEFT_NS_PER_S,
        .on_done = on_answer,
        .data = v,
    };
    if (v->options.submit(v->options.client, &op, &v->call, &err) < 0) {
        give_up(v, err.message);
    }
}

static void on_timer(void *data)
{
    struct weft_volcano *v = data;
    WEFT_CHECK(v, MAGIC);
    if (v->call == NULL) {
        v->look = LOOK_SCHEDULER;
        weft_findings_done(&v->next);
        ask(v);
    }
}

void weft_volcano_start(struct weft_volcano *v)
{
    WEFT_CHECK(v, MAGIC);
    weft_timer_start(v->timer, 0, v->options.period_ns);
}

void weft_volcano_stop(struct weft_volcano *v)
{
    WEFT_CHECK(v, MAGIC);
    weft_timer_stop(v->timer);
    if (v->call != NULL) {
        v->options.cancel(v->call);
        v->call = NULL;
        weft_findings_done(&v->next);
    }
}
