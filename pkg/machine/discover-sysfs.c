/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the backends that read sysfs: opening the host, and keeping devices that are lost. */
#include "pkg/machine/discover-sysfs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/map.h"
#include "pkg/machine/host-internal.h"
#include "pkg/machine/machine-internal.h"

int weft_sysfs_open(const struct weft_backend_options *options, void **ret_state,
                    struct weft_error *err)
{
    struct weft_sysfs *s = weft_calloc(1, sizeof(*s));
    if (s == NULL) {
        return weft_err_nomem(err);
    }
    s->options = options;
    const char *root = options->host_root;
    const int rc = weft_host_open(root == NULL || root[0] == '\0' ? "/" : root, &s->host, err);
    if (rc < 0) {
        weft_sysfs_close(s);
        return rc;
    }
    *ret_state = s;
    return 0;
}

void weft_sysfs_close(void *state)
{
    struct weft_sysfs *s = state;
    if (s != NULL) {
        weft_host_free(s->host);
        weft_machine_free(s->last);
        weft_map_free(s->errors);
        weft_free(s);
    }
}

void weft_sysfs_mark_dead(const struct weft_host *host, struct weft_machine *machine)
{
    const bool sees_bus = weft_host_exists(host, "/sys/bus/pci/devices");
    for (size_t i = 0; i < machine->device_count; i++) {
        struct weft_device *d = &machine->devices[i];
        const enum weft_pci_sign sign = weft_host_pci_sign(host, &d->bdf);
        const bool gone = sign == WEFT_PCI_ABSENT && d->bdf.known && sees_bus;
        if (d->healthy && (gone || sign == WEFT_PCI_DEAD)) {
            d->healthy = false;
            (void)snprintf(d->health_reason, sizeof(d->health_reason), "%s",
                           gone ? "its PCI function is gone"
                                : "it does not answer on the PCI bus: it has fallen off");
        }
    }
}

static bool is_shown(const struct weft_machine *m, const struct weft_device *d)
{
    for (size_t i = 0; i < m->device_count; i++) {
        const struct weft_device *shown = &m->devices[i];
        if (strcmp(shown->id, d->id) == 0) {
            return true;
        }
        if (d->bdf.known && shown->bdf.known && weft_bdf_cmp(&shown->bdf, &d->bdf) == 0) {
            return true;
        }
    }
    return false;
}

/* Where a device of the outcome comes from; SIZE_MAX: it is not there. */
struct origin {
    size_t now, last;
};

/* Fills origins, which has room for all devices of both; returns how many there are. */
static size_t find_origins(const struct weft_machine *now, const struct weft_machine *last,
                           struct origin *origins)
{
    size_t count = 0;
    for (; count < now->device_count; count++) {
        origins[count].now = count;
        origins[count].last = weft_machine_find_id(last, now->devices[count].id);
    }
    for (size_t i = 0; i < last->device_count; i++) {
        if (count < WEFT_MACHINE_DEVICES_MAX && !is_shown(now, &last->devices[i])) {
            origins[count++] = (struct origin){.now = SIZE_MAX, .last = i};
        }
    }
    return count;
}

/* Numbers for lost devices: after those in use, in the order in which they are met, so that two
 * looks at an unchanged machine give equal ones. */
struct numbers {
    int index, parent;       /* the next ones */
    int old_parent, renamed; /* of the partition before */
};

static void renumber(struct weft_device *d, struct numbers *n)
{
    d->index = n->index++;
    if (d->parent >= 0) {
        if (d->parent != n->old_parent) {
            n->old_parent = d->parent;
            n->renamed = n->parent++;
        }
        d->parent = n->renamed;
    }
}

