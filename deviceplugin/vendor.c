/* SPDX-License-Identifier: Apache-2.0 */
/* The loop's side of the vendor thread: makes of its news what the kubelet is told, and watches
 * that no vendor call takes too long. */
#include "deviceplugin/vendor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "deviceplugin/vendor-internal.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/machine/machine.h"

enum { VENDOR_MAGIC = 0x56656e64 /* "Vend" */ };

/* How long an end waits for a thread that only has to close the library. */
#define END_WAIT_NS (200 * WEFT_NS_PER_MS)
/* Slow timers of the plugin share their wake-ups. */
#define TICK_NS (10 * WEFT_NS_PER_S)

struct weft_vendor {
    uint32_t magic;
    struct weft_vendor_shared *shared;
    struct weft_timer *tick;    /* is a call under way? */
    struct weft_timer *overdue; /* when that call has had its time */
    int64_t limit_ns;
    bool unresponsive;
    struct weft_health_table *health;
    struct weft_machine *last;  /* what the thread last said; NULL: nothing yet */
    struct weft_machine *shown; /* what was handed on last; NULL: nothing, or it has to be again */
    void (*changed)(void *data, struct weft_machine *machine);
    void (*told)(void *data, const struct weft_backend_event *event);
    void *data;
};

/* ---- the shared part ---- */

void weft_vendor_unref(struct weft_vendor_shared *s)
{
    (void)pthread_mutex_lock(&s->lock);
    const bool last = --s->references == 0;
    (void)pthread_cond_signal(&s->over);
    (void)pthread_mutex_unlock(&s->lock);
    if (!last) {
        return;
    }
    (void)pthread_mutex_destroy(&s->lock);
    (void)pthread_cond_destroy(&s->wake);
    (void)pthread_cond_destroy(&s->over);
    for (size_t i = 0; i < s->note_count; i++) {
        weft_machine_free(s->notes[i].machine);
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(s->strings); i++) {
        weft_free(s->strings[i]);
    }
    weft_free(s);
}

/* Vendor thread. */
static bool is_fault(void *data, uint64_t code)
{
    struct weft_vendor_shared *s = data;
    (void)pthread_mutex_lock(&s->lock);
    const bool counts = weft_health_counts(&s->health, code);
    (void)pthread_mutex_unlock(&s->lock);
    return counts;
}

/* The thread may outlive whoever owns the options' strings. */
static int copy_strings(const struct weft_vendor_options *o, struct weft_vendor_shared *s)
{
    const char *const from[] = {o->host_root, o->driver_root, o->only, o->dev_root};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(from); i++) {
        s->strings[i] = from[i] != NULL ? weft_strdup(from[i]) : NULL;
        if (from[i] != NULL && s->strings[i] == NULL) {
            return -ENOMEM;
        }
    }
    s->options = (struct weft_backend_options){.host_root = s->strings[0],
                                               .driver_root = s->strings[1],
                                               .vendor = s->strings[2],
                                               .dev_root = s->strings[3],
                                               .is_fault = is_fault,
                                               .is_fault_data = s,
                                               .watch = &s->watch};
    return 0;
}

/* How soon a device is looked at that an event was of: what is in doubt is not to wait. */
static int64_t quick_of(const struct weft_health_settings *health, int64_t rescan_ns)
{
    enum { LOOKS = 3 };
    const int64_t least =
        health->suspect_ns < health->recover_ns ? health->suspect_ns : health->recover_ns;
    return least / LOOKS < rescan_ns ? least / LOOKS : rescan_ns;
}

/* With the lock held, or before there is a thread. */
static void set_health(struct weft_vendor_shared *s, const struct weft_health_settings *health)
{
    s->health = *health;
    weft_health_settings_finish(&s->health, s->rescan_ns);
    s->quick_ns = quick_of(&s->health, s->rescan_ns);
}

static int init_waits(struct weft_vendor_shared *s)
{
    pthread_condattr_t monotonic;
    int rc = pthread_condattr_init(&monotonic);
    if (rc != 0) {
        return -rc;
    }
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&s->lock, NULL);
    rc = pthread_cond_init(&s->wake, &monotonic);
    rc = rc == 0 ? pthread_cond_init(&s->over, &monotonic) : rc;
    (void)pthread_condattr_destroy(&monotonic);
    return -rc;
}

static int shared_new(const struct weft_vendor_options *o, struct weft_vendor_shared **ret_shared)
{
    struct weft_vendor_shared *s = weft_calloc(1, sizeof(*s));
    if (s == NULL) {
        return -ENOMEM;
    }
    int rc = init_waits(s);
    if (rc < 0) {
        weft_free(s);
        return rc;
    }
    s->references = 1;
    s->loop = o->loop;
    s->backends = o->backends;
    s->rescan_ns = o->rescan_ns;
    set_health(s, o->health);
    rc = copy_strings(o, s);
    if (rc < 0) {
        weft_vendor_unref(s);
        return rc;
    }
    *ret_shared = s;
    return 0;
}

/* ---- news ---- */

