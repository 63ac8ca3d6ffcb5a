/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of messages: bytes in, checked; arrays of pointers out. */
#include <errno.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/kubelet/codec-internal.h"

int weft_codec_unpack(struct weft_pb_arena *arena, const ProtobufCMessageDescriptor *type,
                      const struct weft_codec_input *input, ProtobufCMessage **ret_message,
                      struct weft_error *err)
{
    if (input->len > WEFT_KUBELET_MESSAGE_MAX) {
        return weft_err_set(err, -E2BIG, WEFT_ERR_GRPC, "%s of %zu bytes, at most %d are read",
                            input->what, input->len, WEFT_KUBELET_MESSAGE_MAX);
    }
    const void *bytes = input->len > 0 ? input->bytes : "";
    *ret_message = protobuf_c_message_unpack(type, &arena->allocator, input->len, bytes);
    if (*ret_message == NULL && arena->starved) {
        return weft_err_nomem(err);
    }
    if (*ret_message == NULL) { /* bad bytes and a full arena look alike: both the sender's doing */
        return weft_err_set(err, -EINVAL, WEFT_ERR_GRPC,
                            "%s is not valid (%zu bytes), or too big unpacked", input->what,
                            input->len);
    }
    return 0;
}

int weft_codec_pack(const ProtobufCMessage *message, struct weft_buf *buf)
{
    const size_t size = protobuf_c_message_get_packed_size(message);
    weft_autofree uint8_t *bytes = weft_malloc(size);
    if (bytes == NULL) {
        buf->status = buf->status < 0 ? buf->status : -ENOMEM; /* not all callers ask again */
        return -ENOMEM;
    }
    (void)protobuf_c_message_pack(message, bytes);
    return weft_buf_append(buf, bytes, size);
}

void *weft_codec_array(struct weft_pb_arena *arena, size_t count, size_t size)
{
    return count <= SIZE_MAX / size ? weft_pb_arena_alloc(arena, count * size) : NULL;
}

void *weft_codec_pointers(struct weft_pb_arena *arena, size_t count)
{
    return weft_codec_array(arena, count, sizeof(void *));
}

static int text_check(const char *text, size_t len, const char *what, struct weft_error *err)
{
    if (len > WEFT_KUBELET_TEXT_MAX) {
        return weft_err_set(err, -E2BIG, WEFT_ERR_GRPC, "%s of %zu bytes, at most %d are read",
                            what, len, WEFT_KUBELET_TEXT_MAX);
    }
    if (!weft_utf8_valid(text, len)) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_GRPC, "%s is not UTF-8 text", what);
    }
    return 0;
}

int weft_codec_text_check(const char *text, const char *what, struct weft_error *err)
{
    return text_check(text, strlen(text), what, err);
}

int weft_codec_ids_in(struct weft_pb_arena *arena, const ProtobufCBinaryData *from, size_t count,
                      struct weft_kubelet_ids *ret_ids, struct weft_error *err)
{
    const char **ids = weft_codec_pointers(arena, count);
    if (ids == NULL) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < count; i++) {
        const char *bytes = from[i].len > 0 ? (const char *)from[i].data : "";
        const int rc = text_check(bytes, from[i].len, "a device id", err);
        if (rc < 0) {
            return rc;
        }
        char *id = weft_pb_arena_alloc(arena, from[i].len + 1);
        if (id == NULL) {
            return weft_err_nomem(err);
        }
        memcpy(id, bytes, from[i].len);
        ids[i] = id;
    }
    *ret_ids = (struct weft_kubelet_ids){.ids = ids, .count = count};
    return 0;
}

char *weft_codec_text_out(const char *text)
{
    union {
        const char *in;
        char *out;
    } pointer = {.in = text};
    return pointer.out;
}

ProtobufCBinaryData *weft_codec_ids_out(struct weft_pb_arena *arena,
                                        const struct weft_kubelet_ids *ids)
{
    ProtobufCBinaryData *out = weft_codec_array(arena, ids->count, sizeof(out[0]));
    for (size_t i = 0; out != NULL && i < ids->count; i++) {
        out[i].len = strlen(ids->ids[i]);
        out[i].data = (uint8_t *)weft_codec_text_out(ids->ids[i]);
    }
    return out;
}

int weft_codec_lists_in(struct weft_pb_arena *arena, Dp__ContainerIds *const *from, size_t count,
                        struct weft_kubelet_id_lists *ret_lists, struct weft_error *err)
{
    if (count > WEFT_KUBELET_CONTAINERS_MAX) {
        return weft_err_set(err, -E2BIG, WEFT_ERR_GRPC, "%zu containers, at most %d are read",
                            count, WEFT_KUBELET_CONTAINERS_MAX);
    }
    struct weft_kubelet_ids *lists = weft_codec_array(arena, count, sizeof(lists[0]));
    if (lists == NULL) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < count; i++) {
        const int rc = weft_codec_ids_in(arena, from[i]->ids, from[i]->n_ids, &lists[i], err);
        if (rc < 0) {
            return rc;
        }
    }
    *ret_lists = (struct weft_kubelet_id_lists){.containers = lists, .count = count};
    return 0;
}

Dp__ContainerIds **weft_codec_lists_out(struct weft_pb_arena *arena,
                                        const struct weft_kubelet_id_lists *lists)
{
    Dp__ContainerIds **out = weft_codec_pointers(arena, lists->count);
    Dp__ContainerIds *items = weft_codec_array(arena, lists->count, sizeof(items[0]));
    if (out == NULL || items == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < lists->count; i++) {
        dp__container_ids__init(&items[i]);
        items[i].n_ids = lists->containers[i].count;
        items[i].ids = weft_codec_ids_out(arena, &lists->containers[i]);
        if (items[i].ids == NULL) {
            return NULL;
        }
        out[i] = &items[i];
    }
    return out;
}
