/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a device's health, held against a specification of them that is written from the
 * whole history of signs, and what a table of devices makes of looks and events. */
#include "deviceplugin/health.h"

#include <errno.h>
#include <stdio.h>

#include "pkg/base/clock.h"
#include "pkg/machine/machine.h"
#include "tests/unit/unit.h"

/* ---- the specification ---- */

enum { HISTORY_MAX = 400 };

struct history {
    size_t count;
    enum weft_health_sign signs[HISTORY_MAX];
    int64_t times[HISTORY_MAX];
    enum weft_health_state states[HISTORY_MAX]; /* after each sign */
};

static bool usable(enum weft_health_state state)
{
    return state == WEFT_HEALTH_HEALTHY || state == WEFT_HEALTH_SUSPECT;
}

/* Was the device usable before that sign? It was before all of them. */
static bool usable_before(const struct history *h, size_t at)
{
    return at == 0 || usable(h->states[at - 1]);
}

/* Where the run of equal signs begins that ends there. */
static size_t run_of(const struct history *h, size_t at)
{
    while (at > 0 && h->signs[at - 1] == h->signs[at]) {
        at--;
    }
    return at;
}

/* How long it has to be in order: by how often it fell in the window that ends with its last fall
 * before that sign. */
static int64_t dwell_of(const struct weft_health_settings *s, const struct history *h, size_t at)
{
    int64_t last = -1;
    unsigned falls = 0;
    for (size_t i = at; i-- > 0;) {
        if (usable_before(h, i) && !usable(h->states[i])) {
            last = last < 0 ? h->times[i] : last;
            falls += last - h->times[i] < s->flap_window_ns ? 1 : 0;
        }
    }
    return s->flap_count > 0 && falls >= s->flap_count ? s->flap_recover_ns : s->recover_ns;
}

/* The state after that sign, the states before it being known. */
static enum weft_health_state specified(const struct weft_health_settings *s,
                                        const struct history *h, size_t at)
{
    const size_t first = run_of(h, at);
    const int64_t lasted = h->times[at] - h->times[first];
    switch (h->signs[at]) {
    case WEFT_SIGN_FAULT:
        return WEFT_HEALTH_UNHEALTHY;
    case WEFT_SIGN_DOUBT:
        if (!usable_before(h, first)) {
            return WEFT_HEALTH_UNHEALTHY;
        }
        return at > first && lasted >= s->suspect_ns ? WEFT_HEALTH_UNHEALTHY : WEFT_HEALTH_SUSPECT;
    case WEFT_SIGN_CLEAN:
        if (usable_before(h, first)) {
            return WEFT_HEALTH_HEALTHY;
        }
        return lasted >= dwell_of(s, h, first) ? WEFT_HEALTH_HEALTHY : WEFT_HEALTH_RECOVERING;
    case WEFT_SIGN_COUNT:
        break;
    }
    return WEFT_HEALTH_STATE_COUNT;
}

static void any_history_is_as_specified(void)
{
    uint64_t seen[WEFT_HEALTH_STATE_COUNT] = {0}, damped = 0;
    bool right = true;
    for (uint64_t seed = 1; right && seed <= 3000; seed++) {
        uint64_t r = seed;
        struct weft_health_settings s = {
            .suspect_ns = (int64_t)weft_random_below(&r, 30),
            .recover_ns = (int64_t)weft_random_below(&r, 40),
            .flap_count = (unsigned)weft_random_below(&r, 5),
            .flap_window_ns = (int64_t)weft_random_below(&r, 300),
            .flap_recover_ns = 40 + (int64_t)weft_random_below(&r, 100),
        };
        const uint64_t faults = 1 + weft_random_below(&r, 20); /* of 100 signs */
        const uint64_t doubts = weft_random_below(&r, 50);
        struct weft_health_unit unit = {0};
        static struct history h;
        h.count = 0;
        int64_t now = 0;
        for (; right && h.count < HISTORY_MAX; h.count++) {
            const uint64_t pick = weft_random_below(&r, 100);
            now += (int64_t)weft_random_below(&r, 12);
            h.signs[h.count] = pick < faults            ? WEFT_SIGN_FAULT
                               : pick < faults + doubts ? WEFT_SIGN_DOUBT
                                                        : WEFT_SIGN_CLEAN;
            h.times[h.count] = now;
            h.states[h.count] = specified(&s, &h, h.count);
            const enum weft_health_state before = unit.state;
            const bool moved = weft_health_step(&s, &unit, h.signs[h.count], now);
            seen[unit.state]++;
            damped += unit.damped ? 1 : 0;
            right = unit.state == h.states[h.count] && moved == (unit.state != before) &&
                    weft_health_advertised(unit.state) == usable(unit.state);
        }
        if (!right) {
            (void)fprintf(stderr, "seed %llu, sign %zu: %s, specified is %s\n",
                          (unsigned long long)seed, h.count, weft_health_state_name(unit.state),
                          weft_health_state_name(h.states[h.count - 1]));
        }
    }
    CHECK(right);
    for (size_t i = 0; i < WEFT_HEALTH_STATE_COUNT; i++) {
        CHECK(seen[i] > 1000); /* the histories reach all of it */
    }
    CHECK(damped > 1000);
}

