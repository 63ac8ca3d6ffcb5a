/* SPDX-License-Identifier: Apache-2.0 */
/* What the API server does with single HyperNodes, and what can go wrong on the way. */
#include "tests/unit/hypernode_server.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/hypernode/model.h"
#include "pkg/json/json.h"
#include "tests/unit/hypernodes.h"
#include "tests/unit/unit.h"

static char *next_version(struct hypernode_server *server)
{
    return weft_asprintf("%" PRIu64, ++server->version);
}

static void stamp(struct hypernode_server *server, struct weft_hypernode *hn, bool fresh)
{
    weft_free(hn->resource_version);
    hn->resource_version = next_version(server);
    if (fresh) {
        weft_free(hn->uid);
        hn->uid = weft_asprintf("uid-%" PRIu64, server->version);
    }
}

void hypernode_server_init(struct hypernode_server *server, const struct weft_hypernode_set *set)
{
    *server =
        (struct hypernode_server){.version = 100, .has_crd = true, .model = weft_model_new(false)};
    CHECK(weft_hypernode_set_copy(set, &server->set) == 0);
    for (size_t i = 0; i < server->set.count; i++) {
        stamp(server, &server->set.items[i], true);
    }
    CHECK(weft_model_load(server->model, &server->set) >= 0);
}

void hypernode_server_done(struct hypernode_server *server)
{
    weft_hypernode_set_done(&server->set);
    weft_model_free(server->model);
    weft_free(server->body);
    weft_free(server->late_body);
    for (size_t i = 0; i < HYPERNODE_SERVER_REQUESTS; i++) {
        weft_free(server->requests[i].body);
    }
}

/* ---- the store ---- */

static struct weft_hypernode *find(struct hypernode_server *server, const char *name)
{
    for (size_t i = 0; i < server->set.count; i++) {
        if (strcmp(server->set.items[i].name, name) == 0) {
            return &server->set.items[i];
        }
    }
    return NULL;
}

static void judge(struct hypernode_server *server, int outcome, const char *what)
{
    if (outcome > server->worst) {
        server->worst = outcome;
        server->worst_at = what;
    }
}

static void store(struct hypernode_server *server, struct weft_hypernode *hn)
{
    judge(server, weft_model_apply(server->model, hn), "write");
    CHECK(weft_hypernode_set_put(&server->set, hn) >= 0);
}

static void drop(struct hypernode_server *server, const char *name)
{
    judge(server, weft_model_delete(server->model, name), "delete");
    CHECK(weft_hypernode_set_remove(&server->set, name));
}

/* ---- single requests ---- */

static const char *name_in(const char *path)
{
    static const char base[] = "/apis/topology.volcano.sh/v1alpha1/hypernodes";
    CHECK(strncmp(path, base, sizeof(base) - 1) == 0);
    return path[sizeof(base) - 1] == '/' ? path + sizeof(base) : "";
}

static int create(struct hypernode_server *server, const char *body)
{
    weft_auto(weft_json_free) struct weft_json *doc = NULL;
    weft_auto(weft_hypernode_done) struct weft_hypernode hn = {0};
    struct weft_error err = {0};
    CHECK_INT(weft_json_parse(body, strlen(body), "body", &doc, &err), 0);
    CHECK_INT(weft_hypernode_from_json(doc, "weft.dev/", &hn, &err), 0);
    CHECK_STR(hn.resource_version, "");
    CHECK(hn.member_count > 0);
    if (find(server, hn.name) != NULL) {
        return 409;
    }
    stamp(server, &hn, true);
    store(server, &hn);
    return 201;
}

static int replace(struct hypernode_server *server, const char *name, const char *body)
{
    weft_auto(weft_json_free) struct weft_json *doc = NULL;
    weft_auto(weft_hypernode_done) struct weft_hypernode hn = {0};
    struct weft_error err = {0};
    CHECK_INT(weft_json_parse(body, strlen(body), "body", &doc, &err), 0);
    CHECK_INT(weft_hypernode_from_json(doc, "weft.dev/", &hn, &err), 0);
    CHECK_STR(hn.name, name);
    CHECK(hn.resource_version[0] != '\0');
    CHECK(hn.member_count > 0);
    const struct weft_hypernode *known = find(server, name);
    if (known == NULL) {
        return 404;
    }
    if (strcmp(known->resource_version, hn.resource_version) != 0) {
        return 409;
    }
    CHECK_STR(hn.others, known->others != NULL ? known->others : "");
    weft_free(hn.uid);
    hn.uid = weft_strdup(known->uid);
    stamp(server, &hn, false);
    store(server, &hn);
    return 200;
}

