/* SPDX-License-Identifier: Apache-2.0 */
/* The status document, and its ConfigMap against a scripted API server on a real loop. */
#include "controller/status.h"

#include <errno.h>
#include <stdio.h>

#include "pkg/apply/refusal.h"
#include "controller/status-text.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/json/json.h"
#include "pkg/kube/client.h"
#include "pkg/loop/loop.h"
#include "pkg/tree/tree.h"
#include "tests/unit/unit.h"

/* ---- the text ---- */

static struct weft_json *parse(const char *text, size_t len)
{
    struct weft_json *doc = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_json_parse(text, len, "status", &doc, &err), 0);
    CHECK_STR(err.message, "");
    return doc;
}

static const struct weft_json *path(const struct weft_json *doc, const char *a, size_t i,
                                    const char *b)
{
    return weft_json_get(weft_json_at(weft_json_get(doc, a), i), b);
}

static bool is_old(const void *data, const struct weft_finding *finding)
{
    (void)data;
    return strcmp(finding->subject, "n9") == 0;
}

static void fill(struct weft_status_facts *f, struct weft_names *tiers)
{
    static struct weft_refusals refusals;
    refusals.count = 1;
    refusals.items[0] = (struct weft_refusal){
        .kind = WEFT_REFUSAL_BRAKE, .hash = "0123456789abcdef", .text = "12 Nodes would move"};
    *f = (struct weft_status_facts){
        .instance = "weft",
        .served = true,
        .config_error = "",
        .pass_error = "",
        .decided = true,
        .nodes = {.selected = 70, .placed = 64, .unplaced = 5, .kept = 1},
        .tiers = tiers,
        .hypernodes = {8, 4},
        .foreign = 3,
        .source_count = 2,
        .sources = {{"labels", "ok", "", 40}, {"ufm", "stale", "ufm: no answer", 24}},
        .refusals = &refusals};
}

static void test_text(void)
{
    char *names[] = {(char *)(uintptr_t) "leaf", (char *)(uintptr_t) "spine"};
    struct weft_names tiers = {names, 2};
    char kind[] = "unplaced";
    char n1[] = "n1";
    char n9[] = "n9";
    char detail[] = "no source \"knows\" it";
    const struct weft_finding items[] = {{kind, n1, detail}, {kind, n9, detail}};
    struct weft_status_facts f;
    fill(&f, &tiers);
    f.findings.lists[1] = (struct weft_finding_list){items, 2};
    f.findings.is_over = is_old;
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, WEFT_STATUS_TEXT_MAX);
    weft_status_text(&f, &buf);
    weft_auto(weft_json_free) struct weft_json *doc = parse(weft_buf_text(&buf), buf.len);
    CHECK_STR(weft_json_string(weft_json_get(doc, "instance")), "weft");
    CHECK_INT(weft_json_int(weft_json_get(weft_json_get(doc, "nodes"), "placed"), -1), 64);
    CHECK_INT(weft_json_count(weft_json_get(doc, "tiers")), 2);
    CHECK_STR(weft_json_string(path(doc, "tiers", 1, "name")), "spine");
    CHECK_INT(weft_json_int(path(doc, "tiers", 1, "hyperNodes"), -1), 4);
    CHECK_INT(weft_json_int(weft_json_get(doc, "foreignHyperNodes"), -1), 3);
    CHECK_STR(weft_json_string(path(doc, "sources", 1, "error")), "ufm: no answer");
    CHECK_INT(weft_json_int(path(doc, "sources", 1, "placedNodes"), -1), 24);
    CHECK(path(doc, "sources", 0, "error") == NULL);
    CHECK_STR(weft_json_string(path(doc, "refusedChanges", 0, "hash")), "0123456789abcdef");
    CHECK_STR(weft_json_string(path(doc, "refusedChanges", 0, "kind")), "brake");
    CHECK_INT(weft_json_int(weft_json_get(doc, "findingCount"), -1), 1);
    CHECK_INT(weft_json_count(weft_json_get(doc, "findings")), 1);
    CHECK_STR(weft_json_string(path(doc, "findings", 0, "subject")), "n1");
    CHECK(weft_json_get(doc, "findingsLeftOut") == NULL);
    CHECK(weft_json_get(doc, "passError") == NULL);
}

/* Before the first good pass nothing is said that a pass would have to know. */
static void test_text_without_a_pass(void)
{
    struct weft_names tiers = {NULL, 0};
    struct weft_status_facts f;
    fill(&f, &tiers);
    f.decided = false;
    f.pass_error = "no source has a result";
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, WEFT_STATUS_TEXT_MAX);
    weft_status_text(&f, &buf);
    weft_auto(weft_json_free) struct weft_json *doc = parse(weft_buf_text(&buf), buf.len);
    CHECK(weft_json_get(doc, "nodes") == NULL && weft_json_get(doc, "tiers") == NULL);
    CHECK_STR(weft_json_string(weft_json_get(doc, "passError")), "no source has a result");
}

