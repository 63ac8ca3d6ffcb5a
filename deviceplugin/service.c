/* SPDX-License-Identifier: Apache-2.0 */
/* Requests from the kubelet to answers from memory. */
#include "deviceplugin/service.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "deviceplugin/grant.h"
#include "deviceplugin/inventory.h"
#include "deviceplugin/preference.h"
#include "deviceplugin/stats.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/kubelet/kubelet.h"
#include "pkg/machine/machine.h"
#include "pkg/pb/arena.h"
#include "pkg/rpc/rpc.h"

enum {
    SERVICE_MAGIC = 0x53727663, /* "Srvc" */
    STREAMS_MAX = 16            /* the kubelet has one, an operator's debug client another */
};

struct weft_service {
    uint32_t magic;
    struct weft_service_options options;
    struct weft_rpc_server *server;
    struct weft_inventory *inventory;
    struct weft_buf list; /* the encoded device list */
    struct weft_rpc_call *streams[STREAMS_MAX];
    size_t stream_count;
    struct weft_pb_arena arena; /* of the request at hand */
};

static int64_t now_ns(void)
{
    return weft_clock_monotonic(weft_clock_system());
}

/* ---- methods ---- */

/* An answer that could not be made whole is none: half of one would be believed. */
static void reply(struct weft_rpc_call *call, const struct weft_buf *answer)
{
    if (answer->status < 0) {
        weft_rpc_call_finish(call, WEFT_RPC_RESOURCE_EXHAUSTED, "out of memory");
    } else {
        weft_rpc_call_reply(call, weft_buf_text(answer), answer->len);
    }
}

static void on_options(void *data, struct weft_rpc_call *call, const void *request, size_t len)
{
    (void)data;
    (void)request; /* an empty message; whatever it holds changes nothing */
    (void)len;
    weft_auto(weft_buf_done) struct weft_buf answer;
    weft_buf_init(&answer, WEFT_KUBELET_MESSAGE_MAX);
    weft_kubelet_encode_options(&(struct weft_kubelet_options){.preferred_allocation = true},
                                &answer);
    reply(call, &answer);
}

/* The plugin watcher asks what this socket is. */
static void on_get_info(void *data, struct weft_rpc_call *call, const void *request, size_t len)
{
    struct weft_service *service = data;
    WEFT_CHECK(service, SERVICE_MAGIC);
    (void)request;
    (void)len;
    weft_auto(weft_buf_done) struct weft_buf answer;
    weft_buf_init(&answer, WEFT_KUBELET_MESSAGE_MAX);
    weft_kubelet_encode_plugin_info(service->options.watched_resource, &answer);
    reply(call, &answer);
}

static void on_notify(void *data, struct weft_rpc_call *call, const void *request, size_t len)
{
    struct weft_service *service = data;
    WEFT_CHECK(service, SERVICE_MAGIC);
    struct weft_kubelet_notice notice = {0};
    struct weft_error err = {0};
    if (weft_kubelet_decode_notice(&service->arena, request, len, &notice, &err) == 0) {
        service->options.told(service->options.data, notice.registered, notice.error);
    } else {
        weft_log(WEFT_LOG_WARN, "notice-not-read", WEFT_KV_S("reason", err.message));
    }
    weft_pb_arena_reset(&service->arena);
    weft_rpc_call_reply(call, NULL, 0);
}

static void on_list_and_watch(void *data, struct weft_rpc_call *call, const void *request,
                              size_t len)
{
    (void)request;
    (void)len;
    struct weft_service *service = data;
    WEFT_CHECK(service, SERVICE_MAGIC);
    if (service->stream_count == STREAMS_MAX) {
        weft_rpc_call_finish(call, WEFT_RPC_RESOURCE_EXHAUSTED, "too many ListAndWatch streams");
        return;
    }
    service->streams[service->stream_count++] = call;
    service->options.stats->lists_sent++;
    weft_rpc_call_update(call, weft_buf_text(&service->list), service->list.len);
    weft_log(WEFT_LOG_DEBUG, "stream-opened", WEFT_KV_I("streams", service->stream_count));
    service->options.streams_changed(service->options.data);
}

