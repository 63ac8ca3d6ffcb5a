/* SPDX-License-Identifier: Apache-2.0 */
/* When a pass runs and what goes into it. What comes out is carried out by act.c. */
#include <errno.h>
#include <malloc.h>
#include <string.h>

#include "controller/accept.h"
#include "controller/act.h"
#include "controller/controller-internal.h"
#include "controller/gangs.h"
#include "controller/instances.h"
#include "controller/labelled.h"
#include "controller/lost.h"
#include "controller/options.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/fabric/inventory.h"
#include "pkg/loop/loop.h"
#include "pkg/source/config.h"

/* After this time without a pass. The next one has to get its memory again from the kernel. */
#define TRIM_NS (2 * WEFT_NS_PER_S)

int64_t weft_controller_now(void)
{
    return weft_clock_monotonic(weft_clock_system());
}

static void on_tick(void *data);

static void on_idle(void *data)
{
    (void)data;
    (void)malloc_trim(0); /* a pass's small pieces lie between those that stay */
}

static void on_answer(void *data)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    weft_controller_changed(c, true);
}

static void no_right_to_see_gangs(void *data, const struct weft_error *error)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    weft_log(WEFT_LOG_WARN, "moves do not wait for gangs", WEFT_KV_S("error", error->message));
    weft_controller_say(c, false, "GangsNotKnown", "MoveNodes",
                        "There is no right to list pods, so a Node does not wait for a running "
                        "gang before it moves (overlays/gang-moves grants it; moveDelay: 0s ends "
                        "this message).");
}

int weft_controller_pass_init(struct weft_controller *c, struct weft_error *err)
{
    c->keep = weft_keep_new();
    if (c->keep == NULL) {
        return weft_err_nomem(err);
    }
    const struct weft_accept_options accept = {.client = c->client,
                                               .ns = c->options->ns,
                                               .instance = c->ours.instance,
                                               .changed = on_answer,
                                               .data = c};
    const struct weft_gangs_options gangs = {
        .client = c->client, .answered = on_answer, .forbidden = no_right_to_see_gangs, .data = c};
    int rc = weft_accept_new(c->loop, &accept, &c->accept, err);
    rc = rc < 0 ? rc : weft_gangs_new(&gangs, &c->gangs, err);
    if (rc < 0) {
        return rc;
    }
    c->keep_due = INT64_MAX;
    weft_debounce_init(&c->debounce, c->config->debounce.quiet_ns, c->config->debounce.max_ns);
    rc = weft_timer_new(c->loop, on_tick, c, &c->tick, err);
    return rc < 0 ? rc : weft_timer_new(c->loop, on_idle, c, &c->trim, err);
}

void weft_controller_pass_done(struct weft_controller *c)
{
    weft_timer_free(c->tick);
    weft_timer_free(c->trim);
    weft_decision_done(&c->decision);
    weft_plan_done(&c->repair);
    weft_plan_done(&c->around);
    weft_keep_free(c->keep);
    weft_accept_free(c->accept);
    weft_gangs_free(c->gangs);
}

/* ---- when ---- */

static bool ready(const struct weft_controller *c)
{
    return !c->stopping && weft_controller_synced(c) && weft_sources_ready(c->sources) &&
           (c->instances == NULL || weft_instances_known(c->instances)) &&
           weft_accept_known(c->accept) && (c->leading || weft_controller_reads_only(c)) &&
           c->apply == NULL;
}

/* A source has not answered yet, so there is no pass; but something of ours is missing. */
static bool may_repair(const struct weft_controller *c)
{
    return !c->stopping && c->lost.count > 0 && weft_controller_synced(c) && !c->crd_missing &&
           !weft_sources_ready(c->sources) && c->leading && c->apply == NULL &&
           !c->config->paused && c->config->outputs.hyper_nodes;
}

static int64_t due_at(const struct weft_controller *c)
{
    int64_t due = weft_debounce_due(&c->debounce);
    due = c->keep_due < due ? c->keep_due : due;
    return due < c->not_before ? c->not_before : due;
}

void weft_controller_schedule(struct weft_controller *c)
{
    const int64_t due = due_at(c);
    if (!c->stopping && weft_controller_synced(c)) {
        weft_accept_ask(c->accept); /* not before: a server that fails is told of elsewhere */
    }
    const int64_t now = weft_controller_now();
    if (may_repair(c)) {
        weft_timer_start(c->tick, c->not_before > now ? c->not_before - now : 0, 0);
        return;
    }
    if (!ready(c) || due == INT64_MAX) {
        weft_timer_stop(c->tick);
        return;
    }
    /* a pass runs from the timer only, never from inside a watch's callback */
    weft_timer_start(c->tick, due > now ? due - now : 0, 0);
}

void weft_controller_changed(struct weft_controller *c, bool rush)
{
    const int64_t now = weft_controller_now();
    if (rush) {
        weft_debounce_rush(&c->debounce, now);
    } else {
        weft_debounce_touch(&c->debounce, now);
    }
    weft_controller_schedule(c);
}

