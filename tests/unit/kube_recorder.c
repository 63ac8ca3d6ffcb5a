/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/kube_recorder.h"

#include <stdio.h>

#include "pkg/kube/client.h"
#include "pkg/loop/loop.h"

static void note(struct recorder *rec, const char *text)
{
    (void)weft_buf_printf(&rec->log, "%s\n", text);
    rec->lines++;
    rec->done = rec->lines >= rec->want;
    if (rec->lines == rec->at_line && rec->action == FREE_IT) {
        weft_kube_reflector_free(weft_steal(&rec->reflector));
    } else if (rec->lines == rec->at_line && rec->action == RELIST) {
        weft_kube_reflector_relist(rec->reflector);
    }
}

static void on_list(void *data)
{
    note(data, "list");
}

static void on_object(void *data, enum weft_kube_change change,
                      const struct weft_kube_object *object)
{
    struct recorder *rec = data;
    const char *label = weft_kube_meta_label(&object->meta, "l");
    const char *note_a = weft_kube_meta_annotation(&object->meta, "a");
    char line[256];
    (void)snprintf(line, sizeof(line), "%c %s %s %s%s%s", "+~-"[change], object -> meta.name,
                   object->meta.resource_version, label != NULL ? label : "none",
                   note_a != NULL ? " a=" : "", note_a != NULL ? note_a : "");
    CHECK_INT(object->doc != NULL, rec->with_docs);
    CHECK_STR(object->meta.ns, "");
    note(rec, line);
}

static void on_synced(void *data)
{
    struct recorder *rec = data;
    CHECK(weft_kube_reflector_synced(rec->reflector));
    note(rec, "synced");
}

static void on_error(void *data, const struct weft_error *error, int64_t retry_ns)
{
    struct recorder *rec = data;
    rec->last_retry_ns = retry_ns;
    char line[512];
    (void)snprintf(line, sizeof(line), "error %d %s", error->code,
                   error->domain == WEFT_ERR_HTTP && error->domain_code != 0 ? error->message : "");
    note(rec, line);
}

struct weft_kube_reflector_options recorder_options(struct recorder *rec)
{
    return (struct weft_kube_reflector_options){
        .path = "/api/v1/nodes",
        .codec = WEFT_KUBE_METADATA,
        .pages = true,
        .page_size = 2,
        .backoff_min_ns = 2 * WEFT_NS_PER_MS,
        .backoff_max_ns = 40 * WEFT_NS_PER_MS,
        .missing_retry_ns = 30 * WEFT_NS_PER_MS,
        .seed = 1,
        .watcher = {on_list, on_object, on_synced, on_error, rec},
    };
}

void recorder_begin(struct recorder *rec, const struct fake_step *steps, size_t count)
{
    *rec = (struct recorder){0};
    weft_buf_init(&rec->log, 1U << 20);
    fake_script_init(&rec->script, steps, count);
    fake_rig_open(&rec->rig, fake_script_answer, &rec->script);
}

void recorder_follow(struct recorder *rec, const struct weft_kube_reflector_options *options,
                     size_t want)
{
    struct weft_error err = {0};
    rec->want = want;
    rec->with_docs = options->codec == WEFT_KUBE_JSON;
    if (!CHECK_INT(weft_kube_reflector_new(rec->rig.client, options, &rec->reflector, &err), 0)) {
        (void)fprintf(stderr, "%s\n", err.message);
        return;
    }
    if (want > 0) {
        CHECK(weft_loop_run_until(rec->rig.loop, &rec->done, LONG_ENOUGH));
    } else {
        CHECK(fake_script_wait(&rec->script, rec->rig.loop, LONG_ENOUGH));
    }
}

void recorder_end(struct recorder *rec, const char *expected)
{
    weft_kube_reflector_free(rec->reflector);
    fake_rig_close(&rec->rig);
    CHECK_STR(weft_buf_text(&rec->log), expected);
    CHECK_INT(fake_script_unexpected(&rec->script), 0);
    fake_script_done(&rec->script);
    weft_buf_done(&rec->log);
}
