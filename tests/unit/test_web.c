/* SPDX-License-Identifier: Apache-2.0 */
/* The small HTTPS client, against a server of the test's own on the loopback: who it believes, what
 * it sends, and what it makes of answers that are cut, slow or endless. */
#include "pkg/web/web.h"

#include <errno.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/base64.h"
#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/base/secret.h"
#include "pkg/loop/loop.h"
#include "tests/unit/fake_kube.h"
#include "tests/unit/unit.h"

#define LONG_ENOUGH (10 * WEFT_NS_PER_S)
enum { BODY_MAX = 1000 };

struct bench {
    struct weft_loop *loop;
    struct fake_ca *ca;
    struct fake_kube *fake;
    struct fake_script script;
    char ca_file[300], pin[80], base[80];
    struct weft_web *web;
    /* the last answer */
    bool done;
    int status, code;
    char body[BODY_MAX + 1], message[WEFT_ERROR_MESSAGE_MAX];
    int64_t retry_after_ns;
    bool retryable;
};

static void make_pin(SSL_CTX *tls, char pin[80])
{
    unsigned char *der = NULL;
    unsigned char hash[SHA256_DIGEST_LENGTH];
    const int len = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(SSL_CTX_get0_certificate(tls)), &der);
    CHECK(len > 0);
    (void)SHA256(der, (size_t)len, hash);
    OPENSSL_free(der);
    weft_autofree char *text = weft_base64_encode((const char *)hash, sizeof(hash));
    (void)snprintf(pin, 80, "sha256//%s", text);
}

static void open_web(struct bench *b, const char *ca_file, const char *pin)
{
    weft_web_free(b->web);
    b->web = NULL;
    const struct weft_web_options options = {
        .base = b->base, .user_agent = "weft/test", .ca_file = ca_file, .pin = pin};
    CHECK_INT(weft_web_new(b->loop, &options, &b->web, NULL), 0);
}

static void up(struct bench *b, const char *san, const struct fake_step *steps, size_t count)
{
    *b = (struct bench){.ca = fake_ca_new("ufm-ca")};
    CHECK_INT(weft_loop_new(&b->loop, NULL), 0);
    fake_script_init(&b->script, steps, count);
    SSL_CTX *tls = fake_server_context(b->ca, san, NULL);
    make_pin(tls, b->pin);
    b->fake = fake_kube_start(tls, 0, fake_script_answer, &b->script);
    (void)snprintf(b->base, sizeof(b->base), "https://127.0.0.1:%d", fake_kube_port(b->fake));
    (void)snprintf(b->ca_file, sizeof(b->ca_file), "%s/web-ca.pem", weft_test_dir());
    CHECK_INT(weft_file_replace(b->ca_file, b->ca->pem, strlen(b->ca->pem), 0600, NULL), 0);
    open_web(b, b->ca_file, NULL);
}

static void down(struct bench *b)
{
    weft_web_free(b->web);
    fake_kube_stop(b->fake);
    CHECK_INT(fake_script_unexpected(&b->script), 0);
    fake_script_done(&b->script);
    fake_ca_free(b->ca);
    weft_loop_free(b->loop);
}

static void on_done(void *data, const struct weft_web_answer *answer)
{
    struct bench *b = data;
    b->done = true;
    b->status = answer->status;
    b->code = answer->error.code;
    b->retryable = answer->error.retryable;
    b->retry_after_ns = answer->retry_after_ns;
    (void)snprintf(b->body, sizeof(b->body), "%s", answer->body);
    (void)snprintf(b->message, sizeof(b->message), "%s", answer->error.message);
}

/* One request; its answer is in b. */
static void ask(struct bench *b, struct weft_web_request request)
{
    struct weft_web_get *get = NULL;
    request.body_max = BODY_MAX;
    request.timeout_ns = request.timeout_ns > 0 ? request.timeout_ns : LONG_ENOUGH;
    request.on_done = on_done;
    request.data = b;
    b->done = false;
    CHECK_INT(weft_web_start(b->web, &request, &get, NULL), 0);
    CHECK(weft_loop_run_until(b->loop, &b->done, LONG_ENOUGH));
}

static void get(struct bench *b, const char *path)
{
    ask(b, (struct weft_web_request){.path = path});
}

#define UP(b, san, steps) up(b, san, steps, WEFT_ARRAY_LEN(steps))

/* ---- who is believed ---- */

static void a_server_with_a_good_certificate_is_believed(void)
{
    static const struct fake_step steps[] = {{"GET /a?b=c", {.status = 200, .body = "[1]"}},
                                             {"GET /a", {.status = 200, .body = "[2]"}},
                                             {"GET /a", {.status = 200, .body = "[3]"}}};
    struct bench b;
    UP(&b, "IP:127.0.0.1", steps);
    get(&b, "/a?b=c");
    CHECK_INT(b.status, 200);
    CHECK_INT(b.code, 0);
    CHECK_STR(b.body, "[1]");
    open_web(&b, b.ca_file, b.pin); /* both */
    get(&b, "/a");
    CHECK_STR(b.body, "[2]");
    open_web(&b, NULL, b.pin); /* the key alone, as for a self-signed certificate */
    get(&b, "/a");
    CHECK_STR(b.body, "[3]");
    down(&b);
}

