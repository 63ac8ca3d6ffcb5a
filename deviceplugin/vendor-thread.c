/* SPDX-License-Identifier: Apache-2.0 */
/* What the vendor thread does: connect, ask, wait, ask again. It may hang in any vendor call; the
 * loop's side (vendor.c) sees that by the watch. What its findings mean for a device's health is
 * decided there too. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "deviceplugin/vendor-internal.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/machine/host.h"
#include "pkg/machine/machine.h"

enum {
    LOOKS_APART = 10,   /* a healthy machine with events is asked again every so many waits */
    EVENTS_AT_ONCE = 20 /* so many events in a second, and the thread takes a breath */
};

struct thread {
    struct weft_vendor_shared *shared;
    struct weft_backend_handle handle;
    struct weft_machine *last; /* as it was handed over; NULL: none yet */
    struct weft_host *host;    /* for a glance at its NICs; NULL: not opened yet */
    bool gone;                 /* the driver of last */
    bool fresh;                /* something happened that the loop's side may not know yet */
    int waits;                 /* since the last look */
    int64_t looked_ns;         /* when that was */
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

static bool take_rescan(struct weft_vendor_shared *s, bool *ret_reopen)
{
    (void)pthread_mutex_lock(&s->lock);
    const bool rescan = s->rescan;
    *ret_reopen = s->reopen;
    s->rescan = s->reopen = false;
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

/* How long to wait for an event; *ret_well: nothing needs a look after that. */
static int64_t pace(const struct thread *t, bool *ret_well)
{
    struct weft_vendor_shared *s = t->shared;
    (void)pthread_mutex_lock(&s->lock);
    const int64_t wanted = s->pace_ns;
    const int64_t ns = t->fresh ? s->quick_ns : s->rescan_ns;
    (void)pthread_mutex_unlock(&s->lock);
    *ret_well = wanted == 0 && !t->fresh;
    return wanted > 0 && wanted < ns ? wanted : ns;
}

static bool is_bad(const struct weft_vendor_note *note)
{
    return note->news == WEFT_NEWS_GONE ||
           (note->news == WEFT_NEWS_EVENT && note->trouble.kind == WEFT_EVENT_UNHEALTHY);
}

/* With the lock held. Looks that nobody took yet become one; where there is no place left, the last
 * note becomes a fault of every device, as nothing is to be lost of what is bad. */
static struct weft_machine *put_note(struct weft_vendor_shared *s, struct weft_vendor_note note)
{
    struct weft_vendor_note *last = s->note_count > 0 ? &s->notes[s->note_count - 1] : NULL;
    struct weft_machine *unseen = NULL;
    if (last != NULL && last->news == WEFT_NEWS_LOOK && note.news == WEFT_NEWS_LOOK) {
        unseen = note.machine != NULL ? weft_steal(&last->machine) : NULL;
        last->machine = note.machine != NULL ? note.machine : last->machine;
    } else if (s->note_count < WEFT_VENDOR_NOTES_MAX) {
        s->notes[s->note_count++] = note;
    } else if (!is_bad(&note)) {
        unseen = note.machine; /* the next look tells */
    } else {
        unseen = weft_steal(&last->machine);
        *last = (struct weft_vendor_note){.news = note.news, .trouble = note.trouble};
        last->trouble.device[0] = '\0';
    }
    return unseen;
}

static void deliver(struct thread *t, struct weft_vendor_note note)
{
    struct weft_vendor_shared *s = t->shared;
    (void)pthread_mutex_lock(&s->lock);
    struct weft_machine *unseen = put_note(s, note);
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

static bool all_healthy(const struct weft_machine *machine)
{
    for (size_t i = 0; i < machine->device_count; i++) {
        const struct weft_device *d = &machine->devices[i];
        if (!d->healthy || d->state != WEFT_DEVICE_PLAIN) {
            return false;
        }
    }
    return true;
}

/* Takes the machine over. A look that found the same is told too: it is a sign of health. */
static void publish(struct thread *t, struct weft_machine *machine)
{
    t->gone = false;
    t->fresh = false;
    if (same(machine, t->last)) {
        const bool devices = machine->device_count > 0;
        weft_machine_free(machine);
        if (devices) {
            deliver(t, (struct weft_vendor_note){.news = WEFT_NEWS_LOOK});
        }
        return;
    }
    struct weft_machine *copy = NULL;
    if (weft_machine_copy(machine, &copy, NULL) < 0) {
        weft_machine_free(machine);
        t->fresh = true; /* tries again soon */
        return;
    }
    weft_machine_free(t->last);
    t->last = copy;
    t->fresh = !all_healthy(copy);
    deliver(t, (struct weft_vendor_note){.news = WEFT_NEWS_LOOK, .machine = machine});
}

static void tell_gone(struct thread *t, const char *reason)
{
    struct weft_vendor_note note = {.news = WEFT_NEWS_GONE};
    (void)snprintf(note.trouble.reason, sizeof(note.trouble.reason), "%.95s", reason);
    t->gone = true;
    deliver(t, note);
}

/* The library does not work (any more): devices that were there stay, unhealthy. */
static void lose(struct thread *t, const char *reason)
{
    weft_log(WEFT_LOG_ERROR, "driver-lost", WEFT_KV_S("reason", reason),
             WEFT_KV_S("effect", "its devices are unhealthy until it works again"));
    weft_backend_disconnect(&t->handle);
    if (t->last != NULL && t->last->device_count > 0) {
        tell_gone(t, reason);
    }
}

/* ---- its steps ---- */

static void connect(struct thread *t)
{
    struct weft_vendor_shared *s = t->shared;
    struct weft_machine *machine = NULL;
    struct weft_error err = {0};
    t->waits = 0;
    t->looked_ns = weft_clock_monotonic(weft_clock_system());
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
        /* what was lost stays as it is until it is back */
        if (!t->gone) {
            tell_gone(t, machine->warning_count > 0 ? machine->warnings[0] : "the driver is gone");
        }
        weft_machine_free(machine);
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
    t->looked_ns = weft_clock_monotonic(weft_clock_system());
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
    case WEFT_EVENT_UNHEALTHY: /* at once, without asking the driver, which may be slow just now */
        t->fresh = true;
        deliver(t, (struct weft_vendor_note){.news = WEFT_NEWS_EVENT, .trouble = *event});
        break;
    case WEFT_EVENT_NOTICE:
        weft_log(WEFT_LOG_INFO, "device-notice", WEFT_KV_S("device", event->device),
                 WEFT_KV_S("reason", event->reason));
        deliver(t, (struct weft_vendor_note){.news = WEFT_NEWS_EVENT, .trouble = *event});
        break;
    case WEFT_EVENT_CHANGED:
    case WEFT_EVENT_COUNT:
        weft_log(WEFT_LOG_INFO, "driver-changed", WEFT_KV_S("reason", event->reason));
        look(t);
        break;
    }
    calm_down(t);
}

/* Ports go down without an event of the GPUs' driver; their state is a few files. */
static bool nics_changed(struct thread *t)
{
    const char *root = t->shared->options.host_root;
    struct weft_nic *nics = NULL;
    size_t count = 0, left_out = 0;
    if (t->host == NULL &&
        weft_host_open(root != NULL && root[0] != '\0' ? root : "/", &t->host, NULL) < 0) {
        return false;
    }
    if (t->last == NULL || weft_host_nics(t->host, &nics, &count, &left_out) < 0) {
        return false;
    }
    bool changed = count != t->last->nic_count;
    for (size_t i = 0; !changed && i < count; i++) {
        changed = nics[i].up != t->last->nics[i].up;
    }
    weft_free(nics);
    return changed;
}

/* Events without end, of one GPU's programs perhaps, must not keep the others from being seen. */
static void look_if_due(struct thread *t, int64_t apart_ns)
{
    const int64_t now = weft_clock_monotonic(weft_clock_system());
    if (t->handle.backend != NULL && now - t->looked_ns >= apart_ns) {
        look(t);
    }
}

static void wait_and_see(struct thread *t)
{
    struct weft_vendor_shared *s = t->shared;
    const struct weft_backend *backend = t->handle.backend;
    struct weft_backend_event event = {0};
    struct weft_error err = {0};
    bool well = true;
    const int64_t ns = pace(t, &well);
    const int rc =
        backend->wait != NULL ? backend->wait(t->handle.state, ns, &event, &err) : -ENOTSUP;
    if (rc > 0) {
        handle_event(t, &event);
        look_if_due(t, well ? LOOKS_APART * s->rescan_ns : ns);
    } else if (rc == -ENOTSUP) {
        pause_for(s, ns);
        look(t);
    } else if (rc < 0) {
        lose(t, err.message);
        pause_for(s, s->rescan_ns);
    } else if (!well || ++t->waits >= LOOKS_APART || nics_changed(t)) {
        look(t);
    }
}

void *weft_vendor_thread(void *data)
{
    struct thread t = {.shared = data};
    (void)pthread_setname_np(pthread_self(), "vendor");
    while (!stopped(t.shared)) {
        bool reopen = false;
        const bool rescan = take_rescan(t.shared, &reopen);
        if (reopen) {
            weft_backend_disconnect(&t.handle);
        }
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
    weft_host_free(t.host);
    weft_vendor_unref(t.shared);
    return NULL;
}