/* ---- what ---- */

bool weft_controller_any_of_ours(const struct weft_controller *c)
{
    for (size_t i = 0; i < c->hypernodes.set.count; i++) {
        if (weft_hypernode_is_ours(&c->hypernodes.set.items[i], c->ours.instance)) {
            return true;
        }
    }
    return false;
}

static void recall(const struct weft_controller *c, const struct weft_node *nodes, size_t count,
                   struct weft_decide_memory *memory)
{
    for (size_t i = 0; i < count; i++) {
        const struct weft_view_node *entry = weft_view_nodes_get(&c->nodes, nodes[i].name);
        memory[i] = (struct weft_decide_memory){.fresh = entry->fresh, .source = entry->source};
    }
}

/* What is known of gangs on each Node; NULL: nobody waits for any. */
static int see_gangs(const struct weft_controller *c, const struct weft_node *nodes, size_t count,
                     enum weft_keep_gang **ret_gangs)
{
    if (c->config->move_delay_ns == 0 || weft_controller_reads_only(c)) {
        return 0;
    }
    const int64_t now = weft_controller_now();
    enum weft_keep_gang *gangs = weft_calloc(count + 1, sizeof(*gangs));
    for (size_t i = 0; gangs != NULL && i < count; i++) {
        gangs[i] = weft_gangs_of(c->gangs, nodes[i].name, now);
    }
    *ret_gangs = gangs;
    return gangs != NULL ? 0 : -ENOMEM;
}

/* Asks about the Nodes whose move depends on it; true if there is something to wait for. */
static bool ask_for_gangs(struct weft_controller *c)
{
    const struct weft_keep_result *keep = &c->decision.keep;
    for (size_t i = 0; i < keep->unknown_count; i++) {
        if (weft_gangs_ask(c->gangs, keep->unknown[i]) < 0) {
            weft_log(WEFT_LOG_ERROR, "out of memory", WEFT_KV_S("for", keep->unknown[i]));
            return false; /* these Nodes wait, the others do not */
        }
    }
    if (keep->waiting == 0) {
        weft_gangs_forget(c->gangs);
    } else {
        weft_gangs_refresh(c->gangs, weft_controller_now());
    }
    return keep->unknown_count > 0 && weft_gangs_busy(c->gangs);
}

static void remember(struct weft_controller *c, const struct weft_node *nodes, size_t count,
                     const struct weft_decide_memory *memory)
{
    for (size_t i = 0; i < count; i++) {
        struct weft_view_node *entry = weft_view_nodes_get(&c->nodes, nodes[i].name);
        entry->source = memory[i].source;
        entry->fresh = entry->fresh && !memory[i].placed;
    }
}

/* Without HyperNodes of ours, because the CRD is missing, or was until a moment ago, or because
 * they are not to be written: the labels on the Nodes are all that tells where Nodes have been. */
static bool labels_tell_places(struct weft_controller *c)
{
    if (c->options->against != NULL || weft_controller_any_of_ours(c)) {
        c->crd_was_missing = false;
        return false;
    }
    c->crd_was_missing = c->crd_was_missing || c->crd_missing;
    return c->crd_was_missing || !c->config->outputs.hyper_nodes;
}

/* The Nodes that exist, as shallow copies; the caller frees the array only. */
static int list_nodes(const struct weft_controller *c, struct weft_node **ret_nodes,
                      size_t *ret_count, struct weft_error *err)
{
    if (weft_view_nodes_array(&c->nodes, ret_nodes, ret_count) < 0) {
        return weft_err_nomem(err);
    }
    return *ret_count > 0 || !weft_controller_any_of_ours(c)
               ? 0
               : weft_err_set(err, -ENODATA, WEFT_ERR_CONFIG,
                              "the API server lists no Node at all: nothing is changed");
}

/* 1: *ret_places says where Nodes have been so far, and not the HyperNodes that exist; *ret_lost:
 * as some of ours were deleted by others. */
static int last_places(struct weft_controller *c, const struct weft_node *nodes, size_t count,
                       struct weft_hypernode_set *ret_places, bool *ret_lost,
                       struct weft_error *err)
{
    if (labels_tell_places(c)) {
        const size_t tiers = c->config->tiers.count;
        const int rc = weft_labelled_places(nodes, count, tiers, &c->ours, ret_places, err);
        return rc < 0 ? rc : 1;
    }
    const int rc =
        weft_lost_places(&c->hypernodes.set, &c->lost, c->ours.instance, ret_places, ret_lost, err);
    return rc < 0 ? rc : *ret_lost;
}

