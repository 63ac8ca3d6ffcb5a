/* SPDX-License-Identifier: Apache-2.0 */
/* From what a parser collected to a fabric: devices in order, each cable once. The order of the
 * text decides nothing. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/sort.h"
#include "pkg/fabric/fabric-internal.h"

struct order {
    uint64_t guid;
    uint32_t kind;
    uint32_t index;
};

/* kinds are four */
static uint64_t order_prefix(const void *item)
{
    const struct order *o = item;
    return (uint64_t)o->kind << 62 | o->guid >> 2;
}

static int compare_order(const void *a, const void *b)
{
    const struct order *x = a;
    const struct order *y = b;
    if (x->kind != y->kind) {
        return x->kind < y->kind ? -1 : 1;
    }
    if (x->guid != y->guid) {
        return x->guid < y->guid ? -1 : 1;
    }
    return (x->index > y->index) - (x->index < y->index);
}

static void fill_device(struct weft_raw *raw, const struct raw_device *from, char *text,
                        struct weft_device *to)
{
    to->guid = from->guid;
    to->system_guid = from->system_guid != 0 ? from->system_guid : from->guid;
    to->kind = from->kind;
    to->device_id = from->device_id;
    to->host = WEFT_FABRIC_NO_HOST;
    to->line = from->line;
    to->desc = text;
    if (from->desc.len > 0) {
        memcpy(text, from->desc.data, from->desc.len);
    }
    text[from->desc.len] = '\0';
    if (from->line == 0) {
        raw->partial = true;
    }
}

/* Room for all descriptions and their ends. */
static size_t desc_size(const struct weft_raw *raw)
{
    size_t size = 0;
    for (size_t i = 0; i < raw->device_count; i++) {
        size += raw->devices[i].desc.len + 1;
    }
    return size;
}

/* Fills the devices by kind and GUID; place[raw index] = fabric index, or SIZE_MAX if the device's
 * kind never became known. */
static int place_devices(struct weft_raw *raw, struct weft_fabric *fabric, size_t *place)
{
    weft_autofree struct order *order = weft_calloc(raw->device_count, sizeof(*order));
    fabric->devices = weft_calloc(raw->device_count, sizeof(*fabric->devices));
    fabric->desc_text = weft_malloc(desc_size(raw));
    if (order == NULL || fabric->devices == NULL || fabric->desc_text == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < raw->device_count; i++) {
        const struct raw_device *d = &raw->devices[i];
        order[i] = (struct order){.guid = d->guid, .kind = d->kind, .index = (uint32_t)i};
    }
    if (weft_sort(order, raw->device_count, sizeof(*order), order_prefix, compare_order) < 0) {
        return -ENOMEM;
    }
    size_t silent = 0;
    char *text = fabric->desc_text;
    for (size_t i = 0; i < raw->device_count; i++) {
        const struct raw_device *from = &raw->devices[order[i].index];
        silent += from->line == 0;
        if (from->kind == RAW_KIND_UNKNOWN) {
            raw->partial = true;
            place[order[i].index] = SIZE_MAX;
            continue;
        }
        place[order[i].index] = fabric->device_count;
        fabric->switch_count += from->kind == WEFT_DEVICE_SWITCH;
        fill_device(raw, from, text, &fabric->devices[fabric->device_count++]);
        text += from->desc.len + 1;
    }
    if (silent > 0) {
        weft_raw_warn(raw, 0,
                      "%zu of %zu devices are named as peers but have no record of their "
                      "own: the dump is cut or filtered",
                      silent, raw->device_count);
    }
    return 0;
}

/* Each sighting as a link with its smaller end first; false if it is not a cable between two known
 * devices. */
static bool canonical(const struct raw_link *seen, const size_t *place, struct weft_link *ret_link)
{
    const size_t from = place[seen->from];
    const size_t to = place[seen->to];
    if (from == SIZE_MAX || to == SIZE_MAX) {
        return false;
    }
    const bool forward = from < to || (from == to && seen->from_port <= seen->to_port);
    *ret_link = (struct weft_link){
        .a = (uint32_t)(forward ? from : to),
        .b = (uint32_t)(forward ? to : from),
        .a_port = forward ? seen->from_port : seen->to_port,
        .b_port = forward ? seen->to_port : seen->from_port,
        .gbps = seen->gbps,
        .both = forward,
    };
    return true;
}

static int compare_link(const void *a, const void *b)
{
    const struct weft_link *x = a;
    const struct weft_link *y = b;
    if (x->a_port != y->a_port) {
        return x->a_port < y->a_port ? -1 : 1;
    }
    if (x->b != y->b) {
        return x->b < y->b ? -1 : 1;
    }
    return (x->b_port > y->b_port) - (x->b_port < y->b_port);
}

