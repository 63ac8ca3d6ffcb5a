/* SPDX-License-Identifier: Apache-2.0 */
/* One call: libcurl's options for it, its answer's bytes, its silence timer. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "pkg/base/clock.h"
#include "pkg/kube/client-internal.h"
#include "pkg/kube/config-internal.h"

/* A peer that does not acknowledge for this long is gone (tcp(7), TCP_USER_TIMEOUT, covers data and
 * keep-alive probes). Without it a cut network is noticed after a quarter of an hour. */
enum { PEER_GONE_MS = 20000, KEEPALIVE_S = 10, CONNECT_TIMEOUT_MS = 10000 };

/* ---- the answer ---- */

static bool is_success(const struct weft_kube_call *call)
{
    return call->status >= 200 && call->status < 300;
}

/* The media type, lower case, without parameters. */
static void copy_content_type(struct weft_kube_call *call, const char *text)
{
    size_t n = 0;
    for (; text != NULL && n < sizeof(call->content_type) - 1; n++) {
        const char c = text[n];
        if (c == '\0' || c == ';' || c == ' ') {
            break;
        }
        call->content_type[n] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    call->content_type[n] = '\0';
}

int weft_kube_call_read_head(struct weft_kube_call *call)
{
    long status = 0;
    long version = 0;
    const char *type = NULL;
    (void)curl_easy_getinfo(call->web.easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(call->web.easy, CURLINFO_CONTENT_TYPE, &type);
    (void)curl_easy_getinfo(call->web.easy, CURLINFO_HTTP_VERSION, &version);
    call->client->stats.http2 += version == CURL_HTTP_VERSION_2_0;
    call->head_seen = true;
    call->status = (int)status;
    copy_content_type(call, type);
    if (!is_success(call) || call->on_head == NULL) {
        return 0;
    }
    const struct weft_kube_head head = {.status = call->status, .content_type = call->content_type};
    return call->on_head(call->data, &head, &call->failure);
}

static int take_success(struct weft_kube_call *call, const char *bytes, size_t len)
{
    if (len > call->body_max - call->received) {
        return weft_err_set(&call->failure, -EFBIG, WEFT_ERR_HTTP,
                            "%s: the answer is over %llu bytes", call->what,
                            (unsigned long long)call->body_max);
    }
    call->received += len;
    if (call->on_bytes != NULL) {
        return call->on_bytes(call->data, bytes, len, &call->failure);
    }
    return weft_buf_append(&call->answer, bytes, len) < 0 ? weft_err_nomem(&call->failure) : 0;
}

/* Of an error's text the beginning is enough. */
static void take_error(struct weft_kube_call *call, const char *bytes, size_t len)
{
    const size_t room = WEFT_KUBE_ERROR_BODY_MAX - call->answer.len;
    (void)weft_buf_append(&call->answer, bytes, len < room ? len : room);
}

static size_t on_write(char *bytes, size_t size, size_t count, void *data)
{
    struct weft_kube_call *call = data;
    WEFT_CHECK(call, WEFT_KUBE_CALL_MAGIC);
    const size_t len = size * count;
    if (call->web.cancelled) {
        return CURL_WRITEFUNC_ERROR;
    }
    call->client->stats.bytes_in += len;
    call->last_byte_at = weft_clock_monotonic(weft_clock_system());
    int rc = call->head_seen ? 0 : weft_kube_call_read_head(call);
    if (rc >= 0 && is_success(call)) {
        rc = take_success(call, bytes, len);
    } else if (rc >= 0) {
        take_error(call, bytes, len);
    }
    if (rc < 0 && call->failure.code == 0) {
        (void)weft_err_set(&call->failure, rc, WEFT_ERR_HTTP, "%s: refused by its reader",
                           call->what);
    }
    return rc < 0 || call->web.cancelled ? CURL_WRITEFUNC_ERROR : len;
}

/* ---- silence ---- */

static void on_idle(void *data)
{
    struct weft_kube_call *call = data;
    WEFT_CHECK(call, WEFT_KUBE_CALL_MAGIC);
    const int64_t silent = weft_clock_monotonic(weft_clock_system()) - call->last_byte_at;
    if (silent < call->idle_ns) {
        weft_timer_start(call->idle_timer, call->idle_ns - silent, 0);
        return;
    }
    (void)weft_err_set(&call->failure, -ETIMEDOUT, WEFT_ERR_HTTP, "%s: no byte for %lld ms",
                       call->what, (long long)(silent / WEFT_NS_PER_MS));
    call->failure.retryable = true;
    weft_web_call_end(&call->web, CURLE_OPERATION_TIMEDOUT);
}

static int start_idle_timer(struct weft_kube_call *call, struct weft_error *err)
{
    if (call->idle_ns <= 0) {
        return 0;
    }
    const int rc = weft_timer_new(call->client->loop, on_idle, call, &call->idle_timer, err);
    if (rc == 0) {
        call->last_byte_at = weft_clock_monotonic(weft_clock_system());
        weft_timer_start(call->idle_timer, call->idle_ns, 0);
    }
    return rc;
}

/* ---- libcurl's options ---- */

static int on_new_socket(void *data, curl_socket_t fd, curlsocktype purpose)
{
    struct weft_kube_client *client = data;
    WEFT_CHECK(client, WEFT_KUBE_CLIENT_MAGIC);
    if (purpose == CURLSOCKTYPE_IPCXN) {
        const unsigned ms = PEER_GONE_MS;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
        client->stats.connections++;
    }
    return CURL_SOCKOPT_OK;
}

/* libcurl copies: what came from a file or a helper program may be replaced during the call. */
static struct curl_blob blob_of(const char *bytes, size_t len)
{
    union {
        const char *in;
        void *out;
    } cast = {.in = bytes};
    return (struct curl_blob){.data = cast.out, .len = len, .flags = CURL_BLOB_COPY};
}

static void set_tls(CURL *easy, const struct weft_kube_config *config)
{
    (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, config->insecure ? 0L : 1L);
    (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, config->insecure ? 0L : 2L);
    (void)curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (config->ca.bytes != NULL) {
        const struct curl_blob ca = blob_of(config->ca.bytes, config->ca.len);
        (void)curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &ca);
        /* else the machine's own authorities would count too */
        (void)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    if (config->cert.bytes != NULL) {
        size_t len = 0;
        const char *bytes = weft_secret_reveal(&config->key, &len);
        const struct curl_blob cert = blob_of(config->cert.bytes, config->cert.len);
        const struct curl_blob key = blob_of(bytes, len);
        (void)curl_easy_setopt(easy, CURLOPT_SSLCERT_BLOB, &cert);
        (void)curl_easy_setopt(easy, CURLOPT_SSLKEY_BLOB, &key);
    }
}

static void set_transport(struct weft_kube_call *call)
{
    CURL *easy = call->web.easy;
    const struct weft_kube_config *config = call->client->config;
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, config->tls ? "https" : "http");
    (void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* not to wait for a name look-up */
    (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    (void)curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    (void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(call->timeout_ns / WEFT_NS_PER_MS));
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_S);
    (void)curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_new_socket);
    (void)curl_easy_setopt(easy, CURLOPT_SOCKOPTDATA, call->client);
    (void)curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (config->proxy_url != NULL) {
        (void)curl_easy_setopt(easy, CURLOPT_PROXY, config->proxy_url);
    }
    if (call->client->connect_to != NULL) {
        (void)curl_easy_setopt(easy, CURLOPT_CONNECT_TO, call->client->connect_to);
    }
    if (config->tls) {
        set_tls(easy, config);
    }
}

/* Appends "<name>: <value>"; on failure the list stays as it was. */
static int add_header(struct weft_kube_call *call, const char *name, const char *value)
{
    const size_t len = strlen(name) + strlen(value) + 3;
    char *line = weft_asprintf("%s: %s", name, value);
    struct curl_slist *list = line != NULL ? curl_slist_append(call->headers, line) : NULL;
    weft_secret_free_bytes(line, len - 1);
    if (list == NULL) {
        return -ENOMEM;
    }
    call->headers = list;
    return 0;
}

static int set_identity(struct weft_kube_call *call)
{
    struct weft_kube_config *config = call->client->config;
    const int64_t now = weft_clock_monotonic(weft_clock_system());
    const int changed = weft_kube_config_refresh(config, now, false);
    call->client->stats.token_reloads += (changed & 1) != 0;
    call->client->stats.certificate_reloads += (changed & 2) != 0;
    (void)weft_kube_exec_refresh(config, call->client->loop, now, false);
    const char *token = weft_secret_reveal(&config->token, NULL);
    if (token == NULL) {
        if (config->username != NULL) {
            const char *password = weft_secret_reveal(&config->password, NULL);
            (void)curl_easy_setopt(call->web.easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
            (void)curl_easy_setopt(call->web.easy, CURLOPT_USERNAME, config->username);
            (void)curl_easy_setopt(call->web.easy, CURLOPT_PASSWORD,
                                   password != NULL ? password : "");
        }
        return 0;
    }
    const size_t len = strlen("Bearer ") + strlen(token);
    char *value = weft_asprintf("Bearer %s", token);
    const int added = value != NULL ? add_header(call, "Authorization", value) : -ENOMEM;
    weft_secret_free_bytes(value, len);
    return added;
}

/* A random UUID (RFC 4122, version 4). The API server takes it for its audit log's auditID, so that
 * a request can be found there even if its answer was lost. */
static void make_request_id(char text[static 40])
{
    uint8_t b[16] = {0};
    /* without entropy the ids are poor, which costs no more than that */
    (void)!getrandom(b, sizeof(b), GRND_NONBLOCK);
    b[6] = (uint8_t)((b[6] & 0x0fU) | 0x40U);
    b[8] = (uint8_t)((b[8] & 0x3fU) | 0x80U);
    size_t at = 0;
    for (size_t i = 0; i < sizeof(b); i++) {
        const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
        at += (size_t)snprintf(text + at, 40 - at, "%s%02x", dash, b[i]);
    }
}

static int set_headers(struct weft_kube_call *call, const struct weft_kube_request *request)
{
    int rc =
        add_header(call, "Accept", request->accept != NULL ? request->accept : "application/json");
    make_request_id(call->id);
    rc = rc < 0 ? rc : add_header(call, "Audit-ID", call->id);
    rc = rc < 0 ? rc : set_identity(call);
    /* no "Expect: 100-continue": it costs a round trip, and servers that ignore it a second */
    rc = rc < 0 ? rc : add_header(call, "Expect", "");
    if (rc == 0 && request->content_type != NULL) {
        rc = add_header(call, "Content-Type", request->content_type);
    }
    if (rc == 0 && call->client->connect_to != NULL) {
        const struct weft_kube_config *c = call->client->config;
        weft_autofree char *host =
            weft_asprintf(strchr(c->host, ':') != NULL ? "[%s]:%s" : "%s:%s", c->host, c->port);
        rc = host != NULL ? add_header(call, "Host", host) : -ENOMEM;
    }
    return rc;
}

static int set_request(struct weft_kube_call *call, const struct weft_kube_request *request)
{
    CURL *easy = call->web.easy;
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->curl_text);
    (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_write);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
    (void)curl_easy_setopt(easy, CURLOPT_USERAGENT, call->client->user_agent);
    (void)curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
    (void)curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    if (call->body != NULL) {
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_len);
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->body);
    }
    (void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    const int rc = set_headers(call, request);
    if (rc < 0 || curl_easy_setopt(easy, CURLOPT_URL, call->url) != CURLE_OK ||
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->headers) != CURLE_OK) {
        return -ENOMEM;
    }
    set_transport(call);
    return 0;
}