static int delete_it(struct hypernode_server *server, const char *name, const char *uid,
                     const char *version)
{
    const struct weft_hypernode *known = find(server, name);
    CHECK(uid[0] != '\0');
    CHECK(version[0] != '\0');
    if (known == NULL) {
        return 404;
    }
    if (strcmp(known->uid, uid) != 0 || strcmp(known->resource_version, version) != 0) {
        return 409;
    }
    drop(server, name);
    return 200;
}

static int perform(struct hypernode_server *server, enum weft_kube_verb verb, const char *path,
                   const char *body, const char *uid, const char *version)
{
    int status = 400;
    if (verb == WEFT_KUBE_CREATE) {
        CHECK_STR(name_in(path), "");
        status = create(server, body);
    } else if (verb == WEFT_KUBE_REPLACE) {
        status = replace(server, name_in(path), body);
    } else if (verb == WEFT_KUBE_DELETE) {
        status = delete_it(server, name_in(path), uid, version);
    }
    server->performed += status < 300;
    return status;
}

/* ---- answers ---- */

static struct weft_json *object_doc(const struct weft_hypernode *hn)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1 << 20);
    struct weft_json_writer w;
    weft_json_writer_init(&w, &buf, 0);
    weft_hypernode_to_json(hn, "weft.dev/", true, &w);
    struct weft_json *doc = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_json_parse(weft_buf_text(&buf), buf.len, "answer", &doc, &err), 0);
    return doc;
}

static struct weft_json *status_doc(void)
{
    static const char text[] = "{\"kind\":\"Status\",\"status\":\"Success\"}";
    struct weft_json *doc = NULL;
    CHECK_INT(weft_json_parse(text, sizeof(text) - 1, "status", &doc, NULL), 0);
    return doc;
}

static void set_error(struct weft_kube_result *result, int status)
{
    const bool retryable = status == 0 || status == 429 || status >= 500;
    const int code = status == 409 ? -ESTALE : status == 404 ? -ENOENT : -EIO;
    (void)weft_err_set(&result->error, code, status == 0 ? WEFT_ERR_CURL : WEFT_ERR_HTTP, "HTTP %d",
                       status);
    result->error.domain_code = status;
    result->error.retryable = retryable;
}

static void reply(struct hypernode_server *server, int status, bool unknown, const char *name)
{
    struct weft_kube_result result = {.status = status, .reason = "", .outcome_unknown = unknown};
    weft_auto(weft_json_free) struct weft_json *doc = NULL;
    if (status >= 200 && status < 300) {
        const struct weft_hypernode *hn = find(server, name);
        doc = server->verb == WEFT_KUBE_DELETE || hn == NULL ? status_doc() : object_doc(hn);
        result.body = doc;
    } else {
        set_error(&result, status);
    }
    if (status == 404 && server->has_crd) {
        result.reason = "NotFound";
    }
    server->has_crd = true;
    if (status == 429) {
        result.retry_after_ns = 7000000000;
    }
    (void)weft_mem_fail_after(server->fail_allocation);
    server->on_done(server->data, &result);
    (void)weft_mem_fail_after(0);
}

/* ---- faults ---- */

static void take_name(struct hypernode_server *server, const char *name)
{
    weft_autofree char *text = weft_asprintf("!%s 1 some-node\n", name);
    struct weft_hypernode_set one = {0};
    hypernodes_read(&one, text);
    stamp(server, &one.items[0], true);
    (void)!weft_model_apply(server->model, &one.items[0]);
    CHECK(weft_hypernode_set_put(&server->set, &one.items[0]) >= 0);
    weft_hypernode_set_done(&one);
}

