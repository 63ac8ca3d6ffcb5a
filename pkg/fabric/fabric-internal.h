/* SPDX-License-Identifier: Apache-2.0 */
/* Between the parsers and the fabric they make: devices and link sightings as they are read, with
 * descriptions as views into the caller's text. Private to pkg/fabric. */
#ifndef WEFT_FABRIC_FABRIC_INTERNAL_H
#define WEFT_FABRIC_FABRIC_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/idmap.h"
#include "pkg/base/str.h"
#include "pkg/fabric/fabric.h"

/* a free-text id whose record has not been seen (yet) */
#define RAW_KIND_UNKNOWN WEFT_DEVICE_KIND_COUNT

struct raw_device {
    uint64_t guid;
    uint64_t system_guid; /* 0: not said */
    struct weft_str desc; /* of its own record, else as a peer showed it */
    uint32_t device_id;
    unsigned line; /* first own record, 0 if none */
    enum weft_device_kind kind;
};

/* One port line: what one end's record says about a cable. */
struct raw_link {
    uint32_t from;
    uint32_t to;
    uint16_t from_port;
    uint16_t to_port;
    uint32_t gbps;
};

/* What a scan has said so far. Zero it, set source, call weft_raw_init. */
struct weft_raw {
    const char *source;
    struct raw_device *devices;
    size_t device_count;
    size_t device_cap;
    struct raw_link *links;
    size_t link_count;
    size_t link_cap;
    /* GUID to device index, by kind; the last one for free-text ids, by hash */
    struct weft_idmap ids[WEFT_DEVICE_KIND_COUNT + 1];
    char **warnings;
    size_t warning_count;
    size_t warning_cap;
    size_t warning_total;
    bool partial;
};

void weft_raw_init(struct weft_raw *raw, const char *source);
void weft_raw_done(struct weft_raw *raw);
WEFT_DEFINE_AUTO_VALUE(struct weft_raw, weft_raw_done)

/* The index of the device with that id, added if it is new. 0, -ENOMEM, -EFBIG. */
int weft_raw_device(struct weft_raw *raw, enum weft_device_kind kind, uint64_t guid,
                    uint32_t *ret_index) __attribute__((warn_unused_result));
int weft_raw_link(struct weft_raw *raw, const struct raw_link *link)
    __attribute__((warn_unused_result));
/* Prefers longer knowledge in a way that no order of records changes: a text over none, the
 * smaller of two. */
void weft_raw_describe(struct raw_device *device, struct weft_str desc);
/* Keeps "source:line: message" (line 0: without); never fails, short memory drops the text only. */
void weft_raw_warn(struct weft_raw *raw, unsigned line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The readers of each format (parse-ib*.c): all lines of the text into raw. *ret_lines is how many
 * lines were read. -EINVAL with err set, or -ENOMEM or -EFBIG without. */
int weft_read_ibnetdiscover(struct weft_str text, struct weft_raw *raw, unsigned *ret_lines,
                            struct weft_error *err) __attribute__((warn_unused_result));
int weft_read_ib_ports(struct weft_str text, struct weft_raw *raw, unsigned *ret_lines,
                       struct weft_error *err) __attribute__((warn_unused_result));
int weft_read_iblinkinfo(struct weft_str text, struct weft_raw *raw, unsigned *ret_lines,
                         struct weft_error *err) __attribute__((warn_unused_result));
/* A list whose rows end in ")": a last row without its line end and without that is cut, and what
 * is left of it may look like a port without a cable. 0 or -EINVAL. */
int weft_raw_check_end(const struct weft_raw *raw, struct weft_str text, unsigned lines,
                       struct weft_error *err) __attribute__((warn_unused_result));
/* "NDR" to tenths of Gb/s a lane; 0 if it is no name of a speed. */
unsigned weft_ib_lane_rate(struct weft_str speed);

/* Sorts, joins the two sightings of each cable, tells SHARP nodes from hosts and groups adapters
 * into hosts. The caller owns *ret_fabric; raw is used up (its warnings move). */
int weft_raw_finish(struct weft_raw *raw, struct weft_fabric **ret_fabric, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Fills in roles, hosts and the devices' host index. Part of weft_raw_finish. */
int weft_fabric_find_hosts(struct weft_fabric *fabric, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
