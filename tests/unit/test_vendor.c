/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor thread with a backend of this test's own: what reaches the loop thread, and when
 * nothing does. */
#include "deviceplugin/vendor.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "deviceplugin/health.h"
#include "deviceplugin/vendor-internal.h"
#include "pkg/base/clock.h"
#include "pkg/loop/loop.h"
#include "pkg/machine/host.h"
#include "pkg/machine/machine.h"
#include "tests/unit/fake_host.h"
#include "tests/unit/unit.h"

enum { DEVICES = 3, LIMIT_MS = 50, RESCAN_MS = 100 };

/* What the backend does next; told by the test, read by the vendor thread. */
static struct {
    _Atomic(bool) present, fails, chatter; /* chatter: notices without end */
    _Atomic(int) looks, waits, hang_ms;    /* hang_ms: of the next look */
    _Atomic(int) event;                    /* one more than its kind; 0: none */
    _Atomic(int) open;                     /* by threads, also such as were left behind */
    _Atomic(int) storm;                    /* so many faults, as fast as they are taken */
    _Atomic(unsigned) generation;          /* of the PCIe link */
} driver;

static void sleep_ms(int ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&time, NULL);
}

static bool probe(const struct weft_backend_options *options)
{
    (void)options;
    return driver.present;
}

static int open_driver(const struct weft_backend_options *options, void **ret_state,
                       struct weft_error *err)
{
    *ret_state = options->watch;
    if (driver.fails) {
        return weft_err_set(err, -ENODEV, WEFT_ERR_CONFIG, "it sleeps");
    }
    driver.open++;
    return 0;
}

static int enumerate(void *state, struct weft_machine **ret_machine, struct weft_error *err)
{
    struct weft_backend_watch *watch = state;
    driver.looks++;
    weft_backend_enter(watch, "look", 0);
    sleep_ms(atomic_exchange(&driver.hang_ms, 0));
    weft_backend_leave(watch);
    if (driver.fails) {
        return weft_err_set(err, -EIO, WEFT_ERR_CONFIG, "it broke");
    }
    struct weft_machine *m = NULL;
    const int rc = weft_machine_new("test", DEVICES, 0, &m, err);
    for (size_t i = 0; rc == 0 && i < DEVICES; i++) {
        (void)snprintf(m->devices[i].id, sizeof(m->devices[i].id), "dev-%zu", i);
        m->devices[i].pcie.generation = (uint8_t)driver.generation;
    }
    *ret_machine = m;
    return rc;
}

static int wait_event(void *state, int64_t timeout_ns, struct weft_backend_event *ret_event,
                      struct weft_error *err)
{
    (void)state;
    driver.waits++;
    for (int64_t ms = 0; ms < timeout_ns / WEFT_NS_PER_MS; ms += 5) {
        if (driver.storm > 0) {
            driver.storm--;
            *ret_event = (struct weft_backend_event){
                .kind = WEFT_EVENT_UNHEALTHY, .device = "dev-0", .reason = "it burns"};
            return 1;
        }
        if (driver.chatter) {
            *ret_event = (struct weft_backend_event){.kind = WEFT_EVENT_NOTICE, .device = "dev-0"};
            return 1;
        }
        const int event = atomic_exchange(&driver.event, 0);
        if (event > 0) {
            *ret_event =
                (struct weft_backend_event){.kind = (enum weft_backend_event_kind)(event - 1),
                                            .device = "dev-1",
                                            .reason = "it smokes"};
            return 1;
        }
        if (driver.fails) {
            return weft_err_set(err, -EIO, WEFT_ERR_CONFIG, "it broke");
        }
        sleep_ms(5);
    }
    return 0;
}

static void close_driver(void *state)
{
    driver.open -= state != NULL ? 1 : 0;
}

static const struct weft_backend backend = {.vendor = "test",
                                            .probe = probe,
                                            .open = open_driver,
                                            .enumerate = enumerate,
                                            .wait = wait_event,
                                            .close = close_driver};
static const struct weft_backend *const backends[] = {&backend, NULL};

/* ---- the loop's side ---- */

struct world {
    struct weft_loop *loop;
    struct weft_vendor *vendor;
    bool came;
    struct weft_machine *m; /* the latest */
    int count;
    int moves[WEFT_HEALTH_STATE_COUNT], told[WEFT_EVENT_COUNT];
    const char *host_root;
};

static void on_changed(void *data, struct weft_machine *machine)
{
    struct world *w = data;
    weft_machine_free(w->m);
    w->m = machine;
    w->came = true;
    w->count++;
}

