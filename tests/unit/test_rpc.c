/* SPDX-License-Identifier: Apache-2.0 */
/* Server and client of pkg/rpc against each other, on one loop: answers, streams, limits, peers
 * that go away or never answer, and how many threads it all takes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/loop/loop.h"
#include "pkg/rpc/quiet.h"
#include "pkg/rpc/rpc.h"
#include "tests/unit/unit.h"

#define LONG_ENOUGH (20 * WEFT_NS_PER_S)

struct bench {
    struct weft_loop *loop;
    struct weft_rpc *rpc;
    struct weft_rpc_server *server;
    char path[128];
    struct weft_rpc_call *stream; /* the last /t/Stream call, until closed */
    struct weft_rpc_call *hanging;
    int closed;
    bool was_closed;
};

struct answer {
    bool done;
    int code;
    size_t len;
    char text[64], message[128];
    int messages;
    bool got_message;
};

static void copy(char *to, size_t room, const void *bytes, size_t len)
{
    const size_t n = len < room - 1 ? len : room - 1;
    memcpy(to, bytes, n);
    to[n] = '\0';
}

static void on_answer(void *data, const struct weft_rpc_result *result)
{
    struct answer *a = data;
    CHECK(!a->done);
    a->done = true;
    a->code = result->code;
    a->len = result->len;
    copy(a->message, sizeof(a->message), result->message, strlen(result->message));
    if (result->bytes != NULL) {
        copy(a->text, sizeof(a->text), result->bytes, result->len);
    }
}

static void on_message(void *data, const void *bytes, size_t len)
{
    struct answer *a = data;
    a->messages++;
    a->got_message = true;
    copy(a->text, sizeof(a->text), bytes, len);
}

static void echo(void *data, struct weft_rpc_call *call, const void *request, size_t len)
{
    (void)data;
    weft_rpc_call_reply(call, request, len);
}

static void refuse(void *data, struct weft_rpc_call *call, const void *request, size_t len)
{
    (void)data;
    (void)request;
    (void)len;
    weft_rpc_call_finish(call, WEFT_RPC_INVALID_ARGUMENT, "no such device: GPU-9");
}

static void hang(void *data, struct weft_rpc_call *call, const void *request, size_t len)
{
    (void)request;
    (void)len;
    struct bench *b = data;
    b->hanging = call;
}

static void open_stream(void *data, struct weft_rpc_call *call, const void *request, size_t len)
{
    (void)request;
    (void)len;
    struct bench *b = data;
    b->stream = call;
    weft_rpc_call_update(call, "one", 3);
}

static void on_closed(void *data, struct weft_rpc_call *call)
{
    struct bench *b = data;
    CHECK(call == b->stream || call == b->hanging);
    b->closed++;
    b->was_closed = true;
}

static const struct weft_rpc_method methods[] = {
    {"/t/Echo", echo}, {"/t/Refuse", refuse}, {"/t/Hang", hang}, {"/t/Stream", open_stream}};

static int serve(struct bench *b, const char *path, struct weft_error *err)
{
    return weft_rpc_server_new(b->rpc,
                               &(struct weft_rpc_server_options){.path = path,
                                                                 .methods = methods,
                                                                 .method_count = 4,
                                                                 .receive_max = 1U << 20,
                                                                 .closed = on_closed,
                                                                 .data = b},
                               &b->server, err);
}

/* The last test's gRPC may still be ending: weft_rpc_free. */
static void start(struct weft_loop *loop, struct weft_rpc **ret_rpc)
{
    const bool never = false;
    int rc = weft_rpc_new(loop, ret_rpc, NULL);
    for (int i = 0; rc == -EBUSY && i < 3000; i++) {
        (void)weft_loop_run_until(loop, &never, 10 * WEFT_NS_PER_MS);
        rc = weft_rpc_new(loop, ret_rpc, NULL);
    }
    CHECK_INT(rc, 0);
}

static void bench_up(struct bench *b)
{
    *b = (struct bench){0};
    (void)snprintf(b->path, sizeof(b->path), "%s/rpc.sock", weft_test_dir());
    CHECK_INT(weft_loop_new(&b->loop, NULL), 0);
    start(b->loop, &b->rpc);
    CHECK_INT(serve(b, b->path, NULL), 0);
}

static void bench_down(struct bench *b)
{
    weft_rpc_server_free(b->server);
    (void)weft_rpc_free(b->rpc); /* false under load: see start */
    weft_loop_free(b->loop);
}

