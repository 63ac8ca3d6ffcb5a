/* SPDX-License-Identifier: Apache-2.0 */
/* The fabric value: freeing it, names for people, and the collection of what a parser reads. */
#include "pkg/fabric/fabric.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pkg/fabric/fabric-internal.h"

void weft_fabric_free(struct weft_fabric *fabric)
{
    if (fabric == NULL) {
        return;
    }
    for (size_t i = 0; fabric->hosts != NULL && i < fabric->host_count; i++) {
        weft_free(fabric->hosts[i].name);
        weft_free(fabric->hosts[i].full_name);
    }
    for (size_t i = 0; fabric->warnings != NULL && i < fabric->warning_count; i++) {
        weft_free(fabric->warnings[i]);
    }
    for (size_t i = 0; fabric->port_names != NULL && i < fabric->port_name_count; i++) {
        weft_free(fabric->port_names[i].name);
    }
    weft_free(fabric->port_names);
    weft_free(fabric->warnings);
    weft_free(fabric->devices);
    weft_free(fabric->desc_text);
    weft_free(fabric->links);
    weft_free(fabric->hosts);
    weft_free(fabric->source);
    weft_free(fabric);
}

/* the group and the local bit of an EUI-64's first byte */
#define MADE_BITS (UINT64_C(3) << 56)

uint64_t weft_guid_made(const char *text, size_t len)
{
    return weft_hash64(WEFT_HASH_SEED, text, len) | MADE_BITS;
}

bool weft_guid_is_made(uint64_t guid)
{
    return (guid & MADE_BITS) == MADE_BITS;
}

const char *weft_fabric_port_name(const struct weft_fabric *fabric, size_t device, unsigned port)
{
    size_t low = 0;
    size_t high = fabric->port_name_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct weft_port_name *p = &fabric->port_names[middle];
        if (p->device == device && p->port == port) {
            return p->name;
        }
        if (p->device < device || (p->device == device && p->port < port)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

/* "MF0;name:MODEL/U1" (a managed switch): the name, and the module if the box has several
 * ("MCS8500/L16/U2": line card 16, chip 2). */
static char *managed_name(const char *desc)
{
    const char *semicolon = strchr(desc, ';');
    const char *colon = semicolon != NULL ? strchr(semicolon, ':') : NULL;
    if (colon == NULL || colon == semicolon + 1) {
        return NULL;
    }
    const int len = (int)(colon - semicolon - 1);
    const char *slash = strchr(colon, '/');
    const bool module = slash != NULL && (slash[1] == 'L' || slash[1] == 'S');
    return weft_asprintf("%.*s%s", len, semicolon + 1, module ? slash : "");
}

char *weft_device_name(const struct weft_device *device)
{
    if (strchr(device->desc, ';') != NULL) {
        char *name = managed_name(device->desc);
        if (name != NULL) {
            return name;
        }
    }
    if (device->desc[0] != '\0') {
        return weft_strdup(device->desc);
    }
    return weft_asprintf("%016" PRIx64, device->guid);
}

char *weft_ca_name(const struct weft_device *ca)
{
    struct weft_str host = {0};
    struct weft_str hca = {0};
    if (weft_desc_split(ca->desc, &host, &hca) && hca.len > 0) {
        return weft_strndup(hca.data, hca.len);
    }
    return weft_asprintf("%016" PRIx64, ca->guid);
}

void weft_raw_init(struct weft_raw *raw, const char *source)
{
    *raw = (struct weft_raw){.source = source};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(raw->ids); i++) {
        weft_idmap_init(&raw->ids[i], WEFT_FABRIC_DEVICES_MAX);
    }
}

void weft_raw_done(struct weft_raw *raw)
{
    for (size_t i = 0; i < WEFT_ARRAY_LEN(raw->ids); i++) {
        weft_idmap_done(&raw->ids[i]);
    }
    for (size_t i = 0; i < raw->warning_count; i++) {
        weft_free(raw->warnings[i]);
    }
    weft_free(raw->warnings);
    weft_free(raw->devices);
    weft_free(raw->links);
}

int weft_raw_device(struct weft_raw *raw, enum weft_device_kind kind, uint64_t guid,
                    uint32_t *ret_index)
{
    uint64_t *index = NULL;
    bool is_new = false;
    int rc = weft_idmap_at(&raw->ids[kind], guid, &index, &is_new);
    if (rc < 0) {
        return rc;
    }
    if (is_new) {
        void *list = raw->devices;
        rc = weft_array_reserve(&list, &raw->device_cap, raw->device_count + 1,
                                sizeof(*raw->devices), WEFT_FABRIC_DEVICES_MAX);
        raw->devices = list;
        if (rc < 0) {
            return rc;
        }
        raw->devices[raw->device_count] = (struct raw_device){.guid = guid, .kind = kind};
        *index = raw->device_count++;
    }
    *ret_index = (uint32_t)*index;
    return 0;
}

int weft_raw_link(struct weft_raw *raw, const struct raw_link *link)
{
    void *list = raw->links;
    /* both ends print a cable */
    const int rc = weft_array_reserve(&list, &raw->link_cap, raw->link_count + 1,
                                      sizeof(*raw->links), 2 * (size_t)WEFT_FABRIC_LINKS_MAX);
    raw->links = list;
    if (rc == 0) {
        raw->links[raw->link_count++] = *link;
    }
    return rc;
}

void weft_raw_describe(struct raw_device *device, struct weft_str desc)
{
    if (desc.len > WEFT_FABRIC_DESC_MAX) {
        desc.len = WEFT_FABRIC_DESC_MAX;
    }
    if (desc.len == 0) {
        return;
    }
    const size_t common = desc.len < device->desc.len ? desc.len : device->desc.len;
    const int cmp = memcmp(desc.data, device->desc.len > 0 ? device->desc.data : "", common);
    if (device->desc.len == 0 || cmp < 0 || (cmp == 0 && desc.len < device->desc.len)) {
        device->desc = desc;
    }
}

void weft_raw_warn(struct weft_raw *raw, unsigned line, const char *format, ...)
{
    raw->warning_total++;
    void *list = raw->warnings;
    if (weft_array_reserve(&list, &raw->warning_cap, raw->warning_count + 1, sizeof(*raw->warnings),
                           WEFT_FABRIC_WARNINGS_MAX) < 0) {
        return;
    }
    raw->warnings = list;
    char message[WEFT_ERROR_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    char *text = line > 0 ? weft_asprintf("%s:%u: %s", raw->source, line, message)
                          : weft_asprintf("%s: %s", raw->source, message);
    if (text != NULL) {
        raw->warnings[raw->warning_count++] = text;
    }
}
