/* SPDX-License-Identifier: Apache-2.0 */
/* Calls against a server over TLS: what goes out for each verb, what each answer becomes, and every
 * way in which an answer can fail to come. */
#include <errno.h>
#include <stdio.h>

#include "pkg/base/base64.h"
#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/json/json.h"
#include "pkg/kube/client.h"
#include "pkg/kube/config.h"
#include "pkg/loop/loop.h"
#include "tests/unit/fake_kube.h"
#include "tests/unit/unit.h"

#define LONG_ENOUGH (10 * WEFT_NS_PER_S)

/* What a call came to; texts copied out of the callback. */
struct outcome {
    bool done;
    int calls;
    int status;
    struct weft_error error;
    char reason[64];
    char name[64]; /* metadata.name of the body */
    int64_t retry_after_ns;
    bool unknown;
};

static void on_done(void *data, const struct weft_kube_result *result)
{
    struct outcome *o = data;
    o->done = true;
    o->calls++;
    o->status = result->status;
    o->error = result->error;
    o->retry_after_ns = result->retry_after_ns;
    o->unknown = result->outcome_unknown;
    (void)snprintf(o->reason, sizeof(o->reason), "%s", result->reason);
    const char *name =
        weft_json_string(weft_json_get(weft_json_get(result->body, "metadata"), "name"));
    (void)snprintf(o->name, sizeof(o->name), "%s", name != NULL ? name : "");
}

/* Runs one call to its end. */
static struct outcome call(struct fake_rig *rig, struct weft_kube_client *client,
                           struct weft_kube_op op)
{
    struct outcome o = {0};
    struct weft_error err = {0};
    op.on_done = on_done;
    op.data = &o;
    if (!CHECK_INT(weft_kube_submit(client, &op, NULL, &err), 0)) {
        (void)fprintf(stderr, "%s\n", err.message);
        return o;
    }
    CHECK(!o.done); /* never from inside submit */
    CHECK(weft_loop_run_until(rig->loop, &o.done, LONG_ENOUGH));
    return o;
}

static struct outcome get(struct fake_rig *rig, struct weft_kube_client *client)
{
    return call(rig, client, (struct weft_kube_op){.verb = WEFT_KUBE_GET, .path = "/api/v1/x"});
}

#define OBJECT "{\"metadata\":{\"name\":\"n\",\"resourceVersion\":\"5\"}}"
#define STATUS(code, reason, message)                                                              \
    "{\"kind\":\"Status\",\"code\":" code ",\"reason\":\"" reason "\",\"message\":\"" message "\"" \
    "}"

/* Each verb: the request line, media type and body that go out. */
static const struct verb_case {
    struct fake_step step;
    struct weft_kube_op op;
    const char *content_type, *body;
} verb_cases[] = {
    {{"GET /x/n?timeout=30000ms", {.status = 200, .body = OBJECT}},
     {.verb = WEFT_KUBE_GET, .path = "/x/n"},
     NULL,
     ""},
    {{"POST /x?fieldManager=weft-test&fieldValidation=Strict&timeout=4000ms",
      {.status = 201, .body = OBJECT}},
     {.verb = WEFT_KUBE_CREATE,
      .path = "/x",
      .body = "{\"a\":1}",
      .body_len = 7,
      .strict = true,
      .timeout_ns = 4 * WEFT_NS_PER_S},
     "application/json",
     "{\"a\":1}"},
    {{"PUT /x/n?fieldManager=m%2F1&dryRun=All&timeout=30000ms", {.status = 200, .body = OBJECT}},
     {.verb = WEFT_KUBE_REPLACE,
      .path = "/x/n",
      .body = "{}",
      .body_len = 2,
      .field_manager = "m/1",
      .dry_run = true},
     "application/json",
     "{}"},
    {{"DELETE /x/n?timeout=30000ms", {.status = 200, .body = OBJECT}},
     {.verb = WEFT_KUBE_DELETE, .path = "/x/n", .uid = "u-1", .resource_version = "7"},
     "application/json",
     "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":"
     "{\"uid\":\"u-1\",\"resourceVersion\":\"7\"}}"},
    {{"DELETE /x/n?timeout=30000ms", {.status = 200, .body = OBJECT}},
     {.verb = WEFT_KUBE_DELETE, .path = "/x/n", .dry_run = true},
     "application/json",
     "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"dryRun\":[\"All\"]}"},
    {{"PATCH /x/n?a=b&fieldManager=weft-test&force=true&timeout=30000ms",
      {.status = 200, .body = OBJECT}},
     {.verb = WEFT_KUBE_APPLY,
      .path = "/x/n",
      .query = "a=b",
      .body = "{}",
      .body_len = 2,
      .force = true},
     "application/apply-patch+yaml",
     "{}"},
    {{"PATCH /x/n?fieldManager=weft-test&timeout=30000ms",
      {.status = 200, .body = OBJECT, .piece = 1, .stream = true}},
     {.verb = WEFT_KUBE_MERGE_PATCH, .path = "/x/n", .body = "{}", .body_len = 2},
     "application/merge-patch+json",
     "{}"},
};

