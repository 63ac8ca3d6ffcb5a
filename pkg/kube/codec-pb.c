/* SPDX-License-Identifier: Apache-2.0 */
/* Kubernetes' protobuf to weft_kube_meta, with protobuf-c over an arena that goes with each item:
 * unknown fields (managedFields, half of an object) are copied there and dropped with it. */
#include "pkg/kube/codec.h"

#include <errno.h>
#include <string.h>

#include "kubemeta.pb-c.h"
#include "pkg/kube/codec-internal.h"
#include "pkg/pb/arena.h"
#include "pkg/pb/kube-split.h"

static const char *text_or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static int broken(struct weft_pb_arena *arena, size_t len, const char *what, struct weft_error *err)
{
    if (len > arena->max / 2 || arena->used > arena->max / 2) {
        return weft_err_set(err, -EFBIG, WEFT_ERR_PROTOBUF, "%s of %zu bytes takes over %zu bytes",
                            what, len, arena->max);
    }
    return weft_err_set(err, -EBADMSG, WEFT_ERR_PROTOBUF, "no valid %s", what);
}

static int read_maps(struct weft_pb_arena *arena, const Kubemeta__ObjectMeta *m, bool annotations,
                     struct weft_kube_meta *ret)
{
    const size_t annotation_count = annotations ? m->n_annotations : 0;
    struct weft_kube_pair *labels = weft_pb_arena_alloc(arena, m->n_labels * sizeof(*labels));
    struct weft_kube_pair *notes = weft_pb_arena_alloc(arena, annotation_count * sizeof(*notes));
    if (labels == NULL || notes == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < m->n_labels; i++) {
        labels[i].key = text_or_empty(m->labels[i]->key);
        labels[i].value = text_or_empty(m->labels[i]->value);
    }
    for (size_t i = 0; i < annotation_count; i++) {
        notes[i].key = text_or_empty(m->annotations[i]->key);
        notes[i].value = text_or_empty(m->annotations[i]->value);
    }
    ret->labels = labels;
    ret->label_count = m->n_labels;
    ret->annotations = notes;
    ret->annotation_count = annotation_count;
    return 0;
}

static int unpack_object(struct weft_pb_arena *arena, const uint8_t *bytes, size_t len,
                         bool annotations, struct weft_kube_meta *ret, struct weft_error *err)
{
    const Kubemeta__PartialObjectMetadata *object =
        kubemeta__partial_object_metadata__unpack(&arena->allocator, len, bytes);
    if (object == NULL) {
        return broken(arena, len, "object", err);
    }
    const Kubemeta__ObjectMeta *m = object->metadata;
    if (m == NULL) {
        return weft_err_set(err, -EBADMSG, WEFT_ERR_PROTOBUF, "an object without metadata");
    }
    *ret = (struct weft_kube_meta){
        .name = text_or_empty(m->name),
        .ns = text_or_empty(m->namespace_name),
        .uid = text_or_empty(m->uid),
        .resource_version = text_or_empty(m->resource_version),
        .deleting = m->deletion_timestamp != NULL,
    };
    return read_maps(arena, m, annotations, ret) < 0 ? broken(arena, len, "object", err) : 0;
}

int weft_kube_unpack_meta(struct weft_pb_arena *arena, const uint8_t *bytes, size_t len,
                          bool annotations, struct weft_kube_meta *ret, struct weft_error *err)
{
    const int rc = unpack_object(arena, bytes, len, annotations, ret, err);
    return rc < 0 ? rc : weft_kube_check_meta(ret, WEFT_ERR_PROTOBUF, err);
}

int weft_kube_unpack_list_meta(struct weft_pb_arena *arena, const uint8_t *bytes, size_t len,
                               struct weft_kube_list_meta *ret, struct weft_error *err)
{
    const Kubemeta__ListMeta *m = kubemeta__list_meta__unpack(&arena->allocator, len, bytes);
    if (m == NULL) {
        return broken(arena, len, "list metadata", err);
    }
    ret->resource_version = text_or_empty(m->resource_version);
    ret->continue_token = text_or_empty(m->continue_token);
    return 0;
}

static int unpack_status(struct weft_pb_arena *arena, const ProtobufCBinaryData *raw,
                         struct weft_kube_status *ret, struct weft_error *err)
{
    const Kubemeta__Status *status =
        kubemeta__status__unpack(&arena->allocator, raw->len, raw->data);
    if (status == NULL) {
        return broken(arena, raw->len, "status", err);
    }
    ret->code = status->has_code ? status->code : 0;
    ret->reason = text_or_empty(status->reason);
    ret->message = text_or_empty(status->message);
    return 0;
}

/* The object inside an event: wrapped once more in the magic and Unknown. */
static const Kubemeta__Unknown *unwrap_object(struct weft_pb_arena *arena,
                                              const Kubemeta__WatchEvent *event)
{
    const uint8_t *bytes = NULL;
    size_t len = 0;
    if (event->object == NULL || !event->object->has_raw ||
        weft_pb_unwrap(event->object->raw.data, event->object->raw.len, &bytes, &len) < 0) {
        return NULL;
    }
    const Kubemeta__Unknown *unknown = kubemeta__unknown__unpack(&arena->allocator, len, bytes);
    return unknown != NULL && unknown->has_raw ? unknown : NULL;
}

int weft_kube_unpack_event(struct weft_pb_arena *arena, const uint8_t *bytes, size_t len,
                           bool annotations, struct weft_kube_watch_event *ret,
                           struct weft_error *err)
{
    *ret = (struct weft_kube_watch_event){0};
    const Kubemeta__WatchEvent *event =
        kubemeta__watch_event__unpack(&arena->allocator, len, bytes);
    if (event == NULL) {
        return broken(arena, len, "watch event", err);
    }
    int rc = weft_kube_event_type(event->type, &ret->type, WEFT_ERR_PROTOBUF, err);
    if (rc < 0) {
        return rc;
    }
    const Kubemeta__Unknown *object = unwrap_object(arena, event);
    if (object == NULL) {
        return broken(arena, len, "object in a watch event", err);
    }
    if (ret->type == WEFT_KUBE_EVENT_ERROR) {
        return unpack_status(arena, &object->raw, &ret->status, err);
    }
    const bool bookmark = ret->type == WEFT_KUBE_EVENT_BOOKMARK;
    rc = unpack_object(arena, object->raw.data, object->raw.len, annotations || bookmark,
                       &ret->meta, err);
    if (rc == 0 && !bookmark) {
        rc = weft_kube_check_meta(&ret->meta, WEFT_ERR_PROTOBUF, err);
    }
    return rc;
}
