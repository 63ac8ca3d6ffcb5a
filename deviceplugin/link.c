/* SPDX-License-Identifier: Apache-2.0 */
/* The registration, kept alive. All decisions are in step(); everything else only causes it to be
 * called, soon. */
#include "deviceplugin/link.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "deviceplugin/folder.h"
#include "deviceplugin/inventory.h"
#include "deviceplugin/service.h"
#include "deviceplugin/stats.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/kubelet/kubelet.h"
#include "pkg/loop/loop.h"
#include "pkg/machine/machine.h"
#include "pkg/rpc/rpc.h"

enum { LINK_MAGIC = 0x4c696e6b /* "Link" */ };

/* After an event: several come together when a kubelet starts, and it listens a moment after it
 * made its socket. */
#define SETTLE_NS (30 * WEFT_NS_PER_MS)
/* After the stream ended: the end of a kubelet's process closes stream and socket one by one. */
#define STREAM_SETTLE_NS (200 * WEFT_NS_PER_MS)
#define REGISTER_TIMEOUT_NS                                                                        \
    (30 * WEFT_NS_PER_S)                       /* the kubelet itself gives up dialling after 10 s */
#define STREAM_TIMEOUT_NS (10 * WEFT_NS_PER_S) /* from Register to ListAndWatch */
#define RETRY_MIN_NS (1 * WEFT_NS_PER_S)
#define RETRY_MAX_NS (30 * WEFT_NS_PER_S)
#define RIVAL_WINDOW_NS (60 * WEFT_NS_PER_S)
#define RIVAL_MIN_NS (30 * WEFT_NS_PER_S)
#define RIVAL_MAX_NS (300 * WEFT_NS_PER_S)
#define LOOK_NS (10 * WEFT_NS_PER_S) /* with gRPC's tick: one wake-up for both */

struct weft_link {
    uint32_t magic;
    struct weft_link_options options;
    char slug[WEFT_FOLDER_NAME_MAX];
    char *kubelet_path;
    struct weft_timer *soon; /* step() is due */
    int64_t soon_ns;         /* when, 0: not planned */
    struct weft_timer *look; /* slowly, for what inotify does not tell */
    struct weft_dirwatch *watch;
    struct weft_file_identity watched; /* the folder under watch */

    /* the current generation */
    unsigned generation; /* of the next socket */
    char name[WEFT_FOLDER_NAME_MAX];
    char *path; /* NULL: not serving */
    struct weft_file_identity socket;
    struct weft_rpc_request *request; /* a Register under way */
    bool used;                        /* this socket was registered once */
    bool registered;                  /* and the kubelet still knows us, as far as we know */
    bool stream_seen;                 /* it has opened ListAndWatch on this socket */
    int64_t registered_ns;
    struct weft_file_identity kubelet; /* the kubelet.sock that was seen last */

    int64_t not_before_ns; /* no new attempt earlier */
    int64_t retry_ns;      /* the next delay after a failure */
    int64_t lost_ns;       /* when the stream last ended at an unchanged, living kubelet */
    int64_t rival_ns;      /* the next delay if that happens again */
    bool waiting_said;     /* "waiting for the kubelet" was logged */
    bool no_folder_said;   /* that its folder is not there was */
    bool watch_failed_said;
};

static int64_t now_ns(void)
{
    return weft_clock_monotonic(weft_clock_system());
}

/* Makes step() run after delay_ns, or earlier if that is already planned. */
static void step_within(struct weft_link *link, int64_t delay_ns)
{
    const int64_t due = now_ns() + delay_ns;
    if (link->soon_ns == 0 || due < link->soon_ns) {
        link->soon_ns = due;
        weft_timer_start(link->soon, delay_ns, 0);
    }
}

static void close_generation(struct weft_link *link)
{
    weft_rpc_request_free(weft_steal(&link->request));
    weft_service_close(link->options.service);
    if (link->path != NULL) {
        (void)unlink(link->path); /* gRPC does so too, a moment later; names are not used twice */
        weft_free(weft_steal(&link->path));
    }
    link->registered = false;
    link->used = false;
    link->stream_seen = false;
}

/* ---- watching ---- */

static void on_folder_event(void *data, const char *name)
{
    struct weft_link *link = data;
    WEFT_CHECK(link, LINK_MAGIC);
    /* of the others, checkpoint files above all, nothing is wanted */
    if (name == NULL || strcmp(name, WEFT_KUBELET_SOCKET) == 0 || strcmp(name, link->name) == 0 ||
        !weft_file_identify(link->options.folder).exists) {
        step_within(link, SETTLE_NS);
    }
}

