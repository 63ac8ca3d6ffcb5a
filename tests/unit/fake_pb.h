/* SPDX-License-Identifier: Apache-2.0 */
/* Kubernetes' protobuf written by hand, byte for byte from its field numbers, so that tests do not
 * depend on the generated code they test. */
#ifndef WEFT_TESTS_UNIT_FAKE_PB_H
#define WEFT_TESTS_UNIT_FAKE_PB_H

#include "pkg/base/buf.h"

/* A varint field, and a length-delimited one. */
void fake_pb_varint(struct weft_buf *out, unsigned field, uint64_t value);
void fake_pb_bytes(struct weft_buf *out, unsigned field, const void *bytes, size_t len);
void fake_pb_text(struct weft_buf *out, unsigned field, const char *text);

/* PartialObjectMetadata of an object with a label "l" = label (none if NULL), an annotation
 * "a" = "b" and something in managedFields. name "": only the resourceVersion, as in a bookmark. */
void fake_pb_object(struct weft_buf *out, const char *name, const char *version, const char *label);
/* The object of the bookmark that ends a streamed list. */
void fake_pb_end_mark(struct weft_buf *out, const char *version);
/* A Status of an ERROR event. */
void fake_pb_status(struct weft_buf *out, int code, const char *reason, const char *message);
/* "k8s\0" and Unknown around raw. */
void fake_pb_wrap(struct weft_buf *out, const char *kind, const struct weft_buf *raw);
/* A watch frame: length, WatchEvent, wrapped object. */
void fake_pb_event(struct weft_buf *out, const char *type, const struct weft_buf *object);
/* A whole list answer; items are PartialObjectMetadata messages. next "": the last page. */
void fake_pb_list(struct weft_buf *out, const char *version, const char *next,
                  const struct weft_buf *items, size_t count);

#endif
