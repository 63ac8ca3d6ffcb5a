/* SPDX-License-Identifier: Apache-2.0 */
/* Objects, list metadata, events and statuses from protobuf and JSON: both give the same. */
#include <errno.h>
#include <stdio.h>

#include "pkg/json/json.h"
#include "pkg/kube/codec.h"
#include "pkg/pb/arena.h"
#include "tests/unit/fake_pb.h"
#include "tests/unit/unit.h"

static const uint8_t *bytes_of(const struct weft_buf *buf)
{
    return (const uint8_t *)weft_buf_text(buf);
}

static void test_meta_protobuf(void)
{
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, 1U << 20);
    weft_auto(weft_buf_done) struct weft_buf object;
    weft_buf_init(&object, 4096);
    fake_pb_object(&object, "node-1", "77", "leaf-3");
    struct weft_kube_meta meta;
    CHECK_INT(weft_kube_unpack_meta(&arena, bytes_of(&object), object.len, true, &meta, NULL), 0);
    CHECK_STR(meta.name, "node-1");
    CHECK_STR(meta.ns, "");
    CHECK_STR(meta.uid, "uid-of-it");
    CHECK_STR(meta.resource_version, "77");
    CHECK(!meta.deleting);
    CHECK_INT(meta.label_count, 1);
    CHECK_STR(weft_kube_meta_label(&meta, "l"), "leaf-3");
    CHECK(weft_kube_meta_label(&meta, "L") == NULL);
    CHECK_STR(weft_kube_meta_annotation(&meta, "a"), "b");
    CHECK_INT(weft_kube_unpack_meta(&arena, bytes_of(&object), object.len, false, &meta, NULL), 0);
    CHECK_INT(meta.annotation_count, 0);
    CHECK(weft_kube_meta_annotation(&meta, "a") == NULL);
}

/* deletionTimestamp is field 9, a Time; namespace field 3. */
static void test_meta_fields(void)
{
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, 1U << 20);
    weft_auto(weft_buf_done) struct weft_buf meta_bytes;
    weft_auto(weft_buf_done) struct weft_buf object;
    weft_buf_init(&meta_bytes, 4096);
    weft_buf_init(&object, 4096);
    fake_pb_text(&meta_bytes, 1, "p");
    fake_pb_text(&meta_bytes, 3, "ns");
    fake_pb_text(&meta_bytes, 6, "1");
    fake_pb_bytes(&meta_bytes, 9, "\x08\x05", 2);
    fake_pb_bytes(&object, 1, meta_bytes.data, meta_bytes.len);
    struct weft_kube_meta meta;
    CHECK_INT(weft_kube_unpack_meta(&arena, bytes_of(&object), object.len, true, &meta, NULL), 0);
    CHECK(meta.deleting);
    CHECK_STR(meta.ns, "ns");
    CHECK_STR(meta.uid, "");
}

static void test_meta_json(void)
{
    static const char text[] =
        "{\"metadata\":{\"name\":\"node-1\",\"uid\":\"u\",\"resourceVersion\":\"77\","
        "\"namespace\":\"ns\",\"deletionTimestamp\":\"2026-11-30T12:00:00Z\","
        "\"labels\":{\"l\":\"leaf-3\",\"m\":\"\"},\"annotations\":{\"a\":\"b\"}}}";
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, 1U << 20);
    weft_auto(weft_json_free) struct weft_json *doc = NULL;
    CHECK_INT(weft_json_parse(text, strlen(text), "t", &doc, NULL), 0);
    struct weft_kube_meta meta;
    CHECK_INT(weft_kube_read_meta(&arena, doc, true, &meta, NULL), 0);
    CHECK_STR(meta.name, "node-1");
    CHECK_STR(meta.ns, "ns");
    CHECK(meta.deleting);
    CHECK_INT(meta.label_count, 2);
    CHECK_STR(weft_kube_meta_label(&meta, "m"), "");
    CHECK_STR(weft_kube_meta_annotation(&meta, "a"), "b");
    CHECK_INT(weft_kube_read_meta(&arena, doc, false, &meta, NULL), 0);
    CHECK_INT(meta.annotation_count, 0);
}

static void test_bad_objects(void)
{
    static const char *const bad_json[] = {
        "{}", "{\"metadata\":[]}", "{\"metadata\":{\"name\":\"a\"}}",
        "{\"metadata\":{\"resourceVersion\":\"1\"}}",
        "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\",\"labels\":{\"l\":1}}}"};
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, 1U << 20);
    struct weft_kube_meta meta;
    for (size_t i = 0; i < WEFT_ARRAY_LEN(bad_json); i++) {
        weft_auto(weft_json_free) struct weft_json *doc = NULL;
        CHECK_INT(weft_json_parse(bad_json[i], strlen(bad_json[i]), "t", &doc, NULL), 0);
        struct weft_error err = {0};
        CHECK_INT(weft_kube_read_meta(&arena, doc, true, &meta, &err), -EBADMSG);
        CHECK(err.message[0] != '\0');
    }
    CHECK_INT(weft_kube_unpack_meta(&arena, (const uint8_t *)"", 0, true, &meta, NULL), -EBADMSG);
    CHECK_INT(weft_kube_unpack_meta(&arena, (const uint8_t *)"\x0a\x05x", 3, true, &meta, NULL),
              -EBADMSG);
}

