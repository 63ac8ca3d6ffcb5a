/* SPDX-License-Identifier: Apache-2.0 */
/* A UFM server on the loopback, with TLS and with faults: its answers are written here by the field
 * names of NVIDIA's REST guide. Each cable joins host h<n> to switch "leaf". */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/fabric/fabric.h"
#include "pkg/loop/loop.h"
#include "pkg/source/source.h"
#include "tests/unit/fake_kube.h"
#include "tests/unit/unit.h"

#define LONG_ENOUGH (20 * WEFT_NS_PER_S)
#define BASIC_1 "Authorization: Basic cmVhZGVyOm9uZQ==" /* printf reader:one | base64 */
#define BASIC_2 "Authorization: Basic cmVhZGVyOnR3bw==" /* printf reader:two | base64 */
enum { ROWS = 3, OUTPUT_MAX = 200000 };

/* What the server does beside answering. */
struct ufm {
    size_t links;      /* in all; ROWS a page */
    const char *needs; /* a header line's part that requests must have; else 401 */
    bool no_paging;    /* all rows in each answer */
    bool session;      /* /ufmRestV2 with the cookie of /dologin */
    int fail_status;   /* of links requests; 0: none */
    enum fake_end end; /* of links answers */
    bool endless;      /* links never end */
    unsigned logins, pages, denied;
    char *last; /* the answer under way */
    char endless_text[65536];
};

struct bench {
    char dir[200];
    struct weft_loop *loop;
    struct fake_ca *ca;
    struct fake_kube *fake;
    struct ufm ufm;
    struct weft_config *config;
    struct weft_sources *sources;
    bool told;
};

/* ---- the server ---- */

static void put_links(const struct ufm *u, unsigned page, size_t rows, struct weft_buf *t)
{
    const size_t first = u->no_paging ? 0 : (page - 1) * rows;
    const size_t end = u->no_paging || first + rows > u->links ? u->links : first + rows;
    (void)weft_buf_putc(t, '[');
    for (size_t i = first; i < end; i++) {
        (void)weft_buf_printf(
            t,
            "%s{\"source_guid\": \"%016zx\", \"source_port\": \"1\", "
            "\"source_port_node_description\": \"h%zu mlx5_0\", \"destination_guid\": "
            "\"00000000000000aa\", \"destination_port\": \"%zu\", "
            "\"destination_port_node_description\": \"leaf\", \"width\": \"4x\"}",
            i > first ? ", " : "", 0x1000 + i, i, i + 1);
    }
    (void)weft_buf_putc(t, ']');
}

static void deny(struct ufm *u, struct fake_reply *reply)
{
    u->denied++;
    reply->status = u->session ? 302 : 401;
    reply->headers = u->session ? "Location: /ufm_web/login\r\n" : NULL;
    reply->body = "no";
}

static void answer_links(struct ufm *u, unsigned page, unsigned rows, struct fake_reply *reply)
{
    weft_auto(weft_buf_done) struct weft_buf t;
    weft_buf_init(&t, 1 << 20);
    put_links(u, page, rows, &t);
    weft_free(u->last);
    u->last = weft_buf_steal(&t);
    u->pages++;
    reply->body = u->last;
    reply->status = u->fail_status != 0 ? u->fail_status : 200;
    reply->headers = u->fail_status == 503 ? "Retry-After: 1\r\n" : NULL;
    reply->end = u->end;
    if (u->endless) {
        memset(u->endless_text, ' ', sizeof(u->endless_text) - 1);
        reply->body = u->endless_text;
        reply->stream = true;
        reply->end = FAKE_HOLD;
    }
}

