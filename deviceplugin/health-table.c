/* SPDX-License-Identifier: Apache-2.0 */
/* The states of all devices: what a look or an event means for each, and what is said of it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "deviceplugin/health.h"
#include "pkg/machine/machine.h"

enum { REASON_MAX = sizeof(((struct weft_device *)NULL)->health_reason) };

struct entry {
    char id[WEFT_DEVICE_ID_MAX];
    struct weft_health_unit unit;
    enum weft_health_cause cause; /* of what was last wrong */
    char reason[REASON_MAX];      /* likewise; "" if nothing was */
};

struct weft_health_table {
    struct weft_health_settings settings;
    void (*moved)(void *data, const struct weft_health_move *move);
    void *data;
    struct entry *entries; /* in the order of the last look's devices */
    size_t count;
};

const char *weft_health_cause_name(enum weft_health_cause cause)
{
    static const char *const names[WEFT_CAUSE_COUNT] = {
        [WEFT_CAUSE_LOOK] = "look",     [WEFT_CAUSE_EVENT] = "event",
        [WEFT_CAUSE_DRIVER] = "driver", [WEFT_CAUSE_UNRESPONSIVE] = "unresponsive",
        [WEFT_CAUSE_NIC] = "nic",       [WEFT_CAUSE_CLEAN] = "clean"};
    return cause < WEFT_CAUSE_COUNT ? names[cause] : "unknown";
}

int weft_health_table_new(const struct weft_health_settings *settings,
                          void (*moved)(void *data, const struct weft_health_move *move),
                          void *data, struct weft_health_table **ret_table)
{
    struct weft_health_table *table = weft_calloc(1, sizeof(*table));
    if (table == NULL) {
        return -ENOMEM;
    }
    table->settings = *settings;
    table->moved = moved;
    table->data = data;
    *ret_table = table;
    return 0;
}

void weft_health_table_free(struct weft_health_table *table)
{
    if (table != NULL) {
        weft_free(table->entries);
        weft_free(table);
    }
}

void weft_health_table_configure(struct weft_health_table *table,
                                 const struct weft_health_settings *settings)
{
    table->settings = *settings;
}

/* ---- signs ---- */

struct sign {
    enum weft_health_sign sign;
    enum weft_health_cause cause;
    const char *reason;
};

static void take(const struct weft_health_table *table, struct entry *entry,
                 const struct sign *sign, int64_t now_ns)
{
    const enum weft_health_state from = entry->unit.state;
    const bool was_damped = entry->unit.damped;
    if (sign->sign != WEFT_SIGN_CLEAN) {
        (void)snprintf(entry->reason, sizeof(entry->reason), "%s", sign->reason);
        entry->cause = sign->cause;
    }
    const bool moved = weft_health_step(&table->settings, &entry->unit, sign->sign, now_ns);
    if (moved && table->moved != NULL) {
        table->moved(table->data,
                     &(struct weft_health_move){.device = entry->id,
                                                .from = from,
                                                .to = entry->unit.state,
                                                .cause = sign->cause,
                                                .reason = entry->reason,
                                                .damped = entry->unit.damped && !was_damped});
    }
    if (entry->unit.state == WEFT_HEALTH_HEALTHY) {
        entry->reason[0] = '\0';
    }
}

/* None of the NICs that are nearest to the device, below the same host bridge, has a port that is
 * active, and of each that is known. */
static bool nics_down(const struct weft_machine *m, size_t device)
{
    enum weft_distance nearest = WEFT_DISTANCE_NODE;
    size_t near = 0, down = 0;
    for (size_t n = 0; n < m->nic_count; n++) {
        const enum weft_distance distance = weft_machine_n(m, device, n);
        if (distance < nearest) {
            nearest = distance;
            near = down = 0;
        }
        near += distance == nearest ? 1 : 0;
        down += distance == nearest && m->nics[n].up == 0 ? 1 : 0;
    }
    return nearest < WEFT_DISTANCE_NODE && near > 0 && down == near;
}

