/* SPDX-License-Identifier: Apache-2.0 */
/* Names to a fabric. A switch is a device with a made-up GUID, a host's port an adapter with one
 * port whose description is "host port", so that hosts.c finds hosts and rails as in a dump. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/fabric/fabric-internal.h"
#include "pkg/fabric/named-internal.h"

enum { PORTS_MAX = UINT16_MAX };

void weft_named_done(struct weft_named *named)
{
    for (size_t i = 0; i < named->device_count; i++) {
        weft_free(named->devices[i].identity);
        weft_free(named->devices[i].name);
    }
    for (size_t i = 0; i < named->cable_count; i++) {
        weft_free(named->cables[i].a_port);
        weft_free(named->cables[i].b_port);
    }
    weft_free(named->devices);
    weft_free(named->cables);
    weft_map_free(named->ids);
    weft_warnings_done(&named->warnings);
    *named = (struct weft_named){0};
}

/* Of several ways to write a name the smallest, so that the order of the text decides nothing. */
static int prefer_name(struct weft_named_device *device, const char *name)
{
    if (strcmp(device->name, name) <= 0) {
        return 0;
    }
    char *copy = weft_strdup(name);
    if (copy == NULL) {
        return -ENOMEM;
    }
    weft_free(device->name);
    device->name = copy;
    return 0;
}

int weft_named_device(struct weft_named *named, bool is_switch, const char *identity,
                      const char *name, unsigned line, size_t *ret_device)
{
    if (named->ids == NULL) {
        named->ids = weft_map_new(WEFT_NAMED_DEVICES_MAX);
    }
    weft_autofree char *key = weft_asprintf("%c%s", is_switch ? 's' : 'h', identity);
    if (named->ids == NULL || key == NULL) {
        return -ENOMEM;
    }
    if (weft_map_get(named->ids, key, ret_device)) {
        return prefer_name(&named->devices[*ret_device], name);
    }
    void *devices = named->devices;
    int rc = weft_array_reserve(&devices, &named->device_cap, named->device_count + 1,
                                sizeof(*named->devices), WEFT_NAMED_DEVICES_MAX);
    named->devices = devices;
    rc = rc == 0 ? weft_map_put(named->ids, key, named->device_count) : rc;
    if (rc < 0) {
        return rc;
    }
    struct weft_named_device device = {.identity = weft_strdup(identity),
                                       .name = weft_strdup(name),
                                       .is_switch = is_switch,
                                       .line = line > 0 ? line : 1};
    *ret_device = named->device_count;
    named->devices[named->device_count++] = device; /* owned from here on */
    return device.identity != NULL && device.name != NULL ? 0 : -ENOMEM;
}

int weft_named_cable(struct weft_named *named, size_t a, const char *a_port, size_t b,
                     const char *b_port, bool both)
{
    void *cables = named->cables;
    const int rc = weft_array_reserve(&cables, &named->cable_cap, named->cable_count + 1,
                                      sizeof(*named->cables), WEFT_NAMED_CABLES_MAX);
    named->cables = cables;
    if (rc < 0) {
        return rc;
    }
    struct weft_named_cable cable = {
        .a = a, .b = b, .a_port = weft_strdup(a_port), .b_port = weft_strdup(b_port), .both = both};
    named->cables[named->cable_count++] = cable; /* owned from here on */
    return cable.a_port != NULL && cable.b_port != NULL ? 0 : -ENOMEM;
}

/* ---- one name a host ---- */

/* key[device] = the name a host goes by; NULL for switches. Owned by the names below. */
struct finisher {
    struct weft_named *named;
    struct weft_raw raw;
    char **keys;  /* by device */
    char **descs; /* of adapters: raw devices keep views */
    size_t desc_count;
    struct end *ends;
    size_t end_count;
};

/* One end of a cable. */
struct end {
    size_t device;
    const char *port;
    size_t cable;
    bool is_b;
    uint16_t number;
    uint32_t raw; /* device */
};

