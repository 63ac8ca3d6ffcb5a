/* SPDX-License-Identifier: Apache-2.0 */
/* The codec against bytes written by hand from the protocol's field numbers, so that neither side
 * of ours can be wrong in the same way; refusals and caps; and every allocation that fails. */
#include <errno.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/kubelet/kubelet.h"
#include "pkg/pb/arena.h"
#include "tests/unit/unit.h"

static void check_bytes(const struct weft_buf *buf, const void *bytes, size_t len)
{
    CHECK_INT(buf->status, 0);
    CHECK_INT(buf->len, len);
    CHECK(buf->len == len && memcmp(weft_buf_text(buf), bytes, len) == 0);
}
#define CHECK_BYTES(buf, text) check_bytes((buf), (text), sizeof(text) - 1)

static void registration_is_on_the_wire_as_the_kubelet_reads_it(void)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1000);
    weft_kubelet_encode_registration(
        &(struct weft_kubelet_registration){.version = "v1beta1",
                                            .endpoint = "a.sock",
                                            .resource = "x.com/gpu",
                                            .options = {.preferred_allocation = true}},
        &buf);
    /* 1: version, 2: endpoint, 3: resource_name, 4: options {2: true} */
    CHECK_BYTES(&buf, "\x0a\x07v1beta1\x12\x06"
                      "a.sock\x1a\x09x.com/gpu\x22\x02\x10\x01");
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, 1U << 16);
    struct weft_kubelet_registration r = {0};
    CHECK_INT(weft_kubelet_peer_decode_registration(&arena, weft_buf_text(&buf), buf.len, &r, NULL),
              0);
    CHECK_STR(r.endpoint, "a.sock");
    CHECK(r.options.preferred_allocation && !r.options.pre_start_required);
}

static void options_and_lists_are_on_the_wire(void)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1000);
    weft_kubelet_encode_options(&(struct weft_kubelet_options){true, true}, &buf);
    CHECK_BYTES(&buf, "\x08\x01\x10\x01");
    weft_buf_reset(&buf);
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, 1U << 16);
    const struct weft_kubelet_device devices[] = {{"a", true, -1}, {"b", false, 0}, {"c", true, 3}};
    CHECK_INT(weft_kubelet_encode_devices(&arena, &(struct weft_kubelet_devices){devices, 3}, &buf),
              0);
    /* 1: Device {1: id, 2: health, 3: TopologyInfo {1: NUMANode {1: id, absent when 0}}}; a device
     * of unknown node has no field 3 at all */
    CHECK_BYTES(&buf, "\x0a\x0c\x0a\x01"
                      "a\x12\x07Healthy"
                      "\x0a\x12\x0a\x01"
                      "b\x12\x09Unhealthy\x1a\x02\x0a\x00"
                      "\x0a\x12\x0a\x01"
                      "c\x12\x07Healthy\x1a\x04\x0a\x02\x08\x03");
    struct weft_kubelet_devices back = {0};
    CHECK_INT(weft_kubelet_peer_decode_devices(&arena, weft_buf_text(&buf), buf.len, &back, NULL),
              0);
    CHECK_INT(back.count, 3);
    CHECK_STR(back.devices[1].id, "b");
    CHECK(!back.devices[1].healthy && back.devices[2].healthy);
    CHECK_INT(back.devices[0].numa_node, -1);
    CHECK_INT(back.devices[1].numa_node, 0);
    CHECK_INT(back.devices[2].numa_node, 3);
}

static void requests_are_read(void)
{
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, 1U << 16);
    struct weft_kubelet_preferred_request p = {0};
    static const char preferred[] = "\x0a\x0b\x0a\x01"
                                    "a\x0a\x01"
                                    "b\x12\x01"
                                    "b\x18\x02";
    CHECK_INT(weft_kubelet_decode_preferred(&arena, preferred, sizeof(preferred) - 1, &p, NULL), 0);
    CHECK_INT(p.count, 1);
    CHECK_INT(p.containers[0].available.count, 2);
    CHECK_STR(p.containers[0].available.ids[1], "b");
    CHECK_STR(p.containers[0].required.ids[0], "b");
    CHECK_INT(p.containers[0].size, 2);
    struct weft_kubelet_id_lists a = {0};
    static const char allocate[] = "\x0a\x03\x0a\x01z\x0a\x00";
    CHECK_INT(weft_kubelet_decode_allocate(&arena, allocate, sizeof(allocate) - 1, &a, NULL), 0);
    CHECK_INT(a.count, 2);
    CHECK_STR(a.containers[0].ids[0], "z");
    CHECK_INT(a.containers[1].count, 0);
    struct weft_kubelet_ids ids = {0};
    CHECK_INT(weft_kubelet_decode_pre_start(&arena, "\x0a\x01q", 3, &ids, NULL), 0);
    CHECK_STR(ids.ids[0], "q");
    CHECK_INT(weft_kubelet_decode_allocate(&arena, NULL, 0, &a, NULL), 0); /* an empty message */
    CHECK_INT(a.count, 0);
}