static int copy_devices(struct weft_machine *to, const struct weft_machine *now,
                        const struct weft_machine *last, const struct origin *origins)
{
    struct numbers numbers = {.old_parent = -1};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < to->device_count; i++) {
        struct weft_device *d = &to->devices[i];
        const bool lost = origins[i].now == SIZE_MAX;
        rc = weft_device_copy(d, lost ? &last->devices[origins[i].last] : &now->devices[i]);
        if (lost) {
            renumber(d, &numbers);
            d->healthy = false;
            (void)snprintf(d->health_reason, sizeof(d->health_reason),
                           "it was there and its driver does not show it any more");
        } else {
            numbers.index = d->index >= numbers.index ? d->index + 1 : numbers.index;
            numbers.parent = d->parent >= numbers.parent ? d->parent + 1 : numbers.parent;
        }
    }
    return rc;
}

static void copy_pairs(struct weft_machine *to, const struct weft_machine *now,
                       const struct weft_machine *last, const struct origin *origins)
{
    for (size_t i = 0; i < to->device_count; i++) {
        for (size_t j = i + 1; j < to->device_count; j++) {
            const struct origin a = origins[i];
            const struct origin b = origins[j];
            struct weft_reading reading = {.distance = WEFT_DISTANCE_SYS};
            if (a.now != SIZE_MAX && b.now != SIZE_MAX) {
                reading.bandwidth = weft_machine_b(now, a.now, b.now);
                reading.distance = (int)weft_machine_t(now, a.now, b.now);
            } else if (a.last != SIZE_MAX && b.last != SIZE_MAX) {
                reading.bandwidth = weft_machine_b(last, a.last, b.last);
                reading.distance = (int)weft_machine_t(last, a.last, b.last);
            }
            (void)weft_machine_set_pair(to, i, j, reading, reading);
        }
    }
}

static int last_n(const struct weft_machine *last, size_t device, const struct weft_nic *nic)
{
    for (size_t n = 0; device != SIZE_MAX && n < last->nic_count; n++) {
        if (weft_bdf_cmp(&last->nics[n].bdf, &nic->bdf) == 0) {
            return (int)weft_machine_n(last, device, n);
        }
    }
    return WEFT_DISTANCE_UNKNOWN;
}

static void copy_nic_distances(struct weft_machine *to, const struct weft_machine *now,
                               const struct weft_machine *last, const struct origin *origins)
{
    for (size_t i = 0; i < to->device_count; i++) {
        for (size_t n = 0; n < to->nic_count; n++) {
            const int distance = origins[i].now != SIZE_MAX
                                     ? (int)weft_machine_n(now, origins[i].now, n)
                                     : last_n(last, origins[i].last, &to->nics[n]);
            weft_machine_set_nic(to, i, n, distance);
        }
    }
}

int weft_machine_with_lost(const struct weft_machine *machine, const struct weft_machine *last,
                           struct weft_machine **ret_machine, struct weft_error *err)
{
    const size_t room = machine->device_count + last->device_count;
    weft_autofree struct origin *origins = weft_calloc(room, sizeof(*origins));
    if (origins == NULL) {
        return weft_err_nomem(err);
    }
    const size_t count = find_origins(machine, last, origins);
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    int rc = weft_machine_new(machine->name, count, machine->nic_count, &m, err);
    if (rc < 0) {
        return rc;
    }
    rc = weft_machine_copy_head(m, machine);
    rc = rc < 0 ? rc : copy_devices(m, machine, last, origins);
    if (rc < 0) {
        return weft_err_nomem(err);
    }
    weft_machine_group_numa(m);
    copy_pairs(m, machine, last, origins);
    copy_nic_distances(m, machine, last, origins);
    *ret_machine = weft_steal(&m);
    return 0;
}

int weft_sysfs_keep_lost(struct weft_machine **last, struct weft_machine **machine,
                         struct weft_error *err)
{
    weft_auto(weft_machine_free) struct weft_machine *whole = weft_steal(machine);
    struct weft_machine *kept = NULL;
    int rc = 0;
    if (*last != NULL) {
        weft_auto(weft_machine_free) struct weft_machine *fresh = weft_steal(&whole);
        rc = weft_machine_with_lost(fresh, *last, &whole, err);
    }
    rc = rc < 0 ? rc : weft_machine_copy(whole, &kept, err);
    if (rc < 0) {
        return rc;
    }
    weft_machine_free(*last);
    *last = kept;
    *machine = weft_steal(&whole);
    return 0;
}
