/* SPDX-License-Identifier: Apache-2.0 */
/* The fake API server: blocking I/O on threads, woken at its end through a pipe. */
#include "tests/unit/fake_kube.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pkg/base/base64.h"
#include "pkg/base/clock.h"
#include "pkg/base/mem.h"
#include "pkg/base/str.h"
#include "pkg/kube/client.h"
#include "pkg/kube/config.h"
#include "pkg/loop/loop.h"
#include "tests/unit/unit.h"

enum { CONNECTIONS_MAX = 4096, REQUEST_MAX = 1 << 20 };

struct connection {
    struct fake_kube *fake;
    pthread_t thread;
    int fd;
    SSL *ssl;
    unsigned number;
    struct weft_buf in;
};

struct fake_kube {
    SSL_CTX *tls;
    int listener;
    int port;
    int stop[2]; /* readable in all threads once written to */
    pthread_t acceptor;
    pthread_mutex_t lock;
    fake_handler handler;
    void *data;
    struct connection *connections[CONNECTIONS_MAX];
    unsigned count;
};

static void must(int good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

/* ---- bytes ---- */

/* Waits for input; false when the server is to stop or the peer has hung up without data. */
static bool wait_input(const struct fake_kube *fake, int fd)
{
    struct pollfd fds[2] = {{.fd = fd, .events = POLLIN}, {.fd = fake->stop[0], .events = POLLIN}};
    while (poll(fds, 2, -1) < 0 && errno == EINTR) {
    }
    return fds[1].revents == 0 && (fds[0].revents & POLLIN) != 0;
}

static int receive(struct connection *c)
{
    char chunk[4096];
    if ((c->ssl == NULL || SSL_pending(c->ssl) == 0) && !wait_input(c->fake, c->fd)) {
        return -1;
    }
    const int n = c->ssl != NULL ? SSL_read(c->ssl, chunk, sizeof(chunk))
                                 : (int)recv(c->fd, chunk, sizeof(chunk), 0);
    return n > 0 ? weft_buf_append(&c->in, chunk, (size_t)n) : -1;
}

static int transmit(struct connection *c, const char *bytes, size_t len)
{
    while (len > 0) {
        const int want = len < 16384 ? (int)len : 16384;
        const int n = c->ssl != NULL ? SSL_write(c->ssl, bytes, want)
                                     : (int)send(c->fd, bytes, (size_t)want, MSG_NOSIGNAL);
        if (n <= 0) {
            return -1;
        }
        bytes += n;
        len -= (size_t)n;
    }
    return 0;
}

/* ---- one exchange ---- */

static size_t content_length(const char *headers)
{
    const char *at = strcasestr(headers, "\r\ncontent-length: ");
    uint64_t len = 0;
    if (at != NULL) {
        struct weft_str rest = weft_str(at + strlen("\r\ncontent-length: "));
        struct weft_str line;
        (void)weft_str_line(&rest, &line);
        must(weft_parse_u64(line, REQUEST_MAX, &len) == 0, "content length");
    }
    return (size_t)len;
}

/* Reads head and body into c->in; the head's length, or -1. */
static long read_request(struct connection *c)
{
    const char *end = NULL;
    while ((end = strstr(weft_buf_text(&c->in), "\r\n\r\n")) == NULL) {
        if (receive(c) < 0) {
            return -1;
        }
    }
    const size_t head = (size_t)(end - c->in.data) + 4;
    const size_t need = head + content_length(c->in.data);
    while (c->in.len < need) {
        if (receive(c) < 0) {
            return -1;
        }
    }
    return (long)head;
}

static void ask_handler(struct connection *c, size_t head, struct fake_reply *reply)
{
    const size_t body_len = content_length(c->in.data);
    weft_autofree char *body = weft_strndup(c->in.data + head, body_len);
    weft_autofree char *text = weft_strndup(c->in.data, head);
    must(body != NULL && text != NULL, "memory");
    char *target = strchr(text, ' ');
    char *version = target != NULL ? strchr(target + 1, ' ') : NULL;
    must(version != NULL, "request line");
    *target = *version = '\0';
    const struct fake_request request = {.method = text,
                                         .target = target + 1,
                                         .headers = version + 1,
                                         .body = body,
                                         .connection = c->number};
    (void)pthread_mutex_lock(&c->fake->lock);
    c->fake->handler(c->fake->data, &request, reply);
    (void)pthread_mutex_unlock(&c->fake->lock);
    weft_buf_consume(&c->in, head + body_len);
}

static int send_body(struct connection *c, const struct fake_reply *reply, size_t len)
{
    const size_t piece = reply->piece > 0 ? reply->piece : len;
    const size_t cut = !reply->stream && reply->end != FAKE_DONE ? len / 2 : len;
    for (size_t at = 0; at < cut; at += piece) {
        const size_t n = cut - at < piece ? cut - at : piece;
        char size[32];
        (void)snprintf(size, sizeof(size), "%zx\r\n", n);
        if ((reply->stream && transmit(c, size, strlen(size)) < 0) ||
            transmit(c, reply->body + at, n) < 0 || (reply->stream && transmit(c, "\r\n", 2) < 0)) {
            return -1;
        }
    }
    return reply->stream && reply->end == FAKE_DONE ? transmit(c, "0\r\n\r\n", 5) : 0;
}

static int send_reply(struct connection *c, const struct fake_reply *reply)
{
    const char *body = reply->body != NULL ? reply->body : "";
    const size_t len = reply->body_len > 0 ? reply->body_len : strlen(body);
    char framing[64] = "Transfer-Encoding: chunked\r\n";
    if (!reply->stream) {
        (void)snprintf(framing, sizeof(framing), "Content-Length: %zu\r\n", len);
    }
    weft_autofree char *head =
        weft_asprintf("HTTP/1.1 %d Status\r\nContent-Type: %s\r\n%s%s\r\n", reply->status,
                      reply->type != NULL ? reply->type : "application/json",
                      reply->headers != NULL ? reply->headers : "", framing);
    must(head != NULL, "memory");
    const int rc = transmit(c, head, strlen(head));
    return rc < 0 ? rc : send_body(c, reply, len);
}

/* false when the connection is over. */
static bool serve_one(struct connection *c)
{
    const long head = read_request(c);
    if (head < 0) {
        return false;
    }
    struct fake_reply reply = {0};
    ask_handler(c, (size_t)head, &reply);
    if (reply.status != 0 && send_reply(c, &reply) < 0) {
        return false;
    }
    if (reply.end == FAKE_HOLD || reply.status == 0) {
        (void)wait_input(c->fake, c->fd); /* until either side ends it */
        return false;
    }
    return reply.end == FAKE_DONE;
}

/* ---- threads ---- */

static void *serve(void *data)
{
    struct connection *c = data;
    bool open = true;
    if (c->fake->tls != NULL) {
        c->ssl = SSL_new(c->fake->tls);
        must(c->ssl != NULL && SSL_set_fd(c->ssl, c->fd) == 1, "SSL_new");
        open = SSL_accept(c->ssl) == 1;
    }
    while (open) {
        open = serve_one(c);
    }
    SSL_free(c->ssl);
    (void)shutdown(c->fd, SHUT_RDWR);
    (void)close(c->fd);
    weft_buf_done(&c->in);
    return NULL;
}

static void *accept_all(void *data)
{
    struct fake_kube *fake = data;
    while (wait_input(fake, fake->listener) && fake->count < CONNECTIONS_MAX) {
        const int fd = accept(fake->listener, NULL, NULL);
        if (fd < 0) {
            continue;
        }
        const int on = 1; /* head and body are two writes: Nagle would hold the second back */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        struct connection *c = weft_calloc(1, sizeof(*c));
        must(c != NULL, "memory");
        c->fake = fake;
        c->fd = fd;
        c->number = fake->count + 1;
        weft_buf_init(&c->in, REQUEST_MAX);
        fake->connections[fake->count++] = c;
        must(pthread_create(&c->thread, NULL, serve, c) == 0, "thread");
    }
    return NULL;
}

struct fake_kube *fake_kube_start(SSL_CTX *tls, int port, fake_handler handler, void *data)
{
    struct fake_kube *fake = weft_calloc(1, sizeof(*fake));
    must(fake != NULL && pipe(fake->stop) == 0, "fake server");
    fake->tls = tls;
    fake->handler = handler;
    fake->data = data;
    (void)pthread_mutex_init(&fake->lock, NULL);
    fake->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    (void)setsockopt(fake->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    must(bind(fake->listener, (struct sockaddr *)&at, len) == 0 &&
             listen(fake->listener, 16) == 0 &&
             getsockname(fake->listener, (struct sockaddr *)&at, &len) == 0,
         "listen on loopback");
    fake->port = ntohs(at.sin_port);
    must(pthread_create(&fake->acceptor, NULL, accept_all, fake) == 0, "thread");
    return fake;
}

int fake_kube_port(const struct fake_kube *fake)
{
    return fake->port;
}

void fake_kube_lock(struct fake_kube *fake, bool take)
{
    (void)(take ? pthread_mutex_lock(&fake->lock) : pthread_mutex_unlock(&fake->lock));
}

void fake_kube_stop(struct fake_kube *fake)
{
    if (fake == NULL) {
        return;
    }
    must(write(fake->stop[1], "x", 1) == 1, "stop");
    (void)pthread_join(fake->acceptor, NULL);
    (void)close(fake->listener);
    for (unsigned i = 0; i < fake->count; i++) {
        (void)pthread_join(fake->connections[i]->thread, NULL);
        weft_free(fake->connections[i]);
    }
    (void)close(fake->stop[0]);
    (void)close(fake->stop[1]);
    (void)pthread_mutex_destroy(&fake->lock);
    SSL_CTX_free(fake->tls);
    weft_free(fake);
}

/* ---- scripts ---- */

void fake_script_init(struct fake_script *script, const struct fake_step *steps, size_t count)
{
    *script = (struct fake_script){.steps = steps, .count = count};
    (void)pthread_mutex_init(&script->lock, NULL);
    weft_buf_init(&script->log, 1U << 20);
}

void fake_script_done(struct fake_script *script)
{
    weft_buf_done(&script->log);
    (void)pthread_mutex_destroy(&script->lock);
}

void fake_script_answer(void *data, const struct fake_request *request, struct fake_reply *reply)
{
    struct fake_script *script = data;
    char line[1024];
    (void)snprintf(line, sizeof(line), "%s %s", request->method, request->target);
    (void)pthread_mutex_lock(&script->lock);
    const bool known = script->next < script->count;
    const char *expect = known ? script->steps[script->next].expect : "nothing";
    if (strncmp(line, expect, strlen(expect)) != 0) {
        script->unexpected++;
        (void)weft_buf_puts(&script->log, "UNEXPECTED ");
    }
    (void)weft_buf_printf(&script->log, "%s\n", line);
    struct fake_seen *last = &script->last;
    (void)snprintf(last->headers, sizeof(last->headers), "%s", request->headers);
    (void)snprintf(last->body, sizeof(last->body), "%s", request->body);
    *reply = known ? script->steps[script->next].reply : (struct fake_reply){0};
    script->next++;
    (void)pthread_mutex_unlock(&script->lock);
}

size_t fake_script_seen(struct fake_script *script, struct fake_seen *ret)
{
    (void)pthread_mutex_lock(&script->lock);
    const size_t count = script->next;
    if (ret != NULL) {
        *ret = script->last;
    }
    (void)pthread_mutex_unlock(&script->lock);
    return count;
}

size_t fake_script_unexpected(struct fake_script *script)
{
    (void)pthread_mutex_lock(&script->lock);
    const size_t count = script->unexpected;
    if (count > 0) {
        (void)fprintf(stderr, "%s", weft_buf_text(&script->log));
    }
    (void)pthread_mutex_unlock(&script->lock);
    return count;
}

bool fake_script_wait(struct fake_script *script, struct weft_loop *loop, int64_t timeout_ns)
{
    const int64_t turn = 5 * WEFT_NS_PER_MS;
    const bool never = false;
    for (int64_t waited = 0; waited < timeout_ns; waited += turn) {
        if (fake_script_seen(script, NULL) >= script->count) {
            return true;
        }
        (void)weft_loop_run_until(loop, &never, turn);
    }
    return false;
}

/* ---- rigs ---- */

struct weft_kube_client *fake_rig_client(struct fake_rig *rig, const char *server,
                                         const char *cluster, const char *user)
{
    char url[64];
    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%d", fake_kube_port(rig->fake));
    server = server != NULL ? server : url;
    weft_autofree char *ca = weft_base64_encode(rig->ca->pem, strlen(rig->ca->pem));
    const bool own_ca = strstr(cluster, "certificate-authority") == NULL &&
                        strstr(cluster, "insecure") == NULL && strncmp(server, "https", 5) == 0;
    weft_autofree char *text =
        weft_asprintf("current-context: t\n"
                      "contexts: [{name: t, context: {cluster: c, user: u}}]\n"
                      "clusters: [{name: c, cluster: {server: \"%s\"%s%s%s%s}}]\n"
                      "users: [{name: u, user: {%s}}]\n",
                      server, cluster, own_ca ? ", certificate-authority-data: \"" : "",
                      own_ca ? ca : "", own_ca ? "\"" : "", user);
    must(text != NULL, "memory");
    struct weft_kube_config *config = NULL;
    struct weft_kube_client *client = NULL;
    struct weft_error err = {0};
    if (weft_kube_config_parse(text, strlen(text), "/t/kubeconfig", NULL, &config, &err) < 0 ||
        weft_kube_config_resolve(config, &err) < 0 ||
        weft_kube_client_new(rig->loop, config, "weft-test", &client, &err) < 0) {
        (void)fprintf(stderr, "%s\nin\n%s\n", err.message, text);
        CU_FAIL("no client");
    }
    return client;
}

void fake_rig_open(struct fake_rig *rig, fake_handler handler, void *data)
{
    *rig = (struct fake_rig){0};
    must(weft_loop_new(&rig->loop, NULL) == 0, "loop");
    rig->ca = fake_ca_new("test CA");
    rig->fake =
        fake_kube_start(fake_server_context(rig->ca, "IP:127.0.0.1", NULL), 0, handler, data);
    rig->client = fake_rig_client(rig, NULL, "", "token: token-1");
}

void fake_rig_close(struct fake_rig *rig)
{
    weft_kube_client_free(rig->client);
    weft_loop_free(rig->loop);
    fake_kube_stop(rig->fake);
    fake_ca_free(rig->ca);
}
