/* SPDX-License-Identifier: Apache-2.0 */
/* What both sides of the codec share. Not for other folders. */
#ifndef WEFT_KUBELET_CODEC_INTERNAL_H
#define WEFT_KUBELET_CODEC_INTERNAL_H

#include "deviceplugin.pb-c.h"
#include "pkg/base/buf.h"
#include "pkg/kubelet/kubelet.h"
#include "pkg/pb/arena.h"

/* What is to be unpacked, and what to call it in an error. */
struct weft_codec_input {
    const void *bytes;
    size_t len;
    const char *what;
};

/* Unpacks into the arena. -EINVAL, -E2BIG (over WEFT_KUBELET_MESSAGE_MAX). */
int weft_codec_unpack(struct weft_pb_arena *arena, const ProtobufCMessageDescriptor *type,
                      const struct weft_codec_input *input, ProtobufCMessage **ret_message,
                      struct weft_error *err) __attribute__((warn_unused_result));
/* Appends the packed message. buf->status. */
int weft_codec_pack(const ProtobufCMessage *message, struct weft_buf *buf);

/* Zeroed array of count elements of size bytes in the arena; NULL without memory. */
void *weft_codec_array(struct weft_pb_arena *arena, size_t count, size_t size);
/* The same for pointers, as protobuf-c's lists are. */
void *weft_codec_pointers(struct weft_pb_arena *arena, size_t count);

/* The ids, checked. */
int weft_codec_ids_in(struct weft_pb_arena *arena, const ProtobufCBinaryData *from, size_t count,
                      struct weft_kubelet_ids *ret_ids, struct weft_error *err);
/* The ids as protobuf-c wants them (not copied); NULL without memory (count 0: not NULL). */
ProtobufCBinaryData *weft_codec_ids_out(struct weft_pb_arena *arena,
                                        const struct weft_kubelet_ids *ids);
/* Ids by container, both ways. */
int weft_codec_lists_in(struct weft_pb_arena *arena, Dp__ContainerIds *const *from, size_t count,
                        struct weft_kubelet_id_lists *ret_lists, struct weft_error *err);
Dp__ContainerIds **weft_codec_lists_out(struct weft_pb_arena *arena,
                                        const struct weft_kubelet_id_lists *lists);
/* A string field of a message, checked. */
int weft_codec_text_check(const char *text, const char *what, struct weft_error *err);
/* protobuf-c's strings are not const although packing only reads them. */
char *weft_codec_text_out(const char *text);

#endif
