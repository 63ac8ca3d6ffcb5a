/* SPDX-License-Identifier: Apache-2.0 */
/* The registration, kept alive. All decisions are in step() and the two ways it ends in
 * (link-classic.c, link-watched.c); everything else only causes it to be called, soon. */
#include "deviceplugin/link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "deviceplugin/checkpoint.h"
#include "deviceplugin/claim.h"
#include "deviceplugin/inventory.h"
#include "deviceplugin/link-internal.h"
#include "deviceplugin/service.h"
#include "deviceplugin/stats.h"
#include "pkg/base/file.h"
#include "pkg/base/log.h"
#include "pkg/kubelet/kubelet.h"
#include "pkg/loop/loop.h"
#include "pkg/machine/machine.h"
#include "pkg/rpc/rpc.h"

/* After the stream ended: the end of a kubelet's process closes stream and socket one by one. */
#define STREAM_SETTLE_NS (200 * WEFT_NS_PER_MS)
#define LOOK_NS (10 * WEFT_NS_PER_S) /* with gRPC's tick: one wake-up for both */
/* A standby hears of an end by inotify where there was time to tell it; a SIGKILL tells nothing. */
#define STANDBY_NS (250 * WEFT_NS_PER_MS)
/* The other one's stream, ending, takes ours with it: for so long that is no sign of a rival. */
#define TAKE_OVER_NS (3 * WEFT_NS_PER_S)
#define RIVAL_LOOK_NS (1 * WEFT_NS_PER_S)
#define UNASKED_NS (5 * WEFT_NS_PER_S)

int64_t weft_link_now(void)
{
    return weft_clock_monotonic(weft_clock_system());
}

void weft_link_step_within(struct weft_link *link, int64_t delay_ns)
{
    const int64_t due = weft_link_now() + delay_ns;
    if (link->soon_ns == 0 || due < link->soon_ns) {
        link->soon_ns = due;
        weft_timer_start(link->soon, delay_ns, 0);
    }
}

static bool watched_way(const struct weft_link *link)
{
    return link->options.registry != NULL;
}

/* ---- the socket ---- */

void weft_link_close(struct weft_link *link)
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

