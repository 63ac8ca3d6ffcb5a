/* SPDX-License-Identifier: Apache-2.0 */
/* Leader election against a server that keeps one Lease with resourceVersions, and the Events the
 * controller posts. Time is moved by hand; only the pace of requests is real. */
#include <errno.h>
#include <stdio.h>

#include "pkg/base/clock.h"
#include "pkg/json/json.h"
#include "pkg/kube/event.h"
#include "pkg/kube/lease.h"
#include "pkg/loop/loop.h"
#include "tests/unit/fake_kube.h"
#include "tests/unit/unit.h"

#define LONG_ENOUGH (10 * WEFT_NS_PER_S)

/* The server's Lease; the server's lock guards it while requests run. */
struct store {
    _Atomic bool exists, silent, broken, refuses; /* refuses: each write meets a conflict */
    _Atomic int version;
    _Atomic int writes;
    char holder[64];
    char renew[64];
    int transitions, duration;
    char answers[8][512]; /* bodies live on */
    unsigned next_answer;
};

static void put_lease(struct store *s, struct fake_reply *reply, int status)
{
    char *text = s->answers[s->next_answer++ % 8];
    (void)snprintf(text, sizeof(s->answers[0]),
                   "{\"metadata\":{\"name\":\"l\",\"resourceVersion\":\"%d\"},\"spec\":{"
                   "\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":%d,\"renewTime\":\"%s\","
                   "\"leaseTransitions\":%d}}",
                   (int)s->version, s->holder, s->duration, s->renew, s->transitions);
    *reply = (struct fake_reply){.status = status, .body = text};
}

static void take_lease(struct store *s, const struct weft_json *doc)
{
    const struct weft_json *spec = weft_json_get(doc, "spec");
    const char *holder = weft_json_string(weft_json_get(spec, "holderIdentity"));
    const char *renew = weft_json_string(weft_json_get(spec, "renewTime"));
    (void)snprintf(s->holder, sizeof(s->holder), "%s", holder != NULL ? holder : "?");
    (void)snprintf(s->renew, sizeof(s->renew), "%s", renew != NULL ? renew : "?");
    s->transitions = (int)weft_json_int(weft_json_get(spec, "leaseTransitions"), -1);
    s->duration = (int)weft_json_int(weft_json_get(spec, "leaseDurationSeconds"), -1);
    s->version++;
    s->writes++;
    s->exists = true;
}

static void answer_write(struct store *s, const struct fake_request *request,
                         struct fake_reply *reply)
{
    weft_auto(weft_json_free) struct weft_json *doc = NULL;
    if (weft_json_parse(request->body, strlen(request->body), "body", &doc, NULL) < 0) {
        *reply = (struct fake_reply){.status = 400, .body = "{\"reason\":\"BadRequest\"}"};
        return;
    }
    const bool create = strcmp(request->method, "POST") == 0;
    const char *version =
        weft_json_string(weft_json_get(weft_json_get(doc, "metadata"), "resourceVersion"));
    char now[16];
    (void)snprintf(now, sizeof(now), "%d", (int)s->version);
    const bool stale = create ? s->exists : version == NULL || strcmp(version, now) != 0;
    if (stale || s->refuses) {
        *reply = (struct fake_reply){.status = 409, .body = "{\"reason\":\"Conflict\"}"};
        return;
    }
    take_lease(s, doc);
    put_lease(s, reply, create ? 201 : 200);
}

static void answer(void *data, const struct fake_request *request, struct fake_reply *reply)
{
    struct store *s = data;
    if (s->silent) {
        *reply = (struct fake_reply){.end = FAKE_HOLD};
    } else if (s->broken) {
        *reply = (struct fake_reply){.status = 500, .body = "{\"reason\":\"InternalError\"}"};
    } else if (strcmp(request->method, "GET") != 0) {
        answer_write(s, request, reply);
    } else if (s->exists) {
        put_lease(s, reply, 200);
    } else {
        *reply = (struct fake_reply){.status = 404, .body = "{\"reason\":\"NotFound\"}"};
    }
}

/* ---- one contender ---- */

struct contender {
    struct weft_kube_lease *lease;
    int64_t now; /* its own clock */
    struct weft_clock clock;
    int acquired, lost, errors, holders;
    bool released;
};

static int64_t read_now(void *data)
{
    const struct contender *c = data;
    return c->now;
}

static void on_acquired(void *data)
{
    struct contender *c = data;
    c->acquired++;
}

static void on_lost(void *data)
{
    struct contender *c = data;
    c->lost++;
}