static int64_t now_ns(void)
{
    return weft_clock_monotonic(weft_clock_system());
}

/* Hands the machine on as the kubelet is to see it, if that is another one than before. Short of
 * memory it is tried again with the next tick. */
static void show(struct weft_vendor *vendor)
{
    weft_auto(weft_machine_free) struct weft_machine *fresh = NULL;
    struct weft_machine *copy = NULL;
    if (vendor->last == NULL || weft_machine_copy(vendor->last, &fresh, NULL) < 0) {
        return;
    }
    weft_health_apply(vendor->health, fresh);
    if (vendor->shown != NULL && weft_machine_equal(vendor->shown, fresh)) {
        return;
    }
    if (weft_machine_copy(fresh, &copy, NULL) == 0) {
        weft_machine_free(vendor->shown);
        vendor->shown = weft_steal(&fresh);
        vendor->changed(vendor->data, copy);
    }
}

/* Lets the thread know how soon the devices' health wants it to look again. */
static void set_pace(struct weft_vendor *vendor)
{
    struct weft_vendor_shared *s = vendor->shared;
    const int64_t pace = weft_health_pace(vendor->health, s->rescan_ns);
    (void)pthread_mutex_lock(&s->lock);
    s->pace_ns = pace;
    (void)pthread_mutex_unlock(&s->lock);
}

static void take_look(struct weft_vendor *vendor, struct weft_vendor_note *note)
{
    if (note->machine != NULL) {
        weft_machine_free(vendor->last);
        vendor->last = weft_steal(&note->machine);
    }
    if (vendor->last != NULL && weft_health_look(vendor->health, vendor->last, now_ns()) < 0) {
        weft_log(WEFT_LOG_WARN, "look-not-taken-in", WEFT_KV_S("reason", "out of memory"));
    }
}

static void take_event(struct weft_vendor *vendor, const struct weft_backend_event *event)
{
    if (vendor->told != NULL) {
        vendor->told(vendor->data, event);
    }
    if (event->kind == WEFT_EVENT_UNHEALTHY) {
        weft_health_fault(vendor->health, event->device, WEFT_CAUSE_EVENT, event->reason, now_ns());
    }
}

static void take_note(struct weft_vendor *vendor, struct weft_vendor_note *note)
{
    switch (note->news) {
    case WEFT_NEWS_LOOK:
        take_look(vendor, note);
        break;
    case WEFT_NEWS_EVENT:
        take_event(vendor, &note->trouble);
        break;
    case WEFT_NEWS_GONE:
        weft_health_fault(vendor->health, NULL, WEFT_CAUSE_DRIVER, note->trouble.reason, now_ns());
        break;
    }
}

static void on_notes(void *data)
{
    struct weft_vendor *vendor = data;
    WEFT_CHECK(vendor, VENDOR_MAGIC);
    struct weft_vendor_shared *s = vendor->shared;
    struct weft_vendor_note notes[WEFT_VENDOR_NOTES_MAX];
    (void)pthread_mutex_lock(&s->lock);
    const size_t count = s->note_count;
    memcpy(notes, s->notes, count * sizeof(notes[0]));
    s->note_count = 0;
    (void)pthread_mutex_unlock(&s->lock);
    if (count > 0 && vendor->unresponsive) { /* before the watch saw it */
        weft_log(WEFT_LOG_INFO, "driver-answers-again");
        vendor->unresponsive = false;
    }
    for (size_t i = 0; i < count; i++) {
        take_note(vendor, &notes[i]);
    }
    show(vendor);
    set_pace(vendor);
}

/* ---- the watch ---- */

static void become_unresponsive(struct weft_vendor *vendor, const char *call)
{
    char reason[96];
    (void)snprintf(reason, sizeof(reason), "unresponsive: %.40s is not back after %" PRId64 " ms",
                   call, vendor->limit_ns / WEFT_NS_PER_MS);
    weft_log(WEFT_LOG_ERROR, "driver-unresponsive", WEFT_KV_S("call", call),
             WEFT_KV_I("limit_ms", vendor->limit_ns / WEFT_NS_PER_MS),
             WEFT_KV_S("effect", "its devices are unhealthy until the call is back"));
    vendor->unresponsive = true;
    weft_health_fault(vendor->health, NULL, WEFT_CAUSE_UNRESPONSIVE, reason, now_ns());
    show(vendor);
    set_pace(vendor);
}

/* The devices are as healthy as the next look finds them, which is due now. */
static void become_responsive(struct weft_vendor *vendor)
{
    weft_log(WEFT_LOG_INFO, "driver-answers-again");
    vendor->unresponsive = false;
    weft_vendor_rescan(vendor, false);
}

static void look_at_watch(void *data)
{
    struct weft_vendor *vendor = data;
    WEFT_CHECK(vendor, VENDOR_MAGIC);
    const char *call = "";
    const int64_t late = weft_backend_late(
        &vendor->shared->watch, weft_clock_monotonic(weft_clock_system()), vendor->limit_ns, &call);
    if (late >= 0 && !vendor->unresponsive) {
        become_unresponsive(vendor, call);
    } else if (late < 0 && vendor->unresponsive) {
        become_responsive(vendor);
    } else if (late < 0 && late > -TICK_NS) {
        weft_timer_start(vendor->overdue, -late, 0);
    }
    show(vendor);
}

