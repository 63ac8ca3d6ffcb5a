/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of tier labels against a scripted API server on a real loop. */
#include "controller/labels.h"

#include <errno.h>
#include <stdio.h>

#include "pkg/base/clock.h"
#include "pkg/fabric/node.h"
#include "pkg/json/json.h"
#include "pkg/kube/client.h"
#include "pkg/loop/loop.h"
#include "tests/unit/unit.h"

enum { CALLS_MAX = 64 };

/* One Node at a time is answered from a timer, as the client answers from the loop. */
struct server {
    struct weft_loop *loop;
    struct weft_timer *timer;
    struct weft_labels *labels;
    struct {
        enum weft_kube_verb verb;
        char path[128];
        char body[512];
        weft_kube_result_fn on_done;
        void *data;
        bool answered;
        int64_t at;
    } calls[CALLS_MAX];
    size_t count;
    int statuses[CALLS_MAX]; /* by call; 0 = 200 */
    const char *answer;      /* labels of the Node in the answer, as JSON */
    const char *refusal;     /* the body of what is no 200; NULL = none */
    bool allowed;
    uint64_t version; /* of every Node */
    size_t nodes_seen;
    size_t errors;
    struct weft_labels_result result;
    bool done;
};

static int submit(struct weft_kube_client *client, const struct weft_kube_op *op,
                  struct weft_kube_call **ret_call, struct weft_error *err)
{
    struct server *s = (struct server *)(void *)client;
    if (s->count == CALLS_MAX) {
        return weft_err_nomem(err);
    }
    s->calls[s->count].verb = op->verb;
    s->calls[s->count].at = weft_clock_monotonic(weft_clock_system());
    s->calls[s->count].on_done = op->on_done;
    s->calls[s->count].data = op->data;
    (void)snprintf(s->calls[s->count].path, sizeof(s->calls[0].path), "%s", op->path);
    (void)snprintf(s->calls[s->count].body, sizeof(s->calls[0].body), "%s", op->body);
    CHECK_STR(op->field_manager, WEFT_LABELS_FIELD_MANAGER);
    CHECK_INT(op->force, op->verb == WEFT_KUBE_APPLY);
    *ret_call = (struct weft_kube_call *)(void *)&s->calls[s->count];
    s->count++;
    weft_timer_start(s->timer, WEFT_NS_PER_MS, 0);
    return 0;
}

static void cancel(struct weft_kube_call *call)
{
    (void)call;
}

static void answer_one(struct server *s, size_t i)
{
    struct weft_kube_result result = {.status = s->statuses[i], .reason = ""};
    weft_auto(weft_json_free) struct weft_json *doc = NULL;
    s->calls[i].answered = true;
    if (result.status == 0) {
        weft_autofree char *text =
            weft_asprintf("{\"kind\":\"Node\",\"metadata\":{\"name\":\"x\",\"labels\":%s}}",
                          s->answer != NULL ? s->answer : "{}");
        CHECK_INT(weft_json_parse(text, strlen(text), "node", &doc, NULL), 0);
        result.status = 200;
        result.body = doc;
    } else {
        (void)weft_err_set(&result.error, -EIO, WEFT_ERR_HTTP, "HTTP %d", result.status);
        result.error.retryable = result.status >= 500;
        if (s->refusal != NULL) {
            CHECK_INT(weft_json_parse(s->refusal, strlen(s->refusal), "status", &doc, NULL), 0);
            result.body = doc;
        }
    }
    s->calls[i].on_done(s->calls[i].data, &result);
}

static void on_timer(void *data)
{
    struct server *s = data;
    const size_t count = s->count;
    for (size_t i = 0; i < count; i++) {
        if (!s->calls[i].answered) {
            answer_one(s, i);
        }
    }
}

static bool may_write(void *data)
{
    const struct server *s = data;
    return s->allowed;
}

static uint64_t version(void *data, const char *node)
{
    const struct server *s = data;
    CHECK(node != NULL);
    return s->version;
}

