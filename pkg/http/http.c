/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd on the loop: its epoll descriptor is watched, and its next timeout is a timer. */
#include "pkg/http/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pkg/base/clock.h"
#include "pkg/base/str.h"
#include "pkg/loop/loop.h"

enum {
    HTTP_MAGIC = 0x68747470, /* "http" */
    REQUEST_MAX = 8192,
    SILENCE_S = 10,
    STREAM_BLOCK = 65536,
    BACKLOG = 16,
    CLIENTS_MAX = WEFT_HTTP_CONNECTIONS_MAX + 1 /* the one that makes the oldest go */
};

struct client {
    const struct MHD_Connection *connection;
    int fd; /* the connection's */
};

struct weft_http {
    uint32_t magic;
    struct weft_http_options options;
    struct MHD_Daemon *daemon;
    struct weft_fdwatch *watch;
    struct weft_timer *timer;
    int fd; /* the listening socket, until the daemon owns it */
    uint16_t port;
    struct client clients[CLIENTS_MAX]; /* the oldest first */
    size_t client_count;
};

/* ---- the address ---- */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static int bad_listen(const char *listen, struct weft_error *err)
{
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                        "\"%.80s\" is no address to listen on like 0.0.0.0:9400, [::1]:9400 or "
                        ":9400",
                        listen);
}

/* Without a host: all addresses, *ret_any. */
static int parse_listen(const char *listen, union address *ret_address, bool *ret_any,
                        struct weft_error *err)
{
    const char *colon = strrchr(listen, ':');
    char host[INET6_ADDRSTRLEN + 3] = "";
    uint64_t port = 0;
    if (colon == NULL || (size_t)(colon - listen) >= sizeof(host) ||
        weft_parse_u64(weft_str(colon + 1), UINT16_MAX, &port) < 0) {
        return bad_listen(listen, err);
    }
    memcpy(host, listen, (size_t)(colon - listen));
    const size_t len = strlen(host);
    *ret_any = len == 0;
    union address address = {.v6 = {.sin6_family = AF_INET6,
                                    .sin6_port = htons((uint16_t)port),
                                    .sin6_addr = IN6ADDR_ANY_INIT}};
    if (len > 2 && host[0] == '[' && host[len - 1] == ']') {
        host[len - 1] = '\0';
        if (inet_pton(AF_INET6, host + 1, &address.v6.sin6_addr) != 1) {
            return bad_listen(listen, err);
        }
    } else if (len > 0) {
        address.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
        if (inet_pton(AF_INET, host, &address.v4.sin_addr) != 1) {
            return bad_listen(listen, err);
        }
    }
    *ret_address = address;
    return 0;
}

int weft_http_check_listen(const char *listen, struct weft_error *err)
{
    union address address;
    bool any = false;
    return parse_listen(listen, &address, &any, err);
}

static socklen_t address_len(const union address *address)
{
    return address->any.sa_family == AF_INET ? sizeof(address->v4) : sizeof(address->v6);
}

static int open_socket(const union address *address, int *ret_fd)
{
    const int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;
    const int off = 0;
    if (fd < 0) {
        return -errno;
    }
    /* a program that is started again must not wait for the old one's connections to time out */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        (address->any.sa_family == AF_INET6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0) ||
        bind(fd, &address->any, address_len(address)) < 0 || listen(fd, BACKLOG) < 0) {
        const int rc = -errno;
        (void)close(fd);
        return rc;
    }
    *ret_fd = fd;
    return 0;
}

static int start_listening(struct weft_http *http, struct weft_error *err)
{
    union address address = {0};
    bool any = false;
    int rc = parse_listen(http->options.listen, &address, &any, err);
    if (rc < 0) {
        return rc;
    }
    rc = open_socket(&address, &http->fd);
    if (rc < 0 && any && rc != -EADDRINUSE) { /* a kernel without IPv6 */
        address.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = address.v6.sin6_port};
        rc = open_socket(&address, &http->fd);
    }
    socklen_t len = sizeof(address);
    if (rc == 0 && getsockname(http->fd, &address.any, &len) < 0) {
        rc = -errno;
    }
    if (rc < 0) {
        return weft_err_errno(err, -rc, "listen on %s", http->options.listen);
    }
    http->port =
        ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
    return 0;
}