static void test_verbs(void)
{
    struct fake_step steps[WEFT_ARRAY_LEN(verb_cases)];
    for (size_t i = 0; i < WEFT_ARRAY_LEN(verb_cases); i++) {
        steps[i] = verb_cases[i].step;
    }
    struct fake_script script;
    fake_script_init(&script, steps, WEFT_ARRAY_LEN(steps));
    struct fake_rig rig;
    fake_rig_open(&rig, fake_script_answer, &script);
    for (size_t i = 0; i < WEFT_ARRAY_LEN(verb_cases); i++) {
        const struct verb_case *c = &verb_cases[i];
        const struct outcome o = call(&rig, rig.client, c->op);
        struct fake_seen seen;
        (void)fake_script_seen(&script, &seen);
        CHECK_INT(o.status, c->step.reply.status);
        CHECK_INT(o.error.code, 0);
        CHECK_STR(o.name, "n");
        CHECK(!o.unknown);
        CHECK_STR(seen.body, c->body);
        CHECK_CONTAINS(seen.headers, "\r\nAuthorization: Bearer token-1\r\n");
        CHECK_CONTAINS(seen.headers, "\r\nAccept: application/json\r\n");
        CHECK_CONTAINS(seen.headers, "\r\nUser-Agent: weft-test/" WEFT_VERSION "\r\n");
        CHECK(strstr(seen.headers, "Expect:") == NULL);
        char type[64];
        (void)snprintf(type, sizeof(type), "\r\nContent-Type: %s\r\n",
                       c->content_type != NULL ? c->content_type : "");
        CHECK_INT(strstr(seen.headers, type) != NULL, c->content_type != NULL);
    }
    CHECK_INT(fake_script_unexpected(&script), 0);
    struct weft_kube_stats stats;
    weft_kube_client_stats(rig.client, &stats);
    CHECK_INT(stats.requests, WEFT_ARRAY_LEN(verb_cases));
    CHECK_INT(stats.writes, WEFT_ARRAY_LEN(verb_cases) - 1);
    CHECK_INT(stats.connections, 1);
    fake_rig_close(&rig);
    fake_script_done(&script);
}