static void on_node(void *data, const struct weft_json *node)
{
    struct server *s = data;
    CHECK(node != NULL);
    s->version += s->version > 0 ? 1 : 0;
    s->nodes_seen++;
}

static void on_error(void *data, const char *node, const struct weft_error *err, bool retry)
{
    struct server *s = data;
    CHECK(node != NULL && err->code != 0);
    (void)retry;
    s->errors++;
}

static void on_done(void *data, const struct weft_labels_result *result)
{
    struct server *s = data;
    s->result = *result;
    s->done = true;
}

static void setup(struct server *s, unsigned rate)
{
    *s = (struct server){.allowed = true};
    CHECK_INT(weft_loop_new(&s->loop, NULL), 0);
    CHECK_INT(weft_timer_new(s->loop, on_timer, s, &s->timer, NULL), 0);
    const struct weft_labels_env env = {.submit = submit,
                                        .cancel = cancel,
                                        .client = (struct weft_kube_client *)(void *)s,
                                        .may_write = may_write,
                                        .version = version,
                                        .on_node = on_node,
                                        .on_error = on_error,
                                        .on_done = on_done,
                                        .data = s};
    CHECK_INT(weft_labels_new(s->loop, "weft.dev/", rate, &env, &s->labels, NULL), 0);
}

static void teardown(struct server *s)
{
    weft_labels_free(s->labels);
    weft_timer_free(s->timer);
    weft_loop_free(s->loop);
}

static void add(struct server *s, const char *node, size_t count)
{
    static const char *const values[] = {"leaf-a", "spine-b"};
    CHECK_INT(weft_labels_add(s->labels, node, "uid-1", values, count), 0);
}

static void run(struct server *s)
{
    weft_labels_start(s->labels);
    CHECK(weft_loop_run_until(s->loop, &s->done, 20 * WEFT_NS_PER_S));
    CHECK(!weft_labels_busy(s->labels));
}

static void test_apply_body(void)
{
    struct server s;
    setup(&s, 1000);
    s.answer = "{\"weft.dev/tier-1\":\"leaf-a\",\"weft.dev/tier-2\":\"spine-b\"}";
    add(&s, "n0", 2);
    run(&s);
    CHECK_INT(s.count, 1);
    CHECK_INT(s.calls[0].verb, WEFT_KUBE_APPLY);
    CHECK_STR(s.calls[0].path, "/api/v1/nodes/n0");
    CHECK_STR(s.calls[0].body,
              "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n0\",\"uid\":"
              "\"uid-1\",\"labels\":{\"weft.dev/tier-1\":\"leaf-a\",\"weft.dev/tier-2\":"
              "\"spine-b\"}}}");
    CHECK_INT(s.result.written, 1);
    CHECK_INT(s.nodes_seen, 1);
    teardown(&s);
}

/* A label of a tier that the Node must not have, set by another manager, survives the apply. */
static void test_strip(void)
{
    struct server s;
    setup(&s, 1000);
    s.answer = "{\"weft.dev/tier-1\":\"leaf-a\",\"weft.dev/tier-3\":\"old\",\"weft.dev/exclude\":"
               "\"x\",\"weft.dev/tier-x\":\"y\"}";
    s.version = 70; /* the answer of the first write brings 71 */
    add(&s, "n0", 1);
    run(&s);
    CHECK_INT(s.count, 2);
    CHECK_INT(s.calls[1].verb, WEFT_KUBE_MERGE_PATCH);
    CHECK_STR(s.calls[1].body,
              "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n0\",\"uid\":"
              "\"uid-1\",\"resourceVersion\":\"71\",\"labels\":{\"weft.dev/tier-3\":null}}}");
    CHECK_INT(s.result.written, 1);
    teardown(&s);
}

