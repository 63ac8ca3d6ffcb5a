/* SPDX-License-Identifier: Apache-2.0 */
/* One server over libcurl. Must not decide what to try again. */
#include "pkg/web/web.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/base64.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/secret.h"
#include "pkg/base/str.h"
#include "pkg/web/pool.h"

enum {
    WEB_MAGIC = 0x57654220, /* "WeB " */
    GET_MAGIC = 0x57654774, /* "WeGt" */
    CONNECT_TIMEOUT_MS = 10000,
    FORM_MAX = 65536,
    RETRY_AFTER_MAX_S = 3600,
    ERROR_LINE_MAX = 120,
};

struct weft_web {
    uint32_t magic;
    struct weft_web_pools pools;
    CURLSH *cookies; /* shared by all requests; all on one thread, so without a lock */
    char *base, *user_agent, *ca_file, *pin;
};

struct weft_web_get {
    struct weft_web_call call; /* first: the pool knows this part only */
    uint32_t magic;
    struct weft_web *web;
    char *what; /* "GET https://host/path", for messages */
    char *url;
    char *form;
    size_t form_len;
    struct curl_slist *headers;
    struct weft_buf answer;
    struct weft_error failure; /* of a cap; code 0: none */
    char curl_text[CURL_ERROR_SIZE];
    void (*on_done)(void *data, const struct weft_web_answer *answer);
    void *data;
};

/* ---- the client ---- */

static char *copy(const char *text)
{
    return text != NULL ? weft_strdup(text) : NULL;
}

int weft_web_new(struct weft_loop *loop, const struct weft_web_options *options,
                 struct weft_web **ret_web, struct weft_error *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) { /* counted: once per client is right */
        return weft_err_set(err, -EIO, WEFT_ERR_CURL, "libcurl cannot start");
    }
    weft_auto(weft_web_free) struct weft_web *web = weft_calloc(1, sizeof(*web));
    if (web == NULL) {
        return weft_err_nomem(err);
    }
    web->magic = WEB_MAGIC;
    web->pools.loop = loop;
    web->base = copy(options->base);
    web->user_agent = copy(options->user_agent);
    web->ca_file = copy(options->ca_file);
    web->pin = copy(options->pin);
    web->cookies = curl_share_init();
    if (web->base == NULL || web->user_agent == NULL || web->cookies == NULL ||
        (options->ca_file != NULL && web->ca_file == NULL) ||
        (options->pin != NULL && web->pin == NULL) ||
        curl_share_setopt(web->cookies, CURLSHOPT_SHARE, CURL_LOCK_DATA_COOKIE) != CURLSHE_OK) {
        return weft_err_nomem(err);
    }
    *ret_web = weft_steal(&web);
    return 0;
}

void weft_web_free(struct weft_web *web)
{
    if (web == NULL) {
        return;
    }
    WEFT_CHECK(web, WEB_MAGIC);
    weft_web_pools_done(&web->pools);
    (void)curl_share_cleanup(web->cookies);
    weft_free(web->base);
    weft_free(web->user_agent);
    weft_free(web->ca_file);
    weft_free(web->pin);
    web->magic = 0;
    weft_free(web);
}

void weft_web_forget(struct weft_web *web)
{
    WEFT_CHECK(web, WEB_MAGIC);
    CURL *easy = curl_easy_init();
    if (easy != NULL) {
        (void)curl_easy_setopt(easy, CURLOPT_SHARE, web->cookies);
        (void)curl_easy_setopt(easy, CURLOPT_COOKIELIST, "ALL");
        curl_easy_cleanup(easy);
    }
}

/* ---- the answer ---- */

static size_t on_write(char *bytes, size_t size, size_t count, void *data)
{
    struct weft_web_get *get = data;
    WEFT_CHECK(get, GET_MAGIC);
    const size_t len = size * count;
    if (get->call.cancelled) {
        return CURL_WRITEFUNC_ERROR;
    }
    const int rc = weft_buf_append(&get->answer, bytes, len);
    if (rc == -EFBIG) {
        (void)weft_err_set(&get->failure, rc, WEFT_ERR_HTTP,
                           "%s: the answer is larger than the cap of %zu bytes", get->what,
                           get->answer.max);
    } else if (rc < 0) {
        (void)weft_err_nomem(&get->failure);
    }
    return rc < 0 ? CURL_WRITEFUNC_ERROR : len;
}

static void blame_curl(const struct weft_web_get *get, CURLcode code, struct weft_error *err)
{
    const struct weft_web *web = get->web;
    const char *text = get->curl_text[0] != '\0' ? get->curl_text : curl_easy_strerror(code);
    const bool ca = web->ca_file != NULL &&
                    (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE);
    const bool pin = code == CURLE_SSL_PINNEDPUBKEYNOTMATCH;
    bool retryable = false;
    const int rc = pin ? -EPROTO : weft_web_errno(code, &retryable);
    (void)weft_err_set(err, rc, WEFT_ERR_CURL, "%s: %s%s%s%s", get->what,
                       pin ? "the server's public key is not the pinned one" : text,
                       ca ? " (CA file " : "", ca ? web->ca_file : "", ca ? ")" : "");
    err->domain_code = (int)code;
    err->retryable = retryable;
}