static char *fold(const char *text, size_t len)
{
    char *folded = weft_strndup(text, len);
    for (char *p = folded; p != NULL && *p != '\0'; p++) {
        *p = (char)tolower((unsigned char)*p);
    }
    return folded;
}

static size_t label_len(const char *name)
{
    return strcspn(name, ".");
}

/* How many full names (with a domain) a first label has: the value is the index + 1 of one of them,
 * or SIZE_MAX for several. */
static int count_domains(struct finisher *f, struct weft_map *labels)
{
    for (size_t i = 0; i < f->named->device_count; i++) {
        const struct weft_named_device *d = &f->named->devices[i];
        if (d->is_switch) {
            continue;
        }
        f->keys[i] = fold(d->identity, strlen(d->identity));
        if (f->keys[i] == NULL) {
            return -ENOMEM;
        }
        const size_t len = label_len(f->keys[i]);
        if (f->keys[i][len] == '\0') {
            continue;
        }
        size_t other = 0;
        const bool known = weft_map_get_n(labels, f->keys[i], len, &other);
        if (known && (other == SIZE_MAX || strcmp(f->keys[other - 1], f->keys[i]) == 0)) {
            continue;
        }
        const int rc = weft_map_put_n(labels, f->keys[i], len, known ? SIZE_MAX : i + 1);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int name_hosts(struct finisher *f)
{
    weft_auto(weft_map_free) struct weft_map *labels = weft_map_new(WEFT_NAMED_DEVICES_MAX);
    f->keys = weft_calloc(f->named->device_count, sizeof(char *));
    if (labels == NULL || f->keys == NULL || count_domains(f, labels) < 0) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < f->named->device_count; i++) {
        if (f->keys[i] == NULL) {
            continue;
        }
        size_t full = 0;
        const size_t len = label_len(f->keys[i]);
        if (!weft_map_get_n(labels, f->keys[i], len, &full) || full == SIZE_MAX) {
            continue; /* no domain anywhere, or several: the name as it is */
        }
        char *key = weft_strdup(f->keys[full - 1]);
        if (key == NULL) {
            return -ENOMEM;
        }
        weft_free(f->keys[i]);
        f->keys[i] = key;
    }
    return 0;
}

/* ---- ports to numbers ---- */

static int compare_end(const void *a, const void *b)
{
    const struct end *x = a;
    const struct end *y = b;
    if (x->device != y->device) {
        return x->device < y->device ? -1 : 1;
    }
    const int port = weft_str_natural_cmp(x->port, y->port);
    if (port != 0) {
        return port;
    }
    return x->cable != y->cable ? (x->cable < y->cable ? -1 : 1) : (int)x->is_b - (int)y->is_b;
}

static int list_ends(struct finisher *f)
{
    const struct weft_named *named = f->named;
    f->ends = weft_calloc(2 * named->cable_count, sizeof(*f->ends));
    if (f->ends == NULL) {
        return -ENOMEM;
    }
    for (size_t c = 0; c < named->cable_count; c++) {
        const struct weft_named_cable *cable = &named->cables[c];
        f->ends[f->end_count++] =
            (struct end){.device = cable->a, .port = cable->a_port, .cable = c};
        f->ends[f->end_count++] =
            (struct end){.device = cable->b, .port = cable->b_port, .cable = c, .is_b = true};
    }
    qsort(f->ends, f->end_count, sizeof(*f->ends), compare_end);
    return 0;
}

/* ---- devices ---- */

/* A raw device for a text; a second text with the same GUID must not pass for the first. */
static int add_device(struct finisher *f, enum weft_device_kind kind, const char *identity,
                      struct weft_str desc, unsigned line, uint32_t *ret_raw)
{
    const uint64_t guid = weft_guid_made(identity, strlen(identity));
    const int rc = weft_raw_device(&f->raw, kind, guid, ret_raw);
    if (rc < 0) {
        return rc;
    }
    struct raw_device *device = &f->raw.devices[*ret_raw];
    if (device->line != 0 &&
        (device->desc.len != desc.len || memcmp(device->desc.data, desc.data, desc.len) != 0)) {
        return -EEXIST;
    }
    device->desc = desc;
    device->line = line;
    return 0;
}

static int add_switch(struct finisher *f, struct end *end)
{
    const struct weft_named_device *d = &f->named->devices[end->device];
    weft_autofree char *identity = weft_asprintf("switch:%s", d->identity);
    return identity == NULL
               ? -ENOMEM
               : add_device(f, WEFT_DEVICE_SWITCH, identity, weft_str(d->name), d->line, &end->raw);
}

/* An adapter a host port; its host's GUID is its system image's. */
static int add_adapter(struct finisher *f, struct end *end)
{
    const struct weft_named_device *d = &f->named->devices[end->device];
    const char *key = f->keys[end->device];
    weft_autofree char *identity = weft_asprintf("port:%s %s", key, end->port);
    weft_autofree char *system = weft_asprintf("host:%s", key);
    char *desc = weft_asprintf("%s %s", key, end->port);
    if (desc != NULL) {
        f->descs[f->desc_count++] = desc;
    }
    if (identity == NULL || system == NULL || desc == NULL) {
        return -ENOMEM;
    }
    const int rc = add_device(f, WEFT_DEVICE_CA, identity, weft_str(desc), d->line, &end->raw);
    if (rc == 0) {
        f->raw.devices[end->raw].system_guid = weft_guid_made(system, strlen(system));
    }
    return rc;
}

/* Ends are sorted, so ports of one device come together in natural order. */
static int place_ends(struct finisher *f)
{
    f->descs = weft_calloc(f->end_count, sizeof(char *));
    if (f->descs == NULL) {
        return -ENOMEM;
    }
    size_t number = 0;
    for (size_t i = 0; i < f->end_count; i++) {
        struct end *end = &f->ends[i];
        const struct end *before = i > 0 ? &f->ends[i - 1] : NULL;
        const bool same_device = before != NULL && before->device == end->device;
        if (same_device && strcmp(before->port, end->port) == 0) {
            end->raw = before->raw;
            end->number = before->number;
            continue;
        }
        const bool is_switch = f->named->devices[end->device].is_switch;
        const int rc = is_switch ? add_switch(f, end) : add_adapter(f, end);
        if (rc < 0) {
            return rc;
        }
        number = same_device && is_switch ? number + 1 : 1;
        if (number > PORTS_MAX) {
            return -EFBIG;
        }
        end->number = (uint16_t)number;
    }
    return 0;
}

static int add_links(struct finisher *f)
{
    const size_t count = f->named->cable_count;
    weft_autofree struct raw_link *links = weft_calloc(count, sizeof(*links));
    if (links == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < f->end_count; i++) {
        const struct end *end = &f->ends[i];
        struct raw_link *link = &links[end->cable];
        link->gbps = 1;
        if (end->is_b) {
            link->to = end->raw;
            link->to_port = end->number;
        } else {
            link->from = end->raw;
            link->from_port = end->number;
        }
    }
    int rc = 0;
    for (size_t c = 0; rc == 0 && c < count; c++) {
        rc = weft_raw_link(&f->raw, &links[c]);
        if (rc == 0 && f->named->cables[c].both) {
            const struct raw_link back = {links[c].to, links[c].from, links[c].to_port,
                                          links[c].from_port, 1};
            rc = weft_raw_link(&f->raw, &back);
        }
    }
    return rc;
}

/* ---- names of ports ---- */

static int compare_port_name(const void *a, const void *b)
{
    const struct weft_port_name *x = a;
    const struct weft_port_name *y = b;
    return x->device != y->device ? (x->device < y->device ? -1 : 1)
                                  : (x->port > y->port) - (x->port < y->port);
}

/* The device's index in the fabric: devices are by kind, then GUID. */
static uint32_t find_device(const struct weft_fabric *fabric, const struct raw_device *raw)
{
    size_t low = 0;
    size_t high = fabric->device_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct weft_device *d = &fabric->devices[middle];
        if (d->kind < raw->kind || (d->kind == raw->kind && d->guid < raw->guid)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return (uint32_t)low;
}

static int name_ports(const struct finisher *f, struct weft_fabric *fabric)
{
    fabric->port_names = weft_calloc(f->end_count, sizeof(*fabric->port_names));
    if (fabric->port_names == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < f->end_count; i++) {
        const struct end *end = &f->ends[i];
        if (i > 0 && f->ends[i - 1].device == end->device && f->ends[i - 1].number == end->number &&
            f->ends[i - 1].raw == end->raw) {
            continue;
        }
        struct weft_port_name *name = &fabric->port_names[fabric->port_name_count];
        name->device = find_device(fabric, &f->raw.devices[end->raw]);
        name->port = end->number;
        name->name = weft_strdup(end->port);
        if (name->name == NULL) {
            return -ENOMEM;
        }
        fabric->port_name_count++;
    }
    qsort(fabric->port_names, fabric->port_name_count, sizeof(*fabric->port_names),
          compare_port_name);
    /* two names of one host give one adapter twice */
    size_t kept = 0;
    for (size_t i = 0; i < fabric->port_name_count; i++) {
        struct weft_port_name *name = &fabric->port_names[i];
        if (kept > 0 && compare_port_name(&fabric->port_names[kept - 1], name) == 0) {
            weft_free(name->name);
        } else {
            fabric->port_names[kept++] = *name;
        }
    }
    fabric->port_name_count = kept;
    return 0;
}

/* ---- all ---- */

static int fail(const struct weft_named *named, int rc, struct weft_error *err)
{
    if (rc == -EEXIST) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s: two devices' names give one 64-bit identity; rename one",
                            named->source);
    }
    return rc == -ENOMEM
               ? weft_err_nomem(err)
               : weft_err_set(err, rc, WEFT_ERR_CONFIG,
                              "%s: more devices, cables or ports than weft reads", named->source);
}