static void on_preference(void *data, const struct weft_preference *preference)
{
    const struct weft_service *service = data;
    weft_stats_prefer(service->options.stats, preference);
}

static void on_preferred(void *data, struct weft_rpc_call *call, const void *request, size_t len)
{
    struct weft_service *service = data;
    WEFT_CHECK(service, SERVICE_MAGIC);
    const int64_t start = now_ns();
    weft_auto(weft_buf_done) struct weft_buf answer;
    weft_buf_init(&answer, WEFT_KUBELET_MESSAGE_MAX);
    const struct weft_grant_preferring from = {.inventory = service->inventory,
                                               .policy = service->options.policy,
                                               .sharing = service->options.sharing,
                                               .arena = &service->arena,
                                               .told = on_preference,
                                               .data = service};
    weft_grant_prefer(&from, request, len, &answer);
    weft_pb_arena_reset(&service->arena);
    weft_rpc_call_reply(call, weft_buf_text(&answer), answer.len);
    weft_histogram_add(&service->options.stats->preferred_time, now_ns() - start);
}

static void on_allocate(void *data, struct weft_rpc_call *call, const void *request, size_t len)
{
    struct weft_service *service = data;
    WEFT_CHECK(service, SERVICE_MAGIC);
    struct weft_stats *stats = service->options.stats;
    const int64_t start = now_ns();
    weft_auto(weft_buf_done) struct weft_buf answer;
    weft_buf_init(&answer, WEFT_KUBELET_MESSAGE_MAX);
    struct weft_error err = {0};
    const int rc =
        weft_grant_allocate(service->inventory, &service->arena, request, len, &answer, &err);
    weft_pb_arena_reset(&service->arena);
    weft_histogram_add(&stats->allocate_time, now_ns() - start);
    if (rc < 0) {
        stats->refused++;
        weft_log(WEFT_LOG_WARN, "allocate-refused", WEFT_KV_S("reason", err.message));
        weft_rpc_call_finish(call, rc == -EINVAL ? WEFT_RPC_INVALID_ARGUMENT : WEFT_RPC_INTERNAL,
                             err.message);
        return;
    }
    stats->allocated++;
    weft_rpc_call_reply(call, weft_buf_text(&answer), answer.len);
}

/* Not advertised, so the kubelet does not ask; if somebody does, there is nothing to prepare. */
static void on_pre_start(void *data, struct weft_rpc_call *call, const void *request, size_t len)
{
    (void)data;
    (void)request;
    (void)len;
    weft_rpc_call_reply(call, NULL, 0);
}

static const struct weft_rpc_method methods[] = {
    {WEFT_KUBELET_OPTIONS, on_options},
    {WEFT_KUBELET_LIST_AND_WATCH, on_list_and_watch},
    {WEFT_KUBELET_PREFERRED, on_preferred},
    {WEFT_KUBELET_ALLOCATE, on_allocate},
    {WEFT_KUBELET_PRE_START, on_pre_start},
    /* for the plugin watcher; the last ones */
    {WEFT_KUBELET_GET_INFO, on_get_info},
    {WEFT_KUBELET_NOTIFY, on_notify},
};
enum { WATCHED_METHODS = 2 };

/* ---- peers that go ---- */

static bool drop_stream(struct weft_service *service, const struct weft_rpc_call *call)
{
    for (size_t i = 0; i < service->stream_count; i++) {
        if (service->streams[i] == call) {
            service->streams[i] = service->streams[--service->stream_count];
            return true;
        }
    }
    return false;
}

static void on_closed(void *data, struct weft_rpc_call *call)
{
    struct weft_service *service = data;
    WEFT_CHECK(service, SERVICE_MAGIC);
    if (drop_stream(service, call)) {
        weft_log(WEFT_LOG_DEBUG, "stream-ended", WEFT_KV_I("streams", service->stream_count));
        service->options.streams_changed(service->options.data);
    }
}