static struct answer ask_path(struct bench *b, const char *path, const char *method,
                              const char *text, size_t len, int64_t timeout_ns)
{
    struct answer a = {0};
    struct weft_rpc_channel *channel = NULL;
    CHECK_INT(weft_rpc_channel_new(b->rpc, path, 0, &channel, NULL), 0);
    struct weft_rpc_request *request = NULL;
    CHECK_INT(weft_rpc_request_new(channel,
                                   &(struct weft_rpc_request_options){.method = method,
                                                                      .bytes = text,
                                                                      .len = len,
                                                                      .timeout_ns = timeout_ns,
                                                                      .done = on_answer,
                                                                      .data = &a},
                                   &request, NULL),
              0);
    weft_rpc_channel_free(channel); /* the request goes on */
    CHECK(weft_loop_run_until(b->loop, &a.done, LONG_ENOUGH));
    weft_rpc_request_free(request);
    return a;
}

static struct answer ask(struct bench *b, const char *method, const char *text)
{
    return ask_path(b, b->path, method, text, strlen(text), 10 * WEFT_NS_PER_S);
}

static void unary_calls_are_answered(void)
{
    struct bench b;
    bench_up(&b);
    struct answer a = ask(&b, "/t/Echo", "hello");
    CHECK_INT(a.code, WEFT_RPC_OK);
    CHECK_STR(a.text, "hello");
    a = ask(&b, "/t/Echo", ""); /* an empty message is a message */
    CHECK_INT(a.code, WEFT_RPC_OK);
    CHECK_INT(a.len, 0);
    a = ask(&b, "/t/Refuse", "x");
    CHECK_INT(a.code, WEFT_RPC_INVALID_ARGUMENT);
    CHECK_STR(a.message, "no such device: GPU-9");
    struct weft_error err = {0};
    CHECK_INT(weft_rpc_result_error(&(struct weft_rpc_result){.code = a.code, .message = a.message},
                                    &err),
              -EIO);
    CHECK_CONTAINS(err.message, "no such device: GPU-9 (gRPC status 3)");
    CHECK_INT(err.domain_code, WEFT_RPC_INVALID_ARGUMENT);
    bench_down(&b);
}

static void unknown_methods_are_unimplemented(void)
{
    struct bench b;
    bench_up(&b);
    for (int i = 0; i < 3; i++) { /* the slot is armed again each time */
        const struct answer a = ask(&b, "/t/Nothing", "x");
        CHECK_INT(a.code, WEFT_RPC_UNIMPLEMENTED);
    }
    bench_down(&b);
}

static void too_big_a_request_is_refused(void)
{
    struct bench b;
    bench_up(&b);
    const size_t len = 2U << 20;
    weft_autofree char *big = weft_calloc(1, len);
    struct answer a = ask_path(&b, b.path, "/t/Echo", big, len, 10 * WEFT_NS_PER_S);
    CHECK_INT(a.code, WEFT_RPC_RESOURCE_EXHAUSTED);
    a = ask_path(&b, b.path, "/t/Echo", big, 1U << 20, 10 * WEFT_NS_PER_S);
    CHECK_INT(a.code, WEFT_RPC_OK);
    CHECK_INT(a.len, 1U << 20);
    bench_down(&b);
}

static void time_limits_hold(void)
{
    struct bench b;
    bench_up(&b);
    const int64_t begin = weft_clock_monotonic(weft_clock_system());
    const struct answer a = ask_path(&b, b.path, "/t/Hang", "x", 1, 200 * WEFT_NS_PER_MS);
    const int64_t took = weft_clock_monotonic(weft_clock_system()) - begin;
    CHECK_INT(a.code, WEFT_RPC_DEADLINE_EXCEEDED);
    CHECK_STR(a.message, "no answer within 200 ms");
    CHECK(took >= 199 * WEFT_NS_PER_MS && took < 2 * WEFT_NS_PER_S);
    CHECK(weft_loop_run_until(b.loop, &b.was_closed, LONG_ENOUGH)); /* the server hears of it */
    CHECK_INT(b.closed, 1);
    bench_down(&b);
}

