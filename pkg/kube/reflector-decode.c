/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a list page or a watch to objects and events, protobuf or JSON as the server answered.
 */
#include <errno.h>
#include <string.h>

#include "pkg/json/json.h"
#include "pkg/kube/reflector-internal.h"

static int replace_text(char **text, const char *by, struct weft_error *err)
{
    char *copy = weft_strdup(by);
    if (copy == NULL) {
        return weft_err_nomem(err);
    }
    weft_free(*text);
    *text = copy;
    return 0;
}

/* Hands an object on. The callback may free the reflector or ask for a relist. */
static int deliver(struct weft_kube_reflector *r, enum weft_kube_change change,
                   const struct weft_kube_meta *meta, const struct weft_json *doc,
                   struct weft_error *err)
{
    const struct weft_kube_object object = {
        .meta = *meta,
        .doc = r->options.codec == WEFT_KUBE_JSON ? doc : NULL,
    };
    r->options.watcher.on_object(r->options.watcher.data, change, &object);
    return r->abandoned ? weft_err_set(err, -ECANCELED, WEFT_ERR_HTTP, "not wanted any more") : 0;
}

static int take_list_meta(struct weft_kube_reflector *r, const struct weft_kube_list_meta *meta,
                          struct weft_error *err)
{
    const int rc = replace_text(&r->page_version, meta->resource_version, err);
    return rc < 0 ? rc : replace_text(&r->page_continue, meta->continue_token, err);
}

static int deliver_event(struct weft_kube_reflector *r, const struct weft_kube_watch_event *event,
                         struct weft_error *err)
{
    enum weft_kube_change change = WEFT_KUBE_MODIFIED;
    if (event->type == WEFT_KUBE_EVENT_ADDED) {
        change = WEFT_KUBE_ADDED;
    } else if (event->type == WEFT_KUBE_EVENT_DELETED) {
        change = WEFT_KUBE_DELETED;
    }
    return deliver(r, change, &event->meta, event->doc, err);
}

/* The bookmark that ends a streamed list. */
static bool is_initial_end(const struct weft_kube_meta *meta)
{
    const char *value = weft_kube_meta_annotation(meta, "k8s.io/initial-events-end");
    return value != NULL && strcmp(value, "true") == 0;
}

static int take_event(struct weft_kube_reflector *r, const struct weft_kube_watch_event *event,
                      struct weft_error *err)
{
    if (event->type == WEFT_KUBE_EVENT_ERROR) {
        weft_kube_status_error(r->options.path, event->status.code, &event->status,
                               &r->event_error);
        return weft_err_set(err, -ECANCELED, WEFT_ERR_HTTP, "the watch has failed");
    }
    r->events++;
    if (event->meta.resource_version[0] == '\0') {
        return weft_err_set(err, -EBADMSG, WEFT_ERR_HTTP, "a watch event without resourceVersion");
    }
    const bool bookmark = event->type == WEFT_KUBE_EVENT_BOOKMARK;
    if (r->phase == WEFT_KUBE_STREAMING) {
        /* objects come in no order of versions: one of them is no place to go on from */
        const bool end = bookmark && is_initial_end(&event->meta);
        int rc = end ? weft_kube_reflector_streamed(r, event->meta.resource_version, err) : 0;
        return bookmark || rc < 0 ? rc : deliver_event(r, event, err);
    }
    const int rc = replace_text(&r->resource_version, event->meta.resource_version, err);
    return bookmark || rc < 0 ? rc : deliver_event(r, event, err);
}

/* ---- JSON ---- */

static int parse_piece(struct weft_kube_reflector *r, const char *text, size_t len,
                       struct weft_json **ret_doc, struct weft_error *err)
{
    weft_pb_arena_reset(&r->arena);
    const int rc = weft_json_parse(text, len, r->options.path, ret_doc, err);
    return rc == -EINVAL
               ? weft_err_set(err, -EBADMSG, WEFT_ERR_JSON, "%s", err != NULL ? err->message : "")
               : rc;
}

static int on_json_item(void *data, const char *text, size_t len, struct weft_error *err)
{
    struct weft_kube_reflector *r = data;
    weft_auto(weft_json_free) struct weft_json *doc = NULL;
    int rc = parse_piece(r, text, len, &doc, err);
    if (rc < 0) {
        return rc;
    }
    if (r->phase == WEFT_KUBE_LISTING) {
        struct weft_kube_meta meta;
        rc = weft_kube_read_meta(&r->arena, doc, r->options.annotations, &meta, err);
        return rc < 0 ? rc : deliver(r, WEFT_KUBE_ADDED, &meta, doc, err);
    }
    struct weft_kube_watch_event event;
    rc = weft_kube_read_event(&r->arena, doc, r->options.annotations, &event, err);
    return rc < 0 ? rc : take_event(r, &event, err);
}