static bool next(struct world *w, int ms)
{
    w->came = false;
    return weft_loop_run_until(w->loop, &w->came, ms * WEFT_NS_PER_MS);
}

static void on_move(void *data, const struct weft_health_move *move)
{
    struct world *w = data;
    w->moves[move->to]++;
}

static void on_told(void *data, const struct weft_backend_event *event)
{
    struct world *w = data;
    w->told[event->kind]++;
}

static int start(struct world *w, struct weft_error *err)
{
    struct weft_health_settings health;
    weft_health_settings_init(&health);
    return weft_vendor_new(
        &(struct weft_vendor_options){.loop = w->loop,
                                      .backends = backends,
                                      .host_root = w->host_root != NULL ? w->host_root : "/host",
                                      .limit_ns = LIMIT_MS * WEFT_NS_PER_MS,
                                      .rescan_ns = RESCAN_MS * WEFT_NS_PER_MS,
                                      .health = &health,
                                      .changed = on_changed,
                                      .moved = on_move,
                                      .told = on_told,
                                      .data = w},
        &w->vendor, err);
}

static bool up_at(struct world *w, bool present, const char *host_root)
{
    *w = (struct world){.host_root = host_root};
    for (int i = 0; i < 1000 && driver.open > 0; i++) {
        sleep_ms(5); /* the thread of the test before takes no event of this one */
    }
    driver.fails = false;
    driver.present = present;
    driver.storm = 0;
    driver.hang_ms = driver.event = driver.looks = driver.waits = 0;
    CHECK_INT(weft_loop_new(&w->loop, NULL), 0);
    return CHECK_INT(start(w, NULL), 0) && next(w, 2000);
}

static bool up(struct world *w, bool present)
{
    return up_at(w, present, NULL);
}

static void down(struct world *w)
{
    weft_vendor_free(w->vendor);
    weft_machine_free(w->m);
    weft_loop_free(w->loop);
}

static size_t healthy(const struct world *w)
{
    size_t count = 0;
    for (size_t i = 0; w->m != NULL && i < w->m->device_count; i++) {
        count += w->m->devices[i].healthy;
    }
    return count;
}

/* Runs until so many devices are healthy; false after 3 s. */
static bool until_healthy(struct world *w, size_t count)
{
    for (int i = 0; i < 30 && healthy(w) != count; i++) {
        (void)next(w, RESCAN_MS);
    }
    return CHECK_INT(healthy(w), count);
}

static void a_node_without_a_driver_is_nothing_until_it_comes(void)
{
    struct world w;
    if (up(&w, false)) {
        CHECK_INT(w.m->device_count, 0);
        CHECK_INT(w.m->warning_count, 1);
        CHECK(!next(&w, 3 * RESCAN_MS)); /* the same nothing is no news */
        driver.present = true;
        CHECK(next(&w, 2000));
        CHECK_INT(w.m->device_count, DEVICES);
    }
    down(&w);
}

static void an_event_takes_one_device_away_until_the_next_look(void)
{
    struct world w;
    if (up(&w, true)) {
        CHECK_INT(healthy(&w), DEVICES);
        const int looks = driver.looks;
        driver.event = 1 + WEFT_EVENT_UNHEALTHY;
        CHECK(next(&w, 2000));
        CHECK_INT(driver.looks, looks); /* at once, without asking */
        CHECK_INT(healthy(&w), DEVICES - 1);
        CHECK_STR(w.m->devices[1].health_reason, "it smokes");
        const int64_t begin = weft_clock_monotonic(weft_clock_system());
        CHECK(next(&w, 2000)); /* this driver calls it healthy when asked again */
        CHECK_STR(weft_device_state_name(&w.m->devices[1]), "recovering");
        CHECK_STR(w.m->devices[1].health_reason, "was: it smokes");
        CHECK(until_healthy(&w, DEVICES));
        CHECK(weft_clock_monotonic(weft_clock_system()) - begin >= RESCAN_MS * WEFT_NS_PER_MS);
        CHECK_STR(w.m->devices[1].health_reason, "");
        CHECK_INT(w.moves[WEFT_HEALTH_UNHEALTHY], 1);
        CHECK_INT(w.moves[WEFT_HEALTH_RECOVERING], 1);
        CHECK_INT(w.moves[WEFT_HEALTH_HEALTHY], 1);
    }
    down(&w);
}

