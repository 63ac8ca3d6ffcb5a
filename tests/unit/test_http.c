/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server with plain sockets as its clients, and the text of metrics. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/str.h"
#include "pkg/http/http.h"
#include "pkg/http/metrics.h"
#include "pkg/loop/loop.h"
#include "tests/unit/unit.h"

#define LONG_ENOUGH (5 * WEFT_NS_PER_S)
enum { CLIENTS_MAX = 40, BIG = 3 << 20, PART = 100000, PARTS = 60 };

/* ---- the server ---- */

struct server {
    struct weft_loop *loop;
    struct weft_http *http;
    unsigned asked;
    char path[64];
    unsigned parts; /* of /parts that were asked for */
    unsigned ended; /* streams */
};

static void more(void *stream, struct weft_buf *part)
{
    struct server *s = stream;
    if (s->parts == PARTS && strcmp(s->path, "/cut") == 0) {
        part->status = -ENOMEM;
    }
    for (size_t i = 0; s->parts < PARTS && i < PART; i++) {
        (void)weft_buf_putc(part, (char)('A' + s->parts % 26));
    }
    s->parts += s->parts < PARTS ? 1 : 0;
}

static void ended(void *stream)
{
    struct server *s = stream;
    s->ended++;
}

static void answer(void *data, const char *path, struct weft_http_answer *to)
{
    struct server *s = data;
    s->asked++;
    (void)snprintf(s->path, sizeof(s->path), "%s", path);
    if (strcmp(path, "/big") == 0) {
        for (size_t i = 0; i < BIG; i++) {
            (void)weft_buf_putc(&to->body, (char)('a' + i % 26));
        }
    } else if (strcmp(path, "/parts") == 0 || strcmp(path, "/cut") == 0) {
        to->more = more;
        to->done = ended;
        to->stream = s;
    } else if (strcmp(path, "/full") == 0) {
        to->body.status = -ENOMEM;
    } else if (strcmp(path, "/hello") == 0) {
        (void)weft_buf_puts(&to->body, "hello\n");
    } else {
        to->status = 404;
    }
}

static void start(struct server *s)
{
    *s = (struct server){0};
    CHECK_INT(weft_loop_new(&s->loop, NULL), 0);
    const struct weft_http_options options = {
        .loop = s->loop, .listen = "127.0.0.1:0", .answer = answer, .data = s};
    CHECK_INT(weft_http_new(&options, &s->http, NULL), 0);
    CHECK(weft_http_port(s->http) > 0);
}

static void stop(struct server *s)
{
    weft_http_free(s->http);
    weft_loop_free(s->loop);
}

/* ---- a client ---- */

struct client {
    struct server *server;
    int fd;
    struct weft_fdwatch *watch;
    struct weft_buf got;
    bool done; /* the server closed, or the text waited for is there */
    const char *until;
};

static void on_client(void *data, unsigned events)
{
    (void)events;
    struct client *c = data;
    char part[65536];
    const ssize_t n = recv(c->fd, part, sizeof(part), 0);
    if (n > 0) {
        (void)weft_buf_append(&c->got, part, (size_t)n);
        c->done = c->until != NULL && strstr(weft_buf_text(&c->got), c->until) != NULL;
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        c->done = true;
        CHECK_INT(weft_fdwatch_set(c->watch, 0), 0);
    }
}

static void connect_client(struct server *s, struct client *c)
{
    *c = (struct client){.server = s};
    weft_buf_init(&c->got, 16 << 20);
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(weft_http_port(s->http)),
                                   .sin_addr = {htonl(INADDR_LOOPBACK)}};
    /* the server is in this very thread: a connection that it does not accept yet must not wait */
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int rc = connect(c->fd, (const struct sockaddr *)&to, sizeof(to));
    CHECK(rc == 0 || errno == EINPROGRESS);
    CHECK_INT(weft_fdwatch_new(s->loop, c->fd, on_client, c, &c->watch, NULL), 0);
    CHECK_INT(weft_fdwatch_set(c->watch, WEFT_FD_READ), 0);
}

