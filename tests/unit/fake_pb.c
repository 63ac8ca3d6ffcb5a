/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf by hand. */
#include "tests/unit/fake_pb.h"

#include <string.h>

enum { BYTES_MAX = 1 << 20 };

static void put_number(struct weft_buf *out, uint64_t value)
{
    while (value >= 128) {
        (void)weft_buf_putc(out, (char)(value % 128 + 128));
        value /= 128;
    }
    (void)weft_buf_putc(out, (char)value);
}

void fake_pb_varint(struct weft_buf *out, unsigned field, uint64_t value)
{
    put_number(out, field * 8U);
    put_number(out, value);
}

void fake_pb_bytes(struct weft_buf *out, unsigned field, const void *bytes, size_t len)
{
    put_number(out, field * 8U + 2U);
    put_number(out, len);
    (void)weft_buf_append(out, bytes, len);
}

void fake_pb_text(struct weft_buf *out, unsigned field, const char *text)
{
    fake_pb_bytes(out, field, text, strlen(text));
}

static void put_buf(struct weft_buf *out, unsigned field, const struct weft_buf *part)
{
    fake_pb_bytes(out, field, weft_buf_text(part), part->len);
}

static void put_pair(struct weft_buf *out, unsigned field, const char *key, const char *value)
{
    weft_auto(weft_buf_done) struct weft_buf pair;
    weft_buf_init(&pair, BYTES_MAX);
    fake_pb_text(&pair, 1, key);
    fake_pb_text(&pair, 2, value);
    put_buf(out, field, &pair);
}

void fake_pb_object(struct weft_buf *out, const char *name, const char *version, const char *label)
{
    weft_auto(weft_buf_done) struct weft_buf meta;
    weft_buf_init(&meta, BYTES_MAX);
    fake_pb_text(&meta, 1, name);
    fake_pb_text(&meta, 2, ""); /* generateName: not read */
    if (name[0] != '\0') {
        fake_pb_text(&meta, 5, "uid-of-it");
    }
    fake_pb_text(&meta, 6, version);
    fake_pb_varint(&meta, 7, 0);
    if (label != NULL) {
        put_pair(&meta, 11, "l", label);
        put_pair(&meta, 12, "a", "b");
        fake_pb_text(&meta, 17, "managed by somebody");
    }
    put_buf(out, 1, &meta);
}

void fake_pb_end_mark(struct weft_buf *out, const char *version)
{
    weft_auto(weft_buf_done) struct weft_buf meta;
    weft_buf_init(&meta, BYTES_MAX);
    fake_pb_text(&meta, 6, version);
    put_pair(&meta, 12, "k8s.io/initial-events-end", "true");
    put_buf(out, 1, &meta);
}

void fake_pb_status(struct weft_buf *out, int code, const char *reason, const char *message)
{
    fake_pb_bytes(out, 1, "", 0);
    fake_pb_text(out, 2, "Failure");
    fake_pb_text(out, 3, message);
    fake_pb_text(out, 4, reason);
    fake_pb_varint(out, 6, (uint64_t)code);
}

void fake_pb_wrap(struct weft_buf *out, const char *kind, const struct weft_buf *raw)
{
    weft_auto(weft_buf_done) struct weft_buf type;
    weft_buf_init(&type, BYTES_MAX);
    fake_pb_text(&type, 1, "meta.k8s.io/v1");
    fake_pb_text(&type, 2, kind);
    (void)weft_buf_append(out, "k8s\0", 4);
    put_buf(out, 1, &type);
    put_buf(out, 2, raw);
    fake_pb_text(out, 3, "");
    fake_pb_text(out, 4, "");
}

void fake_pb_event(struct weft_buf *out, const char *type, const struct weft_buf *object)
{
    weft_auto(weft_buf_done) struct weft_buf wrapped;
    weft_auto(weft_buf_done) struct weft_buf extension;
    weft_auto(weft_buf_done) struct weft_buf event;
    weft_buf_init(&wrapped, BYTES_MAX);
    weft_buf_init(&extension, BYTES_MAX);
    weft_buf_init(&event, BYTES_MAX);
    fake_pb_wrap(&wrapped, "PartialObjectMetadata", object);
    put_buf(&extension, 1, &wrapped);
    fake_pb_text(&event, 1, type);
    put_buf(&event, 2, &extension);
    const char length[4] = {(char)(event.len >> 24), (char)(event.len >> 16),
                            (char)(event.len >> 8), (char)event.len};
    (void)weft_buf_append(out, length, 4);
    (void)weft_buf_append(out, weft_buf_text(&event), event.len);
}

void fake_pb_list(struct weft_buf *out, const char *version, const char *next,
                  const struct weft_buf *items, size_t count)
{
    weft_auto(weft_buf_done) struct weft_buf meta;
    weft_auto(weft_buf_done) struct weft_buf list;
    weft_buf_init(&meta, BYTES_MAX);
    weft_buf_init(&list, BYTES_MAX);
    fake_pb_text(&meta, 1, "");
    fake_pb_text(&meta, 2, version);
    fake_pb_text(&meta, 3, next);
    put_buf(&list, 1, &meta);
    for (size_t i = 0; i < count; i++) {
        put_buf(&list, 2, &items[i]);
    }
    fake_pb_wrap(out, "PartialObjectMetadataList", &list);
}
