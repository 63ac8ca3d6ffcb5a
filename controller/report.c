/* SPDX-License-Identifier: Apache-2.0 */
/* What people are told: findings as log lines and Events, and the plan of --dry-run. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "controller/act.h"
#include "controller/controller-internal.h"
#include "controller/events.h"
#include "controller/labels.h"
#include "controller/options.h"
#include "controller/volcano-config.h"
#include "pkg/base/log.h"
#include "pkg/source/config.h"
#include "pkg/tree/tree.h"

enum {
    REASON_MAX = 64,
    NOTE_MAX = 900,
    PART_MAX = 300,
    /* of one kind: beyond it one Event with the number says more than hundreds */
    EACH_MAX = 10
};

/* "split-node" → "SplitNode" */
static const char *reason_of(const char *kind, char reason[REASON_MAX])
{
    size_t len = 0;
    bool up = true;
    for (; *kind != '\0' && len + 1 < REASON_MAX; kind++) {
        if (*kind == '-') {
            up = true;
            continue;
        }
        reason[len++] = up ? (char)toupper((unsigned char)*kind) : *kind;
        up = false;
    }
    reason[len] = '\0';
    return reason;
}

static struct weft_event_object about_us(const struct weft_controller *c)
{
    return (struct weft_event_object){.api_version = "coordination.k8s.io/v1",
                                      .kind = "Lease",
                                      .ns = c->options->ns,
                                      .name = c->options->lease,
                                      .uid = ""};
}

static void say_about(struct weft_controller *c, const struct weft_event_object *object,
                      bool warning, const char *reason, const char *action, const char *note)
{
    if (weft_events_add(c->events, object, warning, reason, action, note)) {
        weft_log(warning ? WEFT_LOG_WARN : WEFT_LOG_INFO, reason, WEFT_KV_S("kind", object->kind),
                 WEFT_KV_S("name", object->name), WEFT_KV_S("note", note));
    }
}

void weft_controller_say(struct weft_controller *c, bool warning, const char *reason,
                         const char *action, const char *note)
{
    const struct weft_event_object object = about_us(c);
    say_about(c, &object, warning, reason, action, note);
}

/* ---- findings ---- */

/* The nth of its kind about its subject: on the object that is called so, else on our Lease. */
static void say_finding(struct weft_controller *c, const struct weft_finding *f, size_t nth)
{
    char reason[REASON_MAX];
    char note[NOTE_MAX];
    char part[PART_MAX];
    (void)reason_of(f->kind, reason);
    const struct weft_view_node *node = weft_view_nodes_get(&c->nodes, f->subject);
    const struct weft_hypernode *hn = weft_hypernode_set_get(&c->hypernodes.set, f->subject);
    struct weft_event_object object = about_us(c);
    (void)snprintf(note, sizeof(note), "%s%s%s", f->subject, f->subject[0] != '\0' ? ": " : "",
                   f->detail);
    if (node != NULL) {
        object = (struct weft_event_object){"v1", "Node", "", f->subject, node->node.uid, NULL};
    } else if (hn != NULL) {
        object = (struct weft_event_object){
            WEFT_HYPERNODE_API_VERSION, "HyperNode", "", f->subject, hn->uid, NULL};
    }
    if (node != NULL || hn != NULL) {
        (void)snprintf(note, sizeof(note), "%s", f->detail);
    }
    (void)snprintf(part, sizeof(part), "%s#%zu", f->subject, nth);
    object.part = part;
    say_about(c, &object, true, reason, "Report", note);
}

/* One Event for all of a kind; which they are stands in the status. */
static void say_many(struct weft_controller *c, const struct weft_finding *first, size_t count)
{
    char reason[REASON_MAX];
    char note[NOTE_MAX];
    struct weft_event_object object = about_us(c);
    object.part = "";
    (void)snprintf(note, sizeof(note), "%zu findings \"%s\", the first: %s (%s)", count,
                   first->kind, first->subject, first->detail);
    say_about(c, &object, true, reason_of(first->kind, reason), "Report", note);
}

/* All of one kind. */
static void say_kind(struct weft_controller *c, const struct weft_finding_lists *all,
                     const struct weft_finding *items, size_t count)
{
    const struct weft_finding *first = NULL;
    size_t shown = 0;
    size_t nth = 0;
    for (size_t i = 0; i < count; i++) {
        const bool over = weft_finding_is_over(all, &items[i]);
        first = first == NULL && !over ? &items[i] : first;
        shown += !over;
    }
    if (first != NULL && shown > EACH_MAX) {
        say_many(c, first, shown);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        nth = i > 0 && strcmp(items[i].subject, items[i - 1].subject) == 0 ? nth + 1 : 0;
        if (!weft_finding_is_over(all, &items[i])) {
            say_finding(c, &items[i], nth);
        }
    }
}

void weft_controller_say_findings(struct weft_controller *c)
{
    struct weft_finding_lists all;
    weft_controller_findings(c, &all);
    for (size_t k = 0; k < WEFT_STATUS_LISTS; k++) {
        const struct weft_finding *items = all.lists[k].items;
        const size_t count = all.lists[k].count;
        for (size_t i = 0, end = 0; i < count; i = end) {
            while (end < count && strcmp(items[end].kind, items[i].kind) == 0) {
                end++;
            }
            say_kind(c, &all, &items[i], end - i);
        }
    }
    weft_events_sweep(c->events);
}