static void a_missing_server_is_unavailable_at_once(void)
{
    struct bench b;
    bench_up(&b);
    const int64_t begin = weft_clock_monotonic(weft_clock_system());
    const struct answer a =
        ask_path(&b, "/tmp/weft-no-such.sock", "/t/Echo", "x", 1, 10 * WEFT_NS_PER_S);
    CHECK_INT(a.code, WEFT_RPC_UNAVAILABLE);
    CHECK(weft_clock_monotonic(weft_clock_system()) - begin < 2 * WEFT_NS_PER_S);
    struct weft_error err = {0};
    CHECK_INT(weft_rpc_result_error(&(struct weft_rpc_result){.code = a.code, .message = a.message},
                                    &err),
              -ECONNREFUSED);
    CHECK(err.retryable);
    bench_down(&b);
}

/* A socket that accepts and never says a word, as of a stopped process. */
static void a_mute_server_does_not_hold_us(void)
{
    struct bench b;
    bench_up(&b);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%.90s.mute", b.path);
    weft_autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    CHECK_INT(listen(fd, 8), 0);
    const struct answer a = ask_path(&b, address.sun_path, "/t/Echo", "x", 1, 300 * WEFT_NS_PER_MS);
    CHECK_INT(a.code, WEFT_RPC_DEADLINE_EXCEEDED);
    bench_down(&b);
}

static struct weft_rpc_request *start_stream(struct bench *b, struct answer *a)
{
    struct weft_rpc_channel *channel = NULL;
    CHECK_INT(weft_rpc_channel_new(b->rpc, b->path, 0, &channel, NULL), 0);
    struct weft_rpc_request *request = NULL;
    CHECK_INT(weft_rpc_request_new(
                  channel,
                  &(struct weft_rpc_request_options){
                      .method = "/t/Stream", .message = on_message, .done = on_answer, .data = a},
                  &request, NULL),
              0);
    weft_rpc_channel_free(channel);
    CHECK(weft_loop_run_until(b->loop, &a->got_message, LONG_ENOUGH));
    return request;
}

static void streams_carry_the_latest_state_and_end(void)
{
    struct bench b;
    bench_up(&b);
    struct answer a = {0};
    struct weft_rpc_request *request = start_stream(&b, &a);
    CHECK_STR(a.text, "one");
    a.got_message = false;
    weft_rpc_call_update(b.stream, "two", 3);
    CHECK(weft_loop_run_until(b.loop, &a.got_message, LONG_ENOUGH));
    CHECK_STR(a.text, "two");
    for (int i = 0; i < 100; i++) { /* faster than they can be sent: the last one must arrive */
        weft_rpc_call_update(b.stream, i < 99 ? "old" : "new", 3);
    }
    weft_rpc_call_finish(b.stream, WEFT_RPC_UNAVAILABLE, "shutting down");
    CHECK(weft_loop_run_until(b.loop, &a.done, LONG_ENOUGH));
    CHECK_STR(a.text, "new");
    CHECK(a.messages < 102);
    CHECK_INT(a.code, WEFT_RPC_UNAVAILABLE);
    CHECK_STR(a.message, "shutting down");
    CHECK_INT(b.closed, 0); /* it was our own end */
    weft_rpc_request_free(request);
    bench_down(&b);
}

static void a_cancelled_stream_is_reported(void)
{
    struct bench b;
    bench_up(&b);
    struct answer a = {0};
    struct weft_rpc_request *request = start_stream(&b, &a);
    weft_rpc_request_free(request);
    CHECK(weft_loop_run_until(b.loop, &b.was_closed, LONG_ENOUGH));
    CHECK_INT(b.closed, 1);
    CHECK(!a.done);
    bench_down(&b);
}

static void a_server_that_goes_ends_its_streams(void)
{
    struct bench b;
    bench_up(&b);
    struct answer a = {0};
    struct weft_rpc_request *request = start_stream(&b, &a);
    weft_rpc_server_free(weft_steal(&b.server));
    CHECK(weft_loop_run_until(b.loop, &a.done, LONG_ENOUGH));
    CHECK(a.code != WEFT_RPC_OK);
    CHECK_INT(b.closed, 0); /* freed: no callbacks */
    weft_rpc_request_free(request);
    bench_down(&b);
    CHECK(access(b.path, F_OK) < 0); /* the socket is gone */
}

static void many_generations_on_new_paths(void)
{
    struct bench b;
    bench_up(&b);
    for (int i = 0; i < 20; i++) {
        weft_rpc_server_free(weft_steal(&b.server));
        (void)snprintf(b.path, sizeof(b.path), "%s/gen-%d.sock", weft_test_dir(), i);
        CHECK_INT(serve(&b, b.path, NULL), 0);
        CHECK_INT(ask(&b, "/t/Echo", "x").code, WEFT_RPC_OK);
    }
    bench_down(&b);
}