/* Ten thousand findings, long or short: the list is cut and says by how much. */
static void test_text_is_capped(void)
{
    enum { ALL = 10000, LONG = 3000 };
    static struct weft_finding items[ALL];
    static char detail[LONG + 1];
    char kind[] = "unplaced";
    char subject[] = "n1";
    struct weft_names tiers = {NULL, 0};
    struct weft_status_facts f;
    memset(detail, '"', LONG); /* every character is escaped */
    for (size_t len = 1; len <= LONG; len += LONG - 1) {
        detail[len] = '\0';
        for (size_t i = 0; i < ALL; i++) {
            items[i] = (struct weft_finding){kind, subject, detail};
        }
        fill(&f, &tiers);
        f.findings.lists[0] = (struct weft_finding_list){items, ALL};
        weft_auto(weft_buf_done) struct weft_buf buf;
        weft_buf_init(&buf, WEFT_STATUS_TEXT_MAX);
        weft_status_text(&f, &buf);
        CHECK_INT(buf.status, 0);
        weft_auto(weft_json_free) struct weft_json *doc = parse(weft_buf_text(&buf), buf.len);
        const size_t shown = weft_json_count(weft_json_get(doc, "findings"));
        CHECK(shown > 50 && shown <= WEFT_STATUS_FINDINGS_MAX);
        CHECK_INT(weft_json_int(weft_json_get(doc, "findingsLeftOut"), -1), ALL - shown);
        CHECK_INT(weft_json_int(weft_json_get(doc, "findingCount"), -1), ALL);
        detail[len] = '"';
    }
}

/* ---- the ConfigMap ---- */

enum { CALLS_MAX = 32 };

/* Holds one ConfigMap and answers from a timer, as the client answers from the loop. */
struct server {
    struct weft_loop *loop;
    struct weft_timer *timer;
    struct weft_status *status;
    const struct weft_kube_op *op;
    enum weft_kube_verb verb;
    char path[128];
    char body[2048];
    weft_kube_result_fn on_done;
    void *data;
    bool pending, cancelled;
    char verbs[CALLS_MAX + 1]; /* G, C, R of each request */
    size_t count;
    int codes[CALLS_MAX]; /* error codes by request; 0: as the state has it */
    /* the state */
    bool exists;
    int version;
    char text[512];
    char labels[256];
    bool allowed;
    bool refuse_submit;
    unsigned idles;
    bool done;
    size_t want;
};

#define OURS                                                                                       \
    "{\"app.kubernetes.io/managed-by\":\"weft-controller\",\"app.kubernetes.io/instance\":"        \
    "\"weft\"}"

static int submit(struct weft_kube_client *client, const struct weft_kube_op *op,
                  struct weft_kube_call **ret_call, struct weft_error *err)
{
    struct server *s = (struct server *)(void *)client;
    if (s->refuse_submit) {
        return weft_err_set(err, -EBUSY, WEFT_ERR_ERRNO, "busy");
    }
    CHECK(!s->pending && s->count < CALLS_MAX);
    CHECK_INT(op->timeout_ns, 4 * WEFT_NS_PER_S);
    s->verbs[s->count++] = op->verb == WEFT_KUBE_GET      ? 'G'
                           : op->verb == WEFT_KUBE_CREATE ? 'C'
                                                          : 'R';
    s->verb = op->verb;
    s->on_done = op->on_done;
    s->data = op->data;
    s->pending = true;
    (void)snprintf(s->path, sizeof(s->path), "%s", op->path);
    (void)snprintf(s->body, sizeof(s->body), "%s", op->body != NULL ? op->body : "");
    *ret_call = (struct weft_kube_call *)(void *)s;
    weft_timer_start(s->timer, WEFT_NS_PER_MS, 0);
    return 0;
}

static void cancel(struct weft_kube_call *call)
{
    struct server *s = (struct server *)(void *)call;
    s->cancelled = true;
    s->pending = false;
}

