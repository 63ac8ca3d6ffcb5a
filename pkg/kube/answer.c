/* SPDX-License-Identifier: Apache-2.0 */
/* From what libcurl says at the end of a call to the result its owner gets. */
#include <errno.h>
#include <string.h>

#include "pkg/base/clock.h"
#include "pkg/base/str.h"
#include "pkg/json/json.h"
#include "pkg/kube/client-internal.h"
#include "pkg/kube/codec.h"
#include "pkg/kube/config-internal.h"

/* ---- no answer ---- */

/* libcurl was given bytes and cannot say where they are from; NULL: not from a file. */
static const char *file_to_blame(const struct weft_kube_config *config, CURLcode code,
                                 const char **ret_field)
{
    const bool cert = code == CURLE_SSL_CERTPROBLEM;
    const bool ca = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;
    const char *file = cert ? config->cert.file : ca ? config->ca.file : NULL;
    if (file != NULL) {
        *ret_field = cert ? "client-certificate" : "certificate-authority";
    }
    return file;
}

/* Are there other files now than those the request was made with? */
static bool has_new_files(const struct weft_kube_call *call, int64_t now)
{
    const int changed = weft_kube_config_refresh(call->client->config, now, true);
    call->client->stats.token_reloads += (changed & 1) != 0;
    call->client->stats.certificate_reloads += (changed & 2) != 0;
    return changed != 0;
}

/* A 401 may mean that the token has been rotated or has run out, or the certificate: with another
 * one in its file, or on its way from the helper program, a new try pays. */
static bool has_new_identity(const struct weft_kube_call *call)
{
    const int64_t now = weft_clock_monotonic(weft_clock_system());
    return has_new_files(call, now) ||
           weft_kube_exec_refresh(call->client->config, call->client->loop, now, true);
}

static void report_curl(const struct weft_kube_call *call, CURLcode code, struct weft_error *err)
{
    const char *text = call->curl_text[0] != '\0' ? call->curl_text : curl_easy_strerror(code);
    const char *field = "";
    const char *file = file_to_blame(call->client->config, code, &field);
    bool retryable = false;
    const int rc = weft_web_errno(code, &retryable);
    (void)weft_err_set(err, rc, WEFT_ERR_CURL, "%s: %s%s%s%s%s%s", call->what, text,
                       file != NULL ? " (" : "", field, file != NULL ? " " : "",
                       file != NULL ? file : "", file != NULL ? ")" : "");
    err->domain_code = (int)code;
    err->retryable = retryable || (rc == -EPROTO &&
                                   has_new_files(call, weft_clock_monotonic(weft_clock_system())));
}

/* ---- an HTTP status that is no 2xx ---- */

static int status_errno(int status, const char *reason)
{
    switch (status) {
    case 400:
    case 422:
        return -EINVAL;
    case 401:
    case 403:
        return -EACCES;
    case 404:
        return -ENOENT;
    case 409:
        return strcmp(reason, "AlreadyExists") == 0 ? -EEXIST : -ESTALE;
    case 410:
        return -ESTALE;
    case 413:
        return -EFBIG;
    case 429:
        return -EAGAIN;
    case 504:
        return -ETIMEDOUT;
    default:
        return -EIO;
    }
}

bool weft_kube_status_retryable(int status)
{
    return status == 408 || status == 429 || status >= 500;
}

/* The first line of a body that is no Status: a proxy's page, usually. */
static struct weft_str first_line(const struct weft_kube_call *call)
{
    struct weft_str rest = {weft_buf_text(&call->answer), call->answer.len};
    struct weft_str line = {0};
    (void)weft_str_line(&rest, &line);
    line.len = line.len < 120 ? line.len : 120;
    for (size_t i = 0; i < line.len; i++) {
        if (line.data[i] < ' ' || line.data[i] > '~') {
            line.len = i; /* not for a terminal */
        }
    }
    return line;
}

void weft_kube_status_error(const char *what, int http_status, const struct weft_kube_status *s,
                            struct weft_error *err)
{
    (void)weft_err_set(err, status_errno(http_status, s->reason), WEFT_ERR_HTTP, "%s: %d%s%s: %s",
                       what, http_status, s->reason[0] != '\0' ? " " : "", s->reason, s->message);
    err->domain_code = http_status;
    err->retryable = weft_kube_status_retryable(http_status);
}

