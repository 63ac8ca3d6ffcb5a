/* SPDX-License-Identifier: Apache-2.0 */
/* Which adapter is on which host. A name groups adapters only if it is unlikely to be shared: the
 * form "host hca", and no two systems with the same host and hca. All others are hosts by their
 * system image GUID: evidence for pkg/tree, but not a cluster node. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "pkg/base/map.h"
#include "pkg/base/sort.h"
#include "pkg/fabric/fabric-internal.h"

/* no candidate; more than there can be */
#define NONE UINT32_MAX

enum {
    /* Mellanox' id of a switch's SHARP aggregation node */
    AGGREGATION_DEVICE_ID = 0xcf09,
    NAME_MAX_LEN = 253,
};

static bool hostname_char(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '.' || c == '_';
}

bool weft_desc_split(const char *desc, struct weft_str *ret_host, struct weft_str *ret_hca)
{
    struct weft_str rest = weft_str(desc);
    struct weft_str more = {0};
    *ret_hca = (struct weft_str){0};
    if (!weft_str_word(&rest, ret_host) || ret_host->len > NAME_MAX_LEN) {
        return false;
    }
    if (weft_str_word(&rest, ret_hca) && weft_str_word(&rest, &more)) {
        return false; /* a vendor's text */
    }
    for (size_t i = 0; i < ret_host->len; i++) {
        if (!hostname_char(ret_host->data[i])) {
            return false;
        }
    }
    return isalnum((unsigned char)ret_host->data[0]);
}

static struct weft_str first_label(struct weft_str name)
{
    const char *dot = name.len > 0 ? memchr(name.data, '.', name.len) : NULL;
    return dot != NULL ? (struct weft_str){name.data, (size_t)(dot - name.data)} : name;
}