/* The second write fails for a while: both are made again, and the label goes. */
static void test_strip_again(void)
{
    struct server s;
    setup(&s, 1000);
    s.answer = "{\"weft.dev/tier-1\":\"leaf-a\",\"weft.dev/tier-3\":\"old\"}";
    s.statuses[1] = 503;
    add(&s, "n0", 1);
    run(&s);
    CHECK_INT(s.count, 4);
    CHECK_INT(s.calls[2].verb, WEFT_KUBE_APPLY);
    CHECK_INT(s.calls[3].verb, WEFT_KUBE_MERGE_PATCH);
    CHECK_INT(s.result.written, 1);
    CHECK_INT(s.result.failed, 0);
    teardown(&s);
}

/* A write asks for the version that was seen last. A conflict is nobody's fault, and not for this
 * code to try again: what the Node must have may be another thing by now. */
static void test_conflicts(void)
{
    struct server s;
    setup(&s, 1000);
    s.version = 70;
    s.statuses[0] = 409;
    add(&s, "n0", 1);
    add(&s, "n1", 1);
    run(&s);
    CHECK_INT(s.count, 2);
    CHECK(strstr(s.calls[0].body, ",\"resourceVersion\":\"70\",\"labels\"") != NULL);
    CHECK_INT(s.result.stale, 1);
    CHECK_INT(s.result.written, 1);
    CHECK_INT(s.result.failed, 0);
    CHECK_INT(s.errors, 0);
    /* none is known: its Node is gone */
    s.done = false;
    s.version = 0;
    s.statuses[2] = 409;
    add(&s, "n0", 1);
    run(&s);
    CHECK_INT(s.count, 3);
    CHECK(strstr(s.calls[2].body, "resourceVersion") == NULL);
    CHECK_INT(s.result.stale, 0);
    CHECK_INT(s.result.written, 0);
    CHECK_INT(s.result.failed, 0);
    teardown(&s);
}

static void test_rate(void)
{
    struct server s;
    setup(&s, 50);
    for (int i = 0; i < 11; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "n%d", i);
        add(&s, name, 0);
    }
    run(&s);
    CHECK_INT(s.result.written, 11);
    /* ten gaps of 20 ms; timers are late, never early, but for the rounding of a millisecond */
    CHECK(s.calls[10].at - s.calls[0].at >= 10 * 19 * WEFT_NS_PER_MS);
    teardown(&s);
}

static void test_retry_and_give_up(void)
{
    struct server s;
    setup(&s, 1000);
    s.statuses[0] = 503;
    s.statuses[1] = 422;
    s.statuses[2] = 404; /* deleted meanwhile: nothing to do and no failure */
    add(&s, "n0", 1);
    run(&s);
    CHECK_INT(s.count, 2); /* again after a second, then given up */
    CHECK(s.calls[1].at - s.calls[0].at >= WEFT_NS_PER_S - 2 * WEFT_NS_PER_MS);
    CHECK_INT(s.result.failed, 1);
    CHECK_INT(s.errors, 2);
    s.done = false;
    add(&s, "n1", 1);
    run(&s);
    CHECK_INT(s.result.failed, 0);
    CHECK_INT(s.result.written, 0);
    teardown(&s);
}

/* A Node that was deleted and made again: the watch brings the new one, nothing has failed. Another
 * reason for a 422 is a failure. */
static void test_another_node(void)
{
    struct server s;
    setup(&s, 1000);
    s.statuses[0] = s.statuses[1] = 422;
    s.refusal = "{\"kind\":\"Status\",\"reason\":\"Invalid\",\"details\":{\"causes\":["
                "{\"reason\":\"FieldValueInvalid\",\"field\":\"metadata.uid\"}]}}";
    add(&s, "n0", 1);
    run(&s);
    CHECK_INT(s.count, 1);
    CHECK_INT(s.result.failed, 0);
    CHECK_INT(s.result.written, 0);
    CHECK_INT(s.errors, 0);
    s.done = false;
    s.refusal = "{\"kind\":\"Status\",\"reason\":\"Invalid\",\"details\":{\"causes\":["
                "{\"reason\":\"FieldValueInvalid\",\"field\":\"metadata.labels\"}]}}";
    add(&s, "n1", 1);
    run(&s);
    CHECK_INT(s.result.failed, 1);
    CHECK_INT(s.errors, 1);
    teardown(&s);
}

