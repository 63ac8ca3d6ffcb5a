/* SPDX-License-Identifier: Apache-2.0 */
/* Streamed lists, in both encodings from one description, what replaces them where the server
 * cannot, and that no failure of any request makes the reflector turn in a circle. */
#include <errno.h>
#include <stdio.h>

#include "pkg/base/clock.h"
#include "pkg/json/json.h"
#include "pkg/kube/client.h"
#include "pkg/kube/reflector.h"
#include "pkg/loop/loop.h"
#include "tests/unit/fake_pb.h"
#include "tests/unit/kube_recorder.h"

#define STREAM                                                                                     \
    "GET /api/v1/nodes?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&"                \
    "resourceVersionMatch=NotOlderThan&timeoutSeconds="
#define PAGE "GET /api/v1/nodes?limit=2"
#define END_OF_LIST(version)                                                                       \
    EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"" version                              \
                      "\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}")

static struct weft_kube_reflector_options stream_options(struct recorder *rec)
{
    struct weft_kube_reflector_options options = recorder_options(rec);
    options.pages = false;
    return options;
}

#define RUN_STREAM(steps, want, expected)                                                          \
    do {                                                                                           \
        struct recorder rec_;                                                                      \
        recorder_begin(&rec_, (steps), WEFT_ARRAY_LEN(steps));                                     \
        const struct weft_kube_reflector_options options_ = stream_options(&rec_);                 \
        recorder_follow(&rec_, &options_, (want));                                                 \
        recorder_end(&rec_, (expected));                                                           \
    } while (0)

/* ---- one description, two encodings ---- */

struct event {
    const char *type, *name, *version, *label; /* BOOKMARK: label "end" ends the list */
};

static void put_json(struct weft_buf *out, const struct event *e)
{
    struct weft_json_writer w;
    weft_json_writer_init(&w, out, 0);
    weft_json_open(&w, '{');
    weft_json_kv_string(&w, "type", e->type);
    weft_json_put_key(&w, "object");
    weft_json_open(&w, '{');
    weft_json_put_key(&w, "metadata");
    weft_json_open(&w, '{');
    if (e->name[0] != '\0') {
        weft_json_kv_string(&w, "name", e->name);
        weft_json_put_key(&w, "labels");
        weft_json_open(&w, '{');
        weft_json_kv_string(&w, "l", e->label);
        weft_json_close(&w, '}');
    } else if (e->label != NULL) {
        weft_json_put_key(&w, "annotations");
        weft_json_open(&w, '{');
        weft_json_kv_string(&w, "k8s.io/initial-events-end", "true");
        weft_json_close(&w, '}');
    }
    weft_json_kv_string(&w, "resourceVersion", e->version);
    weft_json_close(&w, '}');
    weft_json_close(&w, '}');
    weft_json_close(&w, '}');
    (void)weft_buf_putc(out, '\n');
}

static void put_protobuf(struct weft_buf *out, const struct event *e)
{
    struct weft_buf object;
    weft_buf_init(&object, 4096);
    if (e->name[0] == '\0' && e->label != NULL) {
        fake_pb_end_mark(&object, e->version);
    } else {
        fake_pb_object(&object, e->name, e->version, e->label);
    }
    fake_pb_event(out, e->type, &object);
    weft_buf_done(&object);
}

static const struct event initial[] = {
    {"ADDED", "a", "7", "x"}, {"BOOKMARK", "", "9", NULL}, /* not the end */
    {"ADDED", "b", "3", "x"}, {"MODIFIED", "a", "8", "y"},   {"DELETED", "b", "9", "x"},
    {"ADDED", "c", "2", "x"}, {"BOOKMARK", "", "10", "end"}, {"MODIFIED", "a", "11", "z"},
};