/* HyperNodes of Volcano's own discovery, as they are now. */
static void look_beside(struct weft_controller *c)
{
    weft_findings_done(&c->tell.beside);
    if (weft_volcano_judge_objects(&c->hypernodes.set, c->ours.instance, &c->tell.beside) < 0) {
        weft_log(WEFT_LOG_ERROR, "out of memory", WEFT_KV_S("for", "findings"));
    }
    weft_findings_sort(&c->tell.beside);
}

/* ---- brakes and kept places ---- */

/* One Event a kind: with several sources held, the first stands for them (the status has all). */
static void say_refused(struct weft_controller *c)
{
    static const char *const reasons[WEFT_REFUSAL_KIND_COUNT] = {
        [WEFT_REFUSAL_BRAKE] = "TopologyChangeRefused",
        [WEFT_REFUSAL_TIERS] = "TiersChangeRefused",
        [WEFT_REFUSAL_FOREIGN] = "TierNameRefused",
        [WEFT_REFUSAL_MOVE] = "MoveWaits",
    };
    const struct weft_refusals *all = &c->decision.keep.refusals;
    bool said[WEFT_REFUSAL_KIND_COUNT] = {0};
    char note[NOTE_MAX];
    for (size_t i = 0; i < all->count; i++) {
        const struct weft_refusal *r = &all->items[i];
        (void)snprintf(note, sizeof(note), "%s `weftctl accept %s` lets it through.", r->text,
                       r->hash);
        if (!said[r->kind]) {
            weft_controller_say(c, r->kind != WEFT_REFUSAL_MOVE, reasons[r->kind], "HoldChange",
                                note);
        }
        said[r->kind] = true;
    }
    for (int kind = 0; kind < WEFT_REFUSAL_KIND_COUNT; kind++) {
        if (!said[kind]) {
            weft_events_clear(c->events, "Lease", c->options->lease, reasons[kind]);
        }
    }
}

static void say_kept(struct weft_controller *c)
{
    const struct weft_keep_result *keep = &c->decision.keep;
    char note[NOTE_MAX];
    size_t len = 0;
    note[0] = '\0';
    const size_t shown = keep->kept < WEFT_ARRAY_LEN(keep->kept_names)
                             ? keep->kept
                             : WEFT_ARRAY_LEN(keep->kept_names);
    for (size_t i = 0; i < shown && len < sizeof(note); i++) {
        const int n = snprintf(note + len, sizeof(note) - len, "%s%s", i > 0 ? ", " : "",
                               keep->kept_names[i]);
        len += n > 0 ? (size_t)n : 0;
    }
    if (keep->kept > 0) {
        char full[NOTE_MAX + 128];
        (void)snprintf(full, sizeof(full),
                       "No source places these Nodes now, or not on every tier; they keep their "
                       "last place: %s%s (%zu)",
                       note, keep->kept > shown ? " …" : "", keep->kept);
        weft_controller_say(c, true, "LastPlaceKept", "KeepPlace", full);
    } else {
        weft_events_clear(c->events, "Lease", c->options->lease, "LastPlaceKept");
    }
}

void weft_controller_report(struct weft_controller *c)
{
    const struct weft_decision *d = &c->decision;
    weft_events_clear(c->events, "Lease", c->options->lease, "PassFailed");
    weft_log(d->plan.step_count > 0 ? WEFT_LOG_INFO : WEFT_LOG_DEBUG, "pass",
             WEFT_KV_I("nodes", d->selected), WEFT_KV_I("placed", d->tree->node_count),
             WEFT_KV_I("unplaced", d->tree->unplaced_count), WEFT_KV_I("kept", d->keep.kept),
             WEFT_KV_I("hypernodes", d->keep.set.count), WEFT_KV_I("writes", d->plan.step_count));
    weft_controller_say_sources(c);
    look_beside(c);
    weft_controller_say_findings(c);
    say_refused(c);
    say_kept(c);
}

/* ---- --dry-run ---- */

static size_t label_writes(const struct weft_controller *c)
{
    size_t count = 0;
    for (size_t i = 0; i < c->nodes.count; i++) {
        const struct weft_view_node *entry = &c->nodes.items[i];
        const char *values[WEFT_LAYOUT_TIERS_MAX];
        size_t tiers = 0;
        if (!entry->gone) {
            count += weft_controller_needs_labels(c, &entry->node, values, &tiers);
        }
    }
    return count;
}

const char *weft_controller_s(size_t count)
{
    return count == 1 ? "" : "s";
}

void weft_controller_print_plan(const struct weft_controller *c)
{
    const struct weft_plan *plan = &c->decision.plan;
    (void)printf("%-5s %-8s %-4s %-8s %s\n", "STEP", "WRITE", "TIER", "MEMBERS", "HYPERNODE");
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct weft_step *step = &plan->steps[i];
        (void)printf("%-5zu %-8s %-4" PRId64 " %-8zu %s\n", i + 1, weft_step_kind_name(step->kind),
                     step->object.tier, step->object.member_count, step->object.name);
    }
    const size_t labels = c->config->outputs.labels ? label_writes(c) : 0;
    const size_t all = c->decision.keep.set.count;
    (void)printf("%zu HyperNode write%s, %zu Node%s to label, %zu HyperNode%s in all\n",
                 plan->step_count, weft_controller_s(plan->step_count), labels,
                 weft_controller_s(labels), all, weft_controller_s(all));
}