static struct sign sign_of(const struct weft_health_table *table, const struct weft_machine *m,
                           size_t device)
{
    const struct weft_device *d = &m->devices[device];
    struct sign sign = {WEFT_SIGN_CLEAN, WEFT_CAUSE_CLEAN, ""};
    if (table->settings.off) {
        return sign;
    }
    if (!d->healthy || d->state == WEFT_DEVICE_SUSPECT) {
        sign.sign = d->healthy ? WEFT_SIGN_DOUBT : WEFT_SIGN_FAULT;
        sign.cause = WEFT_CAUSE_LOOK;
        sign.reason = d->health_reason[0] != '\0' ? d->health_reason : "it is said to be unhealthy";
    } else if (table->settings.nic_affects_gpu && nics_down(m, device)) {
        sign.sign = WEFT_SIGN_DOUBT; /* ports come and go */
        sign.cause = WEFT_CAUSE_NIC;
        sign.reason = "none of the NICs nearest to it has an active port";
    }
    return sign;
}

static const struct entry *find(const struct weft_health_table *table, const char *id, size_t hint)
{
    for (size_t k = 0; k < table->count; k++) {
        const struct entry *entry = &table->entries[(hint + k) % table->count];
        if (strcmp(entry->id, id) == 0) {
            return entry;
        }
    }
    return NULL;
}

/* ---- looks and events ---- */

int weft_health_look(struct weft_health_table *table, const struct weft_machine *machine,
                     int64_t now_ns)
{
    struct entry *entries = weft_calloc(machine->device_count + 1, sizeof(*entries));
    if (entries == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < machine->device_count; i++) {
        const char *id = machine->devices[i].id;
        const struct entry *before = find(table, id, i);
        if (before != NULL) {
            entries[i] = *before;
        } else {
            (void)snprintf(entries[i].id, sizeof(entries[i].id), "%s", id);
            entries[i].unit.since_ns = now_ns;
        }
        const struct sign sign = sign_of(table, machine, i);
        take(table, &entries[i], &sign, now_ns);
    }
    weft_free(table->entries);
    table->entries = entries;
    table->count = machine->device_count;
    return 0;
}

void weft_health_fault(struct weft_health_table *table, const char *device,
                       enum weft_health_cause cause, const char *reason, int64_t now_ns)
{
    const struct sign sign = {WEFT_SIGN_FAULT, cause, reason};
    const bool all = device == NULL || device[0] == '\0';
    /* codes of an event were chosen by weft_health_counts */
    for (size_t i = 0; i < table->count && (!table->settings.off || cause == WEFT_CAUSE_EVENT);
         i++) {
        if (all || strcmp(table->entries[i].id, device) == 0) {
            take(table, &table->entries[i], &sign, now_ns);
        }
    }
}

/* ---- what is told ---- */

static void tell(const struct entry *entry, struct weft_device *d)
{
    const enum weft_health_state state = entry->unit.state;
    d->healthy = weft_health_advertised(state);
    d->state = state == WEFT_HEALTH_SUSPECT      ? WEFT_DEVICE_SUSPECT
               : state == WEFT_HEALTH_RECOVERING ? WEFT_DEVICE_RECOVERING
                                                 : WEFT_DEVICE_PLAIN;
    (void)snprintf(d->health_reason, sizeof(d->health_reason), "%s%.80s",
                   state == WEFT_HEALTH_RECOVERING ? (entry->unit.damped ? "it flaps: " : "was: ")
                                                   : "",
                   entry->reason);
}

void weft_health_apply(const struct weft_health_table *table, struct weft_machine *machine)
{
    for (size_t i = 0; i < machine->device_count; i++) {
        const struct entry *entry = find(table, machine->devices[i].id, i);
        if (entry != NULL) {
            tell(entry, &machine->devices[i]);
        }
    }
}

int64_t weft_health_pace(const struct weft_health_table *table, int64_t rescan_ns)
{
    /* three looks in the time that has to pass */
    enum { LOOKS = 3 };
    int64_t pace = 0;
    for (size_t i = 0; i < table->count; i++) {
        const enum weft_health_state state = table->entries[i].unit.state;
        int64_t wanted = rescan_ns;
        if (state == WEFT_HEALTH_HEALTHY) {
            continue;
        }
        if (state == WEFT_HEALTH_SUSPECT) {
            wanted = table->settings.suspect_ns / LOOKS;
        } else if (state == WEFT_HEALTH_RECOVERING) {
            wanted = table->settings.recover_ns / LOOKS;
        }
        wanted = wanted < rescan_ns ? wanted : rescan_ns;
        pace = pace == 0 || wanted < pace ? wanted : pace;
    }
    return pace;
}