static void answer(void *data, const struct fake_request *request, struct fake_reply *reply)
{
    struct ufm *u = data;
    unsigned page = 0;
    unsigned rows = 0;
    char resource[32] = "";
    if (strcmp(request->target, "/dologin") == 0) {
        u->logins++;
        const bool good = strstr(request->body, u->needs) != NULL;
        *reply = (struct fake_reply){.status = good ? 302 : 401,
                                     .headers = good ? "Set-Cookie: session=s1; Path=/\r\n" : NULL,
                                     .body = ""};
        return;
    }
    const char *query = strchr(request->target, '?');
    const char *slash = strrchr(request->target, '/');
    CHECK(query != NULL && slash != NULL && request->method[0] == 'G');
    CHECK_INT(sscanf(slash, "/%31[a-z]?page_number=%u&rpp=%u", resource, &page, &rows), 3);
    const char *must = u->session ? "Cookie: session=s1" : u->needs;
    CHECK_INT(strncmp(request->target, u->session ? "/ufmRestV2/" : "/ufmRest", 8), 0);
    reply->status = 200;
    if (strstr(request->headers, must) == NULL) {
        deny(u, reply);
    } else if (strcmp(resource, "links") == 0) {
        answer_links(u, page, rows, reply);
    } else {
        reply->body = "[]";
    }
}

/* ---- the bench ---- */

static void on_changed(void *data)
{
    ((struct bench *)data)->told = true;
}

static void put_file(const struct bench *b, const char *name, const char *text)
{
    weft_autofree char *path = weft_asprintf("%s/%s", b->dir, name);
    CHECK_INT(weft_file_replace(path, text, strlen(text), 0600, NULL), 0);
}

static void up(struct bench *b, const char *name, const char *san)
{
    *b = (struct bench){.ca = fake_ca_new("ufm-ca"), .ufm = {.links = 2, .needs = BASIC_1}};
    (void)snprintf(b->dir, sizeof(b->dir), "%s/ufm-%s", weft_test_dir(), name);
    (void)mkdir(b->dir, 0700);
    put_file(b, "ca.crt", b->ca->pem);
    put_file(b, "username", "reader\n");
    put_file(b, "password", "one\n");
    put_file(b, "token", "t0ken\n");
    CHECK_INT(weft_loop_new(&b->loop, NULL), 0);
    b->fake = fake_kube_start(fake_server_context(b->ca, san, NULL), 0, answer, &b->ufm);
    const struct weft_sources_options options = {
        .loop = b->loop, .seed = 3, .output_max = OUTPUT_MAX, .changed = on_changed, .data = b};
    CHECK_INT(weft_sources_new(&options, &b->sources, NULL), 0);
}

static void down(struct bench *b)
{
    weft_sources_free(b->sources);
    weft_config_free(b->config);
    fake_kube_stop(b->fake);
    fake_ca_free(b->ca);
    weft_loop_free(b->loop);
    weft_free(b->ufm.last);
}

static bool wait_news(struct bench *b)
{
    b->told = false;
    return weft_loop_run_until(b->loop, &b->told, LONG_ENOUGH);
}

/* fields: more of the source's. Waits for the first look's end. */
static void look(struct bench *b, const char *fields)
{
    weft_autofree char *text = weft_asprintf(
        "apiVersion: weft.dev/v1alpha1\nkind: ControllerConfig\nsources:\n"
        "- ufm: {url: \"https://127.0.0.1:%d\", credentials: %s, caFile: %s/ca.crt, pageRows: %d, "
        "interval: 1s, jitter: 0%%%s}\n",
        fake_kube_port(b->fake), b->dir, b->dir, (int)ROWS, fields);
    struct weft_config *old = b->config;
    struct weft_error err = {0};
    CHECK_INT(weft_config_parse(text, strlen(text), "config", &b->config, &err), 0);
    CHECK_STR(err.message, "");
    CHECK_INT(weft_sources_configure(b->sources, b->config->sources, 1, &err), 0);
    weft_config_free(old);
    CHECK(wait_news(b));
}

static void check_state(const struct bench *b, enum weft_source_state state, const char *part)
{
    const struct weft_source_health *health = weft_sources_health(b->sources, 0);
    CHECK_STR(weft_source_state_name(health->state), weft_source_state_name(state));
    CHECK_CONTAINS(health->error.message, part);
    /* no message ever has what is secret */
    CHECK(strstr(health->error.message, "one") == NULL &&
          strstr(health->error.message, "t0k") == NULL);
}

