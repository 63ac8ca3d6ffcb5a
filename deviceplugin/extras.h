/* SPDX-License-Identifier: Apache-2.0 */
/* Looks what there is on the host for the features that the settings name: IMEX channels, GDRCopy,
 * GPUDirect Storage, Mellanox network devices. A few looks into /dev. */
#ifndef WEFT_DEVICEPLUGIN_EXTRAS_H
#define WEFT_DEVICEPLUGIN_EXTRAS_H

#include "deviceplugin/offer.h"
#include "pkg/base/buf.h"
#include "pkg/base/error.h"

/* Does any feature need a look? */
bool weft_extras_wanted(const struct weft_respond_settings *settings);
/* host_root: where the host's root is seen, NULL: "/". The caller owns *ret_extras. missing
 * (nullable) gets what is wanted and not there, with blanks between. -ENOENT: an IMEX channel that
 * is required is missing; -ENOMEM; errors of the root. */
int weft_extras_find(const struct weft_respond_settings *settings, const char *host_root,
                     struct weft_extras *ret_extras, struct weft_buf *missing,
                     struct weft_error *err) __attribute__((warn_unused_result));

#endif
