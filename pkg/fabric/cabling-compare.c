/* SPDX-License-Identifier: Apache-2.0 */
/* Expected cables against observed ones. Plans and scans write names differently, so devices are
 * matched without case and hosts by their first label too; ports by name, else by number. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "pkg/base/idmap.h"
#include "pkg/fabric/cabling-internal.h"
#include "pkg/fabric/fabric.h"

#define NONE SIZE_MAX

/* A place in the fabric where a cable may be. */
struct spot {
    size_t device; /* switch or adapter; NONE: no such port was seen */
    unsigned port;
};

struct comparer {
    const struct weft_cabling *plan;
    const struct weft_fabric *fabric;
    struct weft_map *switches;  /* folded name to device; NONE for a shared name */
    struct weft_map *hosts;     /* folded name to host */
    size_t *match;              /* plan device to switch or host index, NONE */
    size_t *back;               /* fabric device to plan device, NONE */
    struct weft_idmap links;    /* device << 16 | port to link + 1 */
    struct weft_idmap adapters; /* adapter to a link of it + 1 */
    size_t *first_adapter;      /* host to the first adapter in by_host */
    size_t *by_host;            /* adapters by host */
    struct weft_cable_findings *out;
    size_t cap;
};

void weft_cable_findings_done(struct weft_cable_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        weft_free(findings->items[i].a);
        weft_free(findings->items[i].b);
        weft_free(findings->items[i].actual);
    }
    weft_free(findings->items);
    *findings = (struct weft_cable_findings){0};
}

/* ---- devices ---- */

static int put_folded(struct weft_map *map, const char *name, size_t len, size_t value)
{
    weft_autofree char *folded = weft_strndup(name, len);
    size_t before = 0;
    if (folded == NULL) {
        return -ENOMEM;
    }
    for (char *p = folded; *p != '\0'; p++) {
        *p = (char)tolower((unsigned char)*p);
    }
    const bool known = weft_map_get(map, folded, &before);
    const int rc = weft_map_put(map, folded, known && before != value ? NONE : value);
    return rc < 0 ? rc : 0;
}

static int get_folded(const struct weft_map *map, const char *name, size_t len, size_t *ret_value)
{
    weft_autofree char *folded = weft_strndup(name, len);
    *ret_value = NONE;
    if (folded == NULL) {
        return -ENOMEM;
    }
    for (char *p = folded; *p != '\0'; p++) {
        *p = (char)tolower((unsigned char)*p);
    }
    (void)weft_map_get(map, folded, ret_value);
    return 0;
}

static int index_names(struct comparer *c)
{
    const struct weft_fabric *f = c->fabric;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < f->switch_count; i++) {
        weft_autofree char *name = weft_device_name(&f->devices[i]);
        rc = name != NULL ? put_folded(c->switches, name, strlen(name), i) : -ENOMEM;
    }
    for (size_t h = 0; rc == 0 && h < f->host_count; h++) {
        const char *full =
            f->hosts[h].full_name[0] != '\0' ? f->hosts[h].full_name : f->hosts[h].name;
        const size_t label = strcspn(full, ".");
        rc = put_folded(c->hosts, full, strlen(full), h);
        rc = rc == 0 && full[label] != '\0' ? put_folded(c->hosts, full, label, h) : rc;
    }
    return rc;
}

/* A host of the plan by its whole name, then by its first label. */
static int match_host(const struct comparer *c, const char *name, size_t *ret_host)
{
    int rc = get_folded(c->hosts, name, strlen(name), ret_host);
    if (rc == 0 && *ret_host == NONE) {
        rc = get_folded(c->hosts, name, strcspn(name, "."), ret_host);
    }
    return rc;
}

