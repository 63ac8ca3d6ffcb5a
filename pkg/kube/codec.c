/* SPDX-License-Identifier: Apache-2.0 */
/* Kubernetes' JSON to weft_kube_meta, and the checks both formats share. */
#include "pkg/kube/codec.h"

#include <errno.h>
#include <string.h>

#include "pkg/json/json.h"
#include "pkg/kube/codec-internal.h"
#include "pkg/pb/arena.h"

static const char *find_pair(const struct weft_kube_pair *pairs, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(pairs[i].key, key) == 0) {
            return pairs[i].value;
        }
    }
    return NULL;
}

const char *weft_kube_meta_label(const struct weft_kube_meta *meta, const char *key)
{
    return find_pair(meta->labels, meta->label_count, key);
}

const char *weft_kube_meta_annotation(const struct weft_kube_meta *meta, const char *key)
{
    return find_pair(meta->annotations, meta->annotation_count, key);
}

int weft_kube_check_meta(const struct weft_kube_meta *meta, enum weft_error_domain domain,
                         struct weft_error *err)
{
    if (meta->name[0] == '\0' || meta->resource_version[0] == '\0') {
        return weft_err_set(err, -EBADMSG, domain, "an object without name or resourceVersion");
    }
    return 0;
}

int weft_kube_event_type(const char *text, enum weft_kube_event_type *ret,
                         enum weft_error_domain domain, struct weft_error *err)
{
    static const char *const names[WEFT_KUBE_EVENT_TYPE_COUNT] = {
        [WEFT_KUBE_EVENT_ADDED] = "ADDED",     [WEFT_KUBE_EVENT_MODIFIED] = "MODIFIED",
        [WEFT_KUBE_EVENT_DELETED] = "DELETED", [WEFT_KUBE_EVENT_BOOKMARK] = "BOOKMARK",
        [WEFT_KUBE_EVENT_ERROR] = "ERROR",
    };
    for (int i = 0; text != NULL && i < WEFT_KUBE_EVENT_TYPE_COUNT; i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret = (enum weft_kube_event_type)i;
            return 0;
        }
    }
    return weft_err_set(err, -EBADMSG, domain, "a watch event of type \"%.32s\"",
                        text != NULL ? text : "");
}

/* ---- JSON ---- */

static const char *member(const struct weft_json *object, const char *key)
{
    const char *text = weft_json_string(weft_json_get(object, key));
    return text != NULL ? text : "";
}

static int read_pairs(struct weft_pb_arena *arena, const struct weft_json *object,
                      const struct weft_kube_pair **ret_pairs, size_t *ret_count,
                      struct weft_error *err)
{
    const size_t count = weft_json_count(object);
    struct weft_kube_pair *pairs = weft_pb_arena_alloc(arena, count * sizeof(*pairs));
    if (pairs == NULL) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < count; i++) {
        const struct weft_json *node = weft_json_at(object, i);
        const char *key = weft_json_key(node);
        const char *value = weft_json_string(node);
        if (key == NULL || value == NULL) {
            return weft_err_set(err, -EBADMSG, WEFT_ERR_JSON,
                                "a label or annotation that is no string");
        }
        pairs[i] = (struct weft_kube_pair){.key = key, .value = value};
    }
    *ret_pairs = pairs;
    *ret_count = count;
    return 0;
}

/* Metadata of an object or bookmark, unchecked. */
static int read_object(struct weft_pb_arena *arena, const struct weft_json *object,
                       bool annotations, struct weft_kube_meta *ret, struct weft_error *err)
{
    const struct weft_json *m = weft_json_get(object, "metadata");
    if (weft_json_type(m) != WEFT_JSON_OBJECT) {
        return weft_err_set(err, -EBADMSG, WEFT_ERR_JSON, "an object without metadata");
    }
    *ret = (struct weft_kube_meta){
        .name = member(m, "name"),
        .ns = member(m, "namespace"),
        .uid = member(m, "uid"),
        .resource_version = member(m, "resourceVersion"),
        .deleting = weft_json_string(weft_json_get(m, "deletionTimestamp")) != NULL,
    };
    int rc = read_pairs(arena, weft_json_get(m, "labels"), &ret->labels, &ret->label_count, err);
    if (rc == 0 && annotations) {
        rc = read_pairs(arena, weft_json_get(m, "annotations"), &ret->annotations,
                        &ret->annotation_count, err);
    }
    return rc;
}

int weft_kube_read_meta(struct weft_pb_arena *arena, const struct weft_json *object,
                        bool annotations, struct weft_kube_meta *ret, struct weft_error *err)
{
    const int rc = read_object(arena, object, annotations, ret, err);
    return rc < 0 ? rc : weft_kube_check_meta(ret, WEFT_ERR_JSON, err);
}

void weft_kube_read_list_meta(const struct weft_json *metadata, struct weft_kube_list_meta *ret)
{
    ret->resource_version = member(metadata, "resourceVersion");
    ret->continue_token = member(metadata, "continue");
}

void weft_kube_read_status(const struct weft_json *object, struct weft_kube_status *ret)
{
    const int64_t code = weft_json_int(weft_json_get(object, "code"), 0);
    ret->code = code > 0 && code < 1000 ? (int)code : 0;
    ret->reason = member(object, "reason");
    ret->message = member(object, "message");
}

int weft_kube_read_event(struct weft_pb_arena *arena, const struct weft_json *event,
                         bool annotations, struct weft_kube_watch_event *ret,
                         struct weft_error *err)
{
    *ret = (struct weft_kube_watch_event){0};
    int rc = weft_kube_event_type(weft_json_string(weft_json_get(event, "type")), &ret->type,
                                  WEFT_ERR_JSON, err);
    if (rc < 0) {
        return rc;
    }
    ret->doc = weft_json_get(event, "object");
    if (weft_json_type(ret->doc) != WEFT_JSON_OBJECT) {
        return weft_err_set(err, -EBADMSG, WEFT_ERR_JSON, "a watch event without object");
    }
    if (ret->type == WEFT_KUBE_EVENT_ERROR) {
        weft_kube_read_status(ret->doc, &ret->status);
        return 0;
    }
    const bool bookmark = ret->type == WEFT_KUBE_EVENT_BOOKMARK;
    rc = read_object(arena, ret->doc, annotations || bookmark, &ret->meta, err);
    if (rc == 0 && !bookmark) {
        rc = weft_kube_check_meta(&ret->meta, WEFT_ERR_JSON, err);
    }
    return rc;
}
