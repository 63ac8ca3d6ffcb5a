/* SPDX-License-Identifier: Apache-2.0 */
/* A switch fabric as one scan saw it: switches, channel adapters, hosts and links, with where each
 * was said. Made by the parsers (parse-*.c), input of pkg/tree. A value, immutable once made; pure.
 */
#ifndef WEFT_FABRIC_FABRIC_H
#define WEFT_FABRIC_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_str;

enum {
    WEFT_FABRIC_TEXT_MAX =
        512 << 20, /* bytes of a dump; 65,536 hosts of 8 HCAs give about 200 MB */
    WEFT_FABRIC_DEVICES_MAX = 1 << 22,
    WEFT_FABRIC_LINKS_MAX = 1 << 24,
    /* InfiniBand ports are 8 bit; simulators and aggregated chassis go higher */
    WEFT_FABRIC_PORT_MAX = 1024,
    WEFT_FABRIC_DESC_MAX = 256, /* NodeDescription is 64 bytes; a name map may give more */
    WEFT_FABRIC_WARNINGS_MAX = 64
};

enum weft_device_kind {
    WEFT_DEVICE_SWITCH,
    WEFT_DEVICE_CA,
    WEFT_DEVICE_ROUTER,
    WEFT_DEVICE_KIND_COUNT
};

/* What a channel adapter is for. Only hosts' adapters take part in a tree. */
enum weft_ca_role {
    WEFT_CA_HOST,
    WEFT_CA_AGGREGATION, /* a switch's SHARP node: shares the switch's system image GUID */
    WEFT_CA_GATEWAY,
    WEFT_CA_ROLE_COUNT
};

#define WEFT_FABRIC_NO_HOST SIZE_MAX

struct weft_device {
    uint64_t guid;        /* node GUID: the identity, unique among devices of its kind */
    uint64_t system_guid; /* system image GUID; the node GUID if the dump does not say */
    const char *desc;     /* node description as seen, in desc_text; "" if none. No identity */
    enum weft_device_kind kind;
    enum weft_ca_role role; /* CA only */
    uint32_t device_id;     /* 0 if unknown */
    size_t host;            /* CA with role HOST: index into hosts, else WEFT_FABRIC_NO_HOST */
    unsigned line;          /* of its own record; 0 if it was only seen as a peer */
};

/* One cable, once: ends ordered by device index, then port. */
struct weft_link {
    uint32_t a; /* device index */
    uint32_t b;
    uint16_t a_port;
    uint16_t b_port;
    uint32_t gbps; /* width x lane rate, at least 1; 1 if unknown */
    bool both;     /* each end's record shows it */
};

/* What has channel adapters: by name where the description says "name hca" and no two systems say
 * the same, else by system image GUID. */
struct weft_host {
    char *name;      /* as written, cut at the first dot; for unnamed hosts the GUID, 16 digits */
    char *full_name; /* the description's first word, uncut; "" for unnamed hosts */
    bool mappable;   /* the name may stand for a cluster node */
    uint64_t system_guid; /* smallest of its adapters */
};

/* A port that has a name, in fabrics of names (LLDP, plans): its number is its place among the
 * device's port names, for findings only. */
struct weft_port_name {
    uint32_t device; /* index */
    uint16_t port;
    char *name;
};

struct weft_fabric {
    char *source;                /* file name, for findings */
    struct weft_device *devices; /* sorted by kind, then GUID */
    size_t device_count;
    char *desc_text;         /* all descriptions, each with its NUL */
    size_t switch_count;     /* devices[0, switch_count) are the switches */
    struct weft_link *links; /* sorted by a, a_port, b, b_port */
    size_t link_count;
    struct weft_host *hosts; /* named first, by folded name; then by GUID */
    size_t host_count;
    char **warnings; /* "file:line: …", the first WEFT_FABRIC_WARNINGS_MAX */
    size_t warning_count;
    size_t warning_total;
    struct weft_port_name *port_names; /* by device, then port; none in InfiniBand dumps */
    size_t port_name_count;
    bool partial; /* the scan or the file is incomplete: must never shrink what is known */
};

void weft_fabric_free(struct weft_fabric *fabric);
WEFT_DEFINE_AUTO(struct weft_fabric, weft_fabric_free)

/* Reads what InfiniBand's own tools print about a subnet, told apart by content: `ibnetdiscover`
 * (rdma-core infiniband-diags; also ibsim's net files), its port list (`ibnetdiscover -p`) or
 * `iblinkinfo`; several runs one after the other, with terminal logs around them. source is the
 * name for errors and findings. Lines that cannot be read are counted, warned about and make the
 * fabric partial; a text that ends in the middle of a record, without a switch or a link, or of a
 * kind that does not say the cabling (ibswinfo, ibutils' plans and lists) is an error that says so.
 * The caller owns *ret_fabric. Errors: -EINVAL with file:line, -EFBIG over a cap above, -ENOMEM. */
int weft_parse_infiniband(const char *text, size_t len, const char *source,
                          struct weft_fabric **ret_fabric, struct weft_error *err)
    __attribute__((warn_unused_result));
/* The same for a text that must be ibnetdiscover's. */
int weft_parse_ibnetdiscover(const char *text, size_t len, const char *source,
                             struct weft_fabric **ret_fabric, struct weft_error *err)
    __attribute__((warn_unused_result));

/* A GUID for a device that has none, made from a text that stands for it: stable over runs and
 * versions. Its first byte has the group and the local bit set, which no adapter's EUI-64 has
 * (IEEE 802, "Guidelines for EUI"), so it is never taken for a real one. */
uint64_t weft_guid_made(const char *text, size_t len);
bool weft_guid_is_made(uint64_t guid);
/* The port's name, borrowed; NULL if it has a number only. */
const char *weft_fabric_port_name(const struct weft_fabric *fabric, size_t device, unsigned port);

/* One fabric of several scans, one a subnet: devices are the same by GUID, a host's adapters are
 * found together again, warnings keep their files. A partial part makes the result partial. The
 * caller owns *ret_fabric. Errors: -EFBIG over a cap above, -ENOMEM. */
int weft_fabric_join(const struct weft_fabric *const *parts, size_t count, const char *source,
                     struct weft_fabric **ret_fabric, struct weft_error *err)
    __attribute__((warn_unused_result));

/* A device's name for people: the part of a managed switch's description between ";" and ":"
 * ("MF0;leaf-1:MQM9701/U1" is "leaf-1"), with the module of a chassis ("dir-1/L16/U2"), else the
 * description, else the GUID. Owned; NULL without memory. */
char *weft_device_name(const struct weft_device *device) __attribute__((warn_unused_result));
/* An adapter's own name: the description's second word ("mlx5_0", "HCA-1"), else its GUID. Owned;
 * NULL without memory. */
char *weft_ca_name(const struct weft_device *ca) __attribute__((warn_unused_result));
/* A description of one or two words whose first could be a host's name: *ret_host is the first
 * word, *ret_hca the second (empty if there is none). Views into desc. */
bool weft_desc_split(const char *desc, struct weft_str *ret_host, struct weft_str *ret_hca);

#endif