static void report_status(struct weft_kube_call *call, struct weft_kube_result *result)
{
    struct weft_kube_status status = {.reason = "", .message = ""};
    if (result->body != NULL) {
        weft_kube_read_status(result->body, &status);
    }
    weft_kube_status_error(call->what, call->status, &status, &result->error);
    if (status.message[0] == '\0') {
        const struct weft_str line = first_line(call);
        (void)weft_err_set(&result->error, result->error.code, WEFT_ERR_HTTP, "%s: %d %.*s",
                           call->what, call->status, WEFT_STR_ARG(line));
        result->error.domain_code = call->status;
        result->error.retryable = weft_kube_status_retryable(call->status);
    }
    result->reason = status.reason;
    if (call->status == 401 && has_new_identity(call)) {
        result->error.retryable = true;
    }
    curl_off_t seconds = 0;
    (void)curl_easy_getinfo(call->web.easy, CURLINFO_RETRY_AFTER, &seconds);
    if (seconds > 0) {
        result->retry_after_ns = (seconds < 3600 ? seconds : 3600) * WEFT_NS_PER_S;
    }
}

/* ---- the result ---- */

/* Was a write on its way, so that the server may have done it? */
static bool was_sent(const struct weft_kube_call *call)
{
    curl_off_t begun_us = 0;
    (void)curl_easy_getinfo(call->web.easy, CURLINFO_PRETRANSFER_TIME_T, &begun_us);
    return call->is_write && begun_us > 0;
}

/* The collected body as a document; for errors one that cannot be read is no matter. */
static int read_body(struct weft_kube_call *call, bool success, struct weft_json **ret_body,
                     struct weft_error *err)
{
    if (call->answer.len == 0 || strcmp(call->content_type, "application/json") != 0) {
        return 0;
    }
    struct weft_error inner = {0};
    const int rc = weft_json_parse(weft_buf_text(&call->answer), call->answer.len, call->what,
                                   ret_body, &inner);
    if (rc < 0 && success) {
        (void)weft_err_set(err, rc == -ENOMEM ? rc : -EBADMSG, WEFT_ERR_JSON, "%s", inner.message);
        err->retryable = true;
        return err->code;
    }
    return 0;
}

/* A server may refuse a request by its head alone (for too many of them, or for want of a right).
 * It then ends the stream without reading the body, and libcurl 7.88, which was about to send that,
 * reports the stream's end as an error, though the refusal has come. */
static bool is_refusal(const struct weft_kube_call *call, CURLcode code)
{
    long status = 0;
    (void)curl_easy_getinfo(call->web.easy, CURLINFO_RESPONSE_CODE, &status);
    return code == CURLE_HTTP2_STREAM && status >= 400 && status < 500;
}

static bool ended_whole(struct weft_kube_call *call, CURLcode code, struct weft_kube_result *result)
{
    const bool whole = code == CURLE_OK || is_refusal(call, code);
    if (whole && !call->head_seen && weft_kube_call_read_head(call) < 0 &&
        call->failure.code == 0) {
        (void)weft_err_set(&call->failure, -EIO, WEFT_ERR_HTTP, "%s: refused by its reader",
                           call->what);
    }
    if (call->failure.code != 0) {
        result->error = call->failure;
    } else if (!whole) {
        report_curl(call, code, &result->error);
        call->client->stats.failed++;
    }
    return result->error.code == 0;
}

void weft_kube_call_report(struct weft_web_call *web, CURLcode code)
{
    struct weft_kube_call *call = (void *)web;
    WEFT_CHECK(call, WEFT_KUBE_CALL_MAGIC);
    weft_auto(weft_json_free) struct weft_json *body = NULL;
    struct weft_kube_result result = {.reason = ""};
    if (ended_whole(call, code, &result)) {
        const bool success = call->status >= 200 && call->status < 300;
        const int rc = read_body(call, success, &body, &result.error);
        result.body = body;
        if (rc == 0 && !success) {
            report_status(call, &result);
        }
        result.outcome_unknown = call->is_write && (rc < 0 || call->status >= 500);
    } else {
        result.outcome_unknown = was_sent(call);
    }
    result.status = call->status;
    if (result.error.code != 0) {
        memcpy(result.error.request_id, call->id, sizeof(call->id));
    }
    if (call->on_done != NULL) {
        call->on_done(call->data, &result);
    }
}
