/* SPDX-License-Identifier: Apache-2.0 */
/* What both decoders check alike. */
#ifndef WEFT_KUBE_CODEC_INTERNAL_H
#define WEFT_KUBE_CODEC_INTERNAL_H

#include "pkg/kube/codec.h"

/* An object without a name or resourceVersion is not one: -EBADMSG. */
int weft_kube_check_meta(const struct weft_kube_meta *meta, enum weft_error_domain domain,
                         struct weft_error *err);
/* "ADDED" … to the enum; text may be NULL. -EBADMSG for others. */
int weft_kube_event_type(const char *text, enum weft_kube_event_type *ret,
                         enum weft_error_domain domain, struct weft_error *err);

#endif