int weft_link_serve(struct weft_link *link, struct weft_error *err)
{
    const char *folder = watched_way(link) ? link->options.registry : link->options.folder;
    weft_link_close(link);
    (void)weft_folder_clean(folder, link->slug);
    int rc = weft_folder_free_name(folder, link->slug, &link->generation, link->name, err);
    if (rc < 0) {
        return rc;
    }
    weft_autofree char *path = weft_asprintf("%s/%s", folder, link->name);
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

bool weft_link_socket_is_ours(const struct weft_link *link)
{
    const struct weft_file_identity now =
        link->path != NULL ? weft_file_identify(link->path) : (struct weft_file_identity){0};
    return now.exists && now.device == link->socket.device && now.inode == link->socket.inode;
}

/* ---- watching ---- */

static void on_folder_event(void *data, const char *name)
{
    struct weft_link *link = data;
    WEFT_CHECK(link, WEFT_LINK_MAGIC);
    /* of the others, checkpoint files above all, nothing is wanted */
    if (name == NULL || strcmp(name, WEFT_KUBELET_SOCKET) == 0 || strcmp(name, link->name) == 0 ||
        strcmp(name, weft_claim_name(link->claim)) == 0 ||
        weft_folder_is_rival(name, link->options.resource) ||
        !weft_file_identify(link->options.folder).exists) {
        weft_link_step_within(link, WEFT_LINK_SETTLE_NS);
    }
}

/* Watches the folder that is there now. */
static void watch_folder(struct weft_link *link, const char *folder, struct weft_dirwatch **watch,
                         struct weft_file_identity *watched)
{
    struct weft_file_identity now = weft_file_identify(folder);
    now.changed_ns = 0; /* changes with every entry */
    if (*watch != NULL && !weft_file_same(&now, watched)) {
        weft_dirwatch_free(weft_steal(watch));
    }
    if (*watch != NULL || !now.exists) {
        return;
    }
    struct weft_error err = {0};
    if (weft_dirwatch_new(link->options.loop, folder, on_folder_event, link, watch, &err) == 0) {
        *watched = now;
        link->watch_failed_said = false;
    } else if (!link->watch_failed_said) {
        weft_log(WEFT_LOG_WARN, "folder-not-watched", WEFT_KV_S("reason", err.message),
                 WEFT_KV_S("effect", "a kubelet restart is noticed within 10 s"));
        link->watch_failed_said = true;
    }
}

/* ---- how it goes ---- */

void weft_link_plan_retry(struct weft_link *link, const struct weft_error *why)
{
    const int64_t wait = weft_spread(link->retry_ns, &link->seed);
    link->options.stats->register_failed++;
    weft_log(WEFT_LOG_WARN, "not-registered", WEFT_KV_S("resource", link->options.resource),
             WEFT_KV_S("reason", why->message), WEFT_KV_I("retry_ms", wait / WEFT_NS_PER_MS));
    link->not_before_ns = weft_link_now() + wait;
    weft_link_step_within(link, wait);
    link->retry_ns =
        link->retry_ns * 2 < WEFT_LINK_RETRY_MAX_NS ? link->retry_ns * 2 : WEFT_LINK_RETRY_MAX_NS;
}

void weft_link_note_registered(struct weft_link *link)
{
    link->registered = true;
    link->registered_ns = weft_link_now();
    link->retry_ns = WEFT_LINK_RETRY_MIN_NS;
    link->waiting_said = false;
    link->away = false;
    link->options.stats->registered++;
    const struct weft_inventory *inventory = weft_service_inventory(link->options.service);
    weft_log(WEFT_LOG_INFO, "registered", WEFT_KV_S("resource", link->options.resource),
             WEFT_KV_S("endpoint", link->name),
             WEFT_KV_I("devices", weft_inventory_machine(inventory)->device_count));
    if (link->options.registered != NULL) {
        link->options.registered(link->options.data);
    }
}

void weft_link_note_loss(struct weft_link *link)
{
    const int64_t now = weft_link_now();
    const bool takes_over = link->took_over_ns != 0 && now - link->took_over_ns < TAKE_OVER_NS;
    const int64_t away = takes_over ? 0 : weft_rivalry_lost(&link->rivalry, now);
    if (away == 0) {
        weft_log(WEFT_LOG_WARN, "stream-lost", WEFT_KV_S("resource", link->options.resource),
                 WEFT_KV_S("action", "registering again"));
        return;
    }
    static const char rival[] = "the kubelet dropped us twice within a minute: another plugin "
                                "registers this resource; run one of the two";
    static const char mute[] = "the kubelet takes registrations but does not ask for the devices";
    char others[WEFT_LINK_OTHERS_MAX];
    weft_folder_others(link->options.folder, link->name, others, sizeof(others));
    weft_log(WEFT_LOG_ERROR, link->stream_seen ? "another-plugin" : "not-listed",
             WEFT_KV_S("resource", link->options.resource),
             WEFT_KV_S("reason", link->stream_seen ? rival : mute),
             WEFT_KV_S("other_sockets", others), WEFT_KV_I("retry_ms", away / WEFT_NS_PER_MS));
    link->options.stats->stepped_back++;
    link->not_before_ns = now + away;
    link->away = link->stream_seen;
}

bool weft_link_must_wait(struct weft_link *link)
{
    int64_t wait = link->not_before_ns - weft_link_now();
    if (wait <= 0 && link->rival[0] != '\0') {
        wait = RIVAL_LOOK_NS; /* its end may come without a sign */
    }
    if (wait > 0) {
        weft_link_step_within(link, wait);
    }
    return wait > 0;
}

/* ---- who may register ---- */

static void stand_by(struct weft_link *link)
{
    if (!link->standby) {
        weft_log(link->registered ? WEFT_LOG_WARN : WEFT_LOG_INFO, "standby",
                 WEFT_KV_S("resource", link->options.resource),
                 WEFT_KV_S("reason", "another weft-device-plugin registers it on this node"),
                 WEFT_KV_S("holder", weft_claim_holder(link->claim)),
                 WEFT_KV_S("action", "takes over when that one ends"));
        weft_link_close(link);
        link->standby = true;
    }
    weft_link_step_within(link, STANDBY_NS);
}

/* Nobody can be asked. That is no reason not to register, but one that knows of another waits a
 * while: the fault may be of the moment. */
static bool go_on_unasked(struct weft_link *link, const struct weft_error *err)
{
    const int64_t now = weft_link_now();
    link->unasked_ns = link->unasked_ns != 0 ? link->unasked_ns : now;
    if (link->standby && now - link->unasked_ns < UNASKED_NS) {
        weft_link_step_within(link, STANDBY_NS);
        return false;
    }
    if (!link->claim_failed_said && err->code != -ENOENT) { /* no folder yet */
        weft_log(WEFT_LOG_WARN, "claim-unknown", WEFT_KV_S("reason", err->message),
                 WEFT_KV_S("effect", "a second weft-device-plugin on this node is not noticed"));
        link->claim_failed_said = true;
    }
    return true;
}

/* Are we the one instance on this node that may register the resource? */
static bool has_claim(struct weft_link *link)
{
    struct weft_error err = {0};
    const enum weft_claim_state state = weft_claim_check(link->claim, weft_link_now(), &err);
    if (state == WEFT_CLAIM_TAKEN) {
        link->unasked_ns = 0;
        stand_by(link);
        return false;
    }
    if (state == WEFT_CLAIM_UNKNOWN && !go_on_unasked(link, &err)) {
        return false;
    }
    if (state == WEFT_CLAIM_HELD) {
        link->unasked_ns = 0;
        link->claim_failed_said = false;
    }
    if (link->standby) {
        weft_log(WEFT_LOG_INFO, "takes-over", WEFT_KV_S("resource", link->options.resource));
        link->standby = false;
        link->took_over_ns = weft_link_now();
        link->not_before_ns = 0;
        link->retry_ns = WEFT_LINK_RETRY_MIN_NS;
    }
    return true;
}

/* Another plugin's socket for this resource comes or goes. Where it was there first, it stays
 * alone; where we were, nothing helps but to say so: ending our stream would end its own too. */
static void look_for_rival(struct weft_link *link)
{
    char now[WEFT_FOLDER_NAME_MAX];
    weft_folder_rival(link->options.folder, link->options.resource, now);
    if (strcmp(now, link->rival) == 0) {
        return;
    }
    if (now[0] != '\0') {
        weft_log(WEFT_LOG_ERROR, "another-plugin", WEFT_KV_S("resource", link->options.resource),
                 WEFT_KV_S("socket", now),
                 WEFT_KV_S("reason", "another plugin serves this resource; run one of the two"),
                 WEFT_KV_S("effect", link->registered ? "the kubelet listens to both"
                                                      : "does not register while it is there"));
    } else {
        weft_log(WEFT_LOG_INFO, "other-plugin-gone", WEFT_KV_S("resource", link->options.resource),
                 WEFT_KV_S("socket", link->rival));
        link->not_before_ns = 0;
        link->away = false;
        /* It came later, so the kubelet asks it and not us, though our stream is open: anew. */
        link->registered = false;
        link->used = true;
    }
    (void)snprintf(link->rival, sizeof(link->rival), "%s", now);
}

/* Does the kubelet's checkpoint have devices of the resource that are not ours? */
static bool strange(struct weft_link *link, char *id, size_t size)
{
    weft_autofree char *path = weft_asprintf("%s/%s", link->options.folder, WEFT_CHECKPOINT_FILE);
    weft_autofree char *text = NULL;
    size_t len = 0;
    id[0] = '\0';
    if (path == NULL || weft_file_read_regular(path, WEFT_CHECKPOINT_MAX, &text, &len, NULL) < 0 ||
        weft_checkpoint_device(text, len, link->options.resource, id, size, NULL) < 0) {
        return false;
    }
    const struct weft_inventory *inventory = weft_service_inventory(link->options.service);
    return id[0] != '\0' && inventory != NULL &&
           weft_inventory_find(inventory, id, NULL) == SIZE_MAX;
}

/* A plugin that registered later, under whatever name: our stream stays open and the kubelet asks
 * that one. Named, and after a while taken back, for it may be gone without a sign. Twice in a row,
 * as the checkpoint is a moment behind where devices change. */
static void look_for_usurper(struct weft_link *link)
{
    char id[WEFT_FOLDER_NAME_MAX], others[WEFT_LINK_OTHERS_MAX];
    if (!link->registered || link->rival[0] != '\0' || !strange(link, id, sizeof(id))) {
        link->strange_looks = 0;
        link->usurped_ns = 0;
        return;
    }
    const int64_t now = weft_link_now();
    link->strange_looks++;
    if (link->usurped_ns == 0 && link->strange_looks >= 2) {
        const int64_t away = weft_rivalry_seen(&link->rivalry, now);
        weft_folder_others(link->options.folder, link->name, others, sizeof(others));
        weft_log(
            WEFT_LOG_ERROR, "another-plugin", WEFT_KV_S("resource", link->options.resource),
            WEFT_KV_S("reason", "the kubelet has another plugin's devices; run one of the two"),
            WEFT_KV_S("device", id), WEFT_KV_S("other_sockets", others),
            WEFT_KV_I("retry_ms", away / WEFT_NS_PER_MS));
        link->options.stats->stepped_back++;
        link->usurped_ns = now + away;
        link->away = true;
    } else if (link->usurped_ns != 0 && now >= link->usurped_ns) {
        link->strange_looks = 0;
        link->usurped_ns = 0;
        link->registered = false;
        link->used = true;
    }
}

/* The one place that decides. */
static void step(struct weft_link *link)
{
    watch_folder(link, link->options.folder, &link->watch, &link->watched);
    if (watched_way(link)) {
        watch_folder(link, link->options.registry, &link->registry_watch, &link->registry_watched);
    }
    if (!has_claim(link)) {
        return;
    }
    look_for_rival(link);
    if (watched_way(link)) {
        weft_link_step_watched(link);
    } else {
        weft_link_step_classic(link);
    }
}

static void on_soon(void *data)
{
    struct weft_link *link = data;
    WEFT_CHECK(link, WEFT_LINK_MAGIC);
    link->soon_ns = 0;
    step(link);
}

static void on_look(void *data)
{
    struct weft_link *link = data;
    WEFT_CHECK(link, WEFT_LINK_MAGIC);
    look_for_usurper(link);
    step(link);
}

/* ---- what others see ---- */

enum weft_link_role weft_link_role(const struct weft_link *link)
{
    WEFT_CHECK(link, WEFT_LINK_MAGIC);
    return link->standby      ? WEFT_LINK_STANDBY
           : link->registered ? WEFT_LINK_REGISTERED
                              : WEFT_LINK_WAITING;
}

bool weft_link_registered(const struct weft_link *link)
{
    return weft_link_role(link) == WEFT_LINK_REGISTERED;
}

const char *weft_link_rival(const struct weft_link *link)
{
    WEFT_CHECK(link, WEFT_LINK_MAGIC);
    return link->rival[0] != '\0' ? link->rival : link->away ? "unknown" : "";
}

void weft_link_streams_changed(struct weft_link *link)
{
    WEFT_CHECK(link, WEFT_LINK_MAGIC);
    if (weft_service_streams(link->options.service) > 0) {
        link->stream_seen = true;
        if (watched_way(link) && !link->registered) {
            weft_link_note_registered(link);
        }
    } else if (link->registered) {
        weft_link_step_within(link, STREAM_SETTLE_NS);
    }
}

void weft_link_told(struct weft_link *link, bool registered, const char *error)
{
    WEFT_CHECK(link, WEFT_LINK_MAGIC);
    if (registered) {
        return; /* the stream, which came before, said so */
    }
    link->options.stats->register_failed++;
    if (!link->refused_said) { /* the kubelet tries every second */
        weft_log(WEFT_LOG_ERROR, "not-registered", WEFT_KV_S("resource", link->options.resource),
                 WEFT_KV_S("reason", error));
    }
    link->refused_said = true;
}

/* ---- life ---- */

static int make_parts(struct weft_link *link, struct weft_error *err)
{
    const struct weft_link_options *options = &link->options;
    link->kubelet_path = weft_asprintf("%s/%s", options->folder, WEFT_KUBELET_SOCKET);
    if (link->kubelet_path == NULL) {
        return weft_err_nomem(err);
    }
    int rc = weft_claim_new(options->folder, link->slug, &link->claim, err);
    rc = rc == 0 ? weft_timer_new(options->loop, on_soon, link, &link->soon, err) : rc;
    return rc == 0 ? weft_timer_new(options->loop, on_look, link, &link->look, err) : rc;
}

int weft_link_new(const struct weft_link_options *options, struct weft_link **ret_link,
                  struct weft_error *err)
{
    weft_auto(weft_link_free) struct weft_link *link = weft_calloc(1, sizeof(*link));
    if (link == NULL) {
        return weft_err_nomem(err);
    }
    link->magic = WEFT_LINK_MAGIC;
    link->options = *options;
    link->generation = 1;
    link->retry_ns = WEFT_LINK_RETRY_MIN_NS;
    link->seed = (uint64_t)weft_link_now() ^ (uint64_t)getpid();
    (void)weft_folder_slug(options->resource, link->slug);
    const int rc = make_parts(link, err);
    if (rc < 0) {
        return rc;
    }
    weft_timer_start_aligned(link->look, LOOK_NS);
    weft_link_step_within(link, 0);
    *ret_link = weft_steal(&link);
    return 0;
}

void weft_link_stop(struct weft_link *link)
{
    WEFT_CHECK(link, WEFT_LINK_MAGIC);
    weft_link_close(link);
    weft_timer_free(weft_steal(&link->soon));
    weft_timer_free(weft_steal(&link->look));
    weft_dirwatch_free(weft_steal(&link->watch));
    weft_dirwatch_free(weft_steal(&link->registry_watch));
}

void weft_link_free(struct weft_link *link)
{
    if (link == NULL) {
        return;
    }
    weft_link_stop(link);
    weft_claim_free(link->claim);
    weft_free(link->kubelet_path);
    link->magic = 0;
    weft_free(link);
}