static void stream_in(const char *type, size_t piece,
                      void (*put)(struct weft_buf *out, const struct event *e))
{
    static const struct event later = {"ADDED", "d", "12", "x"};
    struct weft_buf first;
    struct weft_buf second;
    weft_buf_init(&first, 1U << 16);
    weft_buf_init(&second, 4096);
    for (size_t i = 0; i < WEFT_ARRAY_LEN(initial); i++) {
        put(&first, &initial[i]);
    }
    put(&second, &later);
    const struct fake_step steps[] = {
        {STREAM,
         {OK, .type = type, .stream = true, .body = first.data, .body_len = first.len,
          .piece = piece}},
        {WATCH "11&", {HELD, .type = type, .body = second.data, .body_len = second.len}},
    };
    RUN_STREAM(steps, 9,
               "list\n+ a 7 x\n+ b 3 x\n~ a 8 y\n- b 9 x\n+ c 2 x\nsynced\n~ a 11 z\n+ d 12 x\n");
    weft_buf_done(&first);
    weft_buf_done(&second);
}

static void test_both_encodings(void)
{
    for (size_t piece = 0; piece < 3; piece++) { /* in one, byte by byte, in twos */
        stream_in("application/json", piece, put_json);
        stream_in("application/vnd.kubernetes.protobuf;stream=watch", piece, put_protobuf);
    }
}

/* ---- servers that cannot ---- */

static void test_refused(void)
{
    /* found out once, without a wait or a word: the list after the 410 asks for pages straight */
    static const struct {
        int status;
        const char *body;
    } refusals[] = {{422, FAILURE("422", "Invalid")}, {400, FAILURE("400", "BadRequest")}};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(refusals); i++) {
        const struct fake_step steps[] = {
            {STREAM, {.status = refusals[i].status, .body = refusals[i].body}},
            {PAGE, {OK, .body = LIST("10", "", ITEM("a", "1", "x"))}},
            {WATCH "10&", {OK, .stream = true, .body = EVENT("ERROR", FAILURE("410", "Expired"))}},
            {PAGE, {OK, .body = LIST("20", "", ITEM("a", "1", "x"))}},
            {WATCH "20&", {HELD}},
        };
        RUN_STREAM(steps, 0,
                   "list\n+ a 1 x\nsynced\nerror -116 /api/v1/nodes: 410 Expired: m\n"
                   "list\n+ a 1 x\nsynced\n");
    }
}

static void test_broken(void)
{
    /* cut before its end: nothing of it can be gone on from; the second time pages it is */
    static const struct fake_step steps[] = {
        {STREAM,
         {OK, .stream = true, .end = FAKE_CUT, .body = EVENT("ADDED", ITEM("a", "7", "x"))}},
        {STREAM, {OK, .stream = true, .body = EVENT("ADDED", ITEM("b", "8", "x"))}}, /* just ends */
        {PAGE, {OK, .body = LIST("10", "", ITEM("a", "7", "x"))}},
        {WATCH "10&", {HELD}},
    };
    RUN_STREAM(steps, 0,
               "list\n+ a 7 x\nerror -5 \nlist\n+ b 8 x\nerror -5 \nlist\n+ a 7 x\nsynced\n");
}

static void test_broken_once(void)
{
    /* one failure, then a good one: it is streams again when the version has run out */
    static const struct fake_step steps[] = {
        {STREAM, {.status = 503, .body = FAILURE("503", "ServiceUnavailable")}},
        {STREAM,
         {OK, .stream = true, .body = END_OF_LIST("10") EVENT("ERROR", FAILURE("410", "Gone"))}},
        {STREAM, {.status = 500, .body = FAILURE("500", "InternalError")}},
        {STREAM, {HELD, .body = END_OF_LIST("12")}},
    };
    RUN_STREAM(steps, 7,
               "error -5 GET /api/v1/nodes: 503 ServiceUnavailable: m\nlist\nsynced\n"
               "error -116 /api/v1/nodes: 410 Gone: m\n"
               "error -5 GET /api/v1/nodes: 500 InternalError: m\nlist\nsynced\n");
}