static const struct status_case {
    struct fake_step step;
    int code;
    bool retryable, unknown_write;
    const char *reason, *message;
} status_cases[] = {
    {{"PUT", {.status = 400, .body = STATUS("400", "BadRequest", "no")}},
     -EINVAL,
     false,
     false,
     "BadRequest",
     "PUT /x: 400 BadRequest: no"},
    {{"PUT", {.status = 422, .body = STATUS("422", "Invalid", "spec")}},
     -EINVAL,
     false,
     false,
     "Invalid",
     "422 Invalid: spec"},
    {{"PUT", {.status = 403, .body = STATUS("403", "Forbidden", "rbac")}},
     -EACCES,
     false,
     false,
     "Forbidden",
     "rbac"},
    {{"PUT", {.status = 404, .body = "404 page not found\nmore", .type = "text/plain"}},
     -ENOENT,
     false,
     false,
     "",
     "PUT /x: 404 404 page not found"},
    {{"PUT", {.status = 409, .body = STATUS("409", "Conflict", "rv")}},
     -ESTALE,
     false,
     false,
     "Conflict",
     "409 Conflict: rv"},
    {{"PUT", {.status = 409, .body = STATUS("409", "AlreadyExists", "x")}},
     -EEXIST,
     false,
     false,
     "AlreadyExists",
     "AlreadyExists: x"},
    {{"PUT", {.status = 410, .body = STATUS("410", "Expired", "old")}},
     -ESTALE,
     false,
     false,
     "Expired",
     "410 Expired: old"},
    {{"PUT", {.status = 413, .body = STATUS("413", "RequestEntityTooLarge", "big")}},
     -EFBIG,
     false,
     false,
     "RequestEntityTooLarge",
     "big"},
    {{"PUT",
      {.status = 429,
       .headers = "Retry-After: 7\r\n",
       .body = STATUS("429", "TooManyRequests", "later")}},
     -EAGAIN,
     true,
     false,
     "TooManyRequests",
     "later"},
    {{"PUT", {.status = 500, .body = STATUS("500", "InternalError", "hook")}},
     -EIO,
     true,
     true,
     "InternalError",
     "hook"},
    {{"PUT", {.status = 503, .body = "<html>\x1b[31m</html>", .type = "text/html"}},
     -EIO,
     true,
     true,
     "",
     "PUT /x: 503 <html>"},
    {{"PUT", {.status = 504, .body = STATUS("504", "Timeout", "slow")}},
     -ETIMEDOUT,
     true,
     true,
     "Timeout",
     "slow"},
    {{"PUT", {.status = 302, .headers = "Location: /elsewhere\r\n", .body = ""}},
     -EIO,
     false,
     false,
     "",
     "PUT /x: 302"},
};

static void test_statuses(void)
{
    for (size_t i = 0; i < WEFT_ARRAY_LEN(status_cases); i++) {
        struct fake_script script;
        fake_script_init(&script, &status_cases[i].step, 1);
        struct fake_rig rig;
        fake_rig_open(&rig, fake_script_answer, &script);
        const struct outcome o =
            call(&rig, rig.client,
                 (struct weft_kube_op){
                     .verb = WEFT_KUBE_REPLACE, .path = "/x", .body = "{}", .body_len = 2});
        CHECK_INT(o.status, status_cases[i].step.reply.status);
        CHECK_INT(o.error.code, status_cases[i].code);
        CHECK_INT(o.error.domain, WEFT_ERR_HTTP);
        CHECK_INT(o.error.domain_code, status_cases[i].step.reply.status);
        CHECK_INT(o.error.retryable, status_cases[i].retryable);
        CHECK_INT(o.unknown, status_cases[i].unknown_write);
        CHECK_STR(o.reason, status_cases[i].reason);
        CHECK_CONTAINS(o.error.message, status_cases[i].message);
        CHECK(strchr(o.error.message, '\x1b') == NULL);
        CHECK_INT(o.retry_after_ns, o.status == 429 ? 7 * WEFT_NS_PER_S : 0);
        CHECK_INT(fake_script_seen(&script, NULL), 1); /* no retry, no redirect of its own */
        fake_rig_close(&rig);
        fake_script_done(&script);
    }
}

/* ---- answers that do not come whole ---- */

