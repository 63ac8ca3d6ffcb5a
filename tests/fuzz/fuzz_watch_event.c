/* SPDX-License-Identifier: Apache-2.0 */
/* One watch event or list item, protobuf or JSON: what is accepted has what the caches rely on, and
 * unpacking stays within its cap. Input: a byte for the kind, then the message. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/json/json.h"
#include "pkg/kube/codec.h"
#include "pkg/pb/arena.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t use(const struct weft_kube_pair *pairs, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += strlen(pairs[i].key) + strlen(pairs[i].value);
    }
    return total;
}

static void check_meta(const struct weft_kube_meta *meta, bool bookmark)
{
    if (!bookmark && (meta->name[0] == '\0' || meta->resource_version[0] == '\0')) {
        abort();
    }
    const volatile size_t read = strlen(meta->ns) + strlen(meta->uid) +
                                 use(meta->labels, meta->label_count) +
                                 use(meta->annotations, meta->annotation_count);
    (void)read;
}

static void check_event(const struct weft_kube_watch_event *event)
{
    if (event->type != WEFT_KUBE_EVENT_ERROR) {
        check_meta(&event->meta, event->type == WEFT_KUBE_EVENT_BOOKMARK);
    } else if (event->status.reason == NULL || event->status.message == NULL) {
        abort();
    }
}

static void fuzz_json(struct weft_pb_arena *arena, const char *text, size_t len, bool item)
{
    struct weft_json *doc = NULL;
    struct weft_kube_meta meta;
    struct weft_kube_watch_event event;
    if (weft_json_parse(text, len, "f", &doc, NULL) < 0) {
        return;
    }
    if (item && weft_kube_read_meta(arena, doc, true, &meta, NULL) == 0) {
        check_meta(&meta, false);
    } else if (!item && weft_kube_read_event(arena, doc, true, &event, NULL) == 0) {
        check_event(&event);
    }
    weft_json_free(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, 1U << 20);
    struct weft_kube_meta meta;
    struct weft_kube_watch_event event;
    const bool item = (data[0] & 2U) != 0;
    if ((data[0] & 1U) != 0) {
        fuzz_json(&arena, (const char *)data + 1, size - 1, item);
    } else if (item && weft_kube_unpack_meta(&arena, data + 1, size - 1, true, &meta, NULL) == 0) {
        check_meta(&meta, false);
    } else if (!item &&
               weft_kube_unpack_event(&arena, data + 1, size - 1, true, &event, NULL) == 0) {
        check_event(&event);
    }
    if (arena.used > arena.max) {
        abort();
    }
    weft_pb_arena_done(&arena);
    return 0;
}
