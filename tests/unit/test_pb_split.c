/* SPDX-License-Identifier: Apache-2.0 */
/* The protobuf splitter, fed by hand-made answers in pieces of every size. */
#include <errno.h>
#include <stdio.h>

#include "pkg/pb/kube-split.h"
#include "tests/unit/fake_pb.h"
#include "tests/unit/unit.h"

/* "I<len>:" and "M<len>:" with the bytes after them, one message after the other. */
struct seen {
    struct weft_buf out;
    int fail_with;
};

static int note(struct seen *seen, const char *kind, const uint8_t *bytes, size_t len)
{
    (void)weft_buf_printf(&seen->out, "%s%zu:", kind, len);
    return weft_buf_append(&seen->out, bytes, len);
}

static int on_item(void *data, const uint8_t *bytes, size_t len, struct weft_error *err)
{
    struct seen *seen = data;
    (void)note(seen, "I", bytes, len);
    return seen->fail_with < 0 ? weft_err_set(err, seen->fail_with, WEFT_ERR_PROTOBUF, "enough")
                               : 0;
}

static int on_metadata(void *data, const uint8_t *bytes, size_t len, struct weft_error *err)
{
    (void)err;
    return note(data, "M", bytes, len);
}

static int split_bytes(enum weft_pb_split_mode mode, const struct weft_buf *in, size_t chunk,
                       struct seen *seen, struct weft_error *err)
{
    weft_buf_init(&seen->out, 1U << 20);
    const struct weft_pb_split_sink sink = {on_item, on_metadata, seen};
    weft_auto(weft_pb_split_free) struct weft_pb_split *split = weft_pb_split_new(mode, 256, &sink);
    if (split == NULL) {
        return -ENOMEM;
    }
    for (size_t at = 0; at < in->len; at += chunk) {
        const size_t n = in->len - at < chunk ? in->len - at : chunk;
        weft_autofree uint8_t *piece = weft_memdup(in->data + at, n);
        if (piece == NULL) {
            return -ENOMEM;
        }
        const int rc = weft_pb_split_feed(split, piece, n, err);
        if (rc < 0) {
            CHECK_INT(weft_pb_split_feed(split, piece, n, NULL), rc);
            CHECK_INT(weft_pb_split_end(split, NULL), rc);
            return rc;
        }
    }
    return weft_pb_split_end(split, err);
}

static void check_split(enum weft_pb_split_mode mode, const struct weft_buf *in,
                        const struct weft_buf *expected)
{
    for (size_t chunk = 1; chunk <= in->len + 1; chunk++) {
        struct seen seen = {0};
        struct weft_error err = {0};
        CHECK_INT(split_bytes(mode, in, chunk, &seen, &err), 0);
        CHECK_INT(seen.out.len, expected->len);
        CHECK(seen.out.len == expected->len &&
              memcmp(weft_buf_text(&seen.out), weft_buf_text(expected), expected->len) == 0);
        weft_buf_done(&seen.out);
    }
}

static void check_refused(enum weft_pb_split_mode mode, const struct weft_buf *in, int code,
                          const char *message)
{
    for (size_t chunk = 1; chunk <= in->len + 1; chunk++) {
        struct seen seen = {0};
        struct weft_error err = {0};
        CHECK_INT(split_bytes(mode, in, chunk, &seen, &err), code);
        CHECK_CONTAINS(err.message, message);
        weft_buf_done(&seen.out);
    }
}

static void buf_of(struct weft_buf *buf, const char *bytes, size_t len)
{
    weft_buf_init(buf, 1U << 16);
    (void)weft_buf_append(buf, bytes, len);
}
#define BUF_OF(buf, literal) buf_of((buf), (literal), sizeof(literal) - 1)

