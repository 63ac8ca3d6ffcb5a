/* SPDX-License-Identifier: Apache-2.0 */
/* Registering by a call to kubelet.sock: serve on a new socket, see that it accepts, Register, wait
 * for ListAndWatch. */
#include <errno.h>

#include "deviceplugin/link-internal.h"
#include "deviceplugin/service.h"
#include "pkg/base/buf.h"
#include "pkg/base/log.h"
#include "pkg/kubelet/kubelet.h"
#include "pkg/rpc/rpc.h"

#define REGISTER_TIMEOUT_NS                                                                        \
    (30 * WEFT_NS_PER_S)                       /* the kubelet itself gives up dialling after 10 s */
#define STREAM_TIMEOUT_NS (10 * WEFT_NS_PER_S) /* from Register to ListAndWatch */

static void on_registered(void *data, const struct weft_rpc_result *result)
{
    struct weft_link *link = data;
    WEFT_CHECK(link, WEFT_LINK_MAGIC);
    weft_rpc_request_free(weft_steal(&link->request));
    if (result->code != WEFT_RPC_OK) {
        struct weft_error err = {0};
        (void)weft_rpc_result_error(result, &err);
        (void)weft_err_wrap(&err, err.code, "Register at %s", link->kubelet_path);
        weft_link_plan_retry(link, &err);
        return;
    }
    link->used = true;
    weft_link_note_registered(link);
    if (weft_service_streams(link->options.service) == 0) {
        weft_link_step_within(link, STREAM_TIMEOUT_NS);
    }
}

static int ask(struct weft_link *link, struct weft_error *err)
{
    weft_auto(weft_buf_done) struct weft_buf bytes;
    weft_buf_init(&bytes, WEFT_KUBELET_MESSAGE_MAX);
    weft_kubelet_encode_registration(
        &(struct weft_kubelet_registration){.version = WEFT_KUBELET_VERSION,
                                            .endpoint = link->name,
                                            .resource = link->options.resource,
                                            .options = {.preferred_allocation = true}},
        &bytes);
    if (bytes.status < 0) {
        return weft_err_nomem(err);
    }
    weft_auto(weft_rpc_channel_free) struct weft_rpc_channel *channel = NULL;
    const int rc = weft_rpc_channel_new(link->options.rpc, link->kubelet_path,
                                        WEFT_KUBELET_MESSAGE_MAX, &channel, err);
    if (rc < 0) {
        return rc;
    }
    return weft_rpc_request_new(
        channel,
        &(struct weft_rpc_request_options){.method = WEFT_KUBELET_REGISTER,
                                           .bytes = weft_buf_text(&bytes),
                                           .len = bytes.len,
                                           .timeout_ns = REGISTER_TIMEOUT_NS,
                                           .done = on_registered,
                                           .data = link},
        &link->request, err);
}

/* Is the registration whole? If it is not, forgets it. */
static bool still_registered(struct weft_link *link, const struct weft_file_identity *kubelet)
{
    if (!link->registered) {
        return false;
    }
    const bool same_kubelet = weft_file_same(kubelet, &link->kubelet);
    if (!same_kubelet || !weft_link_socket_is_ours(link)) {
        weft_log(WEFT_LOG_INFO, "kubelet-changed",
                 WEFT_KV_S("reason", same_kubelet      ? "own socket is gone"
                                     : kubelet->exists ? "kubelet.sock is new"
                                                       : "kubelet.sock is gone"));
        link->registered = false;
        /* who removes it may do so again */
        if (weft_link_now() - link->registered_ns < WEFT_LINK_RETRY_MIN_NS) {
            link->not_before_ns = weft_link_now() + WEFT_LINK_RETRY_MIN_NS;
        }
        return false;
    }
    if (weft_service_streams(link->options.service) > 0) {
        return true;
    }
    const int64_t wait = link->registered_ns + STREAM_TIMEOUT_NS - weft_link_now();
    if (!link->stream_seen && wait > 0) {
        weft_link_step_within(link, wait);
        return true;
    }
    if (weft_socket_alive(link->kubelet_path)) {
        weft_link_note_loss(link);
    } /* else it went down: nothing odd about that */
    link->registered = false;
    return false;
}

static void try_to_register(struct weft_link *link)
{
    struct weft_error err = {0};
    int rc = 0;
    if (link->used || !weft_link_socket_is_ours(link)) {
        rc = weft_link_serve(link, &err);
    }
    rc = rc == 0 ? ask(link, &err) : rc;
    if (rc < 0) {
        weft_link_plan_retry(link, &err);
    }
}

/* Once for each of the two reasons. A kubelet makes its folder before its socket, so without one
 * the path is most likely wrong. */
static void say_waiting(struct weft_link *link)
{
    const bool folder = weft_folder_there(link->options.folder);
    if (!folder && !link->no_folder_said) {
        weft_log(WEFT_LOG_WARN, "no-plugin-folder", WEFT_KV_S("folder", link->options.folder),
                 WEFT_KV_S("reason", "is not there or is no folder"),
                 WEFT_KV_S("effect", "waiting for it"));
    } else if (folder && !link->waiting_said) {
        weft_log(WEFT_LOG_INFO, "waiting-for-kubelet", WEFT_KV_S("socket", link->kubelet_path));
    }
    link->no_folder_said = !folder;
    link->waiting_said = folder;
}

void weft_link_step_classic(struct weft_link *link)
{
    const struct weft_file_identity kubelet = weft_file_identify(link->kubelet_path);
    if (still_registered(link, &kubelet)) {
        return;
    }
    if (!weft_file_same(&kubelet, &link->kubelet)) { /* news: no reason to wait any longer */
        link->not_before_ns = 0;
        link->retry_ns = WEFT_LINK_RETRY_MIN_NS;
        link->kubelet = kubelet;
        weft_rpc_request_free(weft_steal(&link->request));
    }
    if (link->request != NULL) {
        return; /* it has a time limit */
    }
    if (!kubelet.exists) { /* inotify or the slow look will see it come */
        say_waiting(link);
        return;
    }
    link->waiting_said = false;
    link->no_folder_said = false;
    if (!weft_link_must_wait(link)) {
        try_to_register(link);
    }
}