static size_t hosts_of(const struct bench *b)
{
    const struct weft_source_result *result = weft_sources_result(b->sources, 0);
    return result != NULL ? result->fabric->host_count : 0;
}

/* ---- pages ---- */

static void ten_pages_are_one_fabric(void)
{
    struct bench b;
    up(&b, "pages", "IP:127.0.0.1");
    b.ufm.links = 9 * ROWS + 1;
    look(&b, "");
    check_state(&b, WEFT_SOURCE_OK, "");
    CHECK_INT(hosts_of(&b), 9 * ROWS + 1);
    CHECK_INT(b.ufm.pages, 10);
    down(&b);
}

/* A full last page is followed by an empty one. */
static void a_full_last_page_is_not_the_end(void)
{
    struct bench b;
    up(&b, "full", "IP:127.0.0.1");
    b.ufm.links = 2 * ROWS;
    look(&b, "");
    CHECK_INT(hosts_of(&b), 2 * ROWS);
    CHECK_INT(b.ufm.pages, 3);
    down(&b);
}

static void a_server_without_pages_is_understood(void)
{
    static const size_t counts[] = {ROWS - 1, ROWS, 5 * ROWS};
    struct bench b;
    up(&b, "no-pages", "IP:127.0.0.1");
    b.ufm.no_paging = true;
    for (size_t i = 0; i < WEFT_ARRAY_LEN(counts); i++) {
        b.ufm.links = counts[i];
        b.ufm.pages = 0;
        look(&b, i % 2 == 0 ? "" : ", timeout: 50s");
        check_state(&b, WEFT_SOURCE_OK, "");
        CHECK_INT(hosts_of(&b), counts[i]);
        CHECK(b.ufm.pages <= 2);
    }
    down(&b);
}

/* ---- who we are, who it is ---- */

static void credentials_are_read_again_on_a_401(void)
{
    struct bench b;
    up(&b, "rotate", "IP:127.0.0.1");
    look(&b, "");
    check_state(&b, WEFT_SOURCE_OK, "");
    CHECK_INT(b.ufm.denied, 0);
    fake_kube_lock(b.fake, true);
    b.ufm.needs = BASIC_2;
    b.ufm.links = 3;
    fake_kube_lock(b.fake, false);
    put_file(&b, "password", "two\n");
    CHECK(wait_news(&b)); /* the next look: refused once, then with what the file says now */
    check_state(&b, WEFT_SOURCE_OK, "");
    CHECK_INT(hosts_of(&b), 3);
    CHECK_INT(b.ufm.denied, 1);
    fake_kube_lock(b.fake, true);
    b.ufm.needs = "Authorization: Basic other";
    fake_kube_lock(b.fake, false);
    CHECK(wait_news(&b)); /* no use: told, and what was known stays */
    check_state(&b, WEFT_SOURCE_STALE, "source ufm: GET https://127.0.0.1:");
    check_state(&b, WEFT_SOURCE_STALE, ": 401 no");
    CHECK_INT(b.ufm.denied, 3);
    CHECK_INT(hosts_of(&b), 3);
    down(&b);
}

static void tokens_and_sessions_work(void)
{
    struct bench b;
    up(&b, "auth", "IP:127.0.0.1");
    b.ufm.needs = "Authorization: Basic t0ken";
    look(&b, ", auth: token");
    check_state(&b, WEFT_SOURCE_OK, "");
    CHECK_INT(b.ufm.denied, 0);
    fake_kube_lock(b.fake, true);
    b.ufm.session = true;
    b.ufm.needs = "httpd_username=reader&httpd_password=one";
    fake_kube_lock(b.fake, false);
    look(&b, ", auth: session");
    check_state(&b, WEFT_SOURCE_OK, "");
    CHECK_INT(b.ufm.logins, 1);
    CHECK_INT(b.ufm.denied, 0);
    fake_kube_lock(b.fake, true);
    b.ufm.needs = "httpd_username=reader&httpd_password=two";
    fake_kube_lock(b.fake, false);
    look(&b, ", auth: session, timeout: 40s"); /* a new source logs in anew, in vain */
    check_state(&b, WEFT_SOURCE_FAILED, "POST https://127.0.0.1:");
    CHECK_INT(b.ufm.logins, 3); /* once more after reading the files again */
    down(&b);
}