static void the_plugin_watcher_is_answered(void)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1000);
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, 1U << 16);
    weft_kubelet_encode_plugin_info("x.com/gpu", &buf);
    /* 1: type, 2: name, 3: endpoint (empty: not on the wire), 4: supported_versions */
    CHECK_BYTES(&buf, "\x0a\x0c"
                      "DevicePlugin\x12\x09x.com/gpu\x22\x07v1beta1");
    struct weft_kubelet_plugin_info info = {0};
    CHECK_INT(
        weft_kubelet_peer_decode_plugin_info(&arena, weft_buf_text(&buf), buf.len, &info, NULL), 0);
    CHECK_STR(info.name, "x.com/gpu");
    CHECK_STR(info.endpoint, "");
    CHECK_STR(info.version, "v1beta1");
    struct weft_kubelet_notice notice = {0};
    CHECK_INT(weft_kubelet_decode_notice(&arena, "\x08\x01", 2, &notice, NULL), 0);
    CHECK(notice.registered);
    CHECK_STR(notice.error, "");
    CHECK_INT(weft_kubelet_decode_notice(&arena, "\x12\x03why", 5, &notice, NULL), 0);
    CHECK(!notice.registered);
    CHECK_STR(notice.error, "why");
    CHECK_INT(weft_kubelet_decode_notice(&arena, NULL, 0, &notice, NULL), 0);
    CHECK_INT(weft_kubelet_decode_notice(&arena, "\x12\x05why", 5, &notice, NULL), -EINVAL);
    CHECK_INT(weft_kubelet_decode_notice(&arena, "\x12\x02\xff\xfe", 4, &notice, NULL), -EINVAL);
    weft_buf_reset(&buf);
    weft_kubelet_peer_encode_notice(&(struct weft_kubelet_notice){.registered = true, .error = "e"},
                                    &buf);
    CHECK_BYTES(&buf, "\x08\x01\x12\x01"
                      "e");
}

/* Without memory for the packed bytes the buffer says so: an empty message would be believed. */
static void what_cannot_be_packed_is_no_message(void)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1000);
    (void)weft_mem_fail_after(1);
    weft_kubelet_encode_options(&(struct weft_kubelet_options){true, true}, &buf);
    (void)weft_mem_fail_after(0);
    CHECK_INT(buf.status, -ENOMEM);
    weft_buf_reset(&buf);
    (void)weft_mem_fail_after(1);
    weft_kubelet_encode_registration(
        &(struct weft_kubelet_registration){.version = "v", .endpoint = "e", .resource = "r"},
        &buf);
    (void)weft_mem_fail_after(0);
    CHECK_INT(buf.status, -ENOMEM);
}

static int decode_allocate(const void *bytes, size_t len, struct weft_error *err)
{
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, WEFT_KUBELET_ARENA_MAX);
    struct weft_kubelet_id_lists a = {0};
    return weft_kubelet_decode_allocate(&arena, bytes, len, &a, err);
}

static void bad_requests_are_refused(void)
{
    struct weft_error err = {0};
    CHECK_INT(decode_allocate("\x0a\x07\x0a\x05GPU\x00x", 9, &err), -EINVAL); /* NUL inside */
    CHECK_CONTAINS(err.message, "not UTF-8");
    CHECK_INT(decode_allocate("\x0a\x04\x0a\x02\xff\xfe", 6, &err), -EINVAL);
    CHECK_INT(decode_allocate("\x0a\x09\x0a\x01z", 5, &err), -EINVAL); /* cut */
    CHECK_CONTAINS(err.message, "Allocate request is not valid (5 bytes)");
    CHECK_INT(decode_allocate("\x0b", 1, &err), -EINVAL); /* groups do not exist */
    const size_t big = WEFT_KUBELET_MESSAGE_MAX + 1;
    weft_autofree char *bytes = weft_calloc(1, big);
    CHECK_INT(decode_allocate(bytes, big, &err), -E2BIG);
    for (size_t i = 0; i + 1 < 2000; i += 2) { /* 1,000 empty containers */
        bytes[i] = '\x0a';
        bytes[i + 1] = 0;
    }
    CHECK_INT(decode_allocate(bytes, 2000, &err), -E2BIG);
    CHECK_CONTAINS(err.message, "1000 containers");
}

/* 1 MiB of empty messages would take 25 MB to unpack; the arena says where it ends. */
static void unpacking_has_a_cap(void)
{
    weft_autofree char *bytes = weft_calloc(1, WEFT_KUBELET_MESSAGE_MAX);
    for (size_t i = 0; i < WEFT_KUBELET_MESSAGE_MAX; i += 2) {
        bytes[i] = '\x0a';
    }
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, 1U << 20);
    struct weft_kubelet_id_lists a = {0};
    CHECK_INT(weft_kubelet_decode_allocate(&arena, bytes, WEFT_KUBELET_MESSAGE_MAX, &a, NULL),
              -EINVAL);
    CHECK(arena.used <= 1U << 20);
}