/* Watches the folder that is there now. */
static void watch_folder(struct weft_link *link)
{
    const char *folder = link->options.folder;
    struct weft_file_identity now = weft_file_identify(folder);
    now.changed_ns = 0; /* changes with every entry */
    if (link->watch != NULL && !weft_file_same(&now, &link->watched)) {
        weft_dirwatch_free(weft_steal(&link->watch));
    }
    if (link->watch != NULL || !now.exists) {
        return;
    }
    struct weft_error err = {0};
    if (weft_dirwatch_new(link->options.loop, folder, on_folder_event, link, &link->watch, &err) ==
        0) {
        link->watched = now;
        link->watch_failed_said = false;
    } else if (!link->watch_failed_said) {
        weft_log(WEFT_LOG_WARN, "folder-not-watched", WEFT_KV_S("reason", err.message),
                 WEFT_KV_S("effect", "a kubelet restart is noticed within 10 s"));
        link->watch_failed_said = true;
    }
}

/* ---- registering ---- */

static void plan_retry(struct weft_link *link, const struct weft_error *why)
{
    link->options.stats->register_failed++;
    weft_log(WEFT_LOG_WARN, "not-registered", WEFT_KV_S("reason", why->message),
             WEFT_KV_I("retry_ms", link->retry_ns / WEFT_NS_PER_MS));
    link->not_before_ns = now_ns() + link->retry_ns;
    step_within(link, link->retry_ns);
    link->retry_ns = link->retry_ns * 2 < RETRY_MAX_NS ? link->retry_ns * 2 : RETRY_MAX_NS;
}