static int check_content(const struct weft_named *named, struct weft_error *err)
{
    size_t switches = 0;
    for (size_t i = 0; i < named->device_count; i++) {
        switches += named->devices[i].is_switch;
    }
    if (switches > 0 && named->cable_count > 0) {
        return 0;
    }
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG, "%s: no %s in it%s%s", named->source,
                        named->cable_count == 0 ? "cable" : "switch",
                        named->warnings.count > 0 ? "; " : "",
                        named->warnings.count > 0 ? named->warnings.items[0] : "");
}

static void finisher_done(struct finisher *f)
{
    for (size_t i = 0; f->keys != NULL && i < f->named->device_count; i++) {
        weft_free(f->keys[i]);
    }
    for (size_t i = 0; i < f->desc_count; i++) {
        weft_free(f->descs[i]);
    }
    weft_free(f->keys);
    weft_free(f->descs);
    weft_free(f->ends);
    weft_raw_done(&f->raw);
}

int weft_named_finish(struct weft_named *named, struct weft_fabric **ret_fabric,
                      struct weft_error *err)
{
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = NULL;
    int rc = check_content(named, err);
    if (rc < 0) {
        return rc;
    }
    struct finisher f = {.named = named};
    weft_raw_init(&f.raw, named->source);
    rc = name_hosts(&f);
    rc = rc == 0 ? list_ends(&f) : rc;
    rc = rc == 0 ? place_ends(&f) : rc;
    rc = rc == 0 ? add_links(&f) : rc;
    rc = rc < 0 ? fail(named, rc, err) : 0;
    if (rc == 0) {
        f.raw.warnings = named->warnings.items;
        f.raw.warning_count = named->warnings.count;
        f.raw.warning_cap = named->warnings.cap;
        f.raw.warning_total = named->warnings.total;
        f.raw.partial = named->partial;
        named->warnings = (struct weft_warnings){0};
        rc = weft_raw_finish(&f.raw, &fabric, err);
    }
    if (rc == 0 && name_ports(&f, fabric) < 0) {
        rc = weft_err_nomem(err);
    }
    finisher_done(&f);
    if (rc == 0) {
        *ret_fabric = weft_steal(&fabric);
    }
    return rc;
}