static void notices_and_sleeping_links_are_no_news(void)
{
    struct world w;
    driver.generation = 1;
    if (up(&w, true)) {
        driver.generation = 5;
        driver.event = 1 + WEFT_EVENT_NOTICE;
        CHECK(!next(&w, RESCAN_MS));
        CHECK_INT(w.told[WEFT_EVENT_NOTICE], 1);
        CHECK_INT(w.told[WEFT_EVENT_UNHEALTHY], 0);
        const int looks = driver.looks;
        driver.event = 1 + WEFT_EVENT_CHANGED;
        for (int i = 0; i < 30 && driver.looks == looks; i++) {
            CHECK(!next(&w, RESCAN_MS));
        }
        CHECK_INT(driver.looks, looks + 1);
    }
    down(&w);
}

static void a_rescan_is_a_look(void)
{
    struct world w;
    if (up(&w, true)) {
        const int looks = driver.looks;
        weft_vendor_rescan(w.vendor, false);
        for (int i = 0; i < 30 && driver.looks == looks; i++) {
            CHECK(!next(&w, RESCAN_MS));
        }
        CHECK_INT(driver.looks, looks + 1); /* ten waits without it */
    }
    down(&w);
}

/* Ten waits without it are ten times RESCAN_MS. */
static void a_port_that_changes_is_a_look(void)
{
    struct world w;
    char dir[300], moved[400];
    (void)snprintf(dir, sizeof(dir), "%s/vendor-host", weft_test_dir());
    (void)snprintf(moved, sizeof(moved), "%s-later", dir);
    weft_auto(weft_host_free) struct weft_host *host =
        fake_host_text("pci pci0000:00/0000:01:00.0 class=0x020700\n"
                       "rdma mlx5_0 pci0000:00/0000:01:00.0 ports/1/state=\"1: DOWN\"\n");
    CHECK(host != NULL && mkdir(dir, 0755) == 0 && mkdir(moved, 0755) == 0);
    if (host == NULL) {
        return;
    }
    weft_host_seal(host);
    CHECK(fake_host_write(host, moved));
    if (up_at(&w, true, dir)) {
        CHECK(!next(&w, 2 * RESCAN_MS));
        const int looks = driver.looks;
        const int waits = driver.waits;
        char sys[400], later[500];
        (void)snprintf(sys, sizeof(sys), "%s/sys", dir);
        (void)snprintf(later, sizeof(later), "%s/sys", moved);
        CHECK_INT(rename(later, sys), 0);
        for (int i = 0; i < 100 && driver.looks == looks; i++) {
            (void)next(&w, RESCAN_MS / 10);
        }
        CHECK(driver.looks > looks);
        CHECK(driver.waits - waits <= 4);
    }
    down(&w);
}

/* Many faults at once, while the loop is busy: none is forgotten. */
static void more_faults_than_places_are_everybodys(void)
{
    struct world w;
    if (up(&w, true)) {
        driver.storm = WEFT_VENDOR_NOTES_MAX + 1;
        for (int i = 0; i < 1000 && driver.storm > 0; i++) {
            sleep_ms(5); /* the loop does not turn */
        }
        CHECK_INT(driver.storm, 0);
        CHECK(next(&w, 2000));
        CHECK_INT(healthy(&w), 0);
        CHECK(until_healthy(&w, DEVICES));
    }
    down(&w);
}

/* Notices without end: nothing ever times out, and the machine is looked at all the same. */
static void events_do_not_keep_looks_away(void)
{
    struct world w;
    if (up(&w, true)) {
        driver.chatter = true;
        CHECK(!next(&w, RESCAN_MS)); /* a notice is no news */
        const int looks = driver.looks;
        for (int i = 0; i < 60 && driver.looks == looks; i++) {
            (void)next(&w, RESCAN_MS);
        }
        CHECK(driver.looks > looks);
        CHECK(w.told[WEFT_EVENT_NOTICE] >= 20);
    }
    driver.chatter = false;
    down(&w);
}

static void settings_can_change(void)
{
    struct world w;
    if (up(&w, true)) {
        struct weft_health_settings health;
        weft_health_settings_init(&health);
        CHECK_INT(weft_health_set_disabled(&health, "all", NULL), 0);
        weft_vendor_configure(w.vendor, &health);
        driver.hang_ms = 3 * LIMIT_MS;
        driver.event = 1 + WEFT_EVENT_CHANGED;
        CHECK(!next(&w, 6 * LIMIT_MS)); /* it hangs, and nobody cares */
        CHECK_INT(healthy(&w), DEVICES);
    }
    down(&w);
}