static void on_registered(void *data, const struct weft_rpc_result *result)
{
    struct weft_link *link = data;
    WEFT_CHECK(link, LINK_MAGIC);
    weft_rpc_request_free(weft_steal(&link->request));
    if (result->code != WEFT_RPC_OK) {
        struct weft_error err = {0};
        (void)weft_rpc_result_error(result, &err);
        (void)weft_err_wrap(&err, err.code, "Register at %s", link->kubelet_path);
        plan_retry(link, &err);
        return;
    }
    link->used = true;
    link->registered = true;
    link->registered_ns = now_ns();
    link->retry_ns = RETRY_MIN_NS;
    link->options.stats->registered++;
    const struct weft_inventory *inventory = weft_service_inventory(link->options.service);
    weft_log(WEFT_LOG_INFO, "registered", WEFT_KV_S("resource", link->options.resource),
             WEFT_KV_S("endpoint", link->name),
             WEFT_KV_I("devices", weft_inventory_machine(inventory)->device_count));
    if (link->options.registered != NULL) {
        link->options.registered(link->options.data);
    }
    if (weft_service_streams(link->options.service) == 0) {
        step_within(link, STREAM_TIMEOUT_NS);
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

/* A new socket that accepts connections. */
static int serve(struct weft_link *link, struct weft_error *err)
{
    close_generation(link);
    (void)weft_folder_clean(link->options.folder, link->slug);
    int rc =
        weft_folder_free_name(link->options.folder, link->slug, &link->generation, link->name, err);
    if (rc < 0) {
        return rc;
    }
    weft_autofree char *path = weft_asprintf("%s/%s", link->options.folder, link->name);
    if (path == NULL) {
        return weft_err_nomem(err);
    }
    rc = weft_service_serve(link->options.service, path, err);
    if (rc < 0) {
        return rc;
    }
    link->path = weft_steal(&path);
    link->socket = weft_file_identify(link->path);
    if (!weft_socket_alive(link->path)) {
        return weft_err_set(err, -ECONNREFUSED, WEFT_ERR_GRPC, "own socket %s does not accept",
                            link->path);
    }
    return 0;
}

static bool socket_is_ours(const struct weft_link *link)
{
    const struct weft_file_identity now =
        link->path != NULL ? weft_file_identify(link->path) : (struct weft_file_identity){0};
    return now.exists && now.device == link->socket.device && now.inode == link->socket.inode;
}

/* The stream ended at a kubelet that is still the same and alive: it dropped us. Once may be any
 * reason; twice within a minute means that somebody else registers this resource. */
static void note_loss(struct weft_link *link)
{
    const int64_t now = now_ns();
    const bool again = link->lost_ns != 0 && now - link->lost_ns < RIVAL_WINDOW_NS;
    /* peace for as long as the last step back lasted, and a window more, forgives */
    if (!again && now - link->lost_ns > link->rival_ns + RIVAL_WINDOW_NS) {
        link->rival_ns = RIVAL_MIN_NS;
    }
    link->lost_ns = now;
    if (!again) {
        weft_log(WEFT_LOG_WARN, "stream-lost", WEFT_KV_S("resource", link->options.resource),
                 WEFT_KV_S("action", "registering again"));
        return;
    }
    static const char rival[] = "the kubelet dropped us twice within a minute: another plugin "
                                "registers this resource; run one of the two";
    static const char mute[] = "the kubelet takes registrations but does not ask for the devices";
    weft_log(WEFT_LOG_ERROR, link->stream_seen ? "another-plugin" : "not-listed",
             WEFT_KV_S("resource", link->options.resource),
             WEFT_KV_S("reason", link->stream_seen ? rival : mute),
             WEFT_KV_I("retry_ms", link->rival_ns / WEFT_NS_PER_MS));
    link->not_before_ns = now + link->rival_ns;
    link->lost_ns = link->not_before_ns; /* the wait is no time of peace */
    link->rival_ns = link->rival_ns * 2 < RIVAL_MAX_NS ? link->rival_ns * 2 : RIVAL_MAX_NS;
}

/* Is the registration whole? If it is not, forgets it. */
static bool still_registered(struct weft_link *link, const struct weft_file_identity *kubelet)
{
    if (!link->registered) {
        return false;
    }
    const bool same_kubelet = weft_file_same(kubelet, &link->kubelet);
    if (!same_kubelet || !socket_is_ours(link)) {
        weft_log(WEFT_LOG_INFO, "kubelet-changed",
                 WEFT_KV_S("reason", same_kubelet      ? "own socket is gone"
                                     : kubelet->exists ? "kubelet.sock is new"
                                                       : "kubelet.sock is gone"));
        link->registered = false;
        if (now_ns() - link->registered_ns < RETRY_MIN_NS) { /* who removes it may do so again */
            link->not_before_ns = now_ns() + RETRY_MIN_NS;
        }
        return false;
    }
    if (weft_service_streams(link->options.service) > 0) {
        return true;
    }
    const int64_t wait = link->registered_ns + STREAM_TIMEOUT_NS - now_ns();
    if (!link->stream_seen && wait > 0) {
        step_within(link, wait);
        return true;
    }
    if (weft_socket_alive(link->kubelet_path)) {
        note_loss(link);
    } /* else it went down: nothing odd about that */
    link->registered = false;
    return false;
}

static void try_to_register(struct weft_link *link)
{
    struct weft_error err = {0};
    int rc = 0;
    if (link->used || !socket_is_ours(link)) {
        rc = serve(link, &err);
    }
    rc = rc == 0 ? ask(link, &err) : rc;
    if (rc < 0) {
        plan_retry(link, &err);
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

/* The one place that decides. */
static void step(struct weft_link *link)
{
    watch_folder(link);
    const struct weft_file_identity kubelet = weft_file_identify(link->kubelet_path);
    if (still_registered(link, &kubelet)) {
        return;
    }
    if (!weft_file_same(&kubelet, &link->kubelet)) { /* news: no reason to wait any longer */
        link->not_before_ns = 0;
        link->retry_ns = RETRY_MIN_NS;
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
    const int64_t wait = link->not_before_ns - now_ns();
    if (wait > 0) {
        step_within(link, wait);
    } else {
        try_to_register(link);
    }
}

static void on_soon(void *data)
{
    struct weft_link *link = data;
    WEFT_CHECK(link, LINK_MAGIC);
    link->soon_ns = 0;
    step(link);
}

static void on_look(void *data)
{
    struct weft_link *link = data;
    WEFT_CHECK(link, LINK_MAGIC);
    step(link);
}

bool weft_link_registered(const struct weft_link *link)
{
    WEFT_CHECK(link, LINK_MAGIC);
    return link->registered;
}

void weft_link_streams_changed(struct weft_link *link)
{
    WEFT_CHECK(link, LINK_MAGIC);
    if (weft_service_streams(link->options.service) > 0) {
        link->stream_seen = true;
    } else if (link->registered) {
        step_within(link, STREAM_SETTLE_NS);
    }
}

/* ---- life ---- */

int weft_link_new(const struct weft_link_options *options, struct weft_link **ret_link,
                  struct weft_error *err)
{
    weft_auto(weft_link_free) struct weft_link *link = weft_calloc(1, sizeof(*link));
    if (link == NULL) {
        return weft_err_nomem(err);
    }
    link->magic = LINK_MAGIC;
    link->options = *options;
    link->generation = 1;
    link->retry_ns = RETRY_MIN_NS;
    link->rival_ns = RIVAL_MIN_NS;
    (void)weft_folder_slug(options->resource, link->slug);
    link->kubelet_path = weft_asprintf("%s/%s", options->folder, WEFT_KUBELET_SOCKET);
    if (link->kubelet_path == NULL) {
        return weft_err_nomem(err);
    }
    int rc = weft_timer_new(options->loop, on_soon, link, &link->soon, err);
    if (rc == 0) {
        rc = weft_timer_new(options->loop, on_look, link, &link->look, err);
    }
    if (rc < 0) {
        return rc;
    }
    weft_timer_start_aligned(link->look, LOOK_NS);
    step_within(link, 0);
    *ret_link = weft_steal(&link);
    return 0;
}

void weft_link_free(struct weft_link *link)
{
    if (link == NULL) {
        return;
    }
    WEFT_CHECK(link, LINK_MAGIC);
    close_generation(link);
    weft_timer_free(link->soon);
    weft_timer_free(link->look);
    weft_dirwatch_free(link->watch);
    weft_free(link->kubelet_path);
    link->magic = 0;
    weft_free(link);
}
