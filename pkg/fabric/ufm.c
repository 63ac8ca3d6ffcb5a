/* SPDX-License-Identifier: Apache-2.0 */
/* From UFM's rows to a fabric: what is a switch, what is gone, which cables are left. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "pkg/fabric/fabric-internal.h"
#include "pkg/fabric/ufm-internal.h"

enum { ROWS_MAX = 1 << 23 };

struct weft_ufm *weft_ufm_new(const char *source)
{
    struct weft_ufm *ufm = weft_calloc(1, sizeof(*ufm));
    char *name = weft_strdup(source);
    if (ufm == NULL || name == NULL) {
        weft_free(ufm);
        weft_free(name);
        return NULL;
    }
    ufm->source = name;
    ufm->file = name;
    weft_idmap_init(&ufm->ids, WEFT_FABRIC_DEVICES_MAX);
    weft_idmap_init(&ufm->down, ROWS_MAX);
    weft_idmap_init(&ufm->virtuals, ROWS_MAX);
    return ufm;
}

void weft_ufm_free(struct weft_ufm *ufm)
{
    if (ufm == NULL) {
        return;
    }
    for (size_t i = 0; i < ufm->device_count; i++) {
        weft_free(ufm->devices[i].desc);
        weft_free(ufm->devices[i].name);
    }
    weft_free(ufm->devices);
    weft_free(ufm->cables);
    weft_idmap_done(&ufm->ids);
    weft_idmap_done(&ufm->down);
    weft_idmap_done(&ufm->virtuals);
    weft_warnings_done(&ufm->warnings);
    weft_free(ufm->source);
    weft_free(ufm);
}

/* ---- what rows say ---- */

static int find_device(struct weft_ufm *ufm, uint64_t guid, size_t *ret_index)
{
    uint64_t *index = NULL;
    bool is_new = false;
    int rc = weft_idmap_at(&ufm->ids, guid, &index, &is_new);
    if (rc < 0) {
        return rc;
    }
    if (is_new) {
        void *devices = ufm->devices;
        rc = weft_array_reserve(&devices, &ufm->device_cap, ufm->device_count + 1,
                                sizeof(*ufm->devices), WEFT_FABRIC_DEVICES_MAX);
        ufm->devices = devices;
        if (rc < 0) {
            return rc;
        }
        *index = ufm->device_count;
        ufm->devices[ufm->device_count++] = (struct weft_ufm_device){.guid = guid};
    }
    *ret_index = (size_t)*index;
    return 0;
}

/* The smaller of two texts, a text over none: no order of rows changes it. */
static int prefer(char **place, const char *text)
{
    if (text == NULL || text[0] == '\0' || (*place != NULL && strcmp(*place, text) <= 0)) {
        return 0;
    }
    char *copy = weft_strdup(text);
    if (copy == NULL) {
        return -ENOMEM;
    }
    weft_free(*place);
    *place = copy;
    return 0;
}

/* UFM shows a switch's port as "name:port". */
static const char *without_port(const struct weft_ufm_fact *fact, char *buf, size_t size)
{
    const char *colon = fact->desc != NULL ? strrchr(fact->desc, ':') : NULL;
    uint64_t number = 0;
    if (colon == NULL || colon == fact->desc || (size_t)(colon - fact->desc) >= size ||
        weft_parse_u64(weft_str(colon + 1), WEFT_FABRIC_PORT_MAX, &number) < 0) {
        return NULL;
    }
    memcpy(buf, fact->desc, (size_t)(colon - fact->desc));
    buf[colon - fact->desc] = '\0';
    return buf;
}

static void set_kind(struct weft_ufm_device *d, enum weft_ufm_kind kind)
{
    if (kind != WEFT_UFM_UNKNOWN && (d->kind == WEFT_UFM_UNKNOWN || kind < d->kind)) {
        d->kind = kind;
    }
}

static void set_port(struct weft_ufm_device *d, uint16_t port)
{
    if (port != 0) {
        d->port = d->port == 0 || d->port == port ? port : UINT16_MAX;
    }
}