static void a_call_that_hangs_makes_all_unhealthy_while_it_does(void)
{
    struct world w;
    if (up(&w, true)) {
        driver.hang_ms = 6 * LIMIT_MS;
        const int64_t begin = weft_clock_monotonic(weft_clock_system());
        driver.event = 1 + WEFT_EVENT_CHANGED;
        CHECK(next(&w, 2000));
        CHECK(weft_clock_monotonic(weft_clock_system()) - begin >= LIMIT_MS * WEFT_NS_PER_MS);
        CHECK_INT(healthy(&w), 0);
        CHECK_CONTAINS(w.m->devices[2].health_reason, "unresponsive: look is not back after 50 ms");
        CHECK(until_healthy(&w, DEVICES));
    }
    down(&w);
}

static void a_driver_that_breaks_keeps_its_devices_unhealthy(void)
{
    struct world w;
    if (up(&w, true)) {
        driver.fails = true;
        CHECK(next(&w, 2000));
        CHECK_INT(w.m->device_count, DEVICES);
        CHECK_INT(healthy(&w), 0);
        CHECK_STR(w.m->devices[0].health_reason, "it broke");
        CHECK(!next(&w, 3 * RESCAN_MS)); /* and tries again in vain */
        driver.present = false;
        CHECK(!next(&w, 2 * RESCAN_MS));
        driver.present = true;
        driver.fails = false;
        CHECK(until_healthy(&w, DEVICES));
    }
    down(&w);
}

static void an_end_does_not_wait_for_a_call_that_hangs(void)
{
    struct world w;
    if (up(&w, true)) {
        driver.hang_ms = 1500;
        driver.event = 1 + WEFT_EVENT_CHANGED;
        CHECK(next(&w, 2000));
        const int64_t begin = weft_clock_monotonic(weft_clock_system());
        down(&w);
        CHECK(weft_clock_monotonic(weft_clock_system()) - begin < WEFT_NS_PER_S);
        sleep_ms(1800); /* the thread ends alone, and with it what it held */
        return;
    }
    down(&w);
}

static void lack_of_memory_is_told_or_survived(void)
{
    struct world w = {0};
    driver.fails = false;
    driver.present = true;
    CHECK_INT(weft_loop_new(&w.loop, NULL), 0);
    int rc = -ENOMEM;
    uint64_t count = 1;
    for (; rc < 0 && count < 50; count++) {
        struct weft_error err = {0};
        (void)weft_mem_fail_after(count);
        rc = start(&w, &err);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || rc == -ENOMEM);
        CHECK(rc == 0 || err.message[0] != '\0');
    }
    CHECK(count > 3 && count < 50);
    CHECK(next(&w, 2000));
    /* a copy that fails: the next look tries again */
    (void)weft_mem_fail_after(1);
    driver.event = 1 + WEFT_EVENT_UNHEALTHY;
    while (driver.event != 0) {
        (void)next(&w, 5);
    }
    (void)next(&w, RESCAN_MS);
    (void)weft_mem_fail_after(0);
    const int looks = driver.looks;
    for (int i = 0; i < 20 && (driver.looks == looks || healthy(&w) != DEVICES); i++) {
        (void)next(&w, RESCAN_MS);
    }
    CHECK(driver.looks > looks);
    CHECK_INT(healthy(&w), DEVICES);
    down(&w);
}

WEFT_SUITE(vendor,
           {"a node without a driver is nothing until it comes",
            a_node_without_a_driver_is_nothing_until_it_comes},
           {"an event takes one device away until the next look",
            an_event_takes_one_device_away_until_the_next_look},
           {"notices and sleeping links are no news", notices_and_sleeping_links_are_no_news},
           {"a rescan is a look", a_rescan_is_a_look},
           {"a port that changes is a look", a_port_that_changes_is_a_look},
           {"more faults than places are everybody's", more_faults_than_places_are_everybodys},
           {"events do not keep looks away", events_do_not_keep_looks_away},
           {"settings can change", settings_can_change},
           {"a call that hangs makes all unhealthy while it does",
            a_call_that_hangs_makes_all_unhealthy_while_it_does},
           {"a driver that breaks keeps its devices unhealthy",
            a_driver_that_breaks_keeps_its_devices_unhealthy},
           {"an end does not wait for a call that hangs",
            an_end_does_not_wait_for_a_call_that_hangs},
           {"lack of memory is told or survived", lack_of_memory_is_told_or_survived})
