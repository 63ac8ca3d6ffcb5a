/* SPDX-License-Identifier: Apache-2.0 */
/* B from MTLink: each GPU tells where its links lead and in what state they are. */
#include <errno.h>
#include <string.h>

#include "pkg/machine/discover-mthreads-internal.h"
#include "pkg/machine/machine-internal.h"

enum {
    MBPS_OF_GBPS = 125, /* the specification counts gigabits, we megabytes */
    GBPS_MAX = 1 << 20,
};

struct wiring {
    const struct weft_mtml *mtml;
    const struct weft_mtml_units *units;
    struct weft_machine *machine;
    uint64_t *directed; /* count x count */
    size_t downgraded;
};

static size_t find_uuid(const struct weft_mtml_units *units, const char *uuid)
{
    for (size_t i = 0; i < units->count; i++) {
        if (!units->items[i].is_instance && strcmp(units->items[i].uuid, uuid) == 0) {
            return i;
        }
    }
    return SIZE_MAX;
}

/* Which device is at the other end of a link, or SIZE_MAX: none that we have. */
static size_t remote_of(const struct wiring *w, size_t from, unsigned link)
{
    struct weft_mtml_device *remote = NULL;
    char uuid[WEFT_MTML_UUID_SIZE + 1] = "";
    if (WEFT_MTML_CALL(w->mtml, link_remote, w->units->items[from].device, link, &remote) !=
            WEFT_MTML_OK ||
        remote == NULL ||
        WEFT_MTML_CALL(w->mtml, uuid, remote, uuid, WEFT_MTML_UUID_SIZE) != WEFT_MTML_OK) {
        return SIZE_MAX;
    }
    return find_uuid(w->units, uuid);
}

static void add_links(struct wiring *w, size_t from, const struct weft_mtml_link_spec *spec)
{
    struct weft_device *d = &w->machine->devices[from];
    const uint64_t rate = (uint64_t)(spec->gbps < GBPS_MAX ? spec->gbps : 0) * MBPS_OF_GBPS;
    d->links_total = (int)(spec->links < WEFT_MTML_LINKS_MAX ? spec->links : WEFT_MTML_LINKS_MAX);
    d->links_up = 0;
    for (unsigned link = 0; link < (unsigned)d->links_total; link++) {
        unsigned state = WEFT_MTML_LINK_DOWN;
        if (WEFT_MTML_CALL(w->mtml, link_state, w->units->items[from].device, link, &state) !=
                WEFT_MTML_OK ||
            (state != WEFT_MTML_LINK_UP && state != WEFT_MTML_LINK_DOWNGRADE)) {
            continue;
        }
        const bool slow = state == WEFT_MTML_LINK_DOWNGRADE;
        d->links_up++;
        w->downgraded += slow;
        const size_t to = remote_of(w, from, link);
        if (to != SIZE_MAX && to != from) {
            /* how slow the library does not say; half keeps it between up and down */
            w->directed[from * w->units->count + to] += slow ? rate / 2 : rate;
        }
    }
}

static void set_pairs(const struct wiring *w)
{
    const size_t n = w->units->count;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n; j++) {
            const int t = (int)weft_machine_t(w->machine, i, j);
            const struct weft_reading there = {w->directed[i * n + j], t};
            const struct weft_reading back = {w->directed[j * n + i], t};
            (void)weft_machine_set_pair(w->machine, i, j, there, back);
        }
    }
}

int weft_mtml_set_links(const struct weft_mtml *mtml, const struct weft_mtml_units *units,
                        struct weft_machine *m)
{
    weft_autofree uint64_t *directed = weft_calloc(units->count * units->count, sizeof(*directed));
    if (directed == NULL) {
        return -ENOMEM;
    }
    struct wiring w = {.mtml = mtml, .units = units, .machine = m, .directed = directed};
    for (size_t i = 0; i < units->count; i++) {
        struct weft_mtml_link_spec spec = {0};
        if (!units->items[i].is_instance &&
            WEFT_MTML_CALL(mtml, link_spec, units->items[i].device, &spec) == WEFT_MTML_OK) {
            add_links(&w, i, &spec);
        }
    }
    set_pairs(&w);
    return w.downgraded == 0 ? 0
                             : weft_machine_warn(m,
                                                 "%zu ends of MTLinks run slower than they "
                                                 "should, each counts half",
                                                 w.downgraded);
}