static void grants_are_on_the_wire(void)
{
    const struct weft_kubelet_pair env = {"K", "a=b c"}, note = {"N", "v"};
    const struct weft_kubelet_mount mount = {"/in", "/host", true};
    const struct weft_kubelet_node node = {"/dev/a", "/dev/b", "rw"};
    const char *const cdi[] = {"v.com/c=n"};
    const struct weft_kubelet_grant grant = {&env, 1, &mount, 1, &node, 1, &note, 1, cdi, 1};
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 1000);
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, 1U << 16);
    CHECK_INT(weft_kubelet_encode_grants(&arena, &(struct weft_kubelet_grants){&grant, 1}, &buf),
              0);
    CHECK_BYTES(&buf, "\x0a\x47"
                      "\x0a\x0a\x0a\x01K\x12\x05"
                      "a=b c"                                          /* 1: envs */
                      "\x12\x0e\x0a\x03/in\x12\x05/host\x18\x01"       /* 2: mounts */
                      "\x1a\x14\x0a\x06/dev/a\x12\x06/dev/b\x1a\x02rw" /* 3: devices */
                      "\x22\x06\x0a\x01N\x12\x01v"                     /* 4: annotations */
                      "\x2a\x0b\x0a\x09v.com/c=n");                    /* 5: cdi_devices */
    struct weft_kubelet_grants back = {0};
    CHECK_INT(weft_kubelet_peer_decode_grants(&arena, weft_buf_text(&buf), buf.len, &back, NULL),
              0);
    CHECK_INT(back.count, 1);
    CHECK_STR(back.containers[0].envs[0].value, "a=b c");
    CHECK_STR(back.containers[0].nodes[0].host_path, "/dev/b");
    CHECK(back.containers[0].mounts[0].read_only);
    CHECK_STR(back.containers[0].annotations[0].key, "N");
    CHECK_STR(back.containers[0].cdi_devices[0], "v.com/c=n");
}

static int round_trip(void)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 100000);
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, 1U << 20);
    weft_auto(weft_pb_arena_done) struct weft_pb_arena received;
    weft_pb_arena_init(&received, 1U << 20);
    const char *const ids[] = {"a", "b"};
    const struct weft_kubelet_ids list = {ids, 2};
    const struct weft_kubelet_preferred p = {list, list, 2};
    struct weft_kubelet_preferred_request request = {&p, 1};
    int rc = weft_kubelet_peer_encode_preferred(&arena, &request, &buf);
    rc = rc == 0 ? weft_kubelet_decode_preferred(&received, weft_buf_text(&buf), buf.len, &request,
                                                 NULL)
                 : rc;
    weft_buf_reset(&buf);
    const struct weft_kubelet_id_lists answer = {&list, 1};
    return rc == 0 ? weft_kubelet_encode_preferred(&arena, &answer, &buf) : rc;
}

static void lack_of_memory_is_an_error(void)
{
    CHECK_INT(round_trip(), 0);
    uint64_t n = 1;
    for (int rc = -1; rc < 0 && n < 100; n++) {
        (void)weft_mem_fail_after(n);
        rc = round_trip();
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || rc == -ENOMEM);
    }
    CHECK(n > 3 && n < 100);
}

static void arenas_reset_and_stay_aligned(void)
{
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, 100000);
    for (int round = 0; round < 3; round++) {
        bool zero = true;
        for (size_t size = 0; size < 300; size++) {
            unsigned char *p = weft_pb_arena_alloc(&arena, size);
            CHECK(p != NULL && (uintptr_t)p % 16 == 0);
            for (size_t i = 0; i < size && p != NULL; i++) {
                zero = zero && p[i] == 0;
                p[i] = 0xff;
            }
        }
        CHECK(zero);
        CHECK(weft_pb_arena_alloc(&arena, 100000) == NULL);
        CHECK(weft_pb_arena_alloc(&arena, SIZE_MAX) == NULL);
        weft_pb_arena_reset(&arena);
        CHECK_INT(arena.used, 0);
    }
    CHECK(weft_pb_arena_alloc(&arena, 99000) != NULL); /* larger than a block */
}

WEFT_SUITE(kubelet,
           {"registration is on the wire as the kubelet reads it",
            registration_is_on_the_wire_as_the_kubelet_reads_it},
           {"options and lists are on the wire", options_and_lists_are_on_the_wire},
           {"requests are read", requests_are_read},
           {"the plugin watcher is answered", the_plugin_watcher_is_answered},
           {"what cannot be packed is no message", what_cannot_be_packed_is_no_message},
           {"bad requests are refused", bad_requests_are_refused},
           {"unpacking has a cap", unpacking_has_a_cap},
           {"grants are on the wire", grants_are_on_the_wire},
           {"lack of memory is an error", lack_of_memory_is_an_error},
           {"arenas reset and stay aligned", arenas_reset_and_stay_aligned})