static void test_forbidden_stops(void)
{
    struct server s;
    setup(&s, 1000);
    for (int i = 0; i < 32; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "n%d", i);
        add(&s, name, 1);
        s.statuses[i] = 403;
    }
    run(&s);
    CHECK(s.count <= 4); /* what was under way, not all of them */
    CHECK(s.result.stopped);
    CHECK(s.result.failed > 0);
    teardown(&s);
}

static void test_gate(void)
{
    struct server s;
    setup(&s, 1000);
    s.allowed = false;
    add(&s, "n0", 1);
    run(&s);
    CHECK_INT(s.count, 0);
    CHECK(s.result.stopped);
    teardown(&s);
}

static void test_current(void)
{
    struct weft_node node = {.name = weft_strdup("n0"), .uid = weft_strdup("u")};
    const char *const values[] = {"a", "b"};
    CHECK(weft_labels_current(&node, "weft.dev/", values, 0));
    CHECK(!weft_labels_current(&node, "weft.dev/", values, 1));
    CHECK_INT(weft_node_set_label(&node, "weft.dev/tier-1", "a"), 0);
    CHECK_INT(weft_node_set_label(&node, "other.dev/tier-2", "z"), 0);
    CHECK_INT(weft_node_set_label(&node, "weft.dev/exclude", "z"), 0);
    CHECK(weft_labels_current(&node, "weft.dev/", values, 1));
    CHECK(!weft_labels_current(&node, "weft.dev/", values, 0));
    CHECK(!weft_labels_current(&node, "weft.dev/", values, 2));
    CHECK_INT(weft_node_set_label(&node, "weft.dev/tier-2", "c"), 0);
    CHECK(!weft_labels_current(&node, "weft.dev/", values, 2));
    CHECK_INT(weft_node_set_label(&node, "weft.dev/tier-2", "b"), 0);
    CHECK(weft_labels_current(&node, "weft.dev/", values, 2));
    CHECK(!weft_labels_current(&node, "weft.dev/", values, 1));
    weft_node_done(&node);
}

/* The watch shows the write before its answer does. */
static void test_under_way(void)
{
    struct server s;
    setup(&s, 1000);
    const char *const values[] = {"leaf-a", "spine-b"};
    const char *const others[] = {"leaf-a", "spine-c"};
    struct weft_node node = {.name = weft_strdup("n0"), .uid = weft_strdup("u")};
    add(&s, "n0", 2);
    weft_labels_start(s.labels);
    while (s.count == 0) {
        bool never = false;
        (void)weft_loop_run_until(s.loop, &never, WEFT_NS_PER_MS / 2);
    }
    if (!s.calls[0].answered) {
        CHECK(weft_labels_under_way(s.labels, "n0", values, 2));
        CHECK(!weft_labels_under_way(s.labels, "n0", others, 2));
        CHECK(!weft_labels_under_way(s.labels, "n1", values, 2));
        CHECK(!weft_labels_expects(s.labels, &node));
        CHECK_INT(weft_node_set_label(&node, "weft.dev/tier-1", "leaf-a"), 0);
        CHECK_INT(weft_node_set_label(&node, "weft.dev/tier-2", "spine-b"), 0);
        CHECK(weft_labels_expects(s.labels, &node));
    }
    weft_node_done(&node);
    teardown(&s);
}

WEFT_SUITE(labels, {"apply body", test_apply_body}, {"strip", test_strip},
           {"strip again", test_strip_again}, {"conflicts", test_conflicts}, {"rate", test_rate},
           {"retry and give up", test_retry_and_give_up}, {"another node", test_another_node},
           {"forbidden stops", test_forbidden_stops}, {"gate", test_gate},
           {"current", test_current}, {"under way", test_under_way})