static void test_cut_and_garbage(void)
{
    static const struct fake_step steps[] = {
        {"PUT", {.status = 200, .body = OBJECT, .end = FAKE_CUT}},
        {"PUT", {.status = 200, .body = "{\"metadata\":{\"name\":", .end = FAKE_DONE}},
        {"PUT", {.status = 200, .body = "{}", .end = FAKE_HOLD}},
        {"PUT", {.status = 200, .body = OBJECT}},
    };
    struct fake_script script;
    fake_script_init(&script, steps, WEFT_ARRAY_LEN(steps));
    struct fake_rig rig;
    fake_rig_open(&rig, fake_script_answer, &script);
    const struct weft_kube_op put = {.verb = WEFT_KUBE_REPLACE,
                                     .path = "/x",
                                     .body = "{}",
                                     .body_len = 2,
                                     .timeout_ns = 300 * WEFT_NS_PER_MS};
    struct outcome o = call(&rig, rig.client, put);
    CHECK_INT(o.error.code, -EIO);
    CHECK_INT(o.error.domain, WEFT_ERR_CURL);
    CHECK(o.error.retryable && o.unknown);
    o = call(&rig, rig.client, put);
    CHECK_INT(o.error.code, -EBADMSG);
    CHECK(o.unknown);
    const int64_t start = weft_clock_monotonic(weft_clock_system());
    o = call(&rig, rig.client, put);
    const int64_t took = weft_clock_monotonic(weft_clock_system()) - start;
    CHECK_INT(o.error.code, -ETIMEDOUT);
    CHECK(o.error.retryable && o.unknown);
    CHECK(took >= 290 * WEFT_NS_PER_MS && took < 3 * WEFT_NS_PER_S);
    /* the connection that went silent is not used again */
    o = call(&rig, rig.client, put);
    CHECK_INT(o.status, 200);
    CHECK(!o.unknown);
    fake_rig_close(&rig);
    fake_script_done(&script);
}

static void test_body_caps(void)
{
    const size_t len = WEFT_KUBE_BODY_MAX + 1;
    char *big = weft_malloc(len);
    CHECK(big != NULL);
    if (big == NULL) {
        return;
    }
    memset(big, ' ', len);
    /* without Content-Length, in pieces: the cap is counted, not believed */
    const struct fake_step steps[] = {
        {"GET", {.status = 200, .body = big, .body_len = len, .stream = true}},
        {"GET", {.status = 500, .body = big, .body_len = len}},
        {"GET", {.status = 200, .body = OBJECT}},
    };
    struct fake_script script;
    fake_script_init(&script, steps, WEFT_ARRAY_LEN(steps));
    struct fake_rig rig;
    fake_rig_open(&rig, fake_script_answer, &script);
    struct outcome o = get(&rig, rig.client);
    CHECK_INT(o.error.code, -EFBIG);
    CHECK_CONTAINS(o.error.message, "GET /api/v1/x: the answer is over 8388608 bytes");
    o = get(&rig, rig.client);
    CHECK_INT(o.error.code, -EIO); /* of an error's body the beginning is kept */
    CHECK_INT(o.status, 500);
    o = get(&rig, rig.client);
    CHECK_INT(o.status, 200);
    /* and of a request's body */
    const struct weft_kube_op op = {
        .verb = WEFT_KUBE_CREATE, .path = "/x", .body = big, .body_len = WEFT_KUBE_REQUEST_MAX + 1};
    CHECK_INT(weft_kube_submit(rig.client, &op, NULL, NULL), -EFBIG);
    fake_rig_close(&rig);
    fake_script_done(&script);
    weft_free(big);
}

/* ---- who we talk to ---- */

static void answer_always(void *data, const struct fake_request *request, struct fake_reply *reply)
{
    _Atomic unsigned *count = data;
    (void)request;
    (*count)++;
    *reply = (struct fake_reply){.status = 200, .body = OBJECT};
}

static void check_refused(struct fake_rig *rig, struct weft_kube_client *client,
                          const char *message)
{
    const struct outcome o = get(rig, client);
    CHECK_INT(o.error.code, -EPROTO);
    CHECK_INT(o.error.domain, WEFT_ERR_CURL);
    CHECK(!o.error.retryable);
    CHECK_CONTAINS(o.error.message, message);
    weft_kube_client_free(client);
}

