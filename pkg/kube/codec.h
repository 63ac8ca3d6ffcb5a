/* SPDX-License-Identifier: Apache-2.0 */
/* From bytes of the API server to weft_kube_meta: the only file that knows the generated protobuf
 * code. Values only; no I/O. What comes out points into the arena or the document. */
#ifndef WEFT_KUBE_CODEC_H
#define WEFT_KUBE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/kube/meta.h"

struct weft_json;
struct weft_pb_arena;

/* The most an unpacked message may take. An object in etcd has at most 1.5 MiB; the worst map of
 * one-byte labels grows about twentyfold. */
enum { WEFT_KUBE_UNPACK_MAX = 32 << 20 };

struct weft_kube_list_meta {
    const char *resource_version; /* never NULL */
    const char *continue_token;   /* "" at the last page */
};

struct weft_kube_status {
    int code;
    const char *reason;
    const char *message;
};

enum weft_kube_event_type {
    WEFT_KUBE_EVENT_ADDED,
    WEFT_KUBE_EVENT_MODIFIED,
    WEFT_KUBE_EVENT_DELETED,
    WEFT_KUBE_EVENT_BOOKMARK,
    WEFT_KUBE_EVENT_ERROR,
    WEFT_KUBE_EVENT_TYPE_COUNT
};

/* One event of a watch. */
struct weft_kube_watch_event {
    enum weft_kube_event_type type;
    /* all but ERROR; a bookmark has only resource_version, and always its annotations */
    struct weft_kube_meta meta;
    struct weft_kube_status status; /* ERROR */
    const struct weft_json *doc;    /* JSON only: the object, within the event's document */
};

/* Each of them: 0, -EBADMSG for what is no such message, -EFBIG over the arena's cap, -ENOMEM. */
int weft_kube_unpack_meta(struct weft_pb_arena *arena, const uint8_t *bytes, size_t len,
                          bool annotations, struct weft_kube_meta *ret, struct weft_error *err)
    __attribute__((warn_unused_result));
int weft_kube_unpack_list_meta(struct weft_pb_arena *arena, const uint8_t *bytes, size_t len,
                               struct weft_kube_list_meta *ret, struct weft_error *err)
    __attribute__((warn_unused_result));
int weft_kube_unpack_event(struct weft_pb_arena *arena, const uint8_t *bytes, size_t len,
                           bool annotations, struct weft_kube_watch_event *ret,
                           struct weft_error *err) __attribute__((warn_unused_result));

/* The same from JSON; the arena holds the arrays of labels and annotations. */
int weft_kube_read_meta(struct weft_pb_arena *arena, const struct weft_json *object,
                        bool annotations, struct weft_kube_meta *ret, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_kube_read_list_meta(const struct weft_json *metadata, struct weft_kube_list_meta *ret);
int weft_kube_read_event(struct weft_pb_arena *arena, const struct weft_json *event,
                         bool annotations, struct weft_kube_watch_event *ret,
                         struct weft_error *err) __attribute__((warn_unused_result));
/* The error of an HTTP status and what came with it; what names the call. */
void weft_kube_status_error(const char *what, int http_status, const struct weft_kube_status *s,
                            struct weft_error *err);
bool weft_kube_status_retryable(int status);
/* A metav1.Status; fields that are not there are 0 and "". */
void weft_kube_read_status(const struct weft_json *object, struct weft_kube_status *ret);

#endif
