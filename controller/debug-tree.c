/* SPDX-License-Identifier: Apache-2.0 */
/* Walks what is known, part by part. A place is a name or an index, never a pointer: between two
 * parts everything may have changed. Reads only. */
#include "controller/debug-tree.h"

#include <errno.h>
#include <string.h>

#include "controller/controller-internal.h"
#include "pkg/base/buf.h"
#include "pkg/http/http.h"
#include "pkg/json/json.h"
#include "pkg/source/config.h"
#include "pkg/tree/tree.h"

enum {
    DEBUG_TREE_MAGIC = 0x77646274,
    PART_BYTES = 32768, /* a part is about so large; one HyperNode may be larger */
    STATUS_UNAVAILABLE = 503
};

enum phase { PHASE_HEAD, PHASE_FINDINGS, PHASE_HYPERNODES, PHASE_NODES, PHASE_END };

struct debug_tree {
    unsigned magic;
    struct weft_controller *c;
    struct weft_json_writer w;
    enum phase phase;
    size_t list;         /* of findings */
    size_t index;        /* in it, or of the Nodes */
    char *name;          /* the last HyperNode; NULL: none yet */
    uint64_t passes;     /* as it began */
    uint64_t writes;     /* likewise */
    size_t nodes, known; /* Nodes and HyperNodes, likewise */
};

static void on_done(void *stream)
{
    struct debug_tree *d = stream;
    WEFT_CHECK(d, DEBUG_TREE_MAGIC);
    weft_free(d->name);
    d->magic = 0;
    weft_free(d);
}

static bool consistent(const struct debug_tree *d)
{
    const struct weft_controller *c = d->c;
    return c->stats.passes == d->passes && c->stats.writes == d->writes &&
           c->nodes.count == d->nodes && c->hypernodes.set.count == d->known;
}

static bool full(const struct debug_tree *d)
{
    return d->w.buf->len >= PART_BYTES;
}

/* ---- the parts ---- */

static void put_head(struct debug_tree *d)
{
    struct weft_status_facts facts;
    weft_controller_facts(d->c, &facts);
    weft_json_open(&d->w, '{');
    weft_json_kv_string(&d->w, "version", WEFT_VERSION);
    weft_json_kv_string(&d->w, "role", d->c->leading ? "leader" : "follower");
    weft_json_put_key(&d->w, "status");
    weft_json_open(&d->w, '{');
    weft_status_put(&facts, &d->w);
    weft_json_close(&d->w, '}');
    weft_json_put_key(&d->w, "findings");
    weft_json_open(&d->w, '[');
    d->phase = PHASE_FINDINGS;
}

static void put_findings(struct debug_tree *d)
{
    struct weft_finding_lists all;
    weft_controller_findings(d->c, &all);
    for (; d->list < WEFT_STATUS_LISTS; d->list++, d->index = 0) {
        for (; d->index < all.lists[d->list].count; d->index++) {
            const struct weft_finding *f = &all.lists[d->list].items[d->index];
            if (full(d)) {
                return;
            }
            if (!weft_finding_is_over(&all, f)) {
                weft_status_put_finding(f, &d->w);
            }
        }
    }
    weft_json_close(&d->w, ']');
    weft_json_put_key(&d->w, "hyperNodes");
    weft_json_open(&d->w, '[');
    d->phase = PHASE_HYPERNODES;
}

static void put_member(const struct weft_member *m, struct weft_json_writer *w)
{
    static const char *const keys[] = {[WEFT_SELECTOR_REGEX] = "regexMatch",
                                       [WEFT_SELECTOR_LABEL] = "labelMatch",
                                       [WEFT_SELECTOR_NONE] = "noSelector"};
    if (m->selector == WEFT_SELECTOR_EXACT) {
        weft_json_put_string(w, m->name);
        return;
    }
    weft_json_open(w, '{');
    weft_json_kv_string(w, keys[m->selector], m->name);
    weft_json_close(w, '}');
}

