/* SPDX-License-Identifier: Apache-2.0 */
/* What the vendor thread does: connect, ask, wait, ask again. It may hang in any vendor call; the
 * loop's side (vendor.c) sees that by the watch. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "deviceplugin/vendor-internal.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/machine/machine.h"

enum {
    LOOKS_APART = 10,   /* a healthy machine with events is asked again every so many waits */
    EVENTS_AT_ONCE = 20 /* so many events in a second, and the thread takes a breath */
};

struct thread {
    struct weft_vendor_shared *shared;
    struct weft_backend_handle handle;
    struct weft_machine *last; /* as it was handed over; NULL: none yet */
    int waits;                 /* since the last look */
    int64_t burst_ns;          /* when the current burst of events began */
    int burst;
};

/* ---- the mailbox ---- */

static bool stopped(struct weft_vendor_shared *s)
{
    (void)pthread_mutex_lock(&s->lock);
    const bool stop = s->stop;
    (void)pthread_mutex_unlock(&s->lock);
    return stop;
}

static bool take_rescan(struct weft_vendor_shared *s)
{
    (void)pthread_mutex_lock(&s->lock);
    const bool rescan = s->rescan;
    s->rescan = false;
    (void)pthread_mutex_unlock(&s->lock);
    return rescan;
}

/* Until somebody wants something, at most ns. */
static void pause_for(struct weft_vendor_shared *s, int64_t ns)
{
    const int64_t end = weft_clock_monotonic(weft_clock_system()) + ns;
    const struct timespec until = {.tv_sec = end / WEFT_NS_PER_S, .tv_nsec = end % WEFT_NS_PER_S};
    (void)pthread_mutex_lock(&s->lock);
    int rc = 0;
    while (!s->stop && !s->rescan && rc == 0) {
        rc = pthread_cond_timedwait(&s->wake, &s->lock, &until);
    }
    (void)pthread_mutex_unlock(&s->lock);
}

static void deliver(struct weft_vendor_shared *s, struct weft_machine *machine)
{
    (void)pthread_mutex_lock(&s->lock);
    struct weft_machine *unseen = s->latest;
    s->latest = machine;
    if (s->loop != NULL) {
        weft_loop_post(s->loop, &s->post);
    }
    (void)pthread_mutex_unlock(&s->lock);
    weft_machine_free(unseen);
}

/* ---- what is new ---- */

/* A link at rest shows a lower generation: that alone is no news, or an idle node would never be
 * quiet. */
static bool same(struct weft_machine *machine, const struct weft_machine *last)
{
    if (last == NULL || last->device_count != machine->device_count) {
        return false;
    }
    if (machine->device_count == 0) { /* then the reason is what matters */
        return last->warning_count > 0 && machine->warning_count > 0 &&
               strcmp(last->warnings[0], machine->warnings[0]) == 0;
    }
    struct weft_machine *before = NULL;
    if (weft_machine_copy(last, &before, NULL) < 0) {
        return false;
    }
    for (size_t i = 0; i < machine->device_count; i++) {
        before->devices[i].pcie.generation = machine->devices[i].pcie.generation;
        before->devices[i].pcie.width = machine->devices[i].pcie.width;
    }
    const bool equal = weft_machine_equal(before, machine);
    weft_machine_free(before);
    return equal;
}

/* Takes the machine over. */
static void publish(struct thread *t, struct weft_machine *machine)
{
    if (same(machine, t->last)) {
        weft_machine_free(machine);
        return;
    }
    struct weft_machine *copy = NULL;
    if (weft_machine_copy(machine, &copy, NULL) < 0) {
        weft_machine_free(machine);
        t->waits = LOOKS_APART; /* tries again soon */
        return;
    }
    weft_machine_free(t->last);
    t->last = copy;
    deliver(t->shared, machine);
}

int weft_vendor_all_unhealthy(const struct weft_machine *machine, const char *reason,
                              struct weft_machine **ret_machine)
{
    const int rc = weft_machine_copy(machine, ret_machine, NULL);
    for (size_t i = 0; rc == 0 && i < machine->device_count; i++) {
        struct weft_device *d = &(*ret_machine)->devices[i];
        d->healthy = false;
        (void)snprintf(d->health_reason, sizeof(d->health_reason), "%.95s", reason);
    }
    return rc;
}

/* The library does not work (any more): devices that were there stay, unhealthy. */
static void lose(struct thread *t, const char *reason)
{
    weft_log(WEFT_LOG_ERROR, "driver-lost", WEFT_KV_S("reason", reason),
             WEFT_KV_S("effect", "its devices are unhealthy until it works again"));
    weft_backend_disconnect(&t->handle);
    struct weft_machine *machine = NULL;
    if (t->last != NULL && weft_vendor_all_unhealthy(t->last, reason, &machine) == 0) {
        publish(t, machine);
    }
}

/* ---- its steps ---- */

