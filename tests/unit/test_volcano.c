/* SPDX-License-Identifier: Apache-2.0 */
/* The looks at Volcano's configuration, against answers of the test's own on a real loop. */
#include "controller/volcano.h"

#include <errno.h>
#include <stdio.h>

#include "pkg/base/clock.h"
#include "pkg/json/json.h"
#include "pkg/kube/client.h"
#include "pkg/loop/loop.h"
#include "pkg/tree/findings.h"
#include "tests/unit/unit.h"

enum { READS = 3, PERIOD_MS = 50 };

#define CONFIG_MAP(text) "{\"data\":{\"volcano.conf\":\"" text "\"}}"
#define NO_PLUGIN CONFIG_MAP("actions: allocate\\n")
#define PLUGIN                                                                                     \
    CONFIG_MAP("tiers: [{plugins: [{name: network-topology-aware, arguments: "                     \
               "{hypernode.binpack.resources: a.test/gpu}}]}]\\n")
#define UFM_ON CONFIG_MAP("networkTopologyDiscovery: [{source: ufm, enabled: true}]\\n")
#define V1ALPHA1 "{\"versions\":[{\"version\":\"v1alpha1\"}]}"

struct answer {
    int status; /* 0: none came */
    const char *body;
};

struct server {
    struct weft_loop *loop;
    struct weft_timer *timer;
    struct weft_volcano *volcano;
    struct answer answers[READS];
    weft_kube_result_fn on_done;
    void *data;
    bool pending, cancelled, busy, silent;
    size_t reads;
    unsigned changes;
    bool done;
    size_t want;
};

/* Which of the three things is read. */
static size_t index_of(const char *path)
{
    static const char *const paths[READS] = {
        "/api/v1/namespaces/batch/configmaps/blue-scheduler-configmap",
        "/api/v1/namespaces/batch/configmaps/blue-controller-configmap",
        "/apis/topology.volcano.sh"};
    size_t i = 0;
    while (i < READS && strcmp(path, paths[i]) != 0) {
        i++;
    }
    return i;
}

static int submit(struct weft_kube_client *client, const struct weft_kube_op *op,
                  struct weft_kube_call **ret_call, struct weft_error *err)
{
    struct server *s = (struct server *)(void *)client;
    if (s->busy) {
        return weft_err_set(err, -EBUSY, WEFT_ERR_ERRNO, "busy");
    }
    CHECK_INT(op->verb, WEFT_KUBE_GET);
    CHECK_INT(index_of(op->path), s->reads % READS);
    CHECK(!s->pending);
    s->reads++;
    s->pending = true;
    s->on_done = op->on_done;
    s->data = op->data;
    *ret_call = (struct weft_kube_call *)(void *)s;
    if (!s->silent) {
        weft_timer_start(s->timer, 0, 0);
    }
    return 0;
}

static void cancel(struct weft_kube_call *call)
{
    struct server *s = (struct server *)(void *)call;
    s->cancelled = true;
    s->pending = false;
}

static void answer(void *data)
{
    struct server *s = data;
    if (!s->pending) {
        return;
    }
    const struct answer *a = &s->answers[(s->reads - 1) % READS];
    weft_auto(weft_json_free) struct weft_json *body = NULL;
    struct weft_kube_result result = {.reason = "", .status = a->status};
    if (a->status == 200) {
        CHECK_INT(weft_json_parse(a->body, strlen(a->body), "body", &body, NULL), 0);
    } else {
        result.error.code = -EIO;
    }
    result.body = body;
    s->pending = false;
    s->on_done(s->data, &result);
    if (a->status == 0) {
        s->reads = (s->reads + READS - 1) / READS * READS; /* the look was given up */
    }
    s->done = s->reads >= s->want && !s->pending;
    if (s->done) {
        weft_loop_stop(s->loop);
    }
}

static void on_changed(void *data)
{
    struct server *s = data;
    s->changes++;
}

static void up(struct server *s)
{
    *s = (struct server){.answers = {{404, NULL}, {404, NULL}, {404, NULL}}};
    const struct weft_volcano_options options = {.submit = submit,
                                                 .cancel = cancel,
                                                 .client = (struct weft_kube_client *)(void *)s,
                                                 .ns = "batch",
                                                 .release = "blue",
                                                 .period_ns = PERIOD_MS * WEFT_NS_PER_MS,
                                                 .changed = on_changed,
                                                 .data = s};
    CHECK_INT(weft_loop_new(&s->loop, NULL), 0);
    CHECK_INT(weft_timer_new(s->loop, answer, s, &s->timer, NULL), 0);
    CHECK_INT(weft_volcano_new(s->loop, &options, &s->volcano, NULL), 0);
}

static void down(struct server *s)
{
    weft_volcano_free(s->volcano);
    weft_timer_free(s->timer);
    weft_loop_free(s->loop);
}

/* So many more looks. */
static bool look(struct server *s, size_t looks)
{
    s->want = s->reads + looks * READS;
    s->done = false;
    return weft_loop_run_until(s->loop, &s->done, WEFT_NS_PER_S);
}