static void bad_paths_are_named(void)
{
    struct bench b;
    bench_up(&b);
    struct weft_rpc_server *good = weft_steal(&b.server);
    struct weft_error err = {0};
    char path[200];
    (void)snprintf(path, sizeof(path), "%s/%0150d", weft_test_dir(), 1);
    CHECK_INT(serve(&b, path, &err), -ENAMETOOLONG);
    (void)snprintf(path, sizeof(path), "%s/missing/x.sock", weft_test_dir());
    CHECK_INT(serve(&b, path, &err), -ENOENT);
    CHECK_CONTAINS(err.message, "missing: No such file");
    (void)snprintf(path, sizeof(path), "%s/plain-file", weft_test_dir());
    (void)close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    CHECK_INT(serve(&b, path, &err), -EEXIST);
    CHECK_CONTAINS(err.message, "plain-file is in the way");
    (void)snprintf(path, sizeof(path), "%s/plain-file/x.sock", weft_test_dir());
    CHECK_INT(serve(&b, path, &err), -ENOTDIR);
    CHECK_CONTAINS(err.message, "plain-file/x.sock cannot be bound: Not a directory");
    CHECK(b.server == NULL);
    b.server = good;
    bench_down(&b);
}

static void lack_of_memory_is_survived(void)
{
    struct bench b;
    bench_up(&b);
    struct weft_rpc_channel *channel = NULL;
    (void)weft_mem_fail_after(1);
    CHECK_INT(weft_rpc_channel_new(b.rpc, b.path, 0, &channel, NULL), -ENOMEM);
    (void)weft_mem_fail_after(0);
    CHECK_INT(weft_rpc_channel_new(b.rpc, b.path, 0, &channel, NULL), 0);
    struct weft_rpc_request *request = NULL;
    struct answer a = {0};
    const struct weft_rpc_request_options echo_x = {.method = "/t/Echo",
                                                    .bytes = "x",
                                                    .len = 1,
                                                    .timeout_ns = WEFT_NS_PER_S,
                                                    .done = on_answer,
                                                    .data = &a};
    for (uint64_t n = 1; n <= 2; n++) {
        (void)weft_mem_fail_after(n);
        CHECK_INT(weft_rpc_request_new(channel, &echo_x, &request, NULL), -ENOMEM);
        (void)weft_mem_fail_after(0);
    }
    CHECK_INT(weft_rpc_request_new(channel, &echo_x, &request, NULL), 0);
    CHECK(weft_loop_run_until(b.loop, &a.done, LONG_ENOUGH));
    CHECK_INT(a.code, WEFT_RPC_OK);
    weft_rpc_request_free(request);
    weft_rpc_channel_free(channel);
    bench_down(&b);
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SANITIZER_THREADS 1
#endif
#endif
#ifndef SANITIZER_THREADS
#define SANITIZER_THREADS 0
#endif

static int count_threads(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/task");
    for (struct dirent *e = dir != NULL ? readdir(dir) : NULL; e != NULL; e = readdir(dir)) {
        count += e->d_name[0] != '.';
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

/* The check of the measures in pkg/rpc/quiet.h: without them it is 9 on two CPUs, 38 on 64. */
static void few_threads(void)
{
    CHECK(weft_quiet_one_cpu());
    struct bench b;
    bench_up(&b);
    for (int i = 0; i < 50; i++) {
        CHECK_INT(ask(&b, "/t/Echo", "x").code, WEFT_RPC_OK);
    }
    /* a thread that an earlier test's library has let go may still be ending */
    const bool never = false;
    for (int i = 0; i < 500 && count_threads() - SANITIZER_THREADS > 5; i++) {
        (void)weft_loop_run_until(b.loop, &never, 10 * WEFT_NS_PER_MS);
    }
    /* ours, the queue's, and gRPC's two executors; one of these starts a second thread for good
     * when its queue is more than two deep, as on a busy machine (executor.cc: at most twice the
     * number of CPUs, which is one here) */
    const int threads = count_threads() - SANITIZER_THREADS;
    CHECK(threads == 4 || threads == 5);
    bench_down(&b);
}

/* ---- a peer that reads nothing ---- */

static void add_text(struct weft_buf *block, const char *text)
{
    const unsigned char len = (unsigned char)strlen(text); /* below 127: one byte of HPACK */
    CHECK_INT(weft_buf_append(block, &len, 1), 0);
    CHECK_INT(weft_buf_append(block, text, len), 0);
}

static void add_frame(struct weft_buf *out, unsigned char type, unsigned char flags,
                      unsigned char stream, const void *bytes, size_t len)
{
    const unsigned char head[9] = {0, 0, (unsigned char)len, type, flags, 0, 0, 0, stream};
    CHECK_INT(weft_buf_append(out, head, sizeof(head)), 0);
    CHECK_INT(weft_buf_append(out, bytes, len), 0);
}

/* A call of /t/Stream, written by hand (RFC 9113 and 7541): windows of 2^31 - 1 bytes, so that
 * nothing but the socket holds the answer up. */
static void write_call(struct weft_buf *out)
{
    static const char *const headers[][2] = {
        {":method", "POST"}, {":scheme", "http"}, {":path", "/t/Stream"},
        {":authority", "x"}, {"te", "trailers"},  {"content-type", "application/grpc"}};
    weft_auto(weft_buf_done) struct weft_buf block;
    weft_buf_init(&block, 1000);
    for (size_t i = 0; i < WEFT_ARRAY_LEN(headers); i++) {
        CHECK_INT(weft_buf_append(&block, "\0", 1), 0); /* a literal, not to be remembered */
        add_text(&block, headers[i][0]);
        add_text(&block, headers[i][1]);
    }
    CHECK_INT(weft_buf_append(out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24), 0);
    add_frame(out, 4, 0, 0, "\0\4\x7f\xff\xff\xff", 6);        /* SETTINGS: a stream's window */
    add_frame(out, 8, 0, 0, "\x7f\xff\0\0", 4);                /* WINDOW_UPDATE: the connection's */
    add_frame(out, 1, 4, 1, weft_buf_text(&block), block.len); /* HEADERS, complete */
    add_frame(out, 0, 1, 1, "\0\0\0\0", 5);                    /* DATA: an empty message; the end */
}

static int connect_to(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    memcpy(name.sun_path, path, strlen(path));
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(connect(fd, (const struct sockaddr *)&name, sizeof(name)), 0);
    return fd;
}

static void turn(struct bench *b)
{
    const bool never = false;
    (void)weft_loop_run_until(b->loop, &never, 10 * WEFT_NS_PER_MS);
}

/* A stream to somebody who does not read the 4 MB that are on their way. Returns his end. */
static int open_mute_stream(struct bench *b)
{
    weft_auto(weft_buf_done) struct weft_buf call;
    weft_buf_init(&call, 1000);
    write_call(&call);
    const int fd = connect_to(b->path);
    CHECK_INT(write(fd, weft_buf_text(&call), call.len), call.len);
    for (int i = 0; i < 2000 && b->stream == NULL; i++) {
        turn(b);
    }
    weft_autofree char *big = weft_calloc(1, 4U << 20);
    CHECK(b->stream != NULL && big != NULL);
    if (b->stream != NULL && big != NULL) {
        weft_rpc_call_update(b->stream, big, 4U << 20);
    }
    return fd;
}

/* gRPC would wait for ever for its own write, and a server that is freed for gRPC. So the
 * connection is ended; those of another server go on. */
static void a_peer_that_reads_nothing_does_not_hold_us(void)
{
    struct bench b;
    struct answer a = {0};
    struct weft_rpc_channel *channel = NULL;
    struct weft_rpc_request *request = NULL;
    char path[128];
    bench_up(&b);
    struct weft_rpc_server *mute = b.server;
    (void)snprintf(path, sizeof(path), "%s/other.sock", weft_test_dir());
    CHECK_INT(serve(&b, path, NULL), 0);
    CHECK_INT(weft_rpc_channel_new(b.rpc, path, 0, &channel, NULL), 0);
    const struct weft_rpc_request_options options = {
        .method = "/t/Hang", .bytes = "x", .len = 1, .done = on_answer, .data = &a};
    CHECK_INT(weft_rpc_request_new(channel, &options, &request, NULL), 0);
    const int fd = open_mute_stream(&b);
    for (int i = 0; i < 2000 && b.hanging == NULL; i++) {
        turn(&b);
    }
    weft_rpc_server_free(mute);
    struct pollfd gone = {.fd = fd};
    for (int i = 0; i < 2000 && (gone.revents & POLLHUP) == 0; i++) {
        turn(&b);
        CHECK(poll(&gone, 1, 0) >= 0);
    }
    CHECK((gone.revents & POLLHUP) != 0);
    CHECK(b.hanging != NULL);
    if (b.hanging != NULL) {
        weft_rpc_call_reply(b.hanging, "still", 5);
    }
    CHECK(weft_loop_run_until(b.loop, &a.done, LONG_ENOUGH));
    CHECK_STR(a.text, "still");
    weft_rpc_request_free(request);
    weft_rpc_channel_free(channel);
    bench_down(&b); /* fails a check of its own where gRPC keeps the server */
    (void)close(fd);
}

/* ---- a gRPC that does not end ---- */

static sem_t may_end;
static atomic_bool hold_end;

/* The linker gives weft this instead of gRPC's; the names are its. */
void __real_grpc_shutdown_blocking(void);
void __wrap_grpc_shutdown_blocking(void);
void __wrap_grpc_shutdown_blocking(void)
{
    if (atomic_load(&hold_end)) {
        (void)sem_wait(&may_end);
    }
    __real_grpc_shutdown_blocking();
}

/* It is left to itself, and cannot be used again before it has ended; then it can. */
static void an_end_that_hangs_does_not_hold_us(void)
{
    struct bench b;
    struct weft_rpc *again = NULL;
    struct weft_error err = {0};
    CHECK_INT(sem_init(&may_end, 0, 0), 0);
    bench_up(&b);
    CHECK_INT(ask(&b, "/t/Echo", "x").code, WEFT_RPC_OK);
    atomic_store(&hold_end, true);
    weft_rpc_server_free(b.server);
    CHECK(!weft_rpc_free(b.rpc));
    CHECK_INT(weft_rpc_new(b.loop, &again, &err), -EBUSY);
    CHECK_STR(err.message, "gRPC has not ended since it was last used");
    atomic_store(&hold_end, false);
    (void)sem_post(&may_end);
    start(b.loop, &again);
    (void)weft_rpc_free(again);
    weft_loop_free(b.loop);
    bench_up(&b);
    CHECK_INT(ask(&b, "/t/Echo", "y").code, WEFT_RPC_OK);
    bench_down(&b);
    (void)sem_destroy(&may_end);
}

/* ---- no threads left ---- */

static atomic_int threads_left = INT_MAX;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *data);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *data);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *data)
{
    return atomic_fetch_sub(&threads_left, 1) > 0 ? __real_pthread_create(thread, attr, fn, data)
                                                  : EAGAIN;
}