static void blame_status(const struct weft_web_get *get, int status, struct weft_error *err)
{
    struct weft_str rest = {weft_buf_text(&get->answer), get->answer.len};
    struct weft_str line = {0};
    (void)weft_str_line(&rest, &line);
    for (size_t i = 0; i < line.len; i++) {
        if (line.data[i] < ' ' || line.data[i] > '~' || i >= ERROR_LINE_MAX) {
            line.len = i; /* not for a terminal */
        }
    }
    const bool denied = status == 401 || status == 403;
    (void)weft_err_set(err, denied ? -EACCES : -EIO, WEFT_ERR_HTTP, "%s: %d%s%.*s", get->what,
                       status, line.len > 0 ? " " : "", WEFT_STR_ARG(line));
    err->domain_code = status;
    err->retryable = status == 408 || status == 429 || status >= 500;
}

static void report(struct weft_web_call *call, CURLcode code)
{
    struct weft_web_get *get = (void *)call;
    WEFT_CHECK(get, GET_MAGIC);
    struct weft_web_answer answer = {.body = weft_buf_text(&get->answer), .len = get->answer.len};
    long status = 0;
    curl_off_t seconds = 0;
    (void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(call->easy, CURLINFO_RETRY_AFTER, &seconds);
    answer.status = (int)status;
    if (seconds > 0) {
        answer.retry_after_ns =
            (seconds < RETRY_AFTER_MAX_S ? seconds : RETRY_AFTER_MAX_S) * WEFT_NS_PER_S;
    }
    if (get->failure.code != 0) {
        answer.error = get->failure;
    } else if (code != CURLE_OK) {
        blame_curl(get, code, &answer.error);
    } else if (status < 200 || status > 299) {
        blame_status(get, (int)status, &answer.error);
    }
    get->on_done(get->data, &answer);
}

/* ---- the request ---- */

static void get_free(struct weft_web_get *get)
{
    if (get == NULL) {
        return;
    }
    if (get->call.easy != NULL) {
        curl_easy_cleanup(get->call.easy);
    }
    for (struct curl_slist *h = get->headers; h != NULL; h = h->next) {
        explicit_bzero(h->data, strlen(h->data)); /* one of them may hold a password */
    }
    curl_slist_free_all(get->headers);
    weft_buf_done(&get->answer);
    weft_secret_free_bytes(get->form, get->form_len);
    weft_free(get->what);
    weft_free(get->url);
    get->magic = get->call.magic = 0;
    weft_free(get);
}
WEFT_DEFINE_AUTO(struct weft_web_get, get_free)

static void free_call(struct weft_web_call *call)
{
    get_free((void *)call);
}

static int add_header(struct weft_web_get *get, const char *line)
{
    struct curl_slist *list = line != NULL ? curl_slist_append(get->headers, line) : NULL;
    if (list == NULL) {
        return -ENOMEM;
    }
    get->headers = list;
    return 0;
}

/* "user:password" in base64, owned and secret; NULL without memory. */
static char *basic_text(const struct weft_web_request *request)
{
    size_t user_len = 0;
    size_t password_len = 0;
    const char *user = weft_secret_reveal(request->user, &user_len);
    const char *password = weft_secret_reveal(request->password, &password_len);
    char *pair = weft_asprintf("%s:%s", user != NULL ? user : "", password != NULL ? password : "");
    char *text = NULL;
    if (pair != NULL) {
        text = weft_base64_encode(pair, strlen(pair));
        weft_secret_free_bytes(pair, user_len + password_len + 1);
    }
    return text;
}

static int set_identity(struct weft_web_get *get, const struct weft_web_request *request)
{
    if (request->scheme == NULL) {
        return 0;
    }
    char *basic = request->token == NULL ? basic_text(request) : NULL;
    const char *value = request->token != NULL ? weft_secret_reveal(request->token, NULL) : basic;
    int rc = request->token == NULL && basic == NULL ? -ENOMEM : 0;
    if (rc == 0) {
        char *line =
            weft_asprintf("Authorization: %s %s", request->scheme, value != NULL ? value : "");
        rc = add_header(get, line);
        weft_secret_free_bytes(line, line != NULL ? strlen(line) : 0);
    }
    weft_secret_free_bytes(basic, basic != NULL ? strlen(basic) : 0);
    return rc;
}

/* application/x-www-form-urlencoded; libcurl's own encoder knows what to escape. */
static int make_form(struct weft_web_get *get, const struct weft_web_request *request)
{
    weft_auto(weft_buf_done) struct weft_buf form;
    weft_buf_init(&form, FORM_MAX);
    for (size_t i = 0; request->form_names[i] != NULL; i++) {
        size_t len = 0;
        const char *value = weft_secret_reveal(request->form_values[i], &len);
        char *escaped = curl_easy_escape(get->call.easy, value != NULL ? value : "", (int)len);
        if (escaped == NULL) {
            return -ENOMEM;
        }
        (void)weft_buf_printf(&form, "%s%s=%s", i > 0 ? "&" : "", request->form_names[i], escaped);
        explicit_bzero(escaped, strlen(escaped));
        curl_free(escaped);
    }
    get->form_len = form.len;
    get->form = weft_buf_steal(&form);
    return get->form != NULL ? 0 : -ENOMEM;
}

static void set_tls(CURL *easy, const struct weft_web *web)
{
    /* a pinned key says who the server is better than a name that a self-signed certificate gives
     * itself; with a CA file both must hold */
    const bool verify = web->ca_file != NULL || web->pin == NULL;
    (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, verify ? 1L : 0L);
    (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, verify ? 2L : 0L);
    (void)curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (web->ca_file != NULL) {
        (void)curl_easy_setopt(easy, CURLOPT_CAINFO, web->ca_file);
        /* else the machine's own authorities would count too */
        (void)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    if (web->pin != NULL) {
        (void)curl_easy_setopt(easy, CURLOPT_PINNEDPUBLICKEY, web->pin);
    }
}

static int set_options(struct weft_web_get *get, const struct weft_web_request *request)
{
    CURL *easy = get->call.easy;
    (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, get);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, get->curl_text);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_write);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, get);
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https");
    (void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* not to wait for a name look-up */
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    (void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(request->timeout_ns / WEFT_NS_PER_MS));
    (void)curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
    (void)curl_easy_setopt(easy, CURLOPT_USERAGENT, get->web->user_agent);
    (void)curl_easy_setopt(easy, CURLOPT_COOKIEFILE, ""); /* the engine, without a file */
    (void)curl_easy_setopt(easy, CURLOPT_SHARE, get->web->cookies);
    set_tls(easy, get->web);
    if (request->form_names != NULL) {
        const int rc = make_form(get, request);
        if (rc < 0) {
            return rc;
        }
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)get->form_len);
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, get->form);
    }
    const bool set = curl_easy_setopt(easy, CURLOPT_URL, get->url) == CURLE_OK &&
                     add_header(get, "Expect:") == 0 && set_identity(get, request) == 0 &&
                     curl_easy_setopt(easy, CURLOPT_HTTPHEADER, get->headers) == CURLE_OK;
    return set ? 0 : -ENOMEM;
}

