/* SPDX-License-Identifier: Apache-2.0 */
/* Building query strings. Values only. */
#ifndef WEFT_KUBE_PATH_H
#define WEFT_KUBE_PATH_H

struct weft_buf;

/* Both append; check the buffer's status once at the end. */
void weft_kube_put_encoded(struct weft_buf *buf, const char *text);
/* "[&]name=<value, percent-encoded>"; name is used as it is. */
void weft_kube_put_param(struct weft_buf *query, const char *name, const char *value);

#endif