/* ---- an answer in parts ---- */

struct stream {
    void (*more)(void *stream, struct weft_buf *part);
    void (*done)(void *stream);
    void *data;
    struct weft_buf part;
    size_t at; /* sent of it */
};

static void stream_free(void *data)
{
    struct stream *s = data;
    s->done(s->data);
    weft_buf_done(&s->part);
    weft_free(s);
}

static ssize_t stream_read(void *data, uint64_t offset, char *to, size_t max)
{
    (void)offset; /* they come one after the other */
    struct stream *s = data;
    if (s->at == s->part.len) {
        weft_buf_reset(&s->part);
        s->at = 0;
        s->more(s->data, &s->part);
    }
    if (s->part.status != 0) {
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    const size_t left = s->part.len - s->at;
    const size_t len = left < max ? left : max;
    if (len == 0) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    memcpy(to, s->part.data + s->at, len);
    s->at += len;
    return (ssize_t)len;
}

/* Takes the answer's stream over, also on failure. */
static struct MHD_Response *stream_response(struct weft_http_answer *answer)
{
    struct stream *s = weft_calloc(1, sizeof(*s));
    if (s == NULL) {
        answer->done(answer->stream);
        return NULL;
    }
    s->more = answer->more;
    s->done = answer->done;
    s->data = answer->stream;
    weft_buf_init(&s->part, WEFT_HTTP_PART_MAX);
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, STREAM_BLOCK, stream_read, s, stream_free);
    if (response == NULL) {
        stream_free(s);
    }
    return response;
}

/* ---- requests ---- */

/* Of a body that is there as a whole. */
static struct MHD_Response *body_response(struct weft_http_answer *answer)
{
    const size_t len = answer->body.len;
    char *body = len > 0 ? weft_buf_steal(&answer->body) : NULL;
    if (answer->body.status != 0 || (len > 0 && body == NULL)) {
        answer->status = MHD_HTTP_INTERNAL_SERVER_ERROR;
    }
    struct MHD_Response *response =
        body != NULL ? MHD_create_response_from_buffer_with_free_callback(len, body, weft_free)
                     : MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (response == NULL) {
        weft_free(body);
    }
    return response;
}

static enum MHD_Result respond(struct MHD_Connection *connection, struct weft_http_answer *answer)
{
    struct MHD_Response *response =
        answer->more != NULL ? stream_response(answer) : body_response(answer);
    if (response == NULL) {
        return MHD_NO;
    }
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type);
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (answer->status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    }
    const enum MHD_Result result = MHD_queue_response(connection, answer->status, response);
    MHD_destroy_response(response);
    return result;
}

/* libmicrohttpd calls once with the headers, then with each part of a body, then once more. */
/* NOLINTNEXTLINE(readability-function-size): the library's signature has eight parameters */
static enum MHD_Result on_request(void *data, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **seen)
{
    (void)version;
    (void)upload;
    struct weft_http *http = data;
    WEFT_CHECK(http, HTTP_MAGIC);
    if (*seen == NULL) {
        *seen = http;
        return MHD_YES;
    }
    if (*upload_size > 0) { /* nobody has to send one; it is passed over */
        *upload_size = 0;
        return MHD_YES;
    }
    struct weft_http_answer answer = {.status = MHD_HTTP_OK, .type = "text/plain; charset=utf-8"};
    weft_buf_init(&answer.body, WEFT_HTTP_BODY_MAX);
    if (strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0) {
        http->options.answer(http->options.data, url, &answer);
    } else {
        answer.status = MHD_HTTP_METHOD_NOT_ALLOWED;
    }
    const enum MHD_Result result = respond(connection, &answer);
    weft_buf_done(&answer.body);
    return result;
}

/* A stranger's broken request is no line of our log. */
static void on_log(void *data, const char *format, va_list values)
{
    (void)data;
    (void)format;
    (void)values;
}

/* ---- who is connected ---- */

static void add_client(struct weft_http *http, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info == NULL || http->client_count == CLIENTS_MAX) {
        return;
    }
    http->clients[http->client_count++] =
        (struct client){.connection = connection, .fd = info->connect_fd};
    if (http->client_count == CLIENTS_MAX) {
        (void)shutdown(http->clients[0].fd, SHUT_RDWR); /* the daemon sees it and closes it */
    }
}