int weft_ufm_tell(struct weft_ufm *ufm, const struct weft_ufm_fact *fact)
{
    char name[WEFT_FABRIC_DESC_MAX];
    size_t index = 0;
    int rc = find_device(ufm, fact->guid, &index);
    if (rc < 0) {
        return rc;
    }
    struct weft_ufm_device *d = &ufm->devices[index];
    const char *of_switch =
        fact->kind == WEFT_UFM_HOST ? NULL : without_port(fact, name, sizeof(name));
    set_kind(d, of_switch != NULL && fact->kind == WEFT_UFM_UNKNOWN ? WEFT_UFM_SWITCH : fact->kind);
    set_port(d, fact->port);
    if (fact->system != 0 && (d->system == 0 || fact->system < d->system)) {
        d->system = fact->system;
    }
    d->gone = d->gone || fact->gone;
    d->line = d->line == 0 ? fact->line : d->line;
    rc = prefer(&d->desc, of_switch != NULL ? of_switch : fact->desc);
    return rc == 0 ? prefer(&d->name, fact->name) : rc;
}

int weft_ufm_cable(struct weft_ufm *ufm, const struct weft_ufm_cable *cable)
{
    void *cables = ufm->cables;
    const int rc = weft_array_reserve(&cables, &ufm->cable_cap, ufm->cable_count + 1,
                                      sizeof(*ufm->cables), ROWS_MAX);
    ufm->cables = cables;
    if (rc == 0) {
        ufm->cables[ufm->cable_count++] = *cable;
    }
    return rc;
}

static uint64_t port_hash(uint64_t guid, uint16_t port)
{
    return weft_hash64(weft_hash64(WEFT_HASH_SEED, &guid, sizeof(guid)), &port, sizeof(port));
}

static int put(struct weft_idmap *map, uint64_t key)
{
    uint64_t *value = NULL;
    return weft_idmap_at(map, key, &value, NULL);
}

int weft_ufm_down(struct weft_ufm *ufm, uint64_t guid, uint16_t port)
{
    ufm->down_count++;
    return put(&ufm->down, port_hash(guid, port));
}

int weft_ufm_virtual(struct weft_ufm *ufm, uint64_t guid)
{
    return put(&ufm->virtuals, guid);
}

/* ---- the fabric ---- */

static const struct weft_ufm_device *device_of(const struct weft_ufm *ufm, uint64_t guid)
{
    uint64_t index = 0;
    return weft_idmap_get(&ufm->ids, guid, &index) ? &ufm->devices[index] : NULL;
}

/* Rows about the device itself decide; a device that only cables name is a switch if it has several
 * ports and no description as hosts have one. */
static enum weft_ufm_kind kind_of(const struct weft_ufm *ufm, const struct weft_ufm_device *d)
{
    struct weft_str host = {0};
    struct weft_str hca = {0};
    const struct weft_ufm_device *system = d->system != 0 ? device_of(ufm, d->system) : NULL;
    if (d->kind != WEFT_UFM_UNKNOWN) {
        return d->kind;
    }
    if (system != NULL && system->kind != WEFT_UFM_UNKNOWN) {
        return system->kind;
    }
    if (d->desc != NULL && weft_desc_split(d->desc, &host, &hca) && hca.len > 0) {
        return WEFT_UFM_HOST;
    }
    return d->port == UINT16_MAX ? WEFT_UFM_SWITCH : WEFT_UFM_HOST;
}

static bool is_gone(const struct weft_ufm *ufm, const struct weft_ufm_device *d)
{
    const struct weft_ufm_device *system = d->system != 0 ? device_of(ufm, d->system) : NULL;
    return d->gone || (system != NULL && system->gone);
}

/* What a switch is called: its system's name; a chassis' chips by their own descriptions. */
static const char *name_of(const struct weft_ufm *ufm, const struct weft_ufm_device *d,
                           enum weft_ufm_kind kind)
{
    const struct weft_ufm_device *system = d->system != 0 ? device_of(ufm, d->system) : NULL;
    const char *desc = d->desc != NULL ? d->desc : "";
    if (kind != WEFT_UFM_SWITCH || desc[0] != '\0') {
        return desc;
    }
    if (d->name != NULL) {
        return d->name;
    }
    return system != NULL && system->name != NULL ? system->name : "";
}

static int add_end(const struct weft_ufm *ufm, struct weft_raw *raw, uint64_t guid, unsigned line,
                   uint32_t *ret_index)
{
    static const enum weft_device_kind kinds[WEFT_UFM_KIND_COUNT] = {
        [WEFT_UFM_UNKNOWN] = WEFT_DEVICE_CA,
        [WEFT_UFM_SWITCH] = WEFT_DEVICE_SWITCH,
        [WEFT_UFM_HOST] = WEFT_DEVICE_CA,
        [WEFT_UFM_OTHER] = WEFT_DEVICE_ROUTER};
    const struct weft_ufm_device *d = device_of(ufm, guid);
    if (d == NULL) {
        return -ENOENT; /* every cable's ends were told of */
    }
    const enum weft_ufm_kind kind = kind_of(ufm, d);
    const int rc = weft_raw_device(raw, kinds[kind], guid, ret_index);
    if (rc < 0) {
        return rc;
    }
    struct raw_device *device = &raw->devices[*ret_index];
    device->system_guid = d->system;
    device->desc = weft_str(name_of(ufm, d, kind));
    device->line = d->line > 0 ? d->line : (line > 0 ? line : 1);
    return 0;
}

