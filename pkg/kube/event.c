/* SPDX-License-Identifier: Apache-2.0 */
/* One events.k8s.io/v1 Event as JSON, and its POST. */
#include "pkg/kube/event.h"

#include <stdio.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/str.h"
#include "pkg/json/json.h"

/* The API's own limits: note 1024 bytes, reason, action and reportingInstance 128. */
enum {
    NOTE_MAX = 1024,
    WORD_MAX = 128,
    EVENT_BYTES_MAX = 16384,
    OBJECT_PART_MAX = 230,
    NAME_MAX_BYTES = 256
};

/* At most max bytes of the text, cut before a character, not inside it. */
static void put_cut(struct weft_json_writer *w, const char *key, const char *text, size_t max)
{
    char cut[NOTE_MAX + 1];
    size_t len = strnlen(text, max + 1);
    if (len > max) {
        len = max;
        while (len > 0 && ((unsigned char)text[len] & 0xc0U) == 0x80U) {
            len--;
        }
    }
    memcpy(cut, text, len);
    cut[len] = '\0';
    weft_json_kv_string(w, key, cut);
}

uint64_t weft_kube_event_id(const struct weft_kube_event *event)
{
    const char *const parts[] = {event->api_version, event->kind, event->ns,
                                 event->name,        event->uid,  event->reason,
                                 event->action,      event->note, event->controller};
    uint64_t hash = weft_hash64(WEFT_HASH_SEED, &event->warning, sizeof(event->warning));
    for (size_t i = 0; i < WEFT_ARRAY_LEN(parts); i++) {
        hash = weft_hash64(hash, parts[i], strlen(parts[i]) + 1);
    }
    return hash;
}

/* "<object>.<id>", at most 247 bytes: a DNS subdomain, as the object's name is one. */
static void name_of(const struct weft_kube_event *event, char name[NAME_MAX_BYTES])
{
    size_t len = strnlen(event->name, OBJECT_PART_MAX);
    while (len > 0 && (event->name[len - 1] == '.' || event->name[len - 1] == '-')) {
        len--; /* where it was cut */
    }
    (void)snprintf(name, NAME_MAX_BYTES, "%.*s.%016llx", (int)len, event->name,
                   (unsigned long long)weft_kube_event_id(event));
}

static void put_metadata(struct weft_json_writer *w, const struct weft_kube_event *event,
                         const char *ns)
{
    char name[NAME_MAX_BYTES];
    name_of(event, name);
    weft_json_put_key(w, "metadata");
    weft_json_open(w, '{');
    weft_json_kv_string(w, "name", name);
    weft_json_kv_string(w, "namespace", ns);
    weft_json_close(w, '}');
}

static void put_regarding(struct weft_json_writer *w, const struct weft_kube_event *event)
{
    weft_json_put_key(w, "regarding");
    weft_json_open(w, '{');
    weft_json_kv_string(w, "apiVersion", event->api_version);
    weft_json_kv_string(w, "kind", event->kind);
    weft_json_kv_string(w, "name", event->name);
    if (event->ns[0] != '\0') {
        weft_json_kv_string(w, "namespace", event->ns);
    }
    if (event->uid[0] != '\0') {
        weft_json_kv_string(w, "uid", event->uid);
    }
    weft_json_close(w, '}');
}

static void put_event(struct weft_buf *body, const struct weft_kube_event *event, const char *ns)
{
    const int64_t now = weft_clock_realtime(weft_clock_system());
    char time[WEFT_TIME_TEXT_MAX];
    struct weft_json_writer w;
    weft_json_writer_init(&w, body, 0);
    weft_json_open(&w, '{');
    weft_json_kv_string(&w, "apiVersion", "events.k8s.io/v1");
    weft_json_kv_string(&w, "kind", "Event");
    put_metadata(&w, event, ns);
    weft_json_kv_string(&w, "eventTime", weft_time_format(now, time));
    weft_json_kv_string(&w, "type", event->warning ? "Warning" : "Normal");
    put_cut(&w, "reason", event->reason, WORD_MAX);
    put_cut(&w, "action", event->action, WORD_MAX);
    put_cut(&w, "note", event->note, NOTE_MAX);
    weft_json_kv_string(&w, "reportingController", event->controller);
    put_cut(&w, "reportingInstance", event->instance, WORD_MAX);
    put_regarding(&w, event);
    weft_json_close(&w, '}');
}

/* A merge patch of the series alone. */
static void put_series(struct weft_buf *body, uint32_t count)
{
    char time[WEFT_TIME_TEXT_MAX];
    struct weft_json_writer w;
    weft_json_writer_init(&w, body, 0);
    weft_json_open(&w, '{');
    weft_json_put_key(&w, "series");
    weft_json_open(&w, '{');
    weft_json_kv_int(&w, "count", count);
    weft_json_kv_string(&w, "lastObservedTime",
                        weft_time_format(weft_clock_realtime(weft_clock_system()), time));
    weft_json_close(&w, '}');
    weft_json_close(&w, '}');
}

int weft_kube_event_post(struct weft_kube_client *client, const struct weft_kube_event *event,
                         struct weft_kube_call **ret_call, struct weft_error *err)
{
    const char *ns = event->ns[0] != '\0' ? event->ns : "default";
    const bool again = event->count > 1;
    char name[NAME_MAX_BYTES];
    weft_auto(weft_buf_done) struct weft_buf body;
    weft_buf_init(&body, EVENT_BYTES_MAX);
    if (again) {
        put_series(&body, event->count);
    } else {
        put_event(&body, event, ns);
    }
    name_of(event, name);
    weft_autofree char *path = weft_kube_path(&weft_kube_events, ns, again ? name : NULL);
    if (body.status < 0 || path == NULL) {
        return weft_err_nomem(err);
    }
    const struct weft_kube_op op = {
        .verb = again ? WEFT_KUBE_MERGE_PATCH : WEFT_KUBE_CREATE,
        .path = path,
        .body = weft_buf_text(&body),
        .body_len = body.len,
        .timeout_ns = 10 * WEFT_NS_PER_S,
        .on_done = event->on_done,
        .data = event->data,
    };
    return weft_kube_submit(client, &op, ret_call, err);
}