static bool same_cable(const struct weft_link *x, const struct weft_link *y)
{
    return x->a == y->a && x->b == y->b && x->a_port == y->a_port && x->b_port == y->b_port;
}

/* One device's sightings, sorted: joins those of one cable. While they are joined, both holds
 * "seen from a"; a cable that two records show has a sighting each way. */
static size_t join(struct weft_link *links, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count;) {
        struct weft_link link = links[i];
        bool forward = link.both;
        bool backward = !link.both;
        for (i++; i < count && same_cable(&links[i], &link); i++) {
            forward = forward || links[i].both;
            backward = backward || !links[i].both;
            link.gbps = links[i].gbps > link.gbps ? links[i].gbps : link.gbps;
        }
        link.both = forward && backward;
        links[kept++] = link;
    }
    return kept;
}

/* A port has one cable. Where a text shows several (runs of different times in one file, GUIDs
 * made up), the one that both ends show stays, else the first in order. */
static size_t drop_doubles(struct weft_raw *raw, const struct weft_device *device,
                           struct weft_link *links, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count;) {
        size_t best = i;
        size_t end = i + 1;
        for (; end < count && links[end].a_port == links[i].a_port; end++) {
            if (links[end].both && !links[best].both) {
                best = end;
            }
        }
        if (end - i > 1) {
            weft_raw_warn(raw, device->line, "port %u of %016" PRIx64 " has %zu different peers",
                          (unsigned)links[i].a_port, device->guid, end - i);
        }
        links[kept++] = links[best];
        i = end;
    }
    return kept;
}

/* Counting sort by device, then by port within each: the number of links is what is large. */
static int sort_links(const struct weft_raw *raw, const size_t *place, struct weft_fabric *fabric,
                      size_t *start)
{
    fabric->links = weft_calloc(raw->link_count, sizeof(*fabric->links));
    if (fabric->links == NULL) {
        return -ENOMEM;
    }
    struct weft_link link = {0};
    for (size_t i = 0; i < raw->link_count; i++) {
        if (canonical(&raw->links[i], place, &link)) {
            start[link.a + 1]++;
        }
    }
    for (size_t d = 0; d < fabric->device_count; d++) {
        start[d + 1] += start[d];
    }
    weft_autofree size_t *next = weft_memdup(start, (fabric->device_count + 1) * sizeof(*next));
    if (next == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < raw->link_count; i++) {
        if (canonical(&raw->links[i], place, &link)) {
            fabric->links[next[link.a]++] = link;
        }
    }
    return 0;
}

static int place_links(struct weft_raw *raw, const size_t *place, struct weft_fabric *fabric)
{
    weft_autofree size_t *start = weft_calloc(fabric->device_count + 1, sizeof(*start));
    if (start == NULL || sort_links(raw, place, fabric, start) < 0) {
        return -ENOMEM;
    }
    for (size_t d = 0; d < fabric->device_count; d++) {
        struct weft_link *links = &fabric->links[start[d]];
        size_t count = start[d + 1] - start[d];
        qsort(links, count, sizeof(*links), compare_link);
        count = join(links, count);
        count = drop_doubles(raw, &fabric->devices[d], links, count);
        memmove(&fabric->links[fabric->link_count], links, count * sizeof(*links));
        fabric->link_count += count;
    }
    return 0;
}

int weft_raw_finish(struct weft_raw *raw, struct weft_fabric **ret_fabric, struct weft_error *err)
{
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = weft_calloc(1, sizeof(*fabric));
    weft_autofree size_t *place = weft_calloc(raw->device_count, sizeof(*place));
    if (fabric == NULL || place == NULL || place_devices(raw, fabric, place) < 0 ||
        place_links(raw, place, fabric) < 0) {
        return weft_err_nomem(err);
    }
    if (fabric->link_count > WEFT_FABRIC_LINKS_MAX) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_CONFIG, "%s: more than %d links", raw->source,
                            (int)WEFT_FABRIC_LINKS_MAX);
    }
    fabric->source = weft_strdup(raw->source);
    if (fabric->source == NULL) {
        return weft_err_nomem(err);
    }
    const int rc = weft_fabric_find_hosts(fabric, err);
    if (rc < 0) {
        return rc;
    }
    fabric->warnings = weft_steal(&raw->warnings);
    fabric->warning_count = raw->warning_count;
    fabric->warning_total = raw->warning_total;
    fabric->partial = raw->partial;
    raw->warning_count = 0;
    *ret_fabric = weft_steal(&fabric);
    return 0;
}