/* Thousands of empty labels: 4 bytes each on the wire, far more unpacked. The cap holds. */
static void test_cap(void)
{
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, 64U << 10);
    weft_auto(weft_buf_done) struct weft_buf meta_bytes;
    weft_auto(weft_buf_done) struct weft_buf object;
    weft_buf_init(&meta_bytes, 1U << 20);
    weft_buf_init(&object, 1U << 20);
    fake_pb_text(&meta_bytes, 1, "n");
    fake_pb_text(&meta_bytes, 6, "1");
    for (int i = 0; i < 5000; i++) {
        fake_pb_bytes(&meta_bytes, 11, "", 0);
    }
    fake_pb_bytes(&object, 1, meta_bytes.data, meta_bytes.len);
    struct weft_kube_meta meta;
    struct weft_error err = {0};
    CHECK_INT(weft_kube_unpack_meta(&arena, bytes_of(&object), object.len, true, &meta, &err),
              -EFBIG);
    CHECK_CONTAINS(err.message, "takes over 65536 bytes");
    CHECK(arena.used <= arena.max);
}

static void test_list_meta(void)
{
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, 1U << 20);
    struct weft_kube_list_meta meta;
    CHECK_INT(weft_kube_unpack_list_meta(&arena,
                                         (const uint8_t *)"\x12\x01"
                                                          "7\x1a\x01"
                                                          "c\x20\x05",
                                         8, &meta, NULL),
              0);
    CHECK_STR(meta.resource_version, "7");
    CHECK_STR(meta.continue_token, "c");
    CHECK_INT(weft_kube_unpack_list_meta(&arena, (const uint8_t *)"", 0, &meta, NULL), 0);
    CHECK_STR(meta.continue_token, "");
    CHECK_INT(weft_kube_unpack_list_meta(&arena, (const uint8_t *)"\x12\x05", 2, &meta, NULL),
              -EBADMSG);
}

/* The frame without its length. */
static int unpack(struct weft_pb_arena *arena, const char *type, const struct weft_buf *object,
                  struct weft_kube_watch_event *ret)
{
    weft_auto(weft_buf_done) struct weft_buf frame;
    weft_buf_init(&frame, 1U << 16);
    fake_pb_event(&frame, type, object);
    return weft_kube_unpack_event(arena, bytes_of(&frame) + 4, frame.len - 4, true, ret, NULL);
}

static void test_events_protobuf(void)
{
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, 1U << 20);
    struct weft_buf object;
    struct weft_buf mark;
    struct weft_buf status;
    weft_buf_init(&object, 4096);
    weft_buf_init(&mark, 4096);
    weft_buf_init(&status, 4096);
    fake_pb_object(&object, "n", "8", "x");
    fake_pb_object(&mark, "", "9", NULL);
    fake_pb_status(&status, 410, "Expired", "too old resource version");
    struct weft_kube_watch_event event;
    CHECK_INT(unpack(&arena, "DELETED", &object, &event), 0);
    CHECK_INT(event.type, WEFT_KUBE_EVENT_DELETED);
    CHECK_STR(event.meta.name, "n");
    CHECK_INT(unpack(&arena, "BOOKMARK", &mark, &event), 0);
    CHECK_INT(event.type, WEFT_KUBE_EVENT_BOOKMARK);
    CHECK_STR(event.meta.resource_version, "9");
    CHECK_INT(unpack(&arena, "ERROR", &status, &event), 0);
    CHECK_INT(event.status.code, 410);
    CHECK_STR(event.status.reason, "Expired");
    CHECK_STR(event.status.message, "too old resource version");
    CHECK_INT(unpack(&arena, "ADDED", &mark, &event), -EBADMSG); /* an object without a name */
    CHECK_INT(unpack(&arena, "RENAMED", &object, &event), -EBADMSG);
    CHECK_INT(weft_kube_unpack_event(&arena,
                                     (const uint8_t *)"\x0a\x05"
                                                      "ADDED",
                                     7, true, &event, NULL),
              -EBADMSG); /* no object */
    weft_buf_done(&object);
    weft_buf_done(&mark);
    weft_buf_done(&status);
}

static void test_events_json(void)
{
    static const struct {
        const char *text;
        int rc;
        enum weft_kube_event_type type;
    } cases[] = {
        {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"n\",\"resourceVersion\":\"1\"}}"
         "}",
         0, WEFT_KUBE_EVENT_ADDED},
        {"{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\"}}}", 0,
         WEFT_KUBE_EVENT_BOOKMARK},
        {"{\"type\":\"ERROR\",\"object\":{\"code\":410,\"reason\":\"Gone\"}}", 0,
         WEFT_KUBE_EVENT_ERROR},
        {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\"}}}", -EBADMSG, 0},
        {"{\"type\":\"ADDED\"}", -EBADMSG, 0},
        {"{\"type\":1,\"object\":{}}", -EBADMSG, 0},
        {"{\"object\":{}}", -EBADMSG, 0},
    };
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, 1U << 20);
    for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
        weft_auto(weft_json_free) struct weft_json *doc = NULL;
        CHECK_INT(weft_json_parse(cases[i].text, strlen(cases[i].text), "t", &doc, NULL), 0);
        struct weft_kube_watch_event event;
        CHECK_INT(weft_kube_read_event(&arena, doc, true, &event, NULL), cases[i].rc);
        if (cases[i].rc == 0) {
            CHECK_INT(event.type, cases[i].type);
        }
    }
}

WEFT_SUITE(kube_codec, {"meta_protobuf", test_meta_protobuf}, {"meta_fields", test_meta_fields},
           {"meta_json", test_meta_json}, {"bad_objects", test_bad_objects}, {"cap", test_cap},
           {"list_meta", test_list_meta}, {"events_protobuf", test_events_protobuf},
           {"events_json", test_events_json})
