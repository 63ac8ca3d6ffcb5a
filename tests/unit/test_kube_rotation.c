/* SPDX-License-Identifier: Apache-2.0 */
/* What changes under a running client (its files), what stands between it and the server (a proxy),
 * and what may and may not be read in its messages. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pkg/base/base64.h"
#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/kube/client.h"
#include "pkg/kube/config.h"
#include "pkg/loop/loop.h"
#include "tests/unit/fake_kube.h"
#include "tests/unit/unit.h"

#define LONG_ENOUGH (10 * WEFT_NS_PER_S)

struct outcome {
    bool done;
    int status;
    struct weft_error error;
};

static void on_done(void *data, const struct weft_kube_result *result)
{
    struct outcome *o = data;
    *o = (struct outcome){true, result->status, result->error};
}

static struct outcome get(struct fake_rig *rig, struct weft_kube_client *client)
{
    struct outcome o = {0};
    const struct weft_kube_op op = {
        .verb = WEFT_KUBE_GET, .path = "/x", .on_done = on_done, .data = &o};
    CHECK_INT(weft_kube_submit(client, &op, NULL, NULL), 0);
    CHECK(weft_loop_run_until(rig->loop, &o.done, LONG_ENOUGH));
    return o;
}

/* What the server sees; it answers 401 while refuse is set. */
struct watcher {
    _Atomic unsigned asked, connection;
    _Atomic bool refuse;
    char headers[2048];
};

static void answer(void *data, const struct fake_request *request, struct fake_reply *reply)
{
    struct watcher *w = data;
    w->asked++;
    w->connection = request->connection;
    (void)snprintf(w->headers, sizeof(w->headers), "%s", request->headers);
    *reply = (struct fake_reply){.status = w->refuse ? 401 : 200, .body = "{}"};
}

static void put(const char *name, const char *text)
{
    char path[192];
    (void)snprintf(path, sizeof(path), "%s/%s", weft_test_dir(), name);
    CHECK_INT(weft_file_replace(path, text, strlen(text), 0600, NULL), 0);
}

static unsigned reloads(const struct weft_kube_client *client)
{
    struct weft_kube_stats stats;
    weft_kube_client_stats(client, &stats);
    return (unsigned)stats.certificate_reloads;
}

/* ---- files ---- */

/* The cluster's authority is replaced: the file has the new one before the server shows it. */
static void test_authority(void)
{
    struct watcher watcher = {0};
    struct fake_rig rig;
    fake_rig_open(&rig, answer, &watcher);
    struct fake_ca *old = fake_ca_new("the old CA");
    put("ca.crt", old->pem);
    char cluster[224];
    (void)snprintf(cluster, sizeof(cluster), ", certificate-authority: \"%s/ca.crt\"",
                   weft_test_dir());
    struct weft_kube_client *client = fake_rig_client(&rig, NULL, cluster, "token: t");
    struct outcome o = get(&rig, client);
    CHECK_INT(o.error.code, -EPROTO);
    CHECK(!o.error.retryable); /* the file says the same as before */
    put("ca.crt", "");
    o = get(&rig, client);
    CHECK(!o.error.retryable && reloads(client) == 0); /* it is just being written */
    put("ca.crt", rig.ca->pem);
    o = get(&rig, client);
    CHECK_INT(o.error.code, -EPROTO); /* not read again within the minute, but now it is */
    CHECK(o.error.retryable);
    CHECK_INT(reloads(client), 1);
    CHECK_INT(get(&rig, client).status, 200);
    CHECK_INT(reloads(client), 1);
    weft_kube_client_free(client);
    fake_ca_free(old);
    fake_rig_close(&rig);
}

/* A client certificate that has run out is a 401 on a connection that stands; with another pair in
 * the files the next request opens a new one. */