/* Does the cable count? */
static bool counts(const struct weft_ufm *ufm, const struct weft_ufm_cable *cable, size_t *gone)
{
    for (size_t e = 0; e < 2; e++) {
        const struct weft_ufm_device *d = device_of(ufm, cable->guid[e]);
        if (weft_idmap_get(&ufm->virtuals, cable->guid[e], NULL) ||
            weft_idmap_get(&ufm->down, port_hash(cable->guid[e], cable->port[e]), NULL)) {
            return false;
        }
        if (d != NULL && is_gone(ufm, d)) {
            (*gone)++;
            return false;
        }
    }
    return true;
}

static int add_cable(const struct weft_ufm *ufm, struct weft_raw *raw,
                     const struct weft_ufm_cable *cable)
{
    struct raw_link link = {
        .from_port = cable->port[0], .to_port = cable->port[1], .gbps = cable->gbps};
    int rc = add_end(ufm, raw, cable->guid[0], cable->line, &link.from);
    rc = rc == 0 ? add_end(ufm, raw, cable->guid[1], cable->line, &link.to) : rc;
    rc = rc == 0 ? weft_raw_link(raw, &link) : rc;
    if (rc < 0 || !cable->both) {
        return rc;
    }
    const struct raw_link back = {link.to, link.from, link.to_port, link.from_port, link.gbps};
    return weft_raw_link(raw, &back);
}

static int copy_warnings(const struct weft_ufm *ufm, struct weft_raw *raw)
{
    struct weft_warnings copy = {0};
    for (size_t i = 0; i < ufm->warnings.count; i++) {
        void *items = copy.items;
        char *text = weft_strdup(ufm->warnings.items[i]);
        if (text == NULL || weft_array_reserve(&items, &copy.cap, copy.count + 1, sizeof(char *),
                                               WEFT_FABRIC_WARNINGS_MAX) < 0) {
            weft_free(text);
            weft_warnings_done(&copy);
            return -ENOMEM;
        }
        copy.items = items;
        copy.items[copy.count++] = text;
    }
    raw->warnings = copy.items;
    raw->warning_count = copy.count;
    raw->warning_cap = copy.cap;
    raw->warning_total = ufm->warnings.total;
    raw->partial = ufm->partial;
    return 0;
}

static int check_content(const struct weft_ufm *ufm, const struct weft_raw *raw,
                         struct weft_error *err)
{
    size_t switches = 0;
    for (size_t i = 0; i < raw->device_count; i++) {
        switches += raw->devices[i].kind == WEFT_DEVICE_SWITCH;
    }
    if (switches > 0 && raw->link_count > 0) {
        return 0;
    }
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                        "%s: no %s in UFM's answers (%zu devices, %zu cables, %zu ports down)",
                        ufm->source, raw->link_count == 0 ? "cable that is up" : "switch",
                        ufm->device_count, ufm->cable_count, ufm->down_count);
}

int weft_ufm_finish(const struct weft_ufm *ufm, struct weft_fabric **ret_fabric,
                    struct weft_error *err)
{
    weft_auto(weft_raw_done) struct weft_raw raw;
    weft_raw_init(&raw, ufm->source);
    size_t gone = 0;
    int rc = copy_warnings(ufm, &raw);
    for (size_t i = 0; rc == 0 && i < ufm->cable_count; i++) {
        rc = counts(ufm, &ufm->cables[i], &gone) ? add_cable(ufm, &raw, &ufm->cables[i]) : 0;
    }
    if (rc < 0) {
        return rc == -EFBIG
                   ? weft_err_set(err, rc, WEFT_ERR_CONFIG,
                                  "%s: more devices or cables than weft reads", ufm->source)
                   : weft_err_nomem(err);
    }
    rc = check_content(ufm, &raw, err);
    if (rc == 0 && gone > 0) {
        weft_raw_warn(&raw, 0, "%zu cables of devices that are not active are passed over", gone);
    }
    return rc == 0 ? weft_raw_finish(&raw, ret_fabric, err) : rc;
}
