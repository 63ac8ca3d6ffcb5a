/* SPDX-License-Identifier: Apache-2.0 */
/* LLDP neighbours as a switch fabric: which port of which host is at which switch port. One report
 * a system, added one by one. A switch is its chassis id and system name together (stacks share the
 * first, sites the second); hosts are by name. Pure. */
#ifndef WEFT_FABRIC_LLDP_H
#define WEFT_FABRIC_LLDP_H

#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_fabric;
struct weft_lldp;

enum {
    WEFT_LLDP_TEXT_MAX = 64 << 20, /* one report */
    WEFT_LLDP_NEIGHBORS_MAX = 1 << 21
};

/* source: what the reports are called in findings. NULL without memory. */
struct weft_lldp *weft_lldp_new(const char *source) __attribute__((warn_unused_result));
void weft_lldp_free(struct weft_lldp *lldp);
WEFT_DEFINE_AUTO(struct weft_lldp, weft_lldp_free)

/* Adds a report: `lldpcli -f json0 show neighbors` or `-f json` of the system called reporter (a
 * host or a switch), or a list of records {hostname, cmd, devtype, data} with EOS, Junos or NX-OS
 * answers (reporter may be NULL). file is for errors and warnings. A report without any neighbour
 * is none of an error: the system's silence is counted and makes the result partial. Errors:
 * -EINVAL with file:line and field (local interfaces in place of neighbours, a text form, no
 * report), -EFBIG, -ENOMEM. */
int weft_lldp_add(struct weft_lldp *lldp, const char *text, size_t len, const char *file,
                  const char *reporter, struct weft_error *err) __attribute__((warn_unused_result));

/* Makes the fabric of all reports. Left out with a warning: loops, a port with several neighbours
 * (it is not known at which it is), a host's own DPU, rows older than their time to live. The
 * caller owns *ret_fabric. Errors: -EINVAL if no link remains, -EFBIG, -ENOMEM. */
int weft_lldp_finish(const struct weft_lldp *lldp, struct weft_fabric **ret_fabric,
                     struct weft_error *err) __attribute__((warn_unused_result));

#endif