static void others_are_not(void)
{
    static const struct fake_step none[] = {{"GET /never", {.status = 200}}};
    static const char wrong[] = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    struct bench b;
    UP(&b, "DNS:other.example.com", none);
    get(&b, "/x"); /* the name is another's */
    CHECK_INT(b.code, -EPROTO);
    CHECK_INT(b.status, 0);
    open_web(&b, NULL, NULL); /* the machine's authorities do not know this one */
    get(&b, "/x");
    CHECK_INT(b.code, -EPROTO);
    CHECK(!b.retryable);
    open_web(&b, NULL, wrong);
    get(&b, "/x");
    CHECK_INT(b.code, -EPROTO);
    CHECK_CONTAINS(b.message, "public key is not the pinned one");
    open_web(&b, b.ca_file, b.pin); /* with a CA file the name must be right too */
    get(&b, "/x");
    CHECK_INT(b.code, -EPROTO);
    weft_autofree char *not_pem = weft_asprintf("%s/web-not.pem", weft_test_dir());
    CHECK_INT(weft_file_replace(not_pem, "x", 1, 0600, NULL), 0);
    open_web(&b, not_pem, NULL);
    get(&b, "/x");
    CHECK_INT(b.code, -EPROTO);
    CHECK_CONTAINS(b.message, "web-not.pem");
    CHECK_INT(fake_script_seen(&b.script, NULL), 0); /* nothing was sent to any of them */
    down(&b);
}

/* ---- what is sent ---- */

static void identities_are_headers_and_forms(void)
{
    static const struct fake_step steps[] = {{"GET /basic", {.status = 200}},
                                             {"GET /token", {.status = 200}},
                                             {"POST /login", {.status = 200}}};
    struct bench b;
    struct fake_seen seen;
    weft_auto(weft_secret_done) struct weft_secret user = {0};
    weft_auto(weft_secret_done) struct weft_secret password = {0};
    CHECK_INT(weft_secret_set(&user, "reader", 6), 0);
    CHECK_INT(weft_secret_set(&password, "p&ss=w rd", 9), 0);
    UP(&b, "IP:127.0.0.1", steps);
    ask(&b, (struct weft_web_request){
                .path = "/basic", .scheme = "Basic", .user = &user, .password = &password});
    CHECK_INT(fake_script_seen(&b.script, &seen), 1);
    /* printf '%s' 'reader:p&ss=w rd' | base64 */
    CHECK_CONTAINS(seen.headers, "Authorization: Basic cmVhZGVyOnAmc3M9dyByZA==");
    ask(&b, (struct weft_web_request){.path = "/token", .scheme = "Basic", .token = &user});
    (void)fake_script_seen(&b.script, &seen);
    CHECK_CONTAINS(seen.headers, "Authorization: Basic reader\r\n");
    static const char *const names[] = {"httpd_username", "httpd_password", NULL};
    const struct weft_secret *const values[] = {&user, &password};
    ask(&b,
        (struct weft_web_request){.path = "/login", .form_names = names, .form_values = values});
    (void)fake_script_seen(&b.script, &seen);
    CHECK_STR(seen.body, "httpd_username=reader&httpd_password=p%26ss%3Dw%20rd");
    CHECK_CONTAINS(seen.headers, "application/x-www-form-urlencoded");
    CHECK(strstr(seen.headers, "Authorization") == NULL);
    down(&b);
}

static void a_session_lasts_until_it_is_forgotten(void)
{
    static const struct fake_step steps[] = {{"POST /login",
                                              {.status = 302,
                                               .headers = "Set-Cookie: sid=abc; Path=/; Secure\r\n"
                                                          "Location: /elsewhere\r\n"}},
                                             {"GET /one", {.status = 200}},
                                             {"GET /two", {.status = 200}}};
    static const char *const names[] = {NULL};
    struct bench b;
    struct fake_seen seen;
    UP(&b, "IP:127.0.0.1", steps);
    ask(&b, (struct weft_web_request){.path = "/login", .form_names = names});
    CHECK_INT(b.status, 302); /* not followed */
    get(&b, "/one");
    (void)fake_script_seen(&b.script, &seen);
    CHECK_CONTAINS(seen.headers, "Cookie: sid=abc");
    weft_web_forget(b.web);
    get(&b, "/two");
    (void)fake_script_seen(&b.script, &seen);
    CHECK(strstr(seen.headers, "Cookie:") == NULL);
    down(&b);
}

/* ---- answers ---- */