static int decide(struct weft_controller *c, struct weft_error *err)
{
    const struct weft_source_result *results[WEFT_CONFIG_SOURCES_MAX] = {0};
    weft_auto(weft_nic_inventory_free) struct weft_nic_inventory *instances = NULL;
    weft_autofree struct weft_node *nodes = NULL;
    size_t count = 0;
    int rc = weft_controller_results(c->sources, c->config, results, err);
    rc = rc < 0 ? rc : list_nodes(c, &nodes, &count, err);
    rc = rc < 0 ? rc : weft_controller_instances(c, &instances, err);
    if (rc < 0) {
        return rc;
    }
    weft_autofree struct weft_decide_memory *memory = weft_calloc(count + 1, sizeof(*memory));
    weft_autofree enum weft_keep_gang *gangs = NULL;
    if (memory == NULL || see_gangs(c, nodes, count, &gangs) < 0) {
        return weft_err_nomem(err);
    }
    recall(c, nodes, count, memory);
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set places = {0};
    bool lost = false;
    rc = last_places(c, nodes, count, &places, &lost, err);
    if (rc < 0) {
        return rc;
    }
    uint64_t looks[WEFT_CONFIG_SOURCES_MAX];
    weft_controller_looks(c, looks);
    size_t accepted_count = 0;
    const struct weft_acceptance *accepted = weft_accept_list(c->accept, &accepted_count);
    const struct weft_decide_input input = {
        .config = c->config,
        .ours = &c->ours,
        .results = results,
        .looks = looks,
        .epoch = weft_controller_epoch(c),
        .nodes = nodes,
        .memory = memory,
        .node_count = count,
        .instances = instances,
        .live = c->options->against != NULL ? &c->against : &c->hypernodes.set,
        .places = rc > 0 ? &places : NULL,
        .lost = lost,
        .prunes_tier_name = weft_controller_prunes_tier_name(c),
        .keep = c->keep,
        .accepted = accepted,
        .accepted_count = accepted_count,
        .gangs = gangs,
        .now = weft_controller_now(),
    };
    weft_decision_done(&c->decision);
    rc = weft_decide(&input, &c->decision, err);
    if (rc == 0) {
        remember(c, nodes, count, memory);
    }
    return rc;
}

static int decide_nothing(struct weft_controller *c, struct weft_error *err)
{
    weft_decision_done(&c->decision);
    return weft_decide_nothing(&c->ours, &c->hypernodes.set, &c->decision, err);
}

static void run_pass(struct weft_controller *c)
{
    struct weft_error err = {0};
    const int64_t start = weft_controller_now();
    weft_debounce_clear(&c->debounce);
    c->stats.passes++;
    c->keep_due = INT64_MAX;
    c->not_before = 0;
    c->stuck_count = 0;
    (void)weft_sources_refresh(c->sources);
    if ((c->options->uninstall ? decide_nothing(c, &err) : decide(c, &err)) < 0) {
        c->stats.passes_failed++;
        weft_log(WEFT_LOG_ERROR, "pass failed", WEFT_KV_S("error", err.message));
        weft_controller_say(c, true, "PassFailed", "KeepState", err.message);
        weft_controller_thought(c, err.message);
        if (c->options->once || weft_controller_reads_only(c)) {
            weft_controller_end_once(c, 1);
            return;
        }
        weft_controller_back_off(c, WEFT_NS_PER_S, false);
        return;
    }
    c->keep_due = c->decision.keep.due;
    weft_accept_used(c->accept, c->decision.keep.used);
    weft_accept_watch(c->accept, c->decision.keep.refusals.count > 0);
    c->stats.last_pass = weft_clock_realtime(weft_clock_system());
    weft_histogram_add(&c->stats.pass_time, weft_controller_now() - start);
    if (ask_for_gangs(c)) {
        return; /* the answers ask for the next pass */
    }
    if (!c->options->uninstall) {
        weft_controller_report(c);
        weft_controller_thought(c, "");
    }
    weft_controller_act(c);
    weft_timer_start(c->trim, TRIM_NS, 0);
}

static void run_repair(struct weft_controller *c)
{
    struct weft_error err = {0};
    weft_auto(weft_hypernode_set_done) struct weft_hypernode_set places = {0};
    bool any = false;
    weft_plan_done(&c->repair);
    int rc = weft_lost_places(&c->hypernodes.set, &c->lost, c->ours.instance, &places, &any, &err);
    if (rc == 0 && any) {
        rc = weft_lost_plan(&c->hypernodes.set, &places, c->ours.instance, &c->repair, &err);
    }
    if (rc < 0) {
        weft_log(WEFT_LOG_ERROR, "repair failed", WEFT_KV_S("error", err.message));
        weft_controller_back_off(c, WEFT_NS_PER_S, false);
        return;
    }
    if (c->repair.step_count == 0) {
        weft_hypernode_set_done(&c->lost); /* nobody lists them */
        weft_controller_schedule(c);
        return;
    }
    weft_controller_act_repair(c);
}

static void on_tick(void *data)
{
    struct weft_controller *c = data;
    WEFT_CHECK(c, WEFT_CONTROLLER_MAGIC);
    if (may_repair(c) && c->not_before <= weft_controller_now()) {
        run_repair(c);
    } else if (ready(c) && due_at(c) <= weft_controller_now()) {
        run_pass(c);
    } else {
        weft_controller_schedule(c);
    }
}
