/* SPDX-License-Identifier: Apache-2.0 */
/* Scans of several subnets (rails, planes) as one fabric: hosts have adapters in each of them. */
#include <errno.h>

#include "pkg/fabric/fabric-internal.h"

static int add_devices(struct weft_raw *raw, const struct weft_fabric *part, uint32_t *place)
{
    for (size_t d = 0; d < part->device_count; d++) {
        const struct weft_device *from = &part->devices[d];
        const int rc = weft_raw_device(raw, from->kind, from->guid, &place[d]);
        if (rc < 0) {
            return rc;
        }
        struct raw_device *to = &raw->devices[place[d]];
        weft_raw_describe(to, weft_str(from->desc));
        if (to->system_guid == 0 || from->line > 0) {
            to->system_guid = from->system_guid;
        }
        to->device_id = from->device_id > to->device_id ? from->device_id : to->device_id;
        to->line = to->line == 0 ? from->line : to->line;
    }
    return 0;
}

static int add_links(struct weft_raw *raw, const struct weft_fabric *part, const uint32_t *place)
{
    int rc = 0;
    for (size_t l = 0; rc == 0 && l < part->link_count; l++) {
        const struct weft_link *from = &part->links[l];
        struct raw_link link = {.from = place[from->a],
                                .to = place[from->b],
                                .from_port = from->a_port,
                                .to_port = from->b_port,
                                .gbps = from->gbps};
        rc = weft_raw_link(raw, &link);
        if (rc == 0 && from->both) {
            const struct raw_link back = {.from = link.to,
                                          .to = link.from,
                                          .from_port = link.to_port,
                                          .to_port = link.from_port,
                                          .gbps = link.gbps};
            rc = weft_raw_link(raw, &back);
        }
    }
    return rc;
}

/* Warnings know their file already. */
static int add_warnings(struct weft_raw *raw, const struct weft_fabric *part)
{
    raw->warning_total += part->warning_total;
    for (size_t w = 0; w < part->warning_count && raw->warning_count < WEFT_FABRIC_WARNINGS_MAX;
         w++) {
        void *list = raw->warnings;
        char *text = weft_strdup(part->warnings[w]);
        if (text == NULL ||
            weft_array_reserve(&list, &raw->warning_cap, raw->warning_count + 1,
                               sizeof(*raw->warnings), WEFT_FABRIC_WARNINGS_MAX) < 0) {
            weft_free(text);
            return -ENOMEM;
        }
        raw->warnings = list;
        raw->warnings[raw->warning_count++] = text;
    }
    return 0;
}

int weft_fabric_join(const struct weft_fabric *const *parts, size_t count, const char *source,
                     struct weft_fabric **ret_fabric, struct weft_error *err)
{
    weft_auto(weft_raw_done) struct weft_raw raw;
    weft_raw_init(&raw, source);
    for (size_t p = 0; p < count; p++) {
        weft_autofree uint32_t *place = weft_calloc(parts[p]->device_count, sizeof(*place));
        int rc = place == NULL ? -ENOMEM : add_devices(&raw, parts[p], place);
        rc = rc < 0 ? rc : add_links(&raw, parts[p], place);
        rc = rc < 0 ? rc : add_warnings(&raw, parts[p]);
        if (rc < 0) {
            return weft_err_errno(err, -rc, "%s", source);
        }
        raw.partial = raw.partial || parts[p]->partial;
    }
    return weft_raw_finish(&raw, ret_fabric, err);
}