static void on_holder(void *data, const char *holder)
{
    struct contender *c = data;
    (void)holder;
    c->holders++;
}

static void on_error(void *data, const struct weft_error *error)
{
    struct contender *c = data;
    (void)error;
    c->errors++;
}

static void on_released(void *data)
{
    struct contender *c = data;
    c->released = true;
}

static struct weft_kube_lease_options options_of(struct contender *c, const char *identity)
{
    *c = (struct contender){.now = 1000 * WEFT_NS_PER_S};
    c->clock = (struct weft_clock){.monotonic = read_now, .realtime = read_now, .data = c};
    return (struct weft_kube_lease_options){
        .ns = "ns",
        .name = "l",
        .identity = identity,
        .renew_ns = 5 * WEFT_NS_PER_MS,
        .retry_ns = 5 * WEFT_NS_PER_MS,
        .timeout_ns = 100 * WEFT_NS_PER_MS,
        .seed = 1,
        .clock = &c->clock,
        .on_acquired = on_acquired,
        .on_lost = on_lost,
        .on_holder = on_holder,
        .on_error = on_error,
        .data = c,
    };
}

static void enter(struct fake_rig *rig, struct contender *c, const char *identity)
{
    const struct weft_kube_lease_options options = options_of(c, identity);
    struct weft_error err = {0};
    if (!CHECK_INT(weft_kube_lease_new(rig->client, &options, &c->lease, &err), 0)) {
        (void)fprintf(stderr, "%s\n", err.message);
    }
}

/* The store's Lease as it is now. */
struct view {
    char holder[64], renew[64];
    int transitions, duration;
};

static struct view look_at(struct fake_rig *rig, struct store *s)
{
    struct view v;
    fake_kube_lock(rig->fake, true);
    memcpy(v.holder, s->holder, sizeof(v.holder));
    memcpy(v.renew, s->renew, sizeof(v.renew));
    v.transitions = s->transitions;
    v.duration = s->duration;
    fake_kube_lock(rig->fake, false);
    return v;
}

/* Runs until the server has seen more writes, and requests too. */
static void run_more(struct fake_rig *rig, struct store *s, int writes, uint64_t requests)
{
    const bool never = false;
    const int had = s->writes;
    struct weft_kube_stats before;
    struct weft_kube_stats now;
    weft_kube_client_stats(rig->client, &before);
    for (int i = 0; i < 2000; i++) {
        (void)weft_loop_run_until(rig->loop, &never, 2 * WEFT_NS_PER_MS);
        weft_kube_client_stats(rig->client, &now);
        if (s->writes >= had + writes && now.requests >= before.requests + requests) {
            return;
        }
    }
    CU_FAIL("the server sees no more requests");
}

/* Runs until *count reaches want. */
static void run_until(struct fake_rig *rig, const int *count, int want)
{
    const bool never = false;
    for (int i = 0; *count < want && i < 1000; i++) {
        (void)weft_loop_run_until(rig->loop, &never, 2 * WEFT_NS_PER_MS);
    }
    CHECK(*count >= want);
}

static void run_for(struct fake_rig *rig, int64_t ms)
{
    const bool never = false;
    (void)weft_loop_run_until(rig->loop, &never, ms * WEFT_NS_PER_MS);
}

static void test_acquire_and_renew(void)
{
    struct store store = {0};
    struct fake_rig rig;
    struct contender a;
    fake_rig_open(&rig, answer, &store);
    enter(&rig, &a, "a");
    CHECK(!weft_kube_lease_held(a.lease));
    run_until(&rig, &a.acquired, 1);
    CHECK(weft_kube_lease_held(a.lease) && weft_kube_lease_fresh(a.lease));
    run_more(&rig, &store, 4, 4);
    CHECK_INT(a.acquired, 1);
    CHECK_INT(a.lost, 0);
    CHECK_INT(a.holders, 0);
    const struct view v = look_at(&rig, &store);
    CHECK_STR(v.holder, "a");
    CHECK_INT(v.duration, 15);
    CHECK_INT(v.transitions, 0);
    CHECK_STR(v.renew, "1970-01-01T00:16:40.000000Z");
    weft_kube_lease_free(a.lease);
    fake_rig_close(&rig);
}

