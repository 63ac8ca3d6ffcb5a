/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out at every single allocation of a call and of a followed collection: each is
 * reported, nothing leaks or hangs, and once there is memory again all goes on. The server is a
 * process of its own, as it must not starve too. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pkg/base/base64.h"
#include "pkg/base/clock.h"
#include "pkg/kube/client.h"
#include "pkg/kube/config.h"
#include "pkg/kube/lease.h"
#include "pkg/kube/reflector.h"
#include "pkg/loop/loop.h"
#include "tests/unit/fake_kube.h"
#include "tests/unit/unit.h"

#define LIST                                                                                       \
    "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[{\"metadata\":{\"name\":\"a\","          \
    "\"resourceVersion\":\"1\",\"labels\":{\"l\":\"x\"}}}]}"
#define ADDED                                                                                      \
    "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"6\"}}}\n"
#define STREAM                                                                                     \
    "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"}}}\n"  \
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"5\",\"annotations\":{" \
    "\"k8s.io/initial-events-end\":\"true\"}}}}\n" ADDED
#define LEASE                                                                                      \
    "{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"holderIdentity\":\"me\","               \
    "\"renewTime\":\"t\"}}"

static void answer(void *data, const struct fake_request *request, struct fake_reply *reply)
{
    (void)data;
    const bool watch = strstr(request->target, "watch=true") != NULL;
    *reply = (struct fake_reply){.status = 200, .body = LIST};
    if (watch) {
        *reply =
            (struct fake_reply){.status = 200, .body = ADDED, .stream = true, .end = FAKE_HOLD};
        if (strstr(request->target, "sendInitialEvents") != NULL) {
            reply->body = STREAM;
        }
    } else if (strstr(request->target, "leases") != NULL) {
        reply->body = LEASE;
    }
}

struct server {
    struct fake_ca *ca;
    pid_t pid;
    int port;
};