static int match_devices(struct comparer *c)
{
    for (size_t i = 0; i < c->fabric->device_count; i++) {
        c->back[i] = NONE;
    }
    for (size_t d = 0; d < c->plan->device_count; d++) {
        const struct weft_cabling_device *device = &c->plan->devices[d];
        const bool is_switch = device->role == WEFT_CABLING_SWITCH;
        const int rc =
            is_switch ? get_folded(c->switches, device->name, strlen(device->name), &c->match[d])
                      : match_host(c, device->name, &c->match[d]);
        if (rc < 0) {
            return rc;
        }
        if (c->match[d] != NONE && is_switch) {
            c->back[c->match[d]] = d;
        }
        for (size_t a = 0; c->match[d] != NONE && !is_switch; a++) {
            const size_t at = c->first_adapter[c->match[d]] + a;
            if (at >= c->first_adapter[c->match[d] + 1]) {
                break;
            }
            c->back[c->by_host[at]] = d;
        }
    }
    return 0;
}

static int list_adapters(struct comparer *c)
{
    const struct weft_fabric *f = c->fabric;
    for (size_t i = 0; i < f->device_count; i++) {
        if (f->devices[i].host != WEFT_FABRIC_NO_HOST) {
            c->first_adapter[f->devices[i].host + 1]++;
        }
    }
    for (size_t h = 0; h < f->host_count; h++) {
        c->first_adapter[h + 1] += c->first_adapter[h];
    }
    weft_autofree size_t *next =
        weft_memdup(c->first_adapter, (f->host_count + 1) * sizeof(size_t));
    if (next == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < f->device_count; i++) {
        if (f->devices[i].host != WEFT_FABRIC_NO_HOST) {
            c->by_host[next[f->devices[i].host]++] = i;
        }
    }
    return 0;
}

/* ---- ports and links ---- */

static uint64_t port_key(size_t device, unsigned port)
{
    return ((uint64_t)device << 16) | port;
}

static int index_links(struct comparer *c)
{
    for (size_t i = 0; i < c->fabric->link_count; i++) {
        const struct weft_link *l = &c->fabric->links[i];
        const uint64_t keys[4] = {port_key(l->a, l->a_port), port_key(l->b, l->b_port), l->a, l->b};
        for (size_t k = 0; k < 4; k++) {
            uint64_t *value = NULL;
            if (weft_idmap_at(k < 2 ? &c->links : &c->adapters, keys[k], &value, NULL) < 0) {
                return -ENOMEM;
            }
            *value = *value == 0 ? i + 1 : *value;
        }
    }
    return 0;
}

/* Names of a switch's ports are by device, then port: the device's own are together. */
static unsigned named_port(const struct weft_fabric *f, size_t device, const char *port)
{
    size_t low = 0;
    size_t high = f->port_name_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (f->port_names[middle].device < device) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < f->port_name_count && f->port_names[low].device == device; low++) {
        if (strcasecmp(f->port_names[low].name, port) == 0) {
            return f->port_names[low].port;
        }
    }
    return 0;
}

static int adapter_spot(const struct comparer *c, size_t host, const char *port,
                        struct spot *ret_spot)
{
    for (size_t i = c->first_adapter[host]; i < c->first_adapter[host + 1]; i++) {
        weft_autofree char *name = weft_ca_name(&c->fabric->devices[c->by_host[i]]);
        uint64_t link = 0;
        if (name == NULL) {
            return -ENOMEM;
        }
        if (strcasecmp(name, port) == 0 && weft_idmap_get(&c->adapters, c->by_host[i], &link)) {
            const struct weft_link *l = &c->fabric->links[link - 1];
            *ret_spot = (struct spot){c->by_host[i], l->a == c->by_host[i] ? l->a_port : l->b_port};
        }
    }
    return 0;
}

/* Where in the fabric the plan's port is; device NONE if it was not seen. */
static int find_spot(const struct comparer *c, size_t device, const char *port,
                     struct spot *ret_spot)
{
    *ret_spot = (struct spot){NONE, 0};
    if (c->plan->devices[device].role == WEFT_CABLING_HOST) {
        return adapter_spot(c, c->match[device], port, ret_spot);
    }
    unsigned number = named_port(c->fabric, c->match[device], port);
    if (number == 0 && c->fabric->port_name_count == 0) {
        number = weft_port_number(port);
    }
    if (number > 0) {
        *ret_spot = (struct spot){c->match[device], number};
    }
    return 0;
}