/* The state's part of an answer: what the API server would do with the request. */
static int perform(struct server *s, struct weft_json **ret_body)
{
    weft_auto(weft_json_free) struct weft_json *sent = NULL;
    if (s->verb == WEFT_KUBE_GET) {
        CHECK_STR(s->path, "/api/v1/namespaces/weft-system/configmaps/weft-status");
        if (!s->exists) {
            return -ENOENT;
        }
    } else {
        sent = parse(s->body, strlen(s->body));
        const struct weft_json *meta = weft_json_get(sent, "metadata");
        const char *version = weft_json_string(weft_json_get(meta, "resourceVersion"));
        char live[16];
        (void)snprintf(live, sizeof(live), "%d", s->version);
        CHECK_STR(weft_json_string(weft_json_get(meta, "name")), "weft-status");
        if (s->verb == WEFT_KUBE_CREATE && s->exists) {
            return -EEXIST;
        }
        if (s->verb == WEFT_KUBE_REPLACE && (!s->exists || strcmp(version, live) != 0)) {
            return s->exists ? -ESTALE : -ENOENT;
        }
        const char *text =
            weft_json_string(weft_json_get(weft_json_get(sent, "data"), WEFT_STATUS_KEY));
        (void)snprintf(s->text, sizeof(s->text), "%s", text != NULL ? text : "");
        (void)snprintf(s->labels, sizeof(s->labels), "%s", OURS);
        s->exists = true;
        s->version++;
    }
    weft_autofree char *body = weft_asprintf("{\"metadata\":{\"resourceVersion\":\"%d\",\"labels\":"
                                             "%s},\"data\":{\"status.json\":\"%s\"}}",
                                             s->version, s->labels, s->text);
    *ret_body = parse(body, strlen(body));
    return 0;
}

static void answer(void *data)
{
    struct server *s = data;
    if (!s->pending) {
        return;
    }
    weft_auto(weft_json_free) struct weft_json *body = NULL;
    struct weft_kube_result result = {.reason = ""};
    const int code = s->codes[s->count - 1];
    result.error.code = code != 0 ? code : perform(s, &body);
    (void)snprintf(result.error.message, sizeof(result.error.message), "%s",
                   result.error.code != 0 ? "no" : "");
    result.body = body;
    s->pending = false;
    s->on_done(s->data, &result);
    s->done = s->count >= s->want && !s->pending;
    if (s->done) {
        weft_loop_stop(s->loop);
    }
}

static bool may_write(void *data)
{
    const struct server *s = data;
    return s->allowed;
}

static void on_idle(void *data)
{
    struct server *s = data;
    CHECK(!weft_status_busy(s->status));
    s->idles++;
}

static void up(struct server *s)
{
    *s = (struct server){.allowed = true, .version = 7, .labels = OURS};
    const struct weft_status_env env = {.submit = submit,
                                        .cancel = cancel,
                                        .client = (struct weft_kube_client *)(void *)s,
                                        .may_write = may_write,
                                        .on_idle = on_idle,
                                        .data = s,
                                        .ns = "weft-system",
                                        .name = "weft-status",
                                        .instance = "weft",
                                        .gap_ns = 200 * WEFT_NS_PER_MS};
    CHECK_INT(weft_loop_new(&s->loop, NULL), 0);
    CHECK_INT(weft_timer_new(s->loop, answer, s, &s->timer, NULL), 0);
    CHECK_INT(weft_status_new(s->loop, &env, &s->status, NULL), 0);
}

static void down(struct server *s)
{
    weft_status_free(s->status);
    weft_timer_free(s->timer);
    weft_loop_free(s->loop);
}

static void set(struct server *s, const char *text)
{
    CHECK_INT(weft_status_set(s->status, text, strlen(text), NULL), 0);
}

/* Until there were so many requests, or so many milliseconds. */
static bool run(struct server *s, size_t want, int64_t ms)
{
    s->want = want;
    s->done = s->count >= want && !s->pending;
    return weft_loop_run_until(s->loop, &s->done, ms * WEFT_NS_PER_MS);
}

static void test_created_and_kept(void)
{
    struct server s;
    up(&s);
    CHECK(!run(&s, 1, 50)); /* nothing is to be written yet */
    set(&s, "a");
    CHECK(run(&s, 2, 1000));
    CHECK_STR(s.text, "a");
    CHECK_STR(s.path, "/api/v1/namespaces/weft-system/configmaps");
    CHECK(weft_status_current(s.status));
    set(&s, "a");
    CHECK(!run(&s, 3, 300));
    const int64_t start = weft_clock_monotonic(weft_clock_system());
    set(&s, "b");
    CHECK(run(&s, 3, 1000));
    set(&s, "c"); /* soon after: it waits for the gap, and only the last counts */
    set(&s, "d");
    CHECK(run(&s, 4, 1000));
    CHECK(weft_clock_monotonic(weft_clock_system()) - start >= 200 * WEFT_NS_PER_MS);
    CHECK_STR(s.text, "d");
    CHECK_STR(s.verbs, "GCRR");
    CHECK_INT(weft_status_stats(s.status)->writes, 3);
    CHECK_INT(s.idles, 3);
    down(&s);
}

