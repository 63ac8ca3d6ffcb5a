/* SPDX-License-Identifier: Apache-2.0 */
/* Registering by being found: the kubelet's plugin watcher asks every socket in its registry folder
 * what it is (GetInfo), opens ListAndWatch on it and says how that went. A restarted kubelet finds
 * the socket again by itself. What it does not heal is a stream that ended while the socket stayed
 * in place (seen with 1.36): it never asks that socket again, so a new one takes its place. */
#include "deviceplugin/link-internal.h"
#include "deviceplugin/service.h"
#include "pkg/base/log.h"

#define FOUND_NS                                                                                   \
    (3 * WEFT_NS_PER_S) /* the watcher looks every second; a kubelet restart takes 1 s */

/* How long a socket may stay unfound. */
static int64_t patience(const struct weft_link *link)
{
    return FOUND_NS > link->retry_ns ? FOUND_NS : link->retry_ns;
}

/* A new socket, unless it must wait. */
static void offer(struct weft_link *link)
{
    struct weft_error err = {0};
    if (weft_link_must_wait(link)) {
        return;
    }
    const int rc = weft_link_serve(link, &err);
    if (rc < 0) {
        weft_link_plan_retry(link, &err);
        return;
    }
    link->idle_ns = weft_link_now();
    weft_link_step_within(link, patience(link));
    weft_log(WEFT_LOG_INFO, "offered", WEFT_KV_S("resource", link->options.resource),
             WEFT_KV_S("socket", link->path));
}

/* Nobody asked: the kubelet is not there, or it has forgotten the socket. */
static void offer_again(struct weft_link *link)
{
    if (!link->waiting_said) {
        weft_log(WEFT_LOG_INFO, "not-found-yet", WEFT_KV_S("resource", link->options.resource),
                 WEFT_KV_S("socket", link->path),
                 WEFT_KV_S("action", "offers a new socket now and then"));
    }
    link->waiting_said = true;
    link->retry_ns =
        link->retry_ns * 2 < WEFT_LINK_RETRY_MAX_NS ? link->retry_ns * 2 : WEFT_LINK_RETRY_MAX_NS;
    offer(link);
}

void weft_link_step_watched(struct weft_link *link)
{
    const bool ours = weft_link_socket_is_ours(link);
    if (ours && link->registered && weft_service_streams(link->options.service) > 0) {
        return;
    }
    const bool lost = ours && link->registered && weft_socket_alive(link->kubelet_path);
    if (lost) {
        weft_link_note_loss(link);
    }
    if (link->registered && !lost) { /* the kubelet went down, and will find the socket again */
        link->idle_ns = weft_link_now();
    }
    link->registered = false;
    if (!ours || lost || link->used) {
        link->used = true; /* until there is another */
        offer(link);
        return;
    }
    const int64_t wait = link->idle_ns + patience(link) - weft_link_now();
    if (wait > 0) {
        weft_link_step_within(link, wait);
    } else {
        offer_again(link);
    }
}
