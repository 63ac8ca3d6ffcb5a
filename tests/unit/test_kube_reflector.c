/* SPDX-License-Identifier: Apache-2.0 */
/* Following a collection through everything a server does: pages, events, bookmarks, expired
 * versions, cuts, silence, garbage, refusals. Each test gives the answers in order and checks both
 * what was asked and what came out. */
#include <errno.h>
#include <stdio.h>

#include "pkg/base/clock.h"
#include "pkg/json/json.h"
#include "pkg/kube/backoff.h"
#include "pkg/kube/client.h"
#include "pkg/kube/reflector.h"
#include "pkg/loop/loop.h"
#include "tests/unit/fake_pb.h"
#include "tests/unit/kube_recorder.h"
#include "tests/unit/unit.h"

/* ---- the good way ---- */

static void test_pages_and_events(void)
{
    static const struct fake_step steps[] = {
        {"GET /api/v1/nodes?limit=2",
         {OK, .body = LIST("10", "to/2", ITEM("a", "1", "x") "," ITEM("b", "2", "x"))}},
        {"GET /api/v1/nodes?limit=2&continue=to%2F2",
         {OK, .body = LIST("10", "", ITEM("c", "3", "x"))}},
        {WATCH "10&timeoutSeconds=",
         {OK, .stream = true, .piece = 3,
          .body = EVENT("ADDED", ITEM("d", "11", "y")) EVENT("MODIFIED", ITEM("a", "12", "z"))
              EVENT("DELETED", ITEM("b", "13", "x")) BOOKMARK("20")}},
        {WATCH "20&timeoutSeconds=", {HELD, .body = EVENT("MODIFIED", ITEM("c", "21", "w"))}},
    };
    RUN(steps, 9,
        "list\n+ a 1 x\n+ b 2 x\n+ c 3 x\nsynced\n+ d 11 y\n~ a 12 z\n- b 13 x\n~ c 21 w\n");
}

static void test_documents_and_selectors(void)
{
    static const struct fake_step steps[] = {
        {"GET /api/v1/nodes?labelSelector=a%21%3Db%2Cc&fieldSelector=metadata.name%3Dx&limit=2",
         {OK, .body = LIST("5", "", ITEM("a", "1", "x"))}},
        {"GET /api/v1/nodes?labelSelector=a%21%3Db%2Cc&fieldSelector=metadata.name%3Dx&watch=true",
         {HELD, .body = EVENT("DELETED", ITEM("a", "6", "x"))}},
    };
    struct recorder rec;
    recorder_begin(&rec, steps, WEFT_ARRAY_LEN(steps));
    struct weft_kube_reflector_options options = recorder_options(&rec);
    options.codec = WEFT_KUBE_JSON;
    options.annotations = true;
    options.label_selector = "a!=b,c";
    options.field_selector = "metadata.name=x";
    recorder_follow(&rec, &options, 4);
    recorder_end(&rec, "list\n+ a 1 x a=b\nsynced\n- a 6 x a=b\n");
}

static void test_protobuf(void)
{
    struct weft_buf objects[5];
    struct weft_buf page;
    struct weft_buf events;
    static const char *const names[] = {"a", "b", "a", "", "b"};
    static const char *const versions[] = {"1", "2", "11", "15", "16"};
    for (size_t i = 0; i < 5; i++) {
        weft_buf_init(&objects[i], 4096);
        fake_pb_object(&objects[i], names[i], versions[i], i == 3 ? NULL : "x");
    }
    weft_buf_init(&page, 1U << 16);
    weft_buf_init(&events, 1U << 16);
    fake_pb_list(&page, "10", "", objects, 2);
    fake_pb_event(&events, "MODIFIED", &objects[2]);
    fake_pb_event(&events, "BOOKMARK", &objects[3]);
    struct weft_buf last;
    weft_buf_init(&last, 4096);
    fake_pb_event(&last, "DELETED", &objects[4]);
    const char *type = "application/vnd.kubernetes.protobuf";
    const char *stream = "application/vnd.kubernetes.protobuf;stream=watch";
    const struct fake_step steps[] = {
        {"GET /api/v1/nodes?limit=2",
         {OK, .type = type, .body = page.data, .body_len = page.len, .piece = 1}},
        {WATCH "10&",
         {OK, .type = stream, .stream = true, .body = events.data, .body_len = events.len,
          .piece = 1}},
        {WATCH "15&", {HELD, .type = stream, .body = last.data, .body_len = last.len}},
    };
    struct recorder rec;
    recorder_begin(&rec, steps, WEFT_ARRAY_LEN(steps));
    struct weft_kube_reflector_options options = recorder_options(&rec);
    options.annotations = true;
    recorder_follow(&rec, &options, 6);
    struct fake_seen seen;
    (void)fake_script_seen(&rec.script, &seen);
    CHECK_CONTAINS(seen.headers,
                   "\r\nAccept: application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;"
                   "g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;");
    recorder_end(&rec, "list\n+ a 1 x a=b\n+ b 2 x a=b\nsynced\n~ a 11 x a=b\n- b 16 x a=b\n");
    for (size_t i = 0; i < 5; i++) {
        weft_buf_done(&objects[i]);
    }
    weft_buf_done(&page);
    weft_buf_done(&events);
    weft_buf_done(&last);
}