static void test_list(void)
{
    /* by hand: TypeMeta, raw{metadata "\x12\x01" "7", two items, the second empty}, encoding */
    struct weft_buf in;
    struct weft_buf expected;
    BUF_OF(&in, "k8s\0"
                "\x0a\x04\x0a\x02"
                "v1"
                "\x12\x0d"
                "\x0a\x03\x12\x01"
                "7"
                "\x12\x02"
                "ab"
                "\x12\x00"
                "\x18\x05"
                "\x1a\x00\x22\x00");
    BUF_OF(&expected, "M3:\x12\x01"
                      "7I2:abI0:");
    check_split(WEFT_PB_SPLIT_LIST, &in, &expected);
    weft_buf_done(&in);
    weft_buf_done(&expected);
    /* an empty list; fields of all wire types that are not known */
    BUF_OF(&in, "k8s\0"
                "\x12\x00"
                "\x29"
                "12345678"
                "\x35"
                "1234"
                "\x38\xff\xff\x03"
                "\x42\x03xyz");
    BUF_OF(&expected, "");
    check_split(WEFT_PB_SPLIT_LIST, &in, &expected);
    weft_buf_done(&in);
    weft_buf_done(&expected);
}

static void test_list_of_objects(void)
{
    struct weft_buf items[3];
    struct weft_buf in;
    struct weft_buf expected;
    struct weft_buf meta;
    weft_buf_init(&in, 1U << 16);
    weft_buf_init(&expected, 1U << 16);
    weft_buf_init(&meta, 256);
    fake_pb_text(&meta, 1, "");
    fake_pb_text(&meta, 2, "99");
    fake_pb_text(&meta, 3, "next");
    (void)weft_buf_printf(&expected, "M%zu:", meta.len);
    (void)weft_buf_append(&expected, meta.data, meta.len);
    for (size_t i = 0; i < 3; i++) {
        weft_buf_init(&items[i], 1024);
        fake_pb_object(&items[i], i == 0 ? "a" : "node-with-a-longer-name", "5",
                       i == 1 ? NULL : "label");
        (void)weft_buf_printf(&expected, "I%zu:", items[i].len);
        (void)weft_buf_append(&expected, items[i].data, items[i].len);
    }
    fake_pb_list(&in, "99", "next", items, 3);
    check_split(WEFT_PB_SPLIT_LIST, &in, &expected);
    /* every shorter prefix is cut short, wherever it ends (the trailing empty fields may lack) */
    for (size_t len = 0; len < in.len - 4; len++) {
        const struct weft_buf part = {.data = in.data, .len = len};
        struct seen seen = {0};
        CHECK_INT(split_bytes(WEFT_PB_SPLIT_LIST, &part, 7, &seen, NULL), -EBADMSG);
        weft_buf_done(&seen.out);
    }
    for (size_t i = 0; i < 3; i++) {
        weft_buf_done(&items[i]);
    }
    weft_buf_done(&meta);
    weft_buf_done(&in);
    weft_buf_done(&expected);
}

static void test_watch(void)
{
    struct weft_buf in;
    struct weft_buf expected;
    BUF_OF(&in, "\0\0\0\x02xy\0\0\0\x01z");
    BUF_OF(&expected, "I2:xyI1:z");
    check_split(WEFT_PB_SPLIT_WATCH, &in, &expected);
    weft_buf_done(&in);
    BUF_OF(&in, "\0\0\0\x02xy\0\0\0");
    check_refused(WEFT_PB_SPLIT_WATCH, &in, -EBADMSG, "cut short");
    weft_buf_done(&in);
    BUF_OF(&in, "\0\0\0\x02x");
    check_refused(WEFT_PB_SPLIT_WATCH, &in, -EBADMSG, "cut short");
    weft_buf_done(&in);
    BUF_OF(&in, "\0\0\0\0");
    check_refused(WEFT_PB_SPLIT_WATCH, &in, -EBADMSG, "an empty frame");
    weft_buf_done(&in);
    BUF_OF(&in, "\0\0\1\1");
    check_refused(WEFT_PB_SPLIT_WATCH, &in, -EFBIG, "over 256 bytes");
    weft_buf_done(&in);
    weft_buf_done(&expected);
}