static void other_answers_are_errors(void)
{
    static char endless[BODY_MAX + 1000];
    memset(endless, 'x', sizeof(endless) - 1);
    const struct fake_step steps[] = {
        {"GET /1", {.status = 401, .body = "who are you\nmore"}},
        {"GET /2", {.status = 503, .headers = "Retry-After: 7\r\n", .body = "\x1b[31mred"}},
        {"GET /3", {.status = 200, .body = "[1, 2", .end = FAKE_CUT, .stream = true}},
        {"GET /4", {.status = 200, .body = endless, .stream = true, .end = FAKE_HOLD}},
        {"GET /5", {.status = 200, .body = "[", .stream = true, .end = FAKE_HOLD}},
        {"GET /6", {.status = 302, .headers = "Location: http://127.0.0.1/\r\n"}},
        {"GET /7", {.status = 200, .body = "[]"}},
    };
    struct bench b;
    UP(&b, "IP:127.0.0.1", steps);
    get(&b, "/1");
    CHECK_INT(b.code, -EACCES);
    CHECK_CONTAINS(b.message, "/1: 401 who are you");
    CHECK(strstr(b.message, "more") == NULL && !b.retryable);
    get(&b, "/2");
    CHECK_INT(b.code, -EIO);
    CHECK(b.retryable && strchr(b.message, '\x1b') == NULL);
    CHECK_INT(b.retry_after_ns, 7 * WEFT_NS_PER_S);
    get(&b, "/3");
    CHECK_INT(b.code, -EIO);
    get(&b, "/4");
    CHECK_INT(b.code, -EFBIG);
    CHECK_CONTAINS(b.message, "larger than the cap of 1000 bytes");
    ask(&b, (struct weft_web_request){.path = "/5", .timeout_ns = 300 * WEFT_NS_PER_MS});
    CHECK_INT(b.code, -ETIMEDOUT);
    get(&b, "/6");
    CHECK_INT(b.code, -EIO);
    CHECK_INT(b.status, 302);
    get(&b, "/7"); /* on a new connection: the old one hangs */
    CHECK_INT(b.code, 0);
    down(&b);
}

static void a_cancelled_request_is_not_heard_of(void)
{
    static const struct fake_step steps[] = {{"GET /hold", {.status = 0, .end = FAKE_HOLD}}};
    struct bench b;
    UP(&b, "IP:127.0.0.1", steps);
    struct weft_web_get *get_it = NULL;
    const struct weft_web_request request = {.path = "/hold",
                                             .body_max = BODY_MAX,
                                             .timeout_ns = LONG_ENOUGH,
                                             .on_done = on_done,
                                             .data = &b};
    CHECK_INT(weft_web_start(b.web, &request, &get_it, NULL), 0);
    CHECK(fake_script_wait(&b.script, b.loop, LONG_ENOUGH));
    weft_web_cancel(get_it);
    CHECK_INT(weft_web_start(b.web, &request, &get_it, NULL), 0);
    weft_web_free(b.web); /* and with the client */
    b.web = NULL;
    const bool never = false;
    (void)weft_loop_run_until(b.loop, &never, 20 * WEFT_NS_PER_MS);
    CHECK(!b.done);
    down(&b);
}

static void every_failing_allocation_is_an_error(void)
{
    struct bench b;
    static const struct fake_step none[] = {{"GET /never", {.status = 200}}};
    weft_auto(weft_secret_done) struct weft_secret text = {0};
    static const char *const names[] = {"a", NULL};
    const struct weft_secret *const values[] = {&text};
    CHECK_INT(weft_secret_set(&text, "x", 1), 0);
    UP(&b, "IP:127.0.0.1", none);
    const struct weft_web_request request = {.path = "/",
                                             .scheme = "Basic",
                                             .user = &text,
                                             .password = &text,
                                             .form_names = names,
                                             .form_values = values,
                                             .on_done = on_done};
    const struct weft_web_options options = {
        .base = b.base, .user_agent = "a", .ca_file = "b", .pin = b.pin};
    int rc = -ENOMEM;
    for (uint64_t n = 1; rc < 0 && n < 200; n++) {
        struct weft_web *web = NULL;
        struct weft_web_get *get_it = NULL;
        (void)weft_mem_fail_after(n);
        rc = weft_web_new(b.loop, &options, &web, NULL);
        rc = rc < 0 ? rc : weft_web_start(web, &request, &get_it, NULL);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || rc == -ENOMEM);
        weft_web_free(web);
    }
    CHECK_INT(rc, 0);
    down(&b);
}

WEFT_SUITE(web,
           {"a server with a good certificate is believed",
            a_server_with_a_good_certificate_is_believed},
           {"others are not", others_are_not},
           {"identities are headers and forms", identities_are_headers_and_forms},
           {"a session lasts until it is forgotten", a_session_lasts_until_it_is_forgotten},
           {"other answers are errors", other_answers_are_errors},
           {"a cancelled request is not heard of", a_cancelled_request_is_not_heard_of},
           {"every failing allocation is an error", every_failing_allocation_is_an_error})
