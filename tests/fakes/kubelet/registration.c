/* SPDX-License-Identifier: Apache-2.0 */
/* The Registration service, the call back to the plugin from inside it, and the device list. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fakes/kubelet/standin.h"

size_t standin_healthy(const struct standin *k)
{
    size_t healthy = 0;
    for (size_t i = 0; i < k->device_count; i++) {
        healthy += k->devices[i].healthy ? 1 : 0;
    }
    return healthy;
}

static bool was_taken(const struct standin *k, const char *id)
{
    for (size_t i = 0; i < k->device_count; i++) {
        if (strcmp(k->devices[i].id, id) == 0) {
            return k->devices[i].taken;
        }
    }
    return false;
}

static void on_list(void *data, const void *bytes, size_t len)
{
    struct standin *k = data;
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, WEFT_KUBELET_ARENA_MAX);
    struct weft_kubelet_devices list = {0};
    struct weft_error err = {0};
    if (weft_kubelet_peer_decode_devices(&arena, bytes, len, &list, &err) < 0 ||
        list.count > STANDIN_IDS_MAX) {
        standin_say("list-failed reason=\"%s\"", err.message);
        return;
    }
    struct standin_device fresh[STANDIN_IDS_MAX];
    for (size_t i = 0; i < list.count; i++) {
        fresh[i] = (struct standin_device){.id = weft_strdup(list.devices[i].id),
                                           .healthy = list.devices[i].healthy,
                                           .taken = was_taken(k, list.devices[i].id)};
    }
    for (size_t i = 0; i < k->device_count; i++) {
        weft_free(k->devices[i].id);
    }
    memcpy(k->devices, fresh, list.count * sizeof(fresh[0]));
    k->device_count = list.count;
    k->listed = true;
    standin_say("list devices=%zu healthy=%zu", list.count, standin_healthy(k));
    for (size_t i = 0; i < list.count; i++) {
        standin_say("id %s %s numa=%d", list.devices[i].id,
                    list.devices[i].healthy ? "Healthy" : "Unhealthy", list.devices[i].numa_node);
    }
    weft_timer_start(k->timer, 0, 0);
}

static void on_stream_end(void *data, const struct weft_rpc_result *result)
{
    struct standin *k = data;
    standin_say("stream-ended code=%d", result->code);
    weft_rpc_request_free(weft_steal(&k->stream));
    k->listed = false;
}

static void watch(struct standin *k)
{
    weft_rpc_request_free(weft_steal(&k->stream));
    const struct weft_rpc_request_options options = {.method = WEFT_KUBELET_LIST_AND_WATCH,
                                                     .message = on_list,
                                                     .done = on_stream_end,
                                                     .data = k};
    if (weft_rpc_request_new(k->plugin, &options, &k->stream, NULL) < 0) {
        standin_say("stream-failed");
    }
}

static void on_options(void *data, const struct weft_rpc_result *result)
{
    struct standin *k = data;
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, WEFT_KUBELET_ARENA_MAX);
    const bool good = result->code == WEFT_RPC_OK &&
                      weft_kubelet_peer_decode_options(&arena, result->bytes, result->len,
                                                       &k->options, NULL) == 0;
    standin_say("options preferred=%d pre-start=%d code=%d", k->options.preferred_allocation,
                k->options.pre_start_required, result->code);
    weft_rpc_request_free(weft_steal(&k->request));
    struct weft_rpc_call *registering = weft_steal(&k->registering);
    if (registering != NULL && good) {
        weft_rpc_call_reply(registering, NULL, 0);
        watch(k);
    } else if (registering != NULL) {
        weft_rpc_call_finish(registering, WEFT_RPC_UNKNOWN, result->message);
    }
}

static void on_register(void *data, struct weft_rpc_call *rpc_call, const void *bytes, size_t len)
{
    struct standin *k = data;
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, WEFT_KUBELET_ARENA_MAX);
    struct weft_kubelet_registration r = {0};
    struct weft_error err = {0};
    if (weft_kubelet_peer_decode_registration(&arena, bytes, len, &r, &err) < 0 ||
        strcmp(r.version, WEFT_KUBELET_VERSION) != 0) {
        standin_say("register-refused version=%s reason=\"%s\"", r.version != NULL ? r.version : "",
                    err.message);
        weft_rpc_call_finish(rpc_call, WEFT_RPC_UNKNOWN, "requested API version is not supported");
        return;
    }
    standin_say("register version=%s endpoint=%s resource=%s preferred=%d hang=%d", r.version,
                r.endpoint, r.resource, r.options.preferred_allocation, k->hang);
    if (k->hang || k->request != NULL) {
        return; /* never answered */
    }
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s", k->dir, r.endpoint);
    weft_rpc_channel_free(weft_steal(&k->plugin));
    k->registering = rpc_call;
    if (weft_rpc_channel_new(k->rpc, path, WEFT_KUBELET_MESSAGE_MAX * 4, &k->plugin, &err) < 0) {
        weft_rpc_call_finish(weft_steal(&k->registering), WEFT_RPC_UNKNOWN, err.message);
        return;
    }
    weft_auto(weft_buf_done) struct weft_buf nothing;
    weft_buf_init(&nothing, 1);
    standin_call(k, WEFT_KUBELET_OPTIONS, &nothing, on_options);
}