static int on_json_metadata(void *data, const char *text, size_t len, struct weft_error *err)
{
    struct weft_kube_reflector *r = data;
    weft_auto(weft_json_free) struct weft_json *doc = NULL;
    const int rc = parse_piece(r, text, len, &doc, err);
    if (rc < 0) {
        return rc;
    }
    struct weft_kube_list_meta meta;
    weft_kube_read_list_meta(doc, &meta);
    return take_list_meta(r, &meta, err);
}

/* ---- protobuf ---- */

static int on_pb_item(void *data, const uint8_t *bytes, size_t len, struct weft_error *err)
{
    struct weft_kube_reflector *r = data;
    weft_pb_arena_reset(&r->arena);
    if (r->phase == WEFT_KUBE_LISTING) {
        struct weft_kube_meta meta;
        const int rc =
            weft_kube_unpack_meta(&r->arena, bytes, len, r->options.annotations, &meta, err);
        return rc < 0 ? rc : deliver(r, WEFT_KUBE_ADDED, &meta, NULL, err);
    }
    struct weft_kube_watch_event event;
    const int rc =
        weft_kube_unpack_event(&r->arena, bytes, len, r->options.annotations, &event, err);
    return rc < 0 ? rc : take_event(r, &event, err);
}

static int on_pb_metadata(void *data, const uint8_t *bytes, size_t len, struct weft_error *err)
{
    struct weft_kube_reflector *r = data;
    weft_pb_arena_reset(&r->arena);
    struct weft_kube_list_meta meta;
    const int rc = weft_kube_unpack_list_meta(&r->arena, bytes, len, &meta, err);
    return rc < 0 ? rc : take_list_meta(r, &meta, err);
}

/* ---- the answer ---- */

void weft_kube_reflector_drop_answer(struct weft_kube_reflector *r)
{
    weft_json_split_free(weft_steal(&r->json));
    weft_pb_split_free(weft_steal(&r->pb));
    weft_free(weft_steal(&r->page_version));
    weft_free(weft_steal(&r->page_continue));
    weft_pb_arena_reset(&r->arena);
    r->event_error = (struct weft_error){0};
}

int weft_kube_reflector_begin_answer(struct weft_kube_reflector *r, const char *content_type,
                                     struct weft_error *err)
{
    const bool listing = r->phase == WEFT_KUBE_LISTING;
    if (strcmp(content_type, "application/json") == 0) {
        const struct weft_json_split_sink sink = {on_json_item, on_json_metadata, r};
        r->json = weft_json_split_new(listing ? WEFT_JSON_SPLIT_LIST : WEFT_JSON_SPLIT_LINES,
                                      r->options.item_max, &sink);
    } else if (r->options.codec == WEFT_KUBE_METADATA &&
               strcmp(content_type, "application/vnd.kubernetes.protobuf") == 0) {
        const struct weft_pb_split_sink sink = {on_pb_item, on_pb_metadata, r};
        r->pb = weft_pb_split_new(listing ? WEFT_PB_SPLIT_LIST : WEFT_PB_SPLIT_WATCH,
                                  r->options.item_max, &sink);
    } else {
        return weft_err_set(err, -EPROTO, WEFT_ERR_HTTP, "%s: an answer of type \"%.64s\"",
                            r->options.path, content_type);
    }
    return r->json != NULL || r->pb != NULL ? 0 : weft_err_nomem(err);
}

int weft_kube_reflector_feed(struct weft_kube_reflector *r, const char *bytes, size_t len,
                             struct weft_error *err)
{
    const int rc = r->json != NULL ? weft_json_split_feed(r->json, bytes, len, err)
                                   : weft_pb_split_feed(r->pb, (const uint8_t *)bytes, len, err);
    return rc < 0 && rc != -ECANCELED ? weft_err_wrap(err, rc, "%s", r->options.path) : rc;
}

int weft_kube_reflector_end_answer(struct weft_kube_reflector *r, struct weft_error *err)
{
    int rc = 0;
    if (r->json != NULL) {
        rc = weft_json_split_end(r->json, err);
    } else if (r->pb != NULL) {
        rc = weft_pb_split_end(r->pb, err);
    }
    if (rc == 0 && r->phase == WEFT_KUBE_LISTING &&
        (r->page_version == NULL || r->page_version[0] == '\0')) {
        rc = weft_err_set(err, -EBADMSG, WEFT_ERR_HTTP, "a list without resourceVersion");
    }
    return rc < 0 ? weft_err_wrap(err, rc, "%s", r->options.path) : 0;
}