static void test_refused(void)
{
    static const struct {
        const char *bytes;
        size_t len;
        int code;
        const char *message;
    } cases[] = {
#define CASE(literal, code, message) {literal, sizeof(literal) - 1, code, message}
        CASE("", -EBADMSG, "cut short"),
        CASE("k8s\0", -EBADMSG, "cut short"), /* no list at all */
        CASE("k8s\1", -EBADMSG, "byte 3: not Kubernetes' protobuf"),
        CASE("{\"items\":[]}", -EBADMSG, "byte 0: not Kubernetes' protobuf"),
        CASE("k8s\0\x12\x04\x12\x02x", -EBADMSG, "cut short"),
        CASE("k8s\0\x12\x02\x12\x05xxxxx", -EBADMSG, "a field is longer than its list"),
        CASE("k8s\0\x12\x01\x12\x05xxxxx", -EBADMSG, "a field that ends outside its list"),
        CASE("k8s\0\x12\x00\x12\x00", -EBADMSG, "a second list"),
        CASE("k8s\0\x12\x04\x0a\x00\x0a\x00", -EBADMSG, "a second ListMeta"),
        CASE("k8s\0\x10\x01", -EBADMSG, "a field of the wrong type"),
        CASE("k8s\0\x12\x02\x10\x01", -EBADMSG, "a field of the wrong type"),
        CASE("k8s\0\x0b", -EBADMSG, "no wire type"),
        CASE("k8s\0\x02\x00", -EBADMSG, "no field number"),
        CASE("k8s\0\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", -EBADMSG, "over 64 bits"),
        CASE("k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", -EBADMSG, "no field number"),
        CASE("k8s\0\x12\xff\xff\xff\xff\x7f\x12\x81\x02", -EFBIG, "over 256 bytes"),
#undef CASE
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
        struct weft_buf in;
        buf_of(&in, cases[i].bytes, cases[i].len);
        check_refused(WEFT_PB_SPLIT_LIST, &in, cases[i].code, cases[i].message);
        weft_buf_done(&in);
    }
}

static void test_sink_and_memory(void)
{
    struct weft_buf in;
    BUF_OF(&in, "\0\0\0\x02xy\0\0\0\x01z");
    struct seen seen = {.fail_with = -ECANCELED};
    CHECK_INT(split_bytes(WEFT_PB_SPLIT_WATCH, &in, 3, &seen, NULL), -ECANCELED);
    CHECK_STR(weft_buf_text(&seen.out), "I2:xy");
    weft_buf_done(&seen.out);
    int failures = 0;
    for (uint64_t nth = 1; nth < 16; nth++) {
        struct seen quiet = {0};
        (void)weft_mem_fail_after(nth);
        const int rc = split_bytes(WEFT_PB_SPLIT_WATCH, &in, 1, &quiet, NULL);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || rc == -ENOMEM);
        failures += rc == -ENOMEM;
        weft_buf_done(&quiet.out);
    }
    CHECK(failures > 2);
    weft_buf_done(&in);
}

static void test_unwrap(void)
{
    const uint8_t *unknown = NULL;
    size_t len = 0;
    CHECK_INT(weft_pb_unwrap((const uint8_t *)"k8s\0abc", 7, &unknown, &len), 0);
    CHECK_INT(len, 3);
    CHECK(memcmp(unknown, "abc", 3) == 0);
    CHECK_INT(weft_pb_unwrap((const uint8_t *)"k8s", 3, &unknown, &len), -EBADMSG);
    CHECK_INT(weft_pb_unwrap((const uint8_t *)"k8sxabc", 7, &unknown, &len), -EBADMSG);
}

WEFT_SUITE(pb_split, {"list", test_list}, {"list_of_objects", test_list_of_objects},
           {"watch", test_watch}, {"refused", test_refused},
           {"sink_and_memory", test_sink_and_memory}, {"unwrap", test_unwrap})