/* What others do just before the write. */
static void meddle(struct hypernode_server *server, enum fault fault, const char *name)
{
    struct weft_hypernode *hn = find(server, name);
    if (fault == FAULT_STATUS_WRITE && hn != NULL) {
        stamp(server, hn, false);
    } else if (fault == FAULT_FOREIGN_CHANGE && hn != NULL && hn->member_count > 1) {
        weft_free(hn->members[hn->member_count - 1].name);
        hn->member_count--;
        stamp(server, hn, false);
        (void)!weft_model_apply(server->model, hn);
    } else if (fault == FAULT_DELETED && hn != NULL) {
        (void)!weft_model_delete(server->model, name);
        CHECK(weft_hypernode_set_remove(&server->set, name));
    } else if (fault == FAULT_TAKEN && hn == NULL) {
        take_name(server, name);
    }
}

static bool is_done_anyway(enum fault fault)
{
    return fault == FAULT_500_DONE || fault == FAULT_LOST_DONE;
}

static int status_of(enum fault fault)
{
    switch (fault) {
    case FAULT_500:
    case FAULT_500_DONE:
        return 500;
    case FAULT_429:
        return 429;
    case FAULT_403:
        return 403;
    case FAULT_NO_CRD:
        return 404;
    case FAULT_NONE:
    case FAULT_STATUS_WRITE:
    case FAULT_FOREIGN_CHANGE:
    case FAULT_DELETED:
    case FAULT_TAKEN:
    case FAULT_LOST:
    case FAULT_LOST_DONE:
    case FAULT_SUBMIT:
    case FAULT_LATE:
    case FAULT_COUNT:
        break;
    }
    return 0;
}

static void save_late(struct hypernode_server *server)
{
    server->late = true;
    server->late_verb = server->verb;
    memcpy(server->late_path, server->path, sizeof(server->path));
    memcpy(server->late_uid, server->uid, sizeof(server->uid));
    memcpy(server->late_version, server->resource_version, sizeof(server->resource_version));
    weft_free(server->late_body);
    server->late_body = weft_strdup(server->body);
}

static void perform_late(struct hypernode_server *server)
{
    if (server->late) {
        server->late = false;
        (void)perform(server, server->late_verb, server->late_path, server->late_body,
                      server->late_uid, server->late_version);
    }
}

static void answer_write(struct hypernode_server *server)
{
    weft_autofree char *body = weft_steal(&server->body);
    server->body = body; /* save_late copies it */
    const enum fault fault = ++server->writes == server->fault_at ? server->fault : FAULT_NONE;
    weft_auto(weft_json_free) struct weft_json *doc = NULL;
    const char *name = name_in(server->path);
    if (server->verb == WEFT_KUBE_CREATE) {
        CHECK_INT(weft_json_parse(body, strlen(body), "body", &doc, NULL), 0);
        name = weft_json_string(weft_json_get(weft_json_get(doc, "metadata"), "name"));
    }
    server->reads_fail = server->fault_reads && fault != FAULT_NONE;
    server->has_crd = fault != FAULT_NO_CRD;
    meddle(server, fault, name);
    int status = status_of(fault);
    if (fault == FAULT_LATE) {
        save_late(server);
    }
    const bool lost = fault == FAULT_LOST || fault == FAULT_LOST_DONE || fault == FAULT_LATE;
    if (is_done_anyway(fault) || (status == 0 && !lost)) {
        const int done = perform(server, server->verb, server->path, body, server->uid,
                                 server->resource_version);
        status = is_done_anyway(fault) ? status : done;
    }
    server->body = NULL;
    reply(server, lost ? 0 : status, lost, name);
}

static void answer_read(struct hypernode_server *server)
{
    const char *name = name_in(server->path);
    if (server->reads_fail) {
        reply(server, 503, false, name);
        return;
    }
    reply(server, find(server, name) != NULL ? 200 : 404, false, name);
    perform_late(server);
}

/* Any of them, or the first that is found. */
static struct hypernode_request *next_request(struct hypernode_server *server)
{
    struct hypernode_request *pending[HYPERNODE_SERVER_REQUESTS];
    size_t count = 0;
    for (size_t i = 0; i < HYPERNODE_SERVER_REQUESTS; i++) {
        if (server->requests[i].pending) {
            pending[count++] = &server->requests[i];
        }
    }
    CHECK_INT(count, server->under_way);
    if (count == 0) {
        return NULL;
    }
    return pending[server->shuffle != 0 ? weft_random_below(&server->shuffle, count) : 0];
}

