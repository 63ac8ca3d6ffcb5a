/* SPDX-License-Identifier: Apache-2.0 */
/* Cables between ports that have names: what a cabling plan expects (PTM's topology.dot, UFM's
 * network design table) or a manager reports by name (NetQ). It can be a fabric of its own, or be
 * compared with one that was observed. Pure. */
#ifndef WEFT_FABRIC_CABLING_H
#define WEFT_FABRIC_CABLING_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_fabric;

enum {
    WEFT_CABLING_TEXT_MAX = 64 << 20,
    WEFT_CABLING_DEVICES_MAX = 1 << 18,
    WEFT_CABLING_CABLES_MAX = 1 << 20,
    WEFT_CABLING_NAME_MAX = 253,
    WEFT_CABLING_WARNINGS_MAX = 64
};

enum weft_cabling_role { WEFT_CABLING_HOST, WEFT_CABLING_SWITCH, WEFT_CABLING_ROLE_COUNT };

struct weft_cabling_device {
    char *name; /* as written */
    enum weft_cabling_role role;
    bool role_given; /* by the text; else told by its ports' names */
    unsigned line;   /* where it was first named */
};

/* One cable: a's index is the smaller. */
struct weft_cable {
    size_t a; /* index into devices */
    size_t b;
    char *a_port;
    char *b_port;
    unsigned line;
};

struct weft_cabling {
    char *source;
    struct weft_cabling_device *devices; /* by name (strcmp) */
    size_t device_count;
    struct weft_cable *cables; /* by a, a_port, b, b_port (natural order of ports) */
    size_t cable_count;
    char **warnings; /* "file:line: …" */
    size_t warning_count;
    size_t warning_total;
    bool partial; /* the text is known to lack something */
};

void weft_cabling_free(struct weft_cabling *cabling);
WEFT_DEFINE_AUTO(struct weft_cabling, weft_cabling_free)

/* PTM's topology.dot (Graphviz, undirected; docs.nvidia.com, Prescriptive Topology Manager): edges
 * "leaf01":"swp1" -- "host01":"eth0", node attributes function="leaf" and its like. A port with two
 * cables, an edge without ports, a digraph and an unfinished text are errors. The caller owns
 * *ret_cabling. Errors: -EINVAL with file:line, -EFBIG, -ENOMEM. */
int weft_parse_ptm(const char *text, size_t len, const char *source,
                   struct weft_cabling **ret_cabling, struct weft_error *err)
    __attribute__((warn_unused_result));

/* UFM's network design table: comma-separated rows under a header line that names StartDevice,
 * StartPort, EndDevice, EndPort (in any order, among others). "Port 21" is port 21; "Blade
 * 16_Port 2/20" is port 20 of the part L16/U2 of a chassis; "host ibp11s0f0" is a host's adapter.
 * Errors as above. */
int weft_parse_ndt(const char *text, size_t len, const char *source,
                   struct weft_cabling **ret_cabling, struct weft_error *err)
    __attribute__((warn_unused_result));

/* NetQ's topology graph (fetch-topology): every list element's nodes and compounded links. Errors
 * as above. */
int weft_parse_netq(const char *text, size_t len, const char *source,
                    struct weft_cabling **ret_cabling, struct weft_error *err)
    __attribute__((warn_unused_result));

/* Any of the three: JSON is NetQ's, a first line with StartDevice or EndDevice a table, all else
 * DOT.
 */
int weft_parse_cabling(const char *text, size_t len, const char *source,
                       struct weft_cabling **ret_cabling, struct weft_error *err)
    __attribute__((warn_unused_result));

/* The cables as a fabric: switches with made-up GUIDs (weft_guid_made), hosts by their names, an
 * adapter a host port; port numbers in natural order of the device's port names (see
 * weft_fabric_port_name). The caller owns *ret_fabric. Errors: -EINVAL if there is no switch or no
 * cable or two names give one GUID, -ENOMEM. */
int weft_cabling_fabric(const struct weft_cabling *cabling, struct weft_fabric **ret_fabric,
                        struct weft_error *err) __attribute__((warn_unused_result));

enum weft_cable_state {
    WEFT_CABLE_MISSING,  /* expected, both devices are seen, neither port has a cable */
    WEFT_CABLE_MISWIRED, /* expected, but one of the ports is connected elsewhere */
    WEFT_CABLE_EXTRA,    /* seen between two devices of the plan, on ports that have none in it */
    WEFT_CABLE_UNSEEN,   /* expected, but one of its devices is not in the fabric at all */
    WEFT_CABLE_STATE_COUNT
};

/* One deviation. Texts are "device:port", as the plan (expected) and the fabric (actual) name it.
 */
struct weft_cable_finding {
    enum weft_cable_state state;
    char *a;       /* the plan's first end; EXTRA: the fabric's */
    char *b;       /* the plan's other end; EXTRA: the fabric's */
    char *actual;  /* MISWIRED: what is connected instead, "a - b"; else "" */
    unsigned line; /* of the plan; 0: EXTRA */
};

struct weft_cable_findings {
    struct weft_cable_finding *items; /* by state, a, b */
    size_t count;
    size_t right; /* cables that are as expected */
};

void weft_cable_findings_done(struct weft_cable_findings *findings);
WEFT_DEFINE_AUTO_VALUE(struct weft_cable_findings, weft_cable_findings_done)

/* Compares what is expected with what was observed. Devices are the same by name without case, a
 * host also by its first label; ports by name, or by their number where the fabric has numbers only
 * ("swp21", "Port 21" and 21); a host's port by its adapter's name. A partial fabric gives no
 * MISSING and no UNSEEN: what was not scanned is not missing. Errors: -ENOMEM. */
int weft_cabling_compare(const struct weft_cabling *expected, const struct weft_fabric *observed,
                         struct weft_cable_findings *ret_findings, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
