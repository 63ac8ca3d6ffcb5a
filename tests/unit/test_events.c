/* SPDX-License-Identifier: Apache-2.0 */
/* Events: one for one thing, told again by its count, slowly, and no more than the queue holds. */
#include "controller/events.h"

#include <errno.h>
#include <stdio.h>

#include "pkg/base/clock.h"
#include "pkg/kube/client.h"
#include "pkg/kube/event.h"
#include "pkg/loop/loop.h"
#include "tests/unit/unit.h"

enum { PENDING_MAX = 8 };

struct bench {
    struct weft_loop *loop;
    struct weft_events *events;
    struct weft_timer *answerer;
    struct weft_clock clock;
    int64_t now;
    size_t posted;
    int64_t first;
    int64_t last;
    uint32_t count; /* of the last request */
    uint64_t id;
    char reason[64];
    char note[64];
    int code; /* of the answers */
    bool silent;
    weft_kube_result_fn pending[PENDING_MAX];
    void *pending_data[PENDING_MAX];
    size_t pending_count;
    size_t cancelled;
    bool enough;
    size_t want;
};

static int64_t bench_now(void *data)
{
    const struct bench *b = data;
    return b->now;
}

static int post(struct weft_kube_client *client, const struct weft_kube_event *event,
                struct weft_kube_call **ret_call, struct weft_error *err)
{
    struct bench *b = (struct bench *)(void *)client;
    if (b->code == -EBUSY) {
        return weft_err_set(err, -EBUSY, WEFT_ERR_ERRNO, "busy");
    }
    b->last = weft_clock_monotonic(weft_clock_system());
    b->first = b->posted == 0 ? b->last : b->first;
    b->posted++;
    b->count = event->count;
    b->id = weft_kube_event_id(event);
    (void)snprintf(b->reason, sizeof(b->reason), "%s", event->reason);
    (void)snprintf(b->note, sizeof(b->note), "%s", event->note);
    CHECK_STR(event->kind, "Node");
    CHECK_STR(event->instance, "pod-1");
    *ret_call = (struct weft_kube_call *)(void *)b;
    b->pending[b->pending_count] = event->on_done;
    b->pending_data[b->pending_count++] = event->data;
    CHECK(b->pending_count < PENDING_MAX);
    if (!b->silent) {
        weft_timer_start(b->answerer, 0, 0);
    }
    return 0;
}

static void cancel(struct weft_kube_call *call)
{
    struct bench *b = (struct bench *)(void *)call;
    b->cancelled++;
}

static void answer(void *data)
{
    struct bench *b = data;
    const size_t count = b->pending_count;
    b->pending_count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct weft_kube_result result = {.reason = "", .error = {.code = b->code}};
        b->pending[i](b->pending_data[i], &result);
    }
    b->enough = b->posted >= b->want;
    if (b->enough) { /* else the turn of the loop lasts until the next timer */
        weft_loop_stop(b->loop);
    }
}

static void setup(struct bench *b)
{
    *b = (struct bench){.now = 1000 * WEFT_NS_PER_S, .want = 1};
    b->clock = (struct weft_clock){.monotonic = bench_now, .realtime = bench_now, .data = b};
    const struct weft_events_options options = {.post = post,
                                                .cancel = cancel,
                                                .client = (struct weft_kube_client *)(void *)b,
                                                .instance = "pod-1",
                                                .clock = &b->clock};
    CHECK_INT(weft_loop_new(&b->loop, NULL), 0);
    CHECK_INT(weft_timer_new(b->loop, answer, b, &b->answerer, NULL), 0);
    CHECK_INT(weft_events_new(b->loop, &options, &b->events, NULL), 0);
}

static void teardown(struct bench *b)
{
    weft_events_free(b->events);
    weft_timer_free(b->answerer);
    weft_loop_free(b->loop);
}

static bool tell(struct bench *b, const char *node, const char *reason, const char *note)
{
    const struct weft_event_object object = {"v1", "Node", "", node, "uid", NULL};
    return weft_events_add(b->events, &object, true, reason, "Report", note);
}

static bool say(struct bench *b, const char *node, const char *reason)
{
    return tell(b, node, reason, node);
}