/* ---- the table ---- */

#define S WEFT_NS_PER_S

struct world {
    struct weft_health_settings settings;
    struct weft_health_table *table;
    struct weft_machine *m;
    char moves[2000]; /* "gpu-1 healthy>unhealthy event XID 79\n" */
};

static void on_move(void *data, const struct weft_health_move *move)
{
    struct world *w = data;
    const size_t len = strlen(w->moves);
    (void)snprintf(w->moves + len, sizeof(w->moves) - len, "%s %s>%s %s %s%s\n", move->device,
                   weft_health_state_name(move->from), weft_health_state_name(move->to),
                   weft_health_cause_name(move->cause), move->reason,
                   move->damped ? " (flaps)" : "");
}

static bool up(struct world *w, size_t devices, size_t nics)
{
    *w = (struct world){0};
    weft_health_settings_init(&w->settings);
    weft_health_settings_finish(&w->settings, 30 * S);
    bool good = CHECK_INT(weft_machine_new("test", devices, nics, &w->m, NULL), 0);
    for (size_t i = 0; good && i < devices; i++) {
        (void)snprintf(w->m->devices[i].id, sizeof(w->m->devices[i].id), "gpu-%zu", i);
    }
    return good && CHECK_INT(weft_health_table_new(&w->settings, on_move, w, &w->table), 0);
}

static void down(struct world *w)
{
    weft_health_table_free(w->table);
    weft_machine_free(w->m);
}

static void look(struct world *w, int64_t now_s)
{
    w->moves[0] = '\0';
    CHECK_INT(weft_health_look(w->table, w->m, now_s * S), 0);
}

static void set(struct world *w, size_t device, bool healthy, enum weft_device_state state,
                const char *reason)
{
    struct weft_device *d = &w->m->devices[device];
    d->healthy = healthy;
    d->state = state;
    (void)snprintf(d->health_reason, sizeof(d->health_reason), "%s", reason);
}

/* What the kubelet and the pages are told of a device. */
static void told(const struct world *w, size_t device, bool healthy, const char *state,
                 const char *reason)
{
    weft_auto(weft_machine_free) struct weft_machine *shown = NULL;
    if (CHECK_INT(weft_machine_copy(w->m, &shown, NULL), 0)) {
        weft_health_apply(w->table, shown);
        const struct weft_device *d = &shown->devices[device];
        CHECK_INT(d->healthy, healthy);
        CHECK_STR(weft_device_state_name(d), state);
        CHECK_STR(d->health_reason, reason);
    }
}