static struct weft_web_get *get_new(struct weft_web *web, const struct weft_web_request *request)
{
    weft_auto(get_free) struct weft_web_get *get = weft_calloc(1, sizeof(*get));
    if (get == NULL) {
        return NULL;
    }
    get->call =
        (struct weft_web_call){.magic = WEFT_WEB_CALL_MAGIC, .report = report, .free = free_call};
    get->magic = GET_MAGIC;
    get->web = web;
    get->on_done = request->on_done;
    get->data = request->data;
    weft_buf_init(&get->answer, request->body_max);
    get->url = weft_asprintf("%s%s", web->base, request->path);
    get->what = weft_asprintf("%s %s%s", request->form_names != NULL ? "POST" : "GET", web->base,
                              request->path);
    get->call.easy = curl_easy_init();
    if (get->url == NULL || get->what == NULL || get->call.easy == NULL ||
        set_options(get, request) < 0) {
        return NULL;
    }
    return weft_steal(&get);
}

int weft_web_start(struct weft_web *web, const struct weft_web_request *request,
                   struct weft_web_get **ret_get, struct weft_error *err)
{
    WEFT_CHECK(web, WEB_MAGIC);
    if (web->pools.call_count >= WEFT_WEB_GETS_MAX) {
        return weft_err_set(err, -EBUSY, WEFT_ERR_HTTP, "%s%s: %d requests are under way",
                            web->base, request->path, (int)WEFT_WEB_GETS_MAX);
    }
    weft_auto(get_free) struct weft_web_get *get = get_new(web, request);
    if (get == NULL) {
        return weft_err_nomem(err);
    }
    const int rc = weft_web_call_start(&web->pools, &get->call, err);
    if (rc < 0) {
        return rc;
    }
    *ret_get = weft_steal(&get);
    return 0;
}

void weft_web_cancel(struct weft_web_get *get)
{
    if (get != NULL) {
        WEFT_CHECK(get, GET_MAGIC);
        weft_web_call_cancel(&get->call);
    }
}