/* What systems are called before anybody named them: never a node (rdma-core pull request 1235). */
static bool default_name(struct weft_str label)
{
    static const char *const names[] = {"localhost", "ubuntu", "debian", "centos",
                                        "rocky",     "linux",  "host",   "unknown"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(names); i++) {
        if (label.len == strlen(names[i]) && strncasecmp(label.data, names[i], label.len) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- roles ---- */

static bool is_gateway(const char *desc)
{
    struct weft_str host = {0};
    struct weft_str hca = {0};
    return strcasestr(desc, "skyway") != NULL || strncmp(desc, "MF0;", 4) == 0 ||
           (!weft_desc_split(desc, &host, &hca) && strcasestr(desc, "gateway") != NULL);
}

static int set_roles(struct weft_fabric *fabric)
{
    weft_auto(weft_idmap_done) struct weft_idmap systems;
    weft_idmap_init(&systems, WEFT_FABRIC_DEVICES_MAX);
    for (size_t i = 0; i < fabric->switch_count; i++) {
        uint64_t *value = NULL;
        if (weft_idmap_at(&systems, fabric->devices[i].system_guid, &value, NULL) < 0) {
            return -ENOMEM;
        }
    }
    for (size_t i = fabric->switch_count; i < fabric->device_count; i++) {
        struct weft_device *d = &fabric->devices[i];
        if (d->kind != WEFT_DEVICE_CA) {
            continue;
        }
        if (weft_idmap_get(&systems, d->system_guid, NULL) ||
            d->device_id == AGGREGATION_DEVICE_ID || strstr(d->desc, "Aggregation Node") != NULL) {
            d->role = WEFT_CA_AGGREGATION;
        } else if (is_gateway(d->desc)) {
            d->role = WEFT_CA_GATEWAY;
        }
    }
    return 0;
}

/* ---- adapters to hosts ---- */

/* A linked adapter with the name it goes by. */
struct adapter {
    uint64_t system_guid;
    struct weft_str host; /* first word of the description */
    struct weft_str hca;
    uint32_t device;
    uint32_t candidate; /* by folded name; NONE: none */
};

struct finder {
    struct weft_fabric *fabric;
    struct adapter *adapters;
    size_t count;
    struct weft_map *labels; /* folded short (or full) name to candidate */
    uint32_t candidates;
};

static bool is_linked(const bool *linked, const struct weft_device *d, size_t i)
{
    return d->kind == WEFT_DEVICE_CA && d->role == WEFT_CA_HOST && linked[i];
}

static int collect(struct finder *f)
{
    const struct weft_fabric *fabric = f->fabric;
    weft_autofree bool *linked = weft_calloc(fabric->device_count, sizeof(*linked));
    f->adapters = weft_calloc(fabric->device_count, sizeof(*f->adapters));
    if (linked == NULL || f->adapters == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < fabric->link_count; i++) {
        linked[fabric->links[i].a] = true;
        linked[fabric->links[i].b] = true;
    }
    for (size_t i = fabric->switch_count; i < fabric->device_count; i++) {
        const struct weft_device *d = &fabric->devices[i];
        if (is_linked(linked, d, i)) {
            struct adapter *a = &f->adapters[f->count++];
            *a = (struct adapter){
                .system_guid = d->system_guid, .device = (uint32_t)i, .candidate = NONE};
            if (!weft_desc_split(d->desc, &a->host, &a->hca)) {
                a->host = (struct weft_str){0};
            }
        }
    }
    return 0;
}

static int candidate_of(struct finder *f, struct weft_str name, uint32_t *ret_candidate)
{
    size_t candidate = f->candidates;
    char folded[NAME_MAX_LEN + 1];
    for (size_t i = 0; i < name.len; i++) {
        folded[i] = (char)tolower((unsigned char)name.data[i]);
    }
    const bool known = weft_map_get_n(f->labels, folded, name.len, &candidate);
    *ret_candidate = (uint32_t)candidate;
    f->candidates += !known;
    return known ? 0 : weft_map_put_n(f->labels, folded, name.len, candidate);
}

static int compare_str(struct weft_str a, struct weft_str b)
{
    const size_t common = a.len < b.len ? a.len : b.len;
    const int cmp = common > 0 ? strncasecmp(a.data, b.data, common) : 0;
    return cmp != 0 ? cmp : (a.len > b.len) - (a.len < b.len);
}

static uint64_t candidate_prefix(const void *item)
{
    return ((const struct adapter *)item)->candidate;
}

static int compare_adapter(const void *a, const void *b)
{
    const struct adapter *x = a;
    const struct adapter *y = b;
    if (x->candidate != y->candidate) {
        return x->candidate < y->candidate ? -1 : 1;
    }
    const int hca = compare_str(x->hca, y->hca);
    if (hca != 0) {
        return hca;
    }
    if (x->system_guid != y->system_guid) {
        return x->system_guid < y->system_guid ? -1 : 1;
    }
    return (x->device > y->device) - (x->device < y->device);
}

/* Takes the candidates away from names that two systems share: the same name and adapter name with
 * different system image GUIDs. *ret_shared[candidate] says which. Sorts the adapters. */
static int find_shared(struct finder *f, bool *shared)
{
    if (weft_sort(f->adapters, f->count, sizeof(*f->adapters), candidate_prefix, compare_adapter) <
        0) {
        return -ENOMEM;
    }
    for (size_t i = 1; i < f->count; i++) {
        const struct adapter *a = &f->adapters[i - 1];
        const struct adapter *b = &f->adapters[i];
        if (b->candidate != NONE && a->candidate == b->candidate &&
            compare_str(a->hca, b->hca) == 0 && a->system_guid != b->system_guid) {
            shared[b->candidate] = true;
        }
    }
    return 0;
}

/* One round: by the short name, then (full) the adapters of shared short names by the full one. */
static int name_round(struct finder *f, bool full)
{
    const uint32_t before = f->candidates;
    for (size_t i = 0; i < f->count; i++) {
        struct adapter *a = &f->adapters[i];
        if (a->candidate != NONE || a->host.len == 0) {
            continue;
        }
        const struct weft_str name = full ? a->host : first_label(a->host);
        if (full && name.len == first_label(a->host).len) {
            continue; /* the full name is the short one, which is shared */
        }
        if (candidate_of(f, name, &a->candidate) < 0) {
            return -ENOMEM;
        }
    }
    if (f->candidates == before) {
        return 0; /* no full name contains a short one's dot, so nobody has a new neighbour */
    }
    weft_autofree bool *shared = weft_calloc(f->candidates, sizeof(*shared));
    if (shared == NULL || find_shared(f, shared) < 0) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < f->count; i++) {
        struct adapter *a = &f->adapters[i];
        if (a->candidate != NONE && shared[a->candidate]) {
            a->candidate = NONE;
        }
    }
    return 0;
}

/* Adapters of one card share the system image GUID: where only some got their name in time, the
 * others belong to the same host; unless the card serves several named hosts. */
static int adopt_siblings(struct finder *f)
{
    weft_auto(weft_idmap_done) struct weft_idmap systems;
    weft_idmap_init(&systems, WEFT_FABRIC_DEVICES_MAX);
    for (size_t i = 0; i < f->count; i++) {
        const struct adapter *a = &f->adapters[i];
        uint64_t *owner = NULL;
        bool is_new = false;
        if (a->candidate == NONE) {
            continue;
        }
        if (weft_idmap_at(&systems, a->system_guid, &owner, &is_new) < 0) {
            return -ENOMEM;
        }
        *owner = is_new || *owner == a->candidate ? a->candidate : UINT64_MAX;
    }
    for (size_t i = 0; i < f->count; i++) {
        struct adapter *a = &f->adapters[i];
        uint64_t owner = UINT64_MAX;
        if (a->candidate == NONE && weft_idmap_get(&systems, a->system_guid, &owner) &&
            owner != UINT64_MAX) {
            a->candidate = (uint32_t)owner;
            a->host = (struct weft_str){0};
        }
    }
    return 0;
}

/* Unnamed adapters: one candidate a system image GUID, after the named ones. */
static int group_unnamed(struct finder *f)
{
    weft_auto(weft_idmap_done) struct weft_idmap systems;
    weft_idmap_init(&systems, WEFT_FABRIC_DEVICES_MAX);
    for (size_t i = 0; i < f->count; i++) {
        struct adapter *a = &f->adapters[i];
        uint64_t *candidate = NULL;
        bool is_new = false;
        if (a->candidate != NONE) {
            continue;
        }
        if (weft_idmap_at(&systems, a->system_guid, &candidate, &is_new) < 0) {
            return -ENOMEM;
        }
        if (is_new) {
            *candidate = f->candidates++;
        }
        a->candidate = (uint32_t)*candidate;
        a->host = (struct weft_str){0};
    }
    return 0;
}

/* ---- the list of hosts ---- */

/* Are the adapters of each host together, as the first round left them if all names are good? */
static bool is_grouped(const struct finder *f)
{
    for (size_t i = 1; i < f->count; i++) {
        if (f->adapters[i - 1].candidate > f->adapters[i].candidate) {
            return false;
        }
    }
    return true;
}

/* The host of adapters[0, count): all of one candidate. Its words point into descriptions. */
struct found_host {
    struct weft_str full; /* longest, then smallest of the names seen; empty: unnamed */
    uint64_t system_guid;
    size_t first; /* adapters */
    size_t count;
};

static struct found_host describe(const struct adapter *adapters, size_t first, size_t count)
{
    struct found_host host = {.system_guid = UINT64_MAX, .first = first, .count = count};
    for (size_t i = first; i < first + count; i++) {
        const struct weft_str name = adapters[i].host;
        if (adapters[i].system_guid < host.system_guid) {
            host.system_guid = adapters[i].system_guid;
        }
        const size_t common = name.len < host.full.len ? name.len : host.full.len;
        if (name.len > host.full.len || (name.len > 0 && name.len == host.full.len &&
                                         memcmp(name.data, host.full.data, common) < 0)) {
            host.full = name;
        }
    }
    return host;
}

/* As compare_host: named ones first, then the first letters without their case. */
static uint64_t host_prefix(const void *item)
{
    const struct found_host *host = item;
    uint64_t prefix = host->full.len == 0;
    for (size_t i = 0; i < 7; i++) {
        const unsigned char c = i < host->full.len ? (unsigned char)host->full.data[i] : 0;
        prefix = prefix << 8 | (uint64_t)tolower(c);
    }
    return prefix;
}

static int compare_host(const void *a, const void *b)
{
    const struct found_host *x = a;
    const struct found_host *y = b;
    if ((x->full.len > 0) != (y->full.len > 0)) {
        return x->full.len > 0 ? -1 : 1;
    }
    const int name = compare_str(x->full, y->full);
    if (name != 0) {
        return name;
    }
    return (x->system_guid > y->system_guid) - (x->system_guid < y->system_guid);
}

static int fill_host(const struct found_host *from, bool short_is_shared, struct weft_host *to)
{
    const struct weft_str label = first_label(from->full);
    to->system_guid = from->system_guid;
    if (from->full.len == 0) {
        to->name = weft_asprintf("%016" PRIx64, from->system_guid);
    } else {
        const size_t len = short_is_shared ? from->full.len : label.len;
        to->name = weft_strndup(from->full.data, len);
        to->mappable = !default_name(label);
    }
    to->full_name = weft_strndup(from->full.len > 0 ? from->full.data : "", from->full.len);
    return to->name != NULL && to->full_name != NULL ? 0 : -ENOMEM;
}

static bool same_label(const struct found_host *a, const struct found_host *b)
{
    return a->full.len > 0 && compare_str(first_label(a->full), first_label(b->full)) == 0;
}

static int list_hosts(struct finder *f)
{
    struct weft_fabric *fabric = f->fabric;
    weft_autofree struct found_host *found = weft_calloc(f->candidates, sizeof(*found));
    fabric->hosts = weft_calloc(f->candidates, sizeof(*fabric->hosts));
    if (found == NULL || fabric->hosts == NULL) {
        return -ENOMEM;
    }
    if (!is_grouped(f) &&
        weft_sort(f->adapters, f->count, sizeof(*f->adapters), candidate_prefix, NULL) < 0) {
        return -ENOMEM;
    }
    size_t count = 0;
    for (size_t i = 0; i < f->count;) {
        size_t end = i + 1;
        while (end < f->count && f->adapters[end].candidate == f->adapters[i].candidate) {
            end++;
        }
        found[count++] = describe(f->adapters, i, end - i);
        i = end;
    }
    if (weft_sort(found, count, sizeof(*found), host_prefix, compare_host) < 0) {
        return -ENOMEM;
    }
    for (size_t h = 0; h < count; h++) {
        const bool shared = (h > 0 && same_label(&found[h - 1], &found[h])) ||
                            (h + 1 < count && same_label(&found[h], &found[h + 1]));
        fabric->host_count = h + 1;
        if (fill_host(&found[h], shared, &fabric->hosts[h]) < 0) {
            return -ENOMEM;
        }
        for (size_t i = 0; i < found[h].count; i++) {
            fabric->devices[f->adapters[found[h].first + i].device].host = h;
        }
    }
    return 0;
}

int weft_fabric_find_hosts(struct weft_fabric *fabric, struct weft_error *err)
{
    weft_auto(weft_map_free) struct weft_map *labels = weft_map_new(WEFT_FABRIC_DEVICES_MAX);
    struct finder f = {.fabric = fabric, .labels = labels};
    int rc = labels != NULL ? set_roles(fabric) : -ENOMEM;
    rc = rc == 0 ? collect(&f) : rc;
    rc = rc == 0 ? name_round(&f, false) : rc;
    rc = rc == 0 ? name_round(&f, true) : rc;
    rc = rc == 0 ? adopt_siblings(&f) : rc;
    rc = rc == 0 ? group_unnamed(&f) : rc;
    rc = rc == 0 ? list_hosts(&f) : rc;
    weft_free(f.adapters);
    return rc < 0 ? weft_err_nomem(err) : 0;
}