static void on_closed(void *data, struct weft_rpc_call *rpc_call)
{
    struct standin *k = data;
    standin_say("register-given-up");
    if (k->registering == rpc_call) {
        k->registering = NULL;
    }
}

/* ---- the plugin watcher ---- */

static void on_notified(void *data, const struct weft_rpc_result *result)
{
    struct standin *k = data;
    standin_say("notified code=%d", result->code);
    standin_next(k);
}

/* Tells the plugin how it went, as the watcher does: every second until it goes well. */
static void notify(struct standin *k, bool registered, const char *error)
{
    weft_rpc_request_free(weft_steal(&k->request));
    weft_auto(weft_buf_done) struct weft_buf bytes;
    weft_buf_init(&bytes, WEFT_KUBELET_MESSAGE_MAX);
    weft_kubelet_peer_encode_notice(
        &(struct weft_kubelet_notice){.registered = registered, .error = error}, &bytes);
    standin_call(k, WEFT_KUBELET_NOTIFY, &bytes, on_notified);
}

static void on_info(void *data, const struct weft_rpc_result *result)
{
    struct standin *k = data;
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, WEFT_KUBELET_ARENA_MAX);
    struct weft_kubelet_plugin_info info = {0};
    if (result->code != WEFT_RPC_OK ||
        weft_kubelet_peer_decode_plugin_info(&arena, result->bytes, result->len, &info, NULL) < 0) {
        standin_say("info-failed code=%d message=\"%s\"", result->code, result->message);
        standin_next(k);
        return;
    }
    standin_say("info type=%s name=%s endpoint=\"%s\" version=%s", info.type, info.name,
                info.endpoint, info.version);
    if (k->refuse) {
        notify(k, false, "the stand-in refuses it");
        return;
    }
    watch(k);
    notify(k, true, "");
}

void standin_find(struct standin *k, const char *path)
{
    struct weft_error err = {0};
    weft_rpc_request_free(weft_steal(&k->stream));
    weft_rpc_channel_free(weft_steal(&k->plugin));
    k->listed = false;
    k->options.preferred_allocation = true;
    if (weft_rpc_channel_new(k->rpc, path, WEFT_KUBELET_MESSAGE_MAX * 4, &k->plugin, &err) < 0) {
        standin_say("error text=\"%s\"", err.message);
        return;
    }
    weft_auto(weft_buf_done) struct weft_buf nothing;
    weft_buf_init(&nothing, 1);
    standin_call(k, WEFT_KUBELET_GET_INFO, &nothing, on_info);
}

/* ---- the folder ---- */

/* What the kubelet does when it starts: every socket in the folder goes. */
static void wipe_sockets(const struct standin *k)
{
    DIR *dir = opendir(k->dir);
    for (struct dirent *e = dir != NULL ? readdir(dir) : NULL; e != NULL; e = readdir(dir)) {
        weft_autofree char *path = weft_asprintf("%s/%s", k->dir, e->d_name);
        struct stat st;
        if (path != NULL && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)) {
            (void)unlink(path);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

int standin_serve(struct standin *k)
{
    static const struct weft_rpc_method methods[] = {{WEFT_KUBELET_REGISTER, on_register}};
    wipe_sockets(k);
    struct weft_error err = {0};
    const struct weft_rpc_server_options options = {
        .path = k->socket, .methods = methods, .method_count = 1, .closed = on_closed, .data = k};
    const int rc = weft_rpc_server_new(k->rpc, &options, &k->server, &err);
    if (rc < 0) {
        standin_say("error text=\"%s\"", err.message);
    } else {
        standin_say("serving socket=%s", k->socket);
    }
    return rc;
}

void standin_restart(struct standin *k)
{
    k->registering = NULL;
    weft_rpc_server_free(weft_steal(&k->server));
    weft_rpc_request_free(weft_steal(&k->stream));
    weft_rpc_channel_free(weft_steal(&k->plugin));
    k->listed = false;
    k->restarting = true; /* gRPC removes the old socket by name: wait for that */
    weft_timer_start(k->timer, 50 * WEFT_NS_PER_MS, 0);
}