/* ---- life ---- */

void weft_kube_call_free(struct weft_kube_call *call)
{
    if (call == NULL) {
        return;
    }
    weft_timer_free(call->idle_timer);
    if (call->web.easy != NULL) {
        curl_easy_cleanup(call->web.easy);
    }
    for (struct curl_slist *h = call->headers; h != NULL; h = h->next) {
        explicit_bzero(h->data, strlen(h->data)); /* one of them holds the token */
    }
    curl_slist_free_all(call->headers);
    weft_buf_done(&call->answer);
    weft_free(call->what);
    weft_free(call->url);
    weft_free(call->body);
    call->magic = call->web.magic = 0;
    weft_free(call);
}
WEFT_DEFINE_AUTO(struct weft_kube_call, weft_kube_call_free)

static void free_web(struct weft_web_call *web)
{
    weft_kube_call_free((void *)web);
}

static struct weft_kube_call *call_new(struct weft_kube_client *client,
                                       const struct weft_kube_request *request,
                                       const struct weft_kube_stream *callbacks)
{
    weft_auto(weft_kube_call_free) struct weft_kube_call *call = weft_calloc(1, sizeof(*call));
    if (call == NULL) {
        return NULL;
    }
    call->magic = WEFT_KUBE_CALL_MAGIC;
    call->web = (struct weft_web_call){
        .magic = WEFT_WEB_CALL_MAGIC, .report = weft_kube_call_report, .free = free_web};
    call->client = client;
    call->timeout_ns = request->timeout_ns;
    call->idle_ns = request->idle_ns;
    call->is_write = strcmp(request->method, "GET") != 0;
    call->body_max = request->body_max;
    call->on_head = callbacks->on_head;
    call->on_bytes = callbacks->on_bytes;
    call->on_done = callbacks->on_done;
    call->data = callbacks->data;
    weft_buf_init(&call->answer, WEFT_KUBE_BODY_MAX);
    call->web.easy = curl_easy_init();
    call->what = weft_asprintf("%s %s", request->method, request->path);
    const bool has_query = request->query != NULL && request->query[0] != '\0';
    call->url = weft_asprintf("%s%s%s%s", client->url_base, request->path, has_query ? "?" : "",
                              has_query ? request->query : "");
    if (request->body != NULL) {
        call->body = weft_memdup(request->body, request->body_len);
        call->body_len = request->body_len;
    }
    if (call->web.easy == NULL || call->what == NULL || call->url == NULL ||
        (request->body != NULL && call->body == NULL) || set_request(call, request) < 0) {
        return NULL;
    }
    return weft_steal(&call);
}