static void test_client_pair(void)
{
    struct watcher watcher = {0};
    struct fake_rig rig;
    fake_rig_open(&rig, answer, &watcher);
    struct fake_ca *users = fake_ca_new("users");
    char *certs[2];
    char *keys[2];
    fake_client_pair(users, "old", &certs[0], &keys[0]);
    fake_client_pair(users, "new", &certs[1], &keys[1]);
    put("u.crt", certs[0]);
    put("u.key", keys[0]);
    struct fake_kube *strict =
        fake_kube_start(fake_server_context(rig.ca, "IP:127.0.0.1", users), 0, answer, &watcher);
    char url[64];
    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%d", fake_kube_port(strict));
    char user[512];
    (void)snprintf(user, sizeof(user), "client-certificate: \"%s/u.crt\", client-key: \"%s/u.key\"",
                   weft_test_dir(), weft_test_dir());
    struct weft_kube_client *client = fake_rig_client(&rig, url, "", user);
    CHECK_INT(get(&rig, client).status, 200);
    watcher.refuse = true;
    struct outcome o = get(&rig, client);
    CHECK(o.status == 401 && !o.error.retryable);
    CHECK_INT(watcher.connection, 1);
    put("u.crt", certs[1]);
    put("u.key", keys[1]);
    o = get(&rig, client);
    CHECK(o.status == 401 && o.error.retryable);
    CHECK_INT(reloads(client), 1);
    watcher.refuse = false;
    CHECK_INT(get(&rig, client).status, 200);
    CHECK_INT(watcher.connection, 2);
    CHECK_INT(watcher.asked, 4);
    weft_kube_client_free(client);
    fake_kube_stop(strict);
    for (size_t i = 0; i < 2; i++) {
        weft_free(certs[i]);
        weft_free(keys[i]);
    }
    fake_ca_free(users);
    fake_rig_close(&rig);
}

/* ---- a proxy ---- */

/* Takes one connection, notes its head, and tunnels it to the port it names. */
struct tunnel {
    int listener, port;
    pthread_t thread;
    char head[2048];
};

