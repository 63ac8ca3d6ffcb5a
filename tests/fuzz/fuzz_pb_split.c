/* SPDX-License-Identifier: Apache-2.0 */
/* The protobuf stream splitter: how the bytes are cut into feeds changes neither the messages nor
 * the outcome. Input: a byte for the mode, a byte that seeds the cuts, then the stream. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/pb/kube-split.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_item(void *data, const uint8_t *bytes, size_t len, struct weft_error *err)
{
    (void)err;
    (void)weft_buf_printf(data, "I%zu:", len);
    return weft_buf_append(data, bytes, len);
}

static int on_metadata(void *data, const uint8_t *bytes, size_t len, struct weft_error *err)
{
    (void)err;
    (void)weft_buf_printf(data, "M%zu:", len);
    return weft_buf_append(data, bytes, len);
}

/* Feeds in cuts of 1 + up to step bytes; step 0 = all at once. */
static int run(enum weft_pb_split_mode mode, const uint8_t *bytes, size_t len, unsigned step,
               struct weft_buf *out)
{
    const struct weft_pb_split_sink sink = {on_item, on_metadata, out};
    struct weft_pb_split *split = weft_pb_split_new(mode, 4096, &sink);
    int rc = 0;
    uint32_t random = step;
    for (size_t at = 0; rc == 0 && at < len;) {
        random = random * 1664525U + 1013904223U;
        size_t n = step == 0 ? len : 1 + (random >> 16) % step;
        n = n > len - at ? len - at : n;
        rc = weft_pb_split_feed(split, bytes + at, n, NULL);
        at += n;
    }
    rc = rc == 0 ? weft_pb_split_end(split, NULL) : rc;
    weft_pb_split_free(split);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    const enum weft_pb_split_mode mode =
        (data[0] & 1U) != 0 ? WEFT_PB_SPLIT_WATCH : WEFT_PB_SPLIT_LIST;
    const unsigned steps[] = {0, 1, 2U + data[1]};
    struct weft_buf out[3];
    int rc[3];
    for (int i = 0; i < 3; i++) {
        weft_buf_init(&out[i], 32 * size + 64);
        rc[i] = run(mode, data + 2, size - 2, steps[i], &out[i]);
    }
    for (int i = 1; i < 3; i++) {
        if (rc[i] != rc[0] || out[i].len != out[0].len ||
            memcmp(weft_buf_text(&out[i]), weft_buf_text(&out[0]), out[0].len) != 0) {
            abort();
        }
    }
    for (int i = 0; i < 3; i++) {
        weft_buf_done(&out[i]);
    }
    return 0;
}