/* A new leader, or a restart: what is there already is not written again. */
static void test_restart_writes_nothing(void)
{
    struct server s;
    up(&s);
    s.exists = true;
    (void)snprintf(s.text, sizeof(s.text), "a");
    set(&s, "a");
    CHECK(run(&s, 1, 1000));
    CHECK(!run(&s, 2, 300));
    CHECK_STR(s.verbs, "G");
    weft_status_forget(s.status);
    CHECK(!run(&s, 2, 100));
    set(&s, "b");
    CHECK(run(&s, 3, 1000));
    CHECK_STR(s.verbs, "GGR");
    CHECK_STR(s.text, "b");
    down(&s);
}

/* Conflicts, a deleted object, one that appeared: it is read and written again, at once. */
static void test_conflicts(void)
{
    struct server s;
    up(&s);
    set(&s, "a");
    CHECK(run(&s, 2, 1000));
    s.version = 40; /* somebody wrote it */
    set(&s, "b");
    CHECK(run(&s, 5, 2000));
    CHECK_STR(s.text, "b");
    s.exists = false;
    set(&s, "c");
    CHECK(run(&s, 8, 2000));
    CHECK_STR(s.text, "c");
    CHECK_STR(s.verbs, "GCRGRRGC");
    CHECK_INT(weft_status_stats(s.status)->failures, 0);
    down(&s);
}

/* One that is not ours is left alone: both labels tell whose it is. */
static void test_foreign(void)
{
    static const char *const labels[] = {"{}",
                                         "{\"app.kubernetes.io/managed-by\":\"weft-controller\"}",
                                         "{\"app.kubernetes.io/instance\":\"weft\"}",
                                         "{\"app.kubernetes.io/managed-by\":\"weft-controller\","
                                         "\"app.kubernetes.io/instance\":\"blue\"}"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(labels); i++) {
        struct server s;
        up(&s);
        s.exists = true;
        (void)snprintf(s.labels, sizeof(s.labels), "%s", labels[i]);
        set(&s, "a");
        CHECK(run(&s, 1, 1000));
        set(&s, "b");
        CHECK(!run(&s, 2, 250));
        CHECK_STR(s.verbs, "G");
        down(&s);
    }
}

/* Denied, not to be sent, not allowed by the fence: it waits, and says so to who waits for it. */
static void test_failures(void)
{
    struct server s;
    up(&s);
    s.codes[0] = -EACCES;
    set(&s, "a");
    CHECK(run(&s, 1, 1000));
    CHECK_INT(s.idles, 1);
    CHECK_INT(weft_status_stats(s.status)->failures, 1);
    set(&s, "b");
    CHECK(!run(&s, 2, 500)); /* it backs off for 5 s */
    down(&s);

    up(&s);
    s.refuse_submit = true;
    set(&s, "a");
    CHECK_INT(weft_status_stats(s.status)->failures, 1);
    CHECK(!weft_status_busy(s.status));
    down(&s);

    up(&s);
    s.allowed = false;
    set(&s, "a");
    CHECK(!run(&s, 1, 200));
    s.allowed = true;
    CHECK(run(&s, 2, 3000));
    CHECK_STR(s.text, "a");
    down(&s);
}

/* An answer that was lost: it is read before it is written again. */
static void test_lost_answer(void)
{
    struct server s;
    up(&s);
    s.exists = true;
    s.codes[1] = -ETIMEDOUT;
    set(&s, "a");
    CHECK(run(&s, 2, 1000));
    (void)snprintf(s.text, sizeof(s.text), "a"); /* it was done */
    CHECK(run(&s, 3, 7000));
    CHECK(!run(&s, 4, 300));
    CHECK_STR(s.verbs, "GRG");
    CHECK(weft_status_current(s.status));
    down(&s);
}

static void test_freed_under_way(void)
{
    struct server s;
    up(&s);
    set(&s, "a");
    CHECK(weft_status_busy(s.status));
    down(&s);
    CHECK(s.cancelled);
}

static void test_without_memory(void)
{
    struct server s;
    up(&s);
    for (uint64_t n = 1; n < 12; n++) {
        char text[8];
        struct weft_error err = {0};
        (void)snprintf(text, sizeof(text), "t%d", (int)n);
        (void)weft_mem_fail_after(n);
        const int rc = weft_status_set(s.status, text, strlen(text), &err);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || rc == -ENOMEM);
        if (weft_status_busy(s.status)) {
            break; /* all that it needed was there */
        }
        CHECK(n < 11);
        down(&s);
        up(&s);
    }
    down(&s);
}

WEFT_SUITE(status, {"text", test_text}, {"text without a pass", test_text_without_a_pass},
           {"text is capped", test_text_is_capped}, {"created and kept", test_created_and_kept},
           {"restart writes nothing", test_restart_writes_nothing}, {"conflicts", test_conflicts},
           {"foreign", test_foreign}, {"failures", test_failures},
           {"lost answer", test_lost_answer}, {"freed under way", test_freed_under_way},
           {"without memory", test_without_memory})