static void test_busy_server(void)
{
    /* told to come later, in trouble, or not allowed in: that is not about streams */
    static const struct fake_step steps[] = {
        {STREAM, {.status = 503, .body = FAILURE("503", "ServiceUnavailable")}},
        {STREAM, {.status = 504, .body = FAILURE("504", "Timeout")}},
        {STREAM, {.status = 500, .body = FAILURE("500", "InternalError")}},
        {STREAM, {.status = 429, .body = FAILURE("429", "TooManyRequests")}},
        {STREAM, {.status = 403, .body = FAILURE("403", "Forbidden")}},
        {STREAM, {.status = 429, .body = FAILURE("429", "TooManyRequests")}},
        {STREAM, {.status = 401, .body = FAILURE("401", "Unauthorized")}},
        {STREAM, {HELD, .body = END_OF_LIST("12")}},
    };
    RUN_STREAM(steps, 9,
               "error -5 GET /api/v1/nodes: 503 ServiceUnavailable: m\n"
               "error -110 GET /api/v1/nodes: 504 Timeout: m\n"
               "error -5 GET /api/v1/nodes: 500 InternalError: m\n"
               "error -11 GET /api/v1/nodes: 429 TooManyRequests: m\n"
               "error -13 GET /api/v1/nodes: 403 Forbidden: m\n"
               "error -11 GET /api/v1/nodes: 429 TooManyRequests: m\n"
               "error -13 GET /api/v1/nodes: 401 Unauthorized: m\nlist\nsynced\n");
}

static void test_silent(void)
{
    static const struct fake_step steps[] = {
        {STREAM, {HELD, .body = EVENT("ADDED", ITEM("a", "7", "x"))}},
        {STREAM, {.end = FAKE_HOLD}},
        {PAGE, {OK, .body = LIST("10", "", "")}},
        {WATCH "10&", {HELD, .body = EVENT("ADDED", ITEM("a", "13", "x"))}},
    };
    struct recorder rec;
    recorder_begin(&rec, steps, WEFT_ARRAY_LEN(steps));
    struct weft_kube_reflector_options options = stream_options(&rec);
    options.idle_ns = 300 * WEFT_NS_PER_MS;
    recorder_follow(&rec, &options, 7);
    recorder_end(&rec, "list\n+ a 7 x\nerror -110 \nerror -110 \nlist\nsynced\n+ a 13 x\n");
}

/* A server that takes the request for a plain watch: events, but never the mark. */
static void test_without_end(void)
{
    static const struct fake_step steps[] = {
        {STREAM, {HELD, .body = EVENT("ADDED", ITEM("a", "7", "x"))}},
        {STREAM, {HELD, .body = EVENT("ADDED", ITEM("a", "7", "x"))}},
        {PAGE, {.status = 404, .body = ""}},
    };
    struct recorder rec;
    recorder_begin(&rec, steps, WEFT_ARRAY_LEN(steps));
    struct weft_kube_reflector_options options = stream_options(&rec);
    options.page_timeout_ns = 1; /* ten times that have always passed */
    recorder_follow(&rec, &options, 6);
    recorder_end(&rec, "list\n+ a 7 x\nerror -110 \nlist\n+ a 7 x\nerror -110 \n");
}

static void test_garbage(void)
{
    static const struct fake_step steps[] = {
        {STREAM, {OK, .stream = true, .body = EVENT("ADDED", "{\"metadata\":{\"name\":\"a\"}}")}},
        {STREAM, {OK, .type = "text/html", .body = "<html>"}},
        {PAGE, {OK, .body = LIST("10", "", "")}},
        {WATCH "10&", {HELD}},
    };
    RUN_STREAM(steps, 0, "list\nerror -74 \nerror -71 \nlist\nsynced\n");
}

/* Nobody there for a while: the first server that answers is asked for a stream. */
static void test_nobody_there(void)
{
    static const struct fake_step steps[] = {{STREAM, {HELD, .body = END_OF_LIST("12")}}};
    struct recorder rec;
    recorder_begin(&rec, steps, WEFT_ARRAY_LEN(steps));
    const int port = fake_kube_port(rec.rig.fake);
    fake_kube_stop(rec.rig.fake);
    const struct weft_kube_reflector_options options = stream_options(&rec);
    recorder_follow(&rec, &options, 4);
    rec.rig.fake = fake_kube_start(fake_server_context(rec.rig.ca, "IP:127.0.0.1", NULL), port,
                                   fake_script_answer, &rec.script);
    CHECK(fake_script_wait(&rec.script, rec.rig.loop, LONG_ENOUGH));
    weft_kube_reflector_free(weft_steal(&rec.reflector));
    char *log = weft_buf_steal(&rec.log);
    CHECK_CONTAINS(log, "error -111 \nerror -111 \nerror -111 \nerror -111 \n");
    weft_free(log);
    recorder_end(&rec, "");
}

/* ---- from inside the callbacks ---- */

