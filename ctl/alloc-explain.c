/* SPDX-License-Identifier: Apache-2.0 */
/* What weftctl alloc --explain adds: the answer beside the best other set, entry by entry of the
 * key, and the first in which they differ. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl/alloc-print.h"
#include "pkg/base/buf.h"
#include "pkg/json/json.h"

enum { VALUE_MAX = 40 };

struct entry {
    const char *rule;  /* of docs/allocation.md */
    const char *title; /* a column's row */
    const char *words; /* of the sentence: "<words>: <value>, not <value>" */
};

static const struct entry entries[WEFT_ENTRY_COUNT] = {
    [WEFT_ENTRY_COMPONENTS] = {"1", "parts without a link between", "fewer separate parts"},
    [WEFT_ENTRY_MIN_CUT] = {"2", "narrowest cut", "a wider narrowest cut"},
    [WEFT_ENTRY_WORST_TIER] = {"3", "farthest unlinked pair",
                               "a nearer farthest pair among those without a link"},
    [WEFT_ENTRY_SOCKETS] = {"4", "sockets", "fewer sockets"},
    [WEFT_ENTRY_NUMA_NODES] = {"4", "NUMA nodes", "fewer NUMA nodes"},
    [WEFT_ENTRY_BROKEN_GROUPS] = {"5a", "whole groups broken", "fewer whole groups broken"},
    [WEFT_ENTRY_LEFTOVER] = {"5b", "left over in groups used", "less left over in groups it uses"},
    [WEFT_ENTRY_NIC_NEAR] = {"6a", "devices near a NIC", "more devices near a NIC"},
    [WEFT_ENTRY_NIC_DISTINCT] = {"6b", "NICs near", "more different NICs near"},
    [WEFT_ENTRY_BANDWIDTH] = {"7", "bandwidth of all pairs", "more bandwidth over all pairs"},
    [WEFT_ENTRY_TIER_SUM] = {"7", "distances of all pairs", "shorter distances over all pairs"},
    [WEFT_ENTRY_ORDER] = {"8", "device order", "the first in device order"},
};

static void put_value(const struct weft_objective *o, enum weft_entry entry, char *text)
{
    const int64_t value = weft_objective_value(o, entry);
    if (entry == WEFT_ENTRY_MIN_CUT || entry == WEFT_ENTRY_BANDWIDTH) {
        weft_auto(weft_buf_done) struct weft_buf rate;
        weft_buf_init(&rate, VALUE_MAX - 1);
        weft_alloc_put_rate(&rate, (uint64_t)value);
        (void)snprintf(text, VALUE_MAX, "%s", weft_buf_text(&rate));
    } else if (entry == WEFT_ENTRY_WORST_TIER) {
        (void)snprintf(text, VALUE_MAX, "%s",
                       value < 0 ? "none" : weft_distance_name((enum weft_distance)value));
    } else {
        (void)snprintf(text, VALUE_MAX, "%" PRId64, value);
    }
}

static void put_indices(const struct weft_machine *m, const struct weft_choice *c,
                        struct weft_buf *buf)
{
    for (size_t i = 0; i < c->count; i++) {
        (void)weft_buf_printf(buf, "%s%d", i > 0 ? "," : "", m->devices[c->devices[i]].index);
    }
}

static enum weft_entry decisive(const struct weft_alloc_answer *a)
{
    enum weft_entry entry = WEFT_ENTRY_ORDER;
    (void)weft_objective_compare(a->request->policy, &a->choice->objective, &a->other->objective,
                                 &entry);
    return entry;
}

/* One sentence: which entry, and both values. */
static void put_sentence(const struct weft_alloc_answer *a, enum weft_entry entry,
                         struct weft_buf *buf)
{
    char chosen[VALUE_MAX];
    char other[VALUE_MAX];
    (void)weft_buf_printf(buf, "rule %s: %s", entries[entry].rule, entries[entry].words);
    if (entry == WEFT_ENTRY_ORDER) {
        (void)weft_buf_puts(buf, "; nothing else tells the two apart");
        return;
    }
    put_value(&a->choice->objective, entry, chosen);
    put_value(&a->other->objective, entry, other);
    (void)weft_buf_printf(buf, ": %s, not %s", chosen, other);
}

static void put_row(const struct weft_alloc_answer *a, enum weft_entry entry, bool decides,
                    struct weft_buf *buf)
{
    char chosen[VALUE_MAX];
    char other[VALUE_MAX];
    put_value(&a->choice->objective, entry, chosen);
    put_value(&a->other->objective, entry, other);
    (void)weft_buf_printf(buf, "  %-2s  %-29s  %12s  %12s%s\n", entries[entry].rule,
                          entries[entry].title, chosen, other, decides ? "  <- decides" : "");
}

void weft_alloc_explain_table(const struct weft_alloc_answer *a, struct weft_buf *buf)
{
    if (a->other->count == 0) {
        (void)weft_buf_puts(buf, "\nthere is no other set: all that is not required is needed\n");
        return;
    }
    const enum weft_entry entry = decisive(a);
    (void)weft_buf_puts(buf, "\nthe best other set is ");
    put_indices(a->machine, a->other, buf);
    (void)weft_buf_puts(buf, a->other->exact ? "; what decided is\n  "
                                             : ", as far as was searched; what decided is\n  ");
    put_sentence(a, entry, buf);
    (void)weft_buf_printf(buf, "\n\n  %-2s  %-29s  %12s  %12s\n", "", "RULE", "CHOSEN", "OTHER");
    const bool packed = a->request->policy == WEFT_POLICY_PACKED;
    for (int at = 0; at < WEFT_ENTRY_ORDER; at++) {
        /* in the order in which the policy looks: packed has rule 5 first */
        enum weft_entry e = (enum weft_entry)at;
        if (packed && at < 2) {
            e = (enum weft_entry)(WEFT_ENTRY_BROKEN_GROUPS + at);
        } else if (packed && at <= WEFT_ENTRY_LEFTOVER) {
            e = (enum weft_entry)(at - 2);
        }
        put_row(a, e, e == entry, buf);
    }
}

void weft_alloc_explain_json(const struct weft_alloc_answer *a, struct weft_json_writer *w)
{
    weft_json_put_key(w, "other");
    if (a->other->count == 0) {
        weft_json_put_null(w);
        weft_json_put_key(w, "decided");
        weft_json_put_null(w);
        return;
    }
    weft_json_open(w, '{');
    weft_alloc_put_choice(w, a->machine, a->other);
    weft_json_close(w, '}');
    const enum weft_entry entry = decisive(a);
    weft_auto(weft_buf_done) struct weft_buf text;
    weft_buf_init(&text, 256);
    put_sentence(a, entry, &text);
    weft_json_put_key(w, "decided");
    weft_json_open(w, '{');
    weft_json_kv_string(w, "entry", weft_entry_name(entry));
    weft_json_kv_string(w, "rule", entries[entry].rule);
    if (entry != WEFT_ENTRY_ORDER) {
        weft_json_kv_int(w, "chosen", weft_objective_value(&a->choice->objective, entry));
        weft_json_kv_int(w, "other", weft_objective_value(&a->other->objective, entry));
    }
    weft_json_kv_string(w, "text", weft_buf_text(&text));
    weft_json_close(w, '}');
    if (text.status < 0) {
        w->buf->status = text.status;
    }
}
