/* SPDX-License-Identifier: Apache-2.0 */
/* LLDP neighbours as a switch fabric: which port of which host is at which switch port. One report
 * a system, added one by one. A switch is known by its system name where the chassis ids that go
 * with it are near each other (NX-OS gives a port's own address), else by both together; hosts are
 * by name. Pure. */
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
 * host or a switch), or a list of records {hostname, cmd, devtype, data} with EOS, Junos, NX-OS or
 * lldpd answers (reporter may be NULL), also several lists one after the other. file is for errors
 * and warnings. A report without any neighbour is no error: the silence is a warning and makes the
 * result partial. Errors: -EINVAL with file:line and field (local interfaces in place of
 * neighbours, a text form, no report, no reporter), -EFBIG, -ENOMEM; what was added before stays.
 */
int weft_lldp_add(struct weft_lldp *lldp, const char *text, size_t len, const char *file,
                  const char *reporter, struct weft_error *err) __attribute__((warn_unused_result));

/* Notes that a report could not be read (why: the error of weft_lldp_add): the result is partial,
 * with the error as a warning. For one bad report among many, which must not stop the others. */
void weft_lldp_lost(struct weft_lldp *lldp, const struct weft_error *why);

/* Makes the fabric of all reports; a system is a switch or a host by the names of its ports and its
 * capabilities. Left out with a warning: a system that hears itself, a host's own DPU, a host that
 * hears a host, a port with several neighbours (it is not known at which it is; the result is then
 * partial). Switches' management ports are left out. lldpd's age of a row is the time since it was
 * first heard, not since it was last: it drops stale rows itself. The caller owns *ret_fabric.
 * Errors: -EINVAL if no cable remains, -EFBIG, -ENOMEM. */
int weft_lldp_finish(const struct weft_lldp *lldp, struct weft_fabric **ret_fabric,
                     struct weft_error *err) __attribute__((warn_unused_result));

#endif