static void take_request(struct hypernode_server *server, struct hypernode_request *r)
{
    server->verb = r->verb;
    memcpy(server->path, r->path, sizeof(server->path));
    memcpy(server->uid, r->uid, sizeof(server->uid));
    memcpy(server->resource_version, r->resource_version, sizeof(server->resource_version));
    weft_free(server->body);
    server->body = weft_steal(&r->body);
    server->on_done = r->on_done;
    server->data = r->data;
    r->pending = false;
    server->under_way--;
}

bool hypernode_server_answer(struct hypernode_server *server)
{
    struct hypernode_request *r = next_request(server);
    if (r == NULL) {
        return false;
    }
    take_request(server, r);
    if (server->verb == WEFT_KUBE_GET) {
        answer_read(server);
    } else {
        perform_late(server);
        answer_write(server);
    }
    return true;
}

/* ---- requests ---- */

static int64_t tier_in(const char *body)
{
    weft_auto(weft_json_free) struct weft_json *doc = NULL;
    weft_auto(weft_hypernode_done) struct weft_hypernode hn = {0};
    CHECK_INT(weft_json_parse(body, strlen(body), "body", &doc, NULL), 0);
    CHECK_INT(weft_hypernode_from_json(doc, "weft.dev/", &hn, NULL), 0);
    return hn.tier;
}

/* A write that another relies on is confirmed before it: only creates of one tier do not. */
static void check_alone(const struct hypernode_server *server,
                        const struct hypernode_request *added)
{
    for (size_t i = 0; i < HYPERNODE_SERVER_REQUESTS; i++) {
        const struct hypernode_request *r = &server->requests[i];
        if (r == added || !r->pending || r->verb == WEFT_KUBE_GET || added->verb == WEFT_KUBE_GET) {
            continue;
        }
        CHECK_INT(r->verb, WEFT_KUBE_CREATE);
        CHECK_INT(added->verb, WEFT_KUBE_CREATE);
        CHECK_INT(r->tier, added->tier);
    }
}

int hypernode_server_submit(struct weft_kube_client *client, const struct weft_kube_op *op,
                            struct weft_kube_call **ret_call, struct weft_error *err)
{
    struct hypernode_server *server = (struct hypernode_server *)(void *)client;
    (void)weft_mem_fail_after(0); /* the stand-in itself does not fail */
    const bool write = op->verb != WEFT_KUBE_GET;
    server->submitted += write;
    if (write && server->fault == FAULT_SUBMIT && server->submitted == server->fault_at) {
        server->writes++;
        return weft_err_nomem(err);
    }
    CHECK_INT(op->timeout_ns, 4000000000);
    size_t at = 0;
    while (at < HYPERNODE_SERVER_REQUESTS && server->requests[at].pending) {
        at++;
    }
    if (at == HYPERNODE_SERVER_REQUESTS) {
        CU_FAIL("more requests than there may be");
        return weft_err_nomem(err);
    }
    struct hypernode_request *r = &server->requests[at];
    r->server = server;
    r->pending = true;
    r->verb = op->verb;
    (void)snprintf(r->path, sizeof(r->path), "%s", op->path);
    (void)snprintf(r->uid, sizeof(r->uid), "%s", op->uid != NULL ? op->uid : "");
    (void)snprintf(r->resource_version, sizeof(r->resource_version), "%s",
                   op->resource_version != NULL ? op->resource_version : "");
    weft_free(r->body);
    r->body = weft_strdup(op->body != NULL ? op->body : "");
    r->tier = op->verb == WEFT_KUBE_CREATE ? tier_in(r->body) : 0;
    r->on_done = op->on_done;
    r->data = op->data;
    server->under_way++;
    if (write && server->under_way > server->most_under_way) {
        server->most_under_way = server->under_way;
    }
    check_alone(server, r);
    *ret_call = (struct weft_kube_call *)(void *)r;
    return 0;
}

void hypernode_server_cancel(struct weft_kube_call *call)
{
    struct hypernode_request *r = (struct hypernode_request *)(void *)call;
    struct hypernode_server *server = r->server;
    CHECK(r->pending);
    r->pending = false;
    server->under_way--;
    if (server->shuffle != 0 && r->verb != WEFT_KUBE_GET &&
        weft_random_below(&server->shuffle, 2) == 0) { /* it had arrived */
        (void)perform(server, r->verb, r->path, r->body, r->uid, r->resource_version);
    }
}
