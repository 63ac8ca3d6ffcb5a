/* SPDX-License-Identifier: Apache-2.0 */
/* A source that is a UFM server: its systems, ports and links by REST, page by page. Written from
 * its documents (REST API guide 6.14 to 6.22); not yet run against a live server. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/base/secret.h"
#include "pkg/base/str.h"
#include "pkg/fabric/fabric.h"
#include "pkg/fabric/ufm.h"
#include "pkg/source/source-internal.h"
#include "pkg/web/web.h"

enum {
    UFM_MAGIC = 0x536f5566, /* "SoUf" */
    CREDENTIAL_MAX = 16384,
    LOGIN_MAX = 1 << 20,
    PATH_MAX_LEN = 256,
    PAGES_MAX = 10000, /* of one resource: more is an answer that never ends */
};

/* What is asked for, in this order. Virtual ports are told by the ports themselves. */
static const struct {
    enum weft_ufm_resource resource;
    const char *name;
} wanted[] = {
    {WEFT_UFM_SYSTEMS, "systems"},
    {WEFT_UFM_PORTS, "ports"},
    {WEFT_UFM_LINKS, "links"},
};

struct ufm {
    uint32_t magic;
    struct weft_source *source;
    struct weft_web *web;
    struct weft_web_get *get; /* under way */
    struct weft_secret user, password, token;
    struct weft_ufm *answers; /* of this look */
    int64_t deadline;         /* monotonic: of this look */
    size_t step;              /* index into wanted */
    unsigned page;
    uint64_t page_hash; /* of the page before */
    bool retried;       /* after a 401, with credentials read again */
    bool logged_in;     /* the session's cookie is there */
};

static void ask(struct ufm *u);

static void fail(struct ufm *u, const struct weft_error *why, int64_t retry_after_ns)
{
    weft_ufm_free(u->answers);
    u->answers = NULL;
    weft_source_finish(u->source, NULL, why, retry_after_ns);
}

/* ---- credentials ---- */

static int read_secret(const char *folder, const char *name, struct weft_secret *secret,
                       struct weft_error *err)
{
    weft_autofree char *path = weft_asprintf("%s/%s", folder, name);
    char *text = NULL;
    size_t len = 0;
    if (path == NULL) {
        return weft_err_nomem(err);
    }
    int rc = weft_file_read(path, CREDENTIAL_MAX, &text, &len, err);
    if (rc < 0) {
        return weft_err_wrap(err, rc, "credentials");
    }
    const struct weft_str value = weft_str_trim((struct weft_str){text, len});
    bool clean = value.len > 0;
    for (size_t i = 0; i < value.len; i++) {
        clean = clean && (unsigned char)value.data[i] >= ' '; /* it becomes a header */
    }
    if (!clean) {
        rc = weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "credentials %s: %s", path,
                          value.len == 0 ? "empty" : "several lines");
    } else if (weft_secret_set(secret, value.data, value.len) < 0) {
        rc = weft_err_nomem(err);
    }
    weft_secret_free_bytes(text, len);
    return rc;
}

/* A Secret's mount is updated in place: what is there now counts. */
static int read_credentials(struct ufm *u, struct weft_error *err)
{
    const struct weft_config_ufm *settings = &u->source->settings->ufm;
    if (settings->auth == WEFT_UFM_TOKEN) {
        return read_secret(settings->credentials, "token", &u->token, err);
    }
    const int rc = read_secret(settings->credentials, "username", &u->user, err);
    return rc < 0 ? rc : read_secret(settings->credentials, "password", &u->password, err);
}

/* After a refusal (a session that has ended may be sent to the login page): once with what the
 * files say now. false: no use. */
