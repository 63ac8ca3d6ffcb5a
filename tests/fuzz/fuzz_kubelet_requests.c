/* SPDX-License-Identifier: Apache-2.0 */
/* What a peer sends to the plugin's socket. The first byte chooses the message; the rest are its
 * bytes. Property: a message that decodes encodes to bytes that decode to the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/kubelet/kubelet.h"
#include "pkg/pb/arena.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void same_ids(const struct weft_kubelet_ids *a, const struct weft_kubelet_ids *b)
{
    require(a->count == b->count);
    for (size_t i = 0; i < a->count; i++) {
        require(strcmp(a->ids[i], b->ids[i]) == 0);
    }
}

static void check_preferred(struct weft_pb_arena *arena, const uint8_t *bytes, size_t len)
{
    struct weft_kubelet_preferred_request a = {0}, b = {0};
    if (weft_kubelet_decode_preferred(arena, bytes, len, &a, NULL) < 0) {
        return;
    }
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, WEFT_KUBELET_MESSAGE_MAX);
    if (weft_kubelet_peer_encode_preferred(arena, &a, &buf) == 0 &&
        weft_kubelet_decode_preferred(arena, weft_buf_text(&buf), buf.len, &b, NULL) == 0) {
        require(a.count == b.count);
        for (size_t i = 0; i < a.count; i++) {
            same_ids(&a.containers[i].available, &b.containers[i].available);
            same_ids(&a.containers[i].required, &b.containers[i].required);
            require(a.containers[i].size == b.containers[i].size);
        }
    }
}

static void check_allocate(struct weft_pb_arena *arena, const uint8_t *bytes, size_t len)
{
    struct weft_kubelet_id_lists a = {0}, b = {0};
    if (weft_kubelet_decode_allocate(arena, bytes, len, &a, NULL) < 0) {
        return;
    }
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, WEFT_KUBELET_MESSAGE_MAX);
    if (weft_kubelet_peer_encode_allocate(arena, &a, &buf) == 0 &&
        weft_kubelet_decode_allocate(arena, weft_buf_text(&buf), buf.len, &b, NULL) == 0) {
        require(a.count == b.count);
        for (size_t i = 0; i < a.count; i++) {
            same_ids(&a.containers[i], &b.containers[i]);
        }
    }
}

static void check_pre_start(struct weft_pb_arena *arena, const uint8_t *bytes, size_t len)
{
    struct weft_kubelet_ids a = {0}, b = {0};
    if (weft_kubelet_decode_pre_start(arena, bytes, len, &a, NULL) < 0) {
        return;
    }
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, WEFT_KUBELET_MESSAGE_MAX);
    if (weft_kubelet_peer_encode_pre_start(arena, &a, &buf) == 0 &&
        weft_kubelet_decode_pre_start(arena, weft_buf_text(&buf), buf.len, &b, NULL) == 0) {
        same_ids(&a, &b);
    }
}

static void check_notice(struct weft_pb_arena *arena, const uint8_t *bytes, size_t len)
{
    struct weft_kubelet_notice a = {0}, b = {0};
    if (weft_kubelet_decode_notice(arena, bytes, len, &a, NULL) < 0) {
        return;
    }
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, WEFT_KUBELET_MESSAGE_MAX);
    weft_kubelet_peer_encode_notice(&a, &buf);
    if (buf.status == 0 &&
        weft_kubelet_decode_notice(arena, weft_buf_text(&buf), buf.len, &b, NULL) == 0) {
        require(a.registered == b.registered && strcmp(a.error, b.error) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, 4U << 20);
    switch (data[0] % 4) {
    case 0:
        check_preferred(&arena, data + 1, size - 1);
        break;
    case 1:
        check_allocate(&arena, data + 1, size - 1);
        break;
    case 2:
        check_pre_start(&arena, data + 1, size - 1);
        break;
    default:
        check_notice(&arena, data + 1, size - 1);
        break;
    }
    return 0;
}