static size_t found(const struct server *s, const char *kind)
{
    const struct weft_findings *f = weft_volcano_findings(s->volcano);
    size_t count = 0;
    for (size_t i = 0; i < f->count; i++) {
        count += strcmp(f->items[i].kind, kind) == 0;
    }
    return count;
}

static void findings_come_and_go(void)
{
    struct server s;
    up(&s);
    s.answers[0] = (struct answer){200, NO_PLUGIN};
    s.answers[1] = (struct answer){200, UFM_ON};
    s.answers[2] = (struct answer){200, V1ALPHA1};
    weft_volcano_start(s.volcano);
    CHECK(look(&s, 1));
    CHECK_INT(s.changes, 1);
    CHECK_INT(found(&s, "topology-plugin-missing"), 1);
    CHECK_INT(found(&s, "volcano-discovery"), 1);
    CHECK_INT(weft_volcano_findings(s.volcano)->count, 2);
    CHECK(look(&s, 3)); /* nothing new */
    CHECK_INT(s.changes, 1);
    s.answers[0].body = PLUGIN;
    s.answers[2].body = "{\"versions\":[{\"version\":\"v2\"}]}";
    CHECK(look(&s, 1));
    CHECK_INT(s.changes, 2);
    CHECK_INT(found(&s, "topology-plugin-missing"), 0);
    CHECK_INT(found(&s, "hypernode-version"), 1);
    CHECK_STR(weft_volcano_findings(s.volcano)->items[1].subject,
              "batch/blue-controller-configmap");
    down(&s);
}

/* Nothing is there, or may be read: no finding, and the other parts are looked at. */
static void what_cannot_be_read_is_left_out(void)
{
    struct server s;
    up(&s);
    s.answers[0] = (struct answer){403, NULL};
    s.answers[1] = (struct answer){200, UFM_ON};
    weft_volcano_start(s.volcano);
    CHECK(look(&s, 3));
    CHECK_INT(weft_volcano_findings(s.volcano)->count, 1);
    CHECK_INT(s.changes, 1);
    s.answers[1] = (struct answer){404, NULL};
    CHECK(look(&s, 1));
    CHECK_INT(weft_volcano_findings(s.volcano)->count, 0);
    CHECK_INT(s.changes, 2);
    down(&s);
}

/* A server that does not answer says nothing about Volcano. */
static void without_an_answer_the_findings_stay(void)
{
    struct server s;
    up(&s);
    s.answers[0] = (struct answer){200, NO_PLUGIN};
    weft_volcano_start(s.volcano);
    CHECK(look(&s, 1));
    for (size_t i = 0; i < READS; i++) {
        const struct answer before = s.answers[i];
        s.answers[i] = (struct answer){0, NULL};
        CHECK(look(&s, 2));
        CHECK_INT(found(&s, "topology-plugin-missing"), 1);
        s.answers[i] = before;
    }
    s.busy = true; /* requests cannot even be sent */
    CHECK(!look(&s, 1));
    s.busy = false;
    CHECK(look(&s, 1));
    CHECK_INT(s.changes, 1);
    down(&s);
}

static void stopped_it_reads_no_more(void)
{
    struct server s;
    up(&s);
    CHECK(!look(&s, 1)); /* not started */
    s.answers[0] = (struct answer){200, NO_PLUGIN};
    weft_volcano_start(s.volcano);
    CHECK(look(&s, 1));
    weft_volcano_stop(s.volcano);
    CHECK(!look(&s, 1));
    CHECK_INT(found(&s, "topology-plugin-missing"), 1);
    CHECK_INT(s.reads, READS);
    down(&s);
}

/* Freed or stopped while a read is under way. */
static void under_way(void)
{
    for (int stop = 0; stop < 2; stop++) {
        struct server s;
        up(&s);
        s.silent = true;
        weft_volcano_start(s.volcano);
        CHECK(!look(&s, 1));
        CHECK(s.pending);
        CHECK_INT(s.reads, 1); /* the next period does not begin another look */
        if (stop == 1) {
            weft_volcano_stop(s.volcano);
            CHECK(s.cancelled);
        }
        down(&s);
        CHECK(s.cancelled);
    }
}

static void without_memory(void)
{
    struct server s;
    up(&s);
    s.answers[0] = (struct answer){200, NO_PLUGIN};
    weft_volcano_start(s.volcano);
    CHECK(look(&s, 1));
    const struct weft_volcano_options options = {.ns = "a", .release = "b", .period_ns = 1};
    bool failed = true;
    for (uint64_t n = 1; failed && n < 50; n++) {
        struct weft_volcano *v = NULL;
        (void)weft_mem_fail_after(n);
        const int rc = weft_volcano_new(s.loop, &options, &v, NULL);
        failed = weft_mem_fail_after(0) >= n;
        CHECK_INT(rc, failed ? -ENOMEM : 0);
        weft_volcano_free(v);
    }
    CHECK(!failed);
    down(&s);
}

WEFT_SUITE(volcano, {"findings come and go", findings_come_and_go},
           {"what cannot be read is left out", what_cannot_be_read_is_left_out},
           {"without an answer the findings stay", without_an_answer_the_findings_stay},
           {"stopped it reads no more", stopped_it_reads_no_more}, {"under way", under_way},
           {"without memory", without_memory})