static bool try_again(struct ufm *u, int status)
{
    const bool sent_away = u->source->settings->ufm.auth == WEFT_UFM_SESSION && status / 100 == 3;
    if (u->retried || (status != 401 && status != 403 && !sent_away)) {
        return false;
    }
    u->retried = true;
    u->logged_in = false;
    weft_web_forget(u->web);
    struct weft_error err = {0};
    if (read_credentials(u, &err) < 0) {
        fail(u, &err, 0);
    } else {
        ask(u);
    }
    return true;
}

/* ---- answers ---- */

static void finish(struct ufm *u)
{
    weft_auto(weft_source_result_done) struct weft_source_result result = {0};
    struct weft_error err = {0};
    int rc = weft_ufm_finish(u->answers, &result.fabric, &err);
    rc = rc < 0 ? rc : weft_source_read_names(u->source->settings, &result, &err);
    weft_ufm_free(u->answers);
    u->answers = NULL;
    result.partial = rc == 0 && result.fabric->partial;
    weft_source_finish(u->source, rc == 0 ? &result : NULL, &err, 0);
}

/* A page that is not full, or that the server has not made a page of, is the last. */
static bool is_last(const struct ufm *u, size_t rows, uint64_t hash)
{
    return rows != u->source->settings->ufm.page_rows || hash == u->page_hash;
}

static int take_page(struct ufm *u, const struct weft_web_answer *answer, struct weft_error *err)
{
    char name[PATH_MAX_LEN];
    size_t rows = 0;
    const uint64_t hash = weft_hash64(WEFT_HASH_SEED, answer->body, answer->len);
    (void)snprintf(name, sizeof(name), "%s page %u", wanted[u->step].name, u->page);
    if (u->page == 1 || hash != u->page_hash) {
        const int rc = weft_ufm_add(u->answers, wanted[u->step].resource, answer->body, answer->len,
                                    name, &rows, err);
        if (rc < 0) {
            return rc;
        }
    }
    if (is_last(u, rows, hash)) {
        u->step++;
        u->page = 1;
        u->page_hash = 0;
        return 0;
    }
    u->page_hash = hash;
    u->page++;
    return u->page <= PAGES_MAX
               ? 0
               : weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "%s: more than %d pages",
                              wanted[u->step].name, (int)PAGES_MAX);
}

static void on_page(void *data, const struct weft_web_answer *answer)
{
    struct ufm *u = data;
    WEFT_CHECK(u, UFM_MAGIC);
    struct weft_error err = answer->error;
    u->get = NULL;
    if (err.code != 0) {
        if (!try_again(u, answer->status)) {
            fail(u, &err, answer->retry_after_ns);
        }
        return;
    }
    if (take_page(u, answer, &err) < 0) {
        fail(u, &err, 0);
    } else if (u->step < WEFT_ARRAY_LEN(wanted)) {
        ask(u);
    } else {
        finish(u);
    }
}

/* UFM answers a login with a redirect to its pages; whether it was one, the next answer tells. */
static void on_login(void *data, const struct weft_web_answer *answer)
{
    struct ufm *u = data;
    WEFT_CHECK(u, UFM_MAGIC);
    u->get = NULL;
    if (answer->status >= 200 && answer->status < 400) {
        u->logged_in = true;
        ask(u);
    } else if (!try_again(u, answer->status)) {
        fail(u, &answer->error, answer->retry_after_ns);
    }
}

/* ---- questions ---- */

static int start_request(struct ufm *u, struct weft_web_request *request, struct weft_error *err)
{
    const int64_t left = u->deadline - weft_source_now(u->source);
    if (left < WEFT_NS_PER_MS) {
        return weft_err_set(err, -ETIMEDOUT, WEFT_ERR_HTTP, "%s: no whole answer in time",
                            u->source->settings->ufm.url);
    }
    request->timeout_ns = left;
    request->data = u;
    return weft_web_start(u->web, request, &u->get, err);
}

