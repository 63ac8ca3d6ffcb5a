/* SPDX-License-Identifier: Apache-2.0 */
/* Between the parsers of cabling and the value they make; and what a port's name tells. Private to
 * pkg/fabric. */
#ifndef WEFT_FABRIC_CABLING_INTERNAL_H
#define WEFT_FABRIC_CABLING_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/map.h"
#include "pkg/base/str.h"
#include "pkg/fabric/cabling.h"
#include "pkg/fabric/declared-internal.h"

/* What stands for a port, by its name. */
enum weft_port_kind {
    WEFT_PORT_UNKNOWN,
    WEFT_PORT_SWITCH,     /* swp1, Ethernet1/5, et-0/0/1, Gi0/39, Port 21 */
    WEFT_PORT_HOST,       /* eth0, ens1f0np0, ibp11s0f0, mlx5_0 */
    WEFT_PORT_MANAGEMENT, /* a switch's own: mgmt0, Management1, fxp0 */
    WEFT_PORT_KIND_COUNT
};

enum weft_port_kind weft_port_kind(const char *name);
/* The number of a port whose name is letters and blanks before one number ("swp21", "Port 21",
 * "21"); 0 if it is of another form. */
unsigned weft_port_number(const char *name);

/* Zero it and set source. */
struct weft_cabling_builder {
    const char *source;
    struct weft_map *names; /* to device */
    struct weft_map *ports; /* "device port" to cable */
    struct weft_cabling_device *devices;
    size_t device_count;
    size_t device_cap;
    struct weft_cable *cables;
    size_t cable_count;
    size_t cable_cap;
    struct weft_warnings warnings;
    bool partial;
};

void weft_cabling_builder_done(struct weft_cabling_builder *builder);
WEFT_DEFINE_AUTO_VALUE(struct weft_cabling_builder, weft_cabling_builder_done)

/* The device of that name, added if it is new. err set: -EINVAL for an empty or long name, -EFBIG,
 * -ENOMEM. */
int weft_cabling_device(struct weft_cabling_builder *builder, struct weft_str name, unsigned line,
                        size_t *ret_device, struct weft_error *err)
    __attribute__((warn_unused_result));
struct weft_cable_end {
    size_t device;
    struct weft_str port;
};

/* A cable; the same one again (plans list both directions) is none. err set: -EINVAL for a port
 * that has another cable; -EFBIG, -ENOMEM. */
int weft_cabling_cable(struct weft_cabling_builder *builder, const struct weft_cable_end ends[2],
                       unsigned line, struct weft_error *err) __attribute__((warn_unused_result));
/* Sorts; tells roles that were not given. -EINVAL without a cable; -ENOMEM. */
int weft_cabling_finish(struct weft_cabling_builder *builder, struct weft_cabling **ret_cabling,
                        struct weft_error *err) __attribute__((warn_unused_result));

#endif
