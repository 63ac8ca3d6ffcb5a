/* SPDX-License-Identifier: Apache-2.0 */
/* LLDP neighbours as reports have them, before it is known what is what. Private to pkg/fabric. */
#ifndef WEFT_FABRIC_LLDP_INTERNAL_H
#define WEFT_FABRIC_LLDP_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/map.h"
#include "pkg/fabric/declared-internal.h"
#include "pkg/fabric/lldp.h"

struct weft_json;

/* What a row says, borrowed; NULL and "" are the same. */
struct weft_lldp_words {
    const char *reporter;
    const char *port;    /* the reporter's */
    const char *chassis; /* the neighbour's chassis id */
    const char *name;    /* its system name */
    const char *descr;   /* its system description */
    const char *peer_port;
    const char *peer_port_descr;
    bool infrastructure; /* bridge or router is enabled */
    bool station;        /* enabled */
    unsigned line;
};

/* The same, owned. */
struct weft_lldp_row {
    size_t reporter; /* index */
    char *port;
    uint64_t mac; /* of the chassis; 0: it is none */
    char *name;   /* lower case; "" if there is none */
    char *shown;  /* the name as written, else the chassis id */
    char *peer_port;
    bool infrastructure;
    bool station;
    bool dpu; /* a host's own data processing unit */
    unsigned line;
    size_t file; /* index */
};

struct weft_lldp_reporter {
    char *name;   /* as given */
    char *folded; /* in lower case */
    size_t rows;
};

struct weft_lldp {
    char *source;
    char **files;
    size_t file_count;
    size_t file_cap;
    struct weft_map *names; /* folded reporter to index */
    struct weft_lldp_reporter *reporters;
    size_t reporter_count;
    size_t reporter_cap;
    struct weft_lldp_row *rows;
    size_t row_count;
    size_t row_cap;
    struct weft_warnings warnings;
    bool partial;
};

/* Makes the reporter known, also if it has no row. err set: -EINVAL, -EFBIG, -ENOMEM. */
int weft_lldp_reporter(struct weft_lldp *lldp, const char *name, size_t *ret_reporter,
                       struct weft_error *err) __attribute__((warn_unused_result));
/* Adds a row; one without a chassis or a port at either end is passed over with a warning. err set:
 * -EFBIG, -ENOMEM. */
int weft_lldp_row(struct weft_lldp *lldp, const struct weft_lldp_words *words,
                  struct weft_error *err) __attribute__((warn_unused_result));
const char *weft_lldp_file(const struct weft_lldp *lldp);

/* The two families of reports: parse-lldp.c, parse-lldp-records.c. */
int weft_lldp_read_lldpd(struct weft_lldp *lldp, const struct weft_json *root, const char *reporter,
                         struct weft_error *err) __attribute__((warn_unused_result));
int weft_lldp_read_records(struct weft_lldp *lldp, const struct weft_json *root,
                           struct weft_error *err) __attribute__((warn_unused_result));

/* "Eth1/3", "Et1", "Gi0/1" in full, so that both ends of a cable write a port alike; owned. */
char *weft_lldp_port_name(const char *name) __attribute__((warn_unused_result));

#endif