#define WHOLE                                                                                      \
    EVENT("ADDED", ITEM("a", "1", "x"))                                                            \
    EVENT("ADDED", ITEM("b", "2", "x")) END_OF_LIST("10") EVENT("ADDED", ITEM("c", "11", "x"))

static void test_free_inside(void)
{
    static const char *const lines[] = {"list\n", "+ a 1 x\n", "+ b 2 x\n", "synced\n",
                                        "+ c 11 x\n"};
    static const struct fake_step steps[] = {{STREAM, {HELD, .body = WHOLE}}};
    struct weft_buf expected;
    weft_buf_init(&expected, 4096);
    for (size_t at = 1; at <= WEFT_ARRAY_LEN(lines); at++) {
        (void)weft_buf_puts(&expected, lines[at - 1]);
        struct recorder rec;
        recorder_begin(&rec, steps, WEFT_ARRAY_LEN(steps));
        rec.action = FREE_IT;
        rec.at_line = at;
        const struct weft_kube_reflector_options options = stream_options(&rec);
        recorder_follow(&rec, &options, at);
        const bool never = false;
        (void)weft_loop_run_until(rec.rig.loop, &never, 20 * WEFT_NS_PER_MS);
        recorder_end(&rec, weft_buf_text(&expected));
    }
    weft_buf_done(&expected);
}

static void test_relist_inside(void)
{
    static const struct fake_step steps[] = {{STREAM, {HELD, .body = WHOLE}},
                                             {STREAM, {HELD, .body = WHOLE}}};
    for (size_t at = 1; at <= 5; at++) {
        struct recorder rec;
        recorder_begin(&rec, steps, WEFT_ARRAY_LEN(steps));
        rec.action = RELIST;
        rec.at_line = at;
        const struct weft_kube_reflector_options options = stream_options(&rec);
        recorder_follow(&rec, &options, at + 5);
        const char *again = strstr(weft_buf_text(&rec.log) + 1, "list\n");
        CHECK_STR(again, "list\n+ a 1 x\n+ b 2 x\nsynced\n+ c 11 x\n");
        weft_kube_reflector_free(weft_steal(&rec.reflector));
        weft_buf_reset(&rec.log);
        recorder_end(&rec, "");
    }
}

/* ---- never in a circle ---- */

/* What a server does with each of the three requests, always. */
struct manners {
    const char *name;
    struct fake_reply stream, page, watch;
    _Atomic unsigned asked;
};

static void answer(void *data, const struct fake_request *request, struct fake_reply *reply)
{
    struct manners *m = data;
    m->asked++;
    *reply = strstr(request->target, "&resourceVersion=") != NULL   ? m->watch
             : strstr(request->target, "sendInitialEvents") != NULL ? m->stream
                                                                    : m->page;
}

#define NO_STREAM .stream = {.status = 422, .body = FAILURE("422", "Invalid")}
#define A_PAGE .page = {OK, .body = LIST("10", "", ITEM("a", "1", "x"))}