/* What cannot be sent, as the server hung up, shows in what comes back. */
static void say(struct client *c, const char *text)
{
    (void)send(c->fd, text, strlen(text), MSG_NOSIGNAL);
}

static const char *ask(struct client *c, const char *request)
{
    say(c, request);
    (void)weft_loop_run_until(c->server->loop, &c->done, LONG_ENOUGH);
    return weft_buf_text(&c->got);
}

static void leave(struct client *c)
{
    weft_fdwatch_free(c->watch);
    (void)close(c->fd);
    weft_buf_done(&c->got);
}

/* ---- tests ---- */

static void a_page_is_answered(void)
{
    struct server s;
    start(&s);
    struct client c;
    connect_client(&s, &c);
    const char *got = ask(&c, "GET /hello?x=1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    CHECK(strncmp(got, "HTTP/1.1 200 ", 13) == 0);
    CHECK_CONTAINS(got, "Content-Type: text/plain; charset=utf-8\r\n");
    CHECK_CONTAINS(got, "\r\n\r\nhello\n");
    CHECK_STR(s.path, "/hello");
    leave(&c);
    stop(&s);
}

/* The body without its chunks' sizes: "HEX CRLF bytes CRLF" each, the last of size 0. */
static size_t unchunk(const char *body, const char *end, bool *ret_whole)
{
    size_t total = 0;
    size_t wrong = 0;
    *ret_whole = false;
    while (body < end) {
        uint64_t len = 0;
        const char *line = memchr(body, '\r', (size_t)(end - body));
        if (line == NULL ||
            weft_parse_hex64((struct weft_str){body, (size_t)(line - body)}, &len) < 0 ||
            len > (size_t)(end - line)) {
            return total;
        }
        for (size_t i = 0; i < len; i++) { /* in order, each byte that of its part */
            wrong += line[2 + i] != (char)('A' + (int)((total + i) / PART % 26));
        }
        CHECK_INT(wrong, 0);
        total += len;
        body = line + 2 + len + 2;
        if (len == 0) {
            *ret_whole = true;
            return total;
        }
    }
    return total;
}

static void a_page_in_parts(void)
{
    static const struct {
        const char *request;
        bool whole;
    } rows[] = {{"GET /parts HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", true},
                {"GET /cut HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false}};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        struct server s;
        struct client c;
        bool whole = false;
        start(&s);
        connect_client(&s, &c);
        const char *got = ask(&c, rows[i].request);
        const char *body = strstr(got, "\r\n\r\n");
        CHECK(strncmp(got, "HTTP/1.1 200 ", 13) == 0 && body != NULL);
        if (body != NULL) {
            CHECK_INT(unchunk(body + 4, got + c.got.len, &whole), PARTS * PART);
            CHECK_INT(whole, rows[i].whole);
        }
        CHECK_INT(s.ended, 1);
        leave(&c);
        stop(&s);
    }
}

/* Who does not read gets no more than the socket holds; who leaves ends it. */
static void a_slow_reader_of_parts(void)
{
    struct server s;
    struct client c;
    const int small = 4096;
    start(&s);
    connect_client(&s, &c);
    CHECK_INT(setsockopt(c.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
    CHECK_INT(weft_fdwatch_set(c.watch, 0), 0);
    say(&c, "GET /parts HTTP/1.1\r\nHost: a\r\n\r\n");
    (void)weft_loop_run_until(s.loop, &c.done, 300 * WEFT_NS_PER_MS);
    CHECK(s.parts > 0 && s.parts < PARTS);
    CHECK_INT(s.ended, 0);
    leave(&c);
    bool gone = false;
    (void)weft_loop_run_until(s.loop, &gone, 300 * WEFT_NS_PER_MS);
    CHECK_INT(s.ended, 1);
    stop(&s);
}

static void other_paths_and_methods_are_refused(void)
{
    static const struct {
        const char *request, *status;
        unsigned asked;
    } rows[] = {
        {"GET /no HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HTTP/1.1 404 ", 1},
        {"POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
         "HTTP/1.1 405 ", 0},
        {"GET /full HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HTTP/1.1 500 ", 1},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        struct server s;
        start(&s);
        struct client c;
        connect_client(&s, &c);
        CHECK_CONTAINS(ask(&c, rows[i].request), rows[i].status);
        CHECK_INT(s.asked, rows[i].asked);
        leave(&c);
        stop(&s);
    }
}

static void head_has_no_body(void)
{
    struct server s;
    start(&s);
    struct client c;
    connect_client(&s, &c);
    const char *got = ask(&c, "HEAD /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    CHECK_CONTAINS(got, "Content-Length: 6\r\n");
    CHECK(strstr(got, "hello") == NULL);
    leave(&c);
    stop(&s);
}

static void a_request_may_come_in_pieces(void)
{
    struct server s;
    start(&s);
    struct client c;
    connect_client(&s, &c);
    const char *text = "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    bool never = false;
    for (const char *p = text; *p != '\0'; p++) {
        const char one[] = {*p, '\0'};
        say(&c, one);
        (void)weft_loop_run_until(s.loop, &never, WEFT_NS_PER_MS);
    }
    (void)weft_loop_run_until(s.loop, &c.done, LONG_ENOUGH);
    CHECK_CONTAINS(weft_buf_text(&c.got), "hello\n");
    leave(&c);
    stop(&s);
}

static void two_requests_share_a_connection(void)
{
    struct server s;
    start(&s);
    struct client c;
    connect_client(&s, &c);
    (void)ask(&c, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
                  "GET /no HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    CHECK_CONTAINS(weft_buf_text(&c.got), "hello\n");
    CHECK_CONTAINS(weft_buf_text(&c.got), "HTTP/1.1 404 ");
    CHECK_INT(s.asked, 2);
    leave(&c);
    stop(&s);
}

static void garbage_and_long_requests_end_their_connection_only(void)
{
    struct server s;
    start(&s);
    struct client bad;
    connect_client(&s, &bad);
    say(&bad, "\x16\x03\x01 what is this\r\n\r\n\r\n");
    (void)weft_loop_run_until(s.loop, &bad.done, LONG_ENOUGH);
    CHECK(bad.done);
    struct client big;
    connect_client(&s, &big);
    static char request[64 << 10];
    memset(request, 'a', sizeof(request) - 1);
    memcpy(request, "GET /", 5);
    big.until = "HTTP/1.1 414 ";
    (void)send(big.fd, request, sizeof(request) - 1, MSG_NOSIGNAL);
    (void)weft_loop_run_until(s.loop, &big.done, LONG_ENOUGH);
    CHECK(big.done);
    struct client c;
    connect_client(&s, &c);
    CHECK_CONTAINS(ask(&c, "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), "hello");
    leave(&c);
    leave(&big);
    leave(&bad);
    stop(&s);
}

static void too_many_connections_do_not_stop_it(void)
{
    struct server s;
    start(&s);
    static struct client clients[CLIENTS_MAX];
    bool never = false;
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        connect_client(&s, &clients[i]);
    }
    (void)weft_loop_run_until(s.loop, &never, 20 * WEFT_NS_PER_MS);
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        leave(&clients[i]);
    }
    (void)weft_loop_run_until(s.loop, &never, 20 * WEFT_NS_PER_MS);
    /* those still in the queue take the places once more until they are seen to be gone: a client
     * that comes in that moment is turned away and comes again */
    bool served = false;
    for (unsigned tries = 0; tries < 20 && !served; tries++) {
        struct client c;
        connect_client(&s, &c);
        c.until = "hello";
        served = strstr(ask(&c, "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
                        "hello") != NULL;
        leave(&c);
        (void)weft_loop_run_until(s.loop, &never, 10 * WEFT_NS_PER_MS);
    }
    CHECK(served);
    stop(&s);
}

/* They send a byte now and then, so that silence does not end them. */
static void requests_that_never_end_keep_no_probe_out(void)
{
    struct server s;
    start(&s);
    struct client slow[WEFT_HTTP_CONNECTIONS_MAX];
    bool never = false;
    for (size_t i = 0; i < WEFT_HTTP_CONNECTIONS_MAX; i++) {
        connect_client(&s, &slow[i]);
        (void)weft_loop_run_until(s.loop, &never, 5 * WEFT_NS_PER_MS);
        say(&slow[i], "GET /hello HTTP/1.1\r\nX-Slow: a");
    }
    (void)weft_loop_run_until(s.loop, &never, 20 * WEFT_NS_PER_MS);
    CHECK(!slow[0].done);
    struct client probe;
    connect_client(&s, &probe);
    CHECK_CONTAINS(ask(&probe, "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
                   "hello");
    CHECK(slow[0].done);
    CHECK(!slow[1].done);
    CHECK(!slow[WEFT_HTTP_CONNECTIONS_MAX - 1].done);
    leave(&probe);
    for (size_t i = 0; i < WEFT_HTTP_CONNECTIONS_MAX; i++) {
        leave(&slow[i]);
    }
    stop(&s);
}

static void a_big_page_arrives_whole(void)
{
    struct server s;
    start(&s);
    struct client c;
    connect_client(&s, &c);
    const char *got = ask(&c, "GET /big HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    const char *body = strstr(got, "\r\n\r\n");
    CHECK(body != NULL);
    CHECK_INT(body != NULL ? strlen(body + 4) : 0, BIG);
    leave(&c);
    stop(&s);
}

static void the_end_closes_open_connections(void)
{
    struct server s;
    start(&s);
    struct client c;
    connect_client(&s, &c);
    c.until = "hello\n";
    CHECK_CONTAINS(ask(&c, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"), "hello");
    c.done = false;
    c.until = NULL;
    weft_http_free(s.http);
    CHECK(weft_loop_run_until(s.loop, &c.done, LONG_ENOUGH));
    leave(&c);
    weft_loop_free(s.loop);
}

static void addresses(void)
{
    static const struct {
        const char *listen;
        int rc;
    } rows[] = {
        {"127.0.0.1:9400", 0},
        {":9400", 0},
        {"[::1]:9400", 0},
        {"[::]:0", 0},
        {"0.0.0.0:65535", 0},
        {"9400", -EINVAL},
        {"127.0.0.1:65536", -EINVAL},
        {"localhost:80", -EINVAL},
        {"::1:80", -EINVAL},
        {"[]:80", -EINVAL},
        {"127.0.0.1:", -EINVAL},
        {"", -EINVAL},
        {"[127.0.0.1]:80", -EINVAL},
        {":-1", -EINVAL},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        struct weft_error err = {0};
        if (!CHECK_INT(weft_http_check_listen(rows[i].listen, &err), rows[i].rc)) {
            (void)fprintf(stderr, "  for \"%s\"\n", rows[i].listen);
        }
    }
}

static void a_taken_port_is_an_error(void)
{
    struct server s;
    start(&s);
    char listen[32];
    (void)snprintf(listen, sizeof(listen), "127.0.0.1:%u", (unsigned)weft_http_port(s.http));
    struct weft_http *second = NULL;
    struct weft_error err = {0};
    const struct weft_http_options options = {
        .loop = s.loop, .listen = listen, .answer = answer, .data = &s};
    CHECK_INT(weft_http_new(&options, &second, &err), -EADDRINUSE);
    CHECK_CONTAINS(err.message, listen);
    CHECK(second == NULL);
    stop(&s);
}

/* ---- metrics ---- */

static void samples_and_labels(void)
{
    struct weft_buf buf;
    weft_buf_init(&buf, 1 << 20);
    static const char *const labels[] = {"resource", "nvidia.com/gpu", "why", "a \"b\"\\\nc", NULL};
    weft_metric_head(&buf, "weft_devices", WEFT_METRIC_GAUGE, "Devices.");
    weft_metric_value(&buf, "weft_devices", labels, UINT64_MAX);
    weft_metric_real(&buf, "weft_devices", NULL, 0.25);
    CHECK_STR(weft_buf_text(&buf),
              "# HELP weft_devices Devices.\n# TYPE weft_devices gauge\n"
              "weft_devices{resource=\"nvidia.com/gpu\",why=\"a \\\"b\\\"\\\\\\nc\"} "
              "18446744073709551615\n"
              "weft_devices 0.25\n");
    weft_buf_done(&buf);
}

static void histograms_count_up(void)
{
    struct weft_histogram h = {0};
    weft_histogram_add(&h, 10000);              /* 10 µs: the first bucket holds its bound */
    weft_histogram_add(&h, 10001);              /* the second */
    weft_histogram_add(&h, 2 * WEFT_NS_PER_S);  /* 2.5 s */
    weft_histogram_add(&h, 60 * WEFT_NS_PER_S); /* above all */
    struct weft_buf buf;
    weft_buf_init(&buf, 1 << 20);
    weft_metric_histogram(&buf, "t", NULL, &h);
    const char *text = weft_buf_text(&buf);
    CHECK_CONTAINS(text, "t_bucket{le=\"1e-05\"} 1\n");
    CHECK_CONTAINS(text, "t_bucket{le=\"2.5e-05\"} 2\n");
    CHECK_CONTAINS(text, "t_bucket{le=\"1\"} 2\n");
    CHECK_CONTAINS(text, "t_bucket{le=\"2.5\"} 3\n");
    CHECK_CONTAINS(text, "t_bucket{le=\"10\"} 3\n");
    CHECK_CONTAINS(text, "t_bucket{le=\"+Inf\"} 4\n");
    CHECK_CONTAINS(text, "t_sum 62.000020001\n");
    CHECK_CONTAINS(text, "t_count 4\n");
    weft_buf_done(&buf);
}

/* /proc/self/statm and the threads of this process, read another way */
static void the_process_tells_of_itself(void)
{
    struct weft_buf buf;
    weft_buf_init(&buf, 1 << 20);
    weft_metrics_process(&buf);
    const char *text = weft_buf_text(&buf);
    const char *rss = strstr(text, "\nprocess_resident_memory_bytes ");
    CHECK(rss != NULL);
    FILE *f = fopen("/proc/self/statm", "re");
    long total = 0;
    long resident = 0;
    CHECK(f != NULL && fscanf(f, "%ld %ld", &total, &resident) == 2);
    if (f != NULL) {
        (void)fclose(f);
    }
    const double said = rss != NULL ? strtod(rss + 31, NULL) : 0;
    const double seen = (double)resident * (double)sysconf(_SC_PAGESIZE);
    CHECK(said > 0.8 * seen && said < 1.25 * seen);
    CHECK_CONTAINS(text, "\nprocess_threads ");
    CHECK_CONTAINS(text, "\nprocess_cpu_seconds_total ");
    CHECK_CONTAINS(text, "\nprocess_open_fds ");
    CHECK_CONTAINS(text, "\nprocess_start_time_seconds ");
    weft_buf_done(&buf);
}

WEFT_SUITE(http, {"a page is answered", a_page_is_answered},
           {"other paths and methods are refused", other_paths_and_methods_are_refused},
           {"HEAD has no body", head_has_no_body},
           {"a request may come in pieces", a_request_may_come_in_pieces},
           {"two requests share a connection", two_requests_share_a_connection},
           {"garbage and long requests end their connection only",
            garbage_and_long_requests_end_their_connection_only},
           {"too many connections do not stop it", too_many_connections_do_not_stop_it},
           {"requests that never end keep no probe out", requests_that_never_end_keep_no_probe_out},
           {"a big page arrives whole", a_big_page_arrives_whole},
           {"a page in parts", a_page_in_parts}, {"a slow reader of parts", a_slow_reader_of_parts},
           {"the end closes open connections", the_end_closes_open_connections},
           {"addresses", addresses}, {"a taken port is an error", a_taken_port_is_an_error},
           {"samples and labels", samples_and_labels}, {"histograms count up", histograms_count_up},
           {"the process tells of itself", the_process_tells_of_itself})