static void test_tls(void)
{
    _Atomic unsigned count = 0;
    struct fake_rig rig;
    fake_rig_open(&rig, answer_always, &count);
    /* a certificate from another CA */
    struct fake_ca *other = fake_ca_new("another CA");
    struct fake_ca *ours = rig.ca;
    rig.ca = other;
    check_refused(&rig, fake_rig_client(&rig, NULL, "", "token: t"), "certificate");
    rig.ca = ours;
    /* a name that the certificate does not have */
    char url[64];
    (void)snprintf(url, sizeof(url), "https://localhost:%d", fake_kube_port(rig.fake));
    check_refused(&rig, fake_rig_client(&rig, url, "", "token: t"), "localhost");
    /* no CA at all: the machine's do not know this one */
    check_refused(&rig,
                  fake_rig_client(&rig, NULL, ", certificate-authority-data: \"\"", "token: t"),
                  "certificate");
    CHECK_INT(count, 0);

    /* verification is off where the kubeconfig says so, with a warning */
    struct weft_kube_client *lax =
        fake_rig_client(&rig, url, ", insecure-skip-tls-verify: true", "token: t");
    CHECK_CONTAINS(weft_kube_config_warning(weft_kube_client_config(lax)), "not verified");
    struct outcome o = get(&rig, lax);
    CHECK_INT(o.status, 200);
    weft_kube_client_free(lax);
    CHECK_INT(count, 1);

    /* TLS does not answer on a plain port */
    struct fake_kube *plain = fake_kube_start(NULL, 0, answer_always, &count);
    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%d", fake_kube_port(plain));
    struct weft_kube_client *client = fake_rig_client(&rig, url, "", "token: t");
    o = call(&rig, client,
             (struct weft_kube_op){
                 .verb = WEFT_KUBE_GET, .path = "/x", .timeout_ns = 300 * WEFT_NS_PER_MS});
    CHECK_INT(o.error.domain, WEFT_ERR_CURL);
    weft_kube_client_free(client);
    /* http:// is for loopback and works there */
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%d", fake_kube_port(plain));
    client = fake_rig_client(&rig, url, "", "token: t");
    o = get(&rig, client);
    CHECK_INT(o.status, 200);
    weft_kube_client_free(client);
    fake_kube_stop(plain);
    fake_rig_close(&rig);
    fake_ca_free(other);
}

static void test_server_name(void)
{
    _Atomic unsigned count = 0;
    struct fake_rig rig;
    fake_rig_open(&rig, answer_always, &count);
    struct fake_kube *named = fake_kube_start(fake_server_context(rig.ca, "DNS:api.example", NULL),
                                              0, answer_always, &count);
    char url[64];
    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%d", fake_kube_port(named));
    check_refused(&rig, fake_rig_client(&rig, url, "", "token: t"), "127.0.0.1");
    struct weft_kube_client *client =
        fake_rig_client(&rig, url, ", tls-server-name: api.example", "token: t");
    const struct outcome o = get(&rig, client);
    CHECK_INT(o.status, 200);
    CHECK_INT(count, 1);
    weft_kube_client_free(client);
    fake_kube_stop(named);
    fake_rig_close(&rig);
}

static void test_client_certificate(void)
{
    _Atomic unsigned count = 0;
    struct fake_rig rig;
    fake_rig_open(&rig, answer_always, &count);
    struct fake_ca *users = fake_ca_new("users");
    char *cert = NULL;
    char *key = NULL;
    fake_client_pair(users, "weft", &cert, &key);
    weft_autofree char *cert64 = weft_base64_encode(cert, strlen(cert));
    weft_autofree char *key64 = weft_base64_encode(key, strlen(key));
    weft_autofree char *user =
        weft_asprintf("client-certificate-data: \"%s\", client-key-data: \"%s\"", cert64, key64);
    struct fake_kube *strict = fake_kube_start(fake_server_context(rig.ca, "IP:127.0.0.1", users),
                                               0, answer_always, &count);
    char url[64];
    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%d", fake_kube_port(strict));
    struct weft_kube_client *client = fake_rig_client(&rig, url, "", user);
    struct outcome o = get(&rig, client);
    CHECK_INT(o.status, 200);
    weft_kube_client_free(client);
    client = fake_rig_client(&rig, url, "", "token: t");
    o = get(&rig, client);
    CHECK_INT(o.error.domain, WEFT_ERR_CURL); /* no certificate, no answer */
    CHECK_INT(count, 1);
    weft_kube_client_free(client);
    fake_kube_stop(strict);
    weft_free(cert);
    weft_free(key);
    fake_ca_free(users);
    fake_rig_close(&rig);
}

