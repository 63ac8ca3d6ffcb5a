/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the status document. Must not read clocks or look anything up. */
#include "controller/status-text.h"

#include <string.h>

#include "pkg/apply/refusal.h"
#include "pkg/base/buf.h"
#include "pkg/json/json.h"
#include "pkg/tree/tree.h"

enum { INDENT = 2 };

static void put_nodes(const struct weft_status_facts *f, struct weft_json_writer *w)
{
    weft_json_put_key(w, "nodes");
    weft_json_open(w, '{');
    weft_json_kv_int(w, "selected", (int64_t)f->nodes.selected);
    weft_json_kv_int(w, "placed", (int64_t)f->nodes.placed);
    weft_json_kv_int(w, "unplaced", (int64_t)f->nodes.unplaced);
    weft_json_kv_int(w, "excluded", (int64_t)f->nodes.excluded);
    weft_json_kv_int(w, "kept", (int64_t)f->nodes.kept);
    weft_json_close(w, '}');
}

static void put_tiers(const struct weft_status_facts *f, struct weft_json_writer *w)
{
    weft_json_put_key(w, "tiers");
    weft_json_open(w, '[');
    for (size_t i = 0; i < f->tiers->count && i < WEFT_LAYOUT_TIERS_MAX; i++) {
        weft_json_open(w, '{');
        weft_json_kv_int(w, "tier", (int64_t)i + 1);
        weft_json_kv_string(w, "name", f->tiers->items[i]);
        weft_json_kv_int(w, "hyperNodes", (int64_t)f->hypernodes[i]);
        weft_json_close(w, '}');
    }
    weft_json_close(w, ']');
    weft_json_kv_int(w, "foreignHyperNodes", (int64_t)f->foreign);
}

static void put_sources(const struct weft_status_facts *f, struct weft_json_writer *w)
{
    weft_json_put_key(w, "sources");
    weft_json_open(w, '[');
    for (size_t i = 0; i < f->source_count; i++) {
        weft_json_open(w, '{');
        weft_json_kv_string(w, "name", f->sources[i].name);
        weft_json_kv_string(w, "state", f->sources[i].state);
        if (f->decided) {
            weft_json_kv_int(w, "placedNodes", (int64_t)f->sources[i].placed);
        }
        if (f->sources[i].error[0] != '\0') {
            weft_json_kv_string(w, "error", f->sources[i].error);
        }
        weft_json_close(w, '}');
    }
    weft_json_close(w, ']');
}

static void put_refusals(const struct weft_status_facts *f, struct weft_json_writer *w)
{
    weft_json_put_key(w, "refusedChanges");
    weft_json_open(w, '[');
    for (size_t i = 0; f->refusals != NULL && i < f->refusals->count; i++) {
        const struct weft_refusal *r = &f->refusals->items[i];
        weft_json_open(w, '{');
        weft_json_kv_string(w, "hash", r->hash);
        if (r->target[0] != '\0') { /* `weftctl accept` hands it on */
            weft_json_kv_string(w, "target", r->target);
        }
        weft_json_kv_string(w, "kind", weft_refusal_kind_name(r->kind));
        weft_json_kv_string(w, "text", r->text);
        weft_json_close(w, '}');
    }
    weft_json_close(w, ']');
}

void weft_status_put(const struct weft_status_facts *f, struct weft_json_writer *w)
{
    weft_json_kv_string(w, "instance", f->instance);
    weft_json_kv_bool(w, "paused", f->paused);
    weft_json_kv_bool(w, "hyperNodesServed", f->served);
    if (f->config_error[0] != '\0') {
        weft_json_kv_string(w, "configError", f->config_error);
    }
    if (f->pass_error[0] != '\0') {
        weft_json_kv_string(w, "passError", f->pass_error);
    }
    if (f->decided) {
        put_nodes(f, w);
        put_tiers(f, w);
    }
    put_sources(f, w);
    put_refusals(f, w);
}

bool weft_finding_is_over(const struct weft_finding_lists *lists,
                          const struct weft_finding *finding)
{
    return lists->is_over != NULL && lists->is_over(lists->data, finding);
}

size_t weft_finding_count(const struct weft_finding_lists *lists)
{
    size_t count = 0;
    for (size_t i = 0; i < WEFT_STATUS_LISTS; i++) {
        for (size_t k = 0; k < lists->lists[i].count; k++) {
            count += !weft_finding_is_over(lists, &lists->lists[i].items[k]);
        }
    }
    return count;
}

void weft_status_put_finding(const struct weft_finding *finding, struct weft_json_writer *w)
{
    weft_json_open(w, '{');
    weft_json_kv_string(w, "kind", finding->kind);
    weft_json_kv_string(w, "subject", finding->subject);
    weft_json_kv_string(w, "detail", finding->detail);
    weft_json_close(w, '}');
}

/* The lists that are short come last and say what matters most (Volcano, the plan): they go first.
 */
static size_t put_findings(const struct weft_status_facts *f, struct weft_json_writer *w)
{
    const size_t end = w->buf->len + WEFT_STATUS_FINDINGS_BYTES;
    size_t count = 0;
    weft_json_put_key(w, "findings");
    weft_json_open(w, '[');
    for (size_t i = WEFT_STATUS_LISTS; i > 0; i--) {
        const struct weft_finding_list *list = &f->findings.lists[i - 1];
        for (size_t k = 0; k < list->count; k++) {
            if (count == WEFT_STATUS_FINDINGS_MAX || w->buf->len > end) {
                break;
            }
            if (!weft_finding_is_over(&f->findings, &list->items[k])) {
                weft_status_put_finding(&list->items[k], w);
                count++;
            }
        }
    }
    weft_json_close(w, ']');
    return count;
}

void weft_status_text(const struct weft_status_facts *f, struct weft_buf *buf)
{
    struct weft_json_writer w;
    weft_json_writer_init(&w, buf, INDENT);
    weft_json_open(&w, '{');
    weft_status_put(f, &w);
    const size_t all = weft_finding_count(&f->findings);
    weft_json_kv_int(&w, "findingCount", (int64_t)all);
    const size_t shown = put_findings(f, &w);
    if (shown < all) {
        weft_json_kv_int(&w, "findingsLeftOut", (int64_t)(all - shown));
    }
    weft_json_close(&w, '}');
    (void)weft_buf_putc(buf, '\n');
}