static void a_stranger_gets_no_credentials(void)
{
    struct bench b;
    up(&b, "stranger", "DNS:other.example.com");
    look(&b, "");
    check_state(&b, WEFT_SOURCE_FAILED, "ca.crt");
    look(&b, ", pin: sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    check_state(&b, WEFT_SOURCE_FAILED, "source ufm: ");
    CHECK_INT(b.ufm.pages + b.ufm.denied, 0);
    down(&b);
}

static void missing_credentials_are_told(void)
{
    struct bench b;
    up(&b, "empty", "IP:127.0.0.1");
    put_file(&b, "password", "\n");
    look(&b, "");
    check_state(&b, WEFT_SOURCE_FAILED, "/password: empty");
    put_file(&b, "password", "a\nb\n");
    look(&b, ", timeout: 50s");
    check_state(&b, WEFT_SOURCE_FAILED, "/password: several lines");
    down(&b);
}

/* ---- faults ---- */

static void faults_keep_the_last_good_result(void)
{
    struct bench b;
    up(&b, "faults", "IP:127.0.0.1");
    look(&b, ", timeout: 2s");
    CHECK_INT(hosts_of(&b), 2);
    fake_kube_lock(b.fake, true);
    b.ufm.fail_status = 500;
    b.ufm.links = 3;
    fake_kube_lock(b.fake, false);
    CHECK(wait_news(&b));
    check_state(&b, WEFT_SOURCE_STALE, ": 500");
    fake_kube_lock(b.fake, true);
    b.ufm.fail_status = 0;
    b.ufm.end = FAKE_CUT;
    fake_kube_lock(b.fake, false);
    CHECK(wait_news(&b)); /* another message: told */
    check_state(&b, WEFT_SOURCE_STALE, "source ufm: GET");
    CHECK_INT(hosts_of(&b), 2);
    fake_kube_lock(b.fake, true);
    b.ufm.end = FAKE_DONE;
    fake_kube_lock(b.fake, false);
    CHECK(wait_news(&b));
    check_state(&b, WEFT_SOURCE_OK, "");
    CHECK_INT(hosts_of(&b), 3);
    down(&b);
}

static void slow_and_endless_answers_are_cut_off(void)
{
    struct bench b;
    up(&b, "slow", "IP:127.0.0.1");
    b.ufm.end = FAKE_HOLD;
    b.ufm.links = 0;
    b.ufm.endless = true;
    const int64_t begin = weft_clock_monotonic(weft_clock_system());
    look(&b, ", timeout: 1s"); /* 64 KiB and then nothing */
    check_state(&b, WEFT_SOURCE_FAILED, "imed out");
    CHECK(weft_clock_monotonic(weft_clock_system()) - begin < LONG_ENOUGH / 2);
    down(&b);
    struct weft_sources *small = NULL;
    up(&b, "endless", "IP:127.0.0.1");
    b.ufm.endless = true;
    weft_sources_free(b.sources);
    const struct weft_sources_options options = {
        .loop = b.loop, .output_max = 10000, .changed = on_changed, .data = &b};
    CHECK_INT(weft_sources_new(&options, &small, NULL), 0);
    b.sources = small;
    look(&b, "");
    check_state(&b, WEFT_SOURCE_FAILED, "larger than the cap of 10000 bytes");
    down(&b);
}

WEFT_SUITE(source_ufm, {"ten pages are one fabric", ten_pages_are_one_fabric},
           {"a full last page is not the end", a_full_last_page_is_not_the_end},
           {"a server without pages is understood", a_server_without_pages_is_understood},
           {"credentials are read again on a 401", credentials_are_read_again_on_a_401},
           {"tokens and sessions work", tokens_and_sessions_work},
           {"a stranger gets no credentials", a_stranger_gets_no_credentials},
           {"missing credentials are told", missing_credentials_are_told},
           {"faults keep the last good result", faults_keep_the_last_good_result},
           {"slow and endless answers are cut off", slow_and_endless_answers_are_cut_off})