static void test_takeover(void)
{
    struct store store = {.holder = "gone", .renew = "t0", .duration = 20, .version = 5};
    store.exists = true;
    struct fake_rig rig;
    struct contender b;
    fake_rig_open(&rig, answer, &store);
    enter(&rig, &b, "b");
    run_until(&rig, &b.holders, 1);
    b.now += 19 * WEFT_NS_PER_S;
    run_for(&rig, 50);
    CHECK_INT(b.acquired, 0); /* the record's own 20 s count */
    CHECK_INT(store.writes, 0);
    b.now += 2 * WEFT_NS_PER_S;
    run_until(&rig, &b.acquired, 1);
    CHECK_INT(b.holders, 1); /* told once */
    const struct view v = look_at(&rig, &store);
    CHECK_STR(v.holder, "b");
    CHECK_INT(v.transitions, 1);
    weft_kube_lease_free(b.lease);
    fake_rig_close(&rig);
}

/* A holder that renews is not overtaken, however far our clock runs ahead of its. */
static void test_live_holder(void)
{
    struct store store = {0};
    struct fake_rig rig;
    struct contender a;
    struct contender b;
    fake_rig_open(&rig, answer, &store);
    enter(&rig, &a, "a");
    run_until(&rig, &a.acquired, 1);
    enter(&rig, &b, "b");
    for (int i = 0; i < 20; i++) {
        a.now += WEFT_NS_PER_S;
        b.now += 5 * WEFT_NS_PER_S; /* 100 s in all, but seen to be renewed every 5 */
        run_more(&rig, &store, 1, 8);
    }
    CHECK_INT(b.acquired, 0);
    CHECK_INT(a.lost, 0);
    CHECK_STR(look_at(&rig, &store).holder, "a");
    weft_kube_lease_free(a.lease);
    weft_kube_lease_free(b.lease);
    fake_rig_close(&rig);
}

static void test_release(void)
{
    struct store store = {0};
    struct fake_rig rig;
    struct contender a;
    struct contender b;
    fake_rig_open(&rig, answer, &store);
    enter(&rig, &a, "a");
    run_until(&rig, &a.acquired, 1);
    enter(&rig, &b, "b");
    run_for(&rig, 30);
    weft_kube_lease_release(a.lease, on_released);
    CHECK(!weft_kube_lease_fresh(a.lease)); /* no write starts any more */
    CHECK(weft_loop_run_until(rig.loop, &a.released, LONG_ENOUGH));
    run_until(&rig, &b.acquired, 1); /* at once, no clock was moved */
    CHECK_INT(a.lost, 0);
    CHECK(!weft_kube_lease_held(a.lease));
    const struct view v = look_at(&rig, &store);
    CHECK_STR(v.holder, "b");
    CHECK_INT(v.transitions, 1);
    weft_kube_lease_free(a.lease);
    weft_kube_lease_free(b.lease);
    fake_rig_close(&rig);
}

static void test_overtaken(void)
{
    struct store store = {0};
    struct fake_rig rig;
    struct contender a;
    fake_rig_open(&rig, answer, &store);
    enter(&rig, &a, "a");
    run_until(&rig, &a.acquired, 1);
    fake_kube_lock(rig.fake, true);
    (void)snprintf(store.holder, sizeof(store.holder), "thief");
    store.version += 10;
    fake_kube_lock(rig.fake, false);
    run_until(&rig, &a.lost, 1);
    CHECK(!weft_kube_lease_held(a.lease) && !weft_kube_lease_fresh(a.lease));
    CHECK_STR(look_at(&rig, &store).holder, "thief");
    CHECK_INT(a.holders, 1);
    weft_kube_lease_free(a.lease);
    fake_rig_close(&rig);
}

/* A server that answers every write with a conflict is looked at once more, then as seldom as one
 * that is broken: each try is a look and a write. */
static void test_conflicts_for_ever(void)
{
    struct store store = {0};
    struct fake_rig rig;
    struct contender a;
    struct weft_kube_stats before;
    struct weft_kube_stats now;
    fake_rig_open(&rig, answer, &store);
    enter(&rig, &a, "a");
    run_until(&rig, &a.acquired, 1);
    store.refuses = true;
    weft_kube_client_stats(rig.client, &before);
    run_until(&rig, &a.errors, 1);
    weft_kube_client_stats(rig.client, &now);
    /* write, look, write; then a look and a write for each further error */
    CHECK(now.requests - before.requests <= 3 + 2 * (uint64_t)(a.errors - 1));
    weft_kube_lease_free(a.lease);
    fake_rig_close(&rig);
}