static void test_nobody_there(void)
{
    _Atomic unsigned count = 0;
    struct fake_rig rig;
    fake_rig_open(&rig, answer_always, &count);
    struct fake_kube *gone = fake_kube_start(NULL, 0, answer_always, &count);
    char url[64];
    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%d", fake_kube_port(gone));
    fake_kube_stop(gone);
    struct weft_kube_client *client = fake_rig_client(&rig, url, "", "token: t");
    const struct outcome o = call(
        &rig, client,
        (struct weft_kube_op){.verb = WEFT_KUBE_CREATE, .path = "/x", .body = "{}", .body_len = 2});
    CHECK_INT(o.error.code, -ECONNREFUSED);
    CHECK(o.error.retryable);
    CHECK(!o.unknown); /* the write never left */
    struct weft_kube_stats stats;
    weft_kube_client_stats(client, &stats);
    CHECK_INT(stats.failed, 1);
    weft_kube_client_free(client);
    fake_rig_close(&rig);
}

/* ---- tokens ---- */

static void test_token_rotation(void)
{
    static const struct fake_step steps[] = {
        {"GET", {.status = 401, .body = STATUS("401", "Unauthorized", "expired")}},
        {"GET", {.status = 200, .body = OBJECT}},
        {"GET", {.status = 401, .body = STATUS("401", "Unauthorized", "revoked")}},
    };
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/token", weft_test_dir());
    char user[160];
    (void)snprintf(user, sizeof(user), "tokenFile: \"%s\"", path);
    CHECK_INT(weft_file_replace(path, "old\n", 4, 0600, NULL), 0);
    struct fake_script script;
    fake_script_init(&script, steps, WEFT_ARRAY_LEN(steps));
    struct fake_rig rig;
    fake_rig_open(&rig, fake_script_answer, &script);
    struct weft_kube_client *client = fake_rig_client(&rig, NULL, "", user);
    CHECK_INT(weft_file_replace(path, "new\n", 4, 0600, NULL), 0);
    struct outcome o = get(&rig, client);
    CHECK_INT(o.error.code, -EACCES);
    CHECK(o.error.retryable); /* another token is in the file */
    o = get(&rig, client);
    struct fake_seen seen;
    (void)fake_script_seen(&script, &seen);
    CHECK_INT(o.status, 200);
    CHECK_CONTAINS(seen.headers, "\r\nAuthorization: Bearer new\r\n");
    o = get(&rig, client);
    CHECK_INT(o.status, 401);
    CHECK(!o.error.retryable); /* the same token would be refused again */
    weft_kube_client_free(client);
    fake_rig_close(&rig);
    fake_script_done(&script);
}

/* ---- life ---- */

struct chain {
    struct fake_rig *rig;
    struct weft_kube_call *other;
    struct outcome first, second;
};

/* Cancels another call and starts a new one from inside a callback. */
static void on_first(void *data, const struct weft_kube_result *result)
{
    struct chain *chain = data;
    on_done(&chain->first, result);
    weft_kube_call_cancel(chain->other);
    const struct weft_kube_op op = {
        .verb = WEFT_KUBE_GET, .path = "/second", .on_done = on_done, .data = &chain->second};
    CHECK_INT(weft_kube_submit(chain->rig->client, &op, NULL, NULL), 0);
}

static void answer_by_path(void *data, const struct fake_request *request, struct fake_reply *reply)
{
    (void)data;
    *reply = (struct fake_reply){.status = 200, .body = OBJECT};
    if (strncmp(request->target, "/silent", 7) == 0) {
        *reply = (struct fake_reply){.end = FAKE_HOLD};
    }
}