/* ---- life ---- */

int weft_service_new(const struct weft_service_options *options, struct weft_service **ret_service,
                     struct weft_error *err)
{
    struct weft_service *service = weft_calloc(1, sizeof(*service));
    if (service == NULL) {
        return weft_err_nomem(err);
    }
    service->magic = SERVICE_MAGIC;
    service->options = *options;
    weft_buf_init(&service->list, WEFT_KUBELET_MESSAGE_MAX);
    weft_pb_arena_init(&service->arena, WEFT_KUBELET_ARENA_MAX);
    *ret_service = service;
    return 0;
}

void weft_service_free(struct weft_service *service)
{
    if (service == NULL) {
        return;
    }
    WEFT_CHECK(service, SERVICE_MAGIC);
    weft_service_close(service);
    weft_inventory_free(service->inventory);
    weft_buf_done(&service->list);
    weft_pb_arena_done(&service->arena);
    service->magic = 0;
    weft_free(service);
}

static void send_list(struct weft_service *service)
{
    service->options.stats->lists_sent += service->stream_count;
    for (size_t i = 0; i < service->stream_count; i++) {
        weft_rpc_call_update(service->streams[i], weft_buf_text(&service->list), service->list.len);
    }
}

int weft_service_set_inventory(struct weft_service *service, struct weft_inventory *inventory,
                               struct weft_error *err)
{
    WEFT_CHECK(service, SERVICE_MAGIC);
    weft_auto(weft_buf_done) struct weft_buf list;
    weft_buf_init(&list, WEFT_KUBELET_MESSAGE_MAX);
    int rc = weft_grant_list(inventory, &service->arena, &list);
    weft_pb_arena_reset(&service->arena);
    if (rc < 0) {
        weft_inventory_free(inventory);
        return weft_err_errno(err, -rc, "device list");
    }
    weft_inventory_free(service->inventory);
    service->inventory = inventory;
    const bool same = list.len == service->list.len &&
                      memcmp(weft_buf_text(&list), weft_buf_text(&service->list), list.len) == 0;
    if (!same) {
        const struct weft_buf old = service->list;
        service->list = list;
        list = old;
        send_list(service);
    }
    struct weft_error why = {0};
    if (weft_inventory_build(inventory, service->options.loop, &why) < 0) {
        weft_log(WEFT_LOG_ERROR, "no-allocator-tables", WEFT_KV_S("reason", why.message));
    }
    return 0;
}

void weft_service_set_policy(struct weft_service *service, enum weft_policy policy,
                             enum weft_sharing sharing)
{
    WEFT_CHECK(service, SERVICE_MAGIC);
    service->options.policy = policy;
    service->options.sharing = sharing;
}

const struct weft_inventory *weft_service_inventory(const struct weft_service *service)
{
    WEFT_CHECK(service, SERVICE_MAGIC);
    return service->inventory;
}

int weft_service_serve(struct weft_service *service, const char *path, struct weft_error *err)
{
    WEFT_CHECK(service, SERVICE_MAGIC);
    weft_service_close(service);
    const bool watched = service->options.watched_resource != NULL;
    return weft_rpc_server_new(
        service->options.rpc,
        &(struct weft_rpc_server_options){
            .path = path,
            .methods = methods,
            .method_count = WEFT_ARRAY_LEN(methods) - (watched ? 0 : WATCHED_METHODS),
            .receive_max = WEFT_KUBELET_MESSAGE_MAX,
            .closed = on_closed,
            .data = service,
        },
        &service->server, err);
}

void weft_service_close(struct weft_service *service)
{
    WEFT_CHECK(service, SERVICE_MAGIC);
    weft_rpc_server_free(weft_steal(&service->server));
    service->stream_count = 0;
}

size_t weft_service_streams(const struct weft_service *service)
{
    WEFT_CHECK(service, SERVICE_MAGIC);
    return service->stream_count;
}