static const struct weft_link *link_at(const struct comparer *c, struct spot spot)
{
    uint64_t link = 0;
    return spot.device != NONE && weft_idmap_get(&c->links, port_key(spot.device, spot.port), &link)
               ? &c->fabric->links[link - 1]
               : NULL;
}

/* ---- findings ---- */

/* "device:port" as the fabric has it. */
static char *seen_name(const struct comparer *c, size_t device, unsigned port)
{
    const struct weft_device *d = &c->fabric->devices[device];
    const char *named = weft_fabric_port_name(c->fabric, device, port);
    if (d->host != WEFT_FABRIC_NO_HOST) {
        weft_autofree char *adapter = weft_ca_name(d);
        return adapter != NULL ? weft_asprintf("%s:%s", c->fabric->hosts[d->host].name, adapter)
                               : NULL;
    }
    weft_autofree char *name = weft_device_name(d);
    if (name == NULL) {
        return NULL;
    }
    return named != NULL ? weft_asprintf("%s:%s", name, named) : weft_asprintf("%s:%u", name, port);
}

static char *planned_name(const struct comparer *c, size_t device, const char *port)
{
    return weft_asprintf("%s:%s", c->plan->devices[device].name, port);
}

static int add_finding(struct comparer *c, enum weft_cable_state state, char *a, char *b,
                       char *actual, unsigned line)
{
    void *items = c->out->items;
    const int rc = weft_array_reserve(&items, &c->cap, c->out->count + 1, sizeof(*c->out->items),
                                      WEFT_CABLING_CABLES_MAX + WEFT_FABRIC_LINKS_MAX);
    c->out->items = items;
    if (rc < 0 || a == NULL || b == NULL || actual == NULL) {
        weft_free(a);
        weft_free(b);
        weft_free(actual);
        return -ENOMEM;
    }
    c->out->items[c->out->count++] = (struct weft_cable_finding){state, a, b, actual, line};
    return 0;
}

static int add_planned(struct comparer *c, enum weft_cable_state state,
                       const struct weft_cable *cable, const struct weft_link *instead)
{
    char *actual = weft_strdup("");
    if (instead != NULL) {
        weft_autofree char *a = seen_name(c, instead->a, instead->a_port);
        weft_autofree char *b = seen_name(c, instead->b, instead->b_port);
        weft_free(actual);
        actual = a != NULL && b != NULL ? weft_asprintf("%s - %s", a, b) : NULL;
    }
    return add_finding(c, state, planned_name(c, cable->a, cable->a_port),
                       planned_name(c, cable->b, cable->b_port), actual, cable->line);
}

static int check_cable(struct comparer *c, const struct weft_cable *cable, struct weft_idmap *used)
{
    struct spot a = {NONE, 0};
    struct spot b = {NONE, 0};
    if (c->match[cable->a] == NONE || c->match[cable->b] == NONE) {
        return c->fabric->partial ? 0 : add_planned(c, WEFT_CABLE_UNSEEN, cable, NULL);
    }
    if (find_spot(c, cable->a, cable->a_port, &a) < 0 ||
        find_spot(c, cable->b, cable->b_port, &b) < 0) {
        return -ENOMEM;
    }
    const struct spot spots[2] = {a, b};
    for (size_t s = 0; s < 2; s++) {
        uint64_t *value = NULL;
        if (spots[s].device != NONE &&
            weft_idmap_at(used, port_key(spots[s].device, spots[s].port), &value, NULL) < 0) {
            return -ENOMEM;
        }
    }
    const struct weft_link *at_a = link_at(c, a);
    const struct weft_link *at_b = link_at(c, b);
    if (at_a != NULL && at_a == at_b) {
        c->out->right++;
        return 0;
    }
    if (at_a != NULL || at_b != NULL) {
        return add_planned(c, WEFT_CABLE_MISWIRED, cable, at_a != NULL ? at_a : at_b);
    }
    return c->fabric->partial ? 0 : add_planned(c, WEFT_CABLE_MISSING, cable, NULL);
}