static void put_hypernode(const struct debug_tree *d, const struct weft_hypernode *hn,
                          struct weft_json_writer *w)
{
    const bool ours = weft_hypernode_is_ours(hn, d->c->ours.instance);
    weft_json_open(w, '{');
    weft_json_kv_string(w, "name", hn->name);
    weft_json_kv_int(w, "tier", hn->tier);
    weft_json_kv_string(w, "tierName", weft_hypernode_text(hn->tier_name));
    weft_json_kv_bool(w, "ours", ours);
    weft_json_kv_string(w, ours ? "identity" : "source",
                        weft_hypernode_text(ours ? hn->identity : hn->source));
    weft_json_put_key(w, "members");
    weft_json_open(w, '[');
    for (size_t i = 0; i < hn->member_count; i++) {
        put_member(&hn->members[i], w);
    }
    weft_json_close(w, ']');
    weft_json_close(w, '}');
}

/* The index of the first HyperNode after the last one that was written. */
static size_t next_hypernode(const struct debug_tree *d)
{
    const struct weft_hypernode_set *set = &d->c->hypernodes.set;
    size_t low = 0;
    size_t high = d->name != NULL ? set->count : 0;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(set->items[middle].name, d->name) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void put_hypernodes(struct debug_tree *d)
{
    const struct weft_hypernode_set *set = &d->c->hypernodes.set;
    size_t i = next_hypernode(d);
    for (; i < set->count && !full(d); i++) {
        put_hypernode(d, &set->items[i], &d->w);
    }
    if (i < set->count) {
        weft_free(d->name);
        d->name = weft_strdup(set->items[i - 1].name);
        if (d->name == NULL) {
            d->w.buf->status = -ENOMEM;
        }
        return;
    }
    weft_json_close(&d->w, ']');
    weft_json_put_key(&d->w, "nodes");
    weft_json_open(&d->w, '[');
    d->index = 0;
    d->phase = PHASE_NODES;
}

static void put_node(const struct debug_tree *d, const struct weft_view_node *entry,
                     struct weft_json_writer *w)
{
    const struct weft_config *config = d->c->config;
    const char *values[WEFT_LAYOUT_TIERS_MAX];
    const size_t count = d->c->decision.tree != NULL
                             ? weft_decision_labels(&d->c->decision, entry->node.name, values)
                             : 0;
    weft_json_open(w, '{');
    weft_json_kv_string(w, "name", entry->node.name);
    if (count > 0 && entry->source < config->source_count) { /* now, or last */
        weft_json_kv_string(w, "source", config->sources[entry->source].name);
    }
    weft_json_put_key(w, "hyperNodes");
    weft_json_open(w, '[');
    for (size_t i = 0; i < count; i++) {
        weft_json_put_string(w, values[i]);
    }
    weft_json_close(w, ']');
    weft_json_close(w, '}');
}

static void put_nodes(struct debug_tree *d)
{
    const struct weft_view_nodes *nodes = &d->c->nodes;
    for (; d->index < nodes->count && !full(d); d->index++) {
        if (!nodes->items[d->index].gone) {
            put_node(d, &nodes->items[d->index], &d->w);
        }
    }
    if (d->index < nodes->count) {
        return;
    }
    weft_json_close(&d->w, ']');
    weft_json_kv_bool(&d->w, "consistent", consistent(d));
    weft_json_close(&d->w, '}');
    (void)weft_buf_putc(d->w.buf, '\n');
    d->phase = PHASE_END;
}

static void on_more(void *stream, struct weft_buf *part)
{
    static void (*const puts[])(struct debug_tree *) = {[PHASE_HEAD] = put_head,
                                                        [PHASE_FINDINGS] = put_findings,
                                                        [PHASE_HYPERNODES] = put_hypernodes,
                                                        [PHASE_NODES] = put_nodes};
    struct debug_tree *d = stream;
    WEFT_CHECK(d, DEBUG_TREE_MAGIC);
    d->w.buf = part;
    while (d->phase != PHASE_END && !full(d) && part->status == 0) {
        puts[d->phase](d);
    }
}

void weft_debug_tree(struct weft_controller *c, struct weft_http_answer *answer)
{
    struct debug_tree *d = weft_calloc(1, sizeof(*d));
    if (d == NULL) {
        answer->status = STATUS_UNAVAILABLE;
        return;
    }
    d->magic = DEBUG_TREE_MAGIC;
    d->c = c;
    d->passes = c->stats.passes;
    d->writes = c->stats.writes;
    d->nodes = c->nodes.count;
    d->known = c->hypernodes.set.count;
    weft_json_writer_init(&d->w, NULL, 0);
    answer->type = "application/json";
    answer->more = on_more;
    answer->done = on_done;
    answer->stream = d;
}