static void test_cancel(void)
{
    struct fake_rig rig;
    fake_rig_open(&rig, answer_by_path, NULL);
    struct chain chain = {.rig = &rig};
    struct outcome silent = {0};
    struct weft_kube_op op = {
        .verb = WEFT_KUBE_GET, .path = "/silent", .on_done = on_done, .data = &silent};
    CHECK_INT(weft_kube_submit(rig.client, &op, &chain.other, NULL), 0);
    op = (struct weft_kube_op){
        .verb = WEFT_KUBE_GET, .path = "/first", .on_done = on_first, .data = &chain};
    CHECK_INT(weft_kube_submit(rig.client, &op, NULL, NULL), 0);
    CHECK(weft_loop_run_until(rig.loop, &chain.second.done, LONG_ENOUGH));
    CHECK_INT(chain.first.status, 200);
    CHECK_INT(chain.second.status, 200);
    /* cancelled before it was even started, and under way when the client goes */
    struct weft_kube_call *unstarted = NULL;
    op = (struct weft_kube_op){
        .verb = WEFT_KUBE_GET, .path = "/silent", .on_done = on_done, .data = &silent};
    CHECK_INT(weft_kube_submit(rig.client, &op, &unstarted, NULL), 0);
    weft_kube_call_cancel(unstarted);
    CHECK_INT(weft_kube_submit(rig.client, &op, NULL, NULL), 0);
    bool never = false;
    (void)weft_loop_run_until(rig.loop, &never, 50 * WEFT_NS_PER_MS);
    fake_rig_close(&rig);
    CHECK_INT(silent.calls, 0);
}

static void test_many(void)
{
    _Atomic unsigned count = 0;
    struct fake_rig rig;
    fake_rig_open(&rig, answer_always, &count);
    struct outcome o[40] = {0};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(o); i++) {
        const struct weft_kube_op op = {
            .verb = WEFT_KUBE_GET, .path = "/x", .on_done = on_done, .data = &o[i]};
        CHECK_INT(weft_kube_submit(rig.client, &op, NULL, NULL), 0);
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(o); i++) {
        CHECK(weft_loop_run_until(rig.loop, &o[i].done, LONG_ENOUGH));
        CHECK_INT(o[i].status, 200);
    }
    CHECK_INT(count, 40);
    /* and no more than the cap at once */
    int rc = 0;
    for (size_t i = 0; rc == 0 && i <= WEFT_KUBE_CALLS_MAX; i++) {
        const struct weft_kube_op op = {.verb = WEFT_KUBE_GET, .path = "/x"};
        rc = weft_kube_submit(rig.client, &op, NULL, NULL);
        CHECK(rc == 0 || i == WEFT_KUBE_CALLS_MAX);
    }
    CHECK_INT(rc, -EBUSY);
    fake_rig_close(&rig);
}

static void test_server_restart(void)
{
    _Atomic unsigned count = 0;
    struct fake_rig rig;
    fake_rig_open(&rig, answer_always, &count);
    CHECK_INT(get(&rig, rig.client).status, 200);
    const int port = fake_kube_port(rig.fake);
    fake_kube_stop(rig.fake);
    struct outcome o = get(&rig, rig.client);
    CHECK(o.error.code < 0 && o.error.retryable);
    rig.fake = fake_kube_start(fake_server_context(rig.ca, "IP:127.0.0.1", NULL), port,
                               answer_always, &count);
    o = get(&rig, rig.client);
    CHECK_INT(o.status, 200);
    fake_rig_close(&rig);
}

static void test_paths(void)
{
    static const struct {
        const struct weft_kube_resource *resource;
        const char *ns, *name, *expected;
    } cases[] = {
        {&weft_kube_nodes, NULL, NULL, "/api/v1/nodes"},
        {&weft_kube_nodes, NULL, "a.b-c", "/api/v1/nodes/a.b-c"},
        {&weft_kube_hypernodes, NULL, "h", "/apis/topology.volcano.sh/v1alpha1/hypernodes/h"},
        {&weft_kube_leases, "ns", "l", "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l"},
        {&weft_kube_nodes, NULL, "../x?y=%", "/api/v1/nodes/..%2Fx%3Fy%3D%25"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
        weft_autofree char *path = weft_kube_path(cases[i].resource, cases[i].ns, cases[i].name);
        CHECK_STR(path, cases[i].expected);
    }
}

WEFT_SUITE(kube_client, {"verbs", test_verbs}, {"statuses", test_statuses},
           {"cut_and_garbage", test_cut_and_garbage}, {"body_caps", test_body_caps},
           {"tls", test_tls}, {"server_name", test_server_name},
           {"client_certificate", test_client_certificate}, {"nobody_there", test_nobody_there},
           {"token_rotation", test_token_rotation}, {"cancel", test_cancel}, {"many", test_many},
           {"server_restart", test_server_restart}, {"paths", test_paths})