static int log_in(struct ufm *u, struct weft_error *err)
{
    static const char *const names[] = {"httpd_username", "httpd_password", NULL};
    const struct weft_secret *const values[] = {&u->user, &u->password};
    struct weft_web_request request = {.path = "/dologin",
                                       .form_names = names,
                                       .form_values = values,
                                       .body_max = LOGIN_MAX,
                                       .on_done = on_login};
    return start_request(u, &request, err);
}

static int get_page(struct ufm *u, struct weft_error *err)
{
    /* each way to authenticate has its own root (REST API guide, "Authentication") */
    static const char *const roots[] = {[WEFT_UFM_BASIC] = "ufmRest",
                                        [WEFT_UFM_TOKEN] = "ufmRestV3",
                                        [WEFT_UFM_SESSION] = "ufmRestV2"};
    const struct weft_config_ufm *settings = &u->source->settings->ufm;
    char path[PATH_MAX_LEN];
    (void)snprintf(path, sizeof(path), "/%s/resources/%s?page_number=%u&rpp=%u",
                   roots[settings->auth], wanted[u->step].name, u->page, settings->page_rows);
    const size_t most = u->source->owner->output_max;
    struct weft_web_request request = {
        .path = path,
        .scheme = settings->auth == WEFT_UFM_SESSION ? NULL : "Basic",
        .user = &u->user,
        .password = &u->password,
        .token = settings->auth == WEFT_UFM_TOKEN ? &u->token : NULL,
        .body_max = most < WEFT_UFM_TEXT_MAX ? most : WEFT_UFM_TEXT_MAX,
        .on_done = on_page,
    };
    return start_request(u, &request, err);
}

static void ask(struct ufm *u)
{
    struct weft_error err = {0};
    const bool login = u->source->settings->ufm.auth == WEFT_UFM_SESSION && !u->logged_in;
    if ((login ? log_in(u, &err) : get_page(u, &err)) < 0) {
        fail(u, &err, 0);
    }
}

static void look(struct weft_source *source)
{
    struct ufm *u = source->state;
    WEFT_CHECK(u, UFM_MAGIC);
    struct weft_error err = {0};
    u->answers = weft_ufm_new(source->settings->name);
    u->deadline = weft_source_now(source) + source->settings->timeout_ns;
    u->step = 0;
    u->page = 1;
    u->page_hash = 0;
    u->retried = false;
    const bool known = weft_secret_is_set(&u->token) || weft_secret_is_set(&u->password);
    int rc = u->answers == NULL ? weft_err_nomem(&err) : 0;
    rc = rc == 0 && !known ? read_credentials(u, &err) : rc;
    if (rc < 0) {
        fail(u, &err, 0);
    } else {
        ask(u);
    }
}

/* ---- life ---- */

static void stop(struct weft_source *source)
{
    struct ufm *u = source->state;
    if (u == NULL) {
        return;
    }
    WEFT_CHECK(u, UFM_MAGIC);
    weft_web_cancel(u->get);
    weft_web_free(u->web);
    weft_ufm_free(u->answers);
    weft_secret_done(&u->user);
    weft_secret_done(&u->password);
    weft_secret_done(&u->token);
    u->magic = 0;
    weft_free(u);
    source->state = NULL;
}

static int start(struct weft_source *source, struct weft_error *err)
{
    struct ufm *u = weft_calloc(1, sizeof(*u));
    if (u == NULL) {
        return weft_err_nomem(err);
    }
    u->magic = UFM_MAGIC;
    u->source = source;
    source->state = u;
    const struct weft_web_options options = {
        .base = source->settings->ufm.url,
        .user_agent = "weft/" WEFT_VERSION,
        .ca_file = source->settings->ufm.ca_file,
        .pin = source->settings->ufm.pin,
    };
    const int rc = weft_web_new(source->owner->loop, &options, &u->web, err);
    if (rc < 0) {
        stop(source);
    }
    return rc;
}

const struct weft_source_ops weft_source_ufm_ops = {
    .start = start,
    .look = look,
    .stop = stop,
};