static void an_event_is_told_at_once_and_is_over_after_clean_looks(void)
{
    struct world w;
    if (up(&w, 3, 0)) {
        look(&w, 0);
        CHECK_STR(w.moves, "");
        weft_health_fault(w.table, "gpu-1", WEFT_CAUSE_EVENT, "XID 79: gone", 5 * S);
        CHECK_STR(w.moves, "gpu-1 healthy>unhealthy event XID 79: gone\n");
        told(&w, 1, false, "unhealthy", "XID 79: gone");
        told(&w, 0, true, "healthy", "");
        CHECK_INT(weft_health_pace(w.table, 30 * S), 30 * S);
        look(&w, 10);
        CHECK_STR(w.moves, "gpu-1 unhealthy>recovering clean XID 79: gone\n");
        told(&w, 1, false, "recovering", "was: XID 79: gone");
        CHECK_INT(weft_health_pace(w.table, 30 * S), 10 * S);
        look(&w, 39);
        CHECK_STR(w.moves, "");
        look(&w, 40);
        CHECK_STR(w.moves, "gpu-1 recovering>healthy clean XID 79: gone\n");
        told(&w, 1, true, "healthy", "");
        CHECK_INT(weft_health_pace(w.table, 30 * S), 0);
        weft_health_fault(w.table, "gpu-7", WEFT_CAUSE_EVENT, "nobody's", 41 * S);
        weft_health_fault(w.table, "", WEFT_CAUSE_UNRESPONSIVE, "all hang", 42 * S);
        CHECK_INT(weft_health_pace(w.table, 30 * S), 30 * S);
        for (size_t i = 0; i < 3; i++) {
            told(&w, i, false, "unhealthy", "all hang");
        }
    }
    down(&w);
}

static void a_doubt_is_told_when_it_lasts(void)
{
    struct world w;
    if (up(&w, 2, 0)) {
        look(&w, 0);
        set(&w, 0, true, WEFT_DEVICE_SUSPECT, "no answer");
        look(&w, 10);
        CHECK_STR(w.moves, "gpu-0 healthy>suspect look no answer\n");
        told(&w, 0, true, "suspect", "no answer");
        CHECK_INT(weft_health_pace(w.table, 30 * S), 10 * S / 3);
        look(&w, 19);
        CHECK_STR(w.moves, "");
        look(&w, 20);
        CHECK_STR(w.moves, "gpu-0 suspect>unhealthy look no answer\n");
        told(&w, 0, false, "unhealthy", "no answer");
        told(&w, 1, true, "healthy", "");
    }
    down(&w);
}

static void one_that_flaps_waits_longer_and_that_is_said_once(void)
{
    struct world w;
    if (up(&w, 1, 0)) {
        look(&w, 0);
        int64_t now = 0;
        for (int i = 0; i < 4; i++) { /* the third fall is one too many */
            w.moves[0] = '\0';
            weft_health_fault(w.table, "gpu-0", WEFT_CAUSE_EVENT, "XID 74", ++now * S);
            CHECK_STR(w.moves, i == 2 ? "gpu-0 healthy>unhealthy event XID 74 (flaps)\n"
                                      : "gpu-0 healthy>unhealthy event XID 74\n");
            look(&w, ++now);
            told(&w, 0, false, "recovering", i < 2 ? "was: XID 74" : "it flaps: XID 74");
            now += i < 2 ? 30 : 599;
            if (i >= 2) {
                look(&w, now++);
                CHECK_STR(w.moves, "");
            }
            look(&w, now);
            told(&w, 0, true, "healthy", "");
        }
        /* an hour of peace, and it is a device like others */
        weft_health_fault(w.table, "gpu-0", WEFT_CAUSE_EVENT, "XID 74", (now + 3600) * S);
        look(&w, now + 3601);
        look(&w, now + 3631);
        told(&w, 0, true, "healthy", "");
    }
    down(&w);
}

