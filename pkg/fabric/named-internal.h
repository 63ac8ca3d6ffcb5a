/* SPDX-License-Identifier: Apache-2.0 */
/* A fabric of names: switches and hosts without GUIDs, ports with names. Made into a weft_fabric
 * with made-up GUIDs. Private to pkg/fabric. */
#ifndef WEFT_FABRIC_NAMED_INTERNAL_H
#define WEFT_FABRIC_NAMED_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/map.h"
#include "pkg/fabric/declared-internal.h"

struct weft_fabric;

enum { WEFT_NAMED_DEVICES_MAX = 1 << 20, WEFT_NAMED_CABLES_MAX = 1 << 21 };

struct weft_named_device {
    char *identity; /* of a switch: what makes it the same; of a host: its name */
    char *name;     /* for people */
    bool is_switch;
    unsigned line;
};

struct weft_named_cable {
    size_t a; /* device */
    size_t b;
    char *a_port;
    char *b_port;
    bool both; /* both ends say so */
};

/* Zero it and set source. */
struct weft_named {
    const char *source;
    struct weft_map *ids; /* "s" or "h" and the identity to device */
    struct weft_named_device *devices;
    size_t device_count;
    size_t device_cap;
    struct weft_named_cable *cables;
    size_t cable_count;
    size_t cable_cap;
    struct weft_warnings warnings;
    bool partial;
};

void weft_named_done(struct weft_named *named);
WEFT_DEFINE_AUTO_VALUE(struct weft_named, weft_named_done)

/* The device of that identity, added if it is new. line: where it is first named, at least 1.
 * 0, -EFBIG, -ENOMEM. */
int weft_named_device(struct weft_named *named, bool is_switch, const char *identity,
                      const char *name, unsigned line, size_t *ret_device)
    __attribute__((warn_unused_result));
/* 0, -EFBIG, -ENOMEM. */
int weft_named_cable(struct weft_named *named, size_t a, const char *a_port, size_t b,
                     const char *b_port, bool both) __attribute__((warn_unused_result));

/* Hosts whose names differ in case or in the domain only are one host, unless two domains have the
 * same first label. named is used up (its warnings move). Errors: -EINVAL for no switch, no cable,
 * or two names that give one GUID; -EFBIG, -ENOMEM. */
int weft_named_finish(struct weft_named *named, struct weft_fabric **ret_fabric,
                      struct weft_error *err) __attribute__((warn_unused_result));

#endif