/* ---- expired ---- */

static void test_expired_page(void)
{
    static const struct fake_step steps[] = {
        {"GET /api/v1/nodes?limit=2", {OK, .body = LIST("10", "t", ITEM("a", "1", "x"))}},
        {"GET /api/v1/nodes?limit=2&continue=t",
         {.status = 410, .body = FAILURE("410", "Expired")}},
        {"GET /api/v1/nodes?limit=2", {OK, .body = LIST("30", "", ITEM("b", "2", "x"))}},
        {WATCH "30&", {HELD}},
    };
    RUN(steps, 6,
        "list\n+ a 1 x\nerror -116 GET /api/v1/nodes: 410 Expired: m\nlist\n+ b 2 x\nsynced\n");
}

static void test_expired_watch(void)
{
    static const struct fake_step steps[] = {
        {"GET /api/v1/nodes?limit=2", {OK, .body = LIST("10", "", ITEM("a", "1", "x"))}},
        {WATCH "10&",
         {OK, .stream = true,
          .body = EVENT("ADDED", ITEM("b", "11", "x")) EVENT("ERROR", FAILURE("410", "Expired"))}},
        {"GET /api/v1/nodes?limit=2", {OK, .body = LIST("40", "", ITEM("b", "11", "x"))}},
        /* and as a status, as some servers answer */
        {WATCH "40&", {.status = 410, .body = FAILURE("410", "Expired")}},
        {"GET /api/v1/nodes?limit=2", {OK, .body = LIST("50", "", "")}},
        {WATCH "50&", {HELD}},
    };
    RUN(steps, 11,
        "list\n+ a 1 x\nsynced\n+ b 11 x\nerror -116 /api/v1/nodes: 410 Expired: m\n"
        "list\n+ b 11 x\nsynced\nerror -116 GET /api/v1/nodes: 410 Expired: m\nlist\nsynced\n");
}

static void test_other_error_event(void)
{
    /* an error that is not about the version: the watch resumes where it was */
    static const struct fake_step steps[] = {
        {"GET /api/v1/nodes?limit=2", {OK, .body = LIST("10", "", "")}},
        {WATCH "10&",
         {OK, .stream = true,
          .body = EVENT("ADDED", ITEM("b", "11", "x"))
              EVENT("ERROR", FAILURE("500", "InternalError"))}},
        {WATCH "11&", {HELD}},
    };
    RUN(steps, 0, "list\nsynced\n+ b 11 x\nerror -5 /api/v1/nodes: 500 InternalError: m\n");
}

/* ---- broken ---- */