/* Until so many requests in all were answered, or a second. */
static bool run(struct bench *b, size_t want)
{
    b->want = want;
    b->enough = b->posted >= want && b->pending_count == 0;
    return weft_loop_run_until(b->loop, &b->enough, WEFT_NS_PER_S);
}

/* Half an hour later the count of all reports until then goes to the Event that is there. */
static void test_same_is_counted(void)
{
    struct bench b;
    setup(&b);
    CHECK(say(&b, "n0", "Unplaced"));
    CHECK(!say(&b, "n0", "Unplaced"));
    CHECK(say(&b, "n1", "Unplaced"));
    CHECK(say(&b, "n0", "SplitNode"));
    CHECK(run(&b, 3));
    CHECK_INT(b.count, 0);
    b.now += 1799 * WEFT_NS_PER_S;
    CHECK(!say(&b, "n0", "Unplaced"));
    CHECK(!run(&b, 4));
    b.now += 1 * WEFT_NS_PER_S;
    CHECK(!say(&b, "n0", "Unplaced"));
    CHECK(run(&b, 4));
    CHECK_INT(b.count, 4);
    CHECK_STR(b.reason, "Unplaced");
    CHECK_STR(b.note, "n0");
    CHECK_INT(weft_events_stats(b.events)->sent, 4);
    CHECK_INT(weft_events_stats(b.events)->repeats, 2);
    teardown(&b);
}

/* What ended and comes again is news, and the same Event if it says the same. */
static void test_again_after_its_end(void)
{
    struct bench b;
    setup(&b);
    CHECK(say(&b, "n0", "Unplaced"));
    CHECK(run(&b, 1));
    const uint64_t id = b.id;
    weft_events_clear(b.events, "Node", "n0", "Unplaced");
    CHECK(say(&b, "n0", "Unplaced"));
    CHECK(run(&b, 2));
    CHECK_INT(b.count, 2);
    CHECK(b.id == id);
    weft_events_clear(b.events, "Node", "n0", "Unplaced");
    CHECK(tell(&b, "n0", "Unplaced", "other words"));
    CHECK(run(&b, 3));
    CHECK_INT(b.count, 0);
    CHECK(b.id != id);
    teardown(&b);
}

/* Other words about one object and reason: five in a row, then one a minute. */
static void test_other_words(void)
{
    struct bench b;
    char note[32];
    setup(&b);
    for (int i = 0; i < 20; i++) {
        (void)snprintf(note, sizeof(note), "note %d", i);
        CHECK_INT(tell(&b, "n0", "LastPlaceKept", note), i < 5);
    }
    CHECK_INT(weft_events_stats(b.events)->too_many, 15);
    CHECK(say(&b, "n1", "LastPlaceKept")); /* another object */
    b.now += 59 * WEFT_NS_PER_S;
    CHECK(!tell(&b, "n0", "LastPlaceKept", "late"));
    b.now += 61 * WEFT_NS_PER_S;
    CHECK(tell(&b, "n0", "LastPlaceKept", "later"));
    CHECK(tell(&b, "n0", "LastPlaceKept", "latest"));
    CHECK(!tell(&b, "n0", "LastPlaceKept", "one more"));
    CHECK(run(&b, 8));
    teardown(&b);
}

/* From before a restart: POST, 409, then the count; forgotten by the server: PATCH, 404, then POST.
 */
static void test_there_and_gone(void)
{
    struct bench b;
    setup(&b);
    b.code = -EEXIST;
    CHECK(say(&b, "n0", "Unplaced"));
    CHECK(run(&b, 1));
    b.code = 0;
    CHECK(run(&b, 2));
    CHECK_INT(b.count, 2);
    b.now += 1800 * WEFT_NS_PER_S;
    b.code = -ENOENT;
    CHECK(!say(&b, "n0", "Unplaced"));
    CHECK(run(&b, 3));
    CHECK_INT(b.count, 2); /* reported twice by this process */
    b.code = 0;
    CHECK(run(&b, 4));
    CHECK_INT(b.count, 0);
    CHECK_INT(weft_events_stats(b.events)->failed, 0);
    teardown(&b);
}