static void nics_count_only_if_asked_for(void)
{
    for (int asked = 0; asked < 2; asked++) {
        struct world w;
        if (up(&w, 2, 3)) {
            weft_health_table_free(w.table);
            w.settings.nic_affects_gpu = asked == 1;
            CHECK_INT(weft_health_table_new(&w.settings, on_move, &w, &w.table), 0);
            /* device 0: NICs 0 and 1 below its switch, 2 further away; device 1 has none near */
            static const uint8_t distance[] = {WEFT_DISTANCE_PIX, WEFT_DISTANCE_PIX,
                                               WEFT_DISTANCE_PHB, WEFT_DISTANCE_SYS,
                                               WEFT_DISTANCE_SYS, WEFT_DISTANCE_NODE};
            memcpy(w.m->nic_distance, distance, sizeof(distance));
            for (size_t n = 0; n < 3; n++) {
                w.m->nics[n].up = n == 1; /* one of its two is enough */
            }
            look(&w, 0);
            told(&w, 0, true, "healthy", "");
            w.m->nics[1].up = -1; /* who knows */
            look(&w, 1);
            told(&w, 0, true, "healthy", "");
            w.m->nics[1].up = 0;
            look(&w, 2);
            look(&w, 12);
            told(&w, 0, asked == 0, asked == 1 ? "unhealthy" : "healthy",
                 asked == 1 ? "none of the NICs nearest to it has an active port" : "");
            told(&w, 1, true, "healthy", "");
        }
        down(&w);
    }
}

static void health_checks_can_be_off(void)
{
    struct world w;
    if (up(&w, 1, 0)) {
        weft_health_table_free(w.table);
        CHECK_INT(weft_health_set_disabled(&w.settings, "all", NULL), 0);
        CHECK_INT(weft_health_table_new(&w.settings, on_move, &w, &w.table), 0);
        set(&w, 0, false, WEFT_DEVICE_PLAIN, "lost");
        look(&w, 0);
        weft_health_fault(w.table, NULL, WEFT_CAUSE_UNRESPONSIVE, "hangs", 1 * S);
        told(&w, 0, true, "healthy", "");
        /* a code that was asked for counts all the same */
        weft_health_fault(w.table, NULL, WEFT_CAUSE_EVENT, "XID 95", 1 * S);
        told(&w, 0, false, "unhealthy", "XID 95");
    }
    down(&w);
}

static void devices_that_come_and_go_keep_to_their_ids(void)
{
    struct world w;
    if (up(&w, 4, 0)) {
        look(&w, 0);
        weft_health_fault(w.table, "gpu-3", WEFT_CAUSE_EVENT, "XID 95", 1 * S);
        static const size_t left[] = {3, 1};
        struct weft_machine *fewer = NULL;
        CHECK_INT(weft_machine_subset(w.m, left, 2, &fewer, NULL), 0);
        weft_machine_free(w.m);
        w.m = fewer;
        set(&w, 0, false, WEFT_DEVICE_PLAIN, ""); /* a file need not say why */
        look(&w, 2);
        told(&w, 0, false, "unhealthy", "it is said to be unhealthy");
        told(&w, 1, true, "healthy", "");
    }
    down(&w);
}

static void lack_of_memory_changes_nothing(void)
{
    struct world w;
    if (up(&w, 2, 0)) {
        look(&w, 0);
        weft_health_fault(w.table, "gpu-1", WEFT_CAUSE_EVENT, "XID 95", 1 * S);
        w.moves[0] = '\0';
        (void)weft_mem_fail_after(1);
        CHECK_INT(weft_health_look(w.table, w.m, 2 * S), -ENOMEM);
        struct weft_health_table *table = NULL;
        (void)weft_mem_fail_after(1);
        CHECK_INT(weft_health_table_new(&w.settings, NULL, NULL, &table), -ENOMEM);
        (void)weft_mem_fail_after(0);
        CHECK_STR(w.moves, "");
        told(&w, 1, false, "unhealthy", "XID 95");
    }
    down(&w);
}

WEFT_SUITE(health, {"any history is as specified", any_history_is_as_specified},
           {"an event is told at once and is over after clean looks",
            an_event_is_told_at_once_and_is_over_after_clean_looks},
           {"a doubt is told when it lasts", a_doubt_is_told_when_it_lasts},
           {"one that flaps waits longer and that is said once",
            one_that_flaps_waits_longer_and_that_is_said_once},
           {"NICs count only if asked for", nics_count_only_if_asked_for},
           {"health checks can be off", health_checks_can_be_off},
           {"devices that come and go keep to their ids",
            devices_that_come_and_go_keep_to_their_ids},
           {"lack of memory changes nothing", lack_of_memory_changes_nothing})
