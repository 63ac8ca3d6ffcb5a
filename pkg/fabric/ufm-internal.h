/* SPDX-License-Identifier: Apache-2.0 */
/* What UFM's rows have said so far. Private to pkg/fabric. */
#ifndef WEFT_FABRIC_UFM_INTERNAL_H
#define WEFT_FABRIC_UFM_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/idmap.h"
#include "pkg/fabric/declared-internal.h"
#include "pkg/fabric/ufm.h"

enum weft_ufm_kind {
    WEFT_UFM_UNKNOWN,
    WEFT_UFM_SWITCH,
    WEFT_UFM_HOST,
    WEFT_UFM_OTHER, /* gateways and routers */
    WEFT_UFM_KIND_COUNT
};

struct weft_ufm_device {
    uint64_t guid;   /* of the node or, of an adapter, of its port: what links name */
    uint64_t system; /* 0: not said */
    enum weft_ufm_kind kind;
    char *desc; /* node description, "" if none */
    char *name; /* of the system, "" if none */
    bool gone;  /* UFM says it is not active */
    unsigned line;
    uint16_t port; /* the only one seen; UINT16_MAX: several */
};

struct weft_ufm_cable {
    uint64_t guid[2];
    uint16_t port[2];
    uint32_t gbps;
    bool both; /* the row is of a cable, not of one end's port */
    unsigned line;
};

/* A row's words about one device; texts are borrowed. */
struct weft_ufm_fact {
    uint64_t guid;
    uint64_t system;
    enum weft_ufm_kind kind;
    const char *desc; /* may be NULL */
    const char *name; /* may be NULL */
    bool gone;
    uint16_t port; /* 0: none */
    unsigned line;
};

struct weft_ufm {
    char *source;
    const char *file;      /* of the answer that is read */
    struct weft_idmap ids; /* GUID to device */
    struct weft_ufm_device *devices;
    size_t device_count;
    size_t device_cap;
    struct weft_ufm_cable *cables;
    size_t cable_count;
    size_t cable_cap;
    struct weft_idmap down;     /* hash of GUID and port */
    struct weft_idmap virtuals; /* GUIDs of virtual ports */
    size_t down_count;
    struct weft_warnings warnings;
    bool partial;
};

/* Each: 0, -EFBIG, -ENOMEM. */
int weft_ufm_tell(struct weft_ufm *ufm, const struct weft_ufm_fact *fact)
    __attribute__((warn_unused_result));
int weft_ufm_cable(struct weft_ufm *ufm, const struct weft_ufm_cable *cable)
    __attribute__((warn_unused_result));
int weft_ufm_down(struct weft_ufm *ufm, uint64_t guid, uint16_t port)
    __attribute__((warn_unused_result));
int weft_ufm_virtual(struct weft_ufm *ufm, uint64_t guid) __attribute__((warn_unused_result));

#endif
