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
enum { NOTE_MAX = 1024, WORD_MAX = 128, EVENT_BYTES_MAX = 16384 };

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

/* "<object>.<hash>": unique as time and content go in; at most 253 bytes. */
static void put_metadata(struct weft_json_writer *w, const struct weft_kube_event *event,
                         int64_t now, const char *ns)
{
    uint64_t hash = weft_hash64(WEFT_HASH_SEED, &now, sizeof(now));
    hash = weft_hash64(hash, event->reason, strlen(event->reason));
    hash = weft_hash64(hash, event->note, strlen(event->note));
    hash = weft_hash64(hash, event->instance, strlen(event->instance));
    char name[256];
    (void)snprintf(name, sizeof(name), "%.230s.%016llx", event->name, (unsigned long long)hash);
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
    put_metadata(&w, event, now, ns);
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

int weft_kube_event_post(struct weft_kube_client *client, const struct weft_kube_event *event,
                         struct weft_error *err)
{
    const char *ns = event->ns[0] != '\0' ? event->ns : "default";
    weft_auto(weft_buf_done) struct weft_buf body;
    weft_buf_init(&body, EVENT_BYTES_MAX);
    put_event(&body, event, ns);
    weft_autofree char *path = weft_kube_path(&weft_kube_events, ns, NULL);
    if (body.status < 0 || path == NULL) {
        return weft_err_nomem(err);
    }
    const struct weft_kube_op op = {
        .verb = WEFT_KUBE_CREATE,
        .path = path,
        .body = weft_buf_text(&body),
        .body_len = body.len,
        .timeout_ns = 10 * WEFT_NS_PER_S,
        .on_done = event->on_done,
        .data = event->data,
    };
    return weft_kube_submit(client, &op, NULL, err);
}
