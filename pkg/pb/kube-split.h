/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts the Kubernetes API's protobuf streams into single messages, which protobuf-c then unpacks
 * one at a time: the items of a list, or the frames of a watch. The counterpart of
 * pkg/json/split.h, with the same rules. No I/O; one thread at a time.
 *
 * The format is Kubernetes' own: a list is "k8s\0" and an Unknown message whose field 2 holds the
 * list (field 1 its ListMeta, field 2 each item); a watch is a row of frames, each a length in four
 * bytes (big-endian) and a WatchEvent. */
#ifndef WEFT_PB_KUBE_SPLIT_H
#define WEFT_PB_KUBE_SPLIT_H

#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_pb_split;

enum weft_pb_split_mode { WEFT_PB_SPLIT_LIST, WEFT_PB_SPLIT_WATCH, WEFT_PB_SPLIT_MODE_COUNT };

/* Each gets the bytes of one message, borrowed during the call. A negative return ends the stream.
 * on_metadata (LIST only, at most once) may be NULL. */
struct weft_pb_split_sink {
    int (*on_item)(void *data, const uint8_t *bytes, size_t len, struct weft_error *err);
    int (*on_metadata)(void *data, const uint8_t *bytes, size_t len, struct weft_error *err);
    void *data;
};

/* item_max: the largest message in bytes. NULL without memory. */
struct weft_pb_split *weft_pb_split_new(enum weft_pb_split_mode mode, size_t item_max,
                                        const struct weft_pb_split_sink *sink)
    __attribute__((warn_unused_result));
void weft_pb_split_free(struct weft_pb_split *split);
WEFT_DEFINE_AUTO(struct weft_pb_split, weft_pb_split_free)

/* Errors, all final: -EBADMSG for what is not such a stream (with the byte's offset), -EFBIG for a
 * message over item_max, -ENOMEM, the sink's. */
int weft_pb_split_feed(struct weft_pb_split *split, const uint8_t *bytes, size_t len,
                       struct weft_error *err) __attribute__((warn_unused_result));
/* 0 if the stream is complete, else -EBADMSG or the earlier error. */
int weft_pb_split_end(struct weft_pb_split *split, struct weft_error *err)
    __attribute__((warn_unused_result));

/* What an object in a watch event or a small answer is wrapped in: "k8s\0" and Unknown. Gives the
 * bytes of Unknown (to unpack with kubemeta.proto), or -EBADMSG. */
int weft_pb_unwrap(const uint8_t *bytes, size_t len, const uint8_t **ret_unknown, size_t *ret_len);

#endif