/* The fence closes before the Lease is lost, and that before it can be another's. */
static void test_fence_and_deadline(void)
{
    struct store store = {0};
    struct fake_rig rig;
    struct contender a;
    fake_rig_open(&rig, answer, &store);
    struct weft_kube_lease_options options = options_of(&a, "a");
    options.clock = NULL; /* real time here, in small */
    options.duration_ns = 3 * WEFT_NS_PER_S;
    options.fence_ns = 500 * WEFT_NS_PER_MS;
    options.timeout_ns = 1000 * WEFT_NS_PER_MS;
    CHECK_INT(weft_kube_lease_new(rig.client, &options, &a.lease, NULL), 0);
    run_until(&rig, &a.acquired, 1);
    store.broken = true;
    run_until(&rig, &a.errors, 1);
    run_for(&rig, 600);
    CHECK(!weft_kube_lease_fresh(a.lease)); /* 500 ms without a renewal */
    CHECK(weft_kube_lease_held(a.lease));
    CHECK_INT(a.lost, 0);
    run_until(&rig, &a.lost, 1); /* after 3 - 1 s */
    CHECK(!weft_kube_lease_held(a.lease));
    store.broken = false;
    run_until(&rig, &a.acquired, 2);
    CHECK(weft_kube_lease_fresh(a.lease));
    weft_kube_lease_free(a.lease);
    fake_rig_close(&rig);
}

/* Real time in small, a tenth of the defaults: renewals 0.4 to 0.5 s apart, and between them the
 * fence never closes; after a failure the next try comes 0.2 s after the last one was sent. */
static void test_renews_before_the_fence_closes(void)
{
    struct store store = {0};
    struct fake_rig rig;
    struct contender a;
    const bool never = false;
    fake_rig_open(&rig, answer, &store);
    struct weft_kube_lease_options options = options_of(&a, "a");
    options.clock = NULL;
    options.renew_ns = 500 * WEFT_NS_PER_MS;
    options.retry_ns = 200 * WEFT_NS_PER_MS;
    options.fence_ns = 600 * WEFT_NS_PER_MS;
    options.duration_ns = 2 * WEFT_NS_PER_S;
    options.timeout_ns = 400 * WEFT_NS_PER_MS;
    CHECK_INT(weft_kube_lease_new(rig.client, &options, &a.lease, NULL), 0);
    run_until(&rig, &a.acquired, 1);
    const int before = store.writes;
    int closed = 0;
    for (int i = 0; i < 200; i++) {
        (void)weft_loop_run_until(rig.loop, &never, 10 * WEFT_NS_PER_MS);
        closed += !weft_kube_lease_fresh(a.lease);
    }
    const int renewals = store.writes - before;
    CHECK(renewals >= 3 && renewals <= 8); /* in 2 s, or more on a busy machine; by retry_ns 10 */
    CHECK(closed <= 20); /* a busy machine may be late; every 5 s it would be 33 */
    fake_kube_lock(rig.fake, true);
    store.broken = true;
    fake_kube_lock(rig.fake, false);
    run_until(&rig, &a.errors, 1);
    run_for(&rig, 700);
    CHECK(a.errors >= 3);
    CHECK_INT(a.lost, 0);
    weft_kube_lease_free(a.lease);
    fake_rig_close(&rig);
}

/* A renewal that was done but whose answer got lost: not overtaken by our own write. */
static void test_silent_server(void)
{
    struct store store = {0};
    struct fake_rig rig;
    struct contender a;
    fake_rig_open(&rig, answer, &store);
    enter(&rig, &a, "a");
    run_until(&rig, &a.acquired, 1);
    store.silent = true;
    run_until(&rig, &a.errors, 2);
    CHECK(weft_kube_lease_held(a.lease));
    fake_kube_lock(rig.fake, true);
    store.version++; /* as if one of them had been done after all */
    fake_kube_lock(rig.fake, false);
    store.silent = false;
    run_more(&rig, &store, 1, 1);
    CHECK_INT(a.lost, 0);
    CHECK_INT(a.acquired, 1);
    weft_kube_lease_free(a.lease);
    fake_rig_close(&rig);
}