static void remove_client(struct weft_http *http, const struct MHD_Connection *connection)
{
    size_t kept = 0;
    for (size_t i = 0; i < http->client_count; i++) {
        if (http->clients[i].connection != connection) {
            http->clients[kept++] = http->clients[i];
        }
    }
    http->client_count = kept;
}

/* A connection too many ends the oldest: were it turned away, a few that never end their request
 * would keep the kubelet's probes out, and the kubelet would end us. */
static void on_connection(void *data, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    (void)context;
    struct weft_http *http = data;
    WEFT_CHECK(http, HTTP_MAGIC);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        add_client(http, connection);
    } else {
        remove_client(http, connection);
    }
}

/* ---- on the loop ---- */

static unsigned connections(const struct weft_http *http)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    return info != NULL ? info->num_connections : 0;
}

/* At its limit the daemon takes the listening socket out of its epoll set, and puts it back only on
 * the run after one in which a connection ended: without that run nothing would ever wake it. */
static void run(struct weft_http *http)
{
    unsigned before = 0;
    do {
        before = connections(http);
        (void)MHD_run(http->daemon);
    } while (connections(http) < before);
    MHD_UNSIGNED_LONG_LONG ms = 0;
    if (MHD_get_timeout(http->daemon, &ms) == MHD_YES) {
        weft_timer_start(http->timer, (int64_t)ms * WEFT_NS_PER_MS, 0);
    } else {
        weft_timer_stop(http->timer);
    }
}

static void on_fd(void *data, unsigned events)
{
    (void)events;
    struct weft_http *http = data;
    WEFT_CHECK(http, HTTP_MAGIC);
    run(http);
}

static void on_timer(void *data)
{
    struct weft_http *http = data;
    WEFT_CHECK(http, HTTP_MAGIC);
    run(http);
}

static int start(struct weft_http *http, struct weft_error *err)
{
    int rc = start_listening(http, err);
    if (rc < 0) {
        return rc;
    }
    errno = 0;
    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request, http,
        MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_LISTEN_SOCKET, http->fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CLIENTS_MAX, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, http, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENCE_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_MAX, MHD_OPTION_END);
    if (http->daemon == NULL) { /* of descriptors, or of memory */
        return weft_err_errno(err, errno != 0 ? errno : ENOMEM, "HTTP server");
    }
    http->fd = -1; /* closed by the daemon */
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (info == NULL) {
        return weft_err_set(err, -ENOTSUP, WEFT_ERR_ERRNO, "libmicrohttpd was built without epoll");
    }
    rc = weft_timer_new(http->options.loop, on_timer, http, &http->timer, err);
    rc = rc < 0
             ? rc
             : weft_fdwatch_new(http->options.loop, info->epoll_fd, on_fd, http, &http->watch, err);
    return rc < 0 ? rc : weft_fdwatch_set(http->watch, WEFT_FD_READ);
}

int weft_http_new(const struct weft_http_options *options, struct weft_http **ret_http,
                  struct weft_error *err)
{
    weft_auto(weft_http_free) struct weft_http *http = weft_calloc(1, sizeof(*http));
    if (http == NULL) {
        return weft_err_nomem(err);
    }
    http->magic = HTTP_MAGIC;
    http->options = *options;
    http->fd = -1;
    const int rc = start(http, err);
    if (rc < 0) {
        return rc;
    }
    *ret_http = weft_steal(&http);
    return 0;
}

void weft_http_free(struct weft_http *http)
{
    if (http == NULL) {
        return;
    }
    WEFT_CHECK(http, HTTP_MAGIC);
    weft_fdwatch_free(http->watch);
    weft_timer_free(http->timer);
    if (http->daemon != NULL) {
        MHD_stop_daemon(http->daemon);
    }
    weft_autoclose_fn(&http->fd);
    http->magic = 0;
    weft_free(http);
}

uint16_t weft_http_port(const struct weft_http *http)
{
    WEFT_CHECK(http, HTTP_MAGIC);
    return http->port;
}