/* Cables between devices of the plan on ports for which it has none. */
static int find_extra(struct comparer *c, const struct weft_idmap *used)
{
    for (size_t i = 0; i < c->fabric->link_count; i++) {
        const struct weft_link *l = &c->fabric->links[i];
        if (c->back[l->a] == NONE || c->back[l->b] == NONE ||
            weft_idmap_get(used, port_key(l->a, l->a_port), NULL) ||
            weft_idmap_get(used, port_key(l->b, l->b_port), NULL)) {
            continue;
        }
        if (add_finding(c, WEFT_CABLE_EXTRA, seen_name(c, l->a, l->a_port),
                        seen_name(c, l->b, l->b_port), weft_strdup(""), 0) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

static int compare_finding(const void *a, const void *b)
{
    const struct weft_cable_finding *x = a;
    const struct weft_cable_finding *y = b;
    if (x->state != y->state) {
        return x->state < y->state ? -1 : 1;
    }
    const int cmp = weft_str_natural_cmp(x->a, y->a);
    return cmp != 0 ? cmp : weft_str_natural_cmp(x->b, y->b);
}

static int compare_all(struct comparer *c)
{
    weft_auto(weft_idmap_done) struct weft_idmap used;
    weft_idmap_init(&used, SIZE_MAX / 4);
    int rc = list_adapters(c);
    rc = rc == 0 ? index_names(c) : rc;
    rc = rc == 0 ? match_devices(c) : rc;
    rc = rc == 0 ? index_links(c) : rc;
    for (size_t i = 0; rc == 0 && i < c->plan->cable_count; i++) {
        rc = check_cable(c, &c->plan->cables[i], &used);
    }
    rc = rc == 0 ? find_extra(c, &used) : rc;
    if (rc == 0 && c->out->count > 0) {
        qsort(c->out->items, c->out->count, sizeof(*c->out->items), compare_finding);
    }
    return rc;
}

int weft_cabling_compare(const struct weft_cabling *expected, const struct weft_fabric *observed,
                         struct weft_cable_findings *ret_findings, struct weft_error *err)
{
    weft_auto(weft_cable_findings_done) struct weft_cable_findings findings = {0};
    weft_auto(weft_map_free) struct weft_map *switches = weft_map_new(WEFT_FABRIC_DEVICES_MAX);
    weft_auto(weft_map_free) struct weft_map *hosts = weft_map_new(WEFT_FABRIC_DEVICES_MAX);
    weft_autofree size_t *match = weft_calloc(expected->device_count, sizeof(size_t));
    weft_autofree size_t *back = weft_calloc(observed->device_count, sizeof(size_t));
    weft_autofree size_t *first = weft_calloc(observed->host_count + 1, sizeof(size_t));
    weft_autofree size_t *by_host = weft_calloc(observed->device_count, sizeof(size_t));
    if (switches == NULL || hosts == NULL || match == NULL || back == NULL || first == NULL ||
        by_host == NULL) {
        return weft_err_nomem(err);
    }
    struct comparer c = {.plan = expected,
                         .fabric = observed,
                         .switches = switches,
                         .hosts = hosts,
                         .match = match,
                         .back = back,
                         .first_adapter = first,
                         .by_host = by_host,
                         .out = &findings};
    weft_idmap_init(&c.links, SIZE_MAX / 4);
    weft_idmap_init(&c.adapters, SIZE_MAX / 4);
    const int rc = compare_all(&c);
    weft_idmap_done(&c.links);
    weft_idmap_done(&c.adapters);
    if (rc < 0) {
        return weft_err_nomem(err);
    }
    *ret_findings = findings;
    findings = (struct weft_cable_findings){0};
    return 0;
}