static void test_options(void)
{
    struct store store = {0};
    struct fake_rig rig;
    struct contender a;
    fake_rig_open(&rig, answer, &store);
    struct weft_kube_lease_options options = options_of(&a, "a");
    options.fence_ns = 12 * WEFT_NS_PER_S;
    options.timeout_ns = 4 * WEFT_NS_PER_S; /* a last write could arrive after 16 s of 15 */
    CHECK_INT(weft_kube_lease_new(rig.client, &options, &a.lease, NULL), -EINVAL);
    options = options_of(&a, "a");
    options.duration_ns = 1500 * WEFT_NS_PER_MS;
    CHECK_INT(weft_kube_lease_new(rig.client, &options, &a.lease, NULL), -EINVAL);
    options = options_of(&a, "a");
    options.renew_ns = 6 * WEFT_NS_PER_S; /* the fence would be closed before each renewal */
    CHECK_INT(weft_kube_lease_new(rig.client, &options, &a.lease, NULL), -EINVAL);
    options = options_of(&a, NULL);
    CHECK_INT(weft_kube_lease_new(rig.client, &options, &a.lease, NULL), -EINVAL);
    fake_rig_close(&rig);
}

/* ---- events ---- */

static void on_posted(void *data, const struct weft_kube_result *result)
{
    bool *done = data;
    *done = true;
    CHECK_INT(result->error.code, 0);
}

static void test_event(void)
{
    static const struct fake_step steps[] = {
        {"POST /apis/events.k8s.io/v1/namespaces/default/events?fieldManager=weft-test&timeout=",
         {.status = 201, .body = "{}"}},
        {"PATCH /apis/events.k8s.io/v1/namespaces/default/events/node-1.",
         {.status = 200, .body = "{}"}},
    };
    struct fake_script script;
    fake_script_init(&script, steps, 2);
    struct fake_rig rig;
    fake_rig_open(&rig, fake_script_answer, &script);
    char note[1100];
    memset(note, 'n', sizeof(note));
    memcpy(note + 1023, "\xc3\xa4", 2); /* a character across the cut */
    note[sizeof(note) - 1] = '\0';
    bool done = false;
    struct weft_kube_event event = {.api_version = "v1",
                                    .kind = "Node",
                                    .ns = "",
                                    .name = "node-1",
                                    .uid = "u-1",
                                    .warning = true,
                                    .reason = "CableOdd",
                                    .action = "Discover",
                                    .note = note,
                                    .controller = "weft.dev/controller",
                                    .instance = "pod-1",
                                    .on_done = on_posted,
                                    .data = &done};
    CHECK_INT(weft_kube_event_post(rig.client, &event, NULL, NULL), 0);
    CHECK(weft_loop_run_until(rig.loop, &done, LONG_ENOUGH));
    CHECK_INT(fake_script_unexpected(&script), 0);
    struct fake_seen seen;
    (void)fake_script_seen(&script, &seen);
    weft_auto(weft_json_free) struct weft_json *doc = NULL;
    CHECK_INT(weft_json_parse(seen.body, strlen(seen.body), "body", &doc, NULL), 0);
    CHECK_STR(weft_json_string(weft_json_get(doc, "type")), "Warning");
    CHECK_STR(weft_json_string(weft_json_get(doc, "reportingController")), "weft.dev/controller");
    const char *cut = weft_json_string(weft_json_get(doc, "note"));
    CHECK_INT(cut != NULL ? strlen(cut) : 0, 1023);
    const struct weft_json *regarding = weft_json_get(doc, "regarding");
    CHECK_STR(weft_json_string(weft_json_get(regarding, "uid")), "u-1");
    CHECK(weft_json_get(regarding, "namespace") == NULL);
    const char *name = weft_json_string(weft_json_get(weft_json_get(doc, "metadata"), "name"));
    CHECK_CONTAINS(name, "node-1.");

    /* said again, by whichever process: its name is the same, and only the series is written */
    done = false;
    event.count = 7;
    event.instance = "pod-2";
    CHECK_INT(weft_kube_event_post(rig.client, &event, NULL, NULL), 0);
    CHECK(weft_loop_run_until(rig.loop, &done, LONG_ENOUGH));
    CHECK_INT(fake_script_unexpected(&script), 0);
    (void)fake_script_seen(&script, &seen);
    CHECK_CONTAINS(seen.body, "{\"series\":{\"count\":7,\"lastObservedTime\":\"20");
    CHECK_CONTAINS(weft_buf_text(&script.log), name);
    fake_rig_close(&rig);
    fake_script_done(&script);
}

WEFT_SUITE(kube_lease, {"acquire_and_renew", test_acquire_and_renew}, {"takeover", test_takeover},
           {"conflicts_for_ever", test_conflicts_for_ever}, {"live_holder", test_live_holder},
           {"release", test_release}, {"overtaken", test_overtaken},
           {"fence_and_deadline", test_fence_and_deadline},
           {"renews_before_the_fence_closes", test_renews_before_the_fence_closes},
           {"silent_server", test_silent_server}, {"options", test_options}, {"event", test_event})
