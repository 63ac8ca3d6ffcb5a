/* SPDX-License-Identifier: Apache-2.0 */
/* UFM's REST answers as a switch fabric. Written from its documents and saved answers; not yet run
 * against a live UFM. Pages and resources are added one by one. Pure. */
#ifndef WEFT_FABRIC_UFM_H
#define WEFT_FABRIC_UFM_H

#include <stddef.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_fabric;
struct weft_ufm;

enum { WEFT_UFM_TEXT_MAX = 256 << 20 }; /* one answer or page */

enum weft_ufm_resource {
    WEFT_UFM_LINKS,   /* /ufmRest/resources/links: the cables */
    WEFT_UFM_PORTS,   /* …/ports: cables too, with states; names, kinds */
    WEFT_UFM_SYSTEMS, /* …/systems: names, kinds, states */
    WEFT_UFM_VPORTS,  /* …/vports: virtual ports, which are no ports of a cable */
    WEFT_UFM_RESOURCE_COUNT
};

/* NULL without memory. */
struct weft_ufm *weft_ufm_new(const char *source) __attribute__((warn_unused_result));
void weft_ufm_free(struct weft_ufm *ufm);
WEFT_DEFINE_AUTO(struct weft_ufm, weft_ufm_free)

/* Adds an answer (a list; or a page with the list in "data" or "items"). GUIDs are read with and
 * without 0x, numbers also from strings; a row whose name carries another GUID than its fields
 * counts by its fields, with a warning; a row that cannot be read is warned about and makes the
 * result partial. *ret_rows (may be NULL): rows in the answer, for paging. Errors: -EINVAL with
 * file:line for what is no such answer, -EFBIG, -ENOMEM. */
int weft_ufm_add(struct weft_ufm *ufm, enum weft_ufm_resource resource, const char *text,
                 size_t len, const char *file, size_t *ret_rows, struct weft_error *err)
    __attribute__((warn_unused_result));

/* Which resource a saved answer is of, by the fields of its first row: *ret_resource. -EINVAL if it
 * is of none, or empty. */
int weft_ufm_guess(const char *text, size_t len, const char *file,
                   enum weft_ufm_resource *ret_resource, struct weft_error *err)
    __attribute__((warn_unused_result));

/* The fabric of all that was added. Left out: ports that are not up, devices that are not active
 * (UFM remembers removed ones), virtual ports. The caller owns *ret_fabric. Errors: -EINVAL if no
 * switch or no link remains, -EFBIG, -ENOMEM. */
int weft_ufm_finish(const struct weft_ufm *ufm, struct weft_fabric **ret_fabric,
                    struct weft_error *err) __attribute__((warn_unused_result));

#endif