static void test_cut_watch(void)
{
    /* the second event is cut in the middle: it is not seen, and asked for again */
    static const struct fake_step steps[] = {
        {"GET /api/v1/nodes?limit=2", {OK, .body = LIST("10", "", "")}},
        {WATCH "10&",
         {OK, .stream = true, .end = FAKE_CUT,
          .body = EVENT(
              "ADDED",
              ITEM("a", "11", "x")) "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"b"}},
        {WATCH "11&", {OK, .stream = true, .body = "{\"type\":\"DELE"}}, /* ends well but inside */
        {WATCH "11&", {HELD, .body = EVENT("ADDED", ITEM("b", "12", "x"))}},
    };
    RUN(steps, 6, "list\nsynced\n+ a 11 x\nerror -5 \nerror -74 \n+ b 12 x\n");
}

static void test_cut_page(void)
{
    static const struct fake_step steps[] = {
        {"GET /api/v1/nodes?limit=2",
         {OK, .end = FAKE_CUT,
          .body =
              LIST("10", "",
                   ITEM("a", "1", "x") "," ITEM(
                       "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", "2", "x"))}},
        {"GET /api/v1/nodes?limit=2", {OK, .body = LIST("11", "", ITEM("a", "1", "x"))}},
        {WATCH "11&", {HELD}},
    };
    RUN(steps, 6, "list\n+ a 1 x\nerror -5 \nlist\n+ a 1 x\nsynced\n");
}

static void test_silent_watch(void)
{
    static const struct fake_step steps[] = {
        {"GET /api/v1/nodes?limit=2", {OK, .body = LIST("10", "", "")}},
        {WATCH "10&", {HELD, .body = BOOKMARK("12")}},
        {WATCH "12&", {.end = FAKE_HOLD}}, /* not even a head */
        {WATCH "12&", {HELD, .body = EVENT("ADDED", ITEM("a", "13", "x"))}},
    };
    struct recorder rec;
    recorder_begin(&rec, steps, WEFT_ARRAY_LEN(steps));
    struct weft_kube_reflector_options options = recorder_options(&rec);
    options.idle_ns = 300 * WEFT_NS_PER_MS;
    recorder_follow(&rec, &options, 5);
    recorder_end(&rec, "list\nsynced\nerror -110 \nerror -110 \n+ a 13 x\n");
}

static void test_garbage(void)
{
    static const struct fake_step steps[] = {
        {"GET /api/v1/nodes?limit=2", {OK, .body = "{\"items\":{}}"}},
        {"GET /api/v1/nodes?limit=2", {OK, .body = "{\"items\":[{\"metadata\":{}}]}"}},
        {"GET /api/v1/nodes?limit=2", {OK, .body = "{\"items\":[{\"metadata\":nul}]}"}},
        {"GET /api/v1/nodes?limit=2", {OK, .body = "{\"items\":[]}"}}, /* no resourceVersion */
        {"GET /api/v1/nodes?limit=2", {OK, .type = "text/html", .body = "<html>"}},
        {"GET /api/v1/nodes?limit=2",
         {OK, .type = "application/vnd.kubernetes.protobuf", .body = "k9s"}},
        {"GET /api/v1/nodes?limit=2", {OK, .body = LIST("10", "", "")}},
        {WATCH "10&", {OK, .stream = true, .body = "[]\n"}},
        {WATCH "10&", {OK, .stream = true, .body = EVENT("CHANGED", ITEM("a", "1", "x"))}},
        {WATCH "10&",
         {OK, .stream = true, .body = EVENT("ADDED", "{\"metadata\":{\"name\":\"a\"}}")}},
        {WATCH "10&", {HELD}},
    };
    RUN(steps, 0,
        "list\nerror -74 \nlist\nerror -74 \nlist\nerror -74 \nlist\nerror -74 \nerror -71 \n"
        "list\nerror -74 \nlist\nsynced\nerror -74 \nerror -74 \nerror -74 \n");
}

static void test_big_item(void)
{
    static const struct fake_step steps[] = {
        {"GET /api/v1/nodes?limit=2",
         {OK, .body = LIST("10", "",
                           ITEM("a", "1", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"))}},
        {"GET /api/v1/nodes?limit=2", {OK, .body = LIST("10", "", ITEM("a", "1", "x"))}},
        {WATCH "10&", {HELD}},
    };
    struct recorder rec;
    recorder_begin(&rec, steps, WEFT_ARRAY_LEN(steps));
    struct weft_kube_reflector_options options = recorder_options(&rec);
    options.item_max = 128;
    recorder_follow(&rec, &options, 5);
    recorder_end(&rec, "list\nerror -27 \nlist\n+ a 1 x\nsynced\n");
}

/* ---- refused ---- */

static void test_retry_after(void)
{
    static const struct fake_step steps[] = {
        {"GET /api/v1/nodes?limit=2",
         {.status = 429,
          .headers = "Retry-After: 1\r\n",
          .body = FAILURE("429", "TooManyRequests")}},
        {"GET /api/v1/nodes?limit=2", {OK, .body = LIST("10", "", "")}},
        {WATCH "10&", {HELD}},
    };
    struct recorder rec;
    recorder_begin(&rec, steps, WEFT_ARRAY_LEN(steps));
    const struct weft_kube_reflector_options options = recorder_options(&rec);
    const int64_t start = weft_clock_monotonic(weft_clock_system());
    recorder_follow(&rec, &options, 3);
    CHECK(weft_clock_monotonic(weft_clock_system()) - start >= WEFT_NS_PER_S);
    CHECK(rec.last_retry_ns >= WEFT_NS_PER_S && rec.last_retry_ns <= 1100 * WEFT_NS_PER_MS);
    recorder_end(&rec, "error -11 GET /api/v1/nodes: 429 TooManyRequests: m\nlist\nsynced\n");
}

static void test_missing_resource(void)
{
    static const struct fake_step steps[] = {
        {"GET /api/v1/nodes?limit=2",
         {.status = 404, .body = "404 page not found", .type = "text/plain"}},
        {"GET /api/v1/nodes?limit=2", {OK, .body = LIST("10", "", ITEM("a", "1", "x"))}},
        {WATCH "10&", {.status = 404, .body = FAILURE("404", "NotFound")}}, /* and gone again */
        {"GET /api/v1/nodes?limit=2", {OK, .body = LIST("12", "", "")}},
        {WATCH "12&", {HELD}},
    };
    struct recorder rec;
    recorder_begin(&rec, steps, WEFT_ARRAY_LEN(steps));
    const struct weft_kube_reflector_options options = recorder_options(&rec);
    recorder_follow(&rec, &options, 7);
    CHECK_INT(rec.last_retry_ns, options.missing_retry_ns);
    recorder_end(&rec, "error -2 GET /api/v1/nodes: 404 404 page not found\nlist\n+ a 1 x\nsynced\n"
                       "error -2 GET /api/v1/nodes: 404 NotFound: m\nlist\nsynced\n");
}

/* A server that closes each watch at once is not asked in a circle. */
static void test_short_watches(void)
{
    struct fake_step steps[64] = {{"GET /api/v1/nodes?limit=2", {OK, .body = LIST("10", "", "")}}};
    for (size_t i = 1; i < WEFT_ARRAY_LEN(steps); i++) {
        steps[i] = (struct fake_step){WATCH "10&", {OK, .stream = true, .body = ""}};
    }
    struct recorder rec;
    recorder_begin(&rec, steps, WEFT_ARRAY_LEN(steps));
    const struct weft_kube_reflector_options options = recorder_options(&rec);
    CHECK_INT(weft_kube_reflector_new(rec.rig.client, &options, &rec.reflector, NULL), 0);
    bool never = false;
    (void)weft_loop_run_until(rec.rig.loop, &never, 300 * WEFT_NS_PER_MS);
    /* 1-2, 2-4, 4-8, 8-16, 16-32 and then 20-40 ms apart: at most 5 + 300 / 20 watches. The lower
     * bound shows that it goes on, on a slow machine too. */
    const size_t asked = fake_script_seen(&rec.script, NULL);
    CHECK(asked >= 4 && asked <= 21);
    CHECK(rec.last_retry_ns <= 40 * WEFT_NS_PER_MS);
    weft_kube_reflector_free(weft_steal(&rec.reflector));
    char *log = weft_buf_steal(&rec.log);
    CHECK_CONTAINS(log, "list\nsynced\nerror -5 \nerror -5 \n");
    weft_free(log);
    recorder_end(&rec, "");
}

static void test_server_restart(void)
{
    static const struct fake_step steps[] = {
        {"GET /api/v1/nodes?limit=2", {OK, .body = LIST("10", "", "")}},
        {WATCH "10&", {HELD, .body = EVENT("ADDED", ITEM("a", "11", "x"))}},
        {WATCH "11&", {HELD, .body = EVENT("ADDED", ITEM("b", "12", "x"))}},
    };
    struct recorder rec;
    recorder_begin(&rec, steps, WEFT_ARRAY_LEN(steps));
    const struct weft_kube_reflector_options options = recorder_options(&rec);
    recorder_follow(&rec, &options, 3);
    const int port = fake_kube_port(rec.rig.fake);
    fake_kube_stop(rec.rig.fake);
    rec.want = 6; /* the cut, and at least two refused connections */
    rec.done = false;
    CHECK(weft_loop_run_until(rec.rig.loop, &rec.done, LONG_ENOUGH));
    rec.rig.fake = fake_kube_start(fake_server_context(rec.rig.ca, "IP:127.0.0.1", NULL), port,
                                   fake_script_answer, &rec.script);
    while (strstr(weft_buf_text(&rec.log), "+ b") == NULL && rec.lines < 1000) {
        rec.want = rec.lines + 1;
        rec.done = false;
        CHECK(weft_loop_run_until(rec.rig.loop, &rec.done, LONG_ENOUGH));
    }
    /* it went on from 11 without a new list: the script has none */
    weft_kube_reflector_free(weft_steal(&rec.reflector));
    char *log = weft_buf_steal(&rec.log);
    CHECK_CONTAINS(log, "list\nsynced\n+ a 11 x\nerror ");
    CHECK_CONTAINS(log, "error -111 \n");
    CHECK_CONTAINS(log, "+ b 12 x\n");
    weft_free(log);
    recorder_end(&rec, "");
}

/* ---- from inside the callbacks ---- */

static const struct fake_step twice[] = {
    {"GET /api/v1/nodes?limit=2",
     {OK, .body = LIST("10", "", ITEM("a", "1", "x") "," ITEM("b", "2", "x"))}},
    {"GET",
     {HELD, .body = EVENT("ADDED", ITEM("c", "11", "x"))
                EVENT("ERROR", FAILURE("500", "InternalError"))}},
    {"GET", {HELD}},
};

static void test_free_inside(void)
{
    /* list, a, b, synced, c, error: freed in each of them, nothing comes after */
    static const char *const lines[] = {
        "list\n",   "+ a 1 x\n",  "+ b 2 x\n",
        "synced\n", "+ c 11 x\n", "error -5 /api/v1/nodes: 500 InternalError: m\n"};
    struct weft_buf expected;
    weft_buf_init(&expected, 4096);
    for (size_t at = 1; at <= WEFT_ARRAY_LEN(lines); at++) {
        (void)weft_buf_puts(&expected, lines[at - 1]);
        struct recorder rec;
        recorder_begin(&rec, twice, WEFT_ARRAY_LEN(twice));
        rec.action = FREE_IT;
        rec.at_line = at;
        const struct weft_kube_reflector_options options = recorder_options(&rec);
        recorder_follow(&rec, &options, at);
        bool never = false;
        (void)weft_loop_run_until(rec.rig.loop, &never, 20 * WEFT_NS_PER_MS);
        recorder_end(&rec, weft_buf_text(&expected));
    }
    weft_buf_done(&expected);
}

static void test_relist_inside(void)
{
    for (size_t at = 1; at <= 6; at++) {
        struct fake_step steps[5] = {twice[0], twice[1], twice[0], {"GET", {HELD}}};
        const size_t before = at <= 4 ? 1 : 2; /* requests before the second list */
        steps[before] = twice[0];
        steps[before + 1] = (struct fake_step){WATCH "10&", {HELD}};
        struct recorder rec;
        recorder_begin(&rec, steps, before + 2);
        rec.action = RELIST;
        rec.at_line = at;
        const struct weft_kube_reflector_options options = recorder_options(&rec);
        recorder_follow(&rec, &options, at + 4);
        const char *again = strstr(weft_buf_text(&rec.log) + 1, "list\n");
        CHECK_STR(again, "list\n+ a 1 x\n+ b 2 x\nsynced\n");
        weft_kube_reflector_free(weft_steal(&rec.reflector));
        weft_buf_reset(&rec.log);
        recorder_end(&rec, "");
    }
}

/* ---- back-off ---- */

static void test_backoff(void)
{
    struct weft_kube_backoff b;
    weft_kube_backoff_init(&b, 100, 1000, 7);
    const int64_t most[] = {100, 200, 400, 800, 1000, 1000};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(most); i++) {
        const int64_t wait = weft_kube_backoff_next(&b, 0);
        CHECK(wait >= most[i] / 2 && wait <= most[i]);
    }
    for (int i = 0; i < 5000; i++) {
        CHECK(weft_kube_backoff_next(&b, 0) <= 1000);
    }
    const int64_t asked = weft_kube_backoff_next(&b, 5000);
    CHECK(asked >= 5000 && asked <= 5500);
    weft_kube_backoff_reset(&b);
    CHECK(weft_kube_backoff_next(&b, 0) <= 100);
    /* the same seed, the same waits; another seed, others */
    struct weft_kube_backoff c;
    struct weft_kube_backoff d;
    weft_kube_backoff_init(&b, 1 << 20, 1 << 30, 7);
    weft_kube_backoff_init(&c, 1 << 20, 1 << 30, 7);
    weft_kube_backoff_init(&d, 1 << 20, 1 << 30, 8);
    const int64_t first = weft_kube_backoff_next(&b, 0);
    CHECK_INT(weft_kube_backoff_next(&c, 0), first);
    CHECK(weft_kube_backoff_next(&d, 0) != first);
}

WEFT_SUITE(kube_reflector, {"pages_and_events", test_pages_and_events},
           {"documents_and_selectors", test_documents_and_selectors}, {"protobuf", test_protobuf},
           {"expired_page", test_expired_page}, {"expired_watch", test_expired_watch},
           {"other_error_event", test_other_error_event}, {"cut_watch", test_cut_watch},
           {"cut_page", test_cut_page}, {"silent_watch", test_silent_watch},
           {"garbage", test_garbage}, {"big_item", test_big_item},
           {"retry_after", test_retry_after}, {"missing_resource", test_missing_resource},
           {"short_watches", test_short_watches}, {"server_restart", test_server_restart},
           {"free_inside", test_free_inside}, {"relist_inside", test_relist_inside},
           {"backoff", test_backoff})