/* ---- life ---- */

static int start_thread(struct weft_vendor_shared *s, struct weft_error *err)
{
    pthread_t thread;
    s->references++;
    const int rc = pthread_create(&thread, NULL, weft_vendor_thread, s);
    if (rc != 0) {
        s->references--;
        return weft_err_errno(err, rc, "thread for the vendor's library");
    }
    (void)pthread_detach(thread);
    return 0;
}

int weft_vendor_new(const struct weft_vendor_options *options, struct weft_vendor **ret_vendor,
                    struct weft_error *err)
{
    weft_auto(weft_vendor_free) struct weft_vendor *vendor = weft_calloc(1, sizeof(*vendor));
    if (vendor == NULL) {
        return weft_err_nomem(err);
    }
    vendor->magic = VENDOR_MAGIC;
    vendor->limit_ns = options->limit_ns;
    vendor->changed = options->changed;
    vendor->told = options->told;
    vendor->data = options->data;
    int rc = shared_new(options, &vendor->shared);
    rc = rc == 0 ? weft_health_table_new(&vendor->shared->health, options->moved, options->data,
                                         &vendor->health)
                 : rc;
    if (rc < 0) {
        return weft_err_errno(err, -rc, "the vendor thread's state");
    }
    vendor->shared->post = (struct weft_post){.fn = on_notes, .data = vendor};
    rc = weft_timer_new(options->loop, look_at_watch, vendor, &vendor->tick, err);
    rc = rc == 0 ? weft_timer_new(options->loop, look_at_watch, vendor, &vendor->overdue, err) : rc;
    rc = rc == 0 ? start_thread(vendor->shared, err) : rc;
    if (rc < 0) {
        return rc;
    }
    const bool fast = options->limit_ns < TICK_NS;
    weft_timer_start_aligned(vendor->tick, fast ? options->limit_ns : TICK_NS);
    *ret_vendor = weft_steal(&vendor);
    return 0;
}

/* The thread may be in a vendor call for any time: it gets a moment to end, then it is on its own.
 */
static bool leave_thread(struct weft_vendor_shared *s)
{
    const int64_t end = weft_clock_monotonic(weft_clock_system()) + END_WAIT_NS;
    const struct timespec until = {.tv_sec = end / WEFT_NS_PER_S, .tv_nsec = end % WEFT_NS_PER_S};
    (void)pthread_mutex_lock(&s->lock);
    s->stop = true;
    (void)pthread_cond_signal(&s->wake);
    int rc = 0;
    while (s->references > 1 && rc == 0) {
        rc = pthread_cond_timedwait(&s->over, &s->lock, &until);
    }
    (void)weft_loop_unpost(s->loop, &s->post);
    s->loop = NULL;
    const bool left = s->references > 1;
    (void)pthread_mutex_unlock(&s->lock);
    return left;
}

bool weft_vendor_end(struct weft_vendor *vendor)
{
    if (vendor == NULL) {
        return false;
    }
    WEFT_CHECK(vendor, VENDOR_MAGIC);
    bool left = false;
    if (vendor->shared != NULL) {
        left = leave_thread(vendor->shared);
        weft_vendor_unref(vendor->shared);
    }
    weft_timer_free(vendor->tick);
    weft_timer_free(vendor->overdue);
    weft_health_table_free(vendor->health);
    weft_machine_free(vendor->last);
    weft_machine_free(vendor->shown);
    vendor->magic = 0;
    weft_free(vendor);
    return left;
}

void weft_vendor_free(struct weft_vendor *vendor)
{
    (void)weft_vendor_end(vendor);
}

void weft_vendor_configure(struct weft_vendor *vendor, const struct weft_health_settings *health)
{
    WEFT_CHECK(vendor, VENDOR_MAGIC);
    struct weft_vendor_shared *s = vendor->shared;
    (void)pthread_mutex_lock(&s->lock);
    set_health(s, health);
    weft_health_table_configure(vendor->health, &s->health);
    (void)pthread_mutex_unlock(&s->lock);
    set_pace(vendor);
}

const struct weft_backend_watch *weft_vendor_watch(const struct weft_vendor *vendor)
{
    WEFT_CHECK(vendor, VENDOR_MAGIC);
    return &vendor->shared->watch;
}

void weft_vendor_rescan(struct weft_vendor *vendor, bool reopen)
{
    WEFT_CHECK(vendor, VENDOR_MAGIC);
    struct weft_vendor_shared *s = vendor->shared;
    (void)pthread_mutex_lock(&s->lock);
    s->rescan = true;
    s->reopen = s->reopen || (reopen && s->pace_ns > 0);
    (void)pthread_cond_signal(&s->wake);
    (void)pthread_mutex_unlock(&s->lock);
}