/* What the server did not take is said with the next report. */
static void test_failures(void)
{
    static const int codes[] = {-EACCES, -EBUSY};
    struct bench b;
    setup(&b);
    for (size_t i = 0; i < WEFT_ARRAY_LEN(codes); i++) {
        const size_t before = b.posted;
        b.code = codes[i];
        CHECK(tell(&b, "n0", "Unplaced", i == 0 ? "a" : "b"));
        (void)run(&b, SIZE_MAX);
        CHECK_INT(weft_events_stats(b.events)->failed, i + 1);
        b.code = 0;
        CHECK(tell(&b, "n0", "Unplaced", i == 0 ? "a" : "b"));
        CHECK(run(&b, before + (codes[i] == -EBUSY ? 1 : 2)));
        CHECK_INT(b.count, 0);
    }
    CHECK_INT(weft_events_stats(b.events)->sent, 2);
    teardown(&b);
}

/* Several findings about one object do not push each other out; those that a round does not report
 * any more are over. */
static void test_parts(void)
{
    static const char *const parts[] = {"mlx5_0", "mlx5_1"};
    struct bench b;
    setup(&b);
    for (int round = 0; round < 4; round++) {
        for (size_t i = 0; i < WEFT_ARRAY_LEN(parts); i++) {
            const struct weft_event_object object = {"v1", "Node", "", "n0", "uid", parts[i]};
            const bool told =
                weft_events_add(b.events, &object, true, "RailSwap", "Report", parts[i]);
            CHECK_INT(told, round == 0 || (round == 3 && i == 1));
            if (round == 2) {
                break; /* mlx5_1 was put right for a while */
            }
        }
        weft_events_sweep(b.events);
    }
    CHECK(say(&b, "n0", "RailSwap")); /* without a part no sweep ends it */
    weft_events_sweep(b.events);
    weft_events_sweep(b.events);
    CHECK(!say(&b, "n0", "RailSwap"));
    teardown(&b);
}

static void test_pace(void)
{
    struct bench b;
    char name[32];
    setup(&b);
    for (int i = 0; i < 6; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        CHECK(say(&b, name, "Unplaced"));
    }
    CHECK(run(&b, 6));
    CHECK(b.last - b.first >= 5 * WEFT_NS_PER_S / WEFT_EVENTS_PER_SECOND);
    teardown(&b);
}

/* A server that does not answer gets four requests; the rest waits, and is dropped when the queue
 * is full; all is given back at the end. */
static void test_bounded(void)
{
    struct bench b;
    char name[32];
    setup(&b);
    b.silent = true;
    for (int i = 0; i < 25000; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        CHECK(say(&b, name, "Unplaced")); /* each is new, most are dropped */
    }
    CHECK_INT(weft_events_stats(b.events)->overflow, 25000 - WEFT_EVENTS_QUEUE_MAX);
    (void)run(&b, SIZE_MAX);
    CHECK_INT(b.posted, 4);
    teardown(&b);
    CHECK_INT(b.cancelled, 4);
}

static void test_held(void)
{
    struct bench b;
    setup(&b);
    weft_events_hold(b.events, true);
    CHECK(say(&b, "n0", "Unplaced"));
    CHECK(!run(&b, 1));
    CHECK_INT(b.posted, 0);
    weft_events_hold(b.events, false);
    CHECK(run(&b, 1));
    teardown(&b);
}

static void test_without_memory(void)
{
    struct bench b;
    setup(&b);
    for (uint64_t n = 1; n < 16; n++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "n%d", (int)n);
        (void)weft_mem_fail_after(n);
        (void)say(&b, name, "Unplaced");
        (void)weft_mem_fail_after(0);
    }
    CHECK(weft_events_stats(b.events)->overflow > 0);
    teardown(&b);
}

WEFT_SUITE(events, {"same is counted", test_same_is_counted},
           {"again after its end", test_again_after_its_end}, {"other words", test_other_words},
           {"there and gone", test_there_and_gone}, {"failures", test_failures},
           {"parts", test_parts}, {"pace", test_pace}, {"bounded", test_bounded},
           {"held", test_held}, {"without memory", test_without_memory})