static struct manners bad_manners[] = {
    {.name = "500", .stream = {.status = 500, .body = ""}, .page = {.status = 500, .body = ""}},
    {.name = "429", .stream = {.status = 429, .body = ""}, .page = {.status = 429, .body = ""}},
    {.name = "401", .stream = {.status = 401, .body = ""}, .page = {.status = 401, .body = ""}},
    {.name = "403", .stream = {.status = 403, .body = ""}, .page = {.status = 403, .body = ""}},
    {.name = "404", .stream = {.status = 404, .body = ""}, .page = {.status = 404, .body = ""}},
    {.name = "refuses everything",
     .stream = {.status = 422, .body = ""},
     .page = {.status = 422, .body = ""}},
    {.name = "cuts after the head",
     .stream = {OK, .stream = true, .end = FAKE_CUT, .body = ""},
     .page = {OK, .stream = true, .end = FAKE_CUT, .body = ""}},
    {.name = "cuts streams",
     .stream = {OK, .stream = true, .body = WHOLE, .end = FAKE_CUT},
     A_PAGE,
     .watch = {OK, .stream = true, .end = FAKE_CUT, .body = ""}},
    {.name = "ends streams early",
     .stream = {OK, .stream = true, .body = ""},
     A_PAGE,
     .watch = {OK, .stream = true, .body = ""}},
    {.name = "ends whole streams",
     .stream = {OK, .stream = true, .body = WHOLE},
     A_PAGE,
     .watch = {OK, .stream = true, .body = ""}},
    {.name = "ends each watch with a bookmark",
     NO_STREAM,
     A_PAGE,
     .watch = {OK, .stream = true, .body = BOOKMARK("11")}},
    {.name = "ends each watch with an event",
     NO_STREAM,
     A_PAGE,
     .watch = {OK, .stream = true, .body = EVENT("ADDED", ITEM("a", "11", "x"))}},
    {.name = "410 for each watch", NO_STREAM, A_PAGE, .watch = {.status = 410, .body = ""}},
    {.name = "410 in each watch",
     NO_STREAM,
     A_PAGE,
     .watch = {OK, .stream = true, .body = EVENT("ERROR", FAILURE("410", "Expired"))}},
    {.name = "an event and 410 in each watch",
     NO_STREAM,
     A_PAGE,
     .watch = {OK, .stream = true,
               .body =
                   EVENT("ADDED", ITEM("a", "11", "x")) EVENT("ERROR", FAILURE("410", "Gone"))}},
    {.name = "410 in each streamed list",
     .stream = {OK, .stream = true,
                .body = END_OF_LIST("9") EVENT("ERROR", FAILURE("410", "Gone"))},
     A_PAGE,
     .watch = {.status = 410, .body = ""}},
    {.name = "garbage",
     .stream = {OK, .stream = true, .body = "[]\n"},
     .page = {OK, .body = "[]"},
     .watch = {OK, .stream = true, .body = "[]\n"}},
    {.name = "a half page", NO_STREAM, .page = {OK, .body = LIST("10", "", ""), .end = FAKE_CUT}},
};

/* Waits are 2 to 40 ms here and 0.5 to 30 s by default. In so many ms there is room for 1-2, 2-4,
 * 4-8, 8-16, 16-32 and then 20-40 ms: 5 + ms / 20 waits. A round may be a list and a watch, and the
 * first try of a stream comes on top. Where each watch brings something, the wait stays 1 to 2 ms:
 * at most one a millisecond. */
static void test_no_circle(void)
{
    for (size_t i = 0; i < WEFT_ARRAY_LEN(bad_manners); i++) {
        struct manners *m = &bad_manners[i];
        struct recorder rec = {0};
        weft_buf_init(&rec.log, 1U << 20);
        fake_rig_open(&rec.rig, answer, m);
        const struct weft_kube_reflector_options options = stream_options(&rec);
        CHECK_INT(weft_kube_reflector_new(rec.rig.client, &options, &rec.reflector, NULL), 0);
        const int64_t start = weft_clock_monotonic(weft_clock_system());
        int64_t ms = 0;
        while (ms < 300 || (m->asked < 4 && ms < 10000)) { /* on a slow machine for longer */
            const bool never = false;
            (void)weft_loop_run_until(rec.rig.loop, &never, 20 * WEFT_NS_PER_MS);
            ms = (weft_clock_monotonic(weft_clock_system()) - start) / WEFT_NS_PER_MS;
        }
        const bool brings = strncmp(m->name, "ends each watch", 15) == 0;
        const int64_t most = brings ? ms + 3 : 2 * (5 + ms / 20) + 2;
        CHECK(m->asked >= 4 && m->asked <= most);
        if (m->asked < 4 || m->asked > most) {
            (void)fprintf(stderr, "%s: %u requests in %lld ms, at most %lld\n", m->name, m->asked,
                          (long long)ms, (long long)most);
        }
        weft_kube_reflector_free(rec.reflector);
        fake_rig_close(&rec.rig);
        weft_buf_done(&rec.log);
    }
}

WEFT_SUITE(kube_stream, {"both_encodings", test_both_encodings}, {"refused", test_refused},
           {"broken", test_broken}, {"broken_once", test_broken_once},
           {"busy_server", test_busy_server}, {"silent", test_silent},
           {"without_end", test_without_end}, {"nobody_there", test_nobody_there},
           {"garbage", test_garbage}, {"free_inside", test_free_inside},
           {"relist_inside", test_relist_inside}, {"no_circle", test_no_circle})