static void connect(struct thread *t)
{
    struct weft_vendor_shared *s = t->shared;
    struct weft_machine *machine = NULL;
    struct weft_error err = {0};
    t->waits = 0;
    if (t->last != NULL && !weft_backend_probe(s->backends, &s->options)) {
        pause_for(s, s->rescan_ns);
        return;
    }
    if (weft_backend_connect(s->backends, &s->options, &t->handle, &machine, &err) < 0) {
        weft_log(WEFT_LOG_ERROR, "driver-not-asked", WEFT_KV_S("reason", err.message));
        pause_for(s, s->rescan_ns);
    } else if (t->handle.backend != NULL || t->last == NULL || t->last->device_count == 0) {
        publish(t, machine);
    } else {
        weft_machine_free(machine); /* what was lost stays as it is until it is back */
    }
    if (t->handle.backend == NULL) {
        pause_for(s, s->rescan_ns);
    }
}

static void look(struct thread *t)
{
    struct weft_machine *machine = NULL;
    struct weft_error err = {0};
    t->waits = 0;
    const int rc = t->handle.backend->enumerate(t->handle.state, &machine, &err);
    if (rc == 0) {
        publish(t, machine);
    } else if (rc == -ENOMEM) {
        weft_log(WEFT_LOG_WARN, "driver-not-asked", WEFT_KV_S("reason", err.message));
        pause_for(t->shared, t->shared->rescan_ns);
    } else {
        lose(t, err.message);
        pause_for(t->shared, t->shared->rescan_ns);
    }
}

/* At once, without asking the driver, which may be slow just now. */
static void mark_unhealthy(struct thread *t, const struct weft_backend_event *event)
{
    struct weft_machine *machine = NULL;
    if (t->last == NULL || weft_machine_copy(t->last, &machine, NULL) < 0) {
        t->waits = LOOKS_APART; /* the backend remembers it */
        return;
    }
    for (size_t i = 0; i < machine->device_count; i++) {
        struct weft_device *d = &machine->devices[i];
        if (event->device[0] == '\0' || strcmp(event->device, d->id) == 0) {
            d->healthy = false;
            (void)snprintf(d->health_reason, sizeof(d->health_reason), "%s", event->reason);
        }
    }
    publish(t, machine);
}

static void calm_down(struct thread *t)
{
    const int64_t now = weft_clock_monotonic(weft_clock_system());
    if (now - t->burst_ns > WEFT_NS_PER_S) {
        t->burst_ns = now;
        t->burst = 0;
    }
    if (++t->burst >= EVENTS_AT_ONCE) {
        pause_for(t->shared, WEFT_NS_PER_S);
    }
}

static void handle_event(struct thread *t, const struct weft_backend_event *event)
{
    switch (event->kind) {
    case WEFT_EVENT_UNHEALTHY:
        mark_unhealthy(t, event);
        break;
    case WEFT_EVENT_NOTICE:
        weft_log(WEFT_LOG_INFO, "device-notice", WEFT_KV_S("device", event->device),
                 WEFT_KV_S("reason", event->reason));
        break;
    case WEFT_EVENT_CHANGED:
    case WEFT_EVENT_COUNT:
        weft_log(WEFT_LOG_INFO, "driver-changed", WEFT_KV_S("reason", event->reason));
        look(t);
        break;
    }
    calm_down(t);
}

static bool all_healthy(const struct weft_machine *machine)
{
    for (size_t i = 0; machine != NULL && i < machine->device_count; i++) {
        if (!machine->devices[i].healthy) {
            return false;
        }
    }
    return true;
}

static void wait_and_see(struct thread *t)
{
    struct weft_vendor_shared *s = t->shared;
    const struct weft_backend *backend = t->handle.backend;
    struct weft_backend_event event = {0};
    struct weft_error err = {0};
    const int rc = backend->wait != NULL
                       ? backend->wait(t->handle.state, s->rescan_ns, &event, &err)
                       : -ENOTSUP;
    if (rc > 0) {
        handle_event(t, &event);
    } else if (rc == -ENOTSUP) {
        pause_for(s, s->rescan_ns);
        look(t);
    } else if (rc < 0) {
        lose(t, err.message);
        pause_for(s, s->rescan_ns);
    } else if (!all_healthy(t->last) || ++t->waits >= LOOKS_APART) {
        look(t);
    }
}

void *weft_vendor_thread(void *data)
{
    struct thread t = {.shared = data};
    (void)pthread_setname_np(pthread_self(), "vendor");
    while (!stopped(t.shared)) {
        const bool rescan = take_rescan(t.shared);
        if (t.handle.backend == NULL) {
            connect(&t);
        } else if (rescan) {
            look(&t);
        } else {
            wait_and_see(&t);
        }
    }
    weft_backend_disconnect(&t.handle);
    weft_machine_free(t.last);
    weft_vendor_unref(t.shared);
    return NULL;
}