static bool pump(int from, int to)
{
    char bytes[4096];
    const ssize_t n = recv(from, bytes, sizeof(bytes), 0);
    return n > 0 && send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

static void *run_tunnel(void *data)
{
    struct tunnel *tunnel = data;
    const int near = accept(tunnel->listener, NULL, NULL);
    size_t len = 0;
    while (len + 1 < sizeof(tunnel->head) && strstr(tunnel->head, "\r\n\r\n") == NULL) {
        const ssize_t n = recv(near, tunnel->head + len, 1, 0);
        if (n <= 0) {
            break;
        }
        len++;
    }
    unsigned port = 0;
    (void)sscanf(tunnel->head, "CONNECT 127.0.0.1:%u ", &port); /* NOLINT(cert-err34-c) */
    const int far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    static const char ok[] = "HTTP/1.1 200 OK\r\n\r\n";
    if (connect(far, (struct sockaddr *)&to, sizeof(to)) == 0 &&
        send(near, ok, sizeof(ok) - 1, MSG_NOSIGNAL) > 0) {
        struct pollfd fds[2] = {{.fd = near, .events = POLLIN}, {.fd = far, .events = POLLIN}};
        bool open = true;
        while (open && poll(fds, 2, -1) > 0) {
            open = fds[0].revents != 0 ? pump(near, far) : pump(far, near);
        }
    }
    (void)close(near);
    (void)close(far);
    return NULL;
}

static void tunnel_open(struct tunnel *tunnel)
{
    *tunnel = (struct tunnel){.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    CHECK_INT(bind(tunnel->listener, (struct sockaddr *)&at, len), 0);
    CHECK_INT(listen(tunnel->listener, 4), 0);
    CHECK_INT(getsockname(tunnel->listener, (struct sockaddr *)&at, &len), 0);
    tunnel->port = ntohs(at.sin_port);
    CHECK_INT(pthread_create(&tunnel->thread, NULL, run_tunnel, tunnel), 0);
}

static void test_proxy(void)
{
    struct watcher watcher = {0};
    struct fake_rig rig;
    fake_rig_open(&rig, answer, &watcher);
    struct tunnel tunnel;
    tunnel_open(&tunnel);
    char cluster[128];
    (void)snprintf(cluster, sizeof(cluster), ", proxy-url: \"http://us3r:pr0xy-pw@127.0.0.1:%d\"",
                   tunnel.port);
    struct weft_kube_client *client = fake_rig_client(&rig, NULL, cluster, "token: t");
    CHECK_INT(get(&rig, client).status, 200);
    /* the token goes to the server only, the proxy's password to the proxy only */
    CHECK_CONTAINS(watcher.headers, "\r\nAuthorization: Bearer t\r\n");
    CHECK(strstr(watcher.headers, "Proxy-Authorization") == NULL);
    weft_kube_client_free(client);
    (void)pthread_join(tunnel.thread, NULL);
    (void)close(tunnel.listener);
    char connect[64];
    (void)snprintf(connect, sizeof(connect), "CONNECT 127.0.0.1:%d HTTP/1.1\r\n",
                   fake_kube_port(rig.fake));
    CHECK_CONTAINS(tunnel.head, connect);
    /* printf %s us3r:pr0xy-pw | base64 */
    CHECK_CONTAINS(tunnel.head, "Proxy-Authorization: Basic dXMzcjpwcjB4eS1wdw==\r\n");
    CHECK(strstr(tunnel.head, "Bearer") == NULL);
    fake_rig_close(&rig);
}

/* ---- messages ---- */

/* Of every way to fail: the message names the request, the id is the one that was sent, and no
 * secret is in it. */
static void test_messages(void)
{
    static const char *const secrets[] = {"t0ken", "pa55word", "pr0xy-pw", "dDBrZW4", "us3r"};
    struct watcher watcher = {.refuse = true};
    struct fake_rig rig;
    fake_rig_open(&rig, answer, &watcher);
    struct fake_kube *gone = fake_kube_start(NULL, 0, answer, &watcher);
    const int closed = fake_kube_port(gone);
    fake_kube_stop(gone);
    struct fake_kube *proxy = fake_kube_start(NULL, 0, answer, &watcher); /* refuses to tunnel */
    char nowhere[64];
    char bad_proxy[128];
    char no_proxy[128];
    (void)snprintf(nowhere, sizeof(nowhere), "https://127.0.0.1:%d", closed);
    (void)snprintf(bad_proxy, sizeof(bad_proxy),
                   ", proxy-url: \"http://us3r:pr0xy-pw@127.0.0.1:%d\"", fake_kube_port(proxy));
    (void)snprintf(no_proxy, sizeof(no_proxy), ", proxy-url: \"http://us3r:pr0xy-pw@127.0.0.1:%d\"",
                   closed);
    const struct {
        const char *server, *cluster, *user;
    } cases[] = {
        {NULL, "", "token: t0ken"},
        {NULL, "", "username: us3r, password: pa55word"},
        {nowhere, "", "token: t0ken"},
        {NULL, bad_proxy, "token: t0ken"},
        {NULL, no_proxy, "token: t0ken"},
        {NULL, ", certificate-authority-data: \"\"", "token: t0ken"},
    };
    char last[40] = "";
    for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
        struct weft_kube_client *client =
            fake_rig_client(&rig, cases[i].server, cases[i].cluster, cases[i].user);
        const struct outcome o = get(&rig, client);
        CHECK(o.error.code < 0);
        CHECK_CONTAINS(o.error.message, "GET /x: ");
        for (size_t s = 0; s < WEFT_ARRAY_LEN(secrets); s++) {
            CHECK(strstr(o.error.message, secrets[s]) == NULL);
        }
        CHECK_INT(strlen(o.error.request_id), 36);
        CHECK(strcmp(o.error.request_id, last) != 0); /* one of its own for each */
        (void)snprintf(last, sizeof(last), "%s", o.error.request_id);
        if (o.status == 401) {
            char line[64];
            (void)snprintf(line, sizeof(line), "\r\nAudit-ID: %s\r\n", o.error.request_id);
            CHECK_CONTAINS(watcher.headers, line);
        }
        weft_kube_client_free(client);
    }
    fake_kube_stop(proxy);
    fake_rig_close(&rig);
}

WEFT_SUITE(kube_rotation, {"authority", test_authority}, {"client_pair", test_client_pair},
           {"proxy", test_proxy}, {"messages", test_messages})