int weft_kube_call_start(struct weft_kube_client *client, const struct weft_kube_request *request,
                         const struct weft_kube_stream *callbacks, struct weft_kube_call **ret_call,
                         struct weft_error *err)
{
    WEFT_CHECK(client, WEFT_KUBE_CLIENT_MAGIC);
    if (client->pools.call_count >= WEFT_KUBE_CALLS_MAX) {
        return weft_err_set(err, -EBUSY, WEFT_ERR_HTTP, "%s %s: %d calls are under way",
                            request->method, request->path, WEFT_KUBE_CALLS_MAX);
    }
    if (request->path == NULL || request->path[0] != '/' ||
        request->body_len > WEFT_KUBE_REQUEST_MAX) {
        const bool big = request->path != NULL && request->path[0] == '/';
        return weft_err_set(err, big ? -EFBIG : -EINVAL, WEFT_ERR_HTTP, "%s %s: %s",
                            request->method, request->path != NULL ? request->path : "(null)",
                            big ? "the body is too large" : "no path");
    }
    weft_auto(weft_kube_call_free) struct weft_kube_call *call =
        call_new(client, request, callbacks);
    if (call == NULL) {
        return weft_err_nomem(err);
    }
    int rc = start_idle_timer(call, err);
    rc = rc < 0 ? rc : weft_web_call_start(&client->pools, &call->web, err);
    if (rc < 0) {
        return rc;
    }
    client->stats.requests++;
    client->stats.writes += call->is_write;
    struct weft_kube_call *started = weft_steal(&call);
    if (ret_call != NULL) {
        *ret_call = started;
    }
    return 0;
}

int weft_kube_stream_start(struct weft_kube_client *client, const struct weft_kube_stream *stream,
                           struct weft_kube_call **ret_call, struct weft_error *err)
{
    const struct weft_kube_request request = {
        .method = "GET",
        .path = stream->path,
        .query = stream->query,
        .accept = stream->accept,
        .timeout_ns = stream->timeout_ns,
        .idle_ns = stream->idle_ns,
        .body_max = stream->body_max > 0 ? stream->body_max : WEFT_KUBE_BODY_MAX,
    };
    return weft_kube_call_start(client, &request, stream, ret_call, err);
}

void weft_kube_call_cancel(struct weft_kube_call *call)
{
    if (call != NULL) {
        WEFT_CHECK(call, WEFT_KUBE_CALL_MAGIC);
        weft_web_call_cancel(&call->web);
    }
}