static void server_open(struct server *server)
{
    int ends[2];
    *server = (struct server){.ca = fake_ca_new("torture CA")};
    CHECK_INT(pipe(ends), 0);
    server->pid = fork();
    if (server->pid == 0) {
        const struct fake_kube *fake =
            fake_kube_start(fake_server_context(server->ca, "IP:127.0.0.1", NULL), 0, answer, NULL);
        const int port = fake_kube_port(fake);
        const ssize_t sent = write(ends[1], &port, sizeof(port));
        while (sent == (ssize_t)sizeof(port)) {
            (void)pause();
        }
        _exit(1);
    }
    CHECK_INT(read(ends[0], &server->port, sizeof(server->port)), sizeof(server->port));
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void server_close(struct server *server)
{
    (void)kill(server->pid, SIGKILL);
    (void)waitpid(server->pid, NULL, 0);
    fake_ca_free(server->ca);
}

static struct weft_kube_config *config_of(const struct server *server)
{
    weft_autofree char *ca = weft_base64_encode(server->ca->pem, strlen(server->ca->pem));
    weft_autofree char *text =
        weft_asprintf("current-context: t\n"
                      "contexts: [{name: t, context: {cluster: c, user: u}}]\n"
                      "clusters: [{name: c, cluster: {server: \"https://127.0.0.1:%d\", "
                      "certificate-authority-data: \"%s\"}}]\n"
                      "users: [{name: u, user: {token: t}}]\n",
                      server->port, ca);
    struct weft_kube_config *config = NULL;
    CHECK_INT(weft_kube_config_parse(text, strlen(text), "t", NULL, &config, NULL), 0);
    return config;
}

/* A loop whose timer, made while there was memory, ends its run. */
struct bench {
    struct server server;
    struct weft_loop *loop;
    struct weft_timer *limit;
    int done, errors, synced;
    int last_code;
};

static void on_limit(void *data)
{
    const struct bench *bench = data;
    weft_loop_stop(bench->loop);
}

static void bench_open(struct bench *bench)
{
    *bench = (struct bench){0};
    server_open(&bench->server);
    CHECK_INT(weft_loop_new(&bench->loop, NULL), 0);
    CHECK_INT(weft_timer_new(bench->loop, on_limit, bench, &bench->limit, NULL), 0);
}

static void bench_close(struct bench *bench)
{
    weft_timer_free(bench->limit);
    weft_loop_free(bench->loop);
    server_close(&bench->server);
}

static void run_for(struct bench *bench, int64_t ms)
{
    weft_timer_start(bench->limit, ms * WEFT_NS_PER_MS, 0);
    weft_loop_run(bench->loop);
    weft_timer_stop(bench->limit);
}

static void on_done(void *data, const struct weft_kube_result *result)
{
    struct bench *bench = data;
    bench->done++;
    bench->last_code = result->error.code;
    weft_loop_stop(bench->loop);
}

/* One call with the nth allocation and all after it failing; whether any did fail. */
static bool call_starved(struct bench *bench, uint64_t nth)
{
    struct weft_kube_config *config = config_of(&bench->server);
    struct weft_kube_client *client = NULL;
    const struct weft_kube_op op = {.verb = WEFT_KUBE_CREATE,
                                    .path = "/x",
                                    .body = "{}",
                                    .body_len = 2,
                                    .timeout_ns = 5 * WEFT_NS_PER_S,
                                    .on_done = on_done,
                                    .data = bench};
    bench->done = 0;
    (void)weft_mem_fail_after(nth);
    int rc = weft_kube_client_new(bench->loop, config, "torture", &client, NULL);
    rc = rc < 0 ? rc : weft_kube_submit(client, &op, NULL, NULL);
    if (rc == 0) {
        run_for(bench, 10000);
    }
    const uint64_t asked = weft_mem_fail_after(0);
    CHECK(rc == 0 || rc == -ENOMEM);
    if (rc == 0 && CHECK_INT(bench->done, 1)) {
        CHECK(bench->last_code == 0 || asked >= nth);
    }
    weft_kube_client_free(client);
    return asked >= nth;
}

static void test_call(void)
{
    struct bench bench;
    bench_open(&bench);
    uint64_t nth = 1;
    while (call_starved(&bench, nth) && nth < 500) {
        nth++;
    }
    CHECK(nth > 20 && nth < 500);
    CHECK_INT(bench.last_code, 0); /* the last one had all it asked for */
    bench_close(&bench);
}

/* ---- a collection ---- */

static void on_object(void *data, enum weft_kube_change change,
                      const struct weft_kube_object *object)
{
    struct bench *bench = data;
    (void)change;
    if (strcmp(object->meta.name, "b") == 0) {
        bench->done++;
        weft_loop_stop(bench->loop);
    }
}

static void on_synced(void *data)
{
    struct bench *bench = data;
    bench->synced++;
}

static void on_error(void *data, const struct weft_error *error, int64_t retry_ns)
{
    struct bench *bench = data;
    (void)error;
    (void)retry_ns;
    bench->errors++;
    weft_loop_stop(bench->loop);
}

static bool follow_starved(struct bench *bench, uint64_t nth, bool pages)
{
    struct weft_kube_config *config = config_of(&bench->server);
    struct weft_kube_client *client = NULL;
    struct weft_kube_reflector *reflector = NULL;
    const struct weft_kube_reflector_options options = {
        .path = "/api/v1/nodes",
        .pages = pages,
        .backoff_min_ns = WEFT_NS_PER_MS,
        .backoff_max_ns = 2 * WEFT_NS_PER_MS,
        .seed = 1,
        .watcher = {NULL, on_object, on_synced, on_error, bench},
    };
    CHECK_INT(weft_kube_client_new(bench->loop, config, "torture", &client, NULL), 0);
    bench->done = bench->errors = bench->synced = 0;
    (void)weft_mem_fail_after(nth);
    const int rc = weft_kube_reflector_new(client, &options, &reflector, NULL);
    CHECK(rc == 0 || rc == -ENOMEM);
    if (rc == 0) {
        run_for(bench, 10000); /* to the first error, or through */
    }
    const uint64_t asked = weft_mem_fail_after(0);
    CHECK(rc < 0 || bench->errors > 0 || bench->done > 0);
    for (int i = 0; rc == 0 && bench->done == 0 && i < 100; i++) {
        run_for(bench, 1000); /* with memory it recovers by itself */
    }
    CHECK(rc < 0 || (bench->done > 0 && bench->synced > 0));
    weft_kube_reflector_free(reflector);
    weft_kube_client_free(client);
    return asked >= nth;
}

static void test_follow(void)
{
    struct bench bench;
    bench_open(&bench);
    for (int pages = 0; pages < 2; pages++) {
        uint64_t nth = 1;
        while (follow_starved(&bench, nth, pages != 0) && nth < 1000) {
            nth++;
        }
        CHECK(nth > 35 && nth < 1000);
    }
    bench_close(&bench);
}

/* ---- a Lease ---- */

static void on_acquired(void *data)
{
    struct bench *bench = data;
    bench->done++;
    weft_loop_stop(bench->loop);
}

static void on_lost(void *data)
{
    (void)data;
}

static void on_lease_error(void *data, const struct weft_error *error)
{
    on_error(data, error, 0);
}

static bool lease_starved(struct bench *bench, uint64_t nth)
{
    struct weft_kube_config *config = config_of(&bench->server);
    struct weft_kube_client *client = NULL;
    struct weft_kube_lease *lease = NULL;
    const struct weft_kube_lease_options options = {
        .ns = "n",
        .name = "l",
        .identity = "me",
        .renew_ns = WEFT_NS_PER_MS,
        .retry_ns = WEFT_NS_PER_MS,
        .on_acquired = on_acquired,
        .on_lost = on_lost,
        .on_error = on_lease_error,
        .data = bench,
    };
    CHECK_INT(weft_kube_client_new(bench->loop, config, "torture", &client, NULL), 0);
    bench->done = bench->errors = 0;
    (void)weft_mem_fail_after(nth);
    const int rc = weft_kube_lease_new(client, &options, &lease, NULL);
    CHECK(rc == 0 || rc == -ENOMEM);
    if (rc == 0) {
        run_for(bench, 10000);
    }
    const uint64_t asked = weft_mem_fail_after(0);
    for (int i = 0; rc == 0 && bench->done == 0 && i < 100; i++) {
        run_for(bench, 1000);
    }
    CHECK(rc < 0 || bench->done > 0);
    weft_kube_lease_free(lease);
    weft_kube_client_free(client);
    return asked >= nth;
}

static void test_lease(void)
{
    struct bench bench;
    bench_open(&bench);
    uint64_t nth = 1;
    while (lease_starved(&bench, nth) && nth < 1000) {
        nth++;
    }
    CHECK(nth > 50 && nth < 1000);
    bench_close(&bench);
}

WEFT_SUITE(kube_torture, {"call", test_call}, {"follow", test_follow}, {"lease", test_lease})