/* gRPC itself would wait for ever. */
static void too_few_threads_are_named(void)
{
    struct bench b;
    struct weft_loop *loop = NULL;
    bench_up(&b); /* until here the last one's gRPC may be ending */
    bench_down(&b);
    CHECK_INT(weft_loop_new(&loop, NULL), 0);
    for (int left = 0; left < 4; left++) {
        struct weft_rpc *rpc = NULL;
        struct weft_error err = {0};
        atomic_store(&threads_left, left);
        CHECK_INT(weft_rpc_new(loop, &rpc, &err), -EAGAIN);
        atomic_store(&threads_left, INT_MAX);
        CHECK_STR(err.message, "gRPC needs 4 threads: Resource temporarily unavailable");
    }
    weft_loop_free(loop);
    bench_up(&b);
    CHECK_INT(ask(&b, "/t/Echo", "x").code, WEFT_RPC_OK);
    bench_down(&b);
}

WEFT_SUITE(rpc, {"unary calls are answered", unary_calls_are_answered},
           {"unknown methods are unimplemented", unknown_methods_are_unimplemented},
           {"too big a request is refused", too_big_a_request_is_refused},
           {"time limits hold", time_limits_hold},
           {"a missing server is unavailable at once", a_missing_server_is_unavailable_at_once},
           {"a mute server does not hold us", a_mute_server_does_not_hold_us},
           {"streams carry the latest state and end", streams_carry_the_latest_state_and_end},
           {"a cancelled stream is reported", a_cancelled_stream_is_reported},
           {"a server that goes ends its streams", a_server_that_goes_ends_its_streams},
           {"many generations on new paths", many_generations_on_new_paths},
           {"bad paths are named", bad_paths_are_named},
           {"lack of memory is survived", lack_of_memory_is_survived}, {"few threads", few_threads},
           {"a peer that reads nothing does not hold us",
            a_peer_that_reads_nothing_does_not_hold_us},
           {"an end that hangs does not hold us", an_end_that_hangs_does_not_hold_us},
           {"too few threads are named", too_few_threads_are_named})
