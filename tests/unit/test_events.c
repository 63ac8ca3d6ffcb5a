/* SPDX-License-Identifier: Apache-2.0 */
/* Events: once an hour for one thing, slowly, and no more than the queue holds. */
#include "controller/events.h"

#include <stdio.h>

#include "pkg/base/clock.h"
#include "pkg/kube/event.h"
#include "pkg/loop/loop.h"
#include "tests/unit/unit.h"

struct bench {
    struct weft_loop *loop;
    struct weft_events *events;
    struct weft_clock clock;
    int64_t now;
    size_t posted;
    int64_t first;
    int64_t last;
    char reason[64];
    char note[64];
    bool enough;
    size_t want;
};

static int64_t bench_now(void *data)
{
    const struct bench *b = data;
    return b->now;
}

static int post(struct weft_kube_client *client, const struct weft_kube_event *event,
                struct weft_error *err)
{
    struct bench *b = (struct bench *)(void *)client;
    (void)err;
    b->last = weft_clock_monotonic(weft_clock_system());
    b->first = b->posted == 0 ? b->last : b->first;
    b->posted++;
    (void)snprintf(b->reason, sizeof(b->reason), "%s", event->reason);
    (void)snprintf(b->note, sizeof(b->note), "%s", event->note);
    CHECK_STR(event->kind, "Node");
    CHECK_STR(event->instance, "pod-1");
    b->enough = b->posted >= b->want;
    return 0;
}

static void setup(struct bench *b)
{
    *b = (struct bench){.now = 1000 * WEFT_NS_PER_S, .want = 1};
    b->clock = (struct weft_clock){.monotonic = bench_now, .realtime = bench_now, .data = b};
    const struct weft_events_options options = {.post = post,
                                                .client = (struct weft_kube_client *)(void *)b,
                                                .instance = "pod-1",
                                                .clock = &b->clock};
    CHECK_INT(weft_loop_new(&b->loop, NULL), 0);
    CHECK_INT(weft_events_new(b->loop, &options, &b->events, NULL), 0);
}

static void teardown(struct bench *b)
{
    weft_events_free(b->events);
    weft_loop_free(b->loop);
}

static bool say(struct bench *b, const char *node, const char *reason)
{
    const struct weft_event_object object = {"v1", "Node", "", node, "uid"};
    return weft_events_add(b->events, &object, true, reason, "Report", node);
}

static void test_once_an_hour(void)
{
    struct bench b;
    setup(&b);
    CHECK(say(&b, "n0", "Unplaced"));
    CHECK(!say(&b, "n0", "Unplaced"));
    CHECK(say(&b, "n1", "Unplaced"));
    CHECK(say(&b, "n0", "SplitNode"));
    b.now += 3599 * WEFT_NS_PER_S;
    CHECK(!say(&b, "n0", "Unplaced"));
    b.now += 2 * WEFT_NS_PER_S;
    CHECK(say(&b, "n0", "Unplaced"));
    weft_events_clear(b.events, "Node", "n0", "Unplaced");
    CHECK(say(&b, "n0", "Unplaced"));
    b.want = 5;
    CHECK(weft_loop_run_until(b.loop, &b.enough, 5 * WEFT_NS_PER_S));
    CHECK_STR(b.reason, "Unplaced");
    CHECK_STR(b.note, "n0");
    /* four gaps of a tenth of a second */
    CHECK(b.last - b.first >= 4 * 99 * WEFT_NS_PER_MS);
    teardown(&b);
}

static void test_bounded(void)
{
    struct bench b;
    setup(&b);
    for (int i = 0; i < 25000; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "n%d", i);
        CHECK(say(&b, name, "Unplaced")); /* each is new, most are dropped */
    }
    CHECK(weft_loop_run_until(b.loop, &b.enough, WEFT_NS_PER_S));
    teardown(&b);
}

static void test_without_memory(void)
{
    struct bench b;
    setup(&b);
    for (uint64_t n = 1; n < 12; n++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "n%d", (int)n);
        (void)weft_mem_fail_after(n);
        (void)say(&b, name, "Unplaced");
        (void)weft_mem_fail_after(0);
    }
    teardown(&b);
}

WEFT_SUITE(events, {"once an hour", test_once_an_hour}, {"bounded", test_bounded},
           {"without memory", test_without_memory})
